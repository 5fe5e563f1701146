/* SPDX-License-Identifier: Apache-2.0 */
/* Deletes links of pods, and answers as soon as they are gone.
 *
 * The kernel takes a link off its tables in half a millisecond, but keeps the caller of RTM_DELLINK waiting
 * for some twenty until nothing refers to it any more.  So the deletion runs on a worker thread, while the
 * kernel's notice that the link is gone is what counts.  On the loop's thread. */
#pragma once

#include "net/loop/loop.h"
#include "node/cni/podlink.h"

struct reaper;
struct reaper *reaper_new(struct loop *l);
/* Must not be busy. */
struct reaper *reaper_free(struct reaper *r);

typedef void reaper_fn(void *ctx, int error, const char *text);
/* Calls 'fn' once: with 0 when the link 'l' (copied) is gone, or was never there, else with what the kernel said. */
void reaper_delete(struct reaper *r, const struct podlink *l, reaper_fn *fn, void *ctx);
/* The kernel announced that the link whose host_if is 'name' is gone. */
void reaper_link_gone(struct reaper *r, const char *name);
/* Threads at work, also for links that are gone. */
size_t reaper_busy(const struct reaper *r);
