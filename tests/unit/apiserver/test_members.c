/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of users by Group objects. */
#include "apiserver/access/members.h"
#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A group whose members are the words of 'users'. */
static void set_group(struct members *m, const char *name, const char *users)
{
    CLEANUP(json_free) struct json *o = json_object();
    struct json *list = json_ensure_array(o, "users");
    for (size_t n; *users; users += n + (users[n] == ' ')) {
        n = strcspn(users, " ");
        json_append(list, json_string_n(users, n));
    }
    members_set_group(m, name, o);
}

static void expect(const struct members *m, const char *user, const char *want)
{
    CLEANUP(user_unref) struct user_info *u = user_new(user);
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    user_add_group(u, "own");
    members_add_groups(m, u);
    for (size_t i = 0; i < u->n_groups; i++) {
        strbuf_addf(&b, "%s%s", i ? " " : "", u->groups[i]);
    }
    assert_string_equal(strbuf_cstr(&b), want);
}

static void a_member_has_the_group_until_it_leaves(void **state)
{
    struct members *m = members_new();
    expect(m, "jane", "own");
    set_group(m, "dev", "jane joe");
    set_group(m, "ops", "jane");
    expect(m, "jane", "own dev ops");
    expect(m, "joe", "own dev");
    expect(m, "jan", "own");
    set_group(m, "dev", "joe");
    expect(m, "jane", "own ops");
    expect(m, "joe", "own dev");
    members_set_group(m, "dev", NULL);
    members_set_group(m, "ops", NULL);
    members_set_group(m, "ops", NULL);
    expect(m, "jane", "own");
    expect(m, "joe", "own");
    assert_null(members_free(m));
    assert_null(members_free(NULL));
}

static void a_group_is_had_once(void **state)
{
    struct members *m = members_new();
    set_group(m, "dev", "jane jane joe jane");
    set_group(m, "own", "jane");
    expect(m, "jane", "own dev");
    set_group(m, "dev", "joe");
    expect(m, "jane", "own");
    members_free(m);
}

/* Objects with such names may be in the store: another program wrote them. */
static void names_of_the_system_never_count(void **state)
{
    static const char *const groups[] = {"system:masters",
                                         "system:cluster-admins",
                                         "system:nodes",
                                         "system:x",
                                         "system:authenticated",
                                         "system:authenticated:oauth",
                                         "a:b",
                                         "~",
                                         "a/b",
                                         "b64:YTpi"};
    struct members *m = members_new();
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        set_group(m, groups[i], "jane");
        expect(m, "jane", "own");
    }
    set_group(m, "dev", "system:anonymous system:admin system:serviceaccount:red:default ~ jane");
    expect(m, "system:anonymous", "own");
    expect(m, "system:admin", "own");
    expect(m, "system:serviceaccount:red:default", "own");
    expect(m, "~", "own");
    expect(m, "jane", "own dev");
    members_free(m);
}

static void a_damaged_object_has_no_members(void **state)
{
    static const char *const texts[] = {"{}", "{\"users\":7}", "{\"users\":{\"a\":1}}",
                                        "{\"users\":[7,null,[\"jane\"],\"\"]}", "[\"jane\"]"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct members *m = members_new();
        CLEANUP(json_free) struct json *o = NULL;
        assert_int_equal(json_parse(texts[i], strlen(texts[i]), &o, NULL), 0);
        set_group(m, "dev", "jane");
        members_set_group(m, "dev", o);
        expect(m, "jane", "own");
        members_free(m);
    }
}

static void a_kept_user_gets_the_groups_of_now(void **state)
{
    struct members *m = members_new();
    set_group(m, "dev", "jane");
    CLEANUP(user_unref) struct user_info *jane = user_new("jane");
    user_add_group(jane, "own");
    user_add_extra(jane, "k", "v");
    members_add_groups(m, jane);
    assert_true(user_in_group(jane, "dev"));
    members_set_group(m, "dev", NULL);
    set_group(m, "ops", "jane");
    CLEANUP(user_unref) struct user_info *now = members_renew(m, jane);
    assert_false(user_in_group(now, "dev"));
    assert_true(user_in_group(now, "ops") && user_in_group(now, "own"));
    assert_int_equal(now->n_groups, 2);
    assert_non_null(now->extra);
    /* Given groups are all that such a user has. */
    CLEANUP(user_unref) struct user_info *given = user_new("jane");
    user_add_group(given, "own");
    CLEANUP(user_unref) struct user_info *same = members_renew(m, given);
    assert_ptr_equal(same, given);
    assert_int_equal(given->n_groups, 1);
    members_free(m);
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_member_has_the_group_until_it_leaves), T(a_group_is_had_once),
        T(names_of_the_system_never_count),        T(a_damaged_object_has_no_members),
        T(a_kept_user_gets_the_groups_of_now),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
