/* SPDX-License-Identifier: Apache-2.0 */
/* Structural schemas: the rules for a CustomResourceDefinition's schema that make pruning,
 * defaults and merging well defined.  The rules and texts are those of apiextensions.k8s.io/v1. */
#include "api/crd/crd_schema.h"
#include "api/kind_util.h"
#include "api/pattern.h"
#include "base/mem.h"

#define OPEN "x-kubernetes-preserve-unknown-fields"
#define MAX_KEYS 16 /* Keys of a list's elements. */

/* Position of a node in a schema. */
struct place {
    const char *field;
    bool root;
    /* Below allOf, anyOf, oneOf or not: values are checked, no fields are declared. */
    bool in_junctor;
    bool typed; /* In a junctor: 'type' may be there, as in anyOf of x-kubernetes-int-or-string. */
};

static void check(const struct json *s, struct place at, struct api_causes *c);

static bool flag(const struct json *s, const char *key)
{
    return json_get_bool(json_get(s, key), false);
}

static bool is_set(const struct json *s, const char *key)
{
    const struct json *v = json_get(s, key);
    return v && !json_is(v, JSON_NULL);
}

/* Whether 's' gives the type of its values in another way. */
static bool may_be_untyped(const struct json *s)
{
    return flag(s, "x-kubernetes-int-or-string") || flag(s, "x-kubernetes-preserve-unknown-fields");
}

/* ---- forbidden keywords ---- */

static void check_forbidden(const struct json *s, const char *field, struct api_causes *c)
{
    static const char *const keys[] = {"$ref",          "definitions",       "dependencies",
                                       "$schema",       "patternProperties", "additionalItems",
                                       "discriminator", "readOnly",          "writeOnly",
                                       "xml",           "deprecated",        "id"};
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        if (is_set(s, keys[i])) {
            api_forbidden(c, API_FIELD("%s.%s", field, keys[i]), "%s is not supported", keys[i]);
        }
    }
    if (flag(s, "uniqueItems")) {
        api_forbidden(c, API_FIELD("%s.uniqueItems", field),
                      "uniqueItems cannot be set to true since the runtime complexity becomes "
                      "quadratic; use x-kubernetes-list-type: set");
    }
    if (json_count(json_get(s, "x-kubernetes-validations"))) {
        api_forbidden(
            c, API_FIELD("%s.x-kubernetes-validations", field),
            "rules in CEL are not evaluated by this server, and an object that breaks one "
            "would be taken: express it with enum, pattern, minimum, maximum, required or "
            "oneOf, or remove it");
    }
}

static void check_junctor_only(const struct json *s, const char *field, bool typed,
                               struct api_causes *c)
{
    static const char *const keys[] = {"description",
                                       "default",
                                       "additionalProperties",
                                       "nullable",
                                       "x-kubernetes-preserve-unknown-fields",
                                       "x-kubernetes-embedded-resource",
                                       "x-kubernetes-list-type",
                                       "x-kubernetes-list-map-keys",
                                       "x-kubernetes-map-type"};
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        if (is_set(s, keys[i])) {
            api_forbidden(c, API_FIELD("%s.%s", field, keys[i]),
                          "must be undefined to be structural");
        }
    }
    if (is_set(s, "type") && !typed) {
        api_forbidden(c, API_FIELD("%s.type", field), "must be empty to be structural");
    }
}

/* ---- values ---- */

static void check_numbers(const struct json *s, const char *field, struct api_causes *c)
{
    static const char *const numbers[] = {"minimum", "maximum", "multipleOf"};
    static const char *const counts[] = {"minLength", "maxLength",     "minItems",
                                         "maxItems",  "minProperties", "maxProperties"};
    static const char *const flags[] = {"exclusiveMinimum",
                                        "exclusiveMaximum",
                                        "nullable",
                                        "uniqueItems",
                                        "x-kubernetes-int-or-string",
                                        OPEN,
                                        "x-kubernetes-embedded-resource"};
    int64_t n;
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        const struct json *v = json_get(s, numbers[i]);
        if (is_set(s, numbers[i]) && !json_is(v, JSON_NUMBER)) {
            api_invalid(c, API_FIELD("%s.%s", field, numbers[i]), v, "must be a number");
        }
    }
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
        (void) api_field_int(c, API_FIELD("%s.%s", field, counts[i]), json_get(s, counts[i]), false,
                             0, INT64_MAX, &n);
    }
    for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
        (void) api_field_bool(c, API_FIELD("%s.%s", field, flags[i]), json_get(s, flags[i]));
    }
    const struct json *open = json_get(s, OPEN);
    if (json_is(open, JSON_BOOL) && !json_get_bool(open, false)) {
        api_invalid(c, API_FIELD("%s.%s", field, OPEN), open, "must be true or undefined");
    }
    const char *step = json_number_text(json_get(s, "multipleOf"));
    if (step && (step[0] == '-' || !strpbrk(step, "123456789"))) {
        api_invalid(c, API_FIELD("%s.multipleOf", field), json_get(s, "multipleOf"),
                    "must be greater than 0");
    }
}

static void check_values(const struct json *s, const char *field, struct api_causes *c)
{
    const struct json *pattern = json_get(s, "pattern"), *list = json_get(s, "enum");
    struct err e = {0};
    check_numbers(s, field, c);
    if (api_field_string(c, API_FIELD("%s.pattern", field), pattern, false)) {
        struct pattern *p = NULL;
        if (pattern_new(json_get_string(pattern), &p, &e) < 0) {
            api_invalid(c, API_FIELD("%s.pattern", field), pattern,
                        "must be a valid regular expression, but isn't: %s", e.text);
        }
        pattern_free(p);
    }
    if (api_field_array(c, API_FIELD("%s.enum", field), list) && json_count(list) == 0) {
        api_required(c, API_FIELD("%s.enum", field), "must have a value");
    }
    (void) api_field_string(c, API_FIELD("%s.format", field), json_get(s, "format"), false);
    (void) api_field_string(c, API_FIELD("%s.description", field), json_get(s, "description"),
                            false);
    const struct json *required = json_get(s, "required"), *name;
    if (api_field_array(c, API_FIELD("%s.required", field), required)) {
        JSON_FOREACH (name, required) {
            (void) api_field_string(c, API_FIELD("%s.required", field), name, true);
        }
    }
}

/* ---- types ---- */

static void check_type(const struct json *s, struct place at, struct api_causes *c)
{
    static const char *const types[] = {"array",  "boolean", "integer", "number",
                                        "object", "string",  NULL};
    const char *field = API_FIELD("%s.type", at.field);
    const struct json *type = json_get(s, "type");
    bool typed = json_string_size(type) > 0;
    if (at.in_junctor) {
        /* Kubernetes allows types here only beside int-or-string; as they only check, they are
         * harmless. */
        (void) api_field_enum(c, field, type, false, types);
        return;
    }
    if (flag(s, "x-kubernetes-int-or-string")) {
        if (typed) {
            api_forbidden(c, field, "must be empty if x-kubernetes-int-or-string is true");
        }
    } else if (at.root && !streq_null(json_get_string(type), "object")) {
        if (typed) {
            api_invalid(c, field, type, "must be object at the root");
        } else {
            api_required(c, field, "must not be empty at the root");
        }
    } else if (!typed && !may_be_untyped(s)) {
        api_required(c, field, "must not be empty for specified object fields");
    } else {
        (void) api_field_enum(c, field, type, false, types);
    }
}

static bool is_type(const struct json *s, const char *type)
{
    return streq_null(json_path_string(s, "type", NULL), type);
}

static void check_map_keys(const struct json *s, const char *field, struct api_causes *c)
{
    const struct json *keys = json_get(s, "x-kubernetes-list-map-keys"), *key;
    const struct json *items = json_get(s, "items");
    if (json_count(keys) == 0) {
        api_required(c, API_FIELD("%s.x-kubernetes-list-map-keys", field),
                     "must not be empty if x-kubernetes-list-type is map");
    }
    if (!is_type(items, "object")) {
        api_invalid(c, API_FIELD("%s.items.type", field), json_get(items, "type"),
                    "must be object if parent array's x-kubernetes-list-type is map");
    }
    if (json_count(keys) > MAX_KEYS) {
        api_too_many(c, API_FIELD("%s.x-kubernetes-list-map-keys", field), json_count(keys),
                     MAX_KEYS);
        return;
    }
    for (size_t i = 0; i < json_count(keys); i++) {
        const char *where = API_FIELD("%s.x-kubernetes-list-map-keys[%zu]", field, i);
        key = json_at(keys, i);
        if (!api_field_string(c, where, key, true)) {
            continue;
        }
        const char *name = json_get_string(key);
        const struct json *prop = json_path(items, "properties", name, NULL), *r;
        bool required = is_set(prop, "default");
        JSON_FOREACH (r, json_get(items, "required")) {
            required |= streq_null(json_get_string(r), name);
        }
        if (!prop) {
            api_invalid(c, where, key, "entries must all be names of item properties");
        } else if (is_type(prop, "array") || is_type(prop, "object")) {
            api_invalid(c, where, key, "the property must have a scalar type");
        } else if (!required) {
            api_required(c, API_FIELD("%s.items.properties[%s].default", field, name),
                         "this property is in x-kubernetes-list-map-keys, so it must have a "
                         "default or be a required property");
        }
    }
}

static void check_array(const struct json *s, struct place at, struct api_causes *c)
{
    static const char *const types[] = {"atomic", "map", "set", NULL};
    const char *field = at.field;
    const struct json *items = json_get(s, "items"), *list = json_get(s, "x-kubernetes-list-type");
    if (is_type(s, "array") && !at.in_junctor && !items) {
        api_required(c, API_FIELD("%s.items", field), "must be specified");
    }
    if (items && !json_is(items, JSON_OBJECT)) {
        api_forbidden(c, API_FIELD("%s.items", field),
                      "items must be a schema object and not an array");
        return;
    }
    if (!is_set(s, "x-kubernetes-list-type") || at.in_junctor) {
        if (is_set(s, "x-kubernetes-list-map-keys") && !at.in_junctor) {
            api_forbidden(c, API_FIELD("%s.x-kubernetes-list-map-keys", field),
                          "may only be set if x-kubernetes-list-type is map");
        }
        return;
    }
    if (!is_type(s, "array")) {
        api_invalid(c, API_FIELD("%s.type", field), json_get(s, "type"),
                    "must be array if x-kubernetes-list-type is specified");
    } else if (api_field_enum(c, API_FIELD("%s.x-kubernetes-list-type", field), list, true,
                              types)) {
        bool is_map = streq(json_get_string(list), "map");
        if (is_map) {
            check_map_keys(s, field, c);
        } else if (is_set(s, "x-kubernetes-list-map-keys")) {
            api_forbidden(c, API_FIELD("%s.x-kubernetes-list-map-keys", field),
                          "may only be set if x-kubernetes-list-type is map");
        }
        if (streq(json_get_string(list), "set") && is_type(items, "object") &&
            !streq_null(json_path_string(items, "x-kubernetes-map-type", NULL), "atomic")) {
            api_invalid(c, API_FIELD("%s.items.x-kubernetes-map-type", field),
                        json_get(items, "x-kubernetes-map-type"),
                        "must be atomic as item of a list with x-kubernetes-list-type=set");
        }
    }
}

static void check_object(const struct json *s, struct place at, struct api_causes *c)
{
    static const char *const types[] = {"atomic", "granular", NULL};
    const char *field = at.field;
    const struct json *props = json_get(s, "properties"), *more;
    more = json_get(s, "additionalProperties");
    (void) api_field_object(c, API_FIELD("%s.properties", field), props);
    (void) api_field_enum(c, API_FIELD("%s.x-kubernetes-map-type", field),
                          json_get(s, "x-kubernetes-map-type"), false, types);
    if (is_set(s, "additionalProperties") && json_count(props)) {
        api_forbidden(c, API_FIELD("%s.additionalProperties", field),
                      "additionalProperties and properties are mutually exclusive");
    }
    if (json_is(more, JSON_BOOL) && !json_get_bool(more, true)) {
        api_forbidden(c, API_FIELD("%s.additionalProperties", field),
                      "additionalProperties cannot be set to false");
    } else if (more && !json_is(more, JSON_BOOL) && !json_is(more, JSON_OBJECT) &&
               !json_is(more, JSON_NULL)) {
        api_invalid(c, API_FIELD("%s.additionalProperties", field), more,
                    "must be a schema or true");
    }
    if (flag(s, "x-kubernetes-embedded-resource")) {
        if (!is_type(s, "object")) {
            api_invalid(c, API_FIELD("%s.type", field), json_get(s, "type"),
                        "must be object if x-kubernetes-embedded-resource is true");
        }
        if (json_count(props) == 0 && !flag(s, "x-kubernetes-preserve-unknown-fields")) {
            api_required(c, API_FIELD("%s.properties", field),
                         "must not be empty if x-kubernetes-embedded-resource is true without "
                         "x-kubernetes-preserve-unknown-fields");
        }
    }
}

/* metadata of a whole object: only its name can be restricted further. */
static void check_metadata(const struct json *s, const char *field, struct api_causes *c)
{
    const struct json *props = json_get(s, "properties");
    if (!is_type(s, "object")) {
        api_invalid(c, API_FIELD("%s.type", field), json_get(s, "type"), "must be object");
    }
    for (size_t i = 0; i < json_count(props); i++) {
        const char *key = json_key_at(props, i);
        if (!streq(key, "name") && !streq(key, "generateName")) {
            api_forbidden(c, field,
                          "must not specify anything other than name and generateName, but "
                          "metadata is implicitly specified");
            return;
        }
    }
}

/* ---- child nodes ---- */

/* A default must be a valid value. */
static void check_default(const struct json *s, const char *field, struct api_causes *c)
{
    const struct json *dflt = json_get(s, "default");
    if (!dflt) {
        return;
    }
    if (json_is(dflt, JSON_NULL)) {
        if (!flag(s, "nullable")) {
            api_invalid(c, API_FIELD("%s.default", field), dflt,
                        "must not be null as the field is not nullable");
        }
        return;
    }
    struct crd_nodes *nodes = crd_nodes_new();
    const struct api_schema *schema = crd_schema_make_value(nodes, s);
    CLEANUP(json_free) struct json *value = json_clone(dflt);
    CLEANUP(api_paths_done) struct api_paths unknown = {0};
    CLEANUP(api_causes_done) struct api_causes wrong = {0};
    api_schema_prune(schema, value, &unknown);
    api_schema_default(schema, value);
    api_schema_validate(schema, value, &wrong);
    if (unknown.n) {
        api_invalid(c, API_FIELD("%s.default", field), dflt, "must not have unknown fields: %s",
                    unknown.list[0]);
    } else if (wrong.n) {
        const char *below = wrong.list[0].field;
        bool root = streq(below, "<root>");
        api_invalid(c, API_FIELD("%s.default", field), dflt, "%s%s%s", root ? "" : below,
                    root ? "" : ": ", wrong.list[0].message);
    }
    crd_nodes_free(nodes);
}

static void check_junctors(const struct json *s, struct place at, struct api_causes *c)
{
    static const char *const keys[] = {"allOf", "anyOf", "oneOf"};
    bool either = flag(s, "x-kubernetes-int-or-string") || at.typed;
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        const struct json *list = json_get(s, keys[i]);
        if (!api_field_array(c, API_FIELD("%s.%s", at.field, keys[i]), list)) {
            continue;
        }
        for (size_t k = 0; k < json_count(list); k++) {
            CLEANUP_FREE char *field = xasprintf("%s.%s[%zu]", at.field, keys[i], k);
            bool typed = either && !streq(keys[i], "oneOf");
            check(json_at(list, k),
                  (struct place){.field = field, .in_junctor = true, .typed = typed}, c);
        }
    }
    if (is_set(s, "not")) {
        CLEANUP_FREE char *field = xasprintf("%s.not", at.field);
        check(json_get(s, "not"), (struct place){.field = field, .in_junctor = true}, c);
    }
}

static void check_properties(const struct json *s, struct place at, struct api_causes *c)
{
    const struct json *props = json_get(s, "properties");
    bool whole = at.root || flag(s, "x-kubernetes-embedded-resource");
    for (size_t i = 0; json_is(props, JSON_OBJECT) && i < json_count(props); i++) {
        const char *key = json_key_at(props, i);
        CLEANUP_FREE char *field = xasprintf("%s.properties[%s]", at.field, key);
        bool standard = whole && (streq(key, "apiVersion") || streq(key, "kind"));
        if (whole && !at.in_junctor && streq(key, "metadata")) {
            check_metadata(json_at(props, i), field, c);
        }
        if (standard && !at.in_junctor && !is_type(json_at(props, i), "string")) {
            api_invalid(c, API_FIELD("%s.type", field), json_get(json_at(props, i), "type"),
                        "must be string");
        }
        check(json_at(props, i), (struct place){.field = field, .in_junctor = at.in_junctor}, c);
    }
}

static void check(const struct json *s, struct place at, struct api_causes *c)
{
    if (c->n >= API_MAX_CAUSES) {
        return;
    }
    if (!json_is(s, JSON_OBJECT)) {
        api_invalid(c, at.field, s, "must be a schema");
        return;
    }
    size_t before = c->n;
    check_forbidden(s, at.field, c);
    if (at.in_junctor) {
        check_junctor_only(s, at.field, at.typed, c);
    }
    check_type(s, at, c);
    check_values(s, at.field, c);
    check_object(s, at, c);
    check_array(s, at, c);
    check_junctors(s, at, c);
    check_properties(s, at, c);
    if (json_is(json_get(s, "additionalProperties"), JSON_OBJECT)) {
        CLEANUP_FREE char *field = xasprintf("%s.additionalProperties", at.field);
        check(json_get(s, "additionalProperties"),
              (struct place){.field = field, .in_junctor = at.in_junctor}, c);
    }
    if (json_is(json_get(s, "items"), JSON_OBJECT)) {
        CLEANUP_FREE char *field = xasprintf("%s.items", at.field);
        check(json_get(s, "items"), (struct place){.field = field, .in_junctor = at.in_junctor}, c);
    }
    /* Nodes are created only from a valid schema. */
    if (c->n == before && !at.in_junctor) {
        check_default(s, at.field, c);
    }
}

void crd_schema_check(const struct json *schema, const char *field, struct api_causes *c)
{
    check(schema, (struct place){.field = field, .root = true}, c);
}
