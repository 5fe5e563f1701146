/* SPDX-License-Identifier: Apache-2.0 */
/* The metadata of the OAuth server (RFC 8414), at /.well-known/oauth-authorization-server.  Pure. */
#pragma once

#include "base/str.h"

#define OAUTH_DISCOVERY_PATH "/.well-known/oauth-authorization-server"

/* Appends the document, indented as OpenShift does.  'issuer' is the public URL of the master,
 * without a slash at its end: "https://master.example.com:8443". */
void oauth_discovery_write(const char *issuer, struct strbuf *out);
