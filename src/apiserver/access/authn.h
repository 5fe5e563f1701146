/* SPDX-License-Identifier: Apache-2.0 */
/* Authentication: which user a request's credential stands for. */
#pragma once

#include "apiserver/access/security.h"

/* The token of an Authorization header: 0 with '*ret' in 'header'; -ENOENT: no header; -EINVAL:
 * another scheme, or no token. */
int authn_bearer(const char *header, const char **ret);
/* Who makes the request, a reference.  -EPERM: a credential is wrong, or there is none and
 * anonymous requests are not taken; -EAGAIN: it cannot be known yet. */
int authn_request(struct security *s, const struct http_exchange *x, struct user_info **ret,
                  struct err *e);
/* Whether two texts are the same, in a time that depends on their sizes only. */
bool secret_equal(const char *a, size_t a_size, const char *b, size_t b_size);
