/* SPDX-License-Identifier: Apache-2.0 */
/* What objects add to quotas, what quotas make obligatory, and their texts.  In all texts ' stands
 * for ". */
#include "json_text.h"
#include "quota/quota.h"

#define POD(spec) "{'metadata': {'name': 'p'}, 'spec': {" spec "}}"
#define CPU(n) "{'name': 'c', 'resources': {'requests': {'cpu': '" n "'}}}"

/* The amount that the object adds to the one item of the quota 'spec'. */
static int64_t charge_of(const char *spec, const char *group, const char *plural, const char *text)
{
    CLEANUP(json_free) struct json *v = from(spec);
    CLEANUP(json_free) struct json *obj = from(text);
    CLEANUP(quota_spec_free) struct quota_spec *s = quota_spec_new(v);
    int64_t add[QUOTA_MAX_ITEMS] = {0};
    assert_int_equal(s->n, 1);
    quota_spec_charge(s, group, plural, true, obj, add);
    return add[0];
}

struct charge_row {
    const char *resource, *group, *plural, *obj;
    int64_t want;
};

static void objects_add_what_they_are(void **state)
{
    static const struct charge_row rows[] = {
        {"pods", "", "pods", POD("'containers': []"), 1},
        {"pods", "", "pods", "{'spec': {}, 'status': {'phase': 'Succeeded'}}", 0},
        {"pods", "", "pods", "{'spec': {}, 'status': {'phase': 'Failed'}}", 0},
        {"count/pods", "", "pods", "{'spec': {}, 'status': {'phase': 'Failed'}}", 1},
        {"count/pods", "metrics.k8s.io", "pods", "{}", 0},
        {"count/deployments.apps", "apps", "deployments", "{}", 1},
        {"count/deployments.apps", "", "deployments", "{}", 0},
        {"count/widgets.example.com", "example.com", "widgets", "{}", 1},
        {"openshift.io/imagestreams", "image.openshift.io", "imagestreams", "{}", 1},
        {"secrets", "", "secrets", "{}", 1},
        {"secrets", "", "configmaps", "{}", 0},
        {"cpu", "", "pods", POD("'containers': [" CPU("250m") ", " CPU("1") "]"), 1250},
        {"requests.cpu", "", "pods", POD("'containers': [" CPU("2") "]"), 2000},
        {"limits.cpu", "", "pods", POD("'containers': [" CPU("2") "]"), 0},
        {"cpu", "", "pods",
         POD("'containers': [" CPU("1") "], 'initContainers': [" CPU("3") ", " CPU("2") "]"), 3000},
        {"cpu", "", "pods",
         POD("'containers': [" CPU("1") "], 'initContainers': [{'name': 's', 'restartPolicy': "
                                        "'Always', 'resources': {'requests': {'cpu': '2'}}}, " CPU(
                                            "2") "]"),
         4000},
        {"cpu", "", "pods", POD("'containers': [" CPU("1") "], 'overhead': {'cpu': '100m'}"), 1100},
        {"cpu", "", "pods",
         "{'spec': {'containers': [" CPU("1") "]}, 'status': {'phase': 'Succeeded'}}", 0},
        {"memory", "", "pods",
         POD("'containers': [{'name': 'c', 'resources': {'requests': {'memory': '1Ki'}}}]"), 1024},
        {"limits.memory", "", "pods",
         POD("'containers': [{'name': 'c', 'resources': {'limits': {'memory': '1k'}}}]"), 1000},
        {"requests.example.com/gpu", "", "pods",
         POD("'containers': [{'name': 'c', 'resources': {'requests': {'example.com/gpu': '3'}}}]"),
         3},
        {"hugepages-2Mi", "", "pods",
         POD("'containers': [{'name': 'c', 'resources': {'requests': {'hugepages-2Mi': '4Mi'}}}]"),
         4194304},
        {"services.nodeports", "", "services", "{'spec': {'type': 'NodePort', 'ports': [{}, {}]}}",
         2},
        {"services.nodeports", "", "services", "{'spec': {'type': 'ClusterIP', 'ports': [{}, {}]}}",
         0},
        {"services.nodeports", "", "services",
         "{'spec': {'type': 'LoadBalancer', 'ports': [{}, {}]}}", 2},
        {"services.nodeports", "", "services",
         "{'spec': {'type': 'LoadBalancer', 'allocateLoadBalancerNodePorts': false, 'ports': [{}, "
         "{'nodePort': 30000}]}}",
         1},
        {"services.loadbalancers", "", "services", "{'spec': {'type': 'LoadBalancer'}}", 1},
        {"services.loadbalancers", "", "services", "{'spec': {'type': 'NodePort'}}", 0},
        {"requests.storage", "", "persistentvolumeclaims",
         "{'spec': {'resources': {'requests': {'storage': '1Gi'}}}}", 1073741824},
        {"gold.storageclass.storage.k8s.io/requests.storage", "", "persistentvolumeclaims",
         "{'spec': {'storageClassName': 'gold', 'resources': {'requests': {'storage': '5'}}}}", 5},
        {"gold.storageclass.storage.k8s.io/requests.storage", "", "persistentvolumeclaims",
         "{'spec': {'storageClassName': 'lead', 'resources': {'requests': {'storage': '5'}}}}", 0},
        {"gold.storageclass.storage.k8s.io/persistentvolumeclaims", "", "persistentvolumeclaims",
         "{'metadata': {'annotations': {'volume.beta.kubernetes.io/storage-class': 'gold'}}, "
         "'spec': {'storageClassName': 'lead'}}",
         1},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_FREE char *spec = xasprintf("{'hard': {'%s': '1'}}", rows[i].resource);
        int64_t got = charge_of(spec, rows[i].group, rows[i].plural, rows[i].obj);
        if (got != rows[i].want) {
            fail_msg("%zu: %s of %s: %lld", i, rows[i].resource, rows[i].obj, (long long) got);
        }
    }
}

static void scopes_choose_pods(void **state)
{
#define PRIORITY(op, values)                                                                 \
    "'scopeSelector': {'matchExpressions': [{'scopeName': 'PriorityClass', 'operator': '" op \
    "', 'values': [" values "]}]}"
    static const struct {
        const char *scopes, *pod;
        int64_t want;
    } rows[] = {
        {"'scopes': ['Terminating']", POD("'activeDeadlineSeconds': 0"), 1},
        {"'scopes': ['Terminating']", POD(""), 0},
        {"'scopes': ['NotTerminating']", POD("'activeDeadlineSeconds': 5"), 0},
        {"'scopes': ['NotTerminating']", POD(""), 1},
        {"'scopes': ['BestEffort']", POD("'containers': [{'name': 'c'}]"), 1},
        {"'scopes': ['BestEffort']", POD("'containers': [{'name': 'c'}, " CPU("1") "]"), 0},
        {"'scopes': ['BestEffort']", POD("'initContainers': [" CPU("1") "]"), 0},
        {"'scopes': ['NotBestEffort']", POD("'containers': [" CPU("1") "]"), 1},
        {"'scopes': ['NotBestEffort', 'Terminating']", POD("'containers': [" CPU("1") "]"), 0},
        {"'scopes': ['PriorityClass']", POD("'priorityClassName': 'high'"), 1},
        {"'scopes': ['PriorityClass']", POD(""), 0},
        {PRIORITY("In", "'high', 'low'"), POD("'priorityClassName': 'high'"), 1},
        {PRIORITY("In", "'low'"), POD("'priorityClassName': 'high'"), 0},
        {PRIORITY("NotIn", "'low'"), POD(""), 1},
        {PRIORITY("DoesNotExist", ""), POD(""), 1},
        {PRIORITY("DoesNotExist", ""), POD("'priorityClassName': 'high'"), 0},
        {"'scopes': ['CrossNamespacePodAffinity']", POD(""), 0},
        {"'scopes': ['CrossNamespacePodAffinity']",
         POD("'affinity': {'podAntiAffinity': {'requiredDuringSchedulingIgnoredDuringExecution': "
             "[{'namespaces': ['x']}]}}"),
         1},
        {"'scopes': ['CrossNamespacePodAffinity']",
         POD("'affinity': {'podAffinity': {'preferredDuringSchedulingIgnoredDuringExecution': "
             "[{'podAffinityTerm': {'namespaceSelector': {}}}]}}"),
         1},
        {"'scopes': ['CrossNamespacePodAffinity']",
         POD("'affinity': {'podAffinity': {'requiredDuringSchedulingIgnoredDuringExecution': "
             "[{'topologyKey': 'x'}]}}"),
         0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_FREE char *spec = xasprintf("{'hard': {'pods': '1'}, %s}", rows[i].scopes);
        int64_t got = charge_of(spec, "", "pods", rows[i].pod);
        if (got != rows[i].want) {
            fail_msg("%zu: %s of %s: %lld", i, rows[i].scopes, rows[i].pod, (long long) got);
        }
    }
}

static void a_scoped_quota_counts_nothing_but_pods(void **state)
{
    CLEANUP(json_free)
    struct json *v = from("{'hard': {'count/secrets': '1', 'pods': '1'}, 'scopes': "
                          "['Terminating']}");
    CLEANUP(quota_spec_free) struct quota_spec *s = quota_spec_new(v);
    int64_t add[QUOTA_MAX_ITEMS];
    assert_false(quota_spec_concerns(s, "", "secrets"));
    assert_true(quota_spec_concerns(s, "", "pods"));
    quota_spec_charge(s, "", "secrets", true, NULL, add);
    assert_int_equal(add[0], 0);
}

static void only_kinds_whose_content_counts_are_read(void **state)
{
    CLEANUP(json_free)
    struct json *v = from("{'hard': {'services': '1', 'services.nodeports': '1', "
                          "'count/secrets': '1', 'wrong': '1'}}");
    CLEANUP(quota_spec_free) struct quota_spec *s = quota_spec_new(v);
    assert_true(quota_spec_reads(s, "", "services"));
    assert_false(quota_spec_reads(s, "", "secrets"));
    assert_true(quota_spec_concerns(s, "", "secrets"));
    assert_false(quota_spec_concerns(s, "", "wrong"));
    assert_false(quota_spec_concerns(s, "", ""));
    int64_t add[QUOTA_MAX_ITEMS];
    quota_spec_charge(s, "", "secrets", true, NULL, add);
    assert_int_equal(add[0], 1);
    quota_spec_charge(s, "", "secrets", false, NULL, add);
    assert_int_equal(add[0], 0);
}

static void quotas_of_compute_make_amounts_obligatory(void **state)
{
    static const struct {
        const char *hard, *containers, *want;
    } rows[] = {
        {"'pods': '1'", "{'name': 'a'}", NULL},
        {"'limits.cpu': '1'", "{'name': 'b'}, {'name': 'a'}", "must specify limits.cpu for: a,b"},
        {"'cpu': '1'", CPU("1"), NULL},
        {"'requests.cpu': '1', 'memory': '1'", CPU("1"), "must specify memory for: c"},
        {"'cpu': '1', 'limits.memory': '1'", "{'name': 'x'}",
         "must specify cpu for: x; limits.memory for: x"},
        {"'requests.ephemeral-storage': '1'", "{'name': 'x'}", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_FREE char *spec = xasprintf("{'hard': {%s}}", rows[i].hard);
        CLEANUP_FREE char *text = xasprintf("{'spec': {'containers': [%s]}}", rows[i].containers);
        CLEANUP(json_free) struct json *v = from(spec);
        CLEANUP(json_free) struct json *pod = from(text);
        CLEANUP(quota_spec_free) struct quota_spec *s = quota_spec_new(v);
        CLEANUP_FREE char *got = quota_spec_missing(s, pod);
        if (!streq_null(got, rows[i].want) && (got || rows[i].want)) {
            fail_msg("%zu: %s", i, got ? got : "NULL");
        }
    }
}

static void pods_outside_of_the_scope_need_not_state_amounts(void **state)
{
    CLEANUP(json_free)
    struct json *v = from("{'hard': {'cpu': '1'}, 'scopes': ['Terminating']}");
    CLEANUP(json_free) struct json *pod = from(POD("'containers': [{'name': 'c'}]"));
    CLEANUP(quota_spec_free) struct quota_spec *s = quota_spec_new(v);
    assert_null(quota_spec_missing(s, pod));
}

static void a_refusal_names_what_is_exceeded(void **state)
{
    CLEANUP(json_free)
    struct json *v = from("{'hard': {'pods': '5', 'limits.memory': '1Gi', 'cpu': '2', "
                          "'secrets': '0'}}");
    CLEANUP(quota_spec_free) struct quota_spec *s = quota_spec_new(v);
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    /* In the order of names: cpu, limits.memory, pods, secrets. */
    quota_total used[] = {1500, 1 << 29, 5, 7};
    assert_false(quota_spec_refuses(s, "q", used, (int64_t[]){500, 1 << 29, 0, 0}, &b));
    assert_int_equal(b.size, 0);
    assert_false(quota_spec_refuses(s, "q", used, (int64_t[]){-5, 0, -1, -1}, &b));
    assert_true(quota_spec_refuses(s, "q", used, (int64_t[]){501, 1 << 29, 1, 0}, &b));
    assert_string_equal(strbuf_cstr(&b), "exceeded quota: q, requested: cpu=501m,pods=1, used: "
                                         "cpu=1500m,pods=5, limited: cpu=2,pods=5");
    strbuf_reset(&b);
    assert_true(quota_spec_refuses(s, "q", used, (int64_t[]){0, (1 << 29) + 1024, 0, 0}, &b));
    assert_string_equal(strbuf_cstr(&b),
                        "exceeded quota: q, requested: limits.memory=524289Ki, used: "
                        "limits.memory=512Mi, limited: limits.memory=1Gi");
}

static void huge_amounts_do_not_wrap(void **state)
{
    CLEANUP(json_free) struct json *v = from("{'hard': {'memory': '8Ei'}}");
    CLEANUP(quota_spec_free) struct quota_spec *s = quota_spec_new(v);
    quota_total used[] = {(quota_total) INT64_MAX * 3};
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    assert_true(quota_spec_refuses(s, "q", used, (int64_t[]){INT64_MAX}, &b));
    used[0] = 0;
    assert_false(quota_spec_refuses(s, "q", used, (int64_t[]){INT64_MAX}, &b));
    /* A pod whose amount cannot be read adds the largest number. */
    assert_int_equal(
        charge_of("{'hard': {'memory': '1'}}", "", "pods",
                  POD("'containers': [{'resources': {'requests': {'memory': '99999999999999999999"
                      "Ei'}}}, {'resources': {'requests': {'memory': '1'}}}]")),
        INT64_MAX);
}

static void amounts_are_written_as_kubernetes_writes_them(void **state)
{
    static const struct {
        const char *resource;
        int64_t n;
        const char *want;
    } rows[] = {
        {"cpu", 0, "0"},           {"cpu", 1500, "1500m"},
        {"cpu", 2000, "2"},        {"memory", 1 << 20, "1Mi"},
        {"memory", 1000000, "1M"}, {"memory", 1536, "1536"},
        {"", 1024, "1024"},        {"", 3000, "3k"},
        {"storage", 0, "0"},       {"memory", -3, "0"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
        quota_write_amount(rows[i].resource, rows[i].n, &b);
        assert_string_equal(strbuf_cstr(&b), rows[i].want);
    }
}

static void the_status_has_what_is_counted(void **state)
{
    CLEANUP(json_free)
    struct json *v = from("{'hard': {'storage': '5Gi', 'pods': '3', 'cpu': '1'}}");
    CLEANUP(quota_spec_free) struct quota_spec *s = quota_spec_new(v);
    quota_total used[] = {250, 2, 0};
    CLEANUP(json_free) struct json *status = quota_spec_status(s, used);
    assert_json(status, "{'hard': {'cpu': '1', 'pods': '3', 'storage': '5Gi'}, 'used': {'cpu': "
                        "'250m', 'pods': '2'}}");
}

/* Each row: the quota before and after, and whether a refused write may succeed now. */
static void a_change_gives_room_or_not(void **state)
{
    static const struct {
        const char *old, *now;
        bool want;
    } rows[] = {
        {"{'spec': {'hard': {'pods': '1'}}}", "{'spec': {'hard': {'pods': '2'}}}", true},
        {"{'spec': {'hard': {'pods': '2'}}}", "{'spec': {'hard': {'pods': '1'}}}", false},
        {"{'spec': {'hard': {'pods': '2'}}}", "{'spec': {'hard': {'pods': '2'}}}", false},
        {"{'spec': {'hard': {'cpu': '900m'}}}", "{'spec': {'hard': {'cpu': '1'}}}", true},
        {"{'spec': {'hard': {'pods': '2'}}}", "{'spec': {'hard': {'cpu': '1'}}}", true},
        {"{'spec': {'hard': {'pods': '2'}}}", "{'spec': {'hard': {'cpu': '1', 'pods': '2'}}}",
         false},
        {"{'spec': {'hard': {'pods': '2'}}}", "{'spec': {}}", true},
        {"{'spec': {'hard': {'pods': '2'}}, 'status': {'used': {'pods': '2'}}}",
         "{'spec': {'hard': {'pods': '2'}}, 'status': {'used': {'pods': '1'}}}", true},
        {"{'spec': {'hard': {'pods': '2'}}, 'status': {'used': {'pods': '1'}}}",
         "{'spec': {'hard': {'pods': '2'}}, 'status': {'used': {'pods': '2'}}}", false},
        {"{'spec': {'hard': {'pods': '2'}}}",
         "{'spec': {'hard': {'pods': '2'}, 'scopes': ['Terminating']}}", true},
        {"{'spec': {'hard': {'pods': '2'}, 'scopes': ['Terminating']}}",
         "{'spec': {'hard': {'pods': '2'}, 'scopes': ['Terminating']}}", false},
        {"{'spec': {'hard': {'pods': '2'}, 'scopeSelector': {'a': 1}}}",
         "{'spec': {'hard': {'pods': '2'}, 'scopeSelector': {'a': 2}}}", true},
        /* Of the cluster. */
        {"{'spec': {'selector': {'a': 1}, 'quota': {'hard': {'pods': '1'}}}}",
         "{'spec': {'selector': {'a': 1}, 'quota': {'hard': {'pods': '2'}}}}", true},
        {"{'spec': {'selector': {'a': 1}, 'quota': {'hard': {'pods': '1'}}}}",
         "{'spec': {'selector': {'a': 1}, 'quota': {'hard': {'pods': '1'}}}}", false},
        {"{'spec': {'selector': {'a': 1}, 'quota': {'hard': {'pods': '1'}}}}",
         "{'spec': {'selector': {'a': 2}, 'quota': {'hard': {'pods': '1'}}}}", true},
        {"{'spec': {'quota': {'hard': {'pods': '1'}, 'scopes': ['BestEffort']}}}",
         "{'spec': {'quota': {'hard': {'pods': '1'}}}}", true},
        {"{'spec': {'quota': {'hard': {'pods': '2'}}}, 'status': {'total': {'used': {'pods': "
         "'2'}}}}",
         "{'spec': {'quota': {'hard': {'pods': '2'}}}, 'status': {'total': {'used': {'pods': "
         "'0'}}}}",
         true},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(json_free) struct json *old = from(rows[i].old);
        CLEANUP(json_free) struct json *now = from(rows[i].now);
        if (quota_object_gives_room(old, now) != rows[i].want) {
            fail_msg("row %zu: %s to %s", i, rows[i].old, rows[i].now);
        }
        assert_true(quota_object_gives_room(old, NULL));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_add_what_they_are),
        cmocka_unit_test(scopes_choose_pods),
        cmocka_unit_test(a_scoped_quota_counts_nothing_but_pods),
        cmocka_unit_test(only_kinds_whose_content_counts_are_read),
        cmocka_unit_test(quotas_of_compute_make_amounts_obligatory),
        cmocka_unit_test(pods_outside_of_the_scope_need_not_state_amounts),
        cmocka_unit_test(a_refusal_names_what_is_exceeded),
        cmocka_unit_test(huge_amounts_do_not_wrap),
        cmocka_unit_test(amounts_are_written_as_kubernetes_writes_them),
        cmocka_unit_test(the_status_has_what_is_counted),
        cmocka_unit_test(a_change_gives_room_or_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
