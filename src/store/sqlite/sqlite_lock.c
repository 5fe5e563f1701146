/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite/sqlite_lock.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/xxh64.h"
#include "store/sqlite/sqlite_owner.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

LOG_MODULE("store");

/* Two lines of a fixed size: the process id, and the mark as 20 digits with their checksum. */
#define PID_SIZE 16
#define DIGITS 20
/* SQLite's own locks admit other processes between two transactions; this lock excludes a second
 * master and still admits readers, such as a backup. */
#define MARK_SIZE (DIGITS + 1 + 16 + 1)
int sqlite_lock(const char *path, int *ret_fd, struct err *e)
{
    CLEANUP_FREE char *lock = xasprintf("%s.lock", path);
    CLEANUP(fd_close) int fd = open(lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    char pid[PID_SIZE + 1] = {0};
    if (fd < 0) {
        return err_sys(e, -errno, "database %s: open %s", path, lock);
    }
    int r = sqlite_owner_give(fd, path, e);
    if (r < 0) {
        return r;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK) {
            return err_sys(e, -errno, "database %s: lock %s", path, lock);
        }
        ssize_t n = pread(fd, pid, PID_SIZE - 1, 0);
        pid[n > 0 ? strcspn(pid, " \n") : 0] = '\0';
        return err_set(e, -EBUSY, "database %s: in use by process %s", path, pid[0] ? pid : "?");
    }
    /* Only for that message: a failure on a full disk does not matter. */
    snprintf(pid, sizeof pid, "%-*d\n", PID_SIZE - 1, getpid());
    if (pwrite(fd, pid, PID_SIZE, 0) < 0) {
        log_debug("cannot note the process id", "file=%s", lock);
    }
    *ret_fd = fd_take(&fd);
    return 0;
}

static void mark_format(uint64_t revision, char text[MARK_SIZE + 1])
{
    char digits[DIGITS + 1];
    snprintf(digits, sizeof digits, "%0*" PRIu64, DIGITS, revision);
    snprintf(text, MARK_SIZE + 1, "%s %016" PRIx64 "\n", digits, xxh64(digits, DIGITS, 0));
}

uint64_t sqlite_mark_read(int lock_fd)
{
    char text[MARK_SIZE + 1] = {0}, expected[MARK_SIZE + 1];
    uint64_t revision = 0;
    if (pread(lock_fd, text, MARK_SIZE, PID_SIZE) != MARK_SIZE) {
        return 0;
    }
    text[DIGITS] = '\0';
    if (str_to_u64(text, INT64_MAX, &revision) < 0) {
        return 0;
    }
    text[DIGITS] = ' ';
    mark_format(revision, expected);
    return memcmp(text, expected, MARK_SIZE) == 0 ? revision : 0;
}

uint64_t sqlite_mark_of(const char *path)
{
    CLEANUP_FREE char *lock = xasprintf("%s.lock", path);
    CLEANUP(fd_close) int fd = open(lock, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? 0 : sqlite_mark_read(fd);
}

void sqlite_mark_write(int lock_fd, uint64_t revision)
{
    char text[MARK_SIZE + 1];
    mark_format(revision, text);
    if (pwrite(lock_fd, text, MARK_SIZE, PID_SIZE) != MARK_SIZE) {
        static struct log_limit limit;
        log_limited(&limit, LOG_WARN, "cannot note the newest change beside the database",
                    "error=\"%s\"", strerror(errno));
    }
}
