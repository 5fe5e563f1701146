/* SPDX-License-Identifier: Apache-2.0 */
/* A block device that several pods of the node may share (device_plan.h), and its mount.
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
/* Attaches the device for volumeMode Block: it is bound at ROOT/plugins/PLUGIN/ID/device, which '*ret_path'
 * (owned) names.  The link ROOT/pods/UID/volumeDevices/PLUGIN/NAME keeps it until the pod is removed. */
int device_map(const char *root_dir, const char *plugin, const struct device_plan *p,
               const char *key, const char *uid, const char *name, char **ret_path, struct err *e);
/* Unmounts and detaches each device that no pod below 'pods_dir' has mounted or linked any more.  The first failure,
 * after all were tried. */
int device_release_unused(const char *root_dir, const char *pods_dir, struct err *e);
