/* SPDX-License-Identifier: Apache-2.0 */
/* The informer: list, then watch, for ever.
 *
 *     LIST ── ok ──▶ WATCH ── ended in order ──▶ WATCH (from the last version seen)
 *      ▲               │
 *      └─ 410 Gone ────┤
 *                      └─ failed ──▶ WAIT (backoff) ──▶ WATCH, or LIST when there never was one */
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "client/client_internal.h"

#include <malloc.h>
#include <stdio.h>

LOG_MODULE("informer");

#define BACKOFF_MIN_MS 50u
#define BACKOFF_MAX_MS 5000u
#define WATCH_SECONDS 290u    /* Asked of the server, so that a silent connection is renewed. */
#define WATCH_IDLE_MS 300000u /* Somewhat more: then the peer is gone without a word. */
#define EVENT_MAX_SIZE (16u << 20) /* Of one line of the watch. */

struct informer {
    struct api_client *client;
    struct loop *loop;
    char *api_version, *plural, *field_selector;
    const struct informer_ops *ops;
    void *ctx;
    struct smap objects; /* Key to 'struct entry'. */
    char *version;       /* Last resourceVersion seen; NULL: list first. */
    bool synced;
    bool lost;       /* Reported as lost, not yet as regained. */
    bool gone;       /* The watch said that the version is too old. */
    bool got_events; /* In this watch: it was a working one. */
    unsigned attempt;
    struct api_call *list;
    struct http_call *watch;
    struct strbuf line;
    struct loop_timer *retry;
    bool in_callback; /* Then informer_free only marks it as dead. */
    bool dead;
};

struct entry {
    struct json *obj;
    bool seen; /* In the list being processed. */
};

static void informer_go(struct informer *i);
static void informer_destroy(struct informer *i);

/* After a callback of the owner's; false: it freed the informer. */
static bool callback_over(struct informer *i)
{
    i->in_callback = false;
    if (i->dead) {
        informer_destroy(i);
        return false;
    }
    return true;
}

static void entry_free(void *p)
{
    struct entry *en = p;
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
    return !name ? NULL : ns ? xasprintf("%s/%s", ns, name) : xstrdup(name);
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
    char *key = key_of(obj);
    if (!key) {
        json_free(obj);
        return true;
    }
    struct json *metadata = json_get(obj, "metadata");
    json_remove(metadata, "managedFields"); /* Large, and nobody's business here. */
    struct entry *en = smap_get(&i->objects, key);
    struct json *old = NULL;
    bool same = false;
    if (en) {
        same = streq_null(version_of(en->obj), version_of(obj));
        old = en->obj;
    } else {
        en = NEW(struct entry);
        smap_set(&i->objects, key, en);
    }
    en->obj = obj;
    en->seen = true;
    bool alive = true;
    if (!same && i->ops->changed) {
        i->in_callback = true;
        i->ops->changed(i->ctx, key, old, obj);
        alive = callback_over(i);
    }
    json_free(old);
    free(key);
    return alive;
}

static bool object_deleted(struct informer *i, const char *key)
{
    struct entry *en = smap_take(&i->objects, key);
    bool alive = true;
    if (en) {
        if (i->ops->deleted) {
            i->in_callback = true;
            i->ops->deleted(i->ctx, key, en->obj);
            alive = callback_over(i);
        }
        entry_free(en);
    }
    return alive;
}

/* Tells the owner of a change of the connection; false: it freed the informer. */
static bool tell_connection(struct informer *i, const char *lost_reason)
{
    if (!i->ops->connection) {
        return true;
    }
    i->in_callback = true;
    i->ops->connection(i->ctx, lost_reason);
    return callback_over(i);
}

static bool connection_regained(struct informer *i)
{
    i->attempt = 0;
    if (!i->lost) {
        return true;
    }
    i->lost = false;
    log_info("registry is back", "kind=%s", i->plural);
    return tell_connection(i, NULL);
}

static void wait_and_retry(struct informer *i, const char *reason)
{
    if (reason && !i->lost) {
        i->lost = true;
        log_warn("registry is not to be reached", "kind=%s reason=\"%s\"", i->plural, reason);
        if (!tell_connection(i, reason)) {
            return;
        }
    }
    uint32_t seed = hash_string(i->plural) + i->attempt;
    uint64_t delay = time_backoff_ms(i->attempt, BACKOFF_MIN_MS, BACKOFF_MAX_MS, seed);
    i->attempt++;
    loop_timer_arm(i->retry, delay);
}

/* The version is too old, or the watch said what cannot be understood. */
static void list_again(struct informer *i)
{
    i->gone = false;
    free(TAKE(i->version));
    informer_go(i);
}

static void retry_now(void *ctx)
{
    struct informer *i = ctx;
    if (i->watch) {
        http_call_cancel(TAKE(i->watch));
        strbuf_done(&i->line);
        list_again(i);
        return;
    }
    informer_go(i);
}

/* ---- list ---- */

static bool take_list(struct informer *i, struct json *list)
{
    struct smap_entry *se;
    SMAP_FOREACH (se, &i->objects) {
        ((struct entry *) se->value)->seen = false;
    }
    struct json *items = json_get(list, "items");
    /* From the end, so that each is taken out in constant time; order is nobody's promise. */
    for (size_t n = json_count(items); n-- > 0;) {
        struct json *obj = json_clone(json_at(items, n));
        json_remove_at(items, n);
        if (!object_changed(i, obj)) {
            return false;
        }
    }
    SMAP_FOREACH (se, &i->objects) {
        if (!((struct entry *) se->value)->seen) {
            char *key = xstrdup(se->key);
            bool alive = object_deleted(i, key);
            free(key);
            if (!alive) {
                return false;
            }
        }
    }
    return true;
}

static void list_done(void *ctx, int error, const char *text, struct json *list)
{
    struct informer *i = ctx;
    i->list = NULL;
    const char *version = json_path_string(list, "metadata", "resourceVersion", NULL);
    if (error == 0 && !version) {
        error = -EPROTO;
        text = "the list has no resourceVersion";
    }
    if (error < 0) {
        wait_and_retry(i, text);
        return;
    }
    if (!connection_regained(i)) {
        return;
    }
    set_version(i, version);
    if (!take_list(i, list)) {
        return;
    }
    malloc_trim(0); /* The text and the tree of the whole list were garbage from birth. */
    if (!i->synced) {
        i->synced = true;
        if (i->ops->synced) {
            i->in_callback = true;
            i->ops->synced(i->ctx);
            if (!callback_over(i)) {
                return;
            }
        }
    }
    informer_go(i);
}

/* ---- watch ---- */

/* One event; false: the informer was freed. */
static bool take_event(struct informer *i, const char *text, size_t size)
{
    struct json *event = NULL;
    struct err e = {0};
    if (json_parse(text, size, &event, &e) < 0) {
        log_warn("watch event is not JSON, listing again", "kind=%s error=\"%s\"", i->plural,
                 e.text);
        i->gone = true;
        return true;
    }
    const char *type = json_path_string(event, "type", NULL);
    struct json *obj = json_get(event, "object");
    bool alive = true;
    i->got_events = true;
    if (streq_null(type, "ERROR")) {
        i->gone = json_get_int_or(json_get(obj, "code"), 0) == 410;
    } else if (streq_null(type, "BOOKMARK")) {
        set_version(i, version_of(obj));
    } else if (streq_null(type, "DELETED")) {
        set_version(i, version_of(obj));
        char *key = key_of(obj);
        alive = !key || object_deleted(i, key);
        free(key);
    } else if (obj) {
        set_version(i, version_of(obj));
        alive = object_changed(i, json_take(event, "object"));
    }
    json_free(event);
    return alive;
}

static void watch_opened(void *ctx)
{
    (void) connection_regained(ctx);
}

static void watch_data(void *ctx, const char *p, size_t size)
{
    struct informer *i = ctx;
    while (size) {
        const char *nl = memchr(p, '\n', size);
        size_t n = nl ? (size_t) (nl - p) : size;
        if (i->line.size == 0 && nl) {
            if (n && !take_event(i, p, n)) {
                return;
            }
        } else {
            strbuf_add(&i->line, p, n);
            if (nl) {
                bool alive = i->line.failed || take_event(i, i->line.data, i->line.size);
                if (!alive) {
                    return;
                }
                i->gone |= i->line.failed;
                strbuf_reset(&i->line);
            }
        }
        p += n + (nl != NULL);
        size -= n + (nl != NULL);
    }
    if (i->gone) {
        loop_timer_arm(i->retry, 0); /* Not from within the callback of the stream that is cut. */
    }
}

static void watch_ended(void *ctx, const struct http_result *r)
{
    struct informer *i = ctx;
    i->watch = NULL;
    strbuf_done(&i->line);
    loop_timer_disarm(i->retry);
    if (i->gone || (r->error == 0 && r->status == 410)) {
        list_again(i);
        return;
    }
    if (r->error == 0 && r->status == 200 && i->got_events) {
        informer_go(i);
        return;
    }
    char text[64];
    snprintf(text, sizeof text, "watch answered with status %d", r->status);
    /* An empty watch that ended in order is no outage, but must not become a busy loop. */
    bool fine = r->error == 0 && r->status == 200;
    wait_and_retry(i, fine ? NULL : r->error ? r->error_text : text);
}

static const struct http_stream_ops watch_ops = {
    .opened = watch_opened, .data = watch_data, .ended = watch_ended};

static void informer_go(struct informer *i)
{
    CLEANUP_FREE char *base = api_path(i->api_version, i->plural, NULL, NULL, NULL);
    CLEANUP_STRBUF struct strbuf path = STRBUF_INIT;
    strbuf_addf(&path, "%s?", base);
    if (i->field_selector) {
        strbuf_adds(&path, "fieldSelector=");
        http_escape(i->field_selector, &path);
        strbuf_addc(&path, '&');
    }
    if (!i->version) {
        strbuf_adds(&path, "resourceVersion=0");
        i->list = api_request(i->client, "GET", path.data, NULL, NULL, list_done, i);
        return;
    }
    strbuf_addf(&path, "watch=true&allowWatchBookmarks=true&timeoutSeconds=%u&resourceVersion=",
                WATCH_SECONDS);
    http_escape(i->version, &path);
    i->got_events = false;
    i->watch = http_stream(api_client_http(i->client), path.data, "application/json", WATCH_IDLE_MS,
                           &watch_ops, i);
}

/* ---- public ---- */

struct informer *informer_new(struct api_client *c, struct loop *l, const char *api_version,
                              const char *plural, const char *field_selector,
                              const struct informer_ops *ops, void *ctx)
{
    struct informer *i = NEW(struct informer);
    i->client = c;
    i->loop = l;
    i->api_version = xstrdup(api_version);
    i->plural = xstrdup(plural);
    i->field_selector = field_selector ? xstrdup(field_selector) : NULL;
    i->ops = ops;
    i->ctx = ctx;
    i->line = STRBUF_INIT_MAX(EVENT_MAX_SIZE);
    smap_init(&i->objects, entry_free);
    i->retry = loop_timer_new(l, retry_now, i);
    informer_go(i);
    return i;
}

static void informer_destroy(struct informer *i)
{
    api_call_cancel(i->list);
    if (i->watch) {
        http_call_cancel(i->watch);
    }
    loop_timer_free(i->retry);
    strbuf_done(&i->line);
    smap_done(&i->objects);
    free(i->api_version);
    free(i->plural);
    free(i->field_selector);
    free(i->version);
    free(i);
}

struct informer *informer_free(struct informer *i)
{
    if (i && i->in_callback) {
        i->dead = true;
    } else if (i) {
        informer_destroy(i);
    }
    return NULL;
}

bool informer_synced(const struct informer *i)
{
    return i->synced;
}

const struct json *informer_get(const struct informer *i, const char *key)
{
    const struct entry *en = smap_get(&i->objects, key);
    return en ? en->obj : NULL;
}

size_t informer_count(const struct informer *i)
{
    return smap_size(&i->objects);
}

void informer_each(const struct informer *i,
                   void (*fn)(void *ctx, const char *key, const struct json *obj), void *ctx)
{
    struct smap_entry *se;
    SMAP_FOREACH (se, &i->objects) {
        fn(ctx, se->key, ((struct entry *) se->value)->obj);
    }
}
