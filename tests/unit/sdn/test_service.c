/* SPDX-License-Identifier: Apache-2.0 */
/* From Service and EndpointSlice objects to a service with its backends. */
#include "base/mem.h"
#include "base/str.h"
#include "sdn/service.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <stdlib.h>

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

static struct sdn_service *service(const char *spec)
{
    CLEANUP_FREE char *text =
        xasprintf("{'metadata':{'namespace':'red','name':'web'},'spec':%s}", spec);
    CLEANUP(json_free) struct json *v = parse(text);
    struct sdn_service *s = NULL;
    struct err e = {0};
    if (sdn_service_parse(v, &s, &e) < 0) {
        fail_msg("%s", e.text);
    }
    return s;
}

static struct sdn_slice *slice(const char *ports, const char *endpoints)
{
    CLEANUP_FREE char *text = xasprintf(
        "{'addressType':'IPv4','metadata':{'labels':{'kubernetes.io/service-name':'web'}},"
        "'ports':%s,'endpoints':%s}",
        ports, endpoints);
    CLEANUP(json_free) struct json *v = parse(text);
    struct sdn_slice *s = NULL;
    struct err e = {0};
    if (sdn_slice_parse(v, &s, &e) < 0) {
        fail_msg("%s", e.text);
    }
    return s;
}

/* "IP:PORT IP:PORT" of the chosen ones. */
static char *chosen(const struct sdn_service *s, size_t port, const char *node)
{
    struct strbuf out = STRBUF_INIT;
    const struct sdn_backend **list = NULL;
    size_t n = sdn_service_choose(s, &s->ports[port], node, &list);
    for (size_t i = 0; i < n; i++) {
        strbuf_addf(&out, "%s%s:%u", i ? " " : "", IP4_TEXT(list[i]->endpoint->ip), list[i]->port);
    }
    free(list);
    return strbuf_steal(&out);
}

static void assert_chosen(const struct sdn_service *s, size_t port, const char *node,
                          const char *want)
{
    CLEANUP_FREE char *got = chosen(s, port, node);
    assert_string_equal(got, want);
}

static void a_service_says_what_it_is(void **state)
{
    CLEANUP(sdn_service_free)
    struct sdn_service *s = service(
        "{'type':'LoadBalancer','clusterIP':'172.30.0.9','externalIPs':['80.1.2.3','80.1.2.3'],"
        "'sessionAffinity':'ClientIP','externalTrafficPolicy':'Local',"
        "'ports':[{'name':'http','port':80,'nodePort':30080},{'name':'dns','protocol':'UDP','port':"
        "53}]}");
    assert_int_equal(s->type, SDN_SERVICE_LOAD_BALANCER);
    assert_string_equal(IP4_TEXT(s->cluster_ip), "172.30.0.9");
    assert_int_equal(s->n_external_ips, 1);
    assert_int_equal(s->affinity_s, SDN_SERVICE_AFFINITY_SECONDS);
    assert_true(s->external_local && !s->internal_local && !s->headless);
    assert_int_equal(s->n_ports, 2);
    assert_int_equal(s->ports[0].node_port, 30080);
    assert_int_equal(s->ports[1].protocol, SDN_UDP);

    CLEANUP(sdn_service_free) struct sdn_service *h = service("{'clusterIP':'None'}");
    assert_true(h->headless && !h->cluster_ip);
    CLEANUP(sdn_service_free)
    struct sdn_service *x = service("{'type':'ExternalName','externalName':'db.example.com'}");
    assert_string_equal(x->external_name, "db.example.com");
}

static void what_is_wrong_is_named(void **state)
{
    static const struct {
        const char *spec, *text;
    } cases[] = {
        {"{'type':'Magic'}", "spec.type"},
        {"{'clusterIP':'172.30.0'}", "spec.clusterIP"},
        {"{'ports':[{'port':0}]}", "ports[0].port"},
        {"{'ports':[{'port':1},{'port':1,'protocol':'ICMP'}]}", "ports[1].protocol"},
        {"{'type':'NodePort','ports':[{'port':1,'nodePort':70000}]}", "ports[0].nodePort"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *text =
            xasprintf("{'metadata':{'namespace':'red','name':'web'},'spec':%s}", cases[i].spec);
        CLEANUP(json_free) struct json *v = parse(text);
        struct sdn_service *s = NULL;
        struct err e = {0};
        assert_int_equal(sdn_service_parse(v, &s, &e), -EINVAL);
        assert_non_null(strstr(e.text, cases[i].text));
    }
    static const struct {
        const char *slice, *text;
    } slices[] = {
        {"{}", "addressType"},
        {"{'addressType':'FQDN'}", "addressType"},
        {"{'addressType':'IPv4','endpoints':[{'addresses':['fe80::1']}]}",
         "endpoints[0].addresses[0]"},
        {"{'addressType':'IPv4','endpoints':[{'addresses':['0.0.0.0']}]}",
         "endpoints[0].addresses[0]"},
        {"{'addressType':'IPv4','ports':[{'name':'all'}]}", "ports[0].port"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(slices); i++) {
        CLEANUP(json_free) struct json *v = parse(slices[i].slice);
        struct sdn_slice *s = NULL;
        struct err e = {0};
        assert_int_equal(sdn_slice_parse(v, &s, &e), -EINVAL);
        assert_non_null(strstr(e.text, slices[i].text));
    }
}

static void ports_are_joined_by_name_and_each_backend_is_there_once(void **state)
{
    CLEANUP(sdn_service_free)
    struct sdn_service *s = service("{'clusterIP':'172.30.0.9','ports':[{'name':'a','port':80},"
                                    "{'name':'b','port':81}]}");
    struct sdn_slice *slices[] = {
        slice("[{'name':'a','port':8080},{'name':'b','port':8081}]",
              "[{'addresses':['10.128.0.3'],'nodeName':'n1'},{'addresses':['10.128.0.2'],'nodeName'"
              ":'n2'}]"),
        slice("[{'name':'a','port':9090}]", "[{'addresses':['10.128.0.4'],'nodeName':'n2'}]"),
        slice("[{'name':'a','port':8080}]", "[{'addresses':['10.128.0.2'],'nodeName':'n2'}]"),
        slice("[{'name':'a','protocol':'UDP','port':1}]", "[{'addresses':['10.128.0.9']}]"),
    };
    sdn_service_join(s, slices, ARRAY_SIZE(slices));
    for (size_t i = 0; i < ARRAY_SIZE(slices); i++) {
        sdn_slice_unref(slices[i]);
    }
    assert_chosen(s, 0, NULL, "10.128.0.2:8080 10.128.0.3:8080 10.128.0.4:9090");
    assert_chosen(s, 1, NULL, "10.128.0.2:8081 10.128.0.3:8081");
    assert_chosen(s, 0, "n2", "10.128.0.2:8080 10.128.0.4:9090");
    assert_chosen(s, 0, "n3", "");
}

static void terminating_backends_serve_only_when_no_other_is_left(void **state)
{
    CLEANUP(sdn_service_free)
    struct sdn_service *s = service("{'clusterIP':'172.30.0.9','ports':[{'port':80}]}");
    struct sdn_slice *sl =
        slice("[{'port':80}]", "[{'addresses':['10.128.0.2']},"
                               "{'addresses':['10.128.0.3'],'conditions':{'ready':false,'serving':"
                               "true,'terminating':true}},"
                               "{'addresses':['10.128.0.4'],'conditions':{'ready':false}}]");
    sdn_service_join(s, &sl, 1);
    assert_chosen(s, 0, NULL, "10.128.0.2:80");
    sdn_slice_unref(sl);
    sl = slice("[{'port':80}]", "[{'addresses':['10.128.0.3'],'conditions':{'ready':false,'serving'"
                                ":true,'terminating':true}},"
                                "{'addresses':['10.128.0.4'],'conditions':{'ready':false}}]");
    sdn_service_join(s, &sl, 1);
    sdn_slice_unref(sl);
    assert_chosen(s, 0, NULL, "10.128.0.3:80");
    s->ready_or_not = true;
    assert_chosen(s, 0, NULL, "10.128.0.3:80 10.128.0.4:80");
}

static void a_change_of_anything_is_a_difference(void **state)
{
    CLEANUP(sdn_service_free)
    struct sdn_service *a = service("{'clusterIP':'172.30.0.9','ports':[{'port':80}]}");
    CLEANUP(sdn_service_free) struct sdn_service *b = sdn_service_clone(a);
    assert_true(sdn_service_equal(a, b));
    struct sdn_slice *one = slice("[{'port':80}]", "[{'addresses':['10.128.0.2']}]");
    struct sdn_slice *unready =
        slice("[{'port':80}]", "[{'addresses':['10.128.0.2'],'conditions':{'ready':false}}]");
    sdn_service_join(a, &one, 1);
    assert_false(sdn_service_equal(a, b));
    sdn_service_join(b, &unready, 1);
    assert_false(sdn_service_equal(a, b));
    sdn_service_join(b, &one, 1);
    assert_true(sdn_service_equal(a, b));
    b->idle = true;
    assert_false(sdn_service_equal(a, b));
    sdn_slice_unref(one);
    sdn_slice_unref(unready);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_service_says_what_it_is),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(ports_are_joined_by_name_and_each_backend_is_there_once),
        cmocka_unit_test(terminating_backends_serve_only_when_no_other_is_left),
        cmocka_unit_test(a_change_of_anything_is_a_difference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
