/* SPDX-License-Identifier: Apache-2.0 */
/* Further objects that a volume needs before it can be mounted: Endpoints, Secrets, the CSIDriver, the
 * VolumeAttachment.
 *
 * What is needed next is a pure function of the volume and of what is there already.  Each object is asked
 * for by name, since a node may read just what its pods use; what is missing is asked for again until it
 * is there, after a second at first, then less often, up to every 10 seconds.  Everything runs on the
 * loop's thread. */
#pragma once

#include "client/client.h"

/* The volume that the objects are for; borrowed. */
struct facts_of {
    const char *ns; /* The pod's. */
    const char *node_name;
    const struct json *source; /* The value of the type's member. */
    bool in_pv;                /* 'source' is of a PersistentVolume. */
};

struct need {
    const char *key;    /* The member of the facts that gets the object. */
    char *path;         /* Of the object in the API. */
    bool optional;      /* Without the object, the fact is null. */
    bool is_attachment; /* It must be attached. */
};
/* Finds what is still needed: true, and '*ret' is the caller's; false: nothing. */
typedef bool need_fn(const struct facts_of *of, const struct json *facts, struct need *ret);
need_fn glusterfs_need, csi_need;
/* The secret that the source names by secretRef, if any. */
need_fn secret_need;

struct facts;
/* 'need' (borrowed) is asked until nothing is needed.  'changed' is called when facts_get or facts_failure
 * has changed, and may free the facts. */
struct facts *facts_new(struct loop *l, struct api_client *c, const struct facts_of *of,
                        need_fn *need, loop_fn *changed, void *ctx);
struct facts *facts_free(struct facts *f);
/* The objects by key; NULL: not all of them are there. */
const struct json *facts_get(const struct facts *f);
const char *facts_failure(const struct facts *f); /* NULL: nothing is wrong so far. */
/* Asks for all of them again, before the volume is tried again. */
void facts_refresh(struct facts *f);
