/* SPDX-License-Identifier: Apache-2.0 */
#include "third_side.h"

#include "base/mem.h"
#include "base/str.h"
#include "random_firewalls.h"
#include "sdn/service_flows.h"
#include "switch_text.h"

#include <stdio.h>

#define BEGINS "allowed from now on, "

struct third_side *third_side_new(const char **why)
{
    *why = ovs_unavailable();
    if (*why) {
        return NULL;
    }
    struct third_side *t = NEW(struct third_side);
    t->want = t->got = (struct strbuf) STRBUF_INIT;
    switch_side_open(&t->side);
    return t;
}

struct third_side *third_side_free(struct third_side *t)
{
    if (t) {
        switch_side_close(&t->side);
        strbuf_done(&t->want);
        strbuf_done(&t->got);
        free(t);
    }
    return NULL;
}

void third_side_load(struct third_side *t, const struct model_node *n,
                     const struct random_policies *policies)
{
    const struct service_flows_ops ops = {.set_group = group_store_ops.set_group};
    struct of_flow_list flows = {0};
    struct group_store store;
    group_store_init(&store);
    struct policy *policy = policy_new_anywhere(n->net->local, &group_store_ops, &store);
    if (policies) {
        random_policies_tell(policies, policy);
        policy_compile(policy);
    }
    struct service_flows *f = service_flows_new(n->name, &ops, &store);
    service_flows_set_network(f, n->net);
    for (size_t i = 0; i < n->n_services; i++) {
        const struct sdn_project_service *s = &n->services[i];
        struct sdn_vnids v = {s->vnid, s->has_also_vnid, s->also_vnid};
        service_flows_set(f, s->service, &v);
    }
    service_flows_flush(f);
    group_store_flows(&store, &flows);
    random_firewalls_flows(n->firewalls, n->n_firewalls, &flows);
    switch_side_load(&t->side, n->net, n->pods, n->n_pods, &flows);
    service_flows_free(f);
    policy_free(policy);
    group_store_done(&store);
}

bool third_side_agrees(struct third_side *t, const struct model_node *n,
                       const struct model_packet *p, const struct model_verdict *v,
                       const struct third_frame *f)
{
    CLEANUP_STRBUF struct strbuf flow = STRBUF_INIT, hex = STRBUF_INIT;
    struct model_packet now = *p;
    struct model_verdict then = *v;
    switch_metadata_text(n->net, p, &flow);
    bool ip = p->eth_type == MODEL_ETH_IP4, related = ip && p->ip.connection == MODEL_RELATED;
    if (related) {
        strbuf_adds(&flow, "ip,");
        switch_quoted_text(p, &flow);
        strbuf_adds(&flow, ",");
    }
    if (ip && p->ip.denied) {
        /* A mark comes with a state only; that is another one after the first lookup, and
         * nothing asks for this before. */
        strbuf_addf(&flow, "%sct_mark=1,", related ? "" : "ct_state=rel,");
    }
    for (size_t i = 0; i < f->size; i++) {
        strbuf_addf(&hex, "%02x", f->bytes[i]);
    }
    struct model_packet looked_up = now;
    if (f->first_fragment) {
        looked_up.ip.later_fragment = true;
    }
    switch_side_send(&t->side, n, &looked_up, strbuf_cstr(&flow), strbuf_cstr(&hex));
    const char *trace = switch_side_receive(&t->side);
    t->asked++;
    if (then.action == MODEL_TRANSLATE && switch_translates(trace, n, &then, &now)) {
        then = model_judge(n, &now);
        t->translated++;
    }
    strbuf_reset(&t->want);
    strbuf_reset(&t->got);
    switch_expected_text(n->net, &now, &then, &t->want);
    switch_text(trace, &now, &t->got);
    const char *want = strbuf_cstr(&t->want), *got = strbuf_cstr(&t->got);
    if (f->ends && p->ip.connection == MODEL_NEW && str_has_prefix(want, BEGINS)) {
        want += strlen(BEGINS);
    }
    bool same = streq(want, got);
    if (!same) {
        fprintf(stderr, "model:  %s\nswitch: %s\nasked:  %s %s\n%s\n", want, got,
                strbuf_cstr(&flow), strbuf_cstr(&hex), trace);
    }
    return same;
}
