/* SPDX-License-Identifier: Apache-2.0 */
/* What etcd, or whoever answers on its port, sends: gRPC frames with protobuf messages.  The first byte says in
 * what steps the body comes. */
#include "base/macro.h"
#include "wire/etcd.h"
#include "wire/grpc.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(c)     \
    do {             \
        if (!(c)) {  \
            abort(); \
        }            \
    } while (0)

static void check_inside(struct etcd_bytes b, const char *p, size_t size)
{
    CHECK(b.size == 0 || (b.p >= p && b.p + b.size <= p + size));
}

static void check_kv(const struct etcd_kv *kv, const char *p, size_t size)
{
    check_inside(kv->key, p, size);
    check_inside(kv->value, p, size);
    CHECK(kv->key.size > 0 && kv->mod_revision > 0 && kv->mod_revision <= INT64_MAX);
}

static size_t count_fields(const char *p, size_t size, uint32_t number)
{
    struct pb_reader r = pb_reader_of(p, size);
    struct pb_field f;
    size_t n = 0;
    while (pb_next(&r, &f) > 0) {
        n += f.number == number;
    }
    return n;
}

static void check_range(const char *p, size_t size)
{
    struct etcd_range_response r;
    struct etcd_kv kv;
    if (etcd_range_parse(p, size, &r) < 0) {
        return;
    }
    size_t n = 0;
    for (; etcd_range_next(&r, &kv); n++) {
        check_kv(&kv, p, size);
    }
    CHECK(n == count_fields(p, size, 2));
}

static void check_watch(const char *p, size_t size)
{
    struct etcd_watch_response w;
    struct etcd_event ev;
    if (etcd_watch_parse(p, size, &w) < 0) {
        return;
    }
    check_inside(w.cancel_reason, p, size);
    size_t n = 0;
    for (; etcd_watch_next(&w, &ev); n++) {
        check_kv(&ev.kv, p, size);
        if (ev.prev.mod_revision) {
            check_kv(&ev.prev, p, size);
        }
    }
    CHECK(n == count_fields(p, size, 11));
}

/* What was read, written again, reads the same. */
static void check_rewrite(const char *p, size_t size)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    struct pb_reader r = pb_reader_of(p, size);
    struct pb_field f, g;
    while (pb_next(&r, &f) > 0) {
        if (f.type == PB_BYTES) {
            size_t mark = pb_begin(&b, f.number);
            strbuf_add(&b, f.data, f.size);
            pb_end(&b, mark);
        } else {
            pb_put_uint(&b, f.number, f.value);
        }
    }
    r = pb_reader_of(p, size);
    struct pb_reader again = pb_reader_of(strbuf_cstr(&b), b.size);
    while (pb_next(&r, &f) > 0) {
        CHECK(pb_next(&again, &g) == 1);
        CHECK(f.number == g.number && f.value == g.value && f.size == g.size);
        CHECK(f.size == 0 || memcmp(f.data, g.data, f.size) == 0);
    }
    CHECK(pb_next(&again, &g) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    size_t step = (size_t) data[0] + 1;
    struct grpc_reader reader = GRPC_READER_INIT(4096);
    int more = 0;
    for (size_t at = 1; at < size && more >= 0; at += step) {
        grpc_reader_add(&reader, data + at, MIN(step, size - at));
        const char *p;
        size_t n;
        while ((more = grpc_reader_next(&reader, &p, &n)) > 0) {
            struct etcd_txn_response t;
            check_range(p, n);
            check_watch(p, n);
            check_rewrite(p, n);
            etcd_txn_parse(p, n, &t);
            struct etcd_lease_grant_response g;
            CHECK(etcd_lease_grant_parse(p, n, &g) < 0 || (g.id && g.ttl_s));
        }
    }
    grpc_reader_done(&reader);
    char text[64];
    grpc_message_decode((const char *) data, size, text, sizeof text);
    CHECK(strlen(text) < sizeof text);
    CHECK(grpc_status_parse((const char *) data, size) <= GRPC_UNAUTHENTICATED);
    return 0;
}
