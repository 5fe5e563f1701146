/* SPDX-License-Identifier: Apache-2.0 */
#include "filled.h"

#include "base/base64.h"
#include "base/mem.h"

/* The objects that a value is in. */
struct place {
    const struct api_schema *schema;
    const struct place *outer;
};

static struct json *filled(const struct api_schema *s, const struct place *at, unsigned *seed);

static struct json *text(const struct api_schema *s, unsigned n)
{
    if (s == &api_schema_time) {
        return json_stringf("2024-05-06T07:08:%02uZ", n % 60);
    }
    if (s == &api_schema_micro_time) {
        return json_stringf("2024-05-06T07:08:09.%06uZ", n);
    }
    if (s == &api_schema_duration) {
        return json_stringf("1m%u.5s", n % 60);
    }
    if (s->format && streq(s->format, "byte")) {
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
        CLEANUP_FREE char *bytes = xasprintf("bytes %u\n", n);
        base64_encode(bytes, strlen(bytes), &b);
        return json_string(b.data);
    }
    return s->values_allowed ? json_string(s->values_allowed[0])
                             : json_stringf("t%u \"\xc3\xa4\"", n);
}

static struct json *list(const struct api_schema *items, const struct place *at, unsigned *seed)
{
    struct json *v = json_array();
    json_append(v, filled(items, at, seed));
    json_append(v, filled(items, at, seed));
    return v;
}

/* Whether 's' is 'whole', or a list, a map or one of several types with it. */
static bool is_made_of(const struct api_schema *s, const struct api_schema *whole)
{
    bool is = s == whole || (s->type == API_ARRAY && is_made_of(api_schema_items(s), whole)) ||
              (s->others && is_made_of(s->others, whole));
    for (size_t i = 0; s->either && i < s->n_fields && !is; i++) {
        is = is_made_of(s->fields[i].schema, whole);
    }
    return is;
}

static bool is_within(const struct api_schema *s, const struct place *at)
{
    for (; at; at = at->outer) {
        if (at->schema == s) {
            return true;
        }
    }
    return false;
}

/* A type that contains itself does so once. */
static struct json *object(const struct api_schema *s, const struct place *outer, unsigned *seed)
{
    const struct place at = {s, outer};
    bool again = is_within(s, outer);
    struct json *v = json_object();
    for (size_t i = 0; i < s->n_numbered; i++) {
        const struct api_field *f = &s->fields[s->by_number[i]];
        const struct api_schema *of = f->wire ? f->wire : f->schema;
        if (!again || !is_made_of(of, s)) {
            json_set(v, f->name, filled(of, &at, seed));
        }
    }
    if (s->others) {
        json_set(v, "z", filled(s->others, &at, seed));
        json_set(v, "a", filled(s->others, &at, seed));
    } else if (api_schema_is_raw(s)) {
        json_set(json_ensure_object(v, "f:raw"), ".", json_array());
    }
    return v;
}

static struct json *filled(const struct api_schema *s, const struct place *at, unsigned *seed)
{
    unsigned n = ++*seed;
    if (s->either) {
        return filled(s->fields[n % s->n_fields].schema, at, seed);
    }
    switch (s->type) {
    case API_BOOLEAN:
        return json_bool(true);
    case API_INTEGER:
        return json_int(s->format && streq(s->format, "int64") ? INT64_MIN + n : -(int64_t) n);
    case API_NUMBER:
        return json_int(n);
    case API_STRING:
        return text(s, n);
    case API_INT_OR_STRING:
        return s == &api_schema_quantity ? json_stringf("%um", 2 * n + 1)
               : n % 2                   ? json_int(n)
                                         : json_stringf("p%u", n);
    case API_ARRAY:
        return list(api_schema_items(s), at, seed);
    default:
        return object(s, at, seed);
    }
}

struct json *filled_object(const struct api_schema *s, unsigned *seed)
{
    return object(s, NULL, seed);
}
