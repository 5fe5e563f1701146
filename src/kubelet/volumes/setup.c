/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/volumes/setup.h"

#include "base/base64.h"
#include "base/mem.h"
#include "kubelet/volumes/csi_mount.h"
#include "kubelet/volumes/device_mount.h"
#include "kubelet/volumes/key_lock.h"
#include "kubelet/volumes/local_dirs.h"
#include "kubelet/volumes/network_mount.h"
#include "kubelet/volumes/subpath.h"
#include "kubelet/volumes/tree.h"
#include "net/loop/process.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIR_MODE 0750
#define EMPTY_DIR_MODE 0777
#define FILES_DIR_MODE 0755
/* More than two versions of the largest volume, each file in whole pages. */
#define FILES_MEMORY (64 << 20)

/* ---- directories ---- */

bool volume_name_is_safe(const char *s)
{
    return *s && !strchr(s, '/') && !streq(s, ".") && !streq(s, "..") && strlen(s) < 254;
}

char *volume_dir(const char *pods_dir, const char *uid, const char *plugin, const char *name)
{
    return xasprintf("%s/%s/volumes/%s/%s", pods_dir, uid, plugin, name);
}

int volume_make_dir(const char *pods_dir, const char *path, int *ret_fd, struct err *e)
{
    int fd = open(pods_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = fd < 0 ? err_sys(e, -errno, "open %s", pods_dir) : 0;
    while (r == 0 && *path) {
        size_t n = strcspn(path, "/");
        CLEANUP_FREE char *name = xstrndup(path, n);
        int next = -1;
        r = mkdirat(fd, name, DIR_MODE) < 0 && errno != EEXIST
                ? err_sys(e, -errno, "make the directory %s", name)
                : tree_open_dir(fd, name, &next, e);
        close(fd);
        fd = next;
        path += n + (path[n] == '/');
    }
    if (r == 0) {
        *ret_fd = fd;
    }
    return r;
}

/* Opens the directory of which the volume's own is a member. */
static int open_parent(const struct volume_job *j, int *ret_fd, struct err *e)
{
    CLEANUP_FREE char *path = xasprintf("%s/volumes/%s", j->uid, j->type->plugin);
    return volume_make_dir(j->pods_dir, path, ret_fd, e);
}

/* Mounts a tmpfs on the directory that 'fd' refers to. */
static int mount_memory(int fd, uint64_t size, mode_t mode, struct err *e)
{
    char at[32], data[96];
    CLEANUP_FREE char *bound =
        size ? xasprintf("size=%llu,", (unsigned long long) size) : xstrdup("");
    snprintf(at, sizeof at, "/proc/self/fd/%d", fd);
    /* What is in memory for secrecy must not reach the disk; older kernels do not know noswap. */
    snprintf(data, sizeof data, "%smode=%04o,noswap", bound, mode);
    if (mount("tmpfs", at, "tmpfs", 0, data) == 0) {
        return 0;
    }
    snprintf(data, sizeof data, "%smode=%04o", bound, mode);
    return mount("tmpfs", at, "tmpfs", 0, data) < 0 ? err_sys(e, -errno, "mount a tmpfs") : 0;
}

/* Makes and opens the volume's own directory, on a tmpfs if 'memory'.  '*ret_new': it was not complete
 * yet, which its mode says. */
static int open_own(const struct volume_job *j, mode_t mode, bool memory, uint64_t size,
                    int *ret_fd, bool *ret_new, struct err *e)
{
    struct stat st;
    int parent, fd = -1;
    int r = open_parent(j, &parent, e);
    if (r < 0) {
        return r;
    }
    if (mkdirat(parent, j->name, 0700) < 0 && errno != EEXIST) {
        r = err_sys(e, -errno, "make the directory %s", j->name);
    }
    r = r < 0 ? r : tree_open_dir(parent, j->name, &fd, e);
    if (r == 0 && memory && !tree_is_mount_point(parent, j->name)) {
        r = mount_memory(fd, size, 0700, e);
        close(fd);
        fd = -1;
        r = r < 0 ? r : tree_open_dir(parent, j->name, &fd, e);
    }
    if (r == 0 && fstat(fd, &st) < 0) {
        r = err_sys(e, -errno, "stat");
    }
    close(parent);
    if (r < 0) {
        if (fd >= 0) {
            close(fd);
        }
        return r;
    }
    *ret_new = (st.st_mode & mode) != mode;
    *ret_fd = fd;
    return 0;
}

static void take_path(struct volume_job *j)
{
    j->path = volume_dir(j->pods_dir, j->uid, j->type->plugin, j->name);
}

/* ---- types ---- */

static int set_up_empty_dir(struct volume_job *j, struct err *e)
{
    const char *medium = json_get_text(j->source, "medium");
    bool memory = streq(medium, "Memory"), is_new;
    int fd;
    if (*medium && !memory) {
        return err_set(e, -EOPNOTSUPP, "emptyDir with the medium %s is not supported", medium);
    }
    int r = open_own(j, EMPTY_DIR_MODE, memory, j->memory_max, &fd, &is_new, e);
    if (r < 0) {
        return r;
    }
    if (is_new && j->owner.has_group) {
        r = tree_set_group(fd, j->owner.group, false, e);
    }
    mode_t mode = EMPTY_DIR_MODE | (j->owner.has_group ? S_ISGID : 0);
    if (r == 0 && is_new && fchmod(fd, mode) < 0) {
        r = err_sys(e, -errno, "chmod");
    }
    close(fd);
    return r;
}

static int set_up_files(struct volume_job *j, struct err *e)
{
    bool is_new, changed;
    int fd;
    int r = open_own(j, FILES_DIR_MODE, j->in_memory, FILES_MEMORY, &fd, &is_new, e);
    if (r < 0) {
        return r;
    }
    if (is_new && j->owner.has_group && fchown(fd, (uid_t) -1, j->owner.group) < 0) {
        r = err_sys(e, -errno, "chown");
    }
    r = r < 0 ? r : atomic_write(fd, &j->files, j->owner, &changed, e);
    mode_t mode = FILES_DIR_MODE | (j->owner.has_group ? S_ISGID : 0);
    if (r == 0 && is_new && fchmod(fd, mode) < 0) {
        r = err_sys(e, -errno, "chmod");
    }
    close(fd);
    return r;
}

static int make_host_file(const char *path, struct err *e)
{
    int fd = open(path, O_RDONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0644);
    if (fd < 0) {
        return err_sys(e, -errno, "create %s", path);
    }
    close(fd);
    return 0;
}

static int set_up_host_path(struct volume_job *j, struct err *e)
{
    static const struct {
        const char *type;
        mode_t format;
        int (*make)(const char *path, struct err *e);
        const char *noun;
    } types[] = {
        {"Directory", S_IFDIR, NULL, "directory"},
        {"DirectoryOrCreate", S_IFDIR, NULL, "directory"},
        {"File", S_IFREG, NULL, "file"},
        {"FileOrCreate", S_IFREG, make_host_file, "file"},
        {"Socket", S_IFSOCK, NULL, "socket file"},
        {"CharDevice", S_IFCHR, NULL, "character device"},
        {"BlockDevice", S_IFBLK, NULL, "block device"},
    };
    const char *path = json_get_text(j->source, "path"), *type = json_get_text(j->source, "type");
    CLEANUP_FREE char *ends = xasprintf("%s/", path);
    struct stat st;
    if (*path != '/' || strstr(ends, "/../")) {
        return err_set(e, -EINVAL, "hostPath %.256s must be absolute and without '..'", path);
    }
    j->path = xstrdup(path);
    if (!*type) {
        return 0;
    }
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        if (!streq(type, types[i].type)) {
            continue;
        }
        int r = stat(path, &st) == 0 ? 0 : -errno;
        if (r == -ENOENT && str_has_suffix(type, "OrCreate")) {
            r = types[i].make ? types[i].make(path, e) : dir_make(path, 0755, e);
            if (r < 0) {
                return r;
            }
            r = stat(path, &st) == 0 ? 0 : -errno;
        }
        if (r < 0 || (st.st_mode & S_IFMT) != types[i].format) {
            return err_set(e, r < 0 ? r : -EINVAL, "hostPath type check failed: %.256s is not a %s",
                           path, types[i].noun);
        }
        return 0;
    }
    return err_set(e, -EINVAL, "%.64s is an invalid type of a hostPath", type);
}

/* Makes the directory of the pod on which the volume is mounted.  '*ret_mounted': it is mounted. */
static int make_target(const struct volume_job *j, int *ret_parent, bool *ret_mounted,
                       struct err *e)
{
    int parent;
    int r = open_parent(j, &parent, e);
    if (r < 0) {
        return r;
    }
    if (mkdirat(parent, j->name, DIR_MODE) < 0 && errno != EEXIST) {
        r = err_sys(e, -errno, "make the directory %s", j->name);
        close(parent);
        return r;
    }
    *ret_mounted = tree_is_mount_point(parent, j->name);
    *ret_parent = parent;
    return 0;
}

/* The name of a volume of the class "local"; NULL: the path is any other of the node. */
static const char *local_name(const struct volume_job *j, const char *path)
{
    size_t n = strlen(j->local_dir);
    bool is_below = strncmp(path, j->local_dir, n) == 0 && path[n] == '/';
    return is_below && local_dir_name_is_valid(path + n + 1) ? path + n + 1 : NULL;
}

/* Opens the directory of a local volume: one of the class "local", whose image may have to be mounted, or
 * any other of the node. */
static int open_local(const struct volume_job *j, const char *path, int *ret_fd, struct err *e)
{
    const char *name = local_name(j, path);
    if (name) {
        return local_dir_open(j->local_dir, name, ret_fd, e);
    }
    int fd = *path == '/' ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd < 0) {
        return err_sys(e, *path == '/' ? -errno : -EINVAL, "open the directory %.256s", path);
    }
    *ret_fd = fd;
    return 0;
}

/* Binds the directory that was opened: its path is not looked up again. */
static int set_up_local(struct volume_job *j, struct err *e)
{
    int fd, parent;
    bool mounted;
    int r = open_local(j, json_get_text(j->source, "path"), &fd, e);
    if (r < 0) {
        return err_prefix(e, "local volume");
    }
    r = j->owner.has_group && !j->readonly
            ? tree_set_group(fd, j->owner.group, j->on_root_mismatch, e)
            : 0;
    r = r < 0 ? r : make_target(j, &parent, &mounted, e);
    if (r == 0) {
        r = mounted ? 0 : subpath_bind(fd, parent, j->name, e);
        close(parent);
    }
    close(fd);
    return r;
}

/* The device that the path of a local volume names. */
static int set_up_local_block(struct volume_job *j, struct err *e)
{
    const char *path = json_get_text(j->source, "path");
    const char *name = local_name(j, path);
    char device[PATH_MAX];
    struct stat st;
    int r = name ? local_device_open(j->local_dir, name, e) : 0;
    if (r < 0) {
        return err_prefix(e, "local volume");
    }
    if (*path != '/' || !realpath(path, device) || stat(device, &st) < 0) {
        return err_sys(e, *path == '/' ? -errno : -EINVAL, "local volume: %.256s", path);
    }
    if (!S_ISBLK(st.st_mode)) {
        return err_set(e, -ENOTBLK, "local volume: %.256s is not a block device", path);
    }
    j->path = xstrdup(device);
    return 0;
}

static int set_up_network(struct volume_job *j, const struct network_mount *m, struct err *e)
{
    CLEANUP_FREE char *at = volume_dir(j->pods_dir, j->uid, j->type->plugin, j->name);
    bool mounted;
    int parent;
    int r = make_target(j, &parent, &mounted, e);
    if (r == 0) {
        close(parent);
        r = mounted ? 0 : network_mount_run(m, at, e);
    }
    return r;
}

static int set_up_nfs(struct volume_job *j, struct err *e)
{
    CLEANUP(network_mount_done) struct network_mount m = {0};
    int r = nfs_mount_make(j->source, j->options, j->readonly, &m, e);
    return r < 0 ? r : set_up_network(j, &m, e);
}

static int set_up_glusterfs(struct volume_job *j, struct err *e)
{
    CLEANUP(network_mount_done) struct network_mount m = {0};
    int r = glusterfs_mount_make(j->source, json_get(j->facts, "endpoints"), j->options,
                                 j->readonly, &m, e);
    return r < 0 ? r : set_up_network(j, &m, e);
}

/* The key of a Secret (owned): its member "key", else its only one; NULL: it has none. */
static char *key_of(const struct json *secret)
{
    const struct json *data = json_get(secret, "data");
    const char *text = json_get_text(data, "key");
    struct strbuf b = STRBUF_INIT_MAX(4096);
    text = *text || json_count(data) != 1 ? text : json_get_string(json_at(data, 0));
    if (!text || !*text || base64_decode(text, strlen(text), &b) < 0) {
        strbuf_done(&b);
        return NULL;
    }
    return strbuf_steal(&b);
}

static int bind_device(struct volume_job *j, int fd, struct err *e)
{
    bool mounted;
    int parent;
    int r = j->owner.has_group && !j->readonly
                ? tree_set_group(fd, j->owner.group, j->on_root_mismatch, e)
                : 0;
    r = r < 0 ? r : make_target(j, &parent, &mounted, e);
    if (r == 0) {
        r = mounted ? 0 : subpath_bind(fd, parent, j->name, e);
        close(parent);
    }
    return r;
}

/* Mounts a block device once for the node, and binds its file system for the pod. */
static int mount_for_pod(struct volume_job *j, const char *root, const struct device_plan *p,
                         const char *key, struct err *e)
{
    struct key_lock *lock;
    int fd;
    int r = device_mount(root, j->type->plugin, p, j->options, key, &fd, &lock, e);
    if (r == 0) {
        r = bind_device(j, fd, e);
        close(fd);
        key_lock_release(lock);
    }
    return r;
}

static int set_up_device(struct volume_job *j, struct err *e)
{
    CLEANUP(device_plan_done) struct device_plan p = {0};
    CLEANUP_FREE char *root = xstrndup(j->pods_dir, strlen(j->pods_dir) - strlen("/pods"));
    CLEANUP_FREE char *key = key_of(json_get(j->facts, "secret"));
    int r = j->type->plan(j->source, key != NULL, &p, e);
    if (r == 0) {
        r = j->block ? device_map(root, j->type->plugin, &p, key, j->uid, j->name, &j->path, e)
                     : mount_for_pod(j, root, &p, key, e);
    }
    if (key) {
        explicit_bzero(key, strlen(key));
    }
    return r;
}

/* Whether the driver has volumes that belong to one pod. */
static bool has_ephemeral(const struct json *driver)
{
    const struct json *mode;
    JSON_FOREACH (mode, json_path(driver, "spec", "volumeLifecycleModes", NULL)) {
        const char *text = json_get_string(mode);
        if (text && streq(text, "Ephemeral")) {
            return true;
        }
    }
    return false;
}

static int set_up_csi(struct volume_job *j, struct err *e)
{
    const struct json *driver = json_get(j->facts, "driver");
    const struct json *spec = json_get(driver, "spec");
    struct csi_mount m = {
        .drivers = j->drivers,
        .pods_dir = j->pods_dir,
        .uid = j->uid,
        .name = j->name,
        .source = j->source,
        .ephemeral = !j->in_pv,
        .readonly = j->readonly,
        .block = j->block,
        .modes = j->modes,
        .options = j->options,
        .publish_context = json_path(j->facts, "attachment", "status", "attachmentMetadata", NULL),
        .stage_secret = json_get(j->facts, "stageSecret"),
        .publish_secret = json_get(j->facts, "publishSecret"),
        .pod_info = json_get_bool(json_get(spec, "podInfoOnMount"), false) ? j->pod_info : NULL,
        .group_policy = json_get_text(spec, "fsGroupPolicy"),
        .has_group = j->owner.has_group,
        .on_root_mismatch = j->on_root_mismatch,
        .group = j->owner.group};
    if (m.ephemeral && !has_ephemeral(driver)) {
        return err_set(e, -EOPNOTSUPP, "volume mode \"Ephemeral\" not supported by driver %.100s",
                       json_get_text(j->source, "driver"));
    }
    int r = csi_mount_up(&m, e);
    if (r == 0) {
        j->path = csi_mount_path(j->pods_dir, j->uid, j->name, j->block);
    }
    return r;
}

#define GIT_REFUSAL                                                                   \
    "gitRepo volumes are refused, because a repository can run commands on the node " \
    "(CVE-2024-10220); clone it in an init container into an emptyDir"

static const struct volume_type types[] = {
    {"emptyDir", "kubernetes.io~empty-dir", .set_up = set_up_empty_dir},
    {"hostPath", "kubernetes.io~host-path", .set_up = set_up_host_path, .is_on_host = true},
    {"configMap", "kubernetes.io~configmap", .set_up = set_up_files, .has_files = true,
     .is_readonly = true},
    {"secret", "kubernetes.io~secret", .set_up = set_up_files, .has_files = true,
     .is_readonly = true},
    {"downwardAPI", "kubernetes.io~downward-api", .set_up = set_up_files, .has_files = true,
     .is_readonly = true},
    {"projected", "kubernetes.io~projected", .set_up = set_up_files, .has_files = true,
     .is_readonly = true},
    {"nfs", "kubernetes.io~nfs", .set_up = set_up_nfs},
    {"glusterfs", "kubernetes.io~glusterfs", .set_up = set_up_glusterfs, .need = glusterfs_need},
    {"iscsi", "kubernetes.io~iscsi", .set_up = set_up_device, .set_up_block = set_up_device,
     .plan = iscsi_plan, .need = secret_need},
    {"fc", "kubernetes.io~fc", .set_up = set_up_device, .set_up_block = set_up_device,
     .plan = fc_plan},
    {"rbd", "kubernetes.io~rbd", .set_up = set_up_device, .set_up_block = set_up_device,
     .plan = rbd_plan, .need = secret_need},
    {"csi", CSI_PLUGIN_DIR, .set_up = set_up_csi, .set_up_block = set_up_csi, .need = csi_need},
    {"local", "kubernetes.io~local-volume", .set_up = set_up_local,
     .set_up_block = set_up_local_block, .only_in_pv = true},
    {"gitRepo", "", .refusal = GIT_REFUSAL},
};

int volume_type_of(const struct json *volume, bool in_pv, const struct volume_type **ret,
                   struct err *e)
{
    const char *member = NULL;
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        if (!json_is(json_get(volume, types[i].member), JSON_OBJECT) ||
            (types[i].only_in_pv && !in_pv)) {
            continue;
        }
        if (types[i].refusal) {
            return err_set(e, -EOPNOTSUPP, "%s", types[i].refusal);
        }
        *ret = &types[i];
        return 0;
    }
    for (size_t i = 0; i < json_count(volume); i++) {
        const char *key = json_key_at(volume, i);
        bool is_source = json_is(json_at(volume, i), JSON_OBJECT) && !streq(key, "capacity") &&
                         !streq(key, "claimRef") && !streq(key, "nodeAffinity");
        member = is_source && !member ? key : member;
    }
    return err_set(e, -EOPNOTSUPP, "volumes of the type %s are not supported on this node",
                   member ? member : "(none)");
}

/* ---- jobs ---- */

void volume_job_run(void *job)
{
    struct volume_job *j = job;
    if (!j->block) {
        j->error = j->type->set_up(j, &j->err);
    } else if (j->type->set_up_block) {
        j->error = j->type->set_up_block(j, &j->err);
    } else {
        j->error =
            err_set(&j->err, -EOPNOTSUPP, "volumes of the type %s cannot have the volumeMode Block",
                    j->type->member);
    }
    if (j->error == 0 && !j->path) {
        take_path(j);
    }
}

void volume_job_free(struct volume_job *j)
{
    if (j) {
        free(j->pods_dir);
        free(j->local_dir);
        free(j->uid);
        free(j->name);
        json_free(j->source);
        json_free(j->options);
        json_free(j->modes);
        json_free(j->facts);
        json_free(j->pod_info);
        csi_drivers_unref(j->drivers);
        pod_files_done(&j->files);
        free(j->path);
        free(j);
    }
}
