/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls/jws.h"

#include "base/base64.h"
#include "base/mem.h"
#include "net/loop/process.h"

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#define MAX_PEM (1u << 20)
#define MIN_RSA_BITS 2048
#define MAX_KEYS 64
#define MAX_JWK_NUMBER 1024 /* Bytes. */
#define EC_HALF 32          /* Bytes of r, and of s. */

struct key {
    EVP_PKEY *pkey;
    bool rsa;
    char *id; /* Hash of the public key, as Kubernetes makes it. */
};

struct jws_keys {
    struct key *keys;
    size_t n, cap;
    size_t signer; /* Index + 1 of the key that signs; 0: none. */
};

struct jws_keys *jws_keys_new(void)
{
    return NEW(struct jws_keys);
}

struct jws_keys *jws_keys_free(struct jws_keys *k)
{
    if (k) {
        for (size_t i = 0; i < k->n; i++) {
            EVP_PKEY_free(k->keys[i].pkey);
            free(k->keys[i].id);
        }
        free(k->keys);
        free(k);
    }
    return NULL;
}

/* ---- adding ---- */

/* base64url of the SHA-256 of the public key in DER; owned. */
static char *key_id(EVP_PKEY *pkey)
{
    unsigned char *der = NULL, hash[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    int n = i2d_PUBKEY(pkey, &der);
    struct strbuf b = STRBUF_INIT;
    if (n > 0 && EVP_Digest(der, (size_t) n, hash, &size, EVP_sha256(), NULL) == 1) {
        base64url_encode(hash, size, &b);
    }
    OPENSSL_free(der);
    return strbuf_steal(&b);
}

/* Takes ownership of 'pkey'; returns its index. */
static int add(struct jws_keys *k, EVP_PKEY *pkey, size_t *ret, struct err *e)
{
    char curve[64] = "";
    bool rsa = EVP_PKEY_is_a(pkey, "RSA");
    bool ec = EVP_PKEY_is_a(pkey, "EC") &&
              EVP_PKEY_get_group_name(pkey, curve, sizeof curve, NULL) == 1 &&
              streq(curve, "prime256v1");
    if (k->n == MAX_KEYS || (!rsa && !ec) || (rsa && EVP_PKEY_get_bits(pkey) < MIN_RSA_BITS)) {
        EVP_PKEY_free(pkey);
        return err_set(e, -EINVAL,
                       k->n == MAX_KEYS ? "too many keys"
                                        : "the key is neither P-256 nor RSA of %d bits and more",
                       MIN_RSA_BITS);
    }
    char *id = key_id(pkey);
    for (size_t i = 0; i < k->n; i++) {
        if (streq(k->keys[i].id, id)) { /* A private key replaces the public one. */
            EVP_PKEY_free(k->keys[i].pkey);
            k->keys[i].pkey = pkey;
            free(id);
            *ret = i;
            return 0;
        }
    }
    k->keys = grow(k->keys, &k->cap, k->n + 1, sizeof *k->keys);
    k->keys[k->n] = (struct key){.pkey = pkey, .rsa = rsa, .id = id};
    *ret = k->n++;
    return 0;
}

static int no_password(char *buf, int size, int writing, void *ctx)
{
    return -1;
}

int jws_keys_add_private(struct jws_keys *k, const char *pem, struct err *e)
{
    size_t at;
    BIO *b = BIO_new_mem_buf(pem, -1);
    EVP_PKEY *pkey = b ? PEM_read_bio_PrivateKey(b, NULL, no_password, NULL) : NULL;
    BIO_free(b);
    ERR_clear_error();
    if (!pkey) {
        return err_set(e, -EINVAL, "not a private key in PEM form");
    }
    int r = add(k, pkey, &at, e);
    if (r == 0) {
        k->signer = at + 1;
    }
    return r;
}

/* The next key of 'b'; NULL: none. */
static EVP_PKEY *next_key(BIO *b)
{
    char *name = NULL, *header = NULL;
    unsigned char *data = NULL;
    EVP_PKEY *pkey = NULL;
    long size;
    while (!pkey && PEM_read_bio(b, &name, &header, &data, &size) == 1) {
        const unsigned char *p = data;
        if (streq(name, "PUBLIC KEY")) {
            pkey = d2i_PUBKEY(NULL, &p, size);
        } else if (streq(name, "RSA PUBLIC KEY")) {
            pkey = d2i_PublicKey(EVP_PKEY_RSA, NULL, &p, size);
        } else if (str_has_suffix(name, "PRIVATE KEY")) {
            pkey = d2i_AutoPrivateKey(NULL, &p, size);
        } else if (streq(name, "CERTIFICATE")) {
            X509 *x = d2i_X509(NULL, &p, size);
            pkey = x ? X509_get_pubkey(x) : NULL;
            X509_free(x);
        }
        OPENSSL_free(name);
        OPENSSL_free(header);
        OPENSSL_clear_free(data, (size_t) size);
        name = header = NULL;
        data = NULL;
    }
    return pkey;
}

int jws_keys_add_public(struct jws_keys *k, const char *pem, struct err *e)
{
    BIO *b = BIO_new_mem_buf(pem, -1);
    EVP_PKEY *pkey;
    size_t n = 0, at;
    int r = 0;
    while (b && r == 0 && (pkey = next_key(b))) {
        r = add(k, pkey, &at, e);
        n++;
    }
    BIO_free(b);
    ERR_clear_error();
    return r == 0 && !n ? err_set(e, -EINVAL, "not a public key in PEM form") : r;
}

/* Adds the number that 'jwk' has in base64url as 'name'. */
static bool push_number(OSSL_PARAM_BLD *b, const char *param, const struct json *jwk,
                        const char *name, BIGNUM **ret)
{
    CLEANUP_STRBUF struct strbuf bytes = STRBUF_INIT_MAX(MAX_JWK_NUMBER);
    const char *text = json_get_text(jwk, name);
    if (!*text || base64url_decode(text, strlen(text), &bytes) < 0 || !bytes.size) {
        return false;
    }
    *ret = BN_bin2bn((unsigned char *) bytes.data, (int) bytes.size, NULL);
    return *ret && OSSL_PARAM_BLD_push_BN(b, param, *ret) == 1;
}

/* Adds the point (x, y) of 32 bytes each, uncompressed (SEC 1, 2.3.3). */
static bool push_point(OSSL_PARAM_BLD *b, const struct json *jwk,
                       unsigned char point[2 * EC_HALF + 1])
{
    const char *x = json_get_text(jwk, "x"), *y = json_get_text(jwk, "y");
    CLEANUP_STRBUF struct strbuf bytes = STRBUF_INIT_MAX(2 * EC_HALF);
    if (base64url_decode(x, strlen(x), &bytes) < 0 || bytes.size != EC_HALF ||
        base64url_decode(y, strlen(y), &bytes) < 0 || bytes.size != 2 * EC_HALF) {
        return false;
    }
    point[0] = 4;
    memcpy(point + 1, bytes.data, bytes.size);
    return OSSL_PARAM_BLD_push_utf8_string(b, OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) == 1 &&
           OSSL_PARAM_BLD_push_octet_string(b, OSSL_PKEY_PARAM_PUB_KEY, point, 2 * EC_HALF + 1) ==
               1;
}

int jws_keys_add_jwk(struct jws_keys *k, const struct json *jwk, struct err *e)
{
    const char *type = json_get_text(jwk, "kty"), *id = json_get_text(jwk, "kid");
    bool rsa = streq(type, "RSA");
    bool ec = streq(type, "EC") && streq(json_get_text(jwk, "crv"), "P-256");
    unsigned char point[2 * EC_HALF + 1];
    BIGNUM *n = NULL, *exponent = NULL;
    EVP_PKEY *pkey = NULL;
    OSSL_PARAM *params = NULL;
    OSSL_PARAM_BLD *b = OSSL_PARAM_BLD_new();
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, rsa ? "RSA" : "EC", NULL);
    bool ok = b && ctx && (rsa || ec) &&
              (rsa ? push_number(b, OSSL_PKEY_PARAM_RSA_N, jwk, "n", &n) &&
                         push_number(b, OSSL_PKEY_PARAM_RSA_E, jwk, "e", &exponent)
                   : push_point(b, jwk, point)) &&
              (params = OSSL_PARAM_BLD_to_param(b)) && EVP_PKEY_fromdata_init(ctx) == 1 &&
              EVP_PKEY_fromdata(ctx, &pkey, EVP_PKEY_PUBLIC_KEY, params) == 1;
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(b);
    EVP_PKEY_CTX_free(ctx);
    BN_free(n);
    BN_free(exponent);
    ERR_clear_error();
    if (!ok) {
        return err_set(e, -EINVAL, "key \"%.80s\" is neither RSA nor EC on P-256", id);
    }
    size_t at;
    int r = add(k, pkey, &at, e);
    if (r == 0 && *id) {
        free(k->keys[at].id);
        k->keys[at].id = xstrdup(id);
    }
    return r;
}

/* Owned PEM of a new private key. */
static char *make_private(void)
{
    EVP_PKEY *pkey = EVP_EC_gen("P-256");
    BIO *b = BIO_new(BIO_s_secmem());
    if (!pkey || !b || PEM_write_bio_PKCS8PrivateKey(b, pkey, NULL, NULL, 0, NULL, NULL) != 1) {
        abort(); /* Memory is out. */
    }
    char *p;
    long size = BIO_get_mem_data(b, &p);
    char *text = xstrndup(p, (size_t) size);
    BIO_free(b);
    EVP_PKEY_free(pkey);
    return text;
}

int jws_keys_load_private(struct jws_keys *k, const char *path, bool make, struct err *e)
{
    struct strbuf b = STRBUF_INIT_MAX(MAX_PEM);
    int r = file_read(path, MAX_PEM, &b, e);
    if (r == -ENOENT && make) {
        err_clear(e);
        char *pem = make_private();
        r = file_write_atomic(path, pem, strlen(pem), 0600, e);
        strbuf_adds(&b, pem);
        explicit_bzero(pem, strlen(pem));
        free(pem);
    }
    if (r == 0 && (r = jws_keys_add_private(k, strbuf_cstr(&b), e)) < 0) {
        err_prefix(e, "%s", path);
    }
    if (b.data) {
        explicit_bzero(b.data, b.size);
    }
    strbuf_done(&b);
    return r;
}

int jws_keys_load_public(struct jws_keys *k, const char *path, struct err *e)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT_MAX(MAX_PEM);
    int r = file_read(path, MAX_PEM, &b, e);
    if (r == 0 && (r = jws_keys_add_public(k, strbuf_cstr(&b), e)) < 0) {
        err_prefix(e, "%s", path);
    }
    return r;
}

/* ---- signing ---- */

static const char *algorithm(const struct key *k)
{
    return k->rsa ? "RS256" : "ES256";
}

/* Converts OpenSSL's DER form of an ECDSA signature to that of JWS: r and s, 32 bytes each. */
static int der_to_raw(const unsigned char *der, size_t size, unsigned char raw[2 * EC_HALF])
{
    ECDSA_SIG *sig = d2i_ECDSA_SIG(NULL, &der, (long) size);
    bool ok = sig && BN_bn2binpad(ECDSA_SIG_get0_r(sig), raw, EC_HALF) == EC_HALF &&
              BN_bn2binpad(ECDSA_SIG_get0_s(sig), raw + EC_HALF, EC_HALF) == EC_HALF;
    ECDSA_SIG_free(sig);
    return ok ? 0 : -EINVAL;
}

static int raw_to_der(const unsigned char raw[2 * EC_HALF], unsigned char **ret)
{
    ECDSA_SIG *sig = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(raw, EC_HALF, NULL), *s = BN_bin2bn(raw + EC_HALF, EC_HALF, NULL);
    if (!sig || !r || !s || ECDSA_SIG_set0(sig, r, s) != 1) {
        abort(); /* Memory is out. */
    }
    int n = i2d_ECDSA_SIG(sig, ret);
    ECDSA_SIG_free(sig);
    return n;
}

char *jws_sign(const struct jws_keys *k, const struct json *claims)
{
    const struct key *key = &k->keys[k->signer - 1];
    struct strbuf out = STRBUF_INIT;
    CLEANUP(json_free) struct json *header = json_object();
    json_set_string(header, "alg", algorithm(key));
    json_set_string(header, "kid", key->id);
    jwt_write_unsigned(header, claims, &out);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    unsigned char sig[1024];
    size_t n = sizeof sig;
    if (!ctx || EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, key->pkey) != 1 ||
        EVP_DigestSign(ctx, sig, &n, (const unsigned char *) out.data, out.size) != 1) {
        abort(); /* Every accepted key can sign. */
    }
    EVP_MD_CTX_free(ctx);
    unsigned char raw[2 * EC_HALF];
    strbuf_addc(&out, '.');
    if (key->rsa) {
        base64url_encode(sig, n, &out);
    } else if (der_to_raw(sig, n, raw) == 0) {
        base64url_encode(raw, sizeof raw, &out);
    }
    return strbuf_steal(&out);
}

/* ---- verifying ---- */

static bool is_by(const struct key *key, const char *text, const struct jwt *t)
{
    unsigned char *der = NULL;
    const unsigned char *sig = (const unsigned char *) strbuf_cstr(&t->signature);
    size_t n = t->signature.size;
    if (!key->rsa) {
        int size = n == 2 * EC_HALF ? raw_to_der(sig, &der) : -1;
        if (size <= 0) {
            return false;
        }
        sig = der;
        n = (size_t) size;
    }
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool ok = ctx && EVP_DigestVerifyInit(ctx, NULL, EVP_sha256(), NULL, key->pkey) == 1 &&
              EVP_DigestVerify(ctx, sig, n, (const unsigned char *) text, t->signed_size) == 1;
    EVP_MD_CTX_free(ctx);
    OPENSSL_free(der);
    ERR_clear_error();
    return ok;
}

int jws_verify(const struct jws_keys *k, const char *text, const struct jwt *t, struct err *e)
{
    const char *alg = json_path_string(t->header, "alg", NULL);
    const char *id = json_path_string(t->header, "kid", NULL);
    for (size_t i = 0; i < k->n; i++) {
        const struct key *key = &k->keys[i];
        /* Tokens without a key's name are tried with all. */
        if (streq_null(alg, algorithm(key)) && (!id || !*id || streq(id, key->id)) &&
            is_by(key, text, t)) {
            return 0;
        }
    }
    return err_set(e, -EKEYREJECTED, "the token's signature is by none of our keys");
}

/* ---- publishing ---- */

static void set_number(struct json *o, const char *name, EVP_PKEY *pkey, const char *param, int pad)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    unsigned char bytes[2048];
    BIGNUM *n = NULL;
    if (EVP_PKEY_get_bn_param(pkey, param, &n) == 1 && BN_num_bytes(n) <= (int) sizeof bytes) {
        int size = pad ? BN_bn2binpad(n, bytes, pad) : BN_bn2bin(n, bytes);
        base64url_encode(bytes, size > 0 ? (size_t) size : 0, &b);
    }
    BN_free(n);
    json_set_string(o, name, strbuf_cstr(&b));
}

struct json *jws_public_set(const struct jws_keys *k)
{
    struct json *o = json_object(), *list = json_ensure_array(o, "keys");
    for (size_t i = 0; i < k->n; i++) {
        const struct key *key = &k->keys[i];
        struct json *jwk = json_append(list, json_object());
        json_set_string(jwk, "use", "sig");
        json_set_string(jwk, "kty", key->rsa ? "RSA" : "EC");
        json_set_string(jwk, "kid", key->id);
        json_set_string(jwk, "alg", algorithm(key));
        if (key->rsa) {
            set_number(jwk, "n", key->pkey, OSSL_PKEY_PARAM_RSA_N, 0);
            set_number(jwk, "e", key->pkey, OSSL_PKEY_PARAM_RSA_E, 0);
        } else {
            json_set_string(jwk, "crv", "P-256");
            set_number(jwk, "x", key->pkey, OSSL_PKEY_PARAM_EC_PUB_X, EC_HALF);
            set_number(jwk, "y", key->pkey, OSSL_PKEY_PARAM_EC_PUB_Y, EC_HALF);
        }
    }
    return o;
}

struct json *jws_algorithms(const struct jws_keys *k)
{
    struct json *list = json_array();
    bool ec = false, rsa = false;
    for (size_t i = 0; i < k->n; i++) {
        ec |= !k->keys[i].rsa;
        rsa |= k->keys[i].rsa;
    }
    if (ec) {
        json_append(list, json_string("ES256"));
    }
    if (rsa) {
        json_append(list, json_string("RS256"));
    }
    return list;
}
