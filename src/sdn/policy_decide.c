/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the rule that decides by evaluating all rules; flows and tables are not used. */
#include "sdn/policy_internal.h"

/* A packet as seen at one end. */
struct judged {
    const struct class *peer; /* NULL: no policy selects it. */
    uint32_t peer_ip;
    uint8_t proto;
    uint16_t port;
};

static bool means_peer(const struct rule *r, const struct judged *x)
{
    if (!rule_has_peers(r)) {
        return true;
    }
    for (size_t i = 0; x->peer && i < r->n_peers; i++) {
        for (size_t k = 0; k < x->peer->n; k++) {
            if (x->peer->sets[k] == r->peers[i]) {
                return true;
            }
        }
    }
    for (size_t i = 0; rule_takes_blocks(r) && i < r->spec->n_blocks; i++) {
        if (prefix_contains(r->spec->blocks[i], x->peer_ip)) {
            return true;
        }
    }
    return false;
}

static bool means_port(const struct rule *r, const struct judged *x)
{
    if (r->by_name) {
        return r->proto == x->proto && r->number == x->port;
    }
    for (size_t i = 0; rule_has_ports(r) && i < r->spec->n_ports; i++) {
        const struct policy_port_range *p = &r->spec->ports[i];
        if (p->proto == x->proto && x->port >= p->first && x->port <= p->last) {
            return true;
        }
    }
    return !rule_has_ports(r);
}

/* Among NetworkPolicy rules any could be named; the first in a fixed order is. */
static bool comes_before(const struct rule *a, const struct rule *b)
{
    if (a->object->spec.kind != POLICY_NETWORK) {
        return a->priority > b->priority;
    }
    int c = strcmp(a->object->name, b->object->name);
    return c ? c < 0 : a->index != b->index ? a->index < b->index : a->conj_id < b->conj_id;
}

static uint64_t rule_cookie(const struct rule *r)
{
    return pipeline_cookie(PIPELINE_POLICY_RULE, r->conj_id);
}

static struct policy_decision by_rule(const struct rule *r, uint64_t selected)
{
    return (struct policy_decision){r->action == POLICY_ALLOW, POLICY_BY_RULE, rule_cookie(r),
                                    selected};
}

static struct policy_decision decide(const struct class *subject, const struct judged *x)
{
    const struct rule *first[POLICY_BASELINE + 1] = {NULL}; /* By kind. */
    uint64_t selected = class_cookie(subject);
    bool isolated = false;
    for (size_t i = 0; i < subject->n; i++) {
        const struct set *set = subject->sets[i];
        for (size_t k = 0; k < set->n_uses; k++) {
            const struct rule *r = set->uses[k].rule;
            isolated |= !r && set->uses[k].clause == CLAUSE_ISOLATES;
            if (!r || !means_peer(r, x) || !means_port(r, x)) {
                continue;
            }
            const struct rule **best = &first[r->object->spec.kind];
            *best = *best && !comes_before(r, *best) ? *best : r;
        }
    }
    if (first[POLICY_ADMIN] && first[POLICY_ADMIN]->action != POLICY_PASS) {
        return by_rule(first[POLICY_ADMIN], selected);
    }
    if (isolated) {
        return first[POLICY_NETWORK]
                   ? by_rule(first[POLICY_NETWORK], selected)
                   : (struct policy_decision){false, POLICY_BY_ISOLATION, selected, selected};
    }
    return first[POLICY_BASELINE] ? by_rule(first[POLICY_BASELINE], selected)
                                  : (struct policy_decision){true, POLICY_UNDECIDED, 0, selected};
}

struct policy_decision policy_decide(const struct policy *p, enum policy_direction d, uint32_t src,
                                     uint32_t dst, uint8_t proto, uint16_t dst_port)
{
    uint32_t subject = d == POLICY_EGRESS ? src : dst, peer = d == POLICY_EGRESS ? dst : src;
    const struct endpoint *own = endpoint_owner(p, subject), *other = endpoint_owner(p, peer);
    if (own && own->local && !own->pod->known) {
        uint64_t address = pipeline_cookie(PIPELINE_POLICY_ADDRESS, subject);
        return (struct policy_decision){false, POLICY_BY_IGNORANCE, address, address};
    }
    const struct class *c = own && own->local ? own->classes[space_of(d, ROLE_SUBJECT)] : NULL;
    if (!c) {
        return (struct policy_decision){true, POLICY_NOT_SELECTED, 0, 0};
    }
    bool known = other && (!other->local || other->pod->known);
    struct judged x = {known ? other->classes[space_of(d, ROLE_PEER)] : NULL, peer, proto,
                       dst_port};
    return decide(c, &x);
}
