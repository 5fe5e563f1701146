/* SPDX-License-Identifier: Apache-2.0 */
/* Service, Endpoints and EndpointSlice: defaults, rules, what a change of type does, tables, protobuf. */
#include "api/kind.h"
#include "api/kinds/kind_service.h"
#include "api/patch/patch.h"
#include "api/proto.h"
#include "api/schema.h"
#include "api/table/table.h"
#include "base/mem.h"
#include "wire/protobuf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static struct json *parse(const char *text)
{
    struct json *v = NULL;
    struct err e = {0};
    if (json_parse(text, strlen(text), &v, &e) < 0) {
        fail_msg("%s: %s", text, e.text);
    }
    return v;
}

static const struct api_kind *kind(const char *alias)
{
    const struct api_kind *k = api_kind_by_alias(alias);
    assert_non_null(k);
    return k;
}

/* As the server does with what a client sends. */
static void settle(const struct api_kind *k, struct json *obj, const struct json *old)
{
    if (k->prepare) {
        k->prepare(obj, old);
    }
    api_schema_default(k->schema, obj);
    if (k->defaults) {
        k->defaults(obj);
    }
}

static void validate(const struct api_kind *k, const struct json *obj, const struct json *old,
                     struct api_causes *c)
{
    api_validate_object(k, obj, old, c);
}

#define META "\"metadata\":{\"name\":\"web\",\"namespace\":\"red\"}"

static struct json *service(const char *spec)
{
    CLEANUP_FREE char *text = xasprintf("{" META ",\"spec\":%s}", spec);
    struct json *obj = parse(text);
    settle(kind("svc"), obj, NULL);
    return obj;
}

static void expect_spec(const struct json *obj, const char *want)
{
    CLEANUP(json_free) struct json *spec = parse(want);
    if (!json_equal(json_get(obj, "spec"), spec)) {
        CLEANUP_FREE char *got = json_to_text(json_get(obj, "spec"));
        fail_msg("got %s, want %s", got, want);
    }
}

#define PORT80 "{\"port\":80,\"protocol\":\"TCP\",\"targetPort\":80}"

static void what_is_left_out_is_filled_in(void **state)
{
    static const struct {
        const char *given, *want;
    } cases[] = {
        {"{\"ports\":[{\"port\":80}]}",
         "{\"ports\":[" PORT80 "],\"type\":\"ClusterIP\",\"sessionAffinity\":\"None\","
         "\"ipFamilyPolicy\":\"SingleStack\",\"ipFamilies\":[\"IPv4\"],"
         "\"internalTrafficPolicy\":\"Cluster\"}"},
        {"{\"portalIP\":\"172.30.0.9\",\"ports\":[{\"port\":80,\"nodePort\":0,\"targetPort\":0}]}",
         "{\"ports\":[" PORT80 "],\"clusterIP\":\"172.30.0.9\",\"type\":\"ClusterIP\","
         "\"sessionAffinity\":\"None\",\"ipFamilyPolicy\":\"SingleStack\",\"ipFamilies\":[\"IPv4\"]"
         ",\"clusterIPs\":[\"172.30.0.9\"],\"internalTrafficPolicy\":\"Cluster\"}"},
        {"{\"type\":\"LoadBalancer\",\"sessionAffinity\":\"ClientIP\",\"ports\":[{\"port\":80,"
         "\"targetPort\":\"http\"}]}",
         "{\"type\":\"LoadBalancer\",\"sessionAffinity\":\"ClientIP\",\"ports\":[{\"port\":80,"
         "\"targetPort\":\"http\",\"protocol\":\"TCP\"}],\"sessionAffinityConfig\":{\"clientIP\":{"
         "\"timeoutSeconds\":10800}},\"ipFamilyPolicy\":\"SingleStack\",\"ipFamilies\":[\"IPv4\"],"
         "\"internalTrafficPolicy\":\"Cluster\",\"externalTrafficPolicy\":\"Cluster\","
         "\"allocateLoadBalancerNodePorts\":true}"},
        {"{\"type\":\"ExternalName\",\"externalName\":\"a.example\"}",
         "{\"type\":\"ExternalName\",\"externalName\":\"a.example\",\"sessionAffinity\":\"None\"}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *obj = service(cases[i].given);
        CLEANUP(api_causes_done) struct api_causes c = {0};
        expect_spec(obj, cases[i].want);
        validate(kind("svc"), obj, NULL, &c);
        if (c.n) {
            fail_msg("%s: %s: %s", cases[i].given, c.list[0].field, c.list[0].message);
        }
    }
}

struct bad {
    const char *spec, *field, *reason, *says;
};
#define I "FieldValueInvalid"
#define R "FieldValueRequired"
#define D "FieldValueDuplicate"
#define N "FieldValueNotSupported"
#define F "FieldValueForbidden"
#define T "FieldValueTypeInvalid"
#define P "\"ports\":[{\"port\":80}]"

static const struct bad bad[] = {
    {"{}", "spec.ports", R, NULL},
    {"{\"ports\":{}}", "spec.ports", T, NULL},
    {"{\"ports\":{\"a\":1}}", "spec.ports", T, "array"},
    {"{\"ports\":[7]}", "spec.ports[0]", T, "object"},
    {"{\"ports\":[{\"port\":0}]}", "spec.ports[0].port", I, "between 1 and 65535"},
    {"{\"ports\":[{}]}", "spec.ports[0].port", R, NULL},
    {"{\"ports\":[{\"port\":80,\"protocol\":\"ICMP\"}]}", "spec.ports[0].protocol", N, "SCTP"},
    {"{\"ports\":[{\"port\":80,\"targetPort\":70000}]}", "spec.ports[0].targetPort", I, "65535"},
    {"{\"ports\":[{\"port\":80,\"targetPort\":\"Web\"}]}", "spec.ports[0].targetPort", I,
     "alpha-numeric"},
    {"{\"ports\":[{\"port\":80},{\"name\":\"b\",\"port\":81}]}", "spec.ports[0].name", R, NULL},
    {"{\"ports\":[{\"name\":\"a\",\"port\":80},{\"name\":\"a\",\"port\":81}]}",
     "spec.ports[1].name", D, NULL},
    {"{\"ports\":[{\"name\":\"a\",\"port\":80},{\"name\":\"b\",\"port\":80}]}", "spec.ports[1]", D,
     NULL},
    {"{\"ports\":[{\"name\":\"A\",\"port\":80}]}", "spec.ports[0].name", I, "RFC 1123"},
    {"{\"ports\":[{\"port\":80,\"appProtocol\":\"a b\"}]}", "spec.ports[0].appProtocol", I, NULL},
    {"{\"ports\":[{\"port\":80,\"nodePort\":30000}]}", "spec.ports[0].nodePort", F,
     "may not be used when `type` is 'ClusterIP'"},
    {"{\"type\":\"NodePort\",\"ports\":[{\"name\":\"a\",\"port\":80,\"nodePort\":30000},{\"name\":"
     "\"b\",\"port\":81,\"nodePort\":30000}]}",
     "spec.ports[1].nodePort", D, NULL},
    {"{\"type\":\"NodePort\",\"clusterIP\":\"None\"," P "}", "spec.clusterIPs[0]", I,
     "may not be set to 'None' for NodePort services"},
    {"{\"type\":\"LoadBalancer\",\"ports\":[{\"port\":10250}]}", "spec.ports[0].port", I,
     "kubelet"},
    {"{\"type\":\"Router\"," P "}", "spec.type", N, "ExternalName"},
    {"{\"type\":7," P "}", "spec.type", T, "string"},
    {"{\"type\":\"ExternalName\"}", "spec.externalName", R, NULL},
    {"{\"type\":\"ExternalName\",\"externalName\":\"a_b\"}", "spec.externalName", I, NULL},
    {"{\"type\":\"ExternalName\",\"externalName\":\"a\",\"clusterIP\":\"172.30.0.5\"}",
     "spec.clusterIPs", F, "ExternalName"},
    {"{\"clusterIP\":\"172.30.0\"," P "}", "spec.clusterIP", I, "IPv4 address"},
    {"{\"clusterIP\":\"172.30.0.5\",\"portalIP\":\"172.30.0.6\"," P "}", "spec.portalIP", I,
     "old name of clusterIP"},
    {"{\"clusterIP\":\"172.30.0.5\",\"clusterIPs\":[\"172.30.0.6\"]," P "}", "spec.clusterIPs", I,
     "first value must match"},
    {"{\"clusterIPs\":[\"172.30.0.6\"]," P "}", "spec.clusterIPs", I, "first value must match"},
    {"{\"clusterIP\":\"172.30.0.5\",\"clusterIPs\":[\"172.30.0.5\",\"2001:db8::1\"]," P "}",
     "spec.clusterIPs", I, "IPv4"},
    {"{\"ipFamilies\":[\"IPv6\"]," P "}", "spec.ipFamilies[0]", I,
     "not configured on this cluster"},
    {"{\"ipFamilies\":[\"IPv5\"]," P "}", "spec.ipFamilies[0]", N, NULL},
    {"{\"ipFamilyPolicy\":\"RequireDualStack\"," P "}", "spec.ipFamilyPolicy", I, "dual-stack"},
    {"{\"externalIPs\":[\"127.0.0.1\"]," P "}", "spec.externalIPs[0]", I, "loopback"},
    {"{\"externalIPs\":[\"0.0.0.0\"]," P "}", "spec.externalIPs[0]", I, "unspecified"},
    {"{\"externalIPs\":[\"169.254.1.1\"]," P "}", "spec.externalIPs[0]", I, "link-local"},
    {"{\"externalIPs\":[\"224.0.0.5\"]," P "}", "spec.externalIPs[0]", I, "multicast"},
    {"{\"externalIPs\":[\"::ffff:10.0.0.1\"]," P "}", "spec.externalIPs[0]", I, "IPv4-mapped"},
    {"{\"externalIPs\":[\"fe80::1\"]," P "}", "spec.externalIPs[0]", I, "link-local"},
    {"{\"externalIPs\":[\"a\"]," P "}", "spec.externalIPs[0]", I, "valid IP address"},
    {"{\"sessionAffinity\":\"Client\"," P "}", "spec.sessionAffinity", N, "ClientIP"},
    {"{\"sessionAffinity\":\"ClientIP\",\"sessionAffinityConfig\":{\"clientIP\":{"
     "\"timeoutSeconds\":86401}}," P "}",
     "spec.sessionAffinityConfig.clientIP.timeoutSeconds", I, "86400"},
    {"{\"externalTrafficPolicy\":\"Local\"," P "}", "spec.externalTrafficPolicy", I,
     "externally-accessible"},
    {"{\"type\":\"NodePort\",\"externalTrafficPolicy\":\"Node\"," P "}",
     "spec.externalTrafficPolicy", N, "Local"},
    {"{\"internalTrafficPolicy\":\"Node\"," P "}", "spec.internalTrafficPolicy", N, "Cluster"},
    {"{\"type\":\"NodePort\",\"healthCheckNodePort\":30000," P "}", "spec.healthCheckNodePort", I,
     "LoadBalancer"},
    {"{\"loadBalancerSourceRanges\":[\"10.0.0.0/8\"]," P "}", "spec.loadBalancerSourceRanges", F,
     "LoadBalancer"},
    {"{\"type\":\"LoadBalancer\",\"loadBalancerSourceRanges\":[\"10.0.0.0\"]," P "}",
     "spec.loadBalancerSourceRanges[0]", I, "CIDR"},
    {"{\"loadBalancerClass\":\"a\"," P "}", "spec.loadBalancerClass", F, "LoadBalancer"},
    {"{\"allocateLoadBalancerNodePorts\":true," P "}", "spec.allocateLoadBalancerNodePorts", F,
     "LoadBalancer"},
    {"{\"publishNotReadyAddresses\":\"yes\"," P "}", "spec.publishNotReadyAddresses", T, NULL},
    {"{\"selector\":{\"a b\":\"c\"}," P "}", "spec.selector", I, "name part"},
    {"{\"selector\":{\"a\":\"-\"}," P "}", "spec.selector", I, NULL},
    {"{\"trafficDistribution\":\"Random\"," P "}", "spec.trafficDistribution", N, NULL},
};

static const struct api_cause *find(const struct api_causes *c, const char *field)
{
    for (size_t i = 0; i < c->n; i++) {
        if (streq(c->list[i].field, field)) {
            return &c->list[i];
        }
    }
    return NULL;
}

static void expect_cause(const struct api_causes *c, const char *what, const char *field,
                         const char *reason, const char *says)
{
    const struct api_cause *cause = find(c, field);
    if (!cause) {
        fail_msg("%s: no cause for %s, first of %zu is %s", what, field, c->n,
                 c->n ? c->list[0].field : "none");
    }
    if (!streq(cause->reason, reason) || (says && !strstr(cause->message, says))) {
        fail_msg("%s: %s: \"%s\"", what, cause->reason, cause->message);
    }
}

static void each_wrong_field_of_a_service_is_named(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CLEANUP(json_free) struct json *obj = service(bad[i].spec);
        CLEANUP(api_causes_done) struct api_causes c = {0};
        validate(kind("svc"), obj, NULL, &c);
        expect_cause(&c, bad[i].spec, bad[i].field, bad[i].reason, bad[i].says);
    }
}

static void service_names_are_labels_of_63_characters_that_begin_with_a_letter(void **state)
{
    static const char longest[] = "a23456789-123456789-123456789-123456789-123456789-123456789-123";
    const struct api_kind *k = kind("svc");
    assert_null(k->check_name(longest));
    assert_int_equal(strlen(longest), 63);
    CLEANUP_FREE char *longer = xasprintf("%sb", longest);
    static const char *const wrong[] = {"", "9a", "a.b", "A", "a-", "-a", "a_b"};
    assert_non_null(k->check_name(longer));
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        assert_non_null(k->check_name(wrong[i]));
    }
}

/* ---- changes ---- */

#define ALLOCATED                                                                              \
    "{\"clusterIP\":\"172.30.0.9\",\"clusterIPs\":[\"172.30.0.9\"],\"type\":"                  \
    "\"NodePort\",\"ports\":[{\"name\":\"a\",\"port\":80,\"nodePort\":30001},{\"name\":\"b\"," \
    "\"port\":81,\"nodePort\":30002}]}"

/* 'patch' of the service 'from'; NULL 'field': it is fine, and the result's spec contains 'want'. */
static void expect_change(const char *from, const char *patch, const char *field, const char *says,
                          const char *want)
{
    CLEANUP(json_free) struct json *old = service(from);
    struct json *obj = json_clone(old);
    CLEANUP(json_free) struct json *p = parse(patch);
    CLEANUP(api_causes_done) struct api_causes c = {0};
    api_patch_merge(&obj, p);
    settle(kind("svc"), obj, old);
    validate(kind("svc"), obj, old, &c);
    CLEANUP_FREE char *text = json_to_text(json_get(obj, "spec"));
    if (field) {
        expect_cause(&c, patch, field, I, says);
    } else if (c.n) {
        fail_msg("%s: %s: %s", patch, c.list[0].field, c.list[0].message);
    } else {
        CLEANUP(json_free) struct json *wanted = parse(want);
        for (size_t i = 0; i < json_count(wanted); i++) {
            const struct json *v = json_get(json_get(obj, "spec"), json_key_at(wanted, i));
            bool absent = json_is(json_at(wanted, i), JSON_NULL);
            if (absent ? v != NULL : !v || !json_equal(v, json_at(wanted, i))) {
                fail_msg("%s: %s is wrong in %s", patch, json_key_at(wanted, i), text);
            }
        }
    }
    json_free(obj);
}

static void addresses_and_ports_stay_when_a_writer_leaves_them_out(void **state)
{
    expect_change(ALLOCATED, "{\"spec\":{\"clusterIP\":null,\"clusterIPs\":null}}", NULL, NULL,
                  "{\"clusterIP\":\"172.30.0.9\",\"clusterIPs\":[\"172.30.0.9\"]}");
    expect_change(ALLOCATED, "{\"spec\":{\"clusterIP\":\"\"}}", NULL, NULL,
                  "{\"clusterIP\":\"172.30.0.9\",\"clusterIPs\":[\"172.30.0.9\"]}");
    expect_change(ALLOCATED,
                  "{\"spec\":{\"ports\":[{\"name\":\"b\",\"port\":81},{\"name\":\"c\",\"port\":82}]"
                  "}}",
                  NULL, NULL,
                  "{\"ports\":[{\"name\":\"b\",\"port\":81,\"nodePort\":30002,\"protocol\":\"TCP\","
                  "\"targetPort\":81},{\"name\":\"c\",\"port\":82,\"protocol\":\"TCP\","
                  "\"targetPort\":82}]}");
}

static void a_change_of_type_drops_what_the_new_one_does_not_have(void **state)
{
    expect_change(ALLOCATED, "{\"spec\":{\"type\":\"ClusterIP\"}}", NULL, NULL,
                  "{\"clusterIP\":\"172.30.0.9\",\"externalTrafficPolicy\":null,\"ports\":[{"
                  "\"name\":\"a\",\"port\":80,\"protocol\":\"TCP\",\"targetPort\":80},{\"name\":"
                  "\"b\",\"port\":81,\"protocol\":\"TCP\",\"targetPort\":81}]}");
    expect_change(ALLOCATED, "{\"spec\":{\"type\":\"ExternalName\",\"externalName\":\"a.b\"}}",
                  NULL, NULL,
                  "{\"clusterIP\":null,\"clusterIPs\":null,\"ipFamilies\":null,\"ipFamilyPolicy\":"
                  "null,\"internalTrafficPolicy\":null,\"externalTrafficPolicy\":null}");
    expect_change("{\"type\":\"LoadBalancer\",\"loadBalancerClass\":\"a/b\",\"externalTrafficPolicy"
                  "\":\"Local\",\"healthCheckNodePort\":30005," P "}",
                  "{\"spec\":{\"type\":\"ClusterIP\"}}", NULL, NULL,
                  "{\"loadBalancerClass\":null,\"allocateLoadBalancerNodePorts\":null,"
                  "\"healthCheckNodePort\":null,\"externalTrafficPolicy\":null}");
    expect_change("{\"type\":\"ExternalName\",\"externalName\":\"a.b\"," P "}",
                  "{\"spec\":{\"type\":\"ClusterIP\",\"externalName\":null}}", NULL, NULL,
                  "{\"clusterIP\":null,\"ipFamilies\":[\"IPv4\"]}");
}

static void what_was_allocated_cannot_be_changed(void **state)
{
    expect_change(ALLOCATED, "{\"spec\":{\"clusterIP\":\"172.30.0.10\"}}", "spec.clusterIPs[0]",
                  "may not change once set", NULL);
    expect_change(ALLOCATED, "{\"spec\":{\"portalIP\":\"172.30.0.10\"}}", "spec.portalIP",
                  "old name", NULL);
    expect_change("{\"clusterIP\":\"None\"," P "}",
                  "{\"spec\":{\"clusterIP\":\"172.30.0.10\",\"clusterIPs\":null}}",
                  "spec.clusterIPs[0]", "may not change once set", NULL);
    expect_change("{\"type\":\"LoadBalancer\",\"externalTrafficPolicy\":\"Local\","
                  "\"healthCheckNodePort\":30005," P "}",
                  "{\"spec\":{\"healthCheckNodePort\":30006}}", "spec.healthCheckNodePort",
                  "immutable", NULL);
    expect_change("{\"type\":\"LoadBalancer\",\"loadBalancerClass\":\"a/b\"," P "}",
                  "{\"spec\":{\"loadBalancerClass\":\"a/c\"}}", "spec.loadBalancerClass",
                  "may not change", NULL);
}

static void only_a_load_balancer_keeps_its_ingress_addresses(void **state)
{
    CLEANUP(json_free) struct json *old = service("{\"type\":\"LoadBalancer\"," P "}");
    CLEANUP(json_free)
    struct json *in = parse("{\"ingress\":[{\"ip\":\"172.29.0.1\"}]}");
    json_set(json_get(old, "status"), "loadBalancer", json_clone(in));
    CLEANUP(json_free) struct json *obj = json_clone(old);
    settle(kind("svc"), obj, old);
    assert_true(json_equal(json_path(obj, "status", "loadBalancer", NULL), in));
    json_set_string(json_get(obj, "spec"), "type", "ClusterIP");
    settle(kind("svc"), obj, old);
    assert_int_equal(json_count(json_path(obj, "status", "loadBalancer", NULL)), 0);
}

/* ---- endpoints ---- */

static const struct {
    const char *kind, *text, *field, *reason, *says;
} bad_endpoints[] = {
    {"ep", "{" META ",\"subsets\":{}}", "subsets", T, "array"},
    {"ep", "{" META ",\"subsets\":[{}]}", "subsets[0]", R, "must specify `addresses`"},
    {"ep", "{" META ",\"subsets\":[{\"addresses\":[{}]}]}", "subsets[0].addresses[0].ip", R, NULL},
    {"ep", "{" META ",\"subsets\":[{\"notReadyAddresses\":[{\"ip\":\"127.0.0.1\"}]}]}",
     "subsets[0].notReadyAddresses[0].ip", I, "loopback"},
    {"ep", "{" META ",\"subsets\":[{\"addresses\":[{\"ip\":\"10.0.0.1\",\"hostname\":\"a.b\"}]}]}",
     "subsets[0].addresses[0].hostname", I, NULL},
    {"ep",
     "{" META ",\"subsets\":[{\"addresses\":[{\"ip\":\"10.0.0.1\"}],\"ports\":[{\"port\":0}]}]}",
     "subsets[0].ports[0].port", I, NULL},
    {"ep",
     "{" META ",\"subsets\":[{\"addresses\":[{\"ip\":\"10.0.0.1\"}],\"ports\":[{\"port\":1},{"
     "\"port\":2}]}]}",
     "subsets[0].ports[1].name", R, NULL},
    {"endpointslices", "{" META ",\"endpoints\":[]}", "addressType", R, NULL},
    {"endpointslices", "{" META ",\"addressType\":\"IPX\",\"endpoints\":[]}", "addressType", N,
     "FQDN"},
    {"endpointslices", "{" META ",\"addressType\":\"IPv4\",\"endpoints\":[{}]}",
     "endpoints[0].addresses", R, NULL},
    {"endpointslices",
     "{" META ",\"addressType\":\"IPv4\",\"endpoints\":[{\"addresses\":[\"2001:db8::1\"]}]}",
     "endpoints[0].addresses[0]", I, "IPv4"},
    {"endpointslices",
     "{" META ",\"addressType\":\"IPv6\",\"endpoints\":[{\"addresses\":[\"10.0.0.1\"]}]}",
     "endpoints[0].addresses[0]", I, "IPv6"},
    {"endpointslices",
     "{" META ",\"addressType\":\"FQDN\",\"endpoints\":[{\"addresses\":[\"a_b\"]}]}",
     "endpoints[0].addresses[0]", I, NULL},
    {"endpointslices",
     "{" META ",\"addressType\":\"IPv4\",\"endpoints\":[],\"ports\":[{\"name\":\"a\"},{\"name\":"
     "\"a\"}]}",
     "ports[1].name", D, NULL},
    {"endpointslices", "{" META ",\"addressType\":\"IPv4\",\"endpoints\":[],\"ports\":[{},{}]}",
     "ports[1].name", D, NULL},
    {"endpointslices",
     "{" META ",\"addressType\":\"IPv4\",\"endpoints\":[],\"ports\":[{\"port\":70000}]}",
     "ports[0].port", I, NULL},
};

static void each_wrong_field_of_endpoints_is_named(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(bad_endpoints); i++) {
        const struct api_kind *k = kind(bad_endpoints[i].kind);
        CLEANUP(json_free) struct json *obj = parse(bad_endpoints[i].text);
        CLEANUP(api_causes_done) struct api_causes c = {0};
        settle(k, obj, NULL);
        validate(k, obj, NULL, &c);
        expect_cause(&c, bad_endpoints[i].text, bad_endpoints[i].field, bad_endpoints[i].reason,
                     bad_endpoints[i].says);
    }
}

static void good_endpoints_pass(void **state)
{
    static const struct {
        const char *kind, *text;
    } rows[] = {
        {"ep", "{" META "}"},
        {"ep", "{" META ",\"subsets\":[]}"},
        {"ep",
         "{" META
         ",\"subsets\":[{\"addresses\":[{\"ip\":\"10.0.0.1\",\"hostname\":\"a\"}],\"ports\":[{"
         "\"port\":1,\"name\":\"a\"},{\"port\":65535,\"name\":\"b\"}]},{\"notReadyAddresses\":[{"
         "\"ip\":"
         "\"10.0.0.2\"}],\"ports\":[{\"port\":1}]}]}"},
        {"endpointslices",
         "{" META ",\"addressType\":\"IPv4\",\"endpoints\":[{\"addresses\":[\"10.0.0.1\"]}],"
         "\"ports\":[{\"name\":\"a\",\"port\":1},{\"name\":\"b\",\"port\":65535}]}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct api_kind *k = kind(rows[i].kind);
        CLEANUP(json_free) struct json *obj = parse(rows[i].text);
        CLEANUP(api_causes_done) struct api_causes c = {0};
        settle(k, obj, NULL);
        validate(k, obj, NULL, &c);
        if (c.n) {
            fail_msg("%s: %s: %s", rows[i].text, c.list[0].field, c.list[0].message);
        }
    }
}

static void the_type_of_a_slice_stays(void **state)
{
    const struct api_kind *k = kind("endpointslices");
    CLEANUP(json_free)
    struct json *old = parse("{" META ",\"addressType\":\"IPv4\",\"endpoints\":[]}");
    CLEANUP(json_free) struct json *obj = json_clone(old);
    CLEANUP(api_causes_done) struct api_causes c = {0};
    json_set_string(obj, "addressType", "IPv6");
    validate(k, obj, old, &c);
    expect_cause(&c, "another type", "addressType", I, "immutable");
}

/* ---- tables ---- */

static void expect_cells(const char *alias, const char *text, const char *want)
{
    const struct api_kind *k = kind(alias);
    CLEANUP(json_free) struct json *obj = parse(text);
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    for (size_t i = 0; i < k->n_columns; i++) {
        CLEANUP(json_free) struct json *cell = api_column_cell(&k->columns[i], obj, 0);
        strbuf_addf(&out, "%s%s", i ? "|" : "", json_get_string(cell));
    }
    assert_string_equal(strbuf_cstr(&out), want);
}

static void cells_show_what_kubectl_users_expect(void **state)
{
    expect_cells("svc", "{}", "||<none>|<none>|<none>|<unknown>|<none>");
    expect_cells("svc",
                 "{" META ",\"spec\":{\"type\":\"NodePort\",\"clusterIP\":\"172.30.0.9\","
                 "\"externalIPs\":[\"80.11.12.10\"],\"ports\":[{\"port\":80,\"nodePort\":30001,"
                 "\"protocol\":\"TCP\"},{\"port\":53,\"protocol\":\"UDP\"}],\"selector\":{\"b\":"
                 "\"c\",\"a\":\"d\"}}}",
                 "web|NodePort|172.30.0.9|80.11.12.10|80:30001/TCP,53/UDP|<unknown>|a=d,b=c");
    expect_cells("svc",
                 "{\"spec\":{\"type\":\"LoadBalancer\",\"externalIPs\":[\"80.11.12.10\"]},"
                 "\"status\":{\"loadBalancer\":{\"ingress\":[{\"ip\":\"172.29.0.1\"},{\"hostname\":"
                 "\"lb.example\"}]}}}",
                 "|LoadBalancer|<none>|172.29.0.1,lb.example,80.11.12.10|<none>|<unknown>|<none>");
    expect_cells("svc", "{\"spec\":{\"type\":\"LoadBalancer\"}}",
                 "|LoadBalancer|<none>|<pending>|<none>|<unknown>|<none>");
    expect_cells("svc", "{\"spec\":{\"type\":\"ExternalName\",\"externalName\":\"a.example\"}}",
                 "|ExternalName|<none>|a.example|<none>|<unknown>|<none>");
    expect_cells("ep", "{}", "|<none>|<unknown>");
    expect_cells("ep",
                 "{\"subsets\":[{\"addresses\":[{\"ip\":\"10.0.0.1\"},{\"ip\":\"2001:db8::1\"}],"
                 "\"ports\":[{\"port\":80},{\"port\":81}]}]}",
                 "|10.0.0.1:80,[2001:db8::1]:80,10.0.0.1:81 + 1 more...|<unknown>");
    expect_cells("ep", "{\"subsets\":[{\"addresses\":[{\"ip\":\"10.0.0.1\"}]}]}",
                 "|10.0.0.1|<unknown>");
    expect_cells("endpointslices", "{}", "||<unset>|<unset>|<unknown>");
    expect_cells("endpointslices",
                 "{\"addressType\":\"IPv4\",\"ports\":[{\"port\":80},{}],\"endpoints\":[{"
                 "\"addresses\":[\"10.0.0.1\"]},{\"addresses\":[\"10.0.0.2\"]},{\"addresses\":["
                 "\"10.0.0.3\"]},{\"addresses\":[\"10.0.0.4\"]}]}",
                 "|IPv4|80,*|10.0.0.1,10.0.0.2,10.0.0.3 + 1 more...|<unknown>");
}

/* ---- protobuf ---- */

static void put_text(struct strbuf *b, uint32_t number, const char *s)
{
    pb_put_bytes(b, number, s, strlen(s));
}

/* As client-go writes it: what is not a pointer is there, empty or not. */
static void put_port(struct strbuf *b, const char *name, uint64_t port, uint64_t target,
                     const char *target_name)
{
    size_t mark = pb_begin(b, 1);
    put_text(b, 1, name);
    put_text(b, 2, "TCP");
    pb_put_uint(b, 3, port);
    size_t inner = pb_begin(b, 4);
    pb_put_uint(b, 1, *target_name ? 1 : 0);
    pb_put_uint(b, 2, target);
    put_text(b, 3, target_name);
    pb_end(b, inner);
    pb_put_uint(b, 5, 0);
    pb_end(b, mark);
}

static void put_service(struct strbuf *b)
{
    strbuf_add(b, "k8s\0", 4);
    size_t type = pb_begin(b, 1);
    put_text(b, 1, "v1");
    put_text(b, 2, "Service");
    pb_end(b, type);
    size_t raw = pb_begin(b, 2);
    size_t meta = pb_begin(b, 1);
    put_text(b, 1, "w");
    pb_end(b, meta);
    size_t spec = pb_begin(b, 2);
    put_port(b, "h", 80, 0, "x");
    put_port(b, "", 81, 8081, "");
    size_t entry = pb_begin(b, 2);
    put_text(b, 1, "a");
    put_text(b, 2, "b");
    pb_end(b, entry);
    put_text(b, 3, "");
    put_text(b, 4, "ClusterIP");
    pb_end(b, spec);
    size_t status = pb_begin(b, 3);
    pb_end(b, status);
    pb_end(b, raw);
    put_text(b, 3, "");
    put_text(b, 4, "");
}

static void a_service_is_read_from_protobuf(void **state)
{
    CLEANUP_STRBUF struct strbuf bytes = STRBUF_INIT;
    put_service(&bytes);
    struct err e = {0};
    struct json *got = NULL;
    if (api_proto_decode(bytes.data, bytes.size, NULL, &got, NULL, &e) < 0) {
        fail_msg("%s", e.text);
    }
    CLEANUP(json_free)
    struct json *want =
        parse("{\"apiVersion\":\"v1\",\"kind\":\"Service\",\"metadata\":{\"name\":\"w\"},\"spec\":{"
              "\"ports\":[{\"name\":\"h\",\"protocol\":\"TCP\",\"port\":80,\"targetPort\":\"x\""
              "},{\"protocol\":\"TCP\",\"port\":81,\"targetPort\":8081}],\"selector\":{\"a\":"
              "\"b\"},\"type\":\"ClusterIP\"},\"status\":{}}");
    CLEANUP_FREE char *text = json_to_text(got);
    if (!json_equal(got, want)) {
        fail_msg("%s", text);
    }
    json_free(got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_left_out_is_filled_in),
        cmocka_unit_test(each_wrong_field_of_a_service_is_named),
        cmocka_unit_test(service_names_are_labels_of_63_characters_that_begin_with_a_letter),
        cmocka_unit_test(addresses_and_ports_stay_when_a_writer_leaves_them_out),
        cmocka_unit_test(a_change_of_type_drops_what_the_new_one_does_not_have),
        cmocka_unit_test(what_was_allocated_cannot_be_changed),
        cmocka_unit_test(only_a_load_balancer_keeps_its_ingress_addresses),
        cmocka_unit_test(each_wrong_field_of_endpoints_is_named),
        cmocka_unit_test(good_endpoints_pass),
        cmocka_unit_test(the_type_of_a_slice_stays),
        cmocka_unit_test(cells_show_what_kubectl_users_expect),
        cmocka_unit_test(a_service_is_read_from_protobuf),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
