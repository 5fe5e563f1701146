/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/agent/serve.h"

#include "api/requests.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "kubelet/server/serving_cert.h"
#include "kubelet/server/stats.h"
#include "net/loop/process.h"
#include "pod/observed.h"
#include "pod/resources.h"
#include "pod/usage.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/sysinfo.h>

LOG_MODULE("kubelet");

struct serve {
    struct serve_config c;
    struct kubelet_server *server;
    struct serving_cert *cert;
    struct stats *stats;
    struct workers *pods;
    struct volumes *volumes;
    const struct node_status *node;
};

/* ---- pods and containers ---- */

static int find_pod(const struct serve *s, const char *namespace, const char *name, const char *uid,
                    const struct json **ret_pod, const struct json **ret_status, struct err *e)
{
    if (!s->pods || !workers_find(s->pods, namespace, name, uid, ret_pod, ret_status)) {
        return err_set(e, -ENOENT, "pod \"%s\" not found in namespace \"%s\"", name, namespace);
    }
    return 0;
}

/* The id behind "containerd://"; NULL: there is none. */
static const char *bare_id(const char *text)
{
    const char *slash = strrchr(text, '/');
    return slash ? slash + 1 : NULL;
}

static int find_container(void *ctx, const char *namespace, const char *name, const char *uid,
                          const char *container, bool previous, struct kubelet_container *ret,
                          struct err *e)
{
    const struct serve *s = ctx;
    const struct json *pod, *status;
    int r = find_pod(s, namespace, name, uid, &pod, &status, e);
    if (r < 0) {
        return r;
    }
    const struct json *spec = pod_container_named(pod, container, NULL);
    if (!spec) {
        return err_set(e, -ENOENT, "container %s is not valid for pod %s", container, name);
    }
    const struct pod_observed *o = workers_observed(s->pods, pod_uid(pod));
    const struct json *told = pod_find_status(status, container);
    const struct observed_container *c = pod_observed_newest(o, container);
    if (previous) {
        const char *id = json_path_string(told, "lastState", "terminated", "containerID", NULL);
        c = id ? pod_observed_find(o, bare_id(id)) : NULL;
        if (!c) {
            return err_set(e, -ENOENT,
                           "previous terminated container \"%s\" in pod \"%s\" not found",
                           container, name);
        }
    }
    *ret = (struct kubelet_container){
        .id = c ? c->id : NULL,
        .running = c && c->state == RUNTIME_RUNNING,
        .tty = json_get_bool(json_get(spec, "tty"), false),
        .stdin = json_get_bool(json_get(spec, "stdin"), false),
        .stdin_once = json_get_bool(json_get(spec, "stdinOnce"), false),
        .log_path = c && *c->log_path ? c->log_path : NULL,
        .waiting = c ? NULL : json_path_string(told, "state", "waiting", "reason", NULL),
    };
    return 0;
}

static int find_sandbox(void *ctx, const char *namespace, const char *name, const char *uid,
                        const char **ret_id, struct err *e)
{
    const struct serve *s = ctx;
    const struct json *pod, *status;
    int r = find_pod(s, namespace, name, uid, &pod, &status, e);
    if (r < 0) {
        return r;
    }
    const struct observed_sandbox *b =
        pod_observed_sandbox(workers_observed(s->pods, pod_uid(pod)));
    if (!b || !b->ready) {
        return err_set(e, -ENOENT, "pod \"%s\" has no sandbox that is ready", name);
    }
    *ret_id = b->id;
    return 0;
}

struct lister {
    const struct serve *serve;
    struct json *items;
    bool running; /* Only pods with a running container. */
};

static bool has_running(const struct pod_observed *o)
{
    for (size_t i = 0; o && i < o->n_containers; i++) {
        if (o->containers[i].state == RUNTIME_RUNNING) {
            return true;
        }
    }
    return false;
}

static void add_pod(void *ctx, const struct json *pod, const struct json *status)
{
    struct lister *l = ctx;
    if (l->running && !has_running(workers_observed(l->serve->pods, pod_uid(pod)))) {
        return;
    }
    struct json *copy = json_append(l->items, json_clone(pod));
    if (status) {
        json_set(copy, "status", json_clone(status));
    }
}

static struct json *list_pods(void *ctx, bool running)
{
    const struct serve *s = ctx;
    struct json *o = json_object();
    json_set_string(o, "kind", "PodList");
    json_set_string(o, "apiVersion", "v1");
    json_ensure_object(o, "metadata");
    struct lister l = {.serve = s, .items = json_ensure_array(o, "items"), .running = running};
    if (s->pods) {
        workers_each(s->pods, add_pod, &l);
    }
    return o;
}

static struct json *all_pods(void *ctx)
{
    return list_pods(ctx, false);
}

static struct json *running_pods(void *ctx)
{
    return list_pods(ctx, true);
}

/* ---- health, metrics, usage ---- */

static const char *healthz(void *ctx)
{
    const struct serve *s = ctx;
    return s->pods ? NULL : "the container runtime has not answered yet";
}

static void write_starts(const struct prom_metric *m, const void *facts, struct strbuf *out)
{
    const struct workers_stats *s = facts;
    prom_histogram_write(&s->start_ns, m->name, "", out);
}

#define VALUE(name, kind, text, member) PROM_VALUE(name, kind, text, struct workers_stats, member)

static const struct prom_metric rows[] = {
    VALUE("tenet_kubelet_pods", "gauge", "Pods that this node has.", pods),
    VALUE("tenet_kubelet_running_containers", "gauge", "Containers that run.", running),
    VALUE("tenet_kubelet_image_pulls_in_progress", "gauge", "Images that are being pulled.",
          pulling),
    VALUE("tenet_kubelet_container_starts_total", "counter", "Containers that were started.",
          starts),
    VALUE("tenet_kubelet_container_restarts_total", "counter",
          "Containers that were started again after an end.", restarts),
    VALUE("tenet_kubelet_container_kills_total", "counter", "Containers that were ended.", kills),
    VALUE("tenet_kubelet_sandboxes_total", "counter", "Sandboxes of pods that were made.",
          sandboxes),
    VALUE("tenet_kubelet_action_errors_total", "counter",
          "Actions on sandboxes and containers that failed.", action_errors),
    VALUE("tenet_kubelet_status_writes_total", "counter",
          "Requests to the API server with the status of a pod.", status_writes),
    VALUE("tenet_kubelet_status_errors_total", "counter",
          "Requests about a pod that the API server refused or did not answer.", status_errors),
    VALUE("tenet_kubelet_probes_total", "counter", "Probes of containers.", probes),
    VALUE("tenet_kubelet_probe_failures_total", "counter", "Probes that failed.", probe_failures),
    VALUE("tenet_kubelet_image_pulls_total", "counter", "Pulls of images.", image_pulls),
    VALUE("tenet_kubelet_image_pull_failures_total", "counter", "Pulls of images that failed.",
          image_failures),
    PROM_WRITTEN("tenet_kubelet_pod_start_seconds", "histogram",
                 "Seconds from when a pod was first seen until all its containers ran.", NULL,
                 write_starts),
};

const struct prom_table kubelet_metrics = {.rows = rows, .n = ARRAY_SIZE(rows)};

struct probe_writer {
    struct strbuf *out;
    const char *name;
};

static void write_probe(void *ctx, const struct workers_probe *p)
{
    const struct probe_writer *w = ctx;
    const struct {
        const char *result;
        uint64_t n;
    } counts[] = {{"successful", p->successful}, {"failed", p->failed}, {"unknown", p->unknown}};
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
        if (counts[i].n) {
            strbuf_addf(w->out,
                        "%s{container=\"%s\",namespace=\"%s\",pod=\"%s\",pod_uid=\"%s\","
                        "probe_type=\"%s\",result=\"%s\"} %" PRIu64 "\n",
                        w->name, p->container, p->namespace, p->pod, p->uid, p->type,
                        counts[i].result, counts[i].n);
        }
    }
}

static void write_probes(const struct prom_metric *m, const void *facts, struct strbuf *out)
{
    struct probe_writer w = {.out = out, .name = m->name};
    const struct workers *pods = facts;
    if (pods) {
        workers_each_probe(pods, write_probe, &w);
    }
}

static const struct prom_metric probe_rows[] = {
    PROM_WRITTEN("prober_probe_total", "counter",
                 "Probes of the containers that run, by their result.",
                 "container, namespace, pod, pod_uid, probe_type, result", write_probes),
};

const struct prom_table kubelet_probe_metrics = {.rows = probe_rows, .n = ARRAY_SIZE(probe_rows)};

static void metrics(void *ctx, enum kubelet_metrics which, struct strbuf *out)
{
    const struct serve *s = ctx;
    struct workers_stats stats = {0};
    switch (which) {
    case KUBELET_METRICS_RESOURCE:
        stats_write_resource(s->stats, out);
        break;
    case KUBELET_METRICS_CADVISOR:
        stats_write_cadvisor(s->stats, out);
        break;
    case KUBELET_METRICS_PROBES:
        prom_write(&kubelet_probe_metrics, s->pods, out);
        break;
    case KUBELET_METRICS_OWN:
        if (s->pods) {
            workers_get_stats(s->pods, &stats);
        }
        prom_write(&kubelet_metrics, &stats, out);
        stats_write_volumes(s->stats, out);
        prom_process(out);
        break;
    }
}

static struct json *summary(void *ctx, bool only_cpu_and_memory)
{
    const struct serve *s = ctx;
    return stats_summary(s->stats, only_cpu_and_memory);
}

static void get_node_stats(void *ctx, struct stats_node *ret)
{
    const struct serve *s = ctx;
    struct host_facts h = s->node ? *node_status_host(s->node) : (struct host_facts){0};
    struct sysinfo i;
    *ret = (struct stats_node){
        .started_ms = sysinfo(&i) == 0 ? time_wall_ms() - (int64_t) i.uptime * 1000 : 0,
        .memory_bytes = h.memory_bytes,
        .milli_cpu = h.milli_cpu,
        .disk_bytes = h.disk_bytes,
        .disk_free = h.disk_free,
        .inodes = h.inodes,
        .inodes_free = h.inodes_free,
        .pids = h.pids,
        .pids_max = h.pids_max};
}

struct stats_walk {
    const struct serve *serve;
    void (*add)(void *stats, const struct stats_pod *pod);
    void *stats;
};

/* The path of the pod's group in a hierarchy. */
static const char *group_of(const struct kubelet_config *cfg, const struct json *pod,
                            struct arena *a)
{
    bool systemd = streq(cfg->cgroup_driver, "systemd");
    const char *group = pod_cgroup_parent(pod, cfg->cgroup_root, systemd, a);
    return systemd ? pod_slice_path(group, a) : group;
}

struct volume_list {
    struct stats_volume *list;
    size_t n, cap;
    struct arena *arena;
};

static void add_volume(void *ctx, const struct volume_usage *u)
{
    struct volume_list *l = ctx;
    l->list = grow(l->list, &l->cap, l->n + 1, sizeof *l->list);
    l->list[l->n++] = (struct stats_volume){.name = arena_strdup(l->arena, u->volume),
                                            .claim = arena_strdup(l->arena, u->claim),
                                            .time_ms = u->time_ms,
                                            .capacity = u->capacity,
                                            .available = u->available,
                                            .used = u->used,
                                            .inodes = u->inodes,
                                            .inodes_free = u->inodes_free,
                                            .inodes_used = u->inodes_used};
}

static void add_usage(void *ctx, const struct json *pod, const struct json *status)
{
    const struct stats_walk *w = ctx;
    CLEANUP_ARENA struct arena a = {0};
    const struct pod_observed *o = workers_observed(w->serve->pods, pod_uid(pod));
    const struct observed_sandbox *sandbox = o ? pod_observed_sandbox(o) : NULL;
    if (!sandbox || !sandbox->ready) {
        return;
    }
    struct stats_container *list = ARENA_NEW(&a, struct stats_container, o->n_containers + 1);
    struct stats_pod p = {.namespace = pod_namespace(pod),
                          .name = pod_name(pod),
                          .uid = pod_uid(pod),
                          .cgroup = group_of(w->serve->c.cfg, pod, &a),
                          .sandbox = sandbox->id,
                          .host_network = pod_uses_host_network(pod),
                          .started_ms = sandbox->created_ns / 1000000,
                          .containers = list};
    (void) time_parse(json_get_text(status, "startTime"), &p.started_ms);
    for (size_t i = 0; i < o->n_containers; i++) {
        const struct observed_container *c = &o->containers[i];
        if (c->state == RUNTIME_RUNNING) {
            list[p.n_containers++] = (struct stats_container){
                .name = c->name,
                .id = c->id,
                .image = c->image,
                .log_path = c->log_path,
                .started_ms = (c->started_ns ? c->started_ns : c->created_ns) / 1000000,
                .memory_limit = api_container_amount(pod_container_named(pod, c->name, NULL),
                                                     "limits", "memory", -1)};
        }
    }
    struct volume_list volumes = {.arena = &a};
    if (w->serve->volumes) {
        volumes_each_usage(w->serve->volumes, pod_uid(pod), add_volume, &volumes);
    }
    p.volumes = volumes.list;
    p.n_volumes = volumes.n;
    w->add(w->stats, &p);
    free(volumes.list);
}

static void each_pod_stats(void *ctx, void (*add)(void *stats, const struct stats_pod *pod),
                           void *stats)
{
    struct stats_walk w = {.serve = ctx, .add = add, .stats = stats};
    if (w.serve->pods) {
        workers_each(w.serve->pods, add_usage, &w);
    }
}

/* The values of all options by their paths. */
static struct json *config(void *ctx)
{
    const struct serve *s = ctx;
    struct json *o = json_object(), *k = json_ensure_object(o, "kubeletconfig");
    json_set_string(k, "kind", kubelet_options.kind);
    json_set_string(k, "containerRuntimeEndpoint", s->c.cfg->runtime_endpoint);
    json_set_string(k, "clusterDomain", s->c.cfg->cluster_domain);
    json_set_string(k, "cgroupDriver", s->c.cfg->cgroup_driver);
    json_set_string(k, "cgroupRoot", s->c.cfg->cgroup_root);
    json_set_string(k, "podLogsDir", s->c.cfg->log_dir);
    json_set_int(k, "maxPods", s->c.cfg->max_pods);
    json_set_int(k, "maxParallelImagePulls", s->c.cfg->parallel_pulls);
    json_set_int(k, "podPidsLimit", s->c.cfg->pod_pids_limit);
    return o;
}

/* ---- its life ---- */

static void certificate_changed(void *ctx)
{
    struct serve *s = ctx;
    struct err e = {0};
    if (s->server && kubelet_server_reload(s->server, &e) < 0) {
        log_error("the server's certificate was not read again", "error=\"%s\"", e.text);
    }
}

/* Keeps the authority of clients in a file, from which the server reads it. */
static int write_authority(const struct serve_config *c, const char *path, struct err *e)
{
    return file_write_atomic(path, c->client_ca, strlen(c->client_ca), 0600, e);
}

int serve_new(const struct serve_config *c, struct serve **ret, struct err *e)
{
    static const struct kubelet_server_ops ops = {.find_container = find_container,
                                                  .find_sandbox = find_sandbox,
                                                  .pods = all_pods,
                                                  .running_pods = running_pods,
                                                  .healthz = healthz,
                                                  .metrics = metrics,
                                                  .stats = summary,
                                                  .config = config};
    struct serve *s = NEW(struct serve);
    s->c = *c;
    struct stats_config usage = {.loop = c->loop,
                                 .node = c->cfg->node_name,
                                 .get_node = get_node_stats,
                                 .each_pod = each_pod_stats,
                                 .ctx = s};
    s->stats = stats_new(&usage);
    CLEANUP_FREE char *dir = xasprintf("%s/pki", c->cfg->root_dir);
    CLEANUP_FREE char *ca = xasprintf("%s/client-ca.crt", dir);
    struct serving_cert_config sc = {.api = c->client,
                                     .node = c->cfg->node_name,
                                     .dir = dir,
                                     .addresses = &s->c.ip,
                                     .n_addresses = 1,
                                     .changed = certificate_changed,
                                     .ctx = s};
    struct kubelet_server_config kc = {
        .address = c->cfg->server_address,
        .healthz = streq(c->cfg->healthz_address, "none") ? NULL : c->cfg->healthz_address,
        .node = c->cfg->node_name,
        .client_ca = c->client_ca ? ca : NULL,
        .cert = c->cfg->tls_cert,
        .key = c->cfg->tls_key,
        .log_dir = "/var/log",
        .api = c->client,
        .runtime = c->runtime};
    int r = dir_make(dir, 0700, e);
    r = r < 0 || !c->client_ca ? r : write_authority(c, ca, e);
    if (r == 0 && !kc.cert) {
        r = serving_cert_new(c->loop, &sc, &s->cert, e);
        kc.cert = r < 0 ? NULL : serving_cert_file(s->cert);
        kc.key = r < 0 ? NULL : serving_cert_key_file(s->cert);
    }
    r = r < 0 ? r : kubelet_server_new(c->loop, &kc, &ops, s, &s->server, e);
    if (r < 0) {
        serve_free(s);
        return err_prefix(e, "serverAddress %s", c->cfg->server_address);
    }
    *ret = s;
    return 0;
}

struct serve *serve_free(struct serve *s)
{
    if (s) {
        if (s->server) {
            kubelet_server_free(s->server);
        }
        if (s->cert) {
            serving_cert_free(s->cert);
        }
        stats_free(s->stats);
        free(s);
    }
    return NULL;
}

uint16_t serve_port(const struct serve *s)
{
    return (uint16_t) kubelet_server_port(s->server);
}

void serve_set_pods(struct serve *s, struct workers *pods, struct volumes *volumes,
                    const struct node_status *node)
{
    s->pods = pods;
    s->volumes = volumes;
    s->node = node;
}
