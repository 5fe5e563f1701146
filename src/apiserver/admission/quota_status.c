/* SPDX-License-Identifier: Apache-2.0 */
/* The status of quotas: written from the counters, in batches.
 *
 * A status decides nothing, so that it may be some time behind the counters, and whatever a client
 * writes into it is replaced. */
#include "apiserver/admission/quota_priv.h"
#include "base/log.h"
#include "base/timeutil.h"

LOG_MODULE("quota");

#define TICK_MS 50    /* The longest time from a change to the write of its status. */
#define PERIOD_MS 100 /* The shortest time between two writes of one status. */
#define COUNT_MS 5    /* The time that one tick may count quotas for. */

/* A write of a status under way. */
struct status_write {
    struct quotas *set;
    struct quota *quota; /* A reference. */
};

void quota_mark_dirty(struct quotas *s, struct quota *q)
{
    if (!q->is_dirty && !q->gone) {
        q->is_dirty = true;
        list_push_back(&s->dirty, &quota_ref(q)->dirty);
    }
    if (!loop_timer_armed(s->timer)) {
        loop_timer_arm(s->timer, TICK_MS);
    }
}

/* The status of a cluster quota: the sum, and what each project uses. */
static struct json *cluster_status(const struct quota *q)
{
    struct json *status = json_object(), *list = json_array();
    struct smap_entry *e;
    size_t n = 0, size = smap_size(&q->shares);
    CLEANUP_FREE const char **names = xcalloc(size + 1, sizeof *names);
    SMAP_FOREACH (e, &q->shares) {
        size_t i = n++;
        for (; i > 0 && strcmp(e->key, names[i - 1]) < 0; i--) {
            names[i] = names[i - 1];
        }
        names[i] = e->key;
    }
    json_set(status, "total", quota_spec_status(q->spec, q->used));
    for (size_t i = 0; i < n; i++) {
        const struct quota_share *share = smap_get(&q->shares, names[i]);
        struct json *item = json_append(list, json_object());
        json_set_string(item, "namespace", names[i]);
        json_set(item, "status", quota_spec_status(q->spec, share->used));
    }
    json_set(status, "namespaces", list);
    return status;
}

void quota_set_status(const struct quota *q, const struct cache_kind *ck, struct json *obj)
{
    json_set(obj, "status", q->cluster ? cluster_status(q) : quota_spec_status(q->spec, q->used));
    object_conform(ck->kind, obj);
    (void) object_complete(ck->kind, obj);
}

/* The object of 'o' with the right status; NULL: it has that. */
static struct blob *with_status(const struct quota *q, const struct cache_kind *ck,
                                const struct object *o)
{
    struct blob *value = NULL;
    CLEANUP(json_free) struct json *obj = object_parse(o);
    CLEANUP(json_free) struct json *before = json_clone(obj);
    quota_set_status(q, ck, obj);
    if (!json_equal(obj, before)) {
        (void) object_encode(ck->kind, obj, &value);
    }
    return value;
}

static void written(void *ctx, int error, uint64_t revision)
{
    static struct log_limit limit;
    CLEANUP_FREE struct status_write *w = ctx;
    struct quota *q = w->quota;
    q->writing = false;
    if (error < 0 && error != -ESTALE && error != -ENOENT && error != -EAGAIN &&
        error != -ECANCELED) {
        log_limited(&limit, LOG_ERROR, "the status of a quota was not written",
                    "quota=%s error=\"%s\"", q->key, strerror(-error));
    }
    if (error != -ECANCELED && !q->gone) {
        quota_mark_dirty(w->set, q);
    }
    quota_unref(q);
}

static void write_status(struct quotas *s, struct quota *q)
{
    const struct cache_kind *ck = q->cluster ? s->clusters : s->quotas;
    struct object *o = keyset_get(&ck->objects, q->key);
    CLEANUP(blob_unref) struct blob *value = o ? with_status(q, ck, o) : NULL;
    if (value) {
        CLEANUP_FREE char *key = cache_store_key(ck, q->key);
        struct status_write *w = NEW(struct status_write);
        *w = (struct status_write){s, quota_ref(q)};
        q->writing = true;
        q->written_ms = loop_now_ms(s->server->loop);
        store_put(s->server->store, key, value, o->revision, written, w);
    }
}

void quota_status_tick(void *quotas)
{
    struct quotas *s = quotas;
    uint64_t now = loop_now_ms(s->server->loop), begin_ns = time_mono_ns();
    struct quota *q;
    if (s->server->lost || s->server->stopping) {
        loop_timer_arm(s->timer, TICK_MS);
        return;
    }
    LIST_FOREACH (q, struct quota, dirty, &s->dirty) {
        bool late = time_mono_ns() - begin_ns > COUNT_MS * UINT64_C(1000000);
        if (late || q->writing || (q->written_ms && now < q->written_ms + PERIOD_MS)) {
            continue;
        }
        quota_count(s, q);
        q->is_dirty = false;
        list_remove(&q->dirty);
        write_status(s, q);
        quota_unref(q);
    }
    if (!list_is_empty(&s->dirty)) {
        loop_timer_arm(s->timer, TICK_MS);
    }
}
