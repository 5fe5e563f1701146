/* SPDX-License-Identifier: Apache-2.0 */
/* The RBAC evaluator: tables of decisions, and random policies against an evaluator
 * that walks everything. */
#include "apiserver/access/rbac.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static struct json *parse(const char *text)
{
    struct json *v = NULL;
    struct err e = {0};
    CLEANUP_FREE char *quoted = xstrdup(text);
    for (char *p = quoted; *p; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    if (json_parse(quoted, strlen(quoted), &v, &e) < 0) {
        fail_msg("%s: %s", text, e.text);
    }
    return v;
}

static void set_role(struct rbac *r, const char *ns, const char *name, const char *rules)
{
    CLEANUP_FREE char *text = xasprintf("{'rules': %s}", rules);
    CLEANUP(json_free) struct json *o = parse(text);
    rbac_set_role(r, ns, name, o);
}

static void bind(struct rbac *r, const char *ns, const char *name, const char *kind,
                 const char *role, const char *subjects)
{
    CLEANUP_FREE char *text = xasprintf("{'roleRef': {'kind': '%s', 'name': '%s'}, 'subjects': %s}",
                                        kind, role, subjects);
    CLEANUP(json_free) struct json *o = parse(text);
    rbac_set_binding(r, ns, name, o);
}

/* "VERB PATH" or "VERB GROUP RESOURCE[/SUB] NS NAME", "-" for an empty one. */
static bool allows(const struct rbac *r, const struct user_info *u, const char *what)
{
    char verb[32] = "", group[64] = "", resource[64] = "", ns[64] = "", name[64] = "", *sub;
    if (sscanf(what, "%31s %63s %63s %63s %63s", verb, group, resource, ns, name) == 2) {
        struct attributes a = {.verb = verb, .path = group};
        return rbac_allows(r, u, &a, NULL);
    }
    char none[] = "";
    sub = strchr(resource, '/');
    if (sub) {
        *sub++ = '\0';
    }
    struct attributes a = {.is_resource = true,
                           .verb = verb,
                           .path = none,
                           .group = streq(group, "-") ? none : group,
                           .resource = resource,
                           .subresource = sub ? sub : none,
                           .namespace = streq(ns, "-") ? none : ns,
                           .name = streq(name, "-") ? none : name};
    return rbac_allows(r, u, &a, NULL);
}

static void rules_match_verbs_groups_resources_names_and_paths(void **state)
{
    static const struct {
        const char *rule, *yes, *no;
    } cases[] = {
        {"{'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods']}", "get - pods x p",
         "list - pods x -"},
        {"{'verbs': ['*'], 'apiGroups': [''], 'resources': ['pods']}", "patch - pods x p",
         "get apps pods x p"},
        {"{'verbs': ['get'], 'apiGroups': ['*'], 'resources': ['pods']}", "get apps pods x p",
         "get - pods/log x p"},
        {"{'verbs': ['get'], 'apiGroups': [''], 'resources': ['*']}", "get - pods/log x p",
         "get apps pods x p"},
        {"{'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods/log']}", "get - pods/log x p",
         "get - pods x p"},
        {"{'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods/log']}", "get - pods/log x p",
         "get - pods/exec x p"},
        {"{'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods/log']}", "get - pods/log x p",
         "get - pod/log x p"},
        {"{'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods/log']}", "get - pods/log x p",
         "get - podsx/log x p"},
        {"{'verbs': ['get'], 'apiGroups': [''], 'resources': ['x/log']}", "get - x/log x p",
         "get - pods/log x p"},
        {"{'verbs': ['get'], 'apiGroups': [''], 'resources': ['jobs/log']}", "get - jobs/log x p",
         "get - pods/log x p"},
        {"{'verbs': ['get'], 'apiGroups': [''], 'resources': ['podsxlog']}", "get - podsxlog x p",
         "get - pods/log x p"},
        {"{'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods/lo']}", "get - pods/lo x p",
         "get - pods/log x p"},
        {"{'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods/', 'x']}", "get - x x p",
         "get - pods x p"},
        {"{'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods']}", "get - pods x p",
         "get - podsx x p"},
        {"{'verbs': ['get'], 'apiGroups': [''], 'resources': ['*/log']}", "get - pods/log x p",
         "get - pods x p"},
        {"{'verbs': ['get'], 'apiGroups': [''], 'resources': ['*/log']}", "get - nodes/log x p",
         "get - nodes/lo x p"},
        {"{'verbs': ['get'], 'apiGroups': [''], 'resources': ['x', 'pods']}", "get - pods x p",
         "get - y x p"},
        {"{'verbs': ['a', 'get'], 'apiGroups': ['b', ''], 'resources': ['pods'],"
         "'resourceNames': ['x', 'p']}",
         "get - pods x p", "get - pods x *"},
        {"{'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods'], 'resourceNames': ['*']}",
         "get - pods x *", "get - pods x p"},
        {"{'verbs': ['get'], 'apiGroups': [''], 'resources': [7, 'pods'], 'nonResourceURLs': 'x'}",
         "get - pods x p", "get x"},
        {"{'verbs': ['get'], 'nonResourceURLs': ['/y', '/api*']}", "get /apis", "get /ap"},
        {"{'verbs': ['get'], 'nonResourceURLs': ['', '/*/x']}", "get /*/x", "get /a/x"},
        {"{'verbs': ['get'], 'nonResourceURLs': ['/api/*']}", "get /api/", "get /api"},
        {"{'verbs': ['get'], 'nonResourceURLs': ['/x']}", "get /x", "get /xy"},
        {"{'verbs': ['get'], 'nonResourceURLs': ['/x'], 'apiGroups': [''], 'resources': ['x']}",
         "get - x n m", "get /y"},
        {"{'verbs': ['get'], 'apiGroups': [''], 'resources': ['*/scale']}", "get - pods/scale x p",
         "get - pods/log x p"},
        {"{'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods'], 'resourceNames': ['a']}",
         "get - pods x a", "get - pods x b"},
        {"{'verbs': ['create'], 'apiGroups': [''], 'resources': ['pods'], 'resourceNames': ['a']}",
         "create - pods x a", "create - pods x -"},
        {"{'verbs': ['get'], 'apiGroups': [''], 'resources': ['pod']}", "get - pod x a",
         "get - pods x a"},
        {"{'verbs': ['get'], 'nonResourceURLs': ['/api/*']}", "get /api/v1", "get /apis"},
        {"{'verbs': ['get'], 'nonResourceURLs': ['/version']}", "get /version", "post /version"},
        {"{'verbs': ['*'], 'nonResourceURLs': ['*']}", "post /x", "get - pods x p"},
        {"{'verbs': ['*'], 'apiGroups': ['*'], 'resources': ['*']}", "x y z/w n m", "get /api"},
    };
    CLEANUP(user_unref) struct user_info *u = user_new("jane");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct rbac *r = rbac_new();
        CLEANUP_FREE char *rules = xasprintf("[%s]", cases[i].rule);
        set_role(r, NULL, "c", rules);
        bind(r, NULL, "b", "ClusterRole", "c", "[{'kind': 'User', 'name': 'jane'}]");
        if (!allows(r, u, cases[i].yes) || allows(r, u, cases[i].no)) {
            fail_msg("%s", cases[i].rule);
        }
        rbac_free(r);
    }
}

static void bindings_give_in_their_namespace_only(void **state)
{
    struct rbac *r = rbac_new();
    static const char get[] = "[{'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods']}]";
    CLEANUP(user_unref) struct user_info *jane = user_new("jane");
    CLEANUP(user_unref) struct user_info *sa = user_service_account("red", "robot", NULL);
    user_add_group(jane, "dev");
    set_role(r, "red", "reader", get);
    set_role(r, NULL, "reader", "[{'verbs': ['list'], 'apiGroups': [''], 'resources': ['pods']}]");
    bind(r, "red", "b", "Role", "reader", "[{'kind': 'Group', 'name': 'dev'}]");
    assert_true(allows(r, jane, "get - pods red p"));
    assert_false(allows(r, jane, "get - pods blue p"));
    assert_false(allows(r, jane, "get - pods - -"));
    /* The Role and the ClusterRole of one name are two. */
    assert_false(allows(r, jane, "list - pods red -"));
    bind(r, "blue", "b", "ClusterRole", "reader",
         "[{'kind': 'ServiceAccount', 'name': 'robot', 'namespace': 'red'}]");
    assert_true(allows(r, sa, "list - pods blue -"));
    assert_false(allows(r, sa, "list - pods red -"));
    /* A ClusterRoleBinding cannot name a Role. */
    bind(r, NULL, "b", "Role", "reader", "[{'kind': 'User', 'name': 'jane'}]");
    assert_false(allows(r, jane, "get - pods blue p"));
    /* A subject of another kind is no user; an account without a namespace is of the binding's. */
    bind(r, "gray", "b", "ClusterRole", "reader",
         "[{'kind': 'Robot', 'name': 'robot', 'namespace': 'red'},"
         "{'kind': 'ServiceAccount', 'name': 'robot'}]");
    assert_false(allows(r, sa, "list - pods gray -"));
    bind(r, "red", "own", "ClusterRole", "reader", "[{'kind': 'ServiceAccount', 'name': 'robot'}]");
    assert_true(allows(r, sa, "list - pods red -"));
    assert_false(allows(r, sa, "list - pods gray -"));
    /* A User called like the group is not the group. */
    bind(r, "green", "b", "ClusterRole", "reader", "[{'kind': 'User', 'name': 'dev'}]");
    assert_false(allows(r, jane, "list - pods green -"));
    rbac_free(r);
}

/* Objects that the API would have refused, as a store from elsewhere may have them. */
static void incomplete_bindings_give_nothing(void **state)
{
#define TO_JANE "'subjects': [{'kind': 'User', 'name': 'jane'}]"
    static const char *const cases[] = {
        "{" TO_JANE "}",
        "{'roleRef': {'name': 'all'}, " TO_JANE "}",
        "{'roleRef': {'kind': 'ClusterRole'}, " TO_JANE "}",
        "{'roleRef': {'kind': 7, 'name': 'all'}, " TO_JANE "}",
        "{'roleRef': {'kind': 'ClusterRole', 'name': 'absent'}, " TO_JANE "}",
        "{'roleRef': {'kind': 'Role', 'name': 'all'}, " TO_JANE "}",
        "{'roleRef': {'kind': 'ClusterRole', 'name': 'all'}}",
        "{'roleRef': {'kind': 'ClusterRole', 'name': 'all'}, 'subjects': [{'name': 'jane'},"
        "{'kind': 'User'}, {'kind': 'user', 'name': 'jane'}, {'kind': 'Group', 'name': 'jane'}, "
        "7]}",
    };
    CLEANUP(user_unref) struct user_info *jane = user_new("jane");
    static const char all[] = "[{'verbs': ['*'], 'apiGroups': ['*'], 'resources': ['*']}]";
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct rbac *r = rbac_new();
        CLEANUP(json_free) struct json *o = parse(cases[i]);
        set_role(r, NULL, "all", all);
        rbac_set_binding(r, NULL, "b", o);
        rbac_set_binding(r, "red", "b", o);
        struct rbac_rules wanted = {0};
        CLEANUP_STRBUF struct strbuf missing = STRBUF_INIT;
        if (allows(r, jane, "get - pods red p") || allows(r, jane, "get - nodes - n")) {
            fail_msg("%s", cases[i]);
        }
        assert_true(rbac_covers(r, jane, "red", &wanted, &missing));
        /* The same name with a good binding counts. */
        bind(r, "red", "b", "ClusterRole", "all", "[{'kind': 'User', 'name': 'jane'}]");
        assert_true(allows(r, jane, "get - pods red p"));
        assert_non_null(rbac_role(r, "red", "ClusterRole", "all"));
        assert_null(rbac_role(r, "red", "Role", "all"));
        rbac_set_role(r, NULL, "all", NULL);
        assert_null(rbac_role(r, "red", "ClusterRole", "all"));
        assert_false(allows(r, jane, "get - pods red p"));
        rbac_free(r);
    }
}

static void changes_and_deletions_count_at_once(void **state)
{
    struct rbac *r = rbac_new();
    CLEANUP(user_unref) struct user_info *u = user_new("jane");
    CLEANUP_STRBUF struct strbuf why = STRBUF_INIT;
    char empty[] = "";
    char pods[] = "pods";
    struct attributes a = {.is_resource = true,
                           .verb = "get",
                           .path = empty,
                           .group = empty,
                           .resource = pods,
                           .subresource = empty,
                           .namespace = empty,
                           .name = empty};
    bind(r, NULL, "b", "ClusterRole", "late", "[{'kind': 'User', 'name': 'jane'}]");
    assert_false(rbac_allows(r, u, &a, &why));
    assert_string_equal(why.data, "clusterrole.rbac.authorization.k8s.io \"late\" not found");
    set_role(r, NULL, "late", "[{'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods']}]");
    strbuf_reset(&why);
    assert_true(rbac_allows(r, u, &a, &why));
    assert_string_equal(
        why.data, "allowed by ClusterRoleBinding \"b\" of ClusterRole \"late\" to User \"jane\"");
    set_role(r, NULL, "late", "[]");
    assert_false(rbac_allows(r, u, &a, NULL));
    set_role(r, NULL, "late", "[{'verbs': ['*'], 'apiGroups': ['*'], 'resources': ['*']}]");
    bind(r, NULL, "b", "ClusterRole", "late", "[{'kind': 'User', 'name': 'joe'}]");
    assert_false(rbac_allows(r, u, &a, NULL));
    bind(r, NULL, "c", "ClusterRole", "late", "[{'kind': 'User', 'name': 'jane'}]");
    assert_true(rbac_allows(r, u, &a, NULL));
    rbac_set_binding(r, NULL, "c", NULL);
    assert_false(rbac_allows(r, u, &a, NULL));
    bind(r, NULL, "c", "ClusterRole", "late", "[{'kind': 'User', 'name': 'jane'}]");
    rbac_set_role(r, NULL, "late", NULL);
    assert_false(rbac_allows(r, u, &a, NULL));
    rbac_free(r);
}

static void the_binding_that_allows_is_named(void **state)
{
    static const struct {
        const char *user, *group, *why;
    } cases[] = {
        {"joe", "devs", "allowed by RoleBinding \"rb/shop\" of Role \"reader\" to Group \"devs\""},
        {"system:serviceaccount:shop:bot", "x",
         "allowed by RoleBinding \"rb/shop\" of Role \"reader\" to ServiceAccount \"bot/shop\""},
        {"system:serviceaccount:other:bot", "x",
         "allowed by RoleBinding \"rb/shop\" of Role \"reader\" to ServiceAccount \"bot/other\""},
        /* The user of a service account may be bound as a user, too. */
        {"system:serviceaccount:shop:named", "x",
         "allowed by RoleBinding \"rb/shop\" of Role \"reader\" to User "
         "\"system:serviceaccount:shop:named\""},
    };
    struct rbac *r = rbac_new();
    set_role(r, "shop", "reader", "[{'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods']}]");
    /* A binding whose role is missing comes first, and is not named. */
    bind(r, NULL, "a", "ClusterRole", "missing", "[{'kind': 'User', 'name': 'joe'}]");
    bind(r, "shop", "rb", "Role", "reader",
         "[{'kind': 'Group', 'name': 'devs'}, {'kind': 'ServiceAccount', 'name': 'bot'},"
         " {'kind': 'ServiceAccount', 'name': 'bot', 'namespace': 'other'},"
         " {'kind': 'User', 'name': 'system:serviceaccount:shop:named'}]");
    const struct attributes a = {.is_resource = true,
                                 .verb = "get",
                                 .path = "",
                                 .group = "",
                                 .resource = "pods",
                                 .subresource = "",
                                 .namespace = "shop",
                                 .name = ""};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(user_unref) struct user_info *u = user_new(cases[i].user);
        CLEANUP_STRBUF struct strbuf why = STRBUF_INIT;
        user_add_group(u, cases[i].group);
        assert_true(rbac_allows(r, u, &a, &why));
        assert_string_equal(why.data, cases[i].why);
    }
    rbac_free(r);
}

static void nobody_covers_more_than_they_have(void **state)
{
    static const struct {
        const char *have, *want;
        bool ok;
    } cases[] = {
        {"{'verbs': ['get', 'list'], 'apiGroups': [''], 'resources': ['pods']}",
         "{'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods']}", true},
        {"{'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods']}",
         "{'verbs': ['get', 'list'], 'apiGroups': [''], 'resources': ['pods']}", false},
        {"{'verbs': ['*'], 'apiGroups': ['*'], 'resources': ['*']}",
         "{'verbs': ['*'], 'apiGroups': ['*'], 'resources': ['*']}", true},
        {"{'verbs': ['get'], 'apiGroups': [''], 'resources': ['*']}",
         "{'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods', 'pods/log']}", true},
        {"{'verbs': ['get'], 'apiGroups': [''], 'resources': ['*/log']}",
         "{'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods/log']}", true},
        {"{'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods'], 'resourceNames': ['a']}",
         "{'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods']}", false},
        {"{'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods']}",
         "{'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods'], 'resourceNames': ['a']}",
         true},
        {"{'verbs': ['get'], 'nonResourceURLs': ['/api/*']}",
         "{'verbs': ['get'], 'nonResourceURLs': ['/api/*', '/api/v1']}", true},
        {"{'verbs': ['get'], 'nonResourceURLs': ['/api/v1']}",
         "{'verbs': ['get'], 'nonResourceURLs': ['/api/*']}", false},
        {"{'verbs': ['get'], 'apiGroups': ['*'], 'resources': ['*']}",
         "{'verbs': ['get'], 'nonResourceURLs': ['/x']}", false},
    };
    CLEANUP(user_unref) struct user_info *u = user_new("jane");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct rbac *r = rbac_new();
        CLEANUP_FREE char *have = xasprintf("[%s]", cases[i].have);
        CLEANUP_FREE char *want = xasprintf("[%s]", cases[i].want);
        CLEANUP(json_free) struct json *v = parse(want);
        CLEANUP_STRBUF struct strbuf missing = STRBUF_INIT;
        struct rbac_rules rules;
        set_role(r, "red", "c", have);
        bind(r, "red", "b", "Role", "c", "[{'kind': 'User', 'name': 'jane'}]");
        rbac_rules_parse(v, &rules);
        if (rbac_covers(r, u, "red", &rules, &missing) != cases[i].ok ||
            cases[i].ok != !missing.size) {
            fail_msg("%s wants %s: %s", cases[i].have, cases[i].want, strbuf_cstr(&missing));
        }
        assert_false(rbac_covers(r, u, "blue", &rules, &missing));
        rbac_rules_done(&rules);
        rbac_free(r);
    }
}

static void a_rule_is_written_as_it_was_read(void **state)
{
    CLEANUP(json_free)
    struct json *v = parse("[{'verbs': ['get', 'list'], 'apiGroups': ['', 'apps'], 'resources':"
                           "['pods', 'nodes'], 'resourceNames': ['a', 'b'], 'nonResourceURLs':"
                           "['/x', '/y']}, {'verbs': ['get']}]");
    struct rbac_rules rules;
    rbac_rules_parse(v, &rules);
    assert_int_equal(rules.n, 2);
    for (size_t i = 0; i < rules.n; i++) {
        CLEANUP(json_free) struct json *o = rbac_rule_object(&rules.at[i]);
        assert_true(json_equal(o, json_at(v, i)));
    }
    rbac_rules_done(&rules);
    assert_int_equal(rules.n, 0);
    assert_null(rules.at);
}

static void missing_verbs_are_listed_by_resource(void **state)
{
    /* The user may "get" and "list" pods and pods/log, and "get" configmaps a and b, and /x. */
    static const struct {
        const char *want, *missing;
    } cases[] = {
        {"{'verbs': ['get', 'list'], 'apiGroups': ['', 'apps'], 'resources': ['pods']}",
         "\n{APIGroups:[\"apps\"], Resources:[\"pods\"], Verbs:[\"get\" \"list\"]}"},
        {"{'verbs': ['get', 'watch', 'list', 'patch'], 'apiGroups': [''], 'resources': ['pods',"
         "'pods/log', 'pods/exec', 'nodes']}",
         "\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"watch\" \"patch\"]}"
         "\n{APIGroups:[\"\"], Resources:[\"pods/log\"], Verbs:[\"watch\" \"patch\"]}"
         "\n{APIGroups:[\"\"], Resources:[\"pods/exec\"], Verbs:[\"get\" \"watch\" "
         "\"list\" \"patch\"]}"
         "\n{APIGroups:[\"\"], Resources:[\"nodes\"], Verbs:[\"get\" \"watch\" \"list\" "
         "\"patch\"]}"},
        {"{'verbs': ['get'], 'apiGroups': [''], 'resources': ['configmaps'], 'resourceNames': ['a',"
         "'b', 'c']}",
         "\n{APIGroups:[\"\"], Resources:[\"configmaps\"], ResourceNames:[\"c\"], "
         "Verbs:[\"get\"]}"},
        {"{'verbs': ['get', 'post'], 'nonResourceURLs': ['/x', '/y']}",
         "\n{NonResourceURLs:[\"/x\"], Verbs:[\"post\"]}"
         "\n{NonResourceURLs:[\"/y\"], Verbs:[\"get\" \"post\"]}"},
        {"{'verbs': ['*'], 'apiGroups': [''], 'resources': ['pods']}",
         "\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"*\"]}"},
        {"{'verbs': ['get'], 'apiGroups': ['*'], 'resources': ['pods']}",
         "\n{APIGroups:[\"*\"], Resources:[\"pods\"], Verbs:[\"get\"]}"},
        {"{'verbs': ['get'], 'apiGroups': [''], 'resources': ['*']}",
         "\n{APIGroups:[\"\"], Resources:[\"*\"], Verbs:[\"get\"]}"},
        {"{'verbs': ['get'], 'apiGroups': [''], 'resources': ['configmaps']}",
         "\n{APIGroups:[\"\"], Resources:[\"configmaps\"], Verbs:[\"get\"]}"},
        {"{'verbs': ['get', 'list'], 'apiGroups': [''], 'resources': ['pods', 'pods/log']}", ""},
        {"{'verbs': [], 'apiGroups': [''], 'resources': ['nodes']}", ""},
        {"{}", ""},
    };
    struct rbac *r = rbac_new();
    CLEANUP(user_unref) struct user_info *u = user_new("jane");
    set_role(r, "red", "c",
             "[{'verbs': ['get', 'list'], 'apiGroups': [''], 'resources': ['pods', 'pods/log']},"
             "{'verbs': ['get'], 'apiGroups': [''], 'resources': ['configmaps'],"
             "'resourceNames': ['a', 'b']}]");
    set_role(r, NULL, "paths", "[{'verbs': ['get'], 'nonResourceURLs': ['/x']}]");
    bind(r, "red", "b", "Role", "c", "[{'kind': 'User', 'name': 'jane'}]");
    bind(r, NULL, "b", "ClusterRole", "paths", "[{'kind': 'User', 'name': 'jane'}]");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *text = xasprintf("[%s]", cases[i].want);
        CLEANUP(json_free) struct json *v = parse(text);
        CLEANUP_STRBUF struct strbuf missing = STRBUF_INIT;
        struct rbac_rules rules;
        rbac_rules_parse(v, &rules);
        bool ok = rbac_covers(r, u, "red", &rules, &missing);
        if (ok != !*cases[i].missing || !streq(strbuf_cstr(&missing), cases[i].missing)) {
            fail_msg("%s: %s", cases[i].want, strbuf_cstr(&missing));
        }
        rbac_rules_done(&rules);
    }
    rbac_free(r);
}

static void what_is_missing_is_told_as_kubernetes_does(void **state)
{
    struct rbac *r = rbac_new();
    CLEANUP(user_unref) struct user_info *u = user_new("jane");
    CLEANUP_STRBUF struct strbuf missing = STRBUF_INIT;
    struct rbac_rules rules;
    CLEANUP(json_free)
    struct json *v = parse("[{'verbs': ['get', 'list'], 'apiGroups': [''], 'resources': ['pods'], "
                           "'resourceNames': ['a']}]");
    rbac_rules_parse(v, &rules);
    assert_false(rbac_covers(r, u, "red", &rules, &missing));
    assert_string_equal(missing.data, "\n{APIGroups:[\"\"], Resources:[\"pods\"], "
                                      "ResourceNames:[\"a\"], Verbs:[\"get\" \"list\"]}");
    rbac_rules_done(&rules);
    rbac_free(r);
}

/* A JSON list of 'n' different strings that begin with 'prefix'; owned. */
static char *many(const char *prefix, size_t n)
{
    struct strbuf b = STRBUF_INIT;
    strbuf_addc(&b, '[');
    for (size_t i = 0; i < n; i++) {
        strbuf_addf(&b, "%s'%s%zu'", i ? "," : "", prefix, i);
    }
    strbuf_addc(&b, ']');
    return strbuf_steal(&b);
}

static bool covers_many(size_t verbs, size_t groups, size_t resources, size_t names, size_t urls,
                        size_t rules, struct strbuf *missing)
{
    struct rbac *r = rbac_new();
    CLEANUP(user_unref) struct user_info *u = user_new("jane");
    struct rbac_rules wanted;
    CLEANUP_FREE char *v = many("v", verbs);
    CLEANUP_FREE char *g = many("g", groups);
    CLEANUP_FREE char *res = many("r", resources);
    CLEANUP_FREE char *n = many("n", names);
    CLEANUP_FREE char *p = many("/p", urls);
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    for (size_t i = 0; i < rules; i++) {
        strbuf_addf(&text,
                    "%s{'verbs': %s, 'apiGroups': %s, 'resources': %s, 'resourceNames': %s,"
                    "'nonResourceURLs': %s}",
                    i ? "," : "[", v, g, res, n, p);
    }
    strbuf_addc(&text, ']');
    CLEANUP(json_free) struct json *list = parse(strbuf_cstr(&text));
    set_role(r, NULL, "all",
             "[{'verbs': ['*'], 'apiGroups': ['*'], 'resources': ['*']},"
             "{'verbs': ['*'], 'nonResourceURLs': ['*']}]");
    bind(r, NULL, "b", "ClusterRole", "all", "[{'kind': 'User', 'name': 'jane'}]");
    rbac_rules_parse(list, &wanted);
    strbuf_reset(missing);
    bool ok = rbac_covers(r, u, "red", &wanted, missing);
    rbac_rules_done(&wanted);
    rbac_free(r);
    return ok;
}

/* The bound holds for a user with all rights, too: it limits the time of the check. */
static void more_combinations_than_the_bound_are_not_covered(void **state)
{
    static const struct {
        size_t verbs, groups, resources, names, urls, rules;
        bool ok;
    } cases[] = {
        {20, 10, 1000, 0, 0, 1, true},     {20, 10, 1001, 0, 0, 1, false},
        {1, 20, 10, 1000, 0, 1, true},     {1, 20, 10, 1001, 0, 1, false},
        {200, 0, 0, 0, 1000, 1, true},     {200, 0, 0, 0, 1001, 1, false},
        {100, 10, 100, 0, 1000, 1, true},  {100, 10, 100, 0, 1001, 1, false},
        {10, 10, 10, 0, 0, 200, true},     {10, 10, 10, 0, 0, 201, false},
        {500, 500, 500, 500, 0, 1, false}, {500, 500, 500, 0, 0, 1, false},
        {0, 500, 500, 500, 0, 1, false},   {0, 10, 10, 10, 0, 1, true},
    };
    CLEANUP_STRBUF struct strbuf missing = STRBUF_INIT;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        bool ok = covers_many(cases[i].verbs, cases[i].groups, cases[i].resources, cases[i].names,
                              cases[i].urls, cases[i].rules, &missing);
        if (ok != cases[i].ok ||
            !streq(strbuf_cstr(&missing), ok ? "" : "\nmore rules than can be checked")) {
            fail_msg("case %zu: %s", i, strbuf_cstr(&missing));
        }
    }
}

/* ---- random policies ---- */

static uint32_t seed;

static uint32_t rnd(uint32_t n)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % n;
}

static const char *const verbs[] = {"get", "list", "create", "*"};
static const char *const groups[] = {"", "apps", "*"};
static const char *const resources[] = {"pods", "pods/log", "*/log", "nodes", "*"};
static const char *const names[] = {"a", "b"};
static const char *const spaces[] = {"red", "blue", ""};
static const char *const users[] = {"jane", "joe", "system:serviceaccount:red:robot"};
static const char *const teams[] = {"dev", "ops"};
#define PICK(list) list[rnd(ARRAY_SIZE(list))]

struct policy {
    struct json *roles, *bindings; /* Arrays of {ns, name, object}. */
};

static struct json *entry(const char *ns, unsigned name, struct json *object)
{
    struct json *e = json_object();
    json_set_string(e, "ns", ns);
    json_set(e, "name", json_stringf("%u", name));
    json_set(e, "object", object);
    return e;
}

static struct json *random_role(void)
{
    struct json *o = json_object(), *list = json_ensure_array(o, "rules");
    for (uint32_t n = rnd(3); n; n--) {
        struct json *rule = json_append(list, json_object());
        for (uint32_t i = 1 + rnd(2); i; i--) {
            json_append(json_ensure_array(rule, "verbs"), json_string(PICK(verbs)));
            json_append(json_ensure_array(rule, "apiGroups"), json_string(PICK(groups)));
            json_append(json_ensure_array(rule, "resources"), json_string(PICK(resources)));
        }
        if (rnd(3) == 0) {
            json_append(json_ensure_array(rule, "resourceNames"), json_string(PICK(names)));
        }
    }
    return o;
}

static struct json *random_binding(const char *ns)
{
    struct json *o = json_object(), *ref = json_ensure_object(o, "roleRef");
    json_set_string(ref, "kind", *ns && rnd(2) ? "Role" : "ClusterRole");
    json_set(ref, "name", json_stringf("%u", rnd(4)));
    for (uint32_t n = rnd(3); n; n--) {
        struct json *s = json_append(json_ensure_array(o, "subjects"), json_object());
        switch (rnd(3)) {
        case 0:
            json_set_string(s, "kind", "User");
            json_set_string(s, "name", PICK(users));
            break;
        case 1:
            json_set_string(s, "kind", "Group");
            json_set_string(s, "name", PICK(teams));
            break;
        default:
            json_set_string(s, "kind", "ServiceAccount");
            json_set_string(s, "name", "robot");
            json_set_string(s, "namespace", "red");
        }
    }
    return o;
}

static void put(struct json *list, const char *ns, unsigned name, struct json *object)
{
    for (size_t i = 0; i < json_count(list); i++) {
        struct json *e = json_at(list, i);
        if (streq(json_path_string(e, "ns", NULL), ns) &&
            (unsigned) atoi(json_path_string(e, "name", NULL)) == name) {
            json_remove_at(list, i);
            break;
        }
    }
    if (object) {
        json_append(list, entry(ns, name, object));
    }
}

static bool in(const struct json *list, const char *s)
{
    const struct json *item;
    JSON_FOREACH (item, list) {
        if (streq(json_get_string(item), s) || streq(json_get_string(item), "*")) {
            return true;
        }
    }
    return false;
}

static bool naive_rule(const struct json *rule, const char *verb, const char *group,
                       const char *resource, const char *name)
{
    const char *slash = strchr(resource, '/');
    CLEANUP_FREE char *wild = xasprintf("*%s", slash ? slash : "/none");
    const struct json *only = json_get(rule, "resourceNames");
    return in(json_get(rule, "verbs"), verb) && in(json_get(rule, "apiGroups"), group) &&
           (in(json_get(rule, "resources"), resource) || in(json_get(rule, "resources"), wild)) &&
           (!json_count(only) || in(only, name));
}

static bool naive_subject(const struct json *s, const struct user_info *u)
{
    const char *kind = json_path_string(s, "kind", NULL), *name = json_path_string(s, "name", NULL);
    if (streq(kind, "Group")) {
        return user_in_group(u, name);
    }
    return streq(u->name, streq(kind, "User") ? name : "system:serviceaccount:red:robot");
}

static bool naive(const struct policy *p, const struct user_info *u, const char *verb,
                  const char *group, const char *resource, const char *ns, const char *name)
{
    const struct json *b, *s, *r, *rule;
    JSON_FOREACH (b, p->bindings) {
        const char *at = json_path_string(b, "ns", NULL);
        if (*at && !streq(at, ns)) {
            continue;
        }
        bool mine = false;
        JSON_FOREACH (s, json_path(b, "object", "subjects", NULL)) {
            mine |= naive_subject(s, u);
        }
        const char *want =
            streq(json_path_string(b, "object", "roleRef", "kind", NULL), "Role") ? at : "";
        JSON_FOREACH (r, p->roles) {
            if (!mine || !streq(json_path_string(r, "ns", NULL), want) ||
                !streq(json_path_string(r, "name", NULL),
                       json_path_string(b, "object", "roleRef", "name", NULL))) {
                continue;
            }
            JSON_FOREACH (rule, json_path(r, "object", "rules", NULL)) {
                if (naive_rule(rule, verb, group, resource, name)) {
                    return true;
                }
            }
        }
    }
    return false;
}

static void change(struct policy *p, struct rbac *r)
{
    const char *ns = PICK(spaces);
    unsigned name = rnd(4);
    bool gone = rnd(5) == 0;
    if (rnd(2)) {
        CLEANUP(json_free) struct json *o = gone ? NULL : random_role();
        rbac_set_role(r, *ns ? ns : NULL, (char[]){(char) ('0' + name), '\0'}, o);
        put(p->roles, ns, name, TAKE(o));
    } else {
        CLEANUP(json_free) struct json *o = gone ? NULL : random_binding(ns);
        rbac_set_binding(r, *ns ? ns : NULL, (char[]){(char) ('0' + name), '\0'}, o);
        put(p->bindings, ns, name, TAKE(o));
    }
}

static void it_agrees_with_one_that_looks_at_everything(void **state)
{
    static const char *const asked[] = {"pods", "pods/log", "nodes", "nodes/log"};
    size_t yes = 0, no = 0;
    for (seed = 1; seed < 400; seed += 7) {
        uint32_t first = seed;
        struct policy p = {json_array(), json_array()};
        struct rbac *r = rbac_new();
        for (int step = 0; step < 60; step++) {
            change(&p, r);
            CLEANUP(user_unref) struct user_info *u = user_new(PICK(users));
            if (rnd(2)) {
                user_add_group(u, PICK(teams));
            }
            const char *verb = verbs[rnd(3)], *group = groups[rnd(2)], *resource = PICK(asked);
            const char *ns = PICK(spaces), *name = rnd(3) ? PICK(names) : "-";
            CLEANUP_FREE char *what = xasprintf("%s %s %s %s %s", verb, *group ? group : "-",
                                                resource, *ns ? ns : "-", name);
            bool want = naive(&p, u, verb, group, resource, ns, streq(name, "-") ? "" : name);
            if (allows(r, u, what) != want) {
                fail_msg("seed %u, step %d: %s may%s %s", first, step, u->name, want ? "" : " not",
                         what);
            }
            *(want ? &yes : &no) += 1;
        }
        rbac_free(r);
        json_free(p.roles);
        json_free(p.bindings);
        seed = first;
    }
    assert_true(yes > 200 && no > 200);
}

static void add_name(void *ctx, const char *name, bool is_group)
{
    strbuf_addf(ctx, "%s%s ", is_group ? "@" : "", name);
}

/* The subjects with the right to get pods in 'ns', each once for each binding. */
static void check_subjects(const struct rbac *r, const char *ns, const char *want,
                           const char *want_missing)
{
    const struct attributes a = {.is_resource = true,
                                 .verb = "get",
                                 .group = "",
                                 .resource = "pods",
                                 .subresource = "",
                                 .namespace = ns,
                                 .name = ""};
    CLEANUP_STRBUF struct strbuf found = STRBUF_INIT;
    CLEANUP_STRBUF struct strbuf missing = STRBUF_INIT;
    rbac_each_subject(r, &a, add_name, &found, &missing);
    assert_string_equal(strbuf_cstr(&found), want);
    assert_string_equal(strbuf_cstr(&missing), want_missing);
}

static void all_subjects_with_a_right_are_found(void **state)
{
    struct rbac *r = rbac_new();
    static const char get[] = "[{'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods']}]";
    set_role(r, NULL, "reader", get);
    set_role(r, "red", "other", "[{'verbs': ['get'], 'apiGroups': ['x'], 'resources': ['pods']}]");
    bind(r, NULL, "all", "ClusterRole", "reader", "[{'kind': 'Group', 'name': 'ops:a'}]");
    bind(r, "red", "a", "ClusterRole", "reader",
         "[{'kind': 'User', 'name': 'jane'}, {'kind': 'ServiceAccount', 'name': 'robot'}]");
    bind(r, "red", "b", "Role", "other", "[{'kind': 'User', 'name': 'joe'}]");
    bind(r, "blue", "a", "ClusterRole", "reader", "[{'kind': 'User', 'name': 'eve'}]");
    bind(r, "gray", "lost", "Role", "nosuch", "[{'kind': 'User', 'name': 'tim'}]");
    check_subjects(r, "red", "@ops:a jane system:serviceaccount:red:robot ", "");
    check_subjects(r, "blue", "@ops:a eve ", "");
    check_subjects(r, "", "@ops:a ", "");
    check_subjects(r, "gray", "@ops:a ", "role.rbac.authorization.k8s.io \"nosuch\" not found");
    rbac_free(r);
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(rules_match_verbs_groups_resources_names_and_paths),
        T(bindings_give_in_their_namespace_only),
        T(incomplete_bindings_give_nothing),
        T(changes_and_deletions_count_at_once),
        T(the_binding_that_allows_is_named),
        T(nobody_covers_more_than_they_have),
        T(a_rule_is_written_as_it_was_read),
        T(missing_verbs_are_listed_by_resource),
        T(what_is_missing_is_told_as_kubernetes_does),
        T(more_combinations_than_the_bound_are_not_covered),
        T(all_subjects_with_a_right_are_found),
        T(it_agrees_with_one_that_looks_at_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
