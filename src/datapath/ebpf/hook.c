/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ebpf/hook.h"

#include "base/mem.h"
#include "base/str.h"
#include "net/kernel/redirect.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

static char *pin_path(const struct hooks *h, const char *ifname)
{
    return xasprintf("%s/%s", h->dir, ifname);
}

/* ---- tcx ---- */

static uint32_t program_id(int prog_fd)
{
    struct bpf_prog_info info = {0};
    uint32_t size = sizeof info;
    return bpf_obj_get_info_by_fd(prog_fd, &info, &size) == 0 ? info.id : 0;
}

/* The pinned bpf link, if it is of 'ifindex'; '*ret_prog' is the program it runs. */
static int find_link(const char *path, int ifindex, uint32_t *ret_prog)
{
    CLEANUP(fd_close) int fd = bpf_obj_get(path);
    struct bpf_link_info info = {0};
    uint32_t size = sizeof info;
    if (fd < 0) {
        return fd;
    }
    /* A bpf link whose device is gone has ifindex 0; 'xdp' begins like the tcx member, which
     * older headers lack. */
    if (bpf_obj_get_info_by_fd(fd, &info, &size) < 0 || info.xdp.ifindex != (uint32_t) ifindex) {
        return -ENODEV;
    }
    *ret_prog = info.prog_id;
    return fd_take(&fd);
}

static int create_tcx(const struct hooks *h, const char *ifname, int ifindex, int prog_fd,
                      struct err *e)
{
    CLEANUP_FREE char *path = pin_path(h, ifname);
    unlink(path); /* The pin of an earlier link with the same name. */
    CLEANUP(fd_close) int fd = bpf_link_create(prog_fd, ifindex, HOOK_TCX_INGRESS, NULL);
    if (fd < 0) {
        return err_sys(e, fd, "attach the eBPF program to %s", ifname);
    }
    if (mkdir(h->dir, 0700) < 0 && errno != EEXIST) {
        return err_sys(e, -errno, "make %s", h->dir);
    }
    int r = bpf_obj_pin(fd, path);
    return r < 0 ? err_sys(e, r, "pin the eBPF program of %s at %s", ifname, path) : 0;
}

/* ---- clsact ---- */

/* The priority of the filter of such a link without tcx. */
static enum redirect_place place_of(enum hook_kind kind)
{
    return kind == HOOK_SHARED ? REDIRECT_AMONG_OTHERS : REDIRECT_ALONE;
}

static int attach_clsact(const struct hooks *h, struct rtnl *r, enum hook_kind kind,
                         const char *ifname, int ifindex, int prog_fd, struct err *e)
{
    if (kind == HOOK_NEW_POD) {
        return redirect_attach_received(r, ifindex, HOOK_FILTER_NAME, prog_fd, e);
    }
    int err =
        redirect_attach(r, ifindex, REDIRECT_INGRESS, place_of(kind), HOOK_FILTER_NAME, prog_fd, e);
    if (err == 0) {
        hook_forget(h, ifname); /* A tcx program left by an earlier agent would run first. */
    }
    return err;
}

/* ---- both ---- */

int hook_attach(const struct hooks *h, struct rtnl *r, enum hook_kind kind, const char *ifname,
                int ifindex, int prog_fd, struct err *e)
{
    CLEANUP_FREE char *path = pin_path(h, ifname);
    uint32_t prog = 0;
    bool look = h->tcx && kind != HOOK_NEW_POD;
    CLEANUP(fd_close) int fd = look ? find_link(path, ifindex, &prog) : -ENOENT;
    bool with_tcx = kind != HOOK_POD && kind != HOOK_NEW_POD;
    int err;
    if (fd >= 0 && prog == program_id(prog_fd)) {
        return 0;
    } else if (fd >= 0) {
        err = bpf_link_update(fd, prog_fd, NULL);
        err = err < 0 ? err_sys(e, err, "replace the eBPF program of %s", ifname) : 0;
    } else if (h->tcx && with_tcx) {
        err = create_tcx(h, ifname, ifindex, prog_fd, e);
    } else {
        return attach_clsact(h, r, kind, ifname, ifindex, prog_fd, e);
    }
    if (err == 0) { /* A filter left by an agent without tcx would run second. */
        redirect_detach(r, ifindex, REDIRECT_INGRESS, place_of(kind));
    }
    return err;
}

bool hook_reserve(const struct hooks *h, const struct hook_place *at, int idle_fd)
{
    CLEANUP_FREE char *path = pin_path(h, at->ifname);
    uint32_t prog = 0;
    CLEANUP(fd_close) int fd = h->tcx ? find_link(path, at->ifindex, &prog) : -1;
    return h->tcx && fd < 0 && create_tcx(h, at->ifname, at->ifindex, idle_fd, NULL) == 0;
}

void hook_detach(const struct hooks *h, struct rtnl *r, const char *ifname, int ifindex)
{
    CLEANUP_FREE char *path = pin_path(h, ifname);
    uint32_t prog;
    CLEANUP(fd_close) int fd = h->tcx ? find_link(path, ifindex, &prog) : -ENOENT;
    if (fd >= 0) {
        bpf_link_detach(fd); /* Removing the pin detaches it as well, but some time later. */
    }
    unlink(path);
    redirect_detach(r, ifindex, REDIRECT_INGRESS, REDIRECT_AMONG_OTHERS);
}

int hook_check(const struct hooks *h, struct rtnl *r, const char *ifname, int ifindex, int prog_fd,
               struct err *e)
{
    CLEANUP_FREE char *path = pin_path(h, ifname);
    uint32_t prog = 0;
    CLEANUP(fd_close) int fd = h->tcx ? find_link(path, ifindex, &prog) : -ENOENT;
    if (fd >= 0) {
        return prog == program_id(prog_fd)
                   ? 0
                   : err_set(e, -ENOENT, "%s has another eBPF program", ifname);
    }
    return redirect_check_attached(r, ifindex, REDIRECT_INGRESS, HOOK_FILTER_NAME, e);
}

void hook_forget(const struct hooks *h, const char *ifname)
{
    CLEANUP_FREE char *path = pin_path(h, ifname);
    unlink(path);
}

/* Recognized by its program, as the pod may no longer be known. */
static bool is_pods_link(const char *path)
{
    CLEANUP(fd_close) int fd = bpf_obj_get(path);
    struct bpf_link_info link = {0};
    struct bpf_prog_info prog = {0};
    uint32_t size = sizeof link, prog_size = sizeof prog;
    /* A bpf link whose device is gone has the number 0. */
    if (fd < 0 || bpf_obj_get_info_by_fd(fd, &link, &size) < 0 || link.xdp.ifindex == 0) {
        return false;
    }
    CLEANUP(fd_close) int prog_fd = bpf_prog_get_fd_by_id(link.prog_id);
    return prog_fd >= 0 && bpf_obj_get_info_by_fd(prog_fd, &prog, &prog_size) == 0 &&
           streq(prog.name, "from_pod");
}

int hook_sweep(const struct hooks *h, struct rtnl *r, bool (*keep)(void *ctx, const char *ifname),
               void *ctx, struct err *e)
{
    DIR *d = opendir(h->dir);
    struct dirent *ent;
    while (d && (ent = readdir(d))) {
        CLEANUP_FREE char *path = pin_path(h, ent->d_name);
        if (ent->d_name[0] != '.' && !keep(ctx, ent->d_name) && !is_pods_link(path)) {
            hook_forget(h, ent->d_name);
        }
    }
    if (d) {
        closedir(d);
    }
    return redirect_sweep(r, REDIRECT_AMONG_OTHERS, HOOK_FILTER_NAME, keep, ctx, e);
}
