/* SPDX-License-Identifier: Apache-2.0 */
/* The client's side of OAuth (RFC 6749, RFC 7636, RFC 8252): how a login gets a token.
 *
 * The server is not trusted further than it must be: all of its endpoints are of the issuer's
 * origin, a redirect never leads from HTTPS to HTTP, a password goes only to the issuer's origin
 * unless the user agrees to another one, and a code is taken only from the redirect address that
 * was asked for.  Texts of the server are in errors as they came; the printer of errors makes them
 * harmless. */
#pragma once

#include "cli/login/web.h"
#include "wire/json.h"

#define OAUTH_CHALLENGING_CLIENT "openshift-challenging-client"
#define OAUTH_BROWSER_CLIENT "openshift-cli-client"

/* The document /.well-known/oauth-authorization-server (RFC 8414). */
struct oauth_server {
    char *issuer; /* Without a slash at its end. */
    struct location authorize, token;
};
void oauth_server_done(struct oauth_server *o);

/* Name and password of a challenge, owned texts of the callee.  'where' is the origin that asks,
 * 'realm' may be "".  -ECANCELED: there are none, and '*e' says what to do. */
typedef int oauth_ask_fn(void *ctx, const char *where, const char *realm, char **ret_user,
                         char **ret_password, struct err *e);
/* Whether the password may go to an origin other than the issuer's. */
typedef bool oauth_trust_fn(void *ctx, const char *where);

struct oauth_login {
    const struct web *web;
    oauth_ask_fn *ask;
    oauth_trust_fn *trusts;
    void *ctx;
    char
        *notice; /* Owned: what the server wants the user to read when it refuses; NULL: nothing. */
};

/* Reads the discovery document of the API server at 'server'.  -ENOENT: it has no OAuth. */
int oauth_discover(const struct web *w, const struct location *server, struct oauth_server *ret,
                   struct err *e);
/* Logs in by name and password.  '*ret_token' is owned.  -EACCES: name or password is wrong;
 * -ENOTSUP: no provider takes a password here, and 'notice' says where to get a token. */
int oauth_by_password(struct oauth_login *l, const struct oauth_server *o, char **ret_token,
                      struct err *e);
/* Logs in by the user's browser, which 'open' is given the address for.  'port' of the listener on
 * 127.0.0.1, 0: any. */
typedef void oauth_open_fn(void *ctx, const char *url);
int oauth_by_browser(struct oauth_login *l, const struct oauth_server *o, uint16_t port,
                     oauth_open_fn *open, char **ret_token, struct err *e);

/* ---- parts, pure but for random numbers ---- */

#define OAUTH_VERIFIER_SIZE 44 /* With the NUL. */
/* 256 random bits, URL-safe. */
void oauth_random(char out[OAUTH_VERIFIER_SIZE]);
/* Reads a discovery document that came from 'server'. */
int oauth_parse_discovery(const struct location *server, const char *text, size_t size,
                          struct oauth_server *ret, struct err *e);
/* The path and query of a request to authorize; owned.  'state' NULL: none. */
char *oauth_authorize_path(const struct oauth_server *o, const char *client, const char *redirect,
                           const char *challenge, const char *state);
/* The realm of a Basic challenge in the values of WWW-Authenticate, owned ("" without one); NULL:
 * there is no such challenge. */
char *oauth_basic_realm(const char *authenticate);
/* Reads the query of a redirect back to the client.  '*ret_code' is owned.  -EACCES: the server
 * refused, and '*e' says why. */
int oauth_parse_redirect(const char *path, const char *state, char **ret_code, struct err *e);
/* Reads the answer of the token endpoint; '*ret_token' is owned. */
int oauth_parse_token(int status, const char *text, size_t size, char **ret_token, struct err *e);
