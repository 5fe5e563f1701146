/* SPDX-License-Identifier: Apache-2.0 */
/* Decides for single objects of a kind whether a user may get them, for lists and watches of kinds
 * of which each user sees a part (Project).
 *
 * A watch needs a decision at every event, and most events change no rights.  The answers are
 * therefore cached for each user (name and groups) and kind until a role, binding or group changes,
 * and shared by all watches of that user.  The caller owns a reference, which keeps the answers;
 * they must be released before the struct security.  Everything runs on the loop's thread. */
#pragma once

#include "apiserver/access/security.h"

struct visible;
/* Returns a reference to the answers for 'u' about 'k'; 'k' must outlive them. */
struct visible *visible_ref(struct security *s, struct user_info *u, const struct api_kind *k);
struct visible *visible_unref(struct visible *v); /* NULL is fine; returns NULL. */
/* Whether the user may get the object 'name' (cluster-scoped, or a namespace) now. */
bool visible_has(struct visible *v, const char *name);
