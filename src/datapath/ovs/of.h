/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenFlow session: connection to the bridge, and the flow table kept in step with it.
 *
 * After each (re)connection the flows are dumped, and one bundle makes the difference.  While connected,
 * of_sync sends what changed, one bundle at a time.  Every minute the flows are dumped again, to mend what
 * somebody else changed.  A bundle that the switch refuses is logged with the flow at fault; then comes a
 * new dump and another attempt, ever less often.  Callbacks come on the loop's thread; of_free may not be
 * called from them. */
#pragma once

#include "datapath/ovs/flow_table.h"
#include "net/loop/loop.h"

struct of;

struct of_ops {
    void (*changed)(void *ctx); /* The flow table's 'dumped' or 'committed' changed. */
    void (*closed)(void *ctx, const char *reason); /* Once per connection, or failed attempt. */
    /* Whether the switch has the meter of refusals; after each connection, before the first dump. */
    void (*metered)(void *ctx, bool has_meter);
    void (*packet_in)(void *ctx, const struct of_packet_in *p);
};

/* The meter that limits packet-ins: so many a second in all.  The burst is small: the userspace datapath
 * forwards nothing while it hands one up. */
#define OF_REFUSAL_METER 1
#define OF_REFUSALS_PER_S 100
#define OF_REFUSALS_BURST 20

struct of_stats {
    size_t connections, dumps, bundles, refused_bundles, flow_mods;
};

/* 'table' is the caller's and outlives the session. */
struct of *of_new(struct loop *l, const char *path, struct flow_table *table,
                  const struct of_ops *ops, void *ctx);
struct of *of_free(struct of *o);
/* Sends what is due, if anything and if possible. */
void of_sync(struct of *o);
/* Tries to connect at once: there is reason to think that the switch is there. */
void of_kick(struct of *o);
/* Asks the switch for its flows with their counters: all, or those with PIPELINE_DROPS.  'done' is called
 * once, never from within: with 'error' and why, or with what there is (valid during the call). */
typedef void of_query_fn(void *ctx, int error, const char *text, const struct of_flow_list *flows,
                         const struct of_counters *counters);
void of_query(struct of *o, bool drops, of_query_fn *done, void *ctx);
/* While there is no connection these do nothing; what the switch refuses is logged. */
/* Sends 'packet' out of 'port' of a pod, as an answer to what that sent: with the address of a service that it used. */
void of_packet_to(struct of *o, uint32_t port, const void *packet, size_t size);
/* Treats 'packet' as if it had come from 'port'. */
void of_packet_from(struct of *o, uint32_t port, const void *packet, size_t size);
/* Forgets connections to services. */
void of_forget(struct of *o, const struct of_connection *c);
/* Why flows could not be put in place; NULL: nothing is known against it. */
const char *of_trouble(const struct of *o);
const struct of_stats *of_get_stats(const struct of *o);
/* How often flows are compared with the switch (default 60 s; for tests). */
void of_set_audit_ms(struct of *o, uint64_t ms);
