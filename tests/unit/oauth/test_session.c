/* SPDX-License-Identifier: Apache-2.0 */
/* Sealed cookies, and delays after failures. */
#include "oauth/session.h"

#include "base/mem.h"
#include "oauth/seal.h"
#include "oauth/throttle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const uint8_t key_a[SEAL_KEY_SIZE] = {1}, key_b[SEAL_KEY_SIZE] = {2};

static void what_is_sealed_opens_for_its_purpose_only(void **state)
{
    struct seal_ring a = {0}, both = {0}, b = {0}, none = {0};
    CLEANUP_STRBUF struct strbuf sealed = STRBUF_INIT, text = STRBUF_INIT;
    seal_ring_add(&a, key_a);
    seal_ring_add(&both, key_b);
    seal_ring_add(&both, key_a);
    seal_ring_add(&b, key_b);
    assert_int_equal(seal_text(&none, "ssn", "x", &sealed), -ENOKEY);
    assert_int_equal(seal_text(&a, "ssn", "hello", &sealed), 0);
    assert_int_equal(seal_open(&both, "ssn", sealed.data, &text), 0);
    assert_string_equal(text.data, "hello");
    strbuf_reset(&text);
    assert_int_equal(seal_open(&a, "other", sealed.data, &text), -EINVAL);
    assert_int_equal(seal_open(&b, "ssn", sealed.data, &text), -EINVAL);
    for (size_t i = 0; i < sealed.size; i++) {
        CLEANUP_FREE char *changed = xstrdup(sealed.data);
        changed[i] = changed[i] == 'A' ? 'B' : 'A';
        assert_int_equal(seal_open(&a, "ssn", changed, &text), -EINVAL);
        changed[i] = '\0';
        assert_int_equal(seal_open(&a, "ssn", changed, &text), -EINVAL);
    }
    assert_int_equal(text.size, 0);
}

static void secrets_of_a_file_make_keys(void **state)
{
    struct seal_ring a = {0}, same = {0}, other = {0};
    CLEANUP_STRBUF struct strbuf sealed = STRBUF_INIT, text = STRBUF_INIT;
    seal_ring_add_secrets(&a, "authentication", "encryption");
    seal_ring_add_secrets(&same, "authentication", "encryption");
    seal_ring_add_secrets(&other, "authenticatione", "ncryption");
    assert_int_equal(seal_text(&a, "ssn", "x", &sealed), 0);
    assert_int_equal(seal_open(&same, "ssn", sealed.data, &text), 0);
    assert_int_equal(seal_open(&other, "ssn", sealed.data, &text), -EINVAL);
}

static void a_session_ends(void **state)
{
    char csrf[OAUTH_CSRF_SIZE + 1];
    struct oauth_session s = {(char *) "bob", (char *) "u", csrf, 1000}, read = {0};
    struct oauth_errand errand = {0};
    oauth_csrf_make(csrf);
    assert_true(oauth_csrf_has_form(csrf));
    CLEANUP_FREE char *text = oauth_session_write(&s);
    assert_int_equal(oauth_session_read(text, 999, &read), 0);
    assert_string_equal(read.user, "bob");
    assert_string_equal(read.csrf, csrf);
    oauth_session_done(&read);
    assert_int_equal(oauth_session_read(text, 1000, &read), -ESTALE);
    assert_int_equal(oauth_errand_read(text, 1, &errand), -EINVAL);
    assert_int_equal(oauth_session_read("{}", 1, &read), -EINVAL);
    assert_int_equal(oauth_session_read("x", 1, &read), -EINVAL);
}

static void a_cookie_that_is_there_twice_is_none(void **state)
{
    static const struct {
        const char *header, *value;
    } cases[] = {
        {"ssn=a", "a"},   {"x=y; ssn=a;z=b", "a"}, {"ssn=a; ssn=a", "a"}, {"ssn=a; ssn=b", NULL},
        {"xssn=a", NULL}, {"ssn", NULL},           {"x=ssn=a", NULL},     {"", NULL},
        {NULL, NULL},     {"ssn=; csrf=1", ""}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *v = oauth_cookie_find(cases[i].header, "ssn");
        assert_true(streq_null(v, cases[i].value));
    }
}

static void failures_delay_the_next_attempt(void **state)
{
    struct throttle t;
    throttle_init(&t, 2, 2, 100, 1000, 60000);
    throttle_failed(&t, "a", 1000);
    throttle_failed(&t, "a", 1000);
    assert_int_equal(throttle_wait_ms(&t, "a", 1000), 0);
    throttle_failed(&t, "a", 1000);
    assert_int_equal(throttle_wait_ms(&t, "a", 1000), 100);
    assert_int_equal(throttle_wait_ms(&t, "a", 1099), 1);
    assert_int_equal(throttle_wait_ms(&t, "a", 1100), 0);
    assert_int_equal(throttle_wait_ms(&t, "b", 1000), 0);
    for (unsigned i = 0; i < 100; i++) {
        throttle_failed(&t, "a", 2000);
    }
    assert_int_equal(throttle_wait_ms(&t, "a", 2000), 1000);
    throttle_failed(&t, "b", 2001);
    throttle_failed(&t, "c", 2002);
    assert_int_equal(throttle_wait_ms(&t, "a", 2002), 0); /* The oldest is forgotten. */
    for (unsigned i = 0; i < 5; i++) {
        throttle_failed(&t, "c", 3000);
    }
    assert_true(throttle_wait_ms(&t, "c", 3000) > 0);
    throttle_succeeded(&t, "c");
    assert_int_equal(throttle_wait_ms(&t, "c", 3000), 0);
    throttle_failed(&t, "b", 70000);
    assert_int_equal(throttle_wait_ms(&t, "b", 70000), 0);
    throttle_done(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_sealed_opens_for_its_purpose_only),
        cmocka_unit_test(secrets_of_a_file_make_keys),
        cmocka_unit_test(a_session_ends),
        cmocka_unit_test(a_cookie_that_is_there_twice_is_none),
        cmocka_unit_test(failures_delay_the_next_attempt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
