/* SPDX-License-Identifier: Apache-2.0 */
/* PodDisruptionBudgets: the pure computation of their status, and the controller against an API
 * server. */
#include "controllers/lifecycle/disruption.h"
#include "controllers/lifecycle/disruption_plan.h"

#include "api/condition.h"
#include "json_text.h"
#include "rig.h"

#define T0 INT64_C(1767225600000) /* 2026-01-01T00:00:00Z */

/* ---- owners of the table ---- */

struct world {
    const struct json *objects; /* By "KIND/NAME". */
};

static const struct json *find(void *ctx, size_t kind, const char *ns, const char *name)
{
    static const char *const names[DISRUPTION_KINDS] = {"rc", "rs", "sts", "deploy"};
    const struct world *w = ctx;
    CLEANUP_FREE char *key = xasprintf("%s/%s", names[kind], name);
    assert_string_equal(ns, "ns");
    return json_get(w->objects, key);
}

static int scale(void *ctx, const char *ns, const struct json *ref, int64_t *ret)
{
    const struct world *w = ctx;
    CLEANUP_FREE char *key = xasprintf("scale/%s", json_get_text(ref, "name"));
    const struct json *n = json_get(w->objects, key);
    if (!n || json_is(n, JSON_NULL)) {
        return n ? -EAGAIN : -ENOENT;
    }
    return json_get_int(n, ret);
}

#define LABELS "'labels': {'app': 'web'}"
#define META(name, more) "'metadata': {'name': '" name "', 'namespace': 'ns', " LABELS more "}"
#define READY ", 'status': {'conditions': [{'type': 'Ready', 'status': 'True'}]}"
#define OWNED(version, kind, name)                                                           \
    ", 'ownerReferences': [{'apiVersion': '" version "', 'kind': '" kind "', 'name': '" name \
    "', 'uid': 'u-" name "', 'controller': true}]"
#define POD(name, owner) "{" META(name, owner) READY "}"
#define SICK(name, owner) "{" META(name, owner) "}"
#define GOING(name, owner) \
    "{" META(name, owner ", 'deletionTimestamp': '2026-01-01T00:00:00Z'") READY "}"
#define OBJECT(name, replicas, owner) \
    "{'metadata': {'name': '" name "', 'uid': 'u-" name "'" owner "}, 'spec': {" replicas "}}"
#define RS(name) OWNED("apps/v1", "ReplicaSet", name)

static void budgets_are_counted_as_kubernetes_counts(void **state)
{
    static const struct {
        const char *what, *spec, *pods, *objects, *disrupted;
        int64_t expected, healthy, desired, allowed; /* 'expected' negative: this error. */
    } cases[] = {
        {"bare pods and a number", "'minAvailable': 1", POD("a", "") "," POD("b", ""), "", "", 2, 2,
         1, 1},
        {"not ready ones do not count", "'minAvailable': 1", POD("a", "") "," SICK("b", ""), "", "",
         2, 1, 1, 0},
        {"nor those that go", "'minAvailable': 1", POD("a", "") "," GOING("b", ""), "", "", 2, 1, 1,
         0},
        {"no pods", "'minAvailable': 0", "", "", "", 0, 0, 0, 0},
        {"neither number", "'selector': {}", POD("a", ""), "", "", 0, 1, 0, 0},
        {"a share of the replicas, rounded up", "'minAvailable': '50%'",
         POD("a", RS("r")) "," POD("b", RS("r")), "'rs/r': " OBJECT("r", "'replicas': 3", ""), "",
         3, 2, 2, 0},
        {"maxUnavailable of replicas that do not exist yet", "'maxUnavailable': 1",
         POD("a", RS("r")) "," POD("b", RS("r")), "'rs/r': " OBJECT("r", "'replicas': 3", ""), "",
         3, 2, 2, 0},
        {"a share of maxUnavailable is rounded up, too", "'maxUnavailable': '10%'",
         POD("a", RS("r")) "," POD("b", RS("r")), "'rs/r': " OBJECT("r", "'replicas': 2", ""), "",
         2, 2, 1, 1},
        {"more than there are", "'maxUnavailable': 9", POD("a", RS("r")),
         "'rs/r': " OBJECT("r", "", ""), "", 1, 1, 0, 1},
        {"a Deployment counts once for both ReplicaSets of a rollout", "'maxUnavailable': 1",
         POD("a", RS("r")) "," POD("b", RS("s")),
         "'rs/r': " OBJECT(
             "r", "'replicas': 1",
             OWNED("apps/v1", "Deployment",
                   "d")) ",'rs/s': " OBJECT("s", "'replicas': 1",
                                            OWNED("apps/v1", "Deployment",
                                                  "d")) ",'deploy/d': " OBJECT("d", "'replicas': 2",
                                                                               ""),
         "", 2, 2, 1, 1},
        {"a ReplicationController of a DeploymentConfig", "'maxUnavailable': 1",
         POD("a", OWNED("v1", "ReplicationController", "c")),
         "'rc/c': " OBJECT(
             "c", "'replicas': 7",
             OWNED("apps.openshift.io/v1", "DeploymentConfig", "dc")) ",'scale/dc': 4",
         "", 4, 1, 3, 0},
        {"one of a kind without replicas counts itself", "'maxUnavailable': 1", POD("a", RS("r")),
         "'rs/r': " OBJECT("r", "'replicas': 2", OWNED("example.com/v1", "App", "x")), "", 2, 1, 1,
         0},
        {"a StatefulSet and a custom resource", "'maxUnavailable': '50%'",
         POD("a", OWNED("apps/v1", "StatefulSet", "s")) "," POD(
             "b", OWNED("example.com/v1", "App", "x")),
         "'sts/s': " OBJECT("s", "'replicas': 2", "") ",'scale/x': 4", "", 6, 2, 3, 0},
        {"pods without an owner do not count for a share", "'minAvailable': '50%'",
         POD("a", "") "," POD("b", ""), "", "", 0, 2, 0, 0},
        {"an owner that is gone", "'maxUnavailable': 1", POD("a", RS("r")), "", "", -ENOENT, 0, 0,
         0},
        {"another object of its name", "'maxUnavailable': 1", POD("a", RS("r")),
         "'rs/r': " OBJECT("other", "'replicas': 3", ""), "", -ENOENT, 0, 0, 0},
        {"an owner without replicas", "'maxUnavailable': 1",
         POD("a", OWNED("batch/v1", "Job", "j")), "", "", -ENOENT, 0, 0, 0},
        {"replicas that are not known yet", "'maxUnavailable': 1",
         POD("a", OWNED("example.com/v1", "App", "x")), "'scale/x': null", "", -EAGAIN, 0, 0, 0},
        {"an evicted pod is no longer counted", "'minAvailable': 1", POD("a", "") "," POD("b", ""),
         "", "'a': '2025-12-31T23:59:00Z'", 2, 1, 1, 0},
        {"but if it has not gone after two minutes", "'minAvailable': 1",
         POD("a", "") "," POD("b", ""), "", "'a': '2025-12-31T23:58:00Z'", 2, 2, 1, 1},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *text = xasprintf(
            "[{'metadata': {'generation': 3}, 'spec': {%s}, 'status': {'disruptedPods': {%s}}}, "
            "[%s], {%s}]",
            cases[i].spec, cases[i].disrupted, cases[i].pods, cases[i].objects);
        CLEANUP(json_free) struct json *all = from(text);
        struct json *budget = json_at(all, 0);
        const struct json *pods = json_at(all, 1), *objects = json_at(all, 2);
        struct world world = {objects};
        const struct disruption_owners owners = {find, scale, &world};
        const struct json *list[4];
        struct disruption d = {0};
        struct err e = {0};
        for (size_t k = 0; k < json_count(pods); k++) {
            list[k] = json_at(pods, k);
        }
        int r = disruption_plan(budget, list, json_count(pods), &owners, T0, &d, &e);
        if (r < 0 || cases[i].expected < 0) {
            assert_int_equal(r, cases[i].expected);
            assert_string_equal(e.text, "found no controllers for pod \"a\"");
            continue;
        }
        if (d.expected != cases[i].expected || d.healthy != cases[i].healthy ||
            d.desired != cases[i].desired || d.allowed != cases[i].allowed) {
            fail_msg("%s: expected %d, healthy %d, desired %d, allowed %d", cases[i].what,
                     (int) d.expected, (int) d.healthy, (int) d.desired, (int) d.allowed);
        }
        assert_int_equal(json_count(d.disrupted), d.recheck_ms != 0);
        assert_true(disruption_write(&d, budget, T0));
        assert_false(disruption_write(&d, budget, T0 + 1000));
        assert_int_equal(condition_is_true(budget, "DisruptionAllowed"), d.allowed > 0);
        assert_int_equal(
            json_get_int_or(json_path(budget, "status", "observedGeneration", NULL), 0), 3);
        assert_true(disruption_write_failure("why", budget, T0));
        assert_false(condition_is_true(budget, "DisruptionAllowed"));
        disruption_done(&d);
    }
}

static void selectors_choose_pods(void **state)
{
    CLEANUP(json_free) struct json *pod = from(POD("a", ""));
    static const struct {
        const char *selector;
        bool want;
    } cases[] = {{"", false},
                 {"'selector': {}", true},
                 {"'selector': {'matchLabels': {'app': 'web'}}", true},
                 {"'selector': {'matchLabels': {'app': 'x'}}", false}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *text = xasprintf("{'spec': {%s}}", cases[i].selector);
        CLEANUP(json_free) struct json *budget = from(text);
        assert_int_equal(disruption_selects(budget, pod), cases[i].want);
    }
}

/* ---- the controller ---- */

#define PODS "/api/v1/namespaces/default/pods"
#define BUDGETS "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
#define SETS "/apis/apps/v1/namespaces/default/replicasets"
#define APPS "/apis/example.com/v1/namespaces/default/apps"
#define CONTAINERS "'containers': [{'name': 'c', 'image': 'i'}]"

static struct harness *h;
static struct api_client *client;
static struct rig_controller *controller;

static int set_up(void **state)
{
    h = harness_new(NULL, NULL);
    client = rig_client(h);
    controller = rig_start(h, client, &disruption_controller, NULL);
    return 0;
}

static int tear_down(void **state)
{
    rig_stop(controller);
    api_client_free(client);
    harness_free(h);
    return 0;
}

static char *uid_at(const char *path)
{
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", path, NULL, 200);
    return xstrdup(json_path_string(a.body, "metadata", "uid", NULL));
}

static void run(const char *name, const char *app, const char *refs)
{
    CLEANUP_FREE char *body = xasprintf(
        "{'metadata': {'name': '%s', 'labels': {'app': '%s'}%s}, 'spec': {" CONTAINERS "}}", name,
        app, refs);
    CLEANUP_FREE char *path = xasprintf(PODS "/%s/status", name);
    put_in(h, "POST", PODS, body, 201);
    CLEANUP_FREE char *status = xasprintf("{'metadata': {'name': '%s'}, 'spec': {" CONTAINERS
                                          "}, 'status': {'phase': 'Running', "
                                          "'conditions': [{'type': 'Ready', 'status': 'True'}]}}",
                                          name);
    put_in(h, "PUT", path, status, 200);
}

/* Waits until the number in the status is this. */
static void expect(const char *name, const char *member, const char *want)
{
    CLEANUP_FREE char *path = xasprintf(BUDGETS "/%s", name);
    CLEANUP_FREE char *where = xasprintf("status.%s", member);
    rig_expect(h, path, where, want);
}

static void evict(const char *name, int code)
{
    CLEANUP_FREE char *path = xasprintf(PODS "/%s/eviction", name);
    CLEANUP_FREE char *body = xasprintf("{'metadata': {'name': '%s'}}", name);
    put_in(h, "POST", path, body, code);
}

static void budgets_follow_their_pods_and_bound_evictions(void **state)
{
    run("a", "web", "");
    run("b", "web", "");
    run("c", "web", "");
    put_in(h, "POST", BUDGETS,
           "{'metadata': {'name': 'web'}, 'spec': {'minAvailable': 2, 'selector': "
           "{'matchLabels': {'app': 'web'}}}}",
           201);
    expect("web", "disruptionsAllowed", "1");
    expect("web", "conditions.0.reason", "SufficientPods");
    evict("a", 201);
    evict("b", 429);
    expect("web", "conditions.0.reason", "InsufficientPods");
    /* The one that goes is replaced. */
    run("d", "web", "");
    expect("web", "disruptionsAllowed", "1");
    put_in(h, "DELETE", PODS "/d?gracePeriodSeconds=0", NULL, 200);
    expect("web", "disruptionsAllowed", "0");
    expect("web", "expectedPods", "2");
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", PODS "/a", NULL, 404);
}

static void replicas_of_owners_count(void **state)
{
    put_in(h, "POST", SETS,
           "{'metadata': {'name': 'r'}, 'spec': {'replicas': 4, 'selector': {'matchLabels': "
           "{'app': 'set'}}, 'template': {'metadata': {'labels': {'app': 'set'}}, "
           "'spec': {" CONTAINERS "}}}}",
           201);
    CLEANUP_FREE char *uid = uid_at(SETS "/r");
    CLEANUP_FREE char *refs =
        xasprintf(", 'ownerReferences': [{'apiVersion': 'apps/v1', 'kind': 'ReplicaSet', 'name': "
                  "'r', 'uid': '%s', 'controller': true}]",
                  uid);
    run("s1", "set", refs);
    run("s2", "set", refs);
    put_in(h, "POST", BUDGETS,
           "{'metadata': {'name': 'set'}, 'spec': {'maxUnavailable': '75%', 'selector': "
           "{'matchLabels': {'app': 'set'}}}}",
           201);
    expect("set", "disruptionsAllowed", "1");
    expect("set", "expectedPods", "4");
    put_in(h, "PUT", SETS "/r/scale",
           "{'apiVersion': 'autoscaling/v1', 'kind': 'Scale', 'metadata': {'name': 'r', "
           "'namespace': 'default'}, 'spec': {'replicas': 2}}",
           200);
    expect("set", "expectedPods", "2");
    expect("set", "disruptionsAllowed", "2");
}

/* An owner of a kind that the controller does not watch: discovery, then its scale. */
static void replicas_of_custom_resources_are_read(void **state)
{
    put_in(h, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
           "{'metadata': {'name': 'apps.example.com'}, 'spec': {'group': 'example.com', 'scope': "
           "'Namespaced', 'names': {'plural': 'apps', 'kind': 'App'}, 'versions': [{'name': 'v1', "
           "'served': true, 'storage': true, 'subresources': {'scale': {'specReplicasPath': "
           "'.spec.replicas', 'statusReplicasPath': '.status.replicas'}}, 'schema': "
           "{'openAPIV3Schema': {'type': 'object', 'x-kubernetes-preserve-unknown-fields': "
           "true}}}]}}",
           201);
    rig_expect(h, APPS, NULL, "200");
    put_in(h, "POST", APPS,
           "{'apiVersion': 'example.com/v1', 'kind': 'App', 'metadata': {'name': 'x'}, 'spec': "
           "{'replicas': 3}}",
           201);
    CLEANUP_FREE char *uid = uid_at(APPS "/x");
    CLEANUP_FREE char *refs =
        xasprintf(", 'ownerReferences': [{'apiVersion': 'example.com/v1', 'kind': 'App', 'name': "
                  "'x', 'uid': '%s', 'controller': true}]",
                  uid);
    run("x1", "app", refs);
    put_in(h, "POST", BUDGETS,
           "{'metadata': {'name': 'app'}, 'spec': {'maxUnavailable': 3, 'selector': "
           "{'matchLabels': {'app': 'app'}}}}",
           201);
    expect("app", "expectedPods", "3");
    expect("app", "disruptionsAllowed", "1");
}

static void an_unknown_owner_allows_nothing(void **state)
{
    run("j", "job",
        ", 'ownerReferences': [{'apiVersion': 'batch/v1', 'kind': 'Job', 'name': 'gone', 'uid': "
        "'7', 'controller': true}]");
    put_in(h, "POST", BUDGETS,
           "{'metadata': {'name': 'job'}, 'spec': {'maxUnavailable': 1, 'selector': "
           "{'matchLabels': {'app': 'job'}}}}",
           201);
    expect("job", "conditions.0.reason", "SyncFailed");
    expect("job", "conditions.0.message", "found no controllers for pod \"j\"");
    evict("j", 429);
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(budgets_are_counted_as_kubernetes_counts),      T(selectors_choose_pods),
        T(budgets_follow_their_pods_and_bound_evictions), T(replicas_of_owners_count),
        T(replicas_of_custom_resources_are_read),         T(an_unknown_owner_allows_nothing),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
