/* SPDX-License-Identifier: Apache-2.0 */
/* Checks and reads values of a provider's configuration: keys, secrets, files.
 *
 * A secret is a text, or an object with one of "value", "env" (a variable of the environment) and
 * "file", and optionally "keyFile": the secret is then a PEM block "ENCRYPTED STRING" (RFC 1421
 * headers, AES-256-CBC), and the file has the key in a block "ENCRYPTING KEY".  Paths
 * are absolute (oauth/config.h makes them so). */
#pragma once

#include "wire/json.h"

enum config_type {
    CONFIG_TEXT,
    CONFIG_BOOL,
    CONFIG_NUMBER, /* 0 to INT32_MAX */
    CONFIG_TEXTS,  /* An array of texts. */
    CONFIG_SECRET, /* A text or an object. */
    CONFIG_MAP,    /* An object of texts. */
    CONFIG_OBJECT, /* An object with 'rows'. */
};
struct config_row {
    const char *key; /* NULL: the end of the rows. */
    enum config_type type;
    bool required; /* Present, and not empty. */
    const struct config_row *rows;
};
/* Checks the members of 'o'; "kind" and "apiVersion" are always allowed.  Errors begin with the
 * key. */
int config_rows_check(const struct json *o, const struct config_row *rows, struct err *e);

/* Owned; "" when 'v' is absent.  Errors name the source, not the secret. */
int secret_read(const struct json *v, char **ret, struct err *e);
/* The file's text (owned), for certificates; NULL when 'path' is NULL or "". */
int config_file_text(const char *path, char **ret, struct err *e);
