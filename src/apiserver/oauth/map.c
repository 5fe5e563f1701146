/* SPDX-License-Identifier: Apache-2.0 */
/* From an identity to a user: the mapping methods claim, add, generate and lookup.
 *
 * A mapping is made in one transaction: identity and user are written together, or neither is, so
 * that no half of it is left whichever master fails.  A transaction that meets another write is
 * computed again, three times in all. */
#include "apiserver/oauth/oauth_priv.h"

#include "api/kinds.h"
#include "apiserver/cache/object.h"
#include "base/base64.h"
#include "base/log.h"

LOG_MODULE("oauth");

#define MAX_TRIES 3
#define MAX_NAMES 100

struct mapping {
    struct oauth_request *f;
    map_fn *done;
    char *user, *uid; /* Of the user that is written. */
};

static void mapping_free(struct mapping *m)
{
    free(m->user);
    free(m->uid);
    free(m);
}

static void finish(struct mapping *m, const char *error)
{
    struct oauth_request *f = m->f;
    map_fn *done = m->done;
    mapping_free(m);
    done(f, error);
}

static void proved(struct mapping *m, const char *user, const char *uid)
{
    struct oauth_request *f = m->f;
    free(f->user);
    free(f->uid);
    f->user = xstrdup(user);
    f->uid = xstrdup(uid);
    map_fn *done = m->done;
    mapping_free(m);
    groups_join(f, done);
}

/* 's' as a part of a name: as it is, or the base64 of what cannot be one. */
static char *name_of(const char *s)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    if (!str_has_prefix(s, "b64:") && !user_check_name(s)) {
        return xstrdup(s);
    }
    base64url_encode(s, strlen(s), &b);
    return xasprintf("b64:%s", strbuf_cstr(&b));
}

static bool lists(const struct json *user, const char *identity)
{
    const struct json *item;
    JSON_FOREACH (item, json_get(user, "identities")) {
        if (streq_null(json_get_string(item), identity)) {
            return true;
        }
    }
    return false;
}

/* An identity that is known must agree with its user three ways. */
static void use_known(struct mapping *m, const struct json *identity, const char *key)
{
    const char *name = json_path_string(identity, "user", "name", NULL);
    const char *uid = json_path_string(identity, "user", "uid", NULL);
    CLEANUP(json_free)
    struct json *user =
        name && *name ? objects_find(m->f->s, USER_GROUP, "users", name, NULL) : NULL;
    if (!user || !uid || !*uid || json_path(user, "metadata", "deletionTimestamp", NULL) ||
        !streq_null(json_path_string(user, "metadata", "uid", NULL), uid) || !lists(user, key)) {
        log_warn("login refused: the identity belongs to no user", "identity=\"%s\"", key);
        finish(m, "mapping_lookup_error");
        return;
    }
    proved(m, name, uid);
}

/* The user that the identity gets: its present object in '*ret' and '*ret_base', both NULL if it is
 * to be made.  NULL: an error's code is in '*ret_error'. */
static char *choose_user(const struct mapping *m, const char *key, struct json **ret,
                         struct object **ret_base, const char **ret_error)
{
    const struct oauth_request *f = m->f;
    enum mapping_method method = f->method;
    const char *wanted = f->id.preferred && *f->id.preferred ? f->id.preferred : f->id.user;
    CLEANUP_FREE char *preferred = name_of(wanted);
    *ret_error = "mapping_lookup_error";
    if (method == MAP_LOOKUP) {
        return NULL;
    }
    *ret_error = "mapping_claim_error";
    for (unsigned i = 1; i <= (method == MAP_GENERATE ? MAX_NAMES : 1u); i++) {
        CLEANUP_FREE char *next = i > 1 ? xasprintf("%s%u", wanted, i) : NULL;
        CLEANUP_FREE char *name = next ? name_of(next) : xstrdup(preferred);
        *ret = objects_find(f->s, USER_GROUP, "users", name, ret_base);
        if (!*ret || !json_count(json_get(*ret, "identities")) || lists(*ret, key) ||
            method == MAP_ADD) {
            return TAKE(name);
        }
        *ret = json_free(*ret);
    }
    return NULL;
}

static void attempt(struct mapping *m);

static void stored(void *ctx, int error, uint64_t revision)
{
    static struct log_limit limit;
    struct mapping *m = ctx;
    if (error == 0) {
        log_info("identity mapped to a user", "user=\"%s\"", m->user);
        proved(m, m->user, m->uid);
    } else if ((error == -EEXIST || error == -ESTALE || error == -ENOENT || error == -EADDRINUSE) &&
               ++m->f->tries < MAX_TRIES) {
        attempt(m);
    } else {
        log_limited(&limit, LOG_ERROR, "the mapping of an identity was not stored", "error=\"%s\"",
                    strerror(-error));
        finish(m, "authentication_error");
    }
}

static void set_extra(struct json *obj, const char *key, const char *value)
{
    if (value && *value) {
        json_set_string(json_ensure_object(obj, "extra"), key, value);
    }
}

static struct json *new_identity(const struct mapping *m, const struct cache_kind *ck,
                                 const char *key, const char *part)
{
    const struct oauth_request *f = m->f;
    struct json *obj = objects_new(ck, key);
    json_set_string(obj, "providerName", f->provider_name);
    json_set_string(obj, "providerUserName", part);
    struct json *ref = json_set(obj, "user", json_object());
    json_set_string(ref, "name", m->user);
    json_set_string(ref, "uid", m->uid);
    set_extra(obj, "name", f->id.name);
    set_extra(obj, "email", f->id.email);
    set_extra(obj, "preferred_username", f->id.preferred);
    object_complete(ck->kind, obj);
    return obj;
}

/* Writes the new identity 'key' together with its user. */
static void write_both(struct mapping *m, const char *key, const char *part, struct json *user,
                       const struct object *base)
{
    struct cache_kind *identities = objects_kind(m->f->s, USER_GROUP, "identities");
    struct cache_kind *users = objects_kind(m->f->s, USER_GROUP, "users");
    CLEANUP(blob_unref) struct blob *value = NULL;
    CLEANUP_FREE char *user_key = cache_store_key(users, m->user);
    if (!json_count(json_get(user, "identities")) && m->f->id.name && *m->f->id.name &&
        !*json_get_text(user, "fullName")) {
        json_set_string(user, "fullName", m->f->id.name);
    }
    if (!lists(user, key)) {
        json_append(json_ensure_array(user, "identities"), json_string(key));
    }
    object_complete(users->kind, user);
    (void) object_encode(users->kind, user, &value);
    CLEANUP(json_free) struct json *identity = new_identity(m, identities, key, part);
    struct store_claim claim = {user_key, value, base ? base->revision : STORE_ABSENT};
    struct store_terms terms = {.claims = &claim, .n_claims = 1};
    objects_put(m->f->s, identities, key, identity, NULL, &terms, stored, m);
}

static void attempt(struct mapping *m)
{
    struct oauth_request *f = m->f;
    struct object *base = NULL;
    const char *error;
    CLEANUP_FREE char *part = name_of(f->id.user);
    CLEANUP_FREE char *key = xasprintf("%s:%s", f->provider_name, part);
    CLEANUP(json_free) struct json *known = objects_find(f->s, USER_GROUP, "identities", key, NULL);
    CLEANUP(json_free) struct json *user = NULL;
    if (known) {
        use_known(m, known, key);
        return;
    }
    CLEANUP_FREE char *name = choose_user(m, key, &user, &base, &error);
    if (!name || identity_check_name(key) || user_check_name(name)) {
        log_warn("login refused: the identity cannot be mapped", "identity=\"%s\" reason=%s", key,
                 error);
        finish(m, error);
        return;
    }
    if (!user) {
        user = objects_new(objects_kind(f->s, USER_GROUP, "users"), name);
    }
    free(m->user);
    free(m->uid);
    m->user = TAKE(name);
    m->uid = xstrdup(json_get_text(json_get(user, "metadata"), "uid"));
    write_both(m, key, part, user, base);
}

/* Other masters may have mapped the identity a moment ago. */
static void synced(void *ctx, int error, uint64_t revision)
{
    struct mapping *m = ctx;
    if (error < 0) {
        finish(m, "authentication_error");
    } else {
        attempt(m);
    }
}

void map_take(struct oauth_request *f, struct identity *id)
{
    const struct oauth_provider *p = &f->s->providers[f->provider];
    identity_done(&f->id);
    free(f->provider_name);
    f->id = *id;
    *id = (struct identity){0};
    f->provider_name = xstrdup(p->name);
    f->method = p->method;
    f->tries = 0;
}

void map_identity(struct oauth_request *f, map_fn *done)
{
    struct mapping *m = NEW(struct mapping);
    *m = (struct mapping){.f = f, .done = done};
    if (store_is_shared(f->s->a->store)) {
        store_sync(f->s->a->store, synced, m);
    } else {
        attempt(m);
    }
}
