/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ovs/flow_table.h"

#include "base/mem.h"
#include "sdn/pipeline.h"

enum state {
    ABSENT,    /* The switch does not have it (as far as we know). */
    ADDING,    /* Part of the bundle in flight. */
    INSTALLED, /* The switch has it. */
    REMOVING,  /* Deleted or overwritten by the bundle in flight. */
};

struct flow_entry {
    struct hmap_node node;
    struct list link;         /* In t->dirty or t->sent. */
    struct flow_entry *next;  /* In the group. */
    struct flow_group *group; /* NULL: unwanted, here only because the switch has or gets it. */
    struct of_flow *flow;
    uint32_t round; /* Of the group, in which it was last wanted. */
    uint8_t state;
    bool seen; /* In the dump in progress. */
};

struct flow_group {
    struct hmap_node node;
    uint64_t cookie;
    uint64_t generation; /* Of its last change. */
    uint32_t round;      /* How often it was set. */
    struct flow_entry *first;
};

static uint32_t cookie_hash(uint64_t cookie)
{
    return hash32(&cookie, sizeof cookie);
}

void flow_table_init(struct flow_table *t)
{
    *t = (struct flow_table){.building = 1};
    hmap_init(&t->entries);
    hmap_init(&t->groups);
    list_init(&t->dirty);
    list_init(&t->sent);
}

static void entry_free(struct flow_table *t, struct flow_entry *x)
{
    hmap_remove(&t->entries, &x->node);
    list_remove(&x->link);
    of_flow_free(x->flow);
    free(x);
}

void flow_table_done(struct flow_table *t)
{
    struct flow_entry *x;
    HMAP_FOREACH (x, struct flow_entry, node, &t->entries) {
        entry_free(t, x);
    }
    struct flow_group *g;
    HMAP_FOREACH (g, struct flow_group, node, &t->groups) {
        hmap_remove(&t->groups, &g->node);
        free(g);
    }
    hmap_done(&t->entries);
    hmap_done(&t->groups);
}

static void mark_dirty(struct flow_table *t, struct flow_entry *x)
{
    /* One that is in flight stays in 'sent', and is looked at when the answer comes. */
    if (list_is_empty(&x->link)) {
        list_push_back(&t->dirty, &x->link);
    }
}

static struct flow_entry *entry_new(struct flow_table *t, struct of_flow *f, struct flow_group *g)
{
    struct flow_entry *x = NEW(struct flow_entry);
    x->flow = f;
    x->group = g;
    list_init(&x->link);
    hmap_insert(&t->entries, &x->node, of_flow_hash(f));
    return x;
}

/* The entry which the switch should have for the key of 'f': of those wanted the one with the lowest
 * cookie; NULL when none is wanted. */
static struct flow_entry *winner(const struct flow_table *t, uint32_t hash, const struct of_flow *f)
{
    struct flow_entry *x, *best = NULL;
    HMAP_FOREACH_WITH_HASH (x, struct flow_entry, node, hash, &t->entries) {
        if (x->group && (!best || x->flow->cookie < best->flow->cookie) &&
            of_flow_same_key(x->flow, f)) {
            best = x;
        }
    }
    return best;
}

/* ---- groups ---- */

static struct flow_group *find_group(const struct flow_table *t, uint64_t cookie)
{
    struct flow_group *g;
    HMAP_FOREACH_WITH_HASH (g, struct flow_group, node, cookie_hash(cookie), &t->groups) {
        if (g->cookie == cookie) {
            return g;
        }
    }
    return NULL;
}

/* The group no longer wants 'x', which is out of the group's chain already. */
static void let_go(struct flow_table *t, struct flow_entry *x)
{
    t->n_wanted--;
    x->group = NULL;
    if (x->state == ABSENT) {
        entry_free(t, x);
    } else {
        mark_dirty(t, x);
    }
}

/* The entry that equals 'f', wanted or not; there is one at most. */
static struct flow_entry *find_equal(const struct flow_table *t, const struct of_flow *f)
{
    struct flow_entry *x;
    HMAP_FOREACH_WITH_HASH (x, struct flow_entry, node, of_flow_hash(f), &t->entries) {
        if (of_flow_equal(x->flow, f)) {
            return x;
        }
    }
    return NULL;
}

/* Whether the group already wants another flow of the key in this round. */
static bool has_key(const struct flow_table *t, const struct flow_group *g, const struct of_flow *f)
{
    const struct flow_entry *x;
    HMAP_FOREACH_WITH_HASH (x, struct flow_entry, node, of_flow_hash(f), &t->entries) {
        if (x->group == g && x->round == g->round && of_flow_same_key(x->flow, f)) {
            return true;
        }
    }
    return false;
}

/* An entry for 'f' (taken over), which equals 'x' if there is that, of group 'g'. */
static struct flow_entry *want(struct flow_table *t, struct of_flow *f, struct flow_entry *x,
                               struct flow_group *g)
{
    if (x) {
        of_flow_free(f); /* Given up a moment ago, or in the switch from before. */
        x->group = g;
    } else {
        x = entry_new(t, f, g);
    }
    t->n_wanted++;
    mark_dirty(t, x);
    return x;
}

uint64_t flow_table_set_group(struct flow_table *t, uint64_t cookie, struct of_flow_list *flows)
{
    struct flow_group *g = find_group(t, cookie);
    if (!g) {
        if (!flows->n) {
            return 0;
        }
        g = NEW(struct flow_group);
        g->cookie = cookie;
        hmap_insert(&t->groups, &g->node, cookie_hash(cookie));
    }
    struct flow_entry *old = g->first, *new = NULL;
    bool changed = false;
    g->round++;
    for (size_t i = 0; i < flows->n; i++) {
        struct of_flow *f = flows->flows[i];
        assert(pipeline_group(f->cookie) == cookie);
        struct flow_entry *x = find_equal(t, f);
        if (has_key(t, g, f)) {
            of_flow_free(f);
        } else if (x && x->group == g) {
            of_flow_free(f);
            x->round = g->round;
        } else {
            x = want(t, f, x, g);
            x->round = g->round;
            x->next = new;
            new = x;
            changed = true;
        }
    }
    free(flows->flows);
    *flows = (struct of_flow_list){0};

    while (old) {
        struct flow_entry *x = old;
        old = x->next;
        if (x->round == g->round) {
            x->next = new;
            new = x;
        } else {
            let_go(t, x);
            changed = true;
        }
    }
    g->first = new;
    if (changed) {
        g->generation = t->building;
    }
    uint64_t generation = g->generation;
    if (!g->first) {
        hmap_remove(&t->groups, &g->node);
        free(g);
    }
    return generation;
}

/* ---- what the switch has ---- */

void flow_table_disconnect(struct flow_table *t)
{
    t->dumped = false;
    t->in_flight = false;
    struct flow_entry *x;
    HMAP_FOREACH (x, struct flow_entry, node, &t->entries) {
        if (x->group) {
            x->state = ABSENT;
            list_remove(&x->link);
        } else {
            entry_free(t, x);
        }
    }
}

void flow_table_dump_begin(struct flow_table *t)
{
    assert(!t->in_flight);
    struct flow_entry *x;
    HMAP_FOREACH (x, struct flow_entry, node, &t->entries) {
        x->seen = false;
    }
    t->foreign = 0;
}

void flow_table_dump_flow(struct flow_table *t, struct of_flow *f)
{
    if (pipeline_expires(f)) {
        of_flow_free(f);
        return;
    }
    struct flow_entry *x = find_equal(t, f);
    if (x) {
        of_flow_free(f);
    } else {
        x = entry_new(t, f, NULL);
        mark_dirty(t, x);
        t->foreign++;
    }
    x->state = INSTALLED;
    x->seen = true;
}

void flow_table_dump_end(struct flow_table *t)
{
    struct flow_entry *x;
    HMAP_FOREACH (x, struct flow_entry, node, &t->entries) {
        if (x->seen) {
            continue;
        }
        if (!x->group) {
            entry_free(t, x);
            continue;
        }
        t->foreign += x->state == INSTALLED;
        x->state = ABSENT;
        mark_dirty(t, x);
    }
    t->dumped = true;
}

/* ---- bundles ---- */

struct changes {
    struct flow_change *list;
    size_t n, cap;
};

static void add_change(struct changes *c, enum of_flow_command command, const struct flow_entry *x,
                       uint16_t idle_s)
{
    c->list = grow(c->list, &c->cap, c->n + 1, sizeof *c->list);
    c->list[c->n++] = (struct flow_change){command, x->flow, idle_s};
}

/* Nobody wants it any more. */
static void add_end(struct changes *c, const struct flow_entry *x)
{
    uint16_t idle_s = pipeline_linger_s(x->flow->cookie);
    add_change(c, idle_s ? OF_FLOW_ADD : OF_FLOW_DELETE_STRICT, x, idle_s);
}

static void mark_sent(struct flow_table *t, struct flow_entry *x, enum state state)
{
    x->state = (uint8_t) state;
    list_remove(&x->link);
    list_push_back(&t->sent, &x->link);
}

/* Settles the key of 'f': its winner goes to 'adds' unless the switch has it; any other flow which the
 * switch has for the key is overwritten by that, or deleted when nothing is wanted. */
static void settle(struct flow_table *t, uint32_t hash, const struct of_flow *f,
                   struct changes *deletes, struct list *adds)
{
    struct flow_entry *w = winner(t, hash, f), *x;
    HMAP_FOREACH_WITH_HASH (x, struct flow_entry, node, hash, &t->entries) {
        if (x != w && x->state == INSTALLED && of_flow_same_key(x->flow, f)) {
            if (!w) {
                add_end(deletes, x);
            }
            mark_sent(t, x, REMOVING);
        }
    }
    if (w && w->state == ABSENT) {
        w->state = ADDING;
        list_remove(&w->link);
        list_push_back(adds, &w->link);
    }
}

size_t flow_table_build(struct flow_table *t, struct flow_change **ret)
{
    if (!t->dumped || t->in_flight) {
        return 0;
    }
    struct changes changes = {0};
    struct list adds = LIST_INIT(&adds);
    struct list *link;
    while ((link = list_pop_front(&t->dirty))) {
        struct flow_entry *x = CONTAINER_OF(link, struct flow_entry, link);
        settle(t, x->node.hash, x->flow, &changes, &adds);
    }
    while ((link = list_pop_front(&adds))) {
        struct flow_entry *x = CONTAINER_OF(link, struct flow_entry, link);
        add_change(&changes, OF_FLOW_ADD, x, 0);
        mark_sent(t, x, ADDING);
    }
    if (changes.n == 0) {
        t->committed = t->building++;
        return 0;
    }
    t->building++;
    t->in_flight = true;
    *ret = changes.list;
    return changes.n;
}

void flow_table_built_done(struct flow_table *t, bool committed)
{
    assert(t->in_flight);
    if (!committed) {
        flow_table_disconnect(t);
        return;
    }
    t->in_flight = false;
    /* Changes made meanwhile belong to the generation that is being built. */
    t->committed = t->building - 1;
    struct list *link;
    while ((link = list_pop_front(&t->sent))) {
        struct flow_entry *x = CONTAINER_OF(link, struct flow_entry, link);
        bool absent = x->state == REMOVING;
        x->state = absent ? ABSENT : INSTALLED;
        if (absent && !x->group) {
            entry_free(t, x);
        } else if (absent || !x->group) {
            mark_dirty(t,
                       x); /* It was wanted again, or given up, while the bundle was in flight. */
        }
    }
}
