/* SPDX-License-Identifier: Apache-2.0 */
#include "router/router.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "client/client.h"
#include "net/http/http.h"
#include "net/loop/notify.h"
#include "net/loop/process.h"
#include "net/loop/sock.h"
#include "net/loop/watchdog.h"
#include "router/certificate.h"
#include "router/driver.h"
#include "router/metrics.h"
#include "router/process.h"
#include "router/routes.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

LOG_MODULE("router");

#define TEXT_TYPE "text/plain; charset=utf-8"
#define PEM_MAX 1000000
#define KEY_SIZE 33
#define RESERVED_FILES 200 /* Descriptors of HAProxy that are no connections. */

struct router {
    const struct router_config *config;
    struct route_plan_options options;
    char cookie_key[KEY_SIZE];
    int lock_fd;
    struct loop *loop;
    struct api_client *client;
    struct driver *driver;
    struct routes *routes;
    struct http_server *server;
    struct watchdog *watchdog;
    struct loop_signal *term, *interrupt, *quit;
};

/* ---- health and metrics ---- */

static void respond(struct http_exchange *x, int status, const char *text)
{
    http_respond(x, status, TEXT_TYPE, text, strlen(text));
}

struct scrape {
    struct router *r;
    struct http_exchange *x;
};

static void on_stat(void *ctx, const char *csv, size_t size)
{
    struct scrape *s = ctx;
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    struct router_facts f = {.driver = *driver_state(s->r->driver),
                             .admitted = routes_admitted(s->r->routes),
                             .rejected = routes_rejected(s->r->routes)};
    metrics_write(&f, s->r->driver, csv, size, &out);
    http_respond(s->x, 200, PROM_CONTENT_TYPE, out.data, out.size);
    free(s);
}

static void on_request(void *ctx, struct http_exchange *x)
{
    struct router *r = ctx;
    const struct driver_state *d = driver_state(r->driver);
    const char *path = http_path(x);
    if (streq(path, "/healthz") || streq(path, "/healthz/live")) {
        bool ok = d->running || !routes_are_synced(r->routes);
        respond(x, ok ? 200 : 503, ok ? "ok" : d->why);
    } else if (streq(path, "/healthz/ready")) {
        bool ok = d->running && d->settled && routes_are_synced(r->routes);
        respond(x, ok ? 200 : 503, ok ? "ok" : d->running ? "routes are not complete yet" : d->why);
    } else if (streq(path, "/metrics")) {
        struct scrape *s = NEW(struct scrape);
        *s = (struct scrape){r, x};
        driver_show_stat(r->driver, on_stat, s);
    } else {
        respond(x, 404, "there are /healthz, /healthz/ready and /metrics");
    }
}

static int listen_http(struct router *r, struct err *e)
{
    int fd;
    int err = sock_listen_tcp(r->config->listen, &fd, e);
    if (err < 0) {
        return err_prefix(e, "--stats-address");
    }
    static const struct http_limits limits = {.max_conns = 64};
    r->server = http_server_new(r->loop, &limits, on_request, r);
    return http_server_add_listener(r->server, fd, e);
}

/* ---- files ---- */

static int take_lock(struct router *r, struct err *e)
{
    CLEANUP_FREE char *path = xasprintf("%s/lock", r->config->dir);
    int err = dir_make(r->config->dir, 0700, e);
    if (err < 0) {
        return err;
    }
    r->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (r->lock_fd < 0 || flock(r->lock_fd, LOCK_EX | LOCK_NB) < 0) {
        return err_sys(e, -errno, "%s: another router uses the folder", path);
    }
    return 0;
}

/* The key of session cookies: the same after a restart.  Routers that share sessions share the
 * file. */
static int read_cookie_key(struct router *r, struct err *e)
{
    CLEANUP_FREE char *path = xasprintf("%s/cookie.key", r->config->dir);
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    if (file_read(path, KEY_SIZE, &text, NULL) == 0 && text.size == KEY_SIZE - 1 &&
        strspn(text.data, "0123456789abcdef") == KEY_SIZE - 1) {
        memcpy(r->cookie_key, text.data, KEY_SIZE);
        return 0;
    }
    random_hex(r->cookie_key, KEY_SIZE / 2);
    return file_write_atomic(path, r->cookie_key, KEY_SIZE - 1, 0600, e);
}

static int write_default_certificate(struct router *r, struct err *e)
{
    CLEANUP_FREE char *path = xasprintf("%s/default.pem", r->config->dir);
    CLEANUP_FREE char *pem = NULL;
    if (r->config->default_certificate) {
        CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
        int err = file_read(r->config->default_certificate, PEM_MAX, &text, e);
        if (err == 0) {
            err = certificate_join(strbuf_cstr(&text), NULL, NULL, &pem, e);
        }
        if (err < 0) {
            return err_prefix(e, "--default-certificate %s", r->config->default_certificate);
        }
    } else if (access(path, F_OK) == 0) {
        return 0;
    } else {
        pem = certificate_make_default();
    }
    int err = file_write_atomic(path, pem, strlen(pem), 0600, e);
    explicit_bzero(pem, strlen(pem));
    return err;
}

/* HAProxy refuses to start when the limit of open files does not allow its connections. */
static void bound_connections(struct router *r)
{
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_max != RLIM_INFINITY) {
        rlim_t most = l.rlim_max > 2 * RESERVED_FILES ? (l.rlim_max - RESERVED_FILES) / 2 : 100;
        if (r->options.max_connections > most) {
            log_warn("the limit of open files allows fewer connections", "connections=%llu",
                     (unsigned long long) most);
            r->options.max_connections = (unsigned) most;
        }
    }
}

/* ---- start and stop ---- */

static void on_stopped(void *ctx)
{
    loop_stop(((struct router *) ctx)->loop);
}

static void on_term(void *ctx)
{
    struct router *r = ctx;
    log_info("stopping; connections may end");
    notify_manager("STOPPING=1");
    driver_stop(r->driver, router_config_time(r->config->shutdown_timeout), on_stopped, r);
}

static void on_quit(void *ctx)
{
    log_info("stopping; HAProxy goes on");
    loop_stop(((struct router *) ctx)->loop);
}

static int start(struct router *r, struct err *e)
{
    const struct router_config *c = r->config;
    umask(077);
    r->loop = loop_new();
    int err = take_lock(r, e);
    if (err == 0) {
        err = read_cookie_key(r, e);
    }
    if (err == 0) {
        err = write_default_certificate(r, e);
    }
    if (err == 0) {
        err = api_client_from_kubeconfig(r->loop, c->kubeconfig, "tenet-router/" TENET_VERSION,
                                         &r->client, e);
    }
    if (err < 0) {
        return err;
    }
    router_config_plan_options(c, r->cookie_key, &r->options);
    bound_connections(r);
    const struct driver_config dc = {.loop = r->loop,
                                     .options = &r->options,
                                     .haproxy = c->haproxy,
                                     .bind_at_once = !c->bind_after_sync,
                                     .reload_ms = router_config_time(c->reload_interval)};
    err = driver_new(&dc, &r->driver, e);
    const struct routes_config rc = {.loop = r->loop,
                                     .client = r->client,
                                     .config = c,
                                     .options = &r->options,
                                     .driver = r->driver};
    if (err == 0) {
        err = routes_new(&rc, &r->routes, e);
    }
    if (err == 0) {
        err = listen_http(r, e);
    }
    if (err == 0) {
        r->term = loop_signal_new(r->loop, SIGTERM, on_term, r);
        r->interrupt = loop_signal_new(r->loop, SIGINT, on_term, r);
        r->quit = loop_signal_new(r->loop, SIGQUIT, on_quit, r);
        r->watchdog = watchdog_new(r->loop);
        notify_manager("READY=1");
        log_info("starting", "name=%s http=%u https=%u api=%s version=" TENET_VERSION, c->name,
                 c->http_port, c->https_port, api_client_server(r->client));
    }
    return err;
}

static void release(struct router *r)
{
    http_server_free(r->server);
    routes_free(r->routes);
    driver_free(r->driver);
    api_client_free(r->client);
    watchdog_free(r->watchdog);
    loop_signal_free(r->term);
    loop_signal_free(r->interrupt);
    loop_signal_free(r->quit);
    loop_free(r->loop);
    fd_close(r->lock_fd);
}

int router_run(const struct router_config *c, struct err *e)
{
    struct router r = {.config = c, .lock_fd = -1};
    int err = start(&r, e);
    if (err == 0) {
        loop_run(r.loop);
    }
    release(&r);
    return err;
}
