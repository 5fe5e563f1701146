/* SPDX-License-Identifier: Apache-2.0 */
/* The etcd backend: conditional writes, each one transaction.
 *
 * At most one write per key is in flight, as calls on one connection may overtake each other. A
 * result waits until the watch has reached its revision: that of the change, or the one at which
 * the key was found. */
#include "store/etcd/etcd_store.h"

#define MAX_INFLIGHT 128

struct pending {
    struct hmap_node node;
    struct etcd_store *s;
    struct store_write *w;
    struct list followers; /* Writes to the same key. */
};

static struct pending *pending_find(const struct etcd_store *s, const char *key)
{
    struct pending *p;
    HMAP_FOREACH_WITH_HASH (p, struct pending, node, hash_string(key), &s->inflight) {
        if (streq(p->w->key, key)) {
            return p;
        }
    }
    return NULL;
}

/* Frees 'p': its followers move to the front of the queue. */
static struct store_write *pending_end(struct pending *p)
{
    struct store_write *w = p->w;
    hmap_remove(&p->s->inflight, &p->node);
    struct list *first = p->s->queue.next;
    for (struct list *node; (node = list_pop_front(&p->followers));) {
        list_insert_before(first, node);
    }
    free(p);
    return w;
}

static void answered_add(struct etcd_store *s, struct store_write *w)
{
    if (w->revision <= s->revision) {
        store_write_finish(w, w->error, w->error ? 0 : w->revision);
        return;
    }
    struct list *before = &s->answered;
    while (before->prev != &s->answered &&
           CONTAINER_OF(before->prev, struct store_write, node)->revision > w->revision) {
        before = before->prev;
    }
    list_insert_before(before, &w->node);
}

void etcd_writes_seen(struct etcd_store *s, uint64_t revision)
{
    struct store_write *w;
    LIST_FOREACH (w, struct store_write, node, &s->answered) {
        if (w->revision > revision) {
            return;
        }
        store_write_finish(w, w->error, w->error ? 0 : w->revision);
    }
}

static int error_of(const struct rpc_result *r)
{
    switch (r->status) {
    case GRPC_RESOURCE_EXHAUSTED:
        return strstr(r->text, "space") ? -ENOSPC : strstr(r->text, "larger") ? -E2BIG : -EAGAIN;
    case GRPC_INVALID_ARGUMENT:
        return strstr(r->text, "too large") ? -E2BIG : -EINVAL;
    case GRPC_PERMISSION_DENIED:
    case GRPC_UNAUTHENTICATED:
        return -EACCES;
    case GRPC_FAILED_PRECONDITION:
    case GRPC_UNIMPLEMENTED:
    case GRPC_DATA_LOSS:
        return -EIO;
    default:
        return -EAGAIN; /* The change may have been made. */
    }
}

/* Whether the write replaces other keys, so that a claim that failed is a conflict. */
static bool replaces(const struct store_write *w)
{
    for (size_t i = 0; i < w->n_claims; i++) {
        if (w->claims[i].value && w->claims[i].expect != STORE_ABSENT) {
            return true;
        }
    }
    return false;
}

static void on_answer(void *ctx, const struct rpc_result *r)
{
    struct pending *p = ctx;
    struct etcd_store *s = p->s;
    struct store_write *w = pending_end(p);
    struct etcd_txn_response t;
    if (r->status == GRPC_NOT_FOUND && w->ttl_s) {
        /* Nothing was changed: the lease has been revoked. */
        etcd_lease_is_gone(s);
        list_push_front(&s->queue, &w->node);
    } else if (r->status != GRPC_OK) {
        store_write_finish(w, error_of(r), 0);
    } else if (etcd_txn_parse(r->message, r->size, &t) < 0 || !t.header.revision) {
        store_write_finish(w, -EAGAIN, 0);
        etcd_fail(s, "a transaction's response is malformed");
        return;
    } else {
        /* A deletion of an absent key is a transaction that does nothing. */
        bool nothing = !w->value && w->expect == STORE_ABSENT;
        bool done = t.succeeded && !nothing;
        int refusal = store_check(w, t.succeeded ? 0 : t.mod_revision);
        w->error = done ? 0 : refusal ? refusal : -ESTALE;
        w->revision = done ? t.header.revision : t.mod_revision;
        if (w->guard && !t.succeeded && t.guard_revision != w->guard_at) {
            w->error = -EPERM;
            w->revision = t.guard_revision;
        } else if (!t.succeeded && !refusal && t.claim_revision) {
            w->error = replaces(w) ? -ESTALE : -EADDRINUSE;
            w->revision = MAX(w->revision, t.claim_revision);
        }
        answered_add(s, w);
    }
    etcd_writes_send(s);
}

static void send_one(struct etcd_store *s, struct store_write *w)
{
    struct pending *p = NEW(struct pending);
    p->s = s;
    p->w = w;
    list_init(&p->followers);
    hmap_insert(&s->inflight, &p->node, hash_string(w->key));
    struct etcd_txn_request q = {
        .key = {w->key, strlen(w->key)},
        .condition = ETCD_IF_AT,
        .revision = w->expect,
        .action = w->value                    ? ETCD_PUT
                  : w->expect == STORE_ABSENT ? ETCD_NOTHING
                                              : ETCD_DELETE,
    };
    if (w->value) {
        q.value = (struct etcd_bytes){w->value->data, w->value->size};
    }
    if (w->expect == STORE_ANY) {
        q.condition = w->value ? ETCD_IF_TRUE : ETCD_IF_EXISTS;
    }
    if (w->value && w->ttl_s) {
        q.lease = etcd_lease(s, w->ttl_s);
    }
    if (w->guard) {
        q.guard = (struct etcd_bytes){w->guard, strlen(w->guard)};
        q.guard_revision = w->guard_at;
    }
    CLEANUP_FREE struct etcd_claim *claims =
        w->n_claims ? xcalloc(w->n_claims, sizeof *claims) : NULL;
    for (size_t i = 0; i < w->n_claims; i++) {
        const struct store_write_claim *claim = &w->claims[i];
        claims[i].key = (struct etcd_bytes){claim->key, strlen(claim->key)};
        claims[i].removed = !claim->value;
        claims[i].revision = claim->expect;
        if (claim->value) {
            claims[i].value = (struct etcd_bytes){claim->value->data, claim->value->size};
        }
    }
    q.claims = claims;
    q.n_claims = q.action == ETCD_NOTHING ? 0 : w->n_claims;
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    etcd_txn_format(&b, &q);
    rpc_begin(s->rpc, ETCD_PATH_TXN, &b, ETCD_CALL_MS, ETCD_MAX_MESSAGE, on_answer, p);
}

void etcd_writes_send(struct etcd_store *s)
{
    while (s->state == ETCD_WATCHING && s->inflight.n < MAX_INFLIGHT) {
        struct list *node = list_pop_front(&s->queue);
        if (!node) {
            return;
        }
        struct store_write *w = CONTAINER_OF(node, struct store_write, node);
        struct pending *p = pending_find(s, w->key);
        if (p) {
            list_push_back(&p->followers, node);
        } else {
            send_one(s, w);
        }
    }
}

void etcd_writes_add(struct etcd_store *s, struct store_write *w)
{
    list_push_back(&s->queue, &w->node);
    etcd_writes_send(s);
}

void etcd_writes_disconnected(struct etcd_store *s)
{
    struct list unknown = LIST_INIT(&unknown);
    struct pending *p;
    HMAP_FOREACH (p, struct pending, node, &s->inflight) {
        struct store_write *w = pending_end(p);
        list_push_back(&unknown, &w->node);
    }
    store_writes_fail(&unknown, -EAGAIN);
}

void etcd_writes_fail(struct etcd_store *s, int error)
{
    store_writes_fail(&s->answered, error);
    store_writes_fail(&s->queue, error);
}

void etcd_writes_init(struct etcd_store *s)
{
    list_init(&s->queue);
    list_init(&s->answered);
    hmap_init(&s->inflight);
}

void etcd_writes_done(struct etcd_store *s)
{
    etcd_writes_seen(s, UINT64_MAX);
    store_writes_fail(&s->queue, -EAGAIN);
    hmap_done(&s->inflight);
}
