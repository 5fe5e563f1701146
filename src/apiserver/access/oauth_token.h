/* SPDX-License-Identifier: Apache-2.0 */
/* OAuth tokens as credentials of the API.
 *
 * A token is valid while its object (OAuthAccessToken) exists, is not being deleted and has not
 * expired, and while the User exists with the UID that the token names: a user made anew with the
 * same name has no use of it.  Everything is decided by the watch cache, so a deleted token ends at
 * the next request to any master.  The parsed form of a token is kept as long as the objects it is
 * made of are the same.  Loop's thread only. */
#pragma once

#include "apiserver/access/security.h"

#define GROUP_OAUTH "system:authenticated:oauth"

/* The user of 'token', with its groups, and its scopes as an extra attribute; '*ret' is a
 * reference.  -EPERM says why the token is invalid, for the log: a client does not learn it. */
int oauth_token_authenticate(struct security *s, const char *token, int64_t now_ms,
                             struct user_info **ret, struct err *e);
/* Whether the token with this object's name is no longer valid: what began with it must end. */
bool oauth_token_has_ended(struct security *s, const char *name, int64_t now_ms);
/* Forgets what is kept of the token with this object's name. */
void oauth_token_forget(struct security *s, const char *name);
/* The values of security->oauth_tokens. */
void oauth_token_kept_free(void *kept);
