/* SPDX-License-Identifier: Apache-2.0 */
#include "sdn/firewall.h"

#include "base/mem.h"

#define PREFIX_LENGTHS 33

size_t firewall_find(const struct firewall_rule *rules, size_t n, uint32_t ip)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < rules[i].n_to; k++) {
            if (prefix_contains(rules[i].to[k], ip)) {
                return i;
            }
        }
    }
    return n;
}

/* A destination with the index of its rule. */
struct entry {
    struct ip4_prefix to;
    size_t rule;
};

/* A prefix comes before the prefixes within it. */
static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->to.addr != y->to.addr) {
        return x->to.addr < y->to.addr ? -1 : 1;
    }
    if (x->to.len != y->to.len) {
        return x->to.len < y->to.len ? -1 : 1;
    }
    return x->rule < y->rule ? -1 : x->rule > y->rule;
}

size_t firewall_flatten(const struct firewall_rule *rules, size_t n, struct firewall_block **ret)
{
    size_t n_entries = 0, n_blocks = 0, depth = 0;
    for (size_t i = 0; i < n; i++) {
        n_entries += rules[i].n_to;
    }
    CLEANUP_FREE struct entry *entries = xcalloc(n_entries + 1, sizeof *entries);
    struct firewall_block *blocks = xcalloc(n_entries + 1, sizeof *blocks);
    n_entries = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < rules[i].n_to; k++) {
            entries[n_entries++] = (struct entry){rules[i].to[k], i};
        }
    }
    qsort(entries, n_entries, sizeof *entries, compare_entries);
    /* The prefixes around the present one.  All prefixes that have an address are nested, so the
     * first rule for it is the first one of its longest prefix and those around that. */
    struct entry around[PREFIX_LENGTHS + 1] = {{.rule = n}};
    for (size_t i = 0; i < n_entries; i++) {
        struct entry now = entries[i];
        while (depth && (!prefix_contains(around[depth].to, now.to.addr) ||
                         around[depth].to.len > now.to.len)) {
            depth--;
        }
        if (depth && around[depth].to.len == now.to.len) {
            continue; /* An earlier rule has the same prefix. */
        }
        size_t outer = around[depth].rule;
        now.rule = MIN(now.rule, outer);
        around[++depth] = now;
        bool allow = rules[now.rule].allow;
        if (allow != (outer == n || rules[outer].allow)) {
            blocks[n_blocks++] = (struct firewall_block){now.to, allow};
        }
    }
    *ret = blocks;
    return n_blocks;
}
