/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/volumes/subpath.h"

#include "base/mem.h"
#include "base/str.h"
#include "kubelet/volumes/tree.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A resolution that races with renames is tried again at most so often. */
#define TRIES 64

int subpath_check(const char *path, struct err *e)
{
    if (!*path || *path == '/') {
        return err_set(e, -EINVAL, "subPath %.256s must be a relative path", path);
    }
    for (const char *s = path; *s;) {
        size_t n = strcspn(s, "/");
        if (n == 2 && s[0] == '.' && s[1] == '.') {
            return err_set(e, -EINVAL, "subPath %.256s must not contain '..'", path);
        }
        s += n + (s[n] == '/');
    }
    return 0;
}

/* Resolves the first 'size' bytes of 'path' within the root. */
static int resolve(int root_fd, const char *path, size_t size)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    CLEANUP_FREE char *part = xstrndup(path, size);
    long fd = -1;
    for (int i = 0; i < TRIES; i++) {
        fd = syscall(SYS_openat2, root_fd, part, &how, sizeof how);
        if (fd >= 0 || errno != EAGAIN) {
            break;
        }
    }
    return fd < 0 ? -errno : (int) fd;
}

/* Opens the path when all of it is there; else makes its first missing directory. */
static int step(int root_fd, const char *path, mode_t mode, bool *ret_made)
{
    int parent = -1, fd = resolve(root_fd, path, strlen(path));
    *ret_made = false;
    if (fd != -ENOENT) {
        return fd;
    }
    for (const char *s = path; *s;) {
        size_t n = strcspn(s, "/");
        fd = resolve(root_fd, path, (size_t) (s - path) + n);
        if (fd == -ENOENT) {
            CLEANUP_FREE char *name = xstrndup(s, n);
            int base = parent >= 0 ? parent : root_fd;
            *ret_made = mkdirat(base, name, 0700) == 0;
            fd = *ret_made ? -ENOENT : -errno;
            int made = -1;
            if (*ret_made && tree_open_dir(base, name, &made, NULL) == 0) {
                /* The mode of mkdirat is subject to the umask. */
                fd = fchmod(made, mode) < 0 ? -errno : -ENOENT;
                close(made);
            }
        }
        if (parent >= 0) {
            close(parent);
        }
        if (fd < 0) {
            return fd;
        }
        parent = fd;
        s += n + (s[n] == '/');
    }
    /* All of it appeared meanwhile. */
    return parent;
}

static int check_type(int fd, const char *path, struct err *e)
{
    struct stat st;
    if (fstat(fd, &st) < 0) {
        return err_sys(e, -errno, "stat %s", path);
    }
    if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode) && !S_ISSOCK(st.st_mode)) {
        return err_set(e, -EINVAL, "subPath %s is neither a directory, nor a file, nor a socket",
                       path);
    }
    return 0;
}

int subpath_open(int root_fd, const char *path, bool make, int *ret_fd, struct err *e)
{
    struct stat root;
    bool made = true;
    int fd = -ENOENT, r = subpath_check(path, e);
    if (r < 0) {
        return r;
    }
    if (fstat(root_fd, &root) < 0) {
        return err_sys(e, -errno, "stat the volume");
    }
    /* Each turn makes one directory; a name that exists and cannot be resolved is a link to
     * nothing, or races. */
    size_t turns = strlen(path) + TRIES;
    for (size_t failures = 0; turns > 0 && failures < TRIES; turns--) {
        fd = make ? step(root_fd, path, root.st_mode & 07777, &made)
                  : resolve(root_fd, path, strlen(path));
        if (!make || (fd != -ENOENT && fd != -EEXIST)) {
            break;
        }
        failures += !made;
    }
    if (fd < 0) {
        return fd == -EXDEV ? err_set(e, fd, "subPath %s leads out of the volume", path)
               : fd == -EEXIST
                   ? err_set(e, fd, "subPath %s contains a link that points to nothing", path)
                   : err_sys(e, fd, "open the subPath %s", path);
    }
    r = check_type(fd, path, e);
    if (r < 0) {
        close(fd);
        return r;
    }
    *ret_fd = fd;
    return 0;
}

/* Makes the place of the mount: a directory for a directory, else an empty file. */
static int make_target(int fd, int dir_fd, const char *target, int *ret_fd, struct err *e)
{
    struct stat st;
    if (fstat(fd, &st) < 0) {
        return err_sys(e, -errno, "stat");
    }
    int r = tree_remove(dir_fd, target, e);
    if (r < 0) {
        return r;
    }
    int at;
    if (S_ISDIR(st.st_mode)) {
        at = mkdirat(dir_fd, target, 0750);
    } else {
        at = openat(dir_fd, target, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0640);
        if (at >= 0) {
            close(at);
        }
    }
    *ret_fd = at < 0 ? -1 : openat(dir_fd, target, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    return *ret_fd < 0 ? err_sys(e, -errno, "make the mount point %s", target) : 0;
}

int subpath_bind(int fd, int dir_fd, const char *target, struct err *e)
{
    int at = -1;
    CLEANUP_FREE char *path = xasprintf("/proc/self/fd/%d/%s", dir_fd, target);
    while (tree_is_mount_point(dir_fd, target)) {
        if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) < 0) {
            return err_sys(e, -errno, "detach the former mount %s", target);
        }
    }
    int r = make_target(fd, dir_fd, target, &at, e);
    if (r < 0) {
        return r;
    }
    int tree =
        (int) syscall(SYS_open_tree, fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
    if (tree < 0) {
        r = err_sys(e, -errno, "open_tree");
    } else if (syscall(SYS_move_mount, tree, "", at, "",
                       MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0) {
        r = err_sys(e, -errno, "move_mount to %s", target);
    }
    if (tree >= 0) {
        close(tree);
    }
    close(at);
    return r;
}
