/* SPDX-License-Identifier: Apache-2.0 */
/* Follows one kind of objects on an API server: lists it, then watches it
 * without end.  Internal to src/client.
 *
 *     LIST ── ok ──▶ WATCH ── ended in order ──▶ WATCH (from the last version seen)
 *      ▲               │
 *      └─ 410 Gone ────┤
 *                      └─ failed ──▶ WAIT (backoff) ──▶ WATCH, or LIST when there never was one
 *
 * The reflector keeps no object.  Lists are read in pages, so that their
 * temporary memory does not grow with the cluster.  Everything runs on the loop's
 * thread; every callback may free the reflector. */
#pragma once

#include "client/client.h"

struct reflector_ops {
    /* The first page of a list has arrived; its objects follow. */
    void (*listing)(void *ctx);
    /* The last page of the list has been reported. */
    void (*listed)(void *ctx);
    /* An object of a page, or one that the watch reports as added or changed.
     * The callee owns 'obj'. */
    void (*changed)(void *ctx, struct json *obj);
    /* The watch reports the object as deleted.  'obj' is its last state. */
    void (*deleted)(void *ctx, const struct json *obj);
    /* The server became unreachable, with the reason, or is back (NULL).  Each is called once. */
    void (*connection)(void *ctx, const char *lost_reason);
    /* The server does not know the kind (404).  Returns true when that counts as an empty list. */
    bool (*absent)(void *ctx);
};

struct reflector;
/* Makes a reflector, which sends nothing before reflector_list.  'ns' and
 * 'field_selector' NULL: all.  All strings are copied. */
struct reflector *reflector_new(struct api_client *c, struct loop *l, const char *ns,
                                const char *api_version, const char *plural,
                                const char *field_selector, const struct reflector_ops *ops,
                                void *ctx);
struct reflector *reflector_free(struct reflector *r);
/* Lists now, then watches; a list or watch under way is dropped.  'metadata': request only the
 * objects' metadata.  Not allowed within a callback. */
void reflector_list(struct reflector *r, bool metadata);
/* How many lists were begun, and the number of the last one that is complete (1, 2 and so on; 0:
 * none so far). */
uint64_t reflector_lists_begun(const struct reflector *r);
uint64_t reflector_list_complete(const struct reflector *r);
/* The last resourceVersion that the list or the watch has reported; 0: none yet. */
uint64_t reflector_version(const struct reflector *r);
