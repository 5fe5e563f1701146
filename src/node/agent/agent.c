/* SPDX-License-Identifier: Apache-2.0 */
#include "node/agent/agent.h"

#include "base/timeutil.h"
#include "client/kubeconfig.h"
#include "net/loop/config_file.h"
#include "net/loop/notify.h"
#include "net/loop/process.h"
#include "net/loop/watchdog.h"
#include "node/agent/agent_priv.h"
#include "node/agent/egress.h"
#include "node/agent/network.h"
#include "node/agent/pod_events.h"
#include "node/agent/services.h"
#include "node/agent/shutdown.h"
#include "node/agent/view.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

LOG_MODULE("node");

#define WAIT_FIRST_MS 3000

static void on_hup(void *ctx)
{
    struct agent *a = ctx;
    CLEANUP(node_config_done) struct node_config c;
    struct err e = {0};
    node_config_init(&c);
    if (!a->config_path) {
        return;
    }
    if (node_config_load(&c, a->config_path, &e) < 0 ||
        config_file_set_log(c.log_level, c.log_format, &e) < 0) {
        log_error("cannot read the configuration again", "error=\"%s\"", e.text);
        return;
    }
    log_info("log levels read again", "logLevel=%s", c.log_level ? c.log_level : "(unchanged)");
}

static void on_registered(void *ctx)
{
    struct agent *a = ctx;
    a->registered = true;
    agent_settle_soon(a);
}

/* Allows one agent for each run directory.  The kernel releases the lock when the process ends. */
static int take_lock(struct agent *a, struct err *e)
{
    const char *dir = a->cfg->run_dir;
    int r = dir_make(dir, 0700, e);
    if (r < 0) {
        return r;
    }
    if (chmod(dir, 0700) < 0) {
        return err_sys(e, -errno, "chmod %s", dir);
    }
    CLEANUP_FREE char *path = xasprintf("%s/agent.lock", dir);
    a->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (a->lock_fd < 0) {
        return err_sys(e, -errno, "open %s", path);
    }
    char pid[32] = "";
    if (flock(a->lock_fd, LOCK_EX | LOCK_NB) < 0) {
        r = -errno;
        ssize_t n = pread(a->lock_fd, pid, sizeof pid - 1, 0);
        pid[n > 0 ? n : 0] = '\0';
        pid[strcspn(pid, "\n")] = '\0';
        return r == -EWOULDBLOCK
                   ? err_set(e, -EBUSY, "runDir: %s is in use by another agent (pid %s)", dir, pid)
                   : err_sys(e, r, "lock %s", path);
    }
    int n = snprintf(pid, sizeof pid, "%d\n", (int) getpid());
    /* Readers of the file take its first line, so the rest of a longer text written before does no
     * harm. */
    if (pwrite(a->lock_fd, pid, (size_t) n, 0) != n) {
        return err_sys(e, -errno, "write %s", path);
    }
    return 0;
}

/* The address at which the node's tunnels end: the configured one, or that of the link with the
 * default route.  It must be an address of this host. */
static int find_address(struct agent *a, struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    CLEANUP_FREE struct rtnl_addr *addrs = NULL;
    size_t n;
    int err = rtnl_open(&r, e);
    if (err == 0 && !a->cfg->node_ip) {
        return host_default_address(r, &a->host_ip, e);
    }
    if (err == 0) {
        err = rtnl_addr_list(r, 0, &addrs, &n, e);
    }
    for (size_t i = 0; err == 0 && i < n; i++) {
        if (addrs[i].addr.addr == a->cfg->node_ip) {
            a->host_ip = a->cfg->node_ip;
            return 0;
        }
    }
    return err < 0 ? err
                   : err_set(e, -EADDRNOTAVAIL, "nodeIP: %s is not an address of this host",
                             IP4_TEXT(a->cfg->node_ip));
}

static int connect_master(struct agent *a, struct err *e)
{
    struct kubeconfig k = {0};
    int r = kubeconfig_load(a->cfg->kubeconfig, &k, e);
    if (r < 0) {
        return err_prefix(e, "masterKubeConfig");
    }
    k.more_servers = a->cfg->servers ? xstrdup(a->cfg->servers) : NULL;
    r = api_client_with(a->loop, &k, "tenet-node/" TENET_VERSION, &a->client, e);
    kubeconfig_done(&k);
    return r < 0 ? err_prefix(e, a->cfg->servers ? "masterServers" : "masterKubeConfig") : 0;
}

static int follow_master(struct agent *a, struct err *e)
{
    struct registration_config rc = {.loop = a->loop,
                                     .client = a->client,
                                     .node_name = a->cfg->node_name,
                                     .node_ip = a->host_ip};
    a->recorder = recorder_new(a->loop, a->client, "tenet-node");
    a->registration = registration_new(&rc, on_registered, a);
    agent_follow_network(a);
    agent_follow_services(a);
    agent_settle_soon(a);
    return agent_open_resolver(a, e);
}

/* Do all checks that can refuse the start before the agent touches anything. */
static int start(struct agent *a, struct err *e)
{
    /* Deleting a link blocks a worker thread (node/cni/link_remover.h); other work must
     * not wait behind it. */
    setenv("UV_THREADPOOL_SIZE", "16", 0);
    a->loop = loop_new();
    int r = host_check_privileges(e);
    if (r == 0) {
        r = find_address(a, e);
    }
    if (r == 0) {
        r = take_lock(a, e);
    }
    struct datapath_config dc = agent_datapath_config(a->cfg);
    a->prepared = r == 0 ? datapath_prepare(a->loop, &dc) : NULL;
    struct identity_config own = {.loop = a->loop,
                                  .node_name = a->cfg->node_name,
                                  .kubeconfig = a->cfg->kubeconfig,
                                  .bootstrap = a->cfg->bootstrap_kubeconfig};
    if (r == 0 && own.bootstrap) {
        r = identity_ensure(&own, e);
    }
    if (r == 0) {
        r = connect_master(a, e);
    }
    if (r == 0) {
        r = agent_open_view(a, e);
    }
    if (r < 0) {
        return r;
    }
    a->identity = own.bootstrap ? identity_new(&own, a->client) : NULL;
    a->stop_timer = loop_timer_new(a->loop, agent_stop_step, a);
    a->settle = loop_timer_new(a->loop, agent_settle, a);
    a->wait = loop_timer_new(a->loop, agent_log_wait, a);
    a->look_again = loop_timer_new(a->loop, agent_settle, a);
    loop_timer_arm(a->wait, WAIT_FIRST_MS);
    a->sigterm = loop_signal_new(a->loop, SIGTERM, agent_on_term, a);
    a->sigint = loop_signal_new(a->loop, SIGINT, agent_on_term, a);
    a->sighup = loop_signal_new(a->loop, SIGHUP, on_hup, a);
    a->socket_path = xasprintf("%s/cni.sock", a->cfg->run_dir);
    a->conf = (struct cni_conf){.dir = a->cfg->cni_conf_dir,
                                .name = a->cfg->cni_conf_name,
                                .socket = a->socket_path,
                                .portmap = a->cfg->chain_portmap,
                                .bandwidth = a->cfg->chain_bandwidth};
    a->cni_config = cni_conf_path(&a->conf);
    /* A file that a killed agent left would tell the runtime that the node is ready. */
    cni_conf_remove(&a->conf);
    log_info("starting", "node=%s ip=%s master=%s version=" TENET_VERSION, a->cfg->node_name,
             IP4_TEXT(a->host_ip), api_client_server(a->client));
    if (time_is_unset(time_wall_ms())) {
        log_warn("the clock of this host was not set: certificates and tokens are not valid yet, "
                 "and objects get wrong times; set it and start this service again");
    }
    r = follow_master(a, e);
    if (r == 0) {
        a->watchdog = watchdog_new(a->loop);
        /* Not when the network is there: an upgrade would wait for the master, another host. */
        notify_manager("READY=1\nSTATUS=waits for the master");
    }
    return r;
}

static void release(struct agent *a)
{
    cni_server_free(a->cni_server);
    monitor_free(a->monitor);
    a->pods = pods_free(a->pods);
    host_sync_free(a->host_sync);
    a->host_ports = host_ports_free(a->host_ports);
    neigh_free(a->neigh);
    if (a->policies) {
        policies_end(a->policies); /* The datapath keeps the policies that it has. */
    }
    a->policies = policies_free(a->policies);
    agent_close_egress(a);
    resolver_free(TAKE(a->resolver));
    agent_close_services(a);
    datapath_prepared_free(a->prepared);
    datapath_close(TAKE(a->datapath)); /* Requests that end here find no datapath (view.c). */
    introspect_free(a->introspect);
    informer_free(a->projects);
    informer_free(a->subnets);
    informer_free(a->networks);
    registration_free(a->registration);
    recorder_free(a->recorder);
    identity_free(a->identity);
    api_client_free(a->client);
    watchdog_free(a->watchdog);
    loop_signal_free(a->sigterm);
    loop_signal_free(a->sigint);
    loop_signal_free(a->sighup);
    loop_timer_free(a->stop_timer);
    loop_timer_free(a->settle);
    loop_timer_free(a->wait);
    loop_timer_free(a->look_again);
    loop_free(a->loop);
    smap_done(&a->skipped);
    free(a->net.remotes);
    free(a->socket_path);
    free(a->cni_config);
    fd_close(a->lock_fd);
}

int agent_make_mounts(const struct node_config *cfg, struct err *e)
{
    struct datapath_config dc = agent_datapath_config(cfg);
    int r = dir_make(cfg->run_dir, 0700, e);
    return r < 0 ? r : datapath_make_mounts(&dc, e);
}

int agent_run(const struct node_config *cfg, const char *config_path, struct err *e)
{
    struct agent a = {.cfg = cfg,
                      .config_path = config_path,
                      .lock_fd = -1,
                      .datapath_text = "no connection yet",
                      .host_text = "the gateway's link is not there yet",
                      .wait_text = "the master"};
    smap_init(&a.skipped, free);
    int r = start(&a, e);
    if (r == 0) {
        loop_run(a.loop);
        r = a.status;
    }
    release(&a);
    return r;
}
