/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/access/security.h"

#include "apiserver/access/oauth_token.h"

struct json *security_object(const struct security *s, const char *group, const char *plural,
                             const char *ns, const char *name)
{
    const struct api_kind *k = api_kind_find(group, "v1", plural);
    const struct cache_kind *ck = k ? cache_find(s->cache, k) : NULL;
    CLEANUP_FREE char *key = cache_key(ns, name);
    const struct object *o = ck ? keyset_get(&ck->objects, key) : NULL;
    return o ? object_parse(o) : NULL;
}

struct json *security_live_object(const struct security *s, const char *plural, const char *ns,
                                  const char *name, const char *uid)
{
    CLEANUP(json_free) struct json *o = security_object(s, "", plural, ns, name);
    const char *has = json_path_string(o, "metadata", "uid", NULL);
    if (!o || json_path(o, "metadata", "deletionTimestamp", NULL) ||
        (uid && *uid && !streq_null(has, uid))) {
        return NULL;
    }
    return TAKE(o);
}

/* ---- objects of RBAC, and groups ---- */

static void feed(struct security *s, const struct cache_kind *ck, const struct object *o, bool gone)
{
    if (ck == s->groups) {
        CLEANUP(json_free) struct json *group = gone ? NULL : object_parse(o);
        members_set_group(s->members, o->key, group);
        return;
    }
    bool role = ck == s->roles || ck == s->cluster_roles;
    const char *slash = ck->kind->namespaced ? strchr(o->key, '/') : NULL;
    CLEANUP_FREE char *ns = slash ? xstrndup(o->key, (size_t) (slash - o->key)) : NULL;
    CLEANUP(json_free) struct json *obj = gone ? NULL : object_parse(o);
    (role ? rbac_set_role : rbac_set_binding)(s->rbac, ns, slash ? slash + 1 : o->key, obj);
}

/* 'ck' NULL: the kind is not served. */
static void feed_all(struct security *s, const struct cache_kind *ck)
{
    if (!ck) {
        return;
    }
    struct keyset_pos pos = keyset_seek(&ck->objects, "");
    const struct object *o;
    while ((o = keyset_next(&ck->objects, &pos))) {
        feed(s, ck, o, false);
    }
}

void security_changed(struct security *s, const struct cache_kind *ck, const struct cache_event *ev)
{
    if (!ck) {
        s->generation++;
        rbac_free(s->rbac);
        s->rbac = rbac_new();
        feed_all(s, s->roles);
        feed_all(s, s->cluster_roles);
        feed_all(s, s->role_bindings);
        feed_all(s, s->cluster_role_bindings);
        members_free(s->members);
        s->members = members_new();
        feed_all(s, s->groups);
        smap_clear(&s->oauth_tokens);
    } else if (ck == s->tokens && !ev->new) {
        oauth_token_forget(s, ev->old->key);
    } else if (ck == s->roles || ck == s->cluster_roles || ck == s->role_bindings ||
               ck == s->cluster_role_bindings || ck == s->groups) {
        s->generation++;
        feed(s, ck, ev->new ? ev->new : ev->old, !ev->new);
    }
}

/* ---- creation and end ---- */

static void on_changed(void *ctx, struct cache_kind *ck, const struct cache_event *ev)
{
    security_changed(ctx, ck, ev);
}

static void on_loaded(void *ctx)
{
    security_changed(ctx, NULL, NULL);
}

struct security *security_new(struct cache *c, const struct apiserver_security *cfg)
{
    static const struct apiserver_security trusting = {.always_allow = true};
    static const char rbac[] = "rbac.authorization.k8s.io";
    struct security *s = NEW(struct security);
    s->cache = c;
    s->open = !cfg;
    cfg = cfg ? cfg : &trusting;
    s->always_allow = cfg->always_allow;
    s->anonymous = cfg->anonymous;
    s->loopback_token = cfg->loopback_token ? xstrdup(cfg->loopback_token) : NULL;
    s->keys = cfg->keys;
    s->issuer = xstrdup(cfg->issuer ? cfg->issuer : DEFAULT_ISSUER);
    s->audit = cfg->audit;
    s->rbac = rbac_new();
    s->members = members_new();
    smap_init(&s->visible, NULL);
    smap_init(&s->oauth_tokens, oauth_token_kept_free);
    s->master = user_new("system:admin");
    user_add_group(s->master, GROUP_MASTERS);
    user_add_group(s->master, GROUP_AUTHENTICATED);
    s->nobody = user_new(USER_ANONYMOUS);
    user_add_group(s->nobody, GROUP_UNAUTHENTICATED);
    s->roles = cache_find(c, api_kind_find(rbac, "v1", "roles"));
    s->cluster_roles = cache_find(c, api_kind_find(rbac, "v1", "clusterroles"));
    s->role_bindings = cache_find(c, api_kind_find(rbac, "v1", "rolebindings"));
    s->cluster_role_bindings = cache_find(c, api_kind_find(rbac, "v1", "clusterrolebindings"));
    s->groups = cache_find(c, api_kind_find("user.openshift.io", "v1", "groups"));
    s->users = cache_find(c, api_kind_find("user.openshift.io", "v1", "users"));
    s->tokens = cache_find(c, api_kind_find("oauth.openshift.io", "v1", "oauthaccesstokens"));
    s->subscriber = (struct cache_subscriber){
        .rank = CACHE_RANK_ACCESS, .ctx = s, .changed = on_changed, .loaded = on_loaded};
    cache_subscribe(c, &s->subscriber);
    return s;
}

struct security *security_free(struct security *s)
{
    if (s) {
        if (s->loopback_token) {
            explicit_bzero(s->loopback_token, strlen(s->loopback_token));
        }
        cache_unsubscribe(&s->subscriber);
        free(s->loopback_token);
        free(s->issuer);
        rbac_free(s->rbac);
        members_free(s->members);
        smap_done(&s->visible);
        smap_done(&s->oauth_tokens);
        user_unref(s->master);
        user_unref(s->nobody);
        free(s);
    }
    return NULL;
}
