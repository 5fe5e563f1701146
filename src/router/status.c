/* SPDX-License-Identifier: Apache-2.0 */
#include "router/status.h"

#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/timeutil.h"

LOG_MODULE("router");

#define API "route.openshift.io/v1"
#define IN_FLIGHT_MAX 8u
#define FLIPS_MAX 3u
#define QUIET_MS 180000
#define RETRY_MS 1000

struct entry {
    struct status_writer *w;
    char *key, *namespace, *name;
    char *seen;          /* Text of the router's entry in the object; NULL: none. */
    char *wanted;        /* The same as it must be; NULL: not known. */
    struct json *object; /* The wanted entry. */
    bool wrote;
    unsigned flips;
    uint64_t quiet_until_ms, not_before_ms;
    struct api_call *call;
    struct list queued;
};

struct status_writer {
    struct status_config cfg;
    struct smap entries;
    struct list queue;
    unsigned in_flight;
    struct loop_task run;
    struct loop_timer *retry;
};

static void entry_free(void *p)
{
    struct entry *e = p;
    if (e->call) {
        api_call_cancel(e->call);
        e->w->in_flight--;
    }
    list_remove(&e->queued);
    json_free(e->object);
    free(e->key);
    free(e->namespace);
    free(e->name);
    free(e->seen);
    free(e->wanted);
    free(e);
}

/* All of an entry but its times, as one text. */
static char *text_of(const struct json *entry)
{
    const struct json *c = json_at(json_get(entry, "conditions"), 0);
    return xasprintf("%s|%s|%s|%s|%s|%s", json_get_text(entry, "host"),
                     json_get_text(entry, "wildcardPolicy"),
                     json_get_text(entry, "routerCanonicalHostname"), json_get_text(c, "status"),
                     json_get_text(c, "reason"), json_get_text(c, "message"));
}

static struct json *find_entry(const struct json *obj, const char *router, size_t *ret)
{
    const struct json *list = json_path(obj, "status", "ingress", NULL);
    for (size_t i = 0; i < json_count(list); i++) {
        if (streq(json_get_text(json_at(list, i), "routerName"), router)) {
            *ret = i;
            return json_at(list, i);
        }
    }
    return NULL;
}

static struct entry *entry_of(struct status_writer *w, const char *key)
{
    struct entry *e = smap_get(&w->entries, key);
    if (!e) {
        const char *slash = strchr(key, '/');
        e = NEW(struct entry);
        e->w = w;
        e->key = xstrdup(key);
        e->namespace = xstrndup(key, slash ? (size_t) (slash - key) : 0);
        e->name = xstrdup(slash ? slash + 1 : key);
        list_init(&e->queued);
        smap_set(&w->entries, key, e);
    }
    return e;
}

static void consider(struct entry *e)
{
    if (e->w->cfg.writes && e->wanted && !e->call && !streq_null(e->seen, e->wanted)) {
        list_remove(&e->queued);
        list_push_back(&e->w->queue, &e->queued);
        loop_task_queue(&e->w->run);
    } else if (!e->call) {
        list_remove(&e->queued);
    }
}

static void finished(struct entry *e)
{
    e->call = NULL;
    e->w->in_flight--;
    e->not_before_ms = loop_now_ms(e->w->cfg.loop) + RETRY_MS;
    consider(e);
}

static void on_written(void *ctx, int error, const char *text, struct json *obj)
{
    struct entry *e = ctx;
    if (error == 0) {
        e->wrote = true;
        free(e->seen);
        size_t i;
        const struct json *now = find_entry(obj, e->w->cfg.router, &i);
        e->seen = now ? text_of(now) : NULL;
    } else if (error != -ESTALE && error != -ENOENT) {
        static struct log_limit limit;
        log_limited(&limit, LOG_WARN, "cannot write the status of a route", "route=%s error=\"%s\"",
                    e->key, text);
    }
    finished(e);
}

static void set_entry(const struct entry *e, struct json *obj)
{
    size_t i;
    struct json *list = json_ensure_array(json_ensure_object(obj, "status"), "ingress");
    if (find_entry(obj, e->w->cfg.router, &i)) {
        json_remove_at(list, i);
    }
    struct json *item = json_append(list, json_clone(e->object));
    char now[TIME_TEXT_SIZE];
    time_format_s(time_wall_ms(), now);
    json_set_string(json_at(json_get(item, "conditions"), 0), "lastTransitionTime", now);
}

static void on_read(void *ctx, int error, const char *text, struct json *obj)
{
    struct entry *e = ctx;
    if (error < 0 || !e->wanted) {
        finished(e);
        return;
    }
    size_t i;
    const struct json *now = find_entry(obj, e->w->cfg.router, &i);
    CLEANUP_FREE char *have = now ? text_of(now) : NULL;
    if (streq_null(have, e->wanted)) {
        free(e->seen);
        e->seen = TAKE(have);
        finished(e);
        return;
    }
    set_entry(e, obj);
    CLEANUP_FREE char *path = api_path(API, "routes", e->namespace, e->name, "status");
    e->call = api_request(e->w->cfg.client, "PUT", path, NULL, obj, on_written, e);
}

static void run(void *ctx)
{
    struct status_writer *w = ctx;
    struct entry *e;
    uint64_t now = loop_now_ms(w->cfg.loop);
    LIST_FOREACH (e, struct entry, queued, &w->queue) {
        if (w->in_flight >= IN_FLIGHT_MAX) {
            return;
        }
        if (now < MAX(e->not_before_ms, e->quiet_until_ms)) {
            if (!loop_timer_armed(w->retry)) {
                loop_timer_arm(w->retry, RETRY_MS);
            }
            continue;
        }
        list_remove(&e->queued);
        CLEANUP_FREE char *path = api_path(API, "routes", e->namespace, e->name, NULL);
        w->in_flight++;
        e->call = api_request(w->cfg.client, "GET", path, NULL, NULL, on_read, e);
    }
}

struct status_writer *status_writer_new(const struct status_config *cfg)
{
    struct status_writer *w = NEW(struct status_writer);
    w->cfg = *cfg;
    smap_init(&w->entries, entry_free);
    list_init(&w->queue);
    loop_task_init(&w->run, cfg->loop, run, w);
    w->retry = loop_timer_new(cfg->loop, run, w);
    return w;
}

struct status_writer *status_writer_free(struct status_writer *w)
{
    if (w) {
        smap_done(&w->entries);
        loop_task_cancel(&w->run);
        loop_timer_free(w->retry);
        free(w);
    }
    return NULL;
}

void status_seen(struct status_writer *w, const char *key, const struct json *obj)
{
    struct entry *e = entry_of(w, key);
    size_t i;
    const struct json *now = find_entry(obj, w->cfg.router, &i);
    char *text = now ? text_of(now) : NULL;
    bool flipped =
        e->wrote && e->wanted && streq_null(e->seen, e->wanted) && text && !streq(text, e->wanted);
    if (flipped && ++e->flips >= FLIPS_MAX) {
        e->flips = 0;
        e->quiet_until_ms = loop_now_ms(w->cfg.loop) + QUIET_MS;
        log_warn("another router with this name writes the status of a route; this one waits",
                 "route=%s router=%s", key, w->cfg.router);
    }
    free(e->seen);
    e->seen = text;
    consider(e);
}

void status_want(struct status_writer *w, const struct route *r, bool admitted, const char *reason,
                 const char *message)
{
    CLEANUP_FREE char *key = xasprintf("%s/%s", r->namespace, r->name);
    struct entry *e = entry_of(w, key);
    struct json *o = json_object();
    json_set_string(o, "host", r->host);
    json_set_string(o, "routerName", w->cfg.router);
    json_set_string(o, "wildcardPolicy",
                    r->wildcard == ROUTE_WILDCARD_SUBDOMAIN ? "Subdomain" : "None");
    json_set_string(o, "routerCanonicalHostname", w->cfg.canonical_hostname);
    struct json *c = json_append(json_ensure_array(o, "conditions"), json_object());
    json_set_string(c, "type", "Admitted");
    json_set_string(c, "status", admitted ? "True" : "False");
    json_set_string(c, "reason", reason);
    json_set_string(c, "message", message);
    json_free(e->object);
    e->object = o;
    free(e->wanted);
    e->wanted = text_of(o);
    consider(e);
}

void status_forget(struct status_writer *w, const char *key)
{
    smap_remove(&w->entries, key);
}

size_t status_waiting(const struct status_writer *w)
{
    return list_size(&w->queue) + w->in_flight;
}
