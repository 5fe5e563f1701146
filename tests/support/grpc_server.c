/* SPDX-License-Identifier: Apache-2.0 */
#include "grpc_server.h"

#include "base/list.h"
#include "base/mem.h"
#include "check.h"
#include "net/http/nghttp2_util.h"
#include "net/loop/sock.h"

#include <sys/socket.h>
#include <unistd.h>

#define MESSAGE_MAX ((size_t) 16 << 20)

struct grpc_server {
    struct loop *loop;
    char *path;
    int fd;
    struct loop_fd *watch;
    const struct grpc_server_ops *ops;
    void *ctx;
    struct list conns;
};

struct conn {
    struct grpc_server *server;
    struct list node;
    int fd;
    struct loop_fd *watch;
    nghttp2_session *session;
    struct loop_task flush;
    struct strbuf out;
    struct list requests;
    bool broken;
};

struct grpc_request {
    struct conn *conn;
    struct list node;
    int32_t id;
    char *path, *timeout;
    struct grpc_reader reader;
    const char *message;
    size_t message_size;
    bool begun, answered, ended;
    struct strbuf body; /* Of the answer, not sent yet. */
    enum grpc_status status;
    char *text;
};

static void request_free(struct grpc_request *q)
{
    struct grpc_server *s = q->conn->server;
    if (q->begun) {
        s->ops->gone(s->ctx, q);
    }
    list_remove(&q->node);
    grpc_reader_done(&q->reader);
    strbuf_done(&q->body);
    free(q->path);
    free(q->timeout);
    free(q->text);
    free(q);
}

static void conn_free(struct conn *c)
{
    list_remove(&c->node);
    struct grpc_request *q;
    LIST_FOREACH (q, struct grpc_request, node, &c->requests) {
        request_free(q);
    }
    nghttp2_session_del(c->session);
    loop_task_cancel(&c->flush);
    loop_fd_free(c->watch);
    fd_close(c->fd);
    strbuf_done(&c->out);
    free(c);
}

/* ---- answers ---- */

static ssize_t read_answer(nghttp2_session *session, int32_t id, uint8_t *buf, size_t size,
                           uint32_t *flags, nghttp2_data_source *source, void *ctx)
{
    struct grpc_request *q = source->ptr;
    size_t n = MIN(size, q->body.size);
    if (n) {
        memcpy(buf, q->body.data, n);
        strbuf_consume(&q->body, n);
    }
    if (q->body.size) {
        return (ssize_t) n;
    }
    if (!q->ended) {
        return n ? (ssize_t) n : NGHTTP2_ERR_DEFERRED;
    }
    char status[8];
    snprintf(status, sizeof status, "%u", (unsigned) q->status);
    nghttp2_nv trailer[] = {nghttp2_field("grpc-status", status),
                            nghttp2_field("grpc-message", q->text)};
    *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    nghttp2_must(nghttp2_submit_trailer(session, id, trailer, ARRAY_SIZE(trailer)));
    return (ssize_t) n;
}

static void answer(struct grpc_request *q)
{
    nghttp2_nv header[] = {nghttp2_field(":status", "200"),
                           nghttp2_field("content-type", "application/grpc")};
    nghttp2_data_provider provider = {.source.ptr = q, .read_callback = read_answer};
    if (!q->answered) {
        q->answered = true;
        nghttp2_must(nghttp2_submit_response(q->conn->session, q->id, header, ARRAY_SIZE(header),
                                             &provider));
    } else {
        nghttp2_session_resume_data(q->conn->session, q->id);
    }
    loop_task_queue(&q->conn->flush);
}

void grpc_request_send(struct grpc_request *q, const struct strbuf *message)
{
    CHECK(!q->ended, "a message after the end of %s", q->path);
    size_t mark = grpc_frame_begin(&q->body);
    strbuf_add(&q->body, strbuf_cstr(message), message->size);
    grpc_frame_end(&q->body, mark);
    answer(q);
}

void grpc_request_end(struct grpc_request *q, enum grpc_status status, const char *text)
{
    CHECK(!q->ended, "two ends of %s", q->path);
    q->ended = true;
    q->status = status;
    q->text = xstrdup(text ? text : "");
    answer(q);
}

const char *grpc_request_path(const struct grpc_request *q)
{
    return q->path;
}

const char *grpc_request_message(const struct grpc_request *q, size_t *ret_size)
{
    *ret_size = q->message_size;
    return q->message;
}

const char *grpc_request_timeout(const struct grpc_request *q)
{
    return q->timeout ? q->timeout : "";
}

/* ---- nghttp2's callbacks ---- */

static struct grpc_request *request_of(nghttp2_session *session, int32_t id)
{
    return nghttp2_session_get_stream_user_data(session, id);
}

static int on_begin(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    struct conn *c = ctx;
    struct grpc_request *q = NEW(struct grpc_request);
    q->conn = c;
    q->id = frame->hd.stream_id;
    q->reader = GRPC_READER_INIT(MESSAGE_MAX);
    q->body = STRBUF_INIT;
    list_push_back(&c->requests, &q->node);
    nghttp2_session_set_stream_user_data(session, q->id, q);
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                     void *ctx)
{
    struct grpc_request *q = request_of(session, frame->hd.stream_id);
    if (q && streq((const char *) name, ":path")) {
        q->path = xstrndup((const char *) value, value_size);
    } else if (q && streq((const char *) name, "grpc-timeout")) {
        q->timeout = xstrndup((const char *) value, value_size);
    }
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p,
                   size_t size, void *ctx)
{
    struct grpc_request *q = request_of(session, id);
    if (q) {
        grpc_reader_add(&q->reader, p, size);
    }
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    struct conn *c = ctx;
    struct grpc_request *q = request_of(session, frame->hd.stream_id);
    if (q && !q->begun && frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
        CHECK(grpc_reader_next(&q->reader, &q->message, &q->message_size) == 1, "%s has no message",
              q->path);
        q->begun = true;
        c->server->ops->begun(c->server->ctx, q);
    }
    return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *ctx)
{
    struct grpc_request *q = request_of(session, id);
    if (q) {
        nghttp2_session_set_stream_user_data(session, id, NULL);
        request_free(q);
    }
    return 0;
}

/* ---- sockets ---- */

static void flush(void *ctx)
{
    struct conn *c = ctx;
    const uint8_t *p;
    ssize_t n;
    while ((n = nghttp2_session_mem_send(c->session, &p)) > 0) {
        strbuf_add(&c->out, p, (size_t) n);
    }
    CHECK(n == 0, "%s", nghttp2_strerror((int) n));
    while (c->out.size) {
        n = send(c->fd, c->out.data, c->out.size, MSG_NOSIGNAL);
        if (n < 0) {
            c->broken = errno != EAGAIN;
            break;
        }
        strbuf_consume(&c->out, (size_t) n);
    }
    loop_fd_set(c->watch, c->out.size && !c->broken ? LOOP_READ | LOOP_WRITE : LOOP_READ);
}

static void on_ready(void *ctx, unsigned events)
{
    struct conn *c = ctx;
    char buf[65536];
    ssize_t n = recv(c->fd, buf, sizeof buf, 0);
    if (n == 0 || (n < 0 && errno != EAGAIN)) {
        conn_free(c);
        return;
    }
    if (n > 0 && nghttp2_session_mem_recv(c->session, (const uint8_t *) buf, (size_t) n) < 0) {
        conn_free(c);
        return;
    }
    flush(c);
}

static void on_accept(void *ctx, unsigned events)
{
    struct grpc_server *s = ctx;
    int fd = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
        return;
    }
    struct conn *c = NEW(struct conn);
    c->server = s;
    c->fd = fd;
    c->out = STRBUF_INIT;
    list_init(&c->requests);
    list_push_back(&s->conns, &c->node);
    loop_task_init(&c->flush, s->loop, flush, c);
    c->watch = loop_fd_new(s->loop, fd, LOOP_READ, on_ready, c);
    nghttp2_session_callbacks *callbacks = nghttp2_callbacks();
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_must(nghttp2_session_server_new(&c->session, callbacks, c));
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, NULL, 0);
    loop_task_queue(&c->flush);
}

struct grpc_server *grpc_server_new(struct loop *l, const char *path,
                                    const struct grpc_server_ops *ops, void *ctx)
{
    struct grpc_server *s = NEW(struct grpc_server);
    struct err e;
    s->loop = l;
    s->path = xstrdup(path);
    s->ops = ops;
    s->ctx = ctx;
    list_init(&s->conns);
    CHECK(sock_listen_unix(path, 0600, &s->fd, &e) == 0, "%s", e.text);
    s->watch = loop_fd_new(l, s->fd, LOOP_READ, on_accept, s);
    return s;
}

struct grpc_server *grpc_server_free(struct grpc_server *s)
{
    if (s) {
        struct conn *c;
        LIST_FOREACH (c, struct conn, node, &s->conns) {
            conn_free(c);
        }
        loop_fd_free(s->watch);
        fd_close(s->fd);
        unlink(s->path);
        free(s->path);
        free(s);
    }
    return NULL;
}
