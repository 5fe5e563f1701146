/* SPDX-License-Identifier: Apache-2.0 */
/* Roles and their bindings (rbac.authorization.k8s.io/v1). */
#include "api/kind_util.h"
#include "api/kinds.h"

#include "base/mem.h"

#include <stdio.h>

#define MAX_RULES 4096

/* ---- roles ---- */

struct json *api_cell_created(const struct json *obj, int64_t now_ms)
{
    return api_cell_text(json_path_string(obj, "metadata", "creationTimestamp", NULL), "");
}

/* A list of strings; their number. */
static size_t strings(const char *field, const struct json *list, struct api_causes *c)
{
    if (!api_field_array(c, field, list)) {
        return 0;
    }
    for (size_t i = 0; i < json_count(list); i++) {
        if (!json_is(json_at(list, i), JSON_STRING)) {
            api_invalid(c, API_FIELD("%s[%zu]", field, i), json_at(list, i), "must be a string");
        }
    }
    return json_count(list);
}

static void validate_rule(const char *field, const struct json *rule, bool namespaced,
                          struct api_causes *c)
{
    static const char *const names[] = {"verbs", "apiGroups", "resources", "resourceNames",
                                        "nonResourceURLs"};
    size_t n[ARRAY_SIZE(names)];
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        n[i] = strings(API_FIELD("%s.%s", field, names[i]), json_get(rule, names[i]), c);
    }
    const struct json *urls = json_get(rule, "nonResourceURLs");
    if (!n[0]) {
        api_required(c, API_FIELD("%s.verbs", field), "verbs must contain at least one value");
    }
    if (n[4]) {
        if (namespaced) {
            api_invalid(c, API_FIELD("%s.nonResourceURLs", field), urls,
                        "namespaced rules cannot apply to non-resource URLs");
        }
        if (n[1] || n[2] || n[3]) {
            api_invalid(c, API_FIELD("%s.nonResourceURLs", field), urls,
                        "rules cannot apply to both regular resources and non-resource URLs");
        }
        return;
    }
    if (!n[1]) {
        api_required(c, API_FIELD("%s.apiGroups", field),
                     "resource rules must supply at least one api group");
    }
    if (!n[2]) {
        api_required(c, API_FIELD("%s.resources", field),
                     "resource rules must supply at least one resource");
    }
}

static void validate_rules(const struct json *rules, bool namespaced, struct api_causes *c)
{
    if (!api_field_array(c, "rules", rules)) {
        return;
    }
    if (json_count(rules) > MAX_RULES) {
        api_too_many(c, "rules", json_count(rules), MAX_RULES);
        return;
    }
    for (size_t i = 0; i < json_count(rules); i++) {
        const char *field = API_FIELD("rules[%zu]", i);
        if (!json_is(json_at(rules, i), JSON_OBJECT)) {
            api_invalid(c, field, json_at(rules, i), "must be an object");
        } else {
            validate_rule(field, json_at(rules, i), namespaced, c);
        }
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
    const struct json *list = json_get(aggregation, "clusterRoleSelectors");
    validate_rules(json_get(obj, "rules"), false, c);
    if (!api_field_object(c, "aggregationRule", aggregation)) {
        return;
    }
    if (json_count(list) == 0) {
        api_required(c, "aggregationRule.clusterRoleSelectors",
                     "at least one clusterRoleSelector required if aggregationRule is non-nil");
    }
    for (size_t i = 0; i < json_count(list); i++) {
        api_field_object(c, API_FIELD("aggregationRule.clusterRoleSelectors[%zu]", i),
                         json_at(list, i));
    }
}

/* ---- bindings ---- */

void kind_role_binding_defaults(struct json *obj)
{
    struct json *ref = json_get(obj, "roleRef"), *subject;
    if (json_is(ref, JSON_OBJECT)) {
        api_default_string(ref, "apiGroup", API_RBAC_GROUP);
    }
    JSON_FOREACH (subject, json_get(obj, "subjects")) {
        const char *kind = json_path_string(subject, "kind", NULL);
        if (streq_null(kind, "User") || streq_null(kind, "Group")) {
            api_default_string(subject, "apiGroup", API_RBAC_GROUP);
        }
    }
}

static void validate_subject(const char *field, const struct json *s, struct api_causes *c)
{
    static const char *const kinds[] = {"ServiceAccount", "User", "Group", NULL};
    static const char *const core[] = {"", NULL};
    static const char *const rbac[] = {API_RBAC_GROUP, NULL};
    const struct json *group = json_get(s, "apiGroup"), *name = json_get(s, "name");
    const char *has = json_get_string(group) ? json_get_string(group) : "";
    api_field_string(c, API_FIELD("%s.name", field), name, true);
    if (!api_field_enum(c, API_FIELD("%s.kind", field), json_get(s, "kind"), true, kinds)) {
        return;
    }
    bool account = streq(json_get_string(json_get(s, "kind")), "ServiceAccount");
    if (!streq(has, account ? "" : API_RBAC_GROUP)) {
        api_unsupported(c, API_FIELD("%s.apiGroup", field), group, account ? core : rbac);
    }
    if (account) {
        api_field_checked(c, API_FIELD("%s.name", field), name, false, api_check_dns_subdomain);
        api_field_string(c, API_FIELD("%s.namespace", field), json_get(s, "namespace"), true);
    }
}

static void validate_binding(const struct json *obj, const struct json *old, bool cluster,
                             struct api_causes *c)
{
    static const char *const groups[] = {API_RBAC_GROUP, NULL};
    static const char *const any[] = {"Role", "ClusterRole", NULL};
    static const char *const cluster_only[] = {"ClusterRole", NULL};
    const struct json *ref = json_get(obj, "roleRef"), *subjects = json_get(obj, "subjects");
    api_field_enum(c, "roleRef.apiGroup", json_get(ref, "apiGroup"), true, groups);
    api_field_enum(c, "roleRef.kind", json_get(ref, "kind"), true, cluster ? cluster_only : any);
    api_field_checked(c, "roleRef.name", json_get(ref, "name"), true, api_check_path_segment);
    if (api_field_array(c, "subjects", subjects)) {
        for (size_t i = 0; i < json_count(subjects); i++) {
            const char *field = API_FIELD("subjects[%zu]", i);
            if (!json_is(json_at(subjects, i), JSON_OBJECT)) {
                api_invalid(c, field, json_at(subjects, i), "must be an object");
            } else {
                validate_subject(field, json_at(subjects, i), c);
            }
        }
    }
    if (old && !json_equal(ref, json_get(old, "roleRef"))) {
        api_invalid(c, "roleRef", ref, "cannot change roleRef");
    }
}

void kind_role_binding_validate(const struct json *obj, const struct json *old,
                                struct api_causes *c)
{
    validate_binding(obj, old, false, c);
}

void kind_cluster_role_binding_validate(const struct json *obj, const struct json *old,
                                        struct api_causes *c)
{
    validate_binding(obj, old, true, c);
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
