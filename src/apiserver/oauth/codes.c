/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens that were made of codes, by the code's name: the token of a code that is sent again is
 * found without a search, however many tokens there are. */
#include "apiserver/oauth/oauth_priv.h"

#include "apiserver/cache/object.h"

/* The name of the code that the token was made of, owned; NULL: of none. */
static char *code_of(const struct object *token)
{
    CLEANUP(json_free) struct json *obj = object_parse(token);
    const char *code = json_get_text(obj, "authorizeToken");
    return *code ? xstrdup(code) : NULL;
}

static void add(struct oauth_server *s, const struct object *token)
{
    CLEANUP_FREE char *code = code_of(token);
    if (code) {
        smap_set(&s->codes, code, xstrdup(token->key));
    }
}

/* Only creation and deletion count, because a token's code cannot be changed. */
static void changed(void *ctx, struct cache_kind *ck, const struct cache_event *ev)
{
    struct oauth_server *s = ctx;
    if (ck != objects_kind(s, OAUTH_GROUP, "oauthaccesstokens")) {
        return;
    }
    if (!ev->old) {
        add(s, ev->new);
    } else if (!ev->new) {
        CLEANUP_FREE char *code = code_of(ev->old);
        if (code && streq_null(smap_get(&s->codes, code), ev->old->key)) {
            smap_remove(&s->codes, code);
        }
    }
}

static void loaded(void *ctx)
{
    struct oauth_server *s = ctx;
    const struct cache_kind *ck = objects_kind(s, OAUTH_GROUP, "oauthaccesstokens");
    struct keyset_pos pos = keyset_seek(&ck->objects, "");
    const struct object *o;
    smap_clear(&s->codes);
    while ((o = keyset_next(&ck->objects, &pos))) {
        add(s, o);
    }
}

const char *codes_token(const struct oauth_server *s, const char *code)
{
    return smap_get(&s->codes, code);
}

void codes_begin(struct oauth_server *s)
{
    smap_init(&s->codes, free);
    s->code_subscriber = (struct cache_subscriber){
        .rank = CACHE_RANK_KINDS, .ctx = s, .changed = changed, .loaded = loaded};
    cache_subscribe(&s->a->cache, &s->code_subscriber);
    loaded(s);
}

void codes_end(struct oauth_server *s)
{
    cache_unsubscribe(&s->code_subscriber);
    smap_done(&s->codes);
}
