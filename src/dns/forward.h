/* SPDX-License-Identifier: Apache-2.0 */
/* Asks other name servers for names that are not the cluster's.
 *
 * Servers are tried in their order, those that did not answer lately last.  Each question goes from
 * a port of its own with a random number, and only an answer from that server to that port, with
 * that number and that question, is one.  Over UDP first, over TCP when the answer says so or when
 * something keeps sending wrong ones.  Who asks what is being asked already waits with the others.
 * When nobody answers in time, what is known from before is used (RFC 8767).
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

/* 'servers' NULL: those of the file 'resolv_conf', which is read again when it changes. */
struct dns_forwarder *dns_forwarder_new(struct loop *l, struct dns_cache *cache,
                                        const struct dns_servers *servers, const char *resolv_conf);
/* Whoever still waits is told that it failed. */
struct dns_forwarder *dns_forwarder_free(struct dns_forwarder *f);
DEFINE_CLEANUP(struct dns_forwarder *, dns_forwarder_free)
/* Addresses at which we listen: never asked. */
void dns_forwarder_set_own(struct dns_forwarder *f, const struct dns_servers *own);

/* 'answer' NULL: nobody answered.  Valid during the call. */
typedef void dns_forwarder_fn(void *ctx, const struct dns_cached *answer);
/* 'client': who wants to know, of whom each may wait for so many names only.  'fn' is called once,
 * never from within this call, unless an error is returned: -EBUSY, too many wait, or this client
 * for too many; -EHOSTUNREACH, there is no server. */
int dns_forwarder_ask(struct dns_forwarder *f, const struct dns_key *k, uint32_t client,
                      dns_forwarder_fn *fn, void *ctx);
/* The waiters of 'ctx' are told nothing any more. */
void dns_forwarder_forget(struct dns_forwarder *f, void *ctx);

const struct dns_forwarder_counters *dns_forwarder_counters(const struct dns_forwarder *f);
/* Those in use, and how many of them answered when they were last asked. */
size_t dns_forwarder_servers(struct dns_forwarder *f, size_t *ret_up);
