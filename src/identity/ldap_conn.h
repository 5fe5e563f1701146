/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to an LDAP server on the loop: looks up the name, connects, begins TLS, and passes
 * messages.
 *
 * "ldap" begins TLS by StartTLS unless it is 'insecure'; "ldaps" has it from the first byte.  The
 * server's certificate must have the host's name.  Bytes that come before TLS and after the answer
 * to StartTLS end the connection: they could be an attacker's.  The owner has the timeouts.
 * Everything runs on the loop's thread; callbacks may free the connection. */
#pragma once

#include "net/loop/loop.h"
#include "net/tls/tls.h"
#include "wire/ldap.h"

#include <sys/stat.h>

/* A server; the members are set by the owner, who calls ldap_server_done. */
struct ldap_server {
    char *host;
    uint16_t port;
    bool tls;                    /* ldaps */
    bool insecure;               /* ldap without StartTLS. */
    char *ca_file;               /* NULL: the system's authorities. */
    struct tls_context *context; /* Made when it is needed, and again when the file changed. */
    struct stat ca_read;
};
/* From a URL and the keys "insecure" and "ca"; reads the file. */
int ldap_server_init(struct ldap_server *s, const struct ldap_url *url, bool insecure,
                     const char *ca_file, struct err *e);
void ldap_server_done(struct ldap_server *s);

struct ldap_conn;
struct ldap_conn_ops {
    void (*ready)(void *ctx); /* Requests may be sent. */
    /* An answer to a request; its members may be taken.  Notices are not passed. */
    void (*message)(void *ctx, struct ldap_message *m);
    void (*failed)(void *ctx, const char *why);
};
/* 's' and 'ops' must outlive the connection.  Nothing is called from within. */
struct ldap_conn *ldap_conn_new(struct loop *l, struct ldap_server *s,
                                const struct ldap_conn_ops *ops, void *ctx);
/* Sends an unbind if nothing waits to be sent, and closes. */
struct ldap_conn *ldap_conn_free(struct ldap_conn *c);
/* One request at a time: answers with another number end the connection. */
void ldap_conn_bind(struct ldap_conn *c, const char *dn, const char *password);
int ldap_conn_search(struct ldap_conn *c, const struct ldap_search *s, struct err *e);
