/* SPDX-License-Identifier: Apache-2.0 */
/* The model of what may reach what, case by case, and over whole clusters.
 *
 * The node of the cases is 192.168.100.1 with 10.128.0.0/23; node2 and node3 are remotes, node3 with the fixed
 * VNID 7; node4 has no subnet yet, and node5 claims this node's. */
#include "base/str.h"
#include "sdn/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define IP(a, b, c, d) \
    ((uint32_t) (a) << 24 | (uint32_t) (b) << 16 | (uint32_t) (c) << 8 | (uint32_t) (d))
#define NODE(i) IP(192, 168, 100, i)
#define GATEWAY IP(10, 128, 0, 1)
#define POD(i) IP(10, 128, 0, 2 + (i))
#define PORT(i) (11 + (uint32_t) (i))
#define MAC(ip)                                                                        \
    {                                                                                  \
        {                                                                              \
            0x0a, 0x58, (ip) >> 24 & 255, (ip) >> 16 & 255, (ip) >> 8 & 255, (ip) &255 \
        }                                                                              \
    }
#define OUTSIDE IP(8, 8, 8, 8)
#define SERVICE IP(172, 30, 0, 1)
#define ON_NODE2 IP(10, 128, 2, 9)
#define ON_NODE3 IP(10, 128, 4, 9)
#define NOBODYS IP(10, 131, 0, 9)

static struct sdn_remote remotes[] = {
    {.host_ip = NODE(2), .subnet = {IP(10, 128, 2, 0), 23}},
    {.host_ip = NODE(3),
     .subnet = {IP(10, 128, 4, 0), 23},
     .has_fixed_vnid = true,
     .fixed_vnid = 7},
    {.host_ip = NODE(4)},
    {.host_ip = NODE(5), .subnet = {IP(10, 128, 0, 0), 22}},
};
static const struct model_pod pods[] = {
    {.port = PORT(0), .ip = POD(0), .mac = MAC(POD(0)), .vnid = 42},
    {.port = PORT(1), .ip = POD(1), .mac = MAC(POD(1)), .vnid = 42},
    {.port = PORT(2), .ip = POD(2), .mac = MAC(POD(2)), .vnid = 43},
    {.port = PORT(3), .ip = POD(3), .mac = MAC(POD(3)), .vnid = 0},
};
#define N_PODS ARRAY_SIZE(pods)

static struct sdn_network network_with(enum sdn_plugin plugin)
{
    return (struct sdn_network){
        .plugin = plugin,
        .cluster = {{IP(10, 128, 0, 0), 14}, {IP(100, 64, 0, 0), 16}},
        .n_cluster = 2,
        .service = {IP(172, 30, 0, 0), 16},
        .local = {IP(10, 128, 0, 0), 23},
        .host_ip = NODE(1),
        .vxlan_port = SDN_VXLAN_PORT,
        .mtu = 1450,
        .remotes = remotes,
        .n_remotes = ARRAY_SIZE(remotes),
    };
}

/* "drop CAUSE", "port N MAC", "host MAC", "tunnel REMOTE ID", "answer IP MAC to WHERE MAC". */
static void verdict_text(const struct model_packet *p, const struct model_verdict *v,
                         struct strbuf *ret)
{
    switch (v->action) {
    case MODEL_DROP:
        strbuf_addf(ret, "drop %s", model_cause_name(v->cause));
        return;
    case MODEL_DELIVER:
        strbuf_addf(ret, "port %u %s", v->port, MAC_TEXT(v->eth_dst));
        break;
    case MODEL_HOST:
        strbuf_addf(ret, "host %s", MAC_TEXT(v->eth_dst));
        break;
    case MODEL_TUNNEL:
        /* Only the host with a fixed VNID needs frames to its own MAC. */
        assert_true(
            mac_equal(v->eth_dst, p->ip.dst == ON_NODE3 ? mac_from_ip4(ON_NODE3) : p->eth_dst));
        strbuf_addf(ret, "tunnel %s %u", IP4_TEXT(v->remote), v->tunnel_id);
        break;
    case MODEL_ANSWER:
        strbuf_addf(ret, "answer %s %s to ", IP4_TEXT(v->answer_ip), MAC_TEXT(v->answer_mac));
        if (p->entry == MODEL_FROM_PORT) {
            strbuf_addf(ret, "port %u ", v->port);
        } else if (p->entry == MODEL_FROM_TUNNEL) {
            strbuf_addf(ret, "tunnel %s %u ", IP4_TEXT(v->remote), v->tunnel_id);
        } else {
            strbuf_adds(ret, "host ");
        }
        strbuf_adds(ret, MAC_TEXT(v->eth_dst));
        break;
    case MODEL_TRANSLATE:
        strbuf_addf(ret, "endpoint of %s", v->service->service->name);
        break;
    }
    assert_int_equal(v->cause, MODEL_NOT_DROPPED);
}

struct test_case {
    const char *what;
    struct model_packet packet;
    const char *multitenant;
    const char *subnet; /* NULL: the same. */
};

static void run_cases(const struct test_case *cases, size_t n)
{
    for (enum sdn_plugin plugin = SDN_SUBNET; plugin <= SDN_MULTITENANT; plugin++) {
        struct sdn_network net = network_with(plugin);
        struct model_node node = {&net, pods, N_PODS};
        for (size_t i = 0; i < n; i++) {
            const struct test_case *c = &cases[i];
            struct model_verdict v = model_judge(&node, &c->packet);
            CLEANUP_STRBUF struct strbuf got = STRBUF_INIT;
            verdict_text(&c->packet, &v, &got);
            const char *want = plugin == SDN_SUBNET && c->subnet ? c->subnet : c->multitenant;
            if (!streq(strbuf_cstr(&got), want)) {
                fail_msg("%s, %s:\n  want: %s\n  got:  %s", sdn_plugin_name(plugin), c->what, want,
                         strbuf_cstr(&got));
            }
        }
    }
}

#define L4_OF_PORT(port_, mac_of, src_, dst_, proto_, from, to)            \
    {                                                                      \
        .entry = MODEL_FROM_PORT, .port = (port_), .eth_src = MAC(mac_of), \
        .eth_type = MODEL_ETH_IP4, .ip = {                                 \
            .src = (src_),                                                 \
            .dst = (dst_),                                                 \
            .proto = (proto_),                                             \
            .src_port = (from),                                            \
            .dst_port = (to)                                               \
        }                                                                  \
    }
#define IP_OF_PORT(port_, mac_of, src_, dst_) L4_OF_PORT(port_, mac_of, src_, dst_, 6, 4000, 80)
#define IP_OF_POD(i, dst_) IP_OF_PORT(PORT(i), POD(i), POD(i), dst_)
#define UDP_OF_POD(i, dst_, from, to) L4_OF_PORT(PORT(i), POD(i), POD(i), dst_, 17, from, to)
#define IP_OF_HOST(src_, dst_)                                                                     \
    {                                                                                              \
        .entry = MODEL_FROM_HOST, .eth_type = MODEL_ETH_IP4, .ip = {.src = (src_), .dst = (dst_) } \
    }
#define IP_OF_TUNNEL(node, id, src_, dst_)                                      \
    {                                                                           \
        .entry = MODEL_FROM_TUNNEL, .outer_src = NODE(node), .tunnel_id = (id), \
        .eth_type = MODEL_ETH_IP4, .ip = {                                      \
            .src = (src_),                                                      \
            .dst = (dst_)                                                       \
        }                                                                       \
    }
#define ARP_OF_POD(i, op_, tpa_)                                           \
    {                                                                      \
        .entry = MODEL_FROM_PORT, .port = PORT(i), .eth_src = MAC(POD(i)), \
        .eth_type = MODEL_ETH_ARP, .arp = {                                \
            .op = (op_),                                                   \
            .spa = POD(i),                                                 \
            .sha = MAC(POD(i)),                                            \
            .tpa = (tpa_)                                                  \
        }                                                                  \
    }
#define ARP_OF_HOST(spa_, tpa_)                                                                \
    {                                                                                          \
        .entry = MODEL_FROM_HOST, .eth_src = MAC(GATEWAY), .eth_type = MODEL_ETH_ARP, .arp = { \
            .op = 1,                                                                           \
            .spa = (spa_),                                                                     \
            .sha = MAC(GATEWAY),                                                               \
            .tpa = (tpa_)                                                                      \
        }                                                                                      \
    }
#define ARP_OF_TUNNEL(node, id, spa_, tpa_)                                     \
    {                                                                           \
        .entry = MODEL_FROM_TUNNEL, .outer_src = NODE(node), .tunnel_id = (id), \
        .eth_src = MAC(spa_), .eth_type = MODEL_ETH_ARP, .arp = {               \
            .op = 1,                                                            \
            .spa = (spa_),                                                      \
            .sha = MAC(spa_),                                                   \
            .tpa = (tpa_)                                                       \
        }                                                                       \
    }
#define TO_HOST "host 0a:58:0a:80:00:01"

/* ISO-01, ISO-02, ISO-05 to ISO-07; OMT-02, OMT-05; OSN-01, OSN-05 */
static void pods_of_a_node_reach_each_other_by_their_vnids(void **state)
{
    static const struct test_case cases[] = {
        {"the same project", IP_OF_POD(0, POD(1)), "port 12 0a:58:0a:80:00:03", NULL},
        {"another project", IP_OF_POD(0, POD(2)), "drop vnid-mismatch",
         "port 13 0a:58:0a:80:00:04"},
        {"the other way", IP_OF_POD(2, POD(0)), "drop vnid-mismatch", "port 11 0a:58:0a:80:00:02"},
        {"to the global project", IP_OF_POD(0, POD(3)), "port 14 0a:58:0a:80:00:05", NULL},
        {"from the global project", IP_OF_POD(3, POD(2)), "port 13 0a:58:0a:80:00:04", NULL},
        {"to itself", IP_OF_POD(0, POD(0)), "drop own-address", NULL},
        {"an absent pod", IP_OF_POD(0, POD(9)), "drop no-such-pod", NULL},
        {"the subnet's own address", IP_OF_POD(0, IP(10, 128, 0, 0)), "drop no-such-pod", NULL},
        {"the subnet's broadcast", IP_OF_POD(0, IP(10, 128, 1, 255)), "drop no-such-pod", NULL},
    };
    run_cases(cases, ARRAY_SIZE(cases));
}

/* ISO-04; PKT-02 to PKT-04; OMT-07; OSN-03 */
static void pods_reach_other_nodes_and_the_outside(void **state)
{
    static const struct test_case cases[] = {
        {"node2", IP_OF_POD(0, ON_NODE2), "tunnel 192.168.100.2 42", "tunnel 192.168.100.2 0"},
        {"node2, global", IP_OF_POD(3, ON_NODE2), "tunnel 192.168.100.2 0", NULL},
        {"node2's gateway", IP_OF_POD(2, IP(10, 128, 2, 1)), "tunnel 192.168.100.2 43",
         "tunnel 192.168.100.2 0"},
        {"the last address of node2", IP_OF_POD(0, IP(10, 128, 3, 255)), "tunnel 192.168.100.2 42",
         "tunnel 192.168.100.2 0"},
        {"node3 with its fixed VNID", IP_OF_POD(0, ON_NODE3), "tunnel 192.168.100.3 7", NULL},
        {"nobody's subnet", IP_OF_POD(0, NOBODYS), "drop no-such-node", NULL},
        {"in the second cluster network", IP_OF_POD(0, IP(100, 64, 0, 1)), "drop no-such-node",
         NULL},
        {"behind the cluster network", IP_OF_POD(0, IP(10, 132, 0, 0)), TO_HOST, NULL},
        {"a service", IP_OF_POD(0, SERVICE), "drop service-not-available", NULL},
        {"the gateway", IP_OF_POD(0, GATEWAY), TO_HOST, NULL},
        {"the outside", IP_OF_POD(2, OUTSIDE), TO_HOST, NULL},
        {"a node's own address", IP_OF_POD(2, NODE(2)), TO_HOST, NULL},
        {"a group", IP_OF_POD(0, IP(224, 0, 0, 1)), "drop multicast", NULL},
        {"the last group", IP_OF_POD(0, IP(239, 255, 255, 255)), "drop multicast", NULL},
        {"behind the groups", IP_OF_POD(0, IP(240, 0, 0, 0)), TO_HOST, NULL},
        {"everybody", IP_OF_POD(0, UINT32_MAX), "drop multicast", NULL},
    };
    run_cases(cases, ARRAY_SIZE(cases));
}

/* ISO-09, ISO-10; OMT-09 */
static void a_pod_is_what_its_port_says(void **state)
{
    static const struct test_case cases[] = {
        {"another pod's address", IP_OF_PORT(PORT(0), POD(0), POD(3), POD(1)),
         "drop spoofed-source", NULL},
        {"the gateway's address", IP_OF_PORT(PORT(0), POD(0), GATEWAY, POD(2)),
         "drop spoofed-source", NULL},
        {"another pod's Ethernet address", IP_OF_PORT(PORT(0), POD(3), POD(0), POD(1)),
         "drop spoofed-source", NULL},
        {"another pod's everything", IP_OF_PORT(PORT(0), POD(3), POD(3), POD(2)),
         "drop spoofed-source", NULL},
        {"a port without a pod", IP_OF_PORT(99, POD(3), POD(3), POD(2)), "drop unknown-port", NULL},
        {"a tunnel packet", UDP_OF_POD(0, NODE(2), 5, 4789), "drop forged-tunnel", NULL},
        {"from the tunnel's port", UDP_OF_POD(0, NODE(2), 4789, 5), TO_HOST, NULL},
        {"TCP to that port", L4_OF_PORT(PORT(0), POD(0), POD(0), NODE(2), 6, 5, 4789), TO_HOST,
         NULL},
        {"a VLAN tag",
         {.entry = MODEL_FROM_PORT,
          .port = PORT(0),
          .eth_src = MAC(POD(0)),
          .has_vlan = true,
          .eth_type = MODEL_ETH_IP4,
          .ip = {.src = POD(0), .dst = POD(1)}},
         "drop vlan-tagged",
         NULL},
        {"IPv6",
         {.entry = MODEL_FROM_PORT, .port = PORT(0), .eth_src = MAC(POD(0)), .eth_type = 0x86dd},
         "drop not-ip",
         NULL},
    };
    run_cases(cases, ARRAY_SIZE(cases));
}

/* ISO-03; OMT-10 */
static void the_tunnel_is_judged_by_its_id_and_its_sender(void **state)
{
    static const struct test_case cases[] = {
        {"its project", IP_OF_TUNNEL(2, 42, ON_NODE2, POD(0)), "port 11 0a:58:0a:80:00:02", NULL},
        {"global", IP_OF_TUNNEL(2, 0, ON_NODE2, POD(0)), "port 11 0a:58:0a:80:00:02", NULL},
        {"to global", IP_OF_TUNNEL(2, 99, ON_NODE2, POD(3)), "port 14 0a:58:0a:80:00:05", NULL},
        {"another project", IP_OF_TUNNEL(2, 43, ON_NODE2, POD(0)), "drop vnid-mismatch",
         "port 11 0a:58:0a:80:00:02"},
        {"the same lower bits", IP_OF_TUNNEL(2, 0x10000 + 42, ON_NODE2, POD(0)),
         "drop vnid-mismatch", "port 11 0a:58:0a:80:00:02"},
        {"to this host", IP_OF_TUNNEL(2, 43, ON_NODE2, GATEWAY), TO_HOST, NULL},
        {"an absent pod", IP_OF_TUNNEL(2, 0, ON_NODE2, POD(8)), "drop no-such-pod", NULL},
        {"an unknown host", IP_OF_TUNNEL(9, 0, ON_NODE2, POD(0)), "drop unknown-vtep", NULL},
        {"a host without a subnet", IP_OF_TUNNEL(4, 0, ON_NODE2, POD(0)), "drop unknown-vtep",
         NULL},
        {"a host that claims ours", IP_OF_TUNNEL(5, 0, POD(9), POD(0)), "drop unknown-vtep", NULL},
        {"another node's pod", IP_OF_TUNNEL(2, 0, ON_NODE3, POD(0)), "drop spoofed-source", NULL},
        {"a pod of ours", IP_OF_TUNNEL(2, 42, POD(1), POD(0)), "drop spoofed-source", NULL},
        {"the outside", IP_OF_TUNNEL(2, 0, OUTSIDE, POD(0)), "drop spoofed-source", NULL},
        {"through us to another node", IP_OF_TUNNEL(2, 0, ON_NODE2, ON_NODE3),
         "drop not-for-this-node", NULL},
        {"through us to the outside", IP_OF_TUNNEL(2, 0, ON_NODE2, OUTSIDE),
         "drop not-for-this-node", NULL},
        {"through us to a service", IP_OF_TUNNEL(2, 0, ON_NODE2, SERVICE), "drop not-for-this-node",
         NULL},
    };
    run_cases(cases, ARRAY_SIZE(cases));
}

/* PKT-08 */
static void the_host_is_itself_or_the_outside(void **state)
{
    static const struct test_case cases[] = {
        {"to a pod", IP_OF_HOST(GATEWAY, POD(2)), "port 13 0a:58:0a:80:00:04", NULL},
        {"outside to a pod", IP_OF_HOST(OUTSIDE, POD(2)), "port 13 0a:58:0a:80:00:04", NULL},
        {"its other address to a pod", IP_OF_HOST(NODE(1), POD(0)), "port 11 0a:58:0a:80:00:02",
         NULL},
        {"to another node", IP_OF_HOST(GATEWAY, ON_NODE2), "tunnel 192.168.100.2 0", NULL},
        {"to the ghost", IP_OF_HOST(GATEWAY, ON_NODE3), "tunnel 192.168.100.3 7", NULL},
        {"outside to another node", IP_OF_HOST(OUTSIDE, ON_NODE2), "drop not-for-this-node", NULL},
        {"as a pod", IP_OF_HOST(POD(0), POD(1)), "drop spoofed-source", NULL},
        {"as another node's pod", IP_OF_HOST(ON_NODE2, POD(1)), "drop spoofed-source", NULL},
        {"as one of the second network", IP_OF_HOST(IP(100, 64, 255, 255), POD(1)),
         "drop spoofed-source", NULL},
        {"to itself", IP_OF_HOST(GATEWAY, GATEWAY), "drop back-to-host", NULL},
        {"outside to the gateway", IP_OF_HOST(OUTSIDE, GATEWAY), "drop no-such-pod", NULL},
        {"to the outside", IP_OF_HOST(GATEWAY, OUTSIDE), "drop back-to-host", NULL},
        {"to a service", IP_OF_HOST(GATEWAY, SERVICE), "drop service-not-available", NULL},
        {"to nobody's subnet", IP_OF_HOST(GATEWAY, NOBODYS), "drop no-such-node", NULL},
    };
    run_cases(cases, ARRAY_SIZE(cases));
}

/* PKT-07 */
static void arp_is_answered_for_what_exists(void **state)
{
    static const struct test_case cases[] = {
        {"pod for the gateway", ARP_OF_POD(0, 1, GATEWAY),
         "answer 10.128.0.1 0a:58:0a:80:00:01 to port 11 0a:58:0a:80:00:02", NULL},
        {"pod for a pod of any project", ARP_OF_POD(0, 1, POD(2)),
         "answer 10.128.0.4 0a:58:0a:80:00:04 to port 11 0a:58:0a:80:00:02", NULL},
        {"pod for the rest of the cluster", ARP_OF_POD(0, 1, NOBODYS),
         "answer 10.131.0.9 0a:58:0a:83:00:09 to port 11 0a:58:0a:80:00:02", NULL},
        {"pod for an absent pod", ARP_OF_POD(0, 1, POD(9)), "drop no-such-pod", NULL},
        {"pod for the outside", ARP_OF_POD(0, 1, OUTSIDE), "drop arp-off-network", NULL},
        {"pod for a service", ARP_OF_POD(0, 1, SERVICE), "drop arp-off-network", NULL},
        {"pod answers", ARP_OF_POD(0, 2, GATEWAY), "drop arp-not-asked", NULL},
        {"pod as another",
         {.entry = MODEL_FROM_PORT,
          .port = PORT(0),
          .eth_src = MAC(POD(0)),
          .eth_type = MODEL_ETH_ARP,
          .arp = {.op = 1, .spa = POD(1), .sha = MAC(POD(0)), .tpa = GATEWAY}},
         "drop spoofed-source",
         NULL},
        {"pod with another's hardware address",
         {.entry = MODEL_FROM_PORT,
          .port = PORT(0),
          .eth_src = MAC(POD(0)),
          .eth_type = MODEL_ETH_ARP,
          .arp = {.op = 1, .spa = POD(0), .sha = MAC(POD(1)), .tpa = GATEWAY}},
         "drop spoofed-source",
         NULL},
        {"host for a pod", ARP_OF_HOST(GATEWAY, POD(0)),
         "answer 10.128.0.2 0a:58:0a:80:00:02 to host 0a:58:0a:80:00:01", NULL},
        {"host with its other address", ARP_OF_HOST(NODE(1), ON_NODE2),
         "answer 10.128.2.9 0a:58:0a:80:02:09 to host 0a:58:0a:80:00:01", NULL},
        {"host for the outside", ARP_OF_HOST(GATEWAY, OUTSIDE), "drop arp-off-network", NULL},
        {"tunnel for a pod", ARP_OF_TUNNEL(2, 43, ON_NODE2, POD(0)),
         "answer 10.128.0.2 0a:58:0a:80:00:02 to tunnel 192.168.100.2 43 0a:58:0a:80:02:09", NULL},
        {"tunnel for another node", ARP_OF_TUNNEL(2, 0, ON_NODE2, ON_NODE3),
         "drop not-for-this-node", NULL},
        {"tunnel as another's", ARP_OF_TUNNEL(2, 0, ON_NODE3, POD(0)), "drop spoofed-source", NULL},
        {"unknown tunnel", ARP_OF_TUNNEL(9, 0, ON_NODE2, POD(0)), "drop unknown-vtep", NULL},
        {"the answer goes to the hardware address in the question",
         {.entry = MODEL_FROM_HOST,
          .eth_src = MAC(OUTSIDE),
          .eth_type = MODEL_ETH_ARP,
          .arp = {.op = 1, .spa = GATEWAY, .sha = MAC(GATEWAY), .tpa = POD(0)}},
         "answer 10.128.0.2 0a:58:0a:80:00:02 to host 0a:58:0a:80:00:01",
         NULL},
    };
    run_cases(cases, ARRAY_SIZE(cases));
}

static enum model_cause judge_error(const struct model_node *n, enum model_connection connection,
                                    uint32_t quoted_dst, bool denied)
{
    struct model_packet p = IP_OF_POD(0, POD(1));
    p.ip.proto = 1;
    p.ip.icmp_error = true;
    p.ip.connection = connection;
    p.ip.quoted_dst = quoted_dst;
    p.ip.denied = denied;
    return model_judge(n, &p).cause;
}

/* Under network policy, whatever policies there are. */
static void a_pod_speaks_about_packets_that_it_received(void **state)
{
    struct sdn_network net = network_with(SDN_NETWORKPOLICY);
    static const struct model_policies none = {0};
    struct model_node node = {&net, pods, N_PODS, &none};
    assert_int_equal(judge_error(&node, MODEL_RELATED, POD(0), false), MODEL_NOT_DROPPED);
    assert_int_equal(judge_error(&node, MODEL_RELATED, POD(0), true), MODEL_CONNECTION_DENIED);
    assert_int_equal(judge_error(&node, MODEL_RELATED, POD(2), false), MODEL_FORGED_ERROR);
    assert_int_equal(judge_error(&node, MODEL_RELATED, OUTSIDE, false), MODEL_FORGED_ERROR);
    assert_int_equal(judge_error(&node, MODEL_INVALID, POD(0), false), MODEL_FORGED_ERROR);
    assert_int_equal(judge_error(&node, MODEL_NEW, POD(0), false), MODEL_FORGED_ERROR);
    struct model_packet by_tunnel = IP_OF_TUNNEL(2, 0, ON_NODE2, POD(0)),
                        of_host = IP_OF_HOST(OUTSIDE, POD(0));
    by_tunnel.ip.icmp_error = of_host.ip.icmp_error = true;
    by_tunnel.ip.connection = of_host.ip.connection = MODEL_RELATED;
    assert_int_equal(model_judge(&node, &by_tunnel).cause, MODEL_NOT_DROPPED);
    assert_int_equal(model_judge(&node, &of_host).cause, MODEL_NOT_DROPPED);
    node.policies = NULL;
    net.plugin = SDN_SUBNET;
    assert_int_equal(judge_error(&node, MODEL_NEW, POD(2), false), MODEL_NOT_DROPPED);
}

static void without_services_or_nodes_nothing_is_assumed(void **state)
{
    struct sdn_network net = network_with(SDN_MULTITENANT);
    net.service = (struct ip4_prefix){0};
    net.n_remotes = 0;
    struct model_node node = {&net, NULL, 0};
    static const struct model_packet to_outside = IP_OF_POD(0, OUTSIDE),
                                     by_tunnel = IP_OF_TUNNEL(2, 0, ON_NODE2, GATEWAY),
                                     of_host = IP_OF_HOST(GATEWAY, ON_NODE2);
    assert_int_equal(model_judge(&node, &to_outside).cause, MODEL_UNKNOWN_PORT);
    assert_int_equal(model_judge(&node, &by_tunnel).cause, MODEL_UNKNOWN_VTEP);
    assert_int_equal(model_judge(&node, &of_host).cause, MODEL_NO_SUCH_NODE);
    node = (struct model_node){&net, pods, N_PODS};
    static const struct model_packet to_service = IP_OF_POD(0, SERVICE);
    assert_int_equal(model_judge(&node, &to_service).action, MODEL_HOST);
}

static void every_cause_has_a_name_of_its_own(void **state)
{
    assert_string_equal(model_cause_name(MODEL_NOT_DROPPED), "");
    for (enum model_cause a = 1; a < MODEL_N_CAUSES; a++) {
        for (enum model_cause b = 0; b < a; b++) {
            assert_string_not_equal(model_cause_name(a), model_cause_name(b));
        }
    }
}

/* ---- whole clusters ---- */

#define N_NODES 5
#define PODS_A_NODE 6

/* Nodes as each of them sees the others. */
struct cluster {
    struct sdn_network nets[N_NODES];
    struct sdn_remote remotes[N_NODES][N_NODES - 1];
    struct model_pod pods[N_NODES][PODS_A_NODE];
    struct model_node nodes[N_NODES];
};

static void make_cluster(struct cluster *c, enum sdn_plugin plugin)
{
    static const uint32_t vnids[] = {0, 10, 11, 0xffffff, 10, 0x1000a};
    for (size_t i = 0; i < N_NODES; i++) {
        c->nets[i] = network_with(plugin);
        c->nets[i].local = (struct ip4_prefix){IP(10, 128, 2 * i, 0), 23};
        c->nets[i].host_ip = NODE(1 + i);
        c->nets[i].remotes = c->remotes[i];
        c->nets[i].n_remotes = N_NODES - 1;
        for (size_t k = 0, r = 0; k < N_NODES; k++) {
            if (k != i) {
                c->remotes[i][r++] = (struct sdn_remote){.host_ip = NODE(1 + k),
                                                         .subnet = {IP(10, 128, 2 * k, 0), 23}};
            }
        }
        for (size_t k = 0; k < PODS_A_NODE; k++) {
            uint32_t ip = IP(10, 128, 2 * i, 2 + k);
            c->pods[i][k] = (struct model_pod){
                .port = PORT(k), .ip = ip, .mac = mac_from_ip4(ip), .vnid = vnids[k]};
        }
        c->nodes[i] = (struct model_node){&c->nets[i], c->pods[i], PODS_A_NODE};
    }
}

/* What becomes of the packet in the end, and at which node. */
static struct model_verdict follow(const struct cluster *c, size_t *node, struct model_packet *p)
{
    struct model_verdict v = model_judge(&c->nodes[*node], p);
    for (int hops = 0; v.action == MODEL_TUNNEL; hops++) {
        assert_int_equal(hops, 0); /* Nothing takes two tunnels. */
        p->entry = MODEL_FROM_TUNNEL;
        p->outer_src = c->nets[*node].host_ip;
        p->tunnel_id = v.tunnel_id;
        *node = v.remote - NODE(1);
        v = model_judge(&c->nodes[*node], p);
    }
    return v;
}

/* The isolation rule between any two pods, wherever they are (ISO-02 to ISO-07). */
static void pods_of_a_cluster_reach_each_other_by_their_vnids(void **state)
{
    static struct cluster c;
    for (enum sdn_plugin plugin = SDN_SUBNET; plugin <= SDN_MULTITENANT; plugin++) {
        make_cluster(&c, plugin);
        for (size_t i = 0; i < N_NODES * PODS_A_NODE * N_NODES * PODS_A_NODE; i++) {
            size_t from_node = i % N_NODES, to_node = i / N_NODES % N_NODES, at = from_node;
            const struct model_pod *from = &c.pods[from_node][i / 25 % PODS_A_NODE];
            const struct model_pod *to = &c.pods[to_node][i / 25 / PODS_A_NODE];
            struct model_packet p = {.entry = MODEL_FROM_PORT,
                                     .port = from->port,
                                     .eth_src = from->mac,
                                     .eth_type = MODEL_ETH_IP4,
                                     .ip = {.src = from->ip, .dst = to->ip}};
            struct model_verdict v = follow(&c, &at, &p);
            assert_int_equal(at, to_node);
            if (from == to) {
                assert_int_equal(v.cause, MODEL_OWN_ADDRESS);
            } else if (plugin == SDN_SUBNET || sdn_vnid_may_reach(from->vnid, to->vnid)) {
                assert_int_equal(v.action, MODEL_DELIVER);
                assert_int_equal(v.port, to->port);
                assert_true(mac_equal(v.eth_dst, to->mac));
            } else {
                assert_int_equal(v.cause, MODEL_VNID_MISMATCH);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pods_of_a_node_reach_each_other_by_their_vnids),
        cmocka_unit_test(pods_reach_other_nodes_and_the_outside),
        cmocka_unit_test(a_pod_is_what_its_port_says),
        cmocka_unit_test(the_tunnel_is_judged_by_its_id_and_its_sender),
        cmocka_unit_test(the_host_is_itself_or_the_outside),
        cmocka_unit_test(arp_is_answered_for_what_exists),
        cmocka_unit_test(a_pod_speaks_about_packets_that_it_received),
        cmocka_unit_test(without_services_or_nodes_nothing_is_assumed),
        cmocka_unit_test(every_cause_has_a_name_of_its_own),
        cmocka_unit_test(pods_of_a_cluster_reach_each_other_by_their_vnids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
