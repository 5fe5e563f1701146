/* SPDX-License-Identifier: Apache-2.0 */
/* Packets dropped, by cause, from what flows count: their counters end with the flows, these go on.  Pure. */
#pragma once

#include "base/map.h"
#include "sdn/model.h"
#include "wire/openflow.h"

struct drop_counts {
    struct hmap seen; /* What each flow had at last. */
    uint64_t total[MODEL_N_CAUSES];
};
void drop_counts_init(struct drop_counts *d);
void drop_counts_done(struct drop_counts *d);
/* Takes in what the switch reports now of the flows that drop. */
void drop_counts_update(struct drop_counts *d, const struct of_flow_list *flows,
                        const struct of_counters *counters);
