/* SPDX-License-Identifier: Apache-2.0 */
/* The VNID allocator: the virtual network ids of projects.  Pure.
 *
 * Ids are SDN_VNID_MIN..SDN_VNID_MAX; 0 is global and 1-9 are reserved, so both are never handed
 * out and asking for them is an error. Use is counted: projects that were joined share an id,
 * which is free again when the last of them has left it.
 *
 * Order: ascending from a cursor that stands after the id allocated last, and around once (next
 * fit). A released id is therefore handed out again only after all others, 16,777,206 of them:
 * no node can still have flows for it. Against a random choice this is as safe, repeatable, and
 * keeps the set dense. The cursor is not stored: after a restart vnid_alloc_seek with the id of
 * the newest NetNamespace puts it back where it stood.
 *
 * Memory: 32 KiB, and 528 bytes for each 4,096 ids of which at least one is in use.
 *
 * The caller owns the struct; not thread-safe. */
#pragma once

#include "base/macro.h"
#include "sdn/network.h"

struct vnid_alloc;
struct vnid_alloc *vnid_alloc_new(void);
struct vnid_alloc *vnid_alloc_free(struct vnid_alloc *a);
DEFINE_CLEANUP(struct vnid_alloc *, vnid_alloc_free)

/* The next free id, now used once.  -ENOSPC: all are in use. */
int vnid_alloc_allocate(struct vnid_alloc *a, uint32_t *ret);
/* Takes the id 'vnid', which must be free: -EEXIST when it is in use, -ERANGE when it is not
 * allocatable. */
int vnid_alloc_claim(struct vnid_alloc *a, uint32_t vnid);
/* Like vnid_alloc_claim, but a VNID in use gets one more user. */
int vnid_alloc_share(struct vnid_alloc *a, uint32_t vnid);
/* One user less.  -ENOENT: it was not in use; -ERANGE: not allocatable. */
int vnid_alloc_release(struct vnid_alloc *a, uint32_t vnid);
/* The next allocation starts after 'vnid'; no effect when that is not allocatable. */
void vnid_alloc_seek(struct vnid_alloc *a, uint32_t vnid);

unsigned vnid_alloc_users(const struct vnid_alloc *a, uint32_t vnid);
uint32_t vnid_alloc_in_use(const struct vnid_alloc *a); /* Different ids in use. */
