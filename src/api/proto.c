/* SPDX-License-Identifier: Apache-2.0 */
#include "api/proto.h"

#include "api/kinds.h"
#include "api/legacy.h"
#include "api/moment.h"
#include "api/typed.h"
#include "base/base64.h"
#include "base/mem.h"
#include "wire/protobuf.h"

#include <stdio.h>
#include <stdlib.h>

struct decoding {
    struct api_paths *unknown; /* NULL: not collected. */
    size_t elements;
    unsigned depth; /* Number of enclosing messages that are objects in JSON. */
    struct err *e;
};

static int decode_message(const struct api_schema *s, const struct pb_field *p, struct json *obj,
                          struct decoding *d);
static int decode_value(const struct api_schema *s, const struct pb_field *p, struct json **ret,
                        struct decoding *d);

static int malformed(struct err *e)
{
    return err_set(e, -EINVAL, "malformed protobuf");
}

static struct pb_reader reader_of(const struct pb_field *p)
{
    return pb_reader_of(p->data, p->size);
}

/* ---- values ---- */

static struct json *base64_of(const struct pb_field *p)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    base64_encode(p->data, p->size, &b);
    return json_string(strbuf_cstr(&b));
}

static struct json *text_of(const struct pb_field *p)
{
    return json_string_n(p->data, p->size);
}

/* meta.v1 Time and MicroTime: seconds = 1, nanos = 2; the empty message is the zero time, which
 * is absent. */
static int decode_time(const struct pb_field *f, bool micro, struct json **ret, struct err *e)
{
    struct pb_reader r = reader_of(f);
    struct pb_field part;
    int64_t seconds = 0, nanos = 0;
    int n;
    while ((n = pb_next(&r, &part)) > 0) {
        if (part.type != PB_VARINT) {
            return malformed(e);
        }
        if (part.number <= 2) {
            *(part.number == 1 ? &seconds : &nanos) = (int64_t) part.value;
        }
    }
    if (n < 0 || nanos < 0 || nanos > 999999999) {
        return malformed(e);
    }
    struct moment m = {.s = seconds, .ns = (int32_t) nanos};
    char text[TIME_TEXT_SIZE];
    if (f->size && seconds != MOMENT_NONE_S) {
        if (moment_format(&m, micro, text) < 0) {
            return malformed(e);
        }
        *ret = json_string(text);
    }
    return 0;
}

/* meta.v1 Duration: duration = 1, in nanoseconds. */
static int decode_duration(const struct pb_field *f, struct json **ret, struct err *e)
{
    struct pb_reader r = reader_of(f);
    struct pb_field part;
    char text[TIME_TEXT_SIZE];
    int64_t ns = 0;
    int n;
    while ((n = pb_next(&r, &part)) > 0) {
        if (part.type != PB_VARINT || part.number != 1) {
            return malformed(e);
        }
        ns = (int64_t) part.value;
    }
    if (n < 0) {
        return malformed(e);
    }
    time_format_duration(ns, text);
    *ret = json_string(text);
    return 0;
}

/* intstr.IntOrString: type = 1 (0: a number), intVal = 2, strVal = 3. */
static int decode_int_or_string(const struct pb_field *f, struct json **ret, struct err *e)
{
    struct pb_reader r = reader_of(f);
    struct pb_field part, text = {0};
    int64_t type = 0, number = 0;
    int n;
    while ((n = pb_next(&r, &part)) > 0) {
        if (part.number > 3 || part.type != (part.number == 3 ? PB_BYTES : PB_VARINT)) {
            return malformed(e);
        }
        if (part.number == 3) {
            text = part;
        } else {
            *(part.number == 1 ? &type : &number) = (int64_t) part.value;
        }
    }
    if (n < 0) {
        return malformed(e);
    }
    *ret = type ? json_string_n(text.data ? text.data : "", text.size) : json_int(number);
    return 0;
}

/* The bytes of field 1 of a message that wraps them: resource.Quantity, runtime.RawExtension,
 * FieldsV1. */
static int unwrap(const struct pb_field *f, struct pb_field *ret, struct err *e)
{
    struct pb_reader r = reader_of(f);
    struct pb_field part;
    int n;
    *ret = (struct pb_field){.data = ""};
    while ((n = pb_next(&r, &part)) > 0) {
        if (part.number != 1 || part.type != PB_BYTES) {
            return malformed(e);
        }
        *ret = part;
    }
    return n < 0 ? malformed(e) : 0;
}

/* A value that protobuf carries as JSON text. */
static int decode_raw(const struct pb_field *f, struct json **ret, struct err *e)
{
    struct pb_field raw;
    int r = unwrap(f, &raw, e);
    return r < 0 || !raw.size ? r : json_parse(raw.data, raw.size, ret, e);
}

static int decode_quantity(const struct pb_field *f, struct json **ret, struct err *e)
{
    struct pb_field text;
    int r = unwrap(f, &text, e);
    if (r == 0) {
        *ret = text.size ? text_of(&text) : json_string("0");
    }
    return r;
}

/* A list in a map: its elements are field 1 of a message (authorization's ExtraValue). */
static int decode_list(const struct api_schema *s, const struct pb_field *f, struct json **ret,
                       struct decoding *d)
{
    CLEANUP(json_free) struct json *list = json_array();
    struct pb_reader r = reader_of(f);
    struct pb_field part;
    int n;
    while ((n = pb_next(&r, &part)) > 0) {
        struct json *v = NULL;
        if (part.number != 1) {
            return malformed(d->e);
        }
        n = decode_value(api_schema_items(s), &part, &v, d);
        if (n < 0) {
            return n;
        }
        json_append(list, v ? v : json_null());
    }
    if (n < 0) {
        return malformed(d->e);
    }
    *ret = TAKE(list);
    return 0;
}

/* The shortest text that is read as the same number; NULL: JSON has no infinity. */
static struct json *double_of(const struct pb_field *p)
{
    char text[32];
    double number;
    memcpy(&number, &p->value, sizeof number);
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, number);
        if (strtod(text, NULL) == number) {
            break;
        }
    }
    return json_number_n(text, strlen(text));
}

static int decode_number(const struct api_schema *s, const struct pb_field *p, struct json **ret,
                         struct decoding *d)
{
    if (p->type != (s->type == API_NUMBER ? PB_FIXED64 : PB_VARINT)) {
        return malformed(d->e);
    }
    *ret = s->type == API_NUMBER    ? double_of(p)
           : s->type == API_BOOLEAN ? json_bool(p->value)
                                    : json_int((int64_t) p->value);
    return *ret ? 0 : malformed(d->e);
}

static int decode_string(const struct api_schema *s, const struct pb_field *p, struct json **ret,
                         struct decoding *d)
{
    if (s == &api_schema_time || s == &api_schema_micro_time) {
        return decode_time(p, s == &api_schema_micro_time, ret, d->e);
    }
    if (s == &api_schema_duration) {
        return decode_duration(p, ret, d->e);
    }
    *ret = s->format && streq(s->format, "byte") ? base64_of(p) : text_of(p);
    return 0;
}

/* A value of one of several types: the last field that is there counts. */
static int decode_either(const struct api_schema *s, const struct pb_field *p, struct json **ret,
                         struct decoding *d)
{
    CLEANUP(json_free) struct json *fields = json_object();
    int r = decode_message(s, p, fields, d);
    for (size_t i = s->n_numbered; r == 0 && !*ret && i-- > 0;) {
        *ret = json_take(fields, s->fields[s->by_number[i]].name);
    }
    return r;
}

static int decode_object(const struct api_schema *s, const struct pb_field *p, struct json **ret,
                         struct decoding *d)
{
    CLEANUP(json_free) struct json *sub = json_object();
    if (++d->depth > JSON_MAX_DEPTH) {
        return err_set(d->e, -EINVAL, "the object is nested too deeply");
    }
    int r = decode_message(s, p, sub, d);
    d->depth--;
    *ret = r < 0 ? NULL : TAKE(sub);
    return r;
}

/* '*ret' stays NULL when the value means absent. */
static int decode_value(const struct api_schema *s, const struct pb_field *p, struct json **ret,
                        struct decoding *d)
{
    if (s->type == API_BOOLEAN || s->type == API_INTEGER || s->type == API_NUMBER) {
        return decode_number(s, p, ret, d);
    }
    if (p->type != PB_BYTES) {
        return malformed(d->e);
    }
    switch (s->type) {
    case API_STRING:
        return decode_string(s, p, ret, d);
    case API_INT_OR_STRING:
        return s == &api_schema_quantity ? decode_quantity(p, ret, d->e)
                                         : decode_int_or_string(p, ret, d->e);
    case API_ARRAY:
        return decode_list(s, p, ret, d);
    default:
        return api_schema_is_raw(s) ? decode_raw(p, ret, d->e)
                                    : (s->either ? decode_either : decode_object)(s, p, ret, d);
    }
}

/* An entry of a map: key = 1, value = 2. */
static int decode_entry(const struct api_schema *s, const struct pb_field *f, struct json *map,
                        struct decoding *d)
{
    struct pb_reader r = reader_of(f);
    struct pb_field part, value = {.type = PB_BYTES, .data = ""};
    CLEANUP_STRBUF struct strbuf key = STRBUF_INIT;
    struct json *v = NULL;
    int n;
    while ((n = pb_next(&r, &part)) > 0) {
        if (part.number > 2 || (part.number == 1 && part.type != PB_BYTES)) {
            return malformed(d->e);
        }
        if (part.number == 1) {
            strbuf_reset(&key);
            strbuf_add(&key, part.data, part.size);
        } else {
            value = part;
        }
    }
    if (n < 0 || memchr(strbuf_cstr(&key), '\0', key.size)) {
        return malformed(d->e);
    }
    n = decode_value(s, &value, &v, d);
    if (n == 0 && !v) {
        v = api_typed_empty(s);
        v = v ? v : json_object();
    }
    return n < 0 ? n : json_set(map, strbuf_cstr(&key), v) ? 0 : malformed(d->e);
}

/* ---- messages ---- */

/* The path of a message that JSON does not show, as in struct api_field; all 0: the path of the
 * object's own message. */
struct outer {
    uint8_t numbers[API_MAX_OUTER];
};

static bool is_in(const struct api_field *f, const struct outer *at)
{
    return memcmp(f->outer, at->numbers, sizeof f->outer) == 0;
}

/* Whether some field is within the message 'number' of the message 'at'; '*ret' is its path then. */
static bool is_outer(const struct api_schema *s, const struct outer *at, uint32_t number,
                     struct outer *ret)
{
    struct outer inner = *at;
    size_t n = 0;
    while (n < API_MAX_OUTER && inner.numbers[n]) {
        n++;
    }
    if (n == API_MAX_OUTER || number > UINT8_MAX) {
        return false;
    }
    inner.numbers[n] = (uint8_t) number;
    for (size_t i = 0; i < s->n_fields; i++) {
        if (memcmp(s->fields[i].outer, inner.numbers, n + 1) == 0) {
            *ret = inner;
            return true;
        }
    }
    return false;
}

/* The field with the number, within the message 'at'. */
static const struct api_field *find(const struct api_schema *s, const struct outer *at,
                                    uint32_t number)
{
    for (size_t i = 0; i < s->n_numbered; i++) {
        const struct api_field *f = &s->fields[s->by_number[i]];
        if (f->number == number && is_in(f, at)) {
            return f;
        }
    }
    return NULL;
}

/* Whether absent and empty are the same: Go leaves such a value out of JSON. */
static bool is_left_out(const struct api_field *f, const struct json *v)
{
    if (f->pointer || f->always || f->required) {
        return false;
    }
    int64_t i;
    return (json_is(v, JSON_STRING) && !json_string_size(v) && f->schema->type == API_STRING) ||
           (f->schema->type == API_BOOLEAN && !json_get_bool(v, false)) ||
           (f->schema->type == API_INTEGER && json_get_int(v, &i) == 0 && i == 0) ||
           (f->schema->type == API_NUMBER && strtod(json_number_text(v), NULL) == 0);
}

static int decode_field(const struct api_field *f, const struct pb_field *p, struct json *obj,
                        struct decoding *d)
{
    const struct api_schema *s = f->wire ? f->wire : f->schema;
    struct json *v = NULL;
    if (s->type == API_OBJECT && s->others) {
        return p->type == PB_BYTES ? decode_entry(s->others, p, json_ensure_object(obj, f->name), d)
                                   : malformed(d->e);
    }
    bool list = s->type == API_ARRAY;
    if (list && ++d->elements > API_TYPED_MAX_ELEMENTS) {
        return err_set(d->e, -EINVAL, API_TYPED_TOO_MANY);
    }
    int r = decode_value(list ? api_schema_items(s) : s, p, &v, d);
    if (r < 0 || (!v && !list)) {
        return r;
    }
    if (list) {
        json_append(json_ensure_array(obj, f->name), v ? v : json_null());
    } else if (is_left_out(f, v)) {
        json_free(v);
        json_remove(obj, f->name); /* The last value counts. */
    } else {
        json_set(obj, f->name, v);
    }
    return 0;
}

static void add_unknown(const struct api_schema *s, uint32_t number, struct decoding *d)
{
    struct api_paths *p = d->unknown;
    if (p && p->n < API_MAX_PATHS) {
        const char *dot = s->definition ? strrchr(s->definition, '.') : NULL;
        p->list = grow(p->list, &p->cap, p->n + 1, sizeof *p->list);
        p->list[p->n++] = xasprintf("%s.%u", dot ? dot + 1 : "", number);
    }
}

/* A field that is not sent has its empty value, as in Go. */
static void put_empty(const struct api_schema *s, struct json *obj)
{
    for (size_t i = 0; i < s->n_numbered; i++) {
        const struct api_field *f = &s->fields[s->by_number[i]];
        bool scalar = f->schema->type < API_ARRAY && !f->pointer;
        if (scalar && (f->required || f->always) && !json_get(obj, f->name)) {
            struct json *empty = api_typed_empty(f->schema);
            if (empty) {
                json_set(obj, f->name, empty);
            }
        }
    }
}

/* The fields of the message 'at', and of those in it that JSON does not show: API_MAX_OUTER levels
 * at most. */
static int decode_fields(const struct api_schema *s, const struct outer *at,
                         const struct pb_field *m, struct json *obj, struct decoding *d)
{
    struct pb_reader r = reader_of(m);
    struct pb_field p;
    struct outer inner;
    int n;
    while ((n = pb_next(&r, &p)) > 0) {
        const struct api_field *f = find(s, at, p.number);
        if (f) {
            n = decode_field(f, &p, obj, d);
        } else if (is_outer(s, at, p.number, &inner)) {
            n = p.type == PB_BYTES ? decode_fields(s, &inner, &p, obj, d) : malformed(d->e);
        } else if (p.type == PB_BYTES ? p.size : p.value) {
            /* Old clients send empty values in removed fields. */
            add_unknown(s, p.number, d);
        }
        if (n < 0) {
            return n;
        }
    }
    return n < 0 ? malformed(d->e) : 0;
}

static int decode_message(const struct api_schema *s, const struct pb_field *m, struct json *obj,
                          struct decoding *d)
{
    int r = decode_fields(s, &(struct outer){{0}}, m, obj, d);
    if (r == 0) {
        put_empty(s, obj);
    }
    return r;
}

/* ---- objects ---- */

const struct api_schema *api_proto_schema(const char *api_version, const char *kind)
{
    for (size_t i = 0; api_bodies[i].kind; i++) {
        if (streq(api_bodies[i].kind, kind)) {
            return api_bodies[i].schema;
        }
    }
    const struct api_kind *k = api_kind_by_name(api_version, kind);
    return k && k->protobuf ? k->schema : NULL;
}

/* Only reading strings as JSON proves that they are valid text. */
static int checked(const struct json *obj, struct json **ret, struct err *e)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    json_write(obj, 0, &text);
    return json_parse(text.data, text.size, ret, e);
}

/* runtime.TypeMeta: apiVersion = 1, kind = 2. */
static int decode_type(const struct pb_field *f, struct json *obj, struct err *e)
{
    struct pb_reader r = reader_of(f);
    struct pb_field part;
    int n;
    while ((n = pb_next(&r, &part)) > 0) {
        if (part.type != PB_BYTES || part.number > 2) {
            return malformed(e);
        }
        json_set(obj, part.number == 1 ? "apiVersion" : "kind", text_of(&part));
    }
    return n < 0 ? malformed(e) : 0;
}

/* The envelope: four bytes, then runtime.Unknown {typeMeta = 1, raw = 2, contentEncoding = 3,
 * contentType = 4}. */
static int decode_envelope(const void *data, size_t size, struct json *obj, struct pb_field *raw,
                           struct err *e)
{
    static const char magic[4] = {'k', '8', 's', '\0'};
    if (size < sizeof magic || memcmp(data, magic, sizeof magic) != 0) {
        return malformed(e);
    }
    struct pb_reader r = pb_reader_of((const char *) data + sizeof magic, size - sizeof magic);
    struct pb_field f;
    int n;
    while ((n = pb_next(&r, &f)) > 0) {
        if (f.type != PB_BYTES || (f.number > 2 && f.size)) {
            return malformed(e);
        }
        if (f.number == 2) {
            *raw = f;
        } else if (f.number == 1) {
            n = decode_type(&f, obj, e);
            if (n < 0) {
                return n;
            }
        }
    }
    return n < 0 ? malformed(e) : 0;
}

static int decode(const void *data, size_t size, const struct api_kind *k, bool legacy,
                  struct json **ret, struct api_paths *unknown, struct err *e)
{
    CLEANUP(json_free) struct json *obj = json_object();
    struct pb_field raw = {.data = ""};
    int r = decode_envelope(data, size, obj, &raw, e);
    if (r < 0) {
        return r;
    }
    struct decoding d = {.unknown = unknown, .e = e};
    if (k && !json_string_size(json_get(obj, "kind"))) {
        json_set_string(obj, "kind", k->kind);
    }
    bool older = legacy && k && streq_null(json_get_string(json_get(obj, "kind")), k->kind) &&
                 streq_null(json_get_string(json_get(obj, "apiVersion")), API_LEGACY_VERSION);
    if (k && (older || !json_string_size(json_get(obj, "apiVersion")))) {
        CLEANUP_FREE char *own = api_kind_api_version(k);
        json_set_string(obj, "apiVersion", own);
    }
    const char *kind = json_path_string(obj, "kind", NULL);
    const char *version = json_path_string(obj, "apiVersion", NULL);
    const struct api_schema *s = kind && version ? api_proto_schema(version, kind) : NULL;
    if (!s) {
        return err_set(e, -EPROTONOSUPPORT, "%.80s is not accepted as protobuf; send JSON",
                       kind ? kind : "an object without kind");
    }
    r = decode_message(s, &raw, obj, &d);
    return r < 0 ? r : checked(obj, ret, e);
}

int api_proto_decode(const void *data, size_t size, const struct api_kind *k, struct json **ret,
                     struct api_paths *unknown, struct err *e)
{
    return decode(data, size, k, false, ret, unknown, e);
}

int api_proto_decode_legacy(const void *data, size_t size, const struct api_kind *k,
                            struct json **ret, struct api_paths *unknown, struct err *e)
{
    return decode(data, size, k, true, ret, unknown, e);
}
