/* SPDX-License-Identifier: Apache-2.0 */
/* The kubelet's workers in chosen situations, in virtual time. */
#include "pods_rig.h"

#include "net/loop/process.h"
#include "virtual_time.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#define PODS "/api/v1/namespaces/default/pods"
#define LONG_S 1200
#define STARTS_MAX 64

static struct pods_rig t;
static unsigned n_starts;
static int64_t starts_ns[STARTS_MAX];
static int64_t ends_after_ms[STARTS_MAX]; /* Of the n-th process; 0: it runs on. */
static int32_t exit_code;
static struct loop_timer *end_timer;
static char *last_id;
static bool is_ready;

static void end_last(void *ctx)
{
    fake_cri_exit(t.cri, last_id, exit_code);
}

static void on_started(void *ctx, const struct fake_container *c)
{
    assert_true(n_starts < STARTS_MAX);
    free(last_id);
    last_id = xstrdup(c->id);
    starts_ns[n_starts] = virtual_now_ns();
    if (ends_after_ms[n_starts]) {
        loop_timer_arm(end_timer, (uint64_t) ends_after_ms[n_starts]);
    }
    n_starts++;
}

/* Probes say whether the container is ready. */
static struct runtime_exec_result on_exec(void *ctx, const struct fake_container *c,
                                          const struct runtime_texts *cmd)
{
    return (struct runtime_exec_result){.out = "", .err = "", .exit_code = is_ready ? 0 : 1};
}

static const struct fake_cri_ops cri_ops = {.started = on_started, .exec = on_exec};

static int set_up(void **state)
{
    pods_rig_open(&t);
    pods_rig_start_runtime(&t);
    fake_cri_set_ops(t.cri, &cri_ops, NULL);
    fake_cri_add_image(t.cri, "docker.io/library/i:1");
    pods_rig_start_kubelet(&t);
    end_timer = loop_timer_new(t.h->loop, end_last, NULL);
    n_starts = 0;
    memset(ends_after_ms, 0, sizeof ends_after_ms);
    exit_code = 1;
    is_ready = true;
    return 0;
}

static int tear_down(void **state)
{
    loop_timer_free(end_timer);
    pods_rig_stop_kubelet(&t);
    pods_rig_stop_runtime(&t);
    pods_rig_close(&t);
    free(last_id);
    last_id = NULL;
    return 0;
}

/* ---- what users do and see ---- */

/* 'container': more members of the only container; 'spec': of the specification. */
static void create(const char *name, const char *container, const char *spec)
{
    CLEANUP_FREE char *body =
        xasprintf("{'metadata': {'name': '%s'}, 'spec': {'nodeName': 'n1', "
                  "'terminationGracePeriodSeconds': 5,"
                  "'containers': [{'name': 'c'%s%s}]%s}}",
                  name, strstr(container, "'image'") ? "" : ", 'image': 'i:1'", container, spec);
    put_in(t.h, "POST", PODS, body, 201);
}

static struct answer get(const char *name)
{
    CLEANUP_FREE char *path = xasprintf(PODS "/%s", name);
    return ask(t.h, "GET", path, NULL);
}

static const struct json *status_of(const struct answer *a)
{
    return json_at(json_path(a->body, "status", "containerStatuses", NULL), 0);
}

/* Whether the pod's phase, the reason of its container's waiting, or its readiness is 'what'. */
static bool shows(const char *name, const char *what)
{
    CLEANUP_ANSWER struct answer a = get(name);
    const struct json *c = status_of(&a);
    const char *reason = json_path_string(c, "state", "waiting", "reason", NULL);
    const char *phase = json_path_string(a.body, "status", "phase", NULL);
    bool ready = json_get_bool(json_get(c, "ready"), false);
    return a.status == 404 ? streq(what, "gone")
                           : streq_null(reason, what) || streq_null(phase, what) ||
                                 (ready && streq(what, "ready"));
}

/* Waits until it shows 'what', and returns how long that took, in milliseconds. */
static int64_t await(const char *name, const char *what)
{
    int64_t begin_ns = virtual_now_ns();
    while (!shows(name, what)) {
        if (virtual_now_ns() - begin_ns > LONG_S * NS_PER_S) {
            CLEANUP_ANSWER struct answer a = get(name);
            fail_msg("%s is not %s: %s", name, what, a.text);
        }
        pods_rig_pass(&t, 100);
    }
    return (virtual_now_ns() - begin_ns) / NS_PER_MS;
}

static void remove_pod(const char *name)
{
    CLEANUP_FREE char *path = xasprintf(PODS "/%s", name);
    CLEANUP_ANSWER struct answer a = ask(t.h, "DELETE", path, NULL);
    assert_true(a.status == 200 || a.status == 202);
}

static void end_all(const char *name)
{
    remove_pod(name);
    await(name, "gone");
    for (unsigned i = 0; i < 1000 && pods_rig_left(&t); i++) {
        pods_rig_pass(&t, 100);
    }
    assert_null(pods_rig_left(&t));
}

static void restart_kubelet(void)
{
    pods_rig_stop_kubelet(&t);
    pods_rig_start_kubelet(&t);
}

static int64_t restart_count(const char *name)
{
    CLEANUP_ANSWER struct answer a = get(name);
    return json_get_int_or(json_get(status_of(&a), "restartCount"), -1);
}

/* ---- tests ---- */

/* Acceptance 73: whatever the kubelet was about when it was killed. */
static void a_kubelet_restarted_in_any_call_goes_on(void **state)
{
    static const char *const methods[] = {"RunPodSandbox",    "PodSandboxStatus", "CreateContainer",
                                          "StartContainer",   "ContainerStatus",  "ListContainers",
                                          "StopContainer",    "StopPodSandbox",   "RemoveContainer",
                                          "RemovePodSandbox", "PullImage",        "ImageStatus"};
    for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
        unsigned before = n_starts;
        fake_cri_stall(t.cri, methods[i]);
        create("p", ", 'imagePullPolicy': 'Always'", "");
        pods_rig_pass(&t, 3000);
        restart_kubelet();
        fake_cri_go_on(t.cri);
        await("p", "ready");
        assert_int_equal(n_starts, before + 1);
        assert_int_equal(restart_count("p"), 0);
        fake_cri_stall(t.cri, methods[i]);
        remove_pod("p");
        pods_rig_pass(&t, 3000);
        restart_kubelet();
        fake_cri_go_on(t.cri);
        await("p", "gone");
        pods_rig_pass(&t, 20000);
        assert_null(pods_rig_left(&t));
        assert_int_equal(n_starts, before + 1);
    }
}

/* Acceptance 6 and 7. */
static void the_back_off_grows_and_outlives_the_kubelet(void **state)
{
    static const int64_t want_s[] = {0, 10, 20, 40, 80, 160, 300, 300, 0, 10, 20};
    for (size_t i = 0; i < ARRAY_SIZE(want_s); i++) {
        ends_after_ms[i] = i == 8 ? 601000 : 500; /* It runs for longer than 10 minutes. */
    }
    create("p", "", "");
    for (size_t i = 0; i < ARRAY_SIZE(want_s); i++) {
        int64_t begin_ns = virtual_now_ns();
        while (n_starts < i + 2 && virtual_now_ns() - begin_ns < LONG_S * NS_PER_S) {
            pods_rig_pass(&t, 1000);
            if (i % 2) {
                restart_kubelet();
            }
        }
        assert_true(n_starts == i + 2);
        int64_t pause_ms = (starts_ns[i + 1] - starts_ns[i]) / NS_PER_MS - ends_after_ms[i];
        assert_in_range(pause_ms, want_s[i] * 1000, want_s[i] * 1000 + 3000);
        if (want_s[i] > 100) {
            assert_int_equal(restart_count("p"), i + 1);
        }
    }
    pods_rig_pass(&t, 3000);
    assert_int_equal(restart_count("p"), ARRAY_SIZE(want_s));
    end_all("p");
}

/* Acceptance 46. */
static void a_ready_pod_stays_ready_when_the_kubelet_is_restarted(void **state)
{
    create("p",
           ", 'readinessProbe': {'exec': {'command': ['x']}, 'periodSeconds': 10, "
           "'initialDelaySeconds': 20}",
           "");
    await("p", "Running");
    pods_rig_pass(&t, 5000);
    assert_false(shows("p", "ready"));
    await("p", "ready");
    struct watcher *w = watcher_new(t.h, PODS "?watch=true&resourceVersion=0", NULL);
    for (unsigned i = 0; i < 3; i++) {
        restart_kubelet();
        pods_rig_pass(&t, 7000);
        assert_true(shows("p", "ready"));
    }
    const struct json *e;
    JSON_FOREACH (e, w->events) {
        const struct json *c =
            json_at(json_path(e, "object", "status", "containerStatuses", NULL), 0);
        assert_true(json_get_bool(json_get(c, "ready"), false));
    }
    watcher_free(w);
    is_ready = false;
    while (shows("p", "ready")) {
        pods_rig_pass(&t, 1000);
    }
    assert_int_equal(n_starts, 1);
    end_all("p");
}

/* Acceptance 47. */
static void a_hook_that_hangs_is_cut_by_the_grace(void **state)
{
    create("p", ", 'lifecycle': {'preStop': {'exec': {'command': ['x']}}}", "");
    await("p", "ready");
    fake_cri_stall(t.cri, "ExecSync");
    fake_cri_set_stop_ms(t.cri, UINT32_MAX); /* TERM is not heard. */
    int64_t begin_ns = virtual_now_ns();
    remove_pod("p");
    pods_rig_pass(&t, 4000);
    assert_int_equal(fake_cri_calls(t.cri, "StopContainer"), 0);
    await("p", "gone");
    /* 5 s of grace, 1 s for the runtime's answer, and the 2 s that are left in any case. */
    assert_in_range((virtual_now_ns() - begin_ns) / NS_PER_MS, 6900, 9500);
    fake_cri_go_on(t.cri);
}

/* Acceptance 83: pods go on, and their status catches up. */
static void a_pod_goes_on_while_the_api_server_is_away(void **state)
{
    ends_after_ms[0] = 20000;
    ends_after_ms[1] = 5000;
    exit_code = 7;
    create("p", "", "");
    await("p", "ready");
    harness_stop_listening(t.h);
    pods_rig_pass(&t, 300000);
    assert_int_equal(n_starts, 3);
    harness_listen_again(t.h);
    assert_true(await("p", "ready") < 60000);
    for (unsigned i = 0; i < 600 && restart_count("p") != 2; i++) {
        pods_rig_pass(&t, 100);
    }
    CLEANUP_ANSWER struct answer a = get("p");
    const struct json *c = status_of(&a);
    assert_int_equal(json_get_int_or(json_get(c, "restartCount"), -1), 2);
    assert_int_equal(json_get_int_or(json_path(c, "lastState", "terminated", "exitCode", NULL), -1),
                     7);
    assert_true(str_has_suffix(json_get_text(c, "containerID"), last_id));
    assert_int_equal(n_starts, 3);
    end_all("p");
}

/* The API server is back before the informer tries again: in some of the turns, by the random length
 * of its pauses. */
static void a_pod_that_is_gone_is_not_written_again_and_again(void **state)
{
    uint64_t writes = 0;
    for (size_t i = 0; i < STARTS_MAX; i++) {
        ends_after_ms[i] = 20000;
    }
    for (uint64_t turn = 0; turn < 12 || (!writes && turn < 100); turn++) {
        n_starts = 0;
        create("p", "", "");
        await("p", "ready");
        harness_stop_listening(t.h);
        pods_rig_pass(&t, 60000 + turn % 12 * 1900);
        uint64_t before = t.workers->stats.status_writes;
        harness_listen_again(t.h);
        CLEANUP_ANSWER
        struct answer a = ask(t.h, "DELETE", PODS "/p?gracePeriodSeconds=0", NULL);
        assert_int_equal(a.status, 200);
        for (unsigned i = 0; i < 1000 && pods_rig_left(&t); i++) {
            pods_rig_pass(&t, 100);
        }
        assert_null(pods_rig_left(&t));
        writes += t.workers->stats.status_writes - before;
    }
    assert_in_range(writes, 1, 50);
}

/* Acceptance 74. */
static void a_runtime_that_comes_late_gets_its_pods(void **state)
{
    pods_rig_stop_kubelet(&t);
    fake_cri_stop(t.cri);
    create("p", "", "");
    pods_rig_start_kubelet(&t);
    pods_rig_pass(&t, 60000);
    assert_int_equal(n_starts, 0);
    fake_cri_start(t.cri);
    assert_true(await("p", "ready") < 20000);
    assert_int_equal(n_starts, 1);
    end_all("p");
}

/* Acceptance 52: what was missing is used as soon as it is there. */
static void a_container_starts_when_what_it_refers_to_is_there(void **state)
{
    create("p",
           ", 'env': [{'name': 'A', 'valueFrom': {'configMapKeyRef': {'name': 'm', 'key': 'k'}}}, "
           "{'name': 'B', 'valueFrom': {'secretKeyRef': {'name': 's', 'key': 'k'}}}]",
           "");
    await("p", "CreateContainerConfigError");
    pods_rig_pass(&t, 11500); /* In the middle of the pause before the next try. */
    put_in(t.h, "POST", "/api/v1/namespaces/default/configmaps",
           "{'metadata': {'name': 'm'}, 'data': {'k': 'v'}}", 201);
    pods_rig_pass(&t, 500);
    CLEANUP_ANSWER struct answer a = get("p");
    const char *message = json_path_string(status_of(&a), "state", "waiting", "message", NULL);
    assert_non_null(message);
    assert_non_null(strstr(message, "\"s\""));
    put_in(t.h, "POST", "/api/v1/namespaces/default/secrets",
           "{'metadata': {'name': 's'}, 'data': {'k': 'dg=='}}", 201);
    assert_true(await("p", "ready") < 1000);
    end_all("p");
}

/* Acceptance 79. */
static void a_refused_pull_is_told_and_repeated_with_a_new_secret(void **state)
{
    fake_cri_fail(t.cri, "PullImage", GRPC_UNKNOWN, "401 the registry says no", 1000);
    create("p", ", 'imagePullPolicy': 'Always'", ", 'imagePullSecrets': [{'name': 's'}]");
    await("p", "ImagePullBackOff");
    CLEANUP_ANSWER struct answer a = get("p");
    const char *message = json_path_string(status_of(&a), "state", "waiting", "message", NULL);
    assert_non_null(strstr(message, "401 the registry says no"));
    assert_non_null(strstr(message, "Back-off pulling image \"i:1\""));
    unsigned calls = fake_cri_calls(t.cri, "PullImage");
    pods_rig_pass(&t, 200000);
    /* After 10, 20, 40, 80 s. */
    assert_in_range(fake_cri_calls(t.cri, "PullImage"), calls + 3, calls + 5);
    fake_cri_forget_faults(t.cri);
    put_in(t.h, "POST", "/api/v1/namespaces/default/secrets",
           "{'metadata': {'name': 's'}, 'type': 'kubernetes.io/dockerconfigjson', 'data': "
           "{'.dockerconfigjson': 'eyJhdXRocyI6eyJkb2NrZXIuaW8iOnsiYXV0aCI6ImRUcHcifX19'}}",
           201);
    assert_true(await("p", "ready") < 1000);
    end_all("p");
}

static void pulls_beside_each_other_are_bounded(void **state)
{
    fake_cri_stall(t.cri, "PullImage");
    for (unsigned i = 0; i < 6; i++) {
        CLEANUP_FREE char *body = xasprintf(
            "{'metadata': {'name': 'p%u'}, 'spec': {'nodeName': 'n1', 'containers': [{'name': 'c', "
            "'image': 'new:%u'}, {'name': 'd', 'image': 'new:%u'}]}}",
            i, i / 2, i / 2);
        put_in(t.h, "POST", PODS, body, 201);
    }
    pods_rig_pass(&t, 10000);
    assert_int_equal(fake_cri_hanging(t.cri), 2); /* .parallel_pulls of the rig */
    /* One that waits for its turn gives up, and another one wants the same. */
    create("q", ", 'image': 'other:1'", "");
    pods_rig_pass(&t, 1000);
    remove_pod("q");
    await("q", "gone");
    create("r", ", 'image': 'other:1'", "");
    pods_rig_pass(&t, 1000);
    fake_cri_go_on(t.cri);
    for (unsigned i = 0; i < 6; i++) {
        CLEANUP_FREE char *name = xasprintf("p%u", i);
        await(name, "ready");
    }
    await("r", "ready");
    /* Four containers of two pods share one pull. */
    assert_int_equal(fake_cri_calls(t.cri, "PullImage"), 4);
}

/* Users choose the names: what was asked for once is not kept for ever. */
static void failures_of_pulls_are_forgotten(void **state)
{
    struct images_stats s;
    fake_cri_fail(t.cri, "PullImage", GRPC_UNKNOWN, "no", 1000);
    for (unsigned i = 0; i < 20; i++) {
        CLEANUP_FREE char *name = xasprintf("p%u", i), *image = xasprintf(", 'image': 'no:%u'", i);
        create(name, image, "");
        await(name, "ErrImagePull");
        remove_pod(name);
        await(name, "gone");
    }
    images_get_stats(t.workers->images, &s);
    assert_int_equal(s.kept, 20);
    pods_rig_pass(&t, 1000 * 1000);
    create("q", ", 'image': 'no:q'", "");
    await("q", "ErrImagePull");
    images_get_stats(t.workers->images, &s);
    assert_int_equal(s.kept, 1);
}

static bool is_there(const char *name)
{
    CLEANUP_FREE char *path = xasprintf("%s/%s", t.logs, name);
    return access(path, F_OK) == 0;
}

/* CRI-O's conmon writes the log into a folder that is there, and makes none. */
static void a_container_has_a_folder_for_its_log(void **state)
{
    create("p", "", "");
    await("p", "ready");
    CLEANUP_ANSWER struct answer a = get("p");
    CLEANUP_FREE char *folder = xasprintf("default_p_%s/c", pod_uid(a.body));
    assert_true(is_there(folder));
}

/* An agent that was killed at the end of a pod left them. */
static void logs_of_pods_that_are_gone_are_removed(void **state)
{
    static const char *const names[] = {"default_gone_00-00/c", "a_b/c", "a_b_c_d/c", "other"};
    create("p", "", "");
    await("p", "ready");
    CLEANUP_ANSWER struct answer a = get("p");
    CLEANUP_FREE char *own = xasprintf("default_p_%s", pod_uid(a.body));
    CLEANUP_FREE char *own_path = xasprintf("%s/%s", t.logs, own);
    assert_int_equal(dir_make(own_path, 0755, NULL), 0);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        CLEANUP_FREE char *path = xasprintf("%s/%s", t.logs, names[i]);
        assert_int_equal(dir_make(path, 0755, NULL), 0);
    }
    restart_kubelet();
    for (unsigned i = 0; i < 100 && is_there("default_gone_00-00"); i++) {
        pods_rig_pass(&t, 100);
    }
    assert_false(is_there("default_gone_00-00"));
    for (size_t i = 1; i < ARRAY_SIZE(names); i++) {
        assert_true(is_there(names[i]));
    }
    assert_true(is_there(own));
    pods_rig_pass(&t, 130000);
    assert_true(is_there(own));
    remove_pod("p");
    await("p", "gone");
    assert_false(is_there(own));
}

/* The kubelet is killed while the runtime removes the last record of a pod that the API does not
 * have any more: only the pod's directory is left, by which the next kubelet finds it. */
static void the_directory_of_a_pod_without_any_record_is_removed(void **state)
{
    create("p", "", "");
    await("p", "ready");
    fake_cri_stall(t.cri, "RemovePodSandbox");
    CLEANUP_ANSWER struct answer a = ask(t.h, "DELETE", PODS "/p?gracePeriodSeconds=0", NULL);
    assert_int_equal(a.status, 200);
    await("p", "gone");
    pods_rig_pass(&t, 10000);
    pods_rig_stop_kubelet(&t);
    assert_non_null(fake_cri_sandbox_at(t.cri, 0));
    fake_cri_go_on(t.cri);
    pods_rig_pass(&t, 1000);
    assert_null(fake_cri_sandbox_at(t.cri, 0));
    pods_rig_start_kubelet(&t);
    pods_rig_pass(&t, 150000);
    assert_null(pods_rig_left(&t));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_kubelet_restarted_in_any_call_goes_on),
        TEST(the_back_off_grows_and_outlives_the_kubelet),
        TEST(a_ready_pod_stays_ready_when_the_kubelet_is_restarted),
        TEST(a_hook_that_hangs_is_cut_by_the_grace),
        TEST(a_pod_goes_on_while_the_api_server_is_away),
        TEST(a_pod_that_is_gone_is_not_written_again_and_again),
        TEST(a_runtime_that_comes_late_gets_its_pods),
        TEST(a_container_starts_when_what_it_refers_to_is_there),
        TEST(a_refused_pull_is_told_and_repeated_with_a_new_secret),
        TEST(pulls_beside_each_other_are_bounded),
        TEST(failures_of_pulls_are_forgotten),
        TEST(a_container_has_a_folder_for_its_log),
        TEST(logs_of_pods_that_are_gone_are_removed),
        TEST(the_directory_of_a_pod_without_any_record_is_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
