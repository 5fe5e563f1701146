/* SPDX-License-Identifier: Apache-2.0 */
/* Long lists, sent in pieces as the client reads them, so that neither their memory
 * nor the time to make them delays other requests.  All objects are as of one
 * revision, whatever changes in the meantime. */
#include "apiserver/verbs/list_stream.h"

#include "apiserver/request/respond.h"
#include "base/timeutil.h"

#define SLICE ((size_t) 64 << 10)
#define STALL_MS 60000 /* A client that reads nothing for this time does not get the rest. */

struct list_stream {
    struct request *q;
    struct object **objects; /* A reference to each from 'at' on. */
    size_t n, at;
    int64_t now_ms;
    struct loop_timer *stall;
};

static void stream_free(struct list_stream *s)
{
    while (s->at < s->n) {
        object_unref(s->objects[s->at++]);
    }
    loop_timer_free(s->stall);
    free(s->objects);
    respond_streamed(s->q);
    free(s);
}

static void closed(void *ctx)
{
    stream_free(ctx);
}

static void finish(struct list_stream *s)
{
    http_stream_end(s->q->x);
    stream_free(s);
}

/* The part that was sent is not complete JSON, so the client detects that the response was
 * cut off. */
static void stalled(void *ctx)
{
    finish(ctx);
}

/* Returns false if the stream is being cut, or has ended. */
static bool send(struct list_stream *s, const struct strbuf *text)
{
    CLEANUP(blob_unref) struct blob *b = blob_new(text->data, text->size);
    return http_stream_write(s->q->x, b) == 0;
}

static void send_slice(void *ctx)
{
    struct list_stream *s = ctx;
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    while (s->at < s->n && out.size < SLICE) {
        CLEANUP(object_unref) struct object *o = s->objects[s->at];
        if (s->at++) {
            strbuf_addc(&out, ',');
        }
        list_write_item(s->q, o, s->now_ms, &out);
    }
    bool ends = s->at == s->n;
    if (ends) {
        strbuf_adds(&out, "]}\n");
    }
    if (!send(s, &out)) {
        loop_timer_disarm(s->stall);
    } else if (ends) {
        finish(s);
    } else {
        loop_timer_arm(s->stall, STALL_MS);
    }
}

void list_stream_begin(struct request *q, const struct strbuf *head, struct object **objects,
                       size_t n)
{
    struct list_stream *s = NEW(struct list_stream);
    *s = (struct list_stream){.q = q, .objects = objects, .n = n, .now_ms = time_wall_ms()};
    s->stall = loop_timer_new(q->server->loop, stalled, s);
    for (size_t i = 0; i < n; i++) {
        object_ref(objects[i]);
    }
    respond_stream(q, closed, s);
    http_stream_on_drained(q->x, send_slice, s);
    if (send(s, head)) {
        loop_timer_arm(s->stall, STALL_MS);
    }
}
