/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "dns/table.h"

static struct dns_item *item(uint32_t hash)
{
    struct dns_item *i = xcalloc(1, sizeof *i + DNS_ITEM_HEAD);
    i->hash = hash;
    return i;
}

static bool has(const struct dns_table *t, const struct dns_item *wanted)
{
    struct dns_cursor c = dns_table_cursor(t, wanted->hash);
    const struct dns_item *i;
    while ((i = dns_cursor_next(&c)) != NULL && i != wanted) {
    }
    return i != NULL;
}

/* What was taken out stays until each reader that may have found it is done, the first
 * of all epochs too. */
static void what_a_reader_may_have_is_not_freed(void **state)
{
    struct dns_epochs e;
    dns_epochs_init(&e);
    int a = dns_epochs_add_reader(&e), b = dns_epochs_add_reader(&e);
    assert_true(a >= 0 && b >= 0 && a != b);
    dns_epochs_enter(&e, a);
    dns_epochs_retire(&e, xstrdup("old"));
    assert_non_null(e.first);
    dns_epochs_enter(&e, b); /* Comes too late to have it. */
    dns_epochs_leave(&e, a);
    dns_epochs_retire(&e, NULL); /* Nothing. */
    assert_non_null(e.first);
    dns_epochs_retire(&e, xstrdup("new"));
    assert_non_null(e.first);
    assert_string_equal(e.first->memory, "new");
    assert_null(e.first->next);
    dns_epochs_leave(&e, b);
    dns_epochs_retire(&e, xstrdup("last"));
    assert_null(e.first);
    dns_epochs_done(&e);
}

static void there_are_so_many_readers(void **state)
{
    struct dns_epochs e;
    dns_epochs_init(&e);
    for (int i = 0; i < DNS_READERS_MAX; i++) {
        assert_int_equal(dns_epochs_add_reader(&e), i);
    }
    assert_int_equal(dns_epochs_add_reader(&e), -ENOSPC);
    dns_epochs_remove_reader(&e, -1);
    assert_int_equal(dns_epochs_add_reader(&e), -ENOSPC);
    dns_epochs_remove_reader(&e, 7);
    assert_int_equal(dns_epochs_add_reader(&e), 7);
}

static void items_are_found_until_they_are_removed(void **state)
{
    struct dns_epochs e;
    struct dns_table t;
    struct dns_item *items[100];
    dns_epochs_init(&e);
    dns_table_init(&t, &e);
    for (size_t i = 0; i < ARRAY_SIZE(items); i++) {
        items[i] = item((uint32_t) (i % 10)); /* Ten of each hash. */
        dns_table_put(&t, items[i]);
    }
    assert_int_equal(t.n, 100);
    struct dns_item *other = item(3);
    assert_false(has(&t, other));
    dns_table_replace(&t, items[3], other);
    assert_true(has(&t, other));
    assert_int_equal(t.n, 100);
    items[3] = other;
    for (size_t i = 0; i < ARRAY_SIZE(items); i++) {
        assert_true(has(&t, items[i]));
    }
    dns_table_remove(&t, items[50]);
    assert_int_equal(t.n, 99);
    assert_true(has(&t, items[60]));
    struct dns_item absent = {.hash = 50};
    assert_false(has(&t, &absent));
    dns_table_done(&t);
    dns_epochs_done(&e);
}

/* Half of the slots at most are used, by what is there or was; and what comes and goes
 * makes no table grow. */
static void slots_are_for_what_is_there(void **state)
{
    struct dns_epochs e;
    struct dns_table t;
    dns_epochs_init(&e);
    dns_table_init(&t, &e);
    const struct dns_slots *first = t.slots;
    for (uint32_t i = 0; i < 32; i++) {
        dns_table_put(&t, item(i));
        assert_ptr_equal(t.slots, first);
    }
    dns_table_put(&t, item(32));
    const struct dns_slots *second = t.slots;
    assert_ptr_not_equal(second, first);
    assert_int_equal(second->mask, 127);
    dns_table_put(&t, item(33));
    assert_ptr_equal(t.slots, second);
    unsigned rebuilt = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        struct dns_item *passing = item(1000 + i);
        const struct dns_slots *before = t.slots;
        dns_table_put(&t, passing);
        rebuilt += t.slots != before;
        dns_table_remove(&t, passing);
    }
    assert_true(rebuilt >= 5 && rebuilt <= 20); /* Once in a hundred times. */
    assert_int_equal(t.slots->mask, 255);
    assert_int_equal(t.n, 34);
    dns_table_done(&t);
    dns_epochs_done(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_reader_may_have_is_not_freed),
        cmocka_unit_test(there_are_so_many_readers),
        cmocka_unit_test(items_are_found_until_they_are_removed),
        cmocka_unit_test(slots_are_for_what_is_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
