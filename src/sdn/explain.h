/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions of the pipeline's rules, and the outcome of a trace of it. Pure. */
#pragma once

#include "sdn/pipeline.h"
#include "sdn/policy.h"
#include "wire/ovstrace.h"

/* One line on the rule's purpose; "" for a rule that is not ours. */
const char *explain_rule(uint8_t table, uint16_t priority, uint64_t cookie);
/* One line on the reason of a decision, like the line of the flow for it. */
const char *explain_decision(const struct policy_decision *x, enum policy_direction d);
/* One line on a cause: "the projects' VNIDs differ and neither is 0". */
const char *explain_cause(enum model_cause c);

/* A packet, in a form from which both the model's and the switch's question are made. */
struct explain_question {
    enum model_entry entry;
    uint32_t port;                 /* MODEL_FROM_PORT: the pod's port; its address is 'src'. */
    uint32_t outer_src, tunnel_id; /* MODEL_FROM_TUNNEL */
    uint32_t src, dst;
    uint8_t proto; /* 1, 6, 17 or 132 */
    uint16_t src_port, dst_port;
};
void explain_packet(const struct sdn_network *n, const struct explain_question *q,
                    struct model_packet *ret);
/* Appends the packet in the syntax of ofproto/trace. */
void explain_packet_text(const struct sdn_network *n, const struct model_packet *p,
                         struct strbuf *out);

/* The outcome of a trace's steps. */
struct explain_outcome {
    enum model_action action;
    /* The cause of MODEL_DROP; MODEL_NOT_DROPPED: dropped by the switch itself, or by a
     * policy. */
    enum model_cause cause;
    const struct ovstrace_step *decisive; /* The step that decided. */
};
/* -EBADMSG: no step is one of ours. */
int explain_outcome(const struct ovstrace *t, struct explain_outcome *ret, struct err *e);
/* The endpoint that a service gave the packet; false: it is not to a service, or got none. */
bool explain_translation(const struct ovstrace *t, uint32_t *ret_ip, uint16_t *ret_port);
/* Whether switch and model have the same verdict. */
bool explain_agrees(const struct explain_outcome *o, const struct model_verdict *v);

/* Sets in 'o' the service of a verdict ("name", "port", "endpoints": their number). */
void explain_service(const struct model_node *n, const struct model_verdict *v, struct json *o);

const char *explain_action_name(enum model_action a); /* "deliver" */
/* "tcp" and so on to its number; "icmp" is 1. -EINVAL lists the accepted names. */
int explain_proto_parse(const char *name, uint8_t *ret, struct err *e);
const char *explain_proto_name(uint8_t proto);
static inline bool explain_has_ports(uint8_t proto)
{
    return proto == 6 || proto == 17 || proto == 132;
}
