/* SPDX-License-Identifier: Apache-2.0 */
/* Requests for authorization and for tokens, judged as values (RFC 6749, sections 3 to 5).
 *
 * A request for authorization is judged in the order that decides where an error may be shown: while
 * client and redirect URI are not certain, on a page of this server; from then on, by a redirect to
 * the client.  Pure. */
#pragma once

#include "oauth/client.h"
#include "oauth/params.h"

/* Errors of RFC 6749; the texts that clients get. */
enum oauth_error {
    OAUTH_OK,
    OAUTH_INVALID_REQUEST,
    OAUTH_UNAUTHORIZED_CLIENT,
    OAUTH_ACCESS_DENIED,
    OAUTH_UNSUPPORTED_RESPONSE_TYPE,
    OAUTH_INVALID_SCOPE,
    OAUTH_SERVER_ERROR,
    OAUTH_TEMPORARILY_UNAVAILABLE,
    OAUTH_INVALID_CLIENT,
    OAUTH_INVALID_GRANT,
    OAUTH_UNSUPPORTED_GRANT_TYPE,
    OAUTH_ERROR_MAX,
};
extern const char *const oauth_error_names[OAUTH_ERROR_MAX];
/* The value of that name, such as a provider sends; OAUTH_ERROR_MAX: it is unknown. */
enum oauth_error oauth_error_find(const char *name);

struct oauth_authorization {
    char *redirect;        /* Where the browser goes; NULL: it is not certain. */
    char *state;           /* Sent back as it came; NULL: none. */
    bool token;            /* response_type token, else code. */
    struct json *scopes;   /* Valid scopes; user:full when the request has none. */
    char *challenge;       /* PKCE; NULL: none. */
    const char *method;    /* "plain" or "S256"; constant; NULL without a challenge. */
    enum oauth_error fail; /* The request is refused; 'why' says the reason. */
    char *why;
};
void oauth_authorization_done(struct oauth_authorization *a);
static inline UNUSED void oauth_authorization_donep(struct oauth_authorization *a)
{
    oauth_authorization_done(a);
}
/* Judges the request of 'client'. */
void oauth_authorization_read(const struct oauth_params *p, const struct oauth_client *client,
                              struct oauth_authorization *ret);

/* Appends the URL of the client's redirect with an error; 'why' may be NULL.  An implicit request
 * gets it in the fragment (RFC 6749, 4.2.2.1), if 'in_fragment'. */
void oauth_redirect_error(struct strbuf *url, const char *redirect, const char *state,
                          enum oauth_error error, const char *why, bool in_fragment);
/* With a code, in the query. */
void oauth_redirect_code(struct strbuf *url, const char *redirect, const char *state,
                         const char *code);
/* With a token, in the fragment, in the order that the seeds show. */
void oauth_redirect_token(struct strbuf *url, const char *redirect, const char *state,
                          const char *token, int64_t expires_s, const char *scope);

/* The decision whether a user lets a client act. */
enum oauth_grant {
    OAUTH_GRANTED,
    OAUTH_GRANT_ASK,    /* Ask for 'missing'. */
    OAUTH_GRANT_REFUSE, /* The client's method is deny, and the user has not allowed it before. */
};
/* 'allowed' is the OAuthClientAuthorization of user and client; NULL: there is none.  It counts only
 * for the user with 'uid'.  '*ret_missing' is owned: the scopes that are still to be allowed. */
enum oauth_grant oauth_grant_decide(const struct oauth_client *client, const struct json *allowed,
                                    const char *uid, const struct json *scopes,
                                    struct json **ret_missing);

/* A request for a token. */
struct oauth_exchange {
    const char *code, *redirect, *verifier; /* Point into the parameters; "" or NULL: absent. */
    char *client, *secret;                  /* Of the form or of Basic; secret "": none. */
    enum oauth_error fail;
    const char *why; /* Constant. */
};
void oauth_exchange_done(struct oauth_exchange *x);
static inline UNUSED void oauth_exchange_donep(struct oauth_exchange *x)
{
    oauth_exchange_done(x);
}
/* 'authorization' is the header (NULL: none). */
void oauth_exchange_read(const struct oauth_params *p, const char *authorization,
                         struct oauth_exchange *ret);
/* Whether the OAuthAuthorizeToken 'code' may be exchanged: it belongs to the client and the redirect
 * URI, has not ended at 'now_ms', and its challenge is proved.  Otherwise an error with '*ret_why',
 * which is constant. */
enum oauth_error oauth_exchange_check_code(const struct oauth_exchange *x, const struct json *code,
                                           int64_t now_ms, const char **ret_why);
/* Appends the answer with the token, or with the error. */
void oauth_answer_token(struct strbuf *out, const char *token, int64_t expires_s,
                        const char *scope);
void oauth_answer_error(struct strbuf *out, enum oauth_error error, const char *why);

/* The credentials of a header "Basic BASE64": user and password, owned.  'form': both are
 * form-encoded, as those of clients are (RFC 6749, 2.3.1).  -ENOENT: the header is absent or of
 * another scheme; -EINVAL: it is malformed. */
int oauth_basic_parse(const char *header, bool form, char **ret_user, char **ret_password);
