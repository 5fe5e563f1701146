/* SPDX-License-Identifier: Apache-2.0 */
/* A client of the OAuth server as a value, read from an OAuthClient or from a service account.
 *
 * A service account is a client by its annotations (OpenShift, "Service Accounts as OAuth
 * Clients"): static redirect URIs, and references to routes, which are resolved by what the caller
 * knows of routes.  Pure. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "wire/json.h"

#define OAUTH_SA_CHALLENGES "serviceaccounts.openshift.io/oauth-want-challenges"
#define OAUTH_SA_URI_PREFIX "serviceaccounts.openshift.io/oauth-redirecturi."
#define OAUTH_SA_REFERENCE_PREFIX "serviceaccounts.openshift.io/oauth-redirectreference."

enum oauth_grant_method { OAUTH_GRANT_AUTO, OAUTH_GRANT_PROMPT, OAUTH_GRANT_DENY };

struct oauth_client {
    char *name;
    char **redirects; /* NULL at the end; never NULL itself. */
    bool challenges;
    enum oauth_grant_method grant;
    struct json *restrictions; /* scopeRestrictions; NULL or empty: none. */
    struct json *secrets;      /* Texts; empty: the client is public. */
    bool has_max_age, has_inactivity;
    int64_t max_age_s, inactivity_s;
    /* The service account's; NULL: the client is an OAuthClient. */
    char *namespace, *account;
};
void oauth_client_done(struct oauth_client *c);
static inline UNUSED void oauth_client_donep(struct oauth_client *c)
{
    oauth_client_done(c);
}

/* Reads an OAuthClient; 'method' is that of one without grantMethod. */
void oauth_client_read(const struct json *obj, enum oauth_grant_method method,
                       struct oauth_client *ret);

/* One admitted ingress of a route: the host, the path ("" or "/x"), and whether it has TLS. */
struct oauth_route_ingress {
    char *host, *path;
    bool tls;
};
/* Fills 'ret' with the admitted ingresses of a route, at most 'max', and returns their number; of a
 * route without one, with its path and an empty host, for the annotation to fill in.  Negative: the
 * route does not exist.  Texts are owned by the caller. */
typedef int oauth_route_fn(void *ctx, const char *namespace, const char *name,
                           struct oauth_route_ingress *ret, size_t max);
#define OAUTH_INGRESS_MAX 16

/* Reads the service account 'obj' as a client.  '*problems' (may be NULL) gets one sentence for each annotation that gives no redirect URI.  -EINVAL: there is no redirect URI, so
 * that it is no client. */
int oauth_client_read_account(const struct json *obj, enum oauth_grant_method method,
                              oauth_route_fn *routes, void *ctx, struct oauth_client *ret,
                              struct strbuf *problems);

/* Whether the client may ask for 'scopes' (an array of valid scopes).  -EACCES: not for the one that
 * the error names. */
int oauth_client_check_scopes(const struct oauth_client *c, const struct json *scopes,
                              struct err *e);
/* Whether 'secret' is one of the client's, in constant time; a public client has none and needs
 * none. */
bool oauth_client_accepts_secret(const struct oauth_client *c, const char *secret);
