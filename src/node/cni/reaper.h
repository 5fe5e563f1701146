/* SPDX-License-Identifier: Apache-2.0 */
/* Deletes pods' links on worker threads, and answers as soon as the kernel announces that they are
 * gone.
 *
 * The kernel removes a link from its tables in half a millisecond, but blocks the caller of
 * RTM_DELLINK for some 20 ms, until no reference to the link is left.  Waiting for the kernel's
 * notification instead makes DEL faster.  On the loop's thread. */
#pragma once

#include "net/loop/loop.h"
#include "node/cni/podlink.h"

struct reaper;
struct reaper *reaper_new(struct loop *l);
/* Must not be busy. */
struct reaper *reaper_free(struct reaper *r);

typedef void reaper_fn(void *ctx, int error, const char *text);
/* Deletes the link 'l' (copied), and calls 'fn' once: with 0 when the link is gone or never
 * existed, else with the kernel's error. */
void reaper_delete(struct reaper *r, const struct podlink *l, reaper_fn *fn, void *ctx);
/* The kernel announced that the link whose host_if is 'name' is gone. */
void reaper_link_gone(struct reaper *r, const char *name);
/* The number of threads that still work, including those whose link is gone already. */
size_t reaper_busy(const struct reaper *r);
