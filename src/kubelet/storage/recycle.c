/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/storage/recycle.h"

#include "api/obj.h"
#include "base/mem.h"
#include "kubelet/storage/rules.h"
#include "kubelet/volumes/mountinfo.h"
#include "kubelet/volumes/network_mount.h"
#include "kubelet/volumes/setup.h"
#include "kubelet/volumes/tree.h"
#include "net/loop/process.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Members that belong to the file system or to its server. */
static const char *const kept[] = {"lost+found", ".snapshot", NULL};

/* Opens a directory without following any link. */
static int open_plainly(const char *path, int *ret_fd, struct err *e)
{
    struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                           .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    long fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
    if (fd < 0) {
        return errno == ELOOP
                   ? err_set(e, -EPERM, "the path %.256s leads through a symbolic link", path)
                   : err_sys(e, -errno, "open %.256s", path);
    }
    *ret_fd = (int) fd;
    return 0;
}

static int empty_host_path(const char *path, const char *prefixes, struct err *e)
{
    int fd;
    int r = recycle_check_path(path, prefixes, e);
    r = r < 0 ? r : open_plainly(path, &fd, e);
    if (r == 0) {
        r = tree_empty(fd, kept, e);
        close(fd);
    }
    return r;
}

static int empty_nfs(const struct json *pv, const char *root_dir, struct err *e)
{
    const struct json *spec = json_get(pv, "spec");
    CLEANUP_FREE char *at = xasprintf("%s/recycle/%s", root_dir, obj_name(pv));
    CLEANUP(network_mount_done) struct network_mount m = {0};
    char *real;
    int fd;
    if (!volume_name_is_safe(obj_name(pv))) {
        return err_set(e, -EINVAL, "its name cannot be that of a directory");
    }
    int r = nfs_mount_make(json_get(spec, "nfs"), json_get(spec, "mountOptions"), false, &m, e);
    r = r < 0 ? r : dir_make(at, 0700, e);
    if (r < 0) {
        return r;
    }
    /* The paths of mountinfo have no links. */
    real = realpath(at, NULL);
    r = real ? mount_remove_below(real, e) : err_sys(e, -errno, "resolve %s", at);
    r = r < 0 ? r : network_mount_run(&m, real, e);
    if (r == 0) {
        r = open_plainly(real, &fd, e);
        if (r == 0) {
            r = tree_empty(fd, kept, e);
            close(fd);
        }
        int u = mount_remove_below(real, r < 0 ? NULL : e);
        r = r < 0 ? r : u;
    }
    if (real) {
        rmdir(real);
    }
    free(real);
    return r;
}

int recycle_volume(const struct json *pv, const char *root_dir, const char *prefixes, struct err *e)
{
    const struct json *spec = json_get(pv, "spec");
    if (json_get(spec, "hostPath")) {
        return empty_host_path(json_get_text(json_get(spec, "hostPath"), "path"), prefixes, e);
    }
    return json_get(spec, "nfs")
               ? empty_nfs(pv, root_dir, e)
               : err_set(e, -EOPNOTSUPP, "only volumes of the types hostPath and nfs are emptied");
}
