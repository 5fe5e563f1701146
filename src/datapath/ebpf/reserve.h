/* SPDX-License-Identifier: Apache-2.0 */
/* Reserves places at the hooks of links on a worker thread, while the programs for them are
 * still being loaded.
 *
 * Attaching to a tcx hook waits for an RCU grace period of the kernel, 10 ms or more for each
 * link; replacing an attached program does not. So a place is reserved by a program that passes
 * every packet.
 *
 * All calls are made, and the callback comes, on the loop's thread. */
#pragma once

#include "datapath/ebpf/hook.h"
#include "net/loop/loop.h"

#define RESERVE_MAX 16

struct reserve;
/* 'h' and the first 'n' (RESERVE_MAX at most) of 'places' are copied; 'done' is called once, not
 * from within this call and not after reserve_free. */
struct reserve *reserve_begin(struct loop *l, const struct hooks *h,
                              const struct hook_place *places, size_t n, loop_fn *done, void *ctx);
bool reserve_is_over(const struct reserve *r);
/* May be called at any time. 'used': the places have their programs; else they are released. */
struct reserve *reserve_free(struct reserve *r, bool used);
