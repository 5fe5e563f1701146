/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of ports: the combined verdict of some rules for each protocol and port. */
#include "sdn/policy_internal.h"

#include "base/mem.h"

#include <string.h>

void policy_verdict_add(struct policy_verdict *to, const struct policy_verdict *v)
{
    if (v->admin > to->admin) {
        to->admin = v->admin;
        to->admin_action = v->admin_action;
    }
    if (v->baseline > to->baseline) {
        to->baseline = v->baseline;
        to->baseline_action = v->baseline_action;
    }
    to->allowed |= v->allowed;
}

bool policy_verdict_allows(const struct policy_verdict *v, bool isolated)
{
    if (v->admin && v->admin_action != POLICY_PASS) {
        return v->admin_action == POLICY_ALLOW;
    }
    if (isolated) {
        return v->allowed;
    }
    return !v->baseline || v->baseline_action == POLICY_ALLOW;
}

static struct policy_verdict verdict_of(const struct rule *r)
{
    switch (r->object->spec.kind) {
    case POLICY_NETWORK:
        return (struct policy_verdict){.allowed = true};
    case POLICY_ADMIN:
        return (struct policy_verdict){.admin = r->priority, .admin_action = r->action};
    case POLICY_BASELINE:
        break;
    }
    return (struct policy_verdict){.baseline = r->priority, .baseline_action = r->action};
}

/* A rule's part in one protocol's ports. */
struct span {
    uint32_t first, end; /* 'end' is one after the last. */
    struct policy_verdict verdict;
};
struct spans {
    struct span *list;
    size_t n, cap;
};

static void add_span(struct spans *s, uint32_t first, uint32_t last, const struct rule *r)
{
    s->list = grow(s->list, &s->cap, s->n + 1, sizeof *s->list);
    s->list[s->n++] = (struct span){first, last + 1, verdict_of(r)};
}

static void add_spans(struct spans *s, uint8_t proto, const struct rule *r)
{
    if (r->by_name) {
        if (r->proto == proto) {
            add_span(s, r->number, r->number, r);
        }
        return;
    }
    for (size_t i = 0; r->spec && i < r->spec->n_ports; i++) {
        const struct policy_port_range *p = &r->spec->ports[i];
        if (p->proto == proto) {
            add_span(s, p->first, p->last, r);
        }
    }
}

struct rows {
    struct policy_port_verdict *list;
    size_t n, cap;
    uint8_t proto;
    struct policy_verdict verdict;
};

static void add_row(void *ctx, uint32_t port, unsigned len)
{
    struct rows *rows = ctx;
    rows->list = grow(rows->list, &rows->cap, rows->n + 1, sizeof *rows->list);
    rows->list[rows->n++] = (struct policy_port_verdict){.proto = rows->proto,
                                                         .len = (uint8_t) len,
                                                         .port = (uint16_t) port,
                                                         .verdict = rows->verdict};
}

static bool same_verdict(const struct policy_verdict *a, const struct policy_verdict *b)
{
    return a->admin == b->admin && a->baseline == b->baseline &&
           a->admin_action == b->admin_action && a->baseline_action == b->baseline_action &&
           a->allowed == b->allowed;
}

static int compare_ends(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;
    return x < y ? -1 : x > y;
}

/* Cuts the port range at the borders of spans; parts that differ from 'base' get rows. */
static void cut(const struct spans *s, const struct policy_verdict *base, struct rows *rows)
{
    if (s->n == 0) {
        return;
    }
    CLEANUP_FREE uint32_t *ends = xcalloc(2 * s->n, sizeof *ends);
    for (size_t i = 0; i < s->n; i++) {
        ends[2 * i] = s->list[i].first;
        ends[2 * i + 1] = s->list[i].end;
    }
    qsort(ends, 2 * s->n, sizeof *ends, compare_ends);
    uint32_t from = ends[0];
    rows->verdict = *base;
    for (size_t i = 0; i < 2 * s->n; i++) {
        if (i && ends[i] == ends[i - 1]) {
            continue;
        }
        struct policy_verdict v = *base;
        for (size_t k = 0; k < s->n; k++) {
            if (s->list[k].first <= ends[i] && ends[i] < s->list[k].end) {
                policy_verdict_add(&v, &s->list[k].verdict);
            }
        }
        if (!same_verdict(&v, &rows->verdict)) {
            if (!same_verdict(&rows->verdict, base)) {
                range_to_blocks(from, ends[i] - 1, 16, add_row, rows);
            }
            rows->verdict = v;
            from = ends[i];
        }
    }
}

/* The rows of these rules; equal sets have equal rows, whatever the order of the rules. */
static void make_rows(const struct rule *const *rules, size_t n, struct rows *rows)
{
    static const uint8_t protocols[] = {6, 17, 132};
    struct policy_verdict base = {0};
    for (size_t i = 0; i < n; i++) {
        if (!rule_has_ports(rules[i])) {
            struct policy_verdict v = verdict_of(rules[i]);
            policy_verdict_add(&base, &v);
        }
    }
    rows->verdict = base;
    if (!same_verdict(&base, &(struct policy_verdict){0})) {
        add_row(rows, 0, 0);
    }
    struct spans s = {0};
    for (size_t p = 0; p < ARRAY_SIZE(protocols); p++) {
        s.n = 0;
        rows->proto = protocols[p];
        for (size_t i = 0; i < n; i++) {
            if (rule_has_ports(rules[i])) {
                add_spans(&s, protocols[p], rules[i]);
            }
        }
        cut(&s, &base, rows);
    }
    free(s.list);
}

static bool id_is_taken(const struct policy *p, uint32_t id)
{
    return hmap_first_with_hash(&p->port_ids, id) != NULL; /* The id is its own hash. */
}

struct ports *ports_of_rules(struct policy *p, const struct rule *const *rules, size_t n)
{
    struct rows rows = {0};
    make_rows(rules, n, &rows);
    if (rows.n == 0) {
        return NULL;
    }
    size_t size = rows.n * sizeof *rows.list;
    uint32_t hash = hash32(rows.list, size);
    struct ports *x;
    HMAP_FOREACH_WITH_HASH (x, struct ports, node, hash, &p->ports) {
        if (x->n == rows.n && memcmp(x->rows, rows.list, size) == 0) {
            free(rows.list);
            x->refs++;
            list_remove(&x->unused);
            return x;
        }
    }
    x = NEW(struct ports);
    *x = (struct ports){.refs = 1, .rows = rows.list, .n = rows.n, .id = hash};
    while (x->id == 0 || id_is_taken(p, x->id)) {
        x->id++;
    }
    list_init(&x->unused);
    hmap_insert(&p->ports, &x->node, hash);
    hmap_insert(&p->port_ids, &x->by_id, x->id);
    p->table->set_ports(p->table_ctx, x->id, x->rows, x->n, true);
    return x;
}

void ports_unref_set(struct policy *p, struct ports *x)
{
    if (x && --x->refs == 0) {
        list_push_back(&p->unused_ports, &x->unused);
    }
}

void ports_collect(struct policy *p)
{
    struct list *link;
    while ((link = list_pop_front(&p->unused_ports))) {
        struct ports *x = CONTAINER_OF(link, struct ports, unused);
        p->table->set_ports(p->table_ctx, x->id, x->rows, x->n, false);
        hmap_remove(&p->ports, &x->node);
        hmap_remove(&p->port_ids, &x->by_id);
        free(x->rows);
        free(x);
    }
}
