/* SPDX-License-Identifier: Apache-2.0 */
/* The flows that br0 should have, in groups, and the flows that the switch is known to have.
 * Pure.
 *
 * A group is named by its cookie and replaced as a whole; flows that are in both the old and the
 * new group stay untouched. flow_table_build then gives the smallest list of changes for one
 * bundle, and flow_table_built_done reports the switch's answer. One bundle is in flight at a
 * time.
 *
 * A dump of the switch (at each connection, and periodically to find changes of other programs) is
 * fed between flow_table_dump_begin and flow_table_dump_end; differences become part of the next
 * bundle. Flows that no group wants are removed: the agent owns the bridge.
 *
 * Two groups may want flows of the same key (two nodes that swap addresses, for a moment): the
 * lower cookie has it, and the other group gets it as soon as the first gives it up.
 *
 * Each change belongs to a generation, which is in place once the bundle that carries
 * it was committed.  The table keeps its flows packed (flow_store.h): a node has
 * hundreds of thousands.  Not thread-safe. */
#pragma once

#include "datapath/ovs/flow_store.h"

struct flow_change {
    enum of_flow_command command; /* OF_FLOW_ADD (also replaces) or OF_FLOW_DELETE_STRICT. */
    uint32_t record;              /* The flow's record: see flow_table_flow. */
    /* OF_FLOW_ADD: seconds of idle time until the switch deletes the flow, which no group wants;
     * 0: the flow stays. */
    uint16_t idle_s;
};

struct flow_list {
    uint32_t *records;
    size_t n, cap;
};

struct flow_table {
    struct flow_store store;
    struct flow_list
        dirty; /* Records whose key has to be looked at; none while there was no dump. */
    struct flow_list sent; /* Records that are part of the bundle in flight. */
    size_t n_wanted;
    uint64_t building;  /* Generation of changes made now. */
    uint64_t committed; /* Last generation that is in place. */
    bool in_flight, dumped;
    size_t foreign; /* Flows of the last dump that differed from the desired ones. */
};

void flow_table_init(struct flow_table *t);
void flow_table_done(struct flow_table *t);

/* Makes 'flows' (emptied; 'cookie' is the pipeline_group of each) the group's flows; an empty list
 * removes the group. Returns the generation in which the group is in place. */
uint64_t flow_table_set_group(struct flow_table *t, uint64_t cookie, struct of_flow_list *flows);
static inline uint64_t flow_table_remove_group(struct flow_table *t, uint64_t cookie)
{
    return flow_table_set_group(t, cookie, &(struct of_flow_list){0});
}
/* Whether the switch has all changes up to 'generation'. */
static inline bool flow_table_in_place(const struct flow_table *t, uint64_t generation)
{
    return t->dumped && t->committed >= generation;
}

/* Forgets which flows the switch has, because the connection is gone. */
void flow_table_disconnect(struct flow_table *t);
void flow_table_dump_begin(struct flow_table *t);
/* Adds a flow of the dump.  Flows that expire by themselves, as the pipeline allows, are
 * ignored. */
void flow_table_dump_flow(struct flow_table *t, const struct of_flow *f);
void flow_table_dump_end(struct flow_table *t);

/* Collects the changes that are due, deletions first; none before the first dump or while a bundle
 * is in flight.  Returns their number; if it is not 0, the caller owns the array '*ret' and the
 * bundle counts as in flight. */
size_t flow_table_build(struct flow_table *t, struct flow_change **ret);
/* The flow of a change that is not built_done yet; valid until the next call of any function of the
 * table. */
const struct of_flow *flow_table_flow(struct flow_table *t, const struct flow_change *c);
/* Reports that the bundle was committed, or that it was refused or lost; a dump must follow
 * then. */
void flow_table_built_done(struct flow_table *t, bool committed);
