/* SPDX-License-Identifier: Apache-2.0 */
/* One call of a CSI driver's method, on a connection of its own.
 *
 * It blocks and has a loop of its own, so that it can be a step of work on any thread: a driver that does
 * not answer holds up this work alone. */
#pragma once

#include "base/err.h"
#include "kubelet/csi/messages.h"

/* Calls the method of the driver at the socket 'path' with '*request', whose shape is the method's, and
 * reads the answer into '*answer' (NULL: it is not wanted), which points into 'store'.  -ETIMEDOUT: no
 * answer within 'timeout_ms'; -EAGAIN: the driver is away or asks to be called again; -EOPNOTSUPP,
 * -EINVAL, -ENOENT, -EEXIST, -ENOSPC, -EACCES: the driver's status; -EIO: any other.  The text has the
 * driver's message, in printable characters, and never a request. */
int csi_call(const char *path, enum csi_method_id method, const void *request, uint64_t timeout_ms,
             struct pb_store *store, void *answer, struct err *e);
/* The errno of csi_call for a status.  Pure. */
int csi_errno(int grpc_status);
