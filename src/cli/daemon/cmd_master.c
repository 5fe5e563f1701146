/* SPDX-License-Identifier: Apache-2.0 */
/* tenet master: the registry and its controllers in one process.
 *
 * It sets up no network device: a host that is only a master has no part in the pod network. */
#include "apiserver/apiserver.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/command.h"
#include "client/client.h"
#include "client/kubeconfig.h"
#include "controller/leader.h"
#include "controllers/controllers.h"
#include "controllers/services/master_service.h"
#include "master/master_addresses.h"
#include "master/master_config.h"
#include "master/master_controllers.h"
#include "master/master_dns.h"
#include "master/master_security.h"
#include "master/master_tls.h"
#include "net/http/http.h"
#include "net/kernel/rtnl.h"
#include "net/loop/notify.h"
#include "net/loop/process.h"
#include "net/loop/sock.h"
#include "store/store.h"
#include "wire/yaml.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

LOG_MODULE("master");

#define ACTIVATION_FIRST_FD 3
#define RENEWAL_MS (24 * 3600000ull)
#define LEASE_NAMESPACE "kube-system"
#define LEASE_NAME "tenet-controllers"

struct master {
    struct loop *loop;
    struct store *store;
    struct apiserver *apiserver;
    struct http_server *http;
    struct api_client *client;
    struct leader *leader;          /* NULL: nobody else can run the controllers. */
    struct api_client *controlling; /* The controllers' own client. */
    struct master_dns *dns;         /* NULL: there is none. */
    struct controllers *controllers;
    unsigned lease_ttl_s;
    struct master_tls *tls; /* NULL: plain HTTP. */
    struct master_security *security;
    struct loop_signal *term, *interrupt, *hangup;
    struct loop_timer *renewal;
    struct loop_timer *delay; /* Between the first signal and the end of listening. */
    struct serving_limits limits;
    const char *config_path; /* NULL: none. */
    struct netconf network;
    struct service_ranges services;
    struct master_addresses addresses;
    struct api_client *own; /* Of 'service'. */
    struct master_service *service;
    uint32_t ip;   /* At which nodes reach us; 0: none. */
    char host[64]; /* Our own address, */
    int port;      /* and its port. */
    int own_port;  /* For our controllers. */
    bool started;  /* The cluster's own objects are there. */
    bool stopping;
    int status;
};

static const char help[] =
    "usage: tenet master [--config FILE] [OPTIONS]\n"
    "\n"
    "Runs the master: the cluster's registry as a Kubernetes-style API, and the controllers that "
    "give\n"
    "each node a subnet and each project a virtual network. Touches no network device.\n"
    "\n"
    "  -c, --config FILE             master-config.yaml; see tenet-master-config(5)\n"
    "      --cluster-network CIDR:N  network of pods, with N bits of it for each node (may be "
    "repeated);\n"
    "                                default: 10.128.0.0/14:9\n"
    "      --service-network CIDR    network of services; default: 172.30.0.0/16\n"
    "      --service-node-port-range FIRST-LAST  ports of NodePort services; default:\n"
    "                                30000-32767\n"
    "      --external-ip-network CIDR,...  addresses that services may have as externalIPs, and\n"
    "                                with \"!\" before it those that they may not; default: none\n"
    "      --ingress-ip-network CIDR addresses of LoadBalancer services; \"\": none; default:\n"
    "                                172.29.0.0/16\n"
    "      --foreign-pod-network CIDR,...  addresses that other CNI plug-ins of the nodes give to\n"
    "                                pods; default: none\n"
    "      --reserved-address ADDRESS,...  addresses or CIDRs that no node has, as of routers;\n"
    "                                default: none\n"
    "      --master-node NAME,...    nodes that run on hosts of masters; default: the one of this\n"
    "                                host's name\n"
    "      --plugin NAME             redhat/openshift-ovs-subnet (default), -multitenant or\n"
    "                                -networkpolicy\n"
    "      --vxlan-port PORT         UDP port of the overlay; default: 4789\n"
    "      --mtu BYTES               of pods; default: 1450\n"
    "      --bind-address HOST:PORT  of the API; default: 127.0.0.1:8443; port 0: any\n"
    "      --tls MODE                auto: HTTPS with a CA of its own; off (default)\n"
    "      --pki-dir DIR             where that CA is; default: /var/lib/tenet/pki\n"
    "      --tls-cert-file FILE      HTTPS with this certificate, and\n"
    "      --tls-key-file FILE       this key\n"
    "      --client-ca-file FILE     clients show certificates of this CA\n"
    "      --authorization-mode MODE RBAC (default with HTTPS), or AlwaysAllow\n"
    "      --anonymous-auth BOOL     requests without a credential are taken; default with RBAC: "
    "true\n"
    "      --service-account-signing-key-file FILE\n"
    "                                key of service accounts' tokens; default: sa.key of "
    "--pki-dir\n"
    "      --audit-log-path FILE     writes an audit log, as\n"
    "      --audit-policy-file FILE  this policy says\n"
    "      --storage-backend NAME    sqlite (default), etcd, or memory, which forgets\n"
    "      --storage-path FILE       sqlite's; default: /var/lib/tenet/registry.db\n"
    "      --storage-endpoints URLS  etcd's: https://host:port[,...]\n"
    "      --etcd-ca-file FILE       CA of etcd's certificate, for https\n"
    "      --etcd-cert-file FILE     our certificate for etcd, and\n"
    "      --etcd-key-file FILE      its key\n"
    "      --controller-lease-ttl S  etcd: seconds after which another master's controllers take "
    "over\n"
    "                                from one that died; default: 15\n"
    "      --dns-bind-address A[:P]  where DNS is answered, or none; default: the address of the "
    "API,\n"
    "                                port 53\n"
    "      --dns-isolate-projects BOOL  under -multitenant it answers only names of global "
    "projects;\n"
    "                                default: false\n"
    "      --limit NAME=VALUE        a limit of what clients may use, as in the file's \"limits\" "
    "(may "
    "be\n"
    "                                repeated)\n"
    "      --log-level SPEC          level, and levels of modules: info,subnets=debug\n"
    "      --controllers-only        serve no API: run the network's controllers on another API "
    "server,\n"
    "      --kubeconfig FILE         that of this file; default: $KUBECONFIG, then "
    "~/.kube/config\n"
    "  -h, --help                    this text\n"
    "\n"
    "Options override the file. Listening sockets passed by socket activation are served too.\n";

/* ---- configuration ---- */

/* Values of options, applied after the file whatever their place on the line. */
struct option_value {
    const char *name, *value;
};

enum { OPT_HELP = 256, OPT_CONTROLLERS_ONLY, OPT_KUBECONFIG, OPT_CONFIG_FIRST };
#define MAX_VALUES 64

/* What the command line says beside the configuration. */
struct invocation {
    const char *config; /* The configuration file; NULL: none. */
    bool controllers_only;
    const char *kubeconfig; /* NULL: not given. */
};

/* -1: go on; else the exit status. */
static int parse_options(int argc, char **argv, struct master_config *c, struct invocation *ret)
{
    enum { N_FIXED = 4, N_MAX = 48 };
    struct option longs[N_MAX] = {{"help", no_argument, NULL, OPT_HELP},
                                  {"config", required_argument, NULL, 'c'},
                                  {"controllers-only", no_argument, NULL, OPT_CONTROLLERS_ONLY},
                                  {"kubeconfig", required_argument, NULL, OPT_KUBECONFIG}};
    for (int i = 0; master_config_options[i]; i++) {
        assert(N_FIXED + i + 1 < N_MAX);
        longs[N_FIXED + i] = (struct option){master_config_options[i], required_argument, NULL,
                                             OPT_CONFIG_FIRST + i};
    }
    struct option_value values[MAX_VALUES];
    size_t n = 0;
    struct err e = {0};
    char bad[64];
    int opt;
    opterr = 0;
    while ((opt = getopt_long(argc, argv, ":hc:", longs, NULL)) != -1) {
        if (opt == 'h' || opt == OPT_HELP) {
            fputs(help, stdout);
            return 0;
        } else if (opt == 'c') {
            ret->config = optarg;
        } else if (opt == OPT_CONTROLLERS_ONLY) {
            ret->controllers_only = true;
        } else if (opt == OPT_KUBECONFIG) {
            ret->kubeconfig = optarg;
        } else if (opt == ':' || opt == '?') {
            return command_usage(&cmd_master, "%s %s",
                                 opt == ':' ? "a value is missing after" : "wrong option",
                                 argv[optind - 1]);
        } else if (n == MAX_VALUES) {
            return command_usage(&cmd_master, "too many options");
        } else {
            values[n++] =
                (struct option_value){master_config_options[opt - OPT_CONFIG_FIRST], optarg};
        }
    }
    if (optind < argc) {
        return command_usage(&cmd_master, "unexpected argument \"%s\"", argv[optind]);
    }
    if (ret->kubeconfig && !ret->controllers_only) {
        return command_usage(&cmd_master,
                             "--kubeconfig goes with --controllers-only: else the master "
                             "serves the API itself");
    }
    if (ret->config && master_config_load(ret->config, c, &e) < 0) {
        return command_fail(&e, NULL);
    }
    unsigned given = 0;
    for (size_t i = 0; i < n; i++) {
        if (master_config_set(c, values[i].name, values[i].value, &given, &e) < 0) {
            return command_usage(&cmd_master, "%s", e.text);
        }
    }
    if (c->log_level && log_set_levels(c->log_level, bad) < 0) {
        (void) err_set(&e, -EINVAL, "logLevel: \"%s\" is not a level such as info", bad);
    } else if (master_config_check(c, &e) == 0) {
        return -1;
    }
    return ret->config ? command_fail(&e, "%s", ret->config) : command_fail(&e, NULL);
}

/* The networks that this host's interfaces are in must not be the cluster's. */
static int check_host(const struct master_config *c, struct master *m, struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *rt = NULL;
    CLEANUP_FREE struct rtnl_addr *addrs = NULL;
    CLEANUP_FREE struct rtnl_link *links = NULL;
    CLEANUP_FREE struct netconf_host_net *nets = NULL;
    size_t n_addrs = 0, n_links = 0;
    int r = rtnl_open(&rt, e);
    if (r < 0 || (r = rtnl_link_list(rt, &links, &n_links, e)) < 0 ||
        (r = rtnl_addr_list(rt, 0, &addrs, &n_addrs, e)) < 0) {
        return err_prefix(e, "this host's networks");
    }
    nets = xcalloc(n_addrs + 1, sizeof(*nets));
    for (size_t i = 0; i < n_addrs; i++) {
        struct ip4_prefix p = addrs[i].addr;
        nets[i].addr = p.addr;
        nets[i].net = (struct ip4_prefix){p.addr & prefix_mask(p.len), p.len};
        for (size_t j = 0; j < n_links; j++) {
            if (links[j].ifindex == addrs[i].ifindex) {
                memcpy(nets[i].ifname, links[j].name, sizeof(nets[i].ifname));
            }
        }
    }
    m->services = service_config_ranges(&c->services, &c->network, nets, n_addrs);
    m->ip = service_config_master_ip(&c->services, c->bind_address, nets, n_addrs);
    if (!m->services.has_ingress && !c->services.ingress_given) {
        log_warn("services of type LoadBalancer get no address: the default "
                 "networkConfig.ingressIPNetworkCIDR is in use by other networks");
    }
    master_addresses_fill(&m->addresses, c, &m->services, m->ip, nets, n_addrs);
    r = netconf_check_host(&c->network, nets, n_addrs, e);
    return r < 0 ? r : service_config_check(&c->services, &c->network, nets, n_addrs, e);
}

/* ---- life ---- */

static void stopped(void *ctx)
{
    struct master *m = ctx;
    loop_stop(m->loop);
}

static void controllers_end(struct master *m)
{
    m->controllers = controllers_free(m->controllers);
    m->controlling = api_client_free(m->controlling);
}

static void service_end(struct master *m)
{
    m->service = master_service_free(m->service);
    m->own = api_client_free(m->own);
}

/* Nothing is begun any more, and another master leads if there is one: watches and requests get their end. */
static void stop_serving(void *ctx)
{
    struct master *m = ctx;
    service_end(m);
    m->leader = leader_free(m->leader);
    m->client = api_client_free(m->client);
    apiserver_set_metrics(m->apiserver, NULL, NULL);
    m->dns = master_dns_free(m->dns);
    apiserver_shutdown(m->apiserver);
    http_server_shutdown(m->http, m->limits.values[LIMIT_SHUTDOWN_S] * UINT64_C(1000), stopped, m);
}

static void leave_service(void *ctx)
{
    struct master *m = ctx;
    if (m->service) {
        master_service_resign(m->service, stop_serving, m);
    } else {
        stop_serving(m);
    }
}

/* Controllers first; their lease is given up over the API, which is served as long as that takes. */
static void stop_controlling(void *ctx)
{
    struct master *m = ctx;
    controllers_end(m);
    if (m->leader) {
        leader_resign(m->leader, leave_service, m);
    } else {
        leave_service(m);
    }
}

/* At first only /readyz says so, and who balances load has time to send its clients elsewhere. */
static void stop(struct master *m)
{
    if (m->stopping) {
        loop_stop(m->loop);
        return;
    }
    m->stopping = true;
    notify_manager("STOPPING=1");
    apiserver_unready(m->apiserver);
    loop_timer_arm(m->delay, m->limits.values[LIMIT_SHUTDOWN_DELAY_S] * UINT64_C(1000));
}

static void on_signal(void *ctx)
{
    log_info(((struct master *) ctx)->stopping ? "stopping now" : "stopping");
    stop(ctx);
}

/* Not ready before the cluster's own objects are there, whatever the state of the API. */
static const char *check_controllers(void *ctx)
{
    return ((const struct master *) ctx)->started ? NULL : "the controllers are starting";
}

static void ready(struct master *m)
{
    if (!m->started) {
        m->started = true;
        log_info("ready");
        notify_manager("READY=1");
    }
}

static void controllers_started(void *ctx)
{
    ready(ctx);
}

/* Reads logLevel again; all else but certificates takes a restart. */
void master_reread_config(const char *path)
{
    __attribute__((cleanup(master_config_donep))) struct master_config c;
    struct err e = {0};
    char bad[64];
    master_config_init(&c);
    if (!path) {
        return;
    }
    if (master_config_load(path, &c, &e) < 0) {
        log_warn("configuration not read again", "error=\"%s\"", e.text);
    } else if (c.log_level && log_set_levels(c.log_level, bad) < 0) {
        log_warn("configuration not read again", "error=\"logLevel: %s is not a level\"", bad);
    } else {
        log_info("configuration read again", "logLevel=%s", c.log_level ? c.log_level : "");
    }
}

static void controllers_failed(void *ctx, const struct err *e)
{
    struct master *m = ctx;
    m->status = command_fail(e, NULL);
    loop_stop(m->loop);
}

/* A client of our own API; false: the loop stops. */
static bool connect_self(struct master *m, struct api_client **ret)
{
    struct err e = {0};
    CLEANUP_FREE char *url = xasprintf("http://127.0.0.1:%d", m->own_port);
    struct kubeconfig way = {.server = url, .token = (char *) master_security_token(m->security)};
    if (api_client_with(m->loop, &way, "tenet-master/" TENET_VERSION, ret, &e) < 0) {
        controllers_failed(m, &e);
        return false;
    }
    return true;
}

/* 'fence': all that they write is on the condition that we lead; NULL: nobody else can. */
static void controllers_begin(void *ctx, const char *fence)
{
    struct master *m = ctx;
    if (!connect_self(m, &m->controlling)) {
        return;
    }
    if (fence) {
        http_client_add_header(api_client_http(m->controlling), "Tenet-Lease", fence);
    }
    struct controllers_config cfg = {.network = m->network,
                                     .addresses = &m->addresses.rules,
                                     .security = master_security_of_controllers(m->security),
                                     .services = &m->services,
                                     .started = controllers_started,
                                     .failed = controllers_failed,
                                     .ctx = m};
    m->controllers = controllers_new(m->loop, m->controlling, &cfg);
}

static void deposed(void *ctx)
{
    controllers_end(ctx);
}

/* Another master has seen to what a cluster begins with. */
static void follows(void *ctx, const char *holder)
{
    ready(ctx);
}

/* The API is a service of the cluster. */
static void service_begin(struct master *m)
{
    struct master_service_config cfg = {.service_ip = m->services.services.addr + 1,
                                        .ip = m->ip,
                                        .port = (uint16_t) m->port,
                                        .shared = store_is_shared(m->store)};
    if (connect_self(m, &m->own)) {
        m->service = master_service_new(m->loop, m->own, &cfg);
    }
}

/* The registry is loaded: the controllers may speak to it, those of one master at a time. */
static void registry_ready(void *ctx)
{
    struct master *m = ctx;
    service_begin(m);
    struct api_client *client = NULL;
    if (m->dns && connect_self(m, &client)) {
        master_dns_begin(m->dns, client);
        apiserver_set_metrics(m->apiserver, master_dns_write_metrics, m->dns);
    }
    if (!store_is_shared(m->store)) {
        controllers_begin(m, NULL);
        return;
    }
    char who[HOST_NAME_MAX + 1] = "master";
    if (gethostname(who, sizeof(who)) < 0) {
        log_debug("host has no name");
    }
    struct leader_config cfg = {.ns = LEASE_NAMESPACE,
                                .name = LEASE_NAME,
                                .who = who,
                                .duration_s = m->lease_ttl_s,
                                .elected = controllers_begin,
                                .deposed = deposed,
                                .follows = follows,
                                .ctx = m};
    if (connect_self(m, &m->client)) {
        m->leader = leader_new(m->loop, m->client, &cfg);
    }
}

/* Certificates may have been replaced, or be due. */
static void renew(void *ctx)
{
    struct master *m = ctx;
    struct err e = {0};
    if (!m->tls) {
        return;
    }
    loop_timer_arm(m->renewal, RENEWAL_MS);
    if (master_tls_reload(m->tls, &e) < 0) {
        log_error("certificates were not reloaded", "error=\"%s\"", e.text);
    } else {
        log_info("certificates reloaded");
    }
    if (master_security_reload(m->security, &e) < 0) {
        log_error("the audit policy was not read again", "error=\"%s\"", e.text);
    }
}

static void on_hangup(void *ctx)
{
    master_reread_config(((struct master *) ctx)->config_path);
    renew(ctx);
}

/* The controllers' way in: a port that only this host can reach, beside HTTPS only with a token that no one else
 * knows, and one where the limits of a client are not theirs. */
static int serve_controllers(struct master *m, struct err *e)
{
    CLEANUP(fd_close) int fd = -1;
    int r = sock_listen_tcp("127.0.0.1:0", &fd, e);
    if (r < 0) {
        return r;
    }
    m->own_port = sock_local_port(fd);
    return http_server_add_own_listener(m->http, fd_take(&fd), e);
}

/* All sockets that the API is served on; the controllers' way in is one of them. */
static int serve(struct master *m, const struct master_config *c, int fd, struct err *e)
{
    const unsigned *v = c->limits.values;
    struct apiserver_config cfg = {.max_inflight = v[LIMIT_INFLIGHT],
                                   .max_queued = v[LIMIT_QUEUED],
                                   .queue_wait_ms = v[LIMIT_QUEUE_S] * UINT64_C(1000),
                                   .max_watches = v[LIMIT_WATCHES],
                                   .watch_timeout_ms = v[LIMIT_WATCH_S] * UINT64_C(1000),
                                   .services = &m->services,
                                   .addresses = &m->addresses.rules,
                                   .security = master_security_of_api(m->security),
                                   .ready = registry_ready,
                                   .ctx = m};
    struct http_limits limits = {.max_conns = v[LIMIT_CONNS],
                                 .max_conns_client = v[LIMIT_CONNS_CLIENT],
                                 .max_streams = v[LIMIT_STREAMS],
                                 .max_head = v[LIMIT_HEADER_BYTES],
                                 .max_uri = v[LIMIT_URI_BYTES],
                                 .max_body = v[LIMIT_BODY_BYTES],
                                 .head_ms = v[LIMIT_HEADER_S] * UINT64_C(1000),
                                 .body_ms = v[LIMIT_BODY_S] * UINT64_C(1000),
                                 .idle_ms = v[LIMIT_IDLE_S] * UINT64_C(1000),
                                 .send_ms = v[LIMIT_WRITE_S] * UINT64_C(1000)};
    m->apiserver = apiserver_new(m->loop, m->store, &cfg);
    m->http = http_server_new(m->loop, &limits, apiserver_handle, m->apiserver);
    apiserver_attach(m->apiserver, m->http);
    apiserver_add_check(m->apiserver, "controllers", check_controllers, m);
    struct tls_context *tls = m->tls ? master_tls_context(m->tls) : NULL;
    int r = http_server_add_listener_tls(m->http, fd, tls, e);
    int n = sock_activation_fds();
    for (int i = 0; r == 0 && i < n; i++) {
        r = http_server_add_listener_tls(m->http, ACTIVATION_FIRST_FD + i, tls, e);
    }
    if (r < 0 || (r = serve_controllers(m, e)) < 0) {
        return r;
    }
    if (m->tls) {
        loop_timer_arm(m->renewal, RENEWAL_MS);
    }
    log_info("serving", "address=%s:%d scheme=%s activated=%d plugin=%s storage=%s", m->host,
             m->port, m->tls ? "https" : "http", n, sdn_plugin_name(c->network.plugin),
             c->storage_backend);
    if (m->tls && !c->client_ca && !master_tls_ca(m->tls) && !master_config_always_allows(c)) {
        log_warn("nobody can administer the cluster: without servingInfo.clientCA there are no "
                 "client certificates");
    }
    if (!master_config_is_loopback(c) && master_config_always_allows(c) &&
        (!m->tls || master_config_anonymous(c))) {
        log_warn("the API has no authentication: whoever reaches it controls the cluster",
                 "address=%s:%d", m->host, m->port);
    }
    return 0;
}

static int open_store(struct master *m, const struct master_config *c, struct err *e)
{
    if (streq(c->storage_backend, "sqlite")) {
        const char *slash = strrchr(c->storage_path, '/');
        CLEANUP_FREE char *dir = slash && slash > c->storage_path
                                     ? xstrndup(c->storage_path, (size_t) (slash - c->storage_path))
                                     : xstrdup(slash ? "/" : ".");
        int r = dir_make(dir, 0750, e);
        if (r < 0) {
            return err_prefix(e, "storage.path");
        }
    }
    struct store_config cfg = {
        .backend = c->storage_backend,
        .path = c->storage_path,
        .endpoints = c->storage_endpoints,
        .ca_file = c->etcd_ca,
        .cert_file = c->etcd_cert,
        .key_file = c->etcd_key,
        .reserve = (uint64_t) c->storage_reserve_mb << 20,
    };
    return store_open(m->loop, &cfg, &m->store, e);
}

static void master_done(struct master *m)
{
    loop_signal_free(m->term);
    loop_signal_free(m->interrupt);
    loop_signal_free(m->hangup);
    loop_timer_free(m->renewal);
    loop_timer_free(m->delay);
    controllers_end(m);
    service_end(m);
    master_dns_free(m->dns);
    leader_free(m->leader);
    api_client_free(m->client);
    store_close(m->store);
    if (m->apiserver) {
        apiserver_attach(m->apiserver, NULL);
    }
    http_server_free(m->http);
    apiserver_free(m->apiserver);
    master_security_free(m->security);
    master_tls_free(m->tls);
    loop_free(m->loop);
}

/* Thousands of watches are as many descriptors. */
static void raise_file_limit(void)
{
    struct rlimit lim;
    if (getrlimit(RLIMIT_NOFILE, &lim) == 0 && lim.rlim_cur < lim.rlim_max) {
        lim.rlim_cur = lim.rlim_max;
        (void) setrlimit(RLIMIT_NOFILE, &lim);
    }
}

static int run_master(const struct master_config *c, const char *config_path)
{
    __attribute__((cleanup(master_done))) struct master m = {.network = c->network,
                                                             .limits = c->limits,
                                                             .config_path = config_path,
                                                             .lease_ttl_s = c->lease_ttl_s};
    struct err e = {0};
    CLEANUP(fd_close) int fd = -1;
    if (check_host(c, &m, &e) < 0) {
        return command_fail(&e, "networkConfig");
    }
    if (sock_listen_tcp(c->bind_address, &fd, &e) < 0) {
        return command_fail(&e, "servingInfo.bindAddress");
    }
    (void) snprintf(m.host, sizeof(m.host), "%.*s",
                    (int) (strrchr(c->bind_address, ':') - c->bind_address), c->bind_address);
    m.port = sock_local_port(fd);
    m.loop = loop_new();
    raise_file_limit();
    m.renewal = loop_timer_new(m.loop, renew, &m);
    m.delay = loop_timer_new(m.loop, stop_controlling, &m);
    if (master_tls_new(c, m.port, &m.tls, &e) < 0) {
        return command_fail(&e, "servingInfo");
    }
    if (master_security_new(m.loop, c, m.tls, &m.security, &e) < 0) {
        return command_fail(&e, NULL);
    }
    if (master_dns_new(m.loop, c, &m.dns, &e) < 0) {
        return command_fail(&e, NULL);
    }
    if (open_store(&m, c, &e) < 0 || serve(&m, c, fd_take(&fd), &e) < 0) {
        return command_fail(&e, NULL);
    }
    m.term = loop_signal_new(m.loop, SIGTERM, on_signal, &m);
    m.interrupt = loop_signal_new(m.loop, SIGINT, on_signal, &m);
    m.hangup = loop_signal_new(m.loop, SIGHUP, on_hangup, &m);
    loop_run(m.loop);
    log_info("stopped");
    return m.status;
}

static int run(int argc, char **argv)
{
    __attribute__((cleanup(master_config_donep))) struct master_config c;
    master_config_init(&c);
    struct invocation inv = {0};
    int status = parse_options(argc, argv, &c, &inv);
    if (status >= 0) {
        return status;
    }
    if (!inv.controllers_only) {
        return run_master(&c, inv.config);
    }
    struct err e = {0};
    return master_run_controllers(&c, inv.kubeconfig, inv.config, &e) < 0 ? command_fail(&e, NULL)
                                                                          : 0;
}

const struct command cmd_master = {.name = "master",
                                   .summary = "run the master: registry and controllers",
                                   .help = help,
                                   .run = run};
