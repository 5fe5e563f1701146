/* SPDX-License-Identifier: Apache-2.0 */
#include "node/agent/remotes.h"

#include "node/agent/report.h"
#include "node/host/addresses.h"

LOG_MODULE("node");

struct collect {
    struct objects_host_subnet *items;
    size_t n, cap;
};

static void collect_subnet(void *ctx, const char *key, const struct json *obj)
{
    struct collect *c = ctx;
    c->items = grow(c->items, &c->cap, c->n + 1, sizeof *c->items);
    c->items[c->n++] = (struct objects_host_subnet){key, obj};
}

struct skip {
    struct agent *agent;
    struct smap now;
};

static void skip_subnet(void *ctx, const char *name, const char *why)
{
    struct skip *s = ctx;
    const char *before = smap_get(&s->agent->skipped, name);
    if (!streq_null(before, why)) {
        log_warn("HostSubnet not used", "name=%s reason=\"%s\"", name, why);
        agent_report_unused(s->agent, "HostSubnet", s->agent->subnets, name, why);
    }
    smap_set(&s->now, name, xstrdup(why));
}

/* Finds this node's addresses beside its main one, and those of other nodes that it accepts. */
static void read_addresses(struct agent *a, struct sdn_network *n)
{
    static struct log_limit limit;
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    struct err e = {0};
    int err = rtnl_open(&r, &e);
    err = err < 0 ? err : addresses_own(r, n, &n->addresses, &e);
    if (err < 0) {
        log_limited(&limit, LOG_ERROR, "the host's addresses are not known", "error=\"%s\"",
                    e.text);
        n->addresses = a->net.addresses;
        return;
    }
    addresses_believe(r, n);
    registration_set_addresses(a->registration, &n->addresses);
}

void agent_read_remotes(struct agent *a, struct sdn_network *n)
{
    struct collect c = {0};
    struct skip s = {.agent = a};
    smap_init(&s.now, free);
    informer_each(a->subnets, collect_subnet, &c);
    n->n_remotes =
        objects_build_remotes(n, a->cfg->node_name, c.items, c.n, skip_subnet, &s, &n->remotes);
    free(c.items);
    smap_clear(&a->skipped);
    struct smap_entry *entry;
    SMAP_FOREACH (entry, &s.now) {
        smap_set(&a->skipped, entry->key, xstrdup(entry->value));
    }
    smap_done(&s.now);
    read_addresses(a, n);
}
