/* SPDX-License-Identifier: Apache-2.0 */
/* Walks of directories whose contents a container controls: removal, ownership, and the making of
 * missing directories.
 *
 * No function follows a symbolic link or crosses a mount, whatever is exchanged meanwhile: each
 * step opens one component by its parent's descriptor, and compares the mount it is on.  Blocks; for
 * a worker thread. */
#pragma once

#include "base/err.h"
#include "base/macro.h"

#include <sys/types.h>

/* Opens the directory 'name' of 'dir_fd', which must not be a link (-ELOOP or -ENOTDIR). */
int tree_open_dir(int dir_fd, const char *name, int *ret_fd, struct err *e);
/* The number of the mount that the descriptor is on. */
int tree_mount_id(int fd, uint64_t *ret, struct err *e);
/* Whether the directory 'name' of 'dir_fd' is the root of another mount; false: it is absent. */
bool tree_is_mount_point(int dir_fd, const char *name);

/* Removes 'name' of 'dir_fd' and, if it is a directory, all below it.  -EBUSY: a mount is below,
 * which stays with all that it has.  0 when 'name' is absent. */
int tree_remove(int dir_fd, const char *name, struct err *e);

/* Removes all members of the directory 'dir_fd' but those whose name is in 'keep' (NULL ends it; NULL:
 * none), hidden ones among them; the directory stays.  Errors as tree_remove. */
int tree_empty(int dir_fd, const char *const *keep, struct err *e);

/* Gives everything below and including the directory 'dir_fd' to the group: mode |= 0660, for
 * directories also 02110, as the kubelet's SetVolumeOwnership does.  'if_root_differs'
 * (fsGroupChangePolicy OnRootMismatch): nothing is done when the directory itself is right. */
int tree_set_group(int dir_fd, gid_t group, bool if_root_differs, struct err *e);

/* What everything below 'dir_fd' takes on the disk: bytes of blocks, and inodes.  A file of several
 * names counts by its share.  A directory that is nested too deeply to be walked counts as INT64_MAX
 * bytes, so that nothing can be hidden in it.  What is removed meanwhile does not count. */
int tree_measure(int dir_fd, int64_t *ret_bytes, int64_t *ret_inodes, struct err *e);
