/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/storage/csi_provision.h"

#include "api/kind.h"
#include "api/obj.h"
#include "api/quantity.h"
#include "base/mem.h"
#include "kubelet/csi/parts.h"
#include "kubelet/storage/rules.h"

#define PREFIX "csi.storage.k8s.io/"
#define NOTE_PROVISIONER "volume.kubernetes.io/storage-provisioner"
#define NOTE_PROVISIONER_BETA "volume.beta.kubernetes.io/storage-provisioner"
#define NOTE_SECRET_NAME "volume.kubernetes.io/provisioner-deletion-secret-name"
#define NOTE_SECRET_NAMESPACE "volume.kubernetes.io/provisioner-deletion-secret-namespace"
#define NAME_MAX_SIZE 253
#define FAILURE_MAX 1000

/* ---- classes ---- */

static int expand(const char *text, const struct json *claim, char **ret, struct err *e)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT_MAX(NAME_MAX_SIZE);
    CLEANUP_FREE char *pv = local_volume_name(claim);
    const struct {
        const char *template, *value;
    } known[] = {{"${pvc.namespace}", obj_namespace(claim)},
                 {"${pvc.name}", obj_name(claim)},
                 {"${pv.name}", pv}};
    while (*text) {
        size_t i = 0;
        while (i < ARRAY_SIZE(known) && !str_has_prefix(text, known[i].template)) {
            i++;
        }
        if (i < ARRAY_SIZE(known)) {
            strbuf_adds(&b, known[i].value);
            text += strlen(known[i].template);
        } else if (*text == '$') {
            return err_set(e, -EINVAL, "unknown template in %.100s", text);
        } else {
            strbuf_addc(&b, *text++);
        }
    }
    if (b.failed) {
        return err_set(e, -EINVAL, "the name of a secret is too long");
    }
    *ret = strbuf_steal(&b);
    return 0;
}

int csi_class_secret(const struct json *class, enum csi_secret which, const struct json *claim,
                     struct json **ret, struct err *e)
{
    static const char *const keys[CSI_SECRETS] = {
        [CSI_SECRET_PROVISION] = PREFIX "provisioner-secret",
        [CSI_SECRET_CONTROLLER_PUBLISH] = PREFIX "controller-publish-secret",
        [CSI_SECRET_CONTROLLER_EXPAND] = PREFIX "controller-expand-secret",
        [CSI_SECRET_NODE_STAGE] = PREFIX "node-stage-secret",
        [CSI_SECRET_NODE_PUBLISH] = PREFIX "node-publish-secret"};
    const struct json *parameters = json_get(class, "parameters");
    CLEANUP_FREE char *name_key = xasprintf("%s-name", keys[which]);
    CLEANUP_FREE char *ns_key = xasprintf("%s-namespace", keys[which]);
    CLEANUP_FREE char *name = NULL, *ns = NULL;
    const char *name_text = json_get_text(parameters, name_key);
    const char *ns_text = json_get_text(parameters, ns_key);
    *ret = NULL;
    if (!*name_text && !*ns_text) {
        return 0;
    }
    if (!*name_text || !*ns_text) {
        return err_set(e, -EINVAL, "the class's parameter %s is missing",
                       *name_text ? ns_key : name_key);
    }
    int r = expand(name_text, claim, &name, e);
    r = r < 0 ? r : expand(ns_text, claim, &ns, e);
    if (r < 0) {
        return err_prefix(e, "the class's parameter %s", name_key);
    }
    *ret = json_object();
    json_set_string(*ret, "name", name);
    json_set_string(*ret, "namespace", ns);
    return 0;
}

/* ---- making volumes ---- */

bool csi_claim_is_due(const struct json *claim, const struct json *class, const char *driver)
{
    const char *note = obj_annotation(claim, NOTE_PROVISIONER);
    note = note ? note : obj_annotation(claim, NOTE_PROVISIONER_BETA);
    bool waits = streq(json_get_text(class, "volumeBindingMode"), "WaitForFirstConsumer");
    return streq(json_get_text(class, "provisioner"), driver) && streq_null(note, driver) &&
           !*json_get_text(json_get(claim, "spec"), "volumeName") && !obj_is_terminating(claim) &&
           (!waits || obj_annotation(claim, STORAGE_SELECTED_NODE));
}

static int64_t requested(const struct json *claim)
{
    const char *text = json_path_string(claim, "spec", "resources", "requests", "storage", NULL);
    int64_t bytes = 0;
    return text && api_quantity_value(text, 0, &bytes, NULL) == 0 ? bytes : 0;
}

static bool is_block(const struct json *claim)
{
    return streq(json_get_text(json_get(claim, "spec"), "volumeMode"), "Block");
}

static const char *fs_type_of(const struct json *class)
{
    const struct json *parameters = json_get(class, "parameters");
    const char *type = json_get_text(parameters, PREFIX "fstype");
    return *type ? type : "ext4";
}

/* The parameters for the driver: those that are not for the controller. */
static int driver_parameters(struct pb_store *s, const struct json *class,
                             struct runtime_pairs *ret, struct err *e)
{
    const struct json *all = json_get(class, "parameters");
    CLEANUP(json_free) struct json *own = json_object();
    for (size_t i = 0; i < json_count(all); i++) {
        if (!str_has_prefix(json_key_at(all, i), PREFIX)) {
            json_set(own, json_key_at(all, i), json_clone(json_at(all, i)));
        }
    }
    return csi_pairs(s, own, ret, e);
}

int csi_create_make(struct pb_store *s, const struct json *claim, const struct json *class,
                    const struct json *secret, const struct json *topology,
                    struct csi_create_volume *ret, struct err *e)
{
    const struct json *spec = json_get(claim, "spec");
    CLEANUP_FREE char *name = local_volume_name(claim);
    struct csi_capability *capability = pb_store_alloc(s, sizeof *capability);
    struct csi_topology *place = pb_store_alloc(s, sizeof *place);
    struct csi_create_volume q = {.name = pb_store_text(s, name, strlen(name)),
                                  .required_bytes = requested(claim),
                                  .capabilities = capability,
                                  .n_capabilities = 1};
    if (!capability || !place || !q.name) {
        return err_set(e, -EMSGSIZE, "the request is too large");
    }
    if (q.required_bytes <= 0) {
        return err_set(e, -EINVAL, "spec.resources.requests.storage is not a size");
    }
    if (json_get(spec, "selector")) {
        return err_set(e, -EOPNOTSUPP, "claim.Spec.Selector is not supported");
    }
    if (json_get(spec, "dataSource") || json_get(spec, "dataSourceRef")) {
        return err_set(e, -EOPNOTSUPP, "volumes are not made from a data source");
    }
    int r =
        csi_capability_make(s, json_get(spec, "accessModes"), is_block(claim), fs_type_of(class),
                            json_get(class, "mountOptions"), false, capability, e);
    r = r < 0 ? r : driver_parameters(s, class, &q.parameters, e);
    r = r < 0 ? r : csi_secrets(s, secret, &q.secrets, e);
    if (r == 0 && topology) {
        r = csi_pairs(s, topology, &place->segments, e);
        q.has_topology = true;
        q.requisite = q.preferred = place;
        q.n_requisite = q.n_preferred = 1;
    }
    if (r == 0) {
        *ret = q;
    }
    return r;
}

/* A term for each place from which the volume can be reached. */
static int affinity_of(const struct csi_volume *v, struct json **ret, struct err *e)
{
    CLEANUP(json_free) struct json *affinity = json_object();
    struct json *required = json_ensure_object(affinity, "required");
    struct json *terms = json_ensure_array(required, "nodeSelectorTerms");
    for (size_t i = 0; i < v->n_topology; i++) {
        const struct runtime_pairs *p = &v->topology[i].segments;
        struct json *term = json_append(terms, json_object());
        struct json *list = json_ensure_array(term, "matchExpressions");
        for (size_t k = 0; k < p->n; k++) {
            const char *why = api_check_qualified_name(p->v[k].key);
            why = why ? why : api_check_label_value(p->v[k].value);
            if (why) {
                return err_set(e, -EINVAL, "CreateVolume: the topology segment %.100s: %s",
                               p->v[k].key, why);
            }
            struct json *x = json_append(list, json_object());
            json_set_string(x, "key", p->v[k].key);
            json_set_string(x, "operator", "In");
            json_append(json_ensure_array(x, "values"), json_string(p->v[k].value));
        }
    }
    *ret = TAKE(affinity);
    return 0;
}

static int add_secrets(struct json *pv, const struct json *class, const struct json *claim,
                       struct err *e)
{
    struct json *csi = json_path(pv, "spec", "csi", NULL);
    static const struct {
        enum csi_secret which;
        const char *member;
    } refs[] = {{CSI_SECRET_CONTROLLER_PUBLISH, "controllerPublishSecretRef"},
                {CSI_SECRET_CONTROLLER_EXPAND, "controllerExpandSecretRef"},
                {CSI_SECRET_NODE_STAGE, "nodeStageSecretRef"},
                {CSI_SECRET_NODE_PUBLISH, "nodePublishSecretRef"}};
    for (size_t i = 0; i < ARRAY_SIZE(refs); i++) {
        struct json *ref;
        int r = csi_class_secret(class, refs[i].which, claim, &ref, e);
        if (r < 0) {
            return r;
        }
        if (ref) {
            json_set(csi, refs[i].member, ref);
        }
    }
    CLEANUP(json_free) struct json *provision = NULL;
    int r = csi_class_secret(class, CSI_SECRET_PROVISION, claim, &provision, e);
    if (r == 0 && provision) {
        obj_set_annotation(pv, NOTE_SECRET_NAME, json_get_text(provision, "name"));
        obj_set_annotation(pv, NOTE_SECRET_NAMESPACE, json_get_text(provision, "namespace"));
    }
    return r;
}

int csi_volume_make(const struct json *claim, const struct json *class, const char *driver,
                    const struct csi_volume *answer, struct json **ret, struct err *e)
{
    CLEANUP_FREE char *name = local_volume_name(claim);
    CLEANUP(json_free) struct json *pv = obj_new("v1", "PersistentVolume", NULL, name);
    const struct json *from = json_get(claim, "spec");
    struct json *spec = json_set(pv, "spec", json_object()), *affinity = NULL;
    const char *policy = json_get_text(class, "reclaimPolicy");
    if (!*answer->id || (answer->capacity_bytes > 0 && answer->capacity_bytes < requested(claim))) {
        return err_set(e, -EINVAL, "CreateVolume: the volume %s",
                       *answer->id ? "is smaller than what was asked for" : "has no id");
    }
    obj_set_annotation(pv, STORAGE_PROVISIONED_BY, driver);
    struct json *capacity = json_ensure_object(spec, "capacity");
    if (answer->capacity_bytes > requested(claim)) {
        json_set(capacity, "storage", json_stringf("%lld", (long long) answer->capacity_bytes));
    } else {
        json_set(capacity, "storage",
                 json_clone(json_path(from, "resources", "requests", "storage", NULL)));
    }
    json_set(spec, "accessModes", json_clone(json_get(from, "accessModes")));
    json_set_string(spec, "persistentVolumeReclaimPolicy", *policy ? policy : "Delete");
    json_set_string(spec, "storageClassName", obj_name(class));
    json_set(spec, "mountOptions", json_clone(json_get(class, "mountOptions")));
    json_set_string(spec, "volumeMode", is_block(claim) ? "Block" : "Filesystem");
    struct json *csi = json_ensure_object(spec, "csi");
    json_set_string(csi, "driver", driver);
    json_set_string(csi, "volumeHandle", answer->id);
    if (!is_block(claim)) {
        json_set_string(csi, "fsType", fs_type_of(class));
    }
    for (size_t i = 0; i < answer->context.n; i++) {
        json_set_string(json_ensure_object(csi, "volumeAttributes"), answer->context.v[i].key,
                        answer->context.v[i].value);
    }
    int r = add_secrets(pv, class, claim, e);
    r = r < 0 || !answer->n_topology ? r : affinity_of(answer, &affinity, e);
    if (r < 0) {
        return r;
    }
    json_set(spec, "nodeAffinity", affinity);
    struct json *ref = json_ensure_object(spec, "claimRef");
    json_set_string(ref, "apiVersion", "v1");
    json_set_string(ref, "kind", "PersistentVolumeClaim");
    json_set_string(ref, "namespace", obj_namespace(claim));
    json_set_string(ref, "name", obj_name(claim));
    json_set_string(ref, "uid", obj_uid(claim));
    *ret = TAKE(pv);
    return 0;
}

bool csi_volume_is_to_go(const struct json *pv, const char *driver)
{
    return local_volume_is_to_go(pv) &&
           streq_null(obj_annotation(pv, STORAGE_PROVISIONED_BY), driver) &&
           streq_null(json_path_string(pv, "spec", "csi", "driver", NULL), driver);
}

struct json *csi_deletion_secret(const struct json *pv)
{
    const char *name = obj_annotation(pv, NOTE_SECRET_NAME);
    const char *ns = obj_annotation(pv, NOTE_SECRET_NAMESPACE);
    if (!name || !ns) {
        return NULL;
    }
    struct json *ref = json_object();
    json_set_string(ref, "name", name);
    json_set_string(ref, "namespace", ns);
    return ref;
}

/* ---- nodes and attachments ---- */

static const struct json *driver_of(const struct json *csinode, const char *driver)
{
    const struct json *d;
    JSON_FOREACH (d, json_path(csinode, "spec", "drivers", NULL)) {
        if (streq(json_get_text(d, "name"), driver)) {
            return d;
        }
    }
    return NULL;
}

const char *csi_node_id(const struct json *csinode, const char *driver)
{
    return json_path_string(driver_of(csinode, driver), "nodeID", NULL);
}

struct json *csi_node_topology(const struct json *csinode, const struct json *node,
                               const char *driver)
{
    const struct json *keys = json_get(driver_of(csinode, driver), "topologyKeys"), *key;
    struct json *labels = json_object();
    JSON_FOREACH (key, keys) {
        const char *text = json_get_string(key);
        const char *value = text ? obj_label(node, text) : NULL;
        if (value) {
            json_set_string(labels, text, value);
        }
    }
    return json_count(labels) ? labels : json_free(labels);
}

char *csi_attach_finalizer(const char *driver)
{
    char *text = xasprintf("external-attacher/%s", driver);
    for (char *p = strchr(text, '/') + 1; *p; p++) {
        *p = *p == '/' ? '-' : *p;
    }
    return text;
}

struct json *csi_attach_status(const struct runtime_pairs *context, const char *failure,
                               const char *now)
{
    struct json *status = json_object();
    json_set_bool(status, "attached", !failure);
    if (failure) {
        struct json *error = json_ensure_object(status, "attachError");
        json_set(error, "message",
                 json_string_n(failure, MIN(strlen(failure), (size_t) FAILURE_MAX)));
        json_set_string(error, "time", now);
        return status;
    }
    json_set(status, "attachError", json_null());
    for (size_t i = 0; context && i < context->n; i++) {
        json_set_string(json_ensure_object(status, "attachmentMetadata"), context->v[i].key,
                        context->v[i].value);
    }
    return status;
}

/* ---- growth ---- */

int64_t csi_growth_of(const struct json *claim, const struct json *pv, const char *driver)
{
    const char *has = json_path_string(pv, "spec", "capacity", "storage", NULL);
    int64_t bytes = 0, want = requested(claim);
    bool bound = streq(json_get_text(json_get(claim, "status"), "phase"), "Bound") &&
                 streq_null(json_path_string(pv, "spec", "claimRef", "uid", NULL), obj_uid(claim));
    if (!bound || !streq_null(json_path_string(pv, "spec", "csi", "driver", NULL), driver) ||
        !has || api_quantity_value(has, 0, &bytes, NULL) < 0) {
        return 0;
    }
    return want > bytes ? want : 0;
}
