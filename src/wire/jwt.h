/* SPDX-License-Identifier: Apache-2.0 */
/* JSON Web Tokens in compact form (RFC 7515, RFC 7519): parsed and composed, not verified.
 *
 * The text is checked for its form only; the caller, who has the keys, verifies the signature
 * and interprets the claims. Pure. */
#pragma once

#include "wire/json.h"

#define JWT_MAX_SIZE 16384

struct jwt {
    struct json *header, *claims; /* Objects. */
    size_t signed_size;           /* The signed part: so many bytes from the start of the text. */
    struct strbuf signature;
};
void jwt_done(struct jwt *t);
static inline UNUSED void jwt_donep(struct jwt *t)
{
    jwt_done(t);
}

/* Whether 'text' has the form of a token: three parts. Cheap. */
bool jwt_looks_like(const char *text);
/* -EINVAL: malformed, or with critical extensions (RFC 7515, 4.1.11), none of which is known;
 * -E2BIG: over JWT_MAX_SIZE. '*ret' untouched on failure. */
int jwt_parse(const char *text, struct jwt *ret, struct err *e);
/* Appends "HEADER.CLAIMS", the part to be signed; a dot and the signature in base64url follow
 * it. */
void jwt_write_unsigned(const struct json *header, const struct json *claims, struct strbuf *out);
