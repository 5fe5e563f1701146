/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts of servers: their certificates, which clients they accept, versions and ciphers.
 *
 * Two kinds of authorities may sign a client's certificate: those of clients, whose certificates
 * name users, and those of proxies, whose certificates must never make a user.  Which one it was is
 * found when the certificate is verified, and goes into the ticket of the session, because a resumed
 * session has no certificate to verify. */
#include "base/mem.h"
#include "net/loop/process.h"
#include "net/tls/tls_priv.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <strings.h>

#define MAX_PEM (1u << 20)
#define TICKET_SECONDS 3600

/* ALPN names of our protocols; the server chooses the first that the client offers, too. */
static const unsigned char server_alpn[] = "\x02h2\x08http/1.1";

/* The cipher suites of TLS 1.2 with a key exchange per session and authenticated encryption, and
 * those of TLS 1.3, by IANA's names and those that Go had before them. */
static const struct cipher {
    const char *name, *openssl;
    bool is_13;
} cipher_table[] = {
    {"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256", false},
    {"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384", false},
    {"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", "ECDHE-ECDSA-CHACHA20-POLY1305", false},
    {"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305", false},
    {"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256", false},
    {"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384", false},
    {"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "ECDHE-RSA-CHACHA20-POLY1305", false},
    {"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305", false},
    {"TLS_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256", true},
    {"TLS_AES_256_GCM_SHA384", "TLS_AES_256_GCM_SHA384", true},
    {"TLS_CHACHA20_POLY1305_SHA256", "TLS_CHACHA20_POLY1305_SHA256", true},
};

struct proxy {
    X509_STORE *store;
    char digest[TLS_AUTHORITY_SIZE];
};

struct named {
    struct tls_pair pair;
    char **names;
    size_t n_names, cap;
};

/* The part of a context beside OpenSSL's; it lives as long as that part and its connections. */
struct server_side {
    struct proxy *proxies;
    size_t n_proxies;
    struct named *named;
    size_t n_named;
};

static void side_free(struct server_side *s)
{
    for (size_t i = 0; i < s->n_proxies; i++) {
        X509_STORE_free(s->proxies[i].store);
    }
    for (size_t i = 0; i < s->n_named; i++) {
        tls_pair_done(&s->named[i].pair);
        for (size_t k = 0; k < s->named[i].n_names; k++) {
            free(s->named[i].names[k]);
        }
        free(s->named[i].names);
    }
    free(s->proxies);
    free(s->named);
    free(s);
}

/* Called by OpenSSL when it frees a context. */
static void side_gone(void *parent, void *p, CRYPTO_EX_DATA *data, int index, long n, void *arg)
{
    if (p) {
        side_free(p);
    }
}

static int side_index(void)
{
    static int index = -1;
    if (index < 0) {
        index = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, side_gone);
    }
    return index;
}

/* ---- ciphers and versions ---- */

static const struct cipher *find_cipher(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(cipher_table); i++) {
        if (streq(cipher_table[i].name, name)) {
            return &cipher_table[i];
        }
    }
    return NULL;
}

int tls_check_cipher(const char *name, struct err *e)
{
    return find_cipher(name) ? 0
                             : err_set(e, -EINVAL,
                                       "\"%.80s\" is no cipher suite of TLS 1.3, and none of TLS "
                                       "1.2 with ECDHE and AES-GCM or ChaCha20",
                                       name);
}

bool tls_cipher_is_13(const char *name)
{
    const struct cipher *c = find_cipher(name);
    return c && c->is_13;
}

static void use_ciphers(SSL_CTX *ctx, const struct tls_server_config *cfg)
{
    CLEANUP_STRBUF struct strbuf of_12 = STRBUF_INIT, of_13 = STRBUF_INIT;
    bool only_13 = cfg->min_version && streq(cfg->min_version, "VersionTLS13");
    for (const char *const *name = cfg->ciphers; name && *name; name++) {
        const struct cipher *c = find_cipher(*name);
        struct strbuf *list = c && c->is_13 ? &of_13 : &of_12;
        if (c) {
            strbuf_addf(list, "%s%s", list->size ? ":" : "", c->openssl);
        }
    }
    if (of_12.size) {
        tls_must(SSL_CTX_set_cipher_list(ctx, of_12.data) ? ctx : NULL);
    }
    if (of_13.size) {
        tls_must(SSL_CTX_set_ciphersuites(ctx, of_13.data) ? ctx : NULL);
    }
    if (only_13 || (of_13.size && !of_12.size)) {
        SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION);
    }
}

/* The first of our protocols that the client offers (RFC 7301). */
static int select_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_size,
                           const unsigned char *in, unsigned in_size, void *ctx)
{
    return SSL_select_next_proto((unsigned char **) out, out_size, server_alpn,
                                 sizeof server_alpn - 1, in, in_size) == OPENSSL_NPN_NEGOTIATED
               ? SSL_TLSEXT_ERR_OK
               : SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* ---- files ---- */

static int read_pem(const char *path, struct strbuf *out, struct err *e)
{
    int r = file_read(path, MAX_PEM, out, e);
    if (r == 0 && strlen(strbuf_cstr(out)) != out->size) {
        r = err_set(e, -EINVAL, "read %s: not a PEM file", path);
    }
    return r;
}

static void secret_done(struct strbuf *b)
{
    if (b->data) {
        explicit_bzero(b->data, b->size);
    }
    strbuf_done(b);
}

static int read_pair(const char *cert_file, const char *key_file, struct tls_pair *ret,
                     struct err *e)
{
    CLEANUP_STRBUF struct strbuf cert = STRBUF_INIT;
    __attribute__((cleanup(secret_done))) struct strbuf key = STRBUF_INIT;
    int r = read_pem(cert_file, &cert, e);
    if (r < 0 || (r = read_pem(key_file, &key, e)) < 0) {
        return r;
    }
    r = tls_pair_parse(strbuf_cstr(&cert), strbuf_cstr(&key), ret, e);
    return r < 0 ? (err_prefix(e, "%s, %s", cert_file, key_file), r) : 0;
}

/* ---- further certificates ---- */

static void add_name(struct named *n, const char *name, size_t size)
{
    n->names = grow(n->names, &n->cap, n->n_names + 1, sizeof *n->names);
    char *own = n->names[n->n_names++] = xstrndup(name, size);
    for (; *own; own++) {
        *own = (char) (*own >= 'A' && *own <= 'Z' ? *own + ('a' - 'A') : *own);
    }
}

/* The DNS names of the certificate itself. */
static void add_own_names(struct named *n)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(n->pair.cert, NID_subject_alt_name, NULL, NULL);
    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        int type;
        const ASN1_STRING *s = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, i), &type);
        const char *text = (const char *) ASN1_STRING_get0_data(s);
        size_t size = (size_t) ASN1_STRING_length(s);
        if (type == GEN_DNS && size && !memchr(text, '\0', size)) {
            add_name(n, text, size);
        }
    }
    GENERAL_NAMES_free(names);
    ERR_clear_error();
}

static int add_named(struct server_side *s, SSL_CTX *ctx, const struct tls_named_cert *cfg,
                     struct err *e)
{
    struct named *n = &s->named[s->n_named];
    int r = read_pair(cfg->cert_file, cfg->key_file, &n->pair, e);
    if (r < 0) {
        return r;
    }
    s->n_named++;
    for (const char *const *name = cfg->names; name && *name; name++) {
        add_name(n, *name, strlen(*name));
    }
    if (!n->n_names) {
        add_own_names(n);
    }
    if (!n->n_names) {
        return err_set(e, -EINVAL, "%s: has no DNS name, and no names are given", cfg->cert_file);
    }
    /* Also what OpenSSL refuses (a key that is too short) is found here, not in a handshake. */
    SSL *probe = tls_must(SSL_new(ctx));
    if (SSL_use_cert_and_key(probe, n->pair.cert, n->pair.key, n->pair.chain, 1) != 1) {
        r = err_set(e, -EINVAL, "%s: %s", cfg->cert_file, tls_reason());
    }
    SSL_free(probe);
    return r;
}

static bool wildcard_matches(const char *pattern, const char *name)
{
    const char *dot = strchr(name, '.');
    return strncmp(pattern, "*.", 2) == 0 && dot && dot > name && strcasecmp(pattern + 1, dot) == 0;
}

/* The certificate for the name that the client asks for: by an equal name, else by a wildcard. */
static const struct named *find_named(const struct server_side *s, const char *name)
{
    const struct named *wild = NULL;
    for (size_t i = 0; i < s->n_named; i++) {
        for (size_t k = 0; k < s->named[i].n_names; k++) {
            const char *pattern = s->named[i].names[k];
            if (strcasecmp(pattern, name) == 0) {
                return &s->named[i];
            }
            wild = !wild && wildcard_matches(pattern, name) ? &s->named[i] : wild;
        }
    }
    return wild;
}

/* Called by OpenSSL before it chooses a certificate. */
static int choose_cert(SSL *ssl, void *side)
{
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    const struct named *n = name ? find_named(side, name) : NULL;
    if (!n) {
        return 1;
    }
    /* The certificate of the context may have a key of another type, and would stay beside it. */
    SSL_certs_clear(ssl);
    return SSL_use_cert_and_key(ssl, n->pair.cert, n->pair.key, n->pair.chain, 1);
}

/* ---- clients' certificates ---- */

static bool is_about_time(int code)
{
    return code == X509_V_ERR_CERT_HAS_EXPIRED || code == X509_V_ERR_CERT_NOT_YET_VALID;
}

/* Whether the proxy's authority signed the certificate that 'v' is about, for a client. */
static bool proxy_signed(const struct proxy *p, struct tls *c, X509_STORE_CTX *v)
{
    X509_STORE_CTX *w = tls_must(X509_STORE_CTX_new());
    tls_must(X509_STORE_CTX_init(w, p->store, X509_STORE_CTX_get0_cert(v),
                                 X509_STORE_CTX_get0_untrusted(v)) == 1
                 ? w
                 : NULL);
    X509_STORE_CTX_set_default(w, "ssl_client");
    X509_VERIFY_PARAM_set_auth_level(X509_STORE_CTX_get0_param(w), SSL_get_security_level(c->ssl));
    bool ok = X509_verify_cert(w) == 1;
    int code = X509_STORE_CTX_get_error(w);
    if (!ok && !c->invalid && is_about_time(code)) {
        c->invalid = tls_invalid_text(c, code, X509_STORE_CTX_get_current_cert(w),
                                      X509_STORE_CTX_get_error_depth(w));
    }
    X509_STORE_CTX_free(w);
    ERR_clear_error();
    return ok;
}

/* Verifies in place of OpenSSL.  Proxies come first: what both authorities signed is a proxy's. */
static int verify_client(X509_STORE_CTX *v, void *side)
{
    struct server_side *s = side;
    SSL *ssl = X509_STORE_CTX_get_ex_data(v, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct tls *c = SSL_get_app_data(ssl);
    c->signer = TLS_SIGNED_BY_NONE;
    for (size_t i = 0; i < s->n_proxies; i++) {
        if (proxy_signed(&s->proxies[i], c, v)) {
            c->signer = TLS_SIGNED_BY_PROXY;
            memcpy(c->authority, s->proxies[i].digest, sizeof c->authority);
            free(TAKE(c->invalid));
            X509_STORE_CTX_set_error(v, X509_V_OK);
            return 1;
        }
    }
    int ok = X509_verify_cert(v);
    if (ok == 1) {
        c->signer = TLS_SIGNED_BY_CLIENTS;
        free(TAKE(c->invalid));
    }
    return ok;
}

/* Puts the signer into the ticket of a new session. */
static int fill_ticket(SSL *ssl, void *arg)
{
    struct tls *c = SSL_get_app_data(ssl);
    char text[1 + TLS_AUTHORITY_SIZE] = {(char) c->signer};
    memcpy(text + 1, c->authority, TLS_AUTHORITY_SIZE);
    return SSL_session_reused(ssl) ||
           SSL_SESSION_set1_ticket_appdata(SSL_get_session(ssl), text, sizeof text);
}

void tls_server_established(struct tls *c)
{
    void *text = NULL;
    size_t size = 0;
    if (!SSL_session_reused(c->ssl)) {
        return;
    }
    c->signer = TLS_SIGNED_BY_NONE;
    if (SSL_SESSION_get0_ticket_appdata(SSL_get_session(c->ssl), &text, &size) == 1 &&
        size == 1 + TLS_AUTHORITY_SIZE) {
        c->signer = (enum tls_signer) * (char *) text;
        memcpy(c->authority, (char *) text + 1, TLS_AUTHORITY_SIZE);
    }
}

/* -EINVAL: a certificate is in both stores. */
static int check_apart(X509_STORE *a, X509_STORE *b, struct err *e)
{
    STACK_OF(X509) *as = X509_STORE_get1_all_certs(a), *bs = X509_STORE_get1_all_certs(b);
    int r = 0;
    for (int i = 0; r == 0 && i < sk_X509_num(as); i++) {
        for (int k = 0; r == 0 && k < sk_X509_num(bs); k++) {
            if (X509_cmp(sk_X509_value(as, i), sk_X509_value(bs, k)) == 0) {
                r = err_set(e, -EINVAL,
                            "an authority of proxies is also one of users (clientCA of "
                            "servingInfo): its certificates would name users");
            }
        }
    }
    sk_X509_pop_free(as, X509_free);
    sk_X509_pop_free(bs, X509_free);
    return r;
}

static int add_proxy(struct server_side *s, SSL_CTX *ctx, const char *pem, struct err *e)
{
    struct proxy *p = &s->proxies[s->n_proxies++];
    p->store = tls_must(X509_STORE_new());
    tls_authority_digest(pem, p->digest);
    int r = tls_add_ca(p->store, pem, ctx, e);
    r = r < 0 ? r : check_apart(p->store, SSL_CTX_get_cert_store(ctx), e);
    return r < 0 ? (err_prefix(e, "clientCA of a proxy"), r) : 0;
}

/* ---- contexts ---- */

static size_t count(const char *const *list)
{
    size_t n = 0;
    while (list && list[n]) {
        n++;
    }
    return n;
}

static int use_clients(SSL_CTX *ctx, struct server_side *s, const struct tls_server_config *cfg,
                       struct err *e)
{
    CLEANUP_STRBUF struct strbuf ca = STRBUF_INIT;
    size_t n = count(cfg->proxy_cas);
    int r = 0;
    if (cfg->client_ca_file && (r = read_pem(cfg->client_ca_file, &ca, e)) == 0 &&
        (r = tls_add_ca(SSL_CTX_get_cert_store(ctx), strbuf_cstr(&ca), ctx, e)) < 0) {
        err_prefix(e, "%s", cfg->client_ca_file);
    }
    s->proxies = xcalloc(n + 1, sizeof *s->proxies);
    for (size_t i = 0; r == 0 && i < n; i++) {
        r = add_proxy(s, ctx, cfg->proxy_cas[i], e);
    }
    if (cfg->client_ca_file || n) {
        SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, tls_verified);
        SSL_CTX_set_cert_verify_callback(ctx, verify_client, s);
        SSL_CTX_set_session_ticket_cb(ctx, fill_ticket, NULL, NULL);
    }
    return r;
}

static int use_certs(SSL_CTX *ctx, struct server_side *s, const struct tls_server_config *cfg,
                     struct err *e)
{
    __attribute__((cleanup(tls_pair_done))) struct tls_pair p = {0};
    int r = read_pair(cfg->cert_file, cfg->key_file, &p, e);
    if (r == 0 && SSL_CTX_use_cert_and_key(ctx, p.cert, p.key, p.chain, 1) != 1) {
        r = err_set(e, -EINVAL, "%s, %s: certificate: %s", cfg->cert_file, cfg->key_file,
                    tls_reason());
    }
    s->named = xcalloc(cfg->n_named + 1, sizeof *s->named);
    for (size_t i = 0; r == 0 && i < cfg->n_named; i++) {
        if ((r = add_named(s, ctx, &cfg->named[i], e)) < 0) {
            err_prefix(e, "namedCertificates[%zu]", i);
        }
    }
    if (s->n_named) {
        SSL_CTX_set_cert_cb(ctx, choose_cert, s);
    }
    return r;
}

static int server_context(const struct tls_server_config *cfg, SSL_CTX **ret, struct err *e)
{
    static const unsigned char id[] = "tenet";
    SSL_CTX *ctx = tls_context_init(TLS_server_method());
    struct server_side *s = NEW(struct server_side);
    tls_must(SSL_CTX_set_ex_data(ctx, side_index(), s) ? ctx : NULL);
    SSL_CTX_set_alpn_select_cb(ctx, select_protocol, NULL);
    SSL_CTX_set_num_tickets(ctx, 1);
    SSL_CTX_set_timeout(ctx, TICKET_SECONDS);
    SSL_CTX_set_session_id_context(ctx, id, sizeof id - 1);
    use_ciphers(ctx, cfg);
    int r = use_certs(ctx, s, cfg, e);
    r = r < 0 ? r : use_clients(ctx, s, cfg, e);
    if (r < 0) {
        SSL_CTX_free(ctx);
        return r;
    }
    *ret = ctx;
    return 0;
}

int tls_server_new(const struct tls_server_config *cfg, struct tls_context **ret, struct err *e)
{
    SSL_CTX *ctx;
    int r = server_context(cfg, &ctx, e);
    if (r < 0) {
        return r;
    }
    *ret = NEW(struct tls_context);
    (*ret)->ctx = ctx;
    return 0;
}

int tls_server_reload(struct tls_context *t, const struct tls_server_config *cfg, struct err *e)
{
    SSL_CTX *ctx;
    int r = server_context(cfg, &ctx, e);
    if (r < 0) {
        return r;
    }
    SSL_CTX_free(t->ctx);
    t->ctx = ctx;
    return 0;
}
