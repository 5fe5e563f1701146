/* SPDX-License-Identifier: Apache-2.0 */
/* OAuth tokens and codes, and the names of their objects.
 *
 * A token is "sha256~" and 43 characters of base64url; its object is called "sha256~" and the
 * base64url of the SHA-256 of those 43 characters, as in OpenShift since 4.6.  The names are no
 * secrets: audit logs, keys of the store and lists may show them.  The OAuth server makes tokens
 * and the API server finds their objects, both by this file.  Pure: random bytes come in as an
 * argument. */
#pragma once

#include "api/kinds/oauth.h"

#include <stdint.h>

/* Bytes of a token's or a name's text, with the NUL. */
#define OAUTH_TOKEN_TEXT_SIZE (OAUTH_TOKEN_SIZE + 1)
/* Random bytes of a token. */
#define OAUTH_TOKEN_RANDOM 32

/* Whether 's' has the form of a token.  An object's name has the same form. */
bool oauth_token_has_form(const char *s);
/* Makes the token of 'random'.  -EAGAIN: it would begin with "-" after the prefix, which tools
 * could take for an option: the caller draws again; 'ret' is untouched then. */
int oauth_token_make(const uint8_t random[OAUTH_TOKEN_RANDOM], char ret[OAUTH_TOKEN_TEXT_SIZE]);
/* The name of the object of 'token'.  -EINVAL: 'token' has not the form of one; 'ret' is
 * untouched then. */
int oauth_token_name(const char *token, char ret[OAUTH_TOKEN_TEXT_SIZE]);
