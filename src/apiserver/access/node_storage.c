/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/access/node_storage.h"

#include "api/obj.h"
#include "storage/fields.h"

static bool is_kind(const struct api_kind *k, const char *group, const char *plural)
{
    return streq(k->group, group) && streq(k->plural, plural);
}

bool node_storage_is_partial(const struct api_kind *k)
{
    return is_kind(k, "", "persistentvolumeclaims") || is_kind(k, "", "persistentvolumes") ||
           is_kind(k, "storage.k8s.io", "csistoragecapacities") ||
           is_kind(k, "storage.k8s.io", "volumeattachments");
}

/* Whether the topology is one node's: its hostname, and nothing else. */
static bool is_of_node(const struct json *topology, const char *node)
{
    const struct json *labels = json_get(topology, "matchLabels");
    return json_count(json_get(topology, "matchExpressions")) == 0 && json_count(labels) == 1 &&
           streq(json_get_text(labels, STORAGE_HOSTNAME), node);
}

bool node_storage_sees(const char *node, const struct api_kind *k, const struct json *obj)
{
    if (is_kind(k, "", "persistentvolumeclaims")) {
        return streq_null(obj_annotation(obj, STORAGE_SELECTED_NODE), node);
    }
    if (is_kind(k, "", "persistentvolumes")) {
        return streq_null(storage_volume_node(obj), node) ||
               streq_null(obj_annotation(obj, STORAGE_RECYCLE_NODE), node);
    }
    return is_kind(k, "storage.k8s.io", "volumeattachments")
               ? streq(json_get_text(json_get(obj, "spec"), "nodeName"), node)
               : is_of_node(json_get(obj, "nodeTopology"), node);
}

bool node_storage_may_delete(const char *node, const struct json *volume)
{
    const struct json *spec = json_get(volume, "spec");
    return streq_null(storage_volume_node(volume), node) &&
           streq_null(obj_annotation(volume, STORAGE_PROVISIONED_BY), STORAGE_LOCAL_PROVISIONER) &&
           streq(json_get_text(spec, "persistentVolumeReclaimPolicy"), "Delete") &&
           streq(json_get_text(json_get(volume, "status"), "phase"), "Released");
}

bool node_storage_volume_reads(const struct json *volume, const char *resource, const char *ns,
                               const char *name)
{
    /* 'ref' NULL: the source itself names the object. */
    static const struct {
        const char *resource, *source, *ref, *name, *ns;
    } rows[] = {
        {"secrets", "csi", "nodeStageSecretRef", "name", "namespace"},
        {"secrets", "csi", "nodePublishSecretRef", "name", "namespace"},
        {"secrets", "rbd", "secretRef", "name", "namespace"},
        {"secrets", "azureFile", NULL, "secretName", "secretNamespace"},
        {"endpoints", "glusterfs", NULL, "endpoints", "endpointsNamespace"},
    };
    const char *claim_ns = json_get_text(json_path(volume, "spec", "claimRef", NULL), "namespace");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct json *source = json_path(volume, "spec", rows[i].source, NULL);
        const struct json *ref = rows[i].ref ? json_get(source, rows[i].ref) : source;
        const char *own = json_get_text(ref, rows[i].ns);
        if (streq(rows[i].resource, resource) && *name &&
            streq(json_get_text(ref, rows[i].name), name) && streq(*own ? own : claim_ns, ns)) {
            return true;
        }
    }
    return false;
}

static struct json *without_growth(const struct json *claim)
{
    static const char *const members[] = {"capacity", "conditions", "allocatedResources",
                                          "allocatedResourceStatuses"};
    const struct json *had = json_get(claim, "status");
    struct json *status = had ? json_clone(had) : json_object();
    for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
        json_remove(status, members[i]);
    }
    return status;
}

bool node_storage_status_is_kept(const struct json *claim, const struct json *old)
{
    CLEANUP(json_free) struct json *a = without_growth(claim);
    CLEANUP(json_free) struct json *b = without_growth(old);
    return json_equal(a, b);
}
