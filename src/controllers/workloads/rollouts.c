/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/workloads/rollouts.h"

#include "api/obj.h"
#include "base/mem.h"
#include "base/timeutil.h"

void rollouts_init(struct rollouts *r, const struct controller_env *env)
{
    engine_init(&r->engine, env, &workload_replication_controllers);
    engine_watch(&r->engine, &workload_replication_controllers, &r->sets);
    engine_watch(&r->engine, &workload_pods, &r->pods);
    owned_init(&r->of_config, &workload_deployment_configs);
    owned_init(&r->of_set, &workload_replication_controllers);
}

void rollouts_done(struct rollouts *r)
{
    engine_done(&r->engine);
    owned_done(&r->of_config);
    owned_done(&r->of_set);
}

static void note_end(struct rollouts *r, const struct json *old, const struct json *obj)
{
    if (!obj || obj_is_terminating(obj)) {
        engine_is_gone(&r->engine, obj ? obj : old);
    }
}

void rollouts_set_changed(struct rollouts *r, const char *key, const struct json *old,
                          const struct json *obj)
{
    owned_change(&r->of_config, key, old, obj);
    note_end(r, old, obj);
}

void rollouts_pod_changed(struct rollouts *r, const char *key, const struct json *old,
                          const struct json *obj)
{
    owned_change(&r->of_set, key, old, obj);
    note_end(r, old, obj);
}

/* ---- objects of one rollout ---- */

static bool find_pod(const struct rollouts *r, const struct json *rc, const char *suffix,
                     struct workload_child *ret)
{
    CLEANUP_FREE char *key = deployer_pod_key(rc, suffix);
    const struct json *pod = informer_get(r->pods, key);
    if (!pod) {
        return false;
    }
    struct owned_list list = {.list = ret, .n = 1};
    *ret = (struct workload_child){.obj = pod, .going = obj_is_terminating(pod)};
    engine_mark_leaving(&r->engine, &list);
    return true;
}

void rollouts_find_pods(const struct rollouts *r, const struct json *rc, struct rollout_pods *ret)
{
    *ret = (struct rollout_pods){0};
    ret->has_deployer = find_pod(r, rc, "deploy", &ret->deployer);
    for (int i = 0; i < N_HOOKS; i++) {
        CLEANUP_FREE char *suffix =
            xasprintf("hook-%s", deployer_hook_name((enum deployer_hook) i));
        ret->has_hook[i] = find_pod(r, rc, suffix, &ret->hooks[i]);
    }
}

/* The ReplicationControllers of the DeploymentConfig that controls 'rc'. */
static void find_sets(const struct rollouts *r, const struct json *rc, struct owned_list *ret)
{
    const struct json *ref = obj_controller(rc);
    if (!ref ||
        !obj_ref_is(ref, workload_deployment_configs.group, workload_deployment_configs.kind)) {
        return;
    }
    CLEANUP(json_free) struct json *owner = json_object();
    json_set_string(json_ensure_object(owner, "metadata"), "uid", json_get_text(ref, "uid"));
    owned_find(&r->of_config, r->sets, owner, false, ret);
}

static bool is_of_namespace(const struct json *a, const struct json *b)
{
    return streq(obj_namespace(a), obj_namespace(b));
}

/* Whether a pod of the ReplicationController may still run. */
static bool has_pods(const struct rollouts *r, const struct json *rc)
{
    struct owned_list pods = {0};
    bool any = false;
    owned_find(&r->of_set, r->pods, rc, false, &pods);
    for (size_t i = 0; i < pods.n; i++) {
        const struct json *pod = pods.list[i].obj;
        const struct json *ref = obj_controller(pod);
        any |= ref && streq(json_get_text(ref, "uid"), obj_uid(rc)) &&
               !workload_pod_has_phase(pod, "Succeeded") && !workload_pod_has_phase(pod, "Failed");
    }
    free(pods.list);
    return any;
}

enum deploy_state rollouts_deploy(const struct rollouts *r, const struct json *rc,
                                  const struct rollout_pods *pods, const char *until,
                                  struct deploy_memory *m, struct workload_plan *plan,
                                  struct strbuf *lines, char **ret_why)
{
    struct owned_list found = {0};
    find_sets(r, rc, &found);
    const struct json **sets = xcalloc(found.n + 1, sizeof *sets);
    struct deploy_input in = {.to = rc, .sets = sets, .until = until, .now_ms = time_wall_ms()};
    sets[in.n_sets++] = rc;
    for (size_t i = 0; i < found.n; i++) {
        const struct json *other = found.list[i].obj;
        if (other == rc || !is_of_namespace(other, rc) || streq(obj_uid(other), obj_uid(rc))) {
            continue;
        }
        sets[in.n_sets++] = other;
        in.old_pods_run |= has_pods(r, other);
    }
    for (int i = 0; i < N_HOOKS; i++) {
        in.hooks[i] = pods->has_hook[i] ? &pods->hooks[i] : NULL;
    }
    enum deploy_state s = deploy_plan(&in, m, plan, lines, ret_why);
    free((void *) sets);
    free(found.list);
    return s;
}

void rollouts_each_running(const struct rollouts *r, const struct json *rc,
                           void (*fn)(void *ctx, const char *key, const struct json *rc), void *ctx)
{
    struct owned_list found = {0};
    find_sets(r, rc, &found);
    for (size_t i = 0; i < found.n; i++) {
        const struct json *other = found.list[i].obj;
        if (!rollout_has_ended(other) && is_of_namespace(other, rc)) {
            CLEANUP_FREE char *key = xasprintf("%s/%s", obj_namespace(other), obj_name(other));
            fn(ctx, key, other);
        }
    }
    free(found.list);
}
