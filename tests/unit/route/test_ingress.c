/* SPDX-License-Identifier: Apache-2.0 */
/* Routes of Ingresses.  In all texts ' stands for ". */
#include "base/mem.h"
#include "json_text.h"
#include "route/ingress.h"

#define META "'metadata': {'name': 'web', 'namespace': 'red', 'uid': 'u'}"
#define SERVICE(port) "{'service': {'name': 's', 'port': {" port "}}}"
#define HTTP "'name': 'http'"

static const struct json *no_object(void *ctx, const char *name)
{
    return NULL;
}

static const struct json *one_service(void *ctx, const char *name)
{
    return streq(name, "s") ? ctx : NULL;
}

/* Holds a kubernetes.io/tls secret "cert" beside the service. */
static struct json *secret;
static const struct json *one_secret(void *ctx, const char *name)
{
    return streq(name, "cert") ? secret : NULL;
}

static struct json *plan(const char *ingress)
{
    CLEANUP(json_free)
    struct json *service = from("{'spec': {'ports': [{'name': 'http', 'port': 80, 'targetPort': "
                                "8080}, {'port': 443, 'targetPort': 8443}]}}");
    CLEANUP(json_free) struct json *obj = from(ingress);
    const struct route_ingress_sources s = {one_service, secret ? one_secret : no_object, service};
    return route_ingress_plan(obj, &s);
}

static void one_route(const char *ingress, const char *want)
{
    CLEANUP(json_free) struct json *list = plan(ingress);
    CLEANUP(json_free) struct json *spec = from(want);
    assert_int_equal(json_count(list), 1);
    assert_true(json_equal(json_get(json_at(list, 0), "spec"), spec));
}

#define RULE(host, path, type, backend)                                                     \
    "{" META ", 'spec': {'rules': [{'host': '" host "', 'http': {'paths': [{'path': '" path \
    "', 'pathType': '" type "', 'backend': " backend "}]}}]}}"
#define SPEC(host, path, port, policy)                                                     \
    "{'host': '" host "', " path "'to': {'kind': 'Service', 'name': 's', 'weight': 100}, " \
    "'port': {'targetPort': " port "}, 'wildcardPolicy': '" policy "'}"

static void a_path_of_a_host_becomes_a_route(void **state)
{
    one_route(RULE("a.test", "/x", "Prefix", SERVICE(HTTP)),
              SPEC("a.test", "'path': '/x', ", "'http'", "None"));
    one_route(RULE("a.test", "/x/", "Prefix", SERVICE(HTTP)),
              SPEC("a.test", "'path': '/x', ", "'http'", "None"));
    one_route(RULE("a.test", "", "ImplementationSpecific", SERVICE("'number': 443")),
              SPEC("a.test", "", "8443", "None"));
    one_route(RULE("*.a.test", "/", "Prefix", SERVICE("'number': 80")),
              SPEC("wildcard.a.test", "'path': '/', ", "'http'", "Subdomain"));
    one_route("{" META ", 'spec': {'defaultBackend': " SERVICE(HTTP) ", 'rules': [{'host': "
                                                                     "'a.test'}]}}",
              SPEC("a.test", "", "'http'", "None"));
}

static void what_no_router_could_serve_makes_no_route(void **state)
{
    static const char *const rows[] = {
        RULE("", "/", "Prefix", SERVICE(HTTP)),
        RULE("a.test", "/", "Exact", SERVICE(HTTP)),
        RULE("a.test", "/a b", "Prefix", SERVICE(HTTP)),
        RULE("a.test", "/", "Prefix", SERVICE("'number': 81")),
        RULE("a.test", "/", "Prefix", "{'service': {'name': 'other', 'port': {'number': 80}}}"),
        RULE("a.test", "/", "Prefix", "{'resource': {'kind': 'X', 'name': 's'}}"),
        "{" META ", 'spec': {'defaultBackend': " SERVICE(HTTP) "}}",
        "{}",
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(json_free) struct json *list = plan(rows[i]);
        assert_int_equal(json_count(list), 0);
    }
}

static void routes_have_their_owner_and_one_name(void **state)
{
    CLEANUP(json_free) struct json *a = plan(RULE("a.test", "/x", "Prefix", SERVICE(HTTP)));
    CLEANUP(json_free) struct json *b = plan(RULE("a.test", "/x", "Prefix", SERVICE(HTTP)));
    CLEANUP(json_free) struct json *other = plan(RULE("a.test", "/y", "Prefix", SERVICE(HTTP)));
    CLEANUP(json_free)
    struct json *owner = from("[{'apiVersion': 'networking.k8s.io/v1', 'kind': 'Ingress', 'name': "
                              "'web', 'uid': 'u', 'controller': true}]");
    const struct json *meta = json_get(json_at(a, 0), "metadata");
    assert_true(json_equal(a, b));
    assert_false(streq(json_get_text(meta, "name"),
                       json_path_string(json_at(other, 0), "metadata", "name", NULL)));
    assert_true(json_equal(json_get(meta, "ownerReferences"), owner));
}

#define TLS(notes, entry)                                                                 \
    "{'metadata': {'name': 'web', 'namespace': 'red', 'uid': 'u', 'annotations': {" notes \
    "}}, 'spec': {'tls': [" entry "], 'rules': [{'host': 'a.test', 'http': {'paths': [{"  \
    "'pathType': 'ImplementationSpecific', 'backend': " SERVICE(HTTP) "}]}}]}}"

static void tls_comes_from_the_entry_of_the_host(void **state)
{
    static const struct {
        const char *ingress, *want; /* The route's tls; NULL: no route; "null": no TLS. */
    } rows[] = {
        {TLS("", "{'hosts': ['b.test'], 'secretName': 'cert'}"), "null"},
        {TLS("", "{'hosts': ['a.test'], 'secretName': 'cert'}"),
         "{'termination': 'edge', 'insecureEdgeTerminationPolicy': 'Redirect', 'certificate': "
         "'CERT', 'key': 'KEY'}"},
        {TLS("", "{'hosts': ['a.test']}"),
         "{'termination': 'edge', 'insecureEdgeTerminationPolicy': 'Redirect'}"},
        {TLS("", "{'hosts': ['a.test'], 'secretName': 'gone'}"), NULL},
        {TLS("'route.openshift.io/termination': 'Passthrough'", ""),
         "{'termination': 'passthrough', 'insecureEdgeTerminationPolicy': 'Redirect'}"},
        {TLS("'route.openshift.io/termination': 'reencrypt', "
             "'route.openshift.io/destination-ca-certificate-secret': 'cert'",
             ""),
         "{'termination': 'reencrypt', 'insecureEdgeTerminationPolicy': 'Redirect', "
         "'destinationCACertificate': 'CERT'}"},
        {TLS("'route.openshift.io/termination': 'reencrypt', "
             "'route.openshift.io/destination-ca-certificate-secret': 'gone'",
             ""),
         NULL},
    };
    secret = from("{'type': 'kubernetes.io/tls', 'data': {'tls.crt': 'Q0VSVA==', 'tls.key': "
                  "'S0VZ'}}");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(json_free) struct json *list = plan(rows[i].ingress);
        CLEANUP(json_free) struct json *want = rows[i].want ? from(rows[i].want) : NULL;
        const struct json *tls = json_path(json_at(list, 0), "spec", "tls", NULL);
        assert_int_equal(json_count(list), rows[i].want ? 1 : 0);
        assert_true(!want || (json_is(want, JSON_NULL) ? !tls : tls && json_equal(tls, want)));
    }
    secret = json_free(secret);
}

static void an_existing_route_keeps_what_the_ingress_does_not_decide(void **state)
{
    CLEANUP(json_free)
    struct json *have = from("{'spec': {'host': 'b', 'path': '/x', 'httpHeaders': {}}}");
    CLEANUP(json_free) struct json *want = from("{'spec': {'host': 'a'}}");
    CLEANUP(json_free) struct json *now = route_ingress_update(have, want);
    CLEANUP(json_free) struct json *right = from("{'spec': {'host': 'a', 'httpHeaders': {}}}");
    assert_true(json_equal(now, right));
    assert_null(route_ingress_update(now, want));
}

static void the_status_names_routers_that_admitted(void **state)
{
    CLEANUP(json_free)
    struct json *routes =
        from("[{'status': {'ingress': [{'routerCanonicalHostname': 'r1', 'conditions': [{'type': "
             "'Admitted', 'status': 'True'}]}, {'routerCanonicalHostname': 'r2', 'conditions': "
             "[{'type': 'Admitted', 'status': 'False'}]}, {'conditions': [{'type': 'Admitted', "
             "'status': 'True'}]}]}}, {'status': {'ingress': [{'routerCanonicalHostname': 'r1', "
             "'conditions': [{'type': 'Admitted', 'status': 'True'}]}]}}, {}]");
    CLEANUP(json_free) struct json *status = route_ingress_status(routes);
    CLEANUP(json_free) struct json *want = from("{'ingress': [{'hostname': 'r1'}]}");
    CLEANUP(json_free) struct json *none = json_array();
    CLEANUP(json_free) struct json *empty = route_ingress_status(none);
    assert_true(json_equal(status, want));
    assert_int_equal(json_count(empty), 0);
}

static void an_ingress_of_another_class_is_not_ours(void **state)
{
    static const struct {
        const char *ingress, *class;
        bool want;
    } rows[] = {
        {"{}", NULL, true},
        {"{'spec': {'ingressClassName': 'x'}}", NULL, false},
        {"{'spec': {'ingressClassName': 'x'}}", "{'spec': {'controller': 'other/x'}}", false},
        {"{'spec': {'ingressClassName': 'x'}}",
         "{'spec': {'controller': 'openshift.io/ingress-to-route'}}", true},
        {"{'metadata': {'annotations': {'kubernetes.io/ingress.class': 'nginx'}}}", NULL, false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(json_free) struct json *ingress = from(rows[i].ingress);
        CLEANUP(json_free) struct json *class = rows[i].class ? from(rows[i].class) : NULL;
        assert_int_equal(route_ingress_is_ours(ingress, class), rows[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_of_a_host_becomes_a_route),
        cmocka_unit_test(what_no_router_could_serve_makes_no_route),
        cmocka_unit_test(routes_have_their_owner_and_one_name),
        cmocka_unit_test(tls_comes_from_the_entry_of_the_host),
        cmocka_unit_test(an_existing_route_keeps_what_the_ingress_does_not_decide),
        cmocka_unit_test(the_status_names_routers_that_admitted),
        cmocka_unit_test(an_ingress_of_another_class_is_not_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
