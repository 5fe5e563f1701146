/* SPDX-License-Identifier: Apache-2.0 */
/* From a client's JSON to the store and back: the rules of creation and update, the stored bytes, and the
 * same bytes taken for what another program wrote to the store. */
#include "apiserver/cache/object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Stores 'obj' and reads it back as the cache does. */
static void round_trip(const struct api_kind *k, const struct json *obj)
{
    CLEANUP_FREE char *head = object_head(k);
    CLEANUP(blob_unref) struct blob *value = NULL;
    if (!json_path_string(obj, "metadata", "name", NULL) || object_encode(k, obj, &value) < 0) {
        return;
    }
    CLEANUP(object_unref) struct object *o = object_new(k, head, "key", value, 77);
    if (!o || !object_same(o, head, value)) {
        __builtin_trap();
    }
    CLEANUP(blob_unref) struct blob *later = object_text_at(o, head, 12345);
    CLEANUP(json_free) struct json *back = NULL;
    if (json_parse(later->data, later->size, &back, NULL) < 0 ||
        !streq_null(json_path_string(back, "metadata", "resourceVersion", NULL), "12345")) {
        __builtin_trap();
    }
}

static void run_kind(const struct api_kind *k, const struct json *given)
{
    CLEANUP(json_free) struct json *obj = json_clone(given);
    struct object_target target = {.kind = k, .namespace = k->namespaced ? "red" : NULL};
    CLEANUP(api_causes_done) struct api_causes c = {0};
    if (object_check_target(obj, &target, NULL) < 0) {
        return;
    }
    CLEANUP(json_free) struct json *change = json_clone(obj);
    object_prepare_create(k, obj, 0);
    api_validate_object(k, obj, NULL, &c);
    round_trip(k, obj);
    object_prepare_update(k, obj, change);
    api_validate_object(k, change, obj, &c);
    round_trip(k, change);
    CLEANUP(json_free) struct json *part = object_prepare_part(k, "status", obj, given);
    round_trip(k, part);
    object_has_finalizers(k, obj);
    object_mark_deleted(k, obj, 0, 0);
    object_is_finished(k, obj);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(json_free) struct json *obj = NULL;
    CLEANUP(blob_unref) struct blob *raw = blob_new(data, size);
    for (size_t i = 0; api_kinds[i]; i++) {
        CLEANUP_FREE char *head = object_head(api_kinds[i]);
        CLEANUP(object_unref) struct object *o = object_new(api_kinds[i], head, "key", raw, 1);
        if (o) {
            CLEANUP(json_free) struct json *tree = object_parse(o);
            if (!streq_null(json_path_string(tree, "metadata", "resourceVersion", NULL), "1")) {
                __builtin_trap();
            }
        }
    }
    if (json_parse((const char *) data, size, &obj, NULL) == 0) {
        for (size_t i = 0; api_kinds[i]; i++) {
            run_kind(api_kinds[i], obj);
        }
    }
    return 0;
}
