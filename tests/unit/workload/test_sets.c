/* SPDX-License-Identifier: Apache-2.0 */
/* StatefulSets and DaemonSets: their order of events, and random histories.
 *
 * SETS_SEED and SETS_ROUNDS in the environment choose the first history and their number. */
#include "api/obj.h"
#include "json_text.h"
#include "workload/daemon.h"
#include "workload/revision.h"
#include "workload/stateful.h"
#include "world.h"

#define TEMPLATE(image)                                                                          \
    "'template': {'metadata': {'labels': {'app': 'db'}}, 'spec': {'containers': [{'name': 'c', " \
    "'image': '" image "'}]}}"
#define SELECTOR "'selector': {'matchLabels': {'app': 'db'}}"
#define STATEFUL(more)                                                                        \
    "{'metadata': {'name': 'db', 'namespace': 'ns'}, 'spec': {'replicas': 3, 'serviceName': " \
    "'db', 'revisionHistoryLimit': 1, " SELECTOR ", " TEMPLATE("one") more "}}"
#define CLAIMS                                                                           \
    ", 'volumeClaimTemplates': [{'metadata': {'name': 'data'}, 'spec': {'accessModes': " \
    "['ReadWriteOnce']}}]"
#define DAEMON(more)                                                                    \
    "{'metadata': {'name': 'ds', 'namespace': 'ns'}, 'spec': {'revisionHistoryLimit': " \
    "1, " SELECTOR ", " TEMPLATE("one") more "}}"

static struct world w;
static struct daemon_failures failures;
static const struct workload_kind nodes_kind = {"v1", "", "Node", "nodes"};

static int start_world(void **state)
{
    rng_start(1);
    world_init(&w);
    daemon_failures_init(&failures);
    return 0;
}

static int end_world(void **state)
{
    world_done(&w);
    daemon_failures_done(&failures);
    return 0;
}

static const struct json *find_claim(void *ctx, const char *name)
{
    return world_get(&w, &workload_claims, name);
}

static void step_stateful(void)
{
    struct json *set = world_get(&w, &workload_stateful_sets, "db");
    struct stateful_objects o = {.claim = find_claim};
    struct workload_child *pods, *revisions;
    CLEANUP_PLAN struct workload_plan p = {0};
    o.n_pods = world_children(&w, &workload_pods, set, &pods);
    o.n_revisions = world_children(&w, &workload_revisions, set, &revisions);
    o.pods = pods;
    o.revisions = revisions;
    stateful_plan(set, &o, w.now_ms, &p);
    world_run(&w, &workload_stateful_sets, set, &p);
    free(pods);
    free(revisions);
}

static const struct json *project_nodes; /* The node selector of the project. */

static void step_daemon(void)
{
    struct json *set = world_get(&w, &workload_daemon_sets, "ds");
    struct daemon_objects o = {.failures = &failures, .selector = project_nodes};
    struct workload_child *pods, *revisions;
    const struct json *nodes[16];
    struct smap_entry *e;
    CLEANUP_PLAN struct workload_plan p = {0};
    o.n_pods = world_children(&w, &workload_pods, set, &pods);
    o.n_revisions = world_children(&w, &workload_revisions, set, &revisions);
    o.pods = pods;
    o.revisions = revisions;
    SMAP_FOREACH (e, &w.objects) {
        if (str_has_prefix(e->key, "nodes/") && o.n_nodes < ARRAY_SIZE(nodes)) {
            nodes[o.n_nodes++] = e->value;
        }
    }
    o.nodes = nodes;
    daemon_plan(set, &o, w.now_ms, &p);
    world_run(&w, &workload_daemon_sets, set, &p);
    free(pods);
    free(revisions);
}

static void settle(void (*step)(void), const char *broken)
{
    for (int i = 0; i < 40; i++) {
        step();
        world_settle_pods(&w, broken);
    }
}

static void set_image(const struct workload_kind *kind, const char *name, const char *image)
{
    struct json *set = world_get(&w, kind, name);
    json_set_string(json_at(json_path(set, "spec", "template", "spec", "containers", NULL), 0),
                    "image", image);
    world_touch(&w, set);
}

static int64_t status(const struct workload_kind *kind, const char *name, const char *key)
{
    return json_get_int_or(json_path(world_get(&w, kind, name), "status", key, NULL), 0);
}

static const char *image(const struct json *pod)
{
    return json_get_text(json_at(json_path(pod, "spec", "containers", NULL), 0), "image");
}

/* Names and images of the pods, in the order of names. */
static const char *pods(void)
{
    static char text[512];
    size_t size = 0;
    text[0] = '\0';
    for (int i = 0; i < 10; i++) {
        CLEANUP_FREE char *name = xasprintf("db-%d", i);
        const struct json *pod = world_get(&w, &workload_pods, name);
        if (pod) {
            size += (size_t) snprintf(text + size, sizeof text - size, "%s%d=%s%s", size ? " " : "",
                                      i, image(pod), obj_is_terminating(pod) ? "-" : "");
        }
    }
    return text;
}

/* ---- StatefulSets ---- */

static void pods_come_one_after_the_other_with_claims(void **state)
{
    (void) world_add(&w, &workload_stateful_sets, from(STATEFUL(CLAIMS)));
    step_stateful();
    assert_string_equal(pods(), "0=one");
    step_stateful();
    assert_string_equal(pods(), "0=one");
    world_settle_pods(&w, NULL);
    step_stateful();
    assert_string_equal(pods(), "0=one 1=one");
    settle(step_stateful, NULL);
    assert_string_equal(pods(), "0=one 1=one 2=one");
    const struct json *pod = world_get(&w, &workload_pods, "db-1");
    assert_json(json_path(pod, "spec", "volumes", NULL),
                "[{'name': 'data', 'persistentVolumeClaim': {'claimName': 'data-db-1'}}]");
    assert_string_equal(json_path_string(pod, "spec", "hostname", NULL), "db-1");
    assert_string_equal(json_path_string(pod, "spec", "subdomain", NULL), "db");
    assert_string_equal(obj_label(pod, "apps.kubernetes.io/pod-index"), "1");
    assert_string_equal(obj_label(pod, "statefulset.kubernetes.io/pod-name"), "db-1");
    assert_int_equal(world_count(&w, &workload_claims, NULL), 3);
    assert_int_equal(status(&workload_stateful_sets, "db", "availableReplicas"), 3);
    assert_int_equal(status(&workload_stateful_sets, "db", "currentReplicas"), 3);
}

static void the_last_pod_goes_first_and_claims_stay(void **state)
{
    (void) world_add(&w, &workload_stateful_sets, from(STATEFUL(CLAIMS)));
    settle(step_stateful, NULL);
    struct json *set = world_get(&w, &workload_stateful_sets, "db");
    json_set_int(json_get(set, "spec"), "replicas", 1);
    world_touch(&w, set);
    step_stateful();
    assert_string_equal(pods(), "0=one 1=one 2=one-");
    step_stateful();
    assert_string_equal(pods(), "0=one 1=one 2=one-");
    settle(step_stateful, NULL);
    assert_string_equal(pods(), "0=one");
    assert_int_equal(world_count(&w, &workload_claims, NULL), 3);
}

static void claims_can_go_with_their_pods(void **state)
{
    (void) world_add(
        &w, &workload_stateful_sets,
        from(STATEFUL(CLAIMS ", 'persistentVolumeClaimRetentionPolicy': {'whenScaled': 'Delete', "
                             "'whenDeleted': 'Delete'}")));
    settle(step_stateful, NULL);
    const struct json *claim = world_get(&w, &workload_claims, "data-db-2");
    assert_string_equal(
        json_get_text(json_at(json_path(claim, "metadata", "ownerReferences", NULL), 0), "kind"),
        "StatefulSet");
    struct json *set = world_get(&w, &workload_stateful_sets, "db");
    json_set_int(json_get(set, "spec"), "replicas", 2);
    world_touch(&w, set);
    step_stateful();
    claim = world_get(&w, &workload_claims, "data-db-2");
    const struct json *refs = json_path(claim, "metadata", "ownerReferences", NULL);
    assert_int_equal(json_count(refs), 1);
    assert_string_equal(json_get_text(json_at(refs, 0), "kind"), "Pod");
    world_settle_pods(&w, NULL);
    /* A pod of that number waits until the claim is gone. */
    json_set_int(json_get(set, "spec"), "replicas", 3);
    set = world_get(&w, &workload_stateful_sets, "db");
    json_set_int(json_get(set, "spec"), "replicas", 3);
    world_touch(&w, set);
    settle(step_stateful, NULL);
    assert_string_equal(pods(), "0=one 1=one");
    world_remove(&w, &workload_claims, "data-db-2");
    settle(step_stateful, NULL);
    assert_string_equal(pods(), "0=one 1=one 2=one");
}

static void templates_are_replaced_from_the_top_down_to_the_partition(void **state)
{
    (void) world_add(&w, &workload_stateful_sets,
                     from(STATEFUL(", 'updateStrategy': {'type': 'RollingUpdate', "
                                   "'rollingUpdate': {'partition': 1}}")));
    settle(step_stateful, NULL);
    set_image(&workload_stateful_sets, "db", "two");
    step_stateful();
    step_stateful();
    assert_string_equal(pods(), "0=one 1=one 2=one-");
    settle(step_stateful, NULL);
    assert_string_equal(pods(), "0=one 1=two 2=two");
    /* Pods below the partition come back with the earlier template. */
    world_end_pod(&w, world_get(&w, &workload_pods, "db-0"));
    settle(step_stateful, NULL);
    assert_string_equal(pods(), "0=one 1=two 2=two");
    struct json *set = world_get(&w, &workload_stateful_sets, "db");
    json_set_int(json_path(set, "spec", "updateStrategy", "rollingUpdate", NULL), "partition", 0);
    world_touch(&w, set);
    settle(step_stateful, NULL);
    assert_string_equal(pods(), "0=two 1=two 2=two");
    set = world_get(&w, &workload_stateful_sets, "db");
    assert_string_equal(json_path_string(set, "status", "currentRevision", NULL),
                        json_path_string(set, "status", "updateRevision", NULL));
}

static void on_delete_waits_for_the_user(void **state)
{
    (void) world_add(&w, &workload_stateful_sets,
                     from(STATEFUL(", 'updateStrategy': {'type': 'OnDelete'}")));
    settle(step_stateful, NULL);
    set_image(&workload_stateful_sets, "db", "two");
    settle(step_stateful, NULL);
    assert_string_equal(pods(), "0=one 1=one 2=one");
    world_end_pod(&w, world_get(&w, &workload_pods, "db-1"));
    settle(step_stateful, NULL);
    assert_string_equal(pods(), "0=one 1=two 2=one");
}

/* The original waits for the broken pod for ever. */
static void a_broken_template_is_repaired_by_a_good_one(void **state)
{
    (void) world_add(&w, &workload_stateful_sets, from(STATEFUL("")));
    set_image(&workload_stateful_sets, "db", "stuck");
    step_stateful();
    assert_string_equal(pods(), "0=stuck"); /* It stays Pending: no kubelet acts. */
    set_image(&workload_stateful_sets, "db", "good");
    step_stateful();
    struct json *first = world_get(&w, &workload_pods, "db-0");
    assert_true(!first || obj_is_terminating(first) || streq(image(first), "good"));
    settle(step_stateful, NULL);
    assert_string_equal(pods(), "0=good 1=good 2=good");
}

/* A pod that runs, but whose container ends again and again, never came up either. */
static void a_crashing_template_is_repaired_by_a_good_one(void **state)
{
    (void) world_add(&w, &workload_stateful_sets, from(STATEFUL("")));
    set_image(&workload_stateful_sets, "db", "crashing");
    step_stateful();
    struct json *first = world_get(&w, &workload_pods, "db-0");
    world_set_phase(&w, first, "Running");
    world_set_ready(&w, first, false);
    json_set(json_get(first, "status"), "containerStatuses",
             from("[{'name': 'c', 'restartCount': 3}]"));
    step_stateful();
    assert_string_equal(pods(), "0=crashing"); /* It is of the present template. */
    set_image(&workload_stateful_sets, "db", "good");
    step_stateful();
    first = world_get(&w, &workload_pods, "db-0");
    assert_true(!first || obj_is_terminating(first) || streq(image(first), "good"));
    settle(step_stateful, NULL);
    assert_string_equal(pods(), "0=good 1=good 2=good");
}

static void parallel_pods_do_not_wait(void **state)
{
    (void) world_add(
        &w, &workload_stateful_sets,
        from(STATEFUL(", 'podManagementPolicy': 'Parallel', 'ordinals': {'start': 2}")));
    step_stateful();
    assert_string_equal(pods(), "2=one 3=one 4=one");
}

static void an_earlier_template_becomes_the_newest_revision(void **state)
{
    (void) world_add(&w, &workload_stateful_sets, from(STATEFUL("")));
    settle(step_stateful, NULL);
    set_image(&workload_stateful_sets, "db", "two");
    settle(step_stateful, NULL);
    assert_int_equal(world_count(&w, &workload_revisions, NULL), 2);
    set_image(&workload_stateful_sets, "db", "one");
    settle(step_stateful, NULL);
    assert_string_equal(pods(), "0=one 1=one 2=one");
    assert_int_equal(world_count(&w, &workload_revisions, NULL), 2);
    const char *name = json_path_string(world_get(&w, &workload_stateful_sets, "db"), "status",
                                        "updateRevision", NULL);
    const struct json *revision = world_get(&w, &workload_revisions, name);
    assert_int_equal(json_get_int_or(json_get(revision, "revision"), 0), 3);
    set_image(&workload_stateful_sets, "db", "three");
    settle(step_stateful, NULL);
    assert_int_equal(world_count(&w, &workload_revisions, NULL), 2); /* The limit is 1 old one. */
}

static void names_of_other_pods_are_not_members(void **state)
{
    assert_int_equal(stateful_ordinal("db", "db-0"), 0);
    assert_int_equal(stateful_ordinal("db", "db-12"), 12);
    assert_int_equal(stateful_ordinal("db", "db-01"), -1);
    assert_int_equal(stateful_ordinal("db", "db-x"), -1);
    assert_int_equal(stateful_ordinal("db", "db-"), -1);
    assert_int_equal(stateful_ordinal("db", "db"), -1);
    assert_int_equal(stateful_ordinal("db", "dbx-1"), -1);
    assert_int_equal(stateful_ordinal("db", "db-99999999999"), -1);
}

static bool is_missing(const struct json *pod)
{
    return obj_is_terminating(pod) || !workload_pod_is_ready(pod);
}

/* Of pods that were all ready, an update takes one at a time. */
static void ordered_histories_lose_one_pod_at_a_time(void **state)
{
    uint64_t rounds = rng_setting("SETS_ROUNDS", 40);
    uint64_t first = rng_first_seed("SETS_SEED", rounds, "histories of StatefulSets");
    for (uint64_t seed = first; seed < first + rounds; seed++) {
        rng_start(seed);
        world_init(&w);
        (void) world_add(&w, &workload_stateful_sets, from(STATEFUL(CLAIMS)));
        settle(step_stateful, NULL);
        w.failing = 10;
        for (int i = 0; i < 100; i++) {
            if (chance(5)) {
                set_image(&workload_stateful_sets, "db",
                          PICK(((const char *const[]){"one", "two", "three"})));
            }
            step_stateful();
            world_kubelets(&w, NULL);
            world_check_controllers(&w);
            size_t all = world_count(&w, &workload_pods, NULL);
            assert_true(all <= 3);
            assert_true(3 - all + world_count(&w, &workload_pods, is_missing) <= 1);
        }
        w.failing = 0;
        set_image(&workload_stateful_sets, "db", "last");
        settle(step_stateful, NULL);
        assert_string_equal(pods(), "0=last 1=last 2=last");
        world_done(&w);
    }
    world_init(&w);
}

/* ---- DaemonSets ---- */

static void add_node(const char *name, const char *labels, const char *taints)
{
    CLEANUP_FREE char *text = xasprintf("{'metadata': {'name': '%s', 'labels': {%s}}, 'spec': "
                                        "{'taints': [%s]}}",
                                        name, labels, taints);
    (void) world_add(&w, &nodes_kind, from(text));
}

static const struct json *pod_of(const char *node)
{
    struct smap_entry *e;
    SMAP_FOREACH (e, &w.objects) {
        if (str_has_prefix(e->key, "pods/") && !obj_is_terminating(e->value) &&
            streq(daemon_node_of(e->value), node)) {
            return e->value;
        }
    }
    return NULL;
}

/* The scheduler binds pods where their affinity says. */
static void bind_pods(void)
{
    struct smap_entry *e;
    SMAP_FOREACH (e, &w.objects) {
        if (str_has_prefix(e->key, "pods/") && !*workload_pod_node(e->value)) {
            CLEANUP_FREE char *node = xstrdup(daemon_node_of(e->value));
            json_set_string(json_get(e->value, "spec"), "nodeName", node);
        }
    }
}

static void settle_daemon(const char *broken)
{
    for (int i = 0; i < 30; i++) {
        step_daemon();
        bind_pods();
        world_settle_pods(&w, broken);
    }
}

static void nodes_that_are_selected_get_a_pod(void **state)
{
    add_node("n1", "'disk': 'ssd'", "");
    add_node("n2", "", "");
    add_node("n3", "'disk': 'ssd'", "{'key': 'k', 'effect': 'NoSchedule'}");
    add_node("n4", "'disk': 'ssd'",
             "{'key': 'node.kubernetes.io/unreachable', 'effect': 'NoExecute'}, "
             "{'key': 'node.kubernetes.io/unschedulable', 'effect': 'NoSchedule'}");
    (void) world_add(&w, &workload_daemon_sets, from(DAEMON("")));
    struct json *set = world_get(&w, &workload_daemon_sets, "ds");
    json_set(json_path(set, "spec", "template", "spec", NULL), "nodeSelector",
             from("{'disk': 'ssd'}"));
    step_daemon();
    const struct json *pod = pod_of("n1");
    assert_json(
        json_path(pod, "spec", "affinity", NULL),
        "{'nodeAffinity': {'requiredDuringSchedulingIgnoredDuringExecution': "
        "{'nodeSelectorTerms': [{'matchFields': [{'key': 'metadata.name', 'operator': 'In', "
        "'values': ['n1']}]}]}}}");
    assert_null(pod_of("n2"));
    assert_null(pod_of("n3"));
    assert_non_null(pod_of("n4"));
    settle_daemon(NULL);
    assert_int_equal(status(&workload_daemon_sets, "ds", "desiredNumberScheduled"), 2);
    assert_int_equal(status(&workload_daemon_sets, "ds", "numberAvailable"), 2);
    assert_int_equal(status(&workload_daemon_sets, "ds", "updatedNumberScheduled"), 2);
    /* A taint that only keeps new pods away lets this one stay; another selector does not. */
    struct json *n1 = world_get(&w, &nodes_kind, "n1");
    json_set(json_get(n1, "spec"), "taints", from("[{'key': 'k', 'effect': 'NoSchedule'}]"));
    settle_daemon(NULL);
    assert_non_null(pod_of("n1"));
    assert_int_equal(status(&workload_daemon_sets, "ds", "numberMisscheduled"), 1);
    json_set(json_get(n1, "spec"), "taints", from("[{'key': 'k', 'effect': 'NoExecute'}]"));
    settle_daemon(NULL);
    assert_null(pod_of("n1"));
}

static void the_nodes_of_the_project_get_a_pod(void **state)
{
    CLEANUP(json_free) struct json *selector = from("{'region': 'primary'}");
    add_node("n1", "'region': 'primary'", "");
    add_node("n2", "'region': 'other'", "");
    add_node("n3", "", "");
    (void) world_add(&w, &workload_daemon_sets, from(DAEMON("")));
    project_nodes = selector;
    settle_daemon(NULL);
    assert_non_null(pod_of("n1"));
    assert_null(pod_of("n2"));
    assert_null(pod_of("n3"));
    assert_int_equal(status(&workload_daemon_sets, "ds", "desiredNumberScheduled"), 1);
    /* The project may use all nodes, and then these no more. */
    project_nodes = NULL;
    settle_daemon(NULL);
    assert_int_equal(status(&workload_daemon_sets, "ds", "numberAvailable"), 3);
    project_nodes = selector;
    settle_daemon(NULL);
    assert_null(pod_of("n2"));
    assert_null(pod_of("n3"));
    assert_int_equal(status(&workload_daemon_sets, "ds", "numberAvailable"), 1);
    project_nodes = NULL;
}

static void failed_pods_are_replaced_more_and_more_slowly(void **state)
{
    add_node("n1", "", "");
    (void) world_add(&w, &workload_daemon_sets, from(DAEMON("")));
    int64_t start = w.now_ms;
    size_t times = 0;
    for (int i = 0; i < 1000; i++) {
        size_t created = w.created;
        step_daemon();
        times += w.created > created;
        struct json *pod = (struct json *) pod_of("n1");
        if (pod) {
            world_set_phase(&w, pod, "Failed");
        }
        bind_pods();
        world_kubelets(&w, NULL);
    }
    assert_true(w.now_ms - start > 1000000);
    assert_true(times > 6 && times < 16);
}

static void updates_keep_within_max_unavailable(void **state)
{
    for (int i = 1; i <= 5; i++) {
        CLEANUP_FREE char *name = xasprintf("n%d", i);
        add_node(name, "", "");
    }
    (void) world_add(&w, &workload_daemon_sets,
                     from(DAEMON(", 'updateStrategy': {'type': 'RollingUpdate', 'rollingUpdate': "
                                 "{'maxUnavailable': 2, 'maxSurge': 0}}")));
    settle_daemon(NULL);
    set_image(&workload_daemon_sets, "ds", "two");
    for (int i = 0; i < 80; i++) {
        step_daemon();
        size_t all = world_count(&w, &workload_pods, NULL);
        assert_true(5 - MIN(all, 5) + world_count(&w, &workload_pods, is_missing) <= 2);
        bind_pods();
        world_kubelets(&w, NULL);
    }
    settle_daemon(NULL);
    assert_string_equal(image(pod_of("n3")), "two");
    assert_int_equal(status(&workload_daemon_sets, "ds", "updatedNumberScheduled"), 5);
    set_image(&workload_daemon_sets, "ds", "broken");
    settle_daemon("broken");
    /* Two are broken, three go on. */
    assert_int_equal(status(&workload_daemon_sets, "ds", "numberAvailable"), 3);
    set_image(&workload_daemon_sets, "ds", "good");
    settle_daemon("broken");
    assert_int_equal(status(&workload_daemon_sets, "ds", "numberAvailable"), 5);
}

static void a_surge_adds_pods_first(void **state)
{
    for (int i = 1; i <= 4; i++) {
        CLEANUP_FREE char *name = xasprintf("n%d", i);
        add_node(name, "", "");
    }
    (void) world_add(&w, &workload_daemon_sets,
                     from(DAEMON(", 'updateStrategy': {'type': 'RollingUpdate', 'rollingUpdate': "
                                 "{'maxUnavailable': 0, 'maxSurge': 1}}")));
    settle_daemon(NULL);
    set_image(&workload_daemon_sets, "ds", "two");
    for (int i = 0; i < 120; i++) {
        step_daemon();
        bind_pods();
        assert_true(world_count(&w, &workload_pods, NULL) -
                        world_count(&w, &workload_pods, is_missing) >=
                    4);
        world_kubelets(&w, NULL);
    }
    settle_daemon(NULL);
    assert_int_equal(world_count(&w, &workload_pods, NULL), 4);
    assert_string_equal(image(pod_of("n1")), "two");
}

int main(void)
{
#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, start_world, end_world)
    const struct CMUnitTest tests[] = {
        WITH_WORLD(pods_come_one_after_the_other_with_claims),
        WITH_WORLD(the_last_pod_goes_first_and_claims_stay),
        WITH_WORLD(claims_can_go_with_their_pods),
        WITH_WORLD(templates_are_replaced_from_the_top_down_to_the_partition),
        WITH_WORLD(on_delete_waits_for_the_user),
        WITH_WORLD(a_broken_template_is_repaired_by_a_good_one),
        WITH_WORLD(a_crashing_template_is_repaired_by_a_good_one),
        WITH_WORLD(parallel_pods_do_not_wait),
        WITH_WORLD(an_earlier_template_becomes_the_newest_revision),
        cmocka_unit_test(names_of_other_pods_are_not_members),
        WITH_WORLD(ordered_histories_lose_one_pod_at_a_time),
        WITH_WORLD(nodes_that_are_selected_get_a_pod),
        WITH_WORLD(the_nodes_of_the_project_get_a_pod),
        WITH_WORLD(failed_pods_are_replaced_more_and_more_slowly),
        WITH_WORLD(updates_keep_within_max_unavailable),
        WITH_WORLD(a_surge_adds_pods_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
