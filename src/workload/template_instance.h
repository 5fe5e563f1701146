/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions about the objects of a TemplateInstance: which of them cannot be tried before others
 * exist, and which are ready.
 *
 * The controller (controllers/templates/instances.h) sends the requests.  Readiness follows
 * OpenShift's controller: only objects with the annotation wait-for-ready count.  Pure. */
#pragma once

#include "wire/json.h"

#define TEMPLATE_OWNER_LABEL "template.openshift.io/template-instance-owner"
#define TEMPLATE_FINALIZER "template.openshift.io/finalizer"

/* Whether an earlier one of the objects must exist before the API server would accept this one: a
 * Pod's service account, a binding's role.  A dry run of it would be refused. */
bool template_object_depends(const struct json *objects, size_t i);

enum template_state { TEMPLATE_READY, TEMPLATE_WAITING, TEMPLATE_FAILED };
/* Whether the object's kind has a readiness, and the object asks to wait for it. */
bool template_object_is_awaited(const struct json *obj);
/* The state of an object, as its status says.  An object that is not awaited is ready. */
enum template_state template_object_state(const struct json *obj);
