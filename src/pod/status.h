/* SPDX-License-Identifier: Apache-2.0 */
/* The status of a pod, made from what the node knows of it.  Pure.
 *
 * The status is whole: phase, conditions, addresses and the state of each container.  The last status
 * gives what the runtime has forgotten: the start of the pod, conditions of others, the addresses of
 * an ended pod, containers whose record is gone.  A final phase never changes again, and restart
 * counts never fall.  The rules are those of the kubelet (pkg/kubelet/status, kubelet_pods.go). */
#pragma once

#include "pod/plan.h"
#include "pod/resources.h"

struct pod_status_facts {
    const char *runtime; /* "containerd": the type in container IDs. */
    enum pod_work work;
};

/* The owned PodStatus; 'last' as the argument 'status' of pod_plan. */
struct json *pod_status(const struct json *pod, const struct json *last,
                        const struct pod_observed *o, const struct pod_status_facts *facts,
                        int64_t now_ns);

/* The owned status 'own' with those conditions of the 'stored' one that other writers set, such as
 * readiness gates; 'own' NULL: the stored status. */
struct json *pod_status_merge(const struct json *own, const struct json *stored);

/* The strategic merge patch (owned) that makes 'now' of the stored status 'old'; NULL: they are
 * equal.  It names the pod's UID, so that it fails for another pod of the same name. */
struct json *pod_status_patch(const struct json *old, const struct json *now, const char *uid);
