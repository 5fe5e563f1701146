/* SPDX-License-Identifier: Apache-2.0 */
#include "node/agent/policy.h"

#include "node/agent/network.h"

static void policies_are_synced(void *ctx)
{
    agent_settle_soon(ctx);
}

static void set_policies_subnet(void *ctx, const char *key, const struct json *obj)
{
    struct agent *a = ctx;
    policies_set_host_subnet(a->policies, key, obj);
}

void agent_set_policy_networks(struct agent *a)
{
    const struct json *obj = informer_get(a->networks, "default");
    struct sdn_network n = {0};
    struct node_rules rules = {.service = {0}};
    if (a->policies && obj && objects_parse_cluster_network(obj, &n, NULL) == 0) {
        memcpy(rules.cluster.list, n.cluster, sizeof n.cluster);
        rules.cluster.n = n.n_cluster;
        rules.service = n.service;
        address_ranges_of_network(obj, &rules.foreign);
        policies_set_rules_of_addresses(a->policies, &rules);
    }
}

static void policies_know(void *ctx, const char *project)
{
    struct agent *a = ctx;
    if (a->phase == AGENT_RUNNING) {
        pods_wake(a->pods, project);
    }
}

bool agent_policies_are_ready(struct agent *a, const struct sdn_network *n)
{
    static const struct policies_ops ops = {.synced = policies_are_synced, .known = policies_know};
    if (n->plugin != SDN_NETWORKPOLICY) {
        return true;
    }
    if (!a->policies) {
        a->policies = policies_new(a->loop, a->client, a->cfg->node_name, n->local, &ops, a);
        agent_set_policy_networks(a);
        informer_each(a->subnets, set_policies_subnet, a);
    }
    return policies_synced(a->policies);
}

void agent_drop_policies(struct agent *a)
{
    if (a->policies && a->pods) {
        pods_unlisten(a->pods, a->policies);
    }
    a->policies = policies_free(a->policies);
}

void agent_begin_policies(struct agent *a)
{
    if (a->net.plugin == SDN_NETWORKPOLICY) {
        policies_begin(a->policies, a->datapath);
        pods_listen(a->pods, &policies_pod_listener, a->policies);
    } else {
        agent_drop_policies(a);
    }
}

int agent_knows_pod(void *ctx, const char *project, const char *pod, struct err *e)
{
    struct agent *a = ctx;
    if (a->net.plugin != SDN_NETWORKPOLICY) {
        return 0;
    }
    int r = policy_knows_pod(policies_compiler(a->policies), project, pod, e);
    return r < 0 && a->master_lost ? err_prefix(e, "the master cannot be reached") : r;
}
