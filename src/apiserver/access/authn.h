/* SPDX-License-Identifier: Apache-2.0 */
/* Authentication: maps the credential of a request to a user. */
#pragma once

#include "apiserver/access/security.h"

/* Finds the bearer token of an Authorization header: 0 with '*ret' pointing into 'header'; -ENOENT:
 * no header; -EINVAL: another scheme, or no token. */
int authn_bearer(const char *header, const char **ret);
/* The user of the request; '*ret' is a reference.  -EPERM: a credential is invalid, or
 * there is none and anonymous requests are not accepted; -EAGAIN: the registry is not
 * loaded yet, so the credential cannot be checked. */
int authn_request(struct security *s, const struct http_exchange *x, struct user_info **ret,
                  struct err *e);
/* Whether two texts are equal, compared in a time that depends on their sizes only. */
bool secret_equal(const char *a, size_t a_size, const char *b, size_t b_size);
