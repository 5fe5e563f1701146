/* SPDX-License-Identifier: Apache-2.0 */
/* Issues the token for a Secret of type kubernetes.io/service-account-token.  It does not expire;
 * it is valid as long as the account and the Secret exist. */
#pragma once

#include "net/tls/jws.h"

/* The owned token of the ServiceAccount 'sa', for the Secret 'secret' in its namespace. */
char *satoken_issue(const struct jws_keys *keys, const struct json *sa, const char *secret);
