/* SPDX-License-Identifier: Apache-2.0 */
#include "oauth/token.h"

#include "base/base64.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>

/* "sha256~" and the base64url of 32 bytes. */
static void write_text(const uint8_t bytes[32], char *ret)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    strbuf_adds(&b, OAUTH_TOKEN_PREFIX);
    base64url_encode(bytes, 32, &b);
    memcpy(ret, b.data, b.size + 1);
    explicit_bzero(b.data, b.size);
}

bool oauth_token_has_form(const char *s)
{
    return !oauth_check_token(s);
}

int oauth_token_make(const uint8_t random[OAUTH_TOKEN_RANDOM], char ret[OAUTH_TOKEN_TEXT_SIZE])
{
    /* The first of the 43 characters has the first 6 bits; "-" is the 62nd. */
    if (random[0] >> 2 == 62) {
        return -EAGAIN;
    }
    write_text(random, ret);
    return 0;
}

/* Fetched once: a fetch takes longer than the hash of a token. */
static const EVP_MD *sha256(void)
{
    static EVP_MD *md;
    md = md ? md : EVP_MD_fetch(NULL, "SHA256", NULL);
    return md;
}

int oauth_token_name(const char *token, char ret[OAUTH_TOKEN_TEXT_SIZE])
{
    unsigned char hash[32];
    unsigned size = 0;
    if (!oauth_token_has_form(token)) {
        return -EINVAL;
    }
    if (EVP_Digest(token + sizeof OAUTH_TOKEN_PREFIX - 1, OAUTH_TOKEN_SECRET, hash, &size, sha256(),
                   NULL) != 1 ||
        size != sizeof hash) {
        abort(); /* The library cannot compute SHA-256: nothing that follows would be safe. */
    }
    write_text(hash, ret);
    return 0;
}
