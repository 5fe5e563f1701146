/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite/sqlite_owner.h"

#include "base/mem.h"
#include "base/str.h"

#include <libgen.h>
#include <sys/stat.h>
#include <unistd.h>

int sqlite_owner_give(int fd, const char *path, struct err *e)
{
    struct stat file, like;
    CLEANUP_FREE char *copy = xstrdup(path);
    if (geteuid() != 0) {
        return 0;
    }
    if (fstat(fd, &file) < 0 || (lstat(path, &like) < 0 && stat(dirname(copy), &like) < 0)) {
        return err_sys(e, -errno, "database %s: find its owner", path);
    }
    if (file.st_uid == like.st_uid && file.st_gid == like.st_gid) {
        return 0;
    }
    if (!S_ISREG(file.st_mode) || file.st_nlink != 1) {
        return err_set(e, -EMLINK,
                       "database %s: a file beside it is a link to a file of another owner: "
                       "remove it",
                       path);
    }
    return fchown(fd, like.st_uid, like.st_gid) < 0
               ? err_sys(e, -errno, "database %s: give a file beside it to its owner", path)
               : 0;
}
