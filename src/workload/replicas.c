/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/replicas.h"

#include "api/condition.h"
#include "api/obj.h"
#include "base/mem.h"

#define FAILURE "ReplicaFailure"

struct json *replicas_selector(const struct workload_kind *kind, const struct json *owner)
{
    const struct json *selector = json_path(owner, "spec", "selector", NULL);
    if (kind == &workload_replica_sets || !selector) {
        return json_clone(selector);
    }
    struct json *wrapped = json_object();
    json_set(wrapped, "matchLabels", json_clone(selector));
    return wrapped;
}

/* What follows the name in 'pods "web-x7k2p" is forbidden: …': each attempt has another name. */
static const char *after_name(const char *text)
{
    const char *name = strchr(text, '"'), *end = name ? strchr(name + 1, '"') : NULL;
    return end ? end : text;
}

/* A reason that has not changed is not written again: the write would cause the next attempt. */
static void outcome(struct json *owner, const struct workload_write *w, const char *why,
                    int64_t now_ms)
{
    const struct json *c = condition_find(owner, FAILURE);
    if (!w) {
        condition_remove(owner, FAILURE);
    } else if (w->fail_reason &&
               !(c && streq(json_get_text(c, "reason"), w->fail_reason) &&
                 streq(after_name(json_get_text(c, "message")), after_name(why)))) {
        (void) condition_set(owner, FAILURE, "True", w->fail_reason, why, now_ms);
    }
}

/* The status of the active pods; a failure that a write reports is added later. */
static struct json *make_status(const struct json *owner, const struct workload_child *pods,
                                size_t n, int64_t now_ms, struct workload_plan *p)
{
    struct json *o = json_clone(owner), *status = json_ensure_object(o, "status");
    const struct json *template = json_path(owner, "spec", "template", NULL);
    int64_t min_ready_s = json_get_int_or(json_path(owner, "spec", "minReadySeconds", NULL), 0);
    int64_t labeled = 0, ready = 0, available = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t at_ms = 0;
        labeled += workload_pod_is_fully_labeled(pods[i].obj, template);
        ready += workload_pod_is_ready(pods[i].obj);
        available += workload_pod_is_available(pods[i].obj, min_ready_s, now_ms, &at_ms);
        if (at_ms) {
            workload_plan_recheck(p, at_ms);
        }
    }
    json_set_int(status, "replicas", (int64_t) n);
    json_set_int(status, "fullyLabeledReplicas", labeled);
    json_set_int(status, "readyReplicas", ready);
    json_set_int(status, "availableReplicas", available);
    json_set_int(status, "observedGeneration", obj_generation(owner));
    return o;
}

static void create(struct workload_plan *p, const struct workload_kind *kind,
                   const struct json *owner, size_t n)
{
    const struct json *template = json_path(owner, "spec", "template", NULL);
    for (size_t i = 0; i < n; i++) {
        struct workload_write *w =
            workload_plan_add(p, WORKLOAD_MAIN, WORKLOAD_CREATE, &workload_pods, NULL,
                              workload_pod_from_template(kind, owner, template, NULL));
        w->reason = "SuccessfulCreate";
        w->message = xstrdup("Created pod: ");
        w->names = true;
        w->fail_reason = "FailedCreate";
        w->fail_message = xstrdup("Error creating: ");
    }
}

static void delete_first(struct workload_plan *p, const struct workload_child *pods, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct workload_write *w =
            workload_plan_delete(p, WORKLOAD_MAIN, &workload_pods, pods[i].obj);
        w->reason = "SuccessfulDelete";
        w->message = xasprintf("Deleted pod: %s", obj_name(pods[i].obj));
        w->fail_reason = "FailedDelete";
        w->fail_message = xstrdup("Error deleting: ");
    }
}

void replicas_plan(const struct workload_kind *kind, const struct json *owner,
                   struct workload_child *candidates, size_t n, const struct json *const *related,
                   size_t n_related, int64_t now_ms, struct workload_plan *ret)
{
    CLEANUP(json_free) struct json *selector = replicas_selector(kind, owner);
    size_t active = 0, victims = 0;
    for (size_t i = 0; i < n; i++) {
        if (workload_pod_is_active(&candidates[i])) {
            candidates[active++] = candidates[i];
        }
    }
    active = workload_claim(ret, kind, owner, selector, &workload_pods, candidates, active);
    if (!obj_is_terminating(owner)) {
        int64_t wanted = json_get_int_or(json_path(owner, "spec", "replicas", NULL), 1);
        wanted = MAX(wanted, 0);
        if ((uint64_t) wanted > active) {
            create(ret, kind, owner, MIN((size_t) wanted - active, REPLICAS_BURST));
        } else if ((uint64_t) wanted < active) {
            victims = MIN(active - (size_t) wanted, REPLICAS_BURST);
            workload_pod_sort_victims(candidates, active, related, n_related, now_ms);
            delete_first(ret, candidates, victims);
        }
        ret->outcome = outcome;
    }
    /* Pods that this plan deletes count no more: a Deployment must not rely upon them. */
    ret->status = make_status(owner, candidates + victims, active - victims, now_ms, ret);
}
