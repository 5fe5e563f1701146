/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ovs/ovs.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>

LOG_MODULE("ovs");

/* Interval of rounds while the switch knows every next hop. */
#define ROUND_MS 2000
/* The first wait for the kernel to resolve a next hop; the longest is ROUND_MS. */
#define WAIT_MS 50
/* Most lookups of routes in one round, each of which is a call of the kernel. */
#define ROUTES_A_ROUND 64
/* Age at which a route is looked up again. */
#define ROUTE_AGE_MS 30000
/* Interval at which every entry is written again: the switch drops an entry that no packet used
 * for 15 minutes. */
#define WRITE_AGAIN_MS 300000

static int compare_entries(const void *pa, const void *pb)
{
    const struct tunnel_entry *a = pa, *b = pb;
    return a->ip < b->ip ? -1 : a->ip > b->ip;
}

size_t tunnels_parse(const char *text, struct tunnel_entry **ret)
{
    struct tunnel_entry *v = NULL;
    size_t n = 0, cap = 0;
    for (const char *line = text; *line;) {
        const size_t size = strcspn(line, "\n");
        char copy[128];
        snprintf(copy, sizeof copy, "%.*s", (int) MIN(size, sizeof copy - 1), line);
        line += size + (line[size] == '\n');
        char *mac = copy + strcspn(copy, " ");
        mac += strspn(mac, " ");
        mac[strcspn(mac, " ")] = '\0';
        copy[strcspn(copy, " ")] = '\0';
        struct tunnel_entry t;
        if (ip4_parse(copy, &t.ip) == 0 && mac_parse(mac, &t.mac) == 0) {
            v = grow(v, &cap, n + 1, sizeof *v);
            v[n++] = t;
        }
    }
    if (n) {
        qsort(v, n, sizeof *v, compare_entries);
    }
    *ret = v;
    return n;
}

static void complain(const char *what, const char *reason)
{
    static struct log_limit limit;
    log_limited(&limit, LOG_WARN, "cannot keep the neighbours of tunnels, trying again",
                "action=\"%s\" reason=\"%s\"", what, reason);
}

static void end_round(struct ovs_dp *o, uint64_t wait_ms)
{
    o->tunnels.at_ms = ovs_now(o) + wait_ms;
    loop_task_queue(&o->pump);
}

static void end_complete_round(struct ovs_dp *o)
{
    struct tunnels *t = &o->tunnels;
    t->wait_ms = t->unresolved ? MIN(MAX(t->wait_ms * 2, WAIT_MS), ROUND_MS) : 0;
    end_round(o, t->unresolved ? t->wait_ms : ROUND_MS);
}

/* The answer of "tnl/neigh/set"; the next entry follows. */
static void on_written(void *ctx, int error, const char *text);

static void write_next(struct ovs_dp *o)
{
    struct tunnels *t = &o->tunnels;
    struct err e = {0};
    while (t->n_writes) {
        const struct rtnl_neigh *w = &t->writes[--t->n_writes];
        struct rtnl_link link;
        if (rtnl_link_get_index(t->rtnl, w->ifindex, &link, &e) < 0) {
            complain("find the link of a neighbour", e.text);
            continue;
        }
        t->call = unixctl_call(
            o->loop, o->rundir, "tnl/neigh/set",
            (const char *[]){link.name, IP4_TEXT(w->addr), MAC_TEXT(w->mac), NULL}, on_written, o);
        return;
    }
    end_complete_round(o);
}

static void on_written(void *ctx, int error, const char *text)
{
    struct ovs_dp *o = ctx;
    o->tunnels.call = NULL;
    if (error == -ECANCELED) {
        return;
    }
    if (error) {
        complain("write one to the switch", text);
        end_round(o, ROUND_MS);
    } else {
        write_next(o);
    }
}

/* Brings 'hops' into line with the remote nodes, and looks up routes that are missing or old. */
static void look_up_routes(struct ovs_dp *o)
{
    struct tunnels *t = &o->tunnels;
    const uint64_t now = ovs_now(o);
    if (t->n_hops != o->net.n_remotes || t->generation != o->net_generation) {
        t->hops = xreallocarray(t->hops, o->net.n_remotes, sizeof *t->hops);
        for (size_t i = 0; i < o->net.n_remotes; i++) {
            t->hops[i] = (struct tunnel_hop){.host = o->net.remotes[i].host_ip};
        }
        t->n_hops = o->net.n_remotes;
        t->generation = o->net_generation;
    }
    size_t budget = ROUTES_A_ROUND;
    for (size_t i = 0; i < t->n_hops && budget; i++) {
        struct tunnel_hop *h = &t->hops[i];
        if (h->ip && now < h->looked_ms + ROUTE_AGE_MS) {
            continue;
        }
        struct rtnl_route rt;
        struct err e = {0};
        budget--;
        h->ip = 0;
        if (rtnl_route_get(t->rtnl, h->host, &rt, &e) == 0) {
            h->ip = rt.gateway ? rt.gateway : h->host;
            h->ifindex = rt.ifindex;
            h->looked_ms = now;
        }
    }
}

static const struct rtnl_neigh *find_neighbour(const struct rtnl_neigh *v, size_t n,
                                               const struct tunnel_hop *h)
{
    for (size_t i = 0; i < n; i++) {
        if (v[i].addr == h->ip && v[i].ifindex == h->ifindex) {
            return &v[i];
        }
    }
    return NULL;
}

/* Compares what the switch knows, in 'text', with what the kernel knows. */
static void on_shown(void *ctx, int error, const char *text)
{
    struct ovs_dp *o = ctx;
    struct tunnels *t = &o->tunnels;
    t->call = NULL;
    if (error == -ECANCELED) {
        return;
    }
    CLEANUP_FREE struct rtnl_neigh *known = NULL;
    size_t n_known = 0;
    struct err e = {0};
    if (error || rtnl_neigh_list(t->rtnl, &known, &n_known, &e) < 0) {
        complain("list them", error ? text : e.text);
        end_round(o, ROUND_MS);
        return;
    }
    CLEANUP_FREE struct tunnel_entry *table = NULL;
    const size_t n_table = tunnels_parse(text, &table);
    const bool again = ovs_now(o) >= t->written_ms + WRITE_AGAIN_MS;
    if (again) {
        t->written_ms = ovs_now(o);
    }
    look_up_routes(o);
    t->n_writes = 0;
    t->unresolved = false;
    uint32_t last = 0;
    for (size_t i = 0; i < t->n_hops; i++) {
        const struct tunnel_hop *h = &t->hops[i];
        if (!h->ip || h->ip == last) { /* Remote nodes behind one gateway follow each other. */
            t->unresolved |= !h->ip;
            continue;
        }
        last = h->ip;
        const struct tunnel_entry key = {.ip = h->ip};
        const struct tunnel_entry *entry =
            n_table ? bsearch(&key, table, n_table, sizeof key, compare_entries) : NULL;
        const struct rtnl_neigh *neighbour = find_neighbour(known, n_known, h);
        if (!neighbour && !entry) {
            t->unresolved = true;
            if (rtnl_neigh_probe(t->rtnl, h->ifindex, h->ip, &e) < 0) {
                complain("resolve one", e.text);
            }
        } else if (neighbour && (again || !entry || !mac_equal(entry->mac, neighbour->mac))) {
            t->writes = grow(t->writes, &t->cap_writes, t->n_writes + 1, sizeof *t->writes);
            t->writes[t->n_writes++] = *neighbour;
        }
    }
    write_next(o);
}

void tunnels_step(struct ovs_dp *o)
{
    struct tunnels *t = &o->tunnels;
    const struct row_bridge *b = db_rows(o->db)->bridge;
    if (t->call || !o->net.n_remotes || !b || !streq_null(b->datapath_type, "netdev")) {
        return;
    }
    if (t->generation != o->net_generation) {
        t->at_ms = MIN(t->at_ms, ovs_now(o) + WAIT_MS);
    }
    if (ovs_now(o) < t->at_ms) {
        ovs_wake_at(o, t->at_ms);
        return;
    }
    struct err e = {0};
    if (!t->rtnl && rtnl_open(&t->rtnl, &e) < 0) {
        complain("open a netlink socket", e.text);
        t->at_ms = ovs_now(o) + ROUND_MS;
        ovs_wake_at(o, t->at_ms);
        return;
    }
    t->call =
        unixctl_call(o->loop, o->rundir, "tnl/neigh/show", (const char *[]){NULL}, on_shown, o);
}

void tunnels_done(struct ovs_dp *o)
{
    struct tunnels *t = &o->tunnels;
    if (t->call) {
        unixctl_cancel(t->call);
    }
    rtnl_close(t->rtnl);
    free(t->hops);
    free(t->writes);
}
