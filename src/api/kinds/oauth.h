/* SPDX-License-Identifier: Apache-2.0 */
/* The form of OAuth tokens and scopes: the kinds of oauth.openshift.io, authorization and the OAuth
 * server share it.
 *
 * A token and the name of its object have one form: "sha256~" and 43 characters of base64url.  The
 * name has the hash of the token's characters (oauth/token.h), so that whoever reads names cannot
 * use the tokens.  Pure; nothing is allocated. */
#pragma once

#include "base/macro.h"

#include <stddef.h>

#define OAUTH_GROUP "oauth.openshift.io"
#define OAUTH_TOKEN_PREFIX "sha256~"
/* Characters of base64url of 32 bytes. */
#define OAUTH_TOKEN_SECRET 43
/* Characters of a token, without the NUL. */
#define OAUTH_TOKEN_SIZE (sizeof OAUTH_TOKEN_PREFIX - 1 + OAUTH_TOKEN_SECRET)
/* The smallest time of inactivity after which a token ends; 0: inactivity does not end it. */
#define OAUTH_INACTIVITY_MIN_S 300

/* NULL: 's' has the form of a token; else the rule, a constant text that does not contain 's'. */
const char *oauth_check_token(const char *s);
/* The same for the name of a client: that of an OAuthClient, or of a service account. */
const char *oauth_check_client(const char *s);
/* The same for one scope. */
const char *oauth_check_scope(const char *s);
/* The same for a redirect URI: no fragment, no segment "." or "..". */
const char *oauth_check_redirect(const char *s);

enum oauth_scope_type {
    OAUTH_SCOPE_INFO,                 /* user:info: who the user is */
    OAUTH_SCOPE_CHECK_ACCESS,         /* user:check-access: what the user may do */
    OAUTH_SCOPE_LIST_SCOPED_PROJECTS, /* user:list-scoped-projects */
    OAUTH_SCOPE_LIST_PROJECTS,        /* user:list-projects */
    OAUTH_SCOPE_FULL,                 /* user:full: all that the user may do */
    OAUTH_SCOPE_ROLE,                 /* role:ROLE:NAMESPACE[:!] */
};
/* A scope; the texts point into the parsed one and do not end with NUL.  They are set for
 * OAUTH_SCOPE_ROLE only. */
struct oauth_scope {
    enum oauth_scope_type type;
    const char *role; /* The ClusterRole; it may contain ":". */
    size_t role_size;
    const char *namespace; /* "*": all namespaces. */
    size_t namespace_size;
    bool escalating; /* Rules over secrets, tokens and roles count, too. */
};
/* -EINVAL: no scope that is known, or characters that RFC 6749 (3.3) does not allow. */
int oauth_scope_parse(const char *s, struct oauth_scope *ret);
