/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions in the status of objects: the one place that finds and sets them.  Pure.
 *
 * Conditions belong to their object.  All functions accept objects with parts missing or of the
 * wrong type. */
#pragma once

#include "wire/json.h"

/* The condition of this type; NULL when absent. */
struct json *condition_find(const struct json *obj, const char *type);
/* Whether the status of the condition is "True". */
bool condition_is_true(const struct json *obj, const char *type);
/* Sets the condition and returns it; lastTransitionTime becomes 'now_ms' (wall clock) when the
 * status changes.  'reason' and 'message' may be NULL: then they stay as they are.  Returns NULL,
 * and changes nothing, when the condition has these values already. */
struct json *condition_set(struct json *obj, const char *type, const char *status,
                           const char *reason, const char *message, int64_t now_ms);
/* The same for conditions with lastUpdateTime, as Deployments have: the condition stays as it is when
 * its status and reason are these already, unless 'again' asks for the message and the time of
 * update to change even then.  It becomes the last one of the list. */
void condition_renew(struct json *obj, const char *type, const char *status, const char *reason,
                     const char *message, bool again, int64_t now_ms);
/* Removes the condition, and an empty list of conditions. */
void condition_remove(struct json *obj, const char *type);
