/* SPDX-License-Identifier: Apache-2.0 */
#include "oauth/client.h"

#include "api/kinds/oauth.h"
#include "base/mem.h"
#include "oauth/redirect.h"
#include "oauth/session.h"

#include <stdlib.h>

/* Redirect URIs of one service account at most. */
#define REDIRECTS_MAX 128

void oauth_client_done(struct oauth_client *c)
{
    for (char **r = c->redirects; r && *r; r++) {
        free(*r);
    }
    free(c->redirects);
    free(c->name);
    free(c->namespace);
    free(c->account);
    json_free(c->restrictions);
    json_free(c->secrets);
    *c = (struct oauth_client){0};
}

/* ---- OAuthClient ---- */

static void add_redirect(struct oauth_client *c, size_t *n, const char *uri)
{
    c->redirects = xreallocarray(c->redirects, *n + 2, sizeof *c->redirects);
    c->redirects[(*n)++] = xstrdup(uri);
    c->redirects[*n] = NULL;
}

static bool read_number(const struct json *obj, const char *key, int64_t *ret)
{
    return json_get_int(json_get(obj, key), ret) == 0;
}

void oauth_client_read(const struct json *obj, enum oauth_grant_method method,
                       struct oauth_client *ret)
{
    const struct json *item;
    const char *own = json_get_text(obj, "grantMethod");
    size_t n = 0;
    *ret = (struct oauth_client){
        .name = xstrdup(json_get_text(json_get(obj, "metadata"), "name")),
        .challenges = json_get_bool(json_get(obj, "respondWithChallenges"), false),
        .grant = streq(own, "auto")     ? OAUTH_GRANT_AUTO
                 : streq(own, "prompt") ? OAUTH_GRANT_PROMPT
                                        : method,
        .secrets = json_array(),
    };
    ret->redirects = xcalloc(1, sizeof *ret->redirects);
    JSON_FOREACH (item, json_get(obj, "redirectURIs")) {
        if (json_string_size(item)) {
            add_redirect(ret, &n, json_get_string(item));
        }
    }
    if (*json_get_text(obj, "secret")) {
        json_append(ret->secrets, json_string(json_get_text(obj, "secret")));
    }
    JSON_FOREACH (item, json_get(obj, "additionalSecrets")) {
        if (json_string_size(item)) {
            json_append(ret->secrets, json_clone(item));
        }
    }
    if (json_count(json_get(obj, "scopeRestrictions"))) {
        ret->restrictions = json_clone(json_get(obj, "scopeRestrictions"));
    }
    ret->has_max_age = read_number(obj, "accessTokenMaxAgeSeconds", &ret->max_age_s);
    ret->has_inactivity =
        read_number(obj, "accessTokenInactivityTimeoutSeconds", &ret->inactivity_s);
}

/* ---- service accounts ---- */

/* The parts of a redirect URI that an annotation sets; NULL: it does not. */
struct parts {
    char *scheme, *host, *port, *path;
};

static void parts_donep(struct parts *p)
{
    free(p->scheme);
    free(p->host);
    free(p->port);
    free(p->path);
}

/* Takes "<scheme:>//<hostname><:port>/<path>" apart, whose parts may all be absent: "https:",
 * "//website.com", "//:8000", "examplepath". */
static void parts_read(const char *text, struct parts *ret)
{
    size_t scheme = strcspn(text, ":/");
    if (text[scheme] == ':' && scheme) {
        ret->scheme = xstrndup(text, scheme);
        text += scheme + 1;
    }
    if (strncmp(text, "//", 2) == 0) {
        text += 2;
        size_t n = strcspn(text, "/"), host = strcspn(text, ":/");
        if (*text == '[') {
            host = strcspn(text, "]") + (strchr(text, ']') != NULL);
        }
        ret->host = host ? xstrndup(text, host) : NULL;
        ret->port = host < n && text[host] == ':' && n > host + 1
                        ? xstrndup(text + host + 1, n - host - 1)
                        : NULL;
        text += n;
    }
    if (*text && !streq(text, "/")) {
        ret->path = xasprintf("%s%s", *text == '/' ? "" : "/", text);
    }
}

/* Adds the URI of 'p' over that of an ingress (NULL: none), if it is whole and valid. */
static bool add_uri(struct oauth_client *c, size_t *n, const struct parts *p,
                    const struct oauth_route_ingress *in)
{
    __attribute__((cleanup(oauth_uri_donep))) struct oauth_uri parsed = {0};
    const char *scheme = p->scheme ? p->scheme : in ? (in->tls ? "https" : "http") : NULL;
    const char *host = p->host ? p->host : in && *in->host ? in->host : NULL;
    const char *path = p->path ? p->path : in && in->path ? in->path : "";
    if (!scheme || !host || *n >= REDIRECTS_MAX) {
        return false;
    }
    CLEANUP_FREE char *uri =
        xasprintf("%s://%s%s%s%s", scheme, host, p->port ? ":" : "", p->port ? p->port : "", path);
    if (oauth_uri_parse(uri, &parsed, NULL) < 0) {
        return false;
    }
    add_redirect(c, n, uri);
    return true;
}

/* The name of the route in the annotation's object; NULL with a problem: it names none. */
static char *route_of(const char *text, const char **ret_problem)
{
    CLEANUP(json_free) struct json *o = NULL;
    if (json_parse(text, strlen(text), &o, NULL) < 0 || !json_is(o, JSON_OBJECT)) {
        *ret_problem = "is not a JSON object";
        return NULL;
    }
    const struct json *ref = json_get(o, "reference");
    const char *group = json_get_text(ref, "group");
    if (!streq(json_get_text(o, "kind"), "OAuthRedirectReference")) {
        *ret_problem = "is no OAuthRedirectReference";
    } else if (!streq(json_get_text(ref, "kind"), "Route") ||
               (*group && !streq(group, "route.openshift.io"))) {
        *ret_problem = "refers to another kind than Route";
    } else if (!*json_get_text(ref, "name")) {
        *ret_problem = "names no route";
    } else {
        return xstrdup(json_get_text(ref, "name"));
    }
    return NULL;
}

struct reading {
    struct oauth_client *c;
    size_t n;
    oauth_route_fn *routes;
    void *ctx;
    struct strbuf *problems;
};

static void problem(const struct reading *r, const char *key, const char *what)
{
    if (r->problems) {
        strbuf_addf(r->problems, "%s%s: %s", r->problems->size ? "; " : "", key, what);
    }
}

/* Adds the URIs of one reference, changed by the parts of the URI with the same postfix. */
static void read_reference(struct reading *r, const char *key, const char *text,
                           const struct parts *p)
{
    struct oauth_route_ingress in[OAUTH_INGRESS_MAX];
    const char *why = NULL;
    CLEANUP_FREE char *route = route_of(text, &why);
    int n = route ? r->routes(r->ctx, r->c->namespace, route, in, ARRAY_SIZE(in)) : -EINVAL;
    size_t before = r->n;
    for (int i = 0; i < n; i++) {
        (void) add_uri(r->c, &r->n, p, &in[i]);
        free(in[i].host);
        free(in[i].path);
    }
    if (r->n == before) {
        problem(r, key,
                why     ? why
                : n < 0 ? "the route does not exist"
                        : "the route is not admitted by a router");
    }
}

static void read_annotation(struct reading *r, const struct json *annotations, size_t i)
{
    const char *key = json_key_at(annotations, i);
    const char *value = json_get_string(json_at(annotations, i));
    __attribute__((cleanup(parts_donep))) struct parts p = {0};
    if (!value) {
        return;
    }
    if (str_has_prefix(key, OAUTH_SA_REFERENCE_PREFIX)) {
        CLEANUP_FREE char *other =
            xasprintf(OAUTH_SA_URI_PREFIX "%s", key + sizeof OAUTH_SA_REFERENCE_PREFIX - 1);
        parts_read(json_get_text(annotations, other), &p);
        read_reference(r, key, value, &p);
    } else if (str_has_prefix(key, OAUTH_SA_URI_PREFIX)) {
        CLEANUP_FREE char *other =
            xasprintf(OAUTH_SA_REFERENCE_PREFIX "%s", key + sizeof OAUTH_SA_URI_PREFIX - 1);
        parts_read(value, &p);
        if (!json_get(annotations, other) && !add_uri(r->c, &r->n, &p, NULL)) {
            problem(r, key, "is no absolute URI");
        }
    }
}

static struct json *texts(const char *const *list)
{
    struct json *a = json_array();
    for (; *list; list++) {
        json_append(a, json_string(*list));
    }
    return a;
}

/* The scopes of a service account: four of the user's, and any role in its own namespace. */
static struct json *account_restrictions(const char *namespace)
{
    static const char *const literals[] = {"user:info", "user:check-access",
                                           "user:list-scoped-projects", "user:list-projects", NULL};
    struct json *list = json_array(), *first = json_append(list, json_object());
    struct json *second = json_append(list, json_object());
    json_set(first, "literals", texts(literals));
    struct json *role = json_set(second, "clusterRole", json_object());
    json_set(role, "roleNames", texts((const char *[]){"*", NULL}));
    json_set(role, "namespaces", texts((const char *[]){namespace, NULL}));
    json_set_bool(role, "allowEscalation", true);
    return list;
}

int oauth_client_read_account(const struct json *obj, enum oauth_grant_method method,
                              oauth_route_fn *routes, void *ctx, struct oauth_client *ret,
                              struct strbuf *problems)
{
    const struct json *meta = json_get(obj, "metadata"), *notes = json_get(meta, "annotations");
    __attribute__((cleanup(oauth_client_donep))) struct oauth_client c = {
        .namespace = xstrdup(json_get_text(meta, "namespace")),
        .account = xstrdup(json_get_text(meta, "name")),
        .challenges = streq(json_get_text(notes, OAUTH_SA_CHALLENGES), "true"),
        .grant = method,
        .secrets = json_array(),
    };
    c.name = xasprintf("system:serviceaccount:%s:%s", c.namespace, c.account);
    c.redirects = xcalloc(1, sizeof *c.redirects);
    c.restrictions = account_restrictions(c.namespace);
    struct reading r = {.c = &c, .routes = routes, .ctx = ctx, .problems = problems};
    for (size_t i = 0; i < json_count(notes); i++) {
        read_annotation(&r, notes, i);
    }
    if (r.n == 0) {
        if (problems && !problems->size) {
            strbuf_adds(problems, "no annotation names a redirect URI");
        }
        return -EINVAL;
    }
    *ret = c;
    c = (struct oauth_client){0};
    return 0;
}

/* ---- scopes ---- */

static bool lists(const struct json *list, const char *text, size_t n)
{
    const struct json *item;
    JSON_FOREACH (item, list) {
        const char *s = json_get_string(item);
        if (s && (streq(s, "*") || (strlen(s) == n && memcmp(s, text, n) == 0))) {
            return true;
        }
    }
    return false;
}

static bool is_literal(const struct json *list, const char *scope)
{
    const struct json *item;
    JSON_FOREACH (item, list) {
        if (streq_null(json_get_string(item), scope)) {
            return true;
        }
    }
    return false;
}

static bool restriction_allows(const struct json *r, const char *scope, const struct oauth_scope *s)
{
    const struct json *role = json_get(r, "clusterRole");
    if (is_literal(json_get(r, "literals"), scope)) {
        return true;
    }
    return role && s->type == OAUTH_SCOPE_ROLE &&
           (!s->escalating || json_get_bool(json_get(role, "allowEscalation"), false)) &&
           lists(json_get(role, "roleNames"), s->role, s->role_size) &&
           lists(json_get(role, "namespaces"), s->namespace, s->namespace_size);
}

static bool allows_scope(const struct oauth_client *c, const char *scope)
{
    const struct json *r;
    struct oauth_scope s;
    if (!json_count(c->restrictions)) {
        return true;
    }
    if (oauth_scope_parse(scope, &s) < 0) {
        return false;
    }
    JSON_FOREACH (r, c->restrictions) {
        if (restriction_allows(r, scope, &s)) {
            return true;
        }
    }
    return false;
}

int oauth_client_check_scopes(const struct oauth_client *c, const struct json *scopes,
                              struct err *e)
{
    const struct json *item;
    JSON_FOREACH (item, scopes) {
        const char *scope = json_get_string(item);
        if (!scope || !allows_scope(c, scope)) {
            return err_set(e, -EACCES, "scope denied: %.80s", scope ? scope : "");
        }
    }
    return 0;
}

bool oauth_client_accepts_secret(const struct oauth_client *c, const char *secret)
{
    const struct json *item;
    bool found = json_count(c->secrets) == 0 && !c->account;
    JSON_FOREACH (item, c->secrets) {
        found |= oauth_secret_equal(json_get_string(item), secret ? secret : "");
    }
    return found;
}
