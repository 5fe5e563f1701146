/* SPDX-License-Identifier: Apache-2.0 */
#include "client/reflector.h"

#include "base/backoff.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/timeutil.h"

#include <malloc.h>
#include <stdio.h>

LOG_MODULE("informer");

#define BACKOFF_MIN_MS 50u
#define BACKOFF_MAX_MS 5000u
#define PAGE_SIZE 250u /* Objects of one page. */
/* Requested from the server, so that a silent connection is renewed. */
#define WATCH_SECONDS 290u
#define WATCH_PROVEN_MS 5000u      /* A watch that lasted this long counts as having worked. */
#define ABSENT_KIND_MS 30000u      /* Delay before an absent kind is requested again. */
#define EVENT_MAX_SIZE (16u << 20) /* Bytes of one line of the watch. */

struct reflector {
    struct api_client *client;
    struct loop *loop;
    char *api_version, *plural, *ns, *field_selector;
    const struct reflector_ops *ops;
    void *ctx;
    bool metadata;
    char *version;     /* Last resourceVersion seen; NULL: list first. */
    uint64_t lists;    /* Lists begun. */
    uint64_t complete; /* Number of the last list that is complete. */
    char *page;        /* Token of the list's next page; NULL: the first page is next. */
    bool lost;         /* The loss was reported, the return not yet. */
    bool absent;       /* A log line has said that the server does not know the kind. */
    bool gone;         /* The watch cannot be resumed: the objects must be listed again. */
    bool open;         /* The server has accepted the watch. */
    char *watch_error; /* The error that the watch reported; NULL: none. */
    uint64_t watch_since_ms;
    struct backoff backoff;
    struct api_call *list;
    struct http_call *watch;
    const struct http_client *watch_http;
    struct strbuf line;
    struct loop_timer *retry;
    bool *freed; /* Set by reflector_free during a callback. */
};

static void reflector_go(struct reflector *r);

/* Runs 'call', which may free the reflector; true: it did so. */
#define CALLBACK(r, call)      \
    (__extension__({           \
        bool freed_ = false;   \
        (r)->freed = &freed_;  \
        call;                  \
        if (!freed_) {         \
            (r)->freed = NULL; \
        }                      \
        freed_;                \
    }))

static void set_version(struct reflector *r, const struct json *obj)
{
    const char *version = json_path_string(obj, "metadata", "resourceVersion", NULL);
    if (version) {
        free(r->version);
        r->version = xstrdup(version);
    }
}

/* Returns false if the callback freed the reflector. */
static bool connection_regained(struct reflector *r)
{
    if (!r->lost) {
        return true;
    }
    r->lost = false;
    log_info("registry is back", "kind=%s", r->plural);
    return !CALLBACK(r, r->ops->connection(r->ctx, NULL));
}

/* 'reason' NULL: there is no error, but the next attempt waits. */
static void wait_and_retry(struct reflector *r, const char *reason)
{
    /* Many clients lose one server at the same time, so each has its own jitter. */
    uint32_t seed = hash32(&r, sizeof r) ^ (uint32_t) time_mono_ns();
    loop_timer_arm(r->retry, backoff_fail(&r->backoff, loop_now_ms(r->loop), seed));
    if (reason && !r->lost) {
        r->lost = true;
        log_warn("registry cannot be reached", "kind=%s reason=\"%s\"", r->plural, reason);
        r->ops->connection(r->ctx, reason);
    }
}

static void cut_watch(struct reflector *r)
{
    if (r->watch) {
        http_call_cancel(TAKE(r->watch));
        strbuf_done(&r->line);
    }
}

static void retry_now(void *ctx)
{
    struct reflector *r = ctx;
    cut_watch(r);
    reflector_go(r);
}

/* ---- list ---- */

/* The server does not know the kind, which for now counts as having no objects of it. */
static void kind_absent(struct reflector *r)
{
    if (!r->absent) {
        r->absent = true;
        log_info("the registry does not have this kind", "kind=%s", r->plural);
    }
    loop_timer_arm(r->retry, ABSENT_KIND_MS);
    if (!CALLBACK(r, r->ops->listing(r->ctx))) {
        r->ops->listed(r->ctx);
    }
}

static void list_failed(struct reflector *r, int error, const char *text)
{
    free(TAKE(r->page));
    if (error == -ENOENT && r->ops->absent(r->ctx)) {
        kind_absent(r);
        return;
    }
    if (error == -ESTALE && backoff_at_once(&r->backoff)) {
        /* The server no longer has the state that the pages showed. */
        reflector_go(r);
    } else {
        wait_and_retry(r, text);
    }
}

/* Returns false if a callback freed the reflector. */
static bool take_page(struct reflector *r, struct json *list)
{
    struct json *items = json_get(list, "items");
    if (!connection_regained(r) || (!r->page && CALLBACK(r, r->ops->listing(r->ctx)))) {
        return false;
    }
    free(TAKE(r->page));
    /* From the end, so that each is removed in constant time; a list has no defined order. */
    for (size_t n = json_count(items); n-- > 0;) {
        if (CALLBACK(r, r->ops->changed(r->ctx, json_take_at(items, n)))) {
            return false;
        }
    }
    return true;
}

static void list_done(void *ctx, int error, const char *text, struct json *list)
{
    struct reflector *r = ctx;
    r->list = NULL;
    const char *next = json_path_string(list, "metadata", "continue", NULL);
    if (error == 0 && !json_path_string(list, "metadata", "resourceVersion", NULL)) {
        error = -EPROTO;
        text = "the list has no resourceVersion";
    }
    if (error < 0) {
        list_failed(r, error, text);
        return;
    }
    if (!take_page(r, list)) {
        return;
    }
    if (next && *next) {
        r->page = xstrdup(next);
        reflector_go(r);
        return;
    }
    set_version(r, list);
    r->complete = r->lists;
    backoff_reset(&r->backoff);
    r->absent = false;
    if (CALLBACK(r, r->ops->listed(r->ctx))) {
        return;
    }
    malloc_trim(0); /* The texts and the trees of the pages were garbage from birth. */
    reflector_go(r);
}

/* ---- watch ---- */

/* The watch cannot continue; 'error' NULL: its version is too old. */
static void watch_broken(struct reflector *r, const char *error)
{
    r->gone = true;
    r->watch_error = error ? xstrdup(error) : NULL;
}

/* Handles one event; false: the reflector was freed. */
static bool take_event(struct reflector *r, const char *text, size_t size)
{
    /* It is large, and no listener reads it. */
    static const char *const without[] = {"object", "metadata", "managedFields", NULL};
    CLEANUP(json_free) struct json *event = NULL;
    struct err e = {0};
    if (json_parse_without(text, size, without, &event, &e) < 0) {
        err_prefix(&e, "an event of the watch is not JSON");
        watch_broken(r, e.text);
        return true;
    }
    const char *type = json_path_string(event, "type", NULL);
    struct json *obj = json_get(event, "object");
    if (streq_null(type, "ERROR")) {
        bool too_old = json_get_int_or(json_get(obj, "code"), 0) == 410;
        const char *message = json_path_string(obj, "message", NULL);
        watch_broken(r, too_old ? NULL : message ? message : "the watch ended with an error");
        return true;
    }
    set_version(r, obj);
    if (streq_null(type, "DELETED")) {
        return !CALLBACK(r, r->ops->deleted(r->ctx, obj));
    }
    if (obj && (streq_null(type, "ADDED") || streq_null(type, "MODIFIED"))) {
        return !CALLBACK(r, r->ops->changed(r->ctx, json_take(event, "object")));
    }
    return true;
}

static void watch_opened(void *ctx)
{
    struct reflector *r = ctx;
    r->open = true;
    connection_regained(r);
}

static void watch_data(void *ctx, const char *p, size_t size)
{
    struct reflector *r = ctx;
    while (size && !r->gone) {
        const char *nl = memchr(p, '\n', size);
        size_t n = nl ? (size_t) (nl - p) : size;
        bool alive = true;
        if (r->line.size == 0 && nl) {
            alive = n == 0 || take_event(r, p, n);
        } else if (strbuf_add(&r->line, p, n) < 0) {
            watch_broken(r, "an event of the watch is too large");
        } else if (nl) {
            /* The callbacks may free the reflector, and the line with it. */
            CLEANUP_STRBUF struct strbuf line = r->line;
            r->line = STRBUF_INIT_MAX(EVENT_MAX_SIZE);
            alive = take_event(r, line.data, line.size);
        }
        if (!alive) {
            return;
        }
        p += n + (nl != NULL);
        size -= n + (nl != NULL);
    }
    if (r->gone) {
        /* By a timer, because the callback of the stream that is cut must return first. */
        loop_timer_arm(r->retry, 0);
    }
}

/* Chooses the next step after the end of a watch. */
static void after_watch(struct reflector *r, const char *error)
{
    backoff_lasted(&r->backoff, loop_now_ms(r->loop) - r->watch_since_ms, WATCH_PROVEN_MS);
    if (r->gone) {
        r->gone = false;
        free(TAKE(r->version));
    }
    if (error) {
        wait_and_retry(r, error);
    } else if (backoff_at_once(&r->backoff)) {
        /* If the next watch fails soon, too, there will be a pause. */
        reflector_go(r);
    } else {
        wait_and_retry(r, NULL);
    }
}

/* kube-apiserver sends no bookmarks for a kind that has had no event since it began to serve it,
 * so silence alone does not tell whether the server, or the path to it, is gone. A new watch from
 * the same version tells: its failure is reported, and if it opens, nothing was missed. */
static bool is_quiet(const struct reflector *r, const struct http_result *result)
{
    return result->error == -ETIMEDOUT && r->open;
}

static void watch_ended(void *ctx, const struct http_result *result)
{
    struct reflector *r = ctx;
    char text[64];
    CLEANUP_FREE char *error = TAKE(r->watch_error);
    r->watch = NULL;
    strbuf_done(&r->line);
    loop_timer_disarm(r->retry);
    if (is_quiet(r, result)) {
        reflector_go(r);
        return;
    }
    api_client_ended(r->client, r->watch_http, result);
    if (result->error == 0 && result->status == 200) {
        after_watch(r, error);
        return;
    }
    /* 504: the server does not have that version yet, for example after its
     * store was reset to an older state. */
    r->gone |= result->error == 0 &&
               (result->status == 410 || result->status == 504 || result->status == 400);
    snprintf(text, sizeof text, "watch answered with status %d", result->status);
    after_watch(r, result->error ? result->error_text : result->status == 410 ? NULL : text);
}

static void reflector_go(struct reflector *r)
{
    CLEANUP_FREE char *base = api_path(r->api_version, r->plural, r->ns, NULL, NULL);
    CLEANUP_STRBUF struct strbuf path = STRBUF_INIT;
    if (r->gone) {
        CLEANUP_FREE char *error = TAKE(r->watch_error);
        after_watch(r, error);
        return;
    }
    strbuf_addf(&path, "%s?", base);
    if (r->field_selector) {
        strbuf_adds(&path, "fieldSelector=");
        http_escape(r->field_selector, &path);
        strbuf_addc(&path, '&');
    }
    if (!r->version) {
        r->lists += !r->page;
        strbuf_addf(&path, "limit=%u", PAGE_SIZE);
        if (r->page) {
            strbuf_adds(&path, "&continue=");
            http_escape(r->page, &path);
        }
        r->list =
            api_request_as(r->client, "GET", path.data,
                           r->metadata ? API_ACCEPT_METADATA_LIST : NULL, NULL, NULL, list_done, r);
        return;
    }
    strbuf_addf(&path, "watch=true&allowWatchBookmarks=true&timeoutSeconds=%u&resourceVersion=",
                WATCH_SECONDS);
    http_escape(r->version, &path);
    static const struct http_stream_ops ops = {
        .opened = watch_opened, .data = watch_data, .ended = watch_ended};
    r->open = false;
    r->watch_since_ms = loop_now_ms(r->loop);
    r->watch_http = api_client_http(r->client);
    r->watch = http_stream(api_client_http(r->client), path.data,
                           r->metadata ? API_ACCEPT_METADATA : "application/json",
                           api_client_quiet_ms(r->client), &ops, r);
}

/* ---- public ---- */

struct reflector *reflector_new(struct api_client *c, struct loop *l, const char *ns,
                                const char *api_version, const char *plural,
                                const char *field_selector, const struct reflector_ops *ops,
                                void *ctx)
{
    struct reflector *r = NEW(struct reflector);
    r->client = c;
    r->loop = l;
    r->backoff = BACKOFF_INIT(BACKOFF_MIN_MS, BACKOFF_MAX_MS);
    r->api_version = xstrdup(api_version);
    r->plural = xstrdup(plural);
    r->ns = ns ? xstrdup(ns) : NULL;
    r->field_selector = field_selector ? xstrdup(field_selector) : NULL;
    r->ops = ops;
    r->ctx = ctx;
    r->line = STRBUF_INIT_MAX(EVENT_MAX_SIZE);
    r->retry = loop_timer_new(l, retry_now, r);
    return r;
}

static void stop_requests(struct reflector *r)
{
    api_call_cancel(TAKE(r->list));
    cut_watch(r);
    free(TAKE(r->version));
    free(TAKE(r->page));
    free(TAKE(r->watch_error));
}

struct reflector *reflector_free(struct reflector *r)
{
    if (!r) {
        return NULL;
    }
    if (r->freed) {
        *r->freed = true;
    }
    stop_requests(r);
    loop_timer_free(r->retry);
    strbuf_done(&r->line);
    free(r->api_version);
    free(r->plural);
    free(r->ns);
    free(r->field_selector);
    free(r);
    return NULL;
}

void reflector_list(struct reflector *r, bool metadata)
{
    stop_requests(r);
    loop_timer_disarm(r->retry);
    r->gone = false;
    r->metadata = metadata;
    reflector_go(r);
}

uint64_t reflector_version(const struct reflector *r)
{
    uint64_t version;
    return r->version && str_to_u64(r->version, UINT64_MAX, &version) == 0 ? version : 0;
}

uint64_t reflector_lists_begun(const struct reflector *r)
{
    return r->lists;
}

uint64_t reflector_list_complete(const struct reflector *r)
{
    return r->complete;
}
