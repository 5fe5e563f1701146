/* SPDX-License-Identifier: Apache-2.0 */
/* OpenAPI documents: complete in themselves, and the same in protobuf. */
#include "api/openapi/openapi.h"

#include "api/schema.h"
#include "base/mem.h"
#include "wire/protobuf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Each "$ref" below 'v' names a member of 'definitions'; how many there are. */
static size_t check_refs(const struct json *v, const char *prefix, const struct json *definitions)
{
    const struct json *child;
    size_t n = 0;
    const char *ref = json_path_string(v, "$ref", NULL);
    if (ref) {
        if (!str_has_prefix(ref, prefix) || !json_get(definitions, ref + strlen(prefix))) {
            fail_msg("%s leads nowhere", ref);
        }
        n++;
    }
    if (json_is(v, JSON_OBJECT) || json_is(v, JSON_ARRAY)) {
        JSON_FOREACH (child, v) {
            n += check_refs(child, prefix, definitions);
        }
    }
    return n;
}

static void each_group_version_has_a_document(void **state)
{
    struct api_registry r;
    api_registry_init(&r, NULL);
    for (size_t i = 0; i < r.n; i++) {
        CLEANUP_FREE char *key = api_openapi_key(r.list[i]);
        CLEANUP(json_free) struct json *doc = api_openapi_v3(&r, key, "1.2");
        const struct json *schemas = json_path(doc, "components", "schemas", NULL);
        assert_non_null(doc);
        assert_true(check_refs(doc, "#/components/schemas/", schemas) > 10);
        const char *name = api_kind_schema(r.list[i])->definition;
        const struct json *id =
            json_at(json_path(schemas, name, "x-kubernetes-group-version-kind", NULL), 0);
        assert_string_equal(json_path_string(id, "kind", NULL), r.list[i]->kind);
    }
    assert_null(api_openapi_v3(&r, "apis/nothing/v1", "1.2"));
    api_registry_done(&r);
}

static void extensions_say_how_lists_are_merged(void **state)
{
    struct api_registry r;
    api_registry_init(&r, NULL);
    CLEANUP(json_free) struct json *doc = api_openapi_v3(&r, "api/v1", "1.2");
    const struct json *spec =
        json_path(doc, "components", "schemas", "io.k8s.api.core.v1.PodSpec", "properties", NULL);
    const struct json *volumes = json_get(spec, "volumes");
    assert_string_equal(json_path_string(volumes, "x-kubernetes-patch-strategy", NULL),
                        "merge,retainKeys");
    assert_string_equal(json_path_string(volumes, "x-kubernetes-list-type", NULL), "map");
    assert_string_equal(
        json_path_string(json_get(spec, "nodeSelector"), "x-kubernetes-map-type", NULL), "atomic");
    assert_string_equal(
        json_path_string(json_get(spec, "tolerations"), "x-kubernetes-list-type", NULL), "atomic");
    api_registry_done(&r);
}

/* The number of fields 'number' of the message; the last one in '*ret'. */
static size_t count_fields(struct pb_reader m, uint32_t number, struct pb_field *ret)
{
    struct pb_field f;
    size_t n = 0;
    int r;
    while ((r = pb_next(&m, &f)) > 0) {
        if (f.number == number) {
            *ret = f;
            n++;
        }
    }
    assert_int_equal(r, 0);
    return n;
}

static void version_2_is_the_same_in_protobuf(void **state)
{
    struct api_registry r;
    api_registry_init(&r, NULL);
    CLEANUP(json_free) struct json *doc = api_openapi_v2(&r, "1.2");
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    assert_true(check_refs(doc, "#/definitions/", json_get(doc, "definitions")) > 100);
    api_openapi_v2_encode(doc, &out);
    struct pb_reader all = pb_reader_of(out.data, out.size);
    struct pb_field f = {0}, entry = {0}, value = {0};
    assert_int_equal(count_fields(all, 1, &f), 1);
    assert_memory_equal(f.data, "2.0", 3);
    assert_int_equal(count_fields(all, 8, &f), 1); /* paths */
    assert_int_equal(count_fields(pb_reader_of(f.data, f.size), 2, &entry),
                     json_count(json_get(doc, "paths")));
    assert_int_equal(count_fields(all, 9, &f), 1); /* definitions */
    size_t n = json_count(json_get(doc, "definitions"));
    assert_int_equal(count_fields(pb_reader_of(f.data, f.size), 1, &entry), n);
    /* The last definition: its name, and as many properties. */
    const struct json *last = json_at(json_get(doc, "definitions"), n - 1);
    const char *name = json_key_at(json_get(doc, "definitions"), n - 1);
    assert_int_equal(count_fields(pb_reader_of(entry.data, entry.size), 1, &value), 1);
    assert_int_equal(value.size, strlen(name));
    assert_memory_equal(value.data, name, value.size);
    assert_int_equal(count_fields(pb_reader_of(entry.data, entry.size), 2, &value), 1);
    if (json_get(last, "properties")) {
        assert_int_equal(count_fields(pb_reader_of(value.data, value.size), 25, &f), 1);
        assert_int_equal(count_fields(pb_reader_of(f.data, f.size), 1, &entry),
                         json_count(json_get(last, "properties")));
    }
    api_registry_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_group_version_has_a_document),
        cmocka_unit_test(extensions_say_how_lists_are_merged),
        cmocka_unit_test(version_2_is_the_same_in_protobuf),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
