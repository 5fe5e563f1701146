/* SPDX-License-Identifier: Apache-2.0 */
/* Validation of bearer tokens: claims changed one at a time at a clock that the test sets,
 * tokens in Secrets, and bootstrap tokens. */
#include "api/patch/patch.h"
#include "apiserver/access/token.h"
#include "apiserver/request/server_priv.h"
#include "base/base64.h"
#include "base/timeutil.h"
#include "csr.h"
#include "harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define NOW INT64_C(1767225600) /* 2026-01-01T00:00:00Z, in seconds. */
#define RED "/api/v1/namespaces/red/"
#define US "https://kubernetes.default.svc"

static struct harness *h;
static struct security *s;
/* Uids of the objects that tokens are bound to. */
static char *robot, *other, *leaving, *pod, *pod_leaving, *secret, *node, *blue;

static int set_up(void **state)
{
    h = harness_new_secure((struct apiserver_security){0});
    s = h->api->security;
    free(make_namespace(h, "red"));
    free(make_namespace(h, "blue"));
    free(make_namespace(h, "kube-system"));
    robot = make_object(h, RED "serviceaccounts", "{'metadata': {'name': 'robot'}}");
    other = make_object(h, RED "serviceaccounts", "{'metadata': {'name': 'other'}}");
    blue = make_object(h, "/api/v1/namespaces/blue/serviceaccounts",
                       "{'metadata': {'name': 'robot'}}");
    leaving = make_object(h, RED "serviceaccounts",
                          "{'metadata': {'name': 'leaving', 'finalizers': ['example.com/wait']}}");
    put_in(h, "DELETE", RED "serviceaccounts/leaving", NULL, 200);
    node = make_object(h, "/api/v1/nodes", "{'metadata': {'name': 'n1'}}");
#define SPEC "'spec': {'nodeName': 'n1', 'containers': [{'name': 'c', 'image': 'i'}]}}"
    pod = make_object(h, RED "pods", "{'metadata': {'name': 'web'}, " SPEC);
    pod_leaving =
        make_object(h, RED "pods",
                    "{'metadata': {'name': 'leaving', 'finalizers': ['example.com/wait']}, " SPEC);
    put_in(h, "DELETE", RED "pods/leaving?gracePeriodSeconds=0", NULL, 200);
    secret = make_object(h, RED "secrets", "{'metadata': {'name': 'bound'}}");
    return 0;
}

static int tear_down(void **state)
{
    char *owned[] = {robot, other, leaving, pod, pod_leaving, secret, node, blue};
    for (size_t i = 0; i < ARRAY_SIZE(owned); i++) {
        free(owned[i]);
    }
    harness_free(h);
    return 0;
}

/* Returns "" when the token is valid, else the reason; owned.  'ret' (may be NULL) gets
 * the user. */
static char *judge(const char *token, const char *audiences, int64_t now_ms, struct user_info **ret,
                   char **ret_audiences)
{
    CLEANUP(json_free) struct json *wanted = audiences ? json_of(audiences) : NULL;
    CLEANUP(json_free) struct json *got = NULL;
    CLEANUP(user_unref) struct user_info *u = NULL;
    struct err e = {0};
    int r = token_authenticate(s, token, wanted, now_ms, &u, &got, &e);
    assert_true(r == 0 || r == -EPERM);
    assert_true((r == 0) == (u != NULL) && (r == 0) == (got != NULL));
    assert_true((r == 0) == (e.code == 0));
    if (ret_audiences) {
        *ret_audiences = got ? json_to_text(got) : NULL;
    }
    if (ret) {
        *ret = TAKE(u);
    }
    return xstrdup(e.text);
}

static void expect(const char *what, const char *token, int64_t now_ms, const char *want)
{
    CLEANUP_FREE char *got = judge(token, NULL, now_ms, NULL, NULL);
    if (!streq(got, want)) {
        fail_msg("%s: \"%s\", not \"%s\"", what, got, want);
    }
}

/* Signs a valid token, with its claims changed by the merge patch 'changes' (NULL: none); owned. */
static char *token_of(const char *changes)
{
    CLEANUP_FREE char *base = xasprintf(
        "{'aud': ['" US "'], 'exp': 1767229200, 'iat': 1767225600, 'nbf': 1767225600,"
        "'iss': '" US "', 'jti': 'id', 'sub': 'system:serviceaccount:red:robot',"
        "'kubernetes.io': {'namespace': 'red', 'serviceaccount': {'name': 'robot', 'uid': '%s'}}}",
        robot);
    CLEANUP(json_free) struct json *claims = json_of(base);
    CLEANUP(json_free) struct json *patch = changes ? json_of(changes) : NULL;
    if (patch) {
        api_patch_merge(&claims, patch);
    }
    return jws_sign(h->keys, claims);
}

static void each_claim_is_checked(void **state)
{
#define EXPIRED "the token has expired"
#define NO_EXPIRY "the token has no time of expiry"
#define EARLY "the token is not valid yet"
#define ISSUER "the token is by another issuer"
#define AUDIENCE "the token is for another audience"
#define DISAGREE "the token's claims do not agree"
#define GONE "the token's service account is gone"
    static const struct {
        const char *changes;
        int64_t at;
        const char *want;
    } cases[] = {
        {NULL, 0, ""},
        {NULL, 3599, ""},
        {NULL, 3600, EXPIRED},
        {NULL, 3601, EXPIRED},
        {NULL, 1000000000, EXPIRED},
        {"{'exp': 1767225601}", 0, ""},
        {"{'exp': 1767225600}", 0, EXPIRED},
        {"{'exp': 0}", 0, EXPIRED},
        {"{'exp': -1}", 0, EXPIRED},
        {"{'exp': null}", 0, NO_EXPIRY},
        {"{'exp': 'soon'}", 0, NO_EXPIRY},
        {"{'exp': {}}", 0, NO_EXPIRY},
        {"{'nbf': 1767225610}", 0, ""},
        {"{'nbf': 1767225611}", 0, EARLY},
        {"{'nbf': null}", 0, ""},
        {"{'nbf': 'now'}", 0, EARLY},
        {"{'iss': 'https://example.com'}", 0, ISSUER},
        {"{'iss': '" US "/'}", 0, ISSUER},
        {"{'iss': ''}", 0, ISSUER},
        {"{'iss': null}", 0, ISSUER},
        {"{'iss': 7}", 0, ISSUER},
        {"{'aud': ['https://example.com']}", 0, AUDIENCE},
        {"{'aud': ['https://example.com', '" US "']}", 0, ""},
        {"{'aud': '" US "'}", 0, ""},
        {"{'aud': 'https://example.com'}", 0, AUDIENCE},
        {"{'aud': []}", 0, AUDIENCE},
        {"{'aud': [7]}", 0, AUDIENCE},
        {"{'aud': null}", 0, AUDIENCE},
        {"{'sub': 'system:serviceaccount:red:other'}", 0, DISAGREE},
        {"{'sub': 'system:serviceaccount:blue:robot'}", 0, DISAGREE},
        {"{'sub': 'system:admin'}", 0, DISAGREE},
        {"{'sub': null}", 0, DISAGREE},
        {"{'kubernetes.io': null}", 0, DISAGREE},
        {"{'kubernetes.io': {'namespace': 'blue'}}", 0, DISAGREE},
        {"{'kubernetes.io': {'namespace': null}}", 0, DISAGREE},
        {"{'kubernetes.io': {'namespace': null}, 'sub': 'system:serviceaccount::robot'}", 0,
         DISAGREE},
        {"{'kubernetes.io': {'serviceaccount': {'name': 'other'}}}", 0, DISAGREE},
        {"{'kubernetes.io': {'serviceaccount': {'name': null}},"
         "'sub': 'system:serviceaccount:red:'}",
         0, DISAGREE},
        {"{'kubernetes.io': {'serviceaccount': {'uid': null}}}", 0, DISAGREE},
        {"{'kubernetes.io': {'serviceaccount': {'uid': ''}}}", 0, DISAGREE},
        {"{'kubernetes.io': {'serviceaccount': {'uid': 'another'}}}", 0, GONE},
        /* The account of the same name in another namespace. */
        {"{'kubernetes.io': {'namespace': 'blue'}, 'sub': 'system:serviceaccount:blue:robot'}", 0,
         GONE},
        {"{'kubernetes.io': {'serviceaccount': {'name': 'absent'}},"
         "'sub': 'system:serviceaccount:red:absent'}",
         0, GONE},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *token = token_of(cases[i].changes);
        expect(cases[i].changes ? cases[i].changes : "unchanged", token, (NOW + cases[i].at) * 1000,
               cases[i].want);
    }
    CLEANUP_FREE char *changes =
        xasprintf("{'kubernetes.io': {'serviceaccount': {'name': 'leaving', 'uid': '%s'}},"
                  "'sub': 'system:serviceaccount:red:leaving'}",
                  leaving);
    CLEANUP_FREE char *token = token_of(changes);
    expect("an account that is being deleted", token, NOW * 1000, GONE);
}

static void a_token_ends_with_its_account(void **state)
{
    char *uid = make_object(h, RED "serviceaccounts", "{'metadata': {'name': 'brief'}}");
    CLEANUP_FREE char *changes =
        xasprintf("{'kubernetes.io': {'serviceaccount': {'name': 'brief', 'uid': '%s'}},"
                  "'sub': 'system:serviceaccount:red:brief'}",
                  uid);
    CLEANUP_FREE char *token = token_of(changes);
    free(uid);
    expect("while it is there", token, NOW * 1000, "");
    put_in(h, "DELETE", RED "serviceaccounts/brief", NULL, 200);
    expect("deleted", token, NOW * 1000, GONE);
    /* A new account of the same name has another uid. */
    free(make_object(h, RED "serviceaccounts", "{'metadata': {'name': 'brief'}}"));
    expect("made again", token, NOW * 1000, GONE);
}

static void a_token_names_the_account_and_its_groups(void **state)
{
    CLEANUP_FREE char *token = token_of(NULL);
    CLEANUP(user_unref) struct user_info *u = NULL;
    CLEANUP_FREE char *why = judge(token, NULL, NOW * 1000, &u, NULL);
    CLEANUP(json_free) struct json *o = user_object(u);
    CLEANUP_FREE char *got = json_to_text(o);
    CLEANUP_FREE char *want_text =
        xasprintf("{'username': 'system:serviceaccount:red:robot', 'uid': '%s', 'groups': ["
                  "'system:serviceaccounts', 'system:serviceaccounts:red', 'system:authenticated'],"
                  "'extra': {'authentication.kubernetes.io/credential-id': ['JTI=id']}}",
                  robot);
    CLEANUP(json_free) struct json *want = json_of(want_text);
    if (!json_equal(o, want)) {
        fail_msg("%s", got);
    }
    CLEANUP_FREE char *anonymous = token_of("{'jti': null}");
    CLEANUP(user_unref) struct user_info *v = NULL;
    CLEANUP_FREE char *none = judge(anonymous, NULL, NOW * 1000, &v, NULL);
    assert_null(v->extra);
}

static void a_bound_token_ends_with_its_object(void **state)
{
#define UNBOUND "what the token is bound to is gone"
    const struct {
        const char *claim, *name, *uid;
        const char *want;
    } cases[] = {
        {"pod", "web", pod, ""},
        {"pod", "web", "another", UNBOUND},
        {"pod", "absent", pod, UNBOUND},
        {"pod", "web", "", UNBOUND},
        {"pod", "", pod, UNBOUND},
        {"pod", "leaving", pod_leaving, UNBOUND},
        {"secret", "bound", secret, ""},
        {"secret", "bound", pod, UNBOUND},
        {"secret", "absent", secret, UNBOUND},
        {"node", "n1", node, ""},
        {"node", "n1", "another", UNBOUND},
        {"node", "n2", node, UNBOUND},
        {"node", "n1", "", UNBOUND},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *changes =
            xasprintf("{'kubernetes.io': {'%s': {'name': '%s', 'uid': '%s'}}}", cases[i].claim,
                      cases[i].name, cases[i].uid);
        CLEANUP_FREE char *token = token_of(changes);
        expect(changes, token, NOW * 1000, cases[i].want);
    }
    /* The node of a bound pod is reported and not checked. */
    CLEANUP_FREE char *changes = xasprintf("{'kubernetes.io': {'pod': {'name': 'web', 'uid': '%s'},"
                                           "'node': {'name': 'n9', 'uid': 'x'}}}",
                                           pod);
    CLEANUP_FREE char *token = token_of(changes);
    CLEANUP(user_unref) struct user_info *u = NULL;
    CLEANUP_FREE char *why = judge(token, NULL, NOW * 1000, &u, NULL);
    assert_string_equal(why, "");
    CLEANUP_FREE char *want_text =
        xasprintf("{'authentication.kubernetes.io/pod-name': ['web'],"
                  "'authentication.kubernetes.io/pod-uid': ['%s'],"
                  "'authentication.kubernetes.io/node-name': ['n9'],"
                  "'authentication.kubernetes.io/node-uid': ['x'],"
                  "'authentication.kubernetes.io/credential-id': ['JTI=id']}",
                  pod);
    CLEANUP(json_free) struct json *want = json_of(want_text);
    assert_true(json_equal(u->extra, want));
    /* It needs a name and a uid. */
    static const char *const halves[] = {"{'name': 'n9'}", "{'uid': 'x'}", "{}"};
    for (size_t i = 0; i < ARRAY_SIZE(halves); i++) {
        CLEANUP_FREE char *half = xasprintf(
            "{'kubernetes.io': {'pod': {'name': 'web', 'uid': '%s'}, 'node': %s}}", pod, halves[i]);
        CLEANUP_FREE char *bad = token_of(half);
        expect(halves[i], bad, NOW * 1000, UNBOUND);
    }
}

static void a_token_is_for_its_audiences(void **state)
{
    static const struct {
        const char *aud, *wanted, *got; /* 'got' NULL: none. */
    } cases[] = {
        {"['a', 'b']", "['a']", "[\"a\"]"},
        {"['a', 'b']", "['b', 'c', 'a']", "[\"b\",\"a\"]"},
        {"['a', 'b']", "['c']", NULL},
        {"['a', 'b']", "['" US "']", NULL},
        {"['a', 'b']", "[7]", NULL},
        {"['a', 'b']", "[]", NULL},
        {"['a', '" US "']", NULL, "[\"" US "\"]"},
        {"['a', '" US "']", "[]", "[\"" US "\"]"},
        {"['a', '" US "']", "['a']", "[\"a\"]"},
        {"'a'", "['a']", "[\"a\"]"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *changes = xasprintf("{'aud': %s}", cases[i].aud);
        CLEANUP_FREE char *token = token_of(changes);
        CLEANUP_FREE char *got = NULL;
        CLEANUP_FREE char *why = judge(token, cases[i].wanted, NOW * 1000, NULL, &got);
        if (!streq(got ? got : "", cases[i].got ? cases[i].got : "") ||
            !streq(why, cases[i].got ? "" : AUDIENCE)) {
            fail_msg("%s, %s: %s, %s", cases[i].aud, cases[i].wanted, got, why);
        }
    }
}

static void only_the_servers_keys_sign(void **state)
{
    CLEANUP_FREE char *token = token_of(NULL);
    CLEANUP_FREE char *unsigned_token = xstrndup(token, (size_t) (strrchr(token, '.') + 1 - token));
    CLEANUP_FREE char *pem = NULL;
    CLEANUP_FREE char *csr = csr_make(&(struct csr_wish){.cn = "x"}, &pem);
    CLEANUP(jws_keys_free) struct jws_keys *theirs = jws_keys_new();
    assert_int_equal(jws_keys_add_private(theirs, pem, NULL), 0);
    CLEANUP(jwt_done) struct jwt t = {.signature = STRBUF_INIT};
    assert_int_equal(jwt_parse(token, &t, NULL), 0);
    CLEANUP_FREE char *forged = jws_sign(theirs, t.claims);
    expect("theirs", forged, NOW * 1000, "the token's signature is by none of our keys");
    expect("unsigned", unsigned_token, NOW * 1000, "the token's signature is by none of our keys");
    expect("no token", "something", NOW * 1000, "the token does not have three parts");
    expect("empty", "", NOW * 1000, "the token does not have three parts");
    /* A server without keys accepts no signed token. */
    const struct jws_keys *keys = s->keys;
    s->keys = NULL;
    expect("no keys", token, NOW * 1000, "not a token of ours");
    s->keys = keys;
    expect("again", token, NOW * 1000, "");
}

/* ---- tokens of Secrets ---- */

#define LEGACY "kubernetes.io/serviceaccount/"

static char *legacy_of(const char *name, const char *ns, const char *account, const char *uid,
                       const char *sub)
{
    CLEANUP_FREE char *text =
        xasprintf("{'iss': 'kubernetes/serviceaccount', '" LEGACY "namespace': '%s', '" LEGACY
                  "secret.name': '%s', '" LEGACY "service-account.name': '%s', '" LEGACY
                  "service-account.uid': '%s', 'sub': '%s'}",
                  ns, name, account, uid, sub);
    CLEANUP(json_free) struct json *claims = json_of(text);
    return jws_sign(h->keys, claims);
}

static void keep(const char *ns, const char *name, const char *token)
{
    CLEANUP_FREE char *path = xasprintf("/api/v1/namespaces/%s/secrets", ns);
    CLEANUP_FREE char *body =
        xasprintf("{'metadata': {'name': '%s'}, 'stringData': {'token': '%s'}}", name, token);
    put_in(h, "POST", path, body, 201);
}

static void a_legacy_token_is_valid_while_its_secret_holds_it(void **state)
{
#define NO_SECRET "the token's secret is gone"
#define SUB "system:serviceaccount:red:robot"
    CLEANUP_FREE char *token = legacy_of("t", "red", "robot", robot, SUB);
    expect("before", token, NOW * 1000, NO_SECRET);
    keep("red", "t", token);
    expect("kept", token, NOW * 1000, "");
    /* It has no expiry, and its audience is the server. */
    expect("later", token, INT64_MAX / 4, "");
    CLEANUP_FREE char *none = NULL;
    CLEANUP_FREE char *why = judge(token, "['other']", NOW * 1000, NULL, &none);
    assert_string_equal(why, AUDIENCE);
    CLEANUP_FREE char *us = NULL;
    CLEANUP_FREE char *fine = judge(token, "['" US "']", NOW * 1000, NULL, &us);
    assert_string_equal(us, "[\"" US "\"]");
    CLEANUP(user_unref) struct user_info *u = NULL;
    CLEANUP_FREE char *whose = judge(token, NULL, NOW * 1000, &u, NULL);
    assert_string_equal(u->name, SUB);
    assert_string_equal(u->uid, robot);
    assert_true(user_in_group(u, "system:serviceaccounts:red"));
    assert_true(user_in_group(u, "system:authenticated"));
    /* Another token in the Secret revokes it. */
    CLEANUP_FREE char *second = legacy_of("t", "red", "robot", robot, SUB);
    assert_string_not_equal(token, second);
    put_in(h, "DELETE", RED "secrets/t", NULL, 200);
    expect("deleted", token, NOW * 1000, NO_SECRET);
    keep("red", "t", second);
    expect("replaced", token, NOW * 1000, NO_SECRET);
    expect("the new one", second, NOW * 1000, "");
    CLEANUP_FREE char *longer = xasprintf("%s%s", second, second);
    put_in(h, "DELETE", RED "secrets/t", NULL, 200);
    keep("red", "t", longer);
    expect("a part of what is kept", second, NOW * 1000, NO_SECRET);
}

static void a_legacy_token_needs_its_account(void **state)
{
    const struct {
        const char *name, *ns, *account, *uid, *sub, *want;
    } cases[] = {
        {"a", "red", "robot", robot, SUB, ""},
        {"b", "red", "robot", other, SUB, GONE},
        {"c", "red", "robot", "", SUB, DISAGREE},
        {"d", "red", "other", other, SUB, DISAGREE},
        {"e", "red", "absent", robot, "system:serviceaccount:red:absent", GONE},
        {"f", "red", "leaving", leaving, "system:serviceaccount:red:leaving", GONE},
        {"g", "blue", "robot", robot, SUB, DISAGREE},
        {"h", "blue", "robot", blue, "system:serviceaccount:blue:robot", ""},
        {"i", "red", "", robot, "system:serviceaccount:red:", DISAGREE},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *token =
            legacy_of(cases[i].name, cases[i].ns, cases[i].account, cases[i].uid, cases[i].sub);
        keep(cases[i].ns, cases[i].name, token);
        expect(cases[i].name, token, NOW * 1000, cases[i].want);
    }
    /* A Secret of another namespace does not make it valid. */
    CLEANUP_FREE char *token = legacy_of("z", "red", "robot", robot, SUB);
    keep("blue", "z", token);
    expect("elsewhere", token, NOW * 1000, NO_SECRET);
    /* A Secret that is being deleted makes no token valid. */
    CLEANUP_FREE char *last = legacy_of("last", "red", "robot", robot, SUB);
    CLEANUP_FREE char *body =
        xasprintf("{'metadata': {'name': 'last', 'finalizers': ['example.com/wait']},"
                  "'stringData': {'token': '%s'}}",
                  last);
    put_in(h, "POST", RED "secrets", body, 201);
    expect("kept", last, NOW * 1000, "");
    put_in(h, "DELETE", RED "secrets/last", NULL, 200);
    expect("going", last, NOW * 1000, NO_SECRET);
}

/* ---- bootstrap tokens ---- */

#define JOIN "abcdef.0123456789abcdef"
#define JOIN_SECRET "/api/v1/namespaces/kube-system/secrets"

/* Checks 'token' while its Secret has this type and these members of stringData. */
static void join(const char *token, const char *type, const char *data, const char *want)
{
    CLEANUP_FREE char *body = xasprintf(
        "{'metadata': {'name': 'bootstrap-token-abcdef'}, 'type': '%s', 'stringData': {%s}}", type,
        data);
    put_in(h, "POST", JOIN_SECRET, body, 201);
    expect(body, token, NOW * 1000, want);
    put_in(h, "DELETE", JOIN_SECRET "/bootstrap-token-abcdef", NULL, 200);
}

static void a_bootstrap_token_needs_a_matching_secret(void **state)
{
#define ID "'token-id': 'abcdef'"
#define KEY "'token-secret': '0123456789abcdef'"
#define USE "'usage-bootstrap-authentication': 'true'"
#define ALL ID "," KEY "," USE
#define TYPE "bootstrap.kubernetes.io/token"
#define ABSENT "no such bootstrap token"
#define WRONG "the bootstrap token's secret is wrong"
#define OVER "the bootstrap token has expired"
#define OTHER_USE "the bootstrap token is not for authentication"
    static const struct {
        const char *token, *type, *data, *want;
    } cases[] = {
        {JOIN, TYPE, ALL, ""},
        {JOIN, "Opaque", ALL, ABSENT},
        {JOIN, TYPE, KEY "," USE, ABSENT},
        {JOIN, TYPE, "'token-id': 'abcdeg'," KEY "," USE, ABSENT},
        {"abcdeg.0123456789abcdef", TYPE, ALL, ABSENT},
        {"abcdef.0123456789abcdee", TYPE, ALL, WRONG},
        {"abcdef.1123456789abcdef", TYPE, ALL, WRONG},
        {JOIN, TYPE, ID "," USE, WRONG},
        {JOIN, TYPE, ID "," USE ", 'token-secret': ''", WRONG},
        {JOIN, TYPE, ID "," USE ", 'token-secret': '0123456789abcde'", WRONG},
        {JOIN, TYPE, ID "," USE ", 'token-secret': '0123456789abcdef0'", WRONG},
        {JOIN, TYPE, ALL ", 'expiration': '2026-01-01T00:00:01Z'", ""},
        {JOIN, TYPE, ALL ", 'expiration': '2026-01-01T00:00:00Z'", OVER},
        {JOIN, TYPE, ALL ", 'expiration': '2025-12-31T23:59:59Z'", OVER},
        {JOIN, TYPE, ALL ", 'expiration': 'never'", OVER},
        {JOIN, TYPE, ALL ", 'expiration': ''", ""},
        {JOIN, TYPE, ID "," KEY, OTHER_USE},
        {JOIN, TYPE, ID "," KEY ", 'usage-bootstrap-authentication': 'false'", OTHER_USE},
        {JOIN, TYPE, ID "," KEY ", 'usage-bootstrap-authentication': ''", OTHER_USE},
        {JOIN, TYPE, ID "," KEY ", 'usage-bootstrap-signing': 'true'", OTHER_USE},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        join(cases[i].token, cases[i].type, cases[i].data, cases[i].want);
    }
    /* Texts that do not have the form of a bootstrap token. */
    static const char *const others[] = {
        "abcde.0123456789abcdef",   "abcdef0123456789abcdefg", "abcdef.0123456789abcde",
        "abcdef.0123456789abcdefg", "ABCDEF.0123456789abcdef", "abcdef.0123456789ABCDEF",
        "abcde-.0123456789abcdef",  "abcdef.0123456789abcde-", "abcdefg.123456789abcdef",
        "abcdef-0123456789abcdef",  "abcdef_0123456789abcdef",
    };
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        join(others[i], TYPE, ALL, "the token does not have three parts");
    }
    expect("without a Secret", JOIN, NOW * 1000, ABSENT);
}

static void a_bootstrap_token_gets_only_bootstrapper_groups(void **state)
{
    CLEANUP_FREE char *body = xasprintf(
        "{'metadata': {'name': 'bootstrap-token-abcdef'}, 'type': '" TYPE "', 'stringData': {" ALL
        ", 'auth-extra-groups': 'system:bootstrappers:a,system:masters,system:bootstrappers:,"
        "system:bootstrappersx:c,,system:bootstrappers:b'}}");
    put_in(h, "POST", JOIN_SECRET, body, 201);
    CLEANUP(user_unref) struct user_info *u = NULL;
    CLEANUP_FREE char *got = NULL;
    CLEANUP_FREE char *why = judge(JOIN, NULL, NOW * 1000, &u, &got);
    CLEANUP(json_free) struct json *o = user_object(u);
    CLEANUP(json_free)
    struct json *want =
        json_of("{'username': 'system:bootstrap:abcdef', 'groups': ['system:bootstrappers',"
                "'system:bootstrappers:a', 'system:bootstrappers:b', 'system:authenticated']}");
    assert_true(json_equal(o, want));
    assert_string_equal(got, "[\"" US "\"]");
    CLEANUP_FREE char *other_audience = judge(JOIN, "['x']", NOW * 1000, NULL, NULL);
    assert_string_equal(other_audience, "not a token of ours");
    /* Bootstrap tokens need no keys. */
    const struct jws_keys *keys = s->keys;
    s->keys = NULL;
    expect("without keys", JOIN, NOW * 1000, "");
    s->keys = keys;
    put_in(h, "DELETE", JOIN_SECRET "/bootstrap-token-abcdef", NULL, 200);
}

static void a_bootstrap_token_ends_with_its_secret(void **state)
{
    put_in(h, "POST", JOIN_SECRET,
           "{'metadata': {'name': 'bootstrap-token-abcdef', 'finalizers': ['example.com/wait']},"
           "'type': '" TYPE "', 'stringData': {" ALL "}}",
           201);
    expect("there", JOIN, NOW * 1000, "");
    put_in(h, "DELETE", JOIN_SECRET "/bootstrap-token-abcdef", NULL, 200);
    expect("going", JOIN, NOW * 1000, ABSENT);
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(each_claim_is_checked),
        T(a_token_ends_with_its_account),
        T(a_token_names_the_account_and_its_groups),
        T(a_bound_token_ends_with_its_object),
        T(a_token_is_for_its_audiences),
        T(only_the_servers_keys_sign),
        T(a_legacy_token_is_valid_while_its_secret_holds_it),
        T(a_legacy_token_needs_its_account),
        T(a_bootstrap_token_needs_a_matching_secret),
        T(a_bootstrap_token_gets_only_bootstrapper_groups),
        T(a_bootstrap_token_ends_with_its_secret),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
