/* SPDX-License-Identifier: Apache-2.0 */
/* Removes entries of the kernel's connection tracking (nfnetlink, ctnetlink).
 *
 * Datagrams follow the first one of their "connection", even after the rules have changed: a
 * client that keeps its port would reach the previous pod for ever.  Blocks; any thread may call
 * it. */
#pragma once

#include "base/err.h"

struct conntrack_flow {
    uint32_t from, to; /* Addresses of its first packet. */
    uint16_t from_port, to_port;
    uint32_t answers; /* Source of the answers: differs from 'to' when it was translated. */
    uint16_t answers_port;
};
/* Whether to remove 'f'. */
typedef bool conntrack_fn(void *ctx, const struct conntrack_flow *f);
/* Removes the UDP entries for which 'fn' returns true; only those of the host itself (zone 0,
 * not those of Open vSwitch). */
int conntrack_forget_udp(conntrack_fn *fn, void *ctx, struct err *e);
