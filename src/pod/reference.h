/* SPDX-License-Identifier: Apache-2.0 */
/* The ConfigMaps and Secrets that a pod's specification refers to by name: in its volumes, in the
 * environment of its containers, and as pull secrets.
 *
 * The kubelet's watches, the API server's authorization of nodes and admission read this one list,
 * so that a node asks for exactly the objects that it may see.  Pure; texts belong to the
 * specification. */
#pragma once

#include "wire/json.h"

enum pod_object_kind { POD_CONFIG_MAP, POD_SECRET, POD_OBJECT_KINDS };

/* The kind's name in a path of the API ("configmaps") and in messages ("configmap"). */
const char *pod_object_plural(enum pod_object_kind kind);
const char *pod_object_singular(enum pod_object_kind kind);

enum pod_reference_place {
    POD_REFERENCE_VOLUME,
    POD_REFERENCE_ENV,      /* One variable. */
    POD_REFERENCE_ENV_FROM, /* All keys as variables. */
    POD_REFERENCE_PULL,     /* imagePullSecrets. */
};

struct pod_reference {
    enum pod_reference_place place;
    const char *name;      /* Of the Secret or ConfigMap. */
    const char *container; /* ENV and ENV_FROM; "" if it has no name. */
    const char *list;      /* "container", "init container" or "ephemeral container". */
    const char *variable;  /* ENV. */
    size_t index;          /* PULL: position in the list. */
};

/* Nonzero: no more are visited. */
typedef int pod_reference_fn(void *ctx, const struct pod_reference *r);

/* Calls 'fn' for each reference to an object of the kind; returns its first nonzero result, else
 * 0.  Members of wrong types are passed over. */
int pod_reference_each(const struct json *spec, enum pod_object_kind kind, pod_reference_fn *fn,
                       void *ctx);
/* Whether there is a reference to 'name' (NULL: any). */
bool pod_refers_to(const struct json *spec, enum pod_object_kind kind, const char *name);
