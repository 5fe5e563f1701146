/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of rolling updates: all small cases, against an oracle that moves one pod at a
 * time, and against what users are promised. */
#include "workload/rollout.h"

#include "json_text.h"

#include <math.h>

#define MOST 5

/* ---- bounds ---- */

static void shares_are_numbers_or_percentages(void **state)
{
    static const struct {
        const char *share;
        int64_t total, up, down;
    } cases[] = {{"3", 10, 3, 3},        {"0", 10, 0, 0},     {"'25%'", 10, 3, 2},
                 {"'25%'", 4, 1, 1},     {"'25%'", 1, 1, 0},  {"'0%'", 10, 0, 0},
                 {"'100%'", 7, 7, 7},    {"'150%'", 3, 5, 4}, {"'x'", 3, 0, 0},
                 {"'33%'", 100, 33, 33}, {"'1%'", 0, 0, 0},   {"null", 5, 0, 0}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *v = from(cases[i].share);
        assert_int_equal(rollout_share(v, cases[i].total, true), cases[i].up);
        assert_int_equal(rollout_share(v, cases[i].total, false), cases[i].down);
    }
}

static void one_of_the_bounds_is_never_0(void **state)
{
    static const struct {
        const char *surge, *unavailable;
        int64_t desired, want_surge, want_unavailable;
    } cases[] = {{"'25%'", "'25%'", 10, 3, 2}, {"'25%'", "'25%'", 1, 1, 0}, {"0", "'25%'", 1, 0, 1},
                 {"0", "'1%'", 50, 0, 1},      {"0", "5", 3, 0, 3},         {"2", "0", 3, 2, 0},
                 {"'0%'", "'0%'", 4, 0, 1},    {"0", "0", 0, 0, 0}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *s = from(cases[i].surge);
        CLEANUP(json_free) struct json *u = from(cases[i].unavailable);
        int64_t surge, unavailable;
        rollout_bounds(s, u, cases[i].desired, &surge, &unavailable);
        assert_int_equal(surge, cases[i].want_surge);
        assert_int_equal(unavailable, cases[i].want_unavailable);
    }
}

/* ---- the oracle: one pod at a time ---- */

struct oracle {
    int desired, surge, unavailable;
    int size[3], available[3]; /* [0] and [1] are old, the oldest first; [2] is the new set. */
};

static int all_of(const int list[3])
{
    return list[0] + list[1] + list[2];
}

static void oracle_grow(struct oracle *o)
{
    while (o->size[2] > o->desired) {
        o->size[2]--;
    }
    while (o->size[2] < o->desired && all_of(o->size) < o->desired + o->surge) {
        o->size[2]++;
    }
}

static void oracle_shrink(struct oracle *o)
{
    int least = o->desired - o->unavailable;
    int pending = o->size[2] - o->available[2]; /* New pods that are not there yet. */
    bool had = all_of(o->size) - pending > least;
    while (had && all_of(o->size) - pending > least) {
        int i = o->size[0] > o->available[0] ? 0 : 1;
        if (o->size[i] <= o->available[i]) {
            break;
        }
        o->size[i]--;
    }
    int alive = all_of(o->available);
    while (had && alive > least && o->size[0] + o->size[1] > 0) {
        o->size[o->size[0] > 0 ? 0 : 1]--;
        alive--;
    }
}

static void fill(const struct oracle *o, struct rollout_set sets[3], struct rollout_set *old[2],
                 struct rollout *r)
{
    for (int i = 0; i < 3; i++) {
        sets[i] = (struct rollout_set){.replicas = o->size[i], .available = o->available[i]};
    }
    old[0] = &sets[0];
    old[1] = &sets[1];
    *r = (struct rollout){.desired = o->desired,
                          .surge = o->surge,
                          .unavailable = o->unavailable,
                          .new_set = &sets[2],
                          .old_set = old,
                          .n_old = 2};
}

static void check(const struct oracle *start)
{
    struct rollout_set sets[3], *old[2];
    struct rollout r;
    struct oracle grown = *start, shrunk = *start;
    fill(start, sets, old, &r);
    oracle_grow(&grown);
    assert_int_equal(rollout_new_size(&r, start->size[2]), grown.size[2]);
    oracle_shrink(&shrunk);
    bool changed = rollout_shrink_old(&r);
    for (int i = 0; i < 3; i++) {
        if (sets[i].replicas != shrunk.size[i]) {
            fail_msg("desired %d surge %d unavailable %d sizes %d %d %d available %d %d %d: set %d "
                     "has %d, not %d",
                     start->desired, start->surge, start->unavailable, start->size[0],
                     start->size[1], start->size[2], start->available[0], start->available[1],
                     start->available[2], i, (int) sets[i].replicas, shrunk.size[i]);
        }
    }
    assert_int_equal(changed, all_of(shrunk.size) != all_of(start->size));
    /* What is promised: no more than the surge is added, and no available pod goes that is needed.
     * */
    assert_true(grown.size[2] <= start->size[2] ||
                all_of(grown.size) <= start->desired + start->surge);
    int gone = 0;
    for (int i = 0; i < 2; i++) {
        gone += MAX(0, start->available[i] - (int) sets[i].replicas);
    }
    assert_true(gone == 0 ||
                all_of(start->available) - gone >= start->desired - start->unavailable);
}

/* Calls 'check' for all availabilities of these sizes. */
static void check_availabilities(struct oracle o)
{
    for (o.available[0] = 0; o.available[0] <= o.size[0]; o.available[0]++) {
        for (o.available[1] = 0; o.available[1] <= o.size[1]; o.available[1]++) {
            for (o.available[2] = 0; o.available[2] <= o.size[2]; o.available[2]++) {
                check(&o);
            }
        }
    }
}

static void check_sizes(struct oracle o)
{
    for (o.size[0] = 0; o.size[0] <= MOST; o.size[0]++) {
        for (o.size[1] = 0; o.size[1] <= 3; o.size[1]++) {
            for (o.size[2] = 0; o.size[2] <= MOST + 1; o.size[2]++) {
                check_availabilities(o);
            }
        }
    }
}

static void all_small_rollouts_agree_with_the_oracle(void **state)
{
    struct oracle o = {0};
    for (o.desired = 0; o.desired <= MOST; o.desired++) {
        for (o.surge = 0; o.surge <= 2; o.surge++) {
            for (o.unavailable = o.surge == 0 && o.desired; o.unavailable <= MIN(2, o.desired);
                 o.unavailable++) {
                check_sizes(o);
            }
        }
    }
}

/* Every rolling update ends, however few pods become available at a time. */
static void rollouts_end(void **state)
{
    struct oracle o = {0};
    for (o.desired = 0; o.desired <= MOST; o.desired++) {
        for (o.surge = 0; o.surge <= 2; o.surge++) {
            for (o.unavailable = o.surge == 0 && o.desired; o.unavailable <= MIN(2, o.desired);
                 o.unavailable++) {
                struct rollout_set sets[3] = {{.replicas = o.desired, .available = o.desired}};
                struct rollout_set *old[2] = {&sets[0], &sets[1]};
                struct rollout r = {.desired = o.desired,
                                    .surge = o.surge,
                                    .unavailable = o.unavailable,
                                    .new_set = &sets[2],
                                    .old_set = old,
                                    .n_old = 2};
                for (int i = 0; i < 40; i++) {
                    int64_t size = rollout_new_size(&r, sets[2].replicas);
                    if (size != sets[2].replicas) {
                        sets[2].replicas = size;
                    } else {
                        (void) rollout_shrink_old(&r);
                    }
                    assert_true(sets[0].replicas + sets[2].replicas <= o.desired + o.surge);
                    sets[0].available = MIN(sets[0].available, sets[0].replicas);
                    assert_true(sets[0].available + sets[2].available >= o.desired - o.unavailable);
                    if (sets[2].available < sets[2].replicas) {
                        sets[2].available++;
                    }
                }
                assert_int_equal(sets[0].replicas, 0);
                assert_int_equal(sets[2].available, o.desired);
            }
        }
    }
}

/* ---- in proportion ---- */

/* Written with floating point and a repeated search for the largest. */
static void oracle_spread(int desired, int surge, int before, int size[3])
{
    int all = all_of(size), missing = (desired > 0 ? desired + surge : 0) - all, added = 0;
    int first = -1, was[3] = {size[0], size[1], size[2]};
    bool seen[3] = {false, false, false};
    for (int turn = 0; turn < 3 && missing; turn++) {
        int best = -1;
        for (int k = 0; k < 3; k++) {
            int i = missing > 0 ? 2 - k : k; /* The newer of equal ones grows first. */
            if (!seen[i] && was[i] > 0 && (best < 0 || was[i] > was[best])) {
                best = i;
            }
        }
        if (best < 0) {
            break;
        }
        seen[best] = true;
        first = first < 0 ? best : first;
        double share = desired == 0 ? -was[best]
                       : before == 0
                           ? 0
                           : round((double) was[best] * (desired + surge) / before) - was[best];
        int left = missing - added, part = (int) share;
        part = left == 0     ? 0
               : missing > 0 ? (part < left ? part : left)
                             : (part > left ? part : left);
        size[best] += part;
        added += part;
    }
    if (first >= 0 && missing) {
        size[first] = MAX(0, size[first] + missing - added);
    }
}

static void all_small_spreads_agree_with_the_oracle(void **state)
{
    for (int code = 0; code < 6 * 6 * 6 * 9 * 3 * 9; code++) {
        int n = code, size[3];
        for (int i = 0; i < 3; i++) {
            size[i] = n % 6;
            n /= 6;
        }
        int desired = n % 9, surge = n / 9 % 3, before = n / 27;
        struct rollout_set sets[3], *old[2] = {&sets[0], &sets[1]};
        for (int i = 0; i < 3; i++) {
            sets[i] = (struct rollout_set){.replicas = size[i], .max_replicas = before};
        }
        struct rollout r = {.desired = desired,
                            .surge = surge,
                            /* It counts for sets that do not say what the bound was. */
                            .status_replicas = before ? before + 7 : 0,
                            .new_set = &sets[2],
                            .old_set = old,
                            .n_old = 2};
        int had = all_of(size);
        oracle_spread(desired, surge, before, size);
        rollout_spread(&r);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(sets[i].replicas, MAX(size[i], 0));
        }
        int64_t all = sets[0].replicas + sets[1].replicas + sets[2].replicas;
        /* What sets of no more pods than there were allowed become is what is allowed now. */
        assert_true(had == 0 || before < had || all == (desired ? desired + surge : 0));
    }
}

static void a_single_set_gets_all(void **state)
{
    struct rollout_set a = {.replicas = 0}, b = {.replicas = 3}, c = {.replicas = 0}, *ret = NULL;
    struct rollout_set *old[2] = {&a, &b};
    struct rollout r = {.new_set = &c, .old_set = old, .n_old = 2};
    assert_true(rollout_single(&r, &ret));
    assert_ptr_equal(ret, &b);
    c.replicas = 1;
    assert_false(rollout_single(&r, &ret));
    b.replicas = 0;
    assert_true(rollout_single(&r, &ret));
    assert_ptr_equal(ret, &c);
    c.replicas = 0;
    assert_true(rollout_single(&r, &ret));
    assert_ptr_equal(ret, &c);
    r.new_set = NULL;
    assert_true(rollout_single(&r, &ret));
    assert_ptr_equal(ret, &b);
    r.n_old = 0;
    assert_true(rollout_single(&r, &ret));
    assert_null(ret);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_numbers_or_percentages),
        cmocka_unit_test(one_of_the_bounds_is_never_0),
        cmocka_unit_test(all_small_rollouts_agree_with_the_oracle),
        cmocka_unit_test(rollouts_end),
        cmocka_unit_test(all_small_spreads_agree_with_the_oracle),
        cmocka_unit_test(a_single_set_gets_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
