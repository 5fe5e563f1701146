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

/* ---- lines as JSON ---- */

#define JSON_HEAD "\"level\":\"info\",\"priority\":6,\"module\":\"one\",\"message\":\"m\","

/* The line without its time. */
static const char *logged_json(void)
{
    const char *line = logged();
    assert_true(str_has_prefix(line, "{\"time\":\""));
    return line + strlen("{\"time\":\"2026-11-21T07:29:34.123Z\",");
}

static int json_format(void **state)
{
    return redirect(state) < 0 ? -1 : log_set_format("json");
}

static int text_format(void **state)
{
    (void) log_set_format("text");
    return restore(state);
}

static void a_json_line_has_all_members(void **state)
{
    errno = EXDEV;
    log_info("m", "pod=%s ms=%d", "red/web", 3);
    assert_int_equal(errno, EXDEV);
    assert_string_equal(logged_json(),
                        JSON_HEAD "\"fields\":{\"pod\":\"red/web\",\"ms\":\"3\"}}\n");
    log_info("m");
    assert_string_equal(logged_json(), JSON_HEAD "\"fields\":{}}\n");
    log_warn("m", "error=\"%s\"", "no");
    assert_string_equal(logged_json(), "\"level\":\"warn\",\"priority\":4,\"module\":\"one\","
                                       "\"message\":\"m\",\"fields\":{\"error\":\"no\"}}\n");
}

static void a_value_stays_within_its_field(void **state)
{
    static const struct {
        const char *value, *json;
    } cases[] = {
        {"a b", "a b"},
        {"a b=c", "a b=c"},
        {"\" level=\"error", "\\\" level=\\\"error"},
        {"\\", "\\\\"},
        {"a\nb\t\x7f", "a\\u000ab\\u0009\\u007f"},
        {"\xff"
         "a",
         "\xef\xbf\xbd"
         "a"},
        {"\xc3\xa4", "\xc3\xa4"},
        {"\xc3", "\xef\xbf\xbd"},
        {"\xe2\x82\xac\xf0\x9f\x98\x80", "\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\x1e"
         "0123456789abcdefb=c",
         "\\u001e0123456789abcdefb=c"},
        {"", ""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *want =
            xasprintf(JSON_HEAD "\"fields\":{\"a\":\"%s\",\"b\":\"%s\",\"z\":\"1\"}}\n",
                      cases[i].json, cases[i].json);
        log_info("m", "a=%s b=\"%s\" z=%d", cases[i].value, cases[i].value, 1);
        assert_string_equal(logged_json(), want);
    }
}

static void a_field_without_a_name_is_a_detail(void **state)
{
    log_info("m", "%s x=1", "free text = y");
    assert_string_equal(logged_json(),
                        JSON_HEAD "\"fields\":{\"detail\":\"free text = y\",\"x\":\"1\"}}\n");
}

static void a_long_value_is_cut_and_the_object_is_whole(void **state)
{
    for (size_t size = 1900; size < 9000; size += 100) {
        CLEANUP_FREE char *value = xmalloc(size + 1);
        memset(value, 1, size); /* Each becomes six bytes. */
        value[size] = '\0';
        log_info("m", "a=%s b=%s", value, value);
        const char *line = logged_json();
        size_t n = strlen(line);
        assert_true(n < 8192);
        assert_string_equal(line + n - 4, "\"}}\n");
    }
}

static void only_known_formats_are_taken(void **state)
{
    assert_int_equal(log_set_format("xml"), -EINVAL);
    assert_int_equal(log_set_format(""), -EINVAL);
    assert_true(log_is_json());
    assert_int_equal(log_set_format("text"), 0);
    assert_false(log_is_json());
    log_info("m", "a=b");
    assert_non_null(strstr(logged(), " INFO one: m a=b\n"));
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
        cmocka_unit_test_setup_teardown(a_json_line_has_all_members, json_format, text_format),
        cmocka_unit_test_setup_teardown(a_value_stays_within_its_field, json_format, text_format),
        cmocka_unit_test_setup_teardown(a_field_without_a_name_is_a_detail, json_format,
                                        text_format),
        cmocka_unit_test_setup_teardown(a_long_value_is_cut_and_the_object_is_whole, json_format,
                                        text_format),
        cmocka_unit_test_setup_teardown(only_known_formats_are_taken, json_format, text_format),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
