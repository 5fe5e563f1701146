/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/cache/object.h"

#include "api/typed.h"

#include <inttypes.h>
#include <stdio.h>

#define VERSION_KEY "\"resourceVersion\":\""
#define USUAL_SIZE 2048 /* Bytes of most texts, so that they are not moved while they grow. */

char *object_head_as(const struct api_kind *k, const char *version)
{
    return xasprintf("{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":{", k->kind, version);
}

char *object_head(const struct api_kind *k)
{
    CLEANUP_FREE char *version = api_kind_api_version(k);
    return object_head_as(k, version);
}

struct object *object_ref(struct object *o)
{
    o->refs++;
    return o;
}

struct object *object_unref(struct object *o)
{
    if (o && --o->refs == 0) {
        blob_unref(o->text);
        blob_unref(o->message);
        api_index_free(o->index);
        free(o);
    }
    return NULL;
}

static struct blob *splice(const char *head, const char *rest, size_t size, uint64_t revision)
{
    char version[64];
    size_t a = strlen(head);
    size_t b = (size_t) snprintf(version, sizeof version, VERSION_KEY "%" PRIu64 "\",", revision);
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    strbuf_reserve(&text, a + b + size);
    strbuf_add(&text, head, a);
    strbuf_add(&text, version, b);
    strbuf_add(&text, rest, size);
    return blob_new(text.data, text.size);
}

struct blob *object_text(const char *head, const struct blob *value, uint64_t revision)
{
    size_t n = strlen(head);
    return splice(head, value->data + n, value->size - n, revision);
}

/* The text after the value of the resourceVersion. */
static const char *after_version(const struct object *o, const char *head)
{
    const char *p = o->text->data + strlen(head) + sizeof VERSION_KEY - 1;
    return p + strspn(p, "0123456789") + 2;
}

struct blob *object_text_at(const struct object *o, const char *head, uint64_t revision)
{
    const char *rest = after_version(o, head);
    return splice(head, rest, (size_t) (o->text->data + o->text->size - rest), revision);
}

struct blob *object_text_as(const struct blob *text, const char *from, const char *to)
{
    size_t skip = strlen(from), n = strlen(to);
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    strbuf_reserve(&out, n + text->size - skip);
    strbuf_add(&out, to, n);
    strbuf_add(&out, text->data + skip, text->size - skip);
    return blob_new(out.data, out.size);
}

bool object_same(const struct object *o, const char *head, const struct blob *value)
{
    const char *rest = after_version(o, head);
    size_t size = (size_t) (o->text->data + o->text->size - rest), n = strlen(head);
    return value->size == n + size && !memcmp(value->data + n, rest, size);
}

struct json *object_parse(const struct object *o)
{
    struct json *obj = NULL;
    /* Cannot fail: the text was parsed when the object was made. */
    json_parse(o->text->data, o->text->size, &obj, NULL);
    return obj ? obj : json_object();
}

/* Converts an object from the version that objects are kept in to that of 'k'. */
static void bring_into(const struct api_kind *k, struct json *obj)
{
    CLEANUP_FREE char *version = api_kind_api_version(k);
    json_set_string(obj, "apiVersion", version);
    if (k->view) {
        json_set_string(obj, "kind", k->kind);
        k->view->show(obj);
    }
}

struct blob *object_text_view(const struct blob *text, const struct api_kind *k,
                              const char *version)
{
    CLEANUP(json_free) struct json *obj = NULL;
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    json_parse(text->data, text->size, &obj, NULL);
    bring_into(k, obj);
    json_set_string(obj, "apiVersion", version);
    json_write(obj, 0, &out);
    return blob_new(out.data, out.size);
}

struct json *object_parse_as(const struct object *o, const struct api_kind *k)
{
    struct json *obj = object_parse(o);
    bring_into(k, obj);
    return obj;
}

static bool depth_within(const struct json *v, unsigned left)
{
    const struct json *child;
    if (!json_is(v, JSON_OBJECT) && !json_is(v, JSON_ARRAY)) {
        return true;
    }
    JSON_FOREACH (child, v) {
        if (left == 0 || !depth_within(child, left - 1)) {
            return false;
        }
    }
    return true;
}

static void add_member(struct strbuf *out, const char *key, const struct json *v)
{
    if (out->data[out->size - 1] != '{') {
        strbuf_addc(out, ',');
    }
    json_write_string(key, strlen(key), out);
    strbuf_addc(out, ':');
    json_write(v, 0, out);
}

int object_encode(const struct api_kind *k, const struct json *obj, struct blob **ret)
{
    if (!depth_within(obj, OBJECT_MAX_DEPTH)) {
        return -E2BIG;
    }
    static const char *const first[] = {"name", "generateName",      "namespace",
                                        "uid",  "creationTimestamp", "generation"};
    const struct json *meta = json_get(obj, "metadata");
    CLEANUP_FREE char *head = object_head(k);
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    strbuf_reserve(&out, USUAL_SIZE);
    strbuf_adds(&out, head);
    for (size_t i = 0; i < ARRAY_SIZE(first); i++) {
        if (json_get(meta, first[i])) {
            add_member(&out, first[i], json_get(meta, first[i]));
        }
    }
    for (size_t i = 0; i < json_count(meta); i++) {
        const char *key = json_key_at(meta, i);
        bool done = streq(key, "resourceVersion");
        for (size_t j = 0; j < ARRAY_SIZE(first) && !done; j++) {
            done = streq(key, first[j]);
        }
        if (!done) {
            add_member(&out, key, json_at(meta, i));
        }
    }
    strbuf_addc(&out, '}');
    for (size_t i = 0; i < json_count(obj); i++) {
        const char *key = json_key_at(obj, i);
        if (!streq(key, "kind") && !streq(key, "apiVersion") && !streq(key, "metadata")) {
            add_member(&out, key, json_at(obj, i));
        }
    }
    strbuf_addc(&out, '}');
    *ret = blob_new(out.data, out.size);
    return 0;
}

/* The definition may have changed since the object was stored, or another release has stored it. */
static bool conform_changes(const struct api_kind *k, struct json **obj)
{
    if (!k->custom) {
        bool mended = api_typed_mend(api_kind_schema(k), *obj);
        return object_complete(k, *obj) || mended;
    }
    CLEANUP(json_free) struct json *now = json_clone(*obj);
    object_conform(k, now);
    if (json_equal(now, *obj)) {
        return false;
    }
    json_free(*obj);
    *obj = TAKE(now);
    return true;
}

/* Parses a stored value.  1: it is not in the canonical form, into which '*ret' was brought;
 * -EINVAL: it is no object. */
static int read_value(const struct api_kind *k, const char *head, const struct blob *value,
                      const char *const *without, struct json **ret)
{
    CLEANUP(json_free) struct json *obj = NULL;
    if (json_parse_without(value->data, value->size, without, &obj, NULL) < 0 ||
        !json_path_string(obj, "metadata", "name", NULL)) {
        return -EINVAL;
    }
    size_t n = strlen(head);
    bool changed = conform_changes(k, &obj) || value->size <= n ||
                   memcmp(value->data, head, n) != 0 ||
                   json_path(obj, "metadata", "resourceVersion", NULL);
    json_free(*ret);
    *ret = TAKE(obj);
    return changed;
}

struct object *object_new(const struct api_kind *k, const char *head, const char *key,
                          const struct blob *value, uint64_t revision)
{
    /* Large, and of no use for the index; only this server's own code writes it. */
    static const char *const managed[] = {"metadata", "managedFields", NULL};
    CLEANUP(json_free) struct json *obj = NULL;
    CLEANUP(blob_unref) struct blob *ours = NULL;
    int r = read_value(k, head, value, k->custom ? NULL : managed, &obj);
    if (r > 0 && (read_value(k, head, value, NULL, &obj) < 0 || object_encode(k, obj, &ours) < 0)) {
        r = -EINVAL;
    }
    if (r < 0) {
        return NULL;
    }
    value = ours ? ours : value;
    size_t key_size = strlen(key) + 1;
    struct object *o = xmalloc(sizeof *o + key_size);
    *o = (struct object){.refs = 1,
                         .revision = revision,
                         .text = object_text(head, value, revision),
                         .index = api_index_new(k, obj)};
    memcpy(o->key, key, key_size);
    return o;
}
