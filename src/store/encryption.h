/* SPDX-License-Identifier: Apache-2.0 */
/* Encryption of values at rest, by Kubernetes' EncryptionConfiguration
 * (apiserver.config.k8s.io/v1).
 *
 * A configuration says for resources which providers encrypt their values: "aesgcm", "aescbc",
 * "identity" (no encryption).  The first provider, and its first key, encrypt; all of them decrypt,
 * which is how keys are replaced.  The first entry that names a resource counts.
 *
 * The envelope is Kubernetes': "k8s:enc:aesgcm:v1:KEYNAME:", a nonce of 12 bytes, the text, a tag
 * of 16; or "k8s:enc:aescbc:v1:KEYNAME:", 16 bytes of IV, the padded text.  The key in the store is
 * the additional data of aesgcm, so that the values of two objects cannot be exchanged; aescbc has
 * no authentication at all.
 *
 * A configuration is immutable.  Keys are erased when it is freed.  Pure but for random bytes. */
#pragma once

#include "base/err.h"
#include "base/mem.h"

struct encryption;

/* Parses YAML or JSON.  -EINVAL: the error names the field. */
int encryption_parse(const char *text, size_t size, struct encryption **ret, struct err *e);
/* The same of a file of at most 1 MiB.  -EPERM: users beyond its owner and group may read it. */
int encryption_load(const char *path, struct encryption **ret, struct err *e);
struct encryption *encryption_free(struct encryption *x); /* NULL is fine; returns NULL. */
DEFINE_CLEANUP(struct encryption *, encryption_free)

/* Encrypts the value of 'key' in the store: '*ret' is owned, and another reference of 'value' when
 * nothing encrypts the key.  -EIO: the cipher failed. */
int encryption_seal(const struct encryption *x, const char *key, struct blob *value,
                    struct blob **ret, struct err *e);
/* Decrypts a value ('x' NULL: there is no configuration): '*ret' is owned, and another reference of
 * 'value' when it is not encrypted.  -ENOKEY: no configured key has the name in its envelope, which
 * the error has; -EBADMSG: the key or the value is wrong. */
int encryption_open(const struct encryption *x, const char *key, struct blob *value,
                    struct blob **ret, struct err *e);
/* Whether the value, as stored, is not as encryption_seal would make it: by another provider or
 * key, or not encrypted. */
bool encryption_is_stale(const struct encryption *x, const char *key, const struct blob *value);
