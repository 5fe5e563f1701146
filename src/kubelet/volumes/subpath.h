/* SPDX-License-Identifier: Apache-2.0 */
/* A part of a volume that a container mounts by subPath.
 *
 * The volume's contents belong to containers, which may exchange any of its directories for a link
 * while the kubelet resolves the path (CVE-2017-1002101, CVE-2021-25741).  The kernel resolves it here
 * in one step that cannot leave the volume (openat2, RESOLVE_BENEATH), and what was found is bound
 * from descriptor to descriptor (open_tree, move_mount): no path is looked up again.  Blocks; for a
 * worker thread. */
#pragma once

#include "base/err.h"
#include "base/macro.h"

/* Checks a subPath's text: relative, without "..", not empty. */
int subpath_check(const char *path, struct err *e);

/* Opens 'path' below the directory 'root_fd'; 'make': missing directories are made with the root's
 * mode, else -ENOENT.  Links that stay in the volume are followed.  '*ret_fd' is opened with O_PATH and
 * the caller's.  -EXDEV: the path leads out of the volume; -EINVAL: it is neither a file, nor a
 * directory, nor a socket. */
int subpath_open(int root_fd, const char *path, bool make, int *ret_fd, struct err *e);

/* Binds what 'fd' refers to at 'target' ("0" in the directory 'dir_fd', which no container sees); a
 * former mount there is detached. */
int subpath_bind(int fd, int dir_fd, const char *target, struct err *e);
