/* SPDX-License-Identifier: Apache-2.0 */
#include "node/agent/view.h"

#include "node/agent/conditions.h"
#include "node/agent/egress.h"

static void view(void *ctx, struct introspect_view *ret)
{
    struct agent *a = ctx;
    bool known = a->phase != AGENT_WAITING && a->datapath;
    *ret = (struct introspect_view){
        .node_name = a->cfg->node_name,
        .phase = agent_phase_name(a->phase),
        .cni_config = a->cni_config,
        .host_ip = a->host_ip,
        .switch_ready = a->datapath_state == PART_READY,
        .master_lost = a->master_lost,
        .net = known ? &a->net : NULL,
        .datapath = a->datapath,
        .host_proxy = a->host_proxy,
        .pods = a->pods,
        .subnets = a->subnets,
        .projects = a->projects,
        .policy = a->policies ? policies_compiler(a->policies) : NULL,
        .policies_settled = a->policies && policies_settled(a->policies),
        .egress = agent_egress_rules(a),
        .services = a->pod_services,
        .host_ports = a->host_ports,
        .skipped = smap_size(&a->skipped),
        .switch_losses = a->switch_losses,
        .switch_refusals = a->switch_refusals,
        .host_losses = a->host_losses,
        .master_losses = a->master_losses,
        .resolver = a->resolver,
    };
    const struct readiness *r = agent_readiness(a);
    ret->ready = r->serves_pods;
    ret->reason = r->serves_pods ? "" : r->text;
}

int agent_open_view(struct agent *a, struct err *e)
{
    CLEANUP_FREE char *path = xasprintf("%s/agent.sock", a->cfg->run_dir);
    struct introspect_config c = {.loop = a->loop,
                                  .socket_path = path,
                                  .metrics_address = a->cfg->metrics_address,
                                  .view = view,
                                  .ctx = a};
    return introspect_new(&c, &a->introspect, e);
}
