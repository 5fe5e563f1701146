/* SPDX-License-Identifier: Apache-2.0 */
#include "oauth/seal.h"

#include "base/base64.h"
#include "base/random.h"

#include <openssl/evp.h>
#include <openssl/sha.h>

#define NONCE 12
#define TAG 16
/* Marks what is sealed in this form, so that another form can follow later. */
#define FORM 1

void seal_ring_add(struct seal_ring *r, const uint8_t key[SEAL_KEY_SIZE])
{
    if (r->n < SEAL_KEYS_MAX) {
        memcpy(r->keys[r->n++], key, SEAL_KEY_SIZE);
    }
}

void seal_ring_add_secrets(struct seal_ring *r, const char *authentication, const char *encryption)
{
    static const char context[] = "tenet oauth session";
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    uint8_t key[SHA256_DIGEST_LENGTH];
    /* The secrets are random and as long as a key, so that one hash is enough; the NULs keep the
     * parts apart. */
    strbuf_add(&b, context, sizeof context);
    strbuf_add(&b, authentication, strlen(authentication) + 1);
    strbuf_add(&b, encryption, strlen(encryption) + 1);
    SHA256((const uint8_t *) b.data, b.size, key);
    seal_ring_add(r, key);
    explicit_bzero(b.data, b.size);
    explicit_bzero(key, sizeof key);
}

void seal_ring_done(struct seal_ring *r)
{
    explicit_bzero(r, sizeof *r);
}

int seal_text(const struct seal_ring *r, const char *purpose, const char *text, struct strbuf *out)
{
    uint8_t b[1 + NONCE + SEAL_TEXT_MAX + TAG];
    size_t size = strlen(text);
    int n = 0, ok;
    if (!r->n) {
        return -ENOKEY;
    }
    if (size > SEAL_TEXT_MAX) {
        return -E2BIG;
    }
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    b[0] = FORM;
    random_bytes(b + 1, NONCE);
    uint8_t *data = b + 1 + NONCE;
    ok = c && EVP_EncryptInit_ex(c, EVP_aes_256_gcm(), NULL, r->keys[0], b + 1) == 1 &&
         EVP_EncryptUpdate(c, NULL, &n, b, 1) == 1 &&
         EVP_EncryptUpdate(c, NULL, &n, (const uint8_t *) purpose, (int) strlen(purpose)) == 1 &&
         EVP_EncryptUpdate(c, data, &n, (const uint8_t *) text, (int) size) == 1 &&
         EVP_EncryptFinal_ex(c, data + size, &n) == 1 &&
         EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, TAG, data + size) == 1;
    EVP_CIPHER_CTX_free(c);
    if (!ok) {
        return -EIO;
    }
    base64url_encode(b, 1 + NONCE + size + TAG, out);
    return 0;
}

static bool open_with(const uint8_t *key, const char *purpose, const uint8_t *b, size_t size,
                      uint8_t *text)
{
    int n = 0;
    size_t text_size = size - 1 - NONCE - TAG;
    const uint8_t *data = b + 1 + NONCE;
    uint8_t tag[TAG];
    memcpy(tag, data + text_size, TAG);
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    bool ok =
        c && EVP_DecryptInit_ex(c, EVP_aes_256_gcm(), NULL, key, b + 1) == 1 &&
        EVP_DecryptUpdate(c, NULL, &n, b, 1) == 1 &&
        EVP_DecryptUpdate(c, NULL, &n, (const uint8_t *) purpose, (int) strlen(purpose)) == 1 &&
        EVP_DecryptUpdate(c, text, &n, data, (int) text_size) == 1 &&
        EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG, TAG, tag) == 1 &&
        EVP_DecryptFinal_ex(c, text + text_size, &n) == 1;
    EVP_CIPHER_CTX_free(c);
    return ok;
}

int seal_open(const struct seal_ring *r, const char *purpose, const char *sealed,
              struct strbuf *out)
{
    struct strbuf b = STRBUF_INIT_MAX(1 + NONCE + SEAL_TEXT_MAX + TAG);
    uint8_t text[SEAL_TEXT_MAX + 1];
    int r2 = -EINVAL;
    if (base64url_decode(sealed, strlen(sealed), &b) == 0 && b.size >= 1 + NONCE + TAG &&
        (uint8_t) b.data[0] == FORM) {
        size_t n = b.size - 1 - NONCE - TAG;
        for (size_t i = 0; i < r->n && r2 < 0; i++) {
            if (open_with(r->keys[i], purpose, (const uint8_t *) b.data, b.size, text) &&
                !memchr(text, '\0', n)) {
                r2 = strbuf_add(out, text, n);
            }
        }
    }
    explicit_bzero(text, sizeof text);
    strbuf_done(&b);
    return r2;
}
