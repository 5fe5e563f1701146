/* SPDX-License-Identifier: Apache-2.0 */
#include "master/master.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/timeutil.h"
#include "client/kubeconfig.h"
#include "master/master_api.h"
#include "master/master_controllers.h"
#include "master/master_signing.h"
#include "master/master_status.h"
#include "net/loop/config_file.h"
#include "net/loop/notify.h"
#include "net/loop/process.h"
#include "net/loop/watchdog.h"
#include "net/tls/pki.h"

#include <errno.h>

LOG_MODULE("master");

#define POLICY_MAX (1 << 20)
#define CONTROLLERS_AGENT "tenet-controllers/" TENET_VERSION

struct master {
    const struct master_run *run;
    struct loop *loop;
    struct master_host host;
    struct master_api *api;
    struct master_signing *signing; /* NULL: without HTTPS there is no access control. */
    struct sched_policy policy;     /* Of the scheduler, when a file has it. */
    struct master_controllers *controllers;
    struct master_status *status_server; /* NULL: no separate status server. */
    struct loop_signal *term, *interrupt, *hangup;
    struct watchdog *watchdog; /* NULL: the service manager does not ask for reports. */
    struct loop_timer *delay;  /* Runs from the first signal to the end of the controllers. */
    bool ready, stopping;
    int status;
    struct err error;
};

static void failed(void *ctx, const struct err *e)
{
    struct master *m = ctx;
    m->error = *e;
    m->status = e->code < 0 ? e->code : -EIO;
    loop_stop(m->loop);
}

static void ready(void *ctx)
{
    struct master *m = ctx;
    if (!m->ready) {
        m->ready = true;
        log_info("ready");
        notify_manager("READY=1");
    }
}

/* ---- the parts ---- */

/* The master is not ready before the cluster's own objects exist, whatever the state of the API. */
static const char *check_controllers(void *ctx)
{
    return ((const struct master *) ctx)->ready ? NULL : "the controllers are starting";
}

static int connect_here(void *ctx, struct api_client **ret, struct err *e)
{
    return master_api_connect(((struct master *) ctx)->api, ret, e);
}

static int connect_there(void *ctx, struct api_client **ret, struct err *e)
{
    struct master *m = ctx;
    return api_client_from_kubeconfig(m->loop, m->run->kubeconfig, CONTROLLERS_AGENT, ret, e);
}

/* Reads the scheduler's policy: a wrong one is an error before anything is served. */
static int read_policy(struct master *m, struct err *e)
{
    const char *path = m->run->config->scheduler_policy;
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT, ignored = STRBUF_INIT;
    if (!path || !(m->run->parts & MASTER_CONTROLLERS)) {
        return 0;
    }
    int r = file_read(path, POLICY_MAX, &text, e);
    r = r < 0 ? r : sched_policy_parse(text.data, text.size, &m->policy, &ignored, e);
    if (r < 0) {
        return err_prefix(e, "kubernetesMasterConfig.schedulerConfigFile: %s", path), r;
    }
    log_info("scheduler's policy", "file=%s without_effect=\"%s\"", path, strbuf_cstr(&ignored));
    return 0;
}

static int begin_controllers(struct master *m, bool elects, struct err *e)
{
    bool whole = !m->run->network_only;
    struct master_controllers_config cfg = {
        .controllers = {.network = m->run->config->network,
                        .addresses = whole ? &m->host.addresses.rules : NULL,
                        .security = master_signing_security(m->signing),
                        .policy = m->run->config->scheduler_policy ? &m->policy : NULL,
                        .node_grace_s = m->run->config->node_grace_s,
                        .ended_pods = m->run->config->ended_pods,
                        .node_selector = m->run->config->node_selector,
                        .no_scheduler = !m->run->config->scheduler,
                        .no_workloads = !m->run->config->workloads,
                        .deployer_image = m->run->config->deployer_image,
                        .deploy_in_process = m->run->config->deploy_in_process,
                        .local_class = m->run->config->local_class,
                        .snapshot_kinds = m->run->config->snapshot_kinds,
                        .services = whole ? &m->host.services : NULL,
                        .informers = m->api ? master_api_informers(m->api) : NULL,
                        .network_only = !whole},
        .elects = elects,
        .lease_ttl_s = m->run->config->lease_ttl_s,
        .connect = m->api ? connect_here : connect_there,
        .ready = ready,
        .failed = failed,
        .ctx = m};
    return master_controllers_new(m->loop, &cfg, &m->controllers, e);
}

static void write_metrics(void *ctx, struct strbuf *out)
{
    struct master *m = ctx;
    if (m->controllers) {
        master_controllers_write_metrics(m->controllers, out);
    }
}

/* The registry is loaded: the controllers can use the API; one process at a time runs them. */
static void api_ready(void *ctx)
{
    struct master *m = ctx;
    struct err e = {0};
    if (!(m->run->parts & MASTER_CONTROLLERS)) {
        ready(m);
    } else if (begin_controllers(m, master_api_is_shared(m->api), &e) < 0) {
        failed(m, &e);
    }
}

static int sign_here(struct master *m, struct err *e)
{
    const struct pki_ca *ca = master_api_ca(m->api);
    return master_api_is_secure(m->api)
               ? master_signing_new(m->run->config, ca, ca ? pki_ca_pem(ca) : NULL, &m->signing, e)
               : 0;
}

/* Prepares controllers that run apart: the API server authenticates its clients over HTTPS,
 * and certificate requests are signed here. */
static int prepare_apart(struct master *m, struct err *e)
{
    const struct master_config *c = m->run->config;
    __attribute__((cleanup(kubeconfig_done))) struct kubeconfig k = {0};
    int r = kubeconfig_load(m->run->kubeconfig, &k, e);
    if (r < 0) {
        return r;
    }
    bool secure = str_has_prefix(k.server, "https://");
    r = master_host_read(c, !secure || streq_null(c->authorization_mode, "AlwaysAllow"), &m->host,
                         e);
    return r == 0 && secure ? master_signing_new(c, NULL, k.ca, &m->signing, e) : r;
}

static int start_api(struct master *m, struct err *e)
{
    struct master_api_config cfg = {
        .config = m->run->config, .host = &m->host, .ready = api_ready, .failed = failed, .ctx = m};
    int r = master_host_read(cfg.config, master_config_always_allows(cfg.config), &m->host, e);
    if (r < 0 || (r = master_api_new(m->loop, &cfg, &m->api, e)) < 0 ||
        !(m->run->parts & MASTER_CONTROLLERS)) {
        return r;
    }
    master_api_add_check(m->api, "controllers", check_controllers, m);
    master_api_set_metrics(m->api, write_metrics, m);
    return sign_here(m, e);
}

static bool is_ready(void *ctx)
{
    return ((const struct master *) ctx)->ready;
}

static int serve_status(struct master *m, struct err *e)
{
    struct master_status_config cfg = {.address = m->run->config->status_address,
                                       .ready = is_ready,
                                       .metrics = write_metrics,
                                       .ctx = m};
    int r = streq(cfg.address, "none") ? 0 : master_status_new(m->loop, &cfg, &m->status_server, e);
    return r < 0 ? err_prefix(e, "controllerConfig.statusBindAddress") : 0;
}

static int start_controllers(struct master *m, struct err *e)
{
    const struct master_config *c = m->run->config;
    int r = m->run->network_only ? 0 : prepare_apart(m, e);
    if (r < 0 || (r = serve_status(m, e)) < 0) {
        return r;
    }
    r = begin_controllers(m, true, e);
    if (r == 0) {
        log_info("controllers", "network_only=%d plugin=%s", m->run->network_only,
                 sdn_plugin_name(c->network.plugin));
    }
    return r;
}

/* ---- start and end ---- */

static void stopped(void *ctx)
{
    loop_stop(((struct master *) ctx)->loop);
}

static void stop_api(void *ctx)
{
    struct master *m = ctx;
    m->controllers = master_controllers_free(m->controllers);
    if (m->api) {
        master_api_stop(m->api, stopped, m);
    } else {
        stopped(m);
    }
}

/* Stops the controllers first: they begin no more work, and give their lease
 * up through the API, which is still served. */
static void stop_controllers(void *ctx)
{
    struct master *m = ctx;
    if (m->controllers) {
        master_controllers_stop(m->controllers, stop_api, m);
    } else {
        stop_api(m);
    }
}

/* At first only /readyz fails, so that a load balancer has time to send
 * its clients to another master. */
static void on_signal(void *ctx)
{
    struct master *m = ctx;
    log_info(m->stopping ? "stopping now" : "stopping");
    if (m->stopping) {
        loop_stop(m->loop);
        return;
    }
    m->stopping = true;
    notify_manager("STOPPING=1");
    if (m->api) {
        master_api_unready(m->api);
        const unsigned *limits = m->run->config->limits.values;
        loop_timer_arm(m->delay, limits[LIMIT_SHUTDOWN_DELAY_S] * UINT64_C(1000));
    } else {
        stop_controllers(m);
    }
}

/* Reads logLevel and oauthConfig again; all other settings except certificates need a restart. */
static void reread_config(const struct master *m)
{
    const char *path = m->run->config_path;
    __attribute__((cleanup(master_config_donep))) struct master_config c;
    struct err e = {0};
    master_config_init(&c);
    if (!path) {
        return;
    }
    if (master_config_load(path, &c, &e) < 0 ||
        config_file_set_log(c.log_level, c.log_format, &e) < 0) {
        log_warn("configuration not read again", "error=\"%s\"", e.text);
    } else {
        log_info("configuration read again", "logLevel=%s", c.log_level ? c.log_level : "");
        if (m->api) {
            master_api_reload_oauth(m->api, &c);
        }
    }
}

static void on_hangup(void *ctx)
{
    struct master *m = ctx;
    reread_config(m);
    if (m->api) {
        master_api_reload(m->api);
    }
}

static void master_done(struct master *m)
{
    loop_signal_free(m->term);
    loop_signal_free(m->interrupt);
    loop_signal_free(m->hangup);
    loop_timer_free(m->delay);
    watchdog_free(m->watchdog);
    master_status_free(m->status_server);
    master_controllers_free(m->controllers);
    master_signing_free(m->signing);
    sched_policy_done(&m->policy);
    master_api_free(m->api);
    loop_free(m->loop);
}

int master_run(const struct master_run *run, struct err *e)
{
    __attribute__((cleanup(master_done))) struct master m = {.run = run, .loop = loop_new()};
    m.delay = loop_timer_new(m.loop, stop_controllers, &m);
    if (time_is_unset(time_wall_ms())) {
        log_warn("the clock of this host was not set: certificates and tokens are not valid yet, "
                 "and objects get wrong times; set it and start this service again");
    }
    int r = read_policy(&m, e);
    r = r < 0 ? r : run->parts & MASTER_API ? start_api(&m, e) : start_controllers(&m, e);
    if (r < 0) {
        return r;
    }
    m.term = loop_signal_new(m.loop, SIGTERM, on_signal, &m);
    m.interrupt = loop_signal_new(m.loop, SIGINT, on_signal, &m);
    m.hangup = loop_signal_new(m.loop, SIGHUP, on_hangup, &m);
    m.watchdog = watchdog_new(m.loop);
    loop_run(m.loop);
    log_info("stopped");
    if (m.status < 0) {
        *e = m.error;
    }
    return m.status;
}
