/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ovs/drops.h"

#include "base/mem.h"
#include "sdn/pipeline.h"

struct seen_flow {
    struct hmap_node node;
    struct of_flow *flow;
    uint64_t packets;
    bool present;
};

void drop_counts_init(struct drop_counts *d)
{
    *d = (struct drop_counts){0};
    hmap_init(&d->seen);
}

static void forget(struct drop_counts *d, struct seen_flow *s)
{
    hmap_remove(&d->seen, &s->node);
    of_flow_free(s->flow);
    free(s);
}

void drop_counts_done(struct drop_counts *d)
{
    struct seen_flow *s;
    HMAP_FOREACH (s, struct seen_flow, node, &d->seen) {
        forget(d, s);
    }
    hmap_done(&d->seen);
}

static struct seen_flow *find(const struct drop_counts *d, const struct of_flow *f)
{
    struct seen_flow *s;
    HMAP_FOREACH_WITH_HASH (s, struct seen_flow, node, of_flow_hash(f), &d->seen) {
        if (of_flow_same_key(s->flow, f) && s->flow->cookie == f->cookie) {
            return s;
        }
    }
    return NULL;
}

void drop_counts_update(struct drop_counts *d, const struct of_flow_list *flows,
                        const struct of_counters *counters)
{
    struct seen_flow *s;
    HMAP_FOREACH (s, struct seen_flow, node, &d->seen) {
        s->present = false;
    }
    for (size_t i = 0; i < flows->n; i++) {
        const struct of_flow *f = flows->flows[i];
        enum model_cause cause = pipeline_cause(f->table, f->cookie);
        uint64_t packets = counters[i].packets;
        if (cause == MODEL_NOT_DROPPED || !packets) {
            continue;
        }
        if (!(s = find(d, f))) {
            s = NEW(struct seen_flow);
            s->flow = of_flow_clone(f);
            hmap_insert(&d->seen, &s->node, of_flow_hash(f));
        }
        /* A smaller value than before: the flow was made anew since. */
        d->total[cause] += packets >= s->packets ? packets - s->packets : packets;
        s->packets = packets;
        s->present = true;
    }
    HMAP_FOREACH (s, struct seen_flow, node, &d->seen) {
        if (!s->present) {
            forget(d, s);
        }
    }
}
