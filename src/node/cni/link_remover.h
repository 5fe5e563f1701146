/* SPDX-License-Identifier: Apache-2.0 */
/* Deletes pods' links on worker threads, and answers as soon as the kernel announces that they are
 * gone.
 *
 * The kernel removes a link from its tables in half a millisecond, but blocks the caller of
 * RTM_DELLINK for some 20 ms, until no reference to the link is left.  Waiting for the kernel's
 * notification instead makes DEL faster.  On the loop's thread. */
#pragma once

#include "net/loop/loop.h"
#include "node/cni/pod_link.h"

struct link_remover;
struct link_remover *link_remover_new(struct loop *l);
/* Must not be busy. */
struct link_remover *link_remover_free(struct link_remover *r);

typedef void link_remover_fn(void *ctx, int error, const char *text);
/* Deletes the link 'l' (copied), and calls 'fn' once: with 0 when the link is gone or never
 * existed, else with the kernel's error. */
void link_remover_delete(struct link_remover *r, const struct pod_link *l, link_remover_fn *fn,
                         void *ctx);
/* The kernel announced that the link whose host_if is 'name' is gone. */
void link_remover_link_gone(struct link_remover *r, const char *name);
/* The number of threads that still work, including those whose link is gone already. */
size_t link_remover_busy(const struct link_remover *r);
