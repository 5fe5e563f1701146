/* SPDX-License-Identifier: Apache-2.0 */
#include "node/agent/services.h"

#include "node/agent/egress.h"
#include "node/agent/network.h"
#include "node/agent/projects.h"
#include "node/agent/report.h"

static void services_are_synced(void *ctx)
{
    agent_settle_soon(ctx);
}

/* Callback of the host's proxy, after each attempt to apply the services. */
static void on_proxied(void *ctx, int error, const char *text, bool restored)
{
    struct agent *a = ctx;
    (void) restored;
    if (a->phase == AGENT_STOPPING) {
        return;
    }
    if (error < 0 && !a->proxy_failed) {
        agent_report_node(a, EVENT_WARNING, "ServiceProxyFailed", text);
    } else if (error == 0 && a->proxy_failed) {
        agent_report_node(a, EVENT_NORMAL, "ServiceProxyReady",
                          "services are as they should be again");
    }
    a->proxy_failed = error < 0;
    if (error == 0) {
        host_sync_set_node_ports(a->host_sync, host_proxy_get_stats(a->host_proxy)->node_ports > 0);
    }
}

static void proxy_service_changed(void *ctx, const struct sdn_service *old,
                                  const struct sdn_service *s)
{
    host_proxy_service_changed(ctx, old, s);
}

static void proxy_settled(void *ctx)
{
    host_proxy_settled(ctx);
}

static void proxy_synced(void *ctx)
{
    host_proxy_synced(ctx);
}

static void proxy_need_pods(void *ctx, const char *ns, const char *name, uint8_t protocol,
                            uint16_t port)
{
    struct agent *a = ctx;
    services_want_pods(a->pod_services, ns, name, protocol, port);
}

int agent_open_proxy(struct agent *a, struct err *e)
{
    struct host_proxy_config c = {.loop = a->loop,
                                  .node_name = a->cfg->node_name,
                                  .mode = a->cfg->proxy_userspace ? SERVICES_USERSPACE
                                                                  : SERVICES_NETFILTER,
                                  .on_result = on_proxied,
                                  .need_pods = proxy_need_pods,
                                  .may_leave = agent_may_leave,
                                  .ctx = a};
    static const struct services_listener listener = {
        .changed = proxy_service_changed, .settled = proxy_settled, .synced = proxy_synced};
    int r = host_proxy_new(&c, &a->host_proxy, e);
    r = r < 0 ? r : monitor_ignore(a->monitor, host_proxy_port(a->host_proxy), e);
    if (r == 0) {
        services_watch_add(a->services, &listener, a->host_proxy);
    }
    return r;
}

void agent_follow_services(struct agent *a)
{
    static const struct services_ops ops = {.synced = services_are_synced,
                                            .vnids = agent_find_vnids};
    a->services = services_watch_new(a->loop, a->client);
    a->pod_services = services_new(a->loop, a->services, a->client, a->cfg->node_name, &ops, a);
}

void agent_close_services(struct agent *a)
{
    a->pod_services = services_free(a->pod_services);
    if (a->host_proxy) {
        services_watch_remove(a->services, a->host_proxy);
        a->host_proxy = host_proxy_free(a->host_proxy);
    }
    a->services = services_watch_free(a->services);
}
