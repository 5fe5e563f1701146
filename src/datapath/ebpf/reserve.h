/* SPDX-License-Identifier: Apache-2.0 */
/* Places at the hooks of links, taken on a worker thread while the programs for them are still being loaded.
 *
 * Who attaches to a tcx hook waits for an RCU grace period of the kernel, 10 ms or more for each link; who changes the program that
 * is there does not.  So a place is taken by a program that lets everything on.
 *
 * All calls are made, and the callback comes, on the loop's thread. */
#pragma once

#include "datapath/ebpf/hook.h"
#include "net/loop/loop.h"

#define RESERVE_MAX 16

struct reserve;
/* 'h' and the first 'n' (RESERVE_MAX at most) of 'places' are copied; 'done' is called once, not from within this call and not
 * after reserve_free. */
struct reserve *reserve_begin(struct loop *l, const struct hooks *h,
                              const struct hook_place *places, size_t n, loop_fn *done, void *ctx);
bool reserve_is_over(const struct reserve *r);
/* At any time.  'used': the places have their programs; else they are given up. */
struct reserve *reserve_free(struct reserve *r, bool used);
