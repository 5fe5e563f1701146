/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that all kinds use, and lookups in a schema. */
#include "api/schema.h"

#include "base/mem.h"

const struct api_schema api_schema_any = {.type = API_ANY, .nullable = true};
const struct api_schema api_schema_open = {.type = API_OBJECT, .preserve_unknown = true};
const struct api_schema api_schema_string = {.type = API_STRING};
const struct api_schema api_schema_boolean = {.type = API_BOOLEAN};
const struct api_schema api_schema_int32 = {.type = API_INTEGER, .format = "int32"};
const struct api_schema api_schema_int64 = {.type = API_INTEGER, .format = "int64"};
const struct api_schema api_schema_double = {.type = API_NUMBER, .format = "double"};
const struct api_schema api_schema_bytes = {.type = API_STRING, .format = "byte"};
const struct api_schema api_schema_int_or_string = {
    .type = API_INT_OR_STRING,
    .format = "int-or-string",
    .definition = "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
    .description = "A whole number or a string, as a port's number or name, or a percentage.",
};
const struct api_schema api_schema_time = {
    .type = API_STRING,
    .format = "date-time",
    .definition = "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
    .description = "A point in time as RFC 3339 text, to the second.",
};
const struct api_schema api_schema_micro_time = {
    .type = API_STRING,
    .format = "date-time",
    .definition = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime",
    .description = "A point in time as RFC 3339 text, to the microsecond.",
};
const struct api_schema api_schema_duration = {
    .type = API_STRING,
    .definition = "io.k8s.apimachinery.pkg.apis.meta.v1.Duration",
    .description = "A time span in Go's syntax, as 15s or 1m30.5s.",
};
/* Written as text or as a number; published as text, as in Kubernetes. */
const struct api_schema api_schema_quantity = {
    .type = API_INT_OR_STRING,
    .definition = "io.k8s.apimachinery.pkg.api.resource.Quantity",
    .description = "An amount: a number with a unit, as 100m, 1.5, 64Mi or 2G.",
};
const struct api_schema api_schema_string_map = {.type = API_OBJECT, .others = &api_schema_string};
const struct api_schema api_schema_bytes_map = {.type = API_OBJECT, .others = &api_schema_bytes};
const struct api_schema api_schema_quantity_map = {.type = API_OBJECT,
                                                   .others = &api_schema_quantity};
const struct api_schema api_schema_string_list = {.type = API_ARRAY, .items = &api_schema_string};
const struct api_schema api_schema_string_set = {
    .type = API_ARRAY,
    .items = &api_schema_string,
    .list_type = API_LIST_SET,
    .patch_key = "",
};

const struct api_schema *api_kind_schema(const struct api_kind *k)
{
    return k->schema ? k->schema : &api_schema_open;
}

/* strcmp, whose call is worth it only when the names begin alike. */
static int compare_names(const char *a, const char *b)
{
    unsigned char x = (unsigned char) *a, y = (unsigned char) *b;
    return x != y ? x - y : strcmp(a, b);
}

const struct api_field *api_schema_field(const struct api_schema *s, const char *name)
{
    size_t low = 0, high = s ? s->n_fields : 0;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = compare_names(name, s->fields[mid].name);
        if (order == 0) {
            return &s->fields[mid];
        }
        if (order < 0) {
            high = mid;
        } else {
            low = mid + 1;
        }
    }
    return NULL;
}

const struct api_schema *api_schema_member(const struct api_schema *s, const char *name)
{
    if (!s) {
        return NULL;
    }
    const struct api_field *f = api_schema_field(s, name);
    if (f) {
        return f->schema;
    }
    if (s->embedded) {
        if (streq(name, "apiVersion") || streq(name, "kind")) {
            return &api_schema_string;
        }
        if (streq(name, "metadata")) {
            return &api_schema_object_meta;
        }
    }
    if (s->others) {
        return s->others;
    }
    return s->preserve_unknown || s->type == API_ANY ? &api_schema_any : NULL;
}

const struct api_schema *api_schema_items(const struct api_schema *s)
{
    return s && s->items ? s->items : &api_schema_any;
}

bool api_schema_is_raw(const struct api_schema *s)
{
    return s->type == API_ANY ||
           (s->type == API_OBJECT && s->preserve_unknown && !s->n_fields && !s->others);
}

bool api_schema_is_granular(const struct api_schema *s, const struct json *v)
{
    if (json_is(v, JSON_OBJECT)) {
        return !s || s->type == API_ANY || (s->type == API_OBJECT && !s->atomic);
    }
    return json_is(v, JSON_ARRAY) && s && s->type == API_ARRAY && s->list_type != API_LIST_ATOMIC;
}

void api_schema_element_key(const struct api_schema *s, const struct json *item, struct strbuf *out)
{
    if (!s || s->list_type != API_LIST_MAP) {
        strbuf_adds(out, "v:");
        json_write(item, 0, out);
        return;
    }
    bool first = true;
    strbuf_adds(out, "k:{");
    for (size_t i = 0; s->keys[i]; i++) {
        const struct json *v = json_get(item, s->keys[i]);
        const struct api_schema *member = api_schema_member(s->items, s->keys[i]);
        CLEANUP(json_free) struct json *dflt = !v && member ? api_schema_default_of(member) : NULL;
        v = v ? v : dflt;
        if (!v) {
            continue;
        }
        if (!first) {
            strbuf_addc(out, ',');
        }
        first = false;
        json_write_string(s->keys[i], strlen(s->keys[i]), out);
        strbuf_addc(out, ':');
        json_write(v, 0, out);
    }
    strbuf_addc(out, '}');
}

void api_paths_done(struct api_paths *p)
{
    for (size_t i = 0; i < p->n; i++) {
        free(p->list[i]);
    }
    free(p->list);
    *p = (struct api_paths){0};
}
