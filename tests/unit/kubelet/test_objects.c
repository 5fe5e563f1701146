/* SPDX-License-Identifier: Apache-2.0 */
/* Watches of single objects against a real API server. */
#include "kubelet/objects.h"

#include "../apiserver/harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static struct harness *h;
static struct api_client *client;
static struct pod_objects *objects;
static bool changed;
static struct strbuf told = STRBUF_INIT;

static void on_changed(void *ctx, const char *uid)
{
    changed = true;
    strbuf_addf(&told, "%s ", uid);
}

static const struct pod_objects_ops ops = {.changed = on_changed};

static int set_up(void **state)
{
    struct err e;
    h = harness_new(NULL, NULL);
    CLEANUP_FREE char *url = harness_url(h);
    assert_int_equal(api_client_new(h->loop, url, "test", &client, &e), 0);
    objects = pod_objects_new(h->loop, client, &ops, NULL);
    strbuf_reset(&told);
    return 0;
}

static int tear_down(void **state)
{
    pod_objects_free(objects);
    api_client_free(client);
    harness_free(h);
    strbuf_done(&told);
    return 0;
}

static void set_pod(const char *uid, const char *spec)
{
    CLEANUP_FREE char *text = xasprintf(
        "{'metadata': {'name': 'p', 'namespace': 'default', 'uid': '%s'}, 'spec': %s}", uid, spec);
    CLEANUP(json_free) struct json *pod = json_of(text);
    pod_objects_set_pod(objects, pod);
}

static void wait_change(void)
{
    changed = false;
    assert_int_equal(loop_run_until(h->loop, &changed, 10000), 0);
}

static int get(enum pod_object_kind kind, const char *name, const char *key, const char **ret)
{
    const struct json *o = NULL;
    int r = pod_objects_get(objects, kind, "default", name, &o);
    *ret = json_path_string(o, "data", key, NULL);
    return r;
}

/* Waits until the object's key has the value; NULL: until there is no such object. */
static void expect(enum pod_object_kind kind, const char *name, const char *key, const char *want)
{
    for (;;) {
        const char *value;
        int r = get(kind, name, key, &value);
        if (want ? r == 0 && streq_null(value, want) : r == -ENOENT) {
            return;
        }
        wait_change();
    }
}

#define MAP_A "{'volumes': [{'name': 'v', 'configMap': {'name': 'a'}}]}"
#define BOTH                                                                                     \
    "{'volumes': [{'name': 'v', 'configMap': {'name': 'a'}}], 'ephemeralContainers': [{'env': [" \
    "{'name': 'X', 'valueFrom': {'secretKeyRef': {'name': 's', 'key': 'k'}}}]}]}"

static void an_object_is_watched_once_for_all_pods_and_until_the_last_one(void **state)
{
    put_in(h, "POST", "/api/v1/namespaces/default/configmaps",
           "{'metadata': {'name': 'a'}, 'data': {'k': '1'}}", 201);
    set_pod("u1", MAP_A);
    set_pod("u2", MAP_A);
    const char *value;
    assert_int_equal(get(POD_CONFIG_MAP, "a", "k", &value), -EAGAIN);
    assert_int_equal(get(POD_CONFIG_MAP, "b", "k", &value), -EAGAIN);
    expect(POD_CONFIG_MAP, "a", "k", "1");
    assert_int_equal(pod_objects_watches(objects), 1);
    strbuf_reset(&told);
    put_in(h, "PATCH", "/api/v1/namespaces/default/configmaps/a", "{'data': {'k': '2'}}", 200);
    expect(POD_CONFIG_MAP, "a", "k", "2");
    assert_string_equal(strbuf_cstr(&told), "u1 u2 ");
    pod_objects_remove_pod(objects, "u1");
    assert_int_equal(pod_objects_watches(objects), 1);
    assert_int_equal(get(POD_CONFIG_MAP, "a", "k", &value), 0);
    pod_objects_remove_pod(objects, "u2");
    pod_objects_remove_pod(objects, "u2");
    assert_int_equal(pod_objects_watches(objects), 0);
    assert_int_equal(get(POD_CONFIG_MAP, "a", "k", &value), -EAGAIN);
}

static void references_that_come_and_go_change_the_watches(void **state)
{
    set_pod("u1", MAP_A);
    assert_int_equal(pod_objects_watches(objects), 1);
    set_pod("u1", BOTH);
    assert_int_equal(pod_objects_watches(objects), 2);
    expect(POD_SECRET, "s", NULL, NULL);
    expect(POD_CONFIG_MAP, "a", NULL, NULL);
    put_in(h, "POST", "/api/v1/namespaces/default/secrets",
           "{'metadata': {'name': 's'}, 'data': {'k': 'eA=='}}", 201);
    expect(POD_SECRET, "s", "k", "eA==");
    put_in(h, "DELETE", "/api/v1/namespaces/default/secrets/s", NULL, 200);
    expect(POD_SECRET, "s", NULL, NULL);
    set_pod("u1", MAP_A);
    assert_int_equal(pod_objects_watches(objects), 1);
}

static void an_immutable_object_is_kept_without_a_watch(void **state)
{
    put_in(h, "POST", "/api/v1/namespaces/default/configmaps",
           "{'metadata': {'name': 'a'}, 'immutable': true, 'data': {'k': '1'}}", 201);
    set_pod("u1", MAP_A);
    expect(POD_CONFIG_MAP, "a", "k", "1");
    const bool never = false;
    for (int i = 0; i < 1000 && pod_objects_watches(objects); i++) {
        loop_run_until(h->loop, &never, 10);
    }
    assert_int_equal(pod_objects_watches(objects), 0);
    assert_int_equal(pod_objects_count(objects), 1);
    const char *value;
    assert_int_equal(get(POD_CONFIG_MAP, "a", "k", &value), 0);
    assert_string_equal(value, "1");
}

static void a_server_that_is_away_is_reported_and_awaited(void **state)
{
    harness_stop_listening(h);
    set_pod("u1", MAP_A);
    while (!pod_objects_failure(objects, POD_CONFIG_MAP, "default", "a")) {
        wait_change();
    }
    const char *value;
    assert_int_equal(get(POD_CONFIG_MAP, "a", "k", &value), -EAGAIN);
    harness_listen_again(h);
    expect(POD_CONFIG_MAP, "a", NULL, NULL);
    assert_null(pod_objects_failure(objects, POD_CONFIG_MAP, "default", "a"));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(an_object_is_watched_once_for_all_pods_and_until_the_last_one),
        TEST(references_that_come_and_go_change_the_watches),
        TEST(an_immutable_object_is_kept_without_a_watch),
        TEST(a_server_that_is_away_is_reported_and_awaited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
