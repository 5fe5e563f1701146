/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas: those of the kinds are well formed, and objects are pruned, defaulted and validated by them. */
#include "api/pattern.h"
#include "api/schema.h"
#include "schema_macros.h"

#include "base/map.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct json *parse(const char *text)
{
    struct json *v = NULL;
    struct err e = {0};
    if (json_parse(text, strlen(text), &v, &e) < 0) {
        fail_msg("%s: %s", text, e.text);
    }
    return v;
}

/* ---- the kinds' own ---- */

static void check_node(const char *path, const struct api_schema *s, struct smap *definitions,
                       unsigned depth);

static void check_fields(const char *path, const struct api_schema *s, struct smap *definitions,
                         unsigned depth)
{
    for (size_t i = 0; i < s->n_fields; i++) {
        const struct api_field *f = &s->fields[i];
        CLEANUP_FREE char *sub = xasprintf("%s.%s", path, f->name);
        if (i && strcmp(s->fields[i - 1].name, f->name) >= 0) {
            fail_msg("%s is not in order", sub);
        }
        if (!f->schema || !f->description || !*f->description) {
            fail_msg("%s has no schema or no description", sub);
        }
        check_node(sub, f->schema, definitions, depth + 1);
    }
}

static void check_node(const char *path, const struct api_schema *s, struct smap *definitions,
                       unsigned depth)
{
    if (s->definition) {
        const struct api_schema *same = smap_get(definitions, s->definition);
        if (same && same != s) {
            fail_msg("%s: two schemas are called %s", path, s->definition);
        }
        if (same) {
            return;
        }
        if (!s->description) {
            fail_msg("%s: %s has no description", path, s->definition);
        }
        smap_set(definitions, s->definition, (void *) s);
    }
    if (depth > 40) {
        fail_msg("%s: no end", path);
    }
    if (s->type == API_OBJECT) {
        check_fields(path, s, definitions, depth);
        if (s->others) {
            check_node(path, s->others, definitions, depth + 1);
        }
    } else if (s->n_fields || s->others) {
        fail_msg("%s is no object and has members", path);
    }
    if (s->type != API_ARRAY) {
        return;
    }
    assert_non_null(s->items);
    check_node(path, s->items, definitions, depth + 1);
    if ((s->list_type == API_LIST_MAP) != (s->keys != NULL)) {
        fail_msg("%s: keys and list type do not agree", path);
    }
    for (size_t i = 0; s->keys && s->keys[i]; i++) {
        if (!api_schema_field(s->items, s->keys[i])) {
            fail_msg("%s: there is no key %s", path, s->keys[i]);
        }
        if (i && strcmp(s->keys[i - 1], s->keys[i]) >= 0) {
            fail_msg("%s: keys are not in order", path);
        }
    }
    if (s->patch_key && *s->patch_key && !api_schema_field(s->items, s->patch_key)) {
        fail_msg("%s: there is no patch key %s", path, s->patch_key);
    }
}

static void every_kinds_schema_is_well_formed(void **state)
{
    struct smap definitions;
    smap_init(&definitions, NULL);
    for (size_t i = 0; api_kinds[i]; i++) {
        const struct api_kind *k = api_kinds[i];
        if (!k->schema) {
            fail_msg("%s has no schema", k->kind);
        }
        assert_int_equal(k->schema->type, API_OBJECT);
        assert_non_null(k->schema->definition);
        check_node(k->kind, k->schema, &definitions, 0);
        assert_non_null(api_schema_field(k->schema, "apiVersion"));
        assert_non_null(api_schema_field(k->schema, "kind"));
        assert_ptr_equal(api_schema_member(k->schema, "metadata"), &api_schema_object_meta);
        if (k->status_subresource) {
            assert_non_null(api_schema_field(k->schema, "status"));
        }
    }
    smap_done(&definitions);
}

/* ---- a small one, as a CRD would make it ---- */

static const struct api_limits count_limits = {
    .has_minimum = true,
    .minimum = 1,
    .has_maximum = true,
    .maximum = 10,
    .multiple_of = 0.5,
    .min_length = -1,
    .max_length = -1,
    .min_items = -1,
    .max_items = -1,
    .min_properties = -1,
    .max_properties = -1,
};
static const struct api_schema count = {.type = API_NUMBER, .limits = &count_limits};
static struct pattern *pattern;
static struct api_limits name_limits = {.pattern = "^[a-z]+$"};
static const struct api_schema name = {.type = API_STRING, .limits = &name_limits};
static const struct api_field item_fields[] = {
    {"key", &api_schema_string, "key", true},
    {"value", &api_schema_int_or_string, "value", false},
};
static const struct api_schema item = API_OBJECT_OF(item_fields, NULL, "item");
static const struct api_schema needs_a = {
    .type = API_ANY,
    .fields = (const struct api_field[]){{"a", &api_schema_any, "a", true}},
    .n_fields = 1,
};
static const struct api_schema needs_b = {
    .type = API_ANY,
    .fields = (const struct api_field[]){{"b", &api_schema_any, "b", true}},
    .n_fields = 1,
};
static const struct api_limits choice_limits = {
    .min_length = -1,
    .max_length = -1,
    .min_items = -1,
    .max_items = -1,
    .min_properties = -1,
    .max_properties = 2,
    .one_of = (const struct api_schema *const[]){&needs_a, &needs_b, NULL},
};
static const struct api_schema choice = {
    .type = API_OBJECT, .preserve_unknown = true, .limits = &choice_limits};
static struct api_schema mode = {.type = API_STRING,
                                 .values_allowed = (const char *const[]){"x", "y", NULL}};
static const struct api_schema maybe = {.type = API_STRING, .nullable = true};
static const struct api_field root_fields[] = {
    {"choice", &choice, "", false},
    {"count", &count, "", false},
    {"items", API_MAP_LIST(&item, NULL, "key"), "", false},
    {"maybe", &maybe, "", false},
    {"mode", &mode, "", false},
    {"name", &name, "", false},
    {"plain", &api_schema_int32, "", false},
    {"template", API_MAP_OF(&item), "", false},
    {"when", &api_schema_time, "", false},
    {"whole", &(const struct api_schema){.type = API_OBJECT, .embedded = true}, "", false},
};
static struct api_schema root = API_OBJECT_OF(root_fields, NULL, "root");

static int setup(void **state)
{
    name_limits.min_length = 2;
    name_limits.max_length = 4;
    name_limits.min_items = name_limits.max_items = -1;
    name_limits.min_properties = name_limits.max_properties = -1;
    mode.dflt = parse("\"x\"");
    root.defaulted = true;
    int r = pattern_new(name_limits.pattern, &pattern, NULL);
    name_limits.compiled = pattern;
    return r;
}

static int teardown(void **state)
{
    pattern_free(pattern);
    json_free((struct json *) mode.dflt);
    return 0;
}

static void unknown_fields_are_found_and_removed(void **state)
{
    CLEANUP(json_free)
    struct json *obj =
        parse("{\"x\":1,\"plain\":null,\"maybe\":null,\"items\":[{\"key\":\"a\",\"y\":2}],"
              "\"template\":{\"any\":{\"key\":\"k\",\"z\":{}}},\"choice\":{\"free\":{\"a\":1}},"
              "\"whole\":{\"metadata\":{\"name\":\"n\",\"w\":1},\"apiVersion\":\"v1\",\"q\":1}}");
    CLEANUP(api_paths_done) struct api_paths paths = {0};
    api_schema_prune(&root, obj, &paths);
    static const char *const want[] = {"x", "items[0].y", "template.any.z", "whole.metadata.w",
                                       "whole.q"};
    assert_int_equal(paths.n, ARRAY_SIZE(want));
    for (size_t i = 0; i < paths.n; i++) {
        bool found = false;
        for (size_t j = 0; j < ARRAY_SIZE(want); j++) {
            found |= streq(paths.list[i], want[j]);
        }
        if (!found) {
            fail_msg("%s is not unknown", paths.list[i]);
        }
    }
    CLEANUP(json_free)
    struct json *left =
        parse("{\"maybe\":null,\"items\":[{\"key\":\"a\"}],\"template\":{\"any\":{\"key\":\"k\"}},"
              "\"choice\":{\"free\":{\"a\":1}},\"whole\":{\"metadata\":{\"name\":\"n\"},"
              "\"apiVersion\":\"v1\"}}");
    assert_true(json_equal(obj, left));
}

static void very_many_unknown_fields_cost_no_more_than_their_number(void **state)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    for (int i = 0; i < 100000; i++) {
        strbuf_addf(&text, "%c\"f%d\":0", i ? ',' : '{', i);
    }
    strbuf_addc(&text, '}');
    CLEANUP(json_free) struct json *obj = parse(text.data);
    CLEANUP(api_paths_done) struct api_paths paths = {0};
    api_schema_prune(&root, obj, &paths);
    assert_int_equal(paths.n, API_MAX_PATHS);
    assert_int_equal(json_count(obj), 0);
}

static void defaults_are_put_in(void **state)
{
    CLEANUP(json_free) struct json *obj = parse("{\"plain\":1}");
    api_schema_default(&root, obj);
    CLEANUP(json_free) struct json *want = parse("{\"plain\":1,\"mode\":\"x\"}");
    assert_true(json_equal(obj, want));
}

static void what_breaks_a_rule_is_named(void **state)
{
    static const char *const bad[][3] = {
        {"{\"plain\":\"x\"}", "plain",
         "Invalid value: \"x\": plain in body must be of type integer: \"string\""},
        {"{\"plain\":1.5}", "plain",
         "Invalid value: 1.5: plain in body must be of type integer: \"number\""},
        {"{\"plain\":3000000000}", "plain",
         "Invalid value: 3000000000: must be between -2147483648 and 2147483647, inclusive"},
        {"{\"items\":{}}", "items",
         "Invalid value: {}: items in body must be of type array: \"object\""},
        {"{\"items\":[{}]}", "items[0].key", "Required value"},
        {"{\"items\":[{\"key\":\"a\"},{\"key\":\"a\"}]}", "items[1]",
         "Duplicate value: {\"key\":\"a\"}"},
        {"{\"items\":[{\"key\":\"a\",\"value\":true}]}", "items[0].value",
         "Invalid value: true: items[0].value in body must be of type integer,string: "
         "\"boolean\""},
        {"{\"count\":0.5}", "count",
         "Invalid value: 0.5: count in body should be greater than or equal to 1"},
        {"{\"count\":10.5}", "count",
         "Invalid value: 10.5: count in body should be less than or equal to 10"},
        {"{\"count\":1.25}", "count",
         "Invalid value: 1.25: count in body should be a multiple of 0.5"},
        {"{\"mode\":\"z\"}", "mode", "Unsupported value: \"z\": supported values: \"x\", \"y\""},
        {"{\"name\":\"Abc\"}", "name",
         "Invalid value: \"Abc\": name in body should match '^[a-z]+$'"},
        {"{\"name\":\"a\"}", "name",
         "Invalid value: \"a\": name in body should be at least 2 chars long"},
        {"{\"name\":\"abcde\"}", "name", "Too long: may not be more than 4 bytes"},
        {"{\"choice\":{}}", "choice",
         "Invalid value: {}: \"choice\" must validate one and only one schema (oneOf)"},
        {"{\"choice\":{\"a\":1,\"b\":1}}", "choice",
         "Invalid value: {\"a\":1,\"b\":1}: \"choice\" must validate one and only one schema "
         "(oneOf)"},
        {"{\"choice\":{\"a\":1,\"c\":1,\"d\":1}}", "choice",
         "Too many: 3: must have at most 2 items"},
        {"{\"when\":\"today\"}", "when",
         "Invalid value: \"today\": must be an RFC 3339 time, (e.g. 2006-01-02T15:04:05Z)"},
        {"{\"mode\":null}", "mode",
         "Invalid value: null: mode in body must be of type string: \"null\""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CLEANUP(json_free) struct json *obj = parse(bad[i][0]);
        CLEANUP(api_causes_done) struct api_causes causes = {0};
        api_schema_validate(&root, obj, &causes);
        if (causes.n != 1 || !streq(causes.list[0].field, bad[i][1]) ||
            !streq(causes.list[0].message, bad[i][2])) {
            fail_msg("%s: %zu: %s: %s", bad[i][0], causes.n, causes.n ? causes.list[0].field : "",
                     causes.n ? causes.list[0].message : "");
        }
    }
    CLEANUP(json_free)
    struct json *good =
        parse("{\"plain\":1,\"count\":2.5,\"mode\":\"y\",\"name\":\"abc\",\"maybe\":null,"
              "\"items\":[{\"key\":\"a\",\"value\":1},{\"key\":\"b\",\"value\":\"x\"}],"
              "\"choice\":{\"a\":1},\"when\":\"2017-09-29T13:33:49Z\"}");
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    api_schema_validate(&root, good, &causes);
    assert_int_equal(causes.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kinds_schema_is_well_formed),
        cmocka_unit_test(unknown_fields_are_found_and_removed),
        cmocka_unit_test(very_many_unknown_fields_cost_no_more_than_their_number),
        cmocka_unit_test(defaults_are_put_in),
        cmocka_unit_test(what_breaks_a_rule_is_named),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
