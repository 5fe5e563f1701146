/* SPDX-License-Identifier: Apache-2.0 */
#include "sdn/egress.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"

/* A name in rules, and its addresses. */
struct name {
    struct ip4_prefix *ips; /* All of length 32. */
    size_t n_ips;
    size_t uses; /* Rules with the name. */
    char *text;
};

struct policy_rule {
    bool allow;
    struct ip4_prefix to;
    struct name *name; /* NULL: the rule has 'to'. */
};

struct policy_object {
    struct policy_rule *rules;
    size_t n;
    char *broken;   /* The reason why it cannot be applied; NULL: it can. */
    char *reported; /* The last 'why' handed out; NULL: none. */
};

struct project {
    struct list in_network;
    struct network *network;
    char *name;
    bool known; /* It has a VNID. */
    struct smap policies;
};

/* The projects with a VNID. */
struct network {
    struct hmap_node node;
    struct list projects, in_dirty;
    uint32_t vnid;
    struct firewall_rule *rules; /* In effect. */
    size_t n_rules;
    struct firewall_block *blocks; /* Handed out. */
    size_t n_blocks;
};

struct egress {
    struct egress_ops ops;
    void *ctx;
    struct smap projects, names;
    struct hmap networks;
    struct list dirty;
};

/* ---- names ---- */

static void free_name(void *p)
{
    struct name *n = p;
    free(n->ips);
    free(n->text);
    free(n);
}

static struct name *take_name(struct egress *e, const char *text)
{
    struct name *n = smap_get(&e->names, text);
    if (!n) {
        n = NEW(struct name);
        n->text = xstrdup(text);
        smap_set(&e->names, text, n);
        if (e->ops.name) {
            e->ops.name(e->ctx, text, true);
        }
    }
    n->uses++;
    return n;
}

static void give_name(struct egress *e, struct name *n)
{
    if (--n->uses == 0) {
        if (e->ops.name) {
            e->ops.name(e->ctx, n->text, false);
        }
        CLEANUP_FREE char *text = xstrdup(n->text);
        smap_remove(&e->names, text);
    }
}

/* ---- objects ---- */

static void free_object(void *p)
{
    struct policy_object *o = p;
    free(o->rules);
    free(o->broken);
    free(o->reported);
    free(o);
}

static void clear_rules(struct egress *e, struct policy_object *o)
{
    for (size_t i = 0; i < o->n; i++) {
        if (o->rules[i].name) {
            give_name(e, o->rules[i].name);
        }
    }
    o->n = 0;
    free(TAKE(o->rules));
    free(TAKE(o->broken));
}

static int parse_rule(struct egress *e, const struct json *v, struct policy_rule *ret,
                      struct err *err)
{
    const char *type = json_get_text(v, "type");
    const char *cidr = json_path_string(v, "to", "cidrSelector", NULL);
    const char *name = json_path_string(v, "to", "dnsName", NULL);
    struct policy_rule r = {.allow = streq_null(type, "Allow")};
    bool has_cidr = cidr && *cidr, has_name = name && *name;
    if (!r.allow && !streq_null(type, "Deny")) {
        return err_set(err, -EINVAL, "type: must be Allow or Deny");
    }
    if (has_cidr == has_name) {
        return err_set(err, -EINVAL, "to: must have either cidrSelector or dnsName");
    }
    if (has_cidr && prefix_parse(cidr, &r.to, err) < 0) {
        return err_prefix(err, "to.cidrSelector");
    }
    if (has_cidr && r.to.len == 32 && !r.to.addr) {
        r.to.len = 0; /* OpenShift takes 0.0.0.0/32 for 0.0.0.0/0, too. */
    }
    if (has_name) {
        r.name = take_name(e, name);
    }
    *ret = r;
    return 0;
}

static void parse_rules(struct egress *e, const struct json *list, struct policy_object *o)
{
    struct err err = {0};
    o->rules = xcalloc(json_count(list) + 1, sizeof *o->rules);
    for (size_t i = 0; i < json_count(list) && !o->broken; i++) {
        if (parse_rule(e, json_at(list, i), &o->rules[o->n], &err) < 0) {
            o->broken = xasprintf("spec.egress[%zu].%s", i, err.text);
        } else {
            o->n++;
        }
    }
}

/* ---- networks ---- */

static void mark(struct egress *e, struct network *n)
{
    if (list_is_empty(&n->in_dirty)) {
        list_push_back(&e->dirty, &n->in_dirty);
    }
}

static struct network *find_network(const struct egress *e, uint32_t vnid)
{
    struct network *n;
    HMAP_FOREACH_WITH_HASH (n, struct network, node, vnid, &e->networks) {
        return n;
    }
    return NULL;
}

static struct network *get_network(struct egress *e, uint32_t vnid)
{
    struct network *n = find_network(e, vnid);
    if (!n) {
        n = NEW(struct network);
        n->vnid = vnid;
        list_init(&n->projects);
        list_init(&n->in_dirty);
        hmap_insert(&e->networks, &n->node, vnid);
    }
    return n;
}

static void free_rules(struct firewall_rule *rules, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(rules[i].to);
    }
    free(rules);
}

static void free_network(struct network *n)
{
    list_remove(&n->in_dirty);
    free_rules(n->rules, n->n_rules);
    free(n->blocks);
    free(n);
}

static void free_project(void *p)
{
    struct project *x = p;
    list_remove(&x->in_network);
    smap_done(&x->policies);
    free(x->name);
    free(x);
}

static void put_in_network(struct egress *e, struct project *p, uint32_t vnid)
{
    struct network *n = get_network(e, vnid);
    if (p->network) {
        mark(e, p->network);
    }
    list_remove(&p->in_network);
    list_push_back(&n->projects, &p->in_network);
    p->network = n;
    mark(e, n);
}

static struct project *get_project(struct egress *e, const char *name)
{
    struct project *p = smap_get(&e->projects, name);
    if (!p) {
        p = NEW(struct project);
        p->name = xstrdup(name);
        list_init(&p->in_network);
        smap_init(&p->policies, free_object);
        smap_set(&e->projects, name, p);
        put_in_network(e, p, SDN_VNID_NOBODY);
    }
    return p;
}

static void drop_if_unused(struct egress *e, struct project *p)
{
    if (!p->known && smap_size(&p->policies) == 0) {
        mark(e, p->network);
        CLEANUP_FREE char *name = xstrdup(p->name);
        smap_remove(&e->projects, name);
    }
}

/* ---- what applies ---- */

static void set_prefixes(struct firewall_rule *r, const struct ip4_prefix *to, size_t n)
{
    r->to = n ? xmemdup(to, n * sizeof *to) : NULL;
    r->n_to = n;
}

static void judge(struct egress *e, const struct project *p, const char *policy,
                  struct policy_object *o, const char *reason, const char *why)
{
    if (streq_null(o->reported, why)) {
        return;
    }
    free(o->reported);
    o->reported = why ? xstrdup(why) : NULL;
    if (e->ops.judged) {
        e->ops.judged(e->ctx, p->name, policy, reason, why);
    }
}

/* Another project of the network; NULL: there is none. */
static const struct project *neighbour_of(const struct network *n, const struct project *p)
{
    const struct project *x;
    LIST_FOREACH (x, const struct project, in_network, &n->projects) {
        if (x != p) {
            return x;
        }
    }
    return NULL;
}

/* The reason why a policy is not applied as it is written, owned; NULL: it is. */
static char *objection(const struct network *n, const struct project *p,
                       const struct policy_object *o, const char **ret_reason)
{
    const struct project *other = neighbour_of(n, p);
    if (n->vnid == SDN_VNID_GLOBAL) {
        *ret_reason = "GlobalProject";
        return xstrdup("the project is global: the policy is ignored");
    }
    if (!p->known) {
        *ret_reason = "NoNetNamespace";
        return xstrdup("the project has no virtual network: nothing leaves the cluster from it");
    }
    if (other) {
        *ret_reason = "SharedNetwork";
        return xasprintf("the project shares its virtual network with project %s: nothing leaves "
                         "the cluster from either",
                         other->name);
    }
    if (smap_size(&p->policies) > 1) {
        *ret_reason = "SeveralPolicies";
        return xstrdup("the project has several policies: nothing leaves the cluster from it");
    }
    if (o->broken) {
        *ret_reason = "InvalidPolicy";
        return xasprintf("%s: nothing leaves the cluster from the project", o->broken);
    }
    return NULL;
}

static void apply_policy(struct network *n, const struct policy_object *o)
{
    n->rules = xcalloc(o->n + 1, sizeof *n->rules);
    n->n_rules = o->n;
    for (size_t i = 0; i < o->n; i++) {
        const struct policy_rule *r = &o->rules[i];
        n->rules[i].allow = r->allow;
        set_prefixes(&n->rules[i], r->name ? r->name->ips : &r->to, r->name ? r->name->n_ips : 1);
    }
}

static void deny_all(struct network *n)
{
    static const struct ip4_prefix everything = {0, 0};
    n->rules = xcalloc(1, sizeof *n->rules);
    n->n_rules = 1;
    set_prefixes(&n->rules[0], &everything, 1);
}

static void make_rules(struct egress *e, struct network *n)
{
    const struct policy_object *applied = NULL;
    bool denied = false;
    struct project *p;
    free_rules(TAKE(n->rules), n->n_rules);
    n->n_rules = 0;
    LIST_FOREACH (p, struct project, in_network, &n->projects) {
        struct smap_entry *s;
        SMAP_FOREACH (s, &p->policies) {
            const char *reason = NULL;
            CLEANUP_FREE char *why = objection(n, p, s->value, &reason);
            judge(e, p, s->key, s->value, reason, why);
            denied |= why && n->vnid != SDN_VNID_GLOBAL;
            applied = why ? applied : s->value;
        }
    }
    if (denied) {
        deny_all(n);
    } else if (applied) {
        apply_policy(n, applied);
    }
}

static bool same_blocks(const struct network *n, const struct firewall_block *blocks, size_t count)
{
    bool same = n->n_blocks == count;
    for (size_t i = 0; same && i < count; i++) {
        same = prefix_equal(n->blocks[i].to, blocks[i].to) && n->blocks[i].allow == blocks[i].allow;
    }
    return same;
}

/* Hands out what changed; with 'fewer' also for a network that loses its firewall, else it stays
 * dirty. */
static void update_network(struct egress *e, struct network *n, bool fewer)
{
    struct firewall_block *blocks;
    make_rules(e, n);
    size_t count = firewall_flatten(n->rules, n->n_rules, &blocks);
    if (same_blocks(n, blocks, count) || (!count && !fewer)) {
        free(blocks);
        return;
    }
    free(n->blocks);
    n->blocks = blocks;
    n->n_blocks = count;
    e->ops.set(e->ctx, n->vnid, blocks, count);
}

/* ---- public ---- */

struct egress *egress_new(const struct egress_ops *ops, void *ctx)
{
    struct egress *e = NEW(struct egress);
    e->ops = *ops;
    e->ctx = ctx;
    smap_init(&e->projects, free_project);
    smap_init(&e->names, free_name);
    hmap_init(&e->networks);
    list_init(&e->dirty);
    return e;
}

struct egress *egress_free(struct egress *e)
{
    struct network *n;
    if (!e) {
        return NULL;
    }
    smap_done(&e->projects);
    smap_done(&e->names);
    HMAP_FOREACH (n, struct network, node, &e->networks) {
        hmap_remove(&e->networks, &n->node);
        free_network(n);
    }
    hmap_done(&e->networks);
    free(e);
    return NULL;
}

void egress_set_project(struct egress *e, const char *project, const uint32_t *vnid)
{
    if (!vnid && !smap_get(&e->projects, project)) {
        return;
    }
    struct project *p = get_project(e, project);
    p->known = vnid != NULL;
    put_in_network(e, p, vnid ? *vnid : SDN_VNID_NOBODY);
    drop_if_unused(e, p);
}

void egress_set_policy(struct egress *e, const char *project, const char *policy,
                       const struct json *obj)
{
    if (!obj && !smap_get(&e->projects, project)) {
        return;
    }
    struct project *p = get_project(e, project);
    struct policy_object *o = smap_get(&p->policies, policy);
    mark(e, p->network);
    if (!o && obj) {
        o = NEW(struct policy_object);
        smap_set(&p->policies, policy, o);
    }
    struct policy_object before = o ? *o : (struct policy_object){0};
    if (o) {
        o->rules = NULL;
        o->broken = NULL;
        o->n = 0;
    }
    if (obj) {
        parse_rules(e, json_path(obj, "spec", "egress", NULL), o);
    } else if (o) {
        smap_remove(&p->policies, policy);
        before.reported = NULL;
    }
    clear_rules(e, &before); /* Afterwards: a name that stays keeps its addresses. */
    drop_if_unused(e, p);
}

void egress_set_name(struct egress *e, const char *name, const uint32_t *ips, size_t n)
{
    struct name *x = smap_get(&e->names, name);
    struct network *net;
    if (!x) {
        return;
    }
    free(x->ips);
    x->ips = xcalloc(n + 1, sizeof *x->ips);
    x->n_ips = n;
    for (size_t i = 0; i < n; i++) {
        x->ips[i] = (struct ip4_prefix){ips[i], 32};
    }
    HMAP_FOREACH (net, struct network, node, &e->networks) {
        const struct project *p;
        LIST_FOREACH (p, const struct project, in_network, &net->projects) {
            struct smap_entry *s;
            SMAP_FOREACH (s, &p->policies) {
                const struct policy_object *o = s->value;
                for (size_t i = 0; i < o->n; i++) {
                    if (o->rules[i].name == x) {
                        mark(e, net);
                    }
                }
            }
        }
    }
}

void egress_prepare(struct egress *e)
{
    struct network *n;
    LIST_FOREACH (n, struct network, in_dirty, &e->dirty) {
        update_network(e, n, false);
    }
}

void egress_update(struct egress *e)
{
    struct list *at;
    struct network *n;
    egress_prepare(e);
    while ((at = list_pop_front(&e->dirty))) {
        n = CONTAINER_OF(at, struct network, in_dirty);
        update_network(e, n, true);
        if (list_is_empty(&n->projects)) {
            hmap_remove(&e->networks, &n->node);
            free_network(n);
        }
    }
}

void egress_withdraw(struct egress *e)
{
    struct network *n;
    HMAP_FOREACH (n, struct network, node, &e->networks) {
        if (n->n_blocks) {
            n->n_blocks = 0;
            e->ops.set(e->ctx, n->vnid, NULL, 0);
        }
    }
}

size_t egress_rules(const struct egress *e, uint32_t vnid, const struct firewall_rule **ret)
{
    const struct network *n = find_network(e, vnid);
    *ret = n ? n->rules : NULL;
    return n ? n->n_rules : 0;
}

void egress_each_policy(const struct egress *e, uint32_t vnid,
                        void (*fn)(void *ctx, const char *project, const char *policy), void *ctx)
{
    const struct network *n = find_network(e, vnid);
    const struct project *p;
    if (!n) {
        return;
    }
    LIST_FOREACH (p, const struct project, in_network, &n->projects) {
        struct smap_entry *s;
        SMAP_FOREACH (s, &p->policies) {
            fn(ctx, p->name, s->key);
        }
    }
}

void egress_each_user(const struct egress *e, const char *name,
                      void (*fn)(void *ctx, const char *project, const char *policy), void *ctx)
{
    struct smap_entry *at, *s;
    SMAP_FOREACH (at, &e->projects) {
        const struct project *p = at->value;
        SMAP_FOREACH (s, &p->policies) {
            const struct policy_object *o = s->value;
            bool uses = false;
            for (size_t i = 0; i < o->n; i++) {
                uses |= o->rules[i].name && streq(o->rules[i].name->text, name);
            }
            if (uses) {
                fn(ctx, p->name, s->key);
            }
        }
    }
}

void egress_count(const struct egress *e, struct egress_counts *ret)
{
    struct smap_entry *at, *s;
    *ret = (struct egress_counts){.names = smap_size(&e->names)};
    SMAP_FOREACH (at, &e->projects) {
        const struct project *p = at->value;
        SMAP_FOREACH (s, &p->policies) {
            const struct policy_object *o = s->value;
            ret->policies++;
            ret->rules += o->n;
            ret->unapplied += o->reported != NULL;
        }
    }
}
