/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/id_token.h"

#include "base/base64.h"
#include "base/mem.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#define SHA256_SIZE 32
#define MAX_GROUPS 1000

static bool same(const char *a, const char *b)
{
    return a && strlen(a) == strlen(b) && CRYPTO_memcmp(a, b, strlen(b)) == 0;
}

/* "aud": a text, or a list of them (RFC 7519, 4.1.3). */
static bool has_audience(const struct json *aud, const char *client_id)
{
    const struct json *item;
    if (json_get_string(aud)) {
        return streq(json_get_string(aud), client_id);
    }
    JSON_FOREACH (item, aud) {
        if (streq_null(json_get_string(item), client_id)) {
            return true;
        }
    }
    return false;
}

static int check_audience(const struct json *claims, const char *client_id, struct err *e)
{
    const struct json *aud = json_get(claims, "aud"), *azp = json_get(claims, "azp");
    if (!has_audience(aud, client_id)) {
        return err_set(e, -EACCES, "id_token: \"aud\" does not have our clientID");
    }
    if (azp && !streq_null(json_get_string(azp), client_id)) {
        return err_set(e, -EACCES, "id_token: \"azp\" is not our clientID");
    }
    if (!azp && json_is(aud, JSON_ARRAY) && json_count(aud) > 1) {
        return err_set(e, -EACCES,
                       "id_token: \"aud\" has several clients, and there is no \"azp\"");
    }
    return 0;
}

/* A time in seconds, which may have a fraction. */
static bool get_time(const struct json *v, int64_t *ret)
{
    const char *text = json_number_text(v);
    if (!text) {
        return false;
    }
    CLEANUP_FREE char *whole = xstrndup(text, strcspn(text, "."));
    return str_to_i64(whole, 0, INT32_MAX * 1000LL, ret) == 0;
}

static int check_times(const struct json *claims, int64_t now_s, struct err *e)
{
    int64_t exp, iat, nbf = 0;
    if (!get_time(json_get(claims, "exp"), &exp) || !get_time(json_get(claims, "iat"), &iat) ||
        (json_get(claims, "nbf") && !get_time(json_get(claims, "nbf"), &nbf))) {
        return err_set(e, -EACCES, "id_token: \"exp\", \"iat\" or \"nbf\" is no time");
    }
    if (exp + ID_TOKEN_SKEW_S <= now_s) {
        return err_set(e, -EACCES, "id_token: expired %lld s ago; are the clocks right?",
                       (long long) (now_s - exp));
    }
    if (iat - ID_TOKEN_SKEW_S > now_s || nbf - ID_TOKEN_SKEW_S > now_s) {
        return err_set(e, -EACCES, "id_token: issued %lld s in the future; are the clocks right?",
                       (long long) (MAX(iat, nbf) - now_s));
    }
    return 0;
}

/* OpenID Connect Core, 3.1.3.6: the left half of the hash, for algorithms with SHA-256. */
static int check_access_token(const struct json *claims, const char *token, struct err *e)
{
    const struct json *hash = json_get(claims, "at_hash");
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    CLEANUP_STRBUF struct strbuf wanted = STRBUF_INIT;
    if (!hash || !token) {
        return 0;
    }
    if (EVP_Digest(token, strlen(token), digest, &size, EVP_sha256(), NULL) != 1) {
        return err_set(e, -EACCES, "SHA-256 is not available");
    }
    base64url_encode(digest, SHA256_SIZE / 2, &wanted);
    return same(json_get_string(hash), strbuf_cstr(&wanted))
               ? 0
               : err_set(e, -EACCES, "id_token: \"at_hash\" is not of the access token");
}

int id_token_check(const struct json *claims, const struct id_token_rules *rules, struct err *e)
{
    if (!streq_null(json_get_string(json_get(claims, "iss")), rules->issuer)) {
        return err_set(e, -EACCES, "id_token: \"iss\" is \"%.100s\", not \"%.100s\"",
                       json_get_text(claims, "iss"), rules->issuer);
    }
    if (!*json_get_text(claims, "sub")) {
        return err_set(e, -EACCES, "id_token: no \"sub\"");
    }
    int r = check_audience(claims, rules->client_id, e);
    r = r < 0 ? r : check_times(claims, rules->now_s, e);
    if (r == 0 && !same(json_get_string(json_get(claims, "nonce")), rules->nonce)) {
        r = err_set(e, -EACCES, "id_token: \"nonce\" is not of this login");
    }
    return r < 0 ? r : check_access_token(claims, rules->access_token, e);
}

/* ---- identities ---- */

static const struct json *claim(const struct json *claims, const struct json *more,
                                const char *name)
{
    const struct json *v = json_get(more, name);
    return v ? v : json_get(claims, name);
}

static char *first_text(const struct json *claims, const struct json *more, const struct json *list)
{
    const struct json *item;
    JSON_FOREACH (item, list) {
        const char *text = json_get_string(claim(claims, more, json_get_string(item)));
        if (text && *text) {
            return xstrdup(text);
        }
    }
    return NULL;
}

/* The texts of the first claim that is there: a list, or one text. */
static char **first_list(const struct json *claims, const struct json *more,
                         const struct json *list)
{
    const struct json *item, *name;
    char **groups = NULL;
    size_t n = 0, cap = 0;
    JSON_FOREACH (item, list) {
        const struct json *v = claim(claims, more, json_get_string(item));
        if (!v) {
            continue;
        }
        groups = grow(groups, &cap, 1, sizeof *groups);
        if (json_get_string(v)) {
            groups = grow(groups, &cap, 2, sizeof *groups);
            groups[n++] = xstrdup(json_get_string(v));
        }
        JSON_FOREACH (name, v) {
            const char *text = json_get_string(name);
            if (text && *text && n < MAX_GROUPS) {
                groups = grow(groups, &cap, n + 2, sizeof *groups);
                groups[n++] = xstrdup(text);
            }
        }
        groups[n] = NULL;
        return groups;
    }
    return NULL;
}

int id_token_identity(const struct json *claims, const struct json *more, const struct json *names,
                      struct identity *ret, struct err *e)
{
    struct identity id = {.user = first_text(claims, more, json_get(names, "id"))};
    if (!id.user) {
        return err_set(e, -EINVAL, "none of claims.id is in the provider's answer");
    }
    id.preferred = first_text(claims, more, json_get(names, "preferredUsername"));
    id.name = first_text(claims, more, json_get(names, "name"));
    id.email = first_text(claims, more, json_get(names, "email"));
    id.groups = first_list(claims, more, json_get(names, "groups"));
    *ret = id;
    return 0;
}
