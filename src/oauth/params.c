/* SPDX-License-Identifier: Apache-2.0 */
#include "oauth/params.h"

#include "base/mem.h"
#include "wire/http1.h"

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Whether the bytes are UTF-8 (RFC 3629): without overlong forms and surrogates. */
static bool is_utf8(const char *s, size_t size)
{
    const unsigned char *p = (const unsigned char *) s, *end = p + size;
    while (p < end) {
        unsigned char c = *p++;
        size_t more = c < 0x80                 ? 0
                      : c >= 0xc2 && c <= 0xdf ? 1
                      : c >= 0xe0 && c <= 0xef ? 2
                      : c >= 0xf0 && c <= 0xf4 ? 3
                                               : SIZE_MAX;
        if (more == SIZE_MAX || more > (size_t) (end - p)) {
            return false;
        }
        unsigned char low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
        unsigned char high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
        for (; more; more--, p++) {
            if (*p < low || *p > high) {
                return false;
            }
            low = 0x80;
            high = 0xbf;
        }
    }
    return true;
}

/* Decodes a name or value into a text of its own.  NULL: it is malformed. */
static char *decode(const char *p, size_t size, size_t *ret_size)
{
    char *out = xmalloc(size + 1);
    size_t n = 0;
    for (size_t i = 0; i < size; i++) {
        if (p[i] != '%') {
            out[n++] = p[i] == '+' ? ' ' : p[i];
            continue;
        }
        int high = i + 2 < size ? hex_digit(p[i + 1]) : -1;
        int low = i + 2 < size ? hex_digit(p[i + 2]) : -1;
        if (high < 0 || low < 0) {
            explicit_bzero(out, n);
            free(out);
            return NULL;
        }
        out[n++] = (char) (high << 4 | low);
        i += 2;
    }
    out[n] = '\0';
    if (memchr(out, '\0', n) || !is_utf8(out, n)) {
        explicit_bzero(out, n);
        free(out);
        return NULL;
    }
    *ret_size = n;
    return out;
}

static int add(struct oauth_params *p, const char *pair, size_t size, struct err *e)
{
    const char *equals = memchr(pair, '=', size);
    size_t name = equals ? (size_t) (equals - pair) : size, n = 0;
    if (p->n == OAUTH_PARAMS_MAX) {
        return err_set(e, -EINVAL, "more than %d parameters", OAUTH_PARAMS_MAX);
    }
    p->names[p->n] = decode(pair, name, &n);
    if (!p->names[p->n]) {
        return err_set(e, -EINVAL, "a parameter's name is malformed");
    }
    p->values[p->n] = equals ? decode(equals + 1, size - name - 1, &p->sizes[p->n]) : xstrdup("");
    if (!p->values[p->n]) {
        int r = err_set(e, -EINVAL, "the parameter \"%.40s\" is malformed", p->names[p->n]);
        free(p->names[p->n]);
        return r;
    }
    p->n++;
    return 0;
}

int oauth_params_parse(const char *text, size_t size, struct oauth_params *ret, struct err *e)
{
    ret->n = 0;
    for (size_t i = 0; i < size;) {
        const char *end = memchr(text + i, '&', size - i);
        size_t n = end ? (size_t) (end - text) - i : size - i;
        int r = n ? add(ret, text + i, n, e) : 0;
        if (r < 0) {
            oauth_params_done(ret);
            return r;
        }
        i += n + 1;
    }
    return 0;
}

void oauth_params_done(struct oauth_params *p)
{
    for (size_t i = 0; i < p->n; i++) {
        explicit_bzero(p->values[i], strlen(p->values[i]));
        free(p->names[i]);
        free(p->values[i]);
    }
    p->n = 0;
}

const char *oauth_param(const struct oauth_params *p, const char *name)
{
    for (size_t i = 0; i < p->n; i++) {
        if (streq(p->names[i], name)) {
            return p->values[i];
        }
    }
    return NULL;
}

const char *oauth_param_text(const struct oauth_params *p, const char *name)
{
    const char *v = oauth_param(p, name);
    return v ? v : "";
}

int oauth_params_check_single(const struct oauth_params *p, const char *but, struct err *e)
{
    for (size_t i = 0; i < p->n; i++) {
        for (size_t k = i + 1; k < p->n; k++) {
            if (streq(p->names[i], p->names[k]) && !streq_null(p->names[i], but)) {
                return err_set(e, -EINVAL, "the parameter \"%.40s\" is there twice", p->names[i]);
            }
        }
    }
    return 0;
}

void oauth_param_add(struct strbuf *url, char separator, const char *name, const char *value)
{
    if (separator) {
        strbuf_addc(url, separator);
    }
    http1_escape(name, url);
    strbuf_addc(url, '=');
    http1_escape(value, url);
}

char oauth_query_separator(const char *url)
{
    return strchr(url, '?') ? '&' : '?';
}
