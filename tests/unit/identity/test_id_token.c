/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/id_token.h"

#include "base/mem.h"
#include "net/tls/jws.h"

#include <setjmp.h>

#include <cmocka.h>

#define NOW 1700000000

static const struct id_token_rules rules = {.issuer = "https://idp.example.com",
                                            .client_id = "tenet",
                                            .nonce = "n-123",
                                            .access_token =
                                                "jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y",
                                            .now_s = NOW};

static struct json *parse(const char *text)
{
    struct json *o = NULL;
    struct err e = {0};
    if (json_parse(text, strlen(text), &o, &e) < 0) {
        fail_msg("%s", e.text);
    }
    return o;
}

/* Claims that are right, with those of 'change' instead; null removes one. */
static struct json *claims_with(const char *change)
{
    CLEANUP(json_free) struct json *c = parse(change);
    struct json *o = parse("{\"iss\": \"https://idp.example.com\", \"sub\": \"joe\", "
                           "\"aud\": \"tenet\", \"exp\": 1700000060, \"iat\": 1700000000, "
                           "\"nonce\": \"n-123\"}");
    for (size_t i = 0; i < json_count(c); i++) {
        if (json_is(json_at(c, i), JSON_NULL)) {
            json_remove(o, json_key_at(c, i));
        } else {
            json_set(o, json_key_at(c, i), json_clone(json_at(c, i)));
        }
    }
    return o;
}

static void right_claims_pass(void **state)
{
    static const char *const rows[] = {
        "{}",
        "{\"aud\": [\"tenet\"]}",
        "{\"aud\": [\"other\", \"tenet\"], \"azp\": \"tenet\"}",
        "{\"azp\": \"tenet\"}",
        "{\"exp\": 1699999941}", /* Within the skew. */
        "{\"iat\": 1700000060}",
        "{\"exp\": 1700000000.5}",
        /* OpenID Connect Core, A.3. */
        "{\"at_hash\": \"77QmUPtjPfzWtF2AnpK9RQ\"}",
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(json_free) struct json *o = claims_with(rows[i]);
        struct err e = {0};
        if (id_token_check(o, &rules, &e) < 0) {
            fail_msg("%s: %s", rows[i], e.text);
        }
    }
}

static void each_wrong_claim_is_refused(void **state)
{
    static const struct {
        const char *change, *text;
    } rows[] = {
        {"{\"iss\": \"https://evil.example.com\"}", "\"iss\""},
        {"{\"iss\": \"https://idp.example.com/\"}", "\"iss\""},
        {"{\"iss\": null}", "\"iss\""},
        {"{\"sub\": null}", "\"sub\""},
        {"{\"sub\": 1}", "\"sub\""},
        {"{\"aud\": \"other\"}", "\"aud\""},
        {"{\"aud\": null}", "\"aud\""},
        {"{\"aud\": []}", "\"aud\""},
        {"{\"aud\": {\"a\": \"b\"}}", "\"aud\""},
        {"{\"aud\": [\"other\", \"tenet\"]}", "\"azp\""},
        {"{\"azp\": \"other\"}", "\"azp\""},
        {"{\"azp\": 1}", "\"azp\""},
        {"{\"exp\": 1699999940}", "expired 60 s ago"},
        {"{\"exp\": null}", "no time"},
        {"{\"exp\": \"1700000060\"}", "no time"},
        {"{\"exp\": 1e99}", "no time"},
        {"{\"iat\": null}", "no time"},
        {"{\"iat\": 1700000061}", "in the future"},
        {"{\"nbf\": 1700000061}", "in the future"},
        {"{\"nbf\": true}", "no time"},
        {"{\"nonce\": null}", "\"nonce\""},
        {"{\"nonce\": \"n-124\"}", "\"nonce\""},
        {"{\"nonce\": \"n-1234\"}", "\"nonce\""},
        {"{\"at_hash\": \"77QmUPtjPfzWtF2AnpK9RR\"}", "\"at_hash\""},
        {"{\"at_hash\": 1}", "\"at_hash\""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(json_free) struct json *o = claims_with(rows[i].change);
        struct err e = {0};
        assert_int_equal(id_token_check(o, &rules, &e), -EACCES);
        if (!strstr(e.text, rows[i].text)) {
            fail_msg("%s: %s", rows[i].change, e.text);
        }
    }
}

static void identities_come_from_lists_of_claims(void **state)
{
    CLEANUP(json_free)
    struct json *claims = parse("{\"sub\": \"1\", \"email\": \"a@b\", \"name\": \"\", "
                                "\"nick\": \"joe\", \"groups\": [\"x\", \"\", 1, \"y\"]}");
    CLEANUP(json_free) struct json *more = parse("{\"sub\": \"1\", \"name\": \"Joe\"}");
    CLEANUP(json_free)
    struct json *names = parse("{\"id\": [\"none\", \"sub\"], \"preferredUsername\": [\"nick\"], "
                               "\"name\": [\"name\"], \"email\": [\"email\"], "
                               "\"groups\": [\"no\", \"groups\"]}");
    struct identity id = {0};
    assert_int_equal(id_token_identity(claims, more, names, &id, NULL), 0);
    assert_string_equal(id.user, "1");
    assert_string_equal(id.preferred, "joe");
    assert_string_equal(id.name, "Joe");
    assert_string_equal(id.email, "a@b");
    assert_string_equal(id.groups[0], "x");
    assert_string_equal(id.groups[1], "y");
    assert_null(id.groups[2]);
    identity_done(&id);
    CLEANUP(json_free) struct json *none = parse("{\"id\": [\"none\"]}");
    assert_int_equal(id_token_identity(claims, NULL, none, &id, NULL), -EINVAL);
    CLEANUP(json_free) struct json *one = parse("{\"id\": [\"sub\"], \"groups\": [\"nick\"]}");
    assert_int_equal(id_token_identity(claims, NULL, one, &id, NULL), 0);
    assert_null(id.name);
    assert_string_equal(id.groups[0], "joe");
    identity_done(&id);
}

/* RFC 7515, A.2 and A.3: keys, and tokens that they signed. */
static void published_keys_verify_their_tokens(void **state)
{
    static const char *const rsa =
        "{\"kty\":\"RSA\",\"n\":\"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-"
        "Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_"
        "7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb"
        "3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FR"
        "WyuXpoQ\",\"e\":\"AQAB\"}";
    static const char *const ec =
        "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
        "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\"}";
    static const char *const ec_token =
        "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxl"
        "LmNvbS9pc19yb290Ijp0cnVlfQ.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlS"
        "ApmWQxfKTUJqPP3-Kg6NU1Q";
    CLEANUP(jws_keys_free) struct jws_keys *keys = jws_keys_new();
    CLEANUP(json_free) struct json *a = parse(rsa), *b = parse(ec);
    struct err e = {0};
    assert_int_equal(jws_keys_add_jwk(keys, a, &e), 0);
    CLEANUP(jwt_done) struct jwt t = {.signature = STRBUF_INIT};
    assert_int_equal(jwt_parse(ec_token, &t, NULL), 0);
    assert_int_equal(jws_verify(keys, ec_token, &t, NULL), -EKEYREJECTED);
    assert_int_equal(jws_keys_add_jwk(keys, b, &e), 0);
    assert_int_equal(jws_verify(keys, ec_token, &t, NULL), 0);
    CLEANUP(json_free) struct json *wrong_point = json_clone(b);
    json_set_string(wrong_point, "y", "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a1");
    assert_int_equal(jws_keys_add_jwk(keys, wrong_point, NULL), -EINVAL);
    static const char *const wrong[] = {
        "{}",
        "{\"kty\": \"oct\", \"k\": \"AAAA\"}",
        "{\"kty\": \"RSA\", \"n\": \"AQAB\", \"e\": \"AQAB\"}",
        "{\"kty\": \"RSA\", \"n\": \"\", \"e\": \"AQAB\"}",
        "{\"kty\": \"EC\", \"crv\": \"P-384\", \"x\": \"AQAB\", \"y\": \"AQAB\"}",
        "{\"kty\": \"EC\", \"crv\": \"P-256\", \"x\": \"AQAB\", \"y\": \"AQAB\"}",
    };
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        CLEANUP(json_free) struct json *o = parse(wrong[i]);
        assert_int_equal(jws_keys_add_jwk(keys, o, NULL), -EINVAL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_claims_pass),
        cmocka_unit_test(each_wrong_claim_is_refused),
        cmocka_unit_test(identities_come_from_lists_of_claims),
        cmocka_unit_test(published_keys_verify_their_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
