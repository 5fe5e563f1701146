/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/protobuf_rows.h"

#include "base/mem.h"

#define CHUNK_SIZE ((size_t) 4096)

/* ---- memory ---- */

struct pb_chunk {
    struct pb_chunk *next;
    size_t used, size;
    _Alignas(max_align_t) char data[];
};

void pb_store_done(struct pb_store *s)
{
    while (s->chunks) {
        struct pb_chunk *next = s->chunks->next;
        free(s->chunks);
        s->chunks = next;
    }
}

void *pb_store_alloc(struct pb_store *s, size_t size)
{
    if (size > s->left) {
        return NULL;
    }
    size = (size + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    s->left -= MIN(size, s->left);
    struct pb_chunk *c = s->chunks;
    if (!c || c->size - c->used < size) {
        size_t data_size = MAX(size, CHUNK_SIZE);
        c = xcalloc(1, sizeof *c + data_size);
        c->size = data_size;
        c->next = s->chunks;
        s->chunks = c;
    }
    void *p = c->data + c->used;
    c->used += size;
    return p;
}

const char *pb_store_text(struct pb_store *s, const char *p, size_t size)
{
    char *copy = pb_store_alloc(s, size + 1);
    if (copy && size) {
        memcpy(copy, p, size);
    }
    return copy;
}

/* ---- members ---- */

static const void *member(const void *base, size_t at)
{
    return (const char *) base + at;
}

static void *member_mut(void *base, size_t at)
{
    return (char *) base + at;
}

static bool get_bool(const void *base, size_t at)
{
    return *(const bool *) member(base, at);
}

static size_t get_count(const void *base, const struct pb_row *row)
{
    return *(const size_t *) member(base, row->count_at);
}

static const void *get_pointer(const void *base, size_t at)
{
    return *(const void *const *) member(base, at);
}

static void set_pointer(void *base, size_t at, const void *p)
{
    *(const void **) member_mut(base, at) = p;
}

/* The value of a number's field; negative ones are sign-extended, as proto3 has it. */
static uint64_t get_number(const void *base, const struct pb_row *row)
{
    const void *m = member(base, row->at);
    switch (row->kind) {
    case PB_ROW_BOOL:
        return *(const bool *) m;
    case PB_ROW_NOT_BOOL:
        return !*(const bool *) m;
    case PB_ROW_U16:
        return *(const uint16_t *) m;
    case PB_ROW_U32:
    case PB_ROW_ENUM:
        return *(const uint32_t *) m;
    case PB_ROW_I32:
        return (uint64_t) (int64_t) * (const int32_t *) m;
    case PB_ROW_I64:
        return (uint64_t) * (const int64_t *) m;
    default:
        return *(const uint64_t *) m;
    }
}

/* -EBADMSG: the member cannot hold the value. */
static int set_number(void *base, const struct pb_row *row, uint64_t v)
{
    void *m = member_mut(base, row->at);
    switch (row->kind) {
    case PB_ROW_BOOL:
        *(bool *) m = v != 0;
        return 0;
    case PB_ROW_NOT_BOOL:
        *(bool *) m = v == 0;
        return 0;
    case PB_ROW_U16:
        if (v > UINT16_MAX) {
            return -EBADMSG;
        }
        *(uint16_t *) m = (uint16_t) v;
        return 0;
    case PB_ROW_U32:
    case PB_ROW_ENUM:
        *(uint32_t *) m = (uint32_t) v; /* proto3 cuts a longer varint off. */
        return 0;
    case PB_ROW_I32:
        *(int32_t *) m = (int32_t) (uint32_t) v;
        return 0;
    case PB_ROW_I64:
        *(int64_t *) m = (int64_t) v;
        return 0;
    default:
        *(uint64_t *) m = v;
        return 0;
    }
}

static bool is_number(enum pb_row_kind kind)
{
    return kind <= PB_ROW_ENUM;
}

static bool is_repeated(enum pb_row_kind kind)
{
    return kind == PB_ROW_TEXTS || kind == PB_ROW_I64S || kind == PB_ROW_LIST;
}

/* ---- writing ---- */

static void format_message(struct strbuf *b, const struct pb_row *row, const void *from, bool keep)
{
    size_t start = b->size;
    size_t mark = pb_begin(b, row->number);
    pb_format(b, row->shape, from);
    if (b->size == mark && !keep) {
        b->size = start; /* Nothing is in it. */
        return;
    }
    pb_end(b, mark);
}

static void format_i64s(struct strbuf *b, const struct pb_row *row, const int64_t *v, size_t n)
{
    if (n == 0) {
        return;
    }
    CLEANUP_STRBUF struct strbuf packed = STRBUF_INIT;
    for (size_t i = 0; i < n; i++) {
        pb_add_varint(&packed, (uint64_t) v[i]);
    }
    pb_put_bytes(b, row->number, packed.data, packed.size);
}

static void format_row(struct strbuf *b, const struct pb_row *row, const void *from)
{
    bool always = row->flags & PB_ROW_ALWAYS;
    const void *p;
    size_t n;
    switch (row->kind) {
    case PB_ROW_TEXT:
    case PB_ROW_TEXT_OR_NULL:
        p = get_pointer(from, row->at);
        n = p ? strlen(p) : 0;
        if (n || always) {
            pb_put_bytes(b, row->number, p ? p : "", n);
        }
        return;
    case PB_ROW_BYTES:
        n = get_count(from, row);
        if (n || always) {
            pb_put_bytes(b, row->number, n ? get_pointer(from, row->at) : "", n);
        }
        return;
    case PB_ROW_TEXTS:
        p = get_pointer(from, row->at);
        for (size_t i = 0; i < get_count(from, row); i++) {
            const char *text = ((const char *const *) p)[i];
            pb_put_bytes(b, row->number, text, strlen(text));
        }
        return;
    case PB_ROW_I64S:
        format_i64s(b, row, get_pointer(from, row->at), get_count(from, row));
        return;
    case PB_ROW_LIST:
        p = get_pointer(from, row->at);
        for (size_t i = 0; i < get_count(from, row); i++) {
            format_message(b, row, member(p, i * row->shape->size), true);
        }
        return;
    case PB_ROW_PART:
        if (!(row->flags & PB_ROW_HAS)) {
            format_message(b, row, member(from, row->at), always);
        } else if (get_bool(from, row->count_at)) {
            format_message(b, row, member(from, row->at), true);
        }
        return;
    case PB_ROW_REF:
        p = get_pointer(from, row->at);
        if (p) {
            format_message(b, row, p, true);
        }
        return;
    default: {
        uint64_t v = get_number(from, row);
        if (v || always) {
            pb_put_uint(b, row->number, v);
        }
        return;
    }
    }
}

void pb_format(struct strbuf *b, const struct pb_shape *shape, const void *from)
{
    for (size_t i = 0; i < shape->n_rows; i++) {
        format_row(b, &shape->rows[i], from);
    }
}

/* ---- reading ---- */

static const struct pb_row *find_row(const struct pb_shape *shape, uint32_t number)
{
    for (size_t i = 0; i < shape->n_rows; i++) {
        if (shape->rows[i].number == number) {
            return &shape->rows[i];
        }
    }
    return NULL;
}

/* What a struct has when no field is there: texts are "", and a negated enum is true. */
static void set_defaults(const struct pb_shape *shape, void *base)
{
    for (size_t i = 0; i < shape->n_rows; i++) {
        const struct pb_row *row = &shape->rows[i];
        if (row->kind == PB_ROW_TEXT) {
            set_pointer(base, row->at, "");
        } else if (row->kind == PB_ROW_NOT_BOOL) {
            *(bool *) member_mut(base, row->at) = true;
        } else if (row->kind == PB_ROW_PART) {
            set_defaults(row->shape, member_mut(base, row->at));
        }
    }
}

static int count_packed(const struct pb_field *f, size_t *ret)
{
    struct pb_reader r = pb_reader_of(f->data, f->size);
    uint64_t v;
    while (r.p < r.end) {
        if (pb_read_varint(&r, &v) < 0) {
            return -EBADMSG;
        }
        ++*ret;
    }
    return 0;
}

/* Allocates the arrays of the repeated fields; their counts begin at 0 again. */
static int make_arrays(struct pb_store *s, const struct pb_shape *shape, const void *data,
                       size_t size, void *base)
{
    size_t counts[PB_SHAPE_ROWS_MAX] = {0};
    struct pb_reader r = pb_reader_of(data, size);
    struct pb_field f;
    int more;
    assert(shape->n_rows <= PB_SHAPE_ROWS_MAX);
    while ((more = pb_next(&r, &f)) > 0) {
        const struct pb_row *row = find_row(shape, f.number);
        if (!row || !is_repeated(row->kind)) {
            continue;
        }
        size_t *count = &counts[row - shape->rows];
        if (row->kind == PB_ROW_I64S && f.type == PB_BYTES) {
            if (count_packed(&f, count) < 0) {
                return -EBADMSG;
            }
        } else {
            ++*count;
        }
    }
    if (more < 0) {
        return more;
    }
    for (size_t i = 0; i < shape->n_rows; i++) {
        const struct pb_row *row = &shape->rows[i];
        if (!is_repeated(row->kind) || !counts[i]) {
            continue;
        }
        size_t each = row->kind == PB_ROW_LIST    ? row->shape->size
                      : row->kind == PB_ROW_TEXTS ? sizeof(char *)
                                                  : sizeof(int64_t);
        void *array = counts[i] <= SIZE_MAX / each ? pb_store_alloc(s, counts[i] * each) : NULL;
        if (!array) {
            return -EMSGSIZE;
        }
        set_pointer(base, row->at, array);
        *(size_t *) member_mut(base, row->count_at) = 0;
    }
    return 0;
}

static int parse_fields(struct pb_store *s, const struct pb_shape *shape, const void *data,
                        size_t size, void *base);

static int parse_text(struct pb_store *s, const struct pb_field *f, const char **ret)
{
    *ret = pb_store_text(s, f->data, f->size);
    return *ret ? 0 : -EMSGSIZE;
}

/* The next element of the array of a repeated field. */
static void *next_element(void *base, const struct pb_row *row, size_t size)
{
    size_t *n = member_mut(base, row->count_at);
    return *(char **) member_mut(base, row->at) + (*n)++ * size;
}

static int parse_i64s(const struct pb_row *row, const struct pb_field *f, void *base)
{
    if (f->type == PB_VARINT) {
        *(int64_t *) next_element(base, row, sizeof(int64_t)) = (int64_t) f->value;
        return 0;
    }
    struct pb_reader r = pb_reader_of(f->data, f->size);
    uint64_t v;
    while (r.p < r.end && pb_read_varint(&r, &v) == 0) {
        *(int64_t *) next_element(base, row, sizeof(int64_t)) = (int64_t) v;
    }
    return 0;
}

static int parse_message(struct pb_store *s, const struct pb_row *row, const struct pb_field *f,
                         void *base)
{
    void *at = member_mut(base, row->at);
    if (row->kind == PB_ROW_PART) {
        if (row->flags & PB_ROW_HAS) {
            *(bool *) member_mut(base, row->count_at) = true;
        }
        return parse_fields(s, row->shape, f->data, f->size, at);
    }
    if (row->kind == PB_ROW_LIST) {
        at = next_element(base, row, row->shape->size);
    } else {
        void *made = pb_store_alloc(s, row->shape->size);
        if (!made) {
            return -EMSGSIZE;
        }
        set_pointer(base, row->at, made);
        at = made;
    }
    set_defaults(row->shape, at);
    return parse_fields(s, row->shape, f->data, f->size, at);
}

static int parse_field(struct pb_store *s, const struct pb_row *row, const struct pb_field *f,
                       void *base)
{
    const char *text = NULL;
    int r;
    if (is_number(row->kind)) {
        return f->type == PB_VARINT ? set_number(base, row, f->value) : -EBADMSG;
    }
    if (f->type != PB_BYTES && !(row->kind == PB_ROW_I64S && f->type == PB_VARINT)) {
        return -EBADMSG;
    }
    switch (row->kind) {
    case PB_ROW_TEXT:
    case PB_ROW_TEXT_OR_NULL:
        r = parse_text(s, f, &text);
        if (r == 0) {
            set_pointer(base, row->at, row->kind == PB_ROW_TEXT || *text ? text : NULL);
        }
        return r;
    case PB_ROW_BYTES:
        r = parse_text(s, f, &text);
        if (r == 0) {
            set_pointer(base, row->at, text);
            *(size_t *) member_mut(base, row->count_at) = f->size;
        }
        return r;
    case PB_ROW_TEXTS:
        r = parse_text(s, f, &text);
        if (r == 0) {
            *(const char **) next_element(base, row, sizeof(char *)) = text;
        }
        return r;
    case PB_ROW_I64S:
        return parse_i64s(row, f, base);
    default:
        return parse_message(s, row, f, base);
    }
}

static int parse_fields(struct pb_store *s, const struct pb_shape *shape, const void *data,
                        size_t size, void *base)
{
    int r = make_arrays(s, shape, data, size, base);
    struct pb_reader reader = pb_reader_of(data, size);
    struct pb_field f;
    while (r == 0 && pb_next(&reader, &f) > 0) {
        const struct pb_row *row = find_row(shape, f.number);
        r = row ? parse_field(s, row, &f, base) : 0;
    }
    return r;
}

int pb_parse(struct pb_store *s, const struct pb_shape *shape, const void *data, size_t size,
             void *ret)
{
    memset(ret, 0, shape->size);
    set_defaults(shape, ret);
    return parse_fields(s, shape, data, size, ret);
}
