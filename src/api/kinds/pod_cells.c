/* SPDX-License-Identifier: Apache-2.0 */
/* The cells of a Pod in tables: what people see as READY, STATUS and RESTARTS.  The rules are those of
 * Kubernetes (printPod of pkg/printers/internalversion). */
#include "api/condition.h"
#include "api/kind_util.h"
#include "api/kinds.h"
#include "api/kinds/kind_pod.h"

#include <stdio.h>

struct summary {
    size_t ready, total;
    int64_t restarts;
    const char *last_restart; /* The newest end before a restart; NULL: none. */
    const char *status;       /* Borrowed from the object, or 'text'. */
    char text[256];
};

static const struct json *list_of(const struct json *obj, const char *part, const char *key)
{
    return json_path(obj, part, key, NULL);
}

static bool is_sidecar(const struct json *obj, const char *name)
{
    const struct json *c;
    JSON_FOREACH (c, list_of(obj, "spec", "initContainers")) {
        if (streq(json_get_text(c, "name"), name)) {
            return streq(json_get_text(c, "restartPolicy"), "Always");
        }
    }
    return false;
}

static void add_restarts(struct summary *s, const struct json *status)
{
    int64_t n = json_get_int_or(json_get(status, "restartCount"), 0);
    const char *at = json_path_string(status, "lastState", "terminated", "finishedAt", NULL);
    s->restarts += n > 0 && n <= INT32_MAX ? n : 0;
    if (at && (!s->last_restart || strcmp(at, s->last_restart) > 0)) {
        s->last_restart = at; /* Times of one form sort as texts. */
    }
}

/* "PREFIXReason", "PREFIXSignal:N" or "PREFIXExitCode:N" of a container that has ended. */
static const char *ended_as(struct summary *s, const char *prefix, const struct json *ended)
{
    const char *reason = json_get_text(ended, "reason");
    int64_t signal = json_get_int_or(json_get(ended, "signal"), 0);
    int64_t code = json_get_int_or(json_get(ended, "exitCode"), 0);
    if (*reason) {
        snprintf(s->text, sizeof s->text, "%s%s", prefix, reason);
    } else {
        snprintf(s->text, sizeof s->text, "%s%s:%lld", prefix, signal ? "Signal" : "ExitCode",
                 (long long) (signal ? signal : code));
    }
    return s->text;
}

/* The init containers; true: they are not done yet. */
static bool sum_init(struct summary *s, const struct json *obj, struct summary *sidecars)
{
    const struct json *list = list_of(obj, "status", "initContainerStatuses");
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *c = json_at(list, i), *state = json_get(c, "state");
        const struct json *ended = json_get(state, "terminated");
        const char *waits = json_path_string(state, "waiting", "reason", NULL);
        bool sidecar = is_sidecar(obj, json_get_text(c, "name"));
        add_restarts(s, c);
        if (sidecar) {
            add_restarts(sidecars, c);
        }
        if (ended && json_get_int_or(json_get(ended, "exitCode"), 0) == 0) {
            continue;
        }
        if (sidecar && json_get_bool(json_get(c, "started"), false)) {
            s->ready += json_get_bool(json_get(c, "ready"), false);
            continue;
        }
        if (ended) {
            s->status = ended_as(s, "Init:", ended);
        } else if (waits && *waits && !streq(waits, "PodInitializing")) {
            snprintf(s->text, sizeof s->text, "Init:%s", waits);
            s->status = s->text;
        } else {
            snprintf(s->text, sizeof s->text, "Init:%zu/%zu", i,
                     json_count(list_of(obj, "spec", "initContainers")));
            s->status = s->text;
        }
        return true;
    }
    return false;
}

static void sum_containers(struct summary *s, const struct json *obj)
{
    const struct json *list = list_of(obj, "status", "containerStatuses");
    bool runs = false;
    for (size_t i = json_count(list); i-- > 0;) {
        const struct json *c = json_at(list, i), *state = json_get(c, "state");
        const struct json *ended = json_get(state, "terminated");
        const char *waits = json_path_string(state, "waiting", "reason", NULL);
        add_restarts(s, c);
        if (waits && *waits) {
            s->status = waits;
        } else if (ended) {
            s->status = ended_as(s, "", ended);
        } else if (json_get_bool(json_get(c, "ready"), false) && json_get(state, "running")) {
            runs = true;
            s->ready++;
        }
    }
    if (runs && streq(s->status, "Completed")) {
        s->status = condition_is_true(obj, "Ready") ? "Running" : "NotReady";
    }
}

static void summarize(const struct json *obj, struct summary *s)
{
    const struct json *scheduled = condition_find(obj, "PodScheduled"), *c;
    const char *phase = json_get_text(json_get(obj, "status"), "phase");
    const char *reason = json_get_text(json_get(obj, "status"), "reason");
    struct summary sidecars = {0};
    *s = (struct summary){.total = json_count(list_of(obj, "spec", "containers")),
                          .status = *reason ? reason : phase};
    if (streq(json_get_text(scheduled, "reason"), "SchedulingGated")) {
        s->status = "SchedulingGated";
    }
    JSON_FOREACH (c, list_of(obj, "spec", "initContainers")) {
        s->total += streq(json_get_text(c, "restartPolicy"), "Always");
    }
    if (!sum_init(s, obj, &sidecars) || condition_is_true(obj, "Initialized")) {
        s->restarts = sidecars.restarts;
        s->last_restart = sidecars.last_restart;
        sum_containers(s, obj);
    }
    if (json_path(obj, "metadata", "deletionTimestamp", NULL)) {
        bool final = streq(phase, "Succeeded") || streq(phase, "Failed");
        s->status = streq(reason, "NodeLost") ? "Unknown" : final ? s->status : "Terminating";
    }
}

struct json *kind_pod_cell_ready(const struct json *obj, int64_t now_ms)
{
    struct summary s;
    summarize(obj, &s);
    return json_stringf("%zu/%zu", s.ready, s.total);
}

struct json *kind_pod_cell_status(const struct json *obj, int64_t now_ms)
{
    struct summary s;
    summarize(obj, &s);
    return api_cell_text(s.status, "Unknown");
}

struct json *kind_pod_cell_restarts(const struct json *obj, int64_t now_ms)
{
    struct summary s;
    summarize(obj, &s);
    if (!s.restarts || !s.last_restart) {
        return json_stringf("%lld", (long long) s.restarts);
    }
    CLEANUP(json_free) struct json *since = api_cell_since(s.last_restart, now_ms);
    return json_stringf("%lld (%s ago)", (long long) s.restarts, json_get_string(since));
}

struct json *kind_pod_cell_gates(const struct json *obj, int64_t now_ms)
{
    const struct json *gates = json_path(obj, "spec", "readinessGates", NULL), *gate, *cond;
    if (json_count(gates) == 0) {
        return json_string("<none>");
    }
    size_t ready = 0;
    JSON_FOREACH (gate, gates) {
        const char *type = json_path_string(gate, "conditionType", NULL);
        JSON_FOREACH (cond, json_path(obj, "status", "conditions", NULL)) {
            ready += type && streq_null(json_path_string(cond, "type", NULL), type) &&
                     streq_null(json_path_string(cond, "status", NULL), "True");
        }
    }
    return json_stringf("%zu/%zu", ready, json_count(gates));
}
