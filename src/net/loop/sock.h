/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets: creates listening and connecting ones, always non-blocking and close-on-exec. */
#pragma once

#include "base/err.h"
#include "base/macro.h"

/* Listens on "HOST:PORT" (an IPv4 address, "localhost", or "0.0.0.0"; port 0 = any) with
 * SO_REUSEADDR; the error names the address and, says so when the port is taken. */
int sock_listen_tcp(const char *address, int *ret_fd, struct err *e);
/* Unix stream socket at 'path' with 'mode'; a stale socket file is replaced, one that answers is
 * -EADDRINUSE.  The directory must exist. */
int sock_listen_unix(const char *path, unsigned mode, int *ret_fd, struct err *e);
int sock_connect_unix(const char *path, int *ret_fd, struct err *e);
/* The IPv4 address of 'host' (an address, "localhost", or a name, which is looked up, blocking),
 * as owned text. -EHOSTUNREACH: the name cannot be resolved now. */
int sock_resolve(const char *host, char **ret, struct err *e);
/* Starts a non-blocking connect; 0 also while it is in progress. */
int sock_connect_tcp(const char *host, uint16_t port, int *ret_fd, struct err *e);
/* Result of a connect in progress, once writable. */
int sock_connect_result(int fd);
int sock_local_port(int fd); /* Port of a bound TCP socket; negative errno. */
/* Number of descriptors passed by systemd-style socket activation (LISTEN_PID, LISTEN_FDS),
 * starting at descriptor 3; unsets the variables. */
int sock_activation_fds(void);
/* Whether 'fd' is a TCP socket that listens at exactly 'address', "HOST:PORT" as sock_listen_tcp
 * takes it. */
bool sock_listens_at(int fd, const char *address);
/* Effective user of the process at the other end of a unix socket. */
int sock_peer_uid(int fd, unsigned *ret_uid);
