/* SPDX-License-Identifier: Apache-2.0 */
#include "api/kind_util.h"

#include "base/timeutil.h"

/* ---- cells ---- */

struct json *api_cell_text(const char *s, const char *dflt)
{
    return json_string(s && *s ? s : dflt);
}

struct json *api_cell_name(const struct json *obj, int64_t now_ms)
{
    return api_cell_text(json_path_string(obj, "metadata", "name", NULL), "");
}

struct json *api_cell_since(const char *s, int64_t now_ms)
{
    int64_t then;
    if (!s || time_parse(s, &then) < 0) {
        return json_string("<unknown>");
    }
    char text[TIME_TEXT_SIZE];
    time_format_age(now_ms - then, text);
    return json_string(text);
}

struct json *api_cell_age(const struct json *obj, int64_t now_ms)
{
    return api_cell_since(json_path_string(obj, "metadata", "creationTimestamp", NULL), now_ms);
}

struct json *api_cell_list(const struct json *list)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const struct json *item;
    JSON_FOREACH (item, list) {
        const char *s = json_get_string(item);
        strbuf_addf(&b, "%s%s", b.size ? ", " : "[", s ? s : "?");
    }
    strbuf_adds(&b, b.size ? "]" : "[]");
    return json_string(b.data);
}

struct json *api_cell_reference(const struct json *ref)
{
    const char *kind = json_path_string(ref, "kind", NULL);
    const char *name = json_path_string(ref, "name", NULL);
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    for (const char *p = kind; p && *p; p++) {
        strbuf_addc(&b, *p >= 'A' && *p <= 'Z' ? (char) (*p - 'A' + 'a') : *p);
    }
    if (name && *name) {
        strbuf_addf(&b, "/%s", name);
    }
    return json_string(strbuf_cstr(&b));
}

struct json *api_cell_controller(const struct json *obj, int64_t now_ms)
{
    const struct json *owner;
    JSON_FOREACH (owner, json_path(obj, "metadata", "ownerReferences", NULL)) {
        if (json_get_bool(json_get(owner, "controller"), false)) {
            return api_cell_reference(owner);
        }
    }
    return json_string("<none>");
}

/* ---- typed fields ---- */

static bool is_absent(const struct json *v)
{
    return !v || json_is(v, JSON_NULL);
}

static bool typed(struct api_causes *c, const char *field, const struct json *v,
                  enum json_type type, const char *what)
{
    if (is_absent(v)) {
        return false;
    }
    if (!json_is(v, type)) {
        api_invalid(c, field, v, "must be %s", what);
        return false;
    }
    return true;
}

bool api_field_string(struct api_causes *c, const char *field, const struct json *v, bool required)
{
    if (is_absent(v) || (json_is(v, JSON_STRING) && json_string_size(v) == 0)) {
        if (required) {
            api_required(c, field, "");
        }
        return false;
    }
    return typed(c, field, v, JSON_STRING, "a string");
}

bool api_field_bool(struct api_causes *c, const char *field, const struct json *v)
{
    return typed(c, field, v, JSON_BOOL, "true or false");
}

bool api_field_array(struct api_causes *c, const char *field, const struct json *v)
{
    return typed(c, field, v, JSON_ARRAY, "a list");
}

bool api_field_object(struct api_causes *c, const char *field, const struct json *v)
{
    return typed(c, field, v, JSON_OBJECT, "an object");
}

bool api_field_int(struct api_causes *c, const char *field, const struct json *v, bool required,
                   int64_t min, int64_t max, int64_t *ret)
{
    if (is_absent(v)) {
        if (required) {
            api_required(c, field, "");
        }
        return false;
    }
    int64_t i;
    int r = json_get_int(v, &i);
    if (r == -EINVAL) {
        api_invalid(c, field, v, "must be a whole number");
        return false;
    }
    if (r < 0 || i < min || i > max) {
        api_invalid(c, field, v, "must be between %lld and %lld, inclusive", (long long) min,
                    (long long) max);
        return false;
    }
    *ret = i;
    return true;
}

bool api_field_enum(struct api_causes *c, const char *field, const struct json *v, bool required,
                    const char *const *values)
{
    if (!api_field_string(c, field, v, required)) {
        return false;
    }
    for (size_t i = 0; values[i]; i++) {
        if (streq(values[i], json_get_string(v))) {
            return true;
        }
    }
    api_unsupported(c, field, v, values);
    return false;
}

void api_validate_share(struct api_causes *c, const char *field, const struct json *v)
{
    const char *s = json_get_string(v);
    size_t digits = s ? strspn(s, "0123456789") : 0;
    int64_t n;
    if (is_absent(v)) {
        return;
    }
    if (s && (digits == 0 || !streq(s + digits, "%"))) {
        api_invalid(c, field, v,
                    "a valid percent string must be a numeric string followed by an ending '%%' "
                    "(e.g. '1%%',  or '93%%', regex used for validation is '[0-9]+%%')");
    } else if (s && (digits > 3 || (digits == 3 && strncmp(s, "100", 3) > 0))) {
        api_invalid(c, field, v, "must not be greater than 100%%");
    } else if (!s && json_get_int(v, &n) < 0) {
        api_invalid(c, field, v, "must be an integer or percentage (e.g '5%%')");
    } else if (!s && n < 0) {
        api_invalid(c, field, v, "must be greater than or equal to 0");
    }
}

void api_validate_port(struct api_causes *c, const char *field, const struct json *v)
{
    int64_t number;
    const char *wrong = json_is(v, JSON_STRING) ? api_check_port_name(json_get_string(v)) : NULL;
    if (wrong) {
        api_invalid(c, field, v, "%s", wrong);
    } else if (!json_is(v, JSON_STRING)) {
        api_field_int(c, field, v, true, 1, 65535, &number);
    }
}

void api_validate_path(struct api_causes *c, const char *field, const struct json *path)
{
    const char *s = json_get_string(path);
    for (; s && *s; s += strcspn(s, "/")) {
        s += strspn(s, "/");
        if (strcspn(s, "/") == 2 && str_has_prefix(s, "..")) {
            api_invalid(c, field, path, "must not contain '..'");
            return;
        }
    }
}

void api_field_immutable(struct api_causes *c, const char *field, const struct json *v,
                         const struct json *old)
{
    if (is_absent(v) && is_absent(old)) {
        return;
    }
    if (!v || !old || !json_equal(v, old)) {
        api_invalid(c, field, v, "field is immutable");
    }
}

/* ---- defaults ---- */

void api_default_string(struct json *obj, const char *key, const char *s)
{
    const struct json *v = json_get(obj, key);
    if (is_absent(v) || (json_is(v, JSON_STRING) && json_string_size(v) == 0)) {
        json_set_string(obj, key, s);
    }
}

void api_default_int(struct json *obj, const char *key, int64_t i)
{
    if (is_absent(json_get(obj, key))) {
        json_set_int(obj, key, i);
    }
}

struct json *api_default_object(struct json *obj, const char *key)
{
    struct json *v = json_get(obj, key);
    return is_absent(v) ? json_set(obj, key, json_object()) : json_is(v, JSON_OBJECT) ? v : NULL;
}
