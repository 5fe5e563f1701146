/* SPDX-License-Identifier: Apache-2.0 */
/* Where the Location of a redirect leads (RFC 9110, 10.2.2): a reference, which is resolved against
 * the URL of the request (RFC 3986, 5.2).
 *
 * For http and https alone; names of users in URLs are refused.  Pure. */
#pragma once

#include "base/err.h"

#include <stdint.h>

struct location {
    bool https;
    char *host; /* As it is written, without the port; owned, as is 'path'. */
    uint16_t port;
    char *path; /* Begins with "/"; has the query, and no fragment. */
};
void location_done(struct location *l);

/* 'base' is the URL of the request.  -EINVAL and nothing changed: 'text' is empty, malformed, or of
 * another scheme.  What is escaped in 'text' stays so. */
int location_resolve(const struct location *base, const char *text, struct location *ret,
                     struct err *e);
