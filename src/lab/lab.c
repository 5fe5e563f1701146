/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/lab.h"

#include "base/mem.h"
#include "base/timeutil.h"
#include "lab/lab_internal.h"
#include "net/kernel/netns.h"

#include <dirent.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONFIG_MAX 65536
#define LOCK_TIMEOUT_MS 60000
#define POLL_MS 10

static bool is_lower_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

int lab_new(const char *name, lab_progress_fn *progress, void *ctx, struct lab **ret, struct err *e)
{
    size_t n = strlen(name);
    bool ok = n > 0 && n <= LAB_NAME_MAX;
    for (const char *p = name; *p; p++) {
        ok = ok && is_lower_or_digit(*p);
    }
    if (!ok) {
        return err_set(e, -EINVAL,
                       "\"%s\" is not a name for a lab: 1 to %d lower-case letters and digits",
                       name, LAB_NAME_MAX);
    }
    struct lab *l = NEW(struct lab);
    l->name = xstrdup(name);
    l->dir = xasprintf("%s/%s", LAB_ROOT, name);
    l->progress = progress;
    l->progress_ctx = ctx;
    l->lock = -1;
    *ret = l;
    return 0;
}

struct lab *lab_free(struct lab *l)
{
    if (l) {
        api_client_free(l->api);
        loop_free(l->loop);
        json_free(l->config);
        fd_close(l->lock);
        free(l->name);
        free(l->dir);
        free(l);
    }
    return NULL;
}

void lab_say(struct lab *l, const char *fmt, ...)
{
    char line[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    if (l->progress) {
        l->progress(l->progress_ctx, line);
    }
}

/* ---- names and paths ---- */

char *lab_ns(const struct lab *l, const char *host)
{
    return xasprintf("tenet-%s-%s", l->name, host);
}

char *lab_pod_ns(const struct lab *l, const char *project, const char *name)
{
    /* A project has no dot in its name: with a dash "a-b" of "c" would equal "b-c" of "a". */
    return xasprintf("tenet-%s-pod-%s.%s", l->name, project, name);
}

char *lab_path(const struct lab *l, const char *fmt, ...)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    va_list ap;
    strbuf_addf(&b, "%s/", l->dir);
    va_start(ap, fmt);
    strbuf_vaddf(&b, fmt, ap);
    va_end(ap);
    return strbuf_steal(&b);
}

int lab_write(const struct lab *l, const char *text, struct err *e, const char *fmt, ...)
{
    CLEANUP_STRBUF struct strbuf path = STRBUF_INIT;
    va_list ap;
    strbuf_addf(&path, "%s/", l->dir);
    va_start(ap, fmt);
    strbuf_vaddf(&path, fmt, ap);
    va_end(ap);
    return file_write_atomic(path.data, text, strlen(text), 0644, e);
}

int lab_check_host_name(const char *name, struct err *e)
{
    size_t n = strlen(name);
    bool ok =
        n > 0 && n < IF_NAMESIZE && is_lower_or_digit(name[0]) && is_lower_or_digit(name[n - 1]);
    for (const char *p = name; *p; p++) {
        ok = ok && (is_lower_or_digit(*p) || *p == '-');
    }
    if (!ok) {
        return err_set(e, -EINVAL,
                       "\"%s\" is not a name for a node: 1 to %d lower-case letters, digits and "
                       "dashes between them",
                       name, IF_NAMESIZE - 1);
    }
    if (streq(name, "wire") || streq(name, "master") || streq(name, "outside") ||
        str_has_prefix(name, "pod-")) {
        return err_set(e, -EINVAL, "a node cannot be named \"%s\": the lab itself uses that name",
                       name);
    }
    return 0;
}

/* Adds the names in 'dir' that begin with 'prefix' and are not in the list yet. */
static void add_names(struct json *list, const char *dir, const char *prefix)
{
    DIR *d = opendir(dir);
    struct dirent *ent;
    while (d && (ent = readdir(d))) {
        bool known = !str_has_prefix(ent->d_name, prefix);
        const struct json *name;
        JSON_FOREACH (name, list) {
            known = known || streq(json_get_string(name), ent->d_name);
        }
        if (!known) {
            json_append(list, json_string(ent->d_name));
        }
    }
    if (d) {
        closedir(d);
    }
}

struct json *lab_namespaces(const struct lab *l)
{
    struct json *list = json_array();
    CLEANUP_FREE char *prefix = lab_ns(l, "");
    add_names(list, NETNS_DIR, prefix);
    add_names(list, NETNS_ETC,
              prefix); /* A file outlives its namespace when a removal was interrupted. */
    return list;
}

int lab_netns_delete(const char *ns, struct err *e)
{
    CLEANUP_FREE char *etc = xasprintf("%s/%s", NETNS_ETC, ns);
    int r = netns_delete(ns, e);
    return r < 0 ? r : dir_remove(etc, e);
}

/* ---- configuration and lock ---- */

bool lab_is_locked(const struct lab *l)
{
    CLEANUP(fd_close) int fd = open(l->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

/* Appends " (there is: a, b)" with the labs of this machine, if there are any. */
static void add_others(struct strbuf *out)
{
    DIR *d = opendir(LAB_ROOT);
    struct dirent *ent;
    const char *before = " (there is: ";
    while (d && (ent = readdir(d))) {
        if (ent->d_name[0] != '.') {
            strbuf_addf(out, "%s%s", before, ent->d_name);
            before = ", ";
        }
    }
    strbuf_adds(out, *before == ',' ? ")" : "");
    if (d) {
        closedir(d);
    }
}

/* All values that later code reads without a check are present. */
static bool is_of_this_version(const struct json *config)
{
    return json_count(json_get(config, "ports")) && json_path_string(config, "plugin", NULL) &&
           json_path_string(config, "datapath", NULL) &&
           json_path_string(config, "datapathType", NULL);
}

int lab_load(struct lab *l, struct err *e)
{
    if (l->config) {
        return 0;
    }
    CLEANUP_FREE char *path = lab_path(l, "lab.json");
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    int r = file_read(path, CONFIG_MAX, &text, e);
    if (r == 0) {
        CLEANUP(json_free) struct json *config = NULL;
        if (json_parse(text.data, text.size, &config, e) < 0) {
            return err_prefix(e, "%s", path);
        }
        if (!is_of_this_version(config)) {
            return err_set(
                e, -EPROTO,
                "lab %s was made by another version of tenet; remove it with \"tenet lab "
                "--name %s down\" and make it anew",
                l->name, l->name);
        }
        l->config = TAKE(config);
        return 0;
    }
    if (r != -ENOENT) {
        return r;
    }
    CLEANUP(json_free) struct json *left = lab_namespaces(l);
    if (json_count(left) || access(l->dir, F_OK) == 0) {
        return lab_is_locked(l)
                   ? err_set(e, -ENOENT, "lab %s is just being made or removed", l->name)
                   : err_set(e, -ENOENT,
                             "lab %s is half there, its start was broken off; remove it with "
                             "\"tenet lab --name %s down\"",
                             l->name, l->name);
    }
    CLEANUP_STRBUF struct strbuf others = STRBUF_INIT;
    add_others(&others);
    return err_set(e, -ENOENT, "lab %s does not exist; \"tenet lab --name %s up\" makes it%s",
                   l->name, l->name, strbuf_cstr(&others));
}

int lab_lock(struct lab *l, struct err *e)
{
    bool said = false;
    uint64_t end = time_mono_ms() + LOCK_TIMEOUT_MS;
    for (;;) {
        CLEANUP(fd_close) int fd = open(l->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0) {
            return err_sys(e, -errno, "open %s", l->dir);
        }
        struct stat st;
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
            if (fstat(fd, &st) == 0 && st.st_nlink == 0) {
                return err_set(e, -ENOENT, "lab %s has just been removed", l->name);
            }
            l->lock = fd_take(&fd);
            return 0;
        }
        if (errno != EWOULDBLOCK && errno != EINTR) {
            return err_sys(e, -errno, "lock %s", l->dir);
        }
        if (time_mono_ms() >= end) {
            return err_set(e, -EBUSY, "another command is working on lab %s", l->name);
        }
        if (!said) {
            lab_say(l, "waiting for another command that works on lab %s", l->name);
            said = true;
        }
        poll(NULL, 0, POLL_MS);
    }
}

int lab_wait(int (*cond)(void *ctx), void *ctx, uint64_t timeout_ms)
{
    uint64_t end = time_mono_ms() + timeout_ms;
    for (;;) {
        int r = cond(ctx);
        if (r) {
            return r < 0 ? r : 0;
        }
        if (time_mono_ms() >= end) {
            return -ETIMEDOUT;
        }
        poll(NULL, 0, POLL_MS);
    }
}
