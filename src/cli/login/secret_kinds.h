/* SPDX-License-Identifier: Apache-2.0 */
/* The Secrets that "tenet secrets new" and its like make, and references of service accounts to
 * them.  Pure. */
#pragma once

#include "base/err.h"
#include "wire/json.h"

#include <stddef.h>

/* A Secret of the type, without data; owned. */
struct json *secret_new(const char *name, const char *type);
/* Adds a value, which may have any bytes. */
void secret_add(struct json *secret, const char *key, const void *p, size_t size);
/* Adds the credentials of a registry in the older form of docker: the key .dockercfg. */
void secret_add_dockercfg(struct json *secret, const char *server, const char *user,
                          const char *password, const char *email);

/* Adds or removes a reference to the secret in the list 'key' of a service account: "secrets" or
 * "imagePullSecrets".  Returns whether the account changed. */
bool secret_link(struct json *account, const char *key, const char *secret);
bool secret_unlink(struct json *account, const char *key, const char *secret);
