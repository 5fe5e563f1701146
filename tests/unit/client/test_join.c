/* SPDX-License-Identifier: Apache-2.0 */
/* The text with which a host joins. */
#include "client/join.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define TOKEN "abcdef.0123456789abcdef"
#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void a_join_token_is_read(void **state)
{
    static const struct {
        const char *text, *error; /* "": it is read. */
    } cases[] = {
        {TOKEN ":sha256:" HEX, ""},
        {"  " TOKEN ":sha256:" HEX "\r\n", ""},
        {"", "does not begin with ID.SECRET"},
        {"abcdef", "does not begin with ID.SECRET"},
        {TOKEN, "does not end with :sha256:"},
        {TOKEN ":", "does not end with :sha256:"},
        {TOKEN ":sha256", "does not end with :sha256:"},
        {TOKEN ":sha256:", "does not end with :sha256:"},
        {TOKEN ":sha512:" HEX, "does not end with :sha256:"},
        {TOKEN ":sha256:" HEX "0", "does not end with :sha256:"},
        {TOKEN ":sha256:0" HEX, "does not end with :sha256:"},
        {TOKEN ":sha256:0123456789abcdeF0123456789abcdef0123456789abcdef0123456789abcdef",
         "does not end with :sha256:"},
        {TOKEN "x:sha256:" HEX, "does not begin with ID.SECRET"},
        {"Abcdef.0123456789abcdef:sha256:" HEX, "does not begin with ID.SECRET"},
        {"abcdef-0123456789abcdef:sha256:" HEX, "does not begin with ID.SECRET"},
        {"abcde.0123456789abcdef0:sha256:" HEX, "does not begin with ID.SECRET"},
        {TOKEN ":sha256:" HEX " x", "has blanks within it"},
        {TOKEN " :sha256:" HEX, "has blanks within it"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct join j = {.token = "unchanged"};
        struct err e = {0};
        int r = join_read(cases[i].text, &j, &e);
        if (!*cases[i].error) {
            assert_int_equal(r, 0);
            assert_string_equal(j.token, TOKEN);
            assert_string_equal(j.pin, HEX);
            CLEANUP_FREE char *text = join_text(j.token, j.pin);
            assert_string_equal(text, TOKEN ":sha256:" HEX);
        } else if (r != -EINVAL || !strstr(e.text, cases[i].error) ||
                   !streq(j.token, "unchanged")) {
            fail_msg("%s: %d %s", cases[i].text, r, e.text);
        }
        assert_null(strstr(e.text, "0123456789abcdef"));
    }
}

/* The hash is that of "openssl x509 -pubkey | openssl pkey -pubin -outform der | sha256sum". */
static void a_pin_is_the_hash_of_the_public_key(void **state)
{
    static const char pem[] = "-----BEGIN CERTIFICATE-----\n"
                              "MIIBcDCCARegAwIBAgIUaIDVJuOieOmfjxpG1/N7qhNtEccwCgYIKoZIzj0EAwIw\n"
                              "DTELMAkGA1UEAwwCY2EwIBcNMjYxMTI3MjIyMTE4WhgPMjEyNjExMDMyMjIxMTha\n"
                              "MA0xCzAJBgNVBAMMAmNhMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEv7nTGVAX\n"
                              "EpWi34226EM4ToP76wiSIdS5fy1JrEDYaRxaETHZ7eKKfDCjC8hAePIRGh3SNvWr\n"
                              "d7OaMoEYtbWJZ6NTMFEwHQYDVR0OBBYEFNTBjgugVXwThcOOUxlAAsSQYj/QMB8G\n"
                              "A1UdIwQYMBaAFNTBjgugVXwThcOOUxlAAsSQYj/QMA8GA1UdEwEB/wQFMAMBAf8w\n"
                              "CgYIKoZIzj0EAwIDRwAwRAIgeY9KTxNszXRT9SkvrluP9QVopKwdkZiLNarbaS29\n"
                              "uPECIHR+29NO4S6TuaaolEwr+PA0mxupZGLtc4QjUZE8PRxA\n"
                              "-----END CERTIFICATE-----\n";
    char pin[PKI_PIN_SIZE] = "";
    assert_int_equal(pki_cert_pin(pem, pin, NULL), 0);
    assert_string_equal(pin, "fcfcc64b4b8fd8918fc14a6380ea4ed4d95e3acbd8514b42f9c8944e8d231ec3");
    assert_int_equal(pki_cert_pin("none", pin, NULL), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_join_token_is_read),
        cmocka_unit_test(a_pin_is_the_hash_of_the_public_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
