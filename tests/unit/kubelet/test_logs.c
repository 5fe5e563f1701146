/* SPDX-License-Identifier: Apache-2.0 */
/* Files of logs: reading across rotations, and the rotation itself with a double of the runtime. */
#include "base/mem.h"
#include "base/str.h"
#include "kubelet/server/log_files.h"
#include "kubelet/server/log_rotation.h"
#include "net/loop/process.h"
#include "runtime/ops.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_MS 20000

static char folder[64];

static int setup(void **state)
{
    snprintf(folder, sizeof folder, "/tmp/tenet-logs-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
    return dir_remove(folder, NULL);
}

static char *in_folder(const char *name)
{
    return xasprintf("%s/%s", folder, name);
}

static void append(const char *name, const char *text)
{
    CLEANUP_FREE char *path = in_folder(name);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void move(const char *from, const char *to)
{
    CLEANUP_FREE char *a = in_folder(from), *b = in_folder(to);
    assert_int_equal(rename(a, b), 0);
}

static void expect(struct log_files *f, const char *want)
{
    char buf[4096];
    CLEANUP_STRBUF struct strbuf seen = STRBUF_INIT;
    ssize_t n;
    while ((n = log_files_read(f, buf, sizeof buf, NULL)) > 0) {
        strbuf_add(&seen, buf, (size_t) n);
    }
    assert_int_equal(n, 0);
    assert_string_equal(strbuf_cstr(&seen), want);
}

static struct log_files *open_tail(int64_t tail)
{
    CLEANUP_FREE char *path = in_folder("0.log");
    struct log_files *f;
    assert_int_equal(log_files_open(path, tail, &f, NULL), 0);
    return f;
}

static void reading_goes_on_behind_several_rotations(void **state)
{
    append("0.log.20260101-000000", "a\nb\n");
    append("0.log", "c\n");
    CLEANUP(log_files_free) struct log_files *f = open_tail(-1);
    expect(f, "a\nb\nc\n");
    assert_false(log_files_is_rotated(f));
    move("0.log", "0.log.20260101-000001");
    assert_false(log_files_is_rotated(f)); /* The new file is not there yet. */
    append("0.log.20260101-000001", "late\n");
    append("0.log", "d\n");
    move("0.log", "0.log.20260101-000002");
    append("0.log", "e\n");
    assert_true(log_files_advance(f));
    expect(f, "late\nd\ne\n");
    assert_false(log_files_advance(f));
    append("0.log", "f\n");
    expect(f, "f\n");
}

static void the_last_lines_begin_in_the_right_file(void **state)
{
    static const struct {
        int64_t tail;
        const char *want;
    } cases[] = {{0, ""},
                 {1, "e\n"},
                 {2, "d\ne\n"},
                 {3, "c\nd\ne\n"},
                 {5, "a\nb\nc\nd\ne\n"},
                 {99, "a\nb\nc\nd\ne\n"},
                 {-1, "a\nb\nc\nd\ne\n"}};
    append("0.log.20260101-000000", "a\nb\n");
    append("0.log.20260101-000001", "");
    append("0.log.20260101-000002", "c\nd\n");
    append("0.log", "e\n");
    append("0.log.20260101-000003.tmp", "never\n");
    append("10.log", "another attempt\n");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(log_files_free) struct log_files *f = open_tail(cases[i].tail);
        expect(f, cases[i].want);
    }
    CLEANUP_FREE char *none = in_folder("7.log");
    struct log_files *f;
    assert_int_equal(log_files_open(none, -1, &f, NULL), -ENOENT);
}

/* A pod may write to its folder of logs: a link in it is not followed. */
static void links_are_not_followed(void **state)
{
    CLEANUP_FREE char *path = in_folder("0.log"), *secret = in_folder("secret");
    struct log_files *f;
    append("secret", "secret\n");
    assert_int_equal(symlink(secret, path), 0);
    assert_int_equal(log_files_open(path, -1, &f, NULL), -ENOENT);
}

/* ---- rotation ---- */

struct double_runtime {
    unsigned reopened;
    bool refuses;
};

static struct runtime_call *pending;

static void reopen_log(void *b, struct runtime_call *c, const char *id)
{
    struct double_runtime *d = b;
    d->reopened++;
    if (!d->refuses) {
        append("0.log", "new\n");
    }
    pending = c;
}

static void cancel(void *b, struct runtime_call *c)
{
}

static void close_runtime(void *b)
{
}

static const struct runtime_ops double_ops = {
    .kind = "double", .close = close_runtime, .cancel = cancel, .reopen_log = reopen_log};

static void each(void *ctx, void (*add)(void *rotation, const char *id, const char *log_path),
                 void *rotation)
{
    CLEANUP_FREE char *path = in_folder("0.log");
    add(rotation, "id", path);
}

static size_t count(const char *suffix)
{
    DIR *d = opendir(folder);
    const struct dirent *entry;
    size_t n = 0;
    while ((entry = readdir(d))) {
        n += str_has_prefix(entry->d_name, "0.log") && str_has_suffix(entry->d_name, suffix);
    }
    closedir(d);
    return n;
}

static void changed(void *ctx, const char *sandbox_id, const char *container_id)
{
}

static void nothing(void *ctx)
{
}

static void connection(void *ctx, const char *lost_reason)
{
}

static void large_files_are_rotated_compressed_and_removed(void **state)
{
    static const struct runtime_events events = {changed, nothing, connection};
    CLEANUP(loop_free) struct loop *l = loop_new();
    struct double_runtime d = {0};
    struct runtime *runtime;
    runtime_open_with(l, &double_ops, &d, &events, NULL, &runtime);
    struct log_rotation_config cfg = {
        .max_bytes = 1000, .max_files = 4, .period_ms = 5, .runtime = runtime, .each = each};
    char big[1500];
    memset(big, 'x', sizeof big - 2);
    big[sizeof big - 2] = '\n';
    big[sizeof big - 1] = '\0';
    struct log_rotation *r = log_rotation_new(l, &cfg);
    for (unsigned i = 1; i <= 8; i++) {
        append("0.log", big);
        for (int round = 0; d.reopened < i || pending; round++) {
            bool never = false;
            assert_true(round < WAIT_MS);
            (void) loop_run_until(l, &never, 1);
            if (pending) {
                runtime_end_done(TAKE(pending));
            }
        }
    }
    /* Three rotated ones, all but the newest compressed. */
    for (int round = 0; count("") != 4 || count(".gz") != 2; round++) {
        bool never = false;
        assert_true(round < WAIT_MS);
        (void) loop_run_until(l, &never, 1);
    }
    CLEANUP(log_files_free) struct log_files *f = open_tail(-1);
    CLEANUP_STRBUF struct strbuf want = STRBUF_INIT;
    strbuf_addf(&want, "new\n%snew\n%snew\n%snew\n", big, big, big);
    expect(f, want.data);
    /* The runtime refuses: the file has its name again. */
    d.refuses = true;
    append("0.log", big);
    for (int round = 0; !pending; round++) {
        bool never = false;
        assert_true(round < WAIT_MS);
        (void) loop_run_until(l, &never, 1);
    }
    runtime_end_error(TAKE(pending), -EIO, "no");
    CLEANUP_FREE char *path = in_folder("0.log");
    assert_int_equal(access(path, F_OK), 0);
    log_rotation_free(r);
    runtime_free(runtime);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reading_goes_on_behind_several_rotations, setup, teardown),
        cmocka_unit_test_setup_teardown(the_last_lines_begin_in_the_right_file, setup, teardown),
        cmocka_unit_test_setup_teardown(links_are_not_followed, setup, teardown),
        cmocka_unit_test_setup_teardown(large_files_are_rotated_compressed_and_removed, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
