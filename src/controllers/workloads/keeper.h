/* SPDX-License-Identifier: Apache-2.0 */
/* What controllers of workloads have in common: owners of one kind, their children of one or two
 * kinds, and the events of both that make keys of owners.
 *
 * A child that an owner controls adds that owner; one that nothing controls adds the owners of its
 * namespace that select it, because they may adopt it.  A keeper is the first member of a
 * controller's state.  One thread. */
#pragma once

#include "controllers/workloads/engine.h"

#define KEEPER_CHILDREN 2
struct keeper {
    struct engine engine;
    struct informer *owners, *children[KEEPER_CHILDREN];
    struct owned of_owner[KEEPER_CHILDREN];
    size_t n_children;
    struct owned of_namespace; /* Owners by namespace. */
    /* The LabelSelector of an owner; owned; NULL: it selects nothing. */
    struct json *(*selector)(const struct keeper *k, const struct json *owner);
};

/* 'children': their kinds; NULL ends the list when there is one.  The default selector is
 * spec.selector. */
void keeper_init(struct keeper *k, const struct controller_env *env,
                 const struct workload_kind *owner,
                 const struct workload_kind *const children[KEEPER_CHILDREN]);
void keeper_done(struct keeper *k);
/* Children number 'i' of the owner and those of its namespace that nothing controls, with those
 * whose deletion was sent marked. */
void keeper_find(const struct keeper *k, size_t i, const struct json *owner,
                 struct owned_list *ret);
/* The owner of the key, when a plan for it can be made; NULL: the work was ended. */
const struct json *keeper_begin(struct keeper *k, struct work *w, const char *key);

/* Functions of watches; their context is the keeper. */
void keeper_owner_changed(void *ctx, const char *key, const struct json *old,
                          const struct json *obj);
void keeper_owner_deleted(void *ctx, const char *key, const struct json *obj);
void keeper_child_changed(void *ctx, const char *key, const struct json *old,
                          const struct json *obj);
void keeper_child_deleted(void *ctx, const char *key, const struct json *obj);
void keeper_second_changed(void *ctx, const char *key, const struct json *old,
                           const struct json *obj);
void keeper_second_deleted(void *ctx, const char *key, const struct json *obj);
void keeper_quota_changed(void *ctx, const char *key, const struct json *old,
                          const struct json *obj);
void keeper_quota_deleted(void *ctx, const char *key, const struct json *obj);

/* Rows of watches for a state of type 'type' whose first member is the keeper 'keeper'. */
#define KEEPER_OWNERS(type, version, name)                                                     \
    {                                                                                          \
        .api_version = version, .plural = name,                                                \
        .informer = CONTROLLER_INFORMER(type, keeper.owners), .changed = keeper_owner_changed, \
        .deleted = keeper_owner_deleted                                                        \
    }
#define KEEPER_FIRST(type, version, name)                                \
    {                                                                    \
        .api_version = version, .plural = name,                          \
        .informer = CONTROLLER_INFORMER(type, keeper.children[0]),       \
        .changed = keeper_child_changed, .deleted = keeper_child_deleted \
    }
#define KEEPER_SECOND(type, version, name)                                 \
    {                                                                      \
        .api_version = version, .plural = name,                            \
        .informer = CONTROLLER_INFORMER(type, keeper.children[1]),         \
        .changed = keeper_second_changed, .deleted = keeper_second_deleted \
    }
/* Two rows: what a quota refused is tried again when the quota gives room. */
#define KEEPER_QUOTAS                                                              \
    {.api_version = "v1",                                                          \
     .plural = "resourcequotas",                                                   \
     .changed = keeper_quota_changed,                                              \
     .deleted = keeper_quota_deleted},                                             \
    {                                                                              \
        .api_version = "quota.openshift.io/v1", .plural = "clusterresourcequotas", \
        .changed = keeper_quota_changed, .deleted = keeper_quota_deleted           \
    }
