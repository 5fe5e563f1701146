/* SPDX-License-Identifier: Apache-2.0 */
/* Bindings of roles, as oc of OpenShift 4 changes them: of the bindings of a role one gets the new
 * subject, a new binding is made where there is none, and a binding that has lost its last subject
 * is deleted. */
#include "cli/admin/adm_policy_roles.h"

#include "base/mem.h"

#include <stdio.h>

#define RBAC_GROUP "rbac.authorization.k8s.io"
#define RBAC_API RBAC_GROUP "/v1"
#define MAX_ATTEMPTS 10
#define MAX_NAMES \
    100 /* Names that are tried for a new binding: admin, admin-0, admin-1 and so on. */

static bool same_subject(const struct json *a, const struct json *b)
{
    return streq(json_get_text(a, "kind"), json_get_text(b, "kind")) &&
           streq(json_get_text(a, "name"), json_get_text(b, "name")) &&
           streq(json_get_text(a, "namespace"), json_get_text(b, "namespace"));
}

bool policy_has_subject(const struct json *list, const struct json *subject)
{
    const struct json *item;
    JSON_FOREACH (item, list) {
        if (same_subject(item, subject)) {
            return true;
        }
    }
    return false;
}

static char *bindings_path(const struct policy_roles *r, const char *name)
{
    return api_path(RBAC_API, r->ns ? "rolebindings" : "clusterrolebindings", r->ns, name, NULL);
}

static bool is_of_role(const struct policy_roles *r, const struct json *binding)
{
    const struct json *ref = json_get(binding, "roleRef");
    return streq(json_get_text(ref, "kind"), r->local ? "Role" : "ClusterRole") &&
           streq(json_get_text(ref, "name"), r->role);
}

static const char *binding_name(const struct json *binding)
{
    return json_get_text(json_get(binding, "metadata"), "name");
}

/* The binding to use: the named one, or the first of the role; NULL: there is none. */
static struct json *choose(const struct policy_roles *r, const struct json *list)
{
    struct json *item;
    JSON_FOREACH (item, json_get(list, "items")) {
        if (r->binding ? streq(binding_name(item), r->binding) : is_of_role(r, item)) {
            return item;
        }
    }
    return NULL;
}

static struct json *new_binding(const struct policy_roles *r, const char *name)
{
    struct json *o = json_object(), *ref;
    json_set_string(o, "kind", r->ns ? "RoleBinding" : "ClusterRoleBinding");
    json_set_string(o, "apiVersion", RBAC_API);
    json_set_string(json_ensure_object(o, "metadata"), "name", name);
    ref = json_ensure_object(o, "roleRef");
    json_set_string(ref, "apiGroup", RBAC_GROUP);
    json_set_string(ref, "kind", r->local ? "Role" : "ClusterRole");
    json_set_string(ref, "name", r->role);
    json_set(o, "subjects", json_clone(r->subjects));
    return o;
}

/* Makes a binding under the first free name.  -EEXIST: all are taken. */
static int make(struct session *s, const struct policy_roles *r, struct err *e)
{
    CLEANUP_FREE char *path = bindings_path(r, NULL);
    int status = -EEXIST;
    for (int i = -1; status == -EEXIST && i < (r->binding ? 0 : MAX_NAMES); i++) {
        CLEANUP_FREE char *name =
            i < 0 ? xstrdup(r->binding ? r->binding : r->role) : xasprintf("%s-%d", r->role, i);
        CLEANUP(json_free) struct json *o = new_binding(r, name);
        status = api_request_sync(s->client, "POST", path, NULL, NULL, o, NULL, e);
    }
    return status;
}

static int add_to(struct session *s, const struct policy_roles *r, struct json *binding,
                  struct err *e)
{
    CLEANUP_FREE char *path = bindings_path(r, binding_name(binding));
    const struct json *item;
    bool changed = false;
    if (!is_of_role(r, binding)) {
        return err_set(e, -ECANCELED, "the binding %s gives another role, which cannot be changed",
                       binding_name(binding));
    }
    JSON_FOREACH (item, r->subjects) {
        if (!policy_has_subject(json_get(binding, "subjects"), item)) {
            json_append(json_ensure_array(binding, "subjects"), json_clone(item));
            changed = true;
        }
    }
    return changed ? api_request_sync(s->client, "PUT", path, NULL, NULL, binding, NULL, e) : 0;
}

/* Takes the subjects out of one binding; '*found' says whether it had one of them. */
static int remove_from(struct session *s, const struct policy_roles *r, struct json *binding,
                       bool *found, struct err *e)
{
    CLEANUP_FREE char *path = bindings_path(r, binding_name(binding));
    struct json *kept = json_array();
    const struct json *item, *subjects = json_get(binding, "subjects");
    JSON_FOREACH (item, subjects) {
        if (!policy_has_subject(r->subjects, item)) {
            json_append(kept, json_clone(item));
        }
    }
    bool has = json_count(kept) < json_count(subjects), empty = json_count(kept) == 0;
    json_set(binding, "subjects", kept);
    *found |= has;
    if (!has) {
        return 0;
    }
    if (!empty) {
        return api_request_sync(s->client, "PUT", path, NULL, NULL, binding, NULL, e);
    }
    /* Not a binding to which another client has added a subject meanwhile. */
    CLEANUP(json_free) struct json *options = json_object();
    json_set_string(json_ensure_object(options, "preconditions"), "resourceVersion",
                    json_get_text(json_get(binding, "metadata"), "resourceVersion"));
    int status = api_request_sync(s->client, "DELETE", path, NULL, NULL, options, NULL, e);
    return status == -ENOENT ? 0 : status;
}

static int change(struct session *s, const struct policy_roles *r, bool *found, struct err *e)
{
    CLEANUP_FREE char *path = bindings_path(r, NULL);
    CLEANUP(json_free) struct json *list = NULL;
    struct json *item;
    int status = api_request_sync(s->client, "GET", path, NULL, NULL, NULL, &list, e);
    if (status < 0) {
        return status;
    }
    if (!r->removes) {
        struct json *binding = choose(r, list);
        *found = true;
        return binding ? add_to(s, r, binding, e) : make(s, r, e);
    }
    JSON_FOREACH (item, json_get(list, "items")) {
        bool named = !r->binding || streq(binding_name(item), r->binding);
        if (status == 0 && named && is_of_role(r, item)) {
            status = remove_from(s, r, item, found, e);
        }
    }
    return status;
}

/* A role that does not exist would give nothing, and nobody would notice. */
static int find_role(struct session *s, const struct policy_roles *r)
{
    CLEANUP_FREE char *path = api_path(RBAC_API, r->local ? "roles" : "clusterroles",
                                       r->local ? r->ns : NULL, r->role, NULL);
    struct err e = {0};
    int status = api_request_sync(s->client, "GET", path, NULL, NULL, NULL, NULL, &e);
    return status == 0 || status == -EACCES ? 0 : session_fail(s, &e, NULL);
}

int policy_roles_run(struct session *s, const struct policy_roles *r)
{
    struct err e = {0};
    bool found = false;
    int status = r->removes ? 0 : find_role(s, r);
    if (status) {
        return status;
    }
    status = -ESTALE;
    for (int i = 0; status == -ESTALE && i < MAX_ATTEMPTS; i++) {
        status = change(s, r, &found, &e);
    }
    if (status == -ECANCELED) {
        return session_error("%s", e.text);
    }
    if (status < 0) {
        return session_fail(s, &e, NULL);
    }
    if (!found) {
        return session_error("no binding of the role %s has any of these subjects", r->role);
    }
    printf("%s." RBAC_GROUP "/%s %s: ", r->local ? "role" : "clusterrole", r->role,
           r->removes ? "removed" : "added");
    for (size_t i = 0; i < json_count(r->names); i++) {
        printf("%s\"%s\"", i ? ", " : "", json_get_string(json_at(r->names, i)));
    }
    putchar('\n');
    return 0;
}
