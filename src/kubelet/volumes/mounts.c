/* SPDX-License-Identifier: Apache-2.0 */
/* What a container mounts: the paths of its volumes, its subPaths and /etc/hosts. */
#include "kubelet/volumes/subpath.h"
#include "kubelet/volumes/volumes_priv.h"
#include "net/loop/process.h"
#include "pod/env.h"
#include "pod/hosts_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOSTS_MAX (1 << 20)

struct item {
    char *container_path, *host_path;
    char *subpath;  /* NULL: the whole volume. */
    char *bind_dir; /* "UID/volume-subpaths/VOLUME/CONTAINER": where the subPath is bound. */
    char *volume;
    size_t index;         /* Among the container's mounts. */
    bool readonly, makes; /* 'makes': missing directories of the subPath are made. */
    enum runtime_propagation propagation;
};

struct device {
    char *container_path, *host_path;
    const char *permissions;
};

struct mount_call {
    struct list node; /* In the pod's list. */
    struct volumes *all;
    struct pod_volumes *pod; /* NULL: the volumes are freed. */
    volumes_mounts_fn *done; /* NULL: cancelled. */
    void *ctx;
    struct loop_task failed; /* Delivers a failure found before the job. */
    char *pods_dir, *uid, *container;
    char *hosts;     /* The text of /etc/hosts; NULL: none. */
    bool node_hosts; /* It is made of the node's own file, which the job reads. */
    struct json *pod_json;
    struct item *items;
    size_t n;
    struct device *devices;
    size_t n_devices;
    int error;
    struct err err;
};

static void call_free(struct mount_call *c)
{
    list_remove(&c->node);
    loop_task_cancel(&c->failed);
    for (size_t i = 0; i < c->n; i++) {
        free(c->items[i].container_path);
        free(c->items[i].host_path);
        free(c->items[i].subpath);
        free(c->items[i].bind_dir);
        free(c->items[i].volume);
    }
    free(c->items);
    for (size_t i = 0; i < c->n_devices; i++) {
        free(c->devices[i].container_path);
        free(c->devices[i].host_path);
    }
    free(c->devices);
    free(c->pods_dir);
    free(c->uid);
    free(c->container);
    free(c->hosts);
    json_free(c->pod_json);
    free(c);
}

/* ---- on the worker ---- */

static int bind_subpath(struct mount_call *c, struct item *it, struct err *e)
{
    CLEANUP_FREE char *name = xasprintf("%zu", it->index);
    int root = open(it->host_path, O_PATH | O_DIRECTORY | O_CLOEXEC), dir, fd;
    if (root < 0) {
        return err_sys(e, -errno, "open the volume");
    }
    int r = subpath_open(root, it->subpath, it->makes, &fd, e);
    close(root);
    if (r < 0) {
        return r;
    }
    r = volume_make_dir(c->pods_dir, it->bind_dir, &dir, e);
    if (r == 0) {
        r = subpath_bind(fd, dir, name, e);
        close(dir);
    }
    close(fd);
    if (r == 0) {
        free(it->host_path);
        it->host_path = xasprintf("%s/%s/%s", c->pods_dir, it->bind_dir, name);
    }
    return r;
}

/* Writes the pod's etc-hosts in place: running containers have it mounted. */
static int write_hosts(const struct mount_call *c, struct err *e)
{
    CLEANUP_FREE char *text = NULL;
    int dir;
    if (c->node_hosts) {
        CLEANUP_STRBUF struct strbuf own = STRBUF_INIT;
        bool has = file_read("/etc/hosts", HOSTS_MAX, &own, NULL) == 0;
        text = pod_hosts_file(c->pod_json, (struct runtime_texts){0}, "",
                              has ? strbuf_cstr(&own) : NULL);
    } else {
        text = xstrdup(c->hosts);
    }
    int r = volume_make_dir(c->pods_dir, c->uid, &dir, e);
    if (r < 0) {
        return r;
    }
    int fd = openat(dir, "etc-hosts", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    close(dir);
    if (fd < 0) {
        return err_sys(e, -errno, "create etc-hosts");
    }
    size_t size = strlen(text);
    if (write(fd, text, size) != (ssize_t) size || fchmod(fd, 0644) < 0) {
        r = err_sys(e, errno ? -errno : -EIO, "write etc-hosts");
    }
    close(fd);
    return r;
}

static void work(void *ctx)
{
    struct mount_call *c = ctx;
    for (size_t i = 0; c->error == 0 && i < c->n; i++) {
        struct item *it = &c->items[i];
        if (it->subpath) {
            c->error = bind_subpath(c, it, &c->err);
            if (c->error < 0) {
                err_prefix(&c->err,
                           "failed to prepare subPath for volumeMount \"%s\" of "
                           "container \"%s\"",
                           it->volume, c->container);
            }
        }
    }
    if (c->error == 0 && c->hosts) {
        c->error = write_hosts(c, &c->err);
    }
}

/* ---- on the loop ---- */

static void deliver(struct mount_call *c)
{
    CLEANUP_FREE struct runtime_mount *mounts = xcalloc(c->n + 1, sizeof *mounts);
    CLEANUP_FREE struct runtime_device *devices = xcalloc(c->n_devices + 1, sizeof *devices);
    CLEANUP_FREE char *hosts = xasprintf("%s/%s/etc-hosts", c->pods_dir, c->uid);
    struct volumes_mounts m = {.mounts = mounts, .devices = devices, .n_devices = c->n_devices};
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        const struct item *it = &c->items[i];
        mounts[n++] = (struct runtime_mount){.container_path = it->container_path,
                                             .host_path = it->host_path,
                                             .readonly = it->readonly,
                                             .propagation = it->propagation};
    }
    if (c->hosts) {
        mounts[n++] = (struct runtime_mount){.container_path = "/etc/hosts", .host_path = hosts};
    }
    for (size_t i = 0; i < c->n_devices; i++) {
        devices[i] = (struct runtime_device){.container_path = c->devices[i].container_path,
                                             .host_path = c->devices[i].host_path,
                                             .permissions = c->devices[i].permissions};
    }
    m.n_mounts = n;
    if (c->error < 0) {
        c->done(c->ctx, c->error, c->err.text, &(struct volumes_mounts){0});
    } else {
        c->done(c->ctx, 0, NULL, &m);
    }
}

static void ended(void *ctx)
{
    struct mount_call *c = ctx;
    struct pod_volumes *p = c->all->closing ? NULL : c->pod;
    if (c->done) {
        deliver(c);
    }
    call_free(c);
    if (p) {
        pod_volumes_job_ended(p);
    }
}

static void failed(void *ctx)
{
    struct mount_call *c = ctx;
    volumes_mounts_fn *done = c->done;
    c->done = NULL;
    if (done) {
        done(c->ctx, c->error, c->err.text, &(struct volumes_mounts){0});
    }
    call_free(c);
}

void mount_calls_cancel(struct pod_volumes *p)
{
    struct mount_call *c;
    LIST_FOREACH (c, struct mount_call, node, &p->mounts) {
        list_remove(&c->node);
        /* The job goes on; its own end releases the call. */
        volumes_mounts_fn *done = c->done;
        c->done = NULL;
        if (done && !p->all->closing) {
            done(c->ctx, -ECANCELED, "the pod's volumes are being removed",
                 &(struct volumes_mounts){0});
        }
    }
}

static int propagation_of(const struct json *container, const char *text,
                          enum runtime_propagation *ret, struct err *e)
{
    *ret = RUNTIME_PROPAGATE_NONE;
    if (!*text || streq(text, "None")) {
        return 0;
    }
    if (streq(text, "HostToContainer")) {
        *ret = RUNTIME_PROPAGATE_TO_CONTAINER;
        return 0;
    }
    if (!streq(text, "Bidirectional")) {
        return err_set(e, -EINVAL, "mountPropagation %.64s is unknown", text);
    }
    if (!json_get_bool(json_path(container, "securityContext", "privileged", NULL), false)) {
        return err_set(e, -EINVAL,
                       "mountPropagation Bidirectional is only for privileged containers");
    }
    *ret = RUNTIME_PROPAGATE_BOTH;
    return 0;
}

/* The subPath of a mount (owned); NULL: it has none. */
static int subpath_of(const struct json *mount, struct runtime_pairs env, char **ret, struct err *e)
{
    const char *plain = json_get_text(mount, "subPath"),
               *expr = json_get_text(mount, "subPathExpr");
    char *path = NULL;
    if (!*plain && !*expr) {
        *ret = NULL;
        return 0;
    }
    int r = 0;
    if (*expr) {
        r = pod_env_expand_strict(expr, env, &path, e);
    } else {
        path = xstrdup(plain);
    }
    r = r < 0 ? r : subpath_check(path, e);
    if (r < 0) {
        free(path);
        return r;
    }
    *ret = path;
    return 0;
}

static int add_item(struct mount_call *c, const struct volumes_container *args,
                    const struct json *mount, size_t index, struct err *e)
{
    const char *name = json_get_text(mount, "name");
    const struct volume *vol = pod_volumes_find(c->pod, name);
    struct item it = {0};
    if (!vol || !vol->path) {
        return err_set(e, -EINVAL, "the pod has no volume \"%s\"", name);
    }
    if (vol->block) {
        return err_set(e, -EINVAL, VOLUME_IS_BLOCK, name);
    }
    if (streq(json_get_text(mount, "recursiveReadOnly"), "Enabled")) {
        return err_set(e, -EINVAL, "recursiveReadOnly is not supported on this node");
    }
    int r = propagation_of(args->container, json_get_text(mount, "mountPropagation"),
                           &it.propagation, e);
    r = r < 0 ? r : subpath_of(mount, args->env, &it.subpath, e);
    if (r < 0) {
        return r;
    }
    it.container_path = xstrdup(json_get_text(mount, "mountPath"));
    it.host_path = xstrdup(vol->path);
    it.volume = xstrdup(name);
    it.bind_dir = xasprintf("%s/volume-subpaths/%s/%s", c->uid, name, c->container);
    it.index = index;
    it.readonly = json_get_bool(json_get(mount, "readOnly"), false) || vol->type->is_readonly ||
                  vol->readonly;
    it.makes = !vol->type->is_readonly && !vol->readonly;
    c->items[c->n++] = it;
    return 0;
}

/* The runtime adds a rule to the container's device cgroup: all of read, write and mknod, or read alone. */
static int add_device(struct mount_call *c, const struct json *device, struct err *e)
{
    const char *name = json_get_text(device, "name");
    const struct volume *vol = pod_volumes_find(c->pod, name);
    if (!vol || !vol->path) {
        return err_set(e, -EINVAL, "the pod has no volume \"%s\"", name);
    }
    if (!vol->block) {
        return err_set(e, -EINVAL, VOLUME_IS_FILES, name);
    }
    c->devices[c->n_devices++] =
        (struct device){.container_path = xstrdup(json_get_text(device, "devicePath")),
                        .host_path = xstrdup(vol->path),
                        .permissions = vol->readonly ? "r" : "mrw"};
    return 0;
}

/* Collects what the job needs. */
static int prepare(struct mount_call *c, const struct volumes_container *args, struct err *e)
{
    const struct json *mounts = json_get(args->container, "volumeMounts");
    const struct json *devices = json_get(args->container, "volumeDevices");
    const char *text;
    if (c->pod == NULL || volumes_state(c->all, c->uid, &text) != VOLUMES_READY) {
        return err_set(e, -EAGAIN, "the volumes of the pod are not ready");
    }
    if (!volume_name_is_safe(c->container)) {
        return err_set(e, -EINVAL, "the container's name cannot be that of a directory");
    }
    c->items = xcalloc(json_count(mounts) + 1, sizeof *c->items);
    for (size_t i = 0; i < json_count(mounts); i++) {
        int r = add_item(c, args, json_at(mounts, i), i, e);
        if (r < 0) {
            return err_prefix(e, "volumeMounts[%zu]", i);
        }
    }
    c->devices = xcalloc(json_count(devices) + 1, sizeof *c->devices);
    for (size_t i = 0; i < json_count(devices); i++) {
        int r = add_device(c, json_at(devices, i), e);
        if (r < 0) {
            return err_prefix(e, "volumeDevices[%zu]", i);
        }
    }
    if (pod_has_hosts_file(args->container)) {
        c->node_hosts = json_get_bool(json_path(c->pod->pod, "spec", "hostNetwork", NULL), false);
        c->pod_json = c->node_hosts ? json_clone(c->pod->pod) : NULL;
        c->hosts = pod_hosts_file(c->pod->pod, args->pod_ips, c->all->cluster_domain, NULL);
    }
    return 0;
}

void volumes_mount(struct volumes *v, const char *uid, const struct volumes_container *args,
                   volumes_mounts_fn *done, void *ctx)
{
    struct mount_call *c = NEW(struct mount_call);
    *c = (struct mount_call){.all = v,
                             .pod = smap_get(&v->pods, uid),
                             .done = done,
                             .ctx = ctx,
                             .pods_dir = xstrdup(v->pods_dir),
                             .uid = xstrdup(uid),
                             .container = xstrdup(json_get_text(args->container, "name"))};
    loop_task_init(&c->failed, v->loop, failed, c);
    list_init(&c->node);
    c->error = prepare(c, args, &c->err);
    if (c->error < 0) {
        list_push_back(&v->failed_mounts, &c->node);
        loop_task_queue(&c->failed);
        return;
    }
    list_push_back(&c->pod->mounts, &c->node);
    c->pod->running++;
    jobs_start(v->jobs, work, ended, c);
}

void mount_calls_free(struct volumes *v)
{
    struct mount_call *c;
    LIST_FOREACH (c, struct mount_call, node, &v->failed_mounts) {
        call_free(c);
    }
}
