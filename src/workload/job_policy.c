/* SPDX-License-Identifier: Apache-2.0 */
/* Policies of Jobs: what failures of pods mean, and when enough indexes have succeeded. */
#include "api/obj.h"
#include "base/mem.h"
#include "base/str.h"
#include "workload/job_priv.h"

static bool has_value(const struct json *values, int64_t code)
{
    const struct json *v;
    JSON_FOREACH (v, values) {
        if (json_get_int_or(v, -1) == code) {
            return true;
        }
    }
    return false;
}

/* A container that ended with an exit code of the rule; NULL: none. */
static const struct json *find_exit(const struct json *rule, const struct json *pod)
{
    static const char *const lists[] = {"initContainerStatuses", "containerStatuses"};
    const struct json *codes = json_get(rule, "onExitCodes"), *s;
    const char *name = json_path_string(codes, "containerName", NULL);
    bool inverse = streq(json_get_text(codes, "operator"), "NotIn");
    for (size_t i = 0; i < ARRAY_SIZE(lists) && codes; i++) {
        JSON_FOREACH (s, json_path(pod, "status", lists[i], NULL)) {
            int64_t code =
                json_get_int_or(json_path(s, "state", "terminated", "exitCode", NULL), 0);
            if (code != 0 && (!name || streq(name, json_get_text(s, "name"))) &&
                has_value(json_get(codes, "values"), code) != inverse) {
                return s;
            }
        }
    }
    return NULL;
}

static const struct json *find_condition(const struct json *rule, const struct json *pod)
{
    const struct json *pattern, *c;
    JSON_FOREACH (pattern, json_get(rule, "onPodConditions")) {
        JSON_FOREACH (c, json_path(pod, "status", "conditions", NULL)) {
            if (streq(json_get_text(c, "type"), json_get_text(pattern, "type")) &&
                streq(json_get_text(c, "status"), json_get_text(pattern, "status"))) {
                return c;
            }
        }
    }
    return NULL;
}

static char *describe(const struct json *pod, const struct json *exited, const struct json *c,
                      const char *action, size_t index)
{
    if (exited) {
        long long code =
            json_get_int_or(json_path(exited, "state", "terminated", "exitCode", NULL), 0);
        return xasprintf("Container %s for pod %s/%s failed with exit code %lld matching %s rule "
                         "at index %zu",
                         json_get_text(exited, "name"), obj_namespace(pod), obj_name(pod), code,
                         action, index);
    }
    return xasprintf("Pod %s/%s has condition %s matching %s rule at index %zu", obj_namespace(pod),
                     obj_name(pod), json_get_text(c, "type"), action, index);
}

enum job_action job_failure_action(const struct job *j, const struct json *pod, char **ret_text)
{
    static const char *const names[] = {[JOB_COUNT] = "Count",
                                        [JOB_IGNORE] = "Ignore",
                                        [JOB_FAIL_INDEX] = "FailIndex",
                                        [JOB_FAIL] = "FailJob"};
    const struct json *rules = json_path(j->spec, "podFailurePolicy", "rules", NULL);
    if (!workload_pod_has_phase(pod, "Failed")) {
        return JOB_COUNT;
    }
    for (size_t i = 0; i < json_count(rules); i++) {
        const struct json *rule = json_at(rules, i), *exited = find_exit(rule, pod);
        const struct json *c = exited ? NULL : find_condition(rule, pod);
        const char *action = json_get_text(rule, "action");
        for (size_t k = 0; (exited || c) && k < ARRAY_SIZE(names); k++) {
            if (!streq(action, names[k])) {
                continue;
            }
            if (k == JOB_FAIL && ret_text) {
                *ret_text = describe(pod, exited, c, action, i);
            }
            return (enum job_action) k;
        }
    }
    return JOB_COUNT;
}

static bool rule_holds(const struct job *j, const struct json *rule)
{
    const char *text = json_path_string(rule, "succeededIndexes", NULL);
    const struct json *count = json_get(rule, "succeededCount");
    struct indexes wanted;
    size_t all = 0, met = 0;
    indexes_parse(text, j->done.n, &wanted);
    for (size_t i = 0; i < j->done.n; i++) {
        bool counts = !text || wanted.has[i];
        all += counts;
        met += counts && j->done.has[i];
    }
    indexes_done(&wanted);
    return count ? (int64_t) met >= json_get_int_or(count, 0) : all > 0 && met == all;
}

int64_t job_success_rule(const struct job *j)
{
    const struct json *rules = json_path(j->spec, "successPolicy", "rules", NULL);
    for (size_t i = 0; i < json_count(rules) && j->indexed; i++) {
        if (rule_holds(j, json_at(rules, i))) {
            return (int64_t) i;
        }
    }
    return -1;
}
