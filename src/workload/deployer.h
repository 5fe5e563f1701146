/* SPDX-License-Identifier: Apache-2.0 */
/* The pod that does a rollout of a DeploymentConfig, "NAME-deploy", and the phase of the rollout,
 * which follows it.
 *
 * Phases, names, reasons and Events are those of OpenShift 3's deployer controller.  The pod is the
 * one that the ReplicationController owns: a pod of an earlier one of the same name is removed and
 * waited for, and any other one ends the rollout.  A pod that is gone, or that its node has ended,
 * is made again three times: all that a rollout has reached is in its ReplicationControllers.
 * Pure. */
#pragma once

#include "workload/pods.h"
#include "workload/rollout_set.h"

#define DEPLOYER_ACCOUNT "deployer" /* Of the project. */
#define DEPLOYER_ATTEMPTS 3         /* How often a pod that is gone is made again. */

enum deployer_hook { HOOK_PRE, HOOK_MID, HOOK_POST, N_HOOKS };
/* "pre", "mid", "post". */
const char *deployer_hook_name(enum deployer_hook hook);

struct deployer_input {
    const struct json *rc;
    const struct workload_child *pod; /* Named "NAME-deploy"; NULL: there is none. */
    /* Named "NAME-hook-pre" and so on; NULL: there is none. */
    const struct workload_child *hooks[N_HOOKS];
    const char *image; /* Of deployer pods; its command is the deployer. */
    bool in_process;   /* Rollouts without a container of the user need no pod. */
    int64_t now_ms;
};
/* How a rollout without a pod goes on. */
enum deployer_task {
    DEPLOYER_NONE,   /* A pod does it, or nothing is to be done. */
    DEPLOYER_DEPLOY, /* The controllers do it, see deploy.h. */
};
/* Plans for the ReplicationController of a rollout, and returns how it goes on. */
enum deployer_task deployer_plan(const struct deployer_input *in, struct workload_plan *ret);
/* The end of a rollout that the controllers do.  'why' NULL: it is complete. */
void deployer_end(const struct deployer_input *in, const char *why, struct workload_plan *ret);

/* Whether the ReplicationController is one of a DeploymentConfig's rollout. */
bool deployer_is_for(const struct json *rc);
/* The owned key ("namespace/name") of the pod with this suffix ("deploy", "hook-pre"). */
char *deployer_pod_key(const struct json *rc, const char *suffix);
/* Whether the ReplicationController owns the pod. */
bool deployer_owns(const struct json *rc, const struct json *pod);
/* The ownerReference of a helper pod, which does not control it; owned. */
struct json *deployer_owner_ref(const struct json *rc);
/* Merges labels and annotations of the strategy into the pod's, which come first. */
void deployer_decorate(struct json *pod, const struct json *strategy);
/* Events are about the DeploymentConfig that controls the ReplicationController, if one does. */
void deployer_set_about(const struct json *rc, struct workload_plan *p);
