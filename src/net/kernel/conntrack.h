/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the kernel's connection tracking forget (nfnetlink, ctnetlink).
 *
 * A datagram is sent on to where the first of its "connection" was, whatever the rules say since: a client that
 * goes on from the same port would reach the pod before for ever.  Blocks; any thread may call it. */
#pragma once

#include "base/err.h"

struct conntrack_flow {
    uint32_t from, to; /* As its first packet had them ... */
    uint16_t from_port, to_port;
    uint32_t answers; /* ... and where answers come from: elsewhere when it was translated. */
    uint16_t answers_port;
};
/* Whether to forget 'f'. */
typedef bool conntrack_fn(void *ctx, const struct conntrack_flow *f);
/* Forgets UDP for which 'fn' says so; only that of the host itself (zone 0, not what Open vSwitch tracks). */
int conntrack_forget_udp(conntrack_fn *fn, void *ctx, struct err *e);
