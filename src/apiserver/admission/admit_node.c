/* SPDX-License-Identifier: Apache-2.0 */
/* NodeRestriction: a node writes its own Node, mirrors of its static pods, the status of its pods,
 * the Lease and CSINode of its name, and the volumes that it makes or empties (admit_storage.c). */
#include "apiserver/admission/plugins.h"

#include "apiserver/access/node_storage.h"
#include "apiserver/access/security.h"
#include "apiserver/admission/addresses.h"
#include "pod/reference.h"

/* Absent and empty are the same. */
static bool same(const struct json *a, const struct json *b)
{
    return (!json_count(a) && !json_count(b)) || (a && b && json_equal(a, b));
}

static bool is_reserved(const char *label)
{
    const char *slash = strchr(label, '/');
    static const char domain[] = "node-restriction.kubernetes.io";
    size_t n = slash ? (size_t) (slash - label) : 0, d = sizeof domain - 1;
    return n >= d && strncmp(slash - d, domain, d) == 0 && (n == d || slash[-(int) d - 1] == '.');
}

/* A node may not set labels that administrators use to keep pods away from nodes. */
static bool labels_differ(const struct json *a, const struct json *b)
{
    for (size_t i = 0; i < json_count(a); i++) {
        const char *key = json_key_at(a, i);
        const struct json *other = json_get(b, key);
        if (is_reserved(key) && (!other || !json_equal(json_at(a, i), other))) {
            return true;
        }
    }
    return false;
}

static int check_node(struct request *q, const char *node, const struct json *obj,
                      const struct json *old, struct outcome *outcome)
{
    const char *name = json_path_string(obj, "metadata", "name", NULL);
    const struct json *labels = json_path(obj, "metadata", "labels", NULL);
    const struct json *before = json_path(old, "metadata", "labels", NULL);
    if (!streq_null(name, node)) {
        return admission_refuse(q, obj, "a node is only allowed to change its own Node", outcome);
    }
    if (labels_differ(labels, before) || labels_differ(before, labels)) {
        return admission_refuse(q, obj,
                                "a node is not allowed to set labels of "
                                "node-restriction.kubernetes.io",
                                outcome);
    }
    if (old &&
        !same(json_path(obj, "spec", "taints", NULL), json_path(old, "spec", "taints", NULL))) {
        return admission_refuse(q, obj, "a node is not allowed to change its taints", outcome);
    }
    if (json_count(json_path(obj, "metadata", "ownerReferences", NULL)) &&
        !same(json_path(obj, "metadata", "ownerReferences", NULL),
              json_path(old, "metadata", "ownerReferences", NULL))) {
        return admission_refuse(q, obj, "a node is not allowed to set owner references", outcome);
    }
    return addresses_admit_node(q, node, obj, old, outcome);
}

static bool is_own_node(const struct json *ref, const char *node, const char *uid)
{
    return streq_null(json_path_string(ref, "apiVersion", NULL), "v1") &&
           streq_null(json_path_string(ref, "kind", NULL), "Node") &&
           streq_null(json_path_string(ref, "name", NULL), node) &&
           streq_null(json_path_string(ref, "uid", NULL), uid) &&
           json_get_bool(json_get(ref, "controller"), false) &&
           !json_get_bool(json_get(ref, "blockOwnerDeletion"), false);
}

static bool refers_to_claims(const struct json *spec)
{
    const struct json *v;
    JSON_FOREACH (v, json_get(spec, "volumes")) {
        if (json_get(v, "persistentVolumeClaim") || json_get(v, "ephemeral")) {
            return true;
        }
    }
    return json_count(json_get(spec, "resourceClaims")) > 0;
}

/* A node creates mirrors of its static pods.  A mirror refers to nothing: what a node's pods refer
 * to, the node may read. */
static int check_new_pod(struct request *q, const char *node, const struct json *obj,
                         struct outcome *outcome)
{
    const struct json *spec = json_get(obj, "spec");
    const struct json *owners = json_path(obj, "metadata", "ownerReferences", NULL);
    CLEANUP(json_free)
    struct json *own = security_object(q->server->security, "", "nodes", NULL, node);
    const char *uid = json_path_string(own, "metadata", "uid", NULL);
    CLEANUP_FREE char *why = NULL;
    if (!admission_is_mirror(obj)) {
        why = xasprintf("pod does not have \"kubernetes.io/config.mirror\" annotation, node \"%s\" "
                        "can only create mirror pods",
                        node);
    } else if (!streq_null(json_path_string(spec, "nodeName", NULL), node)) {
        why = xasprintf("node \"%s\" can only create pods with spec.nodeName set to itself", node);
    } else if (json_count(owners) != 1 || !uid || !is_own_node(json_at(owners, 0), node, uid)) {
        why = xasprintf("node \"%s\" can only create pods with an owner reference set to itself",
                        node);
    } else if (pod_refers_to(spec, POD_SECRET, NULL)) {
        why = xasprintf("node \"%s\" can not create pods that reference secrets", node);
    } else if (pod_refers_to(spec, POD_CONFIG_MAP, NULL)) {
        why = xasprintf("node \"%s\" can not create pods that reference configmaps", node);
    } else if (refers_to_claims(spec)) {
        why = xasprintf("node \"%s\" can not create pods that reference persistentvolumeclaims",
                        node);
    }
    return why ? admission_refuse(q, obj, why, outcome)
               : addresses_admit_pod(q, node, obj, NULL, outcome);
}

int node_validate(struct request *q, const struct json *obj, const struct json *old,
                  struct outcome *outcome)
{
    const char *plural = q->kind->plural;
    const char *node = q->server->security->always_allow ? NULL : user_node(q->user);
    if (!node) {
        return 0;
    }
    if (streq(plural, "nodes")) {
        return check_node(q, node, obj, old, outcome);
    }
    if (streq(plural, "pods") && !old) {
        return check_new_pod(q, node, obj, outcome);
    }
    if (streq(plural, "pods")) {
        return addresses_admit_pod(q, node, obj, old, outcome);
    }
    if (node_storage_is_partial(q->kind)) {
        return storage_validate_node(q, node, obj, old, outcome);
    }
    if (!old && !streq_null(json_path_string(obj, "metadata", "name", NULL), node)) {
        return admission_refuse(q, obj,
                                streq(plural, "leases")
                                    ? "a node is only allowed to make the lease of its own name"
                                    : "a node is only allowed to make the CSINode of its own name",
                                outcome);
    }
    return 0;
}
