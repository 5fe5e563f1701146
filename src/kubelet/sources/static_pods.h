/* SPDX-License-Identifier: Apache-2.0 */
/* The static pods of this node: pods of manifests in files and by HTTP, run without the API server,
 * and their mirror pods at the API.
 *
 * A manifest that is not valid is logged, and an Event of the Node, once until it changes; the pods
 * that it had before go on.  A manifest that is gone ends its pods, a changed one replaces them: the
 * new pod begins when the old one of its name has ended.  Everything runs on the loop's thread. */
#pragma once

#include "client/client.h"
#include "controller/recorder.h"
#include "kubelet/config.h"
#include "kubelet/pods/workers.h"

struct static_pods;

struct static_pods_config {
    struct loop *loop;
    struct api_client *client;
    struct recorder *recorder;
    struct workers *workers;
    const struct kubelet_config *cfg; /* Must stay valid. */
};
struct static_pods_ops {
    /* All manifests were read once, and their pods given to the workers. */
    void (*ready)(void *ctx);
};
struct static_pods *static_pods_new(const struct static_pods_config *c,
                                    const struct static_pods_ops *ops, void *ctx);
struct static_pods *static_pods_free(struct static_pods *s);
/* No manifest is left to be read for the first time. */
bool static_pods_ready(const struct static_pods *s);

/* ops->static_ended of the workers. */
void static_pods_ended(struct static_pods *s, const char *uid);
/* The mirror pods of this node at the API (see pod/manifest.h): changed, gone (also another pod, which
 * may have had the name of a mirror), all known. */
void static_pods_mirror(struct static_pods *s, const struct json *object);
void static_pods_gone(struct static_pods *s, const struct json *object);
void static_pods_mirrors_listed(struct static_pods *s);
/* The API server answers again. */
void static_pods_connected(struct static_pods *s);
