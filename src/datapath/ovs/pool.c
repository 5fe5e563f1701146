/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ovs/pool.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "datapath/ovs/ovs.h"
#include "net/netns.h"
#include "net/process.h"
#include "net/redirect.h"
#include "net/shape.h"

#include <fcntl.h>
#include <stdio.h>

LOG_MODULE("ovs");

/* A switch in user space asks each port in turn whether something came, so spare ones cost others' packets time. */
struct limits {
    size_t low;  /* With fewer free ports more are made ... */
    size_t high; /* ... up to so many. */
    size_t keep; /* Of more than this, some go again. */
};
static const struct limits in_kernel = {8, 24, 64}, in_user_space = {2, 4, 6};

#define STEP 4   /* So many are made at once, as ovs-vswitchd does nothing else meanwhile, ... */
#define BURST 16 /* ... but so many while pods wait. */
#define SHRINK_MS 1000 /* Time between two that go, ... */
#define QUIET_MS 30000 /* ... when no pod has come or gone for so long. */
/* A port does not get the address again that it just had, if another is free: Open vSwitch may remember for a
 * moment what the two of them were allowed. */
#define AGAIN_MS 10000
#define LATE_MS 5000 /* A port without a number by then is looked at again. */
#define RETRY_MIN_MS 100
#define RETRY_MAX_MS 10000

enum state {
    UNCHECKED, /* Is there a device? */
    CHECKING,  /* The job has it. */
    CHECKED,   /* Open vSwitch has to give it a number. */
    FREE,
    USED,
};

struct pool_port {
    struct hmap_node node;
    struct list free; /* When FREE. */
    char name[16];
    enum state state;
    bool listed;      /* There is a row. */
    uint32_t number;  /* That it should have. */
    uint32_t last_ip; /* Of the pod that had it last ... */
    uint64_t given_back_ms;
    uint64_t generation; /* ... and whose flows are gone as of this. */
    uint64_t checked_ms;
};

struct pool_job {
    struct ovs_dp *o; /* NULL: was closed. */
    int netns_fd;
    bool userspace_switch;
    uint32_t mtu;
    size_t n;
    struct pool_device {
        char name[16];
        bool unwanted; /* Remove it, rather. */
        bool made;     /* It was not there. */
        int result;
        struct err error;
    } devices[BURST];
};

static bool switch_is_in_user_space(const struct ovs_dp *o)
{
    const struct row_bridge *b = db_rows(o->db)->bridge;
    return b && streq_null(b->datapath_type, "netdev");
}

static const struct limits *limits_of(const struct ovs_dp *o)
{
    return switch_is_in_user_space(o) ? &in_user_space : &in_kernel;
}

static struct pool_port *find(const struct ovs_dp *o, const char *name)
{
    struct pool_port *p;
    HMAP_FOREACH_WITH_HASH (p, struct pool_port, node, hash_string(name), &o->pool.ports) {
        if (streq(p->name, name)) {
            return p;
        }
    }
    return NULL;
}

static struct pool_port *add(struct ovs_dp *o, const char *name, enum state state)
{
    struct pool_port *p = NEW(struct pool_port);
    snprintf(p->name, sizeof p->name, "%s", name);
    p->state = state;
    hmap_insert(&o->pool.ports, &p->node, hash_string(name));
    return p;
}

static void set_state(struct ovs_dp *o, struct pool_port *p, enum state state)
{
    if (p->state == FREE) {
        list_remove(&p->free);
        o->pool.n_free--;
    }
    if (state == FREE) {
        list_push_back(&o->pool.free, &p->free);
        o->pool.n_free++;
    }
    p->state = state;
}

static void drop(struct ovs_dp *o, struct pool_port *p)
{
    set_state(o, p, UNCHECKED);
    hmap_remove(&o->pool.ports, &p->node);
    free(p);
}

void pool_init(struct ovs_dp *o)
{
    hmap_init(&o->pool.ports);
    list_init(&o->pool.free);
    o->pool.quiet_ms = QUIET_MS;
    o->pool.netns_fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
}

void pool_done(struct ovs_dp *o)
{
    struct pool_port *p;
    HMAP_FOREACH (p, struct pool_port, node, &o->pool.ports) {
        drop(o, p);
    }
    hmap_done(&o->pool.ports);
    if (o->pool.job) {
        o->pool.job->o = NULL; /* It needs the namespace yet. */
    } else {
        fd_close(o->pool.netns_fd);
    }
}

bool pool_is_settled(const struct ovs_dp *o)
{
    const struct pool_port *p;
    HMAP_FOREACH (p, struct pool_port, node, &o->pool.ports) {
        if (p->state < FREE) {
            return false;
        }
    }
    return o->pool.n_free && !o->pool.filling && !o->pool.job && !o->pool.inserting;
}

bool pool_number_is_used(const struct ovs_dp *o, uint32_t number)
{
    const struct pool_port *p;
    HMAP_FOREACH (p, struct pool_port, node, &o->pool.ports) {
        if (p->number == number) {
            return true;
        }
    }
    return false;
}

void pool_adopt(struct ovs_dp *o)
{
    struct pool_port *p;
    HMAP_FOREACH (p, struct pool_port, node, &o->pool.ports) {
        const struct row_iface *i = ovs_rows_iface(db_rows(o->db), p->name);
        bool listed = i && i->port && i->pooled;
        if (!listed && p->listed && p->state != USED && p->state != CHECKING) {
            drop(o, p); /* Somebody deleted it. */
        } else {
            p->listed = listed;
        }
    }
    const struct row_iface *i;
    HMAP_FOREACH (i, struct row_iface, node, &db_rows(o->db)->ifaces) {
        if (i->port && i->pooled && !i->removing && strlen(i->name) < sizeof p->name &&
            !find(o, i->name)) {
            p = add(o, i->name, i->pod ? USED : UNCHECKED);
            p->listed = true;
            p->number = (uint32_t) MAX(0, i->ofport_request ? i->ofport_request : i->ofport);
        }
    }
}

/* ---- devices ---- */

/* The host has no business with what passes: neither its IPv6, nor (with a switch in user space, which sees
 * frames beside the host's stack, not before it) anything else. */
static int silence(struct rtnl *r, const struct rtnl_link *l, bool userspace_switch, struct err *e)
{
    char path[64];
    snprintf(path, sizeof path, "net/ipv6/conf/%s/disable_ipv6", l->name);
    int k = sysctl_set(path, "1", e);
    if (k == -ENOENT) {
        k = 0; /* A kernel without it. */
    }
    return k == 0 && userspace_switch ? redirect_drop_received(r, l->ifindex, e) : k;
}

/* A port is a pair of links, of which the switch has one. */
static void other_end(const char *port, char ret[IF_NAMESIZE])
{
    snprintf(ret, IF_NAMESIZE, "%.14sx", port);
}

static int ensure_device(struct rtnl *r, const struct pool_job *job, const char *name,
                         bool *ret_made, struct err *e)
{
    char peer[IF_NAMESIZE];
    struct rtnl_link l, other;
    other_end(name, peer);
    struct rtnl_veth v = {.name = name, .peer_name = peer, .peer_ns_fd = -1, .mtu = job->mtu};
    int k = rtnl_link_get(r, name, &l, NULL);
    if (k == -ENODEV) {
        k = rtnl_veth_add(r, &v, e);
        *ret_made = k == 0;
        k = k < 0 ? k : rtnl_link_get(r, name, &l, e);
    } else if (k == 0 && !streq(l.kind, "veth")) {
        k = err_set(e, -EEXIST, "link %s exists already and is not ours", name);
    } else if (k == 0 && (l.flags & IFF_UP)) {
        return 0; /* That comes last. */
    }
    k = k < 0 ? k : rtnl_link_get(r, peer, &other, e);
    k = k < 0 ? k : silence(r, &other, false, e);
    k = k < 0 ? k : silence(r, &l, job->userspace_switch, e);
    for (int i = 0; i < 2 && k == 0; i++) {
        struct rtnl_link_set up = RTNL_LINK_SET_INIT(i ? name : peer);
        up.up = 1;
        k = rtnl_link_set(r, &up, e);
    }
    return k;
}

static void job_work(void *ctx)
{
    struct pool_job *job = ctx;
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    struct err e = {0};
    int back = -1;
    int k = netns_enter(job->netns_fd, &back, &e);
    k = k < 0 ? k : rtnl_open(&r, &e);
    for (size_t i = 0; i < job->n; i++) {
        struct pool_device *d = &job->devices[i];
        if (k < 0) {
            d->result = k;
            d->error = e;
        } else if (d->unwanted) {
            d->result = rtnl_link_del(r, d->name, &d->error);
        } else {
            d->result = ensure_device(r, job, d->name, &d->made, &d->error);
        }
    }
    if (back >= 0) {
        netns_leave(back);
    }
}

static void on_removed(void *ctx, int r, size_t failed, const struct ovsdb_msg *reply,
                       const struct err *e)
{
    struct ovs_dp *o = ctx;
    loop_task_queue(&o->pump);
}

/* Takes a port out of the bridge; its number may be used again. */
static void remove_row(struct ovs_dp *o, struct pool_port *p)
{
    struct row_iface *i = ovs_rows_iface(db_rows(o->db), p->name);
    struct json *ops = json_array();
    json_append(ops, plan_remove_port(db_rows(o->db), i->port));
    i->removing = true;
    ovs_transact(o, ops, on_removed, o);
    drop(o, p);
}

static void retry_later(struct ovs_dp *o)
{
    o->pool.retry_ms = ovs_now(o) + time_backoff_ms(o->pool.attempts++, RETRY_MIN_MS, RETRY_MAX_MS,
                                                    (uint32_t) time_mono_ns());
}

static void job_done(void *ctx)
{
    static struct log_limit limit;
    struct pool_job *job = ctx;
    struct ovs_dp *o = job->o;
    if (!o) {
        fd_close(job->netns_fd);
        free(job);
        return;
    }
    bool failed = false;
    for (size_t i = 0; i < job->n; i++) {
        const struct pool_device *d = &job->devices[i];
        struct pool_port *p = find(o, d->name);
        if (d->result < 0) {
            failed = true;
            log_limited(&limit, LOG_ERROR, "no device for a port", "port=%s reason=\"%s\"", d->name,
                        d->error.text);
        }
        if (!p) {
            continue;
        }
        p->checked_ms = ovs_now(o);
        const struct row_iface *row = ovs_rows_iface(db_rows(o->db), p->name);
        if (d->result == 0 && d->made && row && row->port && row->ofport > 0) {
            remove_row(o, p); /* Open vSwitch holds on to the device that was there before. */
        } else if (d->result == 0) {
            set_state(o, p, CHECKED);
        } else if (p->listed) {
            set_state(o, p, UNCHECKED);
        } else {
            drop(o, p);
        }
    }
    if (failed) {
        retry_later(o);
    } else {
        o->pool.attempts = 0;
    }
    o->pool.job = NULL;
    free(job);
    loop_task_queue(&o->pump);
}

static struct pool_job *job_of(struct ovs_dp *o)
{
    if (!o->pool.job) {
        o->pool.job = NEW(struct pool_job);
        o->pool.job->o = o;
        o->pool.job->netns_fd = o->pool.netns_fd;
        o->pool.job->userspace_switch = switch_is_in_user_space(o);
        o->pool.job->mtu = o->net.mtu;
    }
    return o->pool.job;
}

static void job_add(struct ovs_dp *o, const char *name, bool unwanted)
{
    struct pool_job *job = job_of(o);
    struct pool_device *d = &job->devices[job->n++];
    snprintf(d->name, sizeof d->name, "%s", name);
    d->unwanted = unwanted;
}

/* ---- rows ---- */

static void on_inserted(void *ctx, int r, size_t failed, const struct ovsdb_msg *reply,
                        const struct err *e)
{
    static struct log_limit limit;
    struct ovs_dp *o = ctx;
    o->pool.inserting = false;
    if (r < 0) {
        log_limited(&limit, LOG_ERROR, "ports could not be added", "reason=\"%s\"", e->text);
        struct pool_port *p;
        HMAP_FOREACH (p, struct pool_port, node, &o->pool.ports) {
            if (p->state == CHECKED && !p->listed) {
                drop(o, p); /* Its device is found again when its number is used next. */
            }
        }
        retry_later(o);
    }
    loop_task_queue(&o->pump);
}

static void insert_rows(struct ovs_dp *o)
{
    struct json *ops = NULL;
    unsigned serial = 0;
    struct pool_port *p;
    HMAP_FOREACH (p, struct pool_port, node, &o->pool.ports) {
        if (p->state != CHECKED || p->listed) {
            continue;
        }
        ops = ops ? ops : json_array();
        struct json *row = json_object();
        json_set(row, "external_ids", ovsdb_map_add(ovsdb_map(), POD_POOL_KEY, "true"));
        json_set_int(row, "ofport_request", p->number);
        plan_add_port(ops, p->name, serial, row);
        json_append(ops, ovsdb_mutate("Bridge", ovsdb_where_uuid(db_rows(o->db)->bridge->uuid),
                                      "ports", "insert", plan_port_ref(serial++)));
    }
    if (ops) {
        o->pool.inserting = true;
        ovs_transact(o, ops, on_inserted, o);
    }
}

/* Takes one port that has long been free out of the bridge; its device follows. */
static void shrink(struct ovs_dp *o)
{
    uint64_t due = o->pool.used_ms + o->pool.quiet_ms;
    if (o->pool.n_free <= limits_of(o)->keep || o->pool.job || o->pool.inserting) {
        return;
    }
    due = MAX(due, o->pool.retry_ms);
    if (due > ovs_now(o)) {
        ovs_wake_at(o, due);
        return;
    }
    struct pool_port *p = CONTAINER_OF(list_pop_front(&o->pool.free), struct pool_port, free);
    list_push_front(&o->pool.free, &p->free);
    o->pool.retry_ms = ovs_now(o) + SHRINK_MS;
    job_add(o, p->name, true);
    remove_row(o, p);
    loop_work(o->loop, job_work, job_done, o->pool.job);
}

/* ---- the step ---- */

/* Follows what Open vSwitch says of each. */
static void sort_ports(struct ovs_dp *o)
{
    static struct log_limit limit;
    struct pool_port *p;
    HMAP_FOREACH (p, struct pool_port, node, &o->pool.ports) {
        const struct row_iface *i = ovs_rows_iface(db_rows(o->db), p->name);
        bool works = i && i->port && i->ofport > 0;
        if (p->state == FREE && !works) {
            set_state(o, p, UNCHECKED);
        } else if (p->state == CHECKED && works && !i->pod && !i->removing &&
                   flow_table_in_place(&o->flows, p->generation)) {
            p->number = (uint32_t) i->ofport;
            set_state(o, p, FREE);
        } else if (p->state == CHECKED && i && !works) {
            if (ovs_now(o) < p->checked_ms + LATE_MS) {
                ovs_wake_at(o, p->checked_ms + LATE_MS);
            } else {
                log_limited(&limit, LOG_WARN, "Open vSwitch does not connect a spare port",
                            "port=%s reason=\"%s\"", p->name, i->error ? i->error : "not said");
                set_state(o, p, UNCHECKED);
                retry_later(o);
            }
        }
    }
}

static void check_devices(struct ovs_dp *o, size_t waiting)
{
    struct pool_port *p;
    HMAP_FOREACH (p, struct pool_port, node, &o->pool.ports) {
        if (p->state == UNCHECKED && job_of(o)->n < BURST) {
            set_state(o, p, CHECKING);
            job_add(o, p->name, false);
        }
    }
    size_t n = o->pool.n_free; /* With those to come. */
    HMAP_FOREACH (p, struct pool_port, node, &o->pool.ports) {
        n += p->state < FREE;
    }
    const struct limits *l = limits_of(o);
    o->pool.filling = n < (o->pool.filling ? l->high : l->low) + waiting;
    if (o->pool.filling) {
        size_t more = MIN(l->high + waiting - n, waiting ? (size_t) BURST : (size_t) STEP);
        for (size_t k = 0; k < more && job_of(o)->n < BURST; k++) {
            uint32_t number = pods_take_number(o);
            if (!number) {
                break;
            }
            char name[16];
            snprintf(name, sizeof name, "tp%u", number);
            if (!ovs_rows_iface(db_rows(o->db), name)) { /* Else it is somebody else's. */
                add(o, name, CHECKING)->number = number;
                job_add(o, name, false);
            }
        }
    }
    struct pool_job *job = o->pool.job;
    if (job && job->n) {
        loop_work(o->loop, job_work, job_done, job);
    } else {
        o->pool.job = NULL;
        free(job);
    }
}

void pool_step(struct ovs_dp *o, size_t waiting)
{
    sort_ports(o);
    if (waiting && o->pool.n_free) {
        loop_task_queue(&o->pump); /* They were asked before. */
    }
    if (setup_obstacle(o)) {
        return; /* The bridge comes first. */
    }
    if (o->pool.retry_ms > ovs_now(o)) {
        ovs_wake_at(o, o->pool.retry_ms);
    } else {
        if (!o->pool.job) {
            check_devices(o, waiting);
        }
        if (!o->pool.inserting) {
            insert_rows(o);
        }
    }
    shrink(o);
}

/* ---- use ---- */

const char *pool_take(struct ovs_dp *o, uint32_t ip)
{
    struct pool_port *p, *best = NULL;
    LIST_FOREACH (p, struct pool_port, free, &o->pool.free) {
        bool again = p->last_ip == ip && ovs_now(o) < p->given_back_ms + AGAIN_MS;
        best = best && again ? best : p; /* The first, when all had it. */
        if (!again) {
            break;
        }
    }
    if (!best) {
        return NULL;
    }
    o->pool.used_ms = ovs_now(o);
    set_state(o, best, USED);
    return best->name;
}

void pool_put(struct ovs_dp *o, const char *name, uint32_t ip, uint64_t generation)
{
    struct pool_port *p = find(o, name);
    if (p) {
        o->pool.used_ms = p->given_back_ms = ovs_now(o);
        p->last_ip = ip;
        p->generation = generation;
        set_state(o, p, UNCHECKED);
        loop_task_queue(&o->pump);
    }
}

void pool_link_gone(struct ovs_dp *o, const char *name)
{
    struct pool_port *p = find(o, name);
    if (p && p->state == FREE) {
        set_state(o, p, UNCHECKED);
        loop_task_queue(&o->pump);
    } else if (p && p->state == USED) {
        log_warn("the device of a pod's port is gone, the pod is cut off until it is attached anew",
                 "port=%s", name);
    }
}

/* ---- wires ---- */

/* The links of a wire. */
struct wire_links {
    struct rtnl_link link;  /* Of the pod. */
    struct rtnl_link port;  /* Of the switch; */
    struct rtnl_link other; /* what this one sends, the switch receives. */
};

static int links_of(struct rtnl *r, const struct dp_wire *w, struct wire_links *ret, struct err *e)
{
    char other[IF_NAMESIZE];
    other_end(w->port, other);
    int k = rtnl_link_get(r, w->host_if, &ret->link, e);
    k = k < 0 ? k : rtnl_link_get(r, w->port, &ret->port, e);
    return k == 0 && w->limits.from_pod ? rtnl_link_get(r, other, &ret->other, e) : k;
}

/* A plug-in that limits what the pod sends takes the ingress qdisc of the pod's link for itself, and gives the frames
 * back to the link's master.  That is a bridge of this one link, then, which takes everything for its own: what it
 * receives goes to the port. */
static void bridge_of(const char *host_if, char ret[IF_NAMESIZE])
{
    snprintf(ret, IF_NAMESIZE, POOL_BRIDGE "%.8s", host_if + MIN(strlen(host_if), 4));
}

static int silence_bridge(struct rtnl *r, struct rtnl_link *bridge, struct err *e)
{
    struct rtnl_link_set up = RTNL_LINK_SET_INIT(bridge->name);
    up.up = 1;
    up.promisc = true;
    int k = silence(r, bridge, false, e);
    return k < 0 ? k : rtnl_link_set(r, &up, e);
}

/* The hook is on the bridge before the link is. */
static int wire_by_bridge(struct rtnl *r, const struct dp_wire *w, const struct wire_links *l,
                          struct err *e)
{
    char name[IF_NAMESIZE];
    struct rtnl_link bridge;
    bridge_of(w->host_if, name);
    int k = rtnl_bridge_add(r, name, e);
    k = k < 0 ? k : rtnl_link_get(r, name, &bridge, e);
    if (k == 0) {
        struct redirect in = {
            .ifindex = bridge.ifindex, .hook = REDIRECT_INGRESS, .to = l->port.ifindex};
        k = redirect_set(r, &in, e);
    }
    k = k < 0 ? k : silence_bridge(r, &bridge, e);
    if (k == 0) {
        struct rtnl_link_set master = RTNL_LINK_SET_INIT(w->host_if);
        master.master = bridge.ifindex;
        k = rtnl_link_set(r, &master, e);
    }
    return k < 0 ? k : redirect_clear(r, l->link.ifindex, e);
}

static int check_bridge(struct rtnl *r, const struct dp_wire *w, const struct wire_links *l,
                        struct err *e)
{
    char name[IF_NAMESIZE];
    struct rtnl_link bridge;
    bridge_of(w->host_if, name);
    int k = rtnl_link_get(r, name, &bridge, e);
    if (k == 0 && (l->link.master != bridge.ifindex || !(bridge.flags & IFF_UP))) {
        k = err_set(e, -ENOENT, "%s is not in bridge %s, or that is down", w->host_if, name);
    }
    struct redirect in = {
        .ifindex = bridge.ifindex, .hook = REDIRECT_INGRESS, .to = l->port.ifindex};
    return k < 0 ? k : redirect_check(r, &in, e);
}

/* What the pod sends.  With a limit it waits in a queue on its way, which only links that send have. */
static struct redirect inwards(const struct dp_wire *w, const struct wire_links *l)
{
    bool limited = w->limits.from_pod;
    return (struct redirect){.ifindex = l->link.ifindex,
                             .hook = REDIRECT_INGRESS,
                             .to = limited ? l->other.ifindex : l->port.ifindex,
                             .send = limited};
}

static struct redirect outwards(const struct dp_wire *w, const struct wire_links *l)
{
    return (struct redirect){.ifindex = l->port.ifindex,
                             .hook = REDIRECT_EGRESS,
                             .to = l->link.ifindex,
                             .destination = &w->mac};
}

static struct shape to_pod(const struct dp_wire *w)
{
    return (struct shape){.rate = w->limits.to_pod, .burst = w->limits.to_pod_burst};
}

static struct shape from_pod(const struct dp_wire *w)
{
    return (struct shape){.rate = w->limits.from_pod, .burst = w->limits.from_pod_burst};
}

static int limit(struct rtnl *r, const struct dp_wire *w, const struct wire_links *l, struct err *e)
{
    struct shape to = to_pod(w), from = from_pod(w);
    int k = to.rate ? shape_set(r, l->link.ifindex, &to, e) : 0;
    return k == 0 && from.rate ? shape_set(r, l->other.ifindex, &from, e) : k;
}

int pool_wire(struct datapath *dp, const struct dp_wire *w, struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    struct wire_links l;
    int k = rtnl_open(&r, e);
    k = k < 0 ? k : links_of(r, w, &l, e);
    if (k == 0 && l.port.mtu != w->mtu) {
        struct rtnl_link_set mtu = RTNL_LINK_SET_INIT(w->port);
        mtu.mtu = w->mtu;
        k = rtnl_link_set(r, &mtu, e);
    }
    k = k < 0 ? k : limit(r, w, &l, e);
    if (k == 0 && w->limits.elsewhere) {
        k = wire_by_bridge(r, w, &l, e);
    } else if (k == 0) {
        struct redirect in = inwards(w, &l);
        k = redirect_set(r, &in, e);
    }
    if (k == 0) {
        struct redirect out = outwards(w, &l);
        k = redirect_set(r, &out, e);
    }
    return k < 0 ? err_prefix(e, "wire %s to port %s", w->host_if, w->port) : 0;
}

int pool_unlimit(struct datapath *dp, const struct dp_wire *w, struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    char name[IF_NAMESIZE];
    struct rtnl_link other;
    int k = rtnl_open(&r, e);
    if (k == 0 && w->limits.elsewhere) {
        bridge_of(w->host_if, name);
        return rtnl_link_del(r, name, e);
    }
    other_end(w->port, name);
    k = k < 0 ? k : rtnl_link_get(r, name, &other, e);
    return k == 0 ? shape_clear(r, other.ifindex, e) : k == -ENODEV ? 0 : k;
}

static int check_limits(struct rtnl *r, const struct dp_wire *w, const struct wire_links *l,
                        struct err *e)
{
    struct shape to = to_pod(w), from = from_pod(w);
    int k = to.rate ? shape_check(r, l->link.ifindex, &to, e) : 0;
    return k == 0 && from.rate ? shape_check(r, l->other.ifindex, &from, e) : k;
}

int pool_check_wire(struct datapath *dp, const struct dp_wire *w, struct err *e)
{
    if (streq(w->host_if, w->port)) {
        return 0; /* An earlier version's: the link itself is the port. */
    }
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    struct wire_links l;
    int k = rtnl_open(&r, e);
    k = k < 0 ? k : links_of(r, w, &l, e);
    if (k == 0 && !(l.port.flags & IFF_UP)) {
        k = err_set(e, -ENOENT, "port %s is down", w->port);
    }
    if (k == 0 && w->limits.elsewhere) {
        k = check_bridge(r, w, &l, e);
    } else if (k == 0) {
        struct redirect in = inwards(w, &l);
        k = redirect_check(r, &in, e);
    }
    if (k == 0) {
        struct redirect out = outwards(w, &l);
        k = redirect_check(r, &out, e);
    }
    k = k < 0 ? k : check_limits(r, w, &l, e);
    return k < 0 ? err_prefix(e, "wire %s to port %s", w->host_if, w->port) : 0;
}
