/* SPDX-License-Identifier: Apache-2.0 */
/* Introspection of the switch: its flows with counters, and traces of packets. */
#include "datapath/ovs/ovs.h"

#include "base/mem.h"
#include "sdn/explain.h"

#include <inttypes.h>

/* Interval of counting: a deleted flow takes with it at most the drops of this time. */
#define COUNT_MS 10000

static struct ovs_dp *of_dp(struct datapath *dp)
{
    return CONTAINER_OF(dp, struct ovs_dp, dp);
}

/* ---- rules ---- */

struct rules_question {
    struct ovs_dp *dp;
    const struct datapath_rules_ops *ops;
    void *ctx;
};

/* The caller frees it with free_rule. */
static void fill_rule(const struct ovs_dp *o, struct dp_rule *r, uint8_t table, uint16_t priority,
                      uint64_t cookie, const char *match, const char *actions)
{
    const char *name = pipeline_table_name(table);
    CLEANUP_STRBUF struct strbuf object = STRBUF_INIT;
    *r = (struct dp_rule){.place = name ? name : "",
                          .origin = pipeline_group(cookie),
                          .match = match,
                          .actions = actions,
                          .meaning = explain_rule(table, priority, cookie),
                          .details = json_object(),
                          .cause = pipeline_cause(table, cookie)};
    if (service_flows_describe(o->services, r->origin, &object)) {
        r->object = strbuf_steal(&object);
    }
    json_set_int(r->details, "table", table);
    json_set_int(r->details, "priority", priority);
    json_set(r->details, "cookie", json_stringf("%#" PRIx64, cookie));
}

static void free_rule(struct dp_rule *r)
{
    free((void *) r->object);
    json_free(r->details);
}

struct sortable {
    const struct of_flow *flow;
    const struct of_counters *counters;
};

/* Sorts rules in the order in which packets meet them. */
static int compare_flows(const void *pa, const void *pb)
{
    const struct of_flow *a = ((const struct sortable *) pa)->flow;
    const struct of_flow *b = ((const struct sortable *) pb)->flow;
    if (a->table != b->table) {
        return a->table < b->table ? -1 : 1;
    }
    if (a->priority != b->priority) {
        return a->priority > b->priority ? -1 : 1;
    }
    uint64_t ca = pipeline_group(a->cookie), cb = pipeline_group(b->cookie);
    if (ca != cb) {
        return ca < cb ? -1 : 1;
    }
    size_t n = MIN(a->match_size, b->match_size);
    int r = memcmp(a->bytes, b->bytes, n);
    return r ? r : (int) a->match_size - (int) b->match_size;
}

static void rules_read(void *ctx, int error, const char *text, const struct of_flow_list *flows,
                       const struct of_counters *counters)
{
    struct rules_question *q = ctx;
    CLEANUP_FREE struct sortable *order = xcalloc(flows->n + 1, sizeof *order);
    for (size_t i = 0; i < flows->n; i++) {
        order[i] = (struct sortable){flows->flows[i], &counters[i]};
    }
    qsort(order, flows->n, sizeof *order, compare_flows);
    for (size_t i = 0; error == 0 && i < flows->n; i++) {
        const struct of_flow *f = order[i].flow;
        CLEANUP_STRBUF struct strbuf match = STRBUF_INIT, actions = STRBUF_INIT;
        struct dp_rule rule;
        of_flow_match_text(f, &match);
        of_flow_actions_text(f, &actions);
        fill_rule(q->dp, &rule, f->table, f->priority, f->cookie, strbuf_cstr(&match),
                  strbuf_cstr(&actions));
        q->ops->each(q->ctx, &rule, order[i].counters->packets, order[i].counters->bytes);
        free_rule(&rule);
    }
    q->ops->done(q->ctx, error, text);
    free(q);
}

void explain_rules(struct datapath *dp, const struct datapath_rules_ops *ops, void *ctx)
{
    struct ovs_dp *o = of_dp(dp);
    if (!o->of) {
        ops->done(ctx, -ENOTCONN, "the bridge is not set up yet");
        return;
    }
    struct rules_question *q = NEW(struct rules_question);
    q->dp = o;
    q->ops = ops;
    q->ctx = ctx;
    of_query(o->of, false, rules_read, q);
}

/* ---- drops ---- */

struct drops_question {
    struct ovs_dp *dp;
    datapath_drops_fn *done;
    void *ctx;
};

static void drops_read(void *ctx, int error, const char *text, const struct of_flow_list *flows,
                       const struct of_counters *counters)
{
    struct drops_question *q = ctx;
    if (error == 0) {
        drop_counts_update(&q->dp->drops, flows, counters);
    }
    q->done(q->ctx, error, q->dp->drops.total);
    free(q);
}

void explain_drops(struct datapath *dp, datapath_drops_fn *done, void *ctx)
{
    struct ovs_dp *o = of_dp(dp);
    if (!o->of) {
        done(ctx, -ENOTCONN, o->drops.total);
        return;
    }
    struct drops_question *q = NEW(struct drops_question);
    q->dp = o;
    q->done = done;
    q->ctx = ctx;
    of_query(o->of, true, drops_read, q);
}

static void counted(void *ctx, int error, const uint64_t totals[MODEL_N_CAUSES])
{
    struct ovs_dp *o = ctx;
    o->counting = false;
}

static void on_count(void *ctx)
{
    struct ovs_dp *o = ctx;
    loop_timer_arm(o->count, COUNT_MS);
    if (!o->counting) {
        o->counting = true;
        explain_drops(&o->dp, counted, o);
    }
}

/* ---- traces ---- */

struct trace {
    struct list link;
    struct ovs_dp *dp;
    struct unixctl_call *call;
    datapath_trace_fn *done;
    void *ctx;
};

static int read_trace(const struct ovs_dp *o, const char *text, struct ovstrace *t,
                      struct dp_trace *ret, struct err *e)
{
    struct explain_outcome outcome;
    int r = ovstrace_parse(text, o->bridge, t, e);
    r = r < 0 ? r : explain_outcome(t, &outcome, e);
    if (r < 0) {
        return r;
    }
    struct dp_rule *steps = xcalloc(t->n + 1, sizeof *steps);
    for (size_t i = 0; i < t->n; i++) {
        const struct ovstrace_step *s = &t->steps[i];
        fill_rule(o, &steps[i], s->table, s->priority, s->cookie, s->match, s->actions);
    }
    *ret = (struct dp_trace){.steps = steps,
                             .n = t->n,
                             .action = outcome.action,
                             .cause = outcome.cause,
                             .remark = t->remark};
    ret->translated = explain_translation(t, &ret->endpoint_ip, &ret->endpoint_port);
    return 0;
}

static void trace_done(void *ctx, int error, const char *text)
{
    struct trace *t = ctx;
    CLEANUP(ovstrace_done) struct ovstrace parsed = {0};
    struct dp_trace found = {0};
    struct err e = {0};
    list_remove(&t->link);
    if (error == 0 && (error = read_trace(t->dp, text, &parsed, &found, &e)) < 0) {
        text = e.text;
    }
    t->done(t->ctx, error, text, &found);
    for (size_t i = 0; i < found.n; i++) {
        free_rule((struct dp_rule *) &found.steps[i]);
    }
    free((void *) found.steps);
    free(t);
}

void explain_trace(struct datapath *dp, const struct model_packet *p, datapath_trace_fn *done,
                   void *ctx)
{
    struct ovs_dp *o = of_dp(dp);
    CLEANUP_STRBUF struct strbuf packet = STRBUF_INIT;
    explain_packet_text(&o->net, p, &packet);
    struct trace *t = NEW(struct trace);
    t->dp = o;
    t->done = done;
    t->ctx = ctx;
    list_push_back(&o->traces, &t->link);
    const char *args[] = {o->bridge, strbuf_cstr(&packet), NULL};
    t->call = unixctl_call(o->loop, o->rundir, "ofproto/trace", args, trace_done, t);
}

/* ---- all ---- */

void explain_init(struct ovs_dp *o)
{
    list_init(&o->traces);
    drop_counts_init(&o->drops);
    o->count = loop_timer_new(o->loop, on_count, o);
    loop_timer_arm(o->count, COUNT_MS);
}

void explain_close(struct ovs_dp *o)
{
    struct trace *t;
    LIST_FOREACH (t, struct trace, link, &o->traces) {
        unixctl_cancel(t->call);
    }
    loop_timer_free(o->count);
}

void explain_done(struct ovs_dp *o)
{
    drop_counts_done(&o->drops);
}
