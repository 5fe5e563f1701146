/* SPDX-License-Identifier: Apache-2.0 */
/* A NetNamespace's annotations about moving a project to another network.  Pure.
 *
 * An administrator's client writes the request into the first; the master executes it in steps
 * and writes the others, which nodes read (docs/allocation.md). */
#pragma once

#include "wire/json.h"

/* The request: "join:PROJECT", "isolate" or "global", as written by oc. Removed when it is done. */
#define NET_CHANGE "pod.network.openshift.io/multitenant.change-network"
/* The reason why it cannot be done now. */
#define NET_CHANGE_REFUSED "tenet.io/change-refused"
/* The next netid, and the previous one: pods of the project accept packets with them, too. */
#define NET_NEXT_ID "tenet.io/next-netid"
#define NET_PREVIOUS_ID "tenet.io/previous-netid"

#define NET_ID_MAX 0xffffff
#define NET_ID_FIRST 10 /* 1 to 9 are reserved. */

enum net_change { NET_JOIN, NET_ISOLATE, NET_GLOBAL };
/* Reads the text of NET_CHANGE; '*ret_project' points into it, "" unless NET_JOIN. -EINVAL lists
 * the accepted forms. */
int net_change_parse(const char *text, enum net_change *ret, const char **ret_project,
                     struct err *e);
/* The text of NET_NEXT_ID or NET_PREVIOUS_ID. */
int net_id_parse(const char *text, uint32_t *ret);
