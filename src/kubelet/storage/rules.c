/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/storage/rules.h"

#include "api/obj.h"
#include "api/quantity.h"
#include "base/mem.h"
#include "kubelet/volumes/local_dirs.h"

#define FAILURE_MAX 1000
/* Longer names are those of a class and a node that are both very long. */
#define NAME_MAX_SIZE 253

bool local_claim_is_selected(const struct json *claim, const char *node)
{
    return streq_null(obj_annotation(claim, STORAGE_SELECTED_NODE), node) &&
           !*json_get_text(json_get(claim, "spec"), "volumeName") && !obj_is_terminating(claim);
}

static int check_class(const struct json *class, bool *ret_image, struct err *e)
{
    const struct json *parameters = json_get(class, "parameters");
    *ret_image = false;
    for (size_t i = 0; i < json_count(parameters); i++) {
        const char *key = json_key_at(parameters, i);
        const char *value = json_get_string(json_at(parameters, i));
        value = value ? value : "";
        if (!streq(key, "backing")) {
            return err_set(e, -EINVAL, "the class has the unknown parameter %.100s", key);
        }
        if (!streq(value, "loop") && !streq(value, "directory")) {
            return err_set(
                e, -EINVAL,
                "the class's parameter backing is %.100s, and neither loop nor directory", value);
        }
        *ret_image = streq(value, "loop");
    }
    return 0;
}

bool local_is_block(const struct json *claim)
{
    return streq(json_get_text(json_get(claim, "spec"), "volumeMode"), "Block");
}

int local_claim_check(const struct json *claim, const struct json *class, int64_t *ret_bytes,
                      bool *ret_image, struct err *e)
{
    const struct json *spec = json_get(claim, "spec"), *mode;
    const char *size = json_path_string(spec, "resources", "requests", "storage", NULL);
    int64_t bytes;
    bool image;
    int r = check_class(class, &image, e);
    if (r < 0) {
        return r;
    }
    if (json_get(spec, "selector")) {
        return err_set(e, -EOPNOTSUPP, "claim.Spec.Selector is not supported");
    }
    if (json_get(spec, "dataSource") || json_get(spec, "dataSourceRef")) {
        return err_set(e, -EOPNOTSUPP, "volumes are not made from a data source");
    }
    JSON_FOREACH (mode, json_get(spec, "accessModes")) {
        const char *text = json_get_string(mode);
        if (!text || (!streq(text, "ReadWriteOnce") && !streq(text, "ReadWriteOncePod"))) {
            return err_set(e, -EOPNOTSUPP,
                           "the access mode %.40s is not supported: a volume is on one node",
                           text ? text : "(none)");
        }
    }
    if (!size || api_quantity_value(size, 0, &bytes, NULL) < 0 || bytes <= 0) {
        return err_set(e, -EINVAL, "spec.resources.requests.storage is not a size");
    }
    *ret_bytes = bytes;
    *ret_image = image || local_is_block(claim);
    return 0;
}

char *local_volume_name(const struct json *claim)
{
    return xasprintf("pvc-%s", obj_uid(claim));
}

/* {"nodeSelectorTerms": [{"matchExpressions": [hostname In [node]]}]} */
static struct json *on_node(const char *node)
{
    struct json *selector = json_object();
    struct json *terms = json_set(selector, "nodeSelectorTerms", json_array());
    struct json *term = json_append(terms, json_object());
    struct json *list = json_set(term, "matchExpressions", json_array());
    struct json *expression = json_append(list, json_object());
    json_set_string(expression, "key", STORAGE_HOSTNAME);
    json_set_string(expression, "operator", "In");
    json_append(json_set(expression, "values", json_array()), json_string(node));
    return selector;
}

struct json *local_volume_make(const struct json *claim, const struct json *class, const char *node,
                               const char *folder)
{
    CLEANUP_FREE char *name = local_volume_name(claim);
    const struct json *from = json_get(claim, "spec");
    const char *policy = json_get_text(class, "reclaimPolicy");
    struct json *pv = obj_new("v1", "PersistentVolume", NULL, name);
    struct json *spec = json_set(pv, "spec", json_object());
    obj_set_annotation(pv, STORAGE_PROVISIONED_BY, STORAGE_LOCAL_PROVISIONER);
    json_set(json_ensure_object(spec, "capacity"), "storage",
             json_clone(json_path(from, "resources", "requests", "storage", NULL)));
    json_set(spec, "accessModes", json_clone(json_get(from, "accessModes")));
    json_set_string(spec, "persistentVolumeReclaimPolicy", *policy ? policy : "Delete");
    json_set_string(spec, "storageClassName", obj_name(class));
    json_set(spec, "mountOptions", json_clone(json_get(class, "mountOptions")));
    json_set_string(spec, "volumeMode", local_is_block(claim) ? "Block" : "Filesystem");
    json_set(json_ensure_object(spec, "local"), "path", json_stringf("%s/%s", folder, name));
    json_set(json_ensure_object(spec, "nodeAffinity"), "required", on_node(node));
    struct json *ref = json_set(spec, "claimRef", json_object());
    json_set_string(ref, "apiVersion", "v1");
    json_set_string(ref, "kind", "PersistentVolumeClaim");
    json_set_string(ref, "namespace", obj_namespace(claim));
    json_set_string(ref, "name", obj_name(claim));
    json_set_string(ref, "uid", obj_uid(claim));
    return pv;
}

struct json *local_unselect_patch(void)
{
    struct json *patch = json_object();
    struct json *notes = json_ensure_object(json_ensure_object(patch, "metadata"), "annotations");
    json_set(notes, STORAGE_SELECTED_NODE, json_null());
    return patch;
}

bool local_volume_is_own(const struct json *pv, const char *node, const char *folder)
{
    const char *name = obj_name(pv);
    CLEANUP_FREE char *path = xasprintf("%s/%s", folder, name);
    CLEANUP(json_free) struct json *affinity = on_node(node);
    return streq_null(obj_annotation(pv, STORAGE_PROVISIONED_BY), STORAGE_LOCAL_PROVISIONER) &&
           local_dir_name_is_valid(name) &&
           json_equal(json_path(pv, "spec", "nodeAffinity", "required", NULL), affinity) &&
           streq_null(json_path_string(pv, "spec", "local", "path", NULL), path);
}

static bool is_released(const struct json *pv, const char *policy)
{
    return streq(json_get_text(json_get(pv, "status"), "phase"), "Released") &&
           streq(json_get_text(json_get(pv, "spec"), "persistentVolumeReclaimPolicy"), policy) &&
           !obj_is_terminating(pv);
}

bool local_volume_is_to_go(const struct json *pv)
{
    return is_released(pv, "Delete");
}

struct json *local_capacity_make(const char *ns, const char *class, const struct json *node,
                                 int64_t bytes)
{
    CLEANUP_FREE char *full = xasprintf("%s.%s", class, obj_name(node));
    CLEANUP_FREE char *hash =
        xasprintf("local-%016llx", (unsigned long long) hash_bytes(full, strlen(full)));
    struct json *obj = obj_new("storage.k8s.io/v1", "CSIStorageCapacity", ns,
                               strlen(full) <= NAME_MAX_SIZE ? full : hash);
    struct json *owners = json_ensure_array(json_get(obj, "metadata"), "ownerReferences");
    struct json *owner = json_append(owners, json_object());
    json_set_string(owner, "apiVersion", "v1");
    json_set_string(owner, "kind", "Node");
    json_set_string(owner, "name", obj_name(node));
    json_set_string(owner, "uid", obj_uid(node));
    json_set_string(obj, "storageClassName", class);
    struct json *labels =
        json_ensure_object(json_ensure_object(obj, "nodeTopology"), "matchLabels");
    json_set_string(labels, STORAGE_HOSTNAME, obj_name(node));
    json_set(obj, "capacity", json_stringf("%lld", (long long) bytes));
    return obj;
}

int64_t local_capacity_left(int64_t free_bytes, int64_t margin, int64_t outstanding)
{
    int64_t left = free_bytes - margin;
    return left > outstanding ? left - outstanding : 0;
}

bool recycle_is_due(const struct json *pv, const char *node)
{
    return is_released(pv, "Recycle") &&
           streq_null(obj_annotation(pv, STORAGE_RECYCLE_NODE), node) &&
           !obj_annotation(pv, STORAGE_RECYCLED) && !obj_annotation(pv, STORAGE_RECYCLE_FAILED);
}

int recycle_check_path(const char *path, const char *prefixes, struct err *e)
{
    CLEANUP_FREE char *ends = xasprintf("%s/", path);
    if (*path != '/' || strstr(ends, "/../") || strstr(ends, "/./") || strstr(ends, "//")) {
        return err_set(e, -EPERM, "the path %.256s is not absolute and plain", path);
    }
    for (const char *p = prefixes; p && *p;) {
        size_t n = strcspn(p, ",");
        size_t size = n;
        while (size > 1 && p[size - 1] == '/') {
            size--;
        }
        /* Below the prefix, and not the prefix itself: its other members are not the volume's. */
        if (size > 1 && strncmp(path, p, size) == 0 && path[size] == '/' && path[size + 1]) {
            return 0;
        }
        p += n + (p[n] == ',');
    }
    return err_set(e, -EPERM,
                   "the path %.256s is below none of the node's recyclePathPrefixes (%.100s)", path,
                   prefixes && *prefixes ? prefixes : "none");
}

struct json *recycle_patch(const char *failure)
{
    struct json *patch = json_object();
    struct json *notes = json_ensure_object(json_ensure_object(patch, "metadata"), "annotations");
    if (failure) {
        json_set(notes, STORAGE_RECYCLE_FAILED,
                 json_string_n(failure, MIN(strlen(failure), (size_t) FAILURE_MAX)));
    } else {
        json_set_string(notes, STORAGE_RECYCLED, "true");
    }
    return patch;
}
