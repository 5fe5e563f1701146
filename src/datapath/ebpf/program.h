/* SPDX-License-Identifier: Apache-2.0 */
/* The eBPF programs and their maps in the kernel, and the bpffs in which the maps are pinned.
 *
 * Maps are pinned below the agent's run directory, in a bpffs of our own (the one below /sys is
 * often hidden, and shared by all software), so that they and their contents survive the agent.
 * The programs are loaded at each start with the existing maps; maps whose layout is of another
 * version are replaced by new ones, which the old programs do not see. Each hook (hook.h) then
 * changes atomically from the old program to the new one.
 *
 * Calls block: program_load for 0.1 to 0.3 s, because of the verifier (early.h), others for some
 * milliseconds.  A struct is used by one thread at a time; the descriptors by any. */
#pragma once

#include "base/err.h"

/* Features that not every kernel has; without one something is slower, or not shown. */
struct program_features {
    bool redirect_peer; /* bpf_redirect_peer, Linux 5.10. */
    bool scrub;         /* bpf_redirect_peer makes packets PACKET_HOST, Linux 6.15. */
    bool tcx;           /* Links at tc hooks, Linux 6.6. */
    bool ringbuf;       /* Ring buffers, Linux 5.8: for flow events and for idle services. */
    bool encap;         /* Programs can add and remove tunnel headers, Linux 5.13. */
    /* Not a feature: number of entries of the maps that the agent fills, if less than usual;
     * 0: usual. */
    uint32_t max_entries;
};
/* Names of the features, as in 'without'; NULL: no more. */
const char *program_feature_name(size_t i);
/* Probes the kernel; changes nothing. 'without' ("tcx,redirect_peer"; NULL: nothing): features
 * not to use even if the kernel has them. Fails when the kernel cannot run the programs at all,
 * or does not allow us to: the error says what is missing. */
int program_probe(const char *without, struct program_features *ret, struct err *e);
/* A program for tc hooks that passes every packet, as if it was absent: a descriptor, or a
 * negative errno. */
int program_load_idle(void);
/* Whether there is a bpffs on 'dir', or the kernel can mount one there; changes nothing. */
int program_check_mount(const char *dir, struct err *e);

struct program {
    bool loaded; /* We own the descriptors. */
    int from_pod, from_tunnel, from_host, from_wire;
    /* Maps; -1: not used by these programs. */
    int pods, pod_cache, ports, routes, subnets, vteps, services, backends, serving, conns,
        affinity, clients, refusals, settings, drops, events, watched, upcalls;
    /* Maps of network policy. */
    int generation, classes, blocks, pairs, port_sets, tracked, shares, fragments;
    int firewalls, firewall_blocks;
    bool reused; /* All maps existed before. */
};

bool program_is_mounted(const char *dir);
/* Mounts a bpffs on 'dir' (created when absent), unless one is mounted. */
int program_mount(const char *dir, struct err *e);
/* Loads the programs with the maps that are pinned in the folder 'pins' and have the layout of
 * this version, and new ones for the others; nothing outside of the process changes. 'pins'
 * NULL: all are new. 'under_test' as in bpf/maps.h. */
int program_load(const char *pins, const struct program_features *f, bool under_test,
                 struct program *ret, struct err *e);
/* Pins the maps that are not in 'pins', a folder (created when absent) in a mounted bpffs, and
 * removes pins of other names there. */
int program_pin(const struct program *p, const char *pins, struct err *e);
/* Loads another copy of the program 'name' of 'live' for traces: under test, with the maps that
 * the agent writes, and small maps of its own in place of those that packets change. So its
 * verdict on a packet equals the live program's, and it has no side effects. The descriptors of
 * the others are -1. */
int program_load_dry(const struct program *live, const struct program_features *f, const char *name,
                     struct program *ret, struct err *e);
/* Runs a program (of 'p', which is under test) on a frame: 'cb' goes in and comes out
 * (bpf/maps.h); '*ret_size', at first the room in 'out', is how much of that the frame takes as
 * it leaves. '*ret_action' is what the kernel would do. */
int program_run(int prog_fd, uint32_t cb[5], const void *frame, size_t size, void *out,
                size_t *ret_size, int *ret_action, struct err *e);
/* The maps that the agent or the programs maintain, by number; NULL: no more. */
struct program_map {
    const char *name;
    bool by_packets; /* The programs write it. */
};
const struct program_map *program_map(size_t i);
int program_map_fd(const struct program *p, const char *name);
/* Pinned maps and attached programs stay. */
void program_done(struct program *p);
