/* SPDX-License-Identifier: Apache-2.0 */
/* The mounts of this process's mount namespace (proc_pid_mountinfo(5)). */
#pragma once

#include "base/err.h"
#include "base/macro.h"

struct mount_entry {
    uint64_t id, parent;
    char *path, *fs_type, *source; /* Unescaped. */
    char *device;                  /* "MAJOR:MINOR" of the file system. */
};

struct mount_table {
    struct mount_entry *v; /* In the kernel's order. */
    size_t n, cap;
};
void mount_table_done(struct mount_table *t);
static inline UNUSED void mount_table_donep(struct mount_table *t)
{
    mount_table_done(t);
}

/* Parses the text of a mountinfo file.  -EINVAL: a line has another form, with its number.  '*ret' is
 * the caller's; untouched on failure.  Pure. */
int mount_table_parse(const char *text, size_t size, struct mount_table *ret, struct err *e);
int mount_table_read(struct mount_table *ret, struct err *e);
/* Whether 'path' is 'top' or below it.  Both are absolute and without links.  Pure. */
bool mount_path_is_below(const char *path, const char *top);

/* Unmounts all that is mounted at 'top' or below, deepest first.  What is busy, and file systems of a
 * network, whose server may not answer, are detached at once (MNT_DETACH): the kernel ends them with
 * their last user.  Blocks. */
int mount_remove_below(const char *top, struct err *e);
