/* SPDX-License-Identifier: Apache-2.0 */
#include "pods_rig.h"

#include "net/loop/process.h"
#include "virtual_time.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* ---- the kubelet ---- */

static const struct json *services_of(void *ctx, bool now)
{
    struct pods_rig *r = ctx;
    return r->services;
}

static const struct json *allocatable_of(void *ctx)
{
    return NULL;
}

static void pod_changed(void *ctx, const char *key, const struct json *old, const struct json *obj)
{
    struct pods_rig *r = ctx;
    if (old && !streq(pod_uid(old), pod_uid(obj))) {
        workers_gone(r->workers, pod_uid(old));
    }
    workers_set(r->workers, obj);
}

static void pod_deleted(void *ctx, const char *key, const struct json *obj)
{
    struct pods_rig *r = ctx;
    workers_set(r->workers, obj);
    workers_gone(r->workers, pod_uid(obj));
}

static void pods_listed(void *ctx)
{
    struct pods_rig *r = ctx;
    workers_synced(r->workers);
}

static void runtime_changed(void *ctx, const char *sandbox_id, const char *container_id)
{
    struct pods_rig *r = ctx;
    if (r->workers) {
        workers_runtime_changed(r->workers, sandbox_id, container_id);
    }
}

static void runtime_resync(void *ctx)
{
    struct pods_rig *r = ctx;
    if (r->workers) {
        workers_runtime_resync(r->workers);
    }
}

static void object_changed(void *ctx, const char *uid)
{
    struct pods_rig *r = ctx;
    workers_objects_changed(r->workers, uid);
}

static void runtime_connection(void *ctx, const char *lost_reason)
{
}

/* What the agent's volumes_sweep does, without its threads, which know no virtual time: a kubelet
 * that was killed while it ended a pod leaves the pod's directory, and the next one may find no
 * other trace of the pod. */
static void sweep(void *ctx)
{
    struct pods_rig *r = ctx;
    CLEANUP_FREE char *pods = xasprintf("%s/pods", r->root);
    DIR *d = opendir(pods);
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        if (*e->d_name != '.' && !workers_observed(r->workers, e->d_name)) {
            CLEANUP_FREE char *path = xasprintf("%s/%s", pods, e->d_name);
            assert_int_equal(dir_remove(path, NULL), 0);
        }
    }
    if (d) {
        closedir(d);
    }
}

void pods_rig_start_kubelet(struct pods_rig *r)
{
    static const struct workers_ops ops = {
        .services = services_of, .allocatable = allocatable_of, .settled = sweep};
    static const struct runtime_events events = {
        .changed = runtime_changed, .resync = runtime_resync, .connection = runtime_connection};
    static const struct pod_objects_ops object_ops = {.changed = object_changed};
    static const struct informer_ops pod_ops = {
        .changed = pod_changed, .deleted = pod_deleted, .synced = pods_listed};
    struct err e = {0};
    CLEANUP_FREE char *url = harness_url(r->h);
    assert_int_equal(api_client_new(r->h->loop, url, "kubelet", &r->client, &e), 0);
    assert_int_equal(
        runtime_open(r->h->loop, "cri", fake_cri_endpoint(r->cri), &events, r, &r->runtime, &e), 0);
    r->objects = pod_objects_new(r->h->loop, r->client, &object_ops, r);
    r->node = (struct pod_node){.log_dir = r->logs,
                                .cgroup_root = "/",
                                .systemd = true,
                                .memory_capacity = (int64_t) 1 << 33,
                                .cluster_domain = "cluster.local"};
    struct workers_config c = {.loop = r->h->loop,
                               .client = r->client,
                               .runtime = r->runtime,
                               .objects = r->objects,
                               .node = &r->node,
                               .root_dir = r->root,
                               .node_name = "n1",
                               .host_ip = "192.0.2.1",
                               .runtime_name = "fake",
                               .parallel_pulls = 2};
    r->workers = workers_new(&c, &ops, r);
    r->informer =
        informer_new(r->client, r->h->loop, "v1", "pods", "spec.nodeName=n1", &pod_ops, r);
}

void pods_rig_stop_kubelet(struct pods_rig *r)
{
    r->informer = informer_free(r->informer);
    r->workers = workers_free(r->workers);
    r->objects = pod_objects_free(r->objects);
    r->runtime = runtime_free(r->runtime);
    r->client = api_client_free(r->client);
}

/* ---- the rig ---- */

static int64_t cri_clock(void *ctx)
{
    return virtual_now_ns();
}

void pods_rig_start_runtime(struct pods_rig *r)
{
    CLEANUP_FREE char *socket = xasprintf("%s/cri.sock", r->dir);
    r->cri = fake_cri_new(r->h->loop, socket);
    fake_cri_set_clock(r->cri, cri_clock, NULL);
}

void pods_rig_stop_runtime(struct pods_rig *r)
{
    r->cri = fake_cri_free(r->cri);
}

void pods_rig_pass(struct pods_rig *r, uint64_t ms)
{
    const bool never = false;
    if (ms) {
        loop_run_until(r->h->loop, &never, ms);
    }
}

void pods_rig_open(struct pods_rig *r)
{
    snprintf(r->dir, sizeof r->dir, "/tmp/tenet-pods-XXXXXX");
    assert_non_null(mkdtemp(r->dir));
    r->root = xasprintf("%s/root", r->dir);
    r->logs = xasprintf("%s/logs", r->dir);
    r->services = json_array();
    r->h = harness_new(NULL, NULL);
}

void pods_rig_close(struct pods_rig *r)
{
    harness_free(r->h);
    json_free(r->services);
    free(r->root);
    free(r->logs);
    assert_int_equal(dir_remove(r->dir, NULL), 0);
}

static size_t count_entries(const char *path)
{
    DIR *d = opendir(path);
    size_t n = 0;
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        n += *e->d_name != '.';
    }
    if (d) {
        closedir(d);
    }
    return n;
}

const char *pods_rig_left(const struct pods_rig *r)
{
    CLEANUP_FREE char *pods = xasprintf("%s/pods", r->root);
    struct workers_stats stats;
    workers_get_stats(r->workers, &stats);
    return fake_cri_container_at(r->cri, 0) || fake_cri_sandbox_at(r->cri, 0) ? "records are left"
           : workers_count(r->workers) || stats.pulling                       ? "workers are left"
           : smap_size(&r->workers->ids)                                      ? "ids are left"
           : pod_objects_count(r->objects)                                    ? "objects are left"
           : count_entries(pods) || count_entries(r->logs) ? "directories are left"
                                                           : NULL;
}
