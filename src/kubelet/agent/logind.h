/* SPDX-License-Identifier: Apache-2.0 */
/* The host's shutdown as systemd-logind announces it (org.freedesktop.login1(5)).
 *
 * logind waits with a shutdown that a user asks for while somebody holds a delay lock, but at most
 * InhibitDelayMaxSec of logind.conf(5), and announces it by the signal PrepareForShutdown.  This module
 * takes such a lock, again after a cancelled shutdown, and connects again with a back-off when the
 * system bus or logind is away.  D-Bus is spoken by libsystemd (sd-bus(3)), which is loaded at run
 * time: of all of Tenet's programs only the kubelet needs it, and only by option.
 *
 * Everything runs on the loop's thread; only logind_free may not be called from within a callback. */
#pragma once

#include "net/loop/loop.h"

struct logind;

struct logind_ops {
    /* The lock was taken: logind waits at most 'delay_max_ms'. */
    void (*locked)(void *ctx, uint64_t delay_max_ms);
    /* There is no lock (any more), so the host shuts down without waiting; said once until the
     * reason changes. */
    void (*lost)(void *ctx, const char *reason);
    /* The host begins to shut down; 'begins' false: it does not, after all. */
    void (*prepare)(void *ctx, bool begins);
};

/* The system bus is that of $DBUS_SYSTEM_BUS_ADDRESS, or the host's.  'ops' must stay valid.
 * -ENOENT: libsystemd is not installed. */
int logind_new(struct loop *l, const struct logind_ops *ops, void *ctx, struct logind **ret,
               struct err *e);
struct logind *logind_free(struct logind *g);
/* Gives the lock back: the host need not wait any longer. */
void logind_release(struct logind *g);
