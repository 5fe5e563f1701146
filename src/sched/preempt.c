/* SPDX-License-Identifier: Apache-2.0 */
#include "api/label_selector.h"
#include "sched/model_priv.h"

#define CANDIDATES_LEAST 100
#define CANDIDATES_SPREAD 10 /* Where each dry run counts the pods of all nodes. */

/* What it costs to make room on one node. */
struct plan {
    struct node *node;
    struct pod **victims; /* Owned list. */
    size_t n, violations;
    int32_t highest;
    int64_t sum;
    const char *latest; /* The start of the first to start of the highest. */
};

static void plan_done(struct plan *p)
{
    free(p->victims);
    *p = (struct plan){0};
}

/* Whether ending pods may help against the reason. */
static bool can_help(enum sched_reason reason)
{
    return reason == SCHED_RESOURCES || reason == SCHED_PORTS || reason == SCHED_SPREAD ||
           reason == SCHED_POD_ANTI_AFFINITY || reason == SCHED_EXISTING_ANTI_AFFINITY;
}

/* More important first: by priority, then the one that runs longer. */
static int by_importance(const void *a, const void *b)
{
    const struct pod *x = *(struct pod *const *) a, *y = *(struct pod *const *) b;
    if (x->priority != y->priority) {
        return x->priority > y->priority ? -1 : 1;
    }
    int d = strcmp(x->started, y->started);
    return d ? d : strcmp(x->key, y->key);
}

/* ---- budgets ---- */

/* The disruptions that each budget still allows. */
struct budgets {
    struct smap left; /* By key, to a number plus one. */
};

static bool concerns(const struct json *budget, const struct pod *p)
{
    const struct json *selector = json_path(budget, "spec", "selector", NULL);
    const char *name = strchr(p->key, '/') + 1;
    return streq(json_get_text(json_get(budget, "metadata"), "namespace"),
                 p->class->subject->namespace) &&
           !label_selector_is_empty(selector) &&
           label_selector_matches(selector, p->class->subject->labels) &&
           !json_path(budget, "status", "disruptedPods", name, NULL);
}

/* Counts the pod as disrupted; true: a budget does not allow that. */
static bool violates(const struct sched *s, struct budgets *b, const struct pod *p)
{
    struct smap_entry *e;
    bool violated = false;
    SMAP_FOREACH (e, &s->objects[SCHED_BUDGET]) {
        if (!concerns(e->value, p)) {
            continue;
        }
        int64_t left = (int64_t) (intptr_t) smap_get(&b->left, e->key) - 1;
        if (left < 0) {
            left = MAX(
                json_get_int_or(json_path(e->value, "status", "disruptionsAllowed", NULL), 0), 0);
        }
        violated = violated || left == 0;
        smap_set(&b->left, e->key, (void *) (intptr_t) (MAX(left - 1, 0) + 1));
    }
    return violated;
}

/* ---- the dry run on one node ---- */

static void add_victim(struct plan *p, struct pod *victim)
{
    if (!p->n || victim->priority > p->highest ||
        (victim->priority == p->highest && strcmp(victim->started, p->latest) < 0)) {
        p->highest = victim->priority;
        p->latest = victim->started;
    }
    p->sum += (int64_t) victim->priority + INT64_C(0x80000000);
    p->victims = xreallocarray(p->victims, p->n + 1, sizeof(struct pod *));
    p->victims[p->n++] = victim;
}

/* Puts back as many pods as possible, the more important ones first, and those whose budgets would
 * be violated before all others; the rest are victims. */
static void reprieve(struct cycle *c, struct pod **list, const bool *violating, size_t n,
                     struct plan *p)
{
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < n; i++) {
            if (violating[i] != (pass == 0)) {
                continue;
            }
            model_place(c->s, list[i]);
            cycle_recount(c);
            if (cycle_check(c, p->node, NULL) != SCHED_FITS) {
                model_unplace(c->s, list[i]);
                cycle_recount(c);
                add_victim(p, list[i]);
                p->violations += violating[i];
            }
        }
    }
}

/* Fills '*p' when the pod would fit on its node without less important pods.  The model is as
 * before. */
static bool dry_run(struct cycle *c, struct plan *p)
{
    struct pod *pod;
    size_t n = 0, all = list_size(&p->node->pods);
    CLEANUP_FREE struct pod **list = xcalloc(all + 1, sizeof(struct pod *));
    CLEANUP_FREE bool *violating = xcalloc(all + 1, sizeof *violating);
    struct budgets budgets;
    LIST_FOREACH (pod, struct pod, on_node, &p->node->pods) {
        if (pod->priority < c->priority) {
            list[n++] = pod;
        }
    }
    if (!n) {
        return false;
    }
    qsort(list, n, sizeof(struct pod *), by_importance);
    smap_init(&budgets.left, NULL);
    for (size_t i = 0; i < n; i++) {
        violating[i] = violates(c->s, &budgets, list[i]);
        model_unplace(c->s, list[i]);
    }
    smap_done(&budgets.left);
    cycle_recount(c);
    bool fits = cycle_check(c, p->node, NULL) == SCHED_FITS;
    if (fits) {
        reprieve(c, list, violating, n, p);
    }
    for (size_t i = 0; i < n; i++) {
        model_place(c->s, list[i]);
    }
    cycle_recount(c);
    return fits && p->n;
}

/* Whether 'a' disturbs less than 'b'. */
static bool is_better(const struct plan *a, const struct plan *b)
{
    return a->violations != b->violations ? a->violations < b->violations
           : a->highest != b->highest     ? a->highest < b->highest
           : a->sum != b->sum             ? a->sum < b->sum
           : a->n != b->n                 ? a->n < b->n
                                          : strcmp(a->latest, b->latest) > 0;
}

/* ---- the choice ---- */

static void search(struct cycle *c, struct plan *best, struct why *w)
{
    struct sched *s = c->s;
    size_t found = 0,
           most = c->class->n_hard ? CANDIDATES_SPREAD : MAX(s->n_order / 10, CANDIDATES_LEAST);
    for (size_t i = 0; i < s->n_order; i++) {
        struct plan p = {.node = s->order[(s->next + i) % s->n_order]};
        enum sched_reason reason = cycle_check(c, p.node, NULL);
        bool helps = can_help(reason);
        if (helps && found < most && dry_run(c, &p)) {
            found++;
            if (!best->n || is_better(&p, best)) {
                plan_done(best);
                *best = p;
                p = (struct plan){0};
            }
        } else if (found < most) {
            const char *text = helps ? "No preemption victims found for incoming pod"
                                     : "Preemption is not helpful for scheduling";
            uintptr_t n = (uintptr_t) smap_get(&w->counts, text);
            smap_set(&w->counts, text, (void *) (n + 1));
        }
        plan_done(&p);
    }
}

static char *explain(const struct sched *s, const struct why *w)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    strbuf_addf(&out, "preemption: 0/%zu nodes are available: ", s->n_order);
    why_list(w, &out);
    strbuf_addc(&out, '.');
    return strbuf_steal(&out);
}

/* Whether pods end on the node that was chosen for the pod before. */
static bool victims_are_ending(const struct sched *s, const struct json *pod)
{
    CLEANUP_FREE char *key = sched_pod_key(pod);
    const struct nominee *o = smap_get(&s->nominees, key);
    const struct pod *p;
    if (o) {
        LIST_FOREACH (p, struct pod, on_node, &o->node->pods) {
            if (p->ending && p->priority < o->priority) {
                return true;
            }
        }
    }
    return false;
}

void sched_preempt(struct sched *s, const struct json *pod, struct sched_preemption *ret)
{
    struct cycle c;
    struct plan best = {0};
    struct why w;
    *ret = (struct sched_preemption){0};
    if (streq(json_get_text(json_get(pod, "spec"), "preemptionPolicy"), "Never")) {
        ret->why = xstrdup("preemption: not eligible due to preemptionPolicy=Never.");
        return;
    }
    if (victims_are_ending(s, pod)) {
        ret->waits = true;
        ret->why = xstrdup("preemption: not eligible due to a terminating pod on the nominated "
                           "node.");
        return;
    }
    cycle_begin(&c, s, pod);
    why_init(&w);
    search(&c, &best, &w);
    if (best.n) {
        ret->node = best.node->name;
        ret->victims = xcalloc(best.n, sizeof(char *));
        ret->n_violations = best.violations;
        for (; ret->n_victims < best.n; ret->n_victims++) {
            ret->victims[ret->n_victims] = xstrdup(best.victims[ret->n_victims]->key);
        }
    } else if (s->n_order) {
        ret->why = explain(s, &w);
    }
    plan_done(&best);
    why_done(&w);
    cycle_end(&c);
}

void sched_preemption_done(struct sched_preemption *p)
{
    for (size_t i = 0; i < p->n_victims; i++) {
        free(p->victims[i]);
    }
    free(p->victims);
    free(p->why);
    *p = (struct sched_preemption){0};
}
