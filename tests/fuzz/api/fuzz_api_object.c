/* SPDX-License-Identifier: Apache-2.0 */
/* The first line is a label selector, the second a field selector, the rest a JSON object, which is
 * defaulted, validated (as new, as a change of itself and of an empty object, and through each
 * subresource), selected and shown as every kind. */
#include "api/schema.h"
#include "api/selector.h"
#include "api/table/table.h"
#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *line(const uint8_t **data, size_t *size)
{
    const uint8_t *nl = *size ? memchr(*data, '\n', *size) : NULL;
    size_t n = nl ? (size_t) (nl - *data) : *size;
    char *s = xstrndup((const char *) *data, n);
    n += nl != NULL;
    *data += n;
    *size -= n;
    return s;
}

static void validate(const struct api_kind *k, const char *subresource, const struct json *obj,
                     const struct json *old)
{
    CLEANUP(api_causes_done) struct api_causes c = {0};
    api_validate_part(k, subresource, obj, old, &c);
    for (size_t i = 0; i < c.n; i++) {
        if (!*c.list[i].field || !*c.list[i].message) {
            __builtin_trap();
        }
    }
}

static void run_parts(const struct api_kind *k, const struct json *obj, const struct json *old)
{
    const struct api_subresource *s;
    for (size_t i = 0; (s = api_kind_subresource_at(k, i)); i++) {
        CLEANUP(json_free) struct json *out = json_clone(obj);
        if (k->merge_part) {
            k->merge_part(s->name, out, old);
        }
        validate(k, s->name, out, old);
        validate(k, s->name, obj, out);
    }
}

static void run_kind(const struct api_kind *k, const struct json *given, const char *labels,
                     const char *fields)
{
    CLEANUP(json_free) struct json *obj = json_clone(given);
    CLEANUP(api_selector_free) struct api_selector *l = NULL;
    CLEANUP(api_selector_free) struct api_selector *f = NULL;
    CLEANUP_STRBUF struct strbuf row = STRBUF_INIT;
    json_ensure_object(obj, "metadata");
    if (k->prepare) {
        k->prepare(obj, NULL);
        k->prepare(obj, given);
    }
    api_schema_default(api_kind_schema(k), obj);
    if (k->defaults) {
        k->defaults(obj);
    }
    CLEANUP(json_free) struct json *empty = json_object();
    validate(k, "", obj, NULL);
    validate(k, "", obj, given);
    validate(k, "", obj, empty);
    run_parts(k, obj, given);
    CLEANUP(api_index_free) struct api_index *x = api_index_new(k, obj);
    api_selector_parse_labels(labels, &l, NULL);
    api_selector_parse_fields(k, fields, &f, NULL);
    api_selector_matches(l, x);
    api_selector_matches(f, x);
    CLEANUP_FREE char *text = json_to_text(obj);
    api_table_row(k, obj, text, strlen(text), API_INCLUDE_METADATA, 0, &row);
    CLEANUP(json_free) struct json *parsed = NULL;
    /* A row is JSON, but for the depth it adds. */
    if (json_parse(row.data, row.size, &parsed, NULL) == 0 &&
        json_count(json_get(parsed, "cells")) != k->n_columns) {
        __builtin_trap();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP_FREE char *labels = line(&data, &size);
    CLEANUP_FREE char *fields = line(&data, &size);
    CLEANUP(json_free) struct json *obj = NULL;
    if (json_parse((const char *) data, size, &obj, NULL) < 0 || !json_is(obj, JSON_OBJECT)) {
        obj = json_free(obj);
        obj = json_object();
    }
    for (size_t i = 0; api_kinds[i]; i++) {
        run_kind(api_kinds[i], obj, labels, fields);
    }
    return 0;
}
