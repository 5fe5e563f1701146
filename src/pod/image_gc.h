/* SPDX-License-Identifier: Apache-2.0 */
/* Which images are removed when their file system is full (Kubernetes' pkg/kubelet/images).
 *
 * Images that no container has and no pod of the node names go, the one that was used longest ago
 * first; never one that is younger than the least age, that the runtime pins, or that sandboxes are
 * made of.  When an image was used is remembered here only; after a restart of the agent all count as
 * just found.  Pure; a collector belongs to its caller. */
#pragma once

#include "base/map.h"
#include "runtime/runtime_spec.h"

struct image_gc {
    struct smap records; /* By ID. */
};
void image_gc_init(struct image_gc *g);
void image_gc_done(struct image_gc *g);

struct image_gc_input {
    const struct runtime_image *images;
    size_t n_images;
    const struct smap *used; /* Names and IDs of images in use. */
    const char *pause;       /* Name of the sandboxes' image; NULL: known by its name "pause". */
    int64_t now_ns, min_age_ns;
    int64_t wanted; /* Bytes to be freed. */
};
/* Notes what is there and used now, and returns the IDs of the images to be removed in '*ret', an
 * owned list of texts borrowed from the input, and their number.  '*ret_bytes': what they free, which
 * is less than wanted when there are no more. */
size_t image_gc_choose(struct image_gc *g, const struct image_gc_input *in, const char ***ret,
                       int64_t *ret_bytes);

/* Bytes to be freed of a file system so that at most 'low' percent are in use, if 'high' percent
 * are; else 0. */
int64_t image_gc_wanted(int64_t available, int64_t capacity, unsigned high, unsigned low);
