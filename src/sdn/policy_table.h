/* SPDX-License-Identifier: Apache-2.0 */
/* Network policy as tables: the form without flows of what policy.h compiles, for a datapath that looks things up.
 *
 *     address ──▶ classes            who it is as the subject, and as the peer, of egress and of ingress
 *     block ──▶ class                the longest one that an address is in; it stands for those around it, too
 *     subject's class, peer's ──▶ ports     what is said about these two, and about the subject and anybody
 *     ports: protocol, port ──▶ verdict     of the longest row
 *
 * A verdict is asked three times, for anybody, for the peer's class as a pod and for its block; policy_verdict_add
 * makes one of them.  All numbers but 0 are made of what they mean, so that a new agent has the same; a set of ports
 * never changes, a change makes another. */
#pragma once

#include "sdn/policy_spec.h"

struct policy_classes {
    uint32_t subject[2], peer[2]; /* By direction; 0: no policy speaks of it. */
    bool unknown;                 /* A pod here whose object is not known: cut off. */
};

enum policy_peer { POLICY_ANYBODY, POLICY_POD, POLICY_BLOCK };
struct policy_pair_key {
    uint32_t subject, peer; /* Classes; 'peer' is 0 for POLICY_ANYBODY. */
    uint8_t dir, kind;      /* enum policy_direction, enum policy_peer */
};
struct policy_pair {
    uint32_t ports; /* 0: nothing is said. */
    bool isolated;  /* POLICY_ANYBODY, which each subject has: a NetworkPolicy selects it. */
};

/* The first rules that match, where the higher priority comes first; 0: none does. */
struct policy_verdict {
    uint16_t admin, baseline;
    uint8_t admin_action, baseline_action; /* enum policy_action */
    bool allowed;                          /* By a NetworkPolicy. */
};
struct policy_port_verdict {
    uint8_t proto; /* 0: all of them, ports or not; the others count where they match. */
    uint8_t len;   /* Of 16 bits, how many of 'port' must be the same. */
    uint16_t port;
    struct policy_verdict verdict;
};

/* What has changed.  All of it comes into force at once with 'done'. */
struct policy_table_ops {
    /* NULL: the address has no class any more. */
    void (*set_address)(void *ctx, uint32_t ip, const struct policy_classes *c);
    /* 'there' false: it is no more, and 'id' the class of the block around it, or 0. */
    void (*set_block)(void *ctx, enum policy_direction d, struct ip4_prefix p, uint32_t id,
                      bool there);
    /* NULL: gone. */
    void (*set_pair)(void *ctx, const struct policy_pair_key *k, const struct policy_pair *v);
    /* New, or gone: 'rows' are what they were then. */
    void (*set_ports)(void *ctx, uint32_t id, const struct policy_port_verdict *rows, size_t n,
                      bool there);
    void (*done)(void *ctx);
};

void policy_verdict_add(struct policy_verdict *to, const struct policy_verdict *v);
/* 'isolated' as of the subject. */
bool policy_verdict_allows(const struct policy_verdict *v, bool isolated);
