/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/access/oauth_token.h"

#include "apiserver/access/scopes.h"
#include "base/timeutil.h"
#include "oauth/token.h"

/* The contents of a token's object and of its user's. */
struct kept {
    uint64_t token, user; /* Revisions of the objects. */
    uint64_t generation;  /* That of the groups. */
    struct user_info *info;
    int64_t end_ms;      /* 0: it does not end. */
    int64_t idle_end_ms; /* When inactivity ends it; 0: it does not. */
};

void oauth_token_kept_free(void *p)
{
    struct kept *k = p;
    user_unref(k->info);
    free(k);
}

void oauth_token_forget(struct security *s, const char *name)
{
    smap_remove(&s->oauth_tokens, name);
}

static int refuse(struct err *e, const char *why)
{
    return err_set(e, -EPERM, "%s", why);
}

/* The earlier of both ends; 0 is none. */
static int64_t earlier(int64_t a, int64_t b)
{
    return a && b ? MIN(a, b) : MAX(a, b);
}

/* 'seconds' after 'created_ms'; 0: no end. */
static int64_t end_of(int64_t created_ms, const struct json *seconds)
{
    int64_t n = json_get_int_or(seconds, 0);
    if (n <= 0) {
        return 0;
    }
    return n > (INT64_MAX - created_ms) / 1000 ? INT64_MAX : created_ms + n * 1000;
}

/* The user of the token 'credential', with scopes and groups, owned. */
static struct user_info *user_of(const struct security *s, const char *credential, const char *name,
                                 const char *uid, const struct json *scopes)
{
    struct user_info *u = user_new(name);
    const struct json *item;
    u->credential = xstrdup(credential);
    u->uid = xstrdup(uid);
    JSON_FOREACH (item, scopes) {
        /* A scope of another type allows nothing, but it must be there: a user without scopes is
         * not limited. */
        user_add_extra(u, SCOPES_EXTRA, json_get_string(item) ? json_get_string(item) : "");
    }
    user_add_group(u, GROUP_AUTHENTICATED);
    user_add_group(u, GROUP_OAUTH);
    members_add_groups(s->members, u);
    return u;
}

static const struct object *user_object_of(const struct security *s, const struct json *token)
{
    const char *name = json_path_string(token, "userName", NULL);
    return s->users && name && *name ? keyset_get(&s->users->objects, name) : NULL;
}

static int keep(struct security *s, const struct object *o, struct kept **ret, struct err *e)
{
    CLEANUP(json_free) struct json *token = object_parse(o);
    const struct object *of = user_object_of(s, token);
    CLEANUP(json_free) struct json *user = of ? object_parse(of) : NULL;
    const char *created = json_path_string(token, "metadata", "creationTimestamp", NULL);
    const char *uid = json_path_string(token, "userUID", NULL);
    int64_t created_ms;
    if (json_path(token, "metadata", "deletionTimestamp", NULL)) {
        return refuse(e, "the OAuth token is being deleted");
    }
    if (!created || time_parse(created, &created_ms) < 0) {
        return refuse(e, "the OAuth token has no time of creation");
    }
    if (!user || json_path(user, "metadata", "deletionTimestamp", NULL)) {
        return refuse(e, "the OAuth token's user is gone");
    }
    if (!uid || !*uid || !streq_null(json_path_string(user, "metadata", "uid", NULL), uid)) {
        return refuse(e, "the OAuth token's user was made anew with the same name");
    }
    int64_t idle_end_ms = end_of(created_ms, json_get(token, "inactivityTimeoutSeconds"));
    struct kept *k = NEW(struct kept);
    *k = (struct kept){.token = o->revision,
                       .user = of->revision,
                       .generation = s->generation,
                       .info = user_of(s, o->key, of->key, uid, json_get(token, "scopes")),
                       .end_ms =
                           earlier(end_of(created_ms, json_get(token, "expiresIn")), idle_end_ms),
                       .idle_end_ms = idle_end_ms};
    smap_set(&s->oauth_tokens, o->key, k);
    *ret = k;
    return 0;
}

/* The record of the token 'o', made anew if an object that it depends on has changed. */
static int current(struct security *s, const struct object *o, struct kept **ret, struct err *e)
{
    struct kept *k = smap_get(&s->oauth_tokens, o->key);
    const struct object *user =
        k && s->users ? keyset_get(&s->users->objects, k->info->name) : NULL;
    if (k && user && k->token == o->revision && k->user == user->revision &&
        k->generation == s->generation) {
        *ret = k;
        return 0;
    }
    oauth_token_forget(s, o->key);
    return keep(s, o, ret, e);
}

bool oauth_token_has_ended(struct security *s, const char *name, int64_t now_ms)
{
    const struct object *o = s->tokens ? keyset_get(&s->tokens->objects, name) : NULL;
    struct kept *k = NULL;
    return !o || current(s, o, &k, NULL) < 0 || (k->end_ms && k->end_ms <= now_ms);
}

int oauth_token_authenticate(struct security *s, const char *token, int64_t now_ms,
                             struct user_info **ret, struct err *e)
{
    char name[OAUTH_TOKEN_TEXT_SIZE];
    if (oauth_token_name(token, name) < 0) {
        return refuse(e, "not an OAuth token");
    }
    const struct object *o = s->tokens ? keyset_get(&s->tokens->objects, name) : NULL;
    if (!o) {
        return refuse(e, "no such OAuth token");
    }
    struct kept *k = NULL;
    int r = current(s, o, &k, e);
    if (r < 0) {
        return r;
    }
    if (k->end_ms && k->end_ms <= now_ms) {
        return refuse(e, "the OAuth token has expired");
    }
    if (k->idle_end_ms && s->token_used) {
        s->token_used(s->token_used_ctx, name, now_ms, k->idle_end_ms);
    }
    *ret = user_ref(k->info);
    return 0;
}
