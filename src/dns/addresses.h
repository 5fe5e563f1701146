/* SPDX-License-Identifier: Apache-2.0 */
/* The IPv4 addresses of a name in an answer (RFC 1035), aliases followed.  Pure. */
#pragma once

#include "base/err.h"
#include "wire/dns.h"

#define DNS_ADDRESSES_MAX 1000

struct dns_addresses {
    uint32_t ip[DNS_ADDRESSES_MAX]; /* Sorted; each occurs once. */
    size_t n;
    uint32_t ttl_s; /* The smallest TTL of the records used. */
};

/* Reads the addresses of the name that the message asks for.  -EBADMSG: malformed, or aliases in a
 * circle; -ENOENT: the name does not exist, or has no address; -EREMOTEIO: the server could not
 * answer; -E2BIG: more addresses than DNS_ADDRESSES_MAX. */
int dns_addresses_read(const uint8_t *message, size_t size, struct dns_addresses *ret,
                       struct err *e);

/* How long the addresses of a name are used before it is looked up again, from the TTL, as
 * OpenShift does it: below 30 s the TTL, from 30 min on 30 min, else 30 s.  A TTL of 0 counts as 1 s. */
uint32_t dns_addresses_refresh_s(uint32_t ttl_s);
