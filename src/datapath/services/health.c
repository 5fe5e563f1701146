/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/services/health.h"

#include "base/log.h"
#include "base/map.h"
#include "net/http/http.h"
#include "net/loop/sock.h"
#include "wire/json.h"

#include <stdio.h>

LOG_MODULE("proxy");

#define MAX_CONNS 64 /* Limit of one service. */

struct asked {
    char *ns, *name;
    uint16_t port;
    size_t n_local;
    struct http_server *server;
};

struct service_health {
    struct loop *loop;
    struct smap asked; /* By "namespace/name". */
};

static void asked_free(void *p)
{
    struct asked *a = p;
    http_server_free(a->server);
    free(a->ns);
    free(a->name);
    free(a);
}

static void answer(void *ctx, struct http_exchange *x)
{
    const struct asked *a = ctx;
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    CLEANUP(json_free) struct json *v = json_object();
    struct json *service = json_ensure_object(v, "service");
    char weight[24];
    snprintf(weight, sizeof weight, "%zu", a->n_local);
    json_set_string(service, "namespace", a->ns);
    json_set_string(service, "name", a->name);
    json_set_int(v, "localEndpoints", (int64_t) a->n_local);
    json_set_bool(v, "serviceProxyHealthy", true);
    json_write(v, 0, &out);
    strbuf_addc(&out, '\n');
    http_set_header(x, "X-Content-Type-Options", "nosniff");
    http_set_header(x, "X-Load-Balancing-Endpoint-Weight", weight);
    http_respond(x, a->n_local ? 200 : 503, "application/json", out.data, out.size);
}

static struct asked *open_port(struct service_health *h, const char *ns, const char *name,
                               uint16_t port)
{
    static struct log_limit limit;
    const struct http_limits limits = {.max_head = 8192, .max_body = 1, .max_conns = MAX_CONNS};
    char address[32];
    struct err e = {0};
    int fd;
    snprintf(address, sizeof address, "0.0.0.0:%u", port);
    if (sock_listen_tcp(address, &fd, &e) < 0) {
        log_limited(&limit, LOG_WARN, "a service's health cannot be told",
                    "service=%s/%s error=\"%s\"", ns, name, e.text);
        return NULL;
    }
    struct asked *a = NEW(struct asked);
    a->ns = xstrdup(ns);
    a->name = xstrdup(name);
    a->port = port;
    a->server = http_server_new(h->loop, &limits, answer, a);
    if (http_server_add_listener(a->server, fd, &e) < 0) {
        log_limited(&limit, LOG_WARN, "a service's health cannot be told",
                    "service=%s/%s error=\"%s\"", ns, name, e.text);
        asked_free(a);
        return NULL;
    }
    return a;
}

void service_health_set(struct service_health *h, const char *ns, const char *name, uint16_t port,
                        size_t n_local)
{
    CLEANUP_FREE char *key = xasprintf("%s/%s", ns, name);
    struct asked *a = smap_get(&h->asked, key);
    if (a && a->port != port) {
        smap_remove(&h->asked, key);
        a = NULL;
    }
    if (!a && port) {
        a = open_port(h, ns, name, port);
        if (a) {
            smap_set(&h->asked, key, a);
        }
    }
    if (a) {
        a->n_local = n_local;
    }
}

struct service_health *service_health_new(struct loop *l)
{
    struct service_health *h = NEW(struct service_health);
    h->loop = l;
    smap_init(&h->asked, asked_free);
    return h;
}

struct service_health *service_health_free(struct service_health *h)
{
    if (h) {
        smap_done(&h->asked);
        free(h);
    }
    return NULL;
}
