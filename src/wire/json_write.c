/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "wire/json.h"
#include "wire/json_internal.h"

static bool needs_escape(unsigned char c)
{
    return c < 0x20 || c == '"' || c == '\\';
}

static void write_escaped(unsigned char c, struct strbuf *out)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *simple = c ? strchr(from, c) : NULL;
    if (simple) {
        strbuf_add(out, (char[]){'\\', to[simple - from]}, 2);
    } else {
        static const char hex[] = "0123456789abcdef";
        strbuf_add(out, (char[]){'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]}, 6);
    }
}

void json_add_utf8(const char *s, size_t size, struct strbuf *out)
{
    const unsigned char *p = (const unsigned char *) s, *end = p + size, *plain = p;
    while (p < end) {
        int n = json_utf8(p, end);
        if (n > 0) {
            p += n;
            continue;
        }
        strbuf_add(out, plain, (size_t) (p - plain));
        strbuf_adds(out, "\xef\xbf\xbd");
        plain = ++p;
    }
    strbuf_add(out, plain, (size_t) (p - plain));
}

void json_write_string(const char *s, size_t size, struct strbuf *out)
{
    const unsigned char *p = (const unsigned char *) s, *end = p + size, *plain = p;
    strbuf_addc(out, '"');
    for (;;) {
        while (end - p >= 8 && !json_any_special(p)) {
            p += 8;
        }
        if (p == end) {
            break;
        }
        if (*p < 0x80 && !needs_escape(*p)) {
            p++;
            continue;
        }
        int n = json_utf8(p, end);
        if (*p >= 0x80 && n > 0) {
            p += n;
            continue;
        }
        strbuf_add(out, plain, (size_t) (p - plain));
        if (*p >= 0x80) {
            strbuf_adds(out, "\xef\xbf\xbd");
        } else {
            write_escaped(*p, out);
        }
        plain = ++p;
    }
    strbuf_add(out, plain, (size_t) (p - plain));
    strbuf_addc(out, '"');
}

static void write_break(unsigned indent, size_t depth, struct strbuf *out)
{
    if (!indent) {
        return;
    }
    size_t n = indent * depth;
    char *p = strbuf_reserve(out, n + 1);
    if (p) {
        p[0] = '\n';
        memset(p + 1, ' ', n);
        p[n + 1] = '\0';
        out->size += n + 1;
    }
}

/* Writes a value without children; false when it has some. */
static bool write_leaf(const struct json *v, struct strbuf *out)
{
    switch (json_type(v)) {
    case JSON_NULL:
        strbuf_add(out, "null", 4);
        return true;
    case JSON_BOOL:
        strbuf_adds(out, v->value ? "true" : "false");
        return true;
    case JSON_NUMBER:
        strbuf_add(out, ((const struct json_text *) v)->text, v->n);
        return true;
    case JSON_STRING:
        json_write_string(((const struct json_text *) v)->text, v->n, out);
        return true;
    case JSON_ARRAY:
    case JSON_OBJECT:
        break;
    }
    if (!v->n) {
        strbuf_add(out, v->type == JSON_OBJECT ? "{}" : "[]", 2);
    }
    return !v->n;
}

void json_write(const struct json *v, unsigned indent, struct strbuf *out)
{
    if (write_leaf(v, out)) {
        return;
    }
    struct json_walk w;
    json_walk_init(&w);
    json_walk_push(&w, v, NULL);
    while (w.n) {
        struct json_frame *f = &w.frames[w.n - 1];
        bool is_object = f->v->type == JSON_OBJECT;
        if (f->i == f->v->n) {
            w.n--;
            write_break(indent, w.n, out);
            strbuf_addc(out, is_object ? '}' : ']');
            continue;
        }
        strbuf_addc(out, f->i ? ',' : is_object ? '{' : '[');
        write_break(indent, w.n, out);
        const struct json *child = json_at(f->v, f->i);
        if (is_object) {
            const char *key = json_key_at(f->v, f->i);
            json_write_string(key, strlen(key), out);
            strbuf_add(out, ": ", indent ? 2 : 1);
        }
        f->i++;
        if (!write_leaf(child, out)) {
            json_walk_push(&w, child, NULL);
        }
    }
    json_walk_done(&w);
}

char *json_to_text(const struct json *v)
{
    struct strbuf b = STRBUF_INIT;
    json_write(v, 0, &b);
    return strbuf_steal(&b);
}
