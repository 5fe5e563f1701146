/* SPDX-License-Identifier: Apache-2.0 */
#include "api/patch/fieldset.h"

#include "base/map.h"
#include "base/mem.h"

#define SELF "."
/* Maximum depth: a deeper value is owned as a whole, so that a set fits into its object. */
#define MAX_DEPTH 40

/* ---- nodes ---- */

bool fieldset_has(const struct json *node)
{
    return node && (json_count(node) == 0 || json_get(node, SELF));
}

bool fieldset_is_empty(const struct json *set)
{
    return json_count(set) == 0;
}

/* Adds 'node' itself to its set; a node without children is in it anyway. */
static void add_self(struct json *node)
{
    if (json_count(node)) {
        json_set(node, SELF, json_object());
    }
}

/* ---- the set of a value ---- */

enum mode {
    APPLIED, /* The set has leaves, elements of lists, members of maps. */
    ALL,     /* Every node. */
};

static bool skipped(const char *name)
{
    static const char *const names[] = {
        "name", "namespace",  "creationTimestamp", "selfLink",
        "uid",  "generation", "managedFields",     "resourceVersion",
    };
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (streq(name, names[i])) {
            return true;
        }
    }
    return false;
}

/* Position of a walk: the root and its metadata have members that sets leave out. */
enum level { ROOT, METADATA, BELOW };

static bool left_out(enum level level, const char *name)
{
    return level == ROOT       ? streq(name, "apiVersion") || streq(name, "kind")
           : level == METADATA ? skipped(name)
                               : false;
}

static enum level level_below(enum level level, const char *name)
{
    return level == ROOT && streq(name, "metadata") ? METADATA : BELOW;
}

struct walk {
    enum mode mode;
    struct strbuf key; /* Key of the present element. */
    unsigned depth;
    const struct json *nothing; /* An empty object; NULL: absent structures stay absent. */
};

static const char *field_key(struct walk *w, const char *name)
{
    strbuf_reset(&w->key);
    strbuf_adds(&w->key, "f:");
    strbuf_adds(&w->key, name);
    return w->key.data;
}

static const char *element_key(struct walk *w, const struct api_schema *s, const struct json *item)
{
    strbuf_reset(&w->key);
    api_schema_element_key(s, item, &w->key);
    return w->key.data;
}

/* The schema of a field, or of an object's member that is none. */
static const struct api_schema *schema_of(const struct api_schema *s, const struct api_field *f,
                                          const char *name)
{
    return f ? f->schema : api_schema_member(s, name);
}

static bool granular(const struct walk *w, const struct api_schema *s, const struct json *v)
{
    return w->depth < MAX_DEPTH && api_schema_is_granular(s, v);
}

static struct json *set_of(struct walk *w, const struct api_schema *s, const struct json *v,
                           enum level level);

/* The node of a list's element or an object's member. 'itself': it is in the set, whatever is below
 * it.  NULL: it and what is below it are not in the set. */
static struct json *set_of_child(struct walk *w, const struct api_schema *s, const struct json *v,
                                 bool itself, enum level level)
{
    w->depth++;
    struct json *node = set_of(w, s, v, level);
    w->depth--;
    if (itself) {
        node = node ? node : json_object();
        add_self(node);
    }
    return node;
}

/* A leaf and an empty object are in the set, and with ALL every node; an empty list of which
 * elements are owned one by one is not. */
static struct json *set_of(struct walk *w, const struct api_schema *s, const struct json *v,
                           enum level level)
{
    struct json *node = json_object();
    if (!granular(w, s, v) || (json_is(v, JSON_OBJECT) && json_count(v) == 0)) {
        return node;
    }
    bool is_list = json_is(v, JSON_ARRAY);
    for (size_t i = 0; i < json_count(v); i++) {
        const struct json *child = json_at(v, i);
        if (is_list) {
            CLEANUP_FREE char *key = xstrdup(element_key(w, s, child));
            if (!json_get(node, key)) {
                json_set(node, key, set_of_child(w, api_schema_items(s), child, true, BELOW));
            }
            continue;
        }
        const char *name = json_key_at(v, i);
        if (!left_out(level, name)) {
            const struct api_field *f = api_schema_field(s, name);
            enum level below = level_below(level, name);
            struct json *set = set_of_child(w, schema_of(s, f, name), child, !f, below);
            if (set && (below != METADATA || json_count(set))) {
                json_set(node, field_key(w, name), set);
            } else {
                json_free(set);
            }
        }
    }
    if (level == BELOW && w->mode == ALL) {
        add_self(node);
    } else if (level == BELOW && json_count(node) == 0) {
        return json_free(node);
    }
    return node;
}

struct json *fieldset_of(const struct api_schema *s, const struct json *obj)
{
    struct walk w = {.mode = APPLIED, .key = STRBUF_INIT};
    struct json *set = set_of(&w, s, obj, ROOT);
    strbuf_done(&w.key);
    return set;
}

/* ---- comparing ---- */

struct difference {
    struct json *changed, *removed; /* NULL: nothing. */
};

static struct difference compare(struct walk *w, const struct api_schema *s, const struct json *a,
                                 const struct json *b, enum level level);

/* The difference of one member; 'a' or 'b' NULL: absent. */
static void compare_child(struct walk *w, const char *key, const struct api_schema *s,
                          const struct json *a, const struct json *b, bool itself, enum level level,
                          struct difference *d)
{
    /* A copy, because the buffer is used below. */
    char room[64];
    size_t size = strlen(key) + 1;
    CLEANUP_FREE char *more = size > sizeof room ? xmemdup(key, size) : NULL;
    const char *own = more ? more : memcpy(room, key, size);
    struct difference sub = {0};
    if (!a) {
        sub.changed = set_of_child(w, s, b, itself, level);
    } else if (!b) {
        sub.removed = set_of_child(w, s, a, itself, level);
    } else {
        w->depth++;
        sub = compare(w, s, a, b, level);
        w->depth--;
    }
    /* Only the members of metadata count, not metadata itself. */
    bool hollow = level == METADATA;
    if (sub.changed && !(hollow && json_count(sub.changed) == 0)) {
        d->changed = d->changed ? d->changed : json_object();
        json_set(d->changed, own, TAKE(sub.changed));
    }
    if (sub.removed && !(hollow && json_count(sub.removed) == 0)) {
        d->removed = d->removed ? d->removed : json_object();
        json_set(d->removed, own, TAKE(sub.removed));
    }
    json_free(sub.changed);
    json_free(sub.removed);
}

/* Whether Go's type of a compiled-in kind always has the structure, so that it is never added or
 * removed as a whole: those at the top, and those of which the description says so.  The rest are
 * pointers. */
static bool is_always_there(const struct walk *w, const struct api_field *f, enum level level)
{
    const struct api_schema *s = f ? f->schema : NULL;
    return w->nothing && s && (level == ROOT || f->always) && s->type == API_OBJECT &&
           s->n_fields && !s->atomic;
}

static struct difference compare_objects(struct walk *w, const struct api_schema *s,
                                         const struct json *a, const struct json *b,
                                         enum level level)
{
    struct difference d = {0};
    for (int side = 0; side < 2; side++) {
        const struct json *v = side ? a : b;
        for (size_t i = 0; i < json_count(v); i++) {
            const char *name = json_key_at(v, i);
            const struct json *other = json_get(side ? b : a, name);
            if (left_out(level, name) || (side && other)) {
                continue;
            }
            const struct api_field *f = api_schema_field(s, name);
            if (!other && is_always_there(w, f, level)) {
                other = w->nothing;
            }
            compare_child(w, field_key(w, name), schema_of(s, f, name),
                          side ? json_at(v, i) : other, side ? other : json_at(v, i), !f,
                          level_below(level, name), &d);
        }
    }
    return d;
}

static struct difference compare_lists(struct walk *w, const struct api_schema *s,
                                       const struct json *a, const struct json *b)
{
    struct difference d = {0};
    const struct api_schema *items = api_schema_items(s);
    const struct json *item;
    struct smap before;
    smap_init(&before, NULL);
    JSON_FOREACH (item, a) {
        smap_set(&before, element_key(w, s, item), (void *) item);
    }
    JSON_FOREACH (item, b) {
        const char *key = element_key(w, s, item);
        const struct json *was = smap_take(&before, key);
        compare_child(w, key, items, was, item, true, BELOW, &d);
    }
    struct smap_entry *left;
    SMAP_FOREACH (left, &before) {
        compare_child(w, left->key, items, left->value, NULL, true, BELOW, &d);
    }
    smap_done(&before);
    return d;
}

static struct difference compare(struct walk *w, const struct api_schema *s, const struct json *a,
                                 const struct json *b, enum level level)
{
    if (json_type(a) == json_type(b) && granular(w, s, b)) {
        return json_is(b, JSON_ARRAY) ? compare_lists(w, s, a, b)
                                      : compare_objects(w, s, a, b, level);
    }
    if (json_equal(a, b)) {
        return (struct difference){0};
    }
    struct difference d = {.changed = set_of_child(w, s, b, true, level)};
    if (granular(w, s, a)) {
        d.removed = set_of_child(w, s, a, false, level);
        json_remove(d.removed, SELF);
    }
    return d;
}

void fieldset_compare(const struct api_kind *k, const struct json *a, const struct json *b,
                      struct json **ret_changed, struct json **ret_removed)
{
    CLEANUP(json_free) struct json *nothing = json_object();
    struct walk w = {.mode = ALL, .key = STRBUF_INIT, .nothing = k->custom ? NULL : nothing};
    struct difference d = compare_objects(&w, api_kind_schema(k), a ? a : nothing, b, ROOT);
    strbuf_done(&w.key);
    *ret_changed = d.changed ? d.changed : json_object();
    *ret_removed = d.removed ? d.removed : json_object();
}

/* ---- operations ---- */

static void add_children(struct json *set, const struct json *other)
{
    for (size_t i = 0; i < json_count(other); i++) {
        const char *key = json_key_at(other, i);
        const struct json *from = json_at(other, i);
        struct json *to = json_get(set, key);
        if (!to) {
            json_set(set, key, json_clone(from));
        } else if (!streq(key, SELF)) {
            bool itself = fieldset_has(to) || fieldset_has(from);
            add_children(to, from);
            if (itself) {
                add_self(to);
            }
        }
    }
}

void fieldset_add(struct json *set, const struct json *other)
{
    add_children(set, other);
}

static void subtract_children(struct json *set, const struct json *other)
{
    for (size_t i = 0; i < json_count(other); i++) {
        const char *key = json_key_at(other, i);
        const struct json *take = json_at(other, i);
        struct json *from = json_get(set, key);
        if (!from || streq(key, SELF)) {
            continue;
        }
        bool itself = fieldset_has(from) && !fieldset_has(take);
        json_remove(from, SELF);
        subtract_children(from, take);
        if (itself) {
            add_self(from);
        } else if (json_count(from) == 0) {
            json_remove(set, key);
        }
    }
}

void fieldset_subtract(struct json *set, const struct json *other)
{
    subtract_children(set, other);
}

struct json *fieldset_intersect(const struct json *a, const struct json *b)
{
    struct json *out = json_object();
    for (size_t i = 0; i < json_count(a); i++) {
        const char *key = json_key_at(a, i);
        const struct json *x = json_at(a, i), *y = json_get(b, key);
        if (!y || streq(key, SELF)) {
            continue;
        }
        bool itself = fieldset_has(x) && fieldset_has(y);
        struct json *both = fieldset_intersect(x, y);
        if (itself) {
            add_self(both);
        }
        if (itself || json_count(both)) {
            json_set(out, key, both);
        } else {
            json_free(both);
        }
    }
    return out;
}

/* ---- texts ---- */

/* "[a="x",b=1]" of "k:{"a":"x","b":1}". */
static void add_keys(const char *text, struct strbuf *path)
{
    CLEANUP(json_free) struct json *keys = NULL;
    json_parse(text, strlen(text), &keys, NULL);
    strbuf_addc(path, '[');
    for (size_t i = 0; i < json_count(keys); i++) {
        strbuf_addf(path, "%s%s=", i ? "," : "", json_key_at(keys, i));
        json_write(json_at(keys, i), 0, path);
    }
    strbuf_addc(path, ']');
}

static void visit(const struct json *node, struct strbuf *path,
                  void (*fn)(void *ctx, const char *path), void *ctx)
{
    for (size_t i = 0; i < json_count(node); i++) {
        const char *key = json_key_at(node, i);
        const struct json *child = json_at(node, i);
        size_t size = path->size;
        if (!*key || key[1] != ':') {
            continue;
        }
        if (*key == 'f') {
            strbuf_addf(path, ".%s", key + 2);
        } else if (*key == 'k') {
            add_keys(key + 2, path);
        } else {
            strbuf_addf(path, *key == 'v' ? "[=%s]" : "[%s]", key + 2);
        }
        if (fieldset_has(child)) {
            fn(ctx, path->data);
        }
        visit(child, path, fn, ctx);
        path->size = size;
        path->data[size] = '\0';
    }
}

void fieldset_foreach(const struct json *set, void (*fn)(void *ctx, const char *path), void *ctx)
{
    CLEANUP_STRBUF struct strbuf path = STRBUF_INIT;
    visit(set, &path, fn, ctx);
}

static bool is_valid_key(const char *key)
{
    CLEANUP(json_free) struct json *v = NULL;
    uint64_t index;
    if (str_has_prefix(key, "f:")) {
        return true; /* JSON has fields with an empty name, too. */
    }
    if (str_has_prefix(key, "i:")) {
        return str_to_u64(key + 2, INT32_MAX, &index) == 0;
    }
    if (!str_has_prefix(key, "k:") && !str_has_prefix(key, "v:")) {
        return streq(key, SELF);
    }
    return json_parse(key + 2, strlen(key + 2), &v, NULL) == 0 &&
           (*key == 'v' || json_is(v, JSON_OBJECT));
}

bool fieldset_is_valid(const struct json *set)
{
    const struct json *child;
    if (!json_is(set, JSON_OBJECT)) {
        return false;
    }
    JSON_FOREACH (child, set) {
        if (!is_valid_key(json_key_at(set, child_i)) || !fieldset_is_valid(child)) {
            return false;
        }
    }
    return true;
}
