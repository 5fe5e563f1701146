/* SPDX-License-Identifier: Apache-2.0 */
/* The delay lock of a logind of the test's own, on a real D-Bus daemon of the test's own. */
#include "kubelet/agent/logind.h"

#include "base/mem.h"
#include "base/str.h"
#include "fake_logind.h"
#include "net/loop/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_MS 20000
#define LOOK_MS 5
#define SERVICE "org.freedesktop.login1"

static struct {
    char dir[32];
    struct loop *loop;
    pid_t daemon;             /* 0: there is none. */
    struct fake_logind *peer; /* NULL: there is no logind. */
    struct loop_timer *timer;
    struct logind *logind;
    unsigned n_locked, n_lost, n_begins, n_cancelled;
    uint64_t delay_max_ms;
    char lost[256];
} t;

static void serve(void *ctx)
{
    if (t.peer) {
        fake_logind_process(t.peer);
    }
    loop_timer_arm(t.timer, LOOK_MS);
}

/* ---- the bus ---- */

static bool can_connect(void)
{
    sd_bus *bus = NULL;
    const char *name;
    bool ok = sd_bus_open_system(&bus) >= 0 && sd_bus_get_unique_name(bus, &name) >= 0;
    sd_bus_close_unref(bus);
    return ok;
}

static void start_daemon(void)
{
    CLEANUP_FREE char *config = xasprintf("%s/bus.conf", t.dir);
    CLEANUP_FREE char *socket = xasprintf("%s/bus", t.dir);
    CLEANUP_FREE char *option = xasprintf("--config-file=%s", config);
    FILE *f = fopen(config, "w");
    assert_non_null(f);
    fprintf(f,
            "<busconfig><type>custom</type><listen>unix:path=%s</listen><auth>EXTERNAL</auth>"
            "<policy context=\"default\"><allow user=\"*\"/><allow own=\"*\"/>"
            "<allow send_destination=\"*\"/><allow receive_sender=\"*\"/></policy></busconfig>",
            socket);
    fclose(f);
    unlink(socket);
    t.daemon = fork();
    assert_true(t.daemon >= 0);
    if (t.daemon == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execlp("dbus-daemon", "dbus-daemon", option, "--nofork", "--nopidfile", NULL);
        _exit(127);
    }
    for (unsigned i = 0; i < WAIT_MS / LOOK_MS && !can_connect(); i++) {
        poll(NULL, 0, LOOK_MS);
    }
    assert_true(can_connect());
}

static void stop_daemon(void)
{
    if (t.daemon) {
        kill(t.daemon, SIGKILL);
        waitpid(t.daemon, NULL, 0);
        t.daemon = 0;
    }
}

/* ---- what is tested ---- */

static void on_locked(void *ctx, uint64_t delay_max_ms)
{
    t.n_locked++;
    t.delay_max_ms = delay_max_ms;
}

static void on_lost(void *ctx, const char *reason)
{
    t.n_lost++;
    snprintf(t.lost, sizeof t.lost, "%s", reason);
}

static void on_prepare(void *ctx, bool begins)
{
    t.n_begins += begins;
    t.n_cancelled += !begins;
}

static void await(const unsigned *counter, unsigned value)
{
    const bool never = false;
    for (unsigned i = 0; i < WAIT_MS / LOOK_MS && *counter < value; i++) {
        loop_run_until(t.loop, &never, LOOK_MS);
    }
    assert_int_equal(*counter, value);
}

static void await_held(bool held)
{
    const bool never = false;
    for (unsigned i = 0; i < WAIT_MS / LOOK_MS && fake_logind_is_held(t.peer) != held; i++) {
        loop_run_until(t.loop, &never, LOOK_MS);
    }
    assert_int_equal(fake_logind_is_held(t.peer), held);
}

static int set_up(void **state)
{
    memset(&t, 0, sizeof t);
    snprintf(t.dir, sizeof t.dir, "/tmp/tenet-bus-XXXXXX");
    assert_non_null(mkdtemp(t.dir));
    CLEANUP_FREE char *address = xasprintf("unix:path=%s/bus", t.dir);
    setenv("DBUS_SYSTEM_BUS_ADDRESS", address, 1);
    t.loop = loop_new();
    t.timer = loop_timer_new(t.loop, serve, NULL);
    loop_timer_arm(t.timer, 0);
    return 0;
}

static int tear_down(void **state)
{
    t.logind = logind_free(t.logind);
    t.peer = fake_logind_free(t.peer);
    stop_daemon();
    loop_timer_free(t.timer);
    loop_free(t.loop);
    assert_int_equal(dir_remove(t.dir, NULL), 0);
    return 0;
}

static void begin(void)
{
    static const struct logind_ops ops = {
        .locked = on_locked, .lost = on_lost, .prepare = on_prepare};
    struct err e = {0};
    assert_int_equal(logind_new(t.loop, &ops, NULL, &t.logind, &e), 0);
}

static void the_lock_is_held_until_it_is_given_back(void **state)
{
    start_daemon();
    t.peer = fake_logind_new(5000000);
    begin();
    await(&t.n_locked, 1);
    assert_string_equal(fake_logind_lock(t.peer), "shutdown delay tenet kubelet");
    assert_int_equal(t.delay_max_ms, 5000);
    assert_true(fake_logind_is_held(t.peer));
    fake_logind_announce(t.peer, true);
    await(&t.n_begins, 1);
    assert_true(fake_logind_is_held(t.peer));
    logind_release(t.logind);
    await_held(false);
    fake_logind_announce(t.peer, false); /* It was cancelled: the next one waits, too. */
    await(&t.n_cancelled, 1);
    await(&t.n_locked, 2);
    assert_true(fake_logind_is_held(t.peer));
    assert_int_equal(t.n_lost, 0);
    t.logind = logind_free(t.logind);
    await_held(false);
}

static void a_bus_that_goes_away_is_said_once_and_comes_back(void **state)
{
    start_daemon();
    t.peer = fake_logind_new(5000000);
    begin();
    await(&t.n_locked, 1);
    t.peer = fake_logind_free(t.peer);
    stop_daemon();
    await(&t.n_lost, 1);
    assert_non_null(strstr(t.lost, "the system bus: "));
    start_daemon();
    t.peer = fake_logind_new(5000000);
    await(&t.n_locked, 2);
    await_held(true);
    fake_logind_announce(t.peer, true);
    await(&t.n_begins, 1);
}

static void a_logind_that_comes_late_is_found(void **state)
{
    start_daemon();
    begin();
    await(&t.n_lost, 1);
    assert_non_null(strstr(t.lost, SERVICE));
    t.peer = fake_logind_new(5000000);
    await(&t.n_locked, 1);
    assert_true(fake_logind_is_held(t.peer));
    assert_int_equal(t.n_lost, 1);
}

static void without_a_bus_the_reason_is_said(void **state)
{
    begin();
    await(&t.n_lost, 1);
    assert_non_null(strstr(t.lost, "the system bus: No such file or directory"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_lock_is_held_until_it_is_given_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_bus_that_goes_away_is_said_once_and_comes_back, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_logind_that_comes_late_is_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_a_bus_the_reason_is_said, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
