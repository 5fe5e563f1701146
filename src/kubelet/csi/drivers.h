/* SPDX-License-Identifier: Apache-2.0 */
/* The CSI drivers that are registered on this node.
 *
 * The registry (registry.h) sets them; the work that mounts and unmounts volumes looks them up on its own
 * threads.  All functions are thread-safe. */
#pragma once

#include "wire/json.h"

struct csi_driver {
    char *name;
    char *endpoint; /* Path of the socket. */
    char *node_id;
    int64_t max_volumes;   /* 0: no limit is known. */
    struct json *topology; /* Labels of the node. */
    bool can_stage, can_stats, can_expand, can_group, can_single_writer;
};
void csi_driver_done(struct csi_driver *d);
static inline UNUSED void csi_driver_donep(struct csi_driver *d)
{
    csi_driver_done(d);
}

struct csi_drivers;
struct csi_drivers *csi_drivers_new(void);
/* Adds a reference, for a thread that may outlive the owner. */
struct csi_drivers *csi_drivers_ref(struct csi_drivers *d);
struct csi_drivers *csi_drivers_unref(struct csi_drivers *d);
/* Adds or replaces the driver; the members of '*driver' are taken over, and it is emptied. */
void csi_drivers_set(struct csi_drivers *d, struct csi_driver *driver);
void csi_drivers_remove(struct csi_drivers *d, const char *name);
/* A copy of the driver: 0, and '*ret' is the caller's; -ENOENT in the words of the kubelet. */
int csi_drivers_find(struct csi_drivers *d, const char *name, struct csi_driver *ret,
                     struct err *e);
/* "drivers" of a CSINode's spec (owned), by name. */
struct json *csi_drivers_list(struct csi_drivers *d);
/* The labels that the drivers want on the Node (owned). */
struct json *csi_drivers_labels(struct csi_drivers *d);
/* Whether the text can be the name of a driver: at most 63 characters of a DNS name. */
bool csi_driver_name_is_valid(const char *name);
