/* SPDX-License-Identifier: Apache-2.0 */
/* The user's own OAuth tokens: "tenet token own" and "tenet token revoke".  A token is named by
 * its object, whose name is a hash and no secret. */
#pragma once

#include "cli/session.h"

/* Prints a table; the token of this session is marked.  Returns the exit status. */
int own_tokens_list(struct session *s);
/* Ends the named tokens; with 'all' every one but that of this session.  Returns the exit
 * status. */
int own_tokens_revoke(struct session *s, int n, char *const *names, bool all);
