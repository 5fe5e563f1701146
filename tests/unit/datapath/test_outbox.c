/* SPDX-License-Identifier: Apache-2.0 */
/* What a datapath tells its agent: in order, never from within a call, and nothing
 * after it was closed. */
#include "base/mem.h"
#include "base/str.h"
#include "datapath/outbox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

struct agent {
    struct loop *loop;
    struct loop_task task;
    struct outbox box;
    struct strbuf heard;
    bool closes, freed, over; /* closes: at the first 'done'. */
};

static void say(struct agent *a, const char *what)
{
    strbuf_addf(&a->heard, "%s;", what);
}

static void on_inventory(void *ctx)
{
    say(ctx, "inventory");
}

static void on_ready(void *ctx)
{
    say(ctx, "ready");
}

static void on_lost(void *ctx, const char *reason)
{
    say(ctx, reason);
}

static void on_refused(void *ctx, const char *reason)
{
    say(ctx, "refused");
    say(ctx, reason);
}

static void on_done(void *ctx, int error, const char *text)
{
    struct agent *a = ctx;
    strbuf_addf(&a->heard, "done %d ", error);
    say(a, text);
    if (a->closes) {
        assert_false(outbox_close(&a->box)); /* Deliver is to free. */
    }
}

static void on_port(void *ctx, const char *port, const char *host_if)
{
    say(ctx, port);
    say(ctx, host_if);
}

static void deliver(void *ctx)
{
    struct agent *a = ctx;
    a->freed = !outbox_deliver(&a->box);
    a->over = true;
}

static const struct datapath_events events = {.inventory = on_inventory,
                                              .ready = on_ready,
                                              .lost = on_lost,
                                              .refused = on_refused,
                                              .fatal = on_lost};

static void set_up(struct agent *a)
{
    *a = (struct agent){.loop = loop_new(), .heard = STRBUF_INIT};
    loop_task_init(&a->task, a->loop, deliver, a);
    outbox_init(&a->box, &a->task, &events, a);
}

static void tear_down(struct agent *a)
{
    loop_task_cancel(&a->task);
    loop_free(a->loop);
    strbuf_done(&a->heard);
}

static void all_is_told_by_the_task_and_in_order(void **state)
{
    (void) state;
    struct agent a;
    set_up(&a);
    assert_false(a.box.has_port);
    outbox_add_port(&a.box, on_port, &a, "tp1", "veth1");
    assert_true(a.box.has_port);
    outbox_add_done(&a.box, on_done, &a, -5, "no");
    outbox_add_trouble(&a.box, OUTBOX_LOST, "gone");
    a.box.ready = a.box.inventory = true;
    assert_int_equal(a.heard.size, 0);
    assert_int_equal(loop_run_until(a.loop, &a.over, 5000), 0);
    assert_string_equal(strbuf_cstr(&a.heard), "inventory;gone;ready;tp1;veth1;done -5 no;");
    assert_false(a.freed);
    assert_true(outbox_close(&a.box));
    tear_down(&a);
}

static void refusal_and_loss_are_two_events_and_the_later_one_counts(void **state)
{
    (void) state;
    struct agent a;
    set_up(&a);
    outbox_add_trouble(&a.box, OUTBOX_LOST, "gone");
    outbox_add_trouble(&a.box, OUTBOX_REFUSED, "no");
    assert_int_equal(loop_run_until(a.loop, &a.over, 5000), 0);
    assert_string_equal(strbuf_cstr(&a.heard), "refused;no;");
    assert_int_equal(a.box.trouble, OUTBOX_NO_TROUBLE);
    assert_true(outbox_close(&a.box));
    tear_down(&a);
}

static void nothing_is_told_after_a_callback_closed_it(void **state)
{
    (void) state;
    struct agent a;
    set_up(&a);
    a.closes = true;
    outbox_add_done(&a.box, on_done, &a, 0, "first");
    outbox_add_done(&a.box, on_done, &a, 0, "second");
    assert_int_equal(loop_run_until(a.loop, &a.over, 5000), 0);
    assert_string_equal(strbuf_cstr(&a.heard), "done 0 first;");
    assert_true(a.freed);
    tear_down(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_told_by_the_task_and_in_order),
        cmocka_unit_test(refusal_and_loss_are_two_events_and_the_later_one_counts),
        cmocka_unit_test(nothing_is_told_after_a_callback_closed_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
