/* SPDX-License-Identifier: Apache-2.0 */
/* Records Events, which inform users in the registry what a controller did or could not do.
 *
 * An Event's name is made from the object, the reason and the message, so a repetition, also
 * after a restart, increments the count of the existing Event.  Events about objects without
 * a namespace are kept in "default".  At most 25 Events about one object are sent in a row,
 * then one in 5 minutes (as in kube-controller-manager), so that a peer that causes Events
 * cannot fill the registry.  Recording never fails for the caller: an Event that the server
 * refuses several times is logged and dropped; while the server is unavailable, Events are
 * queued, 10,000 at most.
 *
 * The recorder is no controller: it works for the controllers, and nodes have one as well.  Its
 * queue and retries are those of workqueue.h; beside the queue it keeps the Events themselves,
 * because no object of the registry has them yet.  Everything runs on the loop's thread. */
#pragma once

#include "base/map.h"
#include "client/client.h"

struct recorder;
/* 'component' (copied) names the source: "tenet-master". */
struct recorder *recorder_new(struct loop *l, struct api_client *client, const char *component);
/* How long Events wait before they are sent; 0, the default: not at all.  A registry on a disk
 * commits in the order of arrival, so an Event that is sent at once holds up the status that it is
 * about; those that wait are committed together. */
void recorder_set_delay(struct recorder *r, uint64_t ms);
/* The number of Events that were not sent yet. */
size_t recorder_waiting(const struct recorder *r);
/* Frees the recorder; Events that were not sent yet are lost. */
struct recorder *recorder_free(struct recorder *r);

enum recorder_type { EVENT_NORMAL, EVENT_WARNING };
/* 'object' is the subject of the Event and is not kept; its kind is an argument, because members of
 * lists do not contain it.  'reason' is CamelCase. */
void recorder_event(struct recorder *r, const char *api_version, const char *kind,
                    const struct json *object, enum recorder_type type, const char *reason,
                    const char *message);

/* Pure: limits the Events about each object.  Initialise it with recorder_limit_init. */
#define RECORDER_BURST 25
#define RECORDER_REFILL_MS 300000
struct recorder_limit {
    struct smap objects;
};
void recorder_limit_init(struct recorder_limit *l);
void recorder_limit_done(struct recorder_limit *l);
/* Whether another Event about the object 'key' may be sent now; if so, counts it. */
bool recorder_limit_take(struct recorder_limit *l, const char *key, uint64_t now_ms);

/* Pure: the Event as it is created. */
struct json *recorder_make(const char *api_version, const char *kind, const struct json *object,
                           enum recorder_type type, const char *reason, const char *message,
                           const char *component, int64_t now_ms);
