/* SPDX-License-Identifier: Apache-2.0 */
#include "api/condition.h"
#include "api/obj.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/timeutil.h"
#include "workload/job_priv.h"

#define FAILURES "batch.kubernetes.io/job-index-failure-count"
#define FIRST_DELAY_MS 10000
#define LAST_DELAY_MS 600000
#define OWN_CONTROLLER "kubernetes.io/job-controller"

static int64_t number(const struct json *o, const char *key, int64_t dflt)
{
    return json_get_int_or(json_get(o, key), dflt);
}

/* ---- pods ---- */

int64_t job_index_of(const struct job *j, const struct json *pod)
{
    int64_t n;
    const char *s = obj_annotation(pod, JOB_INDEX);
    return j->indexed && s && str_to_i64(s, 0, (int64_t) j->done.n - 1, &n) == 0 ? n : -1;
}

/* A pod that is on its way out may never say how it ended: it counts as failed, unless pods are
 * replaced only when they have ended. */
bool job_pod_failed(const struct job *j, const struct workload_child *pod)
{
    return workload_pod_has_phase(pod->obj, "Failed") ||
           (!j->waits_for_end && obj_is_terminating(pod->obj) &&
            !workload_pod_has_phase(pod->obj, "Succeeded"));
}

int64_t job_failures_of(const struct job *j, int64_t index)
{
    int64_t most = 0;
    for (size_t i = 0; i < j->n; i++) {
        const struct workload_child *pod = &j->pods[i];
        const char *s = obj_annotation(pod->obj, FAILURES);
        int64_t before = 0;
        if (job_index_of(j, pod->obj) == index && job_pod_failed(j, pod) &&
            job_failure_action(j, pod->obj, NULL) != JOB_IGNORE) {
            (void) str_to_i64(s ? s : "0", 0, INT32_MAX, &before);
            most = MAX(most, before + 1);
        }
    }
    return most;
}

/* ---- conditions ---- */

static bool is_true(const struct json *job, const char *type)
{
    return condition_is_true(job, type);
}

bool job_is_finished(const struct json *job, int64_t *ret_since_ms)
{
    static const char *const ends[] = {"Complete", "Failed"};
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
        const struct json *c = condition_find(job, ends[i]);
        if (!condition_is_true(job, ends[i])) {
            continue;
        }
        if (ret_since_ms && time_parse(json_get_text(c, "lastTransitionTime"), ret_since_ms) < 0) {
            *ret_since_ms = 0;
        }
        return true;
    }
    return false;
}

bool job_is_foreign(const struct json *job)
{
    const char *s = json_get_text(json_get(job, "spec"), "managedBy");
    return *s && !streq(s, OWN_CONTROLLER);
}

static void set_condition(struct job *j, const char *type, const char *status, const char *reason,
                          const char *message)
{
    char now[TIME_TEXT_SIZE];
    struct json *c = condition_set(j->o, type, status, reason, message, j->now_ms);
    if (c) {
        time_format_s(j->now_ms, now);
        json_set_string(c, "lastProbeTime", now);
    }
}

static void set_time(struct job *j, const char *key)
{
    char now[TIME_TEXT_SIZE];
    time_format_s(j->now_ms, now);
    json_set_string(json_ensure_object(j->o, "status"), key, now);
}

/* ---- does it fail? ---- */

static void fail(struct job *j, const char *reason, const char *text)
{
    if (!j->fail_reason) {
        j->fail_reason = reason;
        free(j->text);
        j->text = xstrdup(text);
    }
}

/* With restartPolicy OnFailure containers that restart are failures. */
static bool restarts_exceed(const struct job *j)
{
    const struct json *policy = json_path(j->spec, "template", "spec", "restartPolicy", NULL), *s;
    static const char *const lists[] = {"initContainerStatuses", "containerStatuses"};
    int64_t restarts = 0;
    if (!streq_null(json_get_string(policy), "OnFailure")) {
        return false;
    }
    for (size_t i = 0; i < j->n; i++) {
        for (size_t k = 0; k < ARRAY_SIZE(lists) && workload_pod_is_active(&j->pods[i]); k++) {
            JSON_FOREACH (s, json_path(j->pods[i].obj, "status", lists[k], NULL)) {
                restarts += number(s, "restartCount", 0);
            }
        }
    }
    return j->backoff_limit == 0 ? restarts > 0 : restarts >= j->backoff_limit;
}

static bool deadline_is_over(struct job *j)
{
    int64_t limit_s = number(j->spec, "activeDeadlineSeconds", -1), start;
    const char *s = json_get_text(json_get(j->o, "status"), "startTime");
    if (limit_s < 0 || j->suspended || time_parse(s, &start) < 0) {
        return false;
    }
    if (start + limit_s * 1000 > j->now_ms) {
        workload_plan_recheck(j->plan, start + limit_s * 1000);
        return false;
    }
    return true;
}

static void judge_failure(struct job *j)
{
    const struct json *c = condition_find(j->job, "FailureTarget");
    if (condition_is_true(j->job, "FailureTarget")) {
        fail(j, json_get_text(c, "reason"), json_get_text(c, "message"));
        return;
    }
    for (size_t i = 0; i < j->n && !j->fail_reason; i++) {
        CLEANUP_FREE char *text = NULL;
        if (job_failure_action(j, j->pods[i].obj, &text) == JOB_FAIL) {
            fail(j, "PodFailurePolicy", text);
        }
    }
    int64_t lost = (int64_t) indexes_count(&j->lost);
    if (j->failed > j->backoff_limit || restarts_exceed(j)) {
        fail(j, "BackoffLimitExceeded", "Job has reached the specified backoff limit");
    } else if (deadline_is_over(j)) {
        fail(j, "DeadlineExceeded", "Job was active longer than specified deadline");
    } else if (j->most_failed_indexes >= 0 && lost > j->most_failed_indexes) {
        fail(j, "MaxFailedIndexesExceeded",
             "Job has exceeded the specified maximal number of failed indexes");
    } else if (j->indexed && lost && lost + j->succeeded >= j->completions) {
        fail(j, "FailedIndexes", "Job has failed indexes");
    }
}

static void succeed(struct job *j, const char *reason, char *text)
{
    j->success_reason = reason;
    free(j->text);
    j->text = text;
}

static void judge_success(struct job *j)
{
    const struct json *c = condition_find(j->job, "SuccessCriteriaMet");
    int64_t rule = job_success_rule(j);
    bool all =
        j->completions >= 0 ? j->succeeded >= j->completions : j->succeeded > 0 && j->active == 0;
    if (condition_is_true(j->job, "SuccessCriteriaMet")) {
        succeed(j, json_get_text(c, "reason"), xstrdup(json_get_text(c, "message")));
    } else if (rule >= 0) {
        succeed(j, "SuccessPolicy", xasprintf("Matched rules at index %lld", (long long) rule));
    } else if (all && !j->suspended) {
        succeed(j, "CompletionsReached", xstrdup("Reached expected number of succeeded pods"));
    }
}

/* ---- pods are made and removed ---- */

static void delete_pod(struct job *j, const struct workload_child *pod)
{
    struct workload_write *w =
        workload_plan_delete(j->plan, WORKLOAD_MAIN, &workload_pods, pod->obj);
    w->reason = "SuccessfulDelete";
    w->message = xasprintf("Deleted pod: %s", obj_name(pod->obj));
    w->fail_reason = "FailedDelete";
    w->fail_message = xstrdup("Error deleting: ");
}

static void delete_active(struct job *j)
{
    for (size_t i = 0; i < j->n; i++) {
        if (workload_pod_is_active(&j->pods[i])) {
            delete_pod(j, &j->pods[i]);
        }
    }
}

static void add_index_variable(struct json *containers)
{
    static const char name[] = "JOB_COMPLETION_INDEX";
    struct json *ct, *e;
    JSON_FOREACH (ct, containers) {
        struct json *env = json_ensure_array(ct, "env");
        bool has = false;
        JSON_FOREACH (e, env) {
            has |= streq(json_get_text(e, "name"), name);
        }
        if (!has) {
            struct json *v = json_append(env, json_object());
            json_set_string(v, "name", name);
            json_set_string(json_ensure_object(json_ensure_object(v, "valueFrom"), "fieldRef"),
                            "fieldPath", "metadata.annotations['" JOB_INDEX "']");
        }
    }
}

static void make_indexed(const struct job *j, struct json *pod, int64_t index)
{
    struct json *meta = json_get(pod, "metadata"), *spec = json_get(pod, "spec");
    CLEANUP_FREE char *text = xasprintf("%lld", (long long) index);
    CLEANUP_FREE char *name = xasprintf("%s-%s", obj_name(j->job), text);
    CLEANUP_FREE char *prefix = xasprintf("%s-", name);
    obj_set_annotation(pod, JOB_INDEX, text);
    json_set_string(json_ensure_object(meta, "labels"), JOB_INDEX, text);
    json_set_string(meta, "generateName", prefix);
    if (!*json_get_text(spec, "hostname")) {
        json_set_string(spec, "hostname", name);
    }
    if (j->index_limit >= 0) {
        CLEANUP_FREE char *failures = xasprintf("%lld", (long long) job_failures_of(j, index));
        obj_set_annotation(pod, FAILURES, failures);
    }
    add_index_variable(json_get(spec, "initContainers"));
    add_index_variable(json_get(spec, "containers"));
}

/* 'index' negative: the Job has none. */
static void create_pod(struct job *j, int64_t index)
{
    struct json *pod =
        workload_pod_from_template(&workload_jobs, j->job, json_get(j->spec, "template"), NULL);
    json_append(json_ensure_array(json_get(pod, "metadata"), "finalizers"),
                json_string(JOB_FINALIZER));
    if (index >= 0) {
        make_indexed(j, pod, index);
    }
    struct workload_write *w =
        workload_plan_add(j->plan, WORKLOAD_MAIN, WORKLOAD_CREATE, &workload_pods, NULL, pod);
    w->reason = "SuccessfulCreate";
    w->message = xstrdup("Created pod: ");
    w->names = true;
    w->fail_reason = "FailedCreate";
    w->fail_message = xstrdup("Error creating: ");
}

/* When the pod ended; 0: unknown. */
static int64_t ended_ms(const struct json *pod)
{
    int64_t last = 0, ms;
    const struct json *s;
    JSON_FOREACH (s, json_path(pod, "status", "containerStatuses", NULL)) {
        const char *at = json_path_string(s, "state", "terminated", "finishedAt", NULL);
        last = at && time_parse(at, &ms) == 0 ? MAX(last, ms) : last;
    }
    const char *gone = json_path_string(pod, "metadata", "deletionTimestamp", NULL);
    if (!last && gone && time_parse(gone, &ms) == 0) {
        last = ms;
    }
    return last ? last : obj_created_ms(pod);
}

/* The delay after so many failures. */
static int64_t delay_after(int64_t failures)
{
    int64_t delay = FIRST_DELAY_MS;
    for (int64_t i = 1; i < failures && delay < LAST_DELAY_MS; i++) {
        delay *= 2;
    }
    return MIN(delay, LAST_DELAY_MS);
}

/* Whether the next pod has to wait, after so many failures since the last success. */
static bool backs_off(struct job *j)
{
    int64_t success = 0, failure = 0, failures = 0;
    for (size_t i = 0; i < j->n; i++) {
        if (workload_pod_has_phase(j->pods[i].obj, "Succeeded")) {
            success = MAX(success, ended_ms(j->pods[i].obj));
        }
    }
    for (size_t i = 0; i < j->n; i++) {
        const struct json *pod = j->pods[i].obj;
        int64_t at = ended_ms(pod);
        if (job_pod_failed(j, &j->pods[i]) && at > success &&
            job_failure_action(j, pod, NULL) != JOB_IGNORE) {
            failures++;
            failure = MAX(failure, at);
        }
    }
    if (!failures) {
        return false;
    }
    int64_t until = failure + delay_after(failures);
    if (until <= j->now_ms) {
        return false;
    }
    workload_plan_recheck(j->plan, until);
    return true;
}

/* With a limit for each index the failures of an index delay its own next pod only: fills the times
 * before which the indexes get no pod, 0: at once. */
static void index_delays(const struct job *j, int64_t *until)
{
    for (size_t i = 0; i < j->n; i++) {
        const struct json *pod = j->pods[i].obj;
        const char *s = obj_annotation(pod, FAILURES);
        int64_t index = job_index_of(j, pod), before = 0;
        if (index < 0 || !job_pod_failed(j, &j->pods[i]) ||
            job_failure_action(j, pod, NULL) == JOB_IGNORE) {
            continue;
        }
        (void) str_to_i64(s ? s : "0", 0, INT32_MAX, &before);
        until[index] = MAX(until[index], ended_ms(pod) + delay_after(before + 1));
    }
}

static void create_pods(struct job *j, int64_t n)
{
    n = MIN(n, JOB_BURST);
    if (n <= 0 || (j->index_limit < 0 && backs_off(j))) {
        return;
    }
    if (!j->indexed) {
        for (int64_t i = 0; i < n; i++) {
            create_pod(j, -1);
        }
        return;
    }
    uint8_t *taken = xcalloc(j->done.n + 1, 1);
    for (size_t i = 0; i < j->n; i++) {
        int64_t index = job_index_of(j, j->pods[i].obj);
        bool counts = workload_pod_is_active(&j->pods[i]) ||
                      (j->waits_for_end && j->pods[i].going &&
                       !workload_pod_has_phase(j->pods[i].obj, "Failed"));
        if (index >= 0 && counts) {
            taken[index] = 1;
        }
    }
    int64_t *until = xcalloc(j->done.n + 1, sizeof *until);
    if (j->index_limit >= 0) {
        index_delays(j, until);
    }
    for (size_t i = 0; i < j->done.n && n > 0; i++) {
        if (taken[i] || j->done.has[i] || j->lost.has[i]) {
            continue;
        }
        if (until[i] > j->now_ms) {
            workload_plan_recheck(j->plan, until[i]);
            continue;
        }
        create_pod(j, (int64_t) i);
        n--;
    }
    free(until);
    free(taken);
}

/* Removes active pods of an Indexed Job that no index needs; returns their number. */
static int64_t delete_needless(struct job *j, struct workload_child *active, size_t *n)
{
    uint8_t *taken = xcalloc(j->done.n + 1, 1);
    size_t kept = 0;
    int64_t deleted = 0;
    for (size_t i = *n; i-- > 0;) { /* The pods to keep are at the end. */
        int64_t index = job_index_of(j, active[i].obj);
        bool needed = index >= 0 && !taken[index] && !j->done.has[index] && !j->lost.has[index];
        if (needed) {
            taken[index] = 1;
        } else {
            delete_pod(j, &active[i]);
            active[i].obj = NULL;
            deleted++;
        }
    }
    for (size_t i = 0; i < *n; i++) {
        if (active[i].obj) {
            active[kept++] = active[i];
        }
    }
    *n = kept;
    free(taken);
    return deleted;
}

static void manage(struct job *j)
{
    struct workload_child *active = xcalloc(j->n + 1, sizeof *active);
    size_t n = 0;
    int64_t wanted = j->parallelism;
    for (size_t i = 0; i < j->n; i++) {
        if (workload_pod_is_active(&j->pods[i])) {
            active[n++] = j->pods[i];
        }
    }
    workload_pod_sort_victims(active, n, NULL, 0, j->now_ms);
    int64_t needless = j->indexed ? delete_needless(j, active, &n) : 0;
    if (j->completions >= 0) {
        int64_t lost = (int64_t) indexes_count(&j->lost);
        wanted = MAX(MIN(j->completions - j->succeeded - lost, j->parallelism), 0);
    } else if (j->succeeded > 0) {
        wanted = MIN((int64_t) n, j->parallelism);
    }
    int64_t present = (int64_t) n + (j->waits_for_end ? j->terminating : 0);
    for (size_t i = 0; (int64_t) i < (int64_t) n - wanted; i++) {
        delete_pod(j, &active[i]);
    }
    if (present < wanted && !needless) {
        create_pods(j, wanted - present);
    }
    free(active);
}

/* ---- the plan ---- */

/* Pods that the Job adopts get the finalizer: only such pods are counted when they end. */
static void hold_adopted(struct workload_plan *plan)
{
    for (size_t i = 0; i < plan->n_writes; i++) {
        struct workload_write *w = &plan->writes[i];
        if (w->stage == WORKLOAD_ADOPT && w->kind == &workload_pods) {
            json_append(json_ensure_array(json_get(w->body, "metadata"), "finalizers"),
                        json_string(JOB_FINALIZER));
        }
    }
}

/* A Job that fails or has succeeded ends its pods, and says so in the end when none is left. */
static void finish(struct job *j, bool counted)
{
    bool ok = !j->fail_reason;
    const char *reason = ok ? j->success_reason : j->fail_reason;
    set_condition(j, ok ? "SuccessCriteriaMet" : "FailureTarget", "True", reason, j->text);
    delete_active(j);
    if (j->active || j->terminating || !counted) {
        return;
    }
    set_condition(j, ok ? "Complete" : "Failed", "True", reason, j->text);
    if (ok) {
        set_time(j, "completionTime");
        workload_plan_say(j->plan, false, "Completed", "Job completed");
    } else {
        workload_plan_say(j->plan, true, reason, "%s", j->text);
    }
}

static void follow_suspension(struct job *j)
{
    const struct json *c = condition_find(j->job, "Suspended");
    bool was = is_true(j->job, "Suspended");
    if (j->suspended && !was) {
        set_condition(j, "Suspended", "True", "JobSuspended", "Job suspended");
        workload_plan_say(j->plan, false, "Suspended", "Job suspended");
    } else if (!j->suspended && c && was) {
        set_condition(j, "Suspended", "False", "JobResumed", "Job resumed");
        set_time(j, "startTime"); /* The deadline counts from now. */
        workload_plan_say(j->plan, false, "Resumed", "Job resumed");
    }
    if (!j->suspended && !json_path(j->o, "status", "startTime", NULL)) {
        set_time(j, "startTime");
    }
}

static void load(struct job *j)
{
    const struct json *spec = j->spec, *status = json_get(j->job, "status");
    j->indexed = streq(json_get_text(spec, "completionMode"), "Indexed");
    j->suspended = json_get_bool(json_get(spec, "suspend"), false);
    j->waits_for_end = streq(json_get_text(spec, "podReplacementPolicy"), "Failed");
    j->parallelism = number(spec, "parallelism", 1);
    j->completions = number(spec, "completions", -1);
    j->backoff_limit = number(spec, "backoffLimit", 6);
    j->index_limit = j->indexed ? number(spec, "backoffLimitPerIndex", -1) : -1;
    j->most_failed_indexes = j->indexed ? number(spec, "maxFailedIndexes", -1) : -1;
    size_t size = j->indexed ? (size_t) MAX(j->completions, 0) : 0;
    indexes_parse(json_path_string(status, "completedIndexes", NULL), size, &j->done);
    indexes_parse(json_path_string(status, "failedIndexes", NULL), size, &j->lost);
}

static void decide(struct job *j)
{
    if (!job_is_finished(j->job, NULL) && !obj_is_terminating(j->job)) {
        follow_suspension(j);
    }
    bool counted = job_count(j);
    if (job_is_finished(j->job, NULL) || obj_is_terminating(j->job)) {
        return;
    }
    judge_failure(j);
    if (!j->fail_reason) {
        judge_success(j);
    }
    if (j->fail_reason || j->success_reason) {
        finish(j, counted);
    } else if (j->suspended) {
        delete_active(j);
    } else {
        manage(j);
    }
}

void job_plan(const struct json *job, struct workload_child *pods, size_t n, int64_t now_ms,
              struct workload_plan *ret)
{
    struct job j = {.job = job,
                    .spec = json_get(job, "spec"),
                    .pods = pods,
                    .now_ms = now_ms,
                    .plan = ret,
                    .o = json_clone(job)};
    ret->status = j.o;
    j.n = workload_claim(ret, &workload_jobs, job, json_get(j.spec, "selector"), &workload_pods,
                         pods, n);
    hold_adopted(ret);
    load(&j);
    decide(&j);
    indexes_done(&j.done);
    indexes_done(&j.lost);
    free(j.text);
}
