/* SPDX-License-Identifier: Apache-2.0 */
#include "sdn/model_policy.h"

#include "base/str.h"

static bool has_ports(uint8_t proto)
{
    return proto == 6 || proto == 17 || proto == 132;
}

/* ---- who ---- */

static bool requirement_holds(const struct model_requirement *r, const struct model_label *labels,
                              size_t n)
{
    const char *value = NULL;
    for (size_t i = 0; i < n; i++) {
        if (streq(labels[i].key, r->key)) {
            value = labels[i].value;
        }
    }
    bool listed = false;
    for (size_t i = 0; value && i < r->n_values; i++) {
        listed = listed || streq(value, r->values[i]);
    }
    switch (r->op) {
    case MODEL_IN:
        return listed;
    case MODEL_NOT_IN:
        return !listed;
    case MODEL_EXISTS:
        return value != NULL;
    case MODEL_NOT_EXISTS:
        return value == NULL;
    }
    return false;
}

static bool selects(const struct model_selector *s, const struct model_label *labels, size_t n)
{
    for (size_t i = 0; i < s->n; i++) {
        if (!requirement_holds(&s->list[i], labels, n)) {
            return false;
        }
    }
    return true;
}

static bool namespace_is(const struct model_policies *m, const char *name,
                         const struct model_selector *s)
{
    for (size_t i = 0; i < m->n_namespaces; i++) {
        if (streq(m->namespaces[i].name, name)) {
            return selects(s, m->namespaces[i].labels, m->namespaces[i].n_labels);
        }
    }
    return false;
}

static const struct model_endpoint *endpoint_at(const struct model_policies *m, uint32_t ip)
{
    for (size_t i = 0; i < m->n_endpoints; i++) {
        if (m->endpoints[i].ip == ip) {
            return &m->endpoints[i];
        }
    }
    return NULL;
}

/* 'who' NULL: no pod has the address. */
static bool is_peer(const struct model_policies *m, const struct model_policy *p,
                    const struct model_peer *peer, uint32_t ip, const struct model_endpoint *who)
{
    if (peer->kind == MODEL_BLOCK) {
        for (size_t i = 0; i < peer->n_excepts; i++) {
            if (prefix_contains(peer->excepts[i], ip)) {
                return false;
            }
        }
        return prefix_contains(peer->block, ip);
    }
    if (!who || who->unknown || (who->ns == NULL) != (peer->kind == MODEL_NODES)) {
        return false;
    }
    if (who->ns) {
        bool inside = peer->own_namespace ? streq(who->ns, p->ns)
                                          : namespace_is(m, who->ns, &peer->namespaces);
        if (!inside) {
            return false;
        }
    }
    return selects(&peer->pods, who->labels, who->n_labels);
}

/* ---- rules ---- */

static bool is_port(const struct model_port *port, const struct model_endpoint *destination,
                    uint8_t proto, uint16_t number)
{
    if (!port->name) {
        bool all = port->first == 0 && port->last == 0;
        return proto == port->proto && (all || (number >= port->first && number <= port->last));
    }
    for (size_t i = 0; destination && i < destination->n_ports; i++) {
        const struct model_named_port *named = &destination->ports[i];
        if (streq(named->name, port->name) && (!port->proto || named->proto == port->proto)) {
            return named->proto == proto && named->number == number;
        }
    }
    return false;
}

static bool rule_matches(const struct model_policies *m, const struct model_policy *p,
                         const struct model_rule *rule, enum model_way way, uint32_t subject,
                         uint32_t peer, uint8_t proto, uint16_t number)
{
    const struct model_endpoint *other = endpoint_at(m, peer);
    const struct model_endpoint *destination =
        way == MODEL_EGRESS ? other : endpoint_at(m, subject);
    if (destination && destination->unknown) {
        destination = NULL;
    }
    bool meant = rule->n_peers == 0, port = rule->n_ports == 0;
    for (size_t i = 0; i < rule->n_peers; i++) {
        meant = meant || is_peer(m, p, &rule->peers[i], peer, other);
    }
    for (size_t i = 0; has_ports(proto) && i < rule->n_ports; i++) {
        const struct model_port *q = &rule->ports[i];
        /* A port name is resolved for an egress peer that a selector matches, not for a block. */
        bool by_block = q->name && way == MODEL_EGRESS && rule->n_peers > 0;
        bool selected = !by_block;
        for (size_t k = 0; by_block && k < rule->n_peers; k++) {
            selected = selected || (rule->peers[k].kind != MODEL_BLOCK &&
                                    is_peer(m, p, &rule->peers[k], peer, other));
        }
        bool node = q->name && destination && !destination->ns;
        port = port || (selected && !node && is_port(q, destination, proto, number));
    }
    return meant && port;
}

static bool selects_subject(const struct model_policies *m, const struct model_policy *p,
                            uint32_t subject)
{
    const struct model_endpoint *pod = endpoint_at(m, subject);
    return pod && is_peer(m, p, &p->subject, subject, pod);
}

/* ---- tiers ---- */

/* Whether 'a' comes before 'b'. */
static bool comes_before(const struct model_policy *a, const struct model_policy *b)
{
    return a->priority != b->priority ? a->priority < b->priority : strcmp(a->name, b->name) < 0;
}

static const struct model_policy *next_admin(const struct model_policies *m,
                                             const struct model_policy *after)
{
    const struct model_policy *next = NULL;
    for (size_t i = 0; i < m->n_policies; i++) {
        const struct model_policy *p = &m->policies[i];
        if (p->kind == MODEL_ADMIN_POLICY && (!after || comes_before(after, p)) &&
            (!next || comes_before(p, next))) {
            next = p;
        }
    }
    return next;
}

/* The action of the first rule that matches; MODEL_PASS: none. */
static enum model_policy_action first_of(const struct model_policies *m,
                                         const struct model_policy *p, enum model_way way,
                                         uint32_t subject, uint32_t peer, uint8_t proto,
                                         uint16_t number, bool *ret_matched)
{
    *ret_matched = true;
    if (p->broken) {
        return MODEL_DENY;
    }
    for (size_t i = 0; i < p->n_rules[way]; i++) {
        if (rule_matches(m, p, &p->rules[way][i], way, subject, peer, proto, number)) {
            return p->rules[way][i].action;
        }
    }
    *ret_matched = false;
    return MODEL_PASS;
}

bool model_policy_allows(const struct model_policies *m, enum model_way way, uint32_t subject,
                         uint32_t peer, uint8_t proto, uint16_t dst_port)
{
    bool matched, isolated = false;
    for (size_t i = 0; i < m->n_endpoints; i++) {
        if (m->endpoints[i].ip == subject && m->endpoints[i].unknown) {
            return false;
        }
    }
    for (const struct model_policy *p = next_admin(m, NULL); p; p = next_admin(m, p)) {
        if (!selects_subject(m, p, subject)) {
            continue;
        }
        enum model_policy_action a = first_of(m, p, way, subject, peer, proto, dst_port, &matched);
        if (matched && a != MODEL_PASS) {
            return a == MODEL_ALLOW;
        }
        if (matched) {
            break;
        }
    }
    for (size_t i = 0; i < m->n_policies; i++) {
        const struct model_policy *p = &m->policies[i];
        if (p->kind != MODEL_NETWORK_POLICY || !p->ways[way] || !selects_subject(m, p, subject)) {
            continue;
        }
        isolated = true;
        for (size_t k = 0; !p->broken && k < p->n_rules[way]; k++) {
            if (rule_matches(m, p, &p->rules[way][k], way, subject, peer, proto, dst_port)) {
                return true;
            }
        }
    }
    if (isolated) {
        return false;
    }
    for (size_t i = 0; i < m->n_policies; i++) {
        const struct model_policy *p = &m->policies[i];
        if (p->kind == MODEL_BASELINE_POLICY && selects_subject(m, p, subject)) {
            enum model_policy_action a =
                first_of(m, p, way, subject, peer, proto, dst_port, &matched);
            if (matched) {
                return a == MODEL_ALLOW;
            }
        }
    }
    return true;
}
