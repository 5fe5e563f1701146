/* SPDX-License-Identifier: Apache-2.0 */
/* Forwards questions for names outside the cluster to other name servers.
 *
 * Servers are tried in their order, those that did not answer lately last.  Each question has
 * its own port and a random id, and only an answer from that server to that port, with that id
 * and question, is accepted. UDP is used first; TCP when the answer is truncated or after
 * repeated wrong answers. Equal questions share one query. When no server answers in time, an
 * expired answer is used (RFC 8767).
 *
 * Everything runs on the loop's thread; the cache is shared. */
#pragma once

#include "dns/cache.h"
#include "dns/resolv.h"
#include "net/loop/loop.h"

#define DNS_RESOLV_CONF "/etc/resolv.conf"

struct dns_forwarder;

struct dns_forwarder_counters {
    uint64_t asked, answered, timeouts, failed, wrong, stale, refused, tcp;
};

/* 'servers' NULL: those in the file 'resolv_conf', which is read again when it changes. */
struct dns_forwarder *dns_forwarder_new(struct loop *l, struct dns_cache *cache,
                                        const struct dns_servers *servers, const char *resolv_conf);
/* Remaining waiters get a failure. */
struct dns_forwarder *dns_forwarder_free(struct dns_forwarder *f);
DEFINE_CLEANUP(struct dns_forwarder *, dns_forwarder_free)
/* Our own addresses: never queried. */
void dns_forwarder_set_own(struct dns_forwarder *f, const struct dns_servers *own);

/* 'answer' NULL: no server answered. Valid during the call. */
typedef void dns_forwarder_fn(void *ctx, const struct dns_cached *answer);
/* 'client': the address of the client, each of which may wait for a limited number of names.
 * 'fn' is called once, never from within this call, unless an error is returned: -EBUSY, too
 * many wait, or too many of this client; -EHOSTUNREACH, there is no server. */
int dns_forwarder_ask(struct dns_forwarder *f, const struct dns_key *k, uint32_t client,
                      dns_forwarder_fn *fn, void *ctx);
/* The waiters of 'ctx' are not called any more. */
void dns_forwarder_forget(struct dns_forwarder *f, void *ctx);

const struct dns_forwarder_counters *dns_forwarder_counters(const struct dns_forwarder *f);
/* The servers in use, and the number of them that answered their last query. */
size_t dns_forwarder_servers(struct dns_forwarder *f, size_t *ret_up);
