/* SPDX-License-Identifier: Apache-2.0 */
/* Claims: the store's keys by which services have addresses and ports.  Pure. */
#pragma once

#include "sdn/service_ranges.h"
#include "wire/json.h"

#define CLAIM_PREFIX "/registry/service-claims/"

/* The keys of the claims that a Service implies, each once; owned, ends with NULL. */
char **claims_of(const struct service_ranges *r, const struct json *service);
void claims_free(char **keys);
bool claims_have(char *const *keys, const char *key);
/* The key of the claim of an address or a port; owned. */
char *claim_of_ip(uint32_t ip);
char *claim_of_ingress(uint32_t ip);
char *claim_of_port(uint16_t port);

enum claim_type { CLAIM_IP, CLAIM_PORT, CLAIM_INGRESS };
/* The number that 'key' claims; -EINVAL: it is not the key of a claim. */
int claim_parse(const char *key, enum claim_type *ret_type, uint32_t *ret_number);
/* The value of a claim of the service KEY ("namespace/name"), and whether a value is that. */
struct blob *claim_value(const char *service_key);
bool claim_is_of(const struct blob *value, const char *service_key);
