/* SPDX-License-Identifier: Apache-2.0 */
/* Authorization of nodes by what is their own. */
#pragma once

#include "apiserver/access/security.h"

/* Whether the node may do it by what is its own. */
bool node_allows(struct security *s, const char *node, const struct attributes *a);
