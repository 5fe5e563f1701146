/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls/pki_check.h"

#include "base/str.h"
#include "net/tls/pki_priv.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#define MIN_RSA_BITS 1024
#define MAX_RSA_BITS 16384

static int check_size(const char *pem, struct err *e)
{
    return strlen(pem) > PKI_CHECK_MAX_PEM
               ? err_set(e, -EINVAL, "is longer than %u bytes", PKI_CHECK_MAX_PEM)
               : 0;
}

/* The kinds of PEM blocks that are private keys. */
static bool is_key(const char *type)
{
    return streq(type, "PRIVATE KEY") || streq(type, "RSA PRIVATE KEY") ||
           streq(type, "EC PRIVATE KEY");
}

/* Blocks that come with keys, or instead of an unencrypted one. */
static bool is_beside_key(const char *type)
{
    return streq(type, "EC PARAMETERS");
}

/* The kinds of blocks that a text may have, and those found in it. */
struct pem_scan {
    bool keys; /* Private keys may be in it. */
    size_t n_certs, n_keys;
};

static int scan_block(struct pem_scan *s, const char *type, const unsigned char *data, long size,
                      struct err *e)
{
    const unsigned char *p = data;
    if (s->keys && is_key(type)) {
        s->n_keys++;
        return 0;
    }
    if (s->keys && is_beside_key(type)) {
        return 0;
    }
    if (!streq(type, "CERTIFICATE")) {
        return err_set(e, -EINVAL, "has a block \"%.40s\", which is not a certificate", type);
    }
    if (++s->n_certs > PKI_CHECK_MAX_CERTS) {
        return err_set(e, -EINVAL, "has more than %d certificates", PKI_CHECK_MAX_CERTS);
    }
    X509 *x = d2i_X509(NULL, &p, size);
    bool good = x && p == data + size && X509_get0_pubkey(x);
    X509_free(x);
    return good ? 0 : err_set(e, -EINVAL, "certificate %zu cannot be read", s->n_certs);
}

static int scan(const char *pem, struct pem_scan *s, struct err *e)
{
    char *type, *header;
    unsigned char *data;
    long size;
    int r = check_size(pem, e);
    if (r < 0) {
        return r;
    }
    BIO *b = pki_must(BIO_new_mem_buf(pem, -1));
    while (r == 0 && PEM_read_bio(b, &type, &header, &data, &size)) {
        r = scan_block(s, type, data, size, e);
        OPENSSL_free(type);
        OPENSSL_free(header);
        OPENSSL_clear_free(data, (size_t) size);
    }
    bool whole = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    BIO_free(b);
    ERR_clear_error();
    if (r == 0 && !whole) {
        r = err_set(e, -EINVAL, "has a block that is not whole PEM");
    } else if (r == 0 && s->n_certs == 0) {
        r = err_set(e, -EINVAL, "has no certificate in PEM form");
    }
    return r;
}

int pki_check_authorities(const char *pem, struct err *e)
{
    struct pem_scan s = {.keys = false};
    return scan(pem, &s, e);
}

int pki_check_certificate(const char *pem, struct err *e)
{
    struct pem_scan s = {.keys = true};
    return scan(pem, &s, e);
}

static int check_key_type(const EVP_PKEY *key, struct err *e)
{
    int type = EVP_PKEY_get_base_id(key), bits = EVP_PKEY_get_bits(key);
    if (type == EVP_PKEY_RSA || type == EVP_PKEY_RSA_PSS) {
        return bits >= MIN_RSA_BITS && bits <= MAX_RSA_BITS
                   ? 0
                   : err_set(e, -EINVAL, "is an RSA key of %d bits: there must be %d to %d", bits,
                             MIN_RSA_BITS, MAX_RSA_BITS);
    }
    return type == EVP_PKEY_EC || type == EVP_PKEY_ED25519 || type == EVP_PKEY_ED448
               ? 0
               : err_set(e, -EINVAL, "is neither an RSA key nor one with an elliptic curve");
}

static int read_key(const char *pem, EVP_PKEY **ret, struct err *e)
{
    int r = check_size(pem, e);
    EVP_PKEY *key = r < 0 ? NULL : pki_parse_key(pem);
    if (r == 0 && !key) {
        r = err_set(e, -EINVAL, "%s",
                    strstr(pem, "ENCRYPTED") ? "is encrypted, and no password can be given"
                                             : "is no private key in PEM form");
    } else if (r == 0) {
        r = check_key_type(key, e);
    }
    if (r < 0) {
        EVP_PKEY_free(key);
        return r;
    }
    *ret = key;
    return 0;
}

int pki_check_key(const char *pem, struct err *e)
{
    EVP_PKEY *key = NULL;
    int r = read_key(pem, &key, e);
    EVP_PKEY_free(key);
    return r;
}

int pki_check_pair(const char *cert, const char *key, struct err *e)
{
    EVP_PKEY *k = NULL;
    int r = check_size(cert, e);
    X509 *x = r < 0 ? NULL : pki_parse_cert(cert);
    if (r == 0 && !x) {
        r = err_set(e, -EINVAL, "the certificate cannot be read");
    }
    if (r == 0) {
        r = read_key(key ? key : cert, &k, e);
    }
    if (r == 0 && X509_check_private_key(x, k) != 1) {
        r = err_set(e, -EINVAL, "is not the key of the certificate");
    }
    X509_free(x);
    EVP_PKEY_free(k);
    ERR_clear_error();
    return r;
}
