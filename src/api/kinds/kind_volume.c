/* SPDX-License-Identifier: Apache-2.0 */
/* PersistentVolume and PersistentVolumeClaim (core v1): the rules beyond their descriptions, in
 * the words of kube-apiserver. */
#include "api/kind_util.h"
#include "api/kinds.h"
#include "api/kinds/pod_priv.h"
#include "api/kinds/template.h"
#include "api/label_selector.h"
#include "api/quantity.h"

/* ---- cells ---- */

/* "RWO,ROX" */
static struct json *short_modes(const struct json *list)
{
    static const struct {
        const char *mode, *text;
    } texts[] = {{"ReadWriteOnce", "RWO"},
                 {"ReadOnlyMany", "ROX"},
                 {"ReadWriteMany", "RWX"},
                 {"ReadWriteOncePod", "RWOP"}};
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const struct json *item;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        bool there = false;
        JSON_FOREACH (item, list) {
            there |= streq_null(json_get_string(item), texts[i].mode);
        }
        if (there) {
            strbuf_addf(&b, "%s%s", b.size ? "," : "", texts[i].text);
        }
    }
    return json_string(strbuf_cstr(&b));
}

struct json *kind_persistent_volume_cell_access_modes(const struct json *obj, int64_t now_ms)
{
    return short_modes(json_path(obj, "spec", "accessModes", NULL));
}

struct json *kind_persistent_volume_cell_status(const struct json *obj, int64_t now_ms)
{
    return json_path(obj, "metadata", "deletionTimestamp", NULL)
               ? json_string("Terminating")
               : api_cell_text(json_path_string(obj, "status", "phase", NULL), "");
}

struct json *kind_persistent_volume_cell_claim(const struct json *obj, int64_t now_ms)
{
    const struct json *ref = json_path(obj, "spec", "claimRef", NULL);
    const char *ns = json_path_string(ref, "namespace", NULL);
    const char *name = json_path_string(ref, "name", NULL);
    return ref ? json_stringf("%s/%s", ns ? ns : "", name ? name : "") : json_string("");
}

static bool is_bound(const struct json *claim)
{
    return json_string_size(json_path(claim, "spec", "volumeName", NULL)) > 0;
}

struct json *kind_persistent_volume_claim_cell_access_modes(const struct json *obj, int64_t now_ms)
{
    return short_modes(is_bound(obj) ? json_path(obj, "status", "accessModes", NULL) : NULL);
}

struct json *kind_persistent_volume_claim_cell_capacity(const struct json *obj, int64_t now_ms)
{
    const char *s = json_path_string(obj, "status", "capacity", "storage", NULL);
    return json_string(is_bound(obj) && s ? s : "");
}

/* ---- PersistentVolume ---- */

/* The members of a spec that are sources of a volume. */
static const char *const sources[] = {"awsElasticBlockStore",
                                      "azureDisk",
                                      "azureFile",
                                      "cephfs",
                                      "cinder",
                                      "csi",
                                      "fc",
                                      "flexVolume",
                                      "flocker",
                                      "gcePersistentDisk",
                                      "glusterfs",
                                      "hostPath",
                                      "iscsi",
                                      "local",
                                      "nfs",
                                      "photonPersistentDisk",
                                      "portworxVolume",
                                      "quobyte",
                                      "rbd",
                                      "scaleIO",
                                      "storageos",
                                      "vsphereVolume"};

void kind_persistent_volume_prepare(struct json *obj, const struct json *old)
{
    (void) template_prepare(obj, old);
}

static void check_sources(struct api_causes *c, const struct json *spec)
{
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
        if (json_get(spec, sources[i]) && n++) {
            api_forbidden(c, API_FIELD("spec.%s", sources[i]),
                          "may not specify more than 1 volume type");
        }
    }
    if (n == 0) {
        api_required(c, "spec", "must specify a volume type");
    }
}

static void check_capacity(struct api_causes *c, const struct json *capacity)
{
    static const char *const storage[] = {"storage", NULL};
    if (json_count(capacity) == 0) {
        api_required(c, "spec.capacity", "");
    } else if (json_count(capacity) > 1 || !json_get(capacity, "storage")) {
        api_unsupported(c, "spec.capacity", capacity, storage);
    }
}

static void check_source_kept(struct api_causes *c, const struct json *spec,
                              const struct json *before)
{
    bool same = true;
    for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
        const struct json *a = json_get(spec, sources[i]), *b = json_get(before, sources[i]);
        same &= a && b ? json_equal(a, b) : !a && !b;
    }
    if (!same) {
        api_forbidden(c, "spec.persistentvolumesource",
                      "spec.persistentvolumesource is immutable after creation");
    }
}

void kind_persistent_volume_validate(const struct json *obj, const struct json *old,
                                     struct api_causes *c)
{
    const struct json *spec = json_get(obj, "spec"), *host = json_get(spec, "hostPath");
    const char *policy = json_path_string(spec, "persistentVolumeReclaimPolicy", NULL);
    if (json_count(json_get(spec, "accessModes")) == 0) {
        api_required(c, "spec.accessModes", "");
    }
    check_capacity(c, json_get(spec, "capacity"));
    check_sources(c, spec);
    api_validate_path(c, "spec.hostPath.path", json_get(host, "path"));
    api_validate_path(c, "spec.local.path", json_path(spec, "local", "path", NULL));
    if (json_get(spec, "local") && !json_path(spec, "nodeAffinity", "required", NULL)) {
        api_required(c, "spec.nodeAffinity", "Local volume requires node affinity");
    }
    if (streq_null(json_path_string(host, "path", NULL), "/") && streq_null(policy, "Recycle")) {
        api_forbidden(c, "spec.persistentVolumeReclaimPolicy",
                      "may not be 'recycle' for a hostPath mount of '/'");
    }
    if (streq_null(policy, "Recycle") && !host && !json_get(spec, "nfs")) {
        static const char *const policies[] = {"Delete", "Retain", NULL};
        api_unsupported(c, "spec.persistentVolumeReclaimPolicy",
                        json_get(spec, "persistentVolumeReclaimPolicy"), policies);
    }
    if (old) {
        const struct json *before = json_get(old, "spec");
        check_source_kept(c, spec, before);
        if (json_get(before, "nodeAffinity")) {
            api_field_immutable(c, "spec.nodeAffinity", json_get(spec, "nodeAffinity"),
                                json_get(before, "nodeAffinity"));
        }
        api_field_immutable(c, "spec.volumeMode", json_get(spec, "volumeMode"),
                            json_get(before, "volumeMode"));
    }
}

/* ---- PersistentVolumeClaim ---- */

void kind_persistent_volume_claim_prepare(struct json *obj, const struct json *old)
{
    struct json *spec = template_prepare(obj, old);
    if (spec) {
        api_default_string(spec, "volumeMode", "Filesystem");
    }
}

static void check_modes(struct api_causes *c, const char *field, const struct json *list)
{
    static const char *const modes[] = {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce",
                                        "ReadWriteOncePod", NULL};
    bool alone = false;
    if (json_count(list) == 0) {
        api_required(c, field, "at least 1 access mode is required");
    }
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *mode = json_at(list, i);
        (void) api_field_enum(c, API_FIELD("%s[%zu]", field, i), mode, true, modes);
        alone |= streq_null(json_get_string(mode), "ReadWriteOncePod");
    }
    if (alone && json_count(list) > 1) {
        api_forbidden(c, field, "may not use ReadWriteOncePod with other access modes");
    }
}

void claim_check_spec(struct api_causes *c, const char *field, const struct json *spec)
{
    static const char *const modes[] = {"Block", "Filesystem", NULL};
    const struct json *class = json_get(spec, "storageClassName");
    const char *wrong =
        json_string_size(class) ? api_check_dns_subdomain(json_get_string(class)) : NULL;
    check_modes(c, API_FIELD("%s.accessModes", field), json_get(spec, "accessModes"));
    label_selector_check(c, API_FIELD("%s.selector", field), json_get(spec, "selector"));
    if (!json_path(spec, "resources", "requests", "storage", NULL)) {
        api_required(c, API_FIELD("%s.resources[storage]", field), "");
    }
    if (wrong) {
        api_invalid(c, API_FIELD("%s.storageClassName", field), class, "%s", wrong);
    }
    (void) api_field_enum(c, API_FIELD("%s.volumeMode", field), json_get(spec, "volumeMode"), false,
                          modes);
}

/* The spec without what an update may change: once a volume's name, and what a bound claim
 * requests. */
static struct json *fixed_part(const struct json *obj, const struct json *old)
{
    struct json *spec = json_clone(json_get(obj, "spec"));
    if (!is_bound(old)) {
        json_remove(spec, "volumeName");
    }
    if (!is_bound(old) && !json_path(old, "spec", "storageClassName", NULL)) {
        json_remove(spec, "storageClassName"); /* The default class may be put in later. */
    }
    if (streq_null(json_path_string(old, "status", "phase", NULL), "Bound")) {
        json_remove(json_get(spec, "resources"), "requests");
        json_remove(spec, "volumeAttributesClassName");
    }
    return spec;
}

/* A volume becomes larger, never smaller. */
static void check_growth(struct api_causes *c, const struct json *obj, const struct json *old)
{
    const struct json *now = json_path(obj, "spec", "resources", "requests", "storage", NULL);
    const char *before = json_path_string(old, "spec", "resources", "requests", "storage", NULL);
    const char *has = json_path_string(old, "status", "capacity", "storage", NULL);
    const char *wanted = json_get_string(now);
    /* A request that cannot be met may be taken back, down to what the volume has. */
    if (before && wanted && api_quantity_compare(wanted, before) < 0 &&
        (!has || api_quantity_compare(wanted, has) < 0)) {
        api_forbidden(c, "spec.resources.requests.storage",
                      "field can not be less than status.capacity");
    }
}

void kind_persistent_volume_claim_validate(const struct json *obj, const struct json *old,
                                           struct api_causes *c)
{
    claim_check_spec(c, "spec", json_get(obj, "spec"));
    CLEANUP(json_free) struct json *now = old ? fixed_part(obj, old) : NULL;
    CLEANUP(json_free) struct json *before = old ? fixed_part(old, old) : NULL;
    if (old && !json_equal(now, before)) {
        api_forbidden(c, "spec",
                      "spec is immutable after creation except resources.requests and "
                      "volumeAttributesClassName for bound claims");
    }
    if (old) {
        check_growth(c, obj, old);
    }
}
