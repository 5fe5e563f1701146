/* SPDX-License-Identifier: Apache-2.0 */
#include "client/kubeconfig.h"

#include "base/mem.h"
#include "base/str.h"
#include "net/process.h"
#include "wire/yaml.h"

#define KUBECONFIG_MAX_SIZE (1u << 20)
#define TOKEN_MAX_SIZE (64u << 10)

void kubeconfig_done(struct kubeconfig *k)
{
    free(k->server);
    free(k->token);
    free(k->ns);
    *k = (struct kubeconfig){0};
}

/* Owned path of the file to read. */
static char *default_path(void)
{
    const char *env = getenv("KUBECONFIG");
    if (env && *env) {
        return xstrndup(env, strcspn(env, ":"));
    }
    const char *home = getenv("HOME");
    return xasprintf("%s/.kube/config", home ? home : "");
}

/* The value at 'what' of the entry called 'name' in the list 'list' ("clusters", "cluster"). */
static const struct json *entry(const struct json *config, const char *list, const char *what,
                                const char *name)
{
    const struct json *item;
    JSON_FOREACH (item, json_get(config, list)) {
        if (streq_null(json_path_string(item, "name", NULL), name)) {
            return json_get(item, what);
        }
    }
    return NULL;
}

/* The user's token: of "tokenFile", which is relative to the kubeconfig, before "token".  '*ret' NULL: none. */
static int load_token(const struct json *user, const char *config_path, char **ret, struct err *e)
{
    const char *file = json_path_string(user, "tokenFile", NULL);
    const char *token = json_path_string(user, "token", NULL);
    if (!file || !*file) {
        *ret = token && *token ? xstrdup(token) : NULL;
        return 0;
    }
    const char *slash = strrchr(config_path, '/');
    CLEANUP_FREE char *path =
        *file == '/' || !slash
            ? xstrdup(file)
            : xasprintf("%.*s/%s", (int) (slash - config_path), config_path, file);
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    int r = file_read(path, TOKEN_MAX_SIZE, &text, e);
    if (r < 0) {
        return err_prefix(e, "tokenFile");
    }
    while (text.size && strchr("\r\n\t ", text.data[text.size - 1])) {
        text.data[--text.size] = '\0';
    }
    *ret = strbuf_steal(&text);
    return 0;
}

int kubeconfig_load(const char *path, struct kubeconfig *ret, struct err *e)
{
    CLEANUP_FREE char *owned = path ? xstrdup(path) : default_path();
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    CLEANUP(json_free) struct json *config = NULL;
    int r = file_read(owned, KUBECONFIG_MAX_SIZE, &text, e);
    if (r < 0) {
        return err_prefix(e, "kubeconfig");
    }
    r = yaml_parse(text.data ? text.data : "", text.size, &config, e);
    if (r < 0) {
        return err_prefix(e, "kubeconfig %s", owned);
    }
    const char *current = json_path_string(config, "current-context", NULL);
    if (!current || !*current) {
        return err_set(e, -EINVAL, "kubeconfig %s: current-context is not set", owned);
    }
    const struct json *context = entry(config, "contexts", "context", current);
    if (!context) {
        return err_set(e, -EINVAL, "kubeconfig %s: current-context \"%s\" is not in contexts",
                       owned, current);
    }
    const char *cluster = json_path_string(context, "cluster", NULL);
    const char *server = json_path_string(
        entry(config, "clusters", "cluster", cluster ? cluster : ""), "server", NULL);
    if (!server) {
        return err_set(e, -EINVAL, "kubeconfig %s: cluster \"%s\" of context \"%s\" has no server",
                       owned, cluster ? cluster : "", current);
    }
    const char *user = json_path_string(context, "user", NULL);
    char *token;
    r = load_token(entry(config, "users", "user", user ? user : ""), owned, &token, e);
    if (r < 0) {
        return err_prefix(e, "kubeconfig %s", owned);
    }
    const char *ns = json_path_string(context, "namespace", NULL);
    *ret = (struct kubeconfig){
        .server = xstrdup(server), .token = token, .ns = ns && *ns ? xstrdup(ns) : NULL};
    return 0;
}
