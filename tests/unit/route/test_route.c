/* SPDX-License-Identifier: Apache-2.0 */
/* Routes as routers read them, and lists of domains.  In all texts ' stands for ". */
#include "base/mem.h"
#include "json_text.h"
#include "route/domains.h"
#include "route/host.h"
#include "route/route.h"

#define META                                                                           \
    "'metadata': {'namespace': 'red', 'name': 'web', 'uid': 'u1', 'resourceVersion': " \
    "'7', 'creationTimestamp': '2026-11-28T10:00:00Z', 'annotations': {'a': 'b', "     \
    "'haproxy.router.openshift.io/balance': 'source'}}"
#define ROUTE(spec) "{" META ", 'spec': {" spec "}}"
#define TO "'to': {'kind': 'Service', 'name': 's', 'weight': 100}, 'wildcardPolicy': 'None'"

static struct route *parse(const char *text)
{
    CLEANUP(json_free) struct json *obj = from(text);
    struct err e;
    struct route *r = NULL;
    assert_int_equal(route_parse(obj, &r, &e), 0);
    return r;
}

static void a_route_is_read_with_all_its_fields(void **state)
{
    CLEANUP(route_free)
    struct route *r = parse(ROUTE(
        "'host': 'www.example.com', 'path': '/shop', 'port': {'targetPort': 8080}, 'to': {'kind': "
        "'Service', 'name': 'blue', 'weight': 300}, 'alternateBackends': [{'name': 'green', "
        "'weight': -1}, {'name': 'grey'}], 'wildcardPolicy': 'Subdomain', 'tls': {'termination': "
        "'reencrypt', 'key': 'K', 'certificate': 'C', 'caCertificate': 'A', "
        "'destinationCACertificate': 'D', 'insecureEdgeTerminationPolicy': 'Redirect'}, "
        "'httpHeaders': {'actions': {'request': [{'name': 'X-A', 'action': {'type': 'Set', 'set': "
        "{'value': '%[req.hdr(host),lower]'}}}], 'response': [{'name': 'X-B', 'action': {'type': "
        "'Delete'}}]}}"));
    assert_null(r->wrong);
    assert_string_equal(r->host, "www.example.com");
    assert_string_equal(route_domain(r), "example.com");
    assert_string_equal(r->path, "/shop");
    assert_string_equal(r->port, "8080");
    assert_int_equal(r->created_s, 1795860000);
    assert_int_equal(r->n_targets, 3);
    assert_int_equal(r->targets[0].weight, 256);
    assert_int_equal(r->targets[1].weight, 0);
    assert_string_equal(r->targets[2].service, "grey");
    assert_int_equal(r->targets[2].weight, 1);
    assert_int_equal(r->wildcard, ROUTE_WILDCARD_SUBDOMAIN);
    assert_int_equal(r->termination, ROUTE_REENCRYPT);
    assert_int_equal(r->insecure, ROUTE_INSECURE_REDIRECT);
    assert_string_equal(r->destination_ca, "D");
    assert_string_equal(r->request.list[0].value, "%[req.hdr(host),lower]");
    assert_null(r->response.list[0].value);
    assert_string_equal(route_annotation(r, "haproxy.router.openshift.io/balance"), "source");
    assert_null(route_annotation(r, "a"));
    route_set_host(r, "one");
    assert_string_equal(route_domain(r), "");
}

static void a_plain_route_has_no_tls_and_all_ports(void **state)
{
    CLEANUP(route_free) struct route *r = parse(ROUTE(TO));
    assert_null(r->wrong);
    assert_int_equal(r->termination, ROUTE_PLAIN);
    assert_null(r->port);
    assert_null(r->key);
    assert_string_equal(r->host, "");
}

static void passthrough_ignores_certificates_and_edge_the_authority_of_pods(void **state)
{
    CLEANUP(route_free)
    struct route *p = parse(ROUTE(TO ", 'tls': {'termination': 'passthrough', 'key': 'K'}"));
    CLEANUP(route_free)
    struct route *e =
        parse(ROUTE(TO ", 'tls': {'termination': 'edge', 'destinationCACertificate': 'D'}"));
    assert_null(p->key);
    assert_null(e->destination_ca);
}

static void an_object_without_identity_is_refused(void **state)
{
    static const char *const rows[] = {
        "{}",
        "{'metadata': {'namespace': 'red', 'name': 'web', 'creationTimestamp': "
        "'2026-11-28T10:00:00Z'}}",
        "{'metadata': {'namespace': 'red', 'name': 'web', 'uid': 'u'}}",
        "{'metadata': {'namespace': 'r/d', 'name': 'web', 'uid': 'u', 'creationTimestamp': "
        "'2026-11-28T10:00:00Z'}}",
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(json_free) struct json *obj = from(rows[i]);
        struct route *r = NULL;
        struct err e;
        assert_int_equal(route_parse(obj, &r, &e), -EINVAL);
        assert_null(r);
    }
}

static void what_no_proxy_may_get_is_said(void **state)
{
    static const struct {
        const char *spec, *want;
    } rows[] = {
        {TO ", 'path': '/a b'", "spec.path: Invalid value: \"/a b\": must have only"},
        {TO ", 'path': '/a\\nuse_backend x'", "spec.path: Invalid value: \"/a\\nuse_backend x\": "},
        {TO ", 'path': 'a'", "spec.path: Invalid value: \"a\": path must begin with /"},
        {TO ", 'path': '/%4'", "spec.path: Invalid value: \"/%4\": must have only"},
        {"'to': {'kind': 'Service', 'name': 'a b'}", "spec.to: Invalid value: \"a b\": "},
        {"'to': {'kind': 'Pod', 'name': 'a'}", "spec.to: Invalid value: \"Pod\": "},
        {TO ", 'port': {'targetPort': 'x y'}", "spec.port.targetPort: Invalid value: \"x y\": "},
        {TO ", 'port': {'targetPort': 70000}", "spec.port.targetPort: Invalid value: \"70000\": "},
        {TO ", 'tls': {'termination': 'magic'}", "spec.tls.termination: Invalid value: \"magic\""},
        {TO ", 'tls': {'termination': 'edge', 'insecureEdgeTerminationPolicy': 'x'}",
         "spec.tls.insecureEdgeTerminationPolicy: Invalid value: \"x\": "},
        {TO ", 'tls': {'termination': 'passthrough', 'insecureEdgeTerminationPolicy': 'Allow'}",
         "spec.tls.insecureEdgeTerminationPolicy: Invalid value: \"Allow\": "},
        {TO ", 'path': '/x', 'tls': {'termination': 'passthrough'}",
         "spec.path: Invalid value: \"/x\": passthrough termination does not support paths"},
        {TO ", 'httpHeaders': {'actions': {'request': [{'name': 'Cookie', 'action': {'type': "
            "'Delete'}}]}}",
         "spec.httpHeaders.actions.request: Invalid value: \"Cookie\": "},
        {TO ", 'httpHeaders': {'actions': {'response': [{'name': 'X', 'action': {'type': 'Set', "
            "'set': {'value': '%[req.hdr(a)]'}}}]}}",
         "spec.httpHeaders.actions.response: Invalid value: \"%[req.hdr(a)]\": "},
        {TO ", 'httpHeaders': {'actions': {'request': [{'name': 'X', 'action': {'type': 'Set', "
            "'set': {'value': '%[env(HOME)]'}}}]}}",
         "spec.httpHeaders.actions.request: Invalid value: \"%[env(HOME)]\": "},
        {TO ", 'alternateBackends': [{'name': 'a'}, {'name': 'b'}, {'name': 'c'}, {'name': 'd'}]",
         "spec.alternateBackends: "},
        {TO ", 'subdomain': '-'", "spec.subdomain: Invalid value: \"-\": "},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_FREE char *text = xasprintf("{" META ", 'spec': {%s}}", rows[i].spec);
        CLEANUP(route_free) struct route *r = parse(text);
        assert_non_null(r->wrong);
        assert_true(str_has_prefix(r->wrong, rows[i].want));
    }
}

static void age_is_time_then_uid(void **state)
{
    struct route a = {.created_s = 5, .uid = (char[]){"x"}};
    struct route b = {.created_s = 6, .uid = (char[]){"a"}};
    struct route c = {.created_s = 5, .uid = (char[]){"y"}};
    assert_true(route_compare_age(&a, &b) < 0);
    assert_true(route_compare_age(&b, &a) > 0);
    assert_true(route_compare_age(&a, &c) < 0);
    assert_int_equal(route_compare_age(&a, &a), 0);
}

/* ---- domains: the examples of OpenShift's documentation ---- */

static bool is_in(const char *list, const char *host)
{
    struct route_domains d;
    route_domains_init(&d, list);
    bool yes = route_domains_has(&d, host);
    route_domains_done(&d);
    return yes;
}

static void a_list_has_its_domains_and_what_is_below(void **state)
{
    static const char list[] = "open.header.test, openshift.org, block.it";
    static const char *const in[] = {"open.header.test", "www.open.header.test",
                                     "block.it",         "franco.baresi.block.it",
                                     "openshift.org",    "api.openshift.org"};
    static const char *const out[] = {"foo.header.test", "www.allow.it", "www.openshift.test",
                                      "notblock.it",     "it",           ""};
    for (size_t i = 0; i < ARRAY_SIZE(in); i++) {
        assert_true(is_in(list, in[i]));
    }
    for (size_t i = 0; i < ARRAY_SIZE(out); i++) {
        assert_false(is_in(list, out[i]));
    }
    assert_false(is_in("", "a.b"));
    assert_false(is_in(" , ,", ""));
    assert_true(is_in("\ta.b ,", "x.a.b"));
}

/* ---- hosts of routes without one ---- */

static void a_host_is_made_from_name_namespace_and_subdomain(void **state)
{
    CLEANUP_FREE char *s =
        route_host_generate("no-route-hostname", "mynamespace", ROUTE_DEFAULT_SUBDOMAIN);
    CLEANUP_FREE char *dotted = route_host_generate("a.b", "n", "x.test");
    assert_string_equal(s, "no-route-hostname-mynamespace.router.default.svc.cluster.local");
    assert_string_equal(dotted, "a-b-n.x.test");
}

static void a_router_fills_its_template(void **state)
{
    static const struct {
        const char *template, *want;
    } rows[] = {
        {"${name}-${namespace}.myapps.mycompany.com", "web-red.myapps.mycompany.com"},
        {"'${name}.x'", "web.x"},
        {"\"${namespace}\"", "red"},
        {"fixed.x", "fixed.x"},
        {"$name", "$name"},
        {"${uid}.x", NULL},
        {"${name", NULL},
        {"", ""},
        {"'", "'"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_FREE char *s = route_host_expand(rows[i].template, "web", "red");
        assert_true(streq_null(s, rows[i].want));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_route_is_read_with_all_its_fields),
        cmocka_unit_test(a_plain_route_has_no_tls_and_all_ports),
        cmocka_unit_test(passthrough_ignores_certificates_and_edge_the_authority_of_pods),
        cmocka_unit_test(an_object_without_identity_is_refused),
        cmocka_unit_test(what_no_proxy_may_get_is_said),
        cmocka_unit_test(age_is_time_then_uid),
        cmocka_unit_test(a_list_has_its_domains_and_what_is_below),
        cmocka_unit_test(a_host_is_made_from_name_namespace_and_subdomain),
        cmocka_unit_test(a_router_fills_its_template),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
