/* SPDX-License-Identifier: Apache-2.0 */
#include "api/proto.h"

#include "api/proto_internal.h"
#include "base/base64.h"
#include "base/timeutil.h"
#include "wire/protobuf.h"

/* Field numbers: generated.proto of k8s.io/apimachinery/pkg/apis/meta/v1, pkg/runtime and
 * k8s.io/api/core/v1. */
static const struct proto_field owner_fields[] = {
    {1, "kind", T_STRING},       {3, "name", T_STRING},     {4, "uid", T_STRING},
    {5, "apiVersion", T_STRING}, {6, "controller", T_BOOL}, {7, "blockOwnerDeletion", T_BOOL},
};
static const struct proto_message owner = PROTO_MESSAGE(owner_fields);

static const struct proto_field meta_fields[] = {
    {1, "name", T_STRING},
    {2, "generateName", T_STRING},
    {3, "namespace", T_STRING},
    {4, "selfLink", T_STRING},
    {5, "uid", T_STRING},
    {6, "resourceVersion", T_STRING},
    {7, "generation", T_INT},
    {8, "creationTimestamp", T_TIME},
    {9, "deletionTimestamp", T_TIME},
    {10, "deletionGracePeriodSeconds", T_INT},
    {11, "labels", T_MAP},
    {12, "annotations", T_MAP},
    {13, "ownerReferences", T_MESSAGE, true, &owner},
    {14, "finalizers", T_STRING, true},
    {15, "clusterName", T_IGNORED},
    {17, "managedFields", T_IGNORED},
};
const struct proto_message proto_meta = PROTO_MESSAGE(meta_fields);

static const struct proto_field condition_fields[] = {
    {1, "type", T_STRING},   {2, "status", T_STRING},  {4, "lastTransitionTime", T_TIME},
    {5, "reason", T_STRING}, {6, "message", T_STRING},
};
static const struct proto_message condition = PROTO_MESSAGE(condition_fields);

static const struct proto_field namespace_spec_fields[] = {{1, "finalizers", T_STRING, true}};
static const struct proto_message namespace_spec = PROTO_MESSAGE(namespace_spec_fields);
static const struct proto_field namespace_status_fields[] = {
    {1, "phase", T_STRING},
    {2, "conditions", T_MESSAGE, true, &condition},
};
static const struct proto_message namespace_status = PROTO_MESSAGE(namespace_status_fields);
static const struct proto_field namespace_fields[] = {
    {1, "metadata", T_MESSAGE, false, &proto_meta},
    {2, "spec", T_MESSAGE, false, &namespace_spec},
    {3, "status", T_MESSAGE, false, &namespace_status},
};

static const struct proto_field config_map_fields[] = {
    {1, "metadata", T_MESSAGE, false, &proto_meta},
    {2, "data", T_MAP},
    {3, "binaryData", T_BYTES_MAP},
    {4, "immutable", T_BOOL},
};

static const struct proto_field preconditions_fields[] = {{1, "uid", T_STRING},
                                                          {2, "resourceVersion", T_STRING}};
static const struct proto_message preconditions = PROTO_MESSAGE(preconditions_fields);
static const struct proto_field delete_options_fields[] = {
    {1, "gracePeriodSeconds", T_INT}, {2, "preconditions", T_MESSAGE, false, &preconditions},
    {3, "orphanDependents", T_BOOL},  {4, "propagationPolicy", T_STRING},
    {5, "dryRun", T_STRING, true},
};

static const struct proto_kind kinds[] = {
    {"Namespace", PROTO_MESSAGE(namespace_fields)},
    {"ConfigMap", PROTO_MESSAGE(config_map_fields)},
    {"DeleteOptions", PROTO_MESSAGE(delete_options_fields)},
    {0},
};

static int decode_message(const struct proto_message *m, const char *data, size_t size,
                          struct json *obj, struct err *e);

static int malformed(struct err *e)
{
    return err_set(e, -EINVAL, "malformed protobuf");
}

static struct json *base64_of(const char *data, size_t size)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    base64_encode(data, size, &b);
    return json_string(strbuf_cstr(&b));
}

/* The repeated strings that are field 1; NULL: malformed. */
static struct json *decode_list(const char *data, size_t size)
{
    CLEANUP(json_free) struct json *list = json_array();
    struct pb_reader r = pb_reader_of(data, size);
    struct pb_field part;
    int n;
    while ((n = pb_next(&r, &part)) > 0) {
        if (part.type != PB_BYTES || part.number != 1) {
            return NULL;
        }
        json_append(list, json_string_n(part.data, part.size));
    }
    return n < 0 ? NULL : TAKE(list);
}

/* An entry of a map: key = 1, value = 2. */
static int decode_entry(enum proto_type type, const struct pb_field *f, struct json *map,
                        struct err *e)
{
    struct pb_reader r = pb_reader_of(f->data, f->size);
    struct pb_field part;
    CLEANUP_STRBUF struct strbuf key = STRBUF_INIT;
    const char *value = "";
    size_t value_size = 0;
    int n;
    while ((n = pb_next(&r, &part)) > 0) {
        if (part.type != PB_BYTES || part.number > 2) {
            return malformed(e);
        }
        if (part.number == 1) {
            strbuf_reset(&key);
            strbuf_add(&key, part.data, part.size);
        } else {
            value = part.data;
            value_size = part.size;
        }
    }
    if (n < 0 || memchr(strbuf_cstr(&key), '\0', key.size)) {
        return malformed(e);
    }
    struct json *v = type == T_BYTES_MAP  ? base64_of(value, value_size)
                     : type == T_LIST_MAP ? decode_list(value, value_size)
                                          : json_string_n(value, value_size);
    return json_set(map, strbuf_cstr(&key), v) ? 0 : malformed(e);
}

/* Time: seconds = 1, nanos = 2; the empty message is the zero time, which is absent. */
static int decode_time(const struct pb_field *f, struct json **ret, struct err *e)
{
    struct pb_reader r = pb_reader_of(f->data, f->size);
    struct pb_field part;
    int64_t seconds = 0;
    int n;
    while ((n = pb_next(&r, &part)) > 0) {
        if (part.number == 1 && part.type == PB_VARINT) {
            seconds = (int64_t) part.value;
        }
    }
    /* To the end of year 9999, which is as far as the text goes. */
    if (n < 0 || seconds < 0 || seconds > INT64_C(253402300799)) {
        return malformed(e);
    }
    if (seconds) {
        char text[TIME_TEXT_SIZE];
        time_format_s(seconds * 1000, text);
        *ret = json_string(text);
    }
    return 0;
}

/* IntOrString: type = 1 (0: a number), intVal = 2, strVal = 3. */
static int decode_int_or_string(const struct pb_field *f, struct json **ret, struct err *e)
{
    struct pb_reader r = pb_reader_of(f->data, f->size);
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

/* '*ret' stays NULL when there is nothing to be set. */
static int decode_value(const struct proto_field *f, const struct pb_field *p, struct json **ret,
                        struct err *e)
{
    enum pb_type want = f->type == T_INT || f->type == T_BOOL ? PB_VARINT : PB_BYTES;
    if (p->type != want) {
        return malformed(e);
    }
    switch (f->type) {
    case T_STRING:
        /* proto2 sends empty strings; they mean absent. */
        if (p->size || f->repeated) {
            *ret = json_string_n(p->data, p->size);
        }
        return 0;
    case T_INT:
        *ret = json_int((int64_t) p->value);
        return 0;
    case T_BOOL:
        *ret = json_bool(p->value);
        return 0;
    case T_TIME:
        return decode_time(p, ret, e);
    case T_INT_OR_STRING:
        return decode_int_or_string(p, ret, e);
    case T_MESSAGE: {
        CLEANUP(json_free) struct json *sub = json_object();
        int r = decode_message(f->message, p->data, p->size, sub, e);
        *ret = r < 0 ? NULL : TAKE(sub);
        return r;
    }
    case T_BYTES:
        *ret = base64_of(p->data, p->size);
        return 0;
    case T_MAP:
    case T_BYTES_MAP:
    case T_LIST_MAP:
    case T_IGNORED:
        break;
    }
    return 0;
}

static const struct proto_field *find(const struct proto_message *m, uint32_t number)
{
    for (size_t i = 0; i < m->n; i++) {
        if (m->fields[i].number == number) {
            return &m->fields[i];
        }
    }
    return NULL;
}

static int decode_message(const struct proto_message *m, const char *data, size_t size,
                          struct json *obj, struct err *e)
{
    struct pb_reader r = pb_reader_of(data, size);
    struct pb_field p;
    int n;
    while ((n = pb_next(&r, &p)) > 0) {
        const struct proto_field *f = find(m, p.number);
        struct json *v = NULL;
        if (!f) {
            return err_set(e, -EPROTONOSUPPORT, "protobuf field %u is not known here; send JSON",
                           p.number);
        }
        if (f->type == T_MAP || f->type == T_BYTES_MAP || f->type == T_LIST_MAP) {
            if (p.type != PB_BYTES) {
                return malformed(e);
            }
            n = decode_entry(f->type, &p, json_ensure_object(obj, f->name), e);
        } else {
            n = decode_value(f, &p, &v, e);
        }
        if (n < 0) {
            return n;
        }
        if (v && f->repeated) {
            json_append(json_ensure_array(obj, f->name), v);
        } else if (v) {
            json_set(obj, f->name, v);
        }
    }
    return n < 0 ? malformed(e) : 0;
}

static const struct proto_message *find_kind(const struct proto_kind *list, const char *kind)
{
    for (size_t i = 0; list[i].kind; i++) {
        if (streq(list[i].kind, kind)) {
            return &list[i].message;
        }
    }
    return NULL;
}

static struct json *text_of(const struct pb_field *f)
{
    return json_string_n(f->data, f->size);
}

/* Strings are only known to be text once they were read as JSON. */
static int checked(const struct json *obj, struct json **ret, struct err *e)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    json_write(obj, 0, &text);
    return json_parse(text.data, text.size, ret, e);
}

/* The envelope: four bytes, then Unknown {typeMeta = 1 {apiVersion = 1, kind = 2}, raw = 2,
 * contentEncoding = 3, contentType = 4}. */
int api_proto_decode(const void *data, size_t size, struct json **ret, struct err *e)
{
    static const char magic[4] = {'k', '8', 's', '\0'};
    if (size < sizeof magic || memcmp(data, magic, sizeof magic) != 0) {
        return malformed(e);
    }
    CLEANUP(json_free) struct json *obj = json_object();
    struct pb_reader r = pb_reader_of((const char *) data + sizeof magic, size - sizeof magic);
    struct pb_field f, raw = {0}, part;
    int n;
    while ((n = pb_next(&r, &f)) > 0) {
        if (f.type != PB_BYTES || (f.number > 2 && f.size)) {
            return malformed(e);
        }
        if (f.number == 2) {
            raw = f;
        } else if (f.number == 1) {
            struct pb_reader t = pb_reader_of(f.data, f.size);
            while ((n = pb_next(&t, &part)) > 0) {
                if (part.type != PB_BYTES || part.number > 2) {
                    return malformed(e);
                }
                json_set(obj, part.number == 1 ? "apiVersion" : "kind", text_of(&part));
            }
            if (n < 0) {
                return malformed(e);
            }
        }
    }
    if (n < 0) {
        return malformed(e);
    }
    const char *kind = json_path_string(obj, "kind", NULL);
    const struct proto_message *m = kind ? find_kind(kinds, kind) : NULL;
    m = !m && kind ? find_kind(proto_security_kinds, kind) : m;
    m = !m && kind ? find_kind(proto_service_kinds, kind) : m;
    if (m) {
        n = decode_message(m, raw.data, raw.size, obj, e);
        return n < 0 ? n : checked(obj, ret, e);
    }
    return err_set(e, -EPROTONOSUPPORT, "%.80s is not accepted as protobuf; send JSON",
                   kind ? kind : "an object without kind");
}
