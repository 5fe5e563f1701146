/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of a controller: order, limits, and what becomes of work that is done, fails, waits, or
 * is added again. */
#include "controller/workqueue.h"

#include "base/map.h"
#include "base/timeutil.h"
#include "json_text.h"
#include "net/loop/loop.h"

#define WAIT_MS 20000

/* What becomes of a work: by the first letter of its key. */
struct rig {
    struct loop *loop;
    struct workqueue *queue;
    struct strbuf begun;  /* "KEY " of each. */
    struct work *held[8]; /* Works of keys that begin with 'h', until the test ends them. */
    size_t n_held;
    unsigned n_begun;
    uint64_t at_ms[16];
};

static void begin(void *ctx, struct work *w, const char *key)
{
    struct rig *r = ctx;
    if (r->n_begun < ARRAY_SIZE(r->at_ms)) {
        r->at_ms[r->n_begun] = time_mono_ms();
    }
    r->n_begun++;
    strbuf_addf(&r->begun, "%s ", key);
    assert_string_equal(work_key(w), key);
    switch (*key) {
    case 'h':
        r->held[r->n_held++] = w;
        break;
    case 'r': /* Fails three times. */
        if (r->n_begun <= 3) {
            work_retry(w, -EIO, "test", "by the test");
        } else {
            work_done(w);
        }
        break;
    case 'w': /* Waits once, for long. */
        if (r->n_begun == 1) {
            work_wait(w, 600000);
        } else {
            work_done(w);
        }
        break;
    case 's': /* Waits once, shortly. */
        if (strstr(strbuf_cstr(&r->begun), key) ==
            strbuf_cstr(&r->begun) + r->begun.size - strlen(key) - 1) {
            work_wait(w, key[1] == '1' ? 60 : 20);
        } else {
            work_done(w);
        }
        break;
    default:
        work_done(w);
    }
}

static struct rig *rig_new(unsigned parallel)
{
    struct rig *r = NEW(struct rig);
    r->begun = STRBUF_INIT;
    r->loop = loop_new();
    r->queue = workqueue_new(r->loop, NULL, parallel, begin, r);
    return r;
}

static void rig_free(struct rig *r)
{
    assert_null(workqueue_free(r->queue));
    assert_null(workqueue_free(NULL));
    loop_free(r->loop);
    strbuf_done(&r->begun);
    free(r);
}

/* Waits until 'n' works have begun, and no more. */
static void expect_begun(struct rig *r, unsigned n, const char *want)
{
    bool never = false;
    for (int i = 0; i < WAIT_MS / 5 && r->n_begun < n; i++) {
        loop_run_until(r->loop, &never, 5);
    }
    loop_run_until(r->loop, &never, 1);
    if (r->n_begun != n || !streq(strbuf_cstr(&r->begun), want)) {
        fail_msg("%s, not %s", strbuf_cstr(&r->begun), want);
    }
}

static void keys_are_worked_on_in_order_and_once(void **state)
{
    struct rig *r = rig_new(2);
    workqueue_add(r->queue, "b");
    workqueue_add(r->queue, "a");
    workqueue_add(r->queue, "b");
    assert_int_equal(workqueue_size(r->queue), 2);
    expect_begun(r, 0, ""); /* Nothing is begun before the start. */
    workqueue_start(r->queue);
    assert_int_equal(r->n_begun, 0); /* Never from within a call. */
    expect_begun(r, 2, "b a ");
    assert_int_equal(workqueue_size(r->queue), 0);
    workqueue_add(r->queue, "b");
    expect_begun(r, 3, "b a b ");
    rig_free(r);
}

static void so_many_are_worked_on_at_once(void **state)
{
    struct rig *r = rig_new(2);
    workqueue_start(r->queue);
    for (int i = 0; i < 4; i++) {
        workqueue_add(r->queue, (char[]){'h', (char) ('0' + i), '\0'});
    }
    expect_begun(r, 2, "h0 h1 ");
    work_done(r->held[1]);
    expect_begun(r, 3, "h0 h1 h2 ");
    work_retry(r->held[0], -EIO, "test", "by the test");
    expect_begun(r, 4, "h0 h1 h2 h3 ");
    work_wait(r->held[2], 600000);
    /* The one that failed comes again. */
    expect_begun(r, 5, "h0 h1 h2 h3 h0 ");
    assert_int_equal(workqueue_size(r->queue), 3);
    rig_free(r); /* With work under way, delayed and waiting. */
}

/* What was added while it was worked on is looked at again at once, whatever the end of the first
 * work. */
static void a_key_added_meanwhile_is_worked_on_again(void **state)
{
    for (int end = 0; end < 3; end++) {
        struct rig *r = rig_new(1);
        workqueue_start(r->queue);
        workqueue_add(r->queue, "h");
        expect_begun(r, 1, "h ");
        workqueue_add(r->queue, "h");
        workqueue_add(r->queue, "h");
        workqueue_add(r->queue, "x");
        assert_int_equal(workqueue_size(r->queue), 2);
        expect_begun(r, 1, "h ");
        if (end == 0) {
            work_done(r->held[0]);
        } else if (end == 1) {
            work_wait(r->held[0], 600000);
        } else {
            work_retry(r->held[0], -EIO, "test", "by the test");
        }
        expect_begun(r, 3, "h x h ");
        work_done(r->held[1]);
        expect_begun(r, 3, "h x h ");
        assert_int_equal(workqueue_size(r->queue), 0);
        rig_free(r);
    }
}

static void failing_work_is_tried_again_after_growing_delays(void **state)
{
    struct rig *r = rig_new(1);
    workqueue_start(r->queue);
    workqueue_add(r->queue, "r");
    expect_begun(r, 4, "r r r r ");
    assert_int_equal(workqueue_size(r->queue), 0);
    for (unsigned i = 1; i < 4; i++) {
        assert_true(r->at_ms[i] - r->at_ms[i - 1] >=
                    time_backoff_ms(i - 1, 20, 30000, hash_string("r")));
    }
    rig_free(r);
}

static void end_waiting(struct work *w)
{
    work_wait(w, 600000);
}

static void wait_begun(struct rig *r, unsigned n)
{
    bool never = false;
    for (int i = 0; i < WAIT_MS && r->n_begun < n; i++) {
        loop_run_until(r->loop, &never, 1);
    }
    assert_int_equal(r->n_begun, n);
}

/* Fails the work 'n' times, beginning with the one under way; returns how long the last delay
 * was. */
static uint64_t fail_times(struct rig *r, unsigned n)
{
    uint64_t before = 0;
    while (n--) {
        before = time_mono_ms();
        work_retry(r->held[--r->n_held], -EIO, "test", "by the test");
        wait_begun(r, r->n_begun + 1);
    }
    return time_mono_ms() - before;
}

/* The first failure after work that succeeded, or that waits, has the shortest delay. */
static void success_makes_delays_short_again(void **state)
{
    uint64_t fifth = time_backoff_ms(4, 20, 30000, hash_string("h"));
    for (int waits = 0; waits < 2; waits++) {
        struct rig *r = rig_new(1);
        uint64_t shortest = UINT64_MAX;
        workqueue_start(r->queue);
        workqueue_add(r->queue, "h");
        wait_begun(r, 1);
        for (int i = 0; i < 10 && shortest >= fifth; i++) { /* The machine may be slow. */
            assert_true(fail_times(r, 4) >= fifth / 2);
            workqueue_add(r->queue, "h"); /* Keeps the work, which would be forgotten. */
            (waits ? end_waiting : work_done)(r->held[--r->n_held]);
            wait_begun(r, r->n_begun + 1);
            shortest = fail_times(r, 1);
            work_done(r->held[--r->n_held]);
            workqueue_add(r->queue, "h");
            wait_begun(r, r->n_begun + 1);
        }
        assert_true(shortest < fifth);
        rig_free(r);
    }
}

static void waiting_work_goes_on_in_time_or_when_it_is_added(void **state)
{
    struct rig *r = rig_new(1);
    workqueue_start(r->queue);
    workqueue_add(r->queue, "w");
    expect_begun(r, 1, "w ");
    assert_int_equal(workqueue_size(r->queue), 1);
    workqueue_add(r->queue, "w");
    expect_begun(r, 2, "w w ");
    assert_int_equal(workqueue_size(r->queue), 0);
    rig_free(r);
    /* The shorter of two waits ends first, though it began later. */
    r = rig_new(1);
    workqueue_start(r->queue);
    workqueue_add(r->queue, "s1");
    workqueue_add(r->queue, "s2");
    expect_begun(r, 4, "s1 s2 s2 s1 ");
    assert_true(r->at_ms[2] - r->at_ms[1] >= 20);
    assert_true(r->at_ms[3] - r->at_ms[0] >= 60);
    assert_int_equal(workqueue_size(r->queue), 0);
    rig_free(r);
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(keys_are_worked_on_in_order_and_once),
        T(so_many_are_worked_on_at_once),
        T(a_key_added_meanwhile_is_worked_on_again),
        T(failing_work_is_tried_again_after_growing_delays),
        T(success_makes_delays_short_again),
        T(waiting_work_goes_on_in_time_or_when_it_is_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
