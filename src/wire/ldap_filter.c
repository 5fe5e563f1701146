/* SPDX-License-Identifier: Apache-2.0 */
/* Filters of LDAP searches: their text (RFC 4515) as BER (RFC 4511, 4.5.1.7). */
#include "base/mem.h"
#include "wire/ldap.h"
#include "wire/ldap_ber.h"

#define MAX_DEPTH 32
#define MAX_FILTER 65536

enum {
    FILTER_AND = 0xa0,
    FILTER_OR = 0xa1,
    FILTER_NOT = 0xa2,
    FILTER_EQUAL = 0xa3,
    FILTER_SUBSTRINGS = 0xa4,
    FILTER_GREATER = 0xa5,
    FILTER_LESS = 0xa6,
    FILTER_PRESENT = 0x87,
    FILTER_APPROX = 0xa8,
    FILTER_EXTENSIBLE = 0xa9,
    SUBSTRING_INITIAL = 0x80,
    SUBSTRING_ANY = 0x81,
    SUBSTRING_FINAL = 0x82,
    MATCH_RULE = 0x81,
    MATCH_TYPE = 0x82,
    MATCH_VALUE = 0x83,
    MATCH_DN = 0x84,
};

struct parser {
    const char *start, *p;
    struct strbuf *out;
    struct err *e;
    unsigned depth;
};

static int wrong(struct parser *f, const char *what)
{
    return err_set(f->e, -EINVAL, "filter \"%.200s\": %s at character %zu", f->start, what,
                   (size_t) (f->p - f->start) + 1);
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The size of an attribute's description (RFC 4512, 2.5): a name or an OID, with options. */
static size_t attribute_size(const char *s)
{
    size_t n = 0;
    if (!is_letter(*s) && !is_digit(*s)) {
        return 0;
    }
    while (is_letter(s[n]) || is_digit(s[n]) || s[n] == '-' || s[n] == '.' || s[n] == ';') {
        n++;
    }
    return n;
}

bool ldap_attribute_is_valid(const char *name)
{
    return *name && attribute_size(name) == strlen(name);
}

static int hex(char c)
{
    return is_digit(c)            ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Appends the value up to "*", ")" or the end, without its escapes. */
static int read_value(struct parser *f, struct strbuf *value)
{
    while (*f->p && *f->p != ')' && *f->p != '*') {
        if (*f->p == '(') {
            return wrong(f, "\"(\" in a value");
        }
        if (*f->p != '\\') {
            strbuf_addc(value, *f->p++);
            continue;
        }
        int high = hex(f->p[1]), low = high < 0 ? -1 : hex(f->p[2]);
        if (low < 0) {
            return wrong(f, "\"\\\" without two hexadecimal digits");
        }
        strbuf_addc(value, (char) (high << 4 | low));
        f->p += 3;
    }
    return 0;
}

/* The value after "=": equality, presence, or substrings. */
static int read_equal(struct parser *f, const char *name, size_t size)
{
    CLEANUP_STRBUF struct strbuf value = STRBUF_INIT;
    int r = read_value(f, &value);
    if (r < 0) {
        return r;
    }
    if (*f->p != '*') {
        size_t at = ber_begin(f->out, FILTER_EQUAL);
        ber_octets(f->out, BER_OCTETS, name, size);
        ber_octets(f->out, BER_OCTETS, strbuf_cstr(&value), value.size);
        ber_end(f->out, at);
        return 0;
    }
    if (!value.size && f->p[1] == ')') {
        f->p++;
        ber_octets(f->out, FILTER_PRESENT, name, size);
        return 0;
    }
    size_t at = ber_begin(f->out, FILTER_SUBSTRINGS);
    ber_octets(f->out, BER_OCTETS, name, size);
    size_t list = ber_begin(f->out, BER_SEQUENCE);
    if (value.size) {
        ber_octets(f->out, SUBSTRING_INITIAL, value.data, value.size);
    }
    while (*f->p == '*') {
        f->p++;
        strbuf_reset(&value);
        r = read_value(f, &value);
        if (r < 0) {
            return r;
        }
        bool last = *f->p != '*';
        if (!value.size && !last) {
            return wrong(f, "two \"*\" in a row");
        }
        if (value.size) {
            ber_octets(f->out, last ? SUBSTRING_FINAL : SUBSTRING_ANY, value.data, value.size);
        }
    }
    ber_end(f->out, list);
    ber_end(f->out, at);
    return 0;
}

/* "[TYPE][:dn][:RULE]:=VALUE". */
static int read_extensible(struct parser *f, const char *name, size_t size)
{
    bool dn = false;
    const char *rule = NULL;
    size_t rule_size = 0;
    if (str_has_prefix(f->p, ":dn:")) {
        dn = true;
        f->p += 3;
    }
    if (f->p[1] != '=') {
        rule = f->p + 1;
        rule_size = attribute_size(rule);
        f->p = rule + rule_size;
    }
    if (f->p[0] != ':' || f->p[1] != '=' || (rule && !rule_size) || (!rule && !size)) {
        return wrong(f, "no \":=\" with a type or a rule");
    }
    f->p += 2;
    CLEANUP_STRBUF struct strbuf value = STRBUF_INIT;
    int r = read_value(f, &value);
    if (r < 0) {
        return r;
    }
    size_t at = ber_begin(f->out, FILTER_EXTENSIBLE);
    if (rule) {
        ber_octets(f->out, MATCH_RULE, rule, rule_size);
    }
    if (size) {
        ber_octets(f->out, MATCH_TYPE, name, size);
    }
    ber_octets(f->out, MATCH_VALUE, strbuf_cstr(&value), value.size);
    if (dn) {
        ber_bool(f->out, MATCH_DN, true);
    }
    ber_end(f->out, at);
    return 0;
}

static int read_item(struct parser *f)
{
    const char *name = f->p;
    size_t size = attribute_size(name);
    f->p += size;
    if (*f->p == ':') {
        return read_extensible(f, name, size);
    }
    if (!size) {
        return wrong(f, "no attribute");
    }
    if (*f->p == '=') {
        f->p++;
        return read_equal(f, name, size);
    }
    uint8_t tag = *f->p == '>'   ? FILTER_GREATER
                  : *f->p == '<' ? FILTER_LESS
                  : *f->p == '~' ? FILTER_APPROX
                                 : 0;
    if (!tag || f->p[1] != '=') {
        return wrong(f, "no comparison");
    }
    f->p += 2;
    CLEANUP_STRBUF struct strbuf value = STRBUF_INIT;
    int r = read_value(f, &value);
    if (r < 0) {
        return r;
    }
    size_t at = ber_begin(f->out, tag);
    ber_octets(f->out, BER_OCTETS, name, size);
    ber_octets(f->out, BER_OCTETS, strbuf_cstr(&value), value.size);
    ber_end(f->out, at);
    return 0;
}

/* "(...)"; nested filters are as many calls, of which MAX_DEPTH are allowed. */
static int read_filter(struct parser *f)
{
    if (*f->p != '(') {
        return wrong(f, "no \"(\"");
    }
    if (++f->depth > MAX_DEPTH) {
        return wrong(f, "too many filters in each other");
    }
    f->p++;
    int r = 0;
    if (*f->p == '&' || *f->p == '|') {
        size_t at = ber_begin(f->out, *f->p++ == '&' ? FILTER_AND : FILTER_OR);
        while (r == 0 && *f->p == '(') {
            r = read_filter(f);
        }
        ber_end(f->out, at);
    } else if (*f->p == '!') {
        f->p++;
        size_t at = ber_begin(f->out, FILTER_NOT);
        r = read_filter(f);
        ber_end(f->out, at);
    } else {
        r = read_item(f);
    }
    f->depth--;
    if (r == 0 && *f->p != ')') {
        return wrong(f, "no \")\"");
    }
    f->p += r == 0;
    return r;
}

int ldap_filter_write(const char *text, struct strbuf *out, struct err *e)
{
    CLEANUP_STRBUF struct strbuf ber = STRBUF_INIT;
    struct parser f = {.start = text, .p = text, .out = &ber, .e = e};
    if (strlen(text) > MAX_FILTER) {
        return err_set(e, -EINVAL, "the filter is over %d bytes", MAX_FILTER);
    }
    int r = read_filter(&f);
    if (r == 0 && *f.p) {
        r = wrong(&f, "text after the filter");
    }
    return r < 0 ? r : strbuf_add(out, ber.data, ber.size);
}

int ldap_filter_check(const char *text, struct err *e)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    return ldap_filter_write(text, &out, e);
}

void ldap_filter_escape(const void *value, size_t size, struct strbuf *out)
{
    const unsigned char *p = value;
    for (size_t i = 0; i < size; i++) {
        if (p[i] < 0x20 || p[i] >= 0x7f || strchr("()*\\", p[i])) {
            strbuf_addf(out, "\\%02x", p[i]);
        } else {
            strbuf_addc(out, (char) p[i]);
        }
    }
}
