/* SPDX-License-Identifier: Apache-2.0 */
#include "oauth/scope.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>

static bool has(const struct json *scopes, const char *s, size_t n)
{
    const struct json *item;
    JSON_FOREACH (item, scopes) {
        const char *text = json_get_string(item);
        if (text && strlen(text) == n && memcmp(text, s, n) == 0) {
            return true;
        }
    }
    return false;
}

struct json *oauth_scopes_split(const char *text)
{
    struct json *list = json_array();
    while (text && *text) {
        size_t n = strcspn(text, " ");
        if (n && !has(list, text, n)) {
            CLEANUP_FREE char *scope = xstrndup(text, n);
            json_append(list, json_string(scope));
        }
        text += n + (text[n] == ' ');
    }
    return list;
}

char *oauth_scopes_join(const struct json *scopes)
{
    struct strbuf b = STRBUF_INIT;
    const struct json *item;
    JSON_FOREACH (item, scopes) {
        const char *text = json_get_string(item);
        strbuf_addf(&b, "%s%s", b.size && text ? " " : "", text ? text : "");
    }
    return strbuf_steal(&b);
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}

struct json *oauth_scopes_union(const struct json *a, const struct json *b)
{
    const struct json *lists[] = {a, b}, *item;
    CLEANUP_FREE const char **at = xcalloc(json_count(a) + json_count(b) + 1, sizeof *at);
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        JSON_FOREACH (item, lists[i]) {
            if (json_get_string(item)) {
                at[n++] = json_get_string(item);
            }
        }
    }
    qsort(at, n, sizeof *at, compare);
    struct json *list = json_array();
    for (size_t i = 0; i < n; i++) {
        if (!i || !streq(at[i], at[i - 1])) {
            json_append(list, json_string(at[i]));
        }
    }
    return list;
}

static bool covers(const struct json *scopes, const char *scope)
{
    return has(scopes, OAUTH_SCOPE_FULL_TEXT, sizeof OAUTH_SCOPE_FULL_TEXT - 1) ||
           has(scopes, scope, strlen(scope));
}

struct json *oauth_scopes_minus(const struct json *a, const struct json *b)
{
    struct json *list = json_array();
    const struct json *item;
    JSON_FOREACH (item, a) {
        const char *text = json_get_string(item);
        if (text && !covers(b, text)) {
            json_append(list, json_string(text));
        }
    }
    return list;
}

bool oauth_scopes_cover(const struct json *has_scopes, const struct json *wanted)
{
    const struct json *item;
    JSON_FOREACH (item, wanted) {
        const char *text = json_get_string(item);
        if (!text || !covers(has_scopes, text)) {
            return false;
        }
    }
    return json_count(wanted) > 0 || covers(has_scopes, OAUTH_SCOPE_FULL_TEXT);
}
