/* SPDX-License-Identifier: Apache-2.0 */
/* What starts the rollouts of an object: of a DeploymentConfig in spec.triggers, of other workloads
 * in the annotation image.openshift.io/triggers.  Pure.
 *
 * Both are read into one form: {"config": true, "images": [{"from": "ruby:latest", "namespace":
 * "other", "names": ["web"], "auto": true}]}; "namespace" is absent for the object's own. */
#pragma once

#include "api/kind.h"

#define TRIGGERS_ANNOTATION "image.openshift.io/triggers"

/* The triggers of an object; owned.  NULL: the annotation is malformed, or the kind has none, with
 * the reason in '*e'. */
struct json *triggers_read(const struct api_kind *k, const struct json *object, struct err *e);
/* Writes them into the object.  What the server keeps in a trigger of a DeploymentConfig
 * (lastTriggeredImage) stays.  -EINVAL: a container does not exist, or has two triggers. */
int triggers_write(const struct api_kind *k, struct json *object, const struct json *triggers,
                   struct err *e);
