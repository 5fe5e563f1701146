/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/access/priority.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

static const struct priority_config usual = {
    .seats = 100, .max_waiting = 1000, .max_flow = 1000, .max_wait_ms = 1000};

static struct priority_ticket *enter(struct priority *p, struct priority_ticket *t,
                                     enum priority_level level, uint32_t flow, unsigned cost)
{
    struct priority_ticket *evicted;
    assert_int_equal(priority_enter(p, t, level, flow, cost, 0, &evicted), 0);
    return evicted;
}

/* Runs the next at once to its end; NULL: none in this round. */
static struct priority_ticket *run(struct priority *p)
{
    struct priority_ticket *t = priority_next(p, 0);
    if (t) {
        assert_true(t->running);
        priority_leave(p, t);
        assert_null(t->flow);
    }
    return t;
}

static struct priority_ticket *run_some_round(struct priority *p)
{
    struct priority_ticket *t = run(p);
    if (!t && priority_wants_round(p)) {
        priority_new_round(p);
        t = run(p);
    }
    return t;
}

static void leave_all(struct priority *p)
{
    struct priority_ticket *t;
    while ((t = priority_any_waiting(p))) {
        priority_leave(p, t);
    }
}

static void a_node_is_served_before_a_flood(void **state)
{
    struct priority *p = priority_new(&usual);
    struct priority_ticket *flood = xcalloc(1000, sizeof *flood), node = {0};
    for (int i = 0; i < 1000; i++) {
        enter(p, &flood[i], PRIORITY_DEFAULT, 1, 1);
    }
    enter(p, &node, PRIORITY_SYSTEM, 2, 1);
    assert_ptr_equal(run(p), &node);
    /* Also when the round has begun with the flood. */
    assert_ptr_equal(run(p), &flood[0]);
    enter(p, &node, PRIORITY_SYSTEM, 2, 1);
    assert_ptr_equal(run(p), &node);
    leave_all(p);
    priority_free(p);
    free(flood);
}

static void a_round_is_shared_and_starves_nobody(void **state)
{
    struct priority *p = priority_new(&usual);
    struct priority_ticket *t = xcalloc(900, sizeof *t);
    for (int i = 0; i < 900; i++) {
        enter(p, &t[i], (enum priority_level)(i % 3), (uint32_t) i % 3, 1);
    }
    unsigned begun[PRIORITY_MAX] = {0};
    struct priority_ticket *next;
    while ((next = run(p))) {
        begun[next->level]++;
    }
    assert_int_equal(begun[PRIORITY_SYSTEM], 64);
    assert_int_equal(begun[PRIORITY_DEFAULT], 32);
    assert_int_equal(begun[PRIORITY_LOW], 8);
    assert_true(priority_wants_round(p));
    priority_new_round(p);
    assert_non_null(run(p));
    leave_all(p);
    assert_false(priority_wants_round(p));
    priority_free(p);
    free(t);
}

static void flows_of_a_level_take_turns(void **state)
{
    struct priority *p = priority_new(&usual);
    struct priority_ticket *many = xcalloc(500, sizeof *many), few[3] = {{{0}}};
    for (int i = 0; i < 500; i++) {
        enter(p, &many[i], PRIORITY_DEFAULT, 1, 1);
    }
    assert_ptr_equal(run(p), &many[0]);
    for (int i = 0; i < 3; i++) {
        enter(p, &few[i], PRIORITY_DEFAULT, 2, 1);
    }
    int at = 0;
    for (int i = 0; i < 6; i++) {
        struct priority_ticket *t = run(p);
        at += t == &few[at < 3 ? at : 0];
    }
    assert_int_equal(at, 3); /* In six turns of two flows. */
    leave_all(p);
    priority_free(p);
    free(many);
}

static void costs_count(void **state)
{
    struct priority *p = priority_new(&usual);
    struct priority_ticket *lists = xcalloc(50, sizeof *lists), *gets = xcalloc(500, sizeof *gets);
    for (int i = 0; i < 50; i++) {
        enter(p, &lists[i], PRIORITY_DEFAULT, 1, 10);
    }
    for (int i = 0; i < 500; i++) {
        enter(p, &gets[i], PRIORITY_DEFAULT, 2, 1);
    }
    unsigned n_lists = 0, n_gets = 0;
    while (n_lists + n_gets < 220) {
        struct priority_ticket *t = run_some_round(p);
        assert_non_null(t);
        *(t->cost == 10 ? &n_lists : &n_gets) += 1;
    }
    assert_in_range(n_lists, 19, 21);
    assert_in_range(n_gets, 199, 201);
    /* A flow that had much is owed less also when it comes back after it was away. */
    leave_all(p);
    enter(p, &lists[0], PRIORITY_DEFAULT, 3, 30);
    assert_ptr_equal(run_some_round(p), &lists[0]);
    enter(p, &lists[0], PRIORITY_DEFAULT, 3, 30);
    for (int i = 0; i < 30; i++) {
        enter(p, &gets[i], PRIORITY_DEFAULT, 4, 1);
    }
    for (int i = 0; i < 30; i++) {
        assert_ptr_equal(run_some_round(p), &gets[i]);
    }
    assert_ptr_equal(run_some_round(p), &lists[0]);
    priority_free(p);
    free(lists);
    free(gets);
}

static void who_is_alone_does_not_wait(void **state)
{
    struct priority *p = priority_new(&usual);
    struct priority_ticket t = {0};
    for (int i = 0; i < 100; i++) {
        enter(p, &t, PRIORITY_LOW, 1, 8);
        assert_ptr_equal(run_some_round(p), &t);
    }
    priority_free(p);
}

static void seats_are_held_until_they_are_left(void **state)
{
    struct priority_config cfg = usual;
    cfg.seats = 10; /* 4, 4 and 2. */
    struct priority *p = priority_new(&cfg);
    struct priority_ticket t[6] = {{{0}}}, other = {0}, big = {0}, system = {0};
    for (int i = 0; i < 6; i++) {
        enter(p, &t[i], PRIORITY_DEFAULT, 1, 1);
    }
    /* One flow may have three of four seats. */
    for (int i = 0; i < 3; i++) {
        assert_ptr_equal(priority_next(p, 0), &t[i]);
    }
    assert_null(priority_next(p, 0));
    assert_false(priority_wants_round(p));
    enter(p, &other, PRIORITY_DEFAULT, 2, 1);
    assert_ptr_equal(priority_next(p, 0), &other);
    /* Other levels have seats of their own. */
    enter(p, &system, PRIORITY_SYSTEM, 1, 100);
    assert_ptr_equal(priority_next(p, 0), &system);
    assert_int_equal(system.cost, 3);
    struct priority_stats s = priority_stats(p, PRIORITY_DEFAULT);
    assert_int_equal(s.seats, 4);
    assert_int_equal(s.running_seats, 4);
    assert_int_equal(s.running, 4);
    assert_int_equal(s.waiting, 3);
    /* Who needs more than is free is not passed by those who need less. */
    enter(p, &big, PRIORITY_DEFAULT, 3, 3);
    priority_leave(p, &t[0]);
    assert_null(priority_next(p, 0));
    priority_leave(p, &t[1]);
    priority_leave(p, &other);
    assert_ptr_equal(priority_next(p, 0), &big);
    priority_leave(p, &t[2]);
    priority_leave(p, &big);
    for (int i = 3; i < 6; i++) {
        assert_ptr_equal(priority_next(p, 0), &t[i]);
        priority_leave(p, &t[i]);
        priority_leave(p, &t[i]); /* Once more is harmless. */
    }
    priority_leave(p, &system);
    priority_free(p);
}

static void a_full_queue_turns_the_flood_away_and_not_the_others(void **state)
{
    struct priority_config cfg = usual;
    cfg.max_waiting = 100;
    cfg.max_flow = 80;
    struct priority *p = priority_new(&cfg);
    struct priority_ticket flood[120] = {{{0}}}, other[60] = {{{0}}}, *evicted;
    for (int i = 0; i < 80; i++) {
        assert_null(enter(p, &flood[i], PRIORITY_DEFAULT, 1, 1));
    }
    assert_int_equal(priority_enter(p, &flood[80], PRIORITY_DEFAULT, 1, 1, 0, &evicted), -EBUSY);
    assert_null(flood[80].flow);
    for (int i = 0; i < 20; i++) {
        assert_null(enter(p, &other[i], PRIORITY_DEFAULT, 2, 1));
    }
    /* Full: the newest of the flood give way, until both have as many. */
    for (int i = 20; i < 49; i++) {
        assert_ptr_equal(enter(p, &other[i], PRIORITY_DEFAULT, 2, 1), &flood[79 - (i - 20)]);
    }
    assert_int_equal(priority_stats(p, PRIORITY_DEFAULT).waiting, 100);
    for (int i = 49; i < 51; i++) {
        int r = priority_enter(p, &other[i], PRIORITY_DEFAULT, 2, 1, 0, &evicted);
        assert_int_equal(r, i == 49 ? 0 : -EBUSY);
    }
    assert_int_equal(priority_stats(p, PRIORITY_DEFAULT).refused_full, 1 + 29 + 2);
    leave_all(p);
    priority_free(p);
}

static void nobody_waits_too_long(void **state)
{
    struct priority *p = priority_new(&usual);
    struct priority_ticket t[3] = {{{0}}}, *evicted;
    assert_int_equal(priority_deadline_ms(p), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(priority_enter(p, &t[i], PRIORITY_DEFAULT, (uint32_t) i, 1,
                                        (uint64_t) (100 * (i + 1)), &evicted),
                         0);
    }
    assert_int_equal(priority_deadline_ms(p), 1100);
    assert_null(priority_expire(p, 1099));
    assert_ptr_equal(priority_expire(p, 1200), &t[0]);
    assert_ptr_equal(priority_expire(p, 1200), &t[1]);
    assert_null(priority_expire(p, 1200));
    assert_int_equal(priority_deadline_ms(p), 1300);
    assert_ptr_equal(priority_next(p, 1250), &t[2]);
    struct priority_stats s = priority_stats(p, PRIORITY_DEFAULT);
    assert_int_equal(s.refused_late, 2);
    assert_int_equal(s.waited_ms, 950);
    priority_leave(p, &t[2]);
    priority_free(p);
}

static void each_level_has_its_seats_and_its_deadline(void **state)
{
    static const unsigned seats[PRIORITY_MAX] = {40, 40, 20}, one_flow[PRIORITY_MAX] = {30, 30, 15};
    for (int level = 0; level < PRIORITY_MAX; level++) {
        struct priority *p = priority_new(&usual);
        struct priority_ticket t = {0}, *evicted;
        assert_int_equal(priority_stats(p, (enum priority_level) level).seats, seats[level]);
        assert_null(priority_any_waiting(p));
        assert_int_equal(priority_enter(p, &t, (enum priority_level) level, 1, 100, 500, &evicted),
                         0);
        assert_int_equal(t.cost, one_flow[level]);
        assert_ptr_equal(priority_any_waiting(p), &t);
        assert_int_equal(priority_deadline_ms(p), 1500);
        assert_null(priority_expire(p, 1499));
        assert_ptr_equal(priority_expire(p, 1500), &t);
        assert_null(priority_any_waiting(p));
        priority_free(p);
    }
}

/* Idle flows are forgotten when there are too many flows; flows with requests are kept. */
static void busy_flows_are_never_forgotten(void **state)
{
    enum { N = 1500 };
    struct priority_config cfg = usual;
    cfg.max_waiting = N;
    struct priority *p = priority_new(&cfg);
    struct priority_ticket *t = xcalloc(N, sizeof *t), idle = {0};
    for (uint32_t i = 0; i < N; i++) {
        enter(p, &t[i], PRIORITY_DEFAULT, i, 1);
    }
    assert_int_equal(priority_stats(p, PRIORITY_DEFAULT).flows, N);
    assert_int_equal(priority_stats(p, PRIORITY_DEFAULT).waiting, N);
    enter(p, &idle, PRIORITY_SYSTEM, 7, 1);
    unsigned served = 0;
    while (run_some_round(p)) {
        served++;
    }
    assert_int_equal(served, N + 1);
    priority_free(p);
    free(t);
}

static void flows_that_are_gone_are_forgotten(void **state)
{
    struct priority *p = priority_new(&usual);
    struct priority_ticket t = {0};
    for (uint32_t i = 0; i < 20000; i++) {
        enter(p, &t, PRIORITY_DEFAULT, i * 7919, 30);
        assert_ptr_equal(run_some_round(p), &t);
        assert_true(priority_stats(p, PRIORITY_DEFAULT).flows <= 1025);
    }
    priority_free(p);
}

/* Random requests, whatever they do: every one that entered runs or is given back once, and no
 * more seats are taken than there are. */
static void books_always_balance(void **state)
{
    enum { N = 400 };
    struct priority_config cfg = {
        .seats = 30, .max_waiting = 60, .max_flow = 25, .max_wait_ms = 50};
    struct priority *p = priority_new(&cfg);
    struct priority_ticket t[N] = {{{0}}}, *evicted, *next;
    uint64_t seed = 1, now = 0, entered = 0, ended = 0;
    for (int step = 0; step < 200000; step++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint32_t r = (uint32_t) (seed >> 33);
        struct priority_ticket *x = &t[r % N];
        switch (r >> 10 & 7) {
        case 0:
        case 1:
        case 2:
            if (!x->flow && priority_enter(p, x, r >> 13 & 1 ? PRIORITY_LOW : PRIORITY_SYSTEM,
                                           r >> 14 & 7, r >> 17 & 15, now, &evicted) == 0) {
                entered++;
                ended += evicted != NULL;
            }
            break;
        case 3:
            ended += x->flow != NULL;
            priority_leave(p, x);
            break;
        case 4:
            now += r >> 20 & 3;
            while (priority_expire(p, now)) {
                ended++;
            }
            break;
        default:
            priority_new_round(p);
            while ((next = priority_next(p, now))) {
                assert_true(next->running);
            }
        }
        for (int l = 0; l < PRIORITY_MAX; l++) {
            struct priority_stats s = priority_stats(p, l);
            assert_true(s.running_seats <= s.seats && s.waiting <= cfg.max_waiting);
        }
    }
    for (int i = 0; i < N; i++) {
        ended += t[i].flow != NULL;
        priority_leave(p, &t[i]);
    }
    assert_int_equal(entered, ended);
    assert_true(entered > 1000);
    priority_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_is_served_before_a_flood),
        cmocka_unit_test(a_round_is_shared_and_starves_nobody),
        cmocka_unit_test(flows_of_a_level_take_turns),
        cmocka_unit_test(costs_count),
        cmocka_unit_test(who_is_alone_does_not_wait),
        cmocka_unit_test(seats_are_held_until_they_are_left),
        cmocka_unit_test(a_full_queue_turns_the_flood_away_and_not_the_others),
        cmocka_unit_test(nobody_waits_too_long),
        cmocka_unit_test(each_level_has_its_seats_and_its_deadline),
        cmocka_unit_test(busy_flows_are_never_forgotten),
        cmocka_unit_test(flows_that_are_gone_are_forgotten),
        cmocka_unit_test(books_always_balance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
