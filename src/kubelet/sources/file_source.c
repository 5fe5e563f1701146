/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/sources/file_source.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/said.h"
#include "net/loop/process.h"

#include <dirent.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

LOG_MODULE("static");

#define EVENTS_SIZE 4096
#define EVENTS                                                                               \
    (IN_CREATE | IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_DELETE_SELF | \
     IN_MOVE_SELF)
/* A change is often several events: a file is made, then written. */
#define SETTLE_MS 100

struct file_source {
    struct loop *loop;
    char *path, *dir;
    const char *name; /* Of the only file; NULL: 'path' is a directory, or nothing. */
    uint64_t interval_ms;
    manifests_read_fn *fn;
    void *ctx;
    int inotify, wd; /* -1: none. */
    struct loop_fd *watch;
    struct loop_timer *timer;
    struct said failure;
};

/* What is being read. */
struct reading {
    struct manifest_text *v;
    size_t n, cap;
};

static void reading_done(struct reading *r)
{
    for (size_t i = 0; i < r->n; i++) {
        free((char *) r->v[i].path);
        free((char *) r->v[i].text);
        free((char *) r->v[i].error);
    }
    free(r->v);
}

static void read_one(struct reading *r, const char *path)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    struct manifest_text m = {0};
    struct err e = {0};
    int error = file_read(path, MANIFEST_MAX_SIZE, &text, &e);
    if (error == -ENOENT) {
        return; /* It went while the directory was read. */
    }
    m.path = xstrdup(path);
    m.error = error < 0 ? xstrdup(e.text) : NULL;
    m.text = error < 0 ? NULL : xmemdup(strbuf_cstr(&text), text.size + 1);
    m.size = text.size;
    r->v = grow(r->v, &r->cap, r->n + 1, sizeof *r->v);
    r->v[r->n++] = m;
}

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

static int is_shown(const struct dirent *d)
{
    return d->d_name[0] != '.';
}

static int read_directory(const char *dir, struct reading *r, struct err *e)
{
    struct dirent **list = NULL;
    int n = scandir(dir, &list, is_shown, alphasort);
    if (n < 0) {
        return errno == ENOENT ? 0 : err_sys(e, -errno, "read %s", dir);
    }
    for (int i = 0; i < n; i++) {
        CLEANUP_FREE char *path = xasprintf("%s/%s", dir, list[i]->d_name);
        if (n <= MANIFEST_MAX_FILES && is_file(path)) {
            read_one(r, path);
        }
        free(list[i]);
    }
    free(list);
    return n > MANIFEST_MAX_FILES
               ? err_set(e, -E2BIG, "%s has more than %d files", dir, MANIFEST_MAX_FILES)
               : 0;
}

/* ---- changes ---- */

/* Watches the directory that has the name now.  A watch stays with the directory that it was made
 * for, also when that was moved. */
static void watch(struct file_source *s)
{
    int wd = s->inotify < 0 ? -1 : inotify_add_watch(s->inotify, s->dir, EVENTS | IN_ONLYDIR);
    if (s->wd >= 0 && wd != s->wd) {
        (void) inotify_rm_watch(s->inotify, s->wd);
    }
    s->wd = wd;
}

static void on_events(void *ctx, unsigned events)
{
    struct file_source *s = ctx;
    char buf[EVENTS_SIZE] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t n;
    bool any = false;
    while ((n = read(s->inotify, buf, sizeof buf)) > 0) {
        for (char *p = buf; p < buf + n;) {
            const struct inotify_event *ev = (const struct inotify_event *) (const void *) p;
            any = any || !s->name || !ev->len || streq(ev->name, s->name);
            if (ev->mask & IN_IGNORED && ev->wd == s->wd) {
                s->wd = -1; /* The kernel has removed it. */
            }
            p += sizeof *ev + ev->len;
        }
    }
    if (any) {
        loop_timer_arm(s->timer, SETTLE_MS);
    }
}

static void scan(void *ctx)
{
    struct file_source *s = ctx;
    __attribute__((cleanup(reading_done))) struct reading r = {0};
    struct err e = {0};
    struct stat st;
    int error = 0;
    loop_timer_arm(s->timer, s->interval_ms);
    char *slash = strrchr(s->path, '/');
    bool single = stat(s->path, &st) == 0 && !S_ISDIR(st.st_mode) && slash;
    free(s->dir);
    s->dir =
        single ? xstrndup(s->path, MAX((size_t) (slash - s->path), (size_t) 1)) : xstrdup(s->path);
    s->name = single ? slash + 1 : NULL;
    watch(s); /* Before it is read, so that no change is missed. */
    if (single) {
        read_one(&r, s->path);
    } else {
        error = read_directory(s->path, &r, &e);
    }
    if (said_is_news(&s->failure, error < 0 ? e.text : NULL) && error < 0) {
        log_error("manifests of static pods cannot be read; those that run go on", "error=\"%s\"",
                  e.text);
    }
    if (error == 0) {
        s->fn(s->ctx, r.v, r.n);
    }
}

struct file_source *file_source_new(struct loop *l, const char *path, uint64_t interval_ms,
                                    manifests_read_fn *fn, void *ctx)
{
    struct file_source *s = NEW(struct file_source);
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/') {
        size--;
    }
    s->loop = l;
    s->path = xstrndup(path, size);
    s->interval_ms = interval_ms;
    s->fn = fn;
    s->ctx = ctx;
    s->wd = -1;
    s->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (s->inotify >= 0) {
        s->watch = loop_fd_new(l, s->inotify, LOOP_READ, on_events, s);
    } else {
        log_warn("changes of manifests are seen at the interval only",
                 "path=%s error=\"inotify: %s\"", s->path, strerror(errno));
    }
    s->timer = loop_timer_new(l, scan, s);
    loop_timer_arm(s->timer, 0);
    return s;
}

struct file_source *file_source_free(struct file_source *s)
{
    if (s) {
        loop_fd_free(s->watch);
        loop_timer_free(s->timer);
        fd_close(s->inotify);
        said_done(&s->failure);
        free(s->path);
        free(s->dir);
        free(s);
    }
    return NULL;
}
