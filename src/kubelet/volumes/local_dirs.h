/* SPDX-License-Identifier: Apache-2.0 */
/* The directories behind the volumes of the class "local": ROOT/local-volumes/pvc-UID, one for each
 * volume that this node has made.
 *
 * A volume may have an image beside its directory (pvc-UID.img): a sparse file with an ext4 file system
 * that is mounted on the directory, so that the volume cannot hold more than its capacity.  A volume of the
 * mode Block has an image without a file system and a file instead of the directory, at which the image's loop
 * device is bound.  The folder
 * itself has the mode 0700, thus nothing but the kubelet and what it mounts reaches a volume.  All
 * functions may be repeated, also after a restart in their middle, and none follows a symbolic link
 * below the folder.  Blocks; for a worker thread. */
#pragma once

#include "base/err.h"
#include "base/macro.h"

#include <sys/types.h>

/* Whether the text is the name of such a volume: "pvc-" and a UID of letters, digits and "-". */
bool local_dir_name_is_valid(const char *name);
/* Makes the volume's directory; 'image_bytes': the size of its image, 0: none.  A directory that is
 * there stays as it is. */
int local_dir_make(const char *folder, const char *name, int64_t image_bytes, struct err *e);
/* Opens the volume's directory, after its image is mounted if it has one and is not mounted yet. */
int local_dir_open(const char *folder, const char *name, int *ret_fd, struct err *e);
/* Makes the image of a volume of the mode Block, and attaches it; what is there stays as it is. */
int local_device_make(const char *folder, const char *name, int64_t bytes, struct err *e);
/* Attaches the image, unless it is: FOLDER/NAME is the block device then.  -ENOTBLK: the volume has another
 * mode. */
int local_device_open(const char *folder, const char *name, struct err *e);
/* Grows the volume's image to 'bytes', the loop devices of it, and its file system.  A volume without an
 * image is not bounded, and nothing is done. */
int local_dir_grow(const char *folder, const char *name, int64_t bytes, struct err *e);
/* Removes the volume with all that it holds; 0: it is gone already.  -EBUSY: something else is mounted
 * in it. */
int local_dir_remove(const char *folder, const char *name, struct err *e);
/* Removes the volume if it holds nothing; 0 as well when it does. */
int local_dir_remove_empty(const char *folder, const char *name, struct err *e);
/* The bytes that the volume takes on the disk. */
int local_dir_measure(const char *folder, const char *name, int64_t *ret_bytes, struct err *e);
/* The bytes that the folder's file system has for further files.  Makes the folder. */
int local_dir_free_bytes(const char *folder, int64_t *ret, struct err *e);
