/* SPDX-License-Identifier: Apache-2.0 */
/* A name server of the world, on the loop of a test, at 127.0.0.1: what it does to a
 * name is said by its first label.
 *
 *     ok-...         192.0.2.1, for a minute
 *     refused-...    REFUSED
 *     short-...      TC over UDP, 192.0.2.1 over TCP
 *     nx-...         NXDOMAIN
 *     silent-...     nothing
 *     old-...        FORMERR while the query has EDNS, then 192.0.2.1
 *     number-...     another message's number; over TCP the right one
 *     close-...      TC over UDP; closes the TCP connection
 *     other-...      the answer to another question; over TCP the right one
 *     query-...      the question itself, as if it were an answer; over TCP the right one
 */
#pragma once

#include "dns/resolv.h"
#include "net/loop/loop.h"

#define UPSTREAM_CONNECTIONS 64

struct upstream {
    struct loop *loop;
    int udp, tcp;
    uint16_t port;
    struct loop_fd *udp_watch, *tcp_watch;
    int connection[UPSTREAM_CONNECTIONS];
    struct loop_fd *connection_watch[UPSTREAM_CONNECTIONS];
    size_t n_connections;
    unsigned n_udp, n_tcp; /* Questions that came. */
};

void upstream_start(struct upstream *u, struct loop *l);
void upstream_stop(struct upstream *u);
/* 127.0.0.1 and 'port'. */
union dns_endpoint loopback_endpoint(uint16_t port);
/* A port of 127.0.0.1 that no socket has, of UDP or TCP; connections that ended a
 * moment ago count as sockets. */
uint16_t closed_port(void);
