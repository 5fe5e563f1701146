/* SPDX-License-Identifier: Apache-2.0 */
/* RequestHeaderIdentityProvider: a proxy authenticates people, and names them in headers.
 *
 * Headers of anybody else are as good as none.  They count on a connection whose certificate the
 * authority 'clientCA' signed, for one of the 'clientCommonNames' (net/tls/tls.h, tls_peer_proxy).
 * A header that is there twice, or a second one that names another person, may be the client's that
 * the proxy let pass: such a request proves nobody. */
#include "base/mem.h"
#include "identity/kinds.h"
#include "identity/secret.h"
#include "net/http/http.h"
#include "wire/http1.h"
#include "wire/ldap.h"

#include <strings.h>

#define MAX_TEXT 1024

struct request_header {
    struct identity_provider base;
    struct json *config;
    char *ca; /* PEM */
    char authority[TLS_AUTHORITY_SIZE];
};

static const struct config_row rows[] = {{"challengeURL", CONFIG_TEXT, false, NULL},
                                         {"loginURL", CONFIG_TEXT, false, NULL},
                                         {"clientCA", CONFIG_TEXT, true, NULL},
                                         {"clientCommonNames", CONFIG_TEXTS, false, NULL},
                                         {"headers", CONFIG_TEXTS, true, NULL},
                                         {"preferredUsernameHeaders", CONFIG_TEXTS, false, NULL},
                                         {"nameHeaders", CONFIG_TEXTS, false, NULL},
                                         {"emailHeaders", CONFIG_TEXTS, false, NULL},
                                         {0}};

/* ---- configuration ---- */

static bool is_word(const char *s)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "!#$%&'*+-.^_`|~";
    return *s && strspn(s, letters) == strlen(s);
}

/* Headers that clients and connections have for other purposes name nobody. */
static bool is_taken(const char *name)
{
    static const char *const names[] = {
        "authorization", "connection", "content-length",    "cookie",      "host",
        "origin",        "te",         "transfer-encoding", "x-csrf-token"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (strcasecmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static int check_headers(const struct json *provider, const char *key, struct err *e)
{
    const struct json *item;
    JSON_FOREACH (item, json_get(provider, key)) {
        const char *name = json_get_string(item);
        if (!is_word(name)) {
            return err_set(e, -EINVAL, "%s[%zu]: \"%.80s\" is no name of a header", key, item_i,
                           name);
        }
        if (is_taken(name)) {
            return err_set(e, -EINVAL, "%s[%zu]: \"%.80s\" has another meaning", key, item_i, name);
        }
    }
    return 0;
}

/* "https://proxy.example.com/login?${query}"; what takes the place of ${url} and ${query} belongs
 * to a query. */
static int check_url(const struct json *provider, const char *key, struct err *e)
{
    const char *url = json_get_text(provider, key);
    if (!json_get(provider, key)) {
        return 0;
    }
    CLEANUP_FREE char *base = xstrndup(url, strcspn(url, "?"));
    const char *query = url + strlen(base);
    if (strncmp(url, "https://", 8) != 0 || strchr("/?", url[8]) || strpbrk(base, "${}\\@") ||
        strpbrk(url, "# \"<>")) {
        return err_set(e, -EINVAL, "%s: \"%.200s\" is no https URL", key, url);
    }
    for (const char *p = url; *p; p++) {
        if ((unsigned char) *p < 0x21 || (unsigned char) *p > 0x7e) {
            return err_set(e, -EINVAL, "%s: has a character that no URL has", key);
        }
    }
    return strstr(query, "${url}") || strstr(query, "${query}")
               ? 0
               : err_set(e, -EINVAL,
                         "%s: its query has neither ${url} nor ${query}, so that the proxy cannot "
                         "send the client back",
                         key);
}

static int check(const struct json *provider, struct err *e)
{
    static const char *const lists[] = {"headers", "preferredUsernameHeaders", "nameHeaders",
                                        "emailHeaders"};
    int r = config_rows_check(provider, rows, e);
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(lists); i++) {
        r = check_headers(provider, lists[i], e);
    }
    r = r < 0 ? r : check_url(provider, "challengeURL", e);
    return r < 0 ? r : check_url(provider, "loginURL", e);
}

static void close_request_header(struct identity_provider *base)
{
    struct request_header *p = CONTAINER_OF(base, struct request_header, base);
    json_free(p->config);
    free(p->ca);
    free(p);
}

static int open_request_header(struct loop *l, const struct json *config,
                               struct identity_provider **ret, struct err *e)
{
    char *ca = NULL;
    int r = config_file_text(json_get_text(config, "clientCA"), &ca, e);
    if (r < 0) {
        return err_prefix(e, "clientCA"), r;
    }
    struct request_header *p = NEW(struct request_header);
    p->base.kind = &identity_request_header;
    p->config = json_clone(config);
    p->ca = ca;
    tls_authority_digest(ca, p->authority);
    *ret = &p->base;
    return 0;
}

static const char *client_ca(const struct identity_provider *base)
{
    return CONTAINER_OF(base, struct request_header, base)->ca;
}

/* ---- requests ---- */

/* The one value of the header; NULL: it is absent or empty.  -EACCES: it is there twice. */
static int one_value(const struct http_exchange *x, const char *name, const char **ret,
                     struct err *e)
{
    const char *found = NULL, *key, *value;
    for (size_t i = 0; http_header_at(x, i, &key, &value); i++) {
        if (strcasecmp(key, name) != 0) {
            continue;
        }
        if (found) {
            return err_set(e, -EACCES, "the header %.80s is there twice", name);
        }
        found = value;
    }
    const struct ldap_value text = {(char *) found, found ? strlen(found) : 0};
    if (text.size > MAX_TEXT || (text.size && !ldap_value_is_text(&text))) {
        return err_set(e, -EACCES, "the header %.80s is longer than %d bytes or is not UTF-8", name,
                       MAX_TEXT);
    }
    *ret = found && *found ? found : NULL;
    return 0;
}

/* The value of the first of the headers that is there; all must be valid.  With 'same', others that
 * are there must have the same value. */
static int first_value(const struct http_exchange *x, const struct json *names, bool same,
                       const char **ret, struct err *e)
{
    const struct json *item;
    const char *first = NULL;
    JSON_FOREACH (item, names) {
        const char *value = NULL;
        int r = one_value(x, json_get_string(item), &value, e);
        if (r < 0) {
            return r;
        }
        if (same && first && value && !streq(first, value)) {
            return err_set(e, -EACCES, "two of the headers name different users");
        }
        first = first ? first : value;
    }
    *ret = first;
    return 0;
}

static bool has_any(const struct request_header *p, const struct http_exchange *x)
{
    const struct json *item;
    JSON_FOREACH (item, json_get(p->config, "headers")) {
        if (http_header(x, json_get_string(item))) {
            return true;
        }
    }
    return false;
}

/* Whether the connection is one of the provider's proxies. */
static int check_proxy(const struct request_header *p, const struct http_exchange *x, struct err *e)
{
    const struct tls_identity *id = http_peer_proxy(x);
    const struct json *names = json_get(p->config, "clientCommonNames"), *item;
    if (!id || !streq(id->authority, p->authority)) {
        return err_set(e, -EACCES, "its connection has no certificate by clientCA");
    }
    if (!json_count(names)) {
        return 0;
    }
    JSON_FOREACH (item, names) {
        if (streq(json_get_string(item), id->cn)) {
            return 0;
        }
    }
    return err_set(
        e, -EACCES,
        "the certificate of its connection is of \"%.80s\", which is none of clientCommonNames",
        id->cn);
}

static char *copy(const char *s)
{
    return s ? xstrdup(s) : NULL;
}

static int headers(struct identity_provider *base, const struct http_exchange *x,
                   struct identity *ret, struct err *e)
{
    struct request_header *p = CONTAINER_OF(base, struct request_header, base);
    const char *user = NULL, *preferred = NULL, *name = NULL, *email = NULL;
    bool any = has_any(p, x);
    int r = check_proxy(p, x, e);
    if (r < 0) {
        return any ? r : -ENOENT;
    }
    if (!any) {
        return err_set(e, -ENODATA, "the proxy has sent none of the headers");
    }
    if ((r = first_value(x, json_get(p->config, "headers"), true, &user, e)) < 0 ||
        (r = first_value(x, json_get(p->config, "preferredUsernameHeaders"), true, &preferred, e)) <
            0 ||
        (r = first_value(x, json_get(p->config, "nameHeaders"), false, &name, e)) < 0 ||
        (r = first_value(x, json_get(p->config, "emailHeaders"), false, &email, e)) < 0) {
        return r;
    }
    if (!user) {
        return err_set(e, -ENODATA, "the header with the user is empty");
    }
    *ret = (struct identity){.user = xstrdup(user),
                             .preferred = copy(preferred),
                             .name = copy(name),
                             .email = copy(email)};
    return 0;
}

static int proxy_login(struct identity_provider *base, const char *url, bool challenge,
                       struct strbuf *ret, struct err *e)
{
    struct request_header *p = CONTAINER_OF(base, struct request_header, base);
    const char *s = json_get_text(p->config, challenge ? "challengeURL" : "loginURL");
    const char *query = strchr(url, '?');
    if (!*s) {
        return err_set(e, -ENOENT, "%s is not configured", challenge ? "challengeURL" : "loginURL");
    }
    while (*s) {
        if (str_has_prefix(s, "${url}")) {
            http1_escape(url, ret);
            s += sizeof "${url}" - 1;
        } else if (str_has_prefix(s, "${query}")) {
            strbuf_adds(ret, query ? query + 1 : "");
            s += sizeof "${query}" - 1;
        } else {
            strbuf_addc(ret, *s++);
        }
    }
    return 0;
}

const struct identity_kind identity_request_header = {.name = "RequestHeaderIdentityProvider",
                                                      .check = check,
                                                      .open = open_request_header,
                                                      .close = close_request_header,
                                                      .headers = headers,
                                                      .client_ca = client_ca,
                                                      .proxy_login = proxy_login,
                                                      .challenge_key = "challengeURL",
                                                      .login_key = "loginURL"};
