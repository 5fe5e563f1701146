/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of control groups, for those that remove groups which a runtime has left behind.
 *
 * No state; any thread. */
#pragma once

#include <stddef.h>

/* Kills (SIGKILL) the processes of the group in the directory 'path', not those of groups below it,
 * and returns how many there were.
 *
 * A directory that is not on a file system of control groups has none, whatever its file
 * cgroup.procs says: crun writes a plain file where the hierarchy "unified" is not mounted, and its
 * numbers are those of other processes sooner or later. */
size_t cgroup_kill(const char *path);
