/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ovs/ovs.h"

#include "base/log.h"
#include "base/mem.h"
#include "datapath/ovs/settings.h"

#include <stdio.h>

LOG_MODULE("ovs");

#define GRACE_MS 3000 /* Setting up may take this long before it counts as an outage. */

static struct ovs_dp *of_dp(struct datapath *dp)
{
    return CONTAINER_OF(dp, struct ovs_dp, dp);
}

/* ---- services for the parts ---- */

uint64_t ovs_now(struct ovs_dp *o)
{
    return loop_now_ms(o->loop);
}

void ovs_wake_at(struct ovs_dp *o, uint64_t ms)
{
    o->wake_ms = MIN(o->wake_ms, ms);
}

void ovs_report(struct ovs_dp *o, enum outbox_trouble t, const char *reason)
{
    if (o->trouble != t) {
        o->trouble = t;
        outbox_add_trouble(&o->outbox, t, reason);
    }
}

void ovs_transact(struct ovs_dp *o, struct json *ops, db_done_fn *done, void *ctx)
{
    o->transactions++;
    db_transact(o->db, ops, done, ctx);
}

/* ---- sessions ---- */

static void on_changed(void *ctx)
{
    struct ovs_dp *o = ctx;
    loop_task_queue(&o->pump);
}

static void on_db_closed(void *ctx, const char *reason)
{
    struct ovs_dp *o = ctx;
    char text[OVS_TEXT_SIZE];
    snprintf(text, sizeof text, "ovsdb-server: %s", reason);
    ovs_report(o, OUTBOX_LOST, text);
    loop_task_queue(&o->pump);
}

static void on_of_closed(void *ctx, const char *reason)
{
    struct ovs_dp *o = ctx;
    /* While the bridge is being made there is nothing to connect to yet. */
    if (o->of_was_up) {
        char text[OVS_TEXT_SIZE];
        snprintf(text, sizeof text, "ovs-vswitchd: %s", reason);
        ovs_report(o, OUTBOX_LOST, text);
    }
    o->of_was_up = false;
    loop_task_queue(&o->pump);
}

static void on_of_metered(void *ctx, bool has_meter)
{
    network_set_meter(ctx, has_meter ? OF_REFUSAL_METER : 0);
}

static void on_of_packet_in(void *ctx, const struct of_packet_in *p)
{
    struct ovs_dp *o = ctx;
    if (pipeline_cause(p->table, p->cookie) != MODEL_SERVICE_IDLE) {
        refuse_packet(o, p);
    } else if (o->events.idle_packet) {
        o->events.idle_packet(o->ctx, p->in_port, p->data, p->size);
    }
}

static const struct db_ops db_callbacks = {.changed = on_changed, .closed = on_db_closed};
static const struct of_ops of_callbacks = {.changed = on_changed,
                                           .closed = on_of_closed,
                                           .metered = on_of_metered,
                                           .packet_in = on_of_packet_in};

/* ---- the pump ---- */

const char *ovs_obstacle(const struct ovs_dp *o)
{
    if (o->given_up) {
        return o->outbox.fatal_reason;
    }
    if (!db_is_synced(o->db)) {
        return "no connection to ovsdb-server";
    }
    if (setup_obstacle(o)) {
        return setup_obstacle(o);
    }
    if (o->of && of_trouble(o->of)) {
        return of_trouble(o->of);
    }
    if (!o->flows.dumped) {
        return "no OpenFlow connection to ovs-vswitchd";
    }
    return flow_table_in_place(&o->flows, o->net_generation) ? NULL : "flows are being written";
}

/* Determines whether the network is in place, and which events to report to the agent. */
static void judge(struct ovs_dp *o)
{
    const char *reason = ovs_obstacle(o);
    if (!reason) {
        if (o->obstacle_since_ms) {
            o->obstacle_since_ms = 0;
            o->outbox.ready = true;
            log_debug("network in place", "pods=%zu remotes=%zu flows=%zu", o->pods.n,
                      o->net.n_remotes, o->flows.n_wanted);
        }
        o->trouble = OUTBOX_NO_TROUBLE;
        o->was_in_place = true;
        bridge_undo_clear(&o->undo);
        return;
    }
    uint64_t now = ovs_now(o);
    if (!o->obstacle_since_ms) {
        o->obstacle_since_ms = now;
    }
    o->outbox.ready = false;
    if (o->given_up) {
        return;
    }
    if (o->of && of_trouble(o->of)) {
        ovs_report(o, OUTBOX_REFUSED, reason);
    } else if (o->trouble) {
        return; /* The trouble is reported already; the obstacle is a step on the way back. */
    } else if (now - o->obstacle_since_ms >= GRACE_MS) {
        ovs_report(o, OUTBOX_LOST, reason);
    } else {
        ovs_wake_at(o, o->obstacle_since_ms + GRACE_MS);
    }
}

/* Delivers to the agent.  Returns false if the agent closed the datapath, whose memory is freed
 * then. */
static bool deliver(struct ovs_dp *o)
{
    bool open = outbox_deliver(&o->outbox);
    if (!open) {
        free(o);
    }
    return open;
}

static void pump(void *ctx)
{
    struct ovs_dp *o = ctx;
    o->wake_ms = UINT64_MAX;
    if (db_is_synced(o->db)) {
        pool_adopt(o);
        pods_adopt(o);
        if (!o->inventory_known) {
            o->inventory_known = o->outbox.inventory = true;
        }
    }
    if (o->have_network && o->inventory_known) {
        if (db_is_synced(o->db)) {
            setup_step(o);
        }
        if (!o->of && db_is_synced(o->db) && !o->given_up && !setup_obstacle(o)) {
            /* Connects only when the bridge is certain to be the agent's: its flows are
             * replaced. */
            o->of = of_new(o->loop, o->mgmt, &o->flows, &of_callbacks, o);
        }
        if (db_is_synced(o->db) && db_rows(o->db)->bridge && !o->given_up) {
            pods_step(o);
            if (o->outbox.has_port && !deliver(o)) {
                return; /* First, so that links are made in parallel with flows. */
            }
        }
        pods_flows(o);
        if (o->of) {
            of_sync(o->of);
        }
        refresh_step(o);
        tunnels_step(o);
        after_step(o);
        o->of_was_up |= o->flows.dumped;
        judge(o);
    }
    pods_finish(o);
    if (deliver(o) && o->wake_ms != UINT64_MAX) {
        uint64_t now = ovs_now(o);
        loop_timer_arm(o->timer, o->wake_ms > now ? o->wake_ms - now : 0);
    }
}

static void on_timer(void *ctx)
{
    struct ovs_dp *o = ctx;
    loop_task_queue(&o->pump);
}

/* ---- entry points ---- */

static void ovs_close(struct datapath *dp)
{
    struct ovs_dp *o = of_dp(dp);
    explain_close(o);
    refresh_done(o);
    tunnels_done(o);
    after_done(o);
    db_free(o->db);
    of_free(o->of);
    explain_done(o);
    loop_task_cancel(&o->pump);
    loop_timer_free(o->timer);
    pods_done(o);
    pool_done(o);
    compile_done(o);
    network_done(o);
    flow_table_done(&o->flows);
    bridge_undo_clear(&o->undo);
    smap_done(&o->foreign);
    free(o->bridge);
    free(o->rundir);
    free(o->mgmt);
    free(o->configured_type);
    if (outbox_close(&o->outbox)) {
        free(o);
    }
}

static int ovs_open(struct loop *l, const struct datapath_config *cfg,
                    const struct datapath_events *ev, void *ctx, struct datapath **ret,
                    struct err *e)
{
    const char *type = datapath_get_setting(cfg, OVS_DATAPATH_TYPE);
    const char *bridge = datapath_get_setting(cfg, OVS_BRIDGE);
    const char *rundir = datapath_get_setting(cfg, OVS_RUN_DIR);
    struct ovs_dp *o = NEW(struct ovs_dp);
    o->dp.ops = &datapath_ovs;
    o->loop = l;
    o->events = *ev;
    o->ctx = ctx;
    o->bridge = xstrdup(bridge);
    o->rundir = xstrdup(rundir);
    o->mgmt = xasprintf("%s/%s.mgmt", rundir, bridge);
    o->configured_type = type ? xstrdup(type) : NULL;
    o->kernel_datapath = kernel_has_datapath();
    o->refusal_meter = OF_REFUSAL_METER; /* True until the switch refuses. */
    flow_table_init(&o->flows);
    smap_init(&o->foreign, NULL);
    outbox_init(&o->outbox, &o->pump, &o->events, ctx);
    list_init(&o->after);
    list_init(&o->again);
    pods_init(o);
    pool_init(o);
    pool_open_ends(o, cfg->run_dir);
    explain_init(o);
    loop_task_init(&o->pump, l, pump, o);
    o->timer = loop_timer_new(l, on_timer, o);
    compile_init(o, cfg->node_name);
    o->db = db_new(l, datapath_get_setting(cfg, OVS_DATABASE), bridge, &db_callbacks, o);
    *ret = &o->dp;
    return 0;
}

static void ovs_set_network(struct datapath *dp, const struct sdn_network *n)
{
    struct ovs_dp *o = of_dp(dp);
    network_set(o, n);
    refresh_want(o, o->net_generation);
    if (!o->obstacle_since_ms) {
        o->obstacle_since_ms = ovs_now(o); /* So that 'ready' is reported again. */
    }
    loop_task_queue(&o->pump);
}

static void ovs_attach(struct datapath *dp, const struct dp_pod *p, datapath_port_fn *port,
                       datapath_done_fn *done, void *ctx)
{
    pods_attach(of_dp(dp), p, port, done, ctx);
}

static void ovs_detach(struct datapath *dp, const char *container_id, const char *ifname,
                       datapath_done_fn *done, void *ctx)
{
    pods_detach(of_dp(dp), container_id, ifname, done, ctx);
}

static void ovs_link_gone(struct datapath *dp, const char *name)
{
    pool_link_gone(of_dp(dp), name);
}

static void ovs_set_runtime(struct datapath *dp, const char *container_id, const char *ifname,
                            const char *host_ports, const char *bandwidth, datapath_done_fn *done,
                            void *ctx)
{
    pods_set_runtime(of_dp(dp), container_id, ifname, host_ports, bandwidth, done, ctx);
}

static void ovs_set_vnids(struct datapath *dp, const char *pod_namespace, const struct sdn_vnids *v)
{
    struct ovs_dp *o = of_dp(dp);
    pods_set_vnids(o, pod_namespace, v);
    refresh_want(o, o->flows.building);
}

static void ovs_set_firewall(struct datapath *dp, uint32_t vnid,
                             const struct firewall_block *blocks, size_t n)
{
    compile_firewall(of_dp(dp), vnid, blocks, n);
}

static void ovs_set_policy(struct datapath *dp, struct policy *p)
{
    compile_policy(of_dp(dp), p);
}

static void ovs_change_service(struct datapath *dp, const struct sdn_service *old,
                               const struct sdn_project_service *now)
{
    compile_service(of_dp(dp), old, now);
}

static void ovs_settle_services(struct datapath *dp, const struct datapath_services *all)
{
    compile_settle(of_dp(dp));
}

static void ovs_release(struct datapath *dp, uint32_t port, const uint8_t *frame, size_t size)
{
    after_send(of_dp(dp), port, frame, size);
}

static const struct dp_pod *const *ovs_pods(struct datapath *dp, size_t *ret_n)
{
    return pods_view(of_dp(dp), ret_n);
}

static void ovs_get_status(struct datapath *dp, struct datapath_status *ret)
{
    struct ovs_dp *o = of_dp(dp);
    size_t pods;
    pods_view(o, &pods);
    const struct row_bridge *b = db_rows(o->db)->bridge;
    *ret = (struct datapath_status){
        .connected = db_is_synced(o->db) && o->flows.dumped,
        .in_place = o->have_network && o->inventory_known && !o->obstacle_since_ms,
        .rules = o->flows.n_wanted,
        .pods = pods,
        .remotes = o->net.n_remotes,
        .spare_ports = o->pool.n_free,
        .variant = b && b->datapath_type ? b->datapath_type : "",
        .in_userspace = b && streq_null(b->datapath_type, "netdev"),
        .refuses = o->refusal_meter,
        .connections_ended = o->connections_ended,
        .transactions = o->transactions,
        .refusals_sent = o->refusals_sent,
        .refusals_suppressed = o->refusals_suppressed,
    };
    if (o->of) {
        const struct of_stats *s = of_get_stats(o->of);
        ret->sessions = s->connections;
        ret->batches = s->bundles;
        ret->batches_refused = s->refused_bundles;
        ret->rule_changes = s->flow_mods;
    }
}

struct ovs_counters ovs_get_counters(const struct datapath *dp)
{
    const struct ovs_dp *o = CONTAINER_OF((struct datapath *) dp, struct ovs_dp, dp);
    struct ovs_counters c = {.transactions = o->transactions};
    if (o->of) {
        const struct of_stats *s = of_get_stats(o->of);
        c.dumps = s->dumps;
        c.bundles = s->bundles;
        c.flow_mods = s->flow_mods;
    }
    return c;
}

void ovs_set_audit_ms(struct datapath *dp, uint64_t ms)
{
    of_set_audit_ms(of_dp(dp)->of, ms);
}

bool ovs_ports_are_settled(const struct datapath *dp)
{
    return pool_is_settled(CONTAINER_OF((struct datapath *) dp, struct ovs_dp, dp));
}

void ovs_set_quiet_ms(struct datapath *dp, uint64_t ms)
{
    of_dp(dp)->pool.quiet_ms = ms;
}

static int ovs_watch(struct datapath *dp, datapath_events_fn *fn, void *ctx, struct err *e)
{
    return fn ? err_set(e, -EOPNOTSUPP,
                        "the datapath ovs does not tell single packets; \"tenet node flows\" has "
                        "what its rules counted, and with --drops those that drop")
              : 0;
}

static int ovs_maps(struct datapath *dp, const char *name, const char *after, size_t limit,
                    struct json **ret, struct err *e)
{
    return err_set(e, -EOPNOTSUPP,
                   "the datapath ovs has no maps; \"tenet node flows\" has its rules");
}

static int ovs_make_mounts(const struct datapath_config *cfg, struct err *e)
{
    return port_peers_mount(cfg->run_dir, e);
}

const struct datapath_ops datapath_ovs = {
    .kind = "ovs",
    .words = {.title = "Open vSwitch",
              .lost_reason = "OpenVSwitchGone",
              .refused_reason = "FlowsRefused"},
    .settings = ovs_settings,
    .make_mounts = ovs_make_mounts,
    .open = ovs_open,
    .close = ovs_close,
    .set_network = ovs_set_network,
    .set_vnids = ovs_set_vnids,
    .set_policy = ovs_set_policy,
    .set_firewall = ovs_set_firewall,
    .change_service = ovs_change_service,
    .settle_services = ovs_settle_services,
    .release = ovs_release,
    .attach = ovs_attach,
    .detach = ovs_detach,
    .set_runtime = ovs_set_runtime,
    .pods = ovs_pods,
    .wire = wire_set,
    .unlimit = wire_unlimit,
    .check_wire = wire_check,
    .end = wire_end,
    .links = wire_links,
    .link_gone = ovs_link_gone,
    .get_status = ovs_get_status,
    .explain = {.drops = explain_drops,
                .rules = explain_rules,
                .trace = explain_trace,
                .watch = ovs_watch,
                .maps = ovs_maps},
};
