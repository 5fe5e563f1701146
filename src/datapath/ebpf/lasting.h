/* SPDX-License-Identifier: Apache-2.0 */
/* Upgrades a pod's hook from clsact to tcx once no pod has come or gone for a while: tcx is
 * faster per packet but too slow to attach during ADD (hook.h).
 *
 * One link at a time, on a worker thread: for each the kernel holds the RTNL lock for an RCU
 * grace period. No packet is lost or passes unchecked: the tcx program runs first, and the
 * filter is removed after it is attached.
 *
 * All calls are made, and the callbacks come, on the loop's thread. */
#pragma once

#include "datapath/ebpf/hook.h"
#include "net/loop/loop.h"

#define LASTING_QUIET_MS 2000 /* Time without a pod that comes or goes. */

struct lasting;
struct lasting_config {
    struct loop *loop;
    const struct hooks *hooks; /* Must outlive the struct; tcx is available. */
    /* Returns a link that was not returned yet; false: none is left. */
    bool (*next)(void *ctx, struct hook_place *ret);
    void *ctx;
};
/* 'prog_fd' is duplicated. */
struct lasting *lasting_new(const struct lasting_config *c, int prog_fd);
/* Restarts the quiet time: a pod comes or goes, or the initial pods are complete. */
void lasting_wait(struct lasting *x);
struct lasting *lasting_free(struct lasting *x);
