/* SPDX-License-Identifier: Apache-2.0 */
/* admissionConfig: what is read and refused, which plug-ins run in which order, and what the
 * plug-ins do that are off by default. */
#include "apiserver/admission/admission.h"
#include "apiserver/admission/plugin_config.h"
#include "apiserver/admission/plugin_names.h"
#include "apiserver/request/server_priv.h"
#include "harness.h"
#include "net/loop/process.h"
#include "wire/yaml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#define RED "/api/v1/namespaces/red/"
#define ON "{'configuration': {'apiVersion': 'v1', 'kind': 'DefaultAdmissionConfig'}}"
#define OFF \
    "{'configuration': {'apiVersion': 'v1', 'kind': 'DefaultAdmissionConfig', 'disable': true}}"

static int read_text(struct admission_config *c, const char *text, struct err *e)
{
    CLEANUP(json_free) struct json *v = json_of(text);
    return admission_config_read(c, v, e);
}

/* ---- reading ---- */

#define DOC(kind, rest) "{'configuration': {'apiVersion': 'v1', 'kind': '" kind "'" rest "}}"

static void wrong_settings_are_refused_by_name(void **state)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"[]", "must be a mapping of plug-ins to their configuration"},
        {"{'RunOnceDuratoin': " ON "}",
         ".RunOnceDuratoin: unknown admission plug-in; did you mean RunOnceDuration?"},
        {"{'LimitRanger': {}}", ".LimitRanger: must have location or configuration"},
        {"{'LimitRanger': {'configuration': null, 'location': ''}}",
         ".LimitRanger: must have location or configuration"},
        {"{'LimitRanger': {'configuration': 5}}",
         ".LimitRanger.configuration: must be a mapping with apiVersion and kind"},
        {"{'LimitRanger': {'file': 'x', 'configuration': {}}}",
         ".LimitRanger: file: unknown key; there are location and configuration"},
        {"{'LimitRanger': {'location': 'x', 'configuration': {}}}",
         ".LimitRanger.location: cannot be given beside configuration"},
        {"{'LimitRanger': {'configuration': {'kind': 'DefaultAdmissionConfig'}}}",
         ".LimitRanger.configuration.apiVersion: must be \"v1\""},
        {"{'LimitRanger': " DOC("LimitRangerConfig", "") "}",
         ".LimitRanger.configuration.kind: must be DefaultAdmissionConfig"},
        {"{'LimitRanger': " DOC("DefaultAdmissionConfig", ", 'disabled': true") "}",
         ".LimitRanger.configuration.disabled: unknown key; did you mean disable?"},
        {"{'LimitRanger': " DOC("DefaultAdmissionConfig", ", 'disable': 'yes'") "}",
         ".LimitRanger.configuration.disable: \"yes\" is neither true nor false"},
        {"{'SecurityContextConstraint': " OFF "}",
         ".SecurityContextConstraint.configuration: cannot be disabled: without it every user "
         "could "
         "take over the nodes by a privileged pod"},
        {"{'ExternalIPRanger': " OFF "}",
         ".ExternalIPRanger.configuration: cannot be disabled: "
         "networkConfig.externalIPNetworkCIDRs is checked for each Service"},
        {"{'PodTolerationRestriction': " ON "}",
         ".PodTolerationRestriction.configuration: is not supported: tolerations are not "
         "restricted by namespaces; a webhook can do it"},
        {"{'RunOnceDuration': " ON "}",
         ".RunOnceDuration.configuration: is turned on by a configuration of the kind "
         "RunOnceDurationConfig"},
        {"{'RunOnceDuration': " DOC("RunOnceConfig", "") "}",
         ".RunOnceDuration.configuration.kind: must be DefaultAdmissionConfig or "
         "RunOnceDurationConfig"},
        {"{'RunOnceDuration': " DOC("RunOnceDurationConfig",
                                    ", 'activeDeadlineSecondsOverride': 0") "}",
         ".RunOnceDuration.configuration.activeDeadlineSecondsOverride: 0 is not in 1-315360000"},
        {"{'ClusterResourceOverride': " DOC("ClusterResourceOverrideConfig", "") "}",
         ".ClusterResourceOverride.configuration: must have one of memoryRequestToLimitPercent, "
         "cpuRequestToLimitPercent and limitCPUToMemoryPercent"},
        {"{'ClusterResourceOverride': " DOC("ClusterResourceOverrideConfig",
                                            ", 'cpuRequestToLimitPercent': 101") "}",
         ".ClusterResourceOverride.configuration.cpuRequestToLimitPercent: 101 is not in 0-100"},
        {"{'PodNodeConstraints': " DOC("PodNodeConstraintsConfig",
                                       ", 'nodeSelectorLabelBlacklist': ['a b']") "}",
         ".PodNodeConstraints.configuration.nodeSelectorLabelBlacklist: \"a b\": "},
        {"{'ProjectRequestLimit': " DOC("ProjectRequestLimitConfig", ", 'limits': {}") "}",
         ".ProjectRequestLimit.configuration.limits: must be a list of limits"},
        {"{'ProjectRequestLimit': " DOC("ProjectRequestLimitConfig",
                                        ", 'limits': [{}, {'maxProjects': -1}]") "}",
         ".ProjectRequestLimit.configuration.limits[1].maxProjects: must be a whole number in "
         "0-1000000"},
        {"{'ProjectRequestLimit': " DOC("ProjectRequestLimitConfig",
                                        ", 'limits': [{'selectors': {}}]") "}",
         ".ProjectRequestLimit.configuration.limits[0].selectors: unknown key; there are selector "
         "and maxProjects"},
        {"{'ProjectRequestLimit': " DOC("ProjectRequestLimitConfig",
                                        ", 'limits': [{'selector': {'level': 5}}]") "}",
         ".ProjectRequestLimit.configuration.limits[0].selector.level: must be a label with a text "
         "as its value"},
        {"{'RunOnceDuration': {'location': '/nonexistent/x.yaml'}}",
         ".RunOnceDuration.location: read /nonexistent/x.yaml: No such file"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct admission_config c = {0};
        struct err e = {0};
        if (read_text(&c, cases[i].text, &e) >= 0 || !str_has_prefix(e.text, cases[i].error)) {
            fail_msg("%s: \"%s\" instead of \"%s\"", cases[i].text, e.text, cases[i].error);
        }
        admission_config_done(&c);
    }
}

static void a_file_says_the_same_as_an_inline_document(void **state)
{
    static const char text[] = "apiVersion: v1\nkind: RunOnceDurationConfig\n"
                               "activeDeadlineSecondsOverride: 77\n";
    char dir[] = "/tmp/tenet-test-XXXXXX";
    struct admission_config c = {0};
    struct err e = {0};
    assert_non_null(mkdtemp(dir));
    CLEANUP_FREE char *path = xasprintf("%s/once.yaml", dir);
    assert_int_equal(file_write_atomic(path, text, sizeof text - 1, 0600, &e), 0);
    CLEANUP(json_free)
    struct json *v = json_of("{'RunOnceDuration': {'location': 'once.yaml'}}");
    admission_config_resolve(v, dir);
    int r = admission_config_read(&c, v, &e);
    unlink(path);
    rmdir(dir);
    if (r < 0) {
        fail_msg("%s", e.text);
    }
    assert_int_equal(c.run_once_s, 77);
    admission_config_done(&c);
}

static void names_without_a_plugin_here_have_a_reason(void **state)
{
    static const struct {
        const char *name, *entry, *why;
    } cases[] = {
        {"BuildDefaults", DOC("BuildDefaultsConfig", ", 'gitHTTPProxy': 'http://x'"),
         "it comes with builds, which this version does not have"},
        {"openshift.io/ImagePolicy", ON,
         "it comes with image streams, which this version does not have"},
        {"ExternalIPRanger", DOC("ExternalIPRangerAdmissionConfig", ""),
         "networkConfig.externalIPNetworkCIDRs is checked for each Service"},
        {"PodPreset", OFF, NULL},
        {"MutatingAdmissionWebhook", ON, NULL},
        {"LimitRanger", ON, NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *entry = json_of(cases[i].entry);
        CLEANUP_FREE char *text = xasprintf("{'%s': %s}", cases[i].name, cases[i].entry);
        struct admission_config c = {0};
        struct err e = {0};
        assert_int_equal(read_text(&c, text, &e), 0);
        admission_config_done(&c);
        const char *why = admission_config_idle(cases[i].name, entry);
        if (cases[i].why ? !why || !streq(why, cases[i].why) : why != NULL) {
            fail_msg("%s: %s", text, why ? why : "no reason");
        }
    }
}

static void what_cannot_be_combined_is_refused_by_name(void **state)
{
    static const char *const labels[] = {"kubernetes.io/hostname", NULL},
                             *const other[] = {"x", NULL},
                             *const pull[] = {"AlwaysPullImages", NULL};
    struct admission_config c = {0};
    struct err e = {0};
    /* The keys of both places are read one after the other. */
    assert_int_equal(read_text(&c, "{'AlwaysPullImages': " ON "}", &e), 0);
    assert_int_equal(read_text(&c, "{'AlwaysPullImages': " ON "}", &e), 0);
    assert_int_equal(read_text(&c, "{'AlwaysPullImages': " OFF "}", &e), -EINVAL);
    assert_true(str_has_prefix(e.text, ".AlwaysPullImages: cannot be combined with another "
                                       "configuration of the plug-in AlwaysPullImages"));
    assert_int_equal(read_text(&c, "{'PVCProtection': " OFF "}", &e), 0);
    assert_int_equal(read_text(&c, "{'StorageObjectInUseProtection': " ON "}", &e), -EINVAL);
    assert_int_equal(admission_config_check(&c, pull, NULL, &e), -EINVAL);
    assert_string_equal(e.text, "admissionConfig.disabledPlugins: AlwaysPullImages cannot be "
                                "combined with the configuration in pluginConfig that turns it on");
    assert_int_equal(
        read_text(&c, "{'PodNodeConstraints': " DOC("PodNodeConstraintsConfig", "") "}", &e), 0);
    assert_int_equal(admission_config_check(&c, NULL, labels, &e), 0);
    assert_int_equal(admission_config_check(&c, NULL, other, &e), -EINVAL);
    assert_true(str_has_prefix(e.text, "admissionConfig.nodeSelectorLabelBlacklist: cannot be "));
    assert_int_equal(admission_config_set_order(&c, "ServiceAccount,BuildByStrategy", &e), 0);
    assert_int_equal(admission_config_set_order(&c, "ServiceAccount,BuildByStrategy", &e), 0);
    assert_int_equal(admission_config_set_order(&c, "ServiceAccount,LimitRanger", &e), -EINVAL);
    assert_true(str_has_prefix(e.text, "cannot be combined with another order"));
    assert_int_equal(admission_config_set_order(&c, "ServiceAccount", &e), -EINVAL);
    assert_int_equal(admission_config_set_order(&c, "", &e), 0);
    assert_int_equal(admission_config_set_order(&c, "Nonsense", &e), -EINVAL);
    assert_string_equal(e.text, "Nonsense: unknown admission plug-in");
    admission_config_done(&c);
}

static void every_name_is_known_once(void **state)
{
    struct err e = {0};
    for (unsigned i = 0; admission_name_at(i); i++) {
        const char *name = admission_name_at(i)->name;
        assert_null(admission_plugin_find(name));
        assert_int_equal(admission_check_name(name, &e), 0);
        assert_ptr_equal(admission_name_find(name), admission_name_at(i));
    }
    assert_int_equal(admission_check_name("openshift.io/ClusterResourceQuota", &e), 0);
    assert_int_equal(admission_check_name("Nonsense", &e), -EINVAL);
    assert_string_equal(e.text, "Nonsense: unknown admission plug-in");
}

/* ---- which run, and in which order ---- */

static struct harness *start(struct admission_config *c, const char *text)
{
    static const struct apiserver_security security = {.loopback_token = HARNESS_TOKEN};
    struct err e = {0};
    if (read_text(c, text, &e) < 0) {
        fail_msg("%s", e.text);
    }
    struct apiserver_config cfg = {.security = &security, .admission = c};
    struct harness *h = harness_new(&cfg, NULL);
    make_constraints(h);
    free(make_namespace(h, "red"));
    return h;
}

static void stop(struct harness *h, struct admission_config *c)
{
    harness_free(h);
    admission_config_done(c);
}

static void plugins_are_turned_on_and_off(void **state)
{
    static const struct {
        const char *text, *name;
        bool on;
    } cases[] = {
        {"{}", "AlwaysPullImages", false},
        {"{'AlwaysPullImages': " ON "}", "AlwaysPullImages", true},
        {"{'AlwaysPullImages': " OFF "}", "AlwaysPullImages", false},
        {"{}", "PodSecurity", true},
        {"{'PodSecurity': " OFF "}", "PodSecurity", false},
        {"{'openshift.io/ClusterResourceQuota': " OFF "}", "ClusterResourceQuota", false},
        {"{}", "RunOnceDuration", false},
        {"{'RunOnceDuration': " DOC("RunOnceDurationConfig", "") "}", "RunOnceDuration", true},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct admission_config c = {0};
        struct harness *h = start(&c, cases[i].text);
        if (admission_is_enabled(h->api->admission, cases[i].name) != cases[i].on) {
            fail_msg("%s", cases[i].text);
        }
        stop(h, &c);
    }
}

static void an_order_is_used_as_given_but_for_what_cannot_be_left_out(void **state)
{
    static const char order[] = "AlwaysPullImages,ServiceAccount,BuildByStrategy,"
                                "SecurityContextConstraint,ServiceAccount";
    struct admission_config c = {0};
    struct err e = {0};
    assert_int_equal(admission_config_set_order(&c, order, &e), 0);
    struct harness *h = start(&c, "{}");
    static const char *const on[] = {"AlwaysPullImages", "ServiceAccount", "NodeRestriction",
                                     "TokenSecrets"};
    static const char *const off[] = {"LimitRanger", "PodSecurity", "ResourceQuota",
                                      "RunOnceDuration"};
    for (size_t i = 0; i < ARRAY_SIZE(on); i++) {
        assert_true(admission_is_enabled(h->api->admission, on[i]));
    }
    for (size_t i = 0; i < ARRAY_SIZE(off); i++) {
        assert_false(admission_is_enabled(h->api->admission, off[i]));
    }
    size_t n = admission_count(h->api->admission);
    assert_string_equal(admission_running(h->api->admission, n - 3)->name, "AlwaysPullImages");
    assert_string_equal(admission_running(h->api->admission, n - 2)->name, "ServiceAccount");
    assert_string_equal(admission_running(h->api->admission, n - 1)->name,
                        "SecurityContextConstraint");
    assert_string_equal(admission_running(h->api->admission, 0)->name, "NamespaceLifecycle");
    stop(h, &c);
}

/* ---- the plug-ins ---- */

static struct answer make_pod(struct harness *h, const char *name, const char *spec)
{
    CLEANUP_FREE char *body = xasprintf("{'metadata': {'name': '%s'}, 'spec': %s}", name, spec);
    CLEANUP_FREE char *text = quoted(body);
    return ask(h, "POST", RED "pods", text);
}

static void annotate_project(struct harness *h, const char *key, const char *value)
{
    CLEANUP_FREE char *body =
        xasprintf("{\"metadata\": {\"annotations\": {\"%s\": \"%s\"}}}", key, value);
    CLEANUP_ANSWER struct answer a =
        ask_full(h, "PATCH", "/api/v1/namespaces/red", NULL, "application/merge-patch+json", body);
    assert_int_equal(a.status, 200);
}

static void images_are_always_pulled(void **state)
{
    struct admission_config c = {0};
    struct harness *h = start(&c, "{'AlwaysPullImages': " ON "}");
    CLEANUP_ANSWER struct answer a =
        make_pod(h, "p",
                 "{'initContainers': [{'name': 'i', 'image': 'x:1'}], 'containers': [{'name': 'c', "
                 "'image': 'x:1', 'imagePullPolicy': 'Never'}]}");
    assert_int_equal(a.status, 201);
    const struct json *spec = json_get(a.body, "spec");
    assert_string_equal(json_get_text(json_at(json_get(spec, "containers"), 0), "imagePullPolicy"),
                        "Always");
    assert_string_equal(
        json_get_text(json_at(json_get(spec, "initContainers"), 0), "imagePullPolicy"), "Always");
    stop(h, &c);
}

#define ONE(rest) "{'containers': [{'name': 'c', 'image': 'i'}]" rest "}"

static void pods_that_end_get_a_deadline(void **state)
{
    static const struct {
        const char *annotation, *spec;
        int status;
        int64_t want;
    } cases[] = {
        {NULL, ONE(", 'restartPolicy': 'Never'"), 201, 3600},
        {NULL, ONE(", 'restartPolicy': 'OnFailure', 'activeDeadlineSeconds': 60"), 201, 60},
        {NULL, ONE(", 'restartPolicy': 'Never', 'activeDeadlineSeconds': 7200"), 201, 3600},
        {NULL, ONE(""), 201, 0},
        {"1800", ONE(", 'restartPolicy': 'Never'"), 201, 1800},
        {"7200", ONE(", 'restartPolicy': 'Never'"), 201, 7200},
        {"soon", ONE(", 'restartPolicy': 'Never'"), 403, 0},
        {"0", ONE(", 'restartPolicy': 'Never'"), 403, 0},
    };
    struct admission_config c = {0};
    struct harness *h =
        start(&c, "{'RunOnceDuration': " DOC("RunOnceDurationConfig",
                                             ", 'activeDeadlineSecondsOverride': 3600") "}");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *name = xasprintf("p%zu", i);
        if (cases[i].annotation) {
            annotate_project(h, "openshift.io/active-deadline-seconds-override",
                             cases[i].annotation);
        }
        CLEANUP_ANSWER struct answer a = make_pod(h, name, cases[i].spec);
        assert_int_equal(a.status, cases[i].status);
        assert_int_equal(
            json_get_int_or(json_path(a.body, "spec", "activeDeadlineSeconds", NULL), 0),
            cases[i].want);
    }
    stop(h, &c);
}

static void requests_follow_from_limits(void **state)
{
    static const struct {
        const char *resources, *request_memory, *request_cpu, *limit_cpu;
    } cases[] = {
        {"{'limits': {'memory': '512Mi'}}", "256Mi", "250m", "1"},
        {"{'limits': {'memory': '1Gi', 'cpu': '50m'}}", "512Mi", "500m", "2"},
        {"{'limits': {'memory': '1G'}}", "500M", "465m", "1862m"},
        {"{'limits': {'memory': '1Mi'}}", "1Mi", "1m", "1m"},
        {"{'limits': {'cpu': '400m'}}", "", "100m", "400m"},
        {"{'requests': {'memory': '1Mi', 'cpu': '1m'}}", "1Mi", "1m", ""},
        {"{'requests': {'memory': '1Mi'}, 'limits': {'memory': '2Gi'}}", "1Gi", "1", "4"},
    };
    struct admission_config c = {0};
    struct harness *h =
        start(&c, "{'ClusterResourceOverride': " DOC(
                      "ClusterResourceOverrideConfig",
                      ", 'memoryRequestToLimitPercent': 50, 'cpuRequestToLimitPercent': 25, "
                      "'limitCPUToMemoryPercent': 200") "}");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *name = xasprintf("p%zu", i);
        CLEANUP_FREE char *spec = xasprintf(
            "{'containers': [{'name': 'c', 'image': 'i', 'resources': %s}]}", cases[i].resources);
        CLEANUP_ANSWER struct answer a = make_pod(h, name, spec);
        assert_int_equal(a.status, 201);
        const struct json *r =
            json_get(json_at(json_path(a.body, "spec", "containers", NULL), 0), "resources");
        assert_string_equal(json_get_text(json_get(r, "requests"), "memory"),
                            cases[i].request_memory);
        assert_string_equal(json_get_text(json_get(r, "requests"), "cpu"), cases[i].request_cpu);
        assert_string_equal(json_get_text(json_get(r, "limits"), "cpu"), cases[i].limit_cpu);
    }
    annotate_project(h, "quota.openshift.io/cluster-resource-override-enabled", "false");
    CLEANUP_ANSWER struct answer free_ = make_pod(
        h, "free",
        "{'containers': [{'name': 'c', 'image': 'i', 'resources': {'limits': {'cpu': '1'}}}]}");
    const struct json *r =
        json_get(json_at(json_path(free_.body, "spec", "containers", NULL), 0), "resources");
    assert_string_equal(json_get_text(json_get(r, "requests"), "cpu"), "1");
    annotate_project(h, "quota.openshift.io/cluster-resource-override-enabled", "no");
    CLEANUP_ANSWER struct answer wrong = make_pod(h, "wrong", ONE(""));
    assert_int_equal(wrong.status, 403);
    stop(h, &c);
}

static void required_anti_affinity_is_about_nodes(void **state)
{
    static const char spec[] =
        "{'containers': [{'name': 'c', 'image': 'i'}], 'affinity': {'podAntiAffinity': "
        "{'requiredDuringSchedulingIgnoredDuringExecution': [{'topologyKey': '%s', "
        "'labelSelector': {'matchLabels': {'a': 'b'}}}]}}}";
    struct admission_config c = {0};
    struct harness *h = start(&c, "{'LimitPodHardAntiAffinityTopology': " ON "}");
    CLEANUP_FREE char *node = xasprintf(spec, "kubernetes.io/hostname");
    CLEANUP_FREE char *zone = xasprintf(spec, "topology.kubernetes.io/zone");
    CLEANUP_ANSWER struct answer good = make_pod(h, "good", node);
    assert_int_equal(good.status, 201);
    CLEANUP_ANSWER struct answer bad = make_pod(h, "bad", zone);
    assert_int_equal(bad.status, 403);
    assert_string_equal(at(&bad, "message"),
                        "pods \"bad\" is forbidden: "
                        "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey "
                        "topology.kubernetes.io/zone but only key kubernetes.io/hostname is "
                        "allowed");
    stop(h, &c);
}

static void containers_with_rights_over_the_node_are_not_entered(void **state)
{
    static const struct {
        const char *plugin, *spec, *why;
    } cases[] = {
        {"DenyEscalatingExec", ONE(", 'hostPID': true"),
         "cannot exec into or attach to a container using host pid"},
        {"DenyEscalatingExec", ONE(", 'hostIPC': true"),
         "cannot exec into or attach to a container using host ipc"},
        {"DenyExecOnPrivileged",
         "{'containers': [{'name': 'c', 'image': 'i', 'securityContext': {'privileged': true}}]}",
         "cannot exec into or attach to a privileged container"},
        {"DenyExecOnPrivileged", ONE(", 'hostPID': true"), NULL},
        {"DenyEscalatingExec", ONE(""), NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct admission_config c = {0};
        CLEANUP_FREE char *text = xasprintf("{'%s': " ON "}", cases[i].plugin);
        struct harness *h = start(&c, text);
        CLEANUP_ANSWER struct answer made = make_pod(h, "p", cases[i].spec);
        assert_int_equal(made.status, 201);
        struct request q = {
            .server = h->api, .kind = api_kind_find("", "v1", "pods"), .namespace = "red"};
        struct outcome outcome = {0};
        q.subresource = "exec";
        q.user = NULL;
        int r = admission_plugin_find(cases[i].plugin)->enter(&q, made.body, &outcome);
        assert_int_equal(r, cases[i].why ? -EACCES : 0);
        assert_true(!cases[i].why || strstr(outcome.message, cases[i].why));
        outcome_done(&outcome);
        /* Ports lead to what the pod serves. */
        q.subresource = "portforward";
        assert_int_equal(admission_plugin_find(cases[i].plugin)->enter(&q, made.body, &outcome), 0);
        stop(h, &c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_settings_are_refused_by_name),
        cmocka_unit_test(a_file_says_the_same_as_an_inline_document),
        cmocka_unit_test(names_without_a_plugin_here_have_a_reason),
        cmocka_unit_test(what_cannot_be_combined_is_refused_by_name),
        cmocka_unit_test(every_name_is_known_once),
        cmocka_unit_test(plugins_are_turned_on_and_off),
        cmocka_unit_test(an_order_is_used_as_given_but_for_what_cannot_be_left_out),
        cmocka_unit_test(images_are_always_pulled),
        cmocka_unit_test(pods_that_end_get_a_deadline),
        cmocka_unit_test(requests_follow_from_limits),
        cmocka_unit_test(required_anti_affinity_is_about_nodes),
        cmocka_unit_test(containers_with_rights_over_the_node_are_not_entered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
