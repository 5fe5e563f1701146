/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/volumes/tree.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define RIGHTS 0660
#define DIR_RIGHTS (S_ISGID | 0110)

int tree_open_dir(int dir_fd, const char *name, int *ret_fd, struct err *e)
{
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return err_sys(e, -errno, "open the directory %s", name);
    }
    *ret_fd = fd;
    return 0;
}

int tree_mount_id(int fd, uint64_t *ret, struct err *e)
{
    struct statx st;
    if (statx(fd, "", AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, STATX_MNT_ID, &st) < 0) {
        return err_sys(e, -errno, "statx");
    }
    if (!(st.stx_mask & STATX_MNT_ID)) {
        return err_set(e, -EOPNOTSUPP, "the kernel does not tell mounts apart (5.8 is needed)");
    }
    *ret = st.stx_mnt_id;
    return 0;
}

bool tree_is_mount_point(int dir_fd, const char *name)
{
    struct statx st;
    return statx(dir_fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_MNT_ID, &st) == 0 &&
           (st.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

/* ---- walks without recursion: a stack of open directories ---- */

struct level {
    struct list node;
    DIR *dir;
    char *name; /* In the directory above. */
};

static struct level *level_new(int fd, const char *name, struct err *e)
{
    DIR *dir = fdopendir(fd);
    if (!dir) {
        err_sys(e, -errno, "read the directory %s", name);
        close(fd);
        return NULL;
    }
    struct level *l = NEW(struct level);
    l->dir = dir;
    l->name = xstrdup(name);
    return l;
}

static void level_free(struct level *l)
{
    list_remove(&l->node);
    closedir(l->dir);
    free(l->name);
    free(l);
}

static void levels_free(struct list *stack)
{
    struct level *l;
    LIST_FOREACH (l, struct level, node, stack) {
        level_free(l);
    }
}

static struct level *top(struct list *stack)
{
    return CONTAINER_OF(stack->prev, struct level, node);
}

/* A directory of more levels than this is refused: each level holds a descriptor. */
#define DEPTH_MAX 512

/* The next member of the directory; NULL: there are no more, or '*ret' is an error. */
static const char *next_name(struct level *l, int *ret, struct err *e)
{
    struct dirent *d;
    *ret = 0;
    do {
        errno = 0;
        d = readdir(l->dir);
    } while (d && (streq(d->d_name, ".") || streq(d->d_name, "..")));
    if (!d && errno) {
        *ret = err_sys(e, -errno, "read the directory %s", l->name);
    }
    return d ? d->d_name : NULL;
}

/* Opens the directory 'name' on top of the stack.  -EBUSY: it is on another mount. */
static int push(struct list *stack, size_t *depth, int dir_fd, const char *name, uint64_t mount,
                struct err *e)
{
    int fd;
    uint64_t id;
    if (*depth >= DEPTH_MAX) {
        return err_set(e, -ELOOP, "%s is nested more than %d directories deep", name, DEPTH_MAX);
    }
    int r = tree_open_dir(dir_fd, name, &fd, e);
    if (r < 0) {
        return r;
    }
    r = tree_mount_id(fd, &id, e);
    if (r == 0 && id != mount) {
        r = err_set(e, -EBUSY, "%s is a mount", name);
    }
    if (r < 0) {
        close(fd);
        return r;
    }
    struct level *l = level_new(fd, name, e);
    if (!l) {
        return e ? e->code : -EIO;
    }
    list_push_back(stack, &l->node);
    (*depth)++;
    return 0;
}

/* ---- removal ---- */

/* Unlinks what is no directory; -EISDIR: it is one. */
static int remove_leaf(int dir_fd, const char *name, struct err *e)
{
    if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT) {
        return 0;
    }
    return errno == EISDIR ? -EISDIR : err_sys(e, -errno, "remove %s", name);
}

static int remove_dir(int dir_fd, const char *name, struct err *e)
{
    return unlinkat(dir_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT
               ? 0
               : err_sys(e, -errno, "remove the directory %s", name);
}

/* Moves a directory that is nested too deeply to the bottom of the stack, where it is found again. */
static int lift(struct list *stack, int dir_fd, const char *name, size_t n, struct err *e)
{
    struct level *bottom = CONTAINER_OF(stack->next, struct level, node);
    CLEANUP_FREE char *to = xasprintf(".tenet-removed-%zu", n);
    return renameat(dir_fd, name, dirfd(bottom->dir), to) < 0 ? err_sys(e, -errno, "move %s", name)
                                                              : 0;
}

struct removal {
    int dir_fd;
    struct list stack;
    size_t depth, lifted;
    uint64_t mount;
};

/* Ends the directory on top of the stack, whose members are gone. */
static int pop(struct removal *w, struct err *e)
{
    struct level *l = top(&w->stack);
    bool last = l->node.prev == &w->stack;
    struct level *above = last ? NULL : CONTAINER_OF(l->node.prev, struct level, node);
    int parent = above ? dirfd(above->dir) : w->dir_fd;
    if (last && w->lifted) {
        w->lifted = 0;
        rewinddir(l->dir);
        return 0;
    }
    int r = remove_dir(parent, l->name, e);
    level_free(l);
    w->depth--;
    return r;
}

int tree_remove(int dir_fd, const char *name, struct err *e)
{
    struct removal w = {.dir_fd = dir_fd, .stack = LIST_INIT(&w.stack)};
    struct err own;
    size_t lifted = 0;
    e = e ? e : &own;
    int r = remove_leaf(dir_fd, name, e);
    if (r != -EISDIR) {
        return r;
    }
    r = tree_mount_id(dir_fd, &w.mount, e);
    r = r < 0 ? r : push(&w.stack, &w.depth, dir_fd, name, w.mount, e);
    while (r == 0 && !list_is_empty(&w.stack)) {
        struct level *l = top(&w.stack);
        const char *member = next_name(l, &r, e);
        if (!member) {
            r = r < 0 ? r : pop(&w, e);
            continue;
        }
        r = remove_leaf(dirfd(l->dir), member, e);
        if (r == -EISDIR && w.depth >= DEPTH_MAX) {
            w.lifted++;
            r = lift(&w.stack, dirfd(l->dir), member, lifted++, e);
        } else if (r == -EISDIR) {
            r = push(&w.stack, &w.depth, dirfd(l->dir), member, w.mount, e);
        }
    }
    levels_free(&w.stack);
    return r;
}

static bool is_in(const char *const *list, const char *name)
{
    for (; list && *list; list++) {
        if (streq(*list, name)) {
            return true;
        }
    }
    return false;
}

int tree_empty(int dir_fd, const char *const *keep, struct err *e)
{
    int fd;
    struct err own;
    e = e ? e : &own;
    int r = tree_open_dir(dir_fd, ".", &fd, e);
    struct level *l = r < 0 ? NULL : level_new(fd, ".", e);
    if (!l) {
        return e->code;
    }
    list_init(&l->node);
    const char *member;
    while (r == 0 && (member = next_name(l, &r, e))) {
        r = is_in(keep, member) ? 0 : tree_remove(dir_fd, member, e);
    }
    level_free(l);
    return r;
}

/* ---- ownership ---- */

/* Changes what the descriptor (opened with O_PATH) refers to, never a link's target. */
static int set_group_of(int fd, const struct stat *st, gid_t group, struct err *e)
{
    if (st->st_gid != group && fchownat(fd, "", (uid_t) -1, group, AT_EMPTY_PATH) < 0) {
        return err_sys(e, -errno, "chown");
    }
    if (S_ISLNK(st->st_mode) || S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode)) {
        return 0;
    }
    mode_t mode = (st->st_mode & 07777) | RIGHTS | (S_ISDIR(st->st_mode) ? DIR_RIGHTS : 0);
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    /* The kernel drops setuid and setgid bits of a file whose owner changes: set the mode always. */
    return chmod(path, mode) < 0 ? err_sys(e, -errno, "chmod") : 0;
}

/* Sets the group of one member and returns 1 when it is a directory. */
static int visit(int dir_fd, const char *name, uint64_t mount, gid_t group, struct err *e)
{
    struct stat st;
    uint64_t id;
    int fd = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT ? 0 : err_sys(e, -errno, "open %s", name);
    }
    int r = tree_mount_id(fd, &id, e);
    if (r == 0 && id == mount) {
        r = fstat(fd, &st) < 0 ? err_sys(e, -errno, "stat %s", name)
                               : set_group_of(fd, &st, group, e);
        r = r < 0 ? err_prefix(e, "%s", name) : S_ISDIR(st.st_mode);
    }
    close(fd);
    return r;
}

static bool is_right(const struct stat *st, gid_t group)
{
    return st->st_gid == group && (st->st_mode & (RIGHTS | DIR_RIGHTS)) == (RIGHTS | DIR_RIGHTS);
}

int tree_set_group(int dir_fd, gid_t group, bool if_root_differs, struct err *e)
{
    struct list stack = LIST_INIT(&stack);
    struct err own;
    struct stat st;
    uint64_t mount;
    size_t depth = 0;
    e = e ? e : &own;
    if (fstat(dir_fd, &st) < 0) {
        return err_sys(e, -errno, "stat");
    }
    if (if_root_differs && is_right(&st, group)) {
        return 0;
    }
    int r = tree_mount_id(dir_fd, &mount, e);
    r = r < 0 ? r : push(&stack, &depth, dir_fd, ".", mount, e);
    while (r == 0 && !list_is_empty(&stack)) {
        struct level *l = top(&stack);
        const char *member = next_name(l, &r, e);
        if (member) {
            r = visit(dirfd(l->dir), member, mount, group, e);
            if (r == 1) {
                r = push(&stack, &depth, dirfd(l->dir), member, mount, e);
                /* Exchanged meanwhile by the container: what it is now is not followed. */
                r = r == -ENOENT || r == -ENOTDIR || r == -ELOOP || r == -EBUSY ? 0 : r;
            }
        } else {
            level_free(l);
            depth--;
        }
    }
    levels_free(&stack);
    /* The root comes last: it says for OnRootMismatch that all is done. */
    int fd = r < 0 ? -1 : openat(dir_fd, ".", O_PATH | O_CLOEXEC);
    if (fd >= 0) {
        r = set_group_of(fd, &st, group, e);
        close(fd);
    }
    return r;
}

/* ---- size ---- */

int tree_measure(int dir_fd, int64_t *ret_bytes, int64_t *ret_inodes, struct err *e)
{
    struct list stack = LIST_INIT(&stack);
    struct err own;
    uint64_t mount;
    size_t depth = 0;
    int64_t bytes = 0, inodes = 0;
    bool too_deep = false;
    e = e ? e : &own;
    int r = tree_mount_id(dir_fd, &mount, e);
    r = r < 0 ? r : push(&stack, &depth, dir_fd, ".", mount, e);
    while (r == 0 && !list_is_empty(&stack)) {
        struct level *l = top(&stack);
        const char *member = next_name(l, &r, e);
        struct stat st;
        if (!member) {
            level_free(l);
            depth--;
            continue;
        }
        if (fstatat(dirfd(l->dir), member, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0) {
            continue;
        }
        bool dir = S_ISDIR(st.st_mode);
        if (dir && tree_is_mount_point(dirfd(l->dir), member)) {
            continue;
        }
        bytes += (int64_t) st.st_blocks * 512 / (dir ? 1 : (int64_t) MAX(st.st_nlink, (nlink_t) 1));
        inodes++;
        too_deep = too_deep || (dir && depth >= DEPTH_MAX);
        if (dir && depth < DEPTH_MAX) {
            r = push(&stack, &depth, dirfd(l->dir), member, mount, e);
            r = r == -ENOENT || r == -ENOTDIR || r == -ELOOP || r == -EBUSY ? 0 : r;
        }
    }
    levels_free(&stack);
    if (r == 0) {
        *ret_bytes = too_deep ? INT64_MAX : bytes;
        *ret_inodes = inodes;
    }
    return r;
}
