/* SPDX-License-Identifier: Apache-2.0 */
/* HTTPS for the master: its certificates, and who is let in.
 *
 * With "tls: auto" there is a CA in the PKI directory, made at the first start: ca.crt and ca.key, server.crt and
 * server.key, and two kubeconfigs with client certificates, admin.kubeconfig (system:admin of system:masters)
 * and node.kubeconfig (of system:nodes).  What is missing, does not fit the configuration any more, or has less than
 * a third of its time left is made anew at start and at each reload; the CA never is. */
#pragma once

#include "controllers/master_config.h"
#include "net/http.h"

struct master_tls;
/* 'port' is that of the API.  '*ret' is NULL when HTTPS is off.  'c' must live as long. */
int master_tls_new(const struct master_config *c, int port, struct master_tls **ret, struct err *e);
struct master_tls *master_tls_free(struct master_tls *t);
struct tls_context *master_tls_context(const struct master_tls *t);
/* Reads the files again, after making those that are due; all stays as it is on failure. */
int master_tls_reload(struct master_tls *t, struct err *e);

/* The bearer token that lets in over a listener without TLS. */
const char *master_tls_token(const struct master_tls *t);
/* Whether the request may go on; if not, it was answered with 401. */
bool master_tls_admit(const struct master_tls *t, struct http_exchange *x);
