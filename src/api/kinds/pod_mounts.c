/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of the mounts and block devices of a container. */
#include "api/kind_util.h"
#include "api/kinds/pod_priv.h"

/* Names and paths that mounts or devices of a container have taken. */
struct taken {
    struct smap names, paths;
};

static void taken_init(struct taken *t, const struct json *list, const char *path_key)
{
    const struct json *item;
    smap_init(&t->names, NULL);
    smap_init(&t->paths, NULL);
    JSON_FOREACH (item, list) {
        smap_set(&t->names, json_get_text(item, "name"), t);
        smap_set(&t->paths, json_get_text(item, path_key), t);
    }
}

static void taken_done(struct taken *t)
{
    smap_done(&t->names);
    smap_done(&t->paths);
}

/* ---- mounts ---- */

static void check_propagation(const struct pod_rules *r, const char *field,
                              const struct json *mount, bool privileged)
{
    static const char *const modes[] = {"Bidirectional", "HostToContainer", "None", NULL};
    static const char *const read_only[] = {"Disabled", "Enabled", "IfPossible", NULL};
    const char *at = API_FIELD("%s.recursiveReadOnly", field);
    const char *mode = json_get_text(mount, "mountPropagation");
    const char *recursive = json_get_text(mount, "recursiveReadOnly");
    (void) api_field_enum(r->c, API_FIELD("%s.mountPropagation", field),
                          json_get(mount, "mountPropagation"), false, modes);
    if (streq(mode, "Bidirectional") && !privileged) {
        api_forbidden(r->c, API_FIELD("%s.mountPropagation", field),
                      "Bidirectional mount propagation is available only to privileged containers");
    }
    if (!api_field_enum(r->c, at, json_get(mount, "recursiveReadOnly"), false, read_only) ||
        streq(recursive, "Disabled")) {
        return;
    }
    if (!pod_has_set(mount, "readOnly")) {
        api_forbidden(r->c, at, "may only be specified when readOnly is true");
    }
    if (*mode && !streq(mode, "None")) {
        api_forbidden(r->c, at,
                      "may only be specified when mountPropagation is None or not specified");
    }
}

/* 'list_field' is in the causes of paths: Kubernetes does not name the mount there. */
static void check_paths(const struct pod_rules *r, const char *field, const char *list_field,
                        const struct json *mount)
{
    static const char *const keys[] = {"subPath", "subPathExpr"};
    const struct json *volume = smap_get(r->volumes, json_get_text(mount, "name"));
    const struct json *expr = json_get(mount, "subPathExpr");
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        const struct json *path = json_get(mount, keys[i]);
        if (json_string_size(path) == 0) {
            continue;
        }
        if (json_get(volume, "image")) {
            api_invalid(r->c, API_FIELD("%s.%s", field, keys[i]), path,
                        "not allowed in image volume sources");
        }
        pod_check_local_path(r, API_FIELD("%s.%s", list_field, keys[i]), path);
    }
    if (json_string_size(expr) && json_string_size(json_get(mount, "subPath"))) {
        api_invalid(r->c, API_FIELD("%s.subPathExpr", field), expr,
                    "subPathExpr and subPath are mutually exclusive");
    }
}

static void check_mount(const struct pod_rules *r, const char *field, const struct json *mount,
                        const struct taken *devices)
{
    const struct json *name = json_get(mount, "name"), *path = json_get(mount, "mountPath");
    if (!smap_get(r->volumes, json_get_text(mount, "name"))) {
        api_not_found(r->c, API_FIELD("%s.name", field), name, "");
    }
    if (smap_get(&devices->names, json_get_text(mount, "name"))) {
        api_invalid(r->c, API_FIELD("%s.name", field), name,
                    "must not already exist in volumeDevices");
    }
    if (smap_get(&devices->paths, json_get_text(mount, "mountPath"))) {
        api_invalid(r->c, API_FIELD("%s.mountPath", field), path,
                    "must not already exist as a path in volumeDevices");
    }
}

static void check_mount_list(const struct pod_rules *r, const char *field, const struct json *list,
                             const struct taken *devices, bool privileged)
{
    struct smap paths;
    smap_init(&paths, NULL);
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *mount = json_at(list, i), *path = json_get(mount, "mountPath");
        const char *at = API_FIELD("%s[%zu]", field, i);
        check_mount(r, at, mount, devices);
        if (smap_get(&paths, json_get_text(mount, "mountPath"))) {
            api_invalid(r->c, API_FIELD("%s.mountPath", at), path, "must be unique");
        }
        smap_set(&paths, json_get_text(mount, "mountPath"), &paths);
        check_paths(r, at, field, mount);
        check_propagation(r, field, mount, privileged);
    }
    smap_done(&paths);
}

/* ---- block devices ---- */

static void check_device(const struct pod_rules *r, const char *field, const struct json *device,
                         const struct taken *mounts)
{
    const struct json *name = json_get(device, "name"), *path = json_get(device, "devicePath");
    const struct json *volume = smap_get(r->volumes, json_get_text(device, "name"));
    const char *name_field = API_FIELD("%s.name", field);
    const char *path_field = API_FIELD("%s.devicePath", field);
    CLEANUP(api_causes_done) struct api_causes wrong = {0};
    if (!volume) {
        api_not_found(r->c, name_field, name, "");
    } else if (!json_get(volume, "persistentVolumeClaim") && !json_get(volume, "ephemeral")) {
        api_invalid(r->c, name_field, name,
                    "can only use volume source type of PersistentVolumeClaim or Ephemeral for "
                    "block mode");
    }
    api_validate_path(&wrong, path_field, path);
    if (wrong.n) {
        api_invalid(r->c, path_field, path, "can not contain backsteps ('..')");
    }
    if (smap_get(&mounts->names, json_get_text(device, "name"))) {
        api_invalid(r->c, name_field, name, "must not already exist in volumeMounts");
    }
    if (smap_get(&mounts->paths, json_get_text(device, "devicePath"))) {
        api_invalid(r->c, path_field, path, "must not already exist as a path in volumeMounts");
    }
}

static void check_devices(const struct pod_rules *r, const char *field, const struct json *list,
                          const struct taken *mounts)
{
    static const char *const keys[] = {"name", "devicePath"};
    struct smap seen[ARRAY_SIZE(keys)];
    for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
        smap_init(&seen[k], NULL);
    }
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *device = json_at(list, i);
        const char *at = API_FIELD("%s[%zu]", field, i);
        for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
            if (smap_get(&seen[k], json_get_text(device, keys[k]))) {
                api_invalid(r->c, API_FIELD("%s.%s", at, keys[k]), json_get(device, keys[k]),
                            "must be unique");
            }
            smap_set(&seen[k], json_get_text(device, keys[k]), seen);
        }
        check_device(r, at, device, mounts);
    }
    for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
        smap_done(&seen[k]);
    }
}

void pod_check_mounts(const struct pod_rules *r, const char *field, const struct json *container)
{
    const struct json *mounts = json_get(container, "volumeMounts");
    const struct json *devices = json_get(container, "volumeDevices");
    struct taken by_mounts, by_devices;
    taken_init(&by_mounts, mounts, "mountPath");
    taken_init(&by_devices, devices, "devicePath");
    check_mount_list(r, API_FIELD("%s.volumeMounts", field), mounts, &by_devices,
                     pod_has_set(json_get(container, "securityContext"), "privileged"));
    check_devices(r, API_FIELD("%s.volumeDevices", field), devices, &by_mounts);
    taken_done(&by_mounts);
    taken_done(&by_devices);
}
