/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens, and the names of their objects. */
#include "oauth/token.h"

#include "base/str.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define TOKEN "sha256~AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"

static void a_token_is_base64url_of_its_bytes(void **state)
{
    uint8_t random[OAUTH_TOKEN_RANDOM];
    char text[OAUTH_TOKEN_TEXT_SIZE];
    for (unsigned i = 0; i < sizeof random; i++) {
        random[i] = (uint8_t) i;
    }
    assert_int_equal(oauth_token_make(random, text), 0);
    assert_string_equal(text, TOKEN);
    assert_true(oauth_token_has_form(text));
}

static void no_token_begins_with_a_dash(void **state)
{
    for (unsigned first = 0; first < 256; first++) {
        uint8_t random[OAUTH_TOKEN_RANDOM] = {(uint8_t) first};
        char text[OAUTH_TOKEN_TEXT_SIZE] = "";
        int r = oauth_token_make(random, text);
        assert_int_equal(r, first >> 2 == 62 ? -EAGAIN : 0);
        assert_true(r == 0 ? text[sizeof OAUTH_TOKEN_PREFIX - 1] != '-' : !*text);
    }
}

/* printf %s AAEC...h8 | openssl dgst -sha256 -binary | base64 | tr +/ -_ */
static void the_name_is_the_hash_of_the_characters(void **state)
{
    char name[OAUTH_TOKEN_TEXT_SIZE];
    assert_int_equal(oauth_token_name(TOKEN, name), 0);
    assert_string_equal(name, "sha256~6oZqdX5MOLq_qBJ8vppAnT4fk6AP8UiP9zX8-Rev_9A");
    assert_true(oauth_token_has_form(name));
    /* The example of RFC 7636, appendix B. */
    assert_int_equal(oauth_token_name("sha256~dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", name),
                     0);
    assert_string_equal(name, "sha256~E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
}

static void other_texts_have_no_name(void **state)
{
    static const char *const bad[] = {
        "",
        "sha256~",
        "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8",
        "SHA256~AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8",
        "sha256~AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh",
        "sha256~AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8A",
        "sha256~AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        "sha256~AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh/",
        "sha256~AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh ",
        " sha256~AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8",
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        char name[OAUTH_TOKEN_TEXT_SIZE] = "untouched";
        assert_false(oauth_token_has_form(bad[i]));
        assert_int_equal(oauth_token_name(bad[i], name), -EINVAL);
        assert_string_equal(name, "untouched");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_is_base64url_of_its_bytes),
        cmocka_unit_test(no_token_begins_with_a_dash),
        cmocka_unit_test(the_name_is_the_hash_of_the_characters),
        cmocka_unit_test(other_texts_have_no_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
