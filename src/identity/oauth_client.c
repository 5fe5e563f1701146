/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/oauth_client.h"

#include "base/base64.h"
#include "wire/http1.h"

#include <openssl/evp.h>
#include <stdlib.h>

#define SHA256_SIZE 32

void oauth_client_add_parameter(struct strbuf *url, const char *name, const char *value)
{
    strbuf_addc(url, strchr(strbuf_cstr(url), '?') ? '&' : '?');
    http1_escape(name, url);
    strbuf_addc(url, '=');
    http1_escape(value, url);
}

void oauth_client_add_field(struct strbuf *body, const char *name, const char *value)
{
    strbuf_addf(body, "%s%s=", body->size ? "&" : "", name);
    http1_escape(value, body);
}

void oauth_client_add_challenge(struct strbuf *url, const char *verifier)
{
    CLEANUP_STRBUF struct strbuf challenge = STRBUF_INIT;
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    if (EVP_Digest(verifier, strlen(verifier), digest, &size, EVP_sha256(), NULL) != 1) {
        abort(); /* OpenSSL is out of memory. */
    }
    base64url_encode(digest, SHA256_SIZE, &challenge);
    oauth_client_add_parameter(url, "code_challenge", challenge.data);
    oauth_client_add_parameter(url, "code_challenge_method", "S256");
}
