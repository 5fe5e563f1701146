/* SPDX-License-Identifier: Apache-2.0 */
/* Images of containers: present by policy, pulled with the pod's credentials.
 *
 * At most PARALLEL pulls run at once, and one pull serves all containers that want the same image with
 * the same credentials.  A pull that failed is tried again after 10 s, doubling to 300 s; in between
 * the answer is ImagePullBackOff with the registry's words.  An image is given to a pod with the
 * policy IfNotPresent only if it was there before the agent, or was pulled with credentials that the
 * pod has too: an image of a private registry does not leak to pods that may not pull it.
 * Everything runs on the loop's thread. */
#pragma once

#include "base/err.h"
#include "runtime/runtime.h"
#include "wire/json.h"

struct images;
struct image_call;

struct images_stats {
    uint64_t pulls, failures;
    unsigned pulling;
    unsigned kept; /* Pulls that run, wait, or have failed of late. */
};

/* The runtime must outlive it. 'parallel': pulls at once. */
struct images *images_new(struct loop *l, struct runtime *r, unsigned parallel);
struct images *images_free(struct images *i); /* Calls end without a callback. */
void images_get_stats(const struct images *i, struct images_stats *ret);

struct image_want {
    const char *image;
    const char *policy; /* "Always", "Never", "IfNotPresent"; "": by the image's tag. */
    /* Secrets (objects) with credentials, the most important first. */
    const struct json *const *secrets;
    size_t n_secrets;
    const struct runtime_sandbox_spec *sandbox;
};

struct image_result {
    const char *reason; /* NULL: the image is there; "ErrImagePull", "ImagePullBackOff", ... */
    const char *message;
    const char *ref;                   /* The reference to run it by. */
    const struct runtime_image *image; /* Its user. */
    bool pulled;                       /* For the Event: now, in 'pull_ms'. */
    uint64_t pull_ms;
    uint64_t retry_ms; /* After a failure: when it is worthwhile to ask again. */
};
/* 'result' is borrowed for the callback. */
typedef void image_done_fn(void *ctx, const struct image_result *result);
/* A pull begins, for an Event. */
typedef void image_pulling_fn(void *ctx, const char *image);
/* Ends by 'done' exactly once and later, unless it is cancelled.  'want' is borrowed for the call. */
struct image_call *images_get(struct images *i, const struct image_want *want,
                              image_pulling_fn *pulling, image_done_fn *done, void *ctx);
struct image_call *image_call_cancel(struct image_call *c); /* NULL is fine. */
