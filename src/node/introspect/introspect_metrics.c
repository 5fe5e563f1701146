/* SPDX-License-Identifier: Apache-2.0 */
#include "node/introspect/introspect_priv.h"

#include <inttypes.h>
#include <stdio.h>

/* Source of the rows' values. */
struct facts {
    struct introspect_view view;
    const uint64_t *drops; /* Indexed by model_cause. */
    const struct nat_drops *host;
    struct datapath_status datapath;
    bool master_connected;
    struct services_stats services;
    struct egress_counts egress;
    struct host_ports_stats ports;
    const struct pods_stats *pods;
    struct host_proxy_stats proxy;
    bool proxy_current;
    struct userspace_stats userspace;
};

/* ---- metrics with labels ---- */

static void write_info(const struct prom_metric *m, const void *facts, struct strbuf *out)
{
    const struct introspect_view *v = &((const struct facts *) facts)->view;
    strbuf_addf(out, "%s{node=\"%s\",version=\"%s\",plugin=\"%s\"} 1\n", m->name, v->node_name,
                TENET_VERSION, v->net ? sdn_plugin_name(v->net->plugin) : "");
}

static void write_drops(const struct prom_metric *m, const void *facts, struct strbuf *out)
{
    const uint64_t *drops = ((const struct facts *) facts)->drops;
    for (enum model_cause c = 1; c < MODEL_N_CAUSES; c++) {
        strbuf_addf(out, "%s{cause=\"%s\"} %" PRIu64 "\n", m->name, model_cause_name(c), drops[c]);
    }
}

static void write_host_drops(const struct prom_metric *m, const void *facts, struct strbuf *out)
{
    const struct nat_drops *drops = ((const struct facts *) facts)->host;
    for (enum nat_drop c = 0; c < NAT_N_DROPS; c++) {
        strbuf_addf(out, "%s{cause=\"%s\"} %" PRIu64 "\n", m->name, nat_drop_name(c),
                    drops->total[c]);
    }
}

static void write_cni_requests(const struct prom_metric *m, const void *facts, struct strbuf *out)
{
    const struct pods_stats *s = ((const struct facts *) facts)->pods;
    for (size_t c = 0; c < PODS_COMMANDS; c++) {
        const char *name = cni_command_name((enum cni_command) c);
        strbuf_addf(out,
                    "%s{command=\"%s\",result=\"ok\"} %" PRIu64 "\n"
                    "%s{command=\"%s\",result=\"failed\"} %" PRIu64 "\n",
                    m->name, name, s->ok[c], m->name, name, s->failed[c]);
    }
}

static void write_cni_duration(const struct prom_metric *m, const void *facts, struct strbuf *out)
{
    const struct pods_stats *s = ((const struct facts *) facts)->pods;
    for (size_t c = 0; c < PODS_COMMANDS; c++) {
        char label[64];
        snprintf(label, sizeof label, "command=\"%s\"", cni_command_name((enum cni_command) c));
        prom_histogram_write(&s->duration[c], m->name, label, out);
    }
}

static void write_sync_duration(const struct prom_metric *m, const void *facts, struct strbuf *out)
{
    const struct host_proxy_stats *s = &((const struct facts *) facts)->proxy;
    prom_histogram_write(&s->duration, m->name,
                         s->userspace ? "mode=\"userspace\"" : "mode=\"netfilter\"", out);
}

/* ---- rows ---- */

#define FACT(member) PROM_MEMBER(struct facts, member)
#define GAUGE(metric, member, text) PROM_VALUE(metric, "gauge", text, struct facts, member)
#define COUNTER(metric, member, text) PROM_VALUE(metric, "counter", text, struct facts, member)
#define LABELLED(metric, text, name_and_value, member)                                         \
    {                                                                                          \
        .name = metric, .type = "counter", .help = text, .label = name_and_value, FACT(member) \
    }

#define REFUSED "tenet_node_refused_total"
#define REFUSED_HELP                                                                              \
    "Objects that did not fit into the datapath's maps: pods, nodes, addresses and endpoints of " \
    "services, "                                                                                  \
    "rows of network policy."
#define ICMP "tenet_node_icmp_refusals_total"
#define ICMP_HELP "Packets of pods that may be answered with an ICMP error."
#define ACCEPTED "tenet_proxy_accepted_total"
#define ACCEPTED_HELP "Connections and UDP clients of the userspace proxy, by result."

static const struct prom_metric node_rows[] = {
    PROM_WRITTEN("tenet_node_info", "gauge", "1, with the name, version and plug-in of the agent.",
                 "node, version, plugin", write_info),
    GAUGE("tenet_node_ready", view.ready, "Whether pods can be attached."),
    PROM_WRITTEN("tenet_node_drops_total", "counter",
                 "Packets that the datapath dropped, by cause.", "cause", write_drops),
    PROM_WRITTEN("tenet_node_host_drops_total", "counter",
                 "Packets that the host's nftables table dropped, by cause.", "cause",
                 write_host_drops),
    GAUGE("tenet_node_switch_in_place", datapath.in_place,
          "Whether Open vSwitch is as it should be."),
    GAUGE("tenet_node_flows", datapath.rules, "Flows that br0 should have."),
    GAUGE("tenet_node_pods", datapath.pods, "Attached pods."),
    LABELLED(REFUSED, REFUSED_HELP, "what=\"pods\"", datapath.pods_refused),
    LABELLED(REFUSED, REFUSED_HELP, "what=\"nodes\"", datapath.nodes_refused),
    LABELLED(REFUSED, REFUSED_HELP, "what=\"services\"", datapath.services_refused),
    LABELLED(REFUSED, REFUSED_HELP, "what=\"policy\"", datapath.policy_refused),
    GAUGE("tenet_node_remote_nodes", datapath.remotes, "Other nodes that are used."),
    COUNTER("tenet_node_openflow_connections_total", datapath.sessions,
            "OpenFlow connections to br0 that were made."),
    COUNTER("tenet_node_ovsdb_transactions_total", datapath.transactions,
            "Transactions sent to OVSDB."),
    COUNTER("tenet_node_bundles_total", datapath.batches, "OpenFlow bundles sent."),
    COUNTER("tenet_node_bundles_refused_total", datapath.batches_refused,
            "OpenFlow bundles that the switch refused."),
    COUNTER("tenet_node_flow_mods_total", datapath.rule_changes, "Changes of flows sent."),
    LABELLED(ICMP, ICMP_HELP, "result=\"sent\"", datapath.refusals_sent),
    LABELLED(ICMP, ICMP_HELP, "result=\"limited\"", datapath.refusals_suppressed),
    COUNTER("tenet_node_switch_losses_total", view.switch_losses,
            "Times that the datapath was gone."),
    COUNTER("tenet_node_switch_refusals_total", view.switch_refusals,
            "Times that the datapath began to refuse changes."),
    COUNTER("tenet_node_host_losses_total", view.host_losses,
            "How often tun0 or the NAT could not be set up."),
    GAUGE("tenet_node_master_connected", master_connected, "Whether the master answers."),
    COUNTER("tenet_node_master_losses_total", view.master_losses,
            "How often the connection to the master was lost."),
    GAUGE("tenet_node_host_subnets_skipped", view.skipped, "HostSubnets that cannot be used."),
};

static const struct prom_metric service_rows[] = {
    GAUGE("tenet_node_services_connected", services.connected,
          "Whether the master sends changes of services; if not, the services known last stay in "
          "use."),
    GAUGE("tenet_node_services", services.services, "Services with a clusterIP, in br0."),
    GAUGE("tenet_node_service_endpoints", services.endpoints,
          "Addresses and ports that serve, whether they get new connections or not."),
    GAUGE("tenet_node_services_idle", services.idle, "Services that wait for pods."),
    GAUGE("tenet_node_service_packets_held", services.held,
          "Packets of pods that wait for an idle service."),
    COUNTER("tenet_node_service_packets_sent_total", services.sent,
            "Packets that waited for an idle service and were sent."),
    COUNTER("tenet_node_service_packets_lost_total", services.lost,
            "Packets for an idle service that waited too long, or were too many."),
    COUNTER("tenet_node_services_pods_asked_total", services.pods_asked,
            "How often pods for an idle service were requested."),
    COUNTER("tenet_node_services_udp_ended_total", datapath.connections_ended,
            "UDP connections, by address and endpoint, that ended with their endpoint."),
};

static const struct prom_metric egress_rows[] = {
    GAUGE("tenet_node_egress_firewalls", egress.policies, "EgressNetworkPolicies."),
    GAUGE("tenet_node_egress_firewalls_unapplied", egress.unapplied,
          "EgressNetworkPolicies that are not applied as they are written; Events say why."),
    GAUGE("tenet_node_egress_firewall_rules", egress.rules, "Rules of EgressNetworkPolicies."),
    GAUGE("tenet_node_egress_firewall_names", egress.names,
          "Names in rules of EgressNetworkPolicies, which this node looks up."),
};

static const struct prom_metric port_rows[] = {
    GAUGE("tenet_node_host_ports", ports.ports, "Host ports of this node's pods."),
    GAUGE("tenet_node_host_ports_closed", ports.closed,
          "Host ports of pods that another program on this host uses: they lead nowhere."),
    GAUGE(
        "tenet_node_host_ports_unpublished", ports.unpublished,
        "Host ports of pods that are closed to the outside until the master has sent them to other "
        "nodes."),
};

static const struct prom_metric cni_rows[] = {
    PROM_WRITTEN("tenet_node_cni_requests_total", "counter", "Requests of tenet-cni.",
                 "command, result", write_cni_requests),
    PROM_WRITTEN("tenet_node_cni_duration_seconds", "histogram",
                 "Time from a request to its answer.", "command", write_cni_duration),
};

static const struct prom_metric proxy_rows[] = {
    GAUGE("tenet_proxy_current", proxy_current,
          "Whether the kernel has all services that are known."),
    GAUGE("tenet_proxy_services", proxy.services, "Services that the host serves."),
    GAUGE("tenet_proxy_frontends", proxy.frontends, "Addresses and ports of these services."),
    GAUGE("tenet_proxy_endpoints", proxy.targets,
          "Endpoints of these services; one of several services counts for each."),
    GAUGE("tenet_proxy_conflicts", proxy.conflicts,
          "Addresses and ports that more than one service claims."),
    GAUGE("tenet_proxy_waiting", proxy.waiting, "Frontends with changes not yet in the kernel."),
    GAUGE("tenet_proxy_programmed_generation", proxy.generation,
          "Changes of services since the start that are in the kernel."),
    COUNTER("tenet_proxy_syncs_total", proxy.syncs, "Transactions with the kernel."),
    COUNTER("tenet_proxy_rewrites_total", proxy.rewrites,
            "Transactions that rebuilt the whole table."),
    COUNTER("tenet_proxy_checks_total", proxy.checks, "How often the table was read and compared."),
    COUNTER("tenet_proxy_restored_total", proxy.restored,
            "How often changes of other programs to the table were undone."),
    COUNTER("tenet_proxy_failures_total", proxy.failures, "Transactions and checks that failed."),
    COUNTER("tenet_proxy_udp_forgotten_total", proxy.forgotten,
            "UDP connections to removed endpoints that were deleted from connection tracking."),
    PROM_WRITTEN("tenet_proxy_sync_duration_seconds", "histogram", "Time of a transaction.", "mode",
                 write_sync_duration),
};

static const struct prom_metric userspace_rows[] = {
    GAUGE("tenet_proxy_connections", userspace.connections,
          "TCP connections in the userspace proxy."),
    GAUGE("tenet_proxy_held", userspace.held, "Connections that wait for an idle service."),
    GAUGE("tenet_proxy_sessions", userspace.sessions, "Clients of UDP in the userspace proxy."),
    LABELLED(ACCEPTED, ACCEPTED_HELP, "result=\"accepted\"", userspace.accepted),
    LABELLED(ACCEPTED, ACCEPTED_HELP, "result=\"failed\"", userspace.failed),
    LABELLED(ACCEPTED, ACCEPTED_HELP, "result=\"refused\"", userspace.refused),
    COUNTER("tenet_proxy_retries_total", userspace.retried,
            "Endpoints that did not answer, after which another was tried."),
};

enum {
    NODE_TABLE,
    SERVICE_TABLE,
    EGRESS_TABLE,
    PORT_TABLE,
    CNI_TABLE,
    PROXY_TABLE,
    USERSPACE_TABLE
};

const struct prom_table introspect_metric_tables[INTROSPECT_METRIC_TABLES] = {
    [NODE_TABLE] = {node_rows, ARRAY_SIZE(node_rows)},
    [SERVICE_TABLE] = {service_rows, ARRAY_SIZE(service_rows)},
    [EGRESS_TABLE] = {egress_rows, ARRAY_SIZE(egress_rows)},
    [PORT_TABLE] = {port_rows, ARRAY_SIZE(port_rows)},
    [CNI_TABLE] = {cni_rows, ARRAY_SIZE(cni_rows)},
    [PROXY_TABLE] = {proxy_rows, ARRAY_SIZE(proxy_rows)},
    [USERSPACE_TABLE] = {userspace_rows, ARRAY_SIZE(userspace_rows)},
};

static void write_proxy(struct facts *f, struct strbuf *out)
{
    f->proxy = *host_proxy_get_stats(f->view.host_proxy);
    f->proxy_current = host_proxy_current(f->view.host_proxy);
    prom_write(&introspect_metric_tables[PROXY_TABLE], f, out);
    if (f->proxy.userspace) {
        f->userspace = *f->proxy.userspace;
        prom_write(&introspect_metric_tables[USERSPACE_TABLE], f, out);
    }
}

void introspect_metrics(const struct introspect_view *v, const uint64_t drops[MODEL_N_CAUSES],
                        const struct nat_drops *host, struct strbuf *out)
{
    struct facts f = {
        .view = *v, .drops = drops, .host = host, .master_connected = !v->master_lost};
    if (v->datapath) {
        datapath_get_status(v->datapath, &f.datapath);
    }
    prom_write(&introspect_metric_tables[NODE_TABLE], &f, out);
    if (v->services) {
        services_get_stats(v->services, &f.services);
        prom_write(&introspect_metric_tables[SERVICE_TABLE], &f, out);
    }
    if (v->egress) {
        egress_count(v->egress, &f.egress);
        prom_write(&introspect_metric_tables[EGRESS_TABLE], &f, out);
    }
    if (v->host_ports) {
        host_ports_get_stats(v->host_ports, &f.ports);
        prom_write(&introspect_metric_tables[PORT_TABLE], &f, out);
    }
    if (v->pods) {
        f.pods = pods_get_stats(v->pods);
        prom_write(&introspect_metric_tables[CNI_TABLE], &f, out);
    }
    resolver_write_metrics(v->resolver, out);
    if (v->host_proxy && v->services) {
        write_proxy(&f, out);
    }
    prom_process(out);
}
