/* SPDX-License-Identifier: Apache-2.0 */
/* The token that a Secret of type kubernetes.io/service-account-token gets: without an end, good as
 * long as the account and the Secret exist. */
#pragma once

#include "net/tls/jws.h"

/* Owned token of the ServiceAccount 'sa', for the Secret called 'secret' in its namespace. */
char *satoken_issue(const struct jws_keys *keys, const struct json *sa, const char *secret);
