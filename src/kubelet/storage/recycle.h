/* SPDX-License-Identifier: Apache-2.0 */
/* Emptying a released PersistentVolume (reclaim policy Recycle), inside the kubelet: no pod, no image.
 *
 * Everything in the volume's directory is removed, hidden files among it; the directory stays.  No
 * symbolic link is followed and no mount is crossed, neither on the way to the directory nor below it,
 * whatever is exchanged meanwhile. */
#pragma once

#include "wire/json.h"

/* Empties the volume 'pv' of the type hostPath or nfs.  'prefixes': where hostPath volumes may be emptied,
 * with commas between; NULL: nowhere.  An export is mounted below 'root_dir' for the time.  -EPERM: the
 * path is not allowed; -EBUSY: something is mounted in the volume; -EOPNOTSUPP: another type.  Blocks. */
int recycle_volume(const struct json *pv, const char *root_dir, const char *prefixes,
                   struct err *e);
