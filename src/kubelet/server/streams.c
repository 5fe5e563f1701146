/* SPDX-License-Identifier: Apache-2.0 */
/* exec, attach and portForward: the runtime makes the process or the connection and gives a URL,
 * which speaks SPDY/3.1.
 *
 * A client of SPDY gets the runtime's bytes as they are.  A client of WebSocket is translated: its
 * channels are streams, and in "SPDY/3.1+portforward.k8s.io" its messages are the bytes.  When a
 * client goes, the runtime's connection is closed, which ends the process's input. */
#include "base/mem.h"
#include "kubelet/server/server_priv.h"
#include "net/stream/bridge.h"
#include "net/stream/splice.h"
#include "wire/http1.h"
#include "wire/websocket.h"

#include <stdio.h>
#include <strings.h>

#define LINGER_MS 30000
#define MAX_COMMAND 1000
#define MAX_PORTS 32
#define SPDY "SPDY/3.1"
#define PROTOCOL_HEADER "X-Stream-Protocol-Version"
#define FORWARD_PROTOCOL "portforward.k8s.io"
#define TUNNEL_PROTOCOL SPDY "+" FORWARD_PROTOCOL

/* The result of a process whose end was not seen, as a Status. */
static const char lost_status[] =
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
    "\"message\":\"the connection to the container runtime was lost\",\"reason\":\"InternalError\","
    "\"code\":500}";

struct stream {
    struct list node;
    struct kubelet_server *server;
    struct http_exchange *x; /* NULL: upgraded. */
    struct runtime_call *asking;
    struct http_client *client; /* Of the runtime's URL. */
    struct http_call *call;
    bool websocket, forward, tunnel;
    struct runtime_streams streams;
    uint16_t ports[MAX_PORTS];
    size_t n_ports;
    const struct mux_protocol *protocol; /* With 'websocket'; NULL: a tunnel. */
    struct splice *splice;
    struct bridge *bridge;
};

static void stream_free(struct stream *s)
{
    list_remove(&s->node);
    s->server->n_streams--;
    if (s->asking) {
        runtime_cancel(s->asking);
    }
    splice_free(s->splice);
    bridge_free(s->bridge);
    http_client_free(s->client);
    free(s);
}

static void refuse(struct stream *s, int status, const char *text)
{
    struct http_exchange *x = s->x;
    stream_free(s);
    kubelet_respond(x, status, text);
}

void kubelet_streams_end(struct kubelet_server *server)
{
    while (!list_is_empty(&server->streams)) {
        struct stream *s = CONTAINER_OF(server->streams.next, struct stream, node);
        if (s->x) {
            refuse(s, 503, "the server is shutting down");
        } else {
            stream_free(s);
        }
    }
}

/* ---- joining the client and the runtime ---- */

static void spliced(void *ctx, int error, const char *why, uint64_t sent, uint64_t received)
{
    struct stream *s = ctx;
    s->splice = NULL;
    stream_free(s);
}

static void bridged(void *ctx, int error, const char *why)
{
    struct stream *s = ctx;
    s->bridge = NULL;
    stream_free(s);
}

/* Channels 0 to 4 of a process; those that were not asked for are not there. */
static struct mux *front_of_process(struct stream *s, struct duplex *d)
{
    static const char *const headers[][2] = {{"streamtype", "stdin"},
                                             {"streamtype", "stdout"},
                                             {"streamtype", "stderr"},
                                             {"streamtype", "error"},
                                             {"streamtype", "resize"}};
    const bool wanted[] = {s->streams.in, s->streams.out, s->streams.err && !s->streams.tty, true,
                           s->streams.tty};
    struct mux_channel channels[ARRAY_SIZE(headers)] = {0};
    for (size_t i = 0; i < ARRAY_SIZE(headers); i++) {
        bool from = i == 0 || i == 4;
        channels[i] = (struct mux_channel){
            .headers = headers[i], .n = wanted[i], .from_client = from, .to_client = !from};
    }
    return mux_websocket_new(s->server->loop, d, s->protocol, channels, ARRAY_SIZE(channels),
                             &bridge_front_ops, s->bridge);
}

/* Channels 2n and 2n + 1, data and errors of port n.  The runtime makes the connection when both
 * streams are there, the one for errors first. */
static struct mux *front_of_ports(struct stream *s, struct duplex *d)
{
    struct mux_channel channels[2 * MAX_PORTS];
    const char *headers[2 * MAX_PORTS][6];
    char ports[MAX_PORTS][12], ids[MAX_PORTS][12], greetings[MAX_PORTS][2];
    for (size_t i = 0; i < s->n_ports * 2; i++) {
        size_t k = i / 2;
        bool data = i % 2 == 0;
        (void) snprintf(ports[k], sizeof ports[k], "%u", s->ports[k]);
        (void) snprintf(ids[k], sizeof ids[k], "%u", (unsigned) k);
        greetings[k][0] = (char) s->ports[k];
        greetings[k][1] = (char) (s->ports[k] >> 8);
        const char *values[] = {
            "streamtype", data ? "data" : "error", "port", ports[k], "requestid", ids[k]};
        memcpy(headers[i], values, sizeof values);
        channels[i] = (struct mux_channel){.headers = headers[i],
                                           .n = 3,
                                           .from_client = data,
                                           .to_client = true,
                                           .greeting = greetings[k],
                                           .n_greeting = 2};
    }
    return mux_websocket_new(s->server->loop, d, s->protocol, channels, s->n_ports * 2,
                             &bridge_front_ops, s->bridge);
}

static void join(struct stream *s, struct duplex *client, struct duplex *runtime)
{
    struct loop *l = s->server->loop;
    if (s->tunnel) {
        s->splice = splice_websocket_new(l, client, runtime, LINGER_MS, spliced, s);
    } else if (!s->websocket) {
        s->splice = splice_new(l, client, runtime, LINGER_MS, spliced, s);
    } else {
        s->bridge = bridge_new(s->forward ? NULL : lost_status, bridged, s);
        struct mux *back = mux_spdy_new(l, runtime, false, &bridge_back_ops, s->bridge);
        struct mux *front = s->forward ? front_of_ports(s, client) : front_of_process(s, client);
        bridge_start(s->bridge, front, back);
    }
}

/* ---- the runtime's side ---- */

static void set_answer_headers(const struct stream *s, const struct http1_head *head)
{
    char accept[WS_ACCEPT_SIZE];
    if (s->websocket) {
        const char *key = http_header(s->x, "sec-websocket-key");
        (void) ws_accept_key(key, accept); /* It was checked. */
        http_set_header(s->x, "Sec-WebSocket-Accept", accept);
        http_set_header(s->x, "Sec-WebSocket-Protocol",
                        s->tunnel ? TUNNEL_PROTOCOL : s->protocol->name);
    } else if (http1_header(head, PROTOCOL_HEADER)) {
        http_set_header(s->x, PROTOCOL_HEADER, http1_header(head, PROTOCOL_HEADER));
    }
}

static void on_connected(void *ctx, const struct http_connected *r)
{
    struct stream *s = ctx;
    s->call = NULL;
    if (!r->stream) {
        CLEANUP_FREE char *text =
            xasprintf("the container runtime does not serve its stream: %s",
                      r->result.error ? r->result.error_text : r->result.body);
        refuse(s, r->result.status == 403 ? 403 : 500, text);
        return;
    }
    CLEANUP(duplex_free) struct duplex *runtime = r->stream;
    set_answer_headers(s, r->head);
    struct duplex *client = http_upgrade(s->x, s->websocket ? "websocket" : SPDY);
    if (!client) {
        refuse(s, 400, "the connection cannot be upgraded");
        return;
    }
    s->x = NULL;
    join(s, client, TAKE(runtime));
}

static void on_url(void *ctx, int error, const char *text, const char *url)
{
    struct stream *s = ctx;
    CLEANUP_STRBUF struct strbuf headers = STRBUF_INIT;
    struct err e = {0};
    s->asking = NULL;
    if (error < 0) {
        refuse(s, error == -ENOENT ? 404 : 500, text);
        return;
    }
    const char *host = strstr(url, "://"), *path = host ? strchr(host + 3, '/') : NULL;
    CLEANUP_FREE char *base = path ? xstrndup(url, (size_t) (path - url)) : xstrdup(url);
    struct http_client_config cfg = {.url = base};
    if (http_client_new(s->server->loop, &cfg, &s->client, &e) < 0) {
        refuse(s, 500, e.text);
        return;
    }
    const char *name, *value;
    for (size_t i = 0; !s->websocket && http_header_at(s->x, i, &name, &value); i++) {
        if (strcasecmp(name, PROTOCOL_HEADER) == 0) {
            (void) http1_add_header(&headers, PROTOCOL_HEADER, value);
        }
    }
    if (s->websocket) {
        (void) http1_add_header(&headers, PROTOCOL_HEADER,
                                s->forward ? FORWARD_PROTOCOL : "v4.channel.k8s.io");
    }
    s->call = http_connect(s->client, "POST", path ? path : "/", SPDY, strbuf_cstr(&headers),
                           on_connected, s);
}

/* ---- the client's side ---- */

static void on_gone(void *ctx)
{
    refuse(ctx, 500, "the client has gone");
}

static bool offers(const char *list, const char *protocol)
{
    size_t size = strlen(protocol);
    while (*list) {
        list += strspn(list, " \t,");
        size_t n = strcspn(list, " \t,");
        if (n == size && memcmp(list, protocol, n) == 0) {
            return true;
        }
        list += n;
    }
    return false;
}

/* Chooses the protocols: 0, or the text of the error. */
static const char *choose_protocol(struct stream *s)
{
    char accept[WS_ACCEPT_SIZE];
    struct http_exchange *x = s->x;
    if (http_wants_upgrade(x, SPDY)) {
        return NULL;
    }
    if (!http_wants_upgrade(x, "websocket")) {
        return "Upgrade request required";
    }
    const char *key = http_header(x, "sec-websocket-key");
    const char *version = http_header(x, "sec-websocket-version");
    const char *offered = http_header(x, "sec-websocket-protocol");
    if (!key || ws_accept_key(key, accept) < 0 || !version || !streq(version, "13")) {
        return "malformed WebSocket request";
    }
    offered = offered ? offered : "";
    s->websocket = true;
    s->tunnel = s->forward && offers(offered, TUNNEL_PROTOCOL);
    s->protocol = s->tunnel ? NULL : mux_protocol_choose(offered);
    if (!s->tunnel && !s->protocol) {
        return "none of the WebSocket protocols is known: v5.channel.k8s.io, v4.channel.k8s.io and "
               "v4.base64.channel.k8s.io are";
    }
    return NULL;
}

/* A stream for the request; NULL: it was answered with an error. */
static struct stream *stream_new(struct kubelet_server *server, struct http_exchange *x,
                                 bool forward)
{
    struct stream *s = NEW(struct stream);
    s->server = server;
    s->x = x;
    s->forward = forward;
    list_push_back(&server->streams, &s->node);
    server->n_streams++;
    const char *wrong = choose_protocol(s);
    if (!wrong && server->n_streams > KUBELET_MAX_STREAMS) {
        refuse(s, 429, "too many streams");
        return NULL;
    }
    if (wrong) {
        refuse(s, 400, wrong);
        return NULL;
    }
    http_on_gone(x, on_gone, s);
    return s;
}

static bool has_flag(const struct http_exchange *x, const char *name)
{
    const char *v = http_query(x, name);
    return v && (streq(v, "1") || streq(v, "true"));
}

bool kubelet_find_running(struct kubelet_server *server, struct http_exchange *x,
                          const struct kubelet_target *t, struct kubelet_container *ret)
{
    struct err e = {0};
    if (server->ops->find_container(server->ctx, t->namespace, t->pod, t->uid, t->container, false,
                                    ret, &e) < 0) {
        kubelet_respond(x, 404, e.text);
        return false;
    }
    if (!ret->id || !ret->running) {
        CLEANUP_FREE char *text = xasprintf("container not found (\"%s\")", t->container);
        kubelet_respond(x, 404, text);
        return false;
    }
    return true;
}

/* Reads which streams the client asks for; false: the request was answered. */
static bool read_streams(struct stream *s, bool tty)
{
    struct http_exchange *x = s->x;
    s->streams = (struct runtime_streams){.tty = tty,
                                          .in = has_flag(x, "input"),
                                          .out = has_flag(x, "output"),
                                          .err = has_flag(x, "error") && !tty};
    if (!s->streams.in && !s->streams.out && !s->streams.err) {
        refuse(s, 400, "you must specify at least 1 of stdin, stdout, stderr");
        return false;
    }
    return true;
}

void kubelet_exec(struct kubelet_server *server, struct http_exchange *x,
                  const struct kubelet_target *t)
{
    struct kubelet_container c = {0};
    const char *command[MAX_COMMAND], *name, *value;
    size_t n = 0;
    for (size_t i = 0; http_query_at(x, i, &name, &value); i++) {
        if (streq(name, "command") && n < MAX_COMMAND) {
            command[n++] = value;
        }
    }
    if (!n || n == MAX_COMMAND) {
        kubelet_respond(x, 400,
                        n ? "the command has too many words" : "you must specify a command");
        return;
    }
    if (!kubelet_find_running(server, x, t, &c)) {
        return;
    }
    struct stream *s = stream_new(server, x, false);
    if (s && read_streams(s, has_flag(x, "tty"))) {
        s->asking = runtime_exec(server->runtime, c.id, &s->streams, command, n, on_url, s);
    }
}

/* A container has a terminal and an input, or it has not; what the client asks for beyond is not
 * attached. */
void kubelet_attach(struct kubelet_server *server, struct http_exchange *x,
                    const struct kubelet_target *t)
{
    struct kubelet_container c = {0};
    if (!kubelet_find_running(server, x, t, &c)) {
        return;
    }
    struct stream *s = stream_new(server, x, false);
    if (!s) {
        return;
    }
    if (has_flag(x, "tty") && !c.tty) {
        CLEANUP_FREE char *text = xasprintf("container %s has no terminal", t->container);
        refuse(s, 400, text);
    } else if (read_streams(s, c.tty)) {
        s->asking = runtime_attach(server->runtime, c.id, &s->streams, on_url, s);
    }
}

void kubelet_port_forward(struct kubelet_server *server, struct http_exchange *x,
                          const struct kubelet_target *t)
{
    const char *sandbox, *name, *value;
    struct err e = {0};
    if (server->ops->find_sandbox(server->ctx, t->namespace, t->pod, t->uid, &sandbox, &e) < 0) {
        kubelet_respond(x, 404, e.text);
        return;
    }
    struct stream *s = stream_new(server, x, true);
    for (size_t i = 0; s && http_query_at(x, i, &name, &value); i++) {
        uint64_t port;
        if (!streq(name, "port")) {
            continue;
        }
        if (str_to_u64(value, UINT16_MAX, &port) < 0 || !port || s->n_ports == MAX_PORTS) {
            refuse(s, 400, "malformed ports, or too many of them");
            return;
        }
        s->ports[s->n_ports++] = (uint16_t) port;
    }
    if (s && s->websocket && !s->tunnel && !s->n_ports) {
        refuse(s, 400, "query parameter \"port\" is required");
    } else if (s) {
        s->asking = runtime_port_forward(server->runtime, sandbox, s->ports, s->n_ports, on_url, s);
    }
}
