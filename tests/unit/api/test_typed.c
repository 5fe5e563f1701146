/* SPDX-License-Identifier: Apache-2.0 */
#include "api/typed.h"

#include "api/moment.h"
#include "api/quantity.h"
#include "base/mem.h"
#include "filled.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct json *parse(const char *text)
{
    struct json *v = NULL;
    assert_int_equal(json_parse(text, strlen(text), &v, NULL), 0);
    return v;
}

static void expect_text(const struct json *has, const char *want)
{
    CLEANUP_FREE char *text = json_to_text(has);
    assert_string_equal(text, want);
}

/* The forms are those of resource.Quantity of k8s.io/apimachinery 0.26. */
static void quantities_have_one_form(void **state)
{
    static const struct {
        const char *given, *want;
        bool milli;
    } cases[] = {
        {"0", "0", false},
        {"0.5", "500m", false},
        {"1000", "1k", false},
        {"1.5", "1500m", false},
        {"1500m", "1500m", false},
        {"1000m", "1", false},
        {"1024Mi", "1Gi", false},
        {"1.5Gi", "1536Mi", false},
        {"100Mi", "100Mi", false},
        {"0.1Ki", "102400m", false},
        {"512", "512", false},
        {"1e3", "1e3", false},
        {"1000e3", "1e6", false},
        {"1E", "1E", false},
        {"0.005", "5m", false},
        {"100u", "100u", false},
        {"100u", "1m", true},
        {"1n", "1m", true},
        {"0.1n", "1n", false},
        {"-0.5", "-500m", false},
        {"010", "010", false},
        {"2Gi", "2Gi", true},
        {"123456789", "123456789", false},
        {"0Mi", "0", false},
        {"1000000000000000000000", "1e21", false},
        {"9223372036854775807Gi", "9223372036854775807", false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
        struct err e = {0};
        if (api_quantity_format(cases[i].given, cases[i].milli, &out, &e) < 0 ||
            !streq(out.data, cases[i].want)) {
            /* No unit is large enough for this one: it stays as it is. */
            if (!(streq(cases[i].want, "1e21") && streq_null(out.data, cases[i].given))) {
                fail_msg("%s: %s%s", cases[i].given, strbuf_cstr(&out), e.text);
            }
        }
    }
    static const char *const wrong[] = {"",      "x",    "1x", "1 Gi", "Gi1Gi",
                                        "1.2.3", "1Kim", "1e", "--1"};
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
        struct err e = {0};
        if (api_quantity_format(wrong[i], false, &out, &e) == 0 || !e.text[0] || out.size) {
            fail_msg("%s was taken: %s", wrong[i], strbuf_cstr(&out));
        }
    }
}

static void times_are_read_as_go_reads_them(void **state)
{
#define MICRO "2006-01-02T15:04:05.000000Z07:00"
#define PLAIN "2006-01-02T15:04:05Z07:00"
    static const struct {
        const char *given;
        bool micro;
        const char *want; /* The canonical text, or the error. */
    } cases[] = {
        {"2020-01-01T00:00:00.123456Z", true, "2020-01-01T00:00:00.123456Z"},
        {"2020-01-01T02:00:00.000001+02:00", true, "2020-01-01T00:00:00.000001Z"},
        {"2020-01-01T00:00:00.123Z", true,
         "parsing time \"2020-01-01T00:00:00.123Z\" as \"" MICRO "\": cannot parse \".123Z\" as "
         "\".000000\""},
        {"2020-01-01T00:00:00Z", true,
         "parsing time \"2020-01-01T00:00:00Z\" as \"" MICRO "\": cannot parse \"Z\" as "
         "\".000000\""},
        {"2020-01-01T00:00:00.1234567Z", true,
         "parsing time \"2020-01-01T00:00:00.1234567Z\" as \"" MICRO "\": cannot parse \"7Z\" as "
         "\"Z07:00\""},
        {"2020-02-29T23:59:59Z", false, "2020-02-29T23:59:59Z"},
        {"2020-01-01T00:00:00.5-00:30", false, "2020-01-01T00:30:00Z"},
        {"1969-12-31T23:59:58.25Z", false, "1969-12-31T23:59:58Z"},
        {"", false, "parsing time \"\" as \"" PLAIN "\": cannot parse \"\" as \"2006\""},
        {"2020-13-01T00:00:00Z", false,
         "parsing time \"2020-13-01T00:00:00Z\": month out of range"},
        {"2021-02-29T00:00:00Z", false, "parsing time \"2021-02-29T00:00:00Z\": day out of range"},
        {"2020-01-01T00:00:60Z", false,
         "parsing time \"2020-01-01T00:00:60Z\": second out of range"},
        {"2020-01-01 00:00:00Z", false,
         "parsing time \"2020-01-01 00:00:00Z\" as \"" PLAIN "\": cannot parse \" 00:00:00Z\" as "
         "\"T\""},
        {"2020-01-01T00:00:00Zx", false,
         "parsing time \"2020-01-01T00:00:00Zx\": extra text: \"x\""},
        {"2020-01-01T00:00:00", false,
         "parsing time \"2020-01-01T00:00:00\" as \"" PLAIN "\": cannot parse \"\" as \"Z07:00\""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct moment m;
        struct err e = {0};
        char text[TIME_TEXT_SIZE] = "";
        if (moment_parse(cases[i].given, cases[i].micro, &m, &e) == 0) {
            assert_int_equal(moment_format(&m, cases[i].micro, text), 0);
        }
        assert_string_equal(e.text[0] ? e.text : text, cases[i].want);
    }
}

static const struct api_schema *schema(const char *group, const char *plural)
{
    return api_kind_find(group, "v1", plural)->schema;
}

static void wrong_types_are_told_in_words_of_go(void **state)
{
    static const struct {
        const char *plural, *json, *want;
    } cases[] = {
        {"pods", "{\"spec\":{\"containers\":[{\"name\":7}]}}",
         "json: cannot unmarshal number into Go struct field Container.spec.containers.name of "
         "type "
         "string"},
        {"pods", "{\"spec\":{\"containers\":{}}}",
         "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type "
         "[]v1.Container"},
        {"pods", "{\"spec\":7}",
         "json: cannot unmarshal number into Go struct field Pod.spec of type v1.PodSpec"},
        {"pods", "{\"spec\":{\"priority\":4294967296}}",
         "json: cannot unmarshal number 4294967296 into Go struct field PodSpec.spec.priority of "
         "type int32"},
        {"pods", "{\"spec\":{\"nodeSelector\":{\"a\":true}}}",
         "json: cannot unmarshal bool into Go struct field PodSpec.spec.nodeSelector of type "
         "string"},
        {"pods", "{\"spec\":{\"overhead\":{\"cpu\":\"x\"}}}",
         "quantities must match the regular expression "
         "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"},
        {"pods", "{\"metadata\":{\"creationTimestamp\":7}}",
         "json: cannot unmarshal number into Go value of type string"},
        {"secrets", "{\"data\":{\"a\":\"%%%\"}}", "illegal base64 data at input byte 0"},
        {"services", "{\"spec\":{\"ports\":[{\"targetPort\":true}]}}",
         "json: cannot unmarshal bool into Go value of type int32"},
        {"pods", "{\"spec\":{\"containers\":[null,{\"name\":null}],\"nodeSelector\":{\"a\":null}}}",
         ""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *obj = parse(cases[i].json);
        struct err e = {0};
        int r = api_typed_check(schema("", cases[i].plural), obj, &e);
        assert_string_equal(e.text, cases[i].want);
        assert_int_equal(r, *cases[i].want ? -EINVAL : 0);
    }
}

static void more_elements_than_are_bearable_are_refused(void **state)
{
    CLEANUP(json_free) struct json *obj = json_object();
    struct json *list = json_ensure_array(json_ensure_object(obj, "metadata"), "finalizers");
    struct err e = {0};
    for (size_t i = 0; i < API_TYPED_MAX_ELEMENTS; i++) {
        json_append(list, json_string("x"));
    }
    assert_int_equal(api_typed_check(schema("", "pods"), obj, &e), 0);
    json_append(list, json_string("x"));
    assert_int_equal(api_typed_check(schema("", "pods"), obj, &e), -EINVAL);
    assert_string_equal(e.text, API_TYPED_TOO_MANY);
}

static void nulls_are_the_empty_values_of_their_types(void **state)
{
    CLEANUP(json_free)
    struct json *obj =
        parse("{\"spec\":{\"nodeSelector\":{\"a\":null},\"containers\":[null,{\"args\":"
              "[null,\"b\"],\"resources\":{\"limits\":{\"cpu\":0.5,\"memory\":null}}}],"
              "\"activeDeadlineSeconds\":\"left\"}}");
    api_typed_normalize(schema("", "pods"), obj);
    expect_text(
        obj, "{\"spec\":{\"nodeSelector\":{\"a\":\"\"},\"containers\":[{},{\"args\":[\"\",\"b\"],"
             "\"resources\":{\"limits\":{\"cpu\":\"500m\",\"memory\":\"0\"}}}],"
             "\"activeDeadlineSeconds\":\"left\"}}");
}

static void times_and_quantities_become_canonical(void **state)
{
    CLEANUP(json_free)
    struct json *obj =
        parse("{\"metadata\":{\"deletionTimestamp\":\"2020-01-01T01:00:00.5+01:00\","
              "\"creationTimestamp\":"
              "\"0001-01-01T00:00:00Z\"},\"spec\":{\"overhead\":{\"cpu\":\"1000m\"},\"volumes\":[{"
              "\"emptyDir\":{\"sizeLimit\":\"1024Mi\"}}]}}");
    api_typed_normalize(schema("", "pods"), obj);
    expect_text(
        obj,
        "{\"metadata\":{\"deletionTimestamp\":\"2020-01-01T00:00:00Z\"},\"spec\":{\"overhead\":{"
        "\"cpu\":\"1\"},\"volumes\":[{\"emptyDir\":{\"sizeLimit\":\"1Gi\"}}]}}");
}

static void what_is_always_there_is_put_in(void **state)
{
    CLEANUP(json_free) struct json *slice = parse("{\"addressType\":\"IPv4\"}");
    CLEANUP(json_free) struct json *node = parse("{}");
    assert_true(api_typed_complete(schema("discovery.k8s.io", "endpointslices"), slice));
    assert_int_equal(json_count(json_get(slice, "endpoints")), 0);
    assert_true(json_is(json_get(slice, "endpoints"), JSON_ARRAY));
    assert_false(api_typed_complete(schema("discovery.k8s.io", "endpointslices"), slice));
    api_typed_complete(schema("", "nodes"), node);
    const struct json *info = json_path(node, "status", "nodeInfo", NULL), *text;
    assert_int_equal(json_count(info), 10);
    JSON_FOREACH (text, info) {
        assert_string_equal(json_get_string(text), "");
    }
    int64_t port;
    assert_int_equal(
        json_get_int(json_path(node, "status", "daemonEndpoints", "kubeletEndpoint", "Port", NULL),
                     &port),
        0);
    assert_int_equal(port, 0);
}

/* ---- every field of every kind ---- */

/* A value that no field of the schema takes; NULL: it takes all. */
static struct json *of_another_type(const struct api_schema *s)
{
    bool raw = s->type == API_ANY || (s->type == API_OBJECT && !s->n_fields && !s->others);
    return raw                                              ? NULL
           : s->type == API_BOOLEAN || s->type >= API_ARRAY ? json_int(7)
                                                            : json_bool(true);
}

/* Tries each field of 'obj', whose schema is 's', and then the fields below it. */
static void try_fields(const struct api_kind *k, const struct api_schema *s, struct json *obj,
                       size_t *tried)
{
    for (size_t i = 0; i < s->n_fields; i++) {
        const struct api_field *f = &s->fields[i];
        struct json *v = json_get(obj, f->name), *wrong = of_another_type(f->schema);
        struct err e = {0};
        if (!v) {
            json_free(wrong);
            continue;
        }
        CLEANUP(json_free) struct json *right = json_clone(v);
        if (wrong) {
            json_set(obj, f->name, wrong);
            if (api_typed_check(s, obj, &e) != -EINVAL || !e.text[0]) {
                fail_msg("%s: %s takes a value of another type", k->kind, f->name);
            }
        }
        json_set(obj, f->name, json_null());
        if (api_typed_check(s, obj, &e) < 0) {
            fail_msg("%s: null in %s: %s", k->kind, f->name, e.text);
        }
        /* Null is absent, and what is always there is empty then. */
        CLEANUP(json_free) struct json *alone = json_object();
        json_set(alone, f->name, json_null());
        api_schema_prune(s, alone, NULL);
        CLEANUP(json_free)
        struct json *empty = !f->always            ? NULL
                             : f->schema->nullable ? json_null()
                                                   : api_typed_empty(f->schema);
        assert_true(f->schema->nullable || !json_get(alone, f->name));
        api_typed_complete(s, alone);
        if (empty) {
            api_typed_complete(f->schema, empty);
            assert_true(json_equal(json_get(alone, f->name), empty));
        } else {
            assert_null(json_get(alone, f->name));
        }
        json_set(obj, f->name, TAKE(right));
        assert_int_equal(api_typed_check(s, obj, &e), 0);
        ++*tried;
        const struct api_schema *inner = f->schema;
        v = json_get(obj, f->name);
        while (inner->type == API_ARRAY || inner->others) {
            inner = inner->type == API_ARRAY ? api_schema_items(inner) : inner->others;
            v = json_at(v, 0);
        }
        try_fields(k, inner, v, tried);
    }
}

static void every_field_has_the_type_of_its_description(void **state)
{
    size_t tried = 0;
    for (size_t i = 0; api_kinds[i]; i++) {
        unsigned seed = 0;
        const struct api_kind *k = api_kinds[i];
        CLEANUP(json_free) struct json *obj = filled_object(k->schema, &seed);
        CLEANUP(json_free) struct json *same = json_clone(obj);
        api_typed_normalize(k->schema, obj);
        if (!json_equal(obj, same)) {
            fail_msg("%s: canonical values were changed", k->kind);
        }
        try_fields(k, k->schema, obj, &tried);
    }
    assert_true(tried > 1500);
}

static void amounts_are_compared(void **state)
{
    static const struct {
        const char *a, *b;
        int want;
    } cases[] = {
        {"1", "1000m", 0},
        {"1Gi", "1024Mi", 0},
        {"1Gi", "1G", 1},
        {"999m", "1", -1},
        {"1n", "0", 1},
        {"-1", "0", -1},
        {"-1", "-2", 1},
        {"0", "-0.0", 0},
        {"1e3", "1k", 0},
        {"0.5Ki", "512", 0},
        {"8Ei", "9E", 1},
        {"100E", "99E", 0},
        {"999999999999999999999999999999999999999999", "1Ei", 1},
        {"nonsense", "0", 0},
        {"1.0000000001", "1", 1},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int got = api_quantity_compare(cases[i].a, cases[i].b);
        int back = api_quantity_compare(cases[i].b, cases[i].a);
        if (got != cases[i].want || back != -got) {
            fail_msg("%s and %s: %d", cases[i].a, cases[i].b, got);
        }
    }
    assert_true(api_quantity_is_whole("3") && api_quantity_is_whole("3000m"));
    assert_true(api_quantity_is_whole("1Ki") && !api_quantity_is_whole("1.5"));
    assert_true(!api_quantity_is_whole("1m") && api_quantity_is_whole("999.9999999"));
}

/* What Go takes for equal: nothing is an empty value, but where there is a pointer. */
static void values_are_compared_as_go_does(void **state)
{
    static const struct {
        const char *a, *b, *path; /* NULL: they are the same. */
    } cases[] = {
        {"{}", "{\"spec\":{}}", NULL},
        {"{\"spec\":{\"hostNetwork\":false}}", "{\"spec\":{}}", NULL},
        {"{\"spec\":{\"nodeName\":\"\"}}", "{\"spec\":{\"nodeName\":null}}", NULL},
        {"{\"spec\":{\"volumes\":[]}}", "{}", NULL},
        {"{\"spec\":{\"nodeSelector\":{}}}", "{}", NULL},
        {"{\"spec\":{\"affinity\":{\"podAffinity\":{}}}}", "{}", NULL},
        {"{\"spec\":{\"hostUsers\":false}}", "{}", "spec.hostUsers"},
        {"{\"spec\":{\"priority\":0}}", "{}", "spec.priority"},
        {"{\"spec\":{\"hostNetwork\":true}}", "{}", "spec.hostNetwork"},
        {"{\"spec\":{\"nodeSelector\":{\"a\":\"\"}}}", "{}", "spec.nodeSelector"},
        {"{\"spec\":{\"nodeSelector\":{\"a\":\"b\"}}}",
         "{\"spec\":{\"nodeSelector\":{\"a\":\"c\"}}}", "spec.nodeSelector.a"},
        {"{\"spec\":{\"containers\":[{\"name\":\"a\",\"command\":[\"x\"]}]}}",
         "{\"spec\":{\"containers\":[{\"name\":\"a\",\"command\":[\"y\"]}]}}",
         "spec.containers[0].command[0]"},
        {"{\"spec\":{\"containers\":[{\"name\":\"a\"}]}}", "{}", "spec.containers"},
        {"{\"spec\":[]}", "{\"spec\":{}}", "spec"},
    };
    const struct api_schema *s = api_kind_find("", "v1", "pods")->schema;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *a = parse(cases[i].a);
        CLEANUP(json_free) struct json *b = parse(cases[i].b);
        CLEANUP_STRBUF struct strbuf path = STRBUF_INIT;
        CLEANUP_STRBUF struct strbuf back = STRBUF_INIT;
        assert_int_equal(api_typed_same(s, a, b, &path), !cases[i].path);
        assert_int_equal(api_typed_same(s, b, a, &back), !cases[i].path);
        assert_string_equal(strbuf_cstr(&path), cases[i].path ? cases[i].path : "");
        assert_string_equal(strbuf_cstr(&back), cases[i].path ? cases[i].path : "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantities_have_one_form),
        cmocka_unit_test(amounts_are_compared),
        cmocka_unit_test(values_are_compared_as_go_does),
        cmocka_unit_test(times_are_read_as_go_reads_them),
        cmocka_unit_test(wrong_types_are_told_in_words_of_go),
        cmocka_unit_test(more_elements_than_are_bearable_are_refused),
        cmocka_unit_test(nulls_are_the_empty_values_of_their_types),
        cmocka_unit_test(times_and_quantities_become_canonical),
        cmocka_unit_test(what_is_always_there_is_put_in),
        cmocka_unit_test(every_field_has_the_type_of_its_description),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
