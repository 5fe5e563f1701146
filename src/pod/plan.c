/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/plan.h"

#include "base/timeutil.h"
#include "pod/restart.h"

#define NS INT64_C(1000000000)
#define LOST_EXIT_CODE 137

struct plan {
    const struct json *pod, *status;
    const struct pod_observed *o;
    int64_t now_ns;
    enum pod_restart_policy policy;
    struct pod_actions *a;
};

void pod_actions_done(struct pod_actions *a)
{
    free(a->stop_sandboxes);
    free(a->remove_sandboxes);
    free(a->remove_containers);
    free(a->kills);
    free(a->starts);
    *a = (struct pod_actions){0};
}

static void add_text(const char ***list, size_t *n, const char *s)
{
    *list = xreallocarray(*list, *n + 1, sizeof **list);
    (*list)[(*n)++] = s;
}

static void wake_at(struct plan *p, int64_t ns)
{
    if (ns > p->now_ns && (!p->a->again_ns || ns < p->a->again_ns)) {
        p->a->again_ns = ns;
    }
}

/* ---- state of containers ---- */

void pod_last_of(const struct pod_observed *o, const struct json *status, const char *name,
                 struct pod_last *ret)
{
    const struct json *s = pod_find_status(status, name);
    int64_t told = json_get_int_or(json_get(s, "restartCount"), 0);
    uint32_t restarts = told > 0 && told < INT32_MAX ? (uint32_t) told : 0;
    const struct observed_container *c = pod_observed_newest(o, name);
    const struct json *ended = json_path(s, "state", "terminated", NULL);
    const struct json *running = json_path(s, "state", "running", NULL);
    const struct json *before = json_path(s, "lastState", "terminated", NULL);
    /* The runtime may lose the record of the newest container and keep that of an older one. */
    bool lost = c && c->state == RUNTIME_EXITED && c->restarts < restarts && (ended || running);
    *ret = (struct pod_last){.c = lost ? NULL : c};
    if (ret->c) {
        ret->restarts = MAX(c->restarts, restarts) + 1;
        ret->exit_code = c->exit_code;
        ret->state = c->state == RUNTIME_CREATED  ? POD_CREATED
                     : c->state == RUNTIME_EXITED ? POD_EXITED
                                                  : POD_RUNS;
        return;
    }
    if (ended || running || before) {
        const struct json *code = json_get(ended ? ended : running ? NULL : before, "exitCode");
        ret->state = POD_EXITED;
        ret->exit_code = (int32_t) json_get_int_or(code, LOST_EXIT_CODE);
        ret->restarts = restarts + 1;
    } else {
        ret->restarts = restarts;
    }
}

/* Whether the last container of 'name' ended and no other follows. */
static bool has_ended(const struct plan *p, const char *name, enum pod_container_kind kind,
                      const struct pod_last *last)
{
    const struct observed_fact *f = pod_observed_find_fact(p->o, name);
    return last->state == POD_EXITED && !(f && f->again) && !(last->c && !last->c->detailed) &&
           !pod_restarts(p->policy, kind, last->exit_code);
}

/* All containers that count have ended for good, or an init container has failed for good. */
static bool is_complete(const struct plan *p)
{
    size_t n = pod_count_containers(p->pod), mains = 0;
    bool all = true;
    for (size_t i = 0; i < n; i++) {
        enum pod_container_kind kind;
        struct pod_last last;
        const char *name = json_get_text(pod_container_at(p->pod, i, &kind), "name");
        pod_last_of(p->o, p->status, name, &last);
        if (kind == POD_INIT && has_ended(p, name, kind, &last) && last.exit_code != 0) {
            return true;
        }
        if (kind == POD_MAIN) {
            mains++;
            all = all && has_ended(p, name, kind, &last);
        }
    }
    return mains > 0 && all;
}

/* ---- whether it is wanted ---- */

int64_t pod_deadline_ns(const struct json *pod, const struct json *status,
                        const struct pod_observed *o)
{
    int64_t s = json_get_int_or(json_path(pod, "spec", "activeDeadlineSeconds", NULL), 0);
    int64_t start_ms;
    if (s <= 0) {
        return 0;
    }
    const char *start = json_get_text(status, "startTime");
    if (time_parse(start, &start_ms) < 0) {
        return o->first_seen_ns + s * NS;
    }
    return start_ms * 1000000 + s * NS;
}

bool pod_must_end(const struct json *pod, const struct json *status, const struct pod_observed *o,
                  int64_t now_ns, const char **ret_reason, const char **ret_message)
{
    struct plan p = {
        .pod = pod, .status = status, .o = o, .now_ns = now_ns, .policy = pod_restart_policy(pod)};
    int64_t deadline = pod_deadline_ns(pod, status, o);
    *ret_reason = *ret_message = NULL;
    if (o->refused_reason) {
        *ret_reason = o->refused_reason;
        *ret_message = o->refused_message;
        return true;
    }
    if (o->gone || pod_is_deleted(pod) || pod_phase_is_final(json_get_text(status, "phase")) ||
        is_complete(&p)) {
        return true;
    }
    if (deadline && deadline <= now_ns) {
        *ret_reason = "DeadlineExceeded";
        *ret_message = "Pod was active on the node longer than the specified deadline";
        return true;
    }
    return false;
}

/* ---- ending ---- */

static void kill(struct plan *p, const struct observed_container *c, const char *message,
                 int64_t deadline_ns)
{
    struct pod_actions *a = p->a;
    a->kills = xreallocarray(a->kills, a->n_kills + 1, sizeof *a->kills);
    a->kills[a->n_kills++] = (struct pod_kill){
        .id = c->id, .name = c->name, .message = message, .deadline_ns = deadline_ns};
}

static bool is_sidecar(const struct plan *p, const char *name)
{
    enum pod_container_kind kind;
    return pod_container_named(p->pod, name, &kind) && kind == POD_SIDECAR;
}

static bool any_runs(const struct plan *p, bool sidecars_too)
{
    for (size_t i = 0; i < p->o->n_containers; i++) {
        const struct observed_container *c = &p->o->containers[i];
        if (observed_container_may_run(c) && (sidecars_too || !is_sidecar(p, c->name))) {
            return true;
        }
    }
    return false;
}

static bool any_busy(const struct pod_observed *o)
{
    bool busy = o->sandbox_busy;
    for (size_t i = 0; i < o->n_facts; i++) {
        busy = busy || o->facts[i].busy;
    }
    return busy;
}

/* Kills the last sidecar that runs; its predecessors follow when it is dead. */
static void kill_last_sidecar(struct plan *p, int64_t deadline_ns)
{
    for (size_t i = pod_count_containers(p->pod); i-- > 0;) {
        const char *name = json_get_text(pod_container_at(p->pod, i, NULL), "name");
        bool found = false;
        for (size_t k = 0; k < p->o->n_containers; k++) {
            const struct observed_container *c = &p->o->containers[k];
            if (streq(c->name, name) && observed_container_may_run(c)) {
                kill(p, c, NULL, deadline_ns);
                found = true;
            }
        }
        if (found) {
            return;
        }
    }
}

static void plan_end(struct plan *p)
{
    struct pod_actions *a = p->a;
    const struct pod_observed *o = p->o;
    int64_t since = o->ending_ns ? o->ending_ns : p->now_ns;
    /* The object was deleted by force: another pod may have its name by now. */
    int64_t grace = pod_grace_s(p->pod);
    grace = o->hurried ? MIN(grace, o->hurry_s) : grace;
    int64_t deadline = o->gone ? since : since + grace * NS;
    bool others = any_runs(p, false);
    a->work = POD_ENDING;
    for (size_t i = 0; others && i < o->n_containers; i++) {
        const struct observed_container *c = &o->containers[i];
        if (observed_container_may_run(c) && !is_sidecar(p, c->name)) {
            kill(p, c, NULL, deadline);
        }
    }
    if (others) {
        return;
    }
    kill_last_sidecar(p, deadline);
    if (a->n_kills) {
        return;
    }
    for (size_t i = 0; i < o->n_sandboxes; i++) {
        if (o->sandboxes[i].ready) {
            add_text(&a->stop_sandboxes, &a->n_stop_sandboxes, o->sandboxes[i].id);
        }
    }
    if (a->n_stop_sandboxes == 0 && !any_busy(o)) {
        a->work = POD_ENDED;
    }
}

/* ---- keeping it running ---- */

/* Ended containers but the newest of each name, and the one before a container that runs; and
 * sandboxes that are out of use and empty. */
static void plan_garbage(struct plan *p, const struct observed_sandbox *in_use)
{
    const struct pod_observed *o = p->o;
    for (size_t i = 0; i < o->n_containers; i++) {
        const struct observed_container *c = &o->containers[i];
        const struct observed_container *newest = pod_observed_newest(o, c->name);
        bool kept =
            c == newest || (newest->state != RUNTIME_EXITED && c == pod_observed_before(o, newest));
        if (!kept && !observed_container_may_run(c)) {
            add_text(&p->a->remove_containers, &p->a->n_remove_containers, c->id);
        }
    }
    for (size_t i = 0; i < o->n_sandboxes && in_use; i++) {
        const struct observed_sandbox *s = &o->sandboxes[i];
        bool empty = true;
        for (size_t k = 0; k < o->n_containers; k++) {
            empty = empty && !streq(o->containers[k].sandbox_id, s->id);
        }
        if (s == in_use) {
            continue;
        }
        if (s->ready) {
            add_text(&p->a->stop_sandboxes, &p->a->n_stop_sandboxes, s->id);
        } else if (empty) {
            add_text(&p->a->remove_sandboxes, &p->a->n_remove_sandboxes, s->id);
        }
    }
}

static void plan_sandbox(struct plan *p, const struct observed_sandbox *newest)
{
    const struct pod_observed *o = p->o;
    struct pod_actions *a = p->a;
    int64_t deadline = p->now_ns + pod_grace_s(p->pod) * NS;
    bool ready = false, hindered = false;
    a->sandbox_changed = newest != NULL;
    for (size_t i = 0; i < o->n_containers; i++) {
        const struct observed_container *c = &o->containers[i];
        const struct observed_fact *f = pod_observed_find_fact(o, c->name);
        if (observed_container_may_run(c)) {
            kill(p, c, "The pod's sandbox is not usable, the pod will be started again", deadline);
        }
        hindered = hindered || (f && f->busy);
    }
    for (size_t i = 0; i < o->n_sandboxes && !a->n_kills; i++) {
        if (o->sandboxes[i].ready) {
            add_text(&a->stop_sandboxes, &a->n_stop_sandboxes, o->sandboxes[i].id);
            ready = true;
        }
    }
    if (a->n_kills || ready || hindered || o->sandbox_busy || !o->volumes_ready) {
        return;
    }
    if (o->sandbox_retry_ns > p->now_ns) {
        wake_at(p, o->sandbox_retry_ns);
        return;
    }
    a->make_sandbox = true;
    a->sandbox_attempt = MAX(newest ? newest->attempt + 1 : 0, o->sandbox_attempt);
}

static bool in_sandbox(const struct plan *p, const struct observed_container *c)
{
    return c && streq(c->sandbox_id, p->a->sandbox_id);
}

/* Starts a container of this name, now or when its back-off ends. */
static void start(struct plan *p, const struct json *c, enum pod_container_kind kind,
                  const struct pod_last *last)
{
    const char *name = json_get_text(c, "name");
    const struct observed_fact *f = pod_observed_find_fact(p->o, name);
    char hash[POD_HASH_SIZE];
    pod_container_hash(c, hash);
    if (f && (f->busy || f->hook)) {
        return;
    }
    bool ended = last->c && last->state == POD_EXITED;
    int64_t at = ended && in_sandbox(p, last->c) ? pod_restart_at(last->c, hash) : 0;
    at = MAX(at, f ? f->retry_ns : 0);
    if (at > p->now_ns) {
        wake_at(p, at);
        return;
    }
    struct pod_actions *a = p->a;
    a->starts = xreallocarray(a->starts, a->n_starts + 1, sizeof *a->starts);
    a->starts[a->n_starts++] = (struct pod_start){
        .name = name,
        .kind = kind,
        .created_id = last->state == POD_CREATED && in_sandbox(p, last->c) ? last->c->id : NULL,
        .restarts = last->restarts,
        .level = ended     ? pod_next_level(last->c, hash)
                 : last->c ? last->c->level
                           : 0,
    };
}

/* Kills a running container whose image changed or whose probe failed, or of which the runtime cannot
 * say whether it runs: it may not be started beside itself.  True: it is one. */
static bool plan_kill(struct plan *p, const struct json *spec, const struct observed_container *c)
{
    const struct observed_fact *f = pod_observed_find_fact(p->o, c->name);
    char hash[POD_HASH_SIZE];
    pod_container_hash(spec, hash);
    int64_t grace = pod_grace_s(p->pod);
    if (c->state == RUNTIME_UNKNOWN) {
        kill(p, c, "Container is in unknown state, try killing it before restart",
             p->now_ns + grace * NS);
        return true;
    }
    if (f && f->kill_message && streq_null(f->id, c->id)) {
        grace = f->kill_grace_s >= 0 ? f->kill_grace_s : grace;
        kill(p, c, f->kill_message, p->now_ns + grace * NS);
        return true;
    }
    if (*c->hash && !streq(c->hash, hash)) {
        kill(p, c, "Container definition changed, it will be restarted", p->now_ns + grace * NS);
        return true;
    }
    return false;
}

/* Goes through the init containers in order.  True: all are done, the main ones may start. */
static bool plan_init(struct plan *p, bool initialized)
{
    size_t n = pod_count_containers(p->pod);
    for (size_t i = 0; i < n; i++) {
        enum pod_container_kind kind;
        const struct json *c = pod_container_at(p->pod, i, &kind);
        struct pod_last last;
        if (kind == POD_MAIN || kind == POD_EPHEMERAL || (kind == POD_INIT && initialized)) {
            continue;
        }
        const char *name = json_get_text(c, "name");
        const struct observed_fact *f = pod_observed_find_fact(p->o, name);
        pod_last_of(p->o, p->status, name, &last);
        bool here = in_sandbox(p, last.c);
        if (here && last.state == POD_RUNS) {
            bool killed = plan_kill(p, c, last.c);
            bool started = f && f->started && !f->hook && streq_null(f->id, last.c->id);
            if (kind == POD_SIDECAR && (initialized || (started && !killed))) {
                continue;
            }
            return false;
        }
        if (here && last.state == POD_EXITED) {
            if (!last.c->detailed) {
                return false;
            }
            if (kind == POD_INIT && last.exit_code == 0) {
                continue;
            }
        }
        start(p, c, kind, &last);
        if (!initialized) {
            return false;
        }
    }
    return true;
}

static void plan_others(struct plan *p)
{
    size_t n = pod_count_containers(p->pod);
    for (size_t i = 0; i < n; i++) {
        enum pod_container_kind kind;
        const struct json *c = pod_container_at(p->pod, i, &kind);
        struct pod_last last;
        if (kind == POD_INIT || kind == POD_SIDECAR) {
            continue;
        }
        const char *name = json_get_text(c, "name");
        pod_last_of(p->o, p->status, name, &last);
        if (last.state == POD_RUNS && in_sandbox(p, last.c)) {
            plan_kill(p, c, last.c);
        } else if (last.state == POD_RUNS ||
                   (last.c && last.state == POD_EXITED && !last.c->detailed)) {
            continue; /* It is killed with its old sandbox, or its end is not known yet. */
        } else if (!has_ended(p, name, kind, &last)) {
            start(p, c, kind, &last);
        }
    }
}

/* Whether a main container was made in the sandbox, which proves the init containers done. */
static bool is_initialized(const struct plan *p)
{
    for (size_t i = 0; i < p->o->n_containers; i++) {
        enum pod_container_kind kind;
        const struct observed_container *c = &p->o->containers[i];
        if (in_sandbox(p, c) && pod_container_named(p->pod, c->name, &kind) && kind == POD_MAIN) {
            return true;
        }
    }
    return false;
}

static void plan_containers(struct plan *p, const struct observed_sandbox *s)
{
    const struct pod_observed *o = p->o;
    int64_t deadline = p->now_ns + pod_grace_s(p->pod) * NS;
    p->a->sandbox_id = s->id;
    for (size_t i = 0; i < o->n_containers; i++) {
        const struct observed_container *c = &o->containers[i];
        if (observed_container_may_run(c) &&
            (!in_sandbox(p, c) || c != pod_observed_newest(o, c->name) ||
             !pod_container_named(p->pod, c->name, NULL))) {
            kill(p, c, "The container is not one of the pod's sandbox", deadline);
        }
    }
    if (!o->volumes_ready) {
        return;
    }
    bool initialized = is_initialized(p);
    if (plan_init(p, initialized) || initialized) {
        plan_others(p);
    }
}

void pod_plan(const struct json *pod, const struct json *status, const struct pod_observed *o,
              int64_t now_ns, struct pod_actions *ret)
{
    struct plan p = {.pod = pod,
                     .status = status,
                     .o = o,
                     .now_ns = now_ns,
                     .policy = pod_restart_policy(pod),
                     .a = ret};
    const char *reason, *message;
    *ret = (struct pod_actions){.work = POD_SYNC};
    if (o->ending_ns || pod_must_end(pod, status, o, now_ns, &reason, &message)) {
        plan_end(&p);
        return;
    }
    wake_at(&p, pod_deadline_ns(pod, status, o));
    const struct observed_sandbox *s = pod_observed_sandbox(o);
    if (!observed_sandbox_is_usable(s, pod_uses_host_network(pod))) {
        plan_sandbox(&p, s);
        return;
    }
    plan_containers(&p, s);
    plan_garbage(&p, s);
}
