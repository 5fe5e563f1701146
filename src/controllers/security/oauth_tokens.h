/* SPDX-License-Identifier: Apache-2.0 */
/* Deletes OAuth tokens and codes that have ended, and what a deleted User or OAuthClient leaves:
 * tokens, codes and authorizations; and clears the user of identities whose User is gone, so that
 * the person can log in again.
 *
 * Before it takes a User or an OAuthClient for gone it asks the API server, because its own copy of
 * the objects may be behind. */
#pragma once

#include "controller/controller.h"

extern const struct controller oauth_tokens_controller;

/* Milliseconds until an OAuthAccessToken or OAuthAuthorizeToken ends, 0 if it has ended; -1: it
 * does not end, or it has no readable time of creation.  Pure. */
int64_t oauth_tokens_left_ms(const struct json *token, int64_t now_ms);
