/* SPDX-License-Identifier: Apache-2.0 */
/* Escalation check: whether a user already has all the rights of a role.  Each combination of one
 * verb, group, resource and name must be covered by one rule of the user. */
#include "apiserver/access/rbac.h"

#include "base/mem.h"

struct owned {
    const struct rbac_rule **at;
    size_t n, cap;
};

static void own(void *ctx, const struct rbac_rule *rule)
{
    struct owned *o = ctx;
    o->at = grow(o->at, &o->cap, o->n + 1, sizeof *o->at);
    o->at[o->n++] = rule;
}

/* 'name' NULL: all names.  'resource' NULL: 'url' is checked instead. */
static bool covered(const struct owned *o, const char *verb, const char *group,
                    const char *resource, const char *name, const char *url)
{
    size_t size = resource ? strcspn(resource, "/") : 0;
    const char *rest = resource && resource[size] ? resource + size + 1 : "";
    for (size_t i = 0; i < o->n; i++) {
        const struct rbac_rule *r = o->at[i];
        bool all_names = !r->names.n;
        for (size_t j = 0; name && !all_names && j < r->names.n; j++) {
            all_names = streq(r->names.at[j], name);
        }
        if (rbac_list_allows(&r->verbs, verb) &&
            (url ? rbac_urls_allow(&r->urls, url)
                 : rbac_list_allows(&r->groups, group) &&
                       rbac_resources_allow(&r->resources, resource, size, rest) && all_names)) {
            return true;
        }
    }
    return false;
}

static void quoted(struct strbuf *out, const char *s)
{
    json_write_string(s, strlen(s), out);
}

/* Appends the 'n' missing verbs of one resource or path. */
static void add_missing_rule(struct strbuf *missing, const char *group, const char *resource,
                             const char *name, const char *url, const struct strbuf *verbs)
{
    strbuf_adds(missing, "\n{");
    if (url) {
        strbuf_adds(missing, "NonResourceURLs:[");
        quoted(missing, url);
    } else {
        strbuf_adds(missing, "APIGroups:[");
        quoted(missing, group);
        strbuf_adds(missing, "], Resources:[");
        quoted(missing, resource);
        if (name) {
            strbuf_adds(missing, "], ResourceNames:[");
            quoted(missing, name);
        }
    }
    strbuf_addf(missing, "], Verbs:[%s]}", strbuf_cstr(verbs));
}

static bool check(const struct owned *o, const struct rbac_rule *w, const char *group,
                  const char *resource, const char *name, const char *url, struct strbuf *missing)
{
    CLEANUP_STRBUF struct strbuf verbs = STRBUF_INIT;
    for (size_t v = 0; v < w->verbs.n; v++) {
        if (!covered(o, w->verbs.at[v], group, resource, name, url)) {
            strbuf_adds(&verbs, verbs.size ? " " : "");
            quoted(&verbs, w->verbs.at[v]);
        }
    }
    if (verbs.size) {
        add_missing_rule(missing, group, resource, name, url, &verbs);
    }
    return !verbs.size;
}

static bool check_rule(const struct owned *o, const struct rbac_rule *w, struct strbuf *missing)
{
    bool ok = true;
    for (size_t u = 0; u < w->urls.n; u++) {
        ok &= check(o, w, NULL, NULL, NULL, w->urls.at[u], missing);
    }
    for (size_t g = 0; g < w->groups.n; g++) {
        for (size_t r = 0; r < w->resources.n; r++) {
            for (size_t n = 0; n < MAX(w->names.n, (size_t) 1); n++) {
                ok &= check(o, w, w->groups.at[g], w->resources.at[r],
                            w->names.n ? w->names.at[n] : NULL, NULL, missing);
            }
        }
    }
    return ok;
}

/* Multiplies; the result saturates. */
static size_t times(size_t a, size_t b)
{
    return b && a > RBAC_MAX_COMBINATIONS / b ? RBAC_MAX_COMBINATIONS + 1 : a * b;
}

bool rbac_covers(const struct rbac *r, const struct user_info *u, const char *ns,
                 const struct rbac_rules *wanted, struct strbuf *missing)
{
    struct owned o = {0};
    size_t total = 0;
    bool ok = true;
    for (size_t i = 0; i < wanted->n && total <= RBAC_MAX_COMBINATIONS; i++) {
        const struct rbac_rule *w = &wanted->at[i];
        size_t n = times(times(w->groups.n, w->resources.n), MAX(w->names.n, (size_t) 1));
        /* check_rule walks the combinations of a rule without verbs as well. */
        total += times(n + w->urls.n, MAX(w->verbs.n, (size_t) 1));
    }
    if (total > RBAC_MAX_COMBINATIONS) {
        strbuf_adds(missing, "\nmore rules than can be checked");
        return false;
    }
    rbac_each_rule(r, u, ns, own, &o);
    for (size_t i = 0; i < wanted->n; i++) {
        ok &= check_rule(&o, &wanted->at[i], missing);
    }
    free(o.at);
    return ok;
}
