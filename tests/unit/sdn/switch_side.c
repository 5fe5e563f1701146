/* SPDX-License-Identifier: Apache-2.0 */
#include "switch_side.h"

#include "base/str.h"
#include "sdn/pipeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define IP(a, b, c, d) \
    ((uint32_t) (a) << 24 | (uint32_t) (b) << 16 | (uint32_t) (c) << 8 | (uint32_t) (d))
#define HOST(i) IP(192, 168, 100, i)

/* ---- set-up ---- */

void switch_side_open(struct switch_side *s)
{
    *s = (struct switch_side){.reply = STRBUF_INIT};
    ovs_start(&s->ovs);
    OVS_VSCTL(&s->ovs, "add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev",
              "fail_mode=secure", "--", "add-port", "br0", "vxlan0", "--", "set", "interface",
              "vxlan0", "type=vxlan", "options:remote_ip=flow", "options:key=flow",
              "ofport_request=1", "--", "add-port", "br0", "tun0", "--", "set", "interface", "tun0",
              "type=dummy", "ofport_request=2");
    for (unsigned i = 0; i < SWITCH_PORTS; i++) {
        char name[16], ofport[32];
        snprintf(name, sizeof name, "p%u", i);
        snprintf(ofport, sizeof ofport, "ofport_request=%u", SWITCH_FIRST_PORT + i);
        OVS_VSCTL(&s->ovs, "add-port", "br0", name, "--", "set", "interface", name, "type=dummy",
                  ofport);
    }
    /* The physical network: where tunnels find their way. */
    OVS_VSCTL(&s->ovs, "add-br", "br-phy", "--", "set", "bridge", "br-phy", "datapath_type=netdev",
              "--", "add-port", "br-phy", "nic", "--", "set", "interface", "nic", "type=dummy");
    OVS_RUN(&s->ovs, NULL, "ip", "addr", "add", "192.168.100.1/24", "dev", "br-phy");
    OVS_RUN(&s->ovs, NULL, "ip", "link", "set", "br-phy", "up");
    ovs_add_route(&s->ovs, "192.168.100.0/24", "br-phy");
    unixctl_open(&s->ctl, &s->ovs);
    for (unsigned i = 2; i <= 1 + SWITCH_HOSTS; i++) {
        char mac[32];
        snprintf(mac, sizeof mac, "02:00:00:00:00:%02x", i);
        UNIXCTL_SEND(&s->ctl, "tnl/arp/set", "br-phy", IP4_TEXT(HOST(i)), mac);
        assert_int_equal(unixctl_receive(&s->ctl, &s->reply), 0);
    }
    OVS_RUN(&s->ovs, NULL, "ovs-ofctl", "-O", "OpenFlow14", "add-meter", "br0",
            "meter=1,pktps,burst,band=type=drop,rate=100,burst_size=100");
    OVS_RUN(&s->ovs, NULL, "ovs-ofctl", "-O", "OpenFlow14", "set-frags", "br0", "nx-match");
    of_client_open(&s->client, &s->ovs, "br0");
}

void switch_side_close(struct switch_side *s)
{
    of_client_close(&s->client);
    unixctl_close(&s->ctl);
    strbuf_done(&s->reply);
    ovs_stop(&s->ovs);
}

/* ---- flows ---- */

/* Of several flows with one key the switch gets that with the lowest cookie, as from the datapath. */
static void commit_winners(struct switch_side *s, struct of_flow_list *l)
{
    struct of_flow_list winners = {0};
    for (size_t i = 0; i < l->n; i++) {
        bool wins = true;
        for (size_t k = 0; k < l->n && wins; k++) {
            wins = k == i || l->flows[k]->cookie > l->flows[i]->cookie ||
                   (l->flows[k]->cookie == l->flows[i]->cookie && k > i) ||
                   !of_flow_same_key(l->flows[k], l->flows[i]);
        }
        if (wins) {
            of_flow_list_add(&winners, of_flow_clone(l->flows[i]));
        }
    }
    of_client_commit(&s->client, OF_FLOW_ADD, &winners);
    of_flow_list_done(&winners);
}

void switch_side_load(struct switch_side *s, const struct sdn_network *net,
                      const struct model_pod *pods, size_t n_pods, struct of_flow_list *more)
{
    struct of_flow_list all = {0};
    struct of_builder b;
    of_begin(&b, UINT8_MAX, 0, 0);
    of_end_into(&b, &all);
    of_client_commit(&s->client, OF_FLOW_DELETE, &all);
    of_flow_list_done(&all);
    pipeline_base(net, more);
    for (size_t i = 0; i < net->n_remotes; i++) {
        pipeline_remote(net, &net->remotes[i], more);
    }
    for (size_t i = 0; i < n_pods; i++) {
        const struct model_pod *p = &pods[i];
        pipeline_pod(net,
                     &(struct pipeline_pod){.ofport = p->port,
                                            .ip = p->ip,
                                            .mac = p->mac,
                                            .vnid = p->vnid,
                                            .has_also_vnid = p->has_also_vnid,
                                            .also_vnid = p->also_vnid},
                     more);
        bool first = true;
        for (size_t k = 0; k < i; k++) {
            first &= pods[k].vnid != p->vnid;
        }
        if (first) {
            pipeline_vnid(net, p->vnid, more);
        }
    }
    commit_winners(s, more);
    of_flow_list_done(more);
}

/* ---- traces ---- */

static void port_name(const struct model_packet *p, uint32_t port, char out[16])
{
    if (p->entry == MODEL_FROM_TUNNEL) {
        snprintf(out, 16, "vxlan0");
    } else if (p->entry == MODEL_FROM_HOST) {
        snprintf(out, 16, "tun0");
    } else if (port == SWITCH_LOCAL_PORT) {
        snprintf(out, 16, "LOCAL");
    } else {
        snprintf(out, 16, "p%u", port - SWITCH_FIRST_PORT);
    }
}

/* The tracker takes the packet that an ICMP error quotes for one of its connection's own direction, or for a reply. */
static bool quotes_reply(const struct model_packet *p)
{
    return (p->ip.quoted_dst ^ p->ip.dst) & 1;
}

void switch_quoted_text(const struct model_packet *p, struct strbuf *ret)
{
    bool reply = quotes_reply(p);
    /* A trace takes addresses of a connection with a few states only; the tracker says another one before it is asked for. */
    strbuf_addf(ret, "ct_state=trk|rpl,ct_nw_proto=17,ct_nw_src=%s,ct_nw_dst=%s",
                IP4_TEXT(reply ? p->ip.quoted_dst : p->ip.dst),
                IP4_TEXT(reply ? p->ip.dst : p->ip.quoted_dst));
}

void switch_metadata_text(const struct sdn_network *n, const struct model_packet *p,
                          struct strbuf *ret)
{
    char port[16];
    port_name(p, p->port, port);
    strbuf_addf(ret, "in_port=%s,", port);
    if (p->entry == MODEL_FROM_TUNNEL) {
        strbuf_addf(ret, "tun_src=%s,tun_dst=%s,tun_id=%u,", IP4_TEXT(p->outer_src),
                    IP4_TEXT(n->host_ip), p->tunnel_id);
    }
}

void switch_side_send(struct switch_side *s, const struct model_node *n,
                      const struct model_packet *p, const char *flow, const char *hex)
{
    static const char *const states[] = {[MODEL_NEW] = "trk,new",
                                         [MODEL_ORIGINAL] = "trk,est",
                                         [MODEL_REPLY] = "trk,est,rpl",
                                         [MODEL_RELATED] = "trk,rel",
                                         [MODEL_INVALID] = "trk,inv"};
    bool ip = p->eth_type == MODEL_ETH_IP4;
    const char *tracked = states[ip ? p->ip.connection : MODEL_NEW];
    if (ip && p->ip.connection == MODEL_RELATED && !quotes_reply(p)) {
        tracked = "trk,rel,rpl";
    }
    const char *next[] = {tracked, "trk,new", "trk,new"};
    if (ip && model_asks_services(n, p)) {
        /* Among the connections to services it is new, and when it was made one; then policy asks. */
        bool made = model_judge(n, p).action == MODEL_TRANSLATE;
        next[0] = "trk,new";
        next[1] = made ? "trk,new" : tracked;
        next[2] = tracked;
    }
    UNIXCTL_SEND(&s->ctl, "ofproto/trace", "--names", "--ct-next", next[0], "--ct-next", next[1],
                 "--ct-next", next[2], "br0", flow, hex);
}

const char *switch_side_receive(struct switch_side *s)
{
    if (unixctl_receive(&s->ctl, &s->reply) < 0) {
        fail_msg("ofproto/trace: %s", strbuf_cstr(&s->reply));
    }
    return strbuf_cstr(&s->reply);
}

/* ---- what the model expects ---- */

/* Where docs/pipeline.md has packets of this cause die. */
static const char *table_of(enum model_cause cause, const struct model_packet *p)
{
    switch (cause) {
    case MODEL_NOT_DROPPED:
    case MODEL_N_CAUSES:
        break;
    case MODEL_NOT_IP: /* IP is named there; what else the host sends is not what table 30 takes. */
        return p->entry == MODEL_FROM_HOST && p->eth_type != 0x86dd && p->eth_type != MODEL_ETH_IP4
                   ? "from-host"
                   : "classify";
    case MODEL_VLAN_TAGGED:
    case MODEL_MULTICAST:
        return "classify";
    case MODEL_NOT_FOR_THIS_NODE:
        return p->entry == MODEL_FROM_HOST ? "from-host" : "classify";
    case MODEL_FORGED_TUNNEL:
    case MODEL_UNKNOWN_PORT:
        return "from-pod";
    case MODEL_UNKNOWN_VTEP:
        return "from-vxlan";
    case MODEL_CONNECTION_DENIED:
        return "state";
    case MODEL_FORGED_ERROR:
        return "egress-subject";
    case MODEL_EGRESS_DENIED:
        return "egress-denied";
    case MODEL_INGRESS_DENIED:
        return "ingress-denied";
    case MODEL_SPOOFED_SOURCE:
        return p->entry == MODEL_FROM_HOST     ? "from-host"
               : p->entry == MODEL_FROM_TUNNEL ? "from-vxlan"
                                               : "from-pod";
    case MODEL_ARP_NOT_ASKED:
    case MODEL_ARP_OFF_NETWORK:
        return "arp";
    case MODEL_SERVICE_NOT_AVAILABLE:
        return p->entry == MODEL_FROM_PORT && !p->ip.translated ? "service" : "route";
    case MODEL_SERVICE_INVALID:
        return "from-itself";
    case MODEL_SERVICE_FOREIGN:
        return "service-isolation";
    case MODEL_SERVICE_NO_ENDPOINTS:
    case MODEL_SERVICE_IDLE:
        return "service-choice";
    case MODEL_NO_SUCH_NODE:
        return "remote";
    case MODEL_NO_SUCH_POD:
        return p->eth_type == MODEL_ETH_ARP ? "arp" : "local";
    case MODEL_OWN_ADDRESS:
        return "local";
    case MODEL_VNID_MISMATCH:
        return "isolation";
    case MODEL_BACK_TO_HOST:
        return "host";
    case MODEL_METADATA:
        return "route";
    case MODEL_FIREWALL_DENIED:
        return "egress-firewall";
    }
    fail_msg("no such cause: %d", (int) cause);
    return NULL;
}

/* "drop in TABLE: CAUSE", or "OUTPUTS eth SRC>DST" and the fields of IP or ARP with which it leaves. */
void switch_expected_text(const struct sdn_network *n, const struct model_packet *p,
                          const struct model_verdict *v, struct strbuf *ret)
{
    bool policy = n->plugin == SDN_NETWORKPOLICY;
    struct mac gateway = mac_from_ip4(sdn_gateway(n));
    char port[16];
    bool tracked = policy && p->eth_type == MODEL_ETH_IP4;
    bool onward = p->ip.connection == MODEL_ORIGINAL;
    if (tracked && (v->cause == MODEL_EGRESS_DENIED || v->cause == MODEL_INGRESS_DENIED) &&
        onward && !p->ip.denied) {
        strbuf_adds(ret, "denied from now on, ");
    }
    bool passes = v->action != MODEL_DROP;
    bool at_the_end = v->cause == MODEL_NO_SUCH_NODE || v->cause == MODEL_BACK_TO_HOST;
    if (tracked && !v->to_itself && (passes || at_the_end) &&
        (p->ip.connection == MODEL_NEW || (onward && p->ip.denied))) {
        strbuf_adds(ret, "allowed from now on, ");
    }
    if (v->action == MODEL_TRANSLATE) {
        strbuf_addf(ret, "to an endpoint of %s", v->service->service->name);
        return;
    }
    if (v->action == MODEL_DROP) {
        strbuf_addf(ret, "drop in %s: %s%s", table_of(v->cause, p), model_cause_name(v->cause),
                    v->refused ? ", refused" : "");
        return;
    }
    if (v->action == MODEL_DELIVER) {
        strbuf_addf(ret, "p%u", v->port - SWITCH_FIRST_PORT);
    } else if (v->action == MODEL_HOST) {
        strbuf_adds(ret, "tun0");
    } else if (v->action == MODEL_TUNNEL || p->entry == MODEL_FROM_TUNNEL) {
        strbuf_addf(ret, "vxlan(to=%s,id=%u)", IP4_TEXT(v->remote), v->tunnel_id);
    } else {
        port_name(p, v->port, port);
        strbuf_adds(ret, port);
    }
    if (v->action == MODEL_ANSWER) {
        strbuf_addf(ret, " eth %s>%s arp 2 %s/%s>%s/%s", MAC_TEXT(v->answer_mac),
                    MAC_TEXT(v->eth_dst), IP4_TEXT(v->answer_ip), MAC_TEXT(v->answer_mac),
                    IP4_TEXT(p->arp.spa), MAC_TEXT(p->arp.sha));
    } else {
        struct mac src = v->to_itself ? gateway : p->eth_src;
        uint32_t ip = v->to_itself ? SDN_ITSELF_IP : p->ip.src;
        strbuf_addf(ret, " eth %s>%s ip %s>%s", MAC_TEXT(src), MAC_TEXT(v->eth_dst), IP4_TEXT(ip),
                    IP4_TEXT(p->ip.dst));
    }
}
