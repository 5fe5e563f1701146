/* SPDX-License-Identifier: Apache-2.0 */
/* The claims of an id_token (OpenID Connect Core 1.0, 2 and 3.1.3.7), and identities by claims.
 *
 * The signature is verified before (net/tls/jws.h).  No state; the time is an argument. */
#pragma once

#include "identity/provider.h"

/* Clocks of the provider and of this host may differ by so much. */
#define ID_TOKEN_SKEW_S 60

struct id_token_rules {
    const char *issuer, *client_id, *nonce;
    const char *access_token; /* That came with it, for at_hash; NULL: none. */
    int64_t now_s;            /* Seconds since 1970. */
};
/* -EACCES: the error says which claim is wrong, and neither tokens nor secrets. */
int id_token_check(const struct json *claims, const struct id_token_rules *rules, struct err *e);

/* Fills 'ret' by the lists of the configuration's object 'names' (id, preferredUsername, name, email,
 * groups): the first claim of each that is a text that is not empty.  'more' are further claims,
 * of userInfo, which come first; NULL: none.  -EINVAL: there is no id. */
int id_token_identity(const struct json *claims, const struct json *more, const struct json *names,
                      struct identity *ret, struct err *e);
