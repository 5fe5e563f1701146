/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/templates/instances.h"

#include "api/condition.h"
#include "api/obj.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "controllers/templates/instances_priv.h"
#include "workload/template_instance.h"

LOG_MODULE("controllers");

#define READY_TIMEOUT_MS (INT64_C(3600) * 1000)
#define POLL_MS 5000       /* Between looks at an object whose kind is not watched. */
#define LOOK_AGAIN_MS 10   /* Until the copy has what was written. */
#define KINDS_WAIT_MS 5000 /* Until the server was asked for its kinds again. */
#define MERGE "application/merge-patch+json"

/* ---- the parts of an instance ---- */

static void drop_targets(struct instance *in)
{
    for (size_t i = 0; i < in->n_targets; i++) {
        free(in->targets[i].path);
        free(in->targets[i].resource);
        free(in->targets[i].plural);
    }
    free(TAKE(in->targets));
    in->n_targets = 0;
}

static void instance_free(void *p)
{
    struct instance *in = p;
    drop_targets(in);
    json_free(in->obj);
    json_free(in->template);
    json_free(in->objects);
    json_free(in->refs);
    strbuf_done(&in->text);
    api_client_free(in->as);
    free(in);
}

struct instance *instance_of(struct instances *c, const struct work *w)
{
    return smap_get(&c->running, work_key(w));
}

static struct instance *instance_new(struct instances *c, const struct work *w,
                                     const struct json *obj)
{
    struct instance *in = NEW(struct instance);
    in->c = c;
    in->obj = json_clone(obj);
    in->text = STRBUF_INIT_MAX(INSTANCE_MAX_TEXT);
    smap_set(&c->running, work_key(w), in);
    return in;
}

/* Ends the work on the instance until something changes.  The version is still needed. */
static void end(struct instance *in, struct work *w)
{
    in->step = NULL;
    drop_targets(in);
    in->template = json_free(in->template);
    in->objects = json_free(in->objects);
    work_done(w);
}

void instance_go(struct instance *in, struct work *w,
                 void (*step)(struct instance *in, struct work *w))
{
    in->step = step;
    in->at = 0;
    step(in, w);
}

bool instance_may_retry(int error)
{
    return error < 0 && error != -EACCES && error != -EINVAL && error != -ENOENT &&
           error != -EEXIST && error != -ESTALE && error != -EPERM && error != -EPROTO &&
           error != -EOPNOTSUPP;
}

struct api_client *instance_as(struct instance *in, struct err *e)
{
    if (!in->as) {
        (void) api_client_as_user(in->c->env.client, json_path(in->obj, "spec", "requester", NULL),
                                  &in->as, e);
    }
    return in->as;
}

/* ---- kinds ---- */

static void kinds_known(void *ctx, int error, const char *text, struct discovery *kinds)
{
    struct instances *c = ctx;
    struct smap_entry *e;
    c->asking = NULL;
    if (error == 0) {
        discovery_free(c->kinds);
        c->kinds = kinds;
    }
    SMAP_FOREACH (e, &c->waiting) {
        struct instance *in = smap_get(&c->running, e->key);
        if (in) {
            in->asked = error == 0;
        }
        workqueue_add(c->env.queue, e->key);
    }
    smap_clear(&c->waiting);
}

const struct api_kind *instance_kind(struct instance *in, struct work *w, const char *api_version,
                                     const char *kind, bool *ret_waits)
{
    struct instances *c = in->c;
    const struct api_kind *k =
        c->kinds ? api_registry_by_name(discovery_registry(c->kinds), api_version, kind) : NULL;
    if (k || (c->kinds && in->asked)) {
        return k;
    }
    if (!c->asking) {
        c->asking = discovery_fetch(c->env.client, kinds_known, c);
    }
    smap_set(&c->waiting, work_key(w), NULL);
    *ret_waits = true;
    work_wait(w, KINDS_WAIT_MS);
    return NULL;
}

/* ---- status ---- */

void instance_note(struct instance *in, const struct json *obj)
{
    const char *text = json_path_string(obj, "metadata", "resourceVersion", NULL);
    uint64_t version;
    if (text && str_to_u64(text, UINT64_MAX, &version) == 0) {
        in->version = MAX(in->version, version);
        json_free(in->obj);
        in->obj = json_clone(obj);
    }
}

void instance_set_ready(struct instance *in, const char *status, const char *reason,
                        const char *message)
{
    (void) condition_set(in->obj, "Ready", status, reason, message, time_wall_ms());
}

void instance_write_status(struct instance *in, struct work *w, bool refs, work_answer_fn *done)
{
    CLEANUP(json_free) struct json *body = json_object();
    CLEANUP_FREE char *path = api_path(TEMPLATES, "templateinstances", obj_namespace(in->obj),
                                       obj_name(in->obj), "status");
    struct json *status = json_ensure_object(body, "status");
    const struct json *conditions = json_path(in->obj, "status", "conditions", NULL);
    /* Another instance of that name must not get it. */
    json_set_string(json_ensure_object(body, "metadata"), "uid", obj_uid(in->obj));
    json_set(status, "conditions", conditions ? json_clone(conditions) : NULL);
    json_set(status, "objects", refs && in->refs ? json_clone(in->refs) : json_null());
    work_request_as(w, "PATCH", path, NULL, MERGE, body, done);
}

static void final_status_written(void *ctx, struct work *w, int error, const char *text,
                                 struct json *obj)
{
    struct instance *in = instance_of(ctx, w);
    if (error < 0 && error != -ENOENT && error != -ESTALE) {
        work_retry(w, error, "write the status of a TemplateInstance", text);
        return;
    }
    instance_note(in, obj);
    end(in, w);
}

/* The refs are written as they are: none after an undone creation. */
static void step_failed(struct instance *in, struct work *w)
{
    int64_t now = time_wall_ms();
    instance_set_ready(in, "False", "Failed", "See InstantiateFailure condition for error message");
    (void) condition_set(in->obj, "InstantiateFailure", "True", "Failed", strbuf_cstr(&in->text),
                         now);
    recorder_event(in->c->env.recorder, TEMPLATES, "TemplateInstance", in->obj, EVENT_WARNING,
                   "InstantiateFailure", strbuf_cstr(&in->text));
    instance_write_status(in, w, json_count(in->refs) > 0, final_status_written);
}

void instance_fail(struct instance *in, struct work *w)
{
    if (in->refs && in->step != instance_check) {
        instance_go(in, w, instance_undo);
    } else {
        instance_go(in, w, step_failed);
    }
}

/* ---- deletion of the objects ---- */

static void finalizer_changed(void *ctx, struct work *w, int error, const char *text,
                              struct json *obj)
{
    struct instance *in = instance_of(ctx, w);
    if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "change the finalizers of a TemplateInstance", text);
        return;
    }
    instance_note(in, obj);
    end(in, w);
}

/* Writes the finalizers without this controller's, or with it. */
static void write_finalizers(struct instance *in, struct work *w, bool with)
{
    CLEANUP(json_free) struct json *body = json_object();
    CLEANUP_FREE char *path =
        api_path(TEMPLATES, "templateinstances", obj_namespace(in->obj), obj_name(in->obj), NULL);
    struct json *meta = json_ensure_object(body, "metadata");
    const struct json *name, *had = json_get(in->obj, "metadata");
    struct json *list = json_ensure_array(meta, "finalizers");
    json_set_string(meta, "uid", obj_uid(in->obj));
    json_set_string(meta, "resourceVersion", json_get_text(had, "resourceVersion"));
    JSON_FOREACH (name, json_get(had, "finalizers")) {
        if (!streq_null(json_get_string(name), TEMPLATE_FINALIZER)) {
            json_append(list, json_clone(name));
        }
    }
    if (with) {
        json_append(list, json_string(TEMPLATE_FINALIZER));
    }
    work_request_as(w, "PATCH", path, NULL, MERGE, body, finalizer_changed);
}

static void undo_step(struct instance *in, struct work *w);

/* Nothing is left of the last reference. */
static void undone(struct instance *in, struct work *w)
{
    (void) json_remove_at(in->refs, json_count(in->refs) - 1);
    undo_step(in, w);
}

static void deleted(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct instance *in = instance_of(ctx, w);
    if (instance_may_retry(error)) {
        work_retry(w, error, "delete an object of a TemplateInstance", text);
        return;
    }
    if (error < 0 && error != -ENOENT && error != -ESTALE) {
        log_warn("an object of a TemplateInstance could not be deleted", "instance=%s error=\"%s\"",
                 work_key(w), text);
    }
    undone(in, w);
}

static const struct json *last_ref(const struct instance *in)
{
    return json_get(json_at(in->refs, json_count(in->refs) - 1), "ref");
}

/* Sends the deletion.  Without a uid it is not certain that this controller created the object, so
 * the requester's rights decide. */
static void send_deletion(struct instance *in, struct work *w, const char *path, const char *uid)
{
    CLEANUP(json_free) struct json *body = json_object();
    struct api_client *client =
        *json_get_text(last_ref(in), "uid") ? in->c->env.client : instance_as(in, NULL);
    json_set_string(body, "apiVersion", "v1");
    json_set_string(body, "kind", "DeleteOptions");
    json_set_string(body, "propagationPolicy", "Background");
    if (uid) {
        json_set_string(json_ensure_object(body, "preconditions"), "uid", uid);
    }
    if (client) {
        work_request_by(w, client, "DELETE", path, body, deleted);
    } else {
        undone(in, w);
    }
}

static char *ref_path(const struct json *ref, const struct api_kind *k)
{
    const char *name = json_get_text(ref, "name");
    return api_path(json_get_text(ref, "apiVersion"), k->plural,
                    k->namespaced ? json_get_text(ref, "namespace") : NULL, *name ? name : NULL,
                    NULL);
}

/* Only an object with the instance's label, and the uid that was noted, is deleted. */
static void found(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct instance *in = instance_of(ctx, w);
    const struct json *ref = last_ref(in);
    const char *uid = json_get_text(ref, "uid");
    const char *owner = obj_label(obj, TEMPLATE_OWNER_LABEL);
    bool waits = false;
    if (instance_may_retry(error)) {
        work_retry(w, error, "read an object of a TemplateInstance", text);
        return;
    }
    const struct api_kind *k =
        instance_kind(in, w, json_get_text(ref, "apiVersion"), json_get_text(ref, "kind"), &waits);
    if (waits) {
        return;
    }
    if (error < 0 || !k || !streq_null(owner, obj_uid(in->obj)) ||
        (*uid && !streq(uid, obj_uid(obj)))) {
        undone(in, w);
        return;
    }
    CLEANUP_FREE char *path = ref_path(ref, k);
    send_deletion(in, w, path, obj_uid(obj));
}

static void restarted(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct instance *in = instance_of(ctx, w);
    if (error < 0 && error != -ENOENT && error != -ESTALE) {
        work_retry(w, error, "write the status of a TemplateInstance", text);
        return;
    }
    instance_note(in, obj);
    end(in, w); /* The change begins it anew. */
}

static void undo_step(struct instance *in, struct work *w)
{
    if (!json_count(in->refs)) {
        if (in->ends) {
            write_finalizers(in, w, false);
        } else if (in->text.size) {
            instance_go(in, w, step_failed);
        } else {
            instance_write_status(in, w, false, restarted);
        }
        return;
    }
    const struct json *ref = last_ref(in);
    bool waits = false;
    const struct api_kind *k =
        instance_kind(in, w, json_get_text(ref, "apiVersion"), json_get_text(ref, "kind"), &waits);
    if (waits) {
        return;
    }
    if (!k) {
        undone(in, w); /* With the kind its objects are gone. */
        return;
    }
    CLEANUP_FREE char *path = ref_path(ref, k);
    if (*json_get_text(ref, "name")) {
        work_request(w, "GET", path, NULL, found);
        return;
    }
    CLEANUP_FREE char *selected =
        xasprintf("%s?labelSelector=" TEMPLATE_OWNER_LABEL "%%3D%s", path, obj_uid(in->obj));
    send_deletion(in, w, selected, NULL);
}

void instance_undo(struct instance *in, struct work *w)
{
    undo_step(in, w);
}

/* ---- readiness ---- */

/* Kinds whose changes wake the instance. */
static bool is_watched(const struct json *ref)
{
    const char *kind = json_get_text(ref, "kind");
    return streq(kind, "Deployment") || streq(kind, "DeploymentConfig") ||
           streq(kind, "StatefulSet") || streq(kind, "Job");
}

static void waiting_written(void *ctx, struct work *w, int error, const char *text,
                            struct json *obj)
{
    struct instance *in = instance_of(ctx, w);
    if (error < 0 && error != -ENOENT && error != -ESTALE) {
        work_retry(w, error, "write the status of a TemplateInstance", text);
        return;
    }
    const struct json *ref = json_get(json_at(in->refs, in->at), "ref");
    int64_t left = obj_created_ms(in->obj) + READY_TIMEOUT_MS - time_wall_ms();
    uint64_t ms = is_watched(ref) ? READY_TIMEOUT_MS : POLL_MS;
    instance_note(in, obj);
    in->step = NULL;
    work_wait(w, MIN(ms, (uint64_t) MAX(left, 0) + 1));
}

static void write_waiting(struct instance *in, struct work *w, const struct json *ref)
{
    CLEANUP_FREE char *text = xasprintf("Waiting for instantiated objects to report ready: %s %s",
                                        json_get_text(ref, "kind"), json_get_text(ref, "name"));
    if (condition_set(in->obj, "Ready", "False", "Waiting", text, time_wall_ms())) {
        instance_write_status(in, w, true, waiting_written);
    } else {
        waiting_written(in->c, w, 0, "", NULL);
    }
}

static void checked(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct instance *in = instance_of(ctx, w);
    const struct json *ref = json_get(json_at(in->refs, in->at), "ref");
    const char *kind = json_get_text(ref, "kind"), *name = json_get_text(ref, "name");
    if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "read an object of a TemplateInstance", text);
        return;
    }
    enum template_state state = error < 0 ? TEMPLATE_FAILED : template_object_state(obj);
    if (error < 0 || !streq(obj_uid(obj), json_get_text(ref, "uid"))) {
        strbuf_addf(&in->text, "%.253s \"%.253s\" not found", kind, name);
        instance_go(in, w, step_failed);
    } else if (state == TEMPLATE_FAILED) {
        strbuf_addf(&in->text, "readiness failed on %.253s %.253s/%.253s", kind,
                    json_get_text(ref, "namespace"), name);
        instance_go(in, w, step_failed);
    } else if (state == TEMPLATE_WAITING) {
        write_waiting(in, w, ref);
    } else {
        in->at++;
        instance_check(in, w);
    }
}

/* Looks at the objects from number in->at on. */
void instance_check(struct instance *in, struct work *w)
{
    bool waits = false;
    if (time_wall_ms() > obj_created_ms(in->obj) + READY_TIMEOUT_MS) {
        strbuf_adds(&in->text, "timeout while waiting for template instance to be ready");
        instance_go(in, w, step_failed);
        return;
    }
    const struct json *ref = json_get(json_at(in->refs, in->at), "ref");
    if (!ref) {
        instance_set_ready(in, "True", "Created", "");
        instance_write_status(in, w, true, final_status_written);
        return;
    }
    const struct api_kind *k =
        instance_kind(in, w, json_get_text(ref, "apiVersion"), json_get_text(ref, "kind"), &waits);
    if (waits) {
        return;
    }
    CLEANUP_FREE char *path = k ? ref_path(ref, k) : NULL;
    if (k) {
        work_request(w, "GET", path, NULL, checked);
    } else {
        checked(in->c, w, -ENOENT, "", NULL);
    }
}

/* ---- the controller ---- */

static bool is_finished(const struct json *obj)
{
    return condition_is_true(obj, "Ready") || condition_is_true(obj, "InstantiateFailure");
}

/* Whether an object may have been created whose uid is not known. */
static bool is_interrupted(const struct json *refs)
{
    const struct json *o;
    bool interrupted = false;
    JSON_FOREACH (o, refs) {
        interrupted |= !*json_get_text(json_get(o, "ref"), "uid");
    }
    return interrupted;
}

/* Takes the references of the status, unless newer ones are known. */
static void take_refs(struct instance *in)
{
    const struct json *refs = json_path(in->obj, "status", "objects", NULL);
    if (!in->refs) {
        in->refs = refs ? json_clone(refs) : json_array();
    }
}

/* Begins what the state of the object asks for. */
static void begin(struct instance *in, struct work *w)
{
    const struct json *refs = json_path(in->obj, "status", "objects", NULL);
    if (obj_is_terminating(in->obj)) {
        if (!obj_has_finalizer(in->obj, TEMPLATE_FINALIZER)) {
            end(in, w);
            return;
        }
        in->ends = true;
        take_refs(in);
        instance_go(in, w, instance_undo);
    } else if (!obj_has_finalizer(in->obj, TEMPLATE_FINALIZER)) {
        write_finalizers(in, w, true);
    } else if (json_count(refs)) {
        take_refs(in);
        instance_go(in, w, is_interrupted(refs) ? instance_undo : instance_check);
    } else {
        instance_go(in, w, instantiate);
    }
}

static void reconcile(void *ctx, struct work *w, const char *key)
{
    struct instances *c = ctx;
    const struct json *obj = informer_get(c->objects, key);
    struct instance *in = smap_get(&c->running, key);
    if (in && (!obj || !streq(obj_uid(obj), obj_uid(in->obj)))) {
        (void) smap_remove(&c->running, key);
        in = NULL;
    }
    if (!obj || (is_finished(obj) && !obj_is_terminating(obj))) {
        (void) smap_remove(&c->running, key);
        work_done(w);
    } else if (in && informer_version(c->objects) < in->version) {
        work_wait(w, LOOK_AGAIN_MS);
    } else if (in && in->step && !obj_is_terminating(obj)) {
        in->step(in, w); /* Another attempt. */
    } else {
        /* References in memory are newer than those of the status while it is interrupted. */
        struct json *refs = in && in->step ? TAKE(in->refs) : NULL;
        (void) smap_remove(&c->running, key);
        in = instance_new(c, w, obj);
        in->refs = refs;
        begin(in, w);
    }
}

static void changed(void *state, const char *key, const struct json *old, const struct json *obj)
{
    struct instances *c = state;
    (void) smap_remove(&c->owners, obj_uid(obj));
    smap_set(&c->owners, obj_uid(obj), xstrdup(key));
    workqueue_add(c->env.queue, key);
}

static void gone(void *state, const char *key, const struct json *obj)
{
    struct instances *c = state;
    (void) smap_remove(&c->owners, obj_uid(obj));
    workqueue_add(c->env.queue, key);
}

static void part_changed(void *state, const char *key, const struct json *old,
                         const struct json *obj)
{
    struct instances *c = state;
    const char *owner = obj_label(obj, TEMPLATE_OWNER_LABEL);
    const char *instance = owner ? smap_get(&c->owners, owner) : NULL;
    if (instance) {
        workqueue_add(c->env.queue, instance);
    }
}

static void part_gone(void *state, const char *key, const struct json *obj)
{
    part_changed(state, key, NULL, obj);
}

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    struct instances *c = NEW(struct instances);
    c->env = *env;
    smap_init(&c->running, instance_free);
    smap_init(&c->owners, free);
    smap_init(&c->waiting, NULL);
    *ret = c;
    return 0;
}

static void stop(void *state)
{
    struct instances *c = state;
    discovery_cancel(c->asking);
    discovery_free(c->kinds);
    smap_done(&c->running);
    smap_done(&c->owners);
    smap_done(&c->waiting);
    free(c);
}

#define PARTS(version, name)                                                                   \
    {                                                                                          \
        .api_version = version, .plural = name, .changed = part_changed, .deleted = part_gone, \
        .transient = true, .metadata = true                                                    \
    }

static const struct controller_watch watches[] = {
    {.api_version = TEMPLATES,
     .plural = "templateinstances",
     .informer = CONTROLLER_INFORMER(struct instances, objects),
     .changed = changed,
     .deleted = gone},
    PARTS("apps/v1", "deployments"),
    PARTS("apps/v1", "statefulsets"),
    PARTS("batch/v1", "jobs"),
    PARTS("apps.openshift.io/v1", "deploymentconfigs"),
};

const struct controller template_instances_controller = {
    .name = "template_instances",
    .watches = watches,
    .n_watches = ARRAY_SIZE(watches),
    .parallel = 4,
    .start = start,
    .reconcile = reconcile,
    .stop = stop,
};
