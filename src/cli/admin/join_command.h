/* SPDX-License-Identifier: Apache-2.0 */
/* The line with which a host joins, for "tenet token" and "tenet setup master": a new token, and
 * the text "tenet setup node --join TOKEN HOST:PORT".  Calls block. */
#pragma once

#include "client/client.h"
#include "client/join.h"
#include "client/kubeconfig.h"

/* Seconds for which the token of such a line is valid, unless the user says otherwise. */
#define JOIN_COMMAND_TTL_S 3600

/* Makes the Secret of a new token at the server, and fills 'token'. */
int join_command_token(struct api_client *client, const struct join_token_spec *spec,
                       char token[JOIN_TOKEN_SIZE], struct err *e);
/* The line (owned; it holds the token) for the server and the authority of 'k'.  -EINVAL: the
 * server has no HTTPS, or 'k' no authority. */
int join_command_text(const struct kubeconfig *k, const char *token, char **ret, struct err *e);
