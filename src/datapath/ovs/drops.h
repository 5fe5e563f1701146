/* SPDX-License-Identifier: Apache-2.0 */
/* Packets dropped, by cause, summed from flows' counters.  A flow's counter ends with the flow;
 * these sums go on. Pure. */
#pragma once

#include "base/map.h"
#include "sdn/model.h"
#include "wire/openflow.h"

struct drop_counts {
    struct hmap seen;               /* The last counter of each flow. */
    uint64_t total[MODEL_N_CAUSES]; /* Packets since drop_counts_init, by model_cause. */
};
void drop_counts_init(struct drop_counts *d);
void drop_counts_done(struct drop_counts *d);
/* Takes one reading of the switch: 'counters' has an entry for each of 'flows'.  Adds the packets
 * dropped since the reading before; flows that are no longer listed are forgotten, their packets
 * stay in 'total'. */
void drop_counts_update(struct drop_counts *d, const struct of_flow_list *flows,
                        const struct of_counters *counters);
