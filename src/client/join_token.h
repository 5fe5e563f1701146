/* SPDX-License-Identifier: Apache-2.0 */
/* Bootstrap tokens: the credential with which a node gets its first certificate. */
#pragma once

#include "wire/json.h"

#define JOIN_TOKEN_SIZE 24 /* "abcdef.0123456789abcdef" and NUL. */
#define JOIN_TOKEN_NAMESPACE "kube-system"
#define JOIN_TOKEN_TYPE "bootstrap.kubernetes.io/token"

/* Keys of the Secret beside those of Kubernetes.  The controller of certificate requests
 * (controllers/security/certificates.c) acts upon them. */
#define JOIN_TOKEN_NODE "node-name"    /* The only node that may join by the token. */
#define JOIN_TOKEN_SINGLE "single-use" /* "true": one node may join, once. */
#define JOIN_TOKEN_USED "used-by"      /* The node and the key of a single use: "NODE PIN". */

struct join_token_spec {
    const char *description;
    int64_t until_ms;      /* 0: without limit. */
    const char *node_name; /* NULL: any. */
    bool single_use;
};
/* A new random token, and the Secret (owned) that makes it valid. */
struct json *join_token_new(const struct join_token_spec *spec, char out[JOIN_TOKEN_SIZE]);
/* Whether 's' has the form of a token. */
bool join_token_is_token(const char *s);
/* Whether 's' has the form of a token's id: six characters of a-z and 0-9. */
bool join_token_is_id(const char *s);
