/* SPDX-License-Identifier: Apache-2.0 */
#include "client/kubeconfig.h"

#include "base/base64.h"
#include "base/mem.h"
#include "base/str.h"
#include "client/kubeconfig_edit.h"
#include "net/loop/process.h"
#include "wire/yaml.h"

#define KUBECONFIG_MAX_SIZE (1u << 20)
#define TOKEN_MAX_SIZE (64u << 10)
#define PEM_MAX_SIZE (1u << 20)

void kubeconfig_done(struct kubeconfig *k)
{
    free(k->server);
    free(k->context);
    free(k->token);
    free(k->ns);
    free(k->ca);
    free(k->cert);
    if (k->key) {
        explicit_bzero(k->key, strlen(k->key));
    }
    free(k->key);
    free(k->server_name);
    free(k->more_servers);
    *k = (struct kubeconfig){0};
}

/* Owned path of 'file', which is relative to the kubeconfig. */
static char *beside(const char *config_path, const char *file)
{
    const char *slash = strrchr(config_path, '/');
    return *file == '/' || !slash
               ? xstrdup(file)
               : xasprintf("%.*s/%s", (int) (slash - config_path), config_path, file);
}

/* The value of 'key' if it is present and not empty. */
static const char *text_of(const struct json *v, const char *key)
{
    const char *s = json_path_string(v, key, NULL);
    return s && *s ? s : NULL;
}

/* A certificate or key: of "KEY-data", or of the file that "KEY" names.  '*ret' NULL: neither. */
static int load_pem(const struct json *from, const char *key, const char *config_path, char **ret,
                    struct err *e)
{
    CLEANUP_FREE char *data_key = xasprintf("%s-data", key);
    const char *data = text_of(from, data_key), *file = text_of(from, key);
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT_MAX(PEM_MAX_SIZE);
    if (data) {
        if (base64_decode(data, strlen(data), &text) < 0) {
            return err_set(e, -EINVAL, "%s: not base64", data_key);
        }
        key = data_key;
    } else if (file) {
        CLEANUP_FREE char *path = beside(config_path, file);
        int r = file_read(path, PEM_MAX_SIZE, &text, e);
        if (r < 0) {
            return err_prefix(e, "%s", key), r;
        }
    } else {
        *ret = NULL;
        return 0;
    }
    if (strlen(strbuf_cstr(&text)) != text.size) {
        return err_set(e, -EINVAL, "%s: not in PEM form", key);
    }
    *ret = strbuf_steal(&text);
    return 0;
}

/* Reads everything that TLS needs into 'k', which the caller also frees on failure. */
static int load_tls(const struct json *cluster, const struct json *user, const char *config_path,
                    struct kubeconfig *k, struct err *e)
{
    const struct json *insecure = json_get(cluster, "insecure-skip-tls-verify");
    const char *name = text_of(cluster, "tls-server-name");
    int r = load_pem(cluster, "certificate-authority", config_path, &k->ca, e);
    if (r < 0 || (r = load_pem(user, "client-certificate", config_path, &k->cert, e)) < 0 ||
        (r = load_pem(user, "client-key", config_path, &k->key, e)) < 0) {
        return r;
    }
    k->insecure = json_get_bool(insecure, false);
    k->server_name = name ? xstrdup(name) : NULL;
    if (k->insecure && k->ca) {
        return err_set(e, -EINVAL,
                       "insecure-skip-tls-verify cannot be given beside certificate-authority");
    }
    if (!k->cert != !k->key) {
        return err_set(e, -EINVAL, "%s is given, but not %s",
                       k->cert ? "client-certificate" : "client-key",
                       k->cert ? "client-key" : "client-certificate");
    }
    return 0;
}

/* The user's token: of "tokenFile", which is relative to the kubeconfig, before
 * "token".  '*ret' NULL: none. */
static int load_token(const struct json *user, const char *config_path, char **ret, struct err *e)
{
    const char *file = json_path_string(user, "tokenFile", NULL);
    const char *token = json_path_string(user, "token", NULL);
    if (!file || !*file) {
        *ret = token && *token ? xstrdup(token) : NULL;
        return 0;
    }
    CLEANUP_FREE char *path = beside(config_path, file);
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

int kubeconfig_trust_of(const struct json *cluster, const char *path, struct kubeconfig *ret,
                        struct err *e)
{
    __attribute__((cleanup(kubeconfig_done))) struct kubeconfig k = {0};
    int r = load_tls(cluster, NULL, path, &k, e);
    if (r < 0) {
        return err_prefix(e, "kubeconfig %s", path), r;
    }
    *ret = k;
    k = (struct kubeconfig){0};
    return 0;
}

int kubeconfig_of_context(const struct json *config, const char *path, const char *name,
                          struct kubeconfig *ret, struct err *e)
{
    const char *current = name ? name : json_path_string(config, "current-context", NULL);
    if (!current || !*current) {
        return err_set(e, -EINVAL, "kubeconfig %s: current-context is not set", path);
    }
    const struct json *context = kubeconfig_entry(config, "contexts", "context", current);
    if (!context) {
        return err_set(e, -EINVAL, "kubeconfig %s: %s\"%s\" is not in contexts", path,
                       name ? "context " : "current-context ", current);
    }
    const char *cluster_name = json_get_text(context, "cluster");
    const struct json *cluster = kubeconfig_entry(config, "clusters", "cluster", cluster_name);
    const char *server = json_path_string(cluster, "server", NULL);
    if (!server) {
        return err_set(e, -EINVAL, "kubeconfig %s: cluster \"%s\" of context \"%s\" has no server",
                       path, cluster_name, current);
    }
    const struct json *user =
        kubeconfig_entry(config, "users", "user", json_get_text(context, "user"));
    __attribute__((cleanup(kubeconfig_done))) struct kubeconfig k = {.server = xstrdup(server),
                                                                     .context = xstrdup(current)};
    int r = load_token(user, path, &k.token, e);
    if (r < 0 || (r = load_tls(cluster, user, path, &k, e)) < 0) {
        return err_prefix(e, "kubeconfig %s", path), r;
    }
    const char *ns = text_of(context, "namespace");
    k.ns = ns ? xstrdup(ns) : NULL;
    *ret = k;
    k = (struct kubeconfig){0};
    return 0;
}

int kubeconfig_load(const char *path, struct kubeconfig *ret, struct err *e)
{
    CLEANUP_FREE char *owned = kubeconfig_path(path);
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
    return kubeconfig_of_context(config, owned, NULL, ret, e);
}

/* [{name: NAME, KEY: VALUE}] */
static struct json *list_of_one(const char *name, const char *key, struct json *value)
{
    struct json *list = json_array();
    struct json *item = json_append(list, json_object());
    json_set_string(item, "name", name);
    json_set(item, key, value);
    return list;
}

int kubeconfig_write(const char *path, const char *user, const struct kubeconfig *k, struct err *e)
{
    static const char name[] = "tenet";
    struct json *cluster = json_object();
    struct json *who = json_object(), *context = json_object();
    json_set_string(cluster, "server", k->server);
    kubeconfig_set_pem(cluster, "certificate-authority-data", k->ca);
    if (k->server_name) {
        json_set_string(cluster, "tls-server-name", k->server_name);
    }
    if (k->insecure) {
        json_set_bool(cluster, "insecure-skip-tls-verify", true);
    }
    kubeconfig_set_pem(who, "client-certificate-data", k->cert);
    kubeconfig_set_pem(who, "client-key-data", k->key);
    if (k->token) {
        json_set_string(who, "token", k->token);
    }
    json_set_string(context, "cluster", name);
    json_set_string(context, "user", user);
    if (k->ns) {
        json_set_string(context, "namespace", k->ns);
    }
    CLEANUP(json_free) struct json *config = json_object();
    json_set_string(config, "apiVersion", "v1");
    json_set_string(config, "kind", "Config");
    json_set(config, "clusters", list_of_one(name, "cluster", cluster));
    json_set(config, "users", list_of_one(user, "user", who));
    json_set(config, "contexts", list_of_one(name, "context", context));
    json_set_string(config, "current-context", name);
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    yaml_write(config, &text);
    return file_write_atomic(path, strbuf_cstr(&text), text.size, 0600, e);
}

/* ---- the account of a pod ---- */

#define ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

static int read_line(const char *path, char **ret, struct err *e)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    int r = file_read(path, TOKEN_MAX_SIZE, &text, e);
    if (r == 0) {
        *ret = xstrndup(strbuf_cstr(&text), strcspn(strbuf_cstr(&text), "\r\n"));
    }
    return r;
}

int kubeconfig_of_pod(struct kubeconfig *ret, struct err *e)
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
    struct kubeconfig k = {0};
    CLEANUP_STRBUF struct strbuf ca = STRBUF_INIT;
    if (!host || !*host || !port || !*port) {
        return err_set(
            e, -ENOENT,
            "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined: this is "
            "no pod; give a kubeconfig");
    }
    int r = read_line(ACCOUNT_DIR "/token", &k.token, e);
    if (r == 0) {
        r = read_line(ACCOUNT_DIR "/namespace", &k.ns, e);
    }
    if (r == 0) {
        r = file_read(ACCOUNT_DIR "/ca.crt", PEM_MAX_SIZE, &ca, e);
    }
    if (r < 0) {
        kubeconfig_done(&k);
        return r;
    }
    k.ca = strbuf_steal(&ca);
    k.server = xasprintf(strchr(host, ':') ? "https://[%s]:%s" : "https://%s:%s", host, port);
    *ret = k;
    return 0;
}
