/* SPDX-License-Identifier: Apache-2.0 */
/* The clients that every cluster has, made when the registry is loaded.
 *
 * An administrator's changes stay: redirect URIs are added and a secret or a grant method is kept.
 * The challenging client alone gets its redirect URIs anew, because nothing but this server may get
 * its tokens. */
#include "apiserver/oauth/oauth_priv.h"

#include "apiserver/cache/object.h"
#include "base/log.h"
#include "base/random.h"

LOG_MODULE("oauth");

#define RETRY_MS 1000
#define SECRET_BYTES 32

struct own_client {
    const char *name;
    bool challenges, secret;
    bool reset;               /* Its redirect URIs are these alone. */
    const char *redirects[2]; /* A path is one of this server. */
};

static const struct own_client clients[] = {
    {"openshift-challenging-client", true, false, true, {"/oauth/token/implicit", NULL}},
    {BROWSER_CLIENT, false, true, false, {"/oauth/token/display", NULL}},
    {"openshift-web-console", false, false, false, {"/console/", NULL}},
    {"openshift-cli-client",
     false,
     false,
     false,
     {"http://127.0.0.1/callback", "http://[::1]/callback"}},
};

static bool lists(const struct json *list, const char *text)
{
    const struct json *item;
    JSON_FOREACH (item, list) {
        if (streq_null(json_get_string(item), text)) {
            return true;
        }
    }
    return false;
}

/* Brings the object into the form that it must have. */
static void complete(const struct oauth_server *s, const struct own_client *c, struct json *obj)
{
    if (c->reset) {
        json_remove(obj, "redirectURIs");
    }
    struct json *list = json_ensure_array(obj, "redirectURIs");
    for (size_t i = 0; i < ARRAY_SIZE(c->redirects) && c->redirects[i]; i++) {
        bool console = streq(c->redirects[i], "/console/");
        CLEANUP_FREE char *uri = *c->redirects[i] != '/' ? xstrdup(c->redirects[i])
                                 : console && s->asset_url
                                     ? xstrdup(s->asset_url)
                                     : xasprintf("%s%s", s->issuer, c->redirects[i]);
        if (!lists(list, uri)) {
            json_append(list, json_string(uri));
        }
    }
    if (c->challenges) {
        json_set_bool(obj, "respondWithChallenges", true);
    }
    if (c->secret && !*json_get_text(obj, "secret")) {
        char secret[2 * SECRET_BYTES + 1];
        random_hex(secret, SECRET_BYTES);
        json_set_string(obj, "secret", secret);
        explicit_bzero(secret, sizeof secret);
    }
    if (!*json_get_text(obj, "grantMethod")) {
        json_set_string(obj, "grantMethod", "auto");
    }
}

static void stored(void *ctx, int error, uint64_t revision)
{
    static struct log_limit limit;
    struct oauth_server *s = ctx;
    s->settling = false;
    if (error < 0 && error != -ESTALE && error != -EEXIST && error != -EAGAIN &&
        error != -ECANCELED) {
        log_limited(&limit, LOG_ERROR, "a client of the OAuth server was not stored",
                    "error=\"%s\"", strerror(-error));
    }
    loop_timer_arm(s->settle, error < 0 ? RETRY_MS : 0);
}

/* Writes the first client that is not as it must be; its result calls this again. */
static void settle(void *ctx)
{
    struct oauth_server *s = ctx;
    struct cache_kind *ck = objects_kind(s, OAUTH_GROUP, "oauthclients");
    if (!s->a->cache.ready || s->settling || s->a->stopping) {
        return;
    }
    (void) session_keys(s); /* The first login finds the key there. */
    for (size_t i = 0; i < ARRAY_SIZE(clients); i++) {
        struct object *base;
        const char *name = clients[i].name;
        CLEANUP(json_free)
        struct json *old = objects_find(s, OAUTH_GROUP, "oauthclients", name, &base);
        CLEANUP(json_free) struct json *obj = old ? json_clone(old) : objects_new(ck, name);
        complete(s, &clients[i], obj);
        if (!old || !json_equal(old, obj)) {
            s->settling = true;
            objects_put(s, ck, name, obj, base, &(struct store_terms){0}, stored, s);
            return;
        }
    }
}

static void loaded(void *ctx)
{
    struct oauth_server *s = ctx;
    loop_timer_arm(s->settle, 0);
}

void clients_begin(struct oauth_server *s)
{
    s->settle = loop_timer_new(s->a->loop, settle, s);
    s->subscriber = (struct cache_subscriber){.rank = CACHE_RANK_KINDS, .ctx = s, .loaded = loaded};
    cache_subscribe(&s->a->cache, &s->subscriber);
    loaded(s);
}

void clients_changed(struct oauth_server *s)
{
    loaded(s);
}

void clients_end(struct oauth_server *s)
{
    cache_unsubscribe(&s->subscriber);
    s->settle = loop_timer_free(s->settle);
}
