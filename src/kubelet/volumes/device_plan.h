/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes that are block devices, which programs of their storage attach to the node: iSCSI, Fibre Channel
 * and Ceph's RBD.
 *
 * A plan is the command lines that attach and detach the device, and where it appears.  Users of the cluster
 * write names, addresses and units: each text is checked, so that none is an option of a program or leaves a
 * directory.  A key is never on a command line.  Pure. */
#pragma once

#include "wire/json.h"

struct device_plan {
    char *id;            /* Of the device on this node: a directory's name. */
    struct json *attach; /* Command lines, in order: an array of arrays of strings. */
    struct json *detach;
    char *path;       /* A pattern of glob(7) for the device's path. */
    bool prints_path; /* The last command of 'attach' prints the path. */
    bool rescans;     /* The SCSI hosts are to look for new devices. */
    bool takes_key;   /* Descriptor 3 of 'attach' has the secret's key. */
    bool readonly;
    const char *fs_type; /* Borrowed from the source or a constant. */
};
void device_plan_done(struct device_plan *p);
static inline UNUSED void device_plan_donep(struct device_plan *p)
{
    device_plan_done(p);
}

/* 'has_key': a secret with a key was given.  -EINVAL names the field; -EOPNOTSUPP: the volume asks for what
 * is not supported. */
typedef int device_plan_fn(const struct json *source, bool has_key, struct device_plan *ret,
                           struct err *e);
device_plan_fn iscsi_plan, fc_plan, rbd_plan;
