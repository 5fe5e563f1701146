/* SPDX-License-Identifier: Apache-2.0 */
/* Removes secrets from what a support bundle gets.
 *
 * Objects and configurations are treated by their structure: a value is removed because of where it
 * stands (data of Secrets and ConfigMaps, values of environment variables, command lines, headers,
 * annotations that are not of a known kind, keys that name a credential), whatever it looks like.
 * Texts (logs, outputs of tools, all other strings) are searched for credentials of known forms:
 * private keys, bootstrap tokens, JSON web tokens, tokens of OAuth, user names and passwords in
 * URLs, credentials of HTTP, and values after a word such as "password" and : or =.
 *
 * Rather too much is removed than too little.  Pure. */
#pragma once

#include "wire/json.h"

#define REDACTED "[removed]"

/* Appends 'text' without secrets. */
void redact_text(const char *text, size_t size, struct strbuf *out);
/* Removes secrets from the document, in place; lists of objects as well as configurations. */
void redact_json(struct json *v);
/* Whether a key names a credential ("password", "client-key-data"), and not the place, name or
 * lifetime of one ("secretName", "keyFile", "tokenExpirationSeconds"). */
bool redact_is_secret_key(const char *key, size_t size);
