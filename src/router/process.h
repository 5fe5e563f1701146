/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of HAProxy: a master that starts workers (haproxy -W).
 *
 * The master and its workers outlive the router, and a router that starts finds them by the sockets
 * and the file "haproxy.pid" in its folder.  Calls return at once, but haproxy_check_config.
 * Thread of the loop, but that one: any. */
#pragma once

#include "net/loop/loop.h"

/* Verifies the configuration 'file' by "haproxy -c"; the error has HAProxy's first alert. */
int haproxy_check_config(const char *program, const char *file, struct err *e);
/* Starts a master with the configuration dir/haproxy.cfg. */
int haproxy_start(const char *program, const char *dir, pid_t *ret, struct err *e);
/* Makes the master of 'dir' read its configuration again. -ESRCH: there is none. */
int haproxy_reload(const char *dir, struct err *e);
/* The master of 'dir'; 0: it does not run. */
pid_t haproxy_master(const char *dir);
/* Sends the signal to the master of 'dir' and its workers; returns how many there are.  0: none. */
size_t haproxy_signal(const char *dir, int sig);
