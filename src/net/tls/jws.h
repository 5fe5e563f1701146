/* SPDX-License-Identifier: Apache-2.0 */
/* Signing and verifying tokens: ES256 and RS256 (RFC 7518) with OpenSSL.
 *
 * A set has one key that signs, and any number that verify. The algorithm is always the key's
 * own: P-256 keys verify ES256, RSA keys of 2,048 bits and more RS256, and a token that claims
 * another is refused. Immutable after it was filled; one thread. */
#pragma once

#include "base/err.h"
#include "wire/jwt.h"

struct jws_keys;
struct jws_keys *jws_keys_new(void);
struct jws_keys *jws_keys_free(struct jws_keys *k);
DEFINE_CLEANUP(struct jws_keys *, jws_keys_free)

/* The private key in 'pem', which signs (and verifies) from now on. -EINVAL: neither P-256 nor
 * RSA, or no key. */
int jws_keys_add_private(struct jws_keys *k, const char *pem, struct err *e);
/* All keys in 'pem', public or private, which verify. */
int jws_keys_add_public(struct jws_keys *k, const char *pem, struct err *e);
/* A public key as JSON (RFC 7517): RSA, or EC on P-256; tokens name it by its "kid".  -EINVAL: another
 * or malformed key. */
int jws_keys_add_jwk(struct jws_keys *k, const struct json *jwk, struct err *e);
/* The same from files; a missing private key is created (P-256, mode 0600). */
int jws_keys_load_private(struct jws_keys *k, const char *path, bool make, struct err *e);
int jws_keys_load_public(struct jws_keys *k, const char *path, struct err *e);

/* Owned token with 'claims'; there must be a private key. */
char *jws_sign(const struct jws_keys *k, const struct json *claims);
/* Verifies that the signature of 't', parsed from 'text', is by one of the keys. -EKEYREJECTED. */
int jws_verify(const struct jws_keys *k, const char *text, const struct jwt *t, struct err *e);
/* Owned: {"keys": [...]} of the public keys (RFC 7517), and the algorithms as an array of
 * strings. */
struct json *jws_public_set(const struct jws_keys *k);
struct json *jws_algorithms(const struct jws_keys *k);
