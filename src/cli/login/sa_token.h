/* SPDX-License-Identifier: Apache-2.0 */
/* New tokens of service accounts: "tenet sa new-token" and "tenet create token". */
#pragma once

#include "cli/session.h"

#define SA_TOKEN_MAX_SECONDS (10 * 365 * 86400u)

/* Requests a token; '*ret' is owned, and the caller erases it.  'seconds' 0: it ends as the server
 * sets it.  'audiences' is an array of texts; NULL: the API server alone. */
int sa_token_request(struct session *s, const char *account, uint64_t seconds,
                     const struct json *audiences, char **ret, struct err *e);
