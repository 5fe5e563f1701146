/* SPDX-License-Identifier: Apache-2.0 */
#include "api/table.h"

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

void api_partial_write(const struct json *obj, const char *version, struct strbuf *out)
{
    strbuf_addf(out,
                "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/%s\","
                "\"metadata\":",
                version);
    json_write(json_get(obj, "metadata"), 0, out);
    strbuf_addc(out, '}');
}

void api_table_row(const struct api_kind *k, const struct json *obj, const char *text, size_t size,
                   enum api_include include, int64_t now_ms, struct strbuf *out)
{
    strbuf_adds(out, "{\"cells\":[");
    for (size_t i = 0; i < k->n_columns; i++) {
        CLEANUP(json_free) struct json *cell = k->columns[i].cell(obj, now_ms);
        if (i) {
            strbuf_addc(out, ',');
        }
        json_write(cell, 0, out);
    }
    strbuf_adds(out, "],\"object\":");
    if (include == API_INCLUDE_OBJECT) {
        strbuf_add(out, text, size);
    } else if (include == API_INCLUDE_METADATA) {
        api_partial_write(obj, "v1", out);
    } else {
        strbuf_adds(out, "null");
    }
    strbuf_addc(out, '}');
}
