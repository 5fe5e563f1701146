/* SPDX-License-Identifier: Apache-2.0 */
/* Security context constraints as objects: their rules, the defaults, who may use them, the values
 * of projects, and the reviews.  In all bodies ' stands for ". */
#include "project.h"

#include "controllers/security/default_sccs.h"
#include "pod/scc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define SCCS "/apis/security.openshift.io/v1/securitycontextconstraints"
#define PODS "/api/v1/namespaces/red/pods"
#define RBAC "/apis/rbac.authorization.k8s.io/v1"
#define REVIEWS "/apis/security.openshift.io/v1/namespaces/red/"
#define GOOD "'containers':[{'name':'c','image':'i'}]"

static int set_up(void **state)
{
    *state = project_new();
    return 0;
}

static int tear_down(void **state)
{
    harness_free(*state);
    return 0;
}

static char *text_at(const struct answer *a, const char *key)
{
    return json_to_text(json_get(a->body, key));
}

/* ---- objects ---- */

#define STRATEGIES "'runAsUser':{'type':'RunAsAny'},'seLinuxContext':{'type':'RunAsAny'}"

static void wrong_constraints_are_refused(void **state)
{
    struct harness *h = *state;
    static const struct {
        const char *members, *field, *why;
    } cases[] = {
        {"'seLinuxContext':{'type':'RunAsAny'}", "runAsUser.type",
         "invalid strategy type.  Valid values are MustRunAs, MustRunAsNonRoot, MustRunAsRange, "
         "RunAsAny"},
        {"'runAsUser':{'type':'RunAsAny'}", "seLinuxContext.type",
         "invalid strategy type.  Valid values are MustRunAs, RunAsAny"},
        {STRATEGIES ",'priority':-1", "priority", "priority cannot be negative"},
        {"'seLinuxContext':{'type':'RunAsAny'},'runAsUser':{'type':'MustRunAs','uid':-1}",
         "runAsUser.uid", "uid cannot be negative"},
        {"'seLinuxContext':{'type':'RunAsAny'},'runAsUser':{'type':'MustRunAs'}", "runAsUser.uid",
         "requires a uid"},
        {"'seLinuxContext':{'type':'RunAsAny'},'runAsUser':{'type':'MustRunAsRange',"
         "'uidRangeMin':5}",
         "runAsUser.uidRangeMax", "must be set together"},
        {"'seLinuxContext':{'type':'RunAsAny'},'runAsUser':{'type':'MustRunAsRange',"
         "'uidRangeMin':5,'uidRangeMax':4}",
         "runAsUser.uidRangeMin", "min cannot be greater than max"},
        {STRATEGIES ",'fsGroup':{'type':'x'}", "fsGroup.type",
         "Unsupported value: \"x\": supported values: \"MustRunAs\", \"RunAsAny\""},
        {STRATEGIES ",'supplementalGroups':{'type':'MustRunAs','ranges':[{'min':2,'max':1}]}",
         "supplementalGroups.ranges[0].min", "min cannot be greater than max"},
        {STRATEGIES ",'fsGroup':{'type':'MustRunAs','ranges':[{'min':-2,'max':1}]}",
         "fsGroup.ranges[0].min", "min cannot be negative"},
        {STRATEGIES ",'requiredDropCapabilities':['A'],'defaultAddCapabilities':['A']",
         "defaultAddCapabilities",
         "capability is listed in defaultAddCapabilities and requiredDropCapabilities"},
        {STRATEGIES ",'requiredDropCapabilities':['A'],'allowedCapabilities':['A']",
         "allowedCapabilities", "capability is listed in allowedCapabilities"},
        {STRATEGIES ",'requiredDropCapabilities':['A'],'allowedCapabilities':['*']",
         "requiredDropCapabilities", "must be empty when all capabilities are allowed"},
        {STRATEGIES ",'volumes':['none','secret']", "volumes", "if 'none' is specified"},
        {STRATEGIES ",'volumes':['secret'],'allowedFlexVolumes':[{'driver':'d'}]",
         "allowedFlexVolumes", "volumes does not include 'flexVolume' or '*'"},
        {STRATEGIES ",'volumes':['flexVolume'],'allowedFlexVolumes':[{}]",
         "allowedFlexVolumes[0].driver", "must specify a driver"},
        {STRATEGIES ",'allowPrivilegeEscalation':false,'defaultAllowPrivilegeEscalation':true",
         "defaultAllowPrivilegeEscalation", "Cannot set DefaultAllowPrivilegeEscalation to true"},
        {STRATEGIES ",'allowedUnsafeSysctls':['a.b','*']", "allowedUnsafeSysctls",
         "if '*' is present, must not specify other sysctls"},
        {STRATEGIES ",'allowedUnsafeSysctls':['']", "allowedUnsafeSysctls[0]",
         "empty sysctl not allowed"},
        {STRATEGIES ",'forbiddenSysctls':['a*b']", "forbiddenSysctls[0]",
         "must have at most 253 characters"},
        {STRATEGIES ",'allowedUnsafeSysctls':['kernel.msg*'],'forbiddenSysctls':['kernel.msgmax']",
         "allowedUnsafeSysctls[0]", "sysctl overlaps with kernel.msgmax"},
        {STRATEGIES ",'userNamespaceLevel':'x'", "userNamespaceLevel", "Unsupported value"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *body = xasprintf("{'metadata':{'name':'bad'},%s}", cases[i].members);
        CLEANUP_FREE char *text = quoted(body);
        CLEANUP_ANSWER struct answer a = ask(h, "POST", SCCS, text);
        const struct json *c, *causes = json_path(a.body, "details", "causes", NULL);
        bool told = false;
        JSON_FOREACH (c, causes) {
            told |= streq(json_get_text(c, "field"), cases[i].field) &&
                    strstr(json_get_text(c, "message"), cases[i].why) != NULL;
        }
        if (a.status != 422 || !told) {
            fail_msg("%s: not %s: %s, but %d %s", cases[i].members, cases[i].field, cases[i].why,
                     a.status, a.text);
        }
    }
}

static void volumes_are_completed_by_the_switch_for_host_paths(void **state)
{
    struct harness *h = *state;
    static const struct {
        const char *members, *want;
    } cases[] = {
        {"'allowHostDirVolumePlugin':true", "[\"*\"]"},
        {"'allowHostDirVolumePlugin':true,'volumes':['secret']", "[\"hostPath\",\"secret\"]"},
        {"'allowHostDirVolumePlugin':true,'volumes':['*']", "[\"*\"]"},
        {"'volumes':['secret','hostPath','configMap']", "[\"configMap\",\"secret\"]"},
        {"'volumes':[]", "[\"none\"]"},
        {"'volumes':['hostPath']", "[\"none\"]"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *body =
            xasprintf("{'metadata':{'name':'v%zu'}," STRATEGIES ",%s}", i, cases[i].members);
        CLEANUP_FREE char *text = quoted(body);
        CLEANUP_ANSWER struct answer a = ask(h, "POST", SCCS, text);
        CLEANUP_FREE char *volumes = text_at(&a, "volumes");
        assert_int_equal(a.status, 201);
        assert_string_equal(volumes, cases[i].want);
    }
    /* Neither list nor switch: every type but hostPath. */
    CLEANUP_FREE char *text = quoted("{'metadata':{'name':'all'}," STRATEGIES "}");
    CLEANUP_ANSWER struct answer a = ask(h, "POST", SCCS, text);
    assert_int_equal(a.status, 201);
    assert_non_null(strstr(a.text, "\"persistentVolumeClaim\""));
    assert_null(strstr(a.text, "hostPath"));
    assert_null(strstr(a.text, "\"*\""));
    /* Fields of Go without omitempty are there. */
    assert_non_null(strstr(a.text, "\"priority\":null"));
    assert_non_null(strstr(a.text, "\"allowedCapabilities\":null"));
    assert_non_null(strstr(a.text, "\"users\":[]"));
    assert_non_null(strstr(a.text, "\"allowPrivilegeEscalation\":true"));
}

static int by_order(const void *a, const void *b)
{
    return scc_compare(*(struct scc *const *) a, *(struct scc *const *) b);
}

static void the_defaults_are_tried_in_the_golden_order(void **state)
{
    static const char *const order[] = {
        "anyuid",           "restricted-v2",  "restricted",  "nonroot-v2", "nonroot",
        "hostmount-anyuid", "hostnetwork-v2", "hostnetwork", "hostaccess", "privileged"};
    struct harness *h = *state;
    struct scc *list[ARRAY_SIZE(order)];
    CLEANUP_ANSWER struct answer a = ask(h, "GET", SCCS, NULL);
    const struct json *items = json_get(a.body, "items");
    assert_int_equal(json_count(items), ARRAY_SIZE(order));
    for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
        list[i] = scc_new(json_at(items, i));
        assert_string_equal(scc_name(list[i]), default_scc_names[i]);
    }
    qsort(list, ARRAY_SIZE(order), sizeof(*list), by_order);
    for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
        assert_string_equal(scc_name(list[i]), order[i]);
        scc_free(list[i]);
    }
    /* The columns that oc shows. */
    CLEANUP_ANSWER
    struct answer t = ask_full(h, "GET", SCCS "/anyuid",
                               "application/json;as=Table;g=meta.k8s.io;v=v1", NULL, NULL);
    CLEANUP_FREE char *cells =
        json_to_text(json_get(json_at(json_get(t.body, "rows"), 0), "cells"));
    assert_string_equal(cells,
                        "[\"anyuid\",false,\"[]\",\"MustRunAs\",\"RunAsAny\",\"RunAsAny\","
                        "\"RunAsAny\",\"10\",false,\"[configMap downwardAPI emptyDir ephemeral "
                        "image persistentVolumeClaim projected secret]\"]");
}

/* ---- who may use them ---- */

#define CUSTOM                                                                              \
    "{'metadata':{'name':'custom'}," STRATEGIES ",'allowHostPID':true,'volumes':['secret']" \
    ",%s}"
#define WILD \
    "{'metadata':{'name':'w%d'},'spec':{'hostPID':true,'serviceAccountName':'%s'," GOOD "}}"

static void constraints_are_used_by_user_group_and_account(void **state)
{
    struct harness *h = *state;
    const struct {
        const char *members;
        int want;
    } cases[] = {
        {"'users':['ada']", 403},
        {"'users':['eve']", 201},
        {"'groups':['system:authenticated']", 201},
        {"'groups':['system:serviceaccounts:red']", 201},
        {"'groups':['system:serviceaccounts:blue']", 403},
        {"'users':['system:serviceaccount:red:default']", 201},
        {"'users':['system:serviceaccount:blue:default']", 403},
        {"'users':['*'],'groups':['*']", 403},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *scc = xasprintf(CUSTOM, cases[i].members);
        CLEANUP_FREE char *pod = xasprintf(WILD, (int) i, "default");
        by_master(h, "POST", SCCS, scc);
        check_by(h, "eve", "POST", PODS, pod, cases[i].want,
                 cases[i].want == 201 ? "\"openshift.io/scc\":\"custom\""
                                      : "provider \\\"custom\\\": Forbidden: not usable");
        by_master(h, "DELETE", SCCS "/custom", NULL);
    }
}

static void only_cluster_administrators_write_constraints(void **state)
{
    struct harness *h = *state;
    CLEANUP_FREE char *scc = xasprintf(CUSTOM, "'users':['ada']");
    static const char *const people[] = {"vic", "eve", "ada"};
    for (size_t i = 0; i < ARRAY_SIZE(people); i++) {
        check_by(h, people[i], "POST", SCCS, scc, 403, "cannot create resource");
        check_by(h, people[i], "PATCH", SCCS "/privileged", "{'users':['ada']}", 403, NULL);
        check_by(h, people[i], "PATCH", SCCS "/none", "{'users':['ada']}", 403, NULL);
        check_by(h, people[i], "DELETE", SCCS "/restricted", NULL, 403, NULL);
        /* Whether there is one or not. */
        check_by(h, people[i], "GET", SCCS "/privileged", NULL, 403, "cannot get resource");
        check_by(h, people[i], "GET", SCCS "/none", NULL, 403, "cannot get resource");
    }
}

static void nobody_binds_the_use_of_what_they_may_not_use(void **state)
{
    struct harness *h = *state;
    static const char binding[] =
        "{'metadata':{'name':'mine'},'roleRef':{'apiGroup':'rbac.authorization.k8s.io','kind':"
        "'ClusterRole','name':'system:openshift:scc:%s'},'subjects':[{'kind':'ServiceAccount',"
        "'name':'default','namespace':'red'}]}";
    CLEANUP_FREE char *privileged = xasprintf(binding, "privileged");
    CLEANUP_FREE char *anyuid = xasprintf(binding, "anyuid");
    check_by(h, "ada", "POST", RBAC "/namespaces/red/rolebindings", privileged, 403,
             "attempting to grant RBAC permissions not currently held");
    check_by(h, "ada", "POST", RBAC "/namespaces/red/rolebindings", anyuid, 403, NULL);
    /* Whoever has it can pass it on. */
    give_role(h, "red", "ada", "system:openshift:scc:anyuid");
    check_by(h, "ada", "POST", RBAC "/namespaces/red/rolebindings", anyuid, 201, NULL);
    check_by(h, "eve", "POST", PODS,
             "{'metadata':{'name':'root'},'spec':{'securityContext':{'runAsUser':0}," GOOD "}}",
             201, "\"openshift.io/scc\":\"anyuid\"");
}

/* ---- annotations of pods ---- */

static void the_annotation_is_the_servers(void **state)
{
    struct harness *h = *state;
    check_by(
        h, "eve", "POST", PODS,
        "{'metadata':{'name':'x','annotations':{'openshift.io/scc':'privileged'}},'spec':{" GOOD
        "}}",
        201, "\"openshift.io/scc\":\"restricted\"");
    check_by(h, "eve", "POST", PODS,
             "{'metadata':{'name':'y','annotations':{'openshift.io/scc':'privileged'}},'spec':{"
             "'hostPID':true," GOOD "}}",
             403, NULL);
    static const char *const changes[] = {
        "{'metadata':{'annotations':{'openshift.io/scc':'privileged'}}}",
        "{'metadata':{'annotations':{'openshift.io/scc':null}}}",
        "{'metadata':{'annotations':null}}",
        "{'metadata':{'annotations':{'openshift.io/scc':'privileged'}},'spec':{"
        "'activeDeadlineSeconds':5}}",
    };
    for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
        check_by(h, "eve", "PATCH", PODS "/x", changes[i], 200,
                 "\"openshift.io/scc\":\"restricted\"");
    }
    check_by(h, "eve", "PATCH", PODS "/x",
             "{'spec':{'containers':[{'name':'c','image':'i','securityContext':{'privileged':true}"
             "}]}}",
             403, "Privileged containers are not allowed");
}

static void a_pod_can_ask_for_one_of_the_constraints(void **state)
{
    struct harness *h = *state;
#define ASKING(name, scc)                                                                    \
    "{'metadata':{'name':'" name "','annotations':{'openshift.io/required-scc':'" scc "'}}," \
    "'spec':{" GOOD "}}"
    give_role(h, "red", "eve", "system:openshift:scc:nonroot");
    give_role(h, "red", "eve", "system:openshift:scc:anyuid");
    check_by(h, "eve", "POST", PODS, ASKING("a", "nonroot"), 201,
             "\"openshift.io/scc\":\"nonroot\"");
    check_by(h, "eve", "POST", PODS, ASKING("b", "privileged"), 403,
             "constraint: [provider \\\"privileged\\\": Forbidden: not usable by user or "
             "serviceaccount]");
    check_by(h, "eve", "POST", PODS, ASKING("c", "none"), 403, "do not exist");
    check_by(h, "eve", "PATCH", PODS "/a",
             "{'metadata':{'annotations':{'openshift.io/required-scc':'anyuid'}}}", 403,
             "may not be changed");
    check_by(h, "eve", "PATCH", PODS "/a",
             "{'metadata':{'annotations':{'openshift.io/required-scc':null}}}", 403, NULL);
}

static void ephemeral_containers_are_judged_and_filled_in(void **state)
{
    struct harness *h = *state;
    static const char path[] = PODS "/x/ephemeralcontainers";
    by_master(h, "POST", RBAC "/clusterroles",
              "{'metadata':{'name':'debug'},'rules':[{'verbs':['patch'],'apiGroups':[''],"
              "'resources':['pods/ephemeralcontainers']}]}");
    give_role(h, "red", "eve", "debug");
    check_by(h, "eve", "POST", PODS, "{'metadata':{'name':'x'},'spec':{" GOOD "}}", 201, NULL);
    check_by(h, "eve", "PATCH", path,
             "{'spec':{'ephemeralContainers':[{'name':'d','image':'i','securityContext':{"
             "'privileged':true}}]}}",
             403, "spec.ephemeralContainers[0].securityContext.privileged");
    CLEANUP_ANSWER
    struct answer a =
        by(h, "eve", "PATCH", path, "{'spec':{'ephemeralContainers':[{'name':'d','image':'i'}]}}");
    assert_int_equal(a.status, 200);
    const struct json *list = json_path(a.body, "spec", "ephemeralContainers", NULL);
    assert_int_equal(
        json_get_int_or(json_path(json_at(list, 0), "securityContext", "runAsUser", NULL), 0),
        1000010000);
}

/* ---- values of projects ---- */

static char *range_of(struct harness *h, const char *ns)
{
    CLEANUP_FREE char *path = xasprintf("/api/v1/namespaces/%s", ns);
    CLEANUP_ANSWER struct answer a = ask(h, "GET", path, NULL);
    const char *s = json_path_string(a.body, "metadata", "annotations", SCC_UIDS_ANNOTATION, NULL);
    return xstrdup(s ? s : "");
}

static void check_range(struct harness *h, const char *ns, const char *want)
{
    CLEANUP_FREE char *has = range_of(h, ns);
    assert_string_equal(has, want);
}

static void end_namespace(struct harness *h, const char *name)
{
    CLEANUP_FREE char *path = xasprintf("/api/v1/namespaces/%s", name);
    CLEANUP_FREE char *final = xasprintf("%s/finalize", path);
    CLEANUP_FREE char *body =
        xasprintf("{'metadata':{'name':'%s'},'spec':{'finalizers':[]}}", name);
    by_master(h, "DELETE", path, NULL);
    by_master(h, "PUT", final, body);
}

static void a_namespace_gets_the_lowest_free_block_when_it_is_created(void **state)
{
    struct harness *h = *state;
    check_range(h, "default", "1000000000/10000");
    check_range(h, "red", "1000010000/10000");
    check_range(h, "blue", "1000020000/10000");
    end_namespace(h, "red");
    free(make_namespace(h, "green"));
    check_range(h, "green", "1000010000/10000");
    /* The same by a Project, by apply, and for a dry run, which takes none. */
    by_master(h, "POST", "/apis/project.openshift.io/v1/projects?dryRun=All",
              "{'metadata':{'name':'dry'}}");
    by_master(h, "POST", "/apis/project.openshift.io/v1/projects", "{'metadata':{'name':'pp'}}");
    check_range(h, "pp", "1000030000/10000");
    CLEANUP_ANSWER
    struct answer a = ask_full(h, "PATCH", "/api/v1/namespaces/q?fieldManager=m", NULL,
                               "application/apply-patch+yaml",
                               "{apiVersion: v1, kind: Namespace, metadata: {name: q}}");
    assert_int_equal(a.status, 201);
    check_range(h, "q", "1000040000/10000");
    /* An administrator's own values stay, and what is missing beside them is added. */
    by_master(h, "POST", "/api/v1/namespaces",
              "{'metadata':{'name':'own','annotations':{'openshift.io/sa.scc.uid-range':"
              "'1000050000/10000'}}}");
    CLEANUP_ANSWER struct answer own = ask(h, "GET", "/api/v1/namespaces/own", NULL);
    assert_non_null(strstr(own.text, "\"openshift.io/sa.scc.mcs\":\"s0:c7,c4\""));
    free(make_namespace(h, "next"));
    check_range(h, "next", "1000060000/10000");
    /* Replacing a namespace does not take its values away. */
    by_master(h, "PUT", "/api/v1/namespaces/next", "{'metadata':{'name':'next'}}");
    check_range(h, "next", "1000060000/10000");
}

static void only_those_who_change_namespaces_choose_their_values(void **state)
{
    struct harness *h = *state;
    by_master(h, "POST", RBAC "/clusterroles",
              "{'metadata':{'name':'maker'},'rules':[{'verbs':['create'],'apiGroups':['',"
              "'project.openshift.io'],'resources':['namespaces','projects']}]}");
    by_master(h, "POST", RBAC "/clusterrolebindings",
              "{'metadata':{'name':'maker'},'roleRef':{'apiGroup':'rbac.authorization.k8s.io',"
              "'kind':'ClusterRole','name':'maker'},'subjects':[{'kind':'User','name':'mia'}]}");
    static const char *const notes[] = {"uid-range':'0/1", "supplemental-groups':'0/1",
                                        "mcs':'s0:c1,c0"};
    for (size_t i = 0; i < ARRAY_SIZE(notes); i++) {
        CLEANUP_FREE char *body = xasprintf(
            "{'metadata':{'name':'mine','annotations':{'openshift.io/sa.scc.%s'}}}", notes[i]);
        check_by(h, "mia", "POST", "/api/v1/namespaces", body, 403, "are set by the server");
        check_by(h, "mia", "POST", "/apis/project.openshift.io/v1/projects", body, 403,
                 "are set by the server");
    }
    check_by(h, "mia", "POST", "/api/v1/namespaces", "{'metadata':{'name':'mine'}}", 201,
             "1000030000/10000");
    check_by(h, "ada", "PATCH", "/apis/project.openshift.io/v1/projects/red",
             "{'metadata':{'annotations':{'openshift.io/sa.scc.uid-range':'0/1'}}}", 422, NULL);
}

static void a_namespace_without_values_is_told_what_is_missing(void **state)
{
    struct harness *h = *state;
    by_master(h, "PATCH", "/api/v1/namespaces/red",
              "{'metadata':{'annotations':{'openshift.io/sa.scc.uid-range':'x'}}}");
    check_by(h, "eve", "POST", PODS, "{'metadata':{'name':'x'},'spec':{" GOOD "}}", 403,
             "unable to find pre-allocated uid annotation for namespace red while trying to "
             "configure SCC restricted");
}

/* ---- reviews ---- */

static void reviews_tell_what_would_allow_a_pod(void **state)
{
    struct harness *h = *state;
#define TEMPLATE(spec) "'template':{'spec':{" spec GOOD "}}"
    static const struct {
        const char *kind, *spec, *want, *but;
    } cases[] = {
        {"podsecuritypolicyselfsubjectreviews", TEMPLATE(""),
         "\"allowedBy\":{\"kind\":\"SecurityContextConstraints\",\"name\":\"restricted\"", NULL},
        {"podsecuritypolicyselfsubjectreviews", TEMPLATE(""), "\"runAsUser\":1000010000", NULL},
        {"podsecuritypolicyselfsubjectreviews", TEMPLATE("'hostPID':true,"),
         "CantAssignSecurityContextConstraintProvider", "allowedBy"},
        {"podsecuritypolicysubjectreviews",
         "'user':'root','groups':['system:cluster-admins']," TEMPLATE(
             "'hostPID':true,'serviceAccountName':'',"),
         "\"name\":\"privileged\"", NULL},
        {"podsecuritypolicysubjectreviews", "'user':'eve'," TEMPLATE(""),
         "CantAssignSecurityContextConstraintProvider", "allowedBy"},
        {"podsecuritypolicysubjectreviews", TEMPLATE("'serviceAccountName':'default',"),
         "\"name\":\"restricted\"", NULL},
        {"podsecuritypolicysubjectreviews", TEMPLATE(""),
         "CantAssignSecurityContextConstraintProvider", "allowedBy"},
        {"podsecuritypolicyreviews", TEMPLATE(""), "\"name\":\"default\"", NULL},
        {"podsecuritypolicyreviews", "'serviceAccountNames':['a','b']," TEMPLATE(""),
         "\"name\":\"b\"", "\"name\":\"default\""},
        {"podsecuritypolicyreviews", TEMPLATE("'hostPID':true,"), "\"allowedServiceAccounts\":[]",
         NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *path = xasprintf(REVIEWS "%s", cases[i].kind);
        CLEANUP_FREE char *body = xasprintf("{'spec':{%s}}", cases[i].spec);
        CLEANUP_ANSWER struct answer a = by(h, "ada", "POST", path, body);
        CLEANUP_FREE char *status = text_at(&a, "status");
        if (a.status != 201 || !strstr(status, cases[i].want) ||
            (cases[i].but && strstr(status, cases[i].but))) {
            fail_msg("%s %s: %d %s", path, body, a.status, a.text);
        }
        check_by(h, "eve", "POST", path, body, 403, "cannot create resource");
    }
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(wrong_constraints_are_refused),
        T(volumes_are_completed_by_the_switch_for_host_paths),
        T(the_defaults_are_tried_in_the_golden_order),
        T(constraints_are_used_by_user_group_and_account),
        T(only_cluster_administrators_write_constraints),
        T(nobody_binds_the_use_of_what_they_may_not_use),
        T(the_annotation_is_the_servers),
        T(a_pod_can_ask_for_one_of_the_constraints),
        T(ephemeral_containers_are_judged_and_filled_in),
        T(a_namespace_gets_the_lowest_free_block_when_it_is_created),
        T(only_those_who_change_namespaces_choose_their_values),
        T(a_namespace_without_values_is_told_what_is_missing),
        T(reviews_tell_what_would_allow_a_pod),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
