/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/status.h"

#include "api/condition.h"
#include "api/kinds/kind_pod.h"
#include "base/timeutil.h"
#include "pod/restart.h"

#define MS INT64_C(1000000)
#define NS INT64_C(1000000000)
#define LOST_EXIT_CODE 137

struct maker {
    const struct json *pod, *last;
    const struct pod_observed *o;
    const struct pod_status_facts *facts;
    int64_t now_ns;
    bool ending;  /* No container is started any more. */
    bool alive;   /* A process of the pod may still run. */
    bool busy;    /* One may be starting that is not among the containers yet. */
    bool refused; /* The pod ends as Failed, whatever its containers say. */
    /* Found while the containers are walked. */
    bool initialized; /* All init containers are done. */
    bool init_failed; /* One has failed for good. */
    bool any_unready, any_runs, any_waits_first, any_restarts, any_failed;
    size_t mains, ended;
    struct strbuf unready, uninitialized; /* Names, with commas between. */
};

static void set_time(struct json *o, const char *key, int64_t ns)
{
    char text[TIME_TEXT_SIZE];
    if (ns > 0) {
        time_format_s(ns / MS, text);
        json_set_string(o, key, text);
    }
}

/* ---- the states of a container ---- */

static struct json *state_waiting(const char *reason, const char *message)
{
    struct json *s = json_object(), *w = json_ensure_object(s, "waiting");
    json_set_string(w, "reason", reason);
    if (message && *message) {
        json_set_string(w, "message", message);
    }
    return s;
}

static struct json *state_running(const struct observed_container *c)
{
    struct json *s = json_object();
    set_time(json_ensure_object(s, "running"), "startedAt", c->started_ns);
    return s;
}

static struct json *container_id(const struct maker *m, const struct observed_container *c)
{
    return json_stringf("%s://%s", m->facts->runtime, c->id);
}

static struct json *state_terminated(const struct maker *m, const struct observed_container *c)
{
    struct json *s = json_object(), *t = json_ensure_object(s, "terminated");
    json_set_int(t, "exitCode", c->exit_code);
    if (c->exit_code > 128 && c->exit_code < 128 + 65 && streq(c->reason, "Signaled")) {
        json_set_int(t, "signal", c->exit_code - 128);
    }
    const char *reason = *c->reason ? c->reason : c->exit_code == 0 ? "Completed" : "Error";
    json_set_string(t, "reason", reason);
    if (*c->message) {
        json_set_string(t, "message", c->message);
    }
    set_time(t, "startedAt", c->started_ns);
    set_time(t, "finishedAt", c->finished_ns);
    json_set(t, "containerID", container_id(m, c));
    return s;
}

/* The end of a container whose record the runtime has lost. */
static struct json *state_lost(const struct json *told)
{
    struct json *s = json_object(), *t = json_ensure_object(s, "terminated");
    json_set_int(t, "exitCode", LOST_EXIT_CODE);
    json_set_string(t, "reason", "ContainerStatusUnknown");
    json_set_string(t, "message",
                    "The container could not be located: the runtime has no record of its end");
    json_set_string(t, "containerID", json_get_text(told, "containerID"));
    return s;
}

/* Why the container is not there yet. */
static struct json *state_not_yet(const struct maker *m, const struct observed_fact *f,
                                  enum pod_container_kind kind)
{
    if (f && f->wait_reason) {
        return state_waiting(f->wait_reason, f->wait_message);
    }
    bool for_init = kind == POD_MAIN && !m->initialized;
    bool init = kind == POD_INIT || kind == POD_SIDECAR;
    bool some = json_count(json_path(m->pod, "spec", "initContainers", NULL)) > 0;
    return state_waiting(for_init || (init && some) ? "PodInitializing" : "ContainerCreating",
                         NULL);
}

static struct json *state_backoff(const struct maker *m, const struct observed_container *c)
{
    char pause[TIME_TEXT_SIZE];
    time_format_duration(pod_backoff_s(c->level) * NS_PER_S, pause);
    CLEANUP_FREE char *text =
        xasprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)", pause, c->name,
                  pod_name(m->pod), pod_namespace(m->pod), pod_uid(m->pod));
    return state_waiting("CrashLoopBackOff", text);
}

/* ---- one container ---- */

static void add_name(struct strbuf *b, const char *name)
{
    strbuf_addf(b, "%s%s", b->size ? " " : "", name);
}

struct one {
    const char *name;
    enum pod_container_kind kind;
    const struct json *spec, *told;
    const struct observed_fact *fact;
    const struct observed_container *c, *before;
    bool restarts; /* Another one follows the ended one. */
};

static bool is_backing_off(const struct maker *m, const struct one *w)
{
    char hash[POD_HASH_SIZE];
    pod_container_hash(w->spec, hash);
    return pod_restart_at(w->c, hash) > m->now_ns;
}

/* Stores state and lastState in 's' for the container w->c that the runtime has. */
static void set_states(struct maker *m, const struct one *w, struct json *s)
{
    const struct observed_container *c = w->c;
    struct json *state, *last = NULL;
    bool hook = w->fact && w->fact->hook && streq_null(w->fact->id, c->id);
    switch (c->state) {
    case RUNTIME_CREATED:
        state = w->fact && w->fact->wait_reason
                    ? state_waiting(w->fact->wait_reason, w->fact->wait_message)
                    : state_waiting("ContainerCreating", NULL);
        break;
    case RUNTIME_EXITED:
        if (w->restarts && w->fact && w->fact->wait_reason) {
            state = state_waiting(w->fact->wait_reason, w->fact->wait_message);
            last = state_terminated(m, c);
        } else if (w->restarts && is_backing_off(m, w)) {
            state = state_backoff(m, c);
            last = state_terminated(m, c);
        } else if (w->fact && w->fact->again && !m->ending) {
            /* The API server refuses that a container which is shown as ended runs again. */
            state = state_waiting("ContainerCreating", NULL);
            last = state_terminated(m, c);
        } else {
            state = state_terminated(m, c);
        }
        break;
    case RUNTIME_RUNNING:
    case RUNTIME_UNKNOWN:
    default:
        state = hook ? state_waiting("ContainerCreating", NULL) : state_running(c);
        break;
    }
    if (!last && w->before) {
        last = state_terminated(m, w->before);
    } else if (!last) {
        const struct json *old = json_get(w->told, "lastState");
        last = old ? json_clone(old) : json_object();
    }
    json_set(s, "state", state);
    json_set(s, "lastState", last);
}

/* The same for a container of which the runtime has nothing. */
static void set_told_states(struct maker *m, const struct one *w, struct json *s)
{
    const struct json *state = json_get(w->told, "state"), *last = json_get(w->told, "lastState");
    if (json_get(state, "terminated") && !w->restarts) {
        json_set(s, "state", json_clone(state));
        json_set(s, "lastState", last ? json_clone(last) : json_object());
    } else if (json_get(state, "running") && (m->ending || !w->restarts)) {
        json_set(s, "state", state_lost(w->told));
        json_set(s, "lastState", last ? json_clone(last) : json_object());
    } else if (w->kind == POD_INIT && m->initialized) {
        struct json *t = json_ensure_object(json_ensure_object(s, "state"), "terminated");
        json_set_int(t, "exitCode", 0);
        json_set_string(t, "reason", "Completed");
        json_ensure_object(s, "lastState");
    } else {
        json_set(s, "state", state_not_yet(m, w->fact, w->kind));
        json_set(s, "lastState",
                 json_get(state, "terminated") ? json_clone(state)
                 : json_get(state, "running")  ? state_lost(w->told)
                 : last                        ? json_clone(last)
                                               : json_object());
    }
}

/* Counts what the phase and the conditions depend on. */
static void count(struct maker *m, const struct one *w, const struct json *s)
{
    const struct json *state = json_get(s, "state");
    const struct json *ended = json_get(state, "terminated");
    bool runs = json_get(state, "running"), ready = json_get_bool(json_get(s, "ready"), false);
    int64_t code = json_get_int_or(json_get(ended, "exitCode"), 0);
    if (w->kind == POD_MAIN) {
        m->mains++;
        m->any_runs = m->any_runs || runs;
        m->any_failed = m->any_failed || (ended && code != 0);
        m->ended += ended && !w->restarts;
        m->any_restarts = m->any_restarts || (ended && w->restarts);
        if (!runs && !ended) {
            if (json_path(s, "lastState", "terminated", NULL)) {
                m->any_restarts = true;
            } else {
                m->any_waits_first = true;
            }
        }
        if (!ready) {
            add_name(&m->unready, w->name);
        }
    } else if (w->kind == POD_SIDECAR) {
        if (!json_get_bool(json_get(s, "started"), false) && !m->ending) {
            add_name(&m->uninitialized, w->name);
        }
        if (!ready) {
            add_name(&m->unready, w->name);
        }
    } else if (w->kind == POD_INIT) {
        bool done = ended && code == 0;
        m->init_failed = m->init_failed || (ended && code != 0 && !w->restarts);
        if (!done) {
            add_name(&m->uninitialized, w->name);
        }
    }
}

static struct json *make_status(struct maker *m, const struct json *spec,
                                enum pod_container_kind kind)
{
    const char *name = json_get_text(spec, "name");
    struct one w = {.name = name, .kind = kind, .spec = spec};
    struct pod_last last;
    w.told = pod_find_status(m->last, name);
    w.fact = pod_observed_find_fact(m->o, name);
    pod_last_of(m->o, m->last, name, &last);
    w.c = last.c;
    w.before = w.c ? pod_observed_before(m->o, w.c) : NULL;
    bool again = w.fact && w.fact->again;
    w.restarts = !m->ending && last.state == POD_EXITED &&
                 (again || pod_restarts(pod_restart_policy(m->pod), kind, last.exit_code));

    struct json *s = json_object();
    json_set_string(s, "name", name);
    if (w.c) {
        set_states(m, &w, s);
    } else {
        set_told_states(m, &w, s);
    }
    bool runs = json_path(s, "state", "running", NULL) != NULL;
    const struct observed_fact *f =
        w.c && w.fact && streq_null(w.fact->id, w.c->id) ? w.fact : NULL;
    const struct json *ended = json_path(s, "state", "terminated", NULL);
    bool ready = kind == POD_INIT ? ended && json_get_int_or(json_get(ended, "exitCode"), 1) == 0
                                  : runs && f && f->ready;
    bool started = runs && f && f->started && kind != POD_INIT;
    int64_t told = json_get_int_or(json_get(w.told, "restartCount"), 0);
    /* A container that the runtime has lost counts as one more when the next is on its way. */
    json_set_bool(s, "ready", kind == POD_EPHEMERAL ? false : ready);
    json_set_int(s, "restartCount", w.c ? MAX((int64_t) w.c->restarts, told) : told);
    /* The runtime may tell another name of the same image. */
    char hash[POD_HASH_SIZE];
    pod_container_hash(spec, hash);
    const char *image =
        w.c && *w.c->hash && !streq(w.c->hash, hash) ? w.c->image : json_get_text(spec, "image");
    json_set_string(s, "image", image);
    json_set_string(s, "imageID", w.c ? w.c->image_ref : json_get_text(w.told, "imageID"));
    if (w.c) {
        json_set(s, "containerID", container_id(m, w.c));
    } else if (*json_get_text(w.told, "containerID")) {
        json_set_string(s, "containerID", json_get_text(w.told, "containerID"));
    }
    if (kind != POD_EPHEMERAL) {
        json_set_bool(s, "started", started);
    }
    count(m, &w, s);
    return s;
}

/* ---- the pod ---- */

static bool has_main(const struct maker *m)
{
    const struct observed_sandbox *sandbox = pod_observed_sandbox(m->o);
    for (size_t i = 0; i < m->o->n_containers; i++) {
        enum pod_container_kind kind;
        const struct observed_container *c = &m->o->containers[i];
        if (pod_container_named(m->pod, c->name, &kind) && kind == POD_MAIN &&
            (!sandbox || streq(sandbox->id, c->sandbox_id))) {
            return true;
        }
    }
    return false;
}

static void make_containers(struct maker *m, struct json *status)
{
    static const char *const keys[] = {[POD_INIT] = "initContainerStatuses",
                                       [POD_SIDECAR] = "initContainerStatuses",
                                       [POD_MAIN] = "containerStatuses",
                                       [POD_EPHEMERAL] = "ephemeralContainerStatuses"};
    size_t n = pod_count_containers(m->pod);
    m->initialized = has_main(m);
    for (size_t i = 0; i < n; i++) {
        enum pod_container_kind kind;
        const struct json *spec = pod_container_at(m->pod, i, &kind);
        if (kind == POD_MAIN && !m->initialized && m->uninitialized.size == 0) {
            m->initialized = true;
        }
        json_append(json_ensure_array(status, keys[kind]), make_status(m, spec, kind));
    }
    m->initialized = m->uninitialized.size == 0 || has_main(m);
}

static const char *phase_of(const struct maker *m)
{
    const char *before = json_get_text(m->last, "phase");
    if (pod_phase_is_final(before)) {
        return before;
    }
    if (m->facts->work == POD_ENDED && (m->o->gone || pod_is_deleted(m->pod))) {
        return m->any_failed || m->ended < m->mains || m->init_failed ? "Failed" : "Succeeded";
    }
    bool deleted = m->o->gone || pod_is_deleted(m->pod);
    if (m->init_failed && !deleted && !m->alive) {
        return "Failed";
    }
    if (m->mains && m->ended == m->mains && !deleted && !m->alive && !m->refused) {
        return m->any_failed ? "Failed" : "Succeeded";
    }
    if (!m->initialized) {
        return "Pending";
    }
    if (m->any_waits_first) {
        return "Pending";
    }
    return m->any_runs || m->any_restarts || m->ended ? "Running" : "Pending";
}

static bool gates_hold(const struct json *pod, const struct json *wrapped, struct strbuf *text)
{
    const struct json *g;
    JSON_FOREACH (g, json_path(pod, "spec", "readinessGates", NULL)) {
        const char *type = json_get_text(g, "conditionType");
        const struct json *c = condition_find(wrapped, type);
        if (!condition_is_true(wrapped, type)) {
            strbuf_addf(text, "%s%s \"%s\" %s", text->size ? ", " : "",
                        c ? "the status of pod readiness gate is not \"True\", but"
                          : "corresponding condition of pod readiness gate",
                        type, c ? json_get_text(c, "status") : "does not exist.");
        }
    }
    return text->size == 0;
}

static void set_condition(struct json *wrapped, const char *type, bool on, const char *reason,
                          const char *message, int64_t now_ns)
{
    struct json *c = condition_find(wrapped, type);
    if (!c) {
        condition_set(wrapped, type, on ? "True" : "False", NULL, NULL, now_ns / MS);
        c = condition_find(wrapped, type);
    }
    if (condition_is_true(wrapped, type) != on ||
        !streq(json_get_text(c, "status"), on ? "True" : "False")) {
        condition_set(wrapped, type, on ? "True" : "False", NULL, NULL, now_ns / MS);
        c = condition_find(wrapped, type);
    }
    if (reason) {
        json_set_string(c, "reason", reason);
    } else {
        json_remove(c, "reason");
    }
    if (message && *message) {
        json_set_string(c, "message", message);
    } else {
        json_remove(c, "message");
    }
}

static void make_conditions(struct maker *m, struct json *wrapped, const char *phase)
{
    const struct observed_sandbox *s = pod_observed_sandbox(m->o);
    bool final = pod_phase_is_final(phase);
    const char *end = streq(phase, "Succeeded") ? "PodCompleted" : "PodFailed";
    bool network = observed_sandbox_is_usable(s, pod_uses_host_network(m->pod)) && !final;
    set_condition(wrapped, "PodReadyToStartContainers", network, NULL, NULL, m->now_ns);

    CLEANUP_FREE char *incomplete =
        xasprintf("containers with incomplete status: [%s]", strbuf_cstr(&m->uninitialized));
    bool initialized = m->initialized && !m->init_failed;
    bool done = streq(phase, "Succeeded");
    set_condition(wrapped, "Initialized", initialized || done,
                  done          ? "PodCompleted"
                  : initialized ? NULL
                                : "ContainersNotInitialized",
                  initialized || done ? NULL : incomplete, m->now_ns);

    CLEANUP_FREE char *names =
        xasprintf("containers with unready status: [%s]", strbuf_cstr(&m->unready));
    CLEANUP_STRBUF struct strbuf gates = STRBUF_INIT;
    bool all = !final && m->unready.size == 0;
    const char *reason = all ? NULL : final ? end : "ContainersNotReady";
    const char *message = all || done ? NULL : m->unready.size ? names : NULL;
    bool gate = gates_hold(m->pod, wrapped, &gates);
    set_condition(wrapped, "Ready", all && gate,
                  !all    ? reason
                  : !gate ? "ReadinessGatesNotReady"
                          : NULL,
                  !all    ? message
                  : !gate ? strbuf_cstr(&gates)
                          : NULL,
                  m->now_ns);
    set_condition(wrapped, "ContainersReady", all, reason, message, m->now_ns);
    set_condition(wrapped, "PodScheduled", true, NULL, NULL, m->now_ns);
}

static void set_addresses(struct json *status, const char *one, const char *many, const char *ip)
{
    if (ip && *ip) {
        json_set_string(status, one, ip);
        struct json *list = json_set(status, many, json_array());
        json_set_string(json_append(list, json_object()), "ip", ip);
    }
}

static void make_addresses(const struct maker *m, struct json *status)
{
    const struct observed_sandbox *s = pod_observed_sandbox(m->o);
    const char *ip = pod_uses_host_network(m->pod) ? (s ? m->o->host_ip : NULL)
                     : s && s->ip                  ? s->ip
                                                   : NULL;
    if (!ip && (m->ending || pod_phase_is_final(json_get_text(m->last, "phase")))) {
        ip = json_get_text(m->last, "podIP");
    }
    set_addresses(status, "hostIP", "hostIPs", m->o->host_ip);
    set_addresses(status, "podIP", "podIPs", ip);
}

struct json *pod_status(const struct json *pod, const struct json *last,
                        const struct pod_observed *o, const struct pod_status_facts *facts,
                        int64_t now_ns)
{
    const char *reason, *message;
    struct maker m = {.pod = pod,
                      .last = last,
                      .o = o,
                      .facts = facts,
                      .now_ns = now_ns,
                      .unready = STRBUF_INIT,
                      .uninitialized = STRBUF_INIT};
    bool must_end = pod_must_end(pod, last, o, now_ns, &reason, &message);
    struct json *wrapped = json_object(), *status = json_ensure_object(wrapped, "status");
    const struct json *conditions = json_get(last, "conditions");
    m.ending = facts->work != POD_SYNC || must_end;
    m.refused = reason != NULL;
    if (conditions) {
        json_set(status, "conditions", json_clone(conditions));
    }
    for (size_t i = 0; i < o->n_containers; i++) {
        m.alive = m.alive || observed_container_may_run(&o->containers[i]);
    }
    for (size_t i = 0; i < o->n_facts; i++) {
        m.busy = m.busy || o->facts[i].busy;
    }
    make_containers(&m, status);
    bool final = pod_phase_is_final(json_get_text(last, "phase"));
    const char *phase = reason && !final && !m.alive && !m.busy ? "Failed" : phase_of(&m);
    json_set_string(status, "phase", phase);
    if (final) {
        reason = *json_get_text(last, "reason") ? json_get_text(last, "reason") : NULL;
        message = *json_get_text(last, "message") ? json_get_text(last, "message") : NULL;
    }
    json_set_string(status, "reason", reason);
    json_set_string(status, "message", message);
    make_conditions(&m, wrapped, phase);
    make_addresses(&m, status);
    const char *start = json_get_text(last, "startTime");
    if (*start) {
        json_set_string(status, "startTime", start);
    } else {
        set_time(status, "startTime", o->first_seen_ns ? o->first_seen_ns : now_ns);
    }
    const char *qos = json_get_text(last, "qosClass");
    json_set_string(status, "qosClass", *qos ? qos : pod_qos_class(json_get(pod, "spec")));
    strbuf_done(&m.unready);
    strbuf_done(&m.uninitialized);
    struct json *taken = json_take(wrapped, "status");
    json_free(wrapped);
    return taken;
}

/* The conditions that this agent sets; others belong to other writers. */
static bool is_own_condition(const char *type)
{
    static const char *const types[] = {"PodReadyToStartContainers", "Initialized", "Ready",
                                        "ContainersReady", "PodScheduled"};
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        if (streq(types[i], type)) {
            return true;
        }
    }
    return false;
}

static const struct json *find_type(const struct json *conditions, const char *type)
{
    const struct json *c;
    JSON_FOREACH (c, conditions) {
        if (streq(json_get_text(c, "type"), type)) {
            return c;
        }
    }
    return NULL;
}

struct json *pod_status_merge(const struct json *own, const struct json *stored)
{
    if (!own) {
        return stored ? json_clone(stored) : json_object();
    }
    struct json *merged = json_clone(own), *list = json_array();
    const struct json *c;
    JSON_FOREACH (c, json_get(own, "conditions")) {
        if (is_own_condition(json_get_text(c, "type"))) {
            json_append(list, json_clone(c));
        }
    }
    JSON_FOREACH (c, json_get(stored, "conditions")) {
        if (!is_own_condition(json_get_text(c, "type"))) {
            json_append(list, json_clone(c));
        }
    }
    json_set(merged, "conditions", list);
    return merged;
}

/* The own conditions of 'now' that differ from those of 'old', as elements of a strategic merge
 * patch; NULL: none does. */
static struct json *patch_conditions(const struct json *old, const struct json *now)
{
    struct json *list = json_array();
    const struct json *c;
    JSON_FOREACH (c, now) {
        const char *type = json_get_text(c, "type");
        if (!is_own_condition(type) || json_equal(find_type(old, type), c)) {
            continue;
        }
        struct json *p = json_append(list, json_clone(c));
        if (!json_get(c, "reason")) {
            json_set(p, "reason", json_null());
        }
        if (!json_get(c, "message")) {
            json_set(p, "message", json_null());
        }
    }
    return json_count(list) ? list : json_free(list);
}

/* A list whose elements Kubernetes merges by a key, as a whole. */
static struct json *patch_replace(const struct json *list)
{
    struct json *p = json_array(), *item;
    json_set_string(json_append(p, json_object()), "$patch", "replace");
    JSON_FOREACH (item, list) {
        json_append(p, json_clone(item));
    }
    return p;
}

struct json *pod_status_patch(const struct json *old, const struct json *now, const char *uid)
{
    static const struct {
        const char *key;
        bool merged;
    } keys[] = {{"phase", false},
                {"reason", false},
                {"message", false},
                {"hostIP", false},
                {"hostIPs", true},
                {"podIP", false},
                {"podIPs", true},
                {"startTime", false},
                {"qosClass", false},
                {"containerStatuses", false},
                {"initContainerStatuses", false},
                {"ephemeralContainerStatuses", false}};
    struct json *patch = json_object(), *status = json_ensure_object(patch, "status");
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        const struct json *a = json_get(old, keys[i].key), *b = json_get(now, keys[i].key);
        if ((!a && !b) || (a && b && json_equal(a, b))) {
            continue;
        }
        json_set(status, keys[i].key,
                 !b               ? json_null()
                 : keys[i].merged ? patch_replace(b)
                                  : json_clone(b));
    }
    json_set(status, "conditions",
             patch_conditions(json_get(old, "conditions"), json_get(now, "conditions")));
    if (json_count(status) == 0) {
        return json_free(patch);
    }
    json_set_string(json_ensure_object(patch, "metadata"), "uid", uid);
    return patch;
}
