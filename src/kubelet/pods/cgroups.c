/* SPDX-License-Identifier: Apache-2.0 */
/* Control groups of pods, in cgroup v2 and in the hierarchies of v1 (also the hybrid form, in which
 * some controllers are in each).  With systemd the runtime's slices are systemd's. */
#include "base/log.h"
#include "base/mem.h"
#include "kubelet/pods/workers_priv.h"
#include "net/kernel/cgroup.h"
#include "pod/resources.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

LOG_MODULE("cgroups");

#define CGROUP_ROOT "/sys/fs/cgroup"

static bool is_v2(void)
{
    return access(CGROUP_ROOT "/cgroup.controllers", F_OK) == 0;
}

/* mkdir -p below a hierarchy, whose root must exist. */
static int make_path(const char *root, const char *path)
{
    CLEANUP_FREE char *full = xasprintf("%s%s", root, path);
    for (char *p = full + strlen(root) + 1; p; p++) {
        p = strchr(p, '/');
        if (p) {
            *p = '\0';
        }
        if (mkdir(full, 0755) < 0 && errno != EEXIST) {
            return -errno;
        }
        if (!p) {
            break;
        }
        *p = '/';
    }
    return 0;
}

static int write_value(const char *path, const char *value)
{
    CLEANUP(fd_close) int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    size_t n = strlen(value);
    return fd < 0 || write(fd, value, n) != (ssize_t) n ? -errno : 0;
}

/* Makes the group 'path' and writes its values. */
static void make_group(const struct worker *w, const char *path, const struct pod_cgroup_value *v,
                       size_t n, struct arena *a)
{
    for (size_t i = 0; i < n; i++) {
        const char *root =
            is_v2() ? CGROUP_ROOT : arena_printf(a, "%s/%s", CGROUP_ROOT, v[i].controller);
        int r = access(root, F_OK) < 0 ? -ENOENT : make_path(root, path);
        r = r < 0 ? r : write_value(arena_printf(a, "%s%s/%s", root, path, v[i].file), v[i].value);
        if (r < 0) {
            struct err e = {0};
            err_sys(&e, r, "%s", v[i].file);
            log_warn("a limit of a pod was not set", "pod=%s/%s group=%s error=\"%s\"", w->ns,
                     w->name, path, e.text);
        }
    }
}

/* The groups above those of pods, by what all pods request now. */
static void make_class_groups(const struct worker *w, struct arena *a)
{
    const struct workers *p = w->pods;
    const struct pod_node *node = p->c.node;
    const char *top = streq(node->cgroup_root, "/") ? "" : node->cgroup_root;
    size_t n_pods;
    CLEANUP_FREE const struct json **pods = workers_admitted(p, &n_pods);
    for (int g = 0; g < POD_CLASS_GROUPS; g++) {
        struct pod_cgroup_value *v;
        size_t n = pod_class_group_values((enum pod_class_group) g, pods, n_pods, node->pods_cpu,
                                          node->pods_memory, is_v2(), a, &v);
        make_group(w,
                   arena_printf(a, "%s/kubepods%s", top, pod_class_group((enum pod_class_group) g)),
                   v, n, a);
    }
}

void cgroups_make(const struct worker *w)
{
    CLEANUP_ARENA struct arena a = {0};
    const struct pod_node *n = w->pods->c.node;
    struct pod_cgroup_value *v;
    if (n->systemd) {
        return;
    }
    make_class_groups(w, &a);
    size_t count = pod_cgroup_values(w->pod, is_v2(), w->pods->c.pids_max, &a, &v);
    make_group(w, pod_cgroup_parent(w->pod, n->cgroup_root, false, &a), v, count, &a);
}

/* Below kubepods, by the pods' class of service. */
static const char *const classes[] = {"", "/burstable", "/besteffort"};

/* Removes a group and those below it.  Processes that are left in it are killed, and the group goes
 * with the next sweep: a runtime that was killed may have forgotten a sandbox, whose process runs on
 * without it. */
static void remove_group(const char *path, unsigned depth)
{
    DIR *d = depth ? opendir(path) : NULL;
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        if (e->d_type == DT_DIR && !streq(e->d_name, ".") && !streq(e->d_name, "..")) {
            CLEANUP_FREE char *below = xasprintf("%s/%s", path, e->d_name);
            remove_group(below, depth - 1);
        }
    }
    if (d) {
        closedir(d);
        size_t n = cgroup_kill(path);
        if (n) {
            log_warn("processes of a pod that is gone are killed", "processes=%zu group=%s", n,
                     path);
        }
    }
    rmdir(path);
}

/* Removes the groups in 'path' of pods that 'p' does not have. */
static void sweep_class(const struct workers *p, const char *path)
{
    DIR *d = opendir(path);
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        if (e->d_type == DT_DIR && str_has_prefix(e->d_name, "pod") &&
            !smap_get(&p->workers, e->d_name + 3)) {
            CLEANUP_FREE char *group = xasprintf("%s/%s", path, e->d_name);
            remove_group(group, 3);
        }
    }
    if (d) {
        closedir(d);
    }
}

void cgroups_sweep(const struct workers *p)
{
    const struct pod_node *n = p->c.node;
    const char *top = streq(n->cgroup_root, "/") ? "" : n->cgroup_root;
    DIR *d = n->systemd ? NULL : opendir(CGROUP_ROOT);
    bool v2 = is_v2();
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        if (*e->d_name == '.' && !(v2 && streq(e->d_name, "."))) {
            continue;
        }
        for (size_t i = 0; (!v2 || *e->d_name == '.') && i < ARRAY_SIZE(classes); i++) {
            CLEANUP_FREE char *path =
                xasprintf(CGROUP_ROOT "/%s%s/kubepods%s", e->d_name, top, classes[i]);
            sweep_class(p, path);
        }
    }
    if (d) {
        closedir(d);
    }
}

void cgroups_remove(const struct worker *w)
{
    CLEANUP_ARENA struct arena a = {0};
    const struct pod_node *n = w->pods->c.node;
    const char *top = streq(n->cgroup_root, "/") ? "" : n->cgroup_root;
    DIR *d = n->systemd || is_v2() ? NULL : opendir(CGROUP_ROOT);
    if (n->systemd || !*w->uid || strchr(w->uid, '/')) {
        return;
    }
    /* The class is not known of a pod whose object is gone. */
    for (int i = 0; i < POD_CLASS_GROUPS; i++) {
        const char *path = arena_printf(&a, "%s/kubepods%s/pod%s", top,
                                        pod_class_group((enum pod_class_group) i), w->uid);
        if (!d) {
            remove_group(arena_printf(&a, CGROUP_ROOT "%s", path), 3);
            continue;
        }
        rewinddir(d);
        for (struct dirent *e = readdir(d); e; e = readdir(d)) {
            if (*e->d_name != '.') {
                remove_group(arena_printf(&a, CGROUP_ROOT "/%s%s", e->d_name, path), 3);
            }
        }
    }
    if (d) {
        closedir(d);
    }
}
