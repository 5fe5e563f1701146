/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the garbage among the images: every 5 minutes, when the file system of the images is nearly
 * full, and when eviction asks for it; which images go is decided by pod/image_gc.h.
 *
 * What it could not free is told in an Event of the Node.  Everything runs on the loop's thread. */
#pragma once

#include "controller/recorder.h"
#include "kubelet/config.h"
#include "kubelet/pods/workers.h"

struct image_collector;

struct image_collector_config {
    struct loop *loop;
    struct runtime *runtime;
    struct recorder *recorder;
    struct workers *pods;
    const struct kubelet_config *cfg;
    const struct json *(*node)(void *ctx); /* The Node's object; NULL: not known. */
    void *ctx;
};
struct image_collector *image_collector_new(const struct image_collector_config *c);
struct image_collector *image_collector_free(struct image_collector *g);
/* All pods are known: images may be removed from now on. */
void image_collector_start(struct image_collector *g);
/* The directory of the images; NULL: not known yet. */
const char *image_collector_dir(const struct image_collector *g);
/* Removes all that is not used.  False: that was done within the last minute. */
bool image_collector_reclaim(struct image_collector *g);
