/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/workloads/autoscalers.h"

#include "api/condition.h"
#include "api/obj.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "client/discovery.h"
#include "workload/autoscale.h"

#define VERSION "autoscaling/v2"
#define KIND "HorizontalPodAutoscaler"
#define PLURAL "horizontalpodautoscalers"
#define METRICS "metrics.k8s.io/v1beta1"
#define KINDS_AGE_MS 30000 /* An unknown kind is looked for again after this time. */

/* What is known of one autoscaler. */
struct target {
    struct autoscale_memory memory;
    /* Of the look that goes on: */
    struct json *hpa, *scale, *pods;
    char *path; /* Of the scale. */
    struct autoscale result;
};

struct autoscalers {
    struct controller_env env;
    struct informer *hpas;
    struct smap targets; /* Key to 'struct target'. */
    struct discovery *kinds;
    struct discovery_call *asking;
    uint64_t kinds_until_ms;
};

static void end_look(struct target *t)
{
    t->hpa = json_free(t->hpa);
    t->scale = json_free(t->scale);
    t->pods = json_free(t->pods);
    free(TAKE(t->path));
    autoscale_done(&t->result);
}

static void free_target(void *p)
{
    struct target *t = p;
    end_look(t);
    autoscale_memory_done(&t->memory);
    free(t);
}

static struct target *target_of(struct autoscalers *c, const char *key)
{
    struct target *t = smap_get(&c->targets, key);
    if (!t) {
        t = NEW(struct target);
        smap_set(&c->targets, key, t);
    }
    return t;
}

static void say(struct autoscalers *c, const struct json *hpa, bool warning, const char *reason,
                const char *text)
{
    recorder_event(c->env.recorder, VERSION, KIND, hpa, warning ? EVENT_WARNING : EVENT_NORMAL,
                   reason, text);
}

/* ---- the status ---- */

static void finish(struct autoscalers *c, struct work *w)
{
    end_look(target_of(c, work_key(w)));
    work_wait(w, AUTOSCALE_PERIOD_MS);
}

static void status_written(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    if (error < 0 && error != -ENOENT && error != -ESTALE) {
        end_look(target_of(ctx, work_key(w)));
        work_retry(w, error, "write the status of an autoscaler", text);
    } else {
        finish(ctx, w); /* After a conflict the next look writes it. */
    }
}

static void write_status(struct autoscalers *c, struct work *w, struct json *o)
{
    const struct target *t = target_of(c, work_key(w));
    if (json_get(t->hpa, "status") &&
        json_equal(json_get(o, "status"), json_get(t->hpa, "status"))) {
        finish(c, w);
        return;
    }
    CLEANUP_FREE char *path = api_path(VERSION, PLURAL, obj_namespace(o), obj_name(o), "status");
    json_set_string(o, "apiVersion", VERSION);
    json_set_string(o, "kind", KIND);
    work_request(w, "PUT", path, o, status_written);
}

/* The target or its pods cannot be read: nothing is changed, and the condition says why. */
static void give_up(struct autoscalers *c, struct work *w, const char *reason, const char *what,
                    const char *why)
{
    struct target *t = target_of(c, work_key(w));
    CLEANUP_FREE char *text = xasprintf("the HPA controller was unable to %s: %s", what, why);
    CLEANUP(json_free) struct json *o = json_clone(t->hpa);
    (void) condition_set(o, "AbleToScale", "False", reason, text, time_wall_ms());
    say(c, t->hpa, true, reason, why);
    write_status(c, w, o);
}

/* ---- the change ---- */

static int64_t present(const struct target *t)
{
    return json_get_int_or(json_path(t->scale, "spec", "replicas", NULL), 0);
}

static void scaled(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct autoscalers *c = ctx;
    struct target *t = target_of(c, work_key(w));
    struct autoscale *a = &t->result;
    if (error < 0) {
        CLEANUP_FREE char *said = xasprintf("New size: %lld; reason: %s; error: %s",
                                            (long long) a->desired, a->reason, text);
        say(c, t->hpa, true, "FailedRescale", said);
        give_up(c, w, "FailedUpdateScale", "update the target scale", text);
        return;
    }
    CLEANUP_FREE char *said =
        xasprintf("New size: %lld; reason: %s", (long long) a->desired, a->reason);
    say(c, t->hpa, false, "SuccessfulRescale", said);
    autoscale_changed(a, &t->memory, present(t), a->desired, time_wall_ms());
    write_status(c, w, a->status);
}

static void decide(struct autoscalers *c, struct work *w, const struct json *metrics,
                   const char *metrics_error)
{
    struct target *t = target_of(c, work_key(w));
    const struct autoscale_input in = {.scale = t->scale,
                                       .pods = json_get(t->pods, "items"),
                                       .metrics = json_get(metrics, "items"),
                                       .metrics_error = metrics_error};
    autoscale_plan(t->hpa, &in, &t->memory, time_wall_ms(), &t->result);
    if (t->result.fail_reason) {
        say(c, t->hpa, true, t->result.fail_reason, t->result.fail_text);
    }
    if (!t->result.scales) {
        write_status(c, w, t->result.status);
        return;
    }
    CLEANUP(json_free) struct json *scale = json_clone(t->scale);
    json_set_int(json_ensure_object(scale, "spec"), "replicas", t->result.desired);
    work_request(w, "PUT", t->path, scale, scaled);
}

/* ---- what it depends on, one after the other ---- */

static void metrics_read(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    decide(ctx, w, error < 0 ? NULL : obj, error < 0 ? text : NULL);
}

/* The path of a list of the target's pods, or of their metrics; owned. */
static char *list_path(const struct target *t, const char *version)
{
    CLEANUP_STRBUF struct strbuf selector = STRBUF_INIT;
    CLEANUP_FREE char *path = api_path(version, "pods", obj_namespace(t->hpa), NULL, NULL);
    http_escape(json_get_text(json_get(t->scale, "status"), "selector"), &selector);
    return xasprintf("%s?labelSelector=%s", path, strbuf_cstr(&selector));
}

static void pods_read(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct autoscalers *c = ctx;
    struct target *t = target_of(c, work_key(w));
    if (error < 0) {
        give_up(c, w, "FailedListPods", "list the pods of the target", text);
        return;
    }
    t->pods = json_clone(obj);
    CLEANUP_FREE char *path = list_path(t, METRICS);
    work_request(w, "GET", path, NULL, metrics_read);
}

static void scale_read(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct autoscalers *c = ctx;
    struct target *t = target_of(c, work_key(w));
    if (error < 0) {
        give_up(c, w, "FailedGetScale", "get the target's current scale", text);
        return;
    }
    t->scale = json_clone(obj);
    if (!*json_get_text(json_get(t->scale, "status"), "selector")) {
        give_up(c, w, "InvalidSelector", "find the pods of the target", "selector is required");
        return;
    }
    CLEANUP_FREE char *path = list_path(t, "v1");
    work_request(w, "GET", path, NULL, pods_read);
}

static void kinds_known(void *ctx, int error, const char *text, struct discovery *kinds)
{
    struct autoscalers *c = ctx;
    c->asking = NULL;
    if (error == 0) {
        discovery_free(c->kinds);
        c->kinds = kinds;
    }
    c->kinds_until_ms = loop_now_ms(c->env.loop) + KINDS_AGE_MS;
    struct smap_entry *e;
    SMAP_FOREACH (e, &c->targets) {
        workqueue_add(c->env.queue, e->key);
    }
}

/* Reads the scale of the object that the autoscaler names. */
static void read_scale(struct autoscalers *c, struct work *w, struct target *t)
{
    const struct json *ref = json_path(t->hpa, "spec", "scaleTargetRef", NULL);
    const char *version = json_get_text(ref, "apiVersion"), *kind = json_get_text(ref, "kind");
    const struct api_kind *k =
        c->kinds ? api_registry_by_name(discovery_registry(c->kinds), version, kind) : NULL;
    if (k && k->namespaced) {
        t->path = api_path(version, k->plural, obj_namespace(t->hpa), json_get_text(ref, "name"),
                           "scale");
        work_request(w, "GET", t->path, NULL, scale_read);
    } else if (c->kinds && c->kinds_until_ms > loop_now_ms(c->env.loop)) {
        CLEANUP_FREE char *why =
            xasprintf("no matches for kind \"%s\" in version \"%s\"", kind, version);
        give_up(c, w, "FailedGetScale", "get the target's current scale", why);
    } else {
        if (!c->asking) {
            c->asking = discovery_fetch(c->env.client, kinds_known, c);
        }
        end_look(t);
        work_wait(w, KINDS_AGE_MS); /* Or when the kinds are known. */
    }
}

static void reconcile(void *ctx, struct work *w, const char *key)
{
    struct autoscalers *c = ctx;
    const struct json *hpa = informer_get(c->hpas, key);
    if (!hpa || obj_is_terminating(hpa)) {
        (void) smap_remove(&c->targets, key);
        work_done(w);
        return;
    }
    struct target *t = target_of(c, key);
    t->hpa = json_clone(hpa);
    read_scale(c, w, t);
}

/* ---- events ---- */

/* The status that the controller writes itself is no reason for another look. */
static void hpa_changed(void *ctx, const char *key, const struct json *old, const struct json *obj)
{
    struct autoscalers *c = ctx;
    const struct json *was = json_get(old, "spec"), *is = json_get(obj, "spec");
    if (!old || !was || !is || !json_equal(was, is) || obj_is_terminating(obj)) {
        workqueue_add(c->env.queue, key);
    }
}

static void hpa_deleted(void *ctx, const char *key, const struct json *obj)
{
    struct autoscalers *c = ctx;
    workqueue_add(c->env.queue, key);
}

/* ---- start and stop ---- */

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    struct autoscalers *c = NEW(struct autoscalers);
    c->env = *env;
    smap_init(&c->targets, free_target);
    *ret = c;
    return 0;
}

static void stop(void *state)
{
    struct autoscalers *c = state;
    discovery_cancel(c->asking);
    discovery_free(c->kinds);
    smap_done(&c->targets);
    free(c);
}

static const struct controller_watch watches[] = {
    {.api_version = VERSION,
     .plural = PLURAL,
     .informer = CONTROLLER_INFORMER(struct autoscalers, hpas),
     .changed = hpa_changed,
     .deleted = hpa_deleted},
};

const struct controller autoscalers_controller = {
    .name = "autoscalers",
    .watches = watches,
    .n_watches = ARRAY_SIZE(watches),
    .parallel = 4,
    .account = "horizontal-pod-autoscaler",
    .start = start,
    .reconcile = reconcile,
    .stop = stop,
};
