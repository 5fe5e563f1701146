/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/volumes/local_dirs.h"

#include "base/mem.h"
#include "base/str.h"
#include "kubelet/volumes/tree.h"
#include "net/loop/process.h"
#include "storage/names.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define NAME_MAX_SIZE 64
#define FOLDER_MODE 0700
/* Containers of any user write to their volume; the folder above keeps others out. */
#define VOLUME_MODE 0777
#define TOOL_MS 60000
#define SECTOR 4096
/* An ext4 file system needs some blocks for itself. */
#define IMAGE_MIN (INT64_C(4) << 20)

bool local_dir_name_is_valid(const char *name)
{
    size_t n = strlen(name);
    return str_has_prefix(name, STORAGE_VOLUME_PREFIX) && n > strlen(STORAGE_VOLUME_PREFIX) &&
           n <= NAME_MAX_SIZE && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == n;
}

static char *image_of(const char *name)
{
    return xasprintf("%s.img", name);
}

/* Opens the folder, which is made if it is missing. */
static int open_folder(const char *folder, int *ret_fd, struct err *e)
{
    int r = dir_make(folder, FOLDER_MODE, e);
    int fd = r < 0 ? -1 : open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (r == 0 && (fd < 0 || fchmod(fd, FOLDER_MODE) < 0)) {
        r = err_sys(e, -errno, "open the folder %s", folder);
    }
    if (r < 0) {
        fd_close(fd);
        return r;
    }
    *ret_fd = fd;
    return 0;
}

static int open_volume(const char *folder, const char *name, int *ret_fd, struct err *e)
{
    return local_dir_name_is_valid(name)
               ? open_folder(folder, ret_fd, e)
               : err_set(e, -EINVAL, "%.80s is not the name of a local volume", name);
}

/* 'out' NULL: what the tool prints is dropped. */
static int run_tool(const char *const *argv, struct strbuf *out, struct err *e)
{
    CLEANUP_STRBUF struct strbuf output = STRBUF_INIT_MAX(1 << 20);
    struct process_spec spec = PROCESS_SPEC_INIT;
    int status = 0;
    spec.argv = argv;
    int r = process_run(&spec, TOOL_MS, out, &output, &status, e);
    if (r == 0 && status != 0) {
        const char *text = strbuf_cstr(&output);
        r = err_set(e, -EIO, "%s failed with %d: %.*s", argv[0], status, (int) strcspn(text, "\n"),
                    text);
    }
    return r;
}

/* In whole sectors of a loop device of any kind. */
static int64_t image_size(int64_t bytes)
{
    int64_t size = MAX(bytes, IMAGE_MIN);
    return size > INT64_MAX - SECTOR ? size : (size + SECTOR - 1) / SECTOR * SECTOR;
}

/* Makes the image under another name first: an image with the right name is complete. */
static int make_image(const char *folder, int folder_fd, const char *name, int64_t bytes,
                      bool has_fs, struct err *e)
{
    CLEANUP_FREE char *image = image_of(name);
    CLEANUP_FREE char *draft = xasprintf("%s.new", image);
    CLEANUP_FREE char *draft_path = xasprintf("%s/%s", folder, draft);
    struct stat st;
    if (fstatat(folder_fd, image, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        return 0;
    }
    int fd = openat(folder_fd, draft, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, image_size(bytes)) < 0) {
        int r = err_sys(e, -errno, "create the image %s", draft);
        fd_close(fd);
        return r;
    }
    const char *argv[] = {"mkfs.ext4",      "-q",       "-F", "-m", "0", "-E",
                          "root_owner=0:0", draft_path, NULL};
    int r = has_fs ? run_tool(argv, NULL, e) : 0;
    if (r == 0 && (fsync(fd) < 0 || renameat(folder_fd, draft, folder_fd, image) < 0)) {
        r = err_sys(e, -errno, "store the image %s", image);
    }
    close(fd);
    return r;
}

/* Mounts the volume's image on its directory, unless it has none or it is mounted. */
static int mount_image(const char *folder, int folder_fd, const char *name, struct err *e)
{
    CLEANUP_FREE char *image = image_of(name);
    CLEANUP_FREE char *image_path = xasprintf("%s/%s", folder, image);
    CLEANUP_FREE char *at = xasprintf("%s/%s", folder, name);
    struct stat st;
    int fd;
    if (fstatat(folder_fd, image, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        return errno == ENOENT ? 0 : err_sys(e, -errno, "stat the image %s", image);
    }
    if (tree_is_mount_point(folder_fd, name)) {
        return 0;
    }
    const char *argv[] = {"mount", "-t", "ext4", "-o", "loop,nodev", "--", image_path, at, NULL};
    int r = run_tool(argv, NULL, e);
    r = r < 0 ? r : tree_open_dir(folder_fd, name, &fd, e);
    if (r == 0) {
        r = fchmod(fd, VOLUME_MODE) < 0 ? err_sys(e, -errno, "chmod %s", name) : 0;
        close(fd);
    }
    return r;
}

int local_dir_make(const char *folder, const char *name, int64_t image_bytes, struct err *e)
{
    int folder_fd = -1, fd = -1;
    int r = open_volume(folder, name, &folder_fd, e);
    if (r < 0) {
        return r;
    }
    if (image_bytes > 0) {
        r = make_image(folder, folder_fd, name, image_bytes, true, e);
    }
    if (r == 0 && mkdirat(folder_fd, name, 0700) < 0 && errno != EEXIST) {
        r = err_sys(e, -errno, "make the directory %s", name);
    }
    r = r < 0 ? r : tree_open_dir(folder_fd, name, &fd, e);
    if (r == 0) {
        r = fchmod(fd, VOLUME_MODE) < 0 ? err_sys(e, -errno, "chmod %s", name) : 0;
        close(fd);
    }
    r = r < 0 ? r : mount_image(folder, folder_fd, name, e);
    close(folder_fd);
    return r;
}

int local_dir_open(const char *folder, const char *name, int *ret_fd, struct err *e)
{
    int folder_fd;
    int r = open_volume(folder, name, &folder_fd, e);
    if (r < 0) {
        return r;
    }
    r = mount_image(folder, folder_fd, name, e);
    r = r < 0 ? r : tree_open_dir(folder_fd, name, ret_fd, e);
    close(folder_fd);
    return r;
}

/* ---- devices ---- */

/* Calls 'fn' for each loop device of the image. */
static int each_loop(const char *image_path, int (*fn)(const char *device, struct err *e),
                     struct err *e)
{
    const char *argv[] = {"losetup",  "--associated", image_path, "--noheadings",
                          "--output", "NAME",         NULL};
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT_MAX(1 << 20);
    int r = run_tool(argv, &out, e);
    const char *line = strbuf_cstr(&out);
    while (r == 0 && *line) {
        size_t n = strcspn(line, " \n");
        CLEANUP_FREE char *device = xstrndup(line, n);
        r = n ? fn(device, e) : 0;
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return r;
}

static int detach_loop(const char *device, struct err *e)
{
    const char *argv[] = {"losetup", "--detach", device, NULL};
    return run_tool(argv, NULL, e);
}

static int grow_loop(const char *device, struct err *e)
{
    const char *argv[] = {"losetup", "--set-capacity", device, NULL};
    return run_tool(argv, NULL, e);
}

static int grow_file_system(const char *device, struct err *e)
{
    const char *argv[] = {"resize2fs", device, NULL};
    int r = grow_loop(device, e);
    return r < 0 ? r : run_tool(argv, NULL, e);
}

/* Whether the volume is of the mode Block: its name is a file, not a directory. */
static bool is_device(int folder_fd, const char *name)
{
    struct stat st;
    return fstatat(folder_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode);
}

static int bind_loop(const char *folder, int folder_fd, const char *name, struct err *e)
{
    CLEANUP_FREE char *image_path = xasprintf("%s/%s.img", folder, name);
    CLEANUP_FREE char *at = xasprintf("%s/%s", folder, name);
    /* With --nooverlap a device that the image has already is taken again. */
    const char *argv[] = {"losetup", "--find", "--nooverlap", "--show", image_path, NULL};
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT_MAX(4096);
    if (tree_is_mount_point(folder_fd, name)) {
        return 0;
    }
    int r = run_tool(argv, &out, e);
    if (r < 0) {
        return r;
    }
    CLEANUP_FREE char *device = xstrndup(strbuf_cstr(&out), strcspn(strbuf_cstr(&out), "\n"));
    CLEANUP(fd_close)
    int fd = openat(folder_fd, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 || mount(device, at, NULL, MS_BIND, NULL) < 0
               ? err_sys(e, -errno, "bind %s at %s", device, at)
               : 0;
}

int local_device_make(const char *folder, const char *name, int64_t bytes, struct err *e)
{
    int folder_fd;
    int r = open_volume(folder, name, &folder_fd, e);
    if (r < 0) {
        return r;
    }
    r = make_image(folder, folder_fd, name, bytes, false, e);
    r = r < 0 ? r : bind_loop(folder, folder_fd, name, e);
    close(folder_fd);
    return r;
}

int local_device_open(const char *folder, const char *name, struct err *e)
{
    int folder_fd;
    int r = open_volume(folder, name, &folder_fd, e);
    if (r < 0) {
        return r;
    }
    r = is_device(folder_fd, name) ? bind_loop(folder, folder_fd, name, e)
                                   : err_set(e, -ENOTBLK, "the volume %s is not a device", name);
    close(folder_fd);
    return r;
}

int local_dir_grow(const char *folder, const char *name, int64_t bytes, struct err *e)
{
    CLEANUP_FREE char *image = image_of(name);
    CLEANUP_FREE char *image_path = xasprintf("%s/%s", folder, image);
    struct stat st;
    int folder_fd;
    int r = open_volume(folder, name, &folder_fd, e);
    if (r < 0) {
        return r;
    }
    CLEANUP(fd_close) int fd = openat(folder_fd, image, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        r = errno == ENOENT ? 0 : err_sys(e, -errno, "open the image %s", image);
    } else if (fstat(fd, &st) < 0 ||
               (st.st_size < image_size(bytes) && ftruncate(fd, image_size(bytes)) < 0)) {
        r = err_sys(e, -errno, "grow the image %s", image);
    } else if (is_device(folder_fd, name)) {
        r = each_loop(image_path, grow_loop, e);
    } else {
        r = mount_image(folder, folder_fd, name, e);
        r = r < 0 ? r : each_loop(image_path, grow_file_system, e);
    }
    close(folder_fd);
    return r;
}

/* ---- removal ---- */

/* Unmounts the volume's image, also one that was mounted several times. */
static int unmount_image(const char *folder, int folder_fd, const char *name, struct err *e)
{
    CLEANUP_FREE char *at = xasprintf("%s/%s", folder, name);
    CLEANUP_FREE char *image = image_of(name);
    struct stat st;
    bool has_image = fstatat(folder_fd, image, &st, AT_SYMLINK_NOFOLLOW) == 0;
    while (has_image && tree_is_mount_point(folder_fd, name)) {
        if (umount2(at, UMOUNT_NOFOLLOW | MNT_DETACH) < 0) {
            return err_sys(e, -errno, "unmount %s", at);
        }
    }
    return 0;
}

int local_dir_remove(const char *folder, const char *name, struct err *e)
{
    CLEANUP_FREE char *image = image_of(name);
    CLEANUP_FREE char *image_path = xasprintf("%s/%s", folder, image);
    CLEANUP_FREE char *draft = xasprintf("%s.new", image);
    int folder_fd;
    int r = open_volume(folder, name, &folder_fd, e);
    if (r < 0) {
        return r;
    }
    r = unmount_image(folder, folder_fd, name, e);
    if (r == 0 && is_device(folder_fd, name)) {
        r = each_loop(image_path, detach_loop, e);
    }
    r = r < 0 ? r : tree_remove(folder_fd, name, e);
    /* The image goes last: it says that the directory is a mount point. */
    r = r < 0 ? r : tree_remove(folder_fd, draft, e);
    r = r < 0 ? r : tree_remove(folder_fd, image, e);
    close(folder_fd);
    return r;
}

int local_dir_remove_empty(const char *folder, const char *name, struct err *e)
{
    CLEANUP_FREE char *image = image_of(name);
    struct stat st;
    int folder_fd;
    int r = open_volume(folder, name, &folder_fd, e);
    if (r < 0) {
        return r;
    }
    bool has_image = fstatat(folder_fd, image, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (!has_image && unlinkat(folder_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT &&
        errno != ENOTEMPTY && errno != EBUSY) {
        r = err_sys(e, -errno, "remove the directory %s", name);
    }
    close(folder_fd);
    return r;
}

int local_dir_measure(const char *folder, const char *name, int64_t *ret_bytes, struct err *e)
{
    CLEANUP_FREE char *image = image_of(name);
    struct stat st;
    int64_t inodes;
    int folder_fd, fd;
    int r = open_volume(folder, name, &folder_fd, e);
    if (r < 0) {
        return r;
    }
    if (fstatat(folder_fd, image, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        *ret_bytes = (int64_t) st.st_blocks * 512;
        close(folder_fd);
        return 0;
    }
    r = tree_open_dir(folder_fd, name, &fd, e);
    close(folder_fd);
    if (r == 0) {
        r = tree_measure(fd, ret_bytes, &inodes, e);
        close(fd);
    }
    return r;
}

int local_dir_free_bytes(const char *folder, int64_t *ret, struct err *e)
{
    struct statvfs fs;
    int folder_fd;
    int r = open_folder(folder, &folder_fd, e);
    if (r < 0) {
        return r;
    }
    if (fstatvfs(folder_fd, &fs) < 0) {
        r = err_sys(e, -errno, "statvfs %s", folder);
    } else {
        *ret = (int64_t) MIN(fs.f_bavail * fs.f_frsize, (uint64_t) INT64_MAX);
    }
    close(folder_fd);
    return r;
}
