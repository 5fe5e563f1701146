/* SPDX-License-Identifier: Apache-2.0 */
/* Listeners, routes, and the answers that are one document. */
#include "base/log.h"
#include "base/mem.h"
#include "base/prom.h"
#include "kubelet/server/server_priv.h"
#include "net/loop/sock.h"

#include <stdio.h>

LOG_MODULE("kubelet");

#define MAX_CONNS 2000

/* ---- documents ---- */

void kubelet_respond(struct http_exchange *x, int status, const char *text)
{
    http_set_header(x, "X-Content-Type-Options", "nosniff");
    http_respond(x, status, "text/plain; charset=utf-8", text, strlen(text));
}

/* 'v' is taken over. */
static void respond_json(struct http_exchange *x, struct json *v)
{
    CLEANUP(json_free) struct json *owned = v;
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    json_write(owned, 0, &b);
    http_respond(x, 200, "application/json", b.data, b.size);
}

static void get_healthz(struct kubelet_server *s, struct http_exchange *x, const char *rest)
{
    const char *problem = s->ops->healthz(s->ctx);
    kubelet_respond(x, problem ? 500 : 200, problem ? problem : "ok");
}

static void get_pods(struct kubelet_server *s, struct http_exchange *x, const char *rest)
{
    respond_json(x, s->ops->pods(s->ctx));
}

static void get_running_pods(struct kubelet_server *s, struct http_exchange *x, const char *rest)
{
    respond_json(x, s->ops->running_pods(s->ctx));
}

static void respond_metrics(struct kubelet_server *s, struct http_exchange *x,
                            enum kubelet_metrics which)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    s->ops->metrics(s->ctx, which, &b);
    http_respond(x, 200, PROM_CONTENT_TYPE, strbuf_cstr(&b), b.size);
}

static void get_metrics(struct kubelet_server *s, struct http_exchange *x, const char *rest)
{
    respond_metrics(s, x, KUBELET_METRICS_OWN);
}

static void get_resource_metrics(struct kubelet_server *s, struct http_exchange *x,
                                 const char *rest)
{
    respond_metrics(s, x, KUBELET_METRICS_RESOURCE);
}

static void get_cadvisor_metrics(struct kubelet_server *s, struct http_exchange *x,
                                 const char *rest)
{
    respond_metrics(s, x, KUBELET_METRICS_CADVISOR);
}

static void get_probe_metrics(struct kubelet_server *s, struct http_exchange *x, const char *rest)
{
    respond_metrics(s, x, KUBELET_METRICS_PROBES);
}

static void get_stats(struct kubelet_server *s, struct http_exchange *x, const char *rest)
{
    const char *brief = http_query(x, "only_cpu_and_memory");
    respond_json(x, s->ops->stats(s->ctx, brief && (streq(brief, "true") || streq(brief, "1"))));
}

static void get_config(struct kubelet_server *s, struct http_exchange *x, const char *rest)
{
    respond_json(x, s->ops->config(s->ctx));
}

/* ---- paths of containers ---- */

void kubelet_target_done(struct kubelet_target *t)
{
    free(t->namespace);
    free(t->pod);
    free(t->uid);
    free(t->container);
    *t = (struct kubelet_target){0};
}

static char *take_segment(const char **at)
{
    *at += **at == '/';
    size_t n = strcspn(*at, "/");
    const char *s = *at;
    *at += n;
    return n ? xstrndup(s, n) : NULL;
}

/* Reads "NS/POD[/UID][/CONTAINER]"; the container is the last part. */
static bool read_target(const char *rest, bool container, struct kubelet_target *t)
{
    t->namespace = take_segment(&rest);
    t->pod = take_segment(&rest);
    t->uid = take_segment(&rest);
    if (container) {
        t->container = take_segment(&rest);
        if (!t->container) {
            t->container = TAKE(t->uid);
        }
    }
    return t->pod && (!container || t->container) && !*rest;
}

static void with_target(struct kubelet_server *s, struct http_exchange *x, const char *rest,
                        bool container,
                        void (*fn)(struct kubelet_server *s, struct http_exchange *x,
                                   const struct kubelet_target *t))
{
    struct kubelet_target t = {0};
    if (read_target(rest, container, &t)) {
        fn(s, x, &t);
    } else {
        kubelet_respond(x, 404, "404 page not found");
    }
    kubelet_target_done(&t);
}

static void do_exec(struct kubelet_server *s, struct http_exchange *x, const char *rest)
{
    with_target(s, x, rest, true, kubelet_exec);
}

static void do_run(struct kubelet_server *s, struct http_exchange *x, const char *rest)
{
    with_target(s, x, rest, true, kubelet_run_command);
}

static void do_attach(struct kubelet_server *s, struct http_exchange *x, const char *rest)
{
    with_target(s, x, rest, true, kubelet_attach);
}

static void do_forward(struct kubelet_server *s, struct http_exchange *x, const char *rest)
{
    with_target(s, x, rest, false, kubelet_port_forward);
}

static void get_container_logs(struct kubelet_server *s, struct http_exchange *x, const char *rest)
{
    with_target(s, x, rest, true, kubelet_container_logs);
}

static void get_logs(struct kubelet_server *s, struct http_exchange *x, const char *rest)
{
    kubelet_node_logs(s, x, rest);
}

/* ---- routes ---- */

struct route {
    const char *path;  /* Ends in '/': all that is below it. */
    const char *part;  /* The subresource of nodes; NULL: a process is begun. */
    const char *other; /* Another one that is enough; NULL: there is none. */
    bool get, post;    /* The methods. */
    void (*fn)(struct kubelet_server *s, struct http_exchange *x, const char *rest);
};
/* The subresources are those of Kubernetes (pkg/kubelet/server/auth.go). */
static const struct route routes[] = {
    {"/healthz", "healthz", "proxy", true, false, get_healthz},
    {"/pods", "pods", "proxy", true, false, get_pods},
    {"/runningpods/", "pods", "proxy", true, false, get_running_pods},
    {"/metrics", "metrics", NULL, true, false, get_metrics},
    {"/metrics/resource", "metrics", NULL, true, false, get_resource_metrics},
    {"/metrics/cadvisor", "metrics", NULL, true, false, get_cadvisor_metrics},
    {"/metrics/probes", "metrics", NULL, true, false, get_probe_metrics},
    {"/stats/summary", "stats", NULL, true, true, get_stats},
    {"/configz", "configz", "proxy", true, false, get_config},
    {"/logs/", "log", NULL, true, false, get_logs},
    {"/containerLogs/", "proxy", NULL, true, false, get_container_logs},
    {"/run/", NULL, NULL, false, true, do_run},
    {"/exec/", NULL, NULL, true, true, do_exec},
    {"/attach/", NULL, NULL, true, true, do_attach},
    {"/portForward/", NULL, NULL, true, true, do_forward},
};

static const struct route *find_route(const char *path, const char **ret_rest)
{
    for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
        size_t n = strlen(routes[i].path);
        bool below = routes[i].path[n - 1] == '/';
        if (below ? str_has_prefix(path, routes[i].path) : streq(path, routes[i].path)) {
            *ret_rest = path + n;
            return &routes[i];
        }
    }
    return NULL;
}

/* A request whose right is being checked. */
struct request {
    struct kubelet_server *server;
    struct list node;
    struct http_exchange *x;
    const struct route *route;
    const char *rest;
    struct access_check *check;
};

static void checked(void *ctx, int error, const char *text)
{
    struct request *q = ctx;
    struct http_exchange *x = q->x;
    struct kubelet_server *s = q->server;
    const struct route *route = q->route;
    const char *rest = q->rest;
    list_remove(&q->node);
    free(q);
    if (error == 0 && route->fn) {
        route->fn(s, x, rest);
        return;
    }
    if (error == 0) {
        kubelet_respond(x, 404, "404 page not found");
        return;
    }
    if (error == -EPERM) {
        http_set_header(x, "WWW-Authenticate", "Bearer");
    }
    kubelet_respond(x, error == -EPERM ? 401 : error == -EACCES ? 403 : 503, text);
}

static void handle(void *ctx, struct http_exchange *x)
{
    struct kubelet_server *s = ctx;
    const char *method = http_method(x), *rest = NULL;
    const struct route *route = find_route(http_path(x), &rest);
    bool get = streq(method, "GET"), post = streq(method, "POST");
    /* Without a right nobody learns which paths there are. */
    const char *part = route ? route->part : "proxy";
    static const struct route none = {.fn = NULL};
    if (route && !(get && route->get) && !(post && route->post)) {
        kubelet_respond(x, 405, "Method Not Allowed");
        return;
    }
    if (!route) {
        route = &none;
    }
    struct request *q = NEW(struct request);
    *q = (struct request){.server = s, .x = x, .route = route, .rest = rest};
    list_push_back(&s->requests, &q->node);
    q->check = access_begin(s->access, x, get ? "get" : "create", part, route->other, checked, q);
}

static void handle_local(void *ctx, struct http_exchange *x)
{
    if (streq(http_method(x), "GET") && streq(http_path(x), "/healthz")) {
        get_healthz(ctx, x, "");
    } else {
        kubelet_respond(x, 404, "404 page not found");
    }
}

/* ---- creation and end ---- */

int kubelet_server_port(const struct kubelet_server *s)
{
    return s->port;
}

static struct tls_server_config tls_config(const struct kubelet_server *s)
{
    return (struct tls_server_config){s->cert, s->key, s->client_ca};
}

int kubelet_server_reload(struct kubelet_server *s, struct err *e)
{
    struct tls_server_config cfg = tls_config(s);
    return tls_server_reload(s->tls, &cfg, e);
}

static int serve(struct kubelet_server *s, const struct kubelet_server_config *cfg, struct err *e)
{
    CLEANUP(fd_close) int fd = -1;
    struct http_limits limits = {.max_conns = MAX_CONNS};
    struct tls_server_config tls = tls_config(s);
    int r = tls_server_new(&tls, &s->tls, e);
    if (r < 0 || (r = sock_listen_tcp(cfg->address, &fd, e)) < 0) {
        return r;
    }
    s->port = sock_local_port(fd);
    s->https = http_server_new(s->loop, &limits, handle, s);
    r = http_server_add_listener_tls(s->https, fd_take(&fd), s->tls, e);
    if (r < 0 || !cfg->healthz) {
        return r;
    }
    if ((r = sock_listen_tcp(cfg->healthz, &fd, e)) < 0) {
        return r;
    }
    s->healthz = http_server_new(s->loop, &limits, handle_local, s);
    return http_server_add_listener(s->healthz, fd_take(&fd), e);
}

static char *copy(const char *s)
{
    return s ? xstrdup(s) : NULL;
}

int kubelet_server_new(struct loop *l, const struct kubelet_server_config *cfg,
                       const struct kubelet_server_ops *ops, void *ctx, struct kubelet_server **ret,
                       struct err *e)
{
    CLEANUP(kubelet_server_free) struct kubelet_server *s = NEW(struct kubelet_server);
    s->loop = l;
    s->ops = ops;
    s->ctx = ctx;
    s->runtime = cfg->runtime;
    s->inotify = -1;
    s->cert = copy(cfg->cert);
    s->key = copy(cfg->key);
    s->client_ca = copy(cfg->client_ca);
    s->log_dir = copy(cfg->log_dir);
    list_init(&s->requests);
    list_init(&s->streams);
    list_init(&s->runs);
    list_init(&s->logs);
    s->access = access_new(l, cfg->api, cfg->node, cfg->master, cfg->always_allow);
    int r = kubelet_logs_begin(s, e);
    if (r < 0 || (r = serve(s, cfg, e)) < 0) {
        return r;
    }
    log_info("serving", "address=%s port=%d", cfg->address, s->port);
    *ret = TAKE(s);
    return 0;
}

struct kubelet_server *kubelet_server_free(struct kubelet_server *s)
{
    if (!s) {
        return NULL;
    }
    kubelet_streams_end(s);
    kubelet_runs_end(s);
    kubelet_logs_end(s);
    while (!list_is_empty(&s->requests)) {
        struct request *q = CONTAINER_OF(list_pop_front(&s->requests), struct request, node);
        access_cancel(q->check);
        kubelet_respond(q->x, 503, "the server is shutting down");
        free(q);
    }
    access_free(s->access);
    http_server_free(s->https);
    http_server_free(s->healthz);
    tls_context_free(s->tls);
    free(s->cert);
    free(s->key);
    free(s->client_ca);
    free(s->log_dir);
    free(s);
    return NULL;
}
