/* SPDX-License-Identifier: Apache-2.0 */
#include "api/table/table.h"

#include "api/kind_util.h"
#include "api/table/jsonpath.h"

static void add_text(struct strbuf *out, const char *key, const char *s)
{
    strbuf_addf(out, "\"%s\":", key);
    json_write_string(s, strlen(s), out);
}

void api_table_columns(const struct api_kind *k, struct strbuf *out)
{
    strbuf_addc(out, '[');
    for (size_t i = 0; i < k->n_columns; i++) {
        const struct api_column *c = &k->columns[i];
        strbuf_adds(out, i ? ",{" : "{");
        add_text(out, "name", c->name);
        strbuf_addc(out, ',');
        add_text(out, "type", c->type);
        strbuf_addc(out, ',');
        add_text(out, "format", c->format);
        strbuf_addc(out, ',');
        add_text(out, "description", c->description);
        strbuf_addf(out, ",\"priority\":%d}", c->priority);
    }
    strbuf_addc(out, ']');
}

static const struct json *walk(const char *const *members, const struct json *v)
{
    for (; *members && v; members++) {
        v = json_get(v, *members);
    }
    return v;
}

static ssize_t find(const struct api_column *c, const struct json *obj, const struct json **found,
                    size_t max)
{
    if (!c->members) {
        return jsonpath_find(c->path, obj, found, max, NULL);
    }
    found[0] = walk(c->members, obj);
    return found[0] ? 1 : 0;
}

static bool shows_text(const struct api_column *c)
{
    return streq(c->type, "string") && !c->count && !c->list;
}

/* A number or truth value that is absent is shown as one, too. */
static struct json *absent_cell(const struct api_column *c)
{
    struct json *v = NULL;
    bool text = !c->absent || streq(c->type, "string");
    if (!text && json_parse(c->absent, strlen(c->absent), &v, NULL) == 0) {
        return v;
    }
    return c->absent ? json_string(c->absent) : json_null();
}

/* The value at the column's path, by its type; as in Kubernetes, only texts show more than one
 * value. */
static struct json *found_cell(const struct api_column *c, const struct json *obj, int64_t now_ms)
{
    enum { MAX_FOUND = 64 };
    const struct json *found[MAX_FOUND];
    ssize_t n = find(c, obj, found, MAX_FOUND);
    int64_t whole;
    if (n == 1 && json_is(found[0], JSON_STRING) && shows_text(c)) {
        return api_cell_text(json_get_string(found[0]), c->absent ? c->absent : "");
    }
    if (c->count) {
        return json_int(n > 0 ? (int64_t) json_count(found[0]) : 0);
    }
    if (c->list) {
        return api_cell_list(n > 0 ? found[0] : NULL);
    }
    if (n <= 0) {
        return absent_cell(c);
    }
    if (streq(c->type, "string")) {
        CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
        for (size_t i = 0; i < MIN((size_t) n, (size_t) MAX_FOUND); i++) {
            strbuf_adds(&text, i ? " " : "");
            if (json_is(found[i], JSON_STRING)) {
                strbuf_adds(&text, json_get_string(found[i]));
            } else if (!json_is(found[i], JSON_NULL)) {
                json_write(found[i], 0, &text);
            }
        }
        return !text.size && c->absent ? json_string(c->absent) : json_string(strbuf_cstr(&text));
    }
    if (streq(c->type, "date")) {
        const char *s = json_get_string(found[0]);
        return s ? api_cell_since(s, now_ms) : json_null();
    }
    bool fits = streq(c->type, "integer")  ? json_get_int(found[0], &whole) == 0
                : streq(c->type, "number") ? json_is(found[0], JSON_NUMBER)
                                           : json_is(found[0], JSON_BOOL);
    return fits ? json_clone(found[0]) : json_null();
}

struct json *api_column_cell(const struct api_column *c, const struct json *obj, int64_t now_ms)
{
    return c->cell ? c->cell(obj, now_ms) : found_cell(c, obj, now_ms);
}

void api_table_row(const struct api_kind *k, const struct json *obj, const char *text, size_t size,
                   enum api_include include, int64_t now_ms, struct strbuf *out)
{
    strbuf_adds(out, "{\"cells\":[");
    for (size_t i = 0; i < k->n_columns; i++) {
        CLEANUP(json_free) struct json *cell = api_column_cell(&k->columns[i], obj, now_ms);
        if (i) {
            strbuf_addc(out, ',');
        }
        json_write(cell, 0, out);
    }
    strbuf_adds(out, "],\"object\":");
    if (include == API_INCLUDE_OBJECT) {
        strbuf_add(out, text, size);
    } else if (include == API_INCLUDE_METADATA) {
        strbuf_adds(out, "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\","
                         "\"metadata\":");
        json_write(json_get(obj, "metadata"), 0, out);
        strbuf_addc(out, '}');
    } else {
        strbuf_adds(out, "null");
    }
    strbuf_addc(out, '}');
}
