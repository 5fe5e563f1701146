/* SPDX-License-Identifier: Apache-2.0 */
/* What the pipeline does to packets, as a real Open vSwitch sees it: ofproto/trace of every kind of packet
 * that a pod, the tunnel and the host can send, compared with the isolation model of sdn/network.h.
 *
 * The node is 192.168.100.1 with 10.128.0.0/23; node2 and node3 are remotes, node3 with a fixed VNID 0. */
#include "ovs.h"
#include "sdn/pipeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

#define IP(a, b, c, d) \
    ((uint32_t) (a) << 24 | (uint32_t) (b) << 16 | (uint32_t) (c) << 8 | (uint32_t) (d))
#define GATEWAY IP(10, 128, 0, 1)
#define NODE2 IP(192, 168, 100, 2)
#define NODE3 IP(192, 168, 100, 3)
#define POD_ON_NODE2 IP(10, 128, 2, 9)
#define POD_ON_NODE3 IP(10, 128, 4, 9)
#define OUTSIDE IP(8, 8, 8, 8)

/* Ports are p0, p1, ... with numbers from 11 on, addresses 10.128.0.2 on. */
static const uint32_t pod_vnids[] = {42, 42, 43, 0};
#define N_PODS ARRAY_SIZE(pod_vnids)

static struct ovs ovs;
static struct of_client client;
static struct sdn_network net;

static uint32_t pod_ip(size_t i)
{
    return IP(10, 128, 0, 2 + i);
}

/* ---- set-up ---- */

static void use_plugin(enum sdn_plugin plugin)
{
    net = (struct sdn_network){
        .plugin = plugin,
        .cluster = {{IP(10, 128, 0, 0), 14}},
        .n_cluster = 1,
        .service = {IP(172, 30, 0, 0), 16},
        .local = {IP(10, 128, 0, 0), 23},
        .host_ip = IP(192, 168, 100, 1),
        .vxlan_port = SDN_VXLAN_PORT,
        .mtu = 1450,
        .refusal_meter = 1,
    };
    struct of_flow_list all = {0}, l = {0};
    struct of_builder b;
    of_begin(&b, UINT8_MAX, 0, 0);
    of_end_into(&b, &all);
    of_client_commit(&client, OF_FLOW_DELETE, &all);
    of_flow_list_done(&all);

    pipeline_base(&net, &l);
    pipeline_remote(
        &net, &(struct sdn_remote){.host_ip = NODE2, .subnet = {IP(10, 128, 2, 0), 23}, .id = 2},
        &l);
    pipeline_remote(
        &net,
        &(struct sdn_remote){
            .host_ip = NODE3, .subnet = {IP(10, 128, 4, 0), 23}, .has_fixed_vnid = true, .id = 3},
        &l);
    for (size_t i = 0; i < N_PODS; i++) {
        pipeline_pod(&net,
                     &(struct pipeline_pod){.ofport = (uint32_t) (11 + i),
                                            .ip = pod_ip(i),
                                            .mac = mac_from_ip4(pod_ip(i)),
                                            .vnid = pod_vnids[i]},
                     &l);
    }
    pipeline_vnid(&net, 42, &l);
    pipeline_vnid(&net, 43, &l);
    of_client_commit(&client, OF_FLOW_ADD, &l);

    /* What the switch reports is what was sent: nothing to repair after a restart. */
    struct of_flow_list dump = {0};
    of_client_dump(&client, &dump);
    assert_int_equal(dump.n, l.n);
    for (size_t i = 0; i < l.n; i++) {
        size_t j = 0;
        while (j < dump.n && !of_flow_equal(l.flows[i], dump.flows[j])) {
            j++;
        }
        assert_int_not_equal(j, dump.n);
    }
    of_flow_list_done(&dump);
    of_flow_list_done(&l);
}

static int set_up(void **state)
{
    ovs_start(&ovs);
    char pcap[80];
    snprintf(pcap, sizeof pcap, "options:tx_pcap=%s/p0.pcap", ovs.dir);
    OVS_VSCTL(&ovs, "add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev",
              "fail_mode=secure", "--", "add-port", "br0", "vxlan0", "--", "set", "interface",
              "vxlan0", "type=vxlan", "options:remote_ip=flow", "options:key=flow",
              "ofport_request=1", "--", "add-port", "br0", "tun0", "--", "set", "interface", "tun0",
              "type=dummy", "ofport_request=2");
    OVS_VSCTL(&ovs, "add-port", "br0", "p0", "--", "set", "interface", "p0", "type=dummy",
              "ofport_request=11", pcap, "--", "add-port", "br0", "p1", "--", "set", "interface",
              "p1", "type=dummy", "ofport_request=12", "--", "add-port", "br0", "p2", "--", "set",
              "interface", "p2", "type=dummy", "ofport_request=13", "--", "add-port", "br0", "p3",
              "--", "set", "interface", "p3", "type=dummy", "ofport_request=14");
    /* The physical network: where tunnels find their way. */
    OVS_VSCTL(&ovs, "add-br", "br-phy", "--", "set", "bridge", "br-phy", "datapath_type=netdev",
              "--", "add-port", "br-phy", "nic", "--", "set", "interface", "nic", "type=dummy");
    OVS_RUN(&ovs, NULL, "ip", "addr", "add", "192.168.100.1/24", "dev", "br-phy");
    OVS_RUN(&ovs, NULL, "ip", "link", "set", "br-phy", "up");
    ovs_add_route(&ovs, "192.168.100.0/24", "br-phy");
    OVS_APPCTL(&ovs, NULL, "tnl/arp/set", "br-phy", "192.168.100.2", "02:00:00:00:00:02");
    OVS_APPCTL(&ovs, NULL, "tnl/arp/set", "br-phy", "192.168.100.3", "02:00:00:00:00:03");
    OVS_RUN(&ovs, NULL, "ovs-ofctl", "-O", "OpenFlow14", "add-meter", "br0",
            "meter=1,pktps,burst,band=type=drop,rate=100,burst_size=100");
    of_client_open(&client, &ovs, "br0");
    return 0;
}

static int tear_down(void **state)
{
    of_client_close(&client);
    ovs_stop(&ovs);
    return 0;
}

/* ---- tracing ---- */

/* Value of "key=" in a flow line, up to the next comma; "" when it is not there. */
static const char *field(const char *line, const char *key, char out[64])
{
    size_t n = strlen(key), i = 0;
    const char *p = line;
    while ((p = strstr(p, key)) && (p[n] != '=' || (p != line && p[-1] != ',' && p[-1] != ' '))) {
        p += n;
    }
    if (p) {
        for (p += n + 1; *p && *p != ',' && *p != '\n' && i < 63; p++) {
            out[i++] = *p;
        }
    }
    out[i] = '\0';
    return out;
}

/* The last line of 'text' that starts with 'head'; without the head. */
static const char *last_line(const char *text, const char *head, char out[1024])
{
    const char *found = NULL;
    for (const char *p = text; (p = strstr(p, head)); p++) {
        if (p == text || p[-1] == '\n') {
            found = p + strlen(head);
        }
    }
    size_t n = found ? strcspn(found, "\n") : 0;
    assert_true(n < 1024);
    memcpy(out, found ? found : "", n);
    out[n] = '\0';
    return out;
}

/* What becomes of a packet of 'flow', in one of the forms
 *     drop
 *     PORT dst=MAC                        ("p1", "tun0")
 *     vxlan to=IP vni=N
 * with " arp SPA is-at SHA to TPA/THA, eth SRC>DST" appended when it is an ARP reply then. */
static void trace(const char *flow, struct strbuf *ret)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    char actions[1024], final[1024], v[6][64];
    OVS_APPCTL(&ovs, &out, "ofproto/trace", "--names", "br0", flow);
    last_line(strbuf_cstr(&out), "Datapath actions: ", actions);
    last_line(strbuf_cstr(&out), "Final flow: ", final);
    if (streq(final, "unchanged")) {
        last_line(strbuf_cstr(&out), "Flow: ", final);
    }
    char *push = strstr(actions, "tnl_push(");
    if (push) {
        char *ip = strstr(push, "ipv4("), *vni = strstr(push, "vni=");
        assert_true(ip && vni);
        strbuf_addf(ret, "vxlan to=%s vni=%lu", field(ip, "dst", v[0]), strtoul(vni + 4, NULL, 16));
    } else if (streq(actions, "drop") || str_has_prefix(actions, "meter(0),userspace(")) {
        strbuf_adds(ret, "drop"); /* What is refused goes to the agent, and nowhere else. */
    } else {
        /* The last action is the output. */
        char *port = strrchr(actions, ',');
        strbuf_addf(ret, "%s dst=%s", port ? port + 1 : actions, field(final, "dl_dst", v[0]));
    }
    if (streq(field(final, "arp_op", v[0]), "2") && !streq(actions, "drop")) {
        strbuf_addf(ret, " arp %s is-at %s to %s/%s, eth %s>%s", field(final, "arp_spa", v[0]),
                    field(final, "arp_sha", v[1]), field(final, "arp_tpa", v[2]),
                    field(final, "arp_tha", v[3]), field(final, "dl_src", v[4]),
                    field(final, "dl_dst", v[5]));
    }
}

static void expect(const char *want, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void expect(const char *want, const char *fmt, ...)
{
    char flow[512];
    CLEANUP_STRBUF struct strbuf got = STRBUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(flow, sizeof flow, fmt, ap);
    va_end(ap);
    trace(flow, &got);
    if (!streq(strbuf_cstr(&got), want)) {
        fail_msg("%s\n  want: %s\n  got:  %s", flow, want, strbuf_cstr(&got));
    }
}

/* ---- packets ---- */

/* From pod 'i', honest but for what is appended. */
#define FROM_POD "in_port=p%zu,dl_src=%s,dl_dst=%s,"
#define FROM_POD_ARGS(i) (i), MAC_TEXT(mac_from_ip4(pod_ip(i))), MAC_TEXT(mac_from_ip4(GATEWAY))
#define FROM_VXLAN "in_port=vxlan0,tun_src=%s,tun_dst=192.168.100.1,tun_id=%u,"
#define FROM_HOST "in_port=tun0,"

static const char *to_pod(size_t i, char out[64])
{
    snprintf(out, 64, "p%zu dst=%s", i, MAC_TEXT(mac_from_ip4(pod_ip(i))));
    return out;
}

static const char *to_host(char out[64])
{
    snprintf(out, 64, "tun0 dst=%s", MAC_TEXT(mac_from_ip4(GATEWAY)));
    return out;
}

static const char *delivered_if(bool allowed, size_t to, char out[64])
{
    return allowed ? to_pod(to, out) : "drop";
}

static const char *const protocols[] = {"icmp", "tcp,tcp_src=4000,tcp_dst=80",
                                        "udp,udp_src=4000,udp_dst=53", "ip"};

/* ---- tests ---- */

/* Every pair of pods of this node, and what of another node comes in with every VNID (ISO-02, -03, -05, -06,
 * -07; OMT-02, -05; OSN-01, -05), for each protocol (PKT-06). */
static void expect_isolation_of_model(enum sdn_plugin plugin)
{
    static const uint32_t tunnel_vnids[] = {0, 42, 43, 44, 0x10000 + 42, 0x100 + 42, SDN_VNID_MAX};
    char want[64];
    use_plugin(plugin);
    for (size_t to = 0; to < N_PODS; to++) {
        for (size_t from = 0; from < N_PODS; from++) {
            bool allowed =
                from != to && sdn_vnid_may_reach(sdn_effective_vnid(&net, pod_vnids[from]),
                                                 sdn_effective_vnid(&net, pod_vnids[to]));
            for (size_t k = 0; k < ARRAY_SIZE(protocols); k++) {
                expect(delivered_if(allowed, to, want), FROM_POD "%s,nw_src=%s,nw_dst=%s",
                       FROM_POD_ARGS(from), protocols[k], IP4_TEXT(pod_ip(from)),
                       IP4_TEXT(pod_ip(to)));
            }
        }
        for (size_t k = 0; k < ARRAY_SIZE(tunnel_vnids); k++) {
            bool allowed =
                plugin == SDN_SUBNET || sdn_vnid_may_reach(tunnel_vnids[k], pod_vnids[to]);
            expect(delivered_if(allowed, to, want), FROM_VXLAN "ip,nw_src=%s,nw_dst=%s",
                   IP4_TEXT(NODE2), tunnel_vnids[k], IP4_TEXT(POD_ON_NODE2), IP4_TEXT(pod_ip(to)));
        }
    }
}

static void multitenant_delivers_as_the_model_says(void **state)
{
    expect_isolation_of_model(SDN_MULTITENANT);
}

static void subnet_delivers_everything(void **state)
{
    expect_isolation_of_model(SDN_SUBNET);
}

/* PKT-04, OMT-07, OSN-03 */
static void remote_packets_carry_the_vnid_to_the_owning_node(void **state)
{
    for (enum sdn_plugin plugin = SDN_SUBNET; plugin <= SDN_MULTITENANT; plugin++) {
        use_plugin(plugin);
        for (size_t i = 0; i < N_PODS; i++) {
            char want[64];
            snprintf(want, sizeof want, "vxlan to=192.168.100.2 vni=%u",
                     sdn_effective_vnid(&net, pod_vnids[i]));
            expect(want, FROM_POD "ip,nw_src=%s,nw_dst=%s", FROM_POD_ARGS(i), IP4_TEXT(pod_ip(i)),
                   IP4_TEXT(POD_ON_NODE2));
            expect("vxlan to=192.168.100.3 vni=0", FROM_POD "ip,nw_src=%s,nw_dst=%s",
                   FROM_POD_ARGS(i), IP4_TEXT(pod_ip(i)), IP4_TEXT(POD_ON_NODE3));
        }
        expect("vxlan to=192.168.100.2 vni=0", FROM_HOST "ip,nw_src=%s,nw_dst=%s",
               IP4_TEXT(GATEWAY), IP4_TEXT(POD_ON_NODE2));
    }
}

/* ISO-10: whatever a pod claims, it is what its port says or nothing. */
static void pods_cannot_spoof(void **state)
{
    use_plugin(SDN_MULTITENANT);
    const char *mac0 = MAC_TEXT(mac_from_ip4(pod_ip(0)));
    static const uint32_t others[] = {IP(10, 128, 0, 3),    GATEWAY, POD_ON_NODE2, OUTSIDE,
                                      IP(192, 168, 100, 1), 0};
    for (size_t k = 0; k < ARRAY_SIZE(others); k++) {
        expect("drop", FROM_POD "ip,nw_src=%s,nw_dst=%s", FROM_POD_ARGS((size_t) 0),
               IP4_TEXT(others[k]), IP4_TEXT(pod_ip(3)));
        expect("drop", FROM_POD "arp,arp_op=1,arp_spa=%s,arp_sha=%s,arp_tpa=%s",
               FROM_POD_ARGS((size_t) 0), IP4_TEXT(others[k]), mac0, IP4_TEXT(GATEWAY));
    }
    /* Another pod's Ethernet address, in the frame and in ARP. */
    expect("drop", "in_port=p0,dl_src=0a:58:0a:80:00:03,ip,nw_src=10.128.0.2,nw_dst=10.128.0.3");
    expect("drop", FROM_POD "arp,arp_op=1,arp_spa=%s,arp_sha=0a:58:0a:80:00:03,arp_tpa=%s",
           FROM_POD_ARGS((size_t) 0), IP4_TEXT(pod_ip(0)), IP4_TEXT(GATEWAY));
    /* Another pod's everything, from the wrong port; and a port that is no pod's. */
    expect("drop", "in_port=p1,dl_src=%s,ip,nw_src=10.128.0.2,nw_dst=10.128.0.5", mac0);
    expect("drop", "in_port=LOCAL,dl_src=%s,ip,nw_src=10.128.0.2,nw_dst=10.128.0.5", mac0);
    /* Tunnel packets of its own making, inwards, outwards and to the host. */
    static const uint32_t targets[] = {NODE2, IP(192, 168, 100, 1), GATEWAY, POD_ON_NODE2,
                                       IP(10, 128, 0, 3)};
    for (size_t k = 0; k < ARRAY_SIZE(targets); k++) {
        expect("drop", FROM_POD "udp,nw_src=%s,nw_dst=%s,udp_src=5,udp_dst=4789",
               FROM_POD_ARGS((size_t) 0), IP4_TEXT(pod_ip(0)), IP4_TEXT(targets[k]));
    }
    /* A VLAN tag is no way around anything. */
    expect("drop", FROM_POD "dl_vlan=7,ip,nw_src=%s,nw_dst=%s", FROM_POD_ARGS((size_t) 0),
           IP4_TEXT(pod_ip(0)), IP4_TEXT(pod_ip(1)));
    expect("drop", FROM_POD "vlan_tci=0x1000,ip,nw_src=%s,nw_dst=%s", FROM_POD_ARGS((size_t) 0),
           IP4_TEXT(pod_ip(0)), IP4_TEXT(OUTSIDE));
}

static void pods_reach_host_and_outside_whatever_their_vnid(void **state)
{
    for (enum sdn_plugin plugin = SDN_SUBNET; plugin <= SDN_MULTITENANT; plugin++) {
        use_plugin(plugin);
        static const uint32_t targets[] = {GATEWAY, OUTSIDE, NODE2, IP(192, 168, 100, 1)};
        char want[64];
        for (size_t i = 0; i < N_PODS; i++) {
            for (size_t k = 0; k < ARRAY_SIZE(targets); k++) {
                expect(to_host(want), FROM_POD "tcp,nw_src=%s,nw_dst=%s,tcp_dst=443",
                       FROM_POD_ARGS(i), IP4_TEXT(pod_ip(i)), IP4_TEXT(targets[k]));
            }
        }
    }
}

static void host_and_outside_reach_local_pods_whatever_their_vnid(void **state)
{
    use_plugin(SDN_MULTITENANT);
    static const uint32_t sources[] = {GATEWAY, OUTSIDE, NODE2, IP(192, 168, 100, 1)};
    char want[64];
    for (size_t i = 0; i < N_PODS; i++) {
        for (size_t k = 0; k < ARRAY_SIZE(sources); k++) {
            expect(to_pod(i, want), FROM_HOST "ip,nw_src=%s,nw_dst=%s", IP4_TEXT(sources[k]),
                   IP4_TEXT(pod_ip(i)));
        }
    }
}

static void host_side_cannot_pass_for_a_pod(void **state)
{
    use_plugin(SDN_MULTITENANT);
    static const uint32_t sources[] = {IP(10, 128, 0, 2), IP(10, 128, 0, 77), POD_ON_NODE2,
                                       IP(10, 131, 255, 254)};
    static const uint32_t targets[] = {IP(10, 128, 0, 3), POD_ON_NODE2, OUTSIDE};
    for (size_t k = 0; k < ARRAY_SIZE(sources); k++) {
        for (size_t t = 0; t < ARRAY_SIZE(targets); t++) {
            expect("drop", FROM_HOST "ip,nw_src=%s,nw_dst=%s", IP4_TEXT(sources[k]),
                   IP4_TEXT(targets[t]));
        }
    }
    /* Neither does it use the bridge as a router: outside to outside, or outside to other nodes' pods. */
    expect("drop", FROM_HOST "ip,nw_src=8.8.8.8,nw_dst=9.9.9.9");
    expect("drop", FROM_HOST "ip,nw_src=8.8.8.8,nw_dst=%s", IP4_TEXT(POD_ON_NODE2));
    expect("drop", FROM_HOST "ip,nw_src=%s,nw_dst=9.9.9.9", IP4_TEXT(GATEWAY));
    expect("drop", FROM_HOST "ip,nw_src=%s,nw_dst=%s", IP4_TEXT(GATEWAY), IP4_TEXT(GATEWAY));
}

static void tunnel_is_taken_from_known_nodes_and_their_subnets_only(void **state)
{
    use_plugin(SDN_MULTITENANT);
    /* An unknown node; a known one with another's, a local, the gateway's, an outside source. */
    expect("drop", FROM_VXLAN "ip,nw_src=%s,nw_dst=%s", "192.168.100.9", 0u, IP4_TEXT(POD_ON_NODE2),
           IP4_TEXT(pod_ip(0)));
    static const uint32_t sources[] = {POD_ON_NODE3, IP(10, 128, 0, 3), GATEWAY, OUTSIDE};
    for (size_t k = 0; k < ARRAY_SIZE(sources); k++) {
        expect("drop", FROM_VXLAN "ip,nw_src=%s,nw_dst=%s", IP4_TEXT(NODE2), 0u,
               IP4_TEXT(sources[k]), IP4_TEXT(pod_ip(0)));
    }
    /* Nothing that came by the tunnel leaves by it, or for the outside. */
    static const uint32_t targets[] = {POD_ON_NODE2, POD_ON_NODE3,      IP(10, 131, 0, 1),
                                       OUTSIDE,      IP(172, 30, 0, 1), IP(10, 128, 0, 99)};
    for (size_t k = 0; k < ARRAY_SIZE(targets); k++) {
        expect("drop", FROM_VXLAN "ip,nw_src=%s,nw_dst=%s", IP4_TEXT(NODE2), 0u,
               IP4_TEXT(POD_ON_NODE2), IP4_TEXT(targets[k]));
    }
    /* Remote pods, of any project, answer this host's processes. */
    char want[64];
    expect(to_host(want), FROM_VXLAN "tcp,nw_src=%s,nw_dst=%s", IP4_TEXT(NODE2), 42u,
           IP4_TEXT(POD_ON_NODE2), IP4_TEXT(GATEWAY));
    /* The host with the fixed VNID sends its own tunnel id. */
    expect(to_pod(2, want), FROM_VXLAN "ip,nw_src=%s,nw_dst=%s", IP4_TEXT(NODE3), 0u,
           IP4_TEXT(POD_ON_NODE3), IP4_TEXT(pod_ip(2)));
}

static void what_leads_nowhere_is_dropped(void **state)
{
    for (enum sdn_plugin plugin = SDN_SUBNET; plugin <= SDN_MULTITENANT; plugin++) {
        use_plugin(plugin);
        static const uint32_t targets[] = {
            IP(10, 128, 0, 99),                     /* No such pod here. */
            IP(10, 128, 0, 0),                      /* The subnet itself, and its broadcast. */
            IP(10, 128, 1, 255), IP(10, 130, 0, 2), /* Nobody's subnet. */
            IP(172, 30, 0, 1),   IP(224, 0, 0, 251), IP(239, 255, 255, 250), IP(255, 255, 255, 255),
        };
        for (size_t k = 0; k < ARRAY_SIZE(targets); k++) {
            expect("drop", FROM_POD "udp,nw_src=%s,nw_dst=%s,udp_dst=53", FROM_POD_ARGS((size_t) 3),
                   IP4_TEXT(pod_ip(3)), IP4_TEXT(targets[k]));
            expect("drop", FROM_HOST "udp,nw_src=%s,nw_dst=%s,udp_dst=53", IP4_TEXT(GATEWAY),
                   IP4_TEXT(targets[k]));
        }
        expect("drop", FROM_POD "ipv6", FROM_POD_ARGS((size_t) 0));
        expect("drop", FROM_POD "dl_type=0x88cc", FROM_POD_ARGS((size_t) 0));
        expect("drop", FROM_POD "rarp", FROM_POD_ARGS((size_t) 0));
        expect("drop", FROM_HOST "ipv6");
        expect("drop", FROM_HOST "dl_type=0x88cc");
        expect("drop", FROM_VXLAN "ipv6", IP4_TEXT(NODE2), 0u);
        expect("drop", "in_port=LOCAL,ipv6");
    }
}

/* ---- ARP ---- */

static const char *arp_reply(const char *to, uint32_t target, uint32_t asker, struct mac asker_mac,
                             char out[256])
{
    struct mac m = mac_from_ip4(target);
    snprintf(out, 256, "%s arp %s is-at %s to %s/%s, eth %s>%s", to, IP4_TEXT(target), MAC_TEXT(m),
             IP4_TEXT(asker), MAC_TEXT(asker_mac), MAC_TEXT(m), MAC_TEXT(asker_mac));
    return out;
}

static void arp_of_pods_is_answered_for_what_exists(void **state)
{
    use_plugin(SDN_MULTITENANT);
    struct mac mac = mac_from_ip4(pod_ip(0));
    char want[256], to[64];
    snprintf(to, sizeof to, "p0 dst=%s", MAC_TEXT(mac));
#define POD_ARP "in_port=p0,dl_src=%s,dl_dst=ff:ff:ff:ff:ff:ff,arp,arp_op=%d,arp_spa=%s,arp_sha=%s,"
#define POD_ARP_ARGS(op) MAC_TEXT(mac), (op), IP4_TEXT(pod_ip(0)), MAC_TEXT(mac)
    static const uint32_t answered[] = {GATEWAY, IP(10, 128, 0, 3), IP(10, 128, 0, 5), POD_ON_NODE2,
                                        IP(10, 131, 7, 7)};
    for (size_t k = 0; k < ARRAY_SIZE(answered); k++) {
        expect(arp_reply(to, answered[k], pod_ip(0), mac, want), POD_ARP "arp_tpa=%s",
               POD_ARP_ARGS(1), IP4_TEXT(answered[k]));
        expect("drop", POD_ARP "arp_tpa=%s", POD_ARP_ARGS(2), IP4_TEXT(answered[k]));
    }
    static const uint32_t silent[] = {IP(10, 128, 0, 99), IP(10, 128, 1, 255), OUTSIDE,
                                      IP(172, 30, 0, 1), IP(192, 168, 100, 1)};
    for (size_t k = 0; k < ARRAY_SIZE(silent); k++) {
        expect("drop", POD_ARP "arp_tpa=%s", POD_ARP_ARGS(1), IP4_TEXT(silent[k]));
    }
}

static void arp_of_the_host_is_answered_for_what_exists(void **state)
{
    use_plugin(SDN_MULTITENANT);
    struct mac mac = mac_from_ip4(GATEWAY);
    char want[256], to[64];
    snprintf(to, sizeof to, "tun0 dst=%s", MAC_TEXT(mac));
#define HOST_ARP                                                                              \
    "in_port=tun0,dl_src=%s,dl_dst=ff:ff:ff:ff:ff:ff,arp,arp_op=1,arp_spa=%s,arp_sha=%s,arp_" \
    "tpa=%s"
    static const uint32_t askers[] = {GATEWAY, IP(192, 168, 100, 1)};
    for (size_t k = 0; k < ARRAY_SIZE(askers); k++) {
        static const uint32_t answered[] = {IP(10, 128, 0, 2), POD_ON_NODE2};
        for (size_t t = 0; t < ARRAY_SIZE(answered); t++) {
            expect(arp_reply(to, answered[t], askers[k], mac, want), HOST_ARP, MAC_TEXT(mac),
                   IP4_TEXT(askers[k]), MAC_TEXT(mac), IP4_TEXT(answered[t]));
        }
        expect("drop", HOST_ARP, MAC_TEXT(mac), IP4_TEXT(askers[k]), MAC_TEXT(mac), "10.128.0.99");
        expect("drop", HOST_ARP, MAC_TEXT(mac), IP4_TEXT(askers[k]), MAC_TEXT(mac), "8.8.8.8");
    }
    /* RFC 826: the answer goes to the hardware address in the question, whatever frame brought it. */
    expect(arp_reply(to, POD_ON_NODE2, GATEWAY, mac, want), HOST_ARP, "02:00:00:00:00:99",
           IP4_TEXT(GATEWAY), MAC_TEXT(mac), IP4_TEXT(POD_ON_NODE2));
}

/* PKT-07 */
static void arp_by_the_tunnel_is_answered_for_local_pods(void **state)
{
    use_plugin(SDN_MULTITENANT);
    struct mac mac = mac_from_ip4(POD_ON_NODE2);
    char want[256];
#define VXLAN_ARP                                                                       \
    FROM_VXLAN "dl_src=%s,dl_dst=ff:ff:ff:ff:ff:ff,arp,arp_op=1,arp_spa=%s,arp_sha=%s," \
               "arp_tpa=%s"
    static const uint32_t answered[] = {IP(10, 128, 0, 2), IP(10, 128, 0, 4), GATEWAY};
    for (size_t k = 0; k < ARRAY_SIZE(answered); k++) {
        expect(arp_reply("vxlan to=192.168.100.2 vni=42", answered[k], POD_ON_NODE2, mac, want),
               VXLAN_ARP, IP4_TEXT(NODE2), 42u, MAC_TEXT(mac), IP4_TEXT(POD_ON_NODE2),
               MAC_TEXT(mac), IP4_TEXT(answered[k]));
        /* Not for a stranger, and not for another node's pod. */
        expect("drop", VXLAN_ARP, "192.168.100.9", 42u, MAC_TEXT(mac), IP4_TEXT(POD_ON_NODE2),
               MAC_TEXT(mac), IP4_TEXT(answered[k]));
        expect("drop", VXLAN_ARP, IP4_TEXT(NODE2), 42u, MAC_TEXT(mac), IP4_TEXT(POD_ON_NODE3),
               MAC_TEXT(mac), IP4_TEXT(answered[k]));
    }
    static const uint32_t silent[] = {IP(10, 128, 0, 99), POD_ON_NODE2, POD_ON_NODE3, OUTSIDE};
    for (size_t k = 0; k < ARRAY_SIZE(silent); k++) {
        expect("drop", VXLAN_ARP, IP4_TEXT(NODE2), 0u, MAC_TEXT(mac), IP4_TEXT(POD_ON_NODE2),
               MAC_TEXT(mac), IP4_TEXT(silent[k]));
    }
}

/* The bytes that leave a port, not only what a trace promises. */
static void arp_reply_on_the_wire_is_complete(void **state)
{
    use_plugin(SDN_MULTITENANT);
    static const uint8_t want[] = {
        0x0a, 0x58, 10, 128, 0,    2,    0x0a, 0x58, 10,   128,  0,  1,   8, 6,
        0,    1,    8,  0,   6,    4,    0,    2,    0x0a, 0x58, 10, 128, 0, 1,
        10,   128,  0,  1,   0x0a, 0x58, 10,   128,  0,    2,    10, 128, 0, 2,
    };
    OVS_APPCTL(&ovs, NULL, "netdev-dummy/receive", "p0",
               "ffffffffffff0a580a80000208060001080006040001"
               "0a580a8000020a800002"
               "0000000000000a800001");
    char path[80];
    snprintf(path, sizeof path, "%s/p0.pcap", ovs.dir);
    enum { PCAP_HEADERS = 24 + 16 };
    uint8_t file[PCAP_HEADERS + 60] = {0};
    size_t n = 0;
    for (int i = 0; i < 1000 && n < PCAP_HEADERS + sizeof want; i++) {
        FILE *f = fopen(path, "re");
        n = f ? fread(file, 1, sizeof file, f) : 0;
        if (f) {
            fclose(f);
        }
        nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
    }
    assert_true(n >= PCAP_HEADERS + sizeof want);
    assert_memory_equal(file + PCAP_HEADERS, want, sizeof want);
}

int main(void)
{
    if (ovs_unavailable()) {
        print_message("skipped: %s\n", ovs_unavailable());
        return 77; /* What meson counts as skipped. */
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(multitenant_delivers_as_the_model_says),
        cmocka_unit_test(subnet_delivers_everything),
        cmocka_unit_test(remote_packets_carry_the_vnid_to_the_owning_node),
        cmocka_unit_test(pods_cannot_spoof),
        cmocka_unit_test(pods_reach_host_and_outside_whatever_their_vnid),
        cmocka_unit_test(host_and_outside_reach_local_pods_whatever_their_vnid),
        cmocka_unit_test(host_side_cannot_pass_for_a_pod),
        cmocka_unit_test(tunnel_is_taken_from_known_nodes_and_their_subnets_only),
        cmocka_unit_test(what_leads_nowhere_is_dropped),
        cmocka_unit_test(arp_of_pods_is_answered_for_what_exists),
        cmocka_unit_test(arp_of_the_host_is_answered_for_what_exists),
        cmocka_unit_test(arp_by_the_tunnel_is_answered_for_local_pods),
        cmocka_unit_test(arp_reply_on_the_wire_is_complete),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
