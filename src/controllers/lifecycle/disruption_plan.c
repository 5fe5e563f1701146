/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/lifecycle/disruption_plan.h"

#include "api/condition.h"
#include "api/label_selector.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/timeutil.h"
#include "controller/obj.h"

static const struct {
    const char *group, *kind;
} kinds[DISRUPTION_KINDS] = {
    [DISRUPTION_REPLICATION_CONTROLLER] = {"", "ReplicationController"},
    [DISRUPTION_REPLICA_SET] = {"apps", "ReplicaSet"},
    [DISRUPTION_STATEFUL_SET] = {"apps", "StatefulSet"},
    [DISRUPTION_DEPLOYMENT] = {"apps", "Deployment"},
};

void disruption_done(struct disruption *d)
{
    d->disrupted = json_free(d->disrupted);
}

bool disruption_selects(const struct json *budget, const struct json *pod)
{
    const struct json *selector = json_path(budget, "spec", "selector", NULL);
    return selector && label_selector_matches(selector, json_path(pod, "metadata", "labels", NULL));
}

/* ---- owners ---- */

static bool is_kind(const struct json *ref, size_t kind)
{
    return obj_ref_is(ref, kinds[kind].group, kinds[kind].kind);
}

static const struct json *find(const struct disruption_owners *o, size_t kind, const char *ns,
                               const struct json *ref)
{
    const struct json *found = o->find(o->ctx, kind, ns, json_get_text(ref, "name"));
    return found && streq(obj_uid(found), json_get_text(ref, "uid")) ? found : NULL;
}

static int64_t replicas_of(const struct json *obj)
{
    return json_get_int_or(json_path(obj, "spec", "replicas", NULL), 1);
}

struct owner {
    const char *uid;
    int64_t replicas;
};

/* The object of a known kind that 'ref' names, or what controls that: the replicas of a Deployment
 * are spread over its ReplicaSets while it rolls out. */
static int resolve_known(const struct disruption_owners *o, size_t kind, const char *ns,
                         const struct json *ref, struct owner *ret)
{
    const struct json *own = find(o, kind, ns, ref), *above = NULL;
    int r;
    if (!own) {
        return -ENOENT;
    }
    *ret = (struct owner){obj_uid(own), replicas_of(own)};
    if (kind == DISRUPTION_REPLICA_SET || kind == DISRUPTION_REPLICATION_CONTROLLER) {
        above = obj_controller(own);
    }
    if (!above) {
        return 0;
    }
    if (is_kind(above, DISRUPTION_DEPLOYMENT)) {
        const struct json *deployment = find(o, DISRUPTION_DEPLOYMENT, ns, above);
        if (!deployment) {
            return -ENOENT;
        }
        *ret = (struct owner){obj_uid(deployment), replicas_of(deployment)};
        return 0;
    }
    r = o->scale(o->ctx, ns, above, &ret->replicas);
    if (r == 0) {
        ret->uid = json_get_text(above, "uid");
    }
    return r == -EAGAIN ? r : 0;
}

static int resolve(const struct disruption_owners *o, const char *ns, const struct json *ref,
                   struct owner *ret)
{
    for (size_t i = 0; i < DISRUPTION_DEPLOYMENT; i++) {
        if (is_kind(ref, i)) {
            return resolve_known(o, i, ns, ref, ret);
        }
    }
    ret->uid = json_get_text(ref, "uid");
    return o->scale(o->ctx, ns, ref, &ret->replicas);
}

/* The replicas that all owners of the pods want. */
static int count_wanted(const struct json *const *pods, size_t n, const struct disruption_owners *o,
                        struct disruption *d, struct err *e)
{
    struct smap seen, counted; /* uids of owners of pods; of what controls them. */
    int r = 0;
    smap_init(&seen, NULL);
    smap_init(&counted, NULL);
    for (size_t i = 0; i < n && r == 0; i++) {
        const struct json *ref = obj_controller(pods[i]);
        struct owner owner;
        d->unmanaged |= !ref;
        if (!ref || smap_get(&seen, json_get_text(ref, "uid"))) {
            continue;
        }
        smap_set(&seen, json_get_text(ref, "uid"), (void *) pods[i]);
        r = resolve(o, obj_namespace(pods[i]), ref, &owner);
        if (r == 0 && !smap_get(&counted, owner.uid)) {
            smap_set(&counted, owner.uid, (void *) pods[i]);
            d->expected += owner.replicas;
        } else if (r < 0) {
            err_set(e, r, "found no controllers for pod \"%s\"", obj_name(pods[i]));
        }
    }
    smap_done(&seen);
    smap_done(&counted);
    return r;
}

/* ---- numbers ---- */

static bool is_share(const struct json *v)
{
    return json_is(v, JSON_STRING);
}

/* A number, or a percentage of 'whole', rounded up. */
static int64_t amount(const struct json *v, int64_t whole)
{
    CLEANUP_FREE char *text = is_share(v) ? xstrdup(json_get_string(v)) : NULL;
    int64_t percent = 0;
    if (!text) {
        return json_get_int_or(v, 0);
    }
    text[strcspn(text, "%")] = '\0';
    (void) str_to_i64(text, 0, 100, &percent);
    return (whole * percent + 99) / 100;
}

/* Fills 'expected' and 'desired'. */
static int count_desired(const struct json *spec, const struct json *const *pods, size_t n,
                         const struct disruption_owners *o, struct disruption *d, struct err *e)
{
    const struct json *least = json_get(spec, "minAvailable");
    const struct json *missing = json_get(spec, "maxUnavailable");
    if (missing || is_share(least)) {
        int r = count_wanted(pods, n, o, d, e);
        if (r < 0) {
            return r;
        }
        d->desired = missing ? MAX(d->expected - amount(missing, d->expected), 0)
                             : amount(least, d->expected);
    } else if (least) {
        d->expected = (int64_t) n;
        d->desired = amount(least, 0);
    }
    return 0;
}

/* Whether the pod was evicted a short time ago, and has not begun to go. */
static bool is_disrupted(const struct json *budget, const struct json *pod, int64_t now_ms,
                         int64_t *ret_end)
{
    const char *when =
        json_path_string(json_path(budget, "status", "disruptedPods", NULL), obj_name(pod), NULL);
    int64_t at;
    if (!when || obj_is_terminating(pod) || time_parse(when, &at) < 0) {
        return false;
    }
    *ret_end = at + DISRUPTION_EXPIRY_MS;
    return *ret_end > now_ms;
}

int disruption_plan(const struct json *budget, const struct json *const *pods, size_t n,
                    const struct disruption_owners *owners, int64_t now_ms, struct disruption *ret,
                    struct err *e)
{
    struct disruption d = {0};
    int64_t end;
    int r = count_desired(json_get(budget, "spec"), pods, n, owners, &d, e);
    if (r < 0) {
        return r;
    }
    d.disrupted = json_object();
    for (size_t i = 0; i < n; i++) {
        if (is_disrupted(budget, pods[i], now_ms, &end)) {
            json_set_string(d.disrupted, obj_name(pods[i]),
                            json_path_string(json_path(budget, "status", "disruptedPods", NULL),
                                             obj_name(pods[i]), NULL));
            d.recheck_ms = d.recheck_ms ? MIN(d.recheck_ms, end) : end;
        } else if (!obj_is_terminating(pods[i]) && condition_is_true(pods[i], "Ready")) {
            d.healthy++;
        }
    }
    d.allowed = d.expected > 0 ? MAX(d.healthy - d.desired, 0) : 0;
    *ret = d;
    return 0;
}

/* ---- the status ---- */

static void set_condition(struct json *budget, bool allowed, const char *reason,
                          const char *message, int64_t now_ms)
{
    (void) condition_set(budget, "DisruptionAllowed", allowed ? "True" : "False", reason, message,
                         now_ms);
    json_set_int(condition_find(budget, "DisruptionAllowed"), "observedGeneration",
                 json_get_int_or(json_path(budget, "metadata", "generation", NULL), 0));
}

bool disruption_write(const struct disruption *d, struct json *budget, int64_t now_ms)
{
    CLEANUP(json_free) struct json *before = json_clone(json_get(budget, "status"));
    struct json *status = json_ensure_object(budget, "status");
    json_set_int(status, "observedGeneration",
                 json_get_int_or(json_path(budget, "metadata", "generation", NULL), 0));
    json_set_int(status, "expectedPods", d->expected);
    json_set_int(status, "currentHealthy", d->healthy);
    json_set_int(status, "desiredHealthy", d->desired);
    json_set_int(status, "disruptionsAllowed", d->allowed);
    if (json_count(d->disrupted)) {
        json_set(status, "disruptedPods", json_clone(d->disrupted));
    } else {
        (void) json_remove(status, "disruptedPods");
    }
    set_condition(budget, d->allowed > 0, d->allowed > 0 ? "SufficientPods" : "InsufficientPods",
                  "", now_ms);
    return !before || !json_equal(before, status);
}

bool disruption_write_failure(const char *why, struct json *budget, int64_t now_ms)
{
    CLEANUP(json_free) struct json *before = json_clone(json_get(budget, "status"));
    struct json *status = json_ensure_object(budget, "status");
    json_set_int(status, "disruptionsAllowed", 0);
    set_condition(budget, false, "SyncFailed", why, now_ms);
    return !before || !json_equal(before, status);
}
