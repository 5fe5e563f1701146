/* SPDX-License-Identifier: Apache-2.0 */
/* The list of admission plug-ins: names, what may be disabled, order of the phases, and
 * the metric of each. */
#include "apiserver/access/security.h"
#include "apiserver/admission/admission.h"
#include "harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define OWNERS "OwnerReferencesPermissionEnforcement"
#define RED "/api/v1/namespaces/red/"

static void names_are_known_and_required_plugins_stay(void **state)
{
    static const char *const required[] = {"NamespaceLifecycle",
                                           "CertificateRequestUser",
                                           "SecurityContextConstraint",
                                           "NodeRestriction",
                                           "CertificateApproval",
                                           "CertificateSigning",
                                           "CertificateSubjectRestriction",
                                           "RBACEscalation",
                                           "RestrictedEndpointsAdmission",
                                           "NetworkNumberProtection"};
    static const char *const optional[] = {OWNERS, "RestrictedNodePorts", NULL};
    struct err e = {0};
    assert_int_equal(admission_check_disabled(NULL, &e), 0);
    assert_int_equal(admission_check_disabled(optional, &e), 0);
    assert_int_equal(admission_check_disabled((const char *const[]){"Nonsense", NULL}, &e),
                     -EINVAL);
    assert_non_null(strstr(e.text, "admission plug-in \"Nonsense\" is not known; there are "
                                   "NamespaceLifecycle, "));
    for (size_t i = 0; i < ARRAY_SIZE(required); i++) {
        assert_int_equal(
            admission_check_disabled((const char *const[]){OWNERS, required[i], NULL}, &e), -EPERM);
        CLEANUP_FREE char *start =
            xasprintf("admission plug-in \"%s\" cannot be disabled: without it ", required[i]);
        assert_true(str_has_prefix(e.text, start));
    }
    for (size_t i = 0; admission_plugin_at(i); i++) {
        const struct admission_plugin *p = admission_plugin_at(i);
        assert_true(p->admit || p->validate || p->enter || p->counts);
    }
}

static struct harness *start(const char *const *disabled)
{
    static const struct apiserver_security security = {.loopback_token = HARNESS_TOKEN};
    struct apiserver_config cfg = {.security = &security, .admission_disabled = disabled};
    struct harness *h = harness_new(&cfg, NULL);
    make_constraints(h);
    free(make_namespace(h, "red"));
    give_rules(h, NULL, "jane",
               "{'verbs': ['create'], 'apiGroups': ['', 'certificates.k8s.io'],"
               "'resources': ['configmaps', 'pods', 'certificatesigningrequests']}");
    return h;
}

static void expect(struct harness *h, const char *path, const char *body, int status)
{
    CLEANUP_ANSWER struct answer a = ask_as(h, "jane", "POST", path, NULL, body);
    if (a.status != status) {
        fail_msg("%s: %d: %s", path, a.status, a.text);
    }
}

#define OWNED                                                                  \
    "{'metadata': {'name': 'owned', 'ownerReferences': [{'apiVersion': 'v1', " \
    "'kind': 'Secret', 'name': 's', 'uid': '1', 'blockOwnerDeletion': true}]}}"

static void a_disabled_plugin_judges_nothing(void **state)
{
    static const char *const none[] = {NULL}, *const owners[] = {OWNERS, NULL},
                             *const nodes[] = {"NodeRestriction", NULL};
    const struct {
        const char *const *disabled;
        int status;
        bool enabled;
    } cases[] = {{NULL, 403, true}, {none, 403, true}, {owners, 201, false}, {nodes, 403, true}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct harness *h = start(cases[i].disabled);
        expect(h, RED "configmaps", OWNED, cases[i].status);
        assert_int_equal(admission_is_enabled(h->api->admission, OWNERS), cases[i].enabled);
        /* A required one is on even when a list that nobody checked names it. */
        assert_true(admission_is_enabled(h->api->admission, "NodeRestriction"));
        assert_false(admission_is_enabled(h->api->admission, "Nonsense"));
        harness_free(h);
    }
}

static void judging_sees_what_changing_made(void **state)
{
    struct harness *h = start(NULL);
    /* What constraints fill in is there before the pod is judged and validated. */
    CLEANUP_ANSWER struct answer a = ask_as(
        h, "jane", "POST", RED "pods", NULL,
        "{'metadata': {'name': 'p'}, 'spec': {'containers': [{'name': 'c', 'image': 'i'}]}}");
    assert_int_equal(a.status, 201);
    assert_non_null(strstr(a.text, "\"openshift.io/scc\":\"lax\""));
    /* Admission runs for the namespace before it runs for the pod, and both before validation. */
    CLEANUP_ANSWER struct answer missing =
        ask_as(h, "jane", "POST", "/api/v1/namespaces/none/pods", NULL,
               "{'metadata': {'name': 'p'}, 'spec': {'hostNetwork': true, 'containers': []}}");
    assert_int_equal(missing.status, 404);
    assert_string_equal(at(&missing, "message"), "namespaces \"none\" not found");
    CLEANUP_ANSWER struct answer host =
        ask_as(h, "jane", "POST", RED "pods", NULL,
               "{'metadata': {'name': 'q'}, 'spec': {'hostNetwork': true, 'containers': []}}");
    assert_int_equal(host.status, 403);
    harness_free(h);
}

static void each_plugin_has_its_time_in_the_metrics(void **state)
{
    static const char name[] = "apiserver_admission_controller_admission_duration_seconds_count";
    static const struct {
        const char *labels;
        unsigned n;
    } cases[] = {
        {"name=\"" OWNERS "\",operation=\"CREATE\",rejected=\"true\",type=\"validate\"", 2},
        {"name=\"" OWNERS "\",operation=\"CREATE\",rejected=\"false\",type=\"validate\"", 1},
        {"name=\"NamespaceLifecycle\",operation=\"DELETE\",rejected=\"true\",type=\"admit\"", 1},
        {"name=\"NetworkNumberProtection\",operation=\"UPDATE\",rejected=\"false\","
         "type=\"validate\"",
         1},
    };
    struct harness *h = start(NULL);
    free(make_net(h, "red", 15, NULL));
    expect(h, RED "configmaps", OWNED, 403);
    expect(h, RED "configmaps", OWNED, 403);
    expect(h, RED "configmaps", "{'metadata': {'name': 'free'}}", 201);
    put_in(h, "DELETE", "/api/v1/namespaces/default", "", 403);
    put_in(h, "PUT", "/apis/network.openshift.io/v1/netnamespaces/red",
           "{'metadata': {'name': 'red'}, 'netname': 'red', 'netid': 15}", 200);
    CLEANUP_ANSWER struct answer metrics = ask_ok(h, "GET", "/metrics", NULL, 200);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *line = xasprintf("\n%s{%s} %u\n", name, cases[i].labels, cases[i].n);
        if (!strstr(metrics.text, line)) {
            fail_msg("%s is not in %s", line, metrics.text);
        }
    }
    harness_free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_known_and_required_plugins_stay),
        cmocka_unit_test(a_disabled_plugin_judges_nothing),
        cmocka_unit_test(judging_sees_what_changing_made),
        cmocka_unit_test(each_plugin_has_its_time_in_the_metrics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
