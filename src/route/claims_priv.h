/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the two forms of the claims: verdicts about one route, and their texts.  Internal to
 * src/route. */
#pragma once

#include "route/claims.h"

/* The obstacle in a route's way. */
enum claims_rival {
    CLAIMS_FREE,
    CLAIMS_SAME_HOST,    /* An older route without wildcard on the same host. */
    CLAIMS_WILDCARD,     /* An older wildcard of the host's domain. */
    CLAIMS_BELOW_DOMAIN, /* An older route of another namespace below the wildcard's domain. */
};

/* Whether the options alone refuse the route: fills '*ret', and returns true. */
bool claims_refuse_alone(const struct route_claims_options *o, const struct route *r,
                         struct route_verdict *ret);
/* The verdict about 'r' when 'by' is in its way ('by' NULL with CLAIMS_BELOW_DOMAIN, and with a
 * rival of another namespace, which is not named). */
struct route_verdict claims_verdict(const struct route *r, enum claims_rival rival,
                                    const struct route *by);
bool claims_same_owner(const struct route_claims_options *o, const struct route *a,
                       const struct route *b);
