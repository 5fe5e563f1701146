/* SPDX-License-Identifier: Apache-2.0 */
/* Managed service accounts of each namespace, and tokens in Secrets of service accounts. */
#include "controllers/security/service_accounts.h"

#include "apiserver/access/token.h"
#include "apiserver/request/server_priv.h"
#include "base/base64.h"
#include "base/timeutil.h"
#include "json_text.h"
#include "rig.h"

#define RED "/api/v1/namespaces/red/"
#define TYPE "kubernetes.io/service-account-token"
#define NAME "kubernetes.io/service-account.name"
#define UID "kubernetes.io/service-account.uid"

static struct harness *h;
static struct api_client *client;
static struct rig_controller *controller;
static const char *const names[] = {"builder", "default", NULL};

static int set_up(void **state)
{
    struct service_accounts_config cfg = {.names = names, .ca = "the authority"};
    h = harness_new_secure((struct apiserver_security){0});
    client = rig_client(h);
    controller = rig_start(h, client, &service_accounts_controller, &cfg);
    free(make_namespace(h, "red"));
    return 0;
}

static int tear_down(void **state)
{
    rig_stop(controller);
    api_client_free(client);
    harness_free(h);
    return 0;
}

static void each_namespace_gets_the_managed_accounts(void **state)
{
    rig_expect(h, RED "serviceaccounts/default", NULL, "200");
    rig_expect(h, RED "serviceaccounts/builder", NULL, "200");
    rig_expect(h, "/api/v1/namespaces/default/serviceaccounts/default", NULL, "200");
    rig_expect(h, RED "serviceaccounts/deployer", NULL, "404");
    /* A deleted managed account is created again; another is not. */
    CLEANUP_ANSWER struct answer a = ask(h, "GET", RED "serviceaccounts/builder", NULL);
    put_in(h, "POST", RED "serviceaccounts", "{'metadata': {'name': 'mine'}}", 201);
    put_in(h, "DELETE", RED "serviceaccounts/mine", NULL, 200);
    put_in(h, "DELETE", RED "serviceaccounts/builder", NULL, 200);
    rig_expect(h, RED "serviceaccounts/builder", NULL, "200");
    rig_expect(h, RED "serviceaccounts/mine", NULL, "404");
    CLEANUP_ANSWER struct answer b = ask(h, "GET", RED "serviceaccounts/builder", NULL);
    assert_string_not_equal(at(&a, "metadata.uid"), at(&b, "metadata.uid"));
    /* A namespace that is being deleted gets none. */
    free(make_namespace(h, "going"));
    rig_expect(h, "/api/v1/namespaces/going/serviceaccounts/default", NULL, "200");
    put_in(h, "DELETE", "/api/v1/namespaces/going", NULL, 200);
    put_in(h, "DELETE", "/api/v1/namespaces/going/serviceaccounts/default", NULL, 200);
    free(make_namespace(h, "later"));
    rig_expect(h, "/api/v1/namespaces/later/serviceaccounts/builder", NULL, "200");
    rig_expect(h, "/api/v1/namespaces/going/serviceaccounts/default", NULL, "404");
}

/* The value of a Secret's data, decoded; owned. */
static char *data_of(const char *secret, const char *key)
{
    CLEANUP_FREE char *path = xasprintf(RED "secrets/%s", secret);
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", path, NULL, 200);
    const struct json *v = json_path(a.body, "data", key, NULL);
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    assert_int_equal(
        base64_decode(json_is(v, JSON_STRING) ? json_get_string(v) : "", json_string_size(v), &b),
        0);
    return xstrdup(strbuf_cstr(&b));
}

static void make_secret(const char *name, const char *type, const char *annotations,
                        const char *data)
{
    CLEANUP_FREE char *body =
        xasprintf("{'metadata': {'name': '%s', 'annotations': {%s}}, 'type': '%s',"
                  "'stringData': {%s}}",
                  name, annotations, type, data);
    put_in(h, "POST", RED "secrets", body, 201);
}

static char *uid_of(const char *account)
{
    CLEANUP_FREE char *path = xasprintf(RED "serviceaccounts/%s", account);
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", path, NULL, 200);
    return xstrdup(at(&a, "metadata.uid"));
}

static bool is_good(const char *token, const char *user)
{
    CLEANUP(user_unref) struct user_info *u = NULL;
    struct err e = {0};
    return token_authenticate(h->api->security, token, NULL, time_wall_ms(), &u, NULL, &e) == 0 &&
           streq(u->name, user);
}

#define OF(account) "'" NAME "': '" account "'"

static void a_secret_gets_its_token_and_is_deleted_with_its_account(void **state)
{
    put_in(h, "POST", RED "serviceaccounts", "{'metadata': {'name': 'robot'}}", 201);
    CLEANUP_FREE char *uid = uid_of("robot");
    make_secret("robot-token", TYPE, OF("robot"), "");
    make_secret("opaque", "Opaque", OF("robot"), "");
    make_secret("early", TYPE, OF("late"), "");
    CLEANUP_FREE char *wrong = xasprintf(OF("robot") ", '" UID "': 'another'");
    make_secret("stolen", TYPE, wrong, "");
    CLEANUP_FREE char *right = xasprintf(OF("robot") ", '" UID "': '%s'", uid);
    make_secret("half", TYPE, right, "'token': 'kept'");
    CLEANUP_FREE char *gone = xasprintf(OF("nobody") ", '" UID "': '%s'", uid);
    make_secret("orphan", TYPE, gone, "");
    rig_expect(h, RED "secrets/robot-token", "data.namespace", "cmVk"); /* "red" */
    rig_expect(h, RED "secrets/half", "data.namespace", "cmVk");
    rig_expect(h, RED "secrets/stolen", NULL, "404");
    rig_expect(h, RED "secrets/orphan", NULL, "404");
    CLEANUP_FREE char *token = data_of("robot-token", "token");
    CLEANUP_FREE char *ca = data_of("robot-token", "ca.crt");
    CLEANUP_FREE char *kept = data_of("half", "token");
    CLEANUP_FREE char *opaque = data_of("opaque", "token");
    CLEANUP_FREE char *early = data_of("early", "token");
    assert_true(is_good(token, "system:serviceaccount:red:robot"));
    assert_string_equal(ca, "the authority");
    assert_string_equal(kept, "kept");
    assert_string_equal(opaque, "");
    assert_string_equal(early, "");
    CLEANUP_ANSWER struct answer a = ask(h, "GET", RED "secrets/robot-token", NULL);
    assert_string_equal(
        json_path_string(json_path(a.body, "metadata", "annotations", NULL), UID, NULL), uid);
    /* A token that the Secret was created with is replaced. */
    make_secret("forged", TYPE, OF("robot"), "'token': 'forged'");
    rig_expect(h, RED "secrets/forged", "data.namespace", "cmVk");
    CLEANUP_FREE char *forged = data_of("forged", "token");
    assert_true(is_good(forged, "system:serviceaccount:red:robot"));
    /* The account may be created after the Secret. */
    put_in(h, "POST", RED "serviceaccounts", "{'metadata': {'name': 'late'}}", 201);
    rig_expect(h, RED "secrets/early", "data.namespace", "cmVk");
    CLEANUP_FREE char *late = data_of("early", "token");
    assert_true(is_good(late, "system:serviceaccount:red:late"));
    /* A removed member is added again; the token stays the same. */
    CLEANUP_FREE char *text = rig_text(h, RED "secrets/robot-token");
    CLEANUP(json_free) struct json *o = from(text);
    json_remove(json_get(o, "data"), "ca.crt");
    CLEANUP_FREE char *changed = json_to_text(o);
    CLEANUP_ANSWER struct answer put = ask_ok(h, "PUT", RED "secrets/robot-token", changed, 200);
    static const char whole[] = "dGhlIGF1dGhvcml0eQ==";
    bool never = false;
    for (int i = 0; i < 4000; i++) {
        CLEANUP_ANSWER struct answer now = ask(h, "GET", RED "secrets/robot-token", NULL);
        const char *has = json_path_string(json_get(now.body, "data"), "ca.crt", NULL);
        if (streq_null(has, whole)) {
            break;
        }
        assert_true(i < 3999);
        loop_run_until(h->loop, &never, 5);
    }
    CLEANUP_FREE char *same = data_of("robot-token", "token");
    assert_string_equal(same, token);
    /* The account's deletion deletes its Secrets and no others. */
    put_in(h, "DELETE", RED "serviceaccounts/robot", NULL, 200);
    rig_expect(h, RED "secrets/robot-token", NULL, "404");
    rig_expect(h, RED "secrets/half", NULL, "404");
    rig_expect(h, RED "secrets/forged", NULL, "404");
    rig_expect(h, RED "secrets/early", NULL, "200");
    rig_expect(h, RED "secrets/opaque", NULL, "200");
}

static void an_account_in_another_namespace_does_not_count(void **state)
{
    free(make_namespace(h, "blue"));
    put_in(h, "POST", "/api/v1/namespaces/blue/serviceaccounts", "{'metadata': {'name': 'far'}}",
           201);
    make_secret("far-token", TYPE, OF("far"), "");
    put_in(h, "POST", RED "serviceaccounts", "{'metadata': {'name': 'near'}}", 201);
    make_secret("near-token", TYPE, OF("near"), "");
    rig_expect(h, RED "secrets/near-token", "data.namespace", "cmVk");
    CLEANUP_FREE char *token = data_of("far-token", "token");
    assert_string_equal(token, "");
    /* Its deletion does not delete this namespace's Secret. */
    put_in(h, "POST", "/api/v1/namespaces/blue/serviceaccounts", "{'metadata': {'name': 'near'}}",
           201);
    put_in(h, "DELETE", "/api/v1/namespaces/blue/serviceaccounts/near", NULL, 200);
    put_in(h, "DELETE", RED "secrets/far-token", NULL, 200);
    rig_expect(h, RED "secrets/near-token", "data.namespace", "cmVk");
}

static void a_secret_that_is_being_deleted_gets_no_token(void **state)
{
    /* More of them than the controller works on at once. */
    for (int i = 0; i < 20; i++) {
        CLEANUP_FREE char *path = xasprintf(RED "secrets/leaving-%d", i);
        CLEANUP_FREE char *body =
            xasprintf("{'metadata': {'name': 'leaving-%d', 'finalizers': ['example.com/wait'],"
                      "'annotations': {" OF("nobody") "}}, 'type': '" TYPE "'}",
                      i);
        put_in(h, "POST", RED "secrets", body, 201);
        put_in(h, "DELETE", path, NULL, 200);
    }
    put_in(h, "POST", RED "serviceaccounts", "{'metadata': {'name': 'nobody'}}", 201);
    make_secret("after", TYPE, OF("nobody"), "");
    rig_expect(h, RED "secrets/after", "data.namespace", "cmVk");
    CLEANUP_FREE char *token = data_of("leaving-0", "token");
    assert_string_equal(token, "");
}

static void a_write_that_fails_is_tried_again(void **state)
{
    rig_refuse(h, false);
    rig_plant(h, "", "namespaces", "again",
              "{'kind': 'Namespace', 'apiVersion': 'v1', 'metadata': {'name': 'again', 'uid': 'u'},"
              "'spec': {'finalizers': ['kubernetes']}, 'status': {'phase': 'Active'}}");
    rig_recover(h);
    rig_expect(h, "/api/v1/namespaces/again/serviceaccounts/builder", NULL, "200");
    rig_expect(h, "/api/v1/namespaces/again/serviceaccounts/default", NULL, "200");
}

static void without_keys_there_are_no_tokens(void **state)
{
    struct service_accounts_config cfg = {.names = names};
    struct harness *open = harness_new(NULL, NULL);
    struct api_client *c = rig_client(open);
    struct rig_controller *s = rig_start(open, c, &service_accounts_controller, &cfg);
    put_in(open, "POST", "/api/v1/namespaces/default/secrets",
           "{'metadata': {'name': 'x', 'annotations': {" OF("builder") "}}, 'type': '" TYPE "'}",
           201);
    rig_expect(open, "/api/v1/namespaces/default/serviceaccounts/builder", NULL, "200");
    free(make_namespace(open, "next"));
    rig_expect(open, "/api/v1/namespaces/next/serviceaccounts/builder", NULL, "200");
    rig_expect(open, "/api/v1/namespaces/default/secrets/x", "data.token", "");
    rig_stop(s);
    api_client_free(c);
    harness_free(open);
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(each_namespace_gets_the_managed_accounts),
        T(a_secret_gets_its_token_and_is_deleted_with_its_account),
        T(an_account_in_another_namespace_does_not_count),
        T(a_secret_that_is_being_deleted_gets_no_token),
        T(a_write_that_fails_is_tried_again),
        T(without_keys_there_are_no_tokens),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
