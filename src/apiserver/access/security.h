/* SPDX-License-Identifier: Apache-2.0 */
/* Access control: the state that authentication and authorization share, and its view of objects.
 *
 * It is fed by the cache and decides from what the cache has.  All decisions fail closed: what
 * cannot be decided is refused. The server owns it; everything runs on the loop's thread. */
#pragma once

#include "apiserver/access/audit.h"
#include "apiserver/access/rbac.h"
#include "apiserver/access/satoken.h"
#include "apiserver/apiserver.h"
#include "apiserver/cache/subscriber.h"
#include "net/tls/jws.h"

#define DEFAULT_ISSUER "https://kubernetes.default.svc"

struct security {
    const struct cache *cache;
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
    uint64_t generation; /* Counts the changes of roles and bindings. */
    struct smap visible; /* Kept answers (visible.h), by user and kind; borrowed. */
    struct cache_subscriber subscriber;
    const struct cache_kind *roles, *cluster_roles, *role_bindings, *cluster_role_bindings;
};

/* 'cfg' NULL: whoever reaches the server is trusted fully. */
struct security *security_new(struct cache *c, const struct apiserver_security *cfg);
struct security *security_free(struct security *s);
/* Objects changed: roles, bindings and what tokens hang on.  'ck' NULL: everything was loaded
 * anew. */
void security_changed(struct security *s, const struct cache_kind *ck,
                      const struct cache_event *ev);

/* The tree of the object, owned; NULL: there is none. */
struct json *security_object(const struct security *s, const char *group, const char *plural,
                             const char *ns, const char *name);
/* As above, when it is there, is not being deleted, and has that uid ("" or NULL: any). */
struct json *security_live_object(const struct security *s, const char *plural, const char *ns,
                                  const char *name, const char *uid);
