/* SPDX-License-Identifier: Apache-2.0 */
#include "api/obj.h"
#include "base/mem.h"
#include "workload/deployment_config_priv.h"

static int64_t size_of(const struct json *rc)
{
    return json_get_int_or(json_path(rc, "spec", "replicas", NULL), 1);
}

struct json *deployment_config_selector(const struct json *config)
{
    struct json *selector = json_object();
    json_set_string(json_ensure_object(selector, "matchLabels"), ROLLOUT_CONFIG, obj_name(config));
    return selector;
}

/* ---- writes ---- */

/* Adds the write of the ReplicationController, which is taken over. */
static struct workload_write *write_set(struct config *c, struct json *rc)
{
    json_set_string(rc, "apiVersion", workload_replication_controllers.api_version);
    json_set_string(rc, "kind", workload_replication_controllers.kind);
    return workload_plan_add(c->plan, WORKLOAD_MAIN, WORKLOAD_UPDATE,
                             &workload_replication_controllers, obj_name(rc), rc);
}

/* Cancels the rollouts that have not ended; whether there is one. */
static bool cancel_others(struct config *c)
{
    bool any = false, cancels = false;
    for (size_t i = 0; i < c->n; i++) {
        const struct json *rc = c->sets[i];
        if (rollout_has_ended(rc)) {
            continue;
        }
        any = true;
        if (rollout_is_cancelled(rc)) {
            continue;
        }
        struct json *body = json_clone(rc);
        obj_set_annotation(body, ROLLOUT_CANCELLED, "true");
        obj_set_annotation(body, ROLLOUT_REASON, ROLLOUT_REASON_NEWER);
        struct workload_write *w = write_set(c, body);
        w->reason = "DeploymentCancelled";
        w->message = xasprintf("Cancelled deployment \"%s\" superceded by version %lld",
                               obj_name(rc), (long long) c->version);
        cancels = true;
    }
    if (cancels) {
        /* Said once: the end of each rollout makes the next plan. */
        workload_plan_say(c->plan, false, "DeploymentAwaitingCancellation",
                          "Deployment of version %lld awaiting cancellation of older running "
                          "deployments",
                          (long long) c->version);
    }
    return any;
}

/* The active ReplicationController gets the desired number of pods, all others none. */
static void scale_sets(struct config *c)
{
    const struct json *active = rollout_active(c->sets, c->n), *spec = json_get(c->config, "spec");
    bool test = json_get_bool(json_get(spec, "test"), false);
    for (size_t i = 0; i < c->n; i++) {
        const struct json *rc = c->sets[i];
        int64_t was = size_of(rc);
        int64_t is = rc == active && !test ? json_get_int_or(json_get(spec, "replicas"), 0) : 0;
        if (was == is || obj_is_terminating(rc)) {
            continue;
        }
        struct json *body = json_clone(rc);
        json_set_int(json_ensure_object(body, "spec"), "replicas", is);
        struct workload_write *w = write_set(c, body);
        w->reason = "ReplicationControllerScaled";
        w->message = xasprintf("Scaled replication controller \"%s\" from %lld to %lld",
                               obj_name(rc), (long long) was, (long long) is);
    }
}

/* Whether the ReplicationController counts as history. */
static bool is_old(const struct config *c, const struct json *rc, const struct json *active)
{
    int64_t number = rollout_version(rc);
    return active ? number < rollout_version(active) : number != c->version;
}

static bool may_have_pods(const struct json *rc)
{
    const struct json *status = json_get(rc, "status");
    return size_of(rc) != 0 || json_get_int_or(json_get(status, "replicas"), 0) != 0 ||
           json_get_int_or(json_get(status, "observedGeneration"), 0) < obj_generation(rc);
}

/* Deletes the oldest ReplicationControllers that are too many. */
static void clean_up(struct config *c)
{
    int64_t limit = json_get_int_or(json_path(c->config, "spec", "revisionHistoryLimit", NULL), -1);
    const struct json *active = rollout_active(c->sets, c->n);
    int64_t kept = 0;
    for (size_t i = 0; limit >= 0 && i < c->n; i++) {
        const struct json *rc = c->sets[i];
        if (!is_old(c, rc, active) || kept++ < limit || may_have_pods(rc) ||
            obj_is_terminating(rc)) {
            continue;
        }
        struct workload_write *w =
            workload_plan_delete(c->plan, WORKLOAD_MAIN, &workload_replication_controllers, rc);
        json_set_string(w->body, "propagationPolicy", "Background");
        w->fail_reason = "DeploymentCleanupFailed";
        w->fail_message = xstrdup("Couldn't clean up deployments: ");
    }
}

/* ---- a new rollout ---- */

static void begin_rollout(struct config *c, int64_t version)
{
    json_set_int(json_ensure_object(c->o, "status"), "latestVersion", version);
}

/* The name is taken: by this DeploymentConfig's own, or one that it is about to adopt, which the
 * next plan sees, or by another one. */
static bool name_is_met(struct json *object, const struct workload_write *w,
                        const struct json *live)
{
    const struct json *ref = obj_controller(live);
    return ref ? streq(json_get_text(ref, "uid"), obj_uid(object))
               : streq_null(obj_label(live, ROLLOUT_CONFIG), obj_name(object)) &&
                     !obj_is_terminating(live);
}

static void create_set(struct config *c)
{
    struct json *rc = rollout_make_set(c->config);
    const char *name = obj_name(rc);
    struct workload_write *w = workload_plan_add(c->plan, WORKLOAD_MAIN, WORKLOAD_CREATE,
                                                 &workload_replication_controllers, name, rc);
    w->reason = "DeploymentCreated";
    w->message = xasprintf("Created new replication controller \"%s\" for version %lld", name,
                           (long long) c->version);
    w->fail_reason = "DeploymentCreationFailed";
    w->fail_message = xasprintf("Couldn't deploy version %lld: ", (long long) c->version);
    c->plan->met = name_is_met;
    c->plan->outcome = config_outcome;
    clean_up(c);
    config_count(c, true);
    config_created(c, name);
}

/* ---- one step ---- */

static void find_latest(struct config *c)
{
    rollout_sort(c->sets, c->n);
    if (c->version > 0 && c->n && rollout_version(c->sets[0]) == c->version) {
        c->latest = c->sets[0];
    }
}

static void plan(struct config *c)
{
    if (json_get_bool(json_path(c->config, "spec", "paused", NULL), false)) {
        clean_up(c);
        config_count(c, true);
        return;
    }
    if (c->version > 0 && c->n && rollout_version(c->sets[0]) > c->version) {
        /* The status was lost, or written by a user: no number is given twice. */
        begin_rollout(c, rollout_version(c->sets[0]));
        return;
    }
    if (!c->latest && cancel_others(c)) {
        config_count(c, false);
        return;
    }
    if (config_waits_for_image(c)) {
        config_count(c, true);
        return;
    }
    if (config_is_triggered(c)) {
        begin_rollout(c, c->version + 1);
        return;
    }
    if (!c->latest && c->version > 0) {
        create_set(c);
        return;
    }
    if (c->latest && !rollout_has_ended(c->latest)) {
        config_count(c, false);
        return;
    }
    scale_sets(c);
    clean_up(c);
    config_count(c, true);
}

void deployment_config_plan(const struct json *config, struct workload_child *sets, size_t n,
                            int64_t now_ms, struct workload_plan *ret)
{
    struct config c = {.config = config,
                       .o = json_clone(config),
                       .sets = xcalloc(n + 1, sizeof(const struct json *)),
                       .version =
                           json_get_int_or(json_path(config, "status", "latestVersion", NULL), 0),
                       .now_ms = now_ms,
                       .plan = ret};
    CLEANUP(json_free) struct json *selector = deployment_config_selector(config);
    n = workload_claim(ret, &workload_deployment_configs, config, selector,
                       &workload_replication_controllers, sets, n);
    for (size_t i = 0; i < n; i++) {
        if (!sets[i].going) {
            c.sets[c.n++] = sets[i].obj;
        }
    }
    find_latest(&c);
    if (obj_is_terminating(config) || (c.version == 0 && !config_has_trigger(config, NULL))) {
        config_count(&c, true);
    } else {
        plan(&c);
    }
    ret->status = c.o;
    free((void *) c.sets);
}
