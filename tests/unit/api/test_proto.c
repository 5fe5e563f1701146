/* SPDX-License-Identifier: Apache-2.0 */
#include "api/proto.h"
#include "base/mem.h"
#include "wire/protobuf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void put_text(struct strbuf *b, uint32_t number, const char *s)
{
    pb_put_bytes(b, number, s, strlen(s));
}

/* The envelope of an object of 'kind' whose bytes are 'raw'. */
static void envelope(struct strbuf *out, const char *kind, const struct strbuf *raw)
{
    strbuf_add(out, "k8s", 4);
    size_t type = pb_begin(out, 1);
    put_text(out, 1, "v1");
    put_text(out, 2, kind);
    pb_end(out, type);
    pb_put_bytes(out, 2, raw->data, raw->size);
}

static int decode(const char *kind, const struct strbuf *raw, struct json **ret, struct err *e)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    envelope(&out, kind, raw);
    return api_proto_decode(out.data, out.size, ret, e);
}

static void a_namespace_comes_out_as_json(void **state)
{
    CLEANUP_STRBUF struct strbuf raw = STRBUF_INIT;
    CLEANUP(json_free) struct json *obj = NULL;
    struct err e = {0};
    size_t meta = pb_begin(&raw, 1);
    put_text(&raw, 1, "red");
    put_text(&raw, 2, ""); /* Empty means absent. */
    pb_put_uint(&raw, 7, 3);
    size_t time = pb_begin(&raw, 8);
    pb_put_uint(&raw, 1, 1767225600);
    pb_end(&raw, time);
    size_t entry = pb_begin(&raw, 11);
    put_text(&raw, 1, "a");
    put_text(&raw, 2, "b");
    pb_end(&raw, entry);
    size_t owner = pb_begin(&raw, 13);
    put_text(&raw, 1, "Node");
    pb_put_uint(&raw, 6, 1);
    pb_end(&raw, owner);
    put_text(&raw, 14, "x/y");
    put_text(&raw, 14, "z/w");
    pb_put_bytes(&raw, 17, "", 0);
    pb_end(&raw, meta);
    size_t spec = pb_begin(&raw, 2);
    put_text(&raw, 1, "kubernetes");
    pb_end(&raw, spec);
    assert_int_equal(decode("Namespace", &raw, &obj, &e), 0);
    CLEANUP_FREE char *text = json_to_text(obj);
    assert_string_equal(
        text, "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"red\","
              "\"generation\":3,\"creationTimestamp\":\"2026-01-01T00:00:00Z\",\"labels\":{\"a\":"
              "\"b\"},\"ownerReferences\":[{\"kind\":\"Node\",\"controller\":true}],"
              "\"finalizers\":[\"x/y\",\"z/w\"],\"managedFields\":[{}]},"
              "\"spec\":{\"finalizers\":[\"kubernetes\"]}}");
}

static void a_config_map_comes_out_as_json(void **state)
{
    CLEANUP_STRBUF struct strbuf raw = STRBUF_INIT;
    size_t meta = pb_begin(&raw, 1);
    pb_put_bytes(&raw, 1, "c", 1);
    pb_end(&raw, meta);
    for (uint32_t number = 2; number <= 3; number++) {
        size_t entry = pb_begin(&raw, number);
        pb_put_bytes(&raw, 1, "k", 1);
        pb_put_bytes(&raw, 2, "v", 1);
        pb_end(&raw, entry);
    }
    pb_put_uint(&raw, 4, 1);
    CLEANUP(json_free) struct json *obj = NULL;
    struct err e = {0};
    assert_int_equal(decode("ConfigMap", &raw, &obj, &e), 0);
    CLEANUP_FREE char *text = json_to_text(obj);
    assert_string_equal(text,
                        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":"
                        "\"c\"},\"data\":{\"k\":\"v\"},\"binaryData\":{\"k\":\"dg==\"},"
                        "\"immutable\":true}");
}

static void what_is_not_known_is_refused_not_dropped(void **state)
{
    CLEANUP_STRBUF struct strbuf raw = STRBUF_INIT;
    struct json *obj = NULL;
    struct err e = {0};
    assert_int_equal(decode("Novelty", &raw, &obj, &e), -EPROTONOSUPPORT);
    assert_non_null(strstr(e.text, "Novelty"));
    put_text(&raw, 99, "new");
    assert_int_equal(decode("Namespace", &raw, &obj, &e), -EPROTONOSUPPORT);
    assert_non_null(strstr(e.text, "99"));
    assert_null(obj);
}

static void malformed_bytes_are_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
    } cases[] = {
        {"", 0},
        {"k8s", 3},
        {"k8x\0", 4},
        {"k8s\0\x0a\xff", 6},         /* Cut off. */
        {"k8s\0\x08\x01", 6},         /* The type's field is no message. */
        {"k8s\0\x0a\x02\x08\x01", 8}, /* Nor is what is in it. */
    };
    struct json *obj = NULL;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err e = {0};
        if (api_proto_decode(cases[i].bytes, cases[i].size, &obj, &e) == 0 || !e.text[0]) {
            fail_msg("case %zu was taken", i);
        }
    }
    CLEANUP_STRBUF struct strbuf raw = STRBUF_INIT;
    struct err e = {0};
    pb_put_uint(&raw, 1, 5); /* metadata is no number */
    assert_int_equal(decode("Namespace", &raw, &obj, &e), -EINVAL);
    strbuf_reset(&raw);
    size_t meta = pb_begin(&raw, 1);
    pb_put_bytes(&raw, 1, "a\0b", 3);
    pb_end(&raw, meta);
    assert_int_equal(decode("Namespace", &raw, &obj, &e), -EINVAL);
    assert_null(obj);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_namespace_comes_out_as_json),
        cmocka_unit_test(a_config_map_comes_out_as_json),
        cmocka_unit_test(what_is_not_known_is_refused_not_dropped),
        cmocka_unit_test(malformed_bytes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
