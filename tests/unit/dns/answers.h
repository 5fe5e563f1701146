/* SPDX-License-Identifier: Apache-2.0 */
/* Asks DNS questions of a zone, and writes answers as text that tests compare. */
#pragma once

#include "base/mem.h"
#include "base/str.h"
#include "dns/zone.h"
#include "wire/dns.h"

/* A service and its slices, as JSON; slices NULL: none.  The caller's. */
struct sdn_service *make_service(const char *service, const char *slice);
void set_service(struct dns_zone *z, const char *service, const char *slice);

/* Wire form of a query; returns its size. */
size_t make_query(const char *name, uint16_t type, bool edns, uint8_t *out, size_t size);
/* "NXDOMAIN aa tc | name TYPE data, name TYPE data | authority | additional", sections that are
 * empty left out, records sorted when 'sorted'.  Owned. */
char *message_text(const uint8_t *data, size_t size, bool sorted);
/* What 'z' says to 'client' about 'name': text as above, and "elsewhere NAME" at the
 * end when it is to be asked there. */
char *ask(const struct dns_zone *z, uint32_t client, const char *name, uint16_t type);
