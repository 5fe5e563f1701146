/* SPDX-License-Identifier: Apache-2.0 */
#include "api/quantity.h"

#define NANO (-9)
#define MILLI (-3)
/* More digits than these do not fit the number; such a text stays as it is. */
#define DIGITS_MAX 36
#define FAST_DIGITS 18 /* Kubernetes keeps canonical texts of at most this many digits unread. */

enum unit_type { DECIMAL_SI, BINARY_SI, DECIMAL_EXPONENT };

struct unit {
    enum unit_type type;
    int exponent; /* The power of 10, or of 2 for BINARY_SI. */
};

/* The parts of a quantity's text: the amount is 'digits' * 10^'scale', times the unit. */
struct parts {
    bool negative;
    char digits[DIGITS_MAX + 1]; /* Without leading zeros, but one where nothing else is whole. */
    size_t n_digits, n_whole;    /* All digits, and those before the point. */
    const char *suffix;
    bool long_text; /* More than DIGITS_MAX digits. */
};

static const struct {
    const char *text;
    struct unit unit;
} units[] = {
    {"n", {DECIMAL_SI, -9}}, {"u", {DECIMAL_SI, -6}}, {"m", {DECIMAL_SI, -3}},
    {"", {DECIMAL_SI, 0}},   {"k", {DECIMAL_SI, 3}},  {"M", {DECIMAL_SI, 6}},
    {"G", {DECIMAL_SI, 9}},  {"T", {DECIMAL_SI, 12}}, {"P", {DECIMAL_SI, 15}},
    {"E", {DECIMAL_SI, 18}}, {"Ki", {BINARY_SI, 10}}, {"Mi", {BINARY_SI, 20}},
    {"Gi", {BINARY_SI, 30}}, {"Ti", {BINARY_SI, 40}}, {"Pi", {BINARY_SI, 50}},
    {"Ei", {BINARY_SI, 60}},
};

static int find_unit(const char *s, struct unit *ret)
{
    for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
        if (streq(units[i].text, s)) {
            *ret = units[i].unit;
            return 0;
        }
    }
    int64_t n;
    const char *number = s + 1 + (*s && s[1] == '+');
    if ((*s != 'e' && *s != 'E') || str_to_i64(number, -100, 100, &n) < 0) {
        return -EINVAL;
    }
    *ret = (struct unit){DECIMAL_EXPONENT, (int) n};
    return 0;
}

static const char *unit_text(enum unit_type type, int exponent)
{
    for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
        if (units[i].unit.type == type && units[i].unit.exponent == exponent) {
            return units[i].text;
        }
    }
    return NULL;
}

static const char *take_digits(struct parts *p, const char *s)
{
    for (; *s >= '0' && *s <= '9'; s++) {
        if (p->n_digits == DIGITS_MAX) {
            p->long_text = true;
        } else {
            p->digits[p->n_digits++] = *s;
        }
    }
    return s;
}

/* Whether 's' is a suffix: letters, and then a number. */
static bool is_suffix(const char *s)
{
    s += strspn(s, "eEinumkKMGTP");
    s += *s == '-' || *s == '+';
    return !s[strspn(s, "0123456789")];
}

static int split(const char *s, struct parts *p, struct err *e)
{
    const char *start = s;
    p->negative = *s == '-';
    s += *s == '-' || *s == '+';
    s += strspn(s, "0");
    s = take_digits(p, s);
    if (p->n_digits == 0) {
        p->digits[p->n_digits++] = '0';
    }
    p->n_whole = p->n_digits;
    s = *s == '.' ? take_digits(p, s + 1) : s;
    if (!*start || !is_suffix(s)) {
        return err_set(e, -EINVAL,
                       "quantities must match the regular expression "
                       "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
    }
    p->suffix = s;
    return 0;
}

/* Whether Kubernetes takes the text for canonical without looking at its value. */
static bool is_taken_as_it_is(const struct parts *p, const struct unit *u, int scale)
{
    size_t n = p->n_digits;
    if (u->type == BINARY_SI) {
        bool small = (int) n + u->exponent * 3 / 10 < 15;
        unsigned last = 0; /* 8 divides 1000: the last three digits say whether it divides all. */
        for (size_t i = n > 3 ? n - 3 : 0; i < n; i++) {
            last = last * 10 + (unsigned) (p->digits[i] - '0');
        }
        return small && n == p->n_whole && last % 8;
    }
    return n <= FAST_DIGITS && scale >= NANO && scale % 3 == 0 && *p->digits != '0' &&
           !(n >= 3 && str_has_suffix(p->digits, "000"));
}

/* Divides by 10 until 'scale' is 'least', rounding away from 0. */
static void round_up(unsigned __int128 *v, int *scale, int least)
{
    bool rest = false;
    for (; *scale < least; (*scale)++) {
        rest = rest || *v % 10;
        *v /= 10;
    }
    *v += rest;
}

static void put_number(unsigned __int128 v, struct strbuf *out)
{
    char text[40];
    size_t at = sizeof text;
    do {
        text[--at] = (char) ('0' + (int) (v % 10));
        v /= 10;
    } while (v);
    strbuf_add(out, text + at, sizeof text - at);
}

/* Appends 'v' * 10^'scale'; -ERANGE: no unit is that large. */
static int put_decimal(unsigned __int128 v, int scale, enum unit_type type, struct strbuf *out)
{
    for (; v % 10 == 0; v /= 10) {
        scale++;
    }
    for (; scale % 3; scale--) {
        v *= 10;
    }
    const char *unit = type == DECIMAL_EXPONENT ? "" : unit_text(DECIMAL_SI, scale);
    if (!unit) {
        return -ERANGE;
    }
    put_number(v, out);
    if (type == DECIMAL_EXPONENT && scale) {
        strbuf_addf(out, "e%d", scale);
    } else {
        strbuf_adds(out, unit);
    }
    return 0;
}

static void put_binary(unsigned __int128 v, struct strbuf *out)
{
    int exponent = 0;
    for (; v % 1024 == 0 && exponent < 60; v /= 1024) {
        exponent += 10;
    }
    put_number(v, out);
    strbuf_adds(out, exponent ? unit_text(BINARY_SI, exponent) : "");
}

/* The digits of 'p' times its binary unit; -ERANGE: more than fits. */
static int whole_number(const struct parts *p, const struct unit *u, unsigned __int128 *ret)
{
    unsigned __int128 v = 0;
    for (size_t i = 0; i < p->n_digits; i++) {
        v = v * 10 + (unsigned) (p->digits[i] - '0');
    }
    if (u->type == BINARY_SI) {
        if (v >> (126 - u->exponent)) {
            return -ERANGE;
        }
        v <<= u->exponent;
    }
    *ret = v;
    return 0;
}

/* Appends the value of 'p' in canonical form; -ERANGE: too large for that. */
static int put_value(const struct parts *p, const struct unit *u, int scale, bool milli,
                     struct strbuf *out)
{
    unsigned __int128 v;
    if (whole_number(p, u, &v) < 0) {
        return -ERANGE;
    }
    if (v == 0) {
        strbuf_addc(out, '0');
        return 0;
    }
    round_up(&v, &scale, milli ? MILLI : NANO);
    if (p->negative) {
        strbuf_addc(out, '-');
    }
    unsigned __int128 whole = v;
    int left = scale;
    for (; left < 0 && whole % 10 == 0; left++) {
        whole /= 10;
    }
    if (u->type == BINARY_SI && left == 0 && whole >= 1024) {
        put_binary(MIN(whole, (unsigned __int128) INT64_MAX), out);
        return 0;
    }
    return put_decimal(v, scale, u->type == BINARY_SI ? DECIMAL_SI : u->type, out);
}

int api_quantity_format(const char *s, bool milli, struct strbuf *out, struct err *e)
{
    struct parts p = {0};
    struct unit u;
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    int r = split(s, &p, e);
    if (r < 0) {
        return r;
    }
    if (find_unit(p.suffix, &u) < 0) {
        return err_set(e, -EINVAL, "unable to parse quantity's suffix");
    }
    int scale = (u.type == BINARY_SI ? 0 : u.exponent) - (int) (p.n_digits - p.n_whole);
    bool taken = streq(s, "0") || (is_taken_as_it_is(&p, &u, scale) && (!milli || scale >= MILLI));
    if (taken || p.long_text || put_value(&p, &u, scale, milli, &text) < 0) {
        strbuf_adds(out, s);
    } else {
        strbuf_add(out, text.data, text.size);
    }
    return 0;
}

int api_quantity_value(const char *s, int exponent, int64_t *ret, struct err *e)
{
    struct parts p = {0};
    struct unit u;
    unsigned __int128 v = 0;
    int r = split(s, &p, e);
    if (r < 0) {
        return r;
    }
    if (find_unit(p.suffix, &u) < 0) {
        return err_set(e, -EINVAL, "unable to parse quantity's suffix");
    }
    int scale = (u.type == BINARY_SI ? 0 : u.exponent) - (int) (p.n_digits - p.n_whole) - exponent;
    bool large = p.long_text || whole_number(&p, &u, &v) < 0;
    if (!large && v) {
        round_up(&v, &scale, 0);
        for (; scale > 0 && v <= INT64_MAX; scale--) {
            v *= 10;
        }
    }
    int64_t amount = large || v > INT64_MAX ? INT64_MAX : (int64_t) v;
    *ret = p.negative ? -amount : amount;
    return 0;
}

/* ---- amounts ---- */

#define NANO_PER_WHOLE 1000000000
#define NANO_PER_MILLI 1000000

/* The amount of billionths, rounded away from 0. */
static __int128 to_nano(const char *s)
{
    const __int128 most = (__int128) INT64_MAX * NANO_PER_WHOLE;
    struct parts p = {0};
    struct unit u;
    unsigned __int128 v = 0;
    if (split(s, &p, NULL) < 0 || find_unit(p.suffix, &u) < 0) {
        return 0;
    }
    for (size_t i = 0; i < p.n_digits; i++) {
        v = v * 10 + (unsigned) (p.digits[i] - '0');
    }
    int scale = (u.type == BINARY_SI ? 0 : u.exponent) - (int) (p.n_digits - p.n_whole);
    for (int left = u.type == BINARY_SI ? u.exponent : 0;
         left > 0 && v < (unsigned __int128) most;) {
        v *= 2;
        left--;
    }
    round_up(&v, &scale, NANO);
    for (; scale > NANO && v && v < (unsigned __int128) most; scale--) {
        v *= 10;
    }
    __int128 n = p.long_text || v > (unsigned __int128) most ? most : (__int128) v;
    return p.negative ? -n : n;
}

int api_quantity_compare(const char *a, const char *b)
{
    __int128 x = to_nano(a), y = to_nano(b);
    return (x > y) - (x < y);
}

bool api_quantity_is_whole(const char *s)
{
    __int128 n = to_nano(s), rest = n % NANO_PER_MILLI;
    n += rest > 0 ? NANO_PER_MILLI - rest : 0; /* Kubernetes looks at thousandths, rounded up. */
    return n % NANO_PER_WHOLE == 0;
}
