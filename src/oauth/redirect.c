/* SPDX-License-Identifier: Apache-2.0 */
#include "oauth/redirect.h"

#include "base/mem.h"

#include <strings.h>

void oauth_uri_done(struct oauth_uri *u)
{
    free(u->scheme);
    free(u->host);
    free(u->port);
    free(u->path);
    free(u->query);
    *u = (struct oauth_uri){0};
}

static char *lowered(const char *s, size_t n)
{
    char *out = xstrndup(s, n);
    for (char *p = out; *p; p++) {
        *p = *p >= 'A' && *p <= 'Z' ? (char) (*p - 'A' + 'a') : *p;
    }
    return out;
}

/* Bytes that no URI has (RFC 3986), and that browsers read in ways of their own. */
static int check_bytes(const char *s, struct err *e)
{
    for (; *s; s++) {
        unsigned char c = (unsigned char) *s;
        if (c <= 0x20 || c >= 0x7f || strchr("\\\"<>^`{|}", c)) {
            return err_set(e, -EINVAL,
                           "has a blank, a backslash or another character that a URI "
                           "cannot have");
        }
        if (c == '%' && (!s[1] || !s[2] || !strchr("0123456789abcdefABCDEF", s[1]) ||
                         !strchr("0123456789abcdefABCDEF", s[2]))) {
            return err_set(e, -EINVAL, "has an invalid escape");
        }
    }
    return 0;
}

/* Whether a segment is "." or "..", where each dot may be escaped. */
static bool is_dots(const char *p, size_t n)
{
    size_t dots = 0;
    while (n) {
        if (*p == '.') {
            p++, n--;
        } else if (n >= 3 && strncasecmp(p, "%2e", 3) == 0) {
            p += 3, n -= 3;
        } else {
            return false;
        }
        dots++;
    }
    return dots == 1 || dots == 2;
}

static int check_path(const char *path, struct err *e)
{
    for (const char *p = path; *p;) {
        size_t n = strcspn(p, "/");
        if (is_dots(p, n)) {
            return err_set(e, -EINVAL, "has a segment \".\" or \"..\"");
        }
        if (strncasecmp(p, "%2f", 3) == 0 || strncasecmp(p, "%5c", 3) == 0) {
            return err_set(e, -EINVAL, "has an escaped slash");
        }
        p += n + (p[n] == '/');
    }
    for (const char *p = path; (p = strchr(p, '%')); p++) {
        if (strncasecmp(p, "%2f", 3) == 0 || strncasecmp(p, "%5c", 3) == 0 ||
            strncasecmp(p, "%00", 3) == 0) {
            return err_set(e, -EINVAL, "has an escaped slash");
        }
    }
    return 0;
}

static int check_scheme(const char *s, struct err *e)
{
    /* Browsers run, or read local files by, a URI with one of these schemes. */
    static const char *const refused[] = {"javascript", "data", "vbscript",
                                          "file",       "blob", "about"};
    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        if (streq(s, refused[i])) {
            return err_set(e, -EINVAL, "has the scheme \"%s\"", s);
        }
    }
    return 0;
}

/* "host", "host:port" or "[v6]:port", of 'n' bytes. */
static int parse_authority(struct oauth_uri *u, const char *p, size_t n, struct err *e)
{
    if (memchr(p, '@', n)) {
        return err_set(e, -EINVAL, "has a user name");
    }
    const char *bracket = *p == '[' ? memchr(p, ']', n) : NULL;
    size_t host = bracket ? (size_t) (bracket - p) + 1 : n;
    const char *colon = bracket ? memchr(bracket, ':', n - host + 1) : memchr(p, ':', n);
    host = colon ? (size_t) (colon - p) : n;
    const char *port = colon ? colon + 1 : NULL;
    size_t digits = colon ? n - host - 1 : 0;
    if (host == 0 || (*p == '[' && (!bracket || host != (size_t) (bracket - p) + 1))) {
        return err_set(e, -EINVAL, "has no host");
    }
    for (size_t i = 0; i < host; i++) {
        if (*p != '[' && !((p[i] >= 'a' && p[i] <= 'z') || (p[i] >= 'A' && p[i] <= 'Z') ||
                           (p[i] >= '0' && p[i] <= '9') || strchr("-._", p[i]))) {
            return err_set(e, -EINVAL,
                           "has a host with other characters than letters, digits, "
                           "\"-\", \".\" and \"_\"");
        }
    }
    CLEANUP_FREE char *number = port ? xstrndup(port, digits) : xstrdup("");
    uint64_t value = 0;
    if (port && (str_to_u64(number, 65535, &value) < 0 || value == 0)) {
        return err_set(e, -EINVAL, "has a port that is not in 1-65535");
    }
    u->host = lowered(p, host);
    u->port = port                        ? xasprintf("%u", (unsigned) value)
              : streq(u->scheme, "https") ? xstrdup("443")
              : streq(u->scheme, "http")  ? xstrdup("80")
                                          : xstrdup("");
    return 0;
}

static int parse_rest(struct oauth_uri *u, const char *rest, struct err *e)
{
    u->opaque = strncmp(rest, "//", 2) != 0;
    size_t authority = u->opaque ? 0 : strcspn(rest + 2, "/?");
    const char *path = u->opaque ? rest : rest + 2 + authority;
    size_t n = strcspn(path, "?");
    if (u->opaque && (streq(u->scheme, "http") || streq(u->scheme, "https"))) {
        return err_set(e, -EINVAL, "has no host");
    }
    int r = u->opaque ? 0 : parse_authority(u, rest + 2, authority, e);
    if (r < 0) {
        return r;
    }
    if (u->opaque) {
        u->host = xstrdup("");
        u->port = xstrdup("");
    }
    u->path = n ? xstrndup(path, n) : xstrdup(u->opaque ? "" : "/");
    u->query = path[n] ? xstrdup(path + n + 1) : NULL;
    return check_path(u->path, e);
}

int oauth_uri_parse(const char *text, struct oauth_uri *ret, struct err *e)
{
    __attribute__((cleanup(oauth_uri_donep))) struct oauth_uri u = {0};
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-";
    size_t scheme = strspn(text, letters);
    if (scheme == 0 || text[scheme] != ':' || !strchr(letters + 0, *text) ||
        (*text >= '+' && *text <= '9')) {
        return err_set(e, -EINVAL, "is not absolute: it must begin with a scheme such as https://");
    }
    if (strchr(text, '#')) {
        return err_set(e, -EINVAL, "has a fragment");
    }
    u.scheme = lowered(text, scheme);
    int r = check_bytes(text, e);
    if (r < 0 || (r = check_scheme(u.scheme, e)) < 0 ||
        (r = parse_rest(&u, text + scheme + 1, e)) < 0) {
        return r;
    }
    *ret = u;
    u = (struct oauth_uri){0};
    return 0;
}

static bool is_loopback(const struct oauth_uri *u)
{
    return streq(u->scheme, "http") && (streq(u->host, "127.0.0.1") || streq(u->host, "[::1]"));
}

/* Whether 'path' is 'base', or below it. */
static bool is_at_or_below(const char *base, const char *path)
{
    size_t n = strlen(base);
    while (n && base[n - 1] == '/') {
        n--;
    }
    return streq(base, path) || (strncmp(base, path, n) == 0 && path[n] == '/');
}

bool oauth_redirect_matches(const char *registered, const char *given)
{
    __attribute__((cleanup(oauth_uri_donep))) struct oauth_uri a = {0}, b = {0};
    if (oauth_uri_parse(registered, &a, NULL) < 0 || oauth_uri_parse(given, &b, NULL) < 0) {
        return false;
    }
    if (a.opaque || b.opaque) {
        return streq(registered, given);
    }
    return streq(a.scheme, b.scheme) && streq(a.host, b.host) &&
           (streq(a.port, b.port) || is_loopback(&a)) && is_at_or_below(a.path, b.path);
}

bool oauth_redirect_is_allowed(char *const *registered, const char *given)
{
    for (; registered && *registered; registered++) {
        if (oauth_redirect_matches(*registered, given)) {
            return true;
        }
    }
    return false;
}

void oauth_redirect_origin(const struct oauth_uri *u, struct strbuf *out)
{
    bool web = streq(u->scheme, "http") || streq(u->scheme, "https");
    if (u->opaque || !web || strchr(u->host, ':')) {
        strbuf_addf(out, "%s:", u->scheme);
    } else {
        strbuf_addf(out, "%s://%s:%s", u->scheme, u->host, u->port);
    }
}

bool oauth_then_is_local(const char *then)
{
    if (then[0] != '/' || then[1] == '/' || then[1] == '\\') {
        return false;
    }
    for (const char *p = then; *p; p++) {
        if ((unsigned char) *p < 0x20 || *p == 0x7f || *p == '\\') {
            return false;
        }
    }
    return true;
}

bool oauth_then_is_for_logout(const char *then, const char *asset)
{
    return oauth_then_is_local(then) || (asset && oauth_redirect_matches(asset, then));
}
