/* SPDX-License-Identifier: Apache-2.0 */
/* Idling, as OpenShift has it: a service whose pods were scaled to none keeps in annotations who made them, and how many
 * there were; the first connection to it brings them back.
 *
 *     idling.alpha.openshift.io/idled-at          on the service, its Endpoints, and each target
 *     idling.alpha.openshift.io/unidle-targets    on the service and its Endpoints: a list of {kind, name, group, replicas}
 *     idling.alpha.openshift.io/previous-scale    on each target
 *
 * Pure. */
#pragma once

#include "wire/json.h"

#define IDLE_AT "idling.alpha.openshift.io/idled-at"
#define IDLE_TARGETS "idling.alpha.openshift.io/unidle-targets"
#define IDLE_PREVIOUS_SCALE "idling.alpha.openshift.io/previous-scale"
#define IDLE_REASON "NeedPods" /* Of the Event that a proxy makes of a service without endpoints. */

/* Merge patches, owned: what becomes of a service and its Endpoints ('targets' is a list), and of a target. */
struct json *idle_patch(const char *at, const struct json *targets);
struct json *idle_target_patch(const char *at, int64_t replicas);
/* The pods are asked for; there are some; a target has what it had.  Annotations go that are not needed then. */
struct json *idle_woken_patch(void);
struct json *idle_over_patch(void);
struct json *idle_target_over_patch(void);

/* The targets in the annotation of 'obj': those of the list that have a kind, a name and a number; owned, empty when
 * there are none. */
struct json *idle_targets(const struct json *obj);
/* Whether an Event asks for the pods of 'endpoints': it is not older than the idling. */
bool idle_event_counts(const struct json *event, const struct json *endpoints);
bool idle_is_idled(const struct json *obj);
/* Whether Endpoints have an address that is ready. */
bool idle_has_ready(const struct json *endpoints);
