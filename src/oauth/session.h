/* SPDX-License-Identifier: Apache-2.0 */
/* What the cookies of the OAuth server contain: the session of a browser that has logged in, and
 * the secrets of a login that has gone to another provider.  The texts are sealed (seal.h).  Pure.
 *
 * A session lasts for one authorization and a few minutes at most.  It belongs to one CSRF token of
 * the browser: a session cookie that an attacker plants into another browser is no session there. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "wire/json.h"

struct oauth_session {
    char *user, *uid; /* The User object. */
    char *csrf;       /* The CSRF token of the browser that logged in. */
    int64_t end_s;    /* Seconds since 1970. */
};
void oauth_session_done(struct oauth_session *s);
static inline UNUSED void oauth_session_donep(struct oauth_session *s)
{
    oauth_session_done(s);
}
/* The text of the session, owned. */
char *oauth_session_write(const struct oauth_session *s);
/* -EINVAL: it is no session; -ESTALE: it has ended before 'now_s'. */
int oauth_session_read(const char *text, int64_t now_s, struct oauth_session *ret);

/* A login that has gone to a provider with pages of its own. */
struct oauth_errand {
    char *provider;
    char *state, *nonce, *verifier; /* struct identity_redirect. */
    char *then;                     /* The local path to continue at. */
    int64_t end_s;
};
void oauth_errand_done(struct oauth_errand *s);
static inline UNUSED void oauth_errand_donep(struct oauth_errand *s)
{
    oauth_errand_done(s);
}
char *oauth_errand_write(const struct oauth_errand *s);
int oauth_errand_read(const char *text, int64_t now_s, struct oauth_errand *ret);

/* The value of the cookie 'name' in the header Cookie (NULL: none), owned; NULL: it is absent, or
 * there twice with different values: a cookie of that name that another host of the domain has set
 * cannot be told from ours (RFC 6265, 8.6). */
char *oauth_cookie_find(const char *header, const char *name);
/* Whether 's' has the form of a CSRF token: 43 characters of base64url. */
bool oauth_csrf_has_form(const char *s);
#define OAUTH_CSRF_SIZE 43
/* A new CSRF token: 256 random bits. */
void oauth_csrf_make(char ret[OAUTH_CSRF_SIZE + 1]);
/* Compares two secrets in a time that depends on their sizes only; NULL equals nothing. */
bool oauth_secret_equal(const char *a, const char *b);
