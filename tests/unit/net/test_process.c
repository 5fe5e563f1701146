/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/timeutil.h"
#include "net/loop/process.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT_MS 10000

/* Runs /bin/sh -c 'script' and returns its exit status. */
static int sh(const char *script, struct process_spec spec, struct strbuf *out,
              struct strbuf *errout)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    struct err e = {0};
    int status = -1;
    spec.argv = argv;
    int r = process_run(&spec, LIMIT_MS, out, errout, &status, &e);
    if (r < 0) {
        fail_msg("%s", e.text);
    }
    return status;
}

static void run_collects_both_outputs_and_the_status(void **state)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    CLEANUP_STRBUF struct strbuf errout = STRBUF_INIT;
    assert_int_equal(sh("echo one; echo two >&2; exit 3", PROCESS_SPEC_INIT, &out, &errout), 3);
    assert_string_equal(strbuf_cstr(&out), "one\n");
    assert_string_equal(strbuf_cstr(&errout), "two\n");
}

static void run_reports_a_signal_as_128_more(void **state)
{
    assert_int_equal(sh("kill -TERM $$", PROCESS_SPEC_INIT, NULL, NULL), 128 + SIGTERM);
}

static void run_feeds_text_larger_than_a_pipe(void **state)
{
    size_t size = 300000;
    CLEANUP_FREE char *text = xmalloc(size + 1);
    memset(text, 'x', size);
    text[size] = '\0';
    struct process_spec s = PROCESS_SPEC_INIT;
    s.stdin_text = text;
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    assert_int_equal(sh("cat; cat", s, &out, NULL), 0);
    assert_int_equal(out.size, size);
}

static void run_without_input_reads_the_end_at_once(void **state)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    assert_int_equal(sh("cat", PROCESS_SPEC_INIT, &out, NULL), 0);
    assert_int_equal(out.size, 0);
}

static void run_keeps_at_most_a_mebibyte_and_lets_the_program_end(void **state)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    assert_int_equal(sh("head -c 3000000 /dev/zero", PROCESS_SPEC_INIT, &out, NULL), 0);
    assert_int_equal(out.size, 1 << 20);
}

static void run_kills_what_takes_too_long(void **state)
{
    const char *argv[] = {"sleep", "60", NULL};
    struct process_spec s = PROCESS_SPEC_INIT;
    s.argv = argv;
    struct err e = {0};
    int status = -1;
    uint64_t start = time_mono_ms();
    assert_int_equal(process_run(&s, 30, NULL, NULL, &status, &e), -ETIMEDOUT);
    assert_true(time_mono_ms() - start < LIMIT_MS);
    assert_non_null(strstr(e.text, "sleep"));
    assert_int_equal(status, -1);
}

static void run_does_not_wait_for_a_grandchild_that_holds_the_pipe(void **state)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    uint64_t start = time_mono_ms();
    assert_int_equal(sh("sleep 30 & echo $!", PROCESS_SPEC_INIT, &out, NULL), 0);
    assert_true(time_mono_ms() - start < LIMIT_MS);
    uint64_t pid;
    out.data[out.size - 1] = '\0';
    assert_int_equal(str_to_u64(out.data, INT32_MAX, &pid), 0);
    kill((pid_t) pid, SIGKILL);
}

static void missing_program_is_an_error_that_names_it(void **state)
{
    const char *argv[] = {"tenet-ut-net-no-such-program", NULL};
    struct process_spec s = PROCESS_SPEC_INIT;
    s.argv = argv;
    struct err e = {0};
    pid_t pid = -7;
    assert_int_equal(process_start(&s, &pid, &e), -ENOENT);
    assert_string_equal(e.text, "start tenet-ut-net-no-such-program: no such program");
    assert_int_equal(pid, -7);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* And no zombie is left. */
}

/* Success leaves errno as it was: an earlier interruption says nothing of this start. */
static void a_failed_start_is_told_whatever_errno_was_before(void **state)
{
    const char *argv[] = {"tenet-ut-net-no-such-program", NULL};
    struct process_spec s = PROCESS_SPEC_INIT;
    s.argv = argv;
    struct err e = {0};
    pid_t pid = -7;
    errno = EINTR;
    assert_int_equal(process_start(&s, &pid, &e), -ENOENT);
    assert_int_equal(pid, -7);
}

static void environment_is_added_to_and_replaced(void **state)
{
    static const char *const env[] = {"TENET_UT_A=new", "TENET_UT_B=two", NULL};
    struct process_spec s = PROCESS_SPEC_INIT;
    s.env = env;
    setenv("TENET_UT_A", "old", 1);
    setenv("TENET_UT_C", "three", 1);
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    assert_int_equal(
        sh("echo $TENET_UT_A $TENET_UT_B $TENET_UT_C; env | grep -c TENET_UT_A", s, &out, NULL), 0);
    assert_string_equal(strbuf_cstr(&out), "new two three\n1\n");
}

static void passed_descriptors_become_3_and_up_whatever_their_numbers(void **state)
{
    int a[2], b[2];
    assert_int_equal(pipe2(a, O_CLOEXEC), 0);
    assert_int_equal(pipe2(b, O_CLOEXEC), 0);
    for (int i = 0; i < 2; i++) { /* Out of the way of 3 and 4. */
        int *ends[] = {&a[i], &b[i]};
        for (size_t k = 0; k < 2; k++) {
            int high = fcntl(*ends[k], F_DUPFD_CLOEXEC, 40);
            close(*ends[k]);
            *ends[k] = high;
        }
    }
    /* The first of them is where the second has to go, and the other way round. */
    int fds[] = {dup3(a[1], 4, O_CLOEXEC), dup3(b[1], 3, O_CLOEXEC)};
    struct process_spec s = PROCESS_SPEC_INIT;
    s.pass_fds = fds;
    s.n_pass_fds = 2;
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    assert_int_equal(
        sh("printf A >&3; printf B >&4; test $LISTEN_PID = $$ && echo $LISTEN_FDS", s, &out, NULL),
        0);
    assert_string_equal(strbuf_cstr(&out), "2\n");
    char c;
    assert_int_equal(read(a[0], &c, 1), 1);
    assert_int_equal(c, 'A');
    assert_int_equal(read(b[0], &c, 1), 1);
    assert_int_equal(c, 'B');
    close(3);
    close(4);
    for (int i = 0; i < 2; i++) {
        close(a[i]);
        close(b[i]);
    }
}

static void no_other_descriptor_is_inherited(void **state)
{
    int fd = dup2(STDOUT_FILENO, 57); /* Not close-on-exec. */
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    assert_int_equal(sh("ls /proc/$$/fd | tr '\\n' ' '", PROCESS_SPEC_INIT, &out, NULL), 0);
    close(fd);
    assert_null(strstr(strbuf_cstr(&out), "57"));
}

static void signals_are_as_in_a_fresh_program_but_for_what_is_ignored(void **state)
{
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    signal(SIGPIPE, SIG_IGN); /* Ours, unlike what our starter ignores: a background job, SIGINT. */
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    assert_int_equal(sh("grep -E '^Sig(Blk|Ign)' /proc/self/status", PROCESS_SPEC_INIT, &out, NULL),
                     0);
    sigprocmask(SIG_UNBLOCK, &blocked, NULL);
    signal(SIGPIPE, SIG_DFL);
    assert_non_null(strstr(strbuf_cstr(&out), "SigBlk:\t0000000000000000"));
    const char *ignored = strstr(strbuf_cstr(&out), "SigIgn:\t");
    assert_non_null(ignored);
    uint64_t mask = strtoull(ignored + strlen("SigIgn:\t"), NULL, 16);
    assert_int_equal(mask & (UINT64_C(1) << (SIGPIPE - 1)), 0);
}

static void new_session_makes_a_leader(void **state)
{
    struct process_spec s = PROCESS_SPEC_INIT;
    s.new_session = true;
    /* The sixth field of stat(5) is the session. */
    assert_int_equal(
        sh("read -r pid comm state ppid pgrp session rest </proc/$$/stat; test $session = $$", s,
           NULL, NULL),
        0);
}

static void process_is_looks_at_the_command_line(void **state)
{
    assert_true(process_is(getpid(), "test_process"));
    assert_false(process_is(getpid(), "something else"));
    pid_t pid = fork();
    if (pid == 0) {
        _exit(0);
    }
    siginfo_t si;
    assert_int_equal(waitid(P_PID, (id_t) pid, &si, WEXITED | WNOWAIT), 0);
    assert_false(process_is(pid, "test_process")); /* A zombie does not run. */
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_false(process_is(pid, "test_process"));
}

/* A program that executes itself again and again has its name in the command line all the time. */
static void process_is_bears_with_an_exec(void **state)
{
    char path[] = "/tmp/tenet-exec-XXXXXX";
    int fd = mkstemp(path);
    static const char text[] = "#!/bin/sh\nexec \"$0\"\n";
    assert_true(write(fd, text, sizeof text - 1) == (ssize_t) sizeof text - 1);
    fchmod(fd, 0700);
    close(fd);
    const char *argv[] = {path, NULL};
    struct process_spec s = PROCESS_SPEC_INIT;
    s.argv = argv;
    pid_t pid;
    assert_int_equal(process_start(&s, &pid, NULL), 0);
    for (unsigned i = 0; i < 20000; i++) {
        if (!process_is(pid, path)) {
            kill(pid, SIGKILL);
            fail_msg("it was not found the %uth time", i);
        }
    }
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    unlink(path);
}

/* ---- files ---- */

static char dir[] = "/tmp/tenet-ut-net-XXXXXX";

static int make_dir(void **state)
{
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    return dir_remove(dir, NULL);
}

static void write_replaces_a_file_and_leaves_nothing_else(void **state)
{
    CLEANUP_FREE char *path = xasprintf("%s/a/b/file", dir);
    CLEANUP_FREE char *parent = xasprintf("%s/a/b", dir);
    struct err e = {0};
    assert_int_equal(file_write_atomic(path, "x", 1, 0640, &e), -ENOENT);
    assert_non_null(strstr(e.text, path));
    assert_int_equal(dir_make(parent, 0755, &e), 0);
    assert_int_equal(dir_make(parent, 0755, &e), 0);
    assert_int_equal(file_write_atomic(path, "first", 5, 0640, &e), 0);
    assert_int_equal(file_write_unsynced(path, "second\0", 7, 0640, &e), 0);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    assert_int_equal(file_read(path, 7, &b, &e), 0);
    assert_int_equal(b.size, 7);
    assert_string_equal(b.data, "second");
    assert_int_equal(file_read(path, 6, &b, &e), -EFBIG);
    assert_int_equal(b.size, 7);
    assert_int_equal(dir_make(path, 0755, &e), -ENOTDIR);
    unlink(path);
    assert_int_equal(rmdir(parent), 0);
}

static void what_is_no_file_is_refused_without_waiting(void **state)
{
    CLEANUP_FREE char *fifo = xasprintf("%s/fifo", dir);
    CLEANUP_FREE char *link = xasprintf("%s/link", dir);
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    struct err e = {0};
    int fd = -1;
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(symlink(fifo, link), 0);
    alarm(LIMIT_MS / 1000); /* Ends the test when it waits for the pipe's writer after all. */
    assert_int_equal(file_read(fifo, 7, &b, &e), -EINVAL);
    assert_non_null(strstr(e.text, "/fifo: is not a regular file"));
    assert_int_equal(file_open(link, &fd, &e), -EINVAL);
    assert_int_equal(file_read(dir, 7, &b, &e), -EISDIR);
    assert_int_equal(fd, -1);
    assert_int_equal(file_read("/dev/null", 7, &b, &e), 0);
    assert_int_equal(b.size, 0);
    alarm(0);
    unlink(link);
    unlink(fifo);
}

static void remove_takes_a_tree_and_not_what_links_point_to(void **state)
{
    CLEANUP_FREE char *kept = xasprintf("%s/kept", dir);
    CLEANUP_FREE char *kept_file = xasprintf("%s/kept/file", dir);
    CLEANUP_FREE char *tree = xasprintf("%s/tree", dir);
    CLEANUP_FREE char *deep = xasprintf("%s/tree/1/2/3", dir);
    CLEANUP_FREE char *link = xasprintf("%s/tree/1/link", dir);
    struct err e = {0};
    assert_int_equal(dir_make(kept, 0755, &e), 0);
    assert_int_equal(file_write_atomic(kept_file, "", 0, 0644, &e), 0);
    assert_int_equal(dir_make(deep, 0755, &e), 0);
    assert_int_equal(symlink(kept, link), 0);
    assert_int_equal(dir_remove(tree, &e), 0);
    assert_int_equal(access(tree, F_OK), -1);
    assert_int_equal(access(kept_file, F_OK), 0);
    assert_int_equal(dir_remove(tree, &e), 0); /* Absent is fine. */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run_collects_both_outputs_and_the_status),
        cmocka_unit_test(run_reports_a_signal_as_128_more),
        cmocka_unit_test(run_feeds_text_larger_than_a_pipe),
        cmocka_unit_test(run_without_input_reads_the_end_at_once),
        cmocka_unit_test(run_keeps_at_most_a_mebibyte_and_lets_the_program_end),
        cmocka_unit_test(run_kills_what_takes_too_long),
        cmocka_unit_test(run_does_not_wait_for_a_grandchild_that_holds_the_pipe),
        cmocka_unit_test(missing_program_is_an_error_that_names_it),
        cmocka_unit_test(a_failed_start_is_told_whatever_errno_was_before),
        cmocka_unit_test(environment_is_added_to_and_replaced),
        cmocka_unit_test(passed_descriptors_become_3_and_up_whatever_their_numbers),
        cmocka_unit_test(no_other_descriptor_is_inherited),
        cmocka_unit_test(signals_are_as_in_a_fresh_program_but_for_what_is_ignored),
        cmocka_unit_test(new_session_makes_a_leader),
        cmocka_unit_test(process_is_looks_at_the_command_line),
        cmocka_unit_test(process_is_bears_with_an_exec),
        cmocka_unit_test(write_replaces_a_file_and_leaves_nothing_else),
        cmocka_unit_test(what_is_no_file_is_refused_without_waiting),
        cmocka_unit_test(remove_takes_a_tree_and_not_what_links_point_to),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
