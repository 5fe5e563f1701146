/* SPDX-License-Identifier: Apache-2.0 */
/* Clients of the OAuth server, their tokens and codes, and what users allow them
 * (oauth.openshift.io/v1). */
#include "api/kind_util.h"
#include "api/kinds.h"
#include "api/kinds/oauth.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/timeutil.h"

#include <inttypes.h>

#define SERVICE_ACCOUNT "system:serviceaccount:"

/* ---- names and texts ---- */

const char *oauth_check_token(const char *s)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    return str_has_prefix(s, OAUTH_TOKEN_PREFIX) && strlen(s) == OAUTH_TOKEN_SIZE &&
                   strspn(s + sizeof OAUTH_TOKEN_PREFIX - 1, letters) == OAUTH_TOKEN_SECRET
               ? NULL
               : "must be sha256~ and 43 characters of base64url: the hash of the token";
}

/* The name of a service account in 's', "system:serviceaccount:NAMESPACE:NAME"; NULL: it is none. */
static const char *account_of(const char *s)
{
    const char *ns = str_has_prefix(s, SERVICE_ACCOUNT) ? s + sizeof SERVICE_ACCOUNT - 1 : NULL;
    const char *colon = ns ? strchr(ns, ':') : NULL;
    CLEANUP_FREE char *namespace = colon ? xstrndup(ns, (size_t) (colon - ns)) : NULL;
    return namespace && !api_check_dns_label(namespace) ? colon + 1 : NULL;
}

const char *oauth_check_client(const char *s)
{
    const char *account = account_of(s);
    return api_check_dns_subdomain(account ? account : s);
}

const char *oauth_check_redirect(const char *s)
{
    size_t size = strcspn(s, "?");
    if (strchr(s, '#')) {
        return "may not contain a fragment";
    }
    for (const char *p = s; *p; p++) {
        if ((unsigned char) *p <= ' ' || *p == 0x7f || *p == '\\') {
            return "may not contain blanks, control characters or backslashes";
        }
    }
    for (size_t i = 0; i < size;) {
        size_t n = 0, dots = 0;
        bool plain = true;
        /* A browser takes "%2e" for a dot as well. */
        while (i + n < size && s[i + n] != '/') {
            bool encoded = !strncasecmp(s + i + n, "%2e", 3);
            plain &= encoded || s[i + n] == '.';
            dots++;
            n += encoded ? 3 : 1;
        }
        if (n && plain && dots <= 2) {
            return dots == 1 ? "may not contain a path segment of ."
                             : "may not contain a path segment of ..";
        }
        i += n + 1;
    }
    return NULL;
}

const char *oauth_check_authorization(const char *s)
{
    const char *wrong = api_check_path_segment(s), *colon = strchr(s, ':');
    if (wrong) {
        return wrong;
    }
    return colon && colon > s && colon[1] ? NULL : "must be in the format <userName>:<clientName>";
}

/* ---- cells ---- */

/* "a,b" */
static struct json *joined(const struct json *list)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const struct json *item;
    JSON_FOREACH (item, list) {
        const char *s = json_get_string(item);
        strbuf_addf(&b, "%s%s", b.size && s ? "," : "", s ? s : "");
    }
    return json_string(strbuf_cstr(&b));
}

struct json *kind_oauth_client_cell_challenges(const struct json *obj, int64_t now_ms)
{
    return json_bool(json_get_bool(json_get(obj, "respondWithChallenges"), false));
}

struct json *kind_oauth_client_cell_max_age(const struct json *obj, int64_t now_ms)
{
    int64_t age;
    if (json_get_int(json_get(obj, "accessTokenMaxAgeSeconds"), &age) < 0) {
        return json_string("default");
    }
    return age ? json_stringf("%" PRId64, age) : json_string("unexpiring");
}

struct json *kind_oauth_client_cell_redirects(const struct json *obj, int64_t now_ms)
{
    return joined(json_get(obj, "redirectURIs"));
}

struct json *kind_oauth_access_token_cell_expires(const struct json *obj, int64_t now_ms)
{
    const char *created = json_path_string(obj, "metadata", "creationTimestamp", NULL);
    int64_t ms, seconds = json_get_int_or(json_get(obj, "expiresIn"), 0);
    char text[TIME_TEXT_SIZE];
    if (!seconds) {
        return json_string("never");
    }
    if (!created || time_parse(created, &ms) < 0 || seconds > INT32_MAX) {
        return json_string("<unknown>");
    }
    time_format_s(ms + seconds * 1000, text);
    return json_string(text);
}

struct json *kind_oauth_access_token_cell_scopes(const struct json *obj, int64_t now_ms)
{
    return joined(json_get(obj, "scopes"));
}

/* ---- validation ---- */

static void require(const struct json *obj, const char *key, struct api_causes *c)
{
    if (!json_string_size(json_get(obj, key))) {
        api_required(c, key, "");
    }
}

/* The fields that tokens, codes and authorizations share. */
static void validate_grant(const struct json *obj, struct api_causes *c)
{
    require(obj, "clientName", c);
    require(obj, "userName", c);
    require(obj, "userUID", c);
    if (!json_count(json_get(obj, "scopes"))) {
        api_required(c, "scopes", "may not be empty");
    }
}

static void validate_redirect(const struct json *obj, struct api_causes *c)
{
    const struct json *uri = json_get(obj, "redirectURI");
    const char *wrong =
        json_string_size(uri) ? oauth_check_redirect(json_get_string(uri)) : "may not be empty";
    if (wrong) {
        api_invalid(c, "redirectURI", uri, "%s", wrong);
    }
}

/* All of the object but metadata and the field 'except' (NULL: none) stays. */
static void validate_unchanged(const struct json *obj, const struct json *old, const char *except,
                               struct api_causes *c)
{
    const struct json *sides[] = {obj, old};
    for (size_t side = 0; side < ARRAY_SIZE(sides); side++) {
        const struct json *one = sides[side], *other = sides[1 - side];
        for (size_t i = 0; i < json_count(one); i++) {
            const char *key = json_key_at(one, i);
            /* A row that both tables have is compared once. */
            bool compared = side && json_get(other, key);
            if (!compared && !streq(key, "metadata") && !streq_null(key, except) &&
                !json_equal(json_at(one, i), json_get(other, key))) {
                api_invalid(c, key, json_get(obj, key), "field is immutable");
            }
        }
    }
}

void kind_oauth_client_validate(const struct json *obj, const struct json *old,
                                struct api_causes *c)
{
    const struct json *restrictions = json_get(obj, "scopeRestrictions");
    const struct json *timeout = json_get(obj, "accessTokenInactivityTimeoutSeconds");
    int64_t seconds = json_get_int_or(timeout, 0);
    for (size_t i = 0; i < json_count(restrictions); i++) {
        const struct json *r = json_at(restrictions, i), *role = json_get(r, "clusterRole");
        const char *field = API_FIELD("scopeRestrictions[%zu]", i);
        if ((json_count(json_get(r, "literals")) > 0) == json_is(role, JSON_OBJECT)) {
            api_invalid(c, field, r, "exactly one of literals, clusterRole is required");
            continue;
        }
        if (role && !json_count(json_get(role, "roleNames"))) {
            api_required(c, API_FIELD("%s.clusterRole.roleNames", field), "won't match anything");
        }
        if (role && !json_count(json_get(role, "namespaces"))) {
            api_required(c, API_FIELD("%s.clusterRole.namespaces", field), "won't match anything");
        }
    }
    if (seconds > 0 && seconds < OAUTH_INACTIVITY_MIN_S) {
        api_invalid(c, "accessTokenInactivityTimeoutSeconds", timeout,
                    "The minimum valid timeout value is %d seconds", OAUTH_INACTIVITY_MIN_S);
    }
}

void kind_oauth_access_token_validate(const struct json *obj, const struct json *old,
                                      struct api_causes *c)
{
    static const char field[] = "inactivityTimeoutSeconds";
    const struct json *timeout = json_get(obj, field);
    int64_t now = json_get_int_or(timeout, 0), before = json_get_int_or(json_get(old, field), 0);
    validate_grant(obj, c);
    validate_redirect(obj, c);
    if (!old) {
        return;
    }
    validate_unchanged(obj, old, field, c);
    if (before == 0 && now != 0) {
        api_invalid(c, field, timeout, "cannot update non-timing-out token");
    } else if (now > 0 && now < before) {
        /* Several masters write it: the latest end counts. */
        api_invalid(c, field, timeout, "cannot be less than the current value=%" PRId64, before);
    }
}

void kind_oauth_authorize_token_validate(const struct json *obj, const struct json *old,
                                         struct api_causes *c)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    const struct json *challenge = json_get(obj, "codeChallenge");
    const struct json *method = json_get(obj, "codeChallengeMethod");
    size_t size = json_string_size(challenge);
    validate_grant(obj, c);
    validate_redirect(obj, c);
    if (json_get_int_or(json_get(obj, "expiresIn"), 0) <= 0) {
        api_invalid(c, "expiresIn", json_get(obj, "expiresIn"), "must be greater than zero");
    }
    if (!size && json_string_size(method)) {
        api_required(c, "codeChallenge", "required if codeChallengeMethod is specified");
    } else if (size &&
               (size < 43 || size > 128 || strspn(json_get_string(challenge), letters) != size)) {
        api_invalid(c, "codeChallenge", challenge, "must be 43-128 characters [a-zA-Z0-9.~_-]");
    }
    if (size && !json_string_size(method)) {
        api_required(c, "codeChallengeMethod", "required if codeChallenge is specified");
    }
    if (old) {
        validate_unchanged(obj, old, NULL, c);
    }
}

/* "USER:CLIENT", owned; NULL: one of them is absent. */
static char *authorization_name(const struct json *obj)
{
    const char *user = json_path_string(obj, "userName", NULL);
    const char *client = json_path_string(obj, "clientName", NULL);
    return user && client ? xasprintf("%s:%s", user, client) : NULL;
}

void kind_oauth_client_authorization_prepare(struct json *obj, const struct json *old)
{
    CLEANUP_FREE char *name = authorization_name(obj);
    if (!old && name) {
        api_default_string(json_get(obj, "metadata"), "name", name);
    }
}

void kind_oauth_client_authorization_validate(const struct json *obj, const struct json *old,
                                              struct api_causes *c)
{
    static const char *const kept[] = {"clientName", "userName", "userUID"};
    const struct json *own = json_path(obj, "metadata", "name", NULL);
    CLEANUP_FREE char *wanted = authorization_name(obj);
    validate_grant(obj, c);
    if (!streq_null(wanted, json_get_string(own))) {
        api_invalid(c, "metadata.name", own, "must be in the format <userName>:<clientName>");
    }
    for (size_t i = 0; old && i < ARRAY_SIZE(kept); i++) {
        if (!json_equal(json_get(obj, kept[i]), json_get(old, kept[i]))) {
            api_invalid(c, kept[i], json_get(obj, kept[i]), "%s is not a mutable field", kept[i]);
        }
    }
}

/* ---- UserOAuthAccessToken ---- */

/* Both kinds have the same fields. */
static void keep(struct json *obj)
{
}

const struct api_view kind_user_oauth_access_token_view = {
    .of = &api_kind_oauth_access_token, .show = keep, .store = keep};
