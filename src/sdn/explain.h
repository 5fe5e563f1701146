/* SPDX-License-Identifier: Apache-2.0 */
/* What the pipeline does, in words, and what a trace of it says.  Pure. */
#pragma once

#include "sdn/pipeline.h"
#include "sdn/policy.h"
#include "wire/ovstrace.h"

/* One line on what the rule is there for; "" for one that is none of ours. */
const char *explain_rule(uint8_t table, uint16_t priority, uint64_t cookie);
/* One line on what decides, in the words of the flow that would. */
const char *explain_decision(const struct policy_decision *x, enum policy_direction d);
/* One line on a cause: "the projects' VNIDs differ and neither is 0". */
const char *explain_cause(enum model_cause c);

/* The packet of pod (or host, or tunnel) as the model and the switch are asked about it. */
struct explain_question {
    enum model_entry entry;
    uint32_t port;                 /* MODEL_FROM_PORT: of the pod; its address is 'src'. */
    uint32_t outer_src, tunnel_id; /* MODEL_FROM_TUNNEL */
    uint32_t src, dst;
    uint8_t proto; /* 1, 6, 17 or 132 */
    uint16_t src_port, dst_port;
};
void explain_packet(const struct sdn_network *n, const struct explain_question *q,
                    struct model_packet *ret);
/* Appends the packet in the words of ofproto/trace. */
void explain_packet_text(const struct sdn_network *n, const struct model_packet *p,
                         struct strbuf *out);

/* What the steps of a trace come to. */
struct explain_outcome {
    enum model_action action;
    enum model_cause
        cause; /* MODEL_DROP; MODEL_NOT_DROPPED: by the switch itself, or by a policy. */
    const struct ovstrace_step *decisive; /* The step that settled it. */
};
/* -EBADMSG: no step of ours. */
int explain_outcome(const struct ovstrace *t, struct explain_outcome *ret, struct err *e);
/* The endpoint that the packet got for a service; false: it is to none, or got none. */
bool explain_translation(const struct ovstrace *t, uint32_t *ret_ip, uint16_t *ret_port);
/* Whether switch and model say the same. */
bool explain_agrees(const struct explain_outcome *o, const struct model_verdict *v);

/* Says in 'o' which service a verdict is about ("name", "port", "endpoints": how many). */
void explain_service(const struct model_node *n, const struct model_verdict *v, struct json *o);

const char *explain_action_name(enum model_action a); /* "deliver" */
/* "tcp" and so on to its number; "icmp" 1.  -EINVAL names what there is. */
int explain_proto_parse(const char *name, uint8_t *ret, struct err *e);
const char *explain_proto_name(uint8_t proto);
static inline bool explain_has_ports(uint8_t proto)
{
    return proto == 6 || proto == 17 || proto == 132;
}
