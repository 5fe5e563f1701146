/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/agent/node_status.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/said.h"
#include "base/timeutil.h"

LOG_MODULE("kubelet");

#define PERIOD_MS 10000
#define RETRY_MS 1000
#define HEARTBEAT_MS 300000
struct node_status {
    struct node_status_config c;
    char *path, *status_path, *ip, *runtime, *trouble;
    bool has_trouble; /* node_status_set_trouble was called. */
    struct json *images, *hugepages, *allocatable, *volumes;
    struct host_facts host;
    bool pressure[EVICT_CONDITIONS];
    struct json *stored; /* The conditions as last written, for the times of transitions. */
    struct json *sent;   /* The last status that was written, without times. */
    uint64_t sent_ms;
    bool registered;
    struct loop_timer *timer;
    struct api_call *call;
    struct json *pending, *pending_conditions;
    struct said failure;
};

static struct json *bytes_text(int64_t n)
{
    return n % 1024 == 0 ? json_stringf("%lldKi", (long long) (n / 1024))
                         : json_stringf("%lld", (long long) n);
}

static struct json *cpu_text(int64_t milli)
{
    return milli % 1000 == 0 ? json_stringf("%lld", (long long) (milli / 1000))
                             : json_stringf("%lldm", (long long) milli);
}

void node_status_amounts(const struct host_facts *h, const struct kubelet_config *cfg,
                         const struct json *hugepages, struct json **ret_capacity,
                         struct json **ret_allocatable)
{
    struct json *lists[2] = {json_object(), json_object()};
    struct evict_settings eviction;
    kubelet_config_eviction(cfg, &eviction);
    for (int i = 0; i < 2; i++) {
        bool rest = i == 1;
        int64_t cpu = 0, memory = 0, disk = 0;
        if (rest) {
            cpu = kubelet_config_reserved(cfg->kube_reserved, "cpu") +
                  kubelet_config_reserved(cfg->system_reserved, "cpu");
            memory = kubelet_config_reserved(cfg->kube_reserved, "memory") +
                     kubelet_config_reserved(cfg->system_reserved, "memory") +
                     evict_amount_of(&eviction.hard[EVICT_MEMORY], h->memory_bytes);
            disk = kubelet_config_reserved(cfg->kube_reserved, "ephemeral-storage") +
                   kubelet_config_reserved(cfg->system_reserved, "ephemeral-storage") +
                   evict_amount_of(&eviction.hard[EVICT_NODEFS], h->disk_bytes);
        }
        struct json *o = lists[i];
        json_set(o, "cpu", cpu_text(MAX(h->milli_cpu - cpu, INT64_C(0))));
        json_set(o, "ephemeral-storage", bytes_text(MAX(h->disk_bytes - disk, INT64_C(0))));
        for (size_t k = 0; k < json_count(hugepages); k++) {
            json_set(o, json_key_at(hugepages, k), json_clone(json_at(hugepages, k)));
        }
        json_set(o, "memory", bytes_text(MAX(h->memory_bytes - memory, INT64_C(0))));
        json_set(o, "pods", json_stringf("%u", cfg->max_pods));
    }
    *ret_capacity = lists[0];
    *ret_allocatable = lists[1];
}

/* ---- the status ---- */

static void add_condition(struct json *list, const char *type, bool on, const char *reason,
                          const char *message)
{
    struct json *c = json_append(list, json_object());
    json_set_string(c, "type", type);
    json_set_string(c, "status", on ? "True" : "False");
    json_set_string(c, "reason", reason);
    json_set_string(c, "message", message);
}

static struct json *make_conditions(const struct node_status *n)
{
    struct json *list = json_array();
    bool memory = n->pressure[EVICT_MEMORY_PRESSURE], disk = n->pressure[EVICT_DISK_PRESSURE];
    bool pids = n->pressure[EVICT_PID_PRESSURE];
    add_condition(list, "MemoryPressure", memory,
                  memory ? "KubeletHasInsufficientMemory" : "KubeletHasSufficientMemory",
                  memory ? "kubelet has insufficient memory available"
                         : "kubelet has sufficient memory available");
    add_condition(list, "DiskPressure", disk,
                  disk ? "KubeletHasDiskPressure" : "KubeletHasNoDiskPressure",
                  disk ? "kubelet has disk pressure" : "kubelet has no disk pressure");
    add_condition(
        list, "PIDPressure", pids, pids ? "KubeletHasInsufficientPID" : "KubeletHasSufficientPID",
        pids ? "kubelet has insufficient PID available" : "kubelet has sufficient PID available");
    add_condition(list, "Ready", !n->trouble, n->trouble ? "KubeletNotReady" : "KubeletReady",
                  n->trouble ? n->trouble : "kubelet is posting ready status");
    return list;
}

/* The status without the times of conditions. */
static struct json *make_status(struct node_status *n)
{
    struct json *s = json_object(), *capacity, *allocatable;
    host_read(n->c.cfg->root_dir, &n->host);
    node_status_amounts(&n->host, n->c.cfg, n->hugepages, &capacity, &allocatable);
    json_free(n->allocatable);
    n->allocatable = json_clone(allocatable);
    json_set(s, "capacity", capacity);
    json_set(s, "allocatable", allocatable);
    json_set(s, "conditions", make_conditions(n));
    struct json *addresses = json_set(s, "addresses", json_array());
    json_set_string(json_append(addresses, json_object()), "$patch", "replace");
    struct json *a = json_append(addresses, json_object());
    json_set_string(a, "type", "InternalIP");
    json_set_string(a, "address", n->ip);
    a = json_append(addresses, json_object());
    json_set_string(a, "type", "Hostname");
    json_set_string(a, "address", n->c.cfg->node_name);
    json_set(s, "nodeInfo", host_info(n->runtime));
    if (n->c.port) {
        struct json *endpoints = json_ensure_object(s, "daemonEndpoints");
        json_set_int(json_ensure_object(endpoints, "kubeletEndpoint"), "Port", n->c.port);
    }
    json_set(s, "images", n->images ? json_clone(n->images) : json_array());
    json_set(s, "volumesInUse", json_count(n->volumes) ? json_clone(n->volumes) : json_null());
    return s;
}

static const struct json *find_type(const struct json *list, const char *type)
{
    const struct json *c;
    JSON_FOREACH (c, list) {
        if (streq(json_get_text(c, "type"), type)) {
            return c;
        }
    }
    return NULL;
}

/* Adds the times to the conditions of 's'. */
static void add_times(const struct node_status *n, struct json *s)
{
    char now[TIME_TEXT_SIZE];
    struct json *c;
    time_format_s(time_wall_ms(), now);
    JSON_FOREACH (c, json_get(s, "conditions")) {
        const struct json *old = find_type(n->stored, json_get_text(c, "type"));
        bool same = old && streq(json_get_text(old, "status"), json_get_text(c, "status"));
        const char *turned = json_get_text(old, "lastTransitionTime");
        json_set_string(c, "lastHeartbeatTime", now);
        json_set_string(c, "lastTransitionTime", same && *turned ? turned : now);
    }
}

/* ---- bringing it there ---- */

static void step(void *ctx);

static void failed(struct node_status *n, const char *what, const char *text)
{
    if (said_is_news(&n->failure, text)) {
        log_warn(what, "node=%s error=\"%s\"", n->c.cfg->node_name, text);
    }
    loop_timer_arm(n->timer, RETRY_MS);
}

static void written(void *ctx, int error, const char *text, struct json *obj)
{
    struct node_status *n = ctx;
    n->call = NULL;
    if (error < 0) {
        n->pending = json_free(n->pending);
        n->pending_conditions = json_free(n->pending_conditions);
        failed(n, "the node's status was not written", text);
        return;
    }
    said_is_news(&n->failure, NULL);
    json_free(n->sent);
    n->sent = TAKE(n->pending);
    json_free(n->stored);
    n->stored = TAKE(n->pending_conditions);
    n->sent_ms = loop_now_ms(n->c.loop);
    loop_timer_arm(n->timer, PERIOD_MS);
}

static void write_status(struct node_status *n)
{
    struct json *status = make_status(n);
    uint64_t now = loop_now_ms(n->c.loop);
    /* Without a lease the heartbeat of the conditions is the only sign of life. */
    uint64_t heartbeat = n->c.cfg->node_lease ? HEARTBEAT_MS : PERIOD_MS;
    if (n->sent && json_equal(n->sent, status) && now - n->sent_ms < heartbeat) {
        json_free(status);
        loop_timer_arm(n->timer, PERIOD_MS);
        return;
    }
    CLEANUP(json_free) struct json *patch = json_object();
    n->pending = json_clone(status);
    add_times(n, status);
    n->pending_conditions = json_clone(json_get(status, "conditions"));
    json_set(patch, "status", status);
    n->call = api_request(n->c.client, "PATCH", n->status_path,
                          "application/strategic-merge-patch+json", patch, written, n);
}

static void created(void *ctx, int error, const char *text, struct json *obj)
{
    struct node_status *n = ctx;
    n->call = NULL;
    if (error < 0 && error != -EEXIST) {
        failed(n, "the node was not created", text);
        return;
    }
    log_info("node registered", "node=%s ip=%s", n->c.cfg->node_name, n->ip);
    n->registered = true;
    step(n);
}

static void read_back(void *ctx, int error, const char *text, struct json *obj)
{
    struct node_status *n = ctx;
    n->call = NULL;
    if (error == 0) {
        const struct json *conditions = json_path(obj, "status", "conditions", NULL);
        json_free(n->stored);
        n->stored = conditions ? json_clone(conditions) : NULL;
        n->registered = true;
        step(n);
        return;
    }
    if (error != -ENOENT) {
        failed(n, "the node cannot be read", text);
        return;
    }
    if (!n->c.cfg->register_node) {
        failed(n, "the node does not exist, and registerNode is false", text);
        return;
    }
    CLEANUP(json_free) struct json *node = json_object();
    json_set_string(node, "apiVersion", "v1");
    json_set_string(node, "kind", "Node");
    struct json *metadata = json_ensure_object(node, "metadata");
    json_set_string(metadata, "name", n->c.cfg->node_name);
    struct json *labels = json_ensure_object(metadata, "labels");
    json_set_string(labels, "kubernetes.io/hostname", n->c.cfg->node_name);
    json_set_string(labels, "kubernetes.io/os", "linux");
    json_set_string(labels, "kubernetes.io/arch", host_arch());
    n->call = api_request(n->c.client, "POST", "/api/v1/nodes", NULL, node, created, n);
}

static void step(void *ctx)
{
    struct node_status *n = ctx;
    if (n->call || !n->runtime || !n->has_trouble) {
        return;
    }
    if (!n->registered) {
        n->call = api_request(n->c.client, "GET", n->path, NULL, NULL, read_back, n);
        return;
    }
    write_status(n);
}

static void soon(struct node_status *n)
{
    if (n->runtime && !n->call) {
        loop_timer_arm(n->timer, 0);
    }
}

void node_status_set_runtime(struct node_status *n, const char *version)
{
    if (!streq_null(n->runtime, version)) {
        free(n->runtime);
        n->runtime = xstrdup(version);
        soon(n);
    }
}

void node_status_set_trouble(struct node_status *n, const char *message)
{
    if (!n->has_trouble || !streq_null(n->trouble, message)) {
        n->has_trouble = true;
        char *copy = message ? xstrdup(message) : NULL;
        free(n->trouble);
        n->trouble = copy;
        soon(n);
    }
}

void node_status_set_pressure(struct node_status *n, const bool pressure[EVICT_CONDITIONS])
{
    if (memcmp(n->pressure, pressure, sizeof n->pressure) != 0) {
        memcpy(n->pressure, pressure, sizeof n->pressure);
        soon(n);
    }
}

void node_status_set_images(struct node_status *n, struct json *images)
{
    json_free(n->images);
    n->images = images;
}

void node_status_set_volumes(struct node_status *n, struct json *names)
{
    bool same = json_equal(n->volumes, names);
    json_free(n->volumes);
    n->volumes = names;
    if (!same) {
        soon(n);
    }
}

const struct json *node_status_allocatable(const struct node_status *n)
{
    return n->allocatable;
}

const struct host_facts *node_status_host(const struct node_status *n)
{
    return &n->host;
}

bool node_status_is_registered(const struct node_status *n)
{
    return n->registered;
}

struct node_status *node_status_new(const struct node_status_config *c)
{
    struct node_status *n = NEW(struct node_status);
    n->c = *c;
    n->ip = xstrdup(c->ip);
    n->path = api_path("v1", "nodes", NULL, c->cfg->node_name, NULL);
    n->status_path = api_path("v1", "nodes", NULL, c->cfg->node_name, "status");
    n->hugepages = host_hugepages();
    n->timer = loop_timer_new(c->loop, step, n);
    json_free(make_status(n));
    return n;
}

struct node_status *node_status_free(struct node_status *n)
{
    if (n) {
        if (n->call) {
            api_call_cancel(n->call);
        }
        loop_timer_free(n->timer);
        json_free(n->images);
        json_free(n->volumes);
        json_free(n->hugepages);
        json_free(n->allocatable);
        json_free(n->stored);
        json_free(n->sent);
        json_free(n->pending);
        json_free(n->pending_conditions);
        said_done(&n->failure);
        free(n->path);
        free(n->status_path);
        free(n->ip);
        free(n->runtime);
        free(n->trouble);
        free(n);
    }
    return NULL;
}
