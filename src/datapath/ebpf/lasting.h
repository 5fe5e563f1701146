/* SPDX-License-Identifier: Apache-2.0 */
/* Pods that last get the hook that costs their packets least: tcx in place of the clsact that an ADD has time for (hook.h).
 *
 * One link at a time, on a worker thread, and only while no pod has come or gone for some time: for each the kernel holds the
 * lock of all network devices for an RCU grace period.  No packet is lost or let through: the tcx program is asked first, and
 * the filter goes when that is there.
 *
 * All calls are made, and the callbacks come, on the loop's thread. */
#pragma once

#include "datapath/ebpf/hook.h"
#include "net/loop/loop.h"

#define LASTING_QUIET_MS 2000 /* Without a pod that comes or goes. */

struct lasting;
struct lasting_config {
    struct loop *loop;
    const struct hooks *hooks; /* Must stay; with tcx. */
    /* A link that was not named yet; false: there is none left. */
    bool (*next)(void *ctx, struct hook_place *ret);
    void *ctx;
};
/* 'prog_fd' is duplicated. */
struct lasting *lasting_new(const struct lasting_config *c, int prog_fd);
/* A pod comes or goes, or all are there. */
void lasting_wait(struct lasting *x);
struct lasting *lasting_free(struct lasting *x);
