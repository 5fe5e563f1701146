/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the OAuth server, and a request under way: shared by its parts. */
#pragma once

#include "apiserver/oauth/oauth.h"

#include "apiserver/access/audit.h"
#include "apiserver/cache/subscriber.h"
#include "apiserver/request/server_priv.h"
#include "identity/provider.h"
#include "oauth/client.h"
#include "oauth/page.h"
#include "oauth/params.h"
#include "oauth/request.h"
#include "oauth/seal.h"
#include "oauth/session.h"
#include "oauth/throttle.h"
#include "oauth/token.h"

#define USER_GROUP "user.openshift.io"
#define BROWSER_CLIENT "openshift-browser-client"

enum mapping_method { MAP_CLAIM, MAP_ADD, MAP_GENERATE, MAP_LOOKUP };

struct oauth_provider {
    char *name;
    bool challenge, login;
    enum mapping_method method;
    struct identity_provider *provider;
};

struct oauth_server {
    struct apiserver *a;
    char *issuer, *asset_url, *session_name;
    bool always_select;
    enum oauth_grant_method grant, sa_grant;
    unsigned session_s, code_s, token_s, inactivity_s;
    struct oauth_provider *providers;
    size_t n_providers;
    struct template *pages[PAGE_MAX];
    struct seal_ring ring; /* Keys of sessionSecretsFile, or of the cluster. */
    bool ring_is_ours;     /* Keys are those of the cluster's Secret. */
    bool making_key;
    struct loop_timer *settle; /* Makes the cluster's own clients. */
    bool settling;             /* One of them is being written. */
    struct cache_subscriber subscriber, code_subscriber;
    struct smap codes; /* Names of tokens, by the name of the code that they were made of. */
    struct throttle users, addresses; /* Delays after wrong passwords. */
    unsigned waiting;                 /* Logins that wait for their delay. */
    uint64_t events_ms;               /* Events since then: 'n_events'. */
    unsigned n_events;
    struct list requests;
};

/* A request under way.  It answers its exchange once and is freed then. */
struct oauth_request {
    struct list node;
    struct oauth_server *s;
    struct http_exchange *x;
    struct oauth_params params; /* Parameters of the query, or of the form that was posted. */
    struct audit_event *audit;
    char audit_id[AUDIT_ID_MAX + 1];
    struct attributes attributes;
    /* The person, once known. */
    char *user, *uid;
    /* A login under way. */
    char *username, *password;
    size_t provider; /* The index of the provider that is asked. */
    bool form;       /* The login is a form's, else Basic's. */
    struct identity_attempt *attempt;
    struct loop_timer *timer;
    struct identity id;
    char *provider_name; /* The provider that proved 'id', and its method. */
    enum mapping_method method;
    unsigned tries;
    bool failed; /* A provider could not decide. */
    void (*login_done)(struct oauth_request *f, const char *error);
    char *then; /* Where a login at a provider continues. */
    /* An authorization under way. */
    struct oauth_client client;
    struct oauth_authorization auth;
    /* A token under way. */
    struct oauth_exchange exchange;
    char token[OAUTH_TOKEN_TEXT_SIZE]; /* Erased with the flow. */
    char *scope;
    int64_t token_s;
    bool shows; /* The token is for a page and not for a client. */
    char csrf[OAUTH_CSRF_SIZE + 1];
};

/* ---- web.c: answers ---- */

void web_end(struct oauth_request *f);
/* Sets the headers of all answers; 'origin' (NULL: none) may get the answer to a form as well. */
void web_headers(struct oauth_request *f, const char *origin);
/* Each answers and frees the request. */
void web_redirect(struct oauth_request *f, const char *url);
void web_text(struct oauth_request *f, int status, const char *text);
void web_json(struct oauth_request *f, int status, const struct strbuf *body);
void web_page(struct oauth_request *f, int status, enum page p, const struct json *data,
              const char *origin);
/* The error page with the fixed text of 'code'. */
void web_error(struct oauth_request *f, int status, const char *code);
/* Sets the CSRF cookie if the browser has none; f->csrf has its value afterwards. */
void web_csrf(struct oauth_request *f);
/* The address of the client, without its port; owned. */
char *web_address(const struct oauth_request *f);
/* Whether a POST comes from a form of this server: cookie, field, Origin and Sec-Fetch-Site. */
bool web_is_own_form(struct oauth_request *f);
void web_set_cookie(struct oauth_request *f, const char *name, const char *value, const char *path,
                    int64_t max_age_s);
/* An object with .Names and .Values; 'pairs' are template name, field name, value; NULL ends. */
struct json *web_fields(const char *const (*pairs)[3]);

/* ---- session.c ---- */

/* Reads the session of the browser into f->user and f->uid; false: there is none. */
bool session_read(struct oauth_request *f);
void session_begin(struct oauth_request *f);
void session_end(struct oauth_request *f);
/* Makes or reads the keys of the cluster; false: they are not there yet, ask again later. */
bool session_keys(struct oauth_server *s);

/* ---- objects.c ---- */

struct cache_kind *objects_kind(const struct oauth_server *s, const char *group,
                                const char *plural);
/* The live object, owned; NULL: there is none.  '*ret_base' (may be NULL) is borrowed. */
struct json *objects_find(const struct oauth_server *s, const char *group, const char *plural,
                          const char *key, struct object **ret_base);
/* Completes a new object of the kind. */
struct json *objects_new(const struct cache_kind *ck, const char *name);
/* Stores 'obj' under 'key'; 'base' NULL: it must not exist. */
void objects_put(struct oauth_server *s, struct cache_kind *ck, const char *key,
                 const struct json *obj, const struct object *base, const struct store_terms *terms,
                 store_done_fn *done, void *ctx);
/* The client with this id: an OAuthClient or a service account.  -ENOENT, -EINVAL. */
int objects_client(const struct oauth_server *s, const char *id, struct oauth_client *ret,
                   struct strbuf *problems);
/* The same for a request for authorization: an account that can be no client gets an Event. */
int objects_client_asks(struct oauth_server *s, const char *id, struct oauth_client *ret,
                        struct strbuf *problems);
/* Whether 'secret' is that of the client: one of its own, or a token of the account. */
bool objects_secret_is_right(const struct oauth_server *s, const struct oauth_client *c,
                             const char *secret);

/* ---- events.c ---- */

/* Notes in an Event that the service account has no redirect URI, for the reason 'why'. */
void events_no_redirects(struct oauth_server *s, const struct json *account, const char *why);

/* ---- clients.c ---- */

/* Makes the clients that every cluster has, each time that the cache is loaded. */
void clients_begin(struct oauth_server *s);
/* The configuration, which they depend on, has changed. */
void clients_changed(struct oauth_server *s);
void clients_end(struct oauth_server *s);

/* ---- codes.c ---- */

/* Begins to follow the tokens. */
void codes_begin(struct oauth_server *s);
void codes_end(struct oauth_server *s);
/* The name of the token that was made of the code with this name, borrowed; NULL: there is none. */
const char *codes_token(const struct oauth_server *s, const char *code);

/* ---- map.c ---- */

/* Takes the identity that the provider at f->provider has proved. */
void map_take(struct oauth_request *f, struct identity *id);
/* Finds or makes the user of f->id: calls 'done' with f->user and
 * f->uid set, or with a code of page_error_text.  'done' may be called at once. */
typedef void map_fn(struct oauth_request *f, const char *error);
void map_identity(struct oauth_request *f, map_fn *done);

/* ---- groups.c ---- */

/* Makes f->user, whose provider has proved f->id, a member of the groups that it tells and of no
 * others of that provider.  'done' is called as by map_identity, and may be called at once. */
void groups_join(struct oauth_request *f, map_fn *done);

/* ---- login.c ---- */

/* Checks f->username and f->password with the providers from f->provider on; then calls 'done' with
 * NULL, or an error's code. */
void login_check(struct oauth_request *f, map_fn *done);
void login_page(struct oauth_request *f, const char *provider);
void login_submit(struct oauth_request *f, const char *provider);
void login_callback(struct oauth_request *f, const char *provider);
/* Whether a browser without a session is sent to another server at once. */
bool login_leaves_server(const struct oauth_server *s);
/* Sends a browser without a session to log in, and back to 'then'. */
void login_begin(struct oauth_request *f, const char *then);

/* ---- authorize.c ---- */

void authorize_handle(struct oauth_request *f);
void approve_handle(struct oauth_request *f);
/* Appends the origin to which the request for authorization that 'then' is may lead, for a policy;
 * nothing if it leads to no client. */
void authorize_target(const struct oauth_server *s, const char *then, struct strbuf *out);

/* ---- issue.c: codes and tokens ---- */

/* Makes the code or token of f->auth for f->user, and redirects to the client. */
void issue_for_authorization(struct oauth_request *f);
void issue_handle_token(struct oauth_request *f);
void issue_handle_display(struct oauth_request *f);
