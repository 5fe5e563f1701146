/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP server in front of the API server of a harness: it passes requests on, counts them, and
 * answers or holds chosen ones.  So a test decides what a controller sees, and in which order,
 * without races.
 *
 * The test's loop runs it.  Methods and paths must outlive the front; paths have no query. */
#pragma once

#include "client/client.h"
#include "harness.h"

struct front;
struct front *front_new(struct harness *h);
/* All clients of it must be freed before. */
void front_free(struct front *f);
/* A client of it; with access control it acts as the master. */
struct api_client *front_client(struct front *f);

/* Answers the next 'times' requests itself with a Status of this code and reason; the API server
 * does not see them. */
void front_answer(struct front *f, const char *method, const char *path, int code,
                  const char *reason, unsigned times);
/* As above, with 'body' (an object, ' stands for ") and status 200 to one request. */
void front_say(struct front *f, const char *method, const char *path, const char *body);
/* Drops all rules for the path. */
void front_forget(struct front *f, const char *path);
/* Holds the next request until front_release, which passes it on.  front_wait_held waits until it
 * has come. */
void front_hold(struct front *f, const char *method, const char *path);
void front_wait_held(struct front *f);
void front_release(struct front *f);

/* Ends all connections; watches begin again. */
void front_cut(struct front *f);

/* Requests that have come, whoever answered them; a path that ends with "*" stands for all that
 * begin so. */
unsigned front_asked(const struct front *f, const char *method, const char *path);
/* Waits until there were 'n' of them; fails the test if there were more. */
void front_expect(struct front *f, const char *method, const char *path, unsigned n);
