/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/recorder.h"

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "controller/obj.h"
#include "controller/workqueue.h"

LOG_MODULE("events");

#define PARALLEL 4
#define MAX_WAITING 10000
#define MAX_TRIES 5
#define MAX_NAME 253
/* Most objects with a budget of their own; when there are more, all budgets start again. */
#define MAX_OBJECTS 4096

struct pending {
    struct list node; /* In 'fresh' until its time has come. */
    char *key;
    struct json *event;
    unsigned tries;
    bool sent; /* The request under way has it; false again when the same happens meanwhile. */
};

struct recorder {
    struct workqueue *queue;
    struct list fresh; /* Of struct pending. */
    struct loop_timer *timer;
    uint64_t delay_ms;
    struct smap pending; /* "namespace/name" to struct pending: one for each key of the queue. */
    char *component;
    struct log_limit limit;
    struct recorder_limit budget;
};

/* ---- budgets ---- */

/* The time from which the budget fills, as if it had been empty then; it
 * is full after RECORDER_BURST refills. */
struct budget {
    uint64_t empty_ms;
};

void recorder_limit_init(struct recorder_limit *l)
{
    smap_init(&l->objects, free);
}

void recorder_limit_done(struct recorder_limit *l)
{
    smap_done(&l->objects);
}

bool recorder_limit_take(struct recorder_limit *l, const char *key, uint64_t now_ms)
{
    const uint64_t whole = (uint64_t) RECORDER_BURST * RECORDER_REFILL_MS;
    uint64_t now = now_ms + whole; /* Avoids times below 0. */
    struct budget *b = smap_get(&l->objects, key);
    if (!b) {
        if (smap_size(&l->objects) >= MAX_OBJECTS) {
            smap_clear(&l->objects);
        }
        b = NEW(struct budget);
        b->empty_ms = now - whole;
        smap_set(&l->objects, key, b);
    }
    b->empty_ms = MAX(b->empty_ms, now - whole);
    if (now - b->empty_ms < RECORDER_REFILL_MS) {
        return false;
    }
    b->empty_ms += RECORDER_REFILL_MS;
    return true;
}

/* ---- sending ---- */

static void pending_free(void *p)
{
    struct pending *pe = p;
    if (pe) {
        list_remove(&pe->node);
        free(pe->key);
        json_free(pe->event);
        free(pe);
    }
}

static int64_t count_of(const struct json *event)
{
    return json_get_int_or(json_get(event, "count"), 1);
}

static char *event_path(const struct json *event, bool with_name)
{
    return api_path("v1", "events", obj_namespace(event), with_name ? obj_name(event) : NULL, NULL);
}

struct json *recorder_make(const char *api_version, const char *kind, const struct json *object,
                           enum recorder_type type, const char *reason, const char *message,
                           const char *component, int64_t now_ms)
{
    const char *ns = obj_namespace(object), *name = obj_name(object);
    CLEANUP_STRBUF struct strbuf id = STRBUF_INIT;
    strbuf_addf(&id, "%s/%s/%s/%s/%s/%s", kind, ns, name, obj_uid(object), reason, message);
    CLEANUP_FREE char *event_name =
        xasprintf("%.*s.%016llx", MAX_NAME - 17, name,
                  (unsigned long long) hash_bytes(strbuf_cstr(&id), id.size));
    struct json *o = obj_new("v1", "Event", *ns ? ns : "default", event_name);
    struct json *about = json_ensure_object(o, "involvedObject");
    json_set_string(about, "apiVersion", api_version);
    json_set_string(about, "kind", kind);
    if (*ns) {
        json_set_string(about, "namespace", ns);
    }
    json_set_string(about, "name", name);
    json_set_string(about, "uid", obj_uid(object));
    char now[TIME_TEXT_SIZE];
    time_format_s(now_ms, now);
    json_set_string(o, "type", type == EVENT_WARNING ? "Warning" : "Normal");
    json_set_string(o, "reason", reason);
    json_set_string(o, "message", message);
    json_set_int(o, "count", 1);
    json_set_string(o, "firstTimestamp", now);
    json_set_string(o, "lastTimestamp", now);
    json_set_string(json_ensure_object(o, "source"), "component", component);
    json_set_string(o, "reportingComponent", component);
    json_set_string(o, "reportingInstance", "");
    return o;
}

static void finish(struct recorder *r, struct work *w)
{
    const struct pending *p = smap_get(&r->pending, work_key(w));
    if (p->sent) {
        smap_remove(&r->pending, work_key(w));
    }
    work_done(w);
}

static void fail(struct recorder *r, struct work *w, int error, const char *text)
{
    struct pending *p = smap_get(&r->pending, work_key(w));
    bool may_help = error == -EAGAIN || error == -ESTALE || error == -ENOENT || error == -EEXIST;
    /* The server did not answer; the problem that prevents the answer may be
     * the subject of the Event. */
    bool away = error == -ECONNREFUSED || error == -ETIMEDOUT || error == -ECONNRESET ||
                error == -EHOSTUNREACH || error == -ENETUNREACH || error == -EPIPE;
    if (away || (may_help && ++p->tries < MAX_TRIES)) {
        work_retry(w, error, "record event", text);
        return;
    }
    log_limited(&r->limit, LOG_WARN, "event dropped", "event=%s error=\"%s\"", work_key(w), text);
    finish(r, w);
}

static void written(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct recorder *r = ctx;
    if (error < 0) {
        fail(r, w, error, text);
    } else {
        finish(r, w);
    }
}

/* An equal Event exists: adds to its count. */
static void got(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct recorder *r = ctx;
    const struct pending *p = smap_get(&r->pending, work_key(w));
    if (error < 0) {
        fail(r, w, error, text);
        return;
    }
    CLEANUP(json_free) struct json *event = json_clone(obj);
    /* A repetition that came since the request began counts itself. */
    json_set_int(event, "count", count_of(event) + (p->sent ? count_of(p->event) : 1));
    json_set_string(event, "lastTimestamp", json_path_string(p->event, "lastTimestamp", NULL));
    CLEANUP_FREE char *path = event_path(event, true);
    work_request(w, "PUT", path, event, written);
}

static void created(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct recorder *r = ctx;
    const struct pending *p = smap_get(&r->pending, work_key(w));
    if (error == -EEXIST) {
        CLEANUP_FREE char *path = event_path(p->event, true);
        work_request(w, "GET", path, NULL, got);
        return;
    }
    written(ctx, w, error, text, obj);
}

static void record(void *ctx, struct work *w, const char *key)
{
    struct recorder *r = ctx;
    struct pending *p = smap_get(&r->pending, key);
    list_remove(&p->node); /* A repetition that waits is sent by a retry of the one before it. */
    p->sent = true;
    CLEANUP_FREE char *path = event_path(p->event, false);
    work_request(w, "POST", path, p->event, created);
}

static void send_fresh(void *ctx)
{
    struct recorder *r = ctx;
    while (!list_is_empty(&r->fresh)) {
        const struct pending *p = CONTAINER_OF(list_pop_front(&r->fresh), struct pending, node);
        workqueue_add(r->queue, p->key);
    }
}

struct recorder *recorder_new(struct loop *l, struct api_client *client, const char *component)
{
    struct recorder *r = NEW(struct recorder);
    r->component = xstrdup(component);
    list_init(&r->fresh);
    r->timer = loop_timer_new(l, send_fresh, r);
    smap_init(&r->pending, pending_free);
    recorder_limit_init(&r->budget);
    r->queue = workqueue_new(l, client, PARALLEL, record, r);
    workqueue_start(r->queue);
    return r;
}

struct recorder *recorder_free(struct recorder *r)
{
    if (r) {
        workqueue_free(r->queue);
        loop_timer_free(r->timer);
        smap_done(&r->pending);
        recorder_limit_done(&r->budget);
        free(r->component);
        free(r);
    }
    return NULL;
}

void recorder_set_delay(struct recorder *r, uint64_t ms)
{
    r->delay_ms = ms;
}

size_t recorder_waiting(const struct recorder *r)
{
    return smap_size(&r->pending);
}

void recorder_event(struct recorder *r, const char *api_version, const char *kind,
                    const struct json *object, enum recorder_type type, const char *reason,
                    const char *message)
{
    if (smap_size(&r->pending) >= MAX_WAITING) {
        log_limited(&r->limit, LOG_WARN, "event dropped", "reason=%s error=\"too many waiting\"",
                    reason);
        return;
    }
    CLEANUP_FREE char *about = xasprintf("%s/%s/%s", kind, obj_namespace(object), obj_name(object));
    if (!recorder_limit_take(&r->budget, about, time_mono_ms())) {
        log_limited(&r->limit, LOG_WARN, "event dropped",
                    "reason=%s about=%s error=\"too many about this object\"", reason, about);
        return;
    }
    struct pending *p = NEW(struct pending);
    p->event = recorder_make(api_version, kind, object, type, reason, message, r->component,
                             time_wall_ms());
    p->key = xasprintf("%s/%s", obj_namespace(p->event), obj_name(p->event));
    const struct pending *same = smap_get(&r->pending, p->key);
    if (same && !same->sent) {
        json_set_int(p->event, "count", count_of(same->event) + 1);
        json_set_string(p->event, "firstTimestamp", json_get_text(same->event, "firstTimestamp"));
    }
    list_push_back(&r->fresh, &p->node);
    smap_set(&r->pending, p->key, p);
    if (!r->delay_ms) {
        send_fresh(r);
    } else if (!loop_timer_armed(r->timer)) {
        loop_timer_arm(r->timer, r->delay_ms);
    }
}
