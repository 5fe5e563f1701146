/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store.h"

#include "base/log.h"
#include "base/str.h"
#include "store/backend.h"

LOG_MODULE("store");

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
    CLEANUP(encryption_free) struct encryption *encryption = NULL;
    if (cfg->encryption_file) {
        int r = encryption_load(cfg->encryption_file, &encryption, e);
        if (r < 0) {
            return r;
        }
    }
    for (size_t i = 0; i < ARRAY_SIZE(backends); i++) {
        if (streq_null(cfg->backend, backends[i].name)) {
            int r = backends[i].open(l, cfg, ret, e);
            if (r == 0) {
                (*ret)->importing = cfg->importing;
                (*ret)->encryption = TAKE(encryption);
            }
            return r;
        }
    }
    return err_set(e, -EINVAL, "store \"%s\": not one of sqlite, etcd, memory",
                   cfg->backend ? cfg->backend : "");
}

/* Only those queued now: their callbacks may add more. */
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
    smap_init(&s->stale, NULL);
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
    encryption_free(s->encryption);
    smap_done(&s->stale);
    free(s);
    return NULL;
}

static bool is_key(const char *key)
{
    return str_has_prefix(key, STORE_PREFIX) && key[sizeof STORE_PREFIX - 1];
}

static int write_refusal(const struct store *s, const struct store_write *w)
{
    if (s->closing) {
        return -ECANCELED;
    }
    if (!s->available) {
        return -EAGAIN;
    }
    if (!is_key(w->key)) {
        return -EINVAL;
    }
    for (size_t i = 0; i < w->n_claims; i++) {
        if (!is_key(w->claims[i].key) || streq(w->claims[i].key, w->key)) {
            return -EINVAL;
        }
        if (w->claims[i].value && w->claims[i].value->size > STORE_MAX_VALUE) {
            return -E2BIG;
        }
    }
    return (w->value && w->value->size > STORE_MAX_VALUE) || w->n_claims > STORE_MAX_CLAIMS ? -E2BIG
                                                                                            : 0;
}

static struct store_write *call_new(store_done_fn *done, void *ctx)
{
    struct store_write *w = NEW(struct store_write);
    list_init(&w->node);
    w->done = done;
    w->ctx = ctx;
    return w;
}

/* Calls back with w->error, from a task. */
static void settle(struct store *s, struct store_write *w)
{
    list_push_back(&s->refused, &w->node);
    loop_task_queue(&s->refuse);
}

/* ---- encryption ---- */

/* Encrypts the value in place. */
static int seal(const struct store *s, const char *key, struct blob **value)
{
    static struct log_limit limit;
    struct blob *sealed;
    struct err e = {0};
    int r = *value ? encryption_seal(s->encryption, key, *value, &sealed, &e) : 0;
    if (r < 0) {
        log_limited(&limit, LOG_ERROR, "value not encrypted", "key=%s error=\"%s\"", key, e.text);
    } else if (*value) {
        blob_unref(*value);
        *value = sealed;
    }
    return r;
}

static int seal_write(const struct store *s, struct store_write *w)
{
    int r = s->encryption ? seal(s, w->key, &w->value) : 0;
    for (size_t i = 0; r == 0 && s->encryption && i < w->n_claims; i++) {
        r = seal(s, w->claims[i].key, &w->claims[i].value);
    }
    return r;
}

/* The value as it was written, another reference or a new one; the stored one when it cannot be
 * decrypted. */
static struct blob *opened(const struct store *s, const char *key, struct blob *value)
{
    static struct log_limit limit;
    struct blob *ret;
    struct err e = {0};
    if (!value) {
        return NULL;
    }
    if (encryption_open(s->encryption, key, value, &ret, &e) < 0) {
        log_limited(&limit, LOG_ERROR, "value cannot be decrypted", "key=%s error=\"%s\"", key,
                    e.text);
        return blob_ref(value);
    }
    return ret;
}

/* Remembers whether the value that the key has now is to be written again. */
static void note_form(struct store *s, const char *key, const struct blob *value)
{
    if (!s->encryption) {
        return;
    }
    if (value && encryption_is_stale(s->encryption, key, value)) {
        smap_set(&s->stale, key, s);
    } else if (smap_size(&s->stale)) {
        (void) smap_remove(&s->stale, key);
    }
}

bool store_is_stale(const struct store *s, const char *key)
{
    return smap_size(&s->stale) && smap_get(&s->stale, key);
}

/* ---- calls ---- */

void store_write(struct store *s, const char *key, struct blob *value, uint64_t expect,
                 const struct store_terms *terms, store_done_fn *done, void *ctx)
{
    struct store_write *w = call_new(done, ctx);
    w->key = xstrdup(key);
    w->value = value ? blob_ref(value) : NULL;
    w->expect = expect;
    w->guard = terms->guard ? xstrdup(terms->guard) : NULL;
    w->guard_at = terms->guard_at;
    w->ttl_s = terms->ttl_s;
    w->ending = terms->ending;
    w->n_claims = terms->n_claims;
    w->claims = w->n_claims ? xcalloc(w->n_claims, sizeof *w->claims) : NULL;
    for (size_t i = 0; i < w->n_claims; i++) {
        const struct store_claim *claim = &terms->claims[i];
        w->claims[i].key = xstrdup(claim->key);
        w->claims[i].value = claim->value ? blob_ref(claim->value) : NULL;
        w->claims[i].expect = claim->expect;
    }
    w->error = write_refusal(s, w);
    w->error = w->error ? w->error : seal_write(s, w);
    if (w->error == 0) {
        s->ops->write(s, w);
    } else {
        settle(s, w);
    }
}

void store_put(struct store *s, const char *key, struct blob *value, uint64_t expect,
               store_done_fn *done, void *ctx)
{
    assert(value);
    store_write(s, key, value, expect, &(struct store_terms){0}, done, ctx);
}

void store_delete(struct store *s, const char *key, uint64_t expect, store_done_fn *done, void *ctx)
{
    store_write(s, key, NULL, expect, &(struct store_terms){0}, done, ctx);
}

void store_probe(struct store *s, store_done_fn *done, void *ctx)
{
    struct store_write *w = call_new(done, ctx);
    w->probe = true;
    w->key = xstrdup(STORE_OWN_PREFIX "probe");
    w->value = blob_new("{}", 2);
    w->expect = 1; /* The key never exists: backends that check conditions find this one false. */
    w->error = write_refusal(s, w);
    if (w->error == 0) {
        s->ops->write(s, w);
    } else {
        settle(s, w);
    }
}

bool store_is_shared(const struct store *s)
{
    return s->ops->sync != NULL;
}

void store_sync(struct store *s, store_done_fn *done, void *ctx)
{
    struct store_write *w = call_new(done, ctx);
    w->error = s->closing ? -ECANCELED : !s->available ? -EAGAIN : 0;
    if (w->error == 0 && s->ops->sync) {
        s->ops->sync(s, w);
    } else {
        settle(s, w);
    }
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

int store_check_claim(const struct store_write_claim *claim, uint64_t current)
{
    if (!claim->value || current == claim->expect) {
        return 0;
    }
    return claim->expect == STORE_ABSENT ? -EADDRINUSE : -ESTALE;
}

void store_write_report(struct store *s, const struct store_write *w)
{
    store_report_event(
        s, &(struct store_event){
               .key = w->key, .value = w->value, .prev = w->prev, .revision = w->revision});
    for (size_t i = 0; i < w->n_claims; i++) {
        const struct store_write_claim *claim = &w->claims[i];
        if (claim->revision) {
            store_report_event(s, &(struct store_event){.key = claim->key,
                                                        .value = claim->value,
                                                        .prev = claim->prev,
                                                        .revision = claim->revision});
        }
    }
}

void store_write_finish(struct store_write *w, int error, uint64_t revision)
{
    list_remove(&w->node);
    w->done(w->ctx, w->probe && error == -ENOENT ? 0 : error, revision);
    for (size_t i = 0; i < w->n_claims; i++) {
        free(w->claims[i].key);
        blob_unref(w->claims[i].value);
        blob_unref(w->claims[i].prev);
    }
    free(w->claims);
    blob_unref(w->value);
    blob_unref(w->prev);
    free(w->guard);
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

/* The store's contents are being replaced: nothing in it is valid any more. */
static void block(struct store *s)
{
    s->blocked = true;
    store_report_lost(s, "an import into the registry is not finished: run \"tenet store import\" "
                         "again if it was broken off, then start the master again");
}

void store_report_event(struct store *s, const struct store_event *ev)
{
    if (s->blocked) {
        return;
    }
    CLEANUP(blob_unref) struct blob *value = opened(s, ev->key, ev->value);
    CLEANUP(blob_unref) struct blob *prev = opened(s, ev->key, ev->prev);
    const struct store_event plain = {ev->key, value, prev, ev->revision};
    note_form(s, ev->key, ev->value);
    s->watcher->event(s->watcher_ctx, &plain);
    if (ev->value && !s->importing && streq(ev->key, STORE_IMPORT_KEY)) {
        block(s);
    }
}

void store_report_history(struct store *s, const struct store_event *ev)
{
    if (s->watcher->history) {
        CLEANUP(blob_unref) struct blob *value = opened(s, ev->key, ev->value);
        CLEANUP(blob_unref) struct blob *prev = opened(s, ev->key, ev->prev);
        const struct store_event plain = {ev->key, value, prev, ev->revision};
        s->watcher->history(s->watcher_ctx, &plain);
    }
}

static int compare_key(const void *key, const void *item)
{
    return strcmp(key, ((const struct store_item *) item)->key);
}

const struct store_item *store_item_find(const struct store_item *items, size_t n, const char *key)
{
    return n ? bsearch(key, items, n, sizeof *items, compare_key) : NULL;
}

void store_report_snapshot(struct store *s, struct store_item *items, size_t n, uint64_t revision)
{
    bool marked = store_item_find(items, n, STORE_IMPORT_KEY);
    if (s->blocked || (marked && !s->importing)) {
        block(s);
        return;
    }
    s->available = true;
    smap_clear(&s->stale);
    for (size_t i = 0; i < n; i++) {
        struct blob *value = opened(s, items[i].key, items[i].value);
        note_form(s, items[i].key, items[i].value);
        blob_unref(items[i].value);
        items[i].value = value;
    }
    if (smap_size(&s->stale)) {
        log_warn("values are not encrypted as configured",
                 "values=%zu advice=\"write them again: tenet adm storage migrate\"",
                 smap_size(&s->stale));
    }
    s->watcher->snapshot(s->watcher_ctx, items, n, revision);
}

void store_report_resumed(struct store *s)
{
    if (!s->blocked) {
        s->available = true;
        s->watcher->resumed(s->watcher_ctx);
    }
}

void store_report_lost(struct store *s, const char *reason)
{
    s->available = false;
    if (s->watcher->lost) {
        s->watcher->lost(s->watcher_ctx, reason);
    }
}
