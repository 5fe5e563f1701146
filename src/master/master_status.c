/* SPDX-License-Identifier: Apache-2.0 */
#include "master/master_status.h"

#include "base/mem.h"
#include "net/http/http.h"
#include "net/loop/sock.h"

#define TEXT "text/plain; charset=utf-8"
#define PROMETHEUS "text/plain; version=0.0.4; charset=utf-8"

struct master_status {
    struct master_status_config cfg;
    struct http_server *http;
};

static void respond(struct http_exchange *x, int status, const char *text)
{
    http_respond(x, status, TEXT, text, strlen(text));
}

static void answer(void *ctx, struct http_exchange *x)
{
    struct master_status *s = ctx;
    const char *path = http_path(x);
    if (!streq(http_method(x), "GET") && !streq(http_method(x), "HEAD")) {
        respond(x, 405, "only GET and HEAD\n");
    } else if (streq(path, "/healthz") || streq(path, "/livez")) {
        respond(x, 200, "ok");
    } else if (streq(path, "/readyz")) {
        bool ready = s->cfg.ready(s->cfg.ctx);
        respond(x, ready ? 200 : 503, ready ? "ok" : "the controllers are starting\n");
    } else if (streq(path, "/metrics")) {
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
        s->cfg.metrics(s->cfg.ctx, &b);
        http_respond(x, 200, PROMETHEUS, b.data, b.size);
    } else {
        respond(x, 404, "the paths are /healthz, /livez, /readyz and /metrics\n");
    }
}

int master_status_new(struct loop *l, const struct master_status_config *cfg,
                      struct master_status **ret, struct err *e)
{
    static const struct http_limits limits = {
        .max_body = 1024, .max_bodies = 65536, .max_conns = 100, .max_streams = 10};
    CLEANUP(fd_close) int fd = -1;
    int r = sock_listen_tcp(cfg->address, &fd, e);
    if (r < 0) {
        return r;
    }
    struct master_status *s = NEW(struct master_status);
    s->cfg = *cfg;
    s->http = http_server_new(l, &limits, answer, s);
    r = http_server_add_listener(s->http, fd_take(&fd), e);
    if (r < 0) {
        master_status_free(s);
        return r;
    }
    *ret = s;
    return 0;
}

struct master_status *master_status_free(struct master_status *s)
{
    if (s) {
        http_server_free(s->http);
        free(s);
    }
    return NULL;
}
