/* SPDX-License-Identifier: Apache-2.0 */
/* From a service to the addresses and ports that a host's proxy serves. */
#include "base/mem.h"
#include "base/str.h"
#include "sdn/frontend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct json *parse(const char *text)
{
    struct json *v = NULL;
    struct err e = {0};
    CLEANUP_FREE char *json = xstrdup(text);
    for (char *p = json; *p; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    if (json_parse(json, strlen(json), &v, &e) < 0) {
        fail_msg("%s", e.text);
    }
    return v;
}

/* Three endpoints of port 8080: two on node a, of which one is a pod, and a pod on node b. */
static struct sdn_service *service(const char *rest)
{
    CLEANUP_FREE char *text = xasprintf("{'metadata':{'namespace':'red','name':'web'},%s}", rest);
    CLEANUP(json_free) struct json *v = parse(text);
    CLEANUP(json_free)
    struct json *ends = parse(
        "{'addressType':'IPv4','metadata':{'labels':{'kubernetes.io/service-name':'web'}},'ports':"
        "[{'name':'http','port':8080}],'endpoints':[{'addresses':['10.128.0.5'],'nodeName':'a',"
        "'targetRef':{'kind':'Pod','namespace':'red','name':'p'}},{'addresses':['10.128.0.6'],"
        "'nodeName':'a'},{'addresses':['10.128.2.5'],'nodeName':'b','targetRef':{'kind':'Pod',"
        "'namespace':'red','name':'q'}}]}");
    struct sdn_service *s = NULL;
    struct sdn_slice *slice = NULL;
    struct err e = {0};
    if (sdn_service_parse(v, &s, &e) < 0 || sdn_slice_parse(ends, &slice, &e) < 0) {
        fail_msg("%s", e.text);
    }
    sdn_service_join(s, &slice, 1);
    sdn_slice_unref(slice);
    return s;
}

/* "IP:PORT n/outside[ flags]; ..." of the frontends at node a. */
static char *frontends(const char *rest)
{
    CLEANUP(sdn_service_free) struct sdn_service *s = service(rest);
    CLEANUP_FREE struct sdn_frontend **list = NULL;
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    size_t n = sdn_frontends_of(s, "a", &list);
    for (size_t i = 0; i < n; i++) {
        const struct sdn_frontend *f = list[i];
        strbuf_addf(&out, "%s%s:%u %u", i ? "; " : "", IP4_TEXT(f->key.ip), f->key.port, f->n[0]);
        if (f->split) {
            strbuf_addf(&out, "/%u", f->n[1]);
        }
        if (f->affinity_s) {
            strbuf_addf(&out, " sticky %u", f->affinity_s);
        }
        if (f->elsewhere[0] || f->elsewhere[1]) {
            strbuf_adds(&out, " elsewhere");
        }
        if (f->restricted) {
            strbuf_adds(&out, " from");
            for (uint32_t k = 0; k < f->n_ranges; k++) {
                strbuf_addf(&out, " %s", PREFIX_TEXT(sdn_frontend_ranges(f)[k]));
            }
        }
        sdn_frontend_unref(list[i]);
    }
    return strbuf_steal(&out);
}

#define PORTS "'ports':[{'name':'http','port':80,'nodePort':30080}]"

static void a_service_has_a_frontend_for_each_address_and_port(void **state)
{
    (void) state;
    static const struct {
        const char *service, *want;
    } cases[] = {
        {"'spec':{'clusterIP':'172.30.0.9'," PORTS "}", "172.30.0.9:80 3"},
        {"'spec':{'type':'NodePort','clusterIP':'172.30.0.9'," PORTS "}",
         "172.30.0.9:80 3; 0.0.0.0:30080 3"},
        {"'spec':{'clusterIP':'172.30.0.9','externalIPs':['80.11.12.10']," PORTS "}",
         "172.30.0.9:80 3; 80.11.12.10:80 3"},
        {"'spec':{'clusterIP':'172.30.0.9','ports':[{'name':'http','port':80},{'name':'other',"
         "'port':80,'protocol':'UDP'},{'name':'http','port':81}]}",
         "172.30.0.9:80 3; 172.30.0.9:80 0; 172.30.0.9:81 3"},
        /* A foreign server may let the same number pass twice: the first counts. */
        {"'spec':{'clusterIP':'172.30.0.9','ports':[{'name':'http','port':80},{'name':'x',"
         "'port':80}]}",
         "172.30.0.9:80 3"},
        {"'spec':{'clusterIP':'172.30.0.9','sessionAffinity':'ClientIP'," PORTS "}",
         "172.30.0.9:80 3 sticky 10800"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *got = frontends(cases[i].service);
        assert_string_equal(got, cases[i].want);
    }
}

static void headless_and_external_services_have_none(void **state)
{
    (void) state;
    static const char *const cases[] = {
        "'spec':{'clusterIP':'None'," PORTS "}",
        "'spec':{'type':'ExternalName','externalName':'x.example'," PORTS "}",
        "'spec':{" PORTS "}",
        "'spec':{'clusterIP':'172.30.0.9'}",
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *got = frontends(cases[i]);
        assert_string_equal(got, "");
    }
}

static void local_policies_count_this_node_only(void **state)
{
    (void) state;
    static const struct {
        const char *service, *want;
    } cases[] = {
        {"'spec':{'type':'NodePort','externalTrafficPolicy':'Local','clusterIP':'172.30.0.9'," PORTS
         "}",
         "172.30.0.9:80 3; 0.0.0.0:30080 3/2"},
        {"'spec':{'internalTrafficPolicy':'Local','clusterIP':'172.30.0.9'," PORTS "}",
         "172.30.0.9:80 2"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *got = frontends(cases[i].service);
        assert_string_equal(got, cases[i].want);
    }
    /* From another node there is none here, but there are some. */
    CLEANUP(sdn_service_free)
    struct sdn_service *s =
        service("'spec':{'internalTrafficPolicy':'Local','clusterIP':'172.30.0.9'," PORTS "}");
    CLEANUP_FREE struct sdn_frontend **list = NULL;
    assert_int_equal(sdn_frontends_of(s, "c", &list), 1);
    assert_int_equal(list[0]->n[SDN_FROM_ANYWHERE], 0);
    assert_true(list[0]->elsewhere[SDN_FROM_ANYWHERE]);
    sdn_frontend_unref(list[0]);
}

static void source_ranges_are_of_the_ingress_addresses(void **state)
{
    (void) state;
    CLEANUP_FREE char *got = frontends(
        "'spec':{'type':'LoadBalancer','clusterIP':'172.30.0.9','externalIPs':['80.11.12.10'],"
        "'loadBalancerSourceRanges':['192.168.9.0/24','192.168.0.0/16','10.1.2.3/8','fd00::/"
        "8']," PORTS "},'status':{'loadBalancer':{'ingress':[{'ip':'172.29.0.3'}]}}");
    assert_string_equal(got, "172.30.0.9:80 3; 172.29.0.3:80 3 from 10.0.0.0/8 192.168.0.0/16; "
                             "80.11.12.10:80 3; 0.0.0.0:30080 3");
    /* What is no range lets nobody in. */
    CLEANUP_FREE char *none = frontends(
        "'spec':{'type':'LoadBalancer','clusterIP':'172.30.0.9','loadBalancerSourceRanges':"
        "['fd00::/8'],'ports':[{'name':'http','port':80}]},'status':{'loadBalancer':{'ingress':"
        "[{'ip':'172.29.0.3'}]}}");
    assert_string_equal(none, "172.30.0.9:80 3; 172.29.0.3:80 3 from");
}

static void targets_say_whether_they_are_pods_of_the_project(void **state)
{
    (void) state;
    CLEANUP(sdn_service_free)
    struct sdn_service *s = service("'spec':{'clusterIP':'172.30.0.9'," PORTS "}");
    CLEANUP_FREE struct sdn_frontend **list = NULL, **again = NULL;
    assert_int_equal(sdn_frontends_of(s, "a", &list), 1);
    assert_int_equal(sdn_frontends_of(s, "a", &again), 1);
    assert_true(list[0]->targets[0].pod);
    assert_false(list[0]->targets[1].pod);
    assert_true(list[0]->targets[2].pod);
    assert_true(sdn_frontend_equal(list[0], again[0]));
    again[0]->targets[1].port++;
    assert_false(sdn_frontend_equal(list[0], again[0]));
    sdn_frontend_unref(list[0]);
    sdn_frontend_unref(again[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_service_has_a_frontend_for_each_address_and_port),
        cmocka_unit_test(headless_and_external_services_have_none),
        cmocka_unit_test(local_policies_count_this_node_only),
        cmocka_unit_test(source_ranges_are_of_the_ingress_addresses),
        cmocka_unit_test(targets_say_whether_they_are_pods_of_the_project),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
