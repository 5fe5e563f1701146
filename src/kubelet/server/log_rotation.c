/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/server/log_rotation.h"

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

LOG_MODULE("kubelet");

#define DEFAULT_BYTES (UINT64_C(10) << 20)
#define DEFAULT_FILES 5
#define DEFAULT_PERIOD_MS 10000
#define MAX_NAMES 256
#define BLOCK 65536

struct log_rotation {
    struct loop *loop;
    struct log_rotation_config cfg;
    struct loop_timer *timer;
    struct list reopening;
    char *compressing;   /* The file that the worker compresses; NULL: none. */
    bool *compressed;    /* Set when it is done; while log_rotation_free waits. */
    struct list waiting; /* Files to compress. */
};

/* A file that was renamed, until the runtime has answered. */
struct reopening {
    struct list node;
    struct log_rotation *rotation;
    struct runtime_call *call;
    char *path, *rotated;
};

struct waiting {
    struct list node;
    char *path;
};

/* ---- compression ---- */

/* On a worker thread: the ".gz" is complete, or it is not there. */
static void compress_file(const char *path)
{
    CLEANUP_FREE char *tmp = xasprintf("%s.tmp", path), *gz = xasprintf("%s.gz", path);
    CLEANUP_FREE char *buf = xmalloc(BLOCK);
    int in = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    int out = in < 0 ? -1 : open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640);
    gzFile z = out < 0 ? NULL : gzdopen(out, "wb1");
    bool good = z;
    ssize_t n = 0;
    while (good && (n = read(in, buf, BLOCK)) > 0) {
        good = gzwrite(z, buf, (unsigned) n) == n;
    }
    good = good && n == 0;
    if (z) {
        good = gzclose(z) == Z_OK && good;
    } else {
        fd_close(out);
    }
    if (good && rename(tmp, gz) == 0) {
        (void) unlink(path);
    } else {
        (void) unlink(tmp);
    }
    fd_close(in);
}

static void compress_next(struct log_rotation *r);

static void work(void *ctx)
{
    const struct log_rotation *r = ctx;
    compress_file(r->compressing);
}

static void worked(void *ctx)
{
    struct log_rotation *r = ctx;
    free(TAKE(r->compressing));
    if (r->compressed) {
        *r->compressed = true;
        return;
    }
    compress_next(r);
}

static void compress_next(struct log_rotation *r)
{
    if (!r->compressing && !list_is_empty(&r->waiting)) {
        struct waiting *w = CONTAINER_OF(list_pop_front(&r->waiting), struct waiting, node);
        r->compressing = w->path;
        free(w);
        loop_work(r->loop, work, worked, r);
    }
}

static bool is_waiting(const struct log_rotation *r, const char *path)
{
    const struct waiting *w;
    LIST_FOREACH (w, struct waiting, node, &r->waiting) {
        if (streq(w->path, path)) {
            return true;
        }
    }
    return r->compressing && streq(r->compressing, path);
}

static void compress_later(struct log_rotation *r, const char *path)
{
    if (!is_waiting(r, path)) {
        struct waiting *w = NEW(struct waiting);
        w->path = xstrdup(path);
        list_push_back(&r->waiting, &w->node);
        compress_next(r);
    }
}

/* ---- the rotated files of a log ---- */

static size_t plain_size(const char *name)
{
    return strlen(name) - (str_has_suffix(name, ".gz") ? 3 : 0);
}

/* By the names without ".gz", which are in the order of time. */
static int by_name(const void *a, const void *b)
{
    const char *s = *(char *const *) a, *t = *(char *const *) b;
    size_t n = plain_size(s), m = plain_size(t);
    int order = memcmp(s, t, MIN(n, m));
    return order ? order : n < m ? -1 : n > m;
}

/* Owned paths of the rotated files, oldest first. */
static size_t list_rotated(const char *path, char *list[MAX_NAMES])
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    CLEANUP_FREE char *dir = slash ? xstrndup(path, (size_t) (slash - path)) : xstrdup(".");
    size_t n = 0, size = strlen(base);
    DIR *d = opendir(dir);
    const struct dirent *entry;
    while (d && n < MAX_NAMES && (entry = readdir(d))) {
        const char *s = entry->d_name;
        if (str_has_prefix(s, base) && s[size] == '.' && !str_has_suffix(s, ".tmp")) {
            list[n++] = xasprintf("%s/%s", dir, s);
        }
    }
    if (d) {
        closedir(d);
    }
    qsort(list, n, sizeof *list, by_name);
    return n;
}

/* Removes the oldest files, and compresses all but the newest. */
static void tidy(struct log_rotation *r, const char *path)
{
    char *list[MAX_NAMES];
    size_t n = list_rotated(path, list), keep = r->cfg.max_files - 1;
    for (size_t i = 0; i < n; i++) {
        if (i + keep < n && !is_waiting(r, list[i])) {
            (void) unlink(list[i]);
        } else if (i + 1 < n && !str_has_suffix(list[i], ".gz")) {
            compress_later(r, list[i]);
        }
        free(list[i]);
    }
}

/* ---- rotating ---- */

static void reopening_free(struct reopening *o)
{
    list_remove(&o->node);
    free(o->path);
    free(o->rotated);
    free(o);
}

static void reopened(void *ctx, int error, const char *text)
{
    struct reopening *o = ctx;
    struct log_rotation *r = o->rotation;
    if (error < 0 && access(o->path, F_OK) < 0) {
        log_warn("a log was not rotated", "file=%s error=\"%s\"", o->path, text);
        (void) rename(o->rotated, o->path);
    }
    CLEANUP_FREE char *path = xstrdup(o->path);
    reopening_free(o);
    tidy(r, path);
}

/* A name that sorts behind all others of this log, also of the same second. */
static char *rotated_name(const char *path)
{
    char stamp[32], *list[MAX_NAMES], *name;
    time_t now = time(NULL);
    struct tm tm;
    size_t n = list_rotated(path, list);
    (void) strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", gmtime_r(&now, &tm));
    name = xasprintf("%s.%s", path, stamp);
    if (n && by_name(&list[n - 1], &name) >= 0) {
        free(name);
        name = xasprintf("%.*s-1", (int) plain_size(list[n - 1]), list[n - 1]);
    }
    for (size_t i = 0; i < n; i++) {
        free(list[i]);
    }
    return name;
}

static bool is_reopening(const struct log_rotation *r, const char *path)
{
    const struct reopening *o;
    LIST_FOREACH (o, struct reopening, node, &r->reopening) {
        if (streq(o->path, path)) {
            return true;
        }
    }
    return false;
}

static void look_at(void *rotation, const char *id, const char *path)
{
    struct log_rotation *r = rotation;
    struct stat st;
    if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode) || (uint64_t) st.st_size < r->cfg.max_bytes ||
        is_reopening(r, path)) {
        return;
    }
    char *rotated = rotated_name(path);
    if (rename(path, rotated) < 0) {
        log_warn("a log was not rotated", "file=%s error=\"%s\"", path, strerror(errno));
        free(rotated);
        return;
    }
    struct reopening *o = NEW(struct reopening);
    o->rotation = r;
    o->path = xstrdup(path);
    o->rotated = rotated;
    list_push_back(&r->reopening, &o->node);
    o->call = runtime_reopen_log(r->cfg.runtime, id, reopened, o);
}

static void look(void *ctx)
{
    struct log_rotation *r = ctx;
    r->cfg.each(r->cfg.ctx, look_at, r);
    loop_timer_arm(r->timer, r->cfg.period_ms);
}

struct log_rotation *log_rotation_new(struct loop *l, const struct log_rotation_config *cfg)
{
    struct log_rotation *r = NEW(struct log_rotation);
    r->loop = l;
    r->cfg = *cfg;
    r->cfg.max_bytes = cfg->max_bytes ? cfg->max_bytes : DEFAULT_BYTES;
    r->cfg.max_files = MAX(cfg->max_files ? cfg->max_files : DEFAULT_FILES, 2u);
    r->cfg.period_ms = cfg->period_ms ? cfg->period_ms : DEFAULT_PERIOD_MS;
    list_init(&r->reopening);
    list_init(&r->waiting);
    r->timer = loop_timer_new(l, look, r);
    loop_timer_arm(r->timer, r->cfg.period_ms);
    return r;
}

struct log_rotation *log_rotation_free(struct log_rotation *r)
{
    if (!r) {
        return NULL;
    }
    while (!list_is_empty(&r->waiting)) {
        struct waiting *w = CONTAINER_OF(list_pop_front(&r->waiting), struct waiting, node);
        free(w->path);
        free(w);
    }
    while (!list_is_empty(&r->reopening)) {
        struct reopening *o = CONTAINER_OF(r->reopening.next, struct reopening, node);
        runtime_cancel(o->call);
        reopening_free(o);
    }
    if (r->compressing) {
        bool done = false;
        r->compressed = &done;
        (void) loop_run_until(r->loop, &done, 0);
    }
    loop_timer_free(r->timer);
    free(r);
    return NULL;
}
