/* SPDX-License-Identifier: Apache-2.0 */
/* The desired network, put into the maps and onto the links of the node; nothing is removed
 * first. */
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "datapath/ebpf/ebpf_priv.h"
#include "datapath/ebpf/encode.h"
#include "sdn/service_flows.h"

#include <bpf/bpf.h>
#include <stdio.h>

LOG_MODULE("ebpf");

/* ---- policy ---- */

void network_put_policy(void *ctx)
{
    struct ebpf_dp *x = ctx;
    /* Also while a link of the node is missing; but policy ends with the plug-in that uses it
     * (put_network), not before. */
    if (x->loaded && x->net.plugin == SDN_NETWORKPOLICY) {
        policy_maps_put(&x->policy);
    }
}

void network_policy_changed(void *ctx)
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

/* Writes firewalls that did not fit; those that do not fit even now deny everything. */
static void put_firewalls(struct ebpf_dp *x)
{
    struct err e = {0};
    firewall_maps_put(&x->firewalls);
    if (network_put_settings(x, &e) < 0) {
        ebpf_report(x, OUTBOX_REFUSED, e.text);
    }
}

void network_sweep(void *ctx)
{
    struct ebpf_dp *x = ctx;
    if (x->in_place && x->net.plugin == SDN_NETWORKPOLICY) {
        sweep(x, false);
        policy_maps_put(&x->policy); /* Rows that did not fit may fit now. */
    }
    if (x->in_place) {
        put_firewalls(x);
    }
    loop_timer_arm(x->sweep, EBPF_SWEEP_MS);
}

/* ---- maps, and programs at the links of the node ---- */

int network_put_settings(struct ebpf_dp *x, struct err *e)
{
    struct ebpf_settings now = {0}, v = encode_settings(&x->net, &x->devices, x->has_services);
    uint32_t zero = 0;
    watch_settings(x->watch, &v);
    v.subnet_len = x->subnet_len;
    v.firewalls_closed = x->firewalls.closed;
    v.direct_until_s = paths_lend(x->paths);
    bool known = bpf_map_lookup_elem(x->program.settings, &zero, &now) == 0;
    if (known && memcmp(&now, &v, sizeof v) == 0) {
        return 0;
    }
    now.direct_until_s = v.direct_until_s; /* Time goes on. */
    x->applied += !known || memcmp(&now, &v, sizeof v) != 0;
    if (v.has_policy && !now.has_policy) {
        /* Connections from a time with another plug-in. */
        policy_maps_forget_connections(&x->policy);
    }
    return bpf_map_update_elem(x->program.settings, &zero, &v, BPF_ANY) < 0
               ? err_sys(e, -errno, "write the settings of the eBPF programs")
               : 0;
}

/* Counts rows that are refused now and were not before. */
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
    if (changes || !x->subnet_len) {
        rows = encode_subnets(x->routes.rows, x->routes.n, &x->subnet_len, &n);
        table_sync(&x->subnets, rows, n, &changes, &more, &e);
        x->applied += changes;
    }
    rows = encode_vteps(&x->net, &n);
    table_sync(&x->vteps, rows, n, &changes, &more, &e);
    x->applied += changes;
    refused = MAX(refused, more);
    note_refused(&x->nodes_refused, &x->nodes_left_out, refused);
    if (refused) {
        log_limited(&limit, LOG_ERROR, "nodes that cannot be reached: the map is full",
                    "nodes=%zu most=%u error=\"%s\"", refused, ebpf_room(x, EBPF_ROUTES_MAX),
                    e.text);
    }
}

/* Attaches the programs to the links that carry all pods' packets; last, as the maps must be
 * complete before. */
static int put_hooks(struct ebpf_dp *x, struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    int err = rtnl_open(&r, e);
    err = err < 0 ? err
                  : hook_attach(&x->hooks, r, HOOK_TCX, DEVICE_VXLAN, x->devices.vxlan,
                                x->program.from_tunnel, e);
    err = err < 0 ? err
                  : hook_attach(&x->hooks, r, HOOK_TCX, DEVICE_HOST, x->devices.host,
                                x->program.from_host, e);
    if (err == 0) {
        paths_hook(x->paths, x->program.from_wire);
    }
    return err;
}

void network_lend(void *ctx)
{
    struct ebpf_dp *x = ctx;
    struct err e = {0};
    loop_timer_arm(x->lend, PATHS_LEND_MS);
    if (x->in_place && network_put_settings(x, &e) < 0) {
        ebpf_report(x, OUTBOX_REFUSED, e.text);
    }
}

static void on_paths_changed(void *ctx)
{
    struct ebpf_dp *x = ctx;
    if (x->in_place) {
        put_routes(x);
        paths_hook(x->paths, x->program.from_wire);
        network_lend(x);
    }
}

static int follow_paths(struct ebpf_dp *x, struct err *e)
{
    struct paths_config c = {
        .loop = x->loop, .hooks = &x->hooks, .changed = on_paths_changed, .ctx = x};
    return x->paths ? 0 : paths_new(&c, &x->paths, e);
}

static void on_places_taken(void *ctx);

/* Reserves places for the programs of put_hooks, on those links that exist. */
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
    r = members_put(x, e);
    pthread_mutex_unlock(&x->lock);
    r = r < 0 ? r : network_put_settings(x, e);
    if (r == 0 && x->net.plugin != SDN_NETWORKPOLICY) {
        /* The programs do not read it any more, so it can be emptied. */
        policy_maps_put(&x->policy);
    }
    return r < 0 || x->hooks_due ? r : put_hooks(x, e);
}

/* Runs while the programs are loaded. */
void network_expect(struct ebpf_dp *x, const struct sdn_network *n)
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

/* ---- the first set-up ---- */

static void on_upcall(void *ctx, uint32_t port, const uint8_t *frame, size_t size)
{
    struct ebpf_dp *x = ctx;
    x->events.idle_packet(x->ctx, port, frame, size);
}

static int listen_for_upcalls(struct ebpf_dp *x, struct err *e)
{
    struct upcall_config c = {.loop = x->loop,
                              .ring = x->program.upcalls,
                              .devices = &x->devices,
                              .fn = on_upcall,
                              .ctx = x};
    return x->events.idle_packet ? upcall_new(&c, &x->upcalls, e) : 0;
}

/* The first set-up: programs with the existing maps, then the maps' contents; links get the
 * programs when the services are set. */
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
    r = r < 0 ? r : table_load(&x->subnets, x->program.subnets, e);
    r = r < 0 ? r : table_load(&x->vteps, x->program.vteps, e);
    r = r < 0 ? r : table_load(&x->services, x->program.services, e);
    r = r < 0 ? r : table_load(&x->backends, x->program.backends, e);
    r = r < 0 ? r : table_load(&x->serving, x->program.serving, e);
    r = r < 0 ? r : policy_maps_load(&x->policy, &x->program, e);
    r = r < 0 ? r : firewall_maps_load(&x->firewalls, &x->program, e);
    r = r < 0 ? r : listen_for_upcalls(x, e);
    /* Services of the earlier agent process, until the agent sets them. */
    x->has_services = x->services.n > 0;
    pthread_mutex_lock(&x->lock);
    r = r < 0 ? r : table_load(&x->pods, x->program.pods, e);
    r = r < 0 ? r : table_load(&x->pod_cache, x->program.pod_cache, e);
    r = r < 0 ? r : table_load(&x->ports, x->program.ports, e);
    r = r < 0 ? r : members_find_links(x, e);
    pthread_mutex_unlock(&x->lock);
    x->hooks_due = true;
    r = r < 0 ? r : put_network(x, e);
    if (r == 0) {
        sweep(x, true);
        firewall_maps_clean(&x->firewalls); /* The pods have their VNIDs by now. */
    }
    return r;
}

/* The maps are complete for the programs now. */
static int put_first_hooks(struct ebpf_dp *x, struct err *e)
{
    int r = put_hooks(x, e);
    if (r < 0) {
        return r;
    }
    pthread_mutex_lock(&x->lock);
    bool hooked = (r = members_hook(x, e)) == 0;
    r = hooked ? members_put(x, e) : r;
    pthread_mutex_unlock(&x->lock);
    if (!hooked) {
        return r;
    }
    x->hooks_due = false;
    x->reserve = reserve_free(x->reserve, true);
    if (x->hooks.tcx) {
        struct tcx_upgrade_config c = {
            .loop = x->loop, .hooks = &x->hooks, .next = members_next_upgrade, .ctx = x};
        x->upgrade = tcx_upgrade_new(&c, x->program.from_pod);
        tcx_upgrade_defer(x->upgrade);
    }
    log_info("programs are in place",
             "maps=%s pods=%zu changes=%zu hooks=%s redirect_peer=%s scrub=%s ringbuf=%s encap=%s",
             x->program.reused ? "found" : "new", x->n_members,
             x->applied + x->pods_applied + x->policy.applied + x->firewalls.applied,
             x->features.tcx ? "tcx" : "clsact", x->features.redirect_peer ? "yes" : "no",
             x->features.scrub ? "yes" : "no", x->features.ringbuf ? "yes" : "no",
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
        ebpf_report(x, OUTBOX_REFUSED, e->text);
    } else if (!x->in_place && !x->hooks_due) {
        x->in_place = x->outbox.ready = true;
        x->trouble = x->outbox.trouble = OUTBOX_NO_TROUBLE;
        loop_task_queue(&x->task);
    }
}

/* Attaches the first hooks, once nothing else is pending. */
static void hook_if_due(struct ebpf_dp *x)
{
    struct err e = {0};
    if (x->hooks_due && x->services_set && (!x->reserve || reserve_is_over(x->reserve))) {
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

void network_retry(void *ctx)
{
    struct ebpf_dp *x = ctx;
    if (x->have_network && !x->in_place) {
        work_on(x);
    }
}

/* ---- calls of the agent ---- */

void ebpf_set_network(struct datapath *dp, const struct sdn_network *n)
{
    struct ebpf_dp *x = ebpf_of(dp);
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

void ebpf_set_firewall(struct datapath *dp, uint32_t vnid, const struct firewall_block *blocks,
                       size_t n)
{
    struct ebpf_dp *x = ebpf_of(dp);
    bool was_closed = x->firewalls.closed;
    firewall_maps_set(&x->firewalls, vnid, blocks, n);
    if (x->loaded && x->firewalls.closed != was_closed) {
        put_firewalls(x);
    }
}

static void count_ended(void *ctx, const struct of_connection *c)
{
    struct ebpf_dp *x = ctx;
    x->connections_ended++;
}

/* The programs look at EBPF_SERVING for each packet, so a connection ends with its endpoint; it only counts here. */
void ebpf_change_service(struct datapath *dp, const struct sdn_service *old,
                         const struct sdn_project_service *now)
{
    service_flows_ended(old, now ? now->service : NULL, count_ended, ebpf_of(dp));
}

void ebpf_settle_services(struct datapath *dp, const struct datapath_services *all)
{
    struct ebpf_dp *x = ebpf_of(dp);
    x->all_services = all;
    loop_task_queue(&x->services_task);
}

/* Backends first: a service's count speaks of those that are there. */
void network_put_services(void *ctx)
{
    static struct log_limit limit;
    struct ebpf_dp *x = ctx;
    struct encoded_services s;
    size_t changes[3], refused[3];
    struct err e = {0};
    if (!x->loaded) {
        return;
    }
    struct sdn_project_service *list = NULL;
    size_t n = x->all_services->list(x->all_services->ctx, &list);
    encode_services(&x->net, x->node_name, list, n, &s);
    free(list);
    table_sync(&x->serving, s.serving, s.n_backends, &changes[0], &refused[0], &e);
    table_sync(&x->backends, s.backends, s.n_backends, &changes[1], &refused[1], &e);
    table_sync(&x->services, s.services, s.n_services, &changes[2], &refused[2], &e);
    x->applied += changes[0] + changes[1] + changes[2];
    size_t backends = MAX(refused[0], refused[1]);
    note_refused(&x->services_refused, &x->services_left_out, backends + refused[2]);
    if (backends + refused[2]) {
        log_limited(&limit, LOG_ERROR, "services do not all fit into the maps",
                    "addresses=%zu of=%u backends=%zu of=%u error=\"%s\"", refused[2],
                    ebpf_room(x, EBPF_SERVICES_MAX), backends, ebpf_room(x, EBPF_BACKENDS_MAX),
                    e.text);
    }
    x->has_services = true;
    err_clear(&e);
    int r = network_put_settings(x, &e);
    if (r < 0) {
        became(x, r, x->hooks_due, &e);
    } else {
        x->services_set = true;
        hook_if_due(x);
    }
    if (x->upcalls) {
        upcall_flush(x->upcalls);
    }
}

void ebpf_release(struct datapath *dp, uint32_t port, const uint8_t *frame, size_t size)
{
    struct ebpf_dp *x = ebpf_of(dp);
    if (x->upcalls) {
        upcall_reinject(x->upcalls, frame, size);
    }
}

void ebpf_link_gone(struct datapath *dp, const char *name)
{
    struct ebpf_dp *x = ebpf_of(dp);
    if (streq(name, DEVICE_TUN) || streq(name, DEVICE_HOST) || streq(name, DEVICE_VXLAN)) {
        char reason[64];
        snprintf(reason, sizeof reason, "the link %s is gone", name);
        if (x->in_place && !(if_nametoindex(DEVICE_TUN) && if_nametoindex(DEVICE_HOST) &&
                             if_nametoindex(DEVICE_VXLAN))) {
            ebpf_report(x, OUTBOX_LOST, reason);
            loop_timer_arm(x->retry, 0);
        }
        return;
    }
    if (!if_nametoindex(name)) {
        hook_forget(&x->hooks, name);
    }
    pthread_mutex_lock(&x->lock);
    struct member *m = members_find_link(x, name);
    /* The report may be late: another link may have the name by now. */
    if (m && m->ifindex && (int) if_nametoindex(name) != m->ifindex) {
        m->ifindex = m->inlet = 0;
        members_put(x, NULL);
        log_debug("link of a pod is gone", "pod=%s/%s link=%s", m->pod->pod_namespace,
                  m->pod->pod_name, name);
    }
    pthread_mutex_unlock(&x->lock);
}
