/* SPDX-License-Identifier: Apache-2.0 */
#include "router/config.h"

#include "api/kind.h"
#include "base/mem.h"

/* ---- values ---- */

static bool consists_of(const char *s, const char *more)
{
    for (; *s; s++) {
        bool plain = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') ||
                     (*s >= '0' && *s <= '9') || strchr(more, *s);
        if (!plain) {
            return false;
        }
    }
    return true;
}

/* These texts are words of HAProxy's configuration, which has blanks, quotes and # as syntax. */
static int check_plain(const char *v, struct err *e)
{
    return consists_of(v, "/._-:@+,=[]") ? 0
                                         : err_set(e, -EINVAL,
                                                   "\"%s\" has characters that HAProxy's "
                                                   "configuration cannot have",
                                                   v);
}

static int check_dir(const char *v, struct err *e)
{
    return *v != '/' || strlen(v) > 80
               ? err_set(e, -EINVAL, "\"%s\" is not an absolute path of at most 80 characters", v)
               : check_plain(v, e);
}

static int check_address(const char *v, struct err *e)
{
    uint32_t ip;
    return ip4_parse(v, &ip) < 0 ? err_set(e, -EINVAL, "\"%s\" is not an IPv4 address", v) : 0;
}

static int check_word(const char *v, struct err *e)
{
    const char *why = api_check_dns_subdomain(v);
    return why ? err_set(e, -EINVAL, "\"%s\": %s", v, why) : 0;
}

static int check_host(const char *v, struct err *e)
{
    uint32_t ip;
    return ip4_parse(v, &ip) == 0 ? err_set(e, -EINVAL, "\"%s\" is an address, not a name", v)
                                  : check_word(v, e);
}

static int check_cookie(const char *v, struct err *e)
{
    return consists_of(v, "_-") && strlen(v) <= 128
               ? 0
               : err_set(e, -EINVAL, "\"%s\" is not a name of letters, digits, _ and -", v);
}

static int check_ciphers(const char *v, struct err *e)
{
    return consists_of(v, "-_:+!@=")
               ? 0
               : err_set(e, -EINVAL, "\"%s\" is not a list of ciphers with colons between", v);
}

static int check_mime(const char *v, struct err *e)
{
    return consists_of(v, "/+.- ") ? 0 : err_set(e, -EINVAL, "\"%s\" is no list of types", v);
}

static int check_time(const char *v, struct err *e)
{
    uint64_t ms;
    return route_plan_time(v, &ms) < 0
               ? err_set(e, -EINVAL, "\"%s\" is not a time such as 30s or 5500ms", v)
               : 0;
}

/* ---- rows ---- */

#define MEMBER(name) OPTION_MEMBER(struct router_config, name)

static const struct option_row rows[] = {
    {.flag = "kubeconfig",
     .type = OPTION_FILE,
     MEMBER(kubeconfig),
     .arg = "FILE",
     .unset = "$KUBECONFIG, then ~/.kube/config",
     .help = "how to reach the API server"},
    {.flag = "log-level",
     .type = OPTION_TEXT,
     MEMBER(log_level),
     .arg = "LEVEL",
     .unset = "info",
     .help = "levels of the router's own log, such as info or info,router=debug"},
    {.flag = "listen-address",
     .type = OPTION_TEXT,
     MEMBER(address),
     .arg = "ADDRESS",
     .unset = "none",
     .check = check_address,
     .help = "address of both ports; all IPv4 addresses without it"},
    {.flag = "http-port",
     .type = OPTION_NUMBER,
     MEMBER(http_port),
     .arg = "PORT",
     .dflt = "80",
     .min = 1,
     .max = UINT16_MAX,
     .detail = "The variable `ROUTER_SERVICE_HTTP_PORT` sets it as well.",
     .help = "port of HTTP"},
    {.flag = "https-port",
     .type = OPTION_NUMBER,
     MEMBER(https_port),
     .arg = "PORT",
     .dflt = "443",
     .min = 1,
     .max = UINT16_MAX,
     .detail = "The variable `ROUTER_SERVICE_HTTPS_PORT` sets it as well.",
     .help = "port of HTTPS"},
    {.flag = "stats-address",
     .type = OPTION_ENDPOINT,
     MEMBER(listen),
     .arg = "ADDRESS:PORT",
     .dflt = "127.0.0.1:1936",
     .min = 1,
     .detail = "The variable `ROUTER_LISTEN_ADDR` sets it as well.",
     .help = "where health and metrics are answered"},
    {.flag = "dir",
     .type = OPTION_FILE,
     MEMBER(dir),
     .arg = "DIR",
     .dflt = "/run/tenet/router",
     .check = check_dir,
     .help = "folder of HAProxy's configuration, sockets and certificates"},
    {.flag = "haproxy",
     .type = OPTION_FILE,
     MEMBER(haproxy),
     .arg = "PROGRAM",
     .dflt = "haproxy",
     .help = "program of HAProxy 2.6 or newer"},
    {.flag = "name",
     .type = OPTION_TEXT,
     MEMBER(name),
     .arg = "NAME",
     .dflt = "public",
     .check = check_word,
     .detail = "The variable `ROUTER_SERVICE_NAME` sets it as well.",
     .help = "name of this router in the status of routes"},
    {.flag = "canonical-hostname",
     .type = OPTION_TEXT,
     MEMBER(canonical_hostname),
     .arg = "NAME",
     .unset = "none",
     .check = check_host,
     .detail = "The variable `ROUTER_CANONICAL_HOSTNAME` sets it as well.",
     .help = "name that aliases of routes' hosts point to"},
    {.flag = "update-status",
     .arg = "[=false]",
     .type = OPTION_BOOL,
     MEMBER(update_status),
     .dflt = "true",
     .detail = "The variable `ROUTER_UPDATE_STATUS` sets it as well.",
     .help = "write the status of routes"},
    {.flag = "route-labels",
     .type = OPTION_TEXT,
     MEMBER(route_labels),
     .arg = "SELECTOR",
     .unset = "none",
     .detail = "The variable `ROUTE_LABELS` sets it as well.",
     .help = "routes with these labels only"},
    {.flag = "namespace-labels",
     .type = OPTION_TEXT,
     MEMBER(namespace_labels),
     .arg = "SELECTOR",
     .unset = "none",
     .detail = "The variable `NAMESPACE_LABELS` sets it as well.",
     .help = "routes of namespaces with these labels only"},
    {.flag = "project-labels",
     .type = OPTION_TEXT,
     MEMBER(project_labels),
     .arg = "SELECTOR",
     .unset = "none",
     .detail = "The variable `PROJECT_LABELS` sets it as well.",
     .help = "routes of projects with these labels only"},
    {.flag = "namespace",
     .type = OPTION_TEXT,
     MEMBER(namespace),
     .arg = "NAME",
     .unset = "none",
     .check = check_word,
     .help = "routes of this namespace only"},
    {.flag = "allowed-domains",
     .type = OPTION_TEXT,
     MEMBER(allowed_domains),
     .arg = "DOMAIN,...",
     .unset = "none",
     .detail = "The variable `ROUTER_ALLOWED_DOMAINS` sets it as well.",
     .help = "domains whose hosts are served; without it all"},
    {.flag = "denied-domains",
     .type = OPTION_TEXT,
     MEMBER(denied_domains),
     .arg = "DOMAIN,...",
     .unset = "none",
     .detail = "The variable `ROUTER_DENIED_DOMAINS` sets it as well.",
     .help = "domains whose hosts are refused, also when they are allowed"},
    {.flag = "hostname-template",
     .type = OPTION_TEXT,
     MEMBER(subdomain),
     .arg = "TEMPLATE",
     .unset = "none",
     .detail = "The variable `ROUTER_SUBDOMAIN` sets it as well.",
     .help = "host of routes without one, such as ${name}-${namespace}.apps.example.com"},
    {.flag = "override-hostname",
     .arg = "[=false]",
     .type = OPTION_BOOL,
     MEMBER(override_hostname),
     .dflt = "false",
     .detail = "The variable `ROUTER_OVERRIDE_HOSTNAME` sets it as well.",
     .help = "every route gets the host of the template"},
    {.flag = "override-domains",
     .type = OPTION_TEXT,
     MEMBER(override_domains),
     .arg = "DOMAIN,...",
     .unset = "none",
     .detail = "The variable `ROUTER_OVERRIDE_DOMAINS` sets it as well.",
     .help = "routes with hosts in these domains get the host of the template"},
    {.flag = "allow-wildcard-routes",
     .arg = "[=false]",
     .type = OPTION_BOOL,
     MEMBER(wildcards),
     .dflt = "false",
     .detail = "The variable `ROUTER_ALLOW_WILDCARD_ROUTES` sets it as well.",
     .help = "serve routes with wildcardPolicy Subdomain"},
    {.flag = "disable-namespace-ownership-check",
     .arg = "[=false]",
     .type = OPTION_BOOL,
     MEMBER(share_hosts),
     .dflt = "false",
     .detail = "The variable `ROUTER_DISABLE_NAMESPACE_OWNERSHIP_CHECK` sets it as well.",
     .help = "routes of several namespaces may share a host"},
    {.flag = "default-certificate",
     .type = OPTION_FILE,
     MEMBER(default_certificate),
     .arg = "FILE",
     .unset = "none",
     .detail = "The variable `DEFAULT_CERTIFICATE_PATH` sets it as well.",
     .help = "PEM of certificate and key for hosts without one; a self-signed one without it"},
    {.flag = "default-destination-ca",
     .type = OPTION_FILE,
     MEMBER(service_ca),
     .arg = "FILE",
     .unset = "none",
     .check = check_plain,
     .detail = "The variable `DEFAULT_DESTINATION_CA_PATH` sets it as well.",
     .help = "CA for re-encrypting routes without destinationCACertificate"},
    {.flag = "load-balance-algorithm",
     .type = OPTION_CHOICE,
     MEMBER(balance),
     .arg = "NAME",
     .unset = "none",
     .choices = "roundrobin leastconn source random",
     .detail = "The variable `ROUTER_LOAD_BALANCE_ALGORITHM` sets it as well.",
     .help = "balance of routes other than passthrough"},
    {.flag = "tcp-balance-scheme",
     .type = OPTION_CHOICE,
     MEMBER(tcp_balance),
     .arg = "NAME",
     .dflt = "source",
     .choices = "roundrobin leastconn source random",
     .detail = "The variable `ROUTER_TCP_BALANCE_SCHEME` sets it as well.",
     .help = "balance of passthrough routes"},
    {.flag = "cookie-name",
     .type = OPTION_TEXT,
     MEMBER(cookie_name),
     .arg = "NAME",
     .dflt = "tenet-session",
     .check = check_cookie,
     .detail = "The variable `ROUTER_COOKIE_NAME` sets it as well.",
     .help = "name of the cookie that keeps a session on its pod"},
    {.flag = "ciphers",
     .type = OPTION_TEXT,
     MEMBER(ciphers),
     .arg = "LIST",
     .unset = "none",
     .check = check_ciphers,
     .detail = "The variable `ROUTER_CIPHERS` sets it as well.",
     .help = "ciphers of TLS 1.2, with colons between"},
    {.flag = "strict-sni",
     .arg = "[=false]",
     .type = OPTION_BOOL,
     MEMBER(strict_sni),
     .dflt = "false",
     .detail = "The variable `ROUTER_STRICT_SNI` sets it as well.",
     .help = "refuse TLS for unknown hosts instead of showing the default certificate"},
    {.flag = "http2",
     .arg = "[=false]",
     .type = OPTION_BOOL,
     MEMBER(http2),
     .dflt = "false",
     .detail = "The variable `ROUTER_ENABLE_HTTP2` sets it as well.",
     .help = "offer HTTP/2 over TLS"},
    {.flag = "proxy-protocol",
     .arg = "[=false]",
     .type = OPTION_BOOL,
     MEMBER(proxy_protocol),
     .dflt = "false",
     .detail = "The variable `ROUTER_USE_PROXY_PROTOCOL` sets it as well.",
     .help = "both ports require the PROXY protocol"},
    {.flag = "max-connections",
     .type = OPTION_NUMBER,
     MEMBER(max_connections),
     .arg = "N",
     .dflt = "20000",
     .min = 100,
     .max = 1000000,
     .detail = "The variable `ROUTER_MAX_CONNECTIONS` sets it as well.",
     .help = "limit of connections"},
    {.flag = "threads",
     .type = OPTION_NUMBER,
     MEMBER(threads),
     .arg = "N",
     .dflt = "0",
     .max = 64,
     .detail = "The variable `ROUTER_THREADS` sets it as well.",
     .help = "threads of HAProxy; 0: one for each processor"},
    {.flag = "compression",
     .arg = "[=false]",
     .type = OPTION_BOOL,
     MEMBER(compression),
     .dflt = "false",
     .detail = "The variable `ROUTER_ENABLE_COMPRESSION` sets it as well.",
     .help = "compress responses by gzip"},
    {.flag = "compression-mime",
     .type = OPTION_TEXT,
     MEMBER(compression_mime),
     .arg = "TYPES",
     .dflt = "text/html text/plain text/css",
     .check = check_mime,
     .detail = "The variable `ROUTER_COMPRESSION_MIME` sets it as well.",
     .help = "types that are compressed, with blanks between"},
    {.flag = "errorfile-503",
     .type = OPTION_FILE,
     MEMBER(errorfile_503),
     .arg = "FILE",
     .unset = "none",
     .check = check_plain,
     .detail = "The variable `ROUTER_ERRORFILE_503` sets it as well.",
     .help = "response for hosts without a route or without endpoints, in HTTP's form"},
    {.flag = "syslog-address",
     .type = OPTION_TEXT,
     MEMBER(syslog_address),
     .arg = "ADDRESS",
     .unset = "none",
     .check = check_plain,
     .detail = "The variable `ROUTER_SYSLOG_ADDRESS` sets it as well.",
     .help = "access log: ADDRESS[:PORT] of a syslog server, or a socket's path"},
    {.flag = "syslog-level",
     .type = OPTION_CHOICE,
     MEMBER(syslog_level),
     .arg = "LEVEL",
     .dflt = "warning",
     .choices = "emerg alert crit err warning notice info debug",
     .detail = "The variable `ROUTER_LOG_LEVEL` sets it as well.",
     .help = "least level of the access log; requests have info"},
    {.flag = "access-log-format",
     .type = OPTION_CHOICE,
     MEMBER(log_format),
     .arg = "FORMAT",
     .dflt = "httplog",
     .choices = "httplog json",
     .help = "form of the access log's lines"},
    {.flag = "bind-ports-after-sync",
     .arg = "[=false]",
     .type = OPTION_BOOL,
     MEMBER(bind_after_sync),
     .dflt = "false",
     .detail = "The variable `ROUTER_BIND_PORTS_AFTER_SYNC` sets it as well.",
     .help = "do not listen before the first lists of routes are complete"},
    {.flag = "connect-timeout",
     .type = OPTION_TEXT,
     MEMBER(connect_timeout),
     .arg = "TIME",
     .dflt = "5s",
     .check = check_time,
     .detail = "The variable `ROUTER_DEFAULT_CONNECT_TIMEOUT` sets it as well.",
     .help = "time to connect to an endpoint"},
    {.flag = "client-timeout",
     .type = OPTION_TEXT,
     MEMBER(client_timeout),
     .arg = "TIME",
     .dflt = "30s",
     .check = check_time,
     .detail = "The variable `ROUTER_DEFAULT_CLIENT_TIMEOUT` sets it as well.",
     .help = "time without data of the client"},
    {.flag = "client-fin-timeout",
     .type = OPTION_TEXT,
     MEMBER(client_fin_timeout),
     .arg = "TIME",
     .dflt = "1s",
     .check = check_time,
     .detail = "The variable `ROUTER_CLIENT_FIN_TIMEOUT` sets it as well.",
     .help = "time for the end of a client's connection"},
    {.flag = "server-timeout",
     .type = OPTION_TEXT,
     MEMBER(server_timeout),
     .arg = "TIME",
     .dflt = "30s",
     .check = check_time,
     .detail = "The variable `ROUTER_DEFAULT_SERVER_TIMEOUT` sets it as well.",
     .help = "time without data of the endpoint"},
    {.flag = "server-fin-timeout",
     .type = OPTION_TEXT,
     MEMBER(server_fin_timeout),
     .arg = "TIME",
     .dflt = "1s",
     .check = check_time,
     .detail = "The variable `ROUTER_DEFAULT_SERVER_FIN_TIMEOUT` sets it as well.",
     .help = "time for the end of an endpoint's connection"},
    {.flag = "tunnel-timeout",
     .type = OPTION_TEXT,
     MEMBER(tunnel_timeout),
     .arg = "TIME",
     .dflt = "1h",
     .check = check_time,
     .detail = "The variable `ROUTER_DEFAULT_TUNNEL_TIMEOUT` sets it as well.",
     .help = "time without data of a WebSocket or a passthrough connection"},
    {.flag = "slowloris-timeout",
     .type = OPTION_TEXT,
     MEMBER(slowloris_timeout),
     .arg = "TIME",
     .dflt = "10s",
     .check = check_time,
     .detail = "The variable `ROUTER_SLOWLORIS_TIMEOUT` sets it as well.",
     .help = "time for the head of a request"},
    {.flag = "keepalive-timeout",
     .type = OPTION_TEXT,
     MEMBER(keepalive_timeout),
     .arg = "TIME",
     .dflt = "300s",
     .check = check_time,
     .detail = "The variable `ROUTER_SLOWLORIS_HTTP_KEEPALIVE` sets it as well.",
     .help = "time between two requests of a connection"},
    {.flag = "check-interval",
     .type = OPTION_TEXT,
     MEMBER(check_interval),
     .arg = "TIME",
     .dflt = "5000ms",
     .check = check_time,
     .detail = "The variable `ROUTER_BACKEND_CHECK_INTERVAL` sets it as well.",
     .help = "time between two probes of an endpoint"},
    {.flag = "hard-stop-after",
     .type = OPTION_TEXT,
     MEMBER(hard_stop_after),
     .arg = "TIME",
     .dflt = "1h",
     .check = check_time,
     .detail = "The variable `ROUTER_HARD_STOP_AFTER` sets it as well.",
     .help = "time that an old worker may have after a reload"},
    {.flag = "reload-interval",
     .type = OPTION_TEXT,
     MEMBER(reload_interval),
     .arg = "TIME",
     .dflt = "1s",
     .check = check_time,
     .detail = "The variable `RELOAD_INTERVAL` sets it as well.",
     .help = "time between two reloads, at least"},
    {.flag = "shutdown-timeout",
     .type = OPTION_TEXT,
     MEMBER(shutdown_timeout),
     .arg = "TIME",
     .dflt = "45s",
     .check = check_time,
     .detail = "The variable `ROUTER_MAX_SHUTDOWN_TIMEOUT` sets it as well.",
     .help = "time that connections have to end after SIGTERM"},
};

const struct option_table router_options = {
    .kind = "RouterConfig", .rows = rows, .n = ARRAY_SIZE(rows)};

/* ---- variables of the environment ---- */

static const struct {
    const char *name, *flag;
} variables[] = {
    {"ROUTER_SERVICE_HTTP_PORT", "http-port"},
    {"ROUTER_SERVICE_HTTPS_PORT", "https-port"},
    {"ROUTER_LISTEN_ADDR", "stats-address"},
    {"ROUTER_SERVICE_NAME", "name"},
    {"ROUTER_CANONICAL_HOSTNAME", "canonical-hostname"},
    {"ROUTER_UPDATE_STATUS", "update-status"},
    {"ROUTE_LABELS", "route-labels"},
    {"NAMESPACE_LABELS", "namespace-labels"},
    {"PROJECT_LABELS", "project-labels"},
    {"ROUTER_ALLOWED_DOMAINS", "allowed-domains"},
    {"ROUTER_DENIED_DOMAINS", "denied-domains"},
    {"ROUTER_SUBDOMAIN", "hostname-template"},
    {"ROUTER_OVERRIDE_HOSTNAME", "override-hostname"},
    {"ROUTER_OVERRIDE_DOMAINS", "override-domains"},
    {"ROUTER_ALLOW_WILDCARD_ROUTES", "allow-wildcard-routes"},
    {"ROUTER_DISABLE_NAMESPACE_OWNERSHIP_CHECK", "disable-namespace-ownership-check"},
    {"DEFAULT_CERTIFICATE_PATH", "default-certificate"},
    {"DEFAULT_DESTINATION_CA_PATH", "default-destination-ca"},
    {"ROUTER_LOAD_BALANCE_ALGORITHM", "load-balance-algorithm"},
    {"ROUTER_TCP_BALANCE_SCHEME", "tcp-balance-scheme"},
    {"ROUTER_COOKIE_NAME", "cookie-name"},
    {"ROUTER_CIPHERS", "ciphers"},
    {"ROUTER_STRICT_SNI", "strict-sni"},
    {"ROUTER_ENABLE_HTTP2", "http2"},
    {"ROUTER_USE_PROXY_PROTOCOL", "proxy-protocol"},
    {"ROUTER_MAX_CONNECTIONS", "max-connections"},
    {"ROUTER_THREADS", "threads"},
    {"ROUTER_ENABLE_COMPRESSION", "compression"},
    {"ROUTER_COMPRESSION_MIME", "compression-mime"},
    {"ROUTER_ERRORFILE_503", "errorfile-503"},
    {"ROUTER_SYSLOG_ADDRESS", "syslog-address"},
    {"ROUTER_LOG_LEVEL", "syslog-level"},
    {"ROUTER_BIND_PORTS_AFTER_SYNC", "bind-ports-after-sync"},
    {"ROUTER_DEFAULT_CONNECT_TIMEOUT", "connect-timeout"},
    {"ROUTER_DEFAULT_CLIENT_TIMEOUT", "client-timeout"},
    {"ROUTER_CLIENT_FIN_TIMEOUT", "client-fin-timeout"},
    {"ROUTER_DEFAULT_SERVER_TIMEOUT", "server-timeout"},
    {"ROUTER_DEFAULT_SERVER_FIN_TIMEOUT", "server-fin-timeout"},
    {"ROUTER_DEFAULT_TUNNEL_TIMEOUT", "tunnel-timeout"},
    {"ROUTER_SLOWLORIS_TIMEOUT", "slowloris-timeout"},
    {"ROUTER_SLOWLORIS_HTTP_KEEPALIVE", "keepalive-timeout"},
    {"ROUTER_BACKEND_CHECK_INTERVAL", "check-interval"},
    {"ROUTER_HARD_STOP_AFTER", "hard-stop-after"},
    {"RELOAD_INTERVAL", "reload-interval"},
    {"ROUTER_MAX_SHUTDOWN_TIMEOUT", "shutdown-timeout"},
};

/* Variables of OpenShift's router that this router does not act upon. */
static const struct {
    const char *name, *why;
    bool refused; /* Without it routes would be less safe than the administrator asks for. */
} absent[] = {
    {"EXTENDED_VALIDATION", "certificates and keys are always verified", false},
    {"TEMPLATE_FILE", "this router makes HAProxy's configuration itself; there are no templates",
     false},
    {"RELOAD_SCRIPT", "this router reloads HAProxy itself", false},
    {"ROUTER_SERVICE_SNI_PORT", "front ends hand connections over by a socket in the folder",
     false},
    {"ROUTER_SERVICE_NO_SNI_PORT", "front ends hand connections over by a socket in the folder",
     false},
    {"ROUTER_SERVICE_NAMESPACE", "the router's name does not depend on a namespace", false},
    {"ROUTE_FIELDS", "routes have no fields to select by", true},
    {"DEFAULT_CERTIFICATE",
     "keys in variables can be read by other processes; set DEFAULT_CERTIFICATE_PATH", true},
    {"DEFAULT_CERTIFICATE_DIR", "set DEFAULT_CERTIFICATE_PATH to a file with certificate and key",
     true},
    {"ROUTER_MUTUAL_TLS_AUTH", "clients are not asked for certificates; use passthrough", true},
    {"ROUTER_MUTUAL_TLS_AUTH_CA", "clients are not asked for certificates; use passthrough", true},
    {"ROUTER_MUTUAL_TLS_AUTH_CRL", "clients are not asked for certificates; use passthrough", true},
    {"ROUTER_MUTUAL_TLS_AUTH_FILTER", "clients are not asked for certificates; use passthrough",
     true},
    {"ROUTER_IP_V4_V6_MODE", "this router listens on IPv4", false},
    {"ROUTER_BACKEND_PROCESS_ENDPOINTS", "the order of endpoints has no influence", false},
    {"ROUTER_SYSLOG_FORMAT", "set --access-log-format", false},
    {"STATS_PORT", "set ROUTER_LISTEN_ADDR", false},
    {"STATS_USERNAME",
     "health and metrics are answered without a password; keep their address local", true},
    {"STATS_PASSWORD",
     "health and metrics are answered without a password; keep their address local", true},
    {"ROUTER_METRICS_TYPE", "metrics are always there", false},
    {"ROUTER_HAPROXY_CONFIG_MANAGER", "changes are always live without a reload where HAProxy can",
     false},
    {"COMMIT_INTERVAL", "there are no reloads that only repeat changes", false},
    {"ROUTER_MAX_DYNAMIC_SERVERS", "servers are added when they are needed", false},
    {"ROUTER_BLUEPRINT_ROUTE_POOL_SIZE", "free backends are made for the shapes that routes have",
     false},
    {"ROUTER_BLUEPRINT_ROUTE_NAMESPACE", "free backends are made for the shapes that routes have",
     false},
    {"MAX_RELOAD_WAIT_TIME", "the router waits for the new worker itself", false},
    {"DROP_SYN_DURING_RESTART", "sockets are handed over, no connection is lost", false},
    {"ROUTER_ERRORFILE_404", "hosts without a route get the response for 503", false},
};

void router_config_init(struct router_config *c)
{
    options_init(&router_options, c);
}

void router_config_done(struct router_config *c)
{
    options_done(&router_options, c);
}

static const char *variable_value(const char *item, const char *name)
{
    size_t n = strlen(name);
    return strncmp(item, name, n) == 0 && item[n] == '=' && item[n + 1] ? item + n + 1 : NULL;
}

static const struct option_row *find_row(const char *flag)
{
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (streq(rows[i].flag, flag)) {
            return &rows[i];
        }
    }
    return NULL;
}

int router_config_read_env(struct router_config *c, const char *const *env,
                           void (*warn)(const char *name, const char *why), struct err *e)
{
    for (; *env; env++) {
        for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
            const char *v = variable_value(*env, variables[i].name);
            const struct option_row *row = v ? find_row(variables[i].flag) : NULL;
            if (!row) {
                continue;
            }
            if (row->type == OPTION_BOOL) {
                v = route_plan_is_true(v) ? "true" : "false";
            }
            if (option_set(row, c, v, e) < 0) {
                return err_prefix(e, "%s", variables[i].name);
            }
        }
        for (size_t i = 0; i < ARRAY_SIZE(absent); i++) {
            if (!variable_value(*env, absent[i].name)) {
                continue;
            }
            if (absent[i].refused) {
                return err_set(e, -EINVAL, "%s: %s", absent[i].name, absent[i].why);
            }
            warn(absent[i].name, absent[i].why);
        }
    }
    return 0;
}

int router_config_check(const struct router_config *c, struct err *e)
{
    if ((c->override_hostname || c->override_domains) && !c->subdomain) {
        return err_set(e, -EINVAL,
                       "--override-hostname and --override-domains need --hostname-template");
    }
    if (c->http_port == c->https_port) {
        return err_set(e, -EINVAL, "--http-port and --https-port are the same");
    }
    if (c->namespace && (c->namespace_labels || c->project_labels)) {
        return err_set(e, -EINVAL,
                       "--namespace cannot be combined with labels of namespaces or projects");
    }
    if (c->namespace_labels && c->project_labels) {
        return err_set(e, -EINVAL, "--namespace-labels and --project-labels exclude each other");
    }
    return 0;
}

uint64_t router_config_time(const char *s)
{
    uint64_t ms = 0;
    (void) route_plan_time(s, &ms);
    return ms;
}

void router_config_plan_options(const struct router_config *c, const char *cookie_key,
                                struct route_plan_options *ret)
{
    *ret = (struct route_plan_options){
        .dir = c->dir,
        .http_port = c->http_port,
        .https_port = c->https_port,
        .address = c->address ? c->address : "",
        .wildcards = c->wildcards,
        .proxy_protocol = c->proxy_protocol,
        .http2 = c->http2,
        .strict_sni = c->strict_sni,
        .compression = c->compression,
        .compression_mime = c->compression_mime,
        .balance = c->balance,
        .tcp_balance = c->tcp_balance,
        .cookie_name = c->cookie_name,
        .cookie_key = cookie_key,
        .service_ca = c->service_ca,
        .max_connections = c->max_connections,
        .threads = c->threads,
        .ciphers = c->ciphers,
        .syslog_address = c->syslog_address,
        .log_level = c->syslog_level,
        .json_log = streq(c->log_format, "json"),
        .errorfile_503 = c->errorfile_503,
        .connect_ms = router_config_time(c->connect_timeout),
        .client_ms = router_config_time(c->client_timeout),
        .client_fin_ms = router_config_time(c->client_fin_timeout),
        .server_ms = router_config_time(c->server_timeout),
        .server_fin_ms = router_config_time(c->server_fin_timeout),
        .tunnel_ms = router_config_time(c->tunnel_timeout),
        .request_ms = router_config_time(c->slowloris_timeout),
        .keepalive_ms = router_config_time(c->keepalive_timeout),
        .check_ms = router_config_time(c->check_interval),
        .hard_stop_ms = router_config_time(c->hard_stop_after),
    };
}
