/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "wire/options.h"
#include "wire/yaml.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct config {
    char *name, *file, *mode, *address, *list;
    char **names;
    bool on;
    uint16_t port;
    int64_t size;
    struct ip4_prefix net;
    unsigned calls;
};

static int check_item(const char *value, struct err *e)
{
    return streq(value, "bad") ? err_set(e, -EINVAL, "\"bad\" is bad") : 0;
}

static int set_calls(void *config, const char *value, struct err *e)
{
    ((struct config *) config)->calls++;
    return 0;
}

static int set_by_path(void *config, const char *path, const char *value, struct err *e)
{
    ((struct config *) config)->calls += 10;
    return streq(path, value) ? 0 : err_set(e, -EINVAL, "\"%s\" is not %s", value, path);
}

static int read_items(void *config, const struct json *v, struct err *e)
{
    return json_is(v, JSON_ARRAY) ? err_set(e, -EINVAL, "[1].key: is wrong") : 0;
}

#define MEMBER(name) OPTION_MEMBER(struct config, name)
static const struct option_row rows[] = {
    {.path = "name", .flag = "name", .type = OPTION_TEXT, MEMBER(name), .check = check_item},
    {.path = "a.file", .flag = "file", .type = OPTION_FILE, MEMBER(file), .dflt = "/etc/x"},
    {.path = "a.mode",
     .flag = "mode",
     .type = OPTION_CHOICE,
     .choices = "auto off",
     .daemons = 1,
     MEMBER(mode)},
    {.path = "a.good", .flag = "good", .type = OPTION_BOOL, .daemons = 2, MEMBER(on)},
    {.path = "a.port",
     .flag = "port",
     .type = OPTION_NUMBER,
     MEMBER(port),
     .min = 1,
     .max = 65535,
     .dflt = "80"},
    {.path = "b.size",
     .flag = "size",
     .type = OPTION_NUMBER,
     MEMBER(size),
     .min = -5,
     .max = INT64_MAX},
    {.path = "b.address",
     .flag = "address",
     .type = OPTION_ENDPOINT,
     MEMBER(address),
     .min = 1,
     .example = "127.0.0.1:1"},
    {.path = "b.net", .flag = "net", .type = OPTION_CIDR, MEMBER(net)},
    {.path = "list",
     .flag = "list",
     .type = OPTION_LIST,
     .items = "URLs",
     .not_empty = true,
     MEMBER(list)},
    {.path = "names", .flag = "names", .type = OPTION_TEXTS, MEMBER(names), .check = check_item},
    {.path = "calls", .flag = "calls", .type = OPTION_LIST, .set = set_calls},
    {.path = "c.one", .flag = "one", .type = OPTION_TEXT, .set_path = set_by_path},
    {.path = "c.two", .flag = "two", .type = OPTION_TEXT, .set_path = set_by_path},
    {.path = "items", .read = read_items},
    {.flag = "only", .type = OPTION_TEXT, .set = set_calls},
};
static const struct option_table strict = {"TestConfig", rows, ARRAY_SIZE(rows), false};
static const struct option_table lenient = {"TestConfig", rows, ARRAY_SIZE(rows), true};

static int read_text(const struct option_table *t, struct config *c, const char *text,
                     const char *dir, struct err *e)
{
    CLEANUP(json_free) struct json *v = NULL;
    int r = yaml_parse(text, strlen(text), &v, e);
    return r < 0 ? r : options_read(t, c, v, dir, e);
}

static void defaults_and_values_of_each_type_are_stored(void **state)
{
    struct config c = {0};
    struct err e = {0};
    options_init(&strict, &c);
    assert_string_equal(c.file, "/etc/x");
    assert_int_equal(c.port, 80);
    (void) read_text(&strict, &c,
                     "apiVersion: v1\nkind: TestConfig\nname: some\n"
                     "a: {file: rel, mode: off, good: true, port: 443}\n"
                     "b: {size: -5, address: 'localhost:7', net: 10.0.0.0/8}\n"
                     "list: [left, right]\nnames: [p, q]\ncalls: [1a]\nitems: x\n",
                     "/dir", &e);
    assert_string_equal(e.text, "");
    assert_string_equal(c.name, "some");
    assert_string_equal(c.file, "/dir/rel");
    assert_string_equal(c.mode, "off"); /* YAML reads it as false. */
    assert_true(c.on && c.port == 443 && c.size == -5 && c.net.len == 8);
    assert_string_equal(c.address, "localhost:7");
    assert_string_equal(c.list, "left,right");
    assert_string_equal(c.names[1], "q");
    assert_null(c.names[2]);
    assert_int_equal(c.calls, 1);
    /* What a key has not set stays, also for null. */
    assert_int_equal(read_text(&strict, &c, "name:\na:\n", NULL, &e), 0);
    assert_string_equal(c.name, "some");
    assert_int_equal(options_set_flag(&strict, &c, "names", "", &e), 0);
    assert_non_null(c.names);
    assert_null(c.names[0]);
    assert_int_equal(options_set_flag(&strict, &c, "only", "x", &e), 0);
    assert_int_equal(c.calls, 2);
    options_done(&strict, &c);
    assert_null(c.name);
    assert_null(c.names);
}

static void errors_name_the_key_and_the_reason(void **state)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"[]", "must be a mapping of keys to values"},
        {"kind: Other", "kind: must be \"TestConfig\""},
        {"apiVersion: v2", "apiVersion: must be \"v1\""},
        {"nosuch: 1", "nosuch: unknown key"},
        {"a: {nosuch: 1}", "a.nosuch: unknown key"},
        {"a: 1", "a: must be a mapping of keys to values"},
        {"only: x", "only: unknown key"},
        {"name: 1", "name: must be a string"},
        {"name: ''", "name: must not be empty"},
        {"name: bad", "name: \"bad\" is bad"},
        {"a: {mode: on}", "a.mode: must be a string"},
        {"a: {mode: x}", "a.mode: \"x\" is not one of auto, off"},
        {"a: {mode: aut}", "a.mode: \"aut\" is not one of auto, off"},
        {"a: {good: x}", "a.good: \"x\" is neither true nor false"},
        {"a: {good: []}", "a.good: must be true or false"},
        {"a: {port: 0}", "a.port: 0 is not in 1-65535"},
        {"a: {port: 1.5}", "a.port: must be a whole number"},
        {"a: {port: '1'}", "a.port: must be a whole number"},
        {"b: {size: 9223372036854775808}", "b.size: must be a whole number"},
        {"b: {address: 10.0.0.1}",
         "b.address: \"10.0.0.1\" is not an IPv4 address and port such as 127.0.0.1:1"},
        {"b: {address: '10.0.0.1:0'}",
         "b.address: \"10.0.0.1:0\" is not an IPv4 address and port such as 127.0.0.1:1"},
        {"b: {net: 10.0.0.1/8}",
         "b.net: \"10.0.0.1/8\" has bits set below its length; did you mean 10.0.0.0/8"},
        {"list: x", "list: must be a list of URLs"},
        {"list: []", "list: must be a list of URLs"},
        {"list: [a, 'b,c']", "list[1]: must be a string without commas"},
        {"names: {}", "names: must be a list of strings"},
        {"names: [a, bad]", "names: \"bad\" is bad"},
        {"items: []", "items[1].key: is wrong"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct config c = {0};
        struct err e = {0};
        options_init(&strict, &c);
        assert_int_equal(read_text(&strict, &c, cases[i].text, NULL, &e), -EINVAL);
        assert_string_equal(e.text, cases[i].error);
        assert_int_equal(read_text(&strict, &c, cases[i].text, NULL, NULL), -EINVAL);
        options_done(&strict, &c);
    }
    static const struct {
        const char *flag, *value, *error;
    } flags[] = {
        {"nosuch", "x", "--nosuch: unknown option"},
        {"port", "x", "--port: \"x\" is not a whole number"},
        {"list", "", "--list: must not be empty"},
        {"list", "a,,b", "--list: \"a,,b\" has an empty item"},
        {"file", "", "--file: must not be empty"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
        struct config c = {0};
        struct err e = {0};
        assert_int_equal(options_set_flag(&strict, &c, flags[i].flag, flags[i].value, &e), -EINVAL);
        assert_string_equal(e.text, flags[i].error);
        options_done(&strict, &c);
    }
}

static void any_scalar_is_taken_when_the_table_says_so(void **state)
{
    struct config c = {0};
    struct err e = {0};
    assert_int_equal(read_text(&lenient, &c, "{name: 7, a: {port: '9'}, list: 'x,y'}", NULL, &e),
                     0);
    assert_string_equal(c.name, "7");
    assert_int_equal(c.port, 9);
    assert_string_equal(c.list, "x,y");
    assert_int_equal(read_text(&lenient, &c, "a: {port: x}", NULL, &e), -EINVAL);
    assert_string_equal(e.text, "a.port: must be a whole number");
    options_done(&lenient, &c);
}

static void a_shared_function_gets_the_path_of_the_row(void **state)
{
    struct config c = {0};
    struct err e = {0};
    assert_int_equal(read_text(&strict, &c, "c: {one: c.one, two: c.two}", NULL, &e), 0);
    assert_int_equal(options_set_flag(&strict, &c, "two", "c.two", &e), 0);
    assert_int_equal(c.calls, 30);
    assert_int_equal(options_set_flag(&strict, &c, "two", "c.one", &e), -EINVAL);
    assert_string_equal(e.text, "--two: \"c.one\" is not c.two");
    options_done(&strict, &c);
}

static void rows_are_for_daemons(void **state)
{
    const struct option_row *mode = options_find(&strict, "a.mode");
    const struct option_row *on = options_find(&strict, "a.good");
    const struct option_row *name = options_find(&strict, "name");
    assert_true(option_is_for(mode, 1) && !option_is_for(mode, 2) && option_is_for(mode, 3));
    assert_true(option_is_for(on, 2) && option_is_for(on, 0));
    assert_true(option_is_for(name, 1) && option_is_for(name, 2));
    assert_null(options_find(&strict, "a"));
}

/* ---- keys of other programs' files ---- */

struct other {
    unsigned seconds;
    char *list, *file;
    struct option_findings findings;
};
static const struct option_row other_rows[] = {
    {.path = "own.seconds",
     .flag = "seconds",
     .type = OPTION_NUMBER,
     OPTION_MEMBER(struct other, seconds),
     .min = 1,
     .max = 100},
    {.path = "own.list", .flag = "list", .type = OPTION_LIST, OPTION_MEMBER(struct other, list)},
    {.path = "own.file", .flag = "file", .type = OPTION_FILE, OPTION_MEMBER(struct other, file)},
    {.path = "flags", .type = OPTION_TEXTS, .set = set_calls},
};
static const struct option_alias other_alias[] = {
    {"theirs.period", "own.seconds", true}, {"theirs.names", "own.list", false}, {0}};
static const struct option_idle other_idle[] = {
    {"idle", "has no effect", NULL},
    {"theirs", "stands for nothing", NULL},
    {"flags.known", "is not here", NULL},
    {"never", "cannot be on", "false"},
    {0},
};
static const struct option_table other = {.kind = "Own",
                                          .rows = other_rows,
                                          .n = ARRAY_SIZE(other_rows),
                                          .other_kind = "Theirs",
                                          .alias = other_alias,
                                          .idle = other_idle,
                                          .arguments = "flags",
                                          .findings = offsetof(struct other, findings)};

static int read_other(struct other *c, const char *text, struct err *e)
{
    CLEANUP(json_free) struct json *v = NULL;
    int r = yaml_parse(text, strlen(text), &v, e);
    return r < 0 ? r : options_read(&other, c, v, "/dir", e);
}

static void keys_of_other_files_set_rows_or_are_warned_of(void **state)
{
    struct other c = {0};
    struct err e = {0};
    if (read_other(&c,
                   "kind: Theirs\ntheirs: {period: [1s, 1m10s], names: [a, \"b,c\"], more: [x]}\n"
                   "idle: {a: {b: 1}}\nnever: true\nflags: {file: [one, two], known: [x]}\n"
                   "own: {file: ''}\n",
                   &e) < 0) {
        fail_msg("%s", e.text);
    }
    assert_int_equal(c.seconds, 70);
    assert_string_equal(c.list, "a,b,c");
    assert_string_equal(c.file, "/dir/two");
    static const char *const want[] = {"theirs.more: stands for nothing", "idle: has no effect",
                                       "never: cannot be on", "flags.known: is not here"};
    assert_int_equal(c.findings.n, ARRAY_SIZE(want));
    for (size_t i = 0; i < c.findings.n; i++) {
        CLEANUP_FREE char *text =
            xasprintf("%s: %s", c.findings.list[i].path, c.findings.list[i].text);
        assert_string_equal(text, want[i]);
        assert_false(c.findings.list[i].is_error);
    }
    options_done(&other, &c);
    assert_int_equal(c.findings.n, 0);
}

static void values_with_which_nothing_is_lost_are_quiet(void **state)
{
    static const char *const texts[] = {"idle: null", "idle: ''",     "idle: []",
                                        "idle: {}",   "never: false", "theirs: {more: null}"};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct other c = {0};
        struct err e = {0};
        assert_int_equal(read_other(&c, texts[i], &e), 0);
        assert_int_equal(c.findings.n, 0);
        options_done(&other, &c);
    }
}

static void wrong_keys_of_other_files_are_refused_with_a_suggestion(void **state)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"kind: Others", "kind: must be \"Own\""},
        {"own: {second: 1}", "own.second: unknown key; did you mean own.seconds?"},
        {"seconds: 1", "seconds: unknown key; did you mean own.seconds?"},
        {"colour: 1", "colour: unknown key"},
        {"flags: {fil: [x]}", "flags.fil: unknown key; did you mean file?"},
        {"flags: {colour: [x]}", "flags.colour: unknown key"},
        {"flags: [x]", "flags: must be a mapping of keys to values"},
        {"flags: {file: [1]}", "flags.file[0]: must be a string"},
        {"theirs: {period: [1]}", "theirs.period[0]: must be a string"},
        {"theirs: {period: [1500ms]}",
         "theirs.period[0]: \"1500ms\" is not whole seconds such as 40s or 1m30s"},
        {"theirs: {period: [3m]}", "theirs.period[0]: 180 is not in 1-100"},
        {"theirs: {names: [a, 1]}", "theirs.names[1]: must be a string"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct other c = {0};
        struct err e = {0};
        assert_int_equal(read_other(&c, cases[i].text, &e), -EINVAL);
        assert_string_equal(e.text, cases[i].want);
        options_done(&other, &c);
    }
}

static void a_check_goes_on_after_an_error(void **state)
{
    static const char text[] = "own: {second: 1, seconds: 0}\nidle: 1\nown2: 3\n";
    struct other c = {0};
    struct option_findings f = {0};
    CLEANUP(json_free) struct json *v = NULL;
    assert_int_equal(yaml_parse(text, strlen(text), &v, NULL), 0);
    options_check(&other, &c, v, NULL, &f);
    assert_int_equal(f.n, 4);
    assert_string_equal(f.list[0].path, "own.second");
    assert_string_equal(f.list[1].text, "0 is not in 1-100");
    assert_false(f.list[2].is_error);
    assert_true(f.list[3].is_error);
    option_findings_done(&f);
    options_check(&other, &c, NULL, NULL, &f);
    assert_int_equal(f.n, 1);
    assert_string_equal(f.list[0].text, "must be a mapping of keys to values");
    assert_string_equal(f.list[0].path, "");
    option_findings_done(&f);
    options_done(&other, &c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_and_values_of_each_type_are_stored),
        cmocka_unit_test(errors_name_the_key_and_the_reason),
        cmocka_unit_test(any_scalar_is_taken_when_the_table_says_so),
        cmocka_unit_test(a_shared_function_gets_the_path_of_the_row),
        cmocka_unit_test(rows_are_for_daemons),
        cmocka_unit_test(keys_of_other_files_set_rows_or_are_warned_of),
        cmocka_unit_test(values_with_which_nothing_is_lost_are_quiet),
        cmocka_unit_test(wrong_keys_of_other_files_are_refused_with_a_suggestion),
        cmocka_unit_test(a_check_goes_on_after_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
