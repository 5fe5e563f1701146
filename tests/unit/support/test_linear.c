/* SPDX-License-Identifier: Apache-2.0 */
/* The checker of histories: what is right passes, and each planted violation is found. */
#include "linear.h"

#include "base/macro.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define R(b, e, v)                 \
    {                              \
        b, e, LINEAR_READ, 0, v, 0 \
    }
#define W(b, e, v)                  \
    {                               \
        b, e, LINEAR_WRITE, 0, v, 0 \
    }
#define S(b, e, f, v, d)           \
    {                              \
        b, e, LINEAR_SWAP, f, v, d \
    }
#define NEVER LINEAR_UNKNOWN
#define MAX_OPS 6

struct sample {
    const char *what;
    bool ok;
    size_t n;
    struct linear_op ops[MAX_OPS];
};

static const struct sample samples[] = {
    {"nothing", true, 0, {{0}}},
    {"reads see the write before them", true, 3, {W(0, 1, 7), R(2, 3, 7), R(4, 5, 7)}},
    {"a read during a write sees old or new", true, 3, {W(0, 9, 7), R(1, 2, 0), R(3, 4, 7)}},
    {"a read goes back to the old value", false, 3, {W(0, 9, 7), R(1, 2, 7), R(3, 4, 0)}},
    {"a stale read after the write", false, 2, {W(0, 1, 7), R(2, 3, 0)}},
    {"a value that nobody wrote", false, 2, {W(0, 1, 7), R(2, 3, 8)}},
    {"an acknowledged write is lost", false, 3, {W(0, 1, 7), W(2, 3, 8), R(4, 5, 7)}},
    {"two writes at once, either last", true, 3, {W(0, 5, 7), W(0, 5, 8), R(6, 7, 7)}},
    {"two readers disagree about the order",
     false,
     6,
     {W(0, 20, 7), W(0, 20, 8), R(1, 2, 7), R(3, 4, 8), R(5, 6, 7), R(7, 8, 8)}},
    {"a swap of what is there", true, 3, {W(0, 1, 7), S(2, 3, 7, 8, true), R(4, 5, 8)}},
    {"two swaps of one value both succeed",
     false,
     3,
     {W(0, 1, 7), S(2, 9, 7, 8, true), S(3, 9, 7, 9, true)}},
    {"one of two swaps fails", true, 3, {W(0, 1, 7), S(2, 9, 7, 8, true), S(3, 9, 7, 9, false)}},
    {"a swap fails without a reason", false, 2, {W(0, 1, 7), S(2, 3, 7, 8, false)}},
    {"a swap of another value succeeds", false, 2, {W(0, 1, 7), S(2, 3, 6, 8, true)}},
    {"a failed swap has an effect", false, 3, {W(0, 1, 7), S(2, 3, 6, 8, false), R(4, 5, 8)}},
    {"creation and deletion are swaps with nothing",
     true,
     3,
     {S(0, 1, LINEAR_ABSENT, 7, true), S(2, 3, 7, LINEAR_ABSENT, true), R(4, 5, LINEAR_ABSENT)}},
    {"two creations both succeed",
     false,
     2,
     {S(0, 9, LINEAR_ABSENT, 7, true), S(0, 9, LINEAR_ABSENT, 8, true)}},
    {"an unknown write happened", true, 2, {W(0, NEVER, 7), R(5, 6, 7)}},
    {"an unknown write never happened", true, 2, {W(0, NEVER, 7), R(5, 6, 0)}},
    {"an unknown write happens late", true, 3, {W(0, NEVER, 7), R(5, 6, 0), R(7, 8, 7)}},
    {"an unknown write happens and is undone", false, 3, {W(0, NEVER, 7), R(5, 6, 7), R(7, 8, 0)}},
    {"an unknown write is seen before it began", false, 2, {R(0, 1, 7), W(2, NEVER, 7)}},
    {"an unknown write happens twice",
     false,
     4,
     {W(0, NEVER, 7), R(1, 2, 7), W(3, 4, 8), R(5, 6, 7)}},
    {"an unknown swap happened", true, 3, {W(0, 1, 7), S(2, NEVER, 7, 8, false), R(5, 6, 8)}},
    {"an unknown swap cannot have happened",
     false,
     3,
     {W(0, 1, 7), S(2, NEVER, 6, 8, false), R(5, 6, 8)}},
};

static void known_histories_are_judged_right(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
        const struct sample *s = &samples[i];
        if (linear_check(s->ops, s->n, LINEAR_ABSENT) != s->ok) {
            fail_msg("%s: judged %s", s->what, s->ok ? "wrong" : "right");
        }
    }
}

static void the_order_of_the_list_does_not_matter(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
        struct linear_op ops[MAX_OPS];
        for (size_t k = 0; k < samples[i].n; k++) {
            ops[k] = samples[i].ops[samples[i].n - 1 - k];
        }
        assert_int_equal(linear_check(ops, samples[i].n, LINEAR_ABSENT), samples[i].ok);
    }
}

#define LONG 400
#define CLIENTS 6

/* A history as a right register makes it: each operation takes effect at 'at',
 * somewhere in its time. */
static void simulate(struct linear_op *ops, size_t n, unsigned seed)
{
    uint64_t free_at[CLIENTS] = {0}, clock = 0;
    int64_t value = LINEAR_ABSENT, next = 1;
    for (size_t i = 0; i < n; i++) {
        /* Effects come in the order of 'i'; the calls around them overlap. */
        unsigned c = (unsigned) rand_r(&seed) % CLIENTS;
        clock = MAX(clock, free_at[c]) + 1 + (uint64_t) rand_r(&seed) % 5;
        uint64_t early = (uint64_t) rand_r(&seed) % 20;
        uint64_t begin = clock > early ? MAX(clock - early, free_at[c]) : free_at[c];
        struct linear_op *op = &ops[i];
        *op = (struct linear_op){.begin = begin, .end = clock + (uint64_t) rand_r(&seed) % 20};
        free_at[c] = op->end + 1;
        bool unknown = rand_r(&seed) % 20 == 0;
        switch (rand_r(&seed) % 3) {
        case 0:
            op->kind = LINEAR_READ;
            op->value = value;
            unknown = false;
            break;
        case 1:
            op->kind = LINEAR_WRITE;
            value = op->value = next++;
            break;
        default:
            op->kind = LINEAR_SWAP;
            op->from = rand_r(&seed) % 2 ? value : value + 1000000;
            op->value = next++;
            op->done = op->from == value;
            value = op->done ? op->value : value;
        }
        if (unknown) {
            op->end = LINEAR_UNKNOWN;
        }
    }
}

static void what_a_register_does_is_linearizable(void **state)
{
    struct linear_op ops[LONG];
    for (unsigned seed = 1; seed <= 40; seed++) {
        simulate(ops, LONG, seed);
        assert_true(linear_check(ops, LONG, LINEAR_ABSENT));
    }
}

/* One read of hundreds says what was overwritten long before, or what came long after. */
static void one_wrong_read_among_many_is_found(void **state)
{
    struct linear_op ops[LONG];
    unsigned found = 0;
    for (unsigned seed = 1; seed <= 40; seed++) {
        simulate(ops, LONG, seed);
        size_t i = LONG / 2;
        while (ops[i].kind != LINEAR_READ) {
            i++;
        }
        size_t j = seed % 2 ? i - 100 : i + 60;
        while (ops[j].kind != LINEAR_WRITE || ops[j].end == LINEAR_UNKNOWN) {
            j--;
        }
        /* Far enough apart for the calls not to overlap. */
        assert_true(seed % 2 ? ops[j].end < ops[i].begin : ops[i].end < ops[j].begin);
        ops[i].value = ops[j].value;
        found += !linear_check(ops, LONG, LINEAR_ABSENT);
    }
    assert_int_equal(found, 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_histories_are_judged_right),
        cmocka_unit_test(the_order_of_the_list_does_not_matter),
        cmocka_unit_test(what_a_register_does_is_linearizable),
        cmocka_unit_test(one_wrong_read_among_many_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
