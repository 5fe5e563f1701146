/* SPDX-License-Identifier: Apache-2.0 */
/* The decisions of a login: what is taken from a server's answers, and what is written. */
#include "cli/login/oauth.h"
#include "cli/shown.h"
#include "client/kubeconfig_edit.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void a_discovery_document_has_one_origin(void **state)
{
    static const struct {
        const char *issuer, *authorize, *token, *methods, *why; /* NULL: it is good. */
    } rows[] = {
        {"https://a:8443", "https://a:8443/oauth/authorize", "https://a:8443/oauth/token",
         "[\"plain\",\"S256\"]", NULL},
        {"https://a:8443/", "https://A:8443/o", "https://a:8443/t", "[\"S256\"]", NULL},
        {"https://a:8443", "https://b:8443/o", "https://a:8443/t", "[\"S256\"]",
         "authorization_endpoint is at another server than the issuer"},
        {"https://a:8443", "https://a:8443/o", "https://a/t", "[\"S256\"]",
         "token_endpoint is at another server than the issuer"},
        {"https://a", "https://a/o", "http://a/t", "[\"S256\"]", "token_endpoint is at another"},
        {"http://a", "http://a/o", "http://a/t", "[\"S256\"]", "is not HTTPS"},
        {"https://a", "https://a/o", "https://a/t", "[\"plain\"]", "PKCE"},
        {"https://a", "https://a/o", "https://a/t", "\"S256\"", "PKCE"},
        {"https://u@a", "https://a/o", "https://a/t", "[\"S256\"]", "issuer"},
        {"ftp://a", "ftp://a/o", "ftp://a/t", "[\"S256\"]", "issuer"},
        {"a", "https://a/o", "https://a/t", "[\"S256\"]", "issuer"},
    };
    static const struct location server = {
        .https = true, .host = (char *) "a", .port = 8443, .path = (char *) "/"};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct oauth_server o = {0};
        struct err e = {0};
        CLEANUP_FREE char *text =
            xasprintf("{\"issuer\":\"%s\",\"authorization_endpoint\":\"%s\",\"token_endpoint\":"
                      "\"%s\",\"code_challenge_methods_supported\":%s}",
                      rows[i].issuer, rows[i].authorize, rows[i].token, rows[i].methods);
        int r = oauth_parse_discovery(&server, text, strlen(text), &o, &e);
        if ((r < 0) != !!rows[i].why || (r < 0 && !strstr(e.text, rows[i].why))) {
            fail_msg("%s: %d %s", text, r, e.text);
        }
        assert_true(r < 0 || !str_has_suffix(o.issuer, "/"));
        oauth_server_done(&o);
    }
}

static void a_basic_challenge_is_found(void **state)
{
    static const char *const rows[][2] = {
        {"Basic realm=\"openshift\"", "openshift"},
        {"Negotiate\nBasic realm=\"a \\\"b\\\"\"", "a \"b\""},
        {"basic", ""},
        {"Bearer realm=\"x\"", NULL},
        {"BasicX realm=\"x\"", NULL},
        {"Negotiate", NULL},
        {"", NULL},
        {"Basic realm=\"open", "open"},
        {"Basic realm=\"\\", "\\"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_FREE char *realm = oauth_basic_realm(rows[i][0]);
        if (!streq_null(realm, rows[i][1])) {
            fail_msg("%s: %s", rows[i][0], realm ? realm : "NULL");
        }
    }
    assert_null(oauth_basic_realm(NULL));
}

static void a_code_comes_with_its_state(void **state)
{
    static const struct {
        const char *path, *state;
        int r;
        const char *text; /* The code, or part of the error. */
    } rows[] = {
        {"/x?code=abc", NULL, 0, "abc"},
        {"/x?code=a%2Bb&state=s", "s", 0, "a+b"},
        {"/x?code=abc&state=t", "s", -EPROTO, "state"},
        {"/x?code=abc", "s", -EPROTO, "state"},
        {"/x?error=access_denied&error_description=no+way", NULL, -EACCES, "access_denied: no way"},
        {"/x?error=e&code=abc", NULL, -EACCES, "refused the login: e"},
        {"/x?code=", NULL, -EPROTO, "no code"},
        {"/x", NULL, -EPROTO, "no code"},
        {"/x?code=%zz", NULL, -EINVAL, ""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_FREE char *code = NULL;
        struct err e = {0};
        int r = oauth_parse_redirect(rows[i].path, rows[i].state, &code, &e);
        if (r != rows[i].r || !strstr(r < 0 ? e.text : code, rows[i].text)) {
            fail_msg("%s: %d %s", rows[i].path, r, r < 0 ? e.text : code);
        }
    }
}

static void a_token_is_a_bearer_token_of_visible_letters(void **state)
{
    static const struct {
        int status;
        const char *text;
        int r;
    } rows[] = {
        {200, "{\"access_token\":\"sha256~x\",\"token_type\":\"Bearer\"}", 0},
        {200, "{\"access_token\":\"x\",\"token_type\":\"bearer\"}", 0},
        {200, "{\"access_token\":\"x\",\"token_type\":\"mac\"}", -EPROTO},
        {200, "{\"access_token\":\"x\"}", -EPROTO},
        {200, "{\"access_token\":\"\",\"token_type\":\"Bearer\"}", -EPROTO},
        {200, "{\"access_token\":\"x\\r\\nHost: y\",\"token_type\":\"Bearer\"}", -EPROTO},
        {200, "{\"access_token\":[],\"token_type\":\"Bearer\"}", -EPROTO},
        {200, "<html>", -EPROTO},
        {500, "{\"access_token\":\"x\",\"token_type\":\"Bearer\"}", -EPROTO},
        {400, "{\"error\":\"invalid_grant\"}", -EACCES},
        {200, "{\"error\":\"invalid_grant\",\"access_token\":\"x\",\"token_type\":\"Bearer\"}",
         -EACCES},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_FREE char *token = NULL;
        struct err e = {0};
        int r = oauth_parse_token(rows[i].status, rows[i].text, strlen(rows[i].text), &token, &e);
        if (r != rows[i].r || (r == 0) != !!token) {
            fail_msg("%s: %d %s", rows[i].text, r, e.text);
        }
    }
}

static void proofs_are_those_of_the_standard(void **state)
{
    /* RFC 7636, appendix B. */
    CLEANUP_FREE char *challenge = oauth_challenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
    assert_string_equal(challenge, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    CLEANUP_FREE char *name =
        oauth_token_name("sha256~dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
    assert_string_equal(name, "sha256~E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    assert_null(oauth_token_name("abc"));
    char a[OAUTH_VERIFIER_SIZE], b[OAUTH_VERIFIER_SIZE];
    oauth_random(a);
    oauth_random(b);
    assert_string_not_equal(a, b);
    assert_int_equal(strspn(a, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
                     OAUTH_VERIFIER_SIZE - 1);
}

static void texts_of_a_server_are_harmless(void **state)
{
    static const char *const rows[][2] = {
        {"plain\n\ttext \xc3\xbc", "plain\n\ttext \xc3\xbc"},
        {"\x1b]0;x\x07", "?]0;x?"},
        {"a\rb\x7f", "a?b?"},
        {"\xc2\x9b"
         "2J",
         "?2J"},
        {"\xe2\x80\xaegnp", "?gnp"},
        {"\xe2\x81\xa6x\xe2\x80\x94", "?x\xe2\x80\x94"},
        {"\xe2", "\xe2"},
        {"\xc2", "\xc2"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_FREE char *text = shown(rows[i][0]);
        assert_string_equal(text, rows[i][1]);
    }
}

static void names_of_the_kubeconfig_are_those_of_oc(void **state)
{
    static const char *const clusters[][2] = {
        {"https://127.0.0.1:8443", "127-0-0-1:8443"},
        {"https://master.example.com", "master-example-com:443"},
        {"http://localhost/", "localhost:80"},
        {"https://a.b:1/path:x", "a-b:1"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(clusters); i++) {
        CLEANUP_FREE char *name = kubeconfig_cluster_name(clusters[i][0]);
        assert_string_equal(name, clusters[i][1]);
    }
    CLEANUP_FREE char *a = kubeconfig_context_name("red", "h:1", "jane/h:1");
    CLEANUP_FREE char *b = kubeconfig_context_name(NULL, "h:1", "admin");
    assert_string_equal(a, "red/h:1/jane");
    assert_string_equal(b, "/h:1/admin");
}

static void a_login_replaces_its_own_entries_alone(void **state)
{
    CLEANUP(json_free) struct json *config = NULL;
    static const char before[] =
        "{\"clusters\":[{\"name\":\"h:1\",\"cluster\":{\"server\":\"https://h:1\","
        "\"insecure-skip-tls-verify\":true}}],\"users\":[{\"name\":\"jane/h:1\",\"user\":{"
        "\"client-key-data\":\"eA==\"}},{\"name\":\"x\",\"user\":{\"token\":\"t\"}}],\"y\":1}";
    static const char after[] =
        "{\"clusters\":[{\"name\":\"h:1\",\"cluster\":{\"server\":\"https://h:1\","
        "\"certificate-authority-data\":\"Y2E=\"}}],\"users\":[{\"name\":\"jane/h:1\",\"user\":{"
        "\"token\":\"new\"}},{\"name\":\"x\",\"user\":{\"token\":\"t\"}}],\"y\":1,"
        "\"apiVersion\":\"v1\",\"kind\":\"Config\",\"contexts\":[{\"name\":\"red/h:1/jane\","
        "\"context\":{\"cluster\":\"h:1\",\"namespace\":\"red\",\"user\":\"jane/h:1\"}}],"
        "\"current-context\":\"red/h:1/jane\"}";
    const struct kubeconfig k = {.server = (char *) "https://h:1",
                                 .ca = (char *) "ca",
                                 .token = (char *) "new",
                                 .ns = (char *) "red"};
    assert_int_equal(json_parse(before, strlen(before), &config, NULL), 0);
    kubeconfig_set_login(config, "jane", &k);
    CLEANUP_FREE char *text = json_to_text(config);
    assert_string_equal(text, after);
    assert_true(kubeconfig_remove_entry(config, "users", "x"));
    assert_false(kubeconfig_remove_entry(config, "users", "x"));
    assert_null(kubeconfig_entry(config, "users", "user", "x"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_discovery_document_has_one_origin),
        cmocka_unit_test(a_basic_challenge_is_found),
        cmocka_unit_test(a_code_comes_with_its_state),
        cmocka_unit_test(a_token_is_a_bearer_token_of_visible_letters),
        cmocka_unit_test(proofs_are_those_of_the_standard),
        cmocka_unit_test(texts_of_a_server_are_harmless),
        cmocka_unit_test(names_of_the_kubeconfig_are_those_of_oc),
        cmocka_unit_test(a_login_replaces_its_own_entries_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
