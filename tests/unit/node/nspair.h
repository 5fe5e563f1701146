/* SPDX-License-Identifier: Apache-2.0 */
/* Two unnamed network namespaces for a test: the process moves into "host", and "pod" is open.
 * They go away with the process, also when the test fails. */
#pragma once

#include "net/kernel/rtnl.h"
#include "net/loop/process.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

static int pod_ns = -1;

/* 0, or -1 when not privileged (the tests are then skipped). */
static int nspair_setup(void **state)
{
    (void) state;
    if (unshare(CLONE_NEWNET) < 0) {
        return -1;
    }
    int host = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (host < 0 || unshare(CLONE_NEWNET) < 0) {
        return -1;
    }
    pod_ns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    int r = pod_ns < 0 ? -1 : setns(host, CLONE_NEWNET);
    close(host);
    struct rtnl *rt = NULL;
    if (r == 0 && rtnl_open(&rt, NULL) == 0) {
        struct rtnl_link_set lo = RTNL_LINK_SET_INIT("lo");
        lo.up = 1;
        r = rtnl_link_set(rt, &lo, NULL);
        rtnl_close(rt);
    }
    return r;
}
