/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of domains that a router allows and denies (ROUTER_ALLOWED_DOMAINS, ROUTER_DENIED_DOMAINS).
 *
 * A host is in a domain when it is the domain, or ends with a dot and the domain.  The lookup costs
 * one step for each label of the host.  Pure; the caller owns a list, which is constant. */
#pragma once

#include "base/map.h"

struct route_domains {
    struct smap names; /* The keys are the domains. */
};

/* Reads "open.header.test, openshift.org": commas between the domains, blanks do not count.  An
 * empty list has no host in it. */
void route_domains_init(struct route_domains *d, const char *text);
void route_domains_done(struct route_domains *d);
bool route_domains_is_empty(const struct route_domains *d);
bool route_domains_has(const struct route_domains *d, const char *host);
