/* SPDX-License-Identifier: Apache-2.0 */
/* Certificate signing requests (PKCS #10, RFC 2986): made by a client, read and signed by the
 * authority.
 *
 * Only the common name, the organizations, and names and addresses are copied from a request;
 * nothing else in it gets into a certificate. */
#pragma once

#include "net/tls/pki.h"

struct pki_csr {
    char *cn; /* "" when absent. */
    char **o;
    size_t n_o;
    char **names; /* DNS names and IPv4 addresses. */
    size_t n_names;
    size_t n_others;        /* Alternative names of other types, and other parts of the subject. */
    char pin[PKI_PIN_SIZE]; /* The SHA-256 of the request's public key, as in pki_cert_pin. */
};
void pki_csr_done(struct pki_csr *c);
static inline UNUSED void pki_csr_donep(struct pki_csr *c)
{
    pki_csr_done(c);
}

/* Reads 'pem', and verifies that it is signed with its own key.  -EINVAL says what is wrong. */
int pki_csr_read(const char *pem, struct pki_csr *ret, struct err *e);
/* A request with a new key: both PEM, owned. */
void pki_csr_make(const char *cn, const char *const *o, size_t n_o, char **ret_csr, char **ret_key);

/* The same with a key that is given (PEM).  -EINVAL: it is no key. */
int pki_csr_make_with(const char *key_pem, const char *cn, const char *const *o, size_t n_o,
                      char **ret_csr, struct err *e);

/* The same with the names and addresses of a server. */
void pki_csr_make_server(const char *cn, const char *const *o, size_t n_o, const char *const *names,
                         size_t n_names, char **ret_csr, char **ret_key);

/* Checks that a Node can have the NAME of the common name "system:node:NAME" and, for a server's
 * certificate, that hosts can have the alternative names and addresses. Other common names are
 * not checked. -EINVAL names the wrong one. */
int pki_csr_check_names(const struct pki_csr *c, bool server, struct err *e);

enum { PKI_CLIENT = 1, PKI_SERVER = 2 };
/* The certificate (PEM, owned) for the request 'pem', which pki_csr_read accepts; names only for
 * a server. It ends no later than the authority's own. */
int pki_csr_sign(const struct pki_ca *ca, const char *pem, unsigned usages, int64_t from_ms,
                 int64_t until_ms, char **ret, struct err *e);

/* The validity of the first certificate in 'pem'. */
int pki_cert_times(const char *pem, int64_t *ret_from_ms, int64_t *ret_until_ms, struct err *e);
