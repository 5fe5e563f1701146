/* SPDX-License-Identifier: Apache-2.0 */
/* What decides before RBAC does: attributes of requests, bearer tokens, the audit policy. */
#include "apiserver/access/audit_policy.h"
#include "apiserver/access/authn.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void attributes_are_read_off_the_path(void **state)
{
    static const struct {
        const char *method, *path, *fields;
        bool watch;
        const char *want;
    } cases[] = {
        {"GET", "/api/v1/namespaces/red/pods/web", NULL, false, "get |v1|pods||red|web|"},
        {"GET", "/api/v1/namespaces/red/pods", NULL, false, "list |v1|pods||red||"},
        {"GET", "/api/v1/pods", NULL, true, "watch |v1|pods||||"},
        {"GET", "/api/v1/watch/pods", NULL, false, "watch |v1|pods||||"},
        {"POST", "/api/v1/watch/pods", NULL, false, "create |v1|watch|||pods|"},
        {"GET", "/api/v1/watch/", NULL, false, "list |v1|watch||||"},
        {"POST", "/api/v1/namespaces/red/pods", NULL, false, "create |v1|pods||red||"},
        {"PUT", "/api/v1/namespaces/red/pods/web/status", NULL, false,
         "update |v1|pods|status|red|web|"},
        {"PATCH", "/apis/apps/v1/namespaces/red/deployments/d", NULL, false,
         "patch apps|v1|deployments||red|d|"},
        {"DELETE", "/api/v1/nodes/n", NULL, false, "delete |v1|nodes|||n|"},
        {"DELETE", "/api/v1/namespaces/red/pods", NULL, false, "deletecollection |v1|pods||red||"},
        {"GET", "/api/v1/namespaces/red", NULL, false, "get |v1|namespaces||red|red|"},
        {"PUT", "/api/v1/namespaces/red/finalize", NULL, false,
         "update |v1|namespaces|finalize|red|red|"},
        {"GET", "/api/v1/namespaces", NULL, false, "list |v1|namespaces||||"},
        {"GET", "/api/v1/nodes", "metadata.name=n1", false, "list |v1|nodes|||n1|"},
        {"GET", "/api/v1/nodes", "a=b,metadata.name==n1", true, "watch |v1|nodes|||n1|"},
        {"GET", "/api/v1/nodes", "metadata.name!=n1", false, "list |v1|nodes||||"},
        {"DELETE", "/api/v1/nodes", "metadata.name=n1", false, "deletecollection |v1|nodes||||"},
        {"GET", "/api/v1/pods", "spec.nodeName=n1", false, "list |v1|pods||||n1"},
        /* What begins a process is a creation, whatever the method. */
        {"GET", "/api/v1/namespaces/red/pods/web/exec", NULL, false,
         "create |v1|pods|exec|red|web|"},
        {"GET", "/api/v1/namespaces/red/pods/web/attach", NULL, true,
         "create |v1|pods|attach|red|web|"},
        {"PUT", "/api/v1/namespaces/red/pods/web/portforward", NULL, false,
         "create |v1|pods|portforward|red|web|"},
        {"GET", "/api/v1/namespaces/red/pods/web/log", NULL, false, "get |v1|pods|log|red|web|"},
        {"GET", "/api/v1/namespaces/red/services/web/exec", NULL, false,
         "get |v1|services|exec|red|web|"},
        {"GET", "/apis/x/v1/namespaces/red/pods/web/exec", NULL, false,
         "get x|v1|pods|exec|red|web|"},
        {"GET", "/api/v1/nodes/n/proxy/logs/a/b", NULL, false, "get |v1|nodes|proxy||n|"},
        {"GET", "/api/v1", NULL, false, "get /api/v1"},
        {"GET", "/apis/apps", NULL, false, "get /apis/apps"},
        {"POST", "/healthz", NULL, false, "post /healthz"},
        {"HEAD", "/api/v1/nodes/n", NULL, false, "get |v1|nodes|||n|"},
        {"BREW", "/api/v1/nodes/n", NULL, false, " |v1|nodes|||n|"},
        {"AMZ@[-", "/x", NULL, false, "amz@[- /x"},
        {"GET", "/api/v1/n", NULL, false, "list |v1|n||||"},
        {"GET", "/api/v1/", NULL, false, "get /api/v1/"},
        {"GET", "/api/v1/namespaces/r", NULL, false, "get |v1|namespaces||r|r|"},
        {"GET", "/api/v1/namespaces/", NULL, false, "list |v1|namespaces||||"},
        {"GET", "/apis/project.openshift.io/v1/projects/red", NULL, false,
         "get project.openshift.io|v1|projects||red|red|"},
        {"GET", "/apis/project.openshift.io/v1/things/red", NULL, false,
         "get project.openshift.io|v1|things|||red|"},
        {"GET", "/apis/example.com/v1/projects/red", NULL, false,
         "get example.com|v1|projects|||red|"},
        {"GET", "/api/v1/nodes/n", "metadata.name=m,spec.nodeName=m", false, "get |v1|nodes|||n|"},
        {"GET", "/api/v1/pods", "spec.nodeName=n1,metadata.name==p", true, "watch |v1|pods|||p|n1"},
        {"GET", "/api/v1/pods/p/status/x", NULL, false, "get |v1|pods|status||p| malformed"},
        {"GET", "/api/v1//pods", NULL, false, "get |v1||||pods| malformed"},
        {"GET", "/api/v1/namespaces//pods", NULL, false, "list |v1|pods|||| malformed"},
        {"GET", "/apis/project.openshift.io/v1/namespaces/red/projects/red", NULL, false,
         "get project.openshift.io|v1|projects||red|red|"},
        /* The older form is about the resource of the group. */
        {"GET", "/oapi/v1/users/~", NULL, false, "get user.openshift.io|v1|users|||~|"},
        {"GET", "/oapi/v1/projects/red", NULL, false,
         "get project.openshift.io|v1|projects||red|red|"},
        {"GET", "/oapi/v1/watch/hostsubnets", NULL, false,
         "watch network.openshift.io|v1|hostsubnets||||"},
        {"POST", "/oapi/v1/namespaces/red/deploymentconfigs/d/instantiate", NULL, false,
         "create apps.openshift.io|v1|deploymentconfigs|instantiate|red|d|"},
        {"POST", "/oapi/v1/namespaces/red/deploymentconfigrollbacks", NULL, false,
         "create apps.openshift.io|v1|deploymentconfigs|rollback|red||"},
        {"POST", "/oapi/v1/namespaces/red/deploymentconfigrollbacks/d", NULL, false,
         "create apps.openshift.io|v1|deploymentconfigs|rollback|red|| malformed"},
        {"GET", "/apis/apps.openshift.io/v1/namespaces/red/deploymentconfigrollbacks", NULL, false,
         "list apps.openshift.io|v1|deploymentconfigrollbacks||red||"},
        {"GET", "/oapi/v1/namespaces/red/pods", NULL, false, "list |v1|pods||red||"},
        {"GET", "/oapi/v1/namespaces/red/pods/p/exec", NULL, false, "create |v1|pods|exec|red|p|"},
        {"GET", "/oapi/v1/securitycontextconstraints", NULL, false,
         "list |v1|securitycontextconstraints||||"},
        {"PUT", "/api/v1/securitycontextconstraints/x", NULL, false,
         "update security.openshift.io|v1|securitycontextconstraints|||x|"},
        {"GET", "/api/v1/users/~", NULL, false, "get |v1|users|||~|"},
        {"GET", "/oapi/v1", NULL, false, "get /oapi/v1"},
        {"GET", "/oapi/v1//users", NULL, false, "get |v1||||users| malformed"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(attributes_done) struct attributes a;
        attributes_parse(&a, cases[i].method, cases[i].path, cases[i].watch, cases[i].fields);
        CLEANUP_FREE char *got = a.is_resource
                                     ? xasprintf("%s %s|%s|%s|%s|%s|%s|%s%s", a.verb, a.group,
                                                 a.version, a.resource, a.subresource, a.namespace,
                                                 a.name, a.node, a.malformed ? " malformed" : "")
                                     : xasprintf("%s %s", a.verb, a.path);
        assert_string_equal(got, cases[i].want);
    }
}

static void a_header_is_a_bearer_token_or_wrong(void **state)
{
    static const struct {
        const char *header;
        int result;
        const char *token;
    } cases[] = {
        {NULL, -ENOENT, NULL},
        {"Bearer abc", 0, "abc"},
        {" \tBearer abc", 0, "abc"},
        {"Beares abc", -EINVAL, NULL},
        {"bearer  a.b-c_~+/=", 0, "a.b-c_~+/="},
        {"Bearer", -EINVAL, NULL},
        {"Bearer ", -EINVAL, NULL},
        {"Bearerabc", -EINVAL, NULL},
        {"Bearer a b", -EINVAL, NULL},
        {"Basic YTpi", -EINVAL, NULL},
        {"", -EINVAL, NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *token = NULL;
        assert_int_equal(authn_bearer(cases[i].header, &token), cases[i].result);
        if (cases[i].token) {
            assert_string_equal(token, cases[i].token);
        }
    }
}

static void secrets_are_equal_as_a_whole(void **state)
{
    assert_true(secret_equal("abc", 3, "abc", 3));
    assert_false(secret_equal("abc", 3, "abd", 3));
    assert_false(secret_equal("abc", 3, "abcabc", 6));
    assert_false(secret_equal("abcabc", 6, "abc", 3));
    assert_false(secret_equal("abc", 3, "", 0));
    assert_false(secret_equal("", 0, "abc", 3));
}

static void users_know_what_they_are(void **state)
{
    CLEANUP(user_unref) struct user_info *sa = user_service_account("red", "robot", "u");
    CLEANUP(user_unref) struct user_info *node = user_new("system:node:n1");
    CLEANUP(user_unref) struct user_info *jane = user_new("jane");
    CLEANUP(user_unref) struct user_info *admin = user_new("x");
    CLEANUP(user_unref) struct user_info *nobody = user_new("system:anonymous");
    CLEANUP_FREE char *ns = NULL;
    CLEANUP_FREE char *name = NULL;
    assert_string_equal(sa->name, "system:serviceaccount:red:robot");
    assert_true(user_in_group(sa, "system:serviceaccounts:red"));
    assert_true(user_parse_service_account(sa->name, &ns, &name));
    assert_string_equal(ns, "red");
    assert_string_equal(name, "robot");
    assert_false(user_parse_service_account("system:serviceaccount:red:", NULL, NULL));
    assert_false(user_parse_service_account("system:serviceaccount::a", NULL, NULL));
    assert_false(user_parse_service_account("system:serviceaccount:a:b:c", NULL, NULL));
    assert_false(user_parse_service_account("system:serviceaccount:a::", NULL, NULL));
    assert_false(user_parse_service_account("system:serviceaccount:a", NULL, NULL));
    assert_false(user_parse_service_account("system:serviceaccounts:a:b", NULL, NULL));
    assert_false(user_parse_service_account("jane", NULL, NULL));
    assert_true(user_parse_service_account("system:serviceaccount:a:b", NULL, NULL));
    assert_string_equal(sa->uid, "u");
    CLEANUP(user_unref) struct user_info *without = user_service_account("red", "robot", NULL);
    CLEANUP(user_unref) struct user_info *empty = user_service_account("red", "robot", "");
    assert_null(without->uid);
    assert_null(empty->uid);
    /* The group does not make a node of a user with another name. */
    CLEANUP(user_unref) struct user_info *other = user_new("system:service:n1");
    user_add_group(other, "system:nodes");
    assert_null(user_node(other));
    /* Without the group it is only a name. */
    assert_null(user_node(node));
    user_add_group(node, "system:nodes");
    assert_string_equal(user_node(node), "n1");
    CLEANUP(user_unref) struct user_info *unnamed = user_new("system:node:");
    user_add_group(unnamed, "system:nodes");
    assert_null(user_node(unnamed));
    user_add_group(jane, "system:nodes");
    assert_null(user_node(jane));
    user_add_group(admin, "system:masters");
    assert_int_equal(user_class(admin), USER_MASTER);
    assert_int_equal(user_class(node), USER_NODE);
    assert_int_equal(user_class(sa), USER_WORKLOAD);
    assert_int_equal(user_class(jane), USER_NODE);
    assert_int_equal(user_class(nobody), USER_UNKNOWN);
    static const struct {
        const char *name, *group;
        enum user_class class;
    } cases[] = {{"joe", "dev", USER_PERSON},
                 {"systemd", "dev", USER_PERSON},
                 {"system:x", "dev", USER_SYSTEM},
                 {"joe", "system:serviceaccounts:kube-system", USER_PERSON},
                 {"joe", "system:serviceaccounts", USER_WORKLOAD},
                 {"system:anonymous", "system:masters", USER_MASTER}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(user_unref) struct user_info *u = user_new(cases[i].name);
        user_add_group(u, cases[i].group);
        assert_int_equal(user_class(u), cases[i].class);
    }
    CLEANUP(user_unref) struct user_info *system = user_service_account("kube-system", "dns", NULL);
    assert_int_equal(user_class(system), USER_SYSTEM);
}

static void a_user_is_freed_with_its_last_reference(void **state)
{
    struct user_info *u = user_new("jane");
    user_add_group(u, "dev");
    user_add_group(u, "dev");
    user_add_group(u, "ops");
    assert_int_equal(u->n_groups, 2);
    assert_int_equal(u->refs, 1);
    assert_ptr_equal(user_ref(u), u);
    assert_null(user_unref(u));
    assert_int_equal(u->refs, 1);
    assert_string_equal(u->groups[1], "ops");
    user_add_extra(u, "k", "v");
    user_add_extra(u, "k", "w");
    CLEANUP(json_free) struct json *o = user_object(u);
    CLEANUP_FREE char *text = json_to_text(o);
    assert_string_equal(text, "{\"username\":\"jane\",\"groups\":[\"dev\",\"ops\"],"
                              "\"extra\":{\"k\":[\"v\",\"w\"]}}");
    user_unref(u);
    assert_null(user_unref(NULL));
}

static void the_first_audit_rule_that_matches_decides(void **state)
{
    static const char policy[] =
        "apiVersion: audit.k8s.io/v1\n"
        "kind: Policy\n"
        "omitStages: [RequestReceived]\n"
        "rules:\n"
        "- {level: None, users: [quiet]}\n"
        "- {level: RequestResponse, userGroups: [dev], verbs: [create]}\n"
        "- {level: Request, resources: [{group: '', resources: [pods, 'services/*']}],\n"
        "   namespaces: [red], omitStages: [ResponseStarted]}\n"
        "- {level: Metadata, nonResourceURLs: ['/api*']}\n";
    static const struct {
        const char *user, *method, *path;
        enum audit_level level;
        unsigned omit;
    } cases[] = {
        {"quiet", "POST", "/api/v1/pods", AUDIT_NONE, 1},
        {"dev", "POST", "/api/v1/nodes", AUDIT_REQUEST_RESPONSE, 1},
        {"dev", "GET", "/api/v1/nodes", AUDIT_NONE, 0},
        {"joe", "GET", "/api/v1/namespaces/red/pods", AUDIT_REQUEST, 3},
        {"joe", "GET", "/api/v1/namespaces/red/pods/p/log", AUDIT_NONE, 0},
        {"joe", "GET", "/api/v1/namespaces/red/services/s/status", AUDIT_REQUEST, 3},
        {"joe", "GET", "/api/v1/namespaces/blue/pods", AUDIT_NONE, 0},
        {"joe", "GET", "/apis", AUDIT_METADATA, 1},
        {"joe", "GET", "/version", AUDIT_NONE, 0},
    };
    struct audit_policy *p = NULL;
    struct err e = {0};
    if (audit_policy_parse(policy, sizeof policy - 1, &p, &e) < 0) {
        fail_msg("%s", e.text);
    }
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(attributes_done) struct attributes a;
        CLEANUP(user_unref) struct user_info *u = user_new(cases[i].user);
        user_add_group(u, cases[i].user);
        attributes_parse(&a, cases[i].method, cases[i].path, false, NULL);
        struct audit_decision d = audit_policy_decide(p, u, &a);
        assert_int_equal(d.level, cases[i].level);
        assert_int_equal(d.omit, cases[i].omit);
    }
    audit_policy_free(p);
    p = audit_policy_default();
    CLEANUP(attributes_done) struct attributes a;
    attributes_parse(&a, "GET", "/x", false, NULL);
    assert_int_equal(audit_policy_decide(p, NULL, &a).level, AUDIT_METADATA);
    audit_policy_free(p);
}

/* What one rule matches: a policy of that rule alone. */
static void an_audit_rule_matches_all_of_its_conditions(void **state)
{
    static const struct {
        const char *rule, *user, *method, *path;
        bool match;
    } cases[] = {
        {"", "joe", "GET", "/x", true},
        {"users: [joe]", "joe", "GET", "/x", true},
        {"users: [jim]", "joe", "GET", "/x", false},
        {"users: []", "joe", "GET", "/x", true},
        {"userGroups: [dev]", "joe", "GET", "/x", true},
        {"userGroups: [ops]", "joe", "GET", "/x", false},
        {"userGroups: [ops, dev]", "joe", "GET", "/x", true},
        {"userGroups: [dev]", NULL, "GET", "/x", false},
        {"users: ['']", NULL, "GET", "/x", true},
        {"users: [joe]", NULL, "GET", "/x", false},
        {"users: [joe], userGroups: [ops]", "joe", "GET", "/x", false},
        {"verbs: [get]", "joe", "GET", "/api/v1/nodes/n", true},
        {"verbs: [list]", "joe", "GET", "/api/v1/nodes/n", false},
        {"nonResourceURLs: [/x]", "joe", "GET", "/x", true},
        {"nonResourceURLs: [/x]", "joe", "GET", "/xy", false},
        {"nonResourceURLs: ['/x*']", "joe", "GET", "/xy", true},
        {"nonResourceURLs: ['/x*']", "joe", "GET", "/y", false},
        {"nonResourceURLs: ['']", "joe", "GET", "/y", false},
        {"nonResourceURLs: ['*']", "joe", "GET", "/api/v1/nodes", false},
        {"namespaces: [red]", "joe", "GET", "/api/v1/namespaces/red/pods", true},
        {"namespaces: [red]", "joe", "GET", "/api/v1/namespaces/blue/pods", false},
        {"namespaces: [red]", "joe", "GET", "/x", false},
        {"namespaces: ['']", "joe", "GET", "/api/v1/nodes", true},
        {"resources: [{}]", "joe", "GET", "/api/v1/nodes", true},
        {"resources: [{}]", "joe", "GET", "/apis/apps/v1/deployments", false},
        {"resources: [{}]", "joe", "GET", "/x", false},
        {"resources: [{group: apps}]", "joe", "GET", "/apis/apps/v1/deployments", true},
        {"resources: [{group: apps}]", "joe", "GET", "/api/v1/nodes", false},
        {"resources: [{group: apps}, {group: ''}]", "joe", "GET", "/api/v1/nodes", true},
        {"resources: [{resources: [pods]}]", "joe", "GET", "/api/v1/pods", true},
        {"resources: [{resources: [nodes, pods]}]", "joe", "GET", "/api/v1/pods", true},
        {"resources: [{resources: [pod]}]", "joe", "GET", "/api/v1/pods", false},
        {"resources: [{resources: [podsx]}]", "joe", "GET", "/api/v1/pods", false},
        {"resources: [{resources: ['*']}]", "joe", "GET", "/api/v1/nodes/n/status", true},
        {"resources: [{resources: [nodes]}]", "joe", "GET", "/api/v1/nodes/n/status", false},
        {"resources: [{resources: [nodes/status]}]", "joe", "GET", "/api/v1/nodes/n/status", true},
        {"resources: [{resources: [nodes/statu]}]", "joe", "GET", "/api/v1/nodes/n/status", false},
        {"resources: [{resources: [nodes/]}]", "joe", "GET", "/api/v1/nodes/n", false},
        {"resources: [{resources: [nodes/status]}]", "joe", "GET", "/api/v1/nodes/n/proxy", false},
        {"resources: [{resources: [nodes/status]}]", "joe", "GET", "/api/v1/nodes/n", false},
        {"resources: [{resources: ['nodes/*']}]", "joe", "GET", "/api/v1/nodes/n/proxy", true},
        {"resources: [{resources: ['*/status']}]", "joe", "GET", "/api/v1/nodes/n/status", true},
        {"resources: [{resources: ['*/status']}]", "joe", "GET", "/api/v1/nodes/n/proxy", false},
        {"resources: [{resources: ['*/status']}]", "joe", "GET", "/api/v1/nodes/n", false},
        {"resources: [{resources: ['*/']}]", "joe", "GET", "/api/v1/nodes/n", false},
        {"resources: [{resources: [nodes], resourceNames: [one]}]", "joe", "GET",
         "/api/v1/nodes/one", true},
        {"resources: [{resources: [nodes], resourceNames: [one]}]", "joe", "GET", "/api/v1/nodes/m",
         false},
        {"resources: [{resources: [pods]}], namespaces: [red]", "joe", "GET",
         "/api/v1/namespaces/red/pods", true},
        {"resources: [{resources: [pods]}], namespaces: [red]", "joe", "GET",
         "/api/v1/namespaces/red/services", false},
        {"resources: [{resources: [pods]}], namespaces: [blue]", "joe", "GET",
         "/api/v1/namespaces/red/pods", false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *text = xasprintf("apiVersion: audit.k8s.io/v1\nkind: Policy\n"
                                            "rules: [{level: Request%s%s}]\n",
                                            *cases[i].rule ? ", " : "", cases[i].rule);
        CLEANUP(audit_policy_free) struct audit_policy *p = NULL;
        CLEANUP(attributes_done) struct attributes a;
        CLEANUP(user_unref) struct user_info *u = cases[i].user ? user_new(cases[i].user) : NULL;
        struct err e = {0};
        if (audit_policy_parse(text, strlen(text), &p, &e) < 0) {
            fail_msg("%s: %s", cases[i].rule, e.text);
        }
        if (u) {
            user_add_group(u, "dev");
        }
        attributes_parse(&a, cases[i].method, cases[i].path, false, NULL);
        struct audit_decision d = audit_policy_decide(p, u, &a);
        if (d.level != (cases[i].match ? AUDIT_REQUEST : AUDIT_NONE)) {
            fail_msg("%s: %s %s", cases[i].rule, cases[i].method, cases[i].path);
        }
    }
}

static void wrong_audit_policies_are_refused_with_the_field(void **state)
{
#define HEAD "apiVersion: audit.k8s.io/v1\nkind: Policy\n"
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"kind: Policy\nrules: []", "policy: is not a Policy of audit.k8s.io/v1"},
        {HEAD "rules: []", "policy.rules: must be a list of 1 to 1000 rules"},
        {"[]", "policy: must be an object"},
        {"kind: Policy\napiVersion: audit.k8s.io/v2\nrules: [{level: None}]",
         "policy: is not a Policy of audit.k8s.io/v1"},
        {"kind: Other\napiVersion: audit.k8s.io/v1\nrules: [{level: None}]",
         "policy: is not a Policy of audit.k8s.io/v1"},
        {HEAD "rule: []", "policy.rule: is not known"},
        {HEAD "rules: {a: b}", "policy.rules: must be a list of 1 to 1000 rules"},
        {HEAD "rules: [7]", "rules[0]: must be an object"},
        {HEAD "rules: [{level: None}, {}]",
         "rules[1].level: must be one of None, Metadata, Request, RequestResponse"},
        {HEAD "rules: [{level: None}]\nomitStages: x", "policy.omitStages: must be a list"},
        {HEAD "rules: [{level: None}]\nomitStages: [x]", "policy.omitStages: \"x\" is not a stage"},
        {HEAD "rules: [{level: None, resources: x}]", "rules[0].resources: must be a list"},
        {HEAD "rules: [{level: None, resources: [x]}]", "rules[0].resources: must be an object"},
        {HEAD "rules: [{level: None, resources: [{resources: x}]}]",
         "rules[0].resources.resources: must be a list"},
        {HEAD "rules: [{level: None, resources: [{resourceNames: [[x]]}]}]",
         "rules[0].resources.resourceNames: must be a list of strings"},
        {HEAD "rules: [{level: None, resources: [{group: [x]}]}]",
         "rules[0].resources.group: must be a string"},
        {HEAD "rules: [{level: None, verbs: x}]", "rules[0].verbs: must be a list"},
        {HEAD "rules: [{level: None, userGroups: x}]", "rules[0].userGroups: must be a list"},
        {HEAD "rules: [{level: None, namespaces: x}]", "rules[0].namespaces: must be a list"},
        {HEAD "rules: [{level: None, nonResourceURLs: x}]",
         "rules[0].nonResourceURLs: must be a list"},
        {HEAD "rules: [{level: None, nonResourceURLs: [/x], resources: [{group: a}]}]",
         "rules[0].nonResourceURLs: a rule is for paths or for resources, not for both"},
        {HEAD "rules: [{level: All}]",
         "rules[0].level: must be one of None, Metadata, Request, RequestResponse"},
        {HEAD "rules: [{level: None, user: [x]}]", "rules[0].user: is not known"},
        {HEAD "rules: [{level: None, users: x}]", "rules[0].users: must be a list"},
        {HEAD "rules: [{level: None, users: [[1]]}]", "rules[0].users: must be a list of strings"},
        {HEAD "rules: [{level: None, resources: [{groups: x}]}]",
         "rules[0].resources.groups: is not known"},
        {HEAD "rules: [{level: None, omitStages: [Last]}]",
         "rules[0].omitStages: \"Last\" is not a stage"},
        {HEAD "rules: [{level: None, nonResourceURLs: [/x], namespaces: [z]}]",
         "rules[0].nonResourceURLs: a rule is for paths or for resources, not for both"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct audit_policy *p = NULL;
        struct err e = {0};
        assert_int_equal(audit_policy_parse(cases[i].text, strlen(cases[i].text), &p, &e), -EINVAL);
        assert_string_equal(e.text, cases[i].error);
    }
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(attributes_are_read_off_the_path),
        T(a_header_is_a_bearer_token_or_wrong),
        T(secrets_are_equal_as_a_whole),
        T(users_know_what_they_are),
        T(a_user_is_freed_with_its_last_reference),
        T(the_first_audit_rule_that_matches_decides),
        T(an_audit_rule_matches_all_of_its_conditions),
        T(wrong_audit_policies_are_refused_with_the_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
