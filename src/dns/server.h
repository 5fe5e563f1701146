/* SPDX-License-Identifier: Apache-2.0 */
/* The DNS server: sockets, threads and what they share.
 *
 * Each UDP thread has a socket of its own for the address (SO_REUSEPORT), takes and sends messages
 * in batches, and answers questions about the cluster without a lock; others are passed to the
 * loop's thread, which also serves TCP (RFC 7766: several questions on a connection; idle ones
 * are closed; their number is limited).  The address need not exist yet, and may be removed and
 * added again (IP_FREEBIND). */
#pragma once

#include "dns/forward.h"
#include "dns/respond.h"

struct dns_server;

struct dns_server_options {
    /* Its zone and cache belong to the caller, and must live longer. */
    struct dns_responder responder;
    struct dns_forwarder *forwarder; /* NULL: none. */
    unsigned threads;                /* 0: one for each two processors, at most four. */
};

/* Listens at 'address' (IPv4) over UDP and TCP.  Port 0: any free one, the same for both.  The
 * error names the address; a port that is taken is -EADDRINUSE. */
int dns_server_new(struct loop *l, const struct dns_server_options *o, uint32_t address,
                   uint16_t port, struct dns_server **ret, struct err *e);
struct dns_server *dns_server_free(struct dns_server *s);
DEFINE_CLEANUP(struct dns_server *, dns_server_free)
uint16_t dns_server_port(const struct dns_server *s);
/* Adds its counters to 'sum'. */
void dns_server_count(const struct dns_server *s, uint64_t sum[DNS_COUNTERS]);
