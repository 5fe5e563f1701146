/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/exposition.h"

#include <errno.h>
#include <string.h>

#define MAX_TIME_MS INT64_C(9000000000000000)

struct reader {
    const char *p, *end; /* The end of the line. */
};

static bool is_name(char c, bool first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':' ||
           (!first && c >= '0' && c <= '9');
}

static size_t take_name(struct reader *r)
{
    const char *begin = r->p;
    while (r->p < r->end && is_name(*r->p, r->p == begin)) {
        r->p++;
    }
    return (size_t) (r->p - begin);
}

static void skip_blanks(struct reader *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\t')) {
        r->p++;
    }
}

static bool take(struct reader *r, char c)
{
    if (r->p == r->end || *r->p != c) {
        return false;
    }
    r->p++;
    return true;
}

/* One NAME="VALUE" and the comma behind it.  'ret_value' is what is between the quotes. */
static bool take_label(struct reader *r, const char **ret_name, size_t *ret_size,
                       const char **ret_value, size_t *ret_value_size)
{
    skip_blanks(r);
    const char *name = r->p;
    size_t size = take_name(r);
    skip_blanks(r);
    if (!size || !take(r, '=')) {
        return false;
    }
    skip_blanks(r);
    if (!take(r, '"')) {
        return false;
    }
    const char *value = r->p;
    while (r->p < r->end && *r->p != '"') {
        r->p += *r->p == '\\' && r->end - r->p > 1 ? 2 : 1;
    }
    *ret_name = name;
    *ret_size = size;
    *ret_value = value;
    *ret_value_size = (size_t) (r->p - value);
    if (!take(r, '"')) {
        return false;
    }
    skip_blanks(r);
    return take(r, ',') || r->p == r->end || *r->p == '}';
}

static size_t take_word(struct reader *r)
{
    const char *begin = r->p;
    while (r->p < r->end && *r->p != ' ' && *r->p != '\t') {
        r->p++;
    }
    return (size_t) (r->p - begin);
}

static bool read_time(const char *p, size_t n, int64_t *ret)
{
    int64_t v = 0;
    *ret = -1;
    for (size_t i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9' || v > MAX_TIME_MS / 10) {
            return false;
        }
        v = v * 10 + (p[i] - '0');
    }
    *ret = n ? v : -1;
    return true;
}

static bool read_line(struct reader *r, struct exposition_sample *s)
{
    const char *name, *value;
    size_t size, value_size;
    s->name = r->p;
    s->name_size = take_name(r);
    skip_blanks(r);
    s->labels = r->p;
    if (take(r, '{')) {
        s->labels = r->p;
        while (r->p < r->end && *r->p != '}') {
            if (!take_label(r, &name, &size, &value, &value_size)) {
                return false;
            }
            skip_blanks(r);
        }
        s->labels_size = (size_t) (r->p - s->labels);
        if (!take(r, '}')) {
            return false;
        }
    }
    skip_blanks(r);
    s->value = r->p;
    s->value_size = take_word(r);
    skip_blanks(r);
    const char *time = r->p;
    size_t n = take_word(r);
    skip_blanks(r);
    return s->name_size && s->value_size && r->p == r->end && read_time(time, n, &s->time_ms);
}

int exposition_next(const char **at, const char *end, struct exposition_sample *ret, struct err *e)
{
    while (*at < end) {
        const char *newline = memchr(*at, '\n', (size_t) (end - *at));
        struct reader r = {*at, newline ? newline : end};
        struct exposition_sample s = {0};
        const char *line = *at;
        *at = newline ? newline + 1 : end;
        skip_blanks(&r);
        if (r.p == r.end || *r.p == '#') {
            continue;
        }
        if (!read_line(&r, &s)) {
            return err_set(e, -EINVAL, "\"%.*s\" is no sample of a metric",
                           (int) (r.end - line > 80 ? 80 : r.end - line), line);
        }
        *ret = s;
        return 1;
    }
    return 0;
}

bool exposition_is(const struct exposition_sample *s, const char *name)
{
    return strlen(name) == s->name_size && memcmp(name, s->name, s->name_size) == 0;
}

int exposition_label(const struct exposition_sample *s, const char *label, struct strbuf *out)
{
    struct reader r = {s->labels, s->labels + s->labels_size};
    const char *name, *value;
    size_t size, n;
    while (r.p < r.end && take_label(&r, &name, &size, &value, &n)) {
        if (size != strlen(label) || memcmp(name, label, size) != 0) {
            continue;
        }
        for (size_t i = 0; i < n; i++) {
            char c = value[i];
            if (c == '\\' && i + 1 < n) {
                c = value[++i] == 'n' ? '\n' : value[i];
            }
            strbuf_addc(out, c);
        }
        return 0;
    }
    return -ENOENT;
}
