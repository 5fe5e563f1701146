/* SPDX-License-Identifier: Apache-2.0 */
/* Binding a claim and a volume to each other: the change of both objects.
 *
 * The API server writes both in one transaction (apiserver/verbs/volume_binding.h), so that no
 * crash leaves one object that names the other alone.  Pure. */
#pragma once

#include "storage/fields.h"

/* Whether the two may be bound as they are now.  -EBUSY: one belongs to another; -EINVAL: the
 * volume does not suit the claim; 'e' says why. */
int storage_may_bind(const struct json *claim, const struct json *volume, struct err *e);
/* Makes each name the other, with the annotations, phases, capacity and access modes that
 * Kubernetes' binder writes in four steps.  'now_ms' is the wall clock. */
void storage_bind(struct json *claim, struct json *volume, int64_t now_ms);
/* Whether there is nothing left that storage_bind would change. */
bool storage_is_bound(const struct json *claim, const struct json *volume);
/* Sets the phase of a volume, and the time of its change.  'reason' and 'message' NULL: none.
 * False: it is in this phase already, with this reason. */
bool storage_set_phase(struct json *volume, const char *phase, const char *reason,
                       const char *message, int64_t now_ms);
