/* SPDX-License-Identifier: Apache-2.0 */
/* Receives what a command of a container writes, or what a port of a pod sends, by SPDY/3.1 as
 * kubectl does, for bench/exec.py: through the API server, or from the runtime's own URL.
 *
 * It is C, because a client in another language would need more time than what is measured.
 *
 * usage: bench_transfer exec|forward KUBECONFIG|URL PATH BYTES
 * URL is "http://ADDRESS:PORT"; of a kubeconfig, its server and credentials are used.  It is an
 * error when other than BYTES bytes arrive, or the command fails.  Prints the nanoseconds from the
 * request to the end of the last stream. */
#include "measure.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/timeutil.h"
#include "client/kubeconfig.h"
#include "net/http/http.h"
#include "net/stream/mux.h"

#include <inttypes.h>
#include <stdio.h>

#define MAX_RESULT 4096

struct transfer {
    struct loop *loop;
    bool forward;
    uint64_t received;
    struct strbuf result; /* The texts of the streams for errors. */
    int open;             /* Streams that have not ended. */
    struct mux *mux;
};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "bench_transfer: %s: %s\n", what, why);
    exit(1);
}

static void on_data(void *ctx, const char *p, size_t size)
{
    struct transfer *t = ctx;
    t->received += size;
}

static void on_result(void *ctx, const char *p, size_t size)
{
    struct transfer *t = ctx;
    if (t->result.size + size <= MAX_RESULT) {
        strbuf_add(&t->result, p, size);
    }
}

/* A runtime resets its streams at an orderly end, too. */
static void on_end(void *ctx)
{
    struct transfer *t = ctx;
    if (--t->open == 0) {
        loop_stop(t->loop);
    }
}

static void on_closed(void *ctx, int error, const char *why)
{
    struct transfer *t = ctx;
    loop_stop(t->loop);
}

static const struct mux_stream_ops data_ops = {.data = on_data, .end = on_end, .reset = on_end};
static const struct mux_stream_ops result_ops = {.data = on_result, .end = on_end, .reset = on_end};
static const struct mux_ops mux_ops = {.closed = on_closed};

static void open_stream(struct transfer *t, const char *type, const struct mux_stream_ops *ops)
{
    const char *const headers[] = {"streamtype", type, "port", "8080", "requestid", "0"};
    struct mux_stream *s = mux_open(t->mux, headers, t->forward ? 3 : 1);
    if (!s) {
        die("no stream can be opened", type);
    }
    mux_stream_start(s, ops, t);
    if (t->forward && ops == &result_ops) {
        mux_stream_end(s); /* A client has nothing to say on it. */
    }
    t->open++;
}

static void on_connected(void *ctx, const struct http_connected *r)
{
    struct transfer *t = ctx;
    if (!r->stream) {
        die("no stream", r->result.error ? r->result.error_text : r->result.body);
    }
    t->mux = mux_spdy_new(t->loop, r->stream, false, &mux_ops, t);
    open_stream(t, "error", &result_ops);
    open_stream(t, t->forward ? "data" : "stdout", &data_ops);
    if (!t->forward) {
        open_stream(t, "stderr", &result_ops);
    }
}

int main(int argc, char **argv)
{
    if (argc != 5 || (!streq(argv[1], "exec") && !streq(argv[1], "forward"))) {
        die("usage", "bench_transfer exec|forward KUBECONFIG|URL PATH BYTES");
    }
    struct transfer t = {
        .loop = loop_new(), .forward = streq(argv[1], "forward"), .result = STRBUF_INIT};
    uint64_t bytes = measure_number(argv[4], 1, SIZE_MAX / 2);
    struct kubeconfig k = {0};
    struct err e = {0};
    if (!str_has_prefix(argv[2], "http://") && kubeconfig_load(argv[2], &k, &e) < 0) {
        die("kubeconfig", e.text);
    }
    struct tls_client_config tls = {.ca = k.ca, .cert = k.cert, .key = k.key};
    struct http_client_config cfg = {
        .url = k.server ? k.server : argv[2], .tls = &tls, .bearer_token = k.token};
    struct http_client *client = NULL;
    if (http_client_new(t.loop, &cfg, &client, &e) < 0) {
        die(cfg.url, e.text);
    }
    uint64_t start = time_mono_ns();
    http_connect(client, "POST", argv[3], "SPDY/3.1",
                 t.forward ? "X-Stream-Protocol-Version: portforward.k8s.io\r\n"
                           : "X-Stream-Protocol-Version: v4.channel.k8s.io\r\n",
                 on_connected, &t);
    loop_run(t.loop);
    uint64_t took = time_mono_ns() - start;
    bool ok = t.forward ? !t.result.size : strstr(strbuf_cstr(&t.result), "\"Success\"") != NULL;
    if (t.received != bytes || !ok) {
        fprintf(stderr, "bench_transfer: %" PRIu64 " of %" PRIu64 " bytes arrived: %s\n",
                t.received, bytes, strbuf_cstr(&t.result));
        return 1;
    }
    printf("%" PRIu64 "\n", took);
    mux_free(t.mux);
    http_client_free(client);
    strbuf_done(&t.result);
    kubeconfig_done(&k);
    loop_free(t.loop);
    return 0;
}
