/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ovs/ovs.h"

#include "base/log.h"
#include "base/macro.h"
#include "base/str.h"

LOG_MODULE("ovs");

/* Delay after which all packets that were under way at the change of the flows have passed. */
#define SETTLE_MS 100
/* The least interval of purges: after each one, the next packet of every kind is looked up anew. */
#define INTERVAL_MS 1000

void refresh_want(struct ovs_dp *o, uint64_t generation)
{
    o->refresh.wanted = MAX(o->refresh.wanted, generation);
}

static void refreshed(void *ctx, int error, const char *text)
{
    struct ovs_dp *o = ctx;
    o->refresh.call = NULL;
    if (error == -ECANCELED) {
        return;
    }
    o->refresh.at_ms = ovs_now(o) + INTERVAL_MS;
    if (error) {
        static struct log_limit limit;
        log_limited(&limit, LOG_WARN, "ovs-vswitchd does not forget cached flows, trying again",
                    "reason=\"%s\"", text);
    } else {
        o->refresh.done = o->refresh.asked;
    }
    loop_task_queue(&o->pump);
}

void refresh_step(struct ovs_dp *o)
{
    struct refresh *r = &o->refresh;
    const struct row_bridge *b = db_rows(o->db)->bridge;
    if (r->call || r->wanted <= r->done || !flow_table_in_place(&o->flows, r->wanted) || !b ||
        !streq_null(b->datapath_type, "netdev")) {
        return;
    }
    if (!r->pending) {
        r->pending = true;
        r->at_ms = MAX(r->at_ms, ovs_now(o) + SETTLE_MS);
    }
    if (ovs_now(o) < r->at_ms) {
        ovs_wake_at(o, r->at_ms);
        return;
    }
    r->pending = false;
    r->asked = r->wanted;
    r->call =
        unixctl_call(o->loop, o->rundir, "revalidator/purge", (const char *[]){NULL}, refreshed, o);
}

void refresh_done(struct ovs_dp *o)
{
    if (o->refresh.call) {
        unixctl_cancel(o->refresh.call);
    }
}
