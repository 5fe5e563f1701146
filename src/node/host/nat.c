/* SPDX-License-Identifier: Apache-2.0 */
#include "node/host/nat.h"

#include "base/mem.h"
#include "datapath/datapath.h"
#include "net/kernel/nft.h"
#include "net/loop/process.h"

#include <stdio.h>

#define NFT_TIMEOUT_MS 20000

/* ---- the rules ---- */

static void write_set(const struct sdn_network *n, struct strbuf *out)
{
    strbuf_adds(out, "{ ");
    for (size_t i = 0; i < n->n_cluster; i++) {
        strbuf_addf(out, "%s%s", i ? ", " : "", PREFIX_TEXT(n->cluster[i]));
    }
    strbuf_adds(out, " }");
}

static void write_port(const struct nat_port *port, struct strbuf *out)
{
    const struct cni_host_port *p = &port->is.port;
    strbuf_adds(out, "\t\t");
    if (p->host_ip) {
        strbuf_addf(out, "ip daddr %s ", IP4_TEXT(p->host_ip));
    } else if (port->not_at_loopback) {
        strbuf_adds(out, "ip daddr != 127.0.0.0/8 ");
    }
    strbuf_addf(out, "%s dport %u dnat to %s:%u\n", cni_protocol_name(p->protocol), p->host_port,
                IP4_TEXT(port->is.pod_ip), p->port);
}

/* Connections from outside and from the host's processes to an address of the host lead to the pod.
 * Connections of pods do not: the datapath translates them where their sender is known, before they
 * come here (docs/services.md).  The gateway is the host as pods see it, and none of its ports
 * leads to a pod.  A packet that the host sends from 127.0.0.1 needs another source, so that the
 * pod can answer. */
static void write_ports(const struct sdn_network *n, const struct nat_port *ports, size_t n_ports,
                        struct strbuf *out)
{
    if (!n_ports) {
        return;
    }
    CLEANUP_FREE char *gateway = xstrdup(IP4_TEXT(sdn_gateway(n)));
    /* No datapath translates the packets of a routed network's pods. */
    const char *except = sdn_plugin_is_routed(n->plugin) ? "" : "iifname != \"" NAT_TUN "\" ";
    const char *link = sdn_gateway_link(n->plugin);
    strbuf_adds(out, "\tchain host_ports {\n");
    for (size_t i = 0; i < n_ports; i++) {
        write_port(&ports[i], out);
    }
    strbuf_addf(out,
                "\t}\n"
                "\tchain prerouting {\n"
                "\t\ttype nat hook prerouting priority dstnat; policy accept;\n"
                "\t\t%sip daddr != %s fib daddr type local jump host_ports\n"
                "\t}\n"
                "\tchain output {\n"
                "\t\ttype nat hook output priority -100; policy accept;\n"
                "\t\tip daddr != %s fib daddr type local jump host_ports\n"
                "\t}\n"
                "\tchain postrouting_host_ports {\n"
                "\t\ttype nat hook postrouting priority srcnat; policy accept;\n"
                "\t\toifname \"%s\" ct status dnat ip saddr 127.0.0.0/8 masquerade\n"
                "\t}\n",
                except, gateway, gateway, link);
}

/* The kernel accepts an ICMP error from any sender: "fragmentation needed" about an echo request
 * narrows its path to any address. A pod may report errors of connections that have a pod at one
 * end, and of no others: not of the node's, and not of tunnels, which connection tracking does not
 * know. The chain comes after connection tracking and before address translation, so it sees what
 * the pod sent, for the node and for others. No pod is a router, so none has a reason to send a
 * redirect. */
static void write_icmp_errors(const char *link, const char *cluster, struct strbuf *out)
{
    strbuf_addf(out,
                "\tchain prerouting_icmp {\n"
                "\t\ttype filter hook prerouting priority mangle; policy accept;\n"
                "\t\tiifname \"%s\" meta l4proto icmp ct state invalid counter name forged-icmp "
                "drop\n"
                "\t\tiifname \"%s\" icmp type { destination-unreachable, source-quench, "
                "redirect, time-exceeded, parameter-problem } jump icmp_errors\n"
                "\t}\n"
                "\tchain icmp_errors {\n"
                "\t\ticmp type redirect counter name forged-icmp drop\n"
                "\t\tct state related ct original ip saddr %s accept\n"
                "\t\tct state related ct reply ip saddr %s accept\n"
                "\t\tcounter name forged-icmp drop\n"
                "\t}\n",
                link, link, cluster, cluster);
}

/* The addresses of the nodes, which send to pods for themselves and for clients of services. */
static void write_peers(const struct sdn_network *n, struct strbuf *out)
{
    strbuf_addf(out, "\tset nodes {\n\t\ttype ipv4_addr\n\t\telements = { %s",
                IP4_TEXT(n->host_ip));
    for (size_t i = 0; i < n->n_remotes; i++) {
        strbuf_addf(out, ", %s", IP4_TEXT(n->remotes[i].host_ip));
    }
    strbuf_adds(out, " }\n\t}\n");
}

/* The rules of a routed network.  Packets between pods of different nodes come and go by the host's
 * own links, so a pod's address as source proves nothing there; from the local pods it must be one
 * of this node's.  A machine that is no node does not get to pods through this host unless a pod
 * began.  Two pods of this node see each other's packets on the bridge: an answer to a translated
 * packet would not pass the translation again, so the endpoint answers to the host. */
static void write_routed(const struct sdn_network *n, const char *cluster, struct strbuf *out)
{
    const char *link = sdn_gateway_link(n->plugin);
    CLEANUP_FREE char *local = xstrdup(PREFIX_TEXT(n->local));
    write_peers(n, out);
    strbuf_addf(out,
                "\tchain prerouting_raw {\n"
                "\t\ttype filter hook prerouting priority raw; policy accept;\n"
                "\t\tiifname \"%s\" ip daddr 127.0.0.0/8 counter name loopback drop\n"
                "\t\tiifname \"%s\" ip saddr != %s counter name spoofed drop\n"
                "\t\tiifname != { \"%s\", \"lo\" } ip saddr %s counter name spoofed drop\n"
                "\t}\n",
                link, link, local, link, local);
    write_icmp_errors(link, cluster, out);
    strbuf_addf(out,
                "\tchain forward {\n"
                "\t\ttype filter hook forward priority filter; policy accept;\n"
                "\t\tiifname \"%s\" ct state invalid counter name invalid drop\n"
                "\t\tct state established,related accept\n"
                "\t\tct status dnat accept\n"
                "\t\tip saddr %s accept\n"
                "\t\tip saddr @nodes accept\n"
                "\t\toifname \"%s\" counter name inbound drop\n"
                "\t\tip daddr %s counter name bypass drop\n"
                "\t}\n"
                "\tchain postrouting {\n"
                "\t\ttype nat hook postrouting priority srcnat; policy accept;\n"
                "\t\tip saddr %s ip daddr != %s oifname != \"%s\" masquerade\n"
                "\t\tip saddr %s ip daddr %s ct status dnat masquerade\n"
                "\t}\n",
                link, cluster, link, cluster, cluster, cluster, link, local, local);
}

void nat_write_rules(const struct sdn_network *n, const struct nat_port *ports, size_t n_ports,
                     struct strbuf *out)
{
    CLEANUP_STRBUF struct strbuf set = STRBUF_INIT;
    write_set(n, &set);
    const char *cluster = strbuf_cstr(&set);
    unsigned port = n->vxlan_port;

    /* Declaring the table first makes the deletion succeed in any case; the transaction then
     * replaces it. */
    strbuf_adds(out, "table ip tenet\n"
                     "delete table ip tenet\n"
                     "table ip tenet {\n");
    for (enum nat_drop d = 0; d < NAT_N_DROPS; d++) {
        strbuf_addf(out, "\tcounter %s {\n\t}\n", nat_drop_name(d));
    }
    if (sdn_plugin_is_routed(n->plugin)) {
        write_routed(n, cluster, out);
        write_ports(n, ports, n_ports, out);
        strbuf_adds(out, "}\n");
        return;
    }

    /* Tunnel packets are for br0 and need no connection tracking.  Pods may not send any: such a
     * packet would leave with the node's address, and the other nodes would accept its VNID.
     * Packets with a pod's source address come in by tun0 only; on any other link the source is
     * forged.  Pods may not reach the host's loopback, also when host ports need route_localnet.  A
     * packet that br_netfilter shows on a pod's bridge is on its way to br0, and is not translated
     * yet. */
    strbuf_addf(out,
                "\tchain prerouting_raw {\n"
                "\t\ttype filter hook prerouting priority raw; policy accept;\n"
                "\t\tiifname \"" NAT_TUN "\" udp dport %u counter name tunnel drop\n"
                "\t\tiifname \"" NAT_TUN "\" ip daddr 127.0.0.0/8 counter name loopback drop\n"
                "\t\tiifname \"" POOL_BRIDGE "*\" notrack accept\n"
                "\t\tiifname != { \"" NAT_TUN "\", \"lo\" } ip saddr %s counter name spoofed drop\n"
                "\t\tudp dport %u notrack\n"
                "\t}\n"
                "\tchain output_raw {\n"
                "\t\ttype filter hook output priority raw; policy accept;\n"
                "\t\tudp dport %u notrack\n"
                "\t}\n",
                port, cluster, port, port);
    write_icmp_errors(NAT_TUN, cluster, out);
    strbuf_addf(out,
                "\tchain input {\n"
                "\t\ttype filter hook input priority filter; policy accept;\n"
                "\t\tudp dport %u accept\n"
                "\t\tiifname \"" NAT_TUN "\" accept\n"
                "\t}\n",
                port);

    /* A packet that conntrack cannot place would leave untranslated.  A packet that enters br0 by
     * tun0 counts as the node's own and reaches every project, so no other sender may use that way:
     * neither a host that routes through this node nor a pod through the host.  Answers, and
     * packets redirected on purpose, may. */
    strbuf_addf(out,
                "\tchain forward {\n"
                "\t\ttype filter hook forward priority filter; policy accept;\n"
                "\t\tiifname \"" NAT_TUN "\" ct state invalid counter name invalid drop\n"
                "\t\toifname \"" NAT_TUN "\" ct state established,related accept\n"
                "\t\toifname \"" NAT_TUN "\" ct status dnat accept\n"
                "\t\toifname \"" NAT_TUN "\" counter name inbound drop\n"
                "\t\tip daddr %s counter name bypass drop\n"
                "\t}\n",
                cluster);
    /* Nor may translation make a tunnel packet: a service may name a node and the VXLAN port as its
     * endpoint. */
    strbuf_addf(out,
                "\tchain translated {\n"
                "\t\ttype filter hook postrouting priority filter; policy accept;\n"
                "\t\tudp dport %u ct status dnat counter name tunnel drop\n"
                "\t}\n",
                port);
    write_ports(n, ports, n_ports, out);
    strbuf_addf(out,
                "\tchain postrouting {\n"
                "\t\ttype nat hook postrouting priority srcnat; policy accept;\n"
                "\t\tip saddr %s ip daddr != %s oifname != \"" NAT_TUN "\" masquerade\n"
                "\t}\n"
                "}\n",
                cluster, cluster);
}

/* ---- keeping it ---- */

void nat_done(struct nat *nat)
{
    free(nat->applied);
    free(nat->listing);
    *nat = (struct nat){0};
}

/* The generation number of the rule set in this network namespace; it counts changes. */
static int get_generation(uint32_t *ret)
{
    CLEANUP(nft_close) struct nft *n = NULL;
    int r = nft_open(&n, NULL);
    return r < 0 ? r : nft_generation(n, ret, NULL);
}

/* The first line of nft's output, for an error. */
static int nft_failed(const char *what, int status, struct strbuf *text, struct err *e)
{
    const char *s = strbuf_cstr(text);
    return err_set(e, -EIO, "%s: nft: %.*s (exit status %d)", what, (int) strcspn(s, "\n"), s,
                   status);
}

static int nft_run(const char *rules, bool check_only, struct err *e)
{
    const char *const argv[] = {"nft", check_only ? "-cf" : "-f", "-", NULL};
    struct process_spec spec = PROCESS_SPEC_INIT;
    spec.argv = argv;
    spec.stdin_text = rules;
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT, text = STRBUF_INIT;
    int status = 0;
    int r = process_run(&spec, NFT_TIMEOUT_MS, &out, &text, &status, e);
    if (r < 0) {
        return err_prefix(e, "nftables table ip tenet");
    }
    return status ? nft_failed("nftables table ip tenet", status, &text, e) : 0;
}

/* Lists the table; '*ret' is empty when there is no such table. */
static int nft_list(char **ret, struct err *e)
{
    const char *const argv[] = {"nft", "-s", "list", "table", "ip", "tenet", NULL};
    struct process_spec spec = PROCESS_SPEC_INIT;
    spec.argv = argv;
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT, text = STRBUF_INIT;
    int status = 0;
    int r = process_run(&spec, NFT_TIMEOUT_MS, &out, &text, &status, e);
    if (r < 0) {
        return err_prefix(e, "list nftables table ip tenet");
    }
    if (status && !strstr(strbuf_cstr(&text), "No such file or directory")) {
        return nft_failed("list nftables table ip tenet", status, &text, e);
    }
    *ret = status ? xstrdup("") : strbuf_steal(&out);
    return 0;
}

int nat_sync(struct nat *nat, const char *rules, bool *ret_changed, struct err *e)
{
    bool wanted = nat->applied && streq(nat->applied, rules);
    uint32_t generation = 0;
    /* Read the number before the table: a change in between is then seen the next time. */
    bool counted = get_generation(&generation) == 0;
    if (wanted && counted && generation == nat->generation) {
        *ret_changed = false;
        return 0;
    }
    CLEANUP_FREE char *now = NULL;
    int r = wanted ? nft_list(&now, e) : 0;
    if (r < 0) {
        return r;
    }
    bool same = wanted && streq(now, nat->listing);
    if (!same) {
        r = nft_run(rules, false, e);
        counted = get_generation(&generation) == 0;
        CLEANUP_FREE char *listing = NULL;
        if (r == 0) {
            r = nft_list(&listing, e);
        }
        if (r == 0 && !*listing) {
            r = err_set(e, -EIO, "nftables table ip tenet: gone as soon as it was made");
        }
        if (r < 0) {
            nat_done(nat);
            return r;
        }
        char *applied = xstrdup(rules);
        nat_done(nat);
        nat->applied = applied;
        nat->listing = TAKE(listing);
    }
    nat->generation = counted ? generation : 0;
    *ret_changed = !same;
    return 0;
}

int nat_check(const char *rules, struct err *e)
{
    return nft_run(rules, true, e);
}
