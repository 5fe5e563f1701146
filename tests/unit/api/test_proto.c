/* SPDX-License-Identifier: Apache-2.0 */
#include "api/proto.h"
#include "api/typed.h"
#include "base/mem.h"
#include "filled.h"
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
    return api_proto_decode(out.data, out.size, NULL, ret, NULL, e);
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
              "\"b\"},\"ownerReferences\":[{\"kind\":\"Node\",\"controller\":true,\"name\":\"\","
              "\"uid\":\"\",\"apiVersion\":\"\"}],"
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

static void what_is_not_known_is_told(void **state)
{
    CLEANUP_STRBUF struct strbuf raw = STRBUF_INIT, bytes = STRBUF_INIT;
    CLEANUP(api_paths_done) struct api_paths unknown = {0};
    struct json *obj = NULL;
    struct err e = {0};
    assert_int_equal(decode("Novelty", &raw, &obj, &e), -EPROTONOSUPPORT);
    assert_non_null(strstr(e.text, "Novelty"));
    assert_null(obj);
    size_t spec = pb_begin(&raw, 2);
    put_text(&raw, 99, "new");
    put_text(&raw, 98, ""); /* Old clients send empty values in removed fields. */
    pb_put_uint(&raw, 97, 0);
    pb_end(&raw, spec);
    pb_put_uint(&raw, 7, 1);
    envelope(&bytes, "Namespace", &raw);
    assert_int_equal(api_proto_decode(bytes.data, bytes.size, NULL, &obj, &unknown, &e), 0);
    json_free(obj);
    assert_int_equal(unknown.n, 2);
    assert_string_equal(unknown.list[0], "NamespaceSpec.99");
    assert_string_equal(unknown.list[1], "Namespace.7");
}

/* The envelope of 'obj', and what is read from it. */
static struct json *there_and_back(const struct json *obj, const struct api_kind *k)
{
    CLEANUP_STRBUF struct strbuf bytes = STRBUF_INIT;
    struct json *back = NULL;
    CLEANUP(api_paths_done) struct api_paths unknown = {0};
    struct err e = {0};
    assert_int_equal(api_proto_put_object(obj, &bytes), 0);
    if (api_proto_decode(bytes.data, bytes.size, k, &back, &unknown, &e) < 0) {
        fail_msg("%s: %s", json_path_string(obj, "kind", NULL), e.text);
    }
    assert_int_equal(unknown.n, 0);
    return back;
}

static void expect_same(const struct json *has, const struct json *want)
{
    if (!json_equal(has, want)) {
        CLEANUP_FREE char *a = json_to_text(has);
        CLEANUP_FREE char *b = json_to_text(want);
        fail_msg("%s\nnot\n%s", a, b);
    }
}

/* The schema of the message at a path of names of a kind, which ends with a NULL. */
static const struct api_schema *schema_at(const char *version, const char *kind,
                                          const char *const *path)
{
    const struct api_schema *s = api_proto_schema(version, kind);
    for (size_t i = 0; path[i]; i++) {
        const struct api_field *f = api_schema_field(s, path[i]);
        s = f->wire                        ? f->wire
            : f->schema->type == API_ARRAY ? api_schema_items(f->schema)
                                           : f->schema;
    }
    return s;
}

/* Appends the envelope of an object with a message at a path of numbers and nothing else.  The path
 * leads from the inside out, and ends with a 0. */
static void put_within(struct strbuf *out, const char *version, const char *kind,
                       const uint32_t *path, const struct strbuf *message)
{
    CLEANUP_STRBUF struct strbuf raw = STRBUF_INIT;
    strbuf_add(&raw, strbuf_cstr(message), message->size);
    for (size_t i = 0; path[i]; i++) {
        CLEANUP_STRBUF struct strbuf outer = STRBUF_INIT;
        pb_put_bytes(&outer, path[i], strbuf_cstr(&raw), raw.size);
        strbuf_reset(&raw);
        strbuf_add(&raw, outer.data, outer.size);
    }
    api_proto_put_head(version, kind, raw.size, out);
    strbuf_add(out, raw.data, raw.size);
    api_proto_put_end(out);
}

/* The schema of the message of a CustomResourceDefinition's schema. */
static const struct api_schema *schema_of_schemas(void)
{
    static const char *const path[] = {"spec", "versions", "schema", "openAPIV3Schema", NULL};
    return schema_at("apiextensions.k8s.io/v1", "CustomResourceDefinition", path);
}

/* Appends the envelope of a definition that has the message of a schema and nothing else. */
static void put_definition(struct strbuf *out, const struct strbuf *schema)
{
    static const uint32_t path[] = {1, 4, 7, 2, 0};
    put_within(out, "apiextensions.k8s.io/v1", "CustomResourceDefinition", path, schema);
}

/* Decodes the message of a schema into JSON. */
static int decode_schema(const struct strbuf *schema, struct json **ret, struct err *e)
{
    CLEANUP_STRBUF struct strbuf bytes = STRBUF_INIT;
    CLEANUP(json_free) struct json *obj = NULL;
    put_definition(&bytes, schema);
    int r = api_proto_decode(bytes.data, bytes.size, NULL, &obj, NULL, e);
    if (r == 0) {
        const struct json *version = json_at(json_path(obj, "spec", "versions", NULL), 0);
        *ret = json_clone(json_path(version, "schema", "openAPIV3Schema", NULL));
    }
    return r;
}

/* The scalars that Go writes though they are empty: up to uniqueItems, and from nullable on. */
#define HEAD "\x0a\0\x12\0\x22\0\x2a\0\x32\0\x3a\0\x50\0\x60\0\x7a\0\x90\x01\0"
#define TAIL "\xa8\x02\0\xb8\x02\0\xc0\x02\0"
#define EMPTY "\x1e" HEAD TAIL /* With its length. */

struct schema_case {
    const char *json;
    const char *bytes;
    size_t size;
};
#define SCHEMA(json, bytes)                \
    {                                      \
        (json), (bytes), sizeof(bytes) - 1 \
    }

static void a_schema_has_the_bytes_of_go(void **state)
{
    static const struct schema_case cases[] = {
        SCHEMA("{}", HEAD TAIL),
        SCHEMA("{\"additionalProperties\":false}", HEAD "\xf2\x01\x02\x08\0" TAIL),
        SCHEMA("{\"additionalProperties\":true}", HEAD "\xf2\x01\x02\x08\x01" TAIL),
        SCHEMA("{\"additionalProperties\":{}}", HEAD "\xf2\x01\x22\x08\x01\x12" EMPTY TAIL),
        SCHEMA("{\"additionalItems\":false}", HEAD "\x8a\x02\x02\x08\0" TAIL),
        SCHEMA("{\"items\":{}}", HEAD "\xc2\x01\x20\x0a" EMPTY TAIL),
        SCHEMA("{\"items\":[{},{}]}", HEAD "\xc2\x01\x40\x12" EMPTY "\x12" EMPTY TAIL),
        SCHEMA("{\"dependencies\":{\"a\":{}}}", HEAD "\x82\x02\x25\x0a\x01"
                                                     "a\x12\x20\x0a" EMPTY TAIL),
        SCHEMA("{\"dependencies\":{\"a\":[\"b\",\"c\"]}}", HEAD "\x82\x02\x0b\x0a\x01"
                                                                "a\x12\x06\x12\x01"
                                                                "b\x12\x01"
                                                                "c" TAIL),
        SCHEMA("{\"enum\":[1,\"a\",null]}", HEAD "\xa2\x01\x03\x0a\x01"
                                                 "1\xa2\x01\x05\x0a\x03\"a\"\xa2\x01\0" TAIL),
        SCHEMA("{\"example\":{\"a\":[false]}}", HEAD "\xa2\x02\x0f\x0a\x0d{\"a\":[false]}" TAIL),
        SCHEMA("{\"x-kubernetes-preserve-unknown-fields\":true}",
               HEAD "\xa8\x02\0\xb0\x02\x01\xb8\x02\0\xc0\x02\0"),
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *schema = NULL;
        CLEANUP(json_free) struct json *back = NULL;
        CLEANUP_STRBUF struct strbuf bytes = STRBUF_INIT;
        assert_int_equal(json_parse(cases[i].json, strlen(cases[i].json), &schema, NULL), 0);
        api_proto_encode(schema_of_schemas(), schema, &bytes);
        if (bytes.size != cases[i].size || memcmp(bytes.data, cases[i].bytes, bytes.size) != 0) {
            fail_msg("%s: %zu other bytes", cases[i].json, bytes.size);
        }
        assert_int_equal(decode_schema(&bytes, &back, NULL), 0);
        expect_same(back, schema);
    }
}

static void a_schema_comes_back_whole(void **state)
{
    static const char *const cases[] = {
        "{\"default\":false,\"maximum\":0.1,\"minimum\":0,\"maxLength\":0,\"multipleOf\":1e-07}",
        "{\"default\":\"\",\"example\":0,\"$ref\":\"\",\"x-kubernetes-list-type\":\"\"}",
        "{\"$schema\":\"s\",\"$ref\":\"r\",\"id\":\"i\",\"default\":{\"a\":{\"b\":[1.50,null]}}}",
        "{\"not\":{\"anyOf\":[{\"items\":{\"items\":[{\"type\":\"string\"}]}},{}]}}",
        "{\"properties\":{\"a\":{\"type\":\"object\",\"properties\":{\"b\":{\"nullable\":true}}}},"
        "\"patternProperties\":{\"^x\":{}},\"definitions\":{\"d\":{\"required\":[\"e\"]}}}",
        "{\"x-kubernetes-validations\":[{\"rule\":\"r\",\"reason\":\"FieldValueInvalid\","
        "\"optionalOldSelf\":false}],\"externalDocs\":{\"url\":\"u\"}}",
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *schema = NULL;
        CLEANUP(json_free) struct json *back = NULL;
        CLEANUP_STRBUF struct strbuf bytes = STRBUF_INIT;
        assert_int_equal(json_parse(cases[i], strlen(cases[i]), &schema, NULL), 0);
        api_proto_encode(schema_of_schemas(), schema, &bytes);
        assert_int_equal(decode_schema(&bytes, &back, NULL), 0);
        expect_same(back, schema);
    }
}

static void of_several_types_the_last_one_counts(void **state)
{
    static const struct schema_case cases[] = {
        SCHEMA("{\"additionalProperties\":false}", "\xf2\x01\0"),
        SCHEMA("{\"additionalProperties\":{}}", "\xf2\x01\x02\x12\0"),
        SCHEMA("{\"additionalProperties\":{}}", "\xf2\x01\x04\x12\0\x08\0"),
        SCHEMA("{}", "\xc2\x01\0"),
        SCHEMA("{\"items\":[{}]}", "\xc2\x01\x04\x0a\0\x12\0"),
        SCHEMA("{\"dependencies\":{\"a\":[\"b\"]}}", "\x82\x02\x0a\x0a\x01"
                                                     "a\x12\x05\x12\x01"
                                                     "b\x0a\0"),
        SCHEMA("{\"dependencies\":{\"\":{}}}", "\x82\x02\0"),
        SCHEMA("{\"enum\":[null]}", "\xa2\x01\x06\x0a\x04null"),
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *want = NULL;
        CLEANUP(json_free) struct json *back = NULL;
        CLEANUP_STRBUF struct strbuf bytes = STRBUF_INIT;
        assert_int_equal(json_parse(cases[i].json, strlen(cases[i].json), &want, NULL), 0);
        strbuf_add(&bytes, cases[i].bytes, cases[i].size);
        assert_int_equal(decode_schema(&bytes, &back, NULL), 0);
        expect_same(back, want);
    }
}

/* Only the schema's own check knows what its values may be: those of other types are empty. */
static void wrong_types_in_a_schema_are_no_harm(void **state)
{
    static const char *const cases[] = {
        "{\"title\":5,\"maximum\":\"x\",\"maxLength\":{},\"uniqueItems\":7}",
        "{\"properties\":[{}],\"allOf\":{\"a\":{}},\"required\":\"x\",\"definitions\":\"x\"}",
        "{\"items\":5,\"additionalProperties\":[{}],\"dependencies\":{\"a\":5},\"not\":[]}",
        "{\"externalDocs\":[],\"x-kubernetes-validations\":[5,null],\"enum\":{}}",
        "[]",
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *schema = NULL;
        CLEANUP(json_free) struct json *back = NULL;
        CLEANUP_STRBUF struct strbuf bytes = STRBUF_INIT;
        assert_int_equal(json_parse(cases[i], strlen(cases[i]), &schema, NULL), 0);
        api_proto_encode(schema_of_schemas(), schema, &bytes);
        assert_int_equal(decode_schema(&bytes, &back, NULL), 0);
        assert_null(json_get(back, "title"));
    }
}

/* 'n' messages in each other, whose numbers are those of 'path' in turn, from the inside out. */
static void put_nested(struct strbuf *out, const uint32_t path[2], size_t n)
{
    CLEANUP_FREE size_t *sizes = xcalloc(n + 1, sizeof *sizes);
    for (size_t i = 0; i < n; i++) {
        CLEANUP_STRBUF struct strbuf head = STRBUF_INIT;
        pb_add_varint(&head, path[i % 2] << 3 | PB_BYTES);
        pb_add_varint(&head, sizes[i]);
        sizes[i + 1] = head.size + sizes[i];
    }
    for (size_t i = n; i-- > 0;) {
        pb_add_varint(out, path[i % 2] << 3 | PB_BYTES);
        pb_add_varint(out, sizes[i]);
    }
}

static void a_schema_is_no_deeper_than_json(void **state)
{
    static const struct {
        uint32_t path[2];
        size_t
            fits; /* Messages that still fit: the schema is 6 deep, and the rest of 64 is left. */
    } cases[] = {
        {{28, 28}, 58}, /* not */
        {{25, 25}, 29}, /* allOf: a list and an object */
        {{1, 24}, 116}, /* items: two messages for one object */
        {{2, 29}, 58},  /* properties: an entry and its value, a map and an object */
        {{2, 30}, 116}, /* additionalProperties */
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const size_t depths[] = {cases[i].fits, cases[i].fits + 2, 100000};
        for (size_t k = 0; k < ARRAY_SIZE(depths); k++) {
            CLEANUP_STRBUF struct strbuf bytes = STRBUF_INIT;
            CLEANUP(json_free) struct json *schema = NULL;
            struct err e = {0};
            put_nested(&bytes, cases[i].path, depths[k]);
            assert_int_equal(decode_schema(&bytes, &schema, &e), k ? -EINVAL : 0);
            assert_true(k == 0 || strstr(e.text, "nested too deeply"));
            CLEANUP_STRBUF struct strbuf again = STRBUF_INIT;
            api_proto_encode(schema_of_schemas(), schema, &again);
            assert_true(k || again.size > bytes.size);
        }
    }
}

static void elements_of_schemas_are_counted(void **state)
{
    CLEANUP_STRBUF struct strbuf bytes = STRBUF_INIT;
    struct json *schema = NULL;
    struct err e = {0};
    for (size_t i = 0; i <= API_TYPED_MAX_ELEMENTS; i++) {
        pb_put_bytes(&bytes, 25, "", 0);
    }
    assert_int_equal(decode_schema(&bytes, &schema, &e), -EINVAL);
    assert_string_equal(e.text, API_TYPED_TOO_MANY);
    assert_null(schema);
}

/* Decodes the message of a rule of a policy into JSON. */
static int decode_rule(const char *rule, size_t size, struct json **ret, struct api_paths *unknown,
                       struct err *e)
{
    static const uint32_t path[] = {3, 2, 2, 0}; /* resourceRules, matchConstraints, spec */
    CLEANUP_STRBUF struct strbuf message = STRBUF_INIT, bytes = STRBUF_INIT;
    CLEANUP(json_free) struct json *obj = NULL;
    strbuf_add(&message, rule, size);
    put_within(&bytes, "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", path,
               &message);
    int r = api_proto_decode(bytes.data, bytes.size, NULL, &obj, unknown, e);
    if (r == 0) {
        *ret = json_clone(
            json_at(json_path(obj, "spec", "matchConstraints", "resourceRules", NULL), 0));
    }
    return r;
}

/* A rule's operations are in a message, and its resources are in a message of that. */
static void a_field_is_one_or_two_messages_deeper_than_in_json(void **state)
{
    static const char *const path[] = {"spec", "matchConstraints", "resourceRules", NULL};
    static const struct schema_case cases[] = {
        /* Go writes both messages though they are empty. */
        SCHEMA("{}", "\x12\x02\x12\0"),
        SCHEMA("{\"resourceNames\":[\"n\"]}", "\x0a\x01n\x12\x02\x12\0"),
        SCHEMA("{\"operations\":[\"*\"]}", "\x12\x05\x0a\x01*\x12\0"),
        SCHEMA("{\"scope\":\"*\"}", "\x12\x05\x12\x03\x22\x01*"),
        SCHEMA("{\"resourceNames\":[\"n\",\"m\"],\"operations\":[\"*\"],\"apiGroups\":[\"\",\"g\"],"
               "\"apiVersions\":[\"v\"],\"resources\":[\"r\",\"s\"],\"scope\":\"*\"}",
               "\x0a\x01n\x0a\x01m\x12\x16\x0a\x01*\x12\x11\x0a\0\x0a\x01g\x12\x01v\x1a\x01r\x1a"
               "\x01s\x22\x01*"),
    };
    const struct api_schema *s =
        schema_at("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", path);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *rule = NULL;
        CLEANUP(json_free) struct json *back = NULL;
        CLEANUP_STRBUF struct strbuf bytes = STRBUF_INIT;
        assert_int_equal(json_parse(cases[i].json, strlen(cases[i].json), &rule, NULL), 0);
        api_proto_encode(s, rule, &bytes);
        if (bytes.size != cases[i].size || memcmp(bytes.data, cases[i].bytes, bytes.size) != 0) {
            fail_msg("%s: %zu other bytes", cases[i].json, bytes.size);
        }
        assert_int_equal(decode_rule(bytes.data, bytes.size, &back, NULL, NULL), 0);
        expect_same(back, rule);
    }
}

/* Parts of a message that come one after the other are one message. */
static void messages_that_json_does_not_show_are_read_in_any_order(void **state)
{
    static const struct schema_case cases[] = {
        SCHEMA("{}", ""),
        SCHEMA("{}", "\x12\0"),
        SCHEMA("{\"scope\":\"b\",\"operations\":[\"o\",\"p\"],\"apiGroups\":[\"g\"],"
               "\"resourceNames\":[\"n\"]}",
               "\x12\x0d\x12\x03\x22\x01"
               "a\x12\x03\x22\x01"
               "b\x0a\x01o\x12\x08\x0a\x01p\x12\x03\x0a\x01g\x0a\x01n"),
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *want = NULL;
        CLEANUP(json_free) struct json *back = NULL;
        assert_int_equal(json_parse(cases[i].json, strlen(cases[i].json), &want, NULL), 0);
        assert_int_equal(decode_rule(cases[i].bytes, cases[i].size, &back, NULL, NULL), 0);
        expect_same(back, want);
    }
}

static void in_messages_that_json_does_not_show_what_is_not_known_is_told(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *says; /* NULL: the bytes are malformed. */
    } cases[] = {
        {"\x12\x05\x12\x03\x2a\x01x", 7, "NamedRuleWithOperations.5"},
        {"\x12\x03\x1a\x01x", 5, "NamedRuleWithOperations.3"},
        /* A number that ends with the eight bits of 2 is not 2. */
        {"\x92\x10\x01x", 4, "NamedRuleWithOperations.258"},
        {"\x12\x04\x92\x10\x01x", 6, "NamedRuleWithOperations.258"},
        {"\x10\x01", 2, NULL},
        {"\x12\x02\x10\x01", 4, NULL},
        {"\x12\x04\x12\x02\x20\x01", 6, NULL},
        {"\x12\x04\x12\x05\x22\x01", 6, NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(api_paths_done) struct api_paths unknown = {0};
        CLEANUP(json_free) struct json *rule = NULL;
        struct err e = {0};
        int r = decode_rule(cases[i].bytes, cases[i].size, &rule, &unknown, &e);
        assert_int_equal(r, cases[i].says ? 0 : -EINVAL);
        if (cases[i].says) {
            assert_int_equal(unknown.n, 1);
            assert_string_equal(unknown.list[0], cases[i].says);
        } else {
            assert_string_equal(e.text, "malformed protobuf");
        }
    }
}

static void a_window_is_a_number_of_nanoseconds(void **state)
{
    static const struct {
        const char *text, *again;
        int64_t ns;
    } cases[] = {{"15.062s", "15.062s", 15062000000},
                 {"1m30s", "1m30s", 90000000000},
                 {"90s", "1m30s", 90000000000},
                 {"-1ns", "-1ns", -1},
                 {"nothing", "0s", 0}};
    const struct api_schema *s = api_proto_schema("metrics.k8s.io/v1beta1", "NodeMetrics");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *obj = json_object();
        CLEANUP_STRBUF struct strbuf bytes = STRBUF_INIT, want = STRBUF_INIT;
        json_set_string(obj, "kind", "NodeMetrics");
        json_set_string(obj, "apiVersion", "metrics.k8s.io/v1beta1");
        json_set_string(obj, "window", cases[i].text);
        CLEANUP(json_free) struct json *back = there_and_back(obj, NULL);
        assert_string_equal(json_get_text(back, "window"), cases[i].again);
        size_t mark = pb_begin(&want, 3);
        pb_put_uint(&want, 1, (uint64_t) cases[i].ns);
        pb_end(&want, mark);
        api_proto_encode(s, obj, &bytes);
        assert_non_null(memmem(bytes.data, bytes.size, want.data, want.size));
    }
}

static void a_definition_says_only_what_it_has(void **state)
{
    static const char text[] =
        "{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"CustomResourceDefinition\","
        "\"spec\":{\"versions\":[{\"subresources\":{\"status\":{}}},{\"subresources\":{}}]}}";
    CLEANUP(json_free) struct json *obj = NULL;
    assert_int_equal(json_parse(text, strlen(text), &obj, NULL), 0);
    CLEANUP(json_free) struct json *back = there_and_back(obj, NULL);
    const struct json *list = json_path(back, "spec", "versions", NULL);
    assert_non_null(json_path(json_at(list, 0), "subresources", "status", NULL));
    assert_int_equal(json_count(json_get(json_at(list, 1), "subresources")), 0);
    assert_null(json_get(json_at(list, 1), "schema"));
    assert_true(json_is(json_get(json_at(list, 1), "served"), JSON_BOOL));
}

static void discovery_has_its_messages(void **state)
{
    /* The core group's versions have no apiVersion, and verbs are a message of their own. */
    static const char versions[] =
        "{\"kind\":\"APIVersions\",\"versions\":[\"v1\"],\"serverAddressByClientCIDRs\":[]}";
    static const char want[] = "k8s\0\x0a\x0f\x0a\0\x12\x0b"
                               "APIVersions\x12\x04\x0a\x02v1\x1a\0\x22\0";
    static const char list[] =
        "{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\",\"groupVersion\":\"v1\","
        "\"resources\":[{\"name\":\"pods\",\"singularName\":\"pod\",\"namespaced\":true,\"kind\":"
        "\"Pod\","
        "\"verbs\":[\"get\"],\"shortNames\":[\"po\"]}]}";
    static const char resource[] = "\x12\x23\x0a\x04pods\x10\x01\x1a\x03Pod\x22\x05\x0a\x03get"
                                   "\x2a\x02po\x32\x03pod\x42\0\x4a\0\x52\0";
    CLEANUP(json_free) struct json *obj = NULL;
    CLEANUP(json_free) struct json *all = NULL;
    CLEANUP_STRBUF struct strbuf bytes = STRBUF_INIT, more = STRBUF_INIT;
    assert_int_equal(json_parse(versions, strlen(versions), &obj, NULL), 0);
    assert_int_equal(api_proto_put_object(obj, &bytes), 0);
    assert_int_equal(bytes.size, sizeof want - 1);
    assert_memory_equal(bytes.data, want, bytes.size);
    assert_int_equal(json_parse(list, strlen(list), &all, NULL), 0);
    assert_int_equal(api_proto_put_object(all, &more), 0);
    assert_non_null(memmem(more.data, more.size, resource, sizeof resource - 1));
    CLEANUP(json_free) struct json *back = there_and_back(all, NULL);
    expect_same(back, all);
}

static void every_kind_comes_back_whole(void **state)
{
    unsigned seed = 0, n = 0;
    for (size_t i = 0; api_kinds[i]; i++) {
        const struct api_kind *k = api_kinds[i];
        if (!k->protobuf) {
            continue;
        }
        CLEANUP_FREE char *version = api_kind_api_version(k);
        CLEANUP(json_free) struct json *obj = filled_object(k->schema, &seed);
        json_set_string(obj, "kind", k->kind);
        json_set_string(obj, "apiVersion", version);
        CLEANUP(json_free) struct json *back = there_and_back(obj, NULL);
        expect_same(back, obj);
        n++;
    }
    assert_true(n > 30);
    for (size_t i = 0; api_bodies[i].kind; i++) {
        CLEANUP(json_free) struct json *obj = filled_object(api_bodies[i].schema, &seed);
        json_set_string(obj, "kind", api_bodies[i].kind);
        json_set_string(obj, "apiVersion", "v1");
        CLEANUP(json_free) struct json *back = there_and_back(obj, NULL);
        expect_same(back, obj);
    }
}

/* An object with nothing but what is always there is the same in both forms, and the fields that
 * are there in protobuf only are not in JSON. */
static void every_kind_comes_back_empty(void **state)
{
    for (size_t i = 0; api_kinds[i]; i++) {
        const struct api_kind *k = api_kinds[i];
        if (!k->protobuf) {
            continue;
        }
        CLEANUP_FREE char *version = api_kind_api_version(k);
        CLEANUP(json_free) struct json *obj = json_object();
        json_set_string(obj, "kind", k->kind);
        json_set_string(obj, "apiVersion", version);
        CLEANUP(json_free) struct json *back = there_and_back(obj, NULL);
        api_typed_complete(k->schema, back);
        api_typed_complete(k->schema, obj);
        CLEANUP(json_free) struct json *again = there_and_back(obj, NULL);
        api_typed_complete(k->schema, again);
        expect_same(again, back);
    }
}

static void a_pointer_tells_zero_from_nothing(void **state)
{
    static const struct {
        const char *kind, *version, *json, *want;
    } cases[] = {
        /* hostNetwork, priority: bool, *int32 */
        {"Pod", "v1", "{\"spec\":{\"hostNetwork\":false,\"priority\":0}}", "{\"priority\":0}"},
        {"Pod", "v1", "{\"spec\":{\"hostNetwork\":true}}", "{\"hostNetwork\":true}"},
        {"Lease", "coordination.k8s.io/v1", "{\"spec\":{\"holderIdentity\":\"\"}}",
         "{\"holderIdentity\":\"\"}"},
        {"Service", "v1", "{\"spec\":{\"clusterIP\":\"\",\"loadBalancerClass\":\"\"}}",
         "{\"loadBalancerClass\":\"\"}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *obj = NULL;
        CLEANUP(json_free) struct json *want = NULL;
        assert_int_equal(json_parse(cases[i].json, strlen(cases[i].json), &obj, NULL), 0);
        assert_int_equal(json_parse(cases[i].want, strlen(cases[i].want), &want, NULL), 0);
        json_set_string(obj, "kind", cases[i].kind);
        json_set_string(obj, "apiVersion", cases[i].version);
        CLEANUP(json_free) struct json *back = there_and_back(obj, NULL);
        expect_same(json_get(back, "spec"), want);
    }
}

/* Fields without a pointer are there though they are empty, maps are in the order of their keys. */
static void bytes_are_those_of_go(void **state)
{
    static const char text[] =
        "{\"kind\":\"Lease\",\"apiVersion\":\"coordination.k8s.io/v1\",\"metadata\":{\"name\":"
        "\"l\",\"labels\":{\"b\":\"2\",\"a\":\"1\"}},\"spec\":{\"leaseDurationSeconds\":15,"
        "\"renewTime\":\"1970-01-01T00:00:01.000002Z\"}}";
    static const char want[] = "k8s\0"
                               "\x0a\x1f\x0a\x16"
                               "coordination.k8s.io/v1"
                               "\x12\x05"
                               "Lease"
                               "\x12\x2e"
                               "\x0a\x21\x0a\x01l\x12\0\x1a\0\x22\0\x2a\0\x32\0\x38\0\x42\0"
                               "\x5a\x06\x0a\x01"
                               "a\x12\x01\x31"
                               "\x5a\x06\x0a\x01"
                               "b\x12\x01\x32"
                               "\x12\x09\x10\x0f\x22\x05\x08\x01\x10\xd0\x0f"
                               "\x1a\0\x22\0";
    CLEANUP(json_free) struct json *obj = NULL;
    CLEANUP_STRBUF struct strbuf bytes = STRBUF_INIT;
    assert_int_equal(json_parse(text, strlen(text), &obj, NULL), 0);
    assert_int_equal(api_proto_put_object(obj, &bytes), 0);
    assert_int_equal(bytes.size, sizeof want - 1);
    assert_memory_equal(bytes.data, want, bytes.size);
}

/* Only the empty message is no time: 1970 begins with zeros, and what is below a second counts in a
 * MicroTime only. */
static void a_time_is_read_as_in_go(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *want;
    } cases[] = {
        {"", 0, NULL},
        {"\x08\0\x10\0", 4, "1970-01-01T00:00:00Z"},
        {"\x10\x01", 2, "1970-01-01T00:00:00Z"},
        {"\x08\x01\x10\x01", 4, "1970-01-01T00:00:01Z"},
        {"\x08\x80\x92\xb8\xc3\x98\xfe\xff\xff\xff\x01", 11, NULL}, /* Go's zero: year 1. */
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_STRBUF struct strbuf raw = STRBUF_INIT;
        CLEANUP(json_free) struct json *obj = NULL;
        size_t meta = pb_begin(&raw, 1);
        pb_put_bytes(&raw, 8, cases[i].bytes, cases[i].size);
        pb_end(&raw, meta);
        assert_int_equal(decode("Namespace", &raw, &obj, NULL), 0);
        const char *has = json_path_string(obj, "metadata", "creationTimestamp", NULL);
        assert_true(streq_null(has, cases[i].want) || (!has && !cases[i].want));
        CLEANUP(json_free) struct json *back = there_and_back(obj, NULL);
        expect_same(json_get(back, "metadata"), json_get(obj, "metadata"));
    }
}

static void a_list_is_its_metadata_and_its_items(void **state)
{
    static const char text[] = "{\"kind\":\"LeaseList\",\"apiVersion\":\"coordination.k8s.io/v1\","
                               "\"metadata\":{\"resourceVersion\":\"7\",\"remainingItemCount\":0},"
                               "\"items\":[{\"metadata\":{\"name\":\"a\"}},{}]}";
    static const char none[] = "{\"kind\":\"ThingList\",\"apiVersion\":\"v1\"}";
    CLEANUP(json_free) struct json *list = NULL;
    CLEANUP(json_free) struct json *thing = NULL;
    CLEANUP_STRBUF struct strbuf bytes = STRBUF_INIT, want = STRBUF_INIT, item = STRBUF_INIT;
    assert_int_equal(json_parse(text, strlen(text), &list, NULL), 0);
    assert_int_equal(api_proto_put_object(list, &bytes), 0);
    size_t zero = 0;
    api_proto_put_list_meta(7, NULL, &zero, &want);
    for (size_t i = 0; i < 2; i++) {
        strbuf_reset(&item);
        api_proto_encode(api_kind_by_name("coordination.k8s.io/v1", "Lease")->schema,
                         json_at(json_get(list, "items"), i), &item);
        size_t before = want.size;
        pb_put_bytes(&want, API_PROTO_ITEM, item.data, item.size);
        assert_int_equal(want.size - before, api_proto_item_size(item.size));
    }
    CLEANUP_STRBUF struct strbuf all = STRBUF_INIT;
    api_proto_put_head("coordination.k8s.io/v1", "LeaseList", want.size, &all);
    strbuf_add(&all, want.data, want.size);
    api_proto_put_end(&all);
    assert_int_equal(bytes.size, all.size);
    assert_memory_equal(bytes.data, all.data, all.size);
    assert_int_equal(json_parse(none, strlen(none), &thing, NULL), 0);
    assert_int_equal(api_proto_put_object(thing, &bytes), -EPROTONOSUPPORT);
}

static void more_elements_than_are_bearable_are_refused(void **state)
{
    CLEANUP_STRBUF struct strbuf raw = STRBUF_INIT;
    struct json *obj = NULL;
    struct err e = {0};
    size_t meta = pb_begin(&raw, 1);
    for (size_t i = 0; i <= API_TYPED_MAX_ELEMENTS; i++) {
        put_text(&raw, 14, "");
    }
    pb_end(&raw, meta);
    assert_int_equal(decode("Namespace", &raw, &obj, &e), -EINVAL);
    assert_string_equal(e.text, API_TYPED_TOO_MANY);
    assert_null(obj);
}

static void an_envelope_without_a_kind_is_of_the_path(void **state)
{
    static const char bytes[] = "k8s\0\x0a\x04\x0a\0\x12\0\x12\0\x1a\0\x22\0";
    const struct api_kind *k = api_kind_find("", "v1", "namespaces");
    struct json *obj = NULL;
    struct err e = {0};
    assert_int_equal(api_proto_decode(bytes, sizeof bytes - 1, k, &obj, NULL, &e), 0);
    assert_string_equal(json_path_string(obj, "kind", NULL), "Namespace");
    assert_string_equal(json_path_string(obj, "apiVersion", NULL), "v1");
    json_free(obj);
    obj = NULL;
    assert_int_equal(api_proto_decode(bytes, sizeof bytes - 1, NULL, &obj, NULL, &e),
                     -EPROTONOSUPPORT);
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
        if (api_proto_decode(cases[i].bytes, cases[i].size, NULL, &obj, NULL, &e) == 0 ||
            !e.text[0]) {
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
        cmocka_unit_test(what_is_not_known_is_told),
        cmocka_unit_test(a_schema_has_the_bytes_of_go),
        cmocka_unit_test(a_schema_comes_back_whole),
        cmocka_unit_test(of_several_types_the_last_one_counts),
        cmocka_unit_test(wrong_types_in_a_schema_are_no_harm),
        cmocka_unit_test(a_schema_is_no_deeper_than_json),
        cmocka_unit_test(elements_of_schemas_are_counted),
        cmocka_unit_test(a_field_is_one_or_two_messages_deeper_than_in_json),
        cmocka_unit_test(messages_that_json_does_not_show_are_read_in_any_order),
        cmocka_unit_test(in_messages_that_json_does_not_show_what_is_not_known_is_told),
        cmocka_unit_test(a_window_is_a_number_of_nanoseconds),
        cmocka_unit_test(a_definition_says_only_what_it_has),
        cmocka_unit_test(discovery_has_its_messages),
        cmocka_unit_test(every_kind_comes_back_whole),
        cmocka_unit_test(every_kind_comes_back_empty),
        cmocka_unit_test(a_pointer_tells_zero_from_nothing),
        cmocka_unit_test(bytes_are_those_of_go),
        cmocka_unit_test(a_time_is_read_as_in_go),
        cmocka_unit_test(a_list_is_its_metadata_and_its_items),
        cmocka_unit_test(more_elements_than_are_bearable_are_refused),
        cmocka_unit_test(an_envelope_without_a_kind_is_of_the_path),
        cmocka_unit_test(malformed_bytes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
