/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite/sqlite_reserve.h"

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
    bool existed = stat(name, &st) == 0;
    if (existed && (uint64_t) st.st_size == size) {
        return 0;
    }
    CLEANUP(fd_close) int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || fstatvfs(fd, &fs) < 0 || fstat(fd, &st) < 0) {
        return err_sys(e, -errno, "reserve %s", name);
    }
    uint64_t room = (uint64_t) fs.f_bavail * fs.f_frsize + (uint64_t) st.st_blocks * 512;
    int r = room < 2 * size ? ENOSPC : posix_fallocate(fd, 0, (off_t) size);
    if (r == 0 && ftruncate(fd, (off_t) size) < 0) {
        r = errno;
    }
    if (r != 0) {
        /* An empty file records that the reserve was released: one that never existed is not
         * left behind. */
        (void) (existed ? ftruncate(fd, 0) : unlink(name));
        return err_sys(e, -r, "reserve %s of %llu bytes", name, (unsigned long long) size);
    }
    return 0;
}

bool sqlite_reserve_release(const char *path)
{
    CLEANUP_FREE char *name = reserve_name(path);
    struct stat st;
    return stat(name, &st) == 0 && st.st_size && truncate(name, 0) == 0;
}

bool sqlite_reserve_is_released(const char *path)
{
    CLEANUP_FREE char *name = reserve_name(path);
    struct stat st;
    return stat(name, &st) == 0 && st.st_size == 0;
}
