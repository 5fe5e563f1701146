/* SPDX-License-Identifier: Apache-2.0 */
#include "h2_client.h"

#include "net/http/nghttp2_util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/socket.h>

#define MAX_FIELDS 64

static struct h2_reply *reply_of(struct h2_client *c, int32_t id)
{
    return nghttp2_session_get_stream_user_data(c->session, id);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                     void *ctx)
{
    struct h2_reply *r = reply_of(ctx, frame->hd.stream_id);
    if (r && name_size == 7 && memcmp(name, ":status", 7) == 0) {
        r->status = atoi((const char *) value);
    }
    if (r) {
        strbuf_addf(&r->head, "%.*s: %.*s\n", (int) name_size, (const char *) name,
                    (int) value_size, (const char *) value);
    }
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p,
                   size_t size, void *ctx)
{
    struct h2_client *c = ctx;
    struct h2_reply *r = reply_of(c, id);
    if (r) {
        strbuf_add(&r->body, p, size);
    }
    nghttp2_session_consume_connection(session, size);
    if (!c->keep_window) {
        nghttp2_session_consume_stream(session, id, size);
    }
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    struct h2_client *c = ctx;
    struct h2_reply *r = reply_of(c, frame->hd.stream_id);
    if (r && (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
        frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
        r->ended = true;
    }
    if (frame->hd.type == NGHTTP2_GOAWAY) {
        c->goaway = true;
        c->goaway_error = frame->goaway.error_code;
        c->goaway_last = frame->goaway.last_stream_id;
    }
    return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *ctx)
{
    struct h2_reply *r = reply_of(ctx, id);
    if (r) {
        r->closed = true;
        r->error = error;
    }
    return 0;
}

static ssize_t read_upload(nghttp2_session *session, int32_t id, uint8_t *buf, size_t size,
                           uint32_t *flags, nghttp2_data_source *source, void *ctx)
{
    struct h2_reply *r = source->ptr;
    size_t n = MIN(size, r->upload_size);
    if (!n && r->upload_hangs) {
        return NGHTTP2_ERR_DEFERRED;
    }
    memcpy(buf, r->upload, n);
    r->upload += n;
    r->upload_size -= n;
    *flags |= !r->upload_size && !r->upload_hangs ? NGHTTP2_DATA_FLAG_EOF : 0u;
    return (ssize_t) n;
}

struct h2_client *h2_client_new(struct bench *b, uint32_t window)
{
    struct h2_client *c = NEW(struct h2_client);
    c->b = b;
    c->r = raw_connect(b);
    nghttp2_session_callbacks *callbacks = nghttp2_callbacks();
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_option *option;
    nghttp2_must(nghttp2_option_new(&option));
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_must(nghttp2_session_client_new2(&c->session, callbacks, c, option));
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window ? window : 65535}};
    nghttp2_must(nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, settings, 1));
    return c;
}

void h2_client_free(struct h2_client *c)
{
    for (size_t i = 0; i < c->n; i++) {
        strbuf_done(&c->replies[i]->head);
        strbuf_done(&c->replies[i]->body);
        free(c->replies[i]);
    }
    nghttp2_session_del(c->session);
    raw_done(&c->r);
    free(c);
}

struct h2_reply *h2_ask(struct h2_client *c, const char *method, const char *path,
                        const char *const *fields, const char *body, size_t size)
{
    nghttp2_nv nv[4 + MAX_FIELDS] = {
        nghttp2_field(":method", method), nghttp2_field(":scheme", "http"),
        nghttp2_field(":authority", "t"), nghttp2_field(":path", path)};
    size_t n = 4;
    for (; fields && *fields; fields += 2) {
        assert_true(n < ARRAY_SIZE(nv));
        nv[n++] = nghttp2_field(fields[0], fields[1]);
    }
    struct h2_reply *r = c->replies[c->n++] = NEW(struct h2_reply);
    assert_true(c->n < ARRAY_SIZE(c->replies));
    r->head = r->body = STRBUF_INIT;
    r->upload = body;
    r->upload_size = size;
    nghttp2_data_provider provider = {.source.ptr = r, .read_callback = read_upload};
    r->id = nghttp2_submit_request(c->session, NULL, nv, n, body ? &provider : NULL, r);
    assert_true(r->id > 0);
    return r;
}

struct h2_reply *h2_get(struct h2_client *c, const char *path)
{
    return h2_ask(c, "GET", path, NULL, NULL, 0);
}

void h2_pump(struct h2_client *c)
{
    char buf[65536];
    const uint8_t *p;
    ssize_t n;
    while ((n = nghttp2_session_mem_send(c->session, &p)) > 0) {
        raw_send_n(&c->r, (const char *) p, (size_t) n);
    }
    while ((n = recv(c->r.fd, buf, sizeof buf, MSG_DONTWAIT)) > 0) {
        assert_int_equal(nghttp2_session_mem_recv(c->session, (const uint8_t *) buf, (size_t) n),
                         n);
    }
    c->r.eof |= n == 0 || (errno != EAGAIN && errno != EINTR);
    bench_run_for(c->b, 1);
}

struct waiting {
    struct h2_client *c;
    struct h2_reply *r;
};

static bool has_ended(void *ctx)
{
    struct waiting *w = ctx;
    h2_pump(w->c);
    return w->r->ended || w->r->closed || w->c->r.eof;
}

static bool has_head(void *ctx)
{
    struct waiting *w = ctx;
    return has_ended(w) || w->r->status;
}

static bool has_goaway(void *ctx)
{
    struct h2_client *c = ctx;
    h2_pump(c);
    return c->goaway || c->r.eof;
}

void h2_wait(struct h2_client *c, struct h2_reply *r)
{
    bench_turn(c->b, has_ended, &(struct waiting){c, r});
}

void h2_wait_head(struct h2_client *c, struct h2_reply *r)
{
    bench_turn(c->b, has_head, &(struct waiting){c, r});
}

void h2_wait_goaway(struct h2_client *c)
{
    bench_turn(c->b, has_goaway, c);
}

void h2_frame(struct h2_client *c, uint8_t type, uint8_t flags, int32_t id, const void *p,
              size_t size)
{
    uint8_t head[9] = {
        (uint8_t) (size >> 16), (uint8_t) (size >> 8), (uint8_t) size,      type,        flags,
        (uint8_t) (id >> 24),   (uint8_t) (id >> 16),  (uint8_t) (id >> 8), (uint8_t) id};
    CLEANUP_STRBUF struct strbuf frame = STRBUF_INIT;
    strbuf_add(&frame, head, sizeof head);
    strbuf_add(&frame, p, size);
    raw_send_n(&c->r, frame.data, frame.size);
}
