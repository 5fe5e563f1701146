/* SPDX-License-Identifier: Apache-2.0 */
/* Reserves ports of this host, so that no process can listen there, and finds the user of a port
 * (sock_diag(7)).
 *
 * A reserved port is a socket that is bound and never used: TCP and SCTP refuse connections,
 * datagrams are dropped. Calls wait only for one exchange with the kernel, and work in the
 * network namespace of the calling thread; any thread may call them. */
#pragma once

#include "base/err.h"

enum hold_result {
    HOLD_OK,
    HOLD_NO_NEED, /* The kernel lacks the protocol (SCTP): no process can listen. */
    /* Not reserved: only local ends of the host's connections have the port, for a while. */
    HOLD_CONNECTION,
    HOLD_LISTENS, /* Not reserved: a process listens there, or has bound it. */
};
/* Reserves 'port' of 'protocol' (an IP protocol with ports) at 'ip' (0: all addresses, present
 * and future); the caller closes '*ret_fd', which is -1 when there is none. HOLD_LISTENS:
 * '*ret_ip' is the address (0: all addresses, or unknown).  A negative errno: the kernel refuses
 * for another reason. */
int hold_port(uint8_t protocol, uint32_t ip, uint16_t port, enum hold_result *ret, int *ret_fd,
              uint32_t *ret_ip, struct err *e);
