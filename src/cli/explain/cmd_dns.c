/* SPDX-License-Identifier: Apache-2.0 */
/* tenet dns: the cluster's DNS alone, for hosts without a node. */
#include "base/log.h"
#include "base/mem.h"
#include "base/prom.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/session.h"
#include "dns/dns.h"
#include "net/loop/notify.h"
#include "net/loop/sock.h"

#include <stdio.h>

#define DEFAULT_LISTEN "127.0.0.1:53"
#define THREADS_MAX 16
#define NETWORKS_MAX 32

LOG_MODULE("dns");

static const char help[] =
    "usage: tenet dns [OPTIONS]\n"
    "\n"
    "Answers DNS for the services of a cluster, over UDP and TCP, and asks other name servers for "
    "all\n"
    "other names. Nodes do this for their pods already, and the master may; this is for other "
    "hosts.\n"
    "Works with any Kubernetes API server; while it cannot be reached, what was known last is\n"
    "answered.\n";

enum {
    OPT_LISTEN = OPT_FIRST_FREE,
    OPT_DOMAIN,
    OPT_SERVERS,
    OPT_RESOLV,
    OPT_NETWORKS,
    OPT_RECURSION,
    OPT_THREADS,
    OPT_METRICS
};

static const struct command_option options[] = {
    {"listen", OPT_LISTEN, "ADDRESS[:PORT]",
     "where queries are answered; default: " DEFAULT_LISTEN},
    {"domain", OPT_DOMAIN, "NAME", "domain of the cluster; default: " DNS_DEFAULT_DOMAIN},
    {"nameservers", OPT_SERVERS, "LIST",
     "name servers for other names, \"10.0.0.2,10.0.0.3:5353\", or none; default: those of "
     "--resolv-conf"},
    {"resolv-conf", OPT_RESOLV, "FILE",
     "file with the name servers for other names; default: " DNS_RESOLV_CONF, COMPLETE_FILE,
     .detail = "Read again when it changes."},
    {"networks", OPT_NETWORKS, "LIST",
     "networks of pods and services, \"10.128.0.0/14,172.30.0.0/16\": they may ask for other "
     "names, "
     "and their reverse names are the cluster's",
     .detail = "Names of pods are answered only for addresses in them."},
    {"allow-recursion", OPT_RECURSION, NULL,
     "every client may ask for other names, not only this host and --networks",
     .detail = "An open resolver can be used to flood others: keep it from public networks."},
    {"threads", OPT_THREADS, "N",
     "threads that answer; default: one for each two processors, at most four",
     .detail = "Each has a socket of its own."},
    {"metrics-bind-address", OPT_METRICS, "ADDRESS:PORT",
     "where /metrics is served; default: nowhere"},
    {"kubeconfig", OPT_KUBECONFIG, "FILE", "default: $KUBECONFIG, then ~/.kube/config",
     COMPLETE_FILE},
    {"server", 's', "URL", "the API server, instead of a kubeconfig"},
    {0},
};

struct options {
    struct dns_options dns;
    struct dns_servers servers;
    struct ip4_prefix networks[NETWORKS_MAX];
    size_t n_networks;
    union dns_endpoint listen;
    const char *metrics;
};

static int parse_networks(const char *list, struct options *o, struct err *e)
{
    for (const char *p = list; *p; p += *p == ',') {
        size_t n = strcspn(p, ",");
        CLEANUP_FREE char *word = xstrndup(p, n);
        if (o->n_networks == NETWORKS_MAX) {
            return err_set(e, -EINVAL, "more than %d networks", NETWORKS_MAX);
        }
        int r = prefix_parse(word, &o->networks[o->n_networks++], e);
        if (r < 0) {
            return r;
        }
        p += n;
    }
    return 0;
}

static int parse_listen(const char *s, struct options *o, struct err *e)
{
    int r = dns_endpoint_parse(s, &o->listen, NULL);
    return r < 0 || o->listen.any.sa_family != AF_INET
               ? err_set(e, -EINVAL, "\"%s\" is not an IPv4 address with or without a port", s)
               : 0;
}

static int parse_one(int opt, struct options *o, struct err *e)
{
    uint64_t n;
    switch (opt) {
    case OPT_LISTEN:
        return parse_listen(optarg, o, e);
    case OPT_DOMAIN:
        o->dns.domain = optarg;
        return 0;
    case OPT_SERVERS:
        o->dns.servers = &o->servers;
        return streq(optarg, "none") ? 0 : dns_servers_parse(optarg, &o->servers, e);
    case OPT_RESOLV:
        o->dns.resolv_conf = optarg;
        return 0;
    case OPT_NETWORKS:
        return parse_networks(optarg, o, e);
    case OPT_RECURSION:
        o->dns.recurse_all = true;
        return 0;
    case OPT_THREADS:
        if (str_to_u64(optarg, THREADS_MAX, &n) < 0 || n == 0) {
            return err_set(e, -EINVAL, "%s is not in 1-%d", optarg, THREADS_MAX);
        }
        o->dns.threads = (unsigned) n;
        return 0;
    default:
        o->metrics = optarg;
        return 0;
    }
}

/* Returns an exit status, or -1 to go on. */
static int parse_options(int argc, char **argv, struct session *s, struct options *o)
{
    int opt;
    const char *name = NULL;
    struct err e = {0};
    (void) dns_endpoint_parse(DEFAULT_LISTEN, &o->listen, NULL);
    while ((opt = session_getopt(s, &cmd_dns, argc, argv, &name)) != -1) {
        if (opt == OPT_HELP) {
            return 0;
        }
        if (opt == '?') {
            return 2;
        }
        if (opt >= OPT_FIRST_FREE && parse_one(opt, o, &e) < 0) {
            return command_usage(&cmd_dns, "--%s: %s", name, e.text);
        }
    }
    return command_expect_end(&cmd_dns, argc, argv);
}

/* ---- metrics ---- */

static void on_request(void *ctx, struct http_exchange *x)
{
    struct dns *d = ctx;
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    if (!streq(http_path(x), "/metrics")) {
        http_respond(x, 404, "text/plain", "there is only /metrics\n", 23);
        return;
    }
    dns_write_metrics(d, &b);
    prom_process(&b);
    http_respond(x, 200, PROM_CONTENT_TYPE, b.data, b.size);
}

static int serve_metrics(struct loop *l, struct dns *d, const char *address,
                         struct http_server **ret, struct err *e)
{
    struct http_limits limits = {.max_head = 8192, .max_body = 1, .max_conns = 16};
    int fd, r = sock_listen_tcp(address, &fd, e);
    if (r < 0) {
        return r;
    }
    *ret = http_server_new(l, &limits, on_request, d);
    return http_server_add_listener(*ret, fd, e);
}

/* ---- running ---- */

static void on_signal(void *ctx)
{
    loop_stop(ctx);
}

static void on_synced(void *ctx)
{
    struct dns *d = ctx;
    log_info("services are answered", "services=%zu", dns_zone_count(dns_zone_of(d)));
    notify_manager("READY=1");
}

/* Runs until a signal; returns the exit status. */
static int serve(struct session *s, const struct options *o)
{
    static const struct services_listener ops = {.synced = on_synced};
    CLEANUP(dns_free) struct dns *d = NULL;
    struct http_server *http = NULL;
    struct err e = {0};
    int r = dns_new(s->loop, &o->dns, &d, &e);
    if (r < 0) {
        return command_usage(&cmd_dns, "--domain: %s", e.text);
    }
    dns_zone_set_networks(dns_zone_of(d), o->networks, o->n_networks);
    r = dns_listen(d, ntohl(o->listen.v4.sin_addr.s_addr), ntohs(o->listen.v4.sin_port), &e);
    if (r == 0 && o->metrics) {
        r = serve_metrics(s->loop, d, o->metrics, &http, &e);
    }
    if (r < 0) {
        http_server_free(http);
        return command_fail(&e, NULL);
    }
    struct loop_signal *term = loop_signal_new(s->loop, SIGTERM, on_signal, s->loop);
    struct loop_signal *interrupt = loop_signal_new(s->loop, SIGINT, on_signal, s->loop);
    struct services_watch *w = services_watch_new(s->loop, s->client);
    dns_follow(d, w);
    services_watch_add(w, &ops, d);
    loop_run(s->loop);
    d = dns_free(d);
    services_watch_free(w);
    loop_signal_free(term);
    loop_signal_free(interrupt);
    http_server_free(http);
    return 0;
}

static int run(int argc, char **argv)
{
    CLEANUP_SESSION struct session s = {0};
    struct options o = {0};
    optind = 0;
    int status = parse_options(argc, argv, &s, &o);
    if (status >= 0) {
        return status;
    }
    status = session_open(&s);
    return status ? status : serve(&s, &o);
}

const struct command cmd_dns = {
    .name = "dns",
    .summary = "answer DNS for the services of a cluster",
    .help = help,
    .notes = "Exit status: 0 stopped by SIGTERM or SIGINT, 1 it cannot listen, 2 wrong usage.\n",
    .options = options,
    .run = run,
};
