/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz: tokens and scopes of clients.  A text is a token exactly when it has a name, which has the
 * form of a token, too.  A scope's parts lie within its text; a list that is joined and split again
 * is the same, covers itself, and is covered by its unions. */
#include "base/mem.h"
#include "oauth/scope.h"
#include "oauth/token.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok) {
        __builtin_trap();
    }
}

static void check_token(const char *text)
{
    char name[OAUTH_TOKEN_TEXT_SIZE];
    bool has_name = oauth_token_name(text, name) == 0;
    must(has_name == oauth_token_has_form(text));
    must(!has_name || (oauth_token_has_form(name) && !streq(name, text)));
}

static void check_scope(const char *text)
{
    struct oauth_scope s;
    int r = oauth_scope_parse(text, &s);
    must((r == 0) == !oauth_check_scope(text));
    if (r == 0 && s.type == OAUTH_SCOPE_ROLE) {
        must(s.role_size && s.namespace_size && s.role + s.role_size + 1 == s.namespace);
        must(s.namespace + s.namespace_size + (s.escalating ? 2 : 0) == text + strlen(text));
        must(!memchr(s.namespace, ':', s.namespace_size));
    }
}

static void check_list(const char *text)
{
    CLEANUP(json_free) struct json *list = oauth_scopes_split(text);
    CLEANUP_FREE char *joined = oauth_scopes_join(list);
    CLEANUP(json_free) struct json *again = oauth_scopes_split(joined);
    CLEANUP(json_free) struct json *twice = oauth_scopes_union(list, again);
    CLEANUP(json_free) struct json *left = oauth_scopes_minus(list, again);
    must(json_equal(list, again));
    must(json_count(twice) == json_count(list) && !json_count(left));
    must(!json_count(list) || (oauth_scopes_cover(twice, list) && oauth_scopes_cover(list, twice)));
    const struct json *item;
    JSON_FOREACH (item, list) {
        check_scope(json_get_string(item));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 4096) {
        return 0;
    }
    CLEANUP_FREE char *text = xstrndup((const char *) data, size);
    check_token(text);
    check_scope(text);
    check_list(text);
    (void) oauth_check_redirect(text);
    (void) oauth_check_client(text);
    return 0;
}
