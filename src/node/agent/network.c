/* SPDX-License-Identifier: Apache-2.0 */
#include "node/agent/network.h"

#include "net/loop/notify.h"
#include "node/agent/conditions.h"
#include "node/agent/egress.h"
#include "node/agent/forwarding.h"
#include "node/agent/policy.h"
#include "node/agent/ports.h"
#include "node/agent/projects.h"
#include "node/agent/remotes.h"
#include "node/agent/report.h"
#include "node/agent/services.h"
#include "node/agent/shutdown.h"

#include <stdio.h>

LOG_MODULE("node");

#define WAIT_AGAIN_MS 30000
/* Delay in which changes of objects are collected, to be applied together. */
#define SETTLE_MS 20
/* Delay before a ClusterNetwork that could not be followed is tried again. */
#define LOOK_AGAIN_MS 30000

static int read_cluster(struct agent *a, struct sdn_network *n, struct err *e)
{
    const struct json *obj = informer_get(a->networks, "default");
    if (!obj) {
        return err_set(e, -ENOENT, "ClusterNetwork default: is not there");
    }
    if (objects_parse_cluster_network(obj, n, e) < 0) {
        return err_prefix(e, "ClusterNetwork default");
    }
    if (a->cfg->mtu) {
        n->mtu = a->cfg->mtu;
    }
    n->service_by_host = a->cfg->proxy_userspace;
    n->block_metadata = a->cfg->block_metadata;
    return 0;
}

static int read_own(struct agent *a, struct sdn_network *n, struct err *e)
{
    const char *name = a->cfg->node_name;
    const struct json *obj = informer_get(a->subnets, name);
    struct sdn_remote own;
    if (!obj) {
        return err_set(e, -ENOENT, "HostSubnet %s: is not there", name);
    }
    if (objects_parse_host_subnet(obj, &own, e) < 0) {
        return err_prefix(e, "HostSubnet %s", name);
    }
    if (own.subnet.len == 0) {
        return err_set(e, -ENOENT, "HostSubnet %s: has no subnet yet", name);
    }
    if (own.host_ip != a->host_ip) {
        return err_set(e, -EADDRNOTAVAIL, "HostSubnet %s: its hostIP is %s, this node's is %s",
                       name, IP4_TEXT(own.host_ip), IP4_TEXT(a->host_ip));
    }
    bool inside = false;
    for (size_t i = 0; i < n->n_cluster; i++) {
        inside = inside || (own.subnet.len >= n->cluster[i].len &&
                            prefix_contains(n->cluster[i], own.subnet.addr));
    }
    if (!inside) {
        return err_set(e, -EINVAL, "HostSubnet %s: its subnet %s is in no cluster network", name,
                       PREFIX_TEXT(own.subnet));
    }
    n->local = own.subnet;
    n->host_ip = a->host_ip;
    return 0;
}

static bool same_cluster(const struct sdn_network *a, const struct sdn_network *b)
{
    bool same = a->plugin == b->plugin && a->n_cluster == b->n_cluster &&
                prefix_equal(a->service, b->service) && a->vxlan_port == b->vxlan_port &&
                a->mtu == b->mtu;
    for (size_t i = 0; same && i < a->n_cluster; i++) {
        same = prefix_equal(a->cluster[i], b->cluster[i]);
    }
    return same;
}

struct datapath_config agent_datapath_config(const struct node_config *c)
{
    return (struct datapath_config){.kind = c->datapath,
                                    .node_name = c->node_name,
                                    .run_dir = c->run_dir,
                                    .settings = &c->datapath_settings};
}

/* Checks 'n' before the agent touches anything, and again before it follows a changed network. */
static int check_network(const struct agent *a, const struct sdn_network *n, struct err *e)
{
    struct datapath_config dc = agent_datapath_config(a->cfg);
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    char warning[256];
    int err = rtnl_open(&r, e);
    if (err == 0) {
        err = host_check(r, n, datapath_words(dc.kind)->vxlan_link, warning, e);
    }
    if (err == 0) {
        if (warning[0]) {
            log_warn("odd route", "text=\"%s\"", warning);
        }
        err = host_sync_check(n, e);
    }
    if (err == 0) {
        err = datapath_check(&dc, n, e);
    }
    return err;
}

static void adopt(struct agent *a, struct sdn_network *n)
{
    free(a->net.remotes);
    a->net = *n;
    n->remotes = NULL;
}

/* The registry has all objects that are needed: checks them, and begins. */
static void begin(struct agent *a, struct sdn_network *n)
{
    struct err e = {0};
    if (check_network(a, n, &e) < 0) {
        agent_fatal(a, "%s", e.text);
        return;
    }
    if (agent_open_forwarding(a, n, &e) < 0 || agent_open_proxy(a, &e) < 0) {
        agent_fatal(a, "%s", e.text);
        return;
    }
    loop_timer_disarm(a->wait);
    a->phase = AGENT_STARTING;
    adopt(a, n);
    a->read_again = false;
    resolver_set_network(a->resolver, &a->net);
    agent_follow_projects(a, a->net.plugin);
}

/* Brings the network into effect; the switch gets one difference. */
static void put_into_effect(struct agent *a)
{
    pods_set_network(a->pods, &a->net);
    pods_all_projects_changed(a->pods);
    if (sdn_plugin_has_vnids(a->net.plugin)) {
        pods_isolate_unknown(a->pods);
    }
    agent_begin_policies(a);
    agent_begin_egress(a);
    resolver_set_network(a->resolver, &a->net);
    datapath_set_network(a->datapath, &a->net);
    services_begin(a->pod_services, a->datapath, &a->net);
    host_proxy_set_network(a->host_proxy, &a->net);
    a->network_set = true;
}

static int check_plugin(struct agent *a, const struct sdn_network *n, struct err *e)
{
    enum sdn_plugin p;
    if (n->service_by_host && n->plugin == SDN_NETWORKPOLICY) {
        return err_set(e, -EINVAL,
                       "proxyArguments.proxy-mode: userspace hides from %s which pod connects; "
                       "use iptables",
                       sdn_plugin_name(n->plugin));
    }
    if (!a->cfg->plugin_name || sdn_plugin_parse(a->cfg->plugin_name, &p, e) < 0 ||
        p == n->plugin) {
        return 0;
    }
    return err_set(e, -EINVAL, "networkConfig.networkPluginName: %s, but the cluster's is %s",
                   sdn_plugin_name(p), sdn_plugin_name(n->plugin));
}

/* Why this node cannot have the network that the ClusterNetwork asks for; the present one stays in
 * effect. */
static void refuse(struct agent *a, const char *text)
{
    if (streq(a->refused, text)) {
        return;
    }
    snprintf(a->refused, sizeof a->refused, "%s", text);
    log_error("ClusterNetwork cannot be followed, going on with the last", "error=\"%s\"", text);
    agent_report_unused(a, "ClusterNetwork", a->networks, "default", text);
    agent_update_conditions(a);
}

/* The ClusterNetwork of '*n' if it can be followed; else the one in effect, and the reason is
 * logged. */
static void read_changed_cluster(struct agent *a, struct sdn_network *n)
{
    struct err e = {0};
    struct sdn_network now = a->net;
    now.remotes = NULL;
    now.n_remotes = 0;
    bool good = read_cluster(a, n, &e) == 0 && check_plugin(a, n, &e) == 0;
    if (good && !same_cluster(n, &a->net)) {
        n->local = a->net.local;
        n->host_ip = a->net.host_ip;
        good = check_network(a, n, &e) == 0;
    }
    if (!good) {
        refuse(a, e.text);
        /* Try again later: the reason may have passed by then. */
        loop_timer_arm(a->look_again, LOOK_AGAIN_MS);
        *n = now;
    } else if (a->refused[0]) {
        a->refused[0] = '\0';
        agent_update_conditions(a);
    }
    if (n->plugin == a->net.plugin && a->network_set) {
        a->vnids_wanted_ms = 0;
        if (n->plugin != SDN_NETWORKPOLICY) {
            agent_drop_policies(a); /* The ClusterNetwork was set back to the network in effect. */
        }
    } else if (n->plugin != a->net.plugin && a->inventory &&
               (!agent_policies_are_ready(a, n) || !agent_egress_is_ready(a, n->plugin) ||
                !agent_vnids_known(a, n->plugin))) {
        n->plugin = a->net.plugin;
    }
}

/* Returns false if the node cannot go on. */
static bool read_again(struct agent *a, bool *ret_changed)
{
    struct sdn_network n = {0};
    struct err e = {0};
    const char *name = a->cfg->node_name;
    read_changed_cluster(a, &n);
    *ret_changed = !same_cluster(&n, &a->net);
    if (!informer_get(a->subnets, name)) {
        agent_fatal(a, "HostSubnet %s was deleted: this node has no subnet any more", name);
        return false;
    }
    if (read_own(a, &n, &e) < 0) {
        agent_fatal(a, "%s", e.text);
        return false;
    }
    if (!prefix_equal(n.local, a->net.local)) {
        agent_fatal(a, "HostSubnet %s: its subnet changed from %s to %s; start again to use it",
                    name, PREFIX_TEXT(a->net.local), PREFIX_TEXT(n.local));
        return false;
    }
    agent_read_remotes(a, &n);
    adopt(a, &n);
    a->read_again = false;
    return true;
}

/* The registry changed while the agent runs: follow it, or say why not. */
static void follow(struct agent *a)
{
    bool changed = false;
    /* Otherwise agent_begin has just read 'net', perhaps from thousands of objects. */
    if ((a->network_set || a->read_again) && !read_again(a, &changed)) {
        return;
    }
    if (!a->inventory || (!a->network_set && (!agent_policies_are_ready(a, &a->net) ||
                                              !agent_egress_is_ready(a, a->net.plugin) ||
                                              !agent_vnids_known(a, a->net.plugin)))) {
        return;
    }
    agent_read_published(a);
    if (!a->network_set) {
        agent_keep_host_ports(a); /* The first rules include them, so that new connections go on. */
        host_sync_begin(a->host_sync, &a->net);
        put_into_effect(a);
    } else if (changed) {
        put_into_effect(a);
        log_info("ClusterNetwork changed", "plugin=%s mtu=%u vxlanPort=%u",
                 sdn_plugin_name(a->net.plugin), a->net.mtu, a->net.vxlan_port);
        if (a->phase == AGENT_RUNNING) {
            host_sync_set(a->host_sync, &a->net);
        }
    } else {
        datapath_set_network(a->datapath, &a->net);
        if (sdn_plugin_is_routed(a->net.plugin) && a->phase == AGENT_RUNNING) {
            host_sync_set(a->host_sync, &a->net);
        }
    }
    agent_put_port_services(a);
    if (a->phase == AGENT_RUNNING) {
        agent_update_neighbours(a);
    }
}

void agent_settle(void *ctx)
{
    struct agent *a = ctx;
    struct sdn_network n = {0};
    struct err e = {0};
    if (a->phase == AGENT_STARTING || a->phase == AGENT_RUNNING) {
        follow(a);
        return;
    }
    if (a->phase != AGENT_WAITING) {
        return;
    }
    if (!a->registered) {
        snprintf(a->wait_text, sizeof a->wait_text, "the registration of Node %s at %s",
                 a->cfg->node_name, api_client_server(a->client));
        return;
    }
    if (!informer_synced(a->networks) || !informer_synced(a->subnets)) {
        snprintf(a->wait_text, sizeof a->wait_text, "the master at %s",
                 api_client_server(a->client));
        return;
    }
    if (read_cluster(a, &n, &e) < 0 || read_own(a, &n, &e) < 0) {
        snprintf(a->wait_text, sizeof a->wait_text, "%s", e.text);
        return;
    }
    if (check_plugin(a, &n, &e) < 0) {
        agent_fatal(a, "%s", e.text);
        return;
    }
    if (!agent_policies_are_ready(a, &n)) {
        snprintf(a->wait_text, sizeof a->wait_text, "the policies and pods of %s",
                 api_client_server(a->client));
        return;
    }
    if (!agent_egress_is_ready(a, n.plugin)) {
        snprintf(a->wait_text, sizeof a->wait_text, "the egress firewalls of %s",
                 api_client_server(a->client));
        return;
    }
    if (!services_synced(a->pod_services)) {
        snprintf(a->wait_text, sizeof a->wait_text, "the services of %s",
                 api_client_server(a->client));
        return;
    }
    agent_read_remotes(a, &n);
    begin(a, &n);
    free(n.remotes);
}

void agent_settle_soon(struct agent *a)
{
    if (!loop_timer_armed(a->settle)) {
        loop_timer_arm(a->settle, a->phase == AGENT_WAITING ? 0 : SETTLE_MS);
    }
}

void agent_log_wait(void *ctx)
{
    struct agent *a = ctx;
    CLEANUP_FREE char *status = xasprintf("STATUS=waits for %s", a->wait_text);
    log_info("waiting", "for=\"%s\"", a->wait_text);
    notify_manager(status);
    loop_timer_arm(a->wait, WAIT_AGAIN_MS);
}

static void object_changed(void *ctx, const char *key, const struct json *old,
                           const struct json *obj)
{
    struct agent *a = ctx;
    a->read_again = true;
    agent_settle_soon(a);
}

static void object_deleted(void *ctx, const char *key, const struct json *obj)
{
    object_changed(ctx, key, obj, NULL);
}

static void network_changed(void *ctx, const char *key, const struct json *old,
                            const struct json *obj)
{
    agent_set_policy_networks(ctx);
    object_changed(ctx, key, old, obj);
}

static void subnet_changed(void *ctx, const char *key, const struct json *old,
                           const struct json *obj)
{
    struct agent *a = ctx;
    if (a->policies) {
        policies_set_host_subnet(a->policies, key, obj);
    }
    object_changed(ctx, key, old, obj);
}

static void subnet_deleted(void *ctx, const char *key, const struct json *obj)
{
    struct agent *a = ctx;
    if (a->policies) {
        policies_delete_host_subnet(a->policies, key);
    }
    object_changed(ctx, key, obj, NULL);
}

static void objects_synced(void *ctx)
{
    agent_settle_soon(ctx);
}

static void master_connection(void *ctx, const char *lost_reason)
{
    struct agent *a = ctx;
    if (a->master_lost == (lost_reason != NULL)) {
        return;
    }
    a->master_lost = lost_reason != NULL;
    a->master_losses += a->master_lost;
    if (a->phase == AGENT_WAITING) {
        return; /* An object is still missing; the log line about waiting names it. */
    }
    if (lost_reason) {
        log_warn("master is gone, going on with what is known", "reason=\"%s\"", lost_reason);
    } else {
        log_info("master is back", "");
    }
}

void agent_follow_network(struct agent *a)
{
    static const struct informer_ops ops = {
        .changed = network_changed, .deleted = object_deleted, .synced = objects_synced};
    static const struct informer_ops ops_with_connection = {.changed = subnet_changed,
                                                            .deleted = subnet_deleted,
                                                            .synced = objects_synced,
                                                            .connection = master_connection};
    a->networks =
        informer_new(a->client, a->loop, OBJECTS_NETWORK_API, "clusternetworks", NULL, &ops, a);
    a->subnets = informer_new(a->client, a->loop, OBJECTS_NETWORK_API, "hostsubnets", NULL,
                              &ops_with_connection, a);
}
