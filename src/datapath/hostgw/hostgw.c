/* SPDX-License-Identifier: Apache-2.0 */
/* The datapath "hostgw": flannel's host-gw. docs/flannel.md describes it.
 *
 * Pods are veth pairs in the bridge docker0, which has the gateway's address.  A route of the host
 * leads to each other node's subnet (routes.h), and packets between nodes are as the pods sent
 * them.  Routes are compared with the desired ones when the kernel reports a change of a link, an
 * address or a route, because it removes the routes of a link that goes down and does not restore
 * them.
 *
 * All state belongs to the loop's thread; the calls that wire a pod share nothing with it. */
#include "base/log.h"
#include "base/mem.h"
#include "base/said.h"
#include "datapath/hostgw/routes.h"
#include "datapath/hostgw/settings.h"
#include "datapath/limit.h"
#include "datapath/ops.h"
#include "datapath/outbox.h"
#include "datapath/record.h"
#include "net/kernel/rtnl.h"
#include "net/loop/process.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

LOG_MODULE("hostgw");

/* The kernel's reports about one link come within this time. */
#define SETTLE_MS 5
/* Interval of comparisons after a failure, and without a reported change. */
#define RETRY_MS 1000
#define LOOK_MS 10000

struct hostgw {
    struct datapath dp; /* First. */
    struct loop *loop;
    struct datapath_events events;
    char *records;     /* Folder. */
    char *subnet_file; /* Path. */
    struct sdn_network net;
    bool have_network, in_place;
    enum outbox_trouble trouble; /* Reported to the agent, and not over. */
    struct dp_pod **pods;
    size_t n_pods, cap_pods;
    size_t pods_refused;
    size_t changes; /* Changed routes since the start. */
    struct said said_routes, said_file;
    int events_fd;
    struct loop_fd *events_watch;
    struct loop_timer *look;
    struct loop_task task;
    struct outbox outbox;
};

static struct hostgw *hostgw_of(struct datapath *dp)
{
    return CONTAINER_OF(dp, struct hostgw, dp);
}

static const char *bridge_name(void)
{
    return sdn_gateway_link(SDN_FLANNEL);
}

/* ---- bridge and routes ---- */

/* The bridge's MAC follows from the gateway's address, so that pods' neighbour tables stay right
 * when the bridge is made anew. */
static int ensure_bridge(struct rtnl *r, const struct sdn_network *n, struct err *e)
{
    const struct mac mac = mac_from_ip4(sdn_gateway(n));
    struct rtnl_link l;
    int k = rtnl_link_get(r, bridge_name(), &l, NULL);
    if (k == -ENODEV) {
        k = rtnl_bridge_add(r, bridge_name(), e);
        k = k < 0 ? k : sysctl_silence(bridge_name(), e);
        k = k < 0 ? k : rtnl_link_get(r, bridge_name(), &l, e);
    }
    if (k < 0) {
        return k;
    }
    if (!streq(l.kind, "bridge")) {
        return err_set(e, -EEXIST, "%s is a link of another kind", bridge_name());
    }
    if (mac_equal(l.mac, mac) && l.mtu == n->mtu && l.flags & IFF_UP) {
        return 0;
    }
    struct rtnl_link_set set = RTNL_LINK_SET_INIT(bridge_name());
    set.mac = &mac;
    set.mtu = n->mtu;
    set.up = 1;
    return rtnl_link_set(r, &set, e);
}

/* Where the kernel shows the bridge's frames to netfilter, a pod's packet to a service may be
 * translated on the bridge and lead back to the pod. */
static int join_bridge(struct rtnl *r, int link, int bridge, struct err *e)
{
    struct rtnl_link_set set = RTNL_LINK_SET_INIT(NULL);
    set.ifindex = link;
    set.master = bridge;
    int k = rtnl_link_set(r, &set, e);
    return k < 0 ? k : rtnl_bridge_set_hairpin(r, link, e);
}

/* Puts the pods' links back into a bridge that another program removed. */
static int ensure_members(struct hostgw *x, struct rtnl *r, struct err *e)
{
    CLEANUP_FREE struct rtnl_link *links = NULL;
    struct rtnl_link bridge;
    size_t n;
    int k = rtnl_link_get(r, bridge_name(), &bridge, e);
    k = k < 0 ? k : rtnl_link_list(r, &links, &n, e);
    for (size_t i = 0; k == 0 && i < n; i++) {
        bool is_pod = false;
        for (size_t j = 0; j < x->n_pods && !is_pod && links[i].master != bridge.ifindex; j++) {
            is_pod = streq(x->pods[j]->host_if, links[i].name);
        }
        if (is_pod) {
            k = join_bridge(r, links[i].ifindex, bridge.ifindex, e);
        }
    }
    return k;
}

/* Applies all of the plan that the kernel accepts; the error is the first refusal. */
static int apply_plan(struct hostgw *x, struct rtnl *r, const struct routes_plan *p, struct err *e)
{
    int first = 0;
    for (size_t i = 0; i < p->n_add + p->n_del; i++) {
        struct err why = {0};
        int k = i < p->n_add ? rtnl_route_add(r, &p->add[i], &why)
                             : rtnl_route_del(r, &p->del[i - p->n_add], &why);
        x->changes += k == 0;
        if (k < 0 && first == 0) {
            first = err_set(e, k, "%s", why.text);
        }
    }
    return first;
}

/* A node that is no neighbour is reported and left out: the others are reached. */
static int sync_routes(struct hostgw *x, struct rtnl *r, struct err *e)
{
    CLEANUP_FREE struct rtnl_route *have = NULL;
    struct routes_plan p;
    size_t n;
    int k = rtnl_route_list(r, 0, &have, &n, e);
    if (k < 0) {
        return k;
    }
    routes_plan_make(&x->net, have, n, &p);
    k = apply_plan(x, r, &p, e);
    if (k == 0 && p.n_far) {
        CLEANUP_FREE char *subnet = xstrdup(PREFIX_TEXT(p.far.subnet));
        k = err_set(e, -ENETUNREACH,
                    "%zu nodes are not reached: %s, which has %s, is on no network of this host, "
                    "and host-gw needs nodes on one network",
                    p.n_far, IP4_TEXT(p.far.host_ip), subnet);
    }
    routes_plan_done(&p);
    return k;
}

static void write_subnet_file(struct hostgw *x)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT, now = STRBUF_INIT;
    struct err e = {0};
    routes_write_subnet_env(&x->net, &text);
    if (file_read(x->subnet_file, 4096, &now, NULL) == 0 &&
        streq(strbuf_cstr(&now), strbuf_cstr(&text))) {
        return;
    }
    CLEANUP_FREE char *dir = xstrdup(x->subnet_file);
    *strrchr(dir, '/') = '\0';
    int r = *dir ? dir_make(dir, 0755, &e) : 0;
    r = r < 0 ? r : file_write_unsynced(x->subnet_file, text.data, text.size, 0644, &e);
    if (r < 0 && said_is_news(&x->said_file, e.text)) {
        log_warn("subnet file cannot be written; only other programs need it", "error=\"%s\"",
                 e.text);
    }
}

static void report(struct hostgw *x, const char *reason)
{
    x->in_place = false;
    if (x->trouble == OUTBOX_NO_TROUBLE) {
        x->trouble = OUTBOX_REFUSED;
        outbox_add_trouble(&x->outbox, OUTBOX_REFUSED, reason);
    }
}

static void compare(void *ctx)
{
    struct hostgw *x = ctx;
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    struct err e = {0};
    if (!x->have_network) {
        return;
    }
    loop_timer_arm(x->look, LOOK_MS);
    int k = rtnl_open(&r, &e);
    k = k < 0 ? k : ensure_bridge(r, &x->net, &e);
    k = k < 0 ? k : ensure_members(x, r, &e);
    if (k < 0) {
        report(x, e.text);
        loop_timer_arm(x->look, RETRY_MS);
        return;
    }
    write_subnet_file(x);
    if (sync_routes(x, r, &e) < 0) {
        loop_timer_arm(x->look, RETRY_MS);
        if (said_is_news(&x->said_routes, e.text)) {
            log_warn("not all nodes are reached", "error=\"%s\"", e.text);
        }
    } else if (x->said_routes.text) {
        said_done(&x->said_routes);
        log_info("all nodes are reached", "nodes=%zu", x->net.n_remotes);
    }
    if (!x->in_place) {
        x->in_place = true;
        x->trouble = OUTBOX_NO_TROUBLE;
        x->outbox.ready = true;
        loop_task_queue(&x->task);
    }
}

/* The contents of the reports do not matter: all routes are compared. */
static void on_kernel_event(void *ctx, unsigned events)
{
    struct hostgw *x = ctx;
    char buf[8192];
    ssize_t n;
    do {
        n = recv(x->events_fd, buf, sizeof buf, MSG_DONTWAIT | MSG_TRUNC);
    } while (n > 0 || (n < 0 && (errno == EINTR || errno == ENOBUFS)));
    loop_timer_arm(x->look, SETTLE_MS);
}

static int listen_to_kernel(struct hostgw *x, struct err *e)
{
    struct sockaddr_nl at = {.nl_family = AF_NETLINK,
                             .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE};
    x->events_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (x->events_fd < 0 || bind(x->events_fd, (struct sockaddr *) &at, sizeof at) < 0) {
        return err_sys(e, -errno, "subscribe to events of links and routes");
    }
    x->events_watch = loop_fd_new(x->loop, x->events_fd, LOOP_READ, on_kernel_event, x);
    return 0;
}

static void hostgw_set_network(struct datapath *dp, const struct sdn_network *n)
{
    struct hostgw *x = hostgw_of(dp);
    bool first = !x->have_network;
    struct sdn_remote *remotes =
        n->n_remotes ? xmemdup(n->remotes, n->n_remotes * sizeof *n->remotes) : NULL;
    free(x->net.remotes);
    x->net = *n;
    x->net.remotes = remotes;
    x->have_network = true;
    x->in_place = x->in_place && !first;
    compare(x);
}

/* ---- pods ---- */

static struct dp_pod **find_pod(struct hostgw *x, const char *container_id, const char *ifname)
{
    for (size_t i = 0; i < x->n_pods; i++) {
        if (streq(x->pods[i]->container_id, container_id) && streq(x->pods[i]->ifname, ifname)) {
            return &x->pods[i];
        }
    }
    return NULL;
}

static int remove_pod(struct hostgw *x, struct dp_pod **slot, struct err *e)
{
    int r = record_remove(x->records, *slot, e);
    if (r == 0) {
        dp_pod_free(*slot);
        *slot = x->pods[--x->n_pods];
    }
    return r;
}

static void hostgw_attach(struct datapath *dp, const struct dp_pod *p, datapath_port_fn *port,
                          datapath_done_fn *done, void *ctx)
{
    struct hostgw *x = hostgw_of(dp);
    struct err e = {0};
    struct dp_pod **old = find_pod(x, p->container_id, p->ifname);
    int r = x->in_place
                ? 0
                : err_set(&e, -EAGAIN, "the datapath is not in place%s%.200s",
                          x->outbox.trouble_reason[0] ? ": " : "", x->outbox.trouble_reason);
    r = r == 0 && old ? remove_pod(x, old, &e) : r;
    if (r == 0) {
        struct dp_pod *pod = dp_pod_clone(p);
        snprintf(pod->port, sizeof pod->port, "%s", p->host_if);
        r = record_write(x->records, pod, &e);
        if (r == 0) {
            x->pods = grow(x->pods, &x->cap_pods, x->n_pods + 1, sizeof(struct dp_pod *));
            x->pods[x->n_pods++] = pod;
            outbox_add_port(&x->outbox, port, ctx, p->host_if, p->host_if);
        } else {
            dp_pod_free(pod);
        }
    }
    x->pods_refused += r < 0;
    outbox_add_done(&x->outbox, done, ctx, r, e.text);
}

static void hostgw_detach(struct datapath *dp, const char *container_id, const char *ifname,
                          datapath_done_fn *done, void *ctx)
{
    struct hostgw *x = hostgw_of(dp);
    struct err e = {0};
    struct dp_pod **slot = find_pod(x, container_id, ifname);
    outbox_add_done(&x->outbox, done, ctx, slot ? remove_pod(x, slot, &e) : 0, e.text);
}

static void set_text(char **slot, const char *value)
{
    free(*slot);
    *slot = value ? xstrdup(value) : NULL;
}

static void hostgw_set_runtime(struct datapath *dp, const char *container_id, const char *ifname,
                               const char *host_ports, const char *bandwidth,
                               datapath_done_fn *done, void *ctx)
{
    struct hostgw *x = hostgw_of(dp);
    struct err e = {0};
    struct dp_pod **slot = find_pod(x, container_id, ifname);
    int r = slot ? 0 : err_set(&e, -ENOENT, "the pod is not attached");
    if (slot) {
        set_text(&(*slot)->host_ports, host_ports);
        set_text(&(*slot)->bandwidth, bandwidth);
        r = record_write(x->records, *slot, &e);
    }
    outbox_add_done(&x->outbox, done, ctx, r, e.text);
}

static const struct dp_pod *const *hostgw_pods(struct datapath *dp, size_t *ret_n)
{
    struct hostgw *x = hostgw_of(dp);
    for (size_t i = 0; i < x->n_pods; i++) {
        x->pods[i]->port_number = if_nametoindex(x->pods[i]->host_if);
        x->pods[i]->ready = x->in_place && x->pods[i]->port_number;
    }
    *ret_n = x->n_pods;
    return (const struct dp_pod *const *) x->pods;
}

/* The plug-in has no VNIDs, and no policies. */
static void hostgw_set_vnids(struct datapath *dp, const char *pod_namespace,
                             const struct sdn_vnids *v)
{
}

static void hostgw_set_policy(struct datapath *dp, struct policy *p)
{
}

/* Egress firewalls belong to VNIDs, too. */
static void hostgw_set_firewall(struct datapath *dp, uint32_t vnid,
                                const struct firewall_block *blocks, size_t n)
{
}

/* The host's own table of services serves pods as well (datapath/services/). */
static void hostgw_change_service(struct datapath *dp, const struct sdn_service *old,
                                  const struct sdn_project_service *now)
{
}

static void hostgw_settle_services(struct datapath *dp, const struct datapath_services *all)
{
}

static void hostgw_release(struct datapath *dp, uint32_t port, const uint8_t *frame, size_t size)
{
}

/* ---- links of pods; on any thread ---- */

/* A link in the bridge has no hook that could delay what the pod sends. */
static int check_limits(const struct dp_wire *w, struct err *e)
{
    return w->limits.from_pod
               ? err_set(e, -EOPNOTSUPP,
                         "the datapath hostgw does not limit what a pod sends; cniPlugins: "
                         "[bandwidth] in the node's configuration leaves it to that plug-in")
               : 0;
}

static int find_links(struct rtnl *r, const struct dp_wire *w, struct rtnl_link *link,
                      struct rtnl_link *bridge, struct err *e)
{
    int k = rtnl_link_get(r, w->host_if, link, e);
    return k < 0 ? k : rtnl_link_get(r, bridge_name(), bridge, e);
}

static int hostgw_wire(struct datapath *dp, const struct dp_wire *w, struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    struct rtnl_link link, bridge;
    struct shape to = limit_to_pod(w);
    int k = check_limits(w, e);
    k = k < 0 ? k : rtnl_open(&r, e);
    k = k < 0 ? k : find_links(r, w, &link, &bridge, e);
    k = k == 0 && to.rate ? shape_set(r, link.ifindex, &to, e) : k;
    return k < 0 ? k : join_bridge(r, link.ifindex, bridge.ifindex, e);
}

static int hostgw_unlimit(struct datapath *dp, const struct dp_wire *w, struct err *e)
{
    return 0;
}

static int hostgw_check_wire(struct datapath *dp, const struct dp_wire *w, struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    struct rtnl_link link, bridge;
    struct shape to = limit_to_pod(w);
    int k = rtnl_open(&r, e);
    k = k < 0 ? k : find_links(r, w, &link, &bridge, e);
    if (k == 0 && link.master != bridge.ifindex) {
        k = err_set(e, -ENOENT, "%s is not in the bridge %s", w->host_if, bridge_name());
    }
    return k == 0 && to.rate ? shape_check(r, link.ifindex, &to, e) : k;
}

static void hostgw_link_gone(struct datapath *dp, const char *name)
{
}

/* ---- looking ---- */

static void hostgw_get_status(struct datapath *dp, struct datapath_status *ret)
{
    struct hostgw *x = hostgw_of(dp);
    *ret = (struct datapath_status){.connected = true,
                                    .in_place = x->in_place,
                                    .pods = x->n_pods,
                                    .remotes = x->net.n_remotes,
                                    .pods_refused = x->pods_refused,
                                    .rule_changes = x->changes,
                                    .variant = "host-gw"};
}

#define NO_RULES "the datapath hostgw has no rules: \"ip route\" shows how packets are forwarded"

static void hostgw_drops(struct datapath *dp, datapath_drops_fn *done, void *ctx)
{
    done(ctx, 0, (const uint64_t[MODEL_N_CAUSES]){0});
}

static void hostgw_rules(struct datapath *dp, const struct datapath_rules_ops *ops, void *ctx)
{
    ops->done(ctx, -EOPNOTSUPP, NO_RULES);
}

static void hostgw_trace(struct datapath *dp, const struct model_packet *p, datapath_trace_fn *done,
                         void *ctx)
{
    done(ctx, -EOPNOTSUPP, NO_RULES, NULL);
}

static int hostgw_watch(struct datapath *dp, datapath_events_fn *fn, void *ctx, struct err *e)
{
    return fn ? err_set(e, -EOPNOTSUPP,
                        "the datapath hostgw sees no flows: \"conntrack -E\" shows connections")
              : 0;
}

static int hostgw_maps(struct datapath *dp, const char *name, const char *after, size_t limit,
                       struct json **ret, struct err *e)
{
    return err_set(e, -EOPNOTSUPP, NO_RULES);
}

/* ---- opening ---- */

static void run(void *ctx)
{
    struct hostgw *x = ctx;
    if (!outbox_deliver(&x->outbox)) {
        free(x);
    }
}

static void hostgw_close(struct datapath *dp)
{
    struct hostgw *x = hostgw_of(dp);
    loop_task_cancel(&x->task);
    loop_timer_free(x->look);
    loop_fd_free(x->events_watch);
    fd_close(x->events_fd);
    for (size_t i = 0; i < x->n_pods; i++) {
        dp_pod_free(x->pods[i]);
    }
    free(x->pods);
    free(x->net.remotes);
    free(x->records);
    free(x->subnet_file);
    said_done(&x->said_routes);
    said_done(&x->said_file);
    if (outbox_close(&x->outbox)) {
        free(x);
    }
}

static void on_bad_record(void *ctx, const char *file, const char *why)
{
    log_error("record of a pod cannot be read, the pod is not known any longer",
              "file=%s error=\"%s\"", file, why);
}

static int hostgw_open(struct loop *l, const struct datapath_config *cfg,
                       const struct datapath_events *ev, void *ctx, struct datapath **ret,
                       struct err *e)
{
    struct hostgw *x = NEW(struct hostgw);
    x->dp.ops = &datapath_hostgw;
    x->loop = l;
    x->events = *ev;
    x->events_fd = -1;
    x->records = xasprintf("%s/pods", cfg->run_dir);
    x->subnet_file = xstrdup(datapath_get_setting(cfg, HOSTGW_SUBNET_FILE));
    loop_task_init(&x->task, l, run, x);
    outbox_init(&x->outbox, &x->task, &x->events, ctx);
    x->look = loop_timer_new(l, compare, x);
    int r = record_read_all(x->records, on_bad_record, x, &x->pods, &x->n_pods, e);
    x->cap_pods = x->n_pods;
    r = r < 0 ? r : listen_to_kernel(x, e);
    if (r < 0) {
        hostgw_close(&x->dp);
        return r;
    }
    x->outbox.inventory = true;
    loop_task_queue(&x->task);
    *ret = &x->dp;
    return 0;
}

static int hostgw_make_mounts(const struct datapath_config *cfg, struct err *e)
{
    return 0;
}

const struct datapath_ops datapath_hostgw = {
    .kind = "hostgw",
    .words = {.title = "the bridge",
              .lost_reason = "DatapathGone",
              .refused_reason = "DatapathRefused"},
    .is_routed = true,
    .settings = hostgw_settings,
    .make_mounts = hostgw_make_mounts,
    .open = hostgw_open,
    .close = hostgw_close,
    .set_network = hostgw_set_network,
    .set_vnids = hostgw_set_vnids,
    .set_policy = hostgw_set_policy,
    .set_firewall = hostgw_set_firewall,
    .change_service = hostgw_change_service,
    .settle_services = hostgw_settle_services,
    .release = hostgw_release,
    .attach = hostgw_attach,
    .detach = hostgw_detach,
    .set_runtime = hostgw_set_runtime,
    .pods = hostgw_pods,
    .wire = hostgw_wire,
    .unlimit = hostgw_unlimit,
    .check_wire = hostgw_check_wire,
    .link_gone = hostgw_link_gone,
    .get_status = hostgw_get_status,
    .explain = {.drops = hostgw_drops,
                .rules = hostgw_rules,
                .trace = hostgw_trace,
                .watch = hostgw_watch,
                .maps = hostgw_maps},
};
