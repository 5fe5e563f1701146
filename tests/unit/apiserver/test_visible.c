/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that a user may get, one by one: answers are kept until a role or binding changes. */
#include "apiserver/access/authz.h"
#include "apiserver/access/visible.h"
#include "apiserver/request/server_priv.h"
#include "harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static struct harness *h;

static int set_up(void **state)
{
    h = harness_new_secure((struct apiserver_security){0});
    free(make_namespace(h, "red"));
    free(make_namespace(h, "blue"));
    return 0;
}

static int tear_down(void **state)
{
    harness_free(h);
    return 0;
}

static const struct api_kind *projects(void)
{
    return api_kind_find("project.openshift.io", "v1", "projects");
}

#define GETS "{'verbs': ['get'], 'apiGroups': ['project.openshift.io'], 'resources': ['projects']}"

static void answers_are_kept_until_rights_change(void **state)
{
    struct security *s = h->api->security;
    CLEANUP(user_unref) struct user_info *jane = user_new("jane");
    struct visible *v = visible_ref(s, jane, projects());
    assert_false(visible_has(v, "red"));
    give_rules(h, "red", "jane", GETS);
    assert_true(visible_has(v, "red"));
    assert_false(visible_has(v, "blue"));
    /* RBAC alone, without the count of its changes: the answer is not asked for again. */
    CLEANUP(json_free) struct json *none = json_of("{'rules': []}");
    rbac_set_role(s->rbac, "red", "jane", none);
    assert_false(authz_may(s, jane, "get", "project.openshift.io", "projects", "red", "red"));
    assert_true(visible_has(v, "red"));
    put_in(h, "DELETE", "/apis/rbac.authorization.k8s.io/v1/namespaces/red/rolebindings/jane", "",
           200);
    assert_false(visible_has(v, "red"));
    /* Loaded anew. */
    give_rules(h, "blue", "jane", GETS);
    assert_true(visible_has(v, "blue"));
    rbac_set_role(s->rbac, "blue", "jane", none);
    security_changed(s, NULL, NULL);
    assert_true(visible_has(v, "blue"));
    assert_null(visible_unref(v));
    assert_int_equal(smap_size(&s->visible), 0);
}

static void users_share_answers_only_with_themselves(void **state)
{
    struct security *s = h->api->security;
    CLEANUP(user_unref) struct user_info *a = user_new("a");
    CLEANUP(user_unref) struct user_info *again = user_new("a");
    CLEANUP(user_unref) struct user_info *grouped = user_new("a");
    CLEANUP(user_unref) struct user_info *quoted_name = user_new("a\"\"g");
    user_add_group(grouped, "g");
    struct visible *v[] = {visible_ref(s, a, projects()), visible_ref(s, again, projects()),
                           visible_ref(s, grouped, projects()),
                           visible_ref(s, quoted_name, projects())};
    assert_ptr_equal(v[0], v[1]);
    assert_ptr_not_equal(v[0], v[2]);
    assert_ptr_not_equal(v[2], v[3]);
    assert_int_equal(smap_size(&s->visible), 3);
    for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
        visible_unref(v[i]);
    }
    visible_unref(NULL);
    assert_int_equal(smap_size(&s->visible), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_kept_until_rights_change),
        cmocka_unit_test(users_share_answers_only_with_themselves),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
