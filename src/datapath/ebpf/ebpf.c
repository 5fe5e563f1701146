/* SPDX-License-Identifier: Apache-2.0 */
/* The datapath "ebpf": docs/ebpf.md tells the whole.
 *
 *     program.c   the programs and their maps in the kernel
 *     early.c     loads them while the agent still waits for the registry
 *     hook.c      programs at links
 *     reserve.c   takes their places while they are loaded
 *     devices.c   tun0, its peer and the VXLAN device
 *     inlet.c     where what a pod sends comes in, when it is limited
 *     held.c      packets to services that are idle
 *     paths.c     the ways to other nodes
 *     encode.c    what the maps have, from network and pods
 *     table.c     maps that follow what is wanted
 *     policy.c    network policy in the maps
 *     record.c    pods on file
 *     watch.c     what the programs tell of packets
 *     trace.c     what they would do with one
 *     show.c      the maps in words
 *
 * What is wanted (network and pods) is compared with what the maps have, and the difference is written; nothing is
 * taken down first.  All of it is the loop's, but for the pods and their two maps, which workers that wire a pod
 * share under 'lock'. */
#include "datapath/ebpf/devices.h"
#include "datapath/ebpf/early.h"
#include "datapath/ebpf/encode.h"
#include "datapath/ebpf/held.h"
#include "datapath/ebpf/hook.h"
#include "datapath/ebpf/inlet.h"
#include "datapath/ebpf/paths.h"
#include "datapath/ebpf/policy.h"
#include "datapath/ebpf/program.h"
#include "datapath/ebpf/record.h"
#include "datapath/ebpf/reserve.h"
#include "datapath/ebpf/show.h"
#include "datapath/ebpf/table.h"
#include "datapath/ebpf/trace.h"
#include "datapath/ebpf/watch.h"
#include "datapath/ops.h"
#include "datapath/outbox.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <pthread.h>
#include <stdio.h>

LOG_MODULE("ebpf");

#define RETRY_MS 1000
#define SWEEP_MS 10000 /* Connections that are over, and rows of policy that did not fit. */

struct member {
    struct dp_pod *pod; /* Written by the loop's thread, under the lock. */
    int ifindex;        /* Of its link; 0: not wired. */
    int inlet;          /* Where what it sends comes in: its link, or behind it (inlet.h). */
    bool queued;        /* Its link limits what goes to it. */
};

struct ebpf_dp {
    struct datapath dp; /* First. */
    struct loop *loop;
    struct datapath_events events;
    void *ctx;
    char *bpffs, *maps, *records; /* Folders. */
    char *hooks_dir;
    struct hooks hooks;
    struct early *early; /* Until the programs are loaded. */
    struct program_features features;
    struct program program;
    bool loaded;

    struct sdn_network net;
    bool have_network, in_place, outage;
    bool hooks_due;     /* New programs wait for the services, which the old ones may have, ... */
    bool services_told; /* ... and are told now, ... */
    struct reserve *reserve; /* ... and for their places; NULL: none were taken beforehand. */
    struct devices devices;
    struct table routes, vteps, services, backends, serving;
    bool has_services; /* They were told. */
    struct policy_maps policy;
    struct loop_task policy_task;
    struct loop_timer *sweep, *lend;
    struct paths *paths; /* NULL: all go by the VXLAN device. */
    size_t applied;      /* Changes of other maps since the start. */
    /* What did not fit: since the start, and now. */
    size_t pods_refused, nodes_refused, services_refused, nodes_left_out, services_left_out;
    struct held *held;
    struct watch *watch; /* NULL: nobody watches. */
    uint32_t watch_number;
    uint64_t drops[MODEL_N_CAUSES]; /* As last read. */

    pthread_mutex_t lock; /* Of what follows. */
    struct member *members;
    size_t n_members, cap_members;
    struct table pods, ports;
    size_t pods_applied; /* Changes of these two. */

    const struct dp_pod **view; /* What ebpf_pods gave out. */
    struct loop_task task;
    struct loop_timer *retry;
    struct outbox outbox;
};

static struct ebpf_dp *of_dp(struct datapath *dp)
{
    return CONTAINER_OF(dp, struct ebpf_dp, dp);
}

/* ---- what the agent is told ---- */

static void run(void *ctx)
{
    struct ebpf_dp *x = ctx;
    if (!outbox_deliver(&x->outbox)) {
        free(x);
    }
}

static void say_lost(struct ebpf_dp *x, const char *reason)
{
    x->in_place = false;
    loop_timer_arm(x->retry, RETRY_MS);
    if (!x->outage) {
        x->outage = true;
        outbox_add_lost(&x->outbox, reason);
    }
}

/* ---- pods in the maps; with the lock held ---- */

static struct member *find_member(struct ebpf_dp *x, const char *container_id, const char *ifname)
{
    for (size_t i = 0; i < x->n_members; i++) {
        if (streq(x->members[i].pod->container_id, container_id) &&
            streq(x->members[i].pod->ifname, ifname)) {
            return &x->members[i];
        }
    }
    return NULL;
}

static struct member *find_by_link(struct ebpf_dp *x, const char *host_if)
{
    for (size_t i = 0; i < x->n_members; i++) {
        if (streq(x->members[i].pod->host_if, host_if)) {
            return &x->members[i];
        }
    }
    return NULL;
}

/* Entries that a map has room for. */
static uint32_t room(const struct ebpf_dp *x, uint32_t usual)
{
    return x->features.max_entries ? MIN(x->features.max_entries, usual) : usual;
}

/* Brings the maps of pods in line; -ENOSPC when they do not take all.  A pod's link is known before and after its
 * address. */
static int put_pods(struct ebpf_dp *x, struct err *e)
{
    if (!x->loaded) {
        return 0;
    }
    struct table_row *pods = xcalloc(x->n_members + 1, sizeof *pods);
    struct table_row *ports = xcalloc(x->n_members + 1, sizeof *ports);
    size_t n_pods = 0, n_ports = 0, changes, refused, more;
    struct err why = {0};
    for (size_t i = 0; i < x->n_members; i++) {
        const struct member *m = &x->members[i];
        struct encode_pod p = {.ip = m->pod->ip,
                               .mac = m->pod->mac,
                               .vnid = m->pod->vnid,
                               .has_also = m->pod->has_also,
                               .also_vnid = m->pod->also_vnid,
                               .queued = m->queued,
                               .ifindex = m->ifindex,
                               .inlet = m->inlet};
        if (encode_pod(&x->net, &p, &pods[n_pods], &ports[n_ports])) {
            n_pods++;
            n_ports += m->ifindex != 0;
        }
    }
    table_sync(&x->ports, ports, n_ports, &changes, &refused, &why);
    x->pods_applied += changes;
    table_sync(&x->pods, pods, n_pods, &changes, &more, &why);
    x->pods_applied += changes;
    return refused + more
               ? err_set(e, -ENOSPC, "the datapath's maps of pods are full (%u at most): %s",
                         room(x, EBPF_PODS_MAX), why.text)
               : 0;
}

static void remove_member(struct ebpf_dp *x, struct member *m)
{
    hook_forget(&x->hooks, m->pod->host_if);
    dp_pod_free(m->pod);
    *m = x->members[--x->n_members];
}

/* ---- policy ---- */

static void on_policy_task(void *ctx)
{
    struct ebpf_dp *x = ctx;
    /* Also while a link of the node is missing; but policy ends with the plug-in that has it (put_network), not before. */
    if (x->loaded && x->net.plugin == SDN_NETWORKPOLICY) {
        policy_maps_put(&x->policy);
    }
}

static void policy_changed(void *ctx)
{
    struct ebpf_dp *x = ctx;
    loop_task_queue(&x->policy_task);
}

static void sweep(struct ebpf_dp *x, bool first)
{
    pthread_mutex_lock(&x->lock);
    size_t n = x->n_members;
    uint32_t *pods = xcalloc(n + 1, sizeof *pods);
    for (size_t i = 0; i < n; i++) {
        pods[i] = x->members[i].pod->ip;
    }
    pthread_mutex_unlock(&x->lock);
    struct policy_sweep s = {x->net.local, sdn_gateway(&x->net), pods, n, first};
    policy_maps_sweep(&x->policy, &s);
}

static void on_sweep(void *ctx)
{
    struct ebpf_dp *x = ctx;
    if (x->in_place && x->net.plugin == SDN_NETWORKPOLICY) {
        sweep(x, false);
        policy_maps_put(&x->policy); /* What did not fit may do so now. */
    }
    loop_timer_arm(x->sweep, SWEEP_MS);
}

static const struct policy_table_ops *ebpf_policy_table(struct datapath *dp, void **ret_ctx)
{
    *ret_ctx = &of_dp(dp)->policy;
    return &policy_maps_ops;
}

/* ---- the network ---- */

static int put_settings(struct ebpf_dp *x, struct err *e)
{
    struct ebpf_settings now = {0}, v = encode_settings(&x->net, &x->devices, x->has_services);
    uint32_t zero = 0;
    watch_settings(x->watch, &v);
    v.direct_until_s = paths_lend(x->paths);
    bool known = bpf_map_lookup_elem(x->program.settings, &zero, &now) == 0;
    if (known && memcmp(&now, &v, sizeof v) == 0) {
        return 0;
    }
    now.direct_until_s = v.direct_until_s; /* Time goes on. */
    x->applied += !known || memcmp(&now, &v, sizeof v) != 0;
    if (v.has_policy && !now.has_policy) {
        policy_maps_forget_connections(&x->policy); /* Of another time. */
    }
    return bpf_map_update_elem(x->program.settings, &zero, &v, BPF_ANY) < 0
               ? err_sys(e, -errno, "write the settings of the eBPF programs")
               : 0;
}

/* Counts what is refused now and was not before. */
static void note_refused(size_t *total, size_t *before, size_t now)
{
    *total += now > *before ? now - *before : 0;
    *before = now;
}

static void put_routes(struct ebpf_dp *x)
{
    static struct log_limit limit;
    struct err e = {0};
    size_t n, changes, refused, more;
    struct table_row *rows = encode_routes(&x->net, paths_find(x->paths, &x->net), &n);
    table_sync(&x->routes, rows, n, &changes, &refused, &e);
    x->applied += changes;
    rows = encode_vteps(&x->net, &n);
    table_sync(&x->vteps, rows, n, &changes, &more, &e);
    x->applied += changes;
    refused = MAX(refused, more);
    note_refused(&x->nodes_refused, &x->nodes_left_out, refused);
    if (refused) {
        log_limited(&limit, LOG_ERROR, "nodes that cannot be reached: the map is full",
                    "nodes=%zu most=%u error=\"%s\"", refused, room(x, EBPF_ROUTES_MAX), e.text);
    }
}

/* The programs at the links that carry everybody's packets; last, as the maps must have what they ask for. */
static int put_hooks(struct ebpf_dp *x, struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    int err = rtnl_open(&r, e);
    err = err < 0 ? err
                  : hook_attach(&x->hooks, r, HOOK_LASTING, DEVICE_VXLAN, x->devices.vxlan,
                                x->program.from_tunnel, e);
    err = err < 0 ? err
                  : hook_attach(&x->hooks, r, HOOK_LASTING, DEVICE_HOST, x->devices.host,
                                x->program.from_host, e);
    if (err == 0) {
        paths_hook(x->paths, x->program.from_wire);
    }
    return err;
}

static void on_lend(void *ctx)
{
    struct ebpf_dp *x = ctx;
    struct err e = {0};
    loop_timer_arm(x->lend, PATHS_LEND_MS);
    if (x->in_place && put_settings(x, &e) < 0) {
        say_lost(x, e.text);
    }
}

static void on_paths_changed(void *ctx)
{
    struct ebpf_dp *x = ctx;
    if (x->in_place) {
        put_routes(x);
        paths_hook(x->paths, x->program.from_wire);
        on_lend(x);
    }
}

static void take_places(struct ebpf_dp *x);

static int put_network(struct ebpf_dp *x, struct err *e)
{
    int r = devices_ensure(&x->net, &x->devices, e);
    if (r < 0) {
        return r;
    }
    if (x->hooks_due) {
        take_places(x);
    }
    put_routes(x);
    if (x->net.plugin == SDN_NETWORKPOLICY) {
        policy_maps_put(&x->policy);
    }
    pthread_mutex_lock(&x->lock);
    r = put_pods(x, e);
    pthread_mutex_unlock(&x->lock);
    r = r < 0 ? r : put_settings(x, e);
    if (r == 0 && x->net.plugin != SDN_NETWORKPOLICY) {
        policy_maps_put(&x->policy); /* It goes when it is not asked any more. */
    }
    return r < 0 || x->hooks_due ? r : put_hooks(x, e);
}

static void put_inlet(struct member *m, struct inlet at)
{
    m->ifindex = at.link;
    m->inlet = at.inlet;
    m->queued = at.queued;
}

/* The links of pods that an agent before us wired. */
static int find_links(struct ebpf_dp *x, struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    CLEANUP_FREE struct rtnl_link *links = NULL;
    size_t n = 0;
    int err = rtnl_open(&r, e);
    err = err < 0 ? err : rtnl_link_list(r, &links, &n, e);
    for (size_t i = 0; i < n; i++) {
        struct member *m = streq(links[i].kind, "veth") ? find_by_link(x, links[i].name) : NULL;
        if (m) {
            put_inlet(m, inlet_find(m->pod->host_if, m->pod->bandwidth));
        }
    }
    return err;
}

static bool is_member(void *ctx, const char *ifname)
{
    struct ebpf_dp *x = ctx;
    return streq(ifname, DEVICE_HOST) || streq(ifname, DEVICE_VXLAN) || find_by_link(x, ifname) ||
           paths_has_link(x->paths, ifname);
}

/* One pod whose link refuses a program is not worth the others' traffic. */
static int put_pod_hooks(struct ebpf_dp *x, struct err *why)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    int err = rtnl_open(&r, why);
    if (err < 0) {
        return err;
    }
    for (size_t i = 0; i < x->n_members; i++) {
        struct member *m = &x->members[i];
        struct err e = {0};
        if (m->ifindex && inlet_hook(&x->hooks, r, m->pod->host_if, m->pod->bandwidth,
                                     x->program.from_pod, &e) < 0) {
            log_error("pod is cut off until it is attached anew", "pod=%s/%s error=\"%s\"",
                      m->pod->pod_namespace, m->pod->pod_name, e.text);
            m->ifindex = m->inlet = 0;
        }
    }
    hook_sweep(&x->hooks, is_member, x);
    return 0;
}

/* ---- what waits for services ---- */

static void on_held(void *ctx, uint32_t port, const uint8_t *frame, size_t size)
{
    struct ebpf_dp *x = ctx;
    x->events.held(x->ctx, port, frame, size);
}

static int listen_for_held(struct ebpf_dp *x, struct err *e)
{
    struct held_config c = {
        .loop = x->loop, .ring = x->program.held, .devices = &x->devices, .fn = on_held, .ctx = x};
    return x->events.held ? held_new(&c, &x->held, e) : 0;
}

static int follow_paths(struct ebpf_dp *x, struct err *e)
{
    struct paths_config c = {
        .loop = x->loop, .hooks = &x->hooks, .changed = on_paths_changed, .ctx = x};
    return x->paths ? 0 : paths_new(&c, &x->paths, e);
}

static void on_places_taken(void *ctx);

/* Places for the programs of put_hooks, of those links that there are. */
static void take_places(struct ebpf_dp *x)
{
    static const char *const devices[] = {DEVICE_VXLAN, DEVICE_HOST};
    struct hook_place places[RESERVE_MAX];
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
        struct hook_place *p = &places[n];
        snprintf(p->ifname, sizeof p->ifname, "%s", devices[i]);
        p->ifindex = (int) if_nametoindex(devices[i]);
        n += p->ifindex != 0;
    }
    n += paths_places(x->paths, places + n, ARRAY_SIZE(places) - n);
    if (!x->reserve && x->hooks.tcx && n) {
        x->reserve = reserve_begin(x->loop, &x->hooks, places, n, on_places_taken, x);
    }
}

/* While the programs are loaded. */
static void expect(struct ebpf_dp *x, const struct sdn_network *n)
{
    struct program_features f;
    if (!early_features(x->early, &f)) {
        return;
    }
    x->hooks.tcx = f.tcx;
    if (f.encap && follow_paths(x, NULL) == 0) {
        paths_find(x->paths, n);
    }
    if (program_is_mounted(x->bpffs)) {
        take_places(x);
    }
}

/* For the first time: programs with the maps that are there, then what they need; links get them when the services are
 * told. */
static int set_up(struct ebpf_dp *x, struct err *e)
{
    int r = devices_check(&x->net, e);
    r = r < 0 ? r : program_mount(x->bpffs, e);
    r = r < 0 ? r : early_take(x->early, &x->features, &x->program, e);
    if (r < 0) {
        return r;
    }
    x->early = early_free(x->early);
    x->loaded = true;
    x->hooks.tcx = x->features.tcx;
    r = program_pin(&x->program, x->maps, e);
    r = r < 0 || !x->features.encap ? r : follow_paths(x, e);
    loop_timer_arm(x->lend, PATHS_LEND_MS);
    r = r < 0 ? r : table_load(&x->routes, x->program.routes, e);
    r = r < 0 ? r : table_load(&x->vteps, x->program.vteps, e);
    r = r < 0 ? r : table_load(&x->services, x->program.services, e);
    r = r < 0 ? r : table_load(&x->backends, x->program.backends, e);
    r = r < 0 ? r : table_load(&x->serving, x->program.serving, e);
    r = r < 0 ? r : policy_maps_load(&x->policy, &x->program, e);
    r = r < 0 ? r : listen_for_held(x, e);
    x->has_services = x->services.n > 0; /* Of the agent before us, until they are told. */
    pthread_mutex_lock(&x->lock);
    r = r < 0 ? r : table_load(&x->pods, x->program.pods, e);
    r = r < 0 ? r : table_load(&x->ports, x->program.ports, e);
    r = r < 0 ? r : find_links(x, e);
    pthread_mutex_unlock(&x->lock);
    x->hooks_due = true;
    r = r < 0 ? r : put_network(x, e);
    if (r == 0) {
        sweep(x, true);
    }
    return r;
}

/* The maps have all that the programs ask for. */
static int put_first_hooks(struct ebpf_dp *x, struct err *e)
{
    int r = put_hooks(x, e);
    if (r < 0) {
        return r;
    }
    pthread_mutex_lock(&x->lock);
    bool hooked = (r = put_pod_hooks(x, e)) == 0;
    r = hooked ? put_pods(x, e) : r;
    pthread_mutex_unlock(&x->lock);
    if (!hooked) {
        return r;
    }
    x->hooks_due = false;
    x->reserve = reserve_free(x->reserve, true);
    log_info("programs are in place",
             "maps=%s pods=%zu changes=%zu hooks=%s redirect_peer=%s ringbuf=%s encap=%s",
             x->program.reused ? "found" : "new", x->n_members,
             x->applied + x->pods_applied + x->policy.applied, x->features.tcx ? "tcx" : "clsact",
             x->features.redirect_peer ? "yes" : "no", x->features.ringbuf ? "yes" : "no",
             x->features.encap ? "yes" : "no");
    return r;
}

static void became(struct ebpf_dp *x, int r, bool first, const struct err *e)
{
    if (r < 0 && first) {
        snprintf(x->outbox.fatal_reason, sizeof x->outbox.fatal_reason, "%s", e->text);
        x->outbox.fatal = true;
        loop_task_queue(&x->task);
    } else if (r < 0) {
        say_lost(x, e->text);
    } else if (!x->in_place && !x->hooks_due) {
        x->in_place = x->outbox.ready = true;
        x->outage = x->outbox.lost = false;
        loop_task_queue(&x->task);
    }
}

/* The first hooks, once that is all there is to do. */
static void hook_if_due(struct ebpf_dp *x)
{
    struct err e = {0};
    if (x->hooks_due && x->services_told && (!x->reserve || reserve_is_over(x->reserve))) {
        int r = put_first_hooks(x, &e);
        became(x, r, true, &e);
    }
}

static void on_places_taken(void *ctx)
{
    hook_if_due(ctx);
}

static void work_on(struct ebpf_dp *x)
{
    struct err e = {0};
    bool first = !x->loaded;
    int r = first ? set_up(x, &e) : put_network(x, &e);
    became(x, r, first, &e);
}

static void on_retry(void *ctx)
{
    struct ebpf_dp *x = ctx;
    if (x->have_network && !x->in_place) {
        work_on(x);
    }
}

static void ebpf_set_network(struct datapath *dp, const struct sdn_network *n)
{
    struct ebpf_dp *x = of_dp(dp);
    struct sdn_remote *remotes =
        n->n_remotes ? xmemdup(n->remotes, n->n_remotes * sizeof *n->remotes) : NULL;
    pthread_mutex_lock(&x->lock);
    free(x->net.remotes);
    x->net = *n;
    x->net.remotes = remotes;
    pthread_mutex_unlock(&x->lock);
    x->have_network = true;
    work_on(x);
}

/* ---- pods ---- */

static void store(struct ebpf_dp *x, const struct dp_pod *p)
{
    struct err e = {0};
    if (record_write(x->records, p, &e) < 0) {
        log_error("what a pod is could not be stored", "pod=%s/%s error=\"%s\"", p->pod_namespace,
                  p->pod_name, e.text);
    }
}

static int add_pod(struct ebpf_dp *x, const struct dp_pod *p, struct err *e)
{
    struct member *old = find_member(x, p->container_id, p->ifname);
    if (old) {
        record_remove(x->records, old->pod, NULL);
        remove_member(x, old);
    }
    x->members = grow(x->members, &x->cap_members, x->n_members + 1, sizeof *x->members);
    struct member *m = &x->members[x->n_members++];
    *m = (struct member){.pod = dp_pod_clone(p)};
    snprintf(m->pod->port, sizeof m->pod->port, "%s", p->host_if);
    /* On file first: what is in the kernel must be known after a crash. */
    int r = record_write(x->records, m->pod, e);
    r = r < 0 ? r : put_pods(x, e);
    if (r < 0) {
        record_remove(x->records, m->pod, NULL);
        remove_member(x, m);
        put_pods(x, NULL);
        x->pods_refused += r == -ENOSPC;
    }
    return r;
}

static void ebpf_attach(struct datapath *dp, const struct dp_pod *p, datapath_port_fn *port,
                        datapath_done_fn *done, void *ctx)
{
    struct ebpf_dp *x = of_dp(dp);
    struct err e = {0};
    if (!x->in_place) {
        outbox_add_done(&x->outbox, done, ctx, -EAGAIN, "the datapath is not in place");
        return;
    }
    policy_maps_put(&x->policy);
    pthread_mutex_lock(&x->lock);
    int r = add_pod(x, p, &e);
    pthread_mutex_unlock(&x->lock);
    if (r == 0) {
        outbox_add_port(&x->outbox, port, ctx, p->host_if, p->host_if);
    }
    outbox_add_done(&x->outbox, done, ctx, r, e.text);
}

static void ebpf_detach(struct datapath *dp, const char *container_id, const char *ifname,
                        datapath_done_fn *done, void *ctx)
{
    struct ebpf_dp *x = of_dp(dp);
    struct err e = {0};
    int r = 0;
    pthread_mutex_lock(&x->lock);
    struct member *m = find_member(x, container_id, ifname);
    if (m) {
        r = record_remove(x->records, m->pod, &e);
    }
    if (m && r == 0) {
        remove_member(x, m);
        r = put_pods(x, &e);
    }
    pthread_mutex_unlock(&x->lock);
    outbox_add_done(&x->outbox, done, ctx, r, e.text);
}

static void set_text(char **slot, const char *value)
{
    free(*slot);
    *slot = value ? xstrdup(value) : NULL;
}

static void ebpf_set_runtime(struct datapath *dp, const char *container_id, const char *ifname,
                             const char *host_ports, const char *bandwidth, datapath_done_fn *done,
                             void *ctx)
{
    struct ebpf_dp *x = of_dp(dp);
    struct err e = {0};
    int r = -ENOENT;
    pthread_mutex_lock(&x->lock);
    struct member *m = find_member(x, container_id, ifname);
    if (m) {
        set_text(&m->pod->host_ports, host_ports);
        set_text(&m->pod->bandwidth, bandwidth);
        r = record_write(x->records, m->pod, &e);
    } else {
        err_set(&e, r, "the pod is not attached");
    }
    pthread_mutex_unlock(&x->lock);
    outbox_add_done(&x->outbox, done, ctx, r, e.text);
}

static void ebpf_set_vnids(struct datapath *dp, const char *pod_namespace,
                           const struct sdn_vnids *v)
{
    struct ebpf_dp *x = of_dp(dp);
    struct err e = {0};
    pthread_mutex_lock(&x->lock);
    for (size_t i = 0; i < x->n_members; i++) {
        struct dp_pod *p = x->members[i].pod;
        if (streq_null(p->pod_namespace, pod_namespace)) {
            p->vnid = v->id;
            p->has_also = v->moving;
            p->also_vnid = v->moving ? v->also : 0;
            store(x, p);
        }
    }
    int r = put_pods(x, &e);
    pthread_mutex_unlock(&x->lock);
    if (r < 0) {
        log_error("VNIDs of pods could not be changed", "project=%s error=\"%s\"", pod_namespace,
                  e.text);
    }
}

/* Backends first: a service's count speaks of those that are there. */
static void ebpf_set_services(struct datapath *dp, const char *node,
                              const struct model_service *list, size_t n)
{
    static struct log_limit limit;
    struct ebpf_dp *x = of_dp(dp);
    struct encoded_services s;
    size_t changes[3], refused[3];
    struct err e = {0};
    if (!x->loaded) {
        return;
    }
    encode_services(&x->net, node, list, n, &s);
    table_sync(&x->serving, s.serving, s.n_backends, &changes[0], &refused[0], &e);
    table_sync(&x->backends, s.backends, s.n_backends, &changes[1], &refused[1], &e);
    table_sync(&x->services, s.services, s.n_services, &changes[2], &refused[2], &e);
    x->applied += changes[0] + changes[1] + changes[2];
    size_t backends = MAX(refused[0], refused[1]);
    note_refused(&x->services_refused, &x->services_left_out, backends + refused[2]);
    if (backends + refused[2]) {
        log_limited(&limit, LOG_ERROR, "services do not all fit into the maps",
                    "addresses=%zu of=%u backends=%zu of=%u error=\"%s\"", refused[2],
                    room(x, EBPF_SERVICES_MAX), backends, room(x, EBPF_BACKENDS_MAX), e.text);
    }
    x->has_services = true;
    err_clear(&e);
    int r = put_settings(x, &e);
    if (r < 0) {
        became(x, r, x->hooks_due, &e);
    } else {
        x->services_told = true;
        hook_if_due(x);
    }
    if (x->held) {
        held_flush(x->held);
    }
}

static void ebpf_send_held(struct datapath *dp, uint32_t port, const uint8_t *frame, size_t size)
{
    struct ebpf_dp *x = of_dp(dp);
    if (x->held) {
        held_send(x->held, frame, size);
    }
}

/* Policies and services are told otherwise. */
static void ebpf_set_flows(struct datapath *dp, uint64_t cookie, struct of_flow_list *flows)
{
    of_flow_list_done(flows);
}

static const struct dp_pod *const *ebpf_pods(struct datapath *dp, size_t *ret_n)
{
    struct ebpf_dp *x = of_dp(dp);
    pthread_mutex_lock(&x->lock);
    free(x->view);
    x->view = xcalloc(x->n_members + 1, sizeof(struct dp_pod *));
    for (size_t i = 0; i < x->n_members; i++) {
        struct member *m = &x->members[i];
        m->pod->port_number = (uint32_t) m->ifindex;
        m->pod->ready = m->ifindex && x->in_place;
        x->view[i] = m->pod;
    }
    *ret_n = x->n_members;
    pthread_mutex_unlock(&x->lock);
    return x->view;
}

static const struct dp_pod *ebpf_find(struct datapath *dp, const char *container_id,
                                      const char *ifname)
{
    size_t n;
    const struct dp_pod *const *pods = ebpf_pods(dp, &n);
    for (size_t i = 0; i < n; i++) {
        if (streq(pods[i]->container_id, container_id) && streq(pods[i]->ifname, ifname)) {
            return pods[i];
        }
    }
    return NULL;
}

/* ---- links of pods; on any thread ---- */

static int ebpf_wire(struct datapath *dp, const struct dp_wire *w, struct err *e)
{
    struct ebpf_dp *x = of_dp(dp);
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    struct inlet at;
    int k = rtnl_open(&r, e);
    k = k < 0 ? k : inlet_wire(&x->hooks, r, w, x->program.from_pod, &at, e);
    if (k < 0) {
        return k;
    }
    pthread_mutex_lock(&x->lock);
    struct member *m = find_by_link(x, w->host_if);
    if (m) {
        put_inlet(m, at);
        k = put_pods(x, e);
    } else {
        k = err_set(e, -ENOENT, "%s is no attached pod's link", w->host_if);
    }
    pthread_mutex_unlock(&x->lock);
    return k;
}

/* The queue of the link goes with that, and with the pod what is known of it. */
static int ebpf_unlimit(struct datapath *dp, const struct dp_wire *w, struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    int k = rtnl_open(&r, e);
    return k < 0 ? k : inlet_remove(r, w, e);
}

static int ebpf_check_wire(struct datapath *dp, const struct dp_wire *w, struct err *e)
{
    struct ebpf_dp *x = of_dp(dp);
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    struct inlet at;
    int k = rtnl_open(&r, e);
    k = k < 0 ? k : inlet_check(&x->hooks, r, w, x->program.from_pod, &at, e);
    if (k < 0) {
        return k;
    }
    pthread_mutex_lock(&x->lock);
    const struct member *m = find_by_link(x, w->host_if);
    k = m && m->ifindex == at.link && m->inlet == at.inlet ? 0 : -ENOENT;
    pthread_mutex_unlock(&x->lock);
    return k < 0 ? err_set(e, k, "%s is not wired", w->host_if) : 0;
}

static void ebpf_link_gone(struct datapath *dp, const char *name)
{
    struct ebpf_dp *x = of_dp(dp);
    if (streq(name, DEVICE_TUN) || streq(name, DEVICE_HOST) || streq(name, DEVICE_VXLAN)) {
        char reason[64];
        snprintf(reason, sizeof reason, "the link %s is gone", name);
        if (x->in_place && !(if_nametoindex(DEVICE_TUN) && if_nametoindex(DEVICE_HOST) &&
                             if_nametoindex(DEVICE_VXLAN))) {
            say_lost(x, reason);
            loop_timer_arm(x->retry, 0);
        }
        return;
    }
    pthread_mutex_lock(&x->lock);
    struct member *m = find_by_link(x, name);
    /* The word comes late: another may have the name by now. */
    if (m && m->ifindex && (int) if_nametoindex(name) != m->ifindex) {
        m->ifindex = m->inlet = 0;
        put_pods(x, NULL);
        log_debug("link of a pod is gone", "pod=%s/%s link=%s", m->pod->pod_namespace,
                  m->pod->pod_name, name);
    }
    pthread_mutex_unlock(&x->lock);
}

/* ---- looking ---- */

static void ebpf_get_status(struct datapath *dp, struct datapath_status *ret)
{
    struct ebpf_dp *x = of_dp(dp);
    int drops = x->program.drops;
    *ret = (struct datapath_status){
        .connected = x->loaded,
        .in_place = x->in_place,
        .pods = x->n_members,
        .remotes = x->net.n_remotes,
        .pods_refused = x->pods_refused,
        .nodes_refused = x->nodes_refused,
        .services_refused = x->services_refused,
        .policy_refused = x->policy.refused_ever,
        .refusals_sent = x->loaded ? show_counter(drops, EBPF_ERRORS_SENT) : 0,
        .refusals_suppressed = x->loaded ? show_counter(drops, EBPF_ERRORS_LIMITED) : 0,
        .datapath_type = !x->loaded        ? NULL
                         : x->features.tcx ? "ebpf/tcx"
                                           : "ebpf/clsact"};
}

static void ebpf_drops(struct datapath *dp, datapath_drops_fn *done, void *ctx)
{
    struct ebpf_dp *x = of_dp(dp);
    int error = x->loaded ? show_drops(x->program.drops, x->drops) : -EAGAIN;
    done(ctx, error, x->drops);
}

static void ebpf_rules(struct datapath *dp, const struct datapath_rules_ops *ops, void *ctx)
{
    ops->done(ctx, -EOPNOTSUPP,
              "the datapath ebpf has no OpenFlow flows; \"tenet node maps\" has its maps");
}

static uint32_t inlet_of(struct ebpf_dp *x, uint32_t port)
{
    pthread_mutex_lock(&x->lock);
    for (size_t i = 0; i < x->n_members; i++) {
        if ((uint32_t) x->members[i].ifindex == port) {
            port = (uint32_t) x->members[i].inlet;
            break;
        }
    }
    pthread_mutex_unlock(&x->lock);
    return port;
}

static void ebpf_trace(struct datapath *dp, const struct model_packet *p, datapath_trace_fn *done,
                       void *ctx)
{
    struct ebpf_dp *x = of_dp(dp);
    struct trace_steps *steps = NULL;
    struct dp_trace t = {0};
    struct err e = {0};
    struct model_packet asked = *p;
    asked.port = inlet_of(x, p->port);
    int r = x->loaded ? trace_packet(&x->program, &x->features, &x->net, &asked, &t, &steps, &e)
                      : err_set(&e, -EAGAIN, "the eBPF programs are not loaded yet");
    done(ctx, r, e.text, &t);
    trace_steps_free(steps);
}

static void on_watch_changed(void *ctx)
{
    struct ebpf_dp *x = ctx;
    struct err e = {0};
    if (put_settings(x, &e) < 0) {
        say_lost(x, e.text);
    }
}

static int ebpf_watch(struct datapath *dp, datapath_events_fn *fn, void *ctx, struct err *e)
{
    struct ebpf_dp *x = of_dp(dp);
    if (!x->watch && !fn) {
        return 0;
    }
    if (!x->loaded) {
        return err_set(e, -EAGAIN, "the eBPF programs are not loaded yet");
    }
    if (!fn) {
        x->watch_number = watch_free(TAKE(x->watch));
    } else if (x->watch) {
        watch_again(x->watch);
    } else {
        struct watch_config c = {.loop = x->loop,
                                 .program = &x->program,
                                 .number = x->watch_number + 1,
                                 .changed = on_watch_changed,
                                 .ctx = x,
                                 .fn = fn,
                                 .fn_ctx = ctx};
        int r = watch_new(&c, &x->watch, e);
        if (r < 0) {
            return r;
        }
    }
    int r = put_settings(x, e);
    if (r < 0 && x->watch) {
        x->watch_number = watch_free(TAKE(x->watch));
    }
    return r;
}

static int ebpf_maps(struct datapath *dp, const char *name, const char *after, size_t limit,
                     struct json **ret, struct err *e)
{
    struct ebpf_dp *x = of_dp(dp);
    const struct table *known[] = {&x->pods,     &x->ports,    &x->routes,  &x->vteps,
                                   &x->services, &x->backends, &x->serving, NULL};
    if (!x->loaded) {
        return err_set(e, -EAGAIN, "the eBPF programs are not loaded yet");
    }
    pthread_mutex_lock(&x->lock);
    int r = name ? show_map(&x->program, known, name, after, limit, ret, e) : 0;
    if (!name) {
        *ret = show_maps(&x->program, known);
    }
    pthread_mutex_unlock(&x->lock);
    return r;
}

/* ---- opening ---- */

static char *bpffs_of(const struct datapath_config *cfg)
{
    return xasprintf("%s/bpf", cfg->run_dir);
}

static char *maps_of(const struct datapath_config *cfg)
{
    return xasprintf("%s/bpf/maps", cfg->run_dir);
}

static int ebpf_check(const struct datapath_config *cfg, const struct sdn_network *n, struct err *e)
{
    struct program_features f;
    CLEANUP_FREE char *bpffs = bpffs_of(cfg);
    int r = program_probe(cfg->ebpf_without, &f, e);
    r = r < 0 ? r : program_check_mount(bpffs, e);
    r = r < 0 ? r : devices_check(n, e);
    return r < 0 ? err_prefix(e, "networkConfig.datapath: ebpf") : 0;
}

static void on_bad_record(void *ctx, const char *file, const char *why)
{
    log_error("record of a pod cannot be read, the pod is not known any longer",
              "file=%s error=\"%s\"", file, why);
}

/* Nobody sets a network before. */
static void on_loaded(void *ctx)
{
    struct ebpf_dp *x = ctx;
    x->outbox.inventory = true;
    loop_task_queue(&x->task);
}

static int read_records(struct ebpf_dp *x, struct err *e)
{
    struct dp_pod **pods = NULL;
    size_t n = 0;
    int r = record_read_all(x->records, on_bad_record, x, &pods, &n, e);
    if (r == 0) {
        x->members = xcalloc(n + 1, sizeof *x->members);
        x->cap_members = n + 1;
        x->n_members = n;
        for (size_t i = 0; i < n; i++) {
            x->members[i].pod = pods[i];
        }
    }
    free(pods);
    return r;
}

static void ebpf_close(struct datapath *dp)
{
    struct ebpf_dp *x = of_dp(dp);
    ebpf_watch(dp, NULL, NULL, NULL);
    loop_task_cancel(&x->task);
    loop_timer_free(x->retry);
    loop_task_cancel(&x->policy_task);
    loop_timer_free(x->sweep);
    loop_timer_free(x->lend);
    paths_free(x->paths);
    policy_maps_done(&x->policy);
    early_free(x->early);
    reserve_free(x->reserve, false);
    for (size_t i = 0; i < x->n_members; i++) {
        dp_pod_free(x->members[i].pod);
    }
    free(x->members);
    free(x->view);
    held_free(x->held);
    table_done(&x->routes);
    table_done(&x->vteps);
    table_done(&x->services);
    table_done(&x->backends);
    table_done(&x->serving);
    table_done(&x->pods);
    table_done(&x->ports);
    if (x->loaded) {
        program_done(&x->program);
    }
    pthread_mutex_destroy(&x->lock);
    free(x->net.remotes);
    free(x->bpffs);
    free(x->maps);
    free(x->hooks_dir);
    free(x->records);
    if (outbox_close(&x->outbox)) {
        free(x);
    }
}

static struct datapath_prepared *ebpf_prepare(struct loop *l, const struct datapath_config *cfg)
{
    CLEANUP_FREE char *pins = maps_of(cfg);
    return early_prepared(early_begin(l, cfg, pins));
}

static void ebpf_unprepare(struct datapath_prepared *p)
{
    early_free(early_of(p));
}

static int ebpf_open(struct loop *l, const struct datapath_config *cfg,
                     const struct datapath_events *ev, void *ctx, struct datapath **ret,
                     struct err *e)
{
    struct ebpf_dp *x = NEW(struct ebpf_dp);
    x->dp.ops = &datapath_ebpf;
    x->loop = l;
    x->events = *ev;
    x->ctx = ctx;
    x->bpffs = bpffs_of(cfg);
    x->maps = maps_of(cfg);
    x->early = cfg->prepared ? early_of(cfg->prepared) : early_begin(l, cfg, x->maps);
    early_tell(x->early, on_loaded, x);
    x->hooks_dir = xasprintf("%s/links", x->bpffs);
    x->records = xasprintf("%s/pods", cfg->run_dir);
    x->hooks = (struct hooks){.dir = x->hooks_dir};
    pthread_mutex_init(&x->lock, NULL);
    loop_task_init(&x->task, l, run, x);
    outbox_init(&x->outbox, &x->task, &x->events, ctx);
    x->retry = loop_timer_new(l, on_retry, x);
    policy_maps_init(&x->policy, policy_changed, x);
    loop_task_init(&x->policy_task, l, on_policy_task, x);
    x->sweep = loop_timer_new(l, on_sweep, x);
    loop_timer_arm(x->sweep, SWEEP_MS);
    x->lend = loop_timer_new(l, on_lend, x);
    int r = read_records(x, e);
    if (r < 0) {
        ebpf_close(&x->dp);
        return r;
    }
    if (cfg->expected) {
        expect(x, cfg->expected);
    }
    *ret = &x->dp;
    return 0;
}

const struct datapath_ops datapath_ebpf = {
    .kind = "ebpf",
    .check = ebpf_check,
    .prepare = ebpf_prepare,
    .unprepare = ebpf_unprepare,
    .open = ebpf_open,
    .close = ebpf_close,
    .set_network = ebpf_set_network,
    .attach = ebpf_attach,
    .detach = ebpf_detach,
    .wire = ebpf_wire,
    .unlimit = ebpf_unlimit,
    .check_wire = ebpf_check_wire,
    .link_gone = ebpf_link_gone,
    .set_runtime = ebpf_set_runtime,
    .set_vnids = ebpf_set_vnids,
    .set_flows = ebpf_set_flows,
    .policy_table = ebpf_policy_table,
    .set_services = ebpf_set_services,
    .send_held = ebpf_send_held,
    .pods = ebpf_pods,
    .find = ebpf_find,
    .get_status = ebpf_get_status,
    .drops = ebpf_drops,
    .rules = ebpf_rules,
    .trace = ebpf_trace,
    .watch = ebpf_watch,
    .maps = ebpf_maps,
};
