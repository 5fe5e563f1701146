/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of name servers: resolv.conf(5), and lists of addresses.  Pure but for resolv_load. */
#pragma once

#include "base/err.h"
#include "base/macro.h"

#include <netinet/in.h>

#define DNS_SERVERS_MAX 8

union dns_endpoint {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

struct dns_servers {
    size_t n;
    union dns_endpoint at[DNS_SERVERS_MAX];
};

/* "A.B.C.D", "A.B.C.D:PORT", an IPv6 address or "[ADDRESS]:PORT". */
int dns_endpoint_parse(const char *s, union dns_endpoint *ret, struct err *e);
socklen_t dns_endpoint_size(const union dns_endpoint *a);
bool dns_endpoint_equal(const union dns_endpoint *a, const union dns_endpoint *b);
#define DNS_ENDPOINT_TEXT 64
void dns_endpoint_format(const union dns_endpoint *a, char out[DNS_ENDPOINT_TEXT]);
/* Separated by commas or blanks. */
int dns_servers_parse(const char *list, struct dns_servers *ret, struct err *e);
/* The name servers of a resolv.conf; skips malformed addresses, as the C library does. */
void dns_servers_read(const char *text, size_t size, struct dns_servers *ret);
int dns_servers_load(const char *path, struct dns_servers *ret, struct err *e);
