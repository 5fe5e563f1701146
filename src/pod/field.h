/* SPDX-License-Identifier: Apache-2.0 */
/* Values of the downward API: fields of a pod and the resources of its containers, as a container
 * sees them in its environment and in files (Kubernetes' pkg/fieldpath and pkg/api/v1/resource).
 *
 * Results are owned by the caller.  Pure. */
#pragma once

#include "base/err.h"
#include "pod/reference.h"
#include "runtime/runtime_spec.h"

/* What the node knows beside the pod's object.  All members are borrowed, and may be empty. */
struct pod_facts {
    /* Finds an object of the pod's namespace that the pod refers to: 0; -ENOENT: there is none;
     * -EAGAIN: the node has no answer from the API server yet.  '*ret' is borrowed for the call
     * that got these facts. */
    int (*find_object)(void *ctx, enum pod_object_kind kind, const char *namespace,
                       const char *name, const struct json **ret);
    void *ctx;
    const struct json *services;    /* Array of Service objects, of any namespaces. */
    const struct json *allocatable; /* The Node's status.allocatable. */
    const char *host_ip;            /* NULL: not known. */
    struct runtime_texts pod_ips;
    const char *cluster_domain; /* "cluster.local" */
};

/* The value of a fieldRef's path: "metadata.name", "metadata.labels['app']", "status.podIP", or the
 * whole of metadata.labels or metadata.annotations as lines KEY="VALUE".  -EINVAL: the path is
 * not supported; -EAGAIN: the value is not known yet. */
int pod_field_value(const struct json *pod, const char *path, const struct pod_facts *f, char **ret,
                    struct err *e);
/* The value of a resourceFieldRef: the container's limit or request divided by the divisor, rounded
 * up.  A missing limit is the node's allocatable amount.  'container' is used when the reference
 * names none (in the environment); NULL: it must name one. */
int pod_resource_value(const struct json *pod, const struct json *container, const struct json *ref,
                       const struct pod_facts *f, char **ret, struct err *e);
/* The container of the pod with this name, in any of its three lists; NULL: there is none. */
const struct json *pod_find_container(const struct json *pod, const char *name);
/* An object that the pod refers to: 0, -ENOENT with Kubernetes' text (configmap "x" not found), or
 * -EAGAIN with a text that says that the answer is awaited. */
int pod_find_object(const struct json *pod, enum pod_object_kind kind, const char *name,
                    const struct pod_facts *f, const struct json **ret, struct err *e);
