/* SPDX-License-Identifier: Apache-2.0 */
/* Authorization: system:masters may do everything, a node may use the objects that concern it, and
 * all users have the rights that RBAC gives them.  The scopes of an OAuth token limit all of these
 * (scopes.h). */
#pragma once

#include "apiserver/access/scopes.h"
#include "apiserver/access/security.h"

/* Whether 'u' may make the request with the attributes 'a'.  'why' (may be NULL) gets the binding
 * that allows it, or the roles that are bound to the user and missing (rbac_allows); it stays empty
 * when there is nothing of these. */
bool authz_allows(struct security *s, const struct user_info *u, const struct attributes *a,
                  struct strbuf *why);
/* Like authz_allows for another action than the request's own, as admission and reviews need it.
 * 'resource' may have a subresource ("pods/status"); 'group', 'ns' and 'name' are NULL or "" when
 * absent. */
bool authz_may(struct security *s, const struct user_info *u, const char *verb, const char *group,
               const char *resource, const char *ns, const char *name);
/* Calls 'fn' for each rule that 'u' has in 'ns', as scopes_each_rule does; members of
 * system:masters have all.  Returns whether these are all rights of 'u': those of a node over its
 * own objects are no rules. */
bool authz_each_rule(struct security *s, const struct user_info *u, const char *ns,
                     rbac_rule_fn *fn, void *ctx);
