/* SPDX-License-Identifier: Apache-2.0 */
/* The depth of all walks is that of the object, which is bounded by JSON_MAX_DEPTH; structures in
 * place cannot contain themselves. */
#include "api/typed.h"

#include "api/moment.h"
#include "api/quantity.h"
#include "base/base64.h"
#include "base/mem.h"

static bool is_time(const struct api_schema *s)
{
    return s == &api_schema_time || s == &api_schema_micro_time;
}

static bool is_bytes(const struct api_schema *s)
{
    return s->type == API_STRING && s->format && streq(s->format, "byte");
}

/* ---- types ---- */

struct check {
    struct strbuf path;
    const char *owner; /* The published name of the structure with the present field. */
    size_t elements;
    struct err *e;
};

/* "PodSpec" of "io.k8s.api.core.v1.PodSpec". */
static const char *last_part(const char *definition)
{
    const char *dot = definition ? strrchr(definition, '.') : NULL;
    return dot ? dot + 1 : "";
}

/* Appends "v1.PodSpec" of "io.k8s.api.core.v1.PodSpec". */
static void put_struct(const char *definition, struct strbuf *out)
{
    const char *start = last_part(definition);
    for (start -= start > definition; start > definition && start[-1] != '.';) {
        start--;
    }
    strbuf_adds(out, start);
}

static void put_type(const struct api_schema *s, struct strbuf *out)
{
    switch (s->type) {
    case API_BOOLEAN:
        strbuf_adds(out, "bool");
        break;
    case API_INTEGER:
        strbuf_adds(out, s->format ? s->format : "int64");
        break;
    case API_NUMBER:
        strbuf_adds(out, "float64");
        break;
    case API_STRING:
    case API_INT_OR_STRING:
        strbuf_adds(out, is_bytes(s) ? "[]uint8" : "string");
        break;
    case API_ARRAY:
        strbuf_adds(out, "[]");
        put_type(api_schema_items(s), out);
        break;
    case API_OBJECT:
        if (s->others) {
            strbuf_adds(out, "map[string]");
            put_type(s->others, out);
        } else if (s->definition) {
            put_struct(s->definition, out);
        } else {
            strbuf_adds(out, "runtime.RawExtension");
        }
        break;
    case API_ANY:
        strbuf_adds(out, "runtime.RawExtension");
    }
}

static const char *const value_names[] = {
    [JSON_BOOL] = "bool",   [JSON_NUMBER] = "number", [JSON_STRING] = "string",
    [JSON_ARRAY] = "array", [JSON_OBJECT] = "object", [JSON_NULL] = "null",
};

static int wrong_type(const struct api_schema *s, const struct json *v, const struct check *c)
{
    CLEANUP_STRBUF struct strbuf type = STRBUF_INIT;
    put_type(s, &type);
    /* A number of the wrong sort is shown. */
    bool sort = json_is(v, JSON_NUMBER) && (s->type == API_INTEGER || s->type == API_NUMBER);
    return err_set(c->e, -EINVAL,
                   "json: cannot unmarshal %s%s%.40s into Go struct field %s.%s of type %s",
                   value_names[json_type(v)], sort ? " " : "", sort ? json_number_text(v) : "",
                   last_part(c->owner), strbuf_cstr(&c->path), type.data);
}

/* A type that decodes itself knows nothing of the field. */
static int wrong_value(const struct json *v, const char *type, const struct check *c)
{
    return err_set(c->e, -EINVAL, "json: cannot unmarshal %s into Go value of type %s",
                   value_names[json_type(v)], type);
}

static bool fits_integer(const struct api_schema *s, const struct json *v)
{
    int64_t i;
    bool small = s->format && streq(s->format, "int32");
    return json_is(v, JSON_NUMBER) && json_get_int(v, &i) == 0 &&
           (!small || (i >= INT32_MIN && i <= INT32_MAX));
}

static int check_text(const struct api_schema *s, const struct json *v, const struct check *c)
{
    struct moment m;
    if (is_time(s)) {
        return json_is(v, JSON_STRING)
                   ? moment_parse(json_get_string(v), s == &api_schema_micro_time, &m, c->e)
                   : wrong_value(v, "string", c);
    }
    if (!json_is(v, JSON_STRING)) {
        return wrong_type(s, v, c);
    }
    CLEANUP_STRBUF struct strbuf bytes = STRBUF_INIT;
    const char *text = json_get_string(v);
    if (is_bytes(s) && base64_decode(text, json_string_size(v), &bytes) < 0) {
        size_t fit = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789+/\r\n");
        return err_set(c->e, -EINVAL, "illegal base64 data at input byte %zu", fit);
    }
    return 0;
}

static int check_int_or_string(const struct api_schema *s, const struct json *v,
                               const struct check *c)
{
    if (s == &api_schema_quantity) {
        CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
        const char *given = json_is(v, JSON_NUMBER) ? json_number_text(v) : json_get_string(v);
        return api_quantity_format(given ? given : "", false, &text, c->e);
    }
    return json_is(v, JSON_STRING) || fits_integer(&api_schema_int32, v)
               ? 0
               : wrong_value(v, "int32", c);
}

static int check(const struct api_schema *s, const struct json *v, struct check *c);

static int check_object(const struct api_schema *s, const struct json *v, struct check *c)
{
    const char *outer = c->owner;
    size_t size = c->path.size;
    int r = 0;
    for (size_t i = 0; i < json_count(v) && r == 0; i++) {
        const struct api_field *f = api_schema_field(s, json_key_at(v, i));
        const struct api_schema *member = f ? f->schema : s->others;
        if (!member) {
            continue;
        }
        if (f) {
            if (size) {
                strbuf_addc(&c->path, '.');
            }
            strbuf_adds(&c->path, f->name);
            c->owner = s->definition;
        }
        r = check(member, json_at(v, i), c);
        if (r == 0) {
            c->path.size = size;
            c->owner = outer;
        }
    }
    return r;
}

static int check(const struct api_schema *s, const struct json *v, struct check *c)
{
    if (json_is(v, JSON_NULL) || api_schema_is_raw(s)) {
        return 0;
    }
    switch (s->type) {
    case API_BOOLEAN:
        return json_is(v, JSON_BOOL) ? 0 : wrong_type(s, v, c);
    case API_INTEGER:
        return fits_integer(s, v) ? 0 : wrong_type(s, v, c);
    case API_NUMBER:
        return json_is(v, JSON_NUMBER) ? 0 : wrong_type(s, v, c);
    case API_STRING:
        return check_text(s, v, c);
    case API_INT_OR_STRING:
        return check_int_or_string(s, v, c);
    case API_ARRAY: {
        const struct json *item;
        int r = json_is(v, JSON_ARRAY) ? 0 : wrong_type(s, v, c);
        c->elements += json_count(v);
        if (c->elements > API_TYPED_MAX_ELEMENTS) {
            return err_set(c->e, -EINVAL, API_TYPED_TOO_MANY);
        }
        JSON_FOREACH (item, v) {
            r = r == 0 ? check(api_schema_items(s), item, c) : r;
        }
        return r;
    }
    default:
        return json_is(v, JSON_OBJECT) ? check_object(s, v, c) : wrong_type(s, v, c);
    }
}

int api_typed_check(const struct api_schema *s, const struct json *obj, struct err *e)
{
    struct check c = {.path = STRBUF_INIT, .e = e};
    int r = check(s, obj, &c);
    strbuf_done(&c.path);
    return r;
}

/* ---- canonical values ---- */

struct json *api_typed_empty(const struct api_schema *s)
{
    switch (s->type) {
    case API_BOOLEAN:
        return json_bool(false);
    case API_INTEGER:
    case API_NUMBER:
        return json_int(0);
    case API_STRING:
        return is_time(s) ? NULL : json_string(s == &api_schema_duration ? "0s" : "");
    case API_INT_OR_STRING:
        return s == &api_schema_quantity ? json_string("0") : json_int(0);
    case API_ARRAY:
        return json_array();
    case API_OBJECT:
        return api_schema_is_raw(s) ? NULL : json_object();
    default:
        return NULL;
    }
}

/* The canonical form of a scalar; NULL: it is canonical, or not of its type.  '*ret_absent': the
 * value means that there is none. */
static struct json *canonical(const struct api_schema *s, const struct json *v, bool milli,
                              bool *ret_absent)
{
    if (is_time(s) && json_is(v, JSON_STRING)) {
        bool micro = s == &api_schema_micro_time;
        struct moment m;
        char text[TIME_TEXT_SIZE];
        if (moment_parse(json_get_string(v), micro, &m, NULL) < 0) {
            return NULL;
        }
        *ret_absent = m.s == MOMENT_NONE_S;
        return moment_format(&m, micro, text) < 0 || streq(text, json_get_string(v))
                   ? NULL
                   : json_string(text);
    }
    if (s == &api_schema_quantity && (json_is(v, JSON_STRING) || json_is(v, JSON_NUMBER))) {
        CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
        const char *given = json_is(v, JSON_NUMBER) ? json_number_text(v) : json_get_string(v);
        return api_quantity_format(given, milli, &text, NULL) < 0 ||
                       (json_is(v, JSON_STRING) && streq(text.data, given))
                   ? NULL
                   : json_string(text.data);
    }
    return NULL;
}

static void normalize_map(const struct api_schema *s, struct json *map)
{
    for (size_t i = 0; i < json_count(map); i++) {
        struct json *v = json_at(map, i);
        bool absent = false;
        struct json *other = json_is(v, JSON_NULL) ? api_typed_empty(s->others)
                                                   : canonical(s->others, v, true, &absent);
        if (other) {
            CLEANUP_FREE char *key = xstrdup(json_key_at(map, i));
            json_set(map, key, other);
        } else {
            api_typed_normalize(s->others, v);
        }
    }
}

static void normalize_fields(const struct api_schema *s, struct json *obj)
{
    for (size_t i = 0; i < s->n_fields; i++) {
        const struct api_field *f = &s->fields[i];
        struct json *v = json_get(obj, f->name);
        bool absent = false;
        if (!v) {
            continue;
        }
        struct json *other = canonical(f->schema, v, false, &absent);
        if (absent) {
            json_free(other);
            json_remove(obj, f->name);
        } else if (other) {
            json_set(obj, f->name, other);
        } else {
            api_typed_normalize(f->schema, v);
        }
    }
}

/* Lists with null in them are rare, and made anew. */
static void normalize_list(const struct api_schema *s, struct json *list)
{
    const struct api_schema *items = api_schema_items(s);
    bool has_null = false;
    for (size_t i = 0; i < json_count(list); i++) {
        has_null = has_null || json_is(json_at(list, i), JSON_NULL);
        api_typed_normalize(items, json_at(list, i));
    }
    for (size_t n = has_null ? json_count(list) : 0; n > 0; n--) {
        struct json *v = json_take_at(list, 0);
        struct json *empty = json_is(v, JSON_NULL) ? api_typed_empty(items) : NULL;
        json_append(list, empty ? empty : json_clone(v));
        json_free(v);
    }
}

void api_typed_normalize(const struct api_schema *s, struct json *obj)
{
    if (api_schema_is_raw(s)) {
        return;
    }
    if (json_is(obj, JSON_ARRAY) && s->type == API_ARRAY) {
        normalize_list(s, obj);
    } else if (json_is(obj, JSON_OBJECT) && s->type == API_OBJECT) {
        normalize_fields(s, obj);
        if (s->others && !s->n_fields) {
            normalize_map(s, obj);
        }
    }
}

/* ---- fields that are always there ---- */

static bool complete_all(const struct api_schema *s, struct json *v)
{
    bool changed = false;
    if (s->type >= API_ARRAY) {
        for (size_t i = 0; i < json_count(v); i++) {
            changed = api_typed_complete(s, json_at(v, i)) || changed;
        }
    }
    return changed;
}

bool api_typed_complete(const struct api_schema *s, struct json *obj)
{
    bool changed = false;
    if (!s->completed) {
        return false;
    }
    if (s->type == API_ARRAY && json_is(obj, JSON_ARRAY)) {
        return complete_all(api_schema_items(s), obj);
    }
    if (s->type != API_OBJECT || !json_is(obj, JSON_OBJECT)) {
        return false;
    }
    for (size_t i = 0; i < s->n_fields; i++) {
        const struct api_field *f = &s->fields[i];
        if (!f->always && !f->schema->completed) {
            continue;
        }
        struct json *v = json_get(obj, f->name);
        bool null =
            f->schema->nullable; /* Go has a slice or a pointer, which is null when empty. */
        if (f->always && (!v || (!null && json_is(v, JSON_NULL)))) {
            v = json_set(obj, f->name, null ? json_null() : api_typed_empty(f->schema));
            changed = true;
        }
        changed = api_typed_complete(f->schema, v) || changed;
    }
    return s->others && !s->n_fields ? complete_all(s->others, obj) || changed : changed;
}

bool api_typed_mend(const struct api_schema *s, struct json *obj)
{
    bool changed = false;
    for (size_t i = 0; s->micro_timed && i < s->n_fields && json_is(obj, JSON_OBJECT); i++) {
        const struct api_field *f = &s->fields[i];
        struct moment m;
        char text[TIME_TEXT_SIZE];
        if (f->schema->type == API_OBJECT) {
            changed = api_typed_mend(f->schema, json_get(obj, f->name)) || changed;
        } else if (f->schema == &api_schema_micro_time) {
            const char *has = json_get_string(json_get(obj, f->name));
            if (has && moment_parse(has, true, &m, NULL) < 0 &&
                moment_parse(has, false, &m, NULL) == 0 && moment_format(&m, true, text) == 0) {
                json_set_string(obj, f->name, text);
                changed = true;
            }
        }
    }
    return changed;
}

/* ---- equality ---- */

static bool is_nothing(const struct json *v)
{
    return !v || json_is(v, JSON_NULL);
}

/* Whether a scalar is the zero value of its type. */
static bool is_zero(const struct json *v)
{
    int64_t i;
    switch (json_type(v)) {
    case JSON_BOOL:
        return !json_get_bool(v, false);
    case JSON_NUMBER:
        return json_get_int(v, &i) == 0 && i == 0;
    case JSON_STRING:
        return json_string_size(v) == 0;
    default:
        return is_nothing(v);
    }
}

static bool same(const struct api_schema *s, const struct json *a, const struct json *b,
                 bool pointer, struct strbuf *path);

static bool same_at(const struct api_schema *s, const struct json *a, const struct json *b,
                    bool pointer, struct strbuf *path, const char *name)
{
    size_t size = path->size;
    strbuf_addf(path, "%s%.128s", size ? "." : "", name);
    bool is = same(s, a, b, pointer, path);
    if (is) {
        path->size = size;
        path->data[size] = '\0';
    }
    return is;
}

static bool same_fields(const struct api_schema *s, const struct json *a, const struct json *b,
                        struct strbuf *path)
{
    for (size_t i = 0; i < s->n_fields; i++) {
        const struct api_field *f = &s->fields[i];
        if (!same_at(f->schema, json_get(a, f->name), json_get(b, f->name), f->pointer, path,
                     f->name)) {
            return false;
        }
    }
    return true;
}

static bool same_map(const struct api_schema *s, const struct json *a, const struct json *b,
                     struct strbuf *path)
{
    for (size_t i = 0; json_is(a, JSON_OBJECT) && i < json_count(a); i++) {
        const char *key = json_key_at(a, i);
        const struct json *other = json_get(b, key);
        if (!other || !same_at(s->others, json_at(a, i), other, true, path, key)) {
            return false;
        }
    }
    return json_count(a) == json_count(b);
}

static bool same_list(const struct api_schema *s, const struct json *a, const struct json *b,
                      struct strbuf *path)
{
    size_t size = path->size;
    for (size_t i = 0; i < json_count(a) && i < json_count(b); i++) {
        strbuf_addf(path, "[%zu]", i);
        if (!same(api_schema_items(s), json_at(a, i), json_at(b, i), true, path)) {
            return false;
        }
        path->size = size;
        path->data[size] = '\0';
    }
    return json_count(a) == json_count(b);
}

static bool same(const struct api_schema *s, const struct json *a, const struct json *b,
                 bool pointer, struct strbuf *path)
{
    if (is_nothing(a) && is_nothing(b)) {
        return true;
    }
    if (!is_nothing(a) && !is_nothing(b) && json_type(a) != json_type(b)) {
        return false;
    }
    if (s->type == API_OBJECT && s->n_fields) {
        return same_fields(s, a, b, path);
    }
    if (s->type == API_OBJECT && s->others) {
        return same_map(s, a, b, path);
    }
    if (s->type == API_ARRAY) {
        return same_list(s, a, b, path);
    }
    if (!pointer && is_zero(a) && is_zero(b)) {
        return true;
    }
    return !is_nothing(a) && !is_nothing(b) && json_equal(a, b);
}

bool api_typed_same(const struct api_schema *s, const struct json *a, const struct json *b,
                    struct strbuf *ret_path)
{
    struct strbuf path = STRBUF_INIT;
    bool is = same(s, a, b, true, &path);
    if (!is && ret_path) {
        strbuf_adds(ret_path, strbuf_cstr(&path));
    }
    strbuf_done(&path);
    return is;
}
