/* SPDX-License-Identifier: Apache-2.0 */
/* Inactivity of OAuth tokens, with a given time. */
#include "oauth/inactivity.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define BEGIN INT64_C(1700000000000)
#define CREATED "2023-11-14T22:13:20Z" /* The same time. */

static struct json *token_with(int64_t expires, int64_t inactivity)
{
    struct json *token = json_object();
    json_set_string(json_ensure_object(token, "metadata"), "creationTimestamp", CREATED);
    json_set_int(token, "expiresIn", expires);
    json_set_int(token, "inactivityTimeoutSeconds", inactivity);
    return token;
}

static int64_t next(int64_t expires, int64_t inactivity, int64_t used_s, int64_t timeout)
{
    CLEANUP(json_free) struct json *token = token_with(expires, inactivity);
    return oauth_inactivity_next_s(token, BEGIN + used_s * 1000, timeout);
}

static void a_use_moves_the_end_by_the_timeout(void **state)
{
    assert_int_equal(next(86400, 300, 200, 300), 500);
    assert_int_equal(next(86400, 300, 1, 300), 301);
    assert_int_equal(next(0, 300, 100000, 300), 100300);
    /* A use in the same second as the creation changes nothing. */
    assert_int_equal(next(86400, 300, 0, 300), -1);
}

static void the_larger_value_stays(void **state)
{
    assert_int_equal(next(86400, 900, 200, 300), -1);
    assert_int_equal(next(86400, 500, 200, 300), -1);
    assert_int_equal(next(86400, 499, 200, 300), 500);
}

static void a_use_does_not_pass_expires_in(void **state)
{
    assert_int_equal(next(600, 500, 400, 300), 600);
    assert_int_equal(next(600, 600, 500, 300), -1);
    assert_int_equal(next(0, 500, INT64_C(4000000000), 300), INT32_MAX);
}

static void a_timeout_that_is_gone_or_not_known(void **state)
{
    assert_int_equal(next(86400, 300, 200, 0), 0);
    assert_int_equal(next(86400, 300, 200, -1), -1);
    assert_int_equal(next(86400, 0, 200, 300), -1);
    CLEANUP(json_free) struct json *token = token_with(0, 300);
    json_remove(json_get(token, "metadata"), "creationTimestamp");
    assert_int_equal(oauth_inactivity_next_s(token, BEGIN, 300), -1);
    assert_int_equal(oauth_inactivity_end_ms(token), -1);
}

static void the_end_counts_from_the_creation(void **state)
{
    CLEANUP(json_free) struct json *token = token_with(86400, 300), *none = token_with(86400, 0);
    assert_int_equal(oauth_inactivity_end_ms(token), BEGIN + 300000);
    assert_int_equal(oauth_inactivity_end_ms(none), -1);
    assert_int_equal(oauth_inactivity_end_ms(NULL), -1);
}

static void a_use_is_due_shortly_before_the_end(void **state)
{
    struct oauth_uses u;
    oauth_uses_init(&u);
    assert_int_equal(oauth_uses_due_ms(&u), -1);
    oauth_uses_record(&u, "a", BEGIN, BEGIN + 300000);
    assert_int_equal(oauth_uses_due_ms(&u), BEGIN + 200000);
    oauth_uses_record(&u, "a", BEGIN + 150000, BEGIN + 300000);
    oauth_uses_record(&u, "a", BEGIN + 140000, BEGIN + 300000);
    assert_null(oauth_uses_take(&u, BEGIN + 199999));
    struct oauth_use *use = oauth_uses_take(&u, BEGIN + 200000);
    assert_non_null(use);
    assert_string_equal(use->name, "a");
    assert_int_equal(use->seen_ms, BEGIN + 150000);
    free(use);
    assert_int_equal(oauth_uses_due_ms(&u), -1);
    assert_null(oauth_uses_take(&u, INT64_MAX));
    oauth_uses_record(&u, "left", BEGIN, BEGIN);
    oauth_uses_done(&u);
}

static void uses_come_in_the_order_of_their_ends(void **state)
{
    enum { N = 1000 };
    struct oauth_uses u;
    oauth_uses_init(&u);
    for (unsigned i = 0; i < N; i++) {
        char name[16];
        unsigned at = i * 7919 % N; /* Each number once: 7919 is prime. */
        snprintf(name, sizeof name, "t%u", at);
        oauth_uses_record(&u, name, BEGIN, BEGIN + at * INT64_C(1000));
    }
    for (unsigned i = 0; i < N; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%u", i);
        struct oauth_use *use = oauth_uses_take(&u, INT64_MAX);
        assert_non_null(use);
        assert_string_equal(use->name, name);
        free(use);
    }
    assert_int_equal(u.n, 0);
    assert_int_equal(smap_size(&u.by_name), 0);
    oauth_uses_done(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_use_moves_the_end_by_the_timeout),
        cmocka_unit_test(the_larger_value_stays),
        cmocka_unit_test(a_use_does_not_pass_expires_in),
        cmocka_unit_test(a_timeout_that_is_gone_or_not_known),
        cmocka_unit_test(the_end_counts_from_the_creation),
        cmocka_unit_test(a_use_is_due_shortly_before_the_end),
        cmocka_unit_test(uses_come_in_the_order_of_their_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
