/* SPDX-License-Identifier: Apache-2.0 */
/* The eBPF programs and their maps in the kernel, and the file system that holds on to them.
 *
 * Maps are pinned below the agent's run directory, in a bpffs of our own (the one below /sys is often hidden, and is
 * everybody's), so that they and what they hold survive the agent.  The programs are loaded at each start with the
 * maps that are there; those whose layout is of another version are replaced by new ones, which the old programs do
 * not see.  Hooks (hook.h) then change from the old program to the new one at one moment each.
 *
 * Calls block for some milliseconds.  A struct is used by one thread at a time; the descriptors by any. */
#pragma once

#include "base/err.h"

struct program_features {
    bool redirect_peer; /* bpf_redirect_peer, Linux 5.10. */
    bool tcx;           /* Links at tc hooks, Linux 6.6. */
};
/* Asks the kernel; changes nothing.  'without' ("tcx,redirect_peer"; NULL: nothing): what to do without though it has
 * it.  Fails when it cannot run the programs at all, or must not for us: the error says what is missing. */
int program_probe(const char *without, struct program_features *ret, struct err *e);

struct program {
    struct bpf_object *object; /* Owns the descriptors. */
    int from_pod, from_tunnel, from_host;
    int pods, ports, routes, vteps, services, backends, serving, conns, affinity, settings,
        drops;                                                                     /* Maps. */
    int generation, classes, blocks, pairs, port_sets, tracked, shares, fragments; /* Of policy. */
    bool reused; /* The maps were there. */
};

/* Mounts a bpffs on 'dir' (made when absent), unless there is one. */
int program_mount(const char *dir, struct err *e);
/* Loads the programs; 'pins' is the folder of the maps' pins in a mounted bpffs, NULL: the maps are not pinned.
 * 'under_test' as in bpf/maps.h. */
int program_load(const char *pins, const struct program_features *f, bool under_test,
                 struct program *ret, struct err *e);
/* Pinned maps and attached programs stay. */
void program_done(struct program *p);
