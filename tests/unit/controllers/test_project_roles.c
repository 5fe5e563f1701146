/* SPDX-License-Identifier: Apache-2.0 */
/* What the people of a project reach beyond it by the default roles: nothing, one test
 * for each way that was found. */
#include "project.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define RED "/api/v1/namespaces/red"
#define PROJECT "/apis/project.openshift.io/v1/projects/red"
#define SLICES "/apis/discovery.k8s.io/v1/namespaces/red/endpointslices"

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

/* ---- the project itself ---- */

static void nobody_of_a_project_changes_its_namespace(void **state)
{
    struct harness *h = *state;
    static const char *const users[] = {"ada", "eve", "vic"};
    static const char put[] = "{'metadata':{'name':'red','labels':{'a':'b'}}}";
    for (size_t i = 0; i < ARRAY_SIZE(users); i++) {
        check_by(h, users[i], "GET", RED, NULL, 200, NULL);
        check_by(h, users[i], "PATCH", RED, "{'metadata':{'labels':{'a':'b'}}}", 403,
                 "cannot patch resource");
        check_by(h, users[i], "PATCH", RED, "{'metadata':{'annotations':{'a':'b'}}}", 403,
                 "cannot patch resource");
        check_by(h, users[i], "PUT", RED, put, 403, "cannot update resource");
        check_by(h, users[i], "PUT", RED "/status", put, 403, "cannot update resource");
        check_by(h, users[i], "PUT", RED "/finalize", put, 403, "cannot update resource");
        check_by(h, users[i], "DELETE", RED, NULL, 403, "cannot delete resource");
        check_by(h, users[i], "GET", "/api/v1/namespaces", NULL, 403, "cannot list resource");
    }
}

static void by_the_project_only_its_name_for_people_and_its_description_change(void **state)
{
    struct harness *h = *state;
    static const struct {
        const char *patch, *field;
    } refused[] = {
        {"{'metadata':{'labels':{'a':'b'}}}", "metadata.labels[a]"},
        {"{'metadata':{'labels':{'team':'z'}}}", "metadata.labels[team]"},
        {"{'metadata':{'labels':{'team':null}}}", "metadata.labels[team]"},
        {"{'metadata':{'labels':null}}", "metadata.labels[team]"},
        {"{'metadata':{'annotations':{'openshift.io/node-selector':''}}}",
         "metadata.annotations[openshift.io/node-selector]"},
        {"{'metadata':{'annotations':{'openshift.io/sa.scc.uid-range':'0/1'}}}",
         "metadata.annotations[openshift.io/sa.scc.uid-range]"},
        {"{'metadata':{'annotations':{'kept':null}}}", "metadata.annotations[kept]"},
        {"{'metadata':{'finalizers':['example.com/x']}}", "metadata.finalizers"},
        {"{'metadata':{'ownerReferences':[{'apiVersion':'v1','kind':'Node','name':'n','uid':'u'}]}"
         "}",
         "metadata.ownerReferences"},
    };
    by_master(h, "PATCH", RED,
              "{'metadata':{'labels':{'team':'a'},'annotations':{'kept':'x',"
              "'openshift.io/display-name':'old'}}}");
    check_by(h, "ada", "PATCH", PROJECT,
             "{'metadata':{'annotations':{'openshift.io/display-name':'Red','openshift.io/"
             "description':'ours'}}}",
             200, "\"openshift.io/display-name\":\"Red\"");
    check_by(h, "ada", "PATCH", PROJECT,
             "{'metadata':{'annotations':{'openshift.io/display-name':null}}}", 200, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        check_by(h, "ada", "PATCH", PROJECT, refused[i].patch, 422, refused[i].field);
        check_by(h, "ada", "PATCH", PROJECT, refused[i].patch, 422, "try updating the namespace");
    }
    CLEANUP_ANSWER struct answer ns = ask(h, "GET", RED, NULL);
    assert_string_equal(at(&ns, "metadata.labels.team"), "a");
    assert_string_equal(at(&ns, "metadata.annotations.kept"), "x");
    assert_null(strstr(ns.text, "display-name"));
    /* What is left out is taken away: refused as well. */
    check_by(h, "ada", "PUT", PROJECT, "{'metadata':{'name':'red'}}", 422, "metadata.labels[team]");
    check_by(h, "ada", "PUT", PROJECT "/status", "{'metadata':{'name':'red'}}", 403, NULL);
    check_by(h, "eve", "PATCH", PROJECT, "{'metadata':{'annotations':{}}}", 403, NULL);
    check_by(h, "eve", "DELETE", PROJECT, NULL, 403, NULL);
    check_by(h, "ada", "DELETE", "/apis/project.openshift.io/v1/projects/blue", NULL, 403, NULL);
    check_by(h, "ada", "DELETE", PROJECT, NULL, 200, NULL);
}

static void a_member_lists_and_watches_only_the_own_projects(void **state)
{
    struct harness *h = *state;
    static const char *const paths[] = {
        "/apis/project.openshift.io/v1/projects",
        "/apis/project.openshift.io/v1/projects?watch=1&timeoutSeconds=1"};
    give_rules(h, NULL, "vic",
               "{'verbs':['list','watch'],'apiGroups':['project.openshift.io'],"
               "'resources':['projects']}");
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        CLEANUP_ANSWER struct answer a = by(h, "vic", "GET", paths[i], NULL);
        if (a.status != 200 || !strstr(a.text, "\"red\"") || strstr(a.text, "\"blue\"")) {
            fail_msg("%s: %d: %s", paths[i], a.status, a.text);
        }
    }
}

/* ---- addresses ---- */

static void endpoints_do_not_point_into_the_cluster(void **state)
{
    struct harness *h = *state;
    static const struct {
        const char *ip;
        int status;
    } cases[] = {
        {"198.51.100.7", 201}, {"10.129.3.4", 403}, /* A pod of any project. */
        {"172.30.0.1", 403},                        /* A service. */
        {"192.0.2.1", 403},                         /* A node. */
        {"192.0.2.100", 403},                       /* A master that is no node. */
        {"127.0.0.1", 422},    {"169.254.169.254", 422}, {"0.0.0.0", 422}, {"224.0.0.1", 422},
    };
    by_master(h, "POST", "/apis/network.openshift.io/v1/hostsubnets",
              "{'metadata':{'name':'n1'},'host':'n1','hostIP':'192.0.2.1','subnet':"
              "'10.128.0.0/23'}");
    by_master(h, "POST", "/api/v1/namespaces/default/endpoints",
              "{'metadata':{'name':'kubernetes'},'subsets':[{'addresses':[{'ip':'192.0.2.100'}],"
              "'ports':[{'port':8443}]}]}");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *endpoints =
            xasprintf("{'metadata':{'name':'e%zu'},'subsets':[{'addresses':[{'ip':'%s'}],'ports':"
                      "[{'port':53}]}]}",
                      i, cases[i].ip);
        CLEANUP_FREE char *waiting =
            xasprintf("{'metadata':{'name':'w%zu'},'subsets':[{'notReadyAddresses':[{'ip':'%s'}],"
                      "'ports':[{'port':53}]}]}",
                      i, cases[i].ip);
        CLEANUP_FREE char *slice =
            xasprintf("{'metadata':{'name':'s%zu'},'addressType':'IPv4','endpoints':[{'addresses':"
                      "['%s']}],'ports':[{'port':53,'protocol':'UDP'}]}",
                      i, cases[i].ip);
        check_by(h, "ada", "POST", RED "/endpoints", endpoints, cases[i].status, NULL);
        check_by(h, "ada", "POST", RED "/endpoints", waiting, cases[i].status, NULL);
        check_by(h, "ada", "POST", SLICES, slice, cases[i].status, NULL);
    }
    check_by(h, "ada", "PATCH", RED "/endpoints/e0",
             "{'subsets':[{'addresses':[{'ip':'192.0.2.100'}],'ports':[{'port':8443}]}]}", 403,
             "subsets[0].addresses[0].ip");
    check_by(h, "ada", "PATCH", SLICES "/s0", "{'endpoints':[{'addresses':['192.0.2.100']}]}", 403,
             "endpoints[0].addresses[0]");
}

static void services_take_no_address_of_the_hosts_network(void **state)
{
    struct harness *h = *state;
    check_by(h, "ada", "POST", RED "/services",
             "{'metadata':{'name':'a'},'spec':{'externalIPs':['192.0.2.9'],'ports':[{'port':53}]}}",
             422, "spec.externalIPs");
    check_by(h, "ada", "POST", RED "/services",
             "{'metadata':{'name':'b'},'spec':{'type':'NodePort','ports':[{'port':53,'nodePort':"
             "30053}]}}",
             403, "services/nodeports");
    check_by(h, "ada", "POST", RED "/services",
             "{'metadata':{'name':'c'},'spec':{'clusterIP':'172.30.0.300','ports':[{'port':53}]}}",
             422, NULL);
    check_by(h, "ada", "POST", RED "/services",
             "{'metadata':{'name':'d'},'spec':{'ports':[{'port':53}]},'status':{'loadBalancer':"
             "{'ingress':[{'ip':'192.0.2.9'}]}}}",
             201, "\"loadBalancer\":{}");
    check_by(h, "ada", "PATCH", RED "/services/d/status",
             "{'status':{'loadBalancer':{'ingress':[{'ip':'192.0.2.9'}]}}}", 403, NULL);
}

/* ---- owners ---- */

static char *uid_of(struct harness *h, const char *path)
{
    CLEANUP_ANSWER struct answer a = ask(h, "GET", path, NULL);
    return xstrdup(at(&a, "metadata.uid"));
}

static void nobody_holds_up_the_deletion_of_what_they_cannot_change(void **state)
{
    struct harness *h = *state;
    by_master(h, "POST", "/api/v1/nodes", "{'metadata':{'name':'n1'}}");
    check_by(h, "ada", "POST", RED "/configmaps", "{'metadata':{'name':'mine'}}", 201, NULL);
    static const struct {
        const char *version, *kind, *name, *path, *plain;
        int status;
    } cases[] = {
        {"v1", "Node", "n1", "/api/v1/nodes/n1", "node", 403},
        {"v1", "Namespace", "red", RED, "namespace", 403},
        {"project.openshift.io/v1", "Project", "red", PROJECT, "project", 403},
        {"rbac.authorization.k8s.io/v1", "ClusterRole", "edit",
         "/apis/rbac.authorization.k8s.io/v1/clusterroles/edit", "role", 403},
        {"example.com/v1", "Unknown", "x", RED, "unknown", 403},
        {"v1", "ConfigMap", "mine", RED "/configmaps/mine", "map", 201},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *uid = uid_of(h, cases[i].path);
        CLEANUP_FREE char *ref = xasprintf("'ownerReferences':[{'apiVersion':'%s','kind':'%s',"
                                           "'name':'%s','uid':'%s','blockOwnerDeletion':%%s}]",
                                           cases[i].version, cases[i].kind, cases[i].name, uid);
        CLEANUP_FREE char *yes = xasprintf(ref, "true");
        CLEANUP_FREE char *no = xasprintf(ref, "false");
        CLEANUP_FREE char *blocking =
            xasprintf("{'metadata':{'name':'%s',%s}}", cases[i].plain, yes);
        CLEANUP_FREE char *plain = xasprintf("{'metadata':{'name':'%s-p',%s}}", cases[i].plain, no);
        CLEANUP_FREE char *path = xasprintf(RED "/configmaps/%s-p", cases[i].plain);
        CLEANUP_FREE char *patch = xasprintf("{'metadata':{%s}}", yes);
        check_by(h, "ada", "POST", RED "/configmaps", blocking, cases[i].status,
                 cases[i].status == 201 ? NULL : "cannot set blockOwnerDeletion");
        check_by(h, "ada", "POST", RED "/configmaps", plain, 201, NULL);
        check_by(h, "ada", "PATCH", path, patch, cases[i].status == 201 ? 200 : 403, NULL);
        /* What the administrator wrote may stay when something else changes. */
        by_master(h, "PATCH", path, patch);
        check_by(h, "ada", "PATCH", path, "{'data':{'a':'b'}}", 200, NULL);
    }
    /* The verb for finalizers alone is enough, as in Kubernetes. */
    by_master(h, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles",
              "{'metadata':{'name':'hold'},'rules':[{'verbs':['update'],'apiGroups':[''],"
              "'resources':['nodes/finalizers']}]}");
    by_master(h, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
              "{'metadata':{'name':'hold'},'roleRef':{'apiGroup':'rbac.authorization.k8s.io',"
              "'kind':'ClusterRole','name':'hold'},'subjects':[{'kind':'User','name':'eve'}]}");
    check_by(h, "eve", "POST", RED "/configmaps",
             "{'metadata':{'name':'z','ownerReferences':[{'apiVersion':'v1','kind':'Node','name':"
             "'n1','uid':'u','blockOwnerDeletion':true}]}}",
             201, NULL);
}

/* ---- what others say, and who they are ---- */

static void events_and_leases_are_about_the_own_project(void **state)
{
    struct harness *h = *state;
    static const char events[] = "/apis/events.k8s.io/v1/namespaces/red/events";
    check_by(h, "eve", "POST", RED "/events",
             "{'metadata':{'name':'a'},'involvedObject':{'kind':'Pod','namespace':'blue','name':"
             "'p'},'reason':'r'}",
             422, "involvedObject.namespace");
    check_by(h, "eve", "POST", RED "/events",
             "{'metadata':{'name':'b'},'involvedObject':{'kind':'Node','name':'n1'},'reason':'r'}",
             422, "involvedObject.namespace");
    check_by(h, "eve", "POST", events,
             "{'metadata':{'name':'c'},'regarding':{'kind':'Pod','namespace':'blue','name':'p'},"
             "'reason':'r','action':'a','type':'Normal','reportingController':'x/y',"
             "'reportingInstance':'i','eventTime':'2026-01-01T00:00:00.000000Z'}",
             422, "namespace");
    check_by(h, "eve", "PUT", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1",
             "{'metadata':{'name':'n1'}}", 403, NULL);
}

static void acting_as_accounts_and_asking_about_rights_stays_in_the_project(void **state)
{
    struct harness *h = *state;
    static const char local[] = "/apis/authorization.k8s.io/v1/namespaces/red/"
                                "localsubjectaccessreviews";
    check_by(h, "ada", "POST", local,
             "{'metadata':{'namespace':'red'},'spec':{'user':'x','resourceAttributes':{'namespace':"
             "'blue','verb':'get','resource':'pods'}}}",
             422, "must match metadata.namespace");
    check_by(h, "ada", "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews",
             "{'spec':{'user':'x','resourceAttributes':{'verb':'get','resource':'pods'}}}", 403,
             NULL);
    check_by(h, "ada", "POST", "/api/v1/namespaces/blue/serviceaccounts/default/token", "{}", 403,
             NULL);
    check_by(h, "ada", "POST", "/api/v1/namespaces/kube-system/secrets",
             "{'metadata':{'name':'bootstrap-token-abcdef'}}", 403, NULL);
    check_by(h, "ada", "POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests",
             "{'metadata':{'name':'x'}}", 403, NULL);
}

static void what_is_not_in_projects_is_not_reached(void **state)
{
    struct harness *h = *state;
    static const char *const paths[] = {
        "/api/v1/nodes",
        "/api/v1/pods",
        "/api/v1/secrets",
        "/api/v1/namespaces/blue/pods",
        "/api/v1/namespaces/blue/configmaps",
        "/apis/network.openshift.io/v1/netnamespaces",
        "/apis/network.openshift.io/v1/hostsubnets",
        "/apis/policy.networking.k8s.io/v1alpha1/adminnetworkpolicies",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "/metrics",
    };
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        check_by(h, "ada", "GET", paths[i], NULL, 403, NULL);
    }
    check_by(h, "ada", "POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/red/roles",
             "{'metadata':{'name':'r'},'rules':[{'verbs':['get'],'apiGroups':[''],"
             "'resources':['nodes']}]}",
             403, "not currently held");
    check_by(h, "ada", "POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/red/rolebindings",
             "{'metadata':{'name':'r'},'roleRef':{'apiGroup':'rbac.authorization.k8s.io','kind':"
             "'ClusterRole','name':'cluster-admin'},'subjects':[]}",
             403, "not currently held");
    /* These subresources of pods are not served, or not for the role. */
    static const char *const parts[] = {"ephemeralcontainers", "binding"};
    by_master(h, "POST", RED "/pods",
              "{'metadata':{'name':'p'},'spec':{'containers':[{'name':'c','image':'i'}]}}");
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        CLEANUP_FREE char *path = xasprintf(RED "/pods/p/%s", parts[i]);
        CLEANUP_ANSWER struct answer a = by(h, "eve", "POST", path, "{}");
        assert_true(a.status == 403 || a.status == 404);
    }
    /* An editor enters pods of the project, but none beyond what the editor could make. */
    static const char host[] = "does not have a host assigned";
    static const struct {
        const char *path, *why;
    } ways[] = {{"exec?command=id&stdout=1", host},
                {"attach?stdout=1", host},
                {"portforward?ports=80", host},
                {"proxy/x", "it has no address yet"}};
    by_master(h, "POST", RED "/pods",
              "{'metadata':{'name':'strong'},'spec':{'hostPID':true,'containers':[{'name':'c',"
              "'image':'i'}]}}");
    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        CLEANUP_FREE char *path = xasprintf(RED "/pods/p/%s", ways[i].path);
        CLEANUP_FREE char *strong = xasprintf(RED "/pods/strong/%s", ways[i].path);
        check_by(h, "eve", "POST", path, NULL, 400, ways[i].why);
        check_by(h, "eve", "POST", strong, NULL, 403, "exceeds your permissions");
        check_by(h, "vic", "POST", path, NULL, 403, NULL);
    }
    check_by(h, "eve", "PATCH", RED "/pods/p/status", "{'status':{'podIP':'10.128.0.9'}}", 403,
             NULL);
    check_by(h, "eve", "POST", RED "/pods",
             "{'metadata':{'name':'q'},'spec':{'containers':[{'name':'c','image':'i'}]},'status':"
             "{'podIP':'10.128.0.9','phase':'Running'}}",
             201, "\"status\":{\"phase\":\"Pending\",\"qosClass\":\"BestEffort\"}");
    /* Who may delete pods may evict them. */
    check_by(h, "eve", "POST", RED "/pods/q/eviction", "{'metadata':{'name':'q'}}", 201, NULL);
    check_by(h, "eve", "GET", RED "/pods/q", NULL, 404, NULL);
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(nobody_of_a_project_changes_its_namespace),
        T(by_the_project_only_its_name_for_people_and_its_description_change),
        T(a_member_lists_and_watches_only_the_own_projects),
        T(endpoints_do_not_point_into_the_cluster),
        T(services_take_no_address_of_the_hosts_network),
        T(nobody_holds_up_the_deletion_of_what_they_cannot_change),
        T(events_and_leases_are_about_the_own_project),
        T(acting_as_accounts_and_asking_about_rights_stays_in_the_project),
        T(what_is_not_in_projects_is_not_reached),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
