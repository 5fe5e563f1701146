/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/cache/subscriber.h"

void cache_subscribe(struct cache *c, struct cache_subscriber *s)
{
    struct list *before = c->subscribers.next;
    while (before != &c->subscribers &&
           CONTAINER_OF(before, struct cache_subscriber, node)->rank <= s->rank) {
        before = before->next;
    }
    list_insert_before(before, &s->node);
}

void cache_unsubscribe(struct cache_subscriber *s)
{
    if (s->node.next) {
        list_remove(&s->node);
    }
}

void cache_apply(struct cache *c, const struct store_event *ev)
{
    struct cache_event event;
    struct cache_subscriber *s;
    struct cache_kind *ck = cache_add_event(c, ev, &event);
    LIST_FOREACH (s, struct cache_subscriber, node, &c->subscribers) {
        if (ck && s->changed) {
            s->changed(s->ctx, ck, &event);
        } else if (!ck && s->unknown_changed) {
            s->unknown_changed(s->ctx, ev->key, ev->value != NULL);
        }
    }
}

void cache_reload(struct cache *c, struct store_item *items, size_t n, uint64_t revision,
                  void (*define)(void *ctx), void *ctx)
{
    struct cache_subscriber *s;
    LIST_FOREACH (s, struct cache_subscriber, node, &c->subscribers) {
        if (s->resetting) {
            s->resetting(s->ctx);
        }
    }
    cache_load(c, items, n, revision, define, ctx);
    LIST_FOREACH (s, struct cache_subscriber, node, &c->subscribers) {
        if (s->loaded) {
            s->loaded(s->ctx);
        }
    }
}
