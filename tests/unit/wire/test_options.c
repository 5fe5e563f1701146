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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_and_values_of_each_type_are_stored),
        cmocka_unit_test(errors_name_the_key_and_the_reason),
        cmocka_unit_test(any_scalar_is_taken_when_the_table_says_so),
        cmocka_unit_test(a_shared_function_gets_the_path_of_the_row),
        cmocka_unit_test(rows_are_for_daemons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
