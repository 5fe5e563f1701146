/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/request/cors.h"

#include "api/pattern.h"

#include <strings.h>

#define ORIGIN_MAX 512

struct rule {
    char *host;              /* "example.com" or "example.com:8443"; NULL: 'pattern'. */
    struct pattern *pattern; /* NULL: 'host'. */
};

struct cors {
    struct rule *rules;
    size_t n;
};

/* A host name or address and perhaps a port: letters, digits, "-", ".", and one ":" with digits. */
static bool is_host(const char *s)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.";
    size_t n = strspn(s, letters);
    return n && (!s[n] ||
                 (s[n] == ':' && s[n + 1] && strspn(s + n + 1, "0123456789") == strlen(s + n + 1)));
}

int cors_check(const char *origin, struct err *e)
{
    CLEANUP(pattern_free) struct pattern *p = NULL;
    if (is_host(origin)) {
        return 0;
    }
    int r = pattern_new(origin, &p, e);
    return r < 0
               ? (err_prefix(e, "\"%.80s\" is neither a host nor a regular expression", origin), r)
               : 0;
}

struct cors *cors_new(const char *const *origins)
{
    if (!origins || !*origins) {
        return NULL;
    }
    struct cors *c = NEW(struct cors);
    for (; *origins; origins++) {
        struct rule rule = {0};
        if (is_host(*origins)) {
            rule.host = xstrdup(*origins);
        } else if (pattern_new(*origins, &rule.pattern, NULL) < 0) {
            continue;
        }
        c->rules = xreallocarray(c->rules, c->n + 1, sizeof *c->rules);
        c->rules[c->n++] = rule;
    }
    return c;
}

struct cors *cors_free(struct cors *c)
{
    if (c) {
        for (size_t i = 0; i < c->n; i++) {
            free(c->rules[i].host);
            pattern_free(c->rules[i].pattern);
        }
        free(c->rules);
        free(c);
    }
    return NULL;
}

static bool host_matches(const char *host, const char *origin)
{
    const char *authority = strstr(origin, "://");
    if (!authority) {
        return false;
    }
    authority += 3;
    size_t n = strchr(host, ':') ? strlen(authority) : strcspn(authority, ":");
    return strlen(host) == n && strncasecmp(host, authority, n) == 0;
}

static bool allows(const struct cors *c, const char *origin)
{
    size_t size = strlen(origin);
    for (size_t i = 0; size <= ORIGIN_MAX && i < c->n; i++) {
        const struct rule *r = &c->rules[i];
        if (r->host ? host_matches(r->host, origin)
                    : pattern_match(r->pattern, origin, size) == 1) {
            return true;
        }
    }
    return false;
}

bool cors_handle(const struct cors *c, struct http_exchange *x)
{
    static const char *const headers[][2] = {
        {"Access-Control-Allow-Credentials", "true"},
        {"Access-Control-Allow-Methods", "POST, GET, OPTIONS, PUT, DELETE, PATCH"},
        {"Access-Control-Allow-Headers", "Content-Type, Content-Length, Accept-Encoding, "
                                         "X-CSRF-Token, Authorization, X-Requested-With, "
                                         "If-Modified-Since"},
        {"Access-Control-Expose-Headers", "Date"},
    };
    if (!c) {
        return false;
    }
    const char *origin = http_header(x, "origin");
    http_set_header(x, "Vary", "Origin");
    if (!origin || !allows(c, origin)) {
        return false;
    }
    http_set_header(x, "Access-Control-Allow-Origin", origin);
    for (size_t i = 0; i < ARRAY_SIZE(headers); i++) {
        http_set_header(x, headers[i][0], headers[i][1]);
    }
    if (!streq(http_method(x), "OPTIONS")) {
        return false;
    }
    http_respond(x, 204, NULL, "", 0);
    return true;
}
