/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/timeutil.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

LOG_MODULE("one");

static int pipe_fds[2];

static int redirect(void **state)
{
    if (pipe2(pipe_fds, O_NONBLOCK | O_CLOEXEC) < 0) {
        return -1;
    }
    log_set_fd(pipe_fds[1]);
    return log_set_levels("info", NULL);
}

static int restore(void **state)
{
    log_set_fd(STDERR_FILENO);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    return 0;
}

/* All that was logged since the last call. */
static const char *logged(void)
{
    static char buf[65536];
    ssize_t n = read(pipe_fds[0], buf, sizeof buf - 1);
    buf[n > 0 ? n : 0] = '\0';
    return buf;
}

static void a_line_has_time_level_module_text_and_fields(void **state)
{
    errno = EXDEV;
    log_info("pod attached", "pod=%s ms=%d", "red/web", 3);
    assert_int_equal(errno, EXDEV);
    const char *line = logged();
    assert_true(strlen(line) > 25);
    assert_string_equal(line + 24, " INFO one: pod attached pod=red/web ms=3\n");
    char stamp[25];
    memcpy(stamp, line, 24);
    stamp[24] = '\0';
    int64_t ms;
    assert_int_equal(time_parse(stamp, &ms), 0);
    assert_true(time_wall_ms() - ms < 60000);
    log_error("no fields", "");
    assert_string_equal(logged() + 24, " ERROR one: no fields\n");
}

static void values_cannot_forge_lines(void **state)
{
    log_warn("event", "name=%s", "a\nb\x1b[31m\x7f\tü");
    assert_string_equal(logged() + 24,
                        " WARN one: event name=a\\x0ab\\x1b[31m\\x7f\\x09\xc3\xbc\n");
}

static void long_lines_are_cut_and_still_end(void **state)
{
    char value[5000];
    memset(value, 'x', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    log_info("event", "value=%s", value);
    const char *line = logged();
    assert_true(strlen(line) < 2048);
    assert_true(str_has_suffix(line, "x\n"));
    assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
    memset(value, '\n', sizeof value - 1);
    log_info("event", "value=%s", value);
    line = logged();
    assert_true(strlen(line) < 2049);
    assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
}

static void levels_are_set_for_all_or_for_a_module(void **state)
{
    log_debug("hidden", "");
    assert_string_equal(logged(), "");
    assert_int_equal(log_set_levels("error,one=debug", NULL), 0);
    log_debug("shown", "");
    assert_non_null(strstr(logged(), " DEBUG one: shown\n"));
    assert_int_equal(log_set_levels("two=debug,warn", NULL), 0);
    log_info("hidden", "");
    log_warn("shown", "");
    const char *text = logged();
    assert_null(strstr(text, "hidden"));
    assert_non_null(strstr(text, "shown"));
    /* What is wrong changes nothing. */
    char bad[64] = "";
    assert_int_equal(log_set_levels("info,one=loud", bad), -EINVAL);
    assert_string_equal(bad, "one=loud");
    assert_int_equal(log_set_levels("verbose", bad), -EINVAL);
    assert_string_equal(bad, "verbose");
    log_info("hidden", "");
    assert_string_equal(logged(), "");
}

static void repeated_lines_are_held_back_and_counted(void **state)
{
    struct log_limit limit = {.burst = 3};
    for (int i = 0; i < 10; i++) {
        log_limited(&limit, LOG_WARN, "again", "i=%d", i);
    }
    const char *text = logged();
    assert_non_null(strstr(text, "again i=2\n"));
    assert_null(strstr(text, "i=3"));
    /* A second later one more gets through. */
    limit.last_ms -= 1000;
    log_limited(&limit, LOG_WARN, "again", "i=%d", 10);
    log_limited(&limit, LOG_WARN, "again", "i=%d", 11);
    assert_string_equal(logged() + 24, " WARN one: again i=10 suppressed=7\n");
    /* A level that is not shown uses nothing up. */
    struct log_limit other = {.burst = 1};
    log_limited(&other, LOG_DEBUG, "hidden", "");
    log_limited(&other, LOG_INFO, "shown", "");
    assert_string_equal(logged() + 24, " INFO one: shown\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_line_has_time_level_module_text_and_fields, redirect,
                                        restore),
        cmocka_unit_test_setup_teardown(values_cannot_forge_lines, redirect, restore),
        cmocka_unit_test_setup_teardown(long_lines_are_cut_and_still_end, redirect, restore),
        cmocka_unit_test_setup_teardown(levels_are_set_for_all_or_for_a_module, redirect, restore),
        cmocka_unit_test_setup_teardown(repeated_lines_are_held_back_and_counted, redirect,
                                        restore),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
