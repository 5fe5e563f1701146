/* SPDX-License-Identifier: Apache-2.0 */
#include "node/introspect/introspect.h"

#include "net/http/http.h"
#include "net/loop/sock.h"
#include "node/introspect/introspect_priv.h"

#include <unistd.h>

#define MAX_CONNS 64
#define JSON_TYPE "application/json"
#define COUNT_MS 10000

struct introspect {
    struct introspect_config cfg;
    char *socket_path;
    struct http_server *local, *open;
    struct loop_timer *count;
    uint64_t drops[MODEL_N_CAUSES]; /* The datapath's counters, as last read. */
    struct nat_drops host_drops;
    struct watchers *watchers;
};

/* A request that waits for the switch's answer. */
struct question {
    struct introspect *i;
    struct http_exchange *x;
    struct json *answer; /* The part of the answer made so far. */
    struct explain_question asked;
    struct rule_names *names; /* The names of the rules' objects. */
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
    rule_names_free(q->names);
    free(q);
}

/* ---- metrics ---- */

static void answer_metrics(struct introspect *i, struct http_exchange *x)
{
    struct introspect_view v = view_of(i);
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    /* If the kernel does not answer, the counters stay as they were. */
    nat_drops_update(&i->host_drops);
    introspect_metrics(&v, i->drops, &i->host_drops, &out);
    http_respond(x, 200, PROM_CONTENT_TYPE, out.data, out.size);
}

static void metrics_counted(void *ctx, int error, const uint64_t totals[MODEL_N_CAUSES])
{
    struct question *q = ctx;
    memcpy(q->i->drops, totals, sizeof q->i->drops);
    answer_metrics(q->i, q->x);
    question_free(q);
}

static void on_metrics(struct introspect *i, struct http_exchange *x)
{
    struct introspect_view v = view_of(i);
    if (v.datapath) {
        datapath_drops(v.datapath, metrics_counted, question_new(i, x));
    } else {
        answer_metrics(i, x);
    }
}

static void on_count(void *ctx)
{
    struct introspect *i = ctx;
    loop_timer_arm(i->count, COUNT_MS);
    nat_drops_update(&i->host_drops);
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

/* ---- rules ---- */

static void add_rule(void *ctx, const struct dp_rule *rule, uint64_t packets, uint64_t bytes)
{
    struct question *q = ctx;
    struct json *item = json_append(json_ensure_array(q->answer, "flows"), json_object());
    introspect_rule(item, q->names, rule);
    json_set_int(item, "packets", (int64_t) packets);
    json_set_int(item, "bytes", (int64_t) bytes);
}

static void rules_done(void *ctx, int error, const char *text)
{
    struct question *q = ctx;
    if (error < 0) {
        answer_error(q->x, 503, text);
    } else {
        answer_json(q->x, 200, q->answer);
    }
    question_free(q);
}

static void on_flows(struct introspect *i, struct http_exchange *x)
{
    static const struct datapath_rules_ops ops = {.each = add_rule, .done = rules_done};
    struct introspect_view v = view_of(i);
    if (!v.datapath) {
        answer_error(x, 503, v.reason);
        return;
    }
    struct question *q = question_new(i, x);
    q->answer = json_object();
    json_set_string(q->answer, "node", v.node_name);
    json_ensure_array(q->answer, "flows");
    q->names = rule_names_new(&v);
    datapath_rules(v.datapath, &ops, q);
}

static void on_watch(struct introspect *i, struct http_exchange *x)
{
    struct err e = {0};
    /* A stream has no end, so HEAD gets no body and no length. */
    if (streq(http_method(x), "HEAD")) {
        http_respond(x, 200, JSON_TYPE, NULL, 0);
        return;
    }
    int r = watchers_add(i->watchers, x, &e);
    if (r < 0) {
        answer_error(x, r == -EOPNOTSUPP ? 501 : 503, e.text);
    }
}

/* ---- maps ---- */

#define MAP_ENTRIES 1000 /* The largest number of entries in an answer. */

static void on_maps(struct introspect *i, struct http_exchange *x)
{
    struct introspect_view v = view_of(i);
    const char *name = http_query(x, "name");
    CLEANUP(json_free) struct json *maps = NULL;
    struct err e = {0};
    int r = v.datapath
                ? datapath_maps(v.datapath, name, http_query(x, "after"), MAP_ENTRIES, &maps, &e)
                : err_set(&e, -EAGAIN, "%s", v.reason);
    if (r < 0) {
        answer_error(x,
                     r == -ENOENT       ? 404
                     : r == -EINVAL     ? 400
                     : r == -EOPNOTSUPP ? 501
                                        : 503,
                     e.text);
        return;
    }
    CLEANUP(json_free) struct json *answer = json_object();
    json_set_string(answer, "node", v.node_name);
    if (name) {
        introspect_name_entries(&v, maps);
    }
    json_set(answer, name ? "map" : "maps", TAKE(maps));
    answer_json(x, 200, answer);
}

/* ---- traces ---- */

static void traced(void *ctx, int error, const char *text, const struct dp_trace *t)
{
    struct question *q = ctx;
    struct introspect_view v = view_of(q->i);
    introspect_trace_add(&v, q->answer, &q->asked, error, text, t);
    answer_json(q->x, 200, q->answer);
    question_free(q);
}

static void on_trace(struct introspect *i, struct http_exchange *x)
{
    struct introspect_view v = view_of(i);
    struct explain_question eq;
    struct model_packet packet;
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
    struct question *q = question_new(i, x);
    q->answer = introspect_trace(&v, &eq, &packet);
    q->asked = eq;
    datapath_trace(v.datapath, &packet, traced, q);
}

/* ---- the server ---- */

static const struct {
    const char *path;
    bool is_open; /* This listener is open to every client. */
    void (*fn)(struct introspect *i, struct http_exchange *x);
} paths[] = {
    {"/metrics", true, on_metrics}, {"/healthz", true, on_health},  {"/v1/state", false, on_state},
    {"/v1/flows", false, on_flows}, {"/v1/trace", false, on_trace}, {"/v1/watch", false, on_watch},
    {"/v1/maps", false, on_maps},
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

/* Serves the listening socket 'fd' (taken over). */
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
    i->watchers = watchers_new(&(struct introspect_source){c->view, c->ctx});
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
        watchers_free(i->watchers);
        free(i->socket_path);
        free(i);
    }
    return NULL;
}
