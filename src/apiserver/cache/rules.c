/* SPDX-License-Identifier: Apache-2.0 */
/* The rules that turn a client's object into the server's form: see object.h. */
#include "api/patch/apply.h"
#include "api/typed.h"
#include "apiserver/cache/object.h"
#include "base/random.h"
#include "base/timeutil.h"

#include <stdio.h>

#define GENERATED_MAX 63 /* Longest name made from generateName. */

int object_check_target(struct json *obj, const struct object_target *t, struct err *e)
{
    const struct api_kind *k = t->kind;
    if (!json_is(obj, JSON_OBJECT)) {
        return err_set(e, -EINVAL, "the body is not an object");
    }
    CLEANUP_FREE char *version = api_kind_api_version(k);
    const char *has_version = json_path_string(obj, "apiVersion", NULL);
    const char *has_kind = json_path_string(obj, "kind", NULL);
    if ((has_version && *has_version && !streq(has_version, version)) ||
        (has_kind && *has_kind && !streq(has_kind, k->kind))) {
        return err_set(e, -EINVAL,
                       "%.80s in version \"%.80s\" cannot be handled as a %s: the API version in "
                       "the data does not match the expected API version (%s)",
                       has_kind ? has_kind : "object", has_version ? has_version : "", k->kind,
                       version);
    }
    struct json *meta = json_get(obj, "metadata");
    if (meta && !json_is(meta, JSON_OBJECT) && !json_is(meta, JSON_NULL)) {
        return err_set(e, -EINVAL, "metadata is not an object");
    }
    meta = json_ensure_object(obj, "metadata");
    const char *ns = json_path_string(meta, "namespace", NULL);
    const char *name = json_path_string(meta, "name", NULL);
    if (k->namespaced && ns && *ns && !streq_null(ns, t->namespace)) {
        return err_set(e, -EINVAL,
                       "the namespace of the provided object does not match the namespace sent on "
                       "the request");
    }
    if (t->name && name && *name && !streq(name, t->name)) {
        return err_set(
            e, -EINVAL,
            "the name of the object (%.253s) does not match the name on the URL (%.200s)", name,
            t->name);
    }
    if (k->namespaced && !json_string_size(json_get(meta, "namespace"))) {
        json_set_string(meta, "namespace", t->namespace);
    } else if (!k->namespaced && json_is(json_get(meta, "namespace"), JSON_STRING) && !*ns) {
        json_remove(meta, "namespace");
    }
    if (t->name) {
        json_set_string(meta, "name", t->name);
    }
    return 0;
}

bool object_complete(const struct api_kind *k, struct json *obj)
{
    return !k->custom && api_typed_complete(api_kind_schema(k), obj);
}

void object_conform(const struct api_kind *k, struct json *obj)
{
    if (k->custom) {
        api_schema_prune(k->schema, obj, NULL);
        api_schema_default(k->schema, obj);
    }
}

/* Defaults of the schema are set before those computed by code.  A field that is there even when
 * it is empty comes last, because defaults are of absent fields. */
static void put_defaults(const struct api_kind *k, struct json *obj)
{
    if (!k->custom) {
        api_typed_normalize(api_kind_schema(k), obj);
    }
    api_schema_default(api_kind_schema(k), obj);
    if (k->defaults) {
        k->defaults(obj);
    }
    object_complete(k, obj);
}

static struct json *new_uid(void)
{
    char uid[RANDOM_UUID_SIZE];
    random_uuid(uid);
    return json_string(uid);
}

void object_random_suffix(char ret[OBJECT_SUFFIX_SIZE])
{
    /* Without vowels and look-alikes, as Kubernetes does it. */
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    uint8_t b[OBJECT_SUFFIX_SIZE - 1];
    random_bytes(b, sizeof b);
    for (size_t i = 0; i < sizeof b; i++) {
        ret[i] = letters[b[i] % (sizeof letters - 1)];
    }
    ret[sizeof b] = '\0';
}

void object_generate_name(struct json *obj)
{
    struct json *meta = json_get(obj, "metadata");
    const char *base = json_path_string(meta, "generateName", NULL);
    char suffix[OBJECT_SUFFIX_SIZE];
    object_random_suffix(suffix);
    json_set(meta, "name",
             json_stringf("%.*s%s", GENERATED_MAX - (OBJECT_SUFFIX_SIZE - 1), base, suffix));
}

/* Removes the fields that only the server may set. */
static void drop_server_fields(struct json *meta)
{
    static const char *const fields[] = {"selfLink", "resourceVersion"};
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        json_remove(meta, fields[i]);
    }
}

/* Removes members whose value is null or empty, which means absent. */
static void drop_empty(struct json *meta)
{
    static const char *const fields[] = {
        "labels",       "annotations",       "finalizers", "ownerReferences",
        "generateName", "creationTimestamp", "name",       "namespace"};
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        const struct json *v = json_get(meta, fields[i]);
        bool container = json_is(v, JSON_OBJECT) || json_is(v, JSON_ARRAY);
        bool is_name = json_is(v, JSON_STRING) && streq(fields[i], "generateName");
        if (json_is(v, JSON_NULL) || (container && !json_count(v)) ||
            (is_name && !json_string_size(v))) {
            json_remove(meta, fields[i]);
        }
    }
}

static struct json *time_text(int64_t now_ms)
{
    char text[TIME_TEXT_SIZE];
    time_format_s(now_ms, text);
    return json_string(text);
}

void object_prepare_create(const struct api_kind *k, struct json *obj, int64_t now_ms)
{
    struct json *meta = json_get(obj, "metadata");
    drop_server_fields(meta);
    drop_empty(meta);
    json_remove(meta, "deletionTimestamp");
    json_remove(meta, "deletionGracePeriodSeconds");
    if (!json_string_size(json_get(meta, "name")) &&
        json_string_size(json_get(meta, "generateName"))) {
        object_generate_name(obj);
    }
    json_set(meta, "uid", new_uid());
    json_set(meta, "creationTimestamp", time_text(now_ms));
    json_remove(meta, "generation");
    if (k->generation) {
        json_set_int(meta, "generation", 1);
    }
    if (k->prepare) {
        k->prepare(obj, NULL);
    }
    put_defaults(k, obj);
}

/* Restores 'key' of 'obj' to its value in 'old'. */
static void keep(struct json *obj, const struct json *old, const char *key)
{
    const struct json *v = json_get(old, key);
    if (v) {
        json_set(obj, key, json_clone(v));
    } else {
        json_remove(obj, key);
    }
}

/* Whether anything but metadata and status differs. */
static bool intent_differs(const struct api_kind *k, const struct json *a, const struct json *b)
{
    for (size_t i = 0; i < json_count(a); i++) {
        const char *key = json_key_at(a, i);
        if (streq(key, "metadata") || (k->status_subresource && streq(key, "status"))) {
            continue;
        }
        const struct json *other = json_get(b, key);
        if (!other || !json_equal(json_at(a, i), other)) {
            return true;
        }
    }
    return false;
}

struct json *object_prepare_part(const struct api_kind *k, const char *subresource,
                                 const struct json *old, const struct json *obj)
{
    struct json *out = json_clone(old);
    if (k->merge_part) {
        k->merge_part(subresource, out, obj);
    } else if (streq(subresource, "status")) {
        keep(out, obj, "status");
    } else if (streq(subresource, "finalize")) {
        keep(json_ensure_object(out, "spec"), json_get(obj, "spec"), "finalizers");
    }
    /* managedFields records each manager that applies or changes a field. */
    if (json_path(obj, "metadata", "managedFields", NULL)) {
        keep(json_get(out, "metadata"), json_get(obj, "metadata"), "managedFields");
    }
    json_remove(json_get(out, "metadata"), "resourceVersion");
    if (!k->custom) {
        api_typed_normalize(api_kind_schema(k), out);
    }
    object_complete(k, out);
    return out;
}

void object_prepare_update(const struct api_kind *k, const struct json *old, struct json *obj)
{
    static const char *const kept[] = {"uid", "creationTimestamp", "deletionTimestamp",
                                       "deletionGracePeriodSeconds", "generation"};
    const struct json *old_meta = json_get(old, "metadata");
    struct json *meta = json_get(obj, "metadata");
    bool differs = false;
    for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
        keep(meta, old_meta, kept[i]);
    }
    drop_server_fields(meta);
    drop_empty(meta);
    if (k->status_subresource) {
        CLEANUP(json_free) struct json *wish = json_take(obj, "status");
        keep(obj, old, "status");
        differs = k->accept_status && k->accept_status(obj, wish);
    }
    if (k->prepare) {
        k->prepare(obj, old);
    }
    put_defaults(k, obj);
    if (!k->generation) {
        json_remove(meta, "generation");
    } else if (differs || intent_differs(k, obj, old) || intent_differs(k, old, obj)) {
        json_set_int(meta, "generation", json_get_int_or(json_get(meta, "generation"), 0) + 1);
    }
}

/* ---- deletion ---- */

bool object_has_finalizers(const struct api_kind *k, const struct json *obj)
{
    return json_count(json_path(obj, "metadata", "finalizers", NULL)) ||
           (api_kind_is_namespace(k) && json_count(json_path(obj, "spec", "finalizers", NULL)));
}

bool object_is_finished(const struct api_kind *k, const struct json *obj)
{
    return json_path_string(obj, "metadata", "deletionTimestamp", NULL) &&
           object_grace_s(obj) == 0 && !object_has_finalizers(k, obj);
}

int64_t object_grace_s(const struct json *obj)
{
    int64_t n = json_get_int_or(json_path(obj, "metadata", "deletionGracePeriodSeconds", NULL), 0);
    return MAX(n, 0);
}

void object_mark_deleted(const struct api_kind *k, struct json *obj, int64_t grace_s,
                         int64_t now_ms)
{
    struct json *meta = json_get(obj, "metadata");
    const char *end = json_path_string(meta, "deletionTimestamp", NULL);
    int64_t end_ms, generation = json_get_int_or(json_get(meta, "generation"), 0);
    if (end && time_parse(end, &end_ms) == 0) {
        /* The time of the first request for deletion. */
        now_ms = end_ms - object_grace_s(obj) * 1000;
    } else if (generation > 0) {
        json_set_int(meta, "generation", generation + 1);
    }
    json_set(meta, "deletionTimestamp", time_text(now_ms + grace_s * 1000));
    json_set_int(meta, "deletionGracePeriodSeconds", grace_s);
    if (api_kind_is_namespace(k)) {
        json_set_string(json_ensure_object(obj, "status"), "phase", "Terminating");
    }
}
