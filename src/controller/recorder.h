/* SPDX-License-Identifier: Apache-2.0 */
/* Events: tells users in the registry what a controller did or could not do.
 *
 * An Event's name is made from the object, the reason and the message, so the same happening again, also
 * after a restart, adds to the count of the one that is there.  Events about objects without a namespace
 * are kept in "default".  About one object at most 25 Events are sent in a row, then one in 5 minutes (as
 * kube-controller-manager does): what a peer can cause does not fill the registry.  Recording never fails for the caller: what the server does not take within a few
 * tries is logged and dropped; a server that is away is waited for.  Everything runs on the loop's thread. */
#pragma once

#include "base/map.h"
#include "client/client.h"

struct recorder;
/* 'component' (copied) names the source: "tenet-master". */
struct recorder *recorder_new(struct loop *l, struct api_client *client, const char *component);
/* Events that were not sent yet. */
size_t recorder_waiting(const struct recorder *r);
/* Events that were not sent yet are lost. */
struct recorder *recorder_free(struct recorder *r);

enum recorder_type { EVENT_NORMAL, EVENT_WARNING };
/* 'object' is the one it is about and is not kept; its kind is given, as members of lists do not say it.
 * 'reason' is CamelCase. */
void recorder_event(struct recorder *r, const char *api_version, const char *kind,
                    const struct json *object, enum recorder_type type, const char *reason,
                    const char *message);

/* Pure: the budget of each object.  Zeroed is not enough: recorder_limit_init. */
#define RECORDER_BURST 25
#define RECORDER_REFILL_MS 300000
struct recorder_limit {
    struct smap objects;
};
void recorder_limit_init(struct recorder_limit *l);
void recorder_limit_done(struct recorder_limit *l);
/* Whether one more Event about the object 'key' may be sent now, and if so counts it. */
bool recorder_limit_take(struct recorder_limit *l, const char *key, uint64_t now_ms);

/* Pure: the Event as it would be created. */
struct json *recorder_make(const char *api_version, const char *kind, const struct json *object,
                           enum recorder_type type, const char *reason, const char *message,
                           const char *component, int64_t now_ms);
