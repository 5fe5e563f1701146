/* SPDX-License-Identifier: Apache-2.0 */
/* The log of a rollout, deploymentconfigs/NAME/log: that of the deployer pod, or of a pod of the
 * rollout once it is complete.  The request waits up to a minute for a rollout that has not begun.
 * Texts are those of openshift-apiserver. */
#pragma once

#include "apiserver/request/request.h"

bool rollout_log_is_asked(const struct request *q);
void handle_rollout_log(struct request *q, struct outcome *outcome);
void rollout_log_init(struct apiserver *a);
/* Ends all requests that wait. */
void rollout_log_end_all(struct apiserver *a);
