/* SPDX-License-Identifier: Apache-2.0 */
/* Requests for authorization and tokens, clients, discovery. */
#include "oauth/request.h"

#include "base/mem.h"
#include "base/timeutil.h"
#include "oauth/discovery.h"
#include "oauth/page.h"
#include "oauth/pkce.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The example of RFC 7636, appendix B. */
#define VERIFIER "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
#define CHALLENGE "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"

static struct json *parse(const char *text)
{
    struct json *v = NULL;
    assert_int_equal(json_parse(text, strlen(text), &v, NULL), 0);
    return v;
}

static const char client_text[] =
    "{\"metadata\":{\"name\":\"c\"},\"secret\":\"s1\",\"additionalSecrets\":[\"s2\"],"
    "\"redirectURIs\":[\"https://a.example/cb\",\"https://b.example/\"],\"grantMethod\":\"prompt\","
    "\"scopeRestrictions\":[{\"literals\":[\"user:info\",\"user:full\"]},{\"clusterRole\":{"
    "\"roleNames\":[\"view\"],\"namespaces\":[\"p\"],\"allowEscalation\":false}}],"
    "\"accessTokenMaxAgeSeconds\":60}";

static void read_client(struct oauth_client *c)
{
    CLEANUP(json_free) struct json *o = parse(client_text);
    oauth_client_read(o, OAUTH_GRANT_PROMPT, c);
}

static void judge(const char *query, enum oauth_error fail, const char *why, const char *redirect)
{
    __attribute__((cleanup(oauth_client_donep))) struct oauth_client c = {0};
    __attribute__((cleanup(oauth_params_donep))) struct oauth_params p = {0};
    __attribute__((cleanup(oauth_authorization_donep))) struct oauth_authorization a = {0};
    read_client(&c);
    assert_int_equal(oauth_params_parse(query, strlen(query), &p, NULL), 0);
    oauth_authorization_read(&p, &c, &a);
    if (a.fail != fail || !streq_null(a.why, why) || !streq_null(a.redirect, redirect)) {
        fail_msg("%s: %s, %s, %s", query, oauth_error_names[a.fail], a.why, a.redirect);
    }
}

static void requests_for_authorization_are_judged_in_order(void **state)
{
    static const char cb[] = "https://a.example/cb";
    judge("response_type=code", OAUTH_OK, NULL, cb);
    judge("response_type=token&scope=user:info+role:view:p", OAUTH_OK, NULL, cb);
    judge("response_type=code&redirect_uri=https://b.example/x", OAUTH_OK, NULL,
          "https://b.example/x");
    judge("response_type=code&redirect_uri=https://e.example/", OAUTH_INVALID_REQUEST,
          "the redirect_uri is not one of the client's", NULL);
    judge("response_type=code&redirect_uri=https://a.example/cb&redirect_uri=https://e.example/",
          OAUTH_INVALID_REQUEST, "the parameter \"redirect_uri\" is there twice", NULL);
    judge("", OAUTH_INVALID_REQUEST, "response_type must be code or token", cb);
    judge("response_type=id_token", OAUTH_UNSUPPORTED_RESPONSE_TYPE,
          "response_type must be code or token", cb);
    judge("response_type=code&code_challenge_method=S256", OAUTH_OK, NULL, cb);
    judge("response_type=code&code_challenge=short", OAUTH_INVALID_REQUEST,
          "code_challenge must have 43 to 128 letters, digits, \"-\", \".\", \"_\" or \"~\"", cb);
    judge("response_type=code&code_challenge_method=S512&code_challenge=" CHALLENGE,
          OAUTH_INVALID_REQUEST, "code_challenge_method must be plain or S256", cb);
    judge("response_type=code&scope=user:everything", OAUTH_INVALID_SCOPE,
          "a requested scope is unknown or malformed", cb);
    judge("response_type=code&scope=user:list-projects", OAUTH_ACCESS_DENIED,
          "scope denied: user:list-projects", cb);
    judge("response_type=code&scope=role:view:p:!", OAUTH_ACCESS_DENIED,
          "scope denied: role:view:p:!", cb);
    judge("response_type=code&scope=role:edit:p", OAUTH_ACCESS_DENIED, "scope denied: role:edit:p",
          cb);
    judge("response_type=code&scope=role:view:*", OAUTH_ACCESS_DENIED, "scope denied: role:view:*",
          cb);
}

static void a_verifier_proves_its_challenge_only(void **state)
{
    assert_int_equal(pkce_verify(CHALLENGE, "S256", VERIFIER, NULL), 0);
    assert_int_equal(pkce_verify(VERIFIER, "plain", VERIFIER, NULL), 0);
    assert_int_equal(pkce_verify("", "", NULL, NULL), 0);
    assert_int_equal(pkce_verify(NULL, NULL, "ignored", NULL), 0);
    assert_int_equal(pkce_verify(CHALLENGE, "S256", CHALLENGE, NULL), -EINVAL);
    assert_int_equal(pkce_verify(CHALLENGE, "plain", VERIFIER, NULL), -EINVAL);
    assert_int_equal(pkce_verify(CHALLENGE, "S512", VERIFIER, NULL), -EINVAL);
    assert_int_equal(pkce_verify(CHALLENGE, "S256", NULL, NULL), -EINVAL);
    assert_int_equal(pkce_verify(CHALLENGE, "S256", "", NULL), -EINVAL);
}

static void a_client_has_several_secrets(void **state)
{
    __attribute__((cleanup(oauth_client_donep))) struct oauth_client c = {0}, none = {0};
    CLEANUP(json_free) struct json *o = parse("{\"metadata\":{\"name\":\"x\"}}");
    read_client(&c);
    oauth_client_read(o, OAUTH_GRANT_AUTO, &none);
    assert_true(oauth_client_accepts_secret(&c, "s1"));
    assert_true(oauth_client_accepts_secret(&c, "s2"));
    assert_false(oauth_client_accepts_secret(&c, "s3"));
    assert_false(oauth_client_accepts_secret(&c, ""));
    assert_false(oauth_client_accepts_secret(&c, NULL));
    assert_true(oauth_client_accepts_secret(&none, ""));
    assert_int_equal(none.grant, OAUTH_GRANT_AUTO);
    assert_true(c.has_max_age && c.max_age_s == 60 && !none.has_max_age);
}

static void grants_are_for_this_user_and_these_scopes(void **state)
{
    __attribute__((cleanup(oauth_client_donep))) struct oauth_client c = {0};
    CLEANUP(json_free)
    struct json *allowed = parse("{\"userUID\":\"u\",\"scopes\":[\"user:info\"]}");
    CLEANUP(json_free) struct json *info = parse("[\"user:info\"]");
    CLEANUP(json_free) struct json *more = parse("[\"user:info\",\"user:full\"]");
    struct json *missing;
    read_client(&c);
    assert_int_equal(oauth_grant_decide(&c, allowed, "u", info, &missing), OAUTH_GRANTED);
    assert_int_equal(oauth_grant_decide(&c, allowed, "other", info, &missing), OAUTH_GRANT_ASK);
    json_free(missing);
    assert_int_equal(oauth_grant_decide(&c, allowed, "u", more, &missing), OAUTH_GRANT_ASK);
    assert_int_equal(json_count(missing), 1);
    assert_string_equal(json_get_string(json_at(missing, 0)), "user:full");
    json_free(missing);
    assert_int_equal(oauth_grant_decide(&c, NULL, "u", info, &missing), OAUTH_GRANT_ASK);
    json_free(missing);
    c.grant = OAUTH_GRANT_DENY;
    assert_int_equal(oauth_grant_decide(&c, NULL, "u", info, &missing), OAUTH_GRANT_REFUSE);
    assert_int_equal(oauth_grant_decide(&c, allowed, "u", info, &missing), OAUTH_GRANTED);
    c.grant = OAUTH_GRANT_AUTO;
    assert_int_equal(oauth_grant_decide(&c, NULL, "u", more, &missing), OAUTH_GRANTED);
}

static void exchange(const char *form, const char *basic, enum oauth_error fail)
{
    __attribute__((cleanup(oauth_params_donep))) struct oauth_params p = {0};
    __attribute__((cleanup(oauth_exchange_donep))) struct oauth_exchange x = {0};
    assert_int_equal(oauth_params_parse(form, strlen(form), &p, NULL), 0);
    oauth_exchange_read(&p, basic, &x);
    if (x.fail != fail) {
        fail_msg("%s: %s", form, oauth_error_names[x.fail]);
    }
}

static void requests_for_tokens_name_one_client(void **state)
{
#define CODE "grant_type=authorization_code&code=x"
    exchange(CODE "&client_id=c", NULL, OAUTH_OK);
    exchange(CODE, "Basic Yzo=", OAUTH_OK); /* c: */
    exchange(CODE "&client_id=c", "basic Yzo=", OAUTH_OK);
    exchange(CODE "&client_id=d", "Basic Yzo=", OAUTH_INVALID_REQUEST);
    exchange(CODE "&client_id=c", "Bearer abc", OAUTH_INVALID_CLIENT);
    exchange(CODE "&client_id=c", "Basic !", OAUTH_INVALID_CLIENT);
    exchange(CODE, NULL, OAUTH_INVALID_CLIENT);
    exchange(CODE "&code=y&client_id=c", NULL, OAUTH_INVALID_REQUEST);
    exchange("grant_type=password&username=u&password=p&client_id=c", NULL,
             OAUTH_UNSUPPORTED_GRANT_TYPE);
    exchange("grant_type=refresh_token&client_id=c", NULL, OAUTH_UNSUPPORTED_GRANT_TYPE);
    exchange("grant_type=client_credentials&client_id=c", NULL, OAUTH_UNSUPPORTED_GRANT_TYPE);
    exchange("grant_type=authorization_code&client_id=c", NULL, OAUTH_INVALID_REQUEST);
    exchange("", NULL, OAUTH_INVALID_REQUEST);
}

static void a_code_is_for_its_client_redirect_time_and_proof(void **state)
{
    CLEANUP(json_free)
    struct json *code = parse("{\"metadata\":{\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},"
                              "\"clientName\":\"c\",\"expiresIn\":300,"
                              "\"redirectURI\":\"https://a.example/cb\","
                              "\"codeChallenge\":\"" CHALLENGE "\","
                              "\"codeChallengeMethod\":\"S256\"}");
    struct oauth_exchange x = {.client = (char *) "c", .redirect = "", .verifier = VERIFIER};
    const char *why;
    int64_t made;
    assert_int_equal(time_parse("2026-01-01T00:00:00Z", &made), 0);
    assert_int_equal(oauth_exchange_check_code(&x, code, made + 299999, &why), OAUTH_OK);
    assert_int_equal(oauth_exchange_check_code(&x, code, made + 300000, &why), OAUTH_INVALID_GRANT);
    x.redirect = "https://a.example/cb";
    assert_int_equal(oauth_exchange_check_code(&x, code, made, &why), OAUTH_OK);
    x.redirect = "https://a.example/cb/x";
    assert_int_equal(oauth_exchange_check_code(&x, code, made, &why), OAUTH_INVALID_GRANT);
    x.redirect = "";
    x.client = (char *) "d";
    assert_int_equal(oauth_exchange_check_code(&x, code, made, &why), OAUTH_INVALID_GRANT);
    x.client = (char *) "c";
    x.verifier = NULL;
    assert_int_equal(oauth_exchange_check_code(&x, code, made, &why), OAUTH_INVALID_GRANT);
    json_set_string(json_get(code, "metadata"), "deletionTimestamp", "2026-01-01T00:00:00Z");
    x.verifier = VERIFIER;
    assert_int_equal(oauth_exchange_check_code(&x, code, made, &why), OAUTH_INVALID_GRANT);
}

static void redirects_have_the_form_of_the_seeds(void **state)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    oauth_redirect_token(&b, "https://m:8443/oauth/token/implicit", NULL, "t", 86400, "user:full");
    assert_string_equal(b.data,
                        "https://m:8443/oauth/token/implicit#access_token=t&expires_in=86400"
                        "&scope=user%3Afull&token_type=Bearer");
    strbuf_reset(&b);
    oauth_redirect_code(&b, "https://a/cb?x=y", "a&b", "c");
    assert_string_equal(b.data, "https://a/cb?x=y&code=c&state=a%26b");
    strbuf_reset(&b);
    oauth_redirect_error(&b, "https://a/cb", NULL, OAUTH_ACCESS_DENIED, "no", false);
    assert_string_equal(b.data, "https://a/cb?error=access_denied&error_description=no");
}

/* OAUTH-26 to OAUTH-32, with the underscores that the seed lost. */
static void the_discovery_document_is_that_of_the_seeds(void **state)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    oauth_discovery_write("https://<master>", &b);
    assert_string_equal(b.data,
                        "{\n"
                        "  \"issuer\": \"https://<master>\",\n"
                        "  \"authorization_endpoint\": \"https://<master>/oauth/authorize\",\n"
                        "  \"token_endpoint\": \"https://<master>/oauth/token\",\n"
                        "  \"scopes_supported\": [\n"
                        "    \"user:full\",\n"
                        "    \"user:info\",\n"
                        "    \"user:check-access\",\n"
                        "    \"user:list-scoped-projects\",\n"
                        "    \"user:list-projects\"\n"
                        "  ],\n"
                        "  \"response_types_supported\": [\n"
                        "    \"code\",\n"
                        "    \"token\"\n"
                        "  ],\n"
                        "  \"grant_types_supported\": [\n"
                        "    \"authorization_code\",\n"
                        "    \"implicit\"\n"
                        "  ],\n"
                        "  \"code_challenge_methods_supported\": [\n"
                        "    \"plain\",\n"
                        "    \"S256\"\n"
                        "  ]\n"
                        "}");
}

static void forms_are_strict(void **state)
{
    static const char *const bad[] = {"a=%", "a=%4", "a=%zz", "a=%00", "%ff=x", "a=%c0%80"};
    __attribute__((cleanup(oauth_params_donep))) struct oauth_params p = {0};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_int_equal(oauth_params_parse(bad[i], strlen(bad[i]), &p, NULL), -EINVAL);
        assert_int_equal(p.n, 0);
    }
    static const char good[] = "a=b+c%2B&&d=&e&%C3%A4=%41";
    assert_int_equal(oauth_params_parse(good, sizeof good - 1, &p, NULL), 0);
    assert_int_equal(p.n, 4);
    assert_string_equal(oauth_param(&p, "a"), "b c+");
    assert_string_equal(oauth_param(&p, "d"), "");
    assert_string_equal(oauth_param(&p, "e"), "");
    assert_string_equal(oauth_param(&p, "\xc3\xa4"), "A");
    assert_null(oauth_param(&p, "f"));
}

/* ---- service accounts ---- */

#define URI OAUTH_SA_URI_PREFIX
#define REFERENCE OAUTH_SA_REFERENCE_PREFIX
#define ROUTE(name)                                                               \
    "{\\\"kind\\\":\\\"OAuthRedirectReference\\\",\\\"apiVersion\\\":\\\"v1\\\"," \
    "\\\"reference\\\":{\\\"kind\\\":\\\"Route\\\",\\\"name\\\":\\\"" name "\\\"}}"
#define JENKINS ROUTE("jenkins")

static int routes(void *ctx, const char *namespace, const char *name,
                  struct oauth_route_ingress *ret, size_t max)
{
    assert_string_equal(namespace, "p");
    if (streq(name, "closed")) {
        ret[0] = (struct oauth_route_ingress){xstrdup(""), xstrdup("/shop"), false};
        return 1;
    }
    if (!streq(name, "jenkins")) {
        return -ENOENT;
    }
    ret[0] = (struct oauth_route_ingress){xstrdup("example.com"), xstrdup(""), true};
    return 1;
}

/* The redirect URIs of an account with these annotations, with blanks between. */
static char *redirects_of(const char *annotations, oauth_route_fn *fn)
{
    CLEANUP_FREE char *text = xasprintf(
        "{\"metadata\":{\"namespace\":\"p\",\"name\":\"a\",\"annotations\":{%s}}}", annotations);
    CLEANUP(json_free) struct json *o = parse(text);
    __attribute__((cleanup(oauth_client_donep))) struct oauth_client c = {0};
    CLEANUP_STRBUF struct strbuf why = STRBUF_INIT;
    struct strbuf b = STRBUF_INIT;
    if (oauth_client_read_account(o, OAUTH_GRANT_PROMPT, fn, NULL, &c, &why) < 0) {
        return strbuf_steal(&why);
    }
    assert_string_equal(c.name, "system:serviceaccount:p:a");
    for (size_t i = 0; c.redirects[i]; i++) {
        strbuf_addf(&b, "%s%s", i ? " " : "", c.redirects[i]);
    }
    return strbuf_steal(&b);
}

/* OAUTH-15 to OAUTH-22. */
static void annotations_of_an_account_give_redirects(void **state)
{
    static const struct {
        const char *annotations, *redirects;
    } cases[] = {
        {"\"" URI "first\":\"https://example.com\",\"" URI "second\":\"https://other.com\"",
         "https://example.com https://other.com"},
        {"\"" REFERENCE "first\":\"" JENKINS "\"", "https://example.com"},
        {"\"" URI "first\":\"custompath\",\"" REFERENCE "first\":\"" JENKINS "\"",
         "https://example.com/custompath"},
        {"\"" URI "first\":\"http:\",\"" REFERENCE "first\":\"" JENKINS "\"", "http://example.com"},
        {"\"" URI "first\":\"//website.com\",\"" REFERENCE "first\":\"" JENKINS "\"",
         "https://website.com"},
        {"\"" URI "first\":\"custompath\",\"" REFERENCE "first\":\"" JENKINS "\",\"" URI
         "second\":\"//:8000\",\"" REFERENCE "second\":\"" JENKINS "\"",
         "https://example.com/custompath https://example.com:8000"},
        {"\"" REFERENCE "first\":\"" JENKINS "\",\"" URI "second\":\"https://other.com\"",
         "https://example.com https://other.com"},
        {"\"" URI "first\":\"//website.com\",\"" REFERENCE "first\":\"" ROUTE("closed") "\"",
         "http://website.com/shop"},
        {"\"" REFERENCE "first\":\"" ROUTE("closed") "\"",
         REFERENCE "first: the route is not admitted by a router"},
        {"\"" REFERENCE "first\":\"" ROUTE("none") "\"",
         REFERENCE "first: the route does not exist"},
        {"", "no annotation names a redirect URI"},
        {"\"" URI "first\":\"/path\"", URI "first: is no absolute URI"},
        {"\"" REFERENCE "first\":\"x\"", REFERENCE "first: is not a JSON object"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *made = redirects_of(cases[i].annotations, routes);
        assert_string_equal(made, cases[i].redirects);
    }
}

static void every_page_and_error_has_a_text(void **state)
{
    for (enum page i = 0; i < PAGE_MAX; i++) {
        CLEANUP(template_free) struct template *t = NULL;
        struct err e = {0};
        if (template_parse(page_source(i), strlen(page_source(i)), &t, &e) < 0) {
            fail_msg("page %d: %s", i, e.text);
        }
    }
    assert_string_equal(page_error_text("<script>"), "An authentication error occurred.");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_for_authorization_are_judged_in_order),
        cmocka_unit_test(a_verifier_proves_its_challenge_only),
        cmocka_unit_test(a_client_has_several_secrets),
        cmocka_unit_test(grants_are_for_this_user_and_these_scopes),
        cmocka_unit_test(requests_for_tokens_name_one_client),
        cmocka_unit_test(a_code_is_for_its_client_redirect_time_and_proof),
        cmocka_unit_test(redirects_have_the_form_of_the_seeds),
        cmocka_unit_test(the_discovery_document_is_that_of_the_seeds),
        cmocka_unit_test(forms_are_strict),
        cmocka_unit_test(annotations_of_an_account_give_redirects),
        cmocka_unit_test(every_page_and_error_has_a_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
