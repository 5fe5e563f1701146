/* SPDX-License-Identifier: Apache-2.0 */
/* The etcd v3 backend: its endpoints and its single connection. */
#include "base/log.h"
#include "base/timeutil.h"
#include "net/loop/process.h"
#include "net/loop/sock.h"
#include "store/etcd/etcd_store.h"

#include <stdio.h>

LOG_MODULE("store");

#define LOST_MS 5000
#define RETRY_MIN_MS 100
#define RETRY_MAX_MS 5000
#define MAX_ENDPOINTS 16
#define MAX_PEM (1u << 20)

static void connect_next(struct etcd_store *s);

static const struct etcd_endpoint *endpoint_now(const struct etcd_store *s)
{
    return &s->endpoints[s->endpoint];
}

/* The first round over the endpoints has no delay, as another one may work. */
static void retry_later(struct etcd_store *s)
{
    unsigned n = (unsigned) s->n_endpoints;
    uint64_t delay = RETRY_MIN_MS;
    if (s->attempt >= n) {
        uint32_t seed = (uint32_t) time_mono_ns();
        delay = time_backoff_ms(s->attempt - n, RETRY_MIN_MS, RETRY_MAX_MS, seed);
    }
    s->attempt++;
    s->endpoint = (s->endpoint + 1) % s->n_endpoints;
    loop_timer_arm(s->retry, delay);
}

void etcd_fail(struct etcd_store *s, const char *fmt, ...)
{
    if (s->state == ETCD_DOWN) {
        return;
    }
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(s->reason, sizeof s->reason, fmt, ap);
    va_end(ap);
    static struct log_limit limit = {.burst = 5};
    log_limited(&limit, LOG_WARN, "etcd connection failed", "endpoint=%s:%u reason=\"%s\"",
                endpoint_now(s)->name, endpoint_now(s)->port, s->reason);
    s->state = ETCD_DOWN;
    s->rpc = rpc_free(s->rpc);
    if (!loop_timer_armed(s->lost) && !s->lost_reported) {
        loop_timer_arm(s->lost, LOST_MS);
    }
    retry_later(s);
    etcd_sync_disconnected(s);
    etcd_reads_disconnected(s);
    etcd_writes_disconnected(s);
}

void etcd_recovered(struct etcd_store *s)
{
    log_info("etcd connected", "endpoint=%s:%u revision=%llu", endpoint_now(s)->name,
             endpoint_now(s)->port, (unsigned long long) s->revision);
    s->attempt = 0;
    loop_timer_disarm(s->lost);
    if (s->lost_reported) {
        s->lost_reported = false;
        store_report_resumed(&s->base);
    }
}

void etcd_lost(struct etcd_store *s, const char *reason)
{
    log_error("etcd lost", "reason=\"%s\"", reason);
    s->lost_reported = true;
    loop_timer_disarm(s->lost);
    store_report_lost(&s->base, reason);
    etcd_reads_fail(s, -EAGAIN);
    etcd_writes_fail(s, -EAGAIN);
}

static void on_lost(void *ctx)
{
    struct etcd_store *s = ctx;
    s->needs_snapshot |= !s->base.watcher->resumed;
    etcd_lost(s, s->reason);
    etcd_sync_restart(s);
}

static void on_up(void *ctx)
{
    etcd_sync_connected(ctx);
}

static void on_down(void *ctx, const char *reason)
{
    etcd_fail(ctx, "%s", reason);
}

static void connect_next(struct etcd_store *s)
{
    static const struct h2_ops ops = {on_up, on_down};
    const struct etcd_endpoint *ep = endpoint_now(s);
    struct err e = {0};
    s->state = ETCD_CONNECTING;
    struct h2_address address = {
        .address = ep->address, .port = ep->port, .name = ep->name, .tls = s->tls};
    if (rpc_connect(s->base.loop, &address, &ops, s, &s->rpc, &e) < 0) {
        etcd_fail(s, "%s", e.text);
    }
}

static void on_retry(void *ctx)
{
    connect_next(ctx);
}

/* ---- interface ---- */

static void etcd_start(struct store *base)
{
    struct etcd_store *s = CONTAINER_OF(base, struct etcd_store, base);
    loop_timer_arm(s->retry, 0);
}

static void etcd_write(struct store *base, struct store_write *w)
{
    etcd_writes_add(CONTAINER_OF(base, struct etcd_store, base), w);
}

static void etcd_sync_read(struct store *base, struct store_write *w)
{
    etcd_reads_add(CONTAINER_OF(base, struct etcd_store, base), w);
}

static void store_parts_free(struct etcd_store *s)
{
    for (size_t i = 0; i < s->n_endpoints; i++) {
        free(s->endpoints[i].name);
        free(s->endpoints[i].address);
    }
    free(s->endpoints);
    tls_context_free(s->tls);
    loop_timer_free(s->retry);
    loop_timer_free(s->lost);
    etcd_sync_done(s);
}

static void etcd_close(struct store *base)
{
    struct etcd_store *s = CONTAINER_OF(base, struct etcd_store, base);
    s->state = ETCD_DOWN;
    s->rpc = rpc_free(s->rpc);
    etcd_sync_disconnected(s);
    etcd_reads_disconnected(s);
    etcd_writes_disconnected(s);
    etcd_reads_fail(s, -EAGAIN);
    etcd_writes_done(s);
    store_parts_free(s);
}

/* '*https': whether the earlier ones use it; 'first': there are none. */
static int endpoint_parse(const char *text, size_t size, bool first, bool *https,
                          struct etcd_endpoint *ret, struct err *e)
{
    CLEANUP_FREE char *url = xstrndup(text, size);
    bool tls = str_has_prefix(url, "https://");
    const char *rest = tls ? url + 8 : str_has_prefix(url, "http://") ? url + 7 : "";
    CLEANUP_FREE char *host = xstrdup(rest);
    size_t n = strlen(host);
    if (n && host[n - 1] == '/') {
        host[n - 1] = '\0';
    }
    char *colon = strrchr(host, ':');
    uint64_t port = 0;
    if (!colon || colon == host || str_to_u64(colon + 1, UINT16_MAX, &port) < 0 || !port) {
        return err_set(e, -EINVAL,
                       "etcd endpoint \"%s\": not https://HOST:PORT or http://HOST:PORT", url);
    }
    *colon = '\0';
    if (!first && tls != *https) {
        return err_set(e, -EINVAL, "etcd endpoint \"%s\": either all are https or all are http",
                       url);
    }
    char *address = NULL;
    int r = sock_resolve(host, &address, e);
    if (r < 0) {
        return err_prefix(e, "etcd endpoint \"%s\"", url), r;
    }
    *https = tls;
    *ret = (struct etcd_endpoint){TAKE(host), address, (uint16_t) port};
    return 0;
}

static int endpoints_parse(struct etcd_store *s, const char *text, bool *https, struct err *e)
{
    s->endpoints = xcalloc(MAX_ENDPOINTS, sizeof *s->endpoints);
    for (;;) {
        size_t n = strcspn(text, ",");
        if (s->n_endpoints == MAX_ENDPOINTS) {
            return err_set(e, -E2BIG, "etcd endpoints: more than %d", MAX_ENDPOINTS);
        }
        int r =
            endpoint_parse(text, n, s->n_endpoints == 0, https, &s->endpoints[s->n_endpoints], e);
        if (r < 0) {
            return r;
        }
        s->n_endpoints++;
        if (!text[n]) {
            return 0;
        }
        text += n + 1;
    }
}

/* The text of a PEM file; NULL without a path. */
static int pem_read(const char *path, char **ret, struct err *e)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT_MAX(MAX_PEM);
    int r = path ? file_read(path, MAX_PEM, &text, e) : 0;
    if (r == 0 && path) {
        *ret = strbuf_steal(&text);
    }
    return r;
}

static int tls_open(struct etcd_store *s, const struct store_config *cfg, bool https, struct err *e)
{
    CLEANUP_FREE char *ca = NULL;
    CLEANUP_FREE char *cert = NULL;
    CLEANUP_FREE char *key = NULL;
    if (!https) {
        return cfg->ca_file || cfg->cert_file || cfg->key_file
                   ? err_set(e, -EINVAL, "etcd: certificates are given, but the endpoints are http")
                   : 0;
    }
    int r = pem_read(cfg->ca_file, &ca, e);
    if (r < 0 || (r = pem_read(cfg->cert_file, &cert, e)) < 0 ||
        (r = pem_read(cfg->key_file, &key, e)) < 0) {
        return r;
    }
    struct tls_client_config tls = {.ca = ca, .cert = cert, .key = key, .http2 = true};
    r = tls_client_new(&tls, &s->tls, e);
    return r < 0 ? (err_prefix(e, "etcd"), r) : 0;
}

int store_open_etcd(struct loop *l, const struct store_config *cfg, struct store **ret,
                    struct err *e)
{
    static const struct store_ops ops = {
        .start = etcd_start, .write = etcd_write, .sync = etcd_sync_read, .close = etcd_close};
    struct etcd_store *s = NEW(struct etcd_store);
    store_init(&s->base, &ops, l);
    s->history = cfg->history ? cfg->history : STORE_DEFAULT_HISTORY;
    s->retry = loop_timer_new(l, on_retry, s);
    s->lost = loop_timer_new(l, on_lost, s);
    etcd_sync_init(s);
    etcd_reads_init(s);
    etcd_writes_init(s);
    bool https = false;
    int r = endpoints_parse(s, cfg->endpoints ? cfg->endpoints : "", &https, e);
    if (r == 0) {
        r = tls_open(s, cfg, https, e);
    }
    if (r < 0) {
        store_parts_free(s);
        free(s);
        return r;
    }
    *ret = &s->base;
    return 0;
}
