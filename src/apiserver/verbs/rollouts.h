/* SPDX-License-Identifier: Apache-2.0 */
/* Requests for rollouts of DeploymentConfigs: the subresources instantiate, which begins one, and
 * rollback, which answers the DeploymentConfig as it was in an earlier one.  Texts are those of
 * openshift-apiserver. */
#pragma once

#include "apiserver/request/request.h"

bool rollouts_are_asked(const struct request *q);
void handle_rollouts(struct request *q, struct outcome *outcome);
