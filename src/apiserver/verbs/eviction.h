/* SPDX-License-Identifier: Apache-2.0 */
/* Evictions: POST of an Eviction (policy/v1) to pods/NAME/eviction deletes the pod, unless its
 * PodDisruptionBudget allows no disruption now: then the answer is 429.
 *
 * The budget is counted down in its status before the pod is deleted, so that evictions at once,
 * also through several API servers, cannot take more pods than it allows.  The rules are those of
 * Kubernetes (policy/v1). */
#pragma once

#include "apiserver/request/request.h"

/* Whether the request is such a POST. */
bool eviction_is_asked(const struct request *q);
void handle_eviction(struct request *q, struct outcome *outcome);
