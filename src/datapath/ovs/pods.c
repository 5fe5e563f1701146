/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ovs/ovs.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/reconnect.h"

#include <inttypes.h>
#include <stdio.h>

LOG_MODULE("ovs");

#define ATTACH_MS 10000
#define REMOVE_MS 10000
#define REMOVE_RETRY_MS 100
#define RETRY_MIN_MS 50
#define RETRY_MAX_MS 5000
#define NUMBER_MIN 3u
#define NUMBER_MAX 0xfeffu /* Open vSwitch uses OpenFlow 1.0 port numbers, which end at 0xff00. */

struct waiter {
    struct list link;
    datapath_port_fn *port; /* NULL: it was called, or the waiter is a detach. */
    datapath_done_fn *fn;
    void *ctx;
    int error; /* The error to report once the port is gone; 0 for a detach. */
    char text[OVS_TEXT_SIZE];
};

/* Inputs of a pod's flows; port 0: the pod has no flows. */
struct pod_flows {
    uint32_t port, ip, vnid;
    bool has_also_vnid;
    uint32_t also_vnid;
    struct mac mac;
};

/* A pod that should have a port, or whose port is being removed. */
struct pod_rec {
    struct hmap_node node;
    struct dp_pod *pod;
    struct list waiters;  /* ADDs and DELs that wait for it. */
    bool wanted;          /* It should have a port; false: its port is being removed. */
    bool in_flight;       /* A transaction that inserts or changes its row was sent. */
    bool alone;           /* Its transaction was refused together with others: send it by itself. */
    bool has_row;         /* The row existed at the last pods_adopt. */
    uint32_t number;      /* The port number to request when the row has to be made again. */
    struct backoff retry; /* Delays between its transactions after failures. */
    uint64_t deadline_ms; /* 0: none. */

    struct pod_flows flows; /* The flows in the flow table. */
    uint64_t generation;    /* The generation of their last change. */
    struct refusal_bucket refusals;
};

/* A VNID that pods have, and the group of its flows. */
struct vnid_ref {
    struct hmap_node node;
    uint32_t vnid;
    size_t pods;         /* Number of pods with flows that have it. */
    uint64_t generation; /* The generation of the group's last change. */
};

/* ---- records ---- */

static uint32_t key_hash(const char *container_id, const char *ifname)
{
    return hash_string(container_id) * 31 + hash_string(ifname);
}

static struct pod_rec *find(const struct ovs_dp *o, const char *container_id, const char *ifname)
{
    struct pod_rec *r;
    HMAP_FOREACH_WITH_HASH (r, struct pod_rec, node, key_hash(container_id, ifname), &o->pods) {
        if (streq(r->pod->container_id, container_id) && streq(r->pod->ifname, ifname)) {
            return r;
        }
    }
    return NULL;
}

/* 'pod' is taken over. */
static struct pod_rec *rec_new(struct ovs_dp *o, struct dp_pod *pod)
{
    struct pod_rec *r = NEW(struct pod_rec);
    r->pod = pod;
    pod->ready = false;
    r->retry = BACKOFF_INIT(RETRY_MIN_MS, RETRY_MAX_MS);
    list_init(&r->waiters);
    hmap_insert(&o->pods, &r->node, key_hash(pod->container_id, pod->ifname));
    return r;
}

static void rec_free(struct ovs_dp *o, struct pod_rec *r)
{
    hmap_remove(&o->pods, &r->node);
    dp_pod_free(r->pod);
    struct list *link;
    while ((link = list_pop_front(&r->waiters))) {
        free(CONTAINER_OF(link, struct waiter, link));
    }
    free(r);
}

void pods_init(struct ovs_dp *o)
{
    hmap_init(&o->pods);
    hmap_init(&o->vnids);
    o->next_number = NUMBER_MIN;
}

void pods_done(struct ovs_dp *o)
{
    struct pod_rec *r;
    HMAP_FOREACH (r, struct pod_rec, node, &o->pods) {
        rec_free(o, r);
    }
    struct vnid_ref *v;
    HMAP_FOREACH (v, struct vnid_ref, node, &o->vnids) {
        hmap_remove(&o->vnids, &v->node);
        free(v);
    }
    hmap_done(&o->pods);
    hmap_done(&o->vnids);
    free(o->pods_view);
}

/* The row of this pod's port, whether its external_ids name the pod yet or not. */
static struct row_iface *port_of(const struct ovs_dp *o, const struct pod_rec *r)
{
    struct row_iface *i = r->pod->port[0] ? ovs_rows_iface(db_rows(o->db), r->pod->port) : NULL;
    if (!i || !i->port || i->removing) {
        return NULL;
    }
    bool ours = i->pod ? streq(i->pod->container_id, r->pod->container_id) &&
                             streq(i->pod->ifname, r->pod->ifname)
                       : i->pooled;
    return ours ? i : NULL;
}

/* Like port_of, but only if external_ids name the pod. */
static struct row_iface *row_of(const struct ovs_dp *o, const struct pod_rec *r)
{
    struct row_iface *i = port_of(o, r);
    return i && i->pod ? i : NULL;
}

static void wait_for(struct pod_rec *r, datapath_port_fn *port, datapath_done_fn *fn, void *ctx)
{
    struct waiter *w = NEW(struct waiter);
    w->port = port;
    w->fn = fn;
    w->ctx = ctx;
    list_push_back(&r->waiters, &w->link);
}

/* Reports to all waiters of 'r' the error they have, or 'error' where they have none. */
static void finish_waiters(struct ovs_dp *o, struct pod_rec *r, int error, const char *text)
{
    struct list *link;
    while ((link = list_pop_front(&r->waiters))) {
        struct waiter *w = CONTAINER_OF(link, struct waiter, link);
        outbox_add_done(&o->outbox, w->fn, w->ctx, w->error ? w->error : error,
                        w->error ? w->text : text);
        free(w);
    }
    r->deadline_ms = 0;
}

/* Fails the attachment; the waiters are called when nothing of it is left. */
static void fail_attach(struct ovs_dp *o, struct pod_rec *r, int error, const char *text)
{
    struct waiter *w;
    LIST_FOREACH (w, struct waiter, link, &r->waiters) {
        w->error = error;
        snprintf(w->text, sizeof w->text, "%s", text);
    }
    r->wanted = false;
    r->deadline_ms = ovs_now(o) + REMOVE_MS;
    loop_task_queue(&o->pump);
}

/* ---- flows ---- */

static struct vnid_ref *find_vnid(const struct ovs_dp *o, uint32_t vnid)
{
    struct vnid_ref *v;
    HMAP_FOREACH_WITH_HASH (v, struct vnid_ref, node, hash32(&vnid, sizeof vnid), &o->vnids) {
        if (v->vnid == vnid) {
            return v;
        }
    }
    return NULL;
}

static uint64_t set_vnid_group(struct ovs_dp *o, uint32_t vnid)
{
    struct of_flow_list flows = {0};
    pipeline_vnid(&o->net, vnid, &flows);
    return flow_table_set_group(&o->flows, pipeline_vnid_cookie(vnid), &flows);
}

static uint64_t vnid_ref(struct ovs_dp *o, uint32_t vnid)
{
    struct vnid_ref *v = find_vnid(o, vnid);
    if (!v) {
        v = NEW(struct vnid_ref);
        v->vnid = vnid;
        hmap_insert(&o->vnids, &v->node, hash32(&vnid, sizeof vnid));
        v->generation = set_vnid_group(o, vnid);
    }
    v->pods++;
    return v->generation;
}

static uint64_t vnid_unref(struct ovs_dp *o, uint32_t vnid)
{
    struct vnid_ref *v = find_vnid(o, vnid);
    if (--v->pods > 0) {
        return 0;
    }
    hmap_remove(&o->vnids, &v->node);
    free(v);
    return flow_table_remove_group(&o->flows, pipeline_vnid_cookie(vnid));
}

/* The flows that the pod should have, with the present port number, or else the requested one. */
static struct pod_flows wanted_flows(const struct ovs_dp *o, const struct pod_rec *r)
{
    if (!r->wanted) {
        return (struct pod_flows){0};
    }
    const struct row_iface *i = port_of(o, r);
    int64_t n = r->in_flight ? r->number : 0;
    if (i) {
        n = i->ofport ? i->ofport : i->ofport_request;
    }
    if (n <= 0 || n > UINT32_MAX) {
        return (struct pod_flows){0};
    }
    const struct dp_pod *p = r->pod;
    return (struct pod_flows){(uint32_t) n, p->ip, p->vnid, p->has_also_vnid, p->also_vnid, p->mac};
}

static bool flows_equal(const struct pod_flows *a, const struct pod_flows *b)
{
    return a->port == b->port && a->ip == b->ip && a->vnid == b->vnid &&
           a->has_also_vnid == b->has_also_vnid &&
           (!a->has_also_vnid || a->also_vnid == b->also_vnid) && mac_equal(a->mac, b->mac);
}

/* Flows are grouped by address: one pod has the flows of an address, even if the database names
 * several. */
static bool address_is_free(const struct ovs_dp *o, const struct pod_rec *r)
{
    const struct pod_rec *x;
    HMAP_FOREACH (x, struct pod_rec, node, &o->pods) {
        if (x != r && x->flows.port && x->flows.ip == r->pod->ip) {
            return false;
        }
    }
    return true;
}

static uint64_t set_pod_group(struct ovs_dp *o, const struct pod_flows *f)
{
    struct pipeline_pod p = {.ofport = f->port,
                             .ip = f->ip,
                             .mac = f->mac,
                             .vnid = f->vnid,
                             .has_also_vnid = f->has_also_vnid,
                             .also_vnid = f->also_vnid};
    struct of_flow_list flows = {0};
    pipeline_pod(&o->net, &p, &flows);
    return flow_table_set_group(&o->flows, pipeline_pod_cookie(f->ip), &flows);
}

static void changed_in(uint64_t *last, uint64_t generation)
{
    *last = MAX(*last, generation);
}

static void update_flows(struct ovs_dp *o, struct pod_rec *r)
{
    static struct log_limit limit;
    struct pod_flows want = wanted_flows(o, r), old = r->flows;
    if (flows_equal(&want, &old)) {
        return;
    }
    if (want.port && !address_is_free(o, r)) {
        log_limited(&limit, LOG_WARN, "two ports have the same address, one gets no flows",
                    "port=%s ip=%s", r->pod->port, IP4_TEXT(r->pod->ip));
        want = (struct pod_flows){0};
    }
    /* The new VNID before the old one: if they are the same, its group stays. */
    if (want.port) {
        changed_in(&r->generation, vnid_ref(o, want.vnid));
        changed_in(&r->generation, set_pod_group(o, &want));
    }
    if (old.port) {
        changed_in(&r->generation, vnid_unref(o, old.vnid));
        if (!want.port || want.ip != old.ip) {
            changed_in(&r->generation,
                       flow_table_remove_group(&o->flows, pipeline_pod_cookie(old.ip)));
        }
    }
    r->flows = want;
}

void pods_flows(struct ovs_dp *o)
{
    struct pod_rec *r;
    /* Removed flows first: an address may pass from one pod to another. */
    HMAP_FOREACH (r, struct pod_rec, node, &o->pods) {
        if (!r->wanted) {
            update_flows(o, r);
        }
    }
    HMAP_FOREACH (r, struct pod_rec, node, &o->pods) {
        update_flows(o, r);
    }
}

uint64_t pods_reflow(struct ovs_dp *o)
{
    uint64_t generation = 0;
    struct pod_rec *r;
    HMAP_FOREACH (r, struct pod_rec, node, &o->pods) {
        if (r->flows.port) {
            changed_in(&r->generation, set_pod_group(o, &r->flows));
            changed_in(&generation, r->generation);
        }
    }
    struct vnid_ref *v;
    HMAP_FOREACH (v, struct vnid_ref, node, &o->vnids) {
        changed_in(&v->generation, set_vnid_group(o, v->vnid));
        changed_in(&generation, v->generation);
    }
    return generation;
}

const struct dp_pod *pods_by_port(const struct ovs_dp *o, uint32_t port,
                                  struct refusal_bucket **ret_bucket)
{
    struct pod_rec *r;
    HMAP_FOREACH (r, struct pod_rec, node, &o->pods) {
        if (r->wanted && r->flows.port == port) {
            *ret_bucket = &r->refusals;
            return r->pod;
        }
    }
    return NULL;
}

/* ---- ports ---- */

void pods_adopt(struct ovs_dp *o)
{
    struct pod_rec *r;
    HMAP_FOREACH (r, struct pod_rec, node, &o->pods) {
        r->has_row = false;
    }
    const struct row_iface *i;
    HMAP_FOREACH (i, struct row_iface, node, &db_rows(o->db)->ifaces) {
        if (!i->port || !i->pod) {
            continue;
        }
        r = find(o, i->pod->container_id, i->pod->ifname);
        if (!r) {
            r = rec_new(o, dp_pod_clone(i->pod));
            r->wanted = true;
            r->number = (uint32_t) MAX(0, i->ofport_request ? i->ofport_request : i->ofport);
        }
        r->has_row = true;
    }
}

static bool number_is_used(const struct ovs_dp *o, uint32_t number)
{
    const struct row_iface *i;
    HMAP_FOREACH (i, struct row_iface, node, &db_rows(o->db)->ifaces) {
        if (i->port && (i->ofport == number || i->ofport_request == number)) {
            return true;
        }
    }
    const struct pod_rec *r;
    HMAP_FOREACH (r, struct pod_rec, node, &o->pods) {
        if (r->number == number || r->flows.port == number) {
            return true;
        }
    }
    return pool_number_is_used(o, number);
}

/* Wraps around, so that the number of a removed port is not used again soon. */
uint32_t pods_take_number(struct ovs_dp *o)
{
    for (uint32_t tries = 0; tries <= NUMBER_MAX - NUMBER_MIN; tries++) {
        uint32_t n = o->next_number;
        o->next_number = n == NUMBER_MAX ? NUMBER_MIN : n + 1;
        if (!number_is_used(o, n)) {
            return n;
        }
    }
    return 0; /* No number is free; Open vSwitch will report that as well. */
}

/* ---- transactions ---- */

/* The pods of a transaction, so that a failed operation can be attributed to one of them. */
struct batch_item {
    size_t first_op;
    /* The key of the record whose row is inserted or changed; or NULL. */
    char *container_id, *ifname;
    /* Without a key: the interface that is removed, or loses its pod. */
    char iface[16];
};
struct batch {
    struct ovs_dp *o;
    struct json *ops;
    struct batch_item *items;
    size_t n, cap, n_ops;
};

static struct batch *batch_new(struct ovs_dp *o)
{
    struct batch *b = NEW(struct batch);
    b->o = o;
    b->ops = json_array();
    return b;
}

static void batch_free(struct batch *b)
{
    for (size_t i = 0; i < b->n; i++) {
        free(b->items[i].container_id);
        free(b->items[i].ifname);
    }
    free(b->items);
    json_free(b->ops);
    free(b);
}

static struct batch_item *batch_add(struct batch *b)
{
    b->items = grow(b->items, &b->cap, b->n + 1, sizeof *b->items);
    struct batch_item *item = &b->items[b->n++];
    *item = (struct batch_item){.first_op = json_count(b->ops)};
    return item;
}

static void batch_add_rec(struct batch *b, struct pod_rec *r)
{
    struct batch_item *item = batch_add(b);
    item->container_id = xstrdup(r->pod->container_id);
    item->ifname = xstrdup(r->pod->ifname);
    r->in_flight = true;
}

static void retry_later(struct ovs_dp *o, struct pod_rec *r)
{
    backoff_fail(&r->retry, ovs_now(o), key_hash(r->pod->container_id, r->pod->ifname));
}

static void item_failed(struct ovs_dp *o, struct pod_rec *r, int error, const char *reason)
{
    static struct log_limit limit;
    char text[OVS_TEXT_SIZE];
    snprintf(text, sizeof text, "port %s: the database refused: %.300s", r->pod->port, reason);
    if (r->wanted && !list_is_empty(&r->waiters)) {
        fail_attach(o, r, error, text);
        return;
    }
    log_limited(&limit, LOG_ERROR, "port could not be written", "reason=\"%s\"", text);
    retry_later(o, r);
}

static void on_batch_done(void *ctx, int error, size_t failed, const struct ovsdb_msg *reply,
                          const struct err *e)
{
    struct batch *b = ctx;
    struct ovs_dp *o = b->o;
    for (size_t i = 0; i < b->n; i++) {
        const struct batch_item *item = &b->items[i];
        size_t end = i + 1 < b->n ? b->items[i + 1].first_op : SIZE_MAX;
        if (!item->container_id) {
            struct row_iface *row = ovs_rows_iface(db_rows(o->db), item->iface);
            if (row) {
                row->removing = false;
            }
            o->remove_retry_ms = error ? ovs_now(o) + REMOVE_RETRY_MS : 0;
            continue;
        }
        struct pod_rec *r = find(o, item->container_id, item->ifname);
        r->in_flight = false;
        if (error == 0) {
            backoff_reset(&r->retry);
            r->alone = false;
        } else if (error == -ENOTCONN) {
            continue; /* The pump will see the result in the replica. */
        } else if (b->n == 1 || (failed >= item->first_op && failed < end && failed < b->n_ops)) {
            item_failed(o, r, error, e->text);
        } else if (failed == b->n_ops) {
            /* One of the records caused the failure; sending each by itself shows which. */
            r->alone = true;
        }
    }
    batch_free(b);
    loop_task_queue(&o->pump);
}

static void batch_send(struct batch *b)
{
    if (!b->n) {
        batch_free(b);
        return;
    }
    b->n_ops = json_count(b->ops);
    ovs_transact(b->o, TAKE(b->ops), on_batch_done, b);
}

static void add_insert(struct batch *b, struct pod_rec *r)
{
    struct ovs_dp *o = b->o;
    unsigned serial = (unsigned) b->n;
    r->number = r->number ? r->number : pods_take_number(o);
    batch_add_rec(b, r);
    struct json *row = json_object();
    json_set(row, "external_ids", pod_to_ids(r->pod));
    if (r->number) {
        json_set_int(row, "ofport_request", r->number);
    }
    plan_add_port(b->ops, r->pod->port, serial, row);
    const char *bridge = db_rows(o->db)->bridge->uuid;
    json_append(b->ops, ovsdb_mutate("Bridge", ovsdb_where_uuid(bridge), "ports", "insert",
                                     plan_port_ref(serial)));
}

static void step_removals(struct ovs_dp *o, struct batch *b)
{
    if (o->remove_retry_ms > ovs_now(o)) {
        ovs_wake_at(o, o->remove_retry_ms);
        return;
    }
    struct row_iface *i;
    HMAP_FOREACH (i, struct row_iface, node, &db_rows(o->db)->ifaces) {
        if (!i->port || !i->pod || i->removing) {
            continue;
        }
        struct pod_rec *r = find(o, i->pod->container_id, i->pod->ifname);
        if (r->wanted && streq(r->pod->port, i->name)) {
            continue;
        }
        i->removing = true;
        struct batch_item *item = batch_add(b);
        snprintf(item->iface, sizeof item->iface, "%s", i->name);
        json_append(b->ops,
                    i->pooled ? pod_clear_ids(i->uuid) : plan_remove_port(db_rows(o->db), i->port));
    }
}

/* Another port has the name of the pod's port: fails the attachment if it is no port of ours. */
static void name_taken(struct ovs_dp *o, struct pod_rec *r, const struct row_iface *i)
{
    if (i->removing || (i->port && i->pod) || list_is_empty(&r->waiters)) {
        return; /* The port is being removed, or there is no attachment to fail. */
    }
    char text[OVS_TEXT_SIZE];
    snprintf(text, sizeof text, "port %s exists already and is not ours", i->name);
    fail_attach(o, r, -EEXIST, text);
}

/* Assigns ports to pods without one; returns how many still have none. */
static size_t assign_ports(struct ovs_dp *o)
{
    size_t waiting = 0;
    struct pod_rec *r;
    HMAP_FOREACH (r, struct pod_rec, node, &o->pods) {
        if (!r->wanted) {
            continue;
        }
        if (!r->pod->port[0]) {
            const char *port = pool_take(o, r->pod->ip);
            if (!port) {
                waiting++;
                continue;
            }
            snprintf(r->pod->port, sizeof r->pod->port, "%s", port);
            r->number = (uint32_t) ovs_rows_iface(db_rows(o->db), port)->ofport;
        }
        struct waiter *w;
        LIST_FOREACH (w, struct waiter, link, &r->waiters) {
            if (w->port) {
                if (o->pool.ends && !r->pod->pair) {
                    port_peers_name(r->pod->port, r->pod->host_if);
                }
                outbox_add_port(&o->outbox, TAKE(w->port), w->ctx, r->pod->port, r->pod->host_if);
            }
        }
    }
    return waiting;
}

void pods_step(struct ovs_dp *o)
{
    struct batch *all = batch_new(o);
    step_removals(o, all);
    pool_step(o, assign_ports(o));
    struct pod_rec *r;
    HMAP_FOREACH (r, struct pod_rec, node, &o->pods) {
        if (!r->wanted || r->in_flight || !r->pod->port[0]) {
            continue;
        }
        if (!backoff_is_due(&r->retry, ovs_now(o))) {
            ovs_wake_at(o, r->retry.due_ms);
            continue;
        }
        const struct row_iface *i = ovs_rows_iface(db_rows(o->db), r->pod->port);
        const struct row_iface *mine = port_of(o, r);
        if (i && !mine) {
            name_taken(o, r, i);
            continue;
        }
        if (mine && mine->pod && pod_equal(mine->pod, r->pod)) {
            continue;
        }
        struct batch *b = r->alone ? batch_new(o) : all;
        if (mine) {
            batch_add_rec(b, r);
            json_append(b->ops, pod_update_ids(mine->uuid, r->pod));
        } else {
            add_insert(b, r);
        }
        if (r->alone) {
            batch_send(b);
        }
    }
    batch_send(all);
}

/* ---- completion ---- */

static void finish_wanted(struct ovs_dp *o, struct pod_rec *r)
{
    const struct row_iface *i = row_of(o, r);
    bool has_port = i && i->ofport > 0 && r->flows.port == i->ofport;
    bool stored = i && !r->in_flight && pod_equal(i->pod, r->pod);
    r->pod->ready = has_port && stored && flow_table_in_place(&o->flows, r->generation);
    if (list_is_empty(&r->waiters)) {
        return;
    }
    char text[OVS_TEXT_SIZE];
    if (r->pod->ready) {
        finish_waiters(o, r, 0, "");
    } else if (i && i->ofport < 0) {
        snprintf(text, sizeof text, "port %s: %s", i->name,
                 i->error ? i->error : "refused by Open vSwitch");
        fail_attach(o, r, -EIO, text);
    } else if (o->trouble) { /* Fails at once when waiting would not help: the reason is known. */
        snprintf(text, sizeof text, "%.380s", o->outbox.trouble_reason);
        fail_attach(o, r, o->trouble == OUTBOX_REFUSED ? -EIO : -ENOTCONN, text);
    } else if (ovs_now(o) >= r->deadline_ms) {
        const char *why = ovs_obstacle(o);
        const char *port = r->pod->port[0] ? r->pod->port : "(none became free)";
        snprintf(text, sizeof text, "port %s: Open vSwitch did not connect it in %d s%s%.200s",
                 port, ATTACH_MS / 1000, why ? ": " : "", why ? why : "");
        fail_attach(o, r, -ETIMEDOUT, text);
    }
}

/* Answers attachments that failed; their rows are removed when the database is back. */
static void finish_failed(struct ovs_dp *o, struct pod_rec *r)
{
    struct waiter *w;
    LIST_FOREACH (w, struct waiter, link, &r->waiters) {
        if (w->error) {
            outbox_add_done(&o->outbox, w->fn, w->ctx, w->error, w->text);
            list_remove(&w->link);
            free(w);
        }
    }
}

/* Completes a record that is not wanted; returns whether the record was freed. */
static bool finish_unwanted(struct ovs_dp *o, struct pod_rec *r)
{
    /* The switch may still have the flows: waiting for that takes up to 100 ms, as removing a port
     * keeps ovs-vswitchd busy (the userspace datapath). Later flows for the same address are sent
     * after the removal of these, on the same connection. */
    if (o->inventory_known && db_is_synced(o->db) && !r->has_row && !r->in_flight) {
        finish_waiters(o, r, 0, "");
        pool_put(o, r->pod->port, r->pod->ip, r->generation);
        rec_free(o, r);
        return true;
    }
    if (!db_is_synced(o->db)) {
        finish_failed(o, r);
    }
    if (!list_is_empty(&r->waiters) && ovs_now(o) >= r->deadline_ms) {
        finish_waiters(o, r, -ETIMEDOUT,
                       "Open vSwitch did not answer; the port will be removed later");
    }
    return false;
}

void pods_finish(struct ovs_dp *o)
{
    struct pod_rec *r;
    HMAP_FOREACH (r, struct pod_rec, node, &o->pods) {
        if (r->wanted) {
            finish_wanted(o, r);
        } else if (finish_unwanted(o, r)) {
            continue;
        }
        if (!list_is_empty(&r->waiters)) {
            ovs_wake_at(o, r->deadline_ms);
        }
    }
}

/* ---- calls of the agent ---- */

/* Why 'p' cannot be attached; NULL: it can. */
static const char *cannot_attach(struct ovs_dp *o, const struct dp_pod *p, int *error,
                                 char text[OVS_TEXT_SIZE])
{
    if (!p->container_id || !*p->container_id || !p->ifname || !*p->ifname || !p->host_if[0] ||
        p->vnid > SDN_VNID_MAX) {
        *error = -EINVAL;
        return "the pod has no container id, interface, port name or valid VNID";
    }
    const struct pod_rec *r;
    HMAP_FOREACH (r, struct pod_rec, node, &o->pods) {
        const struct dp_pod *x = r->pod;
        if (!r->wanted ||
            (streq(x->container_id, p->container_id) && streq(x->ifname, p->ifname))) {
            continue;
        }
        if (x->ip == p->ip || streq(x->host_if, p->host_if)) {
            *error = x->ip == p->ip ? -EADDRINUSE : -EEXIST;
            snprintf(text, OVS_TEXT_SIZE, "%s is attached to %s/%s already",
                     x->ip == p->ip ? IP4_TEXT(p->ip) : p->host_if,
                     x->pod_namespace ? x->pod_namespace : "", x->pod_name ? x->pod_name : "");
            return text;
        }
    }
    return NULL;
}

void pods_attach(struct ovs_dp *o, const struct dp_pod *p, datapath_port_fn *port,
                 datapath_done_fn *done, void *ctx)
{
    int error;
    char text[OVS_TEXT_SIZE];
    const char *problem = cannot_attach(o, p, &error, text);
    if (problem) {
        outbox_add_done(&o->outbox, done, ctx, error, problem);
        return;
    }
    struct pod_rec *r = find(o, p->container_id, p->ifname);
    if (r) {
        if (r->wanted) {
            finish_waiters(o, r, -ECANCELED, "replaced by a newer request");
        } else {
            finish_waiters(o, r, 0, "");
        }
        struct dp_pod *old = TAKE(r->pod);
        r->pod = dp_pod_clone(p);
        r->pod->ready = false;
        const struct row_iface *i = ovs_rows_iface(db_rows(o->db), old->port);
        if (!streq(old->port, old->host_if) && (!i || i->ofport >= 0)) {
            memcpy(r->pod->port, old->port, sizeof old->port);
        } else {
            /* The present port does not work, or an earlier version made it: take another one. */
            r->pod->port[0] = '\0';
            pool_put(o, old->port, old->ip, r->generation);
        }
        dp_pod_free(old);
    } else {
        r = rec_new(o, dp_pod_clone(p));
        r->pod->port[0] = '\0';
    }
    r->wanted = true;
    r->retry.due_ms = 0;
    r->deadline_ms = ovs_now(o) + ATTACH_MS;
    wait_for(r, port, done, ctx);
    loop_task_queue(&o->pump);
}

void pods_detach(struct ovs_dp *o, const char *container_id, const char *ifname,
                 datapath_done_fn *done, void *ctx)
{
    struct pod_rec *r = find(o, container_id, ifname);
    if (!r && o->inventory_known) {
        outbox_add_done(&o->outbox, done, ctx, 0, "");
        return;
    }
    if (!r) {
        /* It is not known yet whether the port exists. */
        struct dp_pod p = {.container_id = (char *) container_id, .ifname = (char *) ifname};
        r = rec_new(o, dp_pod_clone(&p));
    }
    if (r->wanted) {
        finish_waiters(o, r, -ECANCELED, "detached meanwhile");
    }
    r->wanted = false;
    r->deadline_ms = ovs_now(o) + REMOVE_MS;
    wait_for(r, NULL, done, ctx);
    loop_task_queue(&o->pump);
}

void pods_set_runtime(struct ovs_dp *o, const char *container_id, const char *ifname,
                      const char *host_ports, const char *bandwidth, datapath_done_fn *done,
                      void *ctx)
{
    struct pod_rec *r = find(o, container_id, ifname);
    if (!r || !r->wanted) {
        outbox_add_done(&o->outbox, done, ctx, -ENOENT, "the pod is not attached");
        return;
    }
    free(r->pod->host_ports);
    free(r->pod->bandwidth);
    r->pod->host_ports = host_ports ? xstrdup(host_ports) : NULL;
    r->pod->bandwidth = bandwidth ? xstrdup(bandwidth) : NULL;
    r->pod->ready = false;
    r->deadline_ms = ovs_now(o) + ATTACH_MS;
    wait_for(r, NULL, done, ctx);
    loop_task_queue(&o->pump);
}

void pods_set_vnids(struct ovs_dp *o, const char *pod_namespace, const struct sdn_vnids *v)
{
    struct pod_rec *r;
    HMAP_FOREACH (r, struct pod_rec, node, &o->pods) {
        if (r->wanted && r->pod->pod_namespace && streq(r->pod->pod_namespace, pod_namespace)) {
            r->pod->vnid = v->id;
            r->pod->has_also_vnid = v->moving;
            r->pod->also_vnid = v->also;
        }
    }
    loop_task_queue(&o->pump);
}

const struct dp_pod *const *pods_view(struct ovs_dp *o, size_t *ret_n)
{
    size_t n = 0;
    o->pods_view = grow(o->pods_view, &o->pods_view_cap, o->pods.n, sizeof(struct dp_pod *));
    struct pod_rec *r;
    HMAP_FOREACH (r, struct pod_rec, node, &o->pods) {
        if (r->wanted) {
            r->pod->port_number = r->flows.port;
            o->pods_view[n++] = r->pod;
        }
    }
    *ret_n = n;
    return o->pods_view;
}
