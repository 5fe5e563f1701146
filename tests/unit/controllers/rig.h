/* SPDX-License-Identifier: Apache-2.0 */
/* A controller against the API server of ../apiserver/harness.h: the controller's client, and waiting for what it does. */
#pragma once

#include "client/client.h"
#include "harness.h"

/* A client of the server, as the master when there is access control. */
struct api_client *rig_client(struct harness *h);
/* Waits until the string at the dotted path 'where' of what GET 'path' answers is 'want'; 'where' NULL: until the
 * status of the answer is. */
void rig_expect(struct harness *h, const char *path, const char *where, const char *want);
/* Lets the loop turn until '*flag' is set, which must happen. */
void rig_wait(struct harness *h, const bool *flag);
/* Owned text of the object at 'path' without its managedFields, which there must be. */
char *rig_text(struct harness *h, const char *path);
/* Writes the object at 'path' into the store as 'body' says it (a ' stands for a "), whatever the server would do with
 * it. */
void rig_plant(struct harness *h, const char *group, const char *plural, const char *key,
               const char *body);
/* Takes it out of the store, also where the server would not delete it. */
void rig_uproot(struct harness *h, const char *group, const char *plural, const char *key);
