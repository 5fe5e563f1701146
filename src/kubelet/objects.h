/* SPDX-License-Identifier: Apache-2.0 */
/* The ConfigMaps and Secrets that the pods of this node refer to.
 *
 * Each object has one watch of its own (a field selector of metadata.name), which all pods that
 * refer to it share, and which ends with the last of them: a node may see only what its pods use
 * (apiserver/access/node_authz.c), so there is no list of all.  An object that is marked immutable is
 * kept without a watch.  Everything runs on the loop's thread. */
#pragma once

#include "client/client.h"
#include "pod/reference.h"

struct pod_objects;

struct pod_objects_ops {
    /* An object that the pod refers to has arrived, changed or gone.  It may call any function of
     * this header but pod_objects_free. */
    void (*changed)(void *ctx, const char *uid);
};

/* The client must outlive it; 'ops' and 'ctx', too. */
struct pod_objects *pod_objects_new(struct loop *l, struct api_client *c,
                                    const struct pod_objects_ops *ops, void *ctx);
struct pod_objects *pod_objects_free(struct pod_objects *o);
DEFINE_CLEANUP(struct pod_objects *, pod_objects_free)

/* Watches what the pod refers to, beginning or ending watches where its references have changed (an
 * ephemeral container was added). */
void pod_objects_set_pod(struct pod_objects *o, const struct json *pod);
/* Ends the pod's use of its objects; an unknown uid is fine. */
void pod_objects_remove_pod(struct pod_objects *o, const char *uid);

/* The object: 0 and '*ret', which is valid until the next turn of the loop; -ENOENT: the API server
 * has none; -EAGAIN: the API server has not answered yet, or no pod refers to it. */
int pod_objects_get(const struct pod_objects *o, enum pod_object_kind kind, const char *ns,
                    const char *name, const struct json **ret);
/* Why there is no answer yet; NULL: there is one, or no failure was reported. */
const char *pod_objects_failure(const struct pod_objects *o, enum pod_object_kind kind,
                                const char *ns, const char *name);
/* The number of watches, and of objects kept (for tests and metrics). */
size_t pod_objects_watches(const struct pod_objects *o);
size_t pod_objects_count(const struct pod_objects *o);
