/* SPDX-License-Identifier: Apache-2.0 */
#include "oauth/redirect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void a_redirect_is_equal_to_or_below_a_registered_one(void **state)
{
    static const struct {
        const char *registered, *given;
        bool matches;
    } cases[] = {
        {"https://a.example/cb", "https://a.example/cb", true},
        {"https://a.example/cb", "https://a.example/cb/x", true},
        {"https://a.example/cb/", "https://a.example/cb/x?y=z", true},
        {"https://a.example", "https://a.example/", true},
        {"https://a.example", "https://a.example/any/path", true},
        {"https://A.example/cb", "HTTPS://a.EXAMPLE/cb", true},
        {"https://a.example:443/cb", "https://a.example/cb", true},
        {"https://a.example/cb", "https://a.example/cbx", false},
        {"https://a.example/cb", "https://a.example/CB", false},
        {"https://a.example/cb/x", "https://a.example/cb", false},
        {"https://a.example/cb", "http://a.example/cb", false},
        {"https://a.example/cb", "https://a.example:444/cb", false},
        {"https://a.example/cb", "https://a.example.evil.example/cb", false},
        {"https://a.example/cb", "https://evil.example/https://a.example/cb", false},
        {"https://a.example/cb", "https://a.example@evil.example/cb", false},
        {"https://a.example/cb", "https://a.example\\@evil.example/cb", false},
        {"https://a.example/cb", "https://a.example/cb#x", false},
        {"https://a.example/cb", "https://a.example/cb/../x", false},
        {"https://a.example/cb", "https://a.example/cb/%2e%2E/x", false},
        {"https://a.example/cb", "https://a.example/cb/.%2e", false},
        {"https://a.example/cb", "https://a.example/cb%2f..%2fx", false},
        {"https://a.example/cb", "https://a.example/cb/\r\nX: y", false},
        {"https://a.example/cb", "//a.example/cb", false},
        {"https://a.example/cb", "/cb", false},
        {"https://a.example/cb", "", false},
        {"http://127.0.0.1/callback", "http://127.0.0.1:40000/callback", true},
        {"http://[::1]/callback", "http://[::1]:40000/callback", true},
        {"http://127.0.0.1/callback", "http://127.0.0.1:40000/other", false},
        {"http://127.0.0.1/callback", "https://127.0.0.1:40000/callback", false},
        {"http://127.0.0.1/callback", "http://127.0.0.1.evil.example/callback", false},
        {"http://localhost/callback", "http://localhost:40000/callback", false},
        {"urn:ietf:wg:oauth:2.0:oob", "urn:ietf:wg:oauth:2.0:oob", true},
        {"urn:ietf:wg:oauth:2.0:oob", "urn:ietf:wg:oauth:2.0:oob/x", false},
        {"com.example.app:/cb", "com.example.app:/cb", true},
        {"javascript:alert(1)", "javascript:alert(1)", false},
        {"data:text/html,x", "data:text/html,x", false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        if (oauth_redirect_matches(cases[i].registered, cases[i].given) != cases[i].matches) {
            fail_msg("%s for %s", cases[i].given, cases[i].registered);
        }
    }
}

static void one_of_a_list_is_enough(void **state)
{
    char *list[] = {(char *) "https://a.example/", (char *) "https://b.example/", NULL};
    assert_true(oauth_redirect_is_allowed(list, "https://b.example/x"));
    assert_false(oauth_redirect_is_allowed(list, "https://c.example/x"));
    assert_false(oauth_redirect_is_allowed(list + 2, "https://a.example/"));
    assert_false(oauth_redirect_is_allowed(NULL, "https://a.example/"));
}

static void an_error_names_the_reason(void **state)
{
    static const struct {
        const char *uri, *error;
    } cases[] = {
        {"cb", "is not absolute: it must begin with a scheme such as https://"},
        {"https://", "has no host"},
        {"https:/x", "has no host"},
        {"https://a/x#y", "has a fragment"},
        {"https://u@a/", "has a user name"},
        {"https://a:0/", "has a port that is not in 1-65535"},
        {"https://a:70000/", "has a port that is not in 1-65535"},
        {"https://a/./x", "has a segment \".\" or \"..\""},
        {"https://a/%zz", "has an invalid escape"},
        {"javascript:x", "has the scheme \"javascript\""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct oauth_uri u = {0};
        struct err e = {0};
        assert_int_equal(oauth_uri_parse(cases[i].uri, &u, &e), -EINVAL);
        assert_string_equal(e.text, cases[i].error);
    }
}

static void then_stays_on_this_server(void **state)
{
    static const char *const good[] = {"/", "/oauth/authorize?x=https://evil.example", "/a//b"};
    static const char *const bad[] = {
        "",           "x",     "//evil.example", "/\\evil.example", "\\/x",
        "https://x/", "/a\\b", "/a\nb",          "/\t/evil.example"};
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        assert_true(oauth_then_is_local(good[i]));
    }
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_false(oauth_then_is_local(bad[i]));
    }
    assert_true(
        oauth_then_is_for_logout("https://c.example/console/x", "https://c.example/console"));
    assert_false(
        oauth_then_is_for_logout("https://e.example/console", "https://c.example/console"));
    assert_false(oauth_then_is_for_logout("https://e.example/", NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_redirect_is_equal_to_or_below_a_registered_one),
        cmocka_unit_test(one_of_a_list_is_enough),
        cmocka_unit_test(an_error_names_the_reason),
        cmocka_unit_test(then_stays_on_this_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
