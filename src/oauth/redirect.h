/* SPDX-License-Identifier: Apache-2.0 */
/* Where the OAuth server may send a browser: to redirect URIs of clients (RFC 6749, 3.1.2), and to
 * paths of its own ('then').
 *
 * Every rule here exists because an open redirect gives codes and tokens away.  URIs are compared
 * by their parts and never as prefixes of text.  Pure. */
#pragma once

#include "base/err.h"
#include "base/str.h"

/* The parts of an absolute URI "scheme://authority/path?query"; all are owned. */
struct oauth_uri {
    char *scheme; /* In lower case. */
    char *host;   /* In lower case; an IPv6 address has its brackets; "": none. */
    char *port;   /* Decimal digits; the port of the scheme when the URI names none; "": none. */
    char *path;   /* As it was written; "/" when an authority has none. */
    char *query;  /* NULL: there is none. */
    bool opaque;  /* There is no authority ("urn:ietf:wg:oauth:2.0:oob"). */
};
/* -EINVAL with the reason: not absolute, a user name or a fragment, a segment "." or ".." (also
 * escaped), a backslash, a blank or a control character, or a scheme that runs code. */
int oauth_uri_parse(const char *text, struct oauth_uri *ret, struct err *e);
void oauth_uri_done(struct oauth_uri *u);
static inline UNUSED void oauth_uri_donep(struct oauth_uri *u)
{
    oauth_uri_done(u);
}

/* Whether the client that registered 'registered' may be sent to 'given': scheme, host and port are
 * equal, and the path is equal or below.  A registered "http://127.0.0.1/..." or "http://[::1]/..."
 * matches every port (RFC 8252, 7.3).  A URI without an authority must be equal as a text. */
bool oauth_redirect_matches(const char *registered, const char *given);
/* The same for a NULL-terminated list. */
bool oauth_redirect_is_allowed(char *const *registered, const char *given);

/* The origin of a URI with http or https, for a Content-Security-Policy: "https://host:port",
 * appended to 'out'; other URIs, and IPv6 addresses, which a policy cannot have (Content Security
 * Policy Level 3, 2.3.1), give their scheme and a colon. */
void oauth_redirect_origin(const struct oauth_uri *u, struct strbuf *out);

/* Whether 'then' is a path of this server: it begins with one "/", and has neither a backslash nor
 * control characters nor a "//" or "/\" at its beginning. */
bool oauth_then_is_local(const char *then);
/* Whether a logout may end at 'then': a local path, or a URI at or below 'asset' (NULL: none). */
bool oauth_then_is_for_logout(const char *then, const char *asset);
