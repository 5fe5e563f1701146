/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: policies, conditions and counting, and random histories.
 *
 * JOB_SEED and JOB_ROUNDS in the environment choose the first history and their number. */
#include "workload/job.h"

#include "api/condition.h"
#include "api/obj.h"
#include "json_text.h"
#include "workload/indexes.h"
#include "world.h"

#define JOB(more)                                                                          \
    "{'metadata': {'name': 'j', 'namespace': 'ns'}, 'spec': {'selector': {'matchLabels': " \
    "{'job': 'j'}}, 'template': {'metadata': {'labels': {'job': 'j'}}, 'spec': "           \
    "{'restartPolicy': 'Never', 'containers': [{'name': 'c', 'image': 'i'}]}}, "           \
    "'podReplacementPolicy': 'TerminatingOrFailed'" more "}}"

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

static void add_job(const char *text)
{
    (void) world_add(&w, &workload_jobs, from(text));
}

static struct json *job(void)
{
    return world_get(&w, &workload_jobs, "j");
}

static void step(void)
{
    struct workload_child *pods;
    CLEANUP_PLAN struct workload_plan p = {0};
    size_t n = world_children(&w, &workload_pods, job(), &pods);
    job_plan(job(), pods, n, w.now_ms, &p);
    world_run(&w, &workload_jobs, job(), &p);
    free(pods);
}

static bool is_active(const struct json *pod)
{
    struct workload_child c = {pod, obj_is_terminating(pod)};
    return workload_pod_is_active(&c);
}

static bool holds(const struct json *pod)
{
    return obj_has_finalizer(pod, JOB_FINALIZER);
}

static size_t active(void)
{
    return world_count(&w, &workload_pods, is_active);
}

static int64_t status(const char *key)
{
    return json_get_int_or(json_path(job(), "status", key, NULL), 0);
}

/* Ends up to 'n' active pods (those of the index 'index', if that is not NULL). */
static void end_pods(size_t n, const char *phase, int code, const char *index)
{
    struct smap_entry *e;
    SMAP_FOREACH (e, &w.objects) {
        struct json *pod = e->value;
        if (!str_has_prefix(e->key, "pods/") || !n || !is_active(pod) ||
            (index && !streq_null(obj_annotation(pod, JOB_INDEX), index))) {
            continue;
        }
        world_set_phase(&w, pod, phase);
        struct json *s = json_append(
            json_ensure_array(json_get(pod, "status"), "containerStatuses"), json_object());
        json_set_string(s, "name", "c");
        json_set_int(json_ensure_object(json_ensure_object(s, "state"), "terminated"), "exitCode",
                     code);
        n--;
    }
}

static void settle(void)
{
    for (int i = 0; i < 12; i++) {
        step();
        world_settle_pods(&w, NULL);
    }
}

static const char *reason(const char *type)
{
    return condition_is_true(job(), type) ? json_get_text(condition_find(job(), type), "reason")
                                          : "";
}

/* ---- sets of indexes ---- */

static void indexes_are_read_and_written(void **state)
{
    static const struct {
        const char *text, *want;
        size_t count;
    } cases[] = {{"", "", 0},           {"0", "0", 1},     {"1,3-5,7", "1,3-5,7", 5},
                 {"0,1,2", "0-2", 3},   {"3,4", "3,4", 2}, {"8-99", "8,9", 2},
                 {"x,2,-,5-3", "2", 1}, {"1-x,6", "6", 1}, {"9,0", "0,9", 2}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
        struct indexes s;
        indexes_parse(cases[i].text, 10, &s);
        indexes_write(&s, &out);
        assert_string_equal(strbuf_cstr(&out), cases[i].want);
        assert_int_equal(indexes_count(&s), cases[i].count);
        indexes_done(&s);
    }
}

/* ---- completions ---- */

static void so_many_run_and_so_many_succeed(void **state)
{
    add_job(JOB(", 'completions': 3, 'parallelism': 2"));
    step();
    assert_int_equal(active(), 2);
    end_pods(1, "Succeeded", 0, NULL);
    step();
    /* First the status has the uid, then the finalizer goes, and then the number counts. */
    assert_int_equal(status("succeeded"), 0);
    assert_int_equal(
        json_count(json_path(job(), "status", "uncountedTerminatedPods", "succeeded", NULL)), 1);
    assert_int_equal(active(), 2);
    step();
    assert_int_equal(status("succeeded"), 1);
    end_pods(1, "Succeeded", 0, NULL);
    settle();
    assert_int_equal(active(), 1);
    end_pods(1, "Succeeded", 0, NULL);
    settle();
    assert_string_equal(reason("Complete"), "CompletionsReached");
    assert_string_equal(reason("SuccessCriteriaMet"), "CompletionsReached");
    assert_int_equal(status("succeeded"), 3);
    assert_non_null(json_path(job(), "status", "completionTime", NULL));
    assert_int_equal(world_count(&w, &workload_pods, NULL), 3);
    assert_int_equal(world_count(&w, &workload_pods, holds), 0);
}

static void without_a_number_one_success_is_enough(void **state)
{
    add_job(JOB(", 'parallelism': 3"));
    step();
    assert_int_equal(active(), 3);
    end_pods(1, "Succeeded", 0, NULL);
    settle();
    assert_int_equal(active(), 2); /* The others run to their end, and no new one comes. */
    end_pods(1, "Failed", 1, NULL);
    settle();
    assert_int_equal(active(), 1);
    end_pods(1, "Succeeded", 0, NULL);
    settle();
    assert_string_equal(reason("Complete"), "CompletionsReached");
    assert_int_equal(status("succeeded"), 2);
    assert_int_equal(status("failed"), 1);
}

static void failures_back_off_and_reach_the_limit(void **state)
{
    int64_t start = w.now_ms;
    add_job(JOB(", 'completions': 1, 'backoffLimit': 2"));
    for (int i = 0; i < 400 && !*reason("Failed"); i++) {
        step();
        end_pods(1, "Failed", 1, NULL);
        w.now_ms += 1000;
    }
    assert_string_equal(reason("Failed"), "BackoffLimitExceeded");
    assert_string_equal(reason("FailureTarget"), "BackoffLimitExceeded");
    assert_int_equal(status("failed"), 3);
    assert_true(w.now_ms - start >= 30000); /* 10 s, then 20 s. */
    assert_true(w.now_ms - start < 60000);
    assert_int_equal(world_count(&w, &workload_pods, NULL), 3);
}

static void pods_deleted_by_users_are_counted_and_replaced(void **state)
{
    struct smap_entry *e;
    add_job(JOB(", 'completions': 1"));
    step();
    SMAP_FOREACH (e, &w.objects) {
        if (str_has_prefix(e->key, "pods/")) {
            world_end_pod(&w, e->value);
        }
    }
    settle();
    w.now_ms += 20000;
    settle();
    assert_int_equal(status("failed"), 1);
    assert_int_equal(active(), 1);
    assert_int_equal(world_count(&w, &workload_pods, NULL), 1);
}

/* A user can remove the finalizer: that pod does not count, and the Job goes on. */
static void a_pod_without_the_finalizer_does_not_count(void **state)
{
    struct smap_entry *e;
    add_job(JOB(", 'completions': 1"));
    step();
    SMAP_FOREACH (e, &w.objects) {
        if (str_has_prefix(e->key, "pods/")) {
            (void) json_remove(json_get(e->value, "metadata"), "finalizers");
        }
    }
    end_pods(1, "Succeeded", 0, NULL);
    settle();
    assert_int_equal(status("succeeded"), 0);
    assert_int_equal(active(), 1);
    end_pods(1, "Succeeded", 0, NULL);
    settle();
    assert_int_equal(status("succeeded"), 1);
    assert_string_equal(reason("Complete"), "CompletionsReached");
}

static void a_pod_that_is_adopted_counts(void **state)
{
    add_job(JOB(", 'completions': 2, 'parallelism': 1, 'manualSelector': true"));
    (void) world_add(&w, &workload_pods,
                     from("{'metadata': {'name': 'bare', 'namespace': 'ns', 'labels': {'job': "
                          "'j'}}, 'spec': {'containers': [{'name': 'c', 'image': 'i'}]}, "
                          "'status': {'phase': 'Running'}}"));
    step();
    assert_true(holds(world_get(&w, &workload_pods, "bare")));
    step();
    assert_int_equal(status("active"), 1);
    assert_int_equal(world_count(&w, &workload_pods, NULL), 1);
    end_pods(1, "Succeeded", 0, NULL);
    settle();
    assert_int_equal(status("succeeded"), 1);
    end_pods(1, "Succeeded", 0, NULL);
    settle();
    assert_int_equal(status("succeeded"), 2);
    assert_string_equal(reason("Complete"), "CompletionsReached");
}

static void restarts_of_containers_count_with_on_failure(void **state)
{
    add_job(JOB(", 'completions': 1, 'backoffLimit': 2"));
    json_set_string(json_path(job(), "spec", "template", "spec", NULL), "restartPolicy",
                    "OnFailure");
    step();
    struct smap_entry *e;
    SMAP_FOREACH (e, &w.objects) {
        if (str_has_prefix(e->key, "pods/")) {
            json_set(json_get(e->value, "status"), "containerStatuses",
                     from("[{'name': 'c', 'restartCount': 2}]"));
        }
    }
    settle();
    assert_string_equal(reason("Failed"), "BackoffLimitExceeded");
    assert_int_equal(active(), 0);
}

static void without_retries_one_restart_is_too_many(void **state)
{
    add_job(JOB(", 'completions': 1, 'backoffLimit': 0"));
    json_set_string(json_path(job(), "spec", "template", "spec", NULL), "restartPolicy",
                    "OnFailure");
    settle();
    assert_int_equal(active(), 1);
    assert_int_equal(status("terminating"), 0); /* Pods that run are not on their way out. */
    struct smap_entry *e;
    SMAP_FOREACH (e, &w.objects) {
        if (str_has_prefix(e->key, "pods/")) {
            json_set(json_get(e->value, "status"), "containerStatuses",
                     from("[{'name': 'c', 'restartCount': 1}]"));
        }
    }
    settle();
    assert_string_equal(reason("Failed"), "BackoffLimitExceeded");
}

static void a_deadline_is_counted_from_the_start(void **state)
{
    w.now_ms -= w.now_ms % 1000;
    add_job(JOB(", 'completions': 1, 'activeDeadlineSeconds': 60"));
    int64_t start_ms = w.now_ms;
    step();
    w.now_ms = start_ms + 59999;
    step();
    assert_string_equal(reason("FailureTarget"), "");
    w.now_ms = start_ms + 60000;
    step();
    assert_string_equal(reason("FailureTarget"), "DeadlineExceeded");
}

static void a_deadline_ends_all_pods(void **state)
{
    add_job(JOB(", 'completions': 2, 'parallelism': 2, 'activeDeadlineSeconds': 60"));
    settle();
    assert_int_equal(active(), 2);
    w.now_ms += 60000;
    step();
    assert_string_equal(reason("FailureTarget"), "DeadlineExceeded");
    assert_string_equal(reason("Failed"), ""); /* Pods still end. */
    settle();
    assert_string_equal(reason("Failed"), "DeadlineExceeded");
    assert_int_equal(active(), 0);
    assert_int_equal(status("failed"), 2);
}

static void a_suspended_job_has_no_pods(void **state)
{
    add_job(JOB(", 'completions': 2, 'parallelism': 2, 'suspend': true"));
    settle();
    assert_int_equal(world_count(&w, &workload_pods, NULL), 0);
    assert_string_equal(reason("Suspended"), "JobSuspended");
    assert_null(json_path(job(), "status", "startTime", NULL));
    json_set_bool(json_get(job(), "spec"), "suspend", false);
    settle();
    assert_int_equal(active(), 2);
    json_set_bool(json_get(job(), "spec"), "suspend", true);
    settle();
    assert_int_equal(world_count(&w, &workload_pods, NULL), 0);
    assert_int_equal(status("failed"), 0); /* What the suspension has ended did not fail. */
}

static void each_index_runs_once(void **state)
{
    add_job(JOB(", 'completions': 4, 'parallelism': 2, 'completionMode': 'Indexed'"));
    step();
    struct smap_entry *e;
    SMAP_FOREACH (e, &w.objects) {
        if (str_has_prefix(e->key, "pods/") && streq(obj_annotation(e->value, JOB_INDEX), "1")) {
            assert_true(str_has_prefix(obj_name(e->value), "j-1-"));
            assert_string_equal(json_path_string(e->value, "spec", "hostname", NULL), "j-1");
            const struct json *env =
                json_get(json_at(json_path(e->value, "spec", "containers", NULL), 0), "env");
            assert_string_equal(json_get_text(json_at(env, 0), "name"), "JOB_COMPLETION_INDEX");
            assert_string_equal(
                json_path_string(json_at(env, 0), "valueFrom", "fieldRef", "fieldPath", NULL),
                "metadata.annotations['batch.kubernetes.io/job-completion-index']");
        }
    }
    end_pods(1, "Succeeded", 0, "0");
    settle();
    end_pods(1, "Failed", 1, "1");
    settle();
    w.now_ms += 20000;
    settle();
    assert_string_equal(json_path_string(job(), "status", "completedIndexes", NULL), "0");
    assert_int_equal(active(), 2);
    end_pods(4, "Succeeded", 0, NULL);
    settle();
    end_pods(4, "Succeeded", 0, NULL);
    settle();
    assert_string_equal(json_path_string(job(), "status", "completedIndexes", NULL), "0-3");
    assert_string_equal(reason("Complete"), "CompletionsReached");
    assert_int_equal(status("succeeded"), 4);
    assert_int_equal(status("failed"), 1);
}

static void an_index_can_fail_alone(void **state)
{
    add_job(JOB(", 'completions': 2, 'parallelism': 2, 'completionMode': 'Indexed', "
                "'backoffLimit': 2147483647, 'backoffLimitPerIndex': 1"));
    for (int i = 0; i < 40; i++) {
        step();
        end_pods(1, "Failed", 1, "1");
        world_settle_pods(&w, NULL);
        w.now_ms += 60000;
    }
    assert_string_equal(json_path_string(job(), "status", "failedIndexes", NULL), "1");
    assert_int_equal(status("failed"), 2);
    end_pods(1, "Succeeded", 0, "0");
    settle();
    assert_string_equal(reason("Failed"), "FailedIndexes");
    assert_string_equal(json_path_string(job(), "status", "completedIndexes", NULL), "0");
}

/* Lets the controller see everything at the time 'ms'. */
static void look_at(int64_t ms)
{
    w.now_ms = ms;
    for (int i = 0; i < 4; i++) {
        step();
    }
}

/* The failures of an index delay its own next pod, and no other one. */
static void an_index_that_fails_delays_itself_only(void **state)
{
    add_job(JOB(", 'completions': 3, 'parallelism': 2, 'completionMode': 'Indexed', "
                "'backoffLimit': 2147483647, 'backoffLimitPerIndex': 5"));
    int64_t start_ms = w.now_ms;
    look_at(start_ms);
    end_pods(1, "Failed", 1, "0");
    look_at(start_ms + 1000);
    assert_int_equal(active(), 2); /* Index 2 has the place, although a pod failed just now. */
    end_pods(1, "Succeeded", 0, "1");
    look_at(start_ms + 8000);
    assert_int_equal(active(), 1);
    look_at(start_ms + 11000);
    assert_int_equal(active(), 2);
    /* The second failure delays it for longer. */
    end_pods(1, "Failed", 1, "0");
    look_at(start_ms + 26000);
    assert_int_equal(active(), 1);
    look_at(start_ms + 32000);
    assert_int_equal(active(), 2);
    end_pods(2, "Succeeded", 0, NULL);
    settle();
    assert_string_equal(reason("Complete"), "CompletionsReached");
}

static void policies_say_what_failures_mean(void **state)
{
    add_job(JOB(", 'completions': 1, 'backoffLimit': 0, "
                "'podFailurePolicy': {'rules': [{'action': 'Ignore', 'onPodConditions': "
                "[{'type': 'DisruptionTarget', 'status': 'True'}]}, {'action': 'FailJob', "
                "'onExitCodes': {'operator': 'In', 'values': [42]}}]}"));
    step();
    struct smap_entry *e;
    SMAP_FOREACH (e, &w.objects) {
        if (str_has_prefix(e->key, "pods/")) {
            (void) condition_set(e->value, "DisruptionTarget", "True", NULL, NULL, w.now_ms);
        }
    }
    end_pods(1, "Failed", 1, NULL);
    settle();
    assert_int_equal(status("failed"), 0);
    assert_int_equal(active(), 1);
    end_pods(1, "Failed", 42, NULL);
    settle();
    assert_string_equal(reason("Failed"), "PodFailurePolicy");
    assert_non_null(strstr(json_get_text(condition_find(job(), "Failed"), "message"),
                           "failed with exit code 42 matching FailJob rule at index 1"));
}

static void enough_indexes_can_be_a_success(void **state)
{
    add_job(JOB(", 'completions': 3, 'parallelism': 3, 'completionMode': 'Indexed', "
                "'successPolicy': {'rules': [{'succeededIndexes': '0-1', 'succeededCount': 1}]}"));
    settle();
    end_pods(1, "Succeeded", 0, "2");
    settle();
    assert_string_equal(reason("SuccessCriteriaMet"), "");
    end_pods(1, "Succeeded", 0, "1");
    settle();
    assert_string_equal(reason("Complete"), "SuccessPolicy");
    assert_int_equal(active(), 0);
}

static void the_end_and_the_manager_are_seen(void **state)
{
    int64_t since;
    CLEANUP(json_free)
    struct json *ended = from("{'status': {'conditions': [{'type': 'Failed', 'status': 'True', "
                              "'lastTransitionTime': '2026-01-01T00:00:00Z'}]}}");
    CLEANUP(json_free)
    struct json *runs =
        from("{'status': {'conditions': [{'type': 'Complete', 'status': 'False'}]}, "
             "'spec': {'managedBy': 'example.com/other'}}");
    assert_true(job_is_finished(ended, &since));
    assert_int_equal(since, INT64_C(1767225600000));
    assert_false(job_is_finished(runs, NULL));
    assert_true(job_is_foreign(runs));
    assert_false(job_is_foreign(ended));
}

/* ---- histories ---- */

/* Whatever happens to pods, each success counts once, never more pods run than allowed, and the end
 * comes when it must. */
static void histories_count_each_pod_once(void **state)
{
    uint64_t rounds = rng_setting("JOB_ROUNDS", 60);
    uint64_t first = rng_first_seed("JOB_SEED", rounds, "histories of Jobs");
    for (uint64_t seed = first; seed < first + rounds; seed++) {
        rng_start(seed);
        world_init(&w);
        bool indexed = chance(50);
        int64_t completions = 1 + below(6), parallelism = 1 + below(4), succeeded = 0;
        CLEANUP_FREE char *more = xasprintf(
            JOB(", 'completions': %lld, 'parallelism': %lld, 'backoffLimit': 1000, "
                "'completionMode': '%s'"),
            (long long) completions, (long long) parallelism, indexed ? "Indexed" : "NonIndexed");
        add_job(more);
        w.failing = 10;
        for (int i = 0; i < 4000 && !*reason("Complete"); i++) {
            struct smap_entry *e;
            step();
            assert_true(active() <= (size_t) parallelism);
            SMAP_FOREACH (e, &w.objects) {
                struct json *pod = e->value;
                if (!str_has_prefix(e->key, "pods/") || !is_active(pod) || !chance(10)) {
                    continue;
                }
                if (chance(30)) {
                    world_end_pod(&w, pod);
                } else {
                    bool ok = chance(50);
                    world_set_phase(&w, pod, ok ? "Succeeded" : "Failed");
                    succeeded += ok;
                }
            }
            world_kubelets(&w, NULL);
            w.now_ms += 100000;
            world_check_controllers(&w);
            assert_true(status("succeeded") <= MIN(succeeded, completions));
        }
        assert_string_equal(reason("Complete"), "CompletionsReached");
        assert_int_equal(status("succeeded"), completions);
        assert_int_equal(active(), 0);
        w.failing = 0;
        settle();
        assert_int_equal(world_count(&w, &workload_pods, holds), 0);
        world_done(&w);
    }
    world_init(&w);
}

int main(void)
{
#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, start_world, end_world)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(indexes_are_read_and_written),
        WITH_WORLD(so_many_run_and_so_many_succeed),
        WITH_WORLD(without_a_number_one_success_is_enough),
        WITH_WORLD(failures_back_off_and_reach_the_limit),
        WITH_WORLD(pods_deleted_by_users_are_counted_and_replaced),
        WITH_WORLD(a_pod_without_the_finalizer_does_not_count),
        WITH_WORLD(a_pod_that_is_adopted_counts),
        WITH_WORLD(restarts_of_containers_count_with_on_failure),
        WITH_WORLD(without_retries_one_restart_is_too_many),
        WITH_WORLD(a_deadline_is_counted_from_the_start),
        WITH_WORLD(a_deadline_ends_all_pods),
        WITH_WORLD(a_suspended_job_has_no_pods),
        WITH_WORLD(each_index_runs_once),
        WITH_WORLD(an_index_can_fail_alone),
        WITH_WORLD(an_index_that_fails_delays_itself_only),
        WITH_WORLD(policies_say_what_failures_mean),
        WITH_WORLD(enough_indexes_can_be_a_success),
        cmocka_unit_test(the_end_and_the_manager_are_seen),
        WITH_WORLD(histories_count_each_pod_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
