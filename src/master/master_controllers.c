/* SPDX-License-Identifier: Apache-2.0 */
#include "master/master_controllers.h"

#include "base/log.h"
#include "client/client.h"
#include "controller/leader.h"
#include "controllers/controllers.h"
#include "net/loop/notify.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

LOG_MODULE("master");

#define LEASE_NAMESPACE "kube-system"
#define LEASE_NAME "tenet-controllers"
#define USER_AGENT "tenet-controllers/" TENET_VERSION

struct remote {
    struct loop *loop;
    struct netconf network;
    const char *kubeconfig, *config_path;
    struct api_client *client; /* Of the election. */
    struct leader *leader;
    struct api_client *controlling; /* Of the controllers. */
    struct controllers *controllers;
    struct loop_signal *term, *interrupt, *hangup;
    bool ready, stopping;
    int status; /* Of the run. */
    struct err error;
};

static void fail(void *ctx, const struct err *e)
{
    struct remote *m = ctx;
    m->status = -EIO;
    m->error = *e;
    loop_stop(m->loop);
}

static void ready(struct remote *m)
{
    if (!m->ready) {
        m->ready = true;
        log_info("ready");
        notify_manager("READY=1");
    }
}

static void started(void *ctx)
{
    ready(ctx);
}

static void elected(void *ctx, const char *fence)
{
    struct remote *m = ctx;
    struct err e = {0};
    if (api_client_from_kubeconfig(m->loop, m->kubeconfig, USER_AGENT, &m->controlling, &e) < 0) {
        fail(m, &e);
        return;
    }
    /* Another kind of server takes no notice of it. */
    http_client_add_header(api_client_http(m->controlling), "Tenet-Lease", fence);
    struct controllers_config cfg = {
        .network = m->network, .network_only = true, .started = started, .failed = fail, .ctx = m};
    m->controllers = controllers_new(m->loop, m->controlling, &cfg);
}

static void deposed(void *ctx)
{
    struct remote *m = ctx;
    m->controllers = controllers_free(m->controllers);
    m->controlling = api_client_free(m->controlling);
}

static void follows(void *ctx, const char *holder)
{
    ready(ctx);
}

static void resigned(void *ctx)
{
    loop_stop(((struct remote *) ctx)->loop);
}

static void on_signal(void *ctx)
{
    struct remote *m = ctx;
    log_info(m->stopping ? "stopping now" : "stopping");
    if (m->stopping) {
        loop_stop(m->loop);
        return;
    }
    m->stopping = true;
    notify_manager("STOPPING=1");
    deposed(m);
    leader_resign(m->leader, resigned, m);
}

static void on_hangup(void *ctx)
{
    master_reread_config(((struct remote *) ctx)->config_path);
}

static void remote_done(struct remote *m)
{
    loop_signal_free(m->term);
    loop_signal_free(m->interrupt);
    loop_signal_free(m->hangup);
    deposed(m);
    leader_free(m->leader);
    api_client_free(m->client);
    loop_free(m->loop);
}

int master_run_controllers(const struct master_config *c, const char *kubeconfig,
                           const char *config_path, struct err *e)
{
    __attribute__((cleanup(remote_done))) struct remote m = {
        .network = c->network, .kubeconfig = kubeconfig, .config_path = config_path};
    char who[HOST_NAME_MAX + 1] = "controllers";
    m.loop = loop_new();
    int r = api_client_from_kubeconfig(m.loop, kubeconfig, USER_AGENT, &m.client, e);
    if (r < 0) {
        return r;
    }
    if (gethostname(who, sizeof(who)) < 0) {
        log_debug("host has no name");
    }
    log_info("controllers only", "server=%s plugin=%s", api_client_server(m.client),
             sdn_plugin_name(c->network.plugin));
    struct leader_config cfg = {.ns = LEASE_NAMESPACE,
                                .name = LEASE_NAME,
                                .who = who,
                                .duration_s = c->lease_ttl_s,
                                .elected = elected,
                                .deposed = deposed,
                                .follows = follows,
                                .ctx = &m};
    m.leader = leader_new(m.loop, m.client, &cfg);
    m.term = loop_signal_new(m.loop, SIGTERM, on_signal, &m);
    m.interrupt = loop_signal_new(m.loop, SIGINT, on_signal, &m);
    m.hangup = loop_signal_new(m.loop, SIGHUP, on_hangup, &m);
    loop_run(m.loop);
    log_info("stopped");
    if (m.status < 0) {
        *e = m.error;
    }
    return m.status;
}
