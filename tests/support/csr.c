/* SPDX-License-Identifier: Apache-2.0 */
#include "csr.h"

#include "base/base64.h"
#include "base/str.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

/* OpenSSL fails here only when a wish names an unknown type. */
static void *must(void *p)
{
    if (!p) {
        abort();
    }
    return p;
}

static void check(int ok)
{
    if (ok <= 0) {
        abort();
    }
}

static EVP_PKEY *key_of(const char *type)
{
    if (str_has_prefix(type, "RSA-")) {
        return must(EVP_RSA_gen((unsigned) atoi(type + 4)));
    }
    return must(streq(type, "ED25519") ? EVP_PKEY_Q_keygen(NULL, NULL, "ED25519")
                                       : EVP_EC_gen(type));
}

static void add(X509_NAME *name, int nid, const char *text)
{
    check(X509_NAME_add_entry_by_NID(name, nid, MBSTRING_UTF8, (const unsigned char *) text, -1, -1,
                                     0));
}

static void add_names(X509_REQ *q, const struct csr_wish *w)
{
    STACK_OF(X509_EXTENSION) *list = sk_X509_EXTENSION_new_null();
    GENERAL_NAMES *raw = NULL;
    if (w->raw_dns) {
        GENERAL_NAME *one = must(GENERAL_NAME_new());
        ASN1_IA5STRING *s = must(ASN1_IA5STRING_new());
        raw = must(GENERAL_NAMES_new());
        check(ASN1_STRING_set(s, w->raw_dns, (int) w->raw_size));
        GENERAL_NAME_set0_value(one, GEN_DNS, s);
        check(sk_GENERAL_NAME_push(raw, one));
    }
    check(sk_X509_EXTENSION_push(
        list, must(raw ? X509V3_EXT_i2d(NID_subject_alt_name, 0, raw)
                       : X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, w->alt))));
    check(X509_REQ_add_extensions(q, list));
    GENERAL_NAMES_free(raw);
    sk_X509_EXTENSION_pop_free(list, X509_EXTENSION_free);
}

static char *text_of(BIO *b)
{
    char *p;
    long n = BIO_get_mem_data(b, &p);
    char *text = xstrndup(p, (size_t) n);
    BIO_free(b);
    return text;
}

char *csr_make(const struct csr_wish *w, char **ret_key)
{
    EVP_PKEY *key = key_of(w->key ? w->key : "P-256");
    X509_REQ *q = must(X509_REQ_new());
    X509_NAME *subject = X509_REQ_get_subject_name(q);
    BIO *b = must(BIO_new(BIO_s_mem()));
    for (const char *const *o = w->o; o && *o; o++) {
        add(subject, NID_organizationName, *o);
    }
    const struct {
        int nid;
        const char *text;
    } parts[] = {{NID_commonName, w->cn},
                 {NID_commonName, w->second_cn},
                 {NID_organizationalUnitName, w->unit}};
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        if (parts[i].text) {
            add(subject, parts[i].nid, parts[i].text);
        }
    }
    if (w->raw_cn) {
        check(X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_UTF8,
                                         (const unsigned char *) w->raw_cn, (int) w->raw_cn_size,
                                         -1, 0));
    }
    if (w->alt || w->raw_dns) {
        add_names(q, w);
    }
    check(X509_REQ_set_pubkey(q, key));
    check(X509_REQ_sign(q, key, EVP_PKEY_is_a(key, "ED25519") ? NULL : EVP_sha256()));
    check(PEM_write_bio_X509_REQ(b, q));
    if (ret_key) {
        BIO *k = must(BIO_new(BIO_s_mem()));
        check(PEM_write_bio_PKCS8PrivateKey(k, key, NULL, NULL, 0, NULL, NULL));
        *ret_key = text_of(k);
    }
    X509_REQ_free(q);
    EVP_PKEY_free(key);
    return text_of(b);
}

char *csr_text(const struct csr_wish *w)
{
    CLEANUP_FREE char *pem = csr_make(w, NULL);
    struct strbuf b = STRBUF_INIT;
    base64_encode(pem, strlen(pem), &b);
    return strbuf_steal(&b);
}
