/* SPDX-License-Identifier: Apache-2.0 */
/* Network namespaces, by file.  Named ones are in /run/netns like those of iproute2, so that "ip
 * netns" shows them.  Entering is per thread. */
#pragma once

#include "base/err.h"
#include "base/macro.h"

#define NETNS_DIR "/run/netns"
#define NETNS_ETC "/etc/netns" /* NETNS_ETC/NAME/FILE is /etc/FILE within, for "ip netns exec". */

/* Creates /run/netns/NAME with "lo" up.  -EEXIST. */
int netns_create(const char *name, struct err *e);
/* Unmounts and removes it; 0 when it is absent, too. */
int netns_delete(const char *name, struct err *e);
/* Opens the namespace that is mounted on the file 'path'; if there is none, makes one, with "lo"
 * up, and mounts it there: it stays when this process ends. */
int netns_hold(const char *path, int *ret_fd, struct err *e);
/* Unmounts it and removes the file; 0 when it is absent, too. The kernel removes the namespace
 * with its last user. */
int netns_release(const char *path, struct err *e);
/* Opens the namespace file (path, or a name below NETNS_DIR). */
int netns_open(const char *name_or_path, int *ret_fd, struct err *e);
/* Enters 'ns_fd' and stores in '*ret_back' a descriptor of the namespace left; netns_leave
 * enters that one again and closes it. netns_leave aborts the process when it fails: continuing
 * in the wrong namespace would be worse. */
int netns_enter(int ns_fd, int *ret_back, struct err *e);
/* The same for a thread with an open descriptor of its own namespace, 'home' (borrowed; -1:
 * none): opening it is the slowest part. */
int netns_enter_from(int home, int ns_fd, int *ret_back, struct err *e);
void netns_leave(int back);
/* Kills (SIGKILL) every process whose network namespace is 'name', and waits until they are
 * gone. Returns their number, or a negative errno. */
int netns_kill_processes(const char *name, struct err *e);
