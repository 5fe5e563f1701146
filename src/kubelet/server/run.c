/* SPDX-License-Identifier: Apache-2.0 */
/* A command in a container that is run to its end: its output is the answer, as one text.  It has
 * no input and no terminal; the words of "cmd" are separated by blanks, as in Kubernetes. */
#include "base/arena.h"
#include "base/mem.h"
#include "kubelet/server/server_priv.h"

#define MAX_WORDS 1000
#define LIMIT_S 120

struct run {
    struct list node;
    struct kubelet_server *server;
    struct http_exchange *x;
    struct runtime_call *call;
};

static void answer(struct run *r, int status, const char *text)
{
    struct http_exchange *x = r->x;
    list_remove(&r->node);
    r->server->n_streams--;
    free(r);
    kubelet_respond(x, status, text);
}

static void on_done(void *ctx, int error, const char *text, const struct runtime_exec_result *res)
{
    struct run *r = ctx;
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    r->call = NULL;
    if (error < 0) {
        answer(r, error == -ENOENT ? 404 : 500, text);
        return;
    }
    strbuf_add(&b, res->out, res->out_size);
    strbuf_add(&b, res->err, res->err_size);
    if (res->exit_code) {
        strbuf_addf(&b, "command terminated with exit code %d", (int) res->exit_code);
    }
    answer(r, res->exit_code ? 500 : 200, strbuf_cstr(&b));
}

static void on_gone(void *ctx)
{
    struct run *r = ctx;
    r->call = runtime_cancel(r->call);
    answer(r, 500, "the client has gone");
}

void kubelet_run_command(struct kubelet_server *s, struct http_exchange *x,
                         const struct kubelet_target *t)
{
    CLEANUP_ARENA struct arena a = {0};
    struct kubelet_container c = {0};
    const char *cmd = http_query(x, "cmd"), *words[MAX_WORDS];
    size_t n = 0;
    for (const char *p = cmd ? cmd : ""; *p && n < MAX_WORDS;) {
        size_t size = strcspn(p, " ");
        if (size) {
            words[n++] = arena_strndup(&a, p, size);
        }
        p += size + (p[size] == ' ');
    }
    if (!n || n == MAX_WORDS) {
        kubelet_respond(x, 400,
                        n ? "the command has too many words" : "you must specify a command: cmd");
        return;
    }
    if (!kubelet_find_running(s, x, t, &c)) {
        return;
    }
    if (s->n_streams >= KUBELET_MAX_STREAMS) {
        kubelet_respond(x, 429, "too many streams");
        return;
    }
    struct run *r = NEW(struct run);
    *r = (struct run){.server = s, .x = x};
    list_push_back(&s->runs, &r->node);
    s->n_streams++;
    r->call = runtime_exec_sync(s->runtime, c.id, words, n, LIMIT_S, on_done, r);
    http_on_gone(x, on_gone, r);
}

void kubelet_runs_end(struct kubelet_server *s)
{
    while (!list_is_empty(&s->runs)) {
        struct run *r = CONTAINER_OF(s->runs.next, struct run, node);
        r->call = runtime_cancel(r->call);
        answer(r, 503, "the server is shutting down");
    }
}
