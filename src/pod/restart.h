/* SPDX-License-Identifier: Apache-2.0 */
/* Whether and when an ended container is started again.
 *
 * The back-off is derived from the ended container, not from the agent's memory: its annotation
 * tenet.io/restart-level says how many restarts in a row came soon, and its end when the delay
 * begins.  So a restarted agent goes on with the same delays.  The first restart is at once, then
 * after 10, 20, 40 ... 300 s, as in Kubernetes; a container that ran for 10 minutes begins anew. */
#pragma once

#include "pod/observed.h"
#include "pod/pod.h"

#define POD_BACKOFF_MIN_S 10
#define POD_BACKOFF_MAX_S 300
#define POD_BACKOFF_FORGET_S 600

/* The delay after the end of a container of this level, in seconds. */
int64_t pod_backoff_s(uint32_t level);
/* Whether a container that ended with this code is started again. */
bool pod_restarts(enum pod_restart_policy policy, enum pod_container_kind kind, int32_t exit_code);
/* When the container after 'last' may be started, in nanoseconds since 1970; 'hash' is that of the
 * present specification: a changed one starts at once. */
int64_t pod_restart_at(const struct observed_container *last, const char *hash);
/* The level of the container after 'last'. */
uint32_t pod_next_level(const struct observed_container *last, const char *hash);
