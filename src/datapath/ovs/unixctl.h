/* SPDX-License-Identifier: Apache-2.0 */
/* Sends a command to ovs-vswitchd over its control socket, like ovs-appctl(8): JSON-RPC 1.0, one
 * connection per command.  Used for requests that OpenFlow does not have (ofproto/trace). On the
 * loop's thread. */
#pragma once

#include "net/loop/loop.h"

struct unixctl_call;
/* 'error' is 0 with the daemon's answer in 'text', or a negative errno with the reason. */
typedef void unixctl_fn(void *ctx, int error, const char *text);
/* Sends 'method' with 'args' (NULL-terminated) to the ovs-vswitchd whose pid file is in 'rundir'.
 * 'done' is called once, never before the call returns; the call is freed then. */
struct unixctl_call *unixctl_call(struct loop *l, const char *rundir, const char *method,
                                  const char *const *args, unixctl_fn *done, void *ctx);
/* 'done' is called (-ECANCELED). */
void unixctl_cancel(struct unixctl_call *c);
