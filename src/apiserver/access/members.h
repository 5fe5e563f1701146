/* SPDX-License-Identifier: Apache-2.0 */
/* The groups that each user is in by Group objects (user.openshift.io/v1).
 *
 * Groups are indexed by member, so that a request looks up its user's groups only.  The caller
 * passes in each object when it changes.  A group or member whose name the kinds do not allow is
 * ignored, however it came into the store: no object adds anybody to a virtual group such as
 * system:masters, and no system user is a member of a group.  Pure; loop's thread only. */
#pragma once

#include "apiserver/access/user.h"

struct members;
struct members *members_new(void);
struct members *members_free(struct members *m); /* NULL is fine; returns NULL. */
/* Sets the members of the group 'name'; 'obj' NULL: it was deleted. */
void members_set_group(struct members *m, const char *name, const struct json *obj);
/* Adds to 'u' the groups that list it, after those that it has. */
void members_add_groups(const struct members *m, struct user_info *u);
/* A reference to 'u' with the groups that list it now: to 'u' itself when it does not have the
 * groups of objects (user_info.joins). */
struct user_info *members_renew(const struct members *m, struct user_info *u);
