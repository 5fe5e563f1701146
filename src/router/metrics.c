/* SPDX-License-Identifier: Apache-2.0 */
#include "router/metrics.h"

#include "base/mem.h"
#include "wire/haproxy.h"

static void write_reload_time(const struct prom_metric *m, const void *facts, struct strbuf *out)
{
    prom_histogram_write(&((const struct router_facts *) facts)->driver.reload_time, m->name, "",
                         out);
}

static void write_change_time(const struct prom_metric *m, const void *facts, struct strbuf *out)
{
    prom_histogram_write(&((const struct router_facts *) facts)->driver.change_time, m->name, "",
                         out);
}

#define VALUE(name, type, help, member) PROM_VALUE(name, type, help, struct router_facts, member)

static const struct prom_metric rows[] = {
    VALUE("haproxy_up", "gauge", "Whether HAProxy answers.", driver.running),
    VALUE("tenet_router_synced", "gauge", "Whether HAProxy does what the routes say.",
          driver.synced),
    VALUE("tenet_router_routes_admitted", "gauge", "Routes that the router serves.", admitted),
    VALUE("tenet_router_routes_rejected", "gauge", "Routes that the router refuses.", rejected),
    VALUE("tenet_router_backends", "gauge", "Backends of HAProxy, those without a route included.",
          driver.backends),
    VALUE("tenet_router_reloads_total", "counter", "Reloads of HAProxy that succeeded.",
          driver.reloads),
    VALUE("tenet_router_failed_reloads_total", "counter", "Reloads of HAProxy that failed.",
          driver.failed_reloads),
    VALUE("tenet_router_starts_total", "counter", "Starts of HAProxy.", driver.starts),
    VALUE("tenet_router_commands_total", "counter", "Commands sent to HAProxy's runtime API.",
          driver.commands),
    VALUE("tenet_router_refused_commands_total", "counter", "Commands that HAProxy refused.",
          driver.refused_commands),
    PROM_WRITTEN("template_router_reload_seconds", "histogram",
                 "Seconds from the decision to reload HAProxy until the new worker serves.", "",
                 write_reload_time),
    PROM_WRITTEN("tenet_router_change_seconds", "histogram",
                 "Seconds from a change of routes or endpoints until HAProxy has it.", "",
                 write_change_time),
};
const struct prom_table router_metrics = {rows, ARRAY_SIZE(rows)};

/* Columns of "show stat" by their numbers in HAProxy's management guide, section 9.1. */
static const struct column {
    size_t number;
    const char *name, *label, *type, *help;
} columns[] = {
    {2, "current_queue", "", "gauge", "Requests that wait for a server."},
    {4, "current_sessions", "", "gauge", "Sessions now."},
    {5, "max_sessions", "", "gauge", "Most sessions at one time."},
    {7, "connections_total", "", "counter", "Sessions since the start of HAProxy's worker."},
    {8, "bytes_in_total", "", "counter", "Bytes received."},
    {9, "bytes_out_total", "", "counter", "Bytes sent."},
    {13, "connection_errors_total", "", "counter", "Connections to servers that failed."},
    {14, "response_errors_total", "", "counter", "Responses that failed."},
    {17, "up", "", "gauge", "Whether it is up."},
    {21, "check_failures_total", "", "counter", "Probes that failed."},
    {24, "downtime_seconds_total", "", "counter", "Seconds that it was down."},
    {33, "current_session_rate", "", "gauge", "Sessions in the last second."},
    {35, "max_session_rate", "", "gauge", "Most sessions in a second."},
    {40, "http_responses_total", "code=\"2xx\"", "counter", "Responses by their status."},
    {43, "http_responses_total", "code=\"5xx\"", "counter", NULL},
    {60, "http_average_response_latency_milliseconds", "", "gauge",
     "Average milliseconds until a response, of the last 1,024 requests."},
};

#define COLUMN_TYPE 32 /* 0: front end, 1: backend, 2: server. */
#define COLUMN_LAST 60

/* A number; "UP" and "OPEN" count as 1, other states as 0. */
static void write_value(const struct haproxy_word *w, struct strbuf *out)
{
    bool digits = w->size > 0;
    for (size_t i = 0; i < w->size; i++) {
        digits = digits && w->p[i] >= '0' && w->p[i] <= '9';
    }
    if (digits) {
        strbuf_add(out, w->p, w->size);
    } else {
        bool up = w->size >= 2 && (memcmp(w->p, "UP", 2) == 0 || memcmp(w->p, "OP", 2) == 0);
        strbuf_adds(out, up ? "1" : "0");
    }
}

static void write_route(const char *route, struct strbuf *out)
{
    const char *slash = strchr(route, '/');
    strbuf_addf(out, ",namespace=\"%.*s\",route=\"%s\"", (int) (slash - route), route, slash + 1);
}

static void write_sample(const struct driver *d, const struct haproxy_stat *s, size_t kind,
                         const struct column *c, struct strbuf *out)
{
    static const char *const kinds[] = {"frontend", "backend", "server"};
    const struct haproxy_word *name = &s->column[0], *server = &s->column[1];
    CLEANUP_FREE char *backend = haproxy_word_text(name);
    const char *route = kind > 0 ? driver_route_of(d, backend) : NULL;
    if (kind > 0 && !route) {
        return;
    }
    strbuf_addf(out, "haproxy_%s_%s{", kinds[kind], c->name);
    if (kind == 2) {
        strbuf_addf(out, "server=\"%.*s\"", (int) server->size, server->p);
    } else {
        strbuf_addf(out, "%s=\"%s\"", kinds[kind], backend);
    }
    if (route) {
        write_route(route, out);
    }
    strbuf_addf(out, "%s%s} ", *c->label ? "," : "", c->label);
    write_value(&s->column[c->number], out);
    strbuf_addc(out, '\n');
}

static void write_column(const struct driver *d, const char *csv, size_t size, size_t kind,
                         const struct column *c, struct strbuf *out)
{
    static const char *const kinds[] = {"frontend", "backend", "server"};
    struct haproxy_stat s;
    if (c->help) {
        CLEANUP_FREE char *name = xasprintf("haproxy_%s_%s", kinds[kind], c->name);
        prom_head(out, name, c->type, c->help);
    }
    for (const char *at = csv, *end = csv + size; haproxy_next_stat(&at, end, &s);) {
        const struct haproxy_word *type = &s.column[COLUMN_TYPE];
        if (s.n > COLUMN_LAST && type->size == 1 && (size_t) (type->p[0] - '0') == kind) {
            write_sample(d, &s, kind, c, out);
        }
    }
}

void metrics_write(const struct router_facts *f, const struct driver *d, const char *csv,
                   size_t size, struct strbuf *out)
{
    prom_write(&router_metrics, f, out);
    for (size_t kind = 0; csv && kind <= 2; kind++) {
        for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
            write_column(d, csv, size, kind, &columns[i], out);
        }
    }
    prom_process(out);
}
