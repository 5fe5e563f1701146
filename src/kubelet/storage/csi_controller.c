/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/storage/csi_controller.h"

#include "api/obj.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "controller/workqueue.h"
#include "kubelet/csi/call.h"
#include "kubelet/csi/drivers.h"
#include "kubelet/csi/parts.h"
#include "kubelet/csi/translate.h"
#include "kubelet/storage/csi_provision.h"
#include "kubelet/storage/rules.h"
#include "kubelet/volumes/jobs.h"
#include "storage/fields.h"

LOG_MODULE("csi");

#define CALL_MS 60000
#define ASK_MS 10000
#define RETRY_MS 2000
#define FREE_WAIT_MS 5000
#define PARALLEL 10
#define MERGE "application/merge-patch+json"
#define STORAGE_V1 "storage.k8s.io/v1"
#define CLAIM_KEY "claim/"
#define GROW_KEY "grow/"
#define VOLUME_KEY "volume/"
#define ATTACH_KEY "attach/"

struct csi_controller {
    struct csi_controller_config c;
    char *socket;
    char *driver, *finalizer; /* NULL: the driver has not answered yet. */
    bool can_create, can_publish, can_expand, has_topology;
    struct informer *claims, *volumes, *classes, *attachments, *csinodes, *nodes;
    struct workqueue *queue;
    struct jobs *jobs;
    struct loop_timer *timer;
    struct smap ops; /* Key to 'struct op': those that wait for a secret. */
    char *failure;
    bool closing;
};

struct op;
typedef void op_fn(struct op *op);

/* One step for a key: a call of the driver, and the write that follows. */
struct op {
    struct csi_controller *c;
    struct work *w;
    op_fn *call; /* On a thread. */
    op_fn *end;  /* On the loop; ends the work. */
    char *socket, *driver, *node_id;
    struct json *claim, *class, *pv, *attachment, *source, *topology;
    struct json *secret_ref, *secret;
    int64_t bytes;
    struct json *result;
    bool node_expands;
    int error;
    struct err err;
};

static void op_free(struct op *op)
{
    struct json *owned[] = {op->claim,    op->class,      op->pv,     op->attachment, op->source,
                            op->topology, op->secret_ref, op->secret, op->result};
    for (size_t i = 0; i < ARRAY_SIZE(owned); i++) {
        json_free(owned[i]);
    }
    free(op->socket);
    free(op->driver);
    free(op->node_id);
    free(op);
}

static void op_free_value(void *p)
{
    op_free(p);
}

static struct op *op_new(struct csi_controller *c, struct work *w, op_fn *call, op_fn *end)
{
    struct op *op = NEW(struct op);
    *op = (struct op){.c = c,
                      .w = w,
                      .call = call,
                      .end = end,
                      .socket = xstrdup(c->socket),
                      .driver = xstrdup(c->driver)};
    return op;
}

static void op_work(void *ctx)
{
    struct op *op = ctx;
    op->call(op);
}

static void op_ended(void *ctx)
{
    struct op *op = ctx;
    if (!op->c->closing) {
        op->end(op);
    }
    op_free(op);
}

static void op_run(struct op *op)
{
    jobs_start(op->c->jobs, op_work, op_ended, op);
}

static void secret_read(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct csi_controller *c = ctx;
    struct op *op = smap_take(&c->ops, work_key(w));
    if (error < 0) {
        op->error = err_set(&op->err, error, "read the secret %s/%s: %s",
                            json_get_text(op->secret_ref, "namespace"),
                            json_get_text(op->secret_ref, "name"), text);
        op->end(op);
        op_free(op);
        return;
    }
    op->secret = json_clone(obj);
    op_run(op);
}

/* Runs the step after its secret was read, if it has one. */
static void op_start(struct op *op)
{
    if (!op->secret_ref) {
        op_run(op);
        return;
    }
    CLEANUP_FREE char *path = api_path("v1", "secrets", json_get_text(op->secret_ref, "namespace"),
                                       json_get_text(op->secret_ref, "name"), NULL);
    smap_set(&op->c->ops, work_key(op->w), op);
    work_request(op->w, "GET", path, NULL, secret_read);
}

static void written(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    if (error < 0 && error != -ENOENT && error != -EEXIST) {
        work_retry(w, error, "write an object of storage", text);
    } else {
        work_done(w);
    }
}

static void patch(struct work *w, const char *api_version, const char *plural, const char *ns,
                  const char *name, const char *subresource, const struct json *body)
{
    CLEANUP_FREE char *path = api_path(api_version, plural, ns, name, subresource);
    work_request_as(w, "PATCH", path, NULL, MERGE, body, written);
}

/* The source of a PersistentVolume (owned) as one of this driver; NULL: it is not this driver's. */
static struct json *source_of(const struct csi_controller *c, const struct json *pv)
{
    const struct json *csi = json_path(pv, "spec", "csi", NULL);
    struct json *source = csi ? json_clone(csi) : csi_translate(json_get(pv, "spec"));
    return source && streq(json_get_text(source, "driver"), c->driver) ? source : json_free(source);
}

/* ---- making volumes ---- */

static void call_create(struct op *op)
{
    CLEANUP_PB_STORE struct pb_store store = PB_STORE_INIT(CSI_STORE_MAX);
    struct csi_create_volume q;
    struct csi_volume answer;
    op->error =
        csi_create_make(&store, op->claim, op->class, op->secret, op->topology, &q, &op->err);
    if (op->error == 0) {
        op->error = csi_call(op->socket, CSI_CREATE_VOLUME, &q, CALL_MS, &store, &answer, &op->err);
    }
    if (op->error == 0) {
        op->error =
            csi_volume_make(op->claim, op->class, op->driver, &answer, &op->result, &op->err);
    }
}

static void end_create(struct op *op)
{
    struct csi_controller *c = op->c;
    if (op->error < 0) {
        CLEANUP_FREE char *text =
            xasprintf("failed to provision volume with StorageClass \"%s\": %s",
                      obj_name(op->class), op->err.text);
        recorder_event(c->c.recorder, "v1", "PersistentVolumeClaim", op->claim, EVENT_WARNING,
                       "ProvisioningFailed", text);
        if (op->error == -ENOSPC && obj_annotation(op->claim, STORAGE_SELECTED_NODE)) {
            CLEANUP(json_free) struct json *body = local_unselect_patch();
            patch(op->w, "v1", "persistentvolumeclaims", obj_namespace(op->claim),
                  obj_name(op->claim), NULL, body);
            return;
        }
        work_retry(op->w, op->error, "make a volume", op->err.text);
        return;
    }
    CLEANUP_FREE char *text = xasprintf("Successfully provisioned volume %s", obj_name(op->result));
    recorder_event(c->c.recorder, "v1", "PersistentVolumeClaim", op->claim, EVENT_NORMAL,
                   "ProvisioningSucceeded", text);
    work_request(op->w, "POST", "/api/v1/persistentvolumes", op->result, written);
}

static void sync_claim(struct csi_controller *c, struct work *w)
{
    const struct json *claim = informer_get(c->claims, work_key(w) + strlen(CLAIM_KEY));
    const char *name = claim ? storage_claim_class(claim) : NULL;
    const struct json *class = name && *name ? informer_get(c->classes, name) : NULL;
    if (!c->can_create || !claim || !class || !csi_claim_is_due(claim, class, c->driver)) {
        work_done(w);
        return;
    }
    CLEANUP_FREE char *volume = local_volume_name(claim);
    if (informer_get(c->volumes, volume)) {
        work_done(w);
        return;
    }
    struct op *op = op_new(c, w, call_create, end_create);
    op->claim = json_clone(claim);
    op->class = json_clone(class);
    const char *node = obj_annotation(claim, STORAGE_SELECTED_NODE);
    if (c->has_topology && node) {
        op->topology = csi_node_topology(informer_get(c->csinodes, node),
                                         informer_get(c->nodes, node), c->driver);
        if (!op->topology) {
            op->error = err_set(&op->err, -EAGAIN,
                                "the node %.100s has no topology of the driver yet", node);
        }
    }
    if (op->error == 0) {
        op->error = csi_class_secret(class, CSI_SECRET_PROVISION, claim, &op->secret_ref, &op->err);
    }
    if (op->error < 0) {
        end_create(op);
        op_free(op);
        return;
    }
    op_start(op);
}

/* ---- deleting volumes ---- */

static void call_delete(struct op *op)
{
    CLEANUP_PB_STORE struct pb_store store = PB_STORE_INIT(CSI_STORE_MAX);
    struct csi_delete_volume q = {.id = json_get_text(op->source, "volumeHandle")};
    op->error = csi_secrets(&store, op->secret, &q.secrets, &op->err);
    if (op->error == 0) {
        op->error = csi_call(op->socket, CSI_DELETE_VOLUME, &q, CALL_MS, NULL, NULL, &op->err);
        op->error = op->error == -ENOENT ? 0 : op->error;
    }
}

static void end_delete(struct op *op)
{
    if (op->error < 0) {
        recorder_event(op->c->c.recorder, "v1", "PersistentVolume", op->pv, EVENT_WARNING,
                       "VolumeFailedDelete", op->err.text);
        work_retry(op->w, op->error, "delete a volume", op->err.text);
        return;
    }
    CLEANUP(json_free) struct json *options = json_object();
    CLEANUP_FREE char *path = api_path("v1", "persistentvolumes", NULL, obj_name(op->pv), NULL);
    json_set_string(json_ensure_object(options, "preconditions"), "uid", obj_uid(op->pv));
    work_request(op->w, "DELETE", path, options, written);
}

struct search {
    const char *volume;
    bool found;
};

static void find_attachment(void *ctx, const char *key, const struct json *obj)
{
    struct search *s = ctx;
    s->found |= streq_null(json_path_string(obj, "spec", "source", "persistentVolumeName", NULL),
                           s->volume);
}

static bool is_attached(const struct csi_controller *c, const char *volume)
{
    struct search s = {.volume = volume};
    informer_each(c->attachments, find_attachment, &s);
    return s.found;
}

static void sync_volume(struct csi_controller *c, struct work *w)
{
    const char *name = work_key(w) + strlen(VOLUME_KEY);
    const struct json *pv = informer_get(c->volumes, name);
    /* The end of its attachment begins the work again. */
    if (!pv || !csi_volume_is_to_go(pv, c->driver) || is_attached(c, name)) {
        work_done(w);
        return;
    }
    struct op *op = op_new(c, w, call_delete, end_delete);
    op->pv = json_clone(pv);
    op->source = source_of(c, pv);
    op->secret_ref = csi_deletion_secret(pv);
    op_start(op);
}

/* ---- attaching ---- */

static void call_attach(struct op *op)
{
    CLEANUP_PB_STORE struct pb_store store = PB_STORE_INIT(CSI_STORE_MAX);
    const struct json *spec = json_get(op->pv, "spec");
    bool block = streq(json_get_text(spec, "volumeMode"), "Block");
    struct csi_controller_publish q = {.id = json_get_text(op->source, "volumeHandle"),
                                       .node_id = op->node_id,
                                       .readonly =
                                           json_get_bool(json_get(op->source, "readOnly"), false)};
    struct csi_publish_context answer;
    char now[TIME_TEXT_SIZE];
    op->error = csi_capability_make(&store, json_get(spec, "accessModes"), block,
                                    json_get_text(op->source, "fsType"),
                                    json_get(spec, "mountOptions"), false, &q.capability, &op->err);
    if (op->error == 0) {
        op->error = csi_secrets(&store, op->secret, &q.secrets, &op->err);
    }
    if (op->error == 0) {
        op->error =
            csi_pairs(&store, json_get(op->source, "volumeAttributes"), &q.context, &op->err);
    }
    if (op->error == 0) {
        op->error =
            csi_call(op->socket, CSI_CONTROLLER_PUBLISH, &q, CALL_MS, &store, &answer, &op->err);
    }
    time_format_s(time_wall_ms(), now);
    op->result = op->error < 0 ? csi_attach_status(NULL, op->err.text, now)
                               : csi_attach_status(&answer.context, NULL, now);
}

static void attach_failed(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    work_retry(w, -EAGAIN, "attach a volume", "the driver refused; see its VolumeAttachment");
}

static void end_attach(struct op *op)
{
    CLEANUP(json_free) struct json *body = json_object();
    if (!op->result) {
        char now[TIME_TEXT_SIZE];
        time_format_s(time_wall_ms(), now);
        op->result = csi_attach_status(NULL, op->err.text, now);
    }
    json_set(body, "status", TAKE(op->result));
    CLEANUP_FREE char *path =
        api_path(STORAGE_V1, "volumeattachments", NULL, obj_name(op->attachment), "status");
    work_request_as(op->w, "PATCH", path, NULL, MERGE, body,
                    op->error < 0 ? attach_failed : written);
}

static void call_detach(struct op *op)
{
    CLEANUP_PB_STORE struct pb_store store = PB_STORE_INIT(CSI_STORE_MAX);
    struct csi_controller_unpublish q = {.id = json_get_text(op->source, "volumeHandle"),
                                         .node_id = op->node_id ? op->node_id : ""};
    op->error = csi_secrets(&store, op->secret, &q.secrets, &op->err);
    if (op->error == 0) {
        op->error =
            csi_call(op->socket, CSI_CONTROLLER_UNPUBLISH, &q, CALL_MS, NULL, NULL, &op->err);
        op->error = op->error == -ENOENT ? 0 : op->error;
    }
}

/* Replaces the finalizers of the VolumeAttachment, with or without this driver's. */
static void write_finalizers(struct csi_controller *c, struct work *w, const struct json *va,
                             bool with)
{
    CLEANUP(json_free) struct json *body = json_object();
    struct json *meta = json_ensure_object(body, "metadata");
    struct json *list = json_set(meta, "finalizers", json_array());
    const struct json *f;
    JSON_FOREACH (f, json_path(va, "metadata", "finalizers", NULL)) {
        if (!streq_null(json_get_string(f), c->finalizer)) {
            json_append(list, json_clone(f));
        }
    }
    if (with) {
        json_append(list, json_string(c->finalizer));
    }
    json_set_string(meta, "resourceVersion",
                    json_get_text(json_get(va, "metadata"), "resourceVersion"));
    patch(w, STORAGE_V1, "volumeattachments", NULL, obj_name(va), NULL, body);
}

static void end_detach(struct op *op)
{
    if (op->error < 0) {
        work_retry(op->w, op->error, "detach a volume", op->err.text);
    } else {
        write_finalizers(op->c, op->w, op->attachment, false);
    }
}

static void call_nothing(struct op *op)
{
    char now[TIME_TEXT_SIZE];
    time_format_s(time_wall_ms(), now);
    op->result = csi_attach_status(NULL, NULL, now);
}

static struct op *attachment_op(struct csi_controller *c, struct work *w, const struct json *va,
                                op_fn *call, op_fn *end)
{
    const char *volume = json_path_string(va, "spec", "source", "persistentVolumeName", NULL);
    const struct json *pv = volume ? informer_get(c->volumes, volume) : NULL;
    const char *node = json_get_text(json_get(va, "spec"), "nodeName");
    const char *id = csi_node_id(informer_get(c->csinodes, node), c->driver);
    struct op *op = op_new(c, w, call, end);
    op->attachment = json_clone(va);
    op->pv = json_clone(pv);
    op->source = pv ? source_of(c, pv) : NULL;
    op->node_id = id ? xstrdup(id) : NULL;
    op->secret_ref = json_clone(json_get(op->source, "controllerPublishSecretRef"));
    return op;
}

static void sync_attachment(struct csi_controller *c, struct work *w)
{
    const struct json *va = informer_get(c->attachments, work_key(w) + strlen(ATTACH_KEY));
    if (!va || !streq(json_get_text(json_get(va, "spec"), "attacher"), c->driver)) {
        work_done(w);
        return;
    }
    bool has = obj_has_finalizer(va, c->finalizer);
    if (obj_is_terminating(va)) {
        struct op *op = has ? attachment_op(c, w, va, call_detach, end_detach) : NULL;
        if (!has) {
            work_done(w);
        } else if (!op->source || !c->can_publish) {
            /* Without its volume nothing says what to detach. */
            end_detach(op);
            op_free(op);
        } else {
            op_start(op);
        }
        return;
    }
    if (json_get_bool(json_path(va, "status", "attached", NULL), false)) {
        work_done(w);
    } else if (!c->can_publish) {
        op_start(attachment_op(c, w, va, call_nothing, end_attach));
    } else if (!has) {
        write_finalizers(c, w, va, true);
    } else {
        struct op *op = attachment_op(c, w, va, call_attach, end_attach);
        if (op->source && op->node_id) {
            op_start(op);
            return;
        }
        op->error = err_set(&op->err, -EAGAIN, "%s",
                            op->source ? "the driver is not registered on the node"
                                       : "the volume is not there, or of another driver");
        end_attach(op);
        op_free(op);
    }
}

/* ---- growing ---- */

static void call_expand(struct op *op)
{
    CLEANUP_PB_STORE struct pb_store store = PB_STORE_INIT(CSI_STORE_MAX);
    const struct json *spec = json_get(op->pv, "spec");
    bool block = streq(json_get_text(spec, "volumeMode"), "Block");
    struct csi_controller_expand q = {.id = json_get_text(op->source, "volumeHandle"),
                                      .required_bytes = op->bytes};
    struct csi_expanded answer;
    op->error = csi_capability_make(&store, json_get(spec, "accessModes"), block,
                                    json_get_text(op->source, "fsType"),
                                    json_get(spec, "mountOptions"), false, &q.capability, &op->err);
    if (op->error == 0) {
        op->error = csi_secrets(&store, op->secret, &q.secrets, &op->err);
    }
    if (op->error == 0) {
        op->error =
            csi_call(op->socket, CSI_CONTROLLER_EXPAND, &q, CALL_MS, &store, &answer, &op->err);
    }
    if (op->error == 0 && answer.capacity_bytes < op->bytes) {
        op->error = err_set(&op->err, -EIO, "the volume is smaller than what was asked for");
    }
    op->node_expands = op->error == 0 && answer.node_expansion_required;
}

/* The claim's status says what is next: its new size, or that the node has to go on.  Then the volume gets
 * its new size, which ends the work: until then it is begun again. */
static void claim_written(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct csi_controller *c = ctx;
    struct op *op = smap_take(&c->ops, work_key(w));
    if (error < 0) {
        written(c, w, error, text, obj);
    } else {
        CLEANUP(json_free) struct json *body = json_object();
        struct json *spec = json_ensure_object(body, "spec");
        json_set(json_ensure_object(spec, "capacity"), "storage",
                 json_stringf("%lld", (long long) op->bytes));
        patch(w, "v1", "persistentvolumes", NULL, obj_name(op->pv), NULL, body);
    }
    op_free(op);
}

static void end_expand(struct op *op)
{
    if (op->error < 0) {
        recorder_event(op->c->c.recorder, "v1", "PersistentVolumeClaim", op->claim, EVENT_WARNING,
                       "VolumeResizeFailed", op->err.text);
        work_retry(op->w, op->error, "grow a volume", op->err.text);
        return;
    }
    CLEANUP(json_free) struct json *body = csi_growth_status(op->node_expands, op->bytes);
    CLEANUP_FREE char *path = api_path("v1", "persistentvolumeclaims", obj_namespace(op->claim),
                                       obj_name(op->claim), "status");
    struct op *rest = op_new(op->c, op->w, NULL, NULL);
    rest->pv = json_clone(op->pv);
    rest->bytes = op->bytes;
    smap_set(&op->c->ops, work_key(op->w), rest);
    work_request_as(op->w, "PATCH", path, NULL, MERGE, body, claim_written);
}

static bool is_resizing(const struct json *claim)
{
    const struct json *condition;
    JSON_FOREACH (condition, json_path(claim, "status", "conditions", NULL)) {
        if (streq(json_get_text(condition, "type"), "Resizing")) {
            return true;
        }
    }
    return false;
}

static void sync_growth(struct csi_controller *c, struct work *w)
{
    const struct json *claim = informer_get(c->claims, work_key(w) + strlen(GROW_KEY));
    const char *name = json_get_text(json_get(claim, "spec"), "volumeName");
    const struct json *pv = name && *name ? informer_get(c->volumes, name) : NULL;
    int64_t bytes = pv ? csi_growth_of(claim, pv, c->driver) : 0;
    if (bytes <= 0 || !c->can_expand) {
        work_done(w);
        return;
    }
    if (!is_resizing(claim)) {
        /* The claim with its condition comes back by the informer. */
        CLEANUP(json_free) struct json *body = csi_growth_begun();
        patch(w, "v1", "persistentvolumeclaims", obj_namespace(claim), obj_name(claim), "status",
              body);
        return;
    }
    struct op *op = op_new(c, w, call_expand, end_expand);
    op->claim = json_clone(claim);
    op->pv = json_clone(pv);
    op->source = source_of(c, pv);
    op->secret_ref = json_clone(json_get(op->source, "controllerExpandSecretRef"));
    op->bytes = bytes;
    op_start(op);
}

/* ---- events ---- */

static void reconcile(void *ctx, struct work *w, const char *key)
{
    static const struct {
        const char *prefix;
        void (*sync)(struct csi_controller *c, struct work *w);
    } kinds[] = {{CLAIM_KEY, sync_claim},
                 {GROW_KEY, sync_growth},
                 {VOLUME_KEY, sync_volume},
                 {ATTACH_KEY, sync_attachment}};
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (str_has_prefix(key, kinds[i].prefix)) {
            kinds[i].sync(ctx, w);
            return;
        }
    }
    work_done(w);
}

static void add(struct csi_controller *c, const char *prefix, const char *key)
{
    CLEANUP_FREE char *work = xasprintf("%s%s", prefix, key);
    workqueue_add(c->queue, work);
}

static void claim_changed(void *ctx, const char *key, const struct json *old,
                          const struct json *obj)
{
    bool bound = *json_get_text(json_get(obj, "spec"), "volumeName");
    add(ctx, bound ? GROW_KEY : CLAIM_KEY, key);
}

static void volume_changed(void *ctx, const char *key, const struct json *old,
                           const struct json *obj)
{
    add(ctx, VOLUME_KEY, key);
}

static void attachment_changed(void *ctx, const char *key, const struct json *old,
                               const struct json *obj)
{
    /* The error that this controller wrote is no reason to try again at once. */
    if (old && obj_is_terminating(old) == obj_is_terminating(obj) &&
        json_equal(json_path(old, "metadata", "finalizers", NULL),
                   json_path(obj, "metadata", "finalizers", NULL)) &&
        json_equal(json_path(old, "status", "attached", NULL),
                   json_path(obj, "status", "attached", NULL))) {
        return;
    }
    add(ctx, ATTACH_KEY, key);
}

static void attachment_deleted(void *ctx, const char *key, const struct json *obj)
{
    const char *volume = json_path_string(obj, "spec", "source", "persistentVolumeName", NULL);
    if (volume) {
        add(ctx, VOLUME_KEY, volume);
    }
}

static void add_claim(void *ctx, const char *key, const struct json *obj)
{
    claim_changed(ctx, key, NULL, obj);
}

static void class_changed(void *ctx, const char *key, const struct json *old,
                          const struct json *obj)
{
    struct csi_controller *c = ctx;
    if (c->claims) {
        informer_each(c->claims, add_claim, c);
    }
}

static void add_attachment(void *ctx, const char *key, const struct json *obj)
{
    attachment_changed(ctx, key, NULL, obj);
}

static void csinode_changed(void *ctx, const char *key, const struct json *old,
                            const struct json *obj)
{
    struct csi_controller *c = ctx;
    informer_each(c->attachments, add_attachment, c);
}

static void synced(void *ctx)
{
    struct csi_controller *c = ctx;
    if (c->nodes && informer_synced(c->claims) && informer_synced(c->volumes) &&
        informer_synced(c->classes) && informer_synced(c->attachments) &&
        informer_synced(c->csinodes) && informer_synced(c->nodes)) {
        log_info("the controller of the CSI driver is ready", "driver=%s", c->driver);
        workqueue_start(c->queue);
    }
}

/* ---- start ---- */

struct hello {
    struct csi_controller *c;
    char *socket, *driver;
    bool can_create, can_publish, can_expand, has_topology;
    int error;
    struct err err;
};

static void ask(void *ctx)
{
    struct hello *h = ctx;
    CLEANUP_PB_STORE struct pb_store store = PB_STORE_INIT(CSI_STORE_MAX);
    struct csi_probe probe = {0};
    struct csi_plugin_info info;
    struct csi_plugin_abilities plugin = {0};
    struct csi_abilities can = {0};
    const struct {
        enum csi_method_id method;
        void *answer;
    } calls[] = {{CSI_PROBE, &probe},
                 {CSI_GET_PLUGIN_INFO, &info},
                 {CSI_GET_PLUGIN_CAPABILITIES, &plugin},
                 {CSI_CONTROLLER_GET_CAPABILITIES, &can}};
    for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
        h->error =
            csi_call(h->socket, calls[i].method, "", ASK_MS, &store, calls[i].answer, &h->err);
        if (h->error < 0) {
            return;
        }
    }
    if (probe.has_ready && !probe.ready) {
        h->error = err_set(&h->err, -EAGAIN, "Probe: the driver is not ready");
    } else if (!csi_driver_name_is_valid(info.name)) {
        h->error = err_set(&h->err, -EINVAL, "GetPluginInfo: %.100s is not the name of a driver",
                           info.name);
    } else {
        h->driver = xstrdup(info.name);
        h->can_create = csi_can(&can, CSI_CAN_CREATE_DELETE);
        h->can_publish = csi_can(&can, CSI_CAN_PUBLISH);
        h->can_expand = csi_can(&can, CSI_CAN_EXPAND);
        for (size_t i = 0; i < plugin.n; i++) {
            h->has_topology |= plugin.v[i].service == 2;
        }
    }
}

static struct informer *watch(struct csi_controller *c, const char *api_version, const char *plural,
                              const struct informer_ops *ops)
{
    return informer_new(c->c.client, c->c.loop, api_version, plural, NULL, ops, c);
}

static void begin(struct csi_controller *c)
{
    static const struct informer_ops claim_ops = {.changed = claim_changed, .synced = synced};
    static const struct informer_ops none = {.synced = synced};
    static const struct informer_ops volume_ops = {.changed = volume_changed, .synced = synced};
    static const struct informer_ops class_ops = {.changed = class_changed, .synced = synced};
    static const struct informer_ops attachment_ops = {
        .changed = attachment_changed, .deleted = attachment_deleted, .synced = synced};
    static const struct informer_ops csinode_ops = {.changed = csinode_changed, .synced = synced};
    c->classes = watch(c, STORAGE_V1, "storageclasses", &class_ops);
    c->claims = c->can_create || c->can_expand
                    ? watch(c, "v1", "persistentvolumeclaims", &claim_ops)
                    : watch(c, "v1", "persistentvolumeclaims", &none);
    c->volumes = watch(c, "v1", "persistentvolumes", &volume_ops);
    c->attachments = watch(c, STORAGE_V1, "volumeattachments", &attachment_ops);
    c->csinodes = watch(c, STORAGE_V1, "csinodes", &csinode_ops);
    c->nodes = watch(c, "v1", "nodes", &none);
}

static void asked(void *ctx)
{
    struct hello *h = ctx;
    struct csi_controller *c = h->c;
    if (!c->closing && h->error < 0) {
        if (!streq_null(c->failure, h->err.text)) {
            log_warn("the CSI driver does not answer", "socket=%s error=\"%s\"", c->socket,
                     h->err.text);
        }
        free(c->failure);
        c->failure = xstrdup(h->err.text);
        loop_timer_arm(c->timer, RETRY_MS);
    } else if (!c->closing) {
        c->driver = TAKE(h->driver);
        c->finalizer = csi_attach_finalizer(c->driver);
        c->can_create = h->can_create;
        c->can_publish = h->can_publish;
        c->can_expand = h->can_expand;
        c->has_topology = h->has_topology;
        begin(c);
    }
    free(h->socket);
    free(h->driver);
    free(h);
}

static void on_timer(void *ctx)
{
    struct csi_controller *c = ctx;
    struct hello *h = NEW(struct hello);
    h->c = c;
    h->socket = xstrdup(c->socket);
    jobs_start(c->jobs, ask, asked, h);
}

struct csi_controller *csi_controller_new(const struct csi_controller_config *conf)
{
    struct csi_controller *c = NEW(struct csi_controller);
    c->c = *conf;
    c->socket = xstrdup(conf->socket);
    smap_init(&c->ops, op_free_value);
    c->jobs = jobs_new(conf->loop);
    c->queue = workqueue_new(conf->loop, conf->client, PARALLEL, reconcile, c);
    c->timer = loop_timer_new(conf->loop, on_timer, c);
    loop_timer_arm(c->timer, 0);
    return c;
}

struct csi_controller *csi_controller_free(struct csi_controller *c)
{
    if (c) {
        struct informer *watches[] = {c->claims,      c->volumes,  c->classes,
                                      c->attachments, c->csinodes, c->nodes};
        c->closing = true;
        for (size_t i = 0; i < ARRAY_SIZE(watches); i++) {
            informer_free(watches[i]);
        }
        workqueue_free(c->queue);
        jobs_free(c->jobs, FREE_WAIT_MS);
        loop_timer_free(c->timer);
        smap_done(&c->ops);
        free(c->socket);
        free(c->driver);
        free(c->finalizer);
        free(c->failure);
        free(c);
    }
    return NULL;
}
