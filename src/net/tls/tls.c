/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "base/timeutil.h"
#include "net/loop/loop.h"
#include "net/loop/process.h"
#include "net/tls/pki_priv.h"
#include "net/tls/tls_priv.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>

#define MAX_NAMES_TEXT 160
#define ALERT_BASE 1000 /* Offset of the reasons that are alerts of the peer. */

/* ECDHE and AEAD only, for TLS 1.2; all ciphers of TLS 1.3 are. */
static const char ciphers[] = "ECDHE+AESGCM:ECDHE+CHACHA20";
/* ALPN names of our protocols. */
static const unsigned char client_alpn[] = "\x08http/1.1";
static const unsigned char client_alpn_http2[] = "\x02h2";

void *tls_must(void *p)
{
    if (!p) {
        abort(); /* OpenSSL is out of memory. */
    }
    return p;
}

const char *tls_reason(void)
{
    const char *text = ERR_reason_error_string(ERR_peek_last_error());
    return text ? text : "unknown error";
}

/* ---- the socket for OpenSSL ---- */

/* OpenSSL's own would raise SIGPIPE. */
static int sock_bio_write(BIO *b, const char *p, size_t size, size_t *ret)
{
    struct tls *c = BIO_get_data(b);
    BIO_clear_retry_flags(b);
    ssize_t n = send(c->fd, p, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
        *ret = (size_t) n;
        return 1;
    }
    if (errno == EAGAIN || errno == EINTR) {
        BIO_set_retry_write(b);
    } else {
        c->sys_error = -errno;
    }
    return 0;
}

static int sock_bio_read(BIO *b, char *p, size_t size, size_t *ret)
{
    struct tls *c = BIO_get_data(b);
    BIO_clear_retry_flags(b);
    ssize_t n = recv(c->fd, p, size, MSG_DONTWAIT);
    if (n > 0) {
        *ret = (size_t) n;
        return 1;
    }
    if (n == 0) {
        BIO_set_flags(b, BIO_FLAGS_IN_EOF);
    } else if (errno == EAGAIN || errno == EINTR) {
        BIO_set_retry_read(b);
    } else {
        c->sys_error = -errno;
    }
    return 0;
}

static long sock_bio_ctrl(BIO *b, int command, long num, void *p)
{
    if (command == BIO_CTRL_EOF) {
        return BIO_test_flags(b, BIO_FLAGS_IN_EOF) != 0;
    }
    return command == BIO_CTRL_FLUSH;
}

static int sock_bio_create(BIO *b)
{
    BIO_set_init(b, 1);
    return 1;
}

/* Made with the first context and never freed. */
static BIO_METHOD *sock_bio;

static void sock_bio_init(void)
{
    if (!sock_bio) {
        sock_bio = tls_must(BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket"));
        BIO_meth_set_write_ex(sock_bio, sock_bio_write);
        BIO_meth_set_read_ex(sock_bio, sock_bio_read);
        BIO_meth_set_ctrl(sock_bio, sock_bio_ctrl);
        BIO_meth_set_create(sock_bio, sock_bio_create);
    }
}

/* ---- errors of certificates ---- */

static void time_text(const ASN1_TIME *t, char out[TIME_TEXT_SIZE])
{
    struct tm tm;
    if (!ASN1_TIME_to_tm(t, &tm)) {
        snprintf(out, TIME_TEXT_SIZE, "an unknown time");
        return;
    }
    time_format_s((int64_t) timegm(&tm) * 1000, out);
}

/* The names in the certificate: "a, b, 192.0.2.1". */
static void names_text(const X509 *cert, struct strbuf *out)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        int type;
        const ASN1_STRING *s = GENERAL_NAME_get0_value(name, &type);
        const unsigned char *p = ASN1_STRING_get0_data(s);
        int size = ASN1_STRING_length(s);
        const char *comma = out->size ? ", " : "";
        if (type == GEN_DNS) {
            strbuf_addf(out, "%s%.*s", comma, size, (const char *) p);
        } else if (type == GEN_IPADD && size == 4) {
            strbuf_addf(out, "%s%u.%u.%u.%u", comma, p[0], p[1], p[2], p[3]);
        }
    }
    GENERAL_NAMES_free(names);
    if (out->size > MAX_NAMES_TEXT) {
        out->size = MAX_NAMES_TEXT;
        strbuf_adds(out, "...");
    } else if (!out->size) {
        strbuf_adds(out, "no name");
    }
}

char *tls_invalid_text(const struct tls *c, int code, const X509 *cert, int depth)
{
    const char *whose = c->is_server ? "the client's certificate" : "the server's certificate";
    const char *which = depth ? "a CA in the chain of " : "";
    char when[TIME_TEXT_SIZE];
    CLEANUP_STRBUF struct strbuf names = STRBUF_INIT;
    switch (code) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
        time_text(X509_get0_notAfter(cert), when);
        return xasprintf("%s%s expired at %s", which, whose, when);
    case X509_V_ERR_CERT_NOT_YET_VALID:
        time_text(X509_get0_notBefore(cert), when);
        return xasprintf("%s%s is not valid before %s", which, whose, when);
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        names_text(cert, &names);
        return xasprintf("%s is for %s, not for %s", whose, names.data, c->host);
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
        return xasprintf("%s is signed by an unknown authority (%s)", whose,
                         X509_verify_cert_error_string(code));
    default:
        return xasprintf("%s%s is not valid: %s", which, whose,
                         X509_verify_cert_error_string(code));
    }
}

/* Keeps the first reason; the certificate is not available any more when the handshake has
 * failed. */
int tls_verified(int ok, X509_STORE_CTX *v)
{
    SSL *ssl = X509_STORE_CTX_get_ex_data(v, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct tls *c = SSL_get_app_data(ssl);
    if (!ok && !c->invalid) {
        c->invalid =
            tls_invalid_text(c, X509_STORE_CTX_get_error(v), X509_STORE_CTX_get_current_cert(v),
                             X509_STORE_CTX_get_error_depth(v));
    }
    return ok;
}

/* ---- contexts ---- */

/* There is no user to type a password. */
static int no_password(char *buf, int size, int writing, void *ctx)
{
    return -1;
}

/* The next certificate; NULL at the end, and when it is malformed, which sets '*ok' to false. */
static X509 *next_cert(BIO *b, bool *ok)
{
    X509 *x = PEM_read_bio_X509(b, NULL, no_password, NULL);
    *ok = x || ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    return x;
}

void tls_pair_done(struct tls_pair *p)
{
    X509_free(p->cert);
    EVP_PKEY_free(p->key);
    sk_X509_pop_free(p->chain, X509_free);
    *p = (struct tls_pair){0};
}

static int parse_chain(const char *pem, struct tls_pair *p, struct err *e)
{
    bool ok;
    BIO *b = tls_must(BIO_new_mem_buf(pem, -1));
    p->cert = next_cert(b, &ok);
    int r = p->cert ? 0
                    : err_set(e, -EINVAL, "certificate: %s",
                              ok ? "there is none in PEM form" : tls_reason());
    for (X509 *x; r == 0 && (x = next_cert(b, &ok));) {
        p->chain = p->chain ? p->chain : tls_must(sk_X509_new_null());
        tls_must(sk_X509_push(p->chain, x) ? p : NULL);
    }
    BIO_free(b);
    return r == 0 && !ok ? err_set(e, -EINVAL, "certificate: %s", tls_reason()) : r;
}

int tls_pair_parse(const char *cert_pem, const char *key_pem, struct tls_pair *ret, struct err *e)
{
    struct tls_pair p = {0};
    ERR_clear_error();
    int r = parse_chain(cert_pem, &p, e);
    if (r == 0) {
        BIO *b = tls_must(BIO_new_mem_buf(key_pem, -1));
        p.key = PEM_read_bio_PrivateKey(b, NULL, no_password, NULL);
        BIO_free(b);
        r = !p.key
                ? err_set(e, -EINVAL, "private key: there is none in PEM form without a password")
            : X509_check_private_key(p.cert, p.key) != 1
                ? err_set(e, -EINVAL, "the private key does not belong to the certificate")
                : 0;
    }
    if (r < 0) {
        tls_pair_done(&p);
        return r;
    }
    *ret = p;
    return 0;
}

static int use_cert(SSL_CTX *ctx, const char *pem, const char *key_pem, struct err *e)
{
    __attribute__((cleanup(tls_pair_done))) struct tls_pair p = {0};
    int r = tls_pair_parse(pem, key_pem, &p, e);
    if (r == 0 && SSL_CTX_use_cert_and_key(ctx, p.cert, p.key, p.chain, 1) != 1) {
        r = err_set(e, -EINVAL, "certificate: %s", tls_reason());
    }
    return r;
}

int tls_add_ca(X509_STORE *store, const char *pem, SSL_CTX *names, struct err *e)
{
    BIO *b = tls_must(BIO_new_mem_buf(pem, -1));
    bool ok;
    X509 *x;
    int r = 0;
    size_t n = 0;
    while (r == 0 && (x = next_cert(b, &ok))) {
        if (!X509_STORE_add_cert(store, x) || (names && !SSL_CTX_add_client_CA(names, x))) {
            r = err_set(e, -EINVAL, "certificate authority: %s", tls_reason());
        }
        X509_free(x);
        n++;
    }
    BIO_free(b);
    if (r == 0 && (!ok || !n)) {
        r = err_set(e, -EINVAL, "certificate authority: %s",
                    ok ? "there is none in PEM form" : tls_reason());
    }
    return r;
}

SSL_CTX *tls_context_init(const SSL_METHOD *method)
{
    sock_bio_init();
    ERR_clear_error();
    SSL_CTX *ctx = tls_must(SSL_CTX_new(method));
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                              SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    tls_must(SSL_CTX_set_cipher_list(ctx, ciphers) ? ctx : NULL);
    return ctx;
}

int tls_client_new(const struct tls_client_config *cfg, struct tls_context **ret, struct err *e)
{
    int r = 0;
    SSL_CTX *ctx = tls_context_init(TLS_client_method());
    if (cfg->http2) {
        SSL_CTX_set_alpn_protos(ctx, client_alpn_http2, sizeof client_alpn_http2 - 1);
    } else if (!cfg->no_alpn) {
        SSL_CTX_set_alpn_protos(ctx, client_alpn, sizeof client_alpn - 1);
    }
    SSL_CTX_set_verify(ctx, cfg->insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER,
                       cfg->insecure ? NULL : tls_verified);
    if (cfg->ca) {
        r = tls_add_ca(SSL_CTX_get_cert_store(ctx), cfg->ca, NULL, e);
    } else if (!cfg->insecure && !SSL_CTX_set_default_verify_paths(ctx)) {
        r = err_set(e, -EINVAL, "the system's certificate authorities: %s", tls_reason());
    }
    if (r == 0 && (cfg->cert || cfg->key)) {
        r = cfg->cert && cfg->key
                ? use_cert(ctx, cfg->cert, cfg->key, e)
                : err_set(e, -EINVAL,
                          "a client certificate needs its key, and a key its certificate");
    }
    if (r < 0) {
        SSL_CTX_free(ctx);
        return r;
    }
    struct tls_context *t = NEW(struct tls_context);
    t->ctx = ctx;
    t->insecure = cfg->insecure;
    t->http2 = cfg->http2;
    t->server_name = cfg->server_name ? xstrdup(cfg->server_name) : NULL;
    t->server_user = cfg->server_user ? xstrdup(cfg->server_user) : NULL;
    *ret = t;
    return 0;
}

struct tls_context *tls_context_free(struct tls_context *t)
{
    if (t) {
        SSL_CTX_free(t->ctx);
        free(t->server_name);
        free(t->server_user);
        free(t);
    }
    return NULL;
}

/* ---- connections ---- */

static struct tls *conn_new(struct tls_context *t, int fd)
{
    struct tls *c = NEW(struct tls);
    c->fd = fd;
    c->want = LOOP_READ;
    c->ssl = tls_must(SSL_new(t->ctx));
    BIO *b = tls_must(BIO_new(sock_bio));
    BIO_set_data(b, c);
    SSL_set_bio(c->ssl, b, b);
    SSL_set_app_data(c->ssl, c);
    return c;
}

struct tls *tls_accept(struct tls_context *t, int fd)
{
    struct tls *c = conn_new(t, fd);
    c->is_server = true;
    SSL_set_accept_state(c->ssl);
    return c;
}

struct tls *tls_connect(struct tls_context *t, int fd, const char *host)
{
    struct tls *c = conn_new(t, fd);
    c->host = xstrdup(t->server_name ? t->server_name : host);
    c->user = t->server_user ? xstrdup(t->server_user) : NULL;
    c->http2 = t->http2;
    SSL_set_connect_state(c->ssl);
    X509_VERIFY_PARAM *param = SSL_get0_param(c->ssl);
    if (!X509_VERIFY_PARAM_set1_ip_asc(param, c->host)) {
        ERR_clear_error();
        SSL_set_hostflags(c->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
        tls_must(SSL_set1_host(c->ssl, c->host) ? c : NULL);
        SSL_set_tlsext_host_name(c->ssl, c->host);
    }
    return c;
}

struct tls *tls_free(struct tls *c)
{
    if (c) {
        SSL_free(c->ssl);
        free(c->user);
        free(c->host);
        free(c->invalid);
        free(c);
    }
    return NULL;
}

static const char *alert_text(int alert)
{
    switch (alert) {
    case SSL_AD_BAD_CERTIFICATE:
        return "it is not valid";
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
        return "it is of an unsupported type";
    case SSL_AD_CERTIFICATE_REVOKED:
        return "it was revoked";
    case SSL_AD_CERTIFICATE_EXPIRED:
        return "it has expired";
    case SSL_AD_CERTIFICATE_UNKNOWN:
        return "it is not accepted";
    case SSL_AD_UNKNOWN_CA:
        return "it is signed by an unknown authority";
    case SSL_AD_CERTIFICATE_REQUIRED:
        return "there is none, and one is required";
    default:
        return NULL;
    }
}

/* The peer or we have ended the connection because of a protocol error. */
static int protocol_error(struct tls *c, struct err *e)
{
    const char *peer = c->is_server ? "client" : "server";
    int why = ERR_GET_REASON(ERR_peek_error());
    if (c->invalid) {
        return err_set(e, -EKEYREJECTED, "TLS: %s", c->invalid);
    }
    if (why >= ALERT_BASE) {
        const char *text = alert_text(why - ALERT_BASE);
        return text ? err_set(e, -EKEYREJECTED, "TLS: the %s refuses our certificate: %s", peer,
                              text)
                    : err_set(e, -EPROTO, "TLS: the %s broke off: %s", peer,
                              SSL_alert_desc_string_long(why - ALERT_BASE));
    }
    switch (why) {
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
        c->spoke_http = true;
        return err_set(e, -EPROTONOSUPPORT, "the client speaks HTTP without TLS");
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
        if (!c->established) {
            return err_set(e, -EPROTONOSUPPORT, "the %s does not speak TLS", peer);
        }
        break;
    case SSL_R_UNEXPECTED_EOF_WHILE_READING:
        return err_set(e, -ECONNRESET, "the %s closed the connection", peer);
    default:
        break;
    }
    const char *text = ERR_reason_error_string(ERR_peek_error());
    return err_set(e, -EPROTO, "TLS: %s", text ? text : "unknown error");
}

/* After a call on c->ssl that returned 'r' <= 0.  -EAGAIN: '*ret_want' is the event to wait for;
 * 0: the peer has ended its side. */
static int call_result(struct tls *c, int r, unsigned *ret_want, struct err *e)
{
    switch (SSL_get_error(c->ssl, r)) {
    case SSL_ERROR_WANT_READ:
        *ret_want = LOOP_READ;
        return -EAGAIN;
    case SSL_ERROR_WANT_WRITE:
        *ret_want = LOOP_WRITE;
        return -EAGAIN;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    case SSL_ERROR_SYSCALL:
        c->failed = true;
        return err_sys(e, c->sys_error ? c->sys_error : -ECONNRESET, "connection");
    default:
        c->failed = true;
        return protocol_error(c, e);
    }
}

/* Checks the common name of the server's certificate, which is verified by now. */
static int check_user(struct tls *c, struct err *e)
{
    if (!c->user) {
        return 0;
    }
    struct tls_identity *id = tls_peer_identity(c);
    int r = id && streq(id->cn, c->user)
                ? 0
                : err_set(e, -EKEYREJECTED, "the server's certificate is of \"%.100s\", not of %s",
                          id ? id->cn : "", c->user);
    c->failed = r < 0;
    tls_identity_unref(id);
    return r;
}

int tls_handshake(struct tls *c, struct err *e)
{
    ERR_clear_error();
    int r = SSL_do_handshake(c->ssl);
    if (r == 1 && c->http2) {
        const unsigned char *selected;
        unsigned size;
        SSL_get0_alpn_selected(c->ssl, &selected, &size);
        if (size != 2) {
            c->failed = true;
            return err_set(e, -EPROTONOSUPPORT, "the server does not speak HTTP/2");
        }
    }
    if (r == 1) {
        c->established = true;
        if (c->is_server) {
            tls_server_established(c);
        }
        return check_user(c, e);
    }
    r = call_result(c, r, &c->want, e);
    if (r == 0) {
        c->failed = true;
        r = err_set(e, -ECONNRESET, "the peer closed the connection");
    }
    ERR_clear_error();
    return r;
}

bool tls_speaks_h2(const struct tls *c)
{
    const unsigned char *name = NULL;
    unsigned size = 0;
    SSL_get0_alpn_selected(c->ssl, &name, &size);
    return size == 2 && memcmp(name, "h2", 2) == 0;
}

bool tls_peer_spoke_http(const struct tls *c)
{
    return c->spoke_http;
}

ssize_t tls_read(struct tls *c, void *buf, size_t size, struct err *e)
{
    size_t n = 0;
    unsigned want = LOOP_READ;
    assert(size >= TLS_RECORD_SIZE);
    ERR_clear_error();
    int r = SSL_read_ex(c->ssl, buf, size, &n);
    ssize_t result = r == 1 ? (ssize_t) n : call_result(c, r, &want, e);
    c->read_wants_write = want == LOOP_WRITE;
    ERR_clear_error();
    return result;
}

ssize_t tls_write(struct tls *c, const void *buf, size_t size, struct err *e)
{
    size_t n = 0;
    unsigned want = LOOP_WRITE;
    ERR_clear_error();
    int r = SSL_write_ex(c->ssl, buf, size, &n);
    ssize_t result = r == 1 ? (ssize_t) n : call_result(c, r, &want, e);
    if (result == 0 && size) {
        result = err_set(e, -EPIPE, "the connection is shut down");
    }
    c->write_wants_read = want == LOOP_READ;
    ERR_clear_error();
    return result;
}

void tls_shutdown(struct tls *c)
{
    if (c->established && !c->failed) {
        ERR_clear_error();
        (void) SSL_shutdown(c->ssl);
        ERR_clear_error();
    }
}

unsigned tls_watch(const struct tls *c, unsigned wanted)
{
    if (!c->established) {
        return c->want;
    }
    unsigned events = 0;
    if (wanted & LOOP_READ) {
        events |= c->read_wants_write ? LOOP_WRITE : LOOP_READ;
    }
    if (wanted & LOOP_WRITE) {
        events |= c->write_wants_read ? LOOP_READ : LOOP_WRITE;
    }
    return events;
}

unsigned tls_ready(const struct tls *c, unsigned ready)
{
    unsigned can = 0;
    if (ready & (c->read_wants_write ? LOOP_WRITE : LOOP_READ)) {
        can |= LOOP_READ;
    }
    if (ready & (c->write_wants_read ? LOOP_READ : LOOP_WRITE)) {
        can |= LOOP_WRITE;
    }
    return can;
}

/* ---- the peer ---- */

struct tls_identity *tls_identity_ref(struct tls_identity *id)
{
    if (id) {
        id->refs++;
    }
    return id;
}

struct tls_identity *tls_identity_unref(struct tls_identity *id)
{
    if (id && --id->refs == 0) {
        for (size_t i = 0; i < id->n_o; i++) {
            free(id->o[i]);
        }
        free(id->o);
        free(id->cn);
        free(id);
    }
    return NULL;
}

/* Owned; NULL when it is not valid text. */
static char *name_text(const X509_NAME *name, int at)
{
    unsigned char *utf8 = NULL;
    int size = ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at)));
    char *text = NULL;
    if (size >= 0 && !memchr(utf8, '\0', (size_t) size)) {
        text = xstrndup((const char *) utf8, (size_t) size);
    }
    OPENSSL_free(utf8);
    return text;
}

static struct tls_identity *read_identity(const struct tls *c)
{
    const X509 *cert = c->established ? SSL_get0_peer_certificate(c->ssl) : NULL;
    if (!cert || SSL_get_verify_mode(c->ssl) == SSL_VERIFY_NONE ||
        SSL_get_verify_result(c->ssl) != X509_V_OK) {
        return NULL;
    }
    const X509_NAME *name = X509_get_subject_name(cert);
    struct tls_identity *id = NEW(struct tls_identity);
    size_t cap = 0;
    id->refs = 1;
    /* The last of several common names counts, as in Kubernetes. */
    for (int i = -1; (i = X509_NAME_get_index_by_NID(name, NID_commonName, i)) >= 0;) {
        free(id->cn);
        id->cn = name_text(name, i);
    }
    bool ok = id->cn && *id->cn;
    for (int i = -1; ok && (i = X509_NAME_get_index_by_NID(name, NID_organizationName, i)) >= 0;) {
        char *o = name_text(name, i);
        ok = o;
        if (o) {
            id->o = grow(id->o, &cap, id->n_o + 1, sizeof *id->o);
            id->o[id->n_o++] = o;
        }
    }
    if (!ok) { /* A certificate without a valid name differs from no certificate. */
        free(id->cn);
        id->cn = xstrdup("");
    }
    ERR_clear_error();
    return id;
}

struct tls_identity *tls_peer_identity(const struct tls *c)
{
    return c->is_server && c->signer != TLS_SIGNED_BY_CLIENTS ? NULL : read_identity(c);
}

struct tls_identity *tls_peer_proxy(const struct tls *c)
{
    if (!c->is_server || c->signer != TLS_SIGNED_BY_PROXY) {
        return NULL;
    }
    struct tls_identity *id = read_identity(c);
    if (id) {
        memcpy(id->authority, c->authority, sizeof id->authority);
    }
    return id;
}

void tls_authority_digest(const char *pem, char ret[TLS_AUTHORITY_SIZE])
{
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    tls_must(EVP_Digest(pem, strlen(pem), hash, &size, EVP_sha256(), NULL) == 1 ? ret : NULL);
    for (unsigned i = 0; i < size; i++) {
        snprintf(ret + 2 * (size_t) i, 3, "%02x", hash[i]);
    }
}

char *tls_peer_authority(const struct tls *c, const char *pin)
{
    STACK_OF(X509) *chain = SSL_get_peer_cert_chain(c->ssl);
    for (int i = 0; i < sk_X509_num(chain); i++) {
        X509 *x = sk_X509_value(chain, i);
        char own[PKI_PIN_SIZE];
        pki_key_pin(X509_get_X509_PUBKEY(x), own);
        if (X509_check_ca(x) && streq(own, pin)) {
            return pki_cert_pem(x);
        }
    }
    return NULL;
}
