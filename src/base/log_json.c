/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log_json.h"

#include "base/random.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define FORMAT_SIZE 2048
#define BODY_SIZE 2048
#define NONCE_BYTES 8
#define SEPARATOR_SIZE (1 + 2 * NONCE_BYTES)
#define RESERVE 64 /* Room for what closes the object. */

static pthread_once_t once = PTHREAD_ONCE_INIT;
/* It stands between fields in the text that the format makes; no peer knows it. */
static char separator[SEPARATOR_SIZE + 1];

static void make_separator(void)
{
    separator[0] = '\x1e';
    random_hex(separator + 1, NONCE_BYTES);
}

/* ---- the format ---- */

/* The format with the separator before each field, and without the quotes around values.  False: it
 * does not fit. */
static bool split_format(const char *fields, char out[FORMAT_SIZE])
{
    size_t n = 0;
    bool quoted = false, begin = true;
    for (const char *p = fields; *p; p++) {
        if (n + SEPARATOR_SIZE + 2 > FORMAT_SIZE) {
            return false;
        }
        if (*p == ' ' && !quoted) {
            begin = true;
            continue;
        }
        if (begin) {
            memcpy(out + n, separator, SEPARATOR_SIZE);
            n += SEPARATOR_SIZE;
            begin = false;
        }
        if (*p == '"') {
            quoted = !quoted;
        } else {
            out[n++] = *p;
        }
    }
    out[n] = '\0';
    return true;
}

/* ---- the object ---- */

struct writer {
    char *p;
    size_t n;
};

static void put(struct writer *w, const char *s)
{
    size_t size = strlen(s);
    if (w->n + size < LOG_JSON_SIZE) {
        memcpy(w->p + w->n, s, size);
        w->n += size;
    }
}

/* The number of bytes of the UTF-8 character at 'p' (RFC 3629); 0: there is none. */
static size_t utf8_size(const unsigned char *p, size_t left)
{
    size_t n = *p < 0x80                  ? 1
               : *p >= 0xc2 && *p <= 0xdf ? 2
               : *p >= 0xe0 && *p <= 0xef ? 3
               : *p >= 0xf0 && *p <= 0xf4 ? 4
                                          : 0;
    if (!n || n > left || (*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) ||
        (*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] > 0x8f)) {
        return 0;
    }
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return n;
}

/* A string with its quotes, cut when it does not fit. */
static void put_string(struct writer *w, const char *s, size_t size)
{
    const unsigned char *p = (const unsigned char *) s;
    put(w, "\"");
    while (size && w->n < LOG_JSON_SIZE - RESERVE) {
        size_t n = utf8_size(p, size);
        char text[8] = "\xef\xbf\xbd"; /* U+FFFD, for a byte that is no character. */
        if (n == 1 && (*p == '"' || *p == '\\')) {
            snprintf(text, sizeof text, "\\%c", *p);
        } else if (n == 1 && (*p < 0x20 || *p == 0x7f)) {
            snprintf(text, sizeof text, "\\u%04x", *p);
        } else if (n) {
            memcpy(text, p, n);
            text[n] = '\0';
        }
        put(w, text);
        p += n ? n : 1;
        size -= n ? n : 1;
    }
    put(w, "\"");
}

static void put_member(struct writer *w, const char *key, const char *value)
{
    put(w, "\"");
    put(w, key);
    put(w, "\":");
    put_string(w, value, strlen(value));
}

/* "KEY=VALUE" as a member; a text without a key is the member "detail". */
static void put_field(struct writer *w, const char *p, size_t size, bool first)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_.-/";
    size_t key = strspn(p, letters);
    bool named = key > 0 && key < size && p[key] == '=';
    if (w->n + key >= LOG_JSON_SIZE - 2 * RESERVE) {
        return; /* No room for another member. */
    }
    put(w, first ? "" : ",");
    put_string(w, named ? p : "detail", named ? key : strlen("detail"));
    put(w, ":");
    put_string(w, named ? p + key + 1 : p, named ? size - key - 1 : size);
}

static void put_fields(struct writer *w, const char *body)
{
    bool first = true;
    put(w, ",\"fields\":{");
    for (const char *p = strstr(body, separator); p;) {
        p += SEPARATOR_SIZE;
        const char *next = strstr(p, separator);
        size_t size = next ? (size_t) (next - p) : strlen(p);
        if (size) {
            put_field(w, p, size, first);
            first = false;
        }
        p = next;
    }
    put(w, "}");
}

size_t log_json_write(const struct log_json *l, char out[LOG_JSON_SIZE], const char *fields,
                      va_list ap)
{
    char format[FORMAT_SIZE], body[BODY_SIZE], number[64];
    struct writer w = {.p = out};
    pthread_once(&once, make_separator);
    bool split = split_format(fields, format);
    vsnprintf(body, sizeof body, split ? format : fields, ap);
    put(&w, "{");
    put_member(&w, "time", l->stamp);
    put(&w, ",");
    put_member(&w, "level", l->level);
    snprintf(number, sizeof number, ",\"priority\":%u,", l->priority);
    put(&w, number);
    put_member(&w, "module", l->module);
    put(&w, ",");
    put_member(&w, "message", l->text);
    if (split) {
        put_fields(&w, body);
    } else {
        put(&w, ",\"fields\":{");
        put_member(&w, "detail", body);
        put(&w, "}");
    }
    if (l->suppressed) {
        snprintf(number, sizeof number, ",\"suppressed\":%u", l->suppressed);
        put(&w, number);
    }
    put(&w, "}\n");
    return w.n;
}
