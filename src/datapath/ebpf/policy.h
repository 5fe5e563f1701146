/* SPDX-License-Identifier: Apache-2.0 */
/* Network policy in the maps of the eBPF programs: the tables of sdn/policy_table.h as rows
 * (bpf/maps.h).
 *
 * Changes are collected and written together (policy_maps_commit).  Rows are written with the
 * next generation, which the programs ignore until a single write makes it the current one;
 * removed rows are deleted after that. So a packet sees all of a change or nothing. This module
 * keeps no copy of the tables: they are in the kernel, where the next agent process finds them
 * and writes only the difference.
 *
 * Where a map is full, or the kernel has no memory, the pods that the row concerns are cut off,
 * except from their node, until it fits.  On one thread at a time. */
#pragma once

#include "base/err.h"
#include "base/ip.h"
#include "datapath/ebpf/program.h"
#include "sdn/policy_table.h"

struct policy_change;
struct policy_maps {
    const struct program *program; /* Borrowed; NULL: not loaded yet, changes wait. */
    struct policy_change *changes; /* In the order of their arrival. */
    size_t n_changes, cap_changes;
    struct policy_change *refused; /* Rows that did not fit: retried at each commit. */
    size_t n_refused, cap_refused;
    size_t refused_ever;    /* Since the start. */
    uint32_t (*cut_off)[2]; /* Direction and class of the subjects that are cut off, sorted. */
    size_t n_cut_off;
    bool whole;                 /* The collected changes are complete. */
    bool begun;                 /* The rows that the maps had at the start were taken over. */
    size_t applied;             /* Rows written or removed since the start. */
    void (*changed)(void *ctx); /* Called when there is something to commit. */
    void *ctx;
    uint64_t *shares; /* EBPF_SHARES; mapped. */
};

/* For sdn/policy.h; 'ctx' is the struct policy_maps. */
extern const struct policy_table_ops policy_maps_ops;

void policy_maps_init(struct policy_maps *m, void (*changed)(void *ctx), void *ctx);
void policy_maps_done(struct policy_maps *m);
/* The programs are loaded, with the maps of 'p'. */
int policy_maps_load(struct policy_maps *m, const struct program *p, struct err *e);
/* Whether changes are pending. */
bool policy_maps_due(const struct policy_maps *m);
/* Writes the pending changes. The first call removes rows without a change, so all rows must
 * have been set before. -ENOSPC: not all of it fits, and 'e' says what; the pods concerned are
 * cut off. */
int policy_maps_commit(struct policy_maps *m, struct err *e);

/* The same, with the result in the log. */
void policy_maps_put(struct policy_maps *m);

/* ---- connections ---- */

/* Removes connections that are over, and those of addresses in 'local' that are neither the
 * gateway's nor a pod's; counts the shares again when 'recount'. Blocks for some 10 ms when the
 * map is full. */
struct policy_sweep {
    struct ip4_prefix local;
    uint32_t gateway;
    uint32_t *pods; /* Addresses of the pods; sorted and freed by the callee. */
    size_t n_pods;
    bool recount;
};
/* Returns the number of connections left. */
size_t policy_maps_sweep(struct policy_maps *m, const struct policy_sweep *s);
/* Forgets all. */
void policy_maps_forget_connections(struct policy_maps *m);
