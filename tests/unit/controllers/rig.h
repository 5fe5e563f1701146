/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of a controller against the API server of ../apiserver/harness.h: its client,
 * and waiting for its writes. */
#pragma once

#include "controller/controller.h"
#include "harness.h"

/* A client of the server; with access control it acts as the master. */
struct api_client *rig_client(struct harness *h);
/* Runs the controller alone, with this configuration, until rig_stop. */
struct rig_controller;
struct rig_controller *rig_start(struct harness *h, struct api_client *client,
                                 const struct controller *c, const void *config);
void rig_stop(struct rig_controller *r);
/* Waits until GET 'path' returns an object whose string at the dotted path 'where' is 'want'.  With
 * 'where' NULL it waits for the status 'want'. */
void rig_expect(struct harness *h, const char *path, const char *where, const char *want);
/* Runs the loop until '*flag' is set; fails the test when that does not happen. */
void rig_wait(struct harness *h, const bool *flag);
/* The text of the object at 'path' without managedFields; owned.  Fails the test when
 * there is none. */
char *rig_text(struct harness *h, const char *path);
/* Writes an object straight into the store, past the API server.  Each ' of 'body' becomes a ". */
void rig_plant(struct harness *h, const char *group, const char *plural, const char *key,
               const char *body);
/* Makes the server answer 503 to every request, or to every write, until rig_recover.  That
 * waits for at least one such answer. */
void rig_refuse(struct harness *h, bool writes_only);
void rig_recover(struct harness *h);
/* Removes an object straight from the store, past the API server. */
void rig_uproot(struct harness *h, const char *group, const char *plural, const char *key);
