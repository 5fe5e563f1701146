/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite_reserve.h"

#include "base/mem.h"
#include "base/str.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static char *reserve_name(const char *path)
{
    return xasprintf("%s.reserve", path);
}

int sqlite_reserve_make(const char *path, uint64_t size, struct err *e)
{
    CLEANUP_FREE char *name = reserve_name(path);
    struct stat st;
    struct statvfs fs;
    if (!size) {
        (void) unlink(name);
        return 0;
    }
    if (stat(name, &st) == 0 && (uint64_t) st.st_size == size) {
        return 0;
    }
    CLEANUP(fd_close) int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || fstatvfs(fd, &fs) < 0) {
        return err_sys(e, -errno, "reserve %s", name);
    }
    int r = (uint64_t) fs.f_bavail * fs.f_frsize < 2 * size ? ENOSPC
                                                            : posix_fallocate(fd, 0, (off_t) size);
    if (r != 0) {
        (void) unlink(name);
        return err_sys(e, -r, "reserve %s of %llu bytes", name, (unsigned long long) size);
    }
    return 0;
}

bool sqlite_reserve_release(const char *path)
{
    CLEANUP_FREE char *name = reserve_name(path);
    return unlink(name) == 0;
}
