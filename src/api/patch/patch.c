/* SPDX-License-Identifier: Apache-2.0 */
#include "api/patch/patch.h"

#include "api/schema.h"

#include "base/map.h"
#include "base/mem.h"

#define MAX_MOVED ((size_t) 20000000)
/* Maximum of comparisons when merging two lists. */
#define MAX_COMPARED ((size_t) 4000000)

/* ---- merge patch (RFC 7386) ---- */

static void merge_into(struct json *target, const struct json *patch)
{
    for (size_t i = 0; i < json_count(patch); i++) {
        const char *key = json_key_at(patch, i);
        const struct json *v = json_at(patch, i);
        if (json_is(v, JSON_NULL)) {
            json_remove(target, key);
        } else if (json_is(v, JSON_OBJECT)) {
            merge_into(json_ensure_object(target, key), v);
        } else {
            json_set(target, key, json_clone(v));
        }
    }
}

void api_patch_merge(struct json **obj, const struct json *patch)
{
    if (!json_is(patch, JSON_OBJECT) || !json_is(*obj, JSON_OBJECT)) {
        json_free(*obj);
        *obj = json_is(patch, JSON_OBJECT) ? json_object() : json_clone(patch);
    }
    if (json_is(patch, JSON_OBJECT)) {
        merge_into(*obj, patch);
    }
}

/* ---- JSON patch (RFC 6902) ---- */

/* Takes the next reference token from the pointer '*p' (RFC 6901); NULL when it is malformed. */
static char *next_token(const char **p)
{
    struct strbuf b = STRBUF_INIT;
    const char *s = *p + 1;
    for (; *s && *s != '/'; s++) {
        char ch = *s;
        if (ch == '~') {
            s++;
            if (*s != '0' && *s != '1') {
                strbuf_done(&b);
                return NULL;
            }
            ch = *s == '0' ? '~' : '/';
        }
        strbuf_addc(&b, ch);
    }
    *p = s;
    return strbuf_steal(&b);
}

/* Index of an array element: no leading zeros; at most 'max'. */
static int token_index(const char *token, size_t max, size_t *ret)
{
    uint64_t i;
    if ((token[0] == '0' && token[1]) || str_to_u64(token, max, &i) < 0) {
        return -ENOENT;
    }
    *ret = (size_t) i;
    return 0;
}

static struct json *child(struct json *v, const char *token)
{
    size_t i;
    if (json_is(v, JSON_OBJECT)) {
        return json_get(v, token);
    }
    if (json_is(v, JSON_ARRAY) && json_count(v) && !token_index(token, json_count(v) - 1, &i)) {
        return json_at(v, i);
    }
    return NULL;
}

/* Finds the container of the last token of 'path'; the token is in '*ret_token' (owned; NULL:
 * the whole document). */
static int resolve(struct json *doc, const char *path, struct json **ret_parent, char **ret_token,
                   struct err *e)
{
    const char *p = path;
    struct json *v = doc;
    if (!*p) {
        *ret_parent = doc;
        *ret_token = NULL;
        return 0;
    }
    while (v && *p == '/') {
        CLEANUP_FREE char *token = next_token(&p);
        if (!token) {
            return err_set(e, -EINVAL, "\"%.80s\" is not a JSON pointer", path);
        }
        if (!*p) {
            *ret_parent = v;
            *ret_token = TAKE(token);
            return 0;
        }
        v = child(v, token);
    }
    return !v ? err_set(e, -ENOENT, "path \"%.80s\" does not exist", path)
              : err_set(e, -EINVAL, "\"%.80s\" is not a JSON pointer", path);
}

static struct json *lookup(struct json *doc, const char *path, struct err *e)
{
    struct json *parent;
    CLEANUP_FREE char *token = NULL;
    if (resolve(doc, path, &parent, &token, e) < 0) {
        return NULL;
    }
    struct json *v = token ? child(parent, token) : doc;
    if (!v) {
        err_set(e, -ENOENT, "path \"%.80s\" does not exist", path);
    }
    return v;
}

/* The limits of a patch's work, and its work so far. */
struct budget {
    size_t copied; /* Bytes by "copy". */
    size_t moved;  /* List elements by insertion and removal. */
};

/* Inserts 'v' (taken over) into the array before element 'at'. */
static int insert_at(struct json *array, size_t at, struct json *v, struct budget *b, struct err *e)
{
    size_t n = json_count(array) - at;
    b->moved += n;
    if (b->moved > MAX_MOVED) {
        json_free(v);
        return err_set(e, -E2BIG, "the patch moves too many list elements");
    }
    CLEANUP_FREE struct json **tail = xcalloc(n + 1, sizeof(struct json *));
    for (size_t i = 0; i < n; i++) {
        tail[i] = json_take_at(array, json_count(array) - 1);
    }
    json_append(array, v);
    while (n) {
        json_append(array, tail[--n]);
    }
    return 0;
}

/* 'v' is taken over. */
static int put(struct json **doc, const char *path, struct json *value, bool replace,
               struct budget *b, struct err *e)
{
    CLEANUP(json_free) struct json *v = value;
    struct json *parent;
    CLEANUP_FREE char *token = NULL;
    size_t i;
    int r = resolve(*doc, path, &parent, &token, e);
    if (r < 0) {
        return r;
    }
    if (!token) {
        json_free(*doc);
        *doc = TAKE(v);
        return 0;
    }
    if (replace && !child(parent, token)) {
        return err_set(e, -ENOENT, "path \"%.80s\" does not exist", path);
    }
    if (json_is(parent, JSON_OBJECT)) {
        json_set(parent, token, TAKE(v));
        return 0;
    }
    if (!json_is(parent, JSON_ARRAY)) {
        return err_set(e, -ENOENT, "path \"%.80s\" is not in an object or a list", path);
    }
    if (!replace && streq(token, "-")) {
        json_append(parent, TAKE(v));
        return 0;
    }
    if (token_index(token, json_count(parent), &i) < 0) {
        return err_set(e, -ENOENT, "\"%.80s\" is outside the list", path);
    }
    if (replace) {
        json_remove_at(parent, i);
    }
    return insert_at(parent, i, TAKE(v), b, e);
}

static int take(struct json **doc, const char *path, struct json **ret, struct budget *b,
                struct err *e)
{
    struct json *parent;
    CLEANUP_FREE char *token = NULL;
    size_t i;
    int r = resolve(*doc, path, &parent, &token, e);
    if (r < 0) {
        return r;
    }
    struct json *v = token ? child(parent, token) : NULL;
    if (!v) {
        return err_set(e, -ENOENT, "path \"%.80s\" does not exist", path);
    }
    if (json_is(parent, JSON_OBJECT)) {
        *ret = json_take(parent, token);
        return 0;
    }
    token_index(token, json_count(parent), &i);
    b->moved += json_count(parent) - i;
    if (b->moved > MAX_MOVED) {
        return err_set(e, -E2BIG, "the patch moves too many list elements");
    }
    *ret = json_take_at(parent, i);
    return 0;
}

static int apply(struct json **doc, const struct json *op, struct budget *b, struct err *e)
{
    const char *name = json_path_string(op, "op", NULL), *path = json_path_string(op, "path", NULL);
    const char *from = json_path_string(op, "from", NULL);
    const struct json *value = json_get(op, "value");
    if (!name || !path) {
        return err_set(e, -EINVAL, "an operation needs \"op\" and \"path\"");
    }
    bool moves = streq(name, "move") || streq(name, "copy");
    if (moves && !from) {
        return err_set(e, -EINVAL, "%s needs \"from\"", name);
    }
    if (!value && (streq(name, "add") || streq(name, "replace") || streq(name, "test"))) {
        return err_set(e, -EINVAL, "%s needs \"value\"", name);
    }
    if (streq(name, "add") || streq(name, "replace")) {
        return put(doc, path, json_clone(value), *name == 'r', b, e);
    }
    CLEANUP(json_free) struct json *v = NULL;
    if (streq(name, "remove")) {
        return take(doc, path, &v, b, e);
    }
    if (streq(name, "test")) {
        struct json *have = lookup(*doc, path, e);
        if (!have || !json_equal(have, value)) {
            return err_set(e, -ENOENT, "testing path \"%.80s\": test failed", path);
        }
        return 0;
    }
    if (streq(name, "move")) {
        /* Not into itself. */
        if (str_has_prefix(path, from) && path[strlen(from)] == '/') {
            return err_set(e, -EINVAL, "cannot move \"%.80s\" into itself", from);
        }
        int r = take(doc, from, &v, b, e);
        return r < 0 ? r : put(doc, path, TAKE(v), false, b, e);
    }
    if (streq(name, "copy")) {
        const struct json *source = lookup(*doc, from, e);
        if (!source) {
            return -ENOENT;
        }
        CLEANUP_FREE char *text = json_to_text(source);
        b->copied += strlen(text);
        if (b->copied > API_PATCH_MAX_COPY) {
            return err_set(e, -E2BIG, "the patch copies more than %zu bytes", API_PATCH_MAX_COPY);
        }
        return put(doc, path, json_clone(source), false, b, e);
    }
    return err_set(e, -EINVAL, "unexpected operation \"%.40s\"", name);
}

int api_patch_json(struct json **obj, const struct json *patch, struct err *e)
{
    struct budget b = {0};
    if (!json_is(patch, JSON_ARRAY)) {
        return err_set(e, -EINVAL, "a JSON patch is a list of operations");
    }
    if (json_count(patch) > API_PATCH_MAX_OPS) {
        return err_set(e, -E2BIG, "The allowed maximum operations in a JSON patch is %d, got %zu",
                       API_PATCH_MAX_OPS, json_count(patch));
    }
    for (size_t i = 0; i < json_count(patch); i++) {
        int r = apply(obj, json_at(patch, i), &b, e);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

/* ---- strategic merge patch ---- */

/* The key by which a patch merges the list 'name' of 's'; NULL: it replaces it. */
static const char *merge_key(const struct api_schema *s, const char *name)
{
    const struct api_schema *list = api_schema_member(s, name);
    return list && list->type == API_ARRAY ? list->patch_key : NULL;
}

static int find_item(const struct json *list, const char *key, const struct json *item)
{
    const struct json *want = *key ? json_get(item, key) : item;
    for (size_t i = 0; want && i < json_count(list); i++) {
        const struct json *have = json_at(list, i);
        if (json_equal(*key ? json_get(have, key) : have, want)) {
            return (int) i;
        }
    }
    return -1;
}

static bool item_says(const struct json *item, const char *directive)
{
    return streq_null(json_path_string(item, "$patch", NULL), directive);
}

/* A patch, or a part of it, as the value of an absent field: without directives and nulls. */
static struct json *strip(const struct json *v)
{
    if (!json_is(v, JSON_OBJECT) && !json_is(v, JSON_ARRAY)) {
        return json_clone(v);
    }
    bool is_object = json_is(v, JSON_OBJECT);
    struct json *out = is_object ? json_object() : json_array();
    for (size_t i = 0; i < json_count(v); i++) {
        const struct json *item = json_at(v, i);
        if (item_says(item, "delete") ||
            (is_object && (*json_key_at(v, i) == '$' || json_is(item, JSON_NULL)))) {
            continue;
        }
        if (is_object) {
            json_set(out, json_key_at(v, i), strip(item));
        } else if (!item_says(item, "replace")) {
            json_append(out, strip(item));
        }
    }
    return out;
}

static int merge_object(const struct api_schema *s, struct json *target, const struct json *patch,
                        const char *path, struct err *e);

static bool is_replaced(const struct json *list)
{
    const struct json *item;
    JSON_FOREACH (item, list) {
        if (item_says(item, "replace")) {
            return true;
        }
    }
    return false;
}

static int merge_list(const struct api_schema *s, struct json *target, const struct json *patch,
                      const char *key, const char *path, struct err *e)
{
    const struct json *item;
    if (json_count(patch) * (json_count(target) + json_count(patch)) > MAX_COMPARED) {
        return err_set(e, -EINVAL, "%s: too many elements to merge", path);
    }
    JSON_FOREACH (item, patch) {
        if (*key && !json_is(item, JSON_OBJECT)) {
            return err_set(e, -EINVAL, "%s: an element is not an object", path);
        }
        if (*key && !json_get(item, key)) {
            return err_set(e, -EINVAL, "map: map[] does not contain declared merge key: %s", key);
        }
        int at = find_item(target, key, item);
        if (*key && item_says(item, "delete")) {
            if (at >= 0) {
                json_remove_at(target, (size_t) at);
            }
        } else if (at < 0) {
            json_append(target, strip(item));
        } else if (*key) {
            int r = merge_object(api_schema_items(s), json_at(target, (size_t) at), item, path, e);
            if (r < 0) {
                return r;
            }
        }
    }
    return 0;
}

/* The elements named by 'order' get its order, the others keep theirs and come first. */
static int sort_list(struct json *list, const struct json *order, const char *key, struct err *e)
{
    size_t n = json_count(list);
    if (json_count(order) * n > MAX_COMPARED) {
        return err_set(e, -EINVAL, "$setElementOrder: too many elements");
    }
    CLEANUP_FREE struct json **all = xcalloc(n + 1, sizeof(struct json *));
    for (size_t i = n; i-- > 0;) {
        all[i] = json_take_at(list, i);
    }
    for (size_t i = 0; i < n; i++) {
        if (find_item(order, key, all[i]) < 0) {
            json_append(list, TAKE(all[i]));
        }
    }
    for (size_t o = 0; o < json_count(order); o++) {
        const struct json *want = *key ? json_get(json_at(order, o), key) : json_at(order, o);
        for (size_t i = 0; want && i < n; i++) {
            if (all[i] && json_equal(*key ? json_get(all[i], key) : all[i], want)) {
                json_append(list, TAKE(all[i]));
            }
        }
    }
    return 0;
}

/* Removes the members of 'target' that 'keys' does not name. */
static void retain_keys(struct json *target, const struct json *keys)
{
    struct smap keep, drop;
    smap_init(&keep, NULL);
    smap_init(&drop, NULL);
    const struct json *key;
    JSON_FOREACH (key, keys) {
        if (json_is(key, JSON_STRING)) {
            smap_set(&keep, json_get_string(key), target);
        }
    }
    for (size_t i = 0; i < json_count(target); i++) {
        if (!smap_get(&keep, json_key_at(target, i))) {
            smap_set(&drop, json_key_at(target, i), target);
        }
    }
    struct smap_entry *d;
    SMAP_FOREACH (d, &drop) {
        json_remove(target, d->key);
    }
    smap_done(&keep);
    smap_done(&drop);
}

#define SET_ORDER "$setElementOrder/"
#define DELETE_FROM "$deleteFromPrimitiveList/"

static int merge_member(const struct api_schema *s, struct json *target, const char *name,
                        const struct json *v, const char *path, struct err *e)
{
    CLEANUP_FREE char *sub = xasprintf("%s%s%s", path, *path ? "." : "", name);
    struct json *have = json_get(target, name);
    const char *key = merge_key(s, name);
    const struct api_schema *member = api_schema_member(s, name);
    if (json_is(v, JSON_NULL) || item_says(v, "delete")) {
        json_remove(target, name);
    } else if (json_is(v, JSON_OBJECT) && json_is(have, JSON_OBJECT) && !item_says(v, "replace")) {
        return merge_object(member, have, v, sub, e);
    } else if (json_is(v, JSON_ARRAY) && key && json_is(have, JSON_ARRAY) && !is_replaced(v)) {
        return merge_list(member, have, v, key, sub, e);
    } else {
        json_set(target, name, strip(v));
    }
    return 0;
}

static int merge_object(const struct api_schema *s, struct json *target, const struct json *patch,
                        const char *path, struct err *e)
{
    const char *directive = json_path_string(patch, "$patch", NULL);
    if (directive && !streq(directive, "merge")) {
        return err_set(e, -EINVAL, "unknown patch directive \"%.40s\"", directive);
    }
    for (size_t i = 0; i < json_count(patch); i++) {
        const char *name = json_key_at(patch, i);
        const struct json *v = json_at(patch, i);
        if (str_has_prefix(name, DELETE_FROM)) {
            struct json *list = json_get(target, name + strlen(DELETE_FROM));
            const struct json *item;
            if (json_count(v) * json_count(list) > MAX_COMPARED) {
                return err_set(e, -EINVAL, "%s: too many elements", DELETE_FROM);
            }
            JSON_FOREACH (item, v) {
                int at = find_item(list, "", item);
                if (at >= 0) {
                    json_remove_at(list, (size_t) at);
                }
            }
        } else if (*name != '$') {
            int r = merge_member(s, target, name, v, path, e);
            if (r < 0) {
                return r;
            }
        }
    }
    /* These two directives apply to the result. */
    for (size_t i = 0; i < json_count(patch); i++) {
        const char *name = json_key_at(patch, i);
        if (str_has_prefix(name, SET_ORDER)) {
            const char *list = name + strlen(SET_ORDER);
            const char *key = merge_key(s, list);
            if (key && json_is(json_get(target, list), JSON_ARRAY)) {
                int r = sort_list(json_get(target, list), json_at(patch, i), key, e);
                if (r < 0) {
                    return r;
                }
            }
        } else if (streq(name, "$retainKeys")) {
            retain_keys(target, json_at(patch, i));
        }
    }
    return 0;
}

/* Whether each $patch says something that a strategic merge patch can. */
static int check_directives(const struct json *v, struct err *e)
{
    static const char *const known[] = {"merge", "replace", "delete"};
    const char *directive = json_path_string(v, "$patch", NULL);
    bool is = !directive;
    for (size_t i = 0; i < ARRAY_SIZE(known) && !is; i++) {
        is = streq(directive, known[i]);
    }
    if (!is) {
        return err_set(e, -ENOENT, "unrecognized patch type: %.40s", directive);
    }
    bool container = json_is(v, JSON_OBJECT) || json_is(v, JSON_ARRAY);
    for (size_t i = 0; container && i < json_count(v); i++) {
        int r = check_directives(json_at(v, i), e);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

int api_patch_strategic(const struct api_kind *k, struct json **obj, const struct json *patch,
                        struct err *e)
{
    if (!json_is(patch, JSON_OBJECT)) {
        return err_set(e, -EINVAL, "a strategic merge patch is an object");
    }
    if (!json_is(*obj, JSON_OBJECT)) {
        return err_set(e, -EINVAL, "only objects can be patched");
    }
    int r = check_directives(patch, e);
    if (r < 0) {
        return r;
    }
    if (item_says(patch, "replace")) {
        json_free(*obj);
        *obj = strip(patch);
        return 0;
    }
    return merge_object(api_kind_schema(k), *obj, patch, "", e);
}
