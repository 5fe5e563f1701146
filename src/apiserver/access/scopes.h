/* SPDX-License-Identifier: Apache-2.0 */
/* Scopes of OAuth tokens: a second list of rules beside those of RBAC; a request must be allowed by
 * both.
 *
 * A user's scopes are the values of the extra attribute SCOPES_EXTRA, so that they survive
 * TokenReview, SubjectAccessReview and impersonation.  A user without them is not limited.  A scope
 * that is not known, or whose role does not exist, allows nothing (oauth.openshift.io's rules for
 * scopes).  Pure but for memory; loop's thread only. */
#pragma once

#include "apiserver/access/rbac.h"

#define SCOPES_EXTRA "scopes.authorization.openshift.io"

/* The user's scopes, an array that belongs to 'u'; NULL: the user is not limited by scopes. */
const struct json *scopes_of(const struct user_info *u);
/* Whether the user's scopes allow the request; the roles of scopes are those of 'r'.  'why' (may be
 * NULL) gets "scopes [a b] prevent this action" when they do not. */
bool scopes_allow(const struct rbac *r, const struct user_info *u, const struct attributes *a,
                  struct strbuf *why);
/* Calls 'fn' for each rule that both RBAC and the user's scopes give in 'ns' (rbac_each_rule); the
 * rule is valid during the call. */
void scopes_each_rule(const struct rbac *r, const struct user_info *u, const char *ns,
                      rbac_rule_fn *fn, void *ctx);
