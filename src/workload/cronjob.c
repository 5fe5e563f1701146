/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/cronjob.h"

#include "api/condition.h"
#include "api/obj.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/timeutil.h"
#include "workload/job.h"
#include "workload/schedule.h"

#define SCHEDULED "batch.kubernetes.io/cronjob-scheduled-timestamp"
#define MANY_MISSED 100
#define WAKE_MS 100 /* After the time, so that no clock is early. */

struct cronjob {
    const struct json *cronjob, *spec;
    struct workload_child *jobs;
    size_t n, n_active;
    struct cron_schedule schedule;
    const struct tzif *zone;
    int64_t now_s, now_ms;
    struct workload_plan *plan;
    struct json *o;
};

static int64_t time_at(const struct json *o, const char *key)
{
    int64_t ms;
    return time_parse(json_get_text(o, key), &ms) == 0 ? ms / 1000 : 0;
}

static void set_time(struct json *o, const char *key, int64_t s)
{
    char text[TIME_TEXT_SIZE];
    time_format_s(s * 1000, text);
    json_set_string(o, key, text);
}

/* ---- Jobs that there are ---- */

static bool is_active(const struct workload_child *job)
{
    return !job_is_finished(job->obj, NULL);
}

static struct json *reference(const struct json *job)
{
    struct json *ref = json_object();
    json_set_string(ref, "apiVersion", workload_jobs.api_version);
    json_set_string(ref, "kind", workload_jobs.kind);
    json_set_string(ref, "name", obj_name(job));
    json_set_string(ref, "namespace", obj_namespace(job));
    json_set_string(ref, "uid", obj_uid(job));
    json_set_string(ref, "resourceVersion",
                    json_path_string(job, "metadata", "resourceVersion", NULL));
    return ref;
}

static bool was_active(const struct cronjob *c, const struct json *job)
{
    const struct json *ref;
    JSON_FOREACH (ref, json_path(c->cronjob, "status", "active", NULL)) {
        if (streq(json_get_text(ref, "uid"), obj_uid(job))) {
            return true;
        }
    }
    return false;
}

/* The status: which Jobs run, and when one last succeeded. */
static void look_at_jobs(struct cronjob *c)
{
    struct json *status = json_ensure_object(c->o, "status");
    CLEANUP(json_free) struct json *active = json_array();
    int64_t success = time_at(status, "lastSuccessfulTime"), first = success;
    for (size_t i = 0; i < c->n; i++) {
        const struct json *job = c->jobs[i].obj;
        bool ok = condition_is_true(job, "Complete");
        if (is_active(&c->jobs[i])) {
            json_append(active, reference(job));
            continue;
        }
        if (was_active(c, job)) {
            workload_plan_say(c->plan, false, "SawCompletedJob",
                              "Saw completed job: %s, condition: %s", obj_name(job),
                              ok ? "Complete" : "Failed");
        }
        if (ok) {
            success = MAX(success, time_at(json_get(job, "status"), "completionTime"));
        }
    }
    c->n_active = json_count(active);
    if (success > first) {
        set_time(status, "lastSuccessfulTime", success);
    }
    if (c->n_active) {
        json_set(status, "active", TAKE(active));
    } else {
        (void) json_remove(status, "active");
    }
}

static void delete_job(struct cronjob *c, enum workload_stage stage, const struct json *job)
{
    struct workload_write *w = workload_plan_delete(c->plan, stage, &workload_jobs, job);
    json_set_string(w->body, "propagationPolicy", "Background");
    w->reason = "SuccessfulDelete";
    w->message = xasprintf("Deleted job %s", obj_name(job));
    w->fail_reason = "FailedDelete";
    w->fail_message = xasprintf("Deleted job %s: ", obj_name(job));
}

static int compare_start(const void *x, const void *y)
{
    const struct workload_child *a = x, *b = y;
    int64_t a_s = time_at(json_get(a->obj, "status"), "startTime");
    int64_t b_s = time_at(json_get(b->obj, "status"), "startTime");
    return a_s != b_s ? (a_s < b_s ? -1 : 1) : strcmp(obj_name(a->obj), obj_name(b->obj));
}

/* Deletes the oldest Jobs that ended so, beyond the limit. */
static void limit_history(struct cronjob *c, const char *key, bool ok)
{
    int64_t limit = json_get_int_or(json_get(c->spec, key), INT32_MAX), n = 0;
    for (size_t i = 0; i < c->n; i++) {
        n += !is_active(&c->jobs[i]) && condition_is_true(c->jobs[i].obj, "Complete") == ok;
    }
    for (size_t i = 0; i < c->n && n > limit; i++) {
        const struct workload_child *job = &c->jobs[i];
        if (!is_active(job) && condition_is_true(job->obj, "Complete") == ok) {
            if (!job->going) {
                delete_job(c, WORKLOAD_MAIN, job->obj);
            }
            n--;
        }
    }
}

/* ---- a Job for a time ---- */

static struct json *make_job(const struct cronjob *c, const char *name, int64_t time_s)
{
    static const char *const copied[] = {"labels", "annotations"};
    const struct json *template = json_get(c->spec, "jobTemplate");
    struct json *o =
        obj_new(workload_jobs.api_version, workload_jobs.kind, obj_namespace(c->cronjob), name);
    struct json *meta = json_get(o, "metadata");
    char time[TIME_TEXT_SIZE];
    for (size_t i = 0; i < ARRAY_SIZE(copied); i++) {
        const struct json *v = json_path(template, "metadata", copied[i], NULL);
        if (v) {
            json_set(meta, copied[i], json_clone(v));
        }
    }
    time_format_s(time_s * 1000, time);
    obj_set_annotation(o, SCHEDULED, time);
    json_append(json_ensure_array(meta, "ownerReferences"),
                workload_owner_ref(&workload_cron_jobs, c->cronjob));
    const struct json *spec = json_get(template, "spec");
    json_set(o, "spec", spec ? json_clone(spec) : json_object());
    return o;
}

/* A Job of that name: this CronJob's own is the one of this time. */
static bool name_is_met(struct json *object, const struct workload_write *w,
                        const struct json *live)
{
    const struct json *ref = obj_controller(live);
    return ref && streq(json_get_text(ref, "uid"), obj_uid(object));
}

static void start_job(struct cronjob *c, int64_t time_s)
{
    CLEANUP_FREE char *name = xasprintf("%s-%lld", obj_name(c->cronjob), (long long) (time_s / 60));
    struct json *status = json_ensure_object(c->o, "status");
    set_time(status, "lastScheduleTime", time_s);
    for (size_t i = 0; i < c->n; i++) {
        if (streq(obj_name(c->jobs[i].obj), name)) {
            return; /* Only the status was not written. */
        }
    }
    struct workload_write *w = workload_plan_add(c->plan, WORKLOAD_MAIN, WORKLOAD_CREATE,
                                                 &workload_jobs, name, make_job(c, name, time_s));
    w->reason = "SuccessfulCreate";
    w->message = xasprintf("Created job %s", name);
    w->fail_reason = "FailedCreate";
    w->fail_message = xstrdup("Error creating job: ");
    c->plan->met = name_is_met;
}

static void wake_at_next(struct cronjob *c)
{
    int64_t next = schedule_next(&c->schedule, c->zone, c->now_s);
    if (c->schedule.every_s) {
        int64_t last = time_at(json_get(c->o, "status"), "lastScheduleTime");
        last = last ? last : obj_created_ms(c->cronjob) / 1000;
        next = last + c->schedule.every_s > c->now_s ? last + c->schedule.every_s : next;
    }
    if (next) {
        workload_plan_recheck(c->plan, next * 1000 + WAKE_MS);
    }
}

static void say_many_missed(struct cronjob *c, int64_t from_s)
{
    int64_t t = from_s;
    for (int i = 0; i <= MANY_MISSED; i++) {
        t = schedule_next(&c->schedule, c->zone, t);
        if (!t || t > c->now_s) {
            return;
        }
    }
    workload_plan_say(c->plan, true, "TooManyMissedTimes",
                      "too many missed start times. Set or decrease .spec.startingDeadlineSeconds "
                      "or check clock skew");
}

/* Makes the Job of the latest time that is due. */
static void schedule(struct cronjob *c)
{
    int64_t deadline_s = json_get_int_or(json_get(c->spec, "startingDeadlineSeconds"), -1);
    int64_t last = time_at(json_get(c->o, "status"), "lastScheduleTime");
    int64_t from = last ? last : obj_created_ms(c->cronjob) / 1000;
    const char *policy = json_get_text(c->spec, "concurrencyPolicy");
    int64_t due = schedule_last(&c->schedule, c->zone, from, c->now_s);
    if (!due) {
        return;
    }
    if (deadline_s < 0) {
        say_many_missed(c, from);
    }
    if (deadline_s >= 0 && due + deadline_s < c->now_s) {
        char time[TIME_TEXT_SIZE];
        time_format_s(due * 1000, time);
        workload_plan_say(c->plan, true, "MissSchedule", "Missed scheduled time to start a job: %s",
                          time);
        return;
    }
    if (c->n_active && streq(policy, "Forbid")) {
        workload_plan_say(c->plan, false, "JobAlreadyActive",
                          "Not starting job because prior execution is running and concurrency "
                          "policy is Forbid");
        return;
    }
    for (size_t i = 0; streq(policy, "Replace") && i < c->n; i++) {
        if (is_active(&c->jobs[i]) && !c->jobs[i].going) {
            delete_job(c, WORKLOAD_FIRST, c->jobs[i].obj);
        }
    }
    start_job(c, due);
}

void cronjob_plan(const struct json *cronjob, struct workload_child *jobs, size_t n,
                  const struct tzif *zone, const char *zone_error, int64_t now_ms,
                  struct workload_plan *ret)
{
    struct cronjob c = {.cronjob = cronjob,
                        .spec = json_get(cronjob, "spec"),
                        .jobs = jobs,
                        .zone = zone,
                        .now_ms = now_ms,
                        .now_s = now_ms / 1000,
                        .plan = ret,
                        .o = json_clone(cronjob)};
    struct err e = {0};
    ret->status = c.o;
    ret->only_success = true; /* A time is noted only when its Job is there. */
    c.n = workload_claim(ret, &workload_cron_jobs, cronjob, NULL, &workload_jobs, jobs, n);
    if (c.n) {
        qsort(jobs, c.n, sizeof *jobs, compare_start);
    }
    look_at_jobs(&c);
    if (obj_is_terminating(cronjob)) {
        return;
    }
    limit_history(&c, "successfulJobsHistoryLimit", true);
    limit_history(&c, "failedJobsHistoryLimit", false);
    if (zone_error) {
        workload_plan_say(ret, true, "UnknownTimeZone", "invalid timeZone: \"%s\": %s",
                          json_get_text(c.spec, "timeZone"), zone_error);
    } else if (cron_parse(json_get_text(c.spec, "schedule"), &c.schedule, &e) < 0) {
        workload_plan_say(ret, true, "UnparseableSchedule", "unparseable schedule: \"%s\" : %s",
                          json_get_text(c.spec, "schedule"), e.text);
    } else if (!json_get_bool(json_get(c.spec, "suspend"), false)) {
        schedule(&c);
        wake_at_next(&c);
    }
}
