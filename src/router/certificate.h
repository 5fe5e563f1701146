/* SPDX-License-Identifier: Apache-2.0 */
/* Verifies certificates of routes before HAProxy gets them, so that a bad one concerns its own
 * route only.  Pure but for OpenSSL; any thread. */
#pragma once

#include "base/err.h"

/* Joins certificate, chain and key to one PEM text (owned) that has nothing but these, and no empty
 * line.  'key' NULL: the key is in 'cert'; 'ca' NULL: no further chain.  -EINVAL says what is
 * wrong: malformed PEM, or a key of another certificate.  Expired certificates are served. */
int certificate_join(const char *cert, const char *key, const char *ca, char **ret, struct err *e);
/* The certificates of 'pem' written anew (owned). -EINVAL: there is none, or other things are. */
int certificate_normalize(const char *pem, char **ret, struct err *e);
/* A self-signed certificate with its key, for connections to unknown hosts; owned. */
char *certificate_make_default(void);
