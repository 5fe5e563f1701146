/* SPDX-License-Identifier: Apache-2.0 */
/* The input of OAuth 2.0 (RFC 6749, RFC 7636): parameters of URLs and fields of bodies.  Pure. */
#pragma once

#include "base/str.h"

/* Appends the parameter to a URL, with "?" or "&". */
void oauth_client_add_parameter(struct strbuf *url, const char *name, const char *value);
/* Appends the field to a form. */
void oauth_client_add_field(struct strbuf *body, const char *name, const char *value);
/* Appends the code_challenge of the method S256. */
void oauth_client_add_challenge(struct strbuf *url, const char *verifier);
