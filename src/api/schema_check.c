/* SPDX-License-Identifier: Apache-2.0 */
/* Objects against their schemas: pruning, defaults, validation.  The depth is that of the
 * object, which is bounded by JSON_MAX_DEPTH. */
#include "api/schema.h"

#include "api/format.h"
#include "api/moment.h"
#include "api/pattern.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/timeutil.h"

#include <math.h>
#include <stdio.h>

#define PATH_NAME_MAX 256 /* Bytes of a name in a path. */

/* ---- paths ---- */

/* Appends ".name" or "[i]"; returns the length to go back to. */
static size_t push_name(struct strbuf *path, const char *name)
{
    size_t size = path->size;
    if (size) {
        strbuf_addc(path, '.');
    }
    strbuf_addn(path, name, PATH_NAME_MAX);
    return size;
}

static size_t push_index(struct strbuf *path, size_t i)
{
    size_t size = path->size;
    strbuf_addf(path, "[%zu]", i);
    return size;
}

static void pop(struct strbuf *path, size_t size)
{
    path->size = size;
    if (path->data) {
        path->data[size] = '\0';
    }
}

/* ---- pruning ---- */

static void add_path(struct api_paths *p, const struct strbuf *path)
{
    if (p && p->n < API_MAX_PATHS) {
        p->list = grow(p->list, &p->cap, p->n + 1, sizeof *p->list);
        p->list[p->n++] = xstrdup(strbuf_cstr(path));
    }
}

static void prune(const struct api_schema *s, struct json *v, struct strbuf *path,
                  struct api_paths *ret);

static void prune_object(const struct api_schema *s, struct json *v, struct strbuf *path,
                         struct api_paths *ret)
{
    char **drop = NULL;
    size_t n = 0, cap = 0;
    for (size_t i = 0; i < json_count(v); i++) {
        const char *name = json_key_at(v, i);
        struct json *child = json_at(v, i);
        const struct api_schema *member = api_schema_member(s, name);
        bool absent =
            member && json_is(child, JSON_NULL) && !member->nullable && api_schema_field(s, name);
        if (member && !absent) {
            size_t size = push_name(path, name);
            prune(member, child, path, ret);
            pop(path, size);
            continue;
        }
        if (!member) {
            size_t size = push_name(path, name);
            add_path(ret, path);
            pop(path, size);
        }
        drop = grow(drop, &cap, n + 1, sizeof *drop);
        drop[n++] = xstrdup(name);
    }
    /* By name and at the end: removal by position would move the other members of a large object
     * each time. */
    for (size_t i = 0; i < n; i++) {
        json_remove(v, drop[i]);
        free(drop[i]);
    }
    free(drop);
}

static void prune(const struct api_schema *s, struct json *v, struct strbuf *path,
                  struct api_paths *ret)
{
    if (s->type == API_OBJECT && json_is(v, JSON_OBJECT)) {
        prune_object(s, v, path, ret);
    } else if (s->type == API_ARRAY && json_is(v, JSON_ARRAY)) {
        const struct api_schema *items = api_schema_items(s);
        for (size_t i = 0; i < json_count(v) && items->type >= API_ARRAY; i++) {
            size_t size = push_index(path, i);
            prune(items, json_at(v, i), path, ret);
            pop(path, size);
        }
    }
}

void api_schema_prune(const struct api_schema *s, struct json *obj, struct api_paths *ret)
{
    CLEANUP_STRBUF struct strbuf path = STRBUF_INIT;
    prune(s, obj, &path, ret);
}

/* ---- defaults ---- */

struct json *api_schema_default_of(const struct api_schema *s)
{
    struct json *v = NULL;
    if (s->dflt) {
        return json_clone(s->dflt);
    }
    if (s->dflt_text) {
        json_parse(s->dflt_text, strlen(s->dflt_text), &v, NULL);
    }
    return v;
}

static bool lacks_value(const struct api_schema *s, const struct json *v)
{
    return !v || (json_is(v, JSON_NULL) && !s->nullable) ||
           (s->empty == API_EMPTY_IS_ABSENT && json_is(v, JSON_STRING) && !json_string_size(v));
}

void api_schema_default(const struct api_schema *s, struct json *v)
{
    if (!s->defaulted) {
        return;
    }
    if (s->type == API_OBJECT && json_is(v, JSON_OBJECT)) {
        for (size_t i = 0; i < s->n_fields; i++) {
            const struct api_field *f = &s->fields[i];
            struct json *dflt = lacks_value(f->schema, json_get(v, f->name))
                                    ? api_schema_default_of(f->schema)
                                    : NULL;
            if (dflt) {
                json_set(v, f->name, dflt);
            }
            if (f->schema->type >= API_ARRAY && json_get(v, f->name)) {
                api_schema_default(f->schema, json_get(v, f->name));
            }
        }
        for (size_t i = 0; s->others && s->others->type >= API_ARRAY && i < json_count(v); i++) {
            if (!api_schema_field(s, json_key_at(v, i))) {
                api_schema_default(s->others, json_at(v, i));
            }
        }
    } else if (s->type == API_ARRAY && json_is(v, JSON_ARRAY) && s->items) {
        for (size_t i = 0; i < json_count(v); i++) {
            api_schema_default(s->items, json_at(v, i));
        }
    }
}

/* ---- validation ---- */

static const char *const type_names[] = {
    [API_ANY] = "any",       [API_BOOLEAN] = "boolean", [API_INTEGER] = "integer",
    [API_NUMBER] = "number", [API_STRING] = "string",   [API_INT_OR_STRING] = "integer,string",
    [API_ARRAY] = "array",   [API_OBJECT] = "object",
};

static const char *name_of_type(const struct json *v)
{
    int64_t i;
    switch (json_type(v)) {
    case JSON_NULL:
        return "null";
    case JSON_BOOL:
        return "boolean";
    case JSON_NUMBER:
        return json_get_int(v, &i) == -EINVAL ? "number" : "integer";
    case JSON_STRING:
        return "string";
    case JSON_ARRAY:
        return "array";
    case JSON_OBJECT:
        break;
    }
    return "object";
}

static bool has_type(const struct api_schema *s, const struct json *v)
{
    int64_t i;
    switch (s->type) {
    case API_ANY:
        return true;
    case API_BOOLEAN:
        return json_is(v, JSON_BOOL);
    case API_INTEGER:
        return json_is(v, JSON_NUMBER) && json_get_int(v, &i) != -EINVAL;
    case API_NUMBER:
        return json_is(v, JSON_NUMBER);
    case API_STRING:
        return json_is(v, JSON_STRING);
    case API_INT_OR_STRING:
        return json_is(v, JSON_STRING) || json_is(v, JSON_NUMBER);
    case API_ARRAY:
        return json_is(v, JSON_ARRAY);
    case API_OBJECT:
        return json_is(v, JSON_OBJECT);
    }
    return false;
}

struct check {
    struct strbuf path;
    struct api_causes *causes;
    bool applied; /* It is an applied configuration, whose elements have to differ in their keys. */
};

static const char *where(const struct check *c)
{
    return c->path.size ? c->path.data : "<root>";
}

static void validate(const struct api_schema *s, const struct json *v, struct check *c);

static void validate_format(const struct api_schema *s, const struct json *v, struct check *c)
{
    int64_t i;
    struct moment m;
    struct err e = {0};
    if (!s->format) {
        return;
    }
    if (s == &api_schema_micro_time && json_is(v, JSON_STRING)) {
        if (moment_parse(json_get_string(v), true, &m, &e) < 0) {
            api_invalid(c->causes, where(c), v, "%s", e.text);
        }
        return;
    }
    if (json_is(v, JSON_NUMBER) && (streq(s->format, "int32") || streq(s->format, "int64"))) {
        bool small = s->format[3] == '3';
        int r = json_get_int(v, &i);
        if (r < 0 || (small && (i < INT32_MIN || i > INT32_MAX))) {
            api_invalid(c->causes, where(c), v, "must be between %lld and %lld, inclusive",
                        small ? INT32_MIN : (long long) INT64_MIN,
                        small ? INT32_MAX : (long long) INT64_MAX);
        }
    } else if (json_is(v, JSON_STRING) && streq(s->format, "date-time") &&
               !api_format_fits(s->format, json_get_string(v))) {
        api_invalid(c->causes, where(c), v,
                    "must be an RFC 3339 time, (e.g. 2006-01-02T15:04:05Z)");
    } else if (s == &api_schema_bytes && !api_format_fits(s->format, json_get_string(v))) {
        api_invalid(c->causes, where(c), NULL, "must be base64"); /* The value may be secret. */
    } else if (json_is(v, JSON_STRING) && !api_format_fits(s->format, json_get_string(v))) {
        api_invalid(c->causes, where(c), v, "%s in body must be of type %s: \"%.80s\"", where(c),
                    s->format, json_get_string(v));
    }
}

static void validate_enum(const struct api_schema *s, const struct json *v, struct check *c)
{
    if (s->values_allowed && json_is(v, JSON_STRING)) {
        for (size_t i = 0; s->values_allowed[i]; i++) {
            if (streq(s->values_allowed[i], json_get_string(v))) {
                return;
            }
        }
        api_unsupported(c->causes, where(c), v, s->values_allowed);
    } else if (s->enum_json) {
        const struct json *one;
        JSON_FOREACH (one, s->enum_json) {
            if (json_equal(one, v)) {
                return;
            }
        }
        CLEANUP_FREE char *text = json_to_text(s->enum_json);
        api_invalid(c->causes, where(c), v, "supported values: %.256s", text);
    }
}

/* Characters of UTF-8 text. */
static int64_t characters(const struct json *v)
{
    int64_t n = 0;
    for (const char *p = json_get_string(v); *p; p++) {
        n += (*p & 0xc0) != 0x80;
    }
    return n;
}

/* The range of an integer, in the words of Kubernetes' own kinds. */
static void validate_range(const struct api_limits *l, const struct json *v, struct check *c)
{
    double d = strtod(json_number_text(v), NULL);
    long long min = (long long) l->minimum, max = (long long) l->maximum;
    if ((!l->has_minimum || d >= l->minimum) && (!l->has_maximum || d <= l->maximum)) {
        return;
    }
    if (l->has_minimum && l->has_maximum) {
        api_invalid(c->causes, where(c), v, "must be between %lld and %lld, inclusive", min, max);
    } else if (l->has_minimum) {
        api_invalid(c->causes, where(c), v, "must be greater than or equal to %lld", min);
    } else {
        api_invalid(c->causes, where(c), v, "must be less than or equal to %lld", max);
    }
}

static void validate_number(const struct api_limits *l, const struct json *v, struct check *c)
{
    double d = strtod(json_number_text(v), NULL);
    if (l->has_minimum && (d < l->minimum || (l->exclusive_minimum && d <= l->minimum))) {
        api_invalid(c->causes, where(c), v, "%s in body should be greater than %s%.17g", where(c),
                    l->exclusive_minimum ? "" : "or equal to ", l->minimum);
    }
    if (l->has_maximum && (d > l->maximum || (l->exclusive_maximum && d >= l->maximum))) {
        api_invalid(c->causes, where(c), v, "%s in body should be less than %s%.17g", where(c),
                    l->exclusive_maximum ? "" : "or equal to ", l->maximum);
    }
    /* Whole multiples, apart from the error of binary fractions. */
    double quotient = l->multiple_of > 0 ? d / l->multiple_of : 0;
    if (fabs(quotient - nearbyint(quotient)) > 1e-9 * MAX(1.0, fabs(quotient))) {
        api_invalid(c->causes, where(c), v, "%s in body should be a multiple of %.17g", where(c),
                    l->multiple_of);
    }
}

static void validate_text(const struct api_limits *l, const struct json *v, struct check *c)
{
    int64_t n = l->min_length >= 0 || l->max_length >= 0 ? characters(v) : 0;
    if (l->min_length >= 0 && n < l->min_length) {
        api_invalid(c->causes, where(c), v, "%s in body should be at least %lld chars long",
                    where(c), (long long) l->min_length);
    }
    if (l->max_length >= 0 && n > l->max_length) {
        api_too_long(c->causes, where(c), (size_t) l->max_length);
    }
    int found =
        l->compiled ? pattern_match(l->compiled, json_get_string(v), json_string_size(v)) : 1;
    if (found == 0) {
        api_invalid(c->causes, where(c), v, "%s in body should match '%s'", where(c), l->pattern);
    } else if (found < 0) {
        api_invalid(c->causes, where(c), v, "it takes too long to tell whether it matches '%s'",
                    l->pattern);
    }
}

static void validate_count(int64_t min, int64_t max, const struct json *v, const char *what,
                           struct check *c)
{
    int64_t n = (int64_t) json_count(v);
    if (min >= 0 && n < min) {
        api_invalid(c->causes, where(c), v, "%s in body should have at least %lld %s", where(c),
                    (long long) min, what);
    }
    if (max >= 0 && n > max) {
        api_too_many(c->causes, where(c), (size_t) n, (size_t) max);
    }
}

static bool is_valid(const struct api_schema *s, const struct json *v, struct check *c)
{
    CLEANUP(api_causes_done) struct api_causes own = {0};
    struct api_causes *outer = c->causes;
    c->causes = &own;
    validate(s, v, c);
    c->causes = outer;
    return own.n == 0;
}

static size_t count_valid(const struct api_schema *const *list, const struct json *v,
                          struct check *c)
{
    size_t n = 0;
    for (size_t i = 0; list[i]; i++) {
        n += is_valid(list[i], v, c);
    }
    return n;
}

static void validate_limits(const struct api_limits *l, const struct json *v, struct check *c)
{
    if (json_is(v, JSON_NUMBER)) {
        (l->compiled_in ? validate_range : validate_number)(l, v, c);
    } else if (json_is(v, JSON_STRING)) {
        validate_text(l, v, c);
    } else if (json_is(v, JSON_ARRAY)) {
        validate_count(l->min_items, l->max_items, v, "items", c);
    } else if (json_is(v, JSON_OBJECT)) {
        validate_count(l->min_properties, l->max_properties, v, "properties", c);
    }
    for (size_t i = 0; l->all_of && l->all_of[i]; i++) {
        validate(l->all_of[i], v, c);
    }
    if (l->any_of && count_valid(l->any_of, v, c) == 0) {
        api_invalid(c->causes, where(c), v, "\"%s\" must validate at least one schema (anyOf)",
                    where(c));
    }
    if (l->one_of && count_valid(l->one_of, v, c) != 1) {
        api_invalid(c->causes, where(c), v, "\"%s\" must validate one and only one schema (oneOf)",
                    where(c));
    }
    if (l->not_ && is_valid(l->not_, v, c)) {
        api_invalid(c->causes, where(c), v, "\"%s\" must not validate the schema (not)", where(c));
    }
}

/* An object of a compiled-in kind that one key identifies is refused for that key. */
static void refuse_duplicate(const struct api_schema *s, const struct json *v, size_t i,
                             struct check *c)
{
    const struct json *item = json_at(v, i);
    const char *key = s->patch_key && *s->patch_key && !s->keys[1] ? s->patch_key : NULL;
    size_t size = push_index(&c->path, i);
    if (key) {
        (void) push_name(&c->path, key);
    }
    api_duplicate(c->causes, where(c), key ? json_get(item, key) : item);
    pop(&c->path, size);
}

static void validate_unique(const struct api_schema *s, const struct json *v, struct check *c)
{
    bool unique = (s->list_type != API_LIST_ATOMIC && (!s->repeats || c->applied)) ||
                  (s->limits && s->limits->unique_items);
    if (!unique || json_count(v) < 2) {
        return;
    }
    struct smap seen;
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    smap_init(&seen, NULL);
    for (size_t i = 0; i < json_count(v); i++) {
        strbuf_reset(&text);
        api_schema_element_key(s, json_at(v, i), &text);
        if (smap_get(&seen, text.data)) {
            refuse_duplicate(s, v, i, c);
        }
        smap_set(&seen, text.data, &seen);
    }
    smap_done(&seen);
}

static void validate_object(const struct api_schema *s, const struct json *v, struct check *c)
{
    for (size_t i = 0; i < s->n_fields; i++) {
        if (s->fields[i].required && !json_get(v, s->fields[i].name)) {
            size_t size = push_name(&c->path, s->fields[i].name);
            api_required(c->causes, where(c), "");
            pop(&c->path, size);
        }
    }
    for (size_t i = 0; i < json_count(v) && c->causes->n < API_MAX_CAUSES; i++) {
        const struct api_schema *member = api_schema_member(s, json_key_at(v, i));
        if (member && member != &api_schema_any) {
            size_t size = push_name(&c->path, json_key_at(v, i));
            validate(member, json_at(v, i), c);
            pop(&c->path, size);
        }
    }
}

/* Whether 'v' is empty in a way that ends its validation. */
static bool is_settled_empty(const struct api_schema *s, const struct json *v, struct check *c)
{
    bool text = json_is(v, JSON_STRING) && !json_string_size(v);
    bool list = json_is(v, JSON_ARRAY) && !json_count(v);
    if (s->empty == API_EMPTY_REFUSED && (text || list)) {
        api_required(c->causes, where(c), "");
        return true;
    }
    return s->empty == API_EMPTY_IS_ABSENT && text;
}

static void validate_check(const struct api_schema *s, const struct json *v, struct check *c)
{
    struct err e = {0};
    if (!json_string_size(v)) {
        return;
    }
    const char *wrong = s->check ? s->check(json_get_string(v)) : NULL;
    if (!wrong && s->parse && s->parse(json_get_string(v), &e) < 0) {
        wrong = e.text;
    }
    if (wrong) {
        api_invalid(c->causes, where(c), v, "%s", wrong);
    }
}

static void validate(const struct api_schema *s, const struct json *v, struct check *c)
{
    if (json_is(v, JSON_NULL) && s->nullable) {
        return;
    }
    if (!has_type(s, v)) {
        api_type_invalid(c->causes, where(c), v, "%s in body must be of type %s: \"%s\"", where(c),
                         type_names[s->type], name_of_type(v));
        return;
    }
    if (is_settled_empty(s, v, c)) {
        return;
    }
    validate_format(s, v, c);
    validate_check(s, v, c);
    validate_enum(s, v, c);
    if (s->limits) {
        validate_limits(s->limits, v, c);
    }
    if (json_is(v, JSON_OBJECT) && (s->type == API_OBJECT || s->n_fields)) {
        validate_object(s, v, c);
    } else if (json_is(v, JSON_ARRAY) && (s->type == API_ARRAY || s->items)) {
        const struct api_schema *items = api_schema_items(s);
        for (size_t i = 0; i < json_count(v) && c->causes->n < API_MAX_CAUSES; i++) {
            size_t size = push_index(&c->path, i);
            validate(items, json_at(v, i), c);
            pop(&c->path, size);
        }
        validate_unique(s, v, c);
    }
}

static void check_immutable(const struct api_schema *s, const struct json *v,
                            const struct json *old, struct check *c)
{
    for (size_t i = 0; i < s->n_fields; i++) {
        const struct api_field *f = &s->fields[i];
        const struct json *is = json_get(v, f->name), *was = json_get(old, f->name);
        if (!f->schema->immutable && f->schema->type != API_OBJECT) {
            continue;
        }
        size_t size = push_name(&c->path, f->name);
        if (!f->schema->immutable) {
            check_immutable(f->schema, is, was, c);
        } else if ((is || was) && !(is && was && json_equal(is, was))) {
            api_invalid(c->causes, where(c), is, "field is immutable");
        }
        pop(&c->path, size);
    }
}

void api_schema_check_immutable(const struct api_schema *s, const struct json *obj,
                                const struct json *old, struct api_causes *c)
{
    struct check check = {.path = STRBUF_INIT, .causes = c};
    check_immutable(s, obj, old, &check);
    strbuf_done(&check.path);
}

static void validate_all(const struct api_schema *s, const struct json *obj, bool applied,
                         struct api_causes *c)
{
    struct check check = {.path = STRBUF_INIT, .causes = c, .applied = applied};
    validate(s, obj, &check);
    strbuf_done(&check.path);
}

void api_schema_validate(const struct api_schema *s, const struct json *obj, struct api_causes *c)
{
    validate_all(s, obj, false, c);
}

void api_schema_validate_applied(const struct api_schema *s, const struct json *config,
                                 struct api_causes *c)
{
    validate_all(s, config, true, c);
}
