/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/agent/logind.h"

#include "base/backoff.h"
#include "base/mem.h"
#include "base/said.h"
#include "base/str.h"
#include "base/timeutil.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#define RETRY_MIN_MS 1000
#define RETRY_MAX_MS 60000
#define SERVICE "org.freedesktop.login1"
#define OBJECT "/org/freedesktop/login1"
#define MANAGER SERVICE ".Manager"

/* Functions of libsystemd. */
static struct {
    bool loaded;
    typeof(sd_bus_open_system) *open_system;
    typeof(sd_bus_close_unref) *close_unref;
    typeof(sd_bus_get_fd) *get_fd;
    typeof(sd_bus_get_events) *get_events;
    typeof(sd_bus_get_timeout) *get_timeout;
    typeof(sd_bus_process) *process;
    typeof(sd_bus_match_signal_async) *match_signal_async;
    typeof(sd_bus_call_method_async) *call_method_async;
    typeof(sd_bus_message_read) *message_read;
    typeof(sd_bus_message_get_error) *message_get_error;
} sd;

static const struct {
    const char *name;
    void *where; /* A pointer to a function, in 'sd'. */
} symbols[] = {
    {"sd_bus_open_system", &sd.open_system},
    {"sd_bus_close_unref", &sd.close_unref},
    {"sd_bus_get_fd", &sd.get_fd},
    {"sd_bus_get_events", &sd.get_events},
    {"sd_bus_get_timeout", &sd.get_timeout},
    {"sd_bus_process", &sd.process},
    {"sd_bus_match_signal_async", &sd.match_signal_async},
    {"sd_bus_call_method_async", &sd.call_method_async},
    {"sd_bus_message_read", &sd.message_read},
    {"sd_bus_message_get_error", &sd.message_get_error},
};

struct logind {
    struct loop *loop;
    const struct logind_ops *ops;
    void *ctx;
    sd_bus *bus; /* NULL: not connected. */
    struct loop_fd *watch;
    struct loop_timer *timer; /* Of the bus, or of the next attempt. */
    struct loop_task pump;
    struct backoff backoff;
    struct said trouble;
    uint64_t delay_max_ms;
    int lock_fd;
    char *failure; /* Why the connection is to end; NULL: it is not. */
};

static int load(struct err *e)
{
    if (sd.loaded) {
        return 0;
    }
    void *lib = dlopen("libsystemd.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!lib) {
        return err_set(e, -ENOENT, "libsystemd, which speaks to systemd-logind, is needed: %s",
                       dlerror());
    }
    for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
        void *p = dlsym(lib, symbols[i].name);
        if (!p) {
            return err_set(e, -ENOENT, "libsystemd has no %s", symbols[i].name);
        }
        memcpy(symbols[i].where, &p, sizeof p);
    }
    sd.loaded = true;
    return 0;
}

static void disconnect(struct logind *g)
{
    g->watch = loop_fd_free(g->watch);
    loop_timer_disarm(g->timer);
    loop_task_cancel(&g->pump);
    if (g->bus) {
        sd.close_unref(g->bus);
        g->bus = NULL;
    }
    logind_release(g);
}

/* Ends the connection, with all that was asked for on it, and tries again later. */
static void failed(struct logind *g, const char *reason)
{
    uint64_t now = loop_now_ms(g->loop);
    disconnect(g);
    loop_timer_arm(g->timer, backoff_fail(&g->backoff, now, (uint32_t) now));
    if (said_is_news(&g->trouble, reason)) {
        g->ops->lost(g->ctx, reason);
    }
}

/* ---- answers and signals ---- */

/* They come from within sd_bus_process, which must not lose its bus: the caller of that ends it. */
static void fail_later(struct logind *g, const char *what, sd_bus_message *m, int error)
{
    const sd_bus_error *b = m ? sd.message_get_error(m) : NULL;
    if (!g->failure) {
        g->failure = xasprintf("%s: %s", what, b && b->message ? b->message : strerror(-error));
    }
}

static int on_lock(sd_bus_message *m, void *ctx, sd_bus_error *error)
{
    struct logind *g = ctx;
    int fd;
    int r = sd.message_get_error(m) ? -EIO : sd.message_read(m, "h", &fd);
    int copy = r < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3); /* The message has the first one. */
    if (copy < 0) {
        fail_later(g, "no lock of logind", m, r < 0 ? r : -errno);
        return 0;
    }
    logind_release(g);
    g->lock_fd = copy;
    backoff_reset(&g->backoff);
    said_is_news(&g->trouble, NULL);
    g->ops->locked(g->ctx, g->delay_max_ms);
    return 0;
}

static int on_delay_max(sd_bus_message *m, void *ctx, sd_bus_error *error)
{
    struct logind *g = ctx;
    uint64_t us = 0;
    int r = sd.message_get_error(m) ? -EIO : sd.message_read(m, "v", "t", &us);
    if (r < 0) {
        fail_later(g, "logind's InhibitDelayMaxUSec", m, r);
        return 0;
    }
    g->delay_max_ms = us / 1000;
    return 0;
}

static void take_lock(struct logind *g)
{
    int r = sd.call_method_async(g->bus, NULL, SERVICE, OBJECT, MANAGER, "Inhibit", on_lock, g,
                                 "ssss", "shutdown", "tenet kubelet",
                                 "Pods are ended with their grace", "delay");
    if (r < 0) {
        fail_later(g, "no lock of logind", NULL, r);
    }
}

static int on_prepare(sd_bus_message *m, void *ctx, sd_bus_error *error)
{
    struct logind *g = ctx;
    int begins = 0;
    if (sd.message_read(m, "b", &begins) < 0) {
        return 0;
    }
    if (!begins) {
        take_lock(g); /* For the next shutdown. */
    }
    g->ops->prepare(g->ctx, begins);
    return 0;
}

static int on_match(sd_bus_message *m, void *ctx, sd_bus_error *error)
{
    if (sd.message_get_error(m)) {
        fail_later(ctx, "no signals of logind", m, -EIO);
    }
    return 0;
}

/* ---- the connection ---- */

/* Does what the bus has to do now, and waits for what comes next. */
static void pump(void *ctx)
{
    struct logind *g = ctx;
    int r, events = 0;
    uint64_t until_us = UINT64_MAX;
    do {
        r = sd.process(g->bus, NULL);
    } while (r > 0 && !g->failure);
    r = r < 0 ? r : (events = sd.get_events(g->bus));
    r = r < 0 ? r : sd.get_timeout(g->bus, &until_us);
    if (r < 0) {
        fail_later(g, "the system bus", NULL, r);
    }
    if (g->failure) {
        CLEANUP_FREE char *reason = TAKE(g->failure);
        failed(g, reason);
        return;
    }
    loop_fd_set(g->watch,
                (events & POLLIN ? LOOP_READ : 0u) | (events & POLLOUT ? LOOP_WRITE : 0u));
    if (until_us == UINT64_MAX) {
        loop_timer_disarm(g->timer);
    } else {
        uint64_t now_us = time_mono_ns() / 1000;
        loop_timer_arm(g->timer, until_us > now_us ? (until_us - now_us) / 1000 + 1 : 0);
    }
}

static void on_fd(void *ctx, unsigned events)
{
    pump(ctx);
}

static void connect_bus(struct logind *g)
{
    int r = sd.open_system(&g->bus);
    if (r < 0) {
        g->bus = NULL;
        CLEANUP_FREE char *reason = xasprintf("the system bus: %s", strerror(-r));
        failed(g, reason);
        return;
    }
    g->watch = loop_fd_new(g->loop, sd.get_fd(g->bus), LOOP_READ, on_fd, g);
    r = sd.match_signal_async(g->bus, NULL, SERVICE, OBJECT, MANAGER, "PrepareForShutdown",
                              on_prepare, on_match, g);
    r = r < 0
            ? r
            : sd.call_method_async(g->bus, NULL, SERVICE, OBJECT, "org.freedesktop.DBus.Properties",
                                   "Get", on_delay_max, g, "ss", MANAGER, "InhibitDelayMaxUSec");
    if (r < 0) {
        fail_later(g, "the system bus", NULL, r);
    } else {
        take_lock(g);
    }
    loop_task_queue(&g->pump);
}

static void on_timer(void *ctx)
{
    struct logind *g = ctx;
    if (g->bus) {
        pump(g);
    } else {
        connect_bus(g);
    }
}

int logind_new(struct loop *l, const struct logind_ops *ops, void *ctx, struct logind **ret,
               struct err *e)
{
    int r = load(e);
    if (r < 0) {
        return r;
    }
    struct logind *g = NEW(struct logind);
    *g = (struct logind){.loop = l,
                         .ops = ops,
                         .ctx = ctx,
                         .backoff = BACKOFF_INIT(RETRY_MIN_MS, RETRY_MAX_MS),
                         .lock_fd = -1};
    loop_task_init(&g->pump, l, pump, g);
    g->timer = loop_timer_new(l, on_timer, g);
    loop_timer_arm(g->timer, 0);
    *ret = g;
    return 0;
}

struct logind *logind_free(struct logind *g)
{
    if (g) {
        disconnect(g);
        loop_timer_free(g->timer);
        said_done(&g->trouble);
        free(g->failure);
        free(g);
    }
    return NULL;
}

void logind_release(struct logind *g)
{
    fd_close(fd_take(&g->lock_fd));
}
