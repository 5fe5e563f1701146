/* SPDX-License-Identifier: Apache-2.0 */
/* Pods that nobody deletes otherwise, against an API server. */
#include "controllers/lifecycle/pod_garbage.h"

#include "controllers/lifecycle/pod_deletion.h"
#include "front.h"
#include "json_text.h"
#include "rig.h"

#define PODS "/api/v1/namespaces/default/pods"
#define NODES "/api/v1/nodes"

static struct harness *h;

static int set_up(void **state)
{
    h = harness_new(NULL, NULL);
    return 0;
}

static int tear_down(void **state)
{
    harness_free(h);
    return 0;
}

static void run(const char *name, const char *node, const char *status)
{
    CLEANUP_FREE char *body =
        xasprintf("{'metadata': {'name': '%s'}, 'spec': {%s%s%s'containers': "
                  "[{'name': 'c', 'image': 'i'}]}}",
                  name, node ? "'nodeName': '" : "", node ? node : "", node ? "', " : "");
    put_in(h, "POST", PODS, body, 201);
    if (status) {
        CLEANUP_FREE char *path = xasprintf(PODS "/%s/status", name);
        body[strlen(body) - 1] = '\0';
        CLEANUP_FREE char *put = xasprintf("%s, 'status': %s}", body, status);
        put_in(h, "PUT", path, put, 200);
    }
}

static void pods_of_nodes_that_are_gone_end(void **state)
{
    const struct pod_garbage_config config = {.quarantine_ms = 50};
    struct front *f = front_new(h);
    struct api_client *client = front_client(f);
    put_in(h, "POST", NODES, "{'metadata': {'name': 'there'}}", 201);
    put_in(h, "POST", NODES, "{'metadata': {'name': 'gone'}}", 201);
    run("stays", "there", NULL);
    run("waits", NULL, NULL);
    run("orphan", "gone", "{'phase': 'Running'}");
    run("done", "gone", "{'phase': 'Succeeded'}");
    struct rig_controller *c = rig_start(h, client, &pod_garbage_controller, &config);
    /* The controller writes before it deletes: what was gone counts as failed. */
    front_hold(f, "DELETE", PODS "/orphan");
    put_in(h, "DELETE", NODES "/gone", NULL, 200);
    front_wait_held(f);
    rig_expect(h, PODS "/orphan", "status.phase", "Failed");
    rig_expect(h, PODS "/orphan", "status.conditions.0.reason", "DeletionByPodGC");
    front_release(f);
    rig_expect(h, PODS "/orphan", NULL, "404");
    rig_expect(h, PODS "/done", NULL, "404");
    rig_expect(h, PODS "/stays", NULL, "200");
    rig_expect(h, PODS "/waits", NULL, "200");
    rig_stop(c);
    api_client_free(client);
    front_free(f);
}

/* Whatever the controller's own list says, a Node that the server knows keeps its pods. */
static void a_node_that_the_server_knows_keeps_its_pods(void **state)
{
    const struct pod_garbage_config config = {.quarantine_ms = 50};
    struct front *f = front_new(h);
    struct api_client *client = front_client(f);
    run("doubted", "absent", "{'phase': 'Running'}");
    front_hold(f, "GET", NODES "/absent");
    struct rig_controller *c = rig_start(h, client, &pod_garbage_controller, &config);
    front_wait_held(f);
    rig_expect(h, PODS "/doubted", NULL, "200");
    assert_int_equal(front_asked(f, "PATCH", PODS "/doubted/status"), 0);
    put_in(h, "POST", NODES, "{'metadata': {'name': 'absent'}}", 201);
    front_release(f);
    /* A later one is through. */
    run("later", "never", "{'phase': 'Running'}");
    rig_expect(h, PODS "/later", NULL, "404");
    assert_int_equal(front_asked(f, "PATCH", PODS "/doubted/status"), 0);
    assert_int_equal(front_asked(f, "DELETE", PODS "/doubted"), 0);
    rig_stop(c);
    api_client_free(client);
    front_free(f);
}

static void too_many_ended_pods_go_the_oldest_first(void **state)
{
    const struct pod_garbage_config config = {.quarantine_ms = 50, .threshold = 1};
    struct api_client *client = rig_client(h);
    run("e1", NULL, "{'phase': 'Failed'}");
    run("e2", NULL, "{'phase': 'Succeeded'}");
    run("e3", NULL, "{'phase': 'Running'}");
    struct rig_controller *c = rig_start(h, client, &pod_garbage_controller, &config);
    rig_expect(h, PODS "/e1", NULL, "404");
    rig_expect(h, PODS "/e2", NULL, "200");
    rig_expect(h, PODS "/e3", NULL, "200");
    rig_stop(c);
    api_client_free(client);
}

static void evicted_pods_go_before_others(void **state)
{
    CLEANUP(json_free)
    struct json *pods =
        from("[{'metadata': {'name': 'b', 'creationTimestamp': '2026-01-01T00:00:01Z'}},"
             " {'metadata': {'name': 'a', 'creationTimestamp': '2026-01-01T00:00:02Z'}},"
             " {'metadata': {'name': 'c', 'creationTimestamp': '2026-01-01T00:00:03Z'}, "
             "'status': {'reason': 'Evicted'}}]");
    const struct json *list[] = {json_at(pods, 0), json_at(pods, 1), json_at(pods, 2)};
    pod_garbage_sort(list, ARRAY_SIZE(list));
    assert_ptr_equal(list[0], json_at(pods, 2));
    assert_ptr_equal(list[1], json_at(pods, 0));
    assert_ptr_equal(list[2], json_at(pods, 1));
}

static void only_what_has_ended_is_counted(void **state)
{
    static const struct {
        const char *pod;
        bool want;
    } cases[] = {{"{}", false},
                 {"{'status': {'phase': 'Pending'}}", false},
                 {"{'status': {'phase': 'Running'}}", false},
                 {"{'status': {'phase': 'Unknown'}}", false},
                 {"{'status': {'phase': 'Failed'}}", true},
                 {"{'status': {'phase': 'Succeeded'}}", true}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *pod = from(cases[i].pod);
        assert_int_equal(pod_garbage_has_ended(pod), cases[i].want);
    }
}

/* ---- nodes that are out of service ---- */

#define TAINT(effect) \
    "'spec': {'taints': [{'key': 'node.kubernetes.io/out-of-service', " effect "}]}"
#define READY(status)                                                                        \
    "'status': {'nodeInfo': {'containerRuntimeVersion': 'containerd://1.6'}, 'conditions': " \
    "[{'type': 'Ready', 'status': '" status "'}]}"

static void a_node_is_out_of_service_when_an_administrator_says_so(void **state)
{
    static const struct {
        const char *node;
        bool want;
    } cases[] = {
        {"{" TAINT("'effect': 'NoExecute'") "," READY("Unknown") "}", true},
        {"{" TAINT("'effect': 'NoSchedule'") "," READY("False") "}", true},
        {"{" TAINT("'effect': 'NoExecute'") "," READY("True") "}", false},
        {"{" READY("Unknown") "}", false},
        {"{'spec': {'taints': [{'key': 'node.kubernetes.io/unreachable'}]}," READY("Unknown") "}",
         false}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *node = from(cases[i].node);
        assert_int_equal(pod_deletion_is_forced(node), cases[i].want);
        assert_false(pod_deletion_is_by_clock(node));
    }
    assert_false(pod_deletion_is_forced(NULL));
}

static void its_deleted_pods_end_at_once(void **state)
{
    struct api_client *client = rig_client(h);
    put_in(h, "POST", NODES, "{'metadata': {'name': 'off'}}", 201);
    put_in(h, "PUT", NODES "/off/status", "{'metadata': {'name': 'off'}, " READY("Unknown") "}",
           200);
    run("held", "off", "{'phase': 'Running'}");
    run("kept", "off", "{'phase': 'Running'}");
    put_in(h, "DELETE", PODS "/held", NULL, 200);
    struct rig_controller *c = rig_start(h, client, &pod_deletion_controller, NULL);
    put_in(h, "PUT", NODES "/off",
           "{'metadata': {'name': 'off'}, " TAINT("'effect': 'NoExecute'") "}", 200);
    rig_expect(h, PODS "/held", NULL, "404");
    rig_expect(h, PODS "/kept", NULL, "200");
    put_in(h, "DELETE", PODS "/kept", NULL, 200);
    rig_expect(h, PODS "/kept", NULL, "404");
    rig_stop(c);
    api_client_free(client);
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(pods_of_nodes_that_are_gone_end),
        T(a_node_that_the_server_knows_keeps_its_pods),
        T(too_many_ended_pods_go_the_oldest_first),
        T(evicted_pods_go_before_others),
        T(only_what_has_ended_is_counted),
        T(a_node_is_out_of_service_when_an_administrator_says_so),
        T(its_deleted_pods_end_at_once),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
