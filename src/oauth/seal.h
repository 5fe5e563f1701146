/* SPDX-License-Identifier: Apache-2.0 */
/* Sealed texts: what the OAuth server leaves in cookies, so that any master can continue a login
 * that another one began, and browsers can neither read nor change it.
 *
 * AES-256-GCM with a random nonce; the purpose of a text is authenticated with it, so that the
 * content of one cookie is not accepted in another.  A ring has the key that seals and those that
 * only open, which is how keys are replaced.  A nonce of 96 random bits may be used 2^32 times with
 * a key (NIST SP 800-38D, 8.3); keys are replaced every week.  Pure but for random bytes. */
#pragma once

#include "base/err.h"
#include "base/str.h"

#define SEAL_KEY_SIZE 32
#define SEAL_KEYS_MAX 8
/* Longest text that is sealed or opened. */
#define SEAL_TEXT_MAX 3000

struct seal_ring {
    uint8_t keys[SEAL_KEYS_MAX][SEAL_KEY_SIZE];
    size_t n; /* The first key seals, all open; 0: nothing can be sealed. */
};
/* Adds a key behind the others; beyond SEAL_KEYS_MAX it is left out. */
void seal_ring_add(struct seal_ring *r, const uint8_t key[SEAL_KEY_SIZE]);
/* Adds the key derived from the two secrets of an entry of OpenShift's SessionSecrets file. */
void seal_ring_add_secrets(struct seal_ring *r, const char *authentication, const char *encryption);
void seal_ring_done(struct seal_ring *r); /* Erases the keys. */

/* Appends the sealed 'text' as base64url to 'out'.  -ENOKEY: the ring is empty; -E2BIG: the text is
 * too long. */
int seal_text(const struct seal_ring *r, const char *purpose, const char *text, struct strbuf *out);
/* Appends the text of 'sealed' to 'out'.  -EINVAL: it was not sealed by a key of the ring for this
 * purpose; 'out' is unchanged then. */
int seal_open(const struct seal_ring *r, const char *purpose, const char *sealed,
              struct strbuf *out);
