/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/lifecycle/event_age.h"

#include "base/mem.h"
#include "base/timeutil.h"
#include "controller/obj.h"

#define KEY "events"
#define PERIOD_MS 300000
#define PAGE "/api/v1/events?limit=500"

struct event_age {
    struct json *list; /* The page of the list in work. */
    size_t next;
};

bool event_age_is_over(const struct json *event, int64_t now_ms)
{
    static const char *const fields[] = {"lastTimestamp", "eventTime", "firstTimestamp"};
    int64_t seen = 0;
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        const char *s = json_path_string(event, fields[i], NULL);
        if (s && time_parse(s, &seen) == 0) {
            return seen + EVENT_TTL_MS < now_ms;
        }
    }
    const char *made = json_path_string(event, "metadata", "creationTimestamp", NULL);
    return made && time_parse(made, &seen) == 0 && seen + EVENT_TTL_MS < now_ms;
}

static void next_event(struct event_age *a, struct work *w);

static void deleted(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "delete an old event", text);
    } else {
        next_event(ctx, w);
    }
}

static void listed(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct event_age *a = ctx;
    if (error < 0) {
        work_retry(w, error, "list events", text);
        return;
    }
    json_free(a->list);
    a->list = json_clone(obj);
    a->next = 0;
    next_event(a, w);
}

/* Deletes the next expired event of the page; after the last one reads the next page, and
 * after the last page waits for the next run. */
static void next_event(struct event_age *a, struct work *w)
{
    const struct json *items = json_get(a->list, "items"), *event = NULL;
    int64_t now = time_wall_ms();
    while (a->next < json_count(items)) {
        const struct json *it = json_at(items, a->next++);
        if (event_age_is_over(it, now) && !obj_is_terminating(it)) {
            event = it;
            break;
        }
    }
    const char *more = json_path_string(a->list, "metadata", "continue", NULL);
    if (event) {
        CLEANUP_FREE char *path =
            api_path("v1", "events", obj_namespace(event), obj_name(event), NULL);
        work_request(w, "DELETE", path, NULL, deleted);
    } else if (more && *more) {
        CLEANUP_STRBUF struct strbuf path = STRBUF_INIT;
        strbuf_adds(&path, PAGE "&continue=");
        http_escape(more, &path);
        work_request(w, "GET", strbuf_cstr(&path), NULL, listed);
    } else {
        work_wait(w, PERIOD_MS);
    }
}

static void begin(void *ctx, struct work *w, const char *key)
{
    work_request(w, "GET", PAGE, NULL, listed);
}

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    struct event_age *a = NEW(struct event_age);
    workqueue_add(env->queue, KEY);
    *ret = a;
    return 0;
}

static void stop(void *state)
{
    struct event_age *a = state;
    json_free(a->list);
    free(a);
}

const struct controller event_age_controller = {
    .name = "event_age",
    .parallel = 1,
    .start = start,
    .reconcile = begin,
    .stop = stop,
};
