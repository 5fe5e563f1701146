/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/location.h"

#include "base/mem.h"
#include "base/str.h"

#include <string.h>
#include <strings.h>

#define HTTP_PORT 80
#define HTTPS_PORT 443

void location_done(struct location *l)
{
    free(l->host);
    free(l->path);
    *l = (struct location){0};
}

static bool has_only_visible_characters(const char *s)
{
    for (; *s; s++) {
        if (*s <= ' ' || *s >= 0x7f) {
            return false;
        }
    }
    return true;
}

/* The size of "NAME:" at the beginning; 0: there is no scheme. */
static size_t scheme_size(const char *s)
{
    size_t n = strcspn(s, ":/?#");
    bool letter = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z');
    return s[n] == ':' && letter ? n + 1 : 0;
}

/* "HOST[:PORT]", of 'size' bytes. */
static int set_authority(const char *s, size_t size, struct location *l)
{
    CLEANUP_FREE char *text = xstrndup(s, size);
    char *bracket = strrchr(text, ']'); /* The end of an IPv6 address. */
    char *colon = strchr(bracket ? bracket : text, ':');
    uint64_t port = l->https ? HTTPS_PORT : HTTP_PORT;
    if (colon) {
        *colon = '\0';
        if (colon[1] && (str_to_u64(colon + 1, UINT16_MAX, &port) < 0 || !port)) {
            return -EINVAL;
        }
    }
    if (!*text || strchr(text, '@')) {
        return -EINVAL;
    }
    l->host = xstrdup(text);
    l->port = (uint16_t) port;
    return 0;
}

/* Appends the path, of 'size' bytes, without its segments "." and "..". */
static void add_normal(struct strbuf *out, const char *p, size_t size)
{
    const char *end = p + size;
    while (p < end) {
        const char *segment = p + (*p == '/');
        const char *next = memchr(segment, '/', (size_t) (end - segment));
        size_t n = (size_t) ((next ? next : end) - segment);
        bool here = n == 1 && segment[0] == '.';
        bool up = n == 2 && segment[0] == '.' && segment[1] == '.';
        if (up) {
            while (out->size && out->data[--out->size] != '/') {
            }
        }
        if (!here && !up) {
            strbuf_addc(out, '/');
            strbuf_add(out, segment, n);
        } else if (!next) {
            strbuf_addc(out, '/');
        }
        p = segment + n;
    }
}

/* The path of a reference that names no host. */
static char *relative_path(const char *base, const char *s)
{
    CLEANUP_STRBUF struct strbuf joined = STRBUF_INIT, out = STRBUF_INIT;
    size_t path = strcspn(s, "?#"), query = strcspn(s, "#"), base_path = strcspn(base, "?");
    if (path == 0) {
        /* The same path, with another query if it has one. */
        strbuf_add(&out, base, query ? base_path : strlen(base));
        strbuf_add(&out, s, query);
        return strbuf_steal(&out);
    }
    if (*s != '/') {
        while (base_path && base[base_path - 1] != '/') {
            base_path--;
        }
        strbuf_add(&joined, base, base_path);
    }
    strbuf_add(&joined, s, path);
    add_normal(&out, strbuf_cstr(&joined), joined.size);
    strbuf_add(&out, s + path, query - path);
    return strbuf_steal(&out);
}

int location_resolve(const struct location *base, const char *text, struct location *ret,
                     struct err *e)
{
    struct location l = {.https = base->https};
    size_t scheme = scheme_size(text);
    const char *s = text + scheme;
    bool http = scheme == 5 && strncasecmp(text, "http:", 5) == 0;
    bool https = scheme == 6 && strncasecmp(text, "https:", 6) == 0;
    bool has_host = s[0] == '/' && s[1] == '/';
    if (!*text || !has_only_visible_characters(text) || (scheme && !http && !https) ||
        (scheme && !has_host)) {
        return err_set(e, -EINVAL, "\"%.200s\" is no address of HTTP", text);
    }
    l.https = scheme ? https : base->https;
    if (!has_host) {
        l.host = xstrdup(base->host);
        l.port = base->port;
        l.path = relative_path(base->path, s);
        *ret = l;
        return 0;
    }
    size_t size = strcspn(s + 2, "/?#");
    if (set_authority(s + 2, size, &l) < 0) {
        return err_set(e, -EINVAL, "\"%.200s\" has no valid host", text);
    }
    s += 2 + size;
    l.path = relative_path("/", s);
    *ret = l;
    return 0;
}
