/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls/pki_csr.h"

#include "api/kind.h"
#include "base/ip.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/tls/pki_priv.h"
#include "sdn/address.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#define MAX_NAMES 64
#define MIN_RSA_BITS 2048

void pki_csr_done(struct pki_csr *c)
{
    for (size_t i = 0; i < c->n_o; i++) {
        free(c->o[i]);
    }
    for (size_t i = 0; i < c->n_names; i++) {
        free(c->names[i]);
    }
    free(c->o);
    free(c->names);
    free(c->cn);
    *c = (struct pki_csr){0};
}

/* ---- reading ---- */

static X509_REQ *parse(const char *pem)
{
    BIO *b = pki_must(BIO_new_mem_buf(pem, -1));
    X509_REQ *q = PEM_read_bio_X509_REQ(b, NULL, NULL, NULL);
    BIO_free(b);
    ERR_clear_error();
    return q;
}

/* Owned text of a part of the subject; NULL: it is not 1 to 64 bytes of text. */
static char *part_text(const X509_NAME_ENTRY *entry)
{
    unsigned char *utf8 = NULL;
    int size = ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(entry));
    char *text = NULL;
    if (size > 0 && size <= PKI_MAX_TEXT && !memchr(utf8, '\0', (size_t) size)) {
        text = xstrndup((const char *) utf8, (size_t) size);
    }
    OPENSSL_free(utf8);
    return text;
}

static int read_subject(const X509_NAME *name, struct pki_csr *c, struct err *e)
{
    for (int i = 0; i < X509_NAME_entry_count(name); i++) {
        const X509_NAME_ENTRY *entry = X509_NAME_get_entry(name, i);
        int nid = OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry));
        if (nid != NID_commonName && nid != NID_organizationName) {
            c->n_others++;
            continue;
        }
        char *text = part_text(entry);
        if (!text || (nid == NID_commonName ? c->cn != NULL : c->n_o == MAX_NAMES)) {
            free(text);
            return err_set(e, -EINVAL,
                           "the request's subject is not one common name and at most %d "
                           "organizations, each of 1 to %d bytes of text",
                           MAX_NAMES, PKI_MAX_TEXT);
        }
        if (nid == NID_commonName) {
            c->cn = text;
        } else {
            c->o = xreallocarray(c->o, c->n_o + 1, sizeof *c->o);
            c->o[c->n_o++] = text;
        }
    }
    c->cn = c->cn ? c->cn : xstrdup("");
    return 0;
}

/* Owned; NULL: a type that is not copied, or malformed. */
static char *alt_text(const GENERAL_NAME *name)
{
    int type;
    const ASN1_STRING *s = GENERAL_NAME_get0_value(name, &type);
    const char *p =
        (type == GEN_DNS || type == GEN_IPADD) ? (const char *) ASN1_STRING_get0_data(s) : NULL;
    size_t n = p ? (size_t) ASN1_STRING_length(s) : 0;
    if (type == GEN_IPADD && n == sizeof(uint32_t)) {
        uint32_t addr;
        memcpy(&addr, p, sizeof addr);
        return xasprintf("%s", IP4_TEXT(ntohl(addr)));
    }
    if (type != GEN_DNS || !n || memchr(p, '\0', n)) {
        return NULL;
    }
    char *text = xstrndup(p, n);
    uint32_t addr;
    if (!pki_name_is_valid(text) || ip4_parse(text, &addr) == 0) {
        free(text);
        return NULL;
    }
    return text;
}

static int read_names(X509_REQ *q, struct pki_csr *c, struct err *e)
{
    STACK_OF(X509_EXTENSION) *exts = X509_REQ_get_extensions(q);
    GENERAL_NAMES *names = exts ? X509V3_get_d2i(exts, NID_subject_alt_name, NULL, NULL) : NULL;
    int n = names ? sk_GENERAL_NAME_num(names) : 0, r = 0;
    if (n > MAX_NAMES) {
        r = err_set(e, -EINVAL, "the request has more than %d names", MAX_NAMES);
    }
    for (int i = 0; r == 0 && i < n; i++) {
        char *text = alt_text(sk_GENERAL_NAME_value(names, i));
        if (text) {
            c->names = xreallocarray(c->names, c->n_names + 1, sizeof *c->names);
            c->names[c->n_names++] = text;
        } else {
            c->n_others++;
        }
    }
    GENERAL_NAMES_free(names);
    sk_X509_EXTENSION_pop_free(exts, X509_EXTENSION_free);
    return r;
}

#define NODE_USER "system:node:"

int pki_csr_check_names(const struct pki_csr *c, bool server, struct err *e)
{
    if (str_has_prefix(c->cn, NODE_USER)) {
        const char *why = api_check_dns_subdomain(c->cn + strlen(NODE_USER));
        if (why) {
            return err_set(e, -EINVAL, "the common name \"%s\" is of no node: %s", c->cn, why);
        }
    }
    for (size_t i = 0; server && i < c->n_names; i++) {
        uint32_t ip;
        bool address = ip4_parse(c->names[i], &ip) == 0;
        const char *why = address ? NULL : api_check_dns_subdomain(c->names[i]);
        if (why) {
            return err_set(e, -EINVAL, "the name \"%.253s\" is of no host: %.120s", c->names[i],
                           why);
        }
        if (address && host_address_check(ip, e) < 0) {
            return err_prefix(e, "the address"), -EINVAL;
        }
    }
    return 0;
}

static int check_key(X509_REQ *q, struct err *e)
{
    EVP_PKEY *key = X509_REQ_get0_pubkey(q);
    bool good = key && ((EVP_PKEY_is_a(key, "RSA") && EVP_PKEY_get_bits(key) >= MIN_RSA_BITS) ||
                        (EVP_PKEY_is_a(key, "EC") && EVP_PKEY_get_security_bits(key) >= 128) ||
                        EVP_PKEY_is_a(key, "ED25519"));
    if (!good) {
        return err_set(e, -EINVAL,
                       "the request's key is neither RSA of %d bits and more, nor P-256 and more, "
                       "nor Ed25519",
                       MIN_RSA_BITS);
    }
    return X509_REQ_verify(q, key) == 1
               ? 0
               : err_set(e, -EINVAL, "the request is not signed with its own key");
}

static int read_request(const char *pem, X509_REQ **ret_request, struct pki_csr *ret, struct err *e)
{
    struct pki_csr c = {0};
    X509_REQ *q = parse(pem);
    int r = q ? check_key(q, e)
              : err_set(e, -EINVAL, "not a certificate request in PEM form (CERTIFICATE REQUEST)");
    if (r == 0) {
        r = read_subject(X509_REQ_get_subject_name(q), &c, e);
    }
    if (r == 0) {
        r = read_names(q, &c, e);
    }
    if (r == 0) {
        pki_key_pin(X509_REQ_get_X509_PUBKEY(q), c.pin);
    }
    ERR_clear_error();
    if (r < 0) {
        pki_csr_done(&c);
        X509_REQ_free(q);
        return r;
    }
    *ret_request = q;
    *ret = c;
    return 0;
}

int pki_csr_read(const char *pem, struct pki_csr *ret, struct err *e)
{
    X509_REQ *q;
    int r = read_request(pem, &q, ret, e);
    if (r == 0) {
        X509_REQ_free(q);
    }
    return r;
}

/* ---- making ---- */

/* The alternative names as an extension of the request. */
static void add_names(X509_REQ *q, const char *const *names, size_t n)
{
    STACK_OF(X509_EXTENSION) *list = NULL;
    GENERAL_NAMES *alt = pki_alt_names(names, n);
    pki_check(X509V3_add1_i2d(&list, NID_subject_alt_name, alt, 0, X509V3_ADD_DEFAULT));
    pki_check(X509_REQ_add_extensions(q, list));
    sk_X509_EXTENSION_pop_free(list, X509_EXTENSION_free);
    GENERAL_NAMES_free(alt);
}

void pki_csr_make(const char *cn, const char *const *o, size_t n_o, char **ret_csr, char **ret_key)
{
    pki_csr_make_server(cn, o, n_o, NULL, 0, ret_csr, ret_key);
}

/* The request, signed with 'key', as owned PEM. */
static char *make_request(EVP_PKEY *key, const char *cn, const char *const *o, size_t n_o,
                          const char *const *names, size_t n_names)
{
    X509_REQ *q = pki_must(X509_REQ_new());
    BIO *b = pki_must(BIO_new(BIO_s_mem()));
    char *p;
    for (size_t i = 0; i < n_o; i++) {
        pki_name_add(X509_REQ_get_subject_name(q), NID_organizationName, o[i]);
    }
    pki_name_add(X509_REQ_get_subject_name(q), NID_commonName, cn);
    pki_check(X509_REQ_set_pubkey(q, key));
    if (n_names) {
        add_names(q, names, n_names);
    }
    pki_check(X509_REQ_sign(q, key, EVP_sha256()));
    pki_check(PEM_write_bio_X509_REQ(b, q));
    long size = BIO_get_mem_data(b, &p);
    char *csr = xstrndup(p, (size_t) size);
    BIO_free(b);
    X509_REQ_free(q);
    return csr;
}

void pki_csr_make_server(const char *cn, const char *const *o, size_t n_o, const char *const *names,
                         size_t n_names, char **ret_csr, char **ret_key)
{
    EVP_PKEY *key = pki_must(EVP_EC_gen("P-256"));
    *ret_csr = make_request(key, cn, o, n_o, names, n_names);
    *ret_key = pki_key_pem(key);
    EVP_PKEY_free(key);
}

int pki_csr_make_with(const char *key_pem, const char *cn, const char *const *o, size_t n_o,
                      char **ret_csr, struct err *e)
{
    EVP_PKEY *key = pki_parse_key(key_pem);
    if (!key) {
        return err_set(e, -EINVAL, "not a private key in PEM form");
    }
    *ret_csr = make_request(key, cn, o, n_o, NULL, 0);
    EVP_PKEY_free(key);
    return 0;
}

/* ---- signing ---- */

int pki_csr_sign(const struct pki_ca *ca, const char *pem, unsigned usages, int64_t from_ms,
                 int64_t until_ms, char **ret, struct err *e)
{
    CLEANUP(pki_csr_done) struct pki_csr c = {0};
    X509_REQ *q;
    int r = read_request(pem, &q, &c, e);
    if (r < 0) {
        return r;
    }
    int64_t last = pki_time(X509_get0_notAfter(ca->cert));
    X509 *x = pki_cert_new(X509_REQ_get0_pubkey(q), from_ms, MIN(until_ms, last));
    X509_NAME *subject = X509_get_subject_name(x);
    for (size_t i = 0; i < c.n_o; i++) {
        pki_name_add(subject, NID_organizationName, c.o[i]);
    }
    if (*c.cn) {
        pki_name_add(subject, NID_commonName, c.cn);
    }
    if (usages & PKI_SERVER && c.n_names) {
        GENERAL_NAMES *names = pki_alt_names((const char *const *) c.names, c.n_names);
        pki_check(X509_add1_ext_i2d(x, NID_subject_alt_name, names, 0, 0));
        GENERAL_NAMES_free(names);
    }
    pki_cert_sign(ca, x,
                  usages == (PKI_CLIENT | PKI_SERVER) ? "clientAuth,serverAuth"
                  : usages == PKI_SERVER              ? "serverAuth"
                                                      : "clientAuth");
    *ret = pki_cert_pem(x);
    X509_free(x);
    X509_REQ_free(q);
    return 0;
}

int pki_cert_times(const char *pem, int64_t *ret_from_ms, int64_t *ret_until_ms, struct err *e)
{
    X509 *x = pki_parse_cert(pem);
    if (!x) {
        return err_set(e, -EINVAL, "not a certificate in PEM form");
    }
    *ret_from_ms = pki_time(X509_get0_notBefore(x));
    *ret_until_ms = pki_time(X509_get0_notAfter(x));
    X509_free(x);
    return 0;
}
