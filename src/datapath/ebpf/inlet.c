/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ebpf/inlet.h"

#include "datapath/limit.h"
#include "net/kernel/redirect.h"
#include "net/loop/process.h"

#include <net/if.h>
#include <stdio.h>

#define QUEUE "tnq"
#define INLET "tni"

static bool is_direct(const struct cni_bandwidth *b)
{
    return !b->from_pod && !b->elsewhere;
}

static void inlet_name(const char *host_if, const struct cni_bandwidth *b, char ret[IF_NAMESIZE])
{
    if (is_direct(b)) {
        snprintf(ret, IF_NAMESIZE, "%s", host_if);
    } else {
        limit_link_name(b->elsewhere ? POOL_BRIDGE : INLET, host_if, ret);
    }
}

static int raise_silent(struct rtnl *r, const char *name, struct err *e)
{
    struct rtnl_link_set up = RTNL_LINK_SET_INIT(name);
    up.up = 1;
    int k = sysctl_silence(name, e);
    return k < 0 ? k : rtnl_link_set(r, &up, e);
}

static int make_queue(struct rtnl *r, const struct dp_wire *w, const char *inlet, struct err *e)
{
    char queue[IF_NAMESIZE];
    struct rtnl_link l;
    struct shape s = limit_from_pod(w);
    limit_link_name(QUEUE, w->host_if, queue);
    struct rtnl_veth pair = {.name = queue, .peer_name = inlet, .peer_ns_fd = -1, .mtu = w->mtu};
    int k = rtnl_link_get(r, queue, &l, NULL);
    k = k == -ENODEV ? rtnl_veth_add(r, &pair, e) : k;
    k = k < 0 ? k : rtnl_link_get(r, queue, &l, e);
    k = k < 0 ? k : shape_set(r, l.ifindex, &s, e);
    k = k < 0 ? k : raise_silent(r, queue, e);
    return k < 0 ? k : raise_silent(r, inlet, e);
}

/* Creates the links between link and inlet, except for the last one. */
static int make(struct rtnl *r, const struct dp_wire *w, const struct rtnl_link *link,
                struct rtnl_link *ret, struct err *e)
{
    char name[IF_NAMESIZE];
    if (is_direct(&w->limits)) {
        *ret = *link;
        return 0;
    }
    if (w->limits.elsewhere) {
        return limit_bridge_make(r, w->host_if, ret, e);
    }
    inlet_name(w->host_if, &w->limits, name);
    int k = make_queue(r, w, name, e);
    return k < 0 ? k : rtnl_link_get(r, name, ret, e);
}

/* Into the queue. */
static int redirect_of(struct rtnl *r, const struct dp_wire *w, const struct rtnl_link *link,
                       struct redirect *ret, struct rtnl_link *queue, struct err *e)
{
    char name[IF_NAMESIZE];
    limit_link_name(QUEUE, w->host_if, name);
    int k = rtnl_link_get(r, name, queue, e);
    *ret = (struct redirect){
        .ifindex = link->ifindex, .hook = REDIRECT_INGRESS, .to = queue->ifindex, .send = true};
    return k;
}

static int connect_inlet(struct rtnl *r, const struct dp_wire *w, const struct rtnl_link *link,
                         const struct rtnl_link *inlet, struct err *e)
{
    struct redirect in;
    struct rtnl_link queue;
    if (is_direct(&w->limits)) {
        return 0;
    }
    if (w->limits.elsewhere) {
        return limit_bridge_join(r, link, inlet, e);
    }
    int k = redirect_of(r, w, link, &in, &queue, e);
    return k < 0 ? k : redirect_set(r, &in, e);
}

/* Checks the devices between link and inlet against the pod's limit. */
static int check_way(struct rtnl *r, const struct dp_wire *w, const struct rtnl_link *link,
                     const struct rtnl_link *inlet, struct err *e)
{
    struct redirect in;
    struct rtnl_link queue, bridge;
    struct shape s = limit_from_pod(w);
    if (is_direct(&w->limits)) {
        return 0;
    }
    if (w->limits.elsewhere) {
        return limit_bridge_check(r, link, &bridge, e);
    }
    if (!(inlet->flags & IFF_UP)) {
        return err_set(e, -ENOENT, "%s is down", inlet->name);
    }
    int k = redirect_of(r, w, link, &in, &queue, e);
    k = k < 0 ? k : redirect_check(r, &in, e);
    return k < 0 ? k : shape_check(r, queue.ifindex, &s, e);
}

static struct cni_bandwidth parse(const char *bandwidth)
{
    struct cni_bandwidth b = {0};
    return bandwidth && cni_bandwidth_parse(bandwidth, &b) == 0 ? b : (struct cni_bandwidth){0};
}

static bool is_queued(const struct cni_bandwidth *b)
{
    return b->to_pod || b->elsewhere;
}

struct inlet inlet_find(const char *host_if, const char *bandwidth)
{
    struct cni_bandwidth b = parse(bandwidth);
    char name[IF_NAMESIZE];
    inlet_name(host_if, &b, name);
    return (struct inlet){(int) if_nametoindex(host_if), (int) if_nametoindex(name), is_queued(&b)};
}

int inlet_hook(const struct hooks *h, struct rtnl *r, const char *host_if, const char *bandwidth,
               int prog_fd, struct err *e)
{
    struct cni_bandwidth b = parse(bandwidth);
    struct rtnl_link l;
    char name[IF_NAMESIZE];
    inlet_name(host_if, &b, name);
    int k = rtnl_link_get(r, name, &l, e);
    return k < 0 ? k : hook_attach(h, r, HOOK_POD, name, l.ifindex, prog_fd, e);
}

int inlet_wire(const struct hooks *h, struct rtnl *r, const struct dp_wire *w, int prog_fd,
               struct inlet *ret, struct err *e)
{
    struct shape to = limit_to_pod(w);
    struct rtnl_link l, inlet;
    enum hook_kind kind = w->link && is_direct(&w->limits) ? HOOK_NEW_POD : HOOK_POD;
    int k = w->link ? 0 : rtnl_link_get(r, w->host_if, &l, e);
    if (w->link) {
        l = *w->link;
    }
    k = k == 0 && to.rate ? shape_set(r, l.ifindex, &to, e) : k;
    k = k < 0 ? k : make(r, w, &l, &inlet, e);
    k = k < 0 ? k : hook_attach(h, r, kind, inlet.name, inlet.ifindex, prog_fd, e);
    k = k < 0 ? k : connect_inlet(r, w, &l, &inlet, e);
    if (k == 0) {
        *ret = (struct inlet){l.ifindex, inlet.ifindex, is_queued(&w->limits)};
    }
    return k;
}

int inlet_check(const struct hooks *h, struct rtnl *r, const struct dp_wire *w, int prog_fd,
                struct inlet *ret, struct err *e)
{
    char name[IF_NAMESIZE];
    struct shape to = limit_to_pod(w);
    struct rtnl_link l, inlet;
    inlet_name(w->host_if, &w->limits, name);
    int k = rtnl_link_get(r, w->host_if, &l, e);
    k = k < 0 ? k : rtnl_link_get(r, name, &inlet, e);
    k = k < 0 ? k : check_way(r, w, &l, &inlet, e);
    k = k < 0 ? k : hook_check(h, r, name, inlet.ifindex, prog_fd, e);
    k = k == 0 && to.rate ? shape_check(r, l.ifindex, &to, e) : k;
    if (k == 0) {
        *ret = (struct inlet){l.ifindex, inlet.ifindex, is_queued(&w->limits)};
    }
    return k;
}

int inlet_remove(struct rtnl *r, const struct dp_wire *w, struct err *e)
{
    char name[IF_NAMESIZE];
    if (is_direct(&w->limits)) {
        return 0;
    }
    if (w->limits.elsewhere) {
        return limit_bridge_remove(r, w->host_if, e);
    }
    limit_link_name(QUEUE, w->host_if, name);
    return rtnl_link_del(r, name, e);
}
