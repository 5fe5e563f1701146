/* SPDX-License-Identifier: Apache-2.0 */
/* The pure parts of what watches over services: idling, the audit, and the masters
 * behind the API. */
#include "controller/obj.h"
#include "controllers/services/idling.h"
#include "controllers/services/master_service.h"
#include "controllers/services/service_audit.h"

#include "base/mem.h"
#include "base/timeutil.h"
#include "json_text.h"

#define AT "2026-01-02T03:04:05Z"

static struct json *annotated(const char *targets)
{
    struct json *o = obj_new("v1", "Endpoints", "red", "web");
    obj_set_annotation(o, IDLE_AT, AT);
    if (targets) {
        obj_set_annotation(o, IDLE_TARGETS, targets);
    }
    return o;
}

static void targets_are_read_as_far_as_they_are_good(void **state)
{
    static const struct {
        const char *text;
        size_t n;
    } cases[] = {
        {NULL, 0},
        {"", 0},
        {"{", 0},
        {"{}", 0},
        {"[{\"kind\":\"D\",\"name\":\"x\",\"group\":\"apps\",\"replicas\":2}]", 1},
        {"[{\"kind\":\"D\",\"name\":\"x\",\"replicas\":1},7,{\"name\":\"y\",\"replicas\":1}]", 1},
        {"[{\"kind\":\"D\",\"name\":\"x\",\"replicas\":0}]", 0},
        {"[{\"kind\":\"D\",\"name\":\"x\",\"replicas\":99999999999}]", 0},
        {"[{\"kind\":7,\"name\":\"x\",\"replicas\":1}]", 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *o = annotated(cases[i].text);
        CLEANUP(json_free) struct json *list = idle_targets(o);
        assert_int_equal(json_count(list), cases[i].n);
        assert_true(idle_is_idled(o));
    }
}

static void an_event_counts_from_the_second_of_the_idling_on(void **state)
{
    static const struct {
        const char *event;
        bool counts;
    } cases[] = {
        {"{\"lastTimestamp\":\"" AT "\"}", true},
        {"{\"lastTimestamp\":\"2026-01-02T03:04:04Z\"}", false},
        {"{\"lastTimestamp\":\"2026-01-02T03:05:00Z\",\"firstTimestamp\":\"2020-01-01T00:00:00Z\"}",
         true},
        {"{\"eventTime\":\"2026-01-02T03:04:05.9Z\"}", true},
        {"{\"eventTime\":\"2026-01-01T00:00:00Z\",\"series\":{\"lastObservedTime\":"
         "\"2026-01-02T03:05:00Z\"}}",
         true},
        {"{}", false},
        {"{\"lastTimestamp\":7}", false},
    };
    CLEANUP(json_free) struct json *endpoints = annotated(NULL);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *event = NULL;
        assert_int_equal(json_parse(cases[i].event, strlen(cases[i].event), &event, NULL), 0);
        if (idle_event_counts(event, endpoints) != cases[i].counts) {
            fail_msg("%s", cases[i].event);
        }
    }
    CLEANUP(json_free) struct json *other = obj_new("v1", "Endpoints", "red", "web");
    CLEANUP(json_free) struct json *event = json_object();
    json_set_string(event, "lastTimestamp", AT);
    assert_false(idle_event_counts(event, other));
}

static struct json *lease(const char *holder, const char *renewed, int64_t seconds)
{
    struct json *o = json_object(), *spec = json_ensure_object(o, "spec");
    json_set_string(spec, "holderIdentity", holder);
    json_set_string(spec, "renewTime", renewed);
    json_set_int(spec, "leaseDurationSeconds", seconds);
    return o;
}

static void masters_whose_leases_are_fresh_are_endpoints(void **state)
{
    CLEANUP(json_free) struct json *list = json_array();
    int64_t now;
    assert_int_equal(time_parse("2026-01-02T03:04:20Z", &now), 0);
    json_append(list, lease("192.0.2.2:8443", "2026-01-02T03:04:19Z", 15));
    json_append(list, lease("192.0.2.1:8443", "2026-01-02T03:04:05Z", 15));
    json_append(list, lease("192.0.2.3:8443", "2026-01-02T03:04:04Z", 15));
    json_append(list, lease("192.0.2.1:8444", "2026-01-02T03:04:19Z", 15));
    json_append(list, lease("192.0.2.2:8443", "2026-01-02T03:04:19Z", 15));
    json_append(list, lease("0.0.0.0:8443", "2026-01-02T03:04:19Z", 15));
    json_append(list, lease("nobody", "2026-01-02T03:04:19Z", 15));
    json_append(list, lease("192.0.2.9:70000", "2026-01-02T03:04:19Z", 15));
    CLEANUP(json_free) struct json *subsets = master_service_subsets(list, now);
    CLEANUP_FREE char *text = json_to_text(subsets);
    assert_string_equal(text,
                        "[{\"addresses\":[{\"ip\":\"192.0.2.1\"},{\"ip\":\"192.0.2.2\"}],"
                        "\"ports\":[{\"name\":\"https\",\"port\":8443,\"protocol\":\"TCP\"}]},{"
                        "\"addresses\":[{\"ip\":\"192.0.2.1\"}],\"ports\":[{\"name\":\"https\","
                        "\"port\":8444,\"protocol\":\"TCP\"}]}]");
}

static void a_masters_lease_is_renewed_by_its_version(void **state)
{
    int64_t now;
    assert_int_equal(time_parse("2026-01-02T03:04:20Z", &now), 0);
    CLEANUP(json_free) struct json *first = master_service_lease(NULL, "m", 0xc0000201, 8443, now);
    assert_null(json_path_string(first, "metadata", "resourceVersion", NULL));
    assert_string_equal(json_path_string(first, "spec", "holderIdentity", NULL), "192.0.2.1:8443");
    CLEANUP(json_free) struct json *found = json_clone(first);
    json_set_string(json_get(found, "metadata"), "resourceVersion", "7");
    json_set_string(json_get(found, "spec"), "renewTime", "2026-01-02T03:00:00.000000Z");
    CLEANUP(json_free) struct json *next = master_service_lease(found, "m", 0xc0000201, 8443, now);
    assert_string_equal(json_path_string(next, "metadata", "resourceVersion", NULL), "7");
    assert_string_equal(json_path_string(next, "metadata", "labels", MASTER_LEASE_LABEL, NULL),
                        "true");
    assert_string_equal(json_path_string(next, "spec", "renewTime", NULL),
                        "2026-01-02T03:04:20.000000Z");
}

static void the_audit_knows_what_a_service_has(void **state)
{
    struct service_ranges r;
    CLEANUP(json_free) struct json *o = NULL;
    static const char text[] =
        "{\"spec\":{\"type\":\"LoadBalancer\",\"clusterIP\":\"172.30.0.9\","
        "\"externalTrafficPolicy\":"
        "\"Local\",\"healthCheckNodePort\":30002,\"ports\":[{\"nodePort\":30001},{\"nodePort\":"
        "30001},"
        "{\"nodePort\":9}]},\"status\":{\"loadBalancer\":{\"ingress\":[{\"ip\":\"172.29.0.1\"}]}}}";
    service_ranges_defaults(&r);
    assert_int_equal(json_parse(text, sizeof text - 1, &o, NULL), 0);
    CLEANUP(json_free) struct json *list = service_audit_holds(o);
    CLEANUP_FREE char *got = json_to_text(list);
    assert_string_equal(got, "[\"ip 172.30.0.9\",\"port 30001\",\"port 9\",\"port 30002\","
                             "\"ingress 172.29.0.1\"]");
    assert_true(service_audit_in_range(&r, "ip 172.30.0.9"));
    assert_false(service_audit_in_range(&r, "ip 10.0.0.1"));
    assert_false(service_audit_in_range(&r, "port 9"));
    assert_true(service_audit_in_range(&r, "port 32767"));
    assert_false(service_audit_waits(&r, o));
    json_remove(o, "status");
    assert_true(service_audit_waits(&r, o));
    json_set_string(json_get(o, "spec"), "loadBalancerClass", "a/b");
    assert_false(service_audit_waits(&r, o));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(targets_are_read_as_far_as_they_are_good),
        cmocka_unit_test(an_event_counts_from_the_second_of_the_idling_on),
        cmocka_unit_test(masters_whose_leases_are_fresh_are_endpoints),
        cmocka_unit_test(a_masters_lease_is_renewed_by_its_version),
        cmocka_unit_test(the_audit_knows_what_a_service_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
