/* SPDX-License-Identifier: Apache-2.0 */
/* Objects as "oc export" gives them: without what only one cluster's object has, so that the text
 * creates the object elsewhere.  Pure. */
#pragma once

#include "wire/json.h"

/* Removes what the server sets: the status, identity and namespace of the metadata, and addresses
 * and names that the server chose.  -EINVAL: the object is the server's own (a token of a service
 * account), and is not exported. */
int export_strip(struct json *o);
/* A Template of the name with these objects (an array; taken); owned. */
struct json *export_template(const char *name, struct json *objects);
