/* SPDX-License-Identifier: Apache-2.0 */
/* Binding a claim to a volume: POST of a Binding to persistentvolumeclaims/NAME/binding.
 *
 * Kubernetes' binder writes four times, two objects and their two statuses, and has to repair what
 * a crash leaves between.  Here both objects are written in one transaction, each at the revision
 * that was judged: no claim gets two volumes, no volume two claims, and nothing is half-bound.  The
 * target is the PersistentVolume.  The binder and the scheduler need no other right to bind than
 * "create persistentvolumeclaims/binding", which no default role of projects has. */
#pragma once

#include "apiserver/request/request.h"

/* Whether the request is such a POST. */
bool volume_binding_is_asked(const struct request *q);
void handle_volume_binding(struct request *q, struct outcome *outcome);
