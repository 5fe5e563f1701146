/* SPDX-License-Identifier: Apache-2.0 */
/* The projects of a user, with oc's words. */
#pragma once

#include "client/client.h"

/* The user's projects, sorted by name; '*ret' is an owned array.  A server without projects is
 * asked for its namespaces. */
int projects_list(struct api_client *c, struct json **ret, struct err *e);
const char *project_name(const struct json *project);
/* "red", or "red - Display name"; owned, and harmless for a terminal. */
char *project_title(const struct json *project);
/* Finds a project; NULL: there is none in the list. */
const struct json *projects_find(const struct json *projects, const char *name);
/* Prints "  * red" for the current one, and "    blue" for each other. */
void projects_print(const struct json *projects, const char *current);
/* 1: the project is there, and is the user's; 0: it is not, or it is not the user's; negative: the
 * request failed. */
int project_exists(struct api_client *c, const char *name, struct err *e);
/* Whether the user may request projects; false also when the server does not tell. */
bool projects_may_request(struct api_client *c);
