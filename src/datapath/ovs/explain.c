/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about the switch: its flows with counters, and what it does with a packet. */
#include "datapath/ovs/ovs.h"

#include "base/mem.h"

struct trace {
    struct list link;
    struct ovs_dp *dp;
    struct unixctl_call *call;
    datapath_text_fn *done;
    void *ctx;
};

static void trace_done(void *ctx, int error, const char *text)
{
    struct trace *t = ctx;
    list_remove(&t->link);
    t->done(t->ctx, error, text);
    free(t);
}

void explain_flows(struct ovs_dp *o, bool drops, datapath_flows_fn *done, void *ctx)
{
    if (o->of) {
        of_query(o->of, drops, done, ctx);
    } else {
        done(ctx, -ENOTCONN, "the bridge is not set up yet", &(struct of_flow_list){0}, NULL);
    }
}

void explain_trace(struct ovs_dp *o, const char *packet, datapath_text_fn *done, void *ctx)
{
    struct trace *t = NEW(struct trace);
    t->dp = o;
    t->done = done;
    t->ctx = ctx;
    list_push_back(&o->traces, &t->link);
    const char *args[] = {o->bridge, packet, NULL};
    t->call = unixctl_call(o->loop, o->rundir, "ofproto/trace", args, trace_done, t);
}

void explain_done(struct ovs_dp *o)
{
    struct trace *t;
    LIST_FOREACH (t, struct trace, link, &o->traces) {
        unixctl_cancel(t->call);
    }
}
