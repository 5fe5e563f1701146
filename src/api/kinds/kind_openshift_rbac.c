/* SPDX-License-Identifier: Apache-2.0 */
/* Roles and bindings in OpenShift's form (authorization.openshift.io/v1): views of the objects of
 * rbac.authorization.k8s.io/v1 (pkg/authorization/apis/authorization/rbacconversion of OpenShift
 * 3.11).  All rules about roles and bindings are those of RBAC; what is wrong is said with the
 * fields of the view. */
#include "api/kind_util.h"
#include "api/kinds.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>

#define ACCOUNT_PREFIX "system:serviceaccount:"

/* ---- annotations ---- */

/* An annotation that protects an object from the controller of default roles means the opposite in
 * RBAC. */
#define PROTECT "openshift.io/reconcile-protect"
#define AUTOUPDATE "rbac.authorization.kubernetes.io/autoupdate"

/* Replaces one annotation by the other one, which has the opposite value. */
static void invert(struct json *obj, const char *from, const char *to)
{
    struct json *annotations = json_get(json_get(obj, "metadata"), "annotations");
    const char *value = json_get_string(json_get(annotations, from));
    bool yes = streq_null(value, "true");
    if (yes || streq_null(value, "false")) {
        json_remove(annotations, from);
        json_set_string(annotations, to, yes ? "false" : "true");
    }
}

/* ---- rules ---- */

/* Copies the lists that have elements. */
static void copy_lists(struct json *to, const struct json *from, const char *const *keys)
{
    for (; *keys; keys++) {
        const struct json *list = json_get(from, *keys);
        if (json_count(list)) {
            json_set(to, *keys, json_clone(list));
        }
    }
}

static bool has_resources(const struct json *rule)
{
    return json_count(json_get(rule, "apiGroups")) || json_count(json_get(rule, "resources")) ||
           json_count(json_get(rule, "resourceNames"));
}

/* A rule of OpenShift may be about resources and paths, and is then two in RBAC. */
static bool is_double(const struct json *rule)
{
    return has_resources(rule) && json_count(json_get(rule, "nonResourceURLs"));
}

static void store_rule(struct json *to, const struct json *rule)
{
    static const char *const of_paths[] = {"verbs", "nonResourceURLs", NULL};
    static const char *const of_resources[] = {"verbs", "apiGroups", "resources", "resourceNames",
                                               NULL};
    bool paths = json_count(json_get(rule, "nonResourceURLs"));
    if (paths) {
        copy_lists(json_append(to, json_object()), rule, of_paths);
    }
    if (!paths || has_resources(rule)) {
        struct json *own = json_append(to, json_object());
        copy_lists(own, rule, of_resources);
        if (!json_count(json_get(own, "apiGroups"))) {
            json_append(json_ensure_array(own, "apiGroups"), json_string(""));
        }
    }
}

static void show_rule(struct json *rule)
{
    /* They are there in OpenShift's form, even empty. */
    json_ensure_array(rule, "resources");
    if (!json_get(rule, "apiGroups")) {
        json_set(rule, "apiGroups", json_null());
    }
}

static void show_role(struct json *obj)
{
    struct json *rules = json_get(obj, "rules");
    invert(obj, AUTOUPDATE, PROTECT);
    for (size_t i = 0; i < json_count(rules); i++) {
        show_rule(json_at(rules, i));
    }
}

static void store_role(struct json *obj)
{
    CLEANUP(json_free) struct json *rules = json_take(obj, "rules");
    struct json *own = json_set(obj, "rules", json_array());
    const struct json *rule;
    invert(obj, PROTECT, AUTOUPDATE);
    JSON_FOREACH (rule, rules) {
        store_rule(own, rule);
    }
}

const struct api_view kind_openshift_role_view = {
    .of = &api_kind_role, .show = show_role, .store = store_role};
const struct api_view kind_openshift_cluster_role_view = {
    .of = &api_kind_cluster_role, .show = show_role, .store = store_role};

/* ---- subjects ---- */

/* The name of the user that the subject is; owned; NULL: it is a group. */
static char *user_name(const struct json *subject)
{
    const char *kind = json_get_text(subject, "kind"), *name = json_get_text(subject, "name");
    return streq(kind, "ServiceAccount")
               ? xasprintf(ACCOUNT_PREFIX "%s:%s", json_get_text(subject, "namespace"), name)
           : streq(kind, "User") ? xstrdup(name)
                                 : NULL;
}

/* The kind of the subject in OpenShift's form: names that no User or Group object can have are
 * those of the system. */
static const char *kind_shown(const char *kind, const char *name)
{
    return streq(kind, "User") && user_check_name(name)     ? "SystemUser"
           : streq(kind, "Group") && group_check_name(name) ? "SystemGroup"
                                                            : kind;
}

static void show_binding(struct json *obj)
{
    CLEANUP(json_free) struct json *subjects = json_take(obj, "subjects");
    CLEANUP(json_free) struct json *ref = json_take(obj, "roleRef");
    struct json *users = json_set(obj, "userNames", json_array());
    struct json *groups = json_set(obj, "groupNames", json_array());
    struct json *shown = json_set(obj, "subjects", json_array());
    const char *ns = json_path_string(obj, "metadata", "namespace", NULL);
    const struct json *s;
    invert(obj, AUTOUPDATE, PROTECT);
    JSON_FOREACH (s, subjects) {
        const char *kind = json_get_text(s, "kind"), *name = json_get_text(s, "name");
        CLEANUP_FREE char *user = user_name(s);
        struct json *own = json_append(shown, json_object());
        json_set_string(own, "kind", kind_shown(kind, name));
        json_set_string(own, "namespace", json_path_string(s, "namespace", NULL));
        json_set_string(own, "name", name);
        json_append(user ? users : groups, json_string(user ? user : name));
    }
    struct json *role = json_set(obj, "roleRef", json_object());
    bool local = streq(json_get_text(ref, "kind"), "Role");
    json_set_string(role, "namespace", local ? ns : NULL);
    json_set_string(role, "name", json_get_text(ref, "name"));
}

static void add_subject(struct json *to, const char *kind, const char *ns, const char *name)
{
    struct json *s = json_append(to, json_object());
    bool account = streq(kind, "ServiceAccount");
    json_set_string(s, "kind", kind);
    json_set_string(s, "apiGroup", account ? NULL : API_RBAC_GROUP);
    json_set_string(s, "name", name);
    json_set_string(s, "namespace", account ? ns : NULL);
}

static void add_user(struct json *to, const char *name)
{
    const char *rest = str_has_prefix(name, ACCOUNT_PREFIX) ? name + sizeof ACCOUNT_PREFIX - 1 : "";
    const char *colon = strchr(rest, ':');
    if (colon && colon > rest && colon[1] && !strchr(colon + 1, ':')) {
        CLEANUP_FREE char *ns = xstrndup(rest, (size_t) (colon - rest));
        add_subject(to, "ServiceAccount", ns, colon + 1);
    } else {
        add_subject(to, "User", NULL, name);
    }
}

/* The subjects are those of the names, if the client sent any of these lists. */
static bool has_names(const struct json *obj)
{
    return json_is(json_get(obj, "userNames"), JSON_ARRAY) ||
           json_is(json_get(obj, "groupNames"), JSON_ARRAY);
}

static void store_subjects(struct json *to, const struct json *subjects, const char *own_namespace)
{
    const struct json *s;
    JSON_FOREACH (s, subjects) {
        const char *kind = json_get_text(s, "kind"), *ns = json_get_text(s, "namespace");
        add_subject(to,
                    streq(kind, "SystemUser")    ? "User"
                    : streq(kind, "SystemGroup") ? "Group"
                                                 : kind,
                    *ns ? ns : own_namespace, json_get_text(s, "name"));
    }
}

static void store_binding(struct json *obj)
{
    bool names = has_names(obj);
    CLEANUP(json_free) struct json *users = json_take(obj, "userNames");
    CLEANUP(json_free) struct json *groups = json_take(obj, "groupNames");
    CLEANUP(json_free) struct json *subjects = json_take(obj, "subjects");
    CLEANUP(json_free) struct json *ref = json_take(obj, "roleRef");
    struct json *own = json_array();
    const struct json *name;
    invert(obj, PROTECT, AUTOUPDATE);
    JSON_FOREACH (name, users) {
        const char *text = json_get_string(name);
        add_user(own, text ? text : "");
    }
    JSON_FOREACH (name, groups) {
        const char *text = json_get_string(name);
        add_subject(own, "Group", NULL, text ? text : "");
    }
    if (!names) {
        store_subjects(own, subjects, json_path_string(obj, "metadata", "namespace", NULL));
    }
    json_set(obj, "subjects", own);
    struct json *role = json_set(obj, "roleRef", json_object());
    json_set_string(role, "apiGroup", API_RBAC_GROUP);
    json_set_string(role, "kind", *json_get_text(ref, "namespace") ? "Role" : "ClusterRole");
    json_set_string(role, "name", json_get_text(ref, "name"));
}

const struct api_view kind_openshift_role_binding_view = {
    .of = &api_kind_role_binding, .show = show_binding, .store = store_binding};
const struct api_view kind_openshift_cluster_role_binding_view = {
    .of = &api_kind_cluster_role_binding, .show = show_binding, .store = store_binding};

/* ---- validation ---- */

/* Writes the field of the view that an element of the stored list comes from. */
typedef void origin_fn(const struct json *obj, size_t i, struct strbuf *out);

static void rule_origin(const struct json *obj, size_t i, struct strbuf *out)
{
    const struct json *rules = json_get(obj, "rules");
    size_t n = 0;
    for (size_t at = 0; n < json_count(rules); n++) {
        at += 1 + is_double(json_at(rules, n));
        if (at > i) {
            break;
        }
    }
    strbuf_addf(out, "rules[%zu]", n);
}

static void subject_origin(const struct json *obj, size_t i, struct strbuf *out)
{
    size_t users = json_count(json_get(obj, "userNames"));
    if (!has_names(obj)) {
        strbuf_addf(out, "subjects[%zu]", i);
    } else if (i < users) {
        strbuf_addf(out, "userNames[%zu]", i);
    } else {
        strbuf_addf(out, "groupNames[%zu]", i - users);
    }
}

/* Gives the causes from 'first' on, which are about the stored object, the fields of the view. */
static void rename_fields(const struct json *obj, const char *list, origin_fn *origin,
                          struct api_causes *c, size_t first)
{
    size_t n = strlen(list);
    for (size_t i = first; i < c->n; i++) {
        char *field = c->list[i].field, *end = strchr(field, ']');
        uint64_t at;
        if (strncmp(field, list, n) != 0 || field[n] != '[' || !end) {
            continue;
        }
        CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
        CLEANUP_FREE char *index = xstrndup(field + n + 1, (size_t) (end - field) - n - 1);
        if (str_to_u64(index, SIZE_MAX, &at) < 0) {
            continue;
        }
        origin(obj, (size_t) at, &out);
        if (!str_has_prefix(strbuf_cstr(&out), "userNames") &&
            !str_has_prefix(strbuf_cstr(&out), "groupNames")) {
            strbuf_adds(&out, end + 1);
        }
        c->list[i].field = xstrdup(strbuf_cstr(&out));
        free(field);
    }
}

/* The object is valid if the one that is stored for it is. */
static void validate_stored(const struct api_view *view, const struct json *obj,
                            const struct json *old, const char *list, origin_fn *origin,
                            struct api_causes *c)
{
    CLEANUP(json_free) struct json *stored = json_clone(obj);
    CLEANUP(json_free) struct json *before = old ? json_clone(old) : NULL;
    size_t first = c->n;
    view->store(stored);
    if (before) {
        view->store(before);
    }
    api_validate_object(view->of, stored, before, c);
    rename_fields(obj, list, origin, c, first);
}

/* A restriction that nothing honours would make a rule wider than its author wants. */
static void validate_restrictions(const struct json *obj, struct api_causes *c)
{
    const struct json *rules = json_get(obj, "rules");
    for (size_t i = 0; i < json_count(rules); i++) {
        const struct json *v = json_get(json_at(rules, i), "attributeRestrictions");
        if (v && !json_is(v, JSON_NULL)) {
            api_forbidden(c, API_FIELD("rules[%zu].attributeRestrictions", i),
                          "rules cannot have attribute restrictions");
        }
    }
}

void kind_openshift_role_validate(const struct json *obj, const struct json *old,
                                  struct api_causes *c)
{
    validate_restrictions(obj, c);
    validate_stored(&kind_openshift_role_view, obj, old, "rules", rule_origin, c);
}

void kind_openshift_cluster_role_validate(const struct json *obj, const struct json *old,
                                          struct api_causes *c)
{
    validate_restrictions(obj, c);
    validate_stored(&kind_openshift_cluster_role_view, obj, old, "rules", rule_origin, c);
}

void kind_openshift_role_binding_validate(const struct json *obj, const struct json *old,
                                          struct api_causes *c)
{
    const struct json *ns = json_path(obj, "roleRef", "namespace", NULL);
    const char *own = json_path_string(obj, "metadata", "namespace", NULL);
    if (json_string_size(ns) && !streq_null(json_get_string(ns), own)) {
        api_invalid(c, "roleRef.namespace", ns,
                    "must be empty, for a cluster role, or the namespace of the binding");
    }
    validate_stored(&kind_openshift_role_binding_view, obj, old, "subjects", subject_origin, c);
}

void kind_openshift_cluster_role_binding_validate(const struct json *obj, const struct json *old,
                                                  struct api_causes *c)
{
    const struct json *ns = json_path(obj, "roleRef", "namespace", NULL);
    if (json_string_size(ns)) {
        api_invalid(c, "roleRef.namespace", ns, "must be empty: the role is a cluster role");
        return;
    }
    validate_stored(&kind_openshift_cluster_role_binding_view, obj, old, "subjects", subject_origin,
                    c);
}

/* Brings the subjects of a valid binding into the form of answers, so that a client that sends back
 * what it got changes nothing.  An object that is wrong stays as it is, for what validation says. */
static void complete_subjects(struct json *obj, const struct json *old,
                              void (*validate)(const struct json *obj, const struct json *old,
                                               struct api_causes *c))
{
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    validate(obj, old, &causes);
    if (!causes.n) {
        store_binding(obj);
        show_binding(obj);
    }
}

void kind_openshift_role_binding_prepare(struct json *obj, const struct json *old)
{
    complete_subjects(obj, old, kind_openshift_role_binding_validate);
}

void kind_openshift_cluster_role_binding_prepare(struct json *obj, const struct json *old)
{
    complete_subjects(obj, old, kind_openshift_cluster_role_binding_validate);
}

/* ---- columns ---- */

struct json *kind_openshift_role_binding_cell_role(const struct json *obj, int64_t now_ms)
{
    const struct json *ref = json_get(obj, "roleRef");
    return json_stringf("%s/%s", json_get_text(ref, "namespace"), json_get_text(ref, "name"));
}

/* The names of the subjects of these kinds, without those of the other ones; 'other' may be NULL. */
static struct json *names_of(const struct json *obj, const char *kind, const char *other)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const struct json *s;
    JSON_FOREACH (s, json_get(obj, "subjects")) {
        const char *has = json_get_text(s, "kind"), *ns = json_get_text(s, "namespace");
        if (streq(has, kind) || (other && streq(has, other))) {
            strbuf_addf(&b, "%s%s%s%s", b.size ? ", " : "", ns, *ns ? "/" : "",
                        json_get_text(s, "name"));
        }
    }
    return json_string(strbuf_cstr(&b));
}

struct json *kind_openshift_role_binding_cell_users(const struct json *obj, int64_t now_ms)
{
    return names_of(obj, "User", "SystemUser");
}

struct json *kind_openshift_role_binding_cell_groups(const struct json *obj, int64_t now_ms)
{
    return names_of(obj, "Group", "SystemGroup");
}

struct json *kind_openshift_role_binding_cell_accounts(const struct json *obj, int64_t now_ms)
{
    return names_of(obj, "ServiceAccount", NULL);
}
