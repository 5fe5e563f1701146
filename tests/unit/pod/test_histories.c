/* SPDX-License-Identifier: Apache-2.0 */
/* Random histories of pods: a model of a runtime in which containers and sandboxes die, records are
 * lost, and calls fail; an agent that plans on what it saw, restarts, and carries plans out; a user
 * who deletes the pod with ever shorter grace. */
#include "pod/plan.h"
#include "pod/restart.h"
#include "pod/status.h"

#include "json_text.h"
#include "rng.h"

#include <stdio.h>

#define S INT64_C(1000000000)
#define STEPS 200
#define CONTAINERS_MAX 512
#define SANDBOXES_MAX 64
#define NAMES_MAX 8

struct model_container {
    char id[16], sandbox[16];
    const char *name;
    struct runtime_container c;
    char hash[POD_HASH_SIZE], restarts[16], level[16];
    struct runtime_pair notes[3];
    int64_t dies_ns; /* It was asked to end; 0: it was not. */
    bool removed;
};

struct model {
    struct json *pod, *status;
    struct model_container containers[CONTAINERS_MAX];
    size_t n;
    struct {
        char id[16], ip[16];
        struct runtime_sandbox s;
        bool removed;
    } sandboxes[SANDBOXES_MAX];
    size_t n_sandboxes;
    int64_t now;
    struct pod_observed o;
    enum pod_work work;
    int64_t restart_counts[NAMES_MAX];
    char final[16];
    bool deleted, ended;
    uint64_t seed;
};

static void give_up(const struct model *m, const char *what)
{
    CLEANUP_FREE char *pod = json_to_text(m->pod), *status = json_to_text(m->status);
    fail_msg("seed %llu: %s\npod %s\nstatus %s", (unsigned long long) m->seed, what, pod,
             status ? status : "");
}

/* ---- the pod ---- */

static struct json *random_pod(void)
{
    static const char *const policies[] = {"Always", "OnFailure", "Never"};
    struct json *pod =
        from("{'metadata': {'name': 'p', 'namespace': 'n', 'uid': 'u'}, 'spec': {'containers': []},"
             "'status': {'phase': 'Pending'}}");
    struct json *spec = json_get(pod, "spec"), *init = json_array();
    json_set_string(spec, "restartPolicy", PICK(policies));
    json_set_int(spec, "terminationGracePeriodSeconds", below(40));
    if (chance(10)) {
        json_set_int(spec, "activeDeadlineSeconds", 1 + below(600));
    }
    size_t inits = below(4), mains = 1 + below(3);
    for (size_t i = 0; i < inits; i++) {
        struct json *c = json_append(init, json_object());
        json_set(c, "name", json_stringf("i%zu", i));
        if (chance(40)) {
            json_set_string(c, "restartPolicy", "Always");
        }
    }
    json_set(spec, "initContainers", init);
    for (size_t i = 0; i < mains; i++) {
        struct json *c = json_append(json_get(spec, "containers"), json_object());
        json_set(c, "name", json_stringf("m%zu", i));
    }
    return pod;
}

static const char *phase_of(const struct model *m)
{
    return json_get_text(m->status, "phase");
}

/* ---- the runtime ---- */

static struct model_container *find(struct model *m, const char *id)
{
    for (size_t i = 0; i < m->n; i++) {
        if (streq(m->containers[i].id, id)) {
            return &m->containers[i];
        }
    }
    give_up(m, "an action names a container that never was");
    return NULL;
}

static void end_container(struct model *m, struct model_container *c, int32_t code)
{
    if (c->c.state == RUNTIME_RUNNING || c->c.state == RUNTIME_UNKNOWN) {
        c->c.exit_code = c->c.state == RUNTIME_UNKNOWN ? 255 : code;
        c->c.state = RUNTIME_EXITED;
        c->c.finished_ns = m->now;
        c->c.reason = code ? "Error" : "Completed";
    }
}

static void end_sandbox(struct model *m, size_t at)
{
    m->sandboxes[at].s.ready = false;
    for (size_t i = 0; i < m->n; i++) {
        if (streq(m->containers[i].sandbox, m->sandboxes[at].id)) {
            end_container(m, &m->containers[i], 137);
        }
    }
}

static void make_sandbox(struct model *m, uint32_t attempt)
{
    if (m->n_sandboxes == SANDBOXES_MAX) {
        return;
    }
    for (size_t i = 0; i < m->n_sandboxes; i++) {
        if (!m->sandboxes[i].removed && m->sandboxes[i].s.attempt == attempt) {
            give_up(m, "an attempt of a sandbox is used twice");
        }
        if (m->sandboxes[i].s.ready) {
            give_up(m, "a second sandbox is made while one is ready");
        }
    }
    size_t at = m->n_sandboxes++;
    snprintf(m->sandboxes[at].id, sizeof m->sandboxes[at].id, "s%zu", at);
    snprintf(m->sandboxes[at].ip, sizeof m->sandboxes[at].ip, "10.0.0.%zu", at + 1);
    m->sandboxes[at].s = (struct runtime_sandbox){.id = m->sandboxes[at].id,
                                                  .attempt = attempt,
                                                  .ready = true,
                                                  .created_ns = m->now,
                                                  .ip = m->sandboxes[at].ip};
}

/* What the agent sees by listing everything. */
static void look(struct model *m)
{
    pod_observed_clear(&m->o);
    for (size_t i = 0; i < m->n_sandboxes; i++) {
        if (!m->sandboxes[i].removed) {
            pod_observed_add_sandbox(&m->o, &m->sandboxes[i].s);
        }
    }
    for (size_t i = 0; i < m->n; i++) {
        if (!m->containers[i].removed) {
            struct observed_container *o = pod_observed_add_container(&m->o, &m->containers[i].c);
            pod_observed_set_details(o, &m->containers[i].c);
        }
    }
    for (size_t i = 0; i < m->o.n_containers; i++) {
        const struct observed_container *c = &m->o.containers[i];
        if (c->state == RUNTIME_RUNNING && c == pod_observed_newest(&m->o, c->name)) {
            struct observed_fact *f = pod_observed_fact(&m->o, c->name);
            observed_fact_set_id(f, c->id);
            f->started = f->started || chance(70);
            f->ready = f->started;
        }
    }
}

/* ---- invariants ---- */

static void check_start(struct model *m, const struct pod_start *s)
{
    const struct json *spec = json_get(m->pod, "spec");
    const char *policy = json_get_text(spec, "restartPolicy");
    for (size_t i = 0; i < m->n; i++) {
        const struct model_container *c = &m->containers[i];
        if (!streq(c->name, s->name)) {
            continue;
        }
        if (!c->removed && (c->c.state == RUNTIME_RUNNING || c->c.state == RUNTIME_UNKNOWN)) {
            give_up(m, "a container is started while one of its name may run");
        }
        if (s->kind == POD_MAIN && c->c.state == RUNTIME_EXITED &&
            (streq(policy, "Never") || (streq(policy, "OnFailure") && c->c.exit_code == 0))) {
            give_up(m, "a container is started again against the restart policy");
        }
    }
    if (m->deleted || pod_phase_is_final(phase_of(m)) || m->work != POD_SYNC) {
        give_up(m, "a container is started in a pod that ends");
    }
}

/* Every init container that is no sidecar ended well in the main container's sandbox before. */
static void check_initialized(struct model *m, const char *sandbox)
{
    const struct json *c;
    JSON_FOREACH (c, json_path(m->pod, "spec", "initContainers", NULL)) {
        bool done = streq(json_get_text(c, "restartPolicy"), "Always");
        for (size_t i = 0; i < m->n; i++) {
            const struct model_container *k = &m->containers[i];
            done =
                done || (streq(k->name, json_get_text(c, "name")) && streq(k->sandbox, sandbox) &&
                         k->c.state == RUNTIME_EXITED && k->c.exit_code == 0);
        }
        if (!done) {
            give_up(m, "a main container is started before an init container is done");
        }
    }
}

static void check_running(struct model *m)
{
    for (size_t i = 0; i < m->n; i++) {
        for (size_t k = i + 1; k < m->n; k++) {
            if (m->containers[i].c.state == RUNTIME_RUNNING &&
                m->containers[k].c.state == RUNTIME_RUNNING &&
                streq(m->containers[i].name, m->containers[k].name)) {
                give_up(m, "two containers of one name run");
            }
        }
    }
}

static void check_status(struct model *m)
{
    static const char *const keys[] = {"containerStatuses", "initContainerStatuses"};
    size_t n = 0;
    if (*m->final && !streq(m->final, phase_of(m))) {
        give_up(m, "a final phase changed");
    }
    if (pod_phase_is_final(phase_of(m))) {
        snprintf(m->final, sizeof m->final, "%s", phase_of(m));
    }
    for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
        const struct json *c;
        JSON_FOREACH (c, json_get(m->status, keys[k])) {
            int64_t count = json_get_int_or(json_get(c, "restartCount"), -1);
            const struct json *state = json_get(c, "state");
            if (count < m->restart_counts[n]) {
                give_up(m, "a restart count fell");
            }
            m->restart_counts[n++] = count;
            if (json_count(state) != 1) {
                give_up(m, "a container has not exactly one state");
            }
        }
    }
    const struct json *ready = NULL, *c;
    JSON_FOREACH (c, json_get(m->status, "conditions")) {
        ready = streq(json_get_text(c, "type"), "Ready") ? c : ready;
    }
    bool is_ready = streq(json_get_text(ready, "status"), "True");
    if (is_ready && pod_phase_is_final(phase_of(m))) {
        give_up(m, "a pod that ended is ready");
    }
}

/* ---- the agent ---- */

static void start_container(struct model *m, const struct pod_start *s, const char *sandbox)
{
    if (m->n == CONTAINERS_MAX) {
        return;
    }
    struct model_container *c = &m->containers[m->n++];
    const struct json *spec = pod_container_named(m->pod, s->name, NULL);
    snprintf(c->id, sizeof c->id, "c%zu", m->n);
    snprintf(c->sandbox, sizeof c->sandbox, "%s", sandbox);
    snprintf(c->restarts, sizeof c->restarts, "%u", s->restarts);
    snprintf(c->level, sizeof c->level, "%u", s->level);
    pod_container_hash(spec, c->hash);
    c->name = json_get_text(spec, "name");
    c->notes[0] = (struct runtime_pair){POD_NOTE_RESTARTS, c->restarts};
    c->notes[1] = (struct runtime_pair){POD_NOTE_LEVEL, c->level};
    c->notes[2] = (struct runtime_pair){POD_NOTE_HASH, c->hash};
    c->c = (struct runtime_container){.id = c->id,
                                      .sandbox_id = c->sandbox,
                                      .name = c->name,
                                      .attempt = s->restarts,
                                      .state = RUNTIME_CREATED,
                                      .created_ns = m->now,
                                      .annotations = {c->notes, ARRAY_SIZE(c->notes)}};
    for (size_t i = 0; i + 1 < m->n; i++) {
        if (!m->containers[i].removed && streq(m->containers[i].name, c->name) &&
            m->containers[i].c.attempt == s->restarts) {
            give_up(m, "an attempt of a container is used twice");
        }
    }
    if (chance(95)) {
        c->c.state = RUNTIME_RUNNING;
        c->c.started_ns = m->now;
    }
}

static void carry_out(struct model *m, const struct pod_actions *a)
{
    for (size_t i = 0; i < a->n_kills; i++) {
        struct model_container *c = find(m, a->kills[i].id);
        int64_t soon = m->now + (int64_t) below(5) * S;
        c->dies_ns = c->dies_ns ? MIN(c->dies_ns, MAX(a->kills[i].deadline_ns, m->now))
                                : MIN(soon, MAX(a->kills[i].deadline_ns, m->now + 1));
    }
    for (size_t i = 0; i < m->n_sandboxes; i++) {
        for (size_t k = 0; k < a->n_stop_sandboxes; k++) {
            if (streq(m->sandboxes[i].id, a->stop_sandboxes[k]) && chance(90)) {
                end_sandbox(m, i);
            }
        }
        for (size_t k = 0; k < a->n_remove_sandboxes; k++) {
            if (streq(m->sandboxes[i].id, a->remove_sandboxes[k])) {
                m->sandboxes[i].removed = true;
            }
        }
    }
    for (size_t i = 0; i < a->n_remove_containers; i++) {
        struct model_container *c = find(m, a->remove_containers[i]);
        if (c->c.state == RUNTIME_RUNNING) {
            give_up(m, "a running container is removed");
        }
        c->removed = true;
    }
    if (a->make_sandbox && chance(85)) {
        make_sandbox(m, a->sandbox_attempt);
    }
    for (size_t i = 0; i < a->n_starts; i++) {
        const struct pod_start *s = &a->starts[i];
        check_start(m, s);
        if (s->kind == POD_MAIN && !s->created_id) {
            check_initialized(m, a->sandbox_id);
        }
        if (s->created_id) {
            struct model_container *c = find(m, s->created_id);
            c->c.state = RUNTIME_RUNNING;
            c->c.started_ns = m->now;
        } else if (chance(85)) {
            start_container(m, s, a->sandbox_id);
        }
    }
}

static void agent_round(struct model *m)
{
    struct pod_actions a;
    look(m);
    m->o.volumes_ready = chance(95);
    pod_plan(m->pod, m->status, &m->o, m->now, &a);
    if (a.work < m->work) {
        give_up(m, "the work on a pod goes back");
    }
    m->work = a.work;
    if (m->work != POD_SYNC && !m->o.ending_ns) {
        m->o.ending_ns = m->now;
        const char *reason, *message;
        if (pod_must_end(m->pod, m->status, &m->o, m->now, &reason, &message) && reason) {
            m->o.refused_reason = xstrdup(reason);
            m->o.refused_message = xstrdup(message);
        }
    }
    carry_out(m, &a);
    m->ended = a.work == POD_ENDED;
    pod_actions_done(&a);
    look(m);
    struct pod_status_facts facts = {.runtime = "r", .work = m->work};
    CLEANUP(json_free) struct json *last = pod_status_merge(m->status, json_get(m->pod, "status"));
    struct json *now = pod_status(m->pod, last, &m->o, &facts, m->now);
    json_free(m->status);
    m->status = now;
    check_status(m);
    check_running(m);
}

/* All that the agent had in memory is gone; what it wrote to the API stays. */
static void restart_agent(struct model *m)
{
    int64_t seen = m->o.first_seen_ns;
    json_set(m->pod, "status", json_clone(m->status));
    pod_observed_done(&m->o);
    m->o.first_seen_ns = seen;
    m->work = POD_SYNC;
}

static void delete_pod(struct model *m)
{
    struct json *metadata = json_get(m->pod, "metadata");
    int64_t grace = m->deleted
                        ? json_get_int_or(json_get(metadata, "deletionGracePeriodSeconds"), 0)
                        : pod_grace_s(m->pod);
    json_set_string(metadata, "deletionTimestamp", "2026-01-01T00:00:00Z");
    json_set_int(metadata, "deletionGracePeriodSeconds", below((uint64_t) grace + 1));
    m->deleted = true;
}

/* The runtime loses the record of a container whose end was seen. */
static void lose_record(struct model *m)
{
    size_t at = below(m->n);
    if (m->containers[at].c.state == RUNTIME_EXITED) {
        m->containers[at].removed = true;
    }
}

static void happen(struct model *m)
{
    if (m->n && chance(4)) {
        lose_record(m);
    }
    for (size_t i = 0; i < m->n; i++) {
        struct model_container *c = &m->containers[i];
        bool init = *c->name == 'i';
        if (c->c.state != RUNTIME_RUNNING && c->c.state != RUNTIME_UNKNOWN) {
            continue;
        }
        if (c->c.state == RUNTIME_RUNNING && chance(1)) {
            c->c.state = RUNTIME_UNKNOWN; /* It ended, and the runtime did not find out. */
        }
        if (c->dies_ns && c->dies_ns <= m->now) {
            end_container(m, c, chance(50) ? 143 : 137);
        } else if (c->c.state == RUNTIME_RUNNING && chance(init ? 30 : 5)) {
            end_container(m, c, chance(60) ? 0 : 1 + (int32_t) below(3));
        }
    }
    if (m->n_sandboxes && chance(2)) {
        end_sandbox(m, m->n_sandboxes - 1);
    }
    if (chance(3)) {
        restart_agent(m);
    }
}

static void run_history(uint64_t seed)
{
    struct model *m = NEW(struct model);
    m->seed = seed;
    rng_start(seed);
    m->pod = random_pod();
    m->now = 1000000 * S;
    m->o.first_seen_ns = m->now;
    size_t deleted_at = 50 + below(STEPS - 100);
    for (size_t step = 0; step < STEPS && !(m->deleted && m->ended); step++) {
        m->now += (int64_t) below(chance(10) ? 400 : 8) * S;
        happen(m);
        if (step == deleted_at || (m->deleted && chance(5))) {
            delete_pod(m);
        }
        agent_round(m);
    }
    if (!m->ended || !m->deleted) {
        give_up(m, "a deleted pod does not end");
    }
    for (size_t i = 0; i < m->n; i++) {
        if (m->containers[i].c.state == RUNTIME_RUNNING) {
            give_up(m, "a container runs after the end");
        }
    }
    if (!pod_phase_is_final(phase_of(m))) {
        give_up(m, "a pod that ended has no final phase");
    }
    pod_observed_done(&m->o);
    json_free(m->pod);
    json_free(m->status);
    free(m);
}

static void pods_keep_the_rules_in_any_history(void **state)
{
    uint64_t n = rng_setting("TENET_POD_HISTORIES", 2000);
    uint64_t first = rng_first_seed("TENET_POD_SEED", n, "histories of pods");
    for (uint64_t i = 0; i < n; i++) {
        run_history(first + i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pods_keep_the_rules_in_any_history)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
