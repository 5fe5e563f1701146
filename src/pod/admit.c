/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/admit.h"

#include "api/kinds/kind_pod.h"
#include "api/node_match.h"
#include "api/requests.h"
#include "base/mem.h"
#include "base/str.h"
#include "pod/pod.h"

#define TAINT_MEMORY "node.kubernetes.io/memory-pressure"

void pod_refusal_done(struct pod_refusal *r)
{
    free(r->reason);
    free(r->message);
    *r = (struct pod_refusal){0};
}

static bool refuse(struct pod_refusal *ret, char *reason, char *message)
{
    *ret = (struct pod_refusal){.reason = reason, .message = message};
    return false;
}

static bool tolerates_memory_pressure(const struct json *spec)
{
    CLEANUP(json_free) struct json *taint = json_object();
    json_set_string(taint, "key", TAINT_MEMORY);
    json_set_string(taint, "effect", "NoSchedule");
    return match_tolerates(json_get(spec, "tolerations"), taint);
}

/* Under pressure critical pods are taken, and with only memory short those that request some. */
static bool admit_under_pressure(const struct json *pod, const struct pod_admit_node *n,
                                 struct pod_refusal *ret)
{
    const struct json *spec = json_get(pod, "spec");
    CLEANUP_STRBUF struct strbuf list = STRBUF_INIT;
    const struct {
        bool on;
        const char *name;
    } conditions[] = {{n->memory_pressure, "MemoryPressure"},
                      {n->disk_pressure, "DiskPressure"},
                      {n->pid_pressure, "PIDPressure"}};
    for (size_t i = 0; i < ARRAY_SIZE(conditions); i++) {
        if (conditions[i].on) {
            strbuf_addf(&list, "%s%s", list.size ? " " : "", conditions[i].name);
        }
    }
    bool only_memory = n->memory_pressure && !n->disk_pressure && !n->pid_pressure;
    if (list.size == 0 || pod_is_critical(pod) ||
        (only_memory &&
         (!streq(pod_qos_class(spec), "BestEffort") || tolerates_memory_pressure(spec)))) {
        return true;
    }
    return refuse(ret, xstrdup("Evicted"),
                  xasprintf("The node had condition: [%s]. ", strbuf_cstr(&list)));
}

static int64_t add(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static bool admit_resources(const struct json *pod, const struct json *const *others,
                            size_t n_others, const struct json *allocatable,
                            struct pod_refusal *ret)
{
    for (size_t i = 0; i < match_members(allocatable); i++) {
        const char *name = json_key_at(allocatable, i);
        bool pods = streq(name, "pods");
        int64_t wanted = pods ? 1 : api_pod_amount(json_get(pod, "spec"), "requests", name, 0);
        int64_t has = api_amount(allocatable, name, 0), used = pods ? (int64_t) n_others : 0;
        if (wanted <= 0) {
            continue;
        }
        for (size_t k = 0; k < n_others && !pods; k++) {
            used = add(used, api_pod_amount(json_get(others[k], "spec"), "requests", name, 0));
        }
        if (wanted > has || used > has - wanted) {
            return refuse(ret, xasprintf("OutOf%s", name),
                          xasprintf("Node didn't have enough resource: %s, requested: %lld, used: "
                                    "%lld, capacity: %lld",
                                    name, (long long) wanted, (long long) used, (long long) has));
        }
    }
    return true;
}

typedef bool port_fn(const void *ctx, const struct api_host_port *port);

/* Whether 'fn' says yes to one of the pod's ports of the host. */
static bool any_port(const struct json *pod, port_fn *fn, const void *ctx)
{
    size_t n = pod_count_containers(pod);
    const struct json *p;
    for (size_t i = 0; i < n; i++) {
        JSON_FOREACH (p, json_get(pod_container_at(pod, i, NULL), "ports")) {
            struct api_host_port port;
            if (api_host_port_read(p, &port) && fn(ctx, &port)) {
                return true;
            }
        }
    }
    return false;
}

static bool is_same(const void *ctx, const struct api_host_port *port)
{
    return api_host_ports_conflict(ctx, port);
}

static bool is_taken(const void *ctx, const struct api_host_port *port)
{
    return any_port(ctx, is_same, port);
}

static bool tolerates_all(const struct json *pod, const struct json *taints)
{
    const struct json *t;
    JSON_FOREACH (t, taints) {
        if (match_has_effect(t, "NoExecute") &&
            !match_tolerates(json_path(pod, "spec", "tolerations", NULL), t)) {
            return false;
        }
    }
    return true;
}

static bool predicate(struct pod_refusal *ret, const char *name, const char *why)
{
    return refuse(ret, xstrdup(name), xasprintf("Predicate %s failed: %s", name, why));
}

bool pod_admit_here(const struct json *pod, const struct json *const *others, size_t n_others,
                    const struct pod_admit_node *node, struct pod_refusal *ret)
{
    const char *os = json_get_text(json_path(pod, "spec", "os", NULL), "name");
    const struct json *spec = json_get(pod, "spec");
    if (node->shuts_down) {
        return refuse(ret, xstrdup("NodeShutdown"),
                      xstrdup("Pod was rejected as the node is shutting down."));
    }
    if (!admit_under_pressure(pod, node, ret)) {
        return false;
    }
    if (*os && !streq(os, "linux")) {
        return refuse(ret, xstrdup("PodOSNotSupported"),
                      xstrdup("Failed to admit pod as the OS field doesn't match node OS"));
    }
    if (!admit_resources(pod, others, n_others, node->allocatable, ret)) {
        return false;
    }
    if (node->node && !match_node_required(spec, json_path(node->node, "metadata", "labels", NULL),
                                           pod_name(node->node))) {
        return predicate(ret, "NodeAffinity", "node(s) didn't match Pod's node affinity/selector");
    }
    for (size_t i = 0; i < n_others; i++) {
        if (any_port(pod, is_taken, others[i])) {
            return predicate(ret, "NodePorts",
                             "node(s) didn't have free ports for the requested pod ports");
        }
    }
    if (node->node && !pod_is_static(pod) &&
        !tolerates_all(pod, json_path(node->node, "spec", "taints", NULL))) {
        return predicate(ret, "TaintToleration", "node(s) had taints that the pod didn't tolerate");
    }
    return true;
}
