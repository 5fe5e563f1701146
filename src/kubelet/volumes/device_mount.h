/* SPDX-License-Identifier: Apache-2.0 */
/* The mount of a block device that several pods of the node may share (device_plan.h).
 *
 * The device is attached and its file system mounted once, at ROOT/plugins/PLUGIN/ID/mount; a pod gets a bind
 * of it.  ROOT/plugins/PLUGIN/ID/plan.json has the commands that detach the device, since after a restart
 * that directory and the mounts are all that is known.  An empty device gets a file system.  Everything
 * blocks, and is for worker threads. */
#pragma once

#include "kubelet/volumes/device_plan.h"

#include <sys/types.h>

/* Attaches and mounts the device, and opens the root of its file system.  'key' NULL: none.  '*ret_lock' must
 * be released by key_lock_release after the pod has its bind: until then nothing else may unmount it. */
struct key_lock;
int device_mount(const char *root_dir, const char *plugin, const struct device_plan *p,
                 const struct json *options, const char *key, int *ret_fd,
                 struct key_lock **ret_lock, struct err *e);
/* Unmounts and detaches each device that no pod below 'pods_dir' has mounted any more.  The first failure,
 * after all were tried. */
int device_release_unused(const char *root_dir, const char *pods_dir, struct err *e);
