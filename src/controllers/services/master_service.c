/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/services/master_service.h"

#include "base/ip.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "controller/obj.h"
#include "controller/workqueue.h"

#include <stdlib.h>

#define NAMESPACE "default"
#define NAME "kubernetes"
#define ALIAS "openshift"
#define ALIAS_OF NAME "." NAMESPACE ".svc.cluster.local"
#define LEASES_IN "kube-system"
#define LEASES_API "coordination.k8s.io/v1"

/* Interval of checks, because another client may have deleted one of the objects. */
#define LOOK_MS 10000
#define RENEW_MS 5000

/* Keys of the queue. */
#define KEY_SERVICE "service"
#define KEY_ALIAS "alias"
#define KEY_LEASE "lease"
#define KEY_ENDPOINTS "endpoints"

struct master_service {
    struct master_service_config cfg;
    struct workqueue *queue;
    char *lease;                    /* The name of this master's Lease. */
    bool resigning_lease, resigned; /* The Lease must be deleted; it was deleted. */
    struct loop_timer *resigning;   /* The time limit of resigning. */
    void (*done)(void *ctx);
    void *ctx;
    struct json *subsets; /* The desired subsets. */
};

/* ---- services ---- */

static struct json *service_object(const struct master_service *m)
{
    struct json *o = obj_new("v1", "Service", NAMESPACE, NAME), *spec, *port;
    struct json *labels = json_ensure_object(json_get(o, "metadata"), "labels");
    json_set_string(labels, "component", "apiserver");
    json_set_string(labels, "provider", "kubernetes");
    spec = json_ensure_object(o, "spec");
    json_set_string(spec, "clusterIP", IP4_TEXT(m->cfg.service_ip));
    port = json_append(json_ensure_array(spec, "ports"), json_object());
    json_set_string(port, "name", "https");
    json_set_int(port, "port", 443);
    json_set_int(port, "targetPort", m->cfg.port);
    return o;
}

static struct json *alias_object(void)
{
    struct json *o = obj_new("v1", "Service", NAMESPACE, ALIAS);
    struct json *spec = json_ensure_object(o, "spec");
    json_set_string(spec, "type", "ExternalName");
    json_set_string(spec, "externalName", ALIAS_OF);
    return o;
}

static void made(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    if (error < 0 && error != -EEXIST) {
        work_retry(w, error, "make the service of the API", text);
    } else {
        work_wait(w, LOOK_MS);
    }
}

static void service_got(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct master_service *m = ctx;
    if (error == 0) {
        work_wait(w, LOOK_MS);
    } else if (error == -ENOENT) {
        CLEANUP(json_free)
        struct json *o = streq(work_key(w), KEY_ALIAS) ? alias_object() : service_object(m);
        work_request(w, "POST", "/api/v1/namespaces/" NAMESPACE "/services", o, made);
    } else {
        work_retry(w, error, "read the service of the API", text);
    }
}

/* ---- leases ---- */

struct json *master_service_lease(const struct json *found, const char *name, uint32_t ip,
                                  uint16_t port, int64_t now_ms)
{
    char now[TIME_TEXT_SIZE];
    struct json *o = obj_new(LEASES_API, "Lease", LEASES_IN, name), *meta, *spec;
    const char *version = json_path_string(found, "metadata", "resourceVersion", NULL);
    time_format_micro(now_ms, now);
    meta = json_get(o, "metadata");
    if (version) {
        json_set_string(meta, "resourceVersion", version);
    }
    json_set_string(json_ensure_object(meta, "labels"), MASTER_LEASE_LABEL, "true");
    spec = json_ensure_object(o, "spec");
    json_set(spec, "holderIdentity", json_stringf("%s:%u", IP4_TEXT(ip), port));
    json_set_int(spec, "leaseDurationSeconds", MASTER_LEASE_S);
    json_set_string(spec, "renewTime", now);
    return o;
}

static void lease_written(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    if (error < 0) {
        work_retry(w, error, "renew the lease of this master", text);
    } else {
        work_wait(w, RENEW_MS);
    }
}

static void lease_got(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct master_service *m = ctx;
    if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "read the lease of this master", text);
        return;
    }
    CLEANUP(json_free)
    struct json *o =
        master_service_lease(error ? NULL : obj, m->lease, m->cfg.ip, m->cfg.port, time_wall_ms());
    CLEANUP_FREE char *path =
        api_path(LEASES_API, "leases", LEASES_IN, error ? NULL : m->lease, NULL);
    work_request(w, error ? "POST" : "PUT", path, o, lease_written);
}

static void lease_deleted(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct master_service *m = ctx;
    m->resigned = true; /* A Lease that still exists expires. */
    workqueue_add(m->queue, KEY_ENDPOINTS);
    work_done(w);
}

/* ---- endpoints ---- */

static struct json *subset_of(uint16_t port)
{
    struct json *s = json_object();
    json_ensure_array(s, "addresses");
    struct json *p = json_append(json_ensure_array(s, "ports"), json_object());
    json_set_string(p, "name", "https");
    json_set_int(p, "port", port);
    json_set_string(p, "protocol", "TCP");
    return s;
}

static void add_address(struct json *subsets, uint32_t ip, uint16_t port)
{
    struct json *s = NULL, *it, *a;
    JSON_FOREACH (it, subsets) {
        if (json_get_int_or(json_path(json_at(json_get(it, "ports"), 0), "port", NULL), 0) ==
            port) {
            s = it;
        }
    }
    s = s ? s : json_append(subsets, subset_of(port));
    JSON_FOREACH (a, json_get(s, "addresses")) {
        if (streq_null(json_path_string(a, "ip", NULL), IP4_TEXT(ip))) {
            return;
        }
    }
    json_set_string(json_append(json_get(s, "addresses"), json_object()), "ip", IP4_TEXT(ip));
}

struct holder {
    uint32_t ip;
    uint16_t port;
};

static int by_holder(const void *a, const void *b)
{
    const struct holder *x = a, *y = b;
    return x->port != y->port ? (int) x->port - (int) y->port
           : x->ip != y->ip   ? (x->ip < y->ip ? -1 : 1)
                              : 0;
}

static bool read_holder(const struct json *lease, int64_t now_ms, struct holder *ret)
{
    const char *renewed = json_path_string(lease, "spec", "renewTime", NULL);
    const char *who = json_path_string(lease, "spec", "holderIdentity", NULL);
    const char *colon = who ? strrchr(who, ':') : NULL;
    int64_t then,
        seconds = json_get_int_or(json_path(lease, "spec", "leaseDurationSeconds", NULL), 0);
    uint64_t port;
    if (!colon || !renewed || time_parse(renewed, &then) < 0 || then + seconds * 1000 < now_ms ||
        str_to_u64(colon + 1, UINT16_MAX, &port) < 0 || !port) {
        return false;
    }
    CLEANUP_FREE char *ip = xstrndup(who, (size_t) (colon - who));
    ret->port = (uint16_t) port;
    return ip4_parse(ip, &ret->ip) == 0 && ret->ip;
}

struct json *master_service_subsets(const struct json *leases, int64_t now_ms)
{
    size_t n = 0;
    CLEANUP_FREE struct holder *list = xcalloc(json_count(leases) + 1, sizeof *list);
    const struct json *lease;
    JSON_FOREACH (lease, leases) {
        n += read_holder(lease, now_ms, &list[n]);
    }
    qsort(list, n, sizeof *list, by_holder);
    struct json *subsets = json_array();
    for (size_t i = 0; i < n; i++) {
        add_address(subsets, list[i].ip, list[i].port);
    }
    return subsets;
}

/* Resigns when this master is no longer among the endpoints. */
static void resign_soon(struct master_service *m)
{
    if (m->resigned) {
        loop_timer_arm(m->resigning, 0);
    }
}

static void endpoints_written(void *ctx, struct work *w, int error, const char *text,
                              struct json *obj)
{
    if (error < 0) {
        work_retry(w, error, "write the endpoints of the API", text);
    } else {
        work_wait(w, RENEW_MS);
        resign_soon(ctx);
    }
}

static void endpoints_got(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct master_service *m = ctx;
    const struct json *have = json_get(obj, "subsets");
    if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "read the endpoints of the API", text);
        return;
    }
    if (error == 0 && ((!json_count(have) && !json_count(m->subsets)) ||
                       (have && json_equal(have, m->subsets)))) {
        work_wait(w, RENEW_MS);
        resign_soon(m);
        return;
    }
    CLEANUP(json_free)
    struct json *o = error ? obj_new("v1", "Endpoints", NAMESPACE, NAME) : json_clone(obj);
    json_set(o, "subsets", json_clone(m->subsets));
    work_request(w, error ? "POST" : "PUT",
                 error ? "/api/v1/namespaces/" NAMESPACE "/endpoints"
                       : "/api/v1/namespaces/" NAMESPACE "/endpoints/" NAME,
                 o, endpoints_written);
}

static void set_subsets(struct master_service *m, struct work *w, struct json *subsets)
{
    json_free(m->subsets);
    m->subsets = subsets;
    work_request(w, "GET", "/api/v1/namespaces/" NAMESPACE "/endpoints/" NAME, NULL, endpoints_got);
}

static void leases_listed(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    if (error < 0) {
        work_retry(w, error, "list the leases of masters", text);
    } else {
        set_subsets(ctx, w, master_service_subsets(json_get(obj, "items"), time_wall_ms()));
    }
}

static void begin(void *ctx, struct work *w, const char *key)
{
    struct master_service *m = ctx;
    if (streq(key, KEY_SERVICE) || streq(key, KEY_ALIAS)) {
        CLEANUP_FREE char *path =
            api_path("v1", "services", NAMESPACE, streq(key, KEY_ALIAS) ? ALIAS : NAME, NULL);
        work_request(w, "GET", path, NULL, service_got);
    } else if (streq(key, KEY_LEASE)) {
        bool ends = m->resigning_lease;
        CLEANUP_FREE char *path = api_path(LEASES_API, "leases", LEASES_IN, m->lease, NULL);
        work_request(w, ends ? "DELETE" : "GET", path, NULL, ends ? lease_deleted : lease_got);
    } else if (m->cfg.shared) {
        work_request(w, "GET",
                     "/apis/" LEASES_API "/namespaces/" LEASES_IN
                     "/leases?labelSelector=" MASTER_LEASE_LABEL "%3Dtrue",
                     NULL, leases_listed);
    } else {
        struct json *subsets = json_array();
        if (m->cfg.ip) {
            add_address(subsets, m->cfg.ip, m->cfg.port);
        }
        set_subsets(m, w, subsets);
    }
}

static void resigned(void *ctx)
{
    struct master_service *m = ctx;
    m->done(m->ctx);
}

struct master_service *master_service_new(struct loop *l, struct api_client *client,
                                          const struct master_service_config *cfg)
{
    struct master_service *m = NEW(struct master_service);
    m->cfg = *cfg;
    m->lease = xasprintf("tenet-master-%s-%u", IP4_TEXT(cfg->ip), cfg->port);
    m->queue = workqueue_new(l, client, 1, begin, m);
    m->resigning = loop_timer_new(l, resigned, m);
    if (cfg->shared && cfg->ip) {
        workqueue_add(m->queue, KEY_LEASE);
    }
    workqueue_add(m->queue, KEY_SERVICE);
    workqueue_add(m->queue, KEY_ALIAS);
    workqueue_add(m->queue, KEY_ENDPOINTS);
    workqueue_start(m->queue);
    return m;
}

void master_service_resign(struct master_service *m, void (*done)(void *ctx), void *ctx)
{
    bool listed = m->cfg.shared && m->cfg.ip;
    m->done = done;
    m->ctx = ctx;
    loop_timer_arm(m->resigning, listed ? MASTER_RESIGN_MS : 0);
    if (listed) {
        m->resigning_lease = true;
        workqueue_add(m->queue, KEY_LEASE);
    }
}

struct master_service *master_service_free(struct master_service *m)
{
    if (m) {
        workqueue_free(m->queue);
        loop_timer_free(m->resigning);
        json_free(m->subsets);
        free(m->lease);
        free(m);
    }
    return NULL;
}
