/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/access/scopes.h"

#include "api/kinds/oauth.h"
#include "base/mem.h"

/* Texts of rules are not const, because the rules of roles own theirs; nothing writes these. */
#define LIST(...)                                                             \
    {                                                                         \
        (char **) (const char *const[]){__VA_ARGS__},                         \
            sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *) \
    }
#define ALL LIST("*")

static const struct rbac_rule discovery = {
    .verbs = LIST("get"),
    .urls = LIST("/", "/version", "/version/*", "/api", "/api/*", "/apis", "/apis/*", "/oapi",
                 "/oapi/*", "/openapi/*", "/swagger*", "/.well-known", "/.well-known/*")};
static const struct rbac_rule everything[] = {
    {.verbs = ALL, .groups = ALL, .resources = ALL},
    {.verbs = ALL, .urls = ALL},
};
static const struct rbac_rule own_user = {.verbs = LIST("get"),
                                          .groups = LIST("user.openshift.io", ""),
                                          .resources = LIST("users"),
                                          .names = LIST("~")};
static const struct rbac_rule check_access = {
    .verbs = LIST("create"),
    .groups = LIST("authorization.k8s.io", "authorization.openshift.io", ""),
    .resources = LIST("selfsubjectaccessreviews", "selfsubjectrulesreviews")};
static const struct rbac_rule list_projects = {.verbs = LIST("list", "watch"),
                                               .groups = LIST("project.openshift.io", ""),
                                               .resources = LIST("projects")};
static const struct rbac_rule get_namespaces = {
    .verbs = LIST("get"), .groups = LIST(""), .resources = LIST("namespaces")};

/* Resources by which a client could gain more than its scope: the scope of a role gives them only
 * with ":!". */
static const struct {
    const char *group, *resource; /* 'group' NULL: any. */
    const char *subresource;      /* NULL: all of the resource. */
} hidden[] = {
    {"", "secrets", NULL},
    {"", "serviceaccounts", "token"},
    {"", "services", "externalips"},
    {"network.openshift.io", "services", "externalips"},
    {NULL, "service", "externalips"},
    {NULL, "imagestreams", "secrets"},
    {NULL, "oauthauthorizetokens", NULL},
    {NULL, "oauthaccesstokens", NULL},
    {NULL, "roles", NULL},
    {NULL, "rolebindings", NULL},
    {NULL, "clusterroles", NULL},
    {NULL, "clusterrolebindings", NULL},
};

/* 'group' NULL: any. */
static bool is_hidden(const char *group, const char *resource, size_t n, const char *sub)
{
    for (size_t i = 0; i < ARRAY_SIZE(hidden); i++) {
        if ((!group || !hidden[i].group || streq(group, hidden[i].group)) &&
            strncmp(hidden[i].resource, resource, n) == 0 && !hidden[i].resource[n] &&
            (!hidden[i].subresource || streq(hidden[i].subresource, sub))) {
            return true;
        }
    }
    return false;
}

static bool has_star(const struct rbac_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        if (streq(l->at[i], "*")) {
            return true;
        }
    }
    return false;
}

const struct json *scopes_of(const struct user_info *u)
{
    const struct json *scopes = u->extra ? json_get(u->extra, SCOPES_EXTRA) : NULL;
    return json_count(scopes) ? scopes : NULL;
}

/* Called for each rule of a scope.  'limited': the rule gives neither hidden resources nor
 * impersonation.  Returns false to end the walk. */
typedef bool scope_rule_fn(void *ctx, const struct rbac_rule *rule, bool limited);

static bool walk_role(const struct rbac *r, const struct oauth_scope *scope, const char *ns,
                      scope_rule_fn *fn, void *ctx)
{
    bool everywhere = scope->namespace_size == 1 && *scope->namespace == '*';
    if (!everywhere && (!ns || strlen(ns) != scope->namespace_size ||
                        memcmp(ns, scope->namespace, scope->namespace_size) != 0)) {
        return true;
    }
    CLEANUP_FREE char *name = xstrndup(scope->role, scope->role_size);
    const struct rbac_rules *rules = rbac_role(r, NULL, "ClusterRole", name);
    for (size_t i = 0; rules && i < rules->n; i++) {
        const struct rbac_rule *rule = &rules->at[i];
        /* Such a rule would give kinds that are added later, too. */
        bool unbounded =
            has_star(&rule->verbs) || has_star(&rule->groups) || has_star(&rule->resources);
        if ((scope->escalating || !unbounded) && !fn(ctx, rule, !scope->escalating)) {
            return false;
        }
    }
    return true;
}

static bool walk_scope(const struct rbac *r, const char *text, const char *ns, scope_rule_fn *fn,
                       void *ctx)
{
    struct oauth_scope scope;
    if (oauth_scope_parse(text, &scope) < 0) {
        return true;
    }
    switch (scope.type) {
    case OAUTH_SCOPE_INFO:
        return fn(ctx, &own_user, false);
    case OAUTH_SCOPE_CHECK_ACCESS:
        return fn(ctx, &check_access, false);
    case OAUTH_SCOPE_LIST_SCOPED_PROJECTS:
        return fn(ctx, &list_projects, false);
    case OAUTH_SCOPE_LIST_PROJECTS:
        return fn(ctx, &list_projects, false) && fn(ctx, &get_namespaces, false);
    case OAUTH_SCOPE_FULL:
        return fn(ctx, &everything[0], false) && fn(ctx, &everything[1], false);
    default:
        return walk_role(r, &scope, ns, fn, ctx);
    }
}

static bool walk(const struct rbac *r, const struct json *scopes, const char *ns, scope_rule_fn *fn,
                 void *ctx)
{
    const struct json *item;
    if (!fn(ctx, &discovery, false)) {
        return false;
    }
    JSON_FOREACH (item, scopes) {
        if (json_get_string(item) && !walk_scope(r, json_get_string(item), ns, fn, ctx)) {
            return false;
        }
    }
    return true;
}

/* ---- one request ---- */

static bool does_not_allow(void *ctx, const struct rbac_rule *rule, bool limited)
{
    const struct attributes *a = ctx;
    if (limited && (streq(a->verb, "impersonate") ||
                    (a->is_resource &&
                     is_hidden(a->group, a->resource, strlen(a->resource), a->subresource)))) {
        return true;
    }
    return !rbac_rule_allows(rule, a);
}

bool scopes_allow(const struct rbac *r, const struct user_info *u, const struct attributes *a,
                  struct strbuf *why)
{
    const struct json *scopes = scopes_of(u), *item;
    if (!scopes ||
        !walk(r, scopes, a->is_resource ? a->namespace : NULL, does_not_allow, (void *) a)) {
        return true;
    }
    if (why) {
        strbuf_reset(why);
        strbuf_adds(why, "scopes [");
        JSON_FOREACH (item, scopes) {
            strbuf_addf(why, "%s%s", item == json_at(scopes, 0) ? "" : " ",
                        json_get_string(item) ? json_get_string(item) : "");
        }
        strbuf_adds(why, "] prevent this action");
    }
    return false;
}

/* ---- rules that both lists give ---- */

struct meet {
    rbac_rule_fn *fn;
    void *ctx;
    const struct rbac *r;
    const struct json *scopes;
    const char *ns;
    const struct rbac_rule *own; /* The rule of RBAC. */
};

static bool lists(const struct rbac_list *l, const char *s)
{
    return rbac_list_allows(l, s);
}

static bool lists_resource(const struct rbac_list *l, const char *s)
{
    size_t n = strcspn(s, "/");
    return rbac_resources_allow(l, s, n, s[n] ? s + n + 1 : "");
}

static bool lists_url(const struct rbac_list *l, const char *s)
{
    return rbac_urls_allow(l, s);
}

static void add_once(struct rbac_list *l, char *s)
{
    for (size_t i = 0; i < l->n; i++) {
        if (streq(l->at[i], s)) {
            return;
        }
    }
    l->at[l->n++] = s;
}

/* The members of each list that the other one allows, too.  The texts stay their lists'. */
static struct rbac_list common(const struct rbac_list *a, const struct rbac_list *b,
                               bool (*allows)(const struct rbac_list *, const char *))
{
    struct rbac_list l = {.at = xcalloc(a->n + b->n + 1, sizeof *l.at)};
    for (size_t i = 0; i < a->n; i++) {
        if (allows(b, a->at[i])) {
            add_once(&l, a->at[i]);
        }
    }
    for (size_t i = 0; i < b->n; i++) {
        if (allows(a, b->at[i])) {
            add_once(&l, b->at[i]);
        }
    }
    return l;
}

/* Names without any are all names. */
static struct rbac_list common_names(const struct rbac_list *a, const struct rbac_list *b)
{
    return common(a->n ? a : b, b->n ? b : a, lists);
}

static void hide(struct rbac_list *resources)
{
    size_t n = 0;
    for (size_t i = 0; i < resources->n; i++) {
        char *s = resources->at[i];
        size_t size = strcspn(s, "/");
        if (!is_hidden(NULL, s, size, s[size] ? s + size + 1 : "")) {
            resources->at[n++] = s;
        }
    }
    resources->n = n;
}

static void remove_verb(struct rbac_list *verbs, const char *verb)
{
    size_t n = 0;
    for (size_t i = 0; i < verbs->n; i++) {
        if (!streq(verbs->at[i], verb)) {
            verbs->at[n++] = verbs->at[i];
        }
    }
    verbs->n = n;
}

static bool meet_rule(void *ctx, const struct rbac_rule *rule, bool limited)
{
    const struct meet *m = ctx;
    struct rbac_rule both = {.verbs = common(&m->own->verbs, &rule->verbs, lists),
                             .groups = common(&m->own->groups, &rule->groups, lists),
                             .resources =
                                 common(&m->own->resources, &rule->resources, lists_resource),
                             .names = common_names(&m->own->names, &rule->names),
                             .urls = common(&m->own->urls, &rule->urls, lists_url)};
    if (limited) {
        hide(&both.resources);
        remove_verb(&both.verbs, "impersonate");
    }
    bool names_agree = !m->own->names.n || !rule->names.n || both.names.n;
    if (both.verbs.n && (both.urls.n || (both.groups.n && both.resources.n && names_agree))) {
        m->fn(m->ctx, &both);
    }
    free(both.verbs.at);
    free(both.groups.at);
    free(both.resources.at);
    free(both.names.at);
    free(both.urls.at);
    return true;
}

static void meet_scopes(void *ctx, const struct rbac_rule *rule)
{
    struct meet *m = ctx;
    m->own = rule;
    (void) walk(m->r, m->scopes, m->ns, meet_rule, m);
}

void scopes_each_rule(const struct rbac *r, const struct user_info *u, const char *ns,
                      rbac_rule_fn *fn, void *ctx)
{
    struct meet m = {.fn = fn, .ctx = ctx, .r = r, .scopes = scopes_of(u), .ns = ns};
    if (m.scopes) {
        rbac_each_rule(r, u, ns, meet_scopes, &m);
    } else {
        rbac_each_rule(r, u, ns, fn, ctx);
    }
}
