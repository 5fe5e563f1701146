/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

struct item {
    int value;
    struct list node;
    struct hmap_node hnode;
};

static void lists_keep_order(void **state)
{
    struct list l = LIST_INIT(&l);
    struct item items[5];
    assert_true(list_is_empty(&l));
    assert_null(list_pop_front(&l));
    for (int i = 0; i < 5; i++) {
        items[i].value = i;
        if (i < 3) {
            list_push_back(&l, &items[i].node);
        } else {
            list_push_front(&l, &items[i].node);
        }
    }
    static const int order[] = {4, 3, 0, 1, 2};
    struct item *it;
    size_t n = 0;
    LIST_FOREACH (it, struct item, node, &l) {
        assert_int_equal(it->value, order[n++]);
    }
    assert_int_equal(list_size(&l), 5);
    /* Members may go while the list is walked, and going twice is harmless. */
    LIST_FOREACH (it, struct item, node, &l) {
        if (it->value % 2) {
            list_remove(&it->node);
            list_remove(&it->node);
        }
    }
    assert_int_equal(list_size(&l), 3);
    assert_ptr_equal(list_pop_front(&l), &items[4].node);
    assert_ptr_equal(list_pop_front(&l), &items[0].node);
    assert_ptr_equal(list_pop_front(&l), &items[2].node);
    assert_true(list_is_empty(&l));
}

static void hash_maps_hold_many_with_few_hashes(void **state)
{
    enum { N = 1000, HASHES = 37 };
    struct hmap m;
    hmap_init(&m);
    struct item *items = xcalloc(N, sizeof *items), *it;
    assert_null(hmap_first_with_hash(&m, 5));
    for (int i = 0; i < N; i++) {
        items[i].value = i;
        hmap_insert(&m, &items[i].hnode, (uint32_t) i % HASHES);
    }
    assert_int_equal(m.n, N);
    int sum = 0, n = 0;
    HMAP_FOREACH (it, struct item, hnode, &m) {
        sum += it->value;
        n++;
    }
    assert_int_equal(n, N);
    assert_int_equal(sum, N * (N - 1) / 2);
    n = 0;
    HMAP_FOREACH_WITH_HASH (it, struct item, hnode, 5, &m) {
        assert_int_equal(it->value % HASHES, 5);
        n++;
    }
    assert_int_equal(n, (N - 5 + HASHES - 1) / HASHES);
    /* Removal of the current member while iterating. */
    HMAP_FOREACH (it, struct item, hnode, &m) {
        if (it->value % 2) {
            hmap_remove(&m, &it->hnode);
            it->value = -1;
        }
    }
    assert_int_equal(m.n, N / 2);
    n = 0;
    HMAP_FOREACH (it, struct item, hnode, &m) {
        assert_int_equal(it->value % 2, 0);
        n++;
    }
    assert_int_equal(n, N / 2);
    hmap_done(&m);
    assert_int_equal(m.n, 0);
    free(items);
}

static void an_empty_iteration_visits_nothing(void **state)
{
    struct hmap m = {0}; /* Zeroed memory is an empty map too. */
    struct item *it, one;
    HMAP_FOREACH (it, struct item, hnode, &m) {
        fail_msg("%d", it->value);
    }
    hmap_insert(&m, &one.hnode, 9);
    assert_ptr_equal(hmap_first_with_hash(&m, 9), &one.hnode);
    hmap_done(&m);
    struct smap s;
    struct smap_entry *e;
    smap_init(&s, NULL);
    SMAP_FOREACH (e, &s) {
        fail_msg("%s", e->key);
    }
    smap_done(&s);
}

static int freed;
static void count_free(void *p)
{
    freed++;
    free(p);
}

static void string_maps_own_keys_and_values(void **state)
{
    struct smap m;
    smap_init(&m, count_free);
    freed = 0;
    char key[32];
    for (int i = 0; i < 200; i++) {
        snprintf(key, sizeof key, "key-%d", i);
        smap_set(&m, key, xasprintf("%d", i));
    }
    assert_int_equal(smap_size(&m), 200);
    assert_string_equal(smap_get(&m, "key-150"), "150");
    assert_null(smap_get(&m, "key-200"));
    int n = 0;
    struct smap_entry *e;
    SMAP_FOREACH (e, &m) {
        snprintf(key, sizeof key, "key-%d", n++);
        assert_string_equal(e->key, key);
    }
    smap_set(&m, "key-5", xstrdup("new"));
    assert_int_equal(freed, 1);
    void *same = smap_get(&m, "key-5");
    smap_set(&m, "key-5", same);
    assert_int_equal(freed, 1);
    assert_string_equal(smap_get(&m, "key-5"), "new");
    assert_true(smap_remove(&m, "key-6"));
    assert_false(smap_remove(&m, "key-6"));
    assert_int_equal(freed, 2);
    CLEANUP_FREE char *taken = smap_take(&m, "key-7");
    assert_string_equal(taken, "7");
    assert_null(smap_take(&m, "key-7"));
    assert_int_equal(freed, 2);
    assert_int_equal(smap_size(&m), 198);
    SMAP_FOREACH (e, &m) {
        if (str_has_suffix(e->key, "9")) {
            CLEANUP_FREE char *k = xstrdup(e->key);
            smap_remove(&m, k);
        }
    }
    assert_int_equal(smap_size(&m), 178);
    smap_clear(&m);
    assert_int_equal(smap_size(&m), 0);
    assert_int_equal(freed, 200);
    smap_set(&m, "again", xstrdup("x"));
    assert_string_equal(smap_get(&m, "again"), "x");
    smap_done(&m);
    assert_int_equal(freed, 201);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_keep_order),
        cmocka_unit_test(hash_maps_hold_many_with_few_hashes),
        cmocka_unit_test(an_empty_iteration_visits_nothing),
        cmocka_unit_test(string_maps_own_keys_and_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
