/* SPDX-License-Identifier: Apache-2.0 */
/* Random histories of pods: the kubelet's workers between an API server and a runtime that stalls,
 * loses events, fails calls before or after they were done, and restarts, while containers end,
 * users change and delete pods, the API server goes away, and the kubelet itself is restarted.  In
 * the end all is well again, nothing was restarted without need, no exit was lost, nothing is left.
 *
 * Time is virtual (virtual_time.h).  TENET_HISTORIES is their number, TENET_HISTORY_SEED the first
 * seed. */
#include "net/loop/process.h"
#include "pod/restart.h"
#include "pods_rig.h"
#include "virtual_time.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "rng.h"

#define PODS_MAX 8
#define MAINS_MAX 3
#define PROCESSES_MAX 1024
#define STEPS 30
#define REST_S (3600 * 2)
#define FOREVER UINT32_MAX

static const char *const images[] = {"docker.io/library/i:1", "docker.io/library/i:2"};

/* A process that a container had. */
struct process {
    char *id, *uid, *name, *sandbox_id;
    char *hash; /* Of its container's specification. */
    uint32_t restarts, level;
    int64_t begin_ns, end_ns; /* 'end_ns' 0: it was not ended by itself. */
    int32_t code;
    bool forgotten;           /* The runtime does not know how it ended. */
    struct loop_timer *timer; /* Ends it; NULL: nothing does. */
};

struct pod {
    char name[8];
    char *uid;
    struct json *spec;
    bool jobs; /* Its main containers end by themselves. */
    bool deleted, disturbed;
    int64_t image_ns; /* The last change of its first container's image; 0: none. */
};

static struct {
    uint64_t seed;
    struct pods_rig rig;
    struct pod pods[PODS_MAX];
    size_t n_pods;
    struct process processes[PROCESSES_MAX];
    size_t n_processes;
    bool calm; /* No fault comes any more. */
    bool runtime_down, api_down;
    char *what_happened;
} t;

/* Seconds since the first history. */
static double seconds(int64_t ns)
{
    return ns ? (double) (ns / NS_PER_MS) / 1000 - 1767225600 : 0;
}

_Noreturn static void give_up(const char *uid, const char *name, const char *what)
{
    CLEANUP(json_free) struct json *processes = json_array();
    for (size_t i = 0; i < t.n_processes; i++) {
        const struct process *p = &t.processes[i];
        if (!uid || streq(p->uid, uid)) {
            json_append(processes,
                        json_stringf("%s %s #%u level %u %s sandbox %s: %.3f to %.3f code %d",
                                     p->uid, p->name, p->restarts, p->level, p->hash,
                                     p->sandbox_id + 56, seconds(p->begin_ns), seconds(p->end_ns),
                                     p->code));
        }
    }
    CLEANUP_FREE char *text = json_to_text(processes);
    const struct json *pod = NULL, *status = NULL;
    CLEANUP_FREE char *pod_text = NULL, *status_text = NULL;
    for (size_t i = 0; uid && t.rig.workers && i < t.n_pods; i++) {
        if (streq(t.pods[i].uid, uid) &&
            workers_find(t.rig.workers, "default", t.pods[i].name, uid, &pod, &status)) {
            pod_text = json_to_text(pod);
            status_text = json_to_text(status);
        }
    }
    printf("seed %llu at %.3f: %s %s: %s\nhistory: %s\nprocesses: %s\npod: %s\nstatus: %s\n",
           (unsigned long long) t.seed, seconds(virtual_now_ns()), uid ? uid : "", name ? name : "",
           what, t.what_happened, text, pod_text ? pod_text : "", status_text ? status_text : "");
    fflush(stdout);
    dir_remove(t.rig.dir, NULL);
    exit(1); /* The loop may be in the middle of a callback. */
}

static void PRINTF_LIKE(1, 2) note(const char *fmt, ...)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    va_list ap;
    strbuf_addf(&b, "%s\n %.3f ", t.what_happened ? t.what_happened : "",
                seconds(virtual_now_ns()));
    va_start(ap, fmt);
    strbuf_vaddf(&b, fmt, ap);
    va_end(ap);
    free(t.what_happened);
    t.what_happened = xstrdup(strbuf_cstr(&b));
}

static struct pod *pod_of(const char *uid)
{
    for (size_t i = 0; i < t.n_pods; i++) {
        if (streq(t.pods[i].uid, uid)) {
            return &t.pods[i];
        }
    }
    give_up(uid, NULL, "a pod that nobody made");
}

/* ---- processes of containers ---- */

static const struct fake_container *container_of(const char *id)
{
    const struct fake_container *c;
    for (size_t i = 0; (c = fake_cri_container_at(t.rig.cri, i)); i++) {
        if (streq(c->id, id)) {
            return c;
        }
    }
    return NULL;
}

static const struct fake_sandbox *sandbox_of(const char *id)
{
    const struct fake_sandbox *s;
    for (size_t i = 0; (s = fake_cri_sandbox_at(t.rig.cri, i)); i++) {
        if (streq(s->id, id)) {
            return s;
        }
    }
    return NULL;
}

static bool runs(const struct process *p)
{
    const struct fake_container *c = container_of(p->id);
    return c && c->state == RUNTIME_RUNNING;
}

/* Whether its process is there, too.  The agent may know of the end before a status shows it. */
static bool is_alive(const struct process *p)
{
    const struct fake_container *c = container_of(p->id);
    return runs(p) && !c->ending;
}

static struct process *last_process(const char *uid, const char *name)
{
    for (size_t i = t.n_processes; i-- > 0;) {
        if (streq(t.processes[i].uid, uid) && streq(t.processes[i].name, name)) {
            return &t.processes[i];
        }
    }
    return NULL;
}

static void end_now(void *ctx)
{
    struct process *p = ctx;
    if (is_alive(p)) {
        p->end_ns = virtual_now_ns();
        fake_cri_exit(t.rig.cri, p->id, p->code);
    }
}

static void end_after(struct process *p, int32_t code, uint64_t ms)
{
    p->code = code;
    if (!p->timer) {
        p->timer = loop_timer_new(t.rig.h->loop, end_now, p);
    }
    loop_timer_arm(p->timer, ms);
}

static const char *value_of(const struct runtime_pairs *pairs, const char *key)
{
    for (size_t i = 0; i < pairs->n; i++) {
        if (streq(pairs->v[i].key, key)) {
            return pairs->v[i].value;
        }
    }
    return "";
}

static const char *first_container(const struct pod *pod)
{
    return json_get_text(json_at(json_path(pod->spec, "spec", "containers", NULL), 0), "name");
}

/* Whether the image was changed while the process ran: it had to end, even if the image is the
 * former one again. */
static bool had_another_image(const struct pod *pod, const struct process *p)
{
    return streq(p->name, first_container(pod)) && pod->image_ns > p->begin_ns;
}

/* Whether there was a reason to start 'now' after 'last'. */
static void check_start(const struct pod *pod, const struct process *last,
                        const struct process *now, enum pod_container_kind kind)
{
    if (is_alive(last)) {
        give_up(now->uid, now->name, "a container is started while one of its name runs");
    }
    const struct fake_sandbox *s = sandbox_of(last->sandbox_id);
    bool changed = !streq(last->hash, now->hash), moved = !streq(last->sandbox_id, now->sandbox_id);
    if (moved && s && s->ready) {
        give_up(now->uid, now->name, "a container is started in another sandbox beside a good one");
    }
    if (!last->end_ns) {
        if (!changed && !moved && !last->forgotten && !had_another_image(pod, last)) {
            give_up(now->uid, now->name, "a container was ended and started again without need");
        }
        return;
    }
    if (!changed && kind == POD_MAIN &&
        !pod_restarts(pod_restart_policy(pod->spec), kind, last->code)) {
        give_up(now->uid, now->name, "a container is started against the restart policy");
    }
    if (!changed && !moved && kind == POD_INIT && last->code == 0) {
        give_up(now->uid, now->name, "an init container runs again");
    }
    int64_t due_ns = last->end_ns + pod_backoff_s(last->level) * NS_PER_S;
    bool long_run = last->end_ns - last->begin_ns >= POD_BACKOFF_FORGET_S * NS_PER_S;
    if (!changed && !moved && !long_run && now->begin_ns < due_ns) {
        give_up(now->uid, now->name, "a container is started before its back-off ends");
    }
}

static void choose_end(struct process *p, const struct pod *pod, enum pod_container_kind kind)
{
    enum pod_restart_policy policy = pod_restart_policy(pod->spec);
    if (kind == POD_INIT) {
        end_after(p, t.calm || chance(85) ? 0 : 1, below(3000));
    } else if (kind == POD_MAIN && pod->jobs && !(t.calm && policy == POD_RESTART_ALWAYS)) {
        int32_t code = t.calm && policy == POD_RESTART_ON_FAILURE ? 0 : (int32_t) below(3);
        end_after(p, code, below(chance(20) ? 700000 : 20000));
    }
}

static void on_started(void *ctx, const struct fake_container *c)
{
    const char *uid = value_of(&c->spec->labels, POD_LABEL_UID);
    struct pod *pod = pod_of(uid);
    enum pod_container_kind kind;
    pod_container_named(pod->spec, c->spec->name, &kind);
    assert_true(t.n_processes < PROCESSES_MAX);
    struct process *last = last_process(uid, c->spec->name), *p = &t.processes[t.n_processes++];
    *p = (struct process){.id = xstrdup(c->id),
                          .uid = xstrdup(uid),
                          .name = xstrdup(c->spec->name),
                          .hash = xstrdup(value_of(&c->spec->annotations, POD_NOTE_HASH)),
                          .sandbox_id = xstrdup(c->sandbox_id),
                          .restarts =
                              (uint32_t) atoi(value_of(&c->spec->annotations, POD_NOTE_RESTARTS)),
                          .begin_ns = virtual_now_ns()};
    if (last) {
        bool anew =
            !streq(last->hash, p->hash) ||
            (last->end_ns && last->end_ns - last->begin_ns >= POD_BACKOFF_FORGET_S * NS_PER_S);
        p->level = anew ? 1 : last->level + 1;
        check_start(pod, last, p, kind);
        if (p->restarts <= last->restarts) {
            give_up(uid, p->name, "a restart is not counted");
        }
    }
    /* What was killed by others may have had any length. */
    uint32_t level = (uint32_t) atoi(value_of(&c->spec->annotations, POD_NOTE_LEVEL));
    if (last && last->end_ns && level != MIN(p->level, 16u)) {
        give_up(uid, p->name, "the step of the back-off is wrong");
    }
    p->level = level;
    choose_end(p, pod, kind);
}

static const struct fake_cri_ops cri_ops = {.started = on_started};

/* ---- users ---- */

static struct json *random_spec(struct pod *p)
{
    static const char *const policies[] = {"Always", "OnFailure", "Never"};
    struct json *spec = json_object(), *mains = json_set(spec, "containers", json_array());
    json_set_string(spec, "nodeName", "n1");
    json_set_string(spec, "restartPolicy", PICK(policies));
    json_set_int(spec, "terminationGracePeriodSeconds", below(40));
    p->jobs = chance(50);
    size_t inits = below(3);
    struct json *init = inits ? json_set(spec, "initContainers", json_array()) : NULL;
    for (size_t i = 0; i < inits; i++) {
        struct json *c = json_append(init, json_object());
        json_set(c, "name", json_stringf("i%zu", i));
        json_set_string(c, "image", PICK(images));
        if (chance(40)) {
            json_set_string(c, "restartPolicy", "Always");
        }
    }
    for (size_t i = 1 + below(MAINS_MAX); i > 0; i--) {
        struct json *c = json_append(mains, json_object());
        json_set(c, "name", json_stringf("m%zu", i));
        json_set_string(c, "image", PICK(images));
    }
    return spec;
}

static void create_pod(void)
{
    if (t.n_pods == PODS_MAX || t.api_down) {
        return;
    }
    struct pod *p = &t.pods[t.n_pods];
    size_t name = t.n_pods;
    for (size_t i = 0; i < t.n_pods; i++) { /* A deleted one's name comes again. */
        name = t.pods[i].deleted && chance(40) ? i : name;
    }
    CLEANUP(json_free) struct json *pod = json_object();
    struct json *metadata = json_ensure_object(pod, "metadata");
    struct pod was = *p;
    snprintf(p->name, sizeof p->name, "p%zu", name);
    json_set_string(metadata, "name", p->name);
    json_set(pod, "spec", random_spec(p));
    CLEANUP_FREE char *text = json_to_text(pod);
    CLEANUP_ANSWER struct answer a = ask(t.rig.h, "POST", "/api/v1/namespaces/default/pods", text);
    if (a.status == 409) {
        *p = was; /* The old one is still there. */
        return;
    }
    assert_int_equal(a.status, 201);
    p->uid = xstrdup(pod_uid(a.body));
    p->spec = json_clone(a.body);
    t.n_pods++;
    note("%s is created as %s", p->uid, p->name);
}

static void delete_pod(struct pod *p, int64_t grace_s)
{
    if (t.api_down) {
        return;
    }
    CLEANUP_FREE char *path = xasprintf("/api/v1/namespaces/default/pods/%s", p->name);
    CLEANUP_FREE char *body =
        grace_s < 0 ? xasprintf("{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\","
                                "\"preconditions\":{\"uid\":\"%s\"}}",
                                p->uid)
                    : xasprintf("{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\","
                                "\"gracePeriodSeconds\":%lld,\"preconditions\":{\"uid\":\"%s\"}}",
                                (long long) grace_s, p->uid);
    CLEANUP_ANSWER struct answer a = ask(t.rig.h, "DELETE", path, body);
    if (a.status != 200 && a.status != 202 && a.status != 404 && a.status != 409) {
        give_up(p->uid, NULL, a.text);
    }
    p->deleted = true;
    note("%s is deleted with grace %lld", p->uid, (long long) grace_s);
}

static void change_image(struct pod *p)
{
    if (t.api_down || p->deleted) {
        return;
    }
    const char *image = PICK(images), *name = first_container(p);
    CLEANUP_FREE char *path = xasprintf("/api/v1/namespaces/default/pods/%s", p->name);
    CLEANUP_FREE char *body = xasprintf("{\"metadata\":{\"uid\":\"%s\"},\"spec\":{\"containers\":[{"
                                        "\"name\":\"%s\",\"image\":\"%s\"}]}}",
                                        p->uid, name, image);
    CLEANUP_ANSWER struct answer a =
        ask_full(t.rig.h, "PATCH", path, NULL, "application/strategic-merge-patch+json", body);
    p->image_ns = a.status == 200 ? virtual_now_ns() : p->image_ns;
    note("%s gets the image %s: %d", p->uid, image, a.status);
}

/* ---- what happens ---- */

static const char *random_method(void)
{
    static const char *const methods[] = {"RunPodSandbox",    "StopPodSandbox",  "RemovePodSandbox",
                                          "PodSandboxStatus", "ListPodSandbox",  "CreateContainer",
                                          "StartContainer",   "StopContainer",   "RemoveContainer",
                                          "ListContainers",   "ContainerStatus", "ImageStatus"};
    return PICK(methods);
}

static struct process *random_running(void)
{
    for (unsigned i = 0; t.n_processes && i < 8; i++) {
        struct process *p = &t.processes[below(t.n_processes)];
        if (is_alive(p)) {
            return p;
        }
    }
    return NULL;
}

static void end_some_process(void)
{
    struct process *p = random_running();
    if (p) {
        p->code = chance(50) ? 0 : 1 + (int32_t) below(3);
        note("%s %s ends with %d", p->uid, p->name, p->code);
        end_now(p);
    }
}

static void kill_some_sandbox(void)
{
    struct process *p = random_running();
    const struct fake_sandbox *s = p ? sandbox_of(p->sandbox_id) : NULL;
    if (s && s->ready) {
        note("the sandbox of %s dies", p->uid);
        pod_of(p->uid)->disturbed = true;
        fake_cri_kill_sandbox(t.rig.cri, s->id);
    }
}

static void toggle_runtime(void)
{
    struct process *p = t.runtime_down && chance(20) ? random_running() : NULL;
    if (p) {
        note("%s %s ends unseen", p->uid, p->name);
        p->forgotten = true;
        fake_cri_forget_exit(t.rig.cri, p->id);
    }
    note("the runtime %s", t.runtime_down ? "is back" : "goes");
    if (t.runtime_down) {
        fake_cri_start(t.rig.cri);
    } else {
        fake_cri_stop(t.rig.cri);
    }
    t.runtime_down = !t.runtime_down;
}

static void toggle_api(void)
{
    note("the API server %s", t.api_down ? "is back" : "goes");
    if (t.api_down) {
        harness_listen_again(t.rig.h);
    } else {
        harness_stop_listening(t.rig.h);
    }
    t.api_down = !t.api_down;
}

static void fail_calls(void)
{
    const char *method = random_method();
    unsigned n = 1 + below(3);
    bool after = chance(50);
    note("%u calls of %s fail %s", n, method, after ? "after they were done" : "");
    (after ? fake_cri_fail_after : fake_cri_fail)(t.rig.cri, method, GRPC_UNKNOWN, "a fault", n);
}

static void happen(void)
{
    switch (below(14)) {
    case 0:
    case 1:
        create_pod();
        break;
    case 2:
        if (t.n_pods) {
            int64_t grace = chance(40) ? -1 : (int64_t) below(chance(30) ? 1 : 30);
            delete_pod(&t.pods[below(t.n_pods)], grace);
        }
        break;
    case 3:
        if (t.n_pods) {
            change_image(&t.pods[below(t.n_pods)]);
        }
        break;
    case 4:
    case 5:
        end_some_process();
        break;
    case 6:
        kill_some_sandbox();
        break;
    case 7:
        toggle_runtime();
        break;
    case 8:
        toggle_api();
        break;
    case 9:
    case 10:
        fail_calls();
        break;
    case 11:
        note("events are lost");
        fake_cri_lose_events(t.rig.cri, 1 + below(10));
        break;
    case 12: {
        const char *method = chance(30) ? NULL : random_method();
        note("%s stalls", method ? method : "all");
        fake_cri_stall(t.rig.cri, method);
        break;
    }
    case 13:
        note("the kubelet is restarted");
        pods_rig_stop_kubelet(&t.rig);
        pods_rig_pass(&t.rig, below(3) ? 0 : below(60000));
        pods_rig_start_kubelet(&t.rig);
        break;
    }
    if (chance(20)) {
        fake_cri_go_on(t.rig.cri);
    }
}

static void calm_down(void)
{
    note("calm");
    t.calm = true;
    if (t.runtime_down) {
        toggle_runtime();
    }
    if (t.api_down) {
        toggle_api();
    }
    fake_cri_go_on(t.rig.cri);
    fake_cri_forget_faults(t.rig.cri);
    fake_cri_set_stop_ms(t.rig.cri, 1000);
}

/* ---- what must be so in the end ---- */

static const char *check_container(const struct pod *p, const struct json *spec,
                                   const struct json *status, enum pod_container_kind kind,
                                   bool *ret_runs, bool *ret_failed)
{
    const char *name = json_get_text(spec, "name");
    const struct json *s = pod_find_status(status, name);
    const struct json *ended = json_path(s, "state", "terminated", NULL);
    const struct json *before = json_path(s, "lastState", "terminated", NULL);
    struct process *last = last_process(p->uid, name);
    enum pod_restart_policy policy = pod_restart_policy(p->spec);
    bool running = last && runs(last);
    *ret_runs = running;
    if (!s || !last) {
        return "a container was never started";
    }
    const char *id = json_get_text(s, "containerID");
    if (running != (json_path(s, "state", "running", NULL) != NULL)) {
        return "the status does not say whether a container runs";
    }
    if (!str_has_suffix(id, last->id)) {
        return "the status shows another container";
    }
    char hash[POD_HASH_SIZE];
    pod_container_hash(spec, hash);
    if (running && !streq(last->hash, hash)) {
        return "a container has an old image";
    }
    int64_t code = json_get_int_or(json_get(ended, "exitCode"), -1);
    if (ended && ((last->end_ns && code != last->code) || (last->forgotten && code != 255))) {
        return "an exit code is wrong";
    }
    if (!running && pod_restarts(policy, kind, (int32_t) code)) {
        return "a container does not run";
    }
    *ret_failed = !running && code != 0;
    int64_t restarts = json_get_int_or(json_get(s, "restartCount"), -1);
    int64_t starts = 0;
    const struct process *previous = NULL;
    for (size_t i = 0; i < t.n_processes; i++) {
        const struct process *q = &t.processes[i];
        if (streq(q->uid, p->uid) && streq(q->name, name)) {
            starts++;
            previous = q != last ? q : previous;
        }
    }
    if (restarts != last->restarts || restarts + 1 < starts ||
        (!p->disturbed && restarts + 1 != starts)) {
        return "the restart count is wrong";
    }
    if (running && previous && previous->end_ns && previous->restarts + 1 == last->restarts &&
        json_get_int_or(json_get(before, "exitCode"), -1) != previous->code) {
        return "the last exit is lost";
    }
    return NULL;
}

/* NULL: the pod is as it should be. */
static const char *check_pod(const struct pod *p, const struct json *pod)
{
    const struct json *status = json_get(pod, "status");
    const char *phase = json_get_text(status, "phase");
    bool any = false, failed = false, init_failed = false;
    if (pod_restart_policy(pod) == POD_RESTART_NEVER && streq(phase, "Failed")) {
        for (size_t i = 0; i < pod_count_containers(pod); i++) {
            enum pod_container_kind kind;
            const char *name = json_get_text(pod_container_at(pod, i, &kind), "name");
            const struct process *last = last_process(p->uid, name);
            init_failed = init_failed || (kind == POD_INIT && last && !runs(last) &&
                                          (!last->end_ns || last->code));
        }
    }
    if (init_failed) {
        return NULL;
    }
    bool final = pod_phase_is_final(phase);
    for (size_t i = 0; i < pod_count_containers(pod); i++) {
        enum pod_container_kind kind;
        const struct json *c = pod_container_at(pod, i, &kind);
        bool running = false, bad = false;
        if (final && kind == POD_SIDECAR) {
            const struct process *last = last_process(p->uid, json_get_text(c, "name"));
            if (last && runs(last)) {
                return "a sidecar outlives its pod";
            }
            continue;
        }
        const char *why = check_container(p, c, status, kind, &running, &bad);
        if (why) {
            return why;
        }
        any = any || (kind == POD_MAIN && running);
        failed = failed || (kind == POD_MAIN && bad);
    }
    const char *want = any ? "Running" : failed ? "Failed" : "Succeeded";
    if (!streq(phase, want)) {
        return "the phase is wrong";
    }
    const struct fake_sandbox *s = fake_cri_sandbox(t.rig.cri, p->uid);
    return any && !(s && s->ready) ? "there is no sandbox" : NULL;
}

static const struct json *find_pod(const struct json *list, const char *uid)
{
    const struct json *pod;
    JSON_FOREACH (pod, json_get(list, "items")) {
        if (streq(pod_uid(pod), uid)) {
            return pod;
        }
    }
    return NULL;
}

static const char *check_all(const struct pod **ret)
{
    CLEANUP_ANSWER struct answer a = ask(t.rig.h, "GET", "/api/v1/pods", NULL);
    const char *why = NULL;
    for (size_t i = 0; !why && i < t.n_pods; i++) {
        const struct pod *p = *ret = &t.pods[i];
        const struct json *pod = find_pod(a.body, p->uid);
        if (p->deleted) {
            why = pod                                   ? "a deleted pod is still there"
                  : fake_cri_sandbox(t.rig.cri, p->uid) ? "a sandbox of a deleted pod is left"
                                                        : NULL;
        } else {
            why = pod ? check_pod(p, pod) : "a pod is gone that was not deleted";
        }
    }
    for (size_t i = 0; !why && i < t.n_processes; i++) {
        const struct process *p = &t.processes[i];
        why = p->timer && (loop_timer_armed(p->timer) || p->end_ns) && runs(p)
                  ? "a process has not ended"
                  : NULL;
    }
    return why;
}

static void come_to_rest(void)
{
    const char *why = NULL;
    const struct pod *p = NULL;
    for (int64_t end = virtual_now_ns() + REST_S * NS_PER_S; virtual_now_ns() < end;
         pods_rig_pass(&t.rig, 5000)) {
        why = check_all(&p);
        if (!why) {
            return;
        }
    }
    give_up(p->uid, p->name, why);
}

/* At rest nothing more happens, for long: no container is started and none ends. */
static void stay_at_rest(void)
{
    size_t n = t.n_processes;
    unsigned stops = fake_cri_calls(t.rig.cri, "StopContainer");
    const struct pod *p = NULL;
    pods_rig_pass(&t.rig, 600000);
    const char *why = check_all(&p);
    if (why) {
        give_up(p->uid, p->name, why);
    }
    if (t.n_processes != n || fake_cri_calls(t.rig.cri, "StopContainer") != stops) {
        give_up(NULL, NULL, "there is no rest");
    }
}

static int print_path(const char *path, const struct stat *st, int type, struct FTW *at)
{
    fprintf(stderr, "left: %s\n", path);
    return 0;
}

static void check_nothing_is_left(void)
{
    const char *what = pods_rig_left(&t.rig);
    if (what) {
        nftw(t.rig.root, print_path, 16, FTW_PHYS);
        nftw(t.rig.logs, print_path, 16, FTW_PHYS);
        give_up(NULL, NULL, what);
    }
}

static void run_history(uint64_t seed)
{
    static const enum fake_cri_events kinds[] = {FAKE_CRI_EVENTS_CONTAINERD, FAKE_CRI_EVENTS_CRI,
                                                 FAKE_CRI_EVENTS_NONE};
    t.seed = seed;
    t.calm = false;
    rng_start(seed);
    note("history");
    pods_rig_start_runtime(&t.rig);
    fake_cri_set_ops(t.rig.cri, &cri_ops, NULL);
    fake_cri_set_events(t.rig.cri, PICK(kinds));
    fake_cri_set_delay_ms(t.rig.cri, below(50));
    fake_cri_set_exit_lag_ms(t.rig.cri, below(3) ? 0 : below(500));
    fake_cri_set_stop_ms(t.rig.cri, below(3) ? below(30000) : FOREVER);
    fake_cri_add_image(t.rig.cri, images[0]);
    if (chance(50)) { /* The runtime is away at first. */
        toggle_runtime();
    }
    pods_rig_start_kubelet(&t.rig);
    for (size_t i = 0; i < STEPS; i++) {
        happen();
        pods_rig_pass(&t.rig, below(chance(20) ? 30000 : 1500));
    }
    calm_down();
    create_pod();
    come_to_rest();
    stay_at_rest();
    for (size_t i = 0; i < t.n_pods; i++) {
        if (!t.pods[i].deleted) {
            delete_pod(&t.pods[i], -1);
        }
    }
    come_to_rest();
    pods_rig_pass(&t.rig, 120000);
    check_nothing_is_left();
    pods_rig_stop_kubelet(&t.rig);
    for (size_t i = 0; i < t.n_processes; i++) {
        struct process *p = &t.processes[i];
        loop_timer_free(p->timer);
        free(p->id);
        free(p->uid);
        free(p->name);
        free(p->hash);
        free(p->sandbox_id);
    }
    for (size_t i = 0; i < t.n_pods; i++) {
        free(t.pods[i].uid);
        json_free(t.pods[i].spec);
        t.pods[i] = (struct pod){0};
    }
    t.n_pods = t.n_processes = 0;
    pods_rig_stop_runtime(&t.rig);
    free(t.what_happened);
    t.what_happened = NULL;
}

static void pods_come_to_what_they_should_be_after_any_faults(void **state)
{
    uint64_t n = rng_setting("TENET_HISTORIES", 12);
    uint64_t first = rng_first_seed("TENET_HISTORY_SEED", n, "histories of the kubelet's pods");
    for (uint64_t i = 0; i < n; i++) {
        run_history(first + i);
    }
}

static int set_up(void **state)
{
    pods_rig_open(&t.rig);
    return 0;
}

static int tear_down(void **state)
{
    pods_rig_close(&t.rig);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(
        pods_come_to_what_they_should_be_after_any_faults, set_up, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
