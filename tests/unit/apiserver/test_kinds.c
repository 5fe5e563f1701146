/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds that come and go in the watch cache: their objects, windows, and what the store
 * has of them before and after. */
#include "apiserver/cache/cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define PREFIX "/registry/example.com/widgets/"

static const char text[] =
    "{\"metadata\":{\"name\":\"widgets.example.com\"},\"spec\":{\"group\":\"example.com\","
    "\"scope\":\"Cluster\",\"names\":{\"plural\":\"widgets\",\"singular\":\"widget\","
    "\"kind\":\"Widget\",\"listKind\":\"WidgetList\"},\"versions\":["
    "{\"name\":\"v1\",\"served\":true,\"storage\":%s,\"schema\":{\"openAPIV3Schema\":{"
    "\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}%s}}}},"
    "{\"name\":\"v2\",\"served\":true,\"storage\":%s,\"schema\":{\"openAPIV3Schema\":{"
    "\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":true}}}]}}";

/* The kind with objects stored in v1 or v2; 'more' properties of v1. */
static struct crd *definition(bool v1, const char *more)
{
    CLEANUP_FREE char *s = xasprintf(text, v1 ? "true" : "false", more, v1 ? "false" : "true");
    CLEANUP(json_free) struct json *obj = NULL;
    struct api_registry none = {0};
    struct crd *crd = NULL;
    struct err e = {0};
    assert_int_equal(json_parse(s, strlen(s), &obj, &e), 0);
    assert_true(crd_settle(obj, &none, NULL, 0));
    if (crd_new(obj, &crd, &e) < 0) {
        fail_msg("%s", e.text);
    }
    return crd;
}

static struct blob *value_of(const char *name, unsigned n)
{
    CLEANUP_FREE char *s = xasprintf("{\"kind\":\"Widget\",\"apiVersion\":\"example.com/v1\","
                                     "\"metadata\":{\"name\":\"%s\"},\"n\":%u,\"junk\":1}",
                                     name, n);
    return blob_new(s, strlen(s));
}

static struct cache_kind *feed(struct cache *c, const char *key, const char *name, unsigned n,
                               uint64_t revision)
{
    struct cache_event ev;
    CLEANUP(blob_unref) struct blob *v = name ? value_of(name, n) : NULL;
    return cache_add_event(c, &(struct store_event){.key = key, .value = v, .revision = revision},
                           &ev);
}

static void objects_wait_for_their_definition(void **state)
{
    struct cache c;
    cache_init(&c, NULL, 100, SIZE_MAX / 2);
    CLEANUP(blob_unref) struct blob *a = value_of("a", 1);
    struct store_item items[] = {{PREFIX "a", blob_ref(a), 2}};
    cache_load(&c, items, 1, 3, NULL, NULL);
    assert_null(feed(&c, PREFIX "b", "b", 2, 4));
    assert_null(feed(&c, PREFIX "c", "c", 3, 5));
    assert_null(feed(&c, PREFIX "c", NULL, 0, 6));
    CLEANUP(crd_unref) struct crd *crd = definition(true, "");
    struct cache_kind *ck = cache_add_kind(&c, crd);
    assert_int_equal(ck->objects.n, 2);
    assert_int_equal(ck->floor, 6);
    /* In the form of the schema. */
    assert_string_equal(keyset_get(&ck->objects, "b")->text->data,
                        "{\"kind\":\"Widget\",\"apiVersion\":\"example.com/v1\",\"metadata\":{"
                        "\"resourceVersion\":\"4\",\"name\":\"b\"},\"n\":2}");
    assert_int_equal(smap_size(&c.unknown_keys), 0);
    assert_ptr_equal(cache_find(&c, crd_served(crd, 1)), ck);
    assert_ptr_equal(api_registry_find(&c.registry, "example.com", "v2", "widgets"),
                     crd_served(crd, 1));
    cache_remove_kind(&c, ck);
    assert_null(cache_find(&c, crd_stored(crd)));
    assert_null(api_registry_find(&c.registry, "example.com", "v1", "widgets"));
    /* And for the next one, but for what has gone meanwhile. */
    assert_null(feed(&c, PREFIX "a", NULL, 0, 7));
    ck = cache_add_kind(&c, crd);
    assert_int_equal(ck->objects.n, 1);
    assert_int_equal(keyset_get(&ck->objects, "b")->revision, 4);
    cache_done(&c);
}

static void a_kind_in_use_outlives_its_end(void **state)
{
    struct cache c;
    cache_init(&c, NULL, 100, SIZE_MAX / 2);
    cache_load(&c, NULL, 0, 1, NULL, NULL);
    struct crd *crd = definition(true, "");
    struct cache_kind *ck = cache_kind_ref(cache_add_kind(&c, crd));
    assert_ptr_equal(feed(&c, PREFIX "a", "a", 1, 2), ck);
    struct object *o = object_ref(keyset_get(&ck->objects, "a"));
    crd_unref(crd);
    cache_remove_kind(&c, ck);
    assert_true(ck->gone);
    assert_int_equal(ck->objects.n, 0);
    assert_string_equal(ck->kind->plural, "widgets");
    assert_non_null(strstr(o->text->data, "\"n\":1"));
    object_unref(o);
    cache_kind_unref(ck);
    cache_done(&c);
}

static void a_changed_definition_keeps_objects_and_begins_a_new_window(void **state)
{
    struct cache c;
    cache_init(&c, NULL, 100, SIZE_MAX / 2);
    cache_load(&c, NULL, 0, 1, NULL, NULL);
    CLEANUP(crd_unref) struct crd *one = definition(true, "");
    CLEANUP(crd_unref)
    struct crd *two = definition(false, ",\"m\":{\"type\":\"integer\",\"default\":7}");
    CLEANUP(crd_unref)
    struct crd *three = definition(true, ",\"m\":{\"type\":\"integer\",\"default\":7}");
    struct cache_kind *ck = cache_add_kind(&c, one);
    feed(&c, PREFIX "a", "a", 1, 2);
    feed(&c, PREFIX "b", "b", 2, 3);
    ck = cache_replace_kind(&c, ck, two);
    assert_int_equal(ck->objects.n, 2);
    assert_int_equal(ck->n_events, 0);
    assert_int_equal(ck->floor, 3);
    /* Kept in the other version now, whose schema prunes nothing; what was pruned is gone. */
    assert_string_equal(keyset_get(&ck->objects, "a")->text->data,
                        "{\"kind\":\"Widget\",\"apiVersion\":\"example.com/v2\",\"metadata\":{"
                        "\"resourceVersion\":\"2\",\"name\":\"a\"},\"n\":1}");
    ck = cache_replace_kind(&c, ck, three);
    assert_string_equal(keyset_get(&ck->objects, "b")->text->data,
                        "{\"kind\":\"Widget\",\"apiVersion\":\"example.com/v1\",\"metadata\":{"
                        "\"resourceVersion\":\"3\",\"name\":\"b\"},\"n\":2,\"m\":7}");
    cache_done(&c);
}

struct loading {
    struct cache *c;
    struct crd *crd;
};

static void define(void *ctx)
{
    struct loading *l = ctx;
    (void) cache_add_kind(l->c, l->crd);
}

static void history_is_kept_for_kinds_that_come_with_the_snapshot(void **state)
{
    struct cache c;
    CLEANUP(blob_unref) struct blob *a1 = value_of("a", 1);
    CLEANUP(blob_unref) struct blob *a2 = value_of("a", 2);
    CLEANUP(blob_unref) struct blob *b = value_of("b", 3);
    CLEANUP(crd_unref) struct crd *crd = definition(true, "");
    struct loading l = {&c, crd};
    cache_init(&c, NULL, 100, SIZE_MAX / 2);
    cache_add_history(&c, &(struct store_event){PREFIX "a", a2, a1, 6});
    cache_add_history(&c, &(struct store_event){"/registry/other/x", b, NULL, 7});
    struct store_item items[] = {{PREFIX "a", blob_ref(a2), 6}, {PREFIX "b", blob_ref(b), 3}};
    cache_load(&c, items, ARRAY_SIZE(items), 8, define, &l);
    struct cache_kind *ck = cache_find(&c, crd_stored(crd));
    assert_int_equal(ck->objects.n, 2);
    assert_int_equal(ck->n_events, 1);
    assert_int_equal(ck->floor, 5);
    assert_non_null(strstr(cache_event_at(ck, 0)->old->text->data, "\"n\":1"));
    assert_ptr_equal(keyset_get(&ck->objects, "a"), cache_event_at(ck, 0)->new);
    cache_done(&c);
}

static void replay(void *ctx, const struct store_event *ev)
{
    struct loading *l = ctx;
    struct cache_event event;
    if (str_has_suffix(ev->key, "/definition")) {
        (void) cache_add_kind(l->c, l->crd);
    }
    (void) cache_add_event(l->c, ev, &event);
}

static void a_definition_made_while_the_store_was_away_brings_its_objects(void **state)
{
    struct cache c;
    CLEANUP(blob_unref) struct blob *a = value_of("a", 1);
    CLEANUP(blob_unref) struct blob *b = value_of("b", 2);
    CLEANUP(crd_unref) struct crd *crd = definition(true, "");
    struct loading l = {&c, crd};
    cache_init(&c, NULL, 100, SIZE_MAX / 2);
    struct store_item before[] = {{PREFIX "old", blob_ref(a), 2}};
    cache_load(&c, before, 1, 3, NULL, NULL);
    /* "old" has gone; a stands for the definition, which is older than b. */
    const struct store_item after[] = {{PREFIX "b", b, 6}, {"/registry/some/definition", a, 5}};
    assert_int_equal(cache_resync(&c, after, 2, 7, replay, &l), 0);
    struct cache_kind *ck = cache_find(&c, crd_stored(crd));
    assert_non_null(ck);
    assert_non_null(keyset_get(&ck->objects, "b"));
    assert_null(keyset_get(&ck->objects, "old"));
    assert_int_equal(c.revision, 7);
    cache_done(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_wait_for_their_definition),
        cmocka_unit_test(a_kind_in_use_outlives_its_end),
        cmocka_unit_test(a_changed_definition_keeps_objects_and_begins_a_new_window),
        cmocka_unit_test(history_is_kept_for_kinds_that_come_with_the_snapshot),
        cmocka_unit_test(a_definition_made_while_the_store_was_away_brings_its_objects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
