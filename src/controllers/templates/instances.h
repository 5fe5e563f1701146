/* SPDX-License-Identifier: Apache-2.0 */
/* The controller of TemplateInstances: creates the objects of a template in the name of the user
 * who asked for them, reports when they are ready, and deletes them with the instance.
 *
 * Values from the Secret, processing, access reviews of all objects, a dry run of all objects: only
 * if none of these is refused is anything created, each object by a request as the requester.  The
 * references are written into the status first, so that another leader finds what was created; an
 * instance that was interrupted is undone and begun again, because generated values are kept
 * nowhere.  A creation that is refused after all undoes the others.  Readiness follows watches. */
#pragma once

#include "controller/controller.h"

extern const struct controller template_instances_controller;
