/* SPDX-License-Identifier: Apache-2.0 */
/* Users, groups, identities and their mappings (user.openshift.io/v1).
 *
 * Names of users and groups contain no ":", so that no object can have the name of a system user or
 * of a virtual group ("system:admin", "system:masters"). */
#include "api/kind_util.h"
#include "api/kinds.h"

#include "base/base64.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>

#define ENCODED "b64:"
#define IDENTITY_FORMAT "must be in the format <providerName>:<providerUserName>"

/* ---- names ---- */

/* The rule that names of users, groups and providers share. */
static const char *check_word(const char *s)
{
    const char *wrong = api_check_path_segment(s);
    if (wrong) {
        return wrong;
    }
    if (strchr(s, ':')) {
        return "may not contain \":\"";
    }
    return streq(s, "~") ? "may not equal \"~\"" : NULL;
}

const char *user_check_name(const char *s)
{
    if (!str_has_prefix(s, ENCODED)) {
        return check_word(s);
    }
    /* The name of a user whose real name cannot be one: its base64. */
    const char *text = s + sizeof ENCODED - 1, *wrong = check_word(text);
    CLEANUP_STRBUF struct strbuf real = STRBUF_INIT;
    /* The OAuth server takes base64url, which has no "/". */
    if (!wrong && (!*text || (base64_decode(text, strlen(text), &real) < 0 &&
                              base64url_decode(text, strlen(text), &real) < 0))) {
        wrong = "must be base64 after \"b64:\"";
    }
    return wrong;
}

const char *group_check_name(const char *s)
{
    return check_word(s);
}

const char *identity_check_provider(const char *s)
{
    return check_word(s);
}

const char *identity_check_name(const char *s)
{
    const char *wrong = api_check_path_segment(s), *colon = strchr(s, ':');
    if (wrong) {
        return wrong;
    }
    if (!colon || user_check_name(colon + 1)) {
        return IDENTITY_FORMAT;
    }
    if (colon == s) {
        return IDENTITY_FORMAT " with a non-empty providerName";
    }
    return colon[1] ? NULL : IDENTITY_FORMAT " with a non-empty providerUserName";
}

/* ---- cells ---- */

/* "a, b" */
static struct json *joined(const struct json *list)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const struct json *item;
    JSON_FOREACH (item, list) {
        strbuf_addf(&b, "%s%s", b.size ? ", " : "",
                    json_get_string(item) ? json_get_string(item) : "");
    }
    return json_string(strbuf_cstr(&b));
}

struct json *kind_user_cell_identities(const struct json *obj, int64_t now_ms)
{
    return joined(json_get(obj, "identities"));
}

struct json *kind_group_cell_users(const struct json *obj, int64_t now_ms)
{
    return joined(json_get(obj, "users"));
}

/* ---- validation ---- */

void kind_user_validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    const struct json *identities = json_get(obj, "identities");
    for (size_t i = 0; i < json_count(identities); i++) {
        if (!json_string_size(json_at(identities, i))) {
            api_invalid(c, API_FIELD("identities[%zu]", i), json_at(identities, i),
                        IDENTITY_FORMAT);
        }
    }
    if (json_count(json_get(obj, "groups"))) {
        api_forbidden(c, "groups", "a Group lists its members");
    }
}

void kind_group_validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    const struct json *users = json_get(obj, "users");
    for (size_t i = 0; i < json_count(users); i++) {
        if (!json_string_size(json_at(users, i))) {
            api_invalid(c, API_FIELD("users[%zu]", i), json_at(users, i), "may not be empty");
        }
    }
}

/* "PROVIDER:USER", owned; NULL: one of them is absent. */
static char *identity_name(const struct json *obj)
{
    const char *provider = json_path_string(obj, "providerName", NULL);
    const char *user = json_path_string(obj, "providerUserName", NULL);
    return provider && user ? xasprintf("%s:%s", provider, user) : NULL;
}

void kind_identity_prepare(struct json *obj, const struct json *old)
{
    CLEANUP_FREE char *name = identity_name(obj);
    if (!old && name) {
        api_default_string(json_get(obj, "metadata"), "name", name);
    }
}

static void validate_unchanged(const struct json *obj, const struct json *old, const char *key,
                               struct api_causes *c)
{
    if (old && !json_equal(json_get(obj, key), json_get(old, key))) {
        api_invalid(c, key, json_get(obj, key), "may not change %s", key);
    }
}

void kind_identity_validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    const struct json *user = json_get(obj, "user"), *name = json_get(user, "name");
    const struct json *uid = json_get(user, "uid"), *own = json_path(obj, "metadata", "name", NULL);
    CLEANUP_FREE char *wanted = identity_name(obj);
    validate_unchanged(obj, old, "providerName", c);
    validate_unchanged(obj, old, "providerUserName", c);
    if (!old && !streq_null(wanted, json_get_string(own))) {
        api_invalid(c, "metadata.name", own, "must be \"%s\"", wanted);
    }
    if (json_string_size(name)) {
        const char *wrong = user_check_name(json_get_string(name));
        if (wrong) {
            api_invalid(c, "user.name", name, "%s", wrong);
        }
        if (!json_string_size(uid)) {
            api_required(c, "user.uid", "must be set together with user.name");
        }
    } else if (json_string_size(uid)) {
        api_invalid(c, "user.uid", uid, "may not be set if user.name is empty");
    }
}

/* A reference in a mapping is a name; what else it has is the server's to say. */
static void keep_name(struct json *obj, const char *key)
{
    struct json *ref = json_get(obj, key);
    while (json_is(ref, JSON_OBJECT) && json_count(ref) > (json_get(ref, "name") != NULL)) {
        json_remove(ref, json_key_at(ref, streq(json_key_at(ref, 0), "name")));
    }
}

void kind_user_identity_mapping_prepare(struct json *obj, const struct json *old)
{
    const char *identity = json_path_string(obj, "identity", "name", NULL);
    keep_name(obj, "identity");
    keep_name(obj, "user");
    if (!old && identity) {
        api_default_string(json_get(obj, "metadata"), "name", identity);
    }
}

void kind_user_identity_mapping_validate(const struct json *obj, const struct json *old,
                                         struct api_causes *c)
{
    const struct json *identity = json_path(obj, "identity", "name", NULL);
    if (!json_string_size(identity)) {
        api_required(c, "identity.name", "");
    } else if (!json_equal(identity, json_path(obj, "metadata", "name", NULL))) {
        api_invalid(c, "identity.name", identity, "must match metadata.name");
    }
    if (!json_string_size(json_path(obj, "user", "name", NULL))) {
        api_required(c, "user.name", "");
    }
}
