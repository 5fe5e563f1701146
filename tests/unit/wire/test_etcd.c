/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "wire/etcd.h"

static void assert_bytes(const struct strbuf *b, const char *expected, size_t size)
{
    assert_int_equal(b->size, size);
    assert_memory_equal(b->data, expected, size);
}
#define ASSERT_BYTES(b, literal) assert_bytes(b, literal, sizeof(literal) - 1)

static void requests_are_as_the_proto_files_say(void **state)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    etcd_range_format(
        &b, &(struct etcd_range_request){
                .key = {"a", 1}, .end = {"b", 1}, .limit = 500, .revision = 7, .keys_only = true});
    ASSERT_BYTES(&b, "\x0a\x01"
                     "a\x12\x01"
                     "b\x18\xf4\x03\x20\x07\x40\x01");
    strbuf_reset(&b);
    /* If mod(k) == 5, put k=v, else range k. */
    etcd_txn_format(&b, &(struct etcd_txn_request){.key = {"k", 1},
                                                   .value = {"v", 1},
                                                   .condition = ETCD_IF_AT,
                                                   .revision = 5,
                                                   .action = ETCD_PUT});
    ASSERT_BYTES(&b, "\x0a\x07\x10\x02\x1a\x01k\x30\x05"
                     "\x12\x08\x12\x06\x0a\x01k\x12\x01v"
                     "\x1a\x07\x0a\x05\x0a\x01k\x40\x01");
    strbuf_reset(&b);
    /* If mod(k) > 0, delete k. */
    etcd_txn_format(&b, &(struct etcd_txn_request){
                            .key = {"k", 1}, .condition = ETCD_IF_EXISTS, .action = ETCD_DELETE});
    ASSERT_BYTES(&b, "\x0a\x09\x08\x01\x10\x02\x1a\x01k\x30\x00"
                     "\x12\x05\x1a\x03\x0a\x01k"
                     "\x1a\x07\x0a\x05\x0a\x01k\x40\x01");
    strbuf_reset(&b);
    etcd_txn_format(
        &b, &(struct etcd_txn_request){
                .key = {"k", 1}, .value = {"", 0}, .condition = ETCD_IF_TRUE, .action = ETCD_PUT});
    ASSERT_BYTES(&b, "\x12\x05\x12\x03\x0a\x01k"
                     "\x1a\x07\x0a\x05\x0a\x01k\x40\x01");
    strbuf_reset(&b);
    /* If mod(k) == 5 and mod(c) == 0: put k=v, put c=o, delete d; else range k, k and c. */
    static const struct etcd_claim claims[] = {{{"c", 1}, {"o", 1}, false},
                                               {{"d", 1}, {NULL, 0}, true}};
    etcd_txn_format(&b, &(struct etcd_txn_request){.key = {"k", 1},
                                                   .value = {"v", 1},
                                                   .condition = ETCD_IF_AT,
                                                   .revision = 5,
                                                   .action = ETCD_PUT,
                                                   .claims = claims,
                                                   .n_claims = 2});
    ASSERT_BYTES(&b, "\x0a\x07\x10\x02\x1a\x01k\x30\x05"
                     "\x0a\x07\x10\x02\x1a\x01\x63\x30\x00"
                     "\x12\x08\x12\x06\x0a\x01k\x12\x01v"
                     "\x12\x08\x12\x06\x0a\x01\x63\x12\x01o"
                     "\x12\x05\x1a\x03\x0a\x01\x64"
                     "\x1a\x07\x0a\x05\x0a\x01k\x40\x01"
                     "\x1a\x07\x0a\x05\x0a\x01k\x40\x01"
                     "\x1a\x07\x0a\x05\x0a\x01\x63\x40\x01");
    strbuf_reset(&b);
    /* If mod(k) == 5 and mod(c) == 7: put k=v, put c=o; else range k, k and c. */
    static const struct etcd_claim replaced = {{"c", 1}, {"o", 1}, false, 7};
    etcd_txn_format(&b, &(struct etcd_txn_request){.key = {"k", 1},
                                                   .value = {"v", 1},
                                                   .condition = ETCD_IF_AT,
                                                   .revision = 5,
                                                   .action = ETCD_PUT,
                                                   .claims = &replaced,
                                                   .n_claims = 1});
    ASSERT_BYTES(&b, "\x0a\x07\x10\x02\x1a\x01k\x30\x05"
                     "\x0a\x07\x10\x02\x1a\x01\x63\x30\x07"
                     "\x12\x08\x12\x06\x0a\x01k\x12\x01v"
                     "\x12\x08\x12\x06\x0a\x01\x63\x12\x01o"
                     "\x1a\x07\x0a\x05\x0a\x01k\x40\x01"
                     "\x1a\x07\x0a\x05\x0a\x01k\x40\x01"
                     "\x1a\x07\x0a\x05\x0a\x01\x63\x40\x01");
    strbuf_reset(&b);
    /* Under lease 300. */
    etcd_txn_format(&b, &(struct etcd_txn_request){.key = {"k", 1},
                                                   .value = {"v", 1},
                                                   .condition = ETCD_IF_TRUE,
                                                   .action = ETCD_PUT,
                                                   .lease = 300});
    ASSERT_BYTES(&b, "\x12\x0b\x12\x09\x0a\x01k\x12\x01v\x18\xac\x02"
                     "\x1a\x07\x0a\x05\x0a\x01k\x40\x01");
    strbuf_reset(&b);
    etcd_lease_grant_format(&b, 3961);
    ASSERT_BYTES(&b, "\x08\xf9\x1e");
    strbuf_reset(&b);
    etcd_compact_format(&b, 300);
    ASSERT_BYTES(&b, "\x08\xac\x02");
    strbuf_reset(&b);
    etcd_watch_format(&b,
                      &(struct etcd_watch_request){
                          .key = {"a", 1}, .end = {"b", 1}, .start_revision = 9, .watch_id = 3});
    ASSERT_BYTES(&b, "\x0a\x10\x0a\x01"
                     "a\x12\x01"
                     "b\x18\x09\x20\x01\x30\x01\x38\x03\x40\x01");
}

static void granted_leases_are_read(void **state)
{
    (void) state;
    struct etcd_lease_grant_response r = {.id = 9};
    static const char good[] = "\x0a\x02\x18\x07\x10\xac\x02\x18\x05";
    assert_int_equal(etcd_lease_grant_parse(good, sizeof good - 1, &r), 0);
    assert_int_equal(r.header.revision, 7);
    assert_int_equal(r.id, 300);
    assert_int_equal(r.ttl_s, 5);
    /* Without an id; with an error; cut off. */
    assert_int_equal(etcd_lease_grant_parse("\x18\x05", 2, &r), -EBADMSG);
    assert_int_equal(etcd_lease_grant_parse("\x10\x01\x18\x05\x22\x01x", 7, &r), -EBADMSG);
    assert_int_equal(etcd_lease_grant_parse(good, sizeof good - 3, &r), -EBADMSG);
    assert_int_equal(r.id, 300);
}

/* A KeyValue as field 'number'. */
static void put_kv(struct strbuf *b, uint32_t number, const char *key, const char *value,
                   uint64_t mod)
{
    size_t kv = pb_begin(b, number);
    pb_put_bytes(b, 1, key, strlen(key));
    pb_put_uint(b, 2, 2);
    pb_put_uint(b, 3, mod);
    pb_put_uint(b, 4, 1);
    if (value) {
        pb_put_bytes(b, 5, value, strlen(value));
    }
    pb_put_uint(b, 6, 0); /* lease */
    pb_end(b, kv);
}

static void put_header(struct strbuf *b, uint64_t revision)
{
    size_t h = pb_begin(b, 1);
    pb_put_uint(b, 1, 0xcdf818194e3a8c32u);
    pb_put_uint(b, 2, 0x8e9e05c52164694du);
    pb_put_uint(b, 3, revision);
    pb_put_uint(b, 4, 2);
    pb_end(b, h);
}

static void range_response_is_read(void **state)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    put_header(&b, 40);
    put_kv(&b, 2, "/a", "one", 30);
    put_kv(&b, 2, "/b", NULL, 31);
    pb_put_uint(&b, 3, 1);
    pb_put_uint(&b, 4, 2);
    pb_put_bytes(&b, 99, "new", 3); /* Of a later version: ignored. */
    struct etcd_range_response r;
    struct etcd_kv kv;
    assert_int_equal(etcd_range_parse(b.data, b.size, &r), 0);
    assert_int_equal(r.header.revision, 40);
    assert_true(r.header.cluster_id == 0xcdf818194e3a8c32u);
    assert_true(r.more);
    assert_true(etcd_range_next(&r, &kv));
    assert_int_equal(kv.key.size, 2);
    assert_memory_equal(kv.key.p, "/a", 2);
    assert_memory_equal(kv.value.p, "one", 3);
    assert_int_equal(kv.mod_revision, 30);
    assert_int_equal(kv.create_revision, 2);
    assert_true(etcd_range_next(&r, &kv));
    assert_int_equal(kv.value.size, 0);
    assert_non_null(kv.value.p);
    assert_false(etcd_range_next(&r, &kv));
}

static void txn_response_is_read(void **state)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    struct etcd_txn_response t;
    put_header(&b, 41);
    pb_put_uint(&b, 2, 1);
    size_t op = pb_begin(&b, 3);
    size_t put = pb_begin(&b, 2);
    pb_end(&b, put);
    pb_end(&b, op);
    assert_int_equal(etcd_txn_parse(b.data, b.size, &t), 0);
    assert_true(t.succeeded);
    assert_int_equal(t.header.revision, 41);

    strbuf_reset(&b);
    put_header(&b, 42);
    op = pb_begin(&b, 3);
    size_t range = pb_begin(&b, 1);
    put_header(&b, 42);
    put_kv(&b, 2, "/a", NULL, 17);
    pb_end(&b, range);
    pb_end(&b, op);
    assert_int_equal(etcd_txn_parse(b.data, b.size, &t), 0);
    assert_false(t.succeeded);
    assert_int_equal(t.mod_revision, 17);

    strbuf_reset(&b);
    put_header(&b, 42);
    op = pb_begin(&b, 3);
    range = pb_begin(&b, 1);
    pb_end(&b, range);
    pb_end(&b, op);
    assert_int_equal(etcd_txn_parse(b.data, b.size, &t), 0);
    assert_int_equal(t.mod_revision, 0);
}

static void watch_response_is_read(void **state)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    put_header(&b, 50);
    pb_put_uint(&b, 2, 1);
    pb_put_uint(&b, 7, 1);
    size_t ev = pb_begin(&b, 11);
    put_kv(&b, 2, "/a", "new", 49);
    put_kv(&b, 3, "/a", "old", 40);
    pb_end(&b, ev);
    ev = pb_begin(&b, 11);
    pb_put_uint(&b, 1, 1);
    put_kv(&b, 2, "/b", NULL, 50);
    pb_end(&b, ev);
    struct etcd_watch_response w;
    struct etcd_event e;
    assert_int_equal(etcd_watch_parse(b.data, b.size, &w), 0);
    assert_true(w.fragment && !w.created && !w.canceled);
    assert_int_equal(w.watch_id, 1);
    assert_true(etcd_watch_next(&w, &e));
    assert_false(e.deleted);
    assert_int_equal(e.kv.mod_revision, 49);
    assert_int_equal(e.prev.mod_revision, 40);
    assert_memory_equal(e.prev.value.p, "old", 3);
    assert_true(etcd_watch_next(&w, &e));
    assert_true(e.deleted);
    assert_int_equal(e.prev.mod_revision, 0);
    assert_false(etcd_watch_next(&w, &e));

    strbuf_reset(&b);
    put_header(&b, 60);
    pb_put_uint(&b, 2, UINT64_MAX); /* -1 */
    pb_put_uint(&b, 3, 1);
    pb_put_uint(&b, 4, 1);
    pb_put_uint(&b, 5, 55);
    pb_put_bytes(&b, 6, "compacted", 9);
    assert_int_equal(etcd_watch_parse(b.data, b.size, &w), 0);
    assert_true(w.created && w.canceled);
    assert_int_equal(w.compact_revision, 55);
    assert_memory_equal(w.cancel_reason.p, "compacted", 9);
}

static void malformed_responses_are_refused(void **state)
{
    struct etcd_range_response r = {.more = true};
    struct etcd_txn_response t;
    struct etcd_watch_response w;
#define BAD_RANGE(s) assert_int_equal(etcd_range_parse(s, sizeof(s) - 1, &r), -EBADMSG)
#define BAD_TXN(s) assert_int_equal(etcd_txn_parse(s, sizeof(s) - 1, &t), -EBADMSG)
#define BAD_WATCH(s) assert_int_equal(etcd_watch_parse(s, sizeof(s) - 1, &w), -EBADMSG)
    BAD_RANGE("\x08\x01");                  /* header is no message */
    BAD_RANGE("\x0a\x02\x18");              /* cut off */
    BAD_RANGE("\x0a\x03\x1a\x01x");         /* revision is no number */
    BAD_RANGE("\x1a\x00");                  /* 'more' is no number */
    BAD_RANGE("\x12\x00");                  /* kv without a key */
    BAD_RANGE("\x12\x03\x0a\x01k");         /* kv without a mod revision */
    BAD_RANGE("\x12\x05\x0a\x01k\x18\x00"); /* mod revision 0 */
    BAD_RANGE("\x12\x0e\x0a\x01k\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"); /* negative */
    assert_true(r.more);                                                        /* Untouched. */
    BAD_TXN("\x12\x00");         /* 'succeeded' is no number */
    BAD_TXN("\x1a\x02\x08\x01"); /* response is no message */
    BAD_TXN("\x1a\x04\x0a\x02\x12\x00");
    BAD_WATCH("\x5a\x00");                 /* event without kv */
    BAD_WATCH("\x5a\x04\x08\x02\x12\x00"); /* unknown type */
    BAD_WATCH("\x32\x05x");                /* reason cut off */
    BAD_WATCH("\x20\x80");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_as_the_proto_files_say),
        cmocka_unit_test(range_response_is_read),
        cmocka_unit_test(txn_response_is_read),
        cmocka_unit_test(granted_leases_are_read),
        cmocka_unit_test(watch_response_is_read),
        cmocka_unit_test(malformed_responses_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
