/* SPDX-License-Identifier: Apache-2.0 */
/* What the node, its pods and their containers use: /stats/summary, /metrics/resource and
 * /metrics/cadvisor.
 *
 * It is read from control groups and /proc when a client asks, at most once a second, and never by
 * itself: a node that nobody asks does no work for it.  The last reading is kept for five minutes,
 * because usageNanoCores is a difference of two.  The network of a pod is that of its sandbox's
 * process, which no container can replace.
 *
 * Everything runs on the loop's thread; the files are the kernel's own, so that reading them waits
 * for no disk. */
#pragma once

#include "base/prom.h"
#include "net/loop/loop.h"
#include "wire/json.h"

/* What the node's agent knows.  Texts are borrowed for the call; "" where there is none. */
struct stats_container {
    const char *name, *id, *image;
    const char *log_path; /* The file that the runtime writes. */
    int64_t started_ms;
    int64_t memory_limit; /* Bytes; -1: none. */
};
/* How full the volume of a claim is. */
struct stats_volume {
    const char *name, *claim;
    int64_t time_ms, capacity, available, used, inodes, inodes_free, inodes_used;
};
struct stats_pod {
    const char *namespace, *name, *uid;
    const char *cgroup;  /* The path of its group below the root of a hierarchy. */
    const char *sandbox; /* The id of its sandbox. */
    bool host_network;
    int64_t started_ms;
    const struct stats_container *containers; /* Those that run. */
    size_t n_containers;
    const struct stats_volume *volumes; /* Those of claims that have been read. */
    size_t n_volumes;
};
struct stats_node {
    int64_t started_ms;
    int64_t memory_bytes, milli_cpu;
    int64_t disk_bytes, disk_free, inodes, inodes_free;
    int64_t pids, pids_max;
};

struct stats_config {
    struct loop *loop;
    const char *node; /* The node's name; borrowed. */
    void (*get_node)(void *ctx, struct stats_node *ret);
    /* Calls 'add' for each pod that has a sandbox. */
    void (*each_pod)(void *ctx, void (*add)(void *stats, const struct stats_pod *pod), void *stats);
    void *ctx;
};

struct stats;
struct stats *stats_new(const struct stats_config *c);
struct stats *stats_free(struct stats *s);
/* A Summary (k8s.io/kubelet, stats/v1alpha1); owned by the caller. */
struct json *stats_summary(struct stats *s, bool only_cpu_and_memory);
void stats_write_resource(struct stats *s, struct strbuf *out);
void stats_write_cadvisor(struct stats *s, struct strbuf *out);

/* The part of /metrics about volumes of claims. */
void stats_write_volumes(struct stats *s, struct strbuf *out);

/* The rows of all three. */
extern const struct prom_table stats_resource_metrics, stats_cadvisor_metrics, stats_volume_metrics;
