/* SPDX-License-Identifier: Apache-2.0 */
/* Authorization of nodes for the objects that concern them. */
#pragma once

#include "apiserver/access/security.h"

/* Whether the rights of a node over its own objects allow the request. */
bool node_allows(struct security *s, const char *node, const struct attributes *a);
