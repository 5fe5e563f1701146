/* SPDX-License-Identifier: Apache-2.0 */
#include "random_firewalls.h"

#include "base/mem.h"
#include "rng.h"
#include "sdn/pipeline.h"

#define MAX_RULES 12

void random_firewalls_init(struct random_firewalls *f)
{
    f->n = 0;
}

static struct ip4_prefix some_prefix(const uint32_t *around, size_t n)
{
    static const uint8_t lens[] = {0, 1, 4, 8, 15, 16, 24, 30, 31, 32, 32};
    uint8_t len = PICK(lens);
    return (struct ip4_prefix){around[below((uint32_t) n)] & prefix_mask(len), len};
}

void random_firewalls_add(struct random_firewalls *f, uint32_t vnid, const uint32_t *around,
                          size_t n)
{
    size_t n_rules = below(MAX_RULES + 1);
    struct firewall_rule *rules = xcalloc(n_rules + 1, sizeof *rules);
    for (size_t i = 0; i < n_rules; i++) {
        rules[i].allow = chance(50);
        rules[i].n_to = chance(80) ? 1 : below(4); /* A name has several addresses, or none. */
        rules[i].to = xcalloc(rules[i].n_to + 1, sizeof *rules[i].to);
        for (size_t k = 0; k < rules[i].n_to; k++) {
            rules[i].to[k] = some_prefix(around, n);
        }
    }
    f->list[f->n++] = (struct model_firewall){vnid, rules, n_rules};
}

void random_firewalls_done(struct random_firewalls *f)
{
    for (size_t i = 0; i < f->n; i++) {
        struct firewall_rule *rules = (struct firewall_rule *) f->list[i].rules;
        for (size_t k = 0; k < f->list[i].n_rules; k++) {
            free(rules[k].to);
        }
        free(rules);
    }
    f->n = 0;
}

void random_firewalls_tell(const struct model_firewall *list, size_t n,
                           void (*set)(void *ctx, uint32_t vnid,
                                       const struct firewall_block *blocks, size_t n),
                           void *ctx)
{
    for (size_t i = 0; i < n; i++) {
        struct firewall_block *blocks;
        size_t n_blocks = firewall_flatten(list[i].rules, list[i].n_rules, &blocks);
        set(ctx, list[i].vnid, blocks, n_blocks);
        free(blocks);
    }
}

static void add_flows(void *ctx, uint32_t vnid, const struct firewall_block *blocks, size_t n)
{
    pipeline_firewall(vnid, blocks, n, ctx);
}

void random_firewalls_flows(const struct model_firewall *list, size_t n, struct of_flow_list *out)
{
    random_firewalls_tell(list, n, add_flows, out);
}
