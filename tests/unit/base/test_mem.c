/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "leave_out.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void allocations_of_nothing_are_something(void **state)
{
    void *p = xmalloc(0), *q = xcalloc(0, 8), *r = xreallocarray(NULL, 0, 8);
    assert_true(p && q && r);
    free(p);
    free(q);
    free(r);
}

static void copies_are_exact(void **state)
{
    CLEANUP_FREE char *a = xstrdup("abc"), *b = xstrndup("abcdef", 3), *c = xstrndup("ab", 10),
                      *d = xasprintf("%s-%d", "x", 7), *e = xmemdup("a\0b", 3);
    assert_string_equal(a, "abc");
    assert_string_equal(b, "abc");
    assert_string_equal(c, "ab");
    assert_string_equal(d, "x-7");
    assert_memory_equal(e, "a\0b", 3);
}

static void arrays_grow_by_doubling(void **state)
{
    int *p = NULL;
    size_t cap = 0, changes = 0;
    for (size_t i = 0; i < 10000; i++) {
        size_t before = cap;
        p = grow(p, &cap, i + 1, sizeof *p);
        changes += cap != before;
        assert_true(cap > i);
        p[i] = (int) i;
    }
    assert_true(changes < 15);
    for (int i = 0; i < 10000; i++) {
        assert_int_equal(p[i], i);
    }
    free(p);
}

/* How a child that runs 'fn' ends; its standard error is closed, as the death is wanted. */
static int status_of(void (*fn)(void))
{
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        dup2(null, STDERR_FILENO);
        fn();
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void ask_for_too_much(void)
{
    size_t volatile n = SIZE_MAX / 2;
    void *p = xreallocarray(NULL, n, 4);
    free(p);
}

static void grow_too_much(void)
{
    size_t cap = SIZE_MAX / 4 + 1;
    grow(NULL, &cap, SIZE_MAX - 1, 1);
}

static void overflow_ends_the_process(void **state)
{
    assert_true(status_of(ask_for_too_much) != 0);
    assert_true(status_of(grow_too_much) != 0);
}

static void *take_and_drop(void *arg)
{
    struct blob *b = arg;
    for (int i = 0; i < 20000; i++) {
        blob_unref(blob_ref(b));
    }
    return NULL;
}

static void blobs_are_shared_between_threads(void **state)
{
    CLEANUP(blob_unref) struct blob *b = blob_new("a\0b", 3);
    assert_int_equal(b->size, 3);
    assert_memory_equal(b->data, "a\0b", 4);
    pthread_t threads[4];
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_drop, b), 0);
    }
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(b->refs, 1);
    assert_null(blob_unref(NULL));
    CLEANUP(blob_unref) struct blob *empty = blob_new(NULL, 0);
    assert_int_equal(empty->size, 0);
    assert_int_equal(empty->data[0], 0);
}

static void cleanup_and_take_hand_over(void **state)
{
    char *kept;
    {
        CLEANUP_FREE char *s = xstrdup("x");
        kept = TAKE(s);
        assert_null(s);
    }
    assert_string_equal(kept, "x");
    free(kept);
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    int out;
    {
        CLEANUP(fd_close) int in = fds[0];
        int w = fds[1];
        out = fd_take(&w);
        assert_int_equal(w, -1);
        assert_true(in >= 0);
    }
    assert_int_equal(fcntl(fds[0], F_GETFD), -1);
    assert_true(fcntl(out, F_GETFD) >= 0);
    errno = EXDEV;
    assert_int_equal(fd_close(out), -1);
    assert_int_equal(fd_close(-1), -1);
    assert_int_equal(errno, EXDEV);
    assert_int_equal(fcntl(out, F_GETFD), -1);
}

/* In a build with sanitizers, as tests and fuzzers have it. */
static void undefined_behaviour_ends_the_process(void **state)
{
#ifdef __SANITIZE_ADDRESS__
    pid_t pid = fork();
    if (pid == 0) {
        volatile int largest = INT_MAX;
        close(STDERR_FILENO); /* Its report would look like a failure. */
        largest = largest + 1;
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_not_equal(status, 0);
#else
    LEAVE_OUT("only a build with sanitizers ends so");
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocations_of_nothing_are_something),
        cmocka_unit_test(copies_are_exact),
        cmocka_unit_test(arrays_grow_by_doubling),
        cmocka_unit_test(overflow_ends_the_process),
        cmocka_unit_test(blobs_are_shared_between_threads),
        cmocka_unit_test(cleanup_and_take_hand_over),
        cmocka_unit_test(undefined_behaviour_ends_the_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
