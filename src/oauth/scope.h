/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of scopes: the text of requests, unions, and whether one list covers another.
 *
 * api/kinds/oauth.h has the form of one scope.  A list is an array of texts in JSON.  Pure. */
#pragma once

#include "api/kinds/oauth.h"
#include "wire/json.h"

#define OAUTH_SCOPE_FULL_TEXT "user:full"

/* The scopes of a parameter "scope" (RFC 6749, 3.3): separated by blanks, each of them once, in the
 * order of their first occurrence; NULL or blanks: an empty array.  Owned.  The scopes need not be
 * known: oauth_check_scope says that. */
struct json *oauth_scopes_split(const char *text);
/* "a b c", owned. */
char *oauth_scopes_join(const struct json *scopes);
/* An owned array of the scopes of both, each of them once, in alphabetical order. */
struct json *oauth_scopes_union(const struct json *a, const struct json *b);
/* The owned scopes of 'a' that 'b' does not cover, in a's order. */
struct json *oauth_scopes_minus(const struct json *a, const struct json *b);
/* Whether 'has' gives all that 'wanted' asks for: user:full does always, else each wanted scope must
 * be in it.  An empty 'wanted' asks for user:full. */
bool oauth_scopes_cover(const struct json *has, const struct json *wanted);
