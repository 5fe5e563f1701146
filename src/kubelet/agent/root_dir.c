/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/agent/root_dir.h"

#include "base/mem.h"
#include "base/str.h"
#include "net/loop/process.h"

#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* The kernel releases the lock when the process ends. */
static int lock_dir(const char *dir, int *ret_fd, struct err *e)
{
    CLEANUP_FREE char *path = xasprintf("%s/kubelet.lock", dir);
    CLEANUP(fd_close) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        return err_sys(e, -errno, "open %s", path);
    }
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        return errno == EWOULDBLOCK
                   ? err_set(e, -EBUSY, "rootDir: %s is in use by another kubelet", dir)
                   : err_sys(e, -errno, "lock %s", path);
    }
    *ret_fd = fd_take(&fd);
    return 0;
}

static int move_dir(const char *from, const char *to, struct err *e)
{
    CLEANUP_FREE char *copy = xstrdup(to);
    int r = dir_make(dirname(copy), 0755, e);
    if (r < 0) {
        return r;
    }
    if (rename(from, to) < 0) {
        r = -errno;
        return err_set(e, r,
                       "rootDir: %s cannot be moved to %s: %s; delete this node's pods and move "
                       "it by hand, or set rootDir: %s",
                       from, to, strerror(-r), from);
    }
    if (symlink(to, from) < 0) {
        r = err_sys(e, -errno, "rootDir: link %s to %s", from, to);
        if (rename(to, from) < 0) {
            return err_set(e, r, "rootDir: %s was moved to %s, but cannot be linked: %s", from, to,
                           strerror(-r));
        }
    }
    return r;
}

int root_dir_take(const char *dir, const char *earlier, int *ret_lock, bool *ret_moved,
                  struct err *e)
{
    struct stat st;
    CLEANUP(fd_close) int lock = -1;
    int r = 0;
    bool moves = earlier && lstat(earlier, &st) == 0 && S_ISDIR(st.st_mode) &&
                 (rmdir(dir) == 0 || errno == ENOENT);
    if (moves) {
        /* The lock is on the file, which moves along. */
        r = lock_dir(earlier, &lock, e);
        r = r < 0 ? r : move_dir(earlier, dir, e);
    } else {
        r = dir_make(dir, 0750, e);
        r = r < 0 ? err_prefix(e, "rootDir") : lock_dir(dir, &lock, e);
    }
    if (r < 0) {
        return r;
    }
    *ret_lock = fd_take(&lock);
    *ret_moved = moves;
    return 0;
}
