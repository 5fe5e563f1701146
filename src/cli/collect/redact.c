/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/collect/redact.h"

#include "base/mem.h"

#include <ctype.h>
#include <strings.h>

#define BEGIN "-----BEGIN "
#define PRIVATE "PRIVATE KEY-----"
#define END "-----END "
#define KEY_MAX 128

static const char lower[] = "abcdefghijklmnopqrstuvwxyz0123456789";
static const char url64[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
static const char word[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";

/* ---- names of credentials ---- */

bool redact_is_secret_key(const char *key, size_t size)
{
    static const char *const parts[] = {"password",   "passwd",        "passphrase", "secret",
                                        "token",      "apikey",        "api-key",    "api_key",
                                        "credential", "authorization", "private",    "cookie",
                                        "sessionid",  "client-key",    "client_key", "clientkey",
                                        "accesskey",  "access_key",    "access-key", "signature"};
    /* The keys that end with these say where a credential is, what it is called, or how long it is
     * valid. */
    static const char *const ends[] = {"name", "ref",  "seconds", "file",  "path",   "files",
                                       "days", "type", "policy",  "count", "_total", "namespace"};
    char text[KEY_MAX] = "";
    size_t n = MIN(size, sizeof text - 1);
    for (size_t i = 0; i < n; i++) {
        text[i] = (char) tolower((unsigned char) key[i]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
        if (str_has_suffix(text, ends[i])) {
            return false;
        }
    }
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        if (strstr(text, parts[i])) {
            return true;
        }
    }
    return false;
}

/* ---- texts ---- */

/* A position in the text; 'left' bytes follow. */
struct at {
    const char *p;
    size_t left;
};

static size_t span(struct at a, const char *set)
{
    size_t n = 0;
    while (n < a.left && a.p[n] && strchr(set, a.p[n])) {
        n++;
    }
    return n;
}

static bool begins(struct at a, const char *s)
{
    size_t n = strlen(s);
    return a.left >= n && memcmp(a.p, s, n) == 0;
}

static struct at skip(struct at a, size_t n)
{
    return (struct at){a.p + n, a.left - n};
}

/* The size of a private key in PEM form, up to the end of its last line; one without an end reaches
 * to the end of the text. */
static size_t private_key(struct at a)
{
    if (!begins(a, BEGIN)) {
        return 0;
    }
    const char *line = memchr(a.p, '\n', a.left);
    size_t head = line ? (size_t) (line - a.p) : a.left;
    if (!memmem(a.p, head, PRIVATE, strlen(PRIVATE))) {
        return 0;
    }
    const char *end = memmem(a.p, a.left, END, strlen(END));
    if (!end) {
        return a.left;
    }
    struct at rest = {end + strlen(END), a.left - (size_t) (end - a.p) - strlen(END)};
    const char *dashes = memmem(rest.p, rest.left, "-----", 5);
    return dashes ? (size_t) (dashes + 5 - a.p) : a.left;
}

/* "abcdef.0123456789abcdef" */
static size_t bootstrap_token(struct at a)
{
    return span(a, lower) == 6 && a.left >= 23 && a.p[6] == '.' && span(skip(a, 7), lower) == 16
               ? 23
               : 0;
}

/* "eyJ....eyJ....signature": base64url of {"..., in two or three parts. */
static size_t web_token(struct at a)
{
    size_t n = begins(a, "eyJ") ? span(a, url64) : 0, parts = 1;
    while (n >= 8 && n < a.left && a.p[n] == '.' && parts < 3) {
        size_t more = span(skip(a, n + 1), url64);
        if (!more) {
            break;
        }
        n += 1 + more;
        parts++;
    }
    return parts >= 2 ? n : 0;
}

/* "sha256~..." of OpenShift's OAuth. */
static size_t oauth_token(struct at a)
{
    size_t prefix = strlen("sha256~");
    return begins(a, "sha256~") ? prefix + span(skip(a, prefix), url64) : 0;
}

/* The bytes up to the end of a value that begins here. */
static size_t value_size(struct at a)
{
    size_t n = 0;
    if (begins(a, "\\\"")) { /* A string within a string. */
        const char *end = memmem(a.p + 2, a.left - 2, "\\\"", 2);
        return end ? (size_t) (end + 2 - a.p) : a.left;
    }
    if (a.left && (*a.p == '"' || *a.p == '\'')) {
        char quote = *a.p;
        for (n = 1; n < a.left && a.p[n] != quote && a.p[n] != '\n'; n++) {
            n += a.p[n] == '\\' && n + 1 < a.left;
        }
        return MIN(n + 1, a.left);
    }
    while (n < a.left && !strchr(" \t\r\n,;&\"'}])<>", a.p[n])) {
        n++;
    }
    return n;
}

/* "Bearer xyz", "Basic xyz": '*ret_keep' is the size of the word with its blank. */
static size_t http_credential(struct at a, size_t *ret_keep)
{
    static const char *const words[] = {"Bearer ", "Basic "};
    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        size_t n = strlen(words[i]);
        if (a.left > n && strncasecmp(a.p, words[i], n) == 0) {
            size_t size = value_size(skip(a, n));
            *ret_keep = n;
            return size >= 6 ? n + size : 0;
        }
    }
    return 0;
}

/* "password: xyz", "token=xyz", "\"secret\": \"xyz\"": '*ret_keep' is the size up to the value. */
static size_t named_value(struct at a, size_t *ret_keep)
{
    static const char *const plain[] = {"true", "false", "null"};
    size_t n = span(a, word), key = n;
    if (!n || !redact_is_secret_key(a.p, n)) {
        return 0;
    }
    n += span(skip(a, n), "\\\"'");
    n += span(skip(a, n), " \t");
    if (n >= a.left || (a.p[n] != ':' && a.p[n] != '=') || begins(skip(a, n), "://")) {
        return 0;
    }
    n++;
    n += span(skip(a, n), " \t");
    /* "Authorization: Bearer xyz" has two words. */
    size_t keep = 0, both = http_credential(skip(a, n), &keep);
    size_t size = both ? both : value_size(skip(a, n));
    for (size_t i = 0; i < ARRAY_SIZE(plain); i++) {
        if (size == strlen(plain[i]) && begins(skip(a, n), plain[i])) {
            return 0;
        }
    }
    *ret_keep = n;
    return size && key ? n + size : 0;
}

/* "://user:password@": '*ret_keep' are the three characters, the result ends before the '@'. */
static size_t user_of_url(struct at a, size_t *ret_keep)
{
    size_t n = 3, at = 0;
    if (!begins(a, "://")) {
        return 0;
    }
    for (; n < a.left && !strchr("/ \t\r\n\"'?#<>,", a.p[n]); n++) {
        at = a.p[n] == '@' ? n : at;
    }
    *ret_keep = 3;
    return at;
}

/* The size of the secret at this position, of which the first '*ret_keep' bytes are none. */
static size_t secret_at(struct at a, bool begin_of_word, size_t *ret_keep)
{
    size_t n = 0;
    *ret_keep = 0;
    if ((n = private_key(a)) || (n = user_of_url(a, ret_keep))) {
        return n;
    }
    if (!begin_of_word) {
        return 0;
    }
    if ((n = bootstrap_token(a)) || (n = web_token(a)) || (n = oauth_token(a)) ||
        (n = http_credential(a, ret_keep))) {
        return n;
    }
    *ret_keep = 0;
    return named_value(a, ret_keep);
}

void redact_text(const char *text, size_t size, struct strbuf *out)
{
    struct at a = {text, size};
    size_t plain = 0; /* Bytes before 'a.p' that are to be copied. */
    while (a.left) {
        size_t keep = 0;
        bool begin = a.p == text || !(isalnum((unsigned char) a.p[-1]) || a.p[-1] == '_');
        size_t n = secret_at(a, begin, &keep);
        if (!n) {
            a = skip(a, 1);
            plain++;
            continue;
        }
        strbuf_add(out, a.p - plain, plain + keep);
        strbuf_adds(out, REDACTED);
        a = skip(a, n);
        plain = 0;
    }
    strbuf_add(out, a.p - plain, plain);
}

/* ---- documents ---- */

static struct json *removed(const struct json *v)
{
    return json_is(v, JSON_STRING) ? json_stringf("[removed, %zu bytes]", json_string_size(v))
                                   : json_string(REDACTED);
}

static void remove_members(struct json *o)
{
    for (size_t i = 0; i < json_count(o); i++) {
        CLEANUP_FREE char *key = xstrdup(json_key_at(o, i));
        struct json *text = removed(json_at(o, i));
        json_set(o, key, text);
    }
}

/* Annotations of these are facts of the network and of the control loops. */
static bool is_known_annotation(const char *key)
{
    static const char *const known[] = {
        "tenet.io/",
        "pod.network.openshift.io/",
        "openshift.io/node-selector",
        "openshift.io/sa.scc",
        "deployment.kubernetes.io/",
        "control-plane.alpha.kubernetes.io/",
        "node.alpha.kubernetes.io/",
        "rbac.authorization.kubernetes.io/autoupdate",
        "kubernetes.io/ingress-bandwidth",
        "kubernetes.io/egress-bandwidth",
        "kubernetes.io/config.source",
        "node-uid",
    };
    for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
        if (str_has_prefix(key, known[i])) {
            return true;
        }
    }
    return false;
}

static void clean_annotations(struct json *o)
{
    for (size_t i = 0; i < json_count(o); i++) {
        CLEANUP_FREE char *key = xstrdup(json_key_at(o, i));
        if (!is_known_annotation(key)) {
            json_set(o, key, removed(json_at(o, i)));
        }
    }
}

/* Removes the member "value" of each item. */
static void clean_values(struct json *list)
{
    struct json *item;
    JSON_FOREACH (item, list) {
        struct json *v = json_get(item, "value");
        if (json_is(item, JSON_OBJECT) && v) {
            json_set(item, "value", removed(v));
        }
    }
}

static struct json *clean_string(const struct json *v)
{
    struct strbuf b = STRBUF_INIT;
    redact_text(json_get_string(v), json_string_size(v), &b);
    struct json *text = json_string_n(strbuf_cstr(&b), b.size);
    strbuf_done(&b);
    return text;
}

static bool is_any(const char *key, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (streq(key, names[i])) {
            return true;
        }
    }
    return false;
}

/* The value that takes the place of the member; NULL: it stays, and was cleaned in place. */
static struct json *clean_member(const char *key, struct json *v)
{
    static const char *const contents[] = {"data", "stringData", "binaryData"};
    static const char *const lists[] = {"args", "command"};
    static const char *const pairs[] = {"env", "httpHeaders"};
    if (json_is(v, JSON_OBJECT) && is_any(key, contents, ARRAY_SIZE(contents))) {
        remove_members(v);
        return NULL;
    }
    if (json_is(v, JSON_OBJECT) && streq(key, "annotations")) {
        clean_annotations(v);
    }
    if (is_any(key, pairs, ARRAY_SIZE(pairs))) {
        clean_values(v);
    }
    bool list = json_is(v, JSON_ARRAY) && is_any(key, lists, ARRAY_SIZE(lists));
    if (list || str_has_suffix(key, "Header") || str_has_suffix(key, "Headers")) {
        return json_is(v, JSON_ARRAY) && !list && json_is(json_at(v, 0), JSON_OBJECT)
                   ? NULL
                   : json_stringf("[removed, %zu items]", json_count(v));
    }
    bool text = json_is(v, JSON_STRING) || json_is(v, JSON_NUMBER) ||
                (json_is(v, JSON_ARRAY) && !json_is(json_at(v, 0), JSON_OBJECT));
    if (text && redact_is_secret_key(key, strlen(key))) {
        return removed(v);
    }
    return json_is(v, JSON_STRING) ? clean_string(v) : NULL;
}

/* An array of texts, cleaned; NULL: it holds something else. */
static struct json *clean_texts(const struct json *list)
{
    const struct json *item;
    struct json *out = json_array();
    JSON_FOREACH (item, list) {
        if (!json_is(item, JSON_STRING)) {
            return json_free(out);
        }
        json_append(out, clean_string(item));
    }
    return out;
}

/* The depth is that of a document which the parser has accepted (JSON_MAX_DEPTH). */
void redact_json(struct json *v)
{
    for (size_t i = 0; i < json_count(v); i++) {
        struct json *item = json_at(v, i);
        const char *name = json_is(v, JSON_OBJECT) ? json_key_at(v, i) : NULL;
        if (name) {
            CLEANUP_FREE char *key = xstrdup(name);
            struct json *other = clean_member(key, item);
            if (!other && json_is(item, JSON_ARRAY) && json_is(json_at(item, 0), JSON_STRING)) {
                other = clean_texts(item);
            }
            if (other) {
                json_set(v, key, other);
                continue;
            }
        }
        redact_json(item);
    }
}
