/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials, and the user that each one names, on the HTTPS listener and on the
 * loopback listener. */
#include "apiserver/access/authn.h"
#include "apiserver/request/server_priv.h"
#include "csr.h"
#include "harness.h"
#include "net/tls/pki_csr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define WHOAMI "/apis/authentication.k8s.io/v1/selfsubjectreviews"
#define MASTER "Bearer " HARNESS_TOKEN
#define ADMIN "system:admin [system:masters system:authenticated]"
#define ROBOT                                                      \
    "system:serviceaccount:default:robot [system:serviceaccounts " \
    "system:serviceaccounts:default system:authenticated]"
#define NOBODY "system:anonymous [system:unauthenticated]"
#define JANE "jane [dev system:authenticated]"

static struct harness *h;
static char *robot;    /* A token of the service account "robot". */
static char *as_robot; /* The token as an Authorization header. */

static int set_up(void **state)
{
    h = harness_new_secure((struct apiserver_security){.anonymous = true});
    harness_listen_tls(h);
    put_in(h, "POST", "/api/v1/namespaces/default/serviceaccounts",
           "{'metadata': {'name': 'robot'}}", 201);
    CLEANUP_ANSWER struct answer a = ask_ok(
        h, "POST", "/api/v1/namespaces/default/serviceaccounts/robot/token", "{\"spec\":{}}", 201);
    robot = xstrdup(at(&a, "status.token"));
    as_robot = xasprintf("Bearer %s", robot);
    give_self_reviews(h);
    return 0;
}

static int tear_down(void **state)
{
    free(robot);
    free(as_robot);
    harness_free(h);
    return 0;
}

/* "USER [GROUP ...]" as the server sees the sender, or the status and message of its
 * error; owned. */
static char *who_is(const struct sender *by, const char *query)
{
    CLEANUP_FREE char *path = xasprintf(WHOAMI "%s", query);
    CLEANUP_ANSWER struct answer a = ask_by(h, by, "POST", path, "{}");
    if (a.status != 201) {
        return xasprintf("%d %s", a.status, at(&a, "message"));
    }
    struct strbuf b = STRBUF_INIT;
    const struct json *user = json_path(a.body, "status", "userInfo", NULL), *group;
    strbuf_addf(&b, "%s [", json_path_string(user, "username", NULL));
    JSON_FOREACH (group, json_get(user, "groups")) {
        strbuf_addf(&b, "%s%s", b.data[b.size - 1] == '[' ? "" : " ", json_get_string(group));
    }
    strbuf_addc(&b, ']');
    return strbuf_steal(&b);
}

static void expect(const char *what, const struct sender *by, const char *query, const char *want)
{
    CLEANUP_FREE char *got = who_is(by, query);
    if (!streq(got, want)) {
        fail_msg("%s: %s, not %s", what, got, want);
    }
}

static void the_loopback_listener_accepts_only_the_masters_token(void **state)
{
    const struct {
        const char *header, *query, *want;
    } cases[] = {
        {MASTER, "", ADMIN},
        {"bearer   " HARNESS_TOKEN, "", ADMIN},
        {NULL, "", "401 Unauthorized"},
        {"Bearer another-token", "", "401 Unauthorized"},
        {"Bearer the-masters-own-toke", "", "401 Unauthorized"},
        {MASTER "n", "", "401 Unauthorized"},
        {MASTER HARNESS_TOKEN, "", "401 Unauthorized"},
        {"Basic dGhlOm1hc3Rlcg==", "", "401 Unauthorized"},
        {HARNESS_TOKEN, "", "401 Unauthorized"},
        {NULL, "?access_token=" HARNESS_TOKEN, "401 Unauthorized"},
        {as_robot, "", "401 Unauthorized"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *headers[] = {cases[i].header ? "Authorization" : NULL, cases[i].header, NULL};
        expect(cases[i].header ? cases[i].header : cases[i].query,
               &(struct sender){.headers = headers}, cases[i].query, cases[i].want);
    }
    /* Without a loopback token the server refuses every request there. */
    char *token = TAKE(h->api->security->loopback_token);
    expect("none",
           &(struct sender){.headers = (const char *const[]){"Authorization", MASTER, NULL}}, "",
           "401 Unauthorized");
    h->api->security->loopback_token = token;
}

static void a_certificate_takes_precedence_over_a_token(void **state)
{
    CLEANUP_FREE char *query = xasprintf("?access_token=%s", robot);
    const struct {
        const char *cn, *o, *header, *query, *want;
    } cases[] = {
        {"jane", "dev", NULL, "", JANE},
        {"jane", NULL, NULL, "", "jane [system:authenticated]"},
        {"jane", "dev", as_robot, "", JANE},
        {"jane", "dev", "Basic eA==", query, JANE},
        {"root", "system:masters", NULL, "", "root [system:masters system:authenticated]"},
        {NULL, NULL, as_robot, "", ROBOT},
        {NULL, NULL, NULL, query, ROBOT},
        {NULL, NULL, as_robot, "?access_token=wrong", ROBOT},
        {NULL, NULL, "Bearer wrong", query, "401 Unauthorized"},
        {NULL, NULL, "Basic eA==", query, "401 Unauthorized"},
        {NULL, NULL, "Basic eA==", "", "401 Unauthorized"},
        {NULL, NULL, NULL, "?access_token=wrong", "401 Unauthorized"},
        {NULL, NULL, NULL, "?access_token=", "401 Unauthorized"},
        {NULL, NULL, MASTER, "", "401 Unauthorized"},
        {NULL, NULL, NULL, "", NOBODY},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *headers[] = {cases[i].header ? "Authorization" : NULL, cases[i].header, NULL};
        CLEANUP_FREE char *what = xasprintf("case %zu", i);
        expect(
            what,
            &(struct sender){.tls = true, .cn = cases[i].cn, .o = cases[i].o, .headers = headers},
            cases[i].query, cases[i].want);
    }
}

static void anonymous_requests_need_the_option(void **state)
{
    struct security *s = h->api->security;
    static const char *const headers[] = {"Authorization", MASTER, NULL};
    s->anonymous = false;
    expect("nobody", &(struct sender){.tls = true}, "", "401 Unauthorized");
    expect("jane", &(struct sender){.tls = true, .cn = "jane", .o = "dev"}, "", JANE);
    expect("master", &(struct sender){.headers = headers}, "", ADMIN);
    s->anonymous = true;
    expect("nobody", &(struct sender){.tls = true}, "", NOBODY);
}

static void a_certificate_of_another_authority_ends_the_connection(void **state)
{
    CLEANUP_ANSWER struct answer a = {0};
    assert_true(try_by(h, &(struct sender){.tls = true, .cn = "jane", .foreign = true}, "POST",
                       WHOAMI, "{}", &a) < 0);
}

static void a_certificate_without_a_common_name_is_refused(void **state)
{
    static const char *const o[] = {"system:masters", NULL};
    CLEANUP_FREE char *key = NULL;
    CLEANUP_FREE char *cert = NULL;
    CLEANUP_FREE char *pem = csr_make(&(struct csr_wish){.o = o}, &key);
    assert_int_equal(pki_csr_sign(h->ca, pem, PKI_CLIENT, 0, INT64_MAX / 2, &cert, NULL), 0);
    expect("without", &(struct sender){.tls = true, .cert = cert, .key = key}, "",
           "401 Unauthorized");
}

/* Service accounts and Secrets, which decide about tokens, are objects of the registry. */
static void tokens_are_unavailable_before_the_registry_is_loaded(void **state)
{
    const char *headers[] = {"Authorization", as_robot, NULL};
    h->api->cache.ready = false;
    CLEANUP_ANSWER struct answer a =
        ask_by(h, &(struct sender){.tls = true, .headers = headers}, "POST", WHOAMI, "{}");
    CLEANUP_ANSWER struct answer nobody =
        ask_by(h, &(struct sender){.tls = true}, "GET", "/api/v1/nodes", NULL);
    CLEANUP_ANSWER struct answer master = ask(h, "GET", "/api/v1/nodes", NULL);
    h->api->cache.ready = true;
    assert_int_equal(a.status, 503);
    assert_string_equal(at(&a, "message"), "the registry is being loaded");
    /* RBAC objects are missing, too: 503 instead of 403. */
    assert_int_equal(nobody.status, 503);
    assert_string_equal(at(&nobody, "reason"), "ServiceUnavailable");
    assert_int_equal(master.status, 503);
}

static void without_access_control_all_users_are_the_administrator(void **state)
{
    struct harness *open = harness_new(NULL, NULL);
    CLEANUP_ANSWER struct answer a = ask_ok(open, "POST", WHOAMI, "{}", 201);
    assert_string_equal(at(&a, "status.userInfo.username"), "system:admin");
    assert_string_equal(at(&a, "status.userInfo.groups.0"), "system:masters");
    assert_string_equal(at(&a, "status.userInfo.groups.1"), "system:authenticated");
    harness_free(open);
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(the_loopback_listener_accepts_only_the_masters_token),
        T(a_certificate_takes_precedence_over_a_token),
        T(anonymous_requests_need_the_option),
        T(a_certificate_of_another_authority_ends_the_connection),
        T(a_certificate_without_a_common_name_is_refused),
        T(tokens_are_unavailable_before_the_registry_is_loaded),
        T(without_access_control_all_users_are_the_administrator),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
