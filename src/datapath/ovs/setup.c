/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ovs/ovs.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/timeutil.h"

#include <inttypes.h>
#include <stdio.h>

LOG_MODULE("ovs");

#define RETRY_MIN_MS 20
#define RETRY_MAX_MS 5000

static struct bridge_want wanted(const struct ovs_dp *o)
{
    return (struct bridge_want){
        .bridge = o->bridge,
        .datapath_type = o->configured_type,
        .fallback_type = o->kernel_datapath ? "system" : "netdev",
        .vxlan_port = o->net.vxlan_port,
        .tun_mac = mac_from_ip4(sdn_gateway(&o->net)),
        .mtu = o->net.mtu,
    };
}

static void retry_later(struct ovs_dp *o)
{
    backoff_fail(&o->setup_retry, ovs_now(o), (uint32_t) time_mono_ns());
}

void setup_restart(struct ovs_dp *o)
{
    o->was_in_place = false;
    o->given_up = o->outbox.fatal = false;
    o->setup_retry = BACKOFF_INIT(RETRY_MIN_MS, RETRY_MAX_MS);
    o->wait_cfg = 0;
    bridge_undo_clear(&o->undo);
}

/* ---- giving up ---- */

static void on_undone(void *ctx, int r, size_t failed, const struct ovsdb_msg *reply,
                      const struct err *e)
{
    struct ovs_dp *o = ctx;
    if (r < 0) {
        log_error("what was set up could not be removed again", "reason=\"%s\"", e->text);
    }
    o->setup_in_flight = false;
    o->outbox.fatal = o->given_up; /* Otherwise another network was set meanwhile. */
    loop_task_queue(&o->pump);
}

/* The desired network is impossible.  Before it was ever in place this is a wrong configuration:
 * undo the changes, and report it.  Later it is an outage that may pass. */
static void cannot(struct ovs_dp *o, const char *reason)
{
    snprintf(o->obstacle, sizeof o->obstacle, "%s", reason);
    if (o->was_in_place) {
        ovs_report(o, OUTBOX_LOST, reason);
        retry_later(o);
        return;
    }
    snprintf(o->outbox.fatal_reason, sizeof o->outbox.fatal_reason, "%s", reason);
    o->given_up = true;
    struct json *ops = bridge_undo_ops(db_rows(o->db), &o->undo);
    if (ops) {
        o->setup_in_flight = true;
        ovs_transact(o, ops, on_undone, o);
    } else {
        o->outbox.fatal = true;
    }
}

/* ---- changes ---- */

static void on_setup_done(void *ctx, int r, size_t failed, const struct ovsdb_msg *reply,
                          const struct err *e)
{
    struct ovs_dp *o = ctx;
    o->setup_in_flight = false;
    loop_task_queue(&o->pump);
    if (r == 0) {
        size_t last = json_count(reply->result) - 1;
        o->wait_cfg = json_get_int_or(json_get(ovsdb_selected_row(reply, last), "next_cfg"), 0);
        return;
    }
    retry_later(o);
    if (r == -EAGAIN || r == -EEXIST || r == -ENOENT || r == -ENOTCONN) {
        /* Another program changed the same rows: read them again and plan anew. */
        log_debug("set-up of the bridge to be repeated", "reason=\"%s\"", e->text);
        return;
    }
    snprintf(o->obstacle, sizeof o->obstacle, "the database refused the set-up: %.300s", e->text);
    ovs_report(o, OUTBOX_REFUSED, o->obstacle);
}

static void send_setup(struct ovs_dp *o, struct json *ops)
{
    json_append(ops,
                ovsdb_select("Open_vSwitch", ovsdb_where_uuid(db_rows(o->db)->root), "next_cfg"));
    o->setup_in_flight = true;
    ovs_transact(o, ops, on_setup_done, o);
}

/* The problem of one of the two ports; '*pending': nothing is known yet. */
static bool port_problem(const struct ovs_dp *o, const char *name, int64_t number, char *out,
                         size_t size, bool *pending)
{
    const struct row_iface *i = ovs_rows_iface(db_rows(o->db), name);
    if (i && i->ofport == number) {
        return false;
    }
    *pending = !i || i->ofport == 0;
    if (*pending) {
        struct bridge_want want = wanted(o);
        snprintf(out, size, "%s: Open vSwitch did not create it in %s (datapath type %s)", name,
                 o->bridge, plan_datapath_type(db_rows(o->db), &want));
    } else if (i->ofport < 0) {
        snprintf(out, size, "%s: %s", name, i->error ? i->error : "refused by Open vSwitch");
    } else {
        snprintf(out, size, "%s has port number %" PRId64 " instead of %" PRId64, name, i->ofport,
                 number);
    }
    return true;
}

static void warn_foreign(struct ovs_dp *o)
{
    static char said;
    const struct row_iface *i;
    HMAP_FOREACH (i, struct row_iface, node, &db_rows(o->db)->ifaces) {
        if (i->port && !i->pod && !i->pooled && !streq(i->name, o->bridge) &&
            !streq(i->name, PLAN_VXLAN) && !streq(i->name, PLAN_TUN) &&
            !smap_get(&o->foreign, i->name)) {
            smap_set(&o->foreign, i->name, &said);
            log_warn("the bridge has a port that is not ours, left alone", "bridge=%s port=%s",
                     o->bridge, i->name);
        }
    }
}

/* The database has the desired state: check whether Open vSwitch applied it. */
static void check_ports(struct ovs_dp *o)
{
    const struct ovs_rows *rows = db_rows(o->db);
    bool asked = o->wait_cfg > 0;
    /* After a restart with another database, its sequence numbers start again. */
    if (asked && rows->cur_cfg < MIN(o->wait_cfg, rows->next_cfg)) {
        snprintf(o->obstacle, sizeof o->obstacle,
                 "ovs-vswitchd does not answer (cur_cfg %" PRId64 " of %" PRId64 ")", rows->cur_cfg,
                 o->wait_cfg);
        return;
    }
    char problem[OVS_TEXT_SIZE];
    bool pending = false;
    if (!port_problem(o, PLAN_VXLAN, PIPELINE_PORT_VXLAN, problem, sizeof problem, &pending) &&
        !port_problem(o, PLAN_TUN, PIPELINE_PORT_TUN, problem, sizeof problem, &pending)) {
        o->obstacle[0] = '\0';
        o->setup_retry.failures = 0;
        return;
    }
    snprintf(o->obstacle, sizeof o->obstacle, "%s", problem);
    if (pending && !asked) {
        return; /* Open vSwitch has not started yet. */
    }
    if (!asked || o->was_in_place) {
        /* The port failed before this agent started, or the reason may have passed: let Open
         * vSwitch try again. */
        if (o->was_in_place) {
            ovs_report(o, OUTBOX_LOST, problem);
        }
        struct json *ops = json_array();
        json_append(ops, plan_next_cfg(rows));
        send_setup(o, ops);
        retry_later(o);
        return;
    }
    cannot(o, problem);
}

void setup_step(struct ovs_dp *o)
{
    const struct ovs_rows *rows = db_rows(o->db);
    if (rows->cur_cfg != o->seen_cfg) {
        o->seen_cfg = rows->cur_cfg;
        if (o->of) {
            of_kick(o->of); /* ovs-vswitchd changed a row, so it is alive. */
        }
    }
    if (o->given_up || o->setup_in_flight) {
        return;
    }
    if (!rows->root[0]) {
        snprintf(o->obstacle, sizeof o->obstacle, "the database is empty");
        return;
    }
    bool due = backoff_is_due(&o->setup_retry, ovs_now(o));
    if (!due) {
        ovs_wake_at(o, o->setup_retry.due_ms);
    }
    struct bridge_want want = wanted(o);
    if (o->configured_type && streq(o->configured_type, "system") && !o->kernel_datapath) {
        cannot(o, "datapath type system: the kernel has no openvswitch datapath");
        return;
    }
    struct err e = {0};
    struct json *ops = NULL;
    struct bridge_undo undo = {.updates = NULL};
    int r = bridge_plan(rows, &want, &ops, &undo, &e);
    if (r < 0 && due) {
        char reason[OVS_TEXT_SIZE];
        snprintf(reason, sizeof reason, "bridge %s: %.300s", o->bridge, e.text);
        cannot(o, reason);
    } else if (r == 0 && ops && due) {
        bridge_undo_merge(&o->undo, &undo);
        snprintf(o->obstacle, sizeof o->obstacle, "setting up bridge %s", o->bridge);
        log_info("changing the bridge", "bridge=%s type=%s operations=%zu", o->bridge,
                 plan_datapath_type(rows, &want), json_count(ops));
        send_setup(o, TAKE(ops));
    }
    bool as_wanted = r == 0 && !ops && !o->setup_in_flight;
    json_free(ops);
    bridge_undo_clear(&undo);
    if (as_wanted) {
        warn_foreign(o);
    }
    if (as_wanted && due) {
        check_ports(o);
    }
}

const char *setup_obstacle(const struct ovs_dp *o)
{
    return o->obstacle[0] ? o->obstacle : NULL;
}
