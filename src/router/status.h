/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the entry of this router into the status of routes.
 *
 * An entry that is already there is not written again, so that replicas with one name do not
 * fight: the first one writes, the others see its entry.  When another router with this name and
 * other answers changes the entry again and again, this one stops writing that route for some
 * minutes. Thread of the loop. */
#pragma once

#include "client/client.h"
#include "route/claims.h"

struct status_writer;
struct status_config {
    struct loop *loop;
    struct api_client *client;
    const char *router, *canonical_hostname; /* Borrowed; the second may be NULL. */
    bool writes;                             /* Else nothing is written. */
};
struct status_writer *status_writer_new(const struct status_config *cfg);
struct status_writer *status_writer_free(struct status_writer *w);
/* The route's object as the API server has it now. */
void status_seen(struct status_writer *w, const char *key, const struct json *obj);
/* The contents that the entry must have. */
void status_want(struct status_writer *w, const struct route *r, bool admitted, const char *reason,
                 const char *message);
void status_forget(struct status_writer *w, const char *key);
size_t status_waiting(const struct status_writer *w);
