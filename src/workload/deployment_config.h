/* SPDX-License-Identifier: Apache-2.0 */
/* DeploymentConfig: ReplicationControllers, one for each rollout, of which the newest complete one
 * has the pods.
 *
 * Triggers, names, annotations, conditions, Events and messages are those of OpenShift 3's
 * deploymentconfig controller.  A plan makes one step: it begins a rollout (status.latestVersion),
 * cancels the ones before, or creates the ReplicationController.  The deployer (deployer.h) then
 * does the rollout; after its end the plan gives the pods to the newest complete one, which is the
 * way back after a failure.  Pure. */
#pragma once

#include "workload/pods.h"
#include "workload/rollout_set.h"

/* Plans for the DeploymentConfig 'config'.  'sets' are its ReplicationControllers and those of its
 * namespace that nothing controls; they are reordered. */
void deployment_config_plan(const struct json *config, struct workload_child *sets, size_t n,
                            int64_t now_ms, struct workload_plan *ret);
/* The LabelSelector of its ReplicationControllers; owned. */
struct json *deployment_config_selector(const struct json *config);
