/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and refusing certificate requests, and the certificates made from them. */
#include "base/mem.h"
#include "base/str.h"
#include "base/timeutil.h"
#include "csr.h"
#include "net/tls/pki_csr.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define HOUR_MS 3600000LL
#define SUBJECT                                                                             \
    "the request's subject is not one common name and at most 64 organizations, each of 1 " \
    "to 64 bytes of text"
#define KEY \
    "the request's key is neither RSA of 2048 bits and more, nor P-256 and more, nor Ed25519"
#define TEXT64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

/* "CN; O, O; NAME, NAME; OTHERS"; owned. */
static char *text_of(const struct pki_csr *c)
{
    struct strbuf b = STRBUF_INIT;
    strbuf_addf(&b, "%s;", c->cn);
    for (size_t i = 0; i < c->n_o; i++) {
        strbuf_addf(&b, " %s", c->o[i]);
    }
    strbuf_addc(&b, ';');
    for (size_t i = 0; i < c->n_names; i++) {
        strbuf_addf(&b, " %s", c->names[i]);
    }
    strbuf_addf(&b, "; %zu", c->n_others);
    return strbuf_steal(&b);
}

static void requests_are_read_or_refused(void **state)
{
    static const char *const o[] = {"dev", "ops", NULL};
    static const char *const long_o[] = {TEXT64, NULL};
    static const struct {
        struct csr_wish wish;
        const char *want; /* The result of text_of, or the error. */
    } cases[] = {
        {{.cn = "jane"}, "jane;;; 0"},
        {{.cn = "jane", .o = o}, "jane; dev ops;; 0"},
        {{.o = o}, "; dev ops;; 0"},
        {{.cn = "jane", .unit = "x"}, "jane;;; 1"},
        {{.cn = TEXT64}, TEXT64 ";;; 0"},
        {{.cn = "x", .o = long_o}, "x; " TEXT64 ";; 0"},
        {{.cn = "jane", .second_cn = "joe"}, SUBJECT},
        {{.cn = "jane", .second_cn = "jane"}, SUBJECT},
        {{.raw_cn = "abc", .raw_cn_size = 3}, "abc;;; 0"},
        {{.raw_cn = "system:admin\0x", .raw_cn_size = 14}, SUBJECT},
        {{.raw_cn = "jane\0", .raw_cn_size = 5}, SUBJECT},
        {{.cn = "j", .alt = "DNS:a.example.com,DNS:*.b"}, "j;; a.example.com *.b; 0"},
        {{.cn = "j", .alt = "IP:10.0.0.1,DNS:a"}, "j;; 10.0.0.1 a; 0"},
        {{.cn = "j", .alt = "IP:fd00::1"}, "j;;; 1"},
        {{.cn = "j", .alt = "email:a@b,URI:http://x,DNS:a"}, "j;; a; 2"},
        {{.cn = "j", .alt = "DNS:10.0.0.1"}, "j;;; 1"},
        {{.cn = "j", .alt = "DNS:a b"}, "j;;; 1"},
        {{.cn = "j", .raw_dns = "a\0b", .raw_size = 3}, "j;;; 1"},
        {{.cn = "j", .raw_dns = "a\0", .raw_size = 2}, "j;;; 1"},
        {{.cn = "j", .raw_dns = "\0a", .raw_size = 2}, "j;;; 1"},
        {{.cn = "j", .raw_dns = "", .raw_size = 0}, "j;;; 1"},
        {{.cn = "j", .raw_dns = "abcd", .raw_size = 4}, "j;; abcd; 0"},
        {{.cn = "j", .key = "RSA-2048"}, "j;;; 0"},
        {{.cn = "j", .key = "RSA-1024"}, KEY},
        {{.cn = "j", .key = "RSA-2047"}, KEY},
        {{.cn = "j", .key = "P-384"}, "j;;; 0"},
        {{.cn = "j", .key = "secp224r1"}, KEY},
        {{.cn = "j", .key = "ED25519"}, "j;;; 0"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *pem = csr_make(&cases[i].wish, NULL);
        CLEANUP(pki_csr_done) struct pki_csr c = {0};
        struct err e = {0};
        int r = pki_csr_read(pem, &c, &e);
        CLEANUP_FREE char *got = r == 0 ? text_of(&c) : xstrdup(e.text);
        assert_true(r == 0 || r == -EINVAL);
        if (!streq(got, cases[i].want)) {
            fail_msg("case %zu: %s, not %s", i, got, cases[i].want);
        }
        assert_true(r == 0 || !c.cn);
    }
}

/* Reads a request with 'n' organizations, or with 'n' names. */
static int read_many(size_t n, bool names, struct err *e)
{
    const char **o = xcalloc(n + 1, sizeof *o);
    CLEANUP_STRBUF struct strbuf alt = STRBUF_INIT;
    for (size_t i = 0; i < n; i++) {
        o[i] = "o";
        strbuf_addf(&alt, "%sDNS:a%zu", i ? "," : "", i);
    }
    struct csr_wish w = {.cn = "j", .o = names ? NULL : o, .alt = names ? alt.data : NULL};
    CLEANUP_FREE char *pem = csr_make(&w, NULL);
    CLEANUP(pki_csr_done) struct pki_csr c = {0};
    int r = pki_csr_read(pem, &c, e);
    assert_int_equal(r < 0 ? n : names ? c.n_names : c.n_o, n);
    free(o);
    return r;
}

static void requests_are_bounded(void **state)
{
    struct err e = {0};
    assert_int_equal(read_many(64, false, &e), 0);
    assert_int_equal(read_many(64, true, &e), 0);
    assert_int_equal(read_many(65, false, &e), -EINVAL);
    assert_string_equal(e.text, SUBJECT);
    err_clear(&e);
    assert_int_equal(read_many(65, true, &e), -EINVAL);
    assert_string_equal(e.text, "the request has more than 64 names");
}

static void a_request_is_signed_with_its_own_key(void **state)
{
    CLEANUP_FREE char *pem = csr_make(&(struct csr_wish){.cn = "jane"}, NULL);
    CLEANUP_FREE char *other_key = NULL;
    CLEANUP_FREE char *other = csr_make(&(struct csr_wish){.cn = "joe"}, &other_key);
    /* The request with a signature by another key. */
    BIO *b = BIO_new_mem_buf(pem, -1), *k = BIO_new_mem_buf(other_key, -1);
    X509_REQ *q = PEM_read_bio_X509_REQ(b, NULL, NULL, NULL);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(k, NULL, NULL, NULL);
    assert_true(X509_REQ_sign(q, key, EVP_sha256()) > 0);
    BIO *out = BIO_new(BIO_s_mem());
    assert_int_equal(PEM_write_bio_X509_REQ(out, q), 1);
    char *p;
    long n = BIO_get_mem_data(out, &p);
    CLEANUP_FREE char *forged = xstrndup(p, (size_t) n);
    CLEANUP(pki_csr_done) struct pki_csr c = {0};
    struct err e = {0};
    assert_int_equal(pki_csr_read(forged, &c, &e), -EINVAL);
    assert_string_equal(e.text, "the request is not signed with its own key");
    BIO_free(b);
    BIO_free(k);
    BIO_free(out);
    X509_REQ_free(q);
    EVP_PKEY_free(key);
}

static void a_certificate_takes_over_subject_and_names_only(void **state)
{
    static const char *const o[] = {"dev", "ops", NULL};
    static const struct {
        struct csr_wish wish;
        unsigned usages, extended;
        const char *subject;
        bool host;
    } cases[] = {
        {{.cn = "n1", .o = o, .alt = "DNS:n1,IP:10.0.0.1", .unit = "x"},
         PKI_SERVER,
         XKU_SSL_SERVER,
         "/O=dev/O=ops/CN=n1",
         true},
        {{.cn = "jane", .o = o, .alt = "DNS:n1,IP:10.0.0.1"},
         PKI_CLIENT,
         XKU_SSL_CLIENT,
         "/O=dev/O=ops/CN=jane",
         false},
        {{.cn = "n1", .alt = "DNS:n1,IP:10.0.0.1"},
         PKI_CLIENT | PKI_SERVER,
         XKU_SSL_CLIENT | XKU_SSL_SERVER,
         "/CN=n1",
         true},
        {{.o = o}, PKI_CLIENT, XKU_SSL_CLIENT, "/O=dev/O=ops", false},
        {{.cn = "jane"}, PKI_SERVER, XKU_SSL_SERVER, "/CN=jane", false},
    };
    int64_t now = time_wall_ms() / 1000 * 1000, from, until;
    CLEANUP(pki_ca_free) struct pki_ca *ca = pki_ca_new(now, now + 10 * HOUR_MS);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *pem = csr_make(&cases[i].wish, NULL);
        CLEANUP_FREE char *cert = NULL;
        struct err e = {0};
        assert_int_equal(
            pki_csr_sign(ca, pem, cases[i].usages, now - HOUR_MS, now + HOUR_MS, &cert, &e), 0);
        BIO *b = BIO_new_mem_buf(cert, -1);
        X509 *x = PEM_read_bio_X509(b, NULL, NULL, NULL);
        char subject[128];
        X509_NAME_oneline(X509_get_subject_name(x), subject, sizeof subject);
        assert_string_equal(subject, cases[i].subject);
        assert_int_equal(X509_get_extended_key_usage(x), cases[i].extended);
        assert_int_equal(X509_check_host(x, "n1", 0, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, NULL),
                         cases[i].host);
        assert_int_equal(X509_check_ip_asc(x, "10.0.0.1", 0), cases[i].host);
        assert_int_equal(X509_get_ext_by_NID(x, NID_subject_alt_name, -1) >= 0, cases[i].host);
        X509_free(x);
        BIO_free(b);
        assert_int_equal(pki_cert_times(cert, &from, &until, &e), 0);
        assert_int_equal(from, now - HOUR_MS);
        assert_int_equal(until, now + HOUR_MS);
    }
    /* A certificate expires with its authority at the latest. */
    CLEANUP_FREE char *pem = csr_make(&cases[0].wish, NULL);
    CLEANUP_FREE char *cert = NULL;
    assert_int_equal(pki_csr_sign(ca, pem, PKI_CLIENT, now, now + 11 * HOUR_MS, &cert, NULL), 0);
    assert_int_equal(pki_cert_times(cert, &from, &until, NULL), 0);
    assert_int_equal(until, now + 10 * HOUR_MS);
    CLEANUP_FREE char *weak = csr_make(&(struct csr_wish){.cn = "j", .key = "RSA-1024"}, NULL);
    struct err e = {0};
    char *none = NULL;
    assert_int_equal(pki_csr_sign(ca, weak, PKI_CLIENT, now, now + HOUR_MS, &none, &e), -EINVAL);
    assert_null(none);
    assert_int_equal(pki_cert_times("none", &from, &until, &e), -EINVAL);
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(requests_are_read_or_refused),
        T(requests_are_bounded),
        T(a_request_is_signed_with_its_own_key),
        T(a_certificate_takes_over_subject_and_names_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
