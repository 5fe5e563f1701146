/* SPDX-License-Identifier: Apache-2.0 */
#include "node/agent/agent.h"

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "client/client.h"
#include "client/kubeconfig.h"
#include "client/objects.h"
#include "client/services.h"
#include "controller/recorder.h"
#include "datapath/datapath.h"
#include "datapath/services/proxy.h"
#include "net/loop/process.h"
#include "node/cni/cniconf.h"
#include "node/cni/cniserver.h"
#include "node/cni/podlookup.h"
#include "node/cni/pods.h"
#include "node/host/addresses.h"
#include "node/host/host.h"
#include "node/host/hostports.h"
#include "node/host/keeper.h"
#include "node/host/monitor.h"
#include "node/host/neigh.h"
#include "node/host/ownports.h"
#include "node/introspect/introspect.h"
#include "node/registry/identity.h"
#include "node/registry/policies.h"
#include "node/registry/registration.h"
#include "node/registry/resolver.h"
#include "node/registry/services.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

LOG_MODULE("node");

#define WAIT_FIRST_MS 3000
#define WAIT_AGAIN_MS 30000
#define SETTLE_MS 20 /* Changes of objects that come together are applied together. */
#define VNID_WAIT_MS 5000
#define PROJECTS_WAIT_MS 30000 /* For VNIDs; then pods without are kept apart. */
#define LOOK_AGAIN_MS 30000    /* At a ClusterNetwork that could not be followed. */
#define STOP_MS 10000          /* For requests under way. */
#define STOP_TELL_MS 1000      /* For the registry to hear of it. */
#define STOP_STEP_MS 10

enum phase {
    WAITING,  /* For the registry. */
    STARTING, /* The datapath works on it. */
    RUNNING,
    STOPPING,
};

struct agent {
    const struct node_config *cfg;
    const char *config_path;
    struct loop *loop;
    enum phase phase;
    int status;
    uint32_t host_ip;
    int lock_fd;
    char *socket_path;
    struct cniconf conf; /* Of the CNI configuration, ... */
    char *cni_config;    /* ... and its path. */

    struct api_client *client;
    struct identity *identity; /* NULL: the kubeconfig is somebody else's to keep. */
    struct registration *registration;
    struct recorder *recorder; /* NULL before there is a client. */
    bool told_unready;         /* By an Event, since it was last ready. */
    bool registered;
    struct informer *networks, *subnets, *projects;
    struct policies *policies;       /* Under ovs-networkpolicy. */
    struct services_watch *services; /* Of all who serve them here. */
    struct resolver *resolver;       /* NULL: pods get no DNS from here. */
    struct services *pod_services;   /* Those of pods, in the switch. */
    struct loop_task put_services;   /* For a datapath that wants them as they are. */
    struct host_proxy *host_proxy;   /* Those of the host and of outside. */
    bool proxy_failed;               /* And users were told. */
    bool master_lost;
    struct smap skipped; /* HostSubnet to the reason why it is not used. */

    struct sdn_network net; /* In effect; remotes are ours. */
    struct loop_timer *settle;
    struct loop_timer *look_again;
    uint64_t vnids_wanted_ms; /* Since when a plug-in waits for VNIDs; 0: none does. */
    char wanted_project[256]; /* The one that was said to be waited for. */
    bool inventory;           /* The datapath knows its pods. */
    bool network_set;         /* The datapath has a network from us. */
    bool read_again;          /* Objects have changed since 'net' was made of them. */
    struct loop_timer *wait;  /* Says what is waited for. */
    char wait_text[512];

    struct datapath_prepared *prepared; /* For 'datapath', until that is opened. */
    struct datapath *datapath;
    bool switch_ready;
    char switch_reason[256];
    struct keeper *keeper;
    struct monitor *monitor;
    bool host_ready;
    char host_reason[256];
    char refused[512]; /* Why the ClusterNetwork is not followed; "": it is. */
    char not_ready[400];
    struct pods *pods;
    struct host_ports *host_ports;
    struct cniserver *cniserver;
    struct neigh *neigh;
    struct introspect *introspect;
    size_t switch_losses, host_losses, master_losses;

    struct loop_signal *sigterm, *sigint, *sighup;
    struct loop_timer *stop_timer;
    uint64_t stop_began;
};

static void fatal(struct agent *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void settle(void *ctx);
static void settle_soon(struct agent *a);

/* ---- what users are told ---- */

/* 'uid' NULL: not known. */
static void tell(struct agent *a, enum recorder_type type, const char *api_version,
                 const char *kind, const char *ns, const char *name, const char *uid,
                 const char *reason, const char *text)
{
    if (!a->recorder || !name) {
        return;
    }
    CLEANUP(json_free) struct json *about = json_object();
    struct json *metadata = json_ensure_object(about, "metadata");
    json_set_string(metadata, "name", name);
    json_set_string(metadata, "namespace", ns);
    json_set_string(metadata, "uid", uid);
    recorder_event(a->recorder, api_version, kind, about, type, reason, text);
}

/* About this node; with its name for a uid, as kubelets do. */
static void tell_node(struct agent *a, enum recorder_type type, const char *reason,
                      const char *text)
{
    tell(a, type, "v1", "Node", NULL, a->cfg->node_name, a->cfg->node_name, reason, text);
}

/* Something is wrong: an Event, and the node's conditions. */
static void set_unready(struct agent *a, const char *reason, const char *text)
{
    a->told_unready = true;
    tell_node(a, EVENT_WARNING, reason, text);
    registration_set_ready(a->registration, false, reason, text);
}

/* An object of the registry is not used as it is. */
static void tell_not_used(struct agent *a, const char *kind, const struct informer *from,
                          const char *name, const char *text)
{
    const struct json *obj = informer_get(from, name);
    CLEANUP_FREE char *reason = xasprintf("%sNotUsed", kind);
    CLEANUP_FREE char *message = xasprintf("node %s: %s", a->cfg->node_name, text);
    tell(a, EVENT_WARNING, OBJECTS_NETWORK_API, kind, NULL, name,
         json_path_string(obj, "metadata", "uid", NULL), reason, message);
}

/* ---- stopping ---- */

static void stop_step(void *ctx)
{
    struct agent *a = ctx;
    uint64_t t = loop_now_ms(a->loop) - a->stop_began;
    bool busy = (a->pods && pods_busy(a->pods) > 0) || (a->keeper && keeper_busy(a->keeper)) ||
                (a->host_proxy && host_proxy_busy(a->host_proxy));
    bool telling =
        a->registration && a->registered && !a->master_lost &&
        (!registration_is_current(a->registration) || recorder_waiting(a->recorder) > 0) &&
        t < STOP_TELL_MS;
    if (t < STOP_MS && (busy || telling)) {
        loop_timer_arm(a->stop_timer, STOP_STEP_MS);
        return;
    }
    if (busy) {
        /* Threads still hold what we would free; the kernel does that better. */
        log_warn("stopped with requests under way", "requests=%zu",
                 a->pods ? pods_busy(a->pods) : 0);
        _exit(a->status);
    }
    loop_stop(a->loop);
}

static void stop(struct agent *a, int status, const char *reason, const char *message)
{
    if (a->phase == STOPPING) {
        return;
    }
    a->phase = STOPPING;
    a->status = status;
    if (a->conf.dir) {
        cniconf_remove(&a->conf);
    }
    if (a->cniserver) {
        cniserver_close(a->cniserver);
    }
    if (a->registration) {
        registration_set_ready(a->registration, false, reason, message);
    }
    a->stop_began = loop_now_ms(a->loop);
    loop_timer_arm(a->stop_timer, 0);
}

static void fatal(struct agent *a, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (a->phase != STOPPING) {
        log_error("cannot go on", "node=%s reason=\"%s\"", a->cfg->node_name, text);
        tell_node(a, EVENT_WARNING, "TenetFailed", text);
    }
    stop(a, 1, "TenetFailed", text);
}

static void on_term(void *ctx)
{
    struct agent *a = ctx;
    if (a->phase == STOPPING) {
        a->stop_began = 0; /* Told twice: now. */
        return;
    }
    log_info("stopping; packets flow on", "node=%s", a->cfg->node_name);
    stop(a, 0, "TenetStopped", "the node's agent was stopped");
}

static void on_hup(void *ctx)
{
    struct agent *a = ctx;
    CLEANUP(node_config_done) struct node_config c;
    struct err e = {0};
    node_config_init(&c);
    if (!a->config_path) {
        return;
    }
    if (node_config_load(&c, a->config_path, &e) < 0 || node_config_apply_log_level(&c, &e) < 0) {
        log_error("cannot read the configuration again", "error=\"%s\"", e.text);
        return;
    }
    log_info("log levels read again", "logLevel=%s", c.log_level ? c.log_level : "(unchanged)");
}

/* ---- what the registry says ---- */

static int read_cluster(struct agent *a, struct sdn_network *n, struct err *e)
{
    const struct json *obj = informer_get(a->networks, "default");
    if (!obj) {
        return err_set(e, -ENOENT, "ClusterNetwork default: is not there");
    }
    if (objects_parse_cluster_network(obj, n, e) < 0) {
        return err_prefix(e, "ClusterNetwork default");
    }
    if (a->cfg->mtu) {
        n->mtu = a->cfg->mtu;
    }
    n->service_by_host = a->cfg->proxy_userspace;
    return 0;
}

static int read_own(struct agent *a, struct sdn_network *n, struct err *e)
{
    const char *name = a->cfg->node_name;
    const struct json *obj = informer_get(a->subnets, name);
    struct sdn_remote own;
    if (!obj) {
        return err_set(e, -ENOENT, "HostSubnet %s: is not there", name);
    }
    if (objects_parse_host_subnet(obj, &own, e) < 0) {
        return err_prefix(e, "HostSubnet %s", name);
    }
    if (own.subnet.len == 0) {
        return err_set(e, -ENOENT, "HostSubnet %s: has no subnet yet", name);
    }
    if (own.host_ip != a->host_ip) {
        return err_set(e, -EADDRNOTAVAIL, "HostSubnet %s: its hostIP is %s, this node's is %s",
                       name, IP4_TEXT(own.host_ip), IP4_TEXT(a->host_ip));
    }
    bool inside = false;
    for (size_t i = 0; i < n->n_cluster; i++) {
        inside = inside || (own.subnet.len >= n->cluster[i].len &&
                            prefix_contains(n->cluster[i], own.subnet.addr));
    }
    if (!inside) {
        return err_set(e, -EINVAL, "HostSubnet %s: its subnet %s is in no cluster network", name,
                       PREFIX_TEXT(own.subnet));
    }
    n->local = own.subnet;
    n->host_ip = a->host_ip;
    return 0;
}

struct collect {
    struct objects_host_subnet *items;
    size_t n, cap;
};

static void collect_subnet(void *ctx, const char *key, const struct json *obj)
{
    struct collect *c = ctx;
    c->items = grow(c->items, &c->cap, c->n + 1, sizeof *c->items);
    c->items[c->n++] = (struct objects_host_subnet){key, obj};
}

struct skip {
    struct agent *agent;
    struct smap now;
};

static void skip_subnet(void *ctx, const char *name, const char *why)
{
    struct skip *s = ctx;
    const char *before = smap_get(&s->agent->skipped, name);
    if (!streq_null(before, why)) {
        log_warn("HostSubnet not used", "name=%s reason=\"%s\"", name, why);
        tell_not_used(s->agent, "HostSubnet", s->agent->subnets, name, why);
    }
    smap_set(&s->now, name, xstrdup(why));
}

/* At which addresses this node is beside its main one, and which of other nodes' are believed. */
static void read_addresses(struct agent *a, struct sdn_network *n)
{
    static struct log_limit limit;
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    struct err e = {0};
    int err = rtnl_open(&r, &e);
    err = err < 0 ? err : addresses_own(r, n, &n->addresses, &e);
    if (err < 0) {
        log_limited(&limit, LOG_ERROR, "the host's addresses are not known", "error=\"%s\"",
                    e.text);
        n->addresses = a->net.addresses;
        return;
    }
    addresses_believe(r, n);
    registration_set_addresses(a->registration, &n->addresses);
}

static void read_remotes(struct agent *a, struct sdn_network *n)
{
    struct collect c = {0};
    struct skip s = {.agent = a};
    smap_init(&s.now, free);
    informer_each(a->subnets, collect_subnet, &c);
    n->n_remotes =
        objects_build_remotes(n, a->cfg->node_name, c.items, c.n, skip_subnet, &s, &n->remotes);
    free(c.items);
    smap_clear(&a->skipped);
    struct smap_entry *entry;
    SMAP_FOREACH (entry, &s.now) {
        smap_set(&a->skipped, entry->key, xstrdup(entry->value));
    }
    smap_done(&s.now);
    read_addresses(a, n);
}

/* ---- host ports ---- */

/* The host ports at all addresses of nodes, as services: of this node its own, of others what the master published. */
struct port_services {
    const struct agent *agent;
    struct sdn_service **list;
    size_t n, cap;
};

static void add_port_services(struct port_services *s, uint32_t main,
                              const struct sdn_addresses *others, const struct sdn_host_port *ports,
                              size_t n)
{
    for (size_t i = 0; i <= others->n; i++) {
        uint32_t ip = i ? others->ip[i - 1] : main;
        struct sdn_service *v = sdn_host_ports_service(ip, ports, n);
        if (v) {
            s->list = grow(s->list, &s->cap, s->n + 1, sizeof *s->list);
            s->list[s->n++] = v;
        }
    }
}

static const char *published_text(const struct json *obj)
{
    return json_path_string(obj, "metadata", "annotations", SDN_HOST_PORTS, NULL);
}

static void add_ports_of_other(void *ctx, const char *key, const struct json *obj)
{
    struct port_services *s = ctx;
    const struct sdn_network *n = &s->agent->net;
    struct sdn_remote r;
    if (!published_text(obj) || streq(key, s->agent->cfg->node_name) ||
        objects_parse_host_subnet(obj, &r, NULL) < 0) {
        return;
    }
    for (size_t i = 0; i < n->n_remotes; i++) {
        const struct sdn_remote *known = &n->remotes[i];
        if (known->id == r.id && known->host_ip == r.host_ip) {
            CLEANUP_FREE struct sdn_host_port *ports = NULL;
            size_t n_ports = sdn_host_ports_parse(published_text(obj), known->subnet, &ports);
            add_port_services(s, known->host_ip, &known->addresses, ports, n_ports);
        }
    }
}

static int by_cluster_ip(const void *a, const void *b)
{
    const struct sdn_service *x = *(struct sdn_service *const *) a;
    const struct sdn_service *y = *(struct sdn_service *const *) b;
    return (x->cluster_ip > y->cluster_ip) - (x->cluster_ip < y->cluster_ip);
}

static void put_port_services(struct agent *a)
{
    struct port_services s = {.agent = a};
    const struct sdn_host_port *own = NULL;
    size_t n_own = a->host_ports ? host_ports_get(a->host_ports, &own) : 0, n = 0;
    add_port_services(&s, a->net.host_ip, &a->net.addresses, own, n_own);
    informer_each(a->subnets, add_ports_of_other, &s);
    if (s.n) {
        qsort(s.list, s.n, sizeof(struct sdn_service *), by_cluster_ip);
    }
    for (size_t i = 0; i < s.n; i++) { /* Two HostSubnets may have one hostIP by mistake. */
        if (n && s.list[n - 1]->cluster_ip == s.list[i]->cluster_ip) {
            sdn_service_free(s.list[i]);
        } else {
            s.list[n++] = s.list[i];
        }
    }
    if (services_set_host_ports(a->pod_services, s.list, n)) {
        loop_task_queue(&a->put_services);
    }
}

static void port_services_changed(void *ctx)
{
    put_port_services(ctx);
}

/* What the master tells the other nodes of this one's. */
static void read_published(struct agent *a)
{
    struct sdn_host_port *list = NULL;
    size_t n = sdn_host_ports_parse(published_text(informer_get(a->subnets, a->cfg->node_name)),
                                    a->net.local, &list);
    host_ports_published(a->host_ports, list, n);
}

static void publish_ports(void *ctx, const char *text)
{
    struct agent *a = ctx;
    registration_set_host_ports(a->registration, text);
}

static void open_ports(void *ctx, struct nat_port *ports, size_t n, datapath_done_fn *fn,
                       void *fn_ctx)
{
    struct agent *a = ctx;
    keeper_set_ports(a->keeper, ports, n, fn, fn_ctx);
}

static const char *find_own_port(void *ctx, const struct cni_host_port *p)
{
    const struct agent *a = ctx;
    const struct own_ports o = {.config = a->cfg,
                                .net = &a->net,
                                .services = a->services,
                                .master = api_client_server(a->client)};
    return own_ports_find(&o, p);
}

static bool same_cluster(const struct sdn_network *a, const struct sdn_network *b)
{
    bool same = a->plugin == b->plugin && a->n_cluster == b->n_cluster &&
                prefix_equal(a->service, b->service) && a->vxlan_port == b->vxlan_port &&
                a->mtu == b->mtu;
    for (size_t i = 0; same && i < a->n_cluster; i++) {
        same = prefix_equal(a->cluster[i], b->cluster[i]);
    }
    return same;
}

static struct datapath_config datapath_config(const struct node_config *c)
{
    return (struct datapath_config){.kind = c->datapath,
                                    .run_dir = c->run_dir,
                                    .ebpf_without = c->ebpf_without,
                                    .ebpf_max_entries = c->ebpf_max_entries,
                                    .bridge = c->ovs_bridge,
                                    .ovsdb = c->ovs_database,
                                    .ovs_rundir = c->ovs_run_dir,
                                    .datapath_type = c->ovs_datapath_type};
}

/* Before anything is touched, and again before a changed network is. */
static int check_network(const struct agent *a, const struct sdn_network *n, struct err *e)
{
    struct datapath_config dc = datapath_config(a->cfg);
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    char warning[256];
    int err = rtnl_open(&r, e);
    if (err == 0) {
        err = host_check(r, n, streq(dc.kind, "ovs") ? NULL : HOST_VXLAN, warning, e);
    }
    if (err == 0) {
        if (warning[0]) {
            log_warn("odd route", "text=\"%s\"", warning);
        }
        err = keeper_check(n, e);
    }
    if (err == 0) {
        err = datapath_check(&dc, n, e);
    }
    return err;
}

/* ---- services of a datapath without flows ---- */

static void put_services(void *ctx)
{
    struct agent *a = ctx;
    struct model_service *list = NULL;
    if (a->network_set && a->phase != STOPPING && datapath_wants_services(a->datapath) &&
        services_synced(a->pod_services)) {
        size_t n = services_for_model(a->pod_services, &list);
        datapath_set_services(a->datapath, a->cfg->node_name, list, n);
    }
    free(list);
}

static void service_changed(void *ctx, const struct sdn_service *old, const struct sdn_service *s)
{
}

static void services_settled(void *ctx)
{
    struct agent *a = ctx;
    loop_task_queue(&a->put_services);
}

/* ---- projects ---- */

static void forget_project(void *ctx, const char *key, const struct json *obj)
{
    struct agent *a = ctx;
    resolver_set_project(a->resolver, key, NULL);
}

static int find_vnids(void *ctx, const char *project, struct sdn_vnids *ret, struct err *e)
{
    struct agent *a = ctx;
    const struct json *obj = a->projects ? informer_get(a->projects, project) : NULL;
    if (!obj) {
        return err_set(e, -ENOENT, "project %s has no NetNamespace%s", project,
                       a->master_lost ? ", and the master cannot be reached" : " yet");
    }
    return objects_parse_net_namespace(obj, ret, e) < 0 ? err_prefix(e, "NetNamespace %s", project)
                                                        : 0;
}

static void project_changed(void *ctx, const char *key, const struct json *old,
                            const struct json *obj)
{
    struct agent *a = ctx;
    struct err e = {0};
    struct sdn_vnids vnids;
    if (objects_parse_net_namespace(obj, &vnids, &e) < 0) {
        log_warn("NetNamespace not used", "name=%s reason=\"%s\"", key, e.text);
        tell_not_used(a, "NetNamespace", a->projects, key, e.text);
        resolver_set_project(a->resolver, key, NULL);
        return;
    }
    resolver_set_project(a->resolver, key, &vnids);
    if (a->vnids_wanted_ms) {
        settle_soon(a);
    }
    if (a->phase == RUNNING) {
        pods_project_changed(a->pods, key);
    }
    services_project_changed(a->pod_services, key);
    loop_task_queue(&a->put_services);
}

static void project_deleted(void *ctx, const char *key, const struct json *obj)
{
    struct agent *a = ctx;
    forget_project(a, key, obj);
    services_project_changed(a->pod_services, key);
    loop_task_queue(&a->put_services);
}

static void projects_synced(void *ctx)
{
    struct agent *a = ctx;
    resolver_projects_known(a->resolver);
    if (a->vnids_wanted_ms) {
        settle_soon(a);
    }
    if (a->phase == RUNNING) {
        pods_all_projects_changed(a->pods);
    }
    services_project_changed(a->pod_services, NULL);
    loop_task_queue(&a->put_services);
}

/* Only where projects have VNIDs of their own. */
static void follow_projects(struct agent *a, enum sdn_plugin plugin)
{
    static const struct informer_ops ops = {
        .changed = project_changed, .deleted = project_deleted, .synced = projects_synced};
    if (sdn_plugin_has_vnids(plugin) && !a->projects) {
        a->projects =
            informer_new(a->client, a->loop, OBJECTS_NETWORK_API, "netnamespaces", NULL, &ops, a);
    } else if (!sdn_plugin_has_vnids(plugin) && a->projects) {
        informer_each(a->projects, forget_project, a);
        a->projects = informer_free(a->projects);
    }
}

/* Whether 'plugin' can be in effect: it must not be before the projects of all pods have their VNIDs, which
 * the master may still be giving out, else these pods would be cut off for a while. */
static bool vnids_known(struct agent *a, enum sdn_plugin plugin)
{
    follow_projects(a, plugin);
    if (!sdn_plugin_has_vnids(plugin)) {
        a->vnids_wanted_ms = 0;
        return true;
    }
    uint64_t now = loop_now_ms(a->loop);
    const char *project = NULL;
    if (informer_synced(a->projects) && !(project = pods_unknown_project(a->pods))) {
        a->vnids_wanted_ms = 0;
        return true;
    }
    a->vnids_wanted_ms = a->vnids_wanted_ms ? a->vnids_wanted_ms : now;
    if (project && !streq(a->wanted_project, project)) {
        snprintf(a->wanted_project, sizeof a->wanted_project, "%s", project);
        log_info("waiting for the VNIDs of projects", "plugin=%s first=%s", sdn_plugin_name(plugin),
                 project);
    }
    uint64_t end = a->vnids_wanted_ms + PROJECTS_WAIT_MS;
    if (!informer_synced(a->projects) && now >= end) {
        log_warn("NetNamespaces could not be listed yet", "plugin=%s", sdn_plugin_name(plugin));
        a->vnids_wanted_ms = now;
        end = now + PROJECTS_WAIT_MS;
    }
    if (now < end) {
        loop_timer_arm(a->look_again, end - now);
        return false;
    }
    a->vnids_wanted_ms = 0;
    return true;
}

/* ---- policies ---- */

static void policies_are_synced(void *ctx)
{
    settle_soon(ctx);
}

static void tell_policies_subnet(void *ctx, const char *key, const struct json *obj)
{
    struct agent *a = ctx;
    policies_set_host_subnet(a->policies, key, obj);
}

/* Gives the policies the networks of the ClusterNetwork, against which they check reported addresses. */
static void tell_policies_networks(struct agent *a)
{
    const struct json *obj = informer_get(a->networks, "default");
    struct sdn_network n = {0};
    struct node_rules rules = {.service = {0}};
    if (a->policies && obj && objects_parse_cluster_network(obj, &n, NULL) == 0) {
        memcpy(rules.cluster.list, n.cluster, sizeof n.cluster);
        rules.cluster.n = n.n_cluster;
        rules.service = n.service;
        address_ranges_of_network(obj, &rules.foreign);
        policies_set_rules_of_addresses(a->policies, &rules);
    }
}

static void policies_know(void *ctx, const char *project)
{
    struct agent *a = ctx;
    if (a->phase == RUNNING) {
        pods_wake(a->pods, project);
    }
}

/* Whether what 'n' needs of policies is there; they are asked for when it is not.  Network policy comes into
 * force with all that it says, or not yet. */
static bool policies_are_ready(struct agent *a, const struct sdn_network *n)
{
    static const struct policies_ops ops = {.synced = policies_are_synced, .known = policies_know};
    if (n->plugin != SDN_NETWORKPOLICY) {
        return true;
    }
    if (!a->policies) {
        a->policies = policies_new(a->loop, a->client, a->cfg->node_name, n->local, &ops, a);
        tell_policies_networks(a);
        informer_each(a->subnets, tell_policies_subnet, a);
    }
    return policies_synced(a->policies);
}

/* The plug-in in effect is a->net's. */
static void follow_policies(struct agent *a)
{
    if (a->net.plugin == SDN_NETWORKPOLICY) {
        policies_begin(a->policies, a->datapath);
    } else {
        a->policies = policies_free(a->policies);
    }
}

/* ---- services ---- */

static void services_are_synced(void *ctx)
{
    settle_soon(ctx);
}

static void on_switch_held(void *ctx, uint32_t port, const uint8_t *frame, size_t size)
{
    struct agent *a = ctx;
    services_hold(a->pod_services, port, frame, size);
}

/* The proxy of the host has tried. */
static void on_proxied(void *ctx, int error, const char *text, bool restored)
{
    struct agent *a = ctx;
    (void) restored;
    if (a->phase == STOPPING) {
        return;
    }
    if (error < 0 && !a->proxy_failed) {
        tell_node(a, EVENT_WARNING, "ServiceProxyFailed", text);
    } else if (error == 0 && a->proxy_failed) {
        tell_node(a, EVENT_NORMAL, "ServiceProxyReady", "services are as they should be again");
    }
    a->proxy_failed = error < 0;
    if (error == 0) {
        keeper_set_node_ports(a->keeper, host_proxy_get_stats(a->host_proxy)->node_ports > 0);
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

static void proxy_wanted(void *ctx, const char *ns, const char *name, uint8_t protocol,
                         uint16_t port)
{
    struct agent *a = ctx;
    services_want_pods(a->pod_services, ns, name, protocol, port);
}

/* The table of services, and that what others do to it is seen. */
static int open_proxy(struct agent *a, struct err *e)
{
    struct host_proxy_config c = {.loop = a->loop,
                                  .node_name = a->cfg->node_name,
                                  .mode = a->cfg->proxy_userspace ? SERVICES_USERSPACE
                                                                  : SERVICES_NETFILTER,
                                  .told = on_proxied,
                                  .wanted = proxy_wanted,
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

static int pod_is_known(void *ctx, const char *project, const char *pod, struct err *e)
{
    struct agent *a = ctx;
    if (a->net.plugin != SDN_NETWORKPOLICY) {
        return 0;
    }
    int r = policy_knows_pod(policies_compiler(a->policies), project, pod, e);
    return r < 0 && a->master_lost ? err_prefix(e, "the master cannot be reached") : r;
}

static void pod_attaching(void *ctx, const struct dp_pod *pod)
{
    struct agent *a = ctx;
    if (a->policies) {
        policies_attach(a->policies, pod);
    }
    resolver_set_pod(a->resolver, pod->ip, pod->pod_namespace);
}

static void pod_detached(void *ctx, const struct dp_pod *pod)
{
    struct agent *a = ctx;
    if (a->policies) {
        policies_detach(a->policies, pod);
    }
    resolver_set_pod(a->resolver, pod->ip, NULL);
}

/* ---- DNS ---- */

static struct json *pod_dns(void *ctx, const char *project)
{
    struct agent *a = ctx;
    return resolver_dns(a->resolver, project);
}

static void dns_trouble(void *ctx, const char *text)
{
    struct agent *a = ctx;
    tell_node(a, text ? EVENT_WARNING : EVENT_NORMAL, text ? "DNSNotListening" : "DNSListening",
              text ? text : "DNS is answered at the node's gateway");
}

/* Pods that were attached before this agent was. */
static void tell_resolver_pods(struct agent *a)
{
    size_t n;
    const struct dp_pod *const *pods = datapath_pods(a->datapath, &n);
    for (size_t i = 0; i < n; i++) {
        resolver_set_pod(a->resolver, pods[i]->ip, pods[i]->pod_namespace);
    }
}

/* ---- the datapath ---- */

static void on_host_changed(void *ctx, unsigned what)
{
    struct agent *a = ctx;
    if (what & MONITOR_ADDRESSES) {
        a->read_again = true;
        settle_soon(a);
    }
    if (what & (MONITOR_TUN | MONITOR_NFT)) {
        keeper_changed(a->keeper, what);
    } else if (a->host_proxy && (what & MONITOR_SERVICES)) {
        host_proxy_changed(a->host_proxy);
    }
}

static void on_link_gone(void *ctx, const char *name)
{
    struct agent *a = ctx;
    if (a->pods) {
        pods_link_gone(a->pods, name);
    }
}

static const char *switch_title(const struct agent *a, const char *of_ovs, const char *of_others)
{
    return streq(a->cfg->datapath, "ovs") ? of_ovs : of_others;
}

static const char *not_ready(void *ctx)
{
    struct agent *a = ctx;
    if (a->phase == STOPPING) {
        return "the node's agent is stopping";
    }
    if (!a->switch_ready) {
        snprintf(a->not_ready, sizeof a->not_ready, "%s is not available: %s",
                 switch_title(a, "Open vSwitch", "the datapath"), a->switch_reason);
        return a->not_ready;
    }
    if (!a->host_ready) {
        snprintf(a->not_ready, sizeof a->not_ready, "the host is not set up: %s", a->host_reason);
        return a->not_ready;
    }
    return NULL;
}

static void keep_host_ports(struct agent *a)
{
    host_ports_update(a->host_ports, a->datapath, false, NULL, NULL);
}

static void on_inventory(void *ctx)
{
    struct agent *a = ctx;
    size_t n;
    datapath_pods(a->datapath, &n);
    log_debug("inventory", "pods=%zu", n);
    a->inventory = true;
    tell_resolver_pods(a);
    settle(a);
}

static void on_switch_ready(void *ctx)
{
    struct agent *a = ctx;
    bool was_ready = a->switch_ready;
    a->switch_ready = true;
    if (a->phase == STOPPING) {
        return;
    }
    if (was_ready && a->host_ready) {
        keeper_changed(a->keeper, MONITOR_TUN); /* Something was mended; pods go on meanwhile. */
        return;
    }
    a->host_ready = false;
    snprintf(a->host_reason, sizeof a->host_reason, "tun0 is being looked at");
    if (a->phase == RUNNING) {
        keep_host_ports(a);
    }
    keeper_set(a->keeper, &a->net);
}

static void on_switch_lost(void *ctx, const char *reason)
{
    struct agent *a = ctx;
    a->switch_losses++;
    a->switch_ready = false;
    snprintf(a->switch_reason, sizeof a->switch_reason, "%s", reason);
    log_error(switch_title(a,
                           "Open vSwitch is gone; its packets may flow on, pods cannot be attached",
                           "a part of the datapath is gone; it is being made again"),
              "reason=\"%s\"", reason);
    if (a->phase == RUNNING || a->phase == STARTING) {
        set_unready(a, switch_title(a, "OpenVSwitchGone", "DatapathGone"), reason);
    }
}

static void on_switch_fatal(void *ctx, const char *reason)
{
    fatal(ctx, "%s", reason);
}

static void pod_trouble(void *ctx, const char *project, const char *pod, const char *reason,
                        const char *text)
{
    struct agent *a = ctx;
    CLEANUP_FREE char *message = xasprintf("node %s: %s", a->cfg->node_name, text);
    tell(a, EVENT_WARNING, "v1", "Pod", project, pod, NULL, reason, message);
    if (streq(reason, "NoFreeAddress")) {
        tell_node(a, EVENT_WARNING, reason, text);
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

/* ---- ready ---- */

static void answer(void *ctx, const char *text, size_t size)
{
    cniserver_answer(ctx, text, size);
}

static void on_request(void *ctx, struct cniserver_call *call, struct cni_request *r, int netns_fd)
{
    struct agent *a = ctx;
    pods_request(a->pods, r, netns_fd, answer, call);
}

static void update_neighbours(struct agent *a)
{
    struct datapath_status s;
    struct err e = {0};
    datapath_get_status(a->datapath, &s);
    if (!streq_null(s.datapath_type, "netdev")) {
        return;
    }
    if (!a->neigh && neigh_new(a->loop, &a->neigh, &e) < 0) {
        log_warn("cannot keep the tunnels' neighbours warm", "error=\"%s\"", e.text);
        return;
    }
    neigh_set_remotes(a->neigh, a->net.remotes, a->net.n_remotes);
}

/* Everything is in place for the first time: open for pods. */
static int open_for_pods(struct agent *a, struct err *e)
{
    int r = pods_start(a->pods, &a->net, e);
    if (r == 0) {
        pods_all_projects_changed(a->pods);
        r = cniserver_new(a->loop, a->socket_path, on_request, a, &a->cniserver, e);
    }
    return r < 0 ? r : cniconf_write(&a->conf, e);
}

static void tell_ready(struct agent *a)
{
    if (a->phase != RUNNING || !a->switch_ready || !a->host_ready) {
        return;
    }
    if (a->refused[0]) {
        registration_set_ready(a->registration, false, "ClusterNetworkRefused", a->refused);
    } else {
        registration_set_ready(a->registration, true, "TenetReady", "the pod network is in place");
        if (a->told_unready) {
            a->told_unready = false;
            tell_node(a, EVENT_NORMAL, "TenetReady", "the pod network is in place again");
        }
    }
}

static void on_kept(void *ctx, int error, const char *text)
{
    struct agent *a = ctx;
    struct err e = {0};
    if (a->phase == STOPPING) {
        return;
    }
    if (error < 0) {
        bool news = a->host_ready || !streq(a->host_reason, text);
        a->host_losses += news;
        a->host_ready = false;
        snprintf(a->host_reason, sizeof a->host_reason, "%s", text);
        if (a->switch_ready && news) {
            set_unready(a, "HostNotReady", text);
        }
        return;
    }
    if (!a->switch_ready) {
        return;
    }
    bool again = !a->host_ready && a->phase == RUNNING;
    a->host_ready = true;
    a->read_again =
        true; /* Routes may lead elsewhere than when other nodes' addresses were believed. */
    settle_soon(a);
    if (a->phase == STARTING) {
        if (open_for_pods(a, &e) < 0) {
            fatal(a, "%s", e.text);
            return;
        }
        a->phase = RUNNING;
        update_neighbours(a);
        struct datapath_status s;
        datapath_get_status(a->datapath, &s);
        log_info("ready", "node=%s subnet=%s gateway=%s mtu=%u remotes=%zu pods=%zu datapath=%s",
                 a->cfg->node_name, PREFIX_TEXT(a->net.local), IP4_TEXT(sdn_gateway(&a->net)),
                 a->net.mtu, a->net.n_remotes, s.pods, s.datapath_type ? s.datapath_type : "?");
    } else if (again) {
        if (pods_sweep(a->pods, &e) < 0) {
            log_error("cannot look for stale pods", "error=\"%s\"", e.text);
            tell_node(a, EVENT_WARNING, "SweepFailed", e.text);
        }
        pods_all_projects_changed(a->pods);
        update_neighbours(a);
        log_info("ready again", "node=%s", a->cfg->node_name);
    }
    tell_ready(a);
}

/* ---- changes of objects ---- */

static void adopt(struct agent *a, struct sdn_network *n)
{
    free(a->net.remotes);
    a->net = *n;
    n->remotes = NULL;
}

/* The registry has all that is needed: check, and begin. */
static void begin(struct agent *a, struct sdn_network *n)
{
    struct err e = {0};
    if (check_network(a, n, &e) < 0) {
        fatal(a, "%s", e.text);
        return;
    }
    static const struct datapath_events events = {.inventory = on_inventory,
                                                  .ready = on_switch_ready,
                                                  .lost = on_switch_lost,
                                                  .fatal = on_switch_fatal,
                                                  .held = on_switch_held,
                                                  .link_gone = on_link_gone};
    struct datapath_config dc = datapath_config(a->cfg);
    dc.prepared = TAKE(a->prepared);
    dc.expected = n;
    int r = datapath_open(a->loop, &dc, &events, a, &a->datapath, &e);
    static const struct monitor_ops mops = {.changed = on_host_changed, .link_gone = on_link_gone};
    static const struct pods_ops pops = {.vnids = find_vnids,
                                         .known = pod_is_known,
                                         .attaching = pod_attaching,
                                         .detached = pod_detached,
                                         .look_up = pod_look_up,
                                         .reserve = pod_reserve,
                                         .settled = pod_settled,
                                         .host_ports = pod_host_ports,
                                         .dns = pod_dns,
                                         .not_ready = not_ready,
                                         .trouble = pod_trouble};
    static const struct host_ports_ops hops = {.open = open_ports,
                                               .publish = publish_ports,
                                               .changed = port_services_changed,
                                               .own_port = find_own_port,
                                               .trouble = pod_trouble};
    struct pods_config pc = {
        .loop = a->loop, .datapath = a->datapath, .vnid_wait_ms = VNID_WAIT_MS};
    if (r == 0) {
        a->keeper = keeper_new(a->loop, on_kept, a);
        a->host_ports = host_ports_new(a->loop, &hops, a);
        a->pods = pods_new(&pc, &pops, a);
        r = monitor_new(a->loop, HOST_TUN, &mops, a, &a->monitor, &e);
    }
    r = r < 0 ? r : open_proxy(a, &e);
    if (r < 0) {
        fatal(a, "%s", e.text);
        return;
    }
    loop_timer_disarm(a->wait);
    a->phase = STARTING;
    adopt(a, n);
    a->read_again = false;
    resolver_set_network(a->resolver, &a->net);
    follow_projects(a, a->net.plugin);
}

/* Brings the network into effect, in the switch by one difference. */
static void put_into_effect(struct agent *a)
{
    pods_set_network(a->pods, &a->net);
    pods_all_projects_changed(a->pods);
    if (sdn_plugin_has_vnids(a->net.plugin)) {
        pods_isolate_unknown(a->pods);
    }
    follow_policies(a);
    resolver_set_network(a->resolver, &a->net);
    services_begin(a->pod_services, a->datapath, &a->net);
    datapath_set_network(a->datapath, &a->net);
    loop_task_queue(&a->put_services);
    host_proxy_set_network(a->host_proxy, &a->net);
    a->network_set = true;
}

static int check_plugin(struct agent *a, const struct sdn_network *n, struct err *e)
{
    enum sdn_plugin p;
    if (n->service_by_host && n->plugin == SDN_NETWORKPOLICY) {
        return err_set(e, -EINVAL,
                       "proxyArguments.proxy-mode: userspace hides from %s which pod connects; "
                       "use iptables",
                       sdn_plugin_name(n->plugin));
    }
    if (!a->cfg->plugin_name || sdn_plugin_parse(a->cfg->plugin_name, &p, e) < 0 ||
        p == n->plugin) {
        return 0;
    }
    return err_set(e, -EINVAL, "networkConfig.networkPluginName: %s, but the cluster's is %s",
                   sdn_plugin_name(p), sdn_plugin_name(n->plugin));
}

/* Why the network that the ClusterNetwork asks for cannot be had here: it stays as it was. */
static void refuse(struct agent *a, const char *text)
{
    if (streq(a->refused, text)) {
        return;
    }
    snprintf(a->refused, sizeof a->refused, "%s", text);
    log_error("ClusterNetwork cannot be followed, going on with the last", "error=\"%s\"", text);
    tell_not_used(a, "ClusterNetwork", a->networks, "default", text);
    a->told_unready = true;
    tell_ready(a);
}

/* The ClusterNetwork of '*n', if it can be followed; else the one in effect, and a word about it. */
static void read_changed_cluster(struct agent *a, struct sdn_network *n)
{
    struct err e = {0};
    struct sdn_network now = a->net;
    now.remotes = NULL;
    now.n_remotes = 0;
    bool good = read_cluster(a, n, &e) == 0 && check_plugin(a, n, &e) == 0;
    if (good && !same_cluster(n, &a->net)) {
        n->local = a->net.local;
        n->host_ip = a->net.host_ip;
        good = check_network(a, n, &e) == 0;
    }
    if (!good) {
        refuse(a, e.text);
        loop_timer_arm(a->look_again, LOOK_AGAIN_MS); /* The reason may be gone by then. */
        *n = now;
    } else if (a->refused[0]) {
        a->refused[0] = '\0';
        tell_ready(a);
    }
    if (n->plugin == a->net.plugin && a->network_set) {
        a->vnids_wanted_ms = 0;
        if (n->plugin != SDN_NETWORKPOLICY) {
            a->policies = policies_free(a->policies); /* A change that was taken back. */
        }
    } else if (n->plugin != a->net.plugin && a->inventory &&
               (!policies_are_ready(a, n) || !vnids_known(a, n->plugin))) {
        n->plugin = a->net.plugin;
    }
}

/* False: the node cannot go on. */
static bool read_again(struct agent *a, bool *ret_changed)
{
    struct sdn_network n = {0};
    struct err e = {0};
    const char *name = a->cfg->node_name;
    read_changed_cluster(a, &n);
    *ret_changed = !same_cluster(&n, &a->net);
    if (!informer_get(a->subnets, name)) {
        fatal(a, "HostSubnet %s was deleted: this node has no subnet any more", name);
        return false;
    }
    if (read_own(a, &n, &e) < 0) {
        fatal(a, "%s", e.text);
        return false;
    }
    if (!prefix_equal(n.local, a->net.local)) {
        fatal(a, "HostSubnet %s: its subnet changed from %s to %s; start again to use it", name,
              PREFIX_TEXT(a->net.local), PREFIX_TEXT(n.local));
        return false;
    }
    read_remotes(a, &n);
    adopt(a, &n);
    a->read_again = false;
    return true;
}

/* The registry changed while we work: follow, or say why not. */
static void follow(struct agent *a)
{
    bool changed = false;
    /* Else 'net' has just been read (begin), of thousands of objects maybe. */
    if ((a->network_set || a->read_again) && !read_again(a, &changed)) {
        return;
    }
    if (!a->inventory ||
        (!a->network_set && (!policies_are_ready(a, &a->net) || !vnids_known(a, a->net.plugin)))) {
        return;
    }
    read_published(a);
    if (!a->network_set) {
        keep_host_ports(a); /* The first rules have them: new connections go on. */
        keeper_begin(a->keeper, &a->net);
        put_into_effect(a);
    } else if (changed) {
        put_into_effect(a);
        log_info("ClusterNetwork changed", "plugin=%s mtu=%u vxlanPort=%u",
                 sdn_plugin_name(a->net.plugin), a->net.mtu, a->net.vxlan_port);
        if (a->phase == RUNNING) {
            keeper_set(a->keeper, &a->net);
        }
    } else {
        datapath_set_network(a->datapath, &a->net);
    }
    put_port_services(a);
    if (a->phase == RUNNING) {
        update_neighbours(a);
    }
}

static void settle(void *ctx)
{
    struct agent *a = ctx;
    struct sdn_network n = {0};
    struct err e = {0};
    if (a->phase == STARTING || a->phase == RUNNING) {
        follow(a);
        return;
    }
    if (a->phase != WAITING) {
        return;
    }
    if (!a->registered) {
        snprintf(a->wait_text, sizeof a->wait_text, "the registration of Node %s at %s",
                 a->cfg->node_name, api_client_server(a->client));
        return;
    }
    if (!informer_synced(a->networks) || !informer_synced(a->subnets)) {
        snprintf(a->wait_text, sizeof a->wait_text, "the master at %s",
                 api_client_server(a->client));
        return;
    }
    if (read_cluster(a, &n, &e) < 0 || read_own(a, &n, &e) < 0) {
        snprintf(a->wait_text, sizeof a->wait_text, "%s", e.text);
        return;
    }
    if (check_plugin(a, &n, &e) < 0) {
        fatal(a, "%s", e.text);
        return;
    }
    if (!policies_are_ready(a, &n)) {
        snprintf(a->wait_text, sizeof a->wait_text, "the policies and pods of %s",
                 api_client_server(a->client));
        return;
    }
    if (!services_synced(a->pod_services)) {
        snprintf(a->wait_text, sizeof a->wait_text, "the services of %s",
                 api_client_server(a->client));
        return;
    }
    read_remotes(a, &n);
    begin(a, &n);
    free(n.remotes);
}

static void settle_soon(struct agent *a)
{
    if (!loop_timer_armed(a->settle)) {
        loop_timer_arm(a->settle, a->phase == WAITING ? 0 : SETTLE_MS);
    }
}

static void say_wait(void *ctx)
{
    struct agent *a = ctx;
    log_info("waiting", "for=\"%s\"", a->wait_text);
    loop_timer_arm(a->wait, WAIT_AGAIN_MS);
}

static void object_changed(void *ctx, const char *key, const struct json *old,
                           const struct json *obj)
{
    struct agent *a = ctx;
    a->read_again = true;
    settle_soon(a);
}

static void object_deleted(void *ctx, const char *key, const struct json *obj)
{
    object_changed(ctx, key, obj, NULL);
}

static void network_changed(void *ctx, const char *key, const struct json *old,
                            const struct json *obj)
{
    tell_policies_networks(ctx);
    object_changed(ctx, key, old, obj);
}

static void subnet_changed(void *ctx, const char *key, const struct json *old,
                           const struct json *obj)
{
    struct agent *a = ctx;
    if (a->policies) {
        policies_set_host_subnet(a->policies, key, obj);
    }
    object_changed(ctx, key, old, obj);
}

static void subnet_deleted(void *ctx, const char *key, const struct json *obj)
{
    struct agent *a = ctx;
    if (a->policies) {
        policies_delete_host_subnet(a->policies, key);
    }
    object_changed(ctx, key, obj, NULL);
}

static void objects_synced(void *ctx)
{
    settle_soon(ctx);
}

static void master_connection(void *ctx, const char *lost_reason)
{
    struct agent *a = ctx;
    if (a->master_lost == (lost_reason != NULL)) {
        return;
    }
    a->master_lost = lost_reason != NULL;
    a->master_losses += a->master_lost;
    if (a->phase == WAITING) {
        return; /* Nothing to go on with yet; the line about waiting says it. */
    }
    if (lost_reason) {
        log_warn("master is gone, going on with what is known", "reason=\"%s\"", lost_reason);
    } else {
        log_info("master is back", "");
    }
}

static void on_registered(void *ctx)
{
    struct agent *a = ctx;
    a->registered = true;
    settle_soon(a);
}

/* ---- what others may see ---- */

static void view(void *ctx, struct introspect_view *ret)
{
    static const char *const phases[] = {"waiting", "starting", "running", "stopping"};
    struct agent *a = ctx;
    bool known = a->phase != WAITING && a->datapath;
    *ret = (struct introspect_view){
        .node_name = a->cfg->node_name,
        .phase = phases[a->phase],
        .bridge = a->cfg->ovs_bridge,
        .cni_config = a->cni_config,
        .host_ip = a->host_ip,
        .switch_ready = a->switch_ready,
        .master_lost = a->master_lost,
        .net = known ? &a->net : NULL,
        .datapath = a->datapath,
        .host_proxy = a->host_proxy,
        .pods = a->pods,
        .subnets = a->subnets,
        .projects = a->projects,
        .policy = a->policies ? policies_compiler(a->policies) : NULL,
        .policies_settled = a->policies && policies_settled(a->policies),
        .services = a->pod_services,
        .host_ports = a->host_ports,
        .skipped = smap_size(&a->skipped),
        .switch_losses = a->switch_losses,
        .host_losses = a->host_losses,
        .master_losses = a->master_losses,
        .resolver = a->resolver,
    };
    const char *why = not_ready(a);
    if (a->phase == WAITING) {
        snprintf(a->not_ready, sizeof a->not_ready, "waiting for %.380s", a->wait_text);
        why = a->not_ready;
    }
    ret->ready = !why && a->phase == RUNNING;
    ret->reason = why ? why : "";
}

static int open_to_view(struct agent *a, struct err *e)
{
    CLEANUP_FREE char *path = xasprintf("%s/agent.sock", a->cfg->run_dir);
    struct introspect_config c = {.loop = a->loop,
                                  .socket_path = path,
                                  .metrics_address = a->cfg->metrics_address,
                                  .view = view,
                                  .ctx = a};
    return introspect_new(&c, &a->introspect, e);
}

/* ---- the whole ---- */

/* One agent a run directory; the lock goes with the process. */
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
    /* Who reads it takes the first line: a longer one that was there does no harm. */
    if (pwrite(a->lock_fd, pid, (size_t) n, 0) != n) {
        return err_sys(e, -errno, "write %s", path);
    }
    return 0;
}

/* The address that the tunnels end at: configured, or of the default route; and really this host's. */
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

static int follow_master(struct agent *a, struct err *e)
{
    static const struct informer_ops ops = {
        .changed = network_changed, .deleted = object_deleted, .synced = objects_synced};
    static const struct informer_ops ops_with_connection = {.changed = subnet_changed,
                                                            .deleted = subnet_deleted,
                                                            .synced = objects_synced,
                                                            .connection = master_connection};
    struct registration_config rc = {.loop = a->loop,
                                     .client = a->client,
                                     .node_name = a->cfg->node_name,
                                     .node_ip = a->host_ip};
    a->recorder = recorder_new(a->loop, a->client, "tenet-node");
    a->registration = registration_new(&rc, on_registered, a);
    a->networks =
        informer_new(a->client, a->loop, OBJECTS_NETWORK_API, "clusternetworks", NULL, &ops, a);
    a->subnets = informer_new(a->client, a->loop, OBJECTS_NETWORK_API, "hostsubnets", NULL,
                              &ops_with_connection, a);
    static const struct services_ops sops = {.synced = services_are_synced, .vnids = find_vnids};
    a->services = services_watch_new(a->loop, a->client);
    a->pod_services = services_new(a->loop, a->services, a->client, a->cfg->node_name, &sops, a);
    static const struct services_listener listener = {.changed = service_changed,
                                                      .settled = services_settled};
    loop_task_init(&a->put_services, a->loop, put_services, a);
    services_watch_add(a->services, &listener, a);
    settle_soon(a);
    struct resolver_config dc = {
        .loop = a->loop, .node = a->cfg, .services = a->services, .trouble = dns_trouble, .ctx = a};
    return resolver_new(&dc, &a->resolver, e);
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

/* All that can be refused is, before the first thing is touched. */
static int start(struct agent *a, struct err *e)
{
    /* Deleting a link keeps a worker thread waiting (node/cni/reaper.h); other work must not stand behind. */
    setenv("UV_THREADPOOL_SIZE", "16", 0);
    a->loop = loop_new();
    int r = host_check_privileges(e);
    if (r == 0) {
        r = find_address(a, e);
    }
    if (r == 0) {
        r = take_lock(a, e);
    }
    struct datapath_config dc = datapath_config(a->cfg);
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
        r = open_to_view(a, e);
    }
    if (r < 0) {
        return r;
    }
    a->identity = own.bootstrap ? identity_new(&own, a->client) : NULL;
    a->stop_timer = loop_timer_new(a->loop, stop_step, a);
    a->settle = loop_timer_new(a->loop, settle, a);
    a->wait = loop_timer_new(a->loop, say_wait, a);
    a->look_again = loop_timer_new(a->loop, settle, a);
    loop_timer_arm(a->wait, WAIT_FIRST_MS);
    a->sigterm = loop_signal_new(a->loop, SIGTERM, on_term, a);
    a->sigint = loop_signal_new(a->loop, SIGINT, on_term, a);
    a->sighup = loop_signal_new(a->loop, SIGHUP, on_hup, a);
    a->socket_path = xasprintf("%s/cni.sock", a->cfg->run_dir);
    a->conf = (struct cniconf){.dir = a->cfg->cni_conf_dir,
                               .name = a->cfg->cni_conf_name,
                               .socket = a->socket_path,
                               .portmap = a->cfg->chain_portmap,
                               .bandwidth = a->cfg->chain_bandwidth};
    a->cni_config = cniconf_path(&a->conf);
    cniconf_remove(&a->conf); /* One that a killed agent left would say that we are ready. */
    log_info("starting", "node=%s ip=%s master=%s version=" TENET_VERSION, a->cfg->node_name,
             IP4_TEXT(a->host_ip), api_client_server(a->client));
    return follow_master(a, e);
}

static void release(struct agent *a)
{
    cniserver_free(a->cniserver);
    monitor_free(a->monitor);
    a->pods = pods_free(a->pods);
    keeper_free(a->keeper);
    host_ports_free(a->host_ports);
    neigh_free(a->neigh);
    if (a->policies) {
        policies_end(a->policies); /* The switch keeps its flows. */
    }
    policies_free(a->policies);
    resolver_free(TAKE(a->resolver));
    if (a->services) {
        loop_task_cancel(&a->put_services);
        services_watch_remove(a->services, a);
    }
    services_free(a->pod_services);
    if (a->host_proxy) {
        services_watch_remove(a->services, a->host_proxy);
        a->host_proxy = host_proxy_free(a->host_proxy);
    }
    services_watch_free(a->services);
    datapath_prepared_free(a->prepared);
    datapath_close(TAKE(a->datapath)); /* Those who ask at this moment see none. */
    introspect_free(a->introspect);
    informer_free(a->projects);
    informer_free(a->subnets);
    informer_free(a->networks);
    registration_free(a->registration);
    recorder_free(a->recorder);
    identity_free(a->identity);
    api_client_free(a->client);
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
    struct datapath_config dc = datapath_config(cfg);
    int r = dir_make(cfg->run_dir, 0700, e);
    return r < 0 ? r : datapath_make_mounts(&dc, e);
}

int agent_run(const struct node_config *cfg, const char *config_path, struct err *e)
{
    struct agent a = {.cfg = cfg,
                      .config_path = config_path,
                      .lock_fd = -1,
                      .switch_reason = "no connection yet",
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
