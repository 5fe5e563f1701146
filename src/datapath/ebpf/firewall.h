/* SPDX-License-Identifier: Apache-2.0 */
/* The egress firewalls in the maps EBPF_FIREWALLS and EBPF_FIREWALL_BLOCKS.
 *
 * A changed firewall is written as a new list of blocks, and then put into effect by one write; so
 * a packet meets the old or the new one.  Firewalls that are set before the maps are loaded are
 * compared with what the maps have.  A firewall that does not fit denies everything, and is written
 * again by firewall_maps_put.  On one thread at a time. */
#pragma once

#include "datapath/ebpf/program.h"
#include "sdn/firewall.h"

#include "base/map.h"

struct firewall_maps {
    const struct program *program; /* NULL: the maps are not loaded yet. */
    struct hmap wanted;            /* By VNID. */
    struct hmap found;             /* Lists in the maps that no wanted firewall has. */
    uint32_t last_list;
    bool closed;    /* A firewall does not fit into EBPF_FIREWALLS. */
    size_t refused; /* Firewalls that did not fit, since the start. */
    size_t applied; /* Rows written and removed since the start. */
};

void firewall_maps_init(struct firewall_maps *m);
void firewall_maps_done(struct firewall_maps *m); /* The maps keep their rows. */
/* Reads the maps of 'p', which must stay valid, and writes what is wanted and not there. */
int firewall_maps_load(struct firewall_maps *m, const struct program *p, struct err *e);
/* Sets the firewall of a VNID; 'n' 0: it has none. */
void firewall_maps_set(struct firewall_maps *m, uint32_t vnid, const struct firewall_block *blocks,
                       size_t n);
/* Writes again what did not fit. */
void firewall_maps_put(struct firewall_maps *m);
/* Removes the firewalls that firewall_maps_load found and nothing has set since. */
void firewall_maps_clean(struct firewall_maps *m);
