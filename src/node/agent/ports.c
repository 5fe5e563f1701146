/* SPDX-License-Identifier: Apache-2.0 */
#include "node/agent/ports.h"

#include "node/agent/report.h"
#include "node/host/own_ports.h"

/* The host ports of all nodes, at all addresses of these nodes, as services: this node's own ports,
 * and those that the master published for other nodes. */
struct port_services {
    const struct agent *agent;
    struct sdn_service **list;
    size_t n, cap;
};

static void add_port_services(struct port_services *s, uint32_t main,
                              const struct sdn_addresses *others, const struct sdn_host_port *ports,
                              size_t n)
{
    for (size_t i = 0; i <= others->n; i++) {
        uint32_t ip = i ? others->ip[i - 1] : main;
        struct sdn_service *v = sdn_host_ports_service(ip, ports, n);
        if (v) {
            s->list = grow(s->list, &s->cap, s->n + 1, sizeof *s->list);
            s->list[s->n++] = v;
        }
    }
}

static const char *published_text(const struct json *obj)
{
    return json_path_string(obj, "metadata", "annotations", SDN_HOST_PORTS, NULL);
}

static void add_ports_of_other(void *ctx, const char *key, const struct json *obj)
{
    struct port_services *s = ctx;
    const struct sdn_network *n = &s->agent->net;
    struct sdn_remote r;
    if (!published_text(obj) || streq(key, s->agent->cfg->node_name) ||
        objects_parse_host_subnet(obj, &r, NULL) < 0) {
        return;
    }
    for (size_t i = 0; i < n->n_remotes; i++) {
        const struct sdn_remote *known = &n->remotes[i];
        if (known->id == r.id && known->host_ip == r.host_ip) {
            CLEANUP_FREE struct sdn_host_port *ports = NULL;
            size_t n_ports = sdn_host_ports_parse(published_text(obj), known->subnet, &ports);
            add_port_services(s, known->host_ip, &known->addresses, ports, n_ports);
        }
    }
}

static int by_cluster_ip(const void *a, const void *b)
{
    const struct sdn_service *x = *(struct sdn_service *const *) a;
    const struct sdn_service *y = *(struct sdn_service *const *) b;
    return (x->cluster_ip > y->cluster_ip) - (x->cluster_ip < y->cluster_ip);
}

void agent_put_port_services(struct agent *a)
{
    struct port_services s = {.agent = a};
    const struct sdn_host_port *own = NULL;
    size_t n_own = a->host_ports ? host_ports_get(a->host_ports, &own) : 0, n = 0;
    add_port_services(&s, a->net.host_ip, &a->net.addresses, own, n_own);
    informer_each(a->subnets, add_ports_of_other, &s);
    if (s.n) {
        qsort(s.list, s.n, sizeof(struct sdn_service *), by_cluster_ip);
    }
    for (size_t i = 0; i < s.n; i++) { /* Two HostSubnets may have one hostIP by mistake. */
        if (n && s.list[n - 1]->cluster_ip == s.list[i]->cluster_ip) {
            sdn_service_free(s.list[i]);
        } else {
            s.list[n++] = s.list[i];
        }
    }
    services_set_host_ports(a->pod_services, s.list, n);
}

static void port_services_changed(void *ctx)
{
    agent_put_port_services(ctx);
}

void agent_read_published(struct agent *a)
{
    struct sdn_host_port *list = NULL;
    size_t n = sdn_host_ports_parse(published_text(informer_get(a->subnets, a->cfg->node_name)),
                                    a->net.local, &list);
    host_ports_published(a->host_ports, list, n);
}

static void publish_ports(void *ctx, const char *text)
{
    struct agent *a = ctx;
    registration_set_host_ports(a->registration, text);
}

static void open_ports(void *ctx, struct nat_port *ports, size_t n, datapath_done_fn *fn,
                       void *fn_ctx)
{
    struct agent *a = ctx;
    host_sync_set_ports(a->host_sync, ports, n, fn, fn_ctx);
}

static const char *find_own_port(void *ctx, const struct cni_host_port *p)
{
    const struct agent *a = ctx;
    const struct own_ports o = {.config = a->cfg,
                                .net = &a->net,
                                .services = a->services,
                                .master = api_client_server(a->client)};
    return own_ports_find(&o, p);
}

void agent_open_host_ports(struct agent *a)
{
    static const struct host_ports_ops ops = {.open = open_ports,
                                              .publish = publish_ports,
                                              .changed = port_services_changed,
                                              .own_port = find_own_port,
                                              .trouble = agent_report_pod};
    a->host_ports = host_ports_new(a->loop, &ops, a);
}

void agent_keep_host_ports(struct agent *a)
{
    host_ports_update(a->host_ports, a->datapath, false, NULL, NULL);
}
