/* SPDX-License-Identifier: Apache-2.0 */
/* The certificates of the master, for HTTPS.
 *
 * With "tls: auto" there is a CA in the PKI directory, made at the first start: ca.crt and ca.key,
 * server.crt and server.key, and admin.kubeconfig with a client certificate (system:admin of
 * system:masters).  A file that is missing, no longer fits the configuration, or has less than a
 * third of its validity left is made again at start and at each reload; the CA never is. */
#pragma once

#include "apiserver/apiserver.h"
#include "master/master_config.h"
#include "net/tls/tls.h"

struct master_tls;
/* 'port' is that of the API.  '*ret' is NULL when HTTPS is off.  'c' must outlive it. */
int master_tls_new(const struct master_config *c, int port, struct master_tls **ret, struct err *e);
struct master_tls *master_tls_free(struct master_tls *t);
struct tls_context *master_tls_context(const struct master_tls *t);
/* Reads the files again, after renewing those that are due; on failure
 * the previous ones stay in use. */
int master_tls_reload(struct master_tls *t, struct err *e);
/* The authorities of proxies from now on (tls_server_config.proxy_cas, copied); on failure the
 * previous ones stay in use. */
int master_tls_set_proxies(struct master_tls *t, const char *const *cas, struct err *e);

/* Reads the API server's certificate for nodes; PEM, owned.  Without one nothing is filled. */
int master_tls_kubelet_client(const struct master_tls *t, struct apiserver_kubelets *ret,
                              struct err *e);

/* The authority of "tls: auto"; NULL: there is none. */
struct pki_ca;
const struct pki_ca *master_tls_ca(const struct master_tls *t);
/* The directory of the authority. */
const char *master_tls_dir(const struct master_config *c);
