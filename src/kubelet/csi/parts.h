/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of CSI's requests that are made from objects of the API.  Pure; what is returned is in the store. */
#pragma once

#include "kubelet/csi/messages.h"
#include "wire/json.h"

/* The strings of an object as a map, without members that are not strings; NULL: the store is full. */
int csi_pairs(struct pb_store *s, const struct json *object, struct runtime_pairs *ret,
              struct err *e);
/* The data of a Secret (NULL: none) as a map.  -EINVAL: a value is not base64 or has a NUL; the text names
 * the key alone. */
int csi_secrets(struct pb_store *s, const struct json *secret, struct runtime_pairs *ret,
                struct err *e);
/* The capability of a volume.  'modes': accessModes, of which the first counts (NULL: ReadWriteOnce);
 * 'block': it is a device; 'options': mountOptions, checked; 'single_writer': the driver tells the modes of
 * a single writer apart. */
int csi_capability_make(struct pb_store *s, const struct json *modes, bool block,
                        const char *fs_type, const struct json *options, bool single_writer,
                        struct csi_capability *ret, struct err *e);
/* The lower-case hexadecimal SHA-256 of a text (owned). */
char *csi_hash(const char *text);
/* "csi-HASH" (owned): the name of the VolumeAttachment, as Kubernetes computes it. */
char *csi_attachment_name(const char *handle, const char *driver, const char *node);
/* The merge patch for the claim's status before the driver is asked to grow the volume: the condition Resizing. */
struct json *csi_growth_begun(void);
/* The merge patch for the claim's status after the driver grew the volume: its new size, or, when the node has
 * to grow the file system as well, the condition FileSystemResizePending. */
struct json *csi_growth_status(bool node_expands, int64_t bytes);
