/* SPDX-License-Identifier: Apache-2.0 */
#include "sdn/vnid_alloc.h"

#include "base/mem.h"

#include <setjmp.h>

#include <cmocka.h>

#define N_IDS (SDN_VNID_MAX - SDN_VNID_MIN + 1)

static uint64_t rng_state;
static uint32_t rng(void)
{
    rng_state = rng_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t) (rng_state >> 33);
}

static void ascends_from_ten(void **state)
{
    CLEANUP(vnid_alloc_free) struct vnid_alloc *a = vnid_alloc_new();
    for (uint32_t want = 10; want < 5000; want++) {
        uint32_t id = 0;
        assert_int_equal(vnid_alloc_allocate(a, &id), 0);
        assert_int_equal(id, want);
    }
    assert_int_equal(vnid_alloc_in_use(a), 4990);
}

static void refuses_what_is_not_allocatable(void **state)
{
    CLEANUP(vnid_alloc_free) struct vnid_alloc *a = vnid_alloc_new();
    const uint32_t bad[] = {0, 1, 9, SDN_VNID_MAX + 1, UINT32_MAX};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_int_equal(vnid_alloc_claim(a, bad[i]), -ERANGE);
        assert_int_equal(vnid_alloc_share(a, bad[i]), -ERANGE);
        assert_int_equal(vnid_alloc_release(a, bad[i]), -ERANGE);
        assert_int_equal(vnid_alloc_users(a, bad[i]), 0);
    }
    assert_int_equal(vnid_alloc_claim(a, SDN_VNID_MIN), 0);
    assert_int_equal(vnid_alloc_claim(a, SDN_VNID_MAX), 0);
    assert_int_equal(vnid_alloc_claim(a, SDN_VNID_MAX), -EEXIST);
    assert_int_equal(vnid_alloc_release(a, 11), -ENOENT);
    assert_int_equal(vnid_alloc_in_use(a), 2);
}

static void released_id_is_not_reused_soon(void **state)
{
    CLEANUP(vnid_alloc_free) struct vnid_alloc *a = vnid_alloc_new();
    uint32_t id = 0;
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(vnid_alloc_allocate(a, &id), 0);
        assert_int_equal(vnid_alloc_release(a, id), 0);
    }
    assert_int_equal(id, 1009);
    assert_int_equal(vnid_alloc_in_use(a), 0);
}

static void shared_id_is_free_after_the_last_user(void **state)
{
    CLEANUP(vnid_alloc_free) struct vnid_alloc *a = vnid_alloc_new();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(vnid_alloc_share(a, 77), 0);
    }
    assert_int_equal(vnid_alloc_users(a, 77), 3);
    assert_int_equal(vnid_alloc_in_use(a), 1);
    assert_int_equal(vnid_alloc_release(a, 77), 0);
    assert_int_equal(vnid_alloc_release(a, 77), 0);
    assert_int_equal(vnid_alloc_claim(a, 77), -EEXIST);
    assert_int_equal(vnid_alloc_release(a, 77), 0);
    assert_int_equal(vnid_alloc_users(a, 77), 0);
    assert_int_equal(vnid_alloc_claim(a, 77), 0);
}

static void seek_continues_and_wraps(void **state)
{
    CLEANUP(vnid_alloc_free) struct vnid_alloc *a = vnid_alloc_new();
    uint32_t id = 0;
    assert_int_equal(vnid_alloc_claim(a, 500), 0);
    assert_int_equal(vnid_alloc_claim(a, 502), 0);
    vnid_alloc_seek(a, 500);
    assert_int_equal(vnid_alloc_allocate(a, &id), 0);
    assert_int_equal(id, 501);
    assert_int_equal(vnid_alloc_allocate(a, &id), 0);
    assert_int_equal(id, 503);
    vnid_alloc_seek(a, 5); /* Not allocatable: stays. */
    assert_int_equal(vnid_alloc_allocate(a, &id), 0);
    assert_int_equal(id, 504);
    vnid_alloc_seek(a, SDN_VNID_MAX - 1);
    assert_int_equal(vnid_alloc_allocate(a, &id), 0);
    assert_int_equal(id, SDN_VNID_MAX);
    assert_int_equal(vnid_alloc_allocate(a, &id), 0);
    assert_int_equal(id, SDN_VNID_MIN);
}

static void is_exhausted_only_when_really_full(void **state)
{
    CLEANUP(vnid_alloc_free) struct vnid_alloc *a = vnid_alloc_new();
    uint32_t id = 0;
    for (uint32_t i = 0; i < N_IDS; i++) {
        assert_int_equal(vnid_alloc_allocate(a, &id), 0);
    }
    assert_int_equal(id, SDN_VNID_MAX);
    assert_int_equal(vnid_alloc_in_use(a), N_IDS);
    id = 1;
    assert_int_equal(vnid_alloc_allocate(a, &id), -ENOSPC);
    assert_int_equal(id, 1);
    const uint32_t freed[] = {10, 63, 64, 4095, 4096, 8000000, SDN_VNID_MAX};
    for (size_t i = 0; i < ARRAY_SIZE(freed); i++) {
        assert_int_equal(vnid_alloc_release(a, freed[i]), 0);
        assert_int_equal(vnid_alloc_allocate(a, &id), 0);
        assert_int_equal(id, freed[i]);
        assert_int_equal(vnid_alloc_allocate(a, &id), -ENOSPC);
    }
}

/* Random projects created, joined, deleted, and masters restarted, against counting by hand. */
static void agrees_with_a_model_over_random_histories(void **state)
{
    enum { PROJECTS = 3000 };
    for (uint64_t seed = 1; seed <= 20; seed++) {
        rng_state = seed;
        struct vnid_alloc *a = vnid_alloc_new();
        uint32_t *of = xcalloc(PROJECTS, sizeof(*of)); /* 0: project does not exist. */
        for (int step = 0; step < 20000; step++) {
            uint32_t p = rng() % PROJECTS, q = rng() % PROJECTS, id = 0;
            unsigned op = rng() % 100;
            if (of[p] == 0 && op < 60) {
                assert_int_equal(vnid_alloc_allocate(a, &id), 0);
                assert_in_range(id, SDN_VNID_MIN, SDN_VNID_MAX);
                for (size_t i = 0; i < PROJECTS && step % 50 == 0; i++) {
                    assert_int_not_equal(of[i], id);
                }
                of[p] = id;
            } else if (of[p] == 0 && of[q] != 0 && op < 70) {
                assert_int_equal(vnid_alloc_share(a, of[q]), 0);
                of[p] = of[q];
            } else if (of[p] != 0 && op < 99) {
                assert_int_equal(vnid_alloc_release(a, of[p]), 0);
                of[p] = 0;
            } else if (op == 99 && step % 10 == 0) {
                uint32_t newest = of[p];
                vnid_alloc_free(a);
                a = vnid_alloc_new();
                for (size_t i = 0; i < PROJECTS; i++) {
                    if (of[i] != 0) {
                        assert_int_equal(vnid_alloc_share(a, of[i]), 0);
                    }
                }
                vnid_alloc_seek(a, newest);
            }
            if (step % 5000 == 0) {
                uint32_t different = 0;
                for (size_t i = 0; i < PROJECTS; i++) {
                    unsigned users = 0;
                    bool first = of[i] != 0;
                    for (size_t j = 0; of[i] != 0 && j < PROJECTS; j++) {
                        users += of[j] == of[i];
                        first &= !(j < i && of[j] == of[i]);
                    }
                    assert_int_equal(vnid_alloc_users(a, of[i]), users);
                    different += first;
                }
                assert_int_equal(vnid_alloc_in_use(a), different);
            }
        }
        free(of);
        vnid_alloc_free(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ascends_from_ten),
        cmocka_unit_test(refuses_what_is_not_allocatable),
        cmocka_unit_test(released_id_is_not_reused_soon),
        cmocka_unit_test(shared_id_is_free_after_the_last_user),
        cmocka_unit_test(seek_continues_and_wraps),
        cmocka_unit_test(is_exhausted_only_when_really_full),
        cmocka_unit_test(agrees_with_a_model_over_random_histories),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
