/* SPDX-License-Identifier: Apache-2.0 */
/* Deletes Events that were last seen more than an hour ago, as Kubernetes does. */
#pragma once

#include "api/kind.h"
#include "controller/controller.h"

#define EVENT_TTL_MS (1000 * API_EVENT_TTL_S)

extern const struct controller event_age_controller;

/* Pure: whether 'event' was last seen more than EVENT_TTL_MS before 'now_ms'. */
bool event_age_is_over(const struct json *event, int64_t now_ms);
