/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of net/tls that make contexts and connections.  Internal to src/net. */
#pragma once

#include "base/str.h"
#include "net/tls/tls.h"

#include <openssl/ssl.h>

/* The authority that signed a client's certificate. */
enum tls_signer { TLS_SIGNED_BY_NONE, TLS_SIGNED_BY_CLIENTS, TLS_SIGNED_BY_PROXY };

struct tls_context {
    SSL_CTX *ctx;
    char *server_name;
    char *server_user; /* NULL: any. */
    bool insecure, http2;
};

struct tls {
    SSL *ssl;
    int fd;
    bool is_server, http2;
    bool established; /* The handshake is done. */
    bool failed;      /* No more can be sent. */
    bool spoke_http;
    unsigned want; /* During the handshake. */
    bool read_wants_write, write_wants_read;
    int sys_error; /* Result of the last system call; negative errno. */
    char *host;    /* Name required in the server's certificate. */
    char *user;    /* Common name required in it; NULL: any. */
    char *invalid; /* The problem with the peer's certificate. */
    /* A server's: who signed the client's certificate, TLS_SIGNED_BY_PROXY with the digest of the
     * authority. */
    enum tls_signer signer;
    char authority[TLS_AUTHORITY_SIZE];
};

/* A certificate with its chain and key. */
struct tls_pair {
    X509 *cert;
    EVP_PKEY *key;
    /* NULL: the file has the certificate alone, and OpenSSL sends the authorities of the context's
     * store that issued it.  An empty stack would say that there are none to send. */
    STACK_OF(X509) * chain;
};
void tls_pair_done(struct tls_pair *p);

/* Aborts when OpenSSL is out of memory. */
void *tls_must(void *p);
/* The text of OpenSSL's last error. */
const char *tls_reason(void);
SSL_CTX *tls_context_init(const SSL_METHOD *method);
/* A certificate and its key as PEM texts; -EINVAL. */
int tls_pair_parse(const char *cert_pem, const char *key_pem, struct tls_pair *ret, struct err *e);
/* Adds the certificates of a PEM text to 'store'; 'names' (NULL: none) also gets their subjects.
 * -EINVAL. */
int tls_add_ca(X509_STORE *store, const char *pem, SSL_CTX *names, struct err *e);
/* The verify callback of contexts: keeps the first problem of the peer's certificate. */
int tls_verified(int ok, X509_STORE_CTX *v);
/* The problem in words; owned. */
char *tls_invalid_text(const struct tls *c, int code, const X509 *cert, int depth);
/* After a server's handshake: takes the signer of a resumed session from its ticket. */
void tls_server_established(struct tls *c);
