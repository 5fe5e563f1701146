/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of the names in egress firewalls, kept up to date.
 *
 * Each name is looked up at the node's name servers, through the cache from which pods are answered
 * (dns/dns.h), so that a rule and a pod see the same answer.  It is looked up again when
 * the answer expires (dns_addresses_refresh_s).  If that fails, the name keeps its addresses, and
 * is looked up again after NAMES_RETRY_MS.  Everything on the loop's thread. */
#pragma once

#include "dns/dns.h"

#define NAMES_RETRY_MS 5000

struct names_ops {
    void (*resolved)(void *ctx, const char *name, const uint32_t *ips, size_t n);
    /* The look-up of a name fails, for this reason; NULL: it succeeds again.  Called when that
     * changes. */
    void (*failed)(void *ctx, const char *name, const char *why);
};

struct names;
/* 'dns' must live longer. */
struct names *names_new(struct loop *l, struct dns *dns, const struct names_ops *ops, void *ctx);
struct names *names_free(struct names *n);
/* Begins or ends to look up a name. */
void names_want(struct names *n, const char *name, bool wanted);
