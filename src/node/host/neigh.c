/* SPDX-License-Identifier: Apache-2.0 */
#include "node/host/neigh.h"

#include "base/log.h"
#include "base/mem.h"
#include "net/kernel/rtnl.h"

#include <string.h>

LOG_MODULE("neigh");

#define ROUND_MS 120000
#define STEP_MS 50
#define STEP_HOSTS 16

struct neigh {
    struct rtnl *rtnl;
    struct loop_timer *timer;
    uint32_t *hosts; /* Sorted. */
    size_t n;
    size_t next; /* Index of the next host of this round. */
};

static void probe(struct neigh *n, uint32_t host)
{
    struct rtnl_route rt;
    struct err e = {0};
    int r = rtnl_route_get(n->rtnl, host, &rt, &e);
    if (r == 0) {
        r = rtnl_neigh_probe(n->rtnl, rt.ifindex, rt.gateway ? rt.gateway : host, &e);
    }
    if (r < 0) {
        log_debug("cannot resolve a remote host", "host=%s error=\"%s\"", IP4_TEXT(host), e.text);
    }
}

static void step(void *ctx)
{
    struct neigh *n = ctx;
    for (size_t i = 0; i < STEP_HOSTS && n->next < n->n; i++) {
        probe(n, n->hosts[n->next++]);
    }
    if (n->next < n->n) {
        loop_timer_arm(n->timer, STEP_MS);
    } else {
        n->next = 0;
        loop_timer_arm(n->timer, ROUND_MS);
    }
}

int neigh_new(struct loop *l, struct neigh **ret, struct err *e)
{
    struct neigh *n = NEW(struct neigh);
    int r = rtnl_open(&n->rtnl, e);
    if (r < 0) {
        free(n);
        return r;
    }
    n->timer = loop_timer_new(l, step, n);
    *ret = n;
    return 0;
}

struct neigh *neigh_free(struct neigh *n)
{
    if (n) {
        loop_timer_free(n->timer);
        rtnl_close(n->rtnl);
        free(n->hosts);
        free(n);
    }
    return NULL;
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;
    return x < y ? -1 : x > y;
}

void neigh_set_remotes(struct neigh *n, const struct sdn_remote *remotes, size_t count)
{
    uint32_t *hosts = xcalloc(count ? count : 1, sizeof *hosts);
    for (size_t i = 0; i < count; i++) {
        hosts[i] = remotes[i].host_ip;
    }
    qsort(hosts, count, sizeof *hosts, compare);
    size_t fresh = 0;
    for (size_t i = 0; i < count; i++) {
        if (!n->n || !bsearch(&hosts[i], n->hosts, n->n, sizeof *hosts, compare)) {
            /* Resolves as many new hosts at once as one step takes, the others in their turn. */
            if (fresh++ < STEP_HOSTS) {
                probe(n, hosts[i]);
            }
        }
    }
    free(n->hosts);
    n->hosts = hosts;
    n->n = count;
    n->next = 0;
    if (fresh > STEP_HOSTS || !loop_timer_armed(n->timer)) {
        loop_timer_arm(n->timer, fresh > STEP_HOSTS ? STEP_MS : ROUND_MS);
    }
}
