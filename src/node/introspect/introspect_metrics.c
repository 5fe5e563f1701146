/* SPDX-License-Identifier: Apache-2.0 */
#include "node/introspect/introspect_priv.h"

#include <inttypes.h>
#include <stdio.h>

static void write_drops(const uint64_t drops[MODEL_N_CAUSES], struct strbuf *out)
{
    prom_head(out, "tenet_node_drops_total", "counter",
              "Packets that the datapath dropped, by cause.");
    for (enum model_cause c = 1; c < MODEL_N_CAUSES; c++) {
        strbuf_addf(out, "tenet_node_drops_total{cause=\"%s\"} %" PRIu64 "\n", model_cause_name(c),
                    drops[c]);
    }
}

static void write_host_drops(const struct nat_drops *d, struct strbuf *out)
{
    prom_head(out, "tenet_node_host_drops_total", "counter",
              "Packets that the host's nftables table dropped, by cause.");
    for (enum nat_drop c = 0; c < NAT_N_DROPS; c++) {
        strbuf_addf(out, "tenet_node_host_drops_total{cause=\"%s\"} %" PRIu64 "\n",
                    nat_drop_name(c), d->total[c]);
    }
}

static void write_switch(const struct introspect_view *v, struct strbuf *out)
{
    struct datapath_status s = {0};
    if (v->datapath) {
        datapath_get_status(v->datapath, &s);
    }
    prom_one(out, "tenet_node_switch_in_place", "gauge", "Whether Open vSwitch is as it should be.",
             s.in_place);
    prom_one(out, "tenet_node_flows", "gauge", "Flows that br0 should have.", s.flows);
    prom_one(out, "tenet_node_pods", "gauge", "Attached pods.", s.pods);
    prom_head(out, "tenet_node_refused_total", "counter",
              "What did not fit into the datapath's maps: pods, nodes, addresses and endpoints of "
              "services, rows of network policy.");
    strbuf_addf(out,
                "tenet_node_refused_total{what=\"pods\"} %zu\n"
                "tenet_node_refused_total{what=\"nodes\"} %zu\n"
                "tenet_node_refused_total{what=\"services\"} %zu\n"
                "tenet_node_refused_total{what=\"policy\"} %zu\n",
                s.pods_refused, s.nodes_refused, s.services_refused, s.policy_refused);
    prom_one(out, "tenet_node_remote_nodes", "gauge", "Other nodes that are used.", s.remotes);
    prom_one(out, "tenet_node_openflow_connections_total", "counter",
             "OpenFlow connections to br0 that were made.", s.connections);
    prom_one(out, "tenet_node_ovsdb_transactions_total", "counter", "Transactions sent to OVSDB.",
             s.transactions);
    prom_one(out, "tenet_node_bundles_total", "counter", "OpenFlow bundles sent.", s.bundles);
    prom_one(out, "tenet_node_bundles_refused_total", "counter",
             "OpenFlow bundles that the switch refused.", s.bundles_refused);
    prom_one(out, "tenet_node_flow_mods_total", "counter", "Changes of flows sent.", s.flow_mods);
    prom_head(out, "tenet_node_icmp_refusals_total", "counter",
              "Packets of pods that may be answered with an ICMP error.");
    strbuf_addf(out,
                "tenet_node_icmp_refusals_total{result=\"sent\"} %zu\n"
                "tenet_node_icmp_refusals_total{result=\"limited\"} %zu\n",
                s.refusals_sent, s.refusals_suppressed);
}

static void write_cni(const struct pods_stats *s, struct strbuf *out)
{
    prom_head(out, "tenet_node_cni_requests_total", "counter", "Requests of tenet-cni.");
    for (size_t c = 0; c < PODS_COMMANDS; c++) {
        const char *name = cni_command_name((enum cni_command) c);
        strbuf_addf(out,
                    "tenet_node_cni_requests_total{command=\"%s\",result=\"ok\"} %" PRIu64 "\n"
                    "tenet_node_cni_requests_total{command=\"%s\",result=\"failed\"} %" PRIu64 "\n",
                    name, s->ok[c], name, s->failed[c]);
    }
    prom_head(out, "tenet_node_cni_duration_seconds", "histogram",
              "Time from a request to its answer.");
    for (size_t c = 0; c < PODS_COMMANDS; c++) {
        char label[64];
        snprintf(label, sizeof label, "command=\"%s\"", cni_command_name((enum cni_command) c));
        prom_histogram_write(&s->duration[c], "tenet_node_cni_duration_seconds", label, out);
    }
}

static void write_services(const struct services *services, struct strbuf *out)
{
    struct services_stats s;
    services_get_stats(services, &s);
    prom_one(out, "tenet_node_services_connected", "gauge",
             "Whether the master tells of services; what is known of them stays when not.",
             s.connected);
    prom_one(out, "tenet_node_services", "gauge", "Services with a clusterIP, in br0.", s.services);
    prom_one(out, "tenet_node_service_endpoints", "gauge",
             "Addresses and ports that serve, whether they get new connections or not.",
             s.endpoints);
    prom_one(out, "tenet_node_services_idle", "gauge", "Services that wait for pods.", s.idle);
    prom_one(out, "tenet_node_service_packets_held", "gauge",
             "Packets of pods that wait for an idle service.", s.held);
    prom_one(out, "tenet_node_service_packets_sent_total", "counter",
             "Packets that waited and went on.", s.sent);
    prom_one(out, "tenet_node_service_packets_lost_total", "counter",
             "Packets that waited for too long, or were too many.", s.lost);
    prom_one(out, "tenet_node_services_pods_asked_total", "counter",
             "How often pods for an idle service were asked for.", s.pods_asked);
    prom_one(out, "tenet_node_services_udp_ended_total", "counter",
             "UDP connections, by address and endpoint, that ended with their endpoint.", s.ended);
}

static void write_host_ports(const struct host_ports *h, struct strbuf *out)
{
    struct host_ports_stats s;
    host_ports_get_stats(h, &s);
    prom_one(out, "tenet_node_host_ports", "gauge", "Host ports that pods of this node want.",
             s.ports);
    prom_one(out, "tenet_node_host_ports_closed", "gauge",
             "Of those, ports that somebody else on this host has: they lead nowhere.", s.closed);
    prom_one(
        out, "tenet_node_host_ports_unpublished", "gauge",
        "Of those, ports that are closed to outside until the master tells other nodes of them.",
        s.unpublished);
}

static void write_userspace(const struct userspace_stats *s, struct strbuf *out)
{
    prom_one(out, "tenet_proxy_connections", "gauge", "TCP connections in the userspace proxy.",
             s->connections);
    prom_one(out, "tenet_proxy_held", "gauge", "Connections that wait for an idle service.",
             s->held);
    prom_one(out, "tenet_proxy_sessions", "gauge", "Clients of UDP in the userspace proxy.",
             s->sessions);
    prom_head(out, "tenet_proxy_accepted_total", "counter",
              "Connections and UDP clients of the userspace proxy, and what became of them.");
    strbuf_addf(out,
                "tenet_proxy_accepted_total{result=\"accepted\"} %" PRIu64 "\n"
                "tenet_proxy_accepted_total{result=\"failed\"} %" PRIu64 "\n"
                "tenet_proxy_accepted_total{result=\"refused\"} %" PRIu64 "\n",
                s->accepted, s->failed, s->refused);
    prom_one(out, "tenet_proxy_retries_total", "counter",
             "Endpoints that did not answer, and another was tried.", s->retried);
}

static void write_proxy(const struct introspect_view *v, struct strbuf *out)
{
    const struct host_proxy_stats *s = host_proxy_get_stats(v->host_proxy);
    prom_one(out, "tenet_proxy_current", "gauge", "Whether all that is known is in the kernel.",
             host_proxy_current(v->host_proxy));
    prom_one(out, "tenet_proxy_services", "gauge", "Services that the host serves.", s->services);
    prom_one(out, "tenet_proxy_frontends", "gauge", "Addresses and ports of them.", s->frontends);
    prom_one(out, "tenet_proxy_endpoints", "gauge", "Endpoints of those, as often as they occur.",
             s->targets);
    prom_one(out, "tenet_proxy_conflicts", "gauge",
             "Addresses and ports that more than one service claims.", s->conflicts);
    prom_one(out, "tenet_proxy_waiting", "gauge", "Frontends with changes not yet in the kernel.",
             s->waiting);
    prom_one(out, "tenet_proxy_programmed_generation", "gauge",
             "Changes of services since the start that are in the kernel.", s->generation);
    prom_one(out, "tenet_proxy_syncs_total", "counter", "Transactions with the kernel.", s->syncs);
    prom_one(out, "tenet_proxy_rewrites_total", "counter", "Those that made the whole table anew.",
             s->rewrites);
    prom_one(out, "tenet_proxy_checks_total", "counter",
             "How often the table was read and compared.", s->checks);
    prom_one(out, "tenet_proxy_restored_total", "counter",
             "How often what others did to the table was undone.", s->restored);
    prom_one(out, "tenet_proxy_failures_total", "counter", "Transactions and checks that failed.",
             s->failures);
    prom_one(out, "tenet_proxy_udp_forgotten_total", "counter",
             "UDP connections to endpoints that are none any more, forgotten.", s->forgotten);
    prom_head(out, "tenet_proxy_sync_duration_seconds", "histogram", "Time of a transaction.");
    prom_histogram_write(&s->duration, "tenet_proxy_sync_duration_seconds",
                         s->userspace ? "mode=\"userspace\"" : "mode=\"netfilter\"", out);
    if (s->userspace) {
        write_userspace(s->userspace, out);
    }
}

void introspect_metrics(const struct introspect_view *v, const uint64_t drops[MODEL_N_CAUSES],
                        const struct nat_drops *host, struct strbuf *out)
{
    prom_head(out, "tenet_node_info", "gauge", "Which agent this is.");
    strbuf_addf(out, "tenet_node_info{node=\"%s\",version=\"%s\",plugin=\"%s\"} 1\n", v->node_name,
                TENET_VERSION, v->net ? sdn_plugin_name(v->net->plugin) : "");
    prom_one(out, "tenet_node_ready", "gauge", "Whether pods can be attached.", v->ready);
    write_drops(drops, out);
    write_host_drops(host, out);
    write_switch(v, out);
    prom_one(out, "tenet_node_switch_losses_total", "counter",
             "How often Open vSwitch was gone or wrong.", v->switch_losses);
    prom_one(out, "tenet_node_host_losses_total", "counter",
             "How often tun0 or the NAT could not be set up.", v->host_losses);
    prom_one(out, "tenet_node_master_connected", "gauge", "Whether the master answers.",
             !v->master_lost);
    prom_one(out, "tenet_node_master_losses_total", "counter", "How often the master was gone.",
             v->master_losses);
    prom_one(out, "tenet_node_host_subnets_skipped", "gauge", "HostSubnets that cannot be used.",
             v->skipped);
    if (v->services) {
        write_services(v->services, out);
    }
    if (v->host_ports) {
        write_host_ports(v->host_ports, out);
    }
    if (v->pods) {
        write_cni(pods_get_stats(v->pods), out);
    }
    resolver_write_metrics(v->resolver, out);
    if (v->host_proxy && v->services) {
        write_proxy(v, out);
    }
    prom_process(out);
}
