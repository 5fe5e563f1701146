/* SPDX-License-Identifier: Apache-2.0 */
/* The eBPF programs under test with the maps of a random node, and what they do with
 * frames (BPF_PROG_TEST_RUN).
 *
 * Nothing here returns on a failure: the test fails. */
#pragma once

#include "datapath/ebpf/encode.h"
#include "datapath/ebpf/firewall.h"
#include "datapath/ebpf/policy.h"
#include "datapath/ebpf/program.h"
#include "frames.h"
#include "random_node.h"

struct program_side {
    struct program program;
    bool is_direct;       /* They put outer headers on and take them off, ... */
    uint64_t sent, taken; /* ... so often. */
    struct policy_maps policy_maps;
    struct firewall_maps firewalls;
    struct table routes, subnets, vteps, pods, pod_cache, ports, services, backends, serving;
    uint8_t subnet_len;
    uint32_t firewall_vnids[RANDOM_FIREWALLS]; /* Loaded. */
    size_t n_firewall_vnids;
    struct policy *policy;
};
extern const struct devices program_devices;

/* 'latest': with all that this kernel has; else with as little as the oldest. */
void program_side_open(struct program_side *s, bool latest);
void program_side_close(struct program_side *s); /* Nothing of policies may be left. */
/* The maps become those of 'c', whatever they were. */
void program_side_load(struct program_side *s, const struct cluster *c);
/* Takes its policies away. */
void program_side_unload(struct program_side *s);
/* What becomes of the frame, in words: "drop: CAUSE", with ", refused" where who sent it hears of
 * it; "deliver to PORT", "host by LINK", "tunnel to VTEP id VNID", "answer ...".  And as what it
 * leaves, without the outer header that it got. */
void program_side_observe(struct program_side *s, const struct cluster *c, const struct frame *f,
                          struct strbuf *out, struct frame *left);
