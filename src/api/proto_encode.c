/* SPDX-License-Identifier: Apache-2.0 */
/* Objects as protobuf: the order and presence of fields are those of Go's generated code. */
#include "api/kinds.h"
#include "api/moment.h"
#include "api/proto.h"
#include "base/base64.h"
#include "base/mem.h"
#include "wire/protobuf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* The depth is that of the object, which is bounded by JSON_MAX_DEPTH, and twice that where
 * messages have a value of one of several types in them. */
static void put_message(const struct api_schema *s, const struct json *obj, struct strbuf *out);
static void put_either(const struct api_schema *s, const struct json *v, struct strbuf *out);

static void put_text(uint32_t number, const char *s, struct strbuf *out)
{
    pb_put_bytes(out, number, s, strlen(s));
}

static bool is_time(const struct api_schema *s)
{
    return s == &api_schema_time || s == &api_schema_micro_time;
}

/* ---- values ---- */

/* meta.v1 Time and MicroTime: seconds = 1, nanos = 2; a Time has no nanos, and no time is an empty
 * message. */
static void put_time(bool micro, const char *text, uint32_t number, struct strbuf *out)
{
    struct moment m;
    size_t mark = pb_begin(out, number);
    /* Objects that another release has stored may have other digits. */
    if (text &&
        (moment_parse(text, micro, &m, NULL) == 0 || moment_parse(text, false, &m, NULL) == 0) &&
        m.s != MOMENT_NONE_S) {
        pb_put_uint(out, 1, (uint64_t) m.s);
        pb_put_uint(out, 2, micro ? (uint64_t) (m.ns / 1000 * 1000) : 0);
    }
    pb_end(out, mark);
}

/* meta.v1 Duration: duration = 1, in nanoseconds. */
static void put_duration(const char *text, uint32_t number, struct strbuf *out)
{
    int64_t ns = 0;
    size_t mark = pb_begin(out, number);
    (void) time_parse_duration(text ? text : "", &ns);
    pb_put_uint(out, 1, (uint64_t) ns);
    pb_end(out, mark);
}

/* intstr.IntOrString: type = 1 (0: a number), intVal = 2, strVal = 3. */
static void put_int_or_string(const struct json *v, uint32_t number, struct strbuf *out)
{
    bool text = json_is(v, JSON_STRING);
    size_t mark = pb_begin(out, number);
    pb_put_uint(out, 1, text);
    pb_put_uint(out, 2, (uint64_t) json_get_int_or(v, 0));
    put_text(3, text ? json_get_string(v) : "", out);
    pb_end(out, mark);
}

/* resource.Quantity: string = 1. */
static void put_quantity(const struct json *v, uint32_t number, struct strbuf *out)
{
    const char *text = json_is(v, JSON_NUMBER) ? json_number_text(v) : json_get_string(v);
    size_t mark = pb_begin(out, number);
    put_text(1, text ? text : "0", out);
    pb_end(out, mark);
}

/* A value that protobuf carries as JSON text: runtime.RawExtension, FieldsV1, raw = 1; null is no
 * text. */
static void put_raw(const struct json *v, uint32_t number, struct strbuf *out)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    size_t mark = pb_begin(out, number);
    if (v && !json_is(v, JSON_NULL)) {
        json_write(v, 0, &text);
        pb_put_bytes(out, 1, text.data, text.size);
    }
    pb_end(out, mark);
}

static void put_string(const struct api_schema *s, const struct json *v, uint32_t number,
                       struct strbuf *out)
{
    const char *text = json_get_string(v);
    if (is_time(s)) {
        put_time(s == &api_schema_micro_time, text, number, out);
    } else if (s == &api_schema_duration) {
        put_duration(text, number, out);
    } else if (text && s->format && streq(s->format, "byte")) {
        CLEANUP_STRBUF struct strbuf bytes = STRBUF_INIT;
        base64_decode(text, json_string_size(v), &bytes);
        pb_put_bytes(out, number, strbuf_cstr(&bytes), bytes.size);
    } else {
        put_text(number, text ? text : "", out);
    }
}

static void put_value(const struct api_schema *s, const struct json *v, uint32_t number,
                      struct strbuf *out)
{
    size_t mark;
    const struct json *item;
    switch (s->type) {
    case API_BOOLEAN:
        pb_put_uint(out, number, json_get_bool(v, false));
        break;
    case API_INTEGER:
        pb_put_uint(out, number, (uint64_t) json_get_int_or(v, 0));
        break;
    case API_NUMBER:
        pb_put_double(out, number, json_is(v, JSON_NUMBER) ? strtod(json_number_text(v), NULL) : 0);
        break;
    case API_STRING:
        put_string(s, v, number, out);
        break;
    case API_INT_OR_STRING:
        (s == &api_schema_quantity ? put_quantity : put_int_or_string)(v, number, out);
        break;
    case API_ARRAY:
        /* A list in a map is a message with the elements (authorization's ExtraValue). */
        mark = pb_begin(out, number);
        JSON_FOREACH (item, v) {
            put_value(api_schema_items(s), item, 1, out);
        }
        pb_end(out, mark);
        break;
    default:
        if (api_schema_is_raw(s)) {
            put_raw(v, number, out);
            break;
        }
        mark = pb_begin(out, number);
        (s->either ? put_either : put_message)(s, v, out);
        pb_end(out, mark);
    }
}

/* ---- fields ---- */

static int compare_keys(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}

/* Entries by key: key = 1, value = 2. */
static void put_map(const struct api_schema *s, const struct json *map, uint32_t number,
                    struct strbuf *out)
{
    size_t n = json_count(map);
    CLEANUP_FREE const char **keys = xcalloc(n, sizeof *keys);
    for (size_t i = 0; i < n; i++) {
        keys[i] = json_key_at(map, i);
    }
    qsort(keys, n, sizeof *keys, compare_keys);
    for (size_t i = 0; i < n; i++) {
        size_t mark = pb_begin(out, number);
        put_text(1, keys[i], out);
        put_value(s, json_get(map, keys[i]), 2, out);
        pb_end(out, mark);
    }
}

static const struct api_schema *schema_of(const struct api_field *f)
{
    return f->wire ? f->wire : f->schema;
}

/* Whether Go writes the field when the object does not have it: it has no pointer that could be
 * nil, and is no list, map or run of bytes. */
static bool is_written_empty(const struct api_field *f)
{
    const struct api_schema *s = schema_of(f);
    if (s->type == API_OBJECT && !s->others && !api_schema_is_raw(s)) {
        return f->always;
    }
    bool bytes = s->type == API_STRING && s->format && streq(s->format, "byte");
    return !f->pointer && s->type != API_ARRAY && s->type != API_ANY && !s->others && !bytes;
}

static void put_present(const struct api_field *f, const struct json *v, struct strbuf *out)
{
    const struct api_schema *s = schema_of(f);
    const struct json *item;
    if (s->type == API_ARRAY) {
        JSON_FOREACH (item, v) {
            put_value(api_schema_items(s), item, f->number, out);
        }
    } else if (s->type == API_OBJECT && s->others) {
        put_map(s->others, v, f->number, out);
    } else {
        put_value(s, v, f->number, out);
    }
}

/* Null is absent.  A list or map that is none is left out: the value of a field with a message of
 * another schema is checked by its own rules, not by that schema. */
static void put_field(const struct api_field *f, const struct json *obj, struct strbuf *out)
{
    const struct api_schema *s = schema_of(f);
    const struct json *v = json_get(obj, f->name);
    bool map = s->type == API_OBJECT && s->others;
    if (s->type == API_ARRAY || map ? json_is(v, map ? JSON_OBJECT : JSON_ARRAY)
                                    : v && !json_is(v, JSON_NULL)) {
        put_present(f, v, out);
    } else if (is_written_empty(f)) {
        put_value(s, NULL, f->number, out);
    }
}

/* The field of the value's type; a truth is told with a schema, too. */
static void put_either(const struct api_schema *s, const struct json *v, struct strbuf *out)
{
    for (size_t i = 0; i < s->n_numbered; i++) {
        const struct api_field *f = &s->fields[s->by_number[i]];
        enum api_type type = f->schema->type;
        if (type == API_BOOLEAN) {
            pb_put_uint(out, f->number, json_get_bool(v, true));
        } else if (json_is(v, type == API_ARRAY ? JSON_ARRAY : JSON_OBJECT)) {
            put_present(f, v, out);
        }
    }
}

/* The messages that JSON does not show and that have begun, from the outside in; 0: no further
 * one. */
struct outer {
    uint8_t numbers[API_MAX_OUTER];
    size_t marks[API_MAX_OUTER];
};

/* Ends the messages that are not in the path 'to', and begins its further ones. */
static void move_outer(struct outer *at, const uint8_t to[API_MAX_OUTER], struct strbuf *out)
{
    size_t same = 0;
    while (same < API_MAX_OUTER && at->numbers[same] == to[same]) {
        same++;
    }
    for (size_t i = API_MAX_OUTER; i-- > same;) {
        if (at->numbers[i]) {
            pb_end(out, at->marks[i]);
        }
    }
    for (size_t i = same; i < API_MAX_OUTER; i++) {
        at->numbers[i] = to[i];
        at->marks[i] = to[i] ? pb_begin(out, to[i]) : 0;
    }
}

static void put_message(const struct api_schema *s, const struct json *obj, struct strbuf *out)
{
    static const uint8_t none[API_MAX_OUTER];
    struct outer at = {{0}, {0}};
    for (size_t i = 0; i < s->n_numbered; i++) {
        const struct api_field *f = &s->fields[s->by_number[i]];
        move_outer(&at, f->outer, out);
        put_field(f, obj, out);
    }
    move_outer(&at, none, out);
}

void api_proto_encode(const struct api_schema *s, const struct json *obj, struct strbuf *out)
{
    put_message(s, obj, out);
}

/* ---- envelopes ---- */

#define RAW 2

static size_t varint_size(uint64_t v)
{
    size_t n = 1;
    for (; v >= 0x80; v >>= 7) {
        n++;
    }
    return n;
}

/* The tag, and the length with 'size' bytes: the beginning of a run of bytes. */
static void put_length(uint32_t number, size_t size, struct strbuf *out)
{
    strbuf_addc(out, (char) (number << 3 | PB_BYTES));
    uint64_t v = size;
    for (; v >= 0x80; v >>= 7) {
        strbuf_addc(out, (char) (v | 0x80));
    }
    strbuf_addc(out, (char) v);
}

void api_proto_put_head(const char *api_version, const char *kind, size_t size, struct strbuf *out)
{
    strbuf_add(out, "k8s", 4);
    size_t mark = pb_begin(out, 1);
    put_text(1, api_version, out);
    put_text(2, kind, out);
    pb_end(out, mark);
    put_length(RAW, size, out);
}

void api_proto_put_end(struct strbuf *out)
{
    put_text(3, "", out); /* contentEncoding */
    put_text(4, "", out); /* contentType */
}

/* The kind of which 'list' is the list; NULL: it is none, or without a protobuf form. */
static const struct api_kind *kind_of_list(const char *api_version, const char *list)
{
    for (size_t i = 0; api_kinds[i]; i++) {
        CLEANUP_FREE char *version = api_kind_api_version(api_kinds[i]);
        CLEANUP_FREE char *own = api_kind_list_kind(api_kinds[i]);
        if (api_kinds[i]->protobuf && streq(version, api_version) && streq(own, list)) {
            return api_kinds[i];
        }
    }
    return NULL;
}

static int put_object_message(const char *version, const char *kind, const struct json *obj,
                              struct strbuf *out)
{
    const struct api_schema *s = api_proto_schema(version, kind);
    const struct api_kind *k = s ? NULL : kind_of_list(version, kind);
    const struct json *item;
    if (s) {
        put_message(s, obj, out);
        return 0;
    }
    if (!k) {
        return -EPROTONOSUPPORT;
    }
    put_value(&api_schema_list_meta, json_get(obj, "metadata"), 1, out);
    JSON_FOREACH (item, json_get(obj, "items")) {
        put_value(api_kind_schema(k), item, API_PROTO_ITEM, out);
    }
    return 0;
}

int api_proto_put_object(const struct json *obj, struct strbuf *out)
{
    CLEANUP_STRBUF struct strbuf raw = STRBUF_INIT;
    const char *version = json_get_text(obj, "apiVersion"); /* APIVersions has none. */
    const char *kind = json_path_string(obj, "kind", NULL);
    if (!kind || put_object_message(version, kind, obj, &raw) < 0) {
        return -EPROTONOSUPPORT;
    }
    api_proto_put_head(version, kind, raw.size, out);
    strbuf_add(out, strbuf_cstr(&raw), raw.size);
    api_proto_put_end(out);
    return 0;
}

void api_proto_put_list_meta(uint64_t revision, const char *token, const size_t *remaining,
                             struct strbuf *out)
{
    char text[24];
    size_t mark = pb_begin(out, 1);
    snprintf(text, sizeof text, "%" PRIu64, revision);
    put_text(1, "", out); /* selfLink */
    put_text(2, text, out);
    put_text(3, token ? token : "", out);
    if (remaining) {
        pb_put_uint(out, 4, *remaining);
    }
    pb_end(out, mark);
}

size_t api_proto_item_size(size_t size)
{
    return 1 + varint_size(size) + size;
}

void api_proto_put_event(const char *type, const struct strbuf *object, struct strbuf *out)
{
    CLEANUP_STRBUF struct strbuf event = STRBUF_INIT;
    put_text(1, type, &event);
    size_t mark = pb_begin(&event, 2);
    pb_put_bytes(&event, 1, object->data, object->size); /* RawExtension.raw */
    pb_end(&event, mark);
    for (int shift = 24; shift >= 0; shift -= 8) {
        strbuf_addc(out, (char) (event.size >> shift & 0xff));
    }
    strbuf_add(out, event.data, event.size);
}
