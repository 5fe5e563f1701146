/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/volumes/atomic_writer.h"

#include "base/map.h"
#include "base/mem.h"
#include "kubelet/volumes/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define DATA "..data"
#define DATA_NEW "..data_tmp"
#define DIR_MODE 0755
#define GROUP_FILE 0440
#define GROUP_DIR (S_ISGID | 0550)

struct writer {
    int dir_fd;
    const struct pod_files *files;
    struct atomic_owner owner;
    struct smap first; /* The first components of all paths. */
};

static char *first_component(const char *path)
{
    return xstrndup(path, strcspn(path, "/"));
}

/* The target of a link; NULL: it is no link. */
static char *link_target(int dir_fd, const char *name)
{
    char text[PATH_MAX];
    ssize_t n = readlinkat(dir_fd, name, text, sizeof text);
    return n < 0 || (size_t) n == sizeof text ? NULL : xstrndup(text, (size_t) n);
}

/* ---- comparison ---- */

/* Opens a path below the directory, of which no component may be a link or a mount. */
static int open_plain(int dir_fd, const char *path)
{
    struct open_how how = {.flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                           .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH | RESOLVE_NO_XDEV};
    return (int) syscall(SYS_openat2, dir_fd, path, &how, sizeof how);
}

static uint32_t wanted_mode(const struct writer *w, const struct pod_file *f)
{
    return f->mode | (w->owner.has_group ? GROUP_FILE : 0);
}

static bool has_bytes(int fd, const struct blob *data)
{
    char chunk[8192];
    size_t at = 0;
    ssize_t n;
    while ((n = read(fd, chunk, sizeof chunk)) > 0) {
        if ((size_t) n > data->size - at || memcmp(chunk, data->data + at, (size_t) n) != 0) {
            return false;
        }
        at += (size_t) n;
    }
    return n == 0 && at == data->size;
}

static bool is_written(const struct writer *w, int data_fd, const struct pod_file *f)
{
    struct stat st;
    int fd = open_plain(data_fd, f->path);
    bool same = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
                (st.st_mode & 07777) == wanted_mode(w, f) &&
                st.st_uid == (f->has_owner ? f->owner : 0) &&
                (!w->owner.has_group || st.st_gid == w->owner.group) && has_bytes(fd, f->data);
    if (fd >= 0) {
        close(fd);
    }
    return same;
}

/* Calls 'fn' for each member of the directory but "." and "..". */
static int each_member(int dir_fd,
                       int (*fn)(void *ctx, int dir_fd, const char *name, struct err *e), void *ctx,
                       struct err *e)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *member;
    if (!d) {
        r = err_sys(e, -errno, "read the directory of the volume");
        if (fd >= 0) {
            close(fd);
        }
        return r;
    }
    while (r == 0 && (member = readdir(d))) {
        if (!streq(member->d_name, ".") && !streq(member->d_name, "..")) {
            r = fn(ctx, dir_fd, member->d_name, e);
        }
    }
    closedir(d);
    return r;
}

struct counting {
    size_t files;
    unsigned depth;
};

/* Counts what is below; more levels than a path can have do not occur. */
static int count(void *ctx, int dir_fd, const char *name, struct err *e)
{
    struct counting *c = ctx;
    int fd;
    if (tree_open_dir(dir_fd, name, &fd, NULL) < 0) {
        c->files++;
        return 0;
    }
    int r = ++c->depth > 128 ? -ELOOP : each_member(fd, count, c, e);
    c->depth--;
    close(fd);
    return r;
}

static bool has_links(const struct writer *w)
{
    struct smap_entry *en;
    SMAP_FOREACH (en, &w->first) {
        CLEANUP_FREE char *want = xasprintf(DATA "/%s", en->key);
        CLEANUP_FREE char *is = link_target(w->dir_fd, en->key);
        if (!streq_null(is, want)) {
            return false;
        }
    }
    return true;
}

/* Opens the directory that "..data" points to; -ENOENT: there is none. */
static int open_data(const struct writer *w, int *ret_fd)
{
    CLEANUP_FREE char *target = link_target(w->dir_fd, DATA);
    if (!target || !str_has_prefix(target, "..") || !target[2] || strchr(target, '/')) {
        return -ENOENT;
    }
    return tree_open_dir(w->dir_fd, target, ret_fd, NULL);
}

/* Whether the volume has exactly the files. */
static bool is_current(const struct writer *w)
{
    struct counting c = {0};
    int fd;
    if (open_data(w, &fd) < 0) {
        return false;
    }
    bool same = each_member(fd, count, &c, NULL) == 0 && c.files == w->files->n && has_links(w);
    for (size_t i = 0; same && i < w->files->n; i++) {
        same = is_written(w, fd, &w->files->v[i]);
    }
    close(fd);
    return same;
}

/* ---- writing ---- */

static int set_mode(int fd, uid_t owner, const struct writer *w, mode_t mode, struct err *e)
{
    gid_t group = w->owner.has_group ? w->owner.group : (gid_t) -1;
    return fchown(fd, owner, group) < 0 || fchmod(fd, mode) < 0 ? err_sys(e, -errno, "chown") : 0;
}

static mode_t dir_mode(const struct writer *w)
{
    return DIR_MODE | (w->owner.has_group ? GROUP_DIR : 0);
}

/* Makes the directory, when it is not there, and opens it. */
static int make_dir(const struct writer *w, int dir_fd, const char *name, int *ret_fd,
                    struct err *e)
{
    int fd;
    if (mkdirat(dir_fd, name, DIR_MODE) < 0 && errno != EEXIST) {
        return err_sys(e, -errno, "make the directory %s", name);
    }
    int r = tree_open_dir(dir_fd, name, &fd, e);
    if (r < 0) {
        return r;
    }
    r = set_mode(fd, (uid_t) -1, w, dir_mode(w), e);
    if (r < 0) {
        close(fd);
        return r;
    }
    *ret_fd = fd;
    return 0;
}

static int write_all(int fd, const struct blob *data, struct err *e)
{
    size_t at = 0;
    while (at < data->size) {
        ssize_t n = write(fd, data->data + at, data->size - at);
        if (n < 0 && errno != EINTR) {
            return err_sys(e, -errno, "write");
        }
        at += n > 0 ? (size_t) n : 0;
    }
    return 0;
}

static int write_file(const struct writer *w, int new_fd, const struct pod_file *f, struct err *e)
{
    const char *name = f->path;
    int dir = dup(new_fd), r = dir < 0 ? err_sys(e, -errno, "dup") : 0;
    for (size_t n; r == 0 && name[n = strcspn(name, "/")]; name += n + 1) {
        CLEANUP_FREE char *part = xstrndup(name, n);
        int next;
        r = make_dir(w, dir, part, &next, e);
        if (r == 0) {
            close(dir);
            dir = next;
        }
    }
    int fd =
        r < 0 ? -1 : openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (r == 0 && fd < 0) {
        r = err_sys(e, -errno, "create %s", f->path);
    }
    if (fd >= 0) {
        r = write_all(fd, f->data, e);
        r = r < 0 ? r : set_mode(fd, f->has_owner ? f->owner : 0, w, wanted_mode(w, f), e);
        close(fd);
    }
    if (dir >= 0) {
        close(dir);
    }
    return r < 0 ? err_prefix(e, "%s", f->path) : 0;
}

/* Makes a new directory "..TIME" with the files; the caller owns the name. */
static int write_new(const struct writer *w, char **ret_name, struct err *e)
{
    struct timespec now;
    struct tm tm;
    char day[32];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    strftime(day, sizeof day, "..%Y_%m_%d_%H_%M_%S", &tm);
    CLEANUP_FREE char *name = xasprintf("%s.%09ld", day, now.tv_nsec);
    int fd = -1;
    if (mkdirat(w->dir_fd, name, DIR_MODE) < 0) {
        return err_sys(e, -errno, "make the directory %s", name);
    }
    int r = make_dir(w, w->dir_fd, name, &fd, e);
    for (size_t i = 0; r == 0 && i < w->files->n; i++) {
        r = write_file(w, fd, &w->files->v[i], e);
    }
    if (fd >= 0) {
        close(fd);
    }
    if (r < 0) {
        tree_remove(w->dir_fd, name, NULL);
        return r;
    }
    *ret_name = name;
    name = NULL;
    return 0;
}

/* Replaces 'name', whatever it is, by a link; the exchange is atomic when 'name' is a link. */
static int put_link(int dir_fd, const char *name, const char *target, struct err *e)
{
    int r = tree_remove(dir_fd, DATA_NEW, e);
    if (r < 0) {
        return r;
    }
    if (symlinkat(target, dir_fd, DATA_NEW) < 0) {
        return err_sys(e, -errno, "make the link %s", name);
    }
    if (renameat(dir_fd, DATA_NEW, dir_fd, name) == 0) {
        return 0;
    }
    if (errno != EISDIR && errno != ENOTEMPTY && errno != EEXIST) {
        return err_sys(e, -errno, "replace %s", name);
    }
    r = tree_remove(dir_fd, name, e);
    return r < 0                                          ? r
           : renameat(dir_fd, DATA_NEW, dir_fd, name) < 0 ? err_sys(e, -errno, "replace %s", name)
                                                          : 0;
}

struct cleaning {
    const struct writer *w;
    const char *current;
};

static int remove_stale(void *ctx, int dir_fd, const char *name, struct err *e)
{
    const struct cleaning *c = ctx;
    bool wanted = str_has_prefix(name, "..") ? streq(name, DATA) || streq(name, c->current)
                                             : smap_get(&c->w->first, name) != NULL;
    return wanted ? 0 : tree_remove(dir_fd, name, e);
}

static int publish(const struct writer *w, const char *name, struct err *e)
{
    struct smap_entry *en;
    int r = put_link(w->dir_fd, DATA, name, e);
    SMAP_FOREACH (en, &w->first) {
        CLEANUP_FREE char *want = xasprintf(DATA "/%s", en->key);
        CLEANUP_FREE char *is = link_target(w->dir_fd, en->key);
        if (r == 0 && !streq_null(is, want)) {
            r = put_link(w->dir_fd, en->key, want, e);
        }
    }
    return r < 0 ? r : each_member(w->dir_fd, remove_stale, &(struct cleaning){w, name}, e);
}

int atomic_write(int dir_fd, const struct pod_files *files, struct atomic_owner owner,
                 bool *ret_changed, struct err *e)
{
    struct writer w = {.dir_fd = dir_fd, .files = files, .owner = owner};
    CLEANUP_FREE char *name = NULL;
    int r = 0;
    smap_init(&w.first, NULL);
    for (size_t i = 0; i < files->n; i++) {
        CLEANUP_FREE char *first = first_component(files->v[i].path);
        smap_set(&w.first, first, &w);
    }
    bool current = is_current(&w);
    if (!current) {
        r = write_new(&w, &name, e);
        r = r < 0 ? r : publish(&w, name, e);
    }
    if (r == 0) {
        *ret_changed = !current;
    }
    smap_done(&w.first);
    return r;
}
