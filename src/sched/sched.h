/* SPDX-License-Identifier: Apache-2.0 */
/* The decision of a scheduler: on which node a pod goes, why none is suitable, and which pods have
 * to go first.
 *
 * Why a model of its own: a decision looks at thousands of nodes, so the state of the cluster is
 * kept in arrays (resources as int64, counters for each value of a topology key) that each change
 * of a node or pod updates.  Pods that are equal in all that matters here are one class, which
 * remembers how the labels and taints of each node suit it.  What is decided, and the words, are
 * those of Kubernetes' default scheduler (docs/scheduler.md).
 *
 * The model copies what it needs; objects stay the caller's.  It has no clock and does no I/O: the
 * same calls with the same seed give the same decisions.  One thread. */
#pragma once

#include "sched/policy.h"

struct sched;
/* 'seed' breaks ties between nodes that are equally good. */
struct sched *sched_new(uint64_t seed);
struct sched *sched_free(struct sched *s);
DEFINE_CLEANUP(struct sched *, sched_free)
/* Replaces the filters and weights, which are copied. */
void sched_set_policy(struct sched *s, const struct sched_policy *p);

/* ---- the cluster ---- */

/* Adds or replaces a Node.  True: something that decisions depend on has changed. */
bool sched_set_node(struct sched *s, const struct json *node);
void sched_remove_node(struct sched *s, const char *name);
/* Whether the kubelet of a Node reports that it runs containers: it names its runtime, and
 * allocatable has cpu, memory and pods.  Other nodes get no pods. */
bool sched_node_runs_pods(const struct json *node);
/* The number of nodes that run containers. */
size_t sched_node_count(const struct sched *s);

/* Adds or replaces a pod that has 'node', or is about to get it, in the sums of that node, which
 * may be unknown yet.  A pod that has ended (Succeeded, Failed) is removed instead. */
void sched_set_pod(struct sched *s, const struct json *pod, const char *node);
/* 'key' is "namespace/name"; an unknown one is ignored. */
void sched_remove_pod(struct sched *s, const char *key);
/* Keeps room on 'node' for a pod whose victims are being ended: pods with a lower priority do not
 * get it.  'node' NULL: no longer. */
void sched_nominate(struct sched *s, const struct json *pod, const char *node);

/* Objects of other kinds that decisions use. */
enum sched_kind {
    SCHED_NAMESPACE, /* Labels, for the namespaceSelector of affinity. */
    SCHED_SERVICE,   /* Selectors, for spreading. */
    SCHED_CLAIM,     /* PersistentVolumeClaims. */
    SCHED_VOLUME,    /* PersistentVolumes: node affinity, and those that claims can get. */
    SCHED_CLASS,     /* StorageClasses. */
    SCHED_CAPACITY,  /* CSIStorageCapacities. */
    SCHED_DRIVER,    /* CSIDrivers: whether they tell their capacity. */
    SCHED_CSI_NODE,  /* CSINodes: how many volumes a node can have. */
    SCHED_BUDGET,    /* PodDisruptionBudgets, for preemption. */
    SCHED_KINDS
};
void sched_set(struct sched *s, enum sched_kind kind, const struct json *obj);
void sched_remove(struct sched *s, enum sched_kind kind, const char *key);

/* ---- decisions ---- */

/* Why a node does not suit a pod.  The order is that of the filters. */
enum sched_reason {
    SCHED_FITS,
    SCHED_NO_CONTAINERS, /* No kubelet reports containers there. */
    SCHED_UNSCHEDULABLE,
    SCHED_NODE_NAME,
    SCHED_TAINT,
    SCHED_NODE_AFFINITY,
    SCHED_LABEL_PRESENCE,   /* The policy's labelsPresence. */
    SCHED_SERVICE_AFFINITY, /* The policy's serviceAffinity. */
    SCHED_VOLUME_AFFINITY,
    SCHED_VOLUME_LIMIT,    /* The node has as many volumes of a driver as it can have. */
    SCHED_VOLUME_BIND,     /* No volume there for a claim, and none can be made. */
    SCHED_VOLUME_CAPACITY, /* Too little room there for a volume that is to be made. */
    SCHED_PORTS,
    SCHED_RESOURCES,
    SCHED_SPREAD_LABEL, /* The node lacks the topology key. */
    SCHED_SPREAD,
    SCHED_POD_AFFINITY,
    SCHED_POD_ANTI_AFFINITY,
    SCHED_EXISTING_ANTI_AFFINITY,
    SCHED_POD_FAULT, /* The pod suits no node, such as for want of its claim. */
    SCHED_REASONS
};
#define SCHED_BIT(reason) (UINT32_C(1) << (reason))

/* Whether the pod fits on the node, which must be known; for tests and explanations. */
enum sched_reason sched_check(struct sched *s, const struct json *pod, const char *node);

struct sched_decision {
    const char *node; /* Borrowed until the model changes; NULL: no node is suitable. */
    size_t n_checked; /* Nodes looked at. */
    size_t n_fit;     /* Those of them that are suitable. */
    uint32_t reasons; /* Bits SCHED_BIT of the reasons why nodes are not suitable. */
    char *why;        /* Owned: the text for users; NULL when there is a node. */
};
void sched_decide(struct sched *s, const struct json *pod, struct sched_decision *ret);
void sched_decision_done(struct sched_decision *d);

/* What has to be done for a claim before its pod gets the node.  Texts are borrowed until the model
 * changes. */
struct sched_volume_step {
    const char *claim, *claim_uid;
    const char *volume, *volume_uid; /* The claim is bound to it; NULL: a volume has to be made. */
    bool is_selected;                /* The claim's annotation names the node already. */
};
/* The steps for the claims of the pod that wait for it (WaitForFirstConsumer), on a node that suits
 * the pod: their number; 0: none waits.  '*ret' is the caller's to free. */
size_t sched_volumes(struct sched *s, const struct json *pod, const char *node,
                     struct sched_volume_step **ret);

struct sched_preemption {
    const char *node; /* Borrowed until the model changes; NULL: it would not help. */
    char **victims;   /* Owned: keys of the pods to end. */
    size_t n_victims;
    size_t n_violations; /* Victims whose PodDisruptionBudget allows no disruption. */
    bool waits;          /* Victims of an earlier preemption for the pod are still ending. */
    char *why;           /* Owned: a sentence when it would not help. */
};
/* Which pods of lower priority have to go so that 'pod', which fits nowhere, gets a node.  The
 * model is as before when it returns. */
void sched_preempt(struct sched *s, const struct json *pod, struct sched_preemption *ret);
void sched_preemption_done(struct sched_preemption *p);

/* ---- pods ---- */

/* "namespace/name", owned. */
char *sched_pod_key(const struct json *pod);
/* spec.priority; 0 when absent. */
int32_t sched_pod_priority(const struct json *pod);
/* The effective request of the pod for the resource, in thousandths for "cpu": the largest of what
 * its containers need together and of what each init container needs beside the sidecars that run
 * by then, plus the overhead. */
int64_t sched_pod_request(const struct json *pod, const char *resource);
