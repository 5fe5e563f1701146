/* SPDX-License-Identifier: Apache-2.0 */
/* Idling, as OpenShift defines it: a service whose targets were scaled to zero records in
 * annotations which targets make its pods, and their previous numbers of replicas; the first
 * connection to the service restores them.
 *
 *     idling.alpha.openshift.io/idled-at          on the service, its Endpoints and each target
 *     idling.alpha.openshift.io/unidle-targets    on the service and its Endpoints: a list of
 *                                                 {kind, name, group, replicas}
 *     idling.alpha.openshift.io/previous-scale    on each target
 *
 * Pure. */
#pragma once

#include "wire/json.h"

#define IDLE_AT "idling.alpha.openshift.io/idled-at"
#define IDLE_TARGETS "idling.alpha.openshift.io/unidle-targets"
#define IDLE_PREVIOUS_SCALE "idling.alpha.openshift.io/previous-scale"
/* Reason of the Event that a proxy records when a service without endpoints gets a connection. */
#define IDLE_REASON "NeedPods"

/* Owned merge patches for idling: of a service and its Endpoints
 * ('targets' is a list), and of a target. */
struct json *idle_patch(const char *at, const struct json *targets);
struct json *idle_target_patch(const char *at, int64_t replicas);
/* Owned merge patches that remove the annotations no longer needed: when pods were requested, when
 * endpoints exist, and when a target has its previous scale. */
struct json *idle_woken_patch(void);
struct json *idle_over_patch(void);
struct json *idle_target_over_patch(void);

/* The targets in the annotation of 'obj' that have a kind, a name and a
 * number; owned, empty when there are none. */
struct json *idle_targets(const struct json *obj);
/* Whether an Event requests the pods of 'endpoints': it is not older than the idling. */
bool idle_event_counts(const struct json *event, const struct json *endpoints);
bool idle_is_idled(const struct json *obj);
/* Whether Endpoints have a ready address. */
bool idle_has_ready(const struct json *endpoints);
