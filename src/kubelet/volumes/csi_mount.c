/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/volumes/csi_mount.h"

#include "base/mem.h"
#include "kubelet/csi/call.h"
#include "kubelet/csi/parts.h"
#include "kubelet/volumes/key_lock.h"
#include "kubelet/volumes/mountinfo.h"
#include "kubelet/volumes/setup.h"
#include "kubelet/volumes/tree.h"
#include "net/loop/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define CALL_MS 120000
#define DATA_FILE "vol_data.json"
#define DATA_MAX 65536
#define HANDLE_MAX 4096

/* What vol_data.json says. */
struct data {
    struct json *json;
    const char *driver, *handle;
    bool ephemeral, block;
};

/* The member of the volume's directory that the driver makes. */
static const char *target_of(bool block)
{
    return block ? "device" : "mount";
}

char *csi_mount_path(const char *pods_dir, const char *uid, const char *name, bool block)
{
    return xasprintf("%s/%s/volumes/" CSI_PLUGIN_DIR "/%s/%s", pods_dir, uid, name,
                     target_of(block));
}

bool csi_gives_to_group(const char *policy, const char *fs_type, const struct json *modes)
{
    if (streq(policy, "None")) {
        return false;
    }
    if (streq(policy, "File")) {
        return true;
    }
    const struct json *mode;
    bool once = !json_count(modes);
    JSON_FOREACH (mode, modes) {
        const char *text = json_get_string(mode);
        once |= text && (streq(text, "ReadWriteOnce") || streq(text, "ReadWriteOncePod"));
    }
    return *fs_type && once;
}

/* ---- files ---- */

/* ROOT/plugins/kubernetes.io/csi/DRIVER/HASH (owned). */
static char *stage_dir(const char *pods_dir, const char *driver, const char *handle)
{
    CLEANUP_FREE char *hash = csi_hash(handle);
    const char *slash = strrchr(pods_dir, '/');
    return xasprintf("%.*s/plugins/kubernetes.io/csi/%s/%s", (int) (slash - pods_dir), pods_dir,
                     driver, hash);
}

static char *volume_top(const char *pods_dir, const char *uid, const char *name)
{
    return xasprintf("%s/%s/volumes/" CSI_PLUGIN_DIR "/%s", pods_dir, uid, name);
}

/* The text that names a volume of a driver, for its lock (owned). */
static char *lock_name(const char *driver, const char *handle)
{
    return xasprintf("csi/%s/%s", driver, handle);
}

static int write_data(const char *dir, const struct csi_mount *m, const char *driver,
                      const char *handle, struct err *e)
{
    CLEANUP(json_free) struct json *o = json_object();
    CLEANUP_FREE char *path = xasprintf("%s/" DATA_FILE, dir);
    json_set_string(o, "driverName", driver);
    json_set_string(o, "volumeHandle", handle);
    json_set_string(o, "specVolID", m->name);
    json_set_string(o, "volumeLifecycleMode", m->ephemeral ? "Ephemeral" : "Persistent");
    json_set_string(o, "volumeMode", m->block ? "Block" : "Filesystem");
    CLEANUP_FREE char *text = json_to_text(o);
    return file_write_unsynced(path, text, strlen(text), 0600, e);
}

static void data_done(struct data *d)
{
    json_free(d->json);
}

/* -ENOENT: there is none. */
static int read_data(const char *dir, struct data *ret, struct err *e)
{
    CLEANUP_FREE char *path = xasprintf("%s/" DATA_FILE, dir);
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    struct data d = {0};
    int r = file_read(path, DATA_MAX, &text, e);
    r = r < 0 ? r : json_parse(strbuf_cstr(&text), text.size, &d.json, e);
    if (r < 0) {
        return r;
    }
    d.driver = json_get_text(d.json, "driverName");
    d.handle = json_get_text(d.json, "volumeHandle");
    d.ephemeral = streq(json_get_text(d.json, "volumeLifecycleMode"), "Ephemeral");
    d.block = streq(json_get_text(d.json, "volumeMode"), "Block");
    if (!csi_driver_name_is_valid(d.driver) || !*d.handle) {
        data_done(&d);
        return err_set(e, -EINVAL, "%s names no driver and volume", path);
    }
    *ret = d;
    return 0;
}

/* The directory of the pod that has the volume (owned), another one than 'but'; NULL: none. */
static char *find_in_pod(const char *pods_dir, const char *uid, const struct data *want,
                         const char *but)
{
    CLEANUP_FREE char *top = xasprintf("%s/%s/volumes/" CSI_PLUGIN_DIR, pods_dir, uid);
    DIR *dir = opendir(top);
    struct dirent *d;
    char *found = NULL;
    while (dir && !found && (d = readdir(dir))) {
        CLEANUP_FREE char *path = xasprintf("%s/%s", top, d->d_name);
        struct data is;
        if (volume_name_is_safe(d->d_name) && !streq(path, but) &&
            read_data(path, &is, NULL) == 0) {
            bool same =
                !is.ephemeral && streq(is.driver, want->driver) && streq(is.handle, want->handle);
            found = same ? xstrdup(path) : NULL;
            data_done(&is);
        }
    }
    if (dir) {
        closedir(dir);
    }
    return found;
}

/* The directory of any pod that has the volume (owned), another one than 'but'; NULL: none.  -errno: the pods
 * cannot be read. */
static int find_in_pods(const char *pods_dir, const struct data *want, const char *but, char **ret)
{
    DIR *dir = opendir(pods_dir);
    struct dirent *d;
    char *found = NULL;
    if (!dir) {
        return -errno;
    }
    while (!found && (d = readdir(dir))) {
        found = volume_name_is_safe(d->d_name) ? find_in_pod(pods_dir, d->d_name, want, but) : NULL;
    }
    closedir(dir);
    *ret = found;
    return 0;
}

/* Whether another directory of a pod than 'but' has the volume.  When that is not known, it stays. */
static bool is_used(const char *pods_dir, const struct data *want, const char *but)
{
    CLEANUP_FREE char *found = NULL;
    return find_in_pods(pods_dir, want, but, &found) < 0 || found;
}

static bool is_mounted(const char *parent, const char *name)
{
    CLEANUP(fd_close) int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 && tree_is_mount_point(fd, name);
}

/* A link could name any device of the node, and the driver's device is not one. */
static bool is_device(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISBLK(st.st_mode);
}

/* ---- up ---- */

struct request {
    struct pb_store store;
    struct csi_capability capability;
    struct runtime_pairs publish_context, stage_secrets, publish_secrets, context;
};

static int make_request(const struct csi_mount *m, const struct csi_driver *d, struct request *q,
                        char *group, size_t group_size, struct err *e)
{
    struct pb_store *s = &q->store;
    CLEANUP(json_free) struct json *context = json_object();
    const struct json *parts[] = {json_get(m->source, "volumeAttributes"), m->pod_info};
    for (size_t p = 0; p < ARRAY_SIZE(parts); p++) {
        for (size_t i = 0; i < json_count(parts[p]); i++) {
            json_set(context, json_key_at(parts[p], i), json_clone(json_at(parts[p], i)));
        }
    }
    int r = csi_capability_make(s, m->modes, m->block, json_get_text(m->source, "fsType"),
                                m->options, d->can_single_writer, &q->capability, e);
    r = r < 0 ? r : csi_pairs(s, m->publish_context, &q->publish_context, e);
    r = r < 0 ? r : csi_pairs(s, context, &q->context, e);
    r = r < 0 ? r : csi_secrets(s, m->stage_secret, &q->stage_secrets, e);
    r = r < 0 ? r : csi_secrets(s, m->publish_secret, &q->publish_secrets, e);
    if (r == 0 && d->can_group && m->has_group) {
        snprintf(group, group_size, "%u", (unsigned) m->group);
        q->capability.group = group;
    }
    return r;
}

static int stage(const struct csi_mount *m, const struct csi_driver *d, const char *handle,
                 const struct request *q, char **ret_path, struct err *e)
{
    CLEANUP_FREE char *dir = stage_dir(m->pods_dir, d->name, handle);
    CLEANUP_FREE char *path = xasprintf("%s/globalmount", dir);
    int r = dir_make(path, 0750, e);
    r = r < 0 ? r : write_data(dir, m, d->name, handle, e);
    if (r < 0) {
        return r;
    }
    struct csi_node_stage request = {.id = handle,
                                     .publish_context = q->publish_context,
                                     .staging_path = path,
                                     .capability = q->capability,
                                     .secrets = q->stage_secrets,
                                     .context = q->context};
    r = csi_call(d->endpoint, CSI_NODE_STAGE, &request, CALL_MS, NULL, NULL, e);
    if (r < 0) {
        return err_prefix(e, "attacher.MountDevice failed to stage the volume");
    }
    *ret_path = TAKE(path);
    return 0;
}

static int give_to_group(const struct csi_mount *m, const char *target, struct err *e)
{
    int fd = open(target, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return err_sys(e, -errno, "open the volume");
    }
    int r = tree_set_group(fd, m->group, m->on_root_mismatch, e);
    close(fd);
    return r;
}

static int publish(const struct csi_mount *m, const struct csi_driver *d, const char *handle,
                   const struct request *q, const char *top, const char *staging, struct err *e)
{
    CLEANUP_FREE char *target = xasprintf("%s/%s", top, target_of(m->block));
    struct csi_node_publish request = {
        .id = handle,
        .publish_context = q->publish_context,
        .staging_path = staging ? staging : "",
        .target_path = target,
        .capability = q->capability,
        .readonly = m->readonly || json_get_bool(json_get(m->source, "readOnly"), false),
        .secrets = q->publish_secrets,
        .context = q->context};
    int r = csi_call(d->endpoint, CSI_NODE_PUBLISH, &request, CALL_MS, NULL, NULL, e);
    if (r < 0) {
        return err_prefix(e,
                          m->block ? "blockMapper.publishVolume failed" : "mounter.SetUpAt failed");
    }
    if (m->block) {
        return is_device(target)
                   ? 0
                   : err_set(e, -ENOTBLK, "the driver made no block device at %s", target);
    }
    bool gives = m->has_group && !d->can_group && !request.readonly &&
                 csi_gives_to_group(m->group_policy, q->capability.fs_type, m->modes);
    return gives ? give_to_group(m, target, e) : 0;
}

/* The handle of the volume (owned); that of an ephemeral volume is made of the pod and its name. */
static char *handle_of(const struct csi_mount *m)
{
    if (!m->ephemeral) {
        return xstrdup(json_get_text(m->source, "volumeHandle"));
    }
    CLEANUP_FREE char *text = xasprintf("%s/%s", m->uid, m->name);
    CLEANUP_FREE char *hash = csi_hash(text);
    return xasprintf("csi-%s", hash);
}

static int bring_up(const struct csi_mount *m, const struct csi_driver *d, const char *handle,
                    const char *top, struct err *e)
{
    CLEANUP_FREE char *staging = NULL;
    struct request q = {.store = PB_STORE_INIT(CSI_STORE_MAX)};
    char group[16];
    int r = make_request(m, d, &q, group, sizeof group, e);
    /* From now on the removal of the pod's volumes knows of it. */
    r = r < 0 ? r : write_data(top, m, d->name, handle, e);
    if (r == 0 && d->can_stage && !m->ephemeral) {
        r = stage(m, d, handle, &q, &staging, e);
    }
    r = r < 0 ? r : publish(m, d, handle, &q, top, staging, e);
    pb_store_done(&q.store);
    return r;
}

int csi_mount_up(const struct csi_mount *m, struct err *e)
{
    CLEANUP(csi_driver_done) struct csi_driver d = {0};
    CLEANUP_FREE char *top = volume_top(m->pods_dir, m->uid, m->name);
    CLEANUP_FREE char *below = xasprintf("%s/volumes/" CSI_PLUGIN_DIR "/%s", m->uid, m->name);
    CLEANUP_FREE char *handle = handle_of(m);
    const char *driver = json_get_text(m->source, "driver");
    int fd;
    if (!csi_driver_name_is_valid(driver) || !*handle || strlen(handle) > HANDLE_MAX) {
        return err_set(e, -EINVAL, "csi: invalid driver %.100s or volumeHandle", driver);
    }
    int r = csi_drivers_find(m->drivers, driver, &d, e);
    r = r < 0 ? r : volume_make_dir(m->pods_dir, below, &fd, e);
    if (r < 0) {
        return r;
    }
    close(fd);
    CLEANUP_FREE char *target = xasprintf("%s/%s", top, target_of(m->block));
    if (is_mounted(top, target_of(m->block)) && (!m->block || is_device(target))) {
        return 0; /* Before a restart of the kubelet. */
    }
    CLEANUP_FREE char *key = lock_name(driver, handle);
    struct key_lock *lock = key_lock_take(key);
    r = bring_up(m, &d, handle, top, e);
    key_lock_release(lock);
    return r;
}

/* ---- down ---- */

static int unstage(const struct csi_driver *d, const char *pods_dir, const struct data *v,
                   struct err *e)
{
    CLEANUP_FREE char *dir = stage_dir(pods_dir, v->driver, v->handle);
    CLEANUP_FREE char *path = xasprintf("%s/globalmount", dir);
    CLEANUP_FREE char *file = xasprintf("%s/" DATA_FILE, dir);
    struct csi_node_unstage request = {.id = v->handle, .staging_path = path};
    if (access(dir, F_OK) < 0 && errno == ENOENT) {
        return 0;
    }
    int r = csi_call(d->endpoint, CSI_NODE_UNSTAGE, &request, CALL_MS, NULL, NULL, e);
    if (r < 0) {
        return r;
    }
    /* A driver that left a mount there has a fault, and the directory stays as its sign. */
    if ((rmdir(path) < 0 && errno != ENOENT) || (unlink(file) < 0 && errno != ENOENT) ||
        (rmdir(dir) < 0 && errno != ENOENT)) {
        return err_sys(e, -errno, "remove %s after NodeUnstageVolume", dir);
    }
    return 0;
}

static int take_down(struct csi_drivers *drivers, const char *pods_dir, const char *top,
                     const struct data *v, struct err *e)
{
    CLEANUP(csi_driver_done) struct csi_driver d = {0};
    CLEANUP_FREE char *target = xasprintf("%s/%s", top, target_of(v->block));
    CLEANUP_FREE char *file = xasprintf("%s/" DATA_FILE, top);
    int (*remove_target)(const char *path) = v->block ? unlink : rmdir;
    struct csi_node_unpublish request = {.id = v->handle, .target_path = target};
    int r = csi_drivers_find(drivers, v->driver, &d, e);
    r = r < 0 ? r : csi_call(d.endpoint, CSI_NODE_UNPUBLISH, &request, CALL_MS, NULL, NULL, e);
    if (r < 0) {
        return r;
    }
    /* The driver removes the target; an empty directory or the file of a device may stay. */
    if (remove_target(target) < 0 && errno != ENOENT) {
        r = mount_remove_below(target, e);
        if (r == 0 && remove_target(target) < 0 && errno != ENOENT) {
            r = err_sys(e, -errno, "remove %s after NodeUnpublishVolume", target);
        }
    }
    if (r == 0 && d.can_stage && !v->ephemeral && !is_used(pods_dir, v, top)) {
        r = unstage(&d, pods_dir, v, e);
    }
    /* Last: until then, the next call does it all again. */
    if (r == 0 && unlink(file) < 0 && errno != ENOENT) {
        r = err_sys(e, -errno, "remove %s", file);
    }
    return r;
}

int csi_mount_down(struct csi_drivers *drivers, const char *pods_dir, const char *uid,
                   const char *name, struct err *e)
{
    CLEANUP_FREE char *top = volume_top(pods_dir, uid, name);
    struct data v;
    struct err own;
    int r = read_data(top, &v, e ? e : &own);
    if (r < 0) {
        return r == -ENOENT ? 0 : r;
    }
    CLEANUP_FREE char *key = lock_name(v.driver, v.handle);
    struct key_lock *lock = key_lock_take(key);
    r = take_down(drivers, pods_dir, top, &v, e);
    key_lock_release(lock);
    data_done(&v);
    return r;
}

int csi_mount_down_all(struct csi_drivers *drivers, const char *pods_dir, const char *uid,
                       struct err *e)
{
    CLEANUP_FREE char *top = xasprintf("%s/%s/volumes/" CSI_PLUGIN_DIR, pods_dir, uid);
    DIR *dir = opendir(top);
    struct dirent *d;
    int result = 0;
    while (dir && (d = readdir(dir))) {
        struct err one = {0};
        if (volume_name_is_safe(d->d_name)) {
            int r = csi_mount_down(drivers, pods_dir, uid, d->d_name, &one);
            if (r < 0 && result == 0) {
                result = err_set(e, r, "csi volume %s: %s", d->d_name, one.text);
            }
        }
    }
    if (dir) {
        closedir(dir);
    }
    return result;
}

/* ---- growth ---- */

int csi_mount_expand(struct csi_drivers *drivers, const char *pods_dir, const struct json *spec,
                     const struct json *source, int64_t bytes, bool *ret_here, struct err *e)
{
    struct data want = {.driver = json_get_text(source, "driver"),
                        .handle = json_get_text(source, "volumeHandle"),
                        .block = streq(json_get_text(spec, "volumeMode"), "Block")};
    CLEANUP(csi_driver_done) struct csi_driver d = {0};
    CLEANUP_PB_STORE struct pb_store store = PB_STORE_INIT(CSI_STORE_MAX);
    CLEANUP_FREE char *top = NULL;
    int r = find_in_pods(pods_dir, &want, "", &top);
    if (r < 0) {
        return err_sys(e, r, "read %s", pods_dir);
    }
    if (!top) {
        *ret_here = false;
        return 0;
    }
    CLEANUP_FREE char *target = xasprintf("%s/%s", top, target_of(want.block));
    CLEANUP_FREE char *stage = stage_dir(pods_dir, want.driver, want.handle);
    CLEANUP_FREE char *staging = xasprintf("%s/globalmount", stage);
    r = csi_drivers_find(drivers, want.driver, &d, e);
    struct csi_node_expand q = {.id = want.handle,
                                .path = target,
                                .required_bytes = bytes,
                                .staging_path = d.can_stage ? staging : ""};
    r = r < 0 ? r
              : csi_capability_make(&store, json_get(spec, "accessModes"), want.block,
                                    json_get_text(source, "fsType"), json_get(spec, "mountOptions"),
                                    d.can_single_writer, &q.capability, e);
    if (r == 0 && d.can_expand) {
        r = csi_call(d.endpoint, CSI_NODE_EXPAND, &q, CALL_MS, NULL, NULL, e);
    }
    if (r == 0) {
        *ret_here = true;
    }
    return r;
}
