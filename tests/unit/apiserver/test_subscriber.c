/* SPDX-License-Identifier: Apache-2.0 */
/* Subscribers of the watch cache: order, which of their functions is called when, and
 * cancelling. */
#include "apiserver/cache/subscriber.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define PREFIX "/registry/network.openshift.io/netnamespaces/"

static struct cache c;
static struct strbuf calls = STRBUF_INIT;

static void on_changed(void *ctx, struct cache_kind *ck, const struct cache_event *ev)
{
    const struct object *o = ev->new ? ev->new : ev->old;
    bool present = keyset_get(&ck->objects, o->key) != NULL;
    strbuf_addf(&calls, "%s:%s%s ", (const char *) ctx, present ? "+" : "-", o->key);
}

static void on_unknown_changed(void *ctx, const char *key, bool present)
{
    strbuf_addf(&calls, "%s:%s%s ", (const char *) ctx, present ? "+" : "-", key);
}

static void on_resetting(void *ctx)
{
    strbuf_addf(&calls, "%s:reset@%u ", (const char *) ctx, (unsigned) c.revision);
}

static void on_loaded(void *ctx)
{
    strbuf_addf(&calls, "%s:loaded@%u ", (const char *) ctx, (unsigned) c.revision);
}

static void add(struct cache_subscriber *s, enum cache_rank rank, const char *name)
{
    *s = (struct cache_subscriber){.rank = rank,
                                   .ctx = (void *) name,
                                   .changed = on_changed,
                                   .unknown_changed = on_unknown_changed,
                                   .resetting = on_resetting,
                                   .loaded = on_loaded};
    cache_subscribe(&c, s);
}

static void apply(const char *key, const char *text, uint64_t revision)
{
    CLEANUP(blob_unref) struct blob *value = text ? blob_new(text, strlen(text)) : NULL;
    cache_apply(&c, &(struct store_event){.key = key, .value = value, .revision = revision});
}

static void expect(const char *want)
{
    assert_string_equal(strbuf_cstr(&calls), want);
    strbuf_reset(&calls);
}

static void changes_reach_the_subscribers_in_the_order_of_their_ranks(void **state)
{
    static const char net[] = "{\"kind\":\"NetNamespace\",\"apiVersion\":\"network.openshift.io/"
                              "v1\",\"metadata\":{\"name\":\"red\"},\"netid\":5}";
    struct cache_subscriber kinds, watch, second_watch, access, silent;
    cache_init(&c, NULL, 100, SIZE_MAX / 2);
    add(&kinds, CACHE_RANK_KINDS, "kinds");
    add(&watch, CACHE_RANK_WATCH, "watch");
    add(&access, CACHE_RANK_ACCESS, "access");
    add(&second_watch, CACHE_RANK_WATCH, "second");
    silent = (struct cache_subscriber){.rank = CACHE_RANK_ADMISSION};
    cache_subscribe(&c, &silent);
    cache_reload(&c, NULL, 0, 7, NULL, NULL);
    expect("access:reset@0 watch:reset@0 second:reset@0 kinds:reset@0 "
           "access:loaded@7 watch:loaded@7 second:loaded@7 kinds:loaded@7 ");
    apply(PREFIX "red", net, 8);
    expect("access:+red watch:+red second:+red kinds:+red ");
    cache_unsubscribe(&second_watch);
    cache_unsubscribe(&second_watch);
    apply(PREFIX "red", NULL, 9);
    expect("access:-red watch:-red kinds:-red ");
    apply("/elsewhere", "1", 10);
    expect("access:+/elsewhere watch:+/elsewhere kinds:+/elsewhere ");
    cache_unsubscribe(&(struct cache_subscriber){0});
    cache_done(&c);
    strbuf_done(&calls);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_reach_the_subscribers_in_the_order_of_their_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
