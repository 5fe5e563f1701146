/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of token keys: identifiers, several keys, files, and the published set. */
#include "base/base64.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/loop/process.h"
#include "net/tls/jws.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static EVP_PKEY *ec, *rsa;

static int set_up(void **state)
{
    ec = EVP_EC_gen("P-256");
    rsa = EVP_RSA_gen(2048);
    return 0;
}

static int tear_down(void **state)
{
    EVP_PKEY_free(ec);
    EVP_PKEY_free(rsa);
    return 0;
}

static char *text_of(BIO *b)
{
    char *p;
    long n = BIO_get_mem_data(b, &p);
    char *text = xstrndup(p, (size_t) n);
    BIO_free(b);
    return text;
}

static char *private_pem(EVP_PKEY *key)
{
    BIO *b = BIO_new(BIO_s_mem());
    assert_int_equal(PEM_write_bio_PKCS8PrivateKey(b, key, NULL, NULL, 0, NULL, NULL), 1);
    return text_of(b);
}

static char *public_pem(EVP_PKEY *key)
{
    BIO *b = BIO_new(BIO_s_mem());
    assert_int_equal(PEM_write_bio_PUBKEY(b, key), 1);
    return text_of(b);
}

/* The RSA key in the form "RSA PUBLIC KEY". */
static char *rsa_public_pem(void)
{
    unsigned char *der = NULL;
    int n = i2d_PublicKey(rsa, &der);
    BIO *b = BIO_new(BIO_s_mem());
    assert_true(PEM_write_bio(b, "RSA PUBLIC KEY", "", der, n) > 0);
    OPENSSL_free(der);
    return text_of(b);
}

static char *certificate_pem(EVP_PKEY *key)
{
    X509 *x = X509_new();
    BIO *b = BIO_new(BIO_s_mem());
    X509_gmtime_adj(X509_getm_notBefore(x), 0);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    assert_int_equal(X509_set_pubkey(x, key), 1);
    assert_true(X509_sign(x, key, EVP_sha256()) > 0);
    assert_int_equal(PEM_write_bio_X509(b, x), 1);
    X509_free(x);
    return text_of(b);
}

/* base64url of the SHA-256 of the public key in DER; owned. */
static char *id_of(EVP_PKEY *key)
{
    unsigned char *der = NULL, hash[32];
    unsigned size = sizeof hash;
    int n = i2d_PUBKEY(key, &der);
    struct strbuf b = STRBUF_INIT;
    assert_int_equal(EVP_Digest(der, (size_t) n, hash, &size, EVP_sha256(), NULL), 1);
    OPENSSL_free(der);
    base64url_encode(hash, size, &b);
    return strbuf_steal(&b);
}

/* The number 'param' of the key in base64url, padded to 'pad' bytes (0: not); owned. */
static char *number(EVP_PKEY *key, const char *param, int pad)
{
    BIGNUM *n = NULL;
    unsigned char bytes[512];
    struct strbuf b = STRBUF_INIT;
    assert_int_equal(EVP_PKEY_get_bn_param(key, param, &n), 1);
    int size = pad ? BN_bn2binpad(n, bytes, pad) : BN_bn2bin(n, bytes);
    base64url_encode(bytes, (size_t) size, &b);
    BN_free(n);
    return strbuf_steal(&b);
}

static void add_private(struct jws_keys *k, EVP_PKEY *key)
{
    CLEANUP_FREE char *pem = private_pem(key);
    assert_int_equal(jws_keys_add_private(k, pem, NULL), 0);
}

static char *sign(const struct jws_keys *k)
{
    CLEANUP(json_free) struct json *claims = json_object();
    json_set_string(claims, "sub", "jane");
    return jws_sign(k, claims);
}

static int verify(const struct jws_keys *k, const char *token, struct err *e)
{
    CLEANUP(jwt_done) struct jwt t = {.signature = STRBUF_INIT};
    int r = jwt_parse(token, &t, e);
    return r < 0 ? r : jws_verify(k, token, &t, e);
}

static void a_token_names_its_key_and_algorithm(void **state)
{
    EVP_PKEY *keys[] = {ec, rsa};
    static const char *const algorithms[] = {"ES256", "RS256"};
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        CLEANUP(jws_keys_free) struct jws_keys *k = jws_keys_new();
        add_private(k, keys[i]);
        CLEANUP_FREE char *token = sign(k);
        CLEANUP_FREE char *id = id_of(keys[i]);
        CLEANUP(jwt_done) struct jwt t = {.signature = STRBUF_INIT};
        assert_int_equal(jwt_parse(token, &t, NULL), 0);
        assert_string_equal(json_path_string(t.header, "alg", NULL), algorithms[i]);
        assert_string_equal(json_path_string(t.header, "kid", NULL), id);
        assert_int_equal(t.signature.size, i ? 256 : 64);
        assert_int_equal(verify(k, token, NULL), 0);
    }
}

/* The signed part of a token with this header and the same claims, and its ECDSA signature; owned. */
static char *with_header(const struct jws_keys *k, const char *header)
{
    CLEANUP_FREE char *token = sign(k);
    struct strbuf b = STRBUF_INIT;
    const char *claims = strchr(token, '.'), *end = strrchr(token, '.');
    base64url_encode(header, strlen(header), &b);
    strbuf_add(&b, claims, (size_t) (end - claims));
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    unsigned char sig[512], raw[64];
    size_t n = sizeof sig;
    assert_int_equal(EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, ec), 1);
    assert_int_equal(EVP_DigestSign(ctx, sig, &n, (const unsigned char *) b.data, b.size), 1);
    EVP_MD_CTX_free(ctx);
    const unsigned char *p = sig;
    ECDSA_SIG *s = d2i_ECDSA_SIG(NULL, &p, (long) n);
    assert_int_equal(BN_bn2binpad(ECDSA_SIG_get0_r(s), raw, 32), 32);
    assert_int_equal(BN_bn2binpad(ECDSA_SIG_get0_s(s), raw + 32, 32), 32);
    ECDSA_SIG_free(s);
    strbuf_addc(&b, '.');
    base64url_encode(raw, sizeof raw, &b);
    return strbuf_steal(&b);
}

static void a_key_identifier_must_match_when_there_is_one(void **state)
{
    CLEANUP_FREE char *id = id_of(ec);
    CLEANUP_FREE char *right = xasprintf("{\"alg\":\"ES256\",\"kid\":\"%s\"}", id);
    const struct {
        const char *header;
        int result;
    } cases[] = {
        {right, 0},
        {"{\"alg\":\"ES256\"}", 0},
        {"{\"alg\":\"ES256\",\"kid\":\"\"}", 0},
        {"{\"alg\":\"ES256\",\"kid\":\"x\"}", -EKEYREJECTED},
        {"{\"alg\":\"RS256\"}", -EKEYREJECTED},
        {"{\"alg\":\"none\"}", -EKEYREJECTED},
        {"{}", -EKEYREJECTED},
    };
    CLEANUP(jws_keys_free) struct jws_keys *k = jws_keys_new();
    add_private(k, rsa);
    add_private(k, ec);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *token = with_header(k, cases[i].header);
        struct err e = {0};
        assert_int_equal(verify(k, token, &e), cases[i].result);
        assert_string_equal(e.text,
                            cases[i].result ? "the token's signature is by none of our keys" : "");
    }
}

static void the_last_private_key_signs_and_all_keys_verify(void **state)
{
    CLEANUP(jws_keys_free) struct jws_keys *k = jws_keys_new();
    CLEANUP(jws_keys_free) struct jws_keys *old = jws_keys_new();
    CLEANUP(jws_keys_free) struct jws_keys *other = jws_keys_new();
    EVP_PKEY *third = EVP_EC_gen("P-256");
    CLEANUP_FREE char *ec_public = public_pem(ec);
    add_private(old, ec);
    add_private(other, third);
    EVP_PKEY_free(third);
    assert_int_equal(jws_keys_add_public(k, ec_public, NULL), 0);
    add_private(k, rsa);
    CLEANUP_FREE char *by_old = sign(old);
    CLEANUP_FREE char *by_new = sign(k);
    CLEANUP_FREE char *by_other = sign(other);
    assert_int_equal(verify(k, by_old, NULL), 0);
    assert_int_equal(verify(k, by_new, NULL), 0);
    assert_int_equal(verify(k, by_other, NULL), -EKEYREJECTED);
    assert_int_equal(verify(old, by_new, NULL), -EKEYREJECTED);
    /* The private form of a known public key replaces it and signs. */
    add_private(k, ec);
    CLEANUP_FREE char *now = sign(k);
    assert_int_equal(verify(old, now, NULL), 0);
    CLEANUP(json_free) struct json *set = jws_public_set(k);
    assert_int_equal(json_count(json_get(set, "keys")), 2);
}

static void each_form_of_a_public_key_is_read(void **state)
{
    CLEANUP_FREE char *ec_public = public_pem(ec);
    CLEANUP_FREE char *ec_private = private_pem(ec);
    CLEANUP_FREE char *ec_certificate = certificate_pem(ec);
    CLEANUP_FREE char *rsa_public = public_pem(rsa);
    CLEANUP_FREE char *rsa_bare = rsa_public_pem();
    CLEANUP_FREE char *both = xasprintf("%s%s", ec_certificate, rsa_bare);
    const struct {
        const char *pem;
        bool ec, rsa;
    } cases[] = {
        {ec_public, true, false},  {ec_private, true, false}, {ec_certificate, true, false},
        {rsa_public, false, true}, {rsa_bare, false, true},   {both, true, true},
    };
    CLEANUP(jws_keys_free) struct jws_keys *ec_signer = jws_keys_new();
    CLEANUP(jws_keys_free) struct jws_keys *rsa_signer = jws_keys_new();
    add_private(ec_signer, ec);
    add_private(rsa_signer, rsa);
    CLEANUP_FREE char *by_ec = sign(ec_signer);
    CLEANUP_FREE char *by_rsa = sign(rsa_signer);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(jws_keys_free) struct jws_keys *k = jws_keys_new();
        assert_int_equal(jws_keys_add_public(k, cases[i].pem, NULL), 0);
        assert_int_equal(verify(k, by_ec, NULL), cases[i].ec ? 0 : -EKEYREJECTED);
        assert_int_equal(verify(k, by_rsa, NULL), cases[i].rsa ? 0 : -EKEYREJECTED);
    }
    CLEANUP(jws_keys_free) struct jws_keys *none = jws_keys_new();
    struct err e = {0};
    assert_int_equal(jws_keys_add_public(none, "", &e), -EINVAL);
    assert_string_equal(e.text, "not a public key in PEM form");
    assert_int_equal(verify(none, by_ec, NULL), -EKEYREJECTED);
}

static void a_set_is_limited_to_64_keys(void **state)
{
    CLEANUP(jws_keys_free) struct jws_keys *k = jws_keys_new();
    struct err e = {0};
    for (int i = 0; i < 65; i++) {
        EVP_PKEY *key = EVP_EC_gen("P-256");
        CLEANUP_FREE char *pem = public_pem(key);
        EVP_PKEY_free(key);
        assert_int_equal(jws_keys_add_public(k, pem, &e), i < 64 ? 0 : -EINVAL);
    }
    assert_string_equal(e.text, "too many keys");
    CLEANUP(json_free) struct json *set = jws_public_set(k);
    assert_int_equal(json_count(json_get(set, "keys")), 64);
}

static void the_published_set_has_the_public_keys_only(void **state)
{
    CLEANUP(jws_keys_free) struct jws_keys *k = jws_keys_new();
    CLEANUP(json_free) struct json *none = jws_algorithms(k);
    assert_int_equal(json_count(none), 0);
    add_private(k, ec);
    CLEANUP(json_free) struct json *one = jws_algorithms(k);
    CLEANUP_FREE char *one_text = json_to_text(one);
    assert_string_equal(one_text, "[\"ES256\"]");
    add_private(k, rsa);
    CLEANUP_FREE char *ec_id = id_of(ec);
    CLEANUP_FREE char *x = number(ec, OSSL_PKEY_PARAM_EC_PUB_X, 32);
    CLEANUP_FREE char *y = number(ec, OSSL_PKEY_PARAM_EC_PUB_Y, 32);
    CLEANUP_FREE char *rsa_id = id_of(rsa);
    CLEANUP_FREE char *n = number(rsa, OSSL_PKEY_PARAM_RSA_N, 0);
    CLEANUP_FREE char *exponent = number(rsa, OSSL_PKEY_PARAM_RSA_E, 0);
    CLEANUP_FREE char *want_text =
        xasprintf("{\"keys\":[{\"use\":\"sig\",\"kty\":\"EC\",\"kid\":\"%s\",\"alg\":\"ES256\","
                  "\"crv\":\"P-256\",\"x\":\"%s\",\"y\":\"%s\"},{\"use\":\"sig\",\"kty\":\"RSA\","
                  "\"kid\":\"%s\",\"alg\":\"RS256\",\"n\":\"%s\",\"e\":\"%s\"}]}",
                  ec_id, x, y, rsa_id, n, exponent);
    CLEANUP(json_free) struct json *set = jws_public_set(k);
    CLEANUP_FREE char *text = json_to_text(set);
    assert_string_equal(text, want_text);
    CLEANUP(json_free) struct json *both = jws_algorithms(k);
    CLEANUP_FREE char *both_text = json_to_text(both);
    assert_string_equal(both_text, "[\"ES256\",\"RS256\"]");
    CLEANUP(jws_keys_free) struct jws_keys *other = jws_keys_new();
    add_private(other, rsa);
    CLEANUP(json_free) struct json *rs = jws_algorithms(other);
    CLEANUP_FREE char *rs_text = json_to_text(rs);
    assert_string_equal(rs_text, "[\"RS256\"]");
}

static void key_files_are_read_and_made(void **state)
{
    char dir[] = "/tmp/tenet-jws-XXXXXX";
    struct err e = {0};
    struct stat st;
    assert_non_null(mkdtemp(dir));
    CLEANUP_FREE char *path = xasprintf("%s/sa.key", dir);
    CLEANUP(jws_keys_free) struct jws_keys *made = jws_keys_new();
    CLEANUP(jws_keys_free) struct jws_keys *again = jws_keys_new();
    CLEANUP(jws_keys_free) struct jws_keys *public = jws_keys_new();
    assert_int_equal(jws_keys_load_private(made, path, false, &e), -ENOENT);
    assert_int_equal(access(path, F_OK), -1);
    err_clear(&e);
    mode_t before = umask(0);
    assert_int_equal(jws_keys_load_private(made, path, true, &e), 0);
    umask(before);
    assert_int_equal(e.code, 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    /* A key that is there is kept. */
    assert_int_equal(jws_keys_load_private(again, path, true, &e), 0);
    assert_int_equal(jws_keys_load_public(public, path, &e), 0);
    CLEANUP_FREE char *token = sign(made);
    assert_int_equal(verify(again, token, NULL), 0);
    assert_int_equal(verify(public, token, NULL), 0);
    /* Wrong files are refused by their path. */
    assert_int_equal(file_write_atomic(path, "nothing", 7, 0600, &e), 0);
    assert_int_equal(jws_keys_load_private(again, path, true, &e), -EINVAL);
    assert_true(str_has_prefix(e.text, path));
    err_clear(&e);
    assert_int_equal(jws_keys_load_public(public, path, &e), -EINVAL);
    assert_true(str_has_prefix(e.text, path));
    err_clear(&e);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(jws_keys_load_public(public, path, &e), -ENOENT);
    assert_int_equal(dir_remove(dir, NULL), 0);
}

static void the_parts_of_a_token_are_found(void **state)
{
    static const struct {
        const char *text;
        bool token;
    } cases[] = {{"a.b.c", true}, {"a..", true},      {"..", true},   {"a.b", false},  {"a", false},
                 {"", false},     {"a.b.c.d", false}, {"...", false}, {"a.b..", false}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_int_equal(jwt_looks_like(cases[i].text), cases[i].token);
    }
    /* The largest token that is parsed, and one byte more. */
    for (size_t size = JWT_MAX_SIZE; size <= JWT_MAX_SIZE + 1; size++) {
        CLEANUP_FREE char *text = xcalloc(1, size + 1);
        CLEANUP(jwt_done) struct jwt t = {.signature = STRBUF_INIT};
        memset(text, 'A', size);
        memcpy(text, "e30.e30.", 8);
        assert_int_equal(jwt_parse(text, &t, NULL), size > JWT_MAX_SIZE ? -E2BIG : 0);
    }
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_token_names_its_key_and_algorithm),
        T(a_key_identifier_must_match_when_there_is_one),
        T(the_last_private_key_signs_and_all_keys_verify),
        T(each_form_of_a_public_key_is_read),
        T(a_set_is_limited_to_64_keys),
        T(the_published_set_has_the_public_keys_only),
        T(key_files_are_read_and_made),
        T(the_parts_of_a_token_are_found),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
