/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/etcd.h"

/* Field numbers, by message. */
enum { HEADER_CLUSTER_ID = 1, HEADER_MEMBER_ID = 2, HEADER_REVISION = 3 };
enum { KV_KEY = 1, KV_CREATE_REVISION = 2, KV_MOD_REVISION = 3, KV_VERSION = 4, KV_VALUE = 5 };
enum { RANGE_KEY = 1, RANGE_END = 2, RANGE_LIMIT = 3, RANGE_REVISION = 4, RANGE_KEYS_ONLY = 8 };
enum { RANGED_HEADER = 1, RANGED_KVS = 2, RANGED_MORE = 3 };
enum { PUT_KEY = 1, PUT_VALUE = 2, PUT_LEASE = 3 };
enum { DELETE_KEY = 1 };
enum { OP_RANGE = 1, OP_PUT = 2, OP_DELETE = 3 }; /* RequestOp and ResponseOp */
enum { COMPARE_RESULT = 1, COMPARE_TARGET = 2, COMPARE_KEY = 3, COMPARE_MOD_REVISION = 6 };
enum { COMPARE_EQUAL = 0, COMPARE_GREATER = 1, TARGET_MOD = 2 };
enum { TXN_COMPARE = 1, TXN_SUCCESS = 2, TXN_FAILURE = 3 };
enum { TXNED_HEADER = 1, TXNED_SUCCEEDED = 2, TXNED_RESPONSES = 3 };
enum { COMPACT_REVISION = 1 };
enum { GRANT_TTL = 1 };
enum { GRANTED_HEADER = 1, GRANTED_ID = 2, GRANTED_TTL = 3, GRANTED_ERROR = 4 };
enum { WATCH_CREATE = 1, WATCH_CANCEL = 2 };
enum {
    CREATE_KEY = 1,
    CREATE_END = 2,
    CREATE_START = 3,
    CREATE_PROGRESS = 4,
    CREATE_PREV_KV = 6,
    CREATE_WATCH_ID = 7,
    CREATE_FRAGMENT = 8
};
enum { CANCEL_WATCH_ID = 1 };
enum {
    WATCHED_HEADER = 1,
    WATCHED_ID = 2,
    WATCHED_CREATED = 3,
    WATCHED_CANCELED = 4,
    WATCHED_COMPACT_REVISION = 5,
    WATCHED_CANCEL_REASON = 6,
    WATCHED_FRAGMENT = 7,
    WATCHED_EVENTS = 11
};
enum { EVENT_TYPE = 1, EVENT_KV = 2, EVENT_PREV_KV = 3 };
enum { EVENT_PUT = 0, EVENT_DELETE = 1 };

/* ---- requests ---- */

static void put_bytes(struct strbuf *b, uint32_t number, struct etcd_bytes v)
{
    if (v.size) {
        pb_put_bytes(b, number, v.p, v.size);
    }
}

static void put_uint(struct strbuf *b, uint32_t number, uint64_t v)
{
    if (v) {
        pb_put_uint(b, number, v);
    }
}

void etcd_range_format(struct strbuf *b, const struct etcd_range_request *q)
{
    put_bytes(b, RANGE_KEY, q->key);
    put_bytes(b, RANGE_END, q->end);
    put_uint(b, RANGE_LIMIT, q->limit);
    put_uint(b, RANGE_REVISION, q->revision);
    put_uint(b, RANGE_KEYS_ONLY, q->keys_only);
}

static void format_compare(struct strbuf *b, unsigned result, struct etcd_bytes key,
                           uint64_t revision)
{
    size_t compare = pb_begin(b, TXN_COMPARE);
    put_uint(b, COMPARE_RESULT, result);
    put_uint(b, COMPARE_TARGET, TARGET_MOD);
    put_bytes(b, COMPARE_KEY, key);
    pb_put_uint(b, COMPARE_MOD_REVISION, revision);
    pb_end(b, compare);
}

static void format_put(struct strbuf *b, struct etcd_bytes key, struct etcd_bytes value,
                       uint64_t lease)
{
    size_t op = pb_begin(b, TXN_SUCCESS);
    size_t request = pb_begin(b, OP_PUT);
    put_bytes(b, PUT_KEY, key);
    put_bytes(b, PUT_VALUE, value);
    put_uint(b, PUT_LEASE, lease);
    pb_end(b, request);
    pb_end(b, op);
}

static void format_delete(struct strbuf *b, struct etcd_bytes key)
{
    size_t op = pb_begin(b, TXN_SUCCESS);
    size_t request = pb_begin(b, OP_DELETE);
    put_bytes(b, DELETE_KEY, key);
    pb_end(b, request);
    pb_end(b, op);
}

static void format_action(struct strbuf *b, const struct etcd_txn_request *q)
{
    if (q->action == ETCD_PUT) {
        format_put(b, q->key, q->value, q->lease);
    } else if (q->action == ETCD_DELETE) {
        format_delete(b, q->key);
    }
    for (size_t i = 0; i < q->n_claims; i++) {
        if (q->claims[i].removed) {
            format_delete(b, q->claims[i].key);
        } else {
            format_put(b, q->claims[i].key, q->claims[i].value, 0);
        }
    }
}

static void format_read(struct strbuf *b, struct etcd_bytes key)
{
    size_t op = pb_begin(b, TXN_FAILURE);
    size_t request = pb_begin(b, OP_RANGE);
    etcd_range_format(b, &(struct etcd_range_request){.key = key, .keys_only = true});
    pb_end(b, request);
    pb_end(b, op);
}

void etcd_txn_format(struct strbuf *b, const struct etcd_txn_request *q)
{
    if (q->condition == ETCD_IF_AT) {
        format_compare(b, COMPARE_EQUAL, q->key, q->revision);
    } else if (q->condition == ETCD_IF_EXISTS) {
        format_compare(b, COMPARE_GREATER, q->key, 0);
    }
    if (q->guard.size) {
        format_compare(b, COMPARE_EQUAL, q->guard, q->guard_revision);
    }
    for (size_t i = 0; i < q->n_claims; i++) {
        if (!q->claims[i].removed) {
            format_compare(b, COMPARE_EQUAL, q->claims[i].key, q->claims[i].revision);
        }
    }
    format_action(b, q);
    format_read(b, q->key);
    if (q->guard.size || q->n_claims) {
        /* The reply tells reads apart by their position. */
        format_read(b, q->guard.size ? q->guard : q->key);
    }
    for (size_t i = 0; i < q->n_claims; i++) {
        if (!q->claims[i].removed) {
            format_read(b, q->claims[i].key);
        }
    }
}

void etcd_lease_grant_format(struct strbuf *b, uint64_t ttl_s)
{
    put_uint(b, GRANT_TTL, ttl_s);
}

void etcd_compact_format(struct strbuf *b, uint64_t revision)
{
    put_uint(b, COMPACT_REVISION, revision);
}

void etcd_watch_format(struct strbuf *b, const struct etcd_watch_request *q)
{
    size_t create = pb_begin(b, WATCH_CREATE);
    put_bytes(b, CREATE_KEY, q->key);
    put_bytes(b, CREATE_END, q->end);
    put_uint(b, CREATE_START, q->start_revision);
    pb_put_uint(b, CREATE_PROGRESS, true);
    pb_put_uint(b, CREATE_PREV_KV, true);
    put_uint(b, CREATE_WATCH_ID, q->watch_id);
    pb_put_uint(b, CREATE_FRAGMENT, true);
    pb_end(b, create);
}

void etcd_watch_cancel_format(struct strbuf *b, uint64_t watch_id)
{
    size_t cancel = pb_begin(b, WATCH_CANCEL);
    put_uint(b, CANCEL_WATCH_ID, watch_id);
    pb_end(b, cancel);
}

/* ---- responses ---- */

/* Revisions and counts are int64 there, and never negative. */
static int get_uint(const struct pb_field *f, uint64_t *ret)
{
    if (f->type != PB_VARINT || f->value > INT64_MAX) {
        return -EBADMSG;
    }
    *ret = f->value;
    return 0;
}

static int get_id(const struct pb_field *f, uint64_t *ret)
{
    if (f->type != PB_VARINT) {
        return -EBADMSG;
    }
    *ret = f->value;
    return 0;
}

static int get_bool(const struct pb_field *f, bool *ret)
{
    if (f->type != PB_VARINT) {
        return -EBADMSG;
    }
    *ret = f->value != 0;
    return 0;
}

static int get_bytes(const struct pb_field *f, struct etcd_bytes *ret)
{
    if (f->type != PB_BYTES) {
        return -EBADMSG;
    }
    *ret = (struct etcd_bytes){f->data, f->size};
    return 0;
}

/* Calls 'take' for each field of a message; it returns 0 or -EBADMSG. */
static int parse_fields(struct pb_reader r, int (*take)(const struct pb_field *f, void *ret),
                        void *ret)
{
    struct pb_field f;
    int got;
    while ((got = pb_next(&r, &f)) > 0) {
        int error = take(&f, ret);
        if (error < 0) {
            return error;
        }
    }
    return got;
}

static int parse_nested(const struct pb_field *f, int (*take)(const struct pb_field *f, void *ret),
                        void *ret)
{
    return f->type == PB_BYTES ? parse_fields(pb_reader_of(f->data, f->size), take, ret) : -EBADMSG;
}

static int take_header(const struct pb_field *f, void *ret)
{
    struct etcd_header *h = ret;
    switch (f->number) {
    case HEADER_CLUSTER_ID:
        return get_id(f, &h->cluster_id);
    case HEADER_MEMBER_ID:
        return get_id(f, &h->member_id);
    case HEADER_REVISION:
        return get_uint(f, &h->revision);
    default:
        return 0;
    }
}

static int take_kv(const struct pb_field *f, void *ret)
{
    struct etcd_kv *kv = ret;
    switch (f->number) {
    case KV_KEY:
        return get_bytes(f, &kv->key);
    case KV_CREATE_REVISION:
        return get_uint(f, &kv->create_revision);
    case KV_MOD_REVISION:
        return get_uint(f, &kv->mod_revision);
    case KV_VERSION:
        return get_uint(f, &kv->version);
    case KV_VALUE:
        return get_bytes(f, &kv->value);
    default:
        return 0;
    }
}

static int parse_kv(const struct pb_field *f, struct etcd_kv *ret)
{
    *ret = (struct etcd_kv){.key.p = "", .value.p = ""};
    int r = parse_nested(f, take_kv, ret);
    /* A key is never empty. */
    return r == 0 && (!ret->key.size || !ret->mod_revision) ? -EBADMSG : r;
}

static int take_ranged(const struct pb_field *f, void *ret)
{
    struct etcd_range_response *r = ret;
    struct etcd_kv kv;
    switch (f->number) {
    case RANGED_HEADER:
        return parse_nested(f, take_header, &r->header);
    case RANGED_KVS:
        return parse_kv(f, &kv);
    case RANGED_MORE:
        return get_bool(f, &r->more);
    default:
        return 0;
    }
}

int etcd_range_parse(const void *data, size_t size, struct etcd_range_response *ret)
{
    struct etcd_range_response r = {.walk = pb_reader_of(data, size)};
    int error = parse_fields(r.walk, take_ranged, &r);
    if (error == 0) {
        *ret = r;
    }
    return error;
}

bool etcd_range_next(struct etcd_range_response *r, struct etcd_kv *ret)
{
    struct pb_field f;
    while (pb_next(&r->walk, &f) > 0) {
        if (f.number == RANGED_KVS) {
            return parse_kv(&f, ret) == 0;
        }
    }
    return false;
}

static int take_response_op(const struct pb_field *f, void *ret)
{
    struct etcd_txn_response *r = ret;
    if (f->number != OP_RANGE || f->type != PB_BYTES) {
        return f->type == PB_BYTES ? 0 : -EBADMSG;
    }
    struct etcd_range_response range;
    struct etcd_kv kv;
    int error = etcd_range_parse(f->data, f->size, &range);
    if (error == 0) {
        uint64_t *to = r->n_ranges == 0   ? &r->mod_revision
                       : r->n_ranges == 1 ? &r->guard_revision
                                          : &r->claim_revision;
        uint64_t at = etcd_range_next(&range, &kv) ? kv.mod_revision : 0;
        *to = MAX(*to, at);
        r->n_ranges++;
    }
    return error;
}

static int take_txned(const struct pb_field *f, void *ret)
{
    struct etcd_txn_response *r = ret;
    switch (f->number) {
    case TXNED_HEADER:
        return parse_nested(f, take_header, &r->header);
    case TXNED_SUCCEEDED:
        return get_bool(f, &r->succeeded);
    case TXNED_RESPONSES:
        return parse_nested(f, take_response_op, r);
    default:
        return 0;
    }
}

int etcd_txn_parse(const void *data, size_t size, struct etcd_txn_response *ret)
{
    struct etcd_txn_response r = {0};
    int error = parse_fields(pb_reader_of(data, size), take_txned, &r);
    if (error == 0) {
        *ret = r;
    }
    return error;
}

static int take_granted(const struct pb_field *f, void *ret)
{
    struct etcd_lease_grant_response *r = ret;
    switch (f->number) {
    case GRANTED_HEADER:
        return parse_nested(f, take_header, &r->header);
    case GRANTED_ID:
        return get_uint(f, &r->id);
    case GRANTED_TTL:
        return get_uint(f, &r->ttl_s);
    case GRANTED_ERROR:
        return f->type == PB_BYTES && f->size == 0 ? 0 : -EBADMSG;
    default:
        return 0;
    }
}

int etcd_lease_grant_parse(const void *data, size_t size, struct etcd_lease_grant_response *ret)
{
    struct etcd_lease_grant_response r = {0};
    int error = parse_fields(pb_reader_of(data, size), take_granted, &r);
    if (error == 0 && (!r.id || !r.ttl_s)) {
        error = -EBADMSG;
    }
    if (error == 0) {
        *ret = r;
    }
    return error;
}

static int take_event(const struct pb_field *f, void *ret)
{
    struct etcd_event *ev = ret;
    uint64_t type;
    switch (f->number) {
    case EVENT_TYPE:
        if (get_uint(f, &type) < 0 || type > EVENT_DELETE) {
            return -EBADMSG;
        }
        ev->deleted = type == EVENT_DELETE;
        return 0;
    case EVENT_KV:
        return parse_kv(f, &ev->kv);
    case EVENT_PREV_KV:
        return parse_kv(f, &ev->prev);
    default:
        return 0;
    }
}

static int parse_event(const struct pb_field *f, struct etcd_event *ret)
{
    *ret = (struct etcd_event){0};
    int r = parse_nested(f, take_event, ret);
    return r == 0 && !ret->kv.key.size ? -EBADMSG : r;
}

static int take_watched(const struct pb_field *f, void *ret)
{
    struct etcd_watch_response *r = ret;
    struct etcd_event ev;
    switch (f->number) {
    case WATCHED_HEADER:
        return parse_nested(f, take_header, &r->header);
    case WATCHED_ID:
        return get_id(f, &r->watch_id);
    case WATCHED_CREATED:
        return get_bool(f, &r->created);
    case WATCHED_CANCELED:
        return get_bool(f, &r->canceled);
    case WATCHED_COMPACT_REVISION:
        return get_uint(f, &r->compact_revision);
    case WATCHED_CANCEL_REASON:
        return get_bytes(f, &r->cancel_reason);
    case WATCHED_FRAGMENT:
        return get_bool(f, &r->fragment);
    case WATCHED_EVENTS:
        return parse_event(f, &ev);
    default:
        return 0;
    }
}

int etcd_watch_parse(const void *data, size_t size, struct etcd_watch_response *ret)
{
    struct etcd_watch_response r = {.walk = pb_reader_of(data, size), .cancel_reason.p = ""};
    int error = parse_fields(r.walk, take_watched, &r);
    if (error == 0) {
        *ret = r;
    }
    return error;
}

bool etcd_watch_next(struct etcd_watch_response *r, struct etcd_event *ret)
{
    struct pb_field f;
    while (pb_next(&r->walk, &f) > 0) {
        if (f.number == WATCHED_EVENTS) {
            return parse_event(&f, ret) == 0;
        }
    }
    return false;
}
