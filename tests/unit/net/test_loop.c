/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/timeutil.h"
#include "net/loop/loop.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT_MS 10000

static void run_until(struct loop *l, const bool *flag)
{
    assert_int_equal(loop_run_until(l, flag, LIMIT_MS), 0);
}

/* ---- descriptors ---- */

struct fd_user {
    struct loop *loop;
    struct loop_fd *watch, *other;
    int fd;
    int calls;
    unsigned seen;
    bool done;
};

static void fd_free_self(void *ctx, unsigned events)
{
    struct fd_user *u = ctx;
    u->calls++;
    u->seen |= events;
    u->watch = loop_fd_free(u->watch);
    u->done = true;
}

static void fd_read_byte(void *ctx, unsigned events)
{
    struct fd_user *u = ctx;
    char c;
    u->calls++;
    u->seen |= events;
    u->done = read(u->fd, &c, 1) == 1;
}

static void watcher_freed_in_its_callback_never_fires_again(void **state)
{
    CLEANUP(loop_free) struct loop *l = loop_new();
    int p[2];
    assert_int_equal(pipe(p), 0);
    assert_int_equal(write(p[1], "x", 1), 1); /* Never read: level-triggered, it would fire on. */
    struct fd_user u = {.loop = l};
    u.watch = loop_fd_new(l, p[0], LOOP_READ, fd_free_self, &u);
    run_until(l, &u.done);
    bool never = false;
    assert_int_equal(loop_run_until(l, &never, 20), -ETIMEDOUT);
    assert_int_equal(u.calls, 1);
    close(p[0]);
    close(p[1]);
}

static void fd_free_other(void *ctx, unsigned events)
{
    struct fd_user *u = ctx;
    u->calls++;
    u->watch = loop_fd_free(u->watch);
    u->other = loop_fd_free(u->other);
    u->done = true;
}

static void watcher_freed_by_another_ready_in_the_same_round_never_fires(void **state)
{
    CLEANUP(loop_free) struct loop *l = loop_new();
    int a[2], b[2];
    assert_int_equal(pipe(a), 0);
    assert_int_equal(pipe(b), 0);
    assert_int_equal(write(a[1], "x", 1), 1);
    assert_int_equal(write(b[1], "x", 1), 1);
    struct fd_user u = {.loop = l};
    u.watch = loop_fd_new(l, a[0], LOOP_READ, fd_free_other, &u);
    u.other = loop_fd_new(l, b[0], LOOP_READ, fd_free_other, &u);
    run_until(l, &u.done);
    bool never = false;
    assert_int_equal(loop_run_until(l, &never, 20), -ETIMEDOUT);
    assert_int_equal(u.calls, 1);
    for (int i = 0; i < 2; i++) {
        close(a[i]);
        close(b[i]);
    }
}

static void descriptor_number_can_be_watched_again_at_once(void **state)
{
    CLEANUP(loop_free) struct loop *l = loop_new();
    int p[2], q[2];
    assert_int_equal(pipe(p), 0);
    struct fd_user u = {.loop = l};
    u.watch = loop_fd_new(l, p[0], LOOP_READ, fd_free_self, &u);
    loop_fd_free(u.watch);
    close(p[0]);
    close(p[1]);
    assert_int_equal(pipe(q), 0);
    assert_int_equal(q[0], p[0]);
    u.fd = q[0];
    u.watch = loop_fd_new(l, q[0], LOOP_READ, fd_read_byte, &u);
    assert_int_equal(write(q[1], "x", 1), 1);
    run_until(l, &u.done);
    assert_int_equal(u.calls, 1);
    loop_fd_free(u.watch);
    close(q[0]);
    close(q[1]);
}

static void events_can_be_changed_and_switched_off(void **state)
{
    CLEANUP(loop_free) struct loop *l = loop_new();
    int s[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
    assert_int_equal(write(s[1], "x", 1), 1);
    struct fd_user u = {.loop = l, .fd = s[0]};
    u.watch = loop_fd_new(l, s[0], 0, fd_read_byte, &u);
    bool never = false;
    assert_int_equal(loop_run_until(l, &never, 20), -ETIMEDOUT);
    assert_int_equal(u.calls, 0);
    loop_fd_set(u.watch, LOOP_READ);
    run_until(l, &u.done);
    assert_int_equal(u.seen, LOOP_READ);
    loop_fd_set(u.watch, LOOP_WRITE);
    u.seen = 0;
    assert_int_equal(write(s[1], "y", 1), 1);
    u.done = false;
    run_until(l, &u.done);
    assert_int_equal(u.seen, LOOP_WRITE);
    loop_fd_free(u.watch);
    close(s[0]);
    close(s[1]);
}

static void hang_up_is_reported_as_the_event_asked_for(void **state)
{
    CLEANUP(loop_free) struct loop *l = loop_new();
    int p[2];
    assert_int_equal(pipe(p), 0);
    struct fd_user u = {.loop = l};
    u.watch = loop_fd_new(l, p[0], LOOP_READ, fd_free_self, &u);
    close(p[1]);
    run_until(l, &u.done);
    assert_int_equal(u.seen, LOOP_READ);
    close(p[0]);
}

static void error_is_reported_as_the_event_asked_for(void **state)
{
    CLEANUP(loop_free) struct loop *l = loop_new();
    int p[2];
    assert_int_equal(pipe(p), 0);
    /* The write end of a pipe without reader is in error (POLLERR). */
    close(p[0]);
    struct fd_user u = {.loop = l};
    u.watch = loop_fd_new(l, p[1], LOOP_WRITE, fd_free_self, &u);
    run_until(l, &u.done);
    assert_int_equal(u.seen, LOOP_WRITE);
    close(p[1]);
}

/* ---- timers ---- */

struct order {
    char text[16];
    size_t n;
    bool done;
};
struct timer_user {
    struct order *order;
    struct loop_timer *t;
    char mark;
    int rearm;
};

static void timer_mark(void *ctx)
{
    struct timer_user *u = ctx;
    u->order->text[u->order->n++] = u->mark;
    u->order->done = u->mark == 'z';
}

static void timers_fire_in_order_of_time_then_of_arming(void **state)
{
    CLEANUP(loop_free) struct loop *l = loop_new();
    struct order o = {0};
    struct timer_user u[4] = {{&o, NULL, 'z'}, {&o, NULL, 'a'}, {&o, NULL, 'b'}, {&o, NULL, 'x'}};
    static const uint64_t delay[] = {40, 10, 10, 20};
    for (size_t i = 0; i < 4; i++) {
        u[i].t = loop_timer_new(l, timer_mark, &u[i]);
        assert_false(loop_timer_armed(u[i].t));
        loop_timer_arm(u[i].t, delay[i]);
        assert_true(loop_timer_armed(u[i].t));
    }
    loop_timer_disarm(u[3].t);
    assert_false(loop_timer_armed(u[3].t));
    run_until(l, &o.done);
    assert_string_equal(o.text, "abz");
    for (size_t i = 0; i < 4; i++) {
        u[i].t = loop_timer_free(u[i].t);
    }
}

static void arming_again_moves_a_timer(void **state)
{
    CLEANUP(loop_free) struct loop *l = loop_new();
    struct order o = {0};
    struct timer_user u[2] = {{&o, NULL, 'a'}, {&o, NULL, 'z'}};
    for (size_t i = 0; i < 2; i++) {
        u[i].t = loop_timer_new(l, timer_mark, &u[i]);
    }
    loop_timer_arm(u[1].t, 5);
    loop_timer_arm(u[0].t, 15);
    loop_timer_arm(u[1].t, 30);
    run_until(l, &o.done);
    assert_string_equal(o.text, "az");
    for (size_t i = 0; i < 2; i++) {
        loop_timer_free(u[i].t);
    }
}

static void timer_free_self(void *ctx)
{
    struct timer_user *u = ctx;
    u->t = loop_timer_free(u->t);
    u->order->done = true;
}

static void timer_can_be_freed_in_its_callback(void **state)
{
    CLEANUP(loop_free) struct loop *l = loop_new();
    struct order o = {0};
    struct timer_user u = {&o, NULL, 'a'};
    u.t = loop_timer_new(l, timer_free_self, &u);
    loop_timer_arm(u.t, 1);
    run_until(l, &o.done);
    assert_null(u.t);
}

static void timer_is_not_early_after_a_long_pause_before_arming(void **state)
{
    CLEANUP(loop_free) struct loop *l = loop_new();
    struct order o = {0};
    struct timer_user u = {&o, NULL, 'z'};
    u.t = loop_timer_new(l, timer_mark, &u);
    for (uint64_t end = time_mono_ms() + 60; time_mono_ms() < end;) {
    }
    uint64_t start = time_mono_ns();
    loop_timer_arm(u.t, 50);
    run_until(l, &o.done);
    assert_true(time_mono_ns() - start >= 49 * 1000000ull);
    loop_timer_free(u.t);
}

static void timer_rearm_zero(void *ctx)
{
    struct timer_user *u = ctx;
    u->rearm++;
    loop_timer_arm(u->t, 0);
}

static void timer_that_arms_itself_with_zero_starves_nobody(void **state)
{
    CLEANUP(loop_free) struct loop *l = loop_new();
    int p[2];
    assert_int_equal(pipe(p), 0);
    struct order o = {0};
    struct timer_user u = {&o, NULL, 'a'};
    u.t = loop_timer_new(l, timer_rearm_zero, &u);
    loop_timer_arm(u.t, 0);
    struct fd_user f = {.loop = l, .fd = p[0]};
    f.watch = loop_fd_new(l, p[0], LOOP_READ, fd_read_byte, &f);
    assert_int_equal(write(p[1], "x", 1), 1);
    run_until(l, &f.done);
    bool never = false;
    assert_int_equal(loop_run_until(l, &never, 20), -ETIMEDOUT);
    assert_in_range(u.rearm, 2, 1000);
    loop_fd_free(f.watch);
    loop_timer_free(u.t);
    close(p[0]);
    close(p[1]);
}

/* ---- tasks ---- */

struct task_user {
    struct loop_task t, *cancel;
    int calls, again;
    bool done;
};

static void task_count(void *ctx)
{
    struct task_user *u = ctx;
    u->calls++;
    u->done = true;
    if (u->cancel) {
        loop_task_cancel(u->cancel);
    }
    if (u->again) {
        u->again--;
        loop_task_queue(&u->t);
    }
}

static void task_queued_twice_runs_once(void **state)
{
    CLEANUP(loop_free) struct loop *l = loop_new();
    struct task_user u = {0};
    loop_task_init(&u.t, l, task_count, &u);
    loop_task_queue(&u.t);
    loop_task_queue(&u.t);
    run_until(l, &u.done);
    bool never = false;
    assert_int_equal(loop_run_until(l, &never, 10), -ETIMEDOUT);
    assert_int_equal(u.calls, 1);
}

static void cancelled_task_does_not_run_even_from_the_one_before_it(void **state)
{
    CLEANUP(loop_free) struct loop *l = loop_new();
    struct task_user a = {0}, b = {0}, c = {0};
    loop_task_init(&a.t, l, task_count, &a);
    loop_task_init(&b.t, l, task_count, &b);
    loop_task_init(&c.t, l, task_count, &c);
    a.cancel = &b.t;
    loop_task_queue(&a.t);
    loop_task_queue(&b.t);
    loop_task_queue(&c.t);
    run_until(l, &c.done);
    assert_int_equal(a.calls, 1);
    assert_int_equal(b.calls, 0);
    assert_int_equal(c.calls, 1);
    loop_task_cancel(&b.t); /* Harmless when it is not queued. */
}

static void task_that_queues_itself_runs_on_and_lets_timers_run(void **state)
{
    CLEANUP(loop_free) struct loop *l = loop_new();
    struct task_user u = {.again = 1 << 30};
    loop_task_init(&u.t, l, task_count, &u);
    loop_task_queue(&u.t);
    struct order o = {0};
    struct timer_user tu = {&o, NULL, 'z'};
    tu.t = loop_timer_new(l, timer_mark, &tu);
    loop_timer_arm(tu.t, 10);
    run_until(l, &o.done);
    assert_true(u.calls > 2);
    loop_task_cancel(&u.t);
    loop_timer_free(tu.t);
}

static void task_flag_ends_the_run_without_waiting(void **state)
{
    CLEANUP(loop_free) struct loop *l = loop_new();
    struct task_user u = {0};
    loop_task_init(&u.t, l, task_count, &u);
    loop_task_queue(&u.t);
    uint64_t start = time_mono_ms();
    run_until(l, &u.done);
    assert_true(time_mono_ms() - start < LIMIT_MS / 2);
}

/* ---- running ---- */

static void stop_loop(void *ctx)
{
    loop_stop(ctx);
}

static void run_returns_after_stop_and_can_run_again(void **state)
{
    CLEANUP(loop_free) struct loop *l = loop_new();
    struct loop_task t;
    loop_task_init(&t, l, stop_loop, l);
    for (int i = 0; i < 3; i++) {
        loop_task_queue(&t);
        loop_run(l);
    }
    loop_stop(l);
    loop_run(l);
    bool never = false;
    loop_task_queue(&t);
    assert_int_equal(loop_run_until(l, &never, LIMIT_MS), -ECANCELED);
}

static void run_until_gives_up_after_its_time(void **state)
{
    CLEANUP(loop_free) struct loop *l = loop_new();
    bool never = false, already = true;
    uint64_t start = time_mono_ns();
    assert_int_equal(loop_run_until(l, &never, 20), -ETIMEDOUT);
    assert_true(time_mono_ns() - start >= 19 * 1000000ull);
    assert_int_equal(loop_run_until(l, &already, 0), 0);
}

/* ---- threads, signals, children ---- */

struct work_user {
    pthread_t loop_thread, ran_on;
    bool worked, done;
};

static void work_work(void *ctx)
{
    struct work_user *u = ctx;
    u->ran_on = pthread_self();
    u->worked = true;
}

static void work_done(void *ctx)
{
    struct work_user *u = ctx;
    assert_true(pthread_equal(u->loop_thread, pthread_self()));
    u->done = true;
}

static void work_runs_on_a_thread_and_ends_on_the_loop(void **state)
{
    CLEANUP(loop_free) struct loop *l = loop_new();
    struct work_user u = {.loop_thread = pthread_self()};
    loop_work(l, work_work, work_done, &u);
    run_until(l, &u.done);
    assert_true(u.worked);
    assert_false(pthread_equal(u.ran_on, u.loop_thread));
}

static void loop_free_waits_for_work(void **state)
{
    struct loop *l = loop_new();
    struct work_user u = {.loop_thread = pthread_self()};
    loop_work(l, work_work, work_done, &u);
    loop_free(l);
    assert_true(u.done);
}

struct wake_user {
    struct loop_wakeup *w;
    int calls;
    bool done;
};

static void wake_count(void *ctx)
{
    struct wake_user *u = ctx;
    u->calls++;
    u->w = loop_wakeup_free(u->w);
    u->done = true;
}

static void *wake_thread(void *ctx)
{
    struct wake_user *u = ctx;
    loop_wakeup_trigger(u->w);
    loop_wakeup_trigger(u->w);
    return NULL;
}

static void wakeup_from_a_thread_calls_once_for_several_triggers(void **state)
{
    CLEANUP(loop_free) struct loop *l = loop_new();
    struct wake_user u = {0};
    u.w = loop_wakeup_new(l, wake_count, &u);
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, wake_thread, &u), 0);
    pthread_join(t, NULL);
    run_until(l, &u.done);
    assert_int_equal(u.calls, 1);
}

struct signal_user {
    struct loop_signal *s;
    bool done;
};

static void signal_seen(void *ctx)
{
    struct signal_user *u = ctx;
    u->s = loop_signal_free(u->s);
    u->done = true;
}

static void signal_is_delivered_on_the_loop(void **state)
{
    CLEANUP(loop_free) struct loop *l = loop_new();
    struct signal_user u = {0};
    u.s = loop_signal_new(l, SIGUSR1, signal_seen, &u);
    kill(getpid(), SIGUSR1);
    run_until(l, &u.done);
}

struct child_user {
    struct loop_child *c;
    int status, calls;
    bool done;
};

static void child_seen(void *ctx, int status)
{
    struct child_user *u = ctx;
    u->calls++;
    u->status = status;
    u->c = loop_child_free(u->c);
    u->done = true;
}

static pid_t fork_exit(int code, int signo)
{
    pid_t pid = fork();
    if (pid == 0) {
        if (signo) {
            raise(signo);
        }
        _exit(code);
    }
    assert_true(pid > 0);
    return pid;
}

static void child_end_is_reported_with_its_status_and_reaped(void **state)
{
    CLEANUP(loop_free) struct loop *l = loop_new();
    struct child_user a = {0}, b = {0};
    pid_t pa = fork_exit(7, 0), pb = fork_exit(0, SIGKILL);
    a.c = loop_child_new(l, pa, child_seen, &a);
    b.c = loop_child_new(l, pb, child_seen, &b);
    run_until(l, &a.done);
    run_until(l, &b.done);
    assert_true(WIFEXITED(a.status));
    assert_int_equal(WEXITSTATUS(a.status), 7);
    assert_true(WIFSIGNALED(b.status));
    assert_int_equal(WTERMSIG(b.status), SIGKILL);
    assert_int_equal(waitpid(pa, NULL, WNOHANG), -1);
    assert_int_equal(waitpid(pb, NULL, WNOHANG), -1);
    assert_int_equal(a.calls + b.calls, 2);
}

static void child_watch_freed_before_the_end_neither_kills_nor_reaps(void **state)
{
    CLEANUP(loop_free) struct loop *l = loop_new();
    struct child_user u = {0};
    int p[2];
    assert_int_equal(pipe(p), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char c;
        close(p[1]);
        _exit(read(p[0], &c, 1) == 1 ? 3 : 4);
    }
    u.c = loop_child_new(l, pid, child_seen, &u);
    u.c = loop_child_free(u.c);
    assert_int_equal(write(p[1], "x", 1), 1);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 3);
    assert_int_equal(u.calls, 0);
    close(p[0]);
    close(p[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(watcher_freed_in_its_callback_never_fires_again),
        cmocka_unit_test(watcher_freed_by_another_ready_in_the_same_round_never_fires),
        cmocka_unit_test(descriptor_number_can_be_watched_again_at_once),
        cmocka_unit_test(events_can_be_changed_and_switched_off),
        cmocka_unit_test(hang_up_is_reported_as_the_event_asked_for),
        cmocka_unit_test(error_is_reported_as_the_event_asked_for),
        cmocka_unit_test(timers_fire_in_order_of_time_then_of_arming),
        cmocka_unit_test(arming_again_moves_a_timer),
        cmocka_unit_test(timer_can_be_freed_in_its_callback),
        cmocka_unit_test(timer_is_not_early_after_a_long_pause_before_arming),
        cmocka_unit_test(timer_that_arms_itself_with_zero_starves_nobody),
        cmocka_unit_test(task_queued_twice_runs_once),
        cmocka_unit_test(cancelled_task_does_not_run_even_from_the_one_before_it),
        cmocka_unit_test(task_that_queues_itself_runs_on_and_lets_timers_run),
        cmocka_unit_test(task_flag_ends_the_run_without_waiting),
        cmocka_unit_test(run_returns_after_stop_and_can_run_again),
        cmocka_unit_test(run_until_gives_up_after_its_time),
        cmocka_unit_test(work_runs_on_a_thread_and_ends_on_the_loop),
        cmocka_unit_test(loop_free_waits_for_work),
        cmocka_unit_test(wakeup_from_a_thread_calls_once_for_several_triggers),
        cmocka_unit_test(signal_is_delivered_on_the_loop),
        cmocka_unit_test(child_end_is_reported_with_its_status_and_reaped),
        cmocka_unit_test(child_watch_freed_before_the_end_neither_kills_nor_reaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
