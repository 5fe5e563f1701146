/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/hostgw/routes.h"

#include "base/mem.h"

#include <linux/rtnetlink.h>
#include <stdlib.h>

struct wanted {
    struct rtnl_route route;
    bool there;
};

static bool is_in_cluster(const struct sdn_network *n, struct ip4_prefix p)
{
    for (size_t i = 0; i < n->n_cluster; i++) {
        if (p.len >= n->cluster[i].len && prefix_contains(n->cluster[i], p.addr)) {
            return true;
        }
    }
    return false;
}

/* The link on which 'ip' is a neighbour, by the longest of the routes without a gateway; 0: none. */
static int find_link(const struct sdn_network *n, const struct rtnl_route *have, size_t n_have,
                     uint32_t ip)
{
    const struct rtnl_route *best = NULL;
    for (size_t i = 0; i < n_have; i++) {
        const struct rtnl_route *r = &have[i];
        if (r->gateway == 0 && r->dst.len > 0 && prefix_contains(r->dst, ip) &&
            !is_in_cluster(n, r->dst) && (!best || r->dst.len > best->dst.len)) {
            best = r;
        }
    }
    return best ? best->ifindex : 0;
}

static int by_subnet(const void *a, const void *b)
{
    const struct rtnl_route *x = &((const struct wanted *) a)->route;
    const struct rtnl_route *y = &((const struct wanted *) b)->route;
    return x->dst.addr != y->dst.addr ? (x->dst.addr > y->dst.addr) - (x->dst.addr < y->dst.addr)
                                      : (int) x->dst.len - (int) y->dst.len;
}

static struct wanted *list_wanted(const struct sdn_network *n, const struct rtnl_route *have,
                                  size_t n_have, struct routes_plan *p)
{
    struct wanted *list = xcalloc(n->n_remotes + 1, sizeof *list);
    for (size_t i = 0; i < n->n_remotes; i++) {
        const struct sdn_remote *m = &n->remotes[i];
        if (m->subnet.len == 0) {
            continue;
        }
        int link = find_link(n, have, n_have, m->host_ip);
        if (!link) {
            p->far = p->n_far ? p->far : *m;
            p->n_far++;
            continue;
        }
        list[p->n_wanted++].route = (struct rtnl_route){
            .dst = m->subnet, .gateway = m->host_ip, .ifindex = link, .protocol = RTPROT_BOOT};
    }
    qsort(list, p->n_wanted, sizeof *list, by_subnet);
    return list;
}

void routes_plan_make(const struct sdn_network *n, const struct rtnl_route *have, size_t n_have,
                      struct routes_plan *ret)
{
    struct routes_plan p = {0};
    CLEANUP_FREE struct wanted *list = list_wanted(n, have, n_have, &p);
    p.del = xcalloc(n_have + 1, sizeof *p.del);
    p.add = xcalloc(p.n_wanted + 1, sizeof *p.add);
    for (size_t i = 0; i < n_have; i++) {
        if (have[i].gateway == 0 || !is_in_cluster(n, have[i].dst)) {
            continue;
        }
        struct wanted key = {.route = have[i]};
        struct wanted *w = bsearch(&key, list, p.n_wanted, sizeof *list, by_subnet);
        if (!w) {
            p.del[p.n_del++] = have[i];
        } else if (w->route.gateway == have[i].gateway && w->route.ifindex == have[i].ifindex) {
            w->there = true;
        }
    }
    for (size_t i = 0; i < p.n_wanted; i++) {
        if (!list[i].there) {
            p.add[p.n_add++] = list[i].route;
        }
    }
    *ret = p;
}

void routes_plan_done(struct routes_plan *p)
{
    free(p->add);
    free(p->del);
    *p = (struct routes_plan){0};
}

void routes_write_subnet_env(const struct sdn_network *n, struct strbuf *out)
{
    strbuf_adds(out, "FLANNEL_NETWORK=");
    for (size_t i = 0; i < n->n_cluster; i++) {
        strbuf_addf(out, "%s%s", i ? "," : "", PREFIX_TEXT(n->cluster[i]));
    }
    strbuf_addf(out,
                "\nFLANNEL_SUBNET=%s/%u\n"
                "FLANNEL_MTU=%u\n"
                "FLANNEL_IPMASQ=true\n",
                IP4_TEXT(sdn_gateway(n)), (unsigned) n->local.len, n->mtu);
}
