/* SPDX-License-Identifier: Apache-2.0 */
/* The counters of quotas (quota.h), for the files that keep, count and report them. */
#pragma once

#include "apiserver/admission/quota.h"
#include "quota/quota.h"

#define QUOTA_FENCE_PREFIX "/registry/quota-fences/"

/* What one project uses of a ClusterResourceQuota. */
struct quota_share {
    quota_total used[QUOTA_MAX_ITEMS];
};

/* A ResourceQuota or ClusterResourceQuota.  A changed spec makes another one. */
struct quota {
    unsigned refs;
    bool cluster;
    bool gone;    /* Its object was deleted, or has another spec. */
    bool counted; /* 'used' is right. */
    char *key;    /* Of its object in its kind. */
    char *uid;
    struct json *raw; /* The object's spec, to see when it changes. */
    struct quota_spec *spec;
    quota_total used[QUOTA_MAX_ITEMS];     /* Of the objects in the cache. */
    quota_total reserved[QUOTA_MAX_ITEMS]; /* Of the writes under way. */
    struct smap shares;         /* struct quota_share by namespace; only of a cluster quota. */
    struct quota_write *holder; /* The write under way that replaces the fence; NULL: none. */
    struct list turns;          /* Writes that wait for it, or for the reservations of others. */
    bool queued;                /* One was added since it was last cleared. */
    struct list dirty;          /* In quotas.dirty, when 'is_dirty'. */
    bool is_dirty, writing;     /* The status may be stale; a write of it is under way. */
    uint64_t written_ms;        /* When the latest write of the status began. */
};

/* A namespace that has quotas. */
struct quota_space {
    struct quota **list; /* References; those of the namespace first, each sort by name. */
    size_t n, cap;
};

struct quota_charge {
    struct quota *quota; /* A reference. */
    int64_t *add;        /* By item; negative: the write frees it. */
    bool reserved;       /* The positive amounts are in quota->reserved. */
};

struct quotas {
    struct apiserver *server;
    const struct cache_kind *quotas, *clusters, *namespaces, *definitions;
    struct smap own;     /* ResourceQuotas by key: struct quota. */
    struct smap cluster; /* ClusterResourceQuotas by name: struct quota. */
    struct smap spaces;  /* struct quota_space by namespace. */
    struct list flights; /* Writes that were sent, in order. */
    struct list ready;   /* Writes whose turn has come: struct quota_write. */
    struct loop_task serve;
    struct list dirty; /* Quotas whose status may be stale. */
    struct loop_timer *timer;
    struct cache_subscriber subscriber;
    bool shared; /* Other servers write to the store. */
};

static inline struct quota *quota_ref(struct quota *q)
{
    q->refs++;
    return q;
}
void quota_unref(struct quota *q);
/* The name of a quota for texts. */
const char *quota_name(const struct quota *q);
/* The key of the quota's fence in the store, which names the quota and its UID; owned. */
char *quota_fence(const struct quota *q);
/* The namespace of a key "NAMESPACE/NAME"; owned. */
char *quota_namespace(const char *key);
void quota_space_free(void *space);
const struct quota_space *quota_space_find(const struct quotas *s, const char *namespace);

/* Lets the next write that waits for the quota try, unless another has the fence. */
void quota_serve_next(struct quotas *s, struct quota *q);

/* quota_count.c */

/* Makes the quotas from the cache, which was loaded anew. */
void quotas_load(struct quotas *s);
void quotas_clear(struct quotas *s);
/* A ResourceQuota, ClusterResourceQuota or namespace was written or deleted. */
void quotas_quota_changed(struct quotas *s, bool cluster, const char *key, struct object *o);
void quotas_namespace_changed(struct quotas *s, const char *name, struct object *o);
/* Counts the quota unless it is counted. */
void quota_count(struct quotas *s, struct quota *q);
/* Adds to what is used of a counted quota by the namespace. */
void quota_add(struct quotas *s, struct quota *q, const char *namespace, const int64_t *add);
/* Adds the write's change of 'q' to its charges; returns the charge.  'obj' and 'old' are NULL for
 * none. */
struct quota_charge *quota_charge_add(struct quota_write *w, struct quota *q,
                                      const struct cache_kind *ck, const struct json *obj,
                                      const struct json *old);
/* Whether objects of the kind count in the quota. */
bool quota_concerns(const struct quota *q, const struct cache_kind *ck);
/* Reserves the positive amounts of a charge. */
void quota_reserve(struct quota_charge *c);
void quota_release(struct quotas *s, struct quota_charge *c);

/* quota_status.c */

/* Puts the status of the counters into the quota's object. */
void quota_set_status(const struct quota *q, const struct cache_kind *ck, struct json *obj);
/* The quota's status may be stale. */
void quota_mark_dirty(struct quotas *s, struct quota *q);
void quota_status_tick(void *quotas);
