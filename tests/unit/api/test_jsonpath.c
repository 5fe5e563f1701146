/* SPDX-License-Identifier: Apache-2.0 */
#include "api/table/jsonpath.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct json *example(void)
{
    static const char text[] =
        "{\"a\":[10,11,12,13],\"b\":{\"c\":\"x\"},\"list\":[{\"n\":\"one\",\"v\":1},"
        "{\"n\":\"two\",\"v\":2}]}";
    struct json *v = NULL;
    assert_int_equal(json_parse(text, sizeof text - 1, &v, NULL), 0);
    return v;
}

/* The values that 'path' finds, as JSON, commas between them; "error: ..." when it is wrong.  Owned. */
static char *find(const char *path)
{
    CLEANUP(json_free) struct json *v = example();
    const struct json *found[8];
    struct err e = {0};
    struct strbuf b = STRBUF_INIT;
    ssize_t n = jsonpath_find(path, v, found, ARRAY_SIZE(found), &e);
    if (n < 0) {
        strbuf_addf(&b, "error: %s", e.text);
    }
    for (ssize_t i = 0; i < n && (size_t) i < ARRAY_SIZE(found); i++) {
        strbuf_adds(&b, i ? "," : "");
        json_write(found[i], 0, &b);
    }
    strbuf_adds(&b, "");
    return strbuf_steal(&b);
}

static void a_path_finds_its_values(void **state)
{
    static const char *const rows[][2] = {
        {".b.c", "\"x\""},
        {"$.b.c", "\"x\""},
        {"['b'].c", "\"x\""},
        {".none", ""},
        {".a[0]", "10"},
        {".a[3]", "13"},
        {".a[4]", ""},
        {".a[-1]", "13"},
        {".a[-4]", "10"},
        {".a[-5]", ""},
        {".a[1:3]", "11,12"},
        {".a[:2]", "10,11"},
        {".a[2:]", "12,13"},
        {".a[0:-1]", "10,11,12"},
        {".a[-2:]", "12,13"},
        {".a[3:1]", ""},
        {".a[0:99]", "10,11,12,13"},
        {".a[*]", "10,11,12,13"},
        {".b[0]", ""},
        {".list[*].n", "\"one\",\"two\""},
        {".list[?(@.v==2)].n", "\"two\""},
        {".list[?(@.v>1)].n", "\"two\""},
        {".list[?(@.v>=1)].n", "\"one\",\"two\""},
        {".list[?(@.v<2)].n", "\"one\""},
        {".list[?(@.v<=2)].n", "\"one\",\"two\""},
        {".list[?(@.n!=\"one\")].v", "2"},
        {".list[?(@.none)].v", ""},
        {".list[?(@.n)].v", "1,2"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_FREE char *got = find(rows[i][0]);
        if (!streq(got, rows[i][1])) {
            fail_msg("%s is %s", rows[i][0], got);
        }
    }
}

static void what_is_no_path_is_refused(void **state)
{
    static const char *const rows[][2] = {
        {"", "path expected"},          {"b.c", "path expected"},
        {"{.b}", "path expected"},      {".a[1:x]", "number expected"},
        {".a[x]", "number expected"},   {".a[", "number expected"},
        {".a[1", "\"]\" expected"},     {".a[1:", "number expected"},
        {".a[1:2", "\"]\" expected"},   {".a[1.5]", "\"]\" expected"},
        {".b c", "unexpected text"},    {".a[9999999999]", "number"},
        {".a[--1]", "number expected"}, {".a[1:2:3]", "\"]\" expected"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_FREE char *got = find(rows[i][0]);
        if (!str_has_prefix(got, "error: ") || !strstr(got, rows[i][1])) {
            fail_msg("%s is %s", rows[i][0], got);
        }
    }
}

/* More than there is room for are counted. */
static void the_number_of_values_is_told(void **state)
{
    CLEANUP(json_free) struct json *v = example();
    const struct json *found[2] = {NULL};
    assert_int_equal(jsonpath_find(".a[*]", v, found, 1, NULL), 4);
    assert_non_null(found[0]);
    assert_null(found[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_finds_its_values),
        cmocka_unit_test(what_is_no_path_is_refused),
        cmocka_unit_test(the_number_of_values_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
