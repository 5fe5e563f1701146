/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/oauth/uses.h"

#include "api/kinds/oauth.h"
#include "apiserver/access/security.h"
#include "apiserver/cache/object.h"
#include "apiserver/oauth/oauth_priv.h"
#include "base/log.h"
#include "base/timeutil.h"
#include "oauth/inactivity.h"

LOG_MODULE("oauth");

/* Shortest time between two rounds of writes. */
#define ROUND_MS 1000

struct oauth_inactivity {
    struct apiserver *a;
    struct cache_kind *tokens;
    const struct cache_kind *clients;
    struct oauth_uses uses;
    struct smap writing; /* Tokens whose writes are in progress: struct write. */
    struct loop_timer *timer;
    uint64_t round_ms; /* Monotonic time of the last round. */
};

struct write {
    struct oauth_inactivity *i;
    struct oauth_use *use;
    bool again;
};

static void write_end(struct write *w)
{
    (void) smap_take(&w->i->writing, w->use->name);
    free(w->use);
    free(w);
}

/* Seconds that a use prolongs the token by; -1: neither its client nor this master knows. */
static int64_t timeout_of(const struct oauth_inactivity *i, const struct json *token)
{
    const struct object *o =
        i->clients ? keyset_get(&i->clients->objects, json_get_text(token, "clientName")) : NULL;
    CLEANUP(json_free) struct json *client = o ? object_parse(o) : NULL;
    int64_t by_default = i->a->oauth ? i->a->oauth->inactivity_s : 0;
    return json_get_int_or(json_get(client, "accessTokenInactivityTimeoutSeconds"),
                           by_default ? by_default : -1);
}

static void write_use(struct write *w);

static void stored(void *ctx, int error, uint64_t revision)
{
    static struct log_limit limit;
    struct write *w = ctx;
    if (error == -ESTALE && !w->again) {
        w->again = true;
        write_use(w);
        return;
    }
    if (error < 0 && error != -ESTALE && error != -ENOENT) {
        log_limited(&limit, LOG_WARN, "the use of an OAuth token was not stored", "error=\"%s\"",
                    strerror(-error));
    }
    write_end(w);
}

static void write_use(struct write *w)
{
    struct oauth_inactivity *i = w->i;
    const struct object *o = keyset_get(&i->tokens->objects, w->use->name);
    CLEANUP(json_free) struct json *token = o ? object_parse(o) : NULL;
    CLEANUP(blob_unref) struct blob *value = NULL;
    int64_t end = oauth_inactivity_end_ms(token), now = time_wall_ms();
    /* A token that has ended stays ended, even if its last use could not be stored in time. */
    int64_t next = end > now && !json_path(token, "metadata", "deletionTimestamp", NULL)
                       ? oauth_inactivity_next_s(token, w->use->seen_ms, timeout_of(i, token))
                       : -1;
    if (next < 0) {
        write_end(w);
        return;
    }
    if (next) {
        json_set_int(token, "inactivityTimeoutSeconds", next);
    } else {
        json_remove(token, "inactivityTimeoutSeconds");
    }
    CLEANUP_FREE char *key = cache_store_key(i->tokens, o->key);
    (void) object_encode(i->tokens->kind, token, &value);
    store_put(i->a->store, key, value, o->revision, stored, w);
}

static void arm(struct oauth_inactivity *i)
{
    int64_t due = oauth_uses_due_ms(&i->uses);
    if (due >= 0) {
        int64_t left = MAX(due - time_wall_ms(), INT64_C(0));
        uint64_t next = i->round_ms + ROUND_MS, now = time_mono_ms();
        loop_timer_arm(i->timer, MAX((uint64_t) left, next > now ? next - now : 0));
    }
}

/* Stores the uses that are due.  A token that another master has prolonged meanwhile waits. */
static void run_round(void *ctx)
{
    struct oauth_inactivity *i = ctx;
    struct oauth_use *use;
    int64_t now = time_wall_ms();
    i->round_ms = time_mono_ms();
    while ((use = oauth_uses_take(&i->uses, now))) {
        const struct object *o = keyset_get(&i->tokens->objects, use->name);
        CLEANUP(json_free) struct json *token = o ? object_parse(o) : NULL;
        int64_t end = oauth_inactivity_end_ms(token);
        if (end - OAUTH_INACTIVITY_LEAD_MS > now) {
            oauth_uses_record(&i->uses, use->name, use->seen_ms, end);
            free(use);
            continue;
        }
        struct write *w = NEW(struct write);
        *w = (struct write){.i = i, .use = use};
        smap_set(&i->writing, use->name, w);
        write_use(w);
    }
    arm(i);
}

static void on_used(void *ctx, const char *name, int64_t now_ms, int64_t end_ms)
{
    struct oauth_inactivity *i = ctx;
    if (smap_get(&i->writing, name)) {
        return; /* The use before this one is being stored. */
    }
    int64_t due = oauth_uses_due_ms(&i->uses);
    oauth_uses_record(&i->uses, name, now_ms, end_ms);
    if (oauth_uses_due_ms(&i->uses) != due) {
        arm(i);
    }
}

struct oauth_inactivity *oauth_inactivity_new(struct apiserver *a)
{
    struct oauth_inactivity *i = NEW(struct oauth_inactivity);
    i->a = a;
    i->tokens = cache_find(&a->cache, api_kind_find(OAUTH_GROUP, "v1", "oauthaccesstokens"));
    i->clients = cache_find(&a->cache, api_kind_find(OAUTH_GROUP, "v1", "oauthclients"));
    i->timer = loop_timer_new(a->loop, run_round, i);
    oauth_uses_init(&i->uses);
    smap_init(&i->writing, NULL);
    a->security->token_used = on_used;
    a->security->token_used_ctx = i;
    return i;
}

struct oauth_inactivity *oauth_inactivity_free(struct oauth_inactivity *i)
{
    if (i) {
        i->a->security->token_used = NULL;
        smap_done(&i->writing);
        oauth_uses_done(&i->uses);
        loop_timer_free(i->timer);
        free(i);
    }
    return NULL;
}
