/* SPDX-License-Identifier: Apache-2.0 */
/* Watches: streams of the changes of one kind.
 *
 * A change is encoded once for each requested form, and all watchers share the bytes.  With a
 * selector, an object that begins to match is ADDED and one that ceases to match is DELETED.
 *
 * A watch is either live, and gets each change as it happens, or catches up: first with its initial
 * objects, then with the events of the window.  The watch of a slow client falls back to catching
 * up when too many bytes are queued, so that pending events stay in the shared window and take no
 * memory of their own; when the window has moved on, the client gets the error that its version is
 * too old. One timer serves all watches: their ends, and bookmarks.
 *
 * The changes of one transaction in etcd have one revision.  A watch gets all or none of those of
 * its kind before 'seen' is that revision; a client that resumes at it gets them again, because it
 * may have been cut off between them. */
#include "apiserver/verbs/watch.h"

#include "api/proto.h"
#include "apiserver/request/encode.h"
#include "apiserver/request/filter.h"
#include "apiserver/request/flow.h"
#include "apiserver/request/metrics.h"
#include "apiserver/request/respond.h"
#include "apiserver/stream/proxy.h"
#include "apiserver/stream/stream.h"
#include "apiserver/verbs/read.h"
#include "base/timeutil.h"

#include <inttypes.h>
#include <stdio.h>

#define TICK_MS 1000
#define BOOKMARK_MS 30000
#define QUEUE_PAUSE ((size_t) 256 << 10) /* Unsent bytes above which a watch is no longer live. */
#define MAX_WATCHES 50000
#define MIN_TIMEOUT_MS (UINT64_C(30) * 60 * 1000)

struct watch {
    struct list node;
    /* In the list of watches that require the same value of the indexed field, or any. */
    struct list peer;
    const char *value; /* The required value, which belongs to the selection; NULL: any. */
    struct request *q;
    struct selection sel;
    bool bookmarks;
    bool ended; /* Its client has disconnected or was cut off. */
    bool live;
    struct object **initial; /* Initial objects that are not sent yet, from 'at_initial' on. */
    size_t n_initial, at_initial;
    bool initial_end; /* A bookmark follows the initial objects. */
    uint64_t seen;    /* All events up to this revision were sent. */
    uint64_t deadline_ms, bookmark_at_ms;
};

enum change { ADDED, MODIFIED, DELETED, N_CHANGES };
static const char *const change_names[] = {"ADDED", "MODIFIED", "DELETED"};

/* ---- encoding ---- */

/* Number of forms that differ in their bytes: the object; metadata and a table for
 * each includeObject, in two versions each; the object and metadata in protobuf. */
#define N_JSON_FORMS (1 + 2 + 2 * 3)
#define N_FORMS (N_JSON_FORMS + 1 + 2)

static size_t form_number(const struct accept *a)
{
    size_t first = a->protobuf ? N_JSON_FORMS : 0;
    switch (a->form) {
    case FORM_PARTIAL:
        return first + 1 + a->v1beta1;
    case FORM_TABLE:
        return 3 + 2 * (size_t) a->include + a->v1beta1;
    case FORM_OBJECT:
        break;
    }
    return first;
}

/* The encodings of one change that were needed so far, in all forms and content types: for one
 * version, and linked to those for other versions. */
struct frames {
    const struct cache_kind *ck;
    const struct cache_event *ev;
    const struct api_kind *kind; /* The version; NULL: no encoding was needed yet. */
    struct blob *made[N_CHANGES][N_FORMS];
    struct frames *others; /* NULL: none. */
};

static void frames_done(struct frames *f)
{
    for (size_t i = 0; i < N_CHANGES; i++) {
        for (size_t j = 0; j < N_FORMS; j++) {
            f->made[i][j] = blob_unref(f->made[i][j]);
        }
    }
    if (f->others) {
        frames_done(f->others);
        free(TAKE(f->others));
    }
}

/* The encodings in version 'k'. */
static struct frames *frames_of(struct frames *f, const struct api_kind *k)
{
    while (f->kind && f->kind != k) {
        if (!f->others) {
            f->others = NEW(struct frames);
            *f->others = (struct frames){.ck = f->ck, .ev = f->ev};
        }
        f = f->others;
    }
    f->kind = k;
    return f;
}

/* A table with one row, or none when 'obj' is NULL. */
static void write_table(const struct request *q, const struct json *obj, const struct blob *text,
                        uint64_t revision, struct strbuf *out)
{
    const struct accept *a = &q->accept;
    strbuf_addf(out,
                "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/%s\",\"metadata\":{"
                "\"resourceVersion\":\"%" PRIu64 "\"},\"columnDefinitions\":",
                a->v1beta1 ? "v1beta1" : "v1", revision);
    api_table_columns(q->kind, out);
    strbuf_adds(out, ",\"rows\":[");
    if (obj) {
        api_table_row(q->kind, obj, text->data, text->size, a->include, time_wall_ms(), out);
    }
    strbuf_adds(out, "]}");
}

/* The frame of an event in protobuf whose object has the message 'message'. */
static struct blob *proto_frame(const struct request *q, const char *type,
                                const struct strbuf *message)
{
    CLEANUP_STRBUF struct strbuf object = STRBUF_INIT, out = STRBUF_INIT;
    encode_envelope(q, message, &object);
    api_proto_put_event(type, &object, &out);
    return blob_new(out.data, out.size);
}

static struct blob *encode(const struct request *q, const char *type, struct blob *stored,
                           uint64_t revision)
{
    const struct accept *a = &q->accept;
    CLEANUP(blob_unref) struct blob *text = request_text(q, stored);
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    if (a->protobuf) {
        encode_message(q, text, &out);
        return proto_frame(q, type, &out);
    }
    strbuf_reserve(&out, a->form == FORM_OBJECT ? text->size + 64 : 0);
    strbuf_addf(&out, "{\"type\":\"%s\",\"object\":", type);
    if (a->form == FORM_OBJECT) {
        strbuf_add(&out, text->data, text->size);
    } else if (a->form == FORM_PARTIAL) {
        request_write_partial(q, text, &out);
    } else {
        CLEANUP(json_free) struct json *obj = NULL;
        json_parse(text->data, text->size, &obj, NULL);
        write_table(q, obj, text, revision, &out);
    }
    strbuf_adds(&out, "}\n");
    return blob_new(out.data, out.size);
}

static struct blob *frame(struct frames *all, const struct request *q, enum change type)
{
    struct frames *f = frames_of(all, q->kind);
    struct blob **made = &f->made[type][form_number(&q->accept)];
    if (!*made) {
        CLEANUP(blob_unref)
        struct blob *text = type == DELETED
                                ? object_text_at(f->ev->old, f->ck->head, f->ev->revision)
                                : blob_ref(f->ev->new->text);
        *made = encode(q, change_names[type], text, f->ev->revision);
    }
    return *made;
}

/* ---- one watch ---- */

/* Adds the watch to the list by its value of the indexed field, so that it sees
 * only changes of objects with that value. */
static void join_peers(struct watch *w)
{
    struct cache_kind *ck = w->q->ck;
    struct list *peers = &ck->watches_of_any;
    w->value = selection_value(w->q, &w->sel);
    if (w->value && !(peers = smap_get(&ck->watches_by_value, w->value))) {
        peers = NEW(struct list);
        list_init(peers);
        smap_set(&ck->watches_by_value, w->value, peers);
    }
    list_push_back(peers, &w->peer);
}

static void leave_peers(struct watch *w)
{
    list_remove(&w->peer);
    if (w->value) {
        struct cache_kind *ck = w->q->ck;
        struct list *peers = smap_get(&ck->watches_by_value, w->value);
        if (list_is_empty(peers)) {
            smap_remove(&ck->watches_by_value, w->value);
        }
    }
}

static void watch_free(struct watch *w)
{
    struct request *q = w->q;
    list_remove(&w->node);
    leave_peers(w);
    q->ck->n_watches--;
    q->server->n_watches--;
    metrics_count(q->server->metrics, VERB_WATCH, q->ck->kind->plural, 200,
                  time_mono_ns() - q->start_ns);
    while (w->at_initial < w->n_initial) {
        object_unref(w->initial[w->at_initial++]);
    }
    free(w->initial);
    selection_done(&w->sel);
    filter_done(q, 200, NULL, 0);
    request_free(q);
    free(w);
}

static void watch_closed(void *ctx)
{
    watch_free(ctx);
}

static void send(struct watch *w, struct blob *b)
{
    /* When the queue is full, the stream is cut, and watch_closed is called later. */
    if (!w->ended && http_stream_write(w->q->x, b) < 0) {
        w->ended = true;
    }
}

static bool in_namespace(const struct watch *w, const struct object *o)
{
    return !w->q->namespace || streq(api_index_field(o->index, 1), w->q->namespace);
}

static bool wants(const struct watch *w, const struct object *o)
{
    return o && in_namespace(w, o) && selection_matches(&w->sel, o);
}

static void send_event(struct watch *w, struct frames *f)
{
    bool before = wants(w, f->ev->old), after = wants(w, f->ev->new);
    if (before || after) {
        send(w, frame(f, w->q, !after ? DELETED : before ? MODIFIED : ADDED));
    }
}

#define INITIAL_END "\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}"

/* A table has no annotations, so its only row has them. */
static void write_end_table(const struct request *q, uint64_t revision, struct strbuf *out)
{
    const char *version = q->accept.v1beta1 ? "v1beta1" : "v1";
    strbuf_addf(out,
                "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/%s\",\"metadata\":{"
                "\"resourceVersion\":\"%" PRIu64 "\"},\"columnDefinitions\":",
                version, revision);
    api_table_columns(q->kind, out);
    strbuf_addf(out,
                ",\"rows\":[{\"cells\":[],\"object\":{\"kind\":\"PartialObjectMetadata\","
                "\"apiVersion\":\"meta.k8s.io/%s\",\"metadata\":{\"resourceVersion\":\"%" PRIu64
                "\"," INITIAL_END "}}}]}",
                version, revision);
}

/* An object of which only the version, and the end of the initial objects, are told. */
static void send_proto_bookmark(struct watch *w, uint64_t revision, bool initial_end)
{
    CLEANUP_STRBUF struct strbuf message = STRBUF_INIT;
    CLEANUP_FREE char *text = xasprintf("{\"metadata\":{\"resourceVersion\":\"%" PRIu64 "\"%s}}",
                                        revision, initial_end ? "," INITIAL_END : "");
    CLEANUP(blob_unref) struct blob *json = blob_new(text, strlen(text));
    encode_message(w->q, json, &message);
    CLEANUP(blob_unref) struct blob *b = proto_frame(w->q, "BOOKMARK", &message);
    send(w, b);
}

static void send_bookmark(struct watch *w, uint64_t revision, bool initial_end)
{
    const struct accept *a = &w->q->accept;
    const struct api_kind *k = w->q->kind;
    if (a->protobuf) {
        send_proto_bookmark(w, revision, initial_end);
        return;
    }
    CLEANUP_FREE char *version = request_api_version(w->q);
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    strbuf_adds(&out, "{\"type\":\"BOOKMARK\",\"object\":");
    if (a->form == FORM_TABLE && initial_end) {
        write_end_table(w->q, revision, &out);
    } else if (a->form == FORM_TABLE) {
        write_table(w->q, NULL, NULL, revision, &out);
    } else {
        strbuf_addf(&out,
                    "{\"kind\":\"%s\",\"apiVersion\":\"%s%s\",\"metadata\":{\"resourceVersion\":"
                    "\"%" PRIu64 "\",\"creationTimestamp\":null%s}}",
                    a->form == FORM_PARTIAL ? "PartialObjectMetadata" : k->kind,
                    a->form == FORM_PARTIAL ? "meta.k8s.io/" : "",
                    a->form != FORM_PARTIAL ? version
                    : a->v1beta1            ? "v1beta1"
                                            : "v1",
                    revision, initial_end ? "," INITIAL_END : "");
    }
    strbuf_adds(&out, "}\n");
    CLEANUP(blob_unref) struct blob *b = blob_new(out.data, out.size);
    send(w, b);
}

static uint64_t bookmark_interval(const struct apiserver *a)
{
    return a->cfg.bookmark_ms ? a->cfg.bookmark_ms : BOOKMARK_MS;
}

/* Sends the error as the last event of the stream, as kube-apiserver does. */
static void send_expired(struct watch *w)
{
    CLEANUP(outcome_done) struct outcome expired = {0};
    outcome_error(&expired, 410, "Expired", "too old resource version: %" PRIu64 " (%" PRIu64 ")",
                  w->seen, w->q->ck->floor);
    CLEANUP(json_free) struct json *status = status_object(w->q, &expired);
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT, object = STRBUF_INIT;
    if (w->q->accept.protobuf && api_proto_put_object(status, &object) == 0) {
        api_proto_put_event("ERROR", &object, &out);
    } else {
        strbuf_adds(&out, "{\"type\":\"ERROR\",\"object\":");
        json_write(status, 0, &out);
        strbuf_adds(&out, "}\n");
    }
    CLEANUP(blob_unref) struct blob *b = blob_new(out.data, out.size);
    send(w, b);
}

static void watch_end(struct watch *w)
{
    if (!w->ended) {
        http_stream_end(w->q->x);
        watch_free(w);
    }
}

/* ---- catching up ---- */

static void take_initial(struct watch *w)
{
    struct cache_walk walk;
    struct object *o;
    struct request *q = w->q;
    size_t cap = 0;
    struct cache_range range = selection_range(q, &w->sel);
    cache_walk_init(&walk, q->ck, &range, w->seen);
    while ((o = cache_walk_next(&walk))) {
        if (selection_matches(&w->sel, o)) {
            w->initial = grow(w->initial, &cap, w->n_initial + 1, sizeof(struct object *));
            w->initial[w->n_initial++] = object_ref(o);
        }
    }
    cache_walk_done(&walk);
}

static void send_next_initial(struct watch *w)
{
    CLEANUP(object_unref) struct object *o = w->initial[w->at_initial++];
    CLEANUP(blob_unref)
    struct blob *b = encode(w->q, "ADDED", o->text, o->revision);
    send(w, b);
    if (w->at_initial == w->n_initial) {
        free(TAKE(w->initial));
        w->n_initial = w->at_initial = 0;
    }
}

/* Sends the i-th event of the window, and those after it that have its revision. */
static void send_revision(struct watch *w, size_t i)
{
    const struct cache_kind *ck = w->q->ck;
    w->seen = cache_event_at(ck, i)->revision;
    for (; i < ck->n_events && cache_event_at(ck, i)->revision == w->seen; i++) {
        struct frames f = {.ck = ck, .ev = cache_event_at(ck, i)};
        send_event(w, &f);
        frames_done(&f);
    }
}

/* Sends pending events until enough is queued; the watch may be freed on return. */
static void catch_up(void *ctx)
{
    struct watch *w = ctx;
    const struct cache_kind *ck = w->q->ck;
    while (!w->live && !w->ended && http_stream_queued(w->q->x) < QUEUE_PAUSE) {
        size_t i;
        if (w->at_initial < w->n_initial) {
            send_next_initial(w);
        } else if (w->initial_end) {
            w->initial_end = false;
            send_bookmark(w, w->seen, true);
        } else if (w->seen < ck->floor) {
            send_expired(w);
            watch_end(w);
            return;
        } else if ((i = cache_event_after(ck, w->seen)) == ck->n_events) {
            w->live = true;
        } else {
            send_revision(w, i);
        }
    }
}

/* ---- beginning ---- */

struct watch_request {
    uint64_t revision;
    bool from_now_on; /* Begins after 'revision'; otherwise every existing object is ADDED first. */
    bool initial_end; /* A bookmark marks the end of the initial objects. */
    uint64_t timeout_ms;
};

static int parse_watch(struct request *q, struct watch_request *ret, struct outcome *outcome)
{
    struct watch_request p = {0};
    bool present;
    const char *timeout = http_query(q->x, "timeoutSeconds");
    const char *initial = http_query(q->x, "sendInitialEvents");
    const char *match = http_query(q->x, "resourceVersionMatch");
    if (version_parse(q, &p.revision, &present, outcome) < 0) {
        return -EINVAL;
    }
    uint64_t seconds = 0;
    if (timeout && *timeout) {
        (void) str_to_u64(timeout, INT32_MAX, &seconds); /* Was checked before. */
    }
    if (initial && *initial && !(match && streq(match, "NotOlderThan"))) {
        outcome_error(outcome, 400, "BadRequest",
                      "resourceVersionMatch: Forbidden: sendInitialEvents requires setting "
                      "resourceVersionMatch to NotOlderThan");
        return -EINVAL;
    }
    if (!initial && match && *match) {
        outcome_error(
            outcome, 400, "BadRequest",
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch "
            "unless sendInitialEvents is provided");
        return -EINVAL;
    }
    if (initial && request_flag(q, "sendInitialEvents")) {
        p.initial_end = request_flag(q, "allowWatchBookmarks");
    } else {
        p.from_now_on = p.revision > 0 || (initial && *initial);
    }
    if (p.from_now_on && p.revision == 0) {
        p.revision = q->server->cache.revision;
    }
    if (p.revision > q->server->cache.revision) {
        outcome_too_large(outcome, q, p.revision);
        return -EINVAL;
    }
    uint64_t longest = q->server->cfg.watch_timeout_ms;
    p.timeout_ms = seconds   ? seconds * 1000
                   : longest ? longest
                             : MIN_TIMEOUT_MS + hash_bytes(&q, sizeof q) % MIN_TIMEOUT_MS;
    *ret = p;
    return 0;
}

void handle_watch(struct request *q, struct outcome *outcome)
{
    struct watch_request p;
    struct selection sel;
    struct apiserver *a = q->server;
    if (q->accept.yaml) {
        outcome_error(outcome, 406, "NotAcceptable",
                      "only the following media types are accepted: application/json");
        return;
    }
    if (a->n_watches >= (a->cfg.max_watches ? a->cfg.max_watches : MAX_WATCHES)) {
        outcome_error(outcome, 429, "TooManyRequests", "too many watches, please try again later");
        return;
    }
    if (parse_watch(q, &p, outcome) < 0 || selection_parse(q, &sel, outcome) < 0) {
        return;
    }
    struct watch *w = NEW(struct watch);
    *w = (struct watch){.q = q, .sel = sel, .bookmarks = request_flag(q, "allowWatchBookmarks")};
    uint64_t now = loop_now_ms(a->loop);
    w->deadline_ms = now + p.timeout_ms;
    w->bookmark_at_ms = now + bookmark_interval(a);
    list_push_back(&q->ck->watches, &w->node);
    join_peers(w);
    q->ck->n_watches++;
    if (a->n_watches++ == 0) {
        loop_timer_arm(a->watch_timer, TICK_MS);
    }
    w->seen = !p.from_now_on                                ? a->cache.revision
              : cache_revision_is_shared(q->ck, p.revision) ? p.revision - 1
                                                            : p.revision;
    w->initial_end = p.initial_end;
    outcome_take_over(outcome);
    flow_release(q);
    filter_streaming(q);
    respond_stream(q, 200, q->accept.protobuf ? API_PROTO_TYPE ";stream=watch" : "application/json",
                   watch_closed, w);
    http_stream_on_drained(q->x, catch_up, w);
    if (!p.from_now_on) {
        take_initial(w);
    }
    catch_up(w);
}

/* ---- all watches ---- */

static void dispatch(struct list *peers, struct frames *f)
{
    struct watch *w;
    LIST_FOREACH (w, struct watch, peer, peers) {
        bool begun = w->seen == f->ev->revision; /* Another event of it was sent. */
        if ((w->live || begun) && !w->ended) {
            send_event(w, f);
            w->seen = f->ev->revision;
            w->live = w->live && http_stream_queued(w->q->x) < QUEUE_PAUSE;
        }
    }
}

static const char *indexed_value(const struct cache_kind *ck, const struct object *o)
{
    return o && ck->indexed >= 0 ? api_index_field(o->index, (size_t) ck->indexed) : NULL;
}

static void dispatch_value(struct cache_kind *ck, const char *value, struct frames *f)
{
    struct list *peers = value ? smap_get(&ck->watches_by_value, value) : NULL;
    if (peers) {
        dispatch(peers, f);
    }
}

/* Ends the watches and the streams that came with the OAuth token whose object is called 'name'. */
static void end_of_token(struct apiserver *a, const char *name)
{
    stream_end_of_token(a, name);
    proxy_end_of_token(a, name);
    for (size_t i = 0; i < a->cache.n_kinds; i++) {
        struct watch *w;
        LIST_FOREACH (w, struct watch, node, &a->cache.kinds[i]->watches) {
            if (request_has_token(w->q, name)) {
                watch_end(w);
            }
        }
    }
}

static void on_changed(void *server, struct cache_kind *ck, const struct cache_event *ev)
{
    struct apiserver *a = server;
    struct frames f = {.ck = ck, .ev = ev};
    const char *old = indexed_value(ck, ev->old), *new = indexed_value(ck, ev->new);
    dispatch(&ck->watches_of_any, &f);
    dispatch_value(ck, old, &f);
    if (!streq_null(old, new)) {
        dispatch_value(ck, new, &f);
    }
    frames_done(&f);
    if (ck == a->security->tokens && !ev->new) {
        end_of_token(a, ev->old->key);
    }
}

static void on_tick(void *server)
{
    struct apiserver *a = server;
    uint64_t now = loop_now_ms(a->loop);
    int64_t wall = time_wall_ms();
    for (size_t i = 0; i < a->cache.n_kinds; i++) {
        struct watch *w;
        LIST_FOREACH (w, struct watch, node, &a->cache.kinds[i]->watches) {
            bool ends = now >= w->deadline_ms || request_has_ended_token(w->q, wall);
            /* A bookmark is also sent at the end: the client resumes from there. */
            if (w->bookmarks && w->live && (ends || now >= w->bookmark_at_ms)) {
                send_bookmark(w, a->cache.revision, false);
                w->bookmark_at_ms = now + bookmark_interval(a);
            }
            if (ends) {
                watch_end(w);
            }
        }
    }
    if (a->n_watches) {
        loop_timer_arm(a->watch_timer, TICK_MS);
    }
}

void watch_end_kind(struct cache_kind *ck)
{
    struct watch *w;
    LIST_FOREACH (w, struct watch, node, &ck->watches) {
        watch_end(w);
    }
}

void watch_end_all(struct apiserver *a)
{
    for (size_t i = 0; i < a->cache.n_kinds; i++) {
        watch_end_kind(a->cache.kinds[i]);
    }
}

/* Clients cannot be sent the missed changes: their watches end, and they list again. */
static void on_reset(void *server)
{
    watch_end_all(server);
}

void watch_init(struct apiserver *a)
{
    a->watch_timer = loop_timer_new(a->loop, on_tick, a);
    a->watches = (struct cache_subscriber){
        .rank = CACHE_RANK_WATCH, .ctx = a, .changed = on_changed, .resetting = on_reset};
    cache_subscribe(&a->cache, &a->watches);
}

void watch_drop_all(struct apiserver *a)
{
    for (size_t i = 0; i < a->cache.n_kinds; i++) {
        struct watch *w;
        LIST_FOREACH (w, struct watch, node, &a->cache.kinds[i]->watches) {
            watch_free(w);
        }
    }
}
