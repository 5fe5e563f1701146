/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/location.h"

#include "base/mem.h"

#include <setjmp.h>

#include <cmocka.h>

static const struct location base = {
    .host = (char *) "10.0.0.1", .port = 8080, .path = (char *) "/b/c/d;p?q"};

static void references_are_resolved(void **state)
{
    static const struct {
        const char *text, *url;
    } rows[] = {
        /* RFC 3986, 5.4. */
        {"g", "http://10.0.0.1:8080/b/c/g"},
        {"./g", "http://10.0.0.1:8080/b/c/g"},
        {"g/", "http://10.0.0.1:8080/b/c/g/"},
        {"/g", "http://10.0.0.1:8080/g"},
        {"//g", "http://g:80/"},
        {"?y", "http://10.0.0.1:8080/b/c/d;p?y"},
        {"g?y", "http://10.0.0.1:8080/b/c/g?y"},
        {"#s", "http://10.0.0.1:8080/b/c/d;p?q"},
        {"g?y#s", "http://10.0.0.1:8080/b/c/g?y"},
        {";x", "http://10.0.0.1:8080/b/c/;x"},
        {".", "http://10.0.0.1:8080/b/c/"},
        {"..", "http://10.0.0.1:8080/b/"},
        {"../g", "http://10.0.0.1:8080/b/g"},
        {"../..", "http://10.0.0.1:8080/"},
        {"../../../g", "http://10.0.0.1:8080/g"},
        {"/./g", "http://10.0.0.1:8080/g"},
        {"/../g", "http://10.0.0.1:8080/g"},
        {"g.", "http://10.0.0.1:8080/b/c/g."},
        {"..g", "http://10.0.0.1:8080/b/c/..g"},
        {"./g/.", "http://10.0.0.1:8080/b/c/g/"},
        {"g;x=1/../y", "http://10.0.0.1:8080/b/c/y"},
        {"g?y/../x", "http://10.0.0.1:8080/b/c/g?y/../x"},
        /* With a host. */
        {"https://10.0.0.1/x", "https://10.0.0.1:443/x"},
        {"HTTP://other:81", "http://other:81/"},
        {"http://other?a", "http://other:80/?a"},
        {"http://other:/a", "http://other:80/a"},
        {"http://[2001:db8::1]:82/", "http://[2001:db8::1]:82/"},
        {"//other:81/a/../b", "http://other:81/b"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct location l;
        assert_int_equal(location_resolve(&base, rows[i].text, &l, NULL), 0);
        CLEANUP_FREE char *url =
            xasprintf("%s://%s:%u%s", l.https ? "https" : "http", l.host, l.port, l.path);
        assert_string_equal(url, rows[i].url);
        location_done(&l);
    }
}

static void what_is_no_address_of_http_is_refused(void **state)
{
    static const char *const rows[] = {
        "",           "ftp://10.0.0.1/", "http:",           "http:g",         "g:h",
        "/a b",       "/a\r\nX: y",      "/\x80",           "http://",        "http:///x",
        "http://u@h", "http://h:0/",     "http://h:65536/", "http://h:port/", "//:80/",
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct location l = {.port = 7};
        struct err e = {0};
        assert_int_equal(location_resolve(&base, rows[i], &l, &e), -EINVAL);
        assert_int_equal(l.port, 7);
        assert_true(*e.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(references_are_resolved),
        cmocka_unit_test(what_is_no_address_of_http_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
