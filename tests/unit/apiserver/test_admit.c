/* SPDX-License-Identifier: Apache-2.0 */
/* Admission: escalation by roles and bindings, certificate requests, and writes of nodes. */
#include "apiserver/access/security.h"
#include "apiserver/request/server_priv.h"
#include "csr.h"
#include "harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define RBAC "/apis/rbac.authorization.k8s.io/v1/"
#define CSRS "/apis/certificates.k8s.io/v1/certificatesigningrequests"
#define CLIENT "kubernetes.io/kube-apiserver-client"
#define KUBELET "kubernetes.io/kube-apiserver-client-kubelet"
#define NODE "system:node:n1 system:nodes"

static struct harness *h;

#define BINDING(name, kind, role, who)                                                        \
    "{'metadata': {'name': '" name "'}, 'roleRef': {'apiGroup': 'rbac.authorization.k8s.io'," \
    "'kind': '" kind "', 'name': '" role "'}, 'subjects': [{'kind': 'User',"                  \
    "'apiGroup': 'rbac.authorization.k8s.io', 'name': '" who "'}]}"
#define ROLE(name, more) "{'metadata': {'name': '" name "'" more "}"
#define RULE(verb, group, resource) \
    "{'verbs': ['" verb "'], 'apiGroups': ['" group "'], 'resources': ['" resource "']}"
#define GET_PODS RULE("get", "", "pods")
#define EVERYTHING RULE("*", "*", "*") ", {'verbs': ['*'], 'nonResourceURLs': ['*']}"

#define WRITES_RBAC                                                                         \
    "{'verbs': ['create', 'update', 'delete'], 'apiGroups': ['rbac.authorization.k8s.io']," \
    "'resources': ['*']}"

static int set_up(void **state)
{
    static const char signers[] = "{'verbs': ['%s'], 'apiGroups': ['certificates.k8s.io'],"
                                  "'resources': ['signers'], 'resourceNames': ['%s']},"
                                  "{'verbs': ['update'], 'apiGroups': ['certificates.k8s.io'],"
                                  "'resources': ['certificatesigningrequests/approval',"
                                  "'certificatesigningrequests/status',"
                                  "'certificatesigningrequests']}";
    static const struct {
        const char *name, *verb, *signer;
    } holders[] = {{"approver", "approve", CLIENT},          {"signer", "sign", CLIENT},
                   {"domain", "approve", "kubernetes.io/*"}, {"other", "approve", "example.com/*"},
                   {"kubelets", "approve", KUBELET},         {"star", "*", "kubernetes.io"}};
    h = harness_new_secure((struct apiserver_security){0});
    free(make_namespace(h, "red"));
    free(make_namespace(h, "kube-node-lease"));
    give_rules(h, NULL, "jane", WRITES_RBAC "," GET_PODS);
    give_rules(h, NULL, "boss", WRITES_RBAC "," EVERYTHING);
    give_rules(h, NULL, "paths", WRITES_RBAC "," RULE("*", "*", "*"));
    give_rules(h, NULL, "escalator",
               WRITES_RBAC "," RULE("escalate", "rbac.authorization.k8s.io", "*"));
    give_rules(h, NULL, "binder",
               WRITES_RBAC ", {'verbs': ['bind'], 'apiGroups': ['rbac.authorization.k8s.io'],"
                           "'resources': ['clusterroles'], 'resourceNames': ['big']}");
    give_rules(h, NULL, "role-binder",
               WRITES_RBAC "," RULE("bind", "rbac.authorization.k8s.io", "roles"));
    give_rules(h, NULL, "asker",
               RULE("create", "certificates.k8s.io", "certificatesigningrequests"));
    for (size_t i = 0; i < ARRAY_SIZE(holders); i++) {
        CLEANUP_FREE char *rules = xasprintf(signers, holders[i].verb, holders[i].signer);
        give_rules(h, NULL, holders[i].name, rules);
    }
    return 0;
}

static int tear_down(void **state)
{
    harness_free(h);
    return 0;
}

static void check(const char *who, const char *method, const char *path, const char *body,
                  int status, const char *message)
{
    CLEANUP_ANSWER struct answer a = ask_as(h, who, method, path, NULL, body);
    if (a.status != status || (message && !streq(at(&a, "message"), message))) {
        fail_msg("%s: %s %s %s: %d: %s", who, method, path, body, a.status, a.text);
    }
}

/* ---- roles and bindings ---- */

#define GRANT(object, user, missing)                                                       \
    object " is forbidden: user \"" user "\" (groups=[\"system:authenticated\" "           \
           "\"system:authenticated:oauth\"]) is attempting to grant RBAC permissions not " \
           "currently held:\n" missing
#define MISSING(group, resource, verb) \
    "{APIGroups:[\"" group "\"], Resources:[\"" resource "\"], Verbs:[\"" verb "\"]}"
#define GROUP ".rbac.authorization.k8s.io"

static void a_user_cannot_write_a_role_with_more_rights_than_the_users_own(void **state)
{
    static const char listing[] = RULE("list", "", "pods");
    CLEANUP_FREE char *list_role = xasprintf("{'metadata': {'name': 'a'}, 'rules': [%s]}", listing);
    static const char get_role[] = "{'metadata': {'name': 'a'}, 'rules': [" GET_PODS "]}";
    const struct {
        const char *who, *method, *path, *body;
        int status;
        const char *message;
    } cases[] = {
        {"jane", "POST", RBAC "namespaces/red/roles", list_role, 403,
         GRANT("roles" GROUP " \"a\"", "jane", MISSING("", "pods", "list"))},
        {"jane", "POST", RBAC "clusterroles", list_role, 403,
         GRANT("clusterroles" GROUP " \"a\"", "jane", MISSING("", "pods", "list"))},
        {"jane", "POST", RBAC "namespaces/red/roles", get_role, 201, NULL},
        {"jane", "POST", RBAC "clusterroles", get_role, 201, NULL},
        {"jane", "PUT", RBAC "namespaces/red/roles/a", list_role, 403, NULL},
        {"jane", "PUT", RBAC "clusterroles/a", list_role, 403, NULL},
        {"jane", "POST", RBAC "namespaces/red/roles", "{'metadata': {'name': 'none'}}", 201, NULL},
        {"escalator", "PUT", RBAC "namespaces/red/roles/a", list_role, 200, NULL},
        {"escalator", "PUT", RBAC "clusterroles/a", list_role, 200, NULL},
        /* Rules that the role already has may stay. */
        {"jane", "PUT", RBAC "clusterroles/a", list_role, 200, NULL},
        {"jane", "PUT", RBAC "clusterroles/a",
         "{'metadata': {'name': 'a'}, 'rules': [" RULE("list", "", "pods") "," GET_PODS "]}", 403,
         GRANT("clusterroles" GROUP " \"a\"", "jane", MISSING("", "pods", "list"))},
        /* A label can aggregate the rules into another role: it is checked like the rules. */
        {"jane", "PUT", RBAC "clusterroles/a",
         "{'metadata': {'name': 'a', 'labels': {'to': 'admin'}}, 'rules': [" RULE("list", "",
                                                                                  "pods") "]}",
         403, GRANT("clusterroles" GROUP " \"a\"", "jane", MISSING("", "pods", "list"))},
        {"jane", "PUT", RBAC "clusterroles/a",
         "{'metadata': {'name': 'a', 'labels': {}}, 'rules': [" RULE("list", "", "pods") "]}", 200,
         NULL},
        {"boss", "PUT", RBAC "clusterroles/a",
         "{'metadata': {'name': 'a', 'labels': {'to': 'admin'}}, 'rules': [" RULE("list", "",
                                                                                  "pods") "]}",
         200, NULL},
        {"jane", "PUT", RBAC "clusterroles/a",
         "{'metadata': {'name': 'a', 'labels': {'to': 'admin'}}, 'rules': [" RULE("list", "",
                                                                                  "pods") "]}",
         200, NULL},
        {"jane", "PUT", RBAC "clusterroles/a", list_role, 403, NULL},
        {"jane system:masters", "PUT", RBAC "clusterroles/a", list_role, 200, NULL},
        {"jane", "PUT", RBAC "clusterroles/a", get_role, 200, NULL},
        {"nobody", "POST", RBAC "clusterroles", get_role, 403,
         "clusterroles.rbac.authorization.k8s.io is forbidden: User \"nobody\" cannot create "
         "resource \"clusterroles\" in API group \"rbac.authorization.k8s.io\" at the cluster "
         "scope"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        check(cases[i].who, cases[i].method, cases[i].path, cases[i].body, cases[i].status,
              cases[i].message);
    }
}

static void an_aggregation_rule_needs_all_rights(void **state)
{
#define GATHER(label)                                                                        \
    "{'metadata': {'name': 'g'}, 'rules': [], 'aggregationRule': {'clusterRoleSelectors': [" \
    "{'matchLabels': {'" label "': 'x'}}]}}"
    static const struct {
        const char *who, *method, *path, *body;
        int status;
    } cases[] = {
        {"jane", "POST", RBAC "clusterroles", GATHER("a"), 403},
        {"escalator", "POST", RBAC "clusterroles", GATHER("a"), 403},
        {"paths", "POST", RBAC "clusterroles", GATHER("a"), 403},
        {"x system:masters", "GET", RBAC "clusterroles/g", NULL, 404},
        {"boss", "POST", RBAC "clusterroles", GATHER("a"), 201},
        {"jane", "PUT", RBAC "clusterroles/g", GATHER("a"), 200},
        {"jane", "PUT", RBAC "clusterroles/g", GATHER("b"), 403},
        {"jane", "PUT", RBAC "clusterroles/g", "{'metadata': {'name': 'g'}, 'rules': []}", 200},
        {"jane", "PUT", RBAC "clusterroles/g", GATHER("a"), 403},
        {"jane", "PUT", RBAC "clusterroles/g",
         "{'metadata': {'name': 'g'}, 'rules': [], 'aggregationRule': null}", 200},
        {"boss", "PUT", RBAC "clusterroles/g", GATHER("b"), 200},
        {"x system:masters", "PUT", RBAC "clusterroles/g", GATHER("c"), 200},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        check(cases[i].who, cases[i].method, cases[i].path, cases[i].body, cases[i].status, NULL);
    }
    check(
        "paths", "PUT", RBAC "clusterroles/g", GATHER("d"), 403,
        GRANT("clusterroles" GROUP " \"g\"", "paths", "{NonResourceURLs:[\"*\"], Verbs:[\"*\"]}"));
}

static void a_user_cannot_bind_a_role_with_more_rights_than_the_users_own(void **state)
{
    put_in(h, "POST", RBAC "clusterroles",
           "{'metadata': {'name': 'big'}, 'rules': [" RULE("delete", "", "pods") "]}", 201);
    put_in(h, "POST", RBAC "clusterroles",
           "{'metadata': {'name': 'small'}, 'rules': [" GET_PODS "]}", 201);
    put_in(h, "POST", RBAC "namespaces/red/roles",
           "{'metadata': {'name': 'big'}, 'rules': [" RULE("delete", "", "pods") "]}", 201);
    put_in(h, "POST", RBAC "namespaces/red/roles",
           "{'metadata': {'name': 'small'}, 'rules': [" GET_PODS "]}", 201);
    static const struct {
        const char *who, *method, *path, *body;
        int status;
        const char *message;
    } cases[] = {
        {"jane", "POST", RBAC "namespaces/red/rolebindings",
         BINDING("b", "ClusterRole", "big", "jane"), 403,
         GRANT("rolebindings" GROUP " \"b\"", "jane", MISSING("", "pods", "delete"))},
        {"jane", "POST", RBAC "clusterrolebindings", BINDING("b", "ClusterRole", "big", "jane"),
         403, GRANT("clusterrolebindings" GROUP " \"b\"", "jane", MISSING("", "pods", "delete"))},
        {"jane", "POST", RBAC "namespaces/red/rolebindings", BINDING("b", "Role", "big", "jane"),
         403, NULL},
        {"jane", "POST", RBAC "namespaces/red/rolebindings",
         BINDING("s", "ClusterRole", "small", "joe"), 201, NULL},
        {"jane", "POST", RBAC "namespaces/red/rolebindings", BINDING("r", "Role", "small", "joe"),
         201, NULL},
        {"jane", "POST", RBAC "clusterrolebindings", BINDING("s", "ClusterRole", "small", "joe"),
         201, NULL},
        {"jane", "POST", RBAC "clusterrolebindings", BINDING("x", "ClusterRole", "absent", "joe"),
         404, "clusterroles.rbac.authorization.k8s.io \"absent\" not found"},
        {"jane", "POST", RBAC "namespaces/red/rolebindings", BINDING("x", "Role", "absent", "joe"),
         404, "roles.rbac.authorization.k8s.io \"absent\" not found"},
        /* The ClusterRole of that name, and the Role in another namespace, do not count. */
        {"jane", "POST", RBAC "namespaces/red/rolebindings", BINDING("x", "Role", "jane", "joe"),
         404, NULL},
        {"jane", "POST", RBAC "namespaces/default/rolebindings",
         BINDING("x", "Role", "small", "joe"), 404, NULL},
        {"jane", "POST", RBAC "clusterrolebindings",
         "{'metadata': {'name': 'x'}, 'roleRef': {'apiGroup': 'rbac.authorization.k8s.io',"
         "'kind': 'ClusterRole'}}",
         422, NULL},
        {"jane", "POST", RBAC "clusterrolebindings",
         "{'metadata': {'name': 'x'}, 'roleRef': {'apiGroup': 'rbac.authorization.k8s.io',"
         "'name': 'big'}}",
         422, NULL},
        /* The verb "bind" is granted by kind and name of the role. */
        {"binder", "POST", RBAC "clusterrolebindings", BINDING("b", "ClusterRole", "big", "joe"),
         201, NULL},
        {"binder", "POST", RBAC "namespaces/red/rolebindings", BINDING("b", "Role", "big", "joe"),
         403, NULL},
        {"binder", "POST", RBAC "clusterrolebindings", BINDING("y", "ClusterRole", "small", "joe"),
         403, NULL},
        {"binder", "POST", RBAC "clusterrolebindings", BINDING("y", "ClusterRole", "boss", "joe"),
         403, NULL},
        {"role-binder", "POST", RBAC "namespaces/red/rolebindings",
         BINDING("b", "Role", "big", "joe"), 201, NULL},
        {"role-binder", "POST", RBAC "namespaces/red/rolebindings",
         BINDING("c", "ClusterRole", "big", "joe"), 403, NULL},
        /* A new subject in an existing binding is checked like a new binding. */
        {"jane", "PUT", RBAC "clusterrolebindings/b", BINDING("b", "ClusterRole", "big", "joe"),
         200, NULL},
        {"jane", "PUT", RBAC "clusterrolebindings/b", BINDING("b", "ClusterRole", "big", "jane"),
         403, NULL},
        {"jane", "PUT", RBAC "clusterrolebindings/b",
         "{'metadata': {'name': 'b'}, 'roleRef': {'apiGroup': 'rbac.authorization.k8s.io',"
         "'kind': 'ClusterRole', 'name': 'boss'}, 'subjects': [{'kind': 'User',"
         "'apiGroup': 'rbac.authorization.k8s.io', 'name': 'joe'}]}",
         403, NULL},
        {"binder", "PUT", RBAC "clusterrolebindings/b", BINDING("b", "ClusterRole", "big", "jim"),
         200, NULL},
        {"jane system:masters", "PUT", RBAC "clusterrolebindings/b",
         BINDING("b", "ClusterRole", "big", "jane"), 200, NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        check(cases[i].who, cases[i].method, cases[i].path, cases[i].body, cases[i].status,
              cases[i].message);
    }
}

static void a_refusal_lists_the_users_groups(void **state)
{
    check("jim dev rbac", "POST", RBAC "clusterroles", ROLE("q", "}, 'rules': [" GET_PODS "]"), 403,
          NULL);
    put_in(h, "POST", RBAC "clusterrolebindings",
           "{'metadata': {'name': 'devs'}, 'roleRef': {'apiGroup': 'rbac.authorization.k8s.io',"
           "'kind': 'ClusterRole', 'name': 'binder'}, 'subjects': [{'kind': 'Group',"
           "'apiGroup': 'rbac.authorization.k8s.io', 'name': 'dev'}]}",
           201);
    check("jim dev ops", "POST", RBAC "clusterroles", ROLE("q", "}, 'rules': [" GET_PODS "]"), 403,
          "clusterroles" GROUP " \"q\" is forbidden: user \"jim\" (groups=[\"dev\" \"ops\" "
          "\"system:authenticated\"]) is attempting to grant RBAC permissions not currently "
          "held:\n" MISSING("", "pods", "get"));
    put_in(h, "DELETE", RBAC "clusterrolebindings/devs", NULL, 200);
}

/* ---- requests for certificates ---- */

static struct answer request(const char *who, const char *name, const char *signer,
                             const struct csr_wish *wish, const char *more)
{
    CLEANUP_FREE char *text = csr_text(wish);
    CLEANUP_FREE char *body = xasprintf("{'metadata': {'name': '%s'}, 'spec': {'request': '%s',"
                                        "'signerName': '%s', 'usages': ['client auth']%s}}",
                                        name, text, signer, more);
    return ask_as(h, who, "POST", CSRS, NULL, body);
}

static const char *const nodes[] = {"system:nodes", NULL};
static const char *const masters[] = {"dev", "system:masters", NULL};
static const char *const masters_first[] = {"system:masters", "dev", NULL};

static void the_server_writes_the_user_into_a_request(void **state)
{
    CLEANUP_ANSWER struct answer a = request(
        "asker dev", "spoofed", CLIENT, &(struct csr_wish){.cn = "asker"},
        ", 'username': 'boss', 'uid': '7', 'groups': ['system:masters'], 'extra': {'k': ['v']}");
    assert_int_equal(a.status, 201);
    assert_string_equal(at(&a, "spec.username"), "asker");
    assert_string_equal(at(&a, "spec.groups.0"), "dev");
    assert_string_equal(at(&a, "spec.groups.1"), "system:authenticated");
    assert_string_equal(at(&a, "spec.groups.2"), "");
    assert_null(json_path(a.body, "spec", "uid", NULL));
    assert_null(json_path(a.body, "spec", "extra", NULL));
    static const char *const headers[] = {"Authorization",
                                          "Bearer " HARNESS_TOKEN,
                                          "Impersonate-User",
                                          "asker",
                                          "Impersonate-Uid",
                                          "8",
                                          "Impersonate-Extra-k",
                                          "v",
                                          NULL};
    CLEANUP_FREE char *text = csr_text(&(struct csr_wish){.cn = "asker"});
    CLEANUP_FREE char *body = xasprintf("{'metadata': {'name': 'whole'}, 'spec': {'request': '%s',"
                                        "'signerName': '" CLIENT "', 'usages': ['client auth']}}",
                                        text);
    CLEANUP_ANSWER struct answer b =
        ask_by(h, &(struct sender){.headers = headers}, "POST", CSRS, body);
    assert_int_equal(b.status, 201);
    assert_string_equal(at(&b, "spec.uid"), "8");
    assert_string_equal(at(&b, "spec.extra.k.0"), "v");
    /* An update does not change the user. */
    CLEANUP_FREE char *later = xasprintf("{'metadata': {'name': 'whole'}, 'spec': {'request': '%s',"
                                         "'signerName': '" CLIENT "', 'usages': ['client auth'],"
                                         "'username': 'boss'}}",
                                         text);
    CLEANUP_ANSWER struct answer c = ask_as(h, "approver", "PUT", CSRS "/whole", NULL, later);
    assert_int_equal(c.status, 200);
    assert_string_equal(at(&c, "spec.username"), "asker");
}

static void a_request_for_another_identity_is_refused(void **state)
{
#define NO_MASTERS                                                                      \
    "certificatesigningrequests.certificates.k8s.io \"t\" is forbidden: use of " CLIENT \
    " signer with system:masters group is not allowed"
#define OWN                                                                                       \
    "certificatesigningrequests.certificates.k8s.io \"t\" is forbidden: a node can only ask for " \
    "its own certificate"
    static const struct {
        const char *who, *signer;
        struct csr_wish wish;
        int status;
        const char *message;
    } cases[] = {
        {"asker", CLIENT, {.cn = "anybody"}, 201, NULL},
        {"asker", CLIENT, {.cn = "asker", .o = masters}, 403, NO_MASTERS},
        {"boss", CLIENT, {.cn = "boss", .o = masters_first}, 403, NO_MASTERS},
        {"x system:masters", CLIENT, {.cn = "x", .o = masters}, 403, NO_MASTERS},
        {"asker", "example.com/mine", {.cn = "asker", .o = masters}, 201, NULL},
        {"asker", KUBELET, {.cn = "system:node:n1", .o = nodes}, 201, NULL},
        {NODE, KUBELET, {.cn = "system:node:n1", .o = nodes}, 201, NULL},
        {NODE, KUBELET, {.cn = "system:node:n2", .o = nodes}, 403, OWN},
        {NODE, KUBELET, {.cn = "system:node:n11", .o = nodes}, 403, OWN},
        {NODE, KUBELET, {.cn = "jane"}, 403, OWN},
        {NODE, KUBELET, {.o = nodes}, 403, OWN},
        {NODE, CLIENT, {.cn = "system:node:n2"}, 201, NULL},
        {"asker", CLIENT, {.cn = "weak", .key = "RSA-1024"}, 422, NULL},
        {NODE, KUBELET, {.cn = "system:node:n1", .second_cn = "system:node:n2"}, 422, NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_ANSWER struct answer a =
            request(cases[i].who, "t", cases[i].signer, &cases[i].wish, "");
        if (a.status != cases[i].status ||
            (cases[i].message && !streq(at(&a, "message"), cases[i].message))) {
            fail_msg("case %zu: %s", i, a.text);
        }
        if (a.status == 201) {
            put_in(h, "DELETE", CSRS "/t", NULL, 200);
        }
    }
    static const struct {
        const char *spec;
        int status;
        const char *told; /* 422: the field; 400: a part of the message. */
    } malformed[] = {
        {"'spec': {'request': 'bm90aGluZw==', 'signerName': '" CLIENT
         "', 'usages': ['client auth']}",
         422, "spec.request"},
        {"'spec': {'request': '%%%', 'signerName': '" CLIENT "', 'usages': ['client auth']}", 400,
         "base64"},
        {"'spec': {'request': 7, 'signerName': '" CLIENT "', 'usages': ['client auth']}", 400,
         "CertificateSigningRequestSpec.spec.request of type []uint8"},
        {"'spec': {'signerName': '" CLIENT "', 'usages': ['client auth']}", 422, "spec.request"},
        {"'spec': {'request': 'bm90aGluZw==', 'usages': ['client auth']}", 422, "spec.signerName"},
        {"'spec': 7", 400, "CertificateSigningRequest.spec of type"},
        {"'status': {}", 422, "spec"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(malformed); i++) {
        CLEANUP_FREE char *body = xasprintf("{'metadata': {'name': 't'}, %s}", malformed[i].spec);
        CLEANUP_ANSWER struct answer a = ask_as(h, "asker", "POST", CSRS, NULL, body);
        const char *field = a.status == 422 ? at(&a, "details.causes.0.field") : at(&a, "message");
        const char *found = strstr(field, malformed[i].told);
        if (a.status != malformed[i].status || !found || (a.status == 422 && found != field)) {
            fail_msg("%s: %s", body, a.text);
        }
    }
}

static struct answer decide(const char *who, const char *part, const char *status)
{
    CLEANUP_FREE char *path = xasprintf(CSRS "/%s", part);
    CLEANUP_FREE char *name = xstrndup(part, strcspn(part, "/"));
    CLEANUP_FREE char *body =
        xasprintf("{'metadata': {'name': '%s'}, 'status': {%s}}", name, status);
    return ask_as(h, who, "PUT", path, NULL, body);
}

static void approving_and_signing_need_the_right_for_the_signer(void **state)
{
#define APPROVED \
    "'conditions': [{'type': 'Approved', 'status': 'True', 'reason': 'r', 'message': 'm'}]"
#define NO_LEAVE(name, verb, signer)                         \
    "certificatesigningrequests.certificates.k8s.io \"" name \
    "\" is forbidden: user not permitted "                   \
    "to " verb " requests with signerName \"" signer "\""
    CLEANUP_ANSWER struct answer a =
        request("asker", "client", CLIENT, &(struct csr_wish){.cn = "asker"}, "");
    CLEANUP_ANSWER struct answer b =
        request("asker", "mine", "example.com/mine", &(struct csr_wish){.cn = "asker"}, "");
    static const struct {
        const char *who, *part;
        int status;
        const char *message;
    } cases[] = {
        {"signer", "client/approval", 403, NO_LEAVE("client", "approve", CLIENT)},
        {"other", "client/approval", 403, NO_LEAVE("client", "approve", CLIENT)},
        {"kubelets", "client/approval", 403, NO_LEAVE("client", "approve", CLIENT)},
        {"star", "client/approval", 403, NO_LEAVE("client", "approve", CLIENT)},
        {"approver", "mine/approval", 403, NO_LEAVE("mine", "approve", "example.com/mine")},
        {"domain", "mine/approval", 403, NO_LEAVE("mine", "approve", "example.com/mine")},
        {"approver", "client/approval", 200, NULL},
        {"domain", "client/approval", 200, NULL},
        {"other", "mine/approval", 200, NULL},
        {"boss", "mine/approval", 200, NULL},
        {"approver", "client/status", 403, NO_LEAVE("client", "sign", CLIENT)},
        {"domain", "client/status", 403, NO_LEAVE("client", "sign", CLIENT)},
        {"signer", "client/status", 200, NULL},
        {"signer", "mine/status", 403, NO_LEAVE("mine", "sign", "example.com/mine")},
        {"boss", "mine/status", 200, NULL},
        {"asker", "client/approval", 403, NULL},
        {"signer", "client", 200, NULL},
    };
    assert_int_equal(a.status, 201);
    assert_int_equal(b.status, 201);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_ANSWER struct answer c =
            decide(cases[i].who, cases[i].part,
                   strstr(cases[i].part, "/status") ? "'certificate': ''" : APPROVED);
        if (c.status != cases[i].status ||
            (cases[i].message && !streq(at(&c, "message"), cases[i].message))) {
            fail_msg("case %zu: %s %s: %s", i, cases[i].who, cases[i].part, c.text);
        }
    }
    /* An update of the object or of its status does not approve the request. */
    put_in(h, "DELETE", CSRS "/client", NULL, 200);
    CLEANUP_ANSWER struct answer again =
        request("asker", "client", CLIENT, &(struct csr_wish){.cn = "asker"}, "");
    CLEANUP_ANSWER struct answer whole = decide("signer", "client", APPROVED);
    CLEANUP_ANSWER struct answer status = decide("signer", "client/status", APPROVED);
    CLEANUP_ANSWER struct answer is = ask(h, "GET", CSRS "/client", NULL);
    assert_string_equal(at(&is, "status.conditions.0.type"), "");
}

static void stored(void *ctx, int error, uint64_t revision)
{
    assert_int_equal(error, 0);
    *(bool *) ctx = true;
}

/* Validation refuses such a request; a store from elsewhere may have one. */
static void a_request_without_a_signer_needs_the_right_for_all_signers(void **state)
{
    const struct cache_kind *ck = cache_find(
        &h->api->cache, api_kind_find("certificates.k8s.io", "v1", "certificatesigningrequests"));
    CLEANUP_FREE char *key = cache_store_key(ck, "without");
    CLEANUP_FREE char *text =
        quoted("{'kind': 'CertificateSigningRequest', 'apiVersion': 'certificates.k8s.io/v1',"
               "'metadata': {'name': 'without', 'uid': 'u'}, 'spec': {}}");
    CLEANUP(blob_unref) struct blob *b = blob_new(text, strlen(text));
    bool done = false;
    store_put(h->store, key, b, STORE_ANY, stored, &done);
    assert_int_equal(loop_run_until(h->loop, &done, 20000), 0);
    static const char *const who[] = {"approver", "domain", "other", "star"};
    for (size_t i = 0; i < ARRAY_SIZE(who); i++) {
        CLEANUP_ANSWER struct answer a = decide(who[i], "without/approval", APPROVED);
        assert_int_equal(a.status, 403);
        assert_string_equal(at(&a, "message"), NO_LEAVE("without", "approve", ""));
    }
}

/* ---- nodes ---- */

static void a_node_cannot_change_its_taints_restriction_labels_or_owners(void **state)
{
#define RESTRICTED                                                       \
    "nodes \"n1\" is forbidden: a node is not allowed to set labels of " \
    "node-restriction.kubernetes.io"
#define TAINTS "nodes \"n1\" is forbidden: a node is not allowed to change its taints"
#define OWNERS "nodes \"n1\" is forbidden: a node is not allowed to set owner references"
#define N1(metadata, spec) "{'metadata': {'name': 'n1'" metadata "}, 'spec': {" spec "}}"
#define TAINT(key) "'taints': [{'key': '" key "', 'effect': 'NoSchedule'}]"
#define OWNER(name)                                                                  \
    ", 'ownerReferences': [{'apiVersion': 'v1', 'kind': 'ConfigMap', 'name': '" name \
    "', 'uid': 'u'}]"
    static const struct {
        const char *who, *method, *path, *body;
        int status;
        const char *message;
    } cases[] = {
        {NODE, "POST", "/api/v1/nodes", "{'metadata': {'name': 'n2'}}", 403,
         "nodes \"n2\" is forbidden: a node is only allowed to change its own Node"},
        {NODE, "POST", "/api/v1/nodes", "{'metadata': {'generateName': 'n'}}", 403, NULL},
        {NODE, "POST", "/api/v1/nodes",
         N1(", 'labels': {'node-restriction.kubernetes.io/zone': 'a'}", ""), 403, RESTRICTED},
        {NODE, "POST", "/api/v1/nodes", N1(OWNER("a"), ""), 403, OWNERS},
        {NODE, "POST", "/api/v1/nodes", N1(", 'labels': {'a': 'b'}", TAINT("new")), 201, NULL},
        {NODE, "PUT", "/api/v1/nodes/n1", N1("", TAINT("new")), 200, NULL},
        {NODE, "PUT", "/api/v1/nodes/n1", N1("", TAINT("other")), 403, TAINTS},
        {NODE, "PUT", "/api/v1/nodes/n1", N1("", ""), 403, TAINTS},
        {NODE, "PUT", "/api/v1/nodes/n1", N1("", "'taints': []"), 403, TAINTS},
        {"m system:masters", "PUT", "/api/v1/nodes/n1", N1("", ""), 200, NULL},
        {NODE, "PUT", "/api/v1/nodes/n1", N1("", "'taints': []"), 200, NULL},
        {NODE, "PUT", "/api/v1/nodes/n1", N1("", TAINT("new")), 403, TAINTS},
        /* Labels. */
        {NODE, "PUT", "/api/v1/nodes/n1",
         N1(", 'labels': {'kubernetes.io/os': 'linux', 'node-restriction.kubernetes.io': 'x',"
            "'xnode-restriction.kubernetes.io/a': 'b', 'restriction.kubernetes.io/a': 'b',"
            "'a/node-restriction.kubernetes.io': 'x'}",
            ""),
         200, NULL},
        {NODE, "PUT", "/api/v1/nodes/n1",
         N1(", 'labels': {'node-restriction.kubernetes.io/a': 'b'}", ""), 403, RESTRICTED},
        {NODE, "PUT", "/api/v1/nodes/n1",
         N1(", 'labels': {'x.node-restriction.kubernetes.io/a': 'b'}", ""), 403, RESTRICTED},
        {"m system:masters", "PUT", "/api/v1/nodes/n1",
         N1(", 'labels': {'node-restriction.kubernetes.io/a': 'b'}", ""), 200, NULL},
        {NODE, "PUT", "/api/v1/nodes/n1",
         N1(", 'labels': {'node-restriction.kubernetes.io/a': 'b', 'mine': 'x'}", ""), 200, NULL},
        {NODE, "PUT", "/api/v1/nodes/n1",
         N1(", 'labels': {'node-restriction.kubernetes.io/a': 'c'}", ""), 403, RESTRICTED},
        {NODE, "PUT", "/api/v1/nodes/n1", N1("", ""), 403, RESTRICTED},
        {NODE, "PUT", "/api/v1/nodes/n1",
         N1(", 'labels': {'node-restriction.kubernetes.io/b': 'b'}", ""), 403, RESTRICTED},
        /* Owners. */
        {NODE, "PUT", "/api/v1/nodes/n1",
         N1(", 'labels': {'node-restriction.kubernetes.io/a': 'b'}" OWNER("a"), ""), 403, OWNERS},
        {"m system:masters", "PUT", "/api/v1/nodes/n1", N1(OWNER("a"), ""), 200, NULL},
        {NODE, "PUT", "/api/v1/nodes/n1", N1(OWNER("a"), ""), 200, NULL},
        {NODE, "PUT", "/api/v1/nodes/n1", N1(OWNER("b"), ""), 403, OWNERS},
        {NODE, "PUT", "/api/v1/nodes/n1", N1("", ""), 200, NULL},
        /* An update of the status leaves taints as they are. */
        {NODE, "PUT", "/api/v1/nodes/n1/status", N1("", TAINT("x")), 200, NULL},
        {NODE, "PUT", "/api/v1/nodes/n2/status", "{'metadata': {'name': 'n2'}}", 403,
         "nodes \"n2\" is forbidden: User \"system:node:n1\" cannot update resource "
         "\"nodes/status\" in API group \"\" at the cluster scope"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        check(cases[i].who, cases[i].method, cases[i].path, cases[i].body, cases[i].status,
              cases[i].message);
    }
    CLEANUP_ANSWER struct answer a = ask(h, "GET", "/api/v1/nodes/n1", NULL);
    assert_string_equal(at(&a, "spec.taints.0.key"), "");
}

static void a_node_creates_only_the_lease_and_csinode_of_its_own_name(void **state)
{
#define LEASES "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
#define CSI_NODES "/apis/storage.k8s.io/v1/csinodes"
#define OWN_LEASE(name)                                          \
    "leases.coordination.k8s.io \"" name                         \
    "\" is forbidden: a node is only allowed to make the lease " \
    "of its own name"
    static const struct {
        const char *method, *path, *body;
        int status;
        const char *message;
    } cases[] = {
        {"POST", LEASES, "{'metadata': {'name': 'n2'}, 'spec': {}}", 403, OWN_LEASE("n2")},
        {"POST", LEASES, "{'metadata': {'generateName': 'n1'}, 'spec': {}}", 403, NULL},
        {"POST", LEASES, "{'metadata': {'name': 'n1'}, 'spec': {}}", 201, NULL},
        {"PATCH", LEASES "/n1", "{'spec': {'holderIdentity': 'n1'}}", 200, NULL},
        {"DELETE", LEASES "/n1", NULL, 200, NULL},
        {"PUT", LEASES "/n1", "{'metadata': {'name': 'n1'}, 'spec': {}}", 201, NULL},
        {"PUT", LEASES "/n2", "{'metadata': {'name': 'n2'}, 'spec': {}}", 403, NULL},
        {"POST", "/api/v1/namespaces/red/events",
         "{'metadata': {'name': 'e', 'namespace': 'red'}, 'involvedObject': {'namespace': 'red'}}",
         201, NULL},
        {"POST", CSI_NODES, "{'metadata': {'name': 'n2'}, 'spec': {'drivers': []}}", 403,
         "csinodes.storage.k8s.io \"n2\" is forbidden: a node is only allowed to make the CSINode "
         "of its own name"},
        {"POST", CSI_NODES, "{'metadata': {'name': 'n1'}, 'spec': {'drivers': []}}", 201, NULL},
        {"PATCH", CSI_NODES "/n1", "{'metadata': {'labels': {'a': 'b'}}}", 200, NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        check(NODE, cases[i].method, cases[i].path, cases[i].body, cases[i].status,
              cases[i].message);
    }
}

#define POD(name, more)                                                                            \
    "{'metadata': {'name': '" name "'}, 'spec': {'containers': [{'name': 'c', 'image': 'i'}]" more \
    "}}"
#define TEMPLATE(more)                                                                       \
    "{'metadata': {'name': 'd'}, 'spec': {'selector': {'matchLabels': {'a': 'b'}},"          \
    "'template': {'metadata': {'labels': {'a': 'b'}}, 'spec': {'containers': [{'name': 'c'," \
    "'image': 'i'}]" more "}}}}"

static void only_who_may_bind_pods_chooses_their_nodes(void **state)
{
    static const char *const labels[] = {"kubernetes.io/hostname", NULL};
    static const char pods[] = "/api/v1/namespaces/red/pods";
    static const char deployments[] = "/apis/apps/v1/namespaces/red/deployments";
    static const char by_label[] = ", 'nodeSelector': {'kubernetes.io/hostname': 'n1'}";
    CLEANUP_FREE char *host_pod = xasprintf(POD("h", "%s"), by_label);
    CLEANUP_FREE char *host_template = xasprintf(TEMPLATE("%s"), by_label);
    static const char why[] =
        "node selection by label(s) [kubernetes.io/hostname] is prohibited by "
        "policy for your role";
    CLEANUP_FREE char *of_pod = xasprintf("pods \"h\" is forbidden: %s", why);
    CLEANUP_FREE char *of_template = xasprintf("deployments.apps \"d\" is forbidden: %s", why);
    give_rules(h, NULL, "maker",
               RULE("*", "", "pods") "," RULE("*", "apps",
                                              "*") "," RULE("use", "security.openshift.io", "*"));
    give_rules(h, NULL, "scheduler",
               RULE("*", "", "pods") "," RULE("create", "", "pods/binding") "," RULE(
                   "use", "security.openshift.io", "*"));
    check("maker", "POST", pods, POD("free", ", 'nodeName': 'n1'"), 201, NULL);
    h->api->cfg.node_selector_blacklist = labels;
    check("maker", "POST", pods, host_pod, 403, of_pod);
    check("maker", "POST", deployments, host_template, 403, of_template);
    check("maker", "POST", pods, POD("n", ", 'nodeName': 'n1'"), 403,
          "pods \"n\" is forbidden: node selection by nodeName is prohibited by policy for your "
          "role");
    check("maker", "POST", pods, POD("o", ", 'nodeSelector': {'disk': 'ssd'}"), 201, NULL);
    /* What was there before stays changeable. */
    CLEANUP_ANSWER struct answer patched =
        ask_as(h, "maker", "PATCH", "/api/v1/namespaces/red/pods/free",
               "application/merge-patch+json", "{'metadata': {'labels': {'a': 'b'}}}");
    assert_int_equal(patched.status, 200);
    check("scheduler", "POST", pods, host_pod, 201, NULL);
    check("scheduler", "POST", pods, POD("n", ", 'nodeName': 'n1'"), 201, NULL);
    h->api->cfg.node_selector_blacklist = NULL;
}

static void pods_get_the_node_selector_of_their_project(void **state)
{
    static const char pods[] = "/api/v1/namespaces/red/pods";
    h->api->cfg.default_node_selector = "env=shared, disk=ssd";
    CLEANUP_ANSWER struct answer a =
        ask_as(h, "maker", "POST", pods, NULL, POD("s", ", 'nodeSelector': {'x': 'y'}"));
    assert_int_equal(a.status, 201);
    CLEANUP_FREE char *text = json_to_text(json_path(a.body, "spec", "nodeSelector", NULL));
    assert_string_equal(text, "{\"x\":\"y\",\"env\":\"shared\",\"disk\":\"ssd\"}");
    check("maker", "POST", pods, POD("t", ", 'nodeSelector': {'env': 'mine'}"), 403,
          "pods \"t\" is forbidden: pod node label selector conflicts with its project node label "
          "selector");
    check("maker", "POST", pods, POD("t", ", 'nodeName': 'n1'"), 403,
          "pods \"t\" is forbidden: the node that spec.nodeName names does not have the labels of "
          "the project's node selector");
    h->api->cfg.default_node_selector = NULL;
}

static void always_allow_skips_admission(void **state)
{
    h->api->security->always_allow = true;
    check("joe", "POST", RBAC "clusterroles",
          "{'metadata': {'name': 'z'}, 'rules': [" EVERYTHING "]}", 201, NULL);
    check("joe", "POST", RBAC "clusterrolebindings", BINDING("z", "ClusterRole", "z", "joe"), 201,
          NULL);
    check("joe", "POST", RBAC "clusterroles",
          "{'metadata': {'name': 'gathers'}, 'rules': [], 'aggregationRule': {"
          "'clusterRoleSelectors': [{'matchLabels': {'x': 'y'}}]}}",
          201, NULL);
    check(NODE, "POST", "/api/v1/nodes", "{'metadata': {'name': 'n9'}}", 201, NULL);
    check(NODE, "POST", LEASES, "{'metadata': {'name': 'n9'}, 'spec': {}}", 201, NULL);
    /* The server still writes the user into a certificate request. */
    CLEANUP_ANSWER struct answer a =
        request("joe", "joes", CLIENT, &(struct csr_wish){.cn = "x"}, ", 'username': 'y'");
    assert_string_equal(at(&a, "spec.username"), "joe");
    h->api->security->always_allow = false;
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_user_cannot_write_a_role_with_more_rights_than_the_users_own),
        T(an_aggregation_rule_needs_all_rights),
        T(a_user_cannot_bind_a_role_with_more_rights_than_the_users_own),
        T(a_refusal_lists_the_users_groups),
        T(the_server_writes_the_user_into_a_request),
        T(a_request_for_another_identity_is_refused),
        T(approving_and_signing_need_the_right_for_the_signer),
        T(a_request_without_a_signer_needs_the_right_for_all_signers),
        T(a_node_cannot_change_its_taints_restriction_labels_or_owners),
        T(a_node_creates_only_the_lease_and_csinode_of_its_own_name),
        T(only_who_may_bind_pods_chooses_their_nodes),
        T(pods_get_the_node_selector_of_their_project),
        T(always_allow_skips_admission),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
