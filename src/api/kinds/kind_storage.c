/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of storage.k8s.io/v1: the rules beyond their descriptions, in the words of
 * kube-apiserver. */
#include "api/kind_util.h"
#include "api/kinds.h"
#include "api/label_selector.h"

#define MAX_DRIVER 63 /* Bytes of a driver's name. */
#define MAX_LOWERED 320
#define MAX_PARAMETERS 512
#define MAX_PARAMETER_BYTES ((size_t) 256 << 10)
#define DEFAULT_CLASS "storageclass.kubernetes.io/is-default-class"
#define DEFAULT_CLASS_BETA "storageclass.beta.kubernetes.io/is-default-class"

/* ---- texts ---- */

/* 's' in lower case, cut at the size of the buffer, which is longer than any name. */
static const char *lowered(const char *s, char buf[MAX_LOWERED])
{
    size_t n = 0;
    for (; s[n] && n < MAX_LOWERED - 1; n++) {
        buf[n] = (char) (s[n] >= 'A' && s[n] <= 'Z' ? s[n] - 'A' + 'a' : s[n]);
    }
    buf[n] = '\0';
    return buf;
}

const char *storage_check_provisioner(const char *s)
{
    char buf[MAX_LOWERED];
    return api_check_qualified_name(lowered(s, buf));
}

const char *storage_check_driver(const char *s)
{
    char buf[MAX_LOWERED];
    return strlen(s) > MAX_DRIVER ? "must be no more than 63 characters"
                                  : api_check_dns_subdomain(lowered(s, buf));
}

/* ---- cells ---- */

/* Texts joined by ","; 'key' NULL: the elements themselves are the texts. */
static struct json *joined(const struct json *list, const char *key, const char *none)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const struct json *item;
    JSON_FOREACH (item, list) {
        const char *s = json_get_string(key ? json_get(item, key) : item);
        strbuf_addf(&b, "%s%s", b.size ? "," : "", s ? s : "");
    }
    return json_count(list) ? json_string(strbuf_cstr(&b)) : json_string(none);
}

struct json *kind_csi_driver_cell_token_requests(const struct json *obj, int64_t now_ms)
{
    return joined(json_path(obj, "spec", "tokenRequests", NULL), "audience", "<unset>");
}

struct json *kind_csi_driver_cell_modes(const struct json *obj, int64_t now_ms)
{
    return joined(json_path(obj, "spec", "volumeLifecycleModes", NULL), NULL, "<none>");
}

struct json *kind_storage_class_cell_name(const struct json *obj, int64_t now_ms)
{
    const struct json *notes = json_path(obj, "metadata", "annotations", NULL);
    const char *name = json_path_string(obj, "metadata", "name", NULL);
    bool chosen = streq_null(json_path_string(notes, DEFAULT_CLASS, NULL), "true") ||
                  streq_null(json_path_string(notes, DEFAULT_CLASS_BETA, NULL), "true");
    return json_stringf("%s%s", name ? name : "", chosen ? " (default)" : "");
}

/* ---- CSIDriver ---- */

void kind_csi_driver_prepare(struct json *obj, const struct json *old)
{
    (void) api_default_object(obj, "spec");
}

void kind_csi_driver_defaults(struct json *obj)
{
    struct json *spec = json_get(obj, "spec");
    if (json_is(spec, JSON_OBJECT) && !json_get(spec, "volumeLifecycleModes")) {
        json_append(json_ensure_array(spec, "volumeLifecycleModes"), json_string("Persistent"));
    }
}

void kind_csi_driver_validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    const struct json *list = json_path(obj, "spec", "tokenRequests", NULL);
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *audience = json_get(json_at(list, i), "audience");
        for (size_t k = 0; k < i; k++) {
            if (json_equal(json_get(json_at(list, k), "audience"), audience)) {
                api_duplicate(c, API_FIELD("spec.tokenRequests[%zu].audience", i), audience);
                break;
            }
        }
    }
}

/* ---- CSINode ---- */

/* A driver that stays on the node keeps its name of the node and its topology. */
void kind_csi_node_validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    static const char *const fixed[] = {"nodeID", "topologyKeys"};
    const struct json *list = json_path(obj, "spec", "drivers", NULL), *other;
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *driver = json_at(list, i), *name = json_get(driver, "name");
        JSON_FOREACH (other, json_path(old, "spec", "drivers", NULL)) {
            for (size_t k = 0; k < ARRAY_SIZE(fixed); k++) {
                if (json_equal(json_get(other, "name"), name)) {
                    api_field_immutable(c, API_FIELD("spec.drivers[%zu].%s", i, fixed[k]),
                                        json_get(driver, fixed[k]), json_get(other, fixed[k]));
                }
            }
        }
    }
}

/* ---- CSIStorageCapacity ---- */

void kind_csi_storage_capacity_validate(const struct json *obj, const struct json *old,
                                        struct api_causes *c)
{
    const struct json *topology = json_get(obj, "nodeTopology");
    label_selector_check(c, "nodeTopology", topology);
    if (old) {
        api_field_immutable(c, "nodeTopology", topology, json_get(old, "nodeTopology"));
    }
}

/* ---- StorageClass ---- */

static void check_parameters(struct api_causes *c, const struct json *list)
{
    size_t size = 0;
    if (json_count(list) > MAX_PARAMETERS) {
        api_too_many(c, "parameters", json_count(list), MAX_PARAMETERS);
        return;
    }
    for (size_t i = 0; i < json_count(list); i++) {
        const char *key = json_key_at(list, i);
        if (!*key) {
            CLEANUP(json_free) struct json *empty = json_string("");
            api_invalid(c, "parameters", empty, "field can not be empty.");
        }
        size += strlen(key) + json_string_size(json_at(list, i));
    }
    if (size > MAX_PARAMETER_BYTES) {
        api_too_long(c, "parameters", MAX_PARAMETER_BYTES);
    }
}

void kind_storage_class_validate(const struct json *obj, const struct json *old,
                                 struct api_causes *c)
{
    static const char *const fixed[] = {"parameters", "provisioner", "reclaimPolicy"};
    check_parameters(c, json_get(obj, "parameters"));
    for (size_t i = 0; i < ARRAY_SIZE(fixed) && old; i++) {
        const struct json *now = json_get(obj, fixed[i]), *before = json_get(old, fixed[i]);
        if ((now || before) && !(now && before && json_equal(now, before))) {
            api_forbidden(c, fixed[i], "updates to %s are forbidden.", fixed[i]);
        }
    }
}

/* ---- VolumeAttachment ---- */

void kind_volume_attachment_prepare(struct json *obj, const struct json *old)
{
    if (!old) {
        json_set(obj, "status", json_object());
    }
}

void kind_volume_attachment_validate(const struct json *obj, const struct json *old,
                                     struct api_causes *c)
{
    static const char one[] =
        "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    const struct json *spec = json_get(obj, "spec"), *source = json_get(spec, "source");
    const struct json *volume = json_get(source, "inlineVolumeSpec");
    bool named = json_string_size(json_get(source, "persistentVolumeName")) > 0;
    if (!named && !volume) {
        api_required(c, "spec.source", "%s", one);
    } else if (named && volume) {
        api_forbidden(c, "spec.source", "%s", one);
    } else if (volume && !json_get(volume, "csi")) {
        api_required(c, "spec.source.inlineVolumeSpec.csi", "");
    }
    if (old) {
        api_field_immutable(c, "spec", spec, json_get(old, "spec"));
    }
}
