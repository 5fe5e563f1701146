/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of net/tls that handle certificates. Internal to src/net. */
#pragma once

#include "net/tls/pki.h"

#include <openssl/x509v3.h>

#define PKI_HOUR_MS 3600000LL
#define PKI_MAX_TEXT 64 /* Bytes of a common name or organization. */

struct pki_ca {
    X509 *cert;
    EVP_PKEY *key;
    char *pem;
};

/* Aborts when a call fails that fails only when memory is out, or by a mistake of ours. */
void *pki_must(void *p);
void pki_check(int ok);

/* A certificate with a serial number, these times and this public key, not yet signed. */
X509 *pki_cert_new(EVP_PKEY *key, int64_t from_ms, int64_t until_ms);
void pki_name_add(X509_NAME *name, int nid, const char *text);
/* The DNS names and IPv4 addresses 'names' as the subject's alternative names. */
GENERAL_NAMES *pki_alt_names(const char *const *names, size_t n);
/* Makes 'x' a certificate by 'ca' for 'usages' (of extKeyUsage), and signs it. */
void pki_cert_sign(const struct pki_ca *ca, X509 *x, const char *usages);
char *pki_cert_pem(X509 *x);
char *pki_key_pem(EVP_PKEY *key);
EVP_PKEY *pki_parse_key(const char *pem); /* NULL: malformed. */
X509 *pki_parse_cert(const char *pem);    /* NULL: malformed. */
void pki_key_pin(X509_PUBKEY *key, char ret[PKI_PIN_SIZE]);
int64_t pki_time(const ASN1_TIME *t); /* Milliseconds since 1970. */
