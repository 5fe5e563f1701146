/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles openAPIV3Schema to the schema nodes that all kinds use. */
#include "api/crd/crd_schema.h"

#include "api/pattern.h"
#include "base/mem.h"

#include <stdlib.h>

struct crd_nodes {
    void **list;
    size_t n, cap;
    struct pattern **patterns;
    size_t n_patterns, cap_patterns;
};

struct crd_nodes *crd_nodes_new(void)
{
    return NEW(struct crd_nodes);
}

struct crd_nodes *crd_nodes_free(struct crd_nodes *n)
{
    if (n) {
        for (size_t i = 0; i < n->n; i++) {
            free(n->list[i]);
        }
        for (size_t i = 0; i < n->n_patterns; i++) {
            pattern_free(n->patterns[i]);
        }
        free(n->list);
        free(n->patterns);
        free(n);
    }
    return NULL;
}

/* Zeroed memory that is freed with the nodes. */
static void *allocate(struct crd_nodes *n, size_t count, size_t size)
{
    n->list = grow(n->list, &n->cap, n->n + 1, sizeof(*n->list));
    return n->list[n->n++] = xcalloc(count, size);
}

/* The strings of a list, NULL-terminated. */
static const char *const *strings(struct crd_nodes *n, const struct json *list)
{
    const char **s = allocate(n, json_count(list) + 1, sizeof(*s));
    for (size_t i = 0; i < json_count(list); i++) {
        s[i] = json_get_string(json_at(list, i));
    }
    return s;
}

static const struct api_schema *make(struct crd_nodes *n, const struct json *s);

/* ---- limits ---- */

static bool get_number(const struct json *s, const char *key, double *ret)
{
    const char *text = json_number_text(json_get(s, key));
    if (text) {
        *ret = strtod(text, NULL);
    }
    return text != NULL;
}

static const struct api_schema *const *make_list(struct crd_nodes *n, const struct json *list)
{
    if (!list) {
        return NULL;
    }
    const struct api_schema **out = allocate(n, json_count(list) + 1, sizeof(*out));
    for (size_t i = 0; i < json_count(list); i++) {
        out[i] = make(n, json_at(list, i));
    }
    return out;
}

static bool has_limits(const struct json *s)
{
    static const char *const keys[] = {
        "minimum",     "maximum",  "multipleOf",    "minLength", "maxLength",
        "minItems",    "maxItems", "minProperties", "pattern",   "maxProperties",
        "uniqueItems", "allOf",    "anyOf",         "oneOf",     "not",
    };
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        if (json_get(s, keys[i])) {
            return true;
        }
    }
    return false;
}

static struct api_limits *make_limits(struct crd_nodes *n, const struct json *s)
{
    struct api_limits *l = allocate(n, 1, sizeof(*l));
    *l = (struct api_limits) API_LIMITS_NONE;
    l->has_minimum = get_number(s, "minimum", &l->minimum);
    l->has_maximum = get_number(s, "maximum", &l->maximum);
    l->exclusive_minimum = json_get_bool(json_get(s, "exclusiveMinimum"), false);
    l->exclusive_maximum = json_get_bool(json_get(s, "exclusiveMaximum"), false);
    (void) get_number(s, "multipleOf", &l->multiple_of);
    l->min_length = json_get_int_or(json_get(s, "minLength"), -1);
    l->max_length = json_get_int_or(json_get(s, "maxLength"), -1);
    l->min_items = json_get_int_or(json_get(s, "minItems"), -1);
    l->max_items = json_get_int_or(json_get(s, "maxItems"), -1);
    l->min_properties = json_get_int_or(json_get(s, "minProperties"), -1);
    l->max_properties = json_get_int_or(json_get(s, "maxProperties"), -1);
    l->unique_items = json_get_bool(json_get(s, "uniqueItems"), false);
    l->pattern = json_path_string(s, "pattern", NULL);
    struct pattern *compiled;
    if (l->pattern && pattern_new(l->pattern, &compiled, NULL) == 0) {
        n->patterns =
            grow(n->patterns, &n->cap_patterns, n->n_patterns + 1, sizeof(struct pattern *));
        l->compiled = n->patterns[n->n_patterns++] = compiled;
    }
    l->all_of = make_list(n, json_get(s, "allOf"));
    l->any_of = make_list(n, json_get(s, "anyOf"));
    l->one_of = make_list(n, json_get(s, "oneOf"));
    l->not_ = json_get(s, "not") ? make(n, json_get(s, "not")) : NULL;
    return l;
}

/* ---- nodes ---- */

static enum api_type type_of(const struct json *s)
{
    static const struct {
        const char *name;
        enum api_type type;
    } types[] = {{"object", API_OBJECT},   {"array", API_ARRAY},   {"string", API_STRING},
                 {"integer", API_INTEGER}, {"number", API_NUMBER}, {"boolean", API_BOOLEAN}};
    const char *name = json_path_string(s, "type", NULL);
    if (json_get_bool(json_get(s, "x-kubernetes-int-or-string"), false)) {
        return API_INT_OR_STRING;
    }
    for (size_t i = 0; name && i < ARRAY_SIZE(types); i++) {
        if (streq(name, types[i].name)) {
            return types[i].type;
        }
    }
    return API_ANY;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct api_field *) a)->name, ((const struct api_field *) b)->name);
}

static struct api_field *find_field(struct api_field *list, size_t n, const char *name)
{
    return bsearch(&(struct api_field){.name = name}, list, n, sizeof(*list), by_name);
}

/* The declared members, and those that are only required, in order; 'more' elements are left
 * free at the end. */
static struct api_field *make_fields(struct crd_nodes *n, const struct json *s, size_t more,
                                     uint32_t *ret_n)
{
    const struct json *props = json_get(s, "properties"), *required = json_get(s, "required"), *r;
    size_t declared = json_count(props), count = declared, unique = 0;
    struct api_field *list = allocate(n, declared + json_count(required) + more + 1, sizeof(*list));
    for (size_t i = 0; i < declared; i++) {
        list[i] =
            (struct api_field){.name = json_key_at(props, i), .schema = make(n, json_at(props, i))};
    }
    qsort(list, declared, sizeof(*list), by_name);
    JSON_FOREACH (r, required) {
        struct api_field *f = find_field(list, declared, json_get_string(r));
        if (!f) {
            f = &list[count++];
            *f = (struct api_field){.name = json_get_string(r), .schema = &api_schema_any};
        }
        f->required = true;
    }
    qsort(list, count, sizeof(*list), by_name);
    for (size_t i = 0; i < count; i++) {
        if (!unique || !streq(list[unique - 1].name, list[i].name)) {
            list[unique++] = list[i];
        }
    }
    *ret_n = (uint32_t) unique;
    return list;
}

static void make_enum(struct crd_nodes *n, const struct json *list, struct api_schema *node)
{
    const struct json *v;
    bool all_strings = true;
    JSON_FOREACH (v, list) {
        all_strings &= json_is(v, JSON_STRING);
    }
    if (list && all_strings) {
        node->values_allowed = strings(n, list);
    } else {
        node->enum_json = list;
    }
}

static void fill(struct crd_nodes *n, const struct json *s, struct api_schema *node)
{
    const struct json *more = json_get(s, "additionalProperties");
    const char *list_type = json_path_string(s, "x-kubernetes-list-type", NULL);
    node->type = type_of(s);
    /* Possibly somewhere below: searching for defaults costs as much as recording their place. */
    node->defaulted = true;
    node->description = json_path_string(s, "description", NULL);
    node->format = json_path_string(s, "format", NULL);
    node->nullable = json_get_bool(json_get(s, "nullable"), false);
    node->dflt = json_get(s, "default");
    make_enum(n, json_get(s, "enum"), node);
    node->limits = has_limits(s) ? make_limits(n, s) : NULL;
    node->others = json_is(more, JSON_OBJECT)   ? make(n, more)
                   : json_get_bool(more, false) ? &api_schema_any
                                                : NULL;
    node->preserve_unknown =
        json_get_bool(json_get(s, "x-kubernetes-preserve-unknown-fields"), false);
    node->embedded = json_get_bool(json_get(s, "x-kubernetes-embedded-resource"), false);
    node->atomic = streq_null(json_path_string(s, "x-kubernetes-map-type", NULL), "atomic");
    node->items = json_get(s, "items") ? make(n, json_get(s, "items")) : NULL;
    if (list_type && streq(list_type, "set")) {
        node->list_type = API_LIST_SET;
    } else if (list_type && streq(list_type, "map")) {
        node->list_type = API_LIST_MAP;
        node->keys = strings(n, json_get(s, "x-kubernetes-list-map-keys"));
    }
}

static const struct api_schema *make(struct crd_nodes *n, const struct json *s)
{
    struct api_schema *node = allocate(n, 1, sizeof(*node));
    fill(n, s, node);
    node->fields = make_fields(n, s, 0, &node->n_fields);
    return node;
}

/* Requirements on metadata beyond those of all objects, as a limit of the root. */
static const struct api_limits *with_metadata(struct crd_nodes *n, const struct json *metadata,
                                              const struct api_limits *limits)
{
    struct api_limits *l = allocate(n, 1, sizeof(*l));
    const struct api_schema **all = allocate(n, 3, sizeof(*all));
    struct api_schema *outer = allocate(n, 1, sizeof(*outer)), *inner;
    struct api_field *field = allocate(n, 1, sizeof(*field));
    inner = (struct api_schema *) make(n, metadata);
    inner->type = API_ANY;
    *field = (struct api_field){.name = "metadata", .schema = inner};
    *outer = (struct api_schema){.fields = field, .n_fields = 1};
    /* A node has only one such list: the former content becomes a node of its own. */
    *l = (struct api_limits) API_LIMITS_NONE;
    struct api_schema *before = allocate(n, 1, sizeof(*before));
    before->limits = limits;
    all[0] = outer;
    all[1] = limits ? before : NULL;
    l->all_of = all;
    return l;
}

const struct api_schema *crd_schema_make_value(struct crd_nodes *n, const struct json *schema)
{
    return make(n, schema);
}

const struct api_schema *crd_schema_make(struct crd_nodes *n, const struct json *schema)
{
    static const struct api_field common[] = {API_ROOT_API_VERSION, API_ROOT_KIND,
                                              API_ROOT_METADATA};
    struct api_schema *root = allocate(n, 1, sizeof(*root));
    uint32_t count;
    fill(n, schema, root);
    root->type = API_OBJECT;
    root->defaulted = true;
    struct api_field *fields = make_fields(n, schema, ARRAY_SIZE(common), &count);
    const struct json *metadata = json_path(schema, "properties", "metadata", NULL);
    for (size_t i = 0; i < ARRAY_SIZE(common); i++) {
        struct api_field *f = find_field(fields, count, common[i].name);
        f = f ? f : &fields[count++];
        *f = common[i];
        qsort(fields, count, sizeof(*fields), by_name);
    }
    if (json_count(json_get(metadata, "properties"))) {
        root->limits = with_metadata(n, metadata, root->limits);
    }
    root->fields = fields;
    root->n_fields = count;
    return root;
}
