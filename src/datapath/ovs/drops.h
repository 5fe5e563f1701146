/* SPDX-License-Identifier: Apache-2.0 */
/* Packets dropped, by cause, summed from flows' counters.  A flow's counter ends with the flow;
 * these sums go on. Pure. */
#pragma once

#include "base/map.h"
#include "sdn/model.h"
#include "wire/openflow.h"

struct drop_counts {
    struct hmap seen; /* The last counter of each flow. */
    uint64_t total[MODEL_N_CAUSES];
};
void drop_counts_init(struct drop_counts *d);
void drop_counts_done(struct drop_counts *d);
/* Adds the switch's present counters of the flows that drop. */
void drop_counts_update(struct drop_counts *d, const struct of_flow_list *flows,
                        const struct of_counters *counters);
