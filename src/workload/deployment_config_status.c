/* SPDX-License-Identifier: Apache-2.0 */
/* The status of DeploymentConfigs: numbers and conditions. */
#include "api/condition.h"
#include "api/obj.h"
#include "base/mem.h"
#include "workload/deployment_config_priv.h"
#include "workload/rollout.h"

static int64_t count(const struct json *obj, const char *key)
{
    return json_get_int_or(json_path(obj, "status", key, NULL), 0);
}

static void progress(struct config *c, const char *status, const char *reason, const char *format,
                     const char *name)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    strbuf_addf(&b, "replication controller \"%s\" %s", name, format);
    condition_renew(c->o, CONFIG_PROGRESSING, status, reason, strbuf_cstr(&b), false, c->now_ms);
}

/* Of the pods that are desired so many may be missing. */
static int64_t may_be_missing(const struct json *config, int64_t desired)
{
    const struct json *strategy = json_path(config, "spec", "strategy", NULL);
    const struct json *rolling = json_get(strategy, "rollingParams");
    int64_t surge = 0, missing = 0;
    if (streq(json_get_text(strategy, "type"), "Rolling") && desired > 0) {
        rollout_bounds(json_get(rolling, "maxSurge"), json_get(rolling, "maxUnavailable"), desired,
                       &surge, &missing);
    }
    return missing;
}

static void set_available(struct config *c, int64_t available)
{
    int64_t desired = json_get_int_or(json_path(c->config, "spec", "replicas", NULL), 0);
    bool enough = available > 0 && available >= desired - may_be_missing(c->config, desired);
    condition_renew(c->o, "Available", enough ? "True" : "False", "",
                    enough ? "Deployment config has minimum availability."
                           : "Deployment config does not have minimum availability.",
                    false, c->now_ms);
}

static bool is_progressing(const struct config *c)
{
    int64_t old_before = count(c->config, "replicas") - count(c->config, "updatedReplicas");
    int64_t old_now = count(c->o, "replicas") - count(c->o, "updatedReplicas");
    return count(c->o, "updatedReplicas") > count(c->config, "updatedReplicas") ||
           old_now < old_before;
}

static void set_progress(struct config *c)
{
    const char *name = obj_name(c->latest);
    CLEANUP_FREE char *pod = rollout_pod_name(name, "deploy");
    CLEANUP_FREE char *waits = xasprintf("is waiting for pod \"%s\" to run", pod);
    switch (rollout_phase(c->latest)) {
    case ROLLOUT_PENDING:
        progress(c, "Unknown", "", waits, name);
        break;
    case ROLLOUT_RUNNING:
        if (is_progressing(c)) {
            /* The time of the last transition is that of the last progress, as in the original. */
            condition_remove(c->o, CONFIG_PROGRESSING);
            progress(c, "True", "ReplicationControllerUpdated", "is progressing", name);
        }
        break;
    case ROLLOUT_FAILED:
        if (rollout_is_cancelled(c->latest)) {
            CLEANUP_FREE char *text =
                xasprintf("rollout of replication controller \"%s\" was cancelled", name);
            condition_renew(c->o, CONFIG_PROGRESSING, "False", "RolloutCancelled", text, false,
                            c->now_ms);
        } else {
            progress(c, "False", "ProgressDeadlineExceeded", "has failed progressing", name);
        }
        break;
    case ROLLOUT_COMPLETE:
        progress(c, "True", "NewReplicationControllerAvailable", "successfully rolled out", name);
        break;
    case ROLLOUT_NEW:
        break;
    }
}

void config_count(struct config *c, bool observed)
{
    struct json *status = json_ensure_object(c->o, "status");
    int64_t wanted = 0, all = 0, ready = 0, available = 0;
    for (size_t i = 0; i < c->n; i++) {
        wanted += json_get_int_or(json_path(c->sets[i], "spec", "replicas", NULL), 1);
        all += count(c->sets[i], "replicas");
        ready += count(c->sets[i], "readyReplicas");
        available += count(c->sets[i], "availableReplicas");
    }
    if (observed) {
        json_set_int(status, "observedGeneration", obj_generation(c->config));
    }
    json_set_int(status, "replicas", all);
    json_set_int(status, "updatedReplicas", c->latest ? count(c->latest, "replicas") : 0);
    json_set_int(status, "availableReplicas", available);
    json_set_int(status, "unavailableReplicas", MAX(wanted - available, 0));
    if (ready) {
        json_set_int(status, "readyReplicas", ready);
    } else {
        (void) json_remove(status, "readyReplicas"); /* The API leaves out 0 as well. */
    }
    set_available(c, available);
    if (c->latest && !c->waits) {
        set_progress(c);
    }
}

void config_created(struct config *c, const char *name)
{
    CLEANUP_FREE char *text = xasprintf(
        "Created new replication controller \"%s\" for version %lld", name, (long long) c->version);
    condition_renew(c->o, CONFIG_PROGRESSING, "True", "NewReplicationControllerCreated", text,
                    false, c->now_ms);
}

void config_outcome(struct json *object, const struct workload_write *w, const char *why,
                    int64_t now_ms)
{
    if (w && w->verb == WORKLOAD_CREATE) {
        condition_renew(object, CONFIG_PROGRESSING, "False", CONFIG_CREATE_ERROR, why, true,
                        now_ms);
    }
}
