/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests of static pods: the text of a file or an HTTP answer becomes pods.
 *
 * A static pod is run by its node without the API server, which only gets a picture of it, the
 * mirror pod.  Its fields get the API's defaults and keep the API's rules (api/kinds), but it may
 * refer to no object of the API: what a pod reads there is granted to a pod that the API knows.
 * Names and annotations are those of the kubelet (pkg/kubelet/config/common.go).  Pure: text in,
 * owned objects or an error out. */
#pragma once

#include "base/err.h"
#include "wire/json.h"

#define POD_NOTE_SOURCE "kubernetes.io/config.source" /* "file" or "http". */
#define POD_NOTE_CONFIG_HASH "kubernetes.io/config.hash"
#define POD_NOTE_SEEN "kubernetes.io/config.seen"
#define POD_NOTE_MIRROR "kubernetes.io/config.mirror"

struct manifest_source {
    const char *node; /* The Node's name. */
    const char *kind; /* "file" or "http". */
    const char *path; /* The file or the URL: a part of the pods' UIDs. */
    bool list;        /* It may have a list of pods; else it has exactly one. */
    int64_t now_ms;   /* The wall clock. */
};

/* Reads one manifest in JSON or YAML: a Pod, or a List of them, of v1.  '*ret' gets an array of
 * pods with namespace ("default" unless given), name (with "-NODE" at its end), UID and
 * annotations.  The UID is a hash of the content, the node and the path, so that another content is
 * another pod.  -EINVAL: the first faults with their fields. */
int manifest_read(const struct manifest_source *s, const char *text, size_t size, struct json **ret,
                  struct err *e);

/* The mirror of a static pod (owned), with the Node of this UID as its owner. */
struct json *manifest_mirror(const struct json *pod, const char *node, const char *node_uid);
/* The hash of which the object is a mirror, which is the UID of the static pod; NULL: it is no
 * mirror pod. */
const char *manifest_mirror_of(const struct json *object);
