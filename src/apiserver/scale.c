/* SPDX-License-Identifier: Apache-2.0 */
/* The subresource scale: one shape (autoscaling/v1 Scale) for the number of replicas of any kind. */
#include "api/jsonpath.h"
#include "apiserver/server.h"

static const struct json *value_at(const char *path, const struct json *obj)
{
    const struct json *v;
    return path && jsonpath_find(path, obj, &v, 1, NULL) == 1 ? v : NULL;
}

struct json *scale_of(const struct api_kind *k, const struct json *obj)
{
    static const char *const kept[] = {"name", "namespace", "uid", "resourceVersion",
                                       "creationTimestamp"};
    struct json *s = json_object();
    json_set_string(s, "kind", "Scale");
    json_set_string(s, "apiVersion", API_SCALE_GROUP "/" API_SCALE_VERSION);
    struct json *meta = json_ensure_object(s, "metadata");
    for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
        const struct json *v = json_path(obj, "metadata", kept[i], NULL);
        if (v) {
            json_set(meta, kept[i], json_clone(v));
        }
    }
    struct json *status = json_ensure_object(s, "status");
    json_set_int(json_ensure_object(s, "spec"), "replicas",
                 json_get_int_or(value_at(k->scale->spec, obj), 0));
    json_set_int(status, "replicas", json_get_int_or(value_at(k->scale->status, obj), 0));
    json_set_string(status, "selector", json_get_string(value_at(k->scale->selector, obj)));
    return s;
}

/* Sets the member at a path of plain names, making the objects that lead there. */
static void set_at(struct json *obj, const char *path, int64_t n)
{
    while (*path == '.') {
        size_t size = strcspn(++path, ".");
        CLEANUP_FREE char *name = xstrndup(path, size);
        path += size;
        if (*path) {
            obj = json_ensure_object(obj, name);
        } else {
            json_set_int(obj, name, n);
        }
    }
}

int scale_apply(const struct api_kind *k, const struct json *wish, struct json *obj, struct err *e)
{
    int64_t n = 0;
    const char *kind = json_path_string(wish, "kind", NULL);
    const struct json *replicas = json_path(wish, "spec", "replicas", NULL);
    if (!json_is(wish, JSON_OBJECT) || (kind && !streq(kind, "Scale"))) {
        return err_set(e, -EINVAL, "the body of a scale is a Scale, not %.80s",
                       kind ? kind : "another value");
    }
    if (replicas && (json_get_int(replicas, &n) < 0 || n < 0 || n > INT32_MAX)) {
        return err_set(e, -EINVAL, "spec.replicas: must be a whole number of 0 or more");
    }
    set_at(obj, k->scale->spec, n);
    return 0;
}
