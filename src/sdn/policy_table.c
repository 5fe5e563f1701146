/* SPDX-License-Identifier: Apache-2.0 */
/* The compiler's result as tables (policy_table.h), updated by the smallest difference.
 *
 * A *pair* is the rules between a subject's class and a peer's class or block. A changed class
 * gets new pairs with the classes that its rules name, independent of the number of others;
 * equal sets of ports exist once. */
#include "sdn/policy_internal.h"

#include "base/mem.h"

/* ---- pairs ---- */

static uint32_t pair_hash(const struct pair *k)
{
    const void *key[3] = {k->subject, k->peer, k->block};
    return hash32(key, sizeof key);
}

static struct policy_pair_key key_of(const struct pair *x)
{
    return (struct policy_pair_key){
        .subject = x->subject->id,
        .peer = x->peer    ? x->peer->id
                : x->block ? x->block->id
                           : 0,
        .dir = (uint8_t) (x->subject->space / 2),
        .kind = x->peer    ? POLICY_POD
                : x->block ? POLICY_BLOCK
                           : POLICY_ANYBODY,
    };
}

static struct pair *pair_find(const struct policy *p, const struct pair *key, uint32_t hash)
{
    struct pair *x;
    HMAP_FOREACH_WITH_HASH (x, struct pair, node, hash, &p->pairs) {
        if (x->subject == key->subject && x->peer == key->peer && x->block == key->block) {
            return x;
        }
    }
    return NULL;
}

static void pair_remove(struct policy *p, struct pair *x)
{
    struct policy_pair_key k = key_of(x);
    p->table->set_pair(p->table_ctx, &k, NULL);
    ports_unref_set(p, x->ports);
    hmap_remove(&p->pairs, &x->node);
    list_remove(&x->of_subject);
    list_remove(&x->of_peer);
    free(x);
}

/* Sets the rules of the pair 'key'. */
static void pair_set(struct policy *p, const struct pair *key, const struct rule *const *rules,
                     size_t n, bool isolated)
{
    uint32_t hash = pair_hash(key);
    struct pair *x = pair_find(p, key, hash);
    struct ports *ports = n ? ports_of_rules(p, rules, n) : NULL;
    bool same = x && x->ports == ports && x->isolated == isolated;
    if (!x) {
        x = NEW(struct pair);
        x->subject = key->subject;
        x->peer = key->peer;
        x->block = key->block;
        list_push_back(&x->subject->pairs, &x->of_subject);
        list_init(&x->of_peer);
        if (x->peer || x->block) {
            list_push_back(x->peer ? &x->peer->pairs : &x->block->pairs, &x->of_peer);
        }
        hmap_insert(&p->pairs, &x->node, hash);
    }
    ports_unref_set(p, x->ports);
    x->ports = ports;
    x->isolated = isolated;
    x->stale = false;
    if (!same) {
        struct policy_pair_key k = key_of(x);
        struct policy_pair v = {.ports = ports ? ports->id : 0, .isolated = isolated};
        p->table->set_pair(p->table_ctx, &k, &v);
    }
}

/* ---- pairing ---- */

/* A pair, and a rule about it; NULL: none. */
struct mention {
    struct pair key;
    const struct rule *rule;
};
struct mentions {
    struct mention *list;
    size_t n, cap;
};

static void mention(struct mentions *m, struct class *subject, struct class *peer,
                    struct block *block, const struct rule *r)
{
    m->list = grow(m->list, &m->cap, m->n + 1, sizeof *m->list);
    m->list[m->n++] = (struct mention){{.subject = subject, .peer = peer, .block = block}, r};
}

static int compare_pointers(const void *a, const void *b)
{
    return (uintptr_t) a < (uintptr_t) b ? -1 : a != b;
}

static int compare_keys(const struct pair *a, const struct pair *b)
{
    int c = compare_pointers(a->subject, b->subject);
    c = c ? c : compare_pointers(a->peer, b->peer);
    return c ? c : compare_pointers(a->block, b->block);
}

static int compare_mentions(const void *a, const void *b)
{
    const struct mention *x = a, *y = b;
    int c = compare_keys(&x->key, &y->key);
    return c ? c : compare_pointers(x->rule, y->rule);
}

/* Sets the pairs that were mentioned. */
static void set_pairs(struct policy *p, struct mentions *m)
{
    CLEANUP_FREE const struct rule **rules = xcalloc(m->n + 1, sizeof *rules);
    if (m->n) {
        qsort(m->list, m->n, sizeof *m->list, compare_mentions);
    }
    for (size_t i = 0, n; i < m->n; i += n) {
        const struct pair *key = &m->list[i].key;
        size_t n_rules = 0;
        for (n = 0; i + n < m->n && compare_keys(&m->list[i + n].key, key) == 0; n++) {
            const struct rule *r = m->list[i + n].rule;
            if (r && (n_rules == 0 || rules[n_rules - 1] != r)) {
                rules[n_rules++] = r;
            }
        }
        /* Only the pair of a subject with any peer says whether the subject is isolated. */
        bool anybody = !key->peer && !key->block;
        pair_set(p, key, rules, n_rules, anybody && key->subject->isolated);
    }
}

static void mention_blocks(const struct policy *p, struct mentions *m, struct class *c,
                           const struct rule *r)
{
    for (size_t i = 0; i < r->n_blocks; i++) {
        struct block *const *sorted = p->sorted_blocks[r->dir];
        struct ip4_prefix around = r->blocks[i]->prefix;
        /* The blocks inside follow it directly, and also apply its rules. */
        for (size_t k = r->blocks[i]->at;
             k < p->n_sorted_blocks[r->dir] && prefix_contains(around, sorted[k]->prefix.addr);
             k++) {
            mention(m, c, NULL, sorted[k], r);
        }
    }
}

static void pair_subject(struct policy *p, struct class *c)
{
    struct mentions m = {0};
    struct pair *x;
    bool isolated = false;
    LIST_FOREACH (x, struct pair, of_subject, &c->pairs) {
        x->stale = true;
    }
    for (size_t i = 0; i < c->n; i++) {
        const struct set *set = c->sets[i];
        for (size_t k = 0; k < set->n_uses; k++) {
            const struct rule *r = set->uses[k].rule;
            isolated |= !r && set->uses[k].clause == CLAUSE_ISOLATES;
            if (r && !rule_has_peers(r)) {
                mention(&m, c, NULL, NULL, r);
            }
            for (size_t q = 0; r && q < r->n_peers; q++) {
                for (size_t j = 0; j < r->peers[q]->n_classes; j++) {
                    mention(&m, c, r->peers[q]->classes[j], NULL, r);
                }
            }
            if (r) {
                mention_blocks(p, &m, c, r);
            }
        }
    }
    c->isolated = isolated;
    /* Every subject has this pair: a missing one is an error. */
    mention(&m, c, NULL, NULL, NULL);
    set_pairs(p, &m);
    LIST_FOREACH (x, struct pair, of_subject, &c->pairs) {
        if (x->stale) {
            pair_remove(p, x);
        }
    }
    free(m.list);
}

static void pair_peer(struct policy *p, struct class *c)
{
    struct mentions m = {0};
    struct pair *x;
    LIST_FOREACH (x, struct pair, of_peer, &c->pairs) {
        x->stale = true;
    }
    for (size_t i = 0; i < c->n; i++) {
        const struct set *set = c->sets[i];
        for (size_t k = 0; k < set->n_uses; k++) {
            const struct rule *r = set->uses[k].rule;
            for (size_t q = 0; r && q < r->subject->n_classes; q++) {
                mention(&m, r->subject->classes[q], c, NULL, r);
            }
        }
    }
    set_pairs(p, &m);
    LIST_FOREACH (x, struct pair, of_peer, &c->pairs) {
        if (x->stale) {
            pair_remove(p, x);
        }
    }
    free(m.list);
}

void table_forget_class(struct policy *p, struct class *c)
{
    while (!list_is_empty(&c->pairs)) {
        struct list *link = c->pairs.next;
        pair_remove(p, c->space % 2 == ROLE_SUBJECT ? CONTAINER_OF(link, struct pair, of_subject)
                                                    : CONTAINER_OF(link, struct pair, of_peer));
    }
}

/* ---- blocks ---- */

static uint32_t block_hash(unsigned dir, struct ip4_prefix prefix)
{
    uint32_t key[2] = {prefix.addr, (uint32_t) prefix.len << 8 | dir};
    return hash32(key, sizeof key);
}

static struct block *block_find(const struct policy *p, unsigned dir, struct ip4_prefix prefix)
{
    struct block *b;
    HMAP_FOREACH_WITH_HASH (b, struct block, node, block_hash(dir, prefix), &p->blocks) {
        if (b->dir == dir && prefix_equal(b->prefix, prefix)) {
            return b;
        }
    }
    return NULL;
}

static bool block_id_is_taken(const struct policy *p, uint32_t id)
{
    return hmap_first_with_hash(&p->block_ids, id) != NULL; /* The id is its own hash. */
}

static struct block *block_get(struct policy *p, unsigned dir, struct ip4_prefix prefix)
{
    struct block *b = block_find(p, dir, prefix);
    if (b) {
        return b;
    }
    b = NEW(struct block);
    b->dir = (uint8_t) dir;
    b->prefix = prefix;
    b->id = block_hash(dir, prefix);
    while (b->id == 0 || block_id_is_taken(p, b->id)) {
        b->id++;
    }
    list_init(&b->pairs);
    list_init(&b->dirty);
    hmap_insert(&p->blocks, &b->node, block_hash(dir, prefix));
    hmap_insert(&p->block_ids, &b->by_id, b->id);
    return b;
}

void table_join_blocks(struct policy *p, struct rule *r)
{
    size_t n = r->spec ? r->spec->n_blocks : 0;
    r->blocks = xcalloc(n + 1, sizeof(struct block *));
    r->n_blocks = n;
    for (size_t i = 0; i < n; i++) {
        struct block *b = block_get(p, r->dir, r->spec->blocks[i]);
        b->rules = grow(b->rules, &b->rules_cap, b->n_rules + 1, sizeof(struct rule *));
        b->rules[b->n_rules++] = r;
        r->blocks[i] = b;
        if (b->n_rules == 1 && list_is_empty(&b->dirty)) {
            list_push_back(&p->dirty_blocks, &b->dirty);
        }
    }
}

void table_leave_blocks(struct policy *p, struct rule *r)
{
    for (size_t i = 0; i < r->n_blocks; i++) {
        struct block *b = r->blocks[i];
        for (size_t k = 0; k < b->n_rules; k++) {
            if (b->rules[k] == r) {
                b->rules[k] = b->rules[--b->n_rules];
                break;
            }
        }
        if (b->n_rules == 0 && list_is_empty(&b->dirty)) {
            list_push_back(&p->dirty_blocks, &b->dirty);
        }
    }
    free(TAKE(r->blocks));
    r->n_blocks = 0;
}

/* The next block around 'b' that rules name. */
static struct block *block_around(const struct policy *p, const struct block *b)
{
    for (unsigned len = b->prefix.len; len-- > 0;) {
        struct ip4_prefix wider = {b->prefix.addr & prefix_mask((uint8_t) len), (uint8_t) len};
        struct block *found = block_find(p, b->dir, wider);
        if (found && found->n_rules) {
            return found;
        }
    }
    return NULL;
}

/* The rules of the blocks around it apply to it, too. */
static void block_begin(struct policy *p, struct block *b)
{
    for (const struct block *around = block_around(p, b); around;
         around = block_around(p, around)) {
        for (size_t i = 0; i < around->n_rules; i++) {
            set_touch_classes(p, around->rules[i]->subject);
        }
    }
    b->there = true;
    p->blocks_changed[b->dir] = true;
    p->table->set_block(p->table_ctx, (enum policy_direction) b->dir, b->prefix, b->id, true);
}

static void block_end(struct policy *p, struct block *b)
{
    const struct block *around = block_around(p, b);
    while (!list_is_empty(&b->pairs)) {
        pair_remove(p, CONTAINER_OF(b->pairs.next, struct pair, of_peer));
    }
    if (b->there) {
        p->table->set_block(p->table_ctx, (enum policy_direction) b->dir, b->prefix,
                            around ? around->id : 0, false);
    }
    p->blocks_changed[b->dir] = true;
    hmap_remove(&p->blocks, &b->node);
    hmap_remove(&p->block_ids, &b->by_id);
    free(b->rules);
    free(b);
}

static int compare_blocks(const void *a, const void *b)
{
    struct ip4_prefix x = (*(struct block *const *) a)->prefix;
    struct ip4_prefix y = (*(struct block *const *) b)->prefix;
    return x.addr != y.addr ? (x.addr < y.addr ? -1 : 1) : (int) x.len - (int) y.len;
}

static void sort_blocks(struct policy *p, unsigned dir)
{
    size_t n = 0;
    struct block *b;
    free(p->sorted_blocks[dir]);
    p->sorted_blocks[dir] = xcalloc(p->blocks.n + 1, sizeof(struct block *));
    HMAP_FOREACH (b, struct block, node, &p->blocks) {
        if (b->dir == dir) {
            p->sorted_blocks[dir][n++] = b;
        }
    }
    qsort(p->sorted_blocks[dir], n, sizeof(struct block *), compare_blocks);
    for (size_t i = 0; i < n; i++) {
        p->sorted_blocks[dir][i]->at = i;
    }
    p->n_sorted_blocks[dir] = n;
    p->blocks_changed[dir] = false;
}

static void update_blocks(struct policy *p)
{
    struct list *link;
    while ((link = list_pop_front(&p->dirty_blocks))) {
        struct block *b = CONTAINER_OF(link, struct block, dirty);
        if (b->n_rules == 0) {
            block_end(p, b);
        } else if (!b->there) {
            block_begin(p, b);
        }
    }
    for (unsigned d = POLICY_EGRESS; d <= POLICY_INGRESS; d++) {
        if (p->blocks_changed[d]) {
            sort_blocks(p, d);
        }
    }
}

/* ---- the whole ---- */

static void ignore_address(void *ctx, uint32_t ip, const struct policy_classes *c)
{
}

static void ignore_block(void *ctx, enum policy_direction d, struct ip4_prefix p, uint32_t id,
                         bool there)
{
}

static void ignore_pair(void *ctx, const struct policy_pair_key *k, const struct policy_pair *v)
{
}

static void ignore_ports(void *ctx, uint32_t id, const struct policy_port_verdict *rows, size_t n,
                         bool there)
{
}

static void ignore_done(void *ctx)
{
}

void policy_want_table(struct policy *p, const struct policy_table_ops *ops, void *ctx)
{
    p->table = ops;
    p->table_ctx = ctx;
}

void policy_leave(struct policy *p)
{
    static const struct policy_table_ops nobody = {.set_address = ignore_address,
                                                   .set_block = ignore_block,
                                                   .set_pair = ignore_pair,
                                                   .set_ports = ignore_ports,
                                                   .done = ignore_done};
    p->table = p->table ? &nobody : NULL;
    p->flows = NULL;
}

static void set_address(struct policy *p, uint32_t ip)
{
    const struct endpoint *ep = endpoint_owner(p, ip);
    struct policy_classes c = {.unknown = ep && ep->local && !ep->pod->known};
    bool any = c.unknown;
    for (enum policy_direction d = POLICY_EGRESS; ep && !c.unknown && d <= POLICY_INGRESS; d++) {
        const struct class *subject = ep->classes[space_of(d, ROLE_SUBJECT)];
        const struct class *peer = ep->classes[space_of(d, ROLE_PEER)];
        c.subject[d] = subject ? subject->id : 0;
        c.peer[d] = peer ? peer->id : 0;
        any |= subject || peer;
    }
    p->table->set_address(p->table_ctx, ip, any ? &c : NULL);
}

void table_emit(struct policy *p)
{
    struct list *link;
    update_blocks(p);
    while (list_pop_front(&p->dirty_rules)) {
        /* Their classes are dirty, too. */
    }
    while ((link = list_pop_front(&p->dirty_classes))) {
        struct class *c = CONTAINER_OF(link, struct class, dirty);
        if (c->space % 2 == ROLE_SUBJECT) {
            pair_subject(p, c);
        } else {
            pair_peer(p, c);
        }
    }
    for (size_t i = 0; i < p->n_dirty_ips; i++) {
        if (i == 0 || p->dirty_ips[i] != p->dirty_ips[i - 1]) {
            set_address(p, p->dirty_ips[i]);
        }
    }
    ports_collect(p);
    p->table->done(p->table_ctx);
}
