/* SPDX-License-Identifier: Apache-2.0 */
/* Network policy in the maps of the eBPF programs: the tables of sdn/policy_table.h as rows (bpf/maps.h).
 *
 * Changes are collected and written together (policy_maps_commit).  Rows are written with the next generation, which
 * the programs do not look at before it is made the current one by a single write; what is gone is removed after it.
 * So a packet sees all of a change or nothing.  Nothing of the tables is kept here: the kernel has it, also for the
 * agent after us, which takes what differs from there.
 *
 * Where a map is full, or the kernel has no memory, the pods that the row is about are cut off, but from their node,
 * until it fits.  On one thread at a time. */
#pragma once

#include "base/err.h"
#include "base/ip.h"
#include "datapath/ebpf/program.h"
#include "sdn/policy_table.h"

struct policy_change;
struct policy_maps {
    const struct program *program; /* Borrowed; NULL: not loaded yet, changes wait. */
    struct policy_change *changes; /* In the order in which they were told. */
    size_t n_changes, cap_changes;
    struct policy_change *refused; /* Rows that did not fit: tried again each time. */
    size_t n_refused, cap_refused;
    size_t refused_ever;    /* Since the start. */
    uint32_t (*cut_off)[2]; /* Direction and class of subjects, sorted. */
    size_t n_cut_off;
    bool whole;                 /* No change is half told. */
    bool begun;                 /* What the maps had from before was taken over. */
    size_t applied;             /* Rows that were written or removed since the start. */
    void (*changed)(void *ctx); /* There is something to commit. */
    void *ctx;
    uint64_t *shares; /* EBPF_SHARES; mapped. */
};

/* For sdn/policy.h; 'ctx' is the struct policy_maps. */
extern const struct policy_table_ops policy_maps_ops;

void policy_maps_init(struct policy_maps *m, void (*changed)(void *ctx), void *ctx);
void policy_maps_done(struct policy_maps *m);
/* The programs are there, with the maps that 'p' has. */
int policy_maps_load(struct policy_maps *m, const struct program *p, struct err *e);
/* Whether there is something to write. */
bool policy_maps_due(const struct policy_maps *m);
/* Writes what was told.  The first time rows that nobody told of go, so all must have been told.  -ENOSPC: not all
 * of it fits, and 'e' says what; what does not is cut off. */
int policy_maps_commit(struct policy_maps *m, struct err *e);

/* The same, and what becomes of it in the log. */
void policy_maps_put(struct policy_maps *m);

/* ---- connections ---- */

/* Forgets those that are over, and those of addresses in 'local' that are neither the gateway's nor a pod's; counts the
 * shares anew when 'recount'.  Blocks for some 10 ms when the map is full. */
struct policy_sweep {
    struct ip4_prefix local;
    uint32_t gateway;
    uint32_t *pods; /* Their addresses; sorted and freed. */
    size_t n_pods;
    bool recount;
};
/* Returns how many are left. */
size_t policy_maps_sweep(struct policy_maps *m, const struct policy_sweep *s);
/* Forgets all. */
void policy_maps_forget_connections(struct policy_maps *m);
