/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/volumes/device_mount.h"

#include "base/mem.h"
#include "kubelet/volumes/key_lock.h"
#include "kubelet/volumes/mountinfo.h"
#include "kubelet/volumes/network_mount.h"
#include "kubelet/volumes/setup.h"
#include "kubelet/volumes/tree.h"
#include "net/loop/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TOOL_MS 60000
#define MKFS_MS 600000
#define APPEAR_TRIES 300
#define APPEAR_NS 100000000L
#define PLAN_MAX 65536
#define WORDS_MAX 32
#define DEVICE_FILE "device"
#define LINKS_DIR "volumeDevices"
/* Exit status of blkid(8) when a device has no known content, and of iscsiadm(8) for a session that is there. */
#define BLKID_NOTHING 2
#define ISCSI_SESSION_EXISTS 15

/* The plug-ins whose devices may be released. */
static const char *const plugins[] = {"kubernetes.io~iscsi", "kubernetes.io~fc",
                                      "kubernetes.io~rbd"};

static char *device_dir(const char *root_dir, const char *plugin, const char *id)
{
    return xasprintf("%s/plugins/%s/%s", root_dir, plugin, id);
}

static char *lock_name(const char *plugin, const char *id)
{
    return xasprintf("device/%s/%s", plugin, id);
}

/* ---- commands ---- */

static int run(const char *const *argv, int key_fd, uint64_t timeout_ms, struct strbuf *out,
               int *ret_status, struct err *e)
{
    CLEANUP_STRBUF struct strbuf errout = STRBUF_INIT_MAX(1 << 20);
    struct process_spec spec = PROCESS_SPEC_INIT;
    int status = 0;
    spec.argv = argv;
    spec.pass_fds = &key_fd;
    spec.n_pass_fds = key_fd >= 0;
    int r = process_run(&spec, timeout_ms, out, &errout, &status, e);
    if (r == 0 && status != 0 && !ret_status) {
        const char *text = strbuf_cstr(&errout);
        r = err_set(e, -EIO, "%s %s failed with %d: %.*s", argv[0], argv[1], status,
                    (int) strcspn(text, "\n"), text);
    }
    if (r == 0 && ret_status) {
        *ret_status = status;
    }
    return r;
}

/* Runs the command lines in order; '*out' gets what the last one printed. */
static int run_all(const struct json *list, int key_fd, struct strbuf *out, struct err *e)
{
    const struct json *line, *word;
    int r = 0;
    JSON_FOREACH (line, list) {
        const char *argv[WORDS_MAX + 1] = {NULL};
        size_t n = 0;
        JSON_FOREACH (word, line) {
            if (n < WORDS_MAX && json_get_string(word)) {
                argv[n++] = json_get_string(word);
            }
        }
        if (n < 2) {
            return err_set(e, -EINVAL, "a command line of a device is not valid");
        }
        int status = 0;
        strbuf_reset(out);
        bool is_iscsi = streq(argv[0], "iscsiadm");
        r = run(argv, key_fd, TOOL_MS, out, is_iscsi ? &status : NULL, e);
        if (r == 0 && status != 0 && status != ISCSI_SESSION_EXISTS) {
            r = err_set(e, -EIO, "iscsiadm failed with %d", status);
        }
        if (r < 0) {
            return r;
        }
    }
    return r;
}

/* ---- the device ---- */

/* The first path that the pattern matches and that is a block device (owned); NULL: none. */
static char *find_device(const char *pattern)
{
    glob_t found;
    char *path = NULL;
    struct stat st;
    if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0) {
        return NULL;
    }
    for (size_t i = 0; !path && i < found.gl_pathc; i++) {
        if (stat(found.gl_pathv[i], &st) == 0 && S_ISBLK(st.st_mode)) {
            path = xstrdup(found.gl_pathv[i]);
        }
    }
    globfree(&found);
    return path;
}

/* Asks each SCSI host to look for new devices. */
static void rescan(void)
{
    glob_t hosts;
    if (glob("/sys/class/scsi_host/host*/scan", 0, NULL, &hosts) != 0) {
        return;
    }
    for (size_t i = 0; i < hosts.gl_pathc; i++) {
        CLEANUP(fd_close) int fd = open(hosts.gl_pathv[i], O_WRONLY | O_CLOEXEC);
        if (fd >= 0 && write(fd, "- - -", 5) < 0) {
            continue; /* A host that cannot look has no new device. */
        }
    }
    globfree(&hosts);
}

/* A descriptor with the key, to be read from its start; -errno. */
static int key_file(const char *key)
{
    int fd = memfd_create("key", MFD_CLOEXEC);
    size_t n = strlen(key);
    if (fd >= 0 && (write(fd, key, n) != (ssize_t) n || lseek(fd, 0, SEEK_SET) < 0)) {
        fd_close(fd);
        return -EIO;
    }
    return fd < 0 ? -errno : fd;
}

static int attach(const struct device_plan *p, const char *key, char **ret_path, struct err *e)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT_MAX(1 << 20);
    CLEANUP(fd_close) int key_fd = p->takes_key && key ? key_file(key) : -1;
    char *path = find_device(p->path);
    if (path) {
        *ret_path = path;
        return 0;
    }
    int r = run_all(p->attach, key_fd, &out, e);
    if (r < 0) {
        return r;
    }
    if (p->prints_path) {
        CLEANUP_FREE char *printed = xstrndup(strbuf_cstr(&out), strcspn(strbuf_cstr(&out), "\n"));
        path = str_has_prefix(printed, "/dev/") ? find_device(printed) : NULL;
    }
    if (p->rescans) {
        rescan();
    }
    for (int i = 0; !path && i < APPEAR_TRIES; i++) {
        path = find_device(p->path);
        if (!path) {
            nanosleep(&(struct timespec){.tv_nsec = APPEAR_NS}, NULL);
        }
    }
    if (!path) {
        return err_set(e, -ETIMEDOUT, "the device %s did not appear", p->path);
    }
    *ret_path = path;
    return 0;
}

/* Makes a file system on a device that has no content at all. */
static int format(const struct device_plan *p, const char *device, struct err *e)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT_MAX(65536);
    CLEANUP_FREE char *mkfs = xasprintf("mkfs.%s", p->fs_type);
    const char *look[] = {"blkid", "-p", device, NULL};
    const char *make_ext[] = {mkfs, "-F", "-q", "-m0", device, NULL};
    const char *make_other[] = {mkfs, device, NULL};
    int status = 0;
    int r = run(look, -1, TOOL_MS, &out, &status, e);
    if (r < 0 || status == 0) {
        return r;
    }
    if (status != BLKID_NOTHING) {
        return err_set(e, -EIO, "blkid %s failed with %d", device, status);
    }
    if (p->readonly) {
        return err_set(e, -EINVAL, "the device %s has no file system, and is read-only", device);
    }
    return run(str_has_prefix(p->fs_type, "ext") ? make_ext : make_other, -1, MKFS_MS, NULL, NULL,
               e);
}

/* Before the device is there: its release needs the plan. */
static int store_plan(const char *dir, const struct device_plan *p, struct err *e)
{
    CLEANUP_FREE char *path = xasprintf("%s/plan.json", dir);
    CLEANUP_FREE char *text = json_to_text(p->detach);
    return file_write_unsynced(path, text, strlen(text), 0600, e);
}

static int mount_global(const char *dir, const struct device_plan *p, const struct json *options,
                        const char *key, struct err *e)
{
    CLEANUP_FREE char *device = NULL, *joined = NULL;
    CLEANUP_FREE char *at = xasprintf("%s/mount", dir);
    int r = mount_options_join(p->readonly, options, &joined, e);
    r = r < 0 ? r : dir_make(at, 0750, e);
    r = r < 0 ? r : store_plan(dir, p, e);
    r = r < 0 ? r : attach(p, key, &device, e);
    r = r < 0 ? r : format(p, device, e);
    if (r == 0) {
        const char *argv[] = {"mount", "-t", p->fs_type, "-o", joined, "--", device, at, NULL};
        r = run(argv, -1, TOOL_MS, NULL, NULL, e);
    }
    return r;
}

int device_mount(const char *root_dir, const char *plugin, const struct device_plan *p,
                 const struct json *options, const char *key, int *ret_fd,
                 struct key_lock **ret_lock, struct err *e)
{
    CLEANUP_FREE char *dir = device_dir(root_dir, plugin, p->id);
    CLEANUP_FREE char *at = xasprintf("%s/mount", dir);
    CLEANUP_FREE char *name = lock_name(plugin, p->id);
    struct key_lock *lock = key_lock_take(name);
    int r = tree_is_mount_point(AT_FDCWD, at) ? 0 : mount_global(dir, p, options, key, e);
    int fd = r < 0 ? -1 : open(at, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (r == 0 && fd < 0) {
        r = err_sys(e, -errno, "open %s", at);
    }
    if (r < 0) {
        key_lock_release(lock);
        return r;
    }
    *ret_fd = fd;
    *ret_lock = lock;
    return 0;
}

/* ---- without a file system ---- */

/* The bind of the device is there as long as the device: no reboot leaves it to another device. */
static int bind_global(const char *dir, const struct device_plan *p, const char *key, struct err *e)
{
    CLEANUP_FREE char *device = NULL, *at = xasprintf("%s/" DEVICE_FILE, dir);
    int r = dir_make(dir, 0750, e);
    r = r < 0 ? r : store_plan(dir, p, e);
    r = r < 0 ? r : attach(p, key, &device, e);
    if (r < 0) {
        return r;
    }
    CLEANUP(fd_close) int fd = open(at, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || mount(device, at, NULL, MS_BIND, NULL) < 0) {
        r = err_sys(e, -errno, "bind %s", device);
    }
    return r;
}

/* The pod's link to the device's directory, which keeps the device. */
static int link_pod(const char *dir, const char *pods_dir, const char *uid, const char *plugin,
                    const char *name, struct err *e)
{
    CLEANUP_FREE char *below = xasprintf("%s/" LINKS_DIR "/%s", uid, plugin);
    int fd;
    int r = volume_make_dir(pods_dir, below, &fd, e);
    if (r < 0) {
        return r;
    }
    if (symlinkat(dir, fd, name) < 0 && errno != EEXIST) {
        r = err_sys(e, -errno, "make the link %s", name);
    }
    close(fd);
    return r;
}

int device_map(const char *root_dir, const char *plugin, const struct device_plan *p,
               const char *key, const char *uid, const char *name, char **ret_path, struct err *e)
{
    CLEANUP_FREE char *dir = device_dir(root_dir, plugin, p->id);
    CLEANUP_FREE char *at = xasprintf("%s/" DEVICE_FILE, dir);
    CLEANUP_FREE char *pods_dir = xasprintf("%s/pods", root_dir);
    CLEANUP_FREE char *lock_of = lock_name(plugin, p->id);
    struct key_lock *lock = key_lock_take(lock_of);
    int r = link_pod(dir, pods_dir, uid, plugin, name, e);
    if (r == 0 && !tree_is_mount_point(AT_FDCWD, at)) {
        r = bind_global(dir, p, key, e);
    }
    key_lock_release(lock);
    if (r == 0) {
        *ret_path = TAKE(at);
    }
    return r;
}

/* Whether a pod has a link to the device's directory. */
static bool is_linked(const char *dir, const char *pods_dir, const char *plugin)
{
    DIR *pods = opendir(pods_dir);
    struct dirent *pod, *d;
    bool found = !pods && errno != ENOENT; /* What cannot be read keeps the device. */
    while (pods && !found && (pod = readdir(pods))) {
        CLEANUP_FREE char *top = xasprintf("%s/%s/" LINKS_DIR "/%s", pods_dir, pod->d_name, plugin);
        DIR *links = volume_name_is_safe(pod->d_name) ? opendir(top) : NULL;
        while (links && !found && (d = readdir(links))) {
            char to[PATH_MAX];
            ssize_t n = readlinkat(dirfd(links), d->d_name, to, sizeof to - 1);
            found = n > 0 && (size_t) n == strlen(dir) && memcmp(to, dir, (size_t) n) == 0;
        }
        if (links) {
            closedir(links);
        }
    }
    if (pods) {
        closedir(pods);
    }
    return found;
}

/* ---- release ---- */

/* Whether a pod has the file system that is mounted at 'at'. */
static int is_used(const char *at, const char *pods_dir, bool *ret_used, struct err *e)
{
    CLEANUP(mount_table_done) struct mount_table t = {0};
    const char *device = NULL;
    int r = mount_table_read(&t, e);
    if (r < 0) {
        return r;
    }
    *ret_used = false;
    for (size_t i = 0; i < t.n; i++) {
        device = streq(t.v[i].path, at) ? t.v[i].device : device;
    }
    for (size_t i = 0; device && i < t.n; i++) {
        *ret_used |= mount_path_is_below(t.v[i].path, pods_dir) && streq(t.v[i].device, device);
    }
    return 0;
}

static int release(const char *dir, const char *pods_dir, const char *plugin, struct err *e)
{
    CLEANUP_FREE char *at = xasprintf("%s/mount", dir);
    CLEANUP_FREE char *bound = xasprintf("%s/" DEVICE_FILE, dir);
    CLEANUP_FREE char *plan = xasprintf("%s/plan.json", dir);
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT, out = STRBUF_INIT_MAX(1 << 20);
    CLEANUP(json_free) struct json *detach = NULL;
    bool used;
    int r = is_used(at, pods_dir, &used, e);
    if (r < 0 || used || is_linked(dir, pods_dir, plugin)) {
        return r;
    }
    r = mount_remove_below(dir, e);
    if (r == 0 && file_read(plan, PLAN_MAX, &text, NULL) == 0) {
        r = json_parse(strbuf_cstr(&text), text.size, &detach, e);
        r = r < 0 ? r : run_all(detach, -1, &out, e);
    }
    if (r == 0 && ((rmdir(at) < 0 && errno != ENOENT) || (unlink(bound) < 0 && errno != ENOENT) ||
                   (unlink(plan) < 0 && errno != ENOENT) || (rmdir(dir) < 0 && errno != ENOENT))) {
        r = err_sys(e, -errno, "remove %s", dir);
    }
    return r;
}

int device_release_unused(const char *root_dir, const char *pods_dir, struct err *e)
{
    int result = 0;
    for (size_t i = 0; i < ARRAY_SIZE(plugins); i++) {
        CLEANUP_FREE char *top = xasprintf("%s/plugins/%s", root_dir, plugins[i]);
        DIR *dir = opendir(top);
        struct dirent *d;
        while (dir && (d = readdir(dir))) {
            if (*d->d_name == '.') {
                continue;
            }
            CLEANUP_FREE char *path = xasprintf("%s/%s", top, d->d_name);
            CLEANUP_FREE char *name = lock_name(plugins[i], d->d_name);
            struct err one = {0};
            struct key_lock *lock = key_lock_take(name);
            int r = release(path, pods_dir, plugins[i], &one);
            key_lock_release(lock);
            if (r < 0 && result == 0) {
                result = err_set(e, r, "release a device of %s: %s", plugins[i], one.text);
            }
        }
        if (dir) {
            closedir(dir);
        }
    }
    return result;
}
