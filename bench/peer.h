/* SPDX-License-Identifier: Apache-2.0 */
/* What benchmarks share: etcd as a peer, ports, and temporary folders. */
#pragma once

#include <sys/types.h>

/* A TCP port that was free a moment ago. */
int peer_free_port(void);
/* Starts one member of etcd with its data in 'dir', serving on 127.0.0.1:'port'; returns 0 if etcd
 * is not installed.  The member ends with this process. */
pid_t peer_etcd_start(const char *dir, int port);
/* Removes 'dir' with all that is in it. */
void peer_remove_tree(const char *dir);
