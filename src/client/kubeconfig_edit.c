/* SPDX-License-Identifier: Apache-2.0 */
#include "client/kubeconfig_edit.h"

#include "base/base64.h"
#include "base/mem.h"
#include "net/loop/process.h"
#include "wire/yaml.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAX_SIZE (1u << 20)
#define LOCK_STEP_NS 20000000L
#define LOCK_STEPS 250

char *kubeconfig_path(const char *option)
{
    const char *env = getenv("KUBECONFIG"), *home = getenv("HOME");
    if (option) {
        return xstrdup(option);
    }
    if (env && *env) {
        return xstrndup(env, strcspn(env, ":"));
    }
    return xasprintf("%s/.kube/config", home ? home : "");
}

int kubeconfig_read(const char *path, struct json **ret, struct err *e)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    CLEANUP(json_free) struct json *config = NULL;
    int r = file_read(path, MAX_SIZE, &text, e);
    if (r < 0 && r != -ENOENT) {
        return err_prefix(e, "kubeconfig"), r;
    }
    r = yaml_parse(strbuf_cstr(&text), text.size, &config, e);
    if (r < 0) {
        return err_prefix(e, "kubeconfig %s", path), r;
    }
    if (!json_is(config, JSON_OBJECT)) {
        return err_set(e, -EINVAL, "kubeconfig %s: is not an object", path);
    }
    *ret = TAKE(config);
    return 0;
}

/* ---- changes ---- */

/* The file that is replaced, owned: a symbolic link is followed. */
static char *real_file(const char *path)
{
    char *real = realpath(path, NULL);
    return real ? real : xstrdup(path);
}

static int make_folder(const char *path, struct err *e)
{
    const char *slash = strrchr(path, '/');
    CLEANUP_FREE char *folder =
        slash && slash != path ? xstrndup(path, (size_t) (slash - path)) : NULL;
    struct stat st;
    return !folder || stat(folder, &st) == 0 ? 0 : dir_make(folder, 0700, e);
}

/* Takes kubectl's lock: a file that one program alone can make. */
static int lock_take(const char *lock, struct err *e)
{
    for (int i = 0; i < LOCK_STEPS; i++) {
        int fd = open(lock, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
        if (fd >= 0) {
            fd_close(fd);
            return 0;
        }
        if (errno != EEXIST) {
            return err_sys(e, -errno, "make %s", lock);
        }
        nanosleep(&(struct timespec){.tv_nsec = LOCK_STEP_NS}, NULL);
    }
    return err_set(e, -EBUSY,
                   "%s is there: another program changes the kubeconfig, or one ended before it "
                   "removed the file; in that case remove it",
                   lock);
}

int kubeconfig_change(const char *path, kubeconfig_change_fn *fn, void *ctx, struct err *e)
{
    CLEANUP_FREE char *file = real_file(path);
    CLEANUP_FREE char *lock = xasprintf("%s.lock", file);
    CLEANUP(json_free) struct json *config = NULL;
    int r = make_folder(file, e);
    if (r < 0 || (r = lock_take(lock, e)) < 0) {
        return r;
    }
    if ((r = kubeconfig_read(file, &config, e)) == 0 && (r = fn(ctx, config, e)) == 0) {
        CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
        yaml_write(config, &text);
        r = file_write_atomic(file, strbuf_cstr(&text), text.size, 0600, e);
        explicit_bzero(text.data, text.size);
    }
    unlink(lock);
    return r;
}

/* ---- entries ---- */

/* The position of an entry; -ENOENT: there is none. */
static int find(const struct json *config, const char *list, const char *name, size_t *ret)
{
    const struct json *entries = json_get(config, list);
    for (size_t i = 0; i < json_count(entries); i++) {
        if (streq_null(json_get_string(json_get(json_at(entries, i), "name")), name)) {
            *ret = i;
            return 0;
        }
    }
    return -ENOENT;
}

struct json *kubeconfig_entry(const struct json *config, const char *list, const char *what,
                              const char *name)
{
    size_t i;
    return name && find(config, list, name, &i) == 0
               ? json_get(json_at(json_get(config, list), i), what)
               : NULL;
}

struct json *kubeconfig_ensure_entry(struct json *config, const char *list, const char *what,
                                     const char *name)
{
    size_t i;
    struct json *entries = json_ensure_array(config, list), *entry;
    if (find(config, list, name, &i) == 0) {
        return json_ensure_object(json_at(entries, i), what);
    }
    entry = json_append(entries, json_object());
    json_set_string(entry, "name", name);
    return json_ensure_object(entry, what);
}

void kubeconfig_set_entry(struct json *config, const char *list, const char *what, const char *name,
                          struct json *value)
{
    size_t i;
    (void) kubeconfig_ensure_entry(config, list, what, name);
    if (find(config, list, name, &i) == 0) {
        json_set(json_at(json_get(config, list), i), what, value);
    }
}

bool kubeconfig_remove_entry(struct json *config, const char *list, const char *name)
{
    size_t i;
    return find(config, list, name, &i) == 0 && json_remove_at(json_get(config, list), i);
}

/* ---- logins ---- */

char *kubeconfig_cluster_name(const char *server)
{
    const char *host = strstr(server, "://");
    host = host ? host + 3 : server;
    size_t size = strcspn(host, "/");
    bool https = str_has_prefix(server, "https:");
    char *name = memchr(host, ':', size)
                     ? xstrndup(host, size)
                     : xasprintf("%.*s:%s", (int) size, host, https ? "443" : "80");
    for (char *p = name; *p; p++) {
        *p = *p == '.' ? '-' : *p;
    }
    return name;
}

char *kubeconfig_context_name(const char *ns, const char *cluster, const char *user)
{
    CLEANUP_FREE char *end = xasprintf("/%s", cluster);
    size_t size = strlen(user) - (str_has_suffix(user, end) ? strlen(end) : 0);
    return xasprintf("%s/%s/%.*s", ns ? ns : "", cluster, (int) size, user);
}

void kubeconfig_set_pem(struct json *to, const char *key, const char *pem)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    if (pem) {
        base64_encode(pem, strlen(pem), &b);
        json_set_string(to, key, strbuf_cstr(&b));
    }
}

static void clear(struct json *obj)
{
    while (json_count(obj)) {
        json_remove_at(obj, json_count(obj) - 1);
    }
}

void kubeconfig_set_login(struct json *config, const char *user, const struct kubeconfig *k)
{
    CLEANUP_FREE char *cluster_name = kubeconfig_cluster_name(k->server);
    CLEANUP_FREE char *user_name = xasprintf("%s/%s", user, cluster_name);
    CLEANUP_FREE char *name = kubeconfig_context_name(k->ns, cluster_name, user_name);
    struct json *o;
    json_set_string(config, "apiVersion", "v1");
    json_set_string(config, "kind", "Config");
    o = kubeconfig_ensure_entry(config, "clusters", "cluster", cluster_name);
    clear(o);
    json_set_string(o, "server", k->server);
    kubeconfig_set_pem(o, "certificate-authority-data", k->ca);
    json_set_string(o, "tls-server-name", k->server_name);
    if (k->insecure) {
        json_set_bool(o, "insecure-skip-tls-verify", true);
    }
    o = kubeconfig_ensure_entry(config, "users", "user", user_name);
    clear(o);
    json_set_string(o, "token", k->token);
    kubeconfig_set_pem(o, "client-certificate-data", k->cert);
    kubeconfig_set_pem(o, "client-key-data", k->key);
    o = kubeconfig_ensure_entry(config, "contexts", "context", name);
    clear(o);
    json_set_string(o, "cluster", cluster_name);
    json_set_string(o, "namespace", k->ns);
    json_set_string(o, "user", user_name);
    json_set_string(config, "current-context", name);
}
