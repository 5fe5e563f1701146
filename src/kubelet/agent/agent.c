/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/agent/agent.h"

#include "api/quantity.h"
#include "base/log.h"
#include "base/mem.h"
#include "client/kubeconfig.h"
#include "kubelet/agent/eviction.h"
#include "kubelet/agent/image_gc.h"
#include "kubelet/agent/lease.h"
#include "kubelet/agent/node_status.h"
#include "kubelet/agent/root_dir.h"
#include "kubelet/agent/serve.h"
#include "kubelet/agent/shutdown.h"
#include "kubelet/pods/workers.h"
#include "kubelet/server/log_rotation.h"
#include "kubelet/sources/static_pods.h"
#include "kubelet/storage/csi_registry.h"
#include "kubelet/storage/storage.h"
#include "net/loop/config_file.h"
#include "net/loop/notify.h"
#include "net/loop/process.h"
#include "net/loop/watchdog.h"
#include "node/host/host.h"
#include "pod/manifest.h"
#include "pod/observed.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

LOG_MODULE("kubelet");

#define STATUS_MS 10000
#define IMAGES_MS 60000
#define EVENT_DELAY_MS 50 /* A pod's status goes before its Events. */
#define RETRY_MS 500
#define IMAGES_MAX 50
#define IMAGE_NAMES_MAX 5

struct kubelet {
    const struct kubelet_config *cfg;
    const char *config_path;
    struct loop *loop;
    int lock_fd;
    char *ip;
    struct api_client *client;
    struct recorder *recorder;
    struct runtime *runtime;
    char *runtime_name; /* "containerd"; NULL: the runtime has not answered yet. */
    bool runtime_lost;
    struct runtime_call *version, *status, *list_images;
    struct loop_timer *status_timer, *images_timer;
    struct arena arena; /* What 'node' refers to. */
    struct pod_node node;
    struct node_status *node_status;
    struct serve *serve; /* NULL: no server. */
    struct log_rotation *rotation;
    char *client_ca; /* PEM; NULL: the kubeconfig has none. */
    struct lease *lease;
    struct pod_objects *objects;
    struct csi_drivers *drivers;
    struct csi_registry *registry;
    struct volumes *volumes;
    struct storage *storage;
    struct workers *pods;
    struct eviction *eviction;
    struct image_collector *collector;
    struct shutdown *shutdown; /* NULL: the host's shutdown does not wait for pods. */
    struct static_pods *static_pods;
    bool swept;  /* The directories of pods that are gone were removed once. */
    bool listed; /* The API's pods of this node are known. */
    struct informer *pod_informer, *service_informer, *node_informer, *class_informer;
    struct json *services;     /* An array, made anew after a change. */
    struct watchdog *watchdog; /* NULL: the service manager does not ask for reports. */
    struct loop_signal *sigterm, *sigint, *sighup;
    int result;
};

/* ---- pods of the API ---- */

static void set_pod(struct kubelet *k, const struct json *pod)
{
    if (!pod_is_static(pod)) {
        workers_set(k->pods, pod);
        return;
    }
    /* A user of the API may not make a pod a static one, which is exempt from checks. */
    CLEANUP(json_free) struct json *copy = json_clone(pod);
    json_set_string(json_path(copy, "metadata", "annotations", NULL), POD_NOTE_SOURCE, "api");
    workers_set(k->pods, copy);
}

static void object_gone(struct kubelet *k, const struct json *obj)
{
    if (!manifest_mirror_of(obj)) {
        workers_gone(k->pods, pod_uid(obj));
    }
    static_pods_gone(k->static_pods, obj);
}

/* A mirror pod never runs: it is a picture of a pod that does. */
static void pod_changed(void *ctx, const char *key, const struct json *old, const struct json *obj)
{
    struct kubelet *k = ctx;
    if (old && !streq(pod_uid(old), pod_uid(obj))) {
        object_gone(k, old);
    }
    if (manifest_mirror_of(obj)) {
        static_pods_mirror(k->static_pods, obj);
    } else {
        set_pod(k, obj);
    }
}

static void pod_deleted(void *ctx, const char *key, const struct json *obj)
{
    object_gone(ctx, obj);
}

/* What the runtime has beside the pods of the API and of manifests is ended, once all are known. */
static void check_known(struct kubelet *k)
{
    if (k->listed && static_pods_ready(k->static_pods)) {
        workers_synced(k->pods);
    }
}

static void manifests_read(void *ctx)
{
    check_known(ctx);
}

static void static_ended(void *ctx, const char *uid)
{
    struct kubelet *k = ctx;
    static_pods_ended(k->static_pods, uid);
}

static void add_uid(void *ctx, const struct json *pod, const struct json *status)
{
    json_append(ctx, json_string(pod_uid(pod)));
}

static void swept(void *ctx, int error, const char *text)
{
    if (error < 0) {
        log_warn("directories of pods that are gone were not removed", "error=\"%s\"", text);
    }
}

/* All pods are known.  Removes the directories of pods that an earlier agent had and that are gone. */
static void sweep(void *ctx)
{
    struct kubelet *k = ctx;
    CLEANUP(json_free) struct json *uids = json_array();
    if (!k->swept) {
        k->swept = true;
        image_collector_start(k->collector);
    }
    workers_each(k->pods, add_uid, uids);
    const char **v = xcalloc(json_count(uids) + 1, sizeof *v);
    for (size_t i = 0; i < json_count(uids); i++) {
        v[i] = json_get_string(json_at(uids, i));
    }
    volumes_sweep(k->volumes, v, json_count(uids), swept, k);
    free(v);
}

static void pods_listed(void *ctx)
{
    struct kubelet *k = ctx;
    log_info("the node's pods are known", "pods=%zu", informer_count(k->pod_informer));
    k->listed = true;
    static_pods_mirrors_listed(k->static_pods);
    check_known(k);
    notify_manager("STATUS=runs the pods of this node");
}

static void connection_changed(void *ctx, const char *lost_reason)
{
    struct kubelet *k = ctx;
    if (lost_reason) {
        log_warn("the master does not answer; pods go on", "error=\"%s\"", lost_reason);
    } else {
        log_info("the master answers again");
        static_pods_connected(k->static_pods);
    }
}

static void service_changed(void *ctx, const char *key, const struct json *old,
                            const struct json *obj)
{
    struct kubelet *k = ctx;
    k->services = json_free(k->services);
}

static void service_deleted(void *ctx, const char *key, const struct json *obj)
{
    service_changed(ctx, key, NULL, obj);
}

static void services_synced(void *ctx)
{
    struct kubelet *k = ctx;
    workers_objects_changed(k->pods, NULL);
}

static void add_service(void *ctx, const char *key, const struct json *obj)
{
    json_append(ctx, json_clone(obj));
}

static const struct json *services_of(void *ctx, bool now)
{
    struct kubelet *k = ctx;
    if (!informer_synced(k->service_informer) && !now) {
        return NULL;
    }
    if (!k->services) {
        k->services = json_array();
        informer_each(k->service_informer, add_service, k->services);
    }
    return k->services;
}

static const struct json *allocatable_of(void *ctx)
{
    struct kubelet *k = ctx;
    return k->node_status ? node_status_allocatable(k->node_status) : NULL;
}

static int handler_of(void *ctx, const char *runtime_class, const char **ret)
{
    const struct kubelet *k = ctx;
    const struct json *class = informer_get(k->class_informer, runtime_class);
    if (class) {
        *ret = json_get_text(class, "handler");
    }
    return class ? 0 : informer_synced(k->class_informer) ? -ENOENT : -EAGAIN;
}

static const struct json *node_of(void *ctx)
{
    const struct kubelet *k = ctx;
    return k->node_informer ? informer_get(k->node_informer, k->cfg->node_name) : NULL;
}

static const char *image_dir_of(void *ctx)
{
    const struct kubelet *k = ctx;
    return image_collector_dir(k->collector);
}

/* Removes unused images, where they are on the file system that is full. */
static bool reclaim(void *ctx, enum evict_signal s)
{
    const struct kubelet *k = ctx;
    const char *dir = image_collector_dir(k->collector);
    struct stat root, images;
    bool nodefs = s == EVICT_NODEFS || s == EVICT_NODEFS_INODES;
    if (nodefs && (!dir || stat(dir, &images) < 0 || stat(k->cfg->root_dir, &root) < 0 ||
                   images.st_dev != root.st_dev)) {
        return false;
    }
    return image_collector_reclaim(k->collector);
}

static void admission_of(void *ctx, struct pod_admit_node *ret)
{
    struct kubelet *k = ctx;
    ret->node = node_of(k);
    ret->allocatable = allocatable_of(k);
    ret->memory_pressure = k->eviction && eviction_has(k->eviction, EVICT_MEMORY_PRESSURE);
    ret->disk_pressure = k->eviction && eviction_has(k->eviction, EVICT_DISK_PRESSURE);
    ret->pid_pressure = k->eviction && eviction_has(k->eviction, EVICT_PID_PRESSURE);
    ret->shuts_down = shutdown_is_under_way(k->shutdown);
}

static void volumes_changed(void *ctx, const char *uid)
{
    struct kubelet *k = ctx;
    if (k->pods) {
        workers_wake(k->pods, uid);
    }
}

static void in_use_changed(void *ctx)
{
    struct kubelet *k = ctx;
    if (k->node_status && k->volumes) {
        node_status_set_volumes(k->node_status, volumes_in_use(k->volumes));
    }
}

static void object_changed(void *ctx, const char *uid)
{
    struct kubelet *k = ctx;
    volumes_objects_changed(k->volumes, uid);
    workers_objects_changed(k->pods, uid);
}

/* ---- logs ---- */

struct log_walk {
    struct kubelet *kubelet;
    void (*add)(void *rotation, const char *id, const char *log_path);
    void *rotation;
};

static void add_logs(void *ctx, const struct json *pod, const struct json *status)
{
    struct log_walk *walk = ctx;
    const struct pod_observed *o = workers_observed(walk->kubelet->pods, pod_uid(pod));
    for (size_t i = 0; i < o->n_containers; i++) {
        const struct observed_container *c = &o->containers[i];
        if (c->state == RUNTIME_RUNNING && *c->log_path) {
            walk->add(walk->rotation, c->id, c->log_path);
        }
    }
}

static void each_log(void *ctx, void (*add)(void *rotation, const char *id, const char *log_path),
                     void *rotation)
{
    struct log_walk walk = {.kubelet = ctx, .add = add, .rotation = rotation};
    workers_each(walk.kubelet->pods, add_logs, &walk);
}

static void start_rotation(struct kubelet *k)
{
    int64_t bytes = 0;
    api_quantity_value(k->cfg->log_max_size, 0, &bytes, NULL);
    struct log_rotation_config c = {.max_bytes = (uint64_t) bytes,
                                    .max_files = k->cfg->log_max_files,
                                    .runtime = k->runtime,
                                    .each = each_log,
                                    .ctx = k};
    k->rotation = log_rotation_new(k->loop, &c);
}

/* ---- the runtime ---- */

/* Pods are asked for when the Node is known, whose labels and taints they are admitted by. */
static void node_changed(void *ctx, const char *key, const struct json *old, const struct json *obj)
{
    static const struct informer_ops ops = {.changed = pod_changed,
                                            .deleted = pod_deleted,
                                            .synced = pods_listed,
                                            .connection = connection_changed};
    struct kubelet *k = ctx;
    if (!k->pod_informer) {
        CLEANUP_FREE char *selector = xasprintf("spec.nodeName=%s", k->cfg->node_name);
        k->pod_informer = informer_new(k->client, k->loop, "v1", "pods", selector, &ops, k);
        informer_keep_metadata_only(k->pod_informer); /* The workers have the pods. */
    }
}

static void shutdown_changed(void *ctx)
{
    struct kubelet *k = ctx;
    loop_timer_arm(k->status_timer, 0); /* The Node says it at once. */
}

static void start_shutdown(struct kubelet *k)
{
    struct shutdown_config c = {
        .loop = k->loop, .pods = k->pods, .cfg = k->cfg, .changed = shutdown_changed, .ctx = k};
    struct err e = {0};
    if (shutdown_new(&c, &k->shutdown, &e) < 0) {
        log_error("the host's shutdown does not wait for pods", "error=\"%s\"", e.text);
    }
}

/* A CSI driver has come: pods that wait for it go on, and what an earlier agent left with it is removed. */
static void drivers_changed(void *ctx)
{
    struct kubelet *k = ctx;
    volumes_drivers_changed(k->volumes);
    if (k->swept) {
        sweep(k);
    }
}

static void start_storage(struct kubelet *k)
{
    struct csi_registry_config rc = {.loop = k->loop,
                                     .client = k->client,
                                     .node_name = k->cfg->node_name,
                                     .root_dir = k->cfg->root_dir,
                                     .drivers = k->drivers,
                                     .node = node_of,
                                     .changed = drivers_changed,
                                     .ctx = k};
    struct err e = {0};
    if (csi_registry_new(&rc, &k->registry, &e) < 0) {
        log_error("no CSI driver can register", "error=\"%s\"", e.text);
    }
    struct storage_config c = {.loop = k->loop,
                               .client = k->client,
                               .recorder = k->recorder,
                               .node_name = k->cfg->node_name,
                               .root_dir = k->cfg->root_dir,
                               .recycle_prefixes = k->cfg->recycle_prefixes,
                               .node = node_of,
                               .ctx = k};
    api_quantity_value(k->cfg->local_margin, 0, &c.margin_bytes, NULL);
    k->storage = storage_new(&c);
}

static void start_pods(struct kubelet *k)
{
    static const struct workers_ops ops = {.services = services_of,
                                           .allocatable = allocatable_of,
                                           .admission = admission_of,
                                           .handler = handler_of,
                                           .settled = sweep,
                                           .static_ended = static_ended};
    static const struct static_pods_ops static_ops = {.ready = manifests_read};
    static const struct informer_ops node_ops = {.changed = node_changed};
    static const struct informer_ops service_ops = {
        .changed = service_changed, .deleted = service_deleted, .synced = services_synced};
    struct workers_config c = {.loop = k->loop,
                               .client = k->client,
                               .runtime = k->runtime,
                               .recorder = k->recorder,
                               .objects = k->objects,
                               .volumes = k->volumes,
                               .node = &k->node,
                               .root_dir = k->cfg->root_dir,
                               .node_name = k->cfg->node_name,
                               .host_ip = k->ip,
                               .runtime_name = k->runtime_name,
                               .parallel_pulls = k->cfg->parallel_pulls,
                               .pids_max = k->cfg->pod_pids_limit};
    CLEANUP_FREE char *selector = xasprintf("metadata.name=%s", k->cfg->node_name);
    k->pods = workers_new(&c, &ops, k);
    if (k->serve) {
        serve_set_pods(k->serve, k->pods, k->volumes, k->node_status);
    }
    start_rotation(k);
    struct eviction_config ec = {.loop = k->loop,
                                 .pods = k->pods,
                                 .cfg = k->cfg,
                                 .node = &k->node,
                                 .status = k->node_status,
                                 .image_dir = image_dir_of,
                                 .reclaim = reclaim,
                                 .ctx = k};
    struct image_collector_config ic = {.loop = k->loop,
                                        .runtime = k->runtime,
                                        .recorder = k->recorder,
                                        .pods = k->pods,
                                        .cfg = k->cfg,
                                        .node = node_of,
                                        .ctx = k};
    k->collector = image_collector_new(&ic);
    k->eviction = eviction_new(&ec);
    start_shutdown(k);
    struct static_pods_config sc = {.loop = k->loop,
                                    .client = k->client,
                                    .recorder = k->recorder,
                                    .workers = k->pods,
                                    .cfg = k->cfg};
    k->static_pods = static_pods_new(&sc, &static_ops, k);
    k->service_informer = informer_new(k->client, k->loop, "v1", "services", NULL, &service_ops, k);
    static const struct informer_ops class_ops = {0};
    k->class_informer =
        informer_new(k->client, k->loop, "node.k8s.io/v1", "runtimeclasses", NULL, &class_ops, k);
    informer_set_optional(k->class_informer);
    k->node_informer = informer_new(k->client, k->loop, "v1", "nodes", selector, &node_ops, k);
    start_storage(k);
}

static void ask_status(void *ctx);

static void version_read(void *ctx, int error, const char *text, const struct runtime_version *v)
{
    struct kubelet *k = ctx;
    k->version = NULL;
    if (error < 0) {
        loop_timer_arm(k->status_timer, RETRY_MS);
        return;
    }
    CLEANUP_FREE char *full = xasprintf("%s://%s", v->name, v->version);
    node_status_set_runtime(k->node_status, full);
    if (!k->runtime_name) {
        k->runtime_name = xstrdup(v->name);
        log_info("the container runtime answers", "runtime=%s", full);
        start_pods(k);
    }
    ask_status(k);
}

static void status_read(void *ctx, int error, const char *text, const struct runtime_status *s)
{
    struct kubelet *k = ctx;
    CLEANUP_FREE char *message = NULL;
    k->status = NULL;
    if (shutdown_is_under_way(k->shutdown)) {
        message = xstrdup(SHUTDOWN_NODE_MESSAGE);
    } else if (error < 0) {
        message = xasprintf("container runtime is down: %s", text);
    } else if (s->runtime_message || s->runtime_reason) {
        message = xasprintf("container runtime not ready: RuntimeReady=false reason:%s message:%s",
                            s->runtime_reason ? s->runtime_reason : "",
                            s->runtime_message ? s->runtime_message : "");
    } else if (s->network_message || s->network_reason) {
        message = xasprintf(
            "container runtime network not ready: NetworkReady=false reason:%s message:%s",
            s->network_reason ? s->network_reason : "",
            s->network_message ? s->network_message : "");
    }
    node_status_set_trouble(k->node_status, message);
    loop_timer_arm(k->status_timer, message ? RETRY_MS : STATUS_MS);
}

static void ask_status(void *ctx)
{
    struct kubelet *k = ctx;
    if (k->version || k->status) {
        return;
    }
    if (!k->runtime_name) {
        k->version = runtime_version(k->runtime, version_read, k);
    } else {
        k->status = runtime_status(k->runtime, status_read, k);
    }
}

static int by_size(const void *a, const void *b)
{
    const struct runtime_image *const *x = a, *const *y = b;
    return (*x)->size < (*y)->size ? 1 : (*x)->size > (*y)->size ? -1 : 0;
}

static void images_read(void *ctx, int error, const char *text, const struct runtime_image *v,
                        size_t n)
{
    struct kubelet *k = ctx;
    k->list_images = NULL;
    loop_timer_arm(k->images_timer, error < 0 ? STATUS_MS : IMAGES_MS);
    if (error < 0) {
        return;
    }
    const struct runtime_image **sorted = xcalloc(n + 1, sizeof *sorted);
    for (size_t i = 0; i < n; i++) {
        sorted[i] = &v[i];
    }
    qsort(sorted, n, sizeof *sorted, by_size);
    struct json *images = json_array();
    for (size_t i = 0; i < n && i < IMAGES_MAX; i++) {
        struct json *image = json_append(images, json_object());
        struct json *names = json_set(image, "names", json_array());
        const struct runtime_texts *lists[] = {&sorted[i]->digests, &sorted[i]->tags};
        for (size_t l = 0; l < ARRAY_SIZE(lists); l++) {
            for (size_t t = 0; t < lists[l]->n && json_count(names) < IMAGE_NAMES_MAX; t++) {
                json_append(names, json_string(lists[l]->v[t]));
            }
        }
        json_set_int(image, "sizeBytes", (int64_t) sorted[i]->size);
    }
    free(sorted);
    node_status_set_images(k->node_status, images);
}

static void ask_images(void *ctx)
{
    struct kubelet *k = ctx;
    if (!k->list_images) {
        k->list_images = runtime_list_images(k->runtime, images_read, k);
    }
}

static void runtime_changed(void *ctx, const char *sandbox_id, const char *container_id)
{
    struct kubelet *k = ctx;
    if (k->pods) {
        workers_runtime_changed(k->pods, sandbox_id, container_id);
    }
}

static void runtime_resync(void *ctx)
{
    struct kubelet *k = ctx;
    if (k->pods) {
        workers_runtime_resync(k->pods);
    }
}

static void runtime_connection(void *ctx, const char *lost_reason)
{
    struct kubelet *k = ctx;
    if (lost_reason) {
        log_warn("the container runtime is away; pods go on", "error=\"%s\"", lost_reason);
        k->runtime_lost = true;
        if (k->runtime_name) {
            CLEANUP_FREE char *text = xasprintf("container runtime is down: %s", lost_reason);
            node_status_set_trouble(k->node_status, text);
        }
        return;
    }
    if (k->runtime_lost) {
        log_info("the container runtime is back");
    }
    k->runtime_lost = false;
    loop_timer_arm(k->status_timer, 0);
}

/* ---- start and end ---- */

static void on_term(void *ctx)
{
    struct kubelet *k = ctx;
    log_info("stopping; containers go on");
    notify_manager("STOPPING=1");
    loop_stop(k->loop);
}

static void on_hup(void *ctx)
{
    struct kubelet *k = ctx;
    CLEANUP(kubelet_config_done) struct kubelet_config c;
    struct err e = {0};
    kubelet_config_init(&c);
    if (!k->config_path) {
        return;
    }
    if (kubelet_config_load(&c, k->config_path, &e) < 0 ||
        config_file_set_log(c.log_level, c.log_format, &e) < 0) {
        log_error("cannot read the configuration again", "error=\"%s\"", e.text);
        return;
    }
    log_info("log levels read again", "logLevel=%s", c.log_level ? c.log_level : "(unchanged)");
}

static int take_root_dir(struct kubelet *k, struct err *e)
{
    const char *dir = k->cfg->root_dir;
    bool moved = false;
    int r = root_dir_take(dir, streq(dir, ROOT_DIR_DEFAULT) ? ROOT_DIR_OF_0_1 : NULL, &k->lock_fd,
                          &moved, e);
    if (moved) {
        log_info("root directory moved", "from=%s to=%s", ROOT_DIR_OF_0_1, dir);
    }
    return r;
}

static int find_address(struct kubelet *k, struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    uint32_t ip;
    if (k->cfg->node_ip) {
        k->ip = xstrdup(k->cfg->node_ip);
        return 0;
    }
    int err = rtnl_open(&r, e);
    err = err < 0 ? err : host_default_address(r, &ip, e);
    if (err < 0) {
        return err_prefix(e, "nodeIP is not set");
    }
    k->ip = xstrdup(IP4_TEXT(ip));
    return 0;
}

static int connect_master(struct kubelet *k, struct err *e)
{
    struct kubeconfig c = {0};
    int r = kubeconfig_load(k->cfg->kubeconfig, &c, e);
    if (r < 0) {
        return err_prefix(e, "masterKubeConfig");
    }
    c.more_servers = k->cfg->servers ? xstrdup(k->cfg->servers) : NULL;
    r = api_client_with(k->loop, &c, "tenet-kubelet/" TENET_VERSION, &k->client, e);
    k->client_ca = TAKE(c.ca);
    kubeconfig_done(&c);
    return r < 0 ? err_prefix(e, "masterKubeConfig") : 0;
}

/* Takes a list with commas apart. */
static struct runtime_texts split(const char *list, struct arena *a)
{
    size_t n = list && *list ? 1 : 0;
    for (const char *p = list; n && *p; p++) {
        n += *p == ',';
    }
    const char **v = ARENA_NEW(a, const char *, n);
    for (size_t i = 0; i < n; i++) {
        size_t size = strcspn(list, ",");
        v[i] = arena_strndup(a, list, size);
        list += size + 1;
    }
    return (struct runtime_texts){v, n};
}

static int64_t reserved(const struct kubelet_config *c, const char *name)
{
    return kubelet_config_reserved(c->kube_reserved, name) +
           kubelet_config_reserved(c->system_reserved, name);
}

static void describe_node(struct kubelet *k)
{
    const struct kubelet_config *c = k->cfg;
    struct arena *a = &k->arena;
    struct host_facts h;
    host_read(c->root_dir, &h);
    k->node = (struct pod_node){
        .log_dir = c->log_dir,
        .cgroup_root = c->cgroup_root,
        .systemd = streq(c->cgroup_driver, "systemd"),
        .memory_capacity = h.memory_bytes,
        .pods_cpu = MAX(h.milli_cpu - reserved(c, "cpu"), INT64_C(0)),
        .pods_memory = MAX(h.memory_bytes - reserved(c, "memory"), INT64_C(0)),
        .cluster_domain = c->cluster_domain,
        .cluster_dns = split(c->cluster_dns, a),
        .security = {.seccomp_dir = c->seccomp_dir,
                     .allowed_sysctls = (const char *const *) c->allowed_sysctls},
    };
    host_resolver(c->resolv_conf, a, &k->node.dns_servers, &k->node.dns_searches,
                  &k->node.dns_options);
}

static int start(struct kubelet *k, struct err *e)
{
    static const struct runtime_events events = {
        .changed = runtime_changed, .resync = runtime_resync, .connection = runtime_connection};
    k->loop = loop_new();
    int r = geteuid() == 0 ? 0 : err_set(e, -EPERM, "the kubelet must be run by root");
    r = r < 0 ? r : take_root_dir(k, e);
    r = r < 0 ? r : find_address(k, e);
    r = r < 0 ? r : connect_master(k, e);
    r = r < 0 ? r : dir_make(k->cfg->log_dir, 0755, e);
    if (r < 0) {
        return r;
    }
    describe_node(k);
    k->sigterm = loop_signal_new(k->loop, SIGTERM, on_term, k);
    k->sigint = loop_signal_new(k->loop, SIGINT, on_term, k);
    k->sighup = loop_signal_new(k->loop, SIGHUP, on_hup, k);
    k->recorder = recorder_new(k->loop, k->client, "kubelet");
    recorder_set_delay(k->recorder, EVENT_DELAY_MS);
    k->drivers = csi_drivers_new();
    static const struct pod_objects_ops object_ops = {.changed = object_changed};
    static const struct volumes_ops volumes_ops = {.changed = volumes_changed,
                                                   .allocatable = allocatable_of,
                                                   .in_use_changed = in_use_changed};
    struct volumes_config vc = {.root_dir = k->cfg->root_dir,
                                .cluster_domain = k->cfg->cluster_domain,
                                .node_name = k->cfg->node_name,
                                .drivers = k->drivers};
    k->objects = pod_objects_new(k->loop, k->client, &object_ops, k);
    r = volumes_new(k->loop, k->client, k->objects, &vc, &volumes_ops, k, &k->volumes, e);
    if (r < 0) {
        return r;
    }
    k->status_timer = loop_timer_new(k->loop, ask_status, k);
    k->images_timer = loop_timer_new(k->loop, ask_images, k);
    r = runtime_open(k->loop, k->cfg->runtime_kind, k->cfg->runtime_endpoint, &events, k,
                     &k->runtime, e);
    if (r == 0 && !streq(k->cfg->server_address, "none")) {
        struct serve_config sc = {.loop = k->loop,
                                  .client = k->client,
                                  .runtime = k->runtime,
                                  .cfg = k->cfg,
                                  .ip = k->ip,
                                  .client_ca = k->client_ca};
        r = serve_new(&sc, &k->serve, e);
    }
    if (r < 0) {
        return r;
    }
    struct node_status_config nc = {.loop = k->loop,
                                    .client = k->client,
                                    .cfg = k->cfg,
                                    .ip = k->ip,
                                    .port = k->serve ? serve_port(k->serve) : 0};
    k->node_status = node_status_new(&nc);
    k->lease = k->cfg->node_lease ? lease_new(k->loop, k->client, k->cfg->node_name) : NULL;
    log_info("starting", "node=%s ip=%s master=%s runtime=%s version=" TENET_VERSION,
             k->cfg->node_name, k->ip, api_client_server(k->client), k->cfg->runtime_endpoint);
    loop_timer_arm(k->status_timer, 0);
    loop_timer_arm(k->images_timer, 0);
    k->watchdog = watchdog_new(k->loop);
    /* Not when the master and the runtime answer: an upgrade would wait for another host. */
    notify_manager("READY=1\nSTATUS=waits for the master and the container runtime");
    return 0;
}

static void release(struct kubelet *k)
{
    if (k->rotation) {
        log_rotation_free(k->rotation);
    }
    serve_free(k->serve);
    informer_free(k->class_informer);
    informer_free(k->node_informer);
    informer_free(k->pod_informer);
    informer_free(k->service_informer);
    shutdown_free(k->shutdown);
    eviction_free(k->eviction);
    image_collector_free(k->collector);
    static_pods_free(k->static_pods);
    workers_free(k->pods);
    storage_free(k->storage);
    csi_registry_free(k->registry);
    volumes_free(k->volumes);
    csi_drivers_unref(k->drivers);
    pod_objects_free(k->objects);
    if (k->runtime) {
        runtime_free(k->runtime);
    }
    lease_free(k->lease);
    node_status_free(k->node_status);
    recorder_free(k->recorder);
    api_client_free(k->client);
    loop_timer_free(k->status_timer);
    loop_timer_free(k->images_timer);
    watchdog_free(k->watchdog);
    loop_signal_free(k->sigterm);
    loop_signal_free(k->sigint);
    loop_signal_free(k->sighup);
    loop_free(k->loop);
    json_free(k->services);
    arena_done(&k->arena);
    free(k->runtime_name);
    free(k->client_ca);
    free(k->ip);
    fd_close(k->lock_fd);
}

int kubelet_run(const struct kubelet_config *cfg, const char *config_path, struct err *e)
{
    struct kubelet k = {.cfg = cfg, .config_path = config_path, .lock_fd = -1};
    int r = start(&k, e);
    if (r == 0) {
        loop_run(k.loop);
        r = k.result;
    }
    release(&k);
    return r;
}
