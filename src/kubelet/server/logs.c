/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of containers, and the host's folder of logs.
 *
 * A log is read in blocks while its client keeps up.  One that is followed is read on when inotify
 * says that its folder has changed, and at an interval, by which the end of its container shows. */
#include "base/log.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "kubelet/server/log_files.h"
#include "kubelet/server/server_priv.h"
#include "net/loop/process.h"
#include "pod/log_line.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

LOG_MODULE("kubelet");

#define BLOCK 65536
#define QUEUE_PAUSE ((size_t) 256 << 10)
#define FOLLOW_MS 1000
/* The runtime may write to a renamed file until it has opened the new one; it is left this time
 * after the new one is there. */
#define SETTLE_MS 500
#define EVENTS_SIZE 16384

struct log {
    struct list node;
    struct kubelet_server *server;
    struct http_exchange *x;
    struct kubelet_target target;
    char *id, *dir;
    struct log_files *files;
    struct log_filter filter;
    bool follow, over;
    int watch;           /* Of inotify; -1: none. */
    uint64_t rotated_ms; /* When a rotation was seen; 0: none. */
    struct loop_task task;
    struct loop_timer *timer;
};

static bool is_watched(const struct kubelet_server *s, int watch)
{
    const struct log *l;
    LIST_FOREACH (l, struct log, node, &s->logs) {
        if (l->watch == watch) {
            return true;
        }
    }
    return false;
}

static void log_free(struct log *l)
{
    struct kubelet_server *s = l->server;
    list_remove(&l->node);
    s->n_streams--;
    if (l->watch >= 0 && !is_watched(s, l->watch)) {
        (void) inotify_rm_watch(s->inotify, l->watch);
    }
    loop_task_cancel(&l->task);
    loop_timer_free(l->timer);
    log_files_free(l->files);
    log_filter_done(&l->filter);
    kubelet_target_done(&l->target);
    free(l->id);
    free(l->dir);
    free(l);
}

/* The client has gone. */
static void on_closed(void *ctx)
{
    log_free(ctx);
}

static void finish(struct log *l, bool complete)
{
    struct http_exchange *x = l->x;
    log_free(l);
    if (complete) {
        http_stream_end(x);
    } else {
        http_stream_cut(x);
    }
}

/* Sends what a block of the file gives; false: the client is too slow, or gone. */
static bool send_block(struct log *l, const struct strbuf *out)
{
    if (!out->size) {
        return true;
    }
    CLEANUP(blob_unref) struct blob *b = blob_new(out->data, out->size);
    return http_stream_write(l->x, b) == 0 && http_stream_queued(l->x) < QUEUE_PAUSE;
}

/* Whether the container that is followed still runs. */
static bool is_running(const struct log *l)
{
    const struct kubelet_server *s = l->server;
    struct kubelet_container c = {0};
    return s->ops->find_container(s->ctx, l->target.namespace, l->target.pod, NULL,
                                  l->target.container, false, &c, NULL) == 0 &&
           c.running && c.id && streq(c.id, l->id);
}

/* All that there is was read; true: there may be more now. */
static bool at_end(struct log *l)
{
    uint64_t now = loop_now_ms(l->server->loop);
    if (!l->follow) {
        l->over = true;
        return false;
    }
    if (!is_running(l)) {
        /* What it wrote last may have come since; it is read before the end. */
        bool again = !l->over;
        l->over = true;
        return again || log_files_advance(l->files);
    }
    l->over = false;
    if (!log_files_is_rotated(l->files)) {
        l->rotated_ms = 0;
        return false;
    }
    if (!l->rotated_ms) {
        l->rotated_ms = now;
    }
    if (now - l->rotated_ms < SETTLE_MS) {
        loop_timer_arm(l->timer, SETTLE_MS);
        return false;
    }
    l->rotated_ms = 0;
    return log_files_advance(l->files);
}

static void run(void *ctx)
{
    struct log *l = ctx;
    char buf[BLOCK];
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    struct err e = {0};
    if (http_stream_queued(l->x) >= QUEUE_PAUSE) {
        return; /* The next step comes when the queue is empty. */
    }
    ssize_t n = log_files_read(l->files, buf, sizeof buf, &e);
    if (n < 0) {
        log_warn("a log cannot be read", "error=\"%s\"", e.text);
        finish(l, false);
        return;
    }
    if (n > 0) {
        l->over = false;
        log_filter_feed(&l->filter, buf, (size_t) n, &out);
        bool more = send_block(l, &out);
        if (l->filter.done) {
            finish(l, true);
        } else if (more) {
            loop_task_queue(&l->task);
        }
        return;
    }
    if (at_end(l)) {
        loop_task_queue(&l->task);
    } else if (l->over) {
        log_filter_end(&l->filter, &out);
        (void) send_block(l, &out);
        finish(l, true);
    } else {
        if (!loop_timer_armed(l->timer)) {
            loop_timer_arm(l->timer, FOLLOW_MS);
        }
    }
}

static void on_drained(void *ctx)
{
    struct log *l = ctx;
    loop_task_queue(&l->task);
}

static void on_timer(void *ctx)
{
    struct log *l = ctx;
    loop_task_queue(&l->task);
}

/* ---- inotify ---- */

static void on_events(void *ctx, unsigned events)
{
    struct kubelet_server *s = ctx;
    char buf[EVENTS_SIZE] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t n;
    while ((n = read(s->inotify, buf, sizeof buf)) > 0) {
        for (const char *p = buf; p < buf + n;) {
            const struct inotify_event *ev = (const struct inotify_event *) (const void *) p;
            struct log *l;
            LIST_FOREACH (l, struct log, node, &s->logs) {
                if (l->watch == ev->wd || (ev->mask & IN_Q_OVERFLOW)) {
                    loop_task_queue(&l->task);
                }
            }
            p += sizeof *ev + ev->len;
        }
    }
}

int kubelet_logs_begin(struct kubelet_server *s, struct err *e)
{
    s->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (s->inotify < 0) {
        log_warn("logs are followed once a second only", "error=\"%s\"", strerror(errno));
        return 0;
    }
    s->inotify_watch = loop_fd_new(s->loop, s->inotify, LOOP_READ, on_events, s);
    return 0;
}

void kubelet_logs_end(struct kubelet_server *s)
{
    while (!list_is_empty(&s->logs)) {
        finish(CONTAINER_OF(s->logs.next, struct log, node), false);
    }
    if (s->inotify_watch) {
        loop_fd_free(TAKE(s->inotify_watch));
    }
    s->inotify = fd_close(s->inotify);
}

/* ---- the request ---- */

struct options {
    bool follow, previous;
    int64_t tail; /* Negative: all. */
};

/* Reads a whole number; an absent one leaves '*ret'. */
static int read_number(const struct http_exchange *x, const char *name, int64_t min, int64_t *ret)
{
    const char *v = http_query(x, name);
    return v && *v ? str_to_i64(v, min, INT64_MAX, ret) : 0;
}

static bool has_flag(const struct http_exchange *x, const char *name)
{
    const char *v = http_query(x, name);
    return v && !streq(v, "0") && !streq(v, "false");
}

/* The name of the wrong parameter; NULL: none. */
static const char *read_options(const struct http_exchange *x, struct options *o,
                                struct log_filter *f)
{
    const char *time = http_query(x, "sinceTime");
    int64_t seconds = -1, bytes = -1, ms;
    *o = (struct options){
        .follow = has_flag(x, "follow"), .previous = has_flag(x, "previous"), .tail = -1};
    f->timestamps = has_flag(x, "timestamps");
    if (read_number(x, "tailLines", 0, &o->tail) < 0) {
        return "tailLines";
    }
    if (read_number(x, "sinceSeconds", 0, &seconds) < 0) {
        return "sinceSeconds";
    }
    if (read_number(x, "limitBytes", 0, &bytes) < 0) {
        return "limitBytes";
    }
    if (time && *time && time_parse(time, &ms) < 0) {
        return "sinceTime";
    }
    if (time && *time) {
        f->since_ns = ms * 1000000;
    } else if (seconds >= 0) {
        f->since_ns = (time_wall_ms() - MIN(seconds, INT64_C(1) << 31) * 1000) * 1000000;
    }
    if (bytes >= 0) {
        f->limit = (uint64_t) bytes;
    }
    return NULL;
}

static void begin(struct kubelet_server *s, struct http_exchange *x, const struct kubelet_target *t,
                  const struct kubelet_container *c, const struct options *o,
                  struct log_filter filter, struct log_files *files)
{
    struct log *l = NEW(struct log);
    l->server = s;
    l->x = x;
    l->target = (struct kubelet_target){.namespace = xstrdup(t->namespace),
                                        .pod = xstrdup(t->pod),
                                        .container = xstrdup(t->container)};
    l->id = xstrdup(c->id ? c->id : "");
    l->files = files;
    l->filter = filter;
    l->follow = o->follow && !o->previous;
    l->watch = -1;
    l->timer = loop_timer_new(s->loop, on_timer, l);
    loop_task_init(&l->task, s->loop, run, l);
    list_push_back(&s->logs, &l->node);
    s->n_streams++;
    if (l->follow && s->inotify >= 0) {
        const char *slash = strrchr(c->log_path, '/');
        l->dir = xstrndup(c->log_path, slash ? (size_t) (slash - c->log_path) : 0);
        l->watch = inotify_add_watch(s->inotify, *l->dir ? l->dir : ".",
                                     IN_MODIFY | IN_CREATE | IN_MOVED_FROM | IN_MOVED_TO);
    }
    http_stream_begin(x, 200, "text/plain", on_closed, l);
    http_stream_on_drained(x, on_drained, l);
    loop_task_queue(&l->task);
}

void kubelet_container_logs(struct kubelet_server *s, struct http_exchange *x,
                            const struct kubelet_target *t)
{
    struct kubelet_container c = {0};
    struct log_filter filter = LOG_FILTER_INIT;
    struct options o;
    struct log_files *files;
    struct err e = {0};
    const char *wrong = read_options(x, &o, &filter);
    if (wrong) {
        CLEANUP_FREE char *text = xasprintf("%s: invalid value", wrong);
        kubelet_respond(x, 400, text);
        return;
    }
    if (s->n_streams >= KUBELET_MAX_STREAMS) {
        kubelet_respond(x, 429, "too many streams");
        return;
    }
    if (s->ops->find_container(s->ctx, t->namespace, t->pod, t->uid, t->container, o.previous, &c,
                               &e) < 0) {
        kubelet_respond(x, 400, e.text);
        return;
    }
    if (!c.log_path || c.waiting) {
        CLEANUP_FREE char *text =
            xasprintf("container \"%s\" in pod \"%s\" is waiting to start: %s", t->container,
                      t->pod, c.waiting ? c.waiting : "it has no log yet");
        kubelet_respond(x, 400, text);
        return;
    }
    if (log_files_open(c.log_path, o.tail, &files, &e) < 0) {
        kubelet_respond(x, 500, e.text);
        return;
    }
    begin(s, x, t, &c, &o, filter, files);
}

/* ---- the folder of logs ---- */

#define MAX_FILE ((size_t) 64 << 20)

static void list_dir(struct http_exchange *x, const char *path)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    DIR *d = opendir(path);
    const struct dirent *entry;
    if (!d) {
        kubelet_respond(x, 404, "404 page not found");
        return;
    }
    while ((entry = readdir(d))) {
        if (entry->d_name[0] != '.') {
            strbuf_addf(&b, "%s%s\n", entry->d_name, entry->d_type == DT_DIR ? "/" : "");
        }
    }
    closedir(d);
    http_respond(x, 200, "text/plain; charset=utf-8", strbuf_cstr(&b), b.size);
}

/* 'path' has no ".." (http_path), but links in the folder may lead out of it: pods write there. */
void kubelet_node_logs(struct kubelet_server *s, struct http_exchange *x, const char *path)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    struct stat st;
    struct err e = {0};
    if (!s->log_dir) {
        kubelet_respond(x, 404, "404 page not found");
        return;
    }
    CLEANUP_FREE char *full = xasprintf("%s/%s", s->log_dir, path);
    CLEANUP_FREE char *real = realpath(full, NULL), *root = realpath(s->log_dir, NULL);
    size_t n = root ? strlen(root) : 0;
    if (!real || !root || strncmp(real, root, n) != 0 || (real[n] && real[n] != '/') ||
        stat(real, &st) < 0) {
        kubelet_respond(x, 404, "404 page not found");
    } else if (S_ISDIR(st.st_mode)) {
        list_dir(x, real);
    } else if (file_read(real, MAX_FILE, &b, &e) < 0) {
        kubelet_respond(x, 500, e.text);
    } else {
        http_respond(x, 200, "text/plain; charset=utf-8", strbuf_cstr(&b), b.size);
    }
}
