/* SPDX-License-Identifier: Apache-2.0 */
/* Quotas: what an object adds to each resource that a ResourceQuotaSpec bounds, and what a
 * namespace may use in all.
 *
 * The API server counts with these functions at each write (apiserver/admission/quota.h), and
 * recounts with the same ones after a start, so that both agree.  The rules and the texts are those
 * of kube-apiserver (pkg/quota/v1,
 * staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota). Pure; a spec is immutable and
 * owned by the caller. */
#pragma once

#include "base/str.h"
#include "wire/json.h"

/* The largest number of resources that one quota bounds; others are not enforced, so a quota with
 * more is refused (kind_quota.c has the same limit). */
#define QUOTA_MAX_ITEMS 64

/* What the objects of a kind add to a resource. */
enum quota_measure {
    QUOTA_NOTHING,       /* No kind's objects add to it. */
    QUOTA_COUNT,         /* Each object counts. */
    QUOTA_RUNNING,       /* Each pod that has not ended counts. */
    QUOTA_REQUESTS,      /* Requests of pods that have not ended. */
    QUOTA_LIMITS,        /* Limits of pods that have not ended. */
    QUOTA_NODE_PORTS,    /* Node ports of services. */
    QUOTA_LOAD_BALANCER, /* Services of that type. */
    QUOTA_STORAGE,       /* Storage that claims request. */
    QUOTA_CLASS_COUNT,   /* Claims of a storage class. */
    QUOTA_CLASS_STORAGE, /* Storage that claims of a storage class request. */
};

/* A total, which many objects' amounts cannot overflow. */
typedef __int128 quota_total;

struct quota_item {
    char *name; /* As in spec.hard: "limits.cpu". */
    enum quota_measure measure;
    char *group, *plural; /* The kind that it is about. */
    char *of;             /* The containers' resource, or the storage class; NULL: neither. */
    char *hard;           /* The text of the bound. */
    int64_t most;         /* The bound: milliCPU of processors, else whole units. */
};

struct quota_spec {
    struct quota_item *items; /* In the order of their names. */
    size_t n;
    struct json *scopes; /* Requirements of scopes and scopeSelector. */
};

/* Reads a valid ResourceQuotaSpec. */
struct quota_spec *quota_spec_new(const struct json *spec);
struct quota_spec *quota_spec_free(struct quota_spec *s);
DEFINE_CLEANUP(struct quota_spec *, quota_spec_free)

/* Whether objects of the kind can count in it. */
bool quota_spec_concerns(const struct quota_spec *s, const char *group, const char *plural);
/* Whether the amounts of the kind's objects depend on what is in them: otherwise each object counts
 * one, and none needs to be read. */
bool quota_spec_reads(const struct quota_spec *s, const char *group, const char *plural);
/* What the object 'obj' (NULL: it does not exist, or the kind is not read) of the kind adds to each
 * item; 'exists' is whether there is one. */
void quota_spec_charge(const struct quota_spec *s, const char *group, const char *plural,
                       bool exists, const struct json *obj, int64_t *ret);
/* The resources that the quota makes obligatory and the pod's containers lack: "must specify
 * limits.cpu for: a,b; memory for: a".  Owned; NULL: it lacks none. */
char *quota_spec_missing(const struct quota_spec *s, const struct json *pod);

/* Whether 'add' more of an item would be too much when 'used' is in use. */
bool quota_item_exceeds(const struct quota_item *i, quota_total used, int64_t add);
/* Appends an amount of the item as Kubernetes writes it: "1500m", "2Gi", "7". */
void quota_item_write(const struct quota_item *i, quota_total n, struct strbuf *out);
/* Appends "exceeded quota: NAME, requested: pods=1, used: pods=5, limited: pods=5" when the items'
 * 'add' are too much; returns whether they are. */
bool quota_spec_refuses(const struct quota_spec *s, const char *name, const quota_total *used,
                        const int64_t *add, struct strbuf *out);
/* Whether a refused write may succeed by the change of a ResourceQuota or a ClusterResourceQuota: a
 * bound grew or is gone, less is in use, or other objects count. 'now' NULL: it was deleted. */
bool quota_object_gives_room(const struct json *old, const struct json *now);
/* The ResourceQuotaStatus: hard and used.  Items that nothing counts are in "hard" alone.
 * Owned. */
struct json *quota_spec_status(const struct quota_spec *s, const quota_total *used);

/* An amount of a resource of containers as text: milliCPU of "cpu", else whole units. */
void quota_write_amount(const char *resource, quota_total n, struct strbuf *out);
