/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/kubectl/watch.h"

#include "base/mem.h"
#include "base/timeutil.h"
#include "cli/kubectl/resource.h"

#include <stdio.h>

#define LINE_MAX_SIZE (16u << 20)
#define IDLE_MS 600000
#define PAUSE_MS 200 /* Delay before a watch that ended without an event is begun again. */

struct watch {
    struct session *s;
    const char *path, *accept;
    watch_event_fn *fn;
    void *ctx;
    struct err *e;
    char *version;
    struct strbuf line;
    struct http_call *call;
    struct loop_timer *pause;
    bool got_event;
    bool over;
    int result;
};

static void begin(void *ctx);

static void end(struct watch *w, int result)
{
    w->result = result;
    w->over = true;
}

static void remember_version(struct watch *w, const struct json *object)
{
    const char *v = json_path_string(object, "metadata", "resourceVersion", NULL);
    const struct json *row;
    JSON_FOREACH (row, json_get(object, "rows")) {
        const char *of_row = json_path_string(row, "object", "metadata", "resourceVersion", NULL);
        v = of_row ? of_row : v;
    }
    if (v && *v) {
        free(w->version);
        w->version = xstrdup(v);
    }
}

static void take_line(struct watch *w, const char *text, size_t size)
{
    CLEANUP(json_free) struct json *event = NULL;
    struct err e = {0};
    if (json_parse(text, size, &event, &e) < 0) {
        end(w, err_set(w->e, -EPROTO, "watch event: %s", e.text));
        return;
    }
    const char *type = json_path_string(event, "type", NULL);
    const struct json *object = json_get(event, "object");
    w->got_event = true;
    if (streq_null(type, "ERROR")) {
        const char *message = json_path_string(object, "message", NULL);
        bool gone = json_get_int_or(json_get(object, "code"), 0) == 410;
        end(w, err_set(w->e, gone ? -ESTALE : -EAGAIN, "%s", message ? message : "watch failed"));
        return;
    }
    remember_version(w, object);
    if (type && !streq(type, "BOOKMARK") && !w->fn(w->ctx, type, object)) {
        end(w, 0);
    }
}

static void data(void *ctx, const char *p, size_t size)
{
    struct watch *w = ctx;
    while (size > 0 && !w->over) {
        const char *nl = memchr(p, '\n', size);
        size_t n = nl ? (size_t) (nl - p) : size;
        strbuf_add(&w->line, p, n);
        if (w->line.failed) {
            end(w, err_set(w->e, -EMSGSIZE, "watch event is too long"));
        } else if (nl) {
            if (w->line.size > 0) {
                take_line(w, w->line.data, w->line.size);
            }
            strbuf_reset(&w->line);
        }
        p += n + (nl != NULL);
        size -= n + (nl != NULL);
    }
}

static void ended(void *ctx, const struct http_result *r)
{
    struct watch *w = ctx;
    w->call = NULL;
    strbuf_reset(&w->line);
    if (w->over) {
        return;
    }
    if (r->error < 0) {
        end(w, err_set(w->e, r->error, "%s", r->error_text));
    } else if (r->status != 200) {
        CLEANUP(json_free) struct json *status = NULL;
        (void) json_parse(r->body, r->size, &status, NULL);
        const char *message = json_path_string(status, "message", NULL);
        int code = r->status == 410   ? -ESTALE
                   : r->status == 404 ? -ENOENT
                   : r->status == 400 ? -EINVAL
                                      : -EAGAIN;
        end(w, message ? err_set(w->e, code, "%s", message)
                       : err_set(w->e, code, "watch answered with status %d", r->status));
    } else if (w->got_event) {
        begin(w);
    } else {
        loop_timer_arm(w->pause, PAUSE_MS);
    }
}

static void begin(void *ctx)
{
    static const struct http_stream_ops ops = {.data = data, .ended = ended};
    struct watch *w = ctx;
    CLEANUP_STRBUF struct strbuf path = STRBUF_INIT;
    strbuf_adds(&path, w->path);
    resource_query(&path, "watch", "true");
    resource_query(&path, "allowWatchBookmarks", "true");
    resource_query(&path, "resourceVersion", w->version);
    w->got_event = false;
    w->call =
        http_stream(api_client_http(w->s->client), strbuf_cstr(&path), w->accept, IDLE_MS, &ops, w);
}

int watch_run(struct session *s, const char *path, const char *accept, const char *version,
              uint64_t timeout_ms, watch_event_fn *fn, void *ctx, struct err *e)
{
    struct watch w = {.s = s,
                      .path = path,
                      .accept = accept ? accept : "application/json",
                      .fn = fn,
                      .ctx = ctx,
                      .e = e,
                      .version = xstrdup(version),
                      .line = STRBUF_INIT_MAX(LINE_MAX_SIZE)};
    w.pause = loop_timer_new(s->loop, begin, &w);
    begin(&w);
    int r = loop_run_until(s->loop, &w.over, timeout_ms);
    if (w.call) {
        http_call_cancel(w.call);
    }
    loop_timer_free(w.pause);
    strbuf_done(&w.line);
    free(w.version);
    return r < 0 ? err_set(e, r, "timed out") : w.result;
}

/* ---- one object ---- */

struct object_watch {
    watch_object_fn *fn;
    void *ctx;
    struct err *e;
    int result; /* Of 'fn': 0 while the watch goes on. */
};

static bool on_object(void *ctx, const char *type, const struct json *object)
{
    struct object_watch *o = ctx;
    o->result = o->fn(o->ctx, streq(type, "DELETED") ? NULL : object, o->e);
    return o->result == 0;
}

int watch_object(struct session *s, const struct api_kind *k, const char *ns, const char *name,
                 uint64_t deadline_ms, watch_object_fn *fn, void *ctx, struct err *e)
{
    struct object_watch o = {.fn = fn, .ctx = ctx, .e = e};
    CLEANUP_FREE char *all = resource_path(k, ns, NULL);
    CLEANUP_FREE char *field = xasprintf("metadata.name=%s", name);
    CLEANUP_STRBUF struct strbuf path = STRBUF_INIT;
    strbuf_adds(&path, all);
    resource_query(&path, "fieldSelector", field);
    for (;;) {
        CLEANUP(json_free) struct json *list = NULL;
        int r = api_request_sync(s->client, "GET", strbuf_cstr(&path), NULL, NULL, NULL, &list, e);
        if (r < 0) {
            return r;
        }
        o.result = fn(ctx, json_at(json_get(list, "items"), 0), e);
        if (o.result != 0) {
            return MIN(o.result, 0);
        }
        uint64_t now = time_mono_ms();
        if (deadline_ms && now >= deadline_ms) {
            return err_set(e, -ETIMEDOUT, "timed out");
        }
        const char *version = json_path_string(list, "metadata", "resourceVersion", NULL);
        r = watch_run(s, strbuf_cstr(&path), NULL, version ? version : "",
                      deadline_ms ? deadline_ms - now : 0, on_object, &o, e);
        if (o.result != 0) {
            return MIN(o.result, 0);
        }
        if (r < 0 && r != -ESTALE) {
            return r;
        }
    }
}
