/* SPDX-License-Identifier: Apache-2.0 */
/* An index that finds the pods that a service selects, and the services that select a pod,
 * without walking over all of them.  Pure.
 *
 * Pods are indexed by each of their labels, services by one label of their selector.  Pods belong
 * to the index; services are represented by their keys ("namespace/name"). */
#pragma once

#include "base/map.h"
#include "controllers/services/endpoint_plan.h"

struct endpoint_index {
    struct smap pods;     /* Key to struct endpoint_pod. */
    struct smap by_label; /* "namespace key=value" to a struct smap of pods by key. */
    struct smap services; /* "namespace key=value" to a struct smap of keys. */
};
void endpoint_index_init(struct endpoint_index *x);
void endpoint_index_done(struct endpoint_index *x);

/* Takes 'pod' over; returns the previous pod of that key (the caller owns
 * it), or NULL.  'pod' NULL: it was deleted. */
struct endpoint_pod *endpoint_index_put(struct endpoint_index *x, const char *key,
                                        struct endpoint_pod *pod);
/* Sets the selector of a service; NULL or empty: none.  'old' is the previous one. */
void endpoint_index_select(struct endpoint_index *x, const char *service, const struct json *old,
                           const struct json *selector);
/* Calls 'fn' for each service that may select the pod. */
void endpoint_index_services(const struct endpoint_index *x, const struct endpoint_pod *pod,
                             void (*fn)(void *ctx, const char *service), void *ctx);
/* The pods of 'ns' that the selector selects; the list is owned by the caller. */
size_t endpoint_index_pods(const struct endpoint_index *x, const char *ns,
                           const struct json *selector, struct endpoint_pod ***ret);
