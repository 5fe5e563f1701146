/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/volumes/network_mount.h"

#include "base/mem.h"
#include "kubelet/mount_option.h"
#include "net/loop/process.h"

#include <arpa/inet.h>

#define TIMEOUT_MS 120000
#define SOURCE_MAX 1024
#define SERVERS_MAX 64

void network_mount_done(struct network_mount *m)
{
    free(m->source);
    free(m->options);
    *m = (struct network_mount){0};
}

int mount_options_join(bool readonly, const struct json *options, char **ret, struct err *e)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const struct json *o;
    strbuf_adds(&b, readonly ? "ro" : "rw");
    JSON_FOREACH (o, options) {
        const char *text = json_get_string(o);
        int r = text ? mount_option_check(text, e)
                     : err_set(e, -EINVAL, "a mount option is not a string");
        if (r < 0) {
            return r;
        }
        strbuf_addf(&b, ",%s", text);
    }
    *ret = strbuf_steal(&b);
    return 0;
}

/* Whether the text can be the name or address of a server. */
static bool is_server(const char *s)
{
    size_t n = strlen(s);
    return n > 0 && n <= 253 && *s != '-' &&
           strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]") == n;
}

/* Whether the text can be a path on a server: no control characters, which mount(8) logs. */
static bool is_path(const char *s)
{
    for (size_t i = 0; s[i]; i++) {
        if ((unsigned char) s[i] < ' ' || s[i] == 0x7f || i >= SOURCE_MAX) {
            return false;
        }
    }
    return *s;
}

int nfs_mount_make(const struct json *source, const struct json *options, bool readonly,
                   struct network_mount *ret, struct err *e)
{
    const char *server = json_get_text(source, "server"), *path = json_get_text(source, "path");
    char *joined;
    if (!is_server(server) || *path != '/' || !is_path(path)) {
        return err_set(e, -EINVAL, "nfs: invalid server %.128s or path %.128s", server, path);
    }
    readonly = readonly || json_get_bool(json_get(source, "readOnly"), false);
    int r = mount_options_join(readonly, options, &joined, e);
    if (r < 0) {
        return err_prefix(e, "nfs");
    }
    bool is_v6 = strchr(server, ':') && *server != '[';
    *ret = (struct network_mount){.source = xasprintf(is_v6 ? "[%s]:%s" : "%s:%s", server, path),
                                  .options = joined,
                                  .fs_type = "nfs"};
    return 0;
}

int glusterfs_mount_make(const struct json *source, const struct json *endpoints,
                         const struct json *options, bool readonly, struct network_mount *ret,
                         struct err *e)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    CLEANUP_FREE char *joined = NULL;
    const char *path = json_get_text(source, "path"), *first = NULL;
    const struct json *subset, *address;
    size_t n = 0;
    if (!is_path(path) || strchr(path, ':')) {
        return err_set(e, -EINVAL, "glusterfs: invalid path %.128s", path);
    }
    readonly = readonly || json_get_bool(json_get(source, "readOnly"), false);
    int r = mount_options_join(readonly, options, &joined, e);
    if (r < 0) {
        return err_prefix(e, "glusterfs");
    }
    strbuf_adds(&b, joined);
    JSON_FOREACH (subset, json_get(endpoints, "subsets")) {
        JSON_FOREACH (address, json_get(subset, "addresses")) {
            const char *ip = json_get_text(address, "ip");
            struct in6_addr any;
            if (n >= SERVERS_MAX ||
                (inet_pton(AF_INET, ip, &any) != 1 && inet_pton(AF_INET6, ip, &any) != 1)) {
                continue;
            }
            if (first) {
                strbuf_addf(&b, "%s%s", n == 1 ? ",backup-volfile-servers=" : ":", ip);
            } else {
                first = ip;
            }
            n++;
        }
    }
    if (!first) {
        return err_set(e, -EAGAIN, "glusterfs: the endpoints %.128s have no address",
                       json_get_text(source, "endpoints"));
    }
    while (*path == '/') {
        path++;
    }
    *ret = (struct network_mount){.source = xasprintf("%s:/%s", first, path),
                                  .options = strbuf_steal(&b),
                                  .fs_type = "glusterfs"};
    return 0;
}

int network_mount_run(const struct network_mount *m, const char *at, struct err *e)
{
    CLEANUP_STRBUF struct strbuf output = STRBUF_INIT_MAX(1 << 20);
    const char *argv[] = {"mount", "-t", m->fs_type, "-o", m->options, "--", m->source, at, NULL};
    struct process_spec spec = PROCESS_SPEC_INIT;
    int status = 0;
    spec.argv = argv;
    int r = process_run(&spec, TIMEOUT_MS, NULL, &output, &status, e);
    if (r == 0 && status != 0) {
        const char *text = strbuf_cstr(&output);
        r = err_set(e, -EIO, "mount %s: %.*s", m->source, (int) strcspn(text, "\n"),
                    *text ? text : "mount(8) failed; is the helper of the file system installed?");
    }
    return r;
}
