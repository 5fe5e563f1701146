/* SPDX-License-Identifier: Apache-2.0 */
/* Signed tokens and signing requests. */
#include "base/base64.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "net/loop/process.h"
#include "net/tls/jws.h"
#include "net/tls/pki_csr.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char *pem_of(EVP_PKEY *key, bool private)
{
    BIO *b = BIO_new(BIO_s_mem());
    char *p;
    assert_int_equal(private ? PEM_write_bio_PKCS8PrivateKey(b, key, NULL, NULL, 0, NULL, NULL)
                             : PEM_write_bio_PUBKEY(b, key),
                     1);
    long n = BIO_get_mem_data(b, &p);
    char *text = xstrndup(p, (size_t) n);
    BIO_free(b);
    EVP_PKEY_free(key);
    return text;
}

static struct json *claims(void)
{
    struct json *c = json_object();
    json_set_string(c, "sub", "jane");
    return c;
}

static int verify(const struct jws_keys *k, const char *token)
{
    CLEANUP(jwt_done) struct jwt t = {.signature = STRBUF_INIT};
    int r = jwt_parse(token, &t, NULL);
    return r < 0 ? r : jws_verify(k, token, &t, NULL);
}

/* 'token' with its header replaced. */
static char *with_header(const char *token, const char *header)
{
    struct strbuf b = STRBUF_INIT;
    base64url_encode(header, strlen(header), &b);
    strbuf_adds(&b, strchr(token, '.'));
    return strbuf_steal(&b);
}

static void a_token_is_good_with_its_own_key_only(void **state)
{
    for (int rsa = 0; rsa < 2; rsa++) {
        CLEANUP(jws_keys_free) struct jws_keys *k = jws_keys_new();
        CLEANUP(jws_keys_free) struct jws_keys *other = jws_keys_new();
        CLEANUP_FREE char *pem = pem_of(rsa ? EVP_RSA_gen(2048) : EVP_EC_gen("P-256"), true);
        CLEANUP_FREE char *theirs = pem_of(EVP_EC_gen("P-256"), true);
        CLEANUP(json_free) struct json *c = claims();
        assert_int_equal(jws_keys_add_private(k, pem, NULL), 0);
        assert_int_equal(jws_keys_add_private(other, theirs, NULL), 0);
        CLEANUP_FREE char *token = jws_sign(k, c);
        assert_int_equal(verify(k, token), 0);
        assert_int_equal(verify(other, token), -EKEYREJECTED);
        /* Its public key alone does. */
        CLEANUP(jws_keys_free) struct jws_keys *public = jws_keys_new();
        assert_int_equal(jws_keys_add_public(public, pem, NULL), 0);
        assert_int_equal(verify(public, token), 0);
        /* Any change of claims or signature is noticed. */
        char *dot = strchr(token, '.');
        dot[5] = dot[5] == 'A' ? 'B' : 'A';
        assert_int_not_equal(verify(k, token), 0);
    }
}

static void the_header_does_not_choose_the_algorithm(void **state)
{
    CLEANUP(jws_keys_free) struct jws_keys *k = jws_keys_new();
    CLEANUP_FREE char *pem = pem_of(EVP_EC_gen("P-256"), true);
    CLEANUP(json_free) struct json *c = claims();
    assert_int_equal(jws_keys_add_private(k, pem, NULL), 0);
    CLEANUP_FREE char *token = jws_sign(k, c);
    static const char *const headers[] = {"{\"alg\":\"none\"}", "{\"alg\":\"HS256\"}",
                                          "{\"alg\":\"RS256\"}", "{}", "{\"alg\":\"ES256\"}"};
    for (size_t i = 0; i < ARRAY_SIZE(headers); i++) {
        CLEANUP_FREE char *forged = with_header(token, headers[i]);
        assert_int_equal(verify(k, forged), -EKEYREJECTED);
        /* And without a signature. */
        strrchr(forged, '.')[1] = '\0';
        assert_int_equal(verify(k, forged), -EKEYREJECTED);
    }
    CLEANUP_FREE char *critical = with_header(token, "{\"alg\":\"ES256\",\"crit\":[\"x\"]}");
    assert_int_equal(verify(k, critical), -EINVAL);
}

static void malformed_tokens_are_refused(void **state)
{
    static const char *const bad[] = {"",        "a",         "a.b",      "a.b.c.d",
                                      "..",      "e30.e30.=", "e30.W10.", "bnVsbA.e30.AA",
                                      "e3.e30.", "e30.e30.A"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CLEANUP(jwt_done) struct jwt t = {.signature = STRBUF_INIT};
        if (jwt_parse(bad[i], &t, NULL) != -EINVAL) {
            fail_msg("%s", bad[i]);
        }
    }
    CLEANUP(jwt_done) struct jwt t = {.signature = STRBUF_INIT};
    assert_int_equal(jwt_parse("e30.e30.", &t, NULL), 0);
    CLEANUP_FREE char *large = xcalloc(1, JWT_MAX_SIZE + 2);
    memset(large, 'a', JWT_MAX_SIZE + 1);
    assert_int_equal(jwt_parse(large, &t, NULL), -E2BIG);
}

static void weak_and_other_keys_are_refused(void **state)
{
    CLEANUP(jws_keys_free) struct jws_keys *k = jws_keys_new();
    CLEANUP_FREE char *weak = pem_of(EVP_RSA_gen(1024), true);
    CLEANUP_FREE char *curve = pem_of(EVP_EC_gen("P-384"), true);
    CLEANUP_FREE char *public = pem_of(EVP_EC_gen("P-256"), false);
    struct err e = {0};
    assert_int_equal(jws_keys_add_private(k, weak, &e), -EINVAL);
    assert_non_null(strstr(e.text, "RSA of 2048"));
    assert_int_equal(jws_keys_add_private(k, curve, NULL), -EINVAL);
    assert_int_equal(jws_keys_add_private(k, public, NULL), -EINVAL);
    assert_int_equal(jws_keys_add_public(k, "nothing", NULL), -EINVAL);
    assert_int_equal(jws_keys_add_public(k, public, NULL), 0);
    CLEANUP(json_free) struct json *set = jws_public_set(k);
    assert_string_equal(json_path_string(json_at(json_get(set, "keys"), 0), "crv", NULL), "P-256");
    assert_int_equal(json_count(json_get(set, "keys")), 1);
}

static void base64url_has_one_text_for_one_value(void **state)
{
    static const char *const good[] = {"", "AA", "-_8", "AAAA"};
    static const char *const bad[] = {"A", "AB", "AA==", "A+", "A A", "AAB"};
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
        CLEANUP_STRBUF struct strbuf back = STRBUF_INIT;
        assert_int_equal(base64url_decode(good[i], strlen(good[i]), &b), 0);
        base64url_encode(strbuf_cstr(&b), b.size, &back);
        assert_string_equal(strbuf_cstr(&back), good[i]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
        assert_int_equal(base64url_decode(bad[i], strlen(bad[i]), &b), -EINVAL);
        assert_int_equal(b.size, 0);
    }
}

static void a_request_becomes_a_certificate(void **state)
{
    static const char *const group[] = {"system:nodes"};
    int64_t now = time_wall_ms(), from, until;
    CLEANUP(pki_ca_free) struct pki_ca *ca = pki_ca_new(now, now + 86400000);
    CLEANUP_FREE char *csr = NULL;
    CLEANUP_FREE char *key = NULL;
    CLEANUP_FREE char *cert = NULL;
    CLEANUP(pki_csr_done) struct pki_csr c = {0};
    struct err e = {0};
    pki_csr_make("system:node:n1", group, 1, &csr, &key);
    assert_int_equal(pki_csr_read(csr, &c, &e), 0);
    assert_string_equal(c.cn, "system:node:n1");
    assert_int_equal(c.n_o, 1);
    assert_string_equal(c.o[0], "system:nodes");
    assert_int_equal(c.n_names, 0);
    assert_int_equal(c.n_others, 0);
    /* No longer than the authority itself. */
    assert_int_equal(
        pki_csr_sign(ca, csr, PKI_CLIENT, now - 3600000, now + 7 * 86400000LL, &cert, &e), 0);
    assert_int_equal(pki_cert_times(cert, &from, &until, &e), 0);
    assert_true(until <= now + 86400000 && from <= now - 3599000);
    struct pki_request want = {.cn = "system:node:n1", .o = group, .n_o = 1};
    struct pki_pair pair = {cert, key};
    assert_true(pki_is_good(ca, &want, &pair, now));
}

static void a_key_is_made_once_and_read_again(void **state)
{
    char dir[] = "/tmp/tenet-jws-XXXXXX";
    struct err e = {0};
    struct stat st;
    assert_non_null(mkdtemp(dir));
    CLEANUP_FREE char *path = xasprintf("%s/key.pem", dir);
    CLEANUP(jws_keys_free) struct jws_keys *first = jws_keys_new();
    CLEANUP(jws_keys_free) struct jws_keys *second = jws_keys_new();
    CLEANUP(jws_keys_free) struct jws_keys *third = jws_keys_new();
    assert_int_equal(jws_keys_load_private(first, path, false, &e), -ENOENT);
    assert_int_equal(jws_keys_load_private(first, path, true, &e), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(jws_keys_load_private(second, path, true, &e), 0);
    CLEANUP(json_free) struct json *c = claims();
    CLEANUP_FREE char *token = jws_sign(first, c);
    assert_int_equal(verify(second, token), 0);
    FILE *f = fopen(path, "we");
    fputs("nonsense", f);
    fclose(f);
    assert_int_equal(jws_keys_load_private(third, path, true, &e), -EINVAL);
    assert_true(str_has_prefix(e.text, path));
    unlink(path);
    rmdir(dir);
}

static void wrong_requests_are_refused(void **state)
{
    CLEANUP_FREE char *csr = NULL;
    CLEANUP_FREE char *key = NULL;
    CLEANUP(pki_csr_done) struct pki_csr c = {0};
    struct err e = {0};
    assert_int_equal(pki_csr_read("", &c, &e), -EINVAL);
    assert_int_equal(pki_csr_read("-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n"
                                  "-----END CERTIFICATE REQUEST-----\n",
                                  &c, &e),
                     -EINVAL);
    /* One bit of the signature. */
    pki_csr_make("jane", NULL, 0, &csr, &key);
    char *end = strstr(csr, "\n-----END");
    end[-8] = end[-8] == 'A' ? 'B' : 'A';
    assert_int_equal(pki_csr_read(csr, &c, &e), -EINVAL);
    assert_null(c.cn);
}

/* A signed request with these DNS names, of 'sizes' bytes each. */
static char *request_with_names(const char *const *texts, const size_t *sizes, size_t n)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509_REQ *q = X509_REQ_new();
    GENERAL_NAMES *names = GENERAL_NAMES_new();
    STACK_OF(X509_EXTENSION) *exts = NULL;
    for (size_t i = 0; i < n; i++) {
        GENERAL_NAME *name = GENERAL_NAME_new();
        ASN1_IA5STRING *s = ASN1_IA5STRING_new();
        assert_int_equal(ASN1_STRING_set(s, texts[i], (int) sizes[i]), 1);
        GENERAL_NAME_set0_value(name, GEN_DNS, s);
        sk_GENERAL_NAME_push(names, name);
    }
    assert_int_equal(X509V3_add1_i2d(&exts, NID_subject_alt_name, names, 0, 0), 1);
    assert_int_equal(X509_REQ_add_extensions(q, exts), 1);
    assert_int_equal(X509_REQ_set_pubkey(q, key), 1);
    assert_true(X509_REQ_sign(q, key, EVP_sha256()) > 0);
    BIO *b = BIO_new(BIO_s_mem());
    char *p;
    assert_int_equal(PEM_write_bio_X509_REQ(b, q), 1);
    long size = BIO_get_mem_data(b, &p);
    char *pem = xstrndup(p, (size_t) size);
    BIO_free(b);
    sk_X509_EXTENSION_pop_free(exts, X509_EXTENSION_free);
    GENERAL_NAMES_free(names);
    X509_REQ_free(q);
    EVP_PKEY_free(key);
    return pem;
}

/* What reads the certificate could take the name for the part before the NUL. */
static void a_name_with_a_nul_is_none(void **state)
{
    static const char *const texts[] = {"node1.example", "api.example\0.evil.example", "\0", "n2"};
    static const size_t sizes[] = {13, 25, 1, 2};
    CLEANUP_FREE char *pem = request_with_names(texts, sizes, ARRAY_SIZE(texts));
    CLEANUP(pki_csr_done) struct pki_csr c = {0};
    struct err e = {0};
    assert_int_equal(pki_csr_read(pem, &c, &e), 0);
    assert_int_equal(c.n_names, 2);
    assert_string_equal(c.names[0], "node1.example");
    assert_string_equal(c.names[1], "n2");
    assert_int_equal(c.n_others, 2);
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_token_is_good_with_its_own_key_only),
        T(the_header_does_not_choose_the_algorithm),
        T(malformed_tokens_are_refused),
        T(weak_and_other_keys_are_refused),
        T(base64url_has_one_text_for_one_value),
        T(a_request_becomes_a_certificate),
        T(a_key_is_made_once_and_read_again),
        T(wrong_requests_are_refused),
        T(a_name_with_a_nul_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
