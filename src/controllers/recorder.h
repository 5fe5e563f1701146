/* SPDX-License-Identifier: Apache-2.0 */
/* Events: tells users in the registry what a controller did or could not do.
 *
 * An Event's name is made from the object, the reason and the message, so the same happening again, also
 * after a restart, adds to the count of the one that is there.  Events about objects without a namespace
 * are kept in "default".  Recording never fails for the caller: what the server does not take within a few
 * tries is logged and dropped.  Everything runs on the loop's thread. */
#pragma once

#include "client/client.h"

struct recorder;
/* 'component' (copied) names the source: "tenet-master". */
struct recorder *recorder_new(struct loop *l, struct api_client *client, const char *component);
/* Events that were not sent yet are lost. */
struct recorder *recorder_free(struct recorder *r);

enum recorder_type { EVENT_NORMAL, EVENT_WARNING };
/* 'object' is the one it is about and is not kept; its kind is given, as members of lists do not say it.
 * 'reason' is CamelCase. */
void recorder_event(struct recorder *r, const char *api_version, const char *kind,
                    const struct json *object, enum recorder_type type, const char *reason,
                    const char *message);

/* Pure: the Event as it would be created. */
struct json *recorder_make(const char *api_version, const char *kind, const struct json *object,
                           enum recorder_type type, const char *reason, const char *message,
                           const char *component, int64_t now_ms);
