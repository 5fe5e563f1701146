/* SPDX-License-Identifier: Apache-2.0 */
/* What services are given, over HTTP: addresses and ports, each once, and free again
 * when the service goes. */
#include "harness.h"

#include "apiserver/admission/alloc.h"
#include "base/map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SERVICES "/api/v1/namespaces/default/services"
#define NETWORK "172.30.0.0/28" /* 13 addresses beside the first. */
#define FREE_IPS 13
#define FREE_PORTS 6
#define FREE_INGRESS 2

static int set_up(void **state)
{
    struct service_ranges r;
    service_ranges_defaults(&r);
    assert_int_equal(prefix_parse(NETWORK, &r.services, NULL), 0);
    assert_int_equal(prefix_parse("172.29.0.0/30", &r.ingress, NULL), 0);
    r.last_port = (uint16_t) (r.first_port + FREE_PORTS - 1);
    assert_int_equal(service_external_parse("80.11.0.0/16", &r.external[r.n_external++], NULL), 0);
    struct apiserver_config cfg = {.services = &r};
    *state = harness_new(&cfg, NULL);
    return 0;
}

static int tear_down(void **state)
{
    harness_free(*state);
    return 0;
}

static struct answer create(struct harness *h, const char *name, const char *spec)
{
    CLEANUP_FREE char *body = xasprintf("{\"metadata\":{\"name\":\"%s\"},\"spec\":%s}", name, spec);
    return ask(h, "POST", SERVICES, body);
}

static struct answer create_ok(struct harness *h, const char *name, const char *spec)
{
    struct answer a = create(h, name, spec);
    if (a.status != 201) {
        fail_msg("%s: %s", name, a.text);
    }
    return a;
}

static void delete_ok(struct harness *h, const char *name)
{
    CLEANUP_FREE char *path = xasprintf(SERVICES "/%s", name);
    struct answer a = ask_ok(h, "DELETE", path, NULL, 200);
    answer_done(&a);
}

static struct answer patch(struct harness *h, const char *name, const char *body)
{
    CLEANUP_FREE char *path = xasprintf(SERVICES "/%s", name);
    return ask_full(h, "PATCH", path, NULL, "application/merge-patch+json", body);
}

static void expect_refusal(struct answer a, int status, const char *field, const char *says)
{
    CLEANUP_ANSWER struct answer answer = a;
    const struct json *cause = json_at(json_path(a.body, "details", "causes", NULL), 0);
    if (a.status != status || !streq_null(json_path_string(cause, "field", NULL), field) ||
        !strstr(at(&answer, "message"), says)) {
        fail_msg("%d %s", a.status, a.text);
    }
}

static size_t count(struct harness *h, const char *prefix)
{
    size_t n = 0;
    struct smap_entry *se;
    SMAP_FOREACH (se, &h->api->cache.unknown_keys) {
        n += str_has_prefix(se->key, prefix);
    }
    return n;
}

/* What a service holds, by its spec and status: nobody else gets it. */
static void a_service_claims_what_it_holds(void **state)
{
#define INGRESS(ip) ", 'status': {'loadBalancer': {'ingress': [{'ip': '" ip "'}]}}"
#define LB "'type': 'LoadBalancer', 'clusterIP': '172.30.0.5'"
    static const struct {
        const char *service, *claims;
        bool no_ingress; /* LoadBalancers get no addresses. */
    } cases[] = {
        {"{}", ""},
        {"{'spec': {'clusterIP': '172.30.0.5'}}", "ips/172.30.0.5 "},
        {"{'spec': {'clusterIP': 'None'}}", ""},
        {"{'spec': {'clusterIP': ''}}", ""},
        {"{'spec': {'type': 'ExternalName', 'clusterIP': '172.30.0.5'}}", ""},
        {"{'spec': {'clusterIP': 'None', 'ports': [{'nodePort': 30001}]}}", ""},
        {"{'spec': {'type': 'NodePort', 'clusterIP': '172.30.0.5', 'ports': [{'nodePort': 30001},"
         "{'port': 80}, {'nodePort': 30002}, {'nodePort': 30001}]}}",
         "ips/172.30.0.5 ports/30001 ports/30002 "},
        {"{'spec': {'type': 'NodePort', 'clusterIP': '172.30.0.5', 'ports': [{'nodePort': 0},"
         "{'nodePort': -1}, {'nodePort': 65535}, {'nodePort': 65536}, {'nodePort': 'x'},"
         "{'nodePort': 1}]}}",
         "ips/172.30.0.5 ports/65535 ports/1 "},
        {"{'spec': {" LB "}" INGRESS("172.29.0.2") "}", "ips/172.30.0.5 ingress/172.29.0.2 "},
        {"{'spec': {" LB "}" INGRESS("172.29.0.2") "}", "ips/172.30.0.5 ", .no_ingress = true},
        {"{'spec': {" LB "}" INGRESS("172.28.0.2") "}", "ips/172.30.0.5 "},
        {"{'spec': {" LB "}" INGRESS("x") "}", "ips/172.30.0.5 "},
        {"{'spec': {" LB "}, 'status': {'loadBalancer': {'ingress': [{'hostname': 'h'}]}}}",
         "ips/172.30.0.5 "},
        {"{'spec': {'clusterIP': '172.30.0.5'}" INGRESS("172.29.0.2") "}", "ips/172.30.0.5 "},
        {"{'spec': {" LB ", 'externalTrafficPolicy': 'Local', 'healthCheckNodePort': 30005}}",
         "ips/172.30.0.5 ports/30005 "},
        {"{'spec': {" LB ", 'externalTrafficPolicy': 'Cluster', 'healthCheckNodePort': 30005}}",
         "ips/172.30.0.5 "},
        {"{'spec': {'clusterIP': '172.30.0.5', 'externalTrafficPolicy': 'Local',"
         "'healthCheckNodePort': 30005}}",
         "ips/172.30.0.5 "},
    };
    struct service_ranges r;
    service_ranges_defaults(&r);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *o = json_of(cases[i].service);
        CLEANUP_STRBUF struct strbuf got = STRBUF_INIT;
        r.has_ingress = !cases[i].no_ingress;
        char **claims = claims_of(&r, o);
        for (size_t k = 0; claims[k]; k++) {
            assert_true(str_has_prefix(claims[k], CLAIM_PREFIX));
            strbuf_addf(&got, "%s ", claims[k] + sizeof CLAIM_PREFIX - 1);
            free(claims[k]);
        }
        free(claims);
        if (!streq(strbuf_cstr(&got), cases[i].claims)) {
            fail_msg("%s: %s, not %s", cases[i].service, strbuf_cstr(&got), cases[i].claims);
        }
    }
}

#define PORTS "\"ports\":[{\"port\":80}]"

static void an_address_is_chosen_from_the_network(void **state)
{
    struct harness *h = *state;
    struct ip4_prefix net;
    uint32_t ip;
    assert_int_equal(prefix_parse(NETWORK, &net, NULL), 0);
    CLEANUP_ANSWER struct answer a = create_ok(h, "a", "{" PORTS "}");
    assert_int_equal(ip4_parse(at(&a, "spec.clusterIP"), &ip), 0);
    assert_true(prefix_contains(net, ip) && ip != net.addr + 1);
    const struct json *ips = json_path(a.body, "spec", "clusterIPs", NULL);
    assert_int_equal(json_count(ips), 1);
    assert_string_equal(json_get_string(json_at(ips, 0)), at(&a, "spec.clusterIP"));
    CLEANUP_ANSWER struct answer headless =
        create_ok(h, "headless", "{\"clusterIP\":\"None\"," PORTS "}");
    assert_string_equal(at(&headless, "spec.clusterIP"), "None");
    CLEANUP_ANSWER struct answer name =
        create_ok(h, "name", "{\"type\":\"ExternalName\",\"externalName\":\"a.example\"}");
    assert_string_equal(at(&name, "spec.clusterIP"), "");
    assert_int_equal(count(h, CLAIM_PREFIX), 1);
}

static void an_address_can_be_asked_for_once(void **state)
{
    struct harness *h = *state;
    CLEANUP_ANSWER struct answer a = create_ok(h, "a", "{\"clusterIP\":\"172.30.0.5\"," PORTS "}");
    expect_refusal(create(h, "b", "{\"clusterIP\":\"172.30.0.5\"," PORTS "}"), 422,
                   "spec.clusterIPs",
                   "failed to allocate IP 172.30.0.5: provided IP is already allocated");
    expect_refusal(create(h, "b", "{\"clusterIP\":\"10.0.0.5\"," PORTS "}"), 422, "spec.clusterIPs",
                   "the provided IP (10.0.0.5) is not in the valid range. The range of valid IPs "
                   "is " NETWORK);
    expect_refusal(create(h, "b", "{\"clusterIP\":\"172.30.0.0\"," PORTS "}"), 422,
                   "spec.clusterIPs", "not in the valid range");
    expect_refusal(create(h, "b", "{\"clusterIP\":\"172.30.0.15\"," PORTS "}"), 422,
                   "spec.clusterIPs", "not in the valid range");
    delete_ok(h, "a");
    CLEANUP_ANSWER struct answer b = create_ok(h, "b", "{\"portalIP\":\"172.30.0.5\"," PORTS "}");
    assert_string_equal(at(&b, "spec.clusterIP"), "172.30.0.5");
}

static void the_first_address_is_for_the_api(void **state)
{
    struct harness *h = *state;
    expect_refusal(create(h, "a", "{\"clusterIP\":\"172.30.0.1\"," PORTS "}"), 422,
                   "spec.clusterIPs", "already allocated");
    CLEANUP_ANSWER struct answer a =
        create_ok(h, "kubernetes", "{\"clusterIP\":\"172.30.0.1\"," PORTS "}");
    delete_ok(h, "kubernetes");
    CLEANUP_ANSWER struct answer again =
        create_ok(h, "kubernetes", "{\"clusterIP\":\"172.30.0.1\"," PORTS "}");
}

static void a_full_network_says_so_and_what_goes_is_free(void **state)
{
    struct harness *h = *state;
    struct smap seen;
    smap_init(&seen, NULL);
    for (unsigned i = 0; i < FREE_IPS; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%u", i);
        CLEANUP_ANSWER struct answer a = create_ok(h, name, "{" PORTS "}");
        assert_null(smap_get(&seen, at(&a, "spec.clusterIP")));
        smap_set(&seen, at(&a, "spec.clusterIP"), h);
    }
    smap_done(&seen);
    expect_refusal(create(h, "more", "{" PORTS "}"), 500, "spec.clusterIP", "range is full");
    delete_ok(h, "s3");
    CLEANUP_ANSWER struct answer more = create_ok(h, "more", "{" PORTS "}");
    CLEANUP_ANSWER struct answer gone =
        patch(h, "s4", "{\"spec\":{\"type\":\"ExternalName\",\"externalName\":\"a.b\"}}");
    assert_int_equal(gone.status, 200);
    CLEANUP_ANSWER struct answer next = create_ok(h, "next", "{" PORTS "}");
    expect_refusal(patch(h, "s4", "{\"spec\":{\"type\":\"ClusterIP\",\"externalName\":null}}"), 500,
                   "spec.clusterIP", "range is full");
    CLEANUP_ANSWER struct answer all = ask_ok(h, "DELETE", SERVICES, NULL, 200);
    assert_int_equal(count(h, CLAIM_PREFIX), 0);
}

static void node_ports_come_and_go_with_the_type(void **state)
{
    struct harness *h = *state;
    CLEANUP_ANSWER struct answer a = create_ok(
        h, "a",
        "{\"type\":\"NodePort\",\"ports\":[{\"name\":\"a\",\"port\":53,\"protocol\":\"UDP\"},{"
        "\"name\":\"b\",\"port\":53},{\"name\":\"c\",\"port\":80,\"nodePort\":30002}]}");
    const struct json *ports = json_path(a.body, "spec", "ports", NULL);
    int64_t first = json_get_int_or(json_get(json_at(ports, 0), "nodePort"), 0);
    assert_true(first >= 30000 && first < 30000 + FREE_PORTS && first != 30002);
    /* One number, of both protocols. */
    assert_int_equal(json_get_int_or(json_get(json_at(ports, 1), "nodePort"), 0), first);
    assert_int_equal(count(h, CLAIM_PREFIX "ports/"), 2);
    expect_refusal(
        create(h, "b", "{\"type\":\"NodePort\",\"ports\":[{\"port\":80,\"nodePort\":30002}]}"), 422,
        "spec.ports[0].nodePort", "provided port is already allocated");
    expect_refusal(
        create(h, "b", "{\"type\":\"NodePort\",\"ports\":[{\"port\":80,\"nodePort\":29999}]}"), 422,
        "spec.ports[0].nodePort", "The range of valid ports is 30000-30005");
    assert_int_equal(count(h, CLAIM_PREFIX), 3);
    CLEANUP_ANSWER struct answer plain = patch(h, "a", "{\"spec\":{\"type\":\"ClusterIP\"}}");
    assert_int_equal(plain.status, 200);
    assert_int_equal(count(h, CLAIM_PREFIX "ports/"), 0);
    CLEANUP_ANSWER struct answer back = patch(h, "a", "{\"spec\":{\"type\":\"NodePort\"}}");
    assert_int_equal(count(h, CLAIM_PREFIX "ports/"), 2);
    assert_string_equal(at(&back, "spec.clusterIP"), at(&a, "spec.clusterIP"));
}

static void a_load_balancer_gets_an_ingress_address_or_waits(void **state)
{
    struct harness *h = *state;
    const char *spec =
        "{\"type\":\"LoadBalancer\",\"allocateLoadBalancerNodePorts\":false," PORTS "}";
    CLEANUP_ANSWER struct answer a = create_ok(h, "a", spec);
    CLEANUP_ANSWER struct answer b = create_ok(
        h, "b",
        "{\"type\":\"LoadBalancer\",\"externalTrafficPolicy\":\"Local\",\"loadBalancerIP\":"
        "\"172.29.0.1\"," PORTS "}");
    CLEANUP_ANSWER struct answer c = create_ok(h, "c", spec);
    const struct json *list = json_path(a.body, "status", "loadBalancer", "ingress", NULL);
    assert_int_equal(json_count(list), 1);
    list = json_path(b.body, "status", "loadBalancer", "ingress", NULL);
    assert_int_equal(json_count(list), 1);
    list = json_path(c.body, "status", "loadBalancer", "ingress", NULL);
    assert_int_equal(json_count(list), 0);
    assert_true(json_get_int_or(json_path(b.body, "spec", "healthCheckNodePort", NULL), 0) >=
                30000);
    assert_int_equal(count(h, CLAIM_PREFIX "ingress/"), 2);
    assert_int_equal(count(h, CLAIM_PREFIX "ports/"), 2);
    delete_ok(h, "a");
    /* Any update of one that waits gives it one that is free. */
    CLEANUP_ANSWER struct answer now = patch(h, "c", "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}");
    list = json_path(now.body, "status", "loadBalancer", "ingress", NULL);
    assert_int_equal(json_count(list), 1);
    CLEANUP_ANSWER struct answer plain = patch(h, "b", "{\"spec\":{\"type\":\"ClusterIP\"}}");
    assert_int_equal(plain.status, 200);
    assert_int_equal(count(h, CLAIM_PREFIX "ingress/"), 1);
    assert_int_equal(count(h, CLAIM_PREFIX "ports/"), 0);
}

static void external_addresses_must_be_allowed(void **state)
{
    struct harness *h = *state;
    CLEANUP_ANSWER struct answer a =
        create_ok(h, "a", "{\"externalIPs\":[\"80.11.12.10\"]," PORTS "}");
    expect_refusal(create(h, "b", "{\"externalIPs\":[\"80.11.12.10\",\"81.0.0.1\"]," PORTS "}"),
                   422, "spec.externalIPs[1]", "81.0.0.1 is not within");
    expect_refusal(patch(h, "a", "{\"spec\":{\"externalIPs\":[\"2001:db8::1\"]}}"), 422,
                   "spec.externalIPs[0]", "is not allowed");
}

static void stored(void *ctx, int error, uint64_t revision)
{
    assert_int_equal(error, 0);
    *(bool *) ctx = true;
}

static void put_raw(struct harness *h, const char *key, const char *text)
{
    bool done = false;
    CLEANUP(blob_unref) struct blob *b = blob_new(text, strlen(text));
    store_put(h->store, key, b, STORE_ANY, stored, &done);
    assert_int_equal(loop_run_until(h->loop, &done, 10000), 0);
}

/* A master with other networkConfig.externalIPNetworkCIDRs wrote the service. */
static void external_addresses_that_a_service_has_already_may_stay(void **state)
{
    struct harness *h = *state;
    static const char old[] =
        "{\"apiVersion\":\"v1\",\"kind\":\"Service\",\"metadata\":{\"name\":\"old\","
        "\"namespace\":\"default\",\"uid\":\"u1\"},\"spec\":{\"type\":\"ClusterIP\","
        "\"clusterIP\":\"172.30.0.9\",\"externalIPs\":[\"81.0.0.1\"]," PORTS "}}";
    const struct cache_kind *ck = cache_find(&h->api->cache, api_kind_find("", "v1", "services"));
    CLEANUP_FREE char *key = cache_store_key(ck, "default/old");
    put_raw(h, key, old);
    CLEANUP_ANSWER struct answer same =
        patch(h, "old", "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}");
    assert_int_equal(same.status, 200);
    CLEANUP_ANSWER struct answer more =
        patch(h, "old", "{\"spec\":{\"externalIPs\":[\"80.11.12.10\",\"81.0.0.1\"]}}");
    assert_int_equal(more.status, 200);
    expect_refusal(patch(h, "old", "{\"spec\":{\"externalIPs\":[\"81.0.0.1\",\"81.0.0.2\"]}}"), 422,
                   "spec.externalIPs[1]", "81.0.0.2 is not within");
}

static void what_is_not_stored_takes_nothing(void **state)
{
    struct harness *h = *state;
    for (unsigned i = 0; i < 2 * FREE_IPS; i++) {
        CLEANUP_ANSWER struct answer a = ask_ok(
            h, "POST", SERVICES "?dryRun=All",
            "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"type\":\"NodePort\"," PORTS "}}", 201);
        assert_string_not_equal(at(&a, "spec.clusterIP"), "");
        CLEANUP_ANSWER struct answer bad =
            create(h, "b", "{\"type\":\"NodePort\",\"ports\":[{\"port\":1,\"nodePort\":1}]}");
        assert_int_equal(bad.status, 422);
    }
    CLEANUP_ANSWER struct answer first = create_ok(h, "a", "{" PORTS "}");
    for (unsigned i = 0; i < 2 * FREE_IPS; i++) {
        CLEANUP_ANSWER struct answer again = create(h, "a", "{" PORTS "}");
        assert_int_equal(again.status, 409);
    }
    for (unsigned i = 1; i < FREE_IPS; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%u", i);
        CLEANUP_ANSWER struct answer a = create_ok(h, name, "{" PORTS "}");
    }
}

/* As when another server was faster, and its claim was not seen yet. */
static void a_claim_that_another_has_made_leads_to_another_attempt(void **state)
{
    struct harness *h = *state;
    for (unsigned i = 1; i < FREE_IPS; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%u", i);
        CLEANUP_ANSWER struct answer a = create_ok(h, name, "{" PORTS "}");
    }
    for (unsigned i = 0; i < 20; i++) {
        struct smap_entry *se;
        SMAP_FOREACH (se, &h->api->cache.unknown_keys) {
            alloc_changed(h->api->alloc, se->key, false);
        }
        CLEANUP_ANSWER struct answer a = create_ok(h, "last", "{" PORTS "}");
        assert_string_equal(at(&a, "metadata.name"), "last");
        assert_int_equal(count(h, CLAIM_PREFIX), FREE_IPS);
        delete_ok(h, "last");
    }
    /* Asked for, it is refused when that has come to light. */
    CLEANUP_ANSWER struct answer s1 = ask_ok(h, "GET", SERVICES "/s1", NULL, 200);
    CLEANUP_FREE char *key = xasprintf(CLAIM_PREFIX "ips/%s", at(&s1, "spec.clusterIP"));
    CLEANUP_FREE char *spec =
        xasprintf("{\"clusterIP\":\"%s\"," PORTS "}", at(&s1, "spec.clusterIP"));
    alloc_changed(h->api->alloc, key, false);
    expect_refusal(create(h, "other", spec), 422, "spec.clusterIPs", "already allocated");
}

/* ---- repair ---- */

/* Until the condition holds that the loop brings about. */
static bool turn(struct harness *h, uint64_t *left)
{
    static const bool never = false;
    (void) loop_run_until(h->loop, &never, 10);
    return --*left > 0;
}

static void claims_are_made_to_agree_with_the_services(void **state)
{
    struct harness *h = *state;
    CLEANUP_ANSWER struct answer a = create_ok(h, "a", "{\"clusterIP\":\"172.30.0.3\"," PORTS "}");
    put_raw(h, "/registry/services/default/raw",
            "{\"kind\":\"Service\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"raw\","
            "\"namespace\":\"default\"},\"spec\":{\"type\":\"NodePort\",\"clusterIP\":"
            "\"172.30.0.9\",\"ports\":[{\"port\":80,\"nodePort\":30001}]}}");
    put_raw(h, "/registry/services/default/twice",
            "{\"kind\":\"Service\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"twice\","
            "\"namespace\":\"default\"},\"spec\":{\"clusterIP\":\"172.30.0.3\",\"ports\":[{"
            "\"port\":80}]}}");
    put_raw(h, CLAIM_PREFIX "ips/172.30.0.8", "{\"service\":\"default/gone\"}");
    put_raw(h, CLAIM_PREFIX "ips/172.30.0.7", "{\"service\":\"default/a\"}");
    put_raw(h, CLAIM_PREFIX "ips/172.30.0.6", "?");
    alloc_reload(h->api->alloc);
    uint64_t left = 1000;
    while (cache_unknown_value(&h->api->cache, CLAIM_PREFIX "ips/172.30.0.8", NULL) ||
           cache_unknown_value(&h->api->cache, CLAIM_PREFIX "ips/172.30.0.7", NULL) ||
           cache_unknown_value(&h->api->cache, CLAIM_PREFIX "ips/172.30.0.6", NULL) ||
           !cache_unknown_value(&h->api->cache, CLAIM_PREFIX "ips/172.30.0.9", NULL) ||
           !cache_unknown_value(&h->api->cache, CLAIM_PREFIX "ports/30001", NULL)) {
        assert_true(turn(h, &left));
    }
    expect_refusal(create(h, "b", "{\"clusterIP\":\"172.30.0.9\"," PORTS "}"), 422,
                   "spec.clusterIPs", "already allocated");
    /* One address of two services stays with the one that has the claim. */
    delete_ok(h, "twice");
    expect_refusal(create(h, "b", "{\"clusterIP\":\"172.30.0.3\"," PORTS "}"), 422,
                   "spec.clusterIPs", "already allocated");
    delete_ok(h, "a");
    delete_ok(h, "raw");
    assert_int_equal(count(h, CLAIM_PREFIX), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_service_claims_what_it_holds),
        T(an_address_is_chosen_from_the_network),
        T(an_address_can_be_asked_for_once),
        T(the_first_address_is_for_the_api),
        T(a_full_network_says_so_and_what_goes_is_free),
        T(node_ports_come_and_go_with_the_type),
        T(a_load_balancer_gets_an_ingress_address_or_waits),
        T(external_addresses_must_be_allowed),
        T(external_addresses_that_a_service_has_already_may_stay),
        T(what_is_not_stored_takes_nothing),
        T(a_claim_that_another_has_made_leads_to_another_attempt),
        T(claims_are_made_to_agree_with_the_services),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
