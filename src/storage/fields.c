/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/fields.h"

#include "api/obj.h"
#include "api/quantity.h"
#include "base/mem.h"

/* ---- classes ---- */

const char *storage_claim_class(const struct json *claim)
{
    const char *note = obj_annotation(claim, STORAGE_CLASS_BETA);
    return note ? note : json_path_string(claim, "spec", "storageClassName", NULL);
}

const char *storage_volume_class(const struct json *volume)
{
    const char *note = obj_annotation(volume, STORAGE_CLASS_BETA);
    return note ? note : json_get_text(json_get(volume, "spec"), "storageClassName");
}

bool storage_class_waits(const struct json *class)
{
    return streq(json_get_text(class, "volumeBindingMode"), "WaitForFirstConsumer");
}

bool storage_class_is_default(const struct json *class)
{
    return streq_null(obj_annotation(class, STORAGE_DEFAULT_CLASS), "true") ||
           streq_null(obj_annotation(class, STORAGE_DEFAULT_CLASS_BETA), "true");
}

const struct json *storage_default_class(const struct json *const *classes, size_t n)
{
    const struct json *best = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct json *c = classes[i];
        int64_t age = obj_created_ms(c), of_best = obj_created_ms(best);
        if (storage_class_is_default(c) &&
            (!best || age > of_best ||
             (age == of_best && strcmp(obj_name(c), obj_name(best)) < 0))) {
            best = c;
        }
    }
    return best;
}

const char *storage_class_provisioner(const struct json *class)
{
    const char *name = json_get_text(class, "provisioner");
    return streq(name, STORAGE_NO_PROVISIONER) ? "" : name;
}

/* ---- claims ---- */

const char *storage_claim_volume(const struct json *claim)
{
    return json_get_text(json_get(claim, "spec"), "volumeName");
}

bool storage_claim_is_bound(const struct json *claim)
{
    return obj_annotation(claim, STORAGE_BIND_COMPLETED) != NULL;
}

static int64_t bytes(const char *quantity)
{
    int64_t n = 0;
    (void) (quantity && api_quantity_value(quantity, 0, &n, NULL));
    return n;
}

int64_t storage_claim_size(const struct json *claim)
{
    return bytes(json_path_string(claim, "spec", "resources", "requests", "storage", NULL));
}

/* ---- volumes ---- */

int64_t storage_volume_size(const struct json *volume)
{
    return bytes(json_path_string(volume, "spec", "capacity", "storage", NULL));
}

bool storage_volume_refers_to(const struct json *volume, const struct json *claim, bool exact)
{
    const struct json *ref = json_path(volume, "spec", "claimRef", NULL);
    const char *uid = json_get_text(ref, "uid");
    return ref && streq(json_get_text(ref, "name"), obj_name(claim)) &&
           streq(json_get_text(ref, "namespace"), obj_namespace(claim)) &&
           ((!*uid && !exact) || streq(uid, obj_uid(claim)));
}

char *storage_volume_claim_key(const struct json *volume)
{
    const struct json *ref = json_path(volume, "spec", "claimRef", NULL);
    return ref ? xasprintf("%s/%s", json_get_text(ref, "namespace"), json_get_text(ref, "name"))
               : NULL;
}

const char *storage_volume_node(const struct json *volume)
{
    const struct json *terms =
        json_path(volume, "spec", "nodeAffinity", "required", "nodeSelectorTerms", NULL);
    const struct json *list = json_get(json_at(terms, 0), "matchExpressions");
    const struct json *e = json_at(list, 0), *values = json_get(e, "values");
    bool one = json_count(terms) == 1 && json_count(list) == 1 && json_count(values) == 1 &&
               json_count(json_get(json_at(terms, 0), "matchFields")) == 0 &&
               streq(json_get_text(e, "key"), STORAGE_HOSTNAME) &&
               streq(json_get_text(e, "operator"), "In");
    return one ? json_get_string(json_at(values, 0)) : NULL;
}

const char *storage_volume_source(const struct json *volume)
{
    static const char *const others[] = {"capacity",
                                         "accessModes",
                                         "claimRef",
                                         "persistentVolumeReclaimPolicy",
                                         "storageClassName",
                                         "mountOptions",
                                         "volumeMode",
                                         "nodeAffinity",
                                         "volumeAttributesClassName"};
    const struct json *spec = json_get(volume, "spec");
    for (size_t i = 0; json_is(spec, JSON_OBJECT) && i < json_count(spec); i++) {
        const char *key = json_key_at(spec, i);
        bool source = true;
        for (size_t k = 0; k < ARRAY_SIZE(others); k++) {
            source = source && !streq(key, others[k]);
        }
        if (source) {
            return key;
        }
    }
    return "";
}

/* ---- pods ---- */

char *storage_pod_claim(const struct json *pod, const struct json *v)
{
    const char *name = json_path_string(v, "persistentVolumeClaim", "claimName", NULL);
    if (name) {
        return xstrdup(name);
    }
    return json_get(v, "ephemeral") ? xasprintf("%s-%s", obj_name(pod), json_get_text(v, "name"))
                                    : NULL;
}
