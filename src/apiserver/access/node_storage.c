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
