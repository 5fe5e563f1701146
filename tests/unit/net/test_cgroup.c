/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "net/kernel/cgroup.h"
#include "net/loop/process.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static pid_t start_child(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        for (;;) {
            pause();
        }
    }
    assert_true(pid > 0);
    return pid;
}

static int end_of(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    return WTERMSIG(status);
}

static int write_pid(const char *folder, pid_t pid)
{
    CLEANUP_FREE char *file = xasprintf("%s/cgroup.procs", folder);
    FILE *f = fopen(file, "we");
    int r = f ? fprintf(f, "%d\n", (int) pid) : -1;
    return f && fclose(f) == 0 && r > 0 ? 0 : -errno;
}

static void processes_of_a_group_are_killed(void **state)
{
    static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/pids",
                                        "/sys/fs/cgroup/systemd"};
    pid_t pid = start_child();
    for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
        CLEANUP_FREE char *group = xasprintf("%s/tenet-test-%d", roots[i], (int) getpid());
        if (mkdir(group, 0755) < 0) {
            continue;
        }
        bool moved = write_pid(group, pid) == 0 && cgroup_kill(group) == 1;
        if (moved) {
            assert_int_equal(end_of(pid), SIGKILL);
            assert_int_equal(cgroup_kill(group), 0);
        }
        rmdir(group);
        if (moved) {
            return;
        }
    }
    kill(pid, SIGTERM);
    end_of(pid);
    skip(); /* No group can be made here. */
}

static void a_plain_folder_has_no_processes(void **state)
{
    char folder[] = "/tmp/tenet-cgroup-XXXXXX";
    pid_t pid = start_child();
    assert_non_null(mkdtemp(folder));
    assert_int_equal(write_pid(folder, pid), 0);
    assert_int_equal(cgroup_kill(folder), 0);
    assert_int_equal(kill(pid, SIGTERM), 0);
    assert_int_equal(end_of(pid), SIGTERM);
    CLEANUP_FREE char *file = xasprintf("%s/cgroup.procs", folder);
    unlink(file);
    rmdir(folder);
    assert_int_equal(cgroup_kill(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_of_a_group_are_killed),
        cmocka_unit_test(a_plain_folder_has_no_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
