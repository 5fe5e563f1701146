/* SPDX-License-Identifier: Apache-2.0 */
/* Scopes: the form of one, and lists of them. */
#include "oauth/scope.h"

#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void the_scopes_of_users_are_known(void **state)
{
    static const char *const texts[] = {
        [OAUTH_SCOPE_INFO] = "user:info",
        [OAUTH_SCOPE_CHECK_ACCESS] = "user:check-access",
        [OAUTH_SCOPE_LIST_SCOPED_PROJECTS] = "user:list-scoped-projects",
        [OAUTH_SCOPE_LIST_PROJECTS] = "user:list-projects",
        [OAUTH_SCOPE_FULL] = "user:full",
    };
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct oauth_scope s;
        assert_int_equal(oauth_scope_parse(texts[i], &s), 0);
        assert_int_equal(s.type, i);
        assert_null(s.role);
        assert_null(oauth_check_scope(texts[i]));
    }
}

static void a_role_is_all_but_the_last_part(void **state)
{
    static const struct {
        const char *text, *role, *namespace;
        bool escalating;
    } rows[] = {
        {"role:view:red", "view", "red", false},
        {"role:view:red:!", "view", "red", true},
        {"role:view:*", "view", "*", false},
        {"role:system:image-puller:red", "system:image-puller", "red", false},
        {"role:system:image-puller:*:!", "system:image-puller", "*", true},
        {"role:a::b", "a:", "b", false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct oauth_scope s;
        assert_int_equal(oauth_scope_parse(rows[i].text, &s), 0);
        assert_int_equal(s.type, OAUTH_SCOPE_ROLE);
        assert_int_equal(s.role_size, strlen(rows[i].role));
        assert_memory_equal(s.role, rows[i].role, s.role_size);
        assert_int_equal(s.namespace_size, strlen(rows[i].namespace));
        assert_memory_equal(s.namespace, rows[i].namespace, s.namespace_size);
        assert_int_equal(s.escalating, rows[i].escalating);
    }
}

static void other_texts_are_no_scopes(void **state)
{
    static const char *const bad[] = {
        "",           "user",        "user:",          "user:Full",     "user:full ",
        " user:full", "user:full:!", "role",           "role:",         "role::",
        "role:view",  "role:view:",  "role:view::!",   "role::red",     "role::red:!",
        "role:!",     "role::!",     "role:view:!",    "ROLE:view:red", "role:vi\"ew:red",
        "role:a\\:b", "role:\xc3:b", "user:info\tall", "user:info\x7f",
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct oauth_scope s = {.type = OAUTH_SCOPE_FULL, .role = bad[i]};
        if (oauth_scope_parse(bad[i], &s) != -EINVAL || !oauth_check_scope(bad[i])) {
            fail_msg("\"%s\" is accepted", bad[i]);
        }
        assert_ptr_equal(s.role, bad[i]);
    }
}

static void check_list(struct json *list, const char *text)
{
    CLEANUP_FREE char *joined = oauth_scopes_join(list);
    assert_string_equal(joined, text);
    json_free(list);
}

static void a_parameter_has_each_scope_once(void **state)
{
    check_list(oauth_scopes_split(NULL), "");
    check_list(oauth_scopes_split("   "), "");
    check_list(oauth_scopes_split(" b  a b c a "), "b a c");
    check_list(oauth_scopes_split("aa a"), "aa a");
}

static void a_union_is_sorted(void **state)
{
    CLEANUP(json_free) struct json *a = oauth_scopes_split("user:info role:a:b");
    CLEANUP(json_free) struct json *b = oauth_scopes_split("user:info user:check-access");
    check_list(oauth_scopes_union(a, b), "role:a:b user:check-access user:info");
    check_list(oauth_scopes_union(NULL, NULL), "");
    check_list(oauth_scopes_union(a, NULL), "role:a:b user:info");
}

static void only_the_same_scope_or_full_covers(void **state)
{
    static const struct {
        const char *has, *wanted, *left;
        bool covers;
    } rows[] = {
        {"user:full", "", "", true},
        {"user:full", "role:admin:*:! user:info", "", true},
        {"user:info", "", "", false},
        {"", "", "", false},
        {"", "user:info", "user:info", false},
        {"user:info", "user:info", "", true},
        {"user:info", "user:full", "user:full", false},
        {"user:info user:check-access", "user:check-access", "", true},
        {"role:view:*", "role:view:red", "role:view:red", false},
        {"role:view:red:!", "role:view:red", "role:view:red", false},
        {"role:view:red", "user:info role:view:red:!", "user:info role:view:red:!", false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(json_free) struct json *has = oauth_scopes_split(rows[i].has);
        CLEANUP(json_free) struct json *wanted = oauth_scopes_split(rows[i].wanted);
        assert_int_equal(oauth_scopes_cover(has, wanted), rows[i].covers);
        check_list(oauth_scopes_minus(wanted, has), rows[i].left);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_scopes_of_users_are_known),
        cmocka_unit_test(a_role_is_all_but_the_last_part),
        cmocka_unit_test(other_texts_are_no_scopes),
        cmocka_unit_test(a_parameter_has_each_scope_once),
        cmocka_unit_test(a_union_is_sorted),
        cmocka_unit_test(only_the_same_scope_or_full_covers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
