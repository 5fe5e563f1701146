/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/model_priv.h"

#define SAMPLE_LEAST 100 /* Nodes; a cluster of fewer is looked at as a whole. */

/* How many suitable nodes are enough: in large clusters a part of all. */
static size_t enough(size_t nodes)
{
    if (nodes < SAMPLE_LEAST) {
        return nodes;
    }
    size_t percent = nodes / 125 >= 45 ? 5 : 50 - nodes / 125;
    return MAX(nodes * percent / 100, SAMPLE_LEAST);
}

static char *explain(const struct cycle *c, const struct why *w, const struct sched_decision *d)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    if (!c->s->n_order) {
        strbuf_adds(&out, "no nodes available to schedule pods: start a kubelet");
        return strbuf_steal(&out);
    }
    strbuf_addf(&out, "0/%zu nodes are available: ", c->s->n_order);
    if (c->fault) {
        strbuf_adds(&out, c->fault);
    } else {
        why_list(w, &out);
    }
    strbuf_addc(&out, '.');
    why_helps(d->reasons, &out);
    return strbuf_steal(&out);
}

enum sched_reason sched_check(struct sched *s, const struct json *pod, const char *node)
{
    struct cycle c;
    const struct node *n = model_node(s, node);
    cycle_begin(&c, s, pod);
    enum sched_reason reason = n && n->present ? cycle_check(&c, n, NULL) : SCHED_NODE_NAME;
    cycle_end(&c);
    return reason;
}

/* The node for which the pod's volumes are being made stays, as long as it suits. */
static struct node *selected(struct cycle *c)
{
    const char *name = volumes_selected_node(c);
    struct node *n = name ? model_node(c->s, name) : NULL;
    return n && n->present && cycle_check(c, n, NULL) == SCHED_FITS ? n : NULL;
}

void sched_decide(struct sched *s, const struct json *pod, struct sched_decision *ret)
{
    struct cycle c;
    struct why w;
    *ret = (struct sched_decision){0};
    cycle_begin(&c, s, pod);
    const struct node *kept = selected(&c);
    if (kept) {
        *ret = (struct sched_decision){.node = kept->name, .n_checked = 1, .n_fit = 1};
        cycle_end(&c);
        return;
    }
    why_init(&w);
    size_t want = MAX(enough(s->n_running), 1);
    CLEANUP_FREE struct node **fit = xcalloc(want + 1, sizeof(struct node *));
    size_t at = s->n_order ? s->next % s->n_order : 0;
    for (; ret->n_checked < s->n_order && ret->n_fit < want; ret->n_checked++) {
        struct node *n = s->order[at];
        uint32_t slots = 0;
        enum sched_reason reason = cycle_check(&c, n, &slots);
        at = at + 1 == s->n_order ? 0 : at + 1;
        if (reason == SCHED_FITS) {
            fit[ret->n_fit++] = n;
        } else {
            ret->reasons |= SCHED_BIT(reason);
            if (!ret->n_fit) {
                why_add(&w, &c, n, reason, slots);
            }
        }
    }
    s->next = at;
    const struct node *best = score_best(&c, fit, ret->n_fit);
    if (best) {
        ret->node = best->name;
    } else {
        ret->why = explain(&c, &w, ret);
    }
    why_done(&w);
    cycle_end(&c);
}

void sched_decision_done(struct sched_decision *d)
{
    free(d->why);
    *d = (struct sched_decision){0};
}
