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

#define TCX_UPGRADE_QUIET_MS 2000 /* Time without a pod that comes or goes. */

struct tcx_upgrade;
struct tcx_upgrade_config {
    struct loop *loop;
    const struct hooks *hooks; /* Must outlive the struct; tcx is available. */
    /* Returns a link that was not returned yet; false: none is left. */
    bool (*next)(void *ctx, struct hook_place *ret);
    void *ctx;
};
/* 'prog_fd' is duplicated. */
struct tcx_upgrade *tcx_upgrade_new(const struct tcx_upgrade_config *c, int prog_fd);
/* Waits for the quiet time, from now on: to be called when a pod comes or goes, and when the initial
 * pods are complete. */
void tcx_upgrade_defer(struct tcx_upgrade *x);
struct tcx_upgrade *tcx_upgrade_free(struct tcx_upgrade *x);
