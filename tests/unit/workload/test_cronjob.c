/* SPDX-License-Identifier: Apache-2.0 */
/* CronJobs: schedules against a search of every minute, zones, policies, missed times. */
#include "workload/cronjob.h"

#include "api/obj.h"
#include "base/timeutil.h"
#include "json_text.h"
#include "workload/schedule.h"
#include "world.h"

#include <time.h>

#define CRON(schedule, more)                                                                       \
    "{'metadata': {'name': 'c', 'namespace': 'ns'}, 'spec': {'schedule': '" schedule "', "         \
    "'concurrencyPolicy': 'Allow', 'successfulJobsHistoryLimit': 1, 'failedJobsHistoryLimit': 1, " \
    "'jobTemplate': {'metadata': {'labels': {'l': 'v'}}, 'spec': {'template': {}}}" more "}}"

static struct world w;
static struct workload_plan last_plan; /* What was said by the last plan. */
static char said[512];

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

static int64_t at(const char *text)
{
    int64_t ms;
    assert_int_equal(time_parse(text, &ms), 0);
    return ms / 1000;
}

static struct cron_schedule parse(const char *text)
{
    struct cron_schedule c;
    struct err e = {0};
    assert_int_equal(cron_parse(text, &c, &e), 0);
    return c;
}

/* ---- schedules ---- */

/* Whether the minute is due, by the C library's calendar. */
static bool is_due(const struct cron_schedule *c, time_t t)
{
    struct tm tm;
    (void) gmtime_r(&t, &tm);
    bool day = c->days >> tm.tm_mday & 1, weekday = c->weekdays >> tm.tm_wday & 1;
    bool date = c->any_day || c->any_weekday ? day && weekday : day || weekday;
    return c->minutes >> tm.tm_min & 1 && c->hours >> tm.tm_hour & 1 &&
           c->months >> (tm.tm_mon + 1) & 1 && date;
}

static void the_next_time_is_the_first_minute_that_fits(void **state)
{
    static const char *const texts[] = {"* * * * *",     "*/7 * * * *",  "0 0 * * *",
                                        "30 2 1 * *",    "0 12 * * 1-5", "15,45 3-5 * */2 *",
                                        "0 0 13 * 5",    "5 4 */2 * 0",  "59 23 31 12 *",
                                        "0 9 ? JAN MON", "@weekly",      "@hourly"};
    rng_start(7);
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct cron_schedule c = parse(texts[i]);
        for (int k = 0; k < 5; k++) {
            int64_t after = at("2026-01-01T00:00:00Z") + below(400 * 86400);
            int64_t next = schedule_next(&c, NULL, after), t = (after / 60 + 1) * 60;
            while (!is_due(&c, (time_t) t)) {
                t += 60;
            }
            if (next != t) {
                fail_msg("%s after %lld: %lld, not %lld", texts[i], (long long) after,
                         (long long) next, (long long) t);
            }
            assert_int_equal(schedule_last(&c, NULL, after, next - 1), 0);
            assert_int_equal(schedule_last(&c, NULL, after, next), next);
        }
    }
}

static void a_time_that_never_comes_is_0(void **state)
{
    struct cron_schedule c = parse("0 0 30 2 *");
    assert_int_equal(schedule_next(&c, NULL, at("2026-01-01T00:00:00Z")), 0);
    assert_int_equal(
        schedule_last(&c, NULL, at("2020-01-01T00:00:00Z"), at("2026-01-01T00:00:00Z")), 0);
    c = parse("0 0 29 2 *");
    assert_int_equal(schedule_next(&c, NULL, at("2026-01-01T00:00:00Z")),
                     at("2028-02-29T00:00:00Z"));
}

static void the_last_missed_time_is_found_across_years(void **state)
{
    struct cron_schedule c = parse("0 0 1 1 *");
    assert_int_equal(
        schedule_last(&c, NULL, at("2021-06-01T00:00:00Z"), at("2026-07-01T00:00:00Z")),
        at("2026-01-01T00:00:00Z"));
    c = parse("* * * * *");
    assert_int_equal(
        schedule_last(&c, NULL, at("1970-01-02T00:00:00Z"), at("2026-07-01T00:00:30Z")),
        at("2026-07-01T00:00:00Z"));
    c = parse("@every 90s");
    assert_int_equal(schedule_last(&c, NULL, 1000, 1300), 1270);
    assert_int_equal(schedule_last(&c, NULL, 1000, 1089), 0);
}

static void zones_have_summers(void **state)
{
    FILE *f = fopen("tests/fuzz/corpus/tzif/berlin", "r");
    char data[8192];
    struct err e = {0};
    CLEANUP(tzif_free) struct tzif *z = NULL;
    assert_non_null(f);
    size_t size = fread(data, 1, sizeof data, f);
    fclose(f);
    assert_int_equal(tzif_parse(data, size, at("2026-01-01T00:00:00Z"), &z, &e), 0);
    struct cron_schedule c = parse("30 9 * * *");
    assert_int_equal(schedule_next(&c, z, at("2026-01-01T00:00:00Z")), at("2026-01-01T08:30:00Z"));
    assert_int_equal(schedule_next(&c, z, at("2026-07-01T00:00:00Z")), at("2026-07-01T07:30:00Z"));
    /* 02:30 does not come on 29 March, and comes twice on 25 October. */
    c = parse("30 2 * * *");
    assert_int_equal(schedule_next(&c, z, at("2026-03-28T12:00:00Z")), at("2026-03-30T00:30:00Z"));
    assert_int_equal(schedule_next(&c, z, at("2026-10-24T12:00:00Z")), at("2026-10-25T00:30:00Z"));
    assert_int_equal(schedule_next(&c, z, at("2026-10-25T00:30:00Z")), at("2026-10-25T01:30:00Z"));
    assert_int_equal(schedule_next(&c, z, at("2026-10-25T01:30:00Z")), at("2026-10-26T01:30:00Z"));
    /* Midnight after the change is not jumped over. */
    c = parse("0 0 * * *");
    assert_int_equal(schedule_next(&c, z, at("2026-03-28T23:30:00Z")), at("2026-03-29T22:00:00Z"));
}

/* ---- CronJobs ---- */

static void step(const char *zone_error)
{
    struct json *c = world_get(&w, &workload_cron_jobs, "c");
    struct workload_child *jobs;
    CLEANUP_PLAN struct workload_plan p = {0};
    size_t n = world_children(&w, &workload_jobs, c, &jobs), size = 0;
    cronjob_plan(c, jobs, n, NULL, zone_error, w.now_ms, &p);
    said[0] = '\0';
    for (size_t i = 0; i < p.n_events; i++) {
        size += (size_t) snprintf(said + size, sizeof said - size, "%s ", p.events[i].reason);
    }
    last_plan.recheck_ms = p.recheck_ms;
    world_run(&w, &workload_cron_jobs, c, &p);
    free(jobs);
}

static void add(const char *text)
{
    (void) world_add(&w, &workload_cron_jobs, from(text));
}

static size_t jobs(void)
{
    return world_count(&w, &workload_jobs, NULL);
}

static void end_job(const char *name, const char *type)
{
    struct json *job = world_get(&w, &workload_jobs, name);
    CLEANUP_FREE char *text =
        xasprintf("{'startTime': '2026-01-01T00:00:00Z', 'completionTime': '2026-01-01T00:03:00Z', "
                  "'conditions': [{'type': '%s', 'status': 'True'}]}",
                  type);
    json_set(job, "status", from(text));
}

/* A Job that was made late does not move the times after it. */
static void an_interval_goes_on_from_the_last_time(void **state)
{
    add(CRON("@every 90s", ""));
    int64_t start_ms = w.now_ms;
    step(NULL);
    assert_int_equal(last_plan.recheck_ms, start_ms + 90100);
    w.now_ms = start_ms + 100000;
    step(NULL);
    assert_int_equal(jobs(), 1);
    step(NULL);
    assert_int_equal(last_plan.recheck_ms, start_ms + 180100);
}

static void each_time_gets_one_job(void **state)
{
    add(CRON("*/5 * * * *", ""));
    step(NULL);
    assert_int_equal(jobs(), 0);
    assert_int_equal(last_plan.recheck_ms, w.now_ms + 300100);
    w.now_ms += 301000;
    step(NULL);
    assert_int_equal(jobs(), 1);
    /* 2026-01-01T00:05:00Z in minutes. */
    const struct json *job = world_get(&w, &workload_jobs, "c-29453765");
    assert_string_equal(obj_annotation(job, "batch.kubernetes.io/cronjob-scheduled-timestamp"),
                        "2026-01-01T00:05:00Z");
    assert_string_equal(obj_label(job, "l"), "v");
    const struct json *c = world_get(&w, &workload_cron_jobs, "c");
    assert_string_equal(json_path_string(c, "status", "lastScheduleTime", NULL),
                        "2026-01-01T00:05:00Z");
    step(NULL);
    step(NULL);
    assert_int_equal(jobs(), 1);
    assert_int_equal(json_count(json_path(c, "status", "active", NULL)), 1);
    /* The status was lost: the Job's name says that it is there. */
    (void) json_remove(world_get(&w, &workload_cron_jobs, "c"), "status");
    step(NULL);
    assert_int_equal(jobs(), 1);
    c = world_get(&w, &workload_cron_jobs, "c");
    assert_string_equal(json_path_string(c, "status", "lastScheduleTime", NULL),
                        "2026-01-01T00:05:00Z");
}

static void a_job_that_could_not_be_made_is_tried_again(void **state)
{
    add(CRON("*/5 * * * *", ""));
    w.now_ms += 301000;
    w.failing = 100;
    step(NULL);
    assert_null(
        json_path(world_get(&w, &workload_cron_jobs, "c"), "status", "lastScheduleTime", NULL));
    w.failing = 0;
    step(NULL);
    assert_int_equal(jobs(), 1);
}

static void only_the_latest_missed_time_counts(void **state)
{
    add(CRON("* * * * *", ""));
    w.now_ms += 86400000;
    step(NULL);
    assert_int_equal(jobs(), 1);
    assert_non_null(strstr(said, "TooManyMissedTimes"));
    assert_non_null(world_get(&w, &workload_jobs, "c-29455200"));
}

static void a_deadline_lets_late_times_go(void **state)
{
    add(CRON("0 * * * *", ", 'startingDeadlineSeconds': 60"));
    w.now_ms += 3600000 + 61000;
    step(NULL);
    assert_int_equal(jobs(), 0);
    assert_non_null(strstr(said, "MissSchedule"));
    w.now_ms += 3600000 - 61000 + 30000;
    step(NULL);
    assert_int_equal(jobs(), 1);
}

static void policies_about_jobs_that_still_run(void **state)
{
    add(CRON("* * * * *", ""));
    json_set_string(json_get(world_get(&w, &workload_cron_jobs, "c"), "spec"), "concurrencyPolicy",
                    "Forbid");
    w.now_ms += 61000;
    step(NULL);
    w.now_ms += 60000;
    step(NULL);
    assert_int_equal(jobs(), 1);
    assert_non_null(strstr(said, "JobAlreadyActive"));
    end_job("c-29453761", "Complete");
    step(NULL);
    assert_non_null(strstr(said, "SawCompletedJob"));
    assert_non_null(world_get(&w, &workload_jobs, "c-29453762"));
    json_set_string(json_get(world_get(&w, &workload_cron_jobs, "c"), "spec"), "concurrencyPolicy",
                    "Replace");
    w.now_ms += 60000;
    step(NULL);
    assert_null(world_get(&w, &workload_jobs, "c-29453762"));
    assert_non_null(world_get(&w, &workload_jobs, "c-29453763"));
}

static void old_jobs_go_by_their_limits(void **state)
{
    static const char *const ends[] = {"Complete", "Failed", "Complete", "Failed", "Complete"};
    add(CRON("* * * * *", ""));
    for (int i = 0; i < 5; i++) {
        CLEANUP_FREE char *name = xasprintf("c-%d", 29453761 + i);
        w.now_ms += i ? 60000 : 61000;
        step(NULL);
        end_job(name, ends[i]);
    }
    step(NULL);
    assert_int_equal(jobs(), 2);
    assert_non_null(world_get(&w, &workload_jobs, "c-29453764"));
    assert_non_null(world_get(&w, &workload_jobs, "c-29453765"));
    assert_string_equal(json_path_string(world_get(&w, &workload_cron_jobs, "c"), "status",
                                         "lastSuccessfulTime", NULL),
                        "2026-01-01T00:03:00Z");
}

static void what_is_suspended_or_wrong_makes_no_jobs(void **state)
{
    add(CRON("* * * * *", ", 'suspend': true"));
    w.now_ms += 61000;
    step(NULL);
    assert_int_equal(jobs(), 0);
    json_set_bool(json_get(world_get(&w, &workload_cron_jobs, "c"), "spec"), "suspend", false);
    step("no such file");
    assert_int_equal(jobs(), 0);
    assert_non_null(strstr(said, "UnknownTimeZone"));
    json_set_string(json_get(world_get(&w, &workload_cron_jobs, "c"), "spec"), "schedule", "x");
    step(NULL);
    assert_non_null(strstr(said, "UnparseableSchedule"));
    json_set_string(json_get(world_get(&w, &workload_cron_jobs, "c"), "spec"), "schedule",
                    "* * * * *");
    step(NULL);
    assert_int_equal(jobs(), 1);
}

int main(void)
{
#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, start_world, end_world)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_time_is_the_first_minute_that_fits),
        cmocka_unit_test(a_time_that_never_comes_is_0),
        cmocka_unit_test(the_last_missed_time_is_found_across_years),
        cmocka_unit_test(zones_have_summers),
        WITH_WORLD(an_interval_goes_on_from_the_last_time),
        WITH_WORLD(each_time_gets_one_job),
        WITH_WORLD(a_job_that_could_not_be_made_is_tried_again),
        WITH_WORLD(only_the_latest_missed_time_counts),
        WITH_WORLD(a_deadline_lets_late_times_go),
        WITH_WORLD(policies_about_jobs_that_still_run),
        WITH_WORLD(old_jobs_go_by_their_limits),
        WITH_WORLD(what_is_suspended_or_wrong_makes_no_jobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
