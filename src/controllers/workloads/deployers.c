/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/workloads/deployers.h"

#include "api/obj.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "controllers/workloads/rollouts.h"

LOG_MODULE("controllers");

struct deployers {
    struct rollouts rollouts;
    const struct deployers_config *cfg;
    /* The uid of a ReplicationController to the 'struct deploy_memory' of its rollout. */
    struct smap memories;
};

static void memory_free(void *p)
{
    deploy_memory_done(p);
    free(p);
}

static struct deploy_memory *memory_of(struct deployers *c, const struct json *rc)
{
    struct deploy_memory *m = smap_get(&c->memories, obj_uid(rc));
    if (!m) {
        m = NEW(struct deploy_memory);
        smap_set(&c->memories, obj_uid(rc), m);
    }
    return m;
}

/* ---- one rollout ---- */

static void refused(void *ctx, const struct json *rc, const struct workload_write *w, int error,
                    const char *why)
{
    struct deployers *c = ctx;
    struct deploy_memory *m = smap_get(&c->memories, obj_uid(rc));
    if (m) {
        deploy_refused(m, w, error, why);
    }
}

static void log_lines(const struct json *rc, char *lines)
{
    for (char *line = lines; line && *line;) {
        char *end = strchr(line, '\n');
        if (end) {
            *end = '\0';
        }
        log_debug("rollout", "replicationcontroller=%s/%s text=\"%s\"", obj_namespace(rc),
                  obj_name(rc), line);
        line = end ? end + 1 : NULL;
    }
}

/* Does the next step of a rollout without a pod. */
static void deploy(struct deployers *c, const struct deployer_input *in,
                   const struct rollout_pods *pods, struct workload_plan *plan)
{
    CLEANUP_STRBUF struct strbuf lines = STRBUF_INIT;
    CLEANUP_FREE char *why = NULL;
    enum deploy_state s =
        rollouts_deploy(&c->rollouts, in->rc, pods, NULL, memory_of(c, in->rc), plan, &lines, &why);
    log_lines(in->rc, lines.data);
    plan->refused = refused;
    plan->refused_ctx = c;
    if (s == DEPLOY_DONE || s == DEPLOY_FAILED) {
        if (s == DEPLOY_FAILED) {
            workload_plan_say(plan, true, "RolloutFailed", "Rollout for \"%s/%s\" failed: %s",
                              obj_namespace(in->rc), obj_name(in->rc), why);
        }
        deployer_end(in, s == DEPLOY_DONE ? NULL : why, plan);
    }
}

static void reconcile(void *ctx, struct work *w, const char *key)
{
    struct deployers *c = ctx;
    if (!engine_is_current(&c->rollouts.engine, w)) {
        return;
    }
    const struct json *rc = informer_get(c->rollouts.sets, key);
    if (!rc || !deployer_is_for(rc)) {
        work_done(w);
        return;
    }
    struct rollout_pods pods;
    rollouts_find_pods(&c->rollouts, rc, &pods);
    struct deployer_input in = {.rc = rc,
                                .pod = pods.has_deployer ? &pods.deployer : NULL,
                                .image = c->cfg->image,
                                .in_process = c->cfg->in_process,
                                .now_ms = time_wall_ms()};
    for (int i = 0; i < N_HOOKS; i++) {
        in.hooks[i] = pods.has_hook[i] ? &pods.hooks[i] : NULL;
    }
    CLEANUP_PLAN struct workload_plan plan = {0};
    if (deployer_plan(&in, &plan) == DEPLOYER_DEPLOY) {
        deploy(c, &in, &pods, &plan);
    } else {
        (void) smap_remove(&c->memories, obj_uid(rc));
    }
    engine_run(&c->rollouts.engine, w, rc, &plan);
}

/* ---- events ---- */

static void add_key(void *ctx, const char *key, const struct json *rc)
{
    struct deployers *c = ctx;
    if (obj_annotation(rc, ROLLOUT_IN_PROCESS)) {
        workqueue_add(c->rollouts.engine.env.queue, key);
    }
}

static void set_changed(void *ctx, const char *key, const struct json *old, const struct json *rc)
{
    struct deployers *c = ctx;
    rollouts_set_changed(&c->rollouts, key, old, rc);
    if (deployer_is_for(rc)) {
        workqueue_add(c->rollouts.engine.env.queue, key);
        rollouts_each_running(&c->rollouts, rc, add_key, c);
    }
}

static void set_deleted(void *ctx, const char *key, const struct json *rc)
{
    struct deployers *c = ctx;
    rollouts_set_changed(&c->rollouts, key, rc, NULL);
    engine_forget(&c->rollouts.engine, key);
    (void) smap_remove(&c->memories, obj_uid(rc));
}

/* A pod of the deployer or of a hook adds its ReplicationController; the end of another pod adds
 * the rollouts that may wait for it. */
static void add_rollouts(struct deployers *c, const struct json *pod, bool ends)
{
    const char *rollout = obj_label(pod, ROLLOUT_POD_FOR);
    const struct json *ref = obj_controller(pod);
    if (rollout && *rollout) {
        CLEANUP_FREE char *key = xasprintf("%s/%s", obj_namespace(pod), rollout);
        workqueue_add(c->rollouts.engine.env.queue, key);
    }
    if (ends && ref && obj_ref_is(ref, "", workload_replication_controllers.kind)) {
        CLEANUP_FREE char *key = xasprintf("%s/%s", obj_namespace(pod), json_get_text(ref, "name"));
        const struct json *rc = informer_get(c->rollouts.sets, key);
        if (rc) {
            rollouts_each_running(&c->rollouts, rc, add_key, c);
        }
    }
}

static void pod_changed(void *ctx, const char *key, const struct json *old, const struct json *pod)
{
    struct deployers *c = ctx;
    rollouts_pod_changed(&c->rollouts, key, old, pod);
    add_rollouts(c, pod,
                 workload_pod_has_phase(pod, "Succeeded") || workload_pod_has_phase(pod, "Failed"));
}

static void pod_deleted(void *ctx, const char *key, const struct json *pod)
{
    struct deployers *c = ctx;
    rollouts_pod_changed(&c->rollouts, key, pod, NULL);
    add_rollouts(c, pod, true);
}

static void quota_changed(void *ctx, const char *key, const struct json *old,
                          const struct json *obj)
{
    struct deployers *c = ctx;
    engine_quota_changed(&c->rollouts.engine, old, obj);
}

static void quota_deleted(void *ctx, const char *key, const struct json *obj)
{
    struct deployers *c = ctx;
    engine_quota_changed(&c->rollouts.engine, obj, NULL);
}

/* ---- start and stop ---- */

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    struct deployers *c = NEW(struct deployers);
    rollouts_init(&c->rollouts, env);
    c->cfg = config;
    smap_init(&c->memories, memory_free);
    *ret = c;
    return 0;
}

static void stop(void *state)
{
    struct deployers *c = state;
    rollouts_done(&c->rollouts);
    smap_done(&c->memories);
    free(c);
}

static const struct controller_watch watches[] = {
    {.api_version = "v1",
     .plural = "replicationcontrollers",
     .informer = CONTROLLER_INFORMER(struct deployers, rollouts.sets),
     .changed = set_changed,
     .deleted = set_deleted},
    {.api_version = "v1",
     .plural = "pods",
     .informer = CONTROLLER_INFORMER(struct deployers, rollouts.pods),
     .changed = pod_changed,
     .deleted = pod_deleted},
    {.api_version = "v1",
     .plural = "resourcequotas",
     .changed = quota_changed,
     .deleted = quota_deleted},
    {.api_version = "quota.openshift.io/v1",
     .plural = "clusterresourcequotas",
     .changed = quota_changed,
     .deleted = quota_deleted},
};

const struct controller deployers_controller = {
    .name = "deployers",
    .watches = watches,
    .n_watches = ARRAY_SIZE(watches),
    .parallel = 8,
    .account = "deployer-controller",
    .start = start,
    .reconcile = reconcile,
    .stop = stop,
};
