/* SPDX-License-Identifier: Apache-2.0 */
/* The informer: list, then watch, for ever.
 *
 *     LIST ── ok ──▶ WATCH ── ended in order ──▶ WATCH (from the last version seen)
 *      ▲               │
 *      └─ 410 Gone ────┤
 *                      └─ failed ──▶ WAIT (backoff) ──▶ WATCH, or LIST when there never was one
 *
 * Lists come in pages, so that the memory they need for a moment does not grow with the cluster.  Until the
 * last page is there nothing is known to be deleted. */
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "client/client.h"

#include <malloc.h>
#include <stdio.h>

LOG_MODULE("informer");

#define BACKOFF_MIN_MS 50u
#define BACKOFF_MAX_MS 5000u
#define PAGE_SIZE 250u        /* Objects asked for at once. */
#define WATCH_SECONDS 290u    /* Asked of the server, so that a silent connection is renewed. */
#define WATCH_IDLE_MS 90000u  /* Without even a bookmark: then the peer is gone without a word. */
#define WATCH_PROVEN_MS 5000u /* A watch that lasted so long was a working one. */
#define ABSENT_KIND_MS 30000u /* Until an optional kind is asked for again. */
#define EVENT_MAX_SIZE (16u << 20) /* Of one line of the watch. */

struct informer {
    struct api_client *client;
    struct loop *loop;
    char *api_version, *plural, *ns, *field_selector;
    const struct informer_ops *ops;
    void *ctx;
    struct hmap objects; /* Of 'struct entry', ... */
    struct list order;   /* ... in the order in which they came. */
    char *version;       /* Last resourceVersion seen; NULL: list first. */
    char *page;          /* Token of the list's next page; NULL: none is being read. */
    bool synced;
    bool keys_only, optional;
    bool lost;         /* Reported as lost, not yet as regained. */
    bool gone;         /* The watch cannot be resumed: list again. */
    char *watch_error; /* What the watch said went wrong; NULL: nothing. */
    uint64_t watch_since_ms;
    unsigned attempt;
    struct api_call *list;
    struct http_call *watch;
    const struct http_client *watch_http;
    struct strbuf line;
    struct loop_timer *retry;
    bool *freed; /* Set by informer_free during a callback. */
};

/* In one piece: there may be very many. */
struct entry {
    struct hmap_node node;
    struct list order;
    struct json *obj; /* NULL: not kept. */
    uint32_t version; /* Hash of its resourceVersion. */
    bool seen;        /* In the list being read. */
    char key[];
};

static void informer_go(struct informer *i);

/* Runs 'call', which may free the informer; true: it did. */
#define CALLBACK(i, call)      \
    (__extension__({           \
        bool freed_ = false;   \
        (i)->freed = &freed_;  \
        call;                  \
        if (!freed_) {         \
            (i)->freed = NULL; \
        }                      \
        freed_;                \
    }))

static struct entry *find_entry(const struct informer *i, const char *key)
{
    struct entry *en;
    HMAP_FOREACH_WITH_HASH (en, struct entry, node, hash_string(key), &i->objects) {
        if (streq(en->key, key)) {
            return en;
        }
    }
    return NULL;
}

static struct entry *add_entry(struct informer *i, const char *key)
{
    size_t size = strlen(key) + 1;
    struct entry *en = xcalloc(1, sizeof *en + size);
    memcpy(en->key, key, size);
    hmap_insert(&i->objects, &en->node, hash_string(key));
    list_push_back(&i->order, &en->order);
    return en;
}

static void take_entry(struct informer *i, struct entry *en)
{
    hmap_remove(&i->objects, &en->node);
    list_remove(&en->order);
}

static void entry_free(struct entry *en)
{
    json_free(en->obj);
    free(en);
}

static const char *version_of(const struct json *obj)
{
    return json_path_string(obj, "metadata", "resourceVersion", NULL);
}

/* Owned "namespace/name" or "name"; NULL: the object has no name. */
static char *key_of(const struct json *obj)
{
    const char *ns = json_path_string(obj, "metadata", "namespace", NULL);
    const char *name = json_path_string(obj, "metadata", "name", NULL);
    return !name ? NULL : ns && *ns ? xasprintf("%s/%s", ns, name) : xstrdup(name);
}

static void set_version(struct informer *i, const char *version)
{
    if (version) {
        free(i->version);
        i->version = xstrdup(version);
    }
}

/* Takes 'obj' over.  False: the informer was freed by the callback. */
static bool object_changed(struct informer *i, struct json *obj)
{
    CLEANUP_FREE char *key = key_of(obj);
    if (!key) {
        json_free(obj);
        return true;
    }
    json_remove(json_get(obj, "metadata"),
                "managedFields"); /* Large, and nobody's business here. */
    if (i->ops->transient) {
        bool freed = CALLBACK(i, i->ops->changed(i->ctx, key, NULL, obj));
        json_free(obj);
        return !freed;
    }
    struct entry *en = find_entry(i, key);
    CLEANUP(json_free) struct json *old = en ? en->obj : NULL;
    const char *version = version_of(obj);
    uint32_t hash = version ? hash_string(version) : 0;
    bool same = en && (old ? streq_null(version_of(old), version) : en->version == hash);
    if (!en) {
        en = add_entry(i, key);
    }
    en->version = hash;
    en->seen = true;
    CLEANUP(json_free) UNUSED struct json *unkept = i->keys_only ? obj : NULL;
    en->obj = i->keys_only ? NULL : obj;
    return same || !i->ops->changed || !CALLBACK(i, i->ops->changed(i->ctx, key, old, obj));
}

static bool object_deleted(struct informer *i, const char *key)
{
    struct entry *en = find_entry(i, key);
    if (en) {
        take_entry(i, en);
    }
    bool alive = !en || !i->ops->deleted || !CALLBACK(i, i->ops->deleted(i->ctx, key, en->obj));
    if (en) {
        entry_free(en);
    }
    return alive;
}

static bool connection_regained(struct informer *i)
{
    if (!i->lost) {
        return true;
    }
    i->lost = false;
    log_info("registry is back", "kind=%s", i->plural);
    return !i->ops->connection || !CALLBACK(i, i->ops->connection(i->ctx, NULL));
}

/* 'reason' NULL: nothing is wrong, but not so fast. */
static void wait_and_retry(struct informer *i, const char *reason)
{
    /* Many clients lose one server at once: each has its own jitter. */
    uint32_t seed = hash32(&i, sizeof i) ^ (uint32_t) time_mono_ns();
    loop_timer_arm(i->retry, time_backoff_ms(i->attempt++, BACKOFF_MIN_MS, BACKOFF_MAX_MS, seed));
    if (reason && !i->lost) {
        i->lost = true;
        log_warn("registry is not to be reached", "kind=%s reason=\"%s\"", i->plural, reason);
        if (i->ops->connection) {
            i->ops->connection(i->ctx, reason);
        }
    }
}

static void retry_now(void *ctx)
{
    struct informer *i = ctx;
    if (i->watch) {
        http_call_cancel(TAKE(i->watch));
        strbuf_done(&i->line);
    }
    informer_go(i);
}

/* ---- list ---- */

/* False: the informer was freed by the callback. */
static bool begin_list(struct informer *i)
{
    struct entry *en;
    LIST_FOREACH (en, struct entry, order, &i->order) {
        en->seen = false;
    }
    return !i->ops->listing || !CALLBACK(i, i->ops->listing(i->ctx));
}

/* What was there before and was on none of the pages is gone. */
static bool end_list(struct informer *i)
{
    struct entry *en;
    LIST_FOREACH (en, struct entry, order, &i->order) {
        if (!en->seen) {
            CLEANUP_FREE char *key = xstrdup(en->key);
            if (!object_deleted(i, key)) {
                return false;
            }
        }
    }
    return !i->ops->listed || !CALLBACK(i, i->ops->listed(i->ctx));
}

static bool take_page(struct informer *i, struct json *list)
{
    struct json *items = json_get(list, "items");
    /* From the end, so that each is taken out in constant time; order is nobody's promise. */
    for (size_t n = json_count(items); n-- > 0;) {
        if (!object_changed(i, json_take_at(items, n))) {
            return false;
        }
    }
    return true;
}

/* The server does not know the kind: as good as having none of it, for now. */
static void kind_absent(struct informer *i)
{
    begin_list(i);
    if (!end_list(i)) {
        return;
    }
    loop_timer_arm(i->retry, ABSENT_KIND_MS);
    if (!i->synced) {
        i->synced = true;
        log_info("the registry does not have this kind", "kind=%s", i->plural);
        if (i->ops->synced) {
            i->ops->synced(i->ctx);
        }
    }
}

static void list_failed(struct informer *i, int error, const char *text)
{
    free(TAKE(i->page));
    if (error == -ENOENT && i->optional) {
        kind_absent(i);
        return;
    }
    if (error == -ESTALE && i->attempt == 0) {
        /* The state that the pages showed has been forgotten by the server. */
        i->attempt++;
        informer_go(i);
    } else {
        wait_and_retry(i, text);
    }
}

static void list_done(void *ctx, int error, const char *text, struct json *list)
{
    struct informer *i = ctx;
    i->list = NULL;
    const char *version = json_path_string(list, "metadata", "resourceVersion", NULL);
    const char *next = json_path_string(list, "metadata", "continue", NULL);
    if (error == 0 && !version) {
        error = -EPROTO;
        text = "the list has no resourceVersion";
    }
    if (error < 0) {
        list_failed(i, error, text);
        return;
    }
    if (!connection_regained(i)) {
        return;
    }
    if (!i->page && !begin_list(i)) {
        return;
    }
    free(TAKE(i->page));
    if (!take_page(i, list)) {
        return;
    }
    if (next && *next) {
        i->page = xstrdup(next);
        informer_go(i);
        return;
    }
    if (!end_list(i)) {
        return;
    }
    set_version(i, version);
    i->attempt = 0;
    malloc_trim(0); /* The texts and the trees of the pages were garbage from birth. */
    if (!i->synced) {
        i->synced = true;
        if (i->ops->synced && CALLBACK(i, i->ops->synced(i->ctx))) {
            return;
        }
    }
    informer_go(i);
}

/* ---- watch ---- */

/* The watch cannot go on: NULL, because its version is too old. */
static void watch_broken(struct informer *i, const char *error)
{
    i->gone = true;
    i->watch_error = error ? xstrdup(error) : NULL;
}

/* One event; false: the informer was freed. */
static bool take_event(struct informer *i, const char *text, size_t size)
{
    CLEANUP(json_free) struct json *event = NULL;
    struct err e = {0};
    if (json_parse(text, size, &event, &e) < 0) {
        err_prefix(&e, "an event of the watch is not JSON");
        watch_broken(i, e.text);
        return true;
    }
    const char *type = json_path_string(event, "type", NULL);
    struct json *obj = json_get(event, "object");
    if (streq_null(type, "ERROR")) {
        bool too_old = json_get_int_or(json_get(obj, "code"), 0) == 410;
        const char *message = json_path_string(obj, "message", NULL);
        watch_broken(i, too_old ? NULL : message ? message : "the watch ended with an error");
        return true;
    }
    set_version(i, version_of(obj));
    if (streq_null(type, "DELETED")) {
        CLEANUP_FREE char *key = key_of(obj);
        if (key && i->ops->transient) {
            return !i->ops->deleted || !CALLBACK(i, i->ops->deleted(i->ctx, key, obj));
        }
        return !key || object_deleted(i, key);
    }
    if (streq_null(type, "ADDED") || streq_null(type, "MODIFIED")) {
        return !obj || object_changed(i, json_take(event, "object"));
    }
    return true;
}

static void watch_opened(void *ctx)
{
    connection_regained(ctx);
}

static void watch_data(void *ctx, const char *p, size_t size)
{
    struct informer *i = ctx;
    while (size && !i->gone) {
        const char *nl = memchr(p, '\n', size);
        size_t n = nl ? (size_t) (nl - p) : size;
        bool alive = true;
        if (i->line.size == 0 && nl) {
            alive = n == 0 || take_event(i, p, n);
        } else if (strbuf_add(&i->line, p, n) < 0) {
            watch_broken(i, "an event of the watch is too large");
        } else if (nl) {
            /* The callbacks may free the informer, and the line with it. */
            CLEANUP_STRBUF struct strbuf line = i->line;
            i->line = STRBUF_INIT_MAX(EVENT_MAX_SIZE);
            alive = take_event(i, line.data, line.size);
        }
        if (!alive) {
            return;
        }
        p += n + (nl != NULL);
        size -= n + (nl != NULL);
    }
    if (i->gone) {
        loop_timer_arm(i->retry, 0); /* Not from within the callback of the stream that is cut. */
    }
}

/* The watch is over, or is to be: what is next. */
static void after_watch(struct informer *i, const char *error)
{
    bool proven = loop_now_ms(i->loop) - i->watch_since_ms >= WATCH_PROVEN_MS;
    i->attempt = proven ? 0 : i->attempt;
    if (i->gone) {
        i->gone = false;
        free(TAKE(i->version));
    }
    if (error) {
        wait_and_retry(i, error);
    } else if (i->attempt == 0) {
        /* Once at once; if that does not last either, with a pause. */
        i->attempt++;
        informer_go(i);
    } else {
        wait_and_retry(i, NULL);
    }
}

static void watch_ended(void *ctx, const struct http_result *r)
{
    struct informer *i = ctx;
    char text[64];
    CLEANUP_FREE char *error = TAKE(i->watch_error);
    i->watch = NULL;
    strbuf_done(&i->line);
    loop_timer_disarm(i->retry);
    api_client_ended(i->client, i->watch_http, r);
    if (r->error == 0 && r->status == 200) {
        after_watch(i, error);
        return;
    }
    /* 504: the server knows no such version yet, as after it was set back to an older state. */
    i->gone |= r->error == 0 && (r->status == 410 || r->status == 504 || r->status == 400);
    snprintf(text, sizeof text, "watch answered with status %d", r->status);
    after_watch(i, r->error ? r->error_text : r->status == 410 ? NULL : text);
}

static void informer_go(struct informer *i)
{
    CLEANUP_FREE char *base = api_path(i->api_version, i->plural, i->ns, NULL, NULL);
    CLEANUP_STRBUF struct strbuf path = STRBUF_INIT;
    if (i->gone) {
        CLEANUP_FREE char *error = TAKE(i->watch_error);
        after_watch(i, error);
        return;
    }
    strbuf_addf(&path, "%s?", base);
    if (i->field_selector) {
        strbuf_adds(&path, "fieldSelector=");
        http_escape(i->field_selector, &path);
        strbuf_addc(&path, '&');
    }
    if (!i->version) {
        strbuf_addf(&path, "limit=%u", PAGE_SIZE);
        if (i->page) {
            strbuf_adds(&path, "&continue=");
            http_escape(i->page, &path);
        }
        i->list = api_request_as(i->client, "GET", path.data,
                                 i->ops->metadata ? API_ACCEPT_METADATA_LIST : NULL, NULL, NULL,
                                 list_done, i);
        return;
    }
    strbuf_addf(&path, "watch=true&allowWatchBookmarks=true&timeoutSeconds=%u&resourceVersion=",
                WATCH_SECONDS);
    http_escape(i->version, &path);
    static const struct http_stream_ops ops = {
        .opened = watch_opened, .data = watch_data, .ended = watch_ended};
    i->watch_since_ms = loop_now_ms(i->loop);
    i->watch_http = api_client_http(i->client);
    i->watch = http_stream(api_client_http(i->client), path.data,
                           i->ops->metadata ? API_ACCEPT_METADATA : "application/json",
                           WATCH_IDLE_MS, &ops, i);
}

/* ---- public ---- */

struct informer *informer_new(struct api_client *c, struct loop *l, const char *api_version,
                              const char *plural, const char *field_selector,
                              const struct informer_ops *ops, void *ctx)
{
    return informer_new_in(c, l, NULL, api_version, plural, field_selector, ops, ctx);
}

struct informer *informer_new_in(struct api_client *c, struct loop *l, const char *ns,
                                 const char *api_version, const char *plural,
                                 const char *field_selector, const struct informer_ops *ops,
                                 void *ctx)
{
    struct informer *i = NEW(struct informer);
    i->client = c;
    i->loop = l;
    i->api_version = xstrdup(api_version);
    i->plural = xstrdup(plural);
    i->ns = ns ? xstrdup(ns) : NULL;
    i->field_selector = field_selector ? xstrdup(field_selector) : NULL;
    i->ops = ops;
    i->ctx = ctx;
    i->line = STRBUF_INIT_MAX(EVENT_MAX_SIZE);
    hmap_init(&i->objects);
    list_init(&i->order);
    i->retry = loop_timer_new(l, retry_now, i);
    informer_go(i);
    return i;
}

struct informer *informer_free(struct informer *i)
{
    if (!i) {
        return NULL;
    }
    if (i->freed) {
        *i->freed = true;
    }
    api_call_cancel(i->list);
    if (i->watch) {
        http_call_cancel(i->watch);
    }
    loop_timer_free(i->retry);
    strbuf_done(&i->line);
    struct entry *en;
    LIST_FOREACH (en, struct entry, order, &i->order) {
        take_entry(i, en);
        entry_free(en);
    }
    hmap_done(&i->objects);
    free(i->api_version);
    free(i->plural);
    free(i->ns);
    free(i->field_selector);
    free(i->version);
    free(i->page);
    free(i->watch_error);
    free(i);
    return NULL;
}

void informer_keep_keys_only(struct informer *i)
{
    i->keys_only = true;
}

void informer_set_optional(struct informer *i)
{
    i->optional = true;
}

bool informer_synced(const struct informer *i)
{
    return i->synced;
}

const struct json *informer_get(const struct informer *i, const char *key)
{
    const struct entry *en = find_entry(i, key);
    return en ? en->obj : NULL;
}

size_t informer_count(const struct informer *i)
{
    return i->objects.n;
}

void informer_each(const struct informer *i,
                   void (*fn)(void *ctx, const char *key, const struct json *obj), void *ctx)
{
    const struct entry *en;
    LIST_FOREACH (en, struct entry, order, &i->order) {
        fn(ctx, en->key, en->obj);
    }
}
