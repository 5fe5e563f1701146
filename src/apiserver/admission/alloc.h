/* SPDX-License-Identifier: Apache-2.0 */
/* What a Service is given: its cluster address, node ports and ingress address.
 *
 * Each is a key of its own in the store, a claim, which names the service that has it.  Claims are
 * made and removed in the transaction that writes or deletes the service: nobody gets what is
 * another's, whichever server writes, and nothing is left behind or lost whatever fails in
 * between.  What is free is told by the claims of the cache; another server's newer claim makes the
 * transaction fail, and the write is attempted again. Claims that do not agree with the services
 * (written by others than this server) are put right by and by. Internal to src/apiserver;
 * everything runs on the loop's thread. */
#pragma once

#include "apiserver/verbs/write.h"
#include "sdn/service_ranges.h"

#define CLAIM_PREFIX "/registry/service-claims/"

struct alloc;

/* 'cfg' NULL: services are given nothing. */
struct alloc *alloc_new(struct apiserver *a, const struct service_ranges *cfg);
struct alloc *alloc_free(struct alloc *l);

/* Whether 'ip' is a pod's, a service's or a node's. */
bool alloc_is_inside(const struct alloc *l, uint32_t ip);
/* Takes the state of the cache, which was loaded anew. */
void alloc_reload(struct alloc *l);
/* The store has a key that belongs to no kind, or ('there' false) has it no more; 'l' may be
 * NULL. */
void alloc_changed(struct alloc *l, const char *key, bool there);

/* Whether the write is of an object that is given something. */
bool alloc_concerns(const struct write *w);
/* Gives 'obj', if it is a Service, what it needs and does not have, and notes in 'w' the claims
 * that the write makes and gives up.  'old' NULL: created.  -EINVAL, -ENOSPC. */
int alloc_settle(struct write *w, struct json *obj, const struct json *old,
                 struct outcome *outcome);
/* Notes that the deletion gives up all that 'base' has. */
void alloc_settle_deletion(struct write *w, const struct object *base);
/* Forgets what was noted: the write is over, or attempted anew. */
void alloc_drop(struct write *w);

/* ---- alloc_claims.c ---- */

/* The claims' keys that a Service stands for, each once; owned, ends with NULL. */
char **claims_of(const struct service_ranges *r, const struct json *service);
void claims_free(char **keys);
bool claims_have(char *const *keys, const char *key);
/* The claim of an address or a port; owned. */
char *claim_of_ip(uint32_t ip);
char *claim_of_ingress(uint32_t ip);
char *claim_of_port(uint16_t port);

enum claim_type { CLAIM_IP, CLAIM_PORT, CLAIM_INGRESS };
/* What 'key' claims; -EINVAL: it is no claim. */
int claim_parse(const char *key, enum claim_type *ret_type, uint32_t *ret_number);
/* The value of a claim of the service KEY ("namespace/name"); and whether it is that. */
struct blob *claim_value(const char *service_key);
bool claim_is_of(const struct blob *value, const char *service_key);

/* ---- alloc_repair.c ---- */

struct alloc_repair;
struct alloc_repair *alloc_repair_new(struct apiserver *a, const struct service_ranges *r);
struct alloc_repair *alloc_repair_free(struct alloc_repair *p);
/* Begins a walk over all services and claims soon. */
void alloc_repair_start(struct alloc_repair *p);
