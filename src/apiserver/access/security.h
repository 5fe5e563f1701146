/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the filter chain: what its parts share.  Internal to src/apiserver; see filter.h for the
 * whole. */
#pragma once

#include "apiserver/access/audit.h"
#include "apiserver/access/filter.h"
#include "apiserver/access/rbac.h"
#include "apiserver/access/satoken.h"
#include "net/tls/jws.h"

#define DEFAULT_ISSUER "https://kubernetes.default.svc"

struct security {
    struct apiserver *server;
    bool open;         /* Whoever reaches the server is trusted. */
    bool always_allow; /* Whoever is known may do everything. */
    bool anonymous;
    char *loopback_token; /* NULL: none. */
    const struct jws_keys *keys;
    char *issuer;
    struct audit_log *audit;
    struct user_info *master; /* Ourselves. */
    struct user_info *nobody; /* system:anonymous. */
    struct rbac *rbac;
    struct cache_subscriber subscriber;
    const struct cache_kind *roles, *cluster_roles, *role_bindings, *cluster_role_bindings;
};

/* ---- objects ---- */

/* The tree of the object, owned; NULL: there is none. */
struct json *security_object(const struct security *s, const char *group, const char *plural,
                             const char *ns, const char *name);
/* As above, when it is there, is not being deleted, and has that uid ("" or NULL: any). */
struct json *security_live_object(const struct security *s, const char *plural, const char *ns,
                                  const char *name, const char *uid);

/* ---- authn.c ---- */

/* The token of an Authorization header: 0 with '*ret' in 'header'; -ENOENT: no header; -EINVAL:
 * another scheme, or no token. */
int authn_bearer(const char *header, const char **ret);
/* Who makes the request, a reference.  -EPERM: a credential is wrong, or there is none and
 * anonymous requests are not taken; -EAGAIN: it cannot be known yet. */
int authn_request(struct security *s, const struct http_exchange *x, struct user_info **ret,
                  struct err *e);
/* Whether two texts are the same, in a time that depends on their sizes only. */
bool secret_equal(const char *a, size_t a_size, const char *b, size_t b_size);

/* ---- token.c ---- */

/* Whom 'token' belongs to.  It must be for one of 'audiences' (an array of strings; NULL: for us);
 * 'ret_audiences' (may be NULL) gets those that it is for.  -EPERM says what is wrong with it. */
int token_authenticate(struct security *s, const char *token, const struct json *audiences,
                       int64_t now_ms, struct user_info **ret, struct json **ret_audiences,
                       struct err *e);
/* What a token hangs on beside its account. */
struct token_binding {
    const char *kind, *name, *uid; /* "Pod", "Secret" or "Node"; 'kind' NULL: nothing. */
    const char *node, *node_uid;   /* Of a bound pod; NULL: none. */
};
/* A token (owned) of the service account 'sa' for 'audiences' (an array), good for 'seconds'. */
char *token_issue(const struct security *s, const struct json *sa, const struct json *audiences,
                  const struct token_binding *b, int64_t seconds, int64_t now_ms);

/* ---- authz.c ---- */

/* Whether 'u' may do it; 'why' (may be NULL) gets a reason when there is one to tell. */
bool authz_allows(struct security *s, const struct user_info *u, const struct attributes *a,
                  struct strbuf *why);
/* For checks beside the request's own: strings NULL or "" when absent. */
bool authz_may(struct security *s, const struct user_info *u, const char *verb, const char *group,
               const char *resource, const char *ns, const char *name);
/* Whether the node may do it by what is its own. */
bool node_allows(struct security *s, const char *node, const struct attributes *a);
/* 403 for 'u' (the asking user or the one in front of an impersonation), in Kubernetes' words. */
void outcome_forbidden(struct outcome *outcome, const struct user_info *u,
                       const struct attributes *a, const char *why);

/* ---- impersonate.c ---- */

/* Changes q->user to whom the request's headers name.  -EACCES: not. */
int impersonate(struct request *q, struct outcome *outcome);

/* ---- review.c ---- */

/* Answers a kind that is only asked: reviews; and serviceaccounts/token. */
void handle_review(struct request *q, struct outcome *outcome);
/* The paths by which others verify our tokens (OpenID Connect Discovery 1.0); false: another
 * path. */
bool handle_issuer(struct request *q, struct outcome *outcome);
