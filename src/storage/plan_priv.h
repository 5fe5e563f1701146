/* SPDX-License-Identifier: Apache-2.0 */
/* What the two files of plans share. */
#pragma once

#include "storage/plan.h"

/* 'body' is taken over. */
void plan_write(struct storage_plan *p, enum storage_act act, struct json *body);
/* 'reason' is not copied. */
void plan_say(struct storage_plan *p, bool warning, const char *reason, const char *format, ...)
    PRINTF_LIKE(4, 5);
/* The object with apiVersion and kind, which members of lists lack; owned. */
struct json *plan_copy(const struct json *o, const char *kind);
/* The same without the finalizer. */
struct json *plan_without_finalizer(const struct json *o, const char *kind, const char *name);
