/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store.h"

#include "base/str.h"
#include "store/backend.h"

static const struct {
    const char *name;
    int (*open)(struct loop *l, const struct store_config *cfg, struct store **ret, struct err *e);
} backends[] = {
    {"sqlite", store_open_sqlite},
    {"etcd", store_open_etcd},
    {"memory", store_open_memory},
};

int store_open(struct loop *l, const struct store_config *cfg, struct store **ret, struct err *e)
{
    for (size_t i = 0; i < ARRAY_SIZE(backends); i++) {
        if (streq_null(cfg->backend, backends[i].name)) {
            return backends[i].open(l, cfg, ret, e);
        }
    }
    return err_set(e, -EINVAL, "store \"%s\": not one of sqlite, etcd, memory",
                   cfg->backend ? cfg->backend : "");
}

/* Only those that are there now: their callbacks may add more. */
static void refuse_run(void *ctx)
{
    struct store *s = ctx;
    struct list now;
    store_list_take(&now, &s->refused);
    struct store_write *w;
    LIST_FOREACH (w, struct store_write, node, &now) {
        store_write_finish(w, w->error, 0);
    }
}

void store_init(struct store *s, const struct store_ops *ops, struct loop *l)
{
    s->ops = ops;
    s->loop = l;
    list_init(&s->refused);
    loop_task_init(&s->refuse, l, refuse_run, s);
}

void store_start(struct store *s, const struct store_watcher *w, void *ctx)
{
    assert(!s->watcher);
    s->watcher = w;
    s->watcher_ctx = ctx;
    s->ops->start(s);
}

struct store *store_close(struct store *s)
{
    if (!s) {
        return NULL;
    }
    assert(!s->closing);
    s->closing = true;
    s->ops->close(s);
    s->available = false;
    loop_task_cancel(&s->refuse);
    while (!list_is_empty(&s->refused)) {
        refuse_run(s);
    }
    free(s);
    return NULL;
}

static int write_refusal(const struct store *s, const char *key, const struct blob *value)
{
    if (s->closing) {
        return -ECANCELED;
    }
    if (!s->available) {
        return -EAGAIN;
    }
    if (!str_has_prefix(key, STORE_PREFIX) || !key[sizeof STORE_PREFIX - 1]) {
        return -EINVAL;
    }
    return value && value->size > STORE_MAX_VALUE ? -E2BIG : 0;
}

static void write_new(struct store *s, const char *key, struct blob *value, uint64_t expect,
                      store_done_fn *done, void *ctx)
{
    struct store_write *w = NEW(struct store_write);
    list_init(&w->node);
    w->key = xstrdup(key);
    w->value = value ? blob_ref(value) : NULL;
    w->expect = expect;
    w->done = done;
    w->ctx = ctx;
    w->error = write_refusal(s, key, value);
    if (w->error == 0) {
        s->ops->write(s, w);
    } else {
        list_push_back(&s->refused, &w->node);
        loop_task_queue(&s->refuse);
    }
}

void store_put(struct store *s, const char *key, struct blob *value, uint64_t expect,
               store_done_fn *done, void *ctx)
{
    assert(value);
    write_new(s, key, value, expect, done, ctx);
}

void store_delete(struct store *s, const char *key, uint64_t expect, store_done_fn *done, void *ctx)
{
    write_new(s, key, NULL, expect, done, ctx);
}

int store_check(const struct store_write *w, uint64_t current)
{
    if (w->expect == STORE_ABSENT) {
        return current ? -EEXIST : w->value ? 0 : -ENOENT;
    }
    if (w->expect == STORE_ANY) {
        return current || w->value ? 0 : -ENOENT;
    }
    return !current ? -ENOENT : current != w->expect ? -ESTALE : 0;
}

void store_write_finish(struct store_write *w, int error, uint64_t revision)
{
    list_remove(&w->node);
    w->done(w->ctx, error, revision);
    blob_unref(w->value);
    blob_unref(w->prev);
    free(w->key);
    free(w);
}

void store_writes_fail(struct list *writes, int error)
{
    struct list now;
    store_list_take(&now, writes);
    struct store_write *w;
    LIST_FOREACH (w, struct store_write, node, &now) {
        store_write_finish(w, error, 0);
    }
}

void store_report_event(struct store *s, const struct store_event *ev)
{
    s->watcher->event(s->watcher_ctx, ev);
}

void store_report_history(struct store *s, const struct store_event *ev)
{
    if (s->watcher->history) {
        s->watcher->history(s->watcher_ctx, ev);
    }
}

void store_report_snapshot(struct store *s, const struct store_item *items, size_t n,
                           uint64_t revision)
{
    s->available = true;
    s->watcher->snapshot(s->watcher_ctx, items, n, revision);
}

void store_report_lost(struct store *s, const char *reason)
{
    s->available = false;
    if (s->watcher->lost) {
        s->watcher->lost(s->watcher_ctx, reason);
    }
}
