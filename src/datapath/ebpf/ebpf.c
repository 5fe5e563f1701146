/* SPDX-License-Identifier: Apache-2.0 */
/* The datapath "ebpf": docs/ebpf.md describes all of it.
 *
 *     network.c      the desired network
 *     members.c      the pods
 *     program.c      the programs and their maps in the kernel
 *     early.c        loads them while the agent still waits for the registry
 *     hook.c         programs at links
 *     reserve.c      takes their places while they are loaded
 *     tcx_upgrade.c  moves pods' links from clsact to tcx some time after ADD
 *     devices.c      tun0, its peer and the VXLAN device
 *     inlet.c        the link on which a limited pod's packets arrive
 *     upcall.c       packets to services that are idle
 *     paths.c        the paths to other nodes
 *     encode.c       network and pods as rows of the maps
 *     table.c        maps that follow the desired rows
 *     policy.c       network policy in the maps
 *     record.c       pods on file
 *     watch.c        flow events from the programs
 *     trace.c        the programs' verdict on an imagined packet
 *     show.c         the maps in words
 *
 * The desired network and pods are compared with the maps, and the difference is written;
 * nothing is removed first. All state belongs to the loop's thread, except for the pods and
 * their two maps, which workers that wire a pod share under 'lock'. */
#include "base/mem.h"
#include "datapath/ebpf/ebpf_priv.h"
#include "datapath/ebpf/settings.h"
#include "datapath/ebpf/show.h"
#include "datapath/ebpf/trace.h"
#include "sdn/policy.h"

/* ---- state from the agent ---- */

static void run(void *ctx)
{
    struct ebpf_dp *x = ctx;
    do {
        if (!outbox_deliver(&x->outbox)) {
            free(x);
            return;
        }
    } while (members_settle(x));
}

void ebpf_report(struct ebpf_dp *x, enum outbox_trouble t, const char *reason)
{
    x->in_place = false;
    loop_timer_arm(x->retry, EBPF_RETRY_MS);
    if (x->trouble != t) {
        x->trouble = t;
        outbox_add_trouble(&x->outbox, t, reason);
    }
}

static void ebpf_set_policy(struct datapath *dp, struct policy *p)
{
    policy_want_table(p, &policy_maps_ops, &ebpf_of(dp)->policy);
}

/* ---- looking ---- */

static void ebpf_get_status(struct datapath *dp, struct datapath_status *ret)
{
    struct ebpf_dp *x = ebpf_of(dp);
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
        .connections_ended = x->connections_ended,
        .refuses = true,
        .variant = !x->loaded        ? NULL
                   : x->features.tcx ? "ebpf/tcx"
                                     : "ebpf/clsact"};
}

static void ebpf_drops(struct datapath *dp, datapath_drops_fn *done, void *ctx)
{
    struct ebpf_dp *x = ebpf_of(dp);
    int error = x->loaded ? show_drops(x->program.drops, x->drops) : -EAGAIN;
    done(ctx, error, x->drops);
}

static void ebpf_rules(struct datapath *dp, const struct datapath_rules_ops *ops, void *ctx)
{
    ops->done(ctx, -EOPNOTSUPP,
              "the datapath ebpf has no OpenFlow flows; \"tenet node maps\" has its maps");
}

static void ebpf_trace(struct datapath *dp, const struct model_packet *p, datapath_trace_fn *done,
                       void *ctx)
{
    struct ebpf_dp *x = ebpf_of(dp);
    struct trace_steps *steps = NULL;
    struct dp_trace t = {0};
    struct err e = {0};
    struct model_packet asked = *p;
    asked.port = members_inlet(x, p->port);
    int r = x->loaded ? trace_packet(&x->program, &x->features, &x->net, &asked, &t, &steps, &e)
                      : err_set(&e, -EAGAIN, "the eBPF programs are not loaded yet");
    done(ctx, r, e.text, &t);
    trace_steps_free(steps);
}

static void on_watch_changed(void *ctx)
{
    struct ebpf_dp *x = ctx;
    struct err e = {0};
    if (network_put_settings(x, &e) < 0) {
        ebpf_report(x, OUTBOX_REFUSED, e.text);
    }
}

static int ebpf_watch(struct datapath *dp, datapath_events_fn *fn, void *ctx, struct err *e)
{
    struct ebpf_dp *x = ebpf_of(dp);
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
    int r = network_put_settings(x, e);
    if (r < 0 && x->watch) {
        x->watch_number = watch_free(TAKE(x->watch));
    }
    return r;
}

static int ebpf_maps(struct datapath *dp, const char *name, const char *after, size_t limit,
                     struct json **ret, struct err *e)
{
    struct ebpf_dp *x = ebpf_of(dp);
    const struct table *known[] = {&x->pods,  &x->pod_cache, &x->ports,    &x->routes,  &x->subnets,
                                   &x->vteps, &x->services,  &x->backends, &x->serving, NULL};
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
    int r = program_probe(datapath_get_setting(cfg, EBPF_WITHOUT), &f, e);
    r = r < 0 ? r : program_check_mount(bpffs, e);
    r = r < 0 ? r : devices_check(n, e);
    return r < 0 ? err_prefix(e, "networkConfig.datapath: ebpf") : 0;
}

/* No network is set before this. */
static void on_loaded(void *ctx)
{
    struct ebpf_dp *x = ctx;
    x->outbox.inventory = true;
    loop_task_queue(&x->task);
}

static void ebpf_close(struct datapath *dp)
{
    struct ebpf_dp *x = ebpf_of(dp);
    ebpf_watch(dp, NULL, NULL, NULL);
    loop_task_cancel(&x->task);
    loop_timer_free(x->retry);
    loop_task_cancel(&x->policy_task);
    loop_task_cancel(&x->services_task);
    loop_timer_free(x->sweep);
    loop_timer_free(x->lend);
    paths_free(x->paths);
    policy_maps_done(&x->policy);
    firewall_maps_done(&x->firewalls);
    early_free(x->early);
    reserve_free(x->reserve, false);
    tcx_upgrade_free(x->upgrade);
    for (size_t i = 0; i < x->n_members; i++) {
        dp_pod_free(x->members[i].pod);
    }
    free(x->members);
    free(x->view);
    upcall_free(x->upcalls);
    table_done(&x->routes);
    table_done(&x->subnets);
    table_done(&x->vteps);
    table_done(&x->services);
    table_done(&x->backends);
    table_done(&x->serving);
    table_done(&x->pods);
    table_done(&x->pod_cache);
    table_done(&x->ports);
    if (x->loaded) {
        program_done(&x->program);
    }
    pthread_mutex_destroy(&x->lock);
    free(x->net.remotes);
    free(x->bpffs);
    free(x->maps);
    free(x->hooks_dir);
    free(x->node_name);
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
    x->node_name = xstrdup(cfg->node_name);
    loop_task_init(&x->task, l, run, x);
    loop_task_init(&x->services_task, l, network_put_services, x);
    outbox_init(&x->outbox, &x->task, &x->events, ctx);
    x->retry = loop_timer_new(l, network_retry, x);
    policy_maps_init(&x->policy, network_policy_changed, x);
    firewall_maps_init(&x->firewalls);
    loop_task_init(&x->policy_task, l, network_put_policy, x);
    x->sweep = loop_timer_new(l, network_sweep, x);
    loop_timer_arm(x->sweep, EBPF_SWEEP_MS);
    x->lend = loop_timer_new(l, network_lend, x);
    int r = members_read(x, e);
    if (r < 0) {
        ebpf_close(&x->dp);
        return r;
    }
    if (cfg->expected) {
        network_expect(x, cfg->expected);
    }
    *ret = &x->dp;
    return 0;
}

static int ebpf_make_mounts(const struct datapath_config *cfg, struct err *e)
{
    CLEANUP_FREE char *bpffs = bpffs_of(cfg);
    int r = program_check_mount(bpffs, e);
    return r < 0 ? r : program_mount(bpffs, e);
}

const struct datapath_ops datapath_ebpf = {
    .kind = "ebpf",
    .words = {.title = "the datapath",
              .lost_reason = "DatapathGone",
              .refused_reason = "DatapathRefused",
              .vxlan_link = DEVICE_VXLAN},
    .settings = ebpf_settings,
    .check = ebpf_check,
    .prepare = ebpf_prepare,
    .make_mounts = ebpf_make_mounts,
    .open = ebpf_open,
    .close = ebpf_close,
    .set_network = ebpf_set_network,
    .set_vnids = ebpf_set_vnids,
    .set_policy = ebpf_set_policy,
    .set_firewall = ebpf_set_firewall,
    .change_service = ebpf_change_service,
    .settle_services = ebpf_settle_services,
    .release = ebpf_release,
    .attach = ebpf_attach,
    .detach = ebpf_detach,
    .set_runtime = ebpf_set_runtime,
    .pods = ebpf_pods,
    .wire = ebpf_wire,
    .unlimit = ebpf_unlimit,
    .check_wire = ebpf_check_wire,
    .link_gone = ebpf_link_gone,
    .get_status = ebpf_get_status,
    .explain = {.drops = ebpf_drops,
                .rules = ebpf_rules,
                .trace = ebpf_trace,
                .watch = ebpf_watch,
                .maps = ebpf_maps},
};
