/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the files of a volume so that a reader sees either all old or all new ones (Kubernetes'
 * pkg/volume/util/atomic_writer.go).
 *
 * The files are in a directory "..TIME", to which the link "..data" points; the volume's root has a
 * link "NAME -> ..data/NAME" for the first component of each path.  An update writes a new
 * directory, renames a new link over "..data", and removes what is not needed any more.  All work is
 * relative to the volume's descriptor and follows no link: the volume's contents are not trusted,
 * not even here, where containers can only read them.  Blocks; for a worker thread. */
#pragma once

#include "pod/files.h"

#include <sys/types.h>

struct atomic_owner {
    bool has_group; /* Files get the group 'group' and its right to read, directories setgid. */
    gid_t group;
};

/* Makes the directory 'dir_fd' hold the files.  '*ret_changed': false when it did already, and nothing
 * was written. */
int atomic_write(int dir_fd, const struct pod_files *files, struct atomic_owner owner,
                 bool *ret_changed, struct err *e);
