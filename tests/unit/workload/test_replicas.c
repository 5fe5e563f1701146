/* SPDX-License-Identifier: Apache-2.0 */
/* ReplicaSets and ReplicationControllers: plans for given pods, and random histories.
 *
 * REPLICAS_SEED and REPLICAS_ROUNDS in the environment choose the first history and their number.
 * */
#include "workload/replicas.h"

#include "api/condition.h"
#include "api/obj.h"
#include "json_text.h"
#include "world.h"

#define NOW INT64_C(1767229200000) /* 2026-01-01T01:00:00Z */
#define SET(replicas, more)                                                             \
    "{'metadata': {'name': 'rs', 'namespace': 'ns', 'uid': 'u', 'generation': 7},"      \
    " 'spec': {'replicas': " replicas ", 'selector': {'matchLabels': {'app': 'web'}}, " \
    "'template': {'metadata': {'labels': {'app': 'web', 'tier': 'x'}, "                 \
    "'annotations': {'a': 'b'}}, 'spec': {'containers': [{'name': 'c', 'image': 'i'}]}}" more "}}"
#define OWNER(uid)                                                                       \
    "'ownerReferences': [{'apiVersion': 'apps/v1', 'kind': 'ReplicaSet', 'name': 'rs', " \
    "'uid': '" uid "', 'controller': true}]"
#define POD(name, labels, meta, rest)                                                              \
    "{'metadata': {'name': '" name "', 'namespace': 'ns', 'uid': 'p-" name "', 'labels': {" labels \
    "}" meta "}" rest "}"
#define OWN ", " OWNER("u")
#define WEB "'app': 'web', 'tier': 'x'"
#define READY(since)                                                                       \
    ", 'status': {'phase': 'Running', 'conditions': [{'type': 'Ready', 'status': 'True', " \
    "'lastTransitionTime': '" since "'}]}"

/* ---- one plan ---- */

static struct json *set, *pods;
static struct workload_plan plan;

static void make_plan(const struct workload_kind *kind, const char *set_text, const char *pods_text)
{
    struct workload_child list[16];
    const struct json *related[16];
    size_t n;
    workload_plan_done(&plan);
    json_free(set);
    json_free(pods);
    CLEANUP_FREE char *text = xasprintf("[%s]", pods_text);
    set = from(set_text);
    pods = from(text);
    n = json_count(pods);
    assert_true(n <= ARRAY_SIZE(list));
    for (size_t i = 0; i < n; i++) {
        list[i] = (struct workload_child){json_at(pods, i), obj_is_terminating(json_at(pods, i))};
        related[i] = json_at(pods, i);
    }
    replicas_plan(kind, set, list, n, related, n, NOW, &plan);
    if (plan.outcome) {
        plan.outcome(plan.status, NULL, NULL, NOW);
    }
}

static int drop_plan(void **state)
{
    workload_plan_done(&plan);
    set = json_free(set);
    pods = json_free(pods);
    return 0;
}

/* The writes as "VERB NAME", separated by blanks; a new pod has the name "+". */
static const char *writes(void)
{
    static char text[512];
    static const char *const verbs[] = {"create", "update", "patch", "delete"};
    size_t size = 0;
    text[0] = '\0';
    for (size_t i = 0; i < plan.n_writes; i++) {
        const struct workload_write *w = &plan.writes[i];
        size += (size_t) snprintf(text + size, sizeof text - size, "%s%s %s", size ? " " : "",
                                  verbs[w->verb], w->name ? w->name : "+");
    }
    return text;
}

static void missing_pods_are_created_from_the_template(void **state)
{
    make_plan(&workload_replica_sets, SET("2", ""),
              POD("a", WEB, OWN, READY("2026-01-01T00:00:00Z")));
    assert_string_equal(writes(), "create +");
    assert_json(plan.writes[0].body,
                "{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'namespace': 'ns', "
                "'generateName': 'rs-', 'labels': {'app': 'web', 'tier': 'x'}, "
                "'annotations': {'a': 'b'}, 'ownerReferences': [{'apiVersion': 'apps/v1', "
                "'kind': 'ReplicaSet', 'name': 'rs', 'uid': 'u', 'controller': true, "
                "'blockOwnerDeletion': true}]}, "
                "'spec': {'containers': [{'name': 'c', 'image': 'i'}]}}");
    assert_string_equal(plan.writes[0].reason, "SuccessfulCreate");
    assert_json(json_get(plan.status, "status"),
                "{'replicas': 1, 'fullyLabeledReplicas': 1, 'readyReplicas': 1, "
                "'availableReplicas': 1, 'observedGeneration': 7}");
}

static void at_most_a_burst_is_created_at_once(void **state)
{
    make_plan(&workload_replica_sets, SET("1200", ""), "");
    assert_int_equal(plan.n_writes, REPLICAS_BURST);
}

static void pods_on_their_way_out_and_ended_ones_do_not_count(void **state)
{
    make_plan(&workload_replica_sets, SET("2", ""),
              POD("a", WEB, OWN ", 'deletionTimestamp': '2026-01-01T00:00:00Z'", "") "," POD(
                  "b", WEB, OWN,
                  ", 'status': {'phase': 'Failed'}") "," POD("c", WEB, OWN,
                                                             ", 'status': {'phase': 'Succeeded'}"));
    assert_string_equal(writes(), "create + create +");
    assert_json(json_path(plan.status, "status", "replicas", NULL), "0");
}

static void pods_are_adopted_and_released_by_their_labels(void **state)
{
    make_plan(&workload_replica_sets, SET("2", ""),
              POD("stray", WEB, "", "") "," POD("left", "'app': 'db'", OWN, "") "," POD(
                  "foreign", WEB, ", " OWNER("other"), "") "," POD("other", "'app': 'db'", "", ""));
    /* An adoption comes first: the owner is read before it. */
    assert_string_equal(writes(), "patch stray patch left create +");
    assert_int_equal(plan.writes[0].stage, WORKLOAD_ADOPT);
    assert_json(plan.writes[0].body,
                "{'metadata': {'uid': 'p-stray', 'ownerReferences': [{'apiVersion': 'apps/v1', "
                "'kind': 'ReplicaSet', 'name': 'rs', 'uid': 'u', 'controller': true, "
                "'blockOwnerDeletion': true}]}}");
    assert_json(plan.writes[1].body, "{'metadata': {'uid': 'p-left', 'ownerReferences': "
                                     "[{'$patch': 'delete', 'uid': 'u'}]}}");
}

/* A pod of another namespace is never touched, whatever it says about its owner. */
static void pods_of_other_namespaces_are_ignored(void **state)
{
    make_plan(&workload_replica_sets, SET("0", ""),
              "{'metadata': {'name': 'far', 'namespace': 'elsewhere', 'uid': 'p-far', "
              "'labels': {" WEB "}" OWN "}}, {'metadata': {'name': 'farther', 'namespace': "
              "'elsewhere', 'uid': 'p-farther', 'labels': {" WEB "}}}");
    assert_string_equal(writes(), "");
}

static void an_owner_in_deletion_only_counts(void **state)
{
    CLEANUP_FREE char *text = xstrdup(SET("2", ""));
    CLEANUP(json_free) struct json *o = from(text);
    json_set_string(json_get(o, "metadata"), "deletionTimestamp", "2026-01-01T00:00:00Z");
    CLEANUP_FREE char *ending = json_to_text(o);
    make_plan(&workload_replica_sets, ending, POD("a", WEB, OWN, "") "," POD("b", WEB, "", ""));
    assert_string_equal(writes(), "");
    assert_json(json_path(plan.status, "status", "replicas", NULL), "1");
}

static void a_replication_controller_selects_by_a_map(void **state)
{
    make_plan(&workload_replication_controllers,
              "{'metadata': {'name': 'rc', 'namespace': 'ns', 'uid': 'u'}, 'spec': {'replicas': 1, "
              "'selector': {'app': 'web'}, 'template': {'metadata': {'labels': {'app': 'web'}}, "
              "'spec': {}}}}",
              POD("stray", WEB, "", ""));
    assert_string_equal(writes(), "patch stray");
}

/* The order of Kubernetes' ActivePodsWithRanks: in each line the first pod goes. */
static void victims_are_chosen_as_kubernetes_does(void **state)
{
#define AT(node) ", 'spec': {'nodeName': '" node "'}"
#define RAN(node, since) AT(node) READY(since)
#define OLD "2026-01-01T00:00:00Z"
#define NEWER "2026-01-01T00:58:00Z"
#define COST(n) OWN ", 'annotations': {'controller.kubernetes.io/pod-deletion-cost': '" n "'}"
#define RESTARTED(node, since, n)                                                \
    AT(node)                                                                     \
    ", 'status': {'phase': 'Running', 'containerStatuses': [{'restartCount': " n \
    "}], 'conditions': [{'type': 'Ready', 'status': 'True', 'lastTransitionTime': '" since "'}]}"
    static const struct {
        const char *what, *first, *second;
    } cases[] = {
        {"no node", POD("a", WEB, OWN, ", 'status': {'phase': 'Pending'}"),
         POD("b", WEB, OWN, AT("n1"))},
        {"pending before unknown", POD("a", WEB, OWN, AT("n1") ", 'status': {'phase': 'Pending'}"),
         POD("b", WEB, OWN, AT("n1") ", 'status': {'phase': 'Unknown'}")},
        {"unknown before running", POD("a", WEB, OWN, AT("n1") ", 'status': {'phase': 'Unknown'}"),
         POD("b", WEB, OWN, AT("n1") ", 'status': {'phase': 'Running'}")},
        {"not ready", POD("a", WEB, OWN, AT("n1") ", 'status': {'phase': 'Running'}"),
         POD("b", WEB, OWN, RAN("n1", OLD))},
        {"not ready, whatever it costs",
         POD("a", WEB, COST("100"), AT("n1") ", 'status': {'phase': 'Running'}"),
         POD("b", WEB, COST("-100"), RAN("n1", OLD))},
        {"low cost", POD("a", WEB, COST("-1"), RAN("n1", OLD)),
         POD("b", WEB, OWN, RAN("n2", NEWER))},
        {"a cost that is no number is 0", POD("a", WEB, COST("+5"), RAN("n1", NEWER)),
         POD("b", WEB, COST("1"), RAN("n2", OLD))},
        {"ready for a shorter time", POD("a", WEB, OWN, RAN("n1", NEWER)),
         POD("b", WEB, OWN, RAN("n2", OLD))},
        {"more restarts", POD("a", WEB, OWN, RESTARTED("n1", OLD, "3")),
         POD("b", WEB, OWN, RESTARTED("n2", OLD, "2"))},
        {"younger",
         POD("a", WEB, OWN ", 'creationTimestamp': '2026-01-01T00:58:00Z'", RAN("n1", OLD)),
         POD("b", WEB, OWN ", 'creationTimestamp': '2025-12-01T00:00:00Z'", RAN("n2", OLD))},
        {"ages of one power of two: the uid decides",
         POD("a", WEB, OWN, RAN("n1", "2026-01-01T00:10:00Z")),
         POD("b", WEB, OWN, RAN("n2", "2026-01-01T00:12:00Z"))},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *one = xasprintf("%s,%s", cases[i].first, cases[i].second);
        CLEANUP_FREE char *two = xasprintf("%s,%s", cases[i].second, cases[i].first);
        make_plan(&workload_replica_sets, SET("1", ""), one);
        if (!streq(writes(), "delete a")) {
            fail_msg("%s: %s", cases[i].what, writes());
        }
        make_plan(&workload_replica_sets, SET("1", ""), two);
        if (!streq(writes(), "delete a")) {
            fail_msg("%s, the other way round: %s", cases[i].what, writes());
        }
    }
    /* Two on one node: one of them goes, though the third is younger. */
    make_plan(&workload_replica_sets, SET("2", ""),
              POD("a", WEB, OWN, RAN("n1", OLD)) "," POD("b", WEB, OWN, RAN("n1", OLD)) "," POD(
                  "c", WEB, OWN, RAN("n2", NEWER)));
    assert_true(streq(writes(), "delete a") || streq(writes(), "delete b"));
}

static void a_pod_is_available_after_its_time(void **state)
{
    make_plan(&workload_replica_sets, SET("1", ", 'minReadySeconds': 600"),
              POD("a", WEB, OWN, READY("2026-01-01T00:55:00Z")));
    assert_json(json_get(plan.status, "status"),
                "{'replicas': 1, 'fullyLabeledReplicas': 1, 'readyReplicas': 1, "
                "'availableReplicas': 0, 'observedGeneration': 7}");
    assert_int_equal(plan.recheck_ms, NOW + 300000);
    make_plan(&workload_replica_sets, SET("1", ", 'minReadySeconds': 300"),
              POD("a", WEB, OWN, READY("2026-01-01T00:55:00Z")));
    assert_json(json_path(plan.status, "status", "availableReplicas", NULL), "1");
    assert_int_equal(plan.recheck_ms, 0);
}

static void a_failure_is_a_condition_until_it_is_over(void **state)
{
    make_plan(&workload_replica_sets, SET("1", ""), "");
    plan.outcome(plan.status, &plan.writes[0], "exceeded quota", NOW);
    const struct json *c = condition_find(plan.status, "ReplicaFailure");
    assert_json(c, "{'type': 'ReplicaFailure', 'status': 'True', 'reason': 'FailedCreate', "
                   "'message': 'exceeded quota', 'lastTransitionTime': '2026-01-01T01:00:00Z'}");
    plan.outcome(plan.status, NULL, NULL, NOW + 1);
    assert_null(condition_find(plan.status, "ReplicaFailure"));
    /* The next attempt has another name, and the same reason: nothing is to be written. */
    plan.outcome(plan.status, &plan.writes[0], "pods \"web-aaaaa\" is forbidden: quota", NOW);
    CLEANUP(json_free) struct json *before = json_clone(plan.status);
    plan.outcome(plan.status, &plan.writes[0], "pods \"web-bbbbb\" is forbidden: quota", NOW + 1);
    assert_true(json_equal(before, plan.status));
    plan.outcome(plan.status, &plan.writes[0], "pods \"web-bbbbb\" is forbidden: SCC", NOW + 1);
    assert_false(json_equal(before, plan.status));
}

/* ---- histories ---- */

static bool is_bare(const struct json *pod)
{
    return !obj_controller(pod);
}

static bool is_counted(const struct json *pod)
{
    struct workload_child c = {pod, obj_is_terminating(pod)};
    return workload_pod_is_active(&c) && obj_controller(pod);
}

static void step(struct world *w)
{
    struct json *rs = world_get(w, &workload_replica_sets, "rs");
    struct workload_child *list;
    size_t n = world_children(w, &workload_pods, rs, &list), active = 0;
    CLEANUP_PLAN struct workload_plan p = {0};
    const struct json **related = xcalloc(n + 1, sizeof *related);
    for (size_t i = 0; i < n; i++) {
        if (is_counted(list[i].obj)) {
            related[active++] = list[i].obj;
        }
    }
    replicas_plan(&workload_replica_sets, rs, list, n, related, active, w->now_ms, &p);
    world_run(w, &workload_replica_sets, rs, &p);
    free(list);
    free((void *) related);
    world_check_controllers(w);
}

static struct json *random_pod(const struct world *w)
{
    struct smap_entry *e;
    struct json *found = NULL;
    unsigned seen = 0;
    SMAP_FOREACH (e, &w->objects) {
        if (str_has_prefix(e->key, "pods/") && below(++seen) == 0) {
            found = e->value;
        }
    }
    return found;
}

static void disturb(struct world *w)
{
    struct json *rs = world_get(w, &workload_replica_sets, "rs"), *pod = random_pod(w);
    switch (below(7)) {
    case 0:
        json_set_int(json_get(rs, "spec"), "replicas", below(8));
        world_touch(w, rs);
        break;
    case 1:
        if (pod) {
            world_end_pod(w, pod);
        }
        break;
    case 2:
        if (pod) {
            world_set_phase(w, pod, "Failed");
        }
        break;
    case 3:
        if (pod) {
            json_set_string(json_path(pod, "metadata", "labels", NULL), "app",
                            chance(50) ? "web" : "db");
        }
        break;
    case 4:
        (void) world_add(w, &workload_pods,
                         from("{'metadata': {'generateName': 'bare-', 'labels': {'app': 'web'}}}"));
        break;
    case 5:
        w->refusal = chance(50) ? "exceeded quota" : NULL;
        break;
    default:
        if (pod) {
            world_set_ready(w, pod, false);
        }
        break;
    }
}

static void histories_end_with_the_wanted_pods(void **state)
{
    uint64_t rounds = rng_setting("REPLICAS_ROUNDS", 60);
    uint64_t first = rng_first_seed("REPLICAS_SEED", rounds, "histories");
    for (uint64_t seed = first; seed < first + rounds; seed++) {
        struct world w;
        rng_start(seed);
        world_init(&w);
        (void) world_add(&w, &workload_replica_sets, from(SET("3", ", 'minReadySeconds': 2")));
        w.failing = 10;
        for (int i = 0; i < 60; i++) {
            struct json *rs = world_get(&w, &workload_replica_sets, "rs");
            if (chance(30)) {
                disturb(&w);
            }
            size_t before = world_count(&w, &workload_pods, is_counted), created = w.created;
            size_t deleted = w.deleted, bare = world_count(&w, &workload_pods, is_bare);
            step(&w);
            /* No plan makes more than what is wanted, nor removes more than what is too many. */
            size_t wanted = (size_t) json_get_int_or(json_path(rs, "spec", "replicas", NULL), 0);
            size_t after = world_count(&w, &workload_pods, is_counted);
            assert_true(w.created == created || after <= wanted);
            assert_true(w.deleted == deleted || after >= wanted);
            assert_true(after <= MAX(wanted, before + bare));
            world_kubelets(&w, NULL);
        }
        w.failing = 0;
        w.refusal = NULL;
        for (int i = 0; i < 12; i++) {
            step(&w);
            world_settle_pods(&w, NULL);
        }
        step(&w);
        struct json *rs = world_get(&w, &workload_replica_sets, "rs");
        int64_t wanted = json_get_int_or(json_path(rs, "spec", "replicas", NULL), 0);
        assert_int_equal(world_count(&w, &workload_pods, is_counted), wanted);
        assert_int_equal(json_get_int_or(json_path(rs, "status", "availableReplicas", NULL), -1),
                         wanted);
        assert_null(condition_find(rs, "ReplicaFailure"));
        size_t created = w.created, deleted = w.deleted;
        step(&w);
        assert_int_equal(w.created, created);
        assert_int_equal(w.deleted, deleted);
        world_done(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(missing_pods_are_created_from_the_template, drop_plan),
        cmocka_unit_test_teardown(at_most_a_burst_is_created_at_once, drop_plan),
        cmocka_unit_test_teardown(pods_on_their_way_out_and_ended_ones_do_not_count, drop_plan),
        cmocka_unit_test_teardown(pods_are_adopted_and_released_by_their_labels, drop_plan),
        cmocka_unit_test_teardown(pods_of_other_namespaces_are_ignored, drop_plan),
        cmocka_unit_test_teardown(an_owner_in_deletion_only_counts, drop_plan),
        cmocka_unit_test_teardown(a_replication_controller_selects_by_a_map, drop_plan),
        cmocka_unit_test_teardown(victims_are_chosen_as_kubernetes_does, drop_plan),
        cmocka_unit_test_teardown(a_pod_is_available_after_its_time, drop_plan),
        cmocka_unit_test_teardown(a_failure_is_a_condition_until_it_is_over, drop_plan),
        cmocka_unit_test(histories_end_with_the_wanted_pods),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
