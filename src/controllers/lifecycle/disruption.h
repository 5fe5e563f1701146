/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the status of PodDisruptionBudgets: how many of their pods may be evicted now.
 *
 * Evictions (apiserver/verbs/eviction.h) count down in the same status; a write that is based on an
 * older one is refused and computed again.  Owners of the kinds of Tenet are watched.  The replicas
 * of other owners, such as custom resources, are read through their subresource scale, at most
 * every ten seconds.  disruption_plan.h has the rules. */
#pragma once

#include "controller/controller.h"

extern const struct controller disruption_controller;
