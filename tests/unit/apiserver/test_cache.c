/* SPDX-License-Identifier: Apache-2.0 */
/* The watch cache against a model: random histories, and what is read back at every revision. */
#include "apiserver/cache/cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define PREFIX "/registry/network.openshift.io/netnamespaces/"

static uint64_t seed = 88172645463325252u;

static unsigned rnd(unsigned n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned) (seed >> 16) % n;
}

static struct blob *value_of(const char *name, unsigned id)
{
    CLEANUP_FREE char *text =
        xasprintf("{\"kind\":\"NetNamespace\",\"apiVersion\":"
                  "\"network.openshift.io/v1\",\"metadata\":{\"name\":\"%s\"},"
                  "\"netid\":%u}",
                  name, id);
    return blob_new(text, strlen(text));
}

static void feed(struct cache *c, const char *name, const struct blob *value, uint64_t revision)
{
    CLEANUP_FREE char *key = xasprintf(PREFIX "%s", name);
    struct cache_event ev;
    cache_add_event(
        c, &(struct store_event){.key = key, .value = (struct blob *) value, .revision = revision},
        &ev);
}

static struct cache_kind *nets(struct cache *c)
{
    return cache_find(c, api_kind_find("network.openshift.io", "v1", "netnamespaces"));
}

/* ---- the ordered set ---- */

static struct object *object_named(const char *name)
{
    const struct api_kind *k = api_kind_find("network.openshift.io", "v1", "netnamespaces");
    CLEANUP_FREE char *head = object_head(k);
    CLEANUP(blob_unref) struct blob *v = value_of(name, 11);
    return object_new(k, head, name, v, 1);
}

static void a_keyset_is_a_sorted_set(void **state)
{
    enum { N = 3000 };
    static bool has[N];
    struct keyset s = {0};
    size_t n = 0;
    for (int round = 0; round < 20000; round++) {
        /* First it grows, then it shrinks. */
        unsigned i = rnd(N);
        char name[16];
        snprintf(name, sizeof name, "n%06u", i);
        if (rnd(10) < (round < 10000 ? 8 : 2)) {
            struct object *old = keyset_put(&s, object_named(name));
            assert_int_equal(old != NULL, has[i]);
            object_unref(old);
            n += !has[i];
            has[i] = true;
        } else {
            struct object *old = keyset_remove(&s, name);
            assert_int_equal(old != NULL, has[i]);
            object_unref(old);
            n -= has[i];
            has[i] = false;
        }
        assert_int_equal(s.n, n);
        if (round % 500 == 0) {
            struct keyset_pos pos = keyset_seek(&s, "");
            for (unsigned j = 0; j < N; j++) {
                snprintf(name, sizeof name, "n%06u", j);
                assert_int_equal(keyset_get(&s, name) != NULL, has[j]);
                if (has[j]) {
                    assert_string_equal(keyset_next(&s, &pos)->key, name);
                }
            }
            assert_null(keyset_next(&s, &pos));
        }
    }
    keyset_done(&s);
    assert_null(keyset_get(&s, "n000001"));
}

static void keys_in_order_fill_the_chunks(void **state)
{
    struct keyset s = {0};
    for (unsigned i = 0; i < 4 * KEYSET_CHUNK; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%06u", i);
        assert_null(keyset_put(&s, object_named(name)));
    }
    assert_int_equal(s.n_chunks, 4);
    keyset_done(&s);
}

/* ---- past states ---- */

/* The objects at a revision as "name=id ", from the cache and from the model. */
static char *walk_text(struct cache *c, const char *after, uint64_t revision)
{
    struct strbuf b = STRBUF_INIT;
    struct cache_walk w;
    struct object *o;
    int field = api_field_find(nets(c)->kind, "netid");
    cache_walk_init(&w, nets(c), &(struct cache_range){.after = after}, revision);
    while ((o = cache_walk_next(&w))) {
        strbuf_addf(&b, "%s=%s ", o->key, api_index_field(o->index, (size_t) field));
    }
    cache_walk_done(&w);
    strbuf_addc(&b, ';');
    return strbuf_steal(&b);
}

static void every_past_state_in_the_window_can_be_read(void **state)
{
    enum { NAMES = 12, STEPS = 400, WINDOW = 100 };
    struct cache c;
    unsigned ids[NAMES] = {0};
    static char *states[STEPS + 1];
    cache_init(&c, NULL, WINDOW, SIZE_MAX / 2);
    cache_load(&c, NULL, 0, 0, NULL, NULL);
    states[0] = xstrdup(";");
    for (unsigned step = 1; step <= STEPS; step++) {
        unsigned i = rnd(NAMES);
        char name[8];
        snprintf(name, sizeof name, "n%02u", i);
        if (ids[i] && rnd(3) == 0) {
            feed(&c, name, NULL, step);
            ids[i] = 0;
        } else {
            ids[i] = 10 + step;
            CLEANUP(blob_unref) struct blob *v = value_of(name, ids[i]);
            feed(&c, name, v, step);
        }
        struct strbuf b = STRBUF_INIT;
        for (unsigned j = 0; j < NAMES; j++) {
            if (ids[j]) {
                strbuf_addf(&b, "n%02u=%u ", j, ids[j]);
            }
        }
        strbuf_addc(&b, ';');
        states[step] = strbuf_steal(&b);
    }
    assert_int_equal(nets(&c)->floor, STEPS - WINDOW);
    for (uint64_t r = nets(&c)->floor; r <= STEPS; r++) {
        CLEANUP_FREE char *got = walk_text(&c, NULL, r);
        assert_string_equal(got, states[r]);
        /* And from each place in it. */
        CLEANUP_FREE char *part = walk_text(&c, "n05", r);
        const char *rest = states[r];
        while (*rest != ';' && strncmp(rest, "n05", 3) <= 0) {
            rest = strchr(rest, ' ') + 1;
        }
        assert_string_equal(part, rest);
    }
    for (unsigned i = 0; i <= STEPS; i++) {
        free(states[i]);
    }
    cache_done(&c);
}

/* ---- loading ---- */

static void history_lets_watches_resume_over_a_restart(void **state)
{
    struct cache c;
    CLEANUP(blob_unref) struct blob *a1 = value_of("a", 11);
    CLEANUP(blob_unref) struct blob *a2 = value_of("a", 12);
    CLEANUP(blob_unref) struct blob *b1 = value_of("b", 13);
    CLEANUP(blob_unref) struct blob *d1 = value_of("d", 14);
    cache_init(&c, NULL, 100, SIZE_MAX / 2);
    const struct store_event history[] = {
        {PREFIX "a", a2, a1, 6}, {PREFIX "b", b1, NULL, 7}, {PREFIX "d", NULL, d1, 8}};
    for (size_t i = 0; i < ARRAY_SIZE(history); i++) {
        cache_add_history(&c, &history[i]);
    }
    CLEANUP(blob_unref) struct blob *e1 = value_of("e", 15);
    struct store_item items[] = {{PREFIX "a", blob_ref(a2), 6},
                                 {PREFIX "b", blob_ref(b1), 7},
                                 {PREFIX "e", blob_ref(e1), 2}};
    assert_false(c.ready);
    cache_load(&c, items, ARRAY_SIZE(items), 9, NULL, NULL);
    assert_true(c.ready);
    assert_int_equal(c.revision, 9);
    /* What was read is not in memory a second time. */
    for (size_t i = 0; i < ARRAY_SIZE(items); i++) {
        assert_null(items[i].value);
    }
    assert_int_equal(e1->refs, 1);
    assert_int_equal(nets(&c)->floor, 5);
    CLEANUP_FREE char *now = walk_text(&c, NULL, 9);
    assert_string_equal(now, "a=12 b=13 e=15 ;");
    CLEANUP_FREE char *then = walk_text(&c, NULL, 5);
    assert_string_equal(then, "a=11 d=14 e=15 ;");
    CLEANUP_FREE char *between = walk_text(&c, NULL, 7);
    assert_string_equal(between, "a=12 b=13 d=14 e=15 ;");
    /* Each object is there once: the event's and the set's are the same. */
    assert_ptr_equal(keyset_get(&nets(&c)->objects, "a"), cache_event_at(nets(&c), 0)->new);
    assert_int_equal(cache_event_after(nets(&c), 6), 1);
    assert_int_equal(cache_event_after(nets(&c), 8), 3);
    cache_done(&c);
}

static void a_revision_of_several_events_is_known_as_such(void **state)
{
    struct cache c;
    CLEANUP(blob_unref) struct blob *v = value_of("a", 11);
    cache_init(&c, NULL, 3, SIZE_MAX / 2);
    cache_load(&c, NULL, 0, 3, NULL, NULL);
    assert_false(cache_revision_is_shared(nets(&c), 3));
    feed(&c, "a", v, 4);
    feed(&c, "b", v, 5);
    feed(&c, "c", v, 5);
    for (uint64_t revision = 0; revision < 8; revision++) {
        assert_int_equal(cache_revision_is_shared(nets(&c), revision), revision == 5);
    }
    /* The first of both, and then the second, leaves the window. */
    feed(&c, "d", v, 6);
    feed(&c, "e", v, 7);
    assert_int_equal(nets(&c)->floor, 5);
    assert_true(cache_revision_is_shared(nets(&c), 5));
    feed(&c, "f", v, 8);
    for (uint64_t revision = 0; revision < 10; revision++) {
        assert_false(cache_revision_is_shared(nets(&c), revision));
    }
    cache_done(&c);
}

static void a_second_snapshot_replaces_everything(void **state)
{
    struct cache c;
    CLEANUP(blob_unref) struct blob *a = value_of("a", 11);
    CLEANUP(blob_unref) struct blob *b = value_of("b", 12);
    cache_init(&c, NULL, 100, SIZE_MAX / 2);
    cache_load(&c, NULL, 0, 3, NULL, NULL);
    assert_int_equal(nets(&c)->floor, 3);
    feed(&c, "a", a, 4);
    struct store_item items[] = {{PREFIX "b", blob_ref(b), 8}};
    cache_load(&c, items, 1, 9, NULL, NULL);
    CLEANUP_FREE char *now = walk_text(&c, NULL, 9);
    assert_string_equal(now, "b=12 ;");
    assert_int_equal(nets(&c)->floor, 9);
    assert_int_equal(nets(&c)->n_events, 0);
    cache_done(&c);
}

static void foreign_and_broken_values_do_no_harm(void **state)
{
    struct cache c;
    cache_init(&c, NULL, 100, SIZE_MAX / 2);
    cache_load(&c, NULL, 0, 0, NULL, NULL);
    struct cache_event ev;
    CLEANUP(blob_unref) struct blob *junk = blob_new("{", 1);
    CLEANUP(blob_unref)
    struct blob *other = blob_new("{\"metadata\":{\"name\":\"x\","
                                  "\"resourceVersion\":\"77\"},\"netid\":12}",
                                  59);
    assert_null(cache_add_event(
        &c, &(struct store_event){.key = "/registry/leases/x", .value = junk, .revision = 1}, &ev));
    feed(&c, "x", junk, 2);
    assert_null(keyset_get(&nets(&c)->objects, "x"));
    /* Not in our form: brought into it. */
    feed(&c, "x", other, 3);
    struct object *o = keyset_get(&nets(&c)->objects, "x");
    assert_string_equal(o->text->data,
                        "{\"kind\":\"NetNamespace\",\"apiVersion\":\"network.openshift.io/v1\","
                        "\"metadata\":{\"resourceVersion\":\"3\",\"name\":\"x\"},\"netid\":12}");
    CLEANUP(blob_unref) struct blob *later = object_text_at(o, nets(&c)->head, 1234);
    assert_non_null(strstr(later->data, "{\"resourceVersion\":\"1234\",\"name\":\"x\"}"));
    assert_null(cache_unreadable(nets(&c), NULL, NULL));
    /* What was there and cannot be read any more is not gone. */
    feed(&c, "x", junk, 4);
    assert_ptr_equal(keyset_get(&nets(&c)->objects, "x"), o);
    assert_string_equal(cache_unreadable(nets(&c), NULL, NULL), "x");
    assert_string_equal(cache_unreadable(nets(&c), "x", NULL), "x");
    assert_null(cache_unreadable(nets(&c), "y", NULL));
    assert_int_equal(c.revision, 4);
    /* Until it is deleted. */
    feed(&c, "x", NULL, 5);
    assert_null(keyset_get(&nets(&c)->objects, "x"));
    assert_null(cache_unreadable(nets(&c), NULL, NULL));
    cache_done(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_keyset_is_a_sorted_set),
        cmocka_unit_test(keys_in_order_fill_the_chunks),
        cmocka_unit_test(every_past_state_in_the_window_can_be_read),
        cmocka_unit_test(history_lets_watches_resume_over_a_restart),
        cmocka_unit_test(a_revision_of_several_events_is_known_as_such),
        cmocka_unit_test(a_second_snapshot_replaces_everything),
        cmocka_unit_test(foreign_and_broken_values_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
