/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's end: no new requests, the node's conditions say why, requests under way are finished,
 * the loop stops. Packets flow on.  On the loop's thread. */
#pragma once

#include "node/agent/agent_priv.h"

/* Begins the end; 'status' is the process's exit status.  Does nothing when it has begun. */
void agent_stop(struct agent *a, int status, const char *reason, const char *message);
/* Like agent_stop with status 1, for an error that a retry does not solve; logs it and emits the
 * Event TenetFailed. */
void agent_fatal(struct agent *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Called on SIGTERM and SIGINT: the first signal begins the end, a second one ends the wait for
 * requests. */
void agent_on_term(void *ctx);
/* Callback of a->stop_timer. */
void agent_stop_step(void *ctx);
