/* SPDX-License-Identifier: Apache-2.0 */
/* The framework of controllers with small controllers of its own, against an API server. */
#include "controller/controller.h"

#include "base/timeutil.h"
#include "controller/leader.h"
#include "json_text.h"
#include "rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define NAMESPACES "/api/v1/namespaces"

static struct harness *h;
static struct api_client *client;
static struct informer_set *informers;
static struct recorder *recorder;
static struct controller_set *set;
static struct strbuf tape = STRBUF_INIT; /* What happened, in order. */
static uint64_t times[16];               /* Of attempts, monotonic ms. */
static size_t n_times;
static struct work *held[8]; /* Work that the test ends. */
static size_t n_held, most_held;

/* The state of a controller: its name in the tape is that of its configuration. */
struct probe {
    const char *name;
    struct workqueue *queue;
    struct informer *namespaces;
};

static int probe_start(const struct controller_env *env, const void *config, void **ret,
                       struct err *e)
{
    const char *name = *(const char *const *) config;
    if (streq(name, "bad")) {
        return err_set(e, -EINVAL, "no such thing");
    }
    struct probe *p = NEW(struct probe);
    p->name = name;
    p->queue = env->queue;
    strbuf_addf(&tape, "%s starts, ", p->name);
    *ret = p;
    return 0;
}

static void probe_stop(void *state)
{
    struct probe *p = state;
    strbuf_addf(&tape, "%s stops, ", p->name);
    free(p);
}

static void probe_synced(void *state)
{
    const struct probe *p = state;
    strbuf_addf(&tape, "%s knows %s, ", p->name,
                informer_get(p->namespaces, "default") ? "default" : "nothing");
}

static void probe_note(void *ctx, struct work *w, const char *key)
{
    const struct probe *p = ctx;
    strbuf_addf(&tape, "%s %s, ", p->name, key);
    work_done(w);
}

static void probe_hold(void *ctx, struct work *w, const char *key)
{
    held[n_held++] = w;
    most_held = MAX(most_held, n_held);
}

static void probe_fail(void *ctx, struct work *w, const char *key)
{
    times[n_times++] = time_mono_ms();
    if (n_times < 5) {
        work_retry(w, n_times == 1 ? -ESTALE : -EIO, "try", "in vain");
    } else {
        work_done(w);
    }
}

static struct loop_task cut;
static void enable(unsigned has);

static void cut_now(void *ctx)
{
    enable(0);
}

static void never_answered(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    fail_msg("an answer came after the controller was stopped");
}

static void probe_ask(void *ctx, struct work *w, const char *key)
{
    const struct probe *p = ctx;
    strbuf_addf(&tape, "%s asks, ", p->name);
    work_request(w, "GET", NAMESPACES "/default", NULL, never_answered);
    loop_task_queue(&cut); /* Before the loop can get to the answer. */
}

static int asks_start(const struct controller_env *env, const void *config, void **ret,
                      struct err *e)
{
    workqueue_add(env->queue, "one");
    return probe_start(env, config, ret, e);
}

static const struct controller_watch namespaces[] = {
    {.api_version = "v1",
     .plural = "namespaces",
     .informer = CONTROLLER_INFORMER(struct probe, namespaces)},
};

#define PROBE(name_, start_, fn, n)          \
    static const struct controller name_ = { \
        .name = #name_,                      \
        .watches = namespaces,               \
        .n_watches = n,                      \
        .parallel = 2,                       \
        .start = start_,                     \
        .synced = (n) ? probe_synced : NULL, \
        .reconcile = fn,                     \
        .stop = probe_stop,                  \
    }
PROBE(notes, probe_start, probe_note, 1);
PROBE(notes_too, probe_start, probe_note, 1);
PROBE(holds, probe_start, probe_hold, 0);
PROBE(asks, asks_start, probe_ask, 0);

static const char *const names[] = {"a", "b", "bad"};
#define CONFIG(i) ((i) * sizeof names[0])

static void set_of(const struct controller_row *rows, size_t n)
{
    struct controller_env env = {
        .loop = h->loop, .client = client, .informers = informers, .recorder = recorder};
    set = controller_set_new(&env, rows, n, names);
}

static void enable(unsigned has)
{
    struct err e = {0};
    if (controller_set_enable(set, has, &e) < 0) {
        fail_msg("%s", e.text);
    }
}

static int set_up(void **state)
{
    h = harness_new(NULL, NULL);
    client = rig_client(h);
    informers = informer_set_new(h->loop, client);
    recorder = recorder_new(h->loop, client, "test");
    strbuf_reset(&tape);
    n_times = n_held = most_held = 0;
    return 0;
}

static int tear_down(void **state)
{
    set = controller_set_free(set);
    recorder_free(recorder);
    informer_set_free(informers);
    api_client_free(client);
    harness_free(h);
    return 0;
}

static void expect_tape(const char *want)
{
    bool never = false;
    for (int i = 0; i < 4000 && !streq(strbuf_cstr(&tape), want); i++) {
        loop_run_until(h->loop, &never, 5);
    }
    assert_string_equal(strbuf_cstr(&tape), want);
    strbuf_reset(&tape);
}

static void expect_held(size_t n)
{
    bool never = false;
    for (int i = 0; i < 4000 && n_held != n; i++) {
        loop_run_until(h->loop, &never, 5);
    }
    assert_int_equal(n_held, n);
}

/* Ends the work that is held. */
static void let_go(void)
{
    size_t n = n_held;
    n_held = 0;
    for (size_t i = 0; i < n; i++) {
        work_done(held[i]);
    }
}

static void expect_metric(const char *line)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    controller_set_write_metrics(set, &text);
    if (!strstr(strbuf_cstr(&text), line)) {
        fail_msg("\"%s\" is not in %s", line, strbuf_cstr(&text));
    }
}

/* ---- what runs ---- */

static void controllers_run_while_their_needs_are_met(void **state)
{
    static const struct controller_row rows[] = {{&notes, 1, CONFIG(0)},
                                                 {&notes_too, 3, CONFIG(1)}};
    set_of(rows, 2);
    enable(0);
    assert_string_equal(strbuf_cstr(&tape), "");
    enable(3);
    expect_tape("a starts, b starts, a knows default, b knows default, a default, b default, ");
    assert_int_equal(informer_set_count(informers), 1);
    assert_true(controller_set_runs(set, &notes_too));
    expect_metric("controller_running{name=\"notes_too\"} 1\n");
    enable(1);
    expect_tape("b stops, ");
    assert_false(controller_set_runs(set, &notes_too));
    expect_metric("controller_running{name=\"notes_too\"} 0\n");
    enable(3); /* It begins anew, from what its sibling's informer has. */
    expect_tape("b starts, b knows default, b default, ");
    free(make_namespace(h, "red"));
    expect_tape("a red, b red, ");
    enable(0);
    expect_tape("b stops, a stops, ");
    assert_int_equal(informer_set_count(informers), 0);
}

static void a_controller_that_cannot_start_is_an_error(void **state)
{
    static const struct controller_row rows[] = {
        {&notes, 0, CONFIG(0)}, {&notes_too, 0, CONFIG(2)}, {&holds, 0, CONFIG(1)}};
    struct err e = {0};
    set_of(rows, 3);
    assert_int_equal(controller_set_enable(set, 0, &e), -EINVAL);
    assert_string_equal(e.text, "no such thing");
    assert_true(controller_set_runs(set, &notes));
    assert_false(controller_set_runs(set, &notes_too));
    assert_false(controller_set_runs(set, &holds));
}

static void a_controller_may_be_stopped_in_the_middle_of_its_work(void **state)
{
    static const struct controller_row rows[] = {{&asks, 1, CONFIG(0)}};
    bool never = false;
    loop_task_init(&cut, h->loop, cut_now, NULL);
    set_of(rows, 1);
    enable(1);
    expect_tape("a starts, a asks, a stops, ");
    assert_false(controller_set_runs(set, &asks));
    loop_run_until(h->loop, &never, 20);
}

/* ---- queues ---- */

static struct workqueue *queue_of_holds;

static int holds_start(const struct controller_env *env, const void *config, void **ret,
                       struct err *e)
{
    queue_of_holds = env->queue;
    return probe_start(env, config, ret, e);
}

static void with_queue(work_fn *fn)
{
    static struct controller c;
    static struct controller_row row;
    c = holds;
    c.start = holds_start;
    c.reconcile = fn;
    row = (struct controller_row){&c, 0, CONFIG(0)};
    set_of(&row, 1);
    enable(0);
}

static void keys_added_together_are_reconciled_once(void **state)
{
    bool never = false;
    with_queue(probe_hold);
    for (int i = 0; i < 5; i++) {
        workqueue_add(queue_of_holds, "one");
    }
    expect_metric("workqueue_depth{name=\"holds\"} 1\n");
    expect_held(1);
    expect_metric("workqueue_depth{name=\"holds\"} 0\n");
    for (int i = 0; i < 3; i++) {
        workqueue_add(queue_of_holds, "one"); /* While it is worked on: once more after that. */
    }
    loop_run_until(h->loop, &never, 10);
    assert_int_equal(n_held, 1);
    let_go();
    expect_held(1);
    let_go();
    loop_run_until(h->loop, &never, 10);
    assert_int_equal(n_held, 0);
    expect_metric("workqueue_adds_total{name=\"holds\"} 2\n");
    expect_metric("workqueue_work_duration_seconds_count{name=\"holds\"} 2\n");
    expect_metric("workqueue_queue_duration_seconds_count{name=\"holds\"} 2\n");
}

static void no_more_keys_are_worked_on_than_allowed(void **state)
{
    with_queue(probe_hold);
    for (int i = 0; i < 5; i++) {
        CLEANUP_FREE char *key = xasprintf("%d", i);
        workqueue_add(queue_of_holds, key);
    }
    expect_held(2);
    let_go();
    expect_held(2);
    let_go();
    expect_held(1);
    let_go();
    assert_int_equal(most_held, 2);
}

static void work_that_fails_is_tried_again_with_growing_delays(void **state)
{
    bool never = false;
    with_queue(probe_fail);
    workqueue_add(queue_of_holds, "one");
    for (int i = 0; i < 4000 && n_times < 5; i++) {
        loop_run_until(h->loop, &never, 5);
    }
    assert_int_equal(n_times, 5);
    for (size_t i = 1; i < n_times; i++) {
        assert_true(times[i] - times[i - 1] + 1 >= 15u << (i - 1));
    }
    expect_metric("workqueue_retries_total{name=\"holds\"} 4\n");
    expect_metric("workqueue_errors_total{name=\"holds\"} 3\n"); /* The first was a conflict. */
    assert_int_equal(workqueue_size(queue_of_holds), 0);
}

/* ---- one leader ---- */

static void elected(void *ctx, const char *fence)
{
    enable(1);
}

static void deposed(void *ctx)
{
    enable(0);
}

static void controllers_run_only_while_the_process_leads(void **state)
{
    static const struct controller_row rows[] = {{&notes, 1, CONFIG(0)}};
    struct leader_config cfg = {.ns = "default",
                                .name = "lease",
                                .who = "us",
                                .duration_s = 3,
                                .elected = elected,
                                .deposed = deposed};
    set_of(rows, 1);
    enable(0);
    /* Another process holds the lease, and then gives it up. */
    put_in(h, "POST", "/apis/coordination.k8s.io/v1/namespaces/default/leases",
           "{'metadata': {'name': 'lease'}, 'spec': {'holderIdentity': 'them',"
           "'leaseDurationSeconds': 1000}}",
           201);
    struct leader *l = leader_new(h->loop, client, &cfg);
    bool never = false;
    loop_run_until(h->loop, &never, 50);
    assert_false(controller_set_runs(set, &notes));
    put_in(h, "PATCH", "/apis/coordination.k8s.io/v1/namespaces/default/leases/lease",
           "{'spec': {'holderIdentity': ''}}", 200);
    expect_tape("a starts, a knows default, a default, ");
    put_in(h, "DELETE", "/apis/coordination.k8s.io/v1/namespaces/default/leases/lease", NULL, 200);
    for (int i = 0; i < 4000 && !strstr(strbuf_cstr(&tape), "stops"); i++) {
        loop_run_until(h->loop, &never, 5);
    }
    assert_non_null(strstr(strbuf_cstr(&tape), "a stops, "));
    leader_free(l);
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(controllers_run_while_their_needs_are_met),
        T(a_controller_that_cannot_start_is_an_error),
        T(a_controller_may_be_stopped_in_the_middle_of_its_work),
        T(keys_added_together_are_reconciled_once),
        T(no_more_keys_are_worked_on_than_allowed),
        T(work_that_fails_is_tried_again_with_growing_delays),
        T(controllers_run_only_while_the_process_leads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
