/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of the registry as the OAuth server reads and writes them. */
#include "apiserver/oauth/oauth_priv.h"

#include "apiserver/access/security.h"
#include "apiserver/access/token.h"
#include "apiserver/access/user.h"
#include "apiserver/cache/object.h"
#include "base/timeutil.h"

struct cache_kind *objects_kind(const struct oauth_server *s, const char *group, const char *plural)
{
    return cache_find(&s->a->cache, api_kind_find(group, "v1", plural));
}

struct json *objects_find(const struct oauth_server *s, const char *group, const char *plural,
                          const char *key, struct object **ret_base)
{
    const struct cache_kind *ck = objects_kind(s, group, plural);
    struct object *o = ck ? keyset_get(&ck->objects, key) : NULL;
    struct json *obj = o ? object_parse(o) : NULL;
    if (ret_base) {
        *ret_base = o;
    }
    return obj;
}

struct json *objects_new(const struct cache_kind *ck, const char *name)
{
    struct json *obj = json_object();
    json_set_string(json_ensure_object(obj, "metadata"), "name", name);
    object_prepare_create(ck->kind, obj, time_wall_ms());
    return obj;
}

void objects_put(struct oauth_server *s, struct cache_kind *ck, const char *key,
                 const struct json *obj, const struct object *base, const struct store_terms *terms,
                 store_done_fn *done, void *ctx)
{
    CLEANUP_FREE char *store_key = cache_store_key(ck, key);
    CLEANUP(blob_unref) struct blob *value = NULL;
    /* The server's own objects are nested no deeper than their kinds. */
    (void) object_encode(ck->kind, obj, &value);
    store_write(s->a->store, store_key, value, base ? base->revision : STORE_ABSENT, terms, done,
                ctx);
}

/* ---- clients ---- */

static bool is_admitted(const struct json *ingress)
{
    const struct json *condition;
    JSON_FOREACH (condition, json_get(ingress, "conditions")) {
        if (streq(json_get_text(condition, "type"), "Admitted")) {
            return streq(json_get_text(condition, "status"), "True");
        }
    }
    return false;
}

/* An oauth_route_fn: the hosts under which routers serve the route. */
static int find_route(void *ctx, const char *ns, const char *name, struct oauth_route_ingress *ret,
                      size_t max)
{
    const struct oauth_server *s = ctx;
    CLEANUP_FREE char *key = cache_key(ns, name);
    CLEANUP(json_free)
    struct json *obj = objects_find(s, "route.openshift.io", "routes", key, NULL);
    const struct json *spec = json_get(obj, "spec"), *tls = json_get(spec, "tls"), *item;
    int n = 0;
    if (!obj || json_path(obj, "metadata", "deletionTimestamp", NULL)) {
        return -ENOENT;
    }
    const struct oauth_route_ingress base = {.tls = tls && !json_is(tls, JSON_NULL)};
    JSON_FOREACH (item, json_path(obj, "status", "ingress", NULL)) {
        if ((size_t) n < max && is_admitted(item) && *json_get_text(item, "host")) {
            ret[n] = base;
            ret[n].host = xstrdup(json_get_text(item, "host"));
            ret[n++].path = xstrdup(json_get_text(spec, "path"));
        }
    }
    if (n == 0) {
        ret[n] = base;
        ret[n].host = xstrdup("");
        ret[n++].path = xstrdup(json_get_text(spec, "path"));
    }
    return n;
}

/* 'asks' (NULL: not): gets an Event if the account is no client. */
static int find_account(const struct oauth_server *s, struct oauth_server *asks, const char *ns,
                        const char *name, struct oauth_client *ret, struct strbuf *problems)
{
    CLEANUP_FREE char *key = cache_key(ns, name);
    CLEANUP(json_free) struct json *obj = objects_find(s, "", "serviceaccounts", key, NULL);
    if (!obj || json_path(obj, "metadata", "deletionTimestamp", NULL)) {
        return -ENOENT;
    }
    int r = oauth_client_read_account(obj, s->sa_grant, find_route, (void *) s, ret, problems);
    if (r < 0 && asks) {
        events_no_redirects(asks, obj, strbuf_cstr(problems));
    }
    return r;
}

int objects_client_asks(struct oauth_server *s, const char *id, struct oauth_client *ret,
                        struct strbuf *problems)
{
    CLEANUP_FREE char *ns = NULL, *name = NULL;
    return user_parse_service_account(id, &ns, &name) ? find_account(s, s, ns, name, ret, problems)
                                                      : objects_client(s, id, ret, problems);
}

int objects_client(const struct oauth_server *s, const char *id, struct oauth_client *ret,
                   struct strbuf *problems)
{
    CLEANUP_FREE char *ns = NULL, *name = NULL;
    if (user_parse_service_account(id, &ns, &name)) {
        return find_account(s, NULL, ns, name, ret, problems);
    }
    CLEANUP(json_free) struct json *obj = objects_find(s, OAUTH_GROUP, "oauthclients", id, NULL);
    if (!obj || json_path(obj, "metadata", "deletionTimestamp", NULL)) {
        return -ENOENT;
    }
    oauth_client_read(obj, s->grant, ret);
    return 0;
}

bool objects_secret_is_right(const struct oauth_server *s, const struct oauth_client *c,
                             const char *secret)
{
    CLEANUP(user_unref) struct user_info *u = NULL;
    struct err e = {0};
    if (!c->account) {
        return oauth_client_accepts_secret(c, secret);
    }
    return *secret &&
           token_authenticate(s->a->security, secret, NULL, time_wall_ms(), &u, NULL, &e) == 0 &&
           streq(u->name, c->name);
}
