/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/security/oauth_tokens.h"

#include "base/mem.h"
#include "base/timeutil.h"
#include "controller/obj.h"

#define OAUTH "oauth.openshift.io/v1"
#define USERS "user.openshift.io/v1"
#define ACCOUNT "system:serviceaccount:"
#define LOOK_MAX_MS (24 * 3600000LL) /* Longest time between checks, because clocks may be set. */

/* The kinds of objects that belong to a user; the keys of the queue are "PLURAL/NAME". */
enum grant { TOKENS, CODES, AUTHORIZATIONS, IDENTITIES, GRANTS };
static const struct {
    const char *api_version, *plural;
} grants[GRANTS] = {
    [TOKENS] = {OAUTH, "oauthaccesstokens"},
    [CODES] = {OAUTH, "oauthauthorizetokens"},
    [AUTHORIZATIONS] = {OAUTH, "oauthclientauthorizations"},
    [IDENTITIES] = {USERS, "identities"},
};

struct oauth_tokens {
    struct workqueue *queue;
    struct informer *objects[GRANTS];
    struct informer *users, *clients;
    /* Keys with a question about their user or client under way, to the resourceVersion of the
     * object that it is about. */
    struct smap asked;
};

/* ---- when a token ends ---- */

/* The earlier of two ends; a negative one is none. */
static int64_t earlier(int64_t a, int64_t b)
{
    return a < 0 || b < 0 ? MAX(a, b) : MIN(a, b);
}

static int64_t end_of(int64_t created_ms, const struct json *seconds)
{
    int64_t n = json_get_int_or(seconds, 0);
    return n <= 0 || n > INT32_MAX ? -1 : created_ms + n * 1000;
}

int64_t oauth_tokens_left_ms(const struct json *token, int64_t now_ms)
{
    const char *created = json_path_string(token, "metadata", "creationTimestamp", NULL);
    int64_t created_ms;
    if (!created || time_parse(created, &created_ms) < 0) {
        return -1;
    }
    int64_t end = earlier(end_of(created_ms, json_get(token, "expiresIn")),
                          end_of(created_ms, json_get(token, "inactivityTimeoutSeconds")));
    return end < 0 ? -1 : MAX(end - now_ms, (int64_t) 0);
}

/* ---- one object ---- */

struct owner {
    const char *user, *uid, *client; /* "": none. */
};

static struct owner owner_of(enum grant g, const struct json *o)
{
    const struct json *user = json_get(o, "user");
    return g == IDENTITIES
               ? (struct owner){json_get_text(user, "name"), json_get_text(user, "uid"), ""}
               : (struct owner){json_get_text(o, "userName"), json_get_text(o, "userUID"),
                                json_get_text(o, "clientName")};
}

/* The object of a key; '*ret' gets its kind.  NULL: it is gone. */
static const struct json *object_of(const struct oauth_tokens *t, const char *key, enum grant *ret)
{
    const char *slash = strchr(key, '/');
    for (enum grant g = 0; g < GRANTS; g++) {
        if (strlen(grants[g].plural) == (size_t) (slash - key) &&
            strncmp(grants[g].plural, key, (size_t) (slash - key)) == 0) {
            *ret = g;
            return informer_get(t->objects[g], slash + 1);
        }
    }
    return NULL;
}

static void removed(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "delete what an OAuth token or a user leaves", text);
    } else {
        work_done(w);
    }
}

static const char *version_of(const struct json *o)
{
    const char *version = json_path_string(o, "metadata", "resourceVersion", NULL);
    return version ? version : "";
}

/* Deletes this very object; of an identity, only its user. */
static void remove_it(struct work *w, enum grant g, const struct json *o)
{
    CLEANUP_FREE char *path =
        api_path(grants[g].api_version, grants[g].plural, NULL, obj_name(o), NULL);
    CLEANUP(json_free) struct json *body = json_object();
    if (g == IDENTITIES) {
        struct json *meta = json_ensure_object(body, "metadata");
        json_set_string(meta, "resourceVersion", version_of(o));
        json_set(body, "user", json_null());
        work_request_as(w, "PATCH", path, NULL, "application/merge-patch+json", body, removed);
        return;
    }
    json_set_string(body, "kind", "DeleteOptions");
    json_set_string(body, "apiVersion", "v1");
    json_set_string(json_ensure_object(body, "preconditions"), "uid", obj_uid(o));
    work_request(w, "DELETE", path, body, removed);
}

static void wait_for_end(struct work *w, enum grant g, const struct json *o)
{
    int64_t left =
        g == TOKENS || g == CODES ? oauth_tokens_left_ms(o, time_wall_ms()) : INT64_C(-1);
    if (left < 0) {
        work_done(w);
    } else {
        work_wait(w, (uint64_t) MIN(left, LOOK_MAX_MS));
    }
}

/* Asks the API server for the User or the OAuthClient of 'o'. */
static void ask(struct oauth_tokens *t, struct work *w, const struct json *o,
                const char *api_version, const char *plural, const char *name, work_answer_fn *fn)
{
    CLEANUP_FREE char *path = api_path(api_version, plural, NULL, name, NULL);
    smap_set(&t->asked, work_key(w), xstrdup(version_of(o)));
    work_request(w, "GET", path, NULL, fn);
}

/* Whether the answer is about the owner that 'o' has: an identity may have another by now. */
static bool is_as_asked(struct oauth_tokens *t, const char *key, const struct json *o)
{
    bool is = streq_null(smap_get(&t->asked, key), version_of(o));
    smap_remove(&t->asked, key);
    return is;
}

/* The answer about the User or the OAuthClient that the copy does not have.  'obj' NULL: an
 * error. */
static void decide(void *ctx, struct work *w, int error, const char *text, const struct json *obj,
                   bool is_user)
{
    struct oauth_tokens *t = ctx;
    enum grant g = TOKENS;
    const struct json *o = object_of(t, work_key(w), &g);
    const bool is_current = is_as_asked(t, work_key(w), o);
    if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "look for the user or the client of an OAuth token", text);
    } else if (!o) {
        work_done(w);
    } else if (!is_current) {
        workqueue_add(t->queue, work_key(w));
        work_done(w);
    } else if (error == -ENOENT ||
               (is_user &&
                !streq_null(json_path_string(obj, "metadata", "uid", NULL), owner_of(g, o).uid))) {
        remove_it(w, g, o);
    } else {
        wait_for_end(w, g, o);
    }
}

static void user_found(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    decide(ctx, w, error, text, obj, true);
}

static void client_found(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    decide(ctx, w, error, text, obj, false);
}

static void reconcile(void *ctx, struct work *w, const char *key)
{
    struct oauth_tokens *t = ctx;
    enum grant g = TOKENS;
    const struct json *o = object_of(t, key, &g);
    if (!o || obj_is_terminating(o)) {
        work_done(w);
        return;
    }
    const struct owner of = owner_of(g, o);
    const struct json *user = *of.user ? informer_get(t->users, of.user) : NULL;
    if ((g == TOKENS || g == CODES) && oauth_tokens_left_ms(o, time_wall_ms()) == 0) {
        remove_it(w, g, o);
    } else if (*of.user && (!user || !streq_null(obj_uid(user), of.uid))) {
        ask(t, w, o, USERS, "users", of.user, user_found);
    } else if (*of.client && !str_has_prefix(of.client, ACCOUNT) &&
               !informer_get(t->clients, of.client)) {
        ask(t, w, o, OAUTH, "oauthclients", of.client, client_found);
    } else {
        wait_for_end(w, g, o);
    }
}

/* ---- events ---- */

static void add(struct oauth_tokens *t, enum grant g, const char *name)
{
    CLEANUP_FREE char *key = xasprintf("%s/%s", grants[g].plural, name);
    workqueue_add(t->queue, key);
}

#define CHANGED(name, grant)                                                                     \
    static void name(void *ctx, const char *key, const struct json *old, const struct json *obj) \
    {                                                                                            \
        add(ctx, grant, key);                                                                    \
    }
CHANGED(token_changed, TOKENS)
CHANGED(code_changed, CODES)
CHANGED(authorization_changed, AUTHORIZATIONS)
CHANGED(identity_changed, IDENTITIES)

struct search {
    struct oauth_tokens *t;
    enum grant g;
    const char *name;
    bool is_user;
};

static void add_found(void *ctx, const char *key, const struct json *obj)
{
    const struct search *s = ctx;
    const struct owner of = owner_of(s->g, obj);
    if (streq(s->is_user ? of.user : of.client, s->name)) {
        add(s->t, s->g, key);
    }
}

/* Adds the objects of a user ('is_user') or of a client. */
static void add_of(struct oauth_tokens *t, const char *name, bool is_user)
{
    for (enum grant g = 0; g < GRANTS; g++) {
        struct search s = {t, g, name, is_user};
        informer_each(t->objects[g], add_found, &s);
    }
}

static void user_deleted(void *ctx, const char *key, const struct json *obj)
{
    add_of(ctx, key, true);
}

static void client_deleted(void *ctx, const char *key, const struct json *obj)
{
    add_of(ctx, key, false);
}

static void nothing(void *ctx, const char *key, const struct json *old, const struct json *obj)
{
}

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    struct oauth_tokens *t = NEW(struct oauth_tokens);
    t->queue = env->queue;
    smap_init(&t->asked, free);
    *ret = t;
    return 0;
}

static void stop(void *state)
{
    struct oauth_tokens *t = state;
    smap_done(&t->asked);
    free(t);
}

static const struct controller_watch watches[] = {
    {.api_version = USERS,
     .plural = "users",
     .informer = CONTROLLER_INFORMER(struct oauth_tokens, users),
     .changed = nothing,
     .deleted = user_deleted,
     .metadata = true},
    {.api_version = OAUTH,
     .plural = "oauthclients",
     .informer = CONTROLLER_INFORMER(struct oauth_tokens, clients),
     .changed = nothing,
     .deleted = client_deleted,
     .metadata = true},
    {.api_version = OAUTH,
     .plural = "oauthaccesstokens",
     .informer = CONTROLLER_INFORMER(struct oauth_tokens, objects[TOKENS]),
     .changed = token_changed},
    {.api_version = OAUTH,
     .plural = "oauthauthorizetokens",
     .informer = CONTROLLER_INFORMER(struct oauth_tokens, objects[CODES]),
     .changed = code_changed},
    {.api_version = OAUTH,
     .plural = "oauthclientauthorizations",
     .informer = CONTROLLER_INFORMER(struct oauth_tokens, objects[AUTHORIZATIONS]),
     .changed = authorization_changed},
    {.api_version = USERS,
     .plural = "identities",
     .informer = CONTROLLER_INFORMER(struct oauth_tokens, objects[IDENTITIES]),
     .changed = identity_changed},
};

const struct controller oauth_tokens_controller = {
    .name = "oauth_tokens",
    .watches = watches,
    .n_watches = ARRAY_SIZE(watches),
    .parallel = 4,
    .start = start,
    .reconcile = reconcile,
    .stop = stop,
};
