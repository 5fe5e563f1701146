/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/access/rbac.h"

#include "base/map.h"
#include "base/mem.h"

#define KIND_CLUSTER_ROLE "ClusterRole"

struct binding_subject {
    char *key; /* In 'subjects'. */
    bool account;
};

struct binding {
    char *ns, *name; /* 'ns' NULL: a ClusterRoleBinding. */
    char *role;      /* Its key in 'roles'. */
    char *role_kind, *role_name;
    struct binding_subject *subjects;
    size_t n_subjects;
};

/* The bindings of one subject in one namespace. */
struct subject {
    struct binding **at;
    size_t n, cap;
};

struct rbac {
    struct smap roles;    /* "NS/NAME" or "/NAME" to struct rbac_rules. */
    struct smap bindings; /* Key to struct binding. */
    struct smap subjects; /* "NS/user:NAME", "/group:NAME", ... to struct subject. */
};

/* ---- rules ---- */

static void list_parse(const struct json *v, struct rbac_list *ret)
{
    const struct json *item;
    size_t cap = 0;
    JSON_FOREACH (item, v) {
        if (json_is(item, JSON_STRING)) {
            ret->at = grow(ret->at, &cap, ret->n + 1, sizeof *ret->at);
            ret->at[ret->n++] = xstrdup(json_get_string(item));
        }
    }
}

static void list_done(struct rbac_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->at[i]);
    }
    free(l->at);
}

static bool has(const struct rbac_list *l, const char *s)
{
    for (size_t i = 0; i < l->n; i++) {
        if (streq(l->at[i], s)) {
            return true;
        }
    }
    return false;
}

bool rbac_list_allows(const struct rbac_list *l, const char *s)
{
    for (size_t i = 0; i < l->n; i++) {
        if (streq(l->at[i], "*") || streq(l->at[i], s)) {
            return true;
        }
    }
    return false;
}

void rbac_rules_parse(const struct json *rules, struct rbac_rules *ret)
{
    *ret = (struct rbac_rules){.at = xcalloc(json_count(rules) + 1, sizeof *ret->at)};
    const struct json *rule;
    JSON_FOREACH (rule, rules) {
        struct rbac_rule *r = &ret->at[ret->n++];
        list_parse(json_get(rule, "verbs"), &r->verbs);
        list_parse(json_get(rule, "apiGroups"), &r->groups);
        list_parse(json_get(rule, "resources"), &r->resources);
        list_parse(json_get(rule, "resourceNames"), &r->names);
        list_parse(json_get(rule, "nonResourceURLs"), &r->urls);
    }
}

void rbac_rules_done(struct rbac_rules *rules)
{
    for (size_t i = 0; i < rules->n; i++) {
        struct rbac_rule *r = &rules->at[i];
        list_done(&r->verbs);
        list_done(&r->groups);
        list_done(&r->resources);
        list_done(&r->names);
        list_done(&r->urls);
    }
    free(rules->at);
    *rules = (struct rbac_rules){0};
}

static void list_write(struct json *to, const char *key, const struct rbac_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        json_append(json_ensure_array(to, key), json_string(l->at[i]));
    }
}

struct json *rbac_rule_object(const struct rbac_rule *r)
{
    struct json *o = json_object();
    list_write(o, "verbs", &r->verbs);
    list_write(o, "apiGroups", &r->groups);
    list_write(o, "resources", &r->resources);
    list_write(o, "resourceNames", &r->names);
    list_write(o, "nonResourceURLs", &r->urls);
    return o;
}

bool rbac_resources_allow(const struct rbac_list *l, const char *resource, size_t n,
                          const char *subresource)
{
    for (size_t i = 0; i < l->n; i++) {
        const char *s = l->at[i];
        if (streq(s, "*")) {
            return true;
        }
        if (!*subresource) {
            if (strncmp(s, resource, n) == 0 && !s[n]) {
                return true;
            }
        } else if ((str_has_prefix(s, "*/") && streq(s + 2, subresource)) ||
                   (strncmp(s, resource, n) == 0 && s[n] == '/' && streq(s + n + 1, subresource))) {
            return true;
        }
    }
    return false;
}

bool rbac_urls_allow(const struct rbac_list *l, const char *path)
{
    for (size_t i = 0; i < l->n; i++) {
        const char *s = l->at[i];
        size_t n = strlen(s);
        if (streq(s, path) || (n && s[n - 1] == '*' && strncmp(s, path, n - 1) == 0)) {
            return true;
        }
    }
    return false;
}

bool rbac_rule_allows(const struct rbac_rule *r, const struct attributes *a)
{
    if (!rbac_list_allows(&r->verbs, a->verb)) {
        return false;
    }
    if (!a->is_resource) {
        return rbac_urls_allow(&r->urls, a->path);
    }
    return rbac_list_allows(&r->groups, a->group) &&
           rbac_resources_allow(&r->resources, a->resource, strlen(a->resource), a->subresource) &&
           (!r->names.n || has(&r->names, a->name));
}

/* ---- the index ---- */

static void free_rules(void *p)
{
    rbac_rules_done(p);
    free(p);
}

static void free_binding(void *p)
{
    struct binding *b = p;
    for (size_t i = 0; i < b->n_subjects; i++) {
        free(b->subjects[i].key);
    }
    free(b->subjects);
    free(b->ns);
    free(b->name);
    free(b->role);
    free(b->role_kind);
    free(b->role_name);
    free(b);
}

static void free_subject(void *p)
{
    free(((struct subject *) p)->at);
    free(p);
}

struct rbac *rbac_new(void)
{
    struct rbac *r = NEW(struct rbac);
    smap_init(&r->roles, free_rules);
    smap_init(&r->bindings, free_binding);
    smap_init(&r->subjects, free_subject);
    return r;
}

struct rbac *rbac_free(struct rbac *r)
{
    if (r) {
        smap_done(&r->subjects);
        smap_done(&r->bindings);
        smap_done(&r->roles);
        free(r);
    }
    return NULL;
}

static char *object_key(const char *ns, const char *name)
{
    return xasprintf("%s/%s", ns ? ns : "", name);
}

void rbac_set_role(struct rbac *r, const char *ns, const char *name, const struct json *obj)
{
    CLEANUP_FREE char *key = object_key(ns, name);
    if (!obj) {
        smap_remove(&r->roles, key);
        return;
    }
    struct rbac_rules *rules = NEW(struct rbac_rules);
    rbac_rules_parse(json_get(obj, "rules"), rules);
    smap_set(&r->roles, key, rules);
}

/* NULL: the subject cannot be a user. */
static char *subject_key(const char *ns, const struct json *s)
{
    const char *kind = json_path_string(s, "kind", NULL), *name = json_path_string(s, "name", NULL);
    const char *in = json_path_string(s, "namespace", NULL);
    in = in && *in ? in : ns;
    if (!kind || !name) {
        return NULL;
    }
    if (streq(kind, "User")) {
        return xasprintf("%s/user:%s", ns ? ns : "", name);
    }
    if (streq(kind, "Group")) {
        return xasprintf("%s/group:%s", ns ? ns : "", name);
    }
    if (streq(kind, "ServiceAccount") && in) {
        return xasprintf("%s/user:" SERVICE_ACCOUNT_PREFIX "%s:%s", ns ? ns : "", in, name);
    }
    return NULL;
}

static void subject_add(struct rbac *r, const char *key, struct binding *b)
{
    struct subject *s = smap_get(&r->subjects, key);
    if (!s) {
        s = NEW(struct subject);
        smap_set(&r->subjects, key, s);
    }
    s->at = grow(s->at, &s->cap, s->n + 1, sizeof *s->at);
    s->at[s->n++] = b;
}

static void subject_remove(struct rbac *r, const char *key, const struct binding *b)
{
    struct subject *s = smap_get(&r->subjects, key);
    size_t i = 0;
    while (s && i < s->n && s->at[i] != b) {
        i++;
    }
    if (s && i < s->n) {
        s->at[i] = s->at[--s->n];
        if (!s->n) {
            smap_remove(&r->subjects, key);
        }
    }
}

void rbac_set_binding(struct rbac *r, const char *ns, const char *name, const struct json *obj)
{
    CLEANUP_FREE char *key = object_key(ns, name);
    struct binding *b = smap_get(&r->bindings, key);
    if (b) {
        for (size_t i = 0; i < b->n_subjects; i++) {
            subject_remove(r, b->subjects[i].key, b);
        }
        smap_remove(&r->bindings, key);
    }
    const char *kind = json_path_string(obj, "roleRef", "kind", NULL);
    const char *role = json_path_string(obj, "roleRef", "name", NULL);
    const struct json *subjects = json_get(obj, "subjects"), *s;
    if (!kind || !role || (!ns && !streq(kind, KIND_CLUSTER_ROLE))) {
        return;
    }
    b = NEW(struct binding);
    b->ns = ns ? xstrdup(ns) : NULL;
    b->name = xstrdup(name);
    b->role = object_key(streq(kind, KIND_CLUSTER_ROLE) ? NULL : ns, role);
    b->role_kind = xstrdup(kind);
    b->role_name = xstrdup(role);
    b->subjects = xcalloc(json_count(subjects) + 1, sizeof *b->subjects);
    JSON_FOREACH (s, subjects) {
        char *subject = subject_key(ns, s);
        if (subject) {
            bool account = streq_null(json_path_string(s, "kind", NULL), "ServiceAccount");
            b->subjects[b->n_subjects++] = (struct binding_subject){subject, account};
            subject_add(r, subject, b);
        }
    }
    smap_set(&r->bindings, key, b);
}

/* ---- evaluation ---- */

/* Called for the bindings of a user, first those of the cluster, then those of 'ns'; 'subject' is
 * the key of the subject that is the user. Returns false to end the walk. */
typedef bool visit_fn(void *ctx, const struct binding *b, const char *subject,
                      const struct rbac_rules *rules);

static bool visit_subject(const struct rbac *r, const char *ns, const char *type, const char *name,
                          struct strbuf *key, visit_fn *fn, void *ctx)
{
    strbuf_reset(key);
    strbuf_addf(key, "%s/%s:%s", ns, type, name);
    const struct subject *s = smap_get(&r->subjects, strbuf_cstr(key));
    for (size_t i = 0; s && i < s->n; i++) {
        if (!fn(ctx, s->at[i], strbuf_cstr(key), smap_get(&r->roles, s->at[i]->role))) {
            return false;
        }
    }
    return true;
}

static bool visit(const struct rbac *r, const struct user_info *u, const char *ns, visit_fn *fn,
                  void *ctx)
{
    CLEANUP_STRBUF struct strbuf key = STRBUF_INIT;
    const char *scopes[] = {"", ns};
    for (size_t i = 0; i < (ns && *ns ? 2 : 1); i++) {
        if (!visit_subject(r, scopes[i], "user", u->name, &key, fn, ctx)) {
            return false;
        }
        for (size_t g = 0; g < u->n_groups; g++) {
            if (!visit_subject(r, scopes[i], "group", u->groups[g], &key, fn, ctx)) {
                return false;
            }
        }
    }
    return true;
}

struct decision {
    const struct attributes *a;
    struct strbuf *why;
};

/* Adds 'Group "NAME"', or for a service account 'ServiceAccount "NAME/NAMESPACE"'. */
static void add_subject(struct strbuf *out, const struct binding *b, const char *key)
{
    const char *subject = strchr(key, '/') + 1, *name = strchr(subject, ':') + 1;
    bool account = false;
    for (size_t i = 0; i < b->n_subjects && !account; i++) {
        account = b->subjects[i].account && streq(b->subjects[i].key, key);
    }
    CLEANUP_FREE char *in = NULL;
    CLEANUP_FREE char *own = NULL;
    if (account && user_parse_service_account(name, &in, &own)) {
        strbuf_addf(out, "ServiceAccount \"%s/%s\"", own, in);
    } else {
        strbuf_addf(out, "%s \"%s\"", str_has_prefix(subject, "group:") ? "Group" : "User", name);
    }
}

static void add_binding(struct strbuf *out, const struct binding *b, const char *subject)
{
    strbuf_reset(out);
    strbuf_addf(out, "allowed by %s \"%s%s%s\" of %s \"%s\" to ",
                b->ns ? "RoleBinding" : "ClusterRoleBinding", b->name, b->ns ? "/" : "",
                b->ns ? b->ns : "", b->role_kind, b->role_name);
    add_subject(out, b, subject);
}

static void add_missing(struct strbuf *out, const struct binding *b)
{
    CLEANUP_FREE char *kind = xstrdup(b->role_kind);
    for (char *p = kind; *p; p++) {
        *p = (char) (*p >= 'A' && *p <= 'Z' ? *p - 'A' + 'a' : *p);
    }
    strbuf_addf(out, "%s%s.rbac.authorization.k8s.io \"%s\" not found", out->size ? ", " : "", kind,
                b->role_name);
}

static bool rules_allow(const struct rbac_rules *rules, const struct attributes *a)
{
    size_t i = 0;
    while (rules && i < rules->n && !rbac_rule_allows(&rules->at[i], a)) {
        i++;
    }
    return rules && i < rules->n;
}

static bool decide(void *ctx, const struct binding *b, const char *subject,
                   const struct rbac_rules *rules)
{
    struct decision *d = ctx;
    if (!rules && d->why) {
        add_missing(d->why, b);
    }
    if (!rules_allow(rules, d->a)) {
        return true;
    }
    if (d->why) {
        add_binding(d->why, b, subject);
    }
    return false;
}

bool rbac_allows(const struct rbac *r, const struct user_info *u, const struct attributes *a,
                 struct strbuf *why)
{
    struct decision d = {.a = a, .why = why};
    return !visit(r, u, a->is_resource ? a->namespace : NULL, decide, &d);
}

void rbac_each_subject(const struct rbac *r, const struct attributes *a, rbac_subject_fn *fn,
                       void *ctx, struct strbuf *missing)
{
    const char *ns = a->is_resource ? a->namespace : "";
    const struct smap_entry *e;
    SMAP_FOREACH (e, &r->bindings) {
        const struct binding *b = e->value;
        if (b->ns && !streq(b->ns, ns)) {
            continue;
        }
        const struct rbac_rules *rules = smap_get(&r->roles, b->role);
        if (!rules) {
            add_missing(missing, b);
        }
        for (size_t i = 0; rules_allow(rules, a) && i < b->n_subjects; i++) {
            const char *subject = strchr(b->subjects[i].key, '/') + 1;
            fn(ctx, strchr(subject, ':') + 1, str_has_prefix(subject, "group:"));
        }
    }
}

struct each {
    rbac_rule_fn *fn;
    void *ctx;
};

static bool each_rule(void *ctx, const struct binding *b, const char *subject,
                      const struct rbac_rules *rules)
{
    struct each *e = ctx;
    for (size_t i = 0; rules && i < rules->n; i++) {
        e->fn(e->ctx, &rules->at[i]);
    }
    return true;
}

void rbac_each_rule(const struct rbac *r, const struct user_info *u, const char *ns,
                    rbac_rule_fn *fn, void *ctx)
{
    struct each e = {fn, ctx};
    (void) visit(r, u, ns, each_rule, &e);
}

const struct rbac_rules *rbac_role(const struct rbac *r, const char *ns, const char *kind,
                                   const char *name)
{
    CLEANUP_FREE char *key = object_key(streq(kind, KIND_CLUSTER_ROLE) ? NULL : ns, name);
    return smap_get(&r->roles, key);
}
