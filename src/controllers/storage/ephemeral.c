/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/storage/ephemeral.h"

#include "api/obj.h"
#include "base/mem.h"
#include "storage/fields.h"

struct ephemeral {
    struct controller_env env;
    struct informer *pods, *claims;
    struct smap made; /* Keys of claims that were made and are not in the copy yet. */
};

static bool is_over(const struct json *pod)
{
    const char *phase = json_get_text(json_get(pod, "status"), "phase");
    return streq(phase, "Succeeded") || streq(phase, "Failed") || obj_is_terminating(pod);
}

static bool has_volumes(const struct json *pod)
{
    const struct json *v;
    JSON_FOREACH (v, json_path(pod, "spec", "volumes", NULL)) {
        if (json_get(v, "ephemeral")) {
            return true;
        }
    }
    return false;
}

/* ---- events ---- */

static void pod_changed(void *ctx, const char *key, const struct json *old, const struct json *pod)
{
    struct ephemeral *c = ctx;
    if (!is_over(pod) && has_volumes(pod)) {
        workqueue_add(c->env.queue, key);
    }
}

static void pod_deleted(void *ctx, const char *key, const struct json *pod)
{
}

static void claim_changed(void *ctx, const char *key, const struct json *old,
                          const struct json *claim)
{
    struct ephemeral *c = ctx;
    (void) smap_remove(&c->made, key);
}

static void claim_deleted(void *ctx, const char *key, const struct json *claim)
{
    struct ephemeral *c = ctx;
    const struct json *ref = obj_controller(claim);
    (void) smap_remove(&c->made, key);
    if (obj_ref_is(ref, "", "Pod")) {
        CLEANUP_FREE char *pod =
            xasprintf("%s/%s", obj_namespace(claim), json_get_text(ref, "name"));
        workqueue_add(c->env.queue, pod);
    }
}

/* ---- making ---- */

static struct json *make_claim(const struct json *pod, const struct json *volume, const char *name)
{
    const struct json *template = json_path(volume, "ephemeral", "volumeClaimTemplate", NULL);
    const struct json *meta = json_get(template, "metadata");
    struct json *o = obj_new("v1", "PersistentVolumeClaim", obj_namespace(pod), name);
    struct json *own = json_get(o, "metadata");
    static const char *const members[] = {"labels", "annotations"};
    for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
        if (json_get(meta, members[i])) {
            json_set(own, members[i], json_clone(json_get(meta, members[i])));
        }
    }
    struct json *ref = json_append(json_ensure_array(own, "ownerReferences"), json_object());
    json_set_string(ref, "apiVersion", "v1");
    json_set_string(ref, "kind", "Pod");
    json_set_string(ref, "name", obj_name(pod));
    json_set_string(ref, "uid", obj_uid(pod));
    json_set_bool(ref, "controller", true);
    json_set_bool(ref, "blockOwnerDeletion", true);
    if (json_get(template, "spec")) {
        json_set(o, "spec", json_clone(json_get(template, "spec")));
    }
    return o;
}

static bool is_of_pod(const struct json *claim, const struct json *pod)
{
    return streq(json_get_text(obj_controller(claim), "uid"), obj_uid(pod));
}

static void say(struct ephemeral *c, const struct json *pod, const char *text)
{
    recorder_event(c->env.recorder, "v1", "Pod", pod, EVENT_WARNING, "FailedBinding", text);
}

static void created(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct ephemeral *c = ctx;
    const struct json *pod = informer_get(c->pods, work_key(w));
    if (error == 0) {
        CLEANUP_FREE char *key = xasprintf("%s/%s", obj_namespace(obj), obj_name(obj));
        if (!informer_get(c->claims, key)) {
            smap_set(&c->made, key, c);
        }
        workqueue_add(c->env.queue, work_key(w)); /* The pod may have another volume. */
        work_done(w);
        return;
    }
    if (pod && error != -EAGAIN && error != -EEXIST) {
        CLEANUP_FREE char *message = xasprintf("ephemeral volume creation: %s", text);
        say(c, pod, message);
    }
    work_retry(w, error, "create the claim of an ephemeral volume", text);
}

static void reconcile(void *ctx, struct work *w, const char *key)
{
    struct ephemeral *c = ctx;
    const struct json *pod = informer_get(c->pods, key), *v;
    JSON_FOREACH (v, json_path(pod, "spec", "volumes", NULL)) {
        CLEANUP_FREE char *name =
            json_get(v, "ephemeral") && !is_over(pod) ? storage_pod_claim(pod, v) : NULL;
        CLEANUP_FREE char *claim_key = name ? xasprintf("%s/%s", obj_namespace(pod), name) : NULL;
        const struct json *claim = claim_key ? informer_get(c->claims, claim_key) : NULL;
        if (claim && !is_of_pod(claim, pod)) {
            CLEANUP_FREE char *text = xasprintf("ephemeral volume creation: PVC \"%s\" was not "
                                                "created for pod \"%s\" (pod is not owner)",
                                                claim_key, key);
            say(c, pod, text);
        } else if (claim_key && !claim && !smap_get(&c->made, claim_key)) {
            CLEANUP_FREE char *path =
                api_path("v1", "persistentvolumeclaims", obj_namespace(pod), NULL, NULL);
            CLEANUP(json_free) struct json *o = make_claim(pod, v, name);
            work_request(w, "POST", path, o, created);
            return;
        }
    }
    work_done(w);
}

/* ---- start and stop ---- */

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    struct ephemeral *c = NEW(struct ephemeral);
    c->env = *env;
    smap_init(&c->made, NULL);
    *ret = c;
    return 0;
}

static void stop(void *state)
{
    struct ephemeral *c = state;
    smap_done(&c->made);
    free(c);
}

static const struct controller_watch watches[] = {
    {.api_version = "v1",
     .plural = "pods",
     .informer = CONTROLLER_INFORMER(struct ephemeral, pods),
     .changed = pod_changed,
     .deleted = pod_deleted},
    {.api_version = "v1",
     .plural = "persistentvolumeclaims",
     .informer = CONTROLLER_INFORMER(struct ephemeral, claims),
     .changed = claim_changed,
     .deleted = claim_deleted},
};

const struct controller ephemeral_volumes_controller = {
    .name = "ephemeral_volumes",
    .watches = watches,
    .n_watches = ARRAY_SIZE(watches),
    .parallel = 4,
    .account = "ephemeral-volume-controller",
    .start = start,
    .reconcile = reconcile,
    .stop = stop,
};
