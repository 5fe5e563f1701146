/* SPDX-License-Identifier: Apache-2.0 */
#include "sdn/host_ports.h"

#include "base/mem.h"
#include "sdn/model.h"
#include "sdn/pipeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define NODE 0xc0000201u   /* 192.0.2.1 */
#define SECOND 0xc6336401u /* 198.51.100.1 */
#define POD 0x0a800005u    /* 10.128.0.5 */

static const struct ip4_prefix subnet = {0x0a800000, 23};

static struct sdn_network network(void)
{
    return (struct sdn_network){.plugin = SDN_MULTITENANT,
                                .cluster = {{0x0a800000, 14}},
                                .n_cluster = 1,
                                .service = {0xac1e0000, 16},
                                .local = subnet,
                                .host_ip = NODE,
                                .addresses = {{SECOND}, 1},
                                .vxlan_port = 4789};
}

static void assert_parsed(const char *text, const char *want)
{
    CLEANUP_FREE struct sdn_host_port *list = NULL;
    size_t n = sdn_host_ports_parse(text, subnet, &list);
    CLEANUP_FREE char *again = sdn_host_ports_text(list, n);
    assert_string_equal(again ? again : "", want);
}

static void text_of_host_ports_is_read_strictly(void **state)
{
    const char *good =
        "tcp:8080=10.128.0.5:80,udp:192.0.2.1:53=10.128.0.6:5353,sctp:9=10.128.0.5:9";
    assert_parsed(good, good);
    assert_parsed(NULL, "");
    assert_parsed("", "");
    static const char *const bad[] = {
        "tcp", "tcp:", "tcp:80", "tcp:80=", "tcp:80=10.128.0.5",
        "tcp:80=10.128.0.5:", "tcp:=10.128.0.5:80", "tcp:0=10.128.0.5:80", "tcp:80=10.128.0.5:0",
        "tcp:65536=10.128.0.5:80", "tcp:80=10.128.0.5:65536", "icmp:80=10.128.0.5:80",
        "80=10.128.0.5:80", "tcp=80:10.128.0.5:80", "tcp:x:80=10.128.0.5:80",
        "tcp:80=10.128.0.5:80x", "tcp: 80=10.128.0.5:80",
        /* Of another node's subnet, or the gateway's. */
        "tcp:80=10.128.2.5:80", "tcp:80=10.128.0.1:80", "tcp:80=192.0.2.9:80"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_parsed(bad[i], "");
        CLEANUP_FREE char *both = xasprintf("%s,udp:1=10.128.0.9:2", bad[i]);
        assert_parsed(both, "udp:1=10.128.0.9:2");
    }
}

static void of_ports_that_overlap_the_first_counts(void **state)
{
    assert_parsed("tcp:80=10.128.0.6:1,tcp:80=10.128.0.5:1", "tcp:80=10.128.0.5:1");
    assert_parsed("tcp:192.0.2.1:80=10.128.0.5:1,tcp:80=10.128.0.6:1", "tcp:80=10.128.0.6:1");
    assert_parsed(
        "tcp:192.0.2.1:80=10.128.0.5:1,tcp:192.0.2.2:80=10.128.0.6:1,udp:80=10.128.0.5:1",
        "tcp:192.0.2.1:80=10.128.0.5:1,tcp:192.0.2.2:80=10.128.0.6:1,udp:80=10.128.0.5:1");
}

static void a_node_has_no_more_host_ports_than_its_limit(void **state)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    CLEANUP_FREE struct sdn_host_port *list = NULL;
    for (unsigned i = 1; i <= SDN_MAX_HOST_PORTS + 10; i++) {
        strbuf_addf(&text, "tcp:%u=10.128.0.5:80,", i);
    }
    assert_int_equal(sdn_host_ports_parse(text.data, subnet, &list), SDN_MAX_HOST_PORTS);
}

static void addresses_are_those_that_a_host_can_have(void **state)
{
    const struct sdn_network n = network();
    struct sdn_addresses a;
    sdn_addresses_parse("192.0.2.7,192.0.2.7,10.128.3.4,172.30.0.1,127.0.0.1,169.254.0.1,0.0.0.1,"
                        "224.0.0.1,255.255.255.255,x,,::1,198.51.100.2",
                        &n, &a);
    CLEANUP_FREE char *text = sdn_addresses_text(&a);
    assert_string_equal(text, "192.0.2.7,198.51.100.2");
    sdn_addresses_parse(NULL, &n, &a);
    assert_int_equal(a.n, 0);
    for (uint32_t i = 0; i < SDN_MAX_ADDRESSES; i++) {
        assert_true(sdn_addresses_add(&a, NODE + i));
    }
    assert_false(sdn_addresses_add(&a, NODE + 100));
    assert_int_equal(a.n, SDN_MAX_ADDRESSES);
}

static struct sdn_service *at(uint32_t address, const char *text)
{
    CLEANUP_FREE struct sdn_host_port *list = NULL;
    size_t n = sdn_host_ports_parse(text, subnet, &list);
    return sdn_host_ports_service(address, list, n);
}

static void host_ports_at_an_address_are_a_service(void **state)
{
    const char *text =
        "tcp:8080=10.128.0.5:80,tcp:198.51.100.1:81=10.128.0.6:80,sctp:9=10.128.0.5:9";
    CLEANUP(sdn_service_free) struct sdn_service *s = at(NODE, text);
    assert_int_equal(s->cluster_ip, NODE);
    assert_true(s->host_ports);
    assert_string_equal(s->namespace, "");
    assert_int_equal(s->n_ports, 1); /* SCTP is not translated; the other is at another address. */
    assert_int_equal(s->ports[0].port, 8080);
    assert_int_equal(s->ports[0].n_backends, 1);
    assert_int_equal(s->ports[0].backends[0].endpoint->ip, POD);
    assert_int_equal(s->ports[0].backends[0].port, 80);
    CLEANUP(sdn_service_free) struct sdn_service *other = at(SECOND, text);
    assert_int_equal(other->n_ports, 2);
    assert_false(sdn_service_equal(s, other));
    CLEANUP(sdn_service_free) struct sdn_service *same = at(NODE, text);
    assert_true(sdn_service_equal(s, same));
    CLEANUP(sdn_service_free) struct sdn_service *moved = at(NODE, "tcp:8080=10.128.0.7:80");
    assert_false(sdn_service_equal(s, moved));
    assert_null(at(NODE, "sctp:9=10.128.0.5:9"));
    assert_null(at(NODE, ""));
}

/* What becomes of a TCP packet of the pod at 10.128.0.9, of project 42, to that address and port. */
static struct model_verdict judged(const struct sdn_network *n,
                                   const struct sdn_project_service *list, size_t n_list,
                                   uint32_t to, uint16_t port)
{
    static const struct model_pod pod = {
        .port = 7, .ip = 0x0a800009, .mac = {{0x0a, 0x58, 10, 128, 0, 9}}, .vnid = 42};
    const struct model_node node = {
        .net = n, .pods = &pod, .n_pods = 1, .services = list, .n_services = n_list};
    struct model_packet p = {.entry = MODEL_FROM_PORT,
                             .port = pod.port,
                             .eth_src = pod.mac,
                             .eth_type = MODEL_ETH_IP4,
                             .ip = {.src = pod.ip, .dst = to, .proto = 6, .dst_port = port}};
    p.eth_dst = mac_from_ip4(sdn_gateway(n));
    return model_judge(&node, &p);
}

static void a_host_port_is_for_every_project_to_ask_and_its_pod_to_refuse(void **state)
{
    struct sdn_network n = network();
    CLEANUP(sdn_service_free) struct sdn_service *s = at(NODE, "tcp:8080=10.128.0.5:80");
    const struct sdn_project_service list[] = {{.service = s}};
    for (int by_host = 0; by_host < 2; by_host++) {
        n.service_by_host = by_host;
        assert_int_equal(judged(&n, list, 1, NODE, 8080).action, MODEL_TRANSLATE);
        assert_int_equal(judged(&n, list, 1, NODE, 8081).action, MODEL_HOST);
        /* Neither at the gateway nor at an address that is no node's any more. */
        assert_int_equal(judged(&n, list, 1, sdn_gateway(&n), 8080).action, MODEL_HOST);
        n.host_ip = 0xc0000209;
        assert_int_equal(judged(&n, list, 1, NODE, 8080).action, MODEL_HOST);
        n.host_ip = NODE;
    }
}

static void a_node_port_is_a_services_before_it_is_a_host_port(void **state)
{
    struct sdn_network n = network();
    struct json *obj = NULL;
    struct err e = {0};
    static const char text[] =
        "{\"metadata\":{\"namespace\":\"red\",\"name\":\"web\"},\"spec\":{\"type\":"
        "\"NodePort\",\"clusterIP\":\"172.30.0.9\",\"ports\":[{\"port\":80,\"nodePort\":"
        "8080}]}}";
    assert_int_equal(json_parse(text, sizeof text - 1, &obj, &e), 0);
    CLEANUP(sdn_service_free) struct sdn_service *web = NULL;
    assert_int_equal(sdn_service_parse(obj, &web, &e), 0);
    json_free(obj);
    CLEANUP(sdn_service_free) struct sdn_service *s = at(NODE, "tcp:8080=10.128.0.5:80");
    const struct sdn_project_service list[] = {{.service = web, .vnid = 41}, {.service = s}};
    assert_int_equal(judged(&n, list, 2, NODE, 8080).cause, MODEL_SERVICE_FOREIGN);
    assert_int_equal(judged(&n, list, 2, SECOND, 8080).cause, MODEL_SERVICE_FOREIGN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_of_host_ports_is_read_strictly),
        cmocka_unit_test(of_ports_that_overlap_the_first_counts),
        cmocka_unit_test(a_node_has_no_more_host_ports_than_its_limit),
        cmocka_unit_test(addresses_are_those_that_a_host_can_have),
        cmocka_unit_test(host_ports_at_an_address_are_a_service),
        cmocka_unit_test(a_host_port_is_for_every_project_to_ask_and_its_pod_to_refuse),
        cmocka_unit_test(a_node_port_is_a_services_before_it_is_a_host_port),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
