/* SPDX-License-Identifier: Apache-2.0 */
/* Makes certificate requests for tests, including malformed and forbidden ones. */
#pragma once

#include "base/mem.h"

#include <stddef.h>

struct csr_wish {
    const char *cn;        /* NULL: none. */
    const char *second_cn; /* NULL: none. */
    const char *raw_cn;    /* Instead, a common name of 'raw_cn_size' bytes; NULL: none. */
    size_t raw_cn_size;
    const char *const *o; /* NULL at the end; NULL: none. */
    const char *unit;     /* An organizational unit; NULL: none. */
    const char *alt;      /* "DNS:a,IP:10.0.0.1,email:x@y", as OpenSSL has it; NULL: none. */
    const char *raw_dns;  /* A DNS name of 'raw_size' bytes; NULL: none. */
    size_t raw_size;
    const char *key; /* "P-256" (NULL), "P-384", "P-192", "RSA-1024", "RSA-2048" or "ED25519". */
};
/* Returns the request, signed with a new key; both are PEM and owned.  'ret_key' may be NULL. */
char *csr_make(const struct csr_wish *w, char **ret_key);
/* Returns the request in base64, the form of spec.request of a CertificateSigningRequest; owned. */
char *csr_text(const struct csr_wish *w);
