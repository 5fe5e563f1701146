/* SPDX-License-Identifier: Apache-2.0 */
/* The subresource scale: one shape (autoscaling/v1 Scale) for the number of replicas of any
 * kind. */
#include "apiserver/request/scale.h"

#include "api/label_selector.h"
#include "api/patch/fieldset.h"
#include "api/table/jsonpath.h"

#define SCALE_API_VERSION API_SCALE_GROUP "/" API_SCALE_VERSION

static const struct json *value_at(const char *path, const struct json *obj)
{
    const struct json *v;
    return path && jsonpath_find(path, obj, &v, 1, NULL) == 1 ? v : NULL;
}

/* Makes the objects that lead to the member at a path of plain names (".spec.replicas"), with
 * 'prefix' before each name, and puts 'v' there. */
static void put_at(struct json *obj, const char *path, const char *prefix, struct json *v)
{
    while (*path == '.') {
        size_t size = strcspn(++path, ".");
        CLEANUP_FREE char *name = xasprintf("%s%.*s", prefix, (int) size, path);
        path += size;
        if (*path) {
            obj = json_ensure_object(obj, name);
        } else {
            json_set(obj, name, v);
        }
    }
}

/* The entries of managedFields of 'obj' about the number of replicas,
 * with the paths of a Scale; NULL: none. */
static struct json *managers_of(const struct api_kind *k, const struct json *obj)
{
    CLEANUP(json_free) struct json *list = json_array();
    CLEANUP(json_free) struct json *number = json_object();
    const struct json *entry;
    put_at(number, k->scale->spec, "f:", json_object());
    JSON_FOREACH (entry, json_path(obj, "metadata", "managedFields", NULL)) {
        CLEANUP(json_free)
        struct json *set = fieldset_intersect(json_get(entry, "fieldsV1"), number);
        if (!fieldset_is_empty(set)) {
            struct json *scale_entry = json_append(list, json_clone(entry));
            json_set_string(scale_entry, "apiVersion", SCALE_API_VERSION);
            put_at(json_set(scale_entry, "fieldsV1", json_object()), ".spec.replicas",
                   "f:", json_object());
        }
    }
    return json_count(list) ? TAKE(list) : NULL;
}

/* A selector is a text, a LabelSelector or an object of labels. */
static void set_selector(struct json *status, const struct json *v)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    if (json_is(v, JSON_OBJECT)) {
        label_selector_write(v, &b);
    }
    json_set_string(status, "selector",
                    json_is(v, JSON_OBJECT) ? strbuf_cstr(&b) : json_get_string(v));
}

struct json *scale_of(const struct api_kind *k, const struct json *obj)
{
    static const char *const kept[] = {"name", "namespace", "uid", "resourceVersion",
                                       "creationTimestamp"};
    struct json *s = json_object();
    json_set_string(s, "kind", "Scale");
    json_set_string(s, "apiVersion", SCALE_API_VERSION);
    struct json *meta = json_ensure_object(s, "metadata");
    for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
        const struct json *v = json_path(obj, "metadata", kept[i], NULL);
        if (v) {
            json_set(meta, kept[i], json_clone(v));
        }
    }
    struct json *managers = managers_of(k, obj);
    if (managers) {
        json_set(meta, "managedFields", managers);
    }
    struct json *status = json_ensure_object(s, "status");
    json_set_int(json_ensure_object(s, "spec"), "replicas",
                 json_get_int_or(value_at(k->scale->spec, obj), 0));
    json_set_int(status, "replicas", json_get_int_or(value_at(k->scale->status, obj), 0));
    set_selector(status, value_at(k->scale->selector, obj));
    return s;
}

/* The number of replicas that a Scale requests; NULL: it has none. */
static const struct json *number_of(const struct json *scale)
{
    return json_path(scale, "spec", "replicas", NULL);
}

int scale_check_target(struct json *scale, const struct object_target *t, struct err *e)
{
    const struct api_kind kind = {.group = API_SCALE_GROUP,
                                  .version = API_SCALE_VERSION,
                                  .kind = "Scale",
                                  .namespaced = t->kind->namespaced};
    const struct object_target target = {.kind = &kind, .namespace = t->namespace, .name = t->name};
    int64_t n;
    int r = object_check_target(scale, &target, e);
    if (r < 0) {
        return r;
    }
    const struct json *number = number_of(scale);
    if (number && (json_get_int(number, &n) < 0 || n < 0 || n > INT32_MAX)) {
        return err_set(e, -EINVAL, "spec.replicas: must be a whole number of 0 or more");
    }
    return 0;
}

void scale_put(const struct api_kind *k, const struct json *scale, struct json *obj)
{
    put_at(obj, k->scale->spec, "", json_int(json_get_int_or(number_of(scale), 0)));
}

struct json *scale_config(const struct api_kind *k, const struct json *scale)
{
    struct json *config = json_object();
    json_set(config, "metadata", json_clone(json_get(scale, "metadata")));
    if (number_of(scale)) {
        scale_put(k, scale, config);
    }
    return config;
}
