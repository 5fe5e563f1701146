/* SPDX-License-Identifier: Apache-2.0 */
/* An object {service, endpoints, event, pods, slices, leases} as an API server might give it: what is made of it, whatever
 * is in it. */
#include "base/mem.h"
#include "controllers/services/endpoint_plan.h"
#include "controllers/services/idling.h"
#include "controllers/services/master_service.h"
#include "controllers/services/service_audit.h"
#include "sdn/service_env.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_OBJECTS 64

static void check_slices(const struct json *groups, const struct json *slices,
                         const struct json *template)
{
    const struct json *have[MAX_OBJECTS], *step;
    size_t n = 0;
    while (n < MAX_OBJECTS && json_at(slices, n)) {
        have[n] = json_at(slices, n);
        n++;
    }
    CLEANUP(json_free) struct json *steps = slices_diff(groups, have, n, template);
    JSON_FOREACH (step, steps) {
        bool writes = !streq(json_path_string(step, "verb", NULL), "DELETE");
        if (writes && json_count(json_path(step, "object", "endpoints", NULL)) > SLICE_MAX) {
            __builtin_trap();
        }
    }
}

static void run_pods(const struct json *service, const struct json *v)
{
    struct endpoint_pod *pods[MAX_OBJECTS];
    size_t n = 0;
    const struct json *pod;
    JSON_FOREACH (pod, json_get(v, "pods")) {
        if (n < MAX_OBJECTS) {
            pods[n] = endpoint_pod_new(pod);
            (void) endpoint_pod_settle(pods[n++], pod, NULL, NULL);
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (!endpoint_pod_equal(pods[i], pods[i])) {
            __builtin_trap();
        }
        endpoint_pod_matches(pods[i], json_path(service, "spec", "selector", NULL));
    }
    CLEANUP(json_free) struct json *plan = endpoints_plan(service, pods, n);
    CLEANUP(json_free) struct json *again = endpoints_apply_plan(plan, plan);
    if (again) {
        __builtin_trap();
    }
    CLEANUP(json_free) struct json *groups = slices_plan(service, pods, n);
    CLEANUP(json_free) struct json *template = slice_template(service, SLICE_MANAGER, service);
    check_slices(groups, json_get(v, "slices"), template);
    for (size_t i = 0; i < n; i++) {
        endpoint_pod_free(pods[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(json_free) struct json *v = NULL;
    struct service_ranges r;
    if (json_parse((const char *) data, size, &v, NULL) < 0) {
        return 0;
    }
    const struct json *service = json_get(v, "service"), *endpoints = json_get(v, "endpoints");
    service_ranges_defaults(&r);
    CLEANUP(json_free) struct json *held = service_audit_holds(service);
    const struct json *item;
    JSON_FOREACH (item, held) {
        service_audit_in_range(&r, json_get_string(item));
    }
    service_audit_waits(&r, service);
    json_free(idle_targets(endpoints));
    idle_event_counts(json_get(v, "event"), endpoints);
    idle_has_ready(endpoints);
    json_free(master_service_subsets(json_get(v, "leases"), INT64_C(1800000000000)));
    CLEANUP(json_free) struct json *env = json_array();
    service_env_add(json_get(v, "services"), "red", true, env);
    service_selects(service);
    if (service_mirrors(service, endpoints)) {
        CLEANUP(json_free) struct json *groups = slices_plan_mirror(endpoints);
        CLEANUP(json_free)
        struct json *template = slice_template(service, SLICE_MIRROR_MANAGER, endpoints);
        check_slices(groups, json_get(v, "slices"), template);
    }
    if (json_is(service, JSON_OBJECT)) {
        run_pods(service, v);
    }
    return 0;
}
