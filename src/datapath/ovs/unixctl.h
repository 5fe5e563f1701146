/* SPDX-License-Identifier: Apache-2.0 */
/* One command for ovs-vswitchd over its control socket, as ovs-appctl(8) gives it: JSON-RPC 1.0, a
 * connection for each.  For what no OpenFlow message can ask (ofproto/trace).  On the loop's thread. */
#pragma once

#include "net/loop/loop.h"

struct unixctl_call;
/* 'error' 0 and the daemon's answer, or a negative errno and why. */
typedef void unixctl_fn(void *ctx, int error, const char *text);
/* Sends 'method' with 'args' (ends with NULL) to the ovs-vswitchd whose pid file is in 'rundir'.  'done' is
 * called once, never from within, and the call is gone then. */
struct unixctl_call *unixctl_call(struct loop *l, const char *rundir, const char *method,
                                  const char *const *args, unixctl_fn *done, void *ctx);
/* 'done' is called (-ECANCELED). */
void unixctl_cancel(struct unixctl_call *c);
