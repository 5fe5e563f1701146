/* SPDX-License-Identifier: Apache-2.0 */
/* Rollouts of DeploymentConfigs as the deployers' controller and the deployer pod see them: the
 * ReplicationControllers with their pods, and the pods of the deployer and of hooks.
 *
 * The informers are set by the owner, which passes their events on, and outlive the rollouts.  One
 * thread. */
#pragma once

#include "controllers/workloads/engine.h"
#include "workload/deploy.h"

struct rollouts {
    struct engine engine; /* Its keys are ReplicationControllers. */
    struct informer *sets, *pods;
    struct owned of_config; /* ReplicationControllers by DeploymentConfig. */
    struct owned of_set;    /* Pods by ReplicationController. */
};

void rollouts_init(struct rollouts *r, const struct controller_env *env);
void rollouts_done(struct rollouts *r);
/* Events; 'obj' NULL: the object is gone. */
void rollouts_set_changed(struct rollouts *r, const char *key, const struct json *old,
                          const struct json *obj);
void rollouts_pod_changed(struct rollouts *r, const char *key, const struct json *old,
                          const struct json *obj);

/* The pods of the deployer and of hooks of one ReplicationController. */
struct rollout_pods {
    struct workload_child deployer, hooks[N_HOOKS];
    bool has_deployer, has_hook[N_HOOKS];
};
void rollouts_find_pods(const struct rollouts *r, const struct json *rc, struct rollout_pods *ret);
/* One step of the rollout of 'rc'; see deploy_plan. */
enum deploy_state rollouts_deploy(const struct rollouts *r, const struct json *rc,
                                  const struct rollout_pods *pods, const char *until,
                                  struct deploy_memory *m, struct workload_plan *plan,
                                  struct strbuf *lines, char **ret_why);
/* Calls 'fn' with the key of each ReplicationController of the DeploymentConfig that controls 'rc'
 * whose rollout goes on. */
void rollouts_each_running(const struct rollouts *r, const struct json *rc,
                           void (*fn)(void *ctx, const char *key, const struct json *rc),
                           void *ctx);
