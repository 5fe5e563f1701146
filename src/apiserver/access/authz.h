/* SPDX-License-Identifier: Apache-2.0 */
/* Authorization: system:masters may do everything, a node what concerns it, everyone what RBAC
 * gives them. */
#pragma once

#include "apiserver/access/security.h"

/* Whether 'u' may do it; 'why' (may be NULL) gets a reason when there is one to tell. */
bool authz_allows(struct security *s, const struct user_info *u, const struct attributes *a,
                  struct strbuf *why);
/* For checks beside the request's own: strings NULL or "" when absent. */
bool authz_may(struct security *s, const struct user_info *u, const char *verb, const char *group,
               const char *resource, const char *ns, const char *name);
