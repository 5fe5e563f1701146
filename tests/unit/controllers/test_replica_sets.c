/* SPDX-License-Identifier: Apache-2.0 */
/* ReplicaSets and ReplicationControllers against an API server: what the engine of workloads does
 * with plans. */
#include "controllers/workloads/replica_sets.h"

#include "controllers/workloads/engine.h"
#include "controllers/workloads/keeper.h"
#include "front.h"
#include "json_text.h"
#include "rig.h"

#define PODS "/api/v1/namespaces/default/pods"
#define SETS "/apis/apps/v1/namespaces/default/replicasets"
#define CONTROLLERS "/api/v1/namespaces/default/replicationcontrollers"
#define TEMPLATE                                                                                  \
    "'template': {'metadata': {'labels': {'app': 'web'}}, 'spec': {'containers': [{'name': 'c', " \
    "'image': 'i'}]}}"
#define SET(name, replicas)                                             \
    "{'metadata': {'name': '" name "'}, 'spec': {'replicas': " replicas \
    ", 'selector': {'matchLabels': {'app': 'web'}}, " TEMPLATE "}}"

static struct harness *h;
static struct front *f;
static struct api_client *client;
static struct rig_controller *c;

static int set_up(void **state)
{
    h = harness_new(NULL, NULL);
    f = front_new(h);
    client = front_client(f);
    return 0;
}

static int tear_down(void **state)
{
    if (c) {
        rig_stop(c);
        c = NULL;
    }
    api_client_free(client);
    front_free(f);
    harness_free(h);
    return 0;
}

static void run(const struct controller *controller)
{
    c = rig_start(h, client, controller, NULL);
}

static size_t count_pods(void)
{
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", PODS, NULL, 200);
    return json_count(json_get(a.body, "items"));
}

static void scale(const char *replicas)
{
    CLEANUP_FREE char *body = xasprintf("{\"spec\": {\"replicas\": %s}}", replicas);
    CLEANUP_ANSWER struct answer a =
        ask_full(h, "PATCH", SETS "/web", NULL, "application/merge-patch+json", body);
    assert_int_equal(a.status, 200);
}

/* Answers come before the copies have the pods: none is taken for absent, so none is made twice. */
static void what_was_just_written_is_not_absent(void **state)
{
    run(&replica_sets_controller);
    put_in(h, "POST", SETS, SET("web", "40"), 201);
    front_expect(f, "POST", PODS, 40);
    rig_stop(c);
    /* Neither by the next leader. */
    run(&replica_sets_controller);
    scale("42");
    front_expect(f, "POST", PODS, 42);
    scale("10");
    front_expect(f, "DELETE", PODS "/*", 32);
    assert_int_equal(count_pods(), 10);
}

/* The registry was restored from an older copy: the version of what was written before is never
 * reached, but a list after it shows that the write is undone. */
static void a_restored_registry_does_not_stop_a_set(void **state)
{
    run(&replica_sets_controller);
    front_say(f, "POST", PODS,
              "{'kind': 'Pod', 'apiVersion': 'v1', 'metadata': {'name': 'lost', 'namespace': "
              "'default', 'uid': 'u', 'resourceVersion': '999999999'}}");
    put_in(h, "POST", SETS, SET("web", "1"), 201);
    front_expect(f, "POST", PODS, 1);
    scale("2");
    front_answer(f, "GET", "/api/v1/pods", 410, "Expired", 1);
    front_cut(f);
    front_expect(f, "POST", PODS, 3);
    assert_int_equal(count_pods(), 2);
}

static void a_pod_that_goes_is_replaced(void **state)
{
    run(&replica_sets_controller);
    put_in(h, "POST", SETS, SET("web", "2"), 201);
    front_expect(f, "POST", PODS, 2);
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", PODS, NULL, 200);
    CLEANUP_FREE char *path = xasprintf(PODS "/%s", at(&a, "items.0.metadata.name"));
    assert_string_equal(at(&a, "items.0.metadata.ownerReferences.0.name"), "web");
    put_in(h, "DELETE", path, NULL, 200);
    front_expect(f, "POST", PODS, 3);
}

static void bare_pods_are_adopted_and_strangers_released(void **state)
{
    run(&replication_controllers_controller);
    put_in(h, "POST", PODS,
           "{'metadata': {'name': 'bare', 'labels': {'app': 'web'}}, 'spec': {'containers': "
           "[{'name': 'c', 'image': 'i'}]}}",
           201);
    put_in(
        h, "POST", CONTROLLERS,
        "{'metadata': {'name': 'rc'}, 'spec': {'replicas': 1, 'selector': {'app': 'web'}, " TEMPLATE
        "}}",
        201);
    rig_expect(h, PODS "/bare", "metadata.ownerReferences.0.name", "rc");
    assert_int_equal(front_asked(f, "POST", PODS), 0);
    CLEANUP_ANSWER struct answer a =
        ask_full(h, "PATCH", PODS "/bare", NULL, "application/merge-patch+json",
                 "{\"metadata\": {\"labels\": {\"app\": \"db\"}}}");
    assert_int_equal(a.status, 200);
    rig_expect(h, PODS "/bare", "metadata.ownerReferences.0.name", "");
    front_expect(f, "POST", PODS, 1);
}

/* Nothing is adopted for an owner that another object has replaced since. */
static void an_owner_that_is_gone_adopts_nothing(void **state)
{
    put_in(h, "POST", PODS,
           "{'metadata': {'name': 'bare', 'labels': {'app': 'web'}}, 'spec': {'containers': "
           "[{'name': 'c', 'image': 'i'}]}}",
           201);
    put_in(h, "POST", SETS, SET("web", "1"), 201);
    front_hold(f, "GET", SETS "/web");
    run(&replica_sets_controller);
    front_wait_held(f);
    put_in(h, "DELETE", SETS "/web?propagationPolicy=Background", NULL, 200);
    put_in(h, "POST", SETS,
           "{'metadata': {'name': 'web'}, 'spec': {'replicas': 0, 'selector': {'matchLabels': "
           "{'app': 'other'}}, 'template': {'metadata': {'labels': {'app': 'other'}}, 'spec': "
           "{'containers': [{'name': 'c', 'image': 'i'}]}}}}",
           201);
    front_release(f);
    rig_expect(h, SETS "/web", NULL, "200");
    put_in(h, "POST", SETS, SET("later", "1"), 201);
    rig_expect(h, PODS "/bare", "metadata.ownerReferences.0.name", "later");
    assert_int_equal(front_asked(f, "PATCH", PODS "/bare"), 1);
}

/* A refusal stops the batch (1, 2, 4, ...), and the status says why. */
static void a_refusal_is_a_condition_and_an_event(void **state)
{
    front_answer(f, "POST", PODS, 403, "Forbidden", 1);
    run(&replica_sets_controller);
    put_in(h, "POST", SETS, SET("web", "3"), 201);
    front_expect(f, "POST", PODS, 4);
    rig_expect(h, SETS "/web", "status.conditions.0.type", "");
    CLEANUP_ANSWER struct answer a =
        ask_ok(h, "GET", "/api/v1/namespaces/default/events", NULL, 200);
    assert_non_null(strstr(a.text, "\"reason\":\"FailedCreate\""));
    assert_non_null(strstr(a.text, "Error creating: "));
}

static void while_it_is_refused_the_status_says_so(void **state)
{
    front_answer(f, "POST", PODS, 403, "Forbidden", 1000);
    run(&replica_sets_controller);
    put_in(h, "POST", SETS, SET("web", "300"), 201);
    rig_expect(h, SETS "/web", "status.conditions.0.type", "ReplicaFailure");
    rig_expect(h, SETS "/web", "status.conditions.0.reason", "FailedCreate");
    assert_true(front_asked(f, "POST", PODS) < 20);
    front_forget(f, PODS);
    scale("2");
    rig_expect(h, SETS "/web", "status.conditions.0.type", "");
    assert_int_equal(count_pods(), 2);
}

/* ---- with access control ---- */

static int set_up_secure(void **state)
{
    h = harness_new_secure((struct apiserver_security){0});
    f = front_new(h);
    client = front_client(f);
    return 0;
}

/* The client is the master's, which may do everything; what the controller asks for is judged by
 * the rights of its own account. */
static void a_controller_has_the_rights_of_its_account_only(void **state)
{
    static const char rights[] =
        "{'apiGroups': [''], 'resources': ['pods'], 'verbs': ['create']},"
        " {'apiGroups': ['apps'], 'resources': ['replicasets/status', 'replicasets/finalizers'], "
        "'verbs': ['update']}";
    CLEANUP_FREE char *ns = make_namespace(h, "own");
    run(&replica_sets_controller);
    put_in(h, "POST", "/apis/apps/v1/namespaces/own/replicasets", SET("web", "1"), 201);
    for (int i = 0; i < 400; i++) {
        CLEANUP_ANSWER struct answer a =
            ask_ok(h, "GET", "/api/v1/namespaces/own/events", NULL, 200);
        bool never = false;
        if (strstr(a.text, "User \\\"system:serviceaccount:kube-system:replicaset-controller\\\" "
                           "cannot create resource \\\"pods\\\"")) {
            give_rules(h, NULL, "system:serviceaccount:kube-system:replicaset-controller", rights);
            rig_expect(h, "/api/v1/namespaces/own/pods", "items.0.metadata.ownerReferences.0.name",
                       "web");
            return;
        }
        (void) loop_run_until(h->loop, &never, 5);
    }
    fail_msg("no Event says who may not create the pod");
}

#define QUOTAS "/api/v1/namespaces/default/resourcequotas"
#define QUOTA(pods) "{'metadata': {'name': 'q'}, 'spec': {'hard': {'count/pods': '" pods "'}}}"

static void a_set_that_a_quota_refuses_goes_on_when_the_quota_grows(void **state)
{
    put_in(h, "POST", QUOTAS, QUOTA("2"), 201);
    run(&replica_sets_controller);
    put_in(h, "POST", SETS, SET("web", "4"), 201);
    rig_expect(h, SETS "/web", "status.conditions.0.type", "ReplicaFailure");
    assert_int_equal(count_pods(), 2);
    put_in(h, "PUT", QUOTAS "/q", QUOTA("4"), 200);
    rig_expect(h, SETS "/web", "status.replicas", "4");
    assert_int_equal(count_pods(), 4);
}

static void count_key(void *ctx, struct work *w, const char *key)
{
    strbuf_addf(ctx, "%s ", key);
    work_done(w);
}

/* The keys that a change of a quota adds. */
static void keys_with_a_refused_write_are_added_by_room(void **state)
{
    static const struct {
        const char *ns, *was, *now, *want; /* 'now' NULL: deleted. */
    } rows[] = {
        {"red", "1", "2", "red/web "},  {"red", "2", "1", ""}, {"red", "1", NULL, "red/web "},
        {"redder", "1", "2", ""},       {"re", "1", "2", ""},  {"", "1", "2", "blue/db red/web "},
        {"blue", "1", "2", "blue/db "},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_STRBUF struct strbuf seen = STRBUF_INIT;
        struct workqueue *q = workqueue_new(h->loop, client, 1, count_key, &seen);
        const struct controller_env env = {.loop = h->loop, .client = client, .queue = q};
        struct engine g = {0};
        engine_init(&g, &env, &workload_replica_sets);
        smap_set(&g.refused, "blue/db", &g);
        smap_set(&g.refused, "red/web", &g);
        CLEANUP(json_free) struct json *was = from(QUOTA("1"));
        CLEANUP(json_free) struct json *now = from(QUOTA("1"));
        json_set_string(json_get(was, "metadata"), "namespace", rows[i].ns);
        json_set_string(json_get(now, "metadata"), "namespace", rows[i].ns);
        json_set_string(json_path(was, "spec", "hard", NULL), "count/pods", rows[i].was);
        json_set_string(json_path(now, "spec", "hard", NULL), "count/pods",
                        rows[i].now ? rows[i].now : "1");
        engine_quota_changed(&g, NULL, now); /* A new quota gives no room. */
        assert_int_equal(workqueue_size(q), 0);
        engine_quota_changed(&g, was, rows[i].now ? now : NULL);
        workqueue_start(q);
        bool never = false;
        for (int turns = 0; turns < 100 && workqueue_size(q); turns++) {
            (void) loop_run_until(h->loop, &never, 1);
        }
        if (!streq(strbuf_cstr(&seen), rows[i].want) &&
            !(i == 5 && streq(strbuf_cstr(&seen), "red/web blue/db "))) {
            fail_msg("row %zu: %s", i, strbuf_cstr(&seen));
        }
        q = workqueue_free(q);
        engine_done(&g);
    }
}

/* A deleted owner leaves no key behind, although a quota has refused its write. */
static void a_deleted_owner_is_no_longer_refused(void **state)
{
    CLEANUP_STRBUF struct strbuf seen = STRBUF_INIT;
    struct workqueue *q = workqueue_new(h->loop, client, 1, count_key, &seen);
    const struct controller_env env = {.loop = h->loop, .client = client, .queue = q};
    struct keeper k = {0};
    CLEANUP(json_free) struct json *owner = from(SET("web", "1"));
    json_set_string(json_get(owner, "metadata"), "namespace", "red");
    static const struct workload_kind *const children[KEEPER_CHILDREN] = {&workload_pods};
    keeper_init(&k, &env, &workload_replica_sets, children);
    smap_set(&k.engine.refused, "red/web", &k.engine);
    smap_set(&k.engine.refused, "red/db", &k.engine);
    keeper_owner_deleted(&k, "red/web", owner);
    assert_null(smap_get(&k.engine.refused, "red/web"));
    assert_non_null(smap_get(&k.engine.refused, "red/db"));
    /* It is reconciled once more, for a plan that was under way. */
    assert_int_equal(workqueue_size(q), 1);
    q = workqueue_free(q);
    keeper_done(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_just_written_is_not_absent, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_restored_registry_does_not_stop_a_set, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_pod_that_goes_is_replaced, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bare_pods_are_adopted_and_strangers_released, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(an_owner_that_is_gone_adopts_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_refusal_is_a_condition_and_an_event, set_up, tear_down),
        cmocka_unit_test_setup_teardown(while_it_is_refused_the_status_says_so, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_controller_has_the_rights_of_its_account_only,
                                        set_up_secure, tear_down),
        cmocka_unit_test_setup_teardown(a_set_that_a_quota_refuses_goes_on_when_the_quota_grows,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(keys_with_a_refused_write_are_added_by_room, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_deleted_owner_is_no_longer_refused, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
