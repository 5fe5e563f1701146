/* SPDX-License-Identifier: Apache-2.0 */
/* Bootstrap tokens: the credential with which a node gets its first certificate. */
#pragma once

#include "wire/json.h"

#define JOIN_TOKEN_SIZE 24 /* "abcdef.0123456789abcdef" and NUL. */
#define JOIN_TOKEN_NAMESPACE "kube-system"
#define JOIN_TOKEN_TYPE "bootstrap.kubernetes.io/token"

/* A new random token, and the Secret (owned) that makes it valid until
 * 'until_ms' (0: without limit). */
struct json *join_token_new(const char *description, int64_t until_ms, char out[JOIN_TOKEN_SIZE]);
/* Whether 's' has the form of a token's id: six characters of a-z and 0-9. */
bool join_token_is_id(const char *s);
