/* SPDX-License-Identifier: Apache-2.0 */
#include "base/reconnect.h"

#include "base/macro.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum event { OPENED, RECEIVED, CLOSED, NONE };

/* What happens at a time, and what reconnect_run says then. */
static const struct {
    uint64_t now;
    enum event event;
    enum reconnect_step step;
    uint64_t wait;
} script[] = {
    {100, NONE, RECONNECT_CONNECT, 0},      {100, CLOSED, RECONNECT_WAIT, 15},
    {114, NONE, RECONNECT_WAIT, 1},         {115, NONE, RECONNECT_CONNECT, 0},
    {115, CLOSED, RECONNECT_WAIT, 30},      {145, NONE, RECONNECT_CONNECT, 0},
    {145, OPENED, RECONNECT_WAIT, 5000},    {1145, RECEIVED, RECONNECT_WAIT, 5000},
    {5145, NONE, RECONNECT_WAIT, 1000},     {6145, NONE, RECONNECT_PROBE, 5000},
    {7145, RECEIVED, RECONNECT_WAIT, 5000}, {12145, NONE, RECONNECT_PROBE, 5000},
    {17145, NONE, RECONNECT_WAIT, 5000},    {22145, NONE, RECONNECT_CLOSE, 5000},
    {22145, CLOSED, RECONNECT_WAIT, 15}, /* Bytes had arrived: the shortest delay. */
    {22160, NONE, RECONNECT_CONNECT, 0},
};

static void a_connection_is_made_probed_and_made_again(void **state)
{
    (void) state;
    struct reconnect r = {.backoff = BACKOFF_INIT(20, 200), .probe_ms = 5000, .dead_ms = 10000};
    for (size_t i = 0; i < ARRAY_SIZE(script); i++) {
        uint64_t wait = 0, now = script[i].now;
        if (script[i].event == OPENED) {
            reconnect_opened(&r, now);
        } else if (script[i].event == RECEIVED) {
            reconnect_received(&r, now);
        } else if (script[i].event == CLOSED) {
            assert_int_equal(reconnect_closed(&r, now, 0), script[i].wait);
        }
        assert_int_equal(reconnect_run(&r, now, &wait), script[i].step);
        assert_int_equal(wait, script[i].wait);
    }
}

static void a_peer_that_is_said_to_be_back_is_tried_at_once(void **state)
{
    (void) state;
    struct reconnect r = {.backoff = BACKOFF_INIT(20, 200)};
    uint64_t wait = 0;
    for (int i = 0; i < 5; i++) {
        reconnect_closed(&r, 1000, 0);
    }
    assert_int_equal(reconnect_run(&r, 1000, &wait), RECONNECT_WAIT);
    backoff_reset(&r.backoff);
    assert_int_equal(reconnect_run(&r, 1000, &wait), RECONNECT_CONNECT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_connection_is_made_probed_and_made_again),
        cmocka_unit_test(a_peer_that_is_said_to_be_back_is_tried_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
