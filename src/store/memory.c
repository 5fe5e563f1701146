/* SPDX-License-Identifier: Apache-2.0 */
/* The backend for tests: a map.  Writes take effect in a task, so that no callback comes from
 * within the call, as with the other backends. */
#include "base/map.h"
#include "store/backend.h"

struct live {
    struct blob *value;
    uint64_t revision;
};

struct memory_store {
    struct store base;
    struct smap keys; /* to struct live */
    uint64_t revision;
    bool started; /* The snapshot was reported. */
    struct list queue;
    struct loop_task run;
};

static void live_free(void *p)
{
    struct live *l = p;
    blob_unref(l->value);
    free(l);
}

static int check(const struct memory_store *m, const struct store_write *w)
{
    const struct live *l = smap_get(&m->keys, w->key);
    const struct live *guard = w->guard ? smap_get(&m->keys, w->guard) : NULL;
    if (w->guard && (guard ? guard->revision : 0) != w->guard_at) {
        return -EPERM;
    }
    int r = store_check(w, l ? l->revision : 0);
    for (size_t i = 0; r == 0 && i < w->n_claims; i++) {
        l = smap_get(&m->keys, w->claims[i].key);
        r = store_check_claim(&w->claims[i], l ? l->revision : 0);
    }
    return r;
}

static uint64_t set_key(struct memory_store *m, const char *key, struct blob *value,
                        struct blob **ret_prev)
{
    struct live *l = smap_get(&m->keys, key);
    *ret_prev = l ? TAKE(l->value) : NULL;
    m->revision++;
    if (!value) {
        smap_remove(&m->keys, key);
        return m->revision;
    }
    if (!l) {
        l = NEW(struct live);
        smap_set(&m->keys, key, l);
    }
    l->value = blob_ref(value);
    l->revision = m->revision;
    return m->revision;
}

static void apply(struct memory_store *m, struct store_write *w)
{
    int r = check(m, w);
    if (r < 0) {
        store_write_finish(w, r, 0);
        return;
    }
    w->revision = set_key(m, w->key, w->value, &w->prev);
    for (size_t i = 0; i < w->n_claims; i++) {
        struct store_write_claim *claim = &w->claims[i];
        if (claim->value || smap_get(&m->keys, claim->key)) {
            claim->revision = set_key(m, claim->key, claim->value, &claim->prev);
        }
    }
    store_write_report(&m->base, w);
    store_write_finish(w, 0, w->revision);
}

static void run(void *ctx)
{
    struct memory_store *m = ctx;
    if (m->base.watcher && !m->started) {
        m->started = true;
        store_report_snapshot(&m->base, NULL, 0, m->revision);
    }
    struct list now;
    store_list_take(&now, &m->queue);
    struct store_write *w;
    LIST_FOREACH (w, struct store_write, node, &now) {
        apply(m, w);
    }
}

static void memory_start(struct store *s)
{
    struct memory_store *m = CONTAINER_OF(s, struct memory_store, base);
    loop_task_queue(&m->run);
}

static void memory_write(struct store *s, struct store_write *w)
{
    struct memory_store *m = CONTAINER_OF(s, struct memory_store, base);
    list_push_back(&m->queue, &w->node);
    loop_task_queue(&m->run);
}

static void memory_close(struct store *s)
{
    struct memory_store *m = CONTAINER_OF(s, struct memory_store, base);
    loop_task_cancel(&m->run);
    if (m->started) {
        run(m);
    }
    smap_done(&m->keys);
}

int store_open_memory(struct loop *l, const struct store_config *cfg, struct store **ret,
                      struct err *e)
{
    static const struct store_ops ops = {
        .start = memory_start, .write = memory_write, .close = memory_close};
    struct memory_store *m = NEW(struct memory_store);
    store_init(&m->base, &ops, l);
    smap_init(&m->keys, live_free);
    list_init(&m->queue);
    loop_task_init(&m->run, l, run, m);
    *ret = &m->base;
    return 0;
}
