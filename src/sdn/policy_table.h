/* SPDX-License-Identifier: Apache-2.0 */
/* Network policy as tables: the compiled form of policy.h for a datapath that uses lookups
 * instead of flows.
 *
 *     address ──▶ classes            as the subject, and as the peer, of egress and of ingress
 *     block ──▶ class                the longest block with the address; it includes the rules of wider ones
 *     subject's class, peer's ──▶ ports     the rules for both, and for the subject and any peer
 *     ports: protocol, port ──▶ verdict     of the longest row
 *
 * A verdict combines three lookups: for any peer, for the peer's class as a pod and for its
 * block (policy_verdict_add). All numbers but 0 are derived from their meaning, so that a new
 * agent computes the same; a set of ports never changes, a change makes another one. */
#pragma once

#include "sdn/policy_spec.h"

struct policy_classes {
    uint32_t subject[2], peer[2]; /* By direction; 0: no policy names it. */
    bool unknown;                 /* A local pod whose object is unknown: cut off. */
};

enum policy_peer { POLICY_ANYBODY, POLICY_POD, POLICY_BLOCK };
struct policy_pair_key {
    uint32_t subject, peer; /* Classes; 'peer' is 0 for POLICY_ANYBODY. */
    uint8_t dir, kind;      /* enum policy_direction, enum policy_peer */
};
struct policy_pair {
    uint32_t ports; /* 0: no rule. */
    bool isolated;  /* POLICY_ANYBODY, a row of each subject: a NetworkPolicy selects it. */
};

#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wpadded" /* Equal rows are found as bytes. */
/* The first rules that match; the higher priority comes first; 0: none. */
struct policy_verdict {
    uint16_t admin, baseline;
    uint8_t admin_action, baseline_action; /* enum policy_action */
    bool allowed;                          /* By a NetworkPolicy. */
    uint8_t zero;
};
struct policy_port_verdict {
    /* 0: all protocols, with or without ports; rows with a protocol count where they match. */
    uint8_t proto;
    uint8_t len; /* Number of the 16 bits of 'port' that must be equal. */
    uint16_t port;
    struct policy_verdict verdict;
};
#pragma GCC diagnostic pop

/* Receives the changes. All of them come into force at once with 'done'. */
struct policy_table_ops {
    /* NULL: the address has no class any more. */
    void (*set_address)(void *ctx, uint32_t ip, const struct policy_classes *c);
    /* 'there' false: the block is removed, and 'id' is the class of the block around it, or 0. */
    void (*set_block)(void *ctx, enum policy_direction d, struct ip4_prefix p, uint32_t id,
                      bool there);
    /* NULL: gone. */
    void (*set_pair)(void *ctx, const struct policy_pair_key *k, const struct policy_pair *v);
    /* Added or removed; 'rows' are those of the time of adding. */
    void (*set_ports)(void *ctx, uint32_t id, const struct policy_port_verdict *rows, size_t n,
                      bool there);
    void (*done)(void *ctx);
};

void policy_verdict_add(struct policy_verdict *to, const struct policy_verdict *v);
/* 'isolated' is the subject's. */
bool policy_verdict_allows(const struct policy_verdict *v, bool isolated);
