/* SPDX-License-Identifier: Apache-2.0 */
/* The answers that introspect.c serves, made in introspect_json.c, introspect_policy.c and
 * introspect_metrics.c. */
#pragma once

#include "net/http/http.h"
#include "node/host/nat.h"
#include "node/introspect/introspect.h"
#include "sdn/explain.h"

void introspect_metrics(const struct introspect_view *v, const uint64_t drops[MODEL_N_CAUSES],
                        const struct nat_drops *host, struct strbuf *out);
/* The clients that watch flows, and the callback that gives them the agent's state for each
 * event. */
struct introspect_source {
    void (*view)(void *ctx, struct introspect_view *ret);
    void *ctx;
};
struct watchers;
struct watchers *watchers_new(const struct introspect_source *source);
/* Called after the server is freed, which ends the streams. */
struct watchers *watchers_free(struct watchers *w);
/* Begins a stream on 'x': one JSON object a line for each flow from now on, including flows that
 * are open already. */
int watchers_add(struct watchers *w, struct http_exchange *x, struct err *e);

/* Adds a member "object", the API objects it refers to, to each entry of a map (datapath_maps). */
void introspect_name_entries(const struct introspect_view *v, struct json *map);

/* Owned. */
struct json *introspect_state(const struct introspect_view *v);

/* The present names of the objects behind rules. */
struct rule_names;
struct rule_names *rule_names_new(const struct introspect_view *v);
struct rule_names *rule_names_free(struct rule_names *n);
/* Appends the description of a rule to an entry of a flow list or a trace. */
void introspect_rule(struct json *o, struct rule_names *n, const struct dp_rule *rule);

/* Reads the question from the query: pod=PROJECT/NAME, or from=host&src=IP, or
 * from=tunnel&src=IP&vtep=IP&vnid=N; with dst=IP, proto=NAME, and for ports dport=N, sport=N.
 * -EINVAL, or -ENOENT: no such pod here. */
int introspect_question(const struct introspect_view *v, const struct http_exchange *x,
                        struct explain_question *ret, struct err *e);
/* The first part of the answer (owned), and the packet whose trace the datapath makes. */
struct json *introspect_trace(const struct introspect_view *v, const struct explain_question *q,
                              struct model_packet *packet);
/* Adds the datapath's trace, or (error < 0) the reason why there is none, and the model's verdict
 * with the endpoint that the datapath chose for a service. */
void introspect_trace_add(const struct introspect_view *v, struct json *answer,
                          const struct explain_question *q, int error, const char *text,
                          const struct dp_trace *t);
/* Adds "policies": the policies that decide in each direction that the datapath checked.  Returns
 * whether the datapath acted on them; a recent change may still be under way to it
 * ("policiesChange"). */
bool introspect_policies(const struct introspect_view *v, const struct explain_question *q,
                         const struct dp_trace *t, struct json *answer);
/* Appends the objects of the egress firewall of a VNID: "EgressNetworkPolicy red/out"; 'e' may be
 * NULL. */
void introspect_name_firewall(const struct egress *e, uint32_t vnid, struct strbuf *out);
/* Appends the policies that deny a packet dropped as MODEL_EGRESS_DENIED or MODEL_INGRESS_DENIED;
 * if none denies it by now, the policies that select the pod. */
void introspect_policy_of_drop(const struct policy *p, const struct dp_event *e,
                               struct strbuf *out);
