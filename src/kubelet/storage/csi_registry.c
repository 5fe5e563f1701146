/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/storage/csi_registry.h"

#include "api/kind.h"
#include "api/obj.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "controller/workqueue.h"
#include "kubelet/csi/call.h"
#include "kubelet/volumes/jobs.h"
#include "net/loop/process.h"

#include <dirent.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

LOG_MODULE("csi");

#define CALL_MS 10000
#define RETRY_MS 2000
#define SETTLE_MS 50
#define FREE_WAIT_MS 5000
#define SOCKETS_MAX 100
#define NODE_ID_MAX 256
#define TOPOLOGY_MAX 32
#define MERGE "application/merge-patch+json"
#define STORAGE_V1 "storage.k8s.io/v1"

struct csi_registry {
    struct csi_registry_config c;
    char *node_name, *dir;
    struct jobs *jobs;
    struct workqueue *queue;
    struct smap sockets; /* Path to 'struct plugin_socket'. */
    struct loop_timer *timer;
    int inotify;
    struct loop_fd *watch;
    bool closing;
};

/* A socket in the directory. */
struct plugin_socket {
    struct csi_registry *r;
    char *path;
    ino_t inode; /* Another inode is another registration. */
    char *name;  /* Of its driver; NULL: not registered. */
    char *failure;
    bool asked, seen;
};

struct question {
    struct csi_registry *r;
    char *path;
    ino_t inode;
    struct csi_driver driver;
    int error;
    struct err err;
};

static void plugin_socket_free(void *p)
{
    struct plugin_socket *s = p;
    free(s->path);
    free(s->name);
    free(s->failure);
    free(s);
}

/* ---- on a thread ---- */

static int check_topology(const struct csi_topology *t, struct json **ret, struct err *e)
{
    CLEANUP(json_free) struct json *labels = json_object();
    if (t->segments.n > TOPOLOGY_MAX) {
        return err_set(e, -EINVAL, "NodeGetInfo: more than %d topology segments", TOPOLOGY_MAX);
    }
    for (size_t i = 0; i < t->segments.n; i++) {
        const char *key = t->segments.v[i].key, *value = t->segments.v[i].value;
        const char *why = api_check_qualified_name(key);
        why = why ? why : api_check_label_value(value);
        if (why) {
            return err_set(e, -EINVAL, "NodeGetInfo: the topology segment %.100s: %s", key, why);
        }
        json_set_string(labels, key, value);
    }
    *ret = TAKE(labels);
    return 0;
}

static int ask_driver(struct csi_driver *d, struct err *e)
{
    CLEANUP_PB_STORE struct pb_store store = PB_STORE_INIT(CSI_STORE_MAX);
    struct csi_node_info info;
    struct csi_abilities can = {0};
    int r = csi_call(d->endpoint, CSI_NODE_GET_INFO, "", CALL_MS, &store, &info, e);
    r = r < 0 ? r : csi_call(d->endpoint, CSI_NODE_GET_CAPABILITIES, "", CALL_MS, &store, &can, e);
    if (r < 0) {
        return r;
    }
    if (!*info.node_id || strlen(info.node_id) > NODE_ID_MAX) {
        return err_set(e, -EINVAL, "NodeGetInfo: the node id is empty or longer than %d bytes",
                       NODE_ID_MAX);
    }
    r = check_topology(&info.topology, &d->topology, e);
    if (r == 0) {
        d->node_id = xstrdup(info.node_id);
        d->max_volumes = MAX(info.max_volumes, INT64_C(0));
        d->can_stage = csi_can(&can, CSI_NODE_CAN_STAGE);
        d->can_stats = csi_can(&can, CSI_NODE_CAN_STATS);
        d->can_expand = csi_can(&can, CSI_NODE_CAN_EXPAND);
        d->can_group = csi_can(&can, CSI_NODE_CAN_GROUP);
        d->can_single_writer = csi_can(&can, CSI_NODE_CAN_SINGLE_WRITER);
    }
    return r;
}

static bool has_version_1(const struct runtime_texts *versions)
{
    for (size_t i = 0; i < versions->n; i++) {
        const char *v = versions->v[i];
        v += *v == 'v';
        if (v[0] == '1' && (v[1] == '.' || !v[1])) {
            return true;
        }
    }
    return false;
}

int csi_registry_ask(const char *path, struct csi_driver *ret, struct err *e)
{
    CLEANUP_PB_STORE struct pb_store store = PB_STORE_INIT(CSI_STORE_MAX);
    CLEANUP(csi_driver_done) struct csi_driver d = {0};
    struct csi_registration reg;
    int r = csi_call(path, CSI_PLUGIN_GET_INFO, "", CALL_MS, &store, &reg, e);
    if (r < 0) {
        return r;
    }
    if (!streq(reg.type, "CSIPlugin")) {
        return err_set(e, -EINVAL, "GetInfo: plug-ins of the type %.64s are not supported",
                       reg.type);
    }
    if (!csi_driver_name_is_valid(reg.name)) {
        return err_set(e, -EINVAL, "GetInfo: %.100s is not the name of a driver", reg.name);
    }
    if (!has_version_1(&reg.versions)) {
        return err_set(e, -EINVAL, "GetInfo: driver %s does not support CSI 1", reg.name);
    }
    d.name = xstrdup(reg.name);
    d.endpoint = xstrdup(*reg.endpoint ? reg.endpoint : path);
    r = ask_driver(&d, e);
    if (r == 0) {
        *ret = d;
        d = (struct csi_driver){0};
    }
    return r;
}

static void ask(void *ctx)
{
    struct question *q = ctx;
    q->error = csi_registry_ask(q->path, &q->driver, &q->err);
    struct csi_registration_status status = {.registered = q->error == 0,
                                             .error = q->error < 0 ? q->err.text : ""};
    struct err e;
    csi_call(q->path, CSI_PLUGIN_NOTIFY, &status, CALL_MS, NULL, NULL, &e);
}

/* ---- on the loop ---- */

static void drop_driver(struct csi_registry *r, struct plugin_socket *s)
{
    if (s->name) {
        log_info("a CSI driver is gone", "driver=%s", s->name);
        csi_drivers_remove(r->c.drivers, s->name);
        workqueue_add(r->queue, "node");
        free(s->name);
        s->name = NULL;
    }
}

static void answered(void *ctx)
{
    struct question *q = ctx;
    struct csi_registry *r = q->r;
    struct plugin_socket *s = r->closing ? NULL : smap_get(&r->sockets, q->path);
    if (s && s->inode == q->inode) {
        s->asked = false;
        if (q->error < 0) {
            if (!streq_null(s->failure, q->err.text)) {
                log_warn("a CSI driver was not registered", "socket=%s error=\"%s\"", s->path,
                         q->err.text);
            }
            free(s->failure);
            s->failure = xstrdup(q->err.text);
            loop_timer_arm(r->timer, RETRY_MS);
        } else {
            s->name = xstrdup(q->driver.name);
            log_info("a CSI driver is registered", "driver=%s node=%s", s->name, q->driver.node_id);
            csi_drivers_set(r->c.drivers, &q->driver);
            workqueue_add(r->queue, "node");
            if (r->c.changed) {
                r->c.changed(r->c.ctx);
            }
        }
    } else if (s) {
        loop_timer_arm(r->timer, SETTLE_MS);
    }
    csi_driver_done(&q->driver);
    free(q->path);
    free(q);
}

static void see(struct csi_registry *r, const char *path, ino_t inode)
{
    struct plugin_socket *s = smap_get(&r->sockets, path);
    if (!s) {
        s = NEW(struct plugin_socket);
        s->r = r;
        s->path = xstrdup(path);
        s->inode = inode;
        smap_set(&r->sockets, path, s);
    }
    s->seen = true;
    if (s->inode != inode) {
        drop_driver(r, s);
        s->inode = inode;
        s->asked = false;
    }
    if (!s->name && !s->asked) {
        struct question *q = NEW(struct question);
        q->r = r;
        q->path = xstrdup(path);
        q->inode = inode;
        s->asked = true;
        jobs_start(r->jobs, ask, answered, q);
    }
}

/* Compares the directory with the sockets that are known. */
static void scan(void *ctx)
{
    struct csi_registry *r = ctx;
    DIR *dir = opendir(r->dir);
    struct smap_entry *en;
    struct dirent *d;
    size_t n = 0;
    SMAP_FOREACH (en, &r->sockets) {
        ((struct plugin_socket *) en->value)->seen = false;
    }
    while (dir && (d = readdir(dir)) && n < SOCKETS_MAX) {
        CLEANUP_FREE char *path = xasprintf("%s/%s", r->dir, d->d_name);
        struct stat st;
        if (*d->d_name != '.' && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode)) {
            see(r, path, st.st_ino);
            n++;
        }
    }
    if (dir) {
        closedir(dir);
    }
    SMAP_FOREACH (en, &r->sockets) {
        struct plugin_socket *s = en->value;
        if (!s->seen) {
            drop_driver(r, s);
            smap_remove(&r->sockets, s->path);
        }
    }
}

static void on_event(void *ctx, unsigned events)
{
    struct csi_registry *r = ctx;
    char buf[4096];
    while (read(r->inotify, buf, sizeof buf) > 0) {
    }
    loop_timer_arm(r->timer, SETTLE_MS);
}

/* ---- CSINode and labels ---- */

static void labels_written(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    if (error < 0) {
        work_retry(w, error, "write the labels of CSI drivers", text);
    } else {
        work_done(w);
    }
}

static void write_labels(struct csi_registry *r, struct work *w)
{
    CLEANUP(json_free) struct json *patch = json_object();
    struct json *labels = csi_drivers_labels(r->c.drivers);
    if (!json_count(labels)) {
        json_free(labels);
        work_done(w);
        return;
    }
    json_set(json_ensure_object(patch, "metadata"), "labels", labels);
    CLEANUP_FREE char *path = api_path("v1", "nodes", NULL, r->node_name, NULL);
    work_request_as(w, "PATCH", path, NULL, MERGE, patch, labels_written);
}

static void csinode_written(void *ctx, struct work *w, int error, const char *text,
                            struct json *obj)
{
    if (error < 0) {
        work_retry(w, error, "write the CSINode", text);
    } else {
        write_labels(ctx, w);
    }
}

static void csinode_read(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct csi_registry *r = ctx;
    const struct json *node = r->c.node(r->c.ctx);
    CLEANUP(json_free) struct json *drivers = csi_drivers_list(r->c.drivers);
    if ((error < 0 && error != -ENOENT) || !node) {
        work_retry(w, error < 0 && error != -ENOENT ? error : -EAGAIN, "read the CSINode",
                   error < 0 && error != -ENOENT ? text : "the node is not known yet");
        return;
    }
    bool is_new = error == -ENOENT;
    if (!is_new && json_equal(json_path(obj, "spec", "drivers", NULL), drivers)) {
        write_labels(r, w);
        return;
    }
    CLEANUP(json_free)
    struct json *want =
        is_new ? obj_new(STORAGE_V1, "CSINode", NULL, r->node_name) : json_clone(obj);
    if (is_new) {
        struct json *owners = json_ensure_array(json_get(want, "metadata"), "ownerReferences");
        struct json *owner = json_append(owners, json_object());
        json_set_string(owner, "apiVersion", "v1");
        json_set_string(owner, "kind", "Node");
        json_set_string(owner, "name", obj_name(node));
        json_set_string(owner, "uid", obj_uid(node));
    }
    json_set(json_ensure_object(want, "spec"), "drivers", TAKE(drivers));
    CLEANUP_FREE char *path =
        api_path(STORAGE_V1, "csinodes", NULL, is_new ? NULL : r->node_name, NULL);
    work_request(w, is_new ? "POST" : "PUT", path, want, csinode_written);
}

static void reconcile(void *ctx, struct work *w, const char *key)
{
    struct csi_registry *r = ctx;
    CLEANUP_FREE char *path = api_path(STORAGE_V1, "csinodes", NULL, r->node_name, NULL);
    work_request(w, "GET", path, NULL, csinode_read);
}

/* ---- all ---- */

int csi_registry_new(const struct csi_registry_config *c, struct csi_registry **ret, struct err *e)
{
    CLEANUP_FREE char *dir = xasprintf("%s/plugins_registry", c->root_dir);
    CLEANUP_FREE char *plugins = xasprintf("%s/plugins", c->root_dir);
    int r = dir_make(dir, 0750, e);
    r = r < 0 ? r : dir_make(plugins, 0750, e);
    if (r < 0) {
        return r;
    }
    struct csi_registry *reg = NEW(struct csi_registry);
    reg->c = *c;
    reg->node_name = xstrdup(c->node_name);
    reg->dir = TAKE(dir);
    smap_init(&reg->sockets, plugin_socket_free);
    reg->jobs = jobs_new(c->loop);
    reg->queue = workqueue_new(c->loop, c->client, 1, reconcile, reg);
    reg->timer = loop_timer_new(c->loop, scan, reg);
    reg->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (reg->inotify < 0 ||
        inotify_add_watch(reg->inotify, reg->dir,
                          IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR) < 0) {
        r = err_sys(e, -errno, "watch %s", reg->dir);
        csi_registry_free(reg);
        return r;
    }
    reg->watch = loop_fd_new(c->loop, reg->inotify, LOOP_READ, on_event, reg);
    workqueue_start(reg->queue);
    /* Without drivers, the CSINode says so as well. */
    workqueue_add(reg->queue, "node");
    loop_timer_arm(reg->timer, 0);
    *ret = reg;
    return 0;
}

struct csi_registry *csi_registry_free(struct csi_registry *r)
{
    if (r) {
        r->closing = true;
        workqueue_free(r->queue);
        jobs_free(r->jobs, FREE_WAIT_MS);
        loop_timer_free(r->timer);
        if (r->watch) {
            loop_fd_free(r->watch);
        }
        fd_close(r->inotify);
        smap_done(&r->sockets);
        free(r->node_name);
        free(r->dir);
        free(r);
    }
    return NULL;
}
