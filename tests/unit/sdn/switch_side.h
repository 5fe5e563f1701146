/* SPDX-License-Identifier: Apache-2.0 */
/* A real Open vSwitch (no packet is sent) with our flows, asked by ofproto/trace, and what sdn/model.c has it say: for
 * comparisons of the two.
 *
 * Nothing here returns on a failure: the test fails. */
#pragma once

#include "ovs.h"
#include "sdn/model.h"
#include "unixctl.h"

enum {
    SWITCH_FIRST_PORT = 11, /* "p0" */
    SWITCH_PORTS = 10,
    SWITCH_HOSTS = 15, /* 192.168.100.2 and those behind it; this one is .1. */
    SWITCH_REFUSAL_METER = 1,
};
#define SWITCH_LOCAL_PORT 0xfffffffe
static_assert(SWITCH_PORTS < 100, "names of ports");

struct switch_side {
    struct ovs ovs;
    struct of_client client;
    struct unixctl ctl;
    struct strbuf reply;
};

void switch_side_open(struct switch_side *s);
void switch_side_close(struct switch_side *s);
/* The flows of the network and its pods, and 'more' (taken over): of policy and services. */
void switch_side_load(struct switch_side *s, const struct sdn_network *net,
                      const struct model_pod *pods, size_t n_pods, struct of_flow_list *more);
/* Asks what becomes of 'p', whose connections are as it says.  'flow' is the packet as ofproto/trace takes it; with 'hex',
 * a frame's bytes, only where that comes from (switch_metadata_text).  At most UNIXCTL_MAX_UNDER_WAY at once. */
void switch_side_send(struct switch_side *s, const struct model_node *n,
                      const struct model_packet *p, const char *flow, const char *hex);
/* The oldest trace that was asked for; until the next call. */
const char *switch_side_receive(struct switch_side *s);

/* Where a packet comes from: the start of a flow for ofproto/trace. */
void switch_metadata_text(const struct sdn_network *n, const struct model_packet *p,
                          struct strbuf *ret);
/* The connection of an ICMP error that is related: part of such a flow, behind the word "ip". */
void switch_quoted_text(const struct model_packet *p, struct strbuf *ret);
/* What switch_text says of a switch that does as 'v' has it. */
void switch_expected_text(const struct sdn_network *n, const struct model_packet *p,
                          const struct model_verdict *v, struct strbuf *ret);
