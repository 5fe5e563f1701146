/* SPDX-License-Identifier: Apache-2.0 */
/* Create-only kinds: reviews of access, rules and tokens, and TokenRequests; the public
 * documents of the token issuer. */
#include "apiserver/access/security.h"
#include "apiserver/access/token.h"
#include "apiserver/request/server_priv.h"
#include "base/timeutil.h"
#include "harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define RED "/api/v1/namespaces/red/"
#define RBAC "/apis/rbac.authorization.k8s.io/v1/"
#define AUTHZ "/apis/authorization.k8s.io/v1/"
#define TOKEN RED "serviceaccounts/robot/token"
#define US "https://kubernetes.default.svc"
#define NODE "system:node:n1 system:nodes"

static struct harness *h;
static char *robot, *pod, *far, *secret, *node;

static int set_up(void **state)
{
    h = harness_new_secure((struct apiserver_security){0});
    free(make_namespace(h, "red"));
    robot = make_object(h, RED "serviceaccounts", "{'metadata': {'name': 'robot'}}");
    free(make_object(h, RED "serviceaccounts",
                     "{'metadata': {'name': 'leaving', 'finalizers': ['example.com/wait']}}"));
    put_in(h, "DELETE", RED "serviceaccounts/leaving", NULL, 200);
    node = make_object(h, "/api/v1/nodes", "{'metadata': {'name': 'n1'}}");
#define POD(name, node, account)                                     \
    "{'metadata': {'name': '" name "'}, 'spec': {'nodeName': '" node \
    "', 'serviceAccountName': '" account "', 'containers': [{'name': 'c', 'image': 'i'}]}}"
    pod = make_object(h, RED "pods", POD("web", "n1", "robot"));
    far = make_object(h, RED "pods", POD("far", "n2", "robot"));
    free(make_object(h, RED "pods",
                     "{'metadata': {'name': 'pending'}, 'spec': {'serviceAccountName': 'robot',"
                     "'containers': [{'name': 'c', 'image': 'i'}]}}"));
    free(make_object(h, RED "serviceaccounts", "{'metadata': {'name': 'other'}}"));
    free(make_object(h, RED "pods", POD("other", "n1", "other")));
    free(make_object(h, RED "pods", POD("plain", "n1", "")));
    secret = make_object(h, RED "secrets", "{'metadata': {'name': 'bound'}}");
    give_rules(h, NULL, "jane",
               "{'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods', 'pods/log'],"
               "'resourceNames': ['web']}, {'verbs': ['get'], 'nonResourceURLs': ['/metrics']}");
    give_rules(h, NULL, "reviewer",
               "{'verbs': ['create'], 'apiGroups': ['authorization.k8s.io',"
               "'authentication.k8s.io'], 'resources': ['*']}");
    give_rules(h, NULL, "system:node:n1",
               "{'verbs': ['create'], 'apiGroups': ['authorization.k8s.io', ''],"
               "'resources': ['*', 'serviceaccounts/token']}");
    put_in(h, "POST", RBAC "namespaces/red/rolebindings",
           "{'metadata': {'name': 'late'}, 'roleRef': {'apiGroup': 'rbac.authorization.k8s.io',"
           "'kind': 'Role', 'name': 'late'}, 'subjects': [{'kind': 'User',"
           "'apiGroup': 'rbac.authorization.k8s.io', 'name': 'waiter'}]}",
           201);
    put_in(h, "POST", RBAC "namespaces/red/roles",
           "{'metadata': {'name': 'lister'}, 'rules': [{'verbs': ['list'], 'apiGroups': [''],"
           "'resources': ['pods']}]}",
           201);
    put_in(h, "POST", RBAC "namespaces/red/rolebindings",
           "{'metadata': {'name': 'lister'}, 'roleRef': {'apiGroup': 'rbac.authorization.k8s.io',"
           "'kind': 'Role', 'name': 'lister'}, 'subjects': [{'kind': 'Group',"
           "'apiGroup': 'rbac.authorization.k8s.io', 'name': 'dev'}]}",
           201);
    return 0;
}

static int tear_down(void **state)
{
    char *owned[] = {robot, pod, far, secret, node};
    for (size_t i = 0; i < ARRAY_SIZE(owned); i++) {
        free(owned[i]);
    }
    harness_free(h);
    return 0;
}

/* ---- tokens for service accounts ---- */

/* The claims of the token in the answer without exp, iat, nbf and jti; owned. */
static struct json *claims_of(const struct answer *a, int64_t *ret_exp, int64_t *ret_iat,
                              char **ret_id)
{
    struct jwt t = {.signature = STRBUF_INIT};
    struct err e = {0};
    if (jwt_parse(at(a, "status.token"), &t, &e) < 0) {
        fail_msg("%s: %s", a->text, e.text);
    }
    assert_int_equal(jws_verify(h->keys, at(a, "status.token"), &t, &e), 0);
    struct json *c = TAKE(t.claims);
    assert_int_equal(json_get_int(json_get(c, "exp"), ret_exp), 0);
    assert_int_equal(json_get_int(json_get(c, "iat"), ret_iat), 0);
    assert_true(json_equal(json_get(c, "nbf"), json_get(c, "iat")));
    *ret_id = xstrdup(json_path_string(c, "jti", NULL));
    json_remove(c, "exp");
    json_remove(c, "iat");
    json_remove(c, "nbf");
    json_remove(c, "jti");
    jwt_done(&t);
    return c;
}

static void a_token_has_the_requested_claims(void **state)
{
    CLEANUP_FREE char *bound_pod =
        xasprintf("{'namespace': 'red', 'pod': {'name': 'web', 'uid': '%s'}, 'node': {'name': 'n1',"
                  "'uid': '%s'}, 'serviceaccount': {'name': 'robot', 'uid': '%s'}}",
                  pod, node, robot);
    CLEANUP_FREE char *bound_far =
        xasprintf("{'namespace': 'red', 'pod': {'name': 'far', 'uid': '%s'},"
                  "'serviceaccount': {'name': 'robot', 'uid': '%s'}}",
                  far, robot);
    CLEANUP_FREE char *bound_secret =
        xasprintf("{'namespace': 'red', 'secret': {'name': 'bound', 'uid': '%s'},"
                  "'serviceaccount': {'name': 'robot', 'uid': '%s'}}",
                  secret, robot);
    CLEANUP_FREE char *bound_node =
        xasprintf("{'namespace': 'red', 'node': {'name': 'n1', 'uid': '%s'},"
                  "'serviceaccount': {'name': 'robot', 'uid': '%s'}}",
                  node, robot);
    CLEANUP_FREE char *unbound =
        xasprintf("{'namespace': 'red', 'serviceaccount': {'name': 'robot', 'uid': '%s'}}", robot);
    CLEANUP_FREE char *with_uid = xasprintf(
        "'boundObjectRef': {'kind': 'Pod', 'apiVersion': 'v1', 'name': 'web', 'uid': '%s'}", pod);
    const struct {
        const char *spec;
        int64_t seconds;
        const char *aud, *private;
    } cases[] = {
        {"", 3600, "['" US "']", unbound},
        {"'expirationSeconds': null, 'audiences': null, 'boundObjectRef': null", 3600, "['" US "']",
         unbound},
        {"'expirationSeconds': 600, 'audiences': ['a', 'b']", 600, "['a', 'b']", unbound},
        {"'expirationSeconds': 4294967296, 'audiences': []", INT64_C(1) << 32, "['" US "']",
         unbound},
        {"'boundObjectRef': {'kind': 'Pod', 'apiVersion': 'v1', 'name': 'web'}", 3600, "['" US "']",
         bound_pod},
        {with_uid, 3600, "['" US "']", bound_pod},
        {"'boundObjectRef': {'kind': 'Pod', 'apiVersion': 'v1', 'name': 'web', 'uid': ''}", 3600,
         "['" US "']", bound_pod},
        {"'boundObjectRef': {'kind': 'Pod', 'apiVersion': 'v1', 'name': 'far'}", 3600, "['" US "']",
         bound_far},
        {"'boundObjectRef': {'kind': 'Secret', 'apiVersion': 'v1', 'name': 'bound'}", 3600,
         "['" US "']", bound_secret},
        {"'boundObjectRef': {'kind': 'Node', 'apiVersion': 'v1', 'name': 'n1'}", 3600, "['" US "']",
         bound_node},
    };
    CLEANUP_FREE char *last = NULL;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *spec = xasprintf("{'spec': {%s}}", cases[i].spec);
        CLEANUP_FREE char *body = quoted(spec);
        int64_t begun = time_wall_ms() / 1000, exp, iat, end_ms;
        CLEANUP_ANSWER struct answer a = ask_ok(h, "POST", TOKEN, body, 201);
        char *id;
        CLEANUP(json_free) struct json *c = claims_of(&a, &exp, &iat, &id);
        CLEANUP_FREE char *want_text =
            xasprintf("{'aud': %s, 'iss': '" US "', 'sub': 'system:serviceaccount:red:robot',"
                      "'kubernetes.io': %s}",
                      cases[i].aud, cases[i].private);
        CLEANUP(json_free) struct json *want = json_of(want_text);
        CLEANUP(json_free) struct json *aud = json_of(cases[i].aud);
        CLEANUP_FREE char *got = json_to_text(c);
        if (!json_equal(c, want)) {
            fail_msg("%s: %s", cases[i].spec, got);
        }
        assert_int_equal(exp - iat, cases[i].seconds);
        assert_in_range(iat, begun, time_wall_ms() / 1000);
        assert_int_equal(strlen(id), 32);
        assert_int_equal(strspn(id, "0123456789abcdef"), 32);
        assert_true(!last || !streq(id, last));
        free(last);
        last = id;
        assert_int_equal(time_parse(at(&a, "status.expirationTimestamp"), &end_ms), 0);
        assert_int_equal(end_ms / 1000, exp);
        assert_int_equal(json_get_int_or(json_path(a.body, "spec", "expirationSeconds", NULL), 0),
                         cases[i].seconds);
        assert_true(json_equal(json_path(a.body, "spec", "audiences", NULL), aud));
        assert_string_equal(at(&a, "kind"), "TokenRequest");
        assert_string_equal(at(&a, "apiVersion"), "authentication.k8s.io/v1");
        assert_string_equal(at(&a, "metadata.name"), "robot");
        assert_string_equal(at(&a, "metadata.namespace"), "red");
    }
}

static void a_wrong_token_request_is_refused_with_the_reason(void **state)
{
#define REF(kind, name, more)                                                                      \
    "{'spec': {'boundObjectRef': {'apiVersion': 'v1', 'kind': '" kind "', 'name': '" name "'" more \
    "}}}"
#define SECONDS(n) "{'spec': {'expirationSeconds': " n "}}"
#define UNBINDABLE "cannot bind token for serviceaccount to this type of object"
    static const struct {
        const char *account, *body;
        int status;
        const char *says;
    } cases[] = {
        {"absent", "{'spec': {}}", 404, "serviceaccounts \"absent\" not found"},
        {"leaving", "{'spec': {}}", 404, "serviceaccounts \"leaving\" not found"},
        {"robot", SECONDS("599"), 422, "may not specify a duration less than 10 minutes"},
        {"robot", SECONDS("0"), 422, "may not specify a duration less than 10 minutes"},
        {"robot", SECONDS("-1"), 422, "may not specify a duration less than 10 minutes"},
        {"robot", SECONDS("'x'"), 422, "may not specify a duration less than 10 minutes"},
        {"robot", SECONDS("4294967297"), 422, "may not specify a duration larger than 2^32"},
        {"robot", "{'spec': {'audiences': 'a'}}", 422, "spec.audiences"},
        {"robot", "{'spec': {'audiences': {'a': 'b'}}}", 422, "must be a list"},
        {"robot", "{'spec': {'audiences': [7]}}", 422, "must be a string"},
        {"robot", REF("ConfigMap", "a", ""), 422, UNBINDABLE},
        {"robot", REF("pod", "web", ""), 422, UNBINDABLE},
        {"robot", "{'spec': {'boundObjectRef': {'kind': 'Pod', 'name': 'web'}}}", 422, UNBINDABLE},
        {"robot", "{'spec': {'boundObjectRef': {'apiVersion': 'v2', 'kind': 'Pod'}}}", 422,
         UNBINDABLE},
        {"robot", "{'spec': {'boundObjectRef': {}}}", 422, UNBINDABLE},
        {"robot", "{'spec': {'boundObjectRef': 'web'}}", 422, UNBINDABLE},
        {"robot", "{'spec': 7}", 400, "the body is not a TokenRequest"},
        {"robot", "[]", 400, "the body is not a TokenRequest"},
        {"robot", REF("Pod", "absent", ""), 404, "pods \"absent\" not found"},
        {"robot", REF("Secret", "absent", ""), 404, "secrets \"absent\" not found"},
        {"robot", REF("Secret", "web", ""), 404, "secrets \"web\" not found"},
        {"robot", REF("Node", "absent", ""), 404, "nodes \"absent\" not found"},
        {"robot", "{'spec': {'boundObjectRef': {'apiVersion': 'v1', 'kind': 'Pod'}}}", 404,
         "pods \"\" not found"},
        {"robot", REF("Pod", "web", ", 'uid': 'another'"), 409,
         "Operation cannot be fulfilled on pods \"web\": the UID in the bound object reference "
         "(another) does not match the UID in record. The object might have been deleted and then "
         "recreated"},
        {"robot", REF("Pod", "other", ""), 400,
         "cannot bind token for serviceaccount \"robot\" to pod running with different "
         "serviceaccount name."},
        {"robot", REF("Pod", "plain", ""), 400,
         "cannot bind token for serviceaccount \"robot\" to pod running with different "
         "serviceaccount name."},
        {"default", REF("Pod", "plain", ""), 201, ""},
        {"robot", REF("Pod", "pending", ""), 201, ""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *path = xasprintf(RED "serviceaccounts/%s/token", cases[i].account);
        CLEANUP_FREE char *body = quoted(cases[i].body);
        CLEANUP_ANSWER struct answer a = ask(h, "POST", path, body);
        if (a.status != cases[i].status || !strstr(at(&a, "message"), cases[i].says)) {
            fail_msg("%s: %s: %s", cases[i].account, cases[i].body, a.text);
        }
    }
    const struct jws_keys *keys = h->api->security->keys;
    h->api->security->keys = NULL;
    CLEANUP_ANSWER struct answer none = ask(h, "POST", TOKEN, "{\"spec\":{}}");
    CLEANUP_ANSWER struct answer issuer = ask(h, "GET", "/openid/v1/jwks", NULL);
    h->api->security->keys = keys;
    assert_int_equal(none.status, 503);
    assert_string_equal(at(&none, "message"), "this server has no key for tokens");
    assert_int_equal(issuer.status, 404);
}

/* RBAC gives the node's user all tokens; only the bound pod decides. */
static void a_node_gets_tokens_only_for_its_own_pods(void **state)
{
    static const struct {
        const char *who, *body;
        int status;
        const char *message;
    } cases[] = {
        {NODE, REF("Pod", "web", ""), 201, ""},
        {NODE, REF("Pod", "far", ""), 403,
         "node requested token bound to a pod scheduled on a different node"},
        {NODE, "{'spec': {}}", 403, "node requested token not bound to a pod"},
        {NODE, "{'spec': {'boundObjectRef': null}}", 403,
         "node requested token not bound to a pod"},
        {NODE, REF("Secret", "bound", ""), 403, "node requested token not bound to a pod"},
        {NODE, REF("Node", "n1", ""), 403, "node requested token not bound to a pod"},
        /* Without the group the user is no node, and RBAC decides. */
        {"system:node:n1", "{'spec': {}}", 201, ""},
        {"system:node:n1", REF("Pod", "far", ""), 201, ""},
        {"jane", REF("Pod", "web", ""), 403, NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_ANSWER struct answer a =
            ask_as(h, cases[i].who, "POST", TOKEN, NULL, cases[i].body);
        if (a.status != cases[i].status ||
            (cases[i].message && !streq(at(&a, "message"), cases[i].message))) {
            fail_msg("%s: %s: %s", cases[i].who, cases[i].body, a.text);
        }
    }
    h->api->security->always_allow = true;
    static const char *const bodies[] = {REF("Pod", "far", ""), "{'spec': {}}",
                                         REF("Secret", "bound", "")};
    for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
        CLEANUP_ANSWER struct answer a = ask_as(h, NODE, "POST", TOKEN, NULL, bodies[i]);
        assert_int_equal(a.status, 201);
    }
    h->api->security->always_allow = false;
}

static void a_legacy_token_names_its_secret_and_account(void **state)
{
    CLEANUP_FREE char *text =
        xasprintf("{'metadata': {'namespace': 'red', 'name': 'robot', 'uid': '%s'}}", robot);
    CLEANUP(json_free) struct json *sa = json_of(text);
    CLEANUP_FREE char *token = satoken_issue(h->keys, sa, "robot-token");
    CLEANUP(jwt_done) struct jwt t = {.signature = STRBUF_INIT};
    assert_int_equal(jwt_parse(token, &t, NULL), 0);
    assert_int_equal(jws_verify(h->keys, token, &t, NULL), 0);
#define LEGACY "kubernetes.io/serviceaccount/"
    CLEANUP_FREE char *want_text =
        xasprintf("{'iss': 'kubernetes/serviceaccount', '" LEGACY "namespace': 'red', '" LEGACY
                  "secret.name': 'robot-token', '" LEGACY "service-account.name': 'robot', '" LEGACY
                  "service-account.uid': '%s', 'sub': 'system:serviceaccount:red:robot'}",
                  robot);
    CLEANUP(json_free) struct json *want = json_of(want_text);
    assert_true(json_equal(t.claims, want));
}

/* ---- reviews ---- */

static void a_token_review_names_the_user(void **state)
{
#define REVIEWS "/apis/authentication.k8s.io/v1/tokenreviews"
    CLEANUP_ANSWER struct answer a =
        ask_ok(h, "POST", TOKEN, "{\"spec\":{\"audiences\":[\"a\",\"b\"]}}", 201);
    const struct {
        const char *token, *more, *authenticated, *user, *audience, *error;
    } cases[] = {
        {at(&a, "status.token"), ", 'audiences': ['b', 'c']", "true",
         "system:serviceaccount:red:robot", "b", ""},
        {at(&a, "status.token"), "", "false", "", "", "the token is for another audience"},
        {"nonsense", "", "false", "", "", "the token does not have three parts"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *body =
            xasprintf("{'spec': {'token': '%s'%s}}", cases[i].token, cases[i].more);
        CLEANUP_ANSWER struct answer r = ask_as(h, "reviewer", "POST", REVIEWS, NULL, body);
        const struct json *st = json_get(r.body, "status");
        assert_int_equal(r.status, 201);
        assert_int_equal(json_get_bool(json_get(st, "authenticated"), false),
                         streq(cases[i].authenticated, "true"));
        assert_non_null(json_get(st, "authenticated"));
        assert_string_equal(at(&r, "status.user.username"), cases[i].user);
        assert_true(json_is(json_get(st, "user"), JSON_OBJECT));
        assert_string_equal(at(&r, "status.audiences.0"), cases[i].audience);
        assert_string_equal(at(&r, "status.error"), cases[i].error);
        assert_string_equal(at(&r, "kind"), "TokenReview");
        assert_string_equal(at(&r, "apiVersion"), "authentication.k8s.io/v1");
    }
    CLEANUP_ANSWER struct answer no =
        ask_as(h, "jane", "POST", REVIEWS, NULL, "{'spec': {'token': 'x'}}");
    assert_int_equal(no.status, 403);
    CLEANUP_ANSWER struct answer none =
        ask_as(h, "reviewer", "POST", REVIEWS, NULL, "{'spec': {}}");
    assert_int_equal(none.status, 422);
}

static void an_access_review_answers_as_authorization_does(void **state)
{
#define SUBJECT AUTHZ "subjectaccessreviews"
#define SELF AUTHZ "selfsubjectaccessreviews"
#define LOCAL AUTHZ "namespaces/red/localsubjectaccessreviews"
#define ATTRIBUTES(more) "'resourceAttributes': {" more "}"
#define GET_WEB ATTRIBUTES("'verb': 'get', 'resource': 'pods', 'name': 'web', 'namespace': 'red'")
#define LIST_RED ATTRIBUTES("'verb': 'list', 'resource': 'pods', 'namespace': 'red'")
#define BY(name)                                                                                   \
    "RBAC: allowed by ClusterRoleBinding \"" name "\" of ClusterRole \"" name "\" to User \"" name \
    "\""
#define DEV "RBAC: allowed by RoleBinding \"lister/red\" of Role \"lister\" to Group \"dev\""
    static const struct {
        const char *path, *spec;
        int status;
        bool allowed;
        const char *says; /* The reason, or a part of the message. */
    } cases[] = {
        {SUBJECT, "'user': 'jane', " GET_WEB, 201, true, BY("jane")},
        {SUBJECT,
         "'user': 'jane', " ATTRIBUTES("'verb': 'get', 'resource': 'pods', 'subresource': 'log',"
                                       "'name': 'web'"),
         201, true, BY("jane")},
        {SUBJECT,
         "'user': 'jane', " ATTRIBUTES("'verb': 'get', 'resource': 'pods', 'subresource': 'exec',"
                                       "'name': 'web'"),
         201, false, ""},
        {SUBJECT, "'user': 'jane', " ATTRIBUTES("'verb': 'get', 'resource': 'pods'"), 201, false,
         ""},
        {SUBJECT,
         "'user': 'jane', " ATTRIBUTES("'verb': 'get', 'group': 'x', 'resource': 'pods',"
                                       "'name': 'web'"),
         201, false, ""},
        {SUBJECT, "'user': 'joe', " GET_WEB, 201, false, ""},
        {SUBJECT, "'user': 'joe', 'groups': ['dev'], " LIST_RED, 201, true, DEV},
        {SUBJECT, "'groups': ['ops', 'dev'], " LIST_RED, 201, true, DEV},
        {SUBJECT, "'groups': ['ops'], " LIST_RED, 201, false, ""},
        {SUBJECT, "'user': 'joe', 'groups': ['system:masters'], " LIST_RED, 201, true, ""},
        {SUBJECT,
         "'groups': ['dev'], " ATTRIBUTES("'verb': 'list', 'resource': 'pods',"
                                          "'namespace': 'blue'"),
         201, false, ""},
        {SUBJECT, "'user': 'waiter', " GET_WEB, 201, false,
         "RBAC: role.rbac.authorization.k8s.io \"late\" not found"},
        {SUBJECT, "'user': 'jane', 'nonResourceAttributes': {'verb': 'get', 'path': '/metrics'}",
         201, true, BY("jane")},
        {SUBJECT, "'user': 'jane', 'nonResourceAttributes': {'verb': 'post', 'path': '/metrics'}",
         201, false, ""},
        {SUBJECT, "'user': 'jane', 'nonResourceAttributes': {'verb': 'get', 'path': '/metric'}",
         201, false, ""},
        {SUBJECT,
         "'user': 'system:node:n1', 'groups': ['system:nodes'], " ATTRIBUTES(
             "'verb': 'get', 'resource': 'nodes', 'name': 'n1'"),
         201, true, ""},
        {SUBJECT,
         "'user': 'system:node:n1', 'groups': ['system:nodes'], " ATTRIBUTES(
             "'verb': 'get', 'resource': 'nodes', 'name': 'n2'"),
         201, false, ""},
        {SUBJECT, GET_WEB, 422, false, "at least one of user or group must be specified"},
        {SUBJECT, "'user': 'jane'", 422, false, "exactly one of"},
        {SUBJECT, "'user': 'jane', 'groups': [7], " GET_WEB, 400, false,
         "SubjectAccessReviewSpec.spec.groups of type string"},
        {SELF, GET_WEB, 201, false, ""},
        {SELF, ATTRIBUTES("'verb': 'create', 'group': 'authorization.k8s.io', 'resource': 'x'"),
         201, true, BY("reviewer")},
        {LOCAL, "'user': 'jane', " GET_WEB, 201, true, BY("jane")},
        {LOCAL, "'groups': ['dev'], " LIST_RED, 201, true, DEV},
        {LOCAL,
         "'groups': ['dev'], " ATTRIBUTES("'verb': 'list', 'resource': 'pods',"
                                          "'namespace': 'blue'"),
         422, false, ""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *body = xasprintf(
            "{%s'spec': {%s}}",
            streq(cases[i].path, LOCAL) ? "'metadata': {'namespace': 'red'}, " : "", cases[i].spec);
        CLEANUP_ANSWER struct answer a = ask_as(h, "reviewer", "POST", cases[i].path, NULL, body);
        const char *says = a.status == 201 ? at(&a, "status.reason") : at(&a, "message");
        const struct json *allowed = json_path(a.body, "status", "allowed", NULL);
        if (a.status != cases[i].status ||
            (a.status == 201 && json_get_bool(allowed, !cases[i].allowed) != cases[i].allowed) ||
            !(a.status == 201 ? streq(says, cases[i].says) : strstr(says, cases[i].says) != NULL)) {
            fail_msg("case %zu: %s: %s", i, body, a.text);
        }
    }
    CLEANUP_ANSWER struct answer bad = ask_as(h, "reviewer", "POST", SUBJECT, NULL, "{'spec': 7}");
    assert_int_equal(bad.status, 400);
    assert_non_null(strstr(at(&bad, "message"), "SubjectAccessReview.spec of type"));
    CLEANUP_ANSWER struct answer kind =
        ask_as(h, "reviewer", "POST", SUBJECT, NULL, "{'kind': 'Pod'}");
    assert_int_equal(kind.status, 400);
    CLEANUP_ANSWER struct answer no =
        ask_as(h, "jane", "POST", SUBJECT, NULL, "{'spec': {'user': 'jane'}}");
    assert_int_equal(no.status, 403);
}

static void a_review_returns_its_spec(void **state)
{
    CLEANUP_ANSWER struct answer a =
        ask_as(h, "reviewer", "POST", SUBJECT, NULL,
               "{'spec': {'user': 'jane', 'uid': '7', 'extra': {'k': ['v', 'w']}, " GET_WEB "}}");
    assert_int_equal(a.status, 201);
    assert_string_equal(at(&a, "kind"), "SubjectAccessReview");
    assert_string_equal(at(&a, "spec.user"), "jane");
    CLEANUP_ANSWER struct answer b = ask_as(
        h, "reviewer dev", "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", NULL, "{}");
    assert_string_equal(at(&b, "kind"), "SelfSubjectReview");
    assert_string_equal(at(&b, "status.userInfo.username"), "reviewer");
    assert_string_equal(at(&b, "status.userInfo.groups.0"), "dev");
}

static void a_rules_review_lists_the_users_rules(void **state)
{
#define RULES AUTHZ "selfsubjectrulesreviews"
#define EVERYTHING                                                                  \
    "{'resourceRules': [{'verbs': ['*'], 'apiGroups': ['*'], 'resources': ['*']}]," \
    "'nonResourceRules': [{'verbs': ['*'], 'nonResourceURLs': ['*']}], 'incomplete': false}"
    give_rules(h, NULL, "asker",
               "{'verbs': ['create'], 'apiGroups': ['authorization.k8s.io'],"
               "'resources': ['selfsubjectrulesreviews']},"
               "{'verbs': ['get'], 'nonResourceURLs': ['/x', '/y/*']}");
#define ASKER                                                                     \
    "{'verbs': ['create'], 'apiGroups': ['authorization.k8s.io'], 'resources': [" \
    "'selfsubjectrulesreviews']}"
#define LISTER "{'verbs': ['list'], 'apiGroups': [''], 'resources': ['pods']}"
#define PATHS "{'verbs': ['get'], 'nonResourceURLs': ['/x', '/y/*']}"
    static const struct {
        const char *who, *ns, *want;
    } cases[] = {
        {"asker", "red",
         "{'resourceRules': [" ASKER "], 'nonResourceRules': [" PATHS "], 'incomplete': false}"},
        {"asker dev", "red",
         "{'resourceRules': [" ASKER "," LISTER "], 'nonResourceRules': [" PATHS
         "], 'incomplete': false}"},
        {"asker dev", "blue",
         "{'resourceRules': [" ASKER "], 'nonResourceRules': [" PATHS "], 'incomplete': false}"},
        {"x system:masters", "red", EVERYTHING},
        {NODE, "red",
         "{'resourceRules': [{'verbs': ['create'], 'apiGroups': ['authorization.k8s.io', ''],"
         "'resources': ['*', 'serviceaccounts/token']}], 'nonResourceRules': [],"
         "'incomplete': true, 'evaluationError': 'node authorizer does not support user rule "
         "resolution'}"},
        {"system:node:n1 system:nodes system:masters", "red", EVERYTHING},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *body = xasprintf("{'spec': {'namespace': '%s'}}", cases[i].ns);
        CLEANUP_ANSWER struct answer a = ask_as(h, cases[i].who, "POST", RULES, NULL, body);
        CLEANUP(json_free) struct json *want = json_of(cases[i].want);
        if (a.status != 201 || !json_equal(json_get(a.body, "status"), want)) {
            fail_msg("%s in %s: %s", cases[i].who, cases[i].ns, a.text);
        }
    }
    h->api->security->always_allow = true;
    CLEANUP_ANSWER struct answer all =
        ask_as(h, NODE, "POST", RULES, NULL, "{'spec': {'namespace': 'red'}}");
    h->api->security->always_allow = false;
    CLEANUP(json_free) struct json *everything = json_of(EVERYTHING);
    assert_true(json_equal(json_get(all.body, "status"), everything));
}

/* ---- the issuer ---- */

static void the_issuers_documents_are_served(void **state)
{
    static const struct {
        const char *method, *path;
        int status;
        const char *type;
    } cases[] = {
        {"GET", "/openid/v1/jwks", 200, "application/jwk-set+json"},
        {"GET", "/openid/v1/jwks/", 200, "application/jwk-set+json"},
        {"GET", "/.well-known/openid-configuration", 200, "application/json"},
        {"GET", "/.well-known/openid-configuration/", 200, "application/json"},
        {"POST", "/openid/v1/jwks", 405, "application/json"},
        {"GET", "/openid/v1/jwkss", 404, "application/json"},
        {"GET", "/.well-known/openid", 404, "application/json"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_ANSWER struct answer a = ask(h, cases[i].method, cases[i].path, NULL);
        CLEANUP_ANSWER struct answer no =
            ask_as(h, "jane", cases[i].method, cases[i].path, NULL, NULL);
        if (a.status != cases[i].status || !streq(a.content_type, cases[i].type)) {
            fail_msg("%s %s: %d %s", cases[i].method, cases[i].path, a.status, a.content_type);
        }
        assert_int_equal(no.status, 403);
    }
    CLEANUP_ANSWER struct answer keys = ask(h, "GET", "/openid/v1/jwks", NULL);
    CLEANUP(json_free) struct json *set = jws_public_set(h->keys);
    assert_true(json_equal(keys.body, set));
    CLEANUP_ANSWER struct answer doc = ask(h, "GET", "/.well-known/openid-configuration", NULL);
    CLEANUP(json_free)
    struct json *want =
        json_of("{'issuer': '" US "', 'jwks_uri': '" US "/openid/v1/jwks',"
                "'response_types_supported': ['id_token'], 'subject_types_supported': ['public'],"
                "'id_token_signing_alg_values_supported': ['ES256']}");
    assert_true(json_equal(doc.body, want));
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_token_has_the_requested_claims),
        T(a_wrong_token_request_is_refused_with_the_reason),
        T(a_node_gets_tokens_only_for_its_own_pods),
        T(a_legacy_token_names_its_secret_and_account),
        T(a_token_review_names_the_user),
        T(an_access_review_answers_as_authorization_does),
        T(a_review_returns_its_spec),
        T(a_rules_review_lists_the_users_rules),
        T(the_issuers_documents_are_served),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
