/* SPDX-License-Identifier: Apache-2.0 */
/* Admission of ownerReferences: OwnerReferencesPermissionEnforcement of Kubernetes.
 *
 * An object whose reference to its owner says blockOwnerDeletion holds up the owner's deletion in
 * the foreground, as a finalizer of the owner would.  So the user needs the right to set a
 * finalizer: update of the owner, or of its finalizers. */
#include "apiserver/admission/plugins.h"

#include "apiserver/access/authz.h"

static bool blocks(const struct json *ref)
{
    const struct json *v = json_get(ref, "blockOwnerDeletion");
    return v && !json_is(v, JSON_NULL) && json_get_bool(v, true);
}

static bool blocked_before(const struct json *old, const struct json *ref)
{
    const struct json *other;
    JSON_FOREACH (other, json_path(old, "metadata", "ownerReferences", NULL)) {
        if (blocks(other) && json_equal(other, ref)) {
            return true;
        }
    }
    return false;
}

/* Whether the user may set a finalizer of the owner. */
static bool may_hold(struct request *q, const struct api_kind *k, const char *name)
{
    const char *ns = k->namespaced ? q->namespace : NULL;
    CLEANUP_FREE char *finalizers = xasprintf("%s/finalizers", k->plural);
    struct security *s = q->server->security;
    return authz_may(s, q->user, "update", k->group, k->plural, ns, name) ||
           authz_may(s, q->user, "update", k->group, finalizers, ns, name);
}

int owner_validate(struct request *q, const struct json *obj, const struct json *old,
                   struct outcome *outcome)
{
    const struct json *list = json_path(obj, "metadata", "ownerReferences", NULL);
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *ref = json_at(list, i);
        const char *version = json_path_string(ref, "apiVersion", NULL);
        const char *kind = json_path_string(ref, "kind", NULL);
        const char *name = json_path_string(ref, "name", NULL);
        if (!blocks(ref) || blocked_before(old, ref) || !version || !kind || !name) {
            continue; /* Validation refuses incomplete references. */
        }
        const struct api_kind *k = api_registry_by_name(&q->server->cache.registry, version, kind);
        if (!k || !may_hold(q, k, name)) {
            return admission_refuse_field(
                q, obj, API_FIELD("metadata.ownerReferences[%zu].blockOwnerDeletion", i),
                "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't "
                "set finalizers on",
                outcome);
        }
    }
    return 0;
}
