/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ovs/pool.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "datapath/ovs/ovs.h"
#include "net/kernel/netns.h"
#include "net/kernel/redirect.h"
#include "net/loop/process.h"

#include <fcntl.h>
#include <stdio.h>

LOG_MODULE("ovs");

/* A switch in user space polls each port in turn, so spare ports cost packets of other ports
 * time. */
struct limits {
    size_t low;  /* With fewer free ports, more are made. */
    size_t high; /* Ports are made up to this number of free ones. */
    size_t keep; /* With more free ports than this, some are removed. */
};
static const struct limits in_kernel = {8, 24, 64}, in_user_space = {2, 4, 6};

#define STEP 4         /* Ports made at once, because ovs-vswitchd does nothing else meanwhile. */
#define BURST 16       /* Ports made at once while pods wait. */
#define SHRINK_MS 1000 /* Interval between two removals. */
#define QUIET_MS 30000 /* Removals begin when there was no ADD or DEL for this long. */
/* A port does not get its last address again if another port is free: Open vSwitch may for a moment
 * remember flows of this port with this address. */
#define AGAIN_MS 10000
#define LATE_MS 5000 /* A port without a number after this time is checked again. */
#define RETRY_MIN_MS 100
#define RETRY_MAX_MS 10000

enum state {
    /* Up to CHECKED no pod can have the port yet. */
    UNCHECKED, /* It is not known whether the device exists. */
    CHECKING,  /* The worker's job checks the device. */
    BUSY,      /* The link of the port's last pod is being deleted. */
    CHECKED,   /* The device exists; Open vSwitch has to assign the number. */
    FREE,      /* A pod can have it. */
    USED,      /* A pod has it. */
};

struct pool_port {
    struct hmap_node node;
    struct list free; /* In pool.free while the state is FREE. */
    char name[16];
    enum state state;
    bool listed;      /* The database has a row. */
    uint32_t number;  /* The port number that the row requests. */
    uint32_t last_ip; /* The address of the last pod. */
    uint64_t given_back_ms;
    uint64_t generation; /* The flows of the last pod are gone as of this generation. */
    uint64_t checked_ms; /* When the worker reported the device. */
    bool freed;          /* CHECKING: the last pod's link was deleted meanwhile. */
    bool reclaim;        /* The link of an unknown pod stays on the peer: make the device anew. */
};

struct pool_job {
    struct ovs_dp *o; /* NULL: the datapath was closed. */
    int netns_fd;
    int port_peers_fd; /* Owned; -1: the peers are in the same namespace. */
    bool userspace_switch;
    uint32_t mtu;
    size_t n;
    struct pool_device {
        char name[16];
        bool unwanted; /* Remove the device instead. */
        bool reclaim;  /* If a pod's link is on the device, make the device anew. */
        bool made;     /* The device did not exist. */
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
    o->pool.retry = BACKOFF_INIT(RETRY_MIN_MS, RETRY_MAX_MS);
    o->pool.netns_fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
}

/* Callback: no pod's link is on the peer 'name' any more. */
static void on_end_free(void *ctx, const char *name)
{
    struct ovs_dp *o = ctx;
    char port[IF_NAMESIZE];
    snprintf(port, sizeof port, "%.*s", (int) strlen(name) - 1, name);
    struct pool_port *p = find(o, port);
    if (p && p->state == BUSY) {
        set_state(o, p, UNCHECKED);
        loop_task_queue(&o->pump);
    } else if (p) {
        p->freed = true;
    }
    if (o->events.link_gone) {
        o->events.link_gone(o->ctx, name);
    }
}

void pool_open_ends(struct ovs_dp *o, const char *run_dir)
{
    struct err e = {0};
    if (run_dir && port_peers_open(o->loop, run_dir, on_end_free, o, &o->pool.ends, &e) < 0) {
        log_warn("pods get pairs of links, which takes longer", "reason=\"%s\"", e.text);
    }
}

void pool_done(struct ovs_dp *o)
{
    struct pool_port *p;
    HMAP_FOREACH (p, struct pool_port, node, &o->pool.ports) {
        drop(o, p);
    }
    hmap_done(&o->pool.ports);
    o->pool.ends = port_peers_close(o->pool.ends);
    if (o->pool.job) {
        o->pool.job->o = NULL; /* The job needs the namespace until it ends. */
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
            drop(o, p); /* Another program deleted the device. */
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

static int bring_up(struct rtnl *r, const char *name, const struct mac *mac, struct err *e)
{
    struct rtnl_link_set up = RTNL_LINK_SET_INIT(name);
    up.up = 1;
    up.mac = mac;
    return rtnl_link_set(r, &up, e);
}

static int switch_offload_off(int ns_fd, const char *name, struct err *e)
{
    int back;
    int k = netns_enter(ns_fd, &back, e);
    if (k == 0) {
        k = ethtool_tx_checksum(name, false, e);
        netns_leave(back);
    }
    return k;
}

/* Makes the peer of a port in its namespace ready for a pod, whose link gets the offloads of the
 * peer. */
static int prepare_end(struct rtnl *r, const struct pool_job *job, const char *name, struct err *e)
{
    struct mac own = port_peers_mac(name);
    struct rtnl_link l;
    int k = rtnl_link_get(r, name, &l, e);
    k = k < 0 ? k : redirect_accept_own(r, l.ifindex, e);
    if (k == 0 && job->userspace_switch) {
        k = switch_offload_off(job->port_peers_fd, name, e);
    }
    return k < 0 ? k : bring_up(r, name, &own, e);
}

static int add_device(struct rtnl *r, const struct pool_job *job, const char *name, const char *end,
                      struct err *e)
{
    struct rtnl_veth v = {
        .name = name, .peer_name = end, .peer_ns_fd = job->port_peers_fd, .mtu = job->mtu};
    return rtnl_veth_add(r, &v, e);
}

/* Finds the peer of a port in the namespace of 'ends'. A peer that an earlier version made in the
 * host's namespace is moved there. -EBUSY: a pod's link is on it; -ENODEV: there is none. */
static int find_end(struct rtnl *r, struct rtnl *ends, const struct pool_job *job, const char *name,
                    bool *ret_moved, struct err *e)
{
    struct rtnl_link l;
    int k = rtnl_link_get(ends, name, &l, e);
    if (k == 0 && !mac_equal(l.mac, port_peers_mac(name)) && (l.flags & IFF_UP)) {
        return err_set(e, -EBUSY, "a pod is on link %s yet", name);
    }
    if (k == -ENODEV && rtnl_link_get(r, name, &l, NULL) == 0) {
        struct rtnl_link_set move = RTNL_LINK_SET_INIT(name);
        move.ns_fd = job->port_peers_fd;
        *ret_moved = true;
        k = rtnl_link_set(r, &move, e);
    }
    return k;
}

/* Removes the redirection to the veth pair of the port's last pod, which had one of its own. */
static void forget_pair(struct rtnl *r, const struct rtnl_link *port)
{
    redirect_detach(r, port->ifindex, REDIRECT_EGRESS, REDIRECT_ALONE);
}

/* The switch's end is brought up last, when the rest is configured. */
static int ensure_device(struct rtnl *r, struct rtnl *ends, const struct pool_job *job,
                         struct pool_device *d, struct err *e)
{
    const char *name = d->name;
    char end[IF_NAMESIZE];
    struct rtnl_link l;
    bool moved = false;
    port_peers_name(name, end);
    int k = rtnl_link_get(r, name, &l, NULL);
    if (k == 0 && !streq(l.kind, "veth")) {
        return err_set(e, -EEXIST, "link %s exists already and is not ours", name);
    }
    if (k == 0 && ends) {
        k = find_end(r, ends, job, end, &moved, e);
        if (k == -ENODEV || (k == -EBUSY && d->reclaim)) {
            /* The peer is in an unknown namespace, or has an unknown pod's link. */
            k = rtnl_link_del(r, name, e);
            k = k < 0 ? k : -ENODEV;
        }
    }
    if (k == 0 && (l.flags & IFF_UP) && !moved) {
        if (ends) {
            forget_pair(r, &l);
        }
        return 0;
    }
    if (k == -ENODEV) {
        k = add_device(r, job, name, end, e);
        d->made = k == 0;
        k = k < 0 ? k : rtnl_link_get(r, name, &l, e);
    }
    if (k == 0 && ends) {
        k = prepare_end(ends, job, end, e);
        forget_pair(r, &l);
    } else if (k == 0) {
        k = sysctl_silence(end, e);
        k = k < 0 ? k : bring_up(r, end, NULL, e);
    }
    /* The host's stack must not process the frames: neither its IPv6, nor anything else, since a
     * switch in user space reads frames beside the stack, not before it. */
    k = k < 0 ? k : sysctl_silence(name, e);
    k = k == 0 && job->userspace_switch ? redirect_drop_received(r, l.ifindex, e) : k;
    return k < 0 ? k : bring_up(r, name, NULL, e);
}

static void job_work(void *ctx)
{
    struct pool_job *job = ctx;
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    CLEANUP(rtnl_close) struct rtnl *ends = NULL;
    struct err e = {0};
    int back = -1;
    int k = netns_enter(job->netns_fd, &back, &e);
    k = k < 0 ? k : rtnl_open(&r, &e);
    if (k == 0 && job->port_peers_fd >= 0) {
        k = rtnl_open_at(job->port_peers_fd, &ends, &e);
    }
    for (size_t i = 0; i < job->n; i++) {
        struct pool_device *d = &job->devices[i];
        if (k < 0) {
            d->result = k;
            d->error = e;
        } else if (d->unwanted) {
            d->result = rtnl_link_del(r, d->name, &d->error);
        } else {
            d->result = ensure_device(r, ends, job, d, &d->error);
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

/* Removes a port from the bridge; its number may be used again. */
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
    backoff_fail(&o->pool.retry, ovs_now(o), (uint32_t) time_mono_ns());
}

static void job_free(struct pool_job *job)
{
    if (job) {
        fd_close(job->port_peers_fd);
        free(job);
    }
}

static void job_done(void *ctx)
{
    static struct log_limit limit;
    struct pool_job *job = ctx;
    struct ovs_dp *o = job->o;
    if (!o) {
        fd_close(job->netns_fd);
        job_free(job);
        return;
    }
    bool failed = false;
    for (size_t i = 0; i < job->n; i++) {
        const struct pool_device *d = &job->devices[i];
        struct pool_port *p = find(o, d->name);
        if (d->result < 0 && d->result != -EBUSY) {
            failed = true;
            log_limited(&limit, LOG_ERROR, "no device for a port", "port=%s reason=\"%s\"", d->name,
                        d->error.text);
        }
        if (!p) {
            continue;
        }
        p->checked_ms = ovs_now(o);
        const struct row_iface *row = ovs_rows_iface(db_rows(o->db), p->name);
        if (d->result == -EBUSY) {
            set_state(o, p, p->freed ? UNCHECKED : BUSY);
        } else if (d->result == 0 && d->made && row && row->port && row->ofport > 0) {
            remove_row(o, p); /* Open vSwitch still uses the device that was there before. */
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
        o->pool.retry.failures = 0;
    }
    o->pool.job = NULL;
    job_free(job);
    loop_task_queue(&o->pump);
}

static struct pool_job *job_of(struct ovs_dp *o)
{
    if (!o->pool.job) {
        o->pool.job = NEW(struct pool_job);
        o->pool.job->o = o;
        o->pool.job->netns_fd = o->pool.netns_fd;
        o->pool.job->port_peers_fd =
            o->pool.ends ? fcntl(port_peers_fd(o->pool.ends), F_DUPFD_CLOEXEC, 0) : -1;
        o->pool.job->userspace_switch = switch_is_in_user_space(o);
        o->pool.job->mtu = o->net.mtu;
    }
    return o->pool.job;
}

static struct pool_device *job_add(struct ovs_dp *o, const char *name, bool unwanted)
{
    struct pool_job *job = job_of(o);
    struct pool_device *d = &job->devices[job->n++];
    snprintf(d->name, sizeof d->name, "%s", name);
    d->unwanted = unwanted;
    return d;
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
                drop(o, p); /* The device is found again when its number is used next. */
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

/* Removes the port that has been free for the longest time, if there are too many: from the bridge
 * here, and its device by the worker. */
static void shrink(struct ovs_dp *o)
{
    uint64_t due = o->pool.used_ms + o->pool.quiet_ms;
    if (o->pool.n_free <= limits_of(o)->keep || o->pool.job || o->pool.inserting) {
        return;
    }
    due = MAX(due, o->pool.retry.due_ms);
    if (due > ovs_now(o)) {
        ovs_wake_at(o, due);
        return;
    }
    struct pool_port *p = CONTAINER_OF(list_pop_front(&o->pool.free), struct pool_port, free);
    list_push_front(&o->pool.free, &p->free);
    o->pool.retry.due_ms = ovs_now(o) + SHRINK_MS;
    job_add(o, p->name, true);
    remove_row(o, p);
    loop_work(o->loop, job_work, job_done, o->pool.job);
}

/* ---- the step ---- */

/* Updates the state of each port from its Interface row. */
static void sort_ports(struct ovs_dp *o)
{
    static struct log_limit limit;
    struct pool_port *p;
    HMAP_FOREACH (p, struct pool_port, node, &o->pool.ports) {
        const struct row_iface *i = ovs_rows_iface(db_rows(o->db), p->name);
        bool works = i && i->port && i->ofport > 0;
        if (p->state == FREE && !works) {
            set_state(o, p, UNCHECKED);
        } else if (p->state == BUSY && ovs_now(o) < p->checked_ms + LATE_MS) {
            ovs_wake_at(o, p->checked_ms + LATE_MS);
        } else if (p->state == BUSY) {
            p->reclaim = true;
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
            p->freed = false;
            job_add(o, p->name, false)->reclaim = p->reclaim;
            p->reclaim = false;
        }
    }
    size_t n = o->pool.n_free; /* Counts the ports that are being made as well. */
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
            /* A port of that name which is not in the pool belongs to another program. */
            if (!ovs_rows_iface(db_rows(o->db), name)) {
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
        job_free(job);
    }
}

void pool_step(struct ovs_dp *o, size_t waiting)
{
    sort_ports(o);
    if (waiting && o->pool.n_free) {
        /* The pump served waiting pods before these ports became free: run it again. */
        loop_task_queue(&o->pump);
    }
    if (setup_obstacle(o)) {
        return; /* The bridge has to exist first. */
    }
    if (o->pool.retry.due_ms > ovs_now(o)) {
        ovs_wake_at(o, o->pool.retry.due_ms);
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
        best = best && again ? best : p; /* If all had this address: the first one. */
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
