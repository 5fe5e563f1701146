/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/json.h"

#include "base/mem.h"
#include "wire/json_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/auxv.h>

static const struct json the_null = {.type = JSON_NULL, .permanent = true};
static const struct json the_false = {.type = JSON_BOOL, .permanent = true};
static const struct json the_true = {.type = JSON_BOOL, .value = true, .permanent = true};

static bool is_container(const struct json *v)
{
    return v->type >= JSON_ARRAY;
}

static struct json_text *as_text(const struct json *v)
{
    return (struct json_text *) v;
}

static struct json_vec *as_vec(const struct json *v)
{
    return (struct json_vec *) v;
}

/* ---- walking without recursion ---- */

void json_walk_push(struct json_walk *w, const struct json *v, const struct json *other)
{
    if (w->n == w->cap) {
        size_t cap = w->cap * 2;
        bool on_stack = w->frames == w->first;
        w->frames = xreallocarray(on_stack ? NULL : w->frames, cap, sizeof *w->frames);
        if (on_stack) {
            memcpy(w->frames, w->first, sizeof w->first);
        }
        w->cap = cap;
    }
    w->frames[w->n++] = (struct json_frame){.v = v, .other = other};
}

void json_walk_done(struct json_walk *w)
{
    if (w->frames != w->first) {
        free(w->frames);
    }
}

/* ---- keys and the index of big objects ---- */

union json_key json_key_make(const char *s, size_t size)
{
    union json_key k = {.word = {0, 0}};
    if (size <= JSON_KEY_INLINE) {
        memcpy(k.text, s, size);
    } else {
        k.ptr = xmalloc(size + 1);
        memcpy(k.ptr, s, size);
        k.ptr[size] = '\0';
        k.tag = 1;
    }
    return k;
}

/* A key to look for: as json_key_make, but a long one is borrowed. */
static union json_key key_borrow(const char *s)
{
    size_t size = strlen(s);
    union json_key k = {.word = {0, 0}};
    if (size <= JSON_KEY_INLINE) {
        memcpy(k.text, s, size);
    } else {
        k.ptr = (char *) s;
        k.tag = 1;
    }
    return k;
}

static bool key_equal(const union json_key *a, const union json_key *b)
{
    if (a->tag | b->tag) {
        return a->tag == b->tag && streq(a->ptr, b->ptr);
    }
    return a->word[0] == b->word[0] && a->word[1] == b->word[1];
}

#define ROTL(x, n) ((x) << (n) | (x) >> (64 - (n)))

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = ROTL(v[1], 13) ^ v[0];
    v[0] = ROTL(v[0], 32);
    v[2] += v[3];
    v[3] = ROTL(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = ROTL(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = ROTL(v[1], 17) ^ v[2];
    v[2] = ROTL(v[2], 32);
}

/* SipHash-1-3 (Aumasson and Bernstein, 2012). */
uint64_t json_hash(const char *text, size_t size)
{
    const unsigned char *s = (const unsigned char *) text;
    uint64_t seed[2] = {0, 0};
    const void *random = (const void *) getauxval(AT_RANDOM);
    if (random) {
        memcpy(seed, random, sizeof seed);
    }
    uint64_t v[4] = {seed[0] ^ 0x736f6d6570736575u, seed[1] ^ 0x646f72616e646f6du,
                     seed[0] ^ 0x6c7967656e657261u, seed[1] ^ 0x7465646279746573u};
    uint64_t last = (uint64_t) size << 56;
    for (; size >= 8; size -= 8, s += 8) {
        uint64_t m;
        memcpy(&m, s, 8);
        v[3] ^= m;
        sip_round(v);
        v[0] ^= m;
    }
    for (size_t i = 0; i < size; i++) {
        last |= (uint64_t) s[i] << (8 * i);
    }
    v[3] ^= last;
    sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    sip_round(v);
    sip_round(v);
    sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static uint64_t key_hash(const union json_key *k)
{
    const char *s = json_key_text(k);
    return json_hash(s, strlen(s));
}

/* Places of the index for a vector of 'cap' members: a power of two, at most half full. */
static size_t index_size(uint32_t cap)
{
    return cap <= JSON_INDEX_MIN ? 0 : (size_t) 1 << (65 - __builtin_clzll(cap - 1ull));
}

/* The index: member numbers plus one, 0 = free; linear probing. */
static uint32_t *index_of(const struct json_vec *o)
{
    return (uint32_t *) (void *) (o->members + o->cap);
}

/* The place of 'k', or the free place where it would be. */
static uint32_t *index_find(const struct json_vec *o, const union json_key *k)
{
    uint32_t *index = index_of(o);
    size_t mask = index_size(o->cap) - 1;
    for (size_t i = key_hash(k) & mask;; i = (i + 1) & mask) {
        if (!index[i]) {
            return &index[i];
        }
        const struct json_member *m = &o->members[index[i] - 1];
        if (m->v && key_equal(&m->key, k)) {
            return &index[i];
        }
    }
}

static struct json_member *object_find(const struct json_vec *o, const union json_key *k)
{
    if (o->cap > JSON_INDEX_MIN) {
        uint32_t at = *index_find(o, k);
        return at ? &o->members[at - 1] : NULL;
    }
    for (uint32_t i = 0; i < o->head.n; i++) {
        if (key_equal(&o->members[i].key, k)) {
            return &o->members[i];
        }
    }
    return NULL;
}

static uint32_t checked_size(size_t n)
{
    assert(n < UINT32_MAX / 8);
    return (uint32_t) n;
}

/* Removes deleted members, gives the vector 'cap' places and rebuilds the index. */
static void object_resize(struct json_vec *o, size_t cap)
{
    uint32_t used = o->head.n + o->dead, n = 0;
    for (uint32_t i = 0; i < used && o->dead; i++) {
        if (o->members[i].v) {
            o->members[n++] = o->members[i];
        }
    }
    o->dead = 0;
    if (cap != o->cap) {
        o->cap = checked_size(cap);
        o->members = xreallocarray(
            o->members, 1, cap * sizeof *o->members + index_size(o->cap) * sizeof(uint32_t));
    }
    size_t places = index_size(o->cap);
    if (places) {
        memset(index_of(o), 0, places * sizeof(uint32_t));
        for (uint32_t i = 0; i < o->head.n; i++) {
            *index_find(o, &o->members[i].key) = i + 1;
        }
    }
}

void json_settle(const struct json *v)
{
    if (v->type == JSON_OBJECT && as_vec(v)->dead) {
        object_resize(as_vec(v), as_vec(v)->cap);
    }
}

/* Unlinks member 'm'; frees its key, the caller owns its value. */
static struct json *object_unlink(struct json_vec *o, struct json_member *m)
{
    struct json *v = m->v;
    json_key_free(&m->key);
    o->head.n--;
    if (o->cap > JSON_INDEX_MIN) {
        m->v = NULL;
        o->dead++;
        if (o->dead > o->head.n) {
            json_settle(&o->head);
        }
    } else {
        uint32_t at = (uint32_t) (m - o->members);
        memmove(m, m + 1, (o->head.n - at) * sizeof *m);
    }
    return v;
}

/* Capacity after 'cap' is used up. */
static size_t next_cap(uint32_t cap)
{
    return cap < 4 ? 4 : (size_t) cap + cap / 2;
}

/* ---- making and freeing ---- */

struct json_text *json_text_new(enum json_type type, size_t size)
{
    assert(size < UINT32_MAX);
    struct json_text *t = xmalloc(sizeof *t + size + 1);
    t->head = (struct json){.type = (uint8_t) type, .n = (uint32_t) size};
    t->text[size] = '\0';
    return t;
}

static struct json *text_from(enum json_type type, const char *s, size_t size)
{
    struct json_text *t = json_text_new(type, size);
    if (size) {
        memcpy(t->text, s, size);
    }
    return &t->head;
}

static struct json_vec *vec_new(enum json_type type)
{
    struct json_vec *v = NEW(struct json_vec);
    v->head.type = (uint8_t) type;
    return v;
}

struct json *json_null(void)
{
    return (struct json *) &the_null;
}

struct json *json_bool(bool b)
{
    return (struct json *) (b ? &the_true : &the_false);
}

struct json *json_int(int64_t i)
{
    char text[24];
    int n = snprintf(text, sizeof text, "%" PRId64, i);
    return text_from(JSON_NUMBER, text, (size_t) n);
}

struct json *json_number_n(const char *text, size_t size)
{
    bool open;
    if (!size || json_number_scan(text, text + size, &open) != size) {
        return NULL;
    }
    return text_from(JSON_NUMBER, text, size);
}

struct json *json_string(const char *s)
{
    return json_string_n(s, strlen(s));
}

struct json *json_string_n(const char *s, size_t size)
{
    return text_from(JSON_STRING, s, size);
}

struct json *json_stringf(const char *fmt, ...)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    strbuf_vaddf(&b, fmt, ap);
    va_end(ap);
    return json_string_n(strbuf_cstr(&b), b.size);
}

struct json *json_array(void)
{
    return &vec_new(JSON_ARRAY)->head;
}

struct json *json_object(void)
{
    return &vec_new(JSON_OBJECT)->head;
}

struct json *json_array_from(const struct json_member *from, size_t n)
{
    struct json_vec *a = vec_new(JSON_ARRAY);
    if (n) {
        a->items = xreallocarray(NULL, n, sizeof *a->items);
        for (size_t i = 0; i < n; i++) {
            a->items[i] = from[i].v;
        }
        a->cap = a->head.n = checked_size(n);
    }
    return &a->head;
}

struct json *json_object_from(const struct json_member *from, size_t n, size_t *ret_dup)
{
    struct json_vec *o = vec_new(JSON_OBJECT);
    *ret_dup = SIZE_MAX;
    if (n) {
        object_resize(o, n);
        memcpy(o->members, from, n * sizeof *from);
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t *place = NULL;
        bool taken;
        if (o->cap > JSON_INDEX_MIN) {
            place = index_find(o, &from[i].key);
            taken = *place;
        } else {
            taken = object_find(o, &from[i].key);
        }
        if (taken) {
            *ret_dup = MIN(*ret_dup, i);
        } else if (place) {
            *place = (uint32_t) i + 1;
        }
        o->head.n++;
    }
    return &o->head;
}

static void vec_free(struct json_vec *v)
{
    free(v->items);
    free(v);
}

struct json *json_free(struct json *v)
{
    if (!v || v->permanent) {
        if (v && v->shared) {
            json_part_release(v);
        }
        return NULL;
    }
    if (!is_container(v)) {
        free(v);
        return NULL;
    }
    struct json_walk w;
    json_walk_init(&w);
    json_walk_push(&w, v, NULL);
    while (w.n) {
        struct json_frame *f = &w.frames[w.n - 1];
        struct json_vec *vec = as_vec(f->v);
        if (f->i == vec->head.n + vec->dead) {
            vec_free(vec);
            w.n--;
            continue;
        }
        struct json *child;
        if (vec->head.type == JSON_OBJECT) {
            struct json_member *m = &vec->members[f->i];
            child = m->v;
            if (child) {
                json_key_free(&m->key);
            }
        } else {
            child = vec->items[f->i];
        }
        f->i++;
        if (!child || child->permanent) {
            if (child && child->shared) {
                json_part_release(child);
            }
            continue;
        }
        if (is_container(child)) {
            json_walk_push(&w, child, NULL);
        } else {
            free(child);
        }
    }
    json_walk_done(&w);
    return NULL;
}

/* A copy of 'v'; of a container without its children. */
static struct json *clone_node(const struct json *v)
{
    if (v->permanent && !v->shared) {
        return (struct json *) v;
    }
    if (!is_container(v)) {
        return text_from(v->type, as_text(v)->text, v->n);
    }
    struct json_vec *c = vec_new(v->type);
    if (v->type == JSON_ARRAY && v->n) {
        c->items = xreallocarray(NULL, v->n, sizeof *c->items);
        c->cap = v->n;
    } else if (v->n) {
        object_resize(c, v->n);
    }
    return &c->head;
}

/* Appends to an object that has no such key, or to an array. */
static void vec_add(struct json_vec *to, const union json_key *key, struct json *v)
{
    assert(!to->head.shared);
    if (to->head.type == JSON_ARRAY) {
        if (to->head.n == to->cap) {
            size_t cap = next_cap(to->cap);
            to->items = xreallocarray(to->items, cap, sizeof *to->items);
            to->cap = checked_size(cap);
        }
        to->items[to->head.n++] = v;
        return;
    }
    if (to->head.n + to->dead == to->cap) {
        object_resize(to, to->dead ? to->cap : next_cap(to->cap));
    }
    if (to->cap > JSON_INDEX_MIN) {
        *index_find(to, key) = to->head.n + to->dead + 1;
    }
    to->members[to->head.n + to->dead] = (struct json_member){.key = *key, .v = v};
    to->head.n++;
}

struct json *json_clone(const struct json *v)
{
    if (!v) {
        return NULL;
    }
    struct json *root = clone_node(v);
    if (!is_container(v)) {
        return root;
    }
    struct json_walk w;
    json_walk_init(&w);
    json_walk_push(&w, v, root);
    while (w.n) {
        struct json_frame *f = &w.frames[w.n - 1];
        if (f->i == json_count(f->v)) {
            w.n--;
            continue;
        }
        const struct json *child = json_at(f->v, f->i);
        const char *key = json_key_at(f->v, f->i);
        f->i++;
        struct json *copy = clone_node(child);
        union json_key k = {.word = {0, 0}};
        if (key) {
            k = json_key_make(key, strlen(key));
        }
        vec_add(as_vec(f->other), &k, copy);
        if (is_container(child)) {
            json_walk_push(&w, child, copy);
        }
    }
    json_walk_done(&w);
    return root;
}

/* Whether the nodes themselves are equal, children not yet compared. */
static bool node_equal(const struct json *a, const struct json *b)
{
    if (a->type != b->type || a->n != b->n) {
        return false;
    }
    switch ((enum json_type) a->type) {
    case JSON_BOOL:
        return a->value == b->value;
    case JSON_NUMBER:
    case JSON_STRING:
        return memcmp(as_text(a)->text, as_text(b)->text, a->n) == 0;
    case JSON_NULL:
    case JSON_ARRAY:
    case JSON_OBJECT:
        break;
    }
    return true;
}

bool json_equal(const struct json *a, const struct json *b)
{
    if (!a || !b || a == b) {
        return a == b;
    }
    bool equal = node_equal(a, b);
    if (!equal || !is_container(a)) {
        return equal;
    }
    struct json_walk w;
    json_walk_init(&w);
    json_walk_push(&w, a, b);
    while (w.n && equal) {
        struct json_frame *f = &w.frames[w.n - 1];
        if (f->i == json_count(f->v)) {
            w.n--;
            continue;
        }
        const struct json *x = json_at(f->v, f->i), *y = json_at(f->other, f->i);
        if (f->v->type == JSON_OBJECT) {
            const union json_key *k = &as_vec(f->v)->members[f->i].key;
            /* Usually both have the same order. */
            if (!key_equal(k, &as_vec(f->other)->members[f->i].key)) {
                struct json_member *m = object_find(as_vec(f->other), k);
                y = m ? m->v : NULL;
            }
        }
        f->i++;
        equal = y && node_equal(x, y);
        if (equal && is_container(x)) {
            json_walk_push(&w, x, y);
        }
    }
    json_walk_done(&w);
    return equal;
}

/* ---- reading ---- */

enum json_type json_type(const struct json *v)
{
    return v ? v->type : JSON_NULL;
}

bool json_is(const struct json *v, enum json_type type)
{
    return v && v->type == type;
}

const char *json_get_string(const struct json *v)
{
    return json_is(v, JSON_STRING) ? as_text(v)->text : NULL;
}

size_t json_string_size(const struct json *v)
{
    return json_is(v, JSON_STRING) ? v->n : 0;
}

bool json_get_bool(const struct json *v, bool dflt)
{
    return json_is(v, JSON_BOOL) ? v->value : dflt;
}

const char *json_number_text(const struct json *v)
{
    return json_is(v, JSON_NUMBER) ? as_text(v)->text : NULL;
}

int json_get_int(const struct json *v, int64_t *ret)
{
    const char *s = json_number_text(v);
    return s ? str_to_i64(s, INT64_MIN, INT64_MAX, ret) : -EINVAL;
}

int64_t json_get_int_or(const struct json *v, int64_t dflt)
{
    json_get_int(v, &dflt);
    return dflt;
}

size_t json_count(const struct json *v)
{
    return v && is_container(v) ? v->n : 0;
}

struct json *json_at(const struct json *v, size_t i)
{
    if (i >= json_count(v)) {
        return NULL;
    }
    json_settle(v);
    return v->type == JSON_OBJECT ? as_vec(v)->members[i].v : as_vec(v)->items[i];
}

const char *json_key_at(const struct json *v, size_t i)
{
    if (!json_is(v, JSON_OBJECT) || i >= v->n) {
        return NULL;
    }
    json_settle(v);
    return json_key_text(&as_vec(v)->members[i].key);
}

struct json *json_get(const struct json *obj, const char *key)
{
    if (!json_is(obj, JSON_OBJECT)) {
        return NULL;
    }
    union json_key k = key_borrow(key);
    struct json_member *m = object_find(as_vec(obj), &k);
    return m ? m->v : NULL;
}

const char *json_get_text(const struct json *obj, const char *key)
{
    const char *s = json_get_string(json_get(obj, key));
    return s ? s : "";
}

static struct json *vpath(const struct json *v, va_list ap)
{
    for (const char *key; v && (key = va_arg(ap, const char *));) {
        v = json_get(v, key);
    }
    return (struct json *) v;
}

struct json *json_path(const struct json *obj, ...)
{
    va_list ap;
    va_start(ap, obj);
    struct json *v = vpath(obj, ap);
    va_end(ap);
    return v;
}

const char *json_path_string(const struct json *obj, ...)
{
    va_list ap;
    va_start(ap, obj);
    struct json *v = vpath(obj, ap);
    va_end(ap);
    return json_get_string(v);
}

/* ---- changing ---- */

struct json *json_set(struct json *obj, const char *key, struct json *v)
{
    assert(json_is(obj, JSON_OBJECT) && !obj->shared);
    if (!v) {
        return NULL;
    }
    union json_key k = key_borrow(key);
    struct json_member *m = object_find(as_vec(obj), &k);
    if (!m) {
        k = json_key_make(key, strlen(key));
        vec_add(as_vec(obj), &k, v);
    } else if (m->v != v) {
        struct json *old = m->v;
        m->v = v;
        json_free(old);
    }
    return v;
}

struct json *json_set_string(struct json *obj, const char *key, const char *s)
{
    return json_set(obj, key, s ? json_string(s) : NULL);
}

struct json *json_set_int(struct json *obj, const char *key, int64_t i)
{
    return json_set(obj, key, json_int(i));
}

struct json *json_set_bool(struct json *obj, const char *key, bool b)
{
    return json_set(obj, key, json_bool(b));
}

struct json *json_append(struct json *arr, struct json *v)
{
    assert(json_is(arr, JSON_ARRAY));
    if (v) {
        union json_key none = {.word = {0, 0}};
        vec_add(as_vec(arr), &none, v);
    }
    return v;
}

struct json *json_ensure_object(struct json *obj, const char *key)
{
    struct json *v = json_get(obj, key);
    return json_is(v, JSON_OBJECT) ? v : json_set(obj, key, json_object());
}

struct json *json_ensure_array(struct json *obj, const char *key)
{
    struct json *v = json_get(obj, key);
    return json_is(v, JSON_ARRAY) ? v : json_set(obj, key, json_array());
}

struct json *json_take(struct json *obj, const char *key)
{
    if (!json_is(obj, JSON_OBJECT)) {
        return NULL;
    }
    union json_key k = key_borrow(key);
    struct json_member *m = object_find(as_vec(obj), &k);
    return m ? object_unlink(as_vec(obj), m) : NULL;
}

bool json_remove(struct json *obj, const char *key)
{
    struct json *v = json_take(obj, key);
    json_free(v);
    return v;
}

struct json *json_take_at(struct json *v, size_t i)
{
    struct json *child = json_at(v, i);
    if (!child) {
        return NULL;
    }
    struct json_vec *vec = as_vec(v);
    assert(!v->shared);
    if (v->type == JSON_OBJECT) {
        return object_unlink(vec, &vec->members[i]);
    }
    v->n--;
    memmove(&vec->items[i], &vec->items[i + 1], (v->n - i) * sizeof *vec->items);
    return child;
}

bool json_remove_at(struct json *v, size_t i)
{
    struct json *child = json_take_at(v, i);
    json_free(child);
    return child;
}
