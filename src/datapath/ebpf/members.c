/* SPDX-License-Identifier: Apache-2.0 */
/* The pods of this node: on file, in the maps, and their links. */
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "datapath/ebpf/ebpf_priv.h"
#include "datapath/ebpf/encode.h"
#include "datapath/record.h"

#include <stdio.h>

LOG_MODULE("ebpf");

/* ---- in the maps; with the lock held ---- */

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

struct member *members_find_link(struct ebpf_dp *x, const char *host_if)
{
    for (size_t i = 0; i < x->n_members; i++) {
        if (streq(x->members[i].pod->host_if, host_if)) {
            return &x->members[i];
        }
    }
    return NULL;
}

/* Updates the maps of pods; -ENOSPC when not all rows fit. A pod's link is written before its
 * address, and removed after it. */
int members_put(struct ebpf_dp *x, struct err *e)
{
    if (!x->loaded) {
        return 0;
    }
    struct table_row *pods = xcalloc(x->n_members + 1, sizeof *pods);
    struct table_row *ports = xcalloc(x->n_members + 1, sizeof *ports);
    size_t n_pods = 0, n_ports = 0, changes, refused, refused_cache, more;
    struct err why = {0};
    for (size_t i = 0; i < x->n_members; i++) {
        const struct member *m = &x->members[i];
        struct encode_pod p = {.ip = m->pod->ip,
                               .mac = m->pod->mac,
                               .vnid = m->pod->vnid,
                               .has_also_vnid = m->pod->has_also_vnid,
                               .also_vnid = m->pod->also_vnid,
                               .queued = m->queued,
                               .ifindex = m->ifindex,
                               .inlet = m->inlet};
        if (!m->attached && encode_pod(&x->net, &p, &pods[n_pods], &ports[n_ports])) {
            n_pods++;
            n_ports += m->ifindex != 0;
        }
    }
    table_sync(&x->ports, ports, n_ports, &changes, &refused, &why);
    x->pods_applied += changes;
    table_sync(&x->pods, pods, n_pods, &changes, &more, &why);
    x->pods_applied += changes;
    pods = encode_pod_cache(x->pods.rows, x->pods.n, &n_pods);
    table_sync(&x->pod_cache, pods, n_pods, &changes, &refused_cache, NULL);
    x->pods_applied += changes;
    return refused + more
               ? err_set(e, -ENOSPC, "the datapath's maps of pods are full (%u at most): %s",
                         ebpf_room(x, EBPF_PODS_MAX), why.text)
               : 0;
}

static void remove_member(struct ebpf_dp *x, struct member *m)
{
    if (m->attached) {
        outbox_add_done(&x->outbox, m->attached, m->attached_ctx, -ECANCELED, "it was detached");
    }
    dp_pod_free(m->pod);
    *m = x->members[--x->n_members];
}

/* ---- existing links ---- */

static bool is_member(void *ctx, const char *ifname)
{
    struct ebpf_dp *x = ctx;
    return streq(ifname, DEVICE_HOST) || streq(ifname, DEVICE_VXLAN) ||
           members_find_link(x, ifname) || paths_has_link(x->paths, ifname);
}

static void put_inlet(struct member *m, struct inlet at)
{
    m->ifindex = at.link;
    m->inlet = at.inlet;
    m->queued = at.queued;
    m->upgraded = false;
}

/* Finds the links of pods that an earlier agent process wired. */
int members_find_links(struct ebpf_dp *x, struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    CLEANUP_FREE struct rtnl_link *links = NULL;
    size_t n = 0;
    int err = rtnl_open(&r, e);
    err = err < 0 ? err : rtnl_link_list(r, &links, &n, e);
    for (size_t i = 0; i < n; i++) {
        struct member *m =
            streq(links[i].kind, "veth") ? members_find_link(x, links[i].name) : NULL;
        if (m) {
            put_inlet(m, inlet_find(m->pod->host_if, m->pod->bandwidth));
        }
    }
    return err;
}

/* A pod whose link refuses a program is skipped, so that the others work. */
int members_hook(struct ebpf_dp *x, struct err *why)
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
    struct err e = {0};
    if (hook_sweep(&x->hooks, r, is_member, x, &e) < 0) {
        log_error("links that lead nowhere any more may still have programs", "error=\"%s\"",
                  e.text);
    }
    return 0;
}

/* ---- attach and detach ---- */

static void on_bad_record(void *ctx, const char *file, const char *why)
{
    log_error("record of a pod cannot be read, the pod is not known any longer",
              "file=%s error=\"%s\"", file, why);
}

int members_read(struct ebpf_dp *x, struct err *e)
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

static void store(struct ebpf_dp *x, const struct dp_pod *p)
{
    struct err e = {0};
    if (record_write(x->records, p, &e) < 0) {
        log_error("what a pod is could not be stored", "pod=%s/%s error=\"%s\"", p->pod_namespace,
                  p->pod_name, e.text);
    }
}

static struct member *add_pod(struct ebpf_dp *x, const struct dp_pod *p)
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
    return m;
}

/* On file first: a pod in the maps must be known after a crash. */
static void settle_one(struct ebpf_dp *x, struct member *m)
{
    struct err e = {0};
    datapath_done_fn *done = TAKE(m->attached);
    void *ctx = m->attached_ctx;
    int r = record_write(x->records, m->pod, &e);
    r = r < 0 ? r : members_put(x, &e);
    if (r < 0) {
        record_remove(x->records, m->pod, NULL);
        remove_member(x, m);
        members_put(x, NULL);
        x->pods_refused += r == -ENOSPC;
    }
    outbox_add_done(&x->outbox, done, ctx, r, e.text);
}

bool members_settle(struct ebpf_dp *x)
{
    bool any = false;
    for (size_t i = 0; i < x->n_members; i++) {
        any = any || x->members[i].attached;
    }
    if (!any) {
        return false;
    }
    policy_maps_put(&x->policy);
    pthread_mutex_lock(&x->lock);
    /* The last element replaces the removed one. */
    for (size_t i = x->n_members; i-- > 0;) {
        if (x->members[i].attached) {
            settle_one(x, &x->members[i]);
        }
    }
    pthread_mutex_unlock(&x->lock);
    return true;
}

void ebpf_attach(struct datapath *dp, const struct dp_pod *p, datapath_port_fn *port,
                 datapath_done_fn *done, void *ctx)
{
    struct ebpf_dp *x = ebpf_of(dp);
    if (!x->in_place) {
        char text[OUTBOX_TEXT_SIZE];
        snprintf(text, sizeof text, "the datapath is not in place%s%.200s",
                 x->outbox.trouble_reason[0] ? ": " : "", x->outbox.trouble_reason);
        outbox_add_done(&x->outbox, done, ctx, -EAGAIN, text);
        return;
    }
    pthread_mutex_lock(&x->lock);
    struct member *m = add_pod(x, p);
    m->attached = done;
    m->attached_ctx = ctx;
    pthread_mutex_unlock(&x->lock);
    tcx_upgrade_defer(x->upgrade);
    outbox_add_port(&x->outbox, port, ctx, p->host_if, p->host_if);
}

void ebpf_detach(struct datapath *dp, const char *container_id, const char *ifname,
                 datapath_done_fn *done, void *ctx)
{
    struct ebpf_dp *x = ebpf_of(dp);
    struct err e = {0};
    int r = 0;
    pthread_mutex_lock(&x->lock);
    struct member *m = find_member(x, container_id, ifname);
    if (m) {
        r = record_remove(x->records, m->pod, &e);
    }
    if (m && r == 0) {
        remove_member(x, m);
        r = members_put(x, &e);
    }
    pthread_mutex_unlock(&x->lock);
    tcx_upgrade_defer(x->upgrade);
    outbox_add_done(&x->outbox, done, ctx, r, e.text);
}

static void set_text(char **slot, const char *value)
{
    free(*slot);
    *slot = value ? xstrdup(value) : NULL;
}

void ebpf_set_runtime(struct datapath *dp, const char *container_id, const char *ifname,
                      const char *host_ports, const char *bandwidth, datapath_done_fn *done,
                      void *ctx)
{
    struct ebpf_dp *x = ebpf_of(dp);
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

void ebpf_set_vnids(struct datapath *dp, const char *pod_namespace, const struct sdn_vnids *v)
{
    struct ebpf_dp *x = ebpf_of(dp);
    struct err e = {0};
    pthread_mutex_lock(&x->lock);
    for (size_t i = 0; i < x->n_members; i++) {
        struct dp_pod *p = x->members[i].pod;
        if (streq_null(p->pod_namespace, pod_namespace)) {
            p->vnid = v->id;
            p->has_also_vnid = v->moving;
            p->also_vnid = v->moving ? v->also : 0;
            store(x, p);
        }
    }
    int r = members_put(x, &e);
    pthread_mutex_unlock(&x->lock);
    if (r < 0) {
        log_error("VNIDs of pods could not be changed", "project=%s error=\"%s\"", pod_namespace,
                  e.text);
    }
}

const struct dp_pod *const *ebpf_pods(struct datapath *dp, size_t *ret_n)
{
    struct ebpf_dp *x = ebpf_of(dp);
    pthread_mutex_lock(&x->lock);
    free(x->view);
    x->view = xcalloc(x->n_members + 1, sizeof(struct dp_pod *));
    for (size_t i = 0; i < x->n_members; i++) {
        struct member *m = &x->members[i];
        m->pod->port_number = (uint32_t) m->ifindex;
        m->pod->ready = m->ifindex && !m->attached && x->in_place;
        x->view[i] = m->pod;
    }
    *ret_n = x->n_members;
    pthread_mutex_unlock(&x->lock);
    return x->view;
}

/* ---- links of pods; on any thread ---- */

int ebpf_wire(struct datapath *dp, const struct dp_wire *w, struct err *e)
{
    struct ebpf_dp *x = ebpf_of(dp);
    CLEANUP(rtnl_close) struct rtnl *own = NULL;
    struct inlet at;
    int k = w->rtnl ? 0 : rtnl_open(&own, e);
    k = k < 0 ? k : inlet_wire(&x->hooks, w->rtnl ? w->rtnl : own, w, x->program.from_pod, &at, e);
    if (k < 0) {
        return k;
    }
    pthread_mutex_lock(&x->lock);
    struct member *m = members_find_link(x, w->host_if);
    if (m) {
        put_inlet(m, at);
        k = members_put(x, e);
    } else {
        k = err_set(e, -ENOENT, "%s is no attached pod's link", w->host_if);
    }
    pthread_mutex_unlock(&x->lock);
    return k;
}

/* The queue disappears with the link, and the inlet's state with the pod. */
int ebpf_unlimit(struct datapath *dp, const struct dp_wire *w, struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    int k = rtnl_open(&r, e);
    return k < 0 ? k : inlet_remove(r, w, e);
}

int ebpf_check_wire(struct datapath *dp, const struct dp_wire *w, struct err *e)
{
    struct ebpf_dp *x = ebpf_of(dp);
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    struct inlet at;
    int k = rtnl_open(&r, e);
    k = k < 0 ? k : inlet_check(&x->hooks, r, w, x->program.from_pod, &at, e);
    if (k < 0) {
        return k;
    }
    pthread_mutex_lock(&x->lock);
    const struct member *m = members_find_link(x, w->host_if);
    k = m && m->ifindex == at.link && m->inlet == at.inlet ? 0 : -ENOENT;
    pthread_mutex_unlock(&x->lock);
    return k < 0 ? err_set(e, k, "%s is not wired", w->host_if) : 0;
}

uint32_t members_inlet(struct ebpf_dp *x, uint32_t port)
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

/* Not a link with a limit: it has more than the hook to change. */
bool members_next_upgrade(void *ctx, struct hook_place *ret)
{
    struct ebpf_dp *x = ctx;
    struct member *m = NULL;
    pthread_mutex_lock(&x->lock);
    for (size_t i = 0; i < x->n_members && !m; i++) {
        struct member *k = &x->members[i];
        m = k->ifindex && k->inlet == k->ifindex && !k->attached && !k->upgraded ? k : NULL;
    }
    if (m) {
        m->upgraded = true;
        snprintf(ret->ifname, sizeof ret->ifname, "%s", m->pod->host_if);
        ret->ifindex = m->ifindex;
    }
    pthread_mutex_unlock(&x->lock);
    return m != NULL;
}
