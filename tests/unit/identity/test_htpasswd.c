/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/htpasswd.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Made by htpasswd of Apache 2.4. */
static void hashes_of_htpasswd_are_understood(void **state)
{
    static const struct {
        const char *hash, *password;
    } cases[] = {
        {"$2y$05$r3SDFK2pqTPPR3TAw4iChewu8v5Jub9dyQREbbE8tlujsgbVNuqhq", "secret"},
        {"$2y$04$lf03D2s1ZARV5M8Toq5RVuJbLojwmBsPvSqoP9exnKkfbd64oYhcO", "secret"},
        {"$apr1$BI5BnW6O$sv439NRXCE8kiKzMyMPOB0", "secret"},
        {"{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=", "secret"},
        {"$apr1$DTYLF04L$bz0iOC.c0jpQ4xWlWmLzH/", ""},
        {"$apr1$tl3.VCWf$CqxY7rF7wX6HVtRGG1Em4.", "a"},
        {"$apr1$VmNZK3Tj$oVax00nqwvF/5NgTX8ZJK/", "p\xc3\xa4ssword with blanks"},
        {"$apr1$szAMeajQ$TWFm8E5xB7rLF2gjYp/3h0", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_true(htpasswd_check_hash(cases[i].hash, cases[i].password));
        assert_false(htpasswd_check_hash(cases[i].hash, "secreT"));
        assert_false(htpasswd_check_hash(cases[i].hash, "secret "));
    }
}

static void errors_name_the_line(void **state)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"\n#comment\nbob\n", "line 3: must be USER:HASH"},
        {":hash\n", "line 1: must be USER:HASH"},
        {"bob:secret\n", "line 1: user \"bob\": the password is neither a bcrypt, $apr1$ nor {SHA} "
                         "hash; make it with htpasswd -B"},
        {"bob:abJnggxhB/yWI\n", "line 1: user \"bob\": the password is neither a bcrypt, $apr1$ "
                                "nor {SHA} hash; make it with htpasswd -B"},
        {"bob:{SHA}5en6G6Mez\n", "line 1: user \"bob\": the {SHA} hash is malformed"},
        {"bob:$apr1$toolongsalt$sv439NRXCE8kiKzMyMPOB0\n",
         "line 1: user \"bob\": the $apr1$ hash is malformed"},
        {"bob:$2y$19$r3SDFK2pqTPPR3TAw4iChewu8v5Jub9dyQREbbE8tlujsgbVNuqhq\n",
         "line 1: user \"bob\": the cost of the bcrypt hash is not in 4-17"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct htpasswd *h = NULL;
        struct err e = {0};
        assert_int_equal(htpasswd_parse(cases[i].text, strlen(cases[i].text), &h, &e), -EINVAL);
        assert_string_equal(e.text, cases[i].error);
        assert_null(h);
    }
}

static void the_last_line_of_a_user_counts(void **state)
{
    static const char text[] = "bob:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\r\n"
                               "Bob:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n"
                               "bob:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=:comment";
    struct htpasswd *h = NULL;
    assert_int_equal(htpasswd_parse(text, sizeof text - 1, &h, NULL), 0);
    assert_int_equal(htpasswd_count(h), 2);
    assert_true(htpasswd_check(h, "bob", "secret"));
    assert_false(htpasswd_check(h, "bob", "password"));
    assert_false(htpasswd_check(h, "BOB", "secret"));
    assert_false(htpasswd_check(h, "eve", "secret"));
    htpasswd_free(h);
}

static void an_empty_file_admits_nobody(void **state)
{
    struct htpasswd *h = NULL;
    assert_int_equal(htpasswd_parse("", 0, &h, NULL), 0);
    assert_false(htpasswd_check(h, "bob", "secret"));
    htpasswd_free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashes_of_htpasswd_are_understood),
        cmocka_unit_test(errors_name_the_line),
        cmocka_unit_test(the_last_line_of_a_user_counts),
        cmocka_unit_test(an_empty_file_admits_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
