/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the kernel's connection tracking forget (nfnetlink, ctnetlink).
 *
 * A datagram is sent on to where the first of its "connection" was, whatever the rules say since: a client that
 * goes on from the same port would reach the pod before for ever.  Blocks; any thread may call it. */
#pragma once

#include "base/err.h"

/* Forgets UDP that was sent to one of the ports of any address. */
int conntrack_forget_udp(const uint16_t *ports, size_t n_ports, struct err *e);
