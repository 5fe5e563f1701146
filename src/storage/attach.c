/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/attach.h"

#include "api/condition.h"
#include "api/obj.h"
#include "base/mem.h"
#include "base/timeutil.h"

/* The disks of clouds, and the drivers that replace their plug-ins. */
static const struct {
    const char *source, *id, *driver;
} clouds[] = {{"awsElasticBlockStore", "volumeID", "ebs.csi.aws.com"},
              {"gcePersistentDisk", "pdName", "pd.csi.storage.gke.io"},
              {"azureDisk", "diskURI", "disk.csi.azure.com"},
              {"cinder", "volumeID", "cinder.csi.openstack.org"}};

struct storage_attacher storage_attacher(const struct json *volume)
{
    const struct json *spec = json_get(volume, "spec"), *csi = json_get(spec, "csi");
    if (csi) {
        return (struct storage_attacher){json_get_text(csi, "driver"),
                                         json_get_text(csi, "volumeHandle")};
    }
    for (size_t i = 0; i < ARRAY_SIZE(clouds); i++) {
        const struct json *source = json_get(spec, clouds[i].source);
        if (source) {
            return (struct storage_attacher){clouds[i].driver, json_get_text(source, clouds[i].id)};
        }
    }
    return (struct storage_attacher){"", ""};
}

bool storage_needs_attaching(const struct json *driver)
{
    return json_get_bool(json_path(driver, "spec", "attachRequired", NULL), true);
}

bool storage_is_exclusive(const struct json *volume)
{
    const struct json *mode;
    JSON_FOREACH (mode, json_path(volume, "spec", "accessModes", NULL)) {
        const char *s = json_get_string(mode);
        if (!streq_null(s, "ReadWriteOnce") && !streq_null(s, "ReadWriteOncePod")) {
            return false;
        }
    }
    return true;
}

char *storage_unique_name(const struct storage_attacher *a)
{
    return xasprintf("kubernetes.io/csi/%s^%s", a->driver, a->handle);
}

bool storage_is_in_use(const struct json *node, const char *unique_name)
{
    const struct json *name;
    JSON_FOREACH (name, json_path(node, "status", "volumesInUse", NULL)) {
        if (streq_null(json_get_string(name), unique_name)) {
            return true;
        }
    }
    return false;
}

int64_t storage_force_detach_ms(const struct json *node)
{
    const struct json *taint, *ready = condition_find(node, "Ready");
    int64_t since;
    if (!node) {
        return 0;
    }
    JSON_FOREACH (taint, json_path(node, "spec", "taints", NULL)) {
        if (streq(json_get_text(taint, "key"), STORAGE_OUT_OF_SERVICE)) {
            return 0;
        }
    }
    if (!ready || streq(json_get_text(ready, "status"), "True")) {
        return INT64_MAX;
    }
    return time_parse(json_get_text(ready, "lastTransitionTime"), &since) < 0
               ? INT64_MAX
               : since + STORAGE_FORCE_MS;
}

struct json *storage_make_attachment(const char *name, const struct json *volume,
                                     const struct storage_attacher *a, const char *node)
{
    struct json *o = obj_new("storage.k8s.io/v1", "VolumeAttachment", NULL, name);
    struct json *spec = json_ensure_object(o, "spec");
    json_set_string(spec, "attacher", a->driver);
    json_set_string(spec, "nodeName", node);
    json_set_string(json_ensure_object(spec, "source"), "persistentVolumeName", obj_name(volume));
    return o;
}
