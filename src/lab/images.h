/* SPDX-License-Identifier: Apache-2.0 */
/* The container images of a lab, which need no registry: they are written as one archive in the
 * form of "docker save" (github.com/moby/docker-image-spec, v1.2), which containerd imports.
 *
 *     localhost/pause:1          tenet-pause, the first process of each pod
 *     localhost/busybox:1        Debian's busybox-static, with a link for each of its applets
 *     localhost/busybox-user:1   the same, run as user 1000, with a port and SIGINT to stop it
 *     localhost/busybox-name:1   the same, run as the user named "user"
 *     localhost/tenet-deployer:1 tenet-deployer, the program of deployer pods
 *
 * The same programs make the same image ids. Blocking calls. */
#pragma once

#include "base/err.h"
#include "base/str.h"

#define LAB_IMAGE_PAUSE "localhost/pause:1"
#define LAB_IMAGE_BUSYBOX "localhost/busybox:1"
#define LAB_IMAGE_DEPLOYER "localhost/tenet-deployer:1"

/* Writes the archive of all of them to 'path'.  -ENOENT: a program is not installed, and the error
 * says which package has it; -ENOEXEC: it is not static. */
int lab_images_write(const char *path, struct err *e);

/* ---- for tests ---- */

/* 0: 'data' is an ELF program for this machine's word size that needs no other file to run. */
int lab_check_static(const void *data, size_t size);
