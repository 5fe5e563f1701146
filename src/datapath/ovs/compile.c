/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles services and network policy to groups of flows. Groups of the network and of pods are
 * made in network.c and pods.c. */
#include "datapath/ovs/ovs.h"

static void set_group(struct ovs_dp *o, uint64_t cookie, struct of_flow_list *flows)
{
    refresh_want(o, flow_table_set_group(&o->flows, cookie, flows));
    loop_task_queue(&o->pump);
}

/* ---- policy ---- */

static void set_policy_group(void *ctx, uint64_t cookie, struct of_flow_list *flows)
{
    set_group(ctx, cookie, flows);
}

void compile_policy(struct ovs_dp *o, struct policy *p)
{
    static const struct policy_flow_ops ops = {.set_group = set_policy_group};
    policy_want_flows(p, &ops, o);
}

/* ---- egress firewalls ---- */

void compile_firewall(struct ovs_dp *o, uint32_t vnid, const struct firewall_block *blocks,
                      size_t n)
{
    struct of_flow_list flows = {0};
    pipeline_firewall(vnid, blocks, n, &flows);
    set_group(o, pipeline_firewall_cookie(vnid), &flows);
}

/* ---- services ---- */

static void set_service_group(void *ctx, uint64_t cookie, struct of_flow_list *flows)
{
    set_group(ctx, cookie, flows);
}

void compile_init(struct ovs_dp *o, const char *node_name)
{
    static const struct service_flows_ops ops = {.set_group = set_service_group};
    o->services = service_flows_new(node_name, &ops, o);
}

void compile_done(struct ovs_dp *o)
{
    service_flows_free(o->services);
}

void compile_network(struct ovs_dp *o)
{
    service_flows_set_network(o->services, &o->net);
}

static void connection_ended(void *ctx, const struct of_connection *c)
{
    struct ovs_dp *o = ctx;
    o->connections_ended++;
    after_forget(o, c);
}

static void connection_began(void *ctx, const struct of_connection *c)
{
    after_keep(ctx, c);
}

void compile_service(struct ovs_dp *o, const struct sdn_service *old,
                     const struct sdn_project_service *now)
{
    const struct sdn_service *s = now ? now->service : NULL;
    if (now) {
        struct sdn_vnids v = {now->vnid, now->has_also_vnid, now->also_vnid};
        bool known = !s->host_ports && now->vnid != SDN_VNID_NOBODY;
        service_flows_set(o->services, s, known ? &v : NULL);
    } else {
        service_flows_delete(o->services, old->namespace, old->name);
    }
    service_flows_ended(s, old, connection_began, o);
    service_flows_ended(old, s, connection_ended, o);
}

void compile_settle(struct ovs_dp *o)
{
    service_flows_flush(o->services);
}
