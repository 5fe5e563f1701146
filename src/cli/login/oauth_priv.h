/* SPDX-License-Identifier: Apache-2.0 */
/* What the two ways to log in share: not for other files. */
#pragma once

#include "cli/login/oauth.h"

/* Asks the token endpoint for the token of 'code'; '*ret' is owned. */
int oauth_exchange(const struct oauth_login *l, const struct oauth_server *o, const char *client,
                   const char *redirect, const char *verifier, const char *code, char **ret,
                   struct err *e);
