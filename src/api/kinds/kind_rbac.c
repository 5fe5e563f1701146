/* SPDX-License-Identifier: Apache-2.0 */
/* Roles and their bindings (rbac.authorization.k8s.io/v1). */
#include "api/kind_util.h"
#include "api/kinds.h"

#include "base/mem.h"

#include <stdio.h>

/* ---- roles ---- */

struct json *api_cell_created(const struct json *obj, int64_t now_ms)
{
    return api_cell_text(json_path_string(obj, "metadata", "creationTimestamp", NULL), "");
}

static void validate_rule(const char *field, const struct json *rule, bool namespaced,
                          struct api_causes *c)
{
    size_t groups = json_count(json_get(rule, "apiGroups"));
    size_t resources = json_count(json_get(rule, "resources"));
    size_t names = json_count(json_get(rule, "resourceNames"));
    const struct json *urls = json_get(rule, "nonResourceURLs");
    if (!json_count(json_get(rule, "verbs"))) {
        api_required(c, API_FIELD("%s.verbs", field), "verbs must contain at least one value");
    }
    if (json_count(urls)) {
        if (namespaced) {
            api_invalid(c, API_FIELD("%s.nonResourceURLs", field), urls,
                        "namespaced rules cannot apply to non-resource URLs");
        }
        if (groups || resources || names) {
            api_invalid(c, API_FIELD("%s.nonResourceURLs", field), urls,
                        "rules cannot apply to both regular resources and non-resource URLs");
        }
        return;
    }
    if (!groups) {
        api_required(c, API_FIELD("%s.apiGroups", field),
                     "resource rules must supply at least one api group");
    }
    if (!resources) {
        api_required(c, API_FIELD("%s.resources", field),
                     "resource rules must supply at least one resource");
    }
}

static void validate_rules(const struct json *rules, bool namespaced, struct api_causes *c)
{
    for (size_t i = 0; i < json_count(rules); i++) {
        validate_rule(API_FIELD("rules[%zu]", i), json_at(rules, i), namespaced, c);
    }
}

void kind_role_validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    validate_rules(json_get(obj, "rules"), true, c);
}

void kind_cluster_role_validate(const struct json *obj, const struct json *old,
                                struct api_causes *c)
{
    const struct json *aggregation = json_get(obj, "aggregationRule");
    validate_rules(json_get(obj, "rules"), false, c);
    if (aggregation && json_count(json_get(aggregation, "clusterRoleSelectors")) == 0) {
        api_required(c, "aggregationRule.clusterRoleSelectors",
                     "at least one clusterRoleSelector required if aggregationRule is non-nil");
    }
}

/* ---- bindings ---- */

void kind_role_binding_defaults(struct json *obj)
{
    struct json *subject;
    JSON_FOREACH (subject, json_get(obj, "subjects")) {
        const char *kind = json_path_string(subject, "kind", NULL);
        if (streq_null(kind, "User") || streq_null(kind, "Group")) {
            api_default_string(subject, "apiGroup", API_RBAC_GROUP);
        }
    }
}

/* 'namespaced': the binding's own namespace is that of accounts that name none. */
static void validate_subject(const char *field, const struct json *s, bool namespaced,
                             struct api_causes *c)
{
    static const char *const core[] = {"", NULL};
    static const char *const rbac[] = {API_RBAC_GROUP, NULL};
    const struct json *group = json_get(s, "apiGroup"), *name = json_get(s, "name");
    const char *has = json_get_string(group) ? json_get_string(group) : "";
    bool account = streq(json_path_string(s, "kind", NULL), "ServiceAccount");
    if (!streq(has, account ? "" : API_RBAC_GROUP)) {
        api_unsupported(c, API_FIELD("%s.apiGroup", field), group, account ? core : rbac);
    }
    const char *wrong = account ? api_check_dns_subdomain(json_get_string(name)) : NULL;
    if (wrong) {
        api_invalid(c, API_FIELD("%s.name", field), name, "%s", wrong);
    }
    if (account && !namespaced && json_string_size(json_get(s, "namespace")) == 0) {
        api_required(c, API_FIELD("%s.namespace", field), "");
    }
}

static void validate_binding(const struct json *obj, const struct json *old, bool namespaced,
                             struct api_causes *c)
{
    const struct json *ref = json_get(obj, "roleRef"), *subjects = json_get(obj, "subjects");
    for (size_t i = 0; i < json_count(subjects); i++) {
        validate_subject(API_FIELD("subjects[%zu]", i), json_at(subjects, i), namespaced, c);
    }
    if (old && !json_equal(ref, json_get(old, "roleRef"))) {
        api_invalid(c, "roleRef", ref, "cannot change roleRef");
    }
}

void kind_role_binding_validate(const struct json *obj, const struct json *old,
                                struct api_causes *c)
{
    validate_binding(obj, old, true, c);
}

void kind_cluster_role_binding_validate(const struct json *obj, const struct json *old,
                                        struct api_causes *c)
{
    static const char *const kinds[] = {"ClusterRole", NULL};
    const struct json *kind = json_path(obj, "roleRef", "kind", NULL);
    if (!streq(json_get_string(kind), kinds[0])) {
        api_unsupported(c, "roleRef.kind", kind, kinds);
    }
    validate_binding(obj, old, false, c);
}

struct json *kind_role_binding_cell_role(const struct json *obj, int64_t now_ms)
{
    const char *kind = json_path_string(obj, "roleRef", "kind", NULL);
    const char *name = json_path_string(obj, "roleRef", "name", NULL);
    return json_stringf("%s/%s", kind ? kind : "", name ? name : "");
}

static struct json *subjects_of(const struct json *obj, const char *kind)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const struct json *s;
    JSON_FOREACH (s, json_get(obj, "subjects")) {
        const char *name = json_path_string(s, "name", NULL);
        const char *ns = json_path_string(s, "namespace", NULL);
        if (name && streq_null(json_path_string(s, "kind", NULL), kind)) {
            strbuf_addf(&b, "%s%s%s%s", b.size ? ", " : "", ns ? ns : "", ns ? "/" : "", name);
        }
    }
    return json_string(strbuf_cstr(&b));
}

struct json *kind_role_binding_cell_users(const struct json *obj, int64_t now_ms)
{
    return subjects_of(obj, "User");
}

struct json *kind_role_binding_cell_groups(const struct json *obj, int64_t now_ms)
{
    return subjects_of(obj, "Group");
}

struct json *kind_role_binding_cell_accounts(const struct json *obj, int64_t now_ms)
{
    return subjects_of(obj, "ServiceAccount");
}
