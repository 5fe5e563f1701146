/* SPDX-License-Identifier: Apache-2.0 */
/* The back-end "cri" against the fake runtime of tests/support: results, errors, events of each
 * kind, and a runtime that hangs, loses events and restarts. */
#include "base/mem.h"
#include "base/str.h"
#include "fake_cri.h"
#include "runtime/runtime.h"

#include <setjmp.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_MS 20000

struct fixture {
    struct loop *loop;
    char folder[64];
    struct fake_cri *fake;
    struct runtime *runtime;
    /* The last result. */
    bool ended;
    int error;
    char text[5000], id[80];
    struct runtime_container container;
    bool ready;
    char ip[32];
    size_t n;
    unsigned ends;
    /* Events. */
    unsigned resyncs, lost, back;
    char changed_sandbox[80], changed_container[80];
    bool resynced, changed, is_lost, is_back;
    char lost_reason[300];
    const char *waits_for; /* Only the change of this id sets 'changed'. */
};

static void on_changed(void *ctx, const char *sandbox_id, const char *container_id)
{
    struct fixture *f = ctx;
    snprintf(f->changed_sandbox, sizeof f->changed_sandbox, "%s", sandbox_id ? sandbox_id : "");
    snprintf(f->changed_container, sizeof f->changed_container, "%s",
             container_id ? container_id : "");
    f->changed = !f->waits_for || streq_null(sandbox_id, f->waits_for) ||
                 streq_null(container_id, f->waits_for);
}

static void on_resync(void *ctx)
{
    struct fixture *f = ctx;
    f->resyncs++;
    f->resynced = true;
}

static void on_connection(void *ctx, const char *lost_reason)
{
    struct fixture *f = ctx;
    f->lost += lost_reason != NULL;
    f->back += lost_reason == NULL;
    f->is_lost |= lost_reason != NULL;
    f->is_back |= lost_reason == NULL;
    if (lost_reason) {
        snprintf(f->lost_reason, sizeof f->lost_reason, "%s", lost_reason);
    }
}

static const struct runtime_events events = {on_changed, on_resync, on_connection};

static void on_done(void *ctx, int error, const char *text)
{
    struct fixture *f = ctx;
    f->ended = true;
    f->ends++;
    f->error = error;
    snprintf(f->text, sizeof f->text, "%s", text ? text : "");
}

static void on_id(void *ctx, int error, const char *text, const char *id)
{
    struct fixture *f = ctx;
    snprintf(f->id, sizeof f->id, "%s", id ? id : "");
    on_done(ctx, error, text);
}

static void on_sandboxes(void *ctx, int error, const char *text, const struct runtime_sandbox *s,
                         size_t n)
{
    struct fixture *f = ctx;
    f->n = n;
    if (n) {
        f->ready = s->ready;
        snprintf(f->ip, sizeof f->ip, "%s", s->ip ? s->ip : "");
        snprintf(f->id, sizeof f->id, "%s", s->id);
    }
    on_done(ctx, error, text);
}

static void on_containers(void *ctx, int error, const char *text, const struct runtime_container *c,
                          size_t n)
{
    struct fixture *f = ctx;
    f->n = n;
    if (n) {
        f->container = *c; /* Its numbers; its texts are gone. */
        snprintf(f->id, sizeof f->id, "%s", c->reason);
    }
    on_done(ctx, error, text);
}

static void on_exec(void *ctx, int error, const char *text, const struct runtime_exec_result *r)
{
    struct fixture *f = ctx;
    if (r) {
        snprintf(f->id, sizeof f->id, "%.*s", (int) r->out_size, r->out);
        f->n = (size_t) r->exit_code;
    }
    on_done(ctx, error, text);
}

static void on_images(void *ctx, int error, const char *text, const struct runtime_image *i,
                      size_t n)
{
    struct fixture *f = ctx;
    f->n = n;
    on_done(ctx, error, text);
}

static void on_status(void *ctx, int error, const char *text, const struct runtime_status *s)
{
    struct fixture *f = ctx;
    if (s) {
        snprintf(f->id, sizeof f->id, "%s", s->network_message ? s->network_message : "ready");
    }
    on_done(ctx, error, text);
}

static void wait_for(struct fixture *f, bool *flag)
{
    assert_int_equal(loop_run_until(f->loop, flag, WAIT_MS), 0);
    *flag = false;
}

static int setup(void **state)
{
    struct fixture *f = NEW(struct fixture);
    f->loop = loop_new();
    snprintf(f->folder, sizeof f->folder, "/tmp/tenet-cri-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    CLEANUP_FREE char *path = xasprintf("%s/s", f->folder);
    f->fake = fake_cri_new(f->loop, path);
    fake_cri_add_image(f->fake, "img");
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    runtime_free(f->runtime);
    fake_cri_free(f->fake);
    loop_free(f->loop);
    rmdir(f->folder);
    free(f);
    return 0;
}

static void open_runtime(struct fixture *f)
{
    struct err e;
    assert_int_equal(
        runtime_open(f->loop, "cri", fake_cri_endpoint(f->fake), &events, f, &f->runtime, &e), 0);
    wait_for(f, &f->resynced);
}

static const struct runtime_pair uid_label = {"io.kubernetes.pod.uid", "u1"};
static const struct runtime_sandbox_spec sandbox = {
    .name = "web", .uid = "u1", .namespace = "red", .labels = {&uid_label, 1}};
static const struct runtime_container_spec container = {
    .name = "c", .image = "img", .labels = {&uid_label, 1}};

/* Ids of a sandbox and its running container. */
static void run_one(struct fixture *f, char sandbox_id[80], char container_id[80])
{
    runtime_run_sandbox(f->runtime, &sandbox, "", on_id, f);
    wait_for(f, &f->ended);
    assert_int_equal(f->error, 0);
    memcpy(sandbox_id, f->id, sizeof f->id);
    runtime_create_container(f->runtime, sandbox_id, &container, &sandbox, on_id, f);
    wait_for(f, &f->ended);
    assert_int_equal(f->error, 0);
    memcpy(container_id, f->id, sizeof f->id);
    runtime_start_container(f->runtime, container_id, on_done, f);
    wait_for(f, &f->ended);
    assert_int_equal(f->error, 0);
}

static enum runtime_state state_of(struct fixture *f, const char *container_id)
{
    runtime_get_container(f->runtime, container_id, on_containers, f);
    wait_for(f, &f->ended);
    assert_int_equal(f->error, 0);
    return f->container.state;
}

static void test_a_pod(void **state)
{
    struct fixture *f = *state;
    char s[80], c[80];
    open_runtime(f);
    assert_int_equal(f->back, 1);
    run_one(f, s, c);
    assert_string_equal(fake_cri_container(f->fake, "u1", "c")->id, c);
    assert_string_equal(fake_cri_sandbox(f->fake, "u1")->id, s);
    runtime_get_sandbox(f->runtime, s, on_sandboxes, f);
    wait_for(f, &f->ended);
    assert_true(f->ready);
    assert_memory_equal(f->ip, "10.77.", 6);
    assert_int_equal(state_of(f, c), RUNTIME_RUNNING);
    runtime_list_containers(f->runtime, "u1", on_containers, f);
    wait_for(f, &f->ended);
    assert_int_equal(f->n, 1);
    runtime_list_containers(f->runtime, "u2", on_containers, f);
    wait_for(f, &f->ended);
    assert_int_equal(f->n, 0);
    runtime_stop_container(f->runtime, c, 5, on_done, f);
    wait_for(f, &f->ended);
    assert_int_equal(state_of(f, c), RUNTIME_EXITED);
    assert_int_equal(f->container.exit_code, 143);
    runtime_stop_sandbox(f->runtime, s, on_done, f);
    wait_for(f, &f->ended);
    runtime_remove_sandbox(f->runtime, s, on_done, f);
    wait_for(f, &f->ended);
    assert_null(fake_cri_sandbox_at(f->fake, 0));
    assert_null(fake_cri_container_at(f->fake, 0));
    runtime_get_sandbox(f->runtime, s, on_sandboxes, f);
    wait_for(f, &f->ended);
    assert_int_equal(f->error, -ENOENT);
}

static struct runtime_exec_result say_command(void *ctx, const struct fake_container *c,
                                              const struct runtime_texts *cmd)
{
    return (struct runtime_exec_result){cmd->v[0], "", strlen(cmd->v[0]), 0, 4};
}

static struct runtime_exec_result exceed_time(void *ctx, const struct fake_container *c,
                                              const struct runtime_texts *cmd)
{
    static const char text[] = "command timed out";
    return (struct runtime_exec_result){"", text, 0, sizeof text - 1, -1};
}

/* Runs the command "/bin/x" in a container, and waits for its end. */
static void exec_in_one(struct fixture *f, const struct fake_cri_ops *ops)
{
    static const char *const cmd[] = {"/bin/x"};
    char s[80], c[80];
    fake_cri_set_ops(f->fake, ops, NULL);
    open_runtime(f);
    run_one(f, s, c);
    runtime_exec_sync(f->runtime, c, cmd, 1, 1, on_exec, f);
    wait_for(f, &f->ended);
}

/* CRI-O answers with the code -1. */
static void test_a_command_that_exceeds_its_time(void **state)
{
    static const struct fake_cri_ops ops = {.exec = exceed_time};
    struct fixture *f = *state;
    exec_in_one(f, &ops);
    assert_int_equal(f->error, -ETIMEDOUT);
}

static void test_commands_images_and_status(void **state)
{
    static const struct fake_cri_ops ops = {.exec = say_command};
    struct fixture *f = *state;
    exec_in_one(f, &ops);
    assert_string_equal(f->id, "/bin/x");
    assert_int_equal(f->n, 4);
    runtime_get_image(f->runtime, "absent", on_images, f);
    wait_for(f, &f->ended);
    assert_int_equal(f->error, -ENOENT);
    runtime_pull_image(f->runtime, "absent", &(struct runtime_auth){.username = "u"}, &sandbox,
                       on_id, f);
    wait_for(f, &f->ended);
    assert_memory_equal(f->id, "sha256:", 7);
    runtime_list_images(f->runtime, on_images, f);
    wait_for(f, &f->ended);
    assert_int_equal(f->n, 2);
    fake_cri_set_network_message(f->fake, "no configuration of CNI");
    runtime_status(f->runtime, on_status, f);
    wait_for(f, &f->ended);
    assert_string_equal(f->id, "no configuration of CNI");
}

static void test_errors(void **state)
{
    static const struct {
        enum grpc_status status;
        int error;
    } rows[] = {{GRPC_NOT_FOUND, -ENOENT},
                {GRPC_UNAVAILABLE, -EAGAIN},
                {GRPC_CANCELLED, -EAGAIN},
                {GRPC_DEADLINE_EXCEEDED, -ETIMEDOUT},
                {GRPC_UNIMPLEMENTED, -EOPNOTSUPP},
                {GRPC_INVALID_ARGUMENT, -EINVAL},
                {GRPC_UNKNOWN, -EIO},
                {GRPC_RESOURCE_EXHAUSTED, -EIO}};
    struct fixture *f = *state;
    open_runtime(f);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        fake_cri_fail(f->fake, "RunPodSandbox", rows[i].status, "why not", 1);
        runtime_run_sandbox(f->runtime, &sandbox, "", on_id, f);
        wait_for(f, &f->ended);
        assert_int_equal(f->error, rows[i].error);
        assert_string_equal(f->text, "why not");
    }
    assert_null(fake_cri_sandbox_at(f->fake, 0));
    /* Long texts come whole. */
    CLEANUP_FREE char *text = xcalloc(1, 3001);
    memset(text, 'x', 3000);
    fake_cri_fail(f->fake, NULL, GRPC_UNKNOWN, text, 1);
    runtime_run_sandbox(f->runtime, &sandbox, "", on_id, f);
    wait_for(f, &f->ended);
    assert_string_equal(f->text, text);
    /* Done, and failed nevertheless. */
    fake_cri_fail_after(f->fake, "RunPodSandbox", GRPC_UNAVAILABLE, "transport is closing", 1);
    runtime_run_sandbox(f->runtime, &sandbox, "", on_id, f);
    wait_for(f, &f->ended);
    assert_int_equal(f->error, -EAGAIN);
    assert_non_null(fake_cri_sandbox(f->fake, "u1"));
    runtime_run_sandbox(f->runtime, &sandbox, "", on_id, f);
    wait_for(f, &f->ended);
    assert_int_equal(f->error, -EIO);
    assert_non_null(strstr(f->text, "reserved"));
}

/* An exit is told, once answers show it. */
static void tell_exit(struct fixture *f)
{
    char s[80], c[80];
    open_runtime(f);
    wait_for(f, &f->resynced); /* The events are sure. */
    run_one(f, s, c);
    f->waits_for = c;
    f->changed = false;
    while (f->changed_container[0]) {
        f->changed_container[0] = '\0';
        loop_run_until(f->loop, &f->changed, 300); /* Those of the start. */
    }
    f->changed = false;
    fake_cri_exit(f->fake, c, 3);
    wait_for(f, &f->changed);
    assert_string_equal(f->changed_container, c);
    assert_int_equal(state_of(f, c), RUNTIME_EXITED);
    assert_int_equal(f->container.exit_code, 3);
}

static void test_exits_by_events_of_containerd(void **state)
{
    struct fixture *f = *state;
    fake_cri_set_exit_lag_ms(f->fake, 2000);
    tell_exit(f);
    /* The runtime's own status does not show it yet; lists do, as the first answer did. */
    const struct fake_container *c = fake_cri_container_at(f->fake, 0);
    assert_int_equal(c->state, RUNTIME_RUNNING);
    assert_string_equal(f->id, "Error");
    int64_t finished_ns = f->container.finished_ns;
    assert_true(finished_ns > 0);
    runtime_list_containers(f->runtime, "u1", on_containers, f);
    wait_for(f, &f->ended);
    assert_int_equal(f->container.state, RUNTIME_EXITED);
    assert_int_equal(c->state, RUNTIME_RUNNING);
    /* When it does, nothing has changed. */
    f->changed = false;
    for (unsigned i = 0; i < 100 && c->state == RUNTIME_RUNNING; i++) {
        loop_run_until(f->loop, &f->changed, 100);
    }
    loop_run_until(f->loop, &f->changed, 600); /* Longer than between two looks. */
    assert_false(f->changed);
    assert_int_equal(state_of(f, c->id), RUNTIME_EXITED);
    assert_int_equal(f->container.exit_code, 3);
    assert_true(f->container.finished_ns == finished_ns);
    /* Asked once, while the connection lives. */
    assert_int_equal(fake_cri_calls(f->fake, "GetContainerEvents"), 1);
    assert_int_equal(fake_cri_calls(f->fake, "Subscribe"), 1);
}

static void test_a_removal_waits_until_the_end_is_noted(void **state)
{
    struct fixture *f = *state;
    fake_cri_set_exit_lag_ms(f->fake, 1000);
    tell_exit(f);
    const struct fake_container *c = fake_cri_container_at(f->fake, 0);
    assert_true(c->ending); /* The runtime would refuse. */
    runtime_cancel(runtime_remove_container(f->runtime, c->id, on_done, f));
    runtime_remove_container(f->runtime, c->id, on_done, f);
    wait_for(f, &f->ended);
    assert_int_equal(f->error, 0);
    assert_null(fake_cri_container_at(f->fake, 0));
    assert_int_equal(fake_cri_calls(f->fake, "RemoveContainer"), 1);
}

static void test_a_removal_that_waits_ends_with_the_connection(void **state)
{
    struct fixture *f = *state;
    fake_cri_set_exit_lag_ms(f->fake, 4000);
    tell_exit(f);
    runtime_remove_container(f->runtime, fake_cri_container_at(f->fake, 0)->id, on_done, f);
    fake_cri_stop(f->fake);
    wait_for(f, &f->ended);
    assert_int_equal(f->error, -EAGAIN);
}

static void test_exits_by_events_of_cri(void **state)
{
    struct fixture *f = *state;
    fake_cri_set_events(f->fake, FAKE_CRI_EVENTS_CRI);
    tell_exit(f);
    assert_int_equal(fake_cri_calls(f->fake, "Subscribe"), 0);
}

static void test_a_runtime_without_events(void **state)
{
    struct fixture *f = *state;
    fake_cri_set_events(f->fake, FAKE_CRI_EVENTS_NONE);
    open_runtime(f);
    for (unsigned i = 0; i < 3; i++) {
        wait_for(f, &f->resynced);
    }
    assert_false(f->is_lost);
}

static void test_an_oom_kill(void **state)
{
    struct fixture *f = *state;
    char s[80], c[80];
    open_runtime(f);
    wait_for(f, &f->resynced);
    run_one(f, s, c);
    f->waits_for = c;
    f->changed = false;
    fake_cri_oom(f->fake, c);
    do {
        wait_for(f, &f->changed);
    } while (state_of(f, c) != RUNTIME_EXITED);
    assert_string_equal(f->id, "OOMKilled");
    runtime_list_containers(f->runtime, "u1", on_containers, f); /* A list has no reasons. */
    wait_for(f, &f->ended);
    assert_int_equal(f->container.state, RUNTIME_EXITED);
}

static void test_a_sandbox_that_dies(void **state)
{
    struct fixture *f = *state;
    char s[80], c[80];
    open_runtime(f);
    wait_for(f, &f->resynced);
    run_one(f, s, c);
    do {
        f->waits_for = s;
        f->changed = false;
        if (fake_cri_sandbox(f->fake, "u1")->ready) {
            fake_cri_kill_sandbox(f->fake, s);
        }
        wait_for(f, &f->changed);
    } while (f->changed_container[0]); /* The events of its start name it in both. */
    assert_string_equal(f->changed_sandbox, s);
    runtime_get_sandbox(f->runtime, s, on_sandboxes, f);
    wait_for(f, &f->ended);
    assert_false(f->ready);
}

static void test_a_restart(void **state)
{
    struct fixture *f = *state;
    char s[80], c[80];
    open_runtime(f);
    run_one(f, s, c);
    fake_cri_stall(f->fake, "ExecSync");
    static const char *const cmd[] = {"x"};
    runtime_exec_sync(f->runtime, c, cmd, 1, 0, on_exec, f);
    f->resynced = false;
    while (!fake_cri_hanging(f->fake)) {
        bool never = false;
        loop_run_until(f->loop, &never, 10);
    }
    f->is_lost = f->is_back = false;
    fake_cri_stop(f->fake);
    wait_for(f, &f->ended);
    assert_int_equal(f->error, -EAGAIN);
    assert_true(f->is_lost);
    runtime_list_containers(f->runtime, NULL, on_containers, f);
    assert_false(f->ended);
    wait_for(f, &f->ended);
    assert_int_equal(f->error, -EAGAIN);
    assert_non_null(strstr(f->text, f->folder));
    fake_cri_exit(f->fake, c, 9); /* Nobody hears it. */
    /* It is told once that the runtime is away, whatever the number of attempts. */
    bool never = false;
    loop_run_until(f->loop, &never, 400);
    assert_int_equal(f->lost, 1);
    f->is_back = f->resynced = false;
    fake_cri_start(f->fake);
    wait_for(f, &f->is_back);
    wait_for(f, &f->resynced);
    assert_int_equal(state_of(f, c), RUNTIME_EXITED);
    assert_int_equal(f->container.exit_code, 9);
}

static void test_a_runtime_that_is_not_ready(void **state)
{
    struct fixture *f = *state;
    struct err e;
    fake_cri_fail(f->fake, "Version", GRPC_UNAVAILABLE, "server is not initialized yet", 2);
    assert_int_equal(
        runtime_open(f->loop, "cri", fake_cri_endpoint(f->fake), &events, f, &f->runtime, &e), 0);
    wait_for(f, &f->is_lost);
    assert_non_null(strstr(f->lost_reason, "not initialized"));
    wait_for(f, &f->resynced);
    assert_int_equal(f->lost, 1);
    assert_int_equal(fake_cri_calls(f->fake, "Version"), 3);
}

static void test_a_runtime_of_an_old_version(void **state)
{
    struct fixture *f = *state;
    struct err e;
    fake_cri_fail(f->fake, "Version", GRPC_UNIMPLEMENTED, "unknown service", 1000);
    assert_int_equal(
        runtime_open(f->loop, "cri", fake_cri_endpoint(f->fake), &events, f, &f->runtime, &e), 0);
    wait_for(f, &f->is_lost);
    assert_non_null(strstr(f->lost_reason, "containerd speaks it from 1.6 on"));
}

static void test_calls_that_are_given_up(void **state)
{
    struct fixture *f = *state;
    open_runtime(f);
    fake_cri_stall(f->fake, NULL);
    struct runtime_call *run = runtime_run_sandbox(f->runtime, &sandbox, "", on_id, f);
    struct runtime_call *list = runtime_list_containers(f->runtime, NULL, on_containers, f);
    runtime_list_images(f->runtime, on_images, f);
    while (fake_cri_hanging(f->fake) < 3) {
        bool never = false;
        loop_run_until(f->loop, &never, 10);
    }
    runtime_cancel(run);
    runtime_cancel(list);
    fake_cri_go_on(f->fake);
    wait_for(f, &f->ended); /* The images' list. */
    assert_int_equal(f->ends, 1);
    assert_non_null(fake_cri_sandbox(f->fake, "u1"));
    /* Those that have not begun. */
    fake_cri_stop(f->fake);
    wait_for(f, &f->is_lost);
    runtime_cancel(runtime_list_images(f->runtime, on_images, f));
    runtime_list_images(f->runtime, on_images, f);
    wait_for(f, &f->ended);
    assert_int_equal(f->ends, 2);
}

static void test_a_grace_that_is_used_up(void **state)
{
    struct fixture *f = *state;
    char s[80], c[80];
    open_runtime(f);
    run_one(f, s, c);
    fake_cri_set_stop_ms(f->fake, UINT32_MAX);
    uint64_t began = loop_now_ms(f->loop);
    runtime_stop_container(f->runtime, c, 1, on_done, f);
    wait_for(f, &f->ended);
    assert_true(loop_now_ms(f->loop) - began >= 1000);
    assert_int_equal(state_of(f, c), RUNTIME_EXITED);
    assert_int_equal(f->container.exit_code, 137);
}

static void free_in_callback(void *ctx, int error, const char *text)
{
    struct fixture *f = ctx;
    f->runtime = runtime_free(f->runtime);
    on_done(ctx, error, text);
}

static void test_freed_in_a_callback(void **state)
{
    struct fixture *f = *state;
    open_runtime(f);
    for (unsigned i = 0; i < 3; i++) {
        runtime_stop_sandbox(f->runtime, "x", free_in_callback, f);
    }
    wait_for(f, &f->ended);
    assert_int_equal(f->ends, 1);
    open_runtime(f);
    fake_cri_stop(f->fake);
    for (unsigned i = 0; i < 3; i++) {
        runtime_stop_sandbox(f->runtime, "x", free_in_callback, f);
    }
    wait_for(f, &f->ended);
    assert_int_equal(f->error, -EAGAIN);
    assert_int_equal(f->ends, 2);
}

static void test_many_at_once(void **state)
{
    struct fixture *f = *state;
    open_runtime(f);
    for (unsigned i = 0; i < 500; i++) {
        runtime_list_containers(f->runtime, NULL, on_containers, f);
    }
    while (f->ends < 500) {
        wait_for(f, &f->ended);
        assert_int_equal(f->error, 0);
    }
}

static void test_addresses(void **state)
{
    struct fixture *f = *state;
    struct err e;
    assert_int_equal(runtime_open(f->loop, "cri", "/run/x.sock", &events, f, &f->runtime, &e),
                     -EINVAL);
    assert_non_null(strstr(e.text, "unix:///run/containerd/containerd.sock"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_pod),
        TEST(test_commands_images_and_status),
        TEST(test_a_command_that_exceeds_its_time),
        TEST(test_errors),
        TEST(test_exits_by_events_of_containerd),
        TEST(test_a_removal_waits_until_the_end_is_noted),
        TEST(test_a_removal_that_waits_ends_with_the_connection),
        TEST(test_exits_by_events_of_cri),
        TEST(test_a_runtime_without_events),
        TEST(test_an_oom_kill),
        TEST(test_a_sandbox_that_dies),
        TEST(test_a_restart),
        TEST(test_a_runtime_that_is_not_ready),
        TEST(test_a_runtime_of_an_old_version),
        TEST(test_calls_that_are_given_up),
        TEST(test_a_grace_that_is_used_up),
        TEST(test_freed_in_a_callback),
        TEST(test_many_at_once),
        TEST(test_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
