/* SPDX-License-Identifier: Apache-2.0 */
/* Eviction: when the node is short of something, and which pod has to go (Kubernetes'
 * pkg/kubelet/eviction, whose words these are).
 *
 * A signal says how much of a resource is left.  Below its hard threshold a pod is evicted at once,
 * below its soft one after a grace; both are a condition of the Node, which stays for a while after
 * the last time, so that pods do not come and go.  A pod that uses more than its limit of local
 * storage is evicted whatever the node has.  Pure: amounts, pods and the time come in. */
#pragma once

#include "base/err.h"
#include "wire/json.h"

enum evict_signal {
    EVICT_MEMORY,
    EVICT_NODEFS,
    EVICT_NODEFS_INODES,
    EVICT_IMAGEFS,
    EVICT_IMAGEFS_INODES,
    EVICT_PIDS,
    EVICT_SIGNALS
};
const char *evict_signal_name(enum evict_signal s); /* "memory.available" */

enum evict_condition {
    EVICT_MEMORY_PRESSURE,
    EVICT_DISK_PRESSURE,
    EVICT_PID_PRESSURE,
    EVICT_CONDITIONS
};

/* ---- settings ---- */

/* An amount, or a share of the capacity. */
struct evict_amount {
    bool set, share;
    int64_t n; /* Whole units, or thousandths of a percent. */
};

struct evict_settings {
    struct evict_amount hard[EVICT_SIGNALS], soft[EVICT_SIGNALS], reclaim[EVICT_SIGNALS];
    int64_t soft_grace_ns[EVICT_SIGNALS];
    int64_t transition_ns; /* How long a condition stays. */
    int64_t max_grace_s;   /* The longest grace of a pod that is evicted by a soft threshold. */
};

/* The amount in whole units; 0 when it is not set. */
int64_t evict_amount_of(const struct evict_amount *a, int64_t capacity);
/* Reads one item of a list of thresholds, "memory.available<100Mi" or "nodefs.available<10%", into
 * 'list' (NULL: only checked).  -EINVAL. */
int evict_read_threshold(const char *item, struct evict_amount list[EVICT_SIGNALS], struct err *e);
/* "nodefs.available=500Mi" */
int evict_read_reclaim(const char *item, struct evict_amount list[EVICT_SIGNALS], struct err *e);
/* "memory.available=1m30s" */
int evict_read_grace(const char *item, int64_t list_ns[EVICT_SIGNALS], struct err *e);

/* ---- signals ---- */

struct evict_value {
    int64_t available, capacity; /* Bytes or pieces; 'capacity' 0: not known. */
};

/* What is remembered of earlier values; starts as zeros. */
struct evict_state {
    struct {
        bool hard, soft;
        int64_t soft_since_ns;
    } met[EVICT_SIGNALS];
    bool on[EVICT_CONDITIONS];
    int64_t seen_ns[EVICT_CONDITIONS]; /* When the condition's cause was last there. */
};

/* What is to be done now. */
struct evict_need {
    bool needed;
    enum evict_signal signal;
    bool hard;
    int64_t threshold, available; /* For the words. */
};

/* Takes new values; memory comes before other needs. */
void evict_update(struct evict_state *s, const struct evict_settings *c,
                  const struct evict_value v[EVICT_SIGNALS], int64_t now_ns,
                  struct evict_need *ret);

/* ---- pods ---- */

/* What a container or a volume of a pod uses; -1: not known. */
struct evict_part {
    const char *name;
    int64_t memory, disk;
};
/* What a pod uses; -1: not known. */
struct evict_usage {
    const struct json *pod;
    int64_t memory, disk, inodes, pids;
    const struct evict_part *containers, *volumes;
    size_t n_containers, n_volumes;
};

/* The pod that is evicted for this need: of those that use more than they request the one of the
 * lowest priority, and of several that which uses the most above its request.  Critical pods are
 * never evicted.  -1: there is none. */
int evict_choose(const struct evict_need *need, const struct evict_usage *pods, size_t n);
/* The message of its status (owned); the reason is "Evicted". */
char *evict_message(const struct evict_need *need, const struct evict_usage *pod);

/* Whether the volume is one whose use of the disk is counted: an emptyDir that is not in memory. */
bool evict_measures_volume(const struct json *volume);
/* Whether the pod has a limit of local storage, whose use has to be measured. */
bool evict_has_storage_limit(const struct json *pod);
/* Why a pod that uses more than its limits of local storage is evicted (owned); NULL: it does
 * not. */
char *evict_storage_limit(const struct evict_usage *pod);
