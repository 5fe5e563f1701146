/* SPDX-License-Identifier: Apache-2.0 */
/* A mount namespace and a tmpfs of the test's own, for tests that mount.  What the test leaves behind
 * goes with its process. */
#pragma once

#include "base/mem.h"
#include "base/str.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "leave_out.h"

/* The directory of the tmpfs. */
static char own_dir[] = "/tmp/tenet-volumes-XXXXXX";

static int own_mounts_open(void **state)
{
    if (geteuid() != 0) {
        return 0;
    }
    return unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
                   !mkdtemp(own_dir) || mount("test", own_dir, "tmpfs", 0, "mode=0755") < 0
               ? -1
               : 0;
}

static int own_mounts_close(void **state)
{
    if (geteuid() == 0) {
        umount2(own_dir, MNT_DETACH);
        rmdir(own_dir);
    }
    return 0;
}

/* A path in the own directory (owned). */
static inline UNUSED char *own_path(const char *name)
{
    return xasprintf("%s/%s", own_dir, name);
}

static inline UNUSED void put_dir(const char *name, mode_t mode)
{
    CLEANUP_FREE char *path = own_path(name);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static inline UNUSED void put_file(const char *name, const char *text, mode_t mode)
{
    CLEANUP_FREE char *path = own_path(name);
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    fchmod(fd, mode);
    close(fd);
}

static inline UNUSED void put_link(const char *name, const char *target)
{
    CLEANUP_FREE char *path = own_path(name);
    assert_int_equal(symlink(target, path), 0);
}

/* The text of a file (owned); NULL: it cannot be read. */
static inline UNUSED char *read_at(int dir_fd, const char *name)
{
    char text[4096];
    int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text);
    if (fd >= 0) {
        close(fd);
    }
    return n < 0 ? NULL : xstrndup(text, (size_t) n);
}

static inline UNUSED char *read_own(const char *name)
{
    CLEANUP_FREE char *path = own_path(name);
    return read_at(AT_FDCWD, path);
}

static inline UNUSED void expect_text(const char *name, const char *want)
{
    CLEANUP_FREE char *text = read_own(name);
    if (!streq_null(text, want)) {
        fail_msg("%s has \"%s\", not \"%s\"", name, text ? text : "(nothing)",
                 want ? want : "(nothing)");
    }
}

/* Opens a directory; the caller closes it. */
static inline UNUSED int open_own(const char *name)
{
    CLEANUP_FREE char *path = own_path(name);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static inline UNUSED bool own_exists(const char *name)
{
    CLEANUP_FREE char *path = own_path(name);
    struct stat st;
    return lstat(path, &st) == 0;
}

static inline UNUSED struct stat own_stat(const char *name)
{
    CLEANUP_FREE char *path = own_path(name);
    struct stat st = {0};
    assert_int_equal(lstat(path, &st), 0);
    return st;
}
