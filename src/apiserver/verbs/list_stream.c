/* SPDX-License-Identifier: Apache-2.0 */
/* Long lists, sent in pieces as the client reads them, so that neither their memory
 * nor the time to make them delays other requests.  All objects are as of one
 * revision, whatever changes in the meantime. */
#include "apiserver/verbs/list_stream.h"

#include "api/proto.h"
#include "apiserver/request/encode.h"
#include "apiserver/request/respond.h"
#include "base/timeutil.h"
#include "wire/protobuf.h"

#define SLICE ((size_t) 64 << 10)
#define STALL_MS 60000 /* A client that reads nothing for this time does not get the rest. */

struct list_stream {
    struct request *q;
    struct object **objects; /* A reference to each from 'at' on. */
    size_t n, at;
    int64_t now_ms;
    struct loop_timer *stall;
    /* Of a list in protobuf, whose length precedes it: the messages, as far as they are made, and
     * the list's metadata. */
    struct blob **messages;
    size_t n_messages, size;
    struct strbuf metadata;
    struct loop_timer *next; /* The next messages are made. */
};

static void stream_free(struct list_stream *s)
{
    while (s->at < s->n) {
        object_unref(s->objects[s->at++]);
    }
    for (size_t i = 0; i < s->n_messages; i++) {
        blob_unref(s->messages[i]);
    }
    loop_timer_free(s->stall);
    loop_timer_free(s->next);
    strbuf_done(&s->metadata);
    free(s->messages);
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

/* The part that was sent is not complete JSON, and shorter than the protobuf message says, so the
 * client detects that the response was cut off. */
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
        size_t i = s->at++;
        if (s->messages) {
            pb_put_bytes(&out, API_PROTO_ITEM, s->messages[i]->data, s->messages[i]->size);
            continue;
        }
        if (i) {
            strbuf_addc(&out, ',');
        }
        list_write_item(s->q, o, s->now_ms, &out);
    }
    bool ends = s->at == s->n;
    if (ends && s->messages) {
        api_proto_put_end(&out);
    } else if (ends) {
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

/* Sends the beginning; the rest follows when the client has read it. */
static void send_head(struct list_stream *s, const struct strbuf *head)
{
    http_stream_on_drained(s->q->x, send_slice, s);
    if (send(s, head)) {
        loop_timer_arm(s->stall, STALL_MS);
    }
}

/* Makes some of the messages, and leaves the loop to others before the next. */
static void make_slice(void *ctx)
{
    struct list_stream *s = ctx;
    for (size_t made = 0; s->n_messages < s->n && made < SLICE;) {
        struct object *o = s->objects[s->n_messages];
        /* A message that is there already costs nothing. */
        made += o->message ? 1 : o->text->size;
        s->messages[s->n_messages] = encode_cached(s->q, o);
        s->size += api_proto_item_size(s->messages[s->n_messages++]->size);
    }
    if (s->n_messages < s->n) {
        loop_timer_arm(s->next, 0);
        return;
    }
    CLEANUP_STRBUF struct strbuf head = STRBUF_INIT;
    encode_list_head(s->q, s->metadata.size + s->size, &head);
    strbuf_add(&head, s->metadata.data, s->metadata.size);
    send_head(s, &head);
}

void list_stream_begin(struct request *q, const struct strbuf *head, struct object **objects,
                       size_t n)
{
    struct list_stream *s = NEW(struct list_stream);
    bool proto = q->accept.protobuf;
    *s = (struct list_stream){.q = q, .objects = objects, .n = n, .now_ms = time_wall_ms()};
    s->stall = loop_timer_new(q->server->loop, stalled, s);
    for (size_t i = 0; i < n; i++) {
        object_ref(objects[i]);
    }
    respond_stream(q, 200, proto ? API_PROTO_TYPE : "application/json", closed, s);
    if (proto) {
        s->messages = xcalloc(n, sizeof(struct blob *));
        s->next = loop_timer_new(q->server->loop, make_slice, s);
        strbuf_add(&s->metadata, head->data, head->size);
        make_slice(s);
    } else {
        send_head(s, head);
    }
}
