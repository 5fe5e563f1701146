/* SPDX-License-Identifier: Apache-2.0 */
/* The ConfigMap kube-root-ca.crt of each namespace. */
#include "controllers/security/root_ca.h"

#include "json_text.h"
#include "rig.h"

#define MAP "/configmaps/kube-root-ca.crt"
#define RED "/api/v1/namespaces/red"

static struct harness *h;
static struct api_client *client;
static struct rig_controller *controller;

static int set_up(void **state)
{
    struct root_ca_config cfg = {.ca = "the authority\n", .client_ca = "the clients' one"};
    h = harness_new(NULL, NULL);
    client = rig_client(h);
    free(make_namespace(h, "red"));
    controller = rig_start(h, client, &root_ca_controller, &cfg);
    return 0;
}

static int tear_down(void **state)
{
    rig_stop(controller);
    api_client_free(client);
    harness_free(h);
    return 0;
}

/* Waits until the value of the ConfigMap's only key is 'want'. */
static void expect_key(const char *path, const char *key, const char *want)
{
    bool never = false;
    for (int i = 0; i < 4000; i++) {
        CLEANUP_ANSWER struct answer now = ask(h, "GET", path, NULL);
        const struct json *data = json_get(now.body, "data");
        if (streq_null(json_path_string(data, key, NULL), want) && json_count(data) == 1) {
            return;
        }
        loop_run_until(h->loop, &never, 5);
    }
    fail_msg("%s does not become %s", path, want);
}

static void expect(const char *path, const char *want)
{
    expect_key(path, "ca.crt", want);
}

static void each_namespace_gets_the_authority(void **state)
{
    expect(RED MAP, "the authority\n");
    expect("/api/v1/namespaces/default" MAP, "the authority\n");
    free(make_namespace(h, "blue"));
    expect("/api/v1/namespaces/blue" MAP, "the authority\n");
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", RED MAP, NULL, 200);
    const char *text = json_path_string(json_path(a.body, "metadata", "annotations", NULL),
                                        "kubernetes.io/description", NULL);
    assert_non_null(text);
    assert_memory_equal(text, "Contains a CA bundle ", 21);
}

static void a_map_that_was_changed_or_deleted_is_written_again(void **state)
{
    expect(RED MAP, "the authority\n");
    put_in(h, "PUT", RED MAP,
           "{'metadata': {'name': 'kube-root-ca.crt'}, 'data': {'ca.crt': 'of an attacker'}}", 200);
    expect(RED MAP, "the authority\n");
    put_in(h, "PUT", RED MAP,
           "{'metadata': {'name': 'kube-root-ca.crt'}, 'data': {'ca.crt': 'the authority\\n',"
           "'more': 'x'}}",
           200);
    expect(RED MAP, "the authority\n");
    put_in(h, "DELETE", RED MAP, NULL, 200);
    expect(RED MAP, "the authority\n");
    /* The same certificate with another end is left to its writer. */
    put_in(h, "PUT", RED MAP,
           "{'metadata': {'name': 'kube-root-ca.crt'}, 'data': {'ca.crt': 'the authority'}}", 200);
    free(make_namespace(h, "green"));
    expect("/api/v1/namespaces/green" MAP, "the authority\n");
    expect(RED MAP, "the authority");
}

static void kube_system_says_how_clients_are_known(void **state)
{
#define CLIENTS "/configmaps/extension-apiserver-authentication"
#define SYSTEM "/api/v1/namespaces/kube-system"
    free(make_namespace(h, "kube-system"));
    expect_key(SYSTEM CLIENTS, "client-ca-file", "the clients' one");
    put_in(h, "DELETE", SYSTEM CLIENTS, NULL, 200);
    expect_key(SYSTEM CLIENTS, "client-ca-file", "the clients' one");
    /* What an aggregation layer adds stays. */
    CLEANUP_ANSWER struct answer a =
        ask_ok(h, "PUT", SYSTEM CLIENTS,
               "{\"metadata\": {\"name\": \"extension-apiserver-authentication\"},"
               "\"data\": {\"client-ca-file\": \"of an attacker\", \"requestheader\": \"x\"}}",
               200);
    bool never = false;
    for (int i = 0;; i++) {
        CLEANUP_ANSWER struct answer now = ask_ok(h, "GET", SYSTEM CLIENTS, NULL, 200);
        if (streq(at(&now, "data.client-ca-file"), "the clients' one")) {
            assert_string_equal(at(&now, "data.requestheader"), "x");
            break;
        }
        assert_true(i < 4000);
        loop_run_until(h->loop, &never, 5);
    }
    /* Elsewhere the name means nothing. */
    put_in(h, "POST", RED "/configmaps",
           "{'metadata': {'name': 'extension-apiserver-authentication'}, 'data': {'a': 'b'}}", 201);
    free(make_namespace(h, "last"));
    expect("/api/v1/namespaces/last" MAP, "the authority\n");
    expect_key(RED CLIENTS, "a", "b");
}

static void without_an_authority_there_is_no_map(void **state)
{
    struct root_ca_config none = {0};
    struct harness *other = harness_new(NULL, NULL);
    struct api_client *c = rig_client(other);
    struct rig_controller *r = rig_start(other, c, &root_ca_controller, &none);
    free(make_namespace(other, "red"));
    bool never = false;
    loop_run_until(other->loop, &never, 50);
    CLEANUP_ANSWER struct answer a = ask_ok(other, "GET", RED MAP, NULL, 404);
    rig_stop(r);
    api_client_free(c);
    harness_free(other);
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(each_namespace_gets_the_authority),
        T(a_map_that_was_changed_or_deleted_is_written_again),
        T(kube_system_says_how_clients_are_known),
        T(without_an_authority_there_is_no_map),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
