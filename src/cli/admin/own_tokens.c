/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/admin/own_tokens.h"

#include "base/mem.h"
#include "base/timeutil.h"
#include "cli/kubectl/print.h"
#include "cli/shown.h"
#include "oauth/token.h"

#include <stdio.h>

#define OAUTH_API "oauth.openshift.io/v1"
#define PLURAL "useroauthaccesstokens"
#define COLUMNS 6

/* The name of the object of the session's token; "": it has none. */
static void find_current(const struct session *s, char ret[OAUTH_TOKEN_TEXT_SIZE])
{
    __attribute__((cleanup(kubeconfig_done))) struct kubeconfig k = {0};
    struct err unused = {0};
    ret[0] = '\0';
    if (session_load(s, &k, &unused) == 0 && k.token) {
        (void) oauth_token_name(k.token, ret);
    }
}

static const char *name_of(const struct json *o)
{
    return json_get_text(json_get(o, "metadata"), "name");
}

static int fetch(struct session *s, struct json **ret)
{
    CLEANUP_FREE char *path = api_path(OAUTH_API, PLURAL, NULL, NULL, NULL);
    struct err e = {0};
    return api_request_sync(s->client, "GET", path, NULL, NULL, NULL, ret, &e) < 0
               ? session_fail(s, &e, NULL)
               : 0;
}

/* When the token ends without being used; owned. */
static char *end_of(const struct json *o, const char *created)
{
    int64_t seconds = json_get_int_or(json_get(o, "expiresIn"), 0), ms;
    char text[TIME_TEXT_SIZE];
    if (!seconds) {
        return xstrdup("never");
    }
    if (time_parse(created, &ms) < 0) {
        return xstrdup("<unknown>");
    }
    time_format_s(ms + seconds * 1000, text);
    return xstrdup(text);
}

static char *scopes_text(const struct json *o)
{
    struct strbuf b = STRBUF_INIT;
    const struct json *item;
    JSON_FOREACH (item, json_get(o, "scopes")) {
        strbuf_addf(&b, "%s%s", b.size ? "," : "",
                    json_get_string(item) ? json_get_string(item) : "");
    }
    CLEANUP_FREE char *text = strbuf_steal(&b);
    return shown(text);
}

int own_tokens_list(struct session *s)
{
    static const char *const head[COLUMNS] = {"NAME", "CLIENT", "CREATED", "ENDS", "SCOPES", ""};
    CLEANUP(json_free) struct json *all = NULL;
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    char current[OAUTH_TOKEN_TEXT_SIZE];
    const struct json *item;
    size_t n = 0;
    int status = fetch(s, &all);
    if (status) {
        return status;
    }
    find_current(s, current);
    size_t rows = json_count(json_get(all, "items")) + 1;
    char **cells = xcalloc(rows * COLUMNS, sizeof *cells);
    for (size_t i = 0; i < COLUMNS; i++) {
        cells[n++] = xstrdup(head[i]);
    }
    JSON_FOREACH (item, json_get(all, "items")) {
        const char *created = json_get_text(json_get(item, "metadata"), "creationTimestamp");
        cells[n++] = shown(name_of(item));
        cells[n++] = shown(json_get_text(item, "clientName"));
        cells[n++] = shown(created);
        cells[n++] = end_of(item, created);
        cells[n++] = scopes_text(item);
        cells[n++] = xstrdup(streq(name_of(item), current) ? "(this session)" : "");
    }
    print_columns((const char *const *) cells, COLUMNS, rows, "", &out);
    fwrite(strbuf_cstr(&out), 1, out.size, stdout);
    for (size_t i = 0; i < n; i++) {
        free(cells[i]);
    }
    free(cells);
    return 0;
}

static int revoke_one(struct session *s, const char *name)
{
    CLEANUP_FREE char *path = api_path(OAUTH_API, PLURAL, NULL, name, NULL);
    struct err e = {0};
    if (api_request_sync(s->client, "DELETE", path, NULL, NULL, NULL, NULL, &e) < 0) {
        return session_fail(s, &e, NULL);
    }
    CLEANUP_FREE char *harmless = shown(name);
    printf("token %s revoked\n", harmless);
    return 0;
}

int own_tokens_revoke(struct session *s, int n, char *const *names, bool all)
{
    CLEANUP(json_free) struct json *list = NULL;
    char current[OAUTH_TOKEN_TEXT_SIZE];
    const struct json *item;
    int status = all ? fetch(s, &list) : 0;
    find_current(s, current);
    JSON_FOREACH (item, json_get(list, "items")) {
        if (!streq(name_of(item), current)) {
            status |= revoke_one(s, name_of(item));
        }
    }
    for (int i = 0; i < n; i++) {
        status |= revoke_one(s, names[i]);
    }
    return status;
}
