/* SPDX-License-Identifier: Apache-2.0 */
/* Events are news: those that were not seen again for an hour are deleted, as Kubernetes does it. */
#pragma once

#include "api/kind.h"
#include "client/client.h"

#define EVENT_TTL_MS (1000 * API_EVENT_TTL_S)

struct event_age;
struct event_age *event_age_new(struct loop *l, struct api_client *client);
struct event_age *event_age_free(struct event_age *a);

/* Pure: whether 'event' was seen last more than EVENT_TTL_MS before 'now_ms'. */
bool event_age_is_over(const struct json *event, int64_t now_ms);
