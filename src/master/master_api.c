/* SPDX-License-Identifier: Apache-2.0 */
#include "master/master_api.h"

#include "apiserver/oauth/oauth.h"
#include "base/log.h"
#include "base/mem.h"
#include "client/kubeconfig.h"
#include "controllers/services/master_service.h"
#include "master/master_dns.h"
#include "master/master_tls.h"
#include "net/http/http.h"
#include "net/loop/process.h"
#include "net/loop/sock.h"
#include "store/store.h"

#include <stdio.h>
#include <sys/resource.h>

LOG_MODULE("master");

#define ACTIVATION_FIRST_FD 3
#define RENEWAL_MS (24 * 3600000ull)
#define USER_AGENT "tenet-master/" TENET_VERSION

struct master_api {
    struct loop *loop;
    struct master_api_config cfg;
    struct store *store;
    struct apiserver *apiserver;
    struct http_server *http;
    struct master_dns *dns; /* NULL: no DNS. */
    struct master_tls *tls; /* NULL: plain HTTP. */
    struct master_security *security;
    struct loop_timer *renewal;
    struct api_client *own; /* Used by 'service' and 'informers'. */
    struct informer_set *informers;
    struct master_service *service;
    apiserver_metrics_fn *more_metrics; /* NULL: none. */
    void *more_metrics_ctx;
    char host[64]; /* The address of the API. */
    int port;      /* The port of the API. */
    int own_port;  /* The port for clients in this process. */
    int activated; /* Listening sockets that the service manager passed. */
    loop_fn *stopped;
    void *stopped_ctx;
};

/* ---- clients in the same process ---- */

int master_api_connect(struct master_api *m, struct api_client **ret, struct err *e)
{
    CLEANUP_FREE char *url = xasprintf("http://127.0.0.1:%d", m->own_port);
    struct kubeconfig k = {.server = url, .token = (char *) master_security_token(m->security)};
    return api_client_with(m->loop, &k, USER_AGENT, ret, e);
}

struct informer_set *master_api_informers(const struct master_api *m)
{
    return m->informers;
}

/* Starts the controller of the API's own service, "kubernetes". */
static void service_begin(struct master_api *m)
{
    const struct master_host *h = m->cfg.host;
    struct master_service_config cfg = {.service_ip = h->services.services.addr + 1,
                                        .ip = h->ip,
                                        .port = (uint16_t) m->port,
                                        .shared = store_is_shared(m->store)};
    m->service = master_service_new(m->loop, m->own, &cfg);
}

static void write_metrics(void *ctx, struct strbuf *out)
{
    struct master_api *m = ctx;
    if (m->dns) {
        master_dns_write_metrics(m->dns, out);
    }
    if (m->more_metrics) {
        m->more_metrics(m->more_metrics_ctx, out);
    }
}

static void registry_ready(void *ctx)
{
    struct master_api *m = ctx;
    struct err e = {0};
    if (master_api_connect(m, &m->own, &e) < 0) {
        m->cfg.failed(m->cfg.ctx, &e);
        return;
    }
    service_begin(m);
    m->informers = informer_set_new(m->loop, m->own);
    if (m->dns) {
        master_dns_begin(m->dns, m->informers);
    }
    apiserver_set_metrics(m->apiserver, write_metrics, m);
    m->cfg.ready(m->cfg.ctx);
}

/* ---- start ---- */

/* Opens a listener on loopback for clients in this process.  Beside HTTPS it requires a token that
 * no other process knows.  The limits for clients do not apply to it. */
static int serve_own(struct master_api *m, struct err *e)
{
    CLEANUP(fd_close) int fd = -1;
    int r = sock_listen_tcp("127.0.0.1:0", &fd, e);
    if (r < 0) {
        return r;
    }
    m->own_port = sock_local_port(fd);
    return http_server_add_own_listener(m->http, fd_take(&fd), e);
}

static int serve_all(struct master_api *m, int fd, struct err *e)
{
    struct tls_context *tls = m->tls ? master_tls_context(m->tls) : NULL;
    int r = http_server_add_listener_tls(m->http, fd, tls, e);
    for (int i = ACTIVATION_FIRST_FD; r == 0 && i < ACTIVATION_FIRST_FD + m->activated; i++) {
        r = i == fd ? 0 : http_server_add_listener_tls(m->http, i, tls, e);
    }
    return r < 0 ? r : serve_own(m, e);
}

static void warn_of_access(const struct master_api *m)
{
    const struct master_config *c = m->cfg.config;
    if (m->tls && !c->client_ca && !master_tls_ca(m->tls) && !master_config_always_allows(c)) {
        log_warn("no user can administer the cluster: without servingInfo.clientCA there are no "
                 "client certificates");
    }
    if (!master_config_is_loopback(c) && master_config_always_allows(c) &&
        (!m->tls || master_config_anonymous(c))) {
        log_warn("the API has no authentication: every client that reaches it controls the cluster",
                 "address=%s:%d", m->host, m->port);
    }
}

/* Gives the API server its certificate for nodes, if there is one. */
static int use_kubelet_client(struct master_api *m, struct err *e)
{
    struct apiserver_kubelets k = {0};
    int r = m->tls ? master_tls_kubelet_client(m->tls, &k, e) : 0;
    if (r == 0 && k.cert) {
        apiserver_set_kubelets(m->apiserver, &k);
    }
    apiserver_kubelets_done(&k);
    return r;
}

/* Begins the OAuth server, or gives it the configuration 'c'. */
static int use_oauth(struct master_api *m, const struct master_config *c, struct err *e)
{
    bool any = streq(m->host, "0.0.0.0");
    CLEANUP_FREE char *own =
        xasprintf("https://%s:%d", any ? IP4_TEXT(m->cfg.host->ip) : m->host, m->port);
    CLEANUP_FREE char *given = c->oauth.public_url ? xstrdup(c->oauth.public_url) : NULL;
    if (given && str_has_suffix(given, "/")) {
        given[strlen(given) - 1] = '\0';
    }
    struct oauth_settings cfg = {&c->oauth, given ? given : own};
    CLEANUP_FREE const char **proxies = NULL;
    int r = json_count(c->oauth.providers) ? apiserver_set_oauth(m->apiserver, &cfg, e) : 0;
    if (r == 0 && m->tls) {
        (void) apiserver_proxy_cas(m->apiserver, &proxies);
        r = master_tls_set_proxies(m->tls, proxies, e);
        r = r < 0 ? (err_prefix(e, "oauthConfig.identityProviders"), r) : 0;
    }
    return r;
}

void master_api_reload_oauth(struct master_api *m, const struct master_config *c)
{
    struct err e = {0};
    if (m->tls && use_oauth(m, c, &e) < 0) {
        log_error("oauthConfig was not read again; the previous one stays", "error=\"%s\"", e.text);
    }
}

/* 'fd' is taken over. */
static int serve(struct master_api *m, int fd, struct err *e)
{
    const struct master_config *c = m->cfg.config;
    const unsigned *v = c->limits.values;
    struct apiserver_config cfg = {
        .max_inflight = v[LIMIT_INFLIGHT],
        .max_queued = v[LIMIT_QUEUED],
        .queue_wait_ms = v[LIMIT_QUEUE_S] * UINT64_C(1000),
        .max_watches = v[LIMIT_WATCHES],
        .watch_timeout_ms = v[LIMIT_WATCH_S] * UINT64_C(1000),
        .services = &m->cfg.host->services,
        .addresses = &m->cfg.host->addresses.rules,
        .admission_disabled = (const char *const *) c->disabled_admission,
        .default_node_selector = c->node_selector,
        .routing_subdomain = c->routing_subdomain,
        .project_request_message = c->project_message,
        .project_request_template = c->project_template,
        .pod_security_exempt = {(const char *const *) c->exempt_users,
                                (const char *const *) c->exempt_namespaces,
                                (const char *const *) c->exempt_runtime_classes},
        .limit_secret_references = c->limit_secret_references,
        .blocks = &c->blocks,
        .admission = &c->admission,
        .node_selector_blacklist =
            (const char *const *) (c->node_label_blacklist ? c->node_label_blacklist
                                                           : c->admission.node_labels),
        .cors_origins = (const char *const *) c->cors_origins,
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
    int r = serve_all(m, fd, e);
    if (r < 0 || (r = use_kubelet_client(m, e)) < 0 || (r = use_oauth(m, c, e)) < 0) {
        return r;
    }
    if (m->tls) {
        loop_timer_arm(m->renewal, RENEWAL_MS);
    }
    log_info("serving", "address=%s:%d scheme=%s activated=%d plugin=%s storage=%s", m->host,
             m->port, m->tls ? "https" : "http", m->activated, sdn_plugin_name(c->network.plugin),
             c->storage_backend);
    warn_of_access(m);
    return 0;
}

static int open_store(struct master_api *m, struct err *e)
{
    const struct master_config *c = m->cfg.config;
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
        .encryption_file = c->encryption_config,
        .reserve = (uint64_t) c->storage_reserve_mb << 20,
    };
    return store_open(m->loop, &cfg, &m->store, e);
}

/* Raises the limit of descriptors, because each of thousands of watches needs one. */
static void raise_file_limit(void)
{
    struct rlimit lim;
    if (getrlimit(RLIMIT_NOFILE, &lim) == 0 && lim.rlim_cur < lim.rlim_max) {
        lim.rlim_cur = lim.rlim_max;
        (void) setrlimit(RLIMIT_NOFILE, &lim);
    }
}

/* Listens at bindAddress, unless the service manager passed a socket that already does. */
static int listen_first(struct master_api *m, int *ret_fd, struct err *e)
{
    const char *address = m->cfg.config->bind_address;
    int fd = ACTIVATION_FIRST_FD;
    m->activated = sock_activation_fds();
    while (fd < ACTIVATION_FIRST_FD + m->activated && !sock_listens_at(fd, address)) {
        fd++;
    }
    int r = 0;
    if (fd < ACTIVATION_FIRST_FD + m->activated) {
        *ret_fd = fd;
    } else {
        r = sock_listen_tcp(address, ret_fd, e);
    }
    if (r < 0) {
        return err_prefix(e, "servingInfo.bindAddress");
    }
    (void) snprintf(m->host, sizeof(m->host), "%.*s", (int) (strrchr(address, ':') - address),
                    address);
    m->port = sock_local_port(*ret_fd);
    return 0;
}

static int start(struct master_api *m, struct err *e)
{
    const struct master_config *c = m->cfg.config;
    CLEANUP(fd_close) int fd = -1;
    int r = listen_first(m, &fd, e);
    if (r < 0) {
        return r;
    }
    raise_file_limit();
    r = master_tls_new(c, m->port, &m->tls, e);
    if (r < 0) {
        return err_prefix(e, "servingInfo");
    }
    if ((r = master_security_new(m->loop, c, m->tls, &m->security, e)) < 0 ||
        (r = master_dns_new(m->loop, c, &m->dns, e)) < 0 || (r = open_store(m, e)) < 0) {
        return r;
    }
    return serve(m, fd_take(&fd), e);
}

static void renew(void *ctx)
{
    master_api_reload(ctx);
}

int master_api_new(struct loop *l, const struct master_api_config *cfg, struct master_api **ret,
                   struct err *e)
{
    struct master_api *m = NEW(struct master_api);
    m->loop = l;
    m->cfg = *cfg;
    m->renewal = loop_timer_new(l, renew, m);
    int r = start(m, e);
    if (r < 0) {
        master_api_free(m);
        return r;
    }
    *ret = m;
    return 0;
}

/* ---- creation and end ---- */

void master_api_add_check(struct master_api *m, const char *name, apiserver_check_fn *fn, void *ctx)
{
    apiserver_add_check(m->apiserver, name, fn, ctx);
}

void master_api_set_metrics(struct master_api *m, apiserver_metrics_fn *fn, void *ctx)
{
    m->more_metrics = fn;
    m->more_metrics_ctx = ctx;
}

bool master_api_is_shared(const struct master_api *m)
{
    return store_is_shared(m->store);
}

bool master_api_is_secure(const struct master_api *m)
{
    return m->tls;
}

const struct pki_ca *master_api_ca(const struct master_api *m)
{
    return m->tls ? master_tls_ca(m->tls) : NULL;
}

void master_api_reload(struct master_api *m)
{
    struct err e = {0};
    if (!m->tls) {
        return;
    }
    loop_timer_arm(m->renewal, RENEWAL_MS);
    if (master_tls_reload(m->tls, &e) < 0 || use_kubelet_client(m, &e) < 0) {
        log_error("certificates were not reloaded", "error=\"%s\"", e.text);
    } else {
        log_info("certificates reloaded");
    }
    if (master_security_reload(m->security, &e) < 0) {
        log_error("the audit policy was not read again", "error=\"%s\"", e.text);
    }
}

void master_api_unready(struct master_api *m)
{
    apiserver_unready(m->apiserver);
}

static void service_end(struct master_api *m)
{
    m->service = master_service_free(m->service);
    m->informers = informer_set_free(m->informers);
    m->own = api_client_free(m->own);
}

static void stop_serving(void *ctx)
{
    struct master_api *m = ctx;
    apiserver_set_metrics(m->apiserver, NULL, NULL);
    m->dns = master_dns_free(m->dns);
    service_end(m);
    apiserver_shutdown(m->apiserver);
    http_server_shutdown(m->http, m->cfg.config->limits.values[LIMIT_SHUTDOWN_S] * UINT64_C(1000),
                         m->stopped, m->stopped_ctx);
}

void master_api_stop(struct master_api *m, loop_fn *done, void *ctx)
{
    m->stopped = done;
    m->stopped_ctx = ctx;
    if (m->service) {
        master_service_resign(m->service, stop_serving, m);
    } else {
        stop_serving(m);
    }
}

struct master_api *master_api_free(struct master_api *m)
{
    if (m) {
        loop_timer_free(m->renewal);
        master_dns_free(m->dns);
        service_end(m);
        store_close(m->store);
        if (m->apiserver) {
            apiserver_attach(m->apiserver, NULL);
        }
        http_server_free(m->http);
        apiserver_free(m->apiserver);
        master_security_free(m->security);
        master_tls_free(m->tls);
        free(m);
    }
    return NULL;
}
