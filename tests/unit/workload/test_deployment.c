/* SPDX-License-Identifier: Apache-2.0 */
/* Deployments: plans for given ReplicaSets, and random histories with their ReplicaSets and pods.
 *
 * DEPLOYMENT_SEED and DEPLOYMENT_ROUNDS in the environment choose the first history and their
 * number. */
#include "workload/deployment.h"

#include "api/condition.h"
#include "api/label_selector.h"
#include "api/obj.h"
#include "json_text.h"
#include "workload/replicas.h"
#include "workload/rollout.h"
#include "workload/template_hash.h"
#include "world.h"

#define DEPLOYMENT                                                                         \
    "{'metadata': {'name': 'web', 'namespace': 'ns', 'uid': 'u', 'generation': 3, "        \
    "'annotations': {'kubernetes.io/change-cause': 'why', "                                \
    "'kubectl.kubernetes.io/last-applied-configuration': '{}'}}, 'spec': {'replicas': 4, " \
    "'selector': {'matchLabels': {'app': 'web'}}, 'progressDeadlineSeconds': 600, "        \
    "'revisionHistoryLimit': 2, 'strategy': {'type': 'RollingUpdate', 'rollingUpdate': "   \
    "{'maxSurge': '25%', 'maxUnavailable': '25%'}}, 'template': {'metadata': {'labels': "  \
    "{'app': 'web'}}, 'spec': {'containers': [{'name': 'c', 'image': 'one'}]}}}}"

static struct world w;

static int start_world(void **state)
{
    rng_start(1);
    world_init(&w);
    return 0;
}

static int end_world(void **state)
{
    world_done(&w);
    return 0;
}

/* ---- a cluster with both controllers ---- */

static struct json *deployment(void)
{
    return world_get(&w, &workload_deployments, "web");
}

static size_t pods_of(const struct json *d, const struct json ***ret)
{
    struct smap_entry *e;
    size_t n = 0;
    *ret = xcalloc(smap_size(&w.objects) + 1, sizeof **ret);
    SMAP_FOREACH (e, &w.objects) {
        if (str_has_prefix(e->key, "pods/")) {
            (*ret)[n++] = e->value;
        }
    }
    return n;
}

static void step_deployment(void)
{
    struct json *d = deployment();
    struct workload_child *sets;
    const struct json **pods;
    size_t n = world_children(&w, &workload_replica_sets, d, &sets), n_pods = pods_of(d, &pods);
    CLEANUP_PLAN struct workload_plan p = {0};
    deployment_plan(d, sets, n, pods, n_pods, w.now_ms, &p);
    world_run(&w, &workload_deployments, d, &p);
    free(sets);
    free((void *) pods);
}

static void step_sets(void)
{
    struct smap_entry *e;
    char *names[64];
    size_t n = 0;
    SMAP_FOREACH (e, &w.objects) {
        if (str_has_prefix(e->key, "replicasets/") && n < ARRAY_SIZE(names)) {
            names[n++] = xstrdup(obj_name(e->value));
        }
    }
    for (size_t i = 0; i < n; i++) {
        struct json *rs = world_get(&w, &workload_replica_sets, names[i]);
        struct workload_child *pods;
        size_t n_pods = world_children(&w, &workload_pods, rs, &pods);
        CLEANUP_PLAN struct workload_plan p = {0};
        replicas_plan(&workload_replica_sets, rs, pods, n_pods, NULL, 0, w.now_ms, &p);
        world_run(&w, &workload_replica_sets, rs, &p);
        free(pods);
        free(names[i]);
    }
}

static void settle(const char *broken)
{
    for (int i = 0; i < 40; i++) {
        step_deployment();
        step_sets();
        world_settle_pods(&w, broken);
    }
}

static void set_image(const char *image)
{
    struct json *d = deployment();
    json_set_string(json_at(json_path(d, "spec", "template", "spec", "containers", NULL), 0),
                    "image", image);
    world_touch(&w, d);
}

static const struct json *set_of_image(const char *image)
{
    struct smap_entry *e;
    SMAP_FOREACH (e, &w.objects) {
        const struct json *ct =
            json_at(json_path(e->value, "spec", "template", "spec", "containers", NULL), 0);
        if (str_has_prefix(e->key, "replicasets/") && streq(json_get_text(ct, "image"), image)) {
            return e->value;
        }
    }
    return NULL;
}

static int64_t number(const struct json *o, const char *part, const char *key)
{
    return json_get_int_or(json_path(o, part, key, NULL), 0);
}

static const char *reason(const char *type)
{
    return json_get_text(condition_find(deployment(), type), "reason");
}

static void add_deployment(void)
{
    (void) world_add(&w, &workload_deployments, from(DEPLOYMENT));
}

/* ---- single steps ---- */

static void the_first_set_has_the_template_and_annotations(void **state)
{
    add_deployment();
    step_deployment();
    const struct json *rs = set_of_image("one");
    char hash[TEMPLATE_HASH_SIZE];
    template_hash(json_path(deployment(), "spec", "template", NULL), 0, hash);
    CLEANUP_FREE char *name = xasprintf("web-%s", hash);
    assert_string_equal(obj_name(rs), name);
    assert_string_equal(obj_label(rs, "pod-template-hash"), hash);
    assert_string_equal(
        json_path_string(rs, "spec", "selector", "matchLabels", "pod-template-hash", NULL), hash);
    assert_string_equal(
        json_path_string(rs, "spec", "template", "metadata", "labels", "pod-template-hash", NULL),
        hash);
    char made_from[TEMPLATE_HASH_SIZE];
    template_hash(json_path(deployment(), "spec", "template", NULL), 0, made_from);
    assert_string_equal(obj_annotation(rs, DEPLOYMENT_MADE_FROM), made_from);
    CLEANUP(json_free)
    struct json *notes = json_clone(json_path(rs, "metadata", "annotations", NULL));
    json_remove(notes, DEPLOYMENT_MADE_FROM);
    assert_json(notes,
                "{'kubernetes.io/change-cause': 'why', 'deployment.kubernetes.io/revision': '1', "
                "'deployment.kubernetes.io/desired-replicas': '4', "
                "'deployment.kubernetes.io/max-replicas': '5'}");
    assert_int_equal(number(rs, "spec", "replicas"), 4);
    assert_string_equal(obj_annotation(deployment(), DEPLOYMENT_REVISION), "1");
    assert_string_equal(reason("Progressing"), "NewReplicaSetCreated");
    assert_string_equal(reason("Available"), "MinimumReplicasUnavailable");
}

static void a_rollout_completes_and_can_go_back(void **state)
{
    add_deployment();
    settle(NULL);
    assert_string_equal(reason("Progressing"), "NewReplicaSetAvailable");
    assert_string_equal(reason("Available"), "MinimumReplicasAvailable");
    set_image("two");
    settle(NULL);
    assert_int_equal(number(set_of_image("one"), "spec", "replicas"), 0);
    assert_int_equal(number(set_of_image("two"), "spec", "replicas"), 4);
    assert_string_equal(obj_annotation(deployment(), DEPLOYMENT_REVISION), "2");
    /* The earlier template: the earlier set gets another number, and remembers the first. */
    set_image("one");
    settle(NULL);
    assert_int_equal(number(set_of_image("one"), "spec", "replicas"), 4);
    assert_string_equal(obj_annotation(set_of_image("one"), DEPLOYMENT_REVISION), "3");
    assert_string_equal(
        obj_annotation(set_of_image("one"), "deployment.kubernetes.io/revision-history"), "1");
    assert_int_equal(world_count(&w, &workload_replica_sets, NULL), 2);
}

static void old_sets_beyond_the_limit_are_deleted(void **state)
{
    add_deployment();
    for (int i = 0; i < 6; i++) {
        CLEANUP_FREE char *image = xasprintf("image%d", i);
        set_image(image);
        settle(NULL);
    }
    assert_int_equal(world_count(&w, &workload_replica_sets, NULL), 3);
    assert_non_null(set_of_image("image3"));
    assert_null(set_of_image("image2"));
}

static void a_broken_rollout_keeps_what_is_available_and_fails(void **state)
{
    add_deployment();
    settle(NULL);
    set_image("broken");
    settle("broken");
    /* 4 desired, 5 at most, 3 available at least. */
    assert_int_equal(number(set_of_image("one"), "spec", "replicas"), 3);
    assert_int_equal(number(set_of_image("broken"), "spec", "replicas"), 2);
    assert_string_equal(reason("Progressing"), "ReplicaSetUpdated");
    w.now_ms += 601000;
    step_deployment();
    assert_string_equal(reason("Progressing"), "ProgressDeadlineExceeded");
    assert_string_equal(json_get_text(condition_find(deployment(), "Progressing"), "status"),
                        "False");
    /* Another template repairs it without a hand (kubernetes#16737). */
    set_image("good");
    settle("broken");
    assert_int_equal(number(set_of_image("good"), "spec", "replicas"), 4);
    assert_string_equal(reason("Progressing"), "NewReplicaSetAvailable");
}

static void a_pause_holds_the_template_but_not_the_number(void **state)
{
    add_deployment();
    settle(NULL);
    json_set_bool(json_get(deployment(), "spec"), "paused", true);
    set_image("two");
    settle(NULL);
    assert_null(set_of_image("two"));
    assert_string_equal(reason("Progressing"), "DeploymentPaused");
    json_set_int(json_get(deployment(), "spec"), "replicas", 6);
    world_touch(&w, deployment());
    settle(NULL);
    assert_int_equal(number(set_of_image("one"), "spec", "replicas"), 6);
    assert_int_equal(number(deployment(), "status", "replicas"), 6);
    assert_int_equal(number(deployment(), "status", "observedGeneration"),
                     obj_generation(deployment()));
    json_remove(json_get(deployment(), "spec"), "paused");
    world_touch(&w, deployment());
    step_deployment();
    assert_string_equal(reason("Progressing"), "NewReplicaSetCreated");
    settle(NULL);
    assert_int_equal(number(set_of_image("two"), "spec", "replicas"), 6);
}

static void in_the_middle_of_a_rollout_all_sets_are_scaled(void **state)
{
    add_deployment();
    json_set_int(json_get(deployment(), "spec"), "replicas", 10);
    settle(NULL);
    set_image("broken");
    settle("broken");
    assert_int_equal(number(set_of_image("one"), "spec", "replicas"), 8);
    assert_int_equal(number(set_of_image("broken"), "spec", "replicas"), 5);
    json_set_int(json_get(deployment(), "spec"), "replicas", 30);
    world_touch(&w, deployment());
    step_deployment();
    /* 38 pods in all, where there were 13. */
    assert_int_equal(number(set_of_image("one"), "spec", "replicas"), 23);
    assert_int_equal(number(set_of_image("broken"), "spec", "replicas"), 15);
}

static void a_taken_name_leads_to_another_one(void **state)
{
    char hash[TEMPLATE_HASH_SIZE];
    add_deployment();
    template_hash(json_path(deployment(), "spec", "template", NULL), 0, hash);
    CLEANUP_FREE char *name = xasprintf("web-%s", hash);
    struct json *taken = from("{'spec': {'replicas': 0, 'selector': {'matchLabels': {'x': 'y'}}}}");
    json_set_string(json_ensure_object(taken, "metadata"), "name", name);
    (void) world_add(&w, &workload_replica_sets, taken);
    step_deployment();
    assert_int_equal(number(deployment(), "status", "collisionCount"), 1);
    assert_null(set_of_image("one"));
    step_deployment();
    assert_non_null(set_of_image("one"));
    assert_string_not_equal(obj_name(set_of_image("one")), name);
    settle(NULL);
    assert_int_equal(number(deployment(), "status", "availableReplicas"), 4);
}

/* Something changes the template of each set at its creation: there is an end to new sets. */
static void a_template_that_is_always_changed_makes_no_sets_without_end(void **state)
{
    add_deployment();
    for (int i = 0; i < 20; i++) {
        struct smap_entry *e;
        step_deployment();
        SMAP_FOREACH (e, &w.objects) {
            if (str_has_prefix(e->key, "replicasets/")) {
                json_set_string(json_path(e->value, "spec", "template", "spec", NULL),
                                "schedulerName", "other");
            }
        }
    }
    assert_int_equal(world_count(&w, &workload_replica_sets, NULL), 2);
    const struct json *c = condition_find(deployment(), "Progressing");
    assert_string_equal(json_get_text(c, "status"), "False");
    assert_string_equal(json_get_text(c, "reason"), "ReplicaSetTemplateChanged");
    assert_non_null(strstr(json_get_text(c, "message"), "replica set \"web-"));
    /* Another template is tried again, and one that stays as it is completes. */
    set_image("two");
    settle(NULL);
    assert_int_equal(json_get_int_or(json_path(deployment(), "status", "updatedReplicas", NULL), 0),
                     4);
}

static void recreate_never_mixes_templates(void **state)
{
    CLEANUP(json_free)
    struct json *recreate = from("{'type': 'Recreate'}");
    add_deployment();
    json_set(json_get(deployment(), "spec"), "strategy", json_clone(recreate));
    settle(NULL);
    set_image("two");
    for (int i = 0; i < 60; i++) {
        size_t one = 0, two = 0;
        struct smap_entry *e;
        step_deployment();
        step_sets();
        world_kubelets(&w, NULL);
        SMAP_FOREACH (e, &w.objects) {
            const struct json *ct = json_at(json_path(e->value, "spec", "containers", NULL), 0);
            one += str_has_prefix(e->key, "pods/") && streq(json_get_text(ct, "image"), "one");
            two += str_has_prefix(e->key, "pods/") && streq(json_get_text(ct, "image"), "two");
        }
        assert_true(one == 0 || two == 0);
    }
    settle(NULL);
    assert_int_equal(number(set_of_image("two"), "status", "availableReplicas"), 4);
}

/* The old set is asked for pods that are not there yet: it shrinks before another set is made. */
static void recreate_shrinks_sets_without_pods_first(void **state)
{
    add_deployment();
    json_set(json_get(deployment(), "spec"), "strategy", from("{'type': 'Recreate'}"));
    step_deployment();
    assert_int_equal(number(set_of_image("one"), "spec", "replicas"), 4);
    set_image("two");
    step_deployment();
    assert_int_equal(number(set_of_image("one"), "spec", "replicas"), 0);
    assert_null(set_of_image("two"));
    step_deployment();
    assert_non_null(set_of_image("two"));
}

static void a_failure_of_a_set_is_shown(void **state)
{
    add_deployment();
    w.refusal = "exceeded quota";
    for (int i = 0; i < 3; i++) {
        step_deployment();
        step_sets();
    }
    const struct json *c = condition_find(deployment(), "ReplicaFailure");
    assert_string_equal(json_get_text(c, "reason"), "FailedCreate");
    assert_string_equal(json_get_text(c, "message"), "exceeded quota");
    w.refusal = NULL;
    settle(NULL);
    assert_null(condition_find(deployment(), "ReplicaFailure"));
}

static void hashes_do_not_depend_on_the_order_of_members(void **state)
{
    CLEANUP(json_free) struct json *a = from("{'x': {'a': 1, 'b': [1, 2]}, 'y': 's'}");
    CLEANUP(json_free) struct json *b = from("{'y': 's', 'x': {'b': [1, 2], 'a': 1}}");
    CLEANUP(json_free) struct json *c = from("{'y': 's', 'x': {'b': [2, 1], 'a': 1}}");
    char one[TEMPLATE_HASH_SIZE], two[TEMPLATE_HASH_SIZE];
    template_hash(a, 0, one);
    template_hash(b, 0, two);
    assert_string_equal(one, two);
    template_hash(c, 0, two);
    assert_string_not_equal(one, two);
    template_hash(a, 1, two);
    assert_string_not_equal(one, two);
}

/* ---- histories ---- */

static bool is_available(const struct json *pod)
{
    struct workload_child c = {pod, obj_is_terminating(pod)};
    return workload_pod_is_active(&c) && workload_pod_is_ready(pod);
}

static bool is_active(const struct json *pod)
{
    struct workload_child c = {pod, obj_is_terminating(pod)};
    return workload_pod_is_active(&c);
}

static int64_t sum_of_specs(void)
{
    struct smap_entry *e;
    int64_t n = 0;
    SMAP_FOREACH (e, &w.objects) {
        n += str_has_prefix(e->key, "replicasets/") ? number(e->value, "spec", "replicas") : 0;
    }
    return n;
}

/* The pods that are left when the garbage collector has removed those whose set is gone: an old set
 * may be deleted while the deletion of its last pods is tried again. */
static size_t pods_with_a_set(void)
{
    struct smap_entry *e;
    size_t n = 0;
    SMAP_FOREACH (e, &w.objects) {
        const struct json *ref = str_has_prefix(e->key, "pods/") ? obj_controller(e->value) : NULL;
        const char *name = ref ? json_get_text(ref, "name") : "";
        const struct json *set = world_get(&w, &workload_replica_sets, name);
        n += set && streq(obj_uid(set), json_get_text(ref, "uid"));
    }
    return n;
}

/* Nothing but the controllers ends pods here: what is available stays, within the bounds. */
static void no_rollout_goes_below_or_above_its_bounds(void **state)
{
    static const char *const shares[] = {"0", "1", "2", "'25%'", "'50%'", "'100%'"};
    uint64_t rounds = rng_setting("DEPLOYMENT_ROUNDS", 40);
    uint64_t first = rng_first_seed("DEPLOYMENT_SEED", rounds, "histories");
    for (uint64_t seed = first; seed < first + rounds; seed++) {
        rng_start(seed);
        world_init(&w);
        add_deployment();
        struct json *rolling = json_path(deployment(), "spec", "strategy", "rollingUpdate", NULL);
        json_set(rolling, "maxSurge", from(PICK(shares)));
        json_set(rolling, "maxUnavailable", from(PICK(shares)));
        int64_t desired = 1 + below(8), surge, unavailable, changes = 0;
        json_set_int(json_get(deployment(), "spec"), "replicas", desired);
        rollout_bounds(json_get(rolling, "maxSurge"), json_get(rolling, "maxUnavailable"), desired,
                       &surge, &unavailable);
        settle(NULL);
        /* Sets that are late have pods beyond their size for a while. */
        bool prompt = seed % 2;
        w.failing = prompt ? 0 : 10;
        for (int i = 0; i < 150; i++) {
            if (chance(8)) {
                CLEANUP_FREE char *image = xasprintf("image%lld", (long long) changes++ % 4);
                set_image(image);
            }
            if (prompt || chance(70)) {
                step_deployment();
            }
            if (prompt || chance(70)) {
                step_sets();
            }
            world_kubelets(&w, "image3");
            world_check_controllers(&w);
            assert_true(sum_of_specs() <= desired + surge);
            assert_true(!prompt ||
                        world_count(&w, &workload_pods, is_active) <= (size_t) (desired + surge));
            assert_true(world_count(&w, &workload_pods, is_available) + (size_t) unavailable >=
                        (size_t) desired);
        }
        w.failing = 0;
        set_image("last");
        settle(NULL);
        assert_int_equal(number(set_of_image("last"), "status", "availableReplicas"), desired);
        assert_int_equal(pods_with_a_set(), desired);
        assert_int_equal(number(deployment(), "status", "availableReplicas"), desired);
        world_done(&w);
    }
}

/* Anything happens: pods end, users scale, pause and change; in the end all is as it should be. */
static void disturbed_histories_end_well(void **state)
{
    uint64_t rounds = rng_setting("DEPLOYMENT_ROUNDS", 40);
    uint64_t first = rng_first_seed("DEPLOYMENT_SEED", rounds, "disturbed histories");
    for (uint64_t seed = first; seed < first + rounds; seed++) {
        rng_start(seed);
        world_init(&w);
        add_deployment();
        w.failing = 15;
        for (int i = 0; i < 150; i++) {
            struct smap_entry *e;
            struct json *spec = json_get(deployment(), "spec");
            switch (below(12)) {
            case 0:
                set_image(PICK(((const char *const[]){"one", "two", "three", "broken"})));
                break;
            case 1:
                json_set_int(spec, "replicas", below(7));
                world_touch(&w, deployment());
                break;
            case 2:
                json_set_bool(spec, "paused", chance(40));
                world_touch(&w, deployment());
                break;
            case 3:
                SMAP_FOREACH (e, &w.objects) {
                    if (str_has_prefix(e->key, "pods/") && chance(30)) {
                        world_set_phase(&w, e->value, "Failed");
                    }
                }
                break;
            case 4:
                SMAP_FOREACH (e, &w.objects) {
                    if (str_has_prefix(e->key, "replicasets/") && chance(30)) {
                        json_set_int(json_get(e->value, "spec"), "replicas", below(5));
                        world_touch(&w, e->value);
                    }
                }
                break;
            case 5:
                w.refusal = chance(30) ? "exceeded quota" : NULL;
                break;
            default:
                break;
            }
            step_deployment();
            step_sets();
            world_kubelets(&w, "broken");
            world_check_controllers(&w);
        }
        w.failing = 0;
        w.refusal = NULL;
        json_set_bool(json_get(deployment(), "spec"), "paused", false);
        set_image("last");
        settle(NULL);
        int64_t desired = number(deployment(), "spec", "replicas");
        assert_int_equal(number(set_of_image("last"), "status", "availableReplicas"), desired);
        assert_int_equal(sum_of_specs(), desired);
        assert_true(world_count(&w, &workload_replica_sets, NULL) <= 3);
        world_done(&w);
    }
}

int main(void)
{
#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, start_world, end_world)
    const struct CMUnitTest tests[] = {
        WITH_WORLD(the_first_set_has_the_template_and_annotations),
        WITH_WORLD(a_rollout_completes_and_can_go_back),
        WITH_WORLD(old_sets_beyond_the_limit_are_deleted),
        WITH_WORLD(a_broken_rollout_keeps_what_is_available_and_fails),
        WITH_WORLD(a_pause_holds_the_template_but_not_the_number),
        WITH_WORLD(in_the_middle_of_a_rollout_all_sets_are_scaled),
        WITH_WORLD(a_taken_name_leads_to_another_one),
        WITH_WORLD(a_template_that_is_always_changed_makes_no_sets_without_end),
        WITH_WORLD(recreate_never_mixes_templates),
        WITH_WORLD(recreate_shrinks_sets_without_pods_first),
        WITH_WORLD(a_failure_of_a_set_is_shown),
        cmocka_unit_test(hashes_do_not_depend_on_the_order_of_members),
        cmocka_unit_test(no_rollout_goes_below_or_above_its_bounds),
        cmocka_unit_test(disturbed_histories_end_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
