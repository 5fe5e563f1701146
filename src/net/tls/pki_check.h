/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates and keys of users as PEM: whether a server could use them, before one tries.
 *
 * One certificate that cannot be read must not stop a proxy that serves thousands of others.  The
 * cost is bounded: texts and numbers of certificates have limits, and nothing is computed with keys.
 * Validity in time, names and the chain of authorities are not judged.  No text of a key gets into
 * an error.  Stateless. */
#pragma once

#include "base/err.h"

/* Bytes of a PEM text, and certificates in one. */
#define PKI_CHECK_MAX_PEM (1u << 20)
#define PKI_CHECK_MAX_CERTS 256

/* Whether 'pem' has certificates, all of which can be read, and nothing else: white space apart, text
 * between them is accepted only as comment lines that do not begin with "-----".  -EINVAL. */
int pki_check_authorities(const char *pem, struct err *e);
/* The same for a server's certificate with its chain, where its private key may be as well. */
int pki_check_certificate(const char *pem, struct err *e);
/* Whether 'pem' begins with a private key that is not encrypted, RSA of 1,024 bits or more or with
 * an elliptic curve. */
int pki_check_key(const char *pem, struct err *e);
/* Whether the key (NULL: it is in 'cert') is that of the first certificate in 'cert'. */
int pki_check_pair(const char *cert, const char *key, struct err *e);
