/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/haproxy.h"

#include "base/mem.h"

#include <errno.h>

#define FLAG_MAINTENANCE 1u /* srv_admin_state: forced maintenance. */

int haproxy_answer(const char *p, size_t size, size_t *ret_skip, size_t *ret_size, size_t *ret_used)
{
    size_t skip = 0;
    while (size - skip >= 2 && p[skip] == '+' && p[skip + 1] == ' ') {
        skip += 2;
    }
    for (size_t i = skip; i + 2 <= size; i++) {
        if (p[i] == '>' && p[i + 1] == ' ' && (i == skip || p[i - 1] == '\n')) {
            *ret_skip = skip;
            *ret_size = i - skip;
            *ret_used = i + 2;
            return 0;
        }
    }
    return -EAGAIN;
}

bool haproxy_word_is(const struct haproxy_word *w, const char *s)
{
    return strlen(s) == w->size && memcmp(w->p, s, w->size) == 0;
}

char *haproxy_word_text(const struct haproxy_word *w)
{
    return xstrndup(w->p, w->size);
}

/* The next line that is not empty and no comment; false: the end. */
static bool next_line(const char **at, const char *end, struct haproxy_word *ret)
{
    while (*at < end) {
        const char *nl = memchr(*at, '\n', (size_t) (end - *at));
        const char *stop = nl ? nl : end;
        *ret = (struct haproxy_word){*at, (size_t) (stop - *at)};
        *at = nl ? nl + 1 : end;
        if (ret->size > 0 && *ret->p != '#') {
            return true;
        }
    }
    return false;
}

/* Takes the first word, up to 'separator', off the line; false: the line is empty. */
static bool take_word(struct haproxy_word *line, char separator, struct haproxy_word *ret)
{
    if (line->size == 0) {
        return false;
    }
    const char *stop = memchr(line->p, separator, line->size);
    size_t n = stop ? (size_t) (stop - line->p) : line->size;
    *ret = (struct haproxy_word){line->p, n};
    n += stop ? 1 : 0;
    line->p += n;
    line->size -= n;
    return true;
}

bool haproxy_next_map_entry(const char **at, const char *end, struct haproxy_map_entry *ret)
{
    struct haproxy_word line, reference;
    while (next_line(at, end, &line)) {
        if (take_word(&line, ' ', &reference) && take_word(&line, ' ', &ret->key) &&
            line.size > 0) {
            ret->value = line;
            return true;
        }
    }
    return false;
}

static unsigned word_number(const struct haproxy_word *w)
{
    unsigned v = 0;
    for (size_t i = 0; i < w->size && w->p[i] >= '0' && w->p[i] <= '9' && v < 1000000; i++) {
        v = v * 10 + (unsigned) (w->p[i] - '0');
    }
    return v;
}

bool haproxy_next_server(const char **at, const char *end, struct haproxy_server *ret)
{
    struct haproxy_word line, column[9];
    while (next_line(at, end, &line)) {
        size_t n = 0;
        while (n < ARRAY_SIZE(column) && take_word(&line, ' ', &column[n])) {
            n++;
        }
        if (n == ARRAY_SIZE(column)) {
            *ret = (struct haproxy_server){
                .backend = column[1],
                .name = column[3],
                .maintenance = word_number(&column[6]) & FLAG_MAINTENANCE,
                .weight = word_number(&column[8]),
            };
            return true;
        }
    }
    return false;
}

bool haproxy_next_certificate(const char **at, const char *end, struct haproxy_word *ret)
{
    struct haproxy_word line;
    while (next_line(at, end, &line)) {
        if (take_word(&line, ' ', ret)) {
            const char *colon = memrchr(ret->p, ':', ret->size);
            ret->size = colon ? (size_t) (colon - ret->p) : ret->size;
            return true;
        }
    }
    return false;
}

bool haproxy_next_backend(const char **at, const char *end, struct haproxy_word *ret)
{
    return next_line(at, end, ret);
}

bool haproxy_next_stat(const char **at, const char *end, struct haproxy_stat *ret)
{
    struct haproxy_word line;
    if (!next_line(at, end, &line)) {
        return false;
    }
    ret->n = 0;
    while (ret->n < HAPROXY_STAT_COLUMNS && take_word(&line, ',', &ret->column[ret->n])) {
        ret->n++;
    }
    return true;
}

int haproxy_add_word(struct strbuf *out, const char *word)
{
    for (const char *p = word; *p; p++) {
        if ((unsigned char) *p < 0x20 || *p == 0x7f) {
            return -EINVAL;
        }
    }
    for (const char *p = word; *p; p++) {
        if (*p == ' ' || *p == ';' || *p == '\\') {
            strbuf_addc(out, '\\');
        }
        strbuf_addc(out, *p);
    }
    return 0;
}
