/* SPDX-License-Identifier: Apache-2.0 */
#include "node/agent/forwarding.h"

#include "node/agent/conditions.h"
#include "node/agent/network.h"
#include "node/agent/pod_events.h"
#include "node/agent/ports.h"
#include "node/agent/report.h"
#include "node/agent/services.h"
#include "node/agent/shutdown.h"

#include <stdio.h>

LOG_MODULE("node");

static void on_host_changed(void *ctx, unsigned what)
{
    struct agent *a = ctx;
    if (what & MONITOR_ADDRESSES) {
        a->read_again = true;
        agent_settle_soon(a);
    }
    if (what & (MONITOR_TUN | MONITOR_NFT)) {
        host_sync_changed(a->host_sync, what);
    } else if (a->host_proxy && (what & MONITOR_SERVICES)) {
        host_proxy_changed(a->host_proxy);
    }
}

static void on_link_gone(void *ctx, const char *name)
{
    struct agent *a = ctx;
    if (a->pods) {
        pods_link_gone(a->pods, name);
    }
}

static void on_inventory(void *ctx)
{
    struct agent *a = ctx;
    size_t n;
    datapath_pods(a->datapath, &n);
    log_debug("inventory", "pods=%zu", n);
    a->inventory = true;
    agent_resolve_attached(a);
    agent_settle(a);
}

static void on_switch_ready(void *ctx)
{
    struct agent *a = ctx;
    bool was_ready = a->datapath_state == PART_READY;
    a->datapath_state = PART_READY;
    if (a->phase == AGENT_STOPPING) {
        return;
    }
    if (was_ready && a->host_state == PART_READY) {
        /* A part was repaired; requests for pods were served meanwhile. */
        host_sync_changed(a->host_sync, MONITOR_TUN);
        return;
    }
    a->host_state = PART_PENDING;
    snprintf(a->host_text, sizeof a->host_text, "%s is being looked at",
             sdn_gateway_link(a->net.plugin));
    if (a->phase == AGENT_RUNNING) {
        agent_keep_host_ports(a);
    }
    host_sync_set(a->host_sync, &a->net);
}

static void on_switch_lost(void *ctx, const char *reason)
{
    struct agent *a = ctx;
    a->switch_losses++;
    a->datapath_state = PART_LOST;
    snprintf(a->datapath_text, sizeof a->datapath_text, "%s", reason);
    log_error("the datapath is gone; packets may flow on, pods cannot be attached",
              "datapath=%s reason=\"%s\"", a->cfg->datapath, reason);
    agent_update_conditions(a);
}

static void on_switch_refused(void *ctx, const char *reason)
{
    struct agent *a = ctx;
    a->switch_refusals++;
    a->datapath_state = PART_REFUSED;
    snprintf(a->datapath_text, sizeof a->datapath_text, "%s", reason);
    log_error("the datapath refuses a change; packets flow on, pods cannot be attached",
              "datapath=%s reason=\"%s\"", a->cfg->datapath, reason);
    agent_update_conditions(a);
}

static void on_switch_fatal(void *ctx, const char *reason)
{
    agent_fatal(ctx, "%s", reason);
}

static void on_idle_packet(void *ctx, uint32_t port, const uint8_t *frame, size_t size)
{
    struct agent *a = ctx;
    services_hold(a->pod_services, port, frame, size);
}

void agent_update_neighbours(struct agent *a)
{
    struct datapath_status s;
    struct err e = {0};
    datapath_get_status(a->datapath, &s);
    if (!s.in_userspace) {
        return;
    }
    if (!a->neigh && neigh_new(a->loop, &a->neigh, &e) < 0) {
        log_warn("cannot keep the tunnels' neighbours warm", "error=\"%s\"", e.text);
        return;
    }
    neigh_set_remotes(a->neigh, a->net.remotes, a->net.n_remotes);
}

static void on_host_failed(struct agent *a, const char *text)
{
    bool news = a->host_state != PART_LOST || !streq(a->host_text, text);
    a->host_losses += news;
    a->host_state = PART_LOST;
    snprintf(a->host_text, sizeof a->host_text, "%s", text);
    agent_update_conditions(a);
}

/* The datapath and the host are ready for the first time. */
static void on_first_ready(struct agent *a)
{
    struct err e = {0};
    struct datapath_status s;
    if (agent_open_for_pods(a, &e) < 0) {
        agent_fatal(a, "%s", e.text);
        return;
    }
    a->phase = AGENT_RUNNING;
    agent_update_neighbours(a);
    datapath_get_status(a->datapath, &s);
    log_info("ready", "node=%s subnet=%s gateway=%s mtu=%u remotes=%zu pods=%zu datapath=%s",
             a->cfg->node_name, PREFIX_TEXT(a->net.local), IP4_TEXT(sdn_gateway(&a->net)),
             a->net.mtu, a->net.n_remotes, s.pods, s.variant ? s.variant : "?");
}

/* The network was lost and is ready again; pods may have been deleted meanwhile. */
static void on_ready_again(struct agent *a)
{
    struct err e = {0};
    if (pods_sweep(a->pods, &e) < 0) {
        log_error("cannot look for stale pods", "error=\"%s\"", e.text);
        agent_report_node(a, EVENT_WARNING, "SweepFailed", e.text);
    }
    pods_all_projects_changed(a->pods);
    agent_update_neighbours(a);
    log_info("ready again", "node=%s", a->cfg->node_name);
}

/* Callback of the host sync, after each attempt to bring the host in line. */
static void on_host_synced(void *ctx, int error, const char *text)
{
    struct agent *a = ctx;
    if (a->phase == AGENT_STOPPING) {
        return;
    }
    if (error < 0) {
        on_host_failed(a, text);
        return;
    }
    if (a->datapath_state != PART_READY) {
        return;
    }
    bool again = a->host_state != PART_READY && a->phase == AGENT_RUNNING;
    a->host_state = PART_READY;
    /* Routes may differ from those by which addresses of other nodes were accepted. */
    a->read_again = true;
    agent_settle_soon(a);
    if (a->phase == AGENT_STARTING) {
        on_first_ready(a);
    } else if (again) {
        on_ready_again(a);
    }
    agent_update_conditions(a);
}

int agent_open_forwarding(struct agent *a, const struct sdn_network *n, struct err *e)
{
    static const struct datapath_events events = {.inventory = on_inventory,
                                                  .ready = on_switch_ready,
                                                  .lost = on_switch_lost,
                                                  .refused = on_switch_refused,
                                                  .fatal = on_switch_fatal,
                                                  .idle_packet = on_idle_packet,
                                                  .link_gone = on_link_gone};
    static const struct monitor_ops mops = {.changed = on_host_changed, .link_gone = on_link_gone};
    struct datapath_config dc = agent_datapath_config(a->cfg);
    dc.prepared = TAKE(a->prepared);
    dc.expected = n;
    int r = datapath_open(a->loop, &dc, &events, a, &a->datapath, e);
    if (r < 0) {
        return r;
    }
    a->host_sync = host_sync_new(a->loop, on_host_synced, a);
    agent_open_host_ports(a);
    agent_open_pods(a);
    return monitor_new(a->loop, sdn_gateway_link(n->plugin), &mops, a, &a->monitor, e);
}
