/* SPDX-License-Identifier: Apache-2.0 */
/* A small certificate authority: makes a CA, and certificates for servers and clients (ECDSA
 * P-256).
 *
 * Certificates and keys are PEM texts; keys are wiped when they are freed, and their files have
 * mode 0600. The time is an argument (milliseconds since 1970). No state but the CA itself. */
#pragma once

#include "base/err.h"

struct pki_pair {
    char *cert, *key; /* PEM */
};
void pki_pair_done(struct pki_pair *p);

/* ---- the authority ---- */

/* A pin: the SHA-256 of a public key (SubjectPublicKeyInfo, RFC 7469, section 2.4) as hexadecimal
 * digits, by which a client knows an authority before it has the certificate. */
#define PKI_PIN_SIZE 65
/* The pin of the first certificate in 'pem'.  -EINVAL: there is none. */
int pki_cert_pin(const char *pem, char ret[PKI_PIN_SIZE], struct err *e);

struct pki_ca;
/* A new authority, valid from an hour before 'now_ms' until 'until_ms'. */
struct pki_ca *pki_ca_new(int64_t now_ms, int64_t until_ms);
/* From ca.crt and ca.key in 'dir', which exists; both are created (valid for ten years) when
 * there is neither. -EINVAL: one is missing, malformed, expired, or not the other's. */
int pki_ca_open(const char *dir, int64_t now_ms, struct pki_ca **ret, struct err *e);
/* Like the previous one, with existing files; nothing is created. -ENOENT: a file is missing. */
int pki_ca_load(const char *cert_file, const char *key_file, int64_t now_ms, struct pki_ca **ret,
                struct err *e);
struct pki_ca *pki_ca_free(struct pki_ca *ca);
DEFINE_CLEANUP(struct pki_ca *, pki_ca_free)
const char *pki_ca_pem(const struct pki_ca *ca); /* Its certificate. */

/* ---- certificates ---- */

struct pki_request {
    const char *cn;       /* 1 to 64 bytes */
    const char *const *o; /* Organizations. */
    const char *const
        *names; /* DNS names and IPv4 addresses of a server's certificate; NULL: a client's. */
    size_t n_o, n_names;
    int64_t from_ms, until_ms;
};
/* Whether it can be one of a server's names. */
bool pki_name_is_valid(const char *name);
/* -EINVAL: an invalid name; the error says which. */
int pki_issue(const struct pki_ca *ca, const struct pki_request *q, struct pki_pair *ret,
              struct err *e);
/* Whether 'p' is a certificate by 'ca' as described by 'q', and at 'now_ms' more than a third of
 * its lifetime is left ('from_ms' and 'until_ms' of 'q' do not count). */
bool pki_is_good(const struct pki_ca *ca, const struct pki_request *q, const struct pki_pair *p,
                 int64_t now_ms);
/* The pair in the files; created when it is not good, else '*ret_made' is false. Files are
 * written as a whole or not at all. */
int pki_ensure_files(const struct pki_ca *ca, const struct pki_request *q, const char *cert_file,
                     const char *key_file, int64_t now_ms, bool *ret_made, struct err *e);
