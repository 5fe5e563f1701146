/* SPDX-License-Identifier: Apache-2.0 */
/* The OAuth server: a chain of its own ahead of the API's authentication.
 *
 * It owns the paths of /oauth, /login, /logout, /oauth2callback and the discovery document, and
 * answers 404 below them to what it does not know: nothing falls through to the API.  These paths
 * take passwords and client secrets by Basic, and never bearer tokens, so that a token with few
 * scopes cannot get another with more.
 *
 * Logins end in objects of the registry (users, identities, codes, tokens), which this server
 * writes by transactions of the store.  Everything runs on the loop's thread. */
#pragma once

#include "apiserver/apiserver.h"
#include "oauth/config.h"

struct oauth_server;

/* The OAuth server's settings, from the master. */
struct oauth_settings {
    const struct oauth_config *config; /* Borrowed during the call. */
    const char *public_url;            /* "https://HOST:PORT": the issuer. */
};

/* Whether the path belongs to the OAuth server. */
bool oauth_owns_path(const char *path);
/* Answers a request for such a path, now or later; 's' NULL: there is no OAuth server, and the
 * answer is 404. */
void oauth_handle(struct oauth_server *s, struct http_exchange *x);

/* Checks what can be checked without opening anything: kinds of providers and their keys. */
int oauth_check_config(const struct oauth_config *c, struct err *e);
/* Opens the providers and reads the files of the configuration.  Errors name the key. */
int oauth_server_new(struct apiserver *a, const struct oauth_settings *cfg,
                     struct oauth_server **ret, struct err *e);
/* Reads the configuration again; on failure the previous one stays in force.  Logins under way at a
 * provider end with a failure. */
int oauth_server_reload(struct oauth_server *s, const struct oauth_settings *cfg, struct err *e);
/* The authorities of proxies' certificates, for tls_server_config.proxy_cas: '*ret', which NULL
 * ends, is owned, and its texts are borrowed until the next reload.  Their number. */
size_t oauth_server_proxy_cas(const struct oauth_server *s, const char ***ret);
struct oauth_server *oauth_server_free(struct oauth_server *s);
