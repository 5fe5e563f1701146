/* SPDX-License-Identifier: Apache-2.0 */
#include "api/openapi/openapi.h"

#include "api/schema.h"
#include "base/map.h"
#include "base/mem.h"

#include <stdio.h>

/* Maximum depth of nodes without a definition; deeper ones are published as any value. */
#define MAX_INLINE 24

/* A document being generated: each schema that is referred to becomes one of its definitions. */
struct document {
    bool v2;
    struct json *definitions;
    struct smap waiting; /* Referred to, and not generated yet. */
    unsigned depth;
};

/* ---- schemas ---- */

static struct json *texts(const char *const *list)
{
    struct json *out = json_array();
    for (size_t i = 0; list[i]; i++) {
        json_append(out, json_string(list[i]));
    }
    return out;
}

static struct json *schema_json(struct document *d, const struct api_schema *s);

/* The use of a schema: the schema itself, or a reference to its definition. */
static struct json *use(struct document *d, const struct api_schema *s)
{
    if (!s->definition) {
        d->depth++;
        struct json *out = d->depth > MAX_INLINE ? json_object() : schema_json(d, s);
        d->depth--;
        return out;
    }
    if (!json_get(d->definitions, s->definition)) {
        smap_set(&d->waiting, s->definition, (void *) s);
    }
    struct json *ref = json_object();
    json_set(ref, "$ref",
             json_stringf(d->v2 ? "#/definitions/%s" : "#/components/schemas/%s", s->definition));
    if (d->v2) {
        return ref;
    }
    /* Version 3 ignores members beside a reference. */
    struct json *out = json_object();
    json_append(json_ensure_array(out, "allOf"), ref);
    return out;
}

static void add_number(struct json *out, const char *key, double v)
{
    char text[64];
    snprintf(text, sizeof text, "%.17g", v);
    json_set(out, key, json_number_n(text, strlen(text)));
}

static void add_count(struct json *out, const char *key, int64_t n)
{
    if (n >= 0) {
        json_set_int(out, key, n);
    }
}

static void add_choices(struct document *d, struct json *out, const char *key,
                        const struct api_schema *const *list)
{
    for (size_t i = 0; list && list[i]; i++) {
        json_append(json_ensure_array(out, key), use(d, list[i]));
    }
}

static void add_limits(struct document *d, struct json *out, const struct api_limits *l)
{
    if (l->has_minimum) {
        add_number(out, "minimum", l->minimum);
        if (l->exclusive_minimum) {
            json_set_bool(out, "exclusiveMinimum", true);
        }
    }
    if (l->has_maximum) {
        add_number(out, "maximum", l->maximum);
        if (l->exclusive_maximum) {
            json_set_bool(out, "exclusiveMaximum", true);
        }
    }
    if (l->multiple_of > 0) {
        add_number(out, "multipleOf", l->multiple_of);
    }
    add_count(out, "minLength", l->min_length);
    add_count(out, "maxLength", l->max_length);
    add_count(out, "minItems", l->min_items);
    add_count(out, "maxItems", l->max_items);
    add_count(out, "minProperties", l->min_properties);
    add_count(out, "maxProperties", l->max_properties);
    if (l->unique_items) {
        json_set_bool(out, "uniqueItems", true);
    }
    json_set_string(out, "pattern", l->pattern);
    if (!d->v2) {
        /* Version 2 has only allOf. */
        add_choices(d, out, "allOf", l->all_of);
        add_choices(d, out, "anyOf", l->any_of);
        add_choices(d, out, "oneOf", l->one_of);
        if (l->not_) {
            json_set(out, "not", use(d, l->not_));
        }
    }
}

static void add_list(struct document *d, struct json *out, const struct api_schema *s)
{
    static const char *const types[] = {
        [API_LIST_ATOMIC] = "atomic", [API_LIST_SET] = "set", [API_LIST_MAP] = "map"};
    json_set_string(out, "type", "array");
    json_set(out, "items", use(d, api_schema_items(s)));
    json_set_string(out, "x-kubernetes-list-type", types[s->list_type]);
    if (s->keys) {
        json_set(out, "x-kubernetes-list-map-keys", texts(s->keys));
    }
    if (s->patch_key) {
        json_set_string(out, "x-kubernetes-patch-strategy",
                        s->retain_keys ? "merge,retainKeys" : "merge");
        if (*s->patch_key) {
            json_set_string(out, "x-kubernetes-patch-merge-key", s->patch_key);
        }
    }
}

static void add_object(struct document *d, struct json *out, const struct api_schema *s)
{
    if (s->type == API_OBJECT) {
        json_set_string(out, "type", "object");
    }
    if (s->atomic) {
        json_set_string(out, "x-kubernetes-map-type", "atomic");
    }
    if (s->embedded) {
        json_set_bool(out, "x-kubernetes-embedded-resource", true);
    }
    if (s->preserve_unknown) {
        json_set_bool(out, "x-kubernetes-preserve-unknown-fields", true);
    }
    if (d->v2 && (s->preserve_unknown || s->embedded)) {
        /* Version 2 cannot express that other members are allowed: clients would refuse them. */
        return;
    }
    if (s->others) {
        json_set(out, "additionalProperties", use(d, s->others));
    }
    for (size_t i = 0; i < s->n_fields; i++) {
        const struct api_field *f = &s->fields[i];
        struct json *p =
            json_set(json_ensure_object(out, "properties"), f->name, use(d, f->schema));
        json_set_string(p, "description", f->description);
        if (f->required) {
            json_append(json_ensure_array(out, "required"), json_string(f->name));
        }
    }
}

static void add_type(struct document *d, struct json *out, const struct api_schema *s)
{
    static const char *const types[] = {[API_BOOLEAN] = "boolean",
                                        [API_INTEGER] = "integer",
                                        [API_NUMBER] = "number",
                                        [API_STRING] = "string"};
    if (s->type == API_ARRAY) {
        add_list(d, out, s);
    } else if (s->type == API_OBJECT) {
        add_object(d, out, s);
    } else if (s->type == API_ANY) {
        add_object(d, out, s);
        if (s->items) {
            json_set(out, "items", use(d, s->items));
        }
        if (s == &api_schema_any) {
            json_set_bool(out, "x-kubernetes-preserve-unknown-fields", true);
        }
    } else if (s->type != API_INT_OR_STRING) {
        json_set_string(out, "type", types[s->type]);
    } else if (!s->definition) {
        json_set_bool(out, "x-kubernetes-int-or-string", true);
    } else if (d->v2) {
        json_set_string(out, "type", "string");
    } else {
        struct json *list = json_ensure_array(out, "oneOf");
        json_set_string(json_append(list, json_object()), "type", "string");
        json_set_string(json_append(list, json_object()), "type",
                        streq_null(s->format, "int-or-string") ? "integer" : "number");
    }
}

static struct json *schema_json(struct document *d, const struct api_schema *s)
{
    struct json *out = json_object();
    json_set_string(out, "description", s->description);
    add_type(d, out, s);
    json_set_string(out, "format", s->format);
    if (s->values_allowed) {
        json_set(out, "enum", texts(s->values_allowed));
    } else if (s->enum_json) {
        json_set(out, "enum", json_clone(s->enum_json));
    }
    if (s->nullable && !d->v2 && s->type != API_ANY) {
        json_set_bool(out, "nullable", true);
    }
    json_set(out, "default", api_schema_default_of(s));
    if (s->limits) {
        add_limits(d, out, s->limits);
    }
    return out;
}

/* ---- kinds ---- */

static struct json *kind_id(const struct api_kind *k)
{
    struct json *o = json_object();
    json_set_string(o, "group", k->group);
    json_set_string(o, "version", k->version);
    json_set_string(o, "kind", k->kind);
    return o;
}

/* "com.example.stable.v1.CronTab" for a kind whose schema has no name of its own; owned. */
static char *definition_name(const struct api_kind *k)
{
    const struct api_schema *s = api_kind_schema(k);
    if (s->definition) {
        return xstrdup(s->definition);
    }
    struct strbuf b = STRBUF_INIT;
    for (size_t end = strlen(k->group); end > 0;) {
        size_t start = end;
        while (start > 0 && k->group[start - 1] != '.') {
            start--;
        }
        strbuf_add(&b, k->group + start, end - start);
        strbuf_addc(&b, '.');
        end = start ? start - 1 : 0;
    }
    strbuf_addf(&b, "%s.%s", k->version, k->kind);
    return strbuf_steal(&b);
}

static void add_kind(struct document *d, const struct api_kind *k)
{
    CLEANUP_FREE char *name = definition_name(k);
    struct json *s = schema_json(d, api_kind_schema(k));
    if (!json_get(s, "description")) {
        json_set_string(s, "description", k->description);
    }
    json_append(json_ensure_array(s, "x-kubernetes-group-version-kind"), kind_id(k));
    json_set(d->definitions, name, s);
}

/* Generates referenced definitions until none is missing. */
static void complete(struct document *d)
{
    while (smap_size(&d->waiting)) {
        struct smap todo;
        struct smap_entry *e;
        smap_init(&todo, NULL);
        SMAP_FOREACH (e, &d->waiting) {
            smap_set(&todo, e->key, e->value);
        }
        smap_clear(&d->waiting);
        SMAP_FOREACH (e, &todo) {
            if (!json_get(d->definitions, e->key)) {
                json_set(d->definitions, e->key, schema_json(d, e->value));
            }
        }
        smap_done(&todo);
    }
}

/* ---- paths ---- */

char *api_openapi_key(const struct api_kind *k)
{
    return *k->group ? xasprintf("apis/%s/%s", k->group, k->version)
                     : xasprintf("api/%s", k->version);
}

static struct json *parameter(bool v2, const char *name, const char *in, const char *type)
{
    struct json *p = json_object();
    json_set_string(p, "name", name);
    json_set_string(p, "in", in);
    if (streq(in, "path")) {
        json_set_bool(p, "required", true);
    }
    if (v2) {
        json_set_string(p, "type", type);
    } else {
        json_set_string(json_ensure_object(p, "schema"), "type", type);
    }
    return p;
}

/* Media types that a write accepts. */
static const char *const object_types[] = {"application/json", "application/yaml", NULL};
static const char *const patch_types[] = {
    "application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml",
    "application/strategic-merge-patch+json", NULL};

static void add_body(struct document *d, struct json *op, const struct api_kind *k, bool patch)
{
    CLEANUP_FREE char *name = definition_name(k);
    const char *const *types = patch ? patch_types : object_types;
    if (d->v2) {
        struct json *list = json_ensure_array(op, "consumes");
        for (size_t i = 0; types[i]; i++) {
            if (!k->custom || !strstr(types[i], "strategic")) {
                json_append(list, json_string(types[i]));
            }
        }
        return;
    }
    struct json *content = json_ensure_object(json_ensure_object(op, "requestBody"), "content");
    for (size_t i = 0; types[i]; i++) {
        if (k->custom && strstr(types[i], "strategic")) {
            continue;
        }
        struct json *schema = json_ensure_object(json_ensure_object(content, types[i]), "schema");
        if (patch) {
            json_set_string(schema, "type", "object");
        } else {
            json_set(schema, "$ref", json_stringf("#/components/schemas/%s", name));
        }
    }
}

static struct json *operation(struct document *d, const struct api_kind *k, const char *action,
                              bool writes)
{
    struct json *o = json_object();
    struct json *ok = json_ensure_object(json_ensure_object(o, "responses"), "200");
    json_set_string(ok, "description", "OK");
    json_set_string(o, "x-kubernetes-action", action);
    json_set(o, "x-kubernetes-group-version-kind", kind_id(k));
    if (!writes) {
        return o;
    }
    struct json *list = json_ensure_array(o, "parameters");
    json_append(list, parameter(d->v2, "dryRun", "query", "string"));
    json_append(list, parameter(d->v2, "fieldManager", "query", "string"));
    json_append(list, parameter(d->v2, "fieldValidation", "query", "string"));
    if (streq(action, "patch")) {
        json_append(list, parameter(d->v2, "force", "query", "boolean"));
    }
    add_body(d, o, k, streq(action, "patch"));
    return o;
}

static void add_paths(struct document *d, struct json *paths, const struct api_kind *k)
{
    CLEANUP_FREE char *base = api_openapi_key(k);
    CLEANUP_FREE char *all =
        xasprintf("/%s%s/%s", base, k->namespaced ? "/namespaces/{namespace}" : "", k->plural);
    CLEANUP_FREE char *one = xasprintf("%s/{name}", all);
    struct json *list = json_ensure_object(paths, all);
    json_set(list, "get", operation(d, k, "list", false));
    json_set(list, "post", operation(d, k, "post", true));
    struct json *item = json_ensure_object(paths, one);
    json_set(item, "get", operation(d, k, "get", false));
    json_set(item, "put", operation(d, k, "put", true));
    json_set(item, "delete", operation(d, k, "delete", false));
    json_set(item, "patch", operation(d, k, "patch", true));
    struct json *params = json_ensure_array(item, "parameters");
    json_append(params, parameter(d->v2, "name", "path", "string"));
    if (k->namespaced) {
        json_append(params, parameter(d->v2, "namespace", "path", "string"));
        json_append(json_ensure_array(list, "parameters"),
                    parameter(d->v2, "namespace", "path", "string"));
    }
}

/* ---- documents ---- */

static struct json *new_document(const char *key, const char *value, const char *version)
{
    struct json *doc = json_object();
    json_set_string(doc, key, value);
    struct json *info = json_ensure_object(doc, "info");
    json_set_string(info, "title", "Tenet");
    json_set_string(info, "version", version);
    return doc;
}

/* Adds the kinds of the document 'key' (NULL: all) to 'doc'; returns their number. */
static size_t fill(struct document *d, struct json *doc, const struct api_registry *r,
                   const char *key)
{
    struct json *paths = json_ensure_object(doc, "paths");
    size_t n = 0;
    smap_init(&d->waiting, NULL);
    for (size_t i = 0; i < r->n; i++) {
        CLEANUP_FREE char *own = api_openapi_key(r->list[i]);
        if (!key || streq(own, key)) {
            add_paths(d, paths, r->list[i]);
            add_kind(d, r->list[i]);
            n++;
        }
    }
    complete(d);
    smap_done(&d->waiting);
    return n;
}

struct json *api_openapi_v3(const struct api_registry *r, const char *key, const char *version)
{
    CLEANUP(json_free) struct json *doc = new_document("openapi", "3.0.0", version);
    struct json *schemas = json_object();
    struct document d = {.definitions = schemas};
    size_t n = fill(&d, doc, r, key);
    json_set(json_ensure_object(doc, "components"), "schemas", schemas);
    return n ? TAKE(doc) : NULL;
}

struct json *api_openapi_v2(const struct api_registry *r, const char *version)
{
    struct json *doc = new_document("swagger", "2.0", version);
    struct json *definitions = json_object();
    struct document d = {.v2 = true, .definitions = definitions};
    fill(&d, doc, r, NULL);
    json_set(doc, "definitions", definitions);
    return doc;
}
