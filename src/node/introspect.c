/* SPDX-License-Identifier: Apache-2.0 */
#include "node/introspect.h"

#include "net/http.h"
#include "net/sock.h"
#include "node/introspect_priv.h"

#include <unistd.h>

#define MAX_CONNS 64
#define JSON_TYPE "application/json"
#define COUNT_MS 10000 /* A flow that goes takes with it at most what it dropped since. */

struct introspect {
    struct introspect_config cfg;
    char *socket_path;
    struct http_server *local, *open;
    struct loop_timer *count;
    bool counting;
    struct drop_counts drops;
    struct nat_drops host_drops;
};

/* A question that the switch has to answer first. */
struct question {
    struct introspect *i;
    struct http_exchange *x;
    struct json *answer; /* Of a trace, so far. */
    struct explain_question asked;
};

static struct introspect_view view_of(const struct introspect *i)
{
    struct introspect_view v = {0};
    i->cfg.view(i->cfg.ctx, &v);
    return v;
}

/* ---- answers ---- */

static void answer_json(struct http_exchange *x, int status, const struct json *v)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    json_write(v, 0, &out);
    strbuf_addc(&out, '\n');
    http_respond(x, status, JSON_TYPE, out.data, out.size);
}

static void answer_error(struct http_exchange *x, int status, const char *text)
{
    CLEANUP(json_free) struct json *v = json_object();
    json_set_string(v, "error", text);
    answer_json(x, status, v);
}

static struct question *question_new(struct introspect *i, struct http_exchange *x)
{
    struct question *q = NEW(struct question);
    q->i = i;
    q->x = x;
    return q;
}

static void question_free(struct question *q)
{
    json_free(q->answer);
    free(q);
}

/* ---- metrics ---- */

static void answer_metrics(struct introspect *i, struct http_exchange *x)
{
    struct introspect_view v = view_of(i);
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    nat_drops_update(&i->host_drops); /* Those as they were when the kernel does not answer. */
    introspect_metrics(&v, &i->drops, &i->host_drops, &out);
    http_respond(x, 200, PROM_CONTENT_TYPE, out.data, out.size);
}

/* The totals as they were are told when the switch cannot be asked. */
static void metrics_counted(void *ctx, int error, const char *text,
                            const struct of_flow_list *flows, const struct of_counters *counters)
{
    struct question *q = ctx;
    if (error == 0) {
        drop_counts_update(&q->i->drops, flows, counters);
    }
    answer_metrics(q->i, q->x);
    question_free(q);
}

static void on_metrics(struct introspect *i, struct http_exchange *x)
{
    struct introspect_view v = view_of(i);
    if (v.datapath && datapath_drops(v.datapath, i->drops.total) == -EOPNOTSUPP) {
        datapath_flows(v.datapath, true, metrics_counted, question_new(i, x));
    } else {
        answer_metrics(i, x);
    }
}

static void counted(void *ctx, int error, const char *text, const struct of_flow_list *flows,
                    const struct of_counters *counters)
{
    struct introspect *i = ctx;
    i->counting = false;
    nat_drops_update(&i->host_drops);
    if (error == 0) {
        drop_counts_update(&i->drops, flows, counters);
    }
}

static void on_count(void *ctx)
{
    struct introspect *i = ctx;
    struct introspect_view v = view_of(i);
    loop_timer_arm(i->count, COUNT_MS);
    if (!v.datapath || i->counting) {
        return;
    }
    if (datapath_drops(v.datapath, i->drops.total) != -EOPNOTSUPP) {
        nat_drops_update(&i->host_drops);
        return;
    }
    i->counting = true;
    datapath_flows(v.datapath, true, counted, i);
}

/* ---- health and state ---- */

static void on_health(struct introspect *i, struct http_exchange *x)
{
    struct introspect_view v = view_of(i);
    const char *text = v.ready ? "ok" : v.reason;
    http_respond(x, v.ready ? 200 : 503, "text/plain; charset=utf-8", text, strlen(text));
}

static void on_state(struct introspect *i, struct http_exchange *x)
{
    struct introspect_view v = view_of(i);
    CLEANUP(json_free) struct json *state = introspect_state(&v);
    answer_json(x, 200, state);
}

/* ---- flows ---- */

static void flows_read(void *ctx, int error, const char *text, const struct of_flow_list *flows,
                       const struct of_counters *counters)
{
    struct question *q = ctx;
    if (error < 0) {
        answer_error(q->x, 503, text);
    } else {
        struct introspect_view v = view_of(q->i);
        CLEANUP(json_free) struct json *answer = introspect_flows(&v, flows, counters);
        answer_json(q->x, 200, answer);
    }
    question_free(q);
}

static void on_flows(struct introspect *i, struct http_exchange *x)
{
    struct introspect_view v = view_of(i);
    if (v.datapath) {
        datapath_flows(v.datapath, false, flows_read, question_new(i, x));
    } else {
        answer_error(x, 503, v.reason);
    }
}

/* ---- traces ---- */

static void traced(void *ctx, int error, const char *text)
{
    struct question *q = ctx;
    struct introspect_view v = view_of(q->i);
    introspect_trace_add(&v, q->answer, &q->asked, error, text);
    answer_json(q->x, 200, q->answer);
    question_free(q);
}

static void on_trace(struct introspect *i, struct http_exchange *x)
{
    struct introspect_view v = view_of(i);
    struct explain_question eq;
    struct err e = {0};
    if (!v.datapath || !v.net) {
        answer_error(x, 503, v.reason);
        return;
    }
    int r = introspect_question(&v, x, &eq, &e);
    if (r < 0) {
        answer_error(x, r == -ENOENT ? 404 : 400, e.text);
        return;
    }
    CLEANUP_STRBUF struct strbuf packet = STRBUF_INIT;
    struct question *q = question_new(i, x);
    q->answer = introspect_trace(&v, &eq, &packet);
    q->asked = eq;
    datapath_trace(v.datapath, strbuf_cstr(&packet), traced, q);
}

/* ---- the server ---- */

static const struct {
    const char *path;
    bool is_open; /* Also where everybody can ask. */
    void (*fn)(struct introspect *i, struct http_exchange *x);
} paths[] = {
    {"/metrics", true, on_metrics}, {"/healthz", true, on_health},  {"/v1/state", false, on_state},
    {"/v1/flows", false, on_flows}, {"/v1/trace", false, on_trace},
};

static void handle(struct introspect *i, struct http_exchange *x, bool is_open)
{
    for (size_t k = 0; k < ARRAY_SIZE(paths); k++) {
        if (!streq(http_path(x), paths[k].path) || (is_open && !paths[k].is_open)) {
            continue;
        }
        if (!streq(http_method(x), "GET") && !streq(http_method(x), "HEAD")) {
            http_set_header(x, "Allow", "GET, HEAD");
            answer_error(x, 405, "there is only GET");
        } else {
            paths[k].fn(i, x);
        }
        return;
    }
    answer_error(x, 404, "there is no such path");
}

static void handle_local(void *ctx, struct http_exchange *x)
{
    handle(ctx, x, false);
}

static void handle_open(void *ctx, struct http_exchange *x)
{
    handle(ctx, x, true);
}

/* Serves 'fd' (taken over). */
static int serve(struct introspect *i, int fd, http_handler_fn *fn, struct http_server **ret,
                 struct err *e)
{
    struct http_limits limits = {.max_head = 8192, .max_body = 1, .max_conns = MAX_CONNS};
    *ret = http_server_new(i->cfg.loop, &limits, fn, i);
    return http_server_add_listener(*ret, fd, e);
}

int introspect_new(const struct introspect_config *c, struct introspect **ret, struct err *e)
{
    struct introspect *i = NEW(struct introspect);
    int fd = -1;
    i->cfg = *c;
    i->socket_path = xstrdup(c->socket_path);
    drop_counts_init(&i->drops);
    i->count = loop_timer_new(c->loop, on_count, i);
    loop_timer_arm(i->count, COUNT_MS);
    int r = sock_listen_unix(c->socket_path, 0600, &fd, e);
    if (r == 0) {
        r = serve(i, fd, handle_local, &i->local, e);
    }
    if (r == 0 && c->metrics_address) {
        r = sock_listen_tcp(c->metrics_address, &fd, e);
        if (r == 0) {
            r = serve(i, fd, handle_open, &i->open, e);
        }
        if (r < 0) {
            err_prefix(e, "metricsBindAddress");
        }
    }
    if (r < 0) {
        introspect_free(i);
        return r;
    }
    *ret = i;
    return 0;
}

struct introspect *introspect_free(struct introspect *i)
{
    if (i) {
        if (i->local) {
            unlink(i->socket_path);
        }
        http_server_free(i->local);
        http_server_free(i->open);
        loop_timer_free(i->count);
        drop_counts_done(&i->drops);
        free(i->socket_path);
        free(i);
    }
    return NULL;
}
