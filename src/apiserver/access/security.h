/* SPDX-License-Identifier: Apache-2.0 */
/* Access control: the state that authentication and authorization share, and its view of objects.
 *
 * It follows the cache and decides by the cached objects.  All decisions fail closed: a request
 * that cannot be decided on is refused. The server owns it; everything runs on the loop's
 * thread. */
#pragma once

#include "apiserver/access/audit.h"
#include "apiserver/access/members.h"
#include "apiserver/access/rbac.h"
#include "apiserver/access/satoken.h"
#include "apiserver/apiserver.h"
#include "apiserver/cache/subscriber.h"
#include "net/tls/jws.h"

#define DEFAULT_ISSUER "https://kubernetes.default.svc"

struct security {
    const struct cache *cache;
    bool open;         /* All requests are trusted; there is no authentication. */
    bool always_allow; /* Every authenticated user may do everything. */
    bool anonymous;
    char *loopback_token; /* NULL: none. */
    const struct jws_keys *keys;
    char *issuer;
    struct audit_log *audit;
    struct user_info *master; /* The identity of this process. */
    struct user_info *nobody; /* system:anonymous. */
    struct rbac *rbac;
    struct members *members;
    uint64_t generation;      /* Incremented when a role, binding or group changes. */
    struct smap visible;      /* Cached answers (visible.h), by user and kind; borrowed. */
    struct smap oauth_tokens; /* Records of OAuth tokens (oauth_token.h), by object's name. */
    /* Told of each use of a token that inactivity would end at 'end_ms'; NULL: nothing follows. */
    void (*token_used)(void *ctx, const char *name, int64_t now_ms, int64_t end_ms);
    void *token_used_ctx;
    struct cache_subscriber subscriber;
    const struct cache_kind *roles, *cluster_roles, *role_bindings, *cluster_role_bindings;
    const struct cache_kind *groups, *users;
    const struct cache_kind *tokens; /* OAuthAccessTokens. */
};

/* 'cfg' NULL: all requests are fully trusted. */
struct security *security_new(struct cache *c, const struct apiserver_security *cfg);
struct security *security_free(struct security *s);
/* A role, a binding, a group, or an object that tokens depend on has changed.
 * 'ck' NULL: all objects were loaded anew. */
void security_changed(struct security *s, const struct cache_kind *ck,
                      const struct cache_event *ev);

/* The tree of the object, owned; NULL: it does not exist. */
struct json *security_object(const struct security *s, const char *group, const char *plural,
                             const char *ns, const char *name);
/* Like security_object, but NULL also if the object is being deleted or
 * has another uid ('uid' "" or NULL: any). */
struct json *security_live_object(const struct security *s, const char *plural, const char *ns,
                                  const char *name, const char *uid);
