/* SPDX-License-Identifier: Apache-2.0 */
/* Resources of pods and containers: values of control groups, and OOM scores.
 *
 * The formulas are those of the kubelet (pkg/kubelet/cm, pkg/kubelet/qos) and of runc; amounts are
 * milliCPU and bytes.  Pure. */
#pragma once

#include "base/arena.h"
#include "runtime/runtime_spec.h"
#include "wire/json.h"

#define POD_CPU_SHARES_MIN 2
#define POD_CPU_SHARES_MAX 262144
#define POD_CPU_PERIOD_US 100000

/* What the pod needs ("requests") or may use ("limits") in all, by api_pod_amount; -1 for limits that
 * a container lacks. */
int64_t pod_amount(const struct json *pod, const char *which, const char *name);

/* cpu.shares of cgroup v1, and cpu.weight of v2 as new runtimes compute it. */
int64_t pod_cpu_shares(int64_t milli);
int64_t pod_cpu_weight(int64_t shares);
/* cpu.cfs_quota_us for a period of 100 ms; -1: no limit ('milli' is 0 or -1). */
int64_t pod_cpu_quota(int64_t milli);

/* oom_score_adj of a container: the larger, the sooner the kernel ends it. 'capacity': the node's
 * memory in bytes. */
int64_t pod_oom_score_adj(const struct json *pod, const struct json *container, int64_t capacity);

/* The resources of a container for the runtime; lists are in 'a'. */
void pod_container_resources(const struct json *pod, const struct json *container, int64_t capacity,
                             struct arena *a, struct runtime_resources *ret);

/* The control group of a pod, the parent of its containers: a path below the hierarchy's root, or
 * the name of a slice with systemd.  'root': "/" or the group that has the node's pods. */
char *pod_cgroup_parent(const struct json *pod, const char *root, bool systemd, struct arena *a);

/* A file of a pod's control group, and what it is set to. */
struct pod_cgroup_value {
    const char *controller; /* "cpu", "memory", "hugetlb", "pids"; of v1. */
    const char *file;
    const char *value;
};
/* The values of the pod's own group, for cgroup v1 or v2; the array is in 'a'. */
size_t pod_cgroup_values(const struct json *pod, bool v2, int64_t pids_max, struct arena *a,
                         struct pod_cgroup_value **ret);

/* The groups above those of the pods, by their paths below the hierarchy's root or kubepods. */
enum pod_class_group {
    POD_GROUP_ALL,
    POD_GROUP_BURSTABLE,
    POD_GROUP_BEST_EFFORT,
    POD_CLASS_GROUPS
};
const char *pod_class_group(enum pod_class_group g); /* "", "/burstable", "/besteffort" */
/* The values of a class's group: its part of the processors and, for the group of all pods, the
 * memory of the node that pods may have.  'milli_cpu' and 'memory': what the node offers to pods, as
 * a whole.  The array is in 'a'. */
size_t pod_class_group_values(enum pod_class_group g, const struct json *const *pods, size_t n_pods,
                              int64_t milli_cpu, int64_t memory, bool v2, struct arena *a,
                              struct pod_cgroup_value **ret);
