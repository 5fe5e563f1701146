/* SPDX-License-Identifier: Apache-2.0 */
/* What a controller of workloads wants to write: its decision about one object (a ReplicaSet, a
 * Job), computed from objects and the time alone.
 *
 * A plan has writes in stages (a stage begins when the one before has succeeded), Events, and the
 * object with the status that it gets afterwards.  The controller carries it out
 * (controllers/workloads/engine.h); after that, and after every change of an object, a new plan is
 * made.  So a plan may leave the next step to the next plan.
 *
 * A plan owns all that is in it.  Pure. */
#pragma once

#include "wire/json.h"

/* A kind of objects that plans are made for, or that plans write. */
struct workload_kind {
    const char *api_version, *group, *kind, *plural;
};
extern const struct workload_kind workload_pods, workload_replica_sets,
    workload_replication_controllers, workload_deployments, workload_daemon_sets,
    workload_stateful_sets, workload_jobs, workload_cron_jobs, workload_revisions, workload_claims,
    workload_deployment_configs;

enum workload_verb {
    WORKLOAD_CREATE,
    WORKLOAD_UPDATE, /* PUT of the whole object, with the resourceVersion that it was made from. */
    WORKLOAD_PATCH,  /* A strategic merge patch. */
    WORKLOAD_DELETE, /* With the uid as precondition. */
};

/* Stages, in their order. */
enum workload_stage {
    WORKLOAD_ADOPT,        /* The owner is read first: it must exist and not be in deletion. */
    WORKLOAD_FIRST,        /* What later stages rely upon. */
    WORKLOAD_MAIN,         /* Creations begin slowly: 1, then 2, 4, 8 at a time. */
    WORKLOAD_AFTER_STATUS, /* Only when the status has been written. */
};

struct workload_write {
    enum workload_verb verb;
    enum workload_stage stage;
    const struct workload_kind *kind;
    char *name; /* NULL: the server makes it from metadata.generateName. */
    char *uid;  /* Of the object that is deleted. */
    struct json *body;
    /* The Event about the plan's object after success; NULL: none.  With 'names' the name of the
     * written object is appended to the message. */
    const char *reason;
    char *message;
    bool names;
    const char *fail_reason; /* After failure; the error is appended to the message. */
    char *fail_message;
};

struct workload_event {
    const char *reason;
    char *message;
    bool warning;
};

struct workload_plan {
    struct workload_write *writes; /* In the order of their stages. */
    size_t n_writes, cap_writes;
    struct workload_event *events;
    size_t n_events, cap_events;
    /* The plan's object with its new status; NULL: no status is written. */
    struct json *status;
    /* The object that Events are about, and its kind; NULL: the plan's object. */
    struct json *about;
    const struct workload_kind *about_kind;
    bool only_success; /* The status is not written when a write has failed. */
    /* The wall clock at which another plan can come out without a change of an object; 0: never. */
    int64_t recheck_ms;
    /* Puts the outcome of the writes into the status: 'w' is the write that failed and 'why' the
     * error; both NULL: all have succeeded.  May be NULL. */
    void (*outcome)(struct json *object, const struct workload_write *w, const char *why,
                    int64_t now_ms);
    /* Judges the object whose name a creation met, and may change the status.  False: it is a
     * failure.  NULL: it is none, another plan follows. */
    bool (*met)(struct json *object, const struct workload_write *w, const struct json *live);
    /* Is told of each write of the plan for 'object' that the server has refused.  May be NULL. */
    void (*refused)(void *ctx, const struct json *object, const struct workload_write *w, int error,
                    const char *why);
    void *refused_ctx;
};

void workload_plan_done(struct workload_plan *p);
#define CLEANUP_PLAN __attribute__((cleanup(workload_plan_done)))

/* Appends a write; 'body' is taken over.  The result is valid until the next one is appended. */
struct workload_write *workload_plan_add(struct workload_plan *p, enum workload_stage stage,
                                         enum workload_verb verb, const struct workload_kind *kind,
                                         const char *name, struct json *body);
/* Appends the deletion of 'obj'. */
struct workload_write *workload_plan_delete(struct workload_plan *p, enum workload_stage stage,
                                            const struct workload_kind *kind,
                                            const struct json *obj);
/* 'reason' is not copied. */
void workload_plan_say(struct workload_plan *p, bool warning, const char *reason,
                       const char *format, ...) PRINTF_LIKE(4, 5);
/* Another plan is due at 'at_ms' or before. */
void workload_plan_recheck(struct workload_plan *p, int64_t at_ms);
