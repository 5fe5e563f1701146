/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes and claims: StorageObjectInUseProtection, DefaultStorageClass,
 * PersistentVolumeClaimResize, and what NodeRestriction allows of them. */
#include "apiserver/admission/plugins.h"

#include "api/obj.h"
#include "apiserver/access/node_storage.h"
#include "apiserver/access/security.h"
#include "apiserver/cache/object.h"
#include "apiserver/cache/parsed.h"
#include "storage/fields.h"

/* ---- protection while in use ---- */

int storage_protect_admit(struct request *q, struct json *obj, const struct json *old,
                          struct outcome *outcome)
{
    const char *name = streq(q->kind->plural, "persistentvolumes") ? STORAGE_VOLUME_FINALIZER
                                                                   : STORAGE_CLAIM_FINALIZER;
    if (obj_has_finalizer(obj, name)) {
        return 0;
    }
    json_append(json_ensure_array(json_ensure_object(obj, "metadata"), "finalizers"),
                json_string(name));
    return 1;
}

/* ---- the default class ---- */

static struct cache_kind *classes_of(const struct request *q)
{
    return cache_find(&q->server->cache, api_kind_find("storage.k8s.io", "v1", "storageclasses"));
}

int default_class_admit(struct request *q, struct json *obj, const struct json *old,
                        struct outcome *outcome)
{
    const struct cache_kind *classes = classes_of(q);
    struct keyset_pos pos = keyset_seek(&classes->objects, "");
    CLEANUP(json_free) struct json *best = NULL;
    struct object *o;
    if (storage_claim_class(obj)) {
        return 0;
    }
    while ((o = keyset_next(&classes->objects, &pos))) {
        struct json *class = object_parse(o);
        const struct json *two[] = {class, best};
        bool better = storage_default_class(two, best ? 2 : 1) == class;
        json_free(better ? best : class);
        best = better ? class : best;
    }
    if (best) {
        json_set_string(json_ensure_object(obj, "spec"), "storageClassName", obj_name(best));
    }
    return best != NULL;
}

/* ---- growth ---- */

int claim_resize_validate(struct request *q, const struct json *obj, const struct json *old,
                          struct outcome *outcome)
{
    if (*q->subresource || storage_claim_size(obj) <= storage_claim_size(old)) {
        return 0;
    }
    const struct cache_kind *classes = classes_of(q);
    const char *name = storage_claim_class(obj);
    const struct json *class =
        name ? parsed_get(&q->server->parsed, keyset_get(&classes->objects, name)) : NULL;
    if (!streq(json_get_text(json_get(old, "status"), "phase"), "Bound")) {
        return admission_refuse(q, obj, "Only bound persistent volume claims can be expanded",
                                outcome);
    }
    if (streq(storage_class_provisioner(class), STORAGE_LOCAL_PROVISIONER) &&
        streq(json_get_text(json_get(class, "parameters"), "backing"), "loop")) {
        return admission_refuse(q, obj, "the images of this storage class have a fixed size",
                                outcome);
    }
    return json_get_bool(json_get(class, "allowVolumeExpansion"), false)
               ? 0
               : admission_refuse(q, obj,
                                  "only dynamically provisioned pvc can be resized and the "
                                  "storageclass that provisions the pvc must support resize",
                                  outcome);
}

/* ---- writes of a node ---- */

static bool same(const struct json *a, const struct json *b)
{
    return (!json_count(a) && !json_count(b)) || (a && b && json_equal(a, b));
}

/* Why the node may not make the volume; NULL: it may. */
static const char *volume_fault(const struct request *q, const char *node,
                                const struct json *volume)
{
    const struct security *s = q->server->security;
    const struct json *ref = json_path(volume, "spec", "claimRef", NULL);
    const struct json *spec = json_get(volume, "spec");
    CLEANUP(json_free)
    struct json *claim =
        security_object(s, "", "persistentvolumeclaims", json_get_text(ref, "namespace"),
                        json_get_text(ref, "name"));
    const char *class_name = storage_claim_class(claim);
    CLEANUP(json_free)
    struct json *class =
        class_name ? security_object(s, "storage.k8s.io", "storageclasses", NULL, class_name)
                   : NULL;
    CLEANUP_FREE char *name = xasprintf(STORAGE_VOLUME_PREFIX "%s", obj_uid(claim));
    if (!claim || !storage_volume_refers_to(volume, claim, true) ||
        !streq_null(obj_annotation(claim, STORAGE_SELECTED_NODE), node) ||
        *storage_claim_volume(claim)) {
        return "a node is only allowed to make a volume for a claim that the scheduler selected it "
               "for";
    }
    if (!streq(storage_class_provisioner(class), STORAGE_LOCAL_PROVISIONER) ||
        !streq(storage_volume_class(volume), class_name) ||
        !streq_null(obj_annotation(volume, STORAGE_PROVISIONED_BY), STORAGE_LOCAL_PROVISIONER)) {
        return "a node is only allowed to make volumes of a class with the "
               "provisioner " STORAGE_LOCAL_PROVISIONER;
    }
    if (!streq(obj_name(volume), name) || !streq(storage_volume_source(volume), "local") ||
        !streq_null(storage_volume_node(volume), node)) {
        return "a node is only allowed to make the local volume of the claim, with itself as the "
               "only node";
    }
    return storage_volume_size(volume) >= storage_claim_size(claim) &&
                   same(json_get(spec, "mountOptions"), json_get(class, "mountOptions")) &&
                   same(json_get(spec, "accessModes"),
                        json_path(claim, "spec", "accessModes", NULL)) &&
                   streq(json_get_text(spec, "persistentVolumeReclaimPolicy"),
                         json_get_text(class, "reclaimPolicy"))
               ? NULL
               : "a node is only allowed to make a volume as the claim and its class ask for";
}

/* The object without the annotations (ending with NULL) and what each write changes. */
static struct json *without(const struct json *o, const char *const *notes)
{
    struct json *copy = json_clone(o), *meta = json_get(copy, "metadata");
    for (; *notes; notes++) {
        obj_remove_annotation(copy, *notes);
    }
    if (!json_count(json_get(meta, "annotations"))) {
        json_remove(meta, "annotations");
    }
    json_remove(meta, "managedFields");
    json_remove(meta, "resourceVersion");
    return copy;
}

static bool only_changes(const struct json *obj, const struct json *old, const char *const *notes)
{
    CLEANUP(json_free) struct json *a = without(obj, notes);
    CLEANUP(json_free) struct json *b = without(old, notes);
    return json_equal(a, b);
}

static const char *volume_update_fault(const char *node, const struct json *obj,
                                       const struct json *old)
{
    static const char *const notes[] = {STORAGE_RECYCLED, STORAGE_RECYCLE_FAILED, NULL};
    return streq_null(obj_annotation(old, STORAGE_RECYCLE_NODE), node) &&
                   streq(json_get_text(json_get(old, "status"), "phase"), "Released") &&
                   only_changes(obj, old, notes)
               ? NULL
               : "a node is only allowed to tell how it emptied a volume that it has to empty";
}

static const char *claim_update_fault(const char *node, const struct json *obj,
                                      const struct json *old)
{
    static const char *const notes[] = {STORAGE_SELECTED_NODE, NULL};
    return streq_null(obj_annotation(old, STORAGE_SELECTED_NODE), node) &&
                   !obj_annotation(obj, STORAGE_SELECTED_NODE) && only_changes(obj, old, notes)
               ? NULL
               : "a node is only allowed to remove its selection from a claim";
}

static const char *capacity_fault(const struct request *q, const char *node, const struct json *obj,
                                  const struct json *old)
{
    CLEANUP(json_free)
    struct json *class = security_object(q->server->security, "storage.k8s.io", "storageclasses",
                                         NULL, json_get_text(obj, "storageClassName"));
    return streq_null(q->namespace, STORAGE_CAPACITY_NAMESPACE) &&
                   node_storage_sees(node, q->kind, obj) &&
                   (!old || node_storage_sees(node, q->kind, old)) &&
                   streq(storage_class_provisioner(class), STORAGE_LOCAL_PROVISIONER)
               ? NULL
               : "a node is only allowed to tell its own capacity of a class with the "
                 "provisioner " STORAGE_LOCAL_PROVISIONER;
}

int storage_validate_node(struct request *q, const char *node, const struct json *obj,
                          const struct json *old, struct outcome *outcome)
{
    const char *plural = q->kind->plural, *why;
    if (streq(plural, "persistentvolumes")) {
        why = old ? volume_update_fault(node, obj, old) : volume_fault(q, node, obj);
    } else if (streq(plural, "persistentvolumeclaims") && *q->subresource) {
        why = node_storage_status_is_kept(obj, old)
                  ? NULL
                  : "a node is only allowed to tell the size of a claim in its status";
    } else if (streq(plural, "persistentvolumeclaims")) {
        why = old ? claim_update_fault(node, obj, old) : "a node makes no claims";
    } else {
        why = capacity_fault(q, node, obj, old);
    }
    return why ? admission_refuse(q, obj, why, outcome) : 0;
}
