/* SPDX-License-Identifier: Apache-2.0 */
#include "node/agent/conditions.h"

#include "node/agent/report.h"

static struct agent_facts gather_facts(const struct agent *a)
{
    const struct datapath_words *words = datapath_words(a->cfg->datapath);
    return (struct agent_facts){
        .phase = a->phase,
        .waiting_for = a->wait_text,
        .datapath = a->datapath_state,
        .datapath_title = words->title,
        .datapath_lost_reason = words->lost_reason,
        .datapath_refuse_reason = words->refused_reason,
        .datapath_text = a->datapath_text,
        .host = a->host_state,
        .host_text = a->host_text,
        .network_refused = a->refused[0] ? a->refused : NULL,
    };
}

const struct readiness *agent_readiness(struct agent *a)
{
    struct agent_facts f = gather_facts(a);
    readiness_judge(&f, &a->shown);
    return &a->shown;
}

static void publish(struct agent *a, const struct readiness *r)
{
    bool ready = r->state == READINESS_READY;
    if (!ready) {
        a->published_failure = true;
        agent_report_node(a, EVENT_WARNING, r->reason, r->text);
    } else if (a->published_failure) {
        a->published_failure = false;
        agent_report_node(a, EVENT_NORMAL, r->reason, "the pod network is in place again");
    }
    registration_set_ready(a->registration, ready, r->reason,
                           ready ? "the pod network is in place" : r->text);
}

void agent_update_conditions(struct agent *a)
{
    const struct readiness *r = agent_readiness(a);
    bool same = r->state == a->published.state && streq_null(r->reason, a->published.reason) &&
                streq(r->text, a->published.text);
    if (r->state != READINESS_PENDING && !same) {
        a->published = *r;
        publish(a, r);
    }
}

const char *agent_why_not_ready(void *ctx)
{
    const struct readiness *r = agent_readiness(ctx);
    return r->serves_pods ? NULL : r->text;
}
