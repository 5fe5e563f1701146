/* SPDX-License-Identifier: Apache-2.0 */
/* Files of htpasswd(1): "USER:HASH" lines, with bcrypt ($2a$, $2b$, $2y$), MD5 of Apache ($apr1$)
 * and {SHA} hashes.
 *
 * Hashes of crypt(3)'s older kinds and plain passwords are errors: the first are weak, and neither
 * can be told from the other.  Pure but for time: htpasswd_check takes the time of the hash, also
 * for a user who is not in the file.  A file is immutable, and threads may share it. */
#pragma once

#include "base/err.h"

#define HTPASSWD_SIZE_MAX ((size_t) 16 << 20)
#define HTPASSWD_USER_MAX 255

struct htpasswd;
/* -EINVAL: "line 3: ...".  The last line of a user counts. */
int htpasswd_parse(const char *text, size_t size, struct htpasswd **ret, struct err *e);
struct htpasswd *htpasswd_free(struct htpasswd *h);
DEFINE_CLEANUP(struct htpasswd *, htpasswd_free)
size_t htpasswd_count(const struct htpasswd *h);
/* Whether the password is that of the user. */
bool htpasswd_check(const struct htpasswd *h, const char *user, const char *password);
/* Whether 'password' has the hash; for tests. */
bool htpasswd_check_hash(const char *hash, const char *password);
