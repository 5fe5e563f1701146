/* SPDX-License-Identifier: Apache-2.0 */
/* NamespaceLifecycle: nothing is created in a namespace that is missing or being
 * deleted, and some namespaces cannot be deleted. */
#include "apiserver/admission/plugins.h"

/* A new object needs a namespace that exists and is not being deleted. */
static int check_exists(const struct request *q, const char *name, struct outcome *outcome)
{
    const char *ns = q->namespace;
    if (!ns) {
        return 0;
    }
    struct cache_kind *namespaces =
        cache_find(&q->server->cache, api_kind_find("", "v1", "namespaces"));
    const struct object *o = keyset_get(&namespaces->objects, ns);
    if (!o) {
        outcome_status(outcome, 404, "NotFound", ns, "namespaces \"%s\" not found", ns);
        outcome->kind = xstrdup("namespaces");
        return -ENOENT;
    }
    int phase = api_field_find(namespaces->kind, "status.phase");
    if (!streq(api_index_field(o->index, (size_t) phase), "Terminating")) {
        return 0;
    }
    CLEANUP_FREE char *why = xasprintf("namespace %s is being terminated", ns);
    outcome_status(outcome, 403, "Forbidden", name,
                   "%s \"%s\" is forbidden: unable to create new content in namespace %s because "
                   "it is being terminated",
                   RESOURCE_TEXT(q->kind), name ? name : "", ns);
    outcome_add_cause(outcome, "NamespaceTerminating", "metadata.namespace", why);
    return -EACCES;
}

/* These namespaces always exist, as in Kubernetes. */
static bool is_protected(const struct request *q)
{
    static const char *const names[] = {"default", "kube-system", "kube-public"};
    bool found = false;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        found |= streq(q->name, names[i]);
    }
    return found && api_kind_is_namespace(q->kind);
}

int namespace_admit(struct request *q, struct json *obj, const struct json *old,
                    struct outcome *outcome)
{
    if (obj) {
        return check_exists(q, json_path_string(obj, "metadata", "name", NULL), outcome);
    }
    if (!is_protected(q)) {
        return 0;
    }
    outcome_status(outcome, 403, "Forbidden", q->name,
                   "%s \"%s\" is forbidden: this namespace may not be deleted", q->kind->plural,
                   q->name);
    return -EACCES;
}
