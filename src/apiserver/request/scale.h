/* SPDX-License-Identifier: Apache-2.0 */
/* The subresource scale: one shape (autoscaling/v1 Scale) for the number of replicas of any kind.
 * Pure. */
#pragma once

#include "apiserver/cache/object.h"

/* The Scale of 'obj', of kind 'k', which has that subresource; owned. */
struct json *scale_of(const struct api_kind *k, const struct json *obj);
/* As object_check_target, of a Scale of the object that 't' is about.  -EINVAL. */
int scale_check_target(struct json *scale, const struct object_target *t, struct err *e);
/* Gives 'obj' the number that 'scale' asks for; none is 0. */
void scale_put(const struct api_kind *k, const struct json *scale, struct json *obj);
/* What applying 'scale' applies to its object; owned. */
struct json *scale_config(const struct api_kind *k, const struct json *scale);
