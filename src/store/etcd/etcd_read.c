/* SPDX-License-Identifier: Apache-2.0 */
/* The etcd backend: finds the revision that the watch must reach so that the watcher has the
 * newest state.
 *
 * A linearizable read of an empty range returns the cluster's revision; all calls made before it
 * was sent share it, and wait until the watch has reached that revision. So a caller waits for
 * the round trip in progress and at most one more, whatever the number of callers. */
#include "store/etcd/etcd_store.h"

static void on_revision(void *ctx, const struct rpc_result *r)
{
    struct etcd_store *s = ctx;
    struct etcd_range_response range;
    s->read_call = NULL;
    if (r->status != GRPC_OK) {
        store_writes_fail(&s->reads_asked, -EAGAIN);
    } else if (etcd_range_parse(r->message, r->size, &range) < 0 || !range.header.revision) {
        store_writes_fail(&s->reads_asked, -EAGAIN);
        etcd_fail(s, "a range response is malformed");
        return;
    } else {
        for (struct list *node; (node = list_pop_front(&s->reads_asked));) {
            CONTAINER_OF(node, struct store_write, node)->revision = range.header.revision;
            list_push_back(&s->reads_waiting, node);
        }
        etcd_reads_seen(s);
    }
    etcd_reads_send(s);
}

void etcd_reads_send(struct etcd_store *s)
{
    if (s->state != ETCD_WATCHING || s->read_call || list_is_empty(&s->reads_queued)) {
        return;
    }
    store_list_take(&s->reads_asked, &s->reads_queued);
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    etcd_range_format(&b, &(struct etcd_range_request){.key = ETCD_KEY, .keys_only = true});
    s->read_call =
        rpc_begin(s->rpc, ETCD_PATH_RANGE, &b, ETCD_READ_MS, ETCD_MAX_MESSAGE, on_revision, s);
}

void etcd_reads_add(struct etcd_store *s, struct store_write *w)
{
    list_push_back(&s->reads_queued, &w->node);
    etcd_reads_send(s);
}

/* Revisions of answers never go back, so the list is in their order. */
void etcd_reads_seen(struct etcd_store *s)
{
    struct store_write *w;
    LIST_FOREACH (w, struct store_write, node, &s->reads_waiting) {
        if (w->revision > s->revision || (w->revision == s->revision && s->partial)) {
            return;
        }
        store_write_finish(w, 0, s->revision);
    }
}

void etcd_reads_disconnected(struct etcd_store *s)
{
    s->read_call = NULL;
    while (!list_is_empty(&s->reads_asked)) {
        struct list *last = s->reads_asked.prev;
        list_remove(last);
        list_insert_before(s->reads_queued.next, last);
    }
}

void etcd_reads_fail(struct etcd_store *s, int error)
{
    store_writes_fail(&s->reads_waiting, error);
    store_writes_fail(&s->reads_asked, error);
    store_writes_fail(&s->reads_queued, error);
}

void etcd_reads_init(struct etcd_store *s)
{
    list_init(&s->reads_queued);
    list_init(&s->reads_asked);
    list_init(&s->reads_waiting);
}
