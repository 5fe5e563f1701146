/* SPDX-License-Identifier: Apache-2.0 */
/* TLS 1.2 and 1.3 over non-blocking sockets: a thin layer over OpenSSL.
 *
 * A context holds certificates and settings and is made once; a 'struct tls' is one connection.
 * The caller owns and watches the socket, and asks which events to watch, because TLS may have
 * to write in order to read and the other way round.  Errors name the certificate and its
 * problem. Everything runs on one thread; contexts are shared by any number of connections. */
#pragma once

#include "base/err.h"

#include <sys/types.h>

struct tls_context;
struct tls;

/* ---- contexts ---- */

/* A further certificate, for clients that ask for one of these names (SNI, RFC 6066, 3). */
struct tls_named_cert {
    const char *const *names; /* In lower case, "*.x" for one label; NULL ends; none: its own. */
    const char *cert_file, *key_file; /* The same two files as in tls_server_config. */
};

struct tls_server_config {
    const char *cert_file; /* PEM: the certificate, then the chain up to the CA. */
    const char *key_file;  /* PEM, not encrypted. */
    /* PEM: CAs of clients. Clients are then asked for a certificate; it is optional, but an
     * invalid one ends the connection. NULL: they are not asked. */
    const char *client_ca_file;
    /* PEM texts: authorities of proxies that tell who their clients are; NULL ends, NULL: none.  A
     * certificate that one of them signed makes its holder a proxy and never a user: tls_peer_proxy.
     * No certificate may be both here and in client_ca_file. */
    const char *const *proxy_cas;
    const struct tls_named_cert *named;
    size_t n_named;
    const char *min_version; /* "VersionTLS12" (NULL, too) or "VersionTLS13". */
    /* Names of IANA, as tls_check_cipher accepts them; NULL ends, NULL: all of those.  Without any
     * of TLS 1.3 that version has all of its own; with those alone TLS 1.2 is not served. */
    const char *const *ciphers;
};
/* -EINVAL with the reason: no cipher suite that a server may use. */
int tls_check_cipher(const char *name, struct err *e);
bool tls_cipher_is_13(const char *name);

/* The error names the file and its problem. */
int tls_server_new(const struct tls_server_config *cfg, struct tls_context **ret, struct err *e);
/* Reads the files again, for connections from now on; unchanged on failure. */
int tls_server_reload(struct tls_context *t, const struct tls_server_config *cfg, struct err *e);

/* PEM texts; they are not needed after the context was made. */
struct tls_client_config {
    const char *ca; /* NULL: the system's CAs. */
    /* Certificate of the client, with its chain, and key; NULL: none. Both or neither. */
    const char *cert, *key;
    /* Name expected in the server's certificate; NULL: the host of tls_connect. */
    const char *server_name;
    /* Common name that the server's certificate must have beside that name; NULL: any. */
    const char *server_user;
    bool insecure; /* The server's certificate is not verified. */
    bool no_alpn;  /* The protocol is not HTTP: none is named to the server (ALPN). */
    bool http2;    /* Use HTTP/2, which the server must confirm, and not HTTP/1.1 (ALPN). */
};
int tls_client_new(const struct tls_client_config *cfg, struct tls_context **ret, struct err *e);

/* Existing connections stay. */
struct tls_context *tls_context_free(struct tls_context *t);
DEFINE_CLEANUP(struct tls_context *, tls_context_free)

/* ---- connections ---- */

/* The server's side of the accepted socket 'fd'. */
struct tls *tls_accept(struct tls_context *t, int fd);
/* The client's side of the connected socket 'fd'; 'host' is the name or IPv4 address that the
 * server's certificate must have (RFC 9525) unless the context names another. */
struct tls *tls_connect(struct tls_context *t, int fd, const char *host);
struct tls *tls_free(struct tls *c); /* The socket stays open. */

/* 0: done; -EAGAIN: call again when the socket is ready; else the connection has failed:
 * -EKEYREJECTED: the peer's certificate is not valid, or ours is not for the peer;
 * -EPROTONOSUPPORT: the peer does not speak TLS; -ECONNRESET: it closed the connection; -EPROTO:
 * other errors. */
int tls_handshake(struct tls *c, struct err *e);
/* HTTP/2 was chosen by ALPN; after the handshake. */
bool tls_speaks_h2(const struct tls *c);
/* tls_handshake failed because the client uses HTTP without TLS. */
bool tls_peer_spoke_http(const struct tls *c);

/* Like recv(2) and send(2), with negative errno; errors as of tls_handshake. 0 from tls_read:
 * the peer has ended its side.  'size' of tls_read at least TLS_RECORD_SIZE, so that no data
 * stays in the connection where poll does not see it. After -EAGAIN from tls_write the caller
 * passes the same bytes again, more may follow them. */
#define TLS_RECORD_SIZE 16384
ssize_t tls_read(struct tls *c, void *buf, size_t size, struct err *e);
ssize_t tls_write(struct tls *c, const void *buf, size_t size, struct err *e);
/* Ends our side (close_notify), if possible without waiting; the socket is not shut down. */
void tls_shutdown(struct tls *c);

/* Socket events (LOOP_READ, LOOP_WRITE) to watch in order to read or write as 'wanted'; and the
 * operations to try when the socket's events are 'ready'. */
unsigned tls_watch(const struct tls *c, unsigned wanted);
unsigned tls_ready(const struct tls *c, unsigned ready);

/* ---- the peer ---- */

/* A digest of the text of an authority, by which one is told from another. */
#define TLS_AUTHORITY_SIZE 65
void tls_authority_digest(const char *pem, char ret[TLS_AUTHORITY_SIZE]);

/* The identity in a verified certificate; immutable and shared. */
struct tls_identity {
    unsigned refs;
    char authority[TLS_AUTHORITY_SIZE]; /* A proxy's: the digest of its authority; else "". */
    char *cn; /* Common name: the user; "" when the subject is not valid text. */
    char **o; /* Organizations: its groups. */
    size_t n_o;
};
struct tls_identity *tls_identity_ref(struct tls_identity *id);   /* NULL is fine. */
struct tls_identity *tls_identity_unref(struct tls_identity *id); /* NULL is fine; returns NULL. */
/* After the handshake: the PEM (owned) of the authority among the certificates that the peer sent
 * whose key has the pin (pki.h); NULL: there is none.  It is not verified that the peer's own
 * certificate is signed by it. */
char *tls_peer_authority(const struct tls *c, const char *pin);
/* After the handshake; one reference, or NULL: the peer sent no certificate, or is a proxy. */
struct tls_identity *tls_peer_identity(const struct tls *c);
/* After the handshake; one reference, or NULL: the peer is no proxy. */
struct tls_identity *tls_peer_proxy(const struct tls *c);
