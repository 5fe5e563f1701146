/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/lifecycle/node_health.h"

#include "api/condition.h"
#include "api/node_match.h"
#include "base/timeutil.h"

#define PREFIX "node.kubernetes.io/"
#define NOT_READY PREFIX "not-ready"
#define UNREACHABLE PREFIX "unreachable"

#define PAUSE_MS 10000        /* One node in 10 s. */
#define LARGE_PAUSE_MS 100000 /* The same in a large zone with many ill nodes. */
#define LARGE_ZONE 50
#define ILL_PERCENT 55 /* From here on the zone counts as disrupted. */

bool node_health_has_kubelet(const struct json *node)
{
    const char *runtime =
        json_path_string(node, "status", "nodeInfo", "containerRuntimeVersion", NULL);
    return runtime && *runtime;
}

static const char *status_of(const struct json *node, const char *condition)
{
    return json_get_text(condition_find(node, condition), "status");
}

enum node_state node_health_state(const struct json *node)
{
    const char *ready = status_of(node, "Ready");
    return streq(ready, "True")    ? NODE_READY
           : streq(ready, "False") ? NODE_NOT_READY
                                   : NODE_UNKNOWN;
}

bool node_health_mark_unknown(struct json *node, int64_t now_ms)
{
    static const char *const types[] = {"Ready", "MemoryPressure", "DiskPressure", "PIDPressure"};
    bool changed = false;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        bool known = condition_find(node, types[i]);
        if (!streq(status_of(node, types[i]), "Unknown")) {
            changed = condition_set(node, types[i], "Unknown",
                                    known ? "NodeStatusUnknown" : "NodeStatusNeverUpdated",
                                    known ? "Kubelet stopped posting node status."
                                          : "Kubelet never posted node status.",
                                    now_ms) ||
                      changed;
        }
    }
    return changed;
}

/* ---- taints ---- */

/* Whether the node should have the taint. */
static bool wants(const struct json *node, const char *key, bool no_execute, bool evicts)
{
    enum node_state state = node_health_state(node);
    if (no_execute && !evicts) {
        return false;
    }
    if (streq(key, NOT_READY)) {
        return state == NODE_NOT_READY;
    }
    if (streq(key, UNREACHABLE)) {
        return state == NODE_UNKNOWN;
    }
    if (no_execute) {
        return false;
    }
    return streq(key, PREFIX "memory-pressure") ? condition_is_true(node, "MemoryPressure")
           : streq(key, PREFIX "disk-pressure") ? condition_is_true(node, "DiskPressure")
           : streq(key, PREFIX "pid-pressure")  ? condition_is_true(node, "PIDPressure")
           : streq(key, PREFIX "network-unavailable")
               ? condition_is_true(node, "NetworkUnavailable")
               : json_get_bool(json_path(node, "spec", "unschedulable", NULL), false);
}

static size_t find_taint(const struct json *taints, const char *key, const char *effect)
{
    size_t i = 0;
    while (i < json_count(taints) && !(streq(json_get_text(json_at(taints, i), "key"), key) &&
                                       match_has_effect(json_at(taints, i), effect))) {
        i++;
    }
    return i;
}

static bool set_taint(struct json *node, const char *key, bool no_execute, bool wanted,
                      int64_t now_ms)
{
    const char *effect = no_execute ? "NoExecute" : "NoSchedule";
    struct json *taints = json_path(node, "spec", "taints", NULL);
    size_t at = find_taint(taints, key, effect);
    bool has = at < json_count(taints);
    char now[TIME_TEXT_SIZE];
    if (has == wanted) {
        return false;
    }
    if (has) {
        json_remove_at(taints, at);
        if (!json_count(taints)) {
            json_remove(json_get(node, "spec"), "taints");
        }
        return true;
    }
    time_format_s(now_ms, now);
    struct json *t =
        json_append(json_ensure_array(json_ensure_object(node, "spec"), "taints"), json_object());
    json_set_string(t, "key", key);
    json_set_string(t, "effect", effect);
    json_set_string(t, "timeAdded", now);
    return true;
}

bool node_health_set_taints(struct json *node, bool evicts, int64_t now_ms)
{
    static const struct {
        const char *key;
        bool no_execute;
    } taints[] = {
        {NOT_READY, false},
        {NOT_READY, true},
        {UNREACHABLE, false},
        {UNREACHABLE, true},
        {PREFIX "memory-pressure", false},
        {PREFIX "disk-pressure", false},
        {PREFIX "pid-pressure", false},
        {PREFIX "network-unavailable", false},
        {PREFIX "unschedulable", false},
    };
    bool changed = false;
    for (size_t i = 0; i < sizeof taints / sizeof *taints; i++) {
        bool wanted = wants(node, taints[i].key, taints[i].no_execute, evicts);
        changed = set_taint(node, taints[i].key, taints[i].no_execute, wanted, now_ms) || changed;
    }
    return changed;
}

/* ---- pods that have to leave ---- */

/* How long the pod stays in spite of the taint, in seconds; -1: for ever. */
static int64_t stay_s(const struct json *pod, const struct json *taint)
{
    const struct json *t;
    const char *key = json_get_text(taint, "key");
    int64_t longest = -2;
    JSON_FOREACH (t, json_path(pod, "spec", "tolerations", NULL)) {
        CLEANUP(json_free) struct json *one = json_array();
        json_append(one, json_clone(t));
        if (!match_tolerates(one, taint)) {
            continue;
        }
        const struct json *seconds = json_get(t, "tolerationSeconds");
        int64_t n = seconds ? json_get_int_or(seconds, 0) : -1;
        n = seconds && n < 0 ? 0 : n;
        /* The shortest of those that match counts. */
        longest = longest == -2 || (n >= 0 && (longest < 0 || n < longest)) ? n : longest;
    }
    if (longest == -2) {
        return streq(key, NOT_READY) || streq(key, UNREACHABLE) ? NODE_HEALTH_STAY_S : 0;
    }
    return longest;
}

int64_t node_health_leave_ms(const struct json *pod, const struct json *node)
{
    const struct json *t;
    int64_t first = -1;
    JSON_FOREACH (t, json_path(node, "spec", "taints", NULL)) {
        int64_t since_ms = 0, stay = match_has_effect(t, "NoExecute") ? stay_s(pod, t) : -1;
        const char *since = json_get_text(t, "timeAdded");
        if (stay < 0) {
            continue;
        }
        if (*since && time_parse(since, &since_ms) < 0) {
            since_ms = 0;
        }
        stay = stay > INT32_MAX ? INT32_MAX : stay;
        int64_t at = since_ms + stay * 1000;
        first = first < 0 || at < first ? at : first;
    }
    return first;
}

/* ---- how fast ---- */

uint64_t node_health_pause_ms(const struct zone_health *z)
{
    if (z->ill > 2 && z->ill < z->nodes && z->ill * 100 >= z->nodes * ILL_PERCENT) {
        return z->nodes > LARGE_ZONE ? LARGE_PAUSE_MS : 0;
    }
    return PAUSE_MS;
}
