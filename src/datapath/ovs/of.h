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
#include "net/loop.h"

struct of;

struct of_ops {
    void (*changed)(void *ctx); /* The flow table's 'dumped' or 'committed' changed. */
    void (*closed)(void *ctx, const char *reason); /* Once per connection, or failed attempt. */
};

struct of_stats {
    size_t dumps, bundles, flow_mods;
};

/* 'table' is the caller's and outlives the session. */
struct of *of_new(struct loop *l, const char *path, struct flow_table *table,
                  const struct of_ops *ops, void *ctx);
struct of *of_free(struct of *o);
/* Sends what is due, if anything and if possible. */
void of_sync(struct of *o);
/* Tries to connect at once: there is reason to think that the switch is there. */
void of_kick(struct of *o);
/* Why flows could not be put in place; NULL: nothing is known against it. */
const char *of_trouble(const struct of *o);
const struct of_stats *of_get_stats(const struct of *o);
/* How often flows are compared with the switch (default 60 s; for tests). */
void of_set_audit_ms(struct of *o, uint64_t ms);
