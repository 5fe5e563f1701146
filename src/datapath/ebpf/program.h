/* SPDX-License-Identifier: Apache-2.0 */
/* The eBPF programs and their maps in the kernel, and the file system that holds on to them.
 *
 * Maps are pinned below the agent's run directory, in a bpffs of our own (the one below /sys is often hidden, and is
 * everybody's), so that they and what they hold survive the agent.  The programs are loaded at each start with the
 * maps that are there; those whose layout is of another version are replaced by new ones, which the old programs do
 * not see.  Hooks (hook.h) then change from the old program to the new one at one moment each.
 *
 * Calls block: program_load for 0.1 to 0.3 s, as the verifier takes its time (early.h), others for some milliseconds.  A struct is used by one thread at a time; the descriptors by any. */
#pragma once

#include "base/err.h"

/* What not every kernel has; without it something is slower, or not shown. */
struct program_features {
    bool redirect_peer; /* bpf_redirect_peer, Linux 5.10. */
    bool scrub;         /* That helper makes a packet one that came for its receiver, Linux 6.15. */
    bool tcx;           /* Links at tc hooks, Linux 6.6. */
    bool ringbuf;       /* Ring buffers, Linux 5.8: who watches is told, and idle services wake. */
    bool encap;         /* Tunnel headers put on and off by programs, Linux 5.13. */
    uint32_t
        max_entries; /* Not of the kernel: of maps that the agent fills, if less than usual; 0. */
};
/* Their names, as 'without' has them; NULL: no more. */
const char *program_feature_name(size_t i);
/* Asks the kernel; changes nothing.  'without' ("tcx,redirect_peer"; NULL: nothing): what to do without though it has
 * it.  Fails when it cannot run the programs at all, or must not for us: the error says what is missing. */
int program_probe(const char *without, struct program_features *ret, struct err *e);
/* A program for tc hooks that lets everything on, as if it was not there: a descriptor, or a negative errno. */
int program_load_idle(void);
/* Whether there is a bpffs on 'dir', or the kernel has any to mount there; changes nothing. */
int program_check_mount(const char *dir, struct err *e);

struct program {
    bool loaded; /* The descriptors are ours. */
    int from_pod, from_tunnel, from_host, from_wire;
    /* Maps; -1: not in these programs. */
    int pods, near, ports, routes, subnets, vteps, services, backends, serving, conns, affinity,
        clients, refusals, settings, drops, events, watched, held;
    int generation, classes, blocks, pairs, port_sets, tracked, shares, fragments; /* Of policy. */
    bool reused; /* The maps were there. */
};

bool program_is_mounted(const char *dir);
/* Mounts a bpffs on 'dir' (made when absent), unless there is one. */
int program_mount(const char *dir, struct err *e);
/* Loads the programs with the maps that are pinned in the folder 'pins' and have the layout of this version, and new ones
 * for the others; nothing outside of the process is changed.  'pins' NULL: all are new.  'under_test' as in bpf/maps.h. */
int program_load(const char *pins, const struct program_features *f, bool under_test,
                 struct program *ret, struct err *e);
/* Pins the maps that are not in 'pins', a folder (made when absent) in a mounted bpffs. */
int program_pin(const struct program *p, const char *pins, struct err *e);
/* One of the programs, 'name', once more, as 'live' has it, for traces: under test, with the maps that the agent writes, and small
 * ones of their own in place of those that packets change.  So it says of a packet what that does, and leaves no sign.  The
 * descriptors of the others are -1. */
int program_load_dry(const struct program *live, const struct program_features *f, const char *name,
                     struct program *ret, struct err *e);
/* Runs a program (of 'p', which is under test) on a frame: 'cb' goes in and comes out (bpf/maps.h); '*ret_size', at
 * first the room in 'out', is how much of that the frame takes as it leaves.  '*ret_action' is what the kernel would do. */
int program_run(int prog_fd, uint32_t cb[5], const void *frame, size_t size, void *out,
                size_t *ret_size, int *ret_action, struct err *e);
/* The maps that the agent or the programs keep, by number; NULL: no more. */
struct program_map {
    const char *name;
    bool by_packets; /* The programs write it. */
};
const struct program_map *program_map(size_t i);
int program_map_fd(const struct program *p, const char *name);
/* Pinned maps and attached programs stay. */
void program_done(struct program *p);
