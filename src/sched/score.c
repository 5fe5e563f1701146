/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/model_priv.h"

#define BEST 100 /* The largest score of one kind. */
#define IMAGE_LEAST (INT64_C(23) << 20)
#define IMAGE_MOST (INT64_C(1000) << 20) /* For each container. */

static uint64_t random_next(struct sched *s)
{
    uint64_t z = s->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* ---- resources ---- */

/* The part of 'whole' that 'used' is, in thousandths, at most 1000. */
static int64_t share(int64_t used, int64_t whole)
{
    return whole <= 0 ? 1000 : (int64_t) MIN((__int128) used * 1000 / whole, (__int128) 1000);
}

static int64_t least_allocated(const struct cycle *c, const struct node *n)
{
    int64_t cpu = share(n->score_cpu + MIN(c->class->score_cpu, AMOUNT_MAX), n->offered[SLOT_CPU]);
    int64_t memory =
        share(n->score_memory + MIN(c->class->score_memory, AMOUNT_MAX), n->offered[SLOT_MEMORY]);
    return ((1000 - cpu) / 10 + (1000 - memory) / 10) / 2;
}

static int64_t request_in(const struct class *c, int slot)
{
    for (size_t i = 0; i < c->n_requests; i++) {
        if (c->requests[i].slot == slot) {
            return MIN(c->requests[i].amount, AMOUNT_MAX);
        }
    }
    return 0;
}

static int64_t balanced(const struct cycle *c, const struct node *n)
{
    int64_t cpu = share(n->used[SLOT_CPU] + request_in(c->class, SLOT_CPU), n->offered[SLOT_CPU]);
    int64_t memory =
        share(n->used[SLOT_MEMORY] + request_in(c->class, SLOT_MEMORY), n->offered[SLOT_MEMORY]);
    /* The standard deviation of two numbers is half of their distance. */
    return BEST - (cpu > memory ? cpu - memory : memory - cpu) / 20;
}

static int64_t images(const struct cycle *c, const struct node *n)
{
    int64_t most =
        IMAGE_MOST * (int64_t) MAX(json_count(json_get(c->class->spec, "containers")), 1);
    int64_t have = class_verdict(c->s, c->class, n)->images;
    have = MAX(MIN(have, most), IMAGE_LEAST);
    return BEST * (have - IMAGE_LEAST) / (most - IMAGE_LEAST);
}

/* ---- other pods ---- */

static int64_t pod_affinity(const struct cycle *c, const struct node *n)
{
    const struct class *k = c->class;
    int64_t sum = 0;
    for (size_t i = 0; i < k->wishes.n; i++) {
        sum += k->wishes.list[i].weight * term_matched(k->wishes.list[i].term, n);
    }
    for (size_t i = 0; i < k->subject->n; i++) {
        const struct term *t = k->subject->terms[i];
        int32_t place = t->wishing ? term_place(t, n) : -1;
        sum += place >= 0 && (size_t) place < t->cap ? t->wishing[place] : 0;
    }
    return sum;
}

/* log(n + 2) in thousandths, from a table of powers: spreading needs no more than its order. */
static int64_t log_weight(size_t n)
{
    int64_t sum = 0;
    unsigned __int128 x = (unsigned __int128) (n + 2) << 32;
    const unsigned __int128 one = (unsigned __int128) 1 << 32;
    for (; x >= 2 * one; x >>= 1) {
        sum += 693;
    }
    /* log(1 + f) is about f - f^2 / 2 + f^3 / 3 for the rest below 1. */
    int64_t f = (int64_t) ((x - one) * 1000 >> 32);
    return sum + f - f * f / 2000 + f * f / 1000 * f / 3000;
}

/* What spreading counts for a node, more being worse; -1: a key is missing. */
static int64_t spread_cost(const struct class *k, const struct domain_counts *counts,
                           const struct node *n)
{
    int64_t sum = 0;
    for (size_t i = 0; i < k->n_spreads; i++) {
        const struct spread *sp = &k->spreads[i];
        int32_t value = n->index < sp->topo->cap ? sp->topo->of[n->index] : -1;
        if (sp->hard || (value < 0 && !k->own_spreads)) {
            continue;
        }
        if (value < 0) {
            return -1;
        }
        int64_t there = (size_t) value < counts[i].n ? MAX(counts[i].list[value], 0) : 0;
        sum += there * log_weight(counts[i].domains) + (sp->max_skew - 1) * 1000;
    }
    return sum;
}

static bool spreads_softly(const struct class *k)
{
    return k->n_spreads > k->n_hard;
}

static void add_spread(struct cycle *c, struct node **fit, size_t n, int64_t *sums)
{
    const struct class *k = c->class;
    int64_t weight = c->s->policy.weights[SCORE_SPREAD], most = 0, least = INT64_MAX;
    if (!weight || !spreads_softly(k)) {
        return;
    }
    CLEANUP_FREE struct domain_counts *counts = xcalloc(k->n_spreads, sizeof *counts);
    CLEANUP_FREE int64_t *costs = xcalloc(n, sizeof *costs);
    for (size_t i = 0; i < k->n_spreads; i++) {
        if (!k->spreads[i].hard) {
            spread_count(c, &k->spreads[i], false, &counts[i]);
        }
    }
    for (size_t i = 0; i < n; i++) {
        costs[i] = spread_cost(k, counts, fit[i]);
        most = MAX(most, costs[i]);
        least = costs[i] >= 0 ? MIN(least, costs[i]) : least;
    }
    for (size_t i = 0; i < n; i++) {
        sums[i] += costs[i] < 0 ? 0
                   : most > 0   ? weight * (BEST * (most + least - costs[i]) / most)
                                : weight * BEST;
    }
    for (size_t i = 0; i < k->n_spreads; i++) {
        free(counts[i].list);
    }
}

/* ---- the sum ---- */

/* Adds 'weight' times the numbers, brought to 0..BEST, larger being better. */
static void add_scaled(int64_t weight, const int64_t *raw, size_t n, int64_t *sums)
{
    int64_t most = INT64_MIN, least = INT64_MAX;
    for (size_t i = 0; i < n; i++) {
        most = MAX(most, raw[i]);
        least = MIN(least, raw[i]);
    }
    for (size_t i = 0; i < n && most > least; i++) {
        sums[i] += weight * (int64_t) ((__int128) BEST * (raw[i] - least) / (most - least));
    }
}

/* Counts the pods of the class's services, and those like it, by the values of the label. */
static void count_mates(const struct cycle *c, const char *label, struct smap *counts)
{
    const struct subject *u;
    const struct pod *p;
    LIST_FOREACH (u, struct subject, link, &c->s->all_subjects) {
        if (list_is_empty(&u->pods) ||
            (u != c->class->subject && !service_is_common(c->s, c->class->subject, u))) {
            continue;
        }
        LIST_FOREACH (p, struct pod, on_subject, &u->pods) {
            const char *value = json_get_string(json_get(p->node->labels, label));
            if (value) {
                uintptr_t n = (uintptr_t) smap_get(counts, value);
                smap_set(counts, value, (void *) (n + 1));
            }
        }
    }
}

/* serviceAntiAffinity: nodes with fewer such pods at their value are better, and nodes without the
 * label are worst. */
static void fill_spread(const struct cycle *c, const char *label, struct node **fit, size_t n,
                        int64_t *raw)
{
    struct smap counts;
    int64_t most = 0;
    smap_init(&counts, NULL);
    count_mates(c, label, &counts);
    for (size_t i = 0; i < n; i++) {
        const char *value = json_get_string(json_get(fit[i]->labels, label));
        raw[i] = value ? -(int64_t) (uintptr_t) smap_get(&counts, value) : 1;
        most = MAX(most, -raw[i]);
    }
    for (size_t i = 0; i < n; i++) {
        raw[i] = raw[i] > 0 ? -most - 1 : raw[i];
    }
    smap_done(&counts);
}

static void add_labels(struct cycle *c, struct node **fit, size_t n, int64_t *raw, int64_t *sums)
{
    const struct sched_policy *p = &c->s->policy;
    for (size_t k = 0; k < p->n_label_scores; k++) {
        const struct sched_label_score *l = &p->label_scores[k];
        for (size_t i = 0; i < n; i++) {
            raw[i] = (json_get(fit[i]->labels, l->label) != NULL) == l->presence;
        }
        if (l->spread) {
            fill_spread(c, l->label, fit, n, raw);
        }
        add_scaled(l->weight, raw, n, sums);
    }
}

/* Adds a score that needs no other node to be compared with, or that add_scaled brings to scale. */
static void add_kind(struct cycle *c, enum sched_score kind, struct node **fit, size_t n,
                     int64_t *raw, int64_t *sums)
{
    int64_t weight = c->s->policy.weights[kind], most = 0;
    bool pods = kind == SCORE_POD_AFFINITY;
    for (size_t i = 0; i < n; i++) {
        const struct verdict *v = class_verdict(c->s, c->class, fit[i]);
        raw[i] = kind == SCORE_TAINTS            ? v->avoided
                 : kind == SCORE_NODE_AFFINITY   ? v->preferred
                 : pods                          ? pod_affinity(c, fit[i])
                 : kind == SCORE_LEAST_ALLOCATED ? least_allocated(c, fit[i])
                 : kind == SCORE_MOST_ALLOCATED  ? BEST - least_allocated(c, fit[i])
                 : kind == SCORE_BALANCED        ? balanced(c, fit[i])
                                                 : images(c, fit[i]);
        most = MAX(most, raw[i]);
    }
    if (pods) {
        add_scaled(weight, raw, n, sums);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        int64_t score = kind == SCORE_TAINTS          ? BEST - (most ? BEST * raw[i] / most : 0)
                        : kind == SCORE_NODE_AFFINITY ? (most ? BEST * raw[i] / most : 0)
                                                      : raw[i];
        sums[i] += weight * score;
    }
}

struct node *score_best(struct cycle *c, struct node **fit, size_t n)
{
    if (n <= 1) {
        return n ? fit[0] : NULL;
    }
    CLEANUP_FREE int64_t *sums = xcalloc(n, sizeof *sums);
    CLEANUP_FREE int64_t *raw = xcalloc(n, sizeof *raw);
    for (int kind = 0; kind < SCORES; kind++) {
        if (c->s->policy.weights[kind] && kind != SCORE_SPREAD) {
            add_kind(c, (enum sched_score) kind, fit, n, raw, sums);
        }
    }
    add_spread(c, fit, n, sums);
    add_labels(c, fit, n, raw, sums);
    size_t best = 0, ties = 1;
    for (size_t i = 1; i < n; i++) {
        if (sums[i] > sums[best]) {
            best = i;
            ties = 1;
        } else if (sums[i] == sums[best] && random_next(c->s) % ++ties == 0) {
            best = i;
        }
    }
    return fit[best];
}
