/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/storage/local_class.h"

#include "api/obj.h"
#include "base/mem.h"
#include "storage/names.h"

#define STORAGE_API "storage.k8s.io/v1"

static void created(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    if (error < 0 && error != -EEXIST) {
        work_retry(w, error, "create the storage class " STORAGE_LOCAL_CLASS, text);
    } else {
        work_done(w);
    }
}

static void create_class(void *ctx, struct work *w, const char *key)
{
    CLEANUP_FREE char *path = api_path(STORAGE_API, "storageclasses", NULL, NULL, NULL);
    CLEANUP(json_free) struct json *o = obj_new(STORAGE_API, "StorageClass", NULL, key);
    obj_set_annotation(o, STORAGE_DEFAULT_CLASS, "true");
    json_set_string(o, "provisioner", STORAGE_LOCAL_PROVISIONER);
    json_set_string(o, "reclaimPolicy", "Delete");
    json_set_string(o, "volumeBindingMode", "WaitForFirstConsumer");
    json_set_bool(o, "allowVolumeExpansion", true);
    work_request(w, "POST", path, o, created);
}

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    workqueue_add(env->queue, STORAGE_LOCAL_CLASS);
    *ret = NULL;
    return 0;
}

static void stop(void *state)
{
}

const struct controller local_class_controller = {
    .name = "local_class",
    .parallel = 1,
    .start = start,
    .reconcile = create_class,
    .stop = stop,
};
