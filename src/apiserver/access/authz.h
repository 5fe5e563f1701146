/* SPDX-License-Identifier: Apache-2.0 */
/* Authorization: system:masters may do everything, a node may use the objects that concern it, and
 * all users have the rights that RBAC gives them. */
#pragma once

#include "apiserver/access/security.h"

/* Whether 'u' may make the request; 'why' (may be NULL) gets a reason if one is known. */
bool authz_allows(struct security *s, const struct user_info *u, const struct attributes *a,
                  struct strbuf *why);
/* Authorizes an action other than the request's own; strings are NULL or "" when absent. */
bool authz_may(struct security *s, const struct user_info *u, const char *verb, const char *group,
               const char *resource, const char *ns, const char *name);
