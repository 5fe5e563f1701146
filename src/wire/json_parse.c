/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON parser: one pass, no recursion.  Children are collected on one stack for the whole parse
 * and moved into an exactly sized vector when their container ends. */
#include "base/mem.h"
#include "wire/json.h"
#include "wire/json_internal.h"

#include <stdio.h>

struct level {
    bool is_object;
    size_t start; /* Index of the first child on the stack. */
    int on_path;  /* Keys of 'without' that lead here; negative: another path. */
};

struct parser {
    const char *text, *at, *end;
    struct json_member *stack; /* Children of all open containers. */
    const char **key_at;       /* Position of each member's key in the text. */
    size_t n, stack_cap, key_cap;
    struct level level[JSON_MAX_DEPTH];
    size_t depth;
    bool stream;                /* More input may follow the text. */
    const char *const *without; /* Path of the member to leave out; NULL: none. */
    struct err *e;
};

int json_utf8(const unsigned char *p, const unsigned char *end)
{
    static const unsigned char lowest[] = {0x80, 0xa0, 0x80, 0x90, 0x80};
    static const unsigned char highest[] = {0xbf, 0xbf, 0x9f, 0xbf, 0x8f};
    if (*p < 0x80) {
        return 1;
    }
    int n, row = 0; /* The second byte has its own bounds after e0, ed, f0 and f4. */
    if (*p >= 0xc2 && *p <= 0xdf) {
        n = 2;
    } else if (*p >= 0xe0 && *p <= 0xef) {
        n = 3;
        row = *p == 0xe0 ? 1 : *p == 0xed ? 2 : 0;
    } else if (*p >= 0xf0 && *p <= 0xf4) {
        n = 4;
        row = *p == 0xf0 ? 3 : *p == 0xf4 ? 4 : 0;
    } else {
        return 0;
    }
    for (int i = 1; i < n; i++, row = 0) {
        if (p + i == end) {
            return -1;
        }
        if (p[i] < lowest[row] || p[i] > highest[row]) {
            return 0;
        }
    }
    return n;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

size_t json_number_scan(const char *p, const char *end, bool *ret_open)
{
    const char *s = p;
    *ret_open = true;
    s += s < end && *s == '-';
    if (s == end) {
        return 0;
    }
    if (*s == '0') {
        s++;
    } else if (is_digit(*s)) {
        while (s < end && is_digit(*s)) {
            s++;
        }
    } else {
        *ret_open = false;
        return 0;
    }
    for (int part = 0; part < 2 && s < end; part++) {
        if (part == 0 ? *s != '.' : (*s | 0x20) != 'e') {
            continue;
        }
        s++;
        s += part == 1 && s < end && (*s == '+' || *s == '-');
        const char *digits = s;
        while (s < end && is_digit(*s)) {
            s++;
        }
        if (s == digits) {
            *ret_open = s == end;
            return 0;
        }
    }
    *ret_open = s == end;
    return (size_t) (s - p);
}

size_t json_scan_feed(struct json_scan *s, const char *p, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        char c = p[i];
        if (s->in_string) {
            if (s->escaped) {
                s->escaped = false;
            } else if (c == '\\') {
                s->escaped = true;
            } else if (c == '"') {
                s->in_string = false;
            }
        } else if (c == '"') {
            s->in_string = true;
        } else if (c == '{' || c == '[') {
            s->depth++;
        } else if ((c == '}' || c == ']') && s->depth <= 1) {
            *s = (struct json_scan){0};
            return i + 1;
        } else if (c == '}' || c == ']') {
            s->depth--;
        }
    }
    return 0;
}

static int fail_at(struct parser *p, const char *at, const char *what)
{
    size_t line = 1, column = 1;
    for (const char *s = p->text; s < at; s++) {
        if (*s == '\n') {
            line++;
            column = 1;
        } else if ((*s & 0xc0) != 0x80) {
            column++;
        }
    }
    return err_set(p->e, -EINVAL, "line %zu column %zu: %s", line, column, what);
}

static int fail_end(struct parser *p)
{
    return p->stream ? err_set(p->e, -EAGAIN, "the value is not complete")
                     : fail_at(p, p->end, "unexpected end of text");
}

static void skip_space(struct parser *p)
{
    while (p->at < p->end &&
           (*p->at == ' ' || *p->at == '\n' || *p->at == '\r' || *p->at == '\t')) {
        p->at++;
    }
}

/* Reads four hexadecimal digits at 's': the value, -EINVAL, or -EAGAIN when the text ends. */
static int hex4(const char *s, const char *end)
{
    int v = 0;
    for (int i = 0; i < 4; i++, s++) {
        if (s >= end) {
            return -EAGAIN;
        }
        char c = (char) (*s | 0x20);
        if (is_digit(*s)) {
            v = v * 16 + (*s - '0');
        } else if (c >= 'a' && c <= 'f') {
            v = v * 16 + (c - 'a' + 10);
        } else {
            return -EINVAL;
        }
    }
    return v;
}

/* Reads what follows the backslash at 's': stores the character, returns how many bytes it took
 * with the backslash, or a negative errno and why. */
static int escape_read(const char *s, const char *end, uint32_t *ret, const char **ret_why)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (s + 1 == end) {
        return -EAGAIN;
    }
    const char *simple = s[1] ? strchr(from, s[1]) : NULL;
    if (simple) {
        *ret = (unsigned char) to[simple - from];
        return 2;
    }
    if (s[1] != 'u') {
        *ret_why = "unknown escape";
        return -EINVAL;
    }
    int hi = hex4(s + 2, end);
    if (hi < 0) {
        *ret_why = "bad \\u escape";
        return hi;
    }
    if (hi == 0) {
        *ret_why = "NUL in a string";
        return -EINVAL;
    }
    if (hi < 0xd800 || hi > 0xdfff) {
        *ret = (uint32_t) hi;
        return 6;
    }
    *ret_why = "lone surrogate";
    if (hi > 0xdbff) {
        return -EINVAL;
    }
    static const char next[] = "\\u";
    for (int i = 0; i < 2; i++) {
        if (s + 6 + i == end) {
            return -EAGAIN;
        }
        if (s[6 + i] != next[i]) {
            return -EINVAL;
        }
    }
    int lo = hex4(s + 8, end);
    if (lo < 0) {
        return lo;
    }
    if (lo < 0xdc00 || lo > 0xdfff) {
        return -EINVAL;
    }
    *ret = 0x10000u + ((uint32_t) (hi - 0xd800) << 10) + (uint32_t) (lo - 0xdc00);
    return 12;
}

static size_t utf8_size(uint32_t c)
{
    return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
}

static char *utf8_put(char *out, uint32_t c)
{
    if (c < 0x80) {
        *out++ = (char) c;
        return out;
    }
    static const unsigned char mark[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t n = utf8_size(c);
    for (size_t i = n - 1; i; i--, c >>= 6) {
        out[i] = (char) (0x80 | (c & 0x3f));
    }
    out[0] = (char) (mark[n] | c);
    return out + n;
}

/* Bytes that need a check inside a string: the quote, the backslash, controls, all but ASCII. */
static bool is_special(char c)
{
    unsigned char u = (unsigned char) c;
    return u < 0x20 || u >= 0x80 || u == '"' || u == '\\';
}

/* Checks the string whose opening quote is at p->at, up to its closing quote.
 * '*ret_size': its bytes once decoded; '*ret_escaped': it has escapes.  p->at is then the
 * first byte after the closing quote. */
static int string_check(struct parser *p, const char **ret_start, size_t *ret_size,
                        bool *ret_escaped)
{
    const char *s = p->at + 1, *start = s;
    size_t saved = 0; /* Bytes that decoding saves. */
    bool escaped = false;
    for (;;) {
        while (p->end - s >= 8 && !json_any_special(s)) {
            s += 8;
        }
        while (s < p->end && !is_special(*s)) {
            s++;
        }
        if (s == p->end) {
            return fail_end(p);
        }
        if (*s == '"') {
            break;
        }
        if (*s == '\\') {
            uint32_t c;
            const char *why = NULL;
            int n = escape_read(s, p->end, &c, &why);
            if (n < 0) {
                return n == -EAGAIN ? fail_end(p) : fail_at(p, s, why);
            }
            s += n;
            saved += (size_t) n - utf8_size(c);
            escaped = true;
        } else if ((unsigned char) *s < 0x20) {
            return fail_at(p, s, "control character in a string");
        } else {
            int n = json_utf8((const unsigned char *) s, (const unsigned char *) p->end);
            if (n <= 0) {
                return n < 0 ? fail_end(p) : fail_at(p, s, "invalid UTF-8");
            }
            s += n;
        }
    }
    p->at = s + 1;
    *ret_start = start;
    *ret_size = (size_t) (s - start) - saved;
    *ret_escaped = escaped;
    return 0;
}

/* Decodes a checked string of 'size' bytes to 'out'. */
static void string_decode(const char *s, size_t size, bool escaped, char *out)
{
    if (!escaped) {
        memcpy(out, s, size);
        return;
    }
    for (char *end = out + size; out < end;) {
        if (*s != '\\') {
            *out++ = *s++;
            continue;
        }
        uint32_t c = 0;
        const char *why;
        s += escape_read(s, s + 12, &c, &why);
        out = utf8_put(out, c);
    }
}

static int parse_string(struct parser *p, struct json **ret)
{
    const char *s;
    size_t size;
    bool escaped;
    int r = string_check(p, &s, &size, &escaped);
    if (r < 0) {
        return r;
    }
    struct json_text *t = json_text_new(JSON_STRING, size);
    string_decode(s, size, escaped, t->text);
    *ret = &t->head;
    return 0;
}

static int parse_literal(struct parser *p, const char *word, struct json *v, struct json **ret)
{
    size_t n = strlen(word), have = MIN(n, (size_t) (p->end - p->at));
    if (memcmp(p->at, word, have) != 0) {
        return fail_at(p, p->at, "not a JSON value");
    }
    if (have < n) {
        return fail_end(p);
    }
    p->at += n;
    *ret = v;
    return 0;
}

/* Any value but a container. */
static int parse_scalar(struct parser *p, struct json **ret)
{
    switch (*p->at) {
    case '"':
        return parse_string(p, ret);
    case 't':
        return parse_literal(p, "true", json_bool(true), ret);
    case 'f':
        return parse_literal(p, "false", json_bool(false), ret);
    case 'n':
        return parse_literal(p, "null", json_null(), ret);
    default:
        break;
    }
    bool open;
    size_t n = json_number_scan(p->at, p->end, &open);
    if (open && (p->stream || n == 0)) {
        return fail_end(p);
    }
    if (n == 0) {
        return fail_at(p, p->at,
                       *p->at == '-' || is_digit(*p->at) ? "malformed number" : "not a JSON value");
    }
    struct json_text *t = json_text_new(JSON_NUMBER, n);
    memcpy(t->text, p->at, n);
    *ret = &t->head;
    p->at += n;
    return 0;
}

static void push(struct parser *p, const char *at, union json_key key)
{
    p->stack = grow(p->stack, &p->stack_cap, p->n + 1, sizeof *p->stack);
    p->key_at = grow(p->key_at, &p->key_cap, p->n + 1, sizeof *p->key_at);
    p->stack[p->n] = (struct json_member){.key = key, .v = NULL};
    p->key_at[p->n++] = at;
}

/* Reads "key" and the colon, and adds a member on the stack. */
static int parse_key(struct parser *p)
{
    const char *s, *at = p->at;
    size_t size;
    bool escaped;
    if (*at != '"') {
        return fail_at(p, at, "expected a key in quotes");
    }
    int r = string_check(p, &s, &size, &escaped);
    if (r < 0) {
        return r;
    }
    union json_key key = {.word = {0, 0}};
    if (size <= JSON_KEY_INLINE) {
        string_decode(s, size, escaped, key.text);
    } else {
        key.ptr = xmalloc(size + 1);
        string_decode(s, size, escaped, key.ptr);
        key.ptr[size] = '\0';
        key.tag = 1;
    }
    push(p, at, key);
    skip_space(p);
    if (p->at == p->end) {
        return fail_end(p);
    }
    if (*p->at != ':') {
        return fail_at(p, p->at, "expected ':' after the key");
    }
    p->at++;
    skip_space(p);
    return 0;
}

/* How many keys of 'without' lead to the member whose key is on top of the stack. */
static int keys_on_path(const struct parser *p, const struct level *l)
{
    if (!p->without || l->on_path < 0 || !l->is_object) {
        return -1;
    }
    const char *want = p->without[l->on_path], *key = p->key_at[p->n - 1] + 1;
    size_t size = strlen(want);
    return (size_t) (p->end - key) > size && memcmp(key, want, size) == 0 && key[size] == '"'
               ? l->on_path + 1
               : -1;
}

/* Passes the container at p->at, and removes its member from the stack. */
static int leave_out(struct parser *p)
{
    struct json_scan scan = {0};
    size_t size = json_scan_feed(&scan, p->at, (size_t) (p->end - p->at));
    if (!size) {
        return fail_end(p);
    }
    p->at += size;
    json_key_free(&p->stack[--p->n].key);
    return 0;
}

/* Turns the children of the innermost container into its value. */
static int close_container(struct parser *p, struct json **ret)
{
    struct level *l = &p->level[--p->depth];
    size_t n = p->n - l->start, dup = SIZE_MAX;
    struct json_member *from = n ? p->stack + l->start : NULL;
    p->n = l->start;
    struct json *v = l->is_object ? json_object_from(from, n, &dup) : json_array_from(from, n);
    if (dup != SIZE_MAX) {
        char what[80];
        snprintf(what, sizeof what, "duplicate key \"%.40s\"", json_key_at(v, dup));
        json_free(v);
        return fail_at(p, p->key_at[l->start + dup], what);
    }
    *ret = v;
    return 0;
}

static int parse_value(struct parser *p, struct json **ret)
{
    static const union json_key no_key = {.word = {0, 0}};
    bool first = false; /* Directly after an opening bracket. */
    for (;;) {
        /* A value, or the end of an empty container, begins here. */
        struct level *l = p->depth ? &p->level[p->depth - 1] : NULL;
        skip_space(p);
        if (p->at == p->end) {
            return fail_end(p);
        }
        struct json *v = NULL;
        int r = 0, on_path = l ? -1 : 0;
        if (first && *p->at == (l->is_object ? '}' : ']')) {
            p->at++;
            r = close_container(p, &v);
        } else {
            if (l && l->is_object) {
                r = parse_key(p);
                if (r < 0) {
                    return r;
                }
                if (p->at == p->end) {
                    return fail_end(p);
                }
                on_path = keys_on_path(p, l);
            } else if (l) {
                push(p, p->at, no_key);
            }
            if ((*p->at == '{' || *p->at == '[') && on_path > 0 && !p->without[on_path]) {
                r = leave_out(p);
            } else if (*p->at == '{' || *p->at == '[') {
                if (p->depth == JSON_MAX_DEPTH) {
                    return fail_at(p, p->at, "nested too deeply");
                }
                p->level[p->depth++] =
                    (struct level){.is_object = *p->at == '{', .start = p->n, .on_path = on_path};
                p->at++;
                first = true;
                continue;
            } else {
                r = parse_scalar(p, &v);
            }
        }
        /* 'v' is complete (NULL: left out): store it, and close the containers that it
         * completes. */
        for (first = false;; p->at++) {
            if (r < 0) {
                return r;
            }
            if (!p->depth) {
                *ret = v;
                return 0;
            }
            if (v) {
                p->stack[p->n - 1].v = v;
            }
            l = &p->level[p->depth - 1];
            skip_space(p);
            if (p->at == p->end) {
                return fail_end(p);
            }
            if (*p->at == ',') {
                p->at++;
                break;
            }
            if (*p->at != (l->is_object ? '}' : ']')) {
                return fail_at(p, p->at,
                               l->is_object ? "expected ',' or '}'" : "expected ',' or ']'");
            }
            r = close_container(p, &v);
        }
    }
}

static int parse(struct parser *p, const char *text, size_t size, struct json **ret)
{
    p->text = p->at = text ? text : "";
    p->end = p->at + size;
    int r = parse_value(p, ret);
    for (size_t i = 0; i < p->n; i++) {
        json_key_free(&p->stack[i].key);
        json_free(p->stack[i].v);
    }
    free(p->stack);
    free(p->key_at);
    return r;
}

int json_parse_without(const char *text, size_t size, const char *const *without, struct json **ret,
                       struct err *e)
{
    struct parser p = {.without = without, .e = e};
    struct json *v = NULL;
    int r = parse(&p, text, size, &v);
    if (r < 0) {
        return r;
    }
    skip_space(&p);
    if (p.at != p.end) {
        json_free(v);
        return fail_at(&p, p.at, "text after the value");
    }
    *ret = v;
    return 0;
}

int json_parse(const char *text, size_t size, struct json **ret, struct err *e)
{
    return json_parse_without(text, size, NULL, ret, e);
}

int json_parse_first(const char *text, size_t size, struct json **ret, size_t *ret_used,
                     struct err *e)
{
    struct parser p = {.stream = true, .e = e};
    int r = parse(&p, text, size, ret);
    if (r == 0) {
        *ret_used = (size_t) (p.at - p.text);
    }
    return r;
}
