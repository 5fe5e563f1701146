/* SPDX-License-Identifier: Apache-2.0 */
/* What introspect.c serves, made in introspect_json.c, introspect_policy.c and introspect_metrics.c. */
#pragma once

#include "net/http/http.h"
#include "node/host/nat.h"
#include "node/introspect/introspect.h"
#include "sdn/explain.h"

void introspect_metrics(const struct introspect_view *v, const uint64_t drops[MODEL_N_CAUSES],
                        const struct nat_drops *host, struct strbuf *out);
/* Those who watch flows; where what they are told comes from is asked each time. */
struct introspect_source {
    void (*view)(void *ctx, struct introspect_view *ret);
    void *ctx;
};
struct watchers;
struct watchers *watchers_new(const struct introspect_source *source);
/* After the server is gone, which ends their streams. */
struct watchers *watchers_free(struct watchers *w);
/* Begins a stream on 'x': a JSON object a line for each flow from now on, those that go on among them. */
int watchers_add(struct watchers *w, struct http_exchange *x, struct err *e);

/* Adds to the entries of a map (datapath_maps) which objects they speak of: "object". */
void introspect_name_entries(const struct introspect_view *v, struct json *map);

/* Owned. */
struct json *introspect_state(const struct introspect_view *v);

/* What the objects behind rules are called, as of now. */
struct rule_names;
struct rule_names *rule_names_new(const struct introspect_view *v);
struct rule_names *rule_names_free(struct rule_names *n);
/* What is told of a rule in lists of flows and in traces. */
void introspect_rule(struct json *o, struct rule_names *n, const struct dp_rule *rule);

/* Reads what is asked: pod=PROJECT/NAME, or from=host&src=IP, or from=tunnel&src=IP&vtep=IP&vnid=N; with dst=IP,
 * proto=NAME, and for ports dport=N, sport=N.  -EINVAL, or -ENOENT: no such pod here. */
int introspect_question(const struct introspect_view *v, const struct http_exchange *x,
                        struct explain_question *ret, struct err *e);
/* The answer (owned) so far, and the packet that the datapath is to be asked about. */
struct json *introspect_trace(const struct introspect_view *v, const struct explain_question *q,
                              struct model_packet *packet);
/* The datapath's half, its trace, or (error < 0) why there is none; and the model's, with the endpoint that the datapath
 * chose for a service. */
void introspect_trace_add(const struct introspect_view *v, struct json *answer,
                          const struct explain_question *q, int error, const char *text,
                          const struct dp_trace *t);
/* Which policies decide at each end that the datapath asked about: "policies".  Whether it did what they say; but what
 * has changed just now may be under way to it ("policiesChange"). */
bool introspect_policies(const struct introspect_view *v, const struct explain_question *q,
                         const struct dp_trace *t, struct json *answer);
/* Appends what denies a packet that was dropped as MODEL_EGRESS_DENIED or MODEL_INGRESS_DENIED; if nothing does by now, the
 * policies that select the pod. */
void introspect_policy_of_drop(const struct policy *p, const struct dp_event *e,
                               struct strbuf *out);
