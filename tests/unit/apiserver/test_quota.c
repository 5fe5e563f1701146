/* SPDX-License-Identifier: Apache-2.0 */
/* Quotas and limits as clients of the API server meet them, and random histories of writes in
 * parallel after which the counters must agree with the objects.
 *
 * QUOTA_SEED and QUOTA_ROUNDS in the environment choose the first history and their number.  In all
 * texts ' stands for ". */
#include "apiserver/admission/quota_priv.h"
#include "apiserver/request/server_priv.h"
#include "harness.h"
#include "rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define NS(ns) "/api/v1/namespaces/" ns
#define CLUSTER "/apis/quota.openshift.io/v1/clusterresourcequotas"
#define APPLIED(ns) "/apis/quota.openshift.io/v1/namespaces/" ns "/appliedclusterresourcequotas"
#define POD(name) \
    "{'metadata': {'name': '" name "'}, 'spec': {'containers': [{'name': 'c', 'image': 'i'}]}}"
#define WAIT_TURNS 400

static struct harness *h;

static int set_up(void **state)
{
    h = harness_new(NULL, NULL);
    free(make_namespace(h, "red"));
    return 0;
}

static int tear_down(void **state)
{
    harness_free(h);
    return 0;
}

static void expect(const char *method, const char *path, const char *body, int want)
{
    CLEANUP_FREE char *json = body ? quoted(body) : NULL;
    CLEANUP_ANSWER struct answer a = ask(h, method, path, json);
    if (a.status != want) {
        fail_msg("%s %s: %d instead of %d: %s", method, path, a.status, want, a.text);
    }
}

static void expect_refusal(const char *method, const char *path, const char *body, const char *why)
{
    CLEANUP_FREE char *json = quoted(body);
    CLEANUP_ANSWER struct answer a = ask(h, method, path, json);
    if (a.status != 403 || !str_has_suffix(at(&a, "message"), why)) {
        fail_msg("%s %s: %d %s", method, path, a.status, a.text);
    }
}

static void make_quota(const char *hard)
{
    CLEANUP_FREE char *body =
        xasprintf("{'metadata': {'name': 'q'}, 'spec': {'hard': {%s}}}", hard);
    expect("POST", NS("red") "/resourcequotas", body, 201);
}

static void pass(void *ctx)
{
    *(bool *) ctx = true;
}

/* Lets the server run for a moment. */
static void run_ms(uint64_t ms)
{
    bool done = false;
    struct loop_timer *t = loop_timer_new(h->loop, pass, &done);
    loop_timer_arm(t, ms);
    (void) loop_run_until(h->loop, &done, 20000);
    loop_timer_free(t);
}

/* Waits until the status of the object has this text at 'path'. */
static void expect_status(const char *object, const char *path, const char *want)
{
    CLEANUP_FREE char *got = NULL;
    for (unsigned i = 0; i < WAIT_TURNS; i++) {
        CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", object, NULL, 200);
        const struct json *v = json_path(a.body, "status", NULL);
        CLEANUP_FREE char *rest = xstrdup(path);
        for (char *part = rest, *next; part && v; part = next) {
            next = strchr(part, ' ');
            if (next) {
                *next++ = '\0';
            }
            v = json_get(v, part);
        }
        free(got);
        got = xstrdup(v && json_get_string(v) ? json_get_string(v) : "");
        if (streq(got, want)) {
            return;
        }
        run_ms(10);
    }
    fail_msg("%s %s: %s instead of %s", object, path, got, want);
}

#define QUOTA NS("red") "/resourcequotas/q"

/* ---- single writes ---- */

static void a_quota_bounds_and_a_deletion_frees_at_once(void **state)
{
    make_quota("'pods': '2'");
    expect("POST", NS("red") "/pods", POD("a"), 201);
    expect("POST", NS("red") "/pods", POD("b"), 201);
    expect_refusal("POST", NS("red") "/pods", POD("c"),
                   "pods \"c\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, "
                   "limited: pods=2");
    expect("POST", NS("default") "/pods", POD("c"), 201);
    expect_status(QUOTA, "used pods", "2");
    expect("DELETE", NS("red") "/pods/a?gracePeriodSeconds=0", NULL, 200);
    expect("POST", NS("red") "/pods", POD("c"), 201);
    expect("PATCH", NS("red") "/pods/b/status", "{'status': {'phase': 'Succeeded'}}", 200);
    expect("POST", NS("red") "/pods", POD("d"), 201);
    expect_refusal("POST", NS("red") "/pods", POD("e"), "limited: pods=2");
    expect("PATCH", QUOTA, "{'spec': {'hard': {'pods': '3'}}}", 200);
    expect("POST", NS("red") "/pods", POD("e"), 201);
    expect("DELETE", QUOTA, NULL, 200);
    expect("POST", NS("red") "/pods", POD("f"), 201);
}

static void writes_that_are_not_done_charge_nothing(void **state)
{
    make_quota("'pods': '1', 'secrets': '1'");
    for (unsigned i = 0; i < 3; i++) {
        expect("POST", NS("red") "/pods?dryRun=All", POD("a"), 201);
        expect("POST", NS("red") "/pods", "{'metadata': {'name': 'a'}, 'spec': {}}", 422);
    }
    expect("POST", NS("red") "/pods", POD("a"), 201);
    expect_refusal("POST", NS("red") "/pods?dryRun=All", POD("b"), "limited: pods=1");
    expect("DELETE", NS("red") "/pods/a?dryRun=All&gracePeriodSeconds=0", NULL, 200);
    expect_refusal("POST", NS("red") "/pods", POD("b"), "limited: pods=1");
    expect("POST", NS("red") "/secrets", "{'metadata': {'name': 's'}}", 201);
    expect("DELETE", NS("red") "/secrets/s", NULL, 200);
    /* A conflict: the second creation of one name. */
    expect("PATCH", QUOTA, "{'spec': {'hard': {'secrets': '2'}}}", 200);
    expect("POST", NS("red") "/secrets", "{'metadata': {'name': 's'}}", 201);
    for (unsigned i = 0; i < 3; i++) {
        expect("POST", NS("red") "/secrets", "{'metadata': {'name': 's'}}", 409);
    }
    expect("POST", NS("red") "/secrets", "{'metadata': {'name': 't'}}", 201);
    expect_status(QUOTA, "used secrets", "2");
}

static void an_update_charges_the_difference(void **state)
{
    make_quota("'services.nodeports': '2', 'requests.storage': '3Gi', 'pods': '1'");
    expect("POST", NS("red") "/services",
           "{'metadata': {'name': 's'}, 'spec': {'ports': [{'port': 80}], 'type': 'NodePort'}}",
           201);
    expect("PATCH", NS("red") "/services/s", "{'metadata': {'labels': {'a': 'b'}}}", 200);
    expect("PATCH", NS("red") "/services/s",
           "{'spec': {'ports': [{'port': 80, 'name': 'a'}, {'port': 81, 'name': 'b'}]}}", 200);
    expect_refusal("PATCH", NS("red") "/services/s",
                   "{'spec': {'ports': [{'port': 80, 'name': 'a'}, {'port': 81, 'name': 'b'}, "
                   "{'port': 82, 'name': 'c'}]}}",
                   "exceeded quota: q, requested: services.nodeports=1, used: "
                   "services.nodeports=2, limited: services.nodeports=2");
    expect("PATCH", NS("red") "/services/s", "{'spec': {'type': 'ClusterIP'}}", 200);
    expect_status(QUOTA, "used services.nodeports", "0");
    expect("POST", NS("red") "/persistentvolumeclaims",
           "{'metadata': {'name': 'p'}, 'spec': {'accessModes': ['ReadWriteOnce'], 'resources': "
           "{'requests': {'storage': '2Gi'}}}}",
           201);
    expect_status(QUOTA, "used requests.storage", "2Gi");
    /* The deadline moves a pod into the scope of another quota. */
    expect("POST", NS("red") "/resourcequotas",
           "{'metadata': {'name': 't'}, 'spec': {'hard': {'pods': '0'}, 'scopes': "
           "['Terminating']}}",
           201);
    expect("POST", NS("red") "/pods", POD("a"), 201);
    expect_refusal("PATCH", NS("red") "/pods/a", "{'spec': {'activeDeadlineSeconds': 500}}",
                   "exceeded quota: t, requested: pods=1, used: pods=0, limited: pods=0");
}

static void every_way_to_create_is_counted(void **state)
{
    make_quota("'configmaps': '4', 'count/leases.coordination.k8s.io': '1', "
               "'count/deployments.apps': '0'");
    expect("POST", NS("red") "/configmaps", "{'metadata': {'name': 'a'}}", 201);
    expect("POST", NS("red") "/configmaps", "{'metadata': {'generateName': 'a'}}", 201);
    expect("POST", NS("red") "/configmaps", "{'metadata': {'generateName': 'a'}}", 201);
    CLEANUP_FREE char *apply =
        quoted("{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'b'}}");
    CLEANUP_ANSWER struct answer a = ask_full(h, "PATCH", NS("red") "/configmaps/b?fieldManager=m",
                                              NULL, "application/apply-patch+yaml", apply);
    assert_int_equal(a.status, 201);
    CLEANUP_FREE char *more =
        quoted("{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'c'}}");
    CLEANUP_ANSWER struct answer b = ask_full(h, "PATCH", NS("red") "/configmaps/c?fieldManager=m",
                                              NULL, "application/apply-patch+yaml", more);
    assert_int_equal(b.status, 403);
    expect_refusal("POST", NS("red") "/configmaps", "{'metadata': {'generateName': 'a'}}",
                   "limited: configmaps=4");
    /* A PUT that creates. */
    const char *lease = "/apis/coordination.k8s.io/v1/namespaces/red/leases";
    CLEANUP_FREE char *one = xasprintf("%s/a", lease), *two = xasprintf("%s/b", lease);
    expect("PUT", one, "{'metadata': {'name': 'a'}}", 201);
    expect_refusal("PUT", two, "{'metadata': {'name': 'b'}}",
                   "limited: count/leases.coordination.k8s.io=1");
    expect("PATCH", one, "{'metadata': {'labels': {'a': 'b'}}}", 200);
    expect_refusal("POST", "/apis/apps/v1/namespaces/red/deployments",
                   "{'metadata': {'name': 'd'}, 'spec': {'selector': {'matchLabels': {'a': 'b'}}, "
                   "'template': {'metadata': {'labels': {'a': 'b'}}, 'spec': {'containers': "
                   "[{'name': 'c', 'image': 'i'}]}}}}",
                   "limited: count/deployments.apps=0");
}

static void custom_resources_are_counted(void **state)
{
    expect("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
           "{'metadata': {'name': 'widgets.example.com'}, 'spec': {'group': 'example.com', "
           "'scope': 'Namespaced', 'names': {'plural': 'widgets', 'singular': 'widget', 'kind': "
           "'Widget', 'listKind': 'WidgetList'}, 'versions': [{'name': 'v1', 'served': true, "
           "'storage': true, 'schema': {'openAPIV3Schema': {'type': 'object'}}}]}}",
           201);
    run_ms(50);
    const char *widgets = "/apis/example.com/v1/namespaces/red/widgets";
    const char *a = "{'apiVersion': 'example.com/v1', 'kind': 'Widget', 'metadata': {'name': 'a'}}";
    const char *b = "{'apiVersion': 'example.com/v1', 'kind': 'Widget', 'metadata': {'name': 'b'}}";
    expect("POST", widgets, a, 201);
    make_quota("'count/widgets.example.com': '1'");
    expect_refusal("POST", widgets, b, "limited: count/widgets.example.com=1");
    expect_status(QUOTA, "used count/widgets.example.com", "1");
    CLEANUP_FREE char *path = xasprintf("%s/a", widgets);
    expect("DELETE", path, NULL, 200);
    expect("POST", widgets, b, 201);
}

static void a_quota_counts_what_was_there_before(void **state)
{
    expect("POST", NS("red") "/pods", POD("a"), 201);
    expect("POST", NS("red") "/pods", POD("b"), 201);
    expect("PATCH", NS("red") "/pods/b/status", "{'status': {'phase': 'Failed'}}", 200);
    make_quota("'pods': '1', 'count/pods': '9', 'resourcequotas': '5'");
    expect_refusal("POST", NS("red") "/pods", POD("c"), "used: pods=1, limited: pods=1");
    expect_status(QUOTA, "used count/pods", "2");
    expect_status(QUOTA, "used resourcequotas", "1");
    /* A lowered bound stops creations only. */
    expect("PATCH", QUOTA, "{'spec': {'hard': {'pods': '0'}}}", 200);
    expect("PATCH", NS("red") "/pods/a", "{'metadata': {'labels': {'a': 'b'}}}", 200);
    expect_status(QUOTA, "hard pods", "0");
    expect_status(QUOTA, "used pods", "1");
}

static void quotas_of_compute_ask_for_amounts_which_limits_give(void **state)
{
    make_quota("'limits.cpu': '1', 'requests.memory': '1Gi'");
    expect_refusal("POST", NS("red") "/pods", POD("a"),
                   "pods \"a\" is forbidden: failed quota: q: must specify limits.cpu for: c; "
                   "requests.memory for: c");
    expect("POST", NS("red") "/limitranges",
           "{'metadata': {'name': 'l'}, 'spec': {'limits': [{'type': 'Container', 'default': "
           "{'cpu': '600m', 'memory': '100Mi'}, 'max': {'cpu': '700m'}}]}}",
           201);
    CLEANUP_FREE char *body = quoted(POD("a"));
    CLEANUP_ANSWER struct answer a = ask_ok(h, "POST", NS("red") "/pods", body, 201);
    const struct json *c = json_at(json_path(a.body, "spec", "containers", NULL), 0);
    assert_string_equal(json_path_string(c, "resources", "limits", "cpu", NULL), "600m");
    assert_string_equal(json_path_string(c, "resources", "requests", "memory", NULL), "100Mi");
    assert_string_equal(at(&a, "status.qosClass"), "Guaranteed");
    expect_refusal("POST", NS("red") "/pods", POD("b"),
                   "exceeded quota: q, requested: limits.cpu=600m, used: limits.cpu=600m, "
                   "limited: limits.cpu=1");
    expect_refusal("POST", NS("red") "/pods",
                   "{'metadata': {'name': 'b'}, 'spec': {'containers': [{'name': 'c', 'image': "
                   "'i', 'resources': {'limits': {'cpu': '800m', 'memory': '1'}}}]}}",
                   "pods \"b\" is forbidden: maximum cpu usage per Container is 700m, but limit "
                   "is 800m");
    expect_status(QUOTA, "used requests.memory", "100Mi");
}

static void claims_keep_to_the_limits(void **state)
{
    expect("POST", NS("red") "/limitranges",
           "{'metadata': {'name': 'l'}, 'spec': {'limits': [{'type': 'PersistentVolumeClaim', "
           "'max': {'storage': '2Gi'}}]}}",
           201);
    expect_refusal("POST", NS("red") "/persistentvolumeclaims",
                   "{'metadata': {'name': 'p'}, 'spec': {'accessModes': ['ReadWriteOnce'], "
                   "'resources': {'requests': {'storage': '3Gi'}}}}",
                   "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi");
}

static void limits_of_images_are_stored_with_a_warning(void **state)
{
    static const char text[] = "{'metadata': {'name': 'i'}, 'spec': {'limits': [{'type': "
                               "'openshift.io/Image', 'max': {'storage': '1Gi'}}]}}";
    CLEANUP_FREE char *body = quoted(text);
    CLEANUP_FREE char *request = xasprintf(
        "POST " NS("red") "/limitranges HTTP/1.1\r\nHost: x\r\nContent-Type: "
                          "application/json\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
        strlen(body), body);
    CLEANUP_FREE char *got = ask_raw(h, request);
    assert_non_null(strstr(got, " 201 "));
    assert_non_null(strstr(got, "spec.limits[0].type: openshift.io/Image: stored, not acted upon"));
}

/* ---- quotas of the cluster ---- */

static void make_cluster_quota(const char *hard)
{
    CLEANUP_FREE char *body =
        xasprintf("{'metadata': {'name': 'c'}, 'spec': {'selector': {'labels': {'matchLabels': "
                  "{'team': 'a'}}, 'annotations': {'who': 'ann'}}, 'quota': {'hard': {%s}}}}",
                  hard);
    expect("POST", CLUSTER, body, 201);
}

#define JOINS "{'metadata': {'labels': {'team': 'a'}, 'annotations': {'who': 'ann'}}}"
#define LEAVES "{'metadata': {'labels': {'team': null}}}"

static void a_cluster_quota_bounds_projects_together(void **state)
{
    free(make_namespace(h, "blue"));
    expect("PATCH", NS("red"), JOINS, 200);
    expect("POST", NS("red") "/pods", POD("a"), 201);
    expect("POST", NS("blue") "/pods", POD("a"), 201);
    make_cluster_quota("'pods': '3'");
    expect_status(CLUSTER "/c", "total used pods", "1");
    /* The usage of a project comes with it. */
    expect("PATCH", NS("blue"), JOINS, 200);
    expect("POST", NS("blue") "/pods", POD("b"), 201);
    expect_refusal("POST", NS("red") "/pods", POD("b"),
                   "exceeded quota: c, requested: pods=1, used: pods=3, limited: pods=3");
    expect_status(CLUSTER "/c", "total used pods", "3");
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", APPLIED("blue"), NULL, 200);
    const struct json *one = json_at(json_get(a.body, "items"), 0);
    const struct json *spaces = json_path(one, "status", "namespaces", NULL);
    assert_string_equal(json_path_string(one, "metadata", "namespace", NULL), "blue");
    assert_int_equal(json_count(spaces), 1);
    assert_string_equal(json_path_string(json_at(spaces, 0), "status", "used", "pods", NULL), "2");
    assert_string_equal(json_path_string(one, "status", "total", "used", "pods", NULL), "3");
    expect("GET", APPLIED("blue") "/c", NULL, 200);
    expect("GET", APPLIED("default") "/c", NULL, 404);
    /* And goes with it. */
    expect("PATCH", NS("blue"), LEAVES, 200);
    expect("GET", APPLIED("blue") "/c", NULL, 404);
    expect("POST", NS("red") "/pods", POD("b"), 201);
    expect_status(CLUSTER "/c", "total used pods", "2");
    expect("PATCH", NS("blue"), JOINS, 200);
    expect_status(CLUSTER "/c", "total used pods", "4");
    expect_refusal("POST", NS("red") "/pods", POD("c"), "limited: pods=3");
    expect("DELETE", CLUSTER "/c", NULL, 200);
    expect("POST", NS("red") "/pods", POD("c"), 201);
}

static void either_quota_refuses_and_then_none_is_charged(void **state)
{
    expect("PATCH", NS("red"), JOINS, 200);
    make_cluster_quota("'pods': '1'");
    make_quota("'pods': '5', 'secrets': '9'");
    expect("POST", NS("red") "/pods", POD("a"), 201);
    for (unsigned i = 0; i < 9; i++) {
        expect_refusal("POST", NS("red") "/pods", POD("b"), "limited: pods=1");
    }
    expect("PATCH", CLUSTER "/c", "{'spec': {'quota': {'hard': {'pods': '9'}}}}", 200);
    for (unsigned i = 0; i < 4; i++) {
        expect("POST", NS("red") "/pods",
               "{'metadata': {'generateName': 'p'}, 'spec': {'containers': [{'name': 'c', "
               "'image': 'i'}]}}",
               201);
    }
    for (unsigned i = 0; i < 9; i++) {
        expect_refusal("POST", NS("red") "/pods", POD("b"), "limited: pods=5");
    }
    expect_status(CLUSTER "/c", "total used pods", "5");
    expect_status(QUOTA, "used pods", "5");
}

static void a_selector_must_select(void **state)
{
    expect("POST", CLUSTER,
           "{'metadata': {'name': 'c'}, 'spec': {'selector': {}, 'quota': {'hard': {}}}}", 422);
    expect("POST", CLUSTER,
           "{'metadata': {'name': 'c'}, 'spec': {'selector': {'labels': {}}, 'quota': {}}}", 422);
}

static void a_written_status_is_replaced(void **state)
{
    make_quota("'pods': '1'");
    expect("POST", NS("red") "/pods", POD("a"), 201);
    expect_status(QUOTA, "used pods", "1");
    expect("PATCH", QUOTA "/status", "{'status': {'hard': {'pods': '99'}, 'used': {'pods': '0'}}}",
           200);
    expect_refusal("POST", NS("red") "/pods", POD("b"), "used: pods=1, limited: pods=1");
    expect_status(QUOTA, "hard pods", "1");
    expect_status(QUOTA, "used pods", "1");
}

/* ---- writes in parallel ---- */

#define CLIENTS 8

struct parallel {
    struct http_client *clients[CLIENTS];
    unsigned begun, pending;
    unsigned statuses[600];
    bool idle;
};

static struct parallel many;

static void one_answered(void *ctx, const struct http_result *r)
{
    assert_int_equal(r->error, 0);
    many.statuses[r->status]++;
    many.idle = --many.pending == 0;
}

static void many_begin(void)
{
    CLEANUP_FREE char *url = harness_url(h);
    struct http_client_config cfg = {.url = url};
    struct err e = {0};
    many = (struct parallel){0};
    for (size_t i = 0; i < CLIENTS; i++) {
        assert_int_equal(http_client_new(h->loop, &cfg, &many.clients[i], &e), 0);
    }
}

static void many_send(const char *method, const char *path, const char *body)
{
    CLEANUP_FREE char *json = body ? quoted(body) : NULL;
    const char *type = streq(method, "PATCH") ? "application/merge-patch+json" : "application/json";
    many.pending++;
    many.idle = false;
    http_call(many.clients[many.begun++ % CLIENTS], method, path, NULL, json ? type : NULL, json,
              json ? strlen(json) : 0, one_answered, NULL);
}

static void many_wait(void)
{
    many.idle = many.pending == 0;
    assert_int_equal(loop_run_until(h->loop, &many.idle, 20000), 0);
}

static void many_end(void)
{
    for (size_t i = 0; i < CLIENTS; i++) {
        http_client_free(many.clients[i]);
    }
}

/* Fails when the counters of a quota are not the sums over the objects. */
static void check_counters(struct quota *q)
{
    struct quotas *s = h->api->quotas;
    quota_total was[QUOTA_MAX_ITEMS];
    quota_count(s, q);
    memcpy(was, q->used, sizeof was);
    q->counted = false;
    quota_count(s, q);
    for (size_t i = 0; i < q->spec->n; i++) {
        if (was[i] != q->used[i] || q->reserved[i] != 0) {
            fail_msg("%s %s: %lld instead of %lld, %lld reserved", q->key, q->spec->items[i].name,
                     (long long) was[i], (long long) q->used[i], (long long) q->reserved[i]);
        }
    }
}

static void check_all(struct smap *all)
{
    struct smap_entry *e;
    SMAP_FOREACH (e, all) {
        check_counters(e->value);
    }
}

static void fifty_creations_at_once_end_in_the_number_of_the_quota(void **state)
{
    make_quota("'pods': '2'");
    many_begin();
    for (unsigned i = 0; i < 50; i++) {
        CLEANUP_FREE char *body = xasprintf("{'metadata': {'name': 'p%u'}, 'spec': {'containers': "
                                            "[{'name': 'c', 'image': 'i'}]}}",
                                            i);
        many_send("POST", NS("red") "/pods", body);
    }
    many_wait();
    assert_int_equal(many.statuses[201], 2);
    assert_int_equal(many.statuses[403], 48);
    many_end();
    expect_status(QUOTA, "used pods", "2");
}

static void writes_that_fail_take_no_room_from_others(void **state)
{
    make_quota("'secrets': '2'");
    expect("POST", NS("red") "/secrets", "{'metadata': {'name': 's'}}", 201);
    many_begin();
    for (unsigned i = 0; i < 40; i++) {
        many_send("POST", NS("red") "/secrets",
                  i == 32 ? "{'metadata': {'name': 't'}}" : "{'metadata': {'name': 's'}}");
    }
    many_wait();
    many_end();
    /* The others exist already; those that come when there is no room are refused for that. */
    assert_int_equal(many.statuses[201], 1);
    assert_int_equal(many.statuses[409] + many.statuses[403], 39);
    check_all(&h->api->quotas->own);
}

static void a_quota_that_comes_amid_writes_counts_them(void **state)
{
    for (unsigned round = 0; round < 10; round++) {
        many_begin();
        for (unsigned i = 0; i < 30; i++) {
            if (i == 11) {
                many_send("POST", NS("red") "/resourcequotas",
                          "{'metadata': {'name': 'q'}, 'spec': {'hard': {'secrets': '20'}}}");
            }
            if (i == 22) {
                many_send("PATCH", QUOTA, "{'spec': {'hard': {'secrets': '21'}}}");
            }
            CLEANUP_FREE char *body = xasprintf("{'metadata': {'name': 's%u'}}", i);
            many_send("POST", NS("red") "/secrets", body);
        }
        many_wait();
        many_end();
        CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", NS("red") "/secrets", NULL, 200);
        size_t n = json_count(json_get(a.body, "items"));
        CLEANUP_FREE char *text = xasprintf("%zu", n);
        expect_status(QUOTA, "used secrets", text);
        check_all(&h->api->quotas->own);
        expect("PATCH", QUOTA, "{'spec': {'hard': {'secrets': '21'}}}", 200);
        /* Those that were decided before the quota was there may be more than it allows. */
        for (; n < 21; n++) {
            expect("POST", NS("red") "/secrets", "{'metadata': {'generateName': 's'}}", 201);
        }
        expect_refusal("POST", NS("red") "/secrets", "{'metadata': {'name': 'more'}}",
                       "limited: secrets=21");
        expect("DELETE", NS("red") "/secrets", NULL, 200);
        expect("DELETE", QUOTA, NULL, 200);
    }
}

/* ---- random histories ---- */

static const char *const spaces[] = {"red", "blue"};

/* 'revives': nodes report that a pod that had ended runs, which no quota refuses. */
static void random_write(bool revives)
{
    const char *ns = PICK(spaces);
    unsigned name = below(6);
    CLEANUP_FREE char *pods = xasprintf("/api/v1/namespaces/%s/pods", ns);
    CLEANUP_FREE char *pod = xasprintf("%s/p%u", pods, name);
    CLEANUP_FREE char *gone = xasprintf("%s?gracePeriodSeconds=0", pod);
    CLEANUP_FREE char *status = xasprintf("%s/status", pod);
    CLEANUP_FREE char *secrets = xasprintf("/api/v1/namespaces/%s/secrets", ns);
    CLEANUP_FREE char *secret = xasprintf("%s/s%u", secrets, name);
    CLEANUP_FREE char *dry = xasprintf("%s?dryRun=All", pods);
    CLEANUP_FREE char *body =
        xasprintf("{'metadata': {'name': 'p%u'}, 'spec': {'containers': [{'name': 'c', 'image': "
                  "'i', 'resources': {'requests': {'cpu': '%um'}}}]%s}}",
                  name, 100 * (1 + below(5)), chance(30) ? ", 'activeDeadlineSeconds': 5000" : "");
    CLEANUP_FREE char *named = xasprintf("{'metadata': {'name': 's%u'}}", name);
    switch (below(10)) {
    case 0:
    case 1:
    case 2:
        many_send("POST", pods, body);
        break;
    case 3:
        many_send("DELETE", gone, NULL);
        break;
    case 4:
        many_send("PATCH", status,
                  revives && chance(50) ? "{'status': {'phase': 'Running'}}"
                                        : "{'status': {'phase': 'Failed'}}");
        break;
    case 5:
        many_send("PATCH", pod, "{'spec': {'activeDeadlineSeconds': 4000}}");
        break;
    case 6:
        many_send("POST", secrets, named);
        break;
    case 7:
        many_send("DELETE", secret, NULL);
        break;
    case 8:
        many_send("POST", dry, body);
        break;
    default:
        many_send("PATCH", pod, "{'metadata': {'labels': {'x': 'y'}}}");
        break;
    }
}

/* A change of what is bounded. */
static void random_bound(void)
{
    const char *ns = PICK(spaces);
    CLEANUP_FREE char *path = xasprintf("/api/v1/namespaces/%s", ns);
    CLEANUP_FREE char *quota = xasprintf("%s/resourcequotas/q", path);
    CLEANUP_FREE char *quotas = xasprintf("%s/resourcequotas", path);
    CLEANUP_FREE char *hard = xasprintf("{'spec': {'hard': {'pods': '%u'}}}", below(5));
    CLEANUP_FREE char *total =
        xasprintf("{'spec': {'quota': {'hard': {'cpu': '%u'}}}}", 1 + below(3));
    switch (below(5)) {
    case 0:
        many_send("PATCH", quota, hard);
        break;
    case 1:
        many_send("PATCH", path, chance(50) ? JOINS : LEAVES);
        break;
    case 2:
        many_send("PATCH", CLUSTER "/c", total);
        break;
    case 3:
        many_send("DELETE", quota, NULL);
        break;
    default:
        many_send("POST", quotas,
                  "{'metadata': {'name': 'q'}, 'spec': {'hard': {'pods': '3', 'cpu': '1', "
                  "'secrets': '2'}}}");
        break;
    }
}

/* What is over its bound in the quotas. */
static quota_total excess(struct smap *all)
{
    struct smap_entry *e;
    quota_total sum = 0;
    SMAP_FOREACH (e, all) {
        const struct quota *q = e->value;
        for (size_t i = 0; i < q->spec->n; i++) {
            quota_total over = q->used[i] - q->spec->items[i].most;
            sum += MAX(over, (quota_total) 0);
        }
    }
    return sum;
}

static void counters_agree_after_any_history(void **state)
{
    uint64_t rounds = rng_setting("QUOTA_ROUNDS", 25);
    uint64_t seed = rng_first_seed("QUOTA_SEED", rounds, "quota histories");
    struct quotas *s = h->api->quotas;
    free(make_namespace(h, "blue"));
    make_cluster_quota("'cpu': '2', 'secrets': '3'");
    for (uint64_t r = 0; r < rounds; r++) {
        rng_start(seed + r);
        many_begin();
        for (unsigned i = 0; i < 40; i++) {
            random_write(true);
            if (chance(10)) {
                random_bound();
            }
            if (chance(15)) {
                many_wait();
                check_all(&s->own);
                check_all(&s->cluster);
            }
        }
        many_wait();
        many_end();
        check_all(&s->own);
        check_all(&s->cluster);
        assert_true(list_is_empty(&s->flights));
    }
}

static void writes_alone_never_exceed(void **state)
{
    uint64_t rounds = rng_setting("QUOTA_ROUNDS", 25);
    uint64_t seed = rng_first_seed("QUOTA_SEED", rounds, "quota histories with fixed bounds");
    struct quotas *s = h->api->quotas;
    free(make_namespace(h, "blue"));
    expect("PATCH", NS("red"), JOINS, 200);
    expect("PATCH", NS("blue"), JOINS, 200);
    unsigned refused = 0;
    make_cluster_quota("'cpu': '1200m', 'count/secrets': '3'");
    make_quota("'count/pods': '3', 'count/secrets': '2'");
    for (uint64_t r = 0; r < rounds; r++) {
        rng_start(seed + r);
        many_begin();
        for (unsigned i = 0; i < 40; i++) {
            random_write(false);
            if (chance(15)) {
                many_wait();
                assert_int_equal(excess(&s->own) + excess(&s->cluster), 0);
            }
        }
        many_wait();
        many_end();
        assert_int_equal(excess(&s->own) + excess(&s->cluster), 0);
        refused += many.statuses[403];
    }
    assert_int_not_equal(refused, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_quota_bounds_and_a_deletion_frees_at_once),
        TEST(writes_that_are_not_done_charge_nothing),
        TEST(an_update_charges_the_difference),
        TEST(every_way_to_create_is_counted),
        TEST(custom_resources_are_counted),
        TEST(a_quota_counts_what_was_there_before),
        TEST(quotas_of_compute_ask_for_amounts_which_limits_give),
        TEST(claims_keep_to_the_limits),
        TEST(limits_of_images_are_stored_with_a_warning),
        TEST(a_cluster_quota_bounds_projects_together),
        TEST(either_quota_refuses_and_then_none_is_charged),
        TEST(a_selector_must_select),
        TEST(a_written_status_is_replaced),
        TEST(fifty_creations_at_once_end_in_the_number_of_the_quota),
        TEST(writes_that_fail_take_no_room_from_others),
        TEST(a_quota_that_comes_amid_writes_counts_them),
        TEST(counters_agree_after_any_history),
        TEST(writes_alone_never_exceed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
