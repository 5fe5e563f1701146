/* SPDX-License-Identifier: Apache-2.0 */
/* The etcd backend: gives the watcher the contents below /registry/, and keeps it up to date. */
#include "base/log.h"
#include "store/etcd/etcd_store.h"

#include <stdio.h>

LOG_MODULE("store");

#define PAGE_LIMIT 1000
#define PAGE_MS 30000
#define OPENING_MS 5000
#define LOOKING_BACK_MS 10000
#define HISTORY_MAX_BYTES ((size_t) 64 << 20)
#define WATCH_ID 1

static void page_read(struct etcd_store *s);
static void watch_open(struct etcd_store *s);

/* ---- small parts ---- */

static void items_clear(struct etcd_items *items)
{
    for (size_t i = 0; i < items->n; i++) {
        blob_unref(items->v[i].value);
    }
    for (size_t i = 0; i < items->n_keys; i++) {
        free(items->keys[i]);
    }
    free(items->v);
    free(items->keys);
    *items = (struct etcd_items){0};
}

static void event_clear(struct store_event *ev)
{
    free((char *) ev->key);
    blob_unref(ev->value);
    blob_unref(ev->prev);
}

static void events_clear(struct etcd_events *events)
{
    for (size_t i = events->start; i < events->n; i++) {
        event_clear(&events->v[i]);
    }
    free(events->v);
    *events = (struct etcd_events){0};
}

static size_t event_bytes(const struct store_event *ev)
{
    return (ev->value ? ev->value->size : 0) + (ev->prev ? ev->prev->size : 0);
}

static bool key_is_ours(struct etcd_bytes key)
{
    size_t prefix = sizeof STORE_PREFIX - 1;
    return key.size > prefix && memcmp(key.p, STORE_PREFIX, prefix) == 0 &&
           !memchr(key.p, 0, key.size);
}

/* 'key' as an owned string, or NULL when it is not below our prefix. */
static char *key_take(struct etcd_bytes key)
{
    return key_is_ours(key) ? xstrndup(key.p, key.size) : NULL;
}

static struct blob *value_take(struct etcd_bytes value)
{
    return blob_new(value.p, value.size);
}

/* Whether the answer is from the known cluster; if not, drops the connection. */
static bool cluster_check(struct etcd_store *s, const struct etcd_header *h)
{
    if (!s->cluster_id) {
        s->cluster_id = h->cluster_id;
    }
    if (s->cluster_id != h->cluster_id) {
        etcd_fail(s, "belongs to another cluster (%llx, not %llx)",
                  (unsigned long long) h->cluster_id, (unsigned long long) s->cluster_id);
        return false;
    }
    return true;
}

static void range_begin(struct etcd_store *s, const struct etcd_range_request *q, rpc_done_fn *fn)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    etcd_range_format(&b, q);
    s->call = rpc_begin(s->rpc, ETCD_PATH_RANGE, &b, PAGE_MS, ETCD_MAX_MESSAGE, fn, s);
}

/* ---- snapshot ---- */

static void snapshot_begin(struct etcd_store *s)
{
    s->state = ETCD_READING;
    items_clear(&s->items);
    s->snapshot_revision = 0;
    s->page_limit = PAGE_LIMIT;
    page_read(s);
}

static void snapshot_report(struct etcd_store *s)
{
    if (s->snapshot_revision < s->revision) {
        log_error("etcd went back to an older revision; was it restored from a backup?",
                  "revision=%llu before=%llu", (unsigned long long) s->snapshot_revision,
                  (unsigned long long) s->revision);
    }
    s->revision = s->snapshot_revision;
    s->partial = false;
    s->seen = 0;
    store_report_snapshot(&s->base, s->items.v, s->items.n, s->snapshot_revision);
    items_clear(&s->items);
    s->lost_reported = s->needs_snapshot = false;
    loop_timer_disarm(s->lost);
    watch_open(s);
    etcd_writes_seen(s, s->revision);
    etcd_reads_seen(s);
}

/* Memory for the keys of a page. */
static char *keys_new(struct etcd_items *items, struct etcd_range_response page)
{
    struct etcd_kv kv;
    size_t size = 1;
    while (etcd_range_next(&page, &kv)) {
        size += kv.key.size + 1;
    }
    items->keys = grow(items->keys, &items->cap_keys, items->n_keys + 1, sizeof(*items->keys));
    return items->keys[items->n_keys++] = xmalloc(size);
}

static bool page_take(struct etcd_store *s, struct etcd_range_response *page)
{
    struct etcd_kv kv;
    char *room = keys_new(&s->items, *page);
    while (etcd_range_next(page, &kv)) {
        if (!key_is_ours(kv.key)) {
            static struct log_limit limit;
            log_limited(&limit, LOG_WARN, "etcd has a key that cannot be ours", "key=%.*s",
                        (int) MIN(kv.key.size, (size_t) 200), kv.key.p);
            continue;
        }
        struct etcd_items *items = &s->items;
        char *key = room;
        memcpy(key, kv.key.p, kv.key.size);
        key[kv.key.size] = '\0';
        room += kv.key.size + 1;
        if (items->n && strcmp(items->v[items->n - 1].key, key) >= 0) {
            return false;
        }
        items->v = grow(items->v, &items->cap, items->n + 1, sizeof *items->v);
        items->v[items->n++] = (struct store_item){key, value_take(kv.value), kv.mod_revision};
    }
    return true;
}

/* ---- history ---- */

static void history_end(struct etcd_store *s)
{
    loop_timer_disarm(s->step);
    s->call = rpc_cancel(s->call);
    for (size_t i = s->events.start; i < s->events.n; i++) {
        store_report_history(&s->base, &s->events.v[i]);
        event_clear(&s->events.v[i]);
    }
    s->events.start = s->events.n;
    events_clear(&s->events);
    snapshot_report(s);
}

static void history_drop_oldest(struct etcd_events *events)
{
    struct store_event *ev = &events->v[events->start++];
    events->bytes -= event_bytes(ev);
    event_clear(ev);
}

/* The value written to 'key'; shared with the snapshot, if it is the same. */
static struct blob *history_value(const struct etcd_store *s, const char *key,
                                  const struct etcd_kv *kv)
{
    const struct store_item *item = store_item_find(s->items.v, s->items.n, key);
    return item && item->revision == kv->mod_revision ? blob_ref(item->value)
                                                      : value_take(kv->value);
}

static void history_add(struct etcd_store *s, const struct etcd_event *ev)
{
    if (ev->kv.mod_revision > s->snapshot_revision) {
        return;
    }
    struct etcd_events *events = &s->events;
    bool has_prev = ev->prev.mod_revision != 0;
    if (!has_prev && (ev->deleted || ev->kv.version != 1)) {
        /* The replaced value is compacted: the history begins after it. */
        events_clear(events);
        return;
    }
    char *key = key_take(ev->kv.key);
    if (!key) {
        return;
    }
    struct store_event *v = events->v =
        grow(events->v, &events->cap, events->n + 1, sizeof *events->v);
    v[events->n] = (struct store_event){
        .key = key,
        .value = ev->deleted ? NULL : history_value(s, key, &ev->kv),
        .prev = has_prev ? value_take(ev->prev.value) : NULL,
        .revision = ev->kv.mod_revision,
    };
    events->bytes += event_bytes(&v[events->n++]);
    while (events->n - events->start > s->history || events->bytes > HISTORY_MAX_BYTES) {
        history_drop_oldest(events);
    }
}

static void history_open(struct etcd_store *s);

static void on_history(void *ctx, const char *p, size_t size)
{
    struct etcd_store *s = ctx;
    struct etcd_watch_response w;
    if (etcd_watch_parse(p, size, &w) < 0) {
        etcd_fail(s, "a watch response is malformed");
        return;
    }
    if (w.canceled) {
        s->call = rpc_cancel(s->call);
        events_clear(&s->events);
        bool again = w.compact_revision >= s->history_start;
        s->history_start = w.compact_revision + 1;
        if (again && s->history_start <= s->snapshot_revision) {
            history_open(s);
        } else {
            history_end(s);
        }
        return;
    }
    struct etcd_event ev;
    while (etcd_watch_next(&w, &ev)) {
        history_add(s, &ev);
        s->history_seen = ev.kv.mod_revision;
    }
    if (!w.fragment && s->history_seen >= s->snapshot_revision) {
        history_end(s);
    }
}

static void on_history_ended(void *ctx, const struct rpc_result *r)
{
    struct etcd_store *s = ctx;
    s->call = NULL;
    etcd_fail(s, "the watch ended: %s: %s", grpc_status_name(r->status), r->text);
}

/* Watches the keys of all clients, as then the newest revision certainly appears and marks the
 * end. */
static void history_open(struct etcd_store *s)
{
    static const struct rpc_stream_ops ops = {on_history, on_history_ended};
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    etcd_watch_format(&b, &(struct etcd_watch_request){.key = ETCD_ALL_KEYS,
                                                       .end = ETCD_ALL_KEYS,
                                                       .start_revision = s->history_start,
                                                       .watch_id = WATCH_ID});
    s->call = rpc_stream(s->rpc, ETCD_PATH_WATCH, &b, ETCD_MAX_MESSAGE, &ops, s);
}

static void history_begin(struct etcd_store *s)
{
    uint64_t revision = s->snapshot_revision;
    /* A new etcd is at revision 1, without an event. */
    bool wanted = s->base.watcher->history && !s->revision && revision > 1;
    if (!wanted) {
        snapshot_report(s);
        return;
    }
    s->state = ETCD_LOOKING_BACK;
    s->history_start = revision > s->history ? revision - s->history + 1 : 1;
    s->history_seen = 0;
    loop_timer_arm(s->step, LOOKING_BACK_MS);
    history_open(s);
}

/* ---- pages ---- */

static void on_page(void *ctx, const struct rpc_result *r)
{
    struct etcd_store *s = ctx;
    s->call = NULL;
    if (r->too_large && s->page_limit > 1) {
        s->page_limit = MAX(s->page_limit / 4, (uint64_t) 1);
        page_read(s);
        return;
    }
    if (r->status == GRPC_OUT_OF_RANGE && s->snapshot_revision) {
        snapshot_begin(s); /* The revision was compacted while its pages were read. */
        return;
    }
    if (r->status != GRPC_OK) {
        etcd_fail(s, "read: %s: %s", grpc_status_name(r->status), r->text);
        return;
    }
    struct etcd_range_response page;
    if (etcd_range_parse(r->message, r->size, &page) < 0 || !page.header.revision) {
        etcd_fail(s, "a range response is malformed");
        return;
    }
    if (!cluster_check(s, &page.header)) {
        return;
    }
    if (!s->snapshot_revision) {
        s->snapshot_revision = page.header.revision;
    }
    size_t before = s->items.n;
    if (!page_take(s, &page) || (page.more && s->items.n == before)) {
        etcd_fail(s, "a range response is not in key order");
        return;
    }
    if (page.more) {
        page_read(s);
    } else {
        history_begin(s);
    }
}

/* Reads from after the last known key. */
static void page_read(struct etcd_store *s)
{
    struct etcd_bytes key = ETCD_KEY;
    if (s->items.n) {
        const char *last = s->items.v[s->items.n - 1].key;
        /* With its NUL: the next possible key. */
        key = (struct etcd_bytes){last, strlen(last) + 1};
    }
    range_begin(s,
                &(struct etcd_range_request){.key = key,
                                             .end = ETCD_KEY_END,
                                             .limit = s->page_limit,
                                             .revision = s->snapshot_revision},
                on_page);
}

/* ---- resuming ---- */

/* The read has asked the cluster's majority: this member is up to date with it. */
static void on_checked(void *ctx, const struct rpc_result *r)
{
    struct etcd_store *s = ctx;
    s->call = NULL;
    struct etcd_range_response page;
    if (r->status != GRPC_OK) {
        etcd_fail(s, "read: %s: %s", grpc_status_name(r->status), r->text);
    } else if (etcd_range_parse(r->message, r->size, &page) < 0) {
        etcd_fail(s, "a range response is malformed");
    } else if (!cluster_check(s, &page.header)) {
        return;
    } else if (page.header.revision < s->revision) {
        s->needs_snapshot = true;
        etcd_lost(s, "etcd went back to an older revision");
        snapshot_begin(s);
    } else {
        watch_open(s);
    }
}

void etcd_sync_connected(struct etcd_store *s)
{
    if (s->needs_snapshot) {
        snapshot_begin(s);
        return;
    }
    s->state = ETCD_CHECKING;
    range_begin(s,
                &(struct etcd_range_request){
                    .key = ETCD_KEY, .end = ETCD_KEY_END, .limit = 1, .keys_only = true},
                on_checked);
}

void etcd_sync_restart(struct etcd_store *s)
{
    if (s->needs_snapshot && (s->state == ETCD_CHECKING || s->state == ETCD_OPENING)) {
        s->call = rpc_cancel(s->call);
        loop_timer_disarm(s->step);
        snapshot_begin(s);
    }
}

/* ---- watch ---- */

static void event_report(struct etcd_store *s, const struct etcd_event *ev)
{
    uint64_t revision = ev->kv.mod_revision;
    if (revision == s->revision && s->skip) {
        s->skip--;
        return;
    }
    if (revision < s->revision) {
        return; /* Was reported. */
    }
    s->seen = revision == s->revision ? s->seen + 1 : 1;
    s->revision = revision;
    s->skip = 0;
    CLEANUP_FREE char *key = key_take(ev->kv.key);
    if (key) {
        CLEANUP(blob_unref) struct blob *value = ev->deleted ? NULL : value_take(ev->kv.value);
        CLEANUP(blob_unref)
        struct blob *prev = ev->prev.mod_revision ? value_take(ev->prev.value) : NULL;
        store_report_event(
            &s->base,
            &(struct store_event){.key = key, .value = value, .prev = prev, .revision = revision});
    }
    /* More events of this revision may follow. */
    etcd_writes_seen(s, revision - 1);
}

static void watch_canceled(struct etcd_store *s, const struct etcd_watch_response *w)
{
    if (!w->compact_revision) {
        etcd_fail(s, "the watch was cancelled: %.*s",
                  (int) MIN(w->cancel_reason.size, (size_t) 150), w->cancel_reason.p);
        return;
    }
    char reason[128];
    snprintf(reason, sizeof reason, "etcd compacted its history up to %llu, past %llu",
             (unsigned long long) w->compact_revision, (unsigned long long) s->revision);
    s->call = rpc_cancel(s->call);
    loop_timer_disarm(s->step);
    s->needs_snapshot = true;
    etcd_lost(s, reason);
    snapshot_begin(s);
}

static void on_watch(void *ctx, const char *p, size_t size)
{
    struct etcd_store *s = ctx;
    struct etcd_watch_response w;
    if (etcd_watch_parse(p, size, &w) < 0) {
        etcd_fail(s, "a watch response is malformed");
        return;
    }
    if (w.canceled) {
        watch_canceled(s, &w);
        return;
    }
    if (s->state == ETCD_OPENING && w.created) {
        s->state = ETCD_WATCHING;
        loop_timer_disarm(s->step);
        etcd_recovered(s);
    }
    struct etcd_event ev;
    while (etcd_watch_next(&w, &ev)) {
        s->partial = true; /* Until the next answer shows that this one completed the revision. */
        event_report(s, &ev);
    }
    s->partial = w.fragment && s->partial;
    if (!s->partial) {
        etcd_writes_seen(s, s->revision);
    }
    etcd_reads_seen(s);
    etcd_compact(s);
    etcd_reads_send(s);
    etcd_writes_send(s);
}

static void on_watch_ended(void *ctx, const struct rpc_result *r)
{
    struct etcd_store *s = ctx;
    s->call = NULL;
    etcd_fail(s, "the watch ended: %s: %s", grpc_status_name(r->status), r->text);
}

/* Watches the keys of all clients, so that each revision appears, and the revision of a read is
 * certainly seen. */
static void watch_open(struct etcd_store *s)
{
    static const struct rpc_stream_ops ops = {on_watch, on_watch_ended};
    s->state = ETCD_OPENING;
    s->skip = s->partial ? s->seen : 0;
    log_debug("etcd watch", "after=%llu skip=%u", (unsigned long long) s->revision, s->skip);
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    etcd_watch_format(
        &b, &(struct etcd_watch_request){.key = ETCD_ALL_KEYS,
                                         .end = ETCD_ALL_KEYS,
                                         .start_revision = s->revision + (s->partial ? 0 : 1),
                                         .watch_id = WATCH_ID});
    s->call = rpc_stream(s->rpc, ETCD_PATH_WATCH, &b, ETCD_MAX_MESSAGE, &ops, s);
    loop_timer_arm(s->step, OPENING_MS);
}

static void on_step(void *ctx)
{
    struct etcd_store *s = ctx;
    if (s->state == ETCD_LOOKING_BACK) {
        log_warn("etcd does not show its history in time", "revision=%llu",
                 (unsigned long long) s->snapshot_revision);
        events_clear(&s->events);
        history_end(s);
    } else {
        etcd_fail(s, "no answer to the watch request");
    }
}

/* ---- begin and end ---- */

void etcd_sync_init(struct etcd_store *s)
{
    s->step = loop_timer_new(s->base.loop, on_step, s);
    s->needs_snapshot = true;
}

void etcd_sync_disconnected(struct etcd_store *s)
{
    s->call = s->compaction = NULL;
    etcd_lease_disconnected(s);
    loop_timer_disarm(s->step);
    items_clear(&s->items);
    events_clear(&s->events);
}

void etcd_sync_done(struct etcd_store *s)
{
    s->step = loop_timer_free(s->step);
}
