/* SPDX-License-Identifier: Apache-2.0 */
/* Bearer tokens: those of service accounts, bootstrap tokens and OAuth tokens. */
#pragma once

#include "apiserver/access/security.h"

/* The user that 'token' identifies.  It must be for one of 'audiences' (an array of
 * strings; NULL: the API server); 'ret_audiences' (may be NULL) gets the matching
 * ones.  -EPERM says why the token is invalid. */
int token_authenticate(struct security *s, const char *token, const struct json *audiences,
                       int64_t now_ms, struct user_info **ret, struct json **ret_audiences,
                       struct err *e);
/* The object whose existence a token depends on, in addition to its account. */
struct token_binding {
    const char *kind, *name, *uid; /* "Pod", "Secret" or "Node"; 'kind' NULL: nothing. */
    const char *node, *node_uid;   /* The node of a bound pod; NULL: none. */
};
/* A token (owned) of the service account 'sa' for 'audiences' (an array), valid for 'seconds'. */
char *token_issue(const struct security *s, const struct json *sa, const struct json *audiences,
                  const struct token_binding *b, int64_t seconds, int64_t now_ms);
