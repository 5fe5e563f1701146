/* SPDX-License-Identifier: Apache-2.0 */
#include "node/agent/pod_events.h"

#include "net/loop/notify.h"
#include "node/agent/conditions.h"
#include "node/agent/policy.h"
#include "node/agent/projects.h"
#include "node/agent/report.h"
#include "node/cni/pod_lookup.h"

#define VNID_WAIT_MS 5000 /* How long an ADD waits for objects of the registry. */

static struct json *pod_dns(void *ctx, const char *project)
{
    struct agent *a = ctx;
    return resolver_dns(a->resolver, project);
}

static void dns_trouble(void *ctx, const char *text)
{
    struct agent *a = ctx;
    agent_report_node(a, text ? EVENT_WARNING : EVENT_NORMAL,
                      text ? "DNSNotListening" : "DNSListening",
                      text ? text : "DNS is answered at the node's gateway");
}

void agent_resolve_attached(struct agent *a)
{
    size_t n;
    const struct dp_pod *const *pods = datapath_pods(a->datapath, &n);
    for (size_t i = 0; i < n; i++) {
        resolver_set_pod(a->resolver, pods[i]->ip, pods[i]->pod_namespace);
    }
}

static void pod_look_up(void *ctx, const char *project, const char *pod, pods_wants_fn *fn,
                        void *fn_ctx)
{
    struct agent *a = ctx;
    pod_lookup(a->loop, a->client, project, pod, fn, fn_ctx);
}

static int pod_reserve(void *ctx, const struct cni_runtime *r, struct err *e)
{
    struct agent *a = ctx;
    return host_ports_reserve(a->host_ports, r, e);
}

static void pod_settled(void *ctx, const struct cni_runtime *r)
{
    struct agent *a = ctx;
    host_ports_settled(a->host_ports, r);
}

static void pod_host_ports(void *ctx, bool adding, datapath_done_fn *fn, void *fn_ctx)
{
    struct agent *a = ctx;
    host_ports_update(a->host_ports, a->datapath, adding, fn, fn_ctx);
}

static void answer(void *ctx, const char *text, size_t size)
{
    cni_server_answer(ctx, text, size);
}

static void on_request(void *ctx, struct cni_server_call *call, struct cni_request *r, int netns_fd)
{
    struct agent *a = ctx;
    pods_request(a->pods, r, netns_fd, answer, call);
}

void agent_open_pods(struct agent *a)
{
    static const struct pods_ops ops = {.vnids = agent_find_vnids,
                                        .known = agent_knows_pod,
                                        .look_up = pod_look_up,
                                        .reserve = pod_reserve,
                                        .settled = pod_settled,
                                        .host_ports = pod_host_ports,
                                        .dns = pod_dns,
                                        .not_ready = agent_why_not_ready,
                                        .trouble = agent_report_pod};
    struct pods_config c = {.loop = a->loop, .datapath = a->datapath, .vnid_wait_ms = VNID_WAIT_MS};
    a->pods = pods_new(&c, &ops, a);
    pods_listen(a->pods, &resolver_pod_listener, a->resolver);
}

int agent_open_resolver(struct agent *a, struct err *e)
{
    struct resolver_config c = {
        .loop = a->loop, .node = a->cfg, .services = a->services, .trouble = dns_trouble, .ctx = a};
    return resolver_new(&c, &a->resolver, e);
}

int agent_open_for_pods(struct agent *a, struct err *e)
{
    int r = pods_start(a->pods, &a->net, e);
    if (r == 0) {
        pods_all_projects_changed(a->pods);
        r = cni_server_new(a->loop, a->socket_path, on_request, a, &a->cni_server, e);
    }
    r = r < 0 ? r : cni_conf_write(&a->conf, e);
    if (r == 0) {
        notify_manager("STATUS=carries the pods of this node");
    }
    return r;
}
