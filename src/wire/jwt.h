/* SPDX-License-Identifier: Apache-2.0 */
/* JSON Web Tokens in compact form (RFC 7515, RFC 7519): taken apart and put together, not judged.
 *
 * The text is checked for its form only; whether the signature is right, and what the claims mean,
 * is decided by whoever has the keys.  Pure. */
#pragma once

#include "wire/json.h"

#define JWT_MAX_SIZE 16384

struct jwt {
    struct json *header, *claims; /* Objects. */
    size_t signed_size;           /* What is signed: so many bytes from the start of the text. */
    struct strbuf signature;
};
void jwt_done(struct jwt *t);
static inline UNUSED void jwt_donep(struct jwt *t)
{
    jwt_done(t);
}

/* Whether 'text' has the form of one at all: three parts.  Cheap. */
bool jwt_looks_like(const char *text);
/* -EINVAL: it is none, or has critical extensions (RFC 7515, 4.1.11), none of which is known;
 * -E2BIG: over JWT_MAX_SIZE.  '*ret' untouched on failure. */
int jwt_parse(const char *text, struct jwt *ret, struct err *e);
/* Appends "HEADER.CLAIMS", to be signed; after it come a dot and the signature in base64url. */
void jwt_write_unsigned(const struct json *header, const struct json *claims, struct strbuf *out);
