/* SPDX-License-Identifier: Apache-2.0 */
#include "oauth/pkce.h"

#include "base/base64.h"
#include "base/mem.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#define MIN_SIZE 43
#define MAX_SIZE 128

/* A challenge or a verifier: 43 to 128 unreserved characters (RFC 7636, 4.1 and 4.2). */
static bool has_form(const char *s)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    size_t n = strlen(s);
    return n >= MIN_SIZE && n <= MAX_SIZE && strspn(s, letters) == n;
}

int pkce_check_challenge(const char *challenge, const char *method, const char **ret_method,
                         struct err *e)
{
    const char *known = !method || !*method || streq(method, "plain") ? "plain"
                        : streq(method, "S256")                       ? "S256"
                                                                      : NULL;
    if (!challenge || !*challenge) {
        *ret_method = NULL;
        return 0;
    }
    if (!known) {
        return err_set(e, -EINVAL, "code_challenge_method must be plain or S256");
    }
    if (!has_form(challenge)) {
        return err_set(e, -EINVAL,
                       "code_challenge must have %d to %d letters, digits, \"-\", \".\", \"_\" or "
                       "\"~\"",
                       MIN_SIZE, MAX_SIZE);
    }
    *ret_method = known;
    return 0;
}

int pkce_verify(const char *challenge, const char *method, const char *verifier, struct err *e)
{
    CLEANUP_STRBUF struct strbuf computed = STRBUF_INIT;
    if (!challenge || !*challenge) {
        return 0;
    }
    if (!verifier || !*verifier) {
        return err_set(e, -EINVAL, "code_verifier is missing");
    }
    if (!has_form(verifier)) {
        return err_set(e, -EINVAL, "code_verifier is malformed");
    }
    if (streq_null(method, "S256")) {
        unsigned char digest[SHA256_DIGEST_LENGTH];
        SHA256((const unsigned char *) verifier, strlen(verifier), digest);
        base64url_encode(digest, sizeof digest, &computed);
    } else if (streq_null(method, "plain")) {
        strbuf_adds(&computed, verifier);
    }
    size_t n = strlen(challenge);
    return computed.size == n && CRYPTO_memcmp(computed.data, challenge, n) == 0
               ? 0
               : err_set(e, -EINVAL, "code_verifier does not match code_challenge");
}
