/* SPDX-License-Identifier: Apache-2.0 */
/* Proof keys for codes (RFC 7636).  Pure. */
#pragma once

#include "base/err.h"
#include "base/macro.h"

/* Checks the parameters of a request for authorization; absent ones are NULL.  Ansible's
 * community.okd sends a method without a challenge, which is then ignored.  '*ret_method' is
 * constant: "plain", "S256", or NULL without a challenge.  -EINVAL: the reason for an
 * invalid_request. */
int pkce_check_challenge(const char *challenge, const char *method, const char **ret_method,
                         struct err *e);
/* Whether 'verifier' (NULL: none) proves the challenge; without a challenge ("" or NULL) a verifier
 * is ignored.  'method' is "plain" or "S256"; any other proves nothing.  -EINVAL: the reason for an
 * invalid_grant. */
int pkce_verify(const char *challenge, const char *method, const char *verifier, struct err *e);
