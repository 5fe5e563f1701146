/* SPDX-License-Identifier: Apache-2.0 */
/* The end of pods before the host shuts down, in virtual time; logind is this file's. */
#include "kubelet/agent/shutdown.h"

#include "kubelet/agent/logind.h"
#include "pods_rig.h"
#include "virtual_time.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define PODS "/api/v1/namespaces/default/pods"
#define LONG_MS 120000

/* ---- a logind that does what the test says ---- */

static const struct logind_ops *logind_ops;
static void *logind_ctx;
static int64_t released_ns; /* When the lock was given back; 0: it is held. */

int logind_new(struct loop *l, const struct logind_ops *ops, void *ctx, struct logind **ret,
               struct err *e)
{
    logind_ops = ops;
    logind_ctx = ctx;
    released_ns = 0;
    *ret = NULL;
    return 0;
}

struct logind *logind_free(struct logind *g)
{
    logind_ops = NULL;
    return NULL;
}

void logind_release(struct logind *g)
{
    assert_int_equal(released_ns, 0);
    released_ns = virtual_now_ns();
}

/* ---- the rig ---- */

static struct pods_rig t;
static struct kubelet_config cfg;
static struct shutdown *shutdown;
static unsigned n_changed;

static void changed(void *ctx)
{
    n_changed++;
}

static void start(const char *grace, const char *critical)
{
    struct shutdown_config c = {
        .loop = t.h->loop, .pods = t.workers, .cfg = &cfg, .changed = changed};
    struct err e = {0};
    assert_int_equal(options_set_path(&kubelet_options, &cfg, "shutdownGracePeriod", grace, &e), 0);
    assert_int_equal(
        options_set_path(&kubelet_options, &cfg, "shutdownGracePeriodCriticalPods", critical, &e),
        0);
    assert_int_equal(shutdown_new(&c, &shutdown, &e), 0);
}

static int set_up(void **state)
{
    kubelet_config_init(&cfg);
    pods_rig_open(&t);
    pods_rig_start_runtime(&t);
    fake_cri_add_image(t.cri, "docker.io/library/i:1");
    pods_rig_start_kubelet(&t);
    n_changed = 0;
    return 0;
}

static int tear_down(void **state)
{
    shutdown = shutdown_free(shutdown);
    pods_rig_stop_kubelet(&t);
    pods_rig_stop_runtime(&t);
    pods_rig_close(&t);
    kubelet_config_done(&cfg);
    return 0;
}

static void create(const char *name, int64_t grace_s, const char *priority)
{
    CLEANUP_FREE char *body =
        xasprintf("{'metadata': {'name': '%s'}, 'spec': {'nodeName': 'n1', "
                  "'terminationGracePeriodSeconds': %lld, 'priorityClassName': '%s', "
                  "'containers': [{'name': 'c', 'image': 'i:1'}]}}",
                  name, (long long) grace_s, priority);
    put_in(t.h, "POST", PODS, body, 201);
}

/* status.'field' of the pod (owned). */
static char *shown(const char *name, const char *field)
{
    CLEANUP_FREE char *path = xasprintf(PODS "/%s", name);
    CLEANUP_ANSWER struct answer a = ask(t.h, "GET", path, NULL);
    return xstrdup(json_get_text(json_get(a.body, "status"), field));
}

static bool is(const char *name, const char *field, const char *value)
{
    CLEANUP_FREE char *text = shown(name, field);
    return streq(text, value);
}

static void await_phase(const char *name, const char *phase)
{
    for (unsigned ms = 0; !is(name, "phase", phase); ms += 100) {
        if (ms > LONG_MS) {
            fail_msg("%s is not %s", name, phase);
        }
        pods_rig_pass(&t, 100);
    }
}

/* Milliseconds from 'begin_ns' until the host may go on. */
static int64_t await_release(int64_t begin_ns)
{
    while (!released_ns) {
        assert_true(virtual_now_ns() - begin_ns < LONG_MS * INT64_C(1000000));
        pods_rig_pass(&t, 100);
    }
    return (released_ns - begin_ns) / 1000000;
}

/* ---- tests ---- */

static void without_time_there_is_nothing_to_do(void **state)
{
    start("0s", "0s");
    assert_null(shutdown);
    assert_null(logind_ops);
    assert_false(shutdown_is_under_way(shutdown));
}

static void critical_pods_end_last_and_all_say_why(void **state)
{
    create("plain", 30, "");
    create("critical", 30, "system-node-critical");
    await_phase("plain", "Running");
    await_phase("critical", "Running");
    fake_cri_set_stop_ms(t.cri, 2000);
    start("30s", "10s");
    assert_false(shutdown_is_under_way(shutdown));
    int64_t begin_ns = virtual_now_ns();
    logind_ops->prepare(logind_ctx, true);
    assert_true(shutdown_is_under_way(shutdown));
    assert_int_equal(n_changed, 1);
    await_phase("plain", "Failed");
    assert_true(is("critical", "phase", "Running"));
    int64_t took_ms = await_release(begin_ns);
    /* Both took two seconds, one after the other, and nothing waited for the end of its time. */
    assert_in_range(took_ms, 4000, 8000);
    const char *const names[] = {"plain", "critical"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        assert_true(is(names[i], "phase", "Failed"));
        assert_true(is(names[i], "reason", "Terminated"));
        assert_true(
            is(names[i], "message", "Pod was terminated in response to imminent node shutdown."));
    }
}

static void a_pod_has_no_longer_than_its_part(void **state)
{
    create("slow", 600, "");
    create("critical", 600, "system-cluster-critical");
    await_phase("slow", "Running");
    await_phase("critical", "Running");
    fake_cri_set_stop_ms(t.cri, UINT32_MAX); /* They end by KILL alone. */
    start("30s", "10s");
    int64_t begin_ns = virtual_now_ns();
    logind_ops->prepare(logind_ctx, true);
    int64_t took_ms = await_release(begin_ns);
    assert_in_range(took_ms, 29000, 31500);
    pods_rig_pass(&t, 2000);
    assert_true(is("slow", "phase", "Failed"));
    assert_true(is("critical", "phase", "Failed"));
}

static void a_runtime_that_hangs_does_not_hold_up_the_host(void **state)
{
    create("plain", 5, "");
    await_phase("plain", "Running");
    fake_cri_stall(t.cri, NULL);
    start("12s", "2s");
    int64_t begin_ns = virtual_now_ns();
    logind_ops->prepare(logind_ctx, true);
    assert_in_range(await_release(begin_ns), 11900, 13000);
    fake_cri_go_on(t.cri);
}

static void a_cancelled_shutdown_lets_the_rest_live(void **state)
{
    create("plain", 5, "");
    create("critical", 5, "system-node-critical");
    await_phase("plain", "Running");
    await_phase("critical", "Running");
    fake_cri_set_stop_ms(t.cri, 3000);
    start("60s", "10s");
    logind_ops->prepare(logind_ctx, true);
    pods_rig_pass(&t, 1000);
    logind_ops->prepare(logind_ctx, false);
    assert_false(shutdown_is_under_way(shutdown));
    assert_int_equal(n_changed, 2);
    await_phase("plain", "Failed"); /* Its end had begun. */
    pods_rig_pass(&t, 90000);
    assert_true(is("critical", "phase", "Running"));
    assert_int_equal(released_ns, 0);
    /* A repeated word changes nothing, and the next shutdown is one. */
    logind_ops->prepare(logind_ctx, false);
    assert_int_equal(n_changed, 2);
    logind_ops->prepare(logind_ctx, true);
    await_phase("critical", "Failed");
    await_release(virtual_now_ns());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_time_there_is_nothing_to_do, set_up, tear_down),
        cmocka_unit_test_setup_teardown(critical_pods_end_last_and_all_say_why, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_pod_has_no_longer_than_its_part, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_runtime_that_hangs_does_not_hold_up_the_host, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_cancelled_shutdown_lets_the_rest_live, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
