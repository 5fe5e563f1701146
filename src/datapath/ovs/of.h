/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenFlow session: connection to the bridge, and the flow table kept in step with it.
 *
 * After each (re)connection the flows are dumped, and one bundle makes the difference. While
 * connected, of_sync sends what changed, one bundle at a time. Every minute the flows are dumped
 * again, to repair changes of other programs. A bundle that the switch refuses is logged with the
 * refused flow; a new dump and another attempt follow, with growing delays. Callbacks come on the
 * loop's thread; of_free may not be called from them. */
#pragma once

#include "datapath/ovs/flow_table.h"
#include "net/loop/loop.h"

struct of;

struct of_ops {
    void (*changed)(void *ctx); /* The flow table's 'dumped' or 'committed' changed. */
    /* Called once per lost connection or failed attempt. */
    void (*closed)(void *ctx, const char *reason);
    /* Reports whether the switch has the meter of refusals; called after each connection, before
     * the first dump. */
    void (*metered)(void *ctx, bool has_meter);
    /* The switch sent a packet: one that it dropped and that may be answered with an ICMP error, or
     * one that waits for an idle service. */
    void (*packet_in)(void *ctx, const struct of_packet_in *p);
};

/* Number of the meter of refusals, which limits the packets that the switch sends to the
 * agent to be answered with ICMP errors. */
#define OF_REFUSAL_METER 1
#define OF_REFUSALS_PER_S 100 /* Packets per second, of all ports together. */
/* Packets.  Small, because the userspace datapath forwards nothing while it sends one. */
#define OF_REFUSALS_BURST 20

struct of_stats {
    size_t connections, dumps, bundles, refused_bundles, flow_mods;
};

/* 'path' is the bridge's management socket.  'table' is borrowed and outlives the session. */
struct of *of_new(struct loop *l, const char *path, struct flow_table *table,
                  const struct of_ops *ops, void *ctx);
struct of *of_free(struct of *o);
/* Sends the changes that are due, if that is possible now. */
void of_sync(struct of *o);
/* Tries to connect at once: the switch is probably running. */
void of_kick(struct of *o);
/* Asks the switch for its flows with their counters: all, or those with PIPELINE_DROPS.  'done' is
 * called once, never before the call returns: with 'error' and the reason, or with the flows (valid
 * during the call). */
typedef void of_query_fn(void *ctx, int error, const char *text, const struct of_flow_list *flows,
                         const struct of_counters *counters);
void of_query(struct of *o, bool drops, of_query_fn *done, void *ctx);
/* The functions below do nothing without a connection; requests that the switch refuses are
 * logged. */
/* Sends 'packet' out of a pod's 'port' as an answer to the pod's own packet; the source is the
 * service address that the pod used. */
void of_packet_to(struct of *o, uint32_t port, const void *packet, size_t size);
/* Treats 'packet' as if it had come from 'port'. */
void of_packet_from(struct of *o, uint32_t port, const void *packet, size_t size);
/* Deletes connections to services from the switch's connection tracking. */
void of_forget(struct of *o, const struct of_connection *c);
/* Why flows could not be installed; NULL: no failure is known. */
const char *of_trouble(const struct of *o);
const struct of_stats *of_get_stats(const struct of *o);
/* Sets the interval in milliseconds at which flows are compared with the switch (default 60 s; for
 * tests). */
void of_set_audit_ms(struct of *o, uint64_t ms);
