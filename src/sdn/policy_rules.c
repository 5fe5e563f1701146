/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of active policies, and their share in flows: the sets of subjects and peers, ports and
 * address blocks.
 *
 * Priorities in the tables of the administrator's policies are by rank: 63 for each priority of
 * AdminNetworkPolicy, so that a change of one policy does not move rules of another priority; if
 * more rules share a priority, all ranks are packed.  Rules of NetworkPolicy only allow, so
 * their order does not matter: they have one priority, or as many as keep the conjunctions of
 * one flow below what a message holds. */
#include "sdn/policy_internal.h"

#include "base/mem.h"

#define NETWORK_TOP 20000
#define NETWORK_WHOLE 30000 /* Allowed for any peer. */
#define ADMIN_TOP 64000
#define ADMIN_A_LEVEL 63
#define BASELINE_TOP 1000

/* ---- parts of rules in flows ---- */

static uint32_t dim_hash(const struct dim *d)
{
    uint32_t key[3] = {(uint32_t) d->table << 16 | d->priority,
                       (uint32_t) d->is_port << 16 | (uint32_t) d->proto << 8 | d->len, d->value};
    return hash32(key, sizeof key);
}

static bool dim_same(const struct dim *a, const struct dim *b)
{
    return a->table == b->table && a->is_port == b->is_port && a->proto == b->proto &&
           a->len == b->len && a->priority == b->priority && a->value == b->value;
}

static bool cookie_is_taken(const struct policy *p, uint64_t cookie)
{
    const struct dim *d;
    HMAP_FOREACH_WITH_HASH (d, struct dim, by_cookie, (uint32_t) cookie, &p->dim_cookies) {
        if (d->cookie == cookie) {
            return true;
        }
    }
    return false;
}

/* Made from its content alone: 42 bits of a port's, a hash of a block's. */
static uint64_t dim_cookie(const struct policy *p, const struct dim *d)
{
    unsigned kind = d->proto == 6 ? 0 : d->proto == 17 ? 1 : 2;
    uint64_t id = (uint64_t) d->table << 39 | (uint64_t) d->priority << 23 | (uint64_t) kind << 21 |
                  (uint64_t) d->len << 16 | d->value;
    if (d->is_port) {
        return pipeline_cookie(PIPELINE_POLICY_PORT, id);
    }
    uint64_t key[2] = {(uint64_t) d->table << 16 | d->priority, (uint64_t) d->value << 8 | d->len};
    id = hash_bytes(key, sizeof key);
    while (cookie_is_taken(p, pipeline_cookie(PIPELINE_POLICY_BLOCK, id))) {
        id++;
    }
    return pipeline_cookie(PIPELINE_POLICY_BLOCK, id);
}

static struct dim *dim_get(struct policy *p, const struct dim *key)
{
    uint32_t hash = dim_hash(key);
    struct dim *d;
    HMAP_FOREACH_WITH_HASH (d, struct dim, node, hash, &p->dims) {
        if (dim_same(d, key)) {
            return d;
        }
    }
    d = NEW(struct dim);
    *d = *key;
    d->cookie = dim_cookie(p, key);
    list_init(&d->dirty);
    hmap_insert(&p->dims, &d->node, hash);
    hmap_insert(&p->dim_cookies, &d->by_cookie, (uint32_t) d->cookie);
    return d;
}

static void dim_touch(struct policy *p, struct dim *d)
{
    if (list_is_empty(&d->dirty)) {
        list_push_back(&p->dirty_dims, &d->dirty);
    }
}

static void rule_add_dim(struct policy *p, struct rule *r, const struct dim *key, uint8_t clause)
{
    struct dim *d = dim_get(p, key);
    d->refs = grow(d->refs, &d->refs_cap, d->n_refs + 1, sizeof *d->refs);
    d->refs[d->n_refs++] = (struct dim_ref){r, clause};
    dim_touch(p, d);
    r->dims = grow(r->dims, &r->dims_cap, r->n_dims + 1, sizeof(struct dim *));
    r->dims[r->n_dims++] = d;
}

static void rule_leave_dims(struct policy *p, struct rule *r)
{
    table_leave_blocks(p, r);
    for (size_t i = 0; i < r->n_dims; i++) {
        struct dim *d = r->dims[i];
        for (size_t k = 0; k < d->n_refs; k++) {
            if (d->refs[k].rule == r) {
                d->refs[k] = d->refs[--d->n_refs];
                break;
            }
        }
        dim_touch(p, d);
    }
    r->n_dims = 0;
}

struct port_adder {
    struct policy *policy;
    struct rule *rule;
    uint8_t proto, clause;
};

static void add_port(void *ctx, uint32_t value, unsigned len)
{
    const struct port_adder *a = ctx;
    struct dim key = {.table = a->rule->table,
                      .priority = a->rule->priority,
                      .is_port = true,
                      .proto = a->proto,
                      .value = value,
                      .len = (uint8_t) len};
    rule_add_dim(a->policy, a->rule, &key, a->clause);
}

/* Adds the rule to the flows of its ports and blocks. */
static void rule_join_dims(struct policy *p, struct rule *r)
{
    if (r->n_clauses < 2) {
        return;
    }
    const struct policy_rule_spec *spec = r->spec;
    bool blocks = rule_takes_blocks(r);
    if (p->table) {
        if (blocks) {
            table_join_blocks(p, r);
        }
        return;
    }
    for (size_t i = 0; blocks && i < spec->n_blocks; i++) {
        struct dim key = {.table = r->table,
                          .priority = r->priority,
                          .value = spec->blocks[i].addr,
                          .len = spec->blocks[i].len};
        rule_add_dim(p, r, &key, 2);
    }
    struct port_adder a = {p, r, r->proto, r->n_clauses};
    if (r->by_name) {
        add_port(&a, r->number, 16);
        return;
    }
    for (size_t i = 0; i < spec->n_ports; i++) {
        a.proto = spec->ports[i].proto;
        range_to_blocks(spec->ports[i].first, spec->ports[i].last, 16, add_port, &a);
    }
}

/* ---- priorities ---- */

static bool bucket_take(struct policy *p, struct rule *r)
{
    for (uint16_t i = 0; i < N_BUCKETS; i++) {
        if (p->bucket_rules[r->dir][i] < RULES_A_BUCKET) {
            p->bucket_rules[r->dir][i]++;
            r->bucket = i;
            r->priority = (uint16_t) (NETWORK_TOP - i);
            return true;
        }
    }
    return false;
}

static int compare_admin(const void *a, const void *b)
{
    const struct object *x = *(struct object *const *) a, *y = *(struct object *const *) b;
    return x->spec.priority != y->spec.priority ? x->spec.priority - y->spec.priority
                                                : strcmp(x->name, y->name);
}

/* Number of priorities that an object needs: rules of one index share one. */
static unsigned places(const struct object *o, enum policy_direction d)
{
    return o->broken ? 1 : (unsigned) o->spec.n_rules[d];
}

static void place_object(struct policy *p, struct object *o, enum policy_direction d, int top)
{
    for (size_t i = 0; i < o->n_rules; i++) {
        struct rule *r = o->rules[i];
        int priority = MAX(top - r->index, 1);
        if (r->dir != d || r->priority == priority) {
            continue;
        }
        rule_leave_dims(p, r);
        r->priority = (uint16_t) priority;
        rule_join_dims(p, r);
        set_touch_classes(p, r->subject);
        for (size_t k = 0; k < r->n_peers; k++) {
            set_touch_classes(p, r->peers[k]);
        }
        if (list_is_empty(&r->dirty)) {
            list_push_back(&p->dirty_rules, &r->dirty);
        }
    }
}

void admin_layout(struct policy *p, enum policy_direction d)
{
    CLEANUP_FREE struct object **list = NULL;
    size_t n = 0, cap = 0;
    struct object *o;
    LIST_FOREACH (o, struct object, link, &p->admin) {
        if (o->active && o->spec.kind == POLICY_ADMIN) {
            list = grow(list, &cap, n + 1, sizeof(struct object *));
            list[n++] = o;
        }
    }
    if (n) {
        qsort(list, n, sizeof(struct object *), compare_admin);
    }
    bool fits = true;
    unsigned level = 0;
    for (size_t i = 0; i < n; i++) {
        bool same = i && list[i]->spec.priority == list[i - 1]->spec.priority;
        level = (same ? level : 0) + places(list[i], d);
        fits &= level <= ADMIN_A_LEVEL;
    }
    int before = 0;
    for (size_t i = 0; i < n; i++) {
        bool same = i && list[i]->spec.priority == list[i - 1]->spec.priority;
        before = fits && !same ? 0 : before;
        int base = fits ? ADMIN_TOP - ADMIN_A_LEVEL * list[i]->spec.priority : ADMIN_TOP;
        place_object(p, list[i], d, base - before);
        before += (int) places(list[i], d);
    }
    p->admin_changed[d] = false;
}

static uint8_t table_of(const struct object *o, enum policy_direction d)
{
    static const uint8_t tables[][2] = {
        [POLICY_NETWORK] = {EGRESS_POLICY, INGRESS_POLICY},
        [POLICY_ADMIN] = {EGRESS_ADMIN, INGRESS_ADMIN},
        [POLICY_BASELINE] = {EGRESS_BASELINE, INGRESS_BASELINE},
    };
    return tables[o->spec.kind][d];
}

/* ---- rules ---- */

static bool conj_is_taken(const struct policy *p, uint32_t id)
{
    return hmap_first_with_hash(&p->rules, id) != NULL; /* The id is its own hash. */
}

static uint32_t conj_id(const struct policy *p, const struct rule *r)
{
    uint64_t key[3] = {r->object->hash,
                       (uint64_t) r->dir << 48 | (uint64_t) r->index << 32 |
                           (uint64_t) r->by_name << 24 | (uint64_t) r->proto << 16 | r->number,
                       r->name_hash};
    uint32_t id = hash32(key, sizeof key);
    while (id == 0 || conj_is_taken(p, id)) {
        id++;
    }
    return id;
}

/* Adds the complete rule 'r' (subject, peers and all its names are set) to all indexes. */
static void rule_add(struct policy *p, struct rule *r)
{
    struct object *o = r->object;
    r->table = table_of(o, (enum policy_direction) r->dir);
    r->n_clauses = (uint8_t) (1 + rule_has_peers(r) + rule_has_ports(r));
    if (o->spec.kind == POLICY_ADMIN) {
        p->admin_changed[r->dir] = true;
        r->priority = 1; /* Until admin_layout. */
    } else if (o->spec.kind == POLICY_BASELINE) {
        r->priority = (uint16_t) (BASELINE_TOP - r->index);
    } else if (r->n_clauses == 1) {
        r->priority = NETWORK_WHOLE;
        r->bucket = N_BUCKETS;
    } else if (!bucket_take(p, r)) {
        free(r->peers);
        free(r);
        return; /* The rule allows nothing; the object's subject set isolates. */
    }
    r->conj_id = conj_id(p, r);
    hmap_insert(&p->rules, &r->node, r->conj_id);
    list_init(&r->dirty);
    list_push_back(&p->dirty_rules, &r->dirty);
    o->rules = grow(o->rules, &o->rules_cap, o->n_rules + 1, sizeof(struct rule *));
    o->rules[o->n_rules++] = r;
    set_use(p, r->subject, r, o, 1);
    for (size_t i = 0; i < r->n_peers; i++) {
        set_use(p, r->peers[i], r, o, 2);
    }
    rule_join_dims(p, r);
}

static void rule_remove(struct policy *p, struct rule *r)
{
    struct object *o = r->object;
    set_unuse(p, r->subject, r, o, 1);
    for (size_t i = 0; i < r->n_peers; i++) {
        set_unuse(p, r->peers[i], r, o, 2);
    }
    rule_leave_dims(p, r);
    if (o->spec.kind == POLICY_NETWORK && r->bucket < N_BUCKETS) {
        p->bucket_rules[r->dir][r->bucket]--;
    }
    hmap_remove(&p->rules, &r->node);
    list_remove(&r->dirty);
    emit_nothing(p, pipeline_cookie(PIPELINE_POLICY_RULE, r->conj_id));
    free(r->peers);
    free(r->dims);
    free(r);
}

static struct rule *rule_new(struct object *o, enum policy_direction d, size_t index,
                             const struct policy_rule_spec *spec)
{
    struct rule *r = NEW(struct rule);
    r->object = o;
    r->dir = (uint8_t) d;
    r->index = (uint16_t) index;
    r->spec = spec;
    r->action = (uint8_t) (spec ? spec->action : POLICY_DENY);
    r->subject = o->subject[d];
    return r;
}

/* ---- ports by name ---- */

static void template_new(struct policy *p, struct object *o, enum policy_direction d, size_t index,
                         const struct policy_rule_spec *spec, const struct policy_port_name *name)
{
    struct template *t = NEW(struct template);
    t->object = o;
    t->dir = d;
    t->index = (uint16_t) index;
    t->spec = spec;
    t->name = *name;
    if (d == POLICY_INGRESS) {
        t->n_bases = 1;
        t->bases = xcalloc(1, sizeof(struct set *));
        t->bases[0] = o->subject[d];
    } else if (spec->any_peer) {
        t->n_bases = 1;
        t->bases = xcalloc(1, sizeof(struct set *));
        t->bases[0] = set_get(p, space_of(d, ROLE_PEER), p->everybody);
    } else {
        t->n_bases = spec->n_peers;
        t->bases = xcalloc(spec->n_peers + 1, sizeof(struct set *));
        for (size_t i = 0; i < spec->n_peers; i++) {
            t->bases[i] = set_get(p, space_of(d, ROLE_PEER), spec->peers[i]);
        }
    }
    o->templates =
        grow(o->templates, &o->templates_cap, o->n_templates + 1, sizeof(struct template *));
    o->templates[o->n_templates++] = t;
    for (size_t i = 0; i < t->n_bases; i++) {
        set_add_template(p, t->bases[i], t);
    }
}

static void take_peers(struct policy *p, struct rule *r)
{
    r->n_peers = r->spec->n_peers;
    r->peers = xcalloc(r->n_peers + 1, sizeof(struct set *));
    for (size_t i = 0; i < r->n_peers; i++) {
        r->peers[i] =
            set_get(p, space_of((enum policy_direction) r->dir, ROLE_PEER), r->spec->peers[i]);
    }
}

void template_expand(struct policy *p, struct template *t, uint8_t proto, uint16_t number)
{
    for (size_t i = 0; i < t->n_rules; i++) {
        if (t->rules[i]->proto == proto && t->rules[i]->number == number) {
            return;
        }
    }
    struct rule *r = rule_new(t->object, t->dir, t->index, t->spec);
    r->by_name = true;
    r->name_hash = hash_string(t->name.name) + t->name.proto;
    r->proto = proto;
    r->number = number;
    if (t->dir == POLICY_INGRESS) {
        r->subject = set_by_name(p, t->bases[0], &t->name, proto, number);
        take_peers(p, r);
    } else {
        r->n_peers = t->n_bases;
        r->peers = xcalloc(t->n_bases + 1, sizeof(struct set *));
        for (size_t i = 0; i < t->n_bases; i++) {
            r->peers[i] = set_by_name(p, t->bases[i], &t->name, proto, number);
        }
    }
    size_t before = t->object->n_rules;
    rule_add(p, r);
    if (t->object->n_rules > before) {
        t->rules = grow(t->rules, &t->rules_cap, t->n_rules + 1, sizeof(struct rule *));
        t->rules[t->n_rules++] = r;
    }
}

static bool means_somebody(const struct rule *r)
{
    if (r->dir == POLICY_INGRESS) {
        return r->subject->n_classes;
    }
    for (size_t i = 0; i < r->n_peers; i++) {
        if (r->peers[i]->n_classes) {
            return true;
        }
    }
    return false;
}

static void object_drop_rule(struct object *o, const struct rule *r)
{
    for (size_t i = 0; i < o->n_rules; i++) {
        if (o->rules[i] == r) {
            o->rules[i] = o->rules[--o->n_rules];
            return;
        }
    }
}

void templates_collect(struct policy *p)
{
    struct object *o;
    if (!p->meanings_changed) {
        return;
    }
    p->meanings_changed = false;
    HMAP_FOREACH (o, struct object, node, &p->objects) {
        for (size_t i = 0; i < o->n_templates; i++) {
            struct template *t = o->templates[i];
            for (size_t k = t->n_rules; k-- > 0;) {
                struct rule *r = t->rules[k];
                if (!means_somebody(r)) {
                    t->rules[k] = t->rules[--t->n_rules];
                    object_drop_rule(o, r);
                    rule_remove(p, r);
                }
            }
        }
    }
}

/* ---- objects ---- */

static void add_rules(struct policy *p, struct object *o, enum policy_direction d)
{
    for (size_t i = 0; i < o->spec.n_rules[d]; i++) {
        const struct policy_rule_spec *spec = &o->spec.rules[d][i];
        bool nobody = !spec->any_peer && spec->n_peers == 0 && spec->n_blocks == 0;
        if (!nobody && (spec->any_port || spec->n_ports)) {
            struct rule *r = rule_new(o, d, i, spec);
            take_peers(p, r);
            rule_add(p, r);
        }
        for (size_t k = 0; !nobody && k < spec->n_named; k++) {
            template_new(p, o, d, i, spec, &spec->named[k]);
        }
    }
}

void object_activate(struct policy *p, struct object *o)
{
    bool network = o->spec.kind == POLICY_NETWORK;
    o->active = true;
    for (enum policy_direction d = POLICY_EGRESS; d <= POLICY_INGRESS; d++) {
        if (network ? !o->spec.isolates[d] : !o->broken && o->spec.n_rules[d] == 0) {
            continue;
        }
        o->subject[d] = set_get(p, space_of(d, ROLE_SUBJECT), o->spec.subject);
        set_use(p, o->subject[d], NULL, o, network ? CLAUSE_ISOLATES : CLAUSE_HOLDS);
        if (network) {
            add_rules(p, o, d);
        } else if (o->broken) {
            rule_add(p, rule_new(o, d, 0, NULL));
        } else {
            add_rules(p, o, d);
        }
        p->admin_changed[d] |= o->spec.kind == POLICY_ADMIN;
    }
}

void object_deactivate(struct policy *p, struct object *o)
{
    for (size_t i = 0; i < o->n_templates; i++) {
        struct template *t = o->templates[i];
        for (size_t k = 0; k < t->n_bases; k++) {
            set_remove_template(p, t->bases[k], t);
        }
        free(t->bases);
        free(t->rules);
        free(t);
    }
    for (size_t i = 0; i < o->n_rules; i++) {
        rule_remove(p, o->rules[i]);
    }
    for (enum policy_direction d = POLICY_EGRESS; d <= POLICY_INGRESS; d++) {
        bool network = o->spec.kind == POLICY_NETWORK;
        if (o->subject[d]) {
            set_unuse(p, o->subject[d], NULL, o, network ? CLAUSE_ISOLATES : CLAUSE_HOLDS);
        }
        o->subject[d] = NULL;
        p->admin_changed[d] |= o->spec.kind == POLICY_ADMIN;
    }
    free(o->rules);
    free(o->templates);
    o->rules = NULL;
    o->templates = NULL;
    o->n_rules = o->rules_cap = o->n_templates = o->templates_cap = 0;
    o->active = false;
}
