/* SPDX-License-Identifier: Apache-2.0 */
#include "base/timeutil.h"

#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define FIRST_VERSION_MS INT64_C(1767225600000) /* 2026-01-01. */

uint64_t time_mono_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t) ts.tv_sec * 1000000000u + (uint64_t) ts.tv_nsec;
}

uint64_t time_mono_ms(void)
{
    return time_mono_ns() / 1000000;
}

int64_t time_wall_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t) ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Milliseconds after the full second, also before 1970. */
bool time_is_unset(int64_t wall_ms)
{
    return wall_ms < FIRST_VERSION_MS;
}

static unsigned fraction_ms(int64_t wall_ms)
{
    return (unsigned) ((wall_ms % 1000 + 1000) % 1000);
}

static size_t format_seconds(int64_t wall_ms, char out[TIME_TEXT_SIZE])
{
    time_t t = (time_t) ((wall_ms - fraction_ms(wall_ms)) / 1000);
    struct tm tm;
    gmtime_r(&t, &tm);
    return strftime(out, TIME_TEXT_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
}

void time_format_ms(int64_t wall_ms, char out[TIME_TEXT_SIZE])
{
    size_t n = format_seconds(wall_ms, out);
    snprintf(out + n, TIME_TEXT_SIZE - n, ".%03uZ", fraction_ms(wall_ms));
}

void time_format_s(int64_t wall_ms, char out[TIME_TEXT_SIZE])
{
    size_t n = format_seconds(wall_ms, out);
    snprintf(out + n, TIME_TEXT_SIZE - n, "Z");
}

void time_format_http(int64_t wall_ms, char out[TIME_TEXT_SIZE])
{
    static const char days[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    time_t t = (time_t) ((wall_ms - fraction_ms(wall_ms)) / 1000);
    struct tm tm;
    gmtime_r(&t, &tm);
    snprintf(out, TIME_TEXT_SIZE, "%.3s, %02u %.3s %04u %02u:%02u:%02u GMT", days + 3 * tm.tm_wday,
             (unsigned) tm.tm_mday % 100, months + 3 * tm.tm_mon,
             (unsigned) (tm.tm_year + 1900) % 10000, (unsigned) tm.tm_hour % 100,
             (unsigned) tm.tm_min % 100, (unsigned) tm.tm_sec % 100);
}

void time_format_micro(int64_t wall_ms, char out[TIME_TEXT_SIZE])
{
    size_t n = format_seconds(wall_ms, out);
    snprintf(out + n, TIME_TEXT_SIZE - n, ".%03u000Z", fraction_ms(wall_ms));
}

/* Reads exactly 'n' digits at '*s'; -1 when there are fewer. */
static int digits(const char **s, int n)
{
    int v = 0;
    for (int i = 0; i < n; i++) {
        char c = (*s)[i];
        if (c < '0' || c > '9') {
            return -1;
        }
        v = v * 10 + (c - '0');
    }
    *s += n;
    return v;
}

static bool skip(const char **s, char c)
{
    if (**s != c) {
        return false;
    }
    (*s)++;
    return true;
}

int time_parse(const char *s, int64_t *ret_wall_ms)
{
    struct tm tm = {0};
    if ((tm.tm_year = digits(&s, 4)) < 0 || !skip(&s, '-') || (tm.tm_mon = digits(&s, 2)) < 1 ||
        tm.tm_mon > 12 || !skip(&s, '-') || (tm.tm_mday = digits(&s, 2)) < 1 || tm.tm_mday > 31 ||
        !(skip(&s, 'T') || skip(&s, 't')) || (tm.tm_hour = digits(&s, 2)) < 0 || tm.tm_hour > 23 ||
        !skip(&s, ':') || (tm.tm_min = digits(&s, 2)) < 0 || tm.tm_min > 59 || !skip(&s, ':') ||
        (tm.tm_sec = digits(&s, 2)) < 0 || tm.tm_sec > 60) {
        return -EINVAL;
    }
    int ms = 0;
    if (skip(&s, '.')) {
        int scale = 100;
        if (*s < '0' || *s > '9') {
            return -EINVAL;
        }
        for (; *s >= '0' && *s <= '9'; s++) {
            ms += (*s - '0') * scale;
            scale /= 10;
        }
    }
    int offset = 0;
    if (!skip(&s, 'Z') && !skip(&s, 'z')) {
        int sign = *s == '-' ? -1 : 1;
        int h, m;
        if (!(skip(&s, '+') || skip(&s, '-')) || (h = digits(&s, 2)) < 0 || h > 23 ||
            !skip(&s, ':') || (m = digits(&s, 2)) < 0 || m > 59) {
            return -EINVAL;
        }
        offset = sign * (h * 60 + m) * 60;
    }
    if (*s) {
        return -EINVAL;
    }
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int y = tm.tm_year;
    bool leap_day = tm.tm_mon == 2 && tm.tm_mday == 29 && y % 4 == 0 && (y % 100 || y % 400 == 0);
    if (tm.tm_mday > days[tm.tm_mon - 1] && !leap_day) {
        return -EINVAL;
    }
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    *ret_wall_ms = ((int64_t) timegm(&tm) - offset) * 1000 + ms;
    return 0;
}

/* A unit of durations; "m" comes after "ms", of which it is the beginning. */
struct unit {
    const char *name;
    int64_t ns;
};
static const struct unit units[] = {
    {"ns", 1},
    {"us", 1000},
    {"\xc2\xb5s", 1000}, /* The micro sign, and the Greek letter. */
    {"\xce\xbcs", 1000},
    {"ms", INT64_C(1000000)},
    {"s", INT64_C(1000000000)},
    {"m", INT64_C(60000000000)},
    {"h", INT64_C(3600000000000)},
};

static const struct unit *find_unit(const char *s)
{
    for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
        if (str_has_prefix(s, units[i].name)) {
            return &units[i];
        }
    }
    return NULL;
}

/* Reads one number with its unit to nanoseconds.  False: it is none, or too large. */
static bool parse_part(const char **p, uint64_t *ret_ns)
{
    size_t digits = strspn(*p, "0123456789"), decimals = 0;
    const char *s = *p + digits;
    uint64_t whole = 0, fraction = 0, scale = 1;
    bool large = false;
    for (size_t i = 0; i < digits; i++) {
        large = large || __builtin_mul_overflow(whole, (uint64_t) 10, &whole) ||
                __builtin_add_overflow(whole, (uint64_t) ((*p)[i] - '0'), &whole);
    }
    if (*s == '.') {
        decimals = strspn(++s, "0123456789");
        /* Further ones are no part of a nanosecond. */
        for (size_t i = 0; i < MIN(decimals, (size_t) 18); i++) {
            fraction = fraction * 10 + (uint64_t) (s[i] - '0');
            scale *= 10;
        }
        s += decimals;
    }
    const struct unit *u = digits + decimals ? find_unit(s) : NULL;
    if (!u || large || __builtin_mul_overflow(whole, (uint64_t) u->ns, &whole)) {
        return false;
    }
    *p = s + strlen(u->name);
    return !__builtin_add_overflow(
        whole, (uint64_t) ((double) fraction * ((double) u->ns / (double) scale)), ret_ns);
}

int time_parse_duration(const char *text, int64_t *ret_ns)
{
    bool negative = *text == '-';
    const char *p = text + (negative || *text == '+');
    uint64_t sum = 0, part = 0;
    if (streq(p, "0")) {
        *ret_ns = 0;
        return 0;
    }
    do {
        if (!parse_part(&p, &part) || __builtin_add_overflow(sum, part, &sum) ||
            sum > (uint64_t) INT64_MAX + negative) {
            return -EINVAL;
        }
    } while (*p);
    *ret_ns = negative ? (int64_t) (0 - sum) : (int64_t) sum;
    return 0;
}

/* Appends 'n' units of 'unit_ns', with the fraction that is not 0. */
static void add_fraction(char *out, uint64_t ns, uint64_t unit_ns, const char *name)
{
    size_t size = strlen(out);
    size += (size_t) snprintf(out + size, TIME_TEXT_SIZE - size, "%" PRIu64, ns / unit_ns);
    uint64_t rest = ns % unit_ns;
    if (rest) {
        out[size++] = '.';
    }
    for (; rest; rest %= unit_ns) {
        unit_ns /= 10;
        out[size++] = (char) ('0' + rest / unit_ns);
    }
    snprintf(out + size, TIME_TEXT_SIZE - size, "%s", name);
}

void time_format_duration(int64_t ns, char out[TIME_TEXT_SIZE])
{
    uint64_t n = ns < 0 ? 0 - (uint64_t) ns : (uint64_t) ns, s = n / 1000000000;
    snprintf(out, TIME_TEXT_SIZE, "%s", ns < 0 ? "-" : "");
    if (n == 0 || n >= 1000000000) {
        size_t size = strlen(out);
        if (s >= 3600) {
            snprintf(out + size, TIME_TEXT_SIZE - size, "%" PRIu64 "h%" PRIu64 "m", s / 3600,
                     s / 60 % 60);
        } else if (s >= 60) {
            snprintf(out + size, TIME_TEXT_SIZE - size, "%" PRIu64 "m", s / 60);
        }
        add_fraction(out, n % UINT64_C(60000000000), 1000000000, "s");
    } else if (n >= 1000000) {
        add_fraction(out, n, 1000000, "ms");
    } else if (n >= 1000) {
        add_fraction(out, n, 1000, "\xc2\xb5s");
    } else {
        add_fraction(out, n, 1, "ns");
    }
}

void time_format_age(int64_t age_ms, char out[TIME_TEXT_SIZE])
{
    int64_t s = age_ms < 0 ? 0 : age_ms / 1000;
    int64_t m = s / 60, h = m / 60, d = h / 24;
    if (s < 120) {
        snprintf(out, TIME_TEXT_SIZE, "%" PRId64 "s", s);
    } else if (m < 10) {
        snprintf(out, TIME_TEXT_SIZE, s % 60 ? "%" PRId64 "m%" PRId64 "s" : "%" PRId64 "m", m,
                 s % 60);
    } else if (h < 3) {
        snprintf(out, TIME_TEXT_SIZE, "%" PRId64 "m", m);
    } else if (h < 8) {
        snprintf(out, TIME_TEXT_SIZE, m % 60 ? "%" PRId64 "h%" PRId64 "m" : "%" PRId64 "h", h,
                 m % 60);
    } else if (h < 48) {
        snprintf(out, TIME_TEXT_SIZE, "%" PRId64 "h", h);
    } else if (d < 8) {
        snprintf(out, TIME_TEXT_SIZE, h % 24 ? "%" PRId64 "d%" PRId64 "h" : "%" PRId64 "d", d,
                 h % 24);
    } else if (d < 2 * 365) {
        snprintf(out, TIME_TEXT_SIZE, "%" PRId64 "d", d);
    } else {
        int64_t y = d / 365;
        snprintf(out, TIME_TEXT_SIZE,
                 d % 365 && y < 8 ? "%" PRId64 "y%" PRId64 "d" : "%" PRId64 "y", y, d % 365);
    }
}

uint64_t time_backoff_ms(unsigned attempt, uint64_t min_ms, uint64_t max_ms, uint32_t seed)
{
    uint64_t d = min_ms;
    while (attempt-- && d < max_ms) {
        d *= 2;
    }
    d = MIN(d, max_ms);
    uint32_t x = seed * 2654435761u;
    return d - d / 4 + (d / 4 ? (x >> 8) % (d / 4 + 1) : 0);
}
