/* SPDX-License-Identifier: Apache-2.0 */
#include "node/host/node_host_ports.h"

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/loop/hold.h"

#include <stdio.h>
#include <unistd.h>

LOG_MODULE("hostports");

#define PUBLISH_MS 2000 /* The longest time that an ADD waits until other nodes know its ports. */
#define RETRY_MS 10000  /* Interval of attempts for ports whose socket could not be bound. */

/* A port of the host, and the socket that occupies it. */
struct reserved_port {
    struct list node;
    struct cni_host_port port;
    int fd; /* -1: no socket occupies the port. */
    /* A connection of the host uses the port: it leads to the pod, except at the host's
     * loopback. */
    bool busy;
    bool closed;    /* Another program uses the port: it does not lead to the pod. */
    bool by_engine; /* The container's engine occupies the port, not this process. */
    bool wanted;    /* A pod that the datapath has asks for the port. */
    bool pending;   /* A pod that is being attached asks for the port. */
};

struct waiter {
    struct list node;
    datapath_done_fn *fn;
    void *ctx;
    uint64_t until_ms;
};

struct host_ports {
    struct loop *loop;
    const struct host_ports_ops *ops;
    void *ctx;
    struct datapath *dp; /* NULL: not known yet. */
    struct list reserved;
    struct list waiters;
    struct sdn_host_port *ports; /* The ports that lead to pods of this node. */
    size_t n_ports, n_closed, n_unpublished;
    struct sdn_host_port *published;
    size_t n_published;
    struct loop_timer *timer;
    uint64_t retry_ms; /* Time of the next attempt for ports without a socket. */
};

/* ---- reserving ---- */

static struct reserved_port *find_reserved(const struct host_ports *h,
                                           const struct cni_host_port *p)
{
    struct reserved_port *x;
    LIST_FOREACH (x, struct reserved_port, node, &h->reserved) {
        if (x->port.protocol == p->protocol && x->port.host_port == p->host_port &&
            x->port.host_ip == p->host_ip) {
            return x;
        }
    }
    return NULL;
}

static void close_socket(struct reserved_port *x)
{
    if (x->fd >= 0) {
        close(x->fd);
    }
    x->fd = -1;
}

static void reserved_port_free(struct reserved_port *x)
{
    list_remove(&x->node);
    close_socket(x);
    free(x);
}

static int refuse_own(const struct host_ports *h, const struct cni_host_port *p, struct err *e)
{
    const char *what = h->ops->own_port(h->ctx, p);
    return what ? err_set(e, -EADDRINUSE,
                          "%u/%s cannot be a pod's: this node uses it for %s; choose another "
                          "hostPort",
                          p->host_port, cni_protocol_name(p->protocol), what)
                : 0;
}

/* Tries to occupy 'x'.  -EADDRINUSE, with the reason: another program has the port. */
static int occupy(const struct host_ports *h, struct reserved_port *x, struct err *e)
{
    const struct cni_host_port *p = &x->port;
    enum hold_result result = HOLD_OK;
    uint32_t at = 0;
    int r = refuse_own(h, p, e);
    r = r < 0 ? r : hold_port(p->protocol, p->host_ip, p->host_port, &result, &x->fd, &at, e);
    if (r == 0 && result == HOLD_LISTENS) {
        r = err_set(e, -EADDRINUSE,
                    "%u/%s: a process of this host listens at %s:%u; stop it, or choose another "
                    "hostPort or hostIP",
                    p->host_port, cni_protocol_name(p->protocol), IP4_TEXT(at), p->host_port);
    }
    x->busy = r == 0 && result == HOLD_CONNECTION;
    x->closed = r < 0;
    return r;
}

static struct reserved_port *reserved_port_new(struct host_ports *h, const struct cni_host_port *p,
                                               bool by_engine)
{
    struct reserved_port *x = NEW(struct reserved_port);
    x->port = *p;
    x->by_engine = by_engine;
    x->fd = -1;
    list_push_back(&h->reserved, &x->node);
    return x;
}

static int reserve(struct host_ports *h, const struct cni_host_port *p, bool by_engine,
                   struct err *e)
{
    struct reserved_port *x = find_reserved(h, p);
    if (x && x->pending) {
        return err_set(e, -EADDRINUSE, "%u/%s is being given to another pod", p->host_port,
                       cni_protocol_name(p->protocol));
    }
    bool is_new = !x;
    x = x ? x : reserved_port_new(h, p, by_engine);
    int r = x->fd < 0 ? occupy(h, x, e) : refuse_own(h, p, e);
    x->pending = r == 0;
    if (x->by_engine) {
        close_socket(x);
        x->busy = false;
    }
    if (r < 0 && is_new) {
        reserved_port_free(x);
    }
    return r;
}

int host_ports_reserve(struct host_ports *h, const struct cni_runtime *r, struct err *e)
{
    size_t n = list_size(&h->reserved);
    int k =
        n + r->n_ports <= SDN_MAX_HOST_PORTS
            ? 0
            : err_set(e, -EADDRINUSE, "the pods of this node have %zu host ports, of at most %d", n,
                      SDN_MAX_HOST_PORTS);
    size_t i = 0;
    for (; k == 0 && i < r->n_ports; i++) {
        k = reserve(h, &r->ports[i], r->by_engine, e);
    }
    if (k < 0) {
        struct cni_runtime done = {.ports = r->ports, .n_ports = i ? i - 1 : 0};
        host_ports_settled(h, &done);
    }
    return k;
}

void host_ports_settled(struct host_ports *h, const struct cni_runtime *r)
{
    for (size_t i = 0; i < r->n_ports; i++) {
        struct reserved_port *x = find_reserved(h, &r->ports[i]);
        if (x) {
            x->pending = false;
        }
        if (x && !x->wanted) {
            reserved_port_free(x);
        }
    }
}

/* ---- what the pods have ---- */

static void close_port(struct host_ports *h, const struct dp_pod *pod, const char *text)
{
    log_error("a host port of a pod leads nowhere", "pod=%s/%s reason=\"%s\"", pod->pod_namespace,
              pod->pod_name, text);
    h->ops->trouble(h->ctx, pod->pod_namespace, pod->pod_name, "HostPortTaken", text);
}

/* Whether the port of an attached pod leads there. */
static bool keep(struct host_ports *h, const struct dp_pod *pod, const struct cni_host_port *p,
                 bool by_engine, bool again)
{
    struct reserved_port *x = find_reserved(h, p);
    struct err e = {0};
    bool is_new = !x, was_closed = x && x->closed;
    x = x ? x : reserved_port_new(h, p, by_engine);
    x->wanted = true;
    if (!x->by_engine && x->fd < 0 && (is_new || again) && occupy(h, x, &e) < 0 && !was_closed) {
        close_port(h, pod, e.text);
    }
    if (was_closed && !x->closed) {
        log_info("a host port leads to its pod again", "pod=%s/%s port=%u/%s", pod->pod_namespace,
                 pod->pod_name, p->host_port, cni_protocol_name(p->protocol));
    }
    return !x->closed;
}

static int compare(const void *a, const void *b)
{
    return sdn_host_port_compare(a, b);
}

/* Reads the pods' ports; returns whether h->ports has changed. */
static bool collect(struct host_ports *h, bool again)
{
    size_t n_pods, n = 0, cap = 0;
    struct sdn_host_port *list = NULL;
    const struct dp_pod *const *pods = datapath_pods(h->dp, &n_pods);
    struct reserved_port *x;
    LIST_FOREACH (x, struct reserved_port, node, &h->reserved) {
        x->wanted = false;
    }
    h->n_closed = 0;
    for (size_t i = 0; i < n_pods; i++) {
        CLEANUP(cni_runtime_done) struct cni_runtime r = {0};
        if (!pods[i]->host_ports || cni_host_ports_parse(pods[i]->host_ports, &r) < 0) {
            continue;
        }
        for (size_t k = 0; k < r.n_ports; k++) {
            if (!keep(h, pods[i], &r.ports[k], r.by_engine, again)) {
                h->n_closed++;
                continue;
            }
            list = grow(list, &cap, n + 1, sizeof *list);
            list[n++] = (struct sdn_host_port){.port = r.ports[k], .pod_ip = pods[i]->ip};
        }
    }
    if (n) {
        qsort(list, n, sizeof *list, compare);
    }
    CLEANUP_FREE char *before = sdn_host_ports_text(h->ports, h->n_ports);
    CLEANUP_FREE char *now = sdn_host_ports_text(list, n);
    free(h->ports);
    h->ports = list;
    h->n_ports = n;
    return !streq_null(before, now);
}

/* Closes the sockets of ports that no pod asks for. */
static void release(struct host_ports *h)
{
    struct reserved_port *x;
    LIST_FOREACH (x, struct reserved_port, node, &h->reserved) {
        if (!x->wanted && !x->pending) {
            reserved_port_free(x);
        }
    }
}

static void open_published(struct host_ports *h, datapath_done_fn *fn, void *fn_ctx)
{
    struct nat_port *open = xcalloc(h->n_ports + 1, sizeof *open);
    size_t n = 0;
    for (size_t i = 0; i < h->n_ports; i++) {
        const struct reserved_port *x = find_reserved(h, &h->ports[i].port);
        if (sdn_host_ports_have(h->published, h->n_published, &h->ports[i])) {
            open[n++] = (struct nat_port){.is = h->ports[i], .not_at_loopback = x && x->busy};
        }
    }
    h->n_unpublished = h->n_ports - n;
    h->ops->open(h->ctx, open, n, fn, fn_ctx);
}

/* ---- time ---- */

static void arm(struct host_ports *h)
{
    uint64_t now = loop_now_ms(h->loop), next = UINT64_MAX;
    const struct reserved_port *x;
    const struct waiter *w;
    LIST_FOREACH (x, struct reserved_port, node, &h->reserved) {
        if (x->busy || x->closed) {
            next = h->retry_ms;
        }
    }
    LIST_FOREACH (w, struct waiter, node, &h->waiters) {
        next = MIN(next, w->until_ms);
    }
    if (next != UINT64_MAX) {
        loop_timer_arm(h->timer, next > now ? next - now : 0);
    }
}

static void notify_waiters(struct host_ports *h, bool all)
{
    uint64_t now = loop_now_ms(h->loop);
    struct waiter *w;
    LIST_FOREACH (w, struct waiter, node, &h->waiters) {
        if (!all && w->until_ms > now) {
            continue;
        }
        if (!all) {
            log_warn("host ports are closed to other hosts until the master has them", "ports=%zu",
                     h->n_unpublished);
        }
        list_remove(&w->node);
        open_published(h, w->fn, w->ctx);
        free(w);
    }
}

static void on_time(void *ctx)
{
    struct host_ports *h = ctx;
    if (loop_now_ms(h->loop) >= h->retry_ms) {
        host_ports_update(h, NULL, false, NULL, NULL);
    }
    notify_waiters(h, false);
    arm(h);
}

static void wait_for_others(struct host_ports *h, datapath_done_fn *fn, void *fn_ctx)
{
    struct waiter *w = NEW(struct waiter);
    w->fn = fn;
    w->ctx = fn_ctx;
    w->until_ms = loop_now_ms(h->loop) + PUBLISH_MS;
    list_push_back(&h->waiters, &w->node);
}

/* ---- the whole ---- */

void host_ports_update(struct host_ports *h, struct datapath *dp, bool adding, datapath_done_fn *fn,
                       void *fn_ctx)
{
    h->dp = dp ? dp : h->dp;
    if (!h->dp) {
        return;
    }
    uint64_t now = loop_now_ms(h->loop);
    bool again = now >= h->retry_ms;
    h->retry_ms = again ? now + RETRY_MS : h->retry_ms;
    bool changed = collect(h, again);
    release(h);
    if (changed) {
        CLEANUP_FREE char *text = sdn_host_ports_text(h->ports, h->n_ports);
        h->ops->publish(h->ctx, text);
        h->ops->changed(h->ctx);
    }
    size_t missing = 0;
    for (size_t i = 0; i < h->n_ports; i++) {
        missing += !sdn_host_ports_have(h->published, h->n_published, &h->ports[i]);
    }
    h->n_unpublished = missing;
    if (adding && missing) {
        wait_for_others(h, fn, fn_ctx);
    } else if (fn || changed || again) {
        open_published(h, fn, fn_ctx);
    }
    arm(h);
}

void host_ports_published(struct host_ports *h, struct sdn_host_port *list, size_t n)
{
    CLEANUP_FREE char *before = sdn_host_ports_text(h->published, h->n_published);
    CLEANUP_FREE char *now = sdn_host_ports_text(list, n);
    free(h->published);
    h->published = list;
    h->n_published = n;
    if (streq_null(before, now) || !h->dp) {
        return;
    }
    open_published(h, NULL, NULL);
    if (h->n_unpublished == 0) {
        notify_waiters(h, true);
    }
}

size_t host_ports_get(const struct host_ports *h, const struct sdn_host_port **ret)
{
    *ret = h->ports;
    return h->n_ports;
}

void host_ports_get_stats(const struct host_ports *h, struct host_ports_stats *ret)
{
    *ret = (struct host_ports_stats){
        .ports = h->n_ports + h->n_closed, .closed = h->n_closed, .unpublished = h->n_unpublished};
}

struct host_ports *host_ports_new(struct loop *l, const struct host_ports_ops *ops, void *ctx)
{
    struct host_ports *h = NEW(struct host_ports);
    h->loop = l;
    h->ops = ops;
    h->ctx = ctx;
    list_init(&h->reserved);
    list_init(&h->waiters);
    h->timer = loop_timer_new(l, on_time, h);
    return h;
}

struct host_ports *host_ports_free(struct host_ports *h)
{
    if (!h) {
        return NULL;
    }
    struct reserved_port *x;
    LIST_FOREACH (x, struct reserved_port, node, &h->reserved) {
        reserved_port_free(x);
    }
    struct waiter *w;
    LIST_FOREACH (w, struct waiter, node, &h->waiters) {
        list_remove(&w->node);
        free(w);
    }
    free(h->ports);
    free(h->published);
    loop_timer_free(h->timer);
    free(h);
    return NULL;
}
