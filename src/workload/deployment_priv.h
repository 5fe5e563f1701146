/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a Deployment's plan.  Internal to src/workload; pure. */
#pragma once

#include "workload/deployment.h"
#include "workload/rollout.h"
#include "workload/template_hash.h"

/* Sets that are made for one template: another one when the first was changed by hand, but none
 * more when the second differs, too. */
#define DEPLOYMENT_SETS_OF_TEMPLATE 2
#define DEPLOYMENT_CREATE_ERROR "ReplicaSetCreateError"

struct deployment_set {
    const struct json *obj;
    struct rollout_set size;
    bool going;
    struct json *body; /* As it will be written; NULL: unchanged.  Owned. */
};

struct deployment {
    const struct json *d;
    struct json *o;              /* The plan's object, whose status is made. */
    struct deployment_set *sets; /* The oldest first. */
    size_t n;
    struct deployment_set *new_set; /* Of the present template; NULL: none. */
    struct rollout r;
    bool recreate, paused;
    int64_t now_ms;
    struct workload_plan *plan;
};

/* ---- deployment_status.c ---- */
/* Conditions about pausing, and about the new set that was found, or is created. */
void deployment_pause(struct deployment *d);
void deployment_found_new_set(struct deployment *d);
void deployment_created_new_set(struct deployment *d, const char *name);
/* No set is created: the template of 'set', which was made for the present one, was changed. */
void deployment_set_was_changed(struct deployment *d, const struct json *set);
/* The numbers, and the condition Available. */
void deployment_count(struct deployment *d);
/* The conditions Progressing and ReplicaFailure, from the numbers. */
void deployment_progress(struct deployment *d);
/* Whether the status of 'o' says that all pods are of the present template, and available. */
bool deployment_is_complete(const struct deployment *d, const struct json *o);
void deployment_outcome(struct json *object, const struct workload_write *w, const char *why,
                        int64_t now_ms);
