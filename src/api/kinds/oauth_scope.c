/* SPDX-License-Identifier: Apache-2.0 */
#include "api/kinds/oauth.h"

#include "base/str.h"

#include <errno.h>

#define ROLE "role:"
#define ESCALATING ":!"

static const struct {
    const char *text;
    enum oauth_scope_type type;
} user_scopes[] = {
    {"user:info", OAUTH_SCOPE_INFO},
    {"user:check-access", OAUTH_SCOPE_CHECK_ACCESS},
    {"user:list-scoped-projects", OAUTH_SCOPE_LIST_SCOPED_PROJECTS},
    {"user:list-projects", OAUTH_SCOPE_LIST_PROJECTS},
    {"user:full", OAUTH_SCOPE_FULL},
};

/* RFC 6749, 3.3: printable characters of ASCII but the blank, the quote and the backslash. */
static bool has_legal_characters(const char *s)
{
    for (; *s; s++) {
        unsigned char c = (unsigned char) *s;
        if (c < 0x21 || c > 0x7e || c == '"' || c == '\\') {
            return false;
        }
    }
    return true;
}

static int parse_role(const char *s, struct oauth_scope *ret)
{
    size_t size = strlen(s);
    bool escalating = str_has_suffix(s, ESCALATING);
    size -= escalating ? sizeof ESCALATING - 1 : 0;
    size_t colon = size;
    while (colon && s[colon - 1] != ':') {
        colon--;
    }
    /* 'colon' is where the namespace begins; before it are one character of the role, and ":". */
    if (colon < 2 || colon == size) {
        return -EINVAL;
    }
    *ret = (struct oauth_scope){.type = OAUTH_SCOPE_ROLE,
                                .role = s,
                                .role_size = colon - 1,
                                .namespace = s + colon,
                                .namespace_size = size - colon,
                                .escalating = escalating};
    return 0;
}

int oauth_scope_parse(const char *s, struct oauth_scope *ret)
{
    if (!has_legal_characters(s)) {
        return -EINVAL;
    }
    for (size_t i = 0; i < ARRAY_SIZE(user_scopes); i++) {
        if (streq(s, user_scopes[i].text)) {
            *ret = (struct oauth_scope){.type = user_scopes[i].type};
            return 0;
        }
    }
    return str_has_prefix(s, ROLE) ? parse_role(s + sizeof ROLE - 1, ret) : -EINVAL;
}

const char *oauth_check_scope(const char *s)
{
    struct oauth_scope scope;
    if (!has_legal_characters(s)) {
        return "may contain only printable characters of ASCII, without blanks, \" and \\";
    }
    return oauth_scope_parse(s, &scope) < 0
               ? "must be user:info, user:check-access, user:list-scoped-projects, "
                 "user:list-projects, user:full, or role:ROLE:NAMESPACE with an optional :!"
               : NULL;
}
