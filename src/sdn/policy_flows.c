/* SPDX-License-Identifier: Apache-2.0 */
/* The flows of each group, and their names. */
#include "sdn/policy_internal.h"

#include "base/mem.h"

#define MAX_NAMES 4 /* Policies that a description lists. */

#define PRIORITY_CUT_OFF 200
#define PRIORITY_ADDRESS 100

/* The tables of a direction. */
struct stage_tables {
    enum table subject, peer, admin, policy, baseline, denied, allowed;
};
static const struct stage_tables stages[] = {
    [POLICY_EGRESS] = {EGRESS_SUBJECT, EGRESS_PEER, EGRESS_ADMIN, EGRESS_POLICY, EGRESS_BASELINE,
                       EGRESS_DENIED, ROUTE},
    [POLICY_INGRESS] = {INGRESS_SUBJECT, INGRESS_PEER, INGRESS_ADMIN, INGRESS_POLICY,
                        INGRESS_BASELINE, INGRESS_DENIED, ISOLATION},
};

static void begin_ip(struct of_builder *b, unsigned table, uint16_t priority, uint64_t cookie)
{
    of_begin(b, (uint8_t) table, priority, cookie);
    of_match_eth_type(b, ETH_IP4);
}

static void end_goto(struct of_builder *b, unsigned table, struct of_flow_list *l)
{
    of_goto(b, (uint8_t) table);
    of_end_into(b, l);
}

static void hand_out(struct policy *p, uint64_t cookie, struct of_flow_list *l)
{
    if (p->flows) {
        p->flows->set_group(p->flows_ctx, cookie, l);
    }
    of_flow_list_done(l);
}

void emit_nothing(struct policy *p, uint64_t cookie)
{
    struct of_flow_list none = {0};
    if (!p->table) {
        hand_out(p, cookie, &none);
    }
}

static unsigned table_after(const struct stage_tables *w, const struct rule *r)
{
    return r->action == POLICY_ALLOW  ? w->allowed
           : r->action == POLICY_DENY ? w->denied
                                      : w->policy;
}

/* ---- addresses ---- */

const struct endpoint *endpoint_owner(const struct policy *p, uint32_t ip)
{
    const struct endpoint *ep, *best = NULL;
    HMAP_FOREACH_WITH_HASH (ep, struct endpoint, node, ip, &p->endpoints) {
        if (!best) {
            best = ep;
        } else if (ep->local != best->local) {
            best = ep->local ? ep : best;
        } else if (ep->pod->terminating != best->pod->terminating) {
            best = best->pod->terminating ? ep : best;
        } else if (ep->pod->serial > best->pod->serial) {
            best = ep;
        }
    }
    return best;
}

static void match_own(struct of_builder *b, enum policy_direction d, enum role r, uint32_t ip)
{
    struct ip4_prefix address = {ip, 32};
    if ((d == POLICY_EGRESS) == (r == ROLE_SUBJECT)) {
        of_match_ip_src(b, address);
    } else {
        of_match_ip_dst(b, address);
    }
}

void emit_ip(struct policy *p, uint32_t ip)
{
    const struct endpoint *ep = endpoint_owner(p, ip);
    uint64_t cookie = pipeline_cookie(PIPELINE_POLICY_ADDRESS, ip);
    struct of_flow_list l = {0};
    struct of_builder b;
    for (enum policy_direction d = POLICY_EGRESS; ep && d <= POLICY_INGRESS; d++) {
        const struct stage_tables *w = &stages[d];
        const struct class *subject = ep->classes[space_of(d, ROLE_SUBJECT)];
        const struct class *peer = ep->classes[space_of(d, ROLE_PEER)];
        if (ep->local && !ep->pod->known) {
            begin_ip(&b, w->subject, PRIORITY_CUT_OFF, cookie);
            match_own(&b, d, ROLE_SUBJECT, ip);
            end_goto(&b, w->denied, &l);
        } else if (subject) {
            begin_ip(&b, w->subject, PRIORITY_ADDRESS, cookie);
            match_own(&b, d, ROLE_SUBJECT, ip);
            of_act_load_reg(&b, REG_SUBJECT, subject->id);
            end_goto(&b, w->peer, &l);
        }
        if (peer && (!ep->local || ep->pod->known)) {
            begin_ip(&b, w->peer, PRIORITY_ADDRESS, cookie);
            match_own(&b, d, ROLE_PEER, ip);
            of_act_load_reg(&b, REG_PEER, peer->id);
            end_goto(&b, w->admin, &l);
        }
    }
    hand_out(p, cookie, &l);
}

/* ---- classes ---- */

/* A conjunction, or a whole rule, that a flow of the class belongs to. */
struct share {
    const struct rule *rule;
    uint8_t clause;
};
struct shares {
    struct share *list;
    size_t n, cap;
};

static int compare_shares(const void *a, const void *b)
{
    const struct rule *x = ((const struct share *) a)->rule, *y = ((const struct share *) b)->rule;
    if (x->priority != y->priority) {
        return x->priority > y->priority ? -1 : 1;
    }
    if (x->table != y->table) {
        return x->table < y->table ? -1 : 1;
    }
    if ((x->n_clauses == 1) != (y->n_clauses == 1)) {
        return x->n_clauses == 1 ? -1 : 1; /* Whole rules first: they decide. */
    }
    return x->conj_id < y->conj_id ? -1 : x->conj_id > y->conj_id;
}

/* Makes the flow for the elements from 'i' on with the same table and priority; returns the
 * index after them. */
static size_t emit_shares(const struct class *c, const struct stage_tables *w,
                          const struct shares *s, size_t i, uint64_t cookie, struct of_flow_list *l)
{
    const struct rule *first = s->list[i].rule;
    struct of_builder b;
    begin_ip(&b, first->table, first->priority, cookie);
    of_match_reg(&b, c->space % 2 == ROLE_SUBJECT ? REG_SUBJECT : REG_PEER, c->id);
    size_t n = 0;
    const struct rule *last = NULL;
    for (; i < s->n && s->list[i].rule->table == first->table &&
           s->list[i].rule->priority == first->priority;
         i++) {
        const struct rule *r = s->list[i].rule;
        if (first->n_clauses > 1 && r != last && n < OF_MAX_CONJUNCTIONS) {
            of_act_conjunction(&b, r->conj_id, s->list[i].clause, r->n_clauses);
            n++;
        }
        last = r;
    }
    if (first->n_clauses == 1) {
        of_goto(&b, (uint8_t) table_after(w, first));
    }
    of_end_into(&b, l);
    return i;
}

void emit_class(struct policy *p, const struct class *c)
{
    const struct stage_tables *w = &stages[c->space / 2];
    uint64_t cookie = class_cookie(c);
    struct of_flow_list l = {0};
    struct shares s = {0};
    bool isolated = false;
    for (size_t i = 0; i < c->n; i++) {
        const struct set *set = c->sets[i];
        for (size_t k = 0; k < set->n_uses; k++) {
            const struct use *u = &set->uses[k];
            isolated |= !u->rule && u->clause == CLAUSE_ISOLATES;
            if (u->rule) {
                s.list = grow(s.list, &s.cap, s.n + 1, sizeof *s.list);
                s.list[s.n++] = (struct share){u->rule, u->clause};
            }
        }
    }
    if (s.n) {
        qsort(s.list, s.n, sizeof *s.list, compare_shares);
    }
    for (size_t i = 0; i < s.n;) {
        i = emit_shares(c, w, &s, i, cookie, &l);
    }
    free(s.list);
    if (isolated) {
        struct of_builder b;
        begin_ip(&b, w->policy, PRIORITY_ISOLATED, cookie);
        of_match_reg(&b, REG_SUBJECT, c->id);
        end_goto(&b, w->denied, &l);
    }
    hand_out(p, cookie, &l);
}

/* ---- rules, ports, blocks ---- */

void emit_rule(struct policy *p, const struct rule *r)
{
    uint64_t cookie = pipeline_cookie(PIPELINE_POLICY_RULE, r->conj_id);
    struct of_flow_list l = {0};
    struct of_builder b;
    if (r->n_clauses > 1) {
        begin_ip(&b, r->table, r->priority, cookie);
        of_match_conj_id(&b, r->conj_id);
        end_goto(&b, table_after(&stages[r->dir], r), &l);
    }
    hand_out(p, cookie, &l);
}

static int compare_refs(const void *a, const void *b)
{
    const struct rule *x = ((const struct dim_ref *) a)->rule;
    const struct rule *y = ((const struct dim_ref *) b)->rule;
    return x->conj_id < y->conj_id ? -1 : x->conj_id > y->conj_id;
}

void emit_dim(struct policy *p, const struct dim *d)
{
    struct of_flow_list l = {0};
    struct of_builder b;
    if (d->n_refs) {
        CLEANUP_FREE struct dim_ref *refs = xmemdup(d->refs, d->n_refs * sizeof *refs);
        qsort(refs, d->n_refs, sizeof *refs, compare_refs);
        begin_ip(&b, d->table, d->priority, d->cookie);
        if (d->is_port) {
            uint16_t mask = (uint16_t) (d->len ? 0xffffu << (16 - d->len) : 0);
            of_match_ip_proto(&b, d->proto);
            of_match_l4_dst(&b, d->proto, (uint16_t) d->value, mask);
        } else if (d->table < ROUTE) {
            of_match_ip_dst(&b, (struct ip4_prefix){d->value, d->len});
        } else {
            of_match_ip_src(&b, (struct ip4_prefix){d->value, d->len});
        }
        for (size_t i = 0; i < MIN(d->n_refs, OF_MAX_CONJUNCTIONS); i++) {
            of_act_conjunction(&b, refs[i].rule->conj_id, refs[i].clause, refs[i].rule->n_clauses);
        }
        of_end_into(&b, &l);
    }
    hand_out(p, d->cookie, &l);
}

/* ---- names ---- */

static void object_name(const struct object *o, struct strbuf *out)
{
    static const char *const kinds[] = {[POLICY_NETWORK] = "NetworkPolicy",
                                        [POLICY_ADMIN] = "AdminNetworkPolicy",
                                        [POLICY_BASELINE] = "BaselineAdminNetworkPolicy"};
    strbuf_addf(out, "%s ", kinds[o->spec.kind]);
    if (o->ns) {
        strbuf_addf(out, "%s/", o->ns->name);
    }
    strbuf_adds(out, o->name);
}

static void rule_name(const struct rule *r, struct strbuf *out)
{
    object_name(r->object, out);
    if (!r->spec) {
        strbuf_adds(out, ", which cannot be compiled");
        return;
    }
    strbuf_addf(out, ", %s rule %u", r->dir == POLICY_EGRESS ? "egress" : "ingress", r->index + 1u);
    if (r->spec->name) {
        strbuf_addf(out, " \"%s\"", r->spec->name);
    }
}

/* Lists objects, each once, up to MAX_NAMES. */
struct namer {
    const struct object *seen[MAX_NAMES];
    size_t n, more;
    struct strbuf *out;
};

static void add_object(struct namer *x, const struct object *o)
{
    for (size_t i = 0; i < x->n; i++) {
        if (x->seen[i] == o) {
            return;
        }
    }
    if (x->n == MAX_NAMES) {
        x->more++;
        return;
    }
    strbuf_adds(x->out, x->n ? ", " : "");
    object_name(o, x->out);
    x->seen[x->n++] = o;
}

static void end_names(const struct namer *x)
{
    if (x->more) {
        strbuf_adds(x->out, " and others");
    }
}

/* 'isolating': only the policies that isolate them. */
static bool describe_class(const struct policy *p, uint64_t cookie, bool isolating,
                           struct strbuf *out)
{
    const struct class *c;
    HMAP_FOREACH (c, struct class, by_id, &p->class_ids) {
        if (class_cookie(c) != cookie) {
            continue;
        }
        struct namer x = {.out = out};
        bool subject = c->space % 2 == ROLE_SUBJECT;
        strbuf_adds(out, subject ? "pods selected by " : "peers in ");
        for (size_t i = 0; i < c->n; i++) {
            for (size_t k = 0; k < c->sets[i]->n_uses; k++) {
                const struct use *u = &c->sets[i]->uses[k];
                if (!isolating || (!u->rule && u->clause == CLAUSE_ISOLATES)) {
                    add_object(&x, u->object);
                }
            }
        }
        end_names(&x);
        return true;
    }
    return false;
}

static bool describe_dim(const struct policy *p, uint64_t cookie, struct strbuf *out)
{
    const struct dim *d;
    HMAP_FOREACH_WITH_HASH (d, struct dim, by_cookie, (uint32_t) cookie, &p->dim_cookies) {
        if (d->cookie != cookie) {
            continue;
        }
        struct namer x = {.out = out};
        strbuf_adds(out, d->is_port ? "a port in " : "an address block in ");
        for (size_t i = 0; i < d->n_refs; i++) {
            add_object(&x, d->refs[i].rule->object);
        }
        end_names(&x);
        return true;
    }
    return false;
}

bool policy_describe(const struct policy *p, uint64_t cookie, struct strbuf *out)
{
    uint32_t low = (uint32_t) cookie;
    const struct rule *r;
    const struct endpoint *ep;
    switch ((enum pipeline_kind)(cookie >> 48)) {
    case PIPELINE_POLICY_ADDRESS:
        ep = endpoint_owner(p, low);
        if (ep) {
            strbuf_addf(out, "%s %s%s%s", ep->pod->ns->name ? "pod" : "node",
                        ep->pod->ns->name ? ep->pod->ns->name : "", ep->pod->ns->name ? "/" : "",
                        ep->pod->name);
        }
        return ep != NULL;
    case PIPELINE_POLICY_CLASS:
        return describe_class(p, cookie, false, out);
    case PIPELINE_POLICY_RULE:
        HMAP_FOREACH_WITH_HASH (r, struct rule, node, low, &p->rules) {
            rule_name(r, out);
            return true;
        }
        return false;
    case PIPELINE_POLICY_PORT:
    case PIPELINE_POLICY_BLOCK:
        return describe_dim(p, cookie, out);
    default:
        return false;
    }
}

bool policy_describe_decision(const struct policy *p, const struct policy_decision *d,
                              struct strbuf *out)
{
    return d->reason == POLICY_BY_ISOLATION ? describe_class(p, d->by, true, out)
                                            : policy_describe(p, d->by, out);
}
