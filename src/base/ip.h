/* SPDX-License-Identifier: Apache-2.0 */
/* IPv4 addresses, prefixes and Ethernet addresses as values.
 *
 * Addresses are uint32_t in HOST byte order everywhere above the wire; codecs convert.  A prefix is
 * canonical when it has no bits set below its length; parsing refuses others by default, as
 * "10.1.2.3/16" in a configuration is nearly always a mistake. */
#pragma once

#include "base/err.h"
#include "base/macro.h"

#define IP4_TEXT_SIZE 16    /* "255.255.255.255" and NUL. */
#define PREFIX_TEXT_SIZE 20 /* "255.255.255.255/32", NUL, and one for the compiler's range check. */
#define MAC_TEXT_SIZE 18

struct ip4_prefix {
    uint32_t addr; /* Host byte order. */
    uint8_t len;   /* 0-32. */
};

struct mac {
    uint8_t b[6];
};

/* Strict dotted quad: four decimal numbers 0-255 without leading zeros. */
int ip4_parse(const char *s, uint32_t *ret);
void ip4_format(uint32_t addr, char out[IP4_TEXT_SIZE]);
/* A value to print in place: printf("%s", IP4_TEXT(addr)). */
#define IP4_TEXT(a) (ip4_text_(a, (char[IP4_TEXT_SIZE]){0}))
#define PREFIX_TEXT(p) (prefix_text_(p, (char[PREFIX_TEXT_SIZE]){0}))
#define MAC_TEXT(m) (mac_text_(m, (char[MAC_TEXT_SIZE]){0}))
const char *ip4_text_(uint32_t addr, char *out);
const char *prefix_text_(struct ip4_prefix p, char *out);
const char *mac_text_(struct mac m, char *out);

/* "a.b.c.d/len", canonical; the error names the problem of 's'. */
int prefix_parse(const char *s, struct ip4_prefix *ret, struct err *e);
/* The same, but address bits below the length are kept ("10.128.0.1/23"). */
int prefix_parse_host(const char *s, struct ip4_prefix *ret, struct err *e);
static inline uint32_t prefix_mask(uint8_t len)
{
    return len ? ~(uint32_t) 0 << (32 - len) : 0;
}
static inline uint32_t prefix_last(struct ip4_prefix p)
{
    return p.addr | ~prefix_mask(p.len);
}
static inline uint64_t prefix_size(struct ip4_prefix p)
{
    return (uint64_t) 1 << (32 - p.len);
}
static inline bool prefix_contains(struct ip4_prefix p, uint32_t addr)
{
    return (addr & prefix_mask(p.len)) == p.addr;
}
static inline bool prefix_equal(struct ip4_prefix a, struct ip4_prefix b)
{
    return a.addr == b.addr && a.len == b.len;
}
static inline bool prefix_overlaps(struct ip4_prefix a, struct ip4_prefix b)
{
    return a.len <= b.len ? prefix_contains(a, b.addr) : prefix_contains(b, a.addr);
}

int mac_parse(const char *s, struct mac *ret); /* "0a:58:0a:80:00:02" */
/* The MAC of the pod (or gateway) with this address: 0a:58 and the four address bytes. */
struct mac mac_from_ip4(uint32_t addr);
static inline bool mac_equal(struct mac a, struct mac b)
{
    return __builtin_memcmp(a.b, b.b, 6) == 0;
}
