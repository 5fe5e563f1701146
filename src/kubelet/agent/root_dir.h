/* SPDX-License-Identifier: Apache-2.0 */
/* The kubelet's root directory: one kubelet at a time has it, and a release moved its default place.
 *
 * Release 0.1.0 had it below the master's state directory, whose files systemd gives to the master's
 * user.  A kubelet with the default moves that directory.  Mounts of running pods are below it, and
 * move with it: rename(2) refuses only directories that are mount points themselves.  A link stays
 * at the earlier place, for containers that are created and not started, and for a downgrade. */
#pragma once

#include "base/err.h"

#include <stdbool.h>

/* Makes 'dir' (absolute) and locks it; '*ret_lock' gets the descriptor (the caller's) that holds the
 * lock until it is closed.  'earlier': the place that a release before had by default; NULL: none.
 * A directory there is moved to 'dir' if that is absent or empty; '*ret_moved' says so.
 * -EBUSY: another kubelet has 'dir' or 'earlier'.  -EXDEV: the places are on two file systems. */
int root_dir_take(const char *dir, const char *earlier, int *ret_lock, bool *ret_moved,
                  struct err *e);
