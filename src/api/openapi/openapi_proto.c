/* SPDX-License-Identifier: Apache-2.0 */
/* An OpenAPI version 2 document in protobuf: gnostic's openapi/v2 messages, whose field numbers
 * are in the comments of each function. Values of any type are YAML texts there; JSON is YAML. */
#include "api/openapi/openapi.h"

#include "base/mem.h"
#include "wire/protobuf.h"

static void put_text(struct strbuf *b, uint32_t number, const char *s)
{
    if (s && *s) {
        pb_put_bytes(b, number, s, strlen(s));
    }
}

static void put_texts(struct strbuf *b, uint32_t number, const struct json *list)
{
    const struct json *v;
    JSON_FOREACH (v, list) {
        put_text(b, number, json_get_string(v));
    }
}

/* Any: yaml = 2 */
static void put_any(struct strbuf *b, uint32_t number, const struct json *v)
{
    CLEANUP_FREE char *text = json_to_text(v);
    size_t mark = pb_begin(b, number);
    put_text(b, 2, text);
    pb_end(b, mark);
}

/* NamedAny of each x- member: name = 1, value = 2 */
static void put_extensions(struct strbuf *b, uint32_t number, const struct json *v)
{
    for (size_t i = 0; i < json_count(v); i++) {
        const char *key = json_key_at(v, i);
        if (str_has_prefix(key, "x-")) {
            size_t mark = pb_begin(b, number);
            put_text(b, 1, key);
            put_any(b, 2, json_at(v, i));
            pb_end(b, mark);
        }
    }
}

static void put_schema(struct strbuf *b, uint32_t number, const struct json *s);

/* Properties and Definitions: additional_properties = 1 {name = 1, value = 2} */
static void put_schemas(struct strbuf *b, uint32_t number, const struct json *map)
{
    if (!map) {
        return;
    }
    size_t mark = pb_begin(b, number);
    for (size_t i = 0; i < json_count(map); i++) {
        size_t entry = pb_begin(b, 1);
        put_text(b, 1, json_key_at(map, i));
        put_schema(b, 2, json_at(map, i));
        pb_end(b, entry);
    }
    pb_end(b, mark);
}

static void put_double(struct strbuf *b, uint32_t number, const struct json *v)
{
    if (v) {
        pb_put_double(b, number, strtod(json_number_text(v), NULL));
    }
}

static void put_count(struct strbuf *b, uint32_t number, const struct json *v)
{
    int64_t n = v ? json_get_int_or(v, 0) : 0;
    if (n > 0) {
        pb_put_uint(b, number, (uint64_t) n);
    }
}

static void put_flag(struct strbuf *b, uint32_t number, const struct json *v)
{
    if (json_get_bool(v, false)) {
        pb_put_uint(b, number, 1);
    }
}

/* Schema: _ref = 1, format = 2, description = 4, default = 5, multiple_of = 6, maximum = 7,
 * exclusive_maximum = 8, minimum = 9, exclusive_minimum = 10, max_length = 11, min_length = 12,
 * pattern = 13, max_items = 14, min_items = 15, unique_items = 16, max_properties = 17,
 * min_properties = 18, required = 19, enum = 20, additional_properties = 21 {schema = 1}, type =
 * 22 {value = 1}, items = 23 {schema = 1}, properties = 25, vendor_extension = 31 */
static void put_schema(struct strbuf *b, uint32_t number, const struct json *s)
{
    static const struct {
        uint32_t number;
        const char *name;
    } counts[] = {{11, "maxLength"}, {12, "minLength"},     {14, "maxItems"},
                  {15, "minItems"},  {17, "maxProperties"}, {18, "minProperties"}};
    const struct json *v;
    size_t mark = pb_begin(b, number), sub;
    put_text(b, 1, json_path_string(s, "$ref", NULL));
    put_text(b, 2, json_path_string(s, "format", NULL));
    put_text(b, 4, json_path_string(s, "description", NULL));
    if ((v = json_get(s, "default"))) {
        put_any(b, 5, v);
    }
    put_double(b, 6, json_get(s, "multipleOf"));
    put_double(b, 7, json_get(s, "maximum"));
    put_flag(b, 8, json_get(s, "exclusiveMaximum"));
    put_double(b, 9, json_get(s, "minimum"));
    put_flag(b, 10, json_get(s, "exclusiveMinimum"));
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
        put_count(b, counts[i].number, json_get(s, counts[i].name));
    }
    put_text(b, 13, json_path_string(s, "pattern", NULL));
    put_flag(b, 16, json_get(s, "uniqueItems"));
    put_texts(b, 19, json_get(s, "required"));
    JSON_FOREACH (v, json_get(s, "enum")) {
        put_any(b, 20, v);
    }
    if ((v = json_get(s, "additionalProperties"))) {
        sub = pb_begin(b, 21);
        put_schema(b, 1, v);
        pb_end(b, sub);
    }
    if ((v = json_get(s, "type"))) {
        sub = pb_begin(b, 22);
        put_text(b, 1, json_get_string(v));
        pb_end(b, sub);
    }
    if ((v = json_get(s, "items"))) {
        sub = pb_begin(b, 23);
        put_schema(b, 1, v);
        pb_end(b, sub);
    }
    put_schemas(b, 25, json_get(s, "properties"));
    put_extensions(b, 31, s);
    pb_end(b, mark);
}

/* ParametersItem: parameter = 1 {non_body_parameter = 2 {query_parameter_sub_schema = 3,
 * path_parameter_sub_schema = 4}}, which have required = 1, in = 2, name = 4, and type = 7 and 6 */
static void put_parameters(struct strbuf *b, uint32_t number, const struct json *list)
{
    const struct json *p;
    JSON_FOREACH (p, list) {
        bool query = streq_null(json_path_string(p, "in", NULL), "query");
        size_t item = pb_begin(b, number), parameter = pb_begin(b, 1), kind = pb_begin(b, 2);
        size_t sub = pb_begin(b, query ? 3 : 4);
        put_flag(b, 1, json_get(p, "required"));
        put_text(b, 2, json_path_string(p, "in", NULL));
        put_text(b, 4, json_path_string(p, "name", NULL));
        put_text(b, query ? 7 : 6, json_path_string(p, "type", NULL));
        pb_end(b, sub);
        pb_end(b, kind);
        pb_end(b, parameter);
        pb_end(b, item);
    }
}

/* Operation: consumes = 7, parameters = 8, responses = 9 {response_code = 1 {name = 1, value = 2
 * {response = 1 {description = 1}}}}, vendor_extension = 13 */
static void put_operation(struct strbuf *b, uint32_t number, const struct json *op)
{
    size_t mark = pb_begin(b, number);
    put_texts(b, 7, json_get(op, "consumes"));
    put_parameters(b, 8, json_get(op, "parameters"));
    const struct json *responses = json_get(op, "responses");
    size_t all = pb_begin(b, 9);
    for (size_t i = 0; i < json_count(responses); i++) {
        size_t code = pb_begin(b, 1);
        put_text(b, 1, json_key_at(responses, i));
        size_t value = pb_begin(b, 2), response = pb_begin(b, 1);
        put_text(b, 1, json_path_string(json_at(responses, i), "description", NULL));
        pb_end(b, response);
        pb_end(b, value);
        pb_end(b, code);
    }
    pb_end(b, all);
    put_extensions(b, 13, op);
    pb_end(b, mark);
}

/* PathItem: get = 2, put = 3, post = 4, delete = 5, patch = 8, parameters = 9 */
static void put_path(struct strbuf *b, uint32_t number, const struct json *item)
{
    static const struct {
        uint32_t number;
        const char *method;
    } methods[] = {{2, "get"}, {3, "put"}, {4, "post"}, {5, "delete"}, {8, "patch"}};
    size_t mark = pb_begin(b, number);
    for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
        const struct json *op = json_get(item, methods[i].method);
        if (op) {
            put_operation(b, methods[i].number, op);
        }
    }
    put_parameters(b, 9, json_get(item, "parameters"));
    pb_end(b, mark);
}

/* Document: swagger = 1, info = 2 {title = 1, version = 2}, paths = 8 {path = 2 {name = 1, value
 * = 2}}, definitions = 9 */
void api_openapi_v2_encode(const struct json *doc, struct strbuf *out)
{
    put_text(out, 1, json_path_string(doc, "swagger", NULL));
    size_t mark = pb_begin(out, 2);
    put_text(out, 1, json_path_string(doc, "info", "title", NULL));
    put_text(out, 2, json_path_string(doc, "info", "version", NULL));
    pb_end(out, mark);
    const struct json *paths = json_get(doc, "paths");
    mark = pb_begin(out, 8);
    for (size_t i = 0; i < json_count(paths); i++) {
        size_t entry = pb_begin(out, 2);
        put_text(out, 1, json_key_at(paths, i));
        put_path(out, 2, json_at(paths, i));
        pb_end(out, entry);
    }
    pb_end(out, mark);
    put_schemas(out, 9, json_get(doc, "definitions"));
}
