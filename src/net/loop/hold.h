/* SPDX-License-Identifier: Apache-2.0 */
/* Holds ports of this host, so that no process can listen there, and finds out who has one (sock_diag(7)).
 *
 * A held port is a socket that is bound and never used: TCP and SCTP refuse who connects, datagrams are dropped.  Calls do not
 * wait but for one exchange with the kernel, and work in the network namespace of the calling thread; any thread may
 * call them. */
#pragma once

#include "base/err.h"

enum hold_result {
    HOLD_OK,
    HOLD_NO_NEED,    /* The kernel does not have the protocol (SCTP): nobody can listen. */
    HOLD_CONNECTION, /* Not held: only ends of the host's connections have the port, for a while. */
    HOLD_LISTENS,    /* Not held: a process listens there, or has bound it. */
};
/* Holds 'port' of 'protocol' (an IP protocol with ports) at 'ip' (0: all addresses, also such as come later); '*ret_fd' is
 * the caller's to close, -1 when there is none.  HOLD_LISTENS: '*ret_ip' is where (0: at all addresses, or it is not
 * known).  A negative errno: the kernel refuses for another reason. */
int hold_port(uint8_t protocol, uint32_t ip, uint16_t port, enum hold_result *ret, int *ret_fd,
              uint32_t *ret_ip, struct err *e);
