/* SPDX-License-Identifier: Apache-2.0 */
/* Joins two multiplexers: each stream that the front's peer opens becomes a stream of the back with
 * the same headers, and their data, ends and resets follow each other.
 *
 * Each stream ends by itself.  While one side does not read, the streams of the other that send to it
 * are paused, so memory is bounded.  The front ends when the back has ended, after what the back has
 * sent; the back is closed when the front ends.
 *
 * The bridge owns both.  Everything runs on the loop's thread. */
#pragma once

#include "net/stream/mux.h"

struct bridge;
/* Both have ended; 'error' is the back's.  The bridge is freed after it. */
typedef void bridge_done_fn(void *ctx, int error, const char *why);
/* Makes the bridge; its two multiplexers are made with bridge_front_ops, bridge_back_ops and the
 * bridge as their context, and then given to it. */
extern const struct mux_ops bridge_front_ops, bridge_back_ops;
/* 'lost' (constant; NULL: nothing) is sent on each of the front's streams of type "error" whose result
 * the back did not complete: without one, clients take the end for success. */
struct bridge *bridge_new(const char *lost, bridge_done_fn *done, void *ctx);
void bridge_start(struct bridge *b, struct mux *front, struct mux *back);
/* Closes both at once, without a callback. */
struct bridge *bridge_free(struct bridge *b);
