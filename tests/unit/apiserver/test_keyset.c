/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the ordered set of objects with an array indexed by key. */
#include "apiserver/cache/keyset.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define MAX_KEYS 3000

/* Keys are numbers with leading zeros: they sort like the numbers. */
struct model {
    struct keyset set;
    struct object *at[MAX_KEYS]; /* NULL: absent. */
    size_t n;
};

static struct object *object_of(unsigned number)
{
    struct object *o = xcalloc(1, sizeof *o + 8);
    o->refs = 1;
    snprintf(o->key, 8, "%04u", number);
    return o;
}

static void put(struct model *m, unsigned number)
{
    struct object *o = object_of(number);
    struct object *old = keyset_put(&m->set, o);
    assert_ptr_equal(old, m->at[number]);
    m->n += !m->at[number];
    m->at[number] = o;
    if (old) {
        assert_int_equal(old->refs, 1);
        object_unref(old);
    }
}

static void take(struct model *m, unsigned number)
{
    char key[8];
    snprintf(key, sizeof key, "%04u", number);
    struct object *o = keyset_remove(&m->set, key);
    assert_ptr_equal(o, m->at[number]);
    if (o) {
        m->n--;
        m->at[number] = NULL;
        object_unref(o);
    }
}

/* Compares the results of all queries from the key 'first' on. */
static void check_from(const struct model *m, unsigned first)
{
    char key[8];
    snprintf(key, sizeof key, "%04u", first);
    struct keyset_pos pos = keyset_seek(&m->set, key);
    size_t before = 0;
    for (unsigned i = 0; i < first; i++) {
        before += m->at[i] != NULL;
    }
    assert_int_equal(keyset_rank(&m->set, pos), before);
    for (unsigned i = first; i < MAX_KEYS; i++) {
        if (m->at[i]) {
            assert_int_equal(keyset_rank(&m->set, pos), before++);
            assert_ptr_equal(keyset_next(&m->set, &pos), m->at[i]);
        }
    }
    assert_null(keyset_next(&m->set, &pos));
    assert_null(keyset_next(&m->set, &pos));
    assert_ptr_equal(keyset_get(&m->set, key), m->at[first]);
}

static void check(const struct model *m)
{
    size_t total = 0;
    assert_int_equal(m->set.n, m->n);
    for (size_t i = 0; i < m->set.n_chunks; i++) {
        assert_in_range(m->set.chunks[i]->n, 1, KEYSET_CHUNK);
        total += m->set.chunks[i]->n;
    }
    assert_int_equal(total, m->n);
    for (unsigned first = 0; first < MAX_KEYS; first += 97) {
        check_from(m, first);
    }
    check_from(m, MAX_KEYS - 1);
}

static void empty(struct model *m)
{
    keyset_done(&m->set);
    assert_int_equal(m->set.n, 0);
    assert_null(keyset_get(&m->set, "0000"));
    memset(m->at, 0, sizeof m->at);
    m->n = 0;
    check(m);
}

static void keys_in_order_fill_their_chunks(void **state)
{
    struct model *m = NEW(struct model);
    check(m);
    for (unsigned i = 0; i < MAX_KEYS; i++) {
        put(m, i);
    }
    check(m);
    assert_int_equal(m->set.n_chunks, (MAX_KEYS + KEYSET_CHUNK - 1) / KEYSET_CHUNK);
    empty(m);
    free(m);
}

static void keys_in_reverse_order_stay_sorted(void **state)
{
    struct model *m = NEW(struct model);
    for (unsigned i = MAX_KEYS; i > 0; i--) {
        put(m, i - 1);
        if (i % 257 == 0) {
            check(m);
        }
    }
    check(m);
    for (unsigned i = 0; i < MAX_KEYS; i++) {
        take(m, i);
        take(m, i);
        if (i % 257 == 0) {
            check(m);
        }
    }
    assert_int_equal(m->set.n_chunks, 0);
    check(m);
    keyset_done(&m->set);
    free(m);
}

/* Inserts a key at each position of a full chunk. */
static void a_full_chunk_is_split_at_any_position(void **state)
{
    for (unsigned place = 0; place <= KEYSET_CHUNK; place++) {
        struct model *m = NEW(struct model);
        for (unsigned i = 0; i < KEYSET_CHUNK; i++) {
            put(m, 2 * i + 1);
        }
        put(m, MAX_KEYS - 1); /* Makes a second chunk. */
        assert_int_equal(m->set.n_chunks, 2);
        put(m, 2 * place);
        for (unsigned i = 0; i < 2 * KEYSET_CHUNK + 2; i += 31) {
            check_from(m, i);
        }
        check_from(m, 2 * place);
        assert_int_equal(m->set.n, KEYSET_CHUNK + 2);
        empty(m);
        free(m);
    }
}

static void random_changes_leave_the_set_equal_to_the_array(void **state)
{
    struct model *m = NEW(struct model);
    uint32_t seed = 1;
    for (int step = 0; step < 30000; step++) {
        seed = seed * 1664525 + 1013904223;
        unsigned number = (seed >> 8) % MAX_KEYS;
        /* The set grows and shrinks in turn. */
        if ((seed >> 4) % 8 < (step / 5000 % 2 ? 2 : 6)) {
            put(m, number);
        } else {
            take(m, number);
        }
        if (step % 1500 == 0) {
            check(m);
        }
    }
    check(m);
    empty(m);
    free(m);
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(keys_in_order_fill_their_chunks),
        T(keys_in_reverse_order_stay_sorted),
        T(a_full_chunk_is_split_at_any_position),
        T(random_changes_leave_the_set_equal_to_the_array),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
