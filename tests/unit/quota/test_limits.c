/* SPDX-License-Identifier: Apache-2.0 */
/* LimitRanges: defaults and checks, in Kubernetes' words.  In all texts ' stands for ". */
#include "json_text.h"
#include "quota/limits.h"

#define RANGE(limits) "{'spec': {'limits': [" limits "]}}"
#define POD(containers) "{'metadata': {}, 'spec': {'containers': [" containers "]}}"
#define STATED(r, l) "{'name': 'c', 'resources': {'requests': {" r "}, 'limits': {" l "}}}"

static void containers_get_what_they_do_not_state(void **state)
{
    CLEANUP(json_free)
    struct json *range = from(RANGE("{'type': 'Pod', 'max': {'cpu': '9'}}, {'type': "
                                    "'Container', 'default': {'memory': '2', 'cpu': '1'}, "
                                    "'defaultRequest': {'cpu': '500m'}}"));
    CLEANUP(json_free)
    struct json *pod =
        from("{'metadata': {'name': 'p'}, 'spec': {'containers': [{'name': 'a'}, {'name': 'b', "
             "'resources': {'limits': {'cpu': '3'}, 'requests': {'cpu': '3'}}}], 'initContainers': "
             "[{'name': 'i', 'resources': {'limits': {'cpu': '1', 'memory': '2'}}}]}}");
    assert_true(limits_fill_pod(range, pod));
    assert_json(
        pod,
        "{'metadata': {'name': 'p', 'annotations': {'kubernetes.io/limit-ranger': 'LimitRanger "
        "plugin set: cpu request for container a; cpu, memory limit for container a; memory limit "
        "for container b; cpu request for init container i'}}, 'spec': {'containers': [{'name': "
        "'a', 'resources': {'requests': {'cpu': '500m'}, 'limits': {'memory': '2', 'cpu': '1'}}}, "
        "{'name': 'b', 'resources': {'limits': {'cpu': '3', 'memory': '2'}, 'requests': {'cpu': "
        "'3'}}}], 'initContainers': [{'name': 'i', 'resources': {'limits': {'cpu': '1', 'memory': "
        "'2'}, 'requests': {'cpu': '500m'}}}]}}");
    assert_false(limits_fill_pod(range, pod));
}

static void what_is_outside_is_named(void **state)
{
    static const struct {
        const char *range, *obj;
        bool is_claim;
        const char *want;
    } rows[] = {
        {RANGE("{'type': 'Container', 'max': {'cpu': '1'}}"),
         POD(STATED("'cpu': '1'", "'cpu': '1'")), false, NULL},
        {RANGE("{'type': 'Container', 'max': {'cpu': '1'}}"),
         POD(STATED("'cpu': '1'", "'cpu': '2'")), false,
         "maximum cpu usage per Container is 1, but limit is 2"},
        {RANGE("{'type': 'Container', 'max': {'cpu': '1'}}"), POD("{'name': 'c'}"), false,
         "maximum cpu usage per Container is 1.  No limit is specified"},
        {RANGE("{'type': 'Container', 'min': {'memory': '1Gi'}}"),
         POD(STATED("'memory': '1G'", "")), false,
         "minimum memory usage per Container is 1Gi, but request is 1G"},
        {RANGE("{'type': 'Container', 'min': {'memory': '1Gi'}}"), POD("{'name': 'c'}"), false,
         "minimum memory usage per Container is 1Gi.  No request is specified"},
        {RANGE("{'type': 'Container', 'min': {'cpu': '2'}, 'max': {'cpu': '4'}}"),
         POD("{'name': 'c'}, {'name': 'd'}"), false,
         "[minimum cpu usage per Container is 2.  No request is specified, maximum cpu usage per "
         "Container is 4.  No limit is specified]"},
        {RANGE("{'type': 'Pod', 'max': {'cpu': '3'}}"),
         POD(STATED("'cpu': '1'", "'cpu': '2'") ", " STATED("'cpu': '1'", "'cpu': '2'")), false,
         "maximum cpu usage per Pod is 3, but limit is 4"},
        {RANGE("{'type': 'Pod', 'max': {'cpu': '4'}}"),
         POD(STATED("'cpu': '1'", "'cpu': '2'") ", " STATED("'cpu': '1'", "'cpu': '2'")), false,
         NULL},
        {RANGE("{'type': 'Pod', 'min': {'memory': '3Mi'}}"),
         POD(STATED("'memory': '1Mi'", "'memory': '2Mi'") ", " STATED("'memory': '1Mi'", "")),
         false, "minimum memory usage per Pod is 3Mi, but request is 2Mi"},
        {RANGE("{'type': 'Container', 'maxLimitRequestRatio': {'cpu': '2'}}"),
         POD(STATED("'cpu': '1'", "'cpu': '2'")), false, NULL},
        {RANGE("{'type': 'Container', 'maxLimitRequestRatio': {'cpu': '2'}}"),
         POD(STATED("'cpu': '1'", "'cpu': '3'")), false,
         "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000"},
        {RANGE("{'type': 'Container', 'maxLimitRequestRatio': {'cpu': '2'}}"),
         POD(STATED("'cpu': '1'", "")), false,
         "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is "
         "0"},
        {RANGE("{'type': 'Container', 'maxLimitRequestRatio': {'cpu': '2'}}"), POD("{'name': 'c'}"),
         false,
         "cpu max limit to request ratio per Container is 2, but no request is specified or "
         "request is 0"},
        {RANGE("{'type': 'PersistentVolumeClaim', 'max': {'storage': '1Gi'}}"),
         "{'spec': {'resources': {'requests': {'storage': '2Gi'}}}}", true,
         "maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi"},
        {RANGE("{'type': 'PersistentVolumeClaim', 'min': {'storage': '1Gi'}}"),
         "{'spec': {'resources': {'requests': {'storage': '2'}}}}", true,
         "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 2"},
        {RANGE("{'type': 'PersistentVolumeClaim', 'max': {'storage': '1Gi'}}"),
         POD("{'name': 'c'}"), false, NULL},
        {RANGE("{'type': 'Container', 'max': {'storage': '1Gi'}}"),
         "{'spec': {'resources': {'requests': {'storage': '2Gi'}}}}", true, NULL},
        {RANGE("{'type': 'openshift.io/Image', 'max': {'cpu': '0'}}"), POD("{'name': 'c'}"), false,
         NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(json_free) struct json *range = from(rows[i].range);
        CLEANUP(json_free) struct json *obj = from(rows[i].obj);
        CLEANUP_FREE char *got = limits_check(range, obj, rows[i].is_claim);
        if (!streq_null(got, rows[i].want) && (got || rows[i].want)) {
            fail_msg("%zu: %s", i, got ? got : "NULL");
        }
    }
}

static void init_containers_are_bounded_as_well(void **state)
{
    CLEANUP(json_free)
    struct json *range = from(RANGE("{'type': 'Container', 'max': {'cpu': '1'}}"));
    CLEANUP(json_free)
    struct json *pod = from("{'spec': {'containers': [" STATED(
        "", "'cpu': '1'") "], "
                          "'initContainers': [" STATED("", "'cpu': '5'") "]}}");
    CLEANUP_FREE char *got = limits_check(range, pod, false);
    assert_string_equal(got, "maximum cpu usage per Container is 1, but limit is 5");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(containers_get_what_they_do_not_state),
        cmocka_unit_test(what_is_outside_is_named),
        cmocka_unit_test(init_containers_are_bounded_as_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
