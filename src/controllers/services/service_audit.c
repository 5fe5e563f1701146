/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/services/service_audit.h"

#include "api/kinds/kind_service.h"
#include "base/map.h"
#include "base/mem.h"
#include "controller/obj.h"

#define RETRY_MS 30000
#define MERGE "application/merge-patch+json"

struct service_audit {
    struct recorder *recorder;
    struct service_ranges ranges;
    struct workqueue *queue; /* Services that wait for an ingress address. */
    struct smap holders;     /* "ip ADDRESS" to the key of the service that has it. */
    struct smap held;        /* Key of a service to the list of addresses and ports that it has. */
    struct smap waiting;     /* Keys of services that wait for an ingress address. */
};

/* ---- pure ---- */

static void hold(struct json *list, const char *type, const char *value)
{
    CLEANUP(json_free) struct json *v = json_stringf("%s %s", type, value);
    const struct json *item;
    JSON_FOREACH (item, list) {
        if (json_equal(item, v)) {
            return;
        }
    }
    json_append(list, TAKE(v));
}

static void hold_port(struct json *list, const struct json *v)
{
    if (json_get_int_or(v, 0) > 0) {
        hold(list, "port", json_number_text(v));
    }
}

struct json *service_audit_holds(const struct json *service)
{
    const struct json *spec = json_get(service, "spec"), *item;
    const char *ip = json_path_string(spec, "clusterIP", NULL);
    struct json *list = json_array();
    uint32_t addr;
    if (service_needs_cluster_ip(spec) && ip && ip4_parse(ip, &addr) == 0) {
        hold(list, "ip", ip);
    }
    if (service_needs_node_ports(spec)) {
        JSON_FOREACH (item, json_get(spec, "ports")) {
            hold_port(list, json_get(item, "nodePort"));
        }
    }
    if (service_needs_health_port(spec)) {
        hold_port(list, json_get(spec, "healthCheckNodePort"));
    }
    if (service_is_load_balancer(spec)) {
        JSON_FOREACH (item, json_path(service, "status", "loadBalancer", "ingress", NULL)) {
            ip = json_path_string(item, "ip", NULL);
            if (ip && ip4_parse(ip, &addr) == 0) {
                hold(list, "ingress", ip);
            }
        }
    }
    return list;
}

bool service_audit_in_range(const struct service_ranges *r, const char *held)
{
    const char *value = strchr(held, ' ') + 1;
    uint32_t ip = 0;
    uint64_t port = 0;
    if (str_has_prefix(held, "port ")) {
        return str_to_u64(value, UINT16_MAX, &port) == 0 && port >= r->first_port &&
               port <= r->last_port;
    }
    (void) ip4_parse(value, &ip);
    /* An ingress address of another range belongs to another implementation. */
    return str_has_prefix(held, "ingress ") || prefix_contains(r->services, ip);
}

bool service_audit_waits(const struct service_ranges *r, const struct json *service)
{
    const struct json *spec = json_get(service, "spec");
    const char *class = json_path_string(spec, "loadBalancerClass", NULL);
    return r->has_ingress && service_is_load_balancer(spec) && !(class && *class) &&
           !json_count(json_path(service, "status", "loadBalancer", "ingress", NULL)) &&
           !obj_is_terminating(service);
}

/* ---- events ---- */

static void report(struct service_audit *a, const struct json *service, const char *held,
                   const char *other)
{
    const char *value = strchr(held, ' ') + 1;
    bool port = str_has_prefix(held, "port "), ingress = str_has_prefix(held, "ingress ");
    const char *what = port ? "Port" : ingress ? "Ingress IP" : "Cluster IP";
    const char *reason = other  ? port      ? "PortAlreadyAllocated"
                                  : ingress ? "IngressIPAlreadyAllocated"
                                            : "ClusterIPAlreadyAllocated"
                         : port ? "PortOutOfRange"
                                : "ClusterIPOutOfRange";
    CLEANUP_FREE char *message =
        other ? xasprintf("%s %s was assigned to multiple services, also to %s; please recreate "
                          "service",
                          what, value, other)
              : xasprintf("%s %s is not within the configured range; please recreate service", what,
                          value);
    recorder_event(a->recorder, "v1", "Service", service, EVENT_WARNING, reason, message);
}

/* ---- waiting for an ingress address ---- */

static void asked(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct service_audit *a = ctx;
    if (error == -ENOENT || error == -EINVAL) {
        work_done(w); /* The service is gone, or cannot get an address in its present form. */
    } else if (error < 0) {
        work_retry(w, error, "request an ingress address", text);
    } else if (service_audit_waits(&a->ranges, obj)) {
        recorder_event(a->recorder, "v1", "Service", obj, EVENT_WARNING, "IngressIPRangeFull",
                       "No available ingress ip to allocate.");
        work_wait(w, RETRY_MS);
    } else {
        work_done(w);
    }
}

/* Requests an address by an update: the server allocates one with any update, if one is free. */
static void begin(void *ctx, struct work *w, const char *key)
{
    struct service_audit *a = ctx;
    const char *slash = strchr(key, '/');
    if (!smap_get(&a->waiting, key)) {
        work_done(w);
        return;
    }
    CLEANUP_FREE char *ns = xstrndup(key, (size_t) (slash - key));
    CLEANUP_FREE char *path = api_path("v1", "services", ns, slash + 1, "status");
    CLEANUP(json_free) struct json *nothing = json_object();
    work_request_as(w, "PATCH", path, NULL, MERGE, nothing, asked);
}

static void retry_all(struct service_audit *a)
{
    struct smap_entry *se;
    SMAP_FOREACH (se, &a->waiting) {
        workqueue_add(a->queue, se->key);
    }
}

/* ---- events ---- */

static void forget(struct service_audit *a, const char *key)
{
    CLEANUP(json_free) struct json *list = smap_take(&a->held, key);
    const struct json *item;
    bool ingress = false;
    JSON_FOREACH (item, list) {
        const char *held = json_get_string(item), *holder = smap_get(&a->holders, held);
        ingress |= str_has_prefix(held, "ingress ");
        if (holder && streq(holder, key)) {
            (void) smap_remove(&a->holders, held);
        }
    }
    (void) smap_remove(&a->waiting, key);
    if (ingress) {
        retry_all(a);
    }
}

static void changed(void *ctx, const char *key, const struct json *old, const struct json *obj)
{
    struct service_audit *a = ctx;
    struct json *list = service_audit_holds(obj);
    const struct json *before = smap_get(&a->held, key), *item;
    bool same = before && json_equal(before, list);
    if (!same) {
        forget(a, key);
        JSON_FOREACH (item, list) {
            const char *held = json_get_string(item), *other = smap_get(&a->holders, held);
            if (!service_audit_in_range(&a->ranges, held)) {
                report(a, obj, held, NULL);
            }
            if (other) {
                report(a, obj, held, other);
            } else {
                smap_set(&a->holders, held, xstrdup(key));
            }
        }
        smap_set(&a->held, key, list);
    } else {
        json_free(list);
    }
    if (service_audit_waits(&a->ranges, obj)) {
        bool known = smap_get(&a->waiting, key);
        smap_set(&a->waiting, key, a);
        if (!known) {
            workqueue_add(a->queue, key);
        }
    } else {
        (void) smap_remove(&a->waiting, key);
    }
}

static void deleted(void *ctx, const char *key, const struct json *obj)
{
    forget(ctx, key);
}

/* All services are reported anew; those that were deleted without an event are not. */
static void listing(void *ctx)
{
    struct service_audit *a = ctx;
    smap_clear(&a->holders);
    smap_clear(&a->held);
    smap_clear(&a->waiting);
}

static void list_free(void *p)
{
    json_free(p);
}

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    struct service_audit *a = NEW(struct service_audit);
    a->recorder = env->recorder;
    a->queue = env->queue;
    a->ranges = **(const struct service_ranges *const *) config;
    smap_init(&a->holders, free);
    smap_init(&a->held, list_free);
    smap_init(&a->waiting, NULL);
    *ret = a;
    return 0;
}

static void stop(void *state)
{
    struct service_audit *a = state;
    smap_done(&a->holders);
    smap_done(&a->held);
    smap_done(&a->waiting);
    free(a);
}

static const struct controller_watch watches[] = {
    {.api_version = "v1",
     .plural = "services",
     .changed = changed,
     .deleted = deleted,
     .listing = listing,
     .transient = true},
};

const struct controller service_audit_controller = {
    .name = "service_audit",
    .watches = watches,
    .n_watches = ARRAY_SIZE(watches),
    .parallel = 1,
    .start = start,
    .reconcile = begin,
    .stop = stop,
};
