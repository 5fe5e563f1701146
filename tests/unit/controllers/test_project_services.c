/* SPDX-License-Identifier: Apache-2.0 */
/* What of services and endpoints takes a right of its own: node ports by number, and addresses
 * within the cluster. */
#include "project.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define RED "/api/v1/namespaces/red"
#define SERVICES RED "/services"
#define ENDPOINTS RED "/endpoints"
#define SLICES "/apis/discovery.k8s.io/v1/namespaces/red/endpointslices"

#define SERVICE(name, type, more) \
    "{'metadata':{'name':'" name "'},'spec':{'type':'" type "'" more "}}"
#define PORT(more) "{'port':80" more "}"
#define PORTS(list) ",'ports':[" list "]"
#define LOCAL ",'externalTrafficPolicy':'Local'"
#define SUBSET(ready, waiting) \
    "{'addresses':[" ready "],'notReadyAddresses':[" waiting "],'ports':[{'port':80}]}"
#define IP(ip) "{'ip':'" ip "'}"
#define POINTS(name, subsets) "{'metadata':{'name':'" name "'},'subsets':[" subsets "]}"
#define SLICE(name, endpoints)                                                          \
    "{'metadata':{'name':'" name "'},'addressType':'IPv4','endpoints':[" endpoints "]," \
    "'ports':[{'port':80,'protocol':'TCP'}]}"
#define AT(ip) "{'addresses':['" ip "']}"
#define LABELS "{'metadata':{'labels':{'x':'y'}}}"
#define POD "10.129.3.4"
#define FREE "198.51.100.7"

static int set_up(void **state)
{
    struct harness *h = project_new();
    /* Both have the role edit, and each one right more. */
    give_role(h, "red", "porter", "edit");
    give_rules(h, "red", "porter",
               "{'verbs':['create'],'apiGroups':[''],'resources':['services/nodeports']}");
    give_role(h, "red", "router", "edit");
    give_rules(h, "red", "router",
               "{'verbs':['create'],'apiGroups':[''],'resources':['endpoints/restricted']}");
    by_master(h, "POST", SERVICES, SERVICE("given", "NodePort", PORTS(PORT(",'nodePort':30010"))));
    by_master(h, "POST", SERVICES,
              SERVICE("health", "LoadBalancer",
                      LOCAL ",'healthCheckNodePort':30020" PORTS(PORT(",'nodePort':30021"))));
    by_master(h, "POST", ENDPOINTS, POINTS("given", SUBSET(IP(POD), "")));
    by_master(h, "POST", SLICES, SLICE("given", AT(POD)));
    *state = h;
    return 0;
}

static int tear_down(void **state)
{
    harness_free(*state);
    return 0;
}

struct attempt {
    const char *who, *method, *path, *body;
    int status;
    const char *text; /* Part of the answer; NULL: anything. */
};

static void check_all(struct harness *h, const struct attempt *a, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        check_by(h, a[i].who, a[i].method, a[i].path, a[i].body, a[i].status, a[i].text);
    }
}

static void a_node_port_by_number_takes_a_right(void **state)
{
#define REFUSED(field) 403, "\"field\":\"" field "\""
    static const struct attempt attempts[] = {
        {"eve", "POST", SERVICES, SERVICE("a", "NodePort", PORTS(PORT(""))), 201, NULL},
        {"eve", "POST", SERVICES, SERVICE("b", "ClusterIP", PORTS(PORT(""))), 201, NULL},
        {"eve", "POST", SERVICES, SERVICE("c", "LoadBalancer", PORTS(PORT(""))), 201, NULL},
        {"eve", "POST", SERVICES, SERVICE("d", "LoadBalancer", LOCAL PORTS(PORT(""))), 201, NULL},
        {"eve", "POST", SERVICES, SERVICE("n", "NodePort", PORTS(PORT(",'nodePort':30011"))),
         REFUSED("spec.ports[0].nodePort")},
        {"eve", "POST", SERVICES,
         SERVICE("n", "NodePort",
                 PORTS("{'name':'a','port':80},{'name':'b','port':81,'nodePort':30011}")),
         REFUSED("spec.ports[1].nodePort")},
        {"eve", "POST", SERVICES, SERVICE("n", "LoadBalancer", PORTS(PORT(",'nodePort':30011"))),
         REFUSED("spec.ports[0].nodePort")},
        {"eve", "POST", SERVICES,
         SERVICE("n", "LoadBalancer", LOCAL ",'healthCheckNodePort':30011" PORTS(PORT(""))),
         REFUSED("spec.healthCheckNodePort")},
        /* Another right does not help. */
        {"router", "POST", SERVICES, SERVICE("n", "NodePort", PORTS(PORT(",'nodePort':30011"))),
         REFUSED("spec.ports[0].nodePort")},
        {"porter", "POST", SERVICES, SERVICE("n", "NodePort", PORTS(PORT(",'nodePort':30011"))),
         201, "\"nodePort\":30011"},
        {"porter", "POST", SERVICES,
         SERVICE("o", "LoadBalancer", LOCAL ",'healthCheckNodePort':30012" PORTS(PORT(""))), 201,
         "\"healthCheckNodePort\":30012"},
        /* A port that the service has it keeps. */
        {"eve", "PATCH", SERVICES "/given", LABELS, 200, "\"nodePort\":30010"},
        {"eve", "PATCH", SERVICES "/given", "{'spec':{'ports':[{'port':81,'nodePort':30010}]}}",
         200, "\"nodePort\":30010"},
        {"eve", "PATCH", SERVICES "/given", "{'spec':{'ports':[{'port':81,'nodePort':30013}]}}",
         REFUSED("spec.ports[0].nodePort")},
        {"eve", "PATCH", SERVICES "/health", LABELS, 200, "\"healthCheckNodePort\":30020"},
        {"eve", "PATCH", SERVICES "/b", "{'spec':{'type':'NodePort'}}", 200, "\"nodePort\":3"},
        {"porter", "PATCH", SERVICES "/given", "{'spec':{'ports':[{'port':81,'nodePort':30013}]}}",
         200, "\"nodePort\":30013"},
    };
    check_all(*state, attempts, ARRAY_SIZE(attempts));
}

static void an_address_of_the_cluster_takes_a_right(void **state)
{
    static const struct attempt attempts[] = {
        {"eve", "POST", ENDPOINTS, POINTS("a", SUBSET(IP(FREE), "")), 201, NULL},
        {"eve", "POST", SLICES, SLICE("a", AT(FREE)), 201, NULL},
        {"eve", "POST", ENDPOINTS, POINTS("b", SUBSET(IP(POD), "")),
         REFUSED("subsets[0].addresses[0].ip")},
        {"eve", "POST", ENDPOINTS,
         POINTS("b", SUBSET(IP(FREE), "") "," SUBSET(IP(FREE), IP(FREE) "," IP(POD))),
         REFUSED("subsets[1].notReadyAddresses[1].ip")},
        {"eve", "POST", SLICES, SLICE("b", AT(FREE) "," AT(POD)),
         REFUSED("endpoints[1].addresses[0]")},
        /* Another right does not help. */
        {"porter", "POST", ENDPOINTS, POINTS("b", SUBSET(IP(POD), "")),
         REFUSED("subsets[0].addresses[0].ip")},
        {"porter", "POST", SLICES, SLICE("b", AT(POD)), REFUSED("endpoints[0].addresses[0]")},
        {"router", "POST", ENDPOINTS, POINTS("b", SUBSET(IP(POD), "")), 201, NULL},
        {"router", "POST", SLICES, SLICE("b", AT(POD)), 201, NULL},
        /* What an administrator wrote stays while the rest changes. */
        {"eve", "PATCH", ENDPOINTS "/given", LABELS, 200, POD},
        {"eve", "PATCH", SLICES "/given", LABELS, 200, POD},
        {"eve", "PATCH", ENDPOINTS "/given",
         "{'subsets':[" SUBSET(IP(POD) "," IP("10.129.3.5"), "") "]}",
         REFUSED("subsets[0].addresses[0].ip")},
        {"eve", "PATCH", SLICES "/given", "{'endpoints':[" AT("10.129.3.5") "]}",
         REFUSED("endpoints[0].addresses[0]")},
        {"eve", "PATCH", ENDPOINTS "/a", "{'subsets':[" SUBSET(IP(POD), "") "]}",
         REFUSED("subsets[0].addresses[0].ip")},
        {"router", "PATCH", ENDPOINTS "/a", "{'subsets':[" SUBSET(IP(POD), "") "]}", 200, POD},
        {"eve", "PATCH", ENDPOINTS "/given", "{'subsets':[" SUBSET(IP(FREE), "") "]}", 200, FREE},
        {"eve", "PATCH", ENDPOINTS "/given", "{'subsets':null}", 200, NULL},
    };
    check_all(*state, attempts, ARRAY_SIZE(attempts));
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_node_port_by_number_takes_a_right),
        T(an_address_of_the_cluster_takes_a_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
