/* SPDX-License-Identifier: Apache-2.0 */
/* Mirror pods: the objects by which the API shows the static pods of this node.
 *
 * A mirror is made when the API has none, and made anew when it was deleted, edited, or shows
 * another content; one that has no static pod is deleted.  What happens to a mirror never changes
 * its static pod.  A name that is in use by another object is tried again, with a delay that grows.
 * Everything runs on the loop's thread. */
#pragma once

#include "client/client.h"

struct mirrors;

struct mirrors_ops {
    /* The API has a mirror of the static pod with this UID; 'object' NULL: it has none any more. */
    void (*changed)(void *ctx, const char *uid, const struct json *object);
};

struct mirrors *mirrors_new(struct loop *l, struct api_client *c, const char *node,
                            const struct mirrors_ops *ops, void *ctx);
struct mirrors *mirrors_free(struct mirrors *m); /* The objects stay. */

/* The static pod is to have a mirror, in place of another pod of its name; or it has ended. */
void mirrors_want(struct mirrors *m, const struct json *pod);
void mirrors_unwant(struct mirrors *m, const struct json *pod);
/* The mirror pods of this node as the API has them.  Of other pods it is useful to know that they are
 * gone: they may have had the name of a mirror. */
void mirrors_seen(struct mirrors *m, const struct json *object);
void mirrors_gone(struct mirrors *m, const struct json *object);
/* All mirrors of the API were seen: missing ones are made. */
void mirrors_listed(struct mirrors *m);
/* All static pods are wanted that there are: other mirrors are deleted. */
void mirrors_complete(struct mirrors *m);
/* The API server answers again: what has failed is tried at once. */
void mirrors_retry(struct mirrors *m);
