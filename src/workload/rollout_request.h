/* SPDX-License-Identifier: Apache-2.0 */
/* Requests for rollouts of DeploymentConfigs: the subresources instantiate and rollback, as
 * openshift-apiserver answers them.  Pure. */
#pragma once

#include "wire/json.h"

enum rollout_answer {
    ROLLOUT_BEGINS,     /* The DeploymentConfig has another latestVersion, and its causes. */
    ROLLOUT_IS_LATEST,  /* Nothing has changed, and it is unchanged. */
    ROLLOUT_UNRESOLVED, /* A trigger has no image yet; it is unchanged. */
};
/* Begins a rollout of the DeploymentConfig.  'was': the copy of the DeploymentConfig in its latest
 * ReplicationController; NULL: there was no rollout.  'force': even if nothing has changed. */
enum rollout_answer rollout_instantiate(struct json *config, const struct json *was, bool force);
/* Makes the DeploymentConfig what the earlier one 'to' was, in the parts that 'spec', a
 * DeploymentConfigRollbackSpec, names, with the next latestVersion.  Triggers of images are
 * switched off, as they would undo it. */
void rollout_go_back(struct json *config, const struct json *to, const struct json *spec);
