/* SPDX-License-Identifier: Apache-2.0 */
/* The pods that wait for a node, in the order in which they are tried.
 *
 * A pod is active (tried next: the most important first, then the oldest), backing off after a
 * failed attempt (1 s, doubling to 10 s), or waiting: no node suits it, and only an event that
 * could change one of the reasons, or 5 minutes, makes it active again.  A pod that is being tried
 * is taken; an event in the meantime counts when it comes back.
 *
 * The times and the order are those of kube-scheduler.  Pure: the owner gives the time, in
 * milliseconds of one clock that does not go back.  One thread. */
#pragma once

#include "base/map.h"

#define PENDING_BACKOFF_MIN_MS 1000
#define PENDING_BACKOFF_MAX_MS 10000
#define PENDING_WAIT_MAX_MS 300000

struct pending;
struct pending *pending_new(void);
struct pending *pending_free(struct pending *p);
/* Makes the pod active; one that is there already gets its new priority, and is tried again at
 * once.  'created' orders pods of equal priority: earlier texts first. */
void pending_add(struct pending *p, const char *key, int32_t priority, const char *created);
void pending_remove(struct pending *p, const char *key);
bool pending_has(const struct pending *p, const char *key);
/* Takes the next active pod; NULL: there is none.  Its key is valid until it is removed. */
const char *pending_take(struct pending *p, uint64_t now_ms);
/* A taken pod has no node, for these reasons (bits). */
void pending_put_back(struct pending *p, const char *key, uint32_t reasons, uint64_t now_ms);
/* A taken pod waits for something that is on its way, such as a volume that is being made: an event
 * that may help against the reasons makes it active without delay. */
void pending_hold(struct pending *p, const char *key, uint32_t reasons, uint64_t now_ms);
/* A taken pod could not be tried, or its node refused it: it is tried again after its delay. */
void pending_retry(struct pending *p, const char *key, uint64_t now_ms);
/* Something happened that may help against these reasons. */
void pending_move(struct pending *p, uint32_t reasons, uint64_t now_ms);
/* No pod becomes active by itself before this time; 0: one is active; UINT64_MAX: never. */
uint64_t pending_due_ms(const struct pending *p);
size_t pending_size(const struct pending *p);
/* Numbers of pods: those that are active or taken, back off, and wait for an event. */
void pending_count(const struct pending *p, size_t *ret_active, size_t *ret_backoff,
                   size_t *ret_waiting);
