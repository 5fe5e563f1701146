/* SPDX-License-Identifier: Apache-2.0 */
/* Network namespaces, by file.  Named ones live in /run/netns as iproute2 keeps them, so that
 * "ip netns" shows them.  Entering is per thread. */
#pragma once

#include "base/err.h"
#include "base/macro.h"

#define NETNS_DIR "/run/netns"
#define NETNS_ETC "/etc/netns" /* NETNS_ETC/NAME/FILE is /etc/FILE within, for "ip netns exec". */

/* Creates /run/netns/NAME with "lo" up.  -EEXIST. */
int netns_create(const char *name, struct err *e);
/* Unmounts and removes it; 0 also when it is absent. */
int netns_delete(const char *name, struct err *e);
/* Opens the namespace that is mounted on the file 'path'; if there is none, makes one, with "lo" up, and mounts it there:
 * it stays when this process ends. */
int netns_hold(const char *path, int *ret_fd, struct err *e);
/* Unmounts it and removes the file; 0 also when it is absent.  With its last user the namespace goes. */
int netns_release(const char *path, struct err *e);
/* Opens the namespace file (path, or a name below NETNS_DIR). */
int netns_open(const char *name_or_path, int *ret_fd, struct err *e);
/* Enters 'ns_fd' and stores in '*ret_back' a descriptor of the namespace left; netns_leave enters that
 * one again and closes it.  netns_leave aborts the process when it fails: going on in the wrong
 * namespace would be worse. */
int netns_enter(int ns_fd, int *ret_back, struct err *e);
/* The same for a thread whose own namespace is open already, as 'home' (borrowed; -1: it is not): to look it up is most of
 * what entering takes. */
int netns_enter_from(int home, int ns_fd, int *ret_back, struct err *e);
void netns_leave(int back);
/* Kills (SIGKILL) every process whose network namespace is 'name', and waits until they are gone.
 * Returns how many there were, or a negative errno. */
int netns_kill_processes(const char *name, struct err *e);
