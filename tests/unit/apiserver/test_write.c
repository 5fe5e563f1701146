/* SPDX-License-Identifier: Apache-2.0 */
/* Create, update, patch and delete over HTTP, each answer as Kubernetes gives it. */
#include "harness.h"

#include "base/timeutil.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define NETS "/apis/network.openshift.io/v1/netnamespaces"
#define SUBNETS "/apis/network.openshift.io/v1/hostsubnets"
#define PODS "/api/v1/namespaces/default/pods"

#define NODE1                                                                         \
    "{\"metadata\":{\"name\":\"node1\"},\"host\":\"node1\",\"hostIP\":\"192.0.2.1\"," \
    "\"subnet\":\"10.128.0.0/23\"}"

static int set_up(void **state)
{
    *state = harness_new(NULL, NULL);
    return 0;
}

static int tear_down(void **state)
{
    harness_free(*state);
    return 0;
}

/* ---- every refusal ---- */

struct refusal {
    const char *method, *path, *type, *body;
    int status;
    const char *reason;
    const char *says; /* Part of the message; NULL: any. */
};

static const struct refusal refusals[] = {
    /* 400 */
    {"POST", NETS, NULL, "{", 400, "BadRequest", "line 1"},
    {"POST", NETS, NULL, "[]", 400, "BadRequest", "not an object"},
    {"POST", NETS, NULL, "{\"netname\":\"a\",\"netname\":\"b\"}", 400, "BadRequest", "netname"},
    {"POST", NETS, NULL, "{\"kind\":\"HostSubnet\"}", 400, "BadRequest", "HostSubnet"},
    {"POST", NETS, NULL, "{\"apiVersion\":\"v1\"}", 400, "BadRequest", "network.openshift.io/v1"},
    {"POST", NETS, NULL, "{\"metadata\":[]}", 400, "BadRequest", "metadata"},
    {"POST", NETS, NULL, "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"5\"}}", 400,
     "BadRequest", "resourceVersion should not be set"},
    {"POST", PODS, NULL, "{\"metadata\":{\"name\":\"a\",\"namespace\":\"red\"}}", 400, "BadRequest",
     "namespace of the provided object does not match"},
    {"PUT", SUBNETS "/node1", NULL, "{\"metadata\":{\"name\":\"node2\"}}", 400, "BadRequest",
     "does not match the name on the URL"},
    {"POST", NETS "?dryRun=Some", NULL, "{}", 422, "Invalid", "dryRun"},
    {"GET", NETS "?limit=x", NULL, NULL, 400, "BadRequest", "limit"},
    {"GET", NETS "?resourceVersion=x", NULL, NULL, 400, "BadRequest", "resourceVersion"},
    {"GET", NETS "?resourceVersion=-1", NULL, NULL, 400, "BadRequest", "resourceVersion"},
    {"GET", NETS "?labelSelector=a%20in", NULL, NULL, 400, "BadRequest", "unable to parse"},
    {"GET", NETS "?fieldSelector=spec.x%3D1", NULL, NULL, 400, "BadRequest",
     "field label not supported: spec.x"},
    {"GET", NETS "?continue=zzz", NULL, NULL, 400, "BadRequest", "continue key is not valid"},
    {"GET", NETS "?resourceVersionMatch=Exact", NULL, NULL, 400, "BadRequest",
     "forbidden unless resourceVersion is provided"},
    {"GET", NETS "?resourceVersionMatch=Exact&resourceVersion=0", NULL, NULL, 400, "BadRequest",
     NULL},
    {"GET", NETS "?resourceVersionMatch=Around&resourceVersion=1", NULL, NULL, 400, "BadRequest",
     NULL},
    {"GET", NETS "?watch=1&timeoutSeconds=soon", NULL, NULL, 400, "BadRequest", "timeoutSeconds"},
    {"GET", NETS "?watch=1&sendInitialEvents=true", NULL, NULL, 400, "BadRequest", "NotOlderThan"},
    {"PATCH", SUBNETS "/node1", "application/json-patch+json", "{}", 400, "BadRequest", NULL},
    {"PATCH", SUBNETS "/node1", "application/merge-patch+json", "[]", 400, "BadRequest", NULL},
    {"PATCH", SUBNETS "/node1", "application/merge-patch+json", "{\"kind\":\"Pod\"}", 400,
     "BadRequest", "Pod"},
    {"PATCH", SUBNETS "/node1", "application/merge-patch+json", "{\"metadata\":{\"name\":\"x\"}}",
     400, "BadRequest", NULL},
    {"DELETE", SUBNETS "/node1", NULL, "{\"kind\":\"Pod\"}", 400, "BadRequest", "DeleteOptions"},
    {"DELETE", SUBNETS "/node1", NULL, "[]", 400, "BadRequest", NULL},
    /* 403 is below, with namespaces. 404 */
    {"GET", SUBNETS "/none", NULL, NULL, 404, "NotFound",
     "hostsubnets.network.openshift.io \"none\" not found"},
    {"PUT", SUBNETS "/none", NULL, "{\"metadata\":{\"name\":\"none\"}}", 404, "NotFound", NULL},
    {"PATCH", SUBNETS "/none", "application/merge-patch+json", "{}", 404, "NotFound", NULL},
    {"DELETE", SUBNETS "/none", NULL, NULL, 404, "NotFound", NULL},
    {"GET", PODS "/none", NULL, NULL, 404, "NotFound", "pods \"none\" not found"},
    {"POST", "/api/v1/namespaces/none/pods", NULL, "{\"metadata\":{\"name\":\"a\"}}", 404,
     "NotFound", "namespaces \"none\" not found"},
    {"GET", "/api/v1/gadgets", NULL, NULL, 404, "NotFound", "could not find the requested"},
    {"GET", "/apis/network.openshift.io/v2/hostsubnets", NULL, NULL, 404, "NotFound", NULL},
    {"GET", "/apis/novel/v1/deployments", NULL, NULL, 404, "NotFound", NULL},
    {"GET", "/apis/novel", NULL, NULL, 404, "NotFound", NULL},
    {"GET", "/apis/novel/v1", NULL, NULL, 404, "NotFound", NULL},
    {"GET", "/nothing", NULL, NULL, 404, "NotFound", NULL},
    {"GET", "/api/v1/pods/web", NULL, NULL, 404, "NotFound", NULL},
    {"GET", "/api/v1/namespaces/default/nodes", NULL, NULL, 404, "NotFound", NULL},
    {"GET", SUBNETS "/node1/status", NULL, NULL, 404, "NotFound", NULL},
    {"GET", PODS "/a/log", NULL, NULL, 404, "NotFound", NULL},
    {"GET", PODS "/a/status/x", NULL, NULL, 404, "NotFound", NULL},
    {"GET", "/openapi/v3/apis/novel/v1", NULL, NULL, 404, "NotFound", NULL},
    /* 405 */
    {"POST", SUBNETS "/node1", NULL, "{}", 405, "MethodNotAllowed", NULL},
    {"PUT", SUBNETS, NULL, "{}", 405, "MethodNotAllowed", NULL},
    {"PATCH", SUBNETS, "application/merge-patch+json", "{}", 405, "MethodNotAllowed", NULL},
    {"POST", "/api/v1/pods", NULL, "{}", 405, "MethodNotAllowed", NULL},
    {"DELETE", "/api/v1/pods", NULL, NULL, 405, "MethodNotAllowed", NULL},
    {"DELETE", "/api/v1/namespaces", NULL, NULL, 405, "MethodNotAllowed", NULL},
    {"DELETE", PODS "/a/status", NULL, NULL, 405, "MethodNotAllowed", NULL},
    {"GET", "/api/v1/namespaces/default/finalize", NULL, NULL, 405, "MethodNotAllowed", NULL},
    {"POST", "/apis/network.openshift.io/v1", NULL, "{}", 405, "MethodNotAllowed", NULL},
    {"POST", "/version", NULL, "{}", 405, "MethodNotAllowed", NULL},
    /* 409 */
    {"POST", SUBNETS, NULL, NODE1, 409, "AlreadyExists",
     "hostsubnets.network.openshift.io \"node1\" already exists"},
    {"POST", SUBNETS "?dryRun=All", NULL, NODE1, 409, "AlreadyExists", NULL},
    {"PUT", SUBNETS "/node1", NULL, "{\"metadata\":{\"name\":\"node1\",\"resourceVersion\":\"1\"}}",
     409, "Conflict", "the object has been modified"},
    {"PUT", SUBNETS "/node1", NULL, "{\"metadata\":{\"name\":\"node1\",\"uid\":\"u\"}}", 409,
     "Conflict", "UID in precondition: u"},
    {"PATCH", SUBNETS "/node1", "application/merge-patch+json",
     "{\"metadata\":{\"resourceVersion\":\"1\"}}", 409, "Conflict", NULL},
    {"DELETE", SUBNETS "/node1", NULL, "{\"preconditions\":{\"uid\":\"u\"}}", 409, "Conflict",
     "UID in the precondition (u)"},
    {"DELETE", SUBNETS "/node1", NULL, "{\"preconditions\":{\"resourceVersion\":\"1\"}}", 409,
     "Conflict", "ResourceVersion in the precondition (1)"},
    /* 415 */
    {"POST", NETS, "text/plain", "{}", 415, "UnsupportedMediaType", "application/json"},
    {"PUT", SUBNETS "/node1", "application/cbor", "{}", 415, "UnsupportedMediaType", NULL},
    {"PATCH", SUBNETS "/node1", "application/json", "{}", 415, "UnsupportedMediaType",
     "application/merge-patch+json"},
    {"PATCH", SUBNETS "/node1", "application/apply-patch+yaml", "{}", 422, "Invalid",
     "fieldManager"},
    {"PATCH", SUBNETS "/node1?fieldManager=m", "application/apply-patch+yaml", "{\"metadata\":{}}",
     400, "BadRequest",
     "Incorrect version specified in apply patch. Specified patch version: , expected: "
     "network.openshift.io/v1"},
    {"PATCH", SUBNETS "/new?fieldManager=m", "application/apply-patch+yaml",
     "{\"apiVersion\":\"v1\",\"kind\":\"HostSubnet\"}", 400, "BadRequest",
     "Specified patch version: v1, expected: network.openshift.io/v1"},
    {"PATCH", SUBNETS "/node1?fieldManager=m", "application/apply-patch+yaml",
     "{\"apiVersion\":\"network.openshift.io/v1\"}", 400, "BadRequest",
     "no corresponding type for network.openshift.io/v1, Kind="},
    {"PATCH", PODS "/a?fieldManager=m", "application/apply-patch+yaml", "{\"apiVersion\":\"v1\"}",
     400, "BadRequest",
     "failed to create typed patch object (default/a; /v1, Kind=): no corresponding type for /v1, "
     "Kind="},
    {"DELETE", SUBNETS "/node1", "text/plain", "{}", 415, "UnsupportedMediaType", NULL},
    {"POST", NETS, "application/vnd.kubernetes.protobuf", "k8s", 400, "BadRequest", "protobuf"},
    /* 422 */
    {"POST", SUBNETS, NULL,
     "{\"metadata\":{\"name\":\"n\"},\"host\":\"n\",\"subnet\":\"10.1.0.0/24\"}", 422, "Invalid",
     "HostSubnet.network.openshift.io \"n\" is invalid: hostIP: Required value"},
    {"POST", SUBNETS, NULL, "{}", 422, "Invalid", "is invalid: ["},
    {"POST", PODS, NULL, "{\"metadata\":{\"name\":\"A\"}}", 422, "Invalid", "Pod \"A\" is invalid"},
    {"PUT", SUBNETS "/node1", NULL,
     "{\"metadata\":{\"name\":\"node1\"},\"host\":\"other\",\"hostIP\":\"192.0.2.1\",\"subnet\":"
     "\"10.128.0.0/23\"}",
     422, "Invalid", "host: Invalid value: \"other\": field is immutable"},
    {"PATCH", SUBNETS "/node1", "application/merge-patch+json", "{\"hostIP\":5}", 422, "Invalid",
     "hostIP"},
    {"PATCH", SUBNETS "/node1", "application/json-patch+json",
     "[{\"op\":\"test\",\"path\":\"/host\",\"value\":\"x\"}]", 422, "Invalid", "test failed"},
    {"PATCH", SUBNETS "/node1", "application/json-patch+json",
     "[{\"op\":\"remove\",\"path\":\"/none\"}]", 422, "Invalid", "does not exist"},
    {"DELETE", SUBNETS "/node1?propagationPolicy=Sideways", NULL, NULL, 422, "Invalid",
     "propagationPolicy"},
    /* 504 */
    {"GET", SUBNETS "?resourceVersion=999999", NULL, NULL, 504, "Timeout",
     "Too large resource version: 999999"},
    {"GET", SUBNETS "/node1?resourceVersion=999999", NULL, NULL, 504, "Timeout", NULL},
    {"GET", SUBNETS "?watch=1&resourceVersion=999999", NULL, NULL, 504, "Timeout", NULL},
};

static void each_refusal_is_a_status(void **state)
{
    struct harness *h = *state;
    CLEANUP_ANSWER struct answer made = ask_ok(h, "POST", SUBNETS, NODE1, 201);
    for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
        const struct refusal *r = &refusals[i];
        CLEANUP_ANSWER struct answer a = ask_full(h, r->method, r->path, NULL, r->type, r->body);
        const char *what = r->body ? r->body : "";
        if (a.status != r->status) {
            fail_msg("%s %s %s: %d: %s", r->method, r->path, what, a.status, a.text);
        }
        if (!streq(at(&a, "kind"), "Status") || !streq(at(&a, "status"), "Failure") ||
            !streq(at(&a, "reason"), r->reason) ||
            json_get_int_or(json_get(a.body, "code"), 0) != r->status) {
            fail_msg("%s %s %s: %s", r->method, r->path, what, a.text);
        }
        if (r->says && !strstr(at(&a, "message"), r->says)) {
            fail_msg("%s %s %s: \"%s\" does not say \"%s\"", r->method, r->path, what,
                     at(&a, "message"), r->says);
        }
    }
}

static void details_name_the_object_and_the_causes(void **state)
{
    struct harness *h = *state;
    CLEANUP_ANSWER struct answer missing = ask(h, "GET", SUBNETS "/x", NULL);
    assert_string_equal(at(&missing, "details.name"), "x");
    assert_string_equal(at(&missing, "details.group"), "network.openshift.io");
    assert_string_equal(at(&missing, "details.kind"), "hostsubnets");
    CLEANUP_ANSWER
    struct answer bad = ask(h, "POST", NETS, "{\"metadata\":{\"name\":\"x\"},\"netid\":-1}");
    assert_string_equal(at(&bad, "details.kind"), "NetNamespace");
    assert_int_equal(json_count(json_path(bad.body, "details", "causes", NULL)), 2);
    assert_string_equal(at(&bad, "details.causes.0.field"), "netname");
    assert_string_equal(at(&bad, "details.causes.0.reason"), "FieldValueRequired");
    assert_string_equal(at(&bad, "details.causes.1.field"), "netid");
    assert_string_equal(at(&bad, "details.causes.1.reason"), "FieldValueInvalid");
    assert_string_equal(at(&bad, "message"),
                        "NetNamespace.network.openshift.io \"x\" is invalid: [netname: Required "
                        "value, netid: Invalid value: -1: must be between 0 and 16777215, "
                        "inclusive]");
}

/* ---- what is made of an object ---- */

static void a_new_object_gets_what_the_server_decides(void **state)
{
    struct harness *h = *state;
    CLEANUP_ANSWER struct answer a =
        ask_ok(h, "POST", NETS,
               "{\"metadata\":{\"name\":\"red\",\"uid\":\"mine\",\"creationTimestamp\":"
               "\"1999-01-01T00:00:00Z\",\"generation\":7,\"deletionTimestamp\":"
               "\"1999-01-01T00:00:00Z\",\"managedFields\":[{}],\"selfLink\":\"/x\",\"labels\":"
               "null},\"netname\":\"red\",\"netid\":11,\"unknown\":{\"dropped\":[1.50,1e400]}}",
               201);
    int64_t created;
    assert_string_equal(at(&a, "kind"), "NetNamespace");
    assert_string_equal(at(&a, "apiVersion"), "network.openshift.io/v1");
    assert_int_equal(strlen(at(&a, "metadata.uid")), 36);
    assert_int_equal(time_parse(at(&a, "metadata.creationTimestamp"), &created), 0);
    assert_true(time_wall_ms() - created < 60000);
    assert_string_equal(at(&a, "metadata.generation"), "1");
    assert_string_not_equal(at(&a, "metadata.resourceVersion"), "");
    assert_null(json_path(a.body, "metadata", "deletionTimestamp", NULL));
    assert_string_equal(at(&a, "metadata.managedFields.0.operation"), "Update");
    assert_null(json_path(a.body, "metadata", "selfLink", NULL));
    assert_null(json_path(a.body, "metadata", "labels", NULL));
    assert_null(json_get(a.body, "unknown"));
    CLEANUP_ANSWER struct answer b = ask_ok(h, "GET", NETS "/red", NULL, 200);
    assert_true(json_equal(a.body, b.body));
}

#define CONTAINER "\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]"

static void names_are_generated(void **state)
{
    struct harness *h = *state;
    const char *body = "{\"metadata\":{\"generateName\":\"web-\"},\"spec\":{" CONTAINER "}}";
    CLEANUP_ANSWER struct answer a = ask_ok(h, "POST", PODS, body, 201);
    CLEANUP_ANSWER struct answer b = ask_ok(h, "POST", PODS, body, 201);
    assert_int_equal(strlen(at(&a, "metadata.name")), 9);
    assert_memory_equal(at(&a, "metadata.name"), "web-", 4);
    assert_string_not_equal(at(&a, "metadata.name"), at(&b, "metadata.name"));
    assert_string_equal(at(&a, "metadata.namespace"), "default");
    /* Never longer than a name may be. */
    CLEANUP_FREE char *longest =
        xasprintf("{\"metadata\":{\"generateName\":\"%0100d-\"},\"spec\":{" CONTAINER "}}", 7);
    CLEANUP_ANSWER struct answer c = ask_ok(h, "POST", PODS, longest, 201);
    assert_int_equal(strlen(at(&c, "metadata.name")), 63);
}

static void bodies_may_be_yaml(void **state)
{
    struct harness *h = *state;
    CLEANUP_ANSWER struct answer a =
        ask_full(h, "POST", NETS, NULL, "application/yaml",
                 "metadata:\n  name: red\nnetname: red\nnetid: 12 # a number\n");
    assert_int_equal(a.status, 201);
    CLEANUP_ANSWER struct answer b =
        ask_full(h, "GET", NETS "/red", "application/yaml", NULL, NULL);
    assert_string_equal(b.content_type, "application/yaml");
    assert_non_null(strstr(b.text, "netid: 12\n"));
}

static void dry_runs_change_nothing(void **state)
{
    struct harness *h = *state;
    CLEANUP_ANSWER struct answer a = ask_ok(h, "POST", SUBNETS "?dryRun=All", NODE1, 201);
    assert_string_equal(at(&a, "host"), "node1");
    CLEANUP_ANSWER struct answer none = ask_ok(h, "GET", SUBNETS "/node1", NULL, 404);
    CLEANUP_ANSWER struct answer made = ask_ok(h, "POST", SUBNETS, NODE1, 201);
    uint64_t before = apiserver_revision(h->api);
    CLEANUP_ANSWER struct answer b =
        ask_full(h, "PATCH", SUBNETS "/node1?dryRun=All", NULL, "application/merge-patch+json",
                 "{\"hostIP\":\"192.0.2.9\"}");
    assert_int_equal(b.status, 200);
    assert_string_equal(at(&b, "hostIP"), "192.0.2.9");
    CLEANUP_ANSWER struct answer c = ask_ok(h, "DELETE", SUBNETS "/node1?dryRun=All", NULL, 200);
    CLEANUP_ANSWER struct answer d =
        ask_ok(h, "DELETE", SUBNETS "/node1", "{\"dryRun\":[\"All\"]}", 200);
    assert_int_equal(apiserver_revision(h->api), before);
    CLEANUP_ANSWER struct answer e = ask_ok(h, "GET", SUBNETS "/node1", NULL, 200);
    assert_string_equal(at(&e, "hostIP"), "192.0.2.1");
}

/* ---- update ---- */

static void an_update_keeps_what_clients_cannot_change(void **state)
{
    struct harness *h = *state;
    CLEANUP_ANSWER struct answer a = ask_ok(h, "POST", SUBNETS, NODE1, 201);
    CLEANUP_ANSWER struct answer b =
        ask_ok(h, "PUT", SUBNETS "/node1",
               "{\"metadata\":{\"creationTimestamp\":null,\"generation\":99},\"host\":\"node1\","
               "\"hostIP\":\"192.0.2.2\",\"subnet\":\"10.128.0.0/23\"}",
               200);
    assert_string_equal(at(&b, "hostIP"), "192.0.2.2");
    assert_string_equal(at(&b, "metadata.uid"), at(&a, "metadata.uid"));
    assert_string_equal(at(&b, "metadata.creationTimestamp"), at(&a, "metadata.creationTimestamp"));
    assert_string_equal(at(&b, "metadata.generation"), "2");
    assert_string_not_equal(at(&b, "metadata.resourceVersion"), at(&a, "metadata.resourceVersion"));
}

static void an_update_without_a_change_is_no_change(void **state)
{
    struct harness *h = *state;
    CLEANUP_ANSWER struct answer a = ask_ok(h, "POST", SUBNETS, NODE1, 201);
    CLEANUP_ANSWER struct answer b = ask_ok(h, "PUT", SUBNETS "/node1", a.text, 200);
    CLEANUP_ANSWER struct answer c =
        ask_full(h, "PATCH", SUBNETS "/node1", NULL, "application/merge-patch+json", "{}");
    assert_string_equal(at(&b, "metadata.resourceVersion"), at(&a, "metadata.resourceVersion"));
    assert_string_equal(at(&c, "metadata.resourceVersion"), at(&a, "metadata.resourceVersion"));
}

static void only_labels_changed_is_no_new_generation(void **state)
{
    struct harness *h = *state;
    CLEANUP_ANSWER struct answer a = ask_ok(h, "POST", SUBNETS, NODE1, 201);
    CLEANUP_ANSWER struct answer b =
        ask_full(h, "PATCH", SUBNETS "/node1", NULL, "application/merge-patch+json",
                 "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}");
    assert_string_equal(at(&b, "metadata.generation"), "1");
    assert_string_equal(at(&b, "metadata.labels.a"), "b");
}

static void the_second_of_two_updates_from_one_version_conflicts(void **state)
{
    struct harness *h = *state;
    CLEANUP_ANSWER struct answer a = ask_ok(h, "POST", SUBNETS, NODE1, 201);
    json_set_string(a.body, "hostIP", "192.0.2.2");
    CLEANUP_FREE char *first = json_to_text(a.body);
    json_set_string(a.body, "hostIP", "192.0.2.3");
    CLEANUP_FREE char *second = json_to_text(a.body);
    CLEANUP_ANSWER struct answer b = ask_ok(h, "PUT", SUBNETS "/node1", first, 200);
    CLEANUP_ANSWER struct answer c = ask_ok(h, "PUT", SUBNETS "/node1", second, 409);
    assert_string_equal(at(&c, "details.kind"), "hostsubnets");
    CLEANUP_ANSWER struct answer d = ask_ok(h, "GET", SUBNETS "/node1", NULL, 200);
    assert_string_equal(at(&d, "hostIP"), "192.0.2.2");
}

struct race {
    size_t pending, ok, conflict, other;
    bool done;
};

static void raced(void *ctx, const struct http_result *r)
{
    struct race *race = ctx;
    if (r->status == 200) {
        race->ok++;
    } else if (r->status == 409) {
        race->conflict++;
    } else {
        race->other++;
    }
    race->done = --race->pending == 0;
}

static void concurrent_patches_all_succeed(void **state)
{
    struct harness *h = *state;
    struct race race = {.pending = 12};
    CLEANUP_ANSWER struct answer a = ask_ok(h, "POST", SUBNETS, NODE1, 201);
    for (int i = 0; i < 12; i++) {
        CLEANUP_FREE char *body = xasprintf("{\"metadata\":{\"labels\":{\"l%d\":\"x\"}}}", i);
        http_call(h->client, "PATCH", SUBNETS "/node1", NULL, "application/merge-patch+json", body,
                  strlen(body), raced, &race);
    }
    assert_int_equal(loop_run_until(h->loop, &race.done, 20000), 0);
    assert_int_equal(race.ok, 12);
    CLEANUP_ANSWER struct answer b = ask_ok(h, "GET", SUBNETS "/node1", NULL, 200);
    assert_int_equal(json_count(json_path(b.body, "metadata", "labels", NULL)), 12);
}

static void of_concurrent_updates_from_one_version_one_wins(void **state)
{
    struct harness *h = *state;
    struct race race = {.pending = 8};
    CLEANUP_ANSWER struct answer a = ask_ok(h, "POST", SUBNETS, NODE1, 201);
    for (int i = 0; i < 8; i++) {
        json_set(a.body, "hostIP", json_stringf("192.0.2.%d", 10 + i));
        CLEANUP_FREE char *body = json_to_text(a.body);
        http_call(h->client, "PUT", SUBNETS "/node1", NULL, "application/json", body, strlen(body),
                  raced, &race);
    }
    assert_int_equal(loop_run_until(h->loop, &race.done, 20000), 0);
    assert_int_equal(race.ok, 1);
    assert_int_equal(race.conflict, 7);
}

static void of_concurrent_creations_one_wins(void **state)
{
    struct harness *h = *state;
    struct race race = {.pending = 8};
    for (int i = 0; i < 8; i++) {
        http_call(h->client, "POST", SUBNETS, NULL, "application/json", NODE1, strlen(NODE1), raced,
                  &race);
    }
    assert_int_equal(loop_run_until(h->loop, &race.done, 20000), 0);
    assert_int_equal(race.conflict, 7);
    assert_int_equal(race.other, 1); /* 201 */
}

static void status_and_the_rest_are_separate(void **state)
{
    struct harness *h = *state;
    CLEANUP_ANSWER struct answer a = ask_ok(
        h, "POST", PODS,
        "{\"metadata\":{\"name\":\"web\"},\"spec\":{\"nodeName\":\"n\"," CONTAINER "},\"status\":{"
        "\"phase\":\"Running\"}}",
        201);
    assert_string_equal(at(&a, "status.phase"), "Pending");
    CLEANUP_ANSWER struct answer b = ask_ok(
        h, "PUT", PODS "/web",
        "{\"spec\":{\"nodeName\":\"n\",\"activeDeadlineSeconds\":9," CONTAINER "},\"status\":{"
        "\"phase\":\"Running\"}}",
        200);
    assert_string_equal(at(&b, "status.phase"), "Pending");
    assert_int_equal(json_get_int_or(json_path(b.body, "spec", "activeDeadlineSeconds", NULL), 0),
                     9);
    CLEANUP_ANSWER struct answer c =
        ask_ok(h, "PUT", PODS "/web/status",
               "{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{\"nodeName\":\"other\"},"
               "\"status\":{\"phase\":\"Running\",\"podIP\":\"10.128.0.2\"}}",
               200);
    assert_string_equal(at(&c, "status.podIP"), "10.128.0.2");
    assert_string_equal(at(&c, "spec.nodeName"), "n");
    assert_string_equal(at(&c, "metadata.labels.a"), "");
    assert_string_equal(at(&c, "metadata.generation"), "");
    CLEANUP_ANSWER struct answer d =
        ask_full(h, "PATCH", PODS "/web/status", NULL, "application/strategic-merge-patch+json",
                 "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}");
    assert_int_equal(d.status, 200);
    assert_string_equal(at(&d, "status.phase"), "Running");
    CLEANUP_ANSWER struct answer e = ask_ok(h, "GET", PODS "/web/status", NULL, 200);
    assert_string_equal(at(&e, "status.conditions.0.type"), "Ready");
    CLEANUP_ANSWER struct answer f =
        ask_ok(h, "PUT", PODS "/web/status", "{\"status\":{\"podIP\":\"x\"}}", 422);
    assert_string_equal(at(&f, "details.causes.0.field"), "status.podIP");
}

static void patches_of_all_three_types_apply(void **state)
{
    struct harness *h = *state;
    CLEANUP_ANSWER struct answer a = ask_ok(h, "POST", SUBNETS, NODE1, 201);
    CLEANUP_ANSWER struct answer b =
        ask_full(h, "PATCH", SUBNETS "/node1", NULL, "application/json-patch+json",
                 "[{\"op\":\"add\",\"path\":\"/egressIPs\",\"value\":[\"192.0.2.8\"]}]");
    assert_string_equal(at(&b, "egressIPs.0"), "192.0.2.8");
    CLEANUP_ANSWER struct answer c =
        ask_full(h, "PATCH", SUBNETS "/node1", NULL, "application/merge-patch+json; charset=utf-8",
                 "{\"egressIPs\":null}");
    assert_int_equal(c.status, 200);
    assert_null(json_get(c.body, "egressIPs"));
    CLEANUP_ANSWER struct answer d =
        ask_full(h, "PATCH", SUBNETS "/node1", NULL, "application/strategic-merge-patch+json",
                 "{\"metadata\":{\"finalizers\":[\"a/b\"]}}");
    CLEANUP_ANSWER struct answer e =
        ask_full(h, "PATCH", SUBNETS "/node1", NULL, "application/strategic-merge-patch+json",
                 "{\"metadata\":{\"finalizers\":[\"c/d\"]}}");
    assert_int_equal(d.status, 200);
    assert_string_equal(at(&e, "metadata.finalizers.0"), "a/b");
    assert_string_equal(at(&e, "metadata.finalizers.1"), "c/d");
}

static void an_object_too_deep_for_a_list_is_refused(void **state)
{
    struct harness *h = *state;
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    free(make_net(h, "red", 11, NULL));
    strbuf_adds(&b, "{\"metadata\":{\"managedFields\":[{\"manager\":\"m\",\"operation\":\"Update\","
                    "\"apiVersion\":\"v1\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":");
    for (int i = 0; i < 58; i++) {
        strbuf_adds(&b, "{\"f:a\":");
    }
    strbuf_adds(&b, "{}");
    for (int i = 0; i < 58; i++) {
        strbuf_addc(&b, '}');
    }
    strbuf_adds(&b, "}]},\"netname\":\"red\",\"netid\":12}");
    CLEANUP_ANSWER struct answer a = ask_ok(h, "PUT", NETS "/red", b.data, 400);
    assert_non_null(strstr(at(&a, "message"), "levels deep"));
}

/* ---- delete ---- */

static void a_deleted_object_is_gone(void **state)
{
    struct harness *h = *state;
    CLEANUP_ANSWER struct answer a = ask_ok(h, "POST", SUBNETS, NODE1, 201);
    CLEANUP_FREE char *options =
        xasprintf("{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\",\"gracePeriodSeconds\":0,"
                  "\"propagationPolicy\":\"Background\",\"preconditions\":{\"uid\":\"%s\","
                  "\"resourceVersion\":\"%s\"}}",
                  at(&a, "metadata.uid"), at(&a, "metadata.resourceVersion"));
    CLEANUP_ANSWER struct answer b = ask_ok(h, "DELETE", SUBNETS "/node1", options, 200);
    assert_string_equal(at(&b, "kind"), "Status");
    assert_string_equal(at(&b, "status"), "Success");
    assert_string_equal(at(&b, "details.name"), "node1");
    assert_string_equal(at(&b, "details.uid"), at(&a, "metadata.uid"));
    CLEANUP_ANSWER struct answer c = ask_ok(h, "GET", SUBNETS "/node1", NULL, 404);
    CLEANUP_ANSWER struct answer d = ask_ok(h, "DELETE", SUBNETS "/node1", NULL, 404);
    /* Another of that name is another object. */
    CLEANUP_ANSWER struct answer e = ask_ok(h, "POST", SUBNETS, NODE1, 201);
    assert_string_not_equal(at(&e, "metadata.uid"), at(&a, "metadata.uid"));
}

static void a_grace_period_is_a_number_and_most_kinds_have_none(void **state)
{
    struct harness *h = *state;
    static const struct {
        const char *query, *options;
        int status;
    } cases[] = {
        {"", "{\"gracePeriodSeconds\":30}", 200},   {"", "{\"gracePeriodSeconds\":-1}", 200},
        {"", "{\"gracePeriodSeconds\":null}", 200}, {"?gracePeriodSeconds=30", NULL, 200},
        {"", "{\"gracePeriodSeconds\":1.5}", 422},  {"", "{\"gracePeriodSeconds\":\"1\"}", 422},
        {"?gracePeriodSeconds=soon", NULL, 422}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *path = xasprintf(SUBNETS "/node1%s", cases[i].query);
        CLEANUP_ANSWER struct answer a = ask_ok(h, "POST", SUBNETS, NODE1, 201);
        CLEANUP_ANSWER struct answer b =
            ask_ok(h, "DELETE", path, cases[i].options, cases[i].status);
        if (cases[i].status != 200) {
            assert_non_null(strstr(at(&b, "message"), "gracePeriodSeconds"));
            CLEANUP_ANSWER struct answer c = ask_ok(h, "DELETE", SUBNETS "/node1", NULL, 200);
        }
        CLEANUP_ANSWER struct answer d = ask_ok(h, "GET", SUBNETS "/node1", NULL, 404);
    }
}

/* Of a pod that runs on a node. */
static void a_pod_has_its_grace_period_and_can_go_sooner(void **state)
{
#define PODS "/api/v1/namespaces/default/pods"
#define POD(where)                                    \
    "{\"metadata\":{\"name\":\"p\"},\"spec\":{" where \
    "\"terminationGracePeriodSeconds\":40,\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}"
    struct harness *h = *state;
    CLEANUP_ANSWER struct answer a = ask_ok(h, "POST", PODS, POD("\"nodeName\":\"n\","), 201);
    int64_t asked = time_wall_ms(), end = 0;
    CLEANUP_ANSWER struct answer b = ask_ok(h, "DELETE", PODS "/p", NULL, 200);
    assert_string_equal(at(&b, "metadata.deletionGracePeriodSeconds"), "40");
    assert_int_equal(time_parse(at(&b, "metadata.deletionTimestamp"), &end), 0);
    assert_in_range(end, asked + 38000, asked + 60000);
    /* Not later, whoever asks; an update does not end it. */
    CLEANUP_ANSWER struct answer c =
        ask_ok(h, "DELETE", PODS "/p?gracePeriodSeconds=90", NULL, 200);
    assert_string_equal(at(&c, "metadata.deletionTimestamp"), at(&b, "metadata.deletionTimestamp"));
    CLEANUP_ANSWER struct answer d =
        ask_full(h, "PATCH", PODS "/p", NULL, "application/merge-patch+json",
                 "{\"metadata\":{\"labels\":{\"a\":\"b\"},\"deletionTimestamp\":null}}");
    assert_int_equal(d.status, 200);
    assert_string_equal(at(&d, "metadata.deletionTimestamp"), at(&b, "metadata.deletionTimestamp"));
    /* Sooner, counted from when it was first asked for. */
    CLEANUP_ANSWER struct answer f =
        ask_ok(h, "DELETE", PODS "/p", "{\"gracePeriodSeconds\":10}", 200);
    int64_t sooner = 0;
    assert_string_equal(at(&f, "metadata.deletionGracePeriodSeconds"), "10");
    assert_int_equal(time_parse(at(&f, "metadata.deletionTimestamp"), &sooner), 0);
    assert_int_equal(sooner, end - 30000);
    CLEANUP_ANSWER struct answer g = ask_ok(h, "DELETE", PODS "/p?gracePeriodSeconds=0", NULL, 200);
    CLEANUP_ANSWER struct answer i = ask_ok(h, "GET", PODS "/p", NULL, 404);
    /* Nobody ends one that runs nowhere. */
    CLEANUP_ANSWER struct answer k = ask_ok(h, "POST", PODS, POD(""), 201);
    CLEANUP_ANSWER struct answer l =
        ask_ok(h, "DELETE", PODS "/p?gracePeriodSeconds=30", NULL, 200);
    CLEANUP_ANSWER struct answer m = ask_ok(h, "GET", PODS "/p", NULL, 404);
#undef POD
#undef PODS
}

static void finalizers_hold_an_object_back(void **state)
{
    struct harness *h = *state;
    CLEANUP_ANSWER struct answer a =
        ask_ok(h, "POST", NETS,
               "{\"metadata\":{\"name\":\"red\",\"finalizers\":[\"a/b\",\"c/d\"]},\"netname\":"
               "\"red\",\"netid\":11}",
               201);
    CLEANUP_ANSWER struct answer b = ask_ok(h, "DELETE", NETS "/red", NULL, 200);
    assert_string_equal(at(&b, "kind"), "NetNamespace");
    assert_string_not_equal(at(&b, "metadata.deletionTimestamp"), "");
    CLEANUP_ANSWER struct answer again = ask_ok(h, "DELETE", NETS "/red", NULL, 200);
    assert_string_equal(at(&again, "metadata.resourceVersion"), at(&b, "metadata.resourceVersion"));
    CLEANUP_ANSWER struct answer c =
        ask_full(h, "PATCH", NETS "/red", NULL, "application/merge-patch+json",
                 "{\"metadata\":{\"deletionTimestamp\":null,\"finalizers\":[\"c/d\"]}}");
    assert_string_not_equal(at(&c, "metadata.deletionTimestamp"), "");
    CLEANUP_ANSWER struct answer d =
        ask_full(h, "PATCH", NETS "/red", NULL, "application/merge-patch+json",
                 "{\"metadata\":{\"finalizers\":[\"c/d\",\"e/f\"]}}");
    assert_int_equal(d.status, 422);
    assert_string_equal(at(&d, "details.causes.0.field"), "metadata.finalizers");
    CLEANUP_ANSWER struct answer e =
        ask_full(h, "PATCH", NETS "/red", NULL, "application/merge-patch+json",
                 "{\"metadata\":{\"finalizers\":null}}");
    assert_int_equal(e.status, 200);
    CLEANUP_ANSWER struct answer f = ask_ok(h, "GET", NETS "/red", NULL, 404);
}

static void a_collection_is_deleted_by_selector(void **state)
{
    struct harness *h = *state;
    free(make_net(h, "a", 11, "{\"t\":\"x\"}"));
    free(make_net(h, "b", 12, "{\"t\":\"x\"}"));
    free(make_net(h, "c", 13, NULL));
    CLEANUP_ANSWER struct answer a = ask_ok(h, "DELETE", NETS "?labelSelector=t%3Dx", NULL, 200);
    assert_string_equal(at(&a, "kind"), "NetNamespaceList");
    assert_int_equal(json_count(json_get(a.body, "items")), 2);
    CLEANUP_ANSWER struct answer b = ask_ok(h, "GET", NETS, NULL, 200);
    assert_int_equal(json_count(json_get(b.body, "items")), 1);
    assert_string_equal(at(&b, "items.0.metadata.name"), "c");
    CLEANUP_ANSWER struct answer c = ask_ok(h, "DELETE", NETS, NULL, 200);
    CLEANUP_ANSWER struct answer d = ask_ok(h, "DELETE", NETS, NULL, 200);
    assert_int_equal(json_count(json_get(c.body, "items")), 1);
    assert_int_equal(json_count(json_get(d.body, "items")), 0);
}

/* ---- namespaces ---- */

static void a_namespace_is_terminating_until_it_is_finalized(void **state)
{
    struct harness *h = *state;
    free(make_namespace(h, "red"));
    CLEANUP_ANSWER struct answer pod =
        ask_ok(h, "POST", "/api/v1/namespaces/red/pods",
               "{\"metadata\":{\"name\":\"web\"},\"spec\":{" CONTAINER "}}", 201);
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", "/api/v1/namespaces/red", NULL, 200);
    assert_string_equal(at(&a, "spec.finalizers.0"), "kubernetes");
    assert_string_equal(at(&a, "status.phase"), "Active");
    assert_string_equal(json_get_string(json_path(a.body, "metadata", "labels",
                                                  "kubernetes.io/metadata.name", NULL)),
                        "red");
    CLEANUP_ANSWER struct answer b = ask_ok(h, "DELETE", "/api/v1/namespaces/red", NULL, 200);
    assert_string_equal(at(&b, "status.phase"), "Terminating");
    CLEANUP_ANSWER struct answer c = ask_ok(h, "DELETE", "/api/v1/namespaces/red", NULL, 409);
    assert_string_equal(at(&c, "reason"), "Conflict");
    CLEANUP_ANSWER struct answer d =
        ask_ok(h, "POST", "/api/v1/namespaces/red/pods", "{\"metadata\":{\"name\":\"late\"}}", 403);
    assert_string_equal(at(&d, "reason"), "Forbidden");
    assert_string_equal(at(&d, "details.causes.0.reason"), "NamespaceTerminating");
    /* What is in it can still be changed and deleted. */
    CLEANUP_ANSWER struct answer e =
        ask_ok(h, "DELETE", "/api/v1/namespaces/red/pods/web", NULL, 200);
    /* A normal update does not finalize. */
    CLEANUP_ANSWER struct answer f =
        ask_full(h, "PATCH", "/api/v1/namespaces/red", NULL, "application/merge-patch+json",
                 "{\"spec\":{\"finalizers\":[]},\"metadata\":{\"labels\":{\"a\":\"b\"}}}");
    assert_string_equal(at(&f, "spec.finalizers.0"), "kubernetes");
    json_remove(json_get(b.body, "spec"), "finalizers");
    json_remove(json_get(b.body, "metadata"), "resourceVersion");
    CLEANUP_FREE char *final = json_to_text(b.body);
    CLEANUP_ANSWER struct answer g =
        ask_ok(h, "PUT", "/api/v1/namespaces/red/finalize", final, 200);
    CLEANUP_ANSWER struct answer i = ask_ok(h, "GET", "/api/v1/namespaces/red", NULL, 404);
}

static void kubectl_creates_namespaces_in_protobuf(void **state)
{
    static const char body[] = "k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12\x1c\x0a\x14\x0a\x04"
                               "blue\x12\0\x1a\0\x22\0\x2a\0\x32\0\x38\0\x42\0\x12\0\x1a\x02\x0a\0"
                               "\x1a\0\x22\0";
    struct harness *h = *state;
    struct race race = {.pending = 1};
    http_call(h->client, "POST", "/api/v1/namespaces",
              "application/vnd.kubernetes.protobuf,application/json",
              "application/vnd.kubernetes.protobuf", body, sizeof body - 1, raced, &race);
    assert_int_equal(loop_run_until(h->loop, &race.done, 20000), 0);
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", "/api/v1/namespaces/blue", NULL, 200);
    assert_string_equal(at(&a, "status.phase"), "Active");
}

static void too_many_writes_at_once_are_turned_away(void **state)
{
    struct apiserver_config cfg = {.max_inflight = 2, .max_queued = 8};
    struct harness *h = harness_new(&cfg, NULL);
    struct race race = {.pending = 16};
    for (int i = 0; i < 16; i++) {
        CLEANUP_FREE char *body = xasprintf("{\"metadata\":{\"name\":\"n%d\"}}", i);
        http_call(h->client, "POST", "/api/v1/namespaces", NULL, "application/json", body,
                  strlen(body), raced, &race);
    }
    assert_int_equal(loop_run_until(h->loop, &race.done, 20000), 0);
    CLEANUP_ANSWER struct answer m = ask(h, "GET", "/metrics", NULL);
    /* How many depends on timing, but all were answered, and what got through is there. */
    CLEANUP_ANSWER struct answer list = ask_ok(h, "GET", "/api/v1/namespaces", NULL, 200);
    bool turned_away = strstr(m.text, "code=\"429\"") != NULL;
    assert_int_equal(json_count(json_get(list.body, "items")) == 17, !turned_away);
    harness_free(h);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(each_refusal_is_a_status),
        T(details_name_the_object_and_the_causes),
        T(a_new_object_gets_what_the_server_decides),
        T(names_are_generated),
        T(bodies_may_be_yaml),
        T(dry_runs_change_nothing),
        T(an_update_keeps_what_clients_cannot_change),
        T(an_update_without_a_change_is_no_change),
        T(only_labels_changed_is_no_new_generation),
        T(the_second_of_two_updates_from_one_version_conflicts),
        T(concurrent_patches_all_succeed),
        T(of_concurrent_updates_from_one_version_one_wins),
        T(of_concurrent_creations_one_wins),
        T(status_and_the_rest_are_separate),
        T(patches_of_all_three_types_apply),
        T(an_object_too_deep_for_a_list_is_refused),
        T(a_deleted_object_is_gone),
        T(a_grace_period_is_a_number_and_most_kinds_have_none),
        T(a_pod_has_its_grace_period_and_can_go_sooner),
        T(finalizers_hold_an_object_back),
        T(a_collection_is_deleted_by_selector),
        T(a_namespace_is_terminating_until_it_is_finalized),
        T(kubectl_creates_namespaces_in_protobuf),
        cmocka_unit_test(too_many_writes_at_once_are_turned_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
