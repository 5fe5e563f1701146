/* SPDX-License-Identifier: Apache-2.0 */
/* What introspect.c serves, made in introspect_json.c and introspect_metrics.c. */
#pragma once

#include "net/http.h"
#include "node/introspect.h"
#include "node/nat.h"
#include "sdn/explain.h"

void introspect_metrics(const struct introspect_view *v, const struct drop_counts *d,
                        const struct nat_drops *host, struct strbuf *out);
/* Owned. */
struct json *introspect_state(const struct introspect_view *v);
struct json *introspect_flows(const struct introspect_view *v, const struct of_flow_list *flows,
                              const struct of_counters *counters);

/* Reads what is asked: pod=PROJECT/NAME, or from=host&src=IP, or from=tunnel&src=IP&vtep=IP&vnid=N; with dst=IP,
 * proto=NAME, and for ports dport=N, sport=N.  -EINVAL, or -ENOENT: no such pod here. */
int introspect_question(const struct introspect_view *v, const struct http_exchange *x,
                        struct explain_question *ret, struct err *e);
/* The answer (owned) so far, and in 'packet' what the switch is to be asked. */
struct json *introspect_trace(const struct introspect_view *v, const struct explain_question *q,
                              struct strbuf *packet);
/* The switch's half, its trace, or (error < 0) why there is none; and the model's, with the endpoint that the switch
 * chose for a service. */
void introspect_trace_add(const struct introspect_view *v, struct json *answer,
                          const struct explain_question *q, int error, const char *text);
