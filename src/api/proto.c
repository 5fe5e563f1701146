/* SPDX-License-Identifier: Apache-2.0 */
#include "api/proto.h"

#include "api/kinds.h"
#include "api/schema.h"
#include "base/base64.h"
#include "base/timeutil.h"
#include "wire/protobuf.h"

#include <stdio.h>

static int decode_message(const struct api_schema *s, uint16_t outer, const struct pb_field *p,
                          struct json *obj, struct err *e);
static int decode_value(const struct api_schema *s, const struct pb_field *p, struct json **ret,
                        struct err *e);

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
    /* Until the end of year 9999, the limit of the text format. */
    if (n < 0 || seconds < 0 || seconds > INT64_C(253402300799) || nanos < 0 || nanos > 999999999) {
        return malformed(e);
    }
    if (seconds) {
        char text[TIME_TEXT_SIZE];
        time_format_s(seconds * 1000, text);
        *ret = micro ? json_stringf("%.*s.%06lldZ", (int) strcspn(text, "Z"), text,
                                    (long long) nanos / 1000)
                     : json_string(text);
    }
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
        *ret = text_of(&text);
    }
    return r;
}

/* A list in a map: its elements are field 1 of a message (authorization's ExtraValue). */
static int decode_list(const struct api_schema *s, const struct pb_field *f, struct json **ret,
                       struct err *e)
{
    CLEANUP(json_free) struct json *list = json_array();
    struct pb_reader r = reader_of(f);
    struct pb_field part;
    int n;
    while ((n = pb_next(&r, &part)) > 0) {
        struct json *v = NULL;
        if (part.number != 1) {
            return malformed(e);
        }
        n = decode_value(api_schema_items(s), &part, &v, e);
        if (n < 0) {
            return n;
        }
        json_append(list, v ? v : json_null());
    }
    if (n < 0) {
        return malformed(e);
    }
    *ret = TAKE(list);
    return 0;
}

static int decode_number(const struct api_schema *s, const struct pb_field *p, struct json **ret,
                         struct err *e)
{
    double d;
    if (p->type != (s->type == API_NUMBER ? PB_FIXED64 : PB_VARINT)) {
        return malformed(e);
    }
    if (s->type == API_NUMBER) {
        char text[32];
        memcpy(&d, &p->value, sizeof d);
        *ret = json_number_n(text, (size_t) snprintf(text, sizeof text, "%.17g", d));
        return *ret ? 0 : malformed(e); /* JSON has no infinity. */
    } else {
        *ret = s->type == API_BOOLEAN ? json_bool(p->value) : json_int((int64_t) p->value);
    }
    return 0;
}

static int decode_string(const struct api_schema *s, const struct pb_field *p, struct json **ret,
                         struct err *e)
{
    if (s == &api_schema_time || s == &api_schema_micro_time) {
        return decode_time(p, s == &api_schema_micro_time, ret, e);
    }
    *ret = s->format && streq(s->format, "byte") ? base64_of(p) : text_of(p);
    return 0;
}

/* '*ret' stays NULL when the value means absent. */
static int decode_value(const struct api_schema *s, const struct pb_field *p, struct json **ret,
                        struct err *e)
{
    if (s->type == API_BOOLEAN || s->type == API_INTEGER || s->type == API_NUMBER) {
        return decode_number(s, p, ret, e);
    }
    if (p->type != PB_BYTES) {
        return malformed(e);
    }
    switch (s->type) {
    case API_STRING:
        return decode_string(s, p, ret, e);
    case API_INT_OR_STRING:
        return s == &api_schema_quantity ? decode_quantity(p, ret, e)
                                         : decode_int_or_string(p, ret, e);
    case API_ARRAY:
        return decode_list(s, p, ret, e);
    case API_OBJECT:
        if (s->n_fields) {
            CLEANUP(json_free) struct json *sub = json_object();
            int r = decode_message(s, 0, p, sub, e);
            *ret = r < 0 ? NULL : TAKE(sub);
            return r;
        }
        return decode_raw(p, ret, e);
    default:
        return decode_raw(p, ret, e);
    }
}

/* An entry of a map: key = 1, value = 2. */
static int decode_entry(const struct api_schema *s, const struct pb_field *f, struct json *map,
                        struct err *e)
{
    struct pb_reader r = reader_of(f);
    struct pb_field part, value = {.type = PB_BYTES, .data = ""};
    CLEANUP_STRBUF struct strbuf key = STRBUF_INIT;
    struct json *v = NULL;
    int n;
    while ((n = pb_next(&r, &part)) > 0) {
        if (part.number > 2 || (part.number == 1 && part.type != PB_BYTES)) {
            return malformed(e);
        }
        if (part.number == 1) {
            strbuf_reset(&key);
            strbuf_add(&key, part.data, part.size);
        } else {
            value = part;
        }
    }
    if (n < 0 || memchr(strbuf_cstr(&key), '\0', key.size)) {
        return malformed(e);
    }
    n = decode_value(s, &value, &v, e);
    return n < 0 ? n : json_set(map, strbuf_cstr(&key), v ? v : json_string("")) ? 0 : malformed(e);
}

/* ---- messages ---- */

/* The field with the number, within the message 'outer' that JSON does not show (0: the message
 * itself). */
static const struct api_field *find(const struct api_schema *s, uint16_t outer, uint32_t number)
{
    for (size_t i = 0; i < s->n_fields; i++) {
        if (s->fields[i].outer == outer && s->fields[i].number == number) {
            return &s->fields[i];
        }
    }
    return NULL;
}

static bool is_outer(const struct api_schema *s, uint32_t number)
{
    for (size_t i = 0; i < s->n_fields; i++) {
        if (s->fields[i].outer == number) {
            return number != 0;
        }
    }
    return false;
}

static int decode_field(const struct api_field *f, const struct pb_field *p, struct json *obj,
                        struct err *e)
{
    const struct api_schema *s = f->schema;
    struct json *v = NULL;
    bool list = s->type == API_ARRAY;
    if (s->type == API_OBJECT && s->others) {
        return p->type == PB_BYTES ? decode_entry(s->others, p, json_ensure_object(obj, f->name), e)
                                   : malformed(e);
    }
    int r = decode_value(list ? api_schema_items(s) : s, p, &v, e);
    if (r < 0 || !v) {
        return r;
    }
    if (list) {
        json_append(json_ensure_array(obj, f->name), v);
    } else if (json_is(v, JSON_STRING) && !json_string_size(v)) {
        json_free(v); /* proto2 sends empty strings; they mean absent. */
    } else {
        json_set(obj, f->name, v);
    }
    return 0;
}

static int decode_message(const struct api_schema *s, uint16_t outer, const struct pb_field *m,
                          struct json *obj, struct err *e)
{
    struct pb_reader r = reader_of(m);
    struct pb_field p;
    int n;
    while ((n = pb_next(&r, &p)) > 0) {
        const struct api_field *f = find(s, outer, p.number);
        if (f) {
            n = decode_field(f, &p, obj, e);
        } else if (!outer && is_outer(s, p.number)) {
            n = p.type == PB_BYTES ? decode_message(s, (uint16_t) p.number, &p, obj, e)
                                   : malformed(e);
        } else if (p.type != PB_BYTES || p.size) {
            /* Old clients send empty strings in removed fields. */
            n = err_set(e, -EPROTONOSUPPORT, "protobuf field %u is not known here; send JSON",
                        p.number);
        }
        if (n < 0) {
            return n;
        }
    }
    return n < 0 ? malformed(e) : 0;
}

/* ---- objects ---- */

/* The schema of a body; NULL: its kind has no protobuf form. */
static const struct api_schema *schema_of(const char *api_version, const char *kind)
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

int api_proto_decode(const void *data, size_t size, struct json **ret, struct err *e)
{
    CLEANUP(json_free) struct json *obj = json_object();
    struct pb_field raw = {.data = ""};
    int r = decode_envelope(data, size, obj, &raw, e);
    if (r < 0) {
        return r;
    }
    const char *kind = json_path_string(obj, "kind", NULL);
    const char *version = json_path_string(obj, "apiVersion", NULL);
    const struct api_schema *s = kind && version ? schema_of(version, kind) : NULL;
    if (!s) {
        return err_set(e, -EPROTONOSUPPORT, "%.80s is not accepted as protobuf; send JSON",
                       kind ? kind : "an object without kind");
    }
    r = decode_message(s, 0, &raw, obj, e);
    return r < 0 ? r : checked(obj, ret, e);
}
