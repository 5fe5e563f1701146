/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions about the volumes that this node makes, deletes and empties: the class "local"
 * (provisioner tenet.io/local) and the reclaim policy Recycle.  Pure; objects are borrowed. */
#pragma once

#include "storage/names.h"
#include "wire/json.h"

/* Whether this node shall make a volume for the claim: it is not bound, and the scheduler chose the
 * node.  The class is not looked at. */
bool local_claim_is_selected(const struct json *claim, const char *node);
/* Whether the claim asks for volumeMode Block. */
bool local_is_block(const struct json *claim);
/* 0; -EINVAL or -EOPNOTSUPP: the claim or the class asks for something that the class "local" does not
 * have.  '*ret_bytes': the size; '*ret_image': the class has parameters.backing "loop", or
 * the claim asks for a block device, which is always an image. */
int local_claim_check(const struct json *claim, const struct json *class, int64_t *ret_bytes,
                      bool *ret_image, struct err *e);
/* "pvc-UID" (owned): the name of the volume and of its directory. */
char *local_volume_name(const struct json *claim);
/* The PersistentVolume for the claim (owned). */
struct json *local_volume_make(const struct json *claim, const struct json *class, const char *node,
                               const char *folder);
/* The merge patch that gives a claim back to the scheduler. */
struct json *local_unselect_patch(void);
/* Whether this node has made the volume: its provisioner, its node and its path in 'folder' say so. */
bool local_volume_is_own(const struct json *pv, const char *node, const char *folder);
/* Whether the volume is released and shall be deleted. */
bool local_volume_is_to_go(const struct json *pv);

/* The CSIStorageCapacity of a class on the node (owned), in bytes. */
struct json *local_capacity_make(const char *ns, const char *class, const struct json *node,
                                 int64_t bytes);
/* What further volumes may ask for: the free bytes less the margin and less what existing volumes may
 * still take.  At least 0. */
int64_t local_capacity_left(int64_t free_bytes, int64_t margin, int64_t outstanding);

/* Whether this node shall empty the volume now. */
bool recycle_is_due(const struct json *pv, const char *node);
/* Checks that the path of a hostPath volume may be emptied: it is below one of the prefixes (a list
 * with commas between), and has no "..".  -EPERM: the reason. */
int recycle_check_path(const char *path, const char *prefixes, struct err *e);
/* The merge patch that stores the result: 'failure' NULL: the volume is empty. */
struct json *recycle_patch(const char *failure);
