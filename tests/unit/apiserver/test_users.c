/* SPDX-License-Identifier: Apache-2.0 */
/* users/~, mappings of identities to users, and the rights of members of groups. */
#include "api/kind.h"
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

#define PATH "/apis/user.openshift.io/v1/"
#define MAPPINGS PATH "useridentitymappings"
#define MAP(identity, user) "{'identity': {'name': '" identity "'}, 'user': {'name': '" user "'}}"
#define REVIEW "/apis/authentication.k8s.io/v1/selfsubjectreviews"

static struct harness *h;

static int set_up(void **state)
{
    h = harness_new_secure((struct apiserver_security){.anonymous = true});
    give_self_reviews(h);
    return 0;
}

static int tear_down(void **state)
{
    harness_free(h);
    return 0;
}

static void make_user(const char *name)
{
    CLEANUP_FREE char *body = xasprintf("{'metadata': {'name': '%s'}}", name);
    put_in(h, "POST", PATH "users", body, 201);
}

static void make_identity(const char *provider, const char *name)
{
    CLEANUP_FREE char *body =
        xasprintf("{'providerName': '%s', 'providerUserName': '%s'}", provider, name);
    put_in(h, "POST", PATH "identities", body, 201);
}

static void make_group(const char *name, const char *users)
{
    CLEANUP_FREE char *body = xasprintf("{'metadata': {'name': '%s'}, 'users': [%s]}", name, users);
    put_in(h, "POST", PATH "groups", body, 201);
}

/* The list at 'path' of the object, its texts with blanks between; owned. */
static char *list_of(const char *object, const char *path)
{
    CLEANUP_FREE char *url = xasprintf(PATH "%s", object);
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", url, NULL, 200);
    struct strbuf b = STRBUF_INIT;
    const struct json *item;
    JSON_FOREACH (item, json_get(a.body, path)) {
        strbuf_addf(&b, "%s%s", b.size ? " " : "", json_get_string(item));
    }
    strbuf_addc(&b, '\0');
    return strbuf_steal(&b);
}

static void expect_list(const char *object, const char *path, const char *want)
{
    CLEANUP_FREE char *got = list_of(object, path);
    assert_string_equal(got, want);
}

/* The user to which the identity says that it belongs; "" : none. */
static void expect_user(const char *identity, const char *want)
{
    CLEANUP_FREE char *url = xasprintf(PATH "identities/%s", identity);
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", url, NULL, 200);
    assert_string_equal(at(&a, "user.name"), want);
    assert_int_equal(*at(&a, "user.uid") != '\0', *want != '\0');
}

static void expect_mapping(const char *identity, const char *want)
{
    CLEANUP_FREE char *url = xasprintf(MAPPINGS "/%s", identity);
    CLEANUP_ANSWER struct answer a = ask(h, "GET", url, NULL);
    assert_int_equal(a.status, *want ? 200 : 404);
    assert_string_equal(at(&a, "user.name"), want);
}

static void a_mapping_is_made_moved_and_removed_in_both_objects(void **state)
{
    make_user("m1");
    make_user("m2");
    make_identity("ldap", "m");
    make_identity("github", "m");
    expect_mapping("ldap:m", "");
    CLEANUP_FREE char *body = quoted(MAP("ldap:m", "m1"));
    CLEANUP_ANSWER struct answer made = ask_ok(h, "POST", MAPPINGS, body, 201);
    CLEANUP_ANSWER struct answer identity = ask_ok(h, "GET", PATH "identities/ldap:m", NULL, 200);
    assert_string_equal(at(&made, "metadata.name"), "ldap:m");
    assert_string_equal(at(&made, "kind"), "UserIdentityMapping");
    assert_string_equal(at(&made, "metadata.resourceVersion"),
                        at(&identity, "metadata.resourceVersion"));
    assert_string_equal(at(&made, "identity.uid"), at(&identity, "metadata.uid"));
    assert_string_equal(at(&made, "user.uid"), at(&identity, "user.uid"));
    expect_list("users/m1", "identities", "ldap:m");
    expect_user("ldap:m", "m1");
    expect_mapping("ldap:m", "m1");
    /* A second mapping of the identity is refused; a second identity of the user is not. */
    put_in(h, "POST", MAPPINGS, MAP("ldap:m", "m2"), 409);
    put_in(h, "POST", MAPPINGS, MAP("ldap:m", "m1"), 409);
    put_in(h, "POST", MAPPINGS, MAP("github:m", "m1"), 201);
    expect_list("users/m1", "identities", "ldap:m github:m");
    /* The same user is no change. */
    CLEANUP_ANSWER struct answer same = ask_ok(h, "PUT", MAPPINGS "/ldap:m", body, 200);
    assert_string_equal(at(&same, "metadata.resourceVersion"),
                        at(&made, "metadata.resourceVersion"));
    /* Another one takes the identity over. */
    put_in(h, "PUT", MAPPINGS "/ldap:m", MAP("ldap:m", "m2"), 200);
    expect_list("users/m1", "identities", "github:m");
    expect_list("users/m2", "identities", "ldap:m");
    expect_user("ldap:m", "m2");
    expect_mapping("ldap:m", "m2");
    put_in(h, "DELETE", MAPPINGS "/ldap:m", "", 200);
    expect_list("users/m2", "identities", "");
    expect_user("ldap:m", "");
    expect_mapping("ldap:m", "");
    put_in(h, "DELETE", MAPPINGS "/ldap:m", "", 404);
    /* PUT makes a mapping that is not there. */
    put_in(h, "PUT", MAPPINGS "/ldap:m", MAP("ldap:m", "m2"), 201);
    expect_list("users/m2", "identities", "ldap:m");
}

static void a_mapping_needs_both_objects(void **state)
{
    make_user("n1");
    make_identity("ldap", "n");
    static const struct {
        const char *body, *field, *says;
        int status;
    } rows[] = {
        {MAP("ldap:none", "n1"), "identity.name", "referenced identity does not exist", 422},
        {MAP("ldap:n", "none"), "user.name", "referenced user does not exist", 422},
        {MAP("ldap:n", "system:admin"), "user.name", "referenced user does not exist", 422},
        {"{'identity': {'name': 'ldap:n'}}", "user.name", "Required value", 422},
        {"{'metadata': {'name': 'ldap:x'}, 'identity': {'name': 'ldap:n'}, 'user': {'name': 'n1'}}",
         "identity.name", "must match metadata.name", 422},
        {MAP("none", "n1"), "metadata.name", "<providerName>:<providerUserName>", 422},
        {"{'metadata': {'name': 'ldap:n', 'resourceVersion': '1'}, 'identity': {'name': 'ldap:n'},"
         "'user': {'name': 'n1'}}",
         "", "resourceVersion should not be set", 400},
        {"[]", "", "the body is not an object", 400},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CLEANUP_FREE char *body = quoted(rows[i].body);
        CLEANUP_ANSWER struct answer a = ask(h, "POST", MAPPINGS, body);
        if (a.status != rows[i].status || !strstr(at(&a, "message"), rows[i].says) ||
            !streq(at(&a, "details.causes.0.field"), rows[i].field)) {
            fail_msg("%s: %d %s", body, a.status, a.text);
        }
    }
    expect_list("users/n1", "identities", "");
    expect_user("ldap:n", "");
}

static void versions_and_preconditions_of_mappings_hold(void **state)
{
    make_user("v1");
    make_user("v2");
    make_identity("ldap", "v");
    CLEANUP_FREE char *body = quoted(MAP("ldap:v", "v1"));
    CLEANUP_ANSWER struct answer made = ask_ok(h, "POST", MAPPINGS, body, 201);
    CLEANUP_FREE char *right = xasprintf(
        "{'metadata': {'resourceVersion': '%s', 'uid': '%s'}, 'identity': {'name': 'ldap:v'},"
        "'user': {'name': 'v2'}}",
        at(&made, "metadata.resourceVersion"), at(&made, "metadata.uid"));
    put_in(h, "PUT", MAPPINGS "/ldap:v",
           "{'metadata': {'resourceVersion': '1'}, 'identity': {'name': 'ldap:v'},"
           "'user': {'name': 'v2'}}",
           409);
    put_in(h, "PUT", MAPPINGS "/ldap:v",
           "{'metadata': {'uid': 'other'}, 'identity': {'name': 'ldap:v'},"
           "'user': {'name': 'v2'}}",
           409);
    put_in(h, "PUT", MAPPINGS "/ldap:other", MAP("ldap:v", "v2"), 422);
    put_in(h, "DELETE", MAPPINGS "/ldap:v", "{'preconditions': {'uid': 'other'}}", 409);
    put_in(h, "DELETE", MAPPINGS "/ldap:v", "{'preconditions': {'resourceVersion': '1'}}", 409);
    /* A dry run changes nothing. */
    put_in(h, "DELETE", MAPPINGS "/ldap:v?dryRun=All", "", 200);
    put_in(h, "PUT", MAPPINGS "/ldap:v?dryRun=All", MAP("ldap:v", "v2"), 200);
    expect_mapping("ldap:v", "v1");
    expect_list("users/v2", "identities", "");
    put_in(h, "PUT", MAPPINGS "/ldap:v", right, 200);
    put_in(h, "PUT", MAPPINGS "/ldap:v", right, 409);
    expect_mapping("ldap:v", "v2");
    put_in(h, "DELETE", MAPPINGS "/ldap:v", "", 200);
    put_in(h, "PUT", MAPPINGS "/ldap:v", right, 404);
}

/* The identity belongs to the user who was deleted, not to the one who has the name now. */
static void a_user_made_again_inherits_no_identity(void **state)
{
    make_user("r1");
    make_identity("ldap", "r");
    put_in(h, "POST", MAPPINGS, MAP("ldap:r", "r1"), 201);
    put_in(h, "DELETE", PATH "users/r1", "", 200);
    expect_mapping("ldap:r", "");
    make_user("r1");
    expect_mapping("ldap:r", "");
    put_in(h, "DELETE", MAPPINGS "/ldap:r", "", 404);
    /* Not even when the new user claims it. */
    put_in(h, "PUT", PATH "users/r1", "{'metadata': {'name': 'r1'}, 'identities': ['ldap:r']}",
           200);
    expect_mapping("ldap:r", "");
    put_in(h, "POST", MAPPINGS, MAP("ldap:r", "r1"), 201);
    expect_mapping("ldap:r", "r1");
    expect_list("users/r1", "identities", "ldap:r");
    /* An identity that is made again does not have its former user. */
    put_in(h, "DELETE", PATH "identities/ldap:r", "", 200);
    expect_mapping("ldap:r", "");
    make_identity("ldap", "r");
    expect_mapping("ldap:r", "");
}

/* One object alone makes no mapping. */
static void half_of_a_mapping_is_none(void **state)
{
    make_user("h1");
    make_user("h2");
    make_identity("ldap", "h");
    put_in(h, "PUT", PATH "users/h1", "{'metadata': {'name': 'h1'}, 'identities': ['ldap:h']}",
           200);
    expect_mapping("ldap:h", "");
    CLEANUP_ANSWER struct answer h2 = ask_ok(h, "GET", PATH "users/h2", NULL, 200);
    CLEANUP_FREE char *body =
        xasprintf("{'metadata': {'name': 'ldap:h'}, 'providerName': 'ldap', 'providerUserName': "
                  "'h', 'user': {'name': 'h2', 'uid': '%s'}}",
                  at(&h2, "metadata.uid"));
    put_in(h, "PUT", PATH "identities/ldap:h", body, 200);
    expect_mapping("ldap:h", "");
    put_in(h, "PUT", PATH "users/h2", "{'metadata': {'name': 'h2'}, 'identities': ['ldap:h']}",
           200);
    expect_mapping("ldap:h", "h2");
}

/* The user's identities as JSON; owned. */
static char *identities_of(const char *user)
{
    CLEANUP_FREE char *path = xasprintf(PATH "users/%s", user);
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", path, NULL, 200);
    return json_to_text(json_get(a.body, "identities"));
}

static void a_mapping_repairs_the_halves_of_its_identity(void **state)
{
    make_user("k1");
    make_user("k2");
    make_user("k3");
    make_identity("ldap", "k");
    make_identity("ldap", "kk");
    put_in(
        h, "PUT", PATH "users/k1",
        "{'metadata': {'name': 'k1'}, 'fullName': 'ldap:k', 'identities': ['ldap:kk', 'ldap:k']}",
        200);
    put_in(h, "PUT", PATH "users/k3",
           "{'metadata': {'name': 'k3'}, 'fullName': 'ldap:k', 'identities': ['ldap:kk']}", 200);
    put_in(h, "POST", MAPPINGS, "{'identity': {'name': 'ldap:k'}, 'user': {'name': 'k2'}}", 201);
    expect_mapping("ldap:k", "k2");
    CLEANUP_FREE char *first = identities_of("k1"), *second = identities_of("k2");
    CLEANUP_FREE char *third = identities_of("k3");
    assert_string_equal(first, "[\"ldap:kk\"]");
    assert_string_equal(second, "[\"ldap:k\"]");
    assert_string_equal(third, "[\"ldap:kk\"]"); /* Another identity is not touched. */
    /* Moved to another user, the halves of now go as well. */
    put_in(h, "PUT", PATH "users/k1", "{'metadata': {'name': 'k1'}, 'identities': ['ldap:k']}",
           200);
    put_in(h, "PUT", MAPPINGS "/ldap:k",
           "{'metadata': {'name': 'ldap:k'}, 'identity': {'name': 'ldap:k'}, 'user': {'name': "
           "'k3'}}",
           200);
    expect_mapping("ldap:k", "k3");
    CLEANUP_FREE char *moved = identities_of("k1"), *before = identities_of("k2");
    assert_string_equal(moved, "null");
    assert_string_equal(before, "null");
}

static void mappings_are_not_listed_watched_or_patched(void **state)
{
    static const struct {
        const char *method, *path;
    } rows[] = {
        {"GET", MAPPINGS},    {"GET", MAPPINGS "?watch=1"},  {"GET", MAPPINGS "/ldap:m?watch=1"},
        {"DELETE", MAPPINGS}, {"PATCH", MAPPINGS "/ldap:m"}, {"POST", MAPPINGS "/ldap:m"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CLEANUP_ANSWER struct answer a = ask(h, rows[i].method, rows[i].path, "{}");
        if (a.status != 405) {
            fail_msg("%s %s: %d %s", rows[i].method, rows[i].path, a.status, a.text);
        }
    }
}

/* "NAME [GROUP ...]" of users/~; owned. */
static char *self_of(const char *who)
{
    CLEANUP_ANSWER struct answer a = ask_as(h, who, "GET", PATH "users/~", NULL, NULL);
    if (a.status != 200) {
        return xasprintf("%d %s", a.status, at(&a, "message"));
    }
    struct strbuf b = STRBUF_INIT;
    const struct json *item;
    strbuf_addf(&b, "%s [", at(&a, "metadata.name"));
    JSON_FOREACH (item, json_get(a.body, "groups")) {
        strbuf_addf(&b, "%s%s", b.data[b.size - 1] == '[' ? "" : " ", json_get_string(item));
    }
    strbuf_addf(&b, "]%s%s", *at(&a, "fullName") ? " " : "", at(&a, "fullName"));
    return strbuf_steal(&b);
}

static void expect_self(const char *who, const char *want)
{
    CLEANUP_FREE char *got = self_of(who);
    assert_string_equal(got, want);
}

static void each_user_gets_itself(void **state)
{
    expect_self("s1", "403 users.user.openshift.io \"~\" is forbidden: User \"s1\" cannot get "
                      "resource \"users\" in API group \"user.openshift.io\" at the cluster scope");
    put_in(h, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles",
           "{'metadata': {'name': 'basic-user'}, 'rules': [{'verbs': ['get'], 'apiGroups': "
           "['user.openshift.io'], 'resources': ['users'], 'resourceNames': ['~']}]}",
           201);
    put_in(h, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
           "{'metadata': {'name': 'basic-users'}, 'roleRef': {'apiGroup': "
           "'rbac.authorization.k8s.io', 'kind': 'ClusterRole', 'name': 'basic-user'}, 'subjects': "
           "[{'kind': 'Group', 'apiGroup': 'rbac.authorization.k8s.io', 'name': "
           "'system:authenticated'}, {'kind': 'Group', 'apiGroup': 'rbac.authorization.k8s.io', "
           "'name': 'system:unauthenticated'}]}",
           201);
    /* Without an object, and with one; groups are sorted. */
    expect_self("s1 zoo ape", "s1 [ape system:authenticated zoo]");
    put_in(h, "POST", PATH "users", "{'metadata': {'name': 's1'}, 'fullName': 'Sam'}", 201);
    make_group("sgroup", "'s1'");
    expect_self("s1", "s1 [sgroup system:authenticated system:authenticated:oauth] Sam");
    /* Groups that are given are all of them. */
    expect_self("s1 ape", "s1 [ape system:authenticated] Sam");
    expect_self("system:serviceaccount:default:x",
                "system:serviceaccount:default:x [system:authenticated system:serviceaccounts "
                "system:serviceaccounts:default]");
    expect_self("system:anonymous",
                "403 users.user.openshift.io \"~\" is forbidden: requests to ~ must be "
                "authenticated");
    /* The name "~" opens no other user and no other verb. */
    static const struct {
        const char *method, *path;
    } rows[] = {{"GET", "users/s1"},
                {"GET", "users"},
                {"GET", "users?fieldSelector=metadata.name%3D~"},
                {"GET", "users/~?watch=1"},
                {"PUT", "users/~"},
                {"PATCH", "users/~"},
                {"DELETE", "users/~"},
                {"POST", "users"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CLEANUP_FREE char *path = xasprintf(PATH "%s", rows[i].path);
        CLEANUP_ANSWER struct answer a =
            ask_as(h, "s1", rows[i].method, path,
                   streq(rows[i].method, "PATCH") ? "application/merge-patch+json" : NULL, "{}");
        if (a.status != 403) {
            fail_msg("%s %s: %d %s", rows[i].method, path, a.status, a.text);
        }
    }
    CLEANUP_ANSWER struct answer table = ask_full(
        h, "GET", PATH "users/~", "application/json;as=Table;v=v1;g=meta.k8s.io", NULL, NULL);
    assert_int_equal(table.status, 200);
    assert_string_equal(at(&table, "rows.0.cells.0"), "system:admin");
    /* It cannot be made, not even by the administrator. */
    put_in(h, "POST", PATH "users", "{'metadata': {'name': '~'}}", 422);
    put_in(h, "PUT", PATH "users/~", "{'metadata': {'name': '~'}}", 404);
}

static bool may(const char *who, const char *verb)
{
    CLEANUP_FREE char *path = xstrdup("/api/v1/namespaces/default/configmaps");
    CLEANUP_ANSWER struct answer a = ask_as(h, who, verb, path, NULL, NULL);
    return a.status != 403;
}

static void a_member_has_the_rights_of_the_group_at_once(void **state)
{
    put_in(h, "POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
           "{'metadata': {'name': 'g'}, 'rules': [{'verbs': ['list'], 'apiGroups': [''], "
           "'resources': ['configmaps']}]}",
           201);
    put_in(h, "POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
           "{'metadata': {'name': 'g'}, 'roleRef': {'apiGroup': 'rbac.authorization.k8s.io', "
           "'kind': 'Role', 'name': 'g'}, 'subjects': [{'kind': 'Group', 'apiGroup': "
           "'rbac.authorization.k8s.io', 'name': 'readers'}]}",
           201);
    assert_false(may("g1", "GET"));
    make_group("readers", "'g1'");
    for (int i = 0; i < 20; i++) {
        assert_true(may("g1", "GET"));
        assert_false(may("g2", "GET"));
        put_in(h, "PUT", PATH "groups/readers",
               "{'metadata': {'name': 'readers'}, 'users': ['g2']}", 200);
        assert_false(may("g1", "GET"));
        assert_true(may("g2", "GET"));
        put_in(h, "PUT", PATH "groups/readers",
               "{'metadata': {'name': 'readers'}, 'users': ['g1']}", 200);
    }
    /* Given groups replace the user's own. */
    assert_false(may("g1 other", "GET"));
    CLEANUP_ANSWER struct answer review = ask_as(h, "g1", "POST", REVIEW, NULL, "{}");
    assert_string_equal(at(&review, "status.userInfo.groups.2"), "readers");
    /* A review about a user has the groups that it names, and no others. */
    CLEANUP_FREE char *body = quoted(
        "{'spec': {'user': 'g1', 'resourceAttributes': {'namespace': 'default', 'verb': 'list', "
        "'resource': 'configmaps'}}}");
    CLEANUP_ANSWER struct answer sar =
        ask_ok(h, "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body, 201);
    assert_false(json_get_bool(json_path(sar.body, "status", "allowed", NULL), true));
    put_in(h, "DELETE", PATH "groups/readers", "", 200);
    assert_false(may("g1", "GET"));
}

static void a_group_of_the_system_cannot_be_made(void **state)
{
    static const char *const names[] = {"system:masters", "system:cluster-admins",
                                        "system:authenticated:oauth", "system:x", "a:b"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CLEANUP_FREE char *body =
            xasprintf("{'metadata': {'name': '%s'}, 'users': ['x1']}", names[i]);
        put_in(h, "POST", PATH "groups", body, 422);
    }
    CLEANUP_ANSWER struct answer a = ask_as(h, "x1", "GET", "/api/v1/nodes", NULL, NULL);
    assert_int_equal(a.status, 403);
}

/* A watch of projects goes on when its user leaves a group, and shows no more of them. */
static void a_kept_answer_ends_with_the_membership(void **state)
{
    struct security *s = h->api->security;
    const struct api_kind *projects = api_kind_find("project.openshift.io", "v1", "projects");
    free(make_namespace(h, "red"));
    put_in(h, "POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/red/roles",
           "{'metadata': {'name': 'p'}, 'rules': [{'verbs': ['get'], 'apiGroups': "
           "['project.openshift.io'], 'resources': ['projects']}]}",
           201);
    put_in(h, "POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/red/rolebindings",
           "{'metadata': {'name': 'p'}, 'roleRef': {'apiGroup': 'rbac.authorization.k8s.io', "
           "'kind': 'Role', 'name': 'p'}, 'subjects': [{'kind': 'Group', 'apiGroup': "
           "'rbac.authorization.k8s.io', 'name': 'team'}]}",
           201);
    make_group("team", "'p1'");
    CLEANUP(user_unref) struct user_info *p1 = user_new("p1");
    CLEANUP(user_unref) struct user_info *given = user_new("p1");
    members_add_groups(s->members, p1);
    struct visible *v = visible_ref(s, p1, projects), *other = visible_ref(s, given, projects);
    assert_ptr_not_equal(v, other);
    assert_true(visible_has(v, "red"));
    assert_false(visible_has(other, "red"));
    put_in(h, "PUT", PATH "groups/team", "{'metadata': {'name': 'team'}, 'users': []}", 200);
    assert_false(visible_has(v, "red"));
    put_in(h, "PUT", PATH "groups/team", "{'metadata': {'name': 'team'}, 'users': ['p1']}", 200);
    assert_true(visible_has(v, "red"));
    assert_false(visible_has(other, "red"));
    /* Loaded anew. */
    security_changed(s, NULL, NULL);
    assert_true(visible_has(v, "red"));
    put_in(h, "DELETE", PATH "groups/team", "", 200);
    assert_false(visible_has(v, "red"));
    visible_unref(v);
    visible_unref(other);
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_mapping_is_made_moved_and_removed_in_both_objects),
        T(a_mapping_needs_both_objects),
        T(versions_and_preconditions_of_mappings_hold),
        T(a_user_made_again_inherits_no_identity),
        T(half_of_a_mapping_is_none),
        T(a_mapping_repairs_the_halves_of_its_identity),
        T(mappings_are_not_listed_watched_or_patched),
        T(each_user_gets_itself),
        T(a_member_has_the_rights_of_the_group_at_once),
        T(a_group_of_the_system_cannot_be_made),
        T(a_kept_answer_ends_with_the_membership),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
