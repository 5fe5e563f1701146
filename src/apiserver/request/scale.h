/* SPDX-License-Identifier: Apache-2.0 */
/* The subresource scale: one shape (autoscaling/v1 Scale) for the number of replicas of any kind.
 * Pure. */
#pragma once

#include "apiserver/cache/object.h"

/* The Scale of 'obj', of kind 'k', which has that subresource; owned. */
struct json *scale_of(const struct api_kind *k, const struct json *obj);
/* Like object_check_target, for a Scale of the object that 't' names.  -EINVAL. */
int scale_check_target(struct json *scale, const struct object_target *t, struct err *e);
/* Sets the number of replicas of 'obj' to that of 'scale'; absent means 0. */
void scale_put(const struct api_kind *k, const struct json *scale, struct json *obj);
/* The configuration that applying 'scale' applies to its object; owned. */
struct json *scale_config(const struct api_kind *k, const struct json *scale);
