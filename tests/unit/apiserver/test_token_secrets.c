/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets of type kubernetes.io/service-account-token: the API server puts their token in. */
#include "apiserver/access/token.h"
#include "apiserver/request/server_priv.h"
#include "base/base64.h"
#include "base/timeutil.h"
#include "harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define RED "/api/v1/namespaces/red/"
#define NAMESPACE "'namespace': 'cmVk'"
#define WRITES "{'verbs': ['create', 'update', 'get'], 'apiGroups': [''], 'resources': ['secrets']}"
#define TOKENS "{'verbs': ['create'], 'apiGroups': [''], 'resources': ['serviceaccounts/token']%s}"

static struct harness *h;

static int set_up(void **state)
{
    h = harness_new_secure((struct apiserver_security){0});
    free(make_namespace(h, "red"));
    CLEANUP_FREE char *any = xasprintf(WRITES "," TOKENS, "");
    CLEANUP_FREE char *one = xasprintf(WRITES "," TOKENS, ", 'resourceNames': ['other']");
    give_rules(h, NULL, "both", any);
    give_rules(h, NULL, "one", one);
    give_rules(h, NULL, "writer", WRITES);
    CLEANUP_ANSWER struct answer a = ask_as(h, "root system:masters", "POST", RED "serviceaccounts",
                                            NULL, "{'metadata': {'name': 'robot'}}");
    assert_int_equal(a.status, 201);
    return 0;
}

static int tear_down(void **state)
{
    harness_free(h);
    return 0;
}

static bool is_good(const char *encoded)
{
    CLEANUP_STRBUF struct strbuf token = STRBUF_INIT;
    CLEANUP(user_unref) struct user_info *u = NULL;
    struct err e = {0};
    return base64_decode(encoded, strlen(encoded), &token) == 0 &&
           token_authenticate(h->api->security, strbuf_cstr(&token), NULL, time_wall_ms(), &u, NULL,
                              &e) == 0 &&
           streq(u->name, "system:serviceaccount:red:robot");
}

/* A Secret that 'who' creates: whether it has a token that is good. */
static void a_token_is_for_a_writer_who_may_ask_for_one(void **state)
{
    static const char type[] = "kubernetes.io/service-account-token";
    static const struct {
        const char *who, *type, *account, *more, *data;
        bool has_token;
    } rows[] = {
        {"both", type, "robot", "", NAMESPACE, true},
        {"both", type, "robot", "", "", false}, /* The controller completes it. */
        {"both", type, "robot", ", 'kubernetes.io/service-account.uid': 'another'", NAMESPACE,
         false},
        {"both", type, "nobody", "", NAMESPACE, false},
        {"both", "Opaque", "robot", "", NAMESPACE, false},
        {"one", type, "robot", "", NAMESPACE, false},    /* Tokens of another account only. */
        {"writer", type, "robot", "", NAMESPACE, false}, /* No tokens at all. */
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_FREE char *body =
            xasprintf("{'metadata': {'name': 's%zu', 'annotations': {"
                      "'kubernetes.io/service-account.name': '%s'%s}}, 'type': '%s', 'data': {%s}}",
                      i, rows[i].account, rows[i].more, rows[i].type, rows[i].data);
        CLEANUP_ANSWER struct answer a = ask_as(h, rows[i].who, "POST", RED "secrets", NULL, body);
        if (a.status != 201 || is_good(at(&a, "data.token")) != rows[i].has_token) {
            fail_msg("row %zu: %d %s", i, a.status, a.text);
        }
    }
}

static void a_token_that_is_there_stays_and_one_of_the_client_is_replaced(void **state)
{
    static const char mine[] = "{'metadata': {'name': 'mine', 'annotations': {"
                               "'kubernetes.io/service-account.name': 'robot'}},"
                               "'type': 'kubernetes.io/service-account-token',"
                               "'data': {'token': 'bWluZQ==', 'namespace': 'cmVk'}}";
    CLEANUP_ANSWER struct answer made = ask_as(h, "both", "POST", RED "secrets", NULL, mine);
    assert_int_equal(made.status, 201);
    assert_true(is_good(at(&made, "data.token")));
    CLEANUP_ANSWER struct answer put =
        ask_as(h, "both", "PUT", RED "secrets/mine", NULL, made.text);
    assert_int_equal(put.status, 200);
    assert_string_equal(at(&put, "data.token"), at(&made, "data.token"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_is_for_a_writer_who_may_ask_for_one),
        cmocka_unit_test(a_token_that_is_there_stays_and_one_of_the_client_is_replaced),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
