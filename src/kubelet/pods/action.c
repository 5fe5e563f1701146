/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/pods/action.h"

#include "base/ip.h"
#include "base/mem.h"
#include "net/grpc/rpc.h"
#include "net/http/http.h"
#include "net/loop/sock.h"
#include "pod/pod.h"
#include "wire/location.h"
#include "wire/protobuf.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define BODY_MAX 10240
#define REDIRECTS_MAX 10
#define TEXT_MAX 1024
#define GRPC_MAX 65536
#define GRPC_SERVING 1
#define SECOND_MS 1000
#define NO_LIMIT_MS (24 * 3600 * 1000)

struct action {
    struct loop *loop;
    struct loop_timer *timer;
    struct loop_task task;
    action_done_fn *done;
    void *ctx;
    uint64_t timeout_ms;
    bool sleeps; /* The timer's end is its success. */
    struct runtime_call *call;
    struct json *get;   /* The request by HTTP ... */
    struct location at; /* ... and where it is sent now. */
    unsigned redirects;
    struct http_client *http;
    struct http_call *request;
    struct loop_fd *watch;
    int fd;
    struct rpc *rpc;
    struct rpc_call *check;
    char *service, *address;
    enum action_outcome outcome; /* Of an answer that needs no request. */
    char *text;
};

struct action *action_free(struct action *a)
{
    if (!a) {
        return NULL;
    }
    loop_task_cancel(&a->task);
    loop_timer_free(a->timer);
    if (a->call) {
        runtime_cancel(a->call);
    }
    if (a->request) {
        http_call_cancel(a->request);
    }
    http_client_free(a->http);
    location_done(&a->at);
    json_free(a->get);
    loop_fd_free(a->watch);
    fd_close(a->fd);
    rpc_free(a->rpc);
    free(a->service);
    free(a->address);
    free(a->text);
    free(a);
    return NULL;
}

/* The owner frees the action in 'done'. */
static void end(struct action *a, enum action_outcome outcome, const char *text)
{
    CLEANUP_FREE char *copy = xstrndup(text, TEXT_MAX);
    a->done(a->ctx, outcome, copy);
}

static void answer(void *ctx)
{
    struct action *a = ctx;
    end(a, a->outcome, a->text ? a->text : "");
}

static void answer_later(struct action *a, enum action_outcome outcome, const char *text)
{
    a->outcome = outcome;
    free(a->text);
    a->text = xstrdup(text);
    loop_task_queue(&a->task);
}

static void timed_out(void *ctx)
{
    struct action *a = ctx;
    CLEANUP_FREE char *text = xasprintf("command timed out: no answer within %llu s",
                                        (unsigned long long) (a->timeout_ms / SECOND_MS));
    end(a, a->sleeps ? ACTION_SUCCESS : ACTION_FAILURE, a->sleeps ? "" : text);
}

/* ---- a command ---- */

static void exec_done(void *ctx, int error, const char *text, const struct runtime_exec_result *r)
{
    struct action *a = ctx;
    a->call = NULL;
    if (error == -ETIMEDOUT) {
        CLEANUP_FREE char *late = xasprintf("command timed out: %s", text);
        end(a, ACTION_FAILURE, late);
        return;
    }
    if (error < 0) {
        end(a, ACTION_ERROR, text);
        return;
    }
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT_MAX(4 * TEXT_MAX);
    strbuf_add(&out, r->out, MIN(r->out_size, (size_t) TEXT_MAX));
    strbuf_add(&out, r->err, MIN(r->err_size, (size_t) TEXT_MAX));
    if (r->exit_code != 0 && out.size == 0) {
        strbuf_addf(&out, "the command ended with code %d", r->exit_code);
    }
    end(a, r->exit_code == 0 ? ACTION_SUCCESS : ACTION_FAILURE, strbuf_cstr(&out));
}

static void begin_exec(struct action *a, struct runtime *r, const struct json *exec,
                       const char *container_id)
{
    const struct json *command = json_get(exec, "command");
    size_t n = json_count(command);
    const char **argv = xcalloc(n + 1, sizeof *argv);
    for (size_t i = 0; i < n; i++) {
        const char *s = json_get_string(json_at(command, i));
        argv[i] = s ? s : "";
    }
    uint32_t seconds = (uint32_t) MIN((a->timeout_ms + SECOND_MS - 1) / SECOND_MS, UINT64_C(86400));
    a->call = runtime_exec_sync(r, container_id, argv, n, seconds, exec_done, a);
    free(argv);
}

/* ---- HTTP ---- */

/* Texts of users must not end a line of the request, by which they could write another one. */
static bool is_one_line(const char *s, bool blanks)
{
    for (; *s; s++) {
        unsigned char c = (unsigned char) *s;
        if (c < 0x20 || c == 0x7f || (c == ' ' && !blanks)) {
            return false;
        }
    }
    return true;
}

/* Why the request cannot be made; NULL: it can. */
static const char *check_http(const struct json *get)
{
    const char *host = json_get_text(get, "host");
    uint32_t ip;
    const struct json *h;
    if (*host && !streq(host, "localhost") && ip4_parse(host, &ip) < 0) {
        /* A look-up would hold up all pods. */
        return "httpGet.host is not an IPv4 address; the node looks no names up for probes and "
               "hooks";
    }
    if (!is_one_line(json_get_text(get, "path"), false)) {
        return "httpGet.path has blanks or control characters; write them as %20 and the like";
    }
    JSON_FOREACH (h, json_get(get, "httpHeaders")) {
        const char *name = json_get_text(h, "name");
        if (!*name || strchr(name, ':') || !is_one_line(name, false) ||
            !is_one_line(json_get_text(h, "value"), true)) {
            return "httpGet.httpHeaders has a name or a value that no header can have";
        }
    }
    return NULL;
}

static void send_request(struct action *a);

static bool is_redirect(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

static void judge(struct action *a, const struct http_result *r)
{
    CLEANUP_FREE char *text = NULL;
    if (r->status < 200 || r->status >= 400) {
        text = xasprintf("HTTP probe failed with statuscode: %d", r->status);
        end(a, ACTION_FAILURE, text);
    } else if (r->status >= 300) {
        text = xasprintf("Probe terminated redirects, Response body: %s", r->body);
        end(a, ACTION_WARNING, text);
    } else {
        end(a, ACTION_SUCCESS, "");
    }
}

static void http_done(void *ctx, const struct http_result *r)
{
    struct action *a = ctx;
    struct location to;
    struct err e = {0};
    a->request = NULL;
    if (r->error < 0 && r->error != -EMSGSIZE) {
        end(a, ACTION_FAILURE, r->error_text);
        return;
    }
    if (!is_redirect(r->status) || !*r->location) {
        judge(a, r);
        return;
    }
    if (location_resolve(&a->at, r->location, &to, &e) < 0) {
        CLEANUP_FREE char *text = xasprintf("failed to parse Location header: %s", e.text);
        end(a, ACTION_FAILURE, text);
        return;
    }
    bool same_host = strcasecmp(to.host, a->at.host) == 0;
    if (!same_host || a->redirects == REDIRECTS_MAX) {
        location_done(&to);
        if (same_host) {
            end(a, ACTION_FAILURE, "stopped after 10 redirects");
        } else {
            judge(a, r);
        }
        return;
    }
    a->redirects++;
    location_done(&a->at);
    a->at = to;
    send_request(a);
}

/* The header that the user gives; NULL: none. */
static const char *own_header(const struct action *a, const char *name)
{
    const struct json *h;
    JSON_FOREACH (h, json_get(a->get, "httpHeaders")) {
        if (strcasecmp(json_get_text(h, "name"), name) == 0) {
            return json_get_text(h, "value");
        }
    }
    return NULL;
}

/* Headers that belong to the message or have a place of their own. */
static bool is_own(const char *name)
{
    static const char *const names[] = {"Host",           "User-Agent",        "Accept",
                                        "Content-Length", "Transfer-Encoding", "Trailer",
                                        "Connection"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (strcasecmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static void send_request(struct action *a)
{
    const char *agent = own_header(a, "User-Agent"), *host = own_header(a, "Host");
    const char *accept = own_header(a, "Accept");
    struct tls_client_config insecure = {.insecure = true};
    struct err e = {0};
    CLEANUP_FREE char *url =
        xasprintf("%s://%s:%u", a->at.https ? "https" : "http", a->at.host, a->at.port);
    struct http_client_config c = {.url = url,
                                   .tls = a->at.https ? &insecure : NULL,
                                   .user_agent =
                                       agent ? agent : "kube-probe/1.32 tenet/" TENET_VERSION,
                                   .host = host && *host ? host : NULL,
                                   .connect_ms = a->timeout_ms,
                                   .response_ms = a->timeout_ms,
                                   .max_body = BODY_MAX};
    a->http = http_client_free(a->http);
    if (http_client_new(a->loop, &c, &a->http, &e) < 0) {
        answer_later(a, ACTION_ERROR, e.text);
        return;
    }
    const struct json *h;
    JSON_FOREACH (h, json_get(a->get, "httpHeaders")) {
        if (!is_own(json_get_text(h, "name"))) {
            http_client_add_header(a->http, json_get_text(h, "name"), json_get_text(h, "value"));
        }
    }
    http_client_add_header(a->http, "Connection", "close");
    accept = !accept ? "*/*" : *accept ? accept : NULL;
    a->request = http_call(a->http, "GET", a->at.path, accept, NULL, NULL, 0, http_done, a);
}

static void begin_http(struct action *a, const struct json *get, const char *host, uint16_t port)
{
    const char *path = json_get_text(get, "path"), *why = check_http(get);
    if (why) {
        answer_later(a, ACTION_ERROR, why);
        return;
    }
    a->get = json_clone(get);
    a->at = (struct location){.https = streq(json_get_text(get, "scheme"), "HTTPS"),
                              .host = xstrdup(host),
                              .port = port,
                              .path = xasprintf("%s%s", *path == '/' ? "" : "/", path)};
    send_request(a);
}

/* ---- TCP ---- */

static void tcp_ready(void *ctx, unsigned events)
{
    struct action *a = ctx;
    int r = sock_connect_result(a->fd);
    if (r == 0) {
        end(a, ACTION_SUCCESS, "");
        return;
    }
    CLEANUP_FREE char *text = xasprintf("connect to %s: %s", a->address, strerror(-r));
    end(a, ACTION_FAILURE, text);
}

static void begin_tcp(struct action *a, const char *host, uint16_t port)
{
    struct err e = {0};
    if (sock_connect_tcp(host, port, &a->fd, &e) < 0) {
        answer_later(a, ACTION_FAILURE, e.text);
        return;
    }
    /* Ports of many probes would else wait in TIME_WAIT. */
    struct linger l = {.l_onoff = 1, .l_linger = 1};
    setsockopt(a->fd, SOL_SOCKET, SO_LINGER, &l, sizeof l);
    a->watch = loop_fd_new(a->loop, a->fd, LOOP_WRITE, tcp_ready, a);
}

/* ---- gRPC (grpc.health.v1) ---- */

static void check_done(void *ctx, const struct rpc_result *r)
{
    struct action *a = ctx;
    a->check = NULL;
    struct pb_field f;
    uint64_t status = 0;
    if (r->status != GRPC_OK) {
        CLEANUP_FREE char *text = xasprintf("error: health rpc did not succeed: %s %s",
                                            grpc_status_name(r->status), r->text);
        end(a, ACTION_FAILURE, text);
        return;
    }
    for (struct pb_reader p = pb_reader_of(r->message, r->size); pb_next(&p, &f) == 1;) {
        status = f.number == 1 && f.type == PB_VARINT ? f.value : status;
    }
    end(a, status == GRPC_SERVING ? ACTION_SUCCESS : ACTION_FAILURE,
        status == GRPC_SERVING ? "" : "service unhealthy (it does not answer SERVING)");
}

static void rpc_up(void *ctx)
{
    struct action *a = ctx;
    struct strbuf message = STRBUF_INIT;
    if (a->service && *a->service) {
        pb_put_bytes(&message, 1, a->service, strlen(a->service));
    }
    a->check = rpc_begin(a->rpc, "/grpc.health.v1.Health/Check", &message, a->timeout_ms, GRPC_MAX,
                         check_done, a);
    strbuf_done(&message);
}

static void rpc_down(void *ctx, const char *reason)
{
    struct action *a = ctx;
    CLEANUP_FREE char *text =
        xasprintf("failed to connect to service at \"%s\": %s", a->address, reason);
    end(a, ACTION_FAILURE, text);
}

static void begin_grpc(struct action *a, const struct json *grpc, const char *ip, uint16_t port)
{
    static const struct h2_ops ops = {.up = rpc_up, .down = rpc_down};
    struct h2_address to = {.address = ip, .port = port, .name = ip};
    struct err e = {0};
    a->service = xstrdup(json_get_text(grpc, "service"));
    if (rpc_connect(a->loop, &to, &ops, a, &a->rpc, &e) < 0) {
        answer_later(a, ACTION_FAILURE, e.text);
    }
}

/* ---- which one ---- */

struct action *action_begin(struct loop *l, struct runtime *r, const struct json *handler,
                            const struct action_target *t, uint64_t timeout_ms,
                            action_done_fn *done, void *ctx)
{
    const struct json *exec = json_get(handler, "exec"), *get = json_get(handler, "httpGet");
    const struct json *tcp = json_get(handler, "tcpSocket"), *grpc = json_get(handler, "grpc");
    const struct json *sleep = json_get(handler, "sleep");
    const struct json *one = get ? get : tcp ? tcp : grpc;
    struct action *a = NEW(struct action);
    a->loop = l;
    a->fd = -1;
    a->done = done;
    a->ctx = ctx;
    a->timeout_ms = timeout_ms ? timeout_ms : NO_LIMIT_MS;
    loop_task_init(&a->task, l, answer, a);
    a->timer = loop_timer_new(l, timed_out, a);
    if (exec) {
        /* The runtime keeps the limit, and ends the command with it. */
        a->timeout_ms = timeout_ms;
        begin_exec(a, r, exec, t->container_id);
        return a;
    }
    if (sleep) {
        int64_t s = json_get_int_or(json_get(sleep, "seconds"), 0);
        a->sleeps = true;
        loop_timer_arm(a->timer, MIN((uint64_t) MAX(s, INT64_C(0)) * SECOND_MS, a->timeout_ms));
        return a;
    }
    const char *host = json_get_text(one, "host");
    host = *host ? host : t->ip;
    uint16_t port = pod_port(t->container, json_get(one, "port"));
    if (!one || !host || !port) {
        answer_later(a, ACTION_ERROR,
                     !one    ? "it has no exec, httpGet, tcpSocket, grpc or sleep"
                     : !host ? "the pod has no address"
                             : "its port is no port of the container");
        return a;
    }
    a->address = xasprintf("%s:%u", host, port);
    loop_timer_arm(a->timer, a->timeout_ms);
    if (get) {
        begin_http(a, get, host, port);
    } else if (tcp) {
        begin_tcp(a, host, port);
    } else {
        begin_grpc(a, grpc, host, port);
    }
    return a;
}
