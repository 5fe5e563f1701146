/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ovs/flow_table.h"

#include "base/mem.h"
#include "sdn/pipeline.h"

/* State of a record. */
enum state {
    ABSENT,    /* The switch is not known to have it. */
    ADDING,    /* Part of the bundle in flight. */
    INSTALLED, /* The switch has it. */
    REMOVING,  /* Deleted or overwritten by the bundle in flight. */
};

#define LIST_KEPT 1024 /* Capacity that an empty list keeps. */

static struct flow_record *at(const struct flow_table *t, uint32_t id)
{
    return flow_store_at(&t->store, id);
}

/* ---- lists ---- */

static void list_add(struct flow_list *l, uint32_t id)
{
    l->records = grow(l->records, &l->cap, l->n + 1, sizeof *l->records);
    l->records[l->n++] = id;
}

static void list_clear(struct flow_list *l)
{
    l->n = 0;
    if (l->cap > LIST_KEPT) {
        free(l->records);
        *l = (struct flow_list){0};
    }
}

static void list_free(struct flow_list *l)
{
    free(l->records);
    *l = (struct flow_list){0};
}

void flow_table_init(struct flow_table *t)
{
    *t = (struct flow_table){.building = 1};
    flow_store_init(&t->store);
}

void flow_table_done(struct flow_table *t)
{
    flow_store_done(&t->store);
    list_free(&t->dirty);
    list_free(&t->sent);
}

/* Records in flight are checked when the answer comes, and all records after a dump. */
static void mark_dirty(struct flow_table *t, uint32_t id)
{
    struct flow_record *x = at(t, id);
    if (t->dumped && !x->dirty && !x->sent) {
        x->dirty = true;
        list_add(&t->dirty, id);
    }
}

/* No group wants it, and the switch does not have it. */
static void drop(struct flow_table *t, uint32_t id)
{
    if (!at(t, id)->dirty) { /* Otherwise it is settled later. */
        flow_store_remove(&t->store, id);
    }
}

/* ---- groups ---- */

/* The group no longer wants it. */
static void let_go(struct flow_table *t, uint32_t id)
{
    struct flow_record *x = at(t, id);
    t->n_wanted--;
    x->wanted = false;
    if (x->state == ABSENT) {
        drop(t, id);
    } else {
        mark_dirty(t, id);
    }
}

/* The record that equals 'f', wanted or not; at most one exists; 0: none.  '*ret_taken': the group
 * already wants a flow with this key. */
static uint32_t find(struct flow_table *t, const struct of_flow *f, uint32_t hash, bool *ret_taken)
{
    uint32_t equal = 0;
    *ret_taken = false;
    FLOW_STORE_WITH_HASH(id, &t->store, hash)
    {
        const struct of_flow *x = flow_store_get(&t->store, id, 0);
        *ret_taken |= at(t, id)->marked && of_flow_same_key(x, f);
        if (of_flow_equal(x, f)) {
            equal = id;
        }
    }
    return equal;
}

/* Adds a flow to the group; returns true if the group did not want it before. */
static bool want(struct flow_table *t, const struct of_flow *f)
{
    uint32_t hash = of_flow_hash(f);
    bool taken;
    uint32_t id = find(t, f, hash, &taken);
    if (taken) {
        return false;
    }
    id = id ? id : flow_store_add(&t->store, f, hash);
    struct flow_record *x = at(t, id);
    x->marked = true;
    if (x->wanted) {
        return false;
    }
    x->wanted =
        /* Also a record that the group gave up a moment ago, or that the switch has from before. */
        true;
    t->n_wanted++;
    mark_dirty(t, id);
    return true;
}

uint64_t flow_table_set_group(struct flow_table *t, uint64_t cookie, struct of_flow_list *flows)
{
    bool changed = false;
    for (size_t i = 0; i < flows->n; i++) {
        assert(pipeline_group(flows->flows[i]->cookie) == cookie);
        changed |= want(t, flows->flows[i]);
    }
    of_flow_list_done(flows);

    uint32_t g = flow_store_find_group(&t->store, cookie), next;
    for (uint32_t id = g ? flow_store_group(&t->store, g)->first : 0; id; id = next) {
        struct flow_record *x = at(t, id);
        next = x->after;
        if (x->wanted && !x->marked) {
            changed = true;
            let_go(t, id);
        } else {
            x->marked = false;
        }
    }
    /* The group ended with its last flow, because the switch had none of its flows. */
    g = flow_store_find_group(&t->store, cookie);
    if (!g) {
        return changed ? t->building : 0;
    }
    struct flow_group *group = flow_store_group(&t->store, g);
    if (changed) {
        group->generation = t->building;
    }
    return group->generation;
}

/* ---- what the switch has ---- */

void flow_table_disconnect(struct flow_table *t)
{
    t->dumped = false;
    t->in_flight = false;
    list_clear(&t->dirty);
    list_clear(&t->sent);
    FLOW_STORE_FOREACH(id, &t->store)
    {
        struct flow_record *x = at(t, id);
        x->dirty = x->sent = false;
        x->state = ABSENT;
        if (!x->wanted) {
            flow_store_remove(&t->store, id);
        }
    }
}

void flow_table_dump_begin(struct flow_table *t)
{
    assert(!t->in_flight);
    FLOW_STORE_FOREACH(id, &t->store)
    {
        at(t, id)->seen = false;
    }
    t->foreign = 0;
}

void flow_table_dump_flow(struct flow_table *t, const struct of_flow *f)
{
    if (pipeline_expires(f)) {
        return;
    }
    uint32_t hash = of_flow_hash(f);
    bool taken;
    uint32_t id = find(t, f, hash, &taken);
    if (!id) {
        id = flow_store_add(&t->store, f, hash);
        t->foreign++;
    }
    at(t, id)->state = INSTALLED;
    at(t, id)->seen = true;
}

void flow_table_dump_end(struct flow_table *t)
{
    t->dumped = true;
    FLOW_STORE_FOREACH(id, &t->store)
    {
        struct flow_record *x = at(t, id);
        if (!x->seen) {
            t->foreign += x->wanted && x->state == INSTALLED;
            x->state = ABSENT;
        }
        if (x->wanted && !x->seen) {
            mark_dirty(t, id);
        } else if (!x->wanted && x->seen) {
            mark_dirty(t, id);
        } else if (!x->wanted) {
            drop(t, id);
        }
    }
}

/* ---- bundles ---- */

struct changes {
    struct flow_change *list;
    size_t n, cap;
};

static void add_change(struct changes *c, enum of_flow_command command, uint32_t id,
                       uint16_t idle_s)
{
    c->list = grow(c->list, &c->cap, c->n + 1, sizeof *c->list);
    c->list[c->n++] = (struct flow_change){command, id, idle_s};
}

static uint64_t cookie_of(struct flow_table *t, uint32_t id)
{
    return flow_store_get(&t->store, id, 0)->cookie;
}

/* No group wants it any more. */
static void add_end(struct flow_table *t, struct changes *c, uint32_t id)
{
    uint16_t idle_s = pipeline_linger_s(cookie_of(t, id));
    add_change(c, idle_s ? OF_FLOW_ADD : OF_FLOW_DELETE_STRICT, id, idle_s);
}

static void mark_sent(struct flow_table *t, uint32_t id, enum state state)
{
    struct flow_record *x = at(t, id);
    x->state = (unsigned) state & 3u;
    x->dirty = false;
    x->sent = true;
    list_add(&t->sent, id);
}

static bool same_key(struct flow_table *t, uint32_t a, uint32_t b)
{
    return a == b ||
           of_flow_same_key(flow_store_get(&t->store, a, 0), flow_store_get(&t->store, b, 1));
}

/* The record that the switch should have among those with the key of 'of': the wanted one with the
 * lowest cookie; 0 when none is wanted. */
static uint32_t winner(struct flow_table *t, uint32_t hash, uint32_t of)
{
    uint32_t best = 0;
    FLOW_STORE_WITH_HASH(id, &t->store, hash)
    {
        if (at(t, id)->wanted && same_key(t, id, of) &&
            (!best || cookie_of(t, id) < cookie_of(t, best))) {
            best = id;
        }
    }
    return best;
}

/* Settles the key of a record: the winner goes to 'adds' unless the switch has it.  Any other flow
 * of the key in the switch is overwritten by the winner, or deleted when no flow is wanted. */
static void settle(struct flow_table *t, uint32_t of, struct changes *deletes, struct changes *adds)
{
    uint32_t hash = at(t, of)->hash, w = winner(t, hash, of);
    FLOW_STORE_WITH_HASH(id, &t->store, hash)
    {
        if (id != w && at(t, id)->state == INSTALLED && same_key(t, id, of)) {
            if (!w) {
                add_end(t, deletes, id);
            }
            mark_sent(t, id, REMOVING);
        }
    }
    if (w && at(t, w)->state == ABSENT) {
        add_change(adds, OF_FLOW_ADD, w, 0);
        mark_sent(t, w, ADDING);
    }
}

size_t flow_table_build(struct flow_table *t, struct flow_change **ret)
{
    if (!t->dumped || t->in_flight) {
        return 0;
    }
    struct changes changes = {0}, adds = {0};
    for (size_t i = 0; i < t->dirty.n; i++) {
        uint32_t id = t->dirty.records[i];
        struct flow_record *x = at(t, id);
        if (!x->dirty) {
            continue; /* Already settled with another record of its key. */
        }
        x->dirty = false;
        if (!x->wanted && x->state == ABSENT) {
            drop(t, id);
        } else {
            settle(t, id, &changes, &adds);
        }
    }
    list_clear(&t->dirty);
    for (size_t i = 0; i < adds.n; i++) {
        add_change(&changes, adds.list[i].command, adds.list[i].record, 0);
    }
    free(adds.list);
    if (changes.n == 0) {
        t->committed = t->building++;
        return 0;
    }
    t->building++;
    t->in_flight = true;
    *ret = changes.list;
    return changes.n;
}

const struct of_flow *flow_table_flow(struct flow_table *t, const struct flow_change *c)
{
    return flow_store_get(&t->store, c->record, 0);
}

void flow_table_built_done(struct flow_table *t, bool committed)
{
    assert(t->in_flight);
    if (!committed) {
        flow_table_disconnect(t);
        return;
    }
    t->in_flight = false;
    /* Later changes belong to the generation after this bundle. */
    t->committed = t->building - 1;
    for (size_t i = 0; i < t->sent.n; i++) {
        uint32_t id = t->sent.records[i];
        struct flow_record *x = at(t, id);
        bool absent = x->state == REMOVING;
        x->sent = false;
        x->state = absent ? ABSENT : INSTALLED;
        if (absent && !x->wanted) {
            drop(t, id);
        } else if (absent || !x->wanted) {
            mark_dirty(t,
                       id); /* It was wanted again, or given up, while the bundle was in flight. */
        }
    }
    list_clear(&t->sent);
}
