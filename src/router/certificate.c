/* SPDX-License-Identifier: Apache-2.0 */
#include "router/certificate.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/timeutil.h"
#include "net/tls/pki.h"

#include <openssl/pem.h>
#include <openssl/x509.h>

#define YEAR_MS (366 * INT64_C(86400000))
#define CHAIN_MAX 16

static BIO *reader(const char *pem)
{
    return BIO_new_mem_buf(pem, (int) MIN(strlen(pem), INT32_MAX));
}

/* No password is asked for at a terminal. */
static int no_password(char *buf, int size, int rwflag, void *ctx)
{
    return 0;
}

/* Copies the certificates of 'pem' to 'to'; '*first' gets the first one if it is empty. */
static int copy_certificates(const char *pem, const char *what, BIO *to, X509 **first,
                             struct err *e)
{
    BIO *from = reader(pem);
    X509 *x;
    int n = 0, r = 0;
    while (r == 0 && (x = PEM_read_bio_X509(from, NULL, no_password, NULL))) {
        r = ++n > CHAIN_MAX ? err_set(e, -EINVAL, "%s: more than %d certificates", what, CHAIN_MAX)
                            : 0;
        PEM_write_bio_X509(to, x);
        if (first && !*first) {
            *first = x;
        } else {
            X509_free(x);
        }
    }
    BIO_free(from);
    if (r == 0 && n == 0) {
        r = err_set(e, -EINVAL, "%s: no PEM certificate", what);
    }
    return r;
}

static char *text_of(BIO *b)
{
    char *p;
    long n = BIO_get_mem_data(b, &p);
    return xstrndup(n > 0 ? p : "", n > 0 ? (size_t) n : 0);
}

static int copy_key(const char *pem, X509 *cert, BIO *to, struct err *e)
{
    BIO *from = reader(pem);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(from, NULL, no_password, NULL);
    BIO_free(from);
    int r = 0;
    if (!key) {
        r = err_set(e, -EINVAL, "spec.tls.key: no PEM private key without a password");
    } else if (EVP_PKEY_get_base_id(key) == EVP_PKEY_DSA) {
        r = err_set(e, -EINVAL, "spec.tls.key: DSA keys are not supported");
    } else if (X509_check_private_key(cert, key) != 1) {
        r = err_set(e, -EINVAL, "spec.tls.key: the key is not that of the certificate");
    } else {
        PEM_write_bio_PrivateKey(to, key, NULL, NULL, 0, NULL, NULL);
    }
    EVP_PKEY_free(key);
    return r;
}

int certificate_join(const char *cert, const char *key, const char *ca, char **ret, struct err *e)
{
    BIO *out = BIO_new(BIO_s_secmem());
    X509 *first = NULL;
    int r = copy_certificates(cert, "spec.tls.certificate", out, &first, e);
    if (r == 0 && ca && *ca) {
        r = copy_certificates(ca, "spec.tls.caCertificate", out, NULL, e);
    }
    if (r == 0) {
        r = copy_key(key && *key ? key : cert, first, out, e);
    }
    if (r == 0) {
        *ret = text_of(out);
    }
    X509_free(first);
    BIO_free(out);
    return r;
}

int certificate_normalize(const char *pem, char **ret, struct err *e)
{
    BIO *out = BIO_new(BIO_s_mem());
    int r = copy_certificates(pem, "spec.tls.destinationCACertificate", out, NULL, e);
    if (r == 0) {
        *ret = text_of(out);
    }
    BIO_free(out);
    return r;
}

char *certificate_make_default(void)
{
    int64_t now = time_wall_ms();
    struct pki_ca *ca = pki_ca_new(now, now + YEAR_MS);
    const char *const names[] = {"router.invalid"};
    struct pki_request q = {.cn = "default router certificate",
                            .names = names,
                            .n_names = 1,
                            .from_ms = now - 3600000,
                            .until_ms = now + YEAR_MS};
    struct pki_pair p = {0};
    char *text = NULL;
    if (pki_issue(ca, &q, &p, NULL) == 0) {
        text = xasprintf("%s%s", p.cert, p.key);
        pki_pair_done(&p);
    }
    pki_ca_free(ca);
    return text ? text : xstrdup("");
}
