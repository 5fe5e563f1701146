/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls/pki_priv.h"

#include "base/ip.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/loop/process.h"

#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAX_PEM (1u << 20)
#define CA_MS (3650 * 24 * PKI_HOUR_MS)
#define SERIAL_SIZE 16
#define MAX_DNS 253

void *pki_must(void *p)
{
    if (!p) {
        abort();
    }
    return p;
}

void pki_check(int ok)
{
    pki_must(ok > 0 ? (void *) "" : NULL);
}

static void secret_free(char *s)
{
    if (s) {
        explicit_bzero(s, strlen(s));
        free(s);
    }
}

void pki_pair_done(struct pki_pair *p)
{
    free(p->cert);
    secret_free(p->key);
    *p = (struct pki_pair){0};
}

/* ---- PEM ---- */

/* Owned text of the contents of 'b', which is freed. */
static char *bio_text(BIO *b)
{
    char *p;
    long size = BIO_get_mem_data(b, &p);
    char *text = xstrndup(p, (size_t) size);
    BIO_free(b);
    return text;
}

char *pki_cert_pem(X509 *x)
{
    BIO *b = pki_must(BIO_new(BIO_s_secmem()));
    pki_check(PEM_write_bio_X509(b, x));
    return bio_text(b);
}

char *pki_key_pem(EVP_PKEY *key)
{
    BIO *b = pki_must(BIO_new(BIO_s_secmem()));
    pki_check(PEM_write_bio_PKCS8PrivateKey(b, key, NULL, NULL, 0, NULL, NULL));
    return bio_text(b);
}

static int no_password(char *buf, int size, int writing, void *ctx)
{
    return -1;
}

X509 *pki_parse_cert(const char *pem)
{
    BIO *b = pki_must(BIO_new_mem_buf(pem, -1));
    X509 *x = PEM_read_bio_X509(b, NULL, no_password, NULL);
    BIO_free(b);
    ERR_clear_error();
    return x;
}

EVP_PKEY *pki_parse_key(const char *pem)
{
    BIO *b = pki_must(BIO_new_mem_buf(pem, -1));
    EVP_PKEY *key = PEM_read_bio_PrivateKey(b, NULL, no_password, NULL);
    BIO_free(b);
    ERR_clear_error();
    return key;
}

/* ---- pins ---- */

void pki_key_pin(X509_PUBKEY *key, char ret[PKI_PIN_SIZE])
{
    unsigned char *der = NULL, sum[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    int size = i2d_X509_PUBKEY(key, &der);
    pki_check(size);
    pki_check(EVP_Digest(der, (size_t) size, sum, &n, EVP_sha256(), NULL));
    OPENSSL_free(der);
    for (unsigned i = 0; i < n; i++) {
        snprintf(ret + (size_t) 2 * i, 3, "%02x", sum[i]);
    }
}

int pki_cert_pin(const char *pem, char ret[PKI_PIN_SIZE], struct err *e)
{
    X509 *x = pki_parse_cert(pem);
    if (!x) {
        return err_set(e, -EINVAL, "not a certificate in PEM form");
    }
    pki_key_pin(X509_get_X509_PUBKEY(x), ret);
    X509_free(x);
    return 0;
}

/* ---- making certificates ---- */

static void set_times(X509 *x, int64_t from_ms, int64_t until_ms)
{
    pki_must(ASN1_TIME_set(X509_getm_notBefore(x), (time_t) (from_ms / 1000)));
    pki_must(ASN1_TIME_set(X509_getm_notAfter(x), (time_t) (until_ms / 1000)));
}

int64_t pki_time(const ASN1_TIME *t)
{
    struct tm tm;
    return ASN1_TIME_to_tm(t, &tm) ? (int64_t) timegm(&tm) * 1000 : 0;
}

static void set_serial(X509 *x)
{
    unsigned char bytes[SERIAL_SIZE];
    pki_check(RAND_bytes(bytes, sizeof bytes));
    bytes[0] = (bytes[0] & 0x7f) | 0x40; /* Positive, and all bytes used. */
    BIGNUM *n = pki_must(BN_bin2bn(bytes, sizeof bytes, NULL));
    pki_must(BN_to_ASN1_INTEGER(n, X509_get_serialNumber(x)));
    BN_free(n);
}

void pki_name_add(X509_NAME *name, int nid, const char *text)
{
    pki_check(X509_NAME_add_entry_by_NID(name, nid, MBSTRING_UTF8, (const unsigned char *) text, -1,
                                         -1, 0));
}

static void add_extension(X509 *x, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
    X509_EXTENSION *ext = pki_must(X509V3_EXT_conf_nid(NULL, &ctx, nid, value));
    pki_check(X509_add_ext(x, ext, -1));
    X509_EXTENSION_free(ext);
}

GENERAL_NAMES *pki_alt_names(const char *const *list, size_t n)
{
    GENERAL_NAMES *names = pki_must(sk_GENERAL_NAME_new_null());
    for (size_t i = 0; i < n; i++) {
        uint32_t addr;
        bool is_ip = ip4_parse(list[i], &addr) == 0;
        addr = htonl(is_ip ? addr : 0);
        GENERAL_NAME *name = pki_must(GENERAL_NAME_new());
        ASN1_STRING *s = pki_must(is_ip ? ASN1_OCTET_STRING_new() : ASN1_IA5STRING_new());
        pki_check(is_ip ? ASN1_STRING_set(s, &addr, sizeof addr) : ASN1_STRING_set(s, list[i], -1));
        GENERAL_NAME_set0_value(name, is_ip ? GEN_IPADD : GEN_DNS, s);
        pki_check(sk_GENERAL_NAME_push(names, name));
    }
    return names;
}

X509 *pki_cert_new(EVP_PKEY *key, int64_t from_ms, int64_t until_ms)
{
    X509 *x = pki_must(X509_new());
    pki_check(X509_set_version(x, X509_VERSION_3));
    set_serial(x);
    set_times(x, from_ms, until_ms);
    pki_check(X509_set_pubkey(x, key));
    return x;
}

struct pki_ca *pki_ca_new(int64_t now_ms, int64_t until_ms)
{
    struct pki_ca *ca = NEW(struct pki_ca);
    /* The time keeps the names of two authorities apart. */
    CLEANUP_FREE char *cn = xasprintf("tenet-ca@%lld", (long long) (now_ms / 1000));
    ca->key = pki_must(EVP_EC_gen("P-256"));
    X509 *x = ca->cert = pki_cert_new(ca->key, now_ms - PKI_HOUR_MS, until_ms);
    pki_name_add(X509_get_subject_name(x), NID_commonName, cn);
    pki_check(X509_set_issuer_name(x, X509_get_subject_name(x)));
    add_extension(x, x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
    add_extension(x, x, NID_key_usage, "critical,digitalSignature,keyCertSign,cRLSign");
    add_extension(x, x, NID_subject_key_identifier, "hash");
    pki_check(X509_sign(x, ca->key, EVP_sha256()));
    ca->pem = pki_cert_pem(x);
    return ca;
}

struct pki_ca *pki_ca_free(struct pki_ca *ca)
{
    if (ca) {
        X509_free(ca->cert);
        EVP_PKEY_free(ca->key);
        free(ca->pem);
        free(ca);
    }
    return NULL;
}

const char *pki_ca_pem(const struct pki_ca *ca)
{
    return ca->pem;
}

/* A DNS name, perhaps with "*" as its first label. */
static bool is_dns(const char *s)
{
    size_t n = strlen(s), label = 0;
    s += str_has_prefix(s, "*.") ? 2 : 0;
    for (; *s; s++) {
        bool letter = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') ||
                      (*s >= '0' && *s <= '9') || *s == '-' || *s == '_';
        if (*s == '.' ? !label : !letter || label == 63) {
            return false;
        }
        label = *s == '.' ? 0 : label + 1;
    }
    return label && n <= MAX_DNS;
}

bool pki_name_is_valid(const char *name)
{
    uint32_t addr;
    return ip4_parse(name, &addr) == 0 || is_dns(name);
}

static int check_text(const char *what, const char *s, struct err *e)
{
    size_t n = strlen(s);
    return n == 0 || n > PKI_MAX_TEXT
               ? err_set(e, -EINVAL, "%s \"%.80s\": not 1 to %d bytes", what, s, PKI_MAX_TEXT)
               : 0;
}

static int check_request(const struct pki_request *q, struct err *e)
{
    int r = check_text("common name", q->cn, e);
    for (size_t i = 0; r == 0 && i < q->n_o; i++) {
        r = check_text("organization", q->o[i], e);
    }
    for (size_t i = 0; r == 0 && i < q->n_names; i++) {
        if (!pki_name_is_valid(q->names[i])) {
            r = err_set(e, -EINVAL, "\"%.80s\" is neither a DNS name nor an IPv4 address",
                        q->names[i]);
        }
    }
    return r;
}

void pki_cert_sign(const struct pki_ca *ca, X509 *x, const char *usages)
{
    pki_check(X509_set_issuer_name(x, X509_get_subject_name(ca->cert)));
    add_extension(x, ca->cert, NID_basic_constraints, "critical,CA:FALSE");
    add_extension(x, ca->cert, NID_key_usage, "critical,digitalSignature");
    add_extension(x, ca->cert, NID_ext_key_usage, usages);
    add_extension(x, ca->cert, NID_subject_key_identifier, "hash");
    add_extension(x, ca->cert, NID_authority_key_identifier, "keyid:always");
    pki_check(X509_sign(x, ca->key, EVP_sha256()));
}

int pki_issue(const struct pki_ca *ca, const struct pki_request *q, struct pki_pair *ret,
              struct err *e)
{
    int r = check_request(q, e);
    if (r < 0) {
        return r;
    }
    EVP_PKEY *key = pki_must(EVP_EC_gen("P-256"));
    X509 *x = pki_cert_new(key, q->from_ms, q->until_ms);
    X509_NAME *subject = X509_get_subject_name(x);
    for (size_t i = 0; i < q->n_o; i++) {
        pki_name_add(subject, NID_organizationName, q->o[i]);
    }
    pki_name_add(subject, NID_commonName, q->cn);
    if (q->names) {
        GENERAL_NAMES *names = pki_alt_names(q->names, q->n_names);
        pki_check(X509_add1_ext_i2d(x, NID_subject_alt_name, names, 0, 0));
        GENERAL_NAMES_free(names);
    }
    pki_cert_sign(ca, x, q->names ? "serverAuth" : "clientAuth");
    *ret = (struct pki_pair){.cert = pki_cert_pem(x), .key = pki_key_pem(key)};
    X509_free(x);
    EVP_PKEY_free(key);
    return 0;
}

/* ---- checking certificates ---- */

/* The values of one kind in the subject equal 'want', in that order. */
static bool subject_has(const X509 *x, int nid, const char *const *want, size_t n)
{
    const X509_NAME *name = X509_get_subject_name(x);
    size_t found = 0;
    for (int i = -1; (i = X509_NAME_get_index_by_NID(name, nid, i)) >= 0; found++) {
        const ASN1_STRING *s = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, i));
        if (found == n || (size_t) ASN1_STRING_length(s) != strlen(want[found]) ||
            memcmp(ASN1_STRING_get0_data(s), want[found], strlen(want[found])) != 0) {
            return false;
        }
    }
    return found == n;
}

static bool has_names(X509 *x, const struct pki_request *q)
{
    for (size_t i = 0; i < q->n_names; i++) {
        uint32_t addr;
        bool is_ip = ip4_parse(q->names[i], &addr) == 0;
        const char *dns = q->names[i];
        /* A wildcard is matched by an example of its names. */
        CLEANUP_FREE char *example = *dns == '*' ? xasprintf("x%s", dns + 1) : xstrdup(dns);
        if (is_ip ? X509_check_ip_asc(x, dns, 0) != 1
                  : X509_check_host(x, example, 0, 0, NULL) != 1) {
            return false;
        }
    }
    return true;
}

bool pki_is_good(const struct pki_ca *ca, const struct pki_request *q, const struct pki_pair *p,
                 int64_t now_ms)
{
    X509 *x = pki_parse_cert(p->cert);
    EVP_PKEY *key = pki_parse_key(p->key);
    bool good = x && key && X509_check_private_key(x, key) == 1 &&
                X509_check_issued(ca->cert, x) == X509_V_OK && X509_verify(x, ca->key) == 1 &&
                subject_has(x, NID_commonName, &q->cn, 1) &&
                subject_has(x, NID_organizationName, q->o, q->n_o) && has_names(x, q);
    if (good) {
        int64_t from = pki_time(X509_get0_notBefore(x)), until = pki_time(X509_get0_notAfter(x));
        good = now_ms >= from && now_ms < until - (until - from) / 3;
    }
    X509_free(x);
    EVP_PKEY_free(key);
    ERR_clear_error();
    return good;
}

/* ---- files ---- */

static int read_pem(const char *path, char **ret, struct err *e)
{
    struct strbuf b = STRBUF_INIT;
    int r = file_read(path, MAX_PEM, &b, e);
    if (r == 0) {
        *ret = strbuf_steal(&b);
    }
    return r;
}

/* A missing file leaves NULL. */
static int read_pair(const char *cert_file, const char *key_file, struct pki_pair *ret,
                     struct err *e)
{
    struct pki_pair p = {0};
    int r = read_pem(cert_file, &p.cert, e);
    if (r == 0 || r == -ENOENT) {
        r = read_pem(key_file, &p.key, e);
    }
    if (r < 0 && r != -ENOENT) {
        pki_pair_done(&p);
        return r;
    }
    err_clear(e);
    *ret = p;
    return 0;
}

/* The key first: a certificate whose key was lost is useless. */
static int write_pair(const char *cert, const char *key, const char *cert_file,
                      const char *key_file, struct err *e)
{
    int r = file_write_atomic(key_file, key, strlen(key), 0600, e);
    return r < 0 ? r : file_write_atomic(cert_file, cert, strlen(cert), 0644, e);
}

static int ca_make(const char *cert_file, const char *key_file, int64_t now_ms, struct pki_ca **ret,
                   struct err *e)
{
    CLEANUP(pki_ca_free) struct pki_ca *ca = pki_ca_new(now_ms, now_ms + CA_MS);
    char *key = pki_key_pem(ca->key);
    int r = write_pair(ca->pem, key, cert_file, key_file, e);
    secret_free(key);
    if (r == 0) {
        *ret = TAKE(ca);
    }
    return r;
}

static int ca_check(const struct pki_ca *ca, const char *cert_file, const char *key_file,
                    int64_t now_ms, struct err *e)
{
    if (!ca->cert || !ca->key) {
        return err_set(e, -EINVAL, "%s: not a %s in PEM form", ca->cert ? key_file : cert_file,
                       ca->cert ? "private key" : "certificate");
    }
    if (X509_check_private_key(ca->cert, ca->key) != 1) {
        return err_set(e, -EINVAL, "%s does not belong to %s", key_file, cert_file);
    }
    if (X509_check_ca(ca->cert) < 1) {
        return err_set(e, -EINVAL, "%s: not the certificate of an authority", cert_file);
    }
    if (now_ms >= pki_time(X509_get0_notAfter(ca->cert))) {
        return err_set(e, -EINVAL, "%s: has expired", cert_file);
    }
    return 0;
}

/* Takes the certificate of 'p' on success. */
static int ca_parse(struct pki_pair *p, const char *cert_file, const char *key_file, int64_t now_ms,
                    struct pki_ca **ret, struct err *e)
{
    CLEANUP(pki_ca_free) struct pki_ca *ca = NEW(struct pki_ca);
    ca->cert = pki_parse_cert(p->cert);
    ca->key = pki_parse_key(p->key);
    int r = ca_check(ca, cert_file, key_file, now_ms, e);
    ERR_clear_error();
    if (r == 0) {
        ca->pem = TAKE(p->cert);
        *ret = TAKE(ca);
    }
    return r;
}

int pki_ca_open(const char *dir, int64_t now_ms, struct pki_ca **ret, struct err *e)
{
    CLEANUP_FREE char *cert_file = xasprintf("%s/ca.crt", dir);
    CLEANUP_FREE char *key_file = xasprintf("%s/ca.key", dir);
    __attribute__((cleanup(pki_pair_done))) struct pki_pair p = {0};
    int r = read_pair(cert_file, key_file, &p, e);
    if (r < 0) {
        return r;
    }
    if (!p.cert) { /* A key without a certificate: their creation was interrupted. */
        return ca_make(cert_file, key_file, now_ms, ret, e);
    }
    if (!p.key) {
        return err_set(e, -EINVAL, "%s is there, but not its key %s", cert_file, key_file);
    }
    return ca_parse(&p, cert_file, key_file, now_ms, ret, e);
}

int pki_ca_load(const char *cert_file, const char *key_file, int64_t now_ms, struct pki_ca **ret,
                struct err *e)
{
    __attribute__((cleanup(pki_pair_done))) struct pki_pair p = {0};
    int r = read_pem(cert_file, &p.cert, e);
    if (r < 0 || (r = read_pem(key_file, &p.key, e)) < 0) {
        return r;
    }
    return ca_parse(&p, cert_file, key_file, now_ms, ret, e);
}

int pki_ensure_files(const struct pki_ca *ca, const struct pki_request *q, const char *cert_file,
                     const char *key_file, int64_t now_ms, bool *ret_made, struct err *e)
{
    __attribute__((cleanup(pki_pair_done))) struct pki_pair p = {0};
    int r = read_pair(cert_file, key_file, &p, e);
    bool made = false;
    if (r == 0 && !(p.cert && p.key && pki_is_good(ca, q, &p, now_ms))) {
        pki_pair_done(&p);
        made = true;
        r = pki_issue(ca, q, &p, e);
        if (r == 0) {
            r = write_pair(p.cert, p.key, cert_file, key_file, e);
        }
    }
    if (r == 0) {
        *ret_made = made;
    }
    return r;
}
