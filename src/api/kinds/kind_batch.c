/* SPDX-License-Identifier: Apache-2.0 */
/* Job and CronJob (batch/v1): the rules beyond their descriptions, in the words of
 * kube-apiserver. */
#include "api/condition.h"
#include "api/kind_util.h"
#include "api/kinds.h"
#include "api/kinds/cron.h"
#include "api/kinds/kind_pod.h"
#include "api/kinds/template.h"
#include "api/label_selector.h"
#include "base/timeutil.h"

#include <strings.h>

#define BATCH "batch.kubernetes.io/"
#define MAX_NAME 52 /* A CronJob's, so that names of its Jobs have room for the time. */
#define MAX_LABEL 63
#define MAX_INDEXED_PARALLELISM 100000
#define ZONE_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-_/"

/* ---- cells ---- */

struct json *kind_job_cell_status(const struct json *obj, int64_t now_ms)
{
    static const char *const ended[] = {"Complete", "Failed"};
    static const char *const others[] = {"Suspended", "FailureTarget", "SuccessCriteriaMet"};
    for (size_t i = 0; i < ARRAY_SIZE(ended); i++) {
        if (condition_is_true(obj, ended[i])) {
            return json_string(ended[i]);
        }
    }
    if (json_path(obj, "metadata", "deletionTimestamp", NULL)) {
        return json_string("Terminating");
    }
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        if (condition_is_true(obj, others[i])) {
            return json_string(others[i]);
        }
    }
    return json_string("Running");
}

struct json *kind_job_cell_completions(const struct json *obj, int64_t now_ms)
{
    const struct json *spec = json_get(obj, "spec"), *wanted = json_get(spec, "completions");
    long long done = json_get_int_or(json_path(obj, "status", "succeeded", NULL), 0);
    long long parallel = json_get_int_or(json_get(spec, "parallelism"), 0);
    if (wanted) {
        return json_stringf("%lld/%lld", done, (long long) json_get_int_or(wanted, 0));
    }
    return parallel > 1 ? json_stringf("%lld/1 of %lld", done, parallel)
                        : json_stringf("%lld/1", done);
}

struct json *kind_job_cell_duration(const struct json *obj, int64_t now_ms)
{
    const char *begin = json_path_string(obj, "status", "startTime", NULL);
    const char *end = json_path_string(obj, "status", "completionTime", NULL);
    int64_t end_ms;
    if (!begin) {
        return json_string("");
    }
    return api_cell_since(begin, end && time_parse(end, &end_ms) == 0 ? end_ms : now_ms);
}

struct json *kind_cron_job_cell_last_schedule(const struct json *obj, int64_t now_ms)
{
    const char *last = json_path_string(obj, "status", "lastScheduleTime", NULL);
    return last ? api_cell_since(last, now_ms) : json_string("<none>");
}

/* ---- labels and selector that the server chooses ---- */

static bool is_manual(const struct json *job)
{
    return json_get_bool(json_path(job, "spec", "manualSelector", NULL), false);
}

static void set_absent(struct json *labels, const char *key, const char *value)
{
    if (!json_get(labels, key)) {
        json_set_string(labels, key, value);
    }
}

/* The label with the Job's name; a name that the server has generated replaces an earlier one. */
static void label_name(const struct json *job, struct json *labels)
{
    static const char *const keys[] = {BATCH "job-name", "job-name"};
    const char *name = json_path_string(job, "metadata", "name", NULL);
    bool generated = json_string_size(json_path(job, "metadata", "generateName", NULL)) > 0;
    for (size_t i = 0; name && i < ARRAY_SIZE(keys) && strlen(name) <= MAX_LABEL; i++) {
        if (generated) {
            json_remove(labels, keys[i]);
        }
        set_absent(labels, keys[i], name);
    }
}

/* A new Job gets a selector by its UID, and its template the labels of that selector. */
static void choose_selector(struct json *job)
{
    const char *uid = json_path_string(job, "metadata", "uid", NULL);
    struct json *spec = json_get(job, "spec");
    struct json *meta = api_default_object(json_get(spec, "template"), "metadata");
    struct json *labels = meta ? api_default_object(meta, "labels") : NULL;
    struct json *selector = labels ? api_default_object(spec, "selector") : NULL;
    struct json *match = selector ? api_default_object(selector, "matchLabels") : NULL;
    if (uid && match) {
        set_absent(labels, BATCH "controller-uid", uid);
        set_absent(labels, "controller-uid", uid);
        set_absent(match, BATCH "controller-uid", uid);
    }
}

void kind_job_prepare(struct json *obj, const struct json *old)
{
    struct json *template = template_ensure(template_prepare(obj, old), "template");
    if (template && !old && !is_manual(obj)) {
        choose_selector(obj);
    }
}

/* ---- defaults ---- */

void kind_job_defaults(struct json *obj)
{
    struct json *spec = json_get(obj, "spec"), *meta = json_get(obj, "metadata");
    struct json *labels = json_path(spec, "template", "metadata", "labels", NULL);
    if (!json_is(spec, JSON_OBJECT)) {
        return;
    }
    if (json_get(labels, BATCH "controller-uid") && !is_manual(obj)) {
        label_name(obj, labels);
    }
    if (!json_get(spec, "completions") && !json_get(spec, "parallelism")) {
        json_set_int(spec, "completions", 1);
    }
    api_default_int(spec, "parallelism", 1);
    api_default_int(spec, "backoffLimit", json_get(spec, "backoffLimitPerIndex") ? INT32_MAX : 6);
    api_default_string(spec, "completionMode", "NonIndexed");
    api_default_string(spec, "podReplacementPolicy",
                       json_get(spec, "podFailurePolicy") ? "Failed" : "TerminatingOrFailed");
    if (!json_get(spec, "suspend")) {
        json_set_bool(spec, "suspend", false);
    }
    if (!json_get(spec, "manualSelector")) {
        json_set_bool(spec, "manualSelector", false);
    }
    if (json_count(json_get(meta, "labels")) == 0 && json_count(labels)) {
        json_set(meta, "labels", json_clone(labels));
    }
    template_default(json_get(spec, "template"));
}

void kind_cron_job_prepare(struct json *obj, const struct json *old)
{
    struct json *spec = template_prepare(obj, old);
    struct json *job = template_ensure(spec, "jobTemplate");
    (void) template_ensure(json_get(job, "spec"), "template");
}

void kind_cron_job_defaults(struct json *obj)
{
    template_default(json_path(obj, "spec", "jobTemplate", "spec", "template", NULL));
}

/* ---- validation ---- */

static void check_failure_rule(struct api_causes *c, const char *field, const struct json *rule)
{
    bool codes = json_get(rule, "onExitCodes") != NULL;
    bool conditions = json_count(json_get(rule, "onPodConditions")) > 0;
    if (codes && conditions) {
        api_invalid(c, field, rule,
                    "specifying both OnExitCodes and OnPodConditions is not supported");
    } else if (!codes && !conditions) {
        api_invalid(c, field, rule,
                    "specifying one of OnExitCodes and OnPodConditions is required");
    }
}

static void check_failure_policy(struct api_causes *c, const char *field, const struct json *spec)
{
    const struct json *rules = json_path(spec, "podFailurePolicy", "rules", NULL);
    const struct json *policy = json_path(spec, "template", "spec", "restartPolicy", NULL);
    for (size_t i = 0; i < json_count(rules); i++) {
        check_failure_rule(c, API_FIELD("%s.podFailurePolicy.rules[%zu]", field, i),
                           json_at(rules, i));
    }
    if (json_get(spec, "podFailurePolicy") && !streq_null(json_get_string(policy), "Never")) {
        api_invalid(c, API_FIELD("%s.template.spec.restartPolicy", field), policy,
                    "only \"Never\" is supported when podFailurePolicy is specified");
    }
}

/* Rules for Jobs and for the templates of CronJobs. */
static void check_job_spec(struct api_causes *c, const char *field, const struct json *spec,
                           const struct json *old)
{
    static const char *const indexed_only[] = {"backoffLimitPerIndex", "maxFailedIndexes",
                                               "successPolicy"};
    bool indexed = streq_null(json_path_string(spec, "completionMode", NULL), "Indexed");
    const struct json *parallelism = json_get(spec, "parallelism");
    template_check(c, API_FIELD("%s.template", field), json_get(spec, "template"),
                   json_get(old, "template"), NULL);
    if (indexed && !json_get(spec, "completions")) {
        api_required(c, API_FIELD("%s.completions", field), "when completion mode is Indexed");
    }
    if (indexed && json_get_int_or(parallelism, 0) > MAX_INDEXED_PARALLELISM) {
        api_invalid(c, API_FIELD("%s.parallelism", field), parallelism,
                    "must be less than or equal to %d when completion mode is Indexed",
                    MAX_INDEXED_PARALLELISM);
    }
    for (size_t i = 0; i < ARRAY_SIZE(indexed_only) && !indexed; i++) {
        const struct json *v = json_get(spec, indexed_only[i]);
        if (v) {
            api_invalid(c, API_FIELD("%s.%s", field, indexed_only[i]), v,
                        "requires indexed completion mode");
        }
    }
    check_failure_policy(c, field, spec);
}

/* The template has the label that the server chose. */
static void check_label(struct api_causes *c, const struct json *labels, const char *key,
                        const char *want)
{
    const char *has = json_path_string(labels, key, NULL);
    const char *field = API_FIELD("spec.template.metadata.labels[%s]", key);
    if (!has) {
        api_required(c, field, "must be '%s'", want);
    } else if (!streq(has, want)) {
        api_invalid(c, field, json_get(labels, key), "must be '%s'", want);
    }
}

static void check_chosen_selector(struct api_causes *c, const struct json *obj)
{
    const struct json *spec = json_get(obj, "spec"), *selector = json_get(spec, "selector");
    const struct json *labels = json_path(spec, "template", "metadata", "labels", NULL);
    const char *uid = json_path_string(obj, "metadata", "uid", NULL);
    const char *name = json_path_string(obj, "metadata", "name", NULL);
    if (is_manual(obj) || !selector || !uid || !name) {
        return;
    }
    check_label(c, labels, BATCH "controller-uid", uid);
    check_label(c, labels, BATCH "job-name", name);
    CLEANUP(json_free) struct json *chosen = json_object();
    json_set_string(chosen, "controller-uid", uid);
    json_set_string(chosen, "job-name", name);
    json_set_string(chosen, BATCH "controller-uid", uid);
    json_set_string(chosen, BATCH "job-name", name);
    if (!label_selector_matches(selector, chosen)) {
        api_invalid(c, "spec.selector", selector, "`selector` not auto-generated");
    }
}

/* While a Job is suspended and has never run, the place where its pods run can be changed. */
static struct json *fixed_template(const struct json *obj, const struct json *old)
{
    static const char *const free[] = {"affinity", "nodeSelector", "schedulingGates",
                                       "tolerations"};
    struct json *template = json_clone(json_path(obj, "spec", "template", NULL));
    bool waits = json_get_bool(json_path(old, "spec", "suspend", NULL), false) &&
                 !json_path(old, "status", "startTime", NULL);
    for (size_t i = 0; waits && i < ARRAY_SIZE(free); i++) {
        json_remove(json_get(template, "spec"), free[i]);
    }
    if (waits) {
        json_remove(json_get(template, "metadata"), "annotations");
        json_remove(json_get(template, "metadata"), "labels");
    }
    return template;
}

static void check_job_change(struct api_causes *c, const struct json *obj, const struct json *old)
{
    static const char *const fixed[] = {"backoffLimitPerIndex", "completionMode", "managedBy",
                                        "podFailurePolicy",     "selector",       "successPolicy"};
    const struct json *spec = json_get(obj, "spec"), *before = json_get(old, "spec");
    const struct json *completions = json_get(spec, "completions");
    for (size_t i = 0; i < ARRAY_SIZE(fixed); i++) {
        api_field_immutable(c, API_FIELD("spec.%s", fixed[i]), json_get(spec, fixed[i]),
                            json_get(before, fixed[i]));
    }
    bool elastic = streq_null(json_path_string(spec, "completionMode", NULL), "Indexed") &&
                   completions && json_equal(completions, json_get(spec, "parallelism"));
    if (!elastic) {
        api_field_immutable(c, "spec.completions", completions, json_get(before, "completions"));
    }
    CLEANUP(json_free) struct json *now_template = fixed_template(obj, old);
    CLEANUP(json_free) struct json *old_template = fixed_template(old, old);
    if (!pod_template_is_same(now_template, old_template)) {
        api_invalid(c, "spec.template", now_template, "field is immutable");
    }
}

void kind_job_validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    const struct json *spec = json_get(obj, "spec"), *selector = json_get(spec, "selector");
    const struct json *labels = json_path(spec, "template", "metadata", "labels", NULL);
    check_chosen_selector(c, obj);
    check_job_spec(c, "spec", spec, json_get(old, "spec"));
    if (!selector) {
        api_required(c, "spec.selector", "");
    } else {
        label_selector_check(c, "spec.selector", selector);
        if (!label_selector_matches(selector, labels)) {
            api_invalid(c, "spec.template.metadata.labels", labels,
                        "`selector` does not match template `labels`");
        }
    }
    if (old) {
        check_job_change(c, obj, old);
    }
}

static void check_schedule(struct api_causes *c, const struct json *schedule)
{
    const char *s = json_get_string(schedule);
    struct err e = {0};
    if (strstr(s, "TZ")) {
        api_invalid(c, "spec.schedule", schedule,
                    "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
    } else if (cron_check_schedule(s, &e) < 0) {
        api_invalid(c, "spec.schedule", schedule, "%s", e.text);
    }
}

/* The form of a name of the IANA time zone database: the database itself is the controller's. */
static void check_zone(struct api_causes *c, const struct json *zone)
{
    const char *s = json_get_string(zone);
    if (!s) {
        return;
    }
    if (!*s) {
        api_invalid(c, "spec.timeZone", zone, "timeZone must be nil or non-empty string");
    } else if (strcasecmp(s, "Local") == 0) {
        api_invalid(c, "spec.timeZone", zone,
                    "timeZone must be an explicit time zone as defined in "
                    "https://www.iana.org/time-zones");
    } else if (*s == '/' || strstr(s, "..") || s[strspn(s, ZONE_LETTERS)]) {
        api_invalid(c, "spec.timeZone", zone, "unknown time zone %s", s);
    }
}

void kind_cron_job_validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    static const char *const unset[] = {"nil", "false", NULL};
    const struct json *spec = json_get(obj, "spec"),
                      *name = json_path(obj, "metadata", "name", NULL);
    const struct json *job = json_path(spec, "jobTemplate", "spec", NULL);
    const struct json *manual = json_get(job, "manualSelector"),
                      *selector = json_get(job, "selector");
    if (json_string_size(name) > MAX_NAME) {
        api_invalid(c, "metadata.name", name, "must be no more than %d characters", MAX_NAME);
    }
    check_schedule(c, json_get(spec, "schedule"));
    check_zone(c, json_get(spec, "timeZone"));
    check_job_spec(c, "spec.jobTemplate.spec", job,
                   json_path(old, "spec", "jobTemplate", "spec", NULL));
    if (selector) {
        api_invalid(c, "spec.jobTemplate.spec.selector", selector,
                    "`selector` will be auto-generated");
    }
    if (json_get_bool(manual, false)) {
        api_unsupported(c, "spec.jobTemplate.spec.manualSelector", manual, unset);
    }
}
