/* SPDX-License-Identifier: Apache-2.0 */
/* The status of Deployments: numbers and conditions. */
#include "api/condition.h"
#include "api/obj.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/timeutil.h"
#include "workload/deployment_priv.h"

#define PROGRESSING "Progressing"
#define FAILURE "ReplicaFailure"
#define TIMED_OUT "ProgressDeadlineExceeded"
#define PAUSED "DeploymentPaused"
#define NEW_AVAILABLE "NewReplicaSetAvailable"

static int64_t count(const struct json *obj, const char *key)
{
    return json_get_int_or(json_path(obj, "status", key, NULL), 0);
}

/* ---- conditions ---- */

static bool is_reason(const struct json *condition, const char *reason)
{
    return condition && streq(json_get_text(condition, "reason"), reason);
}

/* Seconds; negative: there is no deadline. */
static int64_t deadline_s(const struct json *d)
{
    int64_t s = json_get_int_or(json_path(d, "spec", "progressDeadlineSeconds", NULL), INT32_MAX);
    return s == INT32_MAX ? -1 : s;
}

static void set_progress(struct deployment *d, const char *status, const char *reason,
                         const char *message, bool again)
{
    condition_renew(d->o, PROGRESSING, status, reason, message, again, d->now_ms);
}

void deployment_pause(struct deployment *d)
{
    const struct json *c = condition_find(d->o, PROGRESSING);
    bool was = is_reason(c, PAUSED);
    if (deadline_s(d->d) < 0 || is_reason(c, TIMED_OUT)) {
        return;
    }
    if (d->paused && !was) {
        set_progress(d, "Unknown", PAUSED, "Deployment is paused", false);
    } else if (!d->paused && was) {
        set_progress(d, "Unknown", "DeploymentResumed", "Deployment is resumed", false);
    }
}

void deployment_found_new_set(struct deployment *d)
{
    if (deadline_s(d->d) >= 0 && !condition_find(d->o, PROGRESSING)) {
        CLEANUP_FREE char *text =
            xasprintf("Found new replica set \"%s\"", obj_name(d->new_set->obj));
        set_progress(d, "True", "FoundNewReplicaSet", text, false);
    }
}

void deployment_created_new_set(struct deployment *d, const char *name)
{
    if (deadline_s(d->d) >= 0) {
        CLEANUP_FREE char *text = xasprintf("Created new replica set \"%s\"", name);
        set_progress(d, "True", "NewReplicaSetCreated", text, false);
    }
}

void deployment_set_was_changed(struct deployment *d, const struct json *set)
{
    static const char reason[] = "ReplicaSetTemplateChanged";
    CLEANUP_FREE char *text =
        xasprintf("The template of replica set \"%s\" was changed by the API server or a user, as "
                  "before: no other one is created. Delete it, or correct what changes it",
                  obj_name(set));
    if (!is_reason(condition_find(d->o, PROGRESSING), reason)) {
        workload_plan_say(d->plan, true, reason, "%s", text);
    }
    set_progress(d, "False", reason, text, false);
}

void deployment_outcome(struct json *object, const struct workload_write *w, const char *why,
                        int64_t now_ms)
{
    if (w && w->verb == WORKLOAD_CREATE && deadline_s(object) >= 0) {
        CLEANUP_FREE char *text = xasprintf("%s%s", w->fail_message, why);
        condition_renew(object, PROGRESSING, "False", DEPLOYMENT_CREATE_ERROR, text, false, now_ms);
    }
}

/* ---- numbers ---- */

static void set_count(struct json *status, const char *key, int64_t n)
{
    if (n) {
        json_set_int(status, key, n);
    } else {
        (void) json_remove(status, key); /* The API leaves out 0 as well. */
    }
}

void deployment_count(struct deployment *d)
{
    struct json *status = json_ensure_object(d->o, "status");
    int64_t wanted = 0, all = 0, ready = 0, available = 0;
    for (size_t i = 0; i < d->n; i++) {
        const struct json *o = d->sets[i].obj;
        wanted += d->sets[i].size.replicas;
        all += count(o, "replicas");
        ready += count(o, "readyReplicas");
        available += count(o, "availableReplicas");
    }
    set_count(status, "observedGeneration", obj_generation(d->d));
    set_count(status, "replicas", all);
    set_count(status, "updatedReplicas", d->new_set ? count(d->new_set->obj, "replicas") : 0);
    set_count(status, "readyReplicas", ready);
    set_count(status, "availableReplicas", available);
    set_count(status, "unavailableReplicas", MAX(wanted - available, 0));
    bool enough = available >= d->r.desired - d->r.unavailable;
    condition_renew(d->o, "Available", enough ? "True" : "False",
                    enough ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable",
                    enough ? "Deployment has minimum availability."
                           : "Deployment does not have minimum availability.",
                    false, d->now_ms);
}

bool deployment_is_complete(const struct deployment *d, const struct json *o)
{
    return count(o, "updatedReplicas") == d->r.desired && count(o, "replicas") == d->r.desired &&
           count(o, "availableReplicas") == d->r.desired &&
           count(o, "observedGeneration") >= obj_generation(d->d);
}

/* ---- progress ---- */

static bool is_progressing(const struct deployment *d)
{
    int64_t old_before = count(d->d, "replicas") - count(d->d, "updatedReplicas");
    int64_t old_now = count(d->o, "replicas") - count(d->o, "updatedReplicas");
    return count(d->o, "updatedReplicas") > count(d->d, "updatedReplicas") ||
           old_now < old_before || count(d->o, "readyReplicas") > count(d->d, "readyReplicas") ||
           count(d->o, "availableReplicas") > count(d->d, "availableReplicas");
}

/* The time at which the deadline ends; 0: it does not run. */
static int64_t deadline_ms(const struct deployment *d)
{
    const struct json *c = condition_find(d->o, PROGRESSING);
    int64_t since;
    if (!c || is_reason(c, NEW_AVAILABLE) || is_reason(c, TIMED_OUT) ||
        time_parse(json_get_text(c, "lastUpdateTime"), &since) < 0) {
        return 0;
    }
    return since + deadline_s(d->d) * 1000;
}

static void say_progress(struct deployment *d, const char *status, const char *reason,
                         const char *what, bool again)
{
    CLEANUP_FREE char *text = xasprintf("%s \"%s\" %s", d->new_set ? "ReplicaSet" : "Deployment",
                                        obj_name(d->new_set ? d->new_set->obj : d->d), what);
    set_progress(d, status, reason, text, again);
}

/* The first failure of a set, the new one's before others, becomes the Deployment's. */
static void copy_failure(struct deployment *d)
{
    const struct json *c = d->new_set ? condition_find(d->new_set->obj, FAILURE) : NULL;
    for (size_t i = 0; i < d->n && !c; i++) {
        c = condition_find(d->sets[i].obj, FAILURE);
    }
    if (!c) {
        condition_remove(d->o, FAILURE);
        return;
    }
    condition_renew(d->o, FAILURE, json_get_text(c, "status"), json_get_text(c, "reason"),
                    json_get_text(c, "message"), false, d->now_ms);
}

void deployment_progress(struct deployment *d)
{
    const struct json *was = condition_find(d->d, PROGRESSING);
    bool settled =
        count(d->o, "replicas") == count(d->o, "updatedReplicas") && is_reason(was, NEW_AVAILABLE);
    bool complete = deployment_is_complete(d, d->o);
    if (deadline_s(d->d) < 0) {
        condition_remove(d->o, PROGRESSING);
    } else if (!settled) {
        int64_t end_ms = deadline_ms(d);
        if (complete) {
            say_progress(d, "True", NEW_AVAILABLE, "has successfully progressed.", false);
        } else if (is_progressing(d)) {
            say_progress(d, "True", "ReplicaSetUpdated", "is progressing.", true);
        } else if (end_ms && end_ms < d->now_ms) {
            say_progress(d, "False", TIMED_OUT, "has timed out progressing.", false);
        }
    }
    copy_failure(d);
    int64_t end_ms = deadline_s(d->d) >= 0 && !complete ? deadline_ms(d) : 0;
    if (end_ms) {
        workload_plan_recheck(d->plan, end_ms + 1000);
    }
}
